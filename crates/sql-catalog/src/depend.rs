//! pg_depend and pg_rewrite: which definitions need which, as pg_dump and tools that draw or order schemas ask.
//!
//! Responsible for: sequences and the columns that own or use them, defaults, constraints, indexes, views.
//! Not responsible for: what becomes of them when something is dropped (`sql_ddl::doomed`, which follows the same edges).

use std::collections::{BTreeMap, BTreeSet};

use base::{Oid, Result, work};
use engine_api::{
    Catalog, CatalogObject, ColumnDesc, ConstraintKind, DomainDesc, Expression, ExtensionDesc, Reference, TableDesc,
    TableKind, TypeDesc, TypeKind,
};
use sql_functions::{EvalContext, extensions};
use sql_ir::system_relation::SystemRelation;
use types::Datum;

use super::relations::{shown_default, tables_of};
use super::{SystemRows, oid, row, text};

/// OID of `pg_class`.
pub const CLASS: u32 = 1259;
/// OID of `pg_attrdef`.
pub const DEFAULT: u32 = 2604;
/// OID of `pg_constraint`.
pub const CONSTRAINT: u32 = 2606;
/// OID of `pg_namespace`.
pub const NAMESPACE: u32 = 2615;
/// OID of `pg_type`.
pub const TYPE: u32 = 1247;
/// OID of `pg_proc`.
pub const PROC: u32 = 1255;
/// OID of `pg_extension`.
pub const EXTENSION: u32 = 3079;
/// OID of `pg_rewrite`.
pub const REWRITE: u32 = 2618;

/// The number of something that belongs to a relation and has none of its own: made from its place, stable, and apart
/// from those of objects.
fn derived(relation: Oid, number: u32) -> Oid {
    Oid(relation.0.wrapping_mul(2048).wrapping_add(number) | 1 << 31)
}

/// The number of a column's default.
pub(crate) fn default_oid(table: Oid, column: &ColumnDesc) -> Oid {
    column.default_oid.unwrap_or_else(|| derived(table, column.number as u32))
}

/// The number of a view's rule.
pub(crate) fn rule_oid(view: Oid) -> Oid {
    derived(view, 2047)
}

/// One end: catalog, object, column.
pub type End = (u32, Oid, i16);

/// That one object needs another.
#[derive(Clone, Copy, Debug)]
pub struct Edge {
    /// What depends.
    pub from: End,
    /// What it depends on.
    pub to: End,
    /// As `deptype`: `n` normal, `a` automatic, `i` internal.
    pub kind: &'static str,
}

struct Edges {
    all: Vec<Edge>,
    database: Oid,
}

impl Edges {
    fn add(&mut self, from: End, to: End, kind: &'static str) {
        self.all.push(Edge { from, to, kind });
    }

    /// Whether a schema is of the database; those that every database has are.
    fn has(&self, catalog: &Catalog, schema: Oid) -> bool {
        match catalog.get(schema).map(|o| &**o) {
            Some(CatalogObject::Schema(s)) => !s.database.is_valid() || s.database == self.database,
            _ => false,
        }
    }
}

/// What depends on what in a database.
///
/// # Errors
/// Why the statement should stop.
pub fn edges(catalog: &Catalog, database: Oid) -> Result<Vec<Edge>> {
    let mut edges = Edges { all: Vec::new(), database };
    for object in catalog.walk() {
        work::step(64)?;
        match &**object {
            CatalogObject::Sequence(sequence) if edges.has(catalog, sequence.schema) => {
                edges.add((CLASS, sequence.oid, 0), (NAMESPACE, sequence.schema, 0), "n");
                if let Some((table, column)) = sequence.owned_by {
                    let kind = if catalog.is_identity_sequence(sequence) { "i" } else { "a" };
                    edges.add((CLASS, sequence.oid, 0), (CLASS, table, column), kind);
                }
            }
            CatalogObject::Table(table) if edges.has(catalog, table.schema) => {
                work::step(64 * table.columns.len())?;
                edges.add((CLASS, table.oid, 0), (NAMESPACE, table.schema, 0), "n");
                defaults(&mut edges, catalog, table);
                constraints(&mut edges, catalog, table);
                indexes(&mut edges, catalog, table);
                view(&mut edges, catalog, table);
                let made = table.live_columns().filter(|c| c.type_oid.0 >= types::user::FIRST_OID);
                made.for_each(|c| edges.add((CLASS, table.oid, c.number), (TYPE, c.type_oid, 0), "n"));
            }
            CatalogObject::Type(desc) if edges.has(catalog, desc.schema) => made_type(&mut edges, catalog, desc),
            CatalogObject::Extension(extension) if extension.database == database => {
                made_extension(&mut edges, extension)
            }
            _ => {}
        }
    }
    Ok(edges.all)
}

