//! pg_class, pg_attribute, pg_index, pg_attrdef, pg_sequence.

use std::collections::BTreeSet;

use base::Oid;
use engine_api::{Catalog, CatalogObject, ColumnDesc, Expression, Identity, Persistence, TableDesc, TableKind, oids};
use sql_bind::collation;
use sql_functions::EvalContext;
use sql_ir::Ty;
use sql_ir::system_column::SystemColumn;
use sql_ir::system_relation::{Asked, SystemRelation};
use types::{Array, Datum, type_info};

use super::keys;
use super::{SystemRows, access, oid, row, text};

/// Whether an object belongs to the session's database.
pub(super) fn in_database(catalog: &Catalog, schema: Oid, cx: &dyn EvalContext) -> bool {
    match catalog.get(schema).map(|o| &**o) {
        Some(CatalogObject::Schema(s)) => !s.database.is_valid() || s.database == cx.identity().database_oid,
        _ => false,
    }
}

/// The tables of the session's database.
pub(super) fn tables_of<'c>(catalog: &'c Catalog, cx: &dyn EvalContext) -> Vec<&'c TableDesc> {
    let database = cx.identity().database_oid;
    let here = |schema: Oid| match catalog.get(schema).map(|o| &**o) {
        Some(CatalogObject::Schema(s)) => s.database == database,
        _ => false,
    };
    tables_anywhere(catalog).filter(|t| here(t.schema)).collect()
}

/// The tables of all databases.
fn tables_anywhere(catalog: &Catalog) -> impl Iterator<Item = &TableDesc> {
    catalog.walk().filter_map(|object| match &**object {
        CatalogObject::Table(table) => Some(table),
        _ => None,
    })
}

struct Class<'a> {
    oid: Oid,
    name: &'a str,
    schema: Oid,
    owner: Oid,
    kind: &'a str,
    columns: usize,
    checks: usize,
    has_index: bool,
    has_triggers: bool,
    options: &'a [(String, String)],
    access_method: u32,
    /// Rows when it was analysed.
    tuples: Option<f64>,
    persistence: Persistence,
    /// A materialized view that is yet to be filled.
    is_unfilled: bool,
    acl: Datum,
}

fn class(rel: &SystemRelation, c: Class<'_>) -> Vec<Datum> {
    let options = if c.options.is_empty() {
        Datum::Null
    } else {
        let values: Vec<Datum> = c.options.iter().map(|(k, v)| text(format!("{k}={v}"))).collect();
        text_array(values)
    };
    row(
        rel,
        vec![
            ("oid", oid(c.oid)),
            ("relname", text(c.name)),
            ("relnamespace", oid(c.schema)),
            ("reltype", Datum::Oid(0)),
            ("reloftype", Datum::Oid(0)),
            ("relowner", oid(c.owner)),
            ("relam", Datum::Oid(c.access_method)),
            ("relfilenode", oid(c.oid)),
            ("reltablespace", Datum::Oid(0)),
            ("relpages", Datum::Int4(c.tuples.map_or(0, |rows| (rows / 60.0).ceil() as i32))),
            ("reltuples", Datum::Float4(c.tuples.map_or(-1.0, |rows| rows as f32))),
            ("relallvisible", Datum::Int4(0)),
            ("reltoastrelid", Datum::Oid(0)),
            ("relhasindex", Datum::Bool(c.has_index)),
            ("relisshared", Datum::Bool(false)),
            (
                "relpersistence",
                text(match c.persistence {
                    Persistence::Permanent => "p",
                    Persistence::Unlogged => "u",
                    Persistence::Temporary => "t",
                }),
            ),
            ("relkind", text(c.kind)),
            ("relnatts", Datum::Int2(c.columns as i16)),
            ("relchecks", Datum::Int2(c.checks as i16)),
            ("relhasrules", Datum::Bool(["v", "m"].contains(&c.kind))),
            ("relhastriggers", Datum::Bool(c.has_triggers)),
            ("relhassubclass", Datum::Bool(false)),
            ("relrowsecurity", Datum::Bool(false)),
            ("relforcerowsecurity", Datum::Bool(false)),
            ("relispopulated", Datum::Bool(!c.is_unfilled)),
            (
                "relreplident",
                text(if ["r", "m"].contains(&c.kind) && c.oid.0 >= oids::FIRST_USER.0 { "d" } else { "n" }),
            ),
            ("relispartition", Datum::Bool(false)),
            ("relrewrite", Datum::Oid(0)),
            ("relfrozenxid", Datum::Oid(0)),
            ("relminmxid", Datum::Oid(0)),
            ("reloptions", options),
            ("relacl", c.acl),
        ],
    )
}

