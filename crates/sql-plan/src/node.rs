//! The nodes of a plan: the parameters of each operator of `sql-exec`.
//!
//! Invariants: a node names values by slot of its query's registers; an operator writes only the slots its node lists, so that
//! whatever else is in the registers stays while it runs. Nodes are immutable and shared by all executions.

use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::sync::{Arc, OnceLock};

use base::{Error, Oid, Result, SqlState};
use engine_api::{ConflictArbiter, RowLockMode, TableKind, TableRef, Txn, WaitPolicy};
use sql_functions::{Aggregate, SetFunction};
use sql_ir::expr::{Code, Slot};
use sql_ir::row_codec::{RowReader, RowWriter};
use sql_ir::system_relation::{Key, SystemRelation};
use sql_ir::{Exclude, Expr, FrameMode, TableInfo, WindowCallee, WindowKind};
use types::Datum;

use super::foreign_key::{ReferencedKey, ReferencingKey};
pub use super::key_reader::KeyReader;
pub use super::scan_node::{
    Access, Bound, KeyColumn, KeyPart, KeySpan, KeyValue, ListSource, ScanNode, Stage, UnionPart,
};

/// The plan of one query level, with registers of its own.
#[derive(Debug)]
pub struct QueryPlan {
    /// Slots of the registers. The statement's parameters come first.
    pub registers: usize,
    /// Number of the statement's parameters.
    pub params: usize,
    /// Operators.
    pub root: Node,
    /// Slots of the result's columns.
    pub output: Vec<Slot>,
    /// The result's columns by their numbers in the reader of the scan that is all there is of the plan: then what only the
    /// result has is never put into the registers.
    pub straight: Option<Box<[u32]>>,
    /// Subqueries in expressions.
    pub subplans: Vec<Subplan>,
    /// Rows of the result, expected.
    pub rows: f64,
    /// In rows of a full scan.
    pub cost: f64,
    /// WITH queries whose rows are kept.
    pub ctes: Vec<CtePlan>,
}

/// A query of a WITH clause, which runs at most once in a run of the query that has the clause.
#[derive(Debug)]
pub struct CtePlan {
    /// Where its rows are kept.
    pub cell: usize,
    pub name: String,
    pub subplan: Subplan,
    /// It changes rows: it runs to its end even if nobody reads it.
    pub modifies: bool,
}

/// A query inside another.
#[derive(Debug)]
pub struct Subplan {
    /// Its plan, with registers of its own.
    pub plan: Arc<QueryPlan>,
    /// What it takes from the query around it: a value there, the slot it goes to here.
    pub args: Vec<(Code, Slot)>,
    /// Its rows are the same whenever it runs in one execution of the query around it. Set only for subqueries in expressions, which keep their result.
    pub fixed: bool,
    /// Its rows are kept in a hash table instead of running the subquery before it, once that has run often.
    pub is_lookup: bool,
}

/// An operator.
#[derive(Clone, Debug)]
pub enum Node {
    /// One row without columns.
    OneRow,
    /// Rows of a stored table.
    Scan(Arc<ScanNode>),
    /// Rows of a relation of `pg_catalog` or `information_schema`.
    System(Arc<SystemNode>),
    /// Rows of set-returning functions in FROM.
    Function(Arc<FunctionNode>),
    /// VALUES.
    Values(Arc<ValuesNode>),
    /// A subquery in FROM.
    Subquery(Arc<SubqueryNode>),
    /// The kept rows of a WITH query.
    Cte(Arc<CteScanNode>),
    /// What the recursive part of a query gave last.
    WorkTable(Arc<WorkTableNode>),
    /// WITH RECURSIVE.
    Recursion(Arc<RecursionNode>),
    /// The rows for which conditions hold.
    Filter(Arc<FilterNode>),
    /// TABLESAMPLE.
    Sample(Arc<SampleNode>),
    /// Computes values into slots.
    Project(Arc<ProjectNode>),
    /// A join that runs its inner side for each outer row.
    NestedLoop(Arc<NestedLoopNode>),
    /// A join by a hash table of one side.
    HashJoin(Arc<HashJoinNode>),
    /// A join of two sides that come in order.
    MergeJoin(Arc<MergeJoinNode>),
    /// Has several threads read the rows of its input.
    Gather(Arc<GatherNode>),
    /// Reads columns that joins did not need.
    Late(Arc<LateNode>),
    /// Keeps the rows of its input, to read them again.
    Materialize(Arc<MaterializeNode>),
    /// Orders rows.
    Sort(Arc<SortNode>),
    /// Orders rows that come in the order of the first keys.
    IncrementalSort(Arc<IncrementalSortNode>),
    /// GROUP BY and aggregates.
    Aggregate(Arc<AggregateNode>),
    /// Numbers of rows in their partitions.
    Window(Arc<WindowNode>),
    /// Window functions over frames.
    WindowFrames(Arc<WindowFrameNode>),
    /// DISTINCT.
    Distinct(Arc<DistinctNode>),
    /// LIMIT and OFFSET.
    Limit(Arc<LimitNode>),
    /// UNION.
    Union(Arc<UnionNode>),
    /// INTERSECT and EXCEPT.
    SetOp(Arc<SetOpNode>),
    /// FOR UPDATE and the like.
    LockRows(Arc<LockRowsNode>),
    /// Any of the others, counted for EXPLAIN; only in plans made for that.
    Metered(Arc<MeteredNode>),
    /// WHERE CURRENT OF.
    Current(Arc<CurrentNode>),
    /// INSERT.
    Insert(Arc<InsertNode>),
    /// UPDATE.
    Update(Arc<UpdateNode>),
    /// DELETE.
    Delete(Arc<DeleteNode>),
    /// MERGE.
    Merge(Arc<MergeNode>),
}

