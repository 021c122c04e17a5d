//! DROP TABLE, INDEX, SEQUENCE, SCHEMA: what depends on what.

use std::collections::BTreeSet;
use std::sync::Arc;

use base::{Error, Oid, Result, SqlState, work};
use engine_api::{Catalog, CatalogObject, ConstraintKind, TableDesc, TableKind, TableLockMode, TypeKind, oids};
use rupg_sql::nodes::{DropBehavior, DropStmt, Node, ObjectType, RangeVar};
use sql_bind as bind;
use sql_catalog::depend::{CLASS, CONSTRAINT, End};
use sql_parse::names::quote_name;

use super::doomed::{Doomed, doomed, end_of};
use super::names::{display, shown, strings};
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
        T::OBJECT_EXTENSION => ("extension", "DROP EXTENSION"),
        T::OBJECT_FUNCTION | T::OBJECT_PROCEDURE | T::OBJECT_AGGREGATE if stmt.missing_ok => {
            return Ok("DROP FUNCTION");
        }
        _ => return Err(Error::unsupported("this kind of DROP is not supported")),
    };
    let mut targets = Vec::new();
    for node in stmt.objects.iter().flatten() {
        while let Some(oid) = find(cx, stmt, node, kind)? {
            lock_for_drop(cx, oid).await?;
            // Who had it locked may have dropped it: then the name is looked up once more.
            if cx.catalog().get(oid).is_some() {
                targets.push(oid);
                break;
            }
        }
    }
    let cascade = stmt.behavior == DropBehavior::DROP_CASCADE;
    drop_named(cx, &targets, cascade).await?;
    Ok(tag)
}

