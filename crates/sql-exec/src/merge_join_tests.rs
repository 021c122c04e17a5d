//! Merge joins of random rows give what a nested loop over them gives.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use base::{Ending, LayoutId, Lsn, Oid, Result, RowId, TxnId, Unseen};
use engine_api::{
    Catalog, CatalogObject, CommitOutcome, ConflictArbiter, Durability, Engine, InsertOutcome, Isolation, KeptView,
    PreparedTransaction, RowBatch, RowLockMode, RowLockOutcome, Savepoint, Scan, ScanSpec, Step, TableLockMode,
    TableRef, Txn, TxnOptions, WaitPolicy,
};
use sql_ir::CompareOp;
use sql_ir::expr::{Code, Comparison, How, Slot};
use sql_plan::{JoinType, MergeJoinNode, MergeKey, Node, Plan, QueryPlan, ValuesNode};
use types::{Datum, oid};

use crate::{ExecCx, Execution, MemoryBudget, OutputRow, Progress, RowSink};

/// A transaction that no operator here has a use for.
struct NoTxn;

fn unused() -> ! {
    unreachable!("rows that are given need no transaction")
}

#[rustfmt::skip]
impl Txn for NoTxn {
    fn engine(&self) -> &dyn Engine { unused() }
    fn id(&self) -> Option<TxnId> { unused() }
    fn take_id(&mut self) -> Result<TxnId> { unused() }
    fn shown_id(&self) -> Option<TxnId> { unused() }
    fn unseen(&mut self) -> Result<Arc<Unseen>> { unused() }
    fn ending(&self, _: u64) -> Ending { unused() }
    fn last_number(&self) -> TxnId { unused() }
    fn isolation(&self) -> Isolation { unused() }
    fn has_view(&self) -> bool { unused() }
    fn catalog(&self) -> Arc<Catalog> { unused() }
    fn has_definitions(&self) -> bool { unused() }
    fn await_safe_snapshot(&mut self) -> Step<()> {
        Step::Ready(())
    }
    fn begin_command(&mut self) { unused() }
    fn begin_newest_command(&mut self) { unused() }
    fn keep_view(&mut self) -> KeptView { unused() }
    fn resume_command(&mut self, _: &KeptView) { unused() }
    fn adopt_view(&mut self, _: &KeptView) { unused() }
    fn end_command(&mut self) { unused() }
    fn gate(&self) -> Lsn { unused() }
    fn raise_gate(&mut self, _: Lsn) { unused() }
    fn open_table(&mut self, _: Oid) -> Result<TableRef> { unused() }
    fn open_scan(&mut self, _: ScanSpec) -> Result<Box<dyn Scan>> { unused() }
    fn get(&mut self, _: &TableRef, _: Oid, _: &[u8], _: &mut RowBatch) -> Result<()> { unused() }
    fn get_any(&mut self, _: &TableRef, _: Oid, _: &[u8], _: &mut RowBatch) -> Result<()> { unused() }
    fn fetch(&mut self, _: &TableRef, _: RowId, _: &mut RowBatch) -> Result<bool> { unused() }
    fn get_referenced(&mut self, _: &TableRef, _: Oid, _: &[u8], _: bool, _: &mut RowBatch) -> Result<()> { unused() }
    fn lock_table(&mut self, _: Oid, _: TableLockMode, _: WaitPolicy) -> Result<Step<()>> { unused() }
    fn lock_row(&mut self, _: &TableRef, _: RowId, _: RowLockMode, _: WaitPolicy, _: &mut RowBatch)
        -> Result<Step<RowLockOutcome>> { unused() }
    fn insert(&mut self, _: &TableRef, _: &[u8], _: ConflictArbiter) -> Result<Step<InsertOutcome>> { unused() }
    fn update(&mut self, _: &TableRef, _: RowId, _: &[u8]) -> Result<Step<()>> { unused() }
    fn delete(&mut self, _: &TableRef, _: RowId) -> Result<()> { unused() }
    fn cancel_wait(&mut self) { unused() }
    fn savepoint(&mut self) -> Savepoint { unused() }
    fn release(&mut self, _: Savepoint) { unused() }
    fn rollback_to(&mut self, _: Savepoint) { unused() }
    fn undo_some(&mut self, _: Option<Savepoint>) -> bool { unused() }
    fn put_object(&mut self, _: CatalogObject) -> Result<Step<()>> { unused() }
    fn drop_object(&mut self, _: Oid) -> Result<()> { unused() }
    fn truncate(&mut self, _: Oid) -> Result<()> { unused() }
    fn commit(&mut self, _: Durability) -> Result<Step<CommitOutcome>> { unused() }
    fn prepare(&mut self, _: &PreparedTransaction) -> Result<Step<CommitOutcome>> { unused() }
    fn take_unproven(&mut self, _: &mut Vec<(Oid, RowId)>) { unused() }
    fn prove_unique(&mut self, _: &TableRef, _: Oid, _: RowId) -> Result<Step<()>> { unused() }
    fn fill_index(&mut self, _: Oid) -> Result<Step<()>> { unused() }
    fn finish_some(&mut self) -> bool { unused() }
    fn rollback(&mut self) { unused() }
    fn begin_anew(&mut self, _: TxnOptions) { unused() }
    fn layout(&self, _: &TableRef) -> LayoutId { unused() }
}

