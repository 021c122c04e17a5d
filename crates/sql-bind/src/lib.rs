//! From the raw parse tree to the bound statement ([`sql_ir`]).
//!
//! Responsible for: what names mean, which overloads are called, types and casts, and PostgreSQL's errors about all of it.
//! Not responsible for: whether the bound statement can be run, and how (`sql-plan`); definitions (`sql-ddl`).
//! Invariants: a bound statement has no untyped expression; everything unsupported is refused here with 0A000.

#![forbid(unsafe_code)]

mod coerce;
pub mod collation;
mod compare;
mod composite;
mod conflict;
mod cte;
mod dml;
mod domain;
pub mod equal;
mod erase;
mod expr;
mod fold;
mod from;
mod func;
mod group;
mod grouping;
mod immutable;
mod imply;
mod json_rows;
mod key_types;
mod merge;
mod node;
mod notes;
mod order;
mod ordered_set;
pub mod own;
mod params;
mod parts;
mod permissions;
mod raise;
mod range_function;
mod regtypes;
mod resolve;
mod sample;
mod scope;
mod search;
mod select;
mod set_calls;
mod setop;
mod simplify;
pub mod stored;
mod sublink;
mod subscript;
mod system_columns;
mod types;
mod unread;
mod view;
pub mod visit;
mod window;

pub use select::clause_name;
pub(crate) use simplify::simplified;

pub use conflict::no_arbiter;
pub use dml::value_type;
pub use equal::same;
pub(crate) use equal::same_result;
pub use group::window_parts;
pub use immutable::is_immutable;
pub use imply::{all_implied, implies};
pub use json_rows::field_name;
pub use key_types::{KeyComparison, key_comparison, key_equal, key_equality, key_operators, key_value, stored_alike};
pub use permissions::sequence_of;
pub use types::shown_type;

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::sync::Arc;

use base::{Error, Oid, Result, SqlState};
use engine_api::{Catalog, Expression, TableDesc, TableLockMode};
use rupg_sql::nodes::{Node, RangeVar, TypeName};
use sql_functions::{CastContext, EvalContext, Function, Identity, Operator};
use sql_ir::{self as ir, BoundIndex, Column, Expr, Ty};

/// A column of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResultColumn {
    /// Name.
    pub name: String,
    /// Type, for a domain what is under it.
    pub ty: Ty,
    /// The type as the query has it, domains included.
    pub own: Ty,
    /// The table and attribute number it comes from unchanged; invalid and 0 otherwise.
    pub table: Oid,
    /// Attribute number.
    pub column: i16,
}

impl ResultColumn {
    /// A column that belongs to no table.
    pub fn new(name: impl Into<String>, ty: Ty) -> ResultColumn {
        let (oid, typmod) = ::types::user::base_type(ty.oid, ty.typmod);
        ResultColumn { name: name.into(), ty: Ty { oid, typmod }, own: ty, table: Oid::INVALID, column: 0 }
    }
}

/// What binding depends on.
pub struct BindContext<'a> {
    /// The catalog to bind to.
    pub catalog: Arc<Catalog>,
    /// Who and where.
    pub identity: Identity,
    /// For folding immutable calls.
    pub eval: &'a dyn EvalContext,
    /// Parameter types: given ones first, `Oid::INVALID`/`unknown` are inferred.
    pub param_types: Vec<Oid>,
    /// Immutable calls over constants stay calls: for showing an expression as it was written.
    pub keeps_calls: bool,
    /// Values cast to domains are taken to be what these demand: they are not tested.
    pub trusts_domains: bool,
    /// A call over constants failed.
    failed: Cell<bool>,
    /// A condition holds a constant that may decide it.
    has_decided_condition: Cell<bool>,
    /// Sequences that `nextval` and `setval` name.
    drawn: RefCell<Vec<Oid>>,
    /// Whether more parameters than those may occur.
    pub infer_params: bool,
    /// What the relation names in a view's text mean, if that is asked for.
    pub places: Option<Vec<(RangeVar, Oid)>>,
    /// Where the text of the view has columns and rows with a schema before the name of their relation: byte, how many names come before
    /// that name, relation. Collected with `places`.
    pub qualifiers: Vec<(i32, usize, Oid)>,
    /// The names were looked up before, by another role: whether this one may look into the schemas is not asked again.
    pub names_known: bool,
    /// The statement is COPY's, which computes nothing before it has a row.
    pub copies: bool,
    /// Relations on which rights are not asked.
    pub spared: Vec<Oid>,
    /// Within the texts of so many stored expressions, one in another, whose names were looked up when they were defined.
    in_stored: u32,
    /// The references of the stored expression that is bound next, if they are asked for.
    pub(crate) notes: Option<Vec<stored::Note>>,
    /// Within an expression that is kept: the search path outside of it.
    path_outside: Option<Vec<Oid>>,
}