pub(super) fn text_array(values: Vec<Datum>) -> Datum {
    let dims = if values.is_empty() { Vec::new() } else { vec![(values.len() as i32, 1)] };
    Datum::Array(std::sync::Arc::new(Array { element: types::oid::TEXT, dims, values }))
}

pub(super) fn int2_array(values: &[i16], lower: i32) -> Datum {
    let dims = if values.is_empty() { Vec::new() } else { vec![(values.len() as i32, lower)] };
    let values = values.iter().map(|&v| Datum::Int2(v)).collect();
    Datum::Array(std::sync::Arc::new(Array { element: types::oid::INT2, dims, values }))
}

pub(super) fn oid_array(values: &[u32], lower: i32) -> Datum {
    let dims = if values.is_empty() { Vec::new() } else { vec![(values.len() as i32, lower)] };
    let values = values.iter().map(|&v| Datum::Oid(v)).collect();
    Datum::Array(std::sync::Arc::new(Array { element: types::oid::OID, dims, values }))
}

pub(super) fn classes(rel: &SystemRelation, cx: &dyn EvalContext) -> SystemRows {
    classes_of(rel, cx, Asked::All)
}

pub(super) fn classes_of(rel: &SystemRelation, cx: &dyn EvalContext, asked: Asked<'_>) -> SystemRows {
    let catalog = cx.catalog();
    let mut rows = Vec::new();
    let mut referenced = None;
    for object in keys::objects(asked, &catalog) {
        if !in_database(&catalog, object.namespace().1, cx) {
            continue;
        }
        let entry = match object {
            CatalogObject::Table(t) => Class {
                oid: t.oid,
                name: &t.name,
                schema: t.schema,
                owner: t.owner,
                kind: match t.kind {
                    TableKind::Table => "r",
                    TableKind::View => "v",
                    TableKind::MaterializedView => "m",
                },
                columns: t.columns.len(),
                checks: t.constraints.iter().filter(|c| is_check(c)).count(),
                has_index: catalog.indexes(t.oid).next().is_some(),
                // psql looks for foreign keys where the table has triggers.
                has_triggers: has_triggers(t, referenced.get_or_insert_with(|| referenced_tables(&catalog))),
                options: &t.options,
                access_method: if t.kind == TableKind::View { 0 } else { 2 },
                tuples: cx.statistics(t.oid).map(|s| s.rows),
                persistence: t.persistence,
                is_unfilled: t.kind == TableKind::MaterializedView && !t.view.as_ref().is_some_and(|v| v.populated),
                acl: access::of_object(&catalog, t.oid),
            },
            CatalogObject::Index(i) => Class {
                oid: i.oid,
                name: &i.name,
                schema: i.schema,
                owner: catalog.table(i.table).map_or(oids::ROLE_POSTGRES, |t| t.owner),
                kind: "i",
                columns: i.keys.len() + i.include.len(),
                checks: 0,
                has_index: false,
                has_triggers: false,
                options: &i.options,
                access_method: if i.hash { 405 } else { 403 },
                tuples: cx.statistics(i.table).map(|s| s.rows),
                persistence: catalog.table(i.table).map_or(Persistence::Permanent, |t| t.persistence),
                is_unfilled: false,
                acl: Datum::Null,
            },
            CatalogObject::Sequence(s) => Class {
                oid: s.oid,
                name: &s.name,
                schema: s.schema,
                owner: s.owner,
                kind: "S",
                columns: 3,
                checks: 0,
                has_index: false,
                has_triggers: false,
                options: &[],
                access_method: 0,
                tuples: Some(1.0),
                persistence: if sql_parse::names::is_temporary(&catalog, s.schema) {
                    Persistence::Temporary
                } else if s.unlogged {
                    Persistence::Unlogged
                } else {
                    Persistence::Permanent
                },
                is_unfilled: false,
                acl: access::of_object(&catalog, s.oid),
            },
            _ => continue,
        };
        rows.push(class(rel, entry));
    }
    for system in super::all().filter(|system| asked.takes(system.oid, system.name)) {
        let pg = system.schema == "pg_catalog";
        rows.push(class(
            rel,
            Class {
                oid: system.oid,
                name: system.name,
                schema: if pg { oids::SCHEMA_PG_CATALOG } else { oids::SCHEMA_INFORMATION_SCHEMA },
                owner: oids::ROLE_POSTGRES,
                kind: if system.is_view() { "v" } else { "r" },
                columns: system.columns.len(),
                checks: 0,
                has_index: false,
                has_triggers: false,
                options: &[],
                access_method: if system.is_view() { 0 } else { 2 },
                persistence: Persistence::Permanent,
                is_unfilled: false,
                acl: system_acl(system.name),
                tuples: None,
            },
        ));
    }
    Ok(rows)
}

