//! GROUP BY and aggregates, by hashing. Groups come in order of their first row; where rows come in the order of the keys, each group as soon
//! as the next one begins.

use std::sync::Arc;

use base::watch::{self, Phase};
use base::work::{self, Count as _};
use base::{Error, Oid, Result};
use smallvec::SmallVec;
use sql_functions::{Accumulator, SortedBy};
use sql_ir::expr::Slot;
use sql_ir::row_codec::StoredRow;
use sql_plan::{AggregateCall, AggregateNode, AggregateResult, Node, SortSlot, StoredColumns};
use types::{Datum, DatumRef, room};

use super::rows::{KeyTable, RowLists, RowStore, slots_of};
use super::scan::Scan;
use super::sort::{self, compare_keys};
use super::team::{Finished, Parts, Share, Team, to_the_end};
use super::{Cx, Next, Operator, operator};

/// Rough bytes of the state of one aggregate of one group.
const STATE_BYTES: usize = 64;

/// Units of work that adding a row to a group is, at least.
const GROUP_UNITS: usize = 64;

/// Groups its input.
pub(super) struct Aggregate {
    node: Arc<AggregateNode>,
    own: Aggregation,
    stage: AggregateStage,
    at: usize,
    /// What was in the registers that a group was put into while its input goes on behind it: the row that was read last may still be
    /// one that the input works with.
    replaced: Vec<(Slot, Datum)>,
}

/// How far an aggregate is.
enum AggregateStage {
    Fresh,
    /// Rows are read, by this thread and perhaps by others.
    Reading(Option<Team<Groups>>),
    Complete,
}

/// Rows on their way into groups.
struct Aggregation {
    input: Input,
    groups: Groups,
}

/// Where the rows come from.
enum Input {
    /// Any operator; they lie in the registers.
    Any(Box<dyn Operator>),
    /// A scan whose rows stay where they are ([`AggregateNode::stored`]).
    Stored(Box<Scan>),
}

/// The groups so far.
struct Groups {
    keys: KeyTable,
    /// Columns that are constant in a group, from its first row.
    carried: RowStore,
    /// One state for each of `node.calls`, group after group.
    states: RowLists<AggregateState>,
    count: usize,
    key: Vec<Datum>,
    /// The slots that the key is in, if it is nothing else and there is one set of groups.
    key_slots: Option<Box<[Slot]>>,
}

/// One aggregate of one group.
struct AggregateState {
    accumulator: Box<dyn Accumulator>,
    /// What calls with DISTINCT or ORDER BY collect. Apart, since most have neither, and groups are visited at random.
    collected: Option<Box<Collected>>,
    /// Bytes of the accumulator that have been charged.
    charged: usize,
}

/// Arguments of a call with DISTINCT or ORDER BY.
struct Collected {
    /// Arguments seen (DISTINCT).
    seen: Option<KeyTable>,
    /// Sort keys and arguments, kept until the end (ORDER BY in the call).
    kept: Vec<Vec<Datum>>,
    /// The same, if the argument is the sort key ([`AggregateCall::sorts_argument`]).
    values: Vec<Datum>,
}

impl AggregateState {
    fn new(call: &AggregateCall) -> AggregateState {
        AggregateState {
            accumulator: (call.aggregate.create)(&call.arg_types),
            collected: (call.distinct || !call.order.is_empty()).then(|| Box::new(Collected::new(call))),
            charged: STATE_BYTES,
        }
    }

    fn collected(&mut self) -> Result<&mut Collected> {
        self.collected.as_deref_mut().ok_or_else(|| Error::internal("a call that collects nothing"))
    }

    /// A state of an ordered-set aggregate learns its direct arguments from the first row of its group.
    fn begin(&mut self, call: &AggregateCall, cx: &mut Cx<'_, '_>, registers: &[Datum]) -> Result<()> {
        if call.aggregate.ordered_set {
            let values = call.direct.iter().map(|code| code.eval(cx, registers)).collect::<Result<Vec<_>>>()?;
            let by =
                |&(_, ty, descending, nulls_first): &(_, Oid, bool, bool)| SortedBy { ty, descending, nulls_first };
            let order: Vec<SortedBy> = call.order.iter().map(by).collect();
            self.accumulator.direct(&values, &order);
        }
        Ok(())
    }

