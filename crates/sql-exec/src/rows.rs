//! Rows that operators keep: copies of slots, and tables of distinct keys.

use std::hash::Hasher;
use std::sync::Arc;

use base::work::{self, Count};
use base::{Oid, Result};
use rustc_hash::{FxHashMap, FxHasher};
use sql_ir::expr::{Code, Slot};
use sql_plan::MaterializeNode;
use types::{Datum, DatumRef};

use super::{Cx, Next, Operator, operator};

/// Rough bytes of a value with what it points to.
pub fn datum_bytes(value: &Datum) -> usize {
    size_of::<Datum>()
        + match value {
            Datum::Text(text) => text.len() + 16,
            Datum::Bytea(bytes) | Datum::Bits(bytes) => bytes.len() + 16,
            Datum::Numeric(_) => 32,
            Datum::Array(array) => array.values.len() * size_of::<Datum>() + 64,
            Datum::Record(fields) => fields.len() * size_of::<Datum>() + 16,
            _ => 0,
        }
}

/// Rows of as many values each, in lists that stay where they are: one list would be moved as a whole when it grows, which takes
/// the longer the longer it is.
#[derive(Debug)]
pub(super) struct RowLists<T: Send + 'static> {
    /// [`RowLists::IN_LIST`] rows each, but for the last one.
    lists: Vec<Vec<T>>,
    width: usize,
    count: usize,
}

impl<T: Send + 'static> Default for RowLists<T> {
    fn default() -> RowLists<T> {
        RowLists { lists: Vec::new(), width: 0, count: 0 }
    }
}

impl<T: Send + 'static> RowLists<T> {
    const IN_LIST: usize = 512;

    pub fn len(&self) -> usize {
        self.count
    }

    /// Forgets all rows, and keeps room for some.
    pub fn clear(&mut self) {
        if self.lists.len() > 1 {
            work::discard_lists(&mut self.lists);
        } else if let Some(list) = self.lists.first_mut() {
            work::discard(list);
        }
        self.count = 0;
    }

    /// Appends a row, of as many values as those before. Answers where it is.
    pub fn push(&mut self, row: impl Iterator<Item = T>) -> &mut [T] {
        if self.count == self.lists.len() * Self::IN_LIST {
            let room = if self.count == 0 { 0 } else { Self::IN_LIST * self.width };
            self.lists.push(Vec::with_capacity(room));
        }
        self.count += 1;
        let list = self.lists.last_mut().expect("a list has just been added if there was none");
        let from = list.len();
        list.extend(row);
        self.width = list.len() - from;
        &mut list[from..]
    }

    #[inline]
    pub fn row(&self, row: usize) -> &[T] {
        let at = row % Self::IN_LIST * self.width;
        &self.lists[row / Self::IN_LIST][at..at + self.width]
    }

    #[inline]
    pub(crate) fn row_mut(&mut self, row: usize) -> &mut [T] {
        let at = row % Self::IN_LIST * self.width;
        &mut self.lists[row / Self::IN_LIST][at..at + self.width]
    }
}

impl<T: Send + 'static> Drop for RowLists<T> {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Copies of some slots of registers, row after row.
#[derive(Debug, Default)]
pub(super) struct RowStore {
    rows: RowLists<Datum>,
}

impl RowStore {
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    pub fn clear(&mut self) {
        self.rows.clear();
    }

    /// Appends the slots of the registers's row. Answers the bytes it takes.
    pub fn push(&mut self, registers: &[Datum], slots: &[Slot]) -> usize {
        self.push_values(slots.iter().map(|&slot| registers[slot as usize].clone()))
    }

    /// Appends a row of these values. Answers the bytes it takes.
    pub(crate) fn push_values(&mut self, values: impl Iterator<Item = Datum>) -> usize {
        self.rows.push(values).iter().map(datum_bytes).sum::<usize>() + 8
    }

    /// Appends all rows of another store of the same slots. Answers the bytes they take.
    pub(crate) fn push_all(&mut self, other: &RowStore) -> usize {
        (0..other.len()).map(|row| self.push_values(other.row(row).iter().cloned())).sum()
    }

