//! CREATE SEQUENCE, ALTER SEQUENCE.

use base::{Error, Oid, Result, SqlState};
use engine_api::{CatalogObject, SequenceDesc, SequenceState, TableLockMode};
use rupg_sql::nodes::{AlterSeqStmt, CreateSeqStmt, DefElem, Node};
use types::oid;

use super::Cx;
use super::names::{display, strings};
use crate::session::number_of;

/// A sequence as serial columns get it.
pub(super) fn default_sequence(oid_: Oid, schema: Oid, name: &str, owner: Oid, ty: Oid) -> SequenceDesc {
    SequenceDesc {
        oid: oid_,
        schema,
        name: name.to_string(),
        owner,
        type_oid: ty,
        start: 1,
        increment: 1,
        min: 1,
        max: type_max(ty),
        cycle: false,
        owned_by: None,
        cache: 1,
        comment: None,
    }
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
    apply_options(cx, &mut desc, &stmt.options, true)?;
    cx.put(CatalogObject::Sequence(desc)).await?;
    Ok("CREATE SEQUENCE")
}

pub(super) async fn alter_sequence(cx: &mut Cx<'_>, stmt: &AlterSeqStmt) -> Result<&'static str> {
    let name = stmt.sequence.as_deref().ok_or_else(|| Error::internal("ALTER SEQUENCE without a name"))?;
    if let Some(found) = cx.find_relation(name)?
        && matches!(&*found, CatalogObject::Sequence(_))
    {
        // What is changed below is what is there once nobody else changes it.
        cx.lock(found.oid(), TableLockMode::ShareRowExclusive).await?;
    }
    let mut desc = match cx.find_relation(name)?.as_deref() {
        Some(CatalogObject::Sequence(desc)) => desc.clone(),
        Some(other) => {
            return Err(Error::new(SqlState::WRONG_OBJECT_TYPE, format!("\"{}\" is not a sequence", other.name())));
        }
        None if stmt.missing_ok => {
            cx.notice(SqlState::UNDEFINED_TABLE, format!("relation \"{}\" does not exist, skipping", display(name)));
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
    let oid = desc.oid;
    cx.put(CatalogObject::Sequence(desc)).await?;
    if let Some(value) = restart {
        cx.session.engine().sequence_set(oid, SequenceState { last_value: value, is_called: false })?;
    }
    Ok("ALTER SEQUENCE")
}

/// Applies an option list; answers the value to restart at, if asked.
pub(super) fn apply_options(
    cx: &mut Cx<'_>,
    desc: &mut SequenceDesc,
    options: &[Option<Node>],
    creating: bool,
) -> Result<Option<i64>> {
    let mut start = None;
    let mut restart = None;
    let (mut min, mut max) = (None, None);
    for node in options.iter().flatten() {
        let Node::DefElem(option) = node else { continue };
        let number = || option.arg.as_ref().and_then(number_of);
        match option.defname.as_deref().unwrap_or_default() {
            "as" => set_type(desc, option, cx.sql)?,
            "increment" => desc.increment = number().unwrap_or(1),
            "start" => start = number(),
            "restart" => restart = Some(number()),
            "minvalue" => min = Some(number()),
            "maxvalue" => max = Some(number()),
            "cycle" => desc.cycle = number() != Some(0),
            "cache" => {
                if number().is_some_and(|n| n <= 0) {
                    return Err(invalid(format!("CACHE ({}) must be greater than zero", number().unwrap_or(0))));
                }
            }
            "owned_by" => desc.owned_by = owner_column(cx, option)?,
            other => return Err(Error::unsupported(format!("sequence option \"{other}\" is not supported"))),
        }
    }
    if desc.increment == 0 {
        return Err(invalid("INCREMENT must not be zero".to_string()));
    }
    let ascending = desc.increment > 0;
    if creating || min.is_some() {
        let default = if ascending { 1 } else { type_min(desc.type_oid) };
        desc.min = min.flatten().unwrap_or(default);
    }
    if creating || max.is_some() {
        let default = if ascending { type_max(desc.type_oid) } else { -1 };
        desc.max = max.flatten().unwrap_or(default);
    }
    if desc.min >= desc.max {
        return Err(invalid(format!("MINVALUE ({}) must be less than MAXVALUE ({})", desc.min, desc.max)));
    }
    match start {
        Some(start) => desc.start = start,
        None if creating => desc.start = if ascending { desc.min } else { desc.max },
        None => {}
    }
    if desc.start < desc.min {
        return Err(invalid(format!("START value ({}) cannot be less than MINVALUE ({})", desc.start, desc.min)));
    }
    if desc.start > desc.max {
        return Err(invalid(format!("START value ({}) cannot be greater than MAXVALUE ({})", desc.start, desc.max)));
    }
    Ok(restart.map(|value| value.unwrap_or(desc.start)))
}

fn invalid(message: String) -> Error {
    Error::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

fn set_type(desc: &mut SequenceDesc, option: &DefElem, sql: &str) -> Result<()> {
    let Some(Node::TypeName(name)) = &option.arg else { return Ok(()) };
    let ty = crate::bind::bind_column_type(name, sql, None)?.ty.oid;
    if ![oid::INT2, oid::INT4, oid::INT8].contains(&ty) {
        return Err(invalid("sequence type must be smallint, integer, or bigint".to_string()));
    }
    desc.type_oid = ty;
    Ok(())
}

fn owner_column(cx: &mut Cx<'_>, option: &DefElem) -> Result<Option<(Oid, i16)>> {
    let Some(Node::List(list)) = &option.arg else { return Ok(None) };
    let mut names = strings(list);
    if names == ["none"] {
        return Ok(None);
    }
    let column = names.pop().unwrap_or_default();
    let relname = names.pop().ok_or_else(|| invalid("invalid OWNED BY option".to_string()))?;
    let range = rupg_sql::nodes::RangeVar {
        relname: Some(relname.into()),
        schemaname: names.pop().map(Into::into),
        location: -1,
        ..Default::default()
    };
    let table = cx.table_named(&range)?;
    let number = table.column(&column).map(|c| c.number).ok_or_else(|| {
        Error::new(
            SqlState::UNDEFINED_COLUMN,
            format!("column \"{column}\" of relation \"{}\" does not exist", table.name),
        )
    })?;
    Ok(Some((table.oid, number)))
}
