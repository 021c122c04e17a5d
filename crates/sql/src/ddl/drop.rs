//! DROP TABLE, INDEX, SEQUENCE, SCHEMA: what depends on what.

use std::collections::BTreeSet;

use base::{Error, Oid, Result, SqlState, work};
use engine_api::{
    Catalog, CatalogObject, ConstraintKind, Place, Reference, TableDesc, TableKind, TableLockMode, TypeKind, oids,
};
use rupg_sql::nodes::{DropBehavior, DropStmt, Node, ObjectType, RangeVar};

use super::names::{display, quote, shown, strings};
use super::uses::Uses;
use super::{Cx, default_privileges};

pub(super) async fn drop_objects(cx: &mut Cx<'_>, stmt: &DropStmt) -> Result<&'static str> {
    use ObjectType as T;
    let (kind, tag) = match stmt.removeType {
        T::OBJECT_TABLE => ("table", "DROP TABLE"),
        T::OBJECT_INDEX => ("index", "DROP INDEX"),
        T::OBJECT_SEQUENCE => ("sequence", "DROP SEQUENCE"),
        T::OBJECT_SCHEMA => ("schema", "DROP SCHEMA"),
        T::OBJECT_VIEW => ("view", "DROP VIEW"),
        T::OBJECT_MATVIEW => ("materialized view", "DROP MATERIALIZED VIEW"),
        T::OBJECT_TYPE => ("type", "DROP TYPE"),
        T::OBJECT_DOMAIN => ("domain", "DROP DOMAIN"),
        T::OBJECT_EXTENSION => {
            super::extension::refuse_drop(stmt)?;
            return missing_kind(cx, stmt, "extension", "DROP EXTENSION");
        }
        T::OBJECT_FUNCTION | T::OBJECT_PROCEDURE | T::OBJECT_AGGREGATE if stmt.missing_ok => {
            return Ok("DROP FUNCTION");
        }
        _ => return Err(Error::unsupported("this kind of DROP is not supported")),
    };
    let (mut targets, mut named) = (BTreeSet::new(), 0);
    for node in stmt.objects.iter().flatten() {
        while let Some(oid) = find(cx, stmt, node, kind)? {
            lock_for_drop(cx, oid).await?;
            // Who had it locked may have dropped it: then the name is looked up once more.
            if cx.catalog().get(oid).is_some() {
                named += 1;
                targets.insert(oid);
                break;
            }
        }
    }
    let cascade = stmt.behavior == DropBehavior::DROP_CASCADE;
    drop_named(cx, targets, named, cascade).await?;
    Ok(tag)
}

/// DROP of a kind of object that cannot exist yet.
fn missing_kind(cx: &mut Cx<'_>, stmt: &DropStmt, kind: &str, tag: &'static str) -> Result<&'static str> {
    for node in stmt.objects.iter().flatten() {
        let name = match node {
            Node::List(list) => strings(list).join("."),
            Node::String(name) => name.to_string(),
            Node::TypeName(name) => strings(&name.names).join("."),
            _ => String::new(),
        };
        let message = format!("{kind} \"{name}\" does not exist");
        if !stmt.missing_ok {
            return Err(Error::new(SqlState::UNDEFINED_OBJECT, message));
        }
        cx.notice(SqlState::SUCCESSFUL_COMPLETION, format!("{message}, skipping"));
    }
    Ok(tag)
}

