//! The extended protocol's verbs: Parse, Bind, Describe, Execute, Close, Sync.

use std::sync::Arc;

use base::{Error, Oid, Result, SqlState, work};
use rupg_sql::nodes::Node;
use smallvec::SmallVec;
use sql_functions as functions;
use sql_parse::metrics;
use types::encoding::{Conversion, recode_binary, utf8_text as utf8};
use types::{Datum, InputContext, oid};

use super::context::StatementContext;
use super::counts::Said;
use super::portal::{Passing, Portal};
use super::statement::{Statement, StatementBody};
use super::{Block, Output, ResultColumn, Session, cursor, utility};

/// How an Execute ended.
#[derive(Debug, PartialEq, Eq)]
pub enum ExecuteEnd {
    /// The statement is complete (its tag is queued).
    Complete,
    /// The row limit was reached.
    Suspended,
}

/// The forms in which a portal's columns are wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResultFormats {
    /// All alike: whether in binary form.
    Uniform(bool),
    /// For each column, whether in binary form.
    Each(SmallVec<[bool; 16]>),
}

impl ResultFormats {
    /// Text for all, as in the simple protocol.
    pub const TEXT: ResultFormats = ResultFormats::Uniform(false);

    /// Binary for all, as FETCH of a BINARY cursor.
    pub const BINARY: ResultFormats = ResultFormats::Uniform(true);

    /// Whether a column is wanted in binary form; one past the end is not.
    #[inline]
    pub fn is_binary(&self, column: usize) -> bool {
        match self {
            ResultFormats::Uniform(binary) => *binary,
            ResultFormats::Each(columns) => columns.get(column).copied().unwrap_or_default(),
        }
    }

    /// How many columns they are for, if not for any number.
    fn count(&self) -> Option<usize> {
        match self {
            ResultFormats::Uniform(_) => None,
            ResultFormats::Each(columns) => Some(columns.len()),
        }
    }
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

impl Session {
    /// Parse: names a statement.
    pub async fn parse(&mut self, name: &str, sql: &str, types: &[Oid]) -> Result<()> {
        let result = self.parse_inner(name, sql, types).await;
        if let Err(error) = &result {
            metrics::count_error(error.code());
            self.fail();
            if name.is_empty() {
                // The one before was gone when this one began.
                self.forget_prepared(Some(""));
            }
        }
        result
    }

    async fn parse_inner(&mut self, name: &str, sql: &str, types: &[Oid]) -> Result<()> {
        self.continue_statement()?;
        if !name.is_empty() && self.statements.contains_key(name) {
            return Err(Error::new(
                SqlState::DUPLICATE_PREPARED_STATEMENT,
                format!("prepared statement \"{name}\" already exists"),
            ));
        }
        let sql = &*self.conforming(sql)?;
        let mut statement = self.prepare(sql, types)?;
        if self.may_be_locked(&statement) {
            statement = Box::pin(self.parse_behind_locks(statement, sql, types)).await?;
        }
        self.keep_statement(name, Arc::clone(&statement))?;
        if !name.is_empty() {
            self.note_prepared(name, &statement, false);
        }
        Ok(())
    }

    /// Whether somebody may be changing a table of a query.
    fn may_be_locked(&self, statement: &Statement) -> bool {
        let StatementBody::Query(query) = &statement.kind else { return false };
        query.locks.iter().any(|(table, _)| self.shared.engine.may_be_locked(*table))
    }

    /// A query over tables that others have locked waits for them when it is parsed, so that what Describe says of it is what
    /// Execute does.
    async fn parse_behind_locks(
        &mut self,
        mut statement: Arc<Statement>,
        sql: &str,
        types: &[Oid],
    ) -> Result<Arc<Statement>> {
        self.ensure_transaction()?;
        loop {
            let StatementBody::Query(query) = &statement.kind else { return Ok(statement) };
            self.lock_tables(&query.locks).await?;
            if statement.version() == u64::MAX || statement.is_current(&*self.shared.engine, &self.shared.changes) {
                return Ok(statement);
            }
            statement = self.prepare(sql, types)?;
        }
    }

    /// Bind: makes a portal whose columns are wanted in `formats`, and answers true. `at_once`: if that would be more than reading the values, nothing is done, and the
    /// answer is false.
    ///
    /// # Errors
    /// Those of the values, and of a statement that must be bound anew.
    pub fn bind<'v>(
        &mut self,
        portal: &str,
        name: &str,
        values: impl ExactSizeIterator<Item = BoundValue<'v>>,
        formats: ResultFormats,
        at_once: bool,
    ) -> Result<bool> {
        let result = self.bind_inner(portal, name, values, formats, at_once);
        if let Err(error) = &result {
            metrics::count_error(error.code());
            self.fail();
        }
        result
    }

