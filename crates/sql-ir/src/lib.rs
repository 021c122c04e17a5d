//! The bound statement: what the binder hands to the planner. Names are resolved, types are decided, casts are explicit.
//!
//! Responsible for: the types of that form; scalar expressions compiled to a frame of slots ([`expr`]); how rows are read from and
//! written to their stored form ([`row_codec`]).
//! Not responsible for: how a statement becomes this (`sql-bind`), and what is made of it (`sql-plan`).
//! Invariants: every [`Expr`] knows its type; a [`Column`] names (levels up, range-table entry, column); operators and casts
//! are calls of [`sql_functions::Function`]s; nothing here refers to the statement's text except for error positions.
//!
//! The shape follows PostgreSQL's `Query` (range table + join tree + target list), because its rules for what a column
//! reference, an aggregate or a sort key means are stated in these terms.

#![forbid(unsafe_code)]

pub mod expr;
pub mod row_codec;
pub mod system_column;
pub mod system_relation;
pub mod view;

use std::collections::BTreeSet;
use std::sync::Arc;

use base::{Oid, work};
use engine_api::{IndexDesc, TableDesc};
use sql_functions::{Aggregate, Function, SetFunction};
pub use sql_functions::{CompareOp, WindowKind};
use system_relation::SystemRelation;
use types::Datum;

/// A type with its modifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ty {
    /// Type.
    pub oid: Oid,
    /// Modifier, -1 for none.
    pub typmod: i32,
}

impl Ty {
    /// A type without modifier.
    pub const fn of(oid: Oid) -> Ty {
        Ty { oid, typmod: -1 }
    }
}

/// A bound statement.
#[derive(Clone, Debug)]
pub enum Statement {
    /// SELECT, VALUES, set operations.
    Select(Box<Query>),
    /// INSERT
    Insert(Box<Insert>),
    /// UPDATE
    Update(Box<Update>),
    /// DELETE
    Delete(Box<Delete>),
    /// MERGE
    Merge(Box<Merge>),
}

/// A bound SELECT (or VALUES, or set operation).
#[derive(Clone, Debug, Default)]
pub struct Query {
    /// WITH: the queries whose rows are kept; those that are read like a subquery in FROM are no longer here.
    pub ctes: Vec<Cte>,
    /// Range table; [`Column::rel`] indexes it.
    pub rels: Vec<Rel>,
    /// FROM as a list of join trees (comma = cross join). Empty: one row without columns.
    pub from: Vec<From>,
    /// Conditions of views with `security_barrier` that a statement changes rows through: each is tested before the next, and
    /// before whatever of the rest may leak.
    pub guards: Vec<Guard>,
    /// WHERE
    pub filter: Option<Expr>,
    /// Output columns in order, then the resjunk ones that only sorting or grouping needs.
    pub targets: Vec<Target>,
    /// GROUP BY expressions. Grouped query iff non-empty or `aggs` or `having`.
    pub group_by: Vec<Expr>,
    /// GROUPING SETS: each the numbers of its `group_by` expressions. Empty: one set of them all.
    pub grouping_sets: Vec<Vec<usize>>,
    /// Targets that are constant grouping expressions, with the numbers of these: nothing but being that target tells a `1` that
    /// is grouped by from another `1`.
    pub grouped_constants: Vec<(usize, usize)>,
    /// Aggregate calls of this level; [`Expr::Agg`] indexes it.
    pub aggs: Vec<AggCall>,
    /// HAVING
    pub having: Option<Expr>,
    /// DISTINCT: `Some(vec![])` over all visible targets, else DISTINCT ON these targets (indexes).
    pub distinct: Option<Vec<usize>>,
    /// ORDER BY.
    pub order_by: Vec<SortKey>,
    /// LIMIT (bigint); NULL is no limit.
    pub limit: Option<Expr>,
    /// FETCH … WITH TIES: rows equal in ORDER BY to the last one come too.
    pub with_ties: bool,
    /// OFFSET (bigint).
    pub offset: Option<Expr>,
    /// Set operation or VALUES instead of FROM/WHERE; `order_by`, `limit`, `offset` still apply to its result.
    pub body: Body,
    /// FOR UPDATE and the like.
    pub locking: Vec<Locking>,
    /// The view whose query this is, or is part of: what is below is done in the name of its owner.
    pub of_view: Option<QueryOfView>,
    /// UPDATE and DELETE: WHERE CURRENT OF this cursor.
    pub current_of: Option<String>,
    /// TABLESAMPLE: the query has no more than its one table and a select list, and gives some of the rows.
    pub sample: Option<Box<Sample>>,
}

