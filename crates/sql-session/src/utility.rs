//! Statements that are not planned: transaction control, settings, PREPARE, EXPLAIN, COPY, maintenance, and – through
//! `ddl` – definitions.

use std::fmt::Write as _;
use std::sync::Arc;

use base::{Error, Result, Severity, SqlState};
use engine_api::{Step, TableLockMode, WaitPolicy, oids};
use rupg_sql::nodes::*;
use sql_ddl as ddl;
use sql_exec::Execution;
use sql_functions::reader;
use sql_ir::Ty;
use sql_parse::privileges::{roles, shown};
use sql_parse::text_of;
use types::{Datum, OutputSettings, oid};

use super::arguments::check_described;
use super::block::{Modes, modes};
use super::context::StatementContext;
use super::query::read_only_error;
use super::role::Setting;
use super::settings::isolation_of;
use super::statement::{Statement, StatementBody, is_query};
use super::{Arguments, Block, Output, ResultColumn, Session, copy, cursor, explain};

/// Result columns of the utilities that return rows.
pub(super) fn result_columns(node: &Node) -> Option<Arc<[ResultColumn]>> {
    let text = |name: &str| ResultColumn::new(name, Ty::of(oid::TEXT));
    match node {
        Node::VariableShowStmt(stmt) if is_all(stmt) => {
            Some(vec![text("name"), text("setting"), text("description")].into())
        }
        Node::VariableShowStmt(stmt) => Some(vec![text(show_name(stmt))].into()),
        Node::ExplainStmt(stmt) => Some(vec![ResultColumn::new("QUERY PLAN", explain::result_type(stmt))].into()),
        _ => None,
    }
}

/// What SHOW is refused for when it is parsed, as its result's columns cannot be told.
pub(super) fn check_shown(session: &Session, stmt: &VariableShowStmt) -> Result<()> {
    if is_all(stmt) { Ok(()) } else { shown(session, stmt).map(drop) }
}

/// The value that SHOW shows.
fn shown(session: &Session, stmt: &VariableShowStmt) -> Result<String> {
    let name = stmt.name.as_deref().unwrap_or_default();
    session.environment.shown(name, &session.catalog())?.ok_or_else(|| {
        Error::new(SqlState::UNDEFINED_OBJECT, format!("unrecognized configuration parameter \"{name}\""))
    })
}

fn is_all(stmt: &VariableShowStmt) -> bool {
    stmt.name.as_deref().is_some_and(|n| n.eq_ignore_ascii_case("all"))
}

/// The column name of SHOW: the setting's own spelling.
fn show_name(stmt: &VariableShowStmt) -> &str {
    match stmt.name.as_deref().unwrap_or_default() {
        n if n.eq_ignore_ascii_case("timezone") => "TimeZone",
        n if n.eq_ignore_ascii_case("datestyle") => "DateStyle",
        n if n.eq_ignore_ascii_case("intervalstyle") => "IntervalStyle",
        n => n,
    }
}

/// Whether a statement may run in a failed block.
pub(super) fn ends_block(kind: &StatementBody) -> bool {
    use TransactionStmtKind as K;
    match kind {
        StatementBody::Utility(node) => match &**node {
            Node::TransactionStmt(stmt) => {
                const ENDS: [K; 4] =
                    [K::TRANS_STMT_COMMIT, K::TRANS_STMT_ROLLBACK, K::TRANS_STMT_ROLLBACK_TO, K::TRANS_STMT_PREPARE];
                ENDS.contains(&stmt.kind)
            }
            _ => false,
        },
        StatementBody::Empty => true,
        StatementBody::Query(_) => false,
    }
}