    fn bind_inner<'v>(
        &mut self,
        portal: &str,
        name: &str,
        values: impl ExactSizeIterator<Item = BoundValue<'v>>,
        formats: ResultFormats,
        at_once: bool,
    ) -> Result<bool> {
        if at_once && self.portals.get(portal).is_some_and(Portal::holds_values) {
            return Ok(false);
        }
        self.continue_statement()?;
        let statement = self.statement(name)?;
        self.begins(&statement.text);
        if self.block == Block::Failed
            && (matches!(statement.kind, StatementBody::Empty) || !utility::ends_block(&statement.kind))
        {
            self.check_not_failed()?;
        }
        let is_good = self.block == Block::Failed || self.is_good(&statement);
        if at_once && !is_good {
            return Ok(false);
        }
        let statement = if is_good { statement } else { self.bound_anew(name, statement)? };
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
        if !portal.is_empty() && self.portals.contains(portal) {
            return Err(Error::new(SqlState::DUPLICATE_CURSOR, format!("cursor \"{portal}\" already exists")));
        }
        let mut params = std::mem::take(&mut self.spare_params);
        params.reserve_exact(values.len());
        {
            let settings = self.environment.settings.borrow();
            let input =
                InputContext { settings: settings.output(), now_micros: self.environment.transaction_start.get() };
            for (value, &ty) in values.zip(&statement.param_types) {
                if let BoundValue::Text(bytes) = value
                    && let Some(value) = types::plain_int(ty, bytes)
                {
                    params.push(value);
                    continue;
                }
                let read = || match &value {
                    BoundValue::Null => Ok(Datum::Null),
                    BoundValue::Text(bytes) if functions::is_name_in_catalog(ty) => {
                        let text = utf8(bytes)?;
                        let eval = StatementContext::new(&self.environment, self.catalog());
                        functions::from_name_in_catalog(&eval, ty, text)
                    }
                    BoundValue::Text(bytes) if bytes.len() >= types::LONG => long_text(ty, bytes, &input),
                    BoundValue::Text(bytes) => types::parse_text(ty, -1, utf8(bytes)?, &input),
                    BoundValue::Binary(bytes) => match settings.conversion() {
                        None => types::read_binary(ty, -1, bytes),
                        Some(conversion) => read_binary_in(conversion, ty, bytes),
                    },
                };
                params.push(read().map_err(|error| in_parameter(error, portal, params.len(), &value))?);
            }
        }
        self.remove_portal(portal);
        if let Some(given) = formats.count()
            && let Some(columns) = self.columns_of(&statement).map(|columns| columns.len())
            && columns != given
        {
            let message = format!("bind message has {given} result formats but query has {columns} columns");
            return Err(Error::new(SqlState::PROTOCOL_VIOLATION, message));
        }
        let level = self.savepoints.len();
        let mut opened = Portal::new(statement, params, level);
        opened.formats = formats;
        self.add_portal(portal, opened)?;
        Ok(true)
    }

    /// In which formats the client wants a portal's columns; texts, if there is no such portal.
    #[inline]
    pub fn formats_of(&self, portal: &str) -> ResultFormats {
        match self.portals.get(portal).map(|portal| &portal.formats) {
            None => ResultFormats::TEXT,
            Some(ResultFormats::Uniform(binary)) => ResultFormats::Uniform(*binary),
            Some(each) => each.clone(),
        }
    }

    /// Result columns; those of EXECUTE are its statement's.
    fn columns_of(&self, statement: &Statement) -> Option<Arc<[ResultColumn]>> {
        if let StatementBody::Utility(node) = &statement.kind
            && let Node::ExecuteStmt(execute) = &**node
        {
            let prepared = self.statements.get(execute.name.as_deref().unwrap_or_default())?;
            return prepared.columns();
        }
        if let StatementBody::Utility(node) = &statement.kind
            && let Node::FetchStmt(fetch) = &**node
        {
            return cursor::columns(self, fetch);
        }
        statement.columns()
    }

    /// Describe of a statement: parameter types and result columns.
    pub fn describe_statement(&mut self, name: &str) -> Result<(Vec<Oid>, Option<Arc<[ResultColumn]>>)> {
        let result = self.statement(name).and_then(|s| {
            let columns = self.columns_of(&s);
            if columns.is_some() {
                self.check_not_failed()?;
            }
            Ok((s.param_types.clone(), columns))
        });
        if result.is_err() {
            self.fail();
        }
        result
    }

    /// Describe of a portal: result columns.
    pub fn describe_portal(&mut self, name: &str) -> Result<Option<Arc<[ResultColumn]>>> {
        let found = self.portals.get(name).map(|portal| self.columns_of(&portal.statement));
        let returns_rows = |columns: &Option<Arc<[ResultColumn]>>| columns.is_some();
        let ended = self.ended_portals.iter().find(|(ended, _)| ended == name).map(|(_, returns_rows)| *returns_rows);
        let result = match (found, ended) {
            (Some(columns), _) if self.block == Block::Failed && returns_rows(&columns) => {
                self.check_not_failed().map(|()| None)
            }
            (Some(columns), _) => Ok(columns),
            (None, Some(true)) => self.check_not_failed().map(|()| None),
            (None, Some(false)) => Ok(None),
            (None, None) => Err(no_portal(name)),
        };
        if result.is_err() {
            self.fail();
        }
        result
    }

    /// In a failed block nothing runs but what ends it.
    #[cold]
    fn check_runs_in_failed_block(&self, name: &str) -> Result<()> {
        match self.portals.get(name) {
            Some(portal) if utility::ends_block(&portal.statement.kind) => Ok(()),
            None if !self.ended_portals.iter().any(|(ended, _)| ended == name) => Err(no_portal(name)),
            _ => self.check_not_failed(),
        }
    }

    /// Execute: runs a portal, at most `max_rows` rows (0 = all).
    pub async fn execute(&mut self, name: &str, max_rows: u64, out: &mut dyn Output) -> Result<ExecuteEnd> {
        let returns_rows = match self.block {
            Block::None => None,
            _ => self.portals.get(name).map(|portal| portal.statement.columns().is_some()),
        };
        let result = match self.continue_timer() {
            Ok(()) => self.execute_inner(name, max_rows, out).await,
            Err(error) => Err(error),
        };
        if let Ok(ExecuteEnd::Complete) = &result {
            self.end_timer();
        }
        if let Err(error) = &result {
            metrics::count_error(error.code());
            self.undo_ahead(true).await;
            self.fail();
            // One that was taken out to run is among those that the error has ended.
            if let (Some(returns_rows), Block::Failed) = (returns_rows, self.block)
                && !self.ended_portals.iter().any(|(ended, _)| ended == name)
            {
                self.ended_portals.push((name.to_owned(), returns_rows));
            }
            self.send_notices(out);
            out.gate(self.gate);
        }
        result
    }

    async fn execute_inner(&mut self, name: &str, max_rows: u64, out: &mut dyn Output) -> Result<ExecuteEnd> {
        self.implicit_block = false;
        if self.block == Block::Failed {
            self.check_runs_in_failed_block(name)?;
        }
        let mut portal = self.portals.remove(name).ok_or_else(|| no_portal(name))?;
        if portal.is_cursor() || (max_rows > 0 && portal.is_change()) {
            // Boxed, for this future is moved for every Execute.
            return Box::pin(self.execute_cursor(name, portal, max_rows, out)).await;
        }
        let mut statement = Arc::clone(&portal.statement);
        match &statement.kind {
            StatementBody::Query(_) => {}
            StatementBody::Empty => {
                out.empty();
                return Ok(ExecuteEnd::Complete);
            }
            StatementBody::Utility(_) => {
                let params = portal.params.clone();
                let said = Said::Execute { portal: name, statement: &portal.statement };
                if let Some(tag) = Box::pin(self.run_statement(&statement, params, said, out)).await? {
                    self.follow_encoding(out);
                    out.complete(&tag);
                }
                self.gate = self.current_gate();
                out.gate(self.gate);
                return Ok(ExecuteEnd::Complete);
            }
        }
        if portal.finished {
            if let StatementBody::Query(query) = &statement.kind {
                out.complete_rows(query.verb, 0);
            }
            self.put_portal_back(name, portal);
            return Ok(ExecuteEnd::Complete);
        }
        let execution = portal.execution.take();
        match &execution {
            None => statement = self.begin_query(&statement).await?,
            // What the client cancelled between two Executes is not this one.
            Some(_) => {
                self.continue_statement()?;
                if let (Some(txn), Some(view)) = (&mut self.txn, &portal.view) {
                    txn.resume_command(view);
                }
            }
        }
        let StatementBody::Query(query) = &statement.kind else { return Err(Error::internal("not a query")) };
        let mut execution = match execution {
            Some(execution) => execution,
            None if query.plan.depends_on_values() => {
                let plan = self.plan_for_values(&statement, &portal.params)?;
                self.execution(&plan, std::mem::take(&mut portal.params))
            }
            None => self.execution(&query.plan, std::mem::take(&mut portal.params)),
        };
        let max_rows = if query.columns.is_empty() { 0 } else { max_rows };
        let (rows, done) = self.drive(&mut execution, query, max_rows, out).await?;
        if done {
            self.end_query(out);
            let said = Said::Execute { portal: name, statement: &portal.statement };
            self.count_query(&statement, query, rows, said, &execution);
            self.shared.idle.keep(execution);
            portal.finished = true;
            out.complete_rows(query.verb, rows);
            self.put_portal_back(name, portal);
            return Ok(ExecuteEnd::Complete);
        }
        if portal.view.is_none() {
            portal.view = self.txn.as_mut().map(|txn| txn.keep_view());
        }
        self.end_query(out);
        portal.execution = Some(execution);
        self.put_portal_back(name, portal);
        out.suspended();
        Ok(ExecuteEnd::Suspended)
    }

    /// Execute of a portal that keeps its rows: a cursor, or a change with RETURNING that is read in parts.
    async fn execute_cursor(
        &mut self,
        name: &str,
        mut portal: Box<Portal>,
        max_rows: u64,
        out: &mut dyn Output,
    ) -> Result<ExecuteEnd> {
        let result = self.pass_on(name, &mut portal, max_rows, out).await;
        let statement = Arc::clone(&portal.statement);
        self.put_portal_back(name, portal);
        let rows = result?;
        self.end_query(out);
        let StatementBody::Query(query) = &statement.kind else { return Err(Error::internal("not a query")) };
        if max_rows > 0 && rows == max_rows {
            out.suspended();
            return Ok(ExecuteEnd::Suspended);
        }
        out.complete_rows(query.verb, rows);
        Ok(ExecuteEnd::Complete)
    }

    async fn pass_on(&mut self, name: &str, portal: &mut Portal, max_rows: u64, out: &mut dyn Output) -> Result<u64> {
        self.continue_statement()?;
        self.check_not_failed()?;
        self.ensure_transaction()?;
        if portal.is_change() {
            if !portal.finished {
                self.run_change(portal).await?;
            }
        } else {
            self.start_portal(portal).await?;
        }
        let direction = super::portal::Direction::Forward((max_rows > 0).then_some(max_rows));
        self.move_portal(name, portal, direction, &mut Passing::Sent(out)).await
    }

    /// Close of a statement; unknown names are fine.
    pub fn close_statement(&mut self, name: &str) {
        self.forget_prepared(Some(name));
    }

    /// Close of a portal; unknown names are fine.
    pub fn close_portal(&mut self, name: &str) {
        self.remove_portal(name);
        self.ended_portals.retain(|(ended, _)| ended != name);
    }

    /// Whether the end of the transaction has checks to make that statements have deferred.
    pub fn has_deferred_checks(&self) -> bool {
        !self.environment.deferred.borrow().is_untouched()
    }

    /// Sync: ends the implicit transaction of the pipeline.
    pub async fn sync(&mut self, out: &mut dyn Output) -> Result<()> {
        let in_time = match self.environment.stop.deadline() {
            0 => Ok(()),
            _ => self.continue_timer(),
        };
        let result = match (in_time, self.block) {
            (Ok(()), Block::None) => self.commit_transaction(out).await,
            (in_time, _) => in_time,
        };
        self.finish_message(result, out)
    }
}

