//! Merge join: two inputs that come in the order of their keys are read side by side.
//!
//! Right rows of one key (a *group*) are kept while left rows of that key pass; no more than the largest group is in memory.
//! Invariants: the right input finds its slots as it left them when it is asked for its next row, although rows of the
//! group have been in them since; so does the left one. Rows with a NULL among their keys match no row, wherever the order
//! puts them. Left rows come out in the order they came in, unless right rows without a partner are wanted too.

use std::cmp::Ordering;
use std::sync::Arc;

use base::Result;
use engine_api::Wait;
use sql_ir::expr::{Slot, all_true};
use sql_plan::{JoinType, MergeJoinNode, MergeKey};
use types::Datum;

use super::rows::{RowStore, read_key};
use super::{Cx, Next, Operator, operator};

/// Joins two inputs in the order of their keys.
pub(super) struct MergeJoin {
    node: Arc<MergeJoinNode>,
    left: Box<dyn Operator>,
    right: Box<dyn Operator>,
    state: MergeJoinState,
    left_key: Vec<Datum>,
    /// The left row, if its slots may be overwritten (RIGHT, FULL), and whether they are.
    left_row: RowStore,
    left_moved: bool,
    /// The right row that was read last, and its key.
    last_row: RowStore,
    last_key: Vec<Datum>,
    /// Other rows have been in the slots of the right side since.
    right_moved: bool,
    ahead: Ahead,
    /// Right rows of one key.
    group: RowStore,
    group_key: Vec<Datum>,
    /// Which of them found a partner (RIGHT, FULL).
    partnered: Vec<bool>,
    /// More rows of the group's key may follow.
    filling: bool,
    /// Bytes of the group, and of the largest one, which are charged.
    bytes: usize,
    charged: usize,
}

/// What is known of the right side beyond the group.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ahead {
    /// Nothing.
    Unread,
    /// The row read last is not in the group.
    Row,
    End,
}

#[derive(Clone, Copy)]
enum MergeJoinState {
    /// The next left row is wanted.
    Left,
    /// A left row is there, and its group is looked for.
    Seek,
    /// The left row has no key.
    Alone,
    /// The row of the group that is tried next.
    Matching {
        at: usize,
        matched: bool,
    },
    /// The group is left: rows of it without a partner, from this one on.
    Leaving {
        at: usize,
    },
    /// No left row is left: rows of the group without a partner from this one on, then the other right rows.
    Rest {
        at: usize,
    },
    Done,
}

/// What reading the right side came to.
enum Read {
    /// [`MergeJoin::ahead`] says it.
    Known,
    /// A row without a key lies in the registers.
    NoKey,
    Wait(Wait),
}

/// What looking for a group came to.
enum Sought {
    /// The group has the key of the left row.
    Group,
    /// There is none.
    Nothing,
    /// The group there is belongs to a smaller key.
    Passed,
    /// A right row without a partner lies in the registers.
    Orphan,
    Wait(Wait),
}

impl MergeJoin {
    pub fn new(node: &Arc<MergeJoinNode>) -> MergeJoin {
        MergeJoin {
            left: operator(&node.left),
            right: operator(&node.right),
            node: Arc::clone(node),
            state: MergeJoinState::Left,
            left_key: Vec::new(),
            left_row: RowStore::default(),
            left_moved: false,
            last_row: RowStore::default(),
            last_key: Vec::new(),
            right_moved: false,
            ahead: Ahead::Unread,
            group: RowStore::default(),
            group_key: Vec::new(),
            partnered: Vec::new(),
            filling: false,
            bytes: 0,
            charged: 0,
        }
    }

    fn keeps_right(&self) -> bool {
        matches!(self.node.join, JoinType::Right | JoinType::Full)
    }

    fn keeps_left(&self) -> bool {
        matches!(self.node.join, JoinType::Left | JoinType::Full | JoinType::Anti)
    }

    /// Makes the slots of the left side NULL, for a right row without a partner.
    fn orphan(&mut self, registers: &mut [Datum]) {
        fill_null(registers, &self.node.left_slots);
        self.left_moved = true;
    }

    /// Puts the left row back.
    fn restore_left(&mut self, registers: &mut [Datum]) {
        if self.left_moved && self.left_row.len() > 0 {
            self.left_row.restore(0, registers, &self.node.left_slots);
        }
        self.left_moved = false;
    }