/// Everybody may read system relations, but for a few.
pub(super) fn system_acl(name: &str) -> Datum {
    let mut items = vec![text("postgres=arwdDxt/postgres")];
    if !sql_parse::privileges::is_secret(name) {
        items.push(text("=r/postgres"));
    }
    if sql_parse::privileges::reader_of(name).is_some() {
        items.push(text("pg_read_all_stats=r/postgres"));
    }
    text_array(items)
}

fn is_check(c: &engine_api::ConstraintDesc) -> bool {
    matches!(c.kind, engine_api::ConstraintKind::Check { .. })
}

fn is_foreign_key(c: &engine_api::ConstraintDesc) -> bool {
    matches!(c.kind, engine_api::ConstraintKind::ForeignKey { .. })
}

/// Whether a table has triggers, which foreign keys are in PostgreSQL on both sides.
pub(super) fn has_triggers(table: &TableDesc, referenced: &BTreeSet<Oid>) -> bool {
    table.constraints.iter().any(is_foreign_key) || referenced.contains(&table.oid)
}

/// The tables that foreign keys point at.
pub(super) fn referenced_tables(catalog: &Catalog) -> BTreeSet<Oid> {
    let target = |c: &engine_api::ConstraintDesc| match c.kind {
        engine_api::ConstraintKind::ForeignKey { table, .. } => Some(table),
        _ => None,
    };
    tables_anywhere(catalog).flat_map(|table| table.constraints.iter().filter_map(target)).collect()
}

struct Attribute<'a> {
    relation: Oid,
    name: &'a str,
    type_oid: Oid,
    typmod: i32,
    number: i16,
    not_null: bool,
    has_default: bool,
    has_missing: bool,
    identity: &'a str,
    generated: bool,
    dropped: bool,
    collation: u32,
    acl: Datum,
}

/// The system columns of a table or a sequence.
fn system_attributes(rel: &SystemRelation, relation: Oid, catalog: &Catalog, rows: &mut Vec<Vec<Datum>>) {
    for column in SystemColumn::ALL {
        let attribute = Attribute {
            relation,
            name: column.name(),
            type_oid: column.type_oid(),
            typmod: -1,
            number: column.number(),
            not_null: true,
            has_default: false,
            has_missing: false,
            identity: "",
            generated: false,
            dropped: false,
            collation: 0,
            acl: access::of_column(catalog, relation, column.number()),
        };
        rows.push(self::attribute(rel, attribute));
    }
}