impl<'a> BindContext<'a> {
    /// The name of a type as messages show it: with its schema unless the session's search path finds it without.
    fn type_name(&self, ty: Oid) -> String {
        crate::shown_type(self.eval, ty, -1)
    }

    /// The sequences that what was bound draws from, as far as they are named by constants.
    pub fn sequences(&mut self) -> Vec<Oid> {
        self.drawn.take()
    }

    /// A context with the parameter types the client asked for.
    pub fn new(catalog: Arc<Catalog>, identity: Identity, eval: &'a dyn EvalContext, types: &[Oid]) -> BindContext<'a> {
        let (param_types, keeps_calls, infer_params) = (types.to_vec(), false, true);
        BindContext {
            catalog,
            identity,
            eval,
            param_types,
            keeps_calls,
            trusts_domains: false,
            failed: Cell::new(false),
            has_decided_condition: Cell::new(false),
            drawn: RefCell::new(Vec::new()),
            infer_params,
            places: None,
            qualifiers: Vec::new(),
            names_known: false,
            copies: false,
            spared: Vec::new(),
            in_stored: 0,
            notes: None,
            path_outside: None,
        }
    }
}

/// A bound statement and what its session must know of it.
#[derive(Debug)]
pub struct BoundStatement {
    /// The statement.
    pub statement: ir::Statement,
    /// Result columns; empty if it returns none.
    pub columns: Vec<ResultColumn>,
    /// Types of all parameters.
    pub param_types: Vec<Oid>,
    /// Tables used and how they are locked.
    pub tables: Vec<(Oid, TableLockMode)>,
    /// The error of running it, known by now: it can be described, but not run.
    pub refused: Option<Error>,
}

/// An expression and where it begins in the statement.
#[derive(Clone, Debug)]
struct Located {
    expr: Expr,
    at: i32,
}

/// The state of binding one statement.
struct Binder<'a, 'c> {
    cx: &'a mut BindContext<'c>,
    sql: &'a str,
    scopes: Vec<scope::Scope<'a>>,
    tables: Vec<(Oid, TableLockMode)>,
    depth: usize,
    depth_max: usize,
    /// Queries bound so far; each reference to a CTE counts anew.
    queries: usize,
    params_forbidden: bool,
    /// Parameters met without a type, and where.
    undecided: BTreeSet<(usize, i32)>,
    /// What the statement is refused for when it is run.
    refused: Option<Error>,
    /// The views that the statement writes through. For the text of a view that is written through: the columns that are read are those
    /// of what it is over.
    through: ir::ThroughViews,
    /// The view whose text is being bound: names mean what they meant when it was made.
    inside: Option<Arc<TableDesc>>,
    /// Columns whose every value in VALUES is DEFAULT.
    defaulted: Vec<usize>,
    /// Columns of a domain whose values have its type already: as in PostgreSQL, they are not tested again.
    of_domain: Vec<usize>,
    /// WITH queries met so far.
    next_cte: usize,
    /// Deepest WITH query read by the one being bound.
    cte_depth: usize,
    /// WITH queries being bound, the innermost last: (scope, number).
    binding_ctes: Vec<(usize, usize)>,
    /// Whether a recursive query may be referred to where we are.
    recursive_context: cte::RecursiveContext,
    /// The views around us, from the outside in.
    views: Vec<Oid>,
    /// The query is bound to be shown: views stay relations.
    shows: bool,
    /// Views are relations: the query is not run.
    keeps_views: bool,
    /// Rows whose fields have names that cannot be seen in them.
    named_rows: Vec<(Vec<Expr>, Vec<String>)>,
    /// Relations named so far, while a view is being defined.
    seen: Option<Vec<engine_api::ViewRelation>>,
    /// Primary keys that GROUP BY has needed so far, while a view is being defined.
    keys: Option<Vec<Oid>>,
    /// References met so far, if they are asked for.
    notes: Option<Vec<stored::Note>>,
}

impl<'a, 'c> Binder<'a, 'c> {
    fn type_name(&self, ty: base::Oid) -> String {
        self.cx.type_name(ty)
    }

