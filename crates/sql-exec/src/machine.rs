//! One query level that runs: its registers, its operators, its subqueries.

use std::sync::Arc;

use base::{Error, Oid, Result, SqlState, work};
use engine_api::Txn;
use sql_functions::EvalContext;
use sql_ir::CompareOp;
use sql_ir::expr::{Comparison, Env, Lists, Quantifier, SubqueryUse};
use sql_plan::{Node, QueryPlan, Subplan};
use types::{Array, Datum};

use super::rows::KeyTable;
use super::scan::Scan;
use super::sorted_scan::SortedScan;
use super::{Cx, Next, Operator, OutputRow, Run, operator};

/// A running query level. `Send`; borrows nothing.
pub(crate) struct Machine {
    plan: Arc<QueryPlan>,
    registers: Vec<Datum>,
    root: Root,
    subplans: Vec<SubplanState>,
    /// How far the WITH queries of this level are.
    ctes: Ctes,
}

/// The operator at the top.
enum Root {
    /// Any; its rows lie in the registers.
    Any(Box<dyn Operator>),
    /// A scan whose rows stay where they are ([`QueryPlan::straight`]).
    Straight(Box<Scan>),
    /// The same, sorted.
    Sorted(Box<SortedScan>),
}

impl Root {
    fn of(plan: &QueryPlan) -> Root {
        match (&plan.root, &plan.straight) {
            (Node::Scan(node), Some(_)) => Root::Straight(Box::new(Scan::straight(node))),
            (root @ Node::Sort(node), Some(_)) => match SortedScan::new(node) {
                Some(sorted) => Root::Sorted(Box::new(sorted)),
                None => Root::Any(operator(root)),
            },
            (root, _) => Root::Any(operator(root)),
        }
    }

    #[inline]
    fn next(&mut self, cx: &mut Cx<'_, '_>, registers: &mut [Datum]) -> Result<Next> {
        match self {
            Root::Any(operator) => operator.next(cx, registers),
            Root::Straight(scan) => scan.next(cx, registers),
            Root::Sorted(scan) => scan.advance(cx, registers),
        }
    }
}

/// How far the WITH queries of a level are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ctes {
    /// To be begun before the first row is read.
    Fresh,
    Reading,
    /// The main query is done; what WITH has to change is being completed.
    Completing,
}

impl Machine {
    /// A machine whose registers begins with these parameters.
    pub fn new(plan: &Arc<QueryPlan>, params: Vec<Datum>) -> Machine {
        let mut registers = params;
        registers.resize(plan.registers, Datum::Null);
        Machine {
            registers,
            root: Root::of(plan),
            subplans: plan.subplans.iter().map(|_| SubplanState::default()).collect(),
            plan: Arc::clone(plan),
            ctes: Ctes::Fresh,
        }
    }

    /// A machine for a query inside the one whose registers is given.
    pub fn inside(subplan: &Subplan, registers: &[Datum]) -> Machine {
        let params = subplan.plan.params.min(registers.len());
        Machine::new(&subplan.plan, registers[..params].to_vec())
    }

    /// The first values of the registers: parameters.
    pub(crate) fn first_values(&self, count: usize) -> &[Datum] {
        self.registers.get(..count).unwrap_or_default()
    }

    /// The first values of the registers, for others to be put there before it begins anew.
    pub(crate) fn first_values_mut(&mut self, count: usize) -> &mut [Datum] {
        self.registers.get_mut(..count).unwrap_or_default()
    }

    /// Takes parameters, for the registers of a machine that begins anew.
    pub fn supply(&mut self, params: impl IntoIterator<Item = Datum>) {
        let mut params = params.into_iter();
        self.registers.iter_mut().for_each(|slot| slot.put(params.next().unwrap_or_default()));
    }

    /// Whether a value that a run left in the registers is large.
    pub(crate) fn holds_much(&self) -> bool {
        self.registers.iter().any(|value| sql_functions::weight(value) >= types::room::LARGE)
    }

