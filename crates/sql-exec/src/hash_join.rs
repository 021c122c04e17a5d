//! Hash join: one side in a table by its keys, the other looked up in it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use base::{Error, Oid, Result};
use engine_api::{Wait, WaitCell};
use sql_ir::expr::{Code, Slot, all_true};
use sql_plan::{HashJoinNode, JoinType, Node};
use types::{Datum, DatumRef};

use super::rows::{NONE, Numbers, RowLists, RowStore, hash_of, is_key, read_key, slots_of};
use super::team::{Copied, Parts};
use super::{Cx, Next, Operator, operator};

/// Bytes of a row's place among the keys, and of the number of the one before it.
const PLACE_BYTES: usize = 24 + 4;

/// Joins two inputs on equal keys.
pub(super) struct HashJoin {
    node: Arc<HashJoinNode>,
    probe: Box<dyn Operator>,
    build: Box<dyn Operator>,
    /// The table while it is built, and when it is complete: several participants look into one.
    building: BuildTable,
    table: Arc<BuildTable>,
    /// There once the table is, if rows of the build side come even without a partner.
    marks: Option<Arc<Marks>>,
    /// Until the probe side is at its end, if there are marks.
    prober: Option<Prober>,
    /// It gives the build rows without a partner, which one participant does.
    gives_rest: bool,
    state: HashJoinState,
    key: Vec<Datum>,
    /// The slots that the keys of the build side are in, if they are nothing else.
    build_slots: Option<Box<[Slot]>>,
    /// The same of the probe side.
    probe_slots: Option<Box<[Slot]>>,
}

/// The rows of the build side.
struct BuildTable {
    /// By key, the newest row that has it.
    newest: Numbers,
    /// The slots of each row; behind them the parts of its key that are none of them.
    rows: RowStore,
    /// Where the parts of a key are in a row.
    key: Box<[usize]>,
    /// By row, the one before with the same key.
    before: RowLists<u32>,
}

impl BuildTable {
    fn new(node: &HashJoinNode) -> BuildTable {
        let mut behind = node.build_slots.len();
        let place = |code: &Code| {
            let slot = if let Code::Slot(slot) = code { Some(slot) } else { None };
            slot.and_then(|slot| node.build_slots.iter().position(|own| own == slot)).unwrap_or_else(|| {
                behind += 1;
                behind - 1
            })
        };
        let key = node.build_keys.iter().map(place).collect();
        BuildTable { newest: Numbers::default(), rows: RowStore::default(), key, before: RowLists::default() }
    }

    fn clear(&mut self) {
        self.newest.clear();
        self.rows.clear();
        self.before.clear();
    }

    /// Adds a row, under its key if it has one: `key` gives the parts. Answers the bytes that it takes.
    #[inline]
    fn push<'k>(
        &mut self,
        node: &HashJoinNode,
        registers: &[Datum],
        is_keyed: bool,
        key: impl Fn(usize) -> &'k Datum,
    ) -> usize {
        let slots = node.build_slots.iter().map(|slot| registers[*slot as usize].clone());
        let is_behind = |part: &usize| self.key[*part] >= node.build_slots.len();
        let part = |part: usize| if is_keyed { key(part).clone() } else { Datum::Null };
        let parts = (0..self.key.len()).filter(is_behind).map(part);
        let bytes = self.rows.push_values(slots.chain(parts));
        let row = self.before.len();
        let before = is_keyed.then(|| {
            let (value, types) = (|at: usize| key(at).as_ref(), &node.key_types);
            let newest =
                self.newest.entry(hash_of(types, value), |row| has_key(&self.rows, row, &self.key, types, value));
            std::mem::replace(newest, row as u32)
        });
        self.before.push(std::iter::once(before.unwrap_or(NONE)));
        bytes + PLACE_BYTES
    }

    /// The newest row of a key; [`NONE`] if there is none.
    #[inline]
    fn find<'k>(&self, types: &[Oid], value: impl Fn(usize) -> DatumRef<'k>) -> u32 {
        let row = self.newest.find(hash_of(types, &value), |row| has_key(&self.rows, row, &self.key, types, &value));
        row.map_or(NONE, |row| row as u32)
    }
}

/// Whether a row's key, of which it has the parts in these places, is that of these values.
#[inline]
fn has_key<'k>(
    rows: &RowStore,
    row: usize,
    places: &[usize],
    types: &[Oid],
    value: impl Fn(usize) -> DatumRef<'k>,
) -> bool {
    let row = rows.row(row);
    is_key(types, places.iter().map(|place| &row[*place]), value)
}

/// What the participants in a RIGHT or FULL join share beside the table.
struct Marks {
    /// Build rows that have found a partner. Relaxed: `probing` orders them.
    matched: Box<[AtomicBool]>,
    /// Participants that are not yet at the end of their probe side. Release when one is, pairing with Acquire of who gives the rest.
    probing: AtomicUsize,
    /// Woken by the last of them.
    all: Arc<WaitCell>,
}

/// A participant that probes.
struct Prober(Arc<Marks>);

