//! Hash join: one side in a table by its keys, the other looked up in it.

use std::sync::Arc;

use base::Result;
use sql_ir::expr::{Code, all_true};
use sql_plan::{HashJoinNode, JoinType};
use types::Datum;

use super::rows::{KeyTable, RowStore};
use super::{Cx, Next, Operator, operator};

const END: u32 = u32::MAX;

/// Joins two inputs on equal keys.
pub(super) struct HashJoin {
    node: Arc<HashJoinNode>,
    probe: Box<dyn Operator>,
    build: Box<dyn Operator>,
    keys: KeyTable,
    rows: RowStore,
    /// First row of each key; next row of the same key, by row.
    first: Vec<u32>,
    next_row: Vec<u32>,
    /// Build rows that found a partner (RIGHT, FULL).
    matched_rows: Vec<bool>,
    state: HashJoinState,
    key: Vec<Datum>,
}

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
            keys: KeyTable::new(&node.key_types),
            node: Arc::clone(node),
            rows: RowStore::default(),
            first: Vec::new(),
            next_row: Vec::new(),
            matched_rows: Vec::new(),
            state: HashJoinState::Building,
            key: Vec::new(),
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
        let bytes = self.rows.push(registers, &node.build_slots);
        cx.run.charge(bytes + 8)?;
        let row = self.next_row.len() as u32;
        self.next_row.push(END);
        if keeps {
            self.matched_rows.push(false);
        }
        if has_key {
            let (number, new) = self.keys.insert(&self.key);
            if new {
                cx.run.charge(self.keys.entry_bytes())?;
                self.first.push(row);
            } else {
                self.next_row[row as usize] = self.first[number];
                self.first[number] = row;
            }
        }
        Ok(())
    }
}

impl Operator for HashJoin {
    fn next(&mut self, cx: &mut Cx<'_, '_>, registers: &mut [Datum]) -> Result<Next> {
        let node = Arc::clone(&self.node);
        loop {
            match self.state {
                HashJoinState::Building => match self.build.next(cx, registers)? {
                    Next::Row => self.add(cx, registers)?,
                    // Where nothing is kept nothing is found.
                    Next::Done if self.rows.len() == 0 && needs_build(node.join) => self.state = HashJoinState::Rest(0),
                    Next::Done => self.state = HashJoinState::Probing,
                    wait => return Ok(wait),
                },
                HashJoinState::Probing => match self.probe.next(cx, registers)? {
                    Next::Row => {
                        let found = match self.read_key(&node.probe_keys, cx, registers)? {
                            true => self.keys.find(&self.key),
                            false => None,
                        };
                        let row = found.map_or(END, |number| self.first[number]);
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
                    self.rows.restore(row as usize, registers, &node.build_slots);
                    let fits = all_true(&node.conditions, cx, registers)?;
                    self.state = HashJoinState::Matching { row: self.next_row[row as usize], matched: matched || fits };
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
                    if row == self.rows.len() {
                        return Ok(Next::Done);
                    }
                    self.state = HashJoinState::Rest(row + 1);
                    if !self.matched_rows[row] {
                        for &slot in &node.probe_slots {
                            registers[slot as usize] = Datum::Null;
                        }
                        self.rows.restore(row, registers, &node.build_slots);
                        return Ok(Next::Row);
                    }
                    if let Some(wait) = cx.run.tick(1)? {
                        return Ok(Next::Wait(wait));
                    }
                }
            }
        }
    }

    fn rescan(&mut self, forget: bool) {
        self.probe.rescan(forget);
        if forget || matches!(self.state, HashJoinState::Building) {
            self.keys.clear();
            self.rows.clear();
            self.first.clear();
            self.next_row.clear();
            self.matched_rows.clear();
            self.state = HashJoinState::Building;
            self.build.rescan(forget);
        } else {
            self.matched_rows.fill(false);
            let is_empty = self.rows.len() == 0 && needs_build(self.node.join);
            self.state = if is_empty { HashJoinState::Rest(0) } else { HashJoinState::Probing };
        }
    }
}
