//! Hash join: one side in a table by its keys, the other looked up in it.

use std::sync::Arc;

use base::Result;
use sql_ir::expr::{Code, Slot, all_true};
use sql_plan::{HashJoinNode, JoinType, Node};
use types::{Datum, DatumRef};

use super::rows::{KeyTable, RowStore, slots_of};
use super::team::{Copied, Parts};
use super::{Cx, Next, Operator, operator};

const END: u32 = u32::MAX;

/// Joins two inputs on equal keys.
pub(super) struct HashJoin {
    node: Arc<HashJoinNode>,
    probe: Box<dyn Operator>,
    build: Box<dyn Operator>,
    /// The table while it is built, and when it is complete: several participants look into one.
    building: BuildTable,
    table: Arc<BuildTable>,
    /// Build rows that found a partner (RIGHT, FULL).
    matched_rows: Vec<bool>,
    state: HashJoinState,
    key: Vec<Datum>,
    /// The slots that the keys of the probe side are in, if they are nothing else.
    probe_slots: Option<Box<[Slot]>>,
}

/// The rows of the build side.
struct BuildTable {
    keys: KeyTable,
    rows: RowStore,
    /// First row of each key; next row of the same key, by row.
    first: Vec<u32>,
    next_row: Vec<u32>,
}

impl BuildTable {
    fn new(node: &HashJoinNode) -> BuildTable {
        BuildTable {
            keys: KeyTable::new(&node.key_types),
            rows: RowStore::default(),
            first: Vec::new(),
            next_row: Vec::new(),
        }
    }

    fn clear(&mut self) {
        self.keys.clear();
        self.rows.clear();
        self.first.clear();
        self.next_row.clear();
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
    /// Build rows without a partner, from this one on (RIGHT, FULL).
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

impl HashJoin {
    pub fn new(node: &Arc<HashJoinNode>) -> HashJoin {
        HashJoin {
            probe: operator(&node.probe),
            build: operator(&node.build),
            building: BuildTable::new(node),
            table: Arc::new(BuildTable::new(node)),
            node: Arc::clone(node),
            matched_rows: Vec::new(),
            state: HashJoinState::Building,
            key: Vec::new(),
            probe_slots: slots_of(node.probe_keys.iter()),
        }
    }

    /// Evaluates the keys; `false` if one is NULL, which equals nothing.
    fn read_key(&mut self, codes: &[Code], cx: &mut Cx<'_, '_>, registers: &[Datum]) -> Result<bool> {
        self.key.clear();
        for code in codes {
            let value = code.eval(cx, registers)?;
            if value.is_null() {
                return Ok(false);
            }
            self.key.push(value);
        }
        Ok(true)
    }

    fn add(&mut self, cx: &mut Cx<'_, '_>, registers: &[Datum]) -> Result<()> {
        let node = Arc::clone(&self.node);
        let has_key = self.read_key(&node.build_keys, cx, registers)?;
        let keeps = keeps_build(node.join);
        if !has_key && !keeps {
            return Ok(());
        }
        let table = &mut self.building;
        let bytes = table.rows.push(registers, &node.build_slots);
        cx.run.charge(bytes + 8)?;
        let row = table.next_row.len() as u32;
        table.next_row.push(END);
        if keeps {
            self.matched_rows.push(false);
        }
        if has_key {
            let (number, new) = table.keys.insert(&self.key);
            if new {
                cx.run.charge(table.keys.entry_bytes())?;
                table.first.push(row);
            } else {
                table.next_row[row as usize] = table.first[number];
                table.first[number] = row;
            }
        }
        Ok(())
    }

    /// The number of the probe row's key.
    fn find(&mut self, node: &HashJoinNode, cx: &mut Cx<'_, '_>, registers: &[Datum]) -> Result<Option<usize>> {
        if let Some(slots) = &self.probe_slots {
            let value = |at: usize| registers[slots[at] as usize].as_ref();
            let has_null = (0..slots.len()).any(|at| matches!(value(at), DatumRef::Null));
            return Ok(if has_null { None } else { self.table.keys.find_by(value) });
        }
        let has_key = self.read_key(&node.probe_keys, cx, registers)?;
        Ok(if has_key { self.table.keys.find(&self.key) } else { None })
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
        self.state = self.begun();
        Ok(None)
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
        let node = Arc::clone(&self.node);
        loop {
            match self.state {
                HashJoinState::Building => {
                    if let Some(wait) = self.build(cx, registers)? {
                        return Ok(wait);
                    }
                }
                HashJoinState::Probing => match self.probe.next(cx, registers)? {
                    Next::Row => {
                        let found = self.find(&node, cx, registers)?;
                        let row = found.map_or(END, |number| self.table.first[number]);
                        self.state = HashJoinState::Matching { row, matched: false };
                    }
                    Next::Done if keeps_build(node.join) => self.state = HashJoinState::Rest(0),
                    other => return Ok(other),
                },
                HashJoinState::Matching { row: END, matched } => {
                    self.state = HashJoinState::Probing;
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
                    self.table.rows.restore(row as usize, registers, &node.build_slots);
                    let fits = all_true(&node.conditions, cx, registers)?;
                    let row_behind = self.table.next_row[row as usize];
                    self.state = HashJoinState::Matching { row: row_behind, matched: matched || fits };
                    if fits && matches!(node.join, JoinType::Semi | JoinType::Anti) {
                        // One partner says it all.
                        self.state = HashJoinState::Probing;
                        if node.join == JoinType::Semi {
                            return Ok(Next::Row);
                        }
                    } else if fits {
                        if keeps_build(node.join) {
                            self.matched_rows[row as usize] = true;
                        }
                        return Ok(Next::Row);
                    } else if let Some(wait) = cx.run.tick(1)? {
                        return Ok(Next::Wait(wait));
                    }
                }
                HashJoinState::Rest(row) => {
                    if row == self.table.rows.len() {
                        return Ok(Next::Done);
                    }
                    self.state = HashJoinState::Rest(row + 1);
                    if !self.matched_rows[row] {
                        for &slot in &node.probe_slots {
                            registers[slot as usize] = Datum::Null;
                        }
                        self.table.rows.restore(row, registers, &node.build_slots);
                        return Ok(Next::Row);
                    }
                    if let Some(wait) = cx.run.tick(1)? {
                        return Ok(Next::Wait(wait));
                    }
                }
            }
        }
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
        if keeps_build(self.node.join) {
            return Ok(None);
        }
        let Some(probe) = self.probe.split(cx, parts)? else { return Ok(None) };
        Ok(Some(Box::new(HashJoin {
            probe,
            build: operator(&Node::OneRow),
            building: BuildTable::new(&self.node),
            table: Arc::clone(&self.table),
            node: Arc::clone(&self.node),
            matched_rows: Vec::new(),
            state: self.begun(),
            key: Vec::new(),
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
            self.matched_rows.clear();
            self.state = HashJoinState::Building;
            self.build.rescan(forget);
        } else {
            self.matched_rows.fill(false);
            self.state = self.begun();
        }
    }
}