    /// Begins anew with the registers as it is.
    pub fn restart(&mut self) {
        self.subplans.iter_mut().for_each(|s| *s = SubplanState::default());
        self.ctes = Ctes::Fresh;
        match &mut self.root {
            Root::Any(operator) => operator.rescan(true),
            Root::Straight(scan) => scan.rescan(true),
            Root::Sorted(scan) => scan.begin_anew(),
        }
    }

    /// Takes the arguments from the registers of the query around it.
    pub(crate) fn take_args(&mut self, subplan: &Subplan, cx: &mut Cx<'_, '_>, outer: &[Datum]) -> Result<()> {
        for (code, slot) in &subplan.args {
            self.registers[*slot as usize] = code.eval(cx, outer)?;
        }
        Ok(())
    }

    /// Puts the next row into the registers.
    pub fn next(&mut self, run: &mut Run<'_>) -> Result<Next> {
        if !self.plan.ctes.is_empty() {
            return self.next_with_ctes(run);
        }
        let Machine { plan, registers, root, subplans, .. } = self;
        root.next(&mut Cx { run, plan, subplans }, registers)
    }

    /// As [`Machine::next`], for a level with a WITH clause.
    #[inline(never)]
    fn next_with_ctes(&mut self, run: &mut Run<'_>) -> Result<Next> {
        let Machine { plan, registers, root, subplans, ctes } = self;
        let modifies = plan.ctes.iter().any(|cte| cte.modifies);
        if *ctes == Ctes::Fresh {
            if modifies {
                run.shared.touched = Some(Default::default());
            }
            for cte in &plan.ctes {
                let mut machine = Machine::inside(&cte.subplan, registers);
                machine.take_args(&cte.subplan, &mut Cx { run, plan, subplans }, registers)?;
                run.open_cell(cte.cell, machine);
            }
            *ctes = Ctes::Reading;
        }
        if *ctes == Ctes::Reading {
            match root.next(&mut Cx { run, plan, subplans }, registers)? {
                Next::Done if modifies => *ctes = Ctes::Completing,
                next => return Ok(next),
            }
        }
        // Those that nobody has read to the end, the last one first.
        for cte in plan.ctes.iter().rev().filter(|cte| cte.modifies) {
            if let Next::Wait(wait) = run.complete_cell(cte.cell)? {
                return Ok(Next::Wait(wait));
            }
        }
        run.finish_deferred(plan)
    }

    /// As [`Machine::next`], of a statement that follows what another has changed: the rows it changes do not count as the
    /// other's, and its foreign keys go behind what is to be looked at already.
    pub(super) fn next_behind(&mut self, run: &mut Run<'_>) -> Result<Next> {
        let changed = run.changed;
        let outer = std::mem::replace(&mut run.shared.follows, true);
        let next = self.next(run);
        run.shared.follows = outer;
        run.changed = changed;
        next
    }

    /// As [`Machine::next`], inside an expression, where nothing can be waited for but a turn.
    ///
    /// # Errors
    /// 0A000 if a lock must be waited for: what to wait for is in [`Run::suspended`], for who can begin the statement anew.
    pub(crate) fn next_now(&mut self, run: &mut Run<'_>) -> Result<bool> {
        loop {
            run.in_expression += 1;
            let next = self.next(run);
            run.in_expression -= 1;
            match next? {
                Next::Row => return Ok(true),
                Next::Done => return Ok(false),
                // The turn of others comes in the middle of the expression, if the thread can do that.
                Next::Wait(wait) if wait.is_over() => work::look_now()?,
                Next::Wait(wait) => {
                    run.suspended = Some(wait);
                    return Err(Error::unsupported("row locks in a subquery of an expression are not supported"));
                }
            }
        }
    }

