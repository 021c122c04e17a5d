//! Running statements: the simple and the extended protocol's verbs, and the loop that drives an execution.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;

use base::{Error, Oid, Result, SqlState};
use engine_api::{Step, Wait, WaitPolicy};
use rupg_sql::nodes::Node;
use types::{Datum, InputContext, OutputSettings};

use super::context::StatementContext;
use super::statement::{Kind, Query, Statement, Verb, is_query};
use super::{Block, Output, Portal, ResultColumn, Session, utility};
use crate::bind::{self, BindContext};
use crate::exec::{ExecCx, Execution, OutputRow, Progress, RowSink};
use crate::functions::{self, PreparedStatement};
use crate::{ir, parse, plan};

/// Finished executions that a session keeps.
const IDLE_EXECUTIONS: usize = 32;

/// How an Execute ended.
#[derive(Debug, PartialEq, Eq)]
pub enum ExecuteEnd {
    /// The statement is complete (its tag is queued).
    Complete,
    /// The row limit was reached.
    Suspended,
}

/// A value of a Bind message.
pub enum BoundValue<'a> {
    /// NULL
    Null,
    /// Text form.
    Text(&'a [u8]),
    /// Binary form.
    Binary(&'a [u8]),
}

/// Hands rows to the connection.
struct RowsOut<'a> {
    out: &'a mut dyn Output,
    columns: &'a [ResultColumn],
    settings: &'a OutputSettings,
    eval: &'a StatementContext<'a>,
    /// Some columns are names in the catalog.
    named: bool,
}

impl RowSink for RowsOut<'_> {
    fn row(&mut self, row: OutputRow<'_>) -> Result<bool> {
        if self.named {
            let values: Vec<Datum> = row
                .iter()
                .zip(self.columns)
                .enumerate()
                .map(|(i, (value, column))| {
                    let named = self.out.wants_text(i);
                    let text = named.then(|| functions::name_in_catalog(self.eval, column.ty.oid, value)).flatten();
                    text.unwrap_or_else(|| value.clone())
                })
                .collect();
            self.out.row(OutputRow::of(&values), self.columns, self.settings);
            return Ok(self.out.is_full());
        }
        self.out.row(row, self.columns, self.settings);
        Ok(self.out.is_full())
    }
}

impl Session {
    /// Runs every statement of a simple query. An error has been applied to the transaction block when it is returned.
    pub async fn simple_query(&mut self, sql: &str, out: &mut dyn Output) -> Result<()> {
        let result = self.simple_query_inner(sql, out).await;
        if result.is_err() {
            self.undo_ahead(true).await;
        }
        self.finish_message(result, out)
    }

    fn finish_message(&mut self, result: Result<()>, out: &mut dyn Output) -> Result<()> {
        if result.is_err() {
            self.fail();
        }
        self.send_notices(out);
        self.send_parameters(out);
        out.gate(self.gate);
        result
    }

    async fn simple_query_inner(&mut self, sql: &str, out: &mut dyn Output) -> Result<()> {
        self.start_statement();
        self.portals.remove("");
        if let Some((statement, params)) = self.cached_simple(sql)? {
            let tag = self.run_statement(&statement, params, out).await?;
            return self.conclude(tag, true, out).await;
        }
        let parsed = parse::parse(sql)?;
        if parsed.is_empty() {
            out.empty();
            return Ok(());
        }
        let count = parsed.len();
        let several = count > 1;
        for (i, one) in parsed.into_iter().enumerate() {
            if i > 0 {
                self.start_statement();
            }
            let last_of_block = !several;
            let statement = self.prepare_parsed(one, sql, &[], false, last_of_block)?;
            if several && !matches!(self.block, Block::Failed) {
                // All statements of one message are one implicit block until something ends it.
                self.ensure_transaction()?;
            }
            let tag = self.run_statement(&statement, Vec::new(), out).await?;
            self.conclude(tag, i + 1 == count, out).await?;
        }
        Ok(())
    }