fn attribute(rel: &SystemRelation, a: Attribute<'_>) -> Vec<Datum> {
    let info = type_info(a.type_oid);
    let info = info.as_deref();
    row(
        rel,
        vec![
            ("attrelid", oid(a.relation)),
            ("attname", text(a.name)),
            ("atttypid", oid(if a.dropped { Oid(0) } else { a.type_oid })),
            ("attstattarget", Datum::Int4(if a.number < 0 { 0 } else { -1 })),
            ("attlen", Datum::Int2(info.map_or(-1, |i| i.len))),
            ("attnum", Datum::Int2(a.number)),
            ("attndims", Datum::Int4(info.is_some_and(|i| i.category == 'A') as i32)),
            ("attcacheoff", Datum::Int4(-1)),
            ("atttypmod", Datum::Int4(a.typmod)),
            ("attbyval", Datum::Bool(info.is_some_and(|i| i.by_val))),
            ("attalign", text(info.map_or('i', |i| i.align).encode_utf8(&mut [0; 4]))),
            ("attstorage", text(storage_of(a.type_oid))),
            ("attcompression", text("")),
            ("attnotnull", Datum::Bool(a.not_null)),
            ("atthasdef", Datum::Bool(a.has_default)),
            ("atthasmissing", Datum::Bool(a.has_missing)),
            ("attidentity", text(a.identity)),
            ("attgenerated", text(if a.generated { "s" } else { "" })),
            ("attisdropped", Datum::Bool(a.dropped)),
            ("attislocal", Datum::Bool(true)),
            ("attinhcount", Datum::Int4(0)),
            ("attcollation", Datum::Oid(a.collation)),
            ("attacl", a.acl),
        ],
    )
}

/// How PostgreSQL stores long values of a type.
pub(super) fn storage_of(ty: Oid) -> &'static str {
    let ty = types::user::base_type(ty, -1).0;
    match type_info(ty) {
        Some(_) if [types::oid::NUMERIC, types::oid::INET, types::oid::CIDR].contains(&ty) => "m",
        Some(info) if info.len == -1 => "x",
        _ => "p",
    }
}

pub(super) fn attributes(rel: &SystemRelation, cx: &dyn EvalContext) -> SystemRows {
    attributes_of(rel, cx, Asked::All)
}

pub(super) fn attributes_of(rel: &SystemRelation, cx: &dyn EvalContext, asked: Asked<'_>) -> SystemRows {
    let catalog = cx.catalog();
    let mut rows = Vec::new();
    // The columns of an index come with those of its table.
    let of_table = match asked {
        Asked::Of(oid) => Asked::Of(catalog.index(oid).map_or(oid, |index| index.table)),
        _ => Asked::All,
    };
    for table in keys::tables(of_table, &catalog, cx) {
        if table.kind != TableKind::View {
            system_attributes(rel, table.oid, &catalog, &mut rows);
        }
        for column in &table.columns {
            rows.push(attribute(
                rel,
                Attribute {
                    relation: table.oid,
                    name: &column.name,
                    type_oid: column.type_oid,
                    typmod: column.typmod,
                    number: column.number,
                    not_null: column.not_null,
                    has_default: shown_default(column).is_some(),
                    has_missing: column.missing.is_some(),
                    identity: match column.identity {
                        Some(Identity::Always) => "a",
                        Some(Identity::ByDefault) => "d",
                        None => "",
                    },
                    generated: column.generated.is_some(),
                    dropped: column.dropped,
                    collation: if column.dropped { 0 } else { collation::of_column(&catalog, column) },
                    acl: access::of_column(&catalog, table.oid, column.number),
                },
            ));
        }
        for index in catalog.indexes(table.oid) {
            let included = index.include.iter().map(|&n| (n, None));
            let keys = index.keys.iter().enumerate().map(|(at, key)| (key.column, index.expression(at)));
            for (i, (number, expression)) in keys.chain(included).enumerate() {
                let collation = match i < index.keys.len() {
                    true => collation::of_key(&catalog, table, index, i),
                    false => 0,
                };
                let attribute = match expression {
                    Some(expression) => {
                        plain(rel, index.oid, (&expression.name, false), Ty::of(expression.type_oid), collation, i)
                    }
                    None => {
                        let column = &table.columns[number as usize - 1];
                        let ty = Ty { oid: column.type_oid, typmod: column.typmod };
                        plain(rel, index.oid, (&column.name, false), ty, collation, i)
                    }
                };
                rows.push(attribute);
            }
        }
    }
    let sequences = keys::objects(asked, &catalog).into_iter().filter_map(|object| match object {
        CatalogObject::Sequence(sequence) => Some(sequence),
        _ => None,
    });
    for sequence in sequences.filter(|s| in_database(&catalog, s.schema, cx)) {
        use types::oid::{BOOL, INT8};
        system_attributes(rel, sequence.oid, &catalog, &mut rows);
        for (i, (name, ty)) in [("last_value", INT8), ("log_cnt", INT8), ("is_called", BOOL)].iter().enumerate() {
            rows.push(plain(rel, sequence.oid, (name, true), Ty::of(*ty), 0, i));
        }
    }
    for system in super::all().filter(|system| asked.takes(system.oid, system.name)) {
        for (i, (name, ty)) in system.columns.iter().enumerate() {
            let of_type = Ty { oid: *ty, typmod: system.typmod(i) };
            let said = (*name, system.is_not_null(*ty));
            rows.push(plain(rel, system.oid, said, of_type, collation::of_type(&catalog, *ty), i));
        }
    }
    Ok(rows)
}