/// Runs a utility statement. Answers its completion tag, or `None` if it queued one itself.
pub(super) async fn run(
    session: &mut Session,
    node: &Arc<Node>,
    sql: &str,
    out: &mut dyn Output,
) -> Result<Option<String>> {
    if let Node::TransactionStmt(stmt) = &**node {
        return Ok(Some(session.transaction_statement(stmt, out).await?.to_string()));
    }
    session.check_not_failed()?;
    let tag = match &**node {
        Node::VariableSetStmt(stmt) => set(session, stmt)?,
        Node::VariableShowStmt(stmt) => show(session, stmt, out)?,
        Node::PrepareStmt(stmt) => prepare(session, stmt, sql)?,
        Node::ExecuteStmt(stmt) => return execute(session, stmt, sql, out).await.map(Some),
        Node::DeallocateStmt(stmt) => deallocate(session, stmt)?,
        Node::DiscardStmt(stmt) => discard(session, stmt).await?,
        Node::ExplainStmt(stmt) => explain::run(session, stmt, sql, out).await?,
        Node::CopyStmt(stmt) => return copy::copy(session, stmt, sql, out).await.map(Some),
        Node::DeclareCursorStmt(stmt) => cursor::declare(session, stmt, sql, out).await?,
        Node::FetchStmt(stmt) => return cursor::fetch(session, stmt, out).await.map(Some),
        Node::ClosePortalStmt(stmt) => cursor::close(session, stmt)?,
        Node::NotifyStmt(stmt) => session.notify(stmt)?,
        Node::ListenStmt(stmt) => session.listen(stmt)?,
        Node::UnlistenStmt(stmt) => session.unlisten(stmt)?,
        Node::LockStmt(stmt) => lock(session, stmt).await?,
        Node::IndexStmt(stmt) if stmt.concurrent => {
            return create_index_concurrently(session, stmt, sql, out).await.map(Some);
        }
        Node::DropStmt(stmt) if stmt.concurrent && stmt.removeType == ObjectType::OBJECT_INDEX => {
            return drop_index_concurrently(session, stmt, sql, out).await.map(Some);
        }
        Node::VacuumStmt(stmt) => vacuum(session, stmt, sql).await?,
        Node::CheckPointStmt(_) => checkpoint(session).await?,
        Node::ConstraintsSetStmt(stmt) => session.set_constraints(stmt).await?,
        _ => return define(session, node, sql).await.map(Some),
    };
    Ok(Some(tag.to_string()))
}

async fn checkpoint(session: &mut Session) -> Result<&'static str> {
    let (catalog, who) = (session.catalog(), session.who());
    if !roles::has_privileges_of(&catalog, who, oids::ROLE_CHECKPOINT) {
        let message = "must be superuser or have privileges of pg_checkpoint to do CHECKPOINT";
        return Err(Error::new(SqlState::INSUFFICIENT_PRIVILEGE, message));
    }
    let number = session.engine().request_checkpoint();
    while let Step::Wait(wait) = session.engine().checkpoint_done(number)? {
        session.wait_for_lock(wait).await?;
    }
    Ok("CHECKPOINT")
}

/// DDL: in a transaction of its own or in the block; refused when read-only.
async fn define(session: &mut Session, node: &Node, sql: &str) -> Result<String> {
    match node {
        Node::CreatedbStmt(_) => session.check_no_block("CREATE DATABASE")?,
        Node::AlterSystemStmt(_) => session.check_no_block("ALTER SYSTEM")?,
        Node::DropdbStmt(_) => session.check_no_block("DROP DATABASE")?,
        _ => {}
    }
    session.ensure_transaction()?;
    if session.is_read_only() {
        return Err(read_only_error(&command_name(node)));
    }
    session.transaction().begin_command();
    let result = ddl::run(session, node, sql).await;
    let result = result.map_err(|error| within_rights(session, error));
    if let Some(txn) = &mut session.txn {
        txn.end_command();
        session.gate = session.gate.max(txn.gate());
    }
    session.binding = None;
    match result? {
        Some(tag) => Ok(tag),
        None => Err(Error::unsupported(format!("{} is not supported", command_name(node)))),
    }
}

/// The error of a definition as the current role may see it.
#[cold]
fn within_rights(session: &Session, error: Error) -> Error {
    let eval = StatementContext::new(&session.environment, session.catalog());
    shown::within_rights(error, || reader(&eval))
}