    /// Queues a statement's tag; behind the last one of a message outside of a block, the commit comes first, so that a
    /// commit that fails is not announced as a success.
    async fn conclude(&mut self, tag: Option<String>, last: bool, out: &mut dyn Output) -> Result<()> {
        if last && self.block == Block::None {
            self.commit_transaction(out).await?;
        }
        if let Some(tag) = tag {
            out.complete(&tag);
        }
        Ok(())
    }

    /// A statement that was bound before, for this text or for one that differs only in literals.
    fn cached_simple(&mut self, sql: &str) -> Result<Option<(Arc<Statement>, Vec<Datum>)>> {
        if self.has_own_ddl() {
            return Ok(None);
        }
        let catalog = self.catalog();
        self.refresh_binding(&catalog);
        let Some(binding) = &self.binding else { return Ok(None) };
        let get =
            |text: &str, types: &[Oid]| self.shared.cache.get(text, types, &binding.key, binding.hash, catalog.version);
        // What another session prepared may have parameters; here nothing gives them values.
        if let Some(statement) = get(sql, &[]).filter(|statement| statement.param_types.is_empty()) {
            return Ok(Some((statement, Vec::new())));
        }
        let Some(print) = parse::fingerprint::fingerprint(sql) else { return Ok(None) };
        let types = print.literal_types();
        let statement = match get(&print.text, &types) {
            Some(statement) => statement,
            None => match self.prepare_fingerprint(&print, &types) {
                Some(statement) => statement,
                None => return Ok(None),
            },
        };
        let settings = self.output_settings();
        let input = InputContext { settings: &settings, now_micros: self.environment.transaction_start.get() };
        // A literal that does not fit its parameter is reported by binding the text itself, with its position.
        match print.values(&statement.param_types, &input) {
            Ok(params) => Ok(Some((statement, params))),
            Err(_) => Ok(None),
        }
    }

    /// Binds a fingerprint as if it were a statement with parameters; `None` if only the original text will do.
    fn prepare_fingerprint(
        &mut self,
        print: &parse::fingerprint::Fingerprint,
        types: &[Oid],
    ) -> Option<Arc<Statement>> {
        let mut parsed = parse::parse(&print.text).ok()?;
        if parsed.len() != 1 || !is_query(&parsed[0].node) {
            return None;
        }
        self.prepare_parsed(parsed.remove(0), &print.text, types, true, true).ok()
    }

    /// Binds and plans one parsed statement; shared with all sessions when `cacheable`.
    fn prepare_parsed(
        &mut self,
        parsed: parse::ParsedStatement,
        sql: &str,
        types: &[Oid],
        infer_params: bool,
        cacheable: bool,
    ) -> Result<Arc<Statement>> {
        let catalog = self.catalog();
        self.refresh_binding(&catalog);
        let notices = self.environment.notices.borrow().len();
        let statement = Arc::new(if is_query(&parsed.node) {
            self.check_not_failed()?;
            self.bind_query(&parsed.node, sql, types, parsed.start, infer_params)?
        } else {
            let statement = Statement {
                text: sql.into(),
                start: 0,
                param_types: types.to_vec(),
                kind: Kind::Utility(Arc::new(parsed.node)),
                catalog_version: catalog.version,
            };
            if !utility::ends_block(&statement.kind) {
                self.check_not_failed()?;
            }
            if let Kind::Utility(node) = &statement.kind {
                utility::check_described(self, node)?;
            }
            statement
        });
        let short = sql.len() <= 64 || matches!(statement.kind, Kind::Query(_));
        // What binding has to say is said each time.
        let silent = self.environment.notices.borrow().len() == notices;
        if cacheable
            && short
            && silent
            && !self.has_own_ddl()
            && let Some(binding) = &self.binding
        {
            let text = Arc::clone(&statement.text);
            self.shared.cache.put(text, types, &binding.key, binding.hash, Arc::clone(&statement));
        }
        Ok(statement)
    }