/// `said`: the name and whether it is NOT NULL.
fn plain(rel: &SystemRelation, relation: Oid, said: (&str, bool), ty: Ty, collation: u32, at: usize) -> Vec<Datum> {
    let (name, not_null) = said;
    let Ty { oid: type_oid, typmod } = ty;
    attribute(
        rel,
        Attribute {
            relation,
            name,
            type_oid,
            typmod,
            number: at as i16 + 1,
            not_null,
            has_default: false,
            has_missing: false,
            identity: "",
            generated: false,
            dropped: false,
            collation,
            acl: Datum::Null,
        },
    )
}

pub(super) fn indexes(rel: &SystemRelation, cx: &dyn EvalContext) -> SystemRows {
    indexes_of(rel, cx, Asked::All)
}

/// The rows of the table that an index is of.
pub(super) fn index_of(rel: &SystemRelation, cx: &dyn EvalContext, asked: Asked<'_>) -> SystemRows {
    match asked {
        Asked::Of(oid) => match cx.catalog().index(oid).map(|index| index.table) {
            Some(table) => indexes_of(rel, cx, Asked::Of(table)),
            None => Ok(Vec::new()),
        },
        _ => indexes(rel, cx),
    }
}

/// The indexes of the tables that are asked for.
pub(super) fn indexes_of(rel: &SystemRelation, cx: &dyn EvalContext, asked: Asked<'_>) -> SystemRows {
    let catalog = cx.catalog();
    let mut rows = Vec::new();
    for table in keys::tables(asked, &catalog, cx) {
        for index in catalog.indexes(table.oid) {
            let keys = index.keys.iter().map(|k| k.column);
            let numbers: Vec<i16> = keys.chain(index.include.iter().copied()).collect();
            let options: Vec<i16> =
                index.keys.iter().map(|k| k.descending as i16 | (k.nulls_first as i16) << 1).collect();
            let key_types: Vec<Oid> = index
                .keys
                .iter()
                .enumerate()
                .map(|(at, key)| match index.expression(at) {
                    Some(expression) => expression.type_oid,
                    None => table.columns[key.column as usize - 1].type_oid,
                })
                .collect();
            let collations: Vec<u32> =
                (0..index.keys.len()).map(|at| collation::of_key(&catalog, table, index, at)).collect();
            let class = |(at, &ty): (usize, &Oid)| {
                let given = index.classes.get(at).copied().filter(|&class| class != 0);
                given.unwrap_or_else(|| super::operator_classes::default_class(ty))
            };
            let classes: Vec<u32> = key_types.iter().enumerate().map(class).collect();
            let count = Datum::Int2(numbers.len() as i16);
            let key_count = Datum::Int2(index.keys.len() as i16);
            let expressions: Vec<String> =
                index.expressions.iter().map(|e| super::index_text(&e.text, false, table, false, cx).0).collect();
            let predicate = index.predicate.as_ref().map(|p| super::index_text(p, true, table, false, cx).0);
            rows.push(row(
                rel,
                vec![
                    ("indexrelid", oid(index.oid)),
                    ("indrelid", oid(table.oid)),
                    ("indnatts", count.clone()),
                    ("indnkeyatts", key_count),
                    ("indisunique", Datum::Bool(index.unique)),
                    ("indnullsnotdistinct", Datum::Bool(index.nulls_not_distinct)),
                    ("indisprimary", Datum::Bool(index.primary)),
                    ("indisexclusion", Datum::Bool(false)),
                    ("indimmediate", Datum::Bool(!index.deferrable)),
                    ("indisclustered", Datum::Bool(false)),
                    ("indisvalid", Datum::Bool(!index.invalid)),
                    ("indcheckxmin", Datum::Bool(false)),
                    ("indisready", Datum::Bool(!index.unready)),
                    ("indislive", Datum::Bool(true)),
                    ("indisreplident", Datum::Bool(false)),
                    ("indkey", int2_array(&numbers, 0)),
                    ("indcollation", oid_array(&collations, 0)),
                    ("indclass", oid_array(&classes, 0)),
                    ("indoption", int2_array(&options, 0)),
                    ("indexprs", if expressions.is_empty() { Datum::Null } else { text(in_a_row(&expressions)) }),
                    ("indpred", predicate.map_or(Datum::Null, text)),
                ],
            ));
        }
    }
    Ok(rows)
}