/// Where in a view's text a query stands.
#[derive(Clone, Debug)]
pub struct QueryOfView {
    /// The view.
    pub view: Arc<TableDesc>,
    /// It is the view's own query, not one inside of it.
    pub is_whole: bool,
    /// FOR UPDATE or the like is said of the view.
    pub is_locked: bool,
}

/// What decides which rows of a table may be seen at all.
#[derive(Clone, Debug)]
pub struct Guard {
    /// The table's entry.
    pub rel: usize,
    /// What must hold of a row.
    pub condition: Expr,
}

/// TABLESAMPLE.
#[derive(Clone, Debug)]
pub struct Sample {
    /// How many of a hundred rows come (real).
    pub percent: Expr,
    /// REPEATABLE (double precision)
    pub seed: Option<Expr>,
    /// Rows come in groups.
    pub system: bool,
}

impl Query {
    /// An output column by its place: none needs to be passed to find it.
    pub fn output(&self, column: usize) -> Option<&Target> {
        self.targets.get(column).filter(|target| !target.junk)
    }

    /// Whether it is that of a view with `security_barrier`: what is around it may not be tested on rows that it hides.
    pub fn is_barrier(&self) -> bool {
        self.of_view.as_ref().is_some_and(|of| of.is_whole && view::is_barrier(&of.view))
    }

    /// Whether its rows are groups of rows, its aggregates aside.
    pub fn is_grouped(&self) -> bool {
        !self.group_by.is_empty() || !self.grouping_sets.is_empty() || !self.aggs.is_empty() || self.having.is_some()
    }
}

/// A query of a WITH clause: it runs once, at most, for all that refer to it.
#[derive(Clone, Debug)]
pub struct Cte {
    /// What [`RelKind::Cte`] names it by.
    pub id: usize,
    /// Name.
    pub name: String,
    /// It; the query that has the WITH clause is the one around it.
    pub query: Box<Query>,
    /// It changes rows: it runs to its end even if nobody reads it.
    pub modifies: bool,
    /// How the clause writes it.
    pub written: WrittenCte,
}

/// What a WITH clause says of a query in it, beside the query.
#[derive(Clone, Debug, Default)]
pub struct WrittenCte {
    /// Names for its columns.
    pub columns: Vec<String>,
    /// MATERIALIZED, or NOT MATERIALIZED.
    pub materialized: Option<bool>,
    /// The clause says RECURSIVE.
    pub recursive: bool,
    /// It has a SEARCH or CYCLE clause.
    pub searched: bool,
}

/// A call of a set-returning function.
#[derive(Clone, Debug)]
pub struct SetCall {
    /// Function.
    pub function: &'static SetFunction,
    /// Arguments.
    pub args: Vec<Expr>,
}

/// A call of a window function.
#[derive(Clone, Debug)]
pub struct WindowCall {
    /// What is called.
    pub callee: WindowCallee,
    /// Arguments.
    pub args: Vec<Expr>,
    /// FILTER (WHERE …)
    pub filter: Option<Expr>,
    /// PARTITION BY
    pub partition: Vec<Expr>,
    /// ORDER BY: expression, descending, nulls first.
    pub order: Vec<(Expr, bool, bool)>,
    /// The frame.
    pub frame: WindowFrame,
    /// Result type.
    pub ty: Ty,
}

/// What a call with OVER calls.
#[derive(Clone, Copy, Debug)]
pub enum WindowCallee {
    /// A window function proper.
    Function(WindowKind),
    /// An aggregate, over the rows of the frame.
    Aggregate(&'static Aggregate),
}

impl WindowCallee {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            WindowCallee::Aggregate(aggregate) => aggregate.name,
            WindowCallee::Function(kind) => kind.name(),
        }
    }
}

/// Which rows of its partition a window function sees.
#[derive(Clone, Debug)]
pub struct WindowFrame {
    /// What bounds are counted in.
    pub mode: FrameMode,
    /// The first row.
    pub start: FrameBound,
    /// The last row.
    pub end: FrameBound,
    /// Rows between them that are left out.
    pub exclude: Exclude,
}

/// What the bounds of a frame are counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameMode {
    /// Rows.
    Rows,
    /// Values of ORDER BY.
    Range,
    /// Groups of rows that are equal in ORDER BY.
    Groups,
}