    /// The row that [`Machine::next`] announced. Always inline, as [`RowReader::stored`](sql_ir::row_codec::RowReader::stored) is.
    #[inline(always)]
    pub fn row(&self) -> OutputRow<'_> {
        match (&self.root, &self.plan.straight) {
            (Root::Straight(scan), Some(columns)) => {
                if let Some(row) = scan.row() {
                    return OutputRow::stored(row, columns);
                }
            }
            (Root::Sorted(scan), Some(columns)) => {
                if let Some(row) = scan.row() {
                    return OutputRow::stored(row, columns);
                }
            }
            _ => {}
        }
        OutputRow::at(&self.registers, &self.plan.output)
    }
}

/// A subquery of an expression: its machine, and its result if that does not change.
#[derive(Default)]
pub(crate) struct SubplanState {
    machine: Option<Machine>,
    value: Option<Datum>,
    rows: Option<SubqueryRows>,
    /// How often it has run, as far as that counts.
    runs: u32,
}

/// The rows of `x IN (subquery)`, kept.
enum SubqueryRows {
    List(Vec<Vec<Datum>>),
    /// Rows without NULL, and those with one.
    Hashed {
        keys: KeyTable,
        with_null: Vec<Vec<Datum>>,
    },
    /// They cannot be told without an error.
    Unknown,
}

impl Env for Cx<'_, '_> {
    fn eval(&self) -> &dyn EvalContext {
        self.run.eval
    }

    fn lists(&mut self) -> Option<&mut Lists> {
        Some(self.run.lists)
    }

    fn transaction(&mut self) -> Result<&mut dyn Txn> {
        Ok(self.run.txn)
    }

    fn subquery(&mut self, index: usize, kind: &SubqueryUse, left: &[Datum], registers: &[Datum]) -> Result<Datum> {
        let plan = self.plan;
        let subplan = &plan.subplans[index];
        if subplan.fixed
            && let Some(value) = &self.subplans[index].value
        {
            return Ok(value.clone());
        }
        if let SubqueryUse::ExistsOrLookup { types, lookup, often, .. } = kind {
            self.subplans[index].runs += 1;
            if self.subplans[index].runs > *often
                && let Some(value) = self.look_up(*lookup, types, left, registers)?
            {
                return Ok(value);
            }
        }
        let mut state = std::mem::take(&mut self.subplans[index]);
        let result = self.run_subquery(&mut state, subplan, kind, left, registers);
        self.subplans[index] = state;
        result
    }
}

impl Cx<'_, '_> {
    fn run_subquery(
        &mut self,
        state: &mut SubplanState,
        subplan: &Subplan,
        kind: &SubqueryUse,
        left: &[Datum],
        registers: &[Datum],
    ) -> Result<Datum> {
        if let (SubqueryUse::AnyAll { .. }, Some(rows)) = (kind, &state.rows) {
            return self.quantify(rows, kind, left);
        }
        let machine = match &mut state.machine {
            Some(machine) => {
                machine.restart();
                machine
            }
            machine => machine.insert(Machine::inside(subplan, registers)),
        };
        machine.take_args(subplan, self, registers)?;
        let value = match kind {
            SubqueryUse::Exists | SubqueryUse::ExistsOrLookup { .. } => Datum::Bool(machine.next_now(self.run)?),
            SubqueryUse::Scalar => {
                if !machine.next_now(self.run)? {
                    Datum::Null
                } else {
                    let value = machine.row().get_owned(0);
                    if machine.next_now(self.run)? {
                        return Err(Error::new(
                            SqlState::CARDINALITY_VIOLATION,
                            "more than one row returned by a subquery used as an expression",
                        ));
                    }
                    value
                }
            }
            SubqueryUse::Array(element) => {
                let mut values = Vec::new();
                while machine.next_now(self.run)? {
                    let value = machine.row().get_owned(0);
                    self.run.charge(super::rows::datum_bytes(&value))?;
                    values.push(value);
                }
                match types::type_info(*element).filter(|t| t.is_array()) {
                    Some(array) => stacked(values, array.element)?,
                    None => {
                        let dims = if values.is_empty() { Vec::new() } else { vec![(values.len() as i32, 1)] };
                        Datum::Array(Arc::new(Array { element: *element, dims, values }))
                    }
                }
            }
            SubqueryUse::AnyAll { all, tests, hashed, .. } => {
                if subplan.fixed {
                    let rows = keep_rows(machine, self.run, hashed.as_deref())?;
                    let result = self.quantify(&rows, kind, left);
                    state.rows = Some(rows);
                    return result;
                }
                let mut quantifier = Quantifier::new(*all);
                while machine.next_now(self.run)? {
                    if quantifier.add(test_row(self, left, machine.row(), tests)?) {
                        break;
                    }
                }
                quantifier.result().map_or(Datum::Null, Datum::Bool)
            }
        };
        if subplan.fixed {
            state.value = Some(value.clone());
        }
        Ok(value)
    }