    /// Reads the next right row.
    fn read_right(&mut self, cx: &mut Cx<'_, '_>, registers: &mut [Datum]) -> Result<Read> {
        let node = Arc::clone(&self.node);
        if self.right_moved {
            if self.last_row.len() > 0 {
                self.last_row.restore(0, registers, &node.right_slots);
            }
            self.right_moved = false;
        }
        loop {
            match self.right.next(cx, registers)? {
                Next::Row => {
                    self.last_row.clear();
                    self.last_row.push(registers, &node.right_slots);
                    if read_key(&node.right_keys, &mut self.last_key, cx, registers)? {
                        self.ahead = Ahead::Row;
                        return Ok(Read::Known);
                    }
                    if self.keeps_right() {
                        return Ok(Read::NoKey);
                    }
                    if let Some(wait) = cx.run.tick(1)? {
                        return Ok(Read::Wait(wait));
                    }
                }
                Next::Done => {
                    self.ahead = Ahead::End;
                    return Ok(Read::Known);
                }
                Next::Wait(wait) => return Ok(Read::Wait(wait)),
            }
        }
    }

    /// Puts the row read last into the group.
    fn add_to_group(&mut self, cx: &mut Cx<'_, '_>) -> Result<()> {
        self.bytes += self.group.push_all(&self.last_row);
        if self.bytes > self.charged {
            cx.run.charge(self.bytes - self.charged)?;
            self.charged = self.bytes;
        }
        if self.keeps_right() {
            self.partnered.push(false);
        }
        self.ahead = Ahead::Unread;
        Ok(())
    }

    /// Forgets the group.
    fn leave_group(&mut self) {
        self.group.clear();
        self.group_key.clear();
        self.partnered.clear();
        self.bytes = 0;
    }

    /// Looks for the right rows of the left row's key.
    fn seek(&mut self, cx: &mut Cx<'_, '_>, registers: &mut [Datum]) -> Result<Sought> {
        loop {
            if self.group.len() > 0 && !self.filling {
                return Ok(match compare(&self.node.keys, &self.left_key, &self.group_key) {
                    Ordering::Equal => Sought::Group,
                    Ordering::Less => Sought::Nothing,
                    Ordering::Greater => Sought::Passed,
                });
            }
            match self.ahead {
                Ahead::Unread => match self.read_right(cx, registers)? {
                    Read::Known => {}
                    Read::NoKey => return Ok(Sought::Orphan),
                    Read::Wait(wait) => return Ok(Sought::Wait(wait)),
                },
                Ahead::End if self.filling => self.filling = false,
                Ahead::End => return Ok(Sought::Nothing),
                Ahead::Row if self.filling => {
                    if compare(&self.node.keys, &self.last_key, &self.group_key).is_eq() {
                        self.add_to_group(cx)?;
                    } else {
                        self.filling = false;
                    }
                }
                Ahead::Row => match compare(&self.node.keys, &self.left_key, &self.last_key) {
                    Ordering::Less => return Ok(Sought::Nothing),
                    Ordering::Equal => {
                        self.group_key.clone_from(&self.last_key);
                        self.filling = true;
                        self.add_to_group(cx)?;
                    }
                    Ordering::Greater => {
                        self.ahead = Ahead::Unread;
                        if self.keeps_right() {
                            self.last_row.restore(0, registers, &self.node.right_slots);
                            return Ok(Sought::Orphan);
                        }
                        if let Some(wait) = cx.run.tick(1)? {
                            return Ok(Sought::Wait(wait));
                        }
                    }
                },
            }
        }
    }

    /// The left row has found nobody: whether it comes nevertheless.
    fn unmatched(&mut self, registers: &mut [Datum]) -> bool {
        self.state = MergeJoinState::Left;
        if matches!(self.node.join, JoinType::Left | JoinType::Full) {
            fill_null(registers, &self.node.right_slots);
            self.right_moved = true;
        }
        self.keeps_left()
    }

    /// Tries one row of the group. Answers whether a row is to be handed out.
    fn try_row(&mut self, at: usize, matched: bool, cx: &mut Cx<'_, '_>, registers: &mut [Datum]) -> Result<bool> {
        let node = Arc::clone(&self.node);
        self.group.restore(at, registers, &node.right_slots);
        self.right_moved = true;
        let fits = all_true(&node.conditions, cx, registers)?;
        self.state = MergeJoinState::Matching { at: at + 1, matched: matched || fits };
        if !fits {
            return Ok(false);
        }
        match node.join {
            // One partner says it all.
            JoinType::Semi | JoinType::Anti => self.state = MergeJoinState::Left,
            JoinType::Right | JoinType::Full => self.partnered[at] = true,
            JoinType::Inner | JoinType::Left => {}
        }
        Ok(node.join != JoinType::Anti)
    }
}

fn fill_null(registers: &mut [Datum], slots: &[Slot]) {
    for &slot in slots {
        registers[slot as usize] = Datum::Null;
    }
}

/// Compares two keys without NULLs.
fn compare(keys: &[MergeKey], a: &[Datum], b: &[Datum]) -> Ordering {
    for ((key, a), b) in keys.iter().zip(a).zip(b) {
        let order = types::compare_as(key.ty, &a.as_ref(), &b.as_ref());
        if order.is_ne() {
            return if key.descending { order.reverse() } else { order };
        }
    }
    Ordering::Equal
}

