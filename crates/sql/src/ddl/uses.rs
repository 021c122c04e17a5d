//! What uses what: the catalog read backwards, once for a statement.
//!
//! Responsible for: from an object to those of its database that refer to it, in the order of their OIDs.
//! Not responsible for: what becomes of them ([`super::drop`]).

use std::collections::BTreeMap;

use base::{Oid, Result, work};
use engine_api::{Catalog, CatalogObject, ConstraintDesc, ConstraintKind, TableDesc, TableKind, TypeKind};

use super::Cx;
use super::dependents::database_of;
use crate::ir::Ty;

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
    /// By sequence: columns whose default speaks of it.
    callers: From<(&'c TableDesc, i16)>,
}

/// The relations that the defaults of a database speak of, by table and column.
pub(super) type Spoken = BTreeMap<(Oid, i16), Vec<Oid>>;

/// What the defaults of the session's database speak of. Each is bound: a name in a string is a relation's only where it is
/// taken as one.
///
/// # Errors
/// Why the statement should stop.
pub(super) fn spoken(cx: &mut Cx<'_>) -> Result<Spoken> {
    let (catalog, database) = (cx.catalog(), cx.database());
    let mut all = Spoken::new();
    for object in catalog.objects() {
        work::step(64)?;
        let Some(table) = catalog.table(object.oid()) else { continue };
        if table.columns.iter().all(|c| c.default.is_none()) || database_of(&catalog, object) != Some(database) {
            continue;
        }
        for column in table.live_columns() {
            let Some(text) = &column.default else { continue };
            work::step(64 * text.len())?;
            let found = cx.session.relations_spoken_of(text, Ty { oid: column.type_oid, typmod: column.typmod });
            if !found.is_empty() {
                all.insert((table.oid, column.number), found);
            }
        }
    }
    Ok(all)
}

fn listed<T>(from: &From<T>, oid: Oid) -> &[T] {
    from.get(&oid).map_or(&[], Vec::as_slice)
}

impl<'c> Uses<'c> {
    /// Those of a database: what is in others is nobody's business here.
    ///
    /// # Errors
    /// Why the statement should stop.
    pub fn of(catalog: &'c Catalog, database: Oid, spoken: &Spoken) -> Result<Uses<'c>> {
        let mut uses = Uses::default();
        for object in catalog.objects() {
            work::step(64)?;
            if database_of(catalog, object) != Some(database) {
                continue;
            }
            match &**object {
                CatalogObject::Table(table) => uses.add_table(table, spoken)?,
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

    fn add_table(&mut self, table: &'c TableDesc, spoken: &Spoken) -> Result<()> {
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
            for &relation in spoken.get(&(table.oid, column.number)).into_iter().flatten() {
                self.callers.entry(relation).or_default().push((table, column.number));
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

    /// Columns whose default speaks of a sequence or of another relation.
    pub fn callers(&self, relation: Oid) -> &[(&'c TableDesc, i16)] {
        listed(&self.callers, relation)
    }
}

/// Adds a table to a list unless it is the last there.
fn add_once<'c>(list: &mut Vec<&'c TableDesc>, table: &'c TableDesc) {
    if list.last().is_none_or(|last| last.oid != table.oid) {
        list.push(table);
    }
}
