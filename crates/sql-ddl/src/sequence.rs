//! CREATE SEQUENCE, ALTER SEQUENCE.

use base::{Error, Oid, Result, SqlState};
use engine_api::{CatalogObject, SequenceDesc, SequenceState, Step, TableKind, TableLockMode};
use rupg_sql::nodes::{AlterSeqStmt, CreateSeqStmt, DefElem, Node};
use sql_parse::number_of;
use types::oid;

use super::Cx;
use super::names::{display, strings};

/// A sequence as serial columns get it.
pub(super) fn default_sequence(oid: Oid, schema: Oid, name: &str, owner: Oid, ty: Oid) -> SequenceDesc {
    SequenceDesc::new(oid, schema, name, owner, ty, type_max(ty))
}

fn type_max(ty: Oid) -> i64 {
    match ty {
        oid::INT2 => i16::MAX as i64,
        oid::INT4 => i32::MAX as i64,
        _ => i64::MAX,
    }
}

fn type_min(ty: Oid) -> i64 {
    match ty {
        oid::INT2 => i16::MIN as i64,
        oid::INT4 => i32::MIN as i64,
        _ => i64::MIN,
    }
}

pub(super) async fn create_sequence(cx: &mut Cx<'_>, stmt: &CreateSeqStmt) -> Result<&'static str> {
    let name = stmt.sequence.as_deref().ok_or_else(|| Error::internal("CREATE SEQUENCE without a name"))?;
    let schema = cx.creation_schema(name).await?;
    let relname = name.relname.as_deref().unwrap_or_default();
    if !cx.check_free(schema, relname, stmt.if_not_exists)? {
        return Ok("CREATE SEQUENCE");
    }
    let mut desc = default_sequence(cx.allocate(), schema, relname, cx.owner(), oid::INT8);
    desc.unlogged = name.relpersistence == b'u';
    apply_options(cx, &mut desc, &stmt.options, true)?;
    cx.put(CatalogObject::Sequence(desc)).await?;
    Ok("CREATE SEQUENCE")
}

pub(super) async fn alter_sequence(cx: &mut Cx<'_>, stmt: &AlterSeqStmt) -> Result<&'static str> {
    let name = stmt.sequence.as_deref().ok_or_else(|| Error::internal("ALTER SEQUENCE without a name"))?;
    if let Some(found) = cx.find_altered(name, stmt.missing_ok)?
        && matches!(&*found, CatalogObject::Sequence(_))
    {
        // What is changed below is what is there once nobody else changes it.
        cx.lock(found.oid(), TableLockMode::ShareRowExclusive).await?;
    }
    let mut desc = match cx.find_altered(name, stmt.missing_ok)?.as_deref() {
        Some(CatalogObject::Sequence(desc)) => desc.clone(),
        Some(other) => {
            return Err(Error::new(SqlState::WRONG_OBJECT_TYPE, format!("\"{}\" is not a sequence", other.name())));
        }
        None if stmt.missing_ok => {
            cx.skip_missing(name);
            return Ok("ALTER SEQUENCE");
        }
        None => {
            return Err(Error::new(
                SqlState::UNDEFINED_TABLE,
                format!("relation \"{}\" does not exist", display(name)),
            ));
        }
    };
    let restart = apply_options(cx, &mut desc, &stmt.options, false)?;
    put_altered(cx, desc, restart).await?;
    Ok("ALTER SEQUENCE")
}

/// Puts a sequence that was altered. A restart counts with the transaction: it gets a state of its own.
pub(super) async fn put_altered(cx: &mut Cx<'_>, mut desc: SequenceDesc, restart: Option<i64>) -> Result<()> {
    if restart.is_some() {
        desc.state = Some(cx.allocate());
    }
    cx.put(CatalogObject::Sequence(desc.clone())).await?;
    let Some(value) = restart else { return Ok(()) };
    let state = SequenceState { last_value: value, is_called: false };
    loop {
        match cx.session.engine().sequence_restart(&desc, state)? {
            Step::Ready(()) => return Ok(()),
            Step::Wait(wait) => cx.session.wait_in_transaction(wait).await?,
        }
    }
}

/// An option list, each option once.
#[derive(Default)]
struct Options<'o> {
    ty: Option<&'o DefElem>,
    increment: Option<i64>,
    start: Option<i64>,
    restart: Option<Option<i64>>,
    /// `Some(None)`: NO MINVALUE.
    min: Option<Option<i64>>,
    max: Option<Option<i64>>,
    cycle: Option<bool>,
    cache: Option<i64>,
    owned_by: Option<&'o DefElem>,
}

fn set_once<T>(slot: &mut Option<T>, value: T, option: &DefElem, sql: &str) -> Result<()> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => {
            Err(Error::new(SqlState::SYNTAX_ERROR, "conflicting or redundant options").at_byte(sql, option.location))
        }
    }
}