/// A bound of a frame.
#[derive(Clone, Debug)]
pub enum FrameBound {
    /// UNBOUNDED PRECEDING
    UnboundedPreceding,
    /// … PRECEDING
    Preceding(Expr),
    /// CURRENT ROW
    CurrentRow,
    /// … FOLLOWING
    Following(Expr),
    /// UNBOUNDED FOLLOWING
    UnboundedFollowing,
}

impl FrameBound {
    /// The offset, if there is one.
    pub fn offset(&self) -> Option<&Expr> {
        match self {
            FrameBound::Preceding(expr) | FrameBound::Following(expr) => Some(expr),
            _ => None,
        }
    }

    /// The offset, to be changed.
    pub fn offset_mut(&mut self) -> Option<&mut Expr> {
        match self {
            FrameBound::Preceding(expr) | FrameBound::Following(expr) => Some(expr),
            _ => None,
        }
    }
}

/// Rows left out of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exclude {
    /// None.
    NoOthers,
    /// The current one.
    CurrentRow,
    /// The current one and those equal to it in ORDER BY.
    Group,
    /// Those equal to the current one.
    Ties,
}

/// What produces the rows of a query.
#[derive(Clone, Debug, Default)]
pub enum Body {
    /// FROM/WHERE/GROUP BY.
    #[default]
    Select,
    /// VALUES lists, all of one width; `targets` are `Column`s of a virtual rel 0 of kind `RelKind::Values`.
    Values(Vec<Vec<Expr>>),
    /// UNION, INTERSECT, EXCEPT; operands have equal column types. `targets` are `Column`s of virtual rel 0.
    SetOp {
        /// Which.
        op: SetOp,
        /// ALL
        all: bool,
        /// Left operand.
        left: Box<Query>,
        /// Right operand.
        right: Box<Query>,
        /// The right operand runs again and again, over the rows it gave last: it reads them as this
        /// [`RelKind::WorkTable`].
        recursion: Option<usize>,
    },
    /// INSERT, UPDATE or DELETE in a WITH clause. `targets` are `Column`s of virtual rel 0, whose columns are those of
    /// RETURNING; the statement has a range table of its own, at the same level.
    Modify(Box<Statement>),
}

/// Set operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetOp {
    /// UNION
    Union,
    /// INTERSECT
    Intersect,
    /// EXCEPT
    Except,
}

/// A range-table entry.
#[derive(Clone, Debug)]
pub struct Rel {
    /// Alias or name, as error messages and EXPLAIN show it.
    pub alias: String,
    /// A FROM clause gives it the alias.
    pub aliased: bool,
    /// What it is.
    pub kind: RelKind,
    /// Its columns (for tables: by attribute number - 1, dropped ones included, so that `Column::column` = attnum - 1).
    pub columns: Vec<RelColumn>,
}

/// A column of a range-table entry. A copy is counted as work.
#[derive(Debug)]
pub struct RelColumn {
    /// Name; empty for dropped.
    pub name: String,
    /// Type.
    pub ty: Ty,
}

impl Clone for RelColumn {
    fn clone(&self) -> RelColumn {
        work::beat(16);
        RelColumn { name: self.name.clone(), ty: self.ty }
    }
}

