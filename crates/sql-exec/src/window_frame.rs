//! Window functions over the rows around theirs: frames, and what is computed over them. The input comes sorted by partition
//! and order.
//!
//! A partition is read as a whole; then its rows are handed out one by one, and what each function has of a row is computed
//! from what it had of the row before, where that is possible: frames move forward only.

mod bounds;
mod range;

use std::sync::Arc;

use base::work::{self, Count};
use base::{Error, Result, SqlState};
use sql_functions::{Accumulator, Aggregate};
use sql_ir::{Exclude, WindowCallee, WindowKind};
use sql_plan::{FrameCall, WindowFrameNode};
use types::Datum;

use self::bounds::{Bounds, Offsets};
use super::rows::{RowStore, datum_bytes};
use super::sort::has_values;
use super::{Cx, Next, Operator, operator};

/// Units of work that looking at a row of a frame is, at least.
const ROW_UNITS: usize = 8;

/// Computes window functions.
pub(super) struct WindowFrames {
    node: Arc<WindowFrameNode>,
    input: Box<dyn Operator>,
    /// The first row of the next partition.
    ahead: RowStore,
    partition: Partition,
    calls: Vec<CallState>,
    phase: Phase,
    at: usize,
    input_done: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Gathering,
    Giving,
}

/// The rows of a partition.
#[derive(Default)]
pub(super) struct Partition {
    rows: RowStore,
    /// Values of PARTITION BY.
    key: Vec<Datum>,
    /// Values of ORDER BY, row after row.
    order: Vec<Datum>,
    /// The group of rows equal in ORDER BY that each row is in.
    group_of: Vec<u32>,
    /// First row and end of each group.
    groups: Vec<(usize, usize)>,
}

impl Partition {
    fn len(&self) -> usize {
        self.rows.len()
    }

    fn group(&self, row: usize) -> (usize, usize) {
        self.groups[self.group_of[row] as usize]
    }

    fn clear(&mut self) {
        self.rows.clear();
        work::discard(&mut self.order);
        self.group_of.clear();
        self.groups.clear();
    }
}

/// What a call keeps of a partition.
struct CallState {
    /// Values of the arguments, row after row.
    args: Vec<Datum>,
    /// Which rows FILTER passes; empty if there is none.
    passes: Vec<bool>,
    bounds: Bounds,
    offsets: Option<Offsets>,
    running: Option<Running>,
    /// Rows cannot be taken out of the aggregate's state.
    grows_only: bool,
}

/// The state of an aggregate over some rows.
struct Running {
    accumulator: Box<dyn Accumulator>,
    start: usize,
    end: usize,
    value: Datum,
}

impl CallState {
    fn new() -> CallState {
        CallState {
            args: Vec::new(),
            passes: Vec::new(),
            bounds: Bounds::default(),
            offsets: None,
            running: None,
            grows_only: false,
        }
    }

    fn clear(&mut self) {
        work::discard(&mut self.args);
        self.passes.clear();
        self.bounds = Bounds::default();
        self.running = None;
    }

    fn args_of(&self, call: &FrameCall, row: usize) -> &[Datum] {
        let width = call.args.len();
        &self.args[row * width..(row + 1) * width]
    }
}

impl WindowFrames {
    pub fn new(node: &Arc<WindowFrameNode>) -> WindowFrames {
        WindowFrames {
            input: operator(&node.input),
            ahead: RowStore::default(),
            partition: Partition::default(),
            calls: node.calls.iter().map(|_| CallState::new()).collect(),
            node: Arc::clone(node),
            phase: Phase::Gathering,
            at: 0,
            input_done: false,
        }
    }

    /// Takes the row in the registers into the partition.
    fn take(&mut self, node: &WindowFrameNode, cx: &mut Cx<'_, '_>, registers: &[Datum]) -> Result<()> {
        let partition = &mut self.partition;
        let first = partition.len() == 0;
        if first {
            partition.key = node.partition.iter().map(|key| registers[key.slot as usize].clone()).collect();
        }
        let mut bytes = partition.rows.push(registers, &node.slots);
        let width = node.order.len();
        let from = partition.order.len();
        partition.order.extend(node.order.iter().map(|key| registers[key.slot as usize].clone()));
        let row = partition.rows.len() - 1;
        let peer = !first && has_values(&node.order, &partition.order[from - width..from], registers);
        if !peer {
            partition.groups.push((row, row));
        }
        partition.group_of.push(partition.groups.len() as u32 - 1);
        if let Some(group) = partition.groups.last_mut() {
            group.1 = row + 1;
        }
        for (call, state) in node.calls.iter().zip(&mut self.calls) {
            if let Some(filter) = &call.filter {
                let passes = filter.truth(cx, registers)? == Some(true);
                state.passes.push(passes);
                if !passes {
                    state.args.resize(state.args.len() + call.args.len(), Datum::Null);
                    continue;
                }
            }
            for arg in &call.args {
                let value = arg.eval(cx, registers)?;
                bytes += datum_bytes(&value);
                state.args.push(value);
            }
            if state.offsets.is_none() {
                state.offsets = Some(Offsets::new(&call.frame, cx, registers)?);
            }
        }
        cx.run.charge(bytes + width * size_of::<Datum>() + 8)
    }