/// What is shown as a column's default: its default, or the expression that it is generated from.
pub(super) fn shown_default(column: &ColumnDesc) -> Option<&Expression> {
    let default = column.default.as_ref().filter(|_| column.identity.is_none());
    default.or(column.generated.as_ref())
}

/// Expressions of an index as one text; one that begins with a new line leaves no blank before it.
fn in_a_row(expressions: &[String]) -> String {
    let mut out = String::new();
    for (i, expression) in expressions.iter().enumerate() {
        match (i, expression.starts_with('\n')) {
            (0, _) => {}
            (_, true) => out.push(','),
            (_, false) => out.push_str(", "),
        }
        out.push_str(expression);
    }
    out
}

/// What `pg_attrdef.adbin` has of a default: its text, and its column, since what a text means depends on the column's type.
fn default_node(column: i16, text: &str) -> String {
    format!("{{DEFAULT :column {column} :text {text}}}")
}

/// The column whose default a value of `pg_attrdef.adbin` is.
pub(crate) fn column_of_node(node: &str) -> Option<i16> {
    node.strip_prefix("{DEFAULT :column ")?.split(' ').next()?.parse().ok()
}

pub(super) fn defaults(rel: &SystemRelation, cx: &dyn EvalContext) -> SystemRows {
    defaults_of(rel, cx, Asked::All)
}

pub(super) fn defaults_of(rel: &SystemRelation, cx: &dyn EvalContext, asked: Asked<'_>) -> SystemRows {
    let catalog = cx.catalog();
    let mut rows = Vec::new();
    for table in keys::tables(asked, &catalog, cx) {
        for column in table.live_columns() {
            if let Some(default) = shown_default(column) {
                rows.push(row(
                    rel,
                    vec![
                        ("oid", oid(super::depend::default_oid(table.oid, column))),
                        ("adrelid", oid(table.oid)),
                        ("adnum", Datum::Int2(column.number)),
                        (
                            "adbin",
                            text(default_node(column.number, &sql_bind::stored::text(default, &catalog, Some(table)))),
                        ),
                    ],
                ));
            }
        }
    }
    Ok(rows)
}

pub(super) fn sequences(rel: &SystemRelation, cx: &dyn EvalContext) -> SystemRows {
    let catalog = cx.catalog();
    let all = catalog.walk().filter_map(|o| catalog.sequence(o.oid()));
    Ok(all
        .filter(|s| in_database(&catalog, s.schema, cx))
        .map(|s| {
            row(
                rel,
                vec![
                    ("seqrelid", oid(s.oid)),
                    ("seqtypid", oid(s.type_oid)),
                    ("seqstart", Datum::Int8(s.start)),
                    ("seqincrement", Datum::Int8(s.increment)),
                    ("seqmax", Datum::Int8(s.max)),
                    ("seqmin", Datum::Int8(s.min)),
                    ("seqcache", Datum::Int8(s.cache)),
                    ("seqcycle", Datum::Bool(s.cycle)),
                ],
            )
        })
        .collect())
}
