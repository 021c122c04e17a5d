//! ALTER COLUMN … ADD GENERATED … AS IDENTITY, SET GENERATED and its sequence's options, DROP IDENTITY.

use std::collections::BTreeSet;

use base::{Error, Result, SqlState};
use engine_api::{CatalogObject, Identity, TableDesc};
use rupg_sql::nodes::{AlterTableCmd, DefElem, Node, TypeName};

use super::Cx;
use super::create_table::serial_sequence;
use super::names::strings;
use super::sequence::{apply_options, put_altered};

fn not_ready(message: String) -> Error {
    Error::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, message)
}

fn no_identity(table: &TableDesc, column: &str) -> String {
    format!("column \"{column}\" of relation \"{}\" is not an identity column", table.name)
}

fn kind_of(letter: u8) -> Identity {
    if letter == b'a' { Identity::Always } else { Identity::ByDefault }
}

pub(super) async fn add(cx: &mut Cx<'_>, mut table: TableDesc, cmd: &AlterTableCmd, number: i16) -> Result<()> {
    let Some(Node::Constraint(constraint)) = &cmd.def else {
        return Err(Error::internal("ADD GENERATED without a definition"));
    };
    let at = number as usize - 1;
    let column = &table.columns[at];
    let (name, ty) = (column.name.clone(), column.type_oid);
    let place = format!("column \"{name}\" of relation \"{}\"", table.name);
    if ![types::oid::INT2, types::oid::INT4, types::oid::INT8].contains(&ty) {
        let message = "identity column type must be smallint, integer, or bigint";
        return Err(Error::new(SqlState::INVALID_PARAMETER_VALUE, message));
    }
    if !column.not_null {
        return Err(not_ready(format!("{place} must be declared NOT NULL before identity can be added")));
    }
    if column.identity.is_some() {
        return Err(not_ready(format!("{place} is already an identity column")));
    }
    if column.default.is_some() || column.generated.is_some() {
        return Err(not_ready(format!("{place} already has a default value")));
    }
    // pg_dump says what the sequence is called, which is not always what it would be called now.
    let is_name =
        |node: &&Option<Node>| matches!(node, Some(Node::DefElem(o)) if o.defname.as_deref() == Some("sequence_name"));
    let wanted = constraint.options.iter().find(is_name).and_then(|node| match node {
        Some(Node::DefElem(option)) => match &option.arg {
            Some(Node::List(list)) => strings(list).pop(),
            _ => None,
        },
        _ => None,
    });
    let options: Vec<Option<Node>> = constraint.options.iter().filter(|o| !is_name(o)).cloned().collect();
    let mut sequence = serial_sequence(cx, &mut table, number, ty, &options, &[])?;
    if let Some(wanted) = wanted {
        cx.check_free(table.schema, &wanted, false)?;
        sequence.name = wanted;
    }
    table.columns[at].identity = Some(kind_of(constraint.generated_when));
    cx.put(CatalogObject::Sequence(sequence)).await?;
    cx.put(CatalogObject::Table(table)).await
}

pub(super) async fn set(cx: &mut Cx<'_>, mut table: TableDesc, cmd: &AlterTableCmd, number: i16) -> Result<()> {
    let at = number as usize - 1;
    if table.columns[at].identity.is_none() {
        return Err(not_ready(no_identity(&table, &table.columns[at].name)));
    }
    let Some(Node::List(list)) = &cmd.def else { return Ok(()) };
    let mut options = Vec::new();
    for node in list.iter() {
        match node {
            Some(Node::DefElem(option)) if option.defname.as_deref() == Some("generated") => {
                let letter = option.arg.as_ref().and_then(sql_parse::number_of).unwrap_or_default();
                table.columns[at].identity = Some(kind_of(letter as u8));
            }
            other => options.push(other.clone()),
        }
    }
    let sequence = cx.catalog().identity_sequence(&table.columns[at]).cloned();
    if let (Some(mut sequence), false) = (sequence, options.is_empty()) {
        let restart = apply_options(cx, &mut sequence, &options, false)?;
        put_altered(cx, sequence, restart).await?;
    }
    cx.put(CatalogObject::Table(table)).await
}

/// The sequence of a column that has got another type gets that type too.
pub(super) async fn set_type(cx: &mut Cx<'_>, table: &TableDesc, number: i16, name: &TypeName) -> Result<()> {
    let column = &table.columns[number as usize - 1];
    let Some(mut sequence) = cx.catalog().identity_sequence(column).cloned() else { return Ok(()) };
    let option = DefElem {
        defname: Some("as".into()),
        arg: Some(Node::TypeName(Box::new(name.clone()))),
        location: -1,
        ..Default::default()
    };
    let restart = apply_options(cx, &mut sequence, &[Some(Node::DefElem(Box::new(option)))], false)?;
    put_altered(cx, sequence, restart).await
}

pub(super) async fn drop(cx: &mut Cx<'_>, mut table: TableDesc, cmd: &AlterTableCmd, number: i16) -> Result<()> {
    let at = number as usize - 1;
    if table.columns[at].identity.is_none() {
        let message = no_identity(&table, &table.columns[at].name);
        if cmd.missing_ok {
            cx.notice(SqlState::SUCCESSFUL_COMPLETION, format!("{message}, skipping"));
            return Ok(());
        }
        return Err(not_ready(message));
    }
    let sequence = cx.catalog().identity_sequence(&table.columns[at]).cloned();
    table.columns[at].identity = None;
    table.columns[at].default = None;
    cx.put(CatalogObject::Table(table)).await?;
    match sequence {
        // Other defaults may draw from it.
        Some(sequence) => super::drop::drop_all(cx, BTreeSet::from([sequence.oid]), false).await,
        None => Ok(()),
    }
}