/// What a range-table entry is.
#[derive(Clone, Debug)]
pub enum RelKind {
    /// A stored table.
    Table(Arc<TableInfo>),
    /// A relation computed from the catalog.
    System(&'static SystemRelation),
    /// A subquery in FROM.
    Subquery {
        /// It.
        query: Box<Query>,
        /// May refer to earlier FROM items.
        lateral: bool,
    },
    /// Set-returning functions in FROM, side by side: the columns of the first, then of the second and so on; one that
    /// has no more rows gives NULLs until all are done.
    Function {
        /// The calls, at least one.
        calls: Vec<SetCall>,
        /// WITH ORDINALITY
        ordinality: bool,
        /// They stand in a select list: they run for each row of what is beside them, and their rows come in its order.
        per_row: bool,
    },
    /// The rows of a query of a WITH clause around.
    Cte {
        /// Which.
        id: usize,
        /// The table columns that its columns are, unchanged.
        origins: Vec<Option<(Oid, i16)>>,
    },
    /// Within the recursive part of a query: the rows that it gave last.
    WorkTable(usize),
    /// The virtual rel of a VALUES list or set operation.
    Values,
    /// A window function over this query's rows, as a rel of one column that is not in FROM.
    Window(Box<WindowCall>),
    /// A join with its own column list (USING merges, alias on a join): each column is an expression over earlier rels.
    /// The binder resolves references to the expression, so the planner never meets a `Column` of such a rel.
    Join,
}

/// The expressions and the condition of an index, over the columns of its table (rel 0).
#[derive(Clone, Debug, Default)]
pub struct BoundIndex {
    /// Its expressions, in order.
    pub expressions: Vec<Expr>,
    /// WHERE
    pub predicate: Option<Expr>,
}

/// Everything a plan needs of a stored table: its descriptor and its indexes, of one catalog version.
#[derive(Clone, Debug)]
pub struct TableInfo {
    /// The table.
    pub desc: TableDesc,
    /// Its indexes.
    pub indexes: Vec<IndexDesc>,
    /// What they compute, by their place, over rel 0; empty if none of them does.
    pub codes: Vec<Option<Arc<BoundIndex>>>,
}

impl TableInfo {
    /// What an index computes: `Some(None)` if nothing; `None` if it cannot be told, so that the index is of no use.
    pub fn code(&self, index: usize) -> Option<Option<&BoundIndex>> {
        match self.codes.get(index) {
            Some(Some(code)) => Some(Some(code)),
            _ if self.indexes.get(index).is_some_and(|i| i.needs_code()) => None,
            _ => Some(None),
        }
    }
}

/// A FROM item.
#[derive(Clone, Debug)]
pub enum From {
    /// A range-table entry.
    Rel(usize),
    /// A join.
    Join {
        /// Kind.
        kind: JoinKind,
        /// Left side.
        left: Box<From>,
        /// Right side.
        right: Box<From>,
        /// ON (USING and NATURAL included).
        on: Option<Expr>,
    },
}

/// Kinds of joins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinKind {
    /// INNER, CROSS
    Inner,
    /// LEFT
    Left,
    /// RIGHT
    Right,
    /// FULL
    Full,
    /// Rows of the left side that have a partner, each once. Made by the planner of `EXISTS` and `IN`, never by the binder.
    Semi,
    /// Rows of the left side that have none: `NOT EXISTS`.
    Anti,
}

/// An output column.
#[derive(Clone, Debug)]
pub struct Target {
    /// Value.
    pub expr: Expr,
    /// Column name.
    pub name: String,
    /// Only for sorting or grouping; not returned.
    pub junk: bool,
}

/// One ORDER BY key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SortKey {
    /// Index into the targets.
    pub target: usize,
    /// DESC
    pub descending: bool,
    /// NULLS FIRST
    pub nulls_first: bool,
}

/// FOR UPDATE/SHARE on one range-table entry.
#[derive(Clone, Copy, Debug)]
pub struct Locking {
    /// The entry (a table).
    pub rel: usize,
    /// Strength.
    pub mode: engine_api::RowLockMode,
    /// NOWAIT, SKIP LOCKED.
    pub policy: engine_api::WaitPolicy,
}

/// An aggregate call.
#[derive(Clone, Debug)]
pub struct AggCall {
    /// Which.
    pub aggregate: &'static Aggregate,
    /// Arguments; empty for `count(*)`. Of an ordered-set aggregate: what it sorts.
    pub args: Vec<Expr>,
    /// Direct arguments of an ordered-set aggregate, the same for all rows of a group.
    pub direct: Vec<Expr>,
    /// DISTINCT
    pub distinct: bool,
    /// ORDER BY inside the call: expression, descending, nulls first.
    pub order_by: Vec<(Expr, bool, bool)>,
    /// FILTER (WHERE …)
    pub filter: Option<Expr>,
    /// Result type.
    pub ty: Ty,
}

/// A column reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Column {
    /// 0 = this query, 1 = the one around it, …
    pub level: usize,
    /// Range-table entry at that level.
    pub rel: usize,
    /// Column of it.
    pub column: usize,
    /// Type.
    pub ty: Ty,
}

