//! Parameters of statements that hold a query and are none themselves: DECLARE, EXPLAIN, CREATE TABLE AS, SELECT INTO.
//!
//! Responsible for: the types of their parameters when they are parsed, and the values while they run; the query that CREATE TABLE AS EXECUTE
//! names.
//! Not responsible for: running them.

use std::sync::Arc;

use base::{Error, Oid, Result, SqlState};
use rupg_sql::nodes::{ExecuteStmt, Node, ObjectType};
use sql_ddl::{self as ddl, Arguments, Source};
use sql_parse as parse;

use super::statement::{Statement, StatementBody, is_query};
use super::{Session, cursor, utility};

/// What a statement is refused for when it is parsed. `infer`: its parameters get types, which are answered.
pub(super) fn check_described(
    session: &mut Session,
    node: &Node,
    sql: &str,
    types: &[Oid],
    infer: bool,
) -> Result<Vec<Oid>> {
    let nothing = || Ok(types.to_vec());
    match node {
        Node::DeclareCursorStmt(stmt) => cursor::check_declared(session, stmt, sql, types, infer),
        Node::VariableShowStmt(stmt) => utility::check_shown(session, stmt).and_then(|()| nothing()),
        // The simple protocol binds what these hold when it runs them.
        _ if !infer => nothing(),
        Node::ExplainStmt(stmt) => match &stmt.query {
            Some(query) if is_query(query) => bound_types(session, query, sql, types),
            Some(inner) => check_described(session, inner, sql, types, infer),
            None => nothing(),
        },
        Node::CreateTableAsStmt(stmt) => match &stmt.query {
            Some(query) if is_query(query) && stmt.objtype == ObjectType::OBJECT_MATVIEW => {
                // Those that the client has given a type need not occur.
                if !bound_types(session, query, sql, &[])?.is_empty() {
                    return Err(Error::unsupported("materialized views may not be defined using bound parameters"));
                }
                nothing()
            }
            Some(query) if is_query(query) => bound_types(session, query, sql, types),
            _ => nothing(),
        },
        Node::SelectStmt(select) => {
            let mut select = select.clone();
            ddl::take_into(&mut select);
            bound_types(session, &Node::SelectStmt(select), sql, types)
        }
        _ => nothing(),
    }
}

fn bound_types(session: &mut Session, query: &Node, sql: &str, types: &[Oid]) -> Result<Vec<Oid>> {
    match query {
        Node::SelectStmt(_) => Ok((session as &mut dyn ddl::Session).bind_unrun(query, sql, types, true)?.param_types),
        _ => Ok(session.bind_query(query, sql, types, 0, true)?.param_types),
    }
}

impl Session {
    /// What the parameters of the statement that runs are.
    pub(crate) fn arguments(&self) -> Arguments {
        self.arguments.clone()
    }

    /// The query that EXECUTE stands for where a relation is made of its rows.
    ///
    /// # Errors
    /// 26000 if there is no such statement, 42809 if it is no SELECT; those of its arguments.
    pub(crate) fn executed_source(&mut self, execute: &ExecuteStmt, sql: &str) -> Result<Source> {
        let statement = self.statement(execute.name.as_deref().unwrap_or_default())?;
        let values = utility::execute_params(self, execute, &statement, sql)?;
        let node = selected(&statement)?;
        let arguments = Arguments { types: statement.param_types.clone(), values };
        Ok(Source { node, text: Arc::clone(&statement.text), arguments, executed: true })
    }
}

/// The parse tree of a prepared SELECT.
fn selected(statement: &Statement) -> Result<Node> {
    let no_select = || Error::new(SqlState::WRONG_OBJECT_TYPE, "prepared statement is not a SELECT");
    if !matches!(statement.kind, StatementBody::Query(_)) {
        return Err(no_select());
    }
    let parsed = parse::parse(&statement.text)?;
    let node = parsed.into_iter().find(|parsed| parsed.start == statement.start).map(|parsed| parsed.node);
    match node {
        Some(Node::PrepareStmt(prepare)) => match prepare.query {
            Some(query @ Node::SelectStmt(_)) => Ok(query),
            _ => Err(no_select()),
        },
        Some(query @ Node::SelectStmt(_)) => Ok(query),
        _ => Err(no_select()),
    }
}