    fn new(cx: &'a mut BindContext<'c>, sql: &'a str) -> Binder<'a, 'c> {
        let is_kept = cx.in_stored > 0;
        Binder {
            cx,
            sql,
            scopes: Vec::new(),
            tables: Vec::new(),
            depth: 0,
            depth_max: expr::depth_max(is_kept),
            queries: 0,
            params_forbidden: false,
            undecided: BTreeSet::new(),
            refused: None,
            through: ir::ThroughViews::default(),
            inside: None,
            defaulted: Vec::new(),
            of_domain: Vec::new(),
            next_cte: 0,
            cte_depth: 0,
            binding_ctes: Vec::new(),
            recursive_context: cte::RecursiveContext::Allowed,
            views: Vec::new(),
            shows: false,
            keeps_views: false,
            named_rows: Vec::new(),
            seen: None,
            keys: None,
            notes: None,
        }
    }

    /// An error at a place of the statement.
    fn error(&self, code: SqlState, message: impl Into<String>, at: i32) -> Error {
        Error::new(code, message).at_byte(self.sql, at)
    }

    /// 0A000 at a place of the statement.
    fn unsupported(&self, message: impl Into<String>, at: i32) -> Error {
        Error::unsupported(message).at_byte(self.sql, at)
    }

    /// An error of someone else, at a place of the statement.
    fn locate(&self, error: Error, at: i32) -> Error {
        error.at_byte(self.sql, at)
    }
}

/// Stored expressions that may be bound one within another: a condition of a domain may speak of the domain.
const STORED_DEPTH_MAX: u32 = 100;

/// 54001: the statement is nested too deeply.
pub fn stack_depth() -> Error {
    Error::new(SqlState::STATEMENT_TOO_COMPLEX, "stack depth limit exceeded").hint(
        "Increase the configuration parameter \"max_stack_depth\" (currently 2048kB), after ensuring the platform's \
         stack depth limit is adequate.",
    )
}

/// Binds SELECT, VALUES, INSERT, UPDATE, DELETE or MERGE.
pub fn bind(node: &Node, sql: &str, cx: &mut BindContext<'_>) -> Result<BoundStatement> {
    let mut binder = Binder::new(cx, sql);
    let (statement, columns) = match node {
        Node::SelectStmt(select) => {
            let query = binder.subquery(select, true)?.query;
            let columns = select::result_columns(&query);
            (ir::Statement::Select(Box::new(query)), columns)
        }
        Node::InsertStmt(insert) => binder.insert(insert)?,
        Node::UpdateStmt(update) => binder.update(update)?,
        Node::DeleteStmt(delete) => binder.delete(delete)?,
        Node::MergeStmt(merge) => binder.merge(merge)?,
        _ => return Err(Error::unsupported("this statement cannot be bound")),
    };
    binder.check_params(&statement)?;
    let told = (binder.tables, binder.refused);
    Ok(completed(statement, told, columns, true, cx))
}

/// A statement as it leaves the binder, simplified: with its tables and what it is refused for already. `asks_rights`: those that
/// the current role lacks are a reason.
fn completed(
    mut statement: ir::Statement,
    (tables, refused): (Vec<(Oid, TableLockMode)>, Option<Error>),
    columns: Vec<ResultColumn>,
    asks_rights: bool,
    cx: &mut BindContext<'_>,
) -> BoundStatement {
    erase::statement(&mut statement);
    // What cannot be planned is refused before whoever may not run the plan.
    let refused = refused.or_else(|| asks_rights.then(|| permissions::denied(&statement, cx)).flatten());
    unread::drop_from(&mut statement);
    let mut unplanned = raise::error(&statement, cx);
    if simplify::statement(&mut statement, cx) {
        unread::drop_from(&mut statement);
        // What has become a constant by that may be one that cannot be computed.
        unplanned = unplanned.or_else(|| raise::error(&statement, cx));
    }
    let refused = unplanned.or(refused).or_else(|| raise::error_at_start(&statement, cx));
    BoundStatement { statement, columns, param_types: cx.param_types.clone(), tables, refused }
}

/// A view that is being defined.
#[derive(Debug)]
pub struct BoundView {
    /// Its columns.
    pub columns: Vec<(String, Ty)>,
    /// Their collations: 0 for types that have none, nothing where it cannot be told.
    pub collations: Vec<Option<u32>>,
    /// What a descriptor keeps of it, but for the text of the query.
    pub desc: engine_api::ViewDesc,
}

/// What is known of a query that is not run.
#[derive(Debug)]
pub struct Unrun {
    /// Its columns.
    pub columns: Vec<ResultColumn>,
    /// Their collations: 0 for types that have none, nothing where it cannot be told.
    pub collations: Vec<Option<u32>>,
    /// The types of its parameters.
    pub param_types: Vec<Oid>,
}

/// Binds a query that is not run. Views that it reads are not looked into.
///
/// # Errors
/// As of binding it; 42P21 for explicit collations that differ.
pub fn bind_unrun(node: &Node, sql: &str, cx: &mut BindContext<'_>) -> Result<Unrun> {
    let Node::SelectStmt(select) = node else { return Err(Error::unsupported("this statement cannot be bound")) };
    // As it is written: a constant does not say what it was folded from.
    cx.keeps_calls = true;
    let mut binder = Binder::new(cx, sql);
    binder.keeps_views = true;
    let query = binder.subquery(select, true)?.query;
    let (columns, statement) = (select::result_columns(&query), ir::Statement::Select(Box::new(query)));
    binder.check_params(&statement)?;
    let ir::Statement::Select(query) = statement else { return Err(Error::internal("not a query")) };
    let collations = collation::of_output(&query, &cx.catalog, sql)?;
    Ok(Unrun { columns, collations, param_types: cx.param_types.clone() })
}

/// Binds the query of a view that is being defined.
pub fn bind_view(node: &Node, sql: &str, cx: &mut BindContext<'_>) -> Result<BoundView> {
    let Node::SelectStmt(select) = node else {
        return Err(Error::unsupported("views of this statement are not supported"));
    };
    let (query, desc) = view::define(select, sql, cx)?;
    let collations = collation::of_output(&query, &cx.catalog, sql)?;
    Ok(BoundView { columns: view::shown_columns(&query), collations, desc })
}

/// The query of a view as it is stored, bound to the definitions of now.
pub fn bind_stored_view(desc: &TableDesc, cx: &mut BindContext<'_>) -> Result<ir::Query> {
    let mut query = view::stored_query(desc, cx)?;
    if !cx.keeps_calls {
        erase::whole_query(&mut query);
    }
    Ok(query)
}

/// The relations that a stored view reads, for one that does not list all.
///
/// # Errors
/// As of binding its query.
pub fn bind_view_relations(desc: &TableDesc, cx: &mut BindContext<'_>) -> Result<Vec<engine_api::ViewRelation>> {
    view::relations_of(desc, cx)
}

/// Why a view cannot be written through by INSERT, UPDATE (`insert into`, `update`) or DELETE (`delete from`), or the
/// columns (attribute number - 1) of its table behind its own.
pub fn bind_through_view(desc: &TableDesc, verb: &str, cx: &mut BindContext<'_>) -> Result<Vec<Option<usize>>> {
    let (_, through) = Binder::new(cx, "").through_view(&Arc::new(desc.clone()), verb, false)?;
    Ok(through.columns.iter().map(|c| through.base_column(&c.name).flatten()).collect())
}

/// The type of a column definition.
#[derive(Clone, Copy, Debug)]
pub struct ColumnType {
    /// Type.
    pub ty: Ty,
    /// `serial` and the like: a sequence is made for it.
    pub serial: bool,
}

/// Resolves the type of a column definition.
pub fn bind_column_type(name: &TypeName, sql: &str, known: types::Known<'_>) -> Result<ColumnType> {
    types::column_type(name, sql, known)
}

/// Refuses a type's name whose schema is not there, or not open to the current role.
///
/// # Errors
/// 3F000, 42501
pub fn bind_type_schema(name: &TypeName, sql: &str, cx: &mut BindContext<'_>) -> Result<()> {
    Binder::new(cx, sql).open_schema(name)
}

/// An expression as it leaves the binder.
fn finished(expr: Expr, cx: &BindContext<'_>) -> Expr {
    if cx.keeps_calls { expr } else { erase::erased(expr) }
}

/// An expression that a definition is to keep with its constants computed, as PostgreSQL has it when it looks whether it is immutable.
///
/// # Errors
/// What the constants cannot be computed by.
pub fn computed_constants(expr: &Expr, cx: &BindContext<'_>) -> Result<Expr> {
    let mut expr = expr.clone();
    simplify::kept(&mut expr, cx);
    raise::error_of(&expr, cx).map_or(Ok(expr), Err)
}

/// As [`finished`], of one that is about to be evaluated.
fn evaluated(expr: Expr, cx: &BindContext<'_>) -> Expr {
    let mut expr = finished(expr, cx);
    if !cx.keeps_calls {
        simplify::alone(&mut expr, cx);
    }
    expr
}

/// The condition of a domain over a value of what is under it.
pub fn bind_condition_over(text: &Expression, value: &Expr, cx: &mut BindContext<'_>) -> Result<Expr> {
    domain::condition(text, value, cx)
}

/// Evaluates what an index computes of a row of its table (rel 0), where it casts to domains: true, or the error of the domain.
pub fn bind_index_test(index: &engine_api::IndexDesc, table: &TableDesc, cx: &mut BindContext<'_>) -> Result<Expr> {
    domain::index_test(index, table, cx)
}

/// Binds the condition of a domain, to see whether it can be.
pub fn bind_domain_condition(
    text: &Expression,
    domain: &engine_api::DomainDesc,
    cx: &mut BindContext<'_>,
) -> Result<()> {
    domain::check_condition(text, domain, cx)
}

pub use domain::{casts_to_domains, under_domain};
pub use view::is_recursion;

/// The condition of a domain as it is to be shown: the value is parameter 0.
pub fn bind_shown_condition(
    text: &Expression,
    domain: &engine_api::DomainDesc,
    cx: &mut BindContext<'_>,
) -> Result<Expr> {
    domain::shown_condition(text, domain, cx)
}

/// Binds a column default, coerced to the column's type.
pub fn bind_default(text: &Expression, ty: Ty, column: &str, cx: &mut BindContext<'_>) -> Result<Expr> {
    let expr = dml::default_expression(text, ty, column, cx)?;
    Ok(evaluated(expr, cx))
}

/// The type that a default has by itself; `None` for a literal, which takes any.
pub fn default_type(default: &Expression, cx: &mut BindContext<'_>) -> Result<Option<base::Oid>> {
    Ok(dml::own_default(default, cx)?.map(|expr| expr.ty().oid))
}

/// A default before it becomes a value of its column; `None` for a literal, which takes the column's type.
pub fn bind_own_default(default: &Expression, cx: &mut BindContext<'_>) -> Result<Option<Expr>> {
    Ok(dml::own_default(default, cx)?.map(|expr| finished(expr, cx)))
}

/// What a column is generated from before it becomes a value of the column; `None` for a literal.
pub fn bind_own_generated(text: &Expression, table: &TableDesc, cx: &mut BindContext<'_>) -> Result<Option<Expr>> {
    Ok(dml::own_generated(text, table, cx)?.map(|expr| finished(expr, cx)))
}

/// Whether the text of an expression is a cast at its outermost: `x::t`, `CAST(x AS t)`.
pub fn is_cast(text: &str) -> bool {
    dml::is_cast(text)
}

/// Whether the text of an expression is NULL, cast to whatever.
pub fn is_null_cast(text: &str) -> bool {
    dml::is_null_cast(text)
}

/// What a target that is not named is called.
pub fn figure_name(node: &Node) -> String {
    node::figure_name(node)
}

/// Binds a CHECK condition over the columns of a table (rel 0).
pub fn bind_check(text: &Expression, table: &TableDesc, cx: &mut BindContext<'_>) -> Result<Expr> {
    let expr = dml::check_expression(text, table, cx)?;
    Ok(finished(expr, cx))
}

/// What a table and the domains of its columns demand of a row, over rel 0, by the names of the constraints.
pub fn bind_checks(table: &TableDesc, cx: &mut BindContext<'_>) -> Result<Vec<(String, Expr)>> {
    let all = Binder::new(cx, "").checks(table, &[], None)?;
    Ok(all.into_iter().map(|(name, expr)| (name, evaluated(expr, cx))).collect())
}

/// Whether a condition is one of those that another one demands together.
pub fn is_part(whole: &Expr, part: &Expr) -> bool {
    match whole {
        Expr::And(all) => all.iter().any(|one| is_part(one, part)),
        one => equal::same(one, part),
    }
}

/// Binds what an index computes.
pub fn bind_index(index: &engine_api::IndexDesc, table: &TableDesc, cx: &mut BindContext<'_>) -> Result<BoundIndex> {
    let mut expressions = Vec::with_capacity(index.expressions.len());
    for expression in &index.expressions {
        let expr = dml::index_expression(&expression.text, table, cx)?;
        expressions.push(evaluated(expr, cx));
    }
    let predicate = index.predicate.as_ref().map(|text| dml::index_predicate(text, table, cx)).transpose()?;
    Ok(BoundIndex { expressions, predicate: predicate.map(|expr| evaluated(expr, cx)) })
}

/// Binds an expression that an index is to be over.
pub fn bind_index_expression(text: &Expression, table: &TableDesc, cx: &mut BindContext<'_>) -> Result<Expr> {
    let expr = dml::index_expression(text, table, cx)?;
    Ok(finished(expr, cx))
}

/// An expression that an index is to be over, as it is by itself; `None` for a literal.
pub fn bind_own_index_expression(
    text: &Expression,
    table: &TableDesc,
    cx: &mut BindContext<'_>,
) -> Result<Option<Expr>> {
    dml::own_index_expression(text, table, cx)
}

/// Binds the condition of the rows that an index is to have.
pub fn bind_index_predicate(text: &Expression, table: &TableDesc, cx: &mut BindContext<'_>) -> Result<Expr> {
    let expr = dml::index_predicate(text, table, cx)?;
    Ok(finished(expr, cx))
}

/// The expressions of the generated columns that an update of these columns computes: (attnum - 1, value over rel 0).
pub fn regenerated_columns(
    table: &TableDesc,
    set: &[(usize, Expr)],
    cx: &mut BindContext<'_>,
) -> Result<Vec<(usize, Expr)>> {
    let all = dml::regenerated(table, set, cx)?;
    Ok(all.into_iter().map(|(column, expr)| (column, evaluated(expr, cx))).collect())
}

/// What a column's values are computed by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Computed {
    /// The expression of a generated column.
    Generated,
    /// USING, when its type changes.
    Transform,
}