fn find(cx: &mut Cx<'_>, stmt: &DropStmt, node: &Node, kind: &str) -> Result<Option<Oid>> {
    if kind == "schema" {
        let Node::String(name) = node else { return Ok(None) };
        let database = cx.database();
        let found = cx.catalog().schema(database, name).map(|s| s.oid);
        return found_or_skip(cx, stmt, found, kind, name, SqlState::INVALID_SCHEMA_NAME);
    }
    if let Node::TypeName(name) = node {
        return find_type(cx, stmt, &name.names, kind);
    }
    let Node::List(list) = node else { return Ok(None) };
    if kind == "type" || kind == "domain" {
        return find_type(cx, stmt, list, kind);
    }
    let mut names = strings(list);
    let range = RangeVar {
        relname: names.pop().map(Into::into),
        schemaname: names.pop().map(Into::into),
        location: -1,
        ..Default::default()
    };
    if skips_schema(cx, stmt, &range) {
        return Ok(None);
    }
    let found = cx.find_relation(&range)?;
    if let Some(object) = &found {
        let actual = match &**object {
            CatalogObject::Table(t) => kind_name(t),
            CatalogObject::Index(_) => "index",
            _ => "sequence",
        };
        if actual != kind {
            let article = if kind == "index" { "an" } else { "a" };
            return Err(Error::new(
                SqlState::WRONG_OBJECT_TYPE,
                format!("\"{}\" is not {article} {kind}", object.name()),
            )
            .hint(format!(
                "Use DROP {} to remove {} {actual}.",
                actual.to_uppercase(),
                if actual == "index" { "an" } else { "a" }
            )));
        }
    }
    let oid = found.map(|o| o.oid());
    let code = if kind == "index" { SqlState::UNDEFINED_OBJECT } else { SqlState::UNDEFINED_TABLE };
    found_or_skip(cx, stmt, oid, kind, range.relname.as_deref().unwrap_or_default(), code)
}

/// Whether the schema of a name is not there, and need not be: says so.
fn skips_schema(cx: &mut Cx<'_>, stmt: &DropStmt, name: &RangeVar) -> bool {
    let Some(schema) = name.schemaname.as_ref().filter(|_| stmt.missing_ok) else { return false };
    let is_missing = cx.catalog().schema(cx.database(), schema).is_none();
    if is_missing {
        cx.notice(SqlState::SUCCESSFUL_COMPLETION, format!("schema \"{schema}\" does not exist, skipping"));
    }
    is_missing
}

fn find_type(cx: &mut Cx<'_>, stmt: &DropStmt, names: &[Option<Node>], kind: &str) -> Result<Option<Oid>> {
    let mut names = strings(names);
    let range = RangeVar {
        relname: names.pop().map(Into::into),
        schemaname: names.pop().map(Into::into),
        location: -1,
        ..Default::default()
    };
    if skips_schema(cx, stmt, &range) {
        return Ok(None);
    }
    let found = cx.find_type(&range)?;
    if kind == "domain" && found.as_ref().is_some_and(|t| !matches!(t.kind, TypeKind::Domain(_))) {
        let message = format!("\"{}\" is not a domain", display(&range));
        return Err(Error::new(SqlState::WRONG_OBJECT_TYPE, message));
    }
    let builtin = found.is_none() && types::type_by_name(range.relname.as_deref().unwrap_or_default()).is_some();
    if builtin {
        let shown = types::type_by_name(range.relname.as_deref().unwrap_or_default()).map_or("", |t| t.sql_name);
        let message = format!("cannot drop type {shown} because it is required by the database system");
        return Err(Error::new(SqlState::DEPENDENT_OBJECTS_STILL_EXIST, message));
    }
    let oid = found.map(|t| t.oid);
    found_or_skip(cx, stmt, oid, "type", &display(&range), SqlState::UNDEFINED_OBJECT)
}

fn found_or_skip(
    cx: &mut Cx<'_>,
    stmt: &DropStmt,
    found: Option<Oid>,
    kind: &str,
    name: &str,
    code: SqlState,
) -> Result<Option<Oid>> {
    if found.is_some() {
        return Ok(found);
    }
    let message = format!("{kind} \"{name}\" does not exist");
    if stmt.missing_ok {
        cx.notice(SqlState::SUCCESSFUL_COMPLETION, format!("{message}, skipping"));
        return Ok(None);
    }
    Err(Error::new(code, message))
}

/// Locks what stands for an object: for an index its table.
async fn lock_for_drop(cx: &mut Cx<'_>, oid: Oid) -> Result<()> {
    let locked = cx.catalog().index(oid).map_or(oid, |index| index.table);
    cx.lock(locked, TableLockMode::AccessExclusive).await?;
    match cx.catalog().table(oid) {
        Some(table) => cx.session.check_not_in_use(oid, &table.name, "DROP TABLE"),
        None => Ok(()),
    }
}

