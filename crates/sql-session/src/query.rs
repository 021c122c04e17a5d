//! Running statements: the simple protocol, and the loop that drives an execution.

use std::borrow::Cow;
use std::sync::Arc;

use base::{Error, Oid, Result, SqlState, work};
use engine_api::{Isolation, Persistence, Step, TableLockMode, Txn, WaitPolicy};
use rupg_sql::nodes::Node;
use sql_exec::Execution;
use sql_parse as parse;
use sql_parse::metrics;
use sql_plan as plan;
use types::Datum;

use super::counts::Said;
use super::statement::{Query, Statement, StatementBody, Verb};
use super::{Arguments, Block, Output, Session, utility};

/// Units of work of a statement of a message beside what it counts itself.
const UNITS_PER_STATEMENT: usize = 1 << 12;

/// Parameters that memory is kept for, from one statement to the next.
const SPARE_PARAMS_MAX: usize = 64;

impl Session {
    /// Runs every statement of a simple query. An error has been applied to the transaction block when it is returned.
    pub async fn simple_query(&mut self, sql: &str, out: &mut dyn Output) -> Result<()> {
        let result = self.simple_query_inner(sql, out).await;
        if result.is_err() {
            self.undo_ahead(true).await;
        }
        self.finish_message(result, out)
    }

    pub(super) fn finish_message(&mut self, result: Result<()>, out: &mut dyn Output) -> Result<()> {
        if let Err(error) = &result {
            metrics::count_error(error.code());
            self.fail();
        }
        self.end_timer();
        self.gate = self.current_gate();
        self.send_notices(out);
        self.follow_settings();
        self.note_idle();
        // Behind an error they are told of when it has been.
        if result.is_ok() {
            self.send_parameters(out);
        }
        out.gate(self.gate);
        if self.is_listening() && result.is_ok() {
            return self.send_notifications(out);
        }
        result
    }