/// The nodes whose rows are of their own: no row of theirs is a row of one input, passed on or joined with others. A new node is listed here,
/// or is named in each match that asks for what drives a node.
macro_rules! makes_rows {
    () => {
        $crate::node::Node::OneRow
            | $crate::node::Node::System(_)
            | $crate::node::Node::Function(_)
            | $crate::node::Node::Values(_)
            | $crate::node::Node::Subquery(_)
            | $crate::node::Node::Cte(_)
            | $crate::node::Node::WorkTable(_)
            | $crate::node::Node::Recursion(_)
            | $crate::node::Node::Sample(_)
            | $crate::node::Node::MergeJoin(_)
            | $crate::node::Node::Gather(_)
            | $crate::node::Node::Materialize(_)
            | $crate::node::Node::Sort(_)
            | $crate::node::Node::IncrementalSort(_)
            | $crate::node::Node::Aggregate(_)
            | $crate::node::Node::Window(_)
            | $crate::node::Node::WindowFrames(_)
            | $crate::node::Node::Distinct(_)
            | $crate::node::Node::Union(_)
            | $crate::node::Node::SetOp(_)
            | $crate::node::Node::LockRows(_)
            | $crate::node::Node::Current(_)
            | $crate::node::Node::Insert(_)
            | $crate::node::Node::Update(_)
            | $crate::node::Node::Delete(_)
            | $crate::node::Node::Merge(_)
    };
}
pub(crate) use makes_rows;

/// A node of a plan that is explained, with what is expected of it and what it does.
#[derive(Debug)]
pub struct MeteredNode {
    /// The node that is explained.
    pub input: Node,
    /// Rows expected each time it runs.
    pub rows: f64,
    /// Cost before the first row, and in all.
    pub first: f64,
    /// See `first`.
    pub cost: f64,
    /// Bytes of a row.
    pub width: u64,
    /// Conditions and keys, as EXPLAIN shows them.
    pub(crate) details: Vec<(&'static str, super::explain::Told)>,
    /// What it has done.
    pub meter: Meter,
}

/// What a node has done. Written by the one execution of its plan; relaxed, for nothing else hangs on it.
#[derive(Debug, Default)]
pub struct Meter {
    pub rows: AtomicU64,
    pub loops: AtomicU64,
    /// Nanoseconds until the first row of each loop, summed; and in all.
    pub first_nanos: AtomicU64,
    pub nanos: AtomicU64,
}

impl Node {
    /// Tells a scan without a filter that at most one row of it is read. Changes nothing if the node is shared already.
    pub(crate) fn one_is_enough(&mut self) {
        match self {
            Node::Scan(scan) => {
                if let Some(scan) = Arc::get_mut(scan).filter(|scan| scan.filter.is_empty()) {
                    scan.one_is_enough = true;
                }
            }
            Node::Metered(metered) => {
                if let Some(metered) = Arc::get_mut(metered) {
                    metered.input.one_is_enough();
                }
            }
            Node::Filter(_)
            | Node::Project(_)
            | Node::NestedLoop(_)
            | Node::HashJoin(_)
            | Node::Late(_)
            | Node::Limit(_)
            | makes_rows!() => {}
        }
    }

    fn is_join(&self) -> bool {
        match self {
            Node::Metered(n) => n.input.is_join(),
            Node::Filter(n) => n.input.is_join(),
            Node::HashJoin(_) | Node::NestedLoop(_) => true,
            Node::Scan(_) | Node::Project(_) | Node::Late(_) | Node::Limit(_) | makes_rows!() => false,
        }
    }

    /// Tells the scan that drives a join that a [`LateNode`] or a sort reads the columns that are not needed before, unless the node is shared;
    /// `false` if there are none, rows are not few, or another operator would take the row for its own.
    pub(super) fn read_late(&mut self, rows: f64) -> bool {
        match self {
            Node::Metered(n) => Arc::get_mut(n).is_some_and(|n| n.input.read_late(rows)),
            Node::Filter(n) => Arc::get_mut(n).is_some_and(|n| n.input.read_late(rows)),
            Node::Project(n) => Arc::get_mut(n).is_some_and(|n| n.input.read_late(rows)),
            Node::NestedLoop(n) => Arc::get_mut(n).is_some_and(|n| n.outer.read_late(rows)),
            // Rows that come without one of the probe side have no row there.
            Node::HashJoin(n) if !matches!(n.join, JoinType::Right | JoinType::Full) => {
                Arc::get_mut(n).is_some_and(|n| n.probe.read_late(rows))
            }
            Node::Scan(scan) => Arc::get_mut(scan).is_some_and(|scan| {
                scan.is_late = scan.keys.is_none() && scan.early < scan.reader.len() && rows < FEW * scan.rows;
                scan.is_late
            }),
            Node::HashJoin(_) | Node::Late(_) | Node::Limit(_) | makes_rows!() => false,
        }
    }