    /// Binds and plans a query that begins at `start` of its text. More parameters than those of `types` may occur if
    /// `infer_params`.
    pub(super) fn bind_query(
        &mut self,
        node: &Node,
        sql: &str,
        types: &[Oid],
        start: usize,
        infer_params: bool,
    ) -> Result<Statement> {
        let catalog = self.catalog();
        let identity = self.environment.identity.borrow().clone();
        let eval = StatementContext::new(&self.environment, Arc::clone(&catalog));
        let mut cx = BindContext::new(Arc::clone(&catalog), identity, &eval, types);
        cx.infer_params = infer_params;
        let bound = bind::bind(node, sql, &mut cx)?;
        let verb = match &bound.statement {
            ir::Statement::Select(_) => Verb::Select,
            ir::Statement::Insert(_) => Verb::Insert,
            ir::Statement::Update(_) => Verb::Update,
            ir::Statement::Delete(_) => Verb::Delete,
        };
        let writes = verb != Verb::Select
            || matches!(&bound.statement, ir::Statement::Select(query) if !query.locking.is_empty());
        let stats = EngineStats { engine: &*self.shared.engine };
        let plan = plan::plan(&bound.statement, &catalog, &stats)?;
        let refused = bound.refused;
        Ok(Statement {
            text: sql.into(),
            start,
            param_types: bound.param_types,
            kind: Kind::Query(Query {
                plan,
                columns: bound.columns.into(),
                locks: bound.tables,
                verb,
                writes,
                refused,
            }),
            // What was bound to definitions that may be rolled back is good for one run.
            catalog_version: if self.has_own_ddl() { u64::MAX } else { catalog.version },
        })
    }

    /// Runs one statement to its end and queues its rows. Answers its tag.
    pub(super) async fn run_statement(
        &mut self,
        statement: &Arc<Statement>,
        params: Vec<Datum>,
        out: &mut dyn Output,
    ) -> Result<Option<String>> {
        Ok(match &statement.kind {
            Kind::Empty => {
                out.empty();
                None
            }
            Kind::Query(_) => {
                let statement = self.begin_query(statement).await?;
                let Kind::Query(query) = &statement.kind else { return Err(Error::internal("not a query")) };
                self.send_notices(out);
                if !query.columns.is_empty() || query.verb == Verb::Select {
                    out.columns(&query.columns);
                }
                let mut execution = self.execution(&query.plan, params);
                let (rows, _) = self.drive(&mut execution, query, 0, out).await?;
                self.keep(execution);
                self.end_query(out);
                Some(query.verb.tag(rows))
            }
            Kind::Utility(node) => {
                let tag = match &**node {
                    Node::TransactionStmt(stmt) => Some(self.transaction_statement(stmt, out).await?.to_string()),
                    // Boxed: the futures of definitions and COPY are large, and this one is moved for every statement.
                    _ => Box::pin(utility::run(self, node, &statement.text, out)).await?,
                };
                self.send_notices(out);
                tag
            }
        })
    }

    /// Checks the block, opens a transaction, locks the tables, starts the command. Answers the statement to run: another
    /// than the given one if definitions changed before its tables were locked.
    pub(super) async fn begin_query(&mut self, statement: &Arc<Statement>) -> Result<Arc<Statement>> {
        self.check_not_failed()?;
        self.ensure_transaction()?;
        let mut statement = Arc::clone(statement);
        loop {
            let Kind::Query(query) = &statement.kind else { return Err(Error::internal("not a query")) };
            if let Some(error) = &query.refused {
                return Err(error.clone());
            }
            if query.writes && self.read_only {
                let what = match query.verb {
                    Verb::Select => "SELECT FOR UPDATE",
                    verb => verb.word(),
                };
                return Err(read_only_error(what));
            }
            for &(table, mode) in &query.locks {
                loop {
                    let txn = self.txn.as_mut().expect("ensured above");
                    match txn.lock_table(table, mode, WaitPolicy::Block)? {
                        Step::Ready(()) => break,
                        Step::Wait(wait) => self.wait_for_lock(wait).await?,
                    }
                }
            }
            // Locked tables keep their definitions; what changed before must be bound anew.
            if query.locks.is_empty()
                || statement.catalog_version == u64::MAX
                || statement.is_current(&*self.shared.engine)
            {
                break;
            }
            statement = self.rebound(&statement)?;
        }
        self.txn.as_mut().expect("ensured above").begin_command();
        Ok(statement)
    }