/// CREATE INDEX CONCURRENTLY: two transactions; what fills the index ends with the statement.
async fn create_index_concurrently(
    session: &mut Session,
    stmt: &IndexStmt,
    sql: &str,
    out: &mut dyn Output,
) -> Result<String> {
    session.check_no_block("CREATE INDEX CONCURRENTLY")?;
    session.ensure_transaction()?;
    if session.is_read_only() {
        return Err(read_only_error("CREATE INDEX"));
    }
    session.transaction().begin_command();
    let begun = ddl::concurrently::begin(session, stmt, sql).await;
    session.binding = None;
    if let Some(begun) = begun? {
        Box::pin(session.commit_transaction(out)).await?;
        session.ensure_transaction()?;
        session.transaction().begin_command();
        if let Err(error) = ddl::concurrently::fill(session, &begun, sql).await {
            session.abort_transaction();
            session.ensure_transaction()?;
            session.transaction().begin_command();
            if ddl::concurrently::give_up(session, &begun, sql).await.is_ok() {
                // If it cannot be said, the index is kept up; it is not valid all the same.
                let _ = Box::pin(session.commit_transaction(out)).await;
            }
            return Err(within_rights(session, error));
        }
    }
    if let Some(txn) = &mut session.txn {
        txn.end_command();
        session.gate = session.gate.max(txn.gate());
    }
    session.binding = None;
    Ok("CREATE INDEX".to_string())
}

/// DROP INDEX CONCURRENTLY: two transactions, and between them a wait for those who may read through the index.
async fn drop_index_concurrently(
    session: &mut Session,
    stmt: &DropStmt,
    sql: &str,
    out: &mut dyn Output,
) -> Result<String> {
    session.check_no_block("DROP INDEX CONCURRENTLY")?;
    session.ensure_transaction()?;
    if session.is_read_only() {
        return Err(read_only_error("DROP INDEX"));
    }
    session.transaction().begin_command();
    let leaving = ddl::concurrently::begin_drop(session, stmt, sql).await;
    session.binding = None;
    if let Some(leaving) = leaving.map_err(|error| within_rights(session, error))? {
        Box::pin(session.commit_transaction(out)).await?;
        ddl::concurrently::until_unused(session, &leaving).await?;
        session.ensure_transaction()?;
        session.transaction().begin_command();
        let ended = ddl::concurrently::end_drop(session, &leaving, sql).await;
        ended.map_err(|error| within_rights(session, error))?;
    }
    if let Some(txn) = &mut session.txn {
        txn.end_command();
        session.gate = session.gate.max(txn.gate());
    }
    session.binding = None;
    Ok("DROP INDEX".to_string())
}

/// The command's name as PostgreSQL spells it, from the node's: `CreateViewStmt` → `CREATE VIEW`.
fn command_name(node: &Node) -> String {
    let name = match node {
        Node::DropStmt(stmt) => return format!("DROP {}", object_words(stmt.removeType)),
        Node::RenameStmt(stmt) => {
            // Of a column or a constraint: its table is what is altered.
            let of_part = matches!(stmt.renameType, ObjectType::OBJECT_COLUMN | ObjectType::OBJECT_TABCONSTRAINT);
            return format!("ALTER {}", object_words(if of_part { stmt.relationType } else { stmt.renameType }));
        }
        Node::AlterObjectSchemaStmt(stmt) => return format!("ALTER {}", object_words(stmt.objectType)),
        Node::AlterTableStmt(stmt) => return format!("ALTER {}", object_words(stmt.objtype)),
        Node::TruncateStmt(_) => return "TRUNCATE TABLE".to_string(),
        // SELECT INTO, as the parser leaves it.
        Node::SelectStmt(_) => return "SELECT INTO".to_string(),
        Node::ViewStmt(_) => return "CREATE VIEW".to_string(),
        Node::GrantStmt(stmt) => return if stmt.is_grant { "GRANT" } else { "REVOKE" }.to_string(),
        Node::GrantRoleStmt(stmt) => return if stmt.is_grant { "GRANT ROLE" } else { "REVOKE ROLE" }.to_string(),
        Node::RuleStmt(_) => return "CREATE RULE".to_string(),
        Node::CreateEnumStmt(_) => return "CREATE TYPE".to_string(),
        Node::CreateStatsStmt(_) => return "CREATE STATISTICS".to_string(),
        Node::SecLabelStmt(_) => return "SECURITY LABEL".to_string(),
        Node::CreateTableAsStmt(_) => return "CREATE TABLE AS".to_string(),
        Node::CreateTrigStmt(_) => return "CREATE TRIGGER".to_string(),
        Node::CreateStmt(_) => return "CREATE TABLE".to_string(),
        Node::IndexStmt(_) => return "CREATE INDEX".to_string(),
        Node::CreatedbStmt(_) => return "CREATE DATABASE".to_string(),
        Node::DropdbStmt(_) => return "DROP DATABASE".to_string(),
        Node::CreateSeqStmt(_) => return "CREATE SEQUENCE".to_string(),
        Node::AlterSeqStmt(_) => return "ALTER SEQUENCE".to_string(),
        Node::DefineStmt(stmt) => return format!("CREATE {}", object_words(stmt.kind)),
        Node::RepackStmt(_) => return "CLUSTER".to_string(),
        Node::CreateOpClassStmt(_) => return "CREATE OPERATOR CLASS".to_string(),
        Node::CreateOpFamilyStmt(_) => return "CREATE OPERATOR FAMILY".to_string(),
        Node::CreateTableSpaceStmt(_) => return "CREATE TABLESPACE".to_string(),
        Node::DropTableSpaceStmt(_) => return "DROP TABLESPACE".to_string(),
        Node::CreateEventTrigStmt(_) => return "CREATE EVENT TRIGGER".to_string(),
        Node::CreateForeignServerStmt(_) => return "CREATE SERVER".to_string(),
        Node::CreateFdwStmt(_) => return "CREATE FOREIGN DATA WRAPPER".to_string(),
        Node::CreatePLangStmt(_) => return "CREATE LANGUAGE".to_string(),
        Node::CreateAmStmt(_) => return "CREATE ACCESS METHOD".to_string(),
        Node::CompositeTypeStmt(_) | Node::CreateRangeStmt(_) => return "CREATE TYPE".to_string(),
        node => {
            let mut word = FirstWord(String::new());
            // It stops where the word ends: the rest may be long.
            let _ = write!(word, "{node:?}");
            word.0
        }
    };
    let mut words = String::new();
    for c in name.trim_end_matches("Stmt").chars() {
        if c.is_ascii_uppercase() && !words.is_empty() {
            words.push(' ');
        }
        words.push(c.to_ascii_uppercase());
    }
    words
}

