//! Collations: which there are, their names, and which of them a type has.
//!
//! Texts are ordered by their bytes, in every one of these: that is what C, POSIX, `ucs_basic` and C.UTF-8 say of UTF-8. So a
//! collation is checked, kept and shown, and changes no comparison.

use std::cell::RefCell;

use base::work::Count as _;
use base::{Error, Oid, Result, SqlState};
use engine_api::{Catalog, ColumnDesc, IndexDesc, IndexExpression, TableDesc, TypeKind};
use rustc_hash::FxHashMap;
use sql_ir::{Body, CastKind, Column, Cte, Expr, Query, RelKind, SubqueryKind};
use sql_parse::names::quote_name;
use types::type_info;

use crate::visit;

/// A collation of `pg_catalog`.
pub struct Collation {
    /// Its number in `pg_collation`.
    pub oid: u32,
    /// Its name.
    pub name: &'static str,
    /// `d`: the database's default. `c`: of the C library.
    pub provider: &'static str,
    /// The number of the encoding that it is for, -1 for all.
    pub encoding: i32,
    /// The locale whose order it is; `None` for the order of bytes.
    pub locale: Option<&'static str>,
}

const DEFAULT: u32 = 100;
const C: u32 = 950;

/// Every collation that there is.
pub const COLLATIONS: [Collation; 5] = [
    Collation { oid: DEFAULT, name: "default", provider: "d", encoding: -1, locale: None },
    Collation { oid: C, name: "C", provider: "c", encoding: -1, locale: Some("C") },
    Collation { oid: 951, name: "POSIX", provider: "c", encoding: -1, locale: Some("POSIX") },
    Collation { oid: 12340, name: "ucs_basic", provider: "c", encoding: 6, locale: Some("C") },
    Collation { oid: 12341, name: "C.utf8", provider: "c", encoding: 6, locale: Some("C.utf8") },
];

/// The collation that a statement names, with or without its schema.
///
/// # Errors
/// 3F000 if there is no such schema, 42704 if there is no such collation, 0A000 and 42601 for names of more parts.
pub(crate) fn named<S: AsRef<str>>(catalog: &Catalog, database: Oid, names: &[S]) -> Result<&'static Collation> {
    let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
    let whole = || names.join(".");
    let name = match names[..] {
        [name] => Some(name),
        ["pg_catalog", name] => Some(name),
        [schema, _] => match catalog.schema(database, schema) {
            Some(_) => None,
            None => {
                let message = format!("schema \"{schema}\" does not exist");
                return Err(Error::new(SqlState::INVALID_SCHEMA_NAME, message));
            }
        },
        [_, _, _] => {
            return Err(Error::unsupported(format!("cross-database references are not implemented: {}", whole())));
        }
        _ => {
            let message = format!("improper qualified name (too many dotted names): {}", whole());
            return Err(Error::new(SqlState::SYNTAX_ERROR, message));
        }
    };
    // The name that other systems have for it, which earlier versions took as well.
    let name = name.map(|name| if name == "C.UTF-8" { "C.utf8" } else { name });
    COLLATIONS.iter().find(|collation| Some(collation.name) == name).ok_or_else(|| unknown(&whole()))
}

/// 42704
pub fn unknown(name: &str) -> Error {
    let message = format!("collation \"{name}\" for encoding \"UTF8\" does not exist");
    Error::new(SqlState::UNDEFINED_OBJECT, message)
}

/// A collation by its number.
pub fn by_oid(oid: u32) -> Option<&'static Collation> {
    COLLATIONS.iter().find(|collation| collation.oid == oid)
}

/// A collation's name, as SQL writes it.
pub fn name_of(oid: u32) -> Option<String> {
    plain_name(oid).map(quote_name)
}

/// The name of a collation, without quotes.
pub fn plain_name(oid: u32) -> Option<&'static str> {
    by_oid(oid).map(|collation| collation.name)
}

/// The name of a collation that `information_schema` shows: every one but the default.
pub fn shown_name(oid: u32) -> Option<&'static str> {
    plain_name(oid).filter(|_| oid != DEFAULT)
}