    /// The statement bound to the definitions of now.
    pub(super) fn rebound(&mut self, statement: &Statement) -> Result<Arc<Statement>> {
        let catalog = self.catalog();
        self.refresh_binding(&catalog);
        let parsed = parse::parse(&statement.text)?;
        let node = parsed.into_iter().find(|p| p.start == statement.start).map(|p| p.node);
        let node = match node {
            Some(Node::PrepareStmt(prepare)) => prepare.query,
            Some(Node::CopyStmt(copy)) => copy.query,
            Some(Node::ExplainStmt(explain)) => explain.query,
            Some(Node::DeclareCursorStmt(declare)) => declare.query,
            node => node,
        };
        let node = node.ok_or_else(|| Error::internal("a statement that is not in its text"))?;
        let fresh = self.bind_query(&node, &statement.text, &statement.param_types, statement.start, true)?;
        statement.check_result_of(&fresh)?;
        Ok(Arc::new(fresh))
    }

    /// Ends the command: notices and the gate of what it saw.
    pub(super) fn end_query(&mut self, out: &mut dyn Output) {
        if let Some(txn) = &mut self.txn {
            txn.end_command();
            self.gate = self.gate.max(txn.gate());
        }
        self.gate = self.gate.max(self.environment.sequence_gate.get());
        out.gate(self.gate);
        self.send_notices(out);
    }

    /// Runs an execution until it is done or `max_rows` (0 = all) rows are out. Answers rows and whether it is done.
    pub(super) async fn drive(
        &mut self,
        execution: &mut Execution,
        query: &Query,
        max_rows: u64,
        out: &mut dyn Output,
    ) -> Result<(u64, bool)> {
        let catalog = self.catalog();
        loop {
            let progress = {
                let eval = StatementContext::new(&self.environment, Arc::clone(&catalog));
                let named = query.columns.iter().any(|column| functions::is_name_in_catalog(column.ty.oid));
                let mut sink =
                    RowsOut { out: &mut *out, columns: &query.columns, settings: &eval.output, eval: &eval, named };
                let host = &self.environment.host;
                let mut cx = ExecCx {
                    txn: &mut **self.txn.as_mut().expect("a running query has a transaction"),
                    eval: &eval,
                    cancel: self.cancel.flag(),
                    now: &|| host.monotonic_nanos(),
                    deadline: self.deadline.get(),
                    memory: &self.shared.memory,
                };
                execution.run(&mut cx, &mut sink, max_rows)?
            };
            match progress {
                Progress::Done { rows } => return Ok((rows, true)),
                Progress::MaxRows { rows } => return Ok((rows, false)),
                Progress::SinkFull => {
                    let gate = self.txn.as_ref().map_or(self.gate, |txn| txn.gate());
                    out.gate(gate);
                    out.flush().await?;
                }
                Progress::Wait(wait) => self.wait_for_lock(wait).await?,
            }
        }
    }

    /// An execution of a plan: one that ran before, if there is one.
    fn execution(&mut self, plan: &Arc<plan::Plan>, params: Vec<Datum>) -> Execution {
        match self.idle.iter().position(|e| Arc::ptr_eq(e.plan(), plan)) {
            Some(at) => {
                let mut execution = self.idle.swap_remove(at);
                execution.reset(params);
                execution
            }
            None => Execution::new(Arc::clone(plan), params),
        }
    }

    /// Keeps a finished execution for the next run of its plan, if it holds little.
    fn keep(&mut self, mut execution: Execution) {
        if execution.retire() {
            if self.idle.len() == IDLE_EXECUTIONS {
                self.idle.remove(0);
            }
            self.idle.push(execution);
        }
    }

    /// Marks the start of a statement: its time, its timeout, no cancellation yet.
    pub(super) fn start_statement(&mut self) {
        let environment = &self.environment;
        environment.statement_start.set(environment.host.now());
        environment.sleep.set(0);
        self.cancel.clear();
        let timeout = environment.settings.borrow().statement_timeout_ms;
        let deadline = if timeout == 0 { 0 } else { environment.host.monotonic_nanos() + timeout * 1_000_000 };
        self.deadline.set(deadline);
    }