pub(super) fn dependencies(rel: &SystemRelation, cx: &dyn EvalContext) -> SystemRows {
    let edges = edges(&cx.catalog(), cx.identity().database_oid)?;
    let shown = edges.into_iter().map(|edge| {
        row(
            rel,
            vec![
                ("classid", Datum::Oid(edge.from.0)),
                ("objid", oid(edge.from.1)),
                ("objsubid", Datum::Int4(edge.from.2.into())),
                ("refclassid", Datum::Oid(edge.to.0)),
                ("refobjid", oid(edge.to.1)),
                ("refobjsubid", Datum::Int4(edge.to.2.into())),
                ("deptype", text(edge.kind)),
            ],
        )
    });
    Ok(shown.collect())
}

/// A type that a statement made: what is under domains, arrays and their elements.
fn made_type(edges: &mut Edges, catalog: &Catalog, desc: &TypeDesc) {
    edges.add((TYPE, desc.oid, 0), (NAMESPACE, desc.schema, 0), "n");
    edges.add((TYPE, desc.array, 0), (TYPE, desc.oid, 0), "i");
    let TypeKind::Domain(domain) = &desc.kind else { return };
    if domain.base.0 >= types::user::FIRST_OID {
        edges.add((TYPE, desc.oid, 0), (TYPE, domain.base, 0), "n");
    }
    if let Some(default) = &domain.default {
        mentioned(edges, catalog, (TYPE, desc.oid, 0), default, desc.oid, "n");
        // It is a value of the type that it was written for, whether or not it names it.
        let of = written_for(catalog, domain);
        if types::user::is_domain(of) && !default.references().any(|r| needed(catalog, r) == Some(of)) {
            edges.add((TYPE, desc.oid, 0), (TYPE, of, 0), "n");
        }
    }
    for check in &domain.checks {
        edges.add((CONSTRAINT, check.oid, 0), (TYPE, desc.oid, 0), "a");
        mentioned(edges, catalog, (CONSTRAINT, check.oid, 0), &check.expression, desc.oid, "n");
    }
}

/// The type that the default of a domain was bound as: what the domain is over for which it was written.
fn written_for(catalog: &Catalog, domain: &DomainDesc) -> Oid {
    if let Some(of) = domain.default_of {
        return of;
    }
    match catalog.user_type(domain.base).map(|below| &below.kind) {
        Some(TypeKind::Domain(below)) if !domain.default_is_own => written_for(catalog, below),
        _ => domain.base,
    }
}

/// An extension, and its functions.
fn made_extension(edges: &mut Edges, desc: &ExtensionDesc) {
    let own = (EXTENSION, desc.oid, 0);
    edges.add(own, (NAMESPACE, desc.schema, 0), "n");
    for function in extensions::named(&desc.name).into_iter().flat_map(|extension| extension.functions) {
        edges.add((PROC, Oid(function.oid), 0), (NAMESPACE, desc.schema, 0), "n");
        edges.add((PROC, Oid(function.oid), 0), own, "e");
    }
}

/// What has to be there for a reference. An array of labels needs the type of arrays.
pub(crate) fn needed(catalog: &Catalog, reference: &Reference) -> Option<Oid> {
    match reference {
        Reference::Labels { of, .. } => catalog.user_type(*of).map(|ty| ty.array),
        reference => reference.object(),
    }
}