/// A bound expression. A copy is counted as work by its parts: lists are as long as a user writes them.
#[derive(Debug)]
pub enum Expr {
    /// A constant.
    Const(Datum, Ty),
    /// `$n`, from 0.
    Param(usize, Ty),
    /// A column.
    Column(Column),
    /// A whole row of a rel as a record.
    WholeRow {
        /// Levels up.
        level: usize,
        /// Range-table entry.
        rel: usize,
    },
    /// The `i`th aggregate of query `level` levels up (0 = this).
    Agg {
        /// Levels up.
        level: usize,
        /// Index into [`Query::aggs`].
        index: usize,
        /// Type.
        ty: Ty,
    },
    /// A function, an operator or a cast function.
    Call {
        /// It.
        function: &'static Function,
        /// Arguments, already of its argument types.
        args: Vec<Expr>,
        /// Result type (polymorphic functions decided).
        ty: Ty,
        /// Byte offset in the statement, -1 unknown; for error positions.
        location: i32,
    },
    /// A cast through the text form (I/O conversion) or of array elements.
    Cast {
        /// What.
        arg: Box<Expr>,
        /// To which type.
        ty: Ty,
        /// How.
        kind: CastKind,
        /// Explicit casts truncate silently where assignment raises.
        explicit: bool,
        /// Byte offset in the statement.
        location: i32,
    },
    /// AND
    And(Vec<Expr>),
    /// OR
    Or(Vec<Expr>),
    /// NOT
    Not(Box<Expr>),
    /// IS \[NOT\] NULL
    IsNull {
        /// What.
        arg: Box<Expr>,
        /// NOT
        negated: bool,
        /// Of a row: whether each of its fields is, not whether it is there itself. A field that is a row is looked at itself.
        fields: bool,
    },
    /// IS \[NOT\] TRUE / FALSE / UNKNOWN: `want` None is UNKNOWN.
    BooleanTest {
        /// What.
        arg: Box<Expr>,
        /// Compared with.
        want: Option<bool>,
        /// NOT
        negated: bool,
    },
    /// IS \[NOT\] DISTINCT FROM, with the equality function.
    Distinct {
        /// Equality.
        equal: &'static Function,
        /// Left and right.
        args: Box<[Expr; 2]>,
        /// NOT DISTINCT
        negated: bool,
    },
    /// CASE
    Case {
        /// Whether it was written with an operand, which is the left side of each condition.
        simple: bool,
        /// (condition, result)
        branches: Vec<(Expr, Expr)>,
        /// ELSE
        otherwise: Option<Box<Expr>>,
        /// Type.
        ty: Ty,
    },
    /// COALESCE
    Coalesce(Vec<Expr>, Ty),
    /// NULLIF, with the equality function.
    NullIf {
        /// Equality.
        equal: &'static Function,
        /// Compared, and the value (args.0 is returned).
        args: Box<[Expr; 2]>,
        /// Type.
        ty: Ty,
    },
    /// GREATEST (true) / LEAST
    MinMax {
        /// GREATEST
        greatest: bool,
        /// Arguments of one type.
        args: Vec<Expr>,
        /// Type.
        ty: Ty,
    },
    /// `x op ANY/ALL (array)`; also `IN (list)` as `= ANY` over the list.
    AnyAll {
        /// ALL
        all: bool,
        /// Operator, returning boolean.
        function: &'static Function,
        /// Left side.
        left: Box<Expr>,
        /// Right side.
        right: AnyAllSource,
    },
    /// ROW(…)
    Row(Vec<Expr>, Ty),
    /// Row-wise comparison `(a, b) < (c, d)`.
    RowCompare {
        /// The comparison.
        op: CompareOp,
        /// Pairs with their equality and less-than functions (equal, less).
        pairs: Vec<(Expr, Expr, &'static Function, &'static Function)>,
    },
    /// ARRAY[…]
    Array {
        /// Elements of the element type (or arrays, when nested).
        elements: Vec<Expr>,
        /// Element type.
        element: Oid,
        /// Nested: elements are arrays of the same type.
        nested: bool,
        /// Array type.
        ty: Ty,
    },
    /// `a[i]`, one subscript per dimension.
    Subscript {
        /// Array.
        array: Box<Expr>,
        /// Subscripts (int4).
        indexes: Vec<Expr>,
        /// Element type.
        ty: Ty,
    },
    /// A subquery in an expression.
    Subquery {
        /// How it is used.
        kind: SubqueryKind,
        /// It; its `Column`s of level ≥ 1 reach out.
        query: Box<Query>,
        /// Type of the expression.
        ty: Ty,
    },
    /// CURRENT_TIMESTAMP, nextval… : functions that need the session are ordinary `Call`s; this is the
    /// DEFAULT keyword in INSERT/UPDATE before it is replaced, never seen by the planner.
    Default,
}