    fn add(&mut self, call: &AggregateCall, cx: &mut Cx<'_, '_>, registers: &[Datum]) -> Result<()> {
        if let Some(filter) = &call.filter
            && filter.truth(cx, registers)? != Some(true)
        {
            return Ok(());
        }
        if call.sorts_argument {
            let value = call.args[0].eval(cx, registers)?;
            return self.collected()?.keep_value(value, cx);
        }
        if let ([arg], true) = (call.args.as_slice(), call.order.is_empty()) {
            let value = arg.value(cx, registers)?;
            if call.aggregate.strict && value.is_null() {
                return Ok(());
            }
            return self.accumulate(std::slice::from_ref(&*value), cx);
        }
        let mut args: SmallVec<[Datum; 2]> = SmallVec::new();
        for arg in &call.args {
            args.push(arg.eval(cx, registers)?);
        }
        if call.aggregate.strict && args.iter().any(Datum::is_null) {
            return Ok(());
        }
        if call.order.is_empty() {
            return self.accumulate(&args, cx);
        }
        let collected = self.collected()?;
        if !collected.is_new(&args, cx)? {
            return Ok(());
        }
        let mut row: Vec<Datum> = Vec::with_capacity(call.order.len() + args.len());
        for (code, ..) in &call.order {
            row.push(code.eval(cx, registers)?);
        }
        row.extend(args);
        collected.keep(row, cx)
    }

    #[inline]
    fn accumulate(&mut self, args: &[Datum], cx: &mut Cx<'_, '_>) -> Result<()> {
        let is_new = match &mut self.collected {
            Some(collected) => collected.is_new(args, cx)?,
            None => true,
        };
        if is_new {
            self.accumulator.add(cx.run.eval, args)?;
            self.charge(cx)?;
        }
        Ok(())
    }

    /// Takes a row where it lies.
    fn add_stored(
        &mut self,
        call: &AggregateCall,
        column: Option<u32>,
        row: StoredRow<'_>,
        cx: &mut Cx<'_, '_>,
    ) -> Result<()> {
        let Some(column) = column else { return self.accumulate(&[], cx) };
        let value = row.get(column as usize);
        if call.aggregate.strict && matches!(value, DatumRef::Null) {
            return Ok(());
        }
        if call.sorts_argument {
            return self.collected()?.keep_value(value.to_owned(), cx);
        }
        if self.collected.is_some() {
            return self.accumulate(&[value.to_owned()], cx);
        }
        self.accumulator.add_stored(cx.run.eval, value)?;
        self.charge(cx)
    }

    /// Charges what the accumulator holds by now.
    #[inline]
    fn charge(&mut self, cx: &mut Cx<'_, '_>) -> Result<()> {
        let bytes = self.accumulator.memory();
        if bytes > self.charged {
            cx.run.charge(bytes - self.charged)?;
            self.charged = bytes;
        }
        Ok(())
    }

    /// Takes the rows that another state of the same group has taken.
    fn combine(&mut self, other: &mut AggregateState, call: &AggregateCall, cx: &mut Cx<'_, '_>) -> Result<()> {
        let Some(others) = &mut other.collected else {
            self.accumulator.combine(&mut *other.accumulator)?;
            return self.charge(cx);
        };
        let sorted = call.order.len();
        if let (Some(seen), 0) = (&others.seen, sorted) {
            return (0..seen.len()).try_for_each(|number| self.accumulate(seen.key(number), cx));
        }
        let own = self.collected()?;
        for value in std::mem::take(&mut others.values) {
            own.keep_value(value, cx)?;
        }
        for row in std::mem::take(&mut others.kept) {
            if own.is_new(&row[sorted..], cx)? {
                own.keep(row, cx)?;
            }
        }
        Ok(())
    }