/// Binds an expression that computes a column over the columns of its table (rel 0), coerced to the column's type.
pub fn bind_computed(
    by: Computed,
    text: &Expression,
    ty: Ty,
    column: &str,
    table: &TableDesc,
    cx: &mut BindContext<'_>,
) -> Result<Expr> {
    let place = match by {
        Computed::Generated => scope::ClauseKind::Generated,
        Computed::Transform => scope::ClauseKind::Transform,
    };
    let expr = dml::computed(place, text, ty, column, table, cx)?;
    Ok(finished(expr, cx))
}

/// Binds what USING says of a column whose type changes, to see whether it can be, whatever the type is.
pub fn check_transform(text: &Expression, table: &TableDesc, cx: &mut BindContext<'_>) -> Result<()> {
    dml::transform(text, table, cx)
}

/// The default that a column has from its type.
pub fn domain_default(ty: base::Oid, cx: &BindContext<'_>) -> Option<Expression> {
    domain::default_of(ty, cx)
}

/// Binds an expression without columns, coerced (assignment) to the type of parameter `number`.
pub fn bind_argument(node: &Node, ty: Ty, number: usize, sql: &str, cx: &mut BindContext<'_>) -> Result<Expr> {
    let expr = dml::argument(node, ty, number, sql, cx)?;
    Ok(finished(expr, cx))
}

