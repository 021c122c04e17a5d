//! From the bound statement to a plan.
//!
//! Responsible for: the layout of registers, access paths (key, keys, range, order of an index), the order and method of joins,
//! where conditions are tested, compiling expressions to the registers, EXPLAIN's text.
//! Not responsible for: what names and types mean (`sql-bind`), running (`sql-exec`).
//! Invariants: a plan holds no data and refers to the catalog only through the descriptors it was made from; the whole
//! qualification of a row that may be locked is kept beside its access path, for the re-check of rule R7. A condition that may
//! leak is not tested on rows that a view hides behind a barrier ([`leak`]).
//!
//! Start at [`plan`]; [`query`] plans one level, [`join`] its FROM, [`access`] one table, [`modify`] changes.

#![forbid(unsafe_code)]

mod access;
mod assume;
mod cte;
mod exists;
mod explain;
mod foreign_key;
mod graph;
mod implied;
mod join;
mod key_reader;
mod leak;
mod level;
mod merge_join;
mod methods;
mod modify;
mod negation;
mod node;
mod order;
mod outer_joins;
mod parallel;
mod places;
mod pushdown;
mod query;
mod rewrite;
mod sarg;
mod scan_node;
mod selectivity;
mod walk;
mod window;

use std::cell::Cell;
use std::sync::Arc;

use base::{Error, Oid, Result, work};
use engine_api::Catalog;
use sql_functions::EvalContext;
use sql_functions::statistics::TableStatistics;
use sql_ir::{self as ir, Statement};
use types::Datum;

pub use assume::Assumption;
pub use explain::{ExplainFormat, ExplainOptions, ExplainTimes};
pub use foreign_key::{EngineRows, ParentChange, ReferencedKey, ReferencingKey, referenced, referencing};
pub use methods::{PlanMethod, PlanMethods};
pub use node::{
    Access, AggregateCall, AggregateNode, AggregateResult, Bound, ConflictAction, CteScanNode, CurrentNode, DeleteNode,
    DistinctNode, FilterNode, FrameBound, FrameCall, FunctionNode, GatherNode, HashJoinNode, IncrementalSortNode,
    InsertNode, InsertRows, JoinType, KeyColumn, KeyPart, KeySpan, KeyValue, LateNode, LimitNode, ListSource,
    LockRowsNode, LockTarget, MaterializeNode, MergeJoinNode, MergeKey, MergeNode, MergeWork, MeteredNode,
    NestedLoopNode, Node, Parallel, PlannedFrame, PlannedTable, ProjectNode, QueryPlan, RecursionNode, RowChoice,
    SampleNode, ScanNode, SetOpNode, SortNode, SortSlot, Stage, StoredColumns, Subplan, SubqueryNode, SystemNode,
    Target, UnionNode, UnionPart, UpdateNode, UpdateSet, ValuesNode, WindowFrameNode, WindowNode, WorkTableNode,
};

pub use walk::computes_parameters;

/// A plan, shared by all sessions that run the statement.
#[derive(Debug)]
pub struct Plan {
    /// The plan of the outermost query.
    pub root: Arc<QueryPlan>,
    /// Changes rows: what it counts are those.
    pub changes: bool,
    /// It changes rows and returns some: they are handed out when all is changed.
    pub fills: bool,
    /// How many WITH queries are kept, and how many of them are recursive.
    pub cells: (usize, usize),
    /// What follows the result's columns in each row of a cursor's query: identities of the rows of these tables.
    pub row_ids: Vec<RowOf>,
    /// Making it took long, so that it is large.
    pub is_large: bool,
    /// What it assumes of the values of parameters.
    pub assumes: Box<[Assumption]>,
    /// With values of the parameters a better one may be made.
    pub may_be_better: bool,
}

impl Drop for Plan {
    fn drop(&mut self) {
        if self.is_large {
            work::discard_elsewhere(Arc::clone(&self.root));
        }
    }
}

/// A table whose rows a cursor's query passes on.
#[derive(Clone, Debug)]
pub struct RowOf {
    /// The table.
    pub table: Oid,
    /// FOR UPDATE or the like locks them.
    pub locked: bool,
}

/// What the planner asks about tables.
pub trait PlannerStats {
    /// Rows of a table, roughly.
    fn row_count(&self, table: Oid) -> u64;

    /// Bytes that the rows of a table take; 0 if that is not known.
    fn bytes(&self, _table: Oid) -> u64 {
        0
    }

    /// What is known of the values in a table.
    fn table(&self, _table: Oid) -> Option<Arc<TableStatistics>> {
        None
    }
}

/// What planning one statement needs everywhere.
pub(crate) struct PlanContext<'a> {
    pub catalog: &'a Catalog,
    pub stats: &'a dyn PlannerStats,
    /// Where the rows of WITH queries are kept.
    pub cells: cte::Cells,
    /// Number of parameters; they are the first slots of all registers.
    pub params: usize,
    /// Values that the parameters have this time: what the plan is good for, if they are typical, and what it assumes of them.
    pub values: assume::Values<'a>,
    /// A subquery in FROM is planned for one row of what it is joined with.
    pub is_by_row: Cell<bool>,
    /// For trying conditions out.
    pub eval: Option<&'a dyn EvalContext>,
    /// The plan is made to be shown: its nodes are counted.
    pub explains: bool,
    /// With what each node gives.
    pub verbose: bool,
    /// What is switched off.
    pub methods: PlanMethods,
}

