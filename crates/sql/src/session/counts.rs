//! What a session tells of its statements: counters, `pg_stat_activity`, the server's log.

use rupg_sql::nodes::{Node, TransactionStmtKind};

use super::statement::{Query, Statement, Verb};
use super::{Block, Session};
use crate::metrics::{self, StatementKind};
use crate::monitor::State;

impl Session {
    /// A statement of the client begins.
    pub(super) fn begins(&self, text: &str) {
        let environment = &self.environment;
        environment.clock.set(environment.statement_start.get());
        environment.listed.activity.begins(text, environment.statement_start.get());
    }

    /// The client is to say what comes next.
    pub(super) fn rests(&self) {
        let environment = &self.environment;
        let (state, since) = match self.block {
            Block::None => (State::Idle, 0),
            Block::Open => (State::IdleInTransaction, environment.transaction_start.get()),
            Block::Failed => (State::IdleInFailed, environment.transaction_start.get()),
        };
        environment.listed.activity.rests(state, since, environment.clock.get());
    }

    /// Counts a query that succeeded. Its time began with its message: Bind in the extended protocol.
    pub(super) fn count_query(&self, statement: &Statement, query: &Query, rows: u64) {
        let micros = self.micros_so_far();
        let kind = match query.verb {
            Verb::Select => StatementKind::Select,
            Verb::Insert => StatementKind::Insert,
            Verb::Update | Verb::Merge => StatementKind::Update,
            Verb::Delete => StatementKind::Delete,
        };
        metrics::count_statement(kind, micros, rows);
        let environment = &self.environment;
        environment.listed.activity.count_rows(kind, rows);
        let figures = query.figures.get_or_init(|| {
            let text = match statement.text.get(statement.start..) {
                Some(rest) if statement.start > 0 => rest.trim().into(),
                _ => statement.text.clone(),
            };
            environment.monitor.statements.of(environment.identity.borrow().database_oid, query.role, &text)
        });
        figures.count(micros, rows);
        self.log_statement(&statement.text, kind, micros);
    }

    /// Counts another statement that succeeded.
    pub(super) fn count_utility(&self, node: &Node, text: &str) {
        let (kind, micros) = (kind_of(node), self.micros_so_far());
        metrics::count_statement(kind, micros, 0);
        self.log_statement(text, kind, micros);
    }

    /// Writes a statement to the server's log if `log_statement` or `log_min_duration_statement` say so.
    fn log_statement(&self, text: &str, kind: StatementKind, micros: i64) {
        let (level, slow) = {
            let settings = self.environment.settings.borrow();
            (settings.log_statement, settings.log_min_duration_ms)
        };
        let by_kind = level >= log_level(kind);
        let by_time = slow >= 0 && micros >= slow.saturating_mul(1000);
        if by_kind || by_time {
            self.write_log(text, by_time.then_some(micros));
        }
    }

    #[cold]
    fn write_log(&self, text: &str, micros: Option<i64>) {
        let identity = self.environment.identity.borrow();
        let (pid, user, database) = (self.environment.pid, &identity.session_user, &identity.database);
        let about = match micros {
            Some(micros) => format!("duration: {}.{:03} ms  ", micros / 1000, micros % 1000),
            None => String::new(),
        };
        self.environment.host.log(&format!("[{pid}] {user}@{database} {about}statement: {text}"));
    }

    fn micros_so_far(&self) -> i64 {
        let environment = &self.environment;
        environment.clock.set(environment.host.now());
        environment.clock.get().saturating_sub(environment.statement_start.get())
    }
}

/// From which `log_statement` on a statement is logged: 1 `ddl`, 2 `mod`, 3 `all`.
fn log_level(kind: StatementKind) -> u8 {
    match kind {
        StatementKind::Definition => 1,
        StatementKind::Insert | StatementKind::Update | StatementKind::Delete | StatementKind::Copy => 2,
        _ => 3,
    }
}

fn kind_of(node: &Node) -> StatementKind {
    use TransactionStmtKind as K;
    match node {
        Node::TransactionStmt(stmt) if stmt.kind == K::TRANS_STMT_COMMIT => StatementKind::Commit,
        Node::TransactionStmt(stmt) if stmt.kind == K::TRANS_STMT_ROLLBACK => StatementKind::Rollback,
        Node::TransactionStmt(_) => StatementKind::Transaction,
        Node::CopyStmt(_) => StatementKind::Copy,
        Node::VariableSetStmt(_)
        | Node::VariableShowStmt(_)
        | Node::PrepareStmt(_)
        | Node::ExecuteStmt(_)
        | Node::DeallocateStmt(_)
        | Node::DiscardStmt(_)
        | Node::ExplainStmt(_)
        | Node::DeclareCursorStmt(_)
        | Node::FetchStmt(_)
        | Node::ClosePortalStmt(_)
        | Node::LockStmt(_)
        | Node::VacuumStmt(_)
        | Node::CheckPointStmt(_)
        | Node::ConstraintsSetStmt(_) => StatementKind::Utility,
        _ => StatementKind::Definition,
    }
}
