//! What uses what: the catalog read backwards, once for a statement.
//!
//! Responsible for: from an object to those of its database that refer to it, in the order of their OIDs.
//! Not responsible for: what becomes of them ([`super::drop`]).

use std::collections::BTreeMap;

use base::{Oid, Result, work};
use engine_api::{
    Catalog, CatalogObject, ConstraintDesc, ConstraintKind, Place, Reference, TableDesc, TableKind, TypeKind,
};

use super::dependents::database_of;

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
    /// By relation, type or schema: the expressions that speak of it, by the objects that they are of.
    mentions: From<(&'c CatalogObject, Place)>,
}

fn listed<T>(from: &From<T>, oid: Oid) -> &[T] {
    from.get(&oid).map_or(&[], Vec::as_slice)
}

impl<'c> Uses<'c> {
    /// Those of a database: what is in others is nobody's business here.
    ///
    /// # Errors
    /// Why the statement should stop.
    pub fn of(catalog: &'c Catalog, database: Oid) -> Result<Uses<'c>> {
        let mut uses = Uses::default();
        for object in catalog.walk() {
            work::step(64)?;
            if database_of(catalog, object) != Some(database) {
                continue;
            }
            uses.add_expressions(catalog, object)?;
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

    fn add_expressions(&mut self, catalog: &Catalog, object: &'c CatalogObject) -> Result<()> {
        for (place, expression) in object.expressions() {
            for reference in expression.references() {
                work::step(64)?;
                let Some(of) = needed(catalog, reference) else { continue };
                let all = self.mentions.entry(of).or_default();
                if all.last().is_none_or(|(o, p)| (o.oid(), *p) != (object.oid(), place)) {
                    all.push((object, place));
                }
            }
        }
        Ok(())
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

    /// The expressions that speak of a relation, type or schema.
    pub fn mentions(&self, oid: Oid) -> &[(&'c CatalogObject, Place)] {
        listed(&self.mentions, oid)
    }
}

/// What has to be there for a reference. An array of labels needs the type of arrays.
pub(crate) fn needed(catalog: &Catalog, reference: &Reference) -> Option<Oid> {
    match reference {
        Reference::Labels { of, .. } => catalog.user_type(*of).map(|ty| ty.array),
        reference => reference.object(),
    }
}

/// Adds a table to a list unless it is the last there.
fn add_once<'c>(list: &mut Vec<&'c TableDesc>, table: &'c TableDesc) {
    if list.last().is_none_or(|last| last.oid != table.oid) {
        list.push(table);
    }
}