    fn finish(&mut self, call: &AggregateCall, cx: &mut Cx<'_, '_>) -> Result<Datum> {
        if let Some(collected) = &mut self.collected {
            collected.accumulate(&mut *self.accumulator, call, cx)?;
        }
        self.accumulator.finish(cx.run.eval)
    }
}

impl Drop for Collected {
    fn drop(&mut self) {
        work::discard(&mut self.kept);
        work::discard(&mut self.values);
    }
}

impl Collected {
    fn new(call: &AggregateCall) -> Collected {
        Collected { seen: call.distinct.then(|| KeyTable::new(&call.arg_types)), kept: Vec::new(), values: Vec::new() }
    }

    /// Whether DISTINCT lets these arguments through.
    fn is_new(&mut self, args: &[Datum], cx: &mut Cx<'_, '_>) -> Result<bool> {
        let Some(seen) = &mut self.seen else { return Ok(true) };
        work::step(GROUP_UNITS)?;
        let (_, new) = seen.insert(args);
        if new {
            cx.run.charge(seen.entry_bytes())?;
        }
        Ok(new)
    }

    /// Keeps an argument that is its own sort key until the end.
    fn keep_value(&mut self, value: Datum, cx: &mut Cx<'_, '_>) -> Result<()> {
        if !self.is_new(std::slice::from_ref(&value), cx)? {
            return Ok(());
        }
        work::step(4)?;
        // The value, and its place when it is sorted.
        cx.run.charge(super::rows::datum_bytes(&value) + 16)?;
        room::reserve(&mut self.values, 1);
        self.values.push(value);
        Ok(())
    }

    /// Keeps a row of sort keys and arguments until the end.
    fn keep(&mut self, row: Vec<Datum>, cx: &mut Cx<'_, '_>) -> Result<()> {
        work::step(4)?;
        // The row, and its place when it is sorted.
        cx.run.charge(row.iter().map(super::rows::datum_bytes).sum::<usize>() + 24 + 16)?;
        room::reserve(&mut self.kept, 1);
        self.kept.push(row);
        Ok(())
    }

    /// Hands what is kept to the accumulator, in order.
    fn accumulate(
        &mut self,
        accumulator: &mut dyn Accumulator,
        call: &AggregateCall,
        cx: &mut Cx<'_, '_>,
    ) -> Result<()> {
        if let ([(_, ty, descending, nulls_first)], true) = (call.order.as_slice(), !self.values.is_empty()) {
            watch::does(Phase::Aggregate);
            let key = SortSlot { slot: 0, ty: *ty, descending: *descending, nulls_first: *nulls_first };
            let mut values = std::mem::take(&mut self.values);
            let order = in_order(&values, std::slice::from_ref, &[(0, key)]);
            let sorted = order.counted(4).map(|place| std::mem::take(&mut values[place])).collect();
            accumulator.add_sorted(cx.run.eval, sorted)?;
        }
        if !self.kept.is_empty() {
            watch::does(Phase::Aggregate);
            let keys: Vec<(usize, SortSlot)> = call
                .order
                .iter()
                .enumerate()
                .map(|(i, &(_, ty, descending, nulls_first))| (i, SortSlot { slot: 0, ty, descending, nulls_first }))
                .collect();
            // Rows are freed one by one, also when the statement is stopped meanwhile.
            for place in in_order(&self.kept, Vec::as_slice, &keys) {
                work::step(16)?;
                let row = std::mem::take(&mut self.kept[place]);
                accumulator.add(cx.run.eval, &row[keys.len()..])?;
            }
            work::discard(&mut self.kept);
        }
        Ok(())
    }
}

/// The places of the rows in the order of the keys, whose values `values` finds in a row; equal rows as they came.
fn in_order<R, V: Fn(&R) -> &[Datum]>(
    rows: &[R],
    values: V,
    keys: &[(usize, SortSlot)],
) -> impl Iterator<Item = usize> + use<R, V> {
    let head = |row: &R| match (keys, values(row)) {
        ([(_, key), ..], [value, ..]) => {
            sort::head(key, (!value.is_null()).then(|| types::abbreviate(key.ty, &value.as_ref())))
        }
        _ => 0,
    };
    // It was charged with the rows.
    let mut order: Vec<(u64, usize)> = Vec::with_capacity(rows.len());
    order.extend(rows.iter().counted(8).enumerate().map(|(place, row)| (head(row), place)));
    order.sort_unstable_by(|a, b| {
        // Comparing rows counts by itself.
        work::beat(1);
        a.0.cmp(&b.0).then_with(|| compare_keys(keys, values(&rows[a.1]), values(&rows[b.1]))).then(a.1.cmp(&b.1))
    });
    order.into_iter().map(|(_, place)| place)
}