/// What an expression refers to; `own` is how columns of its table are needed.
fn mentioned(edges: &mut Edges, catalog: &Catalog, from: End, expression: &Expression, table: Oid, own: &'static str) {
    let mut ends: Vec<(End, &'static str)> = Vec::new();
    for reference in expression.references() {
        let end = match reference {
            Reference::Column(number) => ((CLASS, table, *number), own),
            Reference::Row {} => ((CLASS, table, 0), own),
            Reference::Function { function, .. } => ((PROC, *function, 0), "n"),
            other => {
                let Some(oid) = needed(catalog, other) else { continue };
                let class = match catalog.get(oid).map(|o| &**o) {
                    Some(CatalogObject::Schema(_)) => NAMESPACE,
                    Some(CatalogObject::Type(_)) => TYPE,
                    Some(_) => CLASS,
                    None if types::element_of(oid).is_some() => TYPE,
                    None => continue,
                };
                ((class, oid, 0), "n")
            }
        };
        if !ends.contains(&end) {
            ends.push(end);
        }
    }
    for (end, kind) in ends {
        edges.add(from, end, kind);
    }
}

fn defaults(edges: &mut Edges, catalog: &Catalog, table: &TableDesc) {
    for column in table.live_columns() {
        let Some(expression) = shown_default(column) else { continue };
        let own = (DEFAULT, default_oid(table.oid, column), 0);
        edges.add(own, (CLASS, table.oid, column.number), if column.generated.is_some() { "i" } else { "a" });
        mentioned(edges, catalog, own, expression, table.oid, "n");
        // The value becomes one of the column's domain.
        let is_of_type = |number: i16| {
            let other = table.columns.get(number as usize - 1);
            column.generated.is_some() && other.is_some_and(|other| other.type_oid == column.type_oid)
        };
        let is_said = expression.references().any(|r| match r {
            Reference::Type(ty) => *ty == column.type_oid,
            // A column alone has the type already.
            Reference::Column(number) => expression.is_reference_alone() && is_of_type(*number),
            _ => false,
        });
        // Or it is one of a domain over the column's type, of which it becomes one.
        let is_of_domain = |number: i16| {
            let other = table.columns.get(number as usize - 1).map(|other| other.type_oid);
            other.is_some_and(|ty| types::user::is_domain(ty) && types::user::base_type(ty, -1).0 == column.type_oid)
        };
        let is_made = column.type_oid.0 >= types::user::FIRST_OID;
        let loses_domain = is_made
            && expression.is_reference_alone()
            && expression.references().any(|r| matches!(r, Reference::Column(number) if is_of_domain(*number)));
        if (types::user::is_domain(column.type_oid) || loses_domain) && !is_said {
            edges.add(own, (TYPE, column.type_oid, 0), "n");
        }
    }
}

fn constraints(edges: &mut Edges, catalog: &Catalog, table: &TableDesc) {
    for constraint in &table.constraints {
        let own = (CONSTRAINT, constraint.oid, 0);
        let include = match constraint.kind {
            ConstraintKind::PrimaryKey { index } | ConstraintKind::Unique { index } => {
                catalog.index(index).map(|index| &*index.include)
            }
            _ => None,
        };
        for &column in constraint.columns.iter().chain(include.unwrap_or_default()) {
            edges.add(own, (CLASS, table.oid, column), "a");
        }
        if constraint.columns.is_empty() {
            edges.add(own, (CLASS, table.oid, 0), "a");
        }
        if let ConstraintKind::Check { expression } = &constraint.kind {
            mentioned(edges, catalog, own, expression, table.oid, "n");
        }
        if let ConstraintKind::ForeignKey { table: other, columns, index, .. } = &constraint.kind {
            for &column in columns {
                edges.add(own, (CLASS, *other, column), "n");
            }
            edges.add(own, (CLASS, *index, 0), "n");
        }
    }
}

fn indexes(edges: &mut Edges, catalog: &Catalog, table: &TableDesc) {
    for index in catalog.indexes(table.oid) {
        let own = (CLASS, index.oid, 0);
        let constraint = table.constraints.iter().find(|c| match &c.kind {
            ConstraintKind::PrimaryKey { index: i } | ConstraintKind::Unique { index: i } => *i == index.oid,
            _ => false,
        });
        match constraint {
            Some(constraint) => edges.add(own, (CONSTRAINT, constraint.oid, 0), "i"),
            None => {
                let columns = index.keys.iter().map(|key| key.column).chain(index.include.iter().copied());
                let columns: BTreeSet<i16> = columns.filter(|&column| column > 0).collect();
                for column in columns {
                    edges.add(own, (CLASS, table.oid, column), "a");
                }
                if index.keys.iter().all(|key| key.column == 0) && index.include.is_empty() {
                    edges.add(own, (CLASS, table.oid, 0), "a");
                }
                for expression in index.expressions.iter().map(|e| &e.text).chain(&index.predicate) {
                    mentioned(edges, catalog, own, expression, table.oid, "a");
                }
            }
        }
    }
}

fn view(edges: &mut Edges, catalog: &Catalog, table: &TableDesc) {
    let Some(view) = &table.view else { return };
    let rule = (REWRITE, rule_oid(table.oid), 0);
    edges.add(rule, (CLASS, table.oid, 0), "i");
    if view.relations.iter().all(|relation| relation.oid != table.oid) {
        edges.add(rule, (CLASS, table.oid, 0), "n");
    }
    mentioned(edges, catalog, rule, &view.query, table.oid, "n");
    for &key in view.keys.iter().collect::<BTreeSet<_>>() {
        edges.add(rule, (CONSTRAINT, key, 0), "n");
    }
    // The text may name a relation in more than one way.
    let mut used: BTreeMap<Oid, BTreeSet<i16>> = BTreeMap::new();
    for relation in &view.relations {
        used.entry(relation.oid).or_default().extend(&relation.used);
    }
    for (relation, columns) in used {
        for &column in &columns {
            edges.add(rule, (CLASS, relation, column), "n");
        }
        if columns.is_empty() {
            edges.add(rule, (CLASS, relation, 0), "n");
        }
    }
}

/// The rule `_RETURN` of each view.
pub(super) fn rules(rel: &SystemRelation, cx: &dyn EvalContext) -> SystemRows {
    let catalog = cx.catalog();
    let views = tables_of(&catalog, cx).into_iter().filter(|t| t.kind != TableKind::Table && t.view.is_some());
    Ok(views
        .map(|view| {
            row(
                rel,
                vec![
                    ("oid", oid(rule_oid(view.oid))),
                    ("rulename", text("_RETURN")),
                    ("ev_class", oid(view.oid)),
                    ("ev_type", text("1")),
                    ("ev_enabled", text("O")),
                    ("is_instead", Datum::Bool(true)),
                    ("ev_qual", text("<>")),
                    ("ev_action", text("<>")),
                ],
            )
        })
        .collect())
}