impl Prober {
    fn new(marks: &Arc<Marks>) -> Prober {
        marks.probing.fetch_add(1, Ordering::Relaxed);
        Prober(Arc::clone(marks))
    }
}

impl Drop for Prober {
    fn drop(&mut self) {
        if self.0.probing.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.all.wake();
        }
    }
}

#[derive(Clone, Copy)]
enum HashJoinState {
    Building,
    /// The next probe row is wanted.
    Probing,
    /// A probe row is in the registers; this build row is to be tried next.
    Matching {
        row: u32,
        matched: bool,
    },
    /// Its own probe side is at its end, those of others may not be (RIGHT, FULL).
    Ending,
    /// Build rows without a partner, from this one on.
    Rest(usize),
}

/// Whether rows of the build side come even without a partner.
fn keeps_build(join: JoinType) -> bool {
    matches!(join, JoinType::Right | JoinType::Full)
}

/// Whether each row that comes has a row of the build side.
fn needs_build(join: JoinType) -> bool {
    matches!(join, JoinType::Inner | JoinType::Semi | JoinType::Right)
}

/// The newest row of the build side with the probe row's key; [`NONE`] if there is none.
#[inline]
fn find(
    (node, table): (&HashJoinNode, &BuildTable),
    slots: Option<&[Slot]>,
    key: &mut Vec<Datum>,
    cx: &mut Cx<'_, '_>,
    registers: &[Datum],
) -> Result<u32> {
    if let Some(slots) = slots {
        let value = |at: usize| registers[slots[at] as usize].as_ref();
        let has_null = (0..slots.len()).any(|at| matches!(value(at), DatumRef::Null));
        return Ok(if has_null { NONE } else { table.find(&node.key_types, value) });
    }
    let has_key = read_key(&node.probe_keys, key, cx, registers)?;
    Ok(if has_key { table.find(&node.key_types, |at| key[at].as_ref()) } else { NONE })
}

impl HashJoin {
    pub fn new(node: &Arc<HashJoinNode>) -> HashJoin {
        HashJoin {
            probe: operator(&node.probe),
            build: operator(&node.build),
            building: BuildTable::new(node),
            table: Arc::new(BuildTable::new(node)),
            node: Arc::clone(node),
            marks: None,
            prober: None,
            gives_rest: true,
            state: HashJoinState::Building,
            key: Vec::new(),
            build_slots: slots_of(node.build_keys.iter()),
            probe_slots: slots_of(node.probe_keys.iter()),
        }
    }

    fn add(&mut self, cx: &mut Cx<'_, '_>, registers: &[Datum]) -> Result<()> {
        let HashJoin { node, building, key, .. } = self;
        let keeps = keeps_build(node.join);
        if let Some(slots) = &self.build_slots {
            let value = |at: usize| &registers[slots[at] as usize];
            let has_key = !(0..slots.len()).any(|at| value(at).is_null());
            if !has_key && !keeps {
                return Ok(());
            }
            return cx.run.charge(building.push(node, registers, has_key, value));
        }
        let has_key = read_key(&node.build_keys, key, cx, registers)?;
        if !has_key && !keeps {
            return Ok(());
        }
        cx.run.charge(building.push(node, registers, has_key, |at| &key[at]))
    }

    /// Reads the build side to its end; what to wait for before that.
    fn build(&mut self, cx: &mut Cx<'_, '_>, registers: &mut [Datum]) -> Result<Option<Next>> {
        loop {
            match self.build.next(cx, registers)? {
                Next::Row => self.add(cx, registers)?,
                Next::Done => break,
                wait => return Ok(Some(wait)),
            }
        }
        match Arc::get_mut(&mut self.table) {
            Some(table) => std::mem::swap(table, &mut self.building),
            None => self.table = Arc::new(std::mem::replace(&mut self.building, BuildTable::new(&self.node))),
        }
        self.begin();
        Ok(None)
    }

    /// Begins the probe side, for all participants.
    fn begin(&mut self) {
        let rows = self.table.rows.len();
        // Those of before may still be at work.
        self.marks = keeps_build(self.node.join).then(|| {
            let matched = (0..rows).map(|_| AtomicBool::new(false)).collect();
            Arc::new(Marks { matched, probing: AtomicUsize::new(0), all: WaitCell::new() })
        });
        self.prober = self.marks.as_ref().map(Prober::new);
        self.state = self.begun();
    }

    /// The state in which the probe side is begun.
    fn begun(&self) -> HashJoinState {
        // Where nothing is kept nothing is found.
        let is_empty = self.table.rows.len() == 0 && needs_build(self.node.join);
        if is_empty { HashJoinState::Rest(0) } else { HashJoinState::Probing }
    }
}

