//! What a session tells of its statements: counters, `pg_stat_activity`, the server's log.

use std::borrow::Cow;
use std::sync::Arc;

use rupg_sql::nodes::{Node, TransactionStmtKind};
use sql_exec::Execution;
use sql_parse::metrics::{self, StatementKind};
use sql_parse::monitor::SessionState;
use sql_parse::monitor::secrets::without_secrets;
use sql_parse::monitor::statements::counted_text;
use sql_parse::names::quote_shown;
use types::Datum;

use super::statement::{Query, Statement, Verb};
use super::{Block, Session};

/// Statements other than queries that a session remembers the figures of.
const UTILITIES_REMEMBERED: usize = 8;

/// How the client has said a statement.
#[derive(Clone, Copy)]
pub(super) enum Said<'a> {
    /// In a message of the simple protocol.
    Simple(&'a str),
    /// By Execute of a portal of this statement.
    Execute { portal: &'a str, statement: &'a Arc<Statement> },
}

impl Session {
    /// A statement of the client begins.
    pub(super) fn begins(&self, text: &str) {
        let environment = &self.environment;
        environment.clock.set(environment.statement_start.get());
        environment.listed.activity.begins(text, environment.statement_start.get());
    }

    /// The client is to say what comes next.
    pub(super) fn note_idle(&self) {
        let environment = &self.environment;
        let (state, since) = match self.block {
            Block::None => (SessionState::Idle, 0),
            Block::Open => (SessionState::IdleInTransaction, environment.transaction_start.get()),
            Block::Failed => (SessionState::IdleInFailed, environment.transaction_start.get()),
        };
        environment.listed.activity.note_idle(state, since, environment.clock.get());
    }

    /// Counts a query that succeeded. Its time began with its message: Bind in the extended protocol.
    pub(super) fn count_query(
        &self,
        statement: &Statement,
        query: &Query,
        rows: u64,
        said: Said<'_>,
        execution: &Execution,
    ) {
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
                Some(rest) if statement.start > 0 => counted_text(rest.trim()).into(),
                _ => statement.text.clone(),
            };
            environment.monitor.statements.of(environment.identity.borrow().database_oid, query.role, &text)
        });
        figures.count(micros, rows);
        self.log_statement(kind, micros, said, || match said {
            Said::Simple(_) => String::new(),
            Said::Execute { statement, .. } => {
                self.shown_parameters(&statement.param_types, execution.params(statement.param_types.len()))
            }
        });
    }

    /// Counts another statement that succeeded.
    pub(super) fn count_utility(&self, node: &Node, statement: &Statement, tag: Option<&str>, said: Said<'_>) {
        let (kind, micros) = (kind_of(node), self.micros_so_far());
        metrics::count_statement(kind, micros, 0);
        if !matches!(node, Node::ExecuteStmt(_) | Node::PrepareStmt(_) | Node::DeallocateStmt(_)) {
            self.count_figures(node, statement, rows_of(tag.unwrap_or_default()), micros);
        }
        self.log_statement(kind, micros, said, || self.shown_prepared(node));
    }

    /// Counts a run of a statement that is no query in `pg_stat_statements`. Blocks begin and end with the same few texts: a
    /// session remembers where it counted the last ones.
    fn count_figures(&self, node: &Node, statement: &Statement, rows: u64, micros: i64) {
        let mut text = Cow::Borrowed(statement.text.get(statement.start..).unwrap_or(&statement.text).trim());
        if let (Cow::Borrowed(whole), Node::CreateRoleStmt(_) | Node::AlterRoleStmt(_)) = (&text, node) {
            text = without_secrets(whole);
        }
        let role = self.who().role;
        let mut known = self.utility_figures.borrow_mut();
        if let Some((_, figures)) = known.iter().find(|(by, figures)| *by == role && *figures.key.text == *text) {
            return figures.count(micros, rows);
        }
        let environment = &self.environment;
        let database = environment.identity.borrow().database_oid;
        let figures = environment.monitor.statements.of(database, role, &counted_text(&text).into());
        figures.count(micros, rows);
        if known.len() == UTILITIES_REMEMBERED {
            known.remove(0);
        }
        known.push((role, figures));
    }

    /// Writes a statement to the server's log if `log_statement` or `log_min_duration_statement` say so.
    fn log_statement(&self, kind: StatementKind, micros: i64, said: Said<'_>, detail: impl Fn() -> String) {
        let (level, slow) = {
            let settings = self.environment.settings.borrow();
            (settings.log_statement, settings.log_min_duration_ms)
        };
        let by_kind = level >= log_level(kind);
        let by_time = slow >= 0 && micros >= slow.saturating_mul(1000);
        if by_kind || by_time {
            self.write_log(said, by_time.then_some(micros), &detail());
        }
    }

    #[cold]
    fn write_log(&self, said: Said<'_>, micros: Option<i64>, detail: &str) {
        let about = match micros {
            Some(micros) => format!("duration: {}.{:03} ms  ", micros / 1000, micros % 1000),
            None => String::new(),
        };
        let statement = match said {
            Said::Simple(text) => format!("statement: {text}"),
            Said::Execute { portal, statement } => {
                let known = self.statements.iter().find(|(_, known)| Arc::ptr_eq(known, statement));
                let name = known.map(|(name, _)| name.as_str()).filter(|name| !name.is_empty()).unwrap_or("<unnamed>");
                let slash = if portal.is_empty() { "" } else { "/" };
                format!("execute {name}{slash}{portal}: {}", statement.text)
            }
        };
        let identity = self.environment.identity.borrow();
        let who = format!("[{}] {}@{}", self.environment.pid, identity.session_user, identity.database);
        let host = &self.environment.host;
        host.log(&format!("{who} {about}{}", without_secrets(&statement)));
        if !detail.is_empty() {
            host.log(&format!("{who} DETAIL:  {}", without_secrets(detail)));
        }
    }

    /// The values of a statement's parameters as the log shows them.
    #[cold]
    fn shown_parameters(&self, types: &[base::Oid], values: &[Datum]) -> String {
        let settings = self.environment.settings.borrow();
        let mut shown = String::new();
        if values.is_empty() {
            return shown;
        }
        for (i, (value, &ty)) in values.iter().zip(types).enumerate() {
            shown += &format!("{}${} = ", if i == 0 { "parameters: " } else { ", " }, i + 1);
            if matches!(value, Datum::Null) {
                shown += "NULL";
                continue;
            }
            let mut bytes = Vec::new();
            // What has no text form is shown as nothing.
            let _ = types::write_text(value.as_ref(), ty, settings.output(), &mut bytes);
            let text = String::from_utf8_lossy(&bytes);
            shown += &quote_shown(&text);
        }
        shown
    }

    /// What EXECUTE runs.
    #[cold]
    fn shown_prepared(&self, node: &Node) -> String {
        let Node::ExecuteStmt(execute) = node else { return String::new() };
        let prepared = self.statements.get(execute.name.as_deref().unwrap_or_default());
        prepared.map(|prepared| format!("prepare: {}", prepared.text)).unwrap_or_default()
    }

    fn micros_so_far(&self) -> i64 {
        let environment = &self.environment;
        environment.clock.set(environment.host.now());
        environment.clock.get().saturating_sub(environment.statement_start.get())
    }
}

/// The number of rows in the tag of a statement that has one: of COPY, FETCH, CREATE TABLE AS and the like.
fn rows_of(tag: &str) -> u64 {
    match tag.split_once(' ') {
        Some(("COPY" | "FETCH" | "SELECT", rows)) => rows.parse().unwrap_or(0),
        _ => 0,
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