    /// Sleeps as long as expressions wish ([`crate::functions::Wish`]), unless the statement is cancelled or times out.
    async fn sleep_as_wished(&self) -> Result<()> {
        /// Long sleeps are taken in parts.
        const LONGEST_MS: u64 = 600_000;
        let now = || self.environment.host.monotonic_nanos();
        let wished = self.environment.sleep.take().max(0).unsigned_abs();
        let end = now().saturating_add(wished.saturating_mul(1_000));
        loop {
            let (time, deadline) = (now(), self.deadline.get());
            if deadline != 0 && time >= deadline {
                return Err(statement_timeout());
            }
            if time >= end {
                return Ok(());
            }
            let until = if deadline == 0 { end } else { end.min(deadline) };
            let mut timer = self.environment.host.sleep((until - time).div_ceil(1_000_000).min(LONGEST_MS));
            poll_fn(|cx| {
                if self.cancel.poll(cx.waker()) {
                    return Poll::Ready(Err(canceled()));
                }
                timer.as_mut().poll(cx).map(Ok)
            })
            .await?;
        }
    }

    /// Waits inside the open transaction, and for what expressions wish; its wait is given up on timeout or cancel.
    pub(super) async fn wait_for_lock(&mut self, wait: Wait) -> Result<()> {
        if self.environment.sleep.get() != 0 {
            Box::pin(self.sleep_as_wished()).await?;
        }
        let result = Box::pin(self.wait(wait)).await;
        if result.is_err()
            && let Some(txn) = &mut self.txn
        {
            txn.cancel_wait();
        }
        result
    }

    /// Awaits `wait`, unless the statement is cancelled or times out first.
    pub(super) async fn wait(&self, mut wait: Wait) -> Result<()> {
        if wait.is_over() {
            // A turn for other connections of this core, not a wait for anything.
            self.environment.host.turn().await;
            return self.check_stop();
        }
        let lock_ms = self.environment.settings.borrow().lock_timeout_ms;
        let statement_ms = match self.deadline.get() {
            0 => None,
            deadline => Some(deadline.saturating_sub(self.environment.host.monotonic_nanos()).div_ceil(1_000_000)),
        };
        let (ms, error): (Option<u64>, fn() -> Error) = match (lock_ms, statement_ms) {
            (0, None) => (None, lock_timeout),
            (0, Some(statement)) => (Some(statement), statement_timeout),
            (lock, Some(statement)) if statement < lock => (Some(statement), statement_timeout),
            (lock, _) => (Some(lock), lock_timeout),
        };
        let mut timer = ms.map(|ms| self.environment.host.sleep(ms));
        poll_fn(|cx| {
            if Pin::new(&mut wait).poll(cx).is_ready() {
                return Poll::Ready(Ok(()));
            }
            if self.cancel.poll(cx.waker()) {
                return Poll::Ready(Err(canceled()));
            }
            match &mut timer {
                Some(timer) => timer.as_mut().poll(cx).map(|()| Err(error())),
                None => Poll::Pending,
            }
        })
        .await
    }

    /// Whether the statement may go on.
    ///
    /// # Errors
    /// 57014 if it was cancelled or its time is over.
    fn check_stop(&self) -> Result<()> {
        if self.cancel.flag().load(Ordering::Acquire) {
            return Err(canceled());
        }
        let deadline = self.deadline.get();
        if deadline != 0 && self.environment.host.monotonic_nanos() >= deadline {
            return Err(statement_timeout());
        }
        Ok(())
    }

    /// Parse: names a statement.
    pub async fn parse(&mut self, name: &str, sql: &str, types: &[Oid]) -> Result<()> {
        let result = self.parse_inner(name, sql, types);
        if result.is_err() {
            self.fail();
        }
        result
    }