impl<'o> Options<'o> {
    fn read(options: &'o [Option<Node>], sql: &str) -> Result<Options<'o>> {
        let mut all = Options::default();
        for node in options.iter().flatten() {
            let Node::DefElem(option) = node else { continue };
            let number = option.arg.as_ref().and_then(number_of);
            match option.defname.as_deref().unwrap_or_default() {
                "as" => set_once(&mut all.ty, option, option, sql)?,
                "increment" => set_once(&mut all.increment, number.unwrap_or(1), option, sql)?,
                "start" => set_once(&mut all.start, number.unwrap_or(1), option, sql)?,
                "restart" => set_once(&mut all.restart, number, option, sql)?,
                "minvalue" => set_once(&mut all.min, number, option, sql)?,
                "maxvalue" => set_once(&mut all.max, number, option, sql)?,
                "cycle" => set_once(&mut all.cycle, number != Some(0), option, sql)?,
                "cache" => set_once(&mut all.cache, number.unwrap_or(1), option, sql)?,
                "owned_by" => set_once(&mut all.owned_by, option, option, sql)?,
                other => return Err(Error::unsupported(format!("sequence option \"{other}\" is not supported"))),
            }
        }
        Ok(all)
    }
}

/// Applies an option list; answers the value to restart at, if asked.
pub(super) fn apply_options(
    cx: &mut Cx<'_>,
    desc: &mut SequenceDesc,
    options: &[Option<Node>],
    creating: bool,
) -> Result<Option<i64>> {
    let options = Options::read(options, cx.sql)?;
    // Bounds that are those of the type go with it.
    let bounds = (type_min(desc.type_oid), type_max(desc.type_oid));
    let (mut typed_min, mut typed_max) = (false, false);
    if let Some(option) = options.ty {
        set_type(desc, option, cx.sql)?;
        (typed_min, typed_max) = (!creating && desc.min == bounds.0, !creating && desc.max == bounds.1);
    }
    desc.increment = options.increment.unwrap_or(desc.increment);
    if desc.increment == 0 {
        return Err(invalid("INCREMENT must not be zero".to_string()));
    }
    desc.cycle = options.cycle.unwrap_or(desc.cycle);
    let ascending = desc.increment > 0;
    match options.max {
        Some(Some(max)) => desc.max = max,
        None if !creating && !typed_max => {}
        _ => desc.max = if ascending || typed_max { type_max(desc.type_oid) } else { -1 },
    }
    check_in_type(desc, "MAXVALUE", desc.max)?;
    match options.min {
        Some(Some(min)) => desc.min = min,
        None if !creating && !typed_min => {}
        _ => desc.min = if !ascending || typed_min { type_min(desc.type_oid) } else { 1 },
    }
    check_in_type(desc, "MINVALUE", desc.min)?;
    if desc.min >= desc.max {
        return Err(invalid(format!("MINVALUE ({}) must be less than MAXVALUE ({})", desc.min, desc.max)));
    }
    match options.start {
        Some(start) => desc.start = start,
        None if creating => desc.start = if ascending { desc.min } else { desc.max },
        None => {}
    }
    check_in_bounds(desc, "START", desc.start)?;
    let restart = options.restart.map(|value| value.unwrap_or(desc.start));
    if !creating {
        let current = match restart {
            Some(value) => value,
            None => cx.session.engine().sequence_get(desc)?.last_value,
        };
        check_in_bounds(desc, "RESTART", current)?;
    }
    if let Some(cache) = options.cache {
        if cache <= 0 {
            return Err(invalid(format!("CACHE ({cache}) must be greater than zero")));
        }
        desc.cache = cache;
    }
    if let Some(option) = options.owned_by {
        // PostgreSQL makes the relation before it looks for the column.
        if creating {
            super::check_row_type_free(&cx.catalog(), None, &CatalogObject::Sequence(desc.clone()))?;
        }
        let owner = owner_column(cx, desc, option)?;
        if cx.catalog().is_identity_sequence(desc) {
            let catalog = cx.catalog();
            let table = desc.owned_by.and_then(|(table, _)| catalog.table(table)).map_or("", |table| &table.name);
            let detail = format!("Sequence \"{}\" is linked to table \"{table}\".", desc.name);
            return Err(Error::unsupported("cannot change ownership of identity sequence").detail(detail));
        }
        desc.owned_by = owner;
    }
    Ok(restart)
}

fn check_in_type(desc: &SequenceDesc, what: &str, value: i64) -> Result<()> {
    if (type_min(desc.type_oid)..=type_max(desc.type_oid)).contains(&value) {
        return Ok(());
    }
    let ty = types::format_type(desc.type_oid, -1);
    Err(invalid(format!("{what} ({value}) is out of range for sequence data type {ty}")))
}

fn check_in_bounds(desc: &SequenceDesc, what: &str, value: i64) -> Result<()> {
    if value < desc.min {
        return Err(invalid(format!("{what} value ({value}) cannot be less than MINVALUE ({})", desc.min)));
    }
    if value > desc.max {
        return Err(invalid(format!("{what} value ({value}) cannot be greater than MAXVALUE ({})", desc.max)));
    }
    Ok(())
}

fn invalid(message: String) -> Error {
    Error::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

fn set_type(desc: &mut SequenceDesc, option: &DefElem, sql: &str) -> Result<()> {
    let Some(Node::TypeName(name)) = &option.arg else { return Ok(()) };
    let ty = sql_bind::bind_column_type(name, sql, None)?.ty.oid;
    if ![oid::INT2, oid::INT4, oid::INT8].contains(&ty) {
        return Err(invalid("sequence type must be smallint, integer, or bigint".to_string()));
    }
    desc.type_oid = ty;
    Ok(())
}

/// The column that a sequence is to belong to: of a table or view of the same owner in the same schema.
fn owner_column(cx: &mut Cx<'_>, desc: &SequenceDesc, option: &DefElem) -> Result<Option<(Oid, i16)>> {
    let Some(Node::List(list)) = &option.arg else { return Ok(None) };
    let mut names = strings(list);
    if names == ["none"] {
        return Ok(None);
    }
    let column = names.pop().unwrap_or_default();
    let relname = names.pop().ok_or_else(|| {
        Error::new(SqlState::SYNTAX_ERROR, "invalid OWNED BY option")
            .hint("Specify OWNED BY table.column or OWNED BY NONE.")
    })?;
    let range = rupg_sql::nodes::RangeVar {
        relname: Some(relname.into()),
        schemaname: names.pop().map(Into::into),
        location: -1,
        ..Default::default()
    };
    let kinds = match cx.find_relation(&range)?.as_deref() {
        Some(CatalogObject::Table(table)) if table.kind == TableKind::MaterializedView => Some("materialized views"),
        Some(CatalogObject::Sequence(_)) => Some("sequences"),
        Some(CatalogObject::Index(_)) => Some("indexes"),
        _ => None,
    };
    if let Some(kinds) = kinds {
        let message =
            format!("sequence cannot be owned by relation \"{}\"", range.relname.as_deref().unwrap_or_default());
        let detail = format!("This operation is not supported for {kinds}.");
        return Err(Error::new(SqlState::WRONG_OBJECT_TYPE, message).detail(detail));
    }
    let table = cx.relation_named(&range)?;
    let apart = |what: &str| {
        let message = format!("sequence must {what} as table it is linked to");
        Err(Error::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, message))
    };
    if table.owner != desc.owner {
        return apart("have same owner");
    }
    if table.schema != desc.schema {
        return apart("be in same schema");
    }
    let number = table.column(&column).map(|c| c.number).ok_or_else(|| {
        Error::new(
            SqlState::UNDEFINED_COLUMN,
            format!("column \"{column}\" of relation \"{}\" does not exist", table.name),
        )
    })?;
    Ok(Some((table.oid, number)))
}