    /// Reads the next partition. Answers what must be waited for.
    fn gather(&mut self, cx: &mut Cx<'_, '_>, registers: &mut [Datum]) -> Result<Option<Next>> {
        let node = Arc::clone(&self.node);
        if self.ahead.len() > 0 {
            self.ahead.restore(0, registers, &node.slots);
            self.ahead.clear();
            self.take(&node, cx, registers)?;
        }
        while !self.input_done {
            match self.input.next(cx, registers)? {
                Next::Row => {
                    if self.partition.len() > 0 && !has_values(&node.partition, &self.partition.key, registers) {
                        self.ahead.push(registers, &node.slots);
                        break;
                    }
                    self.take(&node, cx, registers)?;
                }
                Next::Done => self.input_done = true,
                wait => return Ok(Some(wait)),
            }
        }
        Ok(None)
    }
}

impl Operator for WindowFrames {
    fn next(&mut self, cx: &mut Cx<'_, '_>, registers: &mut [Datum]) -> Result<Next> {
        if let Some(wait) = cx.run.tick(1)? {
            return Ok(Next::Wait(wait));
        }
        if self.phase == Phase::Giving && self.at == self.partition.len() {
            self.partition.clear();
            self.calls.iter_mut().for_each(CallState::clear);
            (self.phase, self.at) = (Phase::Gathering, 0);
        }
        if self.phase == Phase::Gathering {
            if let Some(wait) = self.gather(cx, registers)? {
                return Ok(wait);
            }
            if self.partition.len() == 0 {
                return Ok(Next::Done);
            }
            self.phase = Phase::Giving;
        }
        let node = Arc::clone(&self.node);
        for (call, state) in node.calls.iter().zip(&mut self.calls) {
            registers[call.slot as usize] = value(&node, call, state, &self.partition, self.at, cx)?;
        }
        self.partition.rows.restore(self.at, registers, &node.slots);
        self.at += 1;
        Ok(Next::Row)
    }

    fn rescan(&mut self, forget: bool) {
        self.ahead.clear();
        self.partition.clear();
        self.calls = self.node.calls.iter().map(|_| CallState::new()).collect();
        (self.phase, self.at, self.input_done) = (Phase::Gathering, 0, false);
        self.input.rescan(forget);
    }
}

/// What a call has of a row.
fn value(
    node: &WindowFrameNode,
    call: &FrameCall,
    state: &mut CallState,
    partition: &Partition,
    row: usize,
    cx: &mut Cx<'_, '_>,
) -> Result<Datum> {
    let kind = match &call.callee {
        WindowCallee::Aggregate(aggregate) => return aggregate_value(node, call, aggregate, state, partition, row, cx),
        WindowCallee::Function(kind) => *kind,
    };
    let count = partition.len();
    let (first_peer, end_of_peers) = partition.group(row);
    Ok(match kind {
        WindowKind::RowNumber => Datum::Int8(row as i64 + 1),
        WindowKind::Rank => Datum::Int8(first_peer as i64 + 1),
        WindowKind::DenseRank => Datum::Int8(i64::from(partition.group_of[row]) + 1),
        WindowKind::PercentRank if count <= 1 => Datum::Float8(0.0),
        WindowKind::PercentRank => Datum::Float8(first_peer as f64 / (count - 1) as f64),
        WindowKind::CumeDist => Datum::Float8(end_of_peers as f64 / count as f64),
        WindowKind::Ntile => ntile(&state.args_of(call, 0)[0], row, count)?,
        WindowKind::Lag | WindowKind::Lead => {
            let args = state.args_of(call, row);
            let distance = match args.get(1) {
                None => 1,
                Some(Datum::Int4(distance)) => i64::from(*distance),
                Some(_) => return Ok(Datum::Null),
            };
            let distance = if kind == WindowKind::Lag { -distance } else { distance };
            match usize::try_from(row as i64 + distance).ok().filter(|at| *at < count) {
                Some(at) => state.args_of(call, at)[0].clone(),
                None => args.get(2).cloned().unwrap_or_default(),
            }
        }
        WindowKind::FirstValue | WindowKind::LastValue | WindowKind::NthValue => {
            let wanted = match (kind, state.args_of(call, row).get(1)) {
                (WindowKind::NthValue, Some(Datum::Int4(n))) => match usize::try_from(*n) {
                    Ok(n @ 1..) => n,
                    _ => {
                        return Err(Error::new(
                            SqlState::INVALID_ARGUMENT_FOR_NTH_VALUE_FUNCTION,
                            "argument of nth_value must be greater than zero",
                        ));
                    }
                },
                (WindowKind::NthValue, _) => return Ok(Datum::Null),
                _ => 1,
            };
            let (start, end) = bounds_of(node, call, state, partition, row, cx)?;
            let found = match (kind, call.frame.exclude) {
                (WindowKind::LastValue, Exclude::NoOthers) => (start < end).then(|| end - 1),
                (WindowKind::LastValue, _) => {
                    (start..end).rev().counted(ROW_UNITS).find(|at| !is_excluded(call, partition, row, *at))
                }
                (_, Exclude::NoOthers) => Some(start + wanted - 1).filter(|at| *at < end),
                _ => {
                    (start..end).counted(ROW_UNITS).filter(|at| !is_excluded(call, partition, row, *at)).nth(wanted - 1)
                }
            };
            found.map_or(Datum::Null, |at| state.args_of(call, at)[0].clone())
        }
    })
}