    fn parse_inner(&mut self, name: &str, sql: &str, types: &[Oid]) -> Result<()> {
        if !name.is_empty() && self.statements.contains_key(name) {
            return Err(Error::new(
                SqlState::DUPLICATE_PREPARED_STATEMENT,
                format!("prepared statement \"{name}\" already exists"),
            ));
        }
        let statement = self.prepare(sql, types)?;
        if !name.is_empty() {
            self.note_prepared(name, &statement, false);
        }
        self.statements.insert(name.to_string(), statement);
        Ok(())
    }

    /// Shows a new statement in `pg_prepared_statements`.
    pub(super) fn note_prepared(&self, name: &str, statement: &Statement, from_sql: bool) {
        self.environment.prepared.borrow_mut().push(PreparedStatement {
            name: name.to_string(),
            text: Arc::clone(&statement.text),
            time: self.environment.statement_start.get(),
            param_types: statement.param_types.clone(),
            from_sql,
        });
    }

    /// Forgets a prepared statement, or all.
    pub(super) fn forget_prepared(&mut self, name: Option<&str>) {
        match name {
            Some(name) => {
                if self.statements.remove(name).is_some() && !name.is_empty() {
                    self.environment.prepared.borrow_mut().retain(|p| p.name != name);
                }
            }
            None => {
                self.statements.clear();
                self.environment.prepared.borrow_mut().clear();
            }
        }
    }

    /// A statement of the extended protocol or PREPARE, from the cache if it is there.
    pub(super) fn prepare(&mut self, sql: &str, types: &[Oid]) -> Result<Arc<Statement>> {
        self.environment.statement_start.set(self.environment.host.now());
        let catalog = self.catalog();
        self.refresh_binding(&catalog);
        if let (Some(binding), false) = (&self.binding, self.has_own_ddl()) {
            let cache = &self.shared.cache;
            if let Some(statement) = cache.get(sql, types, &binding.key, binding.hash, catalog.version) {
                if !utility::ends_block(&statement.kind) {
                    self.check_not_failed()?;
                }
                return Ok(statement);
            }
        }
        let mut parsed = parse::parse(sql)?;
        match parsed.len() {
            0 => Ok(Arc::new(Statement {
                text: sql.into(),
                start: 0,
                param_types: types.to_vec(),
                kind: Kind::Empty,
                catalog_version: catalog.version,
            })),
            1 => self.prepare_parsed(parsed.remove(0), sql, types, true, true),
            _ => Err(Error::new(SqlState::SYNTAX_ERROR, "cannot insert multiple commands into a prepared statement")),
        }
    }

    /// A prepared statement by name.
    pub(super) fn statement(&self, name: &str) -> Result<Arc<Statement>> {
        self.statements.get(name).cloned().ok_or_else(|| {
            let message = match name {
                "" => "unnamed prepared statement does not exist".to_string(),
                name => format!("prepared statement \"{name}\" does not exist"),
            };
            Error::new(SqlState::INVALID_SQL_STATEMENT_NAME, message)
        })
    }

    /// The statement, bound again if the catalog has moved on.
    pub(super) fn revalidated(&mut self, name: &str) -> Result<Arc<Statement>> {
        let statement = self.statement(name)?;
        let valid = !matches!(statement.kind, Kind::Query(_))
            || (statement.is_valid_for(self.shared.engine.catalog_version()) && !self.has_own_ddl());
        if valid {
            return Ok(statement);
        }
        let fresh = self.prepare(&Arc::clone(&statement.text), &statement.param_types)?;
        statement.check_result_of(&fresh)?;
        self.statements.insert(name.to_string(), Arc::clone(&fresh));
        Ok(fresh)
    }