/// The collation of a type's values, 0 for a type that has none. Arrays have that of their elements.
pub fn of_type(catalog: &Catalog, ty: Oid) -> u32 {
    if let Some(TypeKind::Domain(domain)) = catalog.user_type(ty).map(|made| &made.kind) {
        return domain.collation.unwrap_or_else(|| of_type(catalog, domain.base));
    }
    match type_info(ty) {
        Some(info) if info.category == 'S' && info.name == "name" => C,
        Some(info) if info.category == 'S' => DEFAULT,
        Some(info) if info.category == 'A' => of_type(catalog, info.element),
        _ => 0,
    }
}

/// The collation of a column, 0 if its type has none.
pub fn of_column(catalog: &Catalog, column: &ColumnDesc) -> u32 {
    column.collation.unwrap_or_else(|| of_type(catalog, column.type_oid))
}

/// The collation that a definition names for values of a type.
///
/// # Errors
/// As [`named`]; 42804 for a type without collations.
pub fn said<S: AsRef<str>>(
    catalog: &Catalog,
    database: Oid,
    names: &[S],
    ty: Oid,
    shown_type: impl FnOnce() -> String,
) -> Result<u32> {
    let collation = named(catalog, database, names)?.oid;
    if of_type(catalog, ty) == 0 {
        let message = format!("collations are not supported by type {}", shown_type());
        return Err(Error::new(SqlState::DATATYPE_MISMATCH, message));
    }
    Ok(collation)
}

/// The collation of an index's key, 0 if its type has none.
pub fn of_key(catalog: &Catalog, table: &TableDesc, index: &IndexDesc, at: usize) -> u32 {
    if let Some(&said) = index.collations.get(at).filter(|&&said| said != 0) {
        return said;
    }
    of_key_part(catalog, table, index.keys[at].column, index.expression(at))
}

/// The collation of the column or the expression that a key of an index is over.
pub fn of_key_part(catalog: &Catalog, table: &TableDesc, column: i16, expression: Option<&IndexExpression>) -> u32 {
    match expression {
        Some(expression) => expression.collation.unwrap_or_else(|| of_type(catalog, expression.type_oid)),
        None => of_column(catalog, &table.columns[column as usize - 1]),
    }
}

/// How much the collation of an expression says beside that of another one, as in PostgreSQL's `parse_collate.c`.
#[derive(Clone, Copy)]
enum Derived {
    /// Nothing in it has a collation.
    None,
    /// That of a column or a type.
    Implicit(u32),
    /// Of columns whose collations differ.
    Unknown,
    /// COLLATE, which stands there.
    Explicit(u32, i32),
}

impl Derived {
    /// 0 without a collation; nothing if it is unknown.
    fn collation(self) -> Option<u32> {
        match self {
            Derived::None => Some(0),
            Derived::Implicit(collation) | Derived::Explicit(collation, _) => Some(collation),
            Derived::Unknown => None,
        }
    }
}

/// Where an expression stands.
#[derive(Clone, Copy)]
pub struct CollatedExpr<'a> {
    /// Where collations of columns are looked up.
    pub catalog: &'a Catalog,
    /// The statement that COLLATE stands in, for the positions of errors; empty if it is none that the client sent.
    pub sql: &'a str,
    /// The columns that the expression may name.
    pub columns: Columns<'a>,
}

/// What the columns of an expression are columns of.
#[derive(Clone, Copy)]
pub enum Columns<'a> {
    /// A table alone.
    Table(&'a TableDesc),
    /// The queries around, the innermost last, and what is known of subqueries' columns.
    Queries(&'a [&'a Query], &'a Known),
}

/// The collations of subqueries' columns that have been derived, by the query's address: one that is mentioned often is derived once.
type Known = RefCell<FxHashMap<(*const Query, usize), Option<u32>>>;

/// The collation of an expression as PostgreSQL derives it, 0 if its type has none, nothing if columns in it contradict each other.
/// A function gives that of its arguments, among which COLLATE goes before columns, and other collations before the default one.
///
/// # Errors
/// 42P21 if two COLLATE contradict each other.
pub fn of_expression(expr: &Expr, place: CollatedExpr<'_>) -> Result<Option<u32>> {
    derive(expr, place).map(Derived::collation)
}