    /// Whether PostgreSQL's operator of this kind can run backward.
    pub fn goes_backward(&self) -> bool {
        match self {
            Node::Scan(_) | Node::System(_) | Node::Function(_) | Node::Values(_) => true,
            Node::Sort(_) | Node::Materialize(_) => true,
            Node::Metered(n) => n.input.goes_backward(),
            Node::Subquery(n) => n.subplan.plan.root.goes_backward(),
            Node::Filter(n) => n.input.goes_backward(),
            Node::Project(n) => n.input.goes_backward(),
            Node::Late(n) => n.input.goes_backward(),
            Node::Limit(n) => n.input.goes_backward(),
            Node::Union(n) => n.all && n.branches.iter().all(|branch| branch.plan.root.goes_backward()),
            Node::OneRow
            | Node::Cte(_)
            | Node::WorkTable(_)
            | Node::Recursion(_)
            | Node::Sample(_)
            | Node::NestedLoop(_)
            | Node::HashJoin(_)
            | Node::MergeJoin(_)
            | Node::Gather(_)
            | Node::IncrementalSort(_)
            | Node::Aggregate(_)
            | Node::Window(_)
            | Node::WindowFrames(_)
            | Node::Distinct(_)
            | Node::SetOp(_)
            | Node::LockRows(_)
            | Node::Current(_)
            | Node::Insert(_)
            | Node::Update(_)
            | Node::Delete(_)
            | Node::Merge(_) => false,
        }
    }

    /// See [`QueryPlan::straight`].
    pub fn straight(&self, output: &[Slot]) -> Option<Box<[u32]>> {
        match self {
            Node::Scan(scan) if scan.keys.is_none() => scan.reader.columns_at(output),
            Node::Sort(sort) => sort.scan()?.0.reader.columns_at(output),
            Node::Scan(_)
            | Node::OneRow
            | Node::System(_)
            | Node::Function(_)
            | Node::Values(_)
            | Node::Subquery(_)
            | Node::Cte(_)
            | Node::WorkTable(_)
            | Node::Recursion(_)
            | Node::Filter(_)
            | Node::Sample(_)
            | Node::Project(_)
            | Node::NestedLoop(_)
            | Node::HashJoin(_)
            | Node::MergeJoin(_)
            | Node::Gather(_)
            | Node::Late(_)
            | Node::Materialize(_)
            | Node::IncrementalSort(_)
            | Node::Aggregate(_)
            | Node::Window(_)
            | Node::WindowFrames(_)
            | Node::Distinct(_)
            | Node::Limit(_)
            | Node::Union(_)
            | Node::SetOp(_)
            | Node::LockRows(_)
            | Node::Metered(_)
            | Node::Current(_)
            | Node::Insert(_)
            | Node::Update(_)
            | Node::Delete(_)
            | Node::Merge(_) => None,
        }
    }

    /// Whether each of its rows is a row of the one table below it.
    pub(crate) fn passes_rows(&self) -> bool {
        match self {
            Node::Scan(_) => true,
            Node::Filter(n) => n.input.passes_rows(),
            Node::Project(n) => n.input.passes_rows(),
            Node::Late(n) => n.input.passes_rows(),
            Node::Limit(n) => n.input.passes_rows(),
            Node::Metered(n) => n.input.passes_rows(),
            Node::NestedLoop(_) | Node::HashJoin(_) | makes_rows!() => false,
        }
    }
}

/// A stored table in a plan. Opened once; the plan is dropped when the table's definition changes.
#[derive(Debug)]
pub struct PlannedTable {
    /// The table as the binder saw it.
    pub info: Arc<TableInfo>,
    opened: OnceLock<TableRef>,
}

impl PlannedTable {
    /// A table that is not open yet.
    pub fn new(info: &Arc<TableInfo>) -> Arc<PlannedTable> {
        Arc::new(PlannedTable { info: Arc::clone(info), opened: OnceLock::new() })
    }

    /// The table as the engine has it open.
    ///
    /// # Errors
    /// 55000 for a materialized view without rows of its own: it may stand in a statement that does not come to read it.
    #[inline]
    pub fn open(&self, txn: &mut dyn Txn) -> Result<&TableRef> {
        match self.opened.get() {
            Some(table) => Ok(table),
            None => self.open_first(txn),
        }
    }

    #[cold]
    fn open_first(&self, txn: &mut dyn Txn) -> Result<&TableRef> {
        let desc = &self.info.desc;
        if desc.kind == TableKind::MaterializedView && !desc.view.as_ref().is_some_and(|view| view.populated) {
            let message = format!("materialized view \"{}\" has not been populated", desc.name);
            return Err(Error::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, message)
                .hint("Use the REFRESH MATERIALIZED VIEW command."));
        }
        let table = txn.open_table(desc.oid)?;
        Ok(self.opened.get_or_init(|| table))
    }
}