impl Aggregate {
    pub fn new(node: &Arc<AggregateNode>) -> Aggregate {
        let input = match (&node.input, &node.stored) {
            (Node::Scan(scan), Some(_)) => Input::Stored(Box::new(Scan::straight(scan))),
            (input, _) => Input::Any(operator(input)),
        };
        Aggregate {
            own: Aggregation { input, groups: Groups::new(node) },
            node: Arc::clone(node),
            stage: AggregateStage::Fresh,
            at: 0,
            replaced: Vec::new(),
        }
    }
}

impl Aggregation {
    /// Takes the next row of the input into its groups.
    fn step(&mut self, node: &AggregateNode, cx: &mut Cx<'_, '_>, registers: &mut [Datum]) -> Result<Next> {
        if let (Input::Stored(scan), Some(columns)) = (&mut self.input, &node.stored)
            && columns.counts_rows()
        {
            let (rows, next) = scan.next_many(cx, registers)?;
            if rows > 0 {
                self.groups.add_rows(node, rows, cx)?;
            }
            return Ok(next);
        }
        let next = match &mut self.input {
            Input::Any(input) => input.next(cx, registers)?,
            Input::Stored(scan) => scan.next(cx, registers)?,
        };
        if matches!(next, Next::Row) {
            match (&self.input, &node.stored) {
                (Input::Stored(scan), Some(columns)) => {
                    let row = scan.row().ok_or_else(|| Error::internal("a row of an unknown layout"))?;
                    self.groups.add_stored(node, columns, row, cx)?;
                }
                _ => self.groups.add(node, cx, registers)?,
            }
        }
        Ok(next)
    }

    /// See [`Operator::prepare`].
    fn prepare(&mut self, cx: &mut Cx<'_, '_>, registers: &mut [Datum]) -> Result<Next> {
        match &mut self.input {
            Input::Any(input) => input.prepare(cx, registers),
            Input::Stored(_) => Ok(Next::Done),
        }
    }

    /// See [`Operator::split`].
    fn split(
        &mut self,
        node: &AggregateNode,
        cx: &mut Cx<'_, '_>,
        parts: &mut Option<Arc<Parts>>,
    ) -> Result<Option<Aggregation>> {
        let input = match &mut self.input {
            Input::Any(input) => input.split(cx, parts)?.map(Input::Any),
            Input::Stored(scan) => Some(Input::Stored(Box::new(scan.divide(cx, parts)?))),
        };
        Ok(input.map(|input| Aggregation { input, groups: Groups::new(node) }))
    }

    /// What a worker does with it.
    fn share(mut self, node: &Arc<AggregateNode>) -> Share<Groups> {
        let node = Arc::clone(node);
        Box::new(move |cx, registers| {
            to_the_end(|| self.step(&node, cx, registers))?;
            Ok(self.groups)
        })
    }

    fn rescan(&mut self, forget: bool) {
        self.groups.clear();
        match &mut self.input {
            Input::Any(input) => input.rescan(forget),
            Input::Stored(scan) => scan.rescan(forget),
        }
    }
}

impl Groups {
    fn new(node: &AggregateNode) -> Groups {
        // The number of a grouping set is a key before all others.
        let number = (!node.sets.is_empty()).then_some(types::oid::INT4);
        let types: Vec<Oid> = number.into_iter().chain(node.keys.iter().map(|(_, _, ty)| *ty)).collect();
        Groups {
            keys: KeyTable::new(&types),
            carried: RowStore::default(),
            states: RowLists::default(),
            count: 0,
            key: Vec::new(),
            key_slots: if node.keys.is_empty() || !node.sets.is_empty() {
                None
            } else {
                slots_of(node.keys.iter().map(|(code, ..)| code))
            },
        }
    }