/// 42P22: a definition needs the collation of an expression that has none.
pub fn indeterminate(message: impl Into<String>) -> Error {
    let hint = "Use the COLLATE clause to set the collation explicitly.";
    Error::new(SqlState::INDETERMINATE_COLLATION, message.into()).hint(hint)
}

/// The collations of what a query gives, each as [`of_expression`] has it.
///
/// # Errors
/// As [`of_expression`].
pub(crate) fn of_output(query: &Query, catalog: &Catalog, sql: &str) -> Result<Vec<Option<u32>>> {
    let known = Known::default();
    let place = CollatedExpr { catalog, sql, columns: Columns::Queries(&[query], &known) };
    let width = query.targets.iter().filter(|target| !target.junk).count();
    (0..width).map(|at| of_column_of_query(query, at, place).map(Derived::collation)).collect()
}

/// That of a column that a query gives; `place` is within the query.
fn of_column_of_query(query: &Query, at: usize, place: CollatedExpr<'_>) -> Result<Derived> {
    match &query.body {
        Body::SetOp { .. } => {
            // From the right to the left: chains are long, and hang to the left.
            let (mut sides, mut rest) = (Vec::new(), query);
            while let Body::SetOp { left, right, recursion, .. } = &rest.body {
                if recursion.is_none() {
                    sides.push(&**right);
                }
                rest = left;
            }
            sides.push(rest);
            let Columns::Queries(around, known) = place.columns else { return Ok(Derived::None) };
            sides.iter().rev().counted(64).try_fold(Derived::None, |before, side| {
                let within: Vec<&Query> = around.iter().copied().chain([*side]).collect();
                let place = CollatedExpr { columns: Columns::Queries(&within, known), ..place };
                merged(before, of_column_of_query(side, at, place)?, place.sql)
            })
        }
        Body::Values(rows) => rows
            .iter()
            .filter_map(|row| row.get(at))
            .counted(64)
            .try_fold(Derived::None, |before, value| merged(before, derive(value, place)?, place.sql)),
        _ => query.output(at).map_or(Ok(Derived::None), |target| derive(&target.expr, place)),
    }
}

/// That of a column of a query that stands within others; derived once, however often it is mentioned.
fn of_query_inside(inner: &Query, column: usize, around: Columns<'_>, place: CollatedExpr<'_>) -> Result<Option<u32>> {
    let Columns::Queries(around, known) = around else { return Ok(None) };
    if inner.output(column).is_none() {
        return Ok(None);
    }
    let key = (&raw const *inner, column);
    if let Some(collation) = known.borrow().get(&key) {
        return Ok(*collation);
    }
    let within: Vec<&Query> = around.iter().copied().chain([inner]).collect();
    let place = CollatedExpr { columns: Columns::Queries(&within, known), ..place };
    // What could not be told says nothing further out.
    let collation = of_column_of_query(inner, column, place)?.collation().or(Some(0));
    known.borrow_mut().insert(key, collation);
    Ok(collation)
}