/// The first word of what is written, which ends there.
struct FirstWord(String);

impl std::fmt::Write for FirstWord {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        let end = text.find(['(', ' ', '{']);
        self.0.push_str(&text[..end.unwrap_or(text.len())]);
        if end.is_none() { Ok(()) } else { Err(std::fmt::Error) }
    }
}

/// The words for a kind of object, as command tags have them.
fn object_words(kind: ObjectType) -> &'static str {
    use ObjectType as T;
    match kind {
        T::OBJECT_INDEX => "INDEX",
        T::OBJECT_SEQUENCE => "SEQUENCE",
        T::OBJECT_SCHEMA => "SCHEMA",
        T::OBJECT_VIEW => "VIEW",
        T::OBJECT_MATVIEW => "MATERIALIZED VIEW",
        T::OBJECT_TYPE | T::OBJECT_ATTRIBUTE => "TYPE",
        T::OBJECT_DOMAIN | T::OBJECT_DOMCONSTRAINT => "DOMAIN",
        T::OBJECT_EXTENSION => "EXTENSION",
        T::OBJECT_FUNCTION => "FUNCTION",
        T::OBJECT_PROCEDURE => "PROCEDURE",
        T::OBJECT_AGGREGATE => "AGGREGATE",
        T::OBJECT_TRIGGER => "TRIGGER",
        T::OBJECT_RULE => "RULE",
        T::OBJECT_POLICY => "POLICY",
        T::OBJECT_ROLE => "ROLE",
        T::OBJECT_DATABASE => "DATABASE",
        T::OBJECT_ACCESS_METHOD => "ACCESS METHOD",
        T::OBJECT_CAST => "CAST",
        T::OBJECT_COLLATION => "COLLATION",
        T::OBJECT_CONVERSION => "CONVERSION",
        T::OBJECT_EVENT_TRIGGER => "EVENT TRIGGER",
        T::OBJECT_FDW => "FOREIGN DATA WRAPPER",
        T::OBJECT_FOREIGN_SERVER => "SERVER",
        T::OBJECT_FOREIGN_TABLE => "FOREIGN TABLE",
        T::OBJECT_LANGUAGE => "LANGUAGE",
        T::OBJECT_LARGEOBJECT => "LARGE OBJECT",
        T::OBJECT_OPCLASS => "OPERATOR CLASS",
        T::OBJECT_OPERATOR => "OPERATOR",
        T::OBJECT_OPFAMILY => "OPERATOR FAMILY",
        T::OBJECT_PUBLICATION => "PUBLICATION",
        T::OBJECT_ROUTINE => "ROUTINE",
        T::OBJECT_STATISTIC_EXT => "STATISTICS",
        T::OBJECT_SUBSCRIPTION => "SUBSCRIPTION",
        T::OBJECT_TABLESPACE => "TABLESPACE",
        T::OBJECT_TRANSFORM => "TRANSFORM",
        T::OBJECT_TSCONFIGURATION => "TEXT SEARCH CONFIGURATION",
        T::OBJECT_TSDICTIONARY => "TEXT SEARCH DICTIONARY",
        T::OBJECT_TSPARSER => "TEXT SEARCH PARSER",
        T::OBJECT_TSTEMPLATE => "TEXT SEARCH TEMPLATE",
        T::OBJECT_USER_MAPPING => "USER MAPPING",
        _ => "TABLE",
    }
}