impl Operator for HashJoin {
    fn next(&mut self, cx: &mut Cx<'_, '_>, registers: &mut [Datum]) -> Result<Next> {
        if matches!(self.state, HashJoinState::Building)
            && let Some(wait) = self.build(cx, registers)?
        {
            return Ok(wait);
        }
        // The node and the table are those of all participants: counting references to them for each row would pass their cache lines
        // to and fro.
        let HashJoin { node, probe, table, marks, prober, gives_rest, state, key, probe_slots, .. } = self;
        let (node, table): (&HashJoinNode, &BuildTable) = (node, table);
        loop {
            match *state {
                HashJoinState::Building => return Err(Error::internal("a hash join without its table")),
                HashJoinState::Probing => match probe.next(cx, registers)? {
                    Next::Row => {
                        let row = find((node, table), probe_slots.as_deref(), key, cx, registers)?;
                        *state = HashJoinState::Matching { row, matched: false };
                    }
                    Next::Done if marks.is_some() => {
                        *prober = None;
                        if !*gives_rest {
                            return Ok(Next::Done);
                        }
                        *state = HashJoinState::Ending;
                    }
                    other => return Ok(other),
                },
                HashJoinState::Ending => match marks {
                    Some(marks) if marks.probing.load(Ordering::Acquire) > 0 => {
                        return Ok(Next::Wait(Wait::for_workers(&marks.all)));
                    }
                    _ => *state = HashJoinState::Rest(0),
                },
                HashJoinState::Matching { row: NONE, matched } => {
                    *state = HashJoinState::Probing;
                    match node.join {
                        JoinType::Left | JoinType::Full if !matched => {
                            for &slot in &node.build_slots {
                                registers[slot as usize] = Datum::Null;
                            }
                            return Ok(Next::Row);
                        }
                        JoinType::Anti => return Ok(Next::Row),
                        _ => {}
                    }
                    if let Some(wait) = cx.run.tick(1)? {
                        return Ok(Next::Wait(wait));
                    }
                }
                HashJoinState::Matching { row, matched } => {
                    // Nobody looks at the partner that says there is one.
                    let is_looked_at =
                        !node.conditions.is_empty() || !matches!(node.join, JoinType::Semi | JoinType::Anti);
                    if is_looked_at {
                        table.rows.restore(row as usize, registers, &node.build_slots);
                    }
                    let fits = all_true(&node.conditions, cx, registers)?;
                    let before = table.before.row(row as usize)[0];
                    *state = HashJoinState::Matching { row: before, matched: matched || fits };
                    if fits && matches!(node.join, JoinType::Semi | JoinType::Anti) {
                        // One partner says it all.
                        *state = HashJoinState::Probing;
                        if node.join == JoinType::Semi {
                            return Ok(Next::Row);
                        }
                    } else if fits {
                        if let Some(marks) = marks {
                            marks.matched[row as usize].store(true, Ordering::Relaxed);
                        }
                        return Ok(Next::Row);
                    } else if let Some(wait) = cx.run.tick(1)? {
                        return Ok(Next::Wait(wait));
                    }
                }
                HashJoinState::Rest(row) => {
                    let mark = marks.as_ref().and_then(|marks| marks.matched.get(row));
                    let Some(is_matched) = mark.map(|mark| mark.load(Ordering::Relaxed)) else {
                        return Ok(Next::Done);
                    };
                    *state = HashJoinState::Rest(row + 1);
                    if !is_matched {
                        for &slot in &node.probe_slots {
                            registers[slot as usize] = Datum::Null;
                        }
                        table.rows.restore(row, registers, &node.build_slots);
                        return Ok(Next::Row);
                    }
                    if let Some(wait) = cx.run.tick(1)? {
                        return Ok(Next::Wait(wait));
                    }
                }
            }
        }
    }

    fn read_late(&mut self, registers: &mut [Datum]) -> Result<()> {
        self.probe.read_late(registers)
    }

    fn prepare(&mut self, cx: &mut Cx<'_, '_>, registers: &mut [Datum]) -> Result<Next> {
        if matches!(self.state, HashJoinState::Building)
            && let Some(wait) = self.build(cx, registers)?
        {
            return Ok(wait);
        }
        self.probe.prepare(cx, registers)
    }

    fn split(&mut self, cx: &mut Cx<'_, '_>, parts: &mut Option<Arc<Parts>>) -> Result<Copied> {
        // Inside of an expression the others cannot be waited for.
        if self.marks.is_some() && cx.run.in_expression > 0 {
            return Ok(None);
        }
        let Some(probe) = self.probe.split(cx, parts)? else { return Ok(None) };
        Ok(Some(Box::new(HashJoin {
            probe,
            build: operator(&Node::OneRow),
            building: BuildTable::new(&self.node),
            table: Arc::clone(&self.table),
            node: Arc::clone(&self.node),
            marks: self.marks.clone(),
            prober: self.marks.as_ref().map(Prober::new),
            gives_rest: false,
            state: self.begun(),
            key: Vec::new(),
            build_slots: None,
            probe_slots: self.probe_slots.clone(),
        })))
    }

    fn rescan(&mut self, forget: bool) {
        self.probe.rescan(forget);
        if forget || matches!(self.state, HashJoinState::Building) {
            self.building.clear();
            match Arc::get_mut(&mut self.table) {
                Some(table) => table.clear(),
                None => self.table = Arc::new(BuildTable::new(&self.node)),
            }
            self.state = HashJoinState::Building;
            self.build.rescan(forget);
        } else {
            self.begin();
        }
    }
}