/// The query of a WITH clause that an entry of a range table is, and the queries around it.
fn of_with<'q>(kind: &RelKind, queries: &[&'q Query]) -> Option<(&'q Query, usize)> {
    let is_it = |cte: &Cte| match kind {
        RelKind::Cte { id, .. } => cte.id == *id,
        RelKind::WorkTable(id) => {
            matches!(&cte.query.body, Body::SetOp { recursion: Some(own), .. } if own == id)
        }
        _ => false,
    };
    let found = |(at, query): (usize, &&'q Query)| Some((&*query.ctes.iter().find(|cte| is_it(cte))?.query, at));
    queries.iter().enumerate().rev().find_map(found)
}

fn derive(expr: &Expr, place: CollatedExpr<'_>) -> Result<Derived> {
    let own = of_type(place.catalog, expr.ty().oid);
    let mut below = Derived::None;
    match expr {
        Expr::Column(column) => return Ok(implicit(of_reference(column, place)?.unwrap_or(own))),
        Expr::Cast { kind: CastKind::Collate(collation), location, .. } => {
            return Ok(Derived::Explicit(*collation, *location));
        }
        // Becoming one of a domain that says a collation; of others the value's own stays.
        Expr::Cast { .. } | Expr::Call { .. } | Expr::Const(..)
            if types::user::is_domain(expr.ty().oid) && ![0, DEFAULT].contains(&own) =>
        {
            return Ok(implicit(own));
        }
        Expr::Agg { level, index, .. } => {
            if let Some((query, columns)) = query_at(place.columns, *level)
                && let Some(call) = query.aggs.get(*index)
            {
                below = all(&call.args, CollatedExpr { columns, ..place })?;
            }
        }
        Expr::Subquery { kind: SubqueryKind::Scalar | SubqueryKind::Array, query, .. } => {
            below = of_query_inside(query, 0, place.columns, place)?.map_or(Derived::None, implicit);
        }
        _ => {
            let mut parts = Ok(Derived::None);
            let mut add = |part: &Expr| {
                if let Ok(before) = parts {
                    parts = derive(part, place).and_then(|part| merged(before, part, place.sql));
                }
            };
            visit::children(expr, &mut add, &mut |_| {});
            below = parts?;
        }
    }
    Ok(match below {
        _ if own == 0 => Derived::None,
        Derived::None => implicit(own),
        below => below,
    })
}

fn all(exprs: &[Expr], place: CollatedExpr<'_>) -> Result<Derived> {
    exprs.iter().try_fold(Derived::None, |before, expr| merged(before, derive(expr, place)?, place.sql))
}

fn implicit(collation: u32) -> Derived {
    if collation == 0 { Derived::None } else { Derived::Implicit(collation) }
}

/// The query at a level, and what columns are in it.
fn query_at(columns: Columns<'_>, level: usize) -> Option<(&Query, Columns<'_>)> {
    let Columns::Queries(queries, known) = columns else { return None };
    let at = queries.len().checked_sub(level + 1)?;
    Some((queries[at], Columns::Queries(&queries[..=at], known)))
}

/// The collation of what a column reference refers to; nothing if that says no more than its type.
fn of_reference(column: &Column, place: CollatedExpr<'_>) -> Result<Option<u32>> {
    let of_table = |table: &TableDesc| table.columns.get(column.column).map(|column| of_column(place.catalog, column));
    if let Columns::Table(table) = place.columns {
        return Ok(of_table(table));
    }
    let Some((query, columns)) = query_at(place.columns, column.level) else { return Ok(None) };
    match query.rels.get(column.rel).map(|rel| &rel.kind) {
        Some(RelKind::Table(info)) => Ok(of_table(&info.desc)),
        Some(RelKind::Subquery { query: inner, .. }) => of_query_inside(inner, column.column, columns, place),
        Some(kind @ (RelKind::Cte { .. } | RelKind::WorkTable(_))) => {
            let Columns::Queries(queries, known) = columns else { return Ok(None) };
            let Some((inner, at)) = of_with(kind, queries) else { return Ok(None) };
            of_query_inside(inner, column.column, Columns::Queries(&queries[..=at], known), place)
        }
        Some(RelKind::Window(call)) => Ok(match all(&call.args, CollatedExpr { columns, ..place })? {
            Derived::None => None,
            derived => derived.collation().or(Some(0)),
        }),
        _ => Ok(None),
    }
}

fn merged(a: Derived, b: Derived, sql: &str) -> Result<Derived> {
    Ok(match (a, b) {
        (Derived::Explicit(first, _), Derived::Explicit(second, at)) if first != second => {
            let [first, second] = [first, second].map(|oid| by_oid(oid).map_or("", |collation| collation.name));
            let message = format!("collation mismatch between explicit collations \"{first}\" and \"{second}\"");
            return Err(Error::new(SqlState::COLLATION_MISMATCH, message).at_byte(sql, at));
        }
        (explicit @ Derived::Explicit(..), _) | (_, explicit @ Derived::Explicit(..)) => explicit,
        (Derived::None, other) | (other, Derived::None) => other,
        (Derived::Unknown, _) | (_, Derived::Unknown) => Derived::Unknown,
        (Derived::Implicit(a), Derived::Implicit(b)) if a == b || b == DEFAULT => Derived::Implicit(a),
        (Derived::Implicit(DEFAULT), b) => b,
        (Derived::Implicit(_), Derived::Implicit(_)) => Derived::Unknown,
    })
}
