//! Which definitions have changed since a statement was bound: it is bound again only if one of them matters to it (rule R10).
//!
//! A statement knows the catalog version it was last found good for. While the catalog has that version, that is all there
//! is to it: one comparison. When the version has moved on, the changes since are looked through; they are found by comparing
//! the catalog with the one that was compared last. All catalogs that statements are bound to are compared: between two that
//! are, something may have come and gone again, so a statement of a version that was passed over is bound again.
//! Invariant: whatever could give the statement another meaning, plan or permission is seen as mattering; too much may be.
//! Names are looked for in the statement's text, so a new object that hides another in the search path is among it.

use std::collections::VecDeque;
use std::sync::Arc;

use base::Oid;
use engine_api::{Catalog, CatalogObject, ConstraintKind};
use parking_lot::Mutex;
use rustc_hash::FxHashSet;

use super::statement::Query;

/// Changes that are remembered. What was bound before the oldest of them is bound anew.
const REMEMBERED: usize = 4096;

/// What became of an object, as far as it may matter to statements.
#[derive(Debug)]
struct Change {
    /// The catalog version with which it was seen.
    version: u64,
    what: What,
    /// The names it had and has.
    names: [Option<Box<str>>; 2],
}

#[derive(Debug)]
enum What {
    /// A schema, or who may use it: it matters to every statement, and to how its names are found.
    Schema,
    /// It matters to every statement: a role or view that was there before, a sequence, a type, a database.
    Anything,
    /// It is new; it matters to those that name it.
    New,
    /// The table itself, or one of its indexes.
    Table(Oid),
    /// The same, of a table that refers to others.
    Referring(Oid, Box<[Oid]>),
}

/// What has happened to the catalog of a server lately.
pub struct Changes {
    known: Mutex<Known>,
}

struct Known {
    /// The catalog that was looked at last.
    catalog: Arc<Catalog>,
    changes: VecDeque<Change>,
    /// Versions that were looked at, in order.
    seen: VecDeque<u64>,
    /// Of versions up to this one not all later changes are known.
    forgotten: u64,
}

/// The tables that a foreign key ties to this one.
fn referenced(object: &CatalogObject) -> Box<[Oid]> {
    let CatalogObject::Table(table) = object else { return Box::default() };
    let keys = table.constraints.iter().filter_map(|constraint| match &constraint.kind {
        ConstraintKind::ForeignKey { table, .. } => Some(*table),
        _ => None,
    });
    keys.collect()
}

fn change(catalog: &Catalog, before: Option<&CatalogObject>, after: Option<&CatalogObject>) -> Option<Change> {
    let object = after.or(before)?;
    // The search paths that a new schema is on are part of what statements are known by; temporary ones come and go.
    if matches!(object, CatalogObject::Schema(schema) if schema.name.starts_with("pg_temp_")) {
        return None;
    }
    let what = match object {
        CatalogObject::Privileges(list) => match catalog.get(list.object).map(|object| &**object) {
            Some(CatalogObject::Table(table)) if table.view.is_none() => What::Table(table.oid),
            Some(CatalogObject::Schema(_)) => What::Schema,
            Some(_) => What::Anything,
            // It went with its object, which says enough.
            None => return None,
        },
        CatalogObject::Index(index) => What::Table(index.table),
        CatalogObject::Table(table) if table.view.is_some() && before.is_some() => What::Anything,
        CatalogObject::Table(table) => {
            let both = [before, after].into_iter().flatten().flat_map(referenced);
            let others: Box<[Oid]> = both.collect();
            if !others.is_empty() {
                What::Referring(table.oid, others)
            } else if before.is_some() {
                What::Table(table.oid)
            } else {
                What::New
            }
        }
        // Any name may be one of its functions'.
        CatalogObject::Schema(_) | CatalogObject::Extension(_) => What::Schema,
        _ if before.is_some() => What::Anything,
        _ => What::New,
    };
    let name = |object: Option<&CatalogObject>| object.map(|object| object.name().to_lowercase().into_boxed_str());
    let (old, new) = (name(before), name(after));
    Some(Change { version: catalog.version, what, names: [old.filter(|old| Some(old) != new.as_ref()), new] })
}

/// What has changed from one catalog to another.
#[expect(clippy::disallowed_methods, reason = "others of the core may want what is known of changes meanwhile")]
fn between(before: &Catalog, after: &Catalog) -> Vec<Change> {
    let mut found = Vec::new();
    for object in after.objects() {
        match before.get(object.oid()) {
            Some(old) if Arc::ptr_eq(old, object) => {}
            old => found.extend(change(after, old.map(|old| &**old), Some(object))),
        }
    }
    let gone = before.objects().filter(|old| after.get(old.oid()).is_none());
    found.extend(gone.filter_map(|old| change(after, Some(old), None)));
    found
}

