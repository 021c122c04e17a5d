//! The nodes of a plan: what each operator of [`crate::exec`] is told.
//!
//! Invariants: a node names values by slot of its query's frame; an operator writes only the slots its node lists, so that
//! whatever else is in the frame stays while it runs. Nodes are immutable and shared by all executions.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};

use base::{Error, Oid, Result, SqlState};
use engine_api::{ConflictArbiter, RowContent, RowLockMode, TableKind, TableRef, Txn, WaitPolicy};
use types::Datum;

use super::foreign_key::{ReferencedKey, ReferencingKey};
pub(crate) use super::key_reader::KeyReader;
use crate::expr::{Code, Slot};
use crate::functions::{Aggregate, SetFunction};
use crate::ir::system_relation::{Key, SystemRelation};
use crate::ir::{Exclude, Expr, FrameMode, TableInfo, WindowCallee, WindowKind};
use crate::row_codec::{RowReader, RowWriter};

/// The plan of one query level, with a frame of its own.
#[derive(Debug)]
pub(crate) struct QueryPlan {
    /// Slots of the frame. The statement's parameters come first.
    pub frame: usize,
    /// Number of the statement's parameters.
    pub params: usize,
    /// Operators.
    pub root: Node,
    /// Slots of the result's columns.
    pub output: Vec<Slot>,
    /// The result's columns by their numbers in the reader of the scan that is all there is of the plan: then what only the
    /// result has is never put into the frame.
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
pub(crate) struct CtePlan {
    /// Where its rows are kept.
    pub cell: usize,
    pub name: String,
    pub subplan: Subplan,
    /// It changes rows: it runs to its end even if nobody reads it.
    pub modifies: bool,
}

/// A query inside another.
#[derive(Debug)]
pub(crate) struct Subplan {
    pub plan: Arc<QueryPlan>,
    /// What it takes from the query around it: a value there, the slot it goes to here.
    pub args: Vec<(Code, Slot)>,
    /// Its rows are the same whenever it runs in one execution. Set only for subqueries in expressions, which keep their result.
    pub fixed: bool,
    /// Its rows are kept in a hash table instead of running the subquery before it, once that has run often.
    pub is_lookup: bool,
}

/// An operator.
#[derive(Clone, Debug)]
pub(crate) enum Node {
    /// One row without columns.
    OneRow,
    Scan(Arc<ScanNode>),
    System(Arc<SystemNode>),
    Function(Arc<FunctionNode>),
    Values(Arc<ValuesNode>),
    Subquery(Arc<SubqueryNode>),
    Cte(Arc<CteScanNode>),
    WorkTable(Arc<WorkTableNode>),
    Recursion(Arc<RecursionNode>),
    Filter(Arc<FilterNode>),
    Sample(Arc<SampleNode>),
    Project(Arc<ProjectNode>),
    NestedLoop(Arc<NestedLoopNode>),
    HashJoin(Arc<HashJoinNode>),
    MergeJoin(Arc<MergeJoinNode>),
    Materialize(Arc<MaterializeNode>),
    Sort(Arc<SortNode>),
    Aggregate(Arc<AggregateNode>),
    Window(Arc<WindowNode>),
    WindowFrames(Arc<WindowFrameNode>),
    Distinct(Arc<DistinctNode>),
    Limit(Arc<LimitNode>),
    Union(Arc<UnionNode>),
    SetOp(Arc<SetOpNode>),
    LockRows(Arc<LockRowsNode>),
    /// Any of the others, counted for EXPLAIN; only in plans made for that.
    Metered(Arc<MeteredNode>),
    Current(Arc<CurrentNode>),
    Insert(Arc<InsertNode>),
    Update(Arc<UpdateNode>),
    Delete(Arc<DeleteNode>),
    Merge(Arc<MergeNode>),
}

/// A node of a plan that is explained, with what is expected of it and what it does.
#[derive(Debug)]
pub(crate) struct MeteredNode {
    pub input: Node,
    /// Rows expected each time it runs.
    pub rows: f64,
    /// Cost before the first row, and in all.
    pub first: f64,
    pub cost: f64,
    /// Bytes of a row.
    pub width: u64,
    /// Conditions and keys, as EXPLAIN shows them.
    pub details: Vec<(&'static str, super::explain::Told)>,
    pub meter: Meter,
}

/// What a node has done. Written by the one execution of its plan; relaxed, for nothing else hangs on it.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    pub rows: AtomicU64,
    pub loops: AtomicU64,
    /// Nanoseconds until the first row of each loop, summed; and in all.
    pub first_nanos: AtomicU64,
    pub nanos: AtomicU64,
}

impl Node {
    /// Whether PostgreSQL's operator of this kind can run backward.
    pub fn goes_backward(&self) -> bool {
        match self {
            Node::Scan(_) | Node::System(_) | Node::Function(_) | Node::Values(_) => true,
            Node::Sort(_) | Node::Materialize(_) => true,
            Node::Metered(n) => n.input.goes_backward(),
            Node::Subquery(n) => n.subplan.plan.root.goes_backward(),
            Node::Filter(n) => n.input.goes_backward(),
            Node::Project(n) => n.input.goes_backward(),
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
            | Node::Materialize(_)
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
    pub fn passes_rows(&self) -> bool {
        match self {
            Node::Scan(_) => true,
            Node::Filter(n) => n.input.passes_rows(),
            Node::Project(n) => n.input.passes_rows(),
            Node::Limit(n) => n.input.passes_rows(),
            Node::Metered(n) => n.input.passes_rows(),
            Node::OneRow
            | Node::System(_)
            | Node::Function(_)
            | Node::Values(_)
            | Node::Subquery(_)
            | Node::Cte(_)
            | Node::WorkTable(_)
            | Node::Recursion(_)
            | Node::Sample(_)
            | Node::NestedLoop(_)
            | Node::HashJoin(_)
            | Node::MergeJoin(_)
            | Node::Materialize(_)
            | Node::Sort(_)
            | Node::Aggregate(_)
            | Node::Window(_)
            | Node::WindowFrames(_)
            | Node::Distinct(_)
            | Node::Union(_)
            | Node::SetOp(_)
            | Node::LockRows(_)
            | Node::Current(_)
            | Node::Insert(_)
            | Node::Update(_)
            | Node::Delete(_)
            | Node::Merge(_) => false,
        }
    }
}

/// A stored table in a plan. Opened once; the plan is dropped when the table's definition changes.
#[derive(Debug)]
pub(crate) struct PlannedTable {
    pub info: Arc<TableInfo>,
    opened: OnceLock<TableRef>,
}

impl PlannedTable {
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

/// A scan of a stored table.
#[derive(Debug)]
pub(crate) struct ScanNode {
    pub table: Arc<PlannedTable>,
    pub alias: String,
    pub reader: RowReader,
    /// Reads the used columns from the index's key instead: an index-only scan.
    pub keys: Option<KeyReader>,
    /// What is asked of the engine.
    pub content: RowContent,
    pub access: Access,
    pub filter: Vec<Code>,
    /// What each condition of the filter needs of the row.
    pub stages: Box<[Stage]>,
    /// The conditions as EXPLAIN shows them: those of the index, those of the filter.
    pub shown: (String, String),
}

/// What a condition of a scan's filter needs of the reader's columns; the others are read if it holds.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Stage {
    /// So many, from the first on, in the frame.
    Columns(usize),
    /// It compares this column with a value, and can where the row lies.
    Stored(usize),
}

/// Which rows a scan visits.
#[derive(Debug)]
pub(crate) enum Access {
    /// All.
    Full,
    /// Those at some places, by `ctid`.
    Places(ListSource),
    /// Those with one key.
    Point { index: Oid, key: Vec<KeyPart> },
    /// Those with one of several keys: `list` is the position of the part that has several values.
    Multi { index: Oid, key: Vec<KeyPart>, list: usize, values: ListSource },
    /// Those of a range: equal in a prefix, bounded in the next column.
    Range {
        index: Oid,
        prefix: Vec<KeyPart>,
        next: Option<KeyColumn>,
        lower: Option<Bound>,
        upper: Option<Bound>,
        reverse: bool,
    },
    /// Those of any of several ranges of the first column; rows of none of them may be among them.
    Ranges { index: Oid, column: KeyColumn, ranges: Vec<[Option<Bound>; 2]> },
}

/// Where the values of an IN list come from.
#[derive(Debug)]
pub(crate) enum ListSource {
    List(Vec<Code>),
    Array(Code),
}

impl ListSource {
    /// Values that it has in any case.
    pub fn least(&self) -> usize {
        match self {
            ListSource::List(values) => values.len(),
            ListSource::Array(_) => 0,
        }
    }
}

/// A column of an index key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyColumn {
    pub ty: Oid,
    pub descending: bool,
    pub nulls_first: bool,
}

/// A column of a key with its value.
#[derive(Clone, Debug)]
pub(crate) struct KeyPart {
    pub column: KeyColumn,
    pub value: Code,
}

/// One end of a range.
#[derive(Clone, Debug)]
pub(crate) struct Bound {
    pub value: Code,
    pub inclusive: bool,
}

#[derive(Debug)]
pub(crate) struct SystemNode {
    pub relation: &'static SystemRelation,
    pub alias: String,
    /// (column of the relation, slot)
    pub columns: Vec<(usize, Slot)>,
    /// By what its rows are found, if not all are made: the condition is tested nevertheless.
    pub key: Option<(&'static Key, Code)>,
}

#[derive(Debug)]
pub(crate) struct FunctionNode {
    /// The functions side by side, with their arguments.
    pub calls: Vec<(&'static SetFunction, Vec<Code>)>,
    pub alias: String,
    /// (column, slot); columns are counted over all functions
    pub columns: Vec<(usize, Slot)>,
    pub ordinality: Option<Slot>,
}

#[derive(Debug)]
pub(crate) struct ValuesNode {
    pub rows: Vec<Vec<Code>>,
    pub slots: Vec<Slot>,
}

#[derive(Debug)]
pub(crate) struct SubqueryNode {
    pub subplan: Subplan,
    pub alias: String,
    /// (output column of the subquery, slot)
    pub columns: Vec<(usize, Slot)>,
}

/// Reads the kept rows of a WITH query.
#[derive(Debug)]
pub(crate) struct CteScanNode {
    pub cell: usize,
    pub alias: String,
    /// (output column of the query, slot)
    pub columns: Vec<(usize, Slot)>,
}

/// Reads what the recursive part of a query gave last.
#[derive(Debug)]
pub(crate) struct WorkTableNode {
    pub table: usize,
    pub alias: String,
    /// (output column of the query, slot)
    pub columns: Vec<(usize, Slot)>,
}

/// A query whose second part runs over its own rows until it gives no more.
#[derive(Debug)]
pub(crate) struct RecursionNode {
    pub table: usize,
    /// UNION ALL
    pub all: bool,
    pub first: Subplan,
    pub next: Subplan,
    pub slots: Vec<Slot>,
    pub types: Vec<Oid>,
}

#[derive(Debug)]
pub(crate) struct FilterNode {
    pub input: Node,
    pub conditions: Vec<Code>,
}

/// TABLESAMPLE
#[derive(Debug)]
pub(crate) struct SampleNode {
    pub input: Node,
    pub percent: Code,
    pub seed: Option<Code>,
    /// Rows come in groups.
    pub system: bool,
    pub row_slot: Slot,
    /// Where a seed comes from that is not given.
    pub random: &'static crate::functions::Function,
}

#[derive(Debug)]
pub(crate) struct ProjectNode {
    pub input: Node,
    pub targets: Vec<(Slot, Code)>,
}

/// What a join does with rows that have no partner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JoinType {
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

#[derive(Debug)]
pub(crate) struct NestedLoopNode {
    pub outer: Node,
    pub inner: Node,
    pub join: JoinType,
    pub conditions: Vec<Code>,
    /// Slots of the inner side, to be NULL for an outer row without a partner.
    pub inner_slots: Vec<Slot>,
    /// The inner side has parts below its top that look at the outer row: nothing of it is kept from row to row.
    pub anew: bool,
}

#[derive(Debug)]
pub(crate) struct HashJoinNode {
    /// The side whose rows are looked up.
    pub probe: Node,
    /// The side whose rows are kept.
    pub build: Node,
    pub join: JoinType,
    pub probe_keys: Vec<Code>,
    pub build_keys: Vec<Code>,
    /// Types of the keys; both sides have the same.
    pub key_types: Vec<Oid>,
    /// Conditions beyond equality of the keys.
    pub conditions: Vec<Code>,
    pub build_slots: Vec<Slot>,
    pub probe_slots: Vec<Slot>,
}

/// Joins two inputs that come in the order of `keys`.
#[derive(Debug)]
pub(crate) struct MergeJoinNode {
    pub left: Node,
    pub right: Node,
    pub join: JoinType,
    pub left_keys: Vec<Code>,
    pub right_keys: Vec<Code>,
    pub keys: Vec<MergeKey>,
    /// Conditions beyond equality of the keys.
    pub conditions: Vec<Code>,
    pub left_slots: Vec<Slot>,
    pub right_slots: Vec<Slot>,
}

/// How the inputs of a merge join are ordered by a key; where NULLs are makes no difference.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MergeKey {
    pub ty: Oid,
    pub descending: bool,
}

#[derive(Debug)]
pub(crate) struct MaterializeNode {
    pub input: Node,
    pub slots: Vec<Slot>,
}

/// A sort key in a frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SortSlot {
    pub slot: Slot,
    pub ty: Oid,
    pub descending: bool,
    pub nulls_first: bool,
}

#[derive(Debug)]
pub(crate) struct SortNode {
    pub input: Node,
    pub keys: Vec<SortSlot>,
    /// Everything that is used above.
    pub slots: Vec<Slot>,
    /// LIMIT + OFFSET right above: no more rows than that are kept.
    pub limit: Option<(Code, Option<Code>)>,
}

impl SortNode {
    /// The scan below it, if that and maybe DISTINCT are all there is, and nothing but columns of the scan is looked at.
    pub fn scan(&self) -> Option<(&Arc<ScanNode>, Option<&Arc<DistinctNode>>)> {
        let (scan, distinct) = match &self.input {
            Node::Scan(scan) => (scan, None),
            Node::Distinct(distinct) if self.limit.is_none() => match &distinct.input {
                Node::Scan(scan) => (scan, Some(distinct)),
                _ => return None,
            },
            _ => return None,
        };
        let distinct_slots = distinct.iter().flat_map(|distinct| distinct.keys.iter().map(|(slot, _)| *slot));
        let slots: Vec<Slot> = self.keys.iter().map(|key| key.slot).chain(distinct_slots).collect();
        (scan.keys.is_none() && scan.reader.columns_at(&slots).is_some()).then_some((scan, distinct))
    }
}

#[derive(Debug)]
pub(crate) struct AggregateNode {
    pub input: Node,
    /// Grouping keys: value, slot it goes to, type.
    pub keys: Vec<(Code, Slot, Oid)>,
    /// Slots of columns that are constant within a group and used above.
    pub carried: Vec<Slot>,
    /// What each group has a state of.
    pub calls: Vec<AggregateCall>,
    /// What goes to the frame of each group.
    pub results: Vec<AggregateResult>,
    /// GROUPING SETS: each the numbers of its keys; the others are NULL in its groups. Empty: one set of all.
    pub sets: Vec<Vec<usize>>,
    /// GROUPING: where it goes, the numbers of the keys it asks about.
    pub groupings: Vec<(Slot, Vec<usize>)>,
    /// The input is a scan, and all that is wanted of it are columns.
    pub stored: Option<StoredColumns>,
}

/// What an aggregation takes of the rows of a scan where they lie: numbers of columns in the scan's reader.
#[derive(Debug)]
pub(crate) struct StoredColumns {
    pub keys: Box<[u32]>,
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
            let plain = call.filter.is_none() && call.order.is_empty() && !call.aggregate.ordered_set;
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

#[derive(Debug)]
pub(crate) struct AggregateCall {
    pub aggregate: &'static Aggregate,
    pub args: Vec<Code>,
    pub arg_types: Vec<Oid>,
    pub direct: Vec<Code>,
    pub distinct: bool,
    /// ORDER BY inside the call: value, type, descending, nulls first.
    pub order: Vec<(Code, Oid, bool, bool)>,
    pub filter: Option<Code>,
}

/// A result of an aggregation.
#[derive(Debug)]
pub(crate) struct AggregateResult {
    /// Number of the call whose state it is made of.
    pub call: usize,
    /// The average of what that call sums.
    pub average: bool,
    pub slot: Slot,
}

/// Numbers rows that come sorted by partition and order.
#[derive(Debug)]
pub(crate) struct WindowNode {
    pub input: Node,
    pub ranking: WindowKind,
    pub partition: Vec<SortSlot>,
    pub order: Vec<SortSlot>,
    /// Where the number goes.
    pub slot: Slot,
}

/// Computes window functions over rows that come sorted by partition and order.
#[derive(Debug)]
pub(crate) struct WindowFrameNode {
    pub input: Node,
    /// Everything that is used above, apart from the results.
    pub slots: Vec<Slot>,
    pub partition: Vec<SortSlot>,
    pub order: Vec<SortSlot>,
    pub calls: Vec<FrameCall>,
}

/// A window function with its frame.
#[derive(Debug)]
pub(crate) struct FrameCall {
    pub callee: WindowCallee,
    pub args: Vec<Code>,
    pub arg_types: Vec<Oid>,
    pub filter: Option<Code>,
    pub frame: PlannedFrame,
    pub slot: Slot,
}

#[derive(Debug)]
pub(crate) struct PlannedFrame {
    pub mode: FrameMode,
    pub start: FrameBound,
    pub end: FrameBound,
    pub exclude: Exclude,
}

/// A bound of a frame; offsets are the same for all rows.
#[derive(Debug)]
pub(crate) enum FrameBound {
    UnboundedPreceding,
    Preceding(Code),
    CurrentRow,
    Following(Code),
    UnboundedFollowing,
}

#[derive(Debug)]
pub(crate) struct DistinctNode {
    pub input: Node,
    pub keys: Vec<(Slot, Oid)>,
}

#[derive(Debug)]
pub(crate) struct LimitNode {
    pub input: Node,
    pub limit: Option<Code>,
    pub offset: Option<Code>,
    /// WITH TIES: the keys of the order the rows come in.
    pub ties: Vec<SortSlot>,
}

/// UNION of any number of queries.
#[derive(Debug)]
pub(crate) struct UnionNode {
    pub all: bool,
    pub branches: Vec<Subplan>,
    pub slots: Vec<Slot>,
    pub types: Vec<Oid>,
}

/// INTERSECT or EXCEPT.
#[derive(Debug)]
pub(crate) struct SetOpNode {
    pub except: bool,
    pub all: bool,
    pub left: Subplan,
    pub right: Subplan,
    pub slots: Vec<Slot>,
    pub types: Vec<Oid>,
}

#[derive(Debug)]
pub(crate) struct LockRowsNode {
    pub input: Node,
    pub targets: Vec<LockTarget>,
    /// The whole qualification, for a row that has moved (rule R7).
    pub recheck: Vec<Code>,
    /// What was computed from columns below, to be computed again for a row that has moved.
    pub recompute: Vec<(Slot, Code)>,
}

/// The row of a table on which a cursor is.
#[derive(Debug)]
pub(crate) struct CurrentNode {
    pub table: Arc<PlannedTable>,
    pub alias: String,
    pub reader: RowReader,
    pub cursor: String,
}

#[derive(Debug)]
pub(crate) struct LockTarget {
    pub table: Arc<PlannedTable>,
    pub reader: RowReader,
    pub row_slot: Slot,
    pub mode: RowLockMode,
    pub policy: WaitPolicy,
}

/// What every change of a table checks and returns.
#[derive(Debug)]
pub(crate) struct Target {
    pub table: Arc<PlannedTable>,
    pub reader: RowReader,
    pub writer: RowWriter,
    pub row_slot: Slot,
    /// Slots of all columns (attribute number - 1).
    pub slots: Vec<Slot>,
    /// Columns that the statement gives values to: messages may show them.
    pub given: Box<[usize]>,
    /// Columns that are tested for NULL: of those that are written.
    pub not_null: Vec<usize>,
    /// Reads the columns that an UPDATE leaves as they are and does not look at: their slots are empty without it.
    pub rest: RowReader,
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
    pub returns: bool,
}

#[derive(Debug)]
pub(crate) struct InsertNode {
    pub target: Target,
    pub source: InsertRows,
    /// Slots of columns that the source does not put there itself, and where their values come from.
    pub columns: Vec<(Slot, Code)>,
    pub arbiter: ConflictArbiter,
    /// Where values of parameters say which index is the arbiter.
    pub by_values: Option<ArbiterByValues>,
    pub on_conflict: Option<ConflictAction>,
}

/// The choice of an arbiter by the values of parameters in the condition of a conflict target.
#[derive(Debug)]
pub(crate) struct ArbiterByValues {
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
        crate::bind::visit::walk_mut(&mut condition, 0, &mut |expr, _| {
            if let Expr::Param(param, ty) = expr
                && let Some(at) = self.params.iter().position(|(number, _)| number == param)
            {
                *expr = Expr::Const(values[at].clone(), *ty);
            }
        });
        let chosen = self.candidates.iter().find(|(_, predicate)| crate::bind::implies(Some(&condition), predicate));
        chosen.map(|(index, _)| *index).ok_or_else(crate::bind::no_arbiter)
    }
}

#[derive(Debug)]
pub(crate) enum InsertRows {
    /// VALUES: rows of values; slots they go to before the columns are computed.
    Values { rows: Vec<Vec<Code>>, slots: Vec<Slot> },
    /// SELECT
    Query(Node),
}

#[derive(Debug)]
pub(crate) enum ConflictAction {
    Nothing,
    Update {
        /// Slots of `excluded` (attribute number - 1).
        excluded: Vec<Slot>,
        set: Vec<(usize, Code)>,
        filter: Vec<Code>,
        mode: RowLockMode,
    },
}

#[derive(Debug)]
pub(crate) struct UpdateNode {
    pub target: Target,
    pub input: Node,
    pub set: UpdateSet,
    /// The columns that change, generated ones included ([`RowWriter::places`]).
    pub places: Vec<(usize, Slot)>,
    pub choice: RowChoice,
}

#[derive(Debug)]
pub(crate) struct DeleteNode {
    pub target: Target,
    pub input: Node,
    pub choice: RowChoice,
}

/// What an update gives to columns.
#[derive(Debug)]
pub(crate) struct UpdateSet {
    pub values: Vec<(usize, Code)>,
    /// The strongest lock if there are columns of keys among those that may change.
    pub mode: RowLockMode,
    /// Which of the values are those of such columns, if all of them are here: where none of them differs from the value before, the weaker
    /// lock does.
    pub keys: Vec<usize>,
}

/// Which rows of its input a statement changes.
#[derive(Debug)]
pub(crate) struct RowChoice {
    /// What must hold for a row that has moved meanwhile.
    pub recheck: Vec<Code>,
    /// A row may come more than once (joins); only the first counts.
    pub may_repeat: bool,
}

#[derive(Debug)]
pub(crate) struct MergeNode {
    pub target: Target,
    /// Rows of the source, each with the row of the target that it matches or without.
    pub input: Node,
    /// ON
    pub recheck: Vec<Code>,
    pub actions: Vec<MergeStep>,
}

/// A WHEN clause.
#[derive(Debug)]
pub(crate) struct MergeStep {
    pub matched: bool,
    pub condition: Vec<Code>,
    pub kind: MergeWork,
}

/// What MERGE does with a row.
#[derive(Debug)]
pub(crate) enum MergeWork {
    Update(UpdateSet),
    Delete,
    Insert(Vec<(usize, Code)>),
    Nothing,
}