/// A scan of a relation that is computed from the catalog.
#[derive(Debug)]
pub struct SystemNode {
    /// The relation.
    pub relation: &'static SystemRelation,
    /// The name that EXPLAIN shows.
    pub alias: String,
    /// (column of the relation, slot)
    pub columns: Vec<(usize, Slot)>,
    /// By what its rows are found, if not all are made: the condition is tested nevertheless.
    pub key: Option<(&'static Key, Code)>,
}

/// Set-returning functions in FROM.
#[derive(Debug)]
pub struct FunctionNode {
    /// The functions side by side, with their arguments.
    pub calls: Vec<(&'static SetFunction, Vec<Code>)>,
    /// The name that EXPLAIN shows.
    pub alias: String,
    /// (column, slot); columns are counted over all functions
    pub columns: Vec<(usize, Slot)>,
    /// WITH ORDINALITY: where the number goes.
    pub ordinality: Option<Slot>,
}

/// Rows of values.
#[derive(Debug)]
pub struct ValuesNode {
    /// The values.
    pub rows: Vec<Vec<Code>>,
    /// Where they go.
    pub slots: Vec<Slot>,
}

/// A subquery in FROM.
#[derive(Debug)]
pub struct SubqueryNode {
    /// The subquery.
    pub subplan: Subplan,
    /// The name that EXPLAIN shows.
    pub alias: String,
    /// (output column of the subquery, slot)
    pub columns: Vec<(usize, Slot)>,
}

/// Reads the kept rows of a WITH query.
#[derive(Debug)]
pub struct CteScanNode {
    /// Where the rows are kept.
    pub cell: usize,
    /// The name that EXPLAIN shows.
    pub alias: String,
    /// (output column of the query, slot)
    pub columns: Vec<(usize, Slot)>,
}

/// Reads what the recursive part of a query gave last.
#[derive(Debug)]
pub struct WorkTableNode {
    /// Number of the work table.
    pub table: usize,
    /// The name that EXPLAIN shows.
    pub alias: String,
    /// (output column of the query, slot)
    pub columns: Vec<(usize, Slot)>,
}

/// A query whose second part runs over its own rows until it gives no more.
#[derive(Debug)]
pub struct RecursionNode {
    /// Number of the work table.
    pub table: usize,
    /// UNION ALL
    pub all: bool,
    /// The part that is not recursive.
    pub first: Subplan,
    /// The recursive part.
    pub next: Subplan,
    /// Slots of the columns of its rows.
    pub slots: Vec<Slot>,
    /// Types of these columns.
    pub types: Vec<Oid>,
}

/// Rows for which conditions hold.
#[derive(Debug)]
pub struct FilterNode {
    /// Where the rows come from.
    pub input: Node,
    /// Conditions that all must hold.
    pub conditions: Vec<Code>,
}

/// TABLESAMPLE
#[derive(Debug)]
pub struct SampleNode {
    /// Where the rows come from.
    pub input: Node,
    /// Share of the rows, in percent.
    pub percent: Code,
    /// REPEATABLE.
    pub seed: Option<Code>,
    /// Rows come in groups.
    pub system: bool,
    /// Where the number of the row is.
    pub row_slot: Slot,
    /// Where a seed comes from that is not given.
    pub random: &'static sql_functions::Function,
}

/// Computes values into slots.
#[derive(Debug)]
pub struct ProjectNode {
    /// Where the rows come from.
    pub input: Node,
    /// Where they go and how they are computed, in this order.
    pub targets: Vec<(Slot, Code)>,
}

/// What a join does with rows that have no partner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinType {
    /// They do not come.
    Inner,
    /// Outer (probe) rows without a partner come with NULLs.
    Left,
    /// Inner (build) rows without a partner come with NULLs.
    Right,
    /// Rows of both sides come with NULLs.
    Full,
    /// Outer (probe) rows that have a partner come once, without it.
    Semi,
    /// Outer (probe) rows that have none.
    Anti,
}

/// Runs its inner side for each outer row.
#[derive(Debug)]
pub struct NestedLoopNode {
    /// The side that is run once.
    pub outer: Node,
    /// The side that is run for each row of the other.
    pub inner: Node,
    /// What happens to rows without a partner.
    pub join: JoinType,
    /// Conditions that all must hold.
    pub conditions: Vec<Code>,
    /// Slots of the inner side, to be NULL for an outer row without a partner.
    pub inner_slots: Vec<Slot>,
    /// The inner side has parts below its top that look at the outer row: nothing of it is kept from row to row.
    pub anew: bool,
}

/// Looks up the rows of one side in a hash table of the other.
#[derive(Debug)]
pub struct HashJoinNode {
    /// The side whose rows are looked up.
    pub probe: Node,
    /// The side whose rows are kept.
    pub build: Node,
    /// What happens to rows without a partner.
    pub join: JoinType,
    /// The keys of the side that is looked up.
    pub probe_keys: Vec<Code>,
    /// The keys of the side that is kept.
    pub build_keys: Vec<Code>,
    /// Types of the keys; both sides have the same.
    pub key_types: Vec<Oid>,
    /// Conditions beyond equality of the keys.
    pub conditions: Vec<Code>,
    /// Slots of the kept side, to be NULL for a row without a partner.
    pub build_slots: Vec<Slot>,
    /// Slots of the other side, to be NULL for a row without a partner.
    pub probe_slots: Vec<Slot>,
}

/// Joins two inputs that come in the order of `keys`.
#[derive(Debug)]
pub struct MergeJoinNode {
    /// The left input.
    pub left: Node,
    /// The right input.
    pub right: Node,
    /// What happens to rows without a partner.
    pub join: JoinType,
    /// Keys of the left input.
    pub left_keys: Vec<Code>,
    /// Keys of the right input.
    pub right_keys: Vec<Code>,
    /// The order of both by these keys.
    pub keys: Vec<MergeKey>,
    /// Conditions beyond equality of the keys.
    pub conditions: Vec<Code>,
    /// Slots of the left input.
    pub left_slots: Vec<Slot>,
    /// Slots of the right input.
    pub right_slots: Vec<Slot>,
}

/// How the inputs of a merge join are ordered by a key; where NULLs are makes no difference.
#[derive(Clone, Copy, Debug)]
pub struct MergeKey {
    /// The type of the key.
    pub ty: Oid,
    /// DESC.
    pub descending: bool,
}

/// Keeps the rows of its input, to read them again.
#[derive(Debug)]
pub struct MaterializeNode {
    /// Where the rows come from.
    pub input: Node,
    /// Everything that is used above.
    pub slots: Vec<Slot>,
}

/// A sort key in registers.
#[derive(Clone, Copy, Debug)]
pub struct SortSlot {
    /// Where the key is.
    pub slot: Slot,
    /// The type.
    pub ty: Oid,
    /// DESC.
    pub descending: bool,
    /// NULLS FIRST.
    pub nulls_first: bool,
}

/// Orders rows.
#[derive(Debug)]
pub struct SortNode {
    /// Where the rows come from.
    pub input: Node,
    /// The keys, the most significant first.
    pub keys: Vec<SortSlot>,
    /// Everything that is used above.
    pub slots: Vec<Slot>,
    /// LIMIT + OFFSET right above: no more rows than that are kept.
    pub limit: Option<(Code, Option<Code>)>,
    /// A scan below leaves columns unread until a row may be among the first: the sort asks for them then.
    pub is_late: bool,
}

impl SortNode {
    /// The scan that is its input, directly or below DISTINCT, if the keys of both are columns of that scan.
    pub fn scan(&self) -> Option<(&Arc<ScanNode>, Option<&Arc<DistinctNode>>)> {
        let (mut distinct, mut input) = (None, &self.input);
        if let Node::Distinct(node) = input
            && self.limit.is_none()
        {
            (distinct, input) = (Some(node), &node.input);
        }
        let Node::Scan(scan) = input else { return None };
        let distinct_slots = distinct.iter().flat_map(|distinct| distinct.keys.iter().map(|(slot, _)| *slot));
        let slots: Vec<Slot> = self.keys.iter().map(|key| key.slot).chain(distinct_slots).collect();
        (scan.keys.is_none() && scan.reader.columns_at(&slots).is_some()).then_some((scan, distinct))
    }
}

/// Orders rows that come in the order of the first keys: sorts each group of rows with equal first keys.
#[derive(Debug)]
pub struct IncrementalSortNode {
    /// What it would be if the rows came in any order.
    pub sort: Arc<SortNode>,
    /// How many of the sort's keys the rows are in the order of: at least one, not all.
    pub presorted: usize,
}

/// Groups rows and aggregates each group.
#[derive(Debug)]
pub struct AggregateNode {
    /// Where the rows come from.
    pub input: Node,
    /// Grouping keys: value, slot it goes to, type.
    pub keys: Vec<(Code, Slot, Oid)>,
    /// Slots of columns that are constant within a group and used above.
    pub carried: Vec<Slot>,
    /// What each group has a state of.
    pub calls: Vec<AggregateCall>,
    /// What goes to the registers of each group.
    pub results: Vec<AggregateResult>,
    /// GROUPING SETS: each the numbers of its keys; the others are NULL in its groups. Empty: one set of all.
    pub sets: Vec<Vec<usize>>,
    /// GROUPING: where it goes, the numbers of the keys it asks about.
    pub groupings: Vec<(Slot, Vec<usize>)>,
    /// The input is a scan, and all that is wanted of it are columns.
    pub stored: Option<StoredColumns>,
    /// The rows of each group come one after the other: a group is complete when the next one begins.
    pub in_order: bool,
    /// Several threads may read the rows.
    pub parallel: Option<Parallel>,
}

/// Has several threads read the rows of its input.
#[derive(Debug)]
pub struct GatherNode {
    /// Whose rows they share.
    pub input: Node,
    /// What is used of a row above.
    pub slots: Vec<Slot>,
    /// How many.
    pub parallel: Parallel,
}

/// Reads the columns that joins did not need of the rows that are left: those of the one scan whose row lies where it was while the
/// joins look for partners.
#[derive(Debug)]
pub struct LateNode {
    /// The joins.
    pub input: Node,
}

impl LateNode {
    /// Above joins that leave so many rows, if these are few of those of the scan that drives them, and that has columns that they do not
    /// need.
    pub(crate) fn above(mut input: Node, rows: f64) -> Node {
        if input.is_join() && input.read_late(rows) { Node::Late(Arc::new(LateNode { input })) } else { input }
    }
}

/// The share of a scan's rows that joins leave at most where its columns are read late: that takes a few calls for each row.
const FEW: f64 = 0.5;

/// Threads that work for one node, beside that of the statement.
#[derive(Debug, Default)]
pub struct Parallel {
    /// As many as can be put to use.
    pub workers: usize,
    /// Rows of the table from which on one is.
    pub rows_min: u64,
    /// How many there were, in a plan that is explained. Relaxed, as a [`Meter`].
    pub launched: AtomicUsize,
}

/// What an aggregation takes of the rows of a scan where they lie: numbers of columns in the scan's reader.
#[derive(Debug)]
pub struct StoredColumns {
    /// Of the grouping keys.
    pub keys: Box<[u32]>,
    /// Of the columns that are constant within a group.
    pub carried: Box<[u32]>,
    /// The argument of each call, if it has one.
    pub args: Box<[Option<u32>]>,
}

impl StoredColumns {
    /// Those of an aggregation over `input`; `None` if it wants something else.
    pub fn of(
        input: &Node,
        keys: &[(Code, Slot, Oid)],
        carried: &[Slot],
        calls: &[AggregateCall],
    ) -> Option<StoredColumns> {
        let Node::Scan(scan) = input else { return None };
        let column = |code: &Code| match code {
            Code::Slot(slot) if scan.keys.is_none() => scan.reader.columns_at(&[*slot]).map(|columns| columns[0]),
            _ => None,
        };
        let arg = |call: &AggregateCall| {
            // Direct arguments are evaluated without the registers then.
            let sorts = call.sorts_argument && call.direct.iter().all(|code| matches!(code, Code::Const(_)));
            let plain = call.filter.is_none() && (sorts || call.order.is_empty() && !call.aggregate.ordered_set);
            match call.args.as_slice() {
                [] if plain => Some(None),
                [arg] if plain => column(arg).map(Some),
                _ => None,
            }
        };
        Some(StoredColumns {
            keys: keys.iter().map(|(code, ..)| column(code)).collect::<Option<_>>()?,
            carried: scan.reader.columns_at(carried)?,
            args: calls.iter().map(arg).collect::<Option<_>>()?,
        })
    }
}

impl StoredColumns {
    /// Whether nothing of the rows is wanted but how many there are.
    pub fn counts_rows(&self) -> bool {
        self.keys.is_empty() && self.carried.is_empty() && self.args.iter().all(Option::is_none)
    }
}

/// A call of an aggregate.
#[derive(Debug)]
pub struct AggregateCall {
    /// What is called.
    pub aggregate: &'static Aggregate,
    /// Its arguments, from each row.
    pub args: Vec<Code>,
    /// Their types.
    pub arg_types: Vec<Oid>,
    /// Direct arguments of an ordered-set aggregate, from a group.
    pub direct: Vec<Code>,
    /// DISTINCT inside the call.
    pub distinct: bool,
    /// ORDER BY inside the call: value, type, descending, nulls first.
    pub order: Vec<(Code, Oid, bool, bool)>,
    /// FILTER.
    pub filter: Option<Code>,
    /// An ordered-set aggregate of one argument, which is what the rows are sorted by.
    pub sorts_argument: bool,
}

/// A result of an aggregation.
#[derive(Debug)]
pub struct AggregateResult {
    /// Number of the call whose state it is made of.
    pub call: usize,
    /// The average of what that call sums.
    pub average: bool,
    /// Where it goes.
    pub slot: Slot,
}

/// Numbers rows that come sorted by partition and order.
#[derive(Debug)]
pub struct WindowNode {
    /// Where the rows come from.
    pub input: Node,
    /// Which number it is.
    pub ranking: WindowKind,
    /// PARTITION BY.
    pub partition: Vec<SortSlot>,
    /// ORDER BY.
    pub order: Vec<SortSlot>,
    /// Where the number goes.
    pub slot: Slot,
}

/// Computes window functions over rows that come sorted by partition and order.
#[derive(Debug)]
pub struct WindowFrameNode {
    /// Where the rows come from.
    pub input: Node,
    /// Everything that is used above, apart from the results.
    pub slots: Vec<Slot>,
    /// PARTITION BY.
    pub partition: Vec<SortSlot>,
    /// ORDER BY.
    pub order: Vec<SortSlot>,
    /// The functions.
    pub calls: Vec<FrameCall>,
}

/// A window function with its frame.
#[derive(Debug)]
pub struct FrameCall {
    /// What is called.
    pub callee: WindowCallee,
    /// Its arguments.
    pub args: Vec<Code>,
    /// Their types.
    pub arg_types: Vec<Oid>,
    /// FILTER.
    pub filter: Option<Code>,
    /// The rows it sees.
    pub frame: PlannedFrame,
    /// Where the result goes.
    pub slot: Slot,
}

/// The frame of a window function.
#[derive(Debug)]
pub struct PlannedFrame {
    /// ROWS, RANGE or GROUPS.
    pub mode: FrameMode,
    /// Where it begins.
    pub start: FrameBound,
    /// Where it ends.
    pub end: FrameBound,
    /// EXCLUDE.
    pub exclude: Exclude,
}

/// A bound of a frame; offsets are the same for all rows.
#[derive(Debug)]
pub enum FrameBound {
    /// The start of the partition.
    UnboundedPreceding,
    /// So far before the current row.
    Preceding(Code),
    /// The current row, or its peers.
    CurrentRow,
    /// So far behind the current row.
    Following(Code),
    /// The end of the partition.
    UnboundedFollowing,
}

/// One row of each that are equal in some columns.
#[derive(Debug)]
pub struct DistinctNode {
    /// Where the rows come from.
    pub input: Node,
    /// These columns, with their types.
    pub keys: Vec<(Slot, Oid)>,
}

/// LIMIT and OFFSET.
#[derive(Debug)]
pub struct LimitNode {
    /// Where the rows come from.
    pub input: Node,
    /// How many rows come; `None` is all.
    pub limit: Option<Code>,
    /// How many are left out before.
    pub offset: Option<Code>,
    /// WITH TIES: the keys of the order the rows come in.
    pub ties: Vec<SortSlot>,
}

/// UNION of any number of queries.
#[derive(Debug)]
pub struct UnionNode {
    /// UNION ALL.
    pub all: bool,
    /// The queries.
    pub branches: Vec<Subplan>,
    /// Slots of the columns of its rows.
    pub slots: Vec<Slot>,
    /// Types of these columns.
    pub types: Vec<Oid>,
}

/// INTERSECT or EXCEPT.
#[derive(Debug)]
pub struct SetOpNode {
    /// EXCEPT, otherwise INTERSECT.
    pub except: bool,
    /// ALL.
    pub all: bool,
    /// The first query.
    pub left: Subplan,
    /// The second query.
    pub right: Subplan,
    /// Slots of the columns of its rows.
    pub slots: Vec<Slot>,
    /// Types of these columns.
    pub types: Vec<Oid>,
}

/// Locks the rows that come.
#[derive(Debug)]
pub struct LockRowsNode {
    /// Where the rows come from.
    pub input: Node,
    /// Of which tables, and how.
    pub targets: Vec<LockTarget>,
    /// The whole qualification, for a row that has moved (rule R7).
    pub recheck: Vec<Code>,
    /// What was computed from columns below, to be computed again for a row that has moved.
    pub recompute: Vec<(Slot, Code)>,
}

/// The row of a table on which a cursor is.
#[derive(Debug)]
pub struct CurrentNode {
    /// The table.
    pub table: Arc<PlannedTable>,
    /// The name that EXPLAIN shows.
    pub alias: String,
    /// Reads the used columns of a row into the registers.
    pub reader: RowReader,
    /// The cursor's name.
    pub cursor: String,
}

/// A table whose rows are locked.
#[derive(Debug)]
pub struct LockTarget {
    /// The table.
    pub table: Arc<PlannedTable>,
    /// Reads the used columns of a row into the registers.
    pub reader: RowReader,
    /// Where the row's number goes.
    pub row_slot: Slot,
    /// The lock.
    pub mode: RowLockMode,
    /// Whether to wait for it.
    pub policy: WaitPolicy,
}

/// What every change of a table checks and returns.
#[derive(Debug)]
pub struct Target {
    /// The table that is changed.
    pub table: Arc<PlannedTable>,
    /// Reads the used columns of a row into the registers.
    pub reader: RowReader,
    /// Makes the stored form of a row.
    pub writer: RowWriter,
    /// Where the row's number goes.
    pub row_slot: Slot,
    /// Slots of all columns (attribute number - 1).
    pub slots: Vec<Slot>,
    /// Columns that the statement gives values to: messages may show them.
    pub given: Box<[usize]>,
    /// Columns that are tested for NULL: of those that are written.
    pub not_null: Vec<usize>,
    /// Reads the columns that an UPDATE leaves as they are and does not look at: their slots are empty without it.
    pub rest: RowReader,
    /// CHECK constraints by name.
    pub checks: Vec<(String, Code)>,
    /// WITH CHECK OPTION of views that are written through.
    pub view_checks: Vec<(String, Code)>,
    /// Generated columns (attribute number - 1), computed when all others are.
    pub generated: Vec<(usize, Code)>,
    /// Keys of this table that point to others.
    pub references: Vec<Arc<ReferencingKey>>,
    /// Keys of this table that others point to.
    pub referenced: Vec<Arc<ReferencedKey>>,
    /// Some of its constraints are deferrable.
    pub may_defer: bool,
    /// RETURNING: computed slots.
    pub returning: Vec<(Slot, Code)>,
    /// There is RETURNING.
    pub returns: bool,
}

/// INSERT.
#[derive(Debug)]
pub struct InsertNode {
    /// The table that is changed.
    pub target: Target,
    /// Where the rows come from.
    pub source: InsertRows,
    /// Slots of columns that the source does not put there itself, and where their values come from.
    pub columns: Vec<(Slot, Code)>,
    /// What ON CONFLICT looks at.
    pub arbiter: ConflictArbiter,
    /// Where values of parameters say which index is the arbiter.
    pub by_values: Option<ArbiterByValues>,
    /// ON CONFLICT.
    pub on_conflict: Option<ConflictAction>,
}

/// The choice of an arbiter by the values of parameters in the condition of a conflict target.
#[derive(Debug)]
pub struct ArbiterByValues {
    condition: Expr,
    /// The parameters of `condition`.
    pub params: Vec<(usize, Code)>,
    /// Unique indexes with their conditions.
    candidates: Vec<(Oid, Expr)>,
}

impl ArbiterByValues {
    pub fn new(condition: Expr, params: Vec<(usize, Code)>, candidates: Vec<(Oid, Expr)>) -> ArbiterByValues {
        ArbiterByValues { condition, params, candidates }
    }