impl<'a> PlanContext<'a> {
    fn new(
        params: usize,
        catalog: &'a Catalog,
        stats: &'a dyn PlannerStats,
        circumstances: Circumstances<'a>,
    ) -> PlanContext<'a> {
        let Circumstances { hints, eval, explains, verbose, methods } = circumstances;
        let (cells, values, is_by_row) = (cte::Cells::default(), assume::Values::new(hints), Cell::new(false));
        PlanContext { catalog, stats, cells, params, values, is_by_row, eval, explains, verbose, methods }
    }
}

/// What a plan may be made for besides its statement.
#[derive(Clone, Copy, Default)]
pub struct Circumstances<'a> {
    /// Values that the parameters have this time.
    pub hints: &'a [Datum],
    /// For trying conditions out on what is known of columns.
    pub eval: Option<&'a dyn EvalContext>,
    /// The plan is made to be shown, by EXPLAIN.
    pub explains: bool,
    /// With what each node gives.
    pub verbose: bool,
    /// What is switched off.
    pub methods: PlanMethods,
}

/// Plans a statement.
///
/// # Errors
/// 0A000 for what cannot be run; 54001 for too many tables in one FROM.
pub fn plan(
    statement: &ir::Statement,
    catalog: &Catalog,
    stats: &dyn PlannerStats,
    circumstances: Circumstances<'_>,
) -> Result<Arc<Plan>> {
    run(statement, &PlanContext::new(walk::params(statement), catalog, stats, circumstances))
}

/// Plans a cursor's query: as [`plan`] does, with the identities of the rows that WHERE CURRENT OF may be about.
///
/// # Errors
/// As [`plan`].
pub fn plan_cursor(
    query: &ir::Query,
    catalog: &Catalog,
    stats: &dyn PlannerStats,
    circumstances: Circumstances<'_>,
) -> Result<Arc<Plan>> {
    let before = work::total();
    let params = walk::params(&Statement::Select(Box::new(query.clone())));
    // What is read in pieces, with changes between them, is read by one thread, as in PostgreSQL.
    let circumstances = Circumstances { methods: circumstances.methods.alone(), ..circumstances };
    let cx = PlanContext::new(params, catalog, stats, circumstances);
    let folded = cx.values.folded_query(query);
    let (root, row_ids) = query::plan_cursor(folded.as_ref().unwrap_or(query), &cx)?;
    let cells = cx.cells.counts();
    let is_large = work::is_long_since(before);
    let (assumes, may_be_better) = cx.values.taken();
    let root = Arc::new(root);
    Ok(Arc::new(Plan { root, changes: false, fills: false, cells, row_ids, is_large, assumes, may_be_better }))
}

/// Plans a statement whose registers have room for at least `params` parameters.
pub(crate) fn plan_with_params(
    statement: &Statement,
    params: usize,
    catalog: &Catalog,
    stats: &dyn PlannerStats,
) -> Result<Arc<Plan>> {
    let params = params.max(walk::params(statement));
    run(statement, &PlanContext::new(params, catalog, stats, Circumstances::default()))
}

fn run(statement: &Statement, cx: &PlanContext<'_>) -> Result<Arc<Plan>> {
    let before = work::total();
    let folded = (cx.params > 0).then(|| cx.values.folded(statement)).flatten();
    let statement = folded.as_ref().unwrap_or(statement);
    let (root, outer) = modify::statement(statement, cx)?;
    if !outer.is_empty() {
        return Err(Error::internal("the outermost query refers to one around it"));
    }
    let changes = !matches!(statement, Statement::Select(_));
    let fills = (changes && !root.output.is_empty()) || root.ctes.iter().any(|cte| cte.modifies);
    let (root, cells, is_large) = (Arc::new(root), cx.cells.counts(), work::is_long_since(before));
    let (assumes, may_be_better) = cx.values.taken();
    Ok(Arc::new(Plan { root, changes, fills, cells, row_ids: Vec::new(), is_large, assumes, may_be_better }))
}

impl Plan {
    /// Whether it is right for these values of the parameters, and no better one is known to be made for them.
    pub fn suits(&self, params: &[Datum]) -> bool {
        !self.may_be_better && self.is_right_for(params)
    }

    /// Whether what it assumes is true of these values of the parameters.
    pub fn is_right_for(&self, params: &[Datum]) -> bool {
        self.assumes.iter().all(|assumption| assumption.holds(params))
    }

    /// Whether it depends on values of the parameters.
    pub fn depends_on_values(&self) -> bool {
        self.may_be_better || !self.assumes.is_empty()
    }

    /// The plan of the outermost query.
    pub fn query(&self) -> &Arc<QueryPlan> {
        &self.root
    }

    /// Whether its rows come again, backward, without being kept: a cursor that does not say how it scrolls can then.
    pub fn goes_backward(&self) -> bool {
        self.root.root.goes_backward()
    }

    /// EXPLAIN's lines.
    pub fn explain(&self, options: &ExplainOptions, times: ExplainTimes) -> Vec<String> {
        explain::lines(&self.root, options, times)
    }
}