impl Operator for MergeJoin {
    fn next(&mut self, cx: &mut Cx<'_, '_>, registers: &mut [Datum]) -> Result<Next> {
        loop {
            match self.state {
                MergeJoinState::Left => {
                    self.restore_left(registers);
                    match self.left.next(cx, registers)? {
                        Next::Row => {}
                        Next::Done => {
                            self.state =
                                if self.keeps_right() { MergeJoinState::Rest { at: 0 } } else { MergeJoinState::Done };
                            continue;
                        }
                        wait => return Ok(wait),
                    }
                    if self.keeps_right() {
                        self.left_row.clear();
                        self.left_row.push(registers, &self.node.left_slots);
                    }
                    let node = Arc::clone(&self.node);
                    let has_key = read_key(&node.left_keys, &mut self.left_key, cx, registers)?;
                    self.state = if has_key { MergeJoinState::Seek } else { MergeJoinState::Alone };
                }
                MergeJoinState::Alone => {
                    if self.unmatched(registers) {
                        return Ok(Next::Row);
                    }
                    if let Some(wait) = cx.run.tick(1)? {
                        return Ok(Next::Wait(wait));
                    }
                }
                MergeJoinState::Seek => match self.seek(cx, registers)? {
                    Sought::Group => {
                        self.restore_left(registers);
                        self.state = MergeJoinState::Matching { at: 0, matched: false };
                    }
                    Sought::Nothing => {
                        self.restore_left(registers);
                        // Beyond the last right row nothing can match.
                        let over = self.ahead == Ahead::End && self.group.len() == 0 && !self.keeps_left();
                        self.state = if over { MergeJoinState::Done } else { MergeJoinState::Alone };
                    }
                    Sought::Passed if self.keeps_right() => self.state = MergeJoinState::Leaving { at: 0 },
                    Sought::Passed => self.leave_group(),
                    Sought::Orphan => {
                        self.orphan(registers);
                        return Ok(Next::Row);
                    }
                    Sought::Wait(wait) => return Ok(Next::Wait(wait)),
                },
                MergeJoinState::Matching { at, matched } if at == self.group.len() => {
                    if matched {
                        self.state = MergeJoinState::Left;
                    } else if self.unmatched(registers) {
                        return Ok(Next::Row);
                    }
                    if let Some(wait) = cx.run.tick(1)? {
                        return Ok(Next::Wait(wait));
                    }
                }
                MergeJoinState::Matching { at, matched } => {
                    if self.try_row(at, matched, cx, registers)? {
                        return Ok(Next::Row);
                    }
                    if let Some(wait) = cx.run.tick(1)? {
                        return Ok(Next::Wait(wait));
                    }
                }
                MergeJoinState::Leaving { at } if at == self.group.len() => {
                    self.leave_group();
                    self.state = MergeJoinState::Seek;
                }
                MergeJoinState::Leaving { at } => {
                    self.state = MergeJoinState::Leaving { at: at + 1 };
                    if !self.partnered[at] {
                        self.group.restore(at, registers, &self.node.right_slots);
                        self.right_moved = true;
                        self.orphan(registers);
                        return Ok(Next::Row);
                    }
                }
                MergeJoinState::Rest { at } if at < self.group.len() => {
                    self.state = MergeJoinState::Rest { at: at + 1 };
                    if !self.partnered[at] {
                        self.group.restore(at, registers, &self.node.right_slots);
                        self.right_moved = true;
                        self.orphan(registers);
                        return Ok(Next::Row);
                    }
                }
                MergeJoinState::Rest { .. } => {
                    if self.ahead == Ahead::Unread
                        && let Read::Wait(wait) = self.read_right(cx, registers)?
                    {
                        return Ok(Next::Wait(wait));
                    }
                    if self.ahead == Ahead::End {
                        self.state = MergeJoinState::Done;
                        continue;
                    }
                    self.ahead = Ahead::Unread;
                    self.last_row.restore(0, registers, &self.node.right_slots);
                    self.right_moved = false;
                    self.orphan(registers);
                    return Ok(Next::Row);
                }
                MergeJoinState::Done => return Ok(Next::Done),
            }
        }
    }

    fn rescan(&mut self, forget: bool) {
        self.left.rescan(forget);
        self.right.rescan(forget);
        self.leave_group();
        self.left_row.clear();
        self.last_row.clear();
        (self.left_moved, self.right_moved, self.filling) = (false, false, false);
        self.ahead = Ahead::Unread;
        self.state = MergeJoinState::Left;
    }
}

#[cfg(test)]
#[path = "merge_join_tests.rs"]
mod tests;