fn bounds_of(
    node: &WindowFrameNode,
    call: &FrameCall,
    state: &mut CallState,
    partition: &Partition,
    row: usize,
    cx: &Cx<'_, '_>,
) -> Result<(usize, usize)> {
    let Some(offsets) = &state.offsets else { return Ok((0, 0)) };
    state.bounds.of(&call.frame, offsets, node.order.first(), partition, row, cx.run.eval)
}

/// Whether EXCLUDE takes a row out of another's frame.
fn is_excluded(call: &FrameCall, partition: &Partition, row: usize, other: usize) -> bool {
    let peers = || partition.group_of[row] == partition.group_of[other];
    match call.frame.exclude {
        Exclude::NoOthers => false,
        Exclude::CurrentRow => row == other,
        Exclude::Group => peers(),
        Exclude::Ties => row != other && peers(),
    }
}

/// The number of the bucket, of so many equal ones, that a row is in.
fn ntile(buckets: &Datum, row: usize, count: usize) -> Result<Datum> {
    let Datum::Int4(buckets) = buckets else { return Ok(Datum::Null) };
    let Ok(buckets @ 1..) = usize::try_from(*buckets) else {
        return Err(Error::new(
            SqlState::INVALID_ARGUMENT_FOR_NTILE_FUNCTION,
            "argument of ntile must be greater than zero",
        ));
    };
    let (size, larger) = (count / buckets, count % buckets);
    // The first buckets take one row more.
    let in_larger = larger * (size + 1);
    let bucket = if row < in_larger { row / (size + 1) } else { larger + (row - in_larger) / size.max(1) };
    Ok(Datum::Int4(bucket as i32 + 1))
}

/// An aggregate over a row's frame.
fn aggregate_value(
    node: &WindowFrameNode,
    call: &FrameCall,
    aggregate: &'static Aggregate,
    state: &mut CallState,
    partition: &Partition,
    row: usize,
    cx: &mut Cx<'_, '_>,
) -> Result<Datum> {
    let (start, end) = bounds_of(node, call, state, partition, row, cx)?;
    if call.frame.exclude != Exclude::NoOthers {
        let mut accumulator = (aggregate.create)(&call.arg_types);
        for at in (start..end).counted(ROW_UNITS).filter(|at| !is_excluded(call, partition, row, *at)) {
            add(accumulator.as_mut(), call, aggregate, state, at, cx)?;
        }
        return accumulator.finish(cx.run.eval);
    }
    let mut running = match state.running.take() {
        Some(running) if (running.start, running.end) == (start, end) => {
            let value = running.value.clone();
            state.running = Some(running);
            return Ok(value);
        }
        Some(running) => forward(running, call, aggregate, state, (start, end))?,
        None => None,
    };
    let mut known = match running.take() {
        Some(running) => running,
        None => {
            let accumulator = (aggregate.create)(&call.arg_types);
            Running { accumulator, start, end: start, value: Datum::Null }
        }
    };
    for at in known.end..end {
        add(known.accumulator.as_mut(), call, aggregate, state, at, cx)?;
    }
    known.end = end;
    known.value = known.accumulator.finish(cx.run.eval)?;
    let value = known.value.clone();
    state.running = Some(known);
    Ok(value)
}

/// Takes the rows before `start` out of a state; `None` if it must be made anew.
fn forward(
    mut running: Running,
    call: &FrameCall,
    aggregate: &Aggregate,
    state: &mut CallState,
    (start, end): (usize, usize),
) -> Result<Option<Running>> {
    if start < running.start || end < running.end || start > running.end {
        return Ok(None);
    }
    if start > running.start && state.grows_only {
        return Ok(None);
    }
    for at in running.start..start {
        work::step(ROW_UNITS)?;
        if !counts(call, aggregate, state, at) {
            continue;
        }
        if !running.accumulator.remove(state.args_of(call, at))? {
            state.grows_only = true;
            return Ok(None);
        }
    }
    running.start = start;
    Ok(Some(running))
}

/// Whether a row counts for an aggregate.
fn counts(call: &FrameCall, aggregate: &Aggregate, state: &CallState, row: usize) -> bool {
    if state.passes.get(row) == Some(&false) {
        return false;
    }
    !(aggregate.strict && state.args_of(call, row).iter().any(Datum::is_null))
}

fn add(
    accumulator: &mut dyn Accumulator,
    call: &FrameCall,
    aggregate: &Aggregate,
    state: &CallState,
    row: usize,
    cx: &Cx<'_, '_>,
) -> Result<()> {
    work::step(ROW_UNITS)?;
    if counts(call, aggregate, state, row) {
        accumulator.add(cx.run.eval, state.args_of(call, row))?;
    }
    Ok(())
}