    /// Bind: makes a portal.
    pub fn bind(&mut self, portal: &str, name: &str, values: &[BoundValue<'_>]) -> Result<()> {
        let result = self.bind_inner(portal, name, values);
        if result.is_err() {
            self.fail();
        }
        result
    }

    fn bind_inner(&mut self, portal: &str, name: &str, values: &[BoundValue<'_>]) -> Result<()> {
        self.start_statement();
        let statement = self.statement(name)?;
        if self.block == Block::Failed && !utility::ends_block(&statement.kind) {
            self.check_not_failed()?;
        }
        let statement = if self.block == Block::Failed { statement } else { self.revalidated(name)? };
        if values.len() != statement.param_types.len() {
            return Err(Error::new(
                SqlState::PROTOCOL_VIOLATION,
                format!(
                    "bind message supplies {} parameters, but prepared statement \"{name}\" requires {}",
                    values.len(),
                    statement.param_types.len()
                ),
            ));
        }
        if !portal.is_empty() && self.portals.contains_key(portal) {
            return Err(Error::new(SqlState::DUPLICATE_CURSOR, format!("cursor \"{portal}\" already exists")));
        }
        let mut params = Vec::with_capacity(values.len());
        {
            let settings = self.environment.settings.borrow();
            let input =
                InputContext { settings: settings.output(), now_micros: self.environment.transaction_start.get() };
            for (value, &ty) in values.iter().zip(&statement.param_types) {
                params.push(match value {
                    BoundValue::Null => Datum::Null,
                    BoundValue::Text(bytes) if functions::is_name_in_catalog(ty) => {
                        let text = utf8(bytes)?;
                        let eval = StatementContext::new(&self.environment, self.catalog());
                        match functions::from_name_in_catalog(&eval, ty, text) {
                            Some(value) => value?,
                            None => types::parse_text(ty, -1, text, &input)?,
                        }
                    }
                    BoundValue::Text(bytes) => types::parse_text(ty, -1, utf8(bytes)?, &input)?,
                    BoundValue::Binary(bytes) => types::read_binary(ty, -1, bytes)?,
                });
            }
        }
        let portal_state = Portal { statement, params, execution: None, ahead: Vec::new(), finished: false };
        self.portals.insert(portal.to_string(), portal_state);
        Ok(())
    }

    /// Result columns; those of EXECUTE are its statement's.
    fn columns_of(&self, statement: &Statement) -> Option<Arc<[ResultColumn]>> {
        if let Kind::Utility(node) = &statement.kind
            && let Node::ExecuteStmt(execute) = &**node
        {
            let prepared = self.statements.get(execute.name.as_deref().unwrap_or_default())?;
            return prepared.columns();
        }
        if let Kind::Utility(node) = &statement.kind
            && let Node::FetchStmt(fetch) = &**node
        {
            return match fetch.ismove {
                true => None,
                false => self.portals.get(fetch.portalname.as_deref().unwrap_or_default())?.statement.columns(),
            };
        }
        statement.columns()
    }

    /// Describe of a statement: parameter types and result columns.
    pub fn describe_statement(&mut self, name: &str) -> Result<(Vec<Oid>, Option<Arc<[ResultColumn]>>)> {
        let result = self.statement(name).map(|s| (s.param_types.clone(), self.columns_of(&s)));
        if result.is_err() {
            self.fail();
        }
        result
    }

    /// Describe of a portal: result columns.
    pub fn describe_portal(&mut self, name: &str) -> Result<Option<Arc<[ResultColumn]>>> {
        match self.portals.get(name) {
            Some(portal) => Ok(self.columns_of(&portal.statement)),
            None => {
                self.fail();
                Err(no_portal(name))
            }
        }
    }

    /// Execute: runs a portal, at most `max_rows` rows (0 = all).
    pub async fn execute(&mut self, name: &str, max_rows: u64, out: &mut dyn Output) -> Result<ExecuteEnd> {
        let result = self.execute_inner(name, max_rows, out).await;
        if result.is_err() {
            self.undo_ahead(true).await;
            self.fail();
            self.send_notices(out);
            out.gate(self.gate);
        }
        result
    }

    async fn execute_inner(&mut self, name: &str, max_rows: u64, out: &mut dyn Output) -> Result<ExecuteEnd> {
        let mut portal = self.portals.remove(name).ok_or_else(|| no_portal(name))?;
        let mut statement = Arc::clone(&portal.statement);
        match &statement.kind {
            Kind::Query(_) => {}
            Kind::Empty => {
                out.empty();
                return Ok(ExecuteEnd::Complete);
            }
            Kind::Utility(_) => {
                if let Some(tag) = Box::pin(self.run_statement(&statement, Vec::new(), out)).await? {
                    out.complete(&tag);
                }
                return Ok(ExecuteEnd::Complete);
            }
        }
        if portal.finished {
            if let Kind::Query(query) = &statement.kind {
                out.complete(&query.verb.tag(0));
            }
            self.portals.insert(name.to_string(), portal);
            return Ok(ExecuteEnd::Complete);
        }
        let execution = portal.execution.take();
        if execution.is_none() {
            statement = self.begin_query(&statement).await?;
        }
        let Kind::Query(query) = &statement.kind else { return Err(Error::internal("not a query")) };
        let mut execution =
            execution.unwrap_or_else(|| Execution::new(Arc::clone(&query.plan), std::mem::take(&mut portal.params)));
        let max_rows = if query.columns.is_empty() { 0 } else { max_rows };
        let (rows, done) = self.drive(&mut execution, query, max_rows, out).await?;
        if done {
            self.keep(execution);
            self.end_query(out);
            portal.finished = true;
            out.complete(&query.verb.tag(rows));
            self.portals.insert(name.to_string(), portal);
            return Ok(ExecuteEnd::Complete);
        }
        self.gate = self.gate.max(self.txn.as_ref().map_or(self.gate, |txn| txn.gate()));
        out.gate(self.gate);
        portal.execution = Some(execution);
        self.portals.insert(name.to_string(), portal);
        out.suspended();
        Ok(ExecuteEnd::Suspended)
    }

    /// Close of a statement; unknown names are fine.
    pub fn close_statement(&mut self, name: &str) {
        self.forget_prepared(Some(name));
    }

    /// Close of a portal; unknown names are fine.
    pub fn close_portal(&mut self, name: &str) {
        self.portals.remove(name);
    }

    /// Sync: ends the implicit transaction of the pipeline.
    pub async fn sync(&mut self, out: &mut dyn Output) -> Result<()> {
        let result = match self.block {
            Block::None => self.commit_transaction(out).await,
            _ => Ok(()),
        };
        self.finish_message(result, out)
    }
}

/// What the planner asks about tables.
struct EngineStats<'a> {
    engine: &'a dyn engine_api::Engine,
}

impl plan::PlannerStats for EngineStats<'_> {
    fn row_count(&self, table: Oid) -> u64 {
        self.engine.row_count(table)
    }
}