    /// Takes the groups of another participant.
    fn combine(&mut self, node: &AggregateNode, mut other: Groups, cx: &mut Cx<'_, '_>) -> Result<()> {
        for number in 0..other.count {
            work::step(GROUP_UNITS)?;
            let (group, new) = match other.keys.len() {
                0 => (0, self.count == 0),
                _ => self.keys.insert(other.keys.key(number)),
            };
            if new {
                let key = if other.keys.len() == 0 { 0 } else { self.keys.entry_bytes() };
                cx.run.charge(key)?;
                let bytes = self.carried.push_values(other.carried.row(number).iter().cloned());
                self.add_states(node, bytes, cx)?;
            }
            let states = self.states.row_mut(group).iter_mut().zip(other.states.row_mut(number)).zip(&node.calls);
            for ((state, more), call) in states {
                if new {
                    std::mem::swap(state, more);
                    cx.run.charge(state.charged - STATE_BYTES)?;
                } else {
                    state.combine(more, call, cx)?;
                }
            }
        }
        Ok(())
    }

    fn clear(&mut self) {
        self.keys.clear();
        self.carried.clear();
        self.states.clear();
        self.count = 0;
    }

    fn add(&mut self, node: &AggregateNode, cx: &mut Cx<'_, '_>, registers: &mut [Datum]) -> Result<()> {
        if let Some(slots) = &self.key_slots {
            // The values are copied if the group is new.
            let (group, new) = self.keys.insert_stored(|at| registers[slots[at] as usize].as_ref());
            if new {
                self.key.clear();
                self.key.extend(slots.iter().map(|slot| registers[*slot as usize].clone()));
                cx.run.charge(self.keys.entry_bytes())?;
                self.new_group(node, cx, registers)?;
            }
            return self.add_to(group, node, cx, registers);
        }
        self.key.clear();
        for (code, ..) in &node.keys {
            self.key.push(code.eval(cx, registers)?);
        }
        if !node.sets.is_empty() {
            let key = std::mem::take(&mut self.key);
            for set in 0..node.sets.len() {
                // A row is in up to thousands of groups.
                work::step(GROUP_UNITS)?;
                self.key = in_set(node, set, &key);
                let group = self.group(node, cx, registers)?;
                self.add_to(group, node, cx, registers)?;
            }
            self.key = key;
            return Ok(());
        }
        let group = if node.keys.is_empty() {
            if self.count == 0 {
                self.new_group(node, cx, registers)?;
            }
            0
        } else {
            self.group(node, cx, registers)?
        };
        self.add_to(group, node, cx, registers)
    }

    /// Takes a row where it lies.
    fn add_stored(
        &mut self,
        node: &AggregateNode,
        columns: &StoredColumns,
        row: StoredRow<'_>,
        cx: &mut Cx<'_, '_>,
    ) -> Result<()> {
        let mut group = 0;
        let mut new = self.count == 0;
        if !columns.keys.is_empty() {
            (group, new) = self.keys.insert_stored(|at| row.get(columns.keys[at] as usize));
            if new {
                cx.run.charge(self.keys.entry_bytes())?;
            }
        }
        if new {
            let bytes = self.carried.push_values(columns.carried.iter().map(|&column| row.get_owned(column as usize)));
            self.add_states(node, bytes, cx)?;
            for (state, call) in self.states.row_mut(self.count - 1).iter_mut().zip(&node.calls) {
                state.begin(call, cx, &[])?;
            }
        }
        for (at, state) in self.states.row_mut(group).iter_mut().enumerate() {
            state.add_stored(&node.calls[at], columns.args[at], row, cx)?;
        }
        Ok(())
    }

    /// Takes rows of which nothing is wanted.
    fn add_rows(&mut self, node: &AggregateNode, rows: usize, cx: &mut Cx<'_, '_>) -> Result<()> {
        if self.count == 0 {
            let bytes = self.carried.push_values(std::iter::empty());
            self.add_states(node, bytes, cx)?;
        }
        self.states.row_mut(0).iter_mut().try_for_each(|state| state.accumulator.add_rows(cx.run.eval, rows))
    }