    /// Whether a subquery that depends on nothing has a row of these keys; its rows are kept from the first time on. `None`: a condition
    /// of it fails, maybe on a row that nobody asks for.
    fn look_up(
        &mut self,
        index: usize,
        types: &[base::Oid],
        keys: &[Datum],
        registers: &[Datum],
    ) -> Result<Option<Datum>> {
        if self.subplans[index].rows.is_none() {
            let subplan = &self.plan.subplans[index];
            let rows = match keep_rows(&mut Machine::inside(subplan, registers), self.run, Some(types)) {
                Err(error) if is_of_values(&error) => SubqueryRows::Unknown,
                rows => rows?,
            };
            self.subplans[index].rows = Some(rows);
        }
        match &self.subplans[index].rows {
            Some(SubqueryRows::Hashed { keys: kept, .. }) => {
                Ok(Some(Datum::Bool(!keys.iter().any(Datum::is_null) && kept.find(keys).is_some())))
            }
            Some(SubqueryRows::Unknown) => Ok(None),
            Some(SubqueryRows::List(_)) | None => Err(Error::internal("rows of a lookup that are in no hash table")),
        }
    }

    /// Whether a row that has no equal among those without NULL may have one where values are not known.
    fn find_unknown(
        &mut self,
        keys: &KeyTable,
        with_null: &[Vec<Datum>],
        left: &[Datum],
        tests: &[Comparison],
        all: bool,
    ) -> Result<Option<bool>> {
        // A row that differs in one column differs.
        let may_equal = |cx: &Cx<'_, '_>, row: &[Datum]| -> Result<bool> {
            for ((l, r), test) in left.iter().zip(row).zip(tests) {
                work::step(4)?;
                if test.test(cx, l, r)? == Some(all) {
                    return Ok(false);
                }
            }
            Ok(true)
        };
        for row in with_null {
            if may_equal(self, row)? {
                return Ok(None);
            }
        }
        if left.iter().any(Datum::is_null) {
            for number in 0..keys.len() {
                if may_equal(self, keys.key(number))? {
                    return Ok(None);
                }
            }
        }
        Ok(Some(false))
    }

    /// ANY or ALL over kept rows.
    fn quantify(&mut self, rows: &SubqueryRows, kind: &SubqueryUse, left: &[Datum]) -> Result<Datum> {
        let SubqueryUse::AnyAll { all, tests, .. } = kind else {
            return Err(Error::internal("kept rows of a subquery that is not compared with"));
        };
        let truth = match rows {
            SubqueryRows::List(rows) => {
                let mut quantifier = Quantifier::new(*all);
                for row in rows {
                    if quantifier.add(test_row(self, left, OutputRow::of(row), tests)?) {
                        break;
                    }
                }
                quantifier.result()
            }
            SubqueryRows::Unknown => return Err(Error::internal("a subquery without rows is compared with")),
            SubqueryRows::Hashed { keys, with_null, .. } if keys.len() == 0 && with_null.is_empty() => Some(*all),
            SubqueryRows::Hashed { keys, with_null } => {
                let has_null = left.iter().any(Datum::is_null);
                let found = match left {
                    // Nothing equals NULL, and nothing is known of it.
                    [Datum::Null] => None,
                    [_] if keys.find(left).is_some() => Some(true),
                    [_] if with_null.is_empty() => Some(false),
                    [_] => None,
                    _ if !has_null && keys.find(left).is_some() => Some(true),
                    _ => self.find_unknown(keys, with_null, left, tests, *all)?,
                };
                // `<> ALL` is NOT (`= ANY`).
                if *all { found.map(|f| !f) } else { found }
            }
        };
        Ok(truth.map_or(Datum::Null, Datum::Bool))
    }
}