fn set(session: &mut Session, stmt: &VariableSetStmt) -> Result<&'static str> {
    use VariableSetKind as K;
    let name = stmt.name.as_deref().unwrap_or_default();
    // It lasts if the message or the pipeline does.
    session.ensure_transaction()?;
    let level = session.savepoint_level();
    if stmt.is_local && session.block == Block::None && !session.implicit_block {
        session.push_notice(Error::with_severity(
            Severity::Warning,
            SqlState::NO_ACTIVE_SQL_TRANSACTION,
            "SET LOCAL can only be used in transaction blocks",
        ));
    }
    if let Some(setting) = Setting::of(name)
        && matches!(stmt.kind, K::VAR_SET_VALUE | K::VAR_SET_DEFAULT | K::VAR_RESET)
    {
        session.set_identity(setting, stmt)?;
        session.commit_settings();
        return Ok(if stmt.kind == K::VAR_RESET { "RESET" } else { "SET" });
    }
    match stmt.kind {
        K::VAR_SET_MULTI => return set_transaction(session, stmt, name),
        K::VAR_RESET_ALL => {
            session.environment.settings.borrow_mut().reset_all(level)?;
        }
        K::VAR_SET_VALUE => {
            let value = setting_text(session, name, &stmt.args)?;
            if name.eq_ignore_ascii_case("transaction_isolation") {
                session.environment.settings.borrow().check_value(name, &value)?;
                let level = value.to_ascii_lowercase();
                let uncommitted = level == "read uncommitted";
                session.set_transaction(Modes {
                    isolation: Some(isolation_of(&level)),
                    uncommitted,
                    ..Default::default()
                })?;
                return Ok("SET");
            }
            let is = |setting: &str| name.eq_ignore_ascii_case(setting);
            if is("transaction_read_only") || is("transaction_deferrable") {
                session.environment.settings.borrow().check_value(name, &value)?;
                let given = super::settings::parse_bool(&value);
                let (read_only, deferrable) = if is("transaction_read_only") { (given, None) } else { (None, given) };
                session.set_transaction(Modes { read_only, deferrable, ..Default::default() })?;
                return Ok("SET");
            }
            session.environment.settings.borrow_mut().set(name, &value, stmt.is_local, level)?;
        }
        _ => session.environment.settings.borrow_mut().reset(name, stmt.is_local, level)?,
    }
    session.commit_settings();
    Ok(if matches!(stmt.kind, K::VAR_RESET | K::VAR_RESET_ALL) { "RESET" } else { "SET" })
}

/// Settings that are lists of names, and quoted where they are shown.
const QUOTED_LISTS: [&str; 4] =
    ["search_path", "temp_tablespaces", "local_preload_libraries", "session_preload_libraries"];

