//! What a session counts of its statements.

use rupg_sql::nodes::{Node, TransactionStmtKind};

use super::Session;
use super::statement::{Query, Verb};
use crate::metrics::{self, StatementKind};

impl Session {
    /// Counts a query that succeeded. Its time began with its message: Bind in the extended protocol.
    pub(super) fn count_query(&self, query: &Query, rows: u64) {
        let kind = match query.verb {
            Verb::Select => StatementKind::Select,
            Verb::Insert => StatementKind::Insert,
            Verb::Update => StatementKind::Update,
            Verb::Delete => StatementKind::Delete,
        };
        metrics::count_statement(kind, self.micros_so_far(), rows);
    }

    /// Counts another statement that succeeded.
    pub(super) fn count_utility(&self, node: &Node) {
        metrics::count_statement(kind_of(node), self.micros_so_far(), 0);
    }

    fn micros_so_far(&self) -> i64 {
        let environment = &self.environment;
        environment.host.now().saturating_sub(environment.statement_start.get())
    }
}

fn kind_of(node: &Node) -> StatementKind {
    use TransactionStmtKind as K;
    match node {
        Node::TransactionStmt(stmt) if stmt.kind == K::TRANS_STMT_COMMIT => StatementKind::Commit,
        Node::TransactionStmt(stmt) if stmt.kind == K::TRANS_STMT_ROLLBACK => StatementKind::Rollback,
        Node::TransactionStmt(_) => StatementKind::Transaction,
        Node::CopyStmt(_) => StatementKind::Copy,
        _ => StatementKind::Utility,
    }
}