/// Whether an error comes of the values that an expression is evaluated for: data exceptions, constraints of domains, limits of values.
fn is_of_values(error: &Error) -> bool {
    matches!(error.code().class(), "22" | "23" | "54")
}

/// Compares the left side with one row: = holds if it does for all columns, <> if it does for one.
fn test_row(cx: &Cx<'_, '_>, left: &[Datum], row: OutputRow<'_>, tests: &[Comparison]) -> Result<Option<bool>> {
    let any = tests.len() > 1 && tests[0].op == CompareOp::Ne;
    let mut quantifier = Quantifier::new(!any);
    for ((l, r), comparison) in left.iter().zip(row.owned()).zip(tests) {
        if quantifier.add(comparison.test(cx, l, &r)?) {
            break;
        }
    }
    Ok(quantifier.result())
}

fn keep_rows(machine: &mut Machine, run: &mut Run<'_>, hashed: Option<&[base::Oid]>) -> Result<SubqueryRows> {
    let Some(types) = hashed else {
        let mut rows = Vec::new();
        while machine.next_now(run)? {
            let row: Vec<Datum> = machine.row().owned().collect();
            run.charge(row.len() * 24 + 32)?;
            rows.push(row);
        }
        return Ok(SubqueryRows::List(rows));
    };
    let mut keys = KeyTable::new(types);
    let mut with_null = Vec::new();
    let mut row: Vec<Datum> = Vec::with_capacity(types.len());
    while machine.next_now(run)? {
        row.clear();
        row.extend(machine.row().owned());
        if !row.iter().any(Datum::is_null) {
            if keys.insert(&row).1 {
                run.charge(keys.entry_bytes())?;
            }
        } else if types.len() > 1 || with_null.is_empty() {
            run.charge(row.iter().map(super::rows::datum_bytes).sum::<usize>() + size_of::<Vec<Datum>>())?;
            with_null.push(row.clone());
        }
    }
    Ok(SubqueryRows::Hashed { keys, with_null })
}

/// Arrays as the parts of an array of one more dimension.
fn stacked(arrays: Vec<Datum>, element: Oid) -> Result<Datum> {
    let error = |code, message: &str| Err(Error::new(code, message));
    let (mut dims, mut values): (Option<Vec<(i32, i32)>>, Vec<Datum>) = (None, Vec::new());
    let count = arrays.len() as i32;
    for array in arrays {
        let Datum::Array(array) = array else {
            return error(SqlState::NULL_VALUE_NOT_ALLOWED, "cannot accumulate null arrays");
        };
        if array.dims.is_empty() {
            return error(SqlState::ARRAY_SUBSCRIPT_ERROR, "cannot accumulate empty arrays");
        }
        if dims.as_ref().is_some_and(|d| *d != array.dims) {
            return error(SqlState::ARRAY_SUBSCRIPT_ERROR, "cannot accumulate arrays of different dimensionality");
        }
        dims.get_or_insert_with(|| array.dims.clone());
        values.extend_from_slice(&array.values);
    }
    let dims = dims.map_or(Vec::new(), |mut d| {
        d.insert(0, (count, 1));
        d
    });
    Ok(Datum::Array(Arc::new(Array { element, dims, values })))
}
