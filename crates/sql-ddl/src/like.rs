//! LIKE in CREATE TABLE: columns of another table, and what is copied with them.

use std::sync::Arc;

use base::{Oid, Result, SqlState};
use engine_api::{
    CatalogObject, ColumnDesc, ConstraintDesc, ConstraintKind, IndexDesc, Privileges, SequenceDesc, TableDesc,
};
use rupg_sql::nodes::{DefElem, Node, RangeVar, TableLikeClause};
use sql_parse::privileges;

use super::Cx;
use super::constraint::{has_primary_key, second_primary_key};
use super::names::free_relation_name;

/// Bits of [`TableLikeClause::options`].
const COMMENTS: u32 = 1;
const CONSTRAINTS: u32 = 4;
const DEFAULTS: u32 = 8;
const GENERATED: u32 = 16;
const IDENTITY: u32 = 32;
const INDEXES: u32 = 64;

/// Adds the columns. Answers the table they come from.
pub(super) fn add_columns(
    cx: &mut Cx<'_>,
    table: &mut TableDesc,
    clause: &TableLikeClause,
    serials: &mut Vec<(i16, Oid, Vec<Option<Node>>)>,
) -> Result<TableDesc> {
    let name = clause.relation.as_deref().ok_or_else(|| base::Error::internal("LIKE without a table"))?;
    let source = relation_like(cx, name).map_err(|e| e.at_byte(cx.sql, name.location))?;
    let catalog = cx.catalog();
    if let Some(object) = catalog.get(source.oid) {
        privileges::require(&catalog, cx.session.who(), object, Privileges::SELECT)?;
    }
    let copies = |what: u32| clause.options & what != 0;
    for column in source.live_columns() {
        if table.column(&column.name).is_some() {
            return Err(base::Error::new(
                SqlState::DUPLICATE_COLUMN,
                format!("column \"{}\" specified more than once", column.name),
            ));
        }
        let number = table.columns.len() as i16 + 1;
        let identity = column.identity.filter(|_| copies(IDENTITY));
        if identity.is_some() {
            let options = catalog.identity_sequence(column).map_or_else(Vec::new, options_of);
            // As in PostgreSQL, its type is not that of the column.
            serials.push((number, types::oid::INT8, options));
        }
        let default = match column.identity {
            None if copies(DEFAULTS) => column.default.clone(),
            _ => None,
        };
        let generated = column.generated.clone().filter(|_| copies(GENERATED));
        if let Some(comment) = source.comments.get(&column.number).filter(|_| copies(COMMENTS)) {
            table.comments.insert(number, Arc::clone(comment));
        }
        table.columns.push(ColumnDesc {
            number,
            default,
            identity,
            generated,
            missing: None,
            missing_row: None,
            default_oid: None,
            ..column.clone()
        });
    }
    let first = table.columns.len() - source.live_columns().count();
    for at in first..table.columns.len() {
        let Some(generated) = &table.columns[at].generated else { continue };
        let over = generated.over(|number| counterpart(&source, table, number));
        let what = || format!("Generation expression for column \"{}\"", table.columns[at].name);
        table.columns[at].generated = Some(over.ok_or_else(|| whole_row(what(), &source))?);
    }
    Ok(source)
}

/// What makes another sequence like this one, as options of CREATE SEQUENCE.
fn options_of(sequence: &SequenceDesc) -> Vec<Option<Node>> {
    let SequenceDesc { start, increment, min, max, cache, cycle, .. } = *sequence;
    let numbers = [("increment", increment), ("minvalue", min), ("maxvalue", max), ("start", start), ("cache", cache)];
    let numbers = numbers.map(|(name, number)| (name, Node::Float(number.to_string().into())));
    let options = numbers.into_iter().chain([("cycle", Node::Boolean(cycle))]);
    options
        .map(|(name, value)| {
            let option = DefElem { defname: Some(name.into()), arg: Some(value), location: -1, ..Default::default() };
            Some(Node::DefElem(Box::new(option)))
        })
        .collect()
}

/// The table, view or materialized view to be like.
///
/// # Errors
/// 42P01; 42809 if it is another kind of relation.
fn relation_like(cx: &mut Cx<'_>, name: &RangeVar) -> Result<TableDesc> {
    let other = match cx.find_relation(name)?.as_deref() {
        Some(CatalogObject::Sequence(_)) => "sequences",
        Some(CatalogObject::Index(_)) => "indexes",
        _ => return cx.relation_named(name),
    };
    let name = name.relname.as_deref().unwrap_or_default();
    let message = format!("relation \"{name}\" is invalid in LIKE clause");
    Err(base::Error::new(SqlState::WRONG_OBJECT_TYPE, message)
        .detail(format!("This operation is not supported for {other}.")))
}

/// 0A000: what would speak of another table's row.
fn whole_row(what: String, source: &TableDesc) -> base::Error {
    base::Error::unsupported("cannot convert whole-row table reference")
        .detail(format!("{what} contains a whole-row reference to table \"{}\".", source.name))
}

/// The column of the new table that stands for one of the source.
fn counterpart(source: &TableDesc, table: &TableDesc, number: i16) -> Option<i16> {
    table.column(&source.columns.get(number as usize - 1)?.name).map(|c| c.number)
}