/// How an `Expr::Cast` converts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CastKind {
    /// Through the text form.
    InOut,
    /// Binary compatible; nothing happens.
    Relabel,
    /// Array elements one by one, each as `element`: a cast function or through text.
    ArrayElements(Option<&'static Function>),
    /// Nothing: a call written by the name of its function, which is that of a cast or an operator. Only where an expression is
    /// bound to be shown.
    Called,
    /// COLLATE with the collation of this number; nothing happens.
    Collate(u32),
    /// Applies the target's type modifier (length, precision) to a value of the right type.
    Typmod,
}

/// Right side of ANY/ALL.
#[derive(Clone, Debug)]
pub enum AnyAllSource {
    /// An array expression.
    Array(Box<Expr>),
    /// A list of expressions (`IN`).
    List(Vec<Expr>),
}

/// How a subquery in an expression is used.
#[derive(Clone, Debug)]
pub enum SubqueryKind {
    /// EXISTS
    Exists,
    /// One value; 21000 for more than one row.
    Scalar,
    /// `left op ANY (subquery)`; IN is `= ANY`. One function per column; more than one column only for = and <>.
    Any {
        /// Left side(s).
        left: Vec<Expr>,
        /// Operators, one per column.
        functions: Vec<&'static Function>,
    },
    /// `left op ALL (subquery)`; NOT IN is `<> ALL`.
    All {
        /// Left side(s).
        left: Vec<Expr>,
        /// Operators, one per column.
        functions: Vec<&'static Function>,
    },
    /// ARRAY(subquery)
    Array,
}

/// A bound INSERT.
#[derive(Clone, Debug)]
pub struct Insert {
    /// WITH.
    pub ctes: Vec<Cte>,
    /// The table; it is rel 0 in `returning` and in `on_conflict`'s expressions, `excluded` is rel 1.
    pub table: Arc<TableInfo>,
    /// Where rows come from. Its visible targets are assigned to `columns` in order, already of the column types.
    pub source: InsertSource,
    /// For every column of the table by attnum - 1: where its value comes from.
    pub columns: Vec<ColumnSource>,
    /// What domains demand of the columns' values: (attnum - 1, the value over rel 0, tested as it is evaluated).
    pub tests: Vec<(usize, Expr)>,
    /// The columns (attnum - 1) that the statement names or gives values, those included whose values it overrides.
    pub named: Vec<usize>,
    /// ON CONFLICT.
    pub on_conflict: Option<OnConflict>,
    /// RETURNING, over rels `[table]`.
    pub returning: Vec<Target>,
    /// Range table for `returning` and `on_conflict`: [table, excluded].
    pub rels: Vec<Rel>,
    /// CHECK constraints to test on each new row: (name, expression over rel 0).
    pub checks: Vec<(String, Expr)>,
    /// WITH CHECK OPTION of the views written through: (view, condition over rel 0).
    pub view_checks: Vec<(String, Expr)>,
    /// Generated columns, computed when all others are: (attnum - 1, value over rel 0).
    pub generated: Vec<(usize, Expr)>,
    /// Views in between.
    pub through: ThroughViews,
}

/// The views between a statement and the table that it changes, to privileges; empty if it names the table.
#[derive(Clone, Debug, Default)]
pub struct ThroughViews {
    /// From the one that the statement names to the one over the table.
    pub views: Vec<WrittenView>,
    /// What the statement does with the columns of the first.
    pub used: ViewUse,
}

/// A view that a statement writes through, to privileges.
#[derive(Clone, Debug)]
pub struct WrittenView {
    /// The view.
    pub desc: Arc<TableDesc>,
    /// The column of the table (attribute number - 1) behind each of its own; `None` for computed ones.
    pub columns: Vec<Option<usize>>,
    /// Indexes of the columns of what it is over, view or table, that its query reads.
    pub below: BTreeSet<usize>,
}

impl WrittenView {
    /// Its columns over the same columns of the table as some of a view over it, as far as that view reads them.
    pub fn over_same(&self, above: &WrittenView, columns: &BTreeSet<usize>) -> BTreeSet<usize> {
        let base: BTreeSet<usize> =
            columns.iter().filter_map(|&column| above.columns.get(column).copied().flatten()).collect();
        let is_over = |at: &usize| self.columns.get(*at).copied().flatten().is_some_and(|b| base.contains(&b));
        above.below.iter().copied().filter(is_over).collect()
    }
}

/// Indexes of columns of a view that is written through, by what a statement does with them.
#[derive(Clone, Debug, Default)]
pub struct ViewUse {
    /// Read.
    pub read: BTreeSet<usize>,
    /// Given a value by INSERT.
    pub inserted: BTreeSet<usize>,
    /// Assigned to by UPDATE.
    pub updated: BTreeSet<usize>,
}