/// Text of a client: must be UTF-8.
pub(super) fn utf8(bytes: &[u8]) -> Result<&str> {
    let text = std::str::from_utf8(bytes).map_err(|e| {
        let bad = &bytes[e.valid_up_to()..];
        let len = e.error_len().unwrap_or(bad.len()).min(4);
        let shown: Vec<String> = bad[..len].iter().map(|b| format!("0x{b:02x}")).collect();
        Error::new(
            SqlState::CHARACTER_NOT_IN_REPERTOIRE,
            format!("invalid byte sequence for encoding \"UTF8\": {}", shown.join(" ")),
        )
    })?;
    if text.as_bytes().contains(&0) {
        return Err(Error::new(
            SqlState::CHARACTER_NOT_IN_REPERTOIRE,
            "invalid byte sequence for encoding \"UTF8\": 0x00",
        ));
    }
    Ok(text)
}

pub(super) fn read_only_error(what: &str) -> Error {
    Error::new(SqlState::READ_ONLY_SQL_TRANSACTION, format!("cannot execute {what} in a read-only transaction"))
}

fn no_portal(name: &str) -> Error {
    Error::new(SqlState::INVALID_CURSOR_NAME, format!("portal \"{name}\" does not exist"))
}

fn canceled() -> Error {
    Error::new(SqlState::QUERY_CANCELED, "canceling statement due to user request")
}

fn lock_timeout() -> Error {
    Error::new(SqlState::LOCK_NOT_AVAILABLE, "canceling statement due to lock timeout")
}

fn statement_timeout() -> Error {
    Error::new(SqlState::QUERY_CANCELED, "canceling statement due to statement timeout")
}