/// Whether an expression may have another value each time.
pub fn calls_volatile(expr: &Expr) -> bool {
    visit::calls_volatile(expr)
}

/// Whether an expression reads a row of its table as a whole.
pub fn reads_whole_row(expr: &Expr) -> bool {
    let mut found = false;
    visit::walk(expr, 0, &mut |e, _| found |= matches!(e, Expr::WholeRow { .. }));
    found
}

/// Calls `f` on every column reference of an expression.
pub fn visit_columns(expr: &Expr, f: &mut dyn FnMut(&Column)) {
    visit::columns(expr, f);
}

/// The `=` operator for two types, after implicit casts.
pub fn equality_operator(left: Oid, right: Oid) -> Option<&'static Operator> {
    resolve::binary_operator("=", left, right).ok()
}

/// The cast that makes a value of one type one of another: a function, or none where the value stays as it is.
pub fn cast_between(from: Oid, to: Oid) -> Option<Option<&'static Function>> {
    coerce::cast_between(from, to)
}

/// Whether a search path leads to a type by its name alone.
pub fn is_type_visible(catalog: &Catalog, path: &[Oid], name: &str, oid: Oid) -> bool {
    types::is_visible(catalog, path, name, oid)
}

/// Whether a cast exists in a context.
pub fn can_cast(from: Oid, to: Oid, context: CastContext) -> bool {
    coerce::can_coerce(from, to, context)
}
