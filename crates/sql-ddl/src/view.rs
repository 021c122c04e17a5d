//! CREATE VIEW and what ALTER may do to views.

use base::{Error, LayoutId, Result, SqlState};
use engine_api::{
    Catalog, CatalogObject, CheckOption, ColumnDesc, Persistence, TableDesc, TableKind, TableLockMode, ViewDesc,
};
use rupg_sql::nodes::{Node, RangeVar, ViewCheckOption, ViewStmt};
use sql_bind::BoundView;
use sql_bind::collation;
use sql_parse::names::{is_temporary, quote_name};
use sql_parse::privileges;

use super::Cx;
use super::create_table::{layout_of, storage_options};
use super::names::{Token, before_word, strings, tokens};

pub(super) async fn create_view(cx: &mut Cx<'_>, stmt: &ViewStmt) -> Result<&'static str> {
    let name = stmt.view.as_deref().ok_or_else(|| Error::internal("CREATE VIEW without a name"))?;
    let node = stmt.query.as_ref().ok_or_else(|| Error::internal("CREATE VIEW without a query"))?;
    let text = query_text(cx.sql, name, &stmt.aliases);
    let (bound, temporary) = bind(cx, node).await?;
    if name.relpersistence == b'u' {
        let message = "views cannot be unlogged because they do not have storage";
        return Err(Error::new(SqlState::SYNTAX_ERROR, message));
    }
    let mut name = name.clone();
    if temporary && name.relpersistence != b't' {
        let message = format!("view \"{}\" will be a temporary view", name.relname.as_deref().unwrap_or_default());
        cx.notice(SqlState::SUCCESSFUL_COMPLETION, message);
        name.relpersistence = b't';
    }
    let schema = cx.schema_of_new(&name).await?;
    let relname = name.relname.as_deref().unwrap_or_default();
    let existing = cx.catalog().relation(schema, relname).cloned();
    let replaced = match existing.as_deref() {
        None => None,
        Some(CatalogObject::Table(view)) if stmt.replace && view.kind == TableKind::View => {
            privileges::require_owner(&cx.catalog(), cx.session.who(), &CatalogObject::Table(view.clone()))?;
            cx.lock(view.oid, TableLockMode::AccessExclusive).await?;
            Some(view.clone())
        }
        Some(other) if stmt.replace => {
            privileges::require_owner(&cx.catalog(), cx.session.who(), other)?;
            return Err(Error::new(SqlState::WRONG_OBJECT_TYPE, format!("\"{relname}\" is not a view")));
        }
        Some(_) => None,
    };
    let catalog = cx.catalog();
    let columns = named_columns(&catalog, &bound, &strings(&stmt.aliases), false)?;
    super::rights::require_types_of_columns(cx, &[], &columns)?;
    if replaced.is_none() {
        cx.check_free(schema, relname, false)?;
    }
    cx.refuse_in_system_schema(schema, relname)?;
    let mut options = storage_options(&stmt.options);
    let mut view = ViewDesc { query: text.into(), ..bound.desc };
    view.check_option = check_option(stmt, &mut options)?;
    let oid = replaced.as_ref().map_or_else(|| cx.allocate(), |old| old.oid);
    let owner = replaced.as_ref().map_or_else(|| cx.owner(), |old| old.owner);
    let mut desc = TableDesc {
        kind: TableKind::View,
        options,
        comments: replaced.as_ref().map(|old| old.comments.clone()).unwrap_or_default(),
        view: Some(view),
        persistence: if name.relpersistence == b't' { Persistence::Temporary } else { Persistence::Permanent },
        ..TableDesc::new(oid, schema, relname, owner, columns)
    };
    let layout = layout_of(&desc, LayoutId(1));
    desc.layouts.push(layout);
    if let Some(old) = &replaced {
        check_replaced(cx, old, &mut desc)?;
    }
    let checked = desc.view.as_ref().is_some_and(|v| v.check_option.is_some());
    cx.put(CatalogObject::Table(desc.clone())).await?;
    if checked {
        require_updatable(cx, &desc)?;
    }
    Ok("CREATE VIEW")
}

/// Binds a view's query and keeps its relations from being dropped meanwhile. Answers also whether one is temporary.
pub(super) async fn bind(cx: &mut Cx<'_>, node: &Node) -> Result<(BoundView, bool)> {
    if matches!(node, Node::SelectStmt(select) if select.intoClause.is_some()) {
        return Err(Error::unsupported("views must not contain SELECT INTO"));
    }
    loop {
        let sql = cx.sql;
        let bound = cx.session.bind_view(node, sql)?;
        let version = cx.catalog().version;
        let mut temporary = false;
        for relation in &bound.desc.relations {
            cx.lock(relation.oid, TableLockMode::AccessShare).await?;
        }
        let catalog = cx.catalog();
        for relation in &bound.desc.relations {
            let schema = catalog.get(relation.oid).map(|object| object.namespace().1);
            temporary |= schema.is_some_and(|schema| is_temporary(&catalog, schema));
        }
        // What was waited for may have changed what the names mean.
        if catalog.version == version {
            return Ok((bound, temporary));
        }
    }
}

/// The columns of a view or materialized view under the names given for them.
pub(super) fn named_columns(
    catalog: &Catalog,
    bound: &BoundView,
    names: &[String],
    is_materialized: bool,
) -> Result<Vec<ColumnDesc>> {
    if names.len() > bound.columns.len() {
        let message = match is_materialized {
            true => "too many column names were specified",
            false => "CREATE VIEW specifies more column names than columns",
        };
        return Err(Error::new(SqlState::SYNTAX_ERROR, message));
    }
    let mut columns: Vec<ColumnDesc> = Vec::with_capacity(bound.columns.len());
    for (i, (own, ty)) in bound.columns.iter().enumerate() {
        let name = names.get(i).unwrap_or(own);
        if columns.iter().any(|c| c.name == *name) {
            return Err(Error::new(SqlState::DUPLICATE_COLUMN, format!("column \"{name}\" specified more than once")));
        }
        super::refuse_pseudo_type(name, ty.oid)?;
        let column = ColumnDesc::new(i as i16 + 1, name.clone(), ty.oid, ty.typmod);
        columns.push(match (is_materialized, bound.collations[i]) {
            (false, None) => {
                let message = format!("could not determine which collation to use for view column \"{name}\"");
                return Err(collation::indeterminate(message));
            }
            (_, collation) => collated(catalog, column, collation)?,
        });
    }
    Ok(columns)
}

/// A column of what keeps the rows of a query, with the collation that the query gives it.
pub(super) fn collated(catalog: &Catalog, column: ColumnDesc, collation: Option<u32>) -> Result<ColumnDesc> {
    let collation = collation.ok_or_else(|| {
        let (name, ty) = (&column.name, types::format_type(column.type_oid, -1));
        collation::indeterminate(format!("no collation was derived for column \"{name}\" with collatable type {ty}"))
    })?;
    let collation = Some(collation).filter(|&of| of != collation::of_type(catalog, column.type_oid));
    Ok(ColumnDesc { collation, ..column })
}

fn check_option(stmt: &ViewStmt, options: &mut Vec<(String, String)>) -> Result<Option<CheckOption>> {
    let mut found = match stmt.withCheckOption {
        ViewCheckOption::LOCAL_CHECK_OPTION => Some(CheckOption::Local),
        ViewCheckOption::CASCADED_CHECK_OPTION => Some(CheckOption::Cascaded),
        _ => None,
    };
    if let Some(option) = found {
        let word = if option == CheckOption::Local { "local" } else { "cascaded" };
        options.push(("check_option".to_string(), word.to_string()));
    } else {
        found = check_options(options)?;
    }
    Ok(found)
}

/// Sees that the options are a view's. Answers the check option among them.
fn check_options(options: &[(String, String)]) -> Result<Option<CheckOption>> {
    let mut found = None;
    for (name, value) in options {
        match name.as_str() {
            "security_barrier" | "security_invoker" => {
                let word = value.to_ascii_lowercase();
                if !["true", "false", "on", "off", "1", "0", "yes", "no"].contains(&word.as_str()) {
                    let message = format!("invalid value for boolean option \"{name}\": {value}");
                    return Err(Error::new(SqlState::INVALID_PARAMETER_VALUE, message));
                }
            }
            "check_option" => match value.to_ascii_lowercase().as_str() {
                "local" => found = Some(CheckOption::Local),
                "cascaded" => found = Some(CheckOption::Cascaded),
                _ => {
                    let message = format!("invalid value for enum option \"check_option\": {value}");
                    return Err(Error::new(SqlState::INVALID_PARAMETER_VALUE, message)
                        .detail("Valid values are \"local\" and \"cascaded\"."));
                }
            },
            other => {
                let message = format!("unrecognized parameter \"{other}\"");
                return Err(Error::new(SqlState::INVALID_PARAMETER_VALUE, message));
            }
        }
    }
    Ok(found)
}

/// ALTER VIEW … SET (…), RESET (…): the options become these.
pub(super) fn set_options(cx: &mut Cx<'_>, desc: &mut TableDesc, options: Vec<(String, String)>) -> Result<()> {
    let checked = check_options(&options)?;
    desc.options = options;
    if let Some(view) = &mut desc.view {
        view.check_option = checked;
    }
    if checked.is_some() { require_updatable(cx, desc) } else { Ok(()) }
}

fn require_updatable(cx: &mut Cx<'_>, desc: &TableDesc) -> Result<()> {
    let found = ["insert into", "delete from"].into_iter().find_map(|verb| cx.session.through_view(desc, verb).err());
    let Some(why) = found else { return Ok(()) };
    let reason = why.fields().detail.clone().unwrap_or_default().to_string();
    Err(Error::unsupported("WITH CHECK OPTION is supported only on automatically updatable views").hint(reason))
}

/// CREATE OR REPLACE VIEW may add columns at the end, and nothing else.
fn check_replaced(cx: &mut Cx<'_>, old: &TableDesc, new: &mut TableDesc) -> Result<()> {
    let refuse = |message: String| Err(Error::new(SqlState::INVALID_TABLE_DEFINITION, message));
    if new.columns.len() < old.columns.len() {
        return refuse("cannot drop columns from view".to_string());
    }
    for (before, after) in old.columns.iter().zip(&mut new.columns) {
        if before.name != after.name {
            let message = format!("cannot change name of view column \"{}\" to \"{}\"", before.name, after.name);
            return Err(Error::new(SqlState::INVALID_TABLE_DEFINITION, message)
                .hint("Use ALTER VIEW ... RENAME COLUMN ... to change name of view column instead."));
        }
        if (before.type_oid, before.typmod) != (after.type_oid, after.typmod) {
            let [from, to] = [before, &*after].map(|c| cx.session.shown_type(c.type_oid, c.typmod));
            let name = &before.name;
            return refuse(format!("cannot change data type of view column \"{name}\" from {from} to {to}"));
        }
        let catalog = cx.catalog();
        let [from, to] = [before, &*after].map(|column| collation::of_column(&catalog, column));
        if from != to {
            let [from, to] = [from, to].map(|of| collation::plain_name(of).unwrap_or_default());
            let name = &before.name;
            return refuse(format!("cannot change collation of view column \"{name}\" from \"{from}\" to \"{to}\""));
        }
        after.default = before.default.clone();
    }
    Ok(())
}

/// The text of the query behind AS, without the clauses of the definition that follow it.
pub(super) fn query_text(sql: &str, name: &RangeVar, aliases: &[Option<Node>]) -> String {
    let from = usize::try_from(name.location).unwrap_or(0);
    let mut depth = 0usize;
    let mut begun = false;
    let mut query: Vec<Token> = Vec::new();
    for token in tokens(sql, from) {
        match token.word.as_str() {
            "(" => depth += 1,
            ")" => depth = depth.saturating_sub(1),
            "as" if depth == 0 && !begun => {
                begun = true;
                continue;
            }
            _ => {}
        }
        if begun {
            query.push(token);
        }
    }
    let ends = |tokens: &[Token], words: &[&str]| {
        tokens.len() > words.len()
            && tokens[tokens.len() - words.len()..].iter().zip(words).all(|(token, word)| token.word == *word)
    };
    for words in [
        &["with", "check", "option"][..],
        &["with", "local", "check", "option"],
        &["with", "cascaded", "check", "option"],
        &["with", "data"],
        &["with", "no", "data"],
    ] {
        if ends(&query, words) {
            query.truncate(query.len() - words.len());
        }
    }
    let (start, end) = (query.first().map_or(0, |t| t.start), query.last().map_or(0, |t| t.end));
    let query = sql.get(start..end).unwrap_or_default();
    let before = before_word(sql.get(..from).unwrap_or_default(), "view");
    if before.and_then(|before| before_word(before, "recursive")).is_none() {
        return query.to_string();
    }
    let columns: Vec<String> = strings(aliases).iter().map(|c| quote_name(c)).collect();
    let (columns, own) = (columns.join(", "), quote_name(name.relname.as_deref().unwrap_or_default()));
    format!("WITH RECURSIVE {own}({columns}) AS ({query}) SELECT {columns} FROM {own}")
}
