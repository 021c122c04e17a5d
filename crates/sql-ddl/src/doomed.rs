//! What goes with what is dropped: `findDependentObjects` and `reportDependentObjects` of PostgreSQL, over the rows of `pg_depend`.
//!
//! Responsible for: from objects that are to go to all that goes with them, in PostgreSQL's order, and the words for it.
//! Not responsible for: what depends on what ([`sql_catalog::depend`]), locks, dropping ([`super::drop`]).

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use base::{Oid, Result, work};
use engine_api::{Catalog, CatalogObject, TableDesc, TypeKind};
use sql_catalog::depend::{self, CLASS, CONSTRAINT, DEFAULT, EXTENSION, Edge, End, NAMESPACE, PROC, REWRITE, TYPE};
use sql_functions::extensions;

use super::drop::{describe, describe_column, describe_constraint, kind_name};
use super::names::shown;

/// Why something goes, as bits.
const ORIGINAL: u8 = 1;
const NORMAL: u8 = 2;
const AUTO: u8 = 4;
const INTERNAL: u8 = 8;
const REVERSE: u8 = 16;
/// A part of something that goes as a whole.
const SUBOBJECT: u8 = 32;

/// Something that goes.
#[derive(Clone, Copy, Debug)]
struct Target {
    object: End,
    flags: u8,
    /// What it was found behind.
    dependee: Option<End>,
}

/// What goes with a set of objects.
#[derive(Default)]
pub(super) struct Doomed {
    /// Tables, views, indexes, sequences, types, schemas.
    pub objects: BTreeSet<Oid>,
    /// (table or domain, constraint)
    pub constraints: Vec<(Oid, Oid)>,
    /// (table, column)
    pub defaults: Vec<(Oid, i16)>,
    /// (table, column)
    pub columns: Vec<(Oid, i16)>,
    /// For CASCADE's notice or the refusal: in full, and in short.
    pub messages: Vec<(String, String)>,
}

/// What an object is in `pg_depend`.
pub(super) fn end_of(catalog: &Catalog, oid: Oid) -> End {
    match catalog.get(oid).map(|o| &**o) {
        Some(CatalogObject::Schema(_)) => (NAMESPACE, oid, 0),
        Some(CatalogObject::Type(_)) => (TYPE, oid, 0),
        Some(CatalogObject::Extension(_)) => (EXTENSION, oid, 0),
        _ => (CLASS, oid, 0),
    }
}

/// What goes with these objects.
///
/// # Errors
/// Why the statement should stop.
pub(super) fn doomed(catalog: &Catalog, path: &[Oid], database: Oid, targets: &[End]) -> Result<Doomed> {
    let mut search = Search::new(catalog, database)?;
    search.pending = targets.to_vec();
    for &target in targets {
        search.find(target, ORIGINAL, &mut Vec::new())?;
    }
    search.settle(path)
}

/// The oldest view that uses a column.
///
/// # Errors
/// Why the statement should stop.
pub(super) fn view_using(catalog: &Catalog, database: Oid, table: Oid, column: i16) -> Result<Option<Oid>> {
    let search = Search::new(catalog, database)?;
    let rules = search.on.get(&(CLASS, table)).into_iter().flatten();
    let rules = rules.filter(|edge| edge.to.2 == column && edge.from.0 == REWRITE);
    Ok(rules.filter_map(|edge| search.views.get(&edge.from.1).copied()).min())
}

struct Search<'c> {
    catalog: &'c Catalog,
    database: Oid,
    /// By what is depended on.
    on: BTreeMap<(u32, Oid), Vec<Edge>>,
    /// Internal ones, by what depends.
    owners: BTreeMap<(u32, Oid), Vec<Edge>>,
    /// By their rules.
    views: BTreeMap<Oid, Oid>,
    /// By their defaults.
    columns: BTreeMap<Oid, (&'c TableDesc, i16)>,
    /// What the statement names.
    pending: Vec<End>,
    found: Vec<Target>,
    /// Where an object is in `found`.
    places: BTreeMap<(u32, Oid), Vec<usize>>,
}