/// Copies constraints and indexes once the new table is there with its own checks, and before its own keys are, as in PostgreSQL: what
/// is copied must not have the name of what is there, and foreign keys may be to a copied key.
pub(super) async fn finish(cx: &mut Cx<'_>, table: &TableDesc, likes: &[(TableDesc, u32)]) -> Result<()> {
    for (source, options) in likes {
        let mut desc = cx.catalog().table(table.oid).cloned().unwrap_or_else(|| table.clone());
        let place = |number: i16| counterpart(source, table, number);
        // What is copied is younger than what the statement says, and follows the order of its LIKE clauses.
        for number in source.live_columns().filter_map(|column| place(column.number)) {
            let column = &mut desc.columns[number as usize - 1];
            column.default_oid = column.default_oid.map(|_| cx.allocate());
        }
        if options & CONSTRAINTS != 0 {
            let mut constraints: Vec<&ConstraintDesc> = source.constraints.iter().collect();
            constraints.sort_by(|a, b| a.name.cmp(&b.name));
            for constraint in constraints {
                let ConstraintKind::Check { expression } = &constraint.kind else { continue };
                let what = || format!("Constraint \"{}\"", constraint.name);
                let expression = expression.over(place).ok_or_else(|| whole_row(what(), source))?;
                super::constraint::check_name_free(&desc, &constraint.name)?;
                let columns = constraint.columns.iter().filter_map(|&n| place(n)).collect();
                let (oid, name, kind) = (cx.allocate(), constraint.name.clone(), ConstraintKind::Check { expression });
                desc.constraints.push(ConstraintDesc {
                    no_inherit: constraint.no_inherit,
                    comment: constraint.comment.clone().filter(|_| options & COMMENTS != 0),
                    ..ConstraintDesc::new(oid, name, columns, kind)
                });
            }
        }
        cx.put(CatalogObject::Table(desc.clone())).await?;
        if options & INDEXES != 0 {
            copy_indexes(cx, desc, source, options & COMMENTS != 0).await?;
        }
    }
    Ok(())
}

async fn copy_indexes(cx: &mut Cx<'_>, mut desc: TableDesc, source: &TableDesc, with_comments: bool) -> Result<()> {
    let catalog = cx.catalog();
    let indexes: Vec<IndexDesc> = catalog.indexes(source.oid).cloned().collect();
    for index in indexes {
        if index.primary && has_primary_key(&desc) {
            return Err(second_primary_key(&desc.name));
        }
        let catalog = cx.catalog();
        let place = |number: i16| if number == 0 { Some(0) } else { counterpart(source, &desc, number) };
        let keys: Vec<_> = index
            .keys
            .iter()
            .filter_map(|k| place(k.column).map(|column| engine_api::IndexKey { column, ..*k }))
            .collect();
        let include: Vec<i16> = index.include.iter().filter_map(|&n| place(n)).collect();
        let mut own = index.expressions.iter();
        let (mut expressions, mut predicate) = (index.expressions.clone(), index.predicate.clone());
        for expression in expressions.iter_mut().map(|e| &mut e.text).chain(&mut predicate) {
            let what = || format!("Index \"{}\"", index.name);
            *expression = expression.over(place).ok_or_else(|| whole_row(what(), source))?;
        }
        let constraint = source.constraints.iter().find(|c| {
            matches!(c.kind, ConstraintKind::PrimaryKey { index: own } | ConstraintKind::Unique { index: own }
                if own == index.oid)
        });
        let columns: Vec<i16> = keys.iter().map(|k| k.column).collect();
        let mut names: Vec<&str> = Vec::with_capacity(columns.len());
        for &number in &columns {
            names.push(match number {
                0 => own.next().map_or("expr", |e| e.name.as_str()),
                number => desc.columns[number as usize - 1].name.as_str(),
            });
        }
        names.extend(include.iter().map(|&n| desc.columns[n as usize - 1].name.as_str()));
        let (middle, label) = match (constraint.is_some(), index.primary) {
            (_, true) => (String::new(), "pkey"),
            (true, _) => (names.join("_"), "key"),
            _ => (names.join("_"), "idx"),
        };
        let name = free_relation_name(&catalog, desc.schema, &desc.name, &middle, label, &[]);
        let copy = IndexDesc {
            oid: cx.allocate(),
            schema: desc.schema,
            name: name.clone(),
            table: desc.oid,
            keys,
            include,
            expressions,
            predicate,
            comment: index.comment.clone().filter(|_| with_comments),
            ..index.clone()
        };
        if constraint.is_some() {
            for &number in columns.iter().filter(|_| index.primary) {
                desc.columns[number as usize - 1].not_null = true;
            }
            desc.constraints.push(ConstraintDesc {
                deferrable: constraint.is_some_and(|c| c.deferrable),
                deferred: constraint.is_some_and(|c| c.deferred),
                ..ConstraintDesc::new(cx.allocate(), name, columns, copy.demand())
            });
            cx.put(CatalogObject::Table(desc.clone())).await?;
        }
        cx.put(CatalogObject::Index(copy)).await?;
    }
    Ok(())
}