    /// A text of the client's as one whose plain strings have no escapes. What there is to warn of is said.
    pub(super) fn conforming<'a>(&self, sql: &'a str) -> Result<Cow<'a, str>> {
        let backslashes = self.environment.settings.borrow().backslashes();
        if backslashes.are_usual() {
            return Ok(Cow::Borrowed(sql));
        }
        let (text, warnings) = parse::conforming(sql, backslashes);
        self.environment.notices.borrow_mut().extend(warnings);
        text
    }

    async fn simple_query_inner(&mut self, sql: &str, out: &mut dyn Output) -> Result<()> {
        self.start_statement();
        self.implicit_block = false;
        let sql = &*self.conforming(sql)?;
        self.send_notices(out);
        self.begins(sql);
        // What has no name is gone: the statement at once, the portal when another takes its place, which needs a statement that
        // means something.
        if !self.statements.is_empty() {
            self.forget_prepared(Some(""));
        }
        if let Some((statement, params)) = self.cached_simple(sql)? {
            self.remove_portal("");
            let tag = self.run_statement(&statement, params, Said::Simple(sql), out).await?;
            return self.conclude(tag, true, out).await;
        }
        let (parsed, notices) = parse::parse_with_notices(sql)?;
        // What there is to say of a text is said each time: it is not cached.
        let silent = notices.is_empty();
        self.environment.notices.borrow_mut().extend(notices);
        if parsed.is_empty() {
            out.empty();
            return Ok(());
        }
        let several = parsed.len() > 1;
        self.implicit_block = several;
        if several {
            let message = types::copied(sql);
            self.message = Some(Arc::clone(&message));
            let result = self.run_parsed(parsed, &message, silent, out).await;
            self.message = None;
            return result;
        }
        self.run_parsed(parsed, sql, silent, out).await
    }

    /// Runs the statements of a message.
    async fn run_parsed(
        &mut self,
        parsed: Vec<parse::ParsedStatement>,
        sql: &str,
        silent: bool,
        out: &mut dyn Output,
    ) -> Result<()> {
        let count = parsed.len();
        let several = count > 1;
        for (i, one) in parsed.into_iter().enumerate() {
            if i > 0 {
                work::step(UNITS_PER_STATEMENT)?;
                self.start_statement();
            }
            let last_of_block = !several && silent;
            let statement = self.prepare_parsed(one, sql, &[], false, last_of_block)?;
            self.remove_portal("");
            if several && !matches!(self.block, Block::Failed) {
                // All statements of one message are one implicit block until something ends it.
                self.ensure_transaction()?;
            }
            let tag = self.run_statement(&statement, Vec::new(), Said::Simple(sql), out).await?;
            self.conclude(tag, i + 1 == count, out).await?;
        }
        Ok(())
    }

    /// The text of a statement to keep: the statements of one message share theirs.
    pub(super) fn text_of(&self, sql: &str) -> Arc<str> {
        match &self.message {
            Some(message) if std::ptr::eq(&**message, sql) => Arc::clone(message),
            _ => types::copied(sql),
        }
    }

    /// Queues a statement's tag; behind the last one of a message outside of a block, the commit comes first, so that a
    /// commit that fails is not announced as a success.
    async fn conclude(&mut self, tag: Option<String>, last: bool, out: &mut dyn Output) -> Result<()> {
        if last && self.block == Block::None {
            self.commit_transaction(out).await?;
        }
        if !last {
            self.follow_encoding(out);
        }
        if let Some(tag) = tag {
            out.complete(&tag);
        }
        Ok(())
    }

    /// Runs one statement to its end and queues its rows. Answers its tag.
    pub(super) async fn run_statement(
        &mut self,
        statement: &Arc<Statement>,
        params: Vec<Datum>,
        said: Said<'_>,
        out: &mut dyn Output,
    ) -> Result<Option<String>> {
        Ok(match &statement.kind {
            StatementBody::Empty => {
                out.empty();
                None
            }
            StatementBody::Query(_) => {
                let statement = self.begin_query(statement).await?;
                let StatementBody::Query(query) = &statement.kind else { return Err(Error::internal("not a query")) };
                self.send_notices(out);
                if !query.columns.is_empty() || query.verb == Verb::Select {
                    out.columns(&query.columns);
                }
                let other;
                let plan = if query.plan.depends_on_values() {
                    other = self.plan_for_values(&statement, &params)?;
                    &other
                } else {
                    &query.plan
                };
                let mut execution = self.execution(plan, params);
                let (rows, _) = self.drive(&mut execution, query, 0, out).await?;
                self.end_query(out);
                self.count_query(&statement, query, rows, said, &execution);
                self.shared.idle.keep(execution);
                Some(query.verb.tag(rows))
            }
            StatementBody::Utility(node) => {
                self.statement_at = statement.start;
                let tag = match &**node {
                    Node::TransactionStmt(stmt) => Some(self.transaction_statement(stmt, out).await?.to_string()),
                    _ => {
                        self.arguments = Arguments { types: statement.param_types.clone(), values: params };
                        // Boxed: the futures of definitions and COPY are large, and this one is moved for every statement.
                        let tag = Box::pin(utility::run(self, node, &statement.text, out)).await;
                        self.arguments = Arguments::default();
                        tag?
                    }
                };
                self.send_notices(out);
                self.count_utility(node, statement, tag.as_deref(), said);
                tag
            }
        })
    }

    /// Checks the block, opens a transaction, locks the tables, starts the command. Answers the statement to run: another
    /// than the given one if definitions changed before its tables were locked.
    pub(super) async fn begin_query(&mut self, statement: &Arc<Statement>) -> Result<Arc<Statement>> {
        self.check_not_failed()?;
        self.ensure_transaction()?;
        self.has_queried = true;
        let mut statement = Arc::clone(statement);
        loop {
            let StatementBody::Query(query) = &statement.kind else { return Err(Error::internal("not a query")) };
            if query.role != self.who().role {
                statement = self.rebound(&statement)?;
                continue;
            }
            if let Some(error) = &query.refused {
                return Err(error.clone());
            }
            if query.writes && self.is_read_only() && !self.writes_temporary_only(query) {
                let what = match query.verb {
                    Verb::Select => query.lock_words.unwrap_or("SELECT"),
                    verb => verb.word(),
                };
                return Err(read_only_error(what));
            }
            self.lock_tables(&query.locks).await?;
            if query.sequences.iter().any(|sequence| self.shared.engine.may_be_locked(*sequence)) {
                Box::pin(self.await_sequences(&query.sequences)).await?;
            }
            // Locked tables keep their definitions; what changed before must be bound anew.
            if query.locks.is_empty()
                || statement.version() == u64::MAX
                || statement.is_current(&*self.shared.engine, &self.shared.changes)
            {
                break;
            }
            statement = self.rebound(&statement)?;
        }
        if self.awaits_snapshot() {
            Box::pin(self.await_safe_snapshot()).await?;
        }
        self.txn.as_mut().expect("ensured above").begin_command();
        Ok(statement)
    }

    /// Whether the transaction has to wait for its snapshot ([`Session::await_safe_snapshot`]): it is READ ONLY and DEFERRABLE, and has none yet.
    #[inline]
    pub(super) fn awaits_snapshot(&self) -> bool {
        self.is_read_only() && self.awaits_safe_snapshot()
    }

    #[cold]
    fn awaits_safe_snapshot(&self) -> bool {
        let is_new = |txn: &dyn Txn| txn.isolation() == Isolation::Serializable && !txn.has_view();
        let settings = self.environment.settings.borrow();
        self.txn.as_deref().is_some_and(is_new) && settings.show("transaction_deferrable").as_deref() == Some("on")
    }

    /// Waits for a snapshot that cannot become part of an anomaly.
    pub(super) async fn await_safe_snapshot(&mut self) -> Result<()> {
        loop {
            match self.transaction().await_safe_snapshot() {
                Step::Ready(()) => return Ok(()),
                Step::Wait(wait) => self.wait(wait).await?,
            }
        }
    }

    /// Waits for those who change the sequences that a query draws from, by locking them, which nobody else has to.
    #[cold]
    pub(super) async fn await_sequences(&mut self, sequences: &[Oid]) -> Result<()> {
        let locks: Vec<_> = sequences.iter().map(|&sequence| (sequence, TableLockMode::RowExclusive)).collect();
        self.lock_tables(&locks).await
    }

    /// Locks the tables of a query. REQUIRES a transaction.
    pub(super) async fn lock_tables(&mut self, locks: &[(Oid, TableLockMode)]) -> Result<()> {
        for &(table, mode) in locks {
            loop {
                let txn = self.txn.as_mut().expect("a query locks in a transaction");
                match txn.lock_table(table, mode, WaitPolicy::Block)? {
                    Step::Ready(()) => break,
                    Step::Wait(wait) => self.wait_for_lock(wait).await?,
                }
            }
        }
        Ok(())
    }

    /// Whether all that a query changes or locks rows of is temporary, which a read-only transaction may change.
    fn writes_temporary_only(&self, query: &Query) -> bool {
        let catalog = self.catalog();
        let written = query.locks.iter().filter(|(_, mode)| *mode != TableLockMode::AccessShare);
        let is_temporary =
            |table: Oid| catalog.table(table).is_some_and(|desc| desc.persistence == Persistence::Temporary);
        written.clone().next().is_some() && written.clone().all(|(table, _)| is_temporary(*table))
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

    /// An execution of a plan: one that ran before, if there is one.
    pub(super) fn execution(&mut self, plan: &Arc<plan::Plan>, mut params: Vec<Datum>) -> Box<Execution> {
        match self.shared.idle.take(plan) {
            Some(mut execution) => {
                execution.supply(params.drain(..));
                if params.capacity() <= SPARE_PARAMS_MAX {
                    self.spare_params = params;
                }
                execution
            }
            None => Execution::new(Arc::clone(plan), params),
        }
    }
}

pub(super) fn read_only_error(what: &str) -> Error {
    Error::new(SqlState::READ_ONLY_SQL_TRANSACTION, format!("cannot execute {what} in a read-only transaction"))
}