/// Two keys and the row's number.
type Row = [Option<i32>; 3];

/// A simple generator; the tests need no better one.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

/// How a side is sorted: descending and nulls first, by key.
fn sorted(dice: &mut Dice, descending: [bool; 2]) -> Vec<Row> {
    let count = dice.below(12);
    let value = |dice: &mut Dice| (dice.below(5) > 0).then(|| dice.below(4) as i32);
    let mut rows: Vec<Row> = (0..count).map(|n| [value(dice), value(dice), Some(n as i32)]).collect();
    let nulls_first = [dice.below(2) == 0, dice.below(2) == 0];
    rows.sort_by(|a, b| {
        let by = |k: usize| match (a[k], b[k]) {
            (Some(x), Some(y)) if descending[k] => y.cmp(&x),
            (Some(x), Some(y)) => x.cmp(&y),
            (x, y) if nulls_first[k] => x.is_some().cmp(&y.is_some()),
            (x, y) => y.is_some().cmp(&x.is_some()),
        };
        by(0).then(by(1))
    });
    rows
}

fn datum(value: Option<i32>) -> Datum {
    value.map_or(Datum::Null, Datum::Int4)
}

fn values(rows: &[Row], slots: [Slot; 3]) -> Node {
    let rows = rows.iter().map(|row| row.iter().map(|v| Code::Const(datum(*v))).collect()).collect();
    Node::Values(Arc::new(ValuesNode { rows, slots: slots.to_vec() }))
}

struct Rows(Vec<Vec<Datum>>);

impl RowSink for Rows {
    fn row(&mut self, row: OutputRow<'_>) -> Result<bool> {
        self.0.push(row.owned().collect());
        Ok(false)
    }
}

fn run(root: Node) -> Vec<Vec<Datum>> {
    let root = QueryPlan {
        registers: 6,
        params: 0,
        root,
        output: (0..6).collect(),
        straight: None,
        subplans: Vec::new(),
        rows: 0.0,
        cost: 0.0,
        ctes: Vec::new(),
    };
    let plan = Plan {
        root: Arc::new(root),
        changes: false,
        fills: false,
        cells: (0, 0),
        row_ids: Vec::new(),
        is_large: false,
        assumes: Box::default(),
        may_be_better: false,
    };
    let eval = sql_catalog::index_code::nobody(std::sync::Arc::default());
    let memory = Arc::new(MemoryBudget::new(1 << 30));
    let mut cx = ExecCx {
        txn: &mut NoTxn,
        eval: &eval,
        cancel: &AtomicBool::new(false),
        now: &|| 0,
        deadline: 0,
        memory: &memory,
        deferrals: None,
    };
    let mut rows = Rows(Vec::new());
    let mut execution = Execution::new(Arc::new(plan), Vec::new());
    loop {
        match execution.run(&mut cx, &mut rows, 0).expect("nothing here fails") {
            Progress::Done { .. } => return rows.0,
            Progress::Wait(_) | Progress::SinkFull | Progress::MaxRows { .. } => {}
        }
    }
}