    /// The values of row `row`.
    #[inline]
    pub fn row(&self, row: usize) -> &[Datum] {
        self.rows.row(row)
    }

    /// Puts row `row` back into the registers.
    pub fn restore(&self, row: usize, registers: &mut [Datum], slots: &[Slot]) {
        for (&slot, value) in slots.iter().zip(self.row(row)) {
            registers[slot as usize] = value.clone();
        }
    }
}

/// The numbers 0, 1, … by a hash of what they stand for: those of one hash in a chain, the newest first.
#[derive(Debug, Default)]
pub(super) struct Chains {
    /// The newest number of each hash, as long as there are few.
    heads: FxHashMap<u64, u32>,
    /// The same of many, by the first bits of the hash: a table that grows is moved as a whole, which takes the longer the
    /// larger it is.
    parts: Vec<FxHashMap<u64, u32>>,
    /// By number, the one before with the same hash; `u32::MAX` ends.
    next: Vec<u32>,
}

const END: u32 = u32::MAX;
/// Hashes in one table before there are parts.
const WHOLE: usize = 1 << 15;
/// Bits of a hash that say its part.
const PART_BITS: u32 = 8;

impl Chains {
    pub fn clear(&mut self) {
        self.heads.clear();
        self.parts.clear();
        self.next.clear();
    }

    #[inline]
    fn part(hash: u64) -> usize {
        (hash >> (u64::BITS - PART_BITS)) as usize
    }

    /// Divides the table once it is large.
    #[cold]
    fn divide(&mut self) {
        self.parts = (0..1 << PART_BITS).map(|_| FxHashMap::default()).collect();
        for (hash, number) in std::mem::take(&mut self.heads).into_iter().counted(16) {
            self.parts[Chains::part(hash)].insert(hash, number);
        }
    }

    /// Numbers given.
    pub fn len(&self) -> usize {
        self.next.len()
    }

    /// The number of this hash that `is` finds to be meant.
    #[inline]
    pub fn find(&self, hash: u64, is: impl Fn(usize) -> bool) -> Option<usize> {
        let heads = if self.parts.is_empty() { &self.heads } else { &self.parts[Chains::part(hash)] };
        let mut at = *heads.get(&hash)?;
        while at != END {
            if is(at as usize) {
                return Some(at as usize);
            }
            // Many keys of one hash are no accident.
            work::beat(8);
            at = self.next[at as usize];
        }
        None
    }

    /// Gives the next number to what has this hash.
    #[inline]
    pub fn add(&mut self, hash: u64) -> usize {
        let number = self.next.len();
        if number == WHOLE {
            self.divide();
        }
        let heads = if self.parts.is_empty() { &mut self.heads } else { &mut self.parts[Chains::part(hash)] };
        if heads.len() == heads.capacity() {
            work::beat(8 * heads.len());
        }
        let before = heads.insert(hash, number as u32);
        self.next.push(before.unwrap_or(END));
        number
    }
}

/// What a look for a key has found.
enum Looked {
    Known(usize),
    New { hash: u64 },
}

/// The slots of keys that are nothing else.
pub(super) fn slots_of<'c>(keys: impl Iterator<Item = &'c Code>) -> Option<Box<[Slot]>> {
    keys.map(|code| if let Code::Slot(slot) = code { Some(*slot) } else { None }).collect()
}

/// Distinct keys with a number each, in order of first insertion. NULLs are equal here.
#[derive(Debug)]
pub(super) struct KeyTable {
    types: Box<[Oid]>,
    chains: Chains,
    keys: RowLists<Datum>,
}

impl KeyTable {
    pub fn new(types: &[Oid]) -> KeyTable {
        KeyTable { types: types.into(), chains: Chains::default(), keys: RowLists::default() }
    }

    pub fn clear(&mut self) {
        self.chains.clear();
        self.keys.clear();
    }