/// Rows of an INSERT.
#[derive(Clone, Debug)]
pub enum InsertSource {
    /// VALUES: the common case, kept apart so that the planner can go straight to the rows.
    Values(Vec<Vec<Expr>>),
    /// SELECT
    Query(Box<Query>),
}

/// Where one column of a new row comes from.
#[derive(Clone, Debug)]
pub enum ColumnSource {
    /// The nth column of the source.
    Source(usize),
    /// The default expression (or NULL). Dropped columns are `Default(Expr::Const(Null))`.
    Default(Expr),
}

/// ON CONFLICT.
#[derive(Clone, Debug)]
pub struct OnConflict {
    /// Inferred unique index; `None` only for DO NOTHING without a target.
    pub arbiter: Option<Oid>,
    /// The condition of the conflict target, over the table. It has chosen the index; its columns are read, to rights.
    pub condition: Option<Expr>,
    /// Where the values of parameters in the condition decide: the unique indexes that may be meant, with their conditions. The first
    /// is `arbiter`.
    pub by_values: Vec<(Oid, Expr)>,
    /// DO UPDATE; `None` is DO NOTHING.
    pub update: Option<ConflictUpdate>,
}

/// DO UPDATE SET.
#[derive(Clone, Debug)]
pub struct ConflictUpdate {
    /// (attnum - 1, value) over rels [table, excluded].
    pub set: Vec<(usize, Expr)>,
    /// WHERE
    pub filter: Option<Expr>,
}

/// A bound UPDATE. `query` yields the joined rows: rel `target` is the table.
#[derive(Clone, Debug)]
pub struct Update {
    /// The table.
    pub table: Arc<TableInfo>,
    /// FROM … WHERE; rel 0 is the target table; no targets.
    pub query: Query,
    /// (attnum - 1, value) over the query's rels.
    pub set: Vec<(usize, Expr)>,
    /// CHECK constraints over the *new* row as rel 0.
    pub checks: Vec<(String, Expr)>,
    /// WITH CHECK OPTION of the views written through: (view, condition over the *new* row as rel 0).
    pub view_checks: Vec<(String, Expr)>,
    /// Generated columns, computed when all others are: (attnum - 1, value over the *new* row as rel 0).
    pub generated: Vec<(usize, Expr)>,
    /// RETURNING over the query's rels, rel 0 being the new row.
    pub returning: Vec<Target>,
    /// Views in between.
    pub through: ThroughViews,
}

/// A bound DELETE.
#[derive(Clone, Debug)]
pub struct Delete {
    /// The table.
    pub table: Arc<TableInfo>,
    /// USING … WHERE; rel 0 is the target table; no targets.
    pub query: Query,
    /// RETURNING over the query's rels, rel 0 being the old row.
    pub returning: Vec<Target>,
    /// Views in between.
    pub through: ThroughViews,
}

/// A bound MERGE. `query` yields the rows of the source, each with the row of the table that it matches or without.
#[derive(Clone, Debug)]
pub struct Merge {
    /// The table.
    pub table: Arc<TableInfo>,
    /// The source joined with the table, which is rel 0; no targets.
    pub query: Query,
    /// ON
    pub on: Expr,
    /// What is done with a row: the first action whose condition holds.
    pub actions: Vec<MergeAction>,
    /// CHECK constraints over the *new* row as rel 0.
    pub checks: Vec<(String, Expr)>,
    /// Generated columns, computed when all others are: (attnum - 1, value over the *new* row as rel 0).
    pub generated: Vec<(usize, Expr)>,
}

/// A WHEN clause of MERGE.
#[derive(Clone, Debug)]
pub struct MergeAction {
    /// WHEN MATCHED
    pub matched: bool,
    /// AND …
    pub condition: Option<Expr>,
    /// What is done.
    pub kind: MergeKind,
}

/// What MERGE does with a row.
#[derive(Clone, Debug)]
pub enum MergeKind {
    /// UPDATE: (attnum - 1, value)
    Update(Vec<(usize, Expr)>),
    /// DELETE
    Delete,
    /// INSERT: (attnum - 1, value) for every column, those that the statement gives values to first
    Insert(Vec<(usize, Expr)>, usize),
    /// DO NOTHING
    Nothing,
}