fn find(cx: &mut Cx<'_>, stmt: &DropStmt, node: &Node, kind: &str) -> Result<Option<Oid>> {
    if kind == "schema" {
        let Node::String(name) = node else { return Ok(None) };
        let database = cx.database();
        let found = cx.catalog().schema(database, name).map(|s| s.oid);
        return found_or_skip(cx, stmt, found, kind, name, SqlState::INVALID_SCHEMA_NAME);
    }
    if let (Node::String(name), "extension") = (node, kind) {
        let found = super::extension::find(cx, name)?.map(|extension| extension.oid);
        return found_or_skip(cx, stmt, found, kind, name, SqlState::UNDEFINED_OBJECT);
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
    if found.is_none()
        && let Some(builtin) = types::type_named(range.relname.as_deref().unwrap_or_default())
    {
        let message = format!("cannot drop type {} because it is required by the database system", builtin.sql_name);
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

/// The index that DROP INDEX CONCURRENTLY names; `None` if it need not be there.
pub(super) fn one_index(cx: &mut Cx<'_>, stmt: &DropStmt) -> Result<Option<Oid>> {
    let [Some(node)] = stmt.objects.as_slice() else {
        return Err(Error::unsupported("DROP INDEX CONCURRENTLY does not support dropping multiple objects"));
    };
    if stmt.behavior == DropBehavior::DROP_CASCADE {
        return Err(Error::unsupported("DROP INDEX CONCURRENTLY does not support CASCADE"));
    }
    find(cx, stmt, node, "index")
}

/// Drops an index that nobody reads through any more, if `now` and nothing depends on it. REQUIRES a lock of its table that keeps
/// other definitions away.
///
/// # Errors
/// 2BP01
pub(super) async fn drop_unused_index(cx: &mut Cx<'_>, index: Oid, now: bool) -> Result<()> {
    let catalog = cx.catalog();
    let path = cx.session.search_path(&catalog);
    refuse_needed(&catalog, &path, index, &BTreeSet::from([index]))?;
    let mut doomed = doomed(&catalog, &path, cx.database(), &[end_of(&catalog, index)])?;
    report(cx, &describe(&catalog, &path, index), std::mem::take(&mut doomed.messages), false)?;
    if now { carry_out(cx, &catalog, doomed).await } else { Ok(()) }
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

/// An object as messages name it.
pub(super) fn describe(catalog: &Catalog, path: &[Oid], oid: Oid) -> String {
    match catalog.get(oid).map(|o| &**o) {
        Some(CatalogObject::Table(t)) => format!("{} {}", kind_name(t), shown(catalog, path, t.schema, &t.name)),
        Some(CatalogObject::Index(i)) => format!("index {}", shown(catalog, path, i.schema, &i.name)),
        Some(CatalogObject::Sequence(s)) => format!("sequence {}", shown(catalog, path, s.schema, &s.name)),
        Some(CatalogObject::Schema(s)) => format!("schema {}", s.name),
        Some(CatalogObject::Extension(e)) => format!("extension {}", e.name),
        Some(CatalogObject::Type(t)) => match catalog.get(t.schema) {
            Some(schema) if !bind::is_type_visible(catalog, path, &t.name, t.oid) => {
                format!("type {}.{}", quote_name(schema.name()), quote_name(&t.name))
            }
            _ => format!("type {}", quote_name(&t.name)),
        },
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

/// A column as messages name it.
pub(super) fn describe_column(catalog: &Catalog, path: &[Oid], table: &TableDesc, number: i16) -> String {
    let name = &table.columns[number as usize - 1].name;
    format!("column {name} of {} {}", kind_name(table), shown(catalog, path, table.schema, &table.name))
}

/// A constraint as messages name it.
pub(super) fn describe_constraint(catalog: &Catalog, path: &[Oid], table: &TableDesc, name: &str) -> String {
    format!("constraint {name} on table {}", shown(catalog, path, table.schema, &table.name))
}

impl Doomed {
    /// Everything that changes or goes.
    fn touched(&self) -> BTreeSet<Oid> {
        let tables = self.constraints.iter().map(|c| c.0).chain(self.defaults.iter().map(|d| d.0));
        let columns = self.columns.iter().map(|c| c.0);
        self.objects.iter().copied().chain(tables).chain(columns).collect()
    }
}

/// Drops all that goes with a column, but not the column.
pub(super) async fn drop_column_users(cx: &mut Cx<'_>, table: &TableDesc, number: i16, cascade: bool) -> Result<()> {
    let (column, what) =
        ((CLASS, table.oid, number), |catalog: &Catalog, path: &[Oid]| describe_column(catalog, path, table, number));
    drop_part(cx, column, what, cascade).await
}

/// Drops a constraint of a table and all that goes with it.
pub(super) async fn drop_constraint(cx: &mut Cx<'_>, table: &TableDesc, oid: Oid, cascade: bool) -> Result<()> {
    let name = table.constraints.iter().find(|c| c.oid == oid).map_or("", |c| &c.name);
    let what = |catalog: &Catalog, path: &[Oid]| describe_constraint(catalog, path, table, name);
    drop_part(cx, (CONSTRAINT, oid, 0), what, cascade).await
}

async fn drop_part(
    cx: &mut Cx<'_>,
    part: End,
    what: impl FnOnce(&Catalog, &[Oid]) -> String,
    cascade: bool,
) -> Result<()> {
    let (catalog, path, mut doomed) = find_and_lock(cx, |_| vec![part]).await?;
    report(cx, &what(&catalog, &path), std::mem::take(&mut doomed.messages), cascade)?;
    doomed.columns.retain(|&(table, number)| (CLASS, table, number) != part);
    carry_out(cx, &catalog, doomed).await
}

/// Units of work that dropping an object, or locking it, is.
const DROPPED: usize = 1 << 12;

/// Drops a set of objects with their parts and – CASCADE – what depends on them.
pub(super) async fn drop_all(cx: &mut Cx<'_>, targets: BTreeSet<Oid>, cascade: bool) -> Result<()> {
    drop_named(cx, &Vec::from_iter(targets), cascade).await
}

/// As [`drop_all`], in the order in which a statement names them, some of them twice perhaps.
async fn drop_named(cx: &mut Cx<'_>, targets: &[Oid], cascade: bool) -> Result<()> {
    let (catalog, path, mut doomed) =
        find_and_lock(cx, |catalog| targets.iter().map(|&oid| end_of(catalog, oid)).collect()).await?;
    let what = match targets {
        [one] => describe(&catalog, &path, *one),
        _ => "desired object(s)".to_string(),
    };
    report(cx, &what, std::mem::take(&mut doomed.messages), cascade)?;
    carry_out(cx, &catalog, doomed).await
}

/// What goes with some targets, all of it locked. While one lock is waited for, others may add to what depends on the targets: it is
/// looked for until nothing is new.
async fn find_and_lock(
    cx: &mut Cx<'_>,
    targets: impl Fn(&Catalog) -> Vec<End>,
) -> Result<(Arc<Catalog>, Vec<Oid>, Doomed)> {
    let mut locked = BTreeSet::new();
    loop {
        let catalog = cx.catalog();
        let path = cx.session.search_path(&catalog);
        let ends = targets(&catalog);
        let objects: BTreeSet<Oid> = ends.iter().map(|end| end.1).collect();
        for end in ends.iter().filter(|end| end.2 == 0) {
            work::step(64)?;
            refuse_needed(&catalog, &path, end.1, &objects)?;
        }
        let doomed = doomed(&catalog, &path, cx.database(), &ends)?;
        let open: Vec<Oid> = doomed.touched().difference(&locked).copied().collect();
        if open.is_empty() {
            return Ok((catalog, path, doomed));
        }
        for oid in open {
            work::step(DROPPED)?;
            lock_for_drop(cx, oid).await?;
            locked.insert(oid);
        }
    }
}

/// Drops what was found.
async fn carry_out(cx: &mut Cx<'_>, catalog: &Catalog, doomed: Doomed) -> Result<()> {
    let Doomed { objects, constraints, defaults, columns, .. } = doomed;
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
        super::alter_table::drop_found_column(cx, table, column).await?;
    }
    for oid in order {
        work::step(DROPPED)?;
        if matches!(catalog.get(oid).map(|o| &**o), Some(CatalogObject::Schema(_))) {
            default_privileges::forget_place(cx, oid).await?;
        }
        // An index or a sequence may have gone with its column.
        if cx.catalog().get(oid).is_some() {
            cx.drop_one(oid)?;
        }
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
    let sequence = catalog.sequence(oid).filter(|sequence| catalog.is_identity_sequence(sequence));
    if let Some((table, number)) = sequence.and_then(|sequence| sequence.owned_by)
        && let Some(table) = catalog.table(table).filter(|table| !targets.contains(&table.oid))
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
