//! EXPLAIN: its options, and running what ANALYZE asks to run.

use std::sync::Arc;

use base::{Error, Result, SqlState};
use rupg_sql::nodes::{DefElem, ExecuteStmt, ExplainStmt, Node};
use sql_exec::{Execution, OutputRow};
use sql_ir::Ty;
use sql_parse::text_of;
use sql_plan::{ExplainFormat, ExplainOptions, ExplainTimes};
use types::{Datum, OutputSettings, oid};

use super::statement::{Statement, StatementBody, is_query};
use super::{Output, ResultColumn, Session, utility};

/// Type of the answer's one column.
pub(super) fn result_type(stmt: &ExplainStmt) -> Ty {
    let is_json = |option: &DefElem| {
        option.defname.as_deref() == Some("format") && option.arg.as_ref().and_then(text_of).as_deref() == Some("json")
    };
    let json = options_of(stmt).any(is_json);
    Ty::of(if json { oid::JSON } else { oid::TEXT })
}

fn options_of(stmt: &ExplainStmt) -> impl Iterator<Item = &DefElem> {
    stmt.options.iter().flatten().filter_map(|node| match node {
        Node::DefElem(option) => Some(&**option),
        _ => None,
    })
}

/// An option that is on or off, as `defGetBoolean` reads it.
fn is_on(name: &str, option: &DefElem) -> Result<bool> {
    let Some(arg) = &option.arg else { return Ok(true) };
    match text_of(arg).unwrap_or_default().to_lowercase().as_str() {
        "true" | "on" | "1" => Ok(true),
        "false" | "off" | "0" => Ok(false),
        _ => Err(Error::new(SqlState::SYNTAX_ERROR, format!("{name} requires a Boolean value"))),
    }
}

fn options(stmt: &ExplainStmt, sql: &str) -> Result<ExplainOptions> {
    let mut options = ExplainOptions {
        analyze: false,
        costs: true,
        timing: true,
        summary: false,
        verbose: false,
        settings: None,
        format: ExplainFormat::Text,
    };
    let (mut timing, mut summary, mut wal) = (None, None, false);
    for option in options_of(stmt) {
        let name = option.defname.as_deref().unwrap_or_default();
        match name {
            "analyze" => options.analyze = is_on(name, option)?,
            "costs" => options.costs = is_on(name, option)?,
            "timing" => timing = Some(is_on(name, option)?),
            "summary" => summary = Some(is_on(name, option)?),
            "wal" => wal = is_on(name, option)?,
            "verbose" => options.verbose = is_on(name, option)?,
            "settings" => options.settings = is_on(name, option)?.then(Vec::new),
            "buffers" => _ = is_on(name, option)?,
            "format" => match option.arg.as_ref().and_then(text_of).as_deref() {
                Some("text") => options.format = ExplainFormat::Text,
                Some("json") => options.format = ExplainFormat::Json,
                Some("yaml") => options.format = ExplainFormat::Yaml,
                Some("xml") => options.format = ExplainFormat::Xml,
                other => {
                    let message =
                        format!("unrecognized value for EXPLAIN option \"{name}\": \"{}\"", other.unwrap_or_default());
                    return Err(Error::new(SqlState::INVALID_PARAMETER_VALUE, message).at_byte(sql, option.location));
                }
            },
            other => {
                return Err(Error::new(SqlState::SYNTAX_ERROR, format!("unrecognized EXPLAIN option \"{other}\""))
                    .at_byte(sql, option.location));
            }
        }
    }
    let needs =
        |what: &str| Error::new(SqlState::INVALID_PARAMETER_VALUE, format!("EXPLAIN option {what} requires ANALYZE"));
    if wal && !options.analyze {
        return Err(needs("WAL"));
    }
    if timing == Some(true) && !options.analyze {
        return Err(needs("TIMING"));
    }
    options.timing = timing.unwrap_or(true);
    options.summary = summary.unwrap_or(options.analyze);
    Ok(options)
}

/// The statement that EXECUTE names, and its parameters.
async fn prepared(session: &mut Session, execute: &ExecuteStmt, sql: &str) -> Result<(Arc<Statement>, Vec<Datum>)> {
    let name = execute.name.as_deref().unwrap_or_default();
    let statement = session.statement(name)?;
    if !matches!(statement.kind, StatementBody::Query(_)) {
        return Err(Error::unsupported("EXPLAIN of this statement is not supported"));
    }
    session.ensure_transaction()?;
    let params = utility::execute_params(session, execute, &statement, sql)?;
    Ok((statement, params))
}

/// Runs EXPLAIN.
pub(super) async fn run(
    session: &mut Session,
    stmt: &ExplainStmt,
    sql: &str,
    out: &mut dyn Output,
) -> Result<&'static str> {
    let mut options = options(stmt, sql)?;
    if options.settings.is_some() {
        options.settings = Some(session.environment.settings.borrow().of_planner());
    }
    let node = stmt.query.as_ref().ok_or_else(|| Error::internal("EXPLAIN without a statement"))?;
    let node = match node {
        Node::CreateTableAsStmt(create) if !options.analyze => create.query.as_ref().unwrap_or(node),
        Node::DeclareCursorStmt(declare) if !options.analyze => declare.query.as_ref().unwrap_or(node),
        node => node,
    };
    let prepared = match node {
        Node::ExecuteStmt(execute) => Some(Box::pin(prepared(session, execute, sql)).await?),
        _ => None,
    };
    if prepared.is_none() && !is_query(node) {
        return Err(Error::unsupported("EXPLAIN of this statement is not supported"));
    }
    session.ensure_transaction()?;
    let arguments = session.arguments();
    let catalog = session.catalog();
    session.refresh_binding(&catalog);
    let milliseconds = |from: u64, to: u64| to.saturating_sub(from) as f64 / 1e6;
    let began = session.monotonic_nanos();
    let statement = Arc::new(match &prepared {
        Some((statement, params)) => session.bind_prepared(statement, params, options.verbose)?,
        None => session.bind_explained(node, sql, &arguments, options.verbose)?,
    });
    let mut times = ExplainTimes { planning: milliseconds(began, session.monotonic_nanos()), execution: 0.0 };
    let StatementBody::Query(query) = &statement.kind else { return Err(Error::internal("not a query")) };
    if let Some(error) = &query.refused {
        return Err(error.clone());
    }
    if options.analyze {
        session.begin_query(&statement).await?;
        let began = session.monotonic_nanos();
        let params = prepared.map_or(arguments.values, |(_, params)| params);
        let mut execution = Execution::new(Arc::clone(&query.plan), params);
        session.drive_silently(&mut execution).await?;
        times.execution = milliseconds(began, session.monotonic_nanos());
        session.end_query(out);
    }
    let columns = vec![ResultColumn::new("QUERY PLAN", result_type(stmt))];
    out.columns(&columns);
    for line in query.plan.explain(&options, times) {
        out.row(OutputRow::of(&[Datum::Text(line.as_str().into())]), &columns, &OutputSettings::default());
    }
    Ok("EXPLAIN")
}