pub(super) fn setting_text(session: &Session, name: &str, args: &List) -> Result<String> {
    let list = QUOTED_LISTS.iter().any(|n| name.eq_ignore_ascii_case(n));
    let mut parts = Vec::new();
    for node in args.iter().flatten() {
        if let Node::TypeCast(cast) = node {
            // SET TIME ZONE INTERVAL '…': a fixed offset.
            let text = cast.arg.as_ref().and_then(text_of).unwrap_or_default();
            let interval = session.parse_value(Ty::of(oid::INTERVAL), &text)?;
            if let Datum::Interval(interval) = interval {
                return Ok(format!("{}", interval.micros as f64 / 3.6e9));
            }
        }
        let part = text_of(node).unwrap_or_default();
        parts.push(if list { sql_parse::names::quote_name(&part) } else { part });
    }
    Ok(parts.join(", "))
}

fn set_transaction(session: &mut Session, stmt: &VariableSetStmt, name: &str) -> Result<&'static str> {
    let modes = modes(&stmt.args);
    match name {
        "TRANSACTION" if session.block == Block::None && !session.implicit_block => {
            session.push_notice(Error::with_severity(
                Severity::Warning,
                SqlState::NO_ACTIVE_SQL_TRANSACTION,
                "SET TRANSACTION can only be used in transaction blocks",
            ));
        }
        "TRANSACTION" => session.set_transaction(modes)?,
        "TRANSACTION SNAPSHOT" => session.import_snapshot(&stmt.args)?,
        "SESSION CHARACTERISTICS" => {
            let level = session.savepoint_level();
            let mut settings = session.environment.settings.borrow_mut();
            for option in stmt.args.iter().flatten() {
                let Node::DefElem(option) = option else { continue };
                let name = option.defname.as_deref().unwrap_or_default();
                let value = option.arg.as_ref().and_then(text_of).unwrap_or_default();
                let value = if name.ends_with("isolation") { value } else { flag(&value).to_string() };
                settings.set(&format!("default_{name}"), &value, false, level)?;
            }
            if session.block == Block::None && session.txn.is_none() {
                settings.commit();
            }
        }
        other => return Err(Error::unsupported(format!("SET {other} is not supported"))),
    }
    Ok("SET")
}

fn flag(value: &str) -> &'static str {
    if matches!(value, "1" | "on" | "true") { "on" } else { "off" }
}

fn show(session: &mut Session, stmt: &VariableShowStmt, out: &mut dyn Output) -> Result<&'static str> {
    let node = Node::VariableShowStmt(Box::new(stmt.clone()));
    let columns = result_columns(&node).unwrap_or_default();
    let text = |s: &str| Datum::Text(s.into());
    let output = OutputSettings::default();
    // The characteristics of a transaction are those of this one.
    session.ensure_transaction()?;
    if is_all(stmt) {
        out.columns(&columns);
        for (name, value, about) in session.environment.all_shown(&session.catalog()) {
            out.row(sql_exec::OutputRow::of(&[text(name), text(&value), text(about)]), &columns, &output);
        }
    } else {
        let value = shown(session, stmt)?;
        out.columns(&columns);
        out.row(sql_exec::OutputRow::of(&[text(&value)]), &columns, &output);
    }
    Ok("SHOW")
}

fn prepare(session: &mut Session, stmt: &PrepareStmt, sql: &str) -> Result<&'static str> {
    let name = stmt.name.as_deref().unwrap_or_default().to_string();
    if session.statements.contains_key(&name) {
        return Err(Error::new(
            SqlState::DUPLICATE_PREPARED_STATEMENT,
            format!("prepared statement \"{name}\" already exists"),
        ));
    }
    let mut types = Vec::new();
    for node in stmt.argtypes.iter().flatten() {
        if let Node::TypeName(type_name) = node {
            session.with_binder(|cx| sql_bind::bind_type_schema(type_name, sql, cx))?;
            types.push(
                sql_bind::bind_column_type(type_name, sql, Some((&session.catalog(), &session.identity())))?.ty.oid,
            );
        }
    }
    let node = stmt.query.as_ref().ok_or_else(|| Error::internal("PREPARE without a statement"))?;
    let catalog = session.catalog();
    session.refresh_binding(&catalog);
    let statement = if is_query(node) {
        session.bind_inside(node, sql, &types, true)?
    } else {
        Statement {
            text: sql.into(),
            start: session.statement_at,
            param_types: check_described(session, node, sql, &types, true)?,
            kind: StatementBody::Utility(Arc::new(node.clone())),
            catalog_version: catalog.version.into(),
            own: None,
            binding: 0,
            bound_with: None,
        }
    };
    let statement = Arc::new(statement);
    session.keep_statement(&name, Arc::clone(&statement))?;
    session.note_prepared(&name, &statement, true);
    Ok("PREPARE")
}