/// What a nested loop gives.
fn expected(left: &[Row], right: &[Row], keys: usize, join: JoinType, odd: bool) -> Vec<Vec<Datum>> {
    let fits = |l: &Row, r: &Row| (0..keys).all(|k| l[k].is_some() && l[k] == r[k]) && (!odd || l[2] < r[2]);
    let row = |l: Option<&Row>, r: Option<&Row>| -> Vec<Datum> {
        let nulls = [None; 3];
        l.unwrap_or(&nulls).iter().chain(r.unwrap_or(&nulls)).map(|v| datum(*v)).collect()
    };
    let mut out = Vec::new();
    for l in left {
        let partners: Vec<&Row> = right.iter().filter(|r| fits(l, r)).collect();
        match join {
            JoinType::Semi if !partners.is_empty() => out.push(row(Some(l), None)),
            JoinType::Anti if partners.is_empty() => out.push(row(Some(l), None)),
            JoinType::Semi | JoinType::Anti => {}
            JoinType::Left | JoinType::Full if partners.is_empty() => out.push(row(Some(l), None)),
            _ => out.extend(partners.into_iter().map(|r| row(Some(l), Some(r)))),
        }
    }
    if matches!(join, JoinType::Right | JoinType::Full) {
        out.extend(right.iter().filter(|r| !left.iter().any(|l| fits(l, r))).map(|r| row(None, Some(r))));
    }
    out
}

fn in_order(mut rows: Vec<Vec<Datum>>) -> Vec<String> {
    let mut shown: Vec<String> = rows.drain(..).map(|row| format!("{row:?}")).collect();
    shown.sort();
    shown
}

#[test]
fn merges_give_what_nested_loops_give() {
    let mut dice = Dice(20_260_321);
    let joins = [JoinType::Inner, JoinType::Left, JoinType::Right, JoinType::Full, JoinType::Semi, JoinType::Anti];
    for round in 0..3000 {
        let descending = [dice.below(2) == 0, dice.below(2) == 0];
        let (left, right) = (sorted(&mut dice, descending), sorted(&mut dice, descending));
        let (keys, odd) = (1 + dice.below(2) as usize, dice.below(3) == 0);
        let join = joins[round % joins.len()];
        let less = Comparison { op: CompareOp::Lt, how: How::Int };
        let node = MergeJoinNode {
            left: values(&left, [0, 1, 2]),
            right: values(&right, [3, 4, 5]),
            join,
            left_keys: (0..keys as Slot).map(Code::Slot).collect(),
            right_keys: (3..3 + keys as Slot).map(Code::Slot).collect(),
            keys: (0..keys).map(|k| MergeKey { ty: oid::INT4, descending: descending[k] }).collect(),
            conditions: match odd {
                true => vec![Code::Compare(less, Box::new([Code::Slot(2), Code::Slot(5)]))],
                false => Vec::new(),
            },
            left_slots: vec![0, 1, 2],
            right_slots: vec![3, 4, 5],
        };
        let mut actual = run(Node::MergeJoin(Arc::new(node)));
        if matches!(join, JoinType::Semi | JoinType::Anti) {
            // What is in the slots of the right side means nothing.
            actual.iter_mut().for_each(|row| row[3..].fill(Datum::Null));
        }
        let wanted = expected(&left, &right, keys, join, odd);
        if !matches!(join, JoinType::Right | JoinType::Full) {
            let numbers = |rows: &[Vec<Datum>]| rows.iter().map(|row| format!("{:?}", row[2])).collect::<Vec<_>>();
            assert_eq!(numbers(&actual), numbers(&wanted), "round {round}: {join:?} keeps the order of the left side");
        }
        assert_eq!(
            in_order(actual),
            in_order(wanted),
            "round {round}: {join:?} by {keys} keys of {left:?} and {right:?}"
        );
    }
}
