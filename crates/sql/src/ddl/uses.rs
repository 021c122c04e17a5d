//! What uses what: the catalog read backwards, once for a statement.
//!
//! Responsible for: from an object to those that refer to it, in the order of their OIDs.
//! Not responsible for: what becomes of them ([`super::drop`]).

use std::collections::BTreeMap;

use base::{Oid, Result, work};
use engine_api::{
    Catalog, CatalogObject, ConstraintDesc, ConstraintKind, SequenceDesc, TableDesc, TableKind, TypeKind,
};

/// From an object to what refers to it.
type From<T> = BTreeMap<Oid, Vec<T>>;

/// What refers to the objects of a catalog.
#[derive(Default)]
pub(super) struct Uses<'c> {
    foreign_keys: From<(&'c TableDesc, &'c ConstraintDesc)>,
    sequences: From<Oid>,
    views: From<&'c TableDesc>,
    columns: From<(&'c TableDesc, i16)>,
    /// By type: views with a column of it.
    view_columns: From<&'c TableDesc>,
    domains: From<Oid>,
    /// By schema.
    members: From<Oid>,
    /// Columns whose default calls a sequence, whichever.
    calls: Vec<(&'c TableDesc, i16, &'c str)>,
}

fn listed<T>(from: &From<T>, oid: Oid) -> &[T] {
    from.get(&oid).map_or(&[], Vec::as_slice)
}

impl<'c> Uses<'c> {
    /// Those of a catalog.
    ///
    /// # Errors
    /// Why the statement should stop.
    pub fn of(catalog: &'c Catalog) -> Result<Uses<'c>> {
        let mut uses = Uses::default();
        for object in catalog.objects() {
            work::step(64)?;
            match &**object {
                CatalogObject::Table(table) => uses.add_table(table)?,
                CatalogObject::Sequence(sequence) => match sequence.owned_by {
                    Some((table, _)) => uses.sequences.entry(table).or_default().push(sequence.oid),
                    None => uses.members.entry(sequence.schema).or_default().push(sequence.oid),
                },
                CatalogObject::Type(ty) => {
                    uses.members.entry(ty.schema).or_default().push(ty.oid);
                    if let TypeKind::Domain(domain) = &ty.kind {
                        uses.domains.entry(domain.base).or_default().push(ty.oid);
                    }
                }
                _ => {}
            }
        }
        Ok(uses)
    }

    fn add_table(&mut self, table: &'c TableDesc) -> Result<()> {
        self.members.entry(table.schema).or_default().push(table.oid);
        for constraint in &table.constraints {
            if let ConstraintKind::ForeignKey { table: referenced, .. } = &constraint.kind {
                self.foreign_keys.entry(*referenced).or_default().push((table, constraint));
            }
        }
        for relation in table.view.iter().flat_map(|view| &view.relations) {
            add_once(self.views.entry(relation.oid).or_default(), table);
        }
        for column in table.live_columns() {
            work::step(64)?;
            if let Some(default) = column.default.as_deref().filter(|default| default.contains("nextval")) {
                self.calls.push((table, column.number, default));
            }
            match table.kind {
                TableKind::View => add_once(self.view_columns.entry(column.type_oid).or_default(), table),
                _ => self.columns.entry(column.type_oid).or_default().push((table, column.number)),
            }
        }
        Ok(())
    }

    /// Foreign keys that refer to a table.
    pub fn foreign_keys(&self, table: Oid) -> &[(&'c TableDesc, &'c ConstraintDesc)] {
        listed(&self.foreign_keys, table)
    }

    /// Sequences of a table's columns.
    pub fn sequences(&self, table: Oid) -> &[Oid] {
        listed(&self.sequences, table)
    }

    /// Views whose query names a relation.
    pub fn views(&self, relation: Oid) -> &[&'c TableDesc] {
        listed(&self.views, relation)
    }

    /// Stored columns of a type.
    pub fn columns(&self, ty: Oid) -> &[(&'c TableDesc, i16)] {
        listed(&self.columns, ty)
    }

    /// Views with a column of a type.
    pub fn views_of_type(&self, ty: Oid) -> &[&'c TableDesc] {
        listed(&self.view_columns, ty)
    }

    /// Domains directly over a type.
    pub fn domains(&self, ty: Oid) -> &[Oid] {
        listed(&self.domains, ty)
    }

    /// What is in a schema and goes with it only.
    pub fn members(&self, schema: Oid) -> &[Oid] {
        listed(&self.members, schema)
    }

    /// Columns whose default calls a sequence.
    ///
    /// # Errors
    /// Why the statement should stop.
    pub fn callers(&self, sequence: &SequenceDesc) -> Result<Vec<(&'c TableDesc, i16)>> {
        let name = super::names::quote(&sequence.name);
        let mut callers = Vec::new();
        for (table, column, default) in &self.calls {
            work::step(default.len())?;
            if default.contains(&*name) {
                callers.push((*table, *column));
            }
        }
        Ok(callers)
    }
}

/// Adds a table to a list unless it is the last there.
fn add_once<'c>(list: &mut Vec<&'c TableDesc>, table: &'c TableDesc) {
    if list.last().is_none_or(|last| last.oid != table.oid) {
        list.push(table);
    }
}