    /// Begins the states of a new group, whose carried columns take so many bytes.
    fn add_states(&mut self, node: &AggregateNode, bytes: usize, cx: &mut Cx<'_, '_>) -> Result<()> {
        cx.run.charge(bytes + node.calls.len() * STATE_BYTES)?;
        self.states.push(node.calls.iter().map(AggregateState::new));
        self.count += 1;
        Ok(())
    }

    /// The group of the key.
    fn group(&mut self, node: &AggregateNode, cx: &mut Cx<'_, '_>, registers: &mut [Datum]) -> Result<usize> {
        let (number, new) = self.keys.insert(&self.key);
        if new {
            cx.run.charge(self.keys.entry_bytes())?;
            self.new_group(node, cx, registers)?;
        }
        Ok(number)
    }

    fn add_to(&mut self, group: usize, node: &AggregateNode, cx: &mut Cx<'_, '_>, registers: &[Datum]) -> Result<()> {
        for (state, call) in self.states.row_mut(group).iter_mut().zip(&node.calls) {
            state.add(call, cx, registers)?;
        }
        Ok(())
    }

    fn new_group(&mut self, node: &AggregateNode, cx: &mut Cx<'_, '_>, registers: &mut [Datum]) -> Result<()> {
        let bytes = self.carried.push(registers, &node.carried);
        self.add_states(node, bytes, cx)?;
        let any_direct = node.calls.iter().any(|call| !call.direct.is_empty());
        let first = self.key.len().saturating_sub(node.keys.len());
        let mut swap_keys = |registers: &mut [Datum]| {
            for ((_, slot, _), value) in node.keys.iter().zip(&mut self.key[first..]).filter(|_| any_direct) {
                std::mem::swap(&mut registers[*slot as usize], value);
            }
        };
        // Direct arguments are about the group: its keys stand in the registers while they are evaluated.
        swap_keys(registers);
        let mut states = self.states.row_mut(self.count - 1).iter_mut().zip(&node.calls);
        let begun = states.try_for_each(|(state, call)| state.begin(call, cx, registers));
        swap_keys(registers);
        begun
    }
}

/// A key in a grouping set: the set's number, the values of its keys, NULL for the others.
fn in_set(node: &AggregateNode, set: usize, key: &[Datum]) -> Vec<Datum> {
    let of = |(i, value): (usize, &Datum)| if node.sets[set].contains(&i) { value.clone() } else { Datum::Null };
    std::iter::once(Datum::Int4(set as i32)).chain(key.iter().enumerate().map(of)).collect()
}

impl Groups {
    /// Adds the groups that there are without any row.
    fn complete(&mut self, node: &AggregateNode, cx: &mut Cx<'_, '_>, registers: &mut [Datum]) -> Result<()> {
        if !node.sets.is_empty() {
            return self.add_empty_sets(node, cx, registers);
        }
        if node.keys.is_empty() && self.count == 0 {
            // Its columns are NULL.
            for &slot in &node.carried {
                registers[slot as usize] = Datum::Null;
            }
            self.new_group(node, cx, registers)?;
        }
        Ok(())
    }

    /// An empty grouping set has one group, even of no rows.
    fn add_empty_sets(&mut self, node: &AggregateNode, cx: &mut Cx<'_, '_>, registers: &mut [Datum]) -> Result<()> {
        for set in (0..node.sets.len()).filter(|set| node.sets[*set].is_empty()) {
            self.key = in_set(node, set, &vec![Datum::Null; node.keys.len()]);
            if self.keys.find(&self.key).is_none() {
                for &slot in &node.carried {
                    registers[slot as usize] = Datum::Null;
                }
                self.group(node, cx, registers)?;
            }
        }
        Ok(())
    }
}