    /// The index whose condition that of the conflict target implies, given the values of `params`.
    ///
    /// # Errors
    /// 42P10 if there is none.
    pub fn chosen(&self, values: &[Datum]) -> Result<Oid> {
        let mut condition = self.condition.clone();
        sql_bind::visit::walk_mut(&mut condition, 0, &mut |expr, _| {
            if let Expr::Param(param, ty) = expr
                && let Some(at) = self.params.iter().position(|(number, _)| number == param)
            {
                *expr = Expr::Const(values[at].clone(), *ty);
            }
        });
        let chosen = self.candidates.iter().find(|(_, predicate)| sql_bind::implies(Some(&condition), predicate));
        chosen.map(|(index, _)| *index).ok_or_else(sql_bind::no_arbiter)
    }
}

/// The rows of an INSERT.
#[derive(Debug)]
pub enum InsertRows {
    /// VALUES: rows of values; slots they go to before the columns are computed.
    Values {
        /// The values.
        rows: Vec<Vec<Code>>,
        /// Where they go.
        slots: Vec<Slot>,
    },
    /// SELECT
    Query(Node),
}

/// What ON CONFLICT does.
#[derive(Debug)]
pub enum ConflictAction {
    /// DO NOTHING.
    Nothing,
    /// DO UPDATE.
    Update {
        /// Slots of `excluded` (attribute number - 1).
        excluded: Vec<Slot>,
        /// Columns with their new values.
        set: Vec<(usize, Code)>,
        /// WHERE.
        filter: Vec<Code>,
        /// The lock on the row that is there.
        mode: RowLockMode,
    },
}

/// UPDATE.
#[derive(Debug)]
pub struct UpdateNode {
    /// The table that is changed.
    pub target: Target,
    /// Where the rows come from.
    pub input: Node,
    /// What columns get.
    pub set: UpdateSet,
    /// The columns that change, generated ones included ([`RowWriter::places`]).
    pub places: Vec<(usize, Slot)>,
    /// Which rows of the input count.
    pub choice: RowChoice,
}

/// DELETE.
#[derive(Debug)]
pub struct DeleteNode {
    /// The table that is changed.
    pub target: Target,
    /// Where the rows come from.
    pub input: Node,
    /// Which rows of the input count.
    pub choice: RowChoice,
}

/// What an update gives to columns.
#[derive(Debug)]
pub struct UpdateSet {
    /// Columns with their new values.
    pub values: Vec<(usize, Code)>,
    /// The strongest lock if there are columns of keys among those that may change.
    pub mode: RowLockMode,
    /// Which of the values are those of such columns, if all of them are here: where none of them differs from the value before, the weaker
    /// lock does.
    pub keys: Vec<usize>,
}

/// Which rows of its input a statement changes.
#[derive(Debug)]
pub struct RowChoice {
    /// What must hold for a row that has moved meanwhile.
    pub recheck: Vec<Code>,
    /// A row may come more than once (joins); only the first counts.
    pub may_repeat: bool,
}

/// MERGE.
#[derive(Debug)]
pub struct MergeNode {
    /// The table that is changed.
    pub target: Target,
    /// Rows of the source, each with the row of the target that it matches or without.
    pub input: Node,
    /// ON
    pub recheck: Vec<Code>,
    /// The WHEN clauses in their order.
    pub actions: Vec<MergeStep>,
}

/// A WHEN clause.
#[derive(Debug)]
pub struct MergeStep {
    pub matched: bool,
    pub condition: Vec<Code>,
    pub kind: MergeWork,
}

/// What MERGE does with a row.
#[derive(Debug)]
pub enum MergeWork {
    /// It is changed.
    Update(UpdateSet),
    /// It is deleted.
    Delete,
    /// A row with these columns is inserted.
    Insert(Vec<(usize, Code)>),
    /// DO NOTHING.
    Nothing,
}