impl MergeKind {
    /// The values that are assigned.
    pub fn values(&self) -> &[(usize, Expr)] {
        match self {
            MergeKind::Update(values) | MergeKind::Insert(values, _) => values,
            MergeKind::Delete | MergeKind::Nothing => &[],
        }
    }

    /// The values that are assigned, to be changed.
    pub fn values_mut(&mut self) -> &mut [(usize, Expr)] {
        match self {
            MergeKind::Update(values) | MergeKind::Insert(values, _) => values,
            MergeKind::Delete | MergeKind::Nothing => &mut [],
        }
    }
}

impl Clone for Expr {
    fn clone(&self) -> Expr {
        work::beat(8);
        match self {
            Expr::Const(value, ty) => Expr::Const(value.clone(), *ty),
            Expr::Param(number, ty) => Expr::Param(*number, *ty),
            Expr::Column(column) => Expr::Column(*column),
            &Expr::WholeRow { level, rel } => Expr::WholeRow { level, rel },
            &Expr::Agg { level, index, ty } => Expr::Agg { level, index, ty },
            &Expr::Call { function, ref args, ty, location } => {
                Expr::Call { function, args: args.clone(), ty, location }
            }
            &Expr::Cast { ref arg, ty, kind, explicit, location } => {
                Expr::Cast { arg: arg.clone(), ty, kind, explicit, location }
            }
            Expr::And(args) => Expr::And(args.clone()),
            Expr::Or(args) => Expr::Or(args.clone()),
            Expr::Not(arg) => Expr::Not(arg.clone()),
            &Expr::IsNull { ref arg, negated, fields } => Expr::IsNull { arg: arg.clone(), negated, fields },
            &Expr::BooleanTest { ref arg, want, negated } => Expr::BooleanTest { arg: arg.clone(), want, negated },
            &Expr::Distinct { equal, ref args, negated } => Expr::Distinct { equal, args: args.clone(), negated },
            &Expr::Case { simple, ref branches, ref otherwise, ty } => {
                Expr::Case { simple, branches: branches.clone(), otherwise: otherwise.clone(), ty }
            }
            Expr::Coalesce(args, ty) => Expr::Coalesce(args.clone(), *ty),
            &Expr::NullIf { equal, ref args, ty } => Expr::NullIf { equal, args: args.clone(), ty },
            &Expr::MinMax { greatest, ref args, ty } => Expr::MinMax { greatest, args: args.clone(), ty },
            &Expr::AnyAll { all, function, ref left, ref right } => {
                Expr::AnyAll { all, function, left: left.clone(), right: right.clone() }
            }
            Expr::Row(fields, ty) => Expr::Row(fields.clone(), *ty),
            &Expr::RowCompare { op, ref pairs } => Expr::RowCompare { op, pairs: pairs.clone() },
            &Expr::Array { ref elements, element, nested, ty } => {
                Expr::Array { elements: elements.clone(), element, nested, ty }
            }
            &Expr::Subscript { ref array, ref indexes, ty } => {
                Expr::Subscript { array: array.clone(), indexes: indexes.clone(), ty }
            }
            Expr::Subquery { kind, query, ty } => Expr::Subquery { kind: kind.clone(), query: query.clone(), ty: *ty },
            Expr::Default => Expr::Default,
        }
    }
}

impl Expr {
    /// The type of the expression.
    pub fn ty(&self) -> Ty {
        use types::oid;
        const BOOL: Ty = Ty::of(oid::BOOL);
        match self {
            Expr::Const(_, ty) | Expr::Param(_, ty) | Expr::Coalesce(_, ty) | Expr::Row(_, ty) => *ty,
            Expr::Column(c) => c.ty,
            Expr::WholeRow { .. } => Ty::of(oid::RECORD),
            Expr::Agg { ty, .. }
            | Expr::Call { ty, .. }
            | Expr::Cast { ty, .. }
            | Expr::Case { ty, .. }
            | Expr::NullIf { ty, .. }
            | Expr::MinMax { ty, .. }
            | Expr::Array { ty, .. }
            | Expr::Subscript { ty, .. }
            | Expr::Subquery { ty, .. } => *ty,
            Expr::And(_)
            | Expr::Or(_)
            | Expr::Not(_)
            | Expr::IsNull { .. }
            | Expr::BooleanTest { .. }
            | Expr::Distinct { .. }
            | Expr::AnyAll { .. }
            | Expr::RowCompare { .. } => BOOL,
            Expr::Default => Ty::of(oid::UNKNOWN),
        }
    }
}