impl<'c> Search<'c> {
    fn new(catalog: &'c Catalog, database: Oid) -> Result<Search<'c>> {
        let mut search = Search {
            catalog,
            database,
            on: BTreeMap::new(),
            owners: BTreeMap::new(),
            views: BTreeMap::new(),
            columns: BTreeMap::new(),
            pending: Vec::new(),
            found: Vec::new(),
            places: BTreeMap::new(),
        };
        for edge in depend::edges(catalog, database)? {
            work::step(64)?;
            if edge.from.0 == REWRITE && edge.kind == "i" {
                search.views.insert(edge.from.1, edge.to.1);
            }
            if edge.from.0 == DEFAULT
                && edge.to.0 == CLASS
                && edge.kind != "n"
                && let Some(table) = catalog.table(edge.to.1)
            {
                search.columns.insert(edge.from.1, (table, edge.to.2));
            }
            if matches!(edge.kind, "i" | "e") {
                search.owners.entry((edge.from.0, edge.from.1)).or_default().push(edge);
            }
            search.on.entry((edge.to.0, edge.to.1)).or_default().push(edge);
        }
        Ok(search)
    }

    /// Newer objects come first. Rules are hardly younger than their views, and defaults without a number as their tables.
    fn rank(&self, object: End) -> (Reverse<Oid>, bool, u32, u16) {
        let (class, oid, column) = object;
        let age = match class {
            REWRITE => self.views.get(&oid).copied().unwrap_or(oid),
            DEFAULT if oid.0 >= 1 << 31 => self.columns.get(&oid).map_or(oid, |(table, _)| table.oid),
            _ => oid,
        };
        (Reverse(age), class != REWRITE, class, column as u16)
    }

    /// Whether an object is among what was found; if so it has these flags too.
    fn has_found(&mut self, object: End, flags: u8) -> bool {
        let mut there = false;
        for &place in self.places.get(&(object.0, object.1)).into_iter().flatten() {
            let target = &mut self.found[place];
            if target.object.2 == object.2 {
                target.flags |= flags;
                there = true;
            } else if target.object.2 == 0 {
                there = true;
            } else if object.2 == 0 && flags != 0 {
                target.flags |= SUBOBJECT;
            }
        }
        there
    }

    /// Whether an object is one of those that are being looked behind; if so it has these flags too.
    fn has_stacked(stack: &mut [Target], object: End, flags: u8) -> bool {
        let mut there = false;
        for target in stack.iter_mut().filter(|t| (t.object.0, t.object.1) == (object.0, object.1)) {
            if target.object.2 == object.2 {
                target.flags |= flags;
                there = true;
            } else if target.object.2 == 0 {
                there = true;
            } else if object.2 == 0 && flags != 0 {
                target.flags |= flags | SUBOBJECT;
            }
        }
        there
    }

    fn find(&mut self, object: End, flags: u8, stack: &mut Vec<Target>) -> Result<()> {
        work::step(256)?;
        if Search::has_stacked(stack, object, flags) || self.has_found(object, flags) {
            return Ok(());
        }
        let same = |end: End| (end.0, end.1) == (object.0, object.1);
        let owners = self.owners.get(&(object.0, object.1)).cloned().unwrap_or_default();
        for owner in owners.into_iter().filter(|edge| object.2 == 0 || edge.from.2 == object.2) {
            if object.2 == 0 && same(owner.to) {
                continue;
            }
            if stack.is_empty() {
                if self.pending.contains(&owner.to) {
                    return Ok(());
                }
                continue;
            }
            if Search::has_stacked(stack, owner.to, 0) {
                continue;
            }
            // A part goes with its whole.
            self.find(owner.to, REVERSE, stack)?;
            self.has_found(object, flags);
            return Ok(());
        }
        let mut next: Vec<(End, u8)> = Vec::new();
        for edge in self.on.get(&(object.0, object.1)).into_iter().flatten() {
            work::step(16)?;
            if object.2 != 0 && edge.to.2 != object.2 || object.2 == 0 && same(edge.from) {
                continue;
            }
            let flags = match edge.kind {
                "a" => AUTO,
                "i" | "e" => INTERNAL,
                _ => NORMAL,
            };
            next.push((edge.from, flags));
        }
        next.sort_by_cached_key(|&(object, _)| self.rank(object));
        let dependee = stack.last().map(|target| target.object);
        stack.push(Target { object, flags, dependee });
        for (object, flags) in next {
            self.find(object, flags, stack)?;
        }
        if let Some(target) = stack.pop() {
            self.places.entry((object.0, object.1)).or_default().push(self.found.len());
            self.found.push(target);
        }
        Ok(())
    }

    /// The words and the places of what was found.
    fn settle(self, path: &[Oid]) -> Result<Doomed> {
        let mut doomed = Doomed::default();
        for target in self.found.iter().rev() {
            work::step(256)?;
            self.place(target.object, &mut doomed);
            if target.flags & (ORIGINAL | SUBOBJECT | AUTO | INTERNAL) != 0 {
                continue;
            }
            let short = self.describe(path, target.object);
            let long = target.dependee.map(|dependee| format!("{short} depends on {}", self.describe(path, dependee)));
            doomed.messages.push((long.unwrap_or_else(|| short.clone()), short));
        }
        let gone = &doomed.objects;
        doomed.columns.retain(|(table, _)| !gone.contains(table));
        doomed.constraints.retain(|(of, _)| !gone.contains(of));
        doomed.defaults.retain(|(table, _)| !gone.contains(table));
        Ok(doomed)
    }

    fn place(&self, (class, oid, column): End, doomed: &mut Doomed) {
        match class {
            CONSTRAINT => {
                let of = self.catalog.constrained_by(oid).map(|object| object.oid());
                doomed.constraints.extend(of.map(|of| (of, oid)));
            }
            DEFAULT => {
                let of = self.columns.get(&oid);
                doomed.defaults.extend(of.map(|(table, number)| (table.oid, *number)));
            }
            CLASS if column != 0 => doomed.columns.push((oid, column)),
            REWRITE => {}
            // The type of arrays goes with that of their elements.
            _ if self.catalog.get(oid).is_some() => _ = doomed.objects.insert(oid),
            _ => {}
        }
    }

    fn describe(&self, path: &[Oid], (class, oid, column): End) -> String {
        let catalog = self.catalog;
        match (class, catalog.table(oid)) {
            (CLASS, Some(table)) if column != 0 => describe_column(catalog, path, table, column),
            (CONSTRAINT, _) => match catalog.constrained_by(oid).map(|object| &**object) {
                Some(CatalogObject::Table(table)) => {
                    let constraint = table.constraints.iter().find(|c| c.oid == oid);
                    describe_constraint(catalog, path, table, constraint.map_or("", |c| &c.name))
                }
                Some(CatalogObject::Type(ty)) => {
                    let checks = match &ty.kind {
                        TypeKind::Domain(domain) => domain.checks.as_slice(),
                        TypeKind::Enum(_) => &[],
                    };
                    let check = checks.iter().find(|check| check.oid == oid);
                    format!("constraint {}", check.map_or("", |check| &check.name))
                }
                _ => oid.to_string(),
            },
            (DEFAULT, _) => match self.columns.get(&oid) {
                Some((table, number)) => {
                    let name = &table.columns[*number as usize - 1].name;
                    let of = shown(catalog, path, table.schema, &table.name);
                    format!("default value for column {name} of {} {of}", kind_name(table))
                }
                None => oid.to_string(),
            },
            (PROC, _) => match extensions::function_by_oid(oid.0) {
                Some((_, function)) => {
                    let types: Vec<String> = function.args.iter().map(|ty| types::format_type(*ty, -1)).collect();
                    let name = extensions::shown_name(catalog, self.database, path, function);
                    format!("function {name}({})", types.join(","))
                }
                None => oid.to_string(),
            },
            (REWRITE, _) => match self.views.get(&oid) {
                Some(&view) => format!("rule _RETURN on {}", describe(catalog, path, view)),
                None => oid.to_string(),
            },
            (TYPE, _) if catalog.get(oid).is_none() => match types::element_of(oid) {
                Some(element) => format!("{}[]", describe(catalog, path, element)),
                None => oid.to_string(),
            },
            _ => describe(catalog, path, oid),
        }
    }
}