/// Something that depends on what is to go.
#[derive(Clone, Copy, Debug)]
enum Dependent {
    /// An object that goes too.
    Object(Oid),
    /// A constraint of a table or domain.
    Constraint { of: Oid, constraint: Oid },
    /// A default.
    Default { table: Oid, column: i16 },
    /// A column of a type, or one that is generated with something.
    Column { table: Oid, column: i16, generated: bool },
}

/// An object as messages name it.
pub(super) fn describe(catalog: &Catalog, path: &[Oid], oid: Oid) -> String {
    match catalog.get(oid).map(|o| &**o) {
        Some(CatalogObject::Table(t)) => format!("{} {}", kind_name(t), shown(catalog, path, t.schema, &t.name)),
        Some(CatalogObject::Index(i)) => format!("index {}", shown(catalog, path, i.schema, &i.name)),
        Some(CatalogObject::Sequence(s)) => format!("sequence {}", shown(catalog, path, s.schema, &s.name)),
        Some(CatalogObject::Schema(s)) => format!("schema {}", s.name),
        Some(CatalogObject::Type(t)) => {
            let found = path.iter().find(|&&s| catalog.type_named(s, &t.name).is_some());
            match catalog.get(t.schema) {
                Some(schema) if found != Some(&t.schema) => format!("type {}.{}", quote(schema.name()), quote(&t.name)),
                _ => format!("type {}", quote(&t.name)),
            }
        }
        Some(other) => other.name().to_string(),
        None => oid.to_string(),
    }
}

/// What a table is, as messages name it.
pub(super) fn kind_name(table: &TableDesc) -> &'static str {
    match table.kind {
        TableKind::Table => "table",
        TableKind::View => "view",
        TableKind::MaterializedView => "materialized view",
    }
}

/// The views that name a relation.
pub(super) fn views_over(catalog: &Catalog, oid: Oid) -> impl Iterator<Item = &TableDesc> {
    let names = move |t: &&TableDesc| t.view.as_ref().is_some_and(|v| v.relations.iter().any(|r| r.oid == oid));
    catalog.walk().filter_map(|o| catalog.table(o.oid())).filter(names)
}

/// The views that use a column.
pub(super) fn views_using(catalog: &Catalog, oid: Oid, column: i16) -> Vec<Oid> {
    views_over(catalog, oid).filter(|view| uses_column(view, oid, column)).map(|t| t.oid).collect()
}

fn uses_column(view: &TableDesc, oid: Oid, column: i16) -> bool {
    let relations = view.view.iter().flat_map(|v| &v.relations);
    relations.filter(|r| r.oid == oid).any(|r| r.used.contains(&column))
}

/// A column as messages name it.
fn describe_column(catalog: &Catalog, path: &[Oid], table: &TableDesc, number: i16) -> String {
    let name = &table.columns[number as usize - 1].name;
    format!("column {name} of {} {}", kind_name(table), shown(catalog, path, table.schema, &table.name))
}

/// A constraint as messages name it.
pub(super) fn describe_constraint(catalog: &Catalog, path: &[Oid], table: &TableDesc, name: &str) -> String {
    format!("constraint {name} on table {}", shown(catalog, path, table.schema, &table.name))
}

/// What is part of an object and goes with it without asking.
fn parts(catalog: &Catalog, uses: &Uses<'_>, oid: Oid) -> Vec<Oid> {
    catalog.indexes(oid).map(|i| i.oid).chain(uses.sequences(oid).iter().copied()).collect()
}

fn dependents(catalog: &Catalog, uses: &Uses<'_>, path: &[Oid], oid: Oid) -> Result<Vec<(Dependent, String)>> {
    let mut found = Vec::new();
    let this = describe(catalog, path, oid);
    for (table, constraint) in uses.foreign_keys(oid).iter().filter(|(table, _)| table.oid != oid) {
        work::step(256)?;
        let dependent = Dependent::Constraint { of: table.oid, constraint: constraint.oid };
        let what = format!("{} depends on {this}", describe_constraint(catalog, path, table, &constraint.name));
        found.push((dependent, what));
    }
    found.extend(mentions(catalog, uses, path, oid, &this)?);
    for view in uses.views(oid).iter().filter(|v| v.oid != oid) {
        found.push(dependent_object(catalog, path, view.oid, &this)?);
    }
    if let Some(CatalogObject::Type(_)) = catalog.get(oid).map(|o| &**o) {
        found.extend(dependents_of_type(catalog, uses, path, oid, &this)?);
    }
    if let Some(CatalogObject::Schema(_)) = catalog.get(oid).map(|o| &**o) {
        for &inside in uses.members(oid) {
            found.push(dependent_object(catalog, path, inside, &this)?);
        }
    }
    Ok(found)
}