    #[inline]
    fn look<'k>(&self, value: impl Fn(usize) -> DatumRef<'k>) -> Looked {
        let mut hasher = FxHasher::default();
        for (at, ty) in self.types.iter().enumerate() {
            match value(at) {
                DatumRef::Int4(v) => hasher.write_i32(v),
                DatumRef::Int8(v) => hasher.write_i64(v),
                value => types::hash_as(*ty, &value, &mut hasher),
            }
        }
        let hash = hasher.finish();
        let is = |number: usize| {
            self.key(number).iter().enumerate().all(|(at, own)| match (own, value(at)) {
                (Datum::Int4(a), DatumRef::Int4(b)) => *a == b,
                (Datum::Int8(a), DatumRef::Int8(b)) => *a == b,
                (Datum::Null, DatumRef::Null) => true,
                (Datum::Null, _) | (_, DatumRef::Null) => false,
                (a, b) => types::compare_as(self.types[at], &a.as_ref(), &b).is_eq(),
            })
        };
        match self.chains.find(hash, is) {
            Some(number) => Looked::Known(number),
            None => Looked::New { hash },
        }
    }

    /// The number of a key.
    pub fn find(&self, key: &[Datum]) -> Option<usize> {
        self.find_by(|at| key[at].as_ref())
    }

    /// As [`KeyTable::find`], of a key whose values lie apart.
    #[inline]
    pub(crate) fn find_by<'k>(&self, value: impl Fn(usize) -> DatumRef<'k>) -> Option<usize> {
        match self.look(value) {
            Looked::Known(number) => Some(number),
            Looked::New { .. } => None,
        }
    }

    /// The number of a key, which is added if it is new (`true`).
    pub fn insert(&mut self, key: &[Datum]) -> (usize, bool) {
        match self.look(|at| key[at].as_ref()) {
            Looked::Known(number) => (number, false),
            Looked::New { hash } => {
                self.keys.push(key.iter().cloned());
                (self.chains.add(hash), true)
            }
        }
    }

    /// As [`KeyTable::insert`], of a key whose values lie in a row; they are copied only if it is new.
    #[inline]
    pub(crate) fn insert_stored<'r>(&mut self, value: impl Fn(usize) -> DatumRef<'r>) -> (usize, bool) {
        match self.look(&value) {
            Looked::Known(number) => (number, false),
            Looked::New { hash } => {
                self.keys.push((0..self.types.len()).map(|at| value(at).to_owned()));
                (self.chains.add(hash), true)
            }
        }
    }

    /// How many keys there are.
    pub fn len(&self) -> usize {
        self.chains.len()
    }

    /// The key of a number.
    pub fn key(&self, number: usize) -> &[Datum] {
        self.keys.row(number)
    }

    /// Rough bytes that one more key takes.
    pub(crate) fn entry_bytes(&self) -> usize {
        let last = self.chains.len().checked_sub(1).map_or(&[][..], |last| self.key(last));
        32 + last.iter().map(datum_bytes).sum::<usize>()
    }
}

/// Keeps the rows of its input, which is run once however often it is rescanned.
pub(super) struct Materialize {
    node: Arc<MaterializeNode>,
    input: Box<dyn Operator>,
    rows: RowStore,
    complete: bool,
    at: usize,
}

impl Materialize {
    pub fn new(node: &Arc<MaterializeNode>) -> Materialize {
        Materialize {
            node: Arc::clone(node),
            input: operator(&node.input),
            rows: RowStore::default(),
            complete: false,
            at: 0,
        }
    }
}

impl Operator for Materialize {
    fn next(&mut self, cx: &mut Cx<'_, '_>, registers: &mut [Datum]) -> Result<Next> {
        if self.at < self.rows.len() {
            self.rows.restore(self.at, registers, &self.node.slots);
            self.at += 1;
            if let Some(wait) = cx.run.tick(1)? {
                self.at -= 1;
                return Ok(Next::Wait(wait));
            }
            return Ok(Next::Row);
        }
        if self.complete {
            return Ok(Next::Done);
        }
        let next = self.input.next(cx, registers)?;
        match next {
            Next::Row => {
                let bytes = self.rows.push(registers, &self.node.slots);
                cx.run.charge(bytes)?;
                self.at += 1;
            }
            Next::Done => self.complete = true,
            Next::Wait(_) => {}
        }
        Ok(next)
    }

    fn rescan(&mut self, forget: bool) {
        self.at = 0;
        if forget || !self.complete {
            self.rows.clear();
            self.complete = false;
            self.input.rescan(forget);
        }
    }
}