impl Aggregate {
    /// Reads rows, until all groups are complete, or the next one is.
    fn read(&mut self, cx: &mut Cx<'_, '_>, registers: &mut [Datum]) -> Result<Next> {
        let node = &self.node;
        loop {
            match &mut self.stage {
                AggregateStage::Fresh => {
                    let mut team = None;
                    if let Some(parallel) = &node.parallel {
                        if let wait @ Next::Wait(_) = self.own.prepare(cx, registers)? {
                            return Ok(wait);
                        }
                        let own = &mut self.own;
                        team = Team::start(parallel, cx, registers, |cx, parts| {
                            Ok(own.split(node, cx, parts)?.map(|other| other.share(node)))
                        })?;
                    }
                    self.stage = AggregateStage::Reading(team);
                }
                AggregateStage::Reading(_) if node.in_order && self.own.groups.count > self.at + 1 => {
                    return Ok(Next::Row);
                }
                AggregateStage::Reading(team) => match self.own.step(node, cx, registers)? {
                    Next::Row => {}
                    Next::Done => {
                        let found = team.as_ref().map(|team| team.finish(cx.run)).transpose()?;
                        match found {
                            None => {}
                            Some(Finished::All(all)) => {
                                for (groups, _held) in all {
                                    self.own.groups.combine(node, groups, cx)?;
                                }
                            }
                            Some(Finished::Wait(wait)) => return Ok(Next::Wait(wait)),
                            Some(Finished::Never) => {
                                self.own.rescan(false);
                                self.stage = AggregateStage::Reading(None);
                                continue;
                            }
                        }
                        self.own.groups.complete(node, cx, registers)?;
                        self.stage = AggregateStage::Complete;
                    }
                    wait => return Ok(wait),
                },
                AggregateStage::Complete => return Ok(Next::Done),
            }
        }
    }
}

impl Operator for Aggregate {
    fn next(&mut self, cx: &mut Cx<'_, '_>, registers: &mut [Datum]) -> Result<Next> {
        for (slot, value) in self.replaced.drain(..) {
            registers[slot as usize] = value;
        }
        if let wait @ Next::Wait(_) = self.read(cx, registers)? {
            return Ok(wait);
        }
        let node = Arc::clone(&self.node);
        let groups = &mut self.own.groups;
        if self.at == groups.count {
            return Ok(Next::Done);
        }
        if let Some(wait) = cx.run.tick(1)? {
            return Ok(Next::Wait(wait));
        }
        let group = self.at;
        self.at += 1;
        if matches!(self.stage, AggregateStage::Reading(_)) {
            let slots = node.carried.iter().copied().chain(node.keys.iter().map(|(_, slot, _)| *slot));
            self.replaced.extend(slots.map(|slot| (slot, std::mem::take(&mut registers[slot as usize]))));
        }
        groups.carried.restore(group, registers, &node.carried);
        if !node.sets.is_empty() {
            let [Datum::Int4(set), key @ ..] = groups.keys.key(group) else { return Ok(Next::Done) };
            for ((_, slot, _), value) in node.keys.iter().zip(key) {
                registers[*slot as usize] = value.clone();
            }
            let set = &node.sets[*set as usize];
            for (slot, keys) in &node.groupings {
                let bits = keys.iter().fold(0, |bits, key| bits << 1 | i32::from(!set.contains(key)));
                registers[*slot as usize] = Datum::Int4(bits);
            }
        } else if !node.keys.is_empty() {
            for (slot, _) in &node.groupings {
                registers[*slot as usize] = Datum::Int4(0);
            }
            for ((_, slot, _), value) in node.keys.iter().zip(groups.keys.key(group)) {
                registers[*slot as usize] = value.clone();
            }
        }
        let states = groups.states.row_mut(group);
        for AggregateResult { call, average, slot } in &node.results {
            let state = &mut states[*call];
            registers[*slot as usize] =
                if *average { state.accumulator.average()? } else { state.finish(&node.calls[*call], cx)? };
        }
        Ok(Next::Row)
    }

    fn rescan(&mut self, forget: bool) {
        self.own.rescan(forget);
        self.stage = AggregateStage::Fresh;
        self.at = 0;
        self.replaced.clear();
    }
}