/// What goes with the expressions that speak of an object.
fn mentions(
    catalog: &Catalog,
    uses: &Uses<'_>,
    path: &[Oid],
    oid: Oid,
    this: &str,
) -> Result<Vec<(Dependent, String)>> {
    let mut found = Vec::new();
    for &(object, place) in uses.mentions(oid) {
        work::step(256)?;
        let (dependent, what) = match (object, place) {
            (CatalogObject::Table(table), Place::Default(column) | Place::Generated(column)) => {
                let name = &table.columns[column as usize - 1].name;
                let of = format!("{} {}", kind_name(table), shown(catalog, path, table.schema, &table.name));
                match place {
                    Place::Default(_) => {
                        let what = format!("default value for column {name} of {of}");
                        (Dependent::Default { table: table.oid, column }, what)
                    }
                    // Without what it is computed from a column is nothing.
                    _ => (
                        Dependent::Column { table: table.oid, column, generated: true },
                        format!("column {name} of {of}"),
                    ),
                }
            }
            (CatalogObject::Table(table), Place::Check(constraint)) => {
                let Some(named) = table.constraints.iter().find(|c| c.oid == constraint) else { continue };
                let what = describe_constraint(catalog, path, table, &named.name);
                (Dependent::Constraint { of: table.oid, constraint }, what)
            }
            (CatalogObject::Type(ty), Place::Check(constraint)) => {
                let TypeKind::Domain(domain) = &ty.kind else { continue };
                let Some(named) = domain.checks.iter().find(|c| c.oid == constraint) else { continue };
                (Dependent::Constraint { of: ty.oid, constraint }, format!("constraint {}", named.name))
            }
            (object, _) => (Dependent::Object(object.oid()), describe(catalog, path, object.oid())),
        };
        if !matches!(dependent, Dependent::Object(other) if other == oid) {
            found.push((dependent, format!("{what} depends on {this}")));
        }
    }
    Ok(found)
}

fn dependent_object(catalog: &Catalog, path: &[Oid], oid: Oid, this: &str) -> Result<(Dependent, String)> {
    work::step(256)?;
    Ok((Dependent::Object(oid), format!("{} depends on {this}", describe(catalog, path, oid))))
}

/// What depends on a type, which may be that of the arrays of an object's values.
fn dependents_of_type(
    catalog: &Catalog,
    uses: &Uses<'_>,
    path: &[Oid],
    ty: Oid,
    this: &str,
) -> Result<Vec<(Dependent, String)>> {
    let mut found = Vec::new();
    let columns = uses.columns(ty);
    for &(table, column) in columns {
        work::step(256)?;
        let of = &table.columns[column as usize - 1];
        let kind = kind_name(table);
        let shown = shown(catalog, path, table.schema, &table.name);
        let what = format!("column {} of {kind} {shown} depends on {this}", of.name);
        found.push((Dependent::Column { table: table.oid, column, generated: false }, what));
    }
    for &domain in uses.domains(ty) {
        found.push(dependent_object(catalog, path, domain, this)?);
    }
    if catalog.get(ty).is_none() {
        // What speaks of the type of arrays.
        found.extend(mentions(catalog, uses, path, ty, this)?);
    }
    // A view with a column of the type, that has it from no column it reads.
    for view in uses.views_of_type(ty) {
        let relations = || view.view.iter().flat_map(|v| &v.relations);
        let is_over_view =
            relations().filter_map(|r| catalog.table(r.oid)).any(|t| t.kind == TableKind::View && t.oid != view.oid);
        if !is_over_view && !reads_any(view, columns)? {
            found.push(dependent_object(catalog, path, view.oid, this)?);
        }
    }
    Ok(found)
}