/// Whether one of these changes calls for the names of a query to be looked up again: that of a schema, of one of its tables, or of
/// something whose name its text has. PostgreSQL looks names up again in these cases only: another role that runs a prepared
/// statement needs no right on the schemas of its names.
fn unsettle<'a>(mut changes: impl Iterator<Item = &'a Change>, query: &Query, text: &str) -> bool {
    let mut text_folded = None;
    changes.any(|change| {
        let by_object = match &change.what {
            What::Schema => true,
            What::Anything | What::New => false,
            What::Table(table) | What::Referring(table, _) => query.depends.contains(table),
        };
        by_object || {
            let text = text_folded.get_or_insert_with(|| text.to_lowercase());
            change.names.iter().flatten().any(|name| names(text, name))
        }
    })
}

/// Whether the names of a query that was bound to one catalog still stand in another one.
pub(super) fn names_stand(query: &Query, text: &str, before: &Arc<Catalog>, after: &Arc<Catalog>) -> bool {
    Arc::ptr_eq(before, after) || !unsettle(between(before, after).iter(), query, text)
}

impl Known {
    /// Looks at what has changed up to a catalog.
    fn follow(&mut self, catalog: &Arc<Catalog>) {
        let before = std::mem::replace(&mut self.catalog, Arc::clone(catalog));
        self.seen.push_back(catalog.version);
        if self.seen.len() > REMEMBERED {
            self.seen.pop_front();
        }
        self.changes.extend(between(&before, catalog));
        while self.changes.len() > REMEMBERED {
            if let Some(oldest) = self.changes.pop_front() {
                self.forgotten = oldest.version;
            }
        }
    }
}

impl Changes {
    /// Nothing has changed since this catalog.
    pub fn since(catalog: Arc<Catalog>) -> Changes {
        let forgotten = catalog.version;
        Changes { known: Mutex::new(Known { seen: [forgotten].into(), catalog, changes: VecDeque::new(), forgotten }) }
    }

    /// Looks at a catalog that a statement is about to be bound to.
    pub fn look(&self, catalog: &Arc<Catalog>) {
        let mut known = self.known.lock();
        if known.catalog.version < catalog.version {
            known.follow(catalog);
        }
    }

    /// Whether nothing has changed from version `since` to `catalog` that matters to a query.
    pub fn spare(&self, query: &Query, text: &str, since: u64, catalog: &Arc<Catalog>) -> bool {
        let mut known = self.known.lock();
        if known.catalog.version < catalog.version {
            known.follow(catalog);
        }
        known.knows(since, catalog) && !known.matter(&query.depends, query.writes, text, since)
    }

    /// Whether the names of a query that was bound to version `since` still stand in a catalog.
    pub(crate) fn spare_names(&self, query: &Query, text: &str, since: u64, catalog: &Arc<Catalog>) -> bool {
        let mut known = self.known.lock();
        if known.catalog.version < catalog.version {
            known.follow(catalog);
        }
        known.knows(since, catalog) && !unsettle(known.later(since), query, text)
    }
}

impl Known {
    /// Whether all changes from version `since` to a catalog are remembered.
    fn knows(&self, since: u64, catalog: &Catalog) -> bool {
        let is_seen = self.seen.binary_search(&since).is_ok();
        is_seen && since >= self.forgotten && since <= catalog.version
    }

    /// The changes after version `since`, the newest first.
    fn later(&self, since: u64) -> impl Iterator<Item = &Change> {
        self.changes.iter().rev().take_while(move |change| change.version > since)
    }

    /// Whether a change after version `since` matters to a statement.
    fn matter(&self, depends: &[Oid], writes: bool, text: &str, since: u64) -> bool {
        let mut text_folded = None;
        let matters = |change: &Change| {
            let is_of = |table: &Oid| depends.contains(table);
            let by_object = match &change.what {
                What::Schema | What::Anything => true,
                What::New => false,
                What::Table(table) => is_of(table),
                What::Referring(table, others) => is_of(table) || (writes && others.iter().any(is_of)),
            };
            by_object || {
                let text = text_folded.get_or_insert_with(|| text.to_lowercase());
                change.names.iter().flatten().any(|name| names(text, name))
            }
        };
        self.later(since).any(matters)
    }
}