/// What EXECUTE gives the parameters of a statement.
pub(super) fn execute_params(
    session: &mut Session,
    stmt: &ExecuteStmt,
    statement: &Statement,
    sql: &str,
) -> Result<Vec<Datum>> {
    if stmt.params.len() != statement.param_types.len() {
        let name = stmt.name.as_deref().unwrap_or_default();
        return Err(Error::new(
            SqlState::SYNTAX_ERROR,
            format!("wrong number of parameters for prepared statement \"{name}\""),
        )
        .detail(format!("Expected {} parameters but got {}.", statement.param_types.len(), stmt.params.len())));
    }
    let mut params = Vec::new();
    for (i, (node, &ty)) in stmt.params.iter().flatten().zip(&statement.param_types).enumerate() {
        params.push(session.evaluate(node, ty, i + 1, sql)?);
    }
    Ok(params)
}

async fn execute(session: &mut Session, stmt: &ExecuteStmt, sql: &str, out: &mut dyn Output) -> Result<String> {
    let name = stmt.name.as_deref().unwrap_or_default();
    let mut statement = session.statement(name)?;
    if !session.is_good(&statement) {
        statement = session.rebound(&statement)?;
        session.keep_statement(name, Arc::clone(&statement))?;
    }
    session.ensure_transaction()?;
    let params = execute_params(session, stmt, &statement, sql)?;
    if !matches!(statement.kind, StatementBody::Query(_)) {
        let StatementBody::Utility(node) = &statement.kind else { return Ok(String::new()) };
        let arguments = Arguments { types: statement.param_types.clone(), values: params };
        let around = std::mem::replace(&mut session.arguments, arguments);
        let tag = Box::pin(run(session, node, &statement.text, out)).await;
        session.arguments = around;
        return Ok(tag?.unwrap_or_default());
    }
    let statement = session.begin_query(&statement).await?;
    let StatementBody::Query(query) = &statement.kind else { return Err(Error::internal("not a query")) };
    if !query.columns.is_empty() {
        out.columns(&query.columns);
    }
    let plan = session.plan_for_values(&statement, &params)?;
    let mut execution = Execution::new(plan, params);
    let (rows, _) = session.drive(&mut execution, query, 0, out).await?;
    session.end_query(out);
    Ok(query.verb.tag(rows))
}

fn deallocate(session: &mut Session, stmt: &DeallocateStmt) -> Result<&'static str> {
    match stmt.name.as_deref() {
        None => {
            session.forget_prepared(None);
            Ok("DEALLOCATE ALL")
        }
        Some(name) => {
            session.statement(name)?;
            session.forget_prepared(Some(name));
            Ok("DEALLOCATE")
        }
    }
}

async fn discard(session: &mut Session, stmt: &DiscardStmt) -> Result<&'static str> {
    let with_relations = [DiscardMode::DISCARD_ALL, DiscardMode::DISCARD_TEMP].contains(&stmt.target);
    if with_relations
        && session.may_have_temporary()
        && (session.block == Block::None || stmt.target != DiscardMode::DISCARD_ALL)
    {
        session.ensure_transaction()?;
        session.transaction().begin_command();
        ddl::temporary::discard(session).await?;
        if let Some(txn) = &mut session.txn {
            txn.end_command();
            session.gate = session.gate.max(txn.gate());
        }
        session.binding = None;
    }
    match stmt.target {
        DiscardMode::DISCARD_ALL => {
            session.check_no_block("DISCARD ALL")?;
            session.forget_prepared(None);
            session.retain_portals(|_| false);
            session.stop_listening();
            session.environment.sequences.take();
            session.environment.advisory.unlock_all();
            let catalog = session.catalog();
            session.environment.change_identity(&catalog, Setting::SessionAuthorization, None, false)?;
            let mut settings = session.environment.settings.borrow_mut();
            settings.reset_all(0)?;
            settings.commit();
            Ok("DISCARD ALL")
        }
        DiscardMode::DISCARD_PLANS => Ok("DISCARD PLANS"),
        DiscardMode::DISCARD_SEQUENCES => {
            session.environment.sequences.take();
            Ok("DISCARD SEQUENCES")
        }
        _ => Ok("DISCARD TEMP"),
    }
}