/// Whether a view reads one of some columns.
fn reads_any(view: &TableDesc, columns: &[(&TableDesc, i16)]) -> Result<bool> {
    for relation in view.view.iter().flat_map(|v| &v.relations) {
        let from = columns.partition_point(|(table, _)| table.oid < relation.oid);
        for (_, column) in columns[from..].iter().take_while(|(table, _)| table.oid == relation.oid) {
            work::step(8 + relation.used.len())?;
            if relation.used.contains(column) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// What goes with a set of objects.
#[derive(Default)]
struct Doomed {
    objects: BTreeSet<Oid>,
    /// (table or domain, constraint)
    constraints: Vec<(Oid, Oid)>,
    /// (table, column)
    defaults: Vec<(Oid, i16)>,
    /// (table, column) of a type
    columns: Vec<(Oid, i16)>,
    /// For CASCADE's notice or the refusal: in full, and in short.
    found: Vec<(String, String, Dependent)>,
}

/// Where what goes is looked for.
struct Search<'c> {
    catalog: &'c Catalog,
    path: &'c [Oid],
    uses: Uses<'c>,
    doomed: Doomed,
    /// What is in the lists of the doomed.
    constraints: BTreeSet<Oid>,
    defaults: BTreeSet<(Oid, i16)>,
    columns: BTreeSet<(Oid, i16)>,
}

impl<'c> Search<'c> {
    fn new(catalog: &'c Catalog, path: &'c [Oid], database: Oid, targets: &BTreeSet<Oid>) -> Result<Search<'c>> {
        Ok(Search {
            catalog,
            path,
            uses: Uses::of(catalog, database)?,
            doomed: Doomed { objects: targets.clone(), ..Doomed::default() },
            constraints: BTreeSet::new(),
            defaults: BTreeSet::new(),
            columns: BTreeSet::new(),
        })
    }

    /// As in PostgreSQL the newest dependents come first, each after what depends on it; they are told in reverse.
    fn visit(&mut self, oid: Oid) -> Result<()> {
        let (catalog, path) = (self.catalog, self.path);
        for part in parts(catalog, &self.uses, oid) {
            if self.doomed.objects.insert(part) {
                self.visit(part)?;
            }
        }
        let found = dependents(catalog, &self.uses, path, oid)?;
        self.visit_all(found)?;
        if let Some(CatalogObject::Type(desc)) = catalog.get(oid).map(|o| &**o) {
            let this = format!("{}[]", describe(catalog, path, oid));
            let found = dependents_of_type(catalog, &self.uses, path, desc.array, &this)?;
            self.visit_all(found)?;
        }
        Ok(())
    }

    /// What uses a column: views, and columns that are generated from it.
    fn visit_column(&mut self, table: Oid, column: i16, this: &str) -> Result<()> {
        let views = self.uses.views(table).iter().filter(|view| uses_column(view, table, column));
        let views = views.map(|view| {
            let message = format!("{} depends on {this}", describe(self.catalog, self.path, view.oid));
            (Dependent::Object(view.oid), message)
        });
        let mut found: Vec<_> = views.collect();
        let generated = self.catalog.table(table).into_iter().flat_map(|desc| {
            let columns = desc.live_columns().filter(move |c| c.number != column);
            columns
                .filter(move |c| c.generated.as_ref().is_some_and(|e| e.speaks_of_column(column)))
                .map(move |c| (desc, c))
        });
        found.extend(generated.map(|(desc, other)| {
            let what = describe_column(self.catalog, self.path, desc, other.number);
            let dependent = Dependent::Column { table, column: other.number, generated: true };
            (dependent, format!("{what} depends on {this}"))
        }));
        self.visit_all(found)
    }

    fn visit_all(&mut self, mut dependents: Vec<(Dependent, String)>) -> Result<()> {
        // Defaults are objects of their own, made in the order of the columns.
        let rank = |dependent: &Dependent| match dependent {
            Dependent::Object(oid) => (*oid, 0),
            Dependent::Constraint { constraint, .. } => (*constraint, 0),
            Dependent::Default { table, column } | Dependent::Column { table, column, generated: true } => {
                let of = self.catalog.table(*table).and_then(|t| t.columns.get(*column as usize - 1));
                of.and_then(|column| column.default_oid).map_or((*table, *column), |oid| (oid, 0))
            }
            Dependent::Column { table, .. } => (*table, 0),
        };
        dependents.sort_by_key(|(dependent, _)| std::cmp::Reverse(rank(dependent)));
        for (dependent, message) in dependents {
            work::step(256)?;
            let short = message.split(" depends on ").next().unwrap_or_default().to_string();
            match dependent {
                Dependent::Object(other) if self.doomed.objects.insert(other) => {
                    self.visit(other)?;
                    self.doomed.found.push((message, describe(self.catalog, self.path, other), dependent));
                }
                Dependent::Constraint { of, constraint } if self.constraints.insert(constraint) => {
                    self.doomed.constraints.push((of, constraint));
                    self.doomed.found.push((message, short, dependent));
                }
                Dependent::Default { table, column } if self.defaults.insert((table, column)) => {
                    self.doomed.defaults.push((table, column));
                    self.doomed.found.push((message, short, dependent));
                }
                Dependent::Column { table, column, .. } if self.columns.insert((table, column)) => {
                    self.doomed.columns.push((table, column));
                    self.visit_column(table, column, &short)?;
                    self.doomed.found.push((message, short, dependent));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

impl Doomed {
    fn of(catalog: &Catalog, path: &[Oid], database: Oid, targets: &BTreeSet<Oid>) -> Result<Doomed> {
        let mut search = Search::new(catalog, path, database, targets)?;
        targets.iter().try_for_each(|&target| search.visit(target))?;
        Ok(search.doomed.settle(catalog))
    }

    /// What goes with a column.
    fn with_column(
        catalog: &Catalog,
        path: &[Oid],
        database: Oid,
        (table, column): (Oid, i16),
        this: &str,
    ) -> Result<Doomed> {
        let mut search = Search::new(catalog, path, database, &BTreeSet::new())?;
        search.columns.insert((table, column));
        search.visit_column(table, column, this)?;
        Ok(search.doomed.settle(catalog))
    }

    /// Parts of tables and of columns that go themselves are not worth a word.
    fn settle(mut self, catalog: &Catalog) -> Doomed {
        let gone = &self.objects;
        self.columns.retain(|(table, _)| !gone.contains(table));
        let columns: BTreeSet<(Oid, i16)> = self.columns.iter().copied().collect();
        let has_gone = |dependent: &Dependent| match *dependent {
            Dependent::Object(oid) => catalog.index(oid).is_some_and(|index| {
                let uses = |number: i16| columns.contains(&(index.table, number));
                let texts = index.expressions.iter().map(|e| &e.text).chain(&index.predicate);
                let mut spoken = texts.flat_map(|text| text.references());
                gone.contains(&index.table)
                    || index.keys.iter().any(|key| uses(key.column))
                    || spoken.any(|r| matches!(r, Reference::Column(number) if uses(*number)))
            }),
            Dependent::Constraint { of, constraint } => {
                let table = catalog.table(of).into_iter().flat_map(|table| &table.constraints);
                let of_column = |number: &i16| columns.contains(&(of, *number));
                gone.contains(&of) || table.filter(|c| c.oid == constraint).any(|c| c.columns.iter().any(of_column))
            }
            Dependent::Default { table, column } => gone.contains(&table) || columns.contains(&(table, column)),
            Dependent::Column { table, .. } => gone.contains(&table),
        };
        self.constraints.retain(|&(of, constraint)| !has_gone(&Dependent::Constraint { of, constraint }));
        self.defaults.retain(|&(table, column)| !has_gone(&Dependent::Default { table, column }));
        self.found.retain(|(_, _, dependent)| !has_gone(dependent));
        self.found.reverse();
        self
    }

    fn messages(&self) -> Vec<(String, String)> {
        self.found.iter().map(|(long, short, _)| (long.clone(), short.clone())).collect()
    }

    /// Everything that changes or goes.
    fn touched(&self) -> BTreeSet<Oid> {
        let tables = self.constraints.iter().map(|c| c.0).chain(self.defaults.iter().map(|d| d.0));
        let columns = self.columns.iter().map(|c| c.0);
        self.objects.iter().copied().chain(tables).chain(columns).collect()
    }
}

/// Drops what uses a column, which is about to go: views, and columns that are generated from it.
pub(super) async fn drop_column_users(cx: &mut Cx<'_>, table: &TableDesc, number: i16, cascade: bool) -> Result<()> {
    let catalog = cx.catalog();
    let path = cx.session.search_path(&catalog);
    let column = describe_column(&catalog, &path, table, number);
    let doomed = Doomed::with_column(&catalog, &path, cx.database(), (table.oid, number), &column)?;
    report(cx, &column, doomed.messages(), cascade)?;
    for oid in doomed.objects {
        lock_for_drop(cx, oid).await?;
        if cx.catalog().get(oid).is_some() {
            cx.drop_one(oid)?;
        }
    }
    for (table, column) in doomed.columns {
        super::alter_table::drop_column_of_type(cx, table, column).await?;
    }
    Ok(())
}

/// Units of work that dropping an object, or locking it, is.
const DROPPED: usize = 1 << 12;

/// Drops a set of objects with their parts and – CASCADE – what depends on them.
pub(super) async fn drop_all(cx: &mut Cx<'_>, targets: BTreeSet<Oid>, cascade: bool) -> Result<()> {
    let named = targets.len();
    drop_named(cx, targets, named, cascade).await
}

/// As [`drop_all`]; the statement has named so many, some of them twice perhaps.
async fn drop_named(cx: &mut Cx<'_>, targets: BTreeSet<Oid>, named: usize, cascade: bool) -> Result<()> {
    let mut locked = BTreeSet::new();
    // While one lock is waited for, others may add to what depends on the targets: it is looked for until all of it is
    // locked.
    let (catalog, path, doomed) = loop {
        let catalog = cx.catalog();
        let path = cx.session.search_path(&catalog);
        for &oid in &targets {
            work::step(64)?;
            refuse_needed(&catalog, &path, oid, &targets)?;
        }
        let doomed = Doomed::of(&catalog, &path, cx.database(), &targets)?;
        let open: Vec<Oid> = doomed.touched().difference(&locked).copied().collect();
        if open.is_empty() {
            break (catalog, path, doomed);
        }
        for oid in open {
            work::step(DROPPED)?;
            lock_for_drop(cx, oid).await?;
            locked.insert(oid);
        }
    };
    let messages = doomed.messages();
    let Doomed { objects, constraints, defaults, columns, .. } = doomed;
    let what = match named {
        1 => describe(&catalog, &path, *targets.first().expect("one")),
        _ => "desired object(s)".to_string(),
    };
    report(cx, &what, messages, cascade)?;
    for (of, constraint) in constraints {
        work::step(DROPPED)?;
        let catalog = cx.catalog();
        if let Some(mut desc) = catalog.table(of).cloned() {
            desc.constraints.retain(|c| c.oid != constraint);
            cx.put(CatalogObject::Table(desc)).await?;
        } else if let Some(mut desc) = catalog.user_type(of).cloned() {
            if let TypeKind::Domain(domain) = &mut desc.kind {
                domain.checks.retain(|c| c.oid != constraint);
            }
            cx.put(CatalogObject::Type(desc)).await?;
        }
    }
    for (table, column) in defaults {
        if let Some(mut desc) = cx.catalog().table(table).cloned() {
            desc.columns[column as usize - 1].default = None;
            cx.put(CatalogObject::Table(desc)).await?;
        }
    }
    // Parts before wholes: an index goes before its table.
    let rank = |oid: &Oid| match catalog.get(*oid).map(|o| &**o) {
        Some(CatalogObject::Index(_)) => 0,
        Some(CatalogObject::Sequence(_)) => 1,
        Some(CatalogObject::Table(_)) => 2,
        _ => 3,
    };
    let mut order: Vec<Oid> = objects.into_iter().collect();
    order.sort_by_key(rank);
    // Views go before the columns that they use.
    let of = |oid: Oid| catalog.index(oid).map_or(oid, |i| i.table);
    let is_view = |oid: &Oid| catalog.table(of(*oid)).is_some_and(|t| t.kind != TableKind::Table);
    let (views, order): (Vec<Oid>, Vec<Oid>) = order.into_iter().partition(is_view);
    for oid in views {
        cx.drop_one(oid)?;
    }
    // Generated columns go before those that they are computed from, which would tell of them once more.
    let is_generated = |&(table, number): &(Oid, i16)| {
        catalog.table(table).is_some_and(|t| t.columns[number as usize - 1].generated.is_some())
    };
    let (generated, others): (Vec<_>, Vec<_>) = columns.into_iter().partition(is_generated);
    for (table, column) in generated.into_iter().chain(others) {
        super::alter_table::drop_column_of_type(cx, table, column).await?;
    }
    for oid in order {
        work::step(DROPPED)?;
        if matches!(catalog.get(oid).map(|o| &**o), Some(CatalogObject::Schema(_))) {
            default_privileges::forget_place(cx, oid).await?;
        }
        cx.drop_one(oid)?;
    }
    Ok(())
}

/// Objects that go only with what they belong to.
fn refuse_needed(catalog: &Catalog, path: &[Oid], oid: Oid, targets: &BTreeSet<Oid>) -> Result<()> {
    if [oids::SCHEMA_PG_CATALOG, oids::SCHEMA_INFORMATION_SCHEMA].contains(&oid) {
        return Err(Error::new(
            SqlState::DEPENDENT_OBJECTS_STILL_EXIST,
            format!("cannot drop {} because it is required by the database system", describe(catalog, path, oid)),
        ));
    }
    if let Some((table, number)) = catalog.sequence(oid).and_then(|sequence| sequence.owned_by)
        && let Some(table) = catalog.table(table).filter(|table| !targets.contains(&table.oid))
        && table.live_columns().any(|column| column.number == number && column.identity.is_some())
    {
        let column = describe_column(catalog, path, table, number);
        let message = format!("cannot drop {} because {column} requires it", describe(catalog, path, oid));
        return Err(Error::new(SqlState::DEPENDENT_OBJECTS_STILL_EXIST, message)
            .hint(format!("You can drop {column} instead.")));
    }
    let Some(index) = catalog.index(oid) else { return Ok(()) };
    let Some(table) = catalog.table(index.table) else { return Ok(()) };
    for constraint in &table.constraints {
        let own = matches!(constraint.kind,
            ConstraintKind::PrimaryKey { index } | ConstraintKind::Unique { index } if index == oid);
        if own {
            let what = describe_constraint(catalog, path, table, &constraint.name);
            return Err(Error::new(
                SqlState::DEPENDENT_OBJECTS_STILL_EXIST,
                format!("cannot drop {} because {what} requires it", describe(catalog, path, oid)),
            )
            .hint(format!("You can drop {what} instead.")));
        }
    }
    Ok(())
}

/// Tells what depends on `what`: an error, or a notice with CASCADE.
pub(super) fn report(cx: &mut Cx<'_>, what: &str, messages: Vec<(String, String)>, cascade: bool) -> Result<()> {
    if messages.is_empty() {
        return Ok(());
    }
    if !cascade {
        let (objects, them) = match what {
            "desired object(s)" => ("other objects", "them"),
            _ => ("other objects", "it"),
        };
        let detail: Vec<String> = messages.into_iter().map(|(m, _)| m).collect();
        return Err(Error::new(
            SqlState::DEPENDENT_OBJECTS_STILL_EXIST,
            format!("cannot drop {what} because {objects} depend on {them}"),
        )
        .detail(detail.join("\n"))
        .hint("Use DROP ... CASCADE to drop the dependent objects too."));
    }
    match messages.as_slice() {
        [(_, one)] => cx.notice(SqlState::SUCCESSFUL_COMPLETION, format!("drop cascades to {one}")),
        many => {
            let detail: Vec<String> = many.iter().map(|(_, short)| format!("drop cascades to {short}")).collect();
            cx.session.push_notice(
                Error::with_severity(
                    base::Severity::Notice,
                    SqlState::SUCCESSFUL_COMPLETION,
                    format!("drop cascades to {} other objects", many.len()),
                )
                .detail(detail.join("\n")),
            );
        }
    }
    Ok(())
}