/// Whether a statement's text may name an object. Both are folded.
fn names(text: &str, name: &str) -> bool {
    // Names that are written with escapes or doubled quotes are not looked for.
    if text.contains("u&\"") || text.contains("\"\"") {
        return true;
    }
    let is_part = |c: char| c == '_' || c == '$' || c.is_alphanumeric();
    let mut from = 0;
    while let Some(at) = text[from..].find(name) {
        let (start, end) = (from + at, from + at + name.len());
        let before = text[..start].chars().next_back().is_some_and(is_part);
        let after = text[end..].chars().next().is_some_and(is_part);
        if !before && !after {
            return true;
        }
        from = start + name.chars().next().map_or(1, char::len_utf8);
    }
    false
}

/// The tables whose definitions a query depends on: those it names, and for one that writes those that foreign keys tie to
/// them, however far.
pub(super) fn dependencies(named: impl Iterator<Item = Oid>, writes: bool, catalog: &Catalog) -> Box<[Oid]> {
    let mut found: FxHashSet<Oid> = named.collect();
    let mut grown = writes;
    while std::mem::take(&mut grown) {
        for object in catalog.walk() {
            let others = referenced(object);
            let inside = found.contains(&object.oid());
            if inside {
                for other in &others {
                    grown |= found.insert(*other);
                }
            } else if others.iter().any(|other| found.contains(other)) {
                grown |= found.insert(object.oid());
            }
        }
    }
    let mut found: Vec<Oid> = found.into_iter().collect();
    found.sort_unstable();
    found.into()
}

#[cfg(test)]
mod tests {
    use engine_api::{PrivilegesDesc, SchemaDesc};

    use super::*;

    fn with(catalog: &Catalog, object: CatalogObject) -> Catalog {
        let mut next = catalog.clone();
        next.version += 1;
        next.put(Arc::new(object));
        next
    }

    fn schema(oid: u32, name: &str) -> CatalogObject {
        let name = name.to_string();
        CatalogObject::Schema(SchemaDesc { oid: Oid(oid), database: Oid(1), name, owner: Oid(10), comment: None })
    }

    /// Whether a change matters to a statement of some tables with some text.
    fn matters(before: &Catalog, after: &Catalog, tables: &[u32], text: &str) -> bool {
        let catalog = Arc::new(before.clone());
        let mut known = Known { catalog, changes: VecDeque::new(), seen: VecDeque::new(), forgotten: 0 };
        known.follow(&Arc::new(after.clone()));
        let depends: Vec<Oid> = tables.iter().copied().map(Oid).collect();
        known.matter(&depends, false, text, before.version)
    }

    #[test]
    fn only_what_has_to_do_with_a_statement_matters() {
        let empty = Catalog::default();
        let list = |object| CatalogObject::Privileges(PrivilegesDesc::initial(Oid(object)));
        let schemas = with(&empty, schema(500, "app"));
        assert!(matters(&empty, &schemas, &[], "select 1"), "a new schema may be on the search path");
        let temporary = with(&empty, schema(501, "pg_temp_7"));
        assert!(!matters(&empty, &temporary, &[], "select 1"), "a temporary one is part of the key");
        assert!(matters(&schemas, &with(&schemas, list(500)), &[9], "select 1"), "a first access list of a schema");
        assert!(!matters(&schemas, &with(&schemas, list(600)), &[9], "select 1"), "the list of what is gone");
    }

    #[test]
    fn what_is_older_than_the_memory_is_bound_anew() {
        let mut catalog = Catalog::default();
        catalog.version = 5;
        let changes = Changes::since(Arc::new(catalog.clone()));
        assert_eq!(changes.known.lock().forgotten, 5);
        let mut known = changes.known.lock();
        for number in 0..REMEMBERED as u32 + 10 {
            catalog = with(&catalog, schema(1000, &format!("s{number}")));
            known.follow(&Arc::new(catalog.clone()));
        }
        assert_eq!(known.changes.len(), REMEMBERED);
        assert_eq!(known.forgotten, 5 + 10);
    }

    #[test]
    fn names_are_found_as_whole_words() {
        assert!(names("select * from t where a = 1", "t"));
        assert!(names("select * from s.t", "t"));
        assert!(names("select * from \"my table\"", "my table"));
        assert!(!names("select * from tt, t2, _t", "t"));
        assert!(names("select * from tt, t", "t"));
        assert!(names("select * from u&\"\\0074\"", "zzz"));
    }
}