async fn lock(session: &mut Session, stmt: &LockStmt) -> Result<&'static str> {
    if session.block == Block::None && !session.implicit_block {
        return Err(Error::new(
            SqlState::NO_ACTIVE_SQL_TRANSACTION,
            "LOCK TABLE can only be used in transaction blocks",
        ));
    }
    use TableLockMode as M;
    const MODES: [TableLockMode; 8] = [
        M::AccessShare,
        M::RowShare,
        M::RowExclusive,
        M::ShareUpdateExclusive,
        M::Share,
        M::ShareRowExclusive,
        M::Exclusive,
        M::AccessExclusive,
    ];
    let mode = MODES[(stmt.mode.clamp(1, 8) - 1) as usize];
    let policy = if stmt.nowait { WaitPolicy::Error } else { WaitPolicy::Block };
    session.ensure_transaction()?;
    for node in stmt.relations.iter().flatten() {
        let Node::RangeVar(name) = node else { continue };
        ddl::lock_named(session, name, mode, policy).await?;
    }
    Ok("LOCK TABLE")
}

/// Garbage is collected all the time; VACUUM only makes sure that the tables exist. ANALYZE samples them.
async fn vacuum(session: &mut Session, stmt: &VacuumStmt, sql: &str) -> Result<&'static str> {
    if stmt.is_vacuumcmd {
        session.check_no_block("VACUUM")?;
    }
    let asked = |node: &Node| matches!(node, Node::DefElem(option) if option.defname.as_deref() == Some("analyze"));
    let analyzes = !stmt.is_vacuumcmd || stmt.options.iter().flatten().any(asked);
    session.ensure_transaction()?;
    let mut tables: Vec<(engine_api::TableDesc, Option<Vec<usize>>)> = Vec::new();
    for node in stmt.rels.iter().flatten() {
        let Node::VacuumRelation(rel) = node else { continue };
        let Some(name) = &rel.relation else { continue };
        let table = ddl::relation_desc(session, name, sql)?;
        if ddl::may_maintain(session, &table, if stmt.is_vacuumcmd { "vacuum" } else { "analyze" }) {
            let columns = analyzed_columns(&table, rel.va_cols.iter().flatten())?;
            tables.push((table, columns));
        }
    }
    if stmt.rels.is_empty() && analyzes {
        let (catalog, database) = (session.catalog(), session.identity().database_oid);
        let here = |schema: base::Oid| matches!(catalog.get(schema).map(|o| &**o), Some(engine_api::CatalogObject::Schema(s)) if s.database == database);
        let all = catalog.walk().filter_map(|o| catalog.table(o.oid()));
        let all: Vec<_> = all.filter(|t| here(t.schema) && t.is_stored()).cloned().collect();
        let own = all.into_iter().filter(|table| ddl::may_maintain(session, table, "analyze"));
        tables.extend(own.map(|table| (table, None)));
    }
    for (table, columns) in tables.iter().filter(|(t, _)| analyzes && t.kind == engine_api::TableKind::Table) {
        super::analyze::analyze(session, table, columns.as_deref()).await?;
    }
    Ok(if stmt.is_vacuumcmd { "VACUUM" } else { "ANALYZE" })
}

/// The columns that ANALYZE names (attribute number - 1); `None` for all.
fn analyzed_columns<'a>(
    table: &engine_api::TableDesc,
    names: impl Iterator<Item = &'a Node>,
) -> Result<Option<Vec<usize>>> {
    let mut columns = Vec::new();
    for node in names {
        let Node::String(name) = node else { continue };
        let name: &str = name;
        let Some(at) = table.columns.iter().position(|c| !c.dropped && c.name == name) else {
            let message = format!("column \"{name}\" of relation \"{}\" does not exist", table.name);
            return Err(Error::new(SqlState::UNDEFINED_COLUMN, message));
        };
        if columns.contains(&at) {
            let message = format!("column \"{name}\" of relation \"{}\" appears more than once", table.name);
            return Err(Error::new(SqlState::DUPLICATE_COLUMN, message));
        }
        columns.push(at);
    }
    Ok((!columns.is_empty()).then_some(columns))
}