/// A binary value whose texts are in the client's encoding.
#[cold]
pub(super) fn read_binary_in(conversion: &Conversion, ty: Oid, bytes: &[u8]) -> Result<Datum> {
    let convert = |text: &[u8]| conversion.decoded(text).map(String::into_bytes);
    let converted = recode_binary(ty, bytes, &convert)?;
    types::read_binary(ty, -1, converted.as_deref().unwrap_or(bytes))
}

/// A value of a long text, which another thread looks through.
#[cold]
fn long_text(ty: Oid, bytes: &[u8], input: &InputContext<'_>) -> Result<Datum> {
    types::room::ask(bytes.len())?;
    let mut copy = Vec::new();
    work::append(&mut copy, bytes);
    let text = work::elsewhere(move || utf8(&copy).map(str::to_owned))??;
    match ty {
        oid::TEXT | oid::VARCHAR | oid::BPCHAR | oid::UNKNOWN => Ok(Datum::from(text)),
        ty => types::parse_text(ty, -1, &text, input),
    }
}

/// An error of a parameter says which one; what it was is said when it could be read as text.
#[cold]
fn in_parameter(error: Error, portal: &str, number: usize, value: &BoundValue<'_>) -> Error {
    let portal = if portal.is_empty() { "unnamed portal".to_owned() } else { format!("portal \"{portal}\"") };
    let shown = match value {
        BoundValue::Text([]) => " = ''",
        BoundValue::Text(bytes) if utf8(bytes).is_ok() => " = '...'",
        _ => "",
    };
    let mut error = error;
    if error.fields().message == types::LEFT_OVER {
        error.fields_mut().message = format!("{} in bind parameter {}", types::LEFT_OVER, number + 1);
    }
    error.context(format!("{portal} parameter ${}{shown}", number + 1))
}

fn no_portal(name: &str) -> Error {
    Error::new(SqlState::INVALID_CURSOR_NAME, format!("portal \"{name}\" does not exist"))
}
