//! Rows that operators keep: copies of slots, and tables of distinct keys.

use std::hash::Hasher;
use std::sync::Arc;

use base::work;
use base::{Oid, Result};
use rustc_hash::FxHasher;
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

/// Numbers by a hash of what they stand for, in places that are tried one behind the other: as a rule one cache line says all. The
/// places are in parts, each for the tags of one beginning (extendible hashing): a part that is full is divided, so that no step
/// of a table that grows takes the longer the larger it is.
#[derive(Debug)]
pub(super) struct Numbers {
    /// By the first `depth` bits of a tag, its part. Parts of fewer bits are in it more than once, one beside the other.
    directory: Vec<u32>,
    depth: u32,
    parts: Vec<Part>,
    count: usize,
}

/// Places of a part at first.
const PLACES_MIN: usize = 8;
/// Places of a part that is divided when it is full: moving its numbers takes about 0.1 ms. Smaller ones would be more, and the directory is one
/// access to memory more than a table of one part needs.
const PLACES_MAX: usize = if cfg!(test) { 1 << 11 } else { 1 << 14 };
/// Bits that the tags of a part have in common at most: one with more of them grows. Tags that are all the same are no accident.
const DEPTH_MAX: u32 = 16;

/// Some of the numbers.
#[derive(Debug)]
struct Part {
    /// None, or a power of two, a third of which is free.
    places: Vec<NumberPlace>,
    count: usize,
    /// First bits that its tags have in common.
    depth: u32,
}

/// A number, or [`NONE`] in a place that is free.
#[derive(Clone, Copy, Debug)]
struct NumberPlace {
    /// Of the hash: the first bits are the part's, the last ones say where it is looked for first.
    tag: u32,
    number: u32,
}

/// No number.
pub(super) const NONE: u32 = u32::MAX;

impl Part {
    /// A part without numbers.
    fn new(places: usize, depth: u32) -> Part {
        Part { places: vec![NumberPlace { tag: 0, number: NONE }; places], count: 0, depth }
    }

    /// Where the number is that has this tag and is meant, as `is` finds, or where it would be. REQUIRES a free place.
    #[inline]
    fn place(&self, tag: u32, is: impl Fn(usize) -> bool) -> usize {
        let mask = self.places.len() - 1;
        let mut at = tag as usize & mask;
        loop {
            let place = self.places[at];
            if place.number == NONE || (place.tag == tag && is(place.number as usize)) {
                return at;
            }
            // Many keys of one hash are no accident.
            work::beat(4);
            at = (at + 1) & mask;
        }
    }

    /// Whether there is no room for one more.
    #[inline]
    fn is_full(&self) -> bool {
        3 * self.count >= 2 * self.places.len()
    }

    /// Doubles the places.
    fn grow(&mut self) {
        let larger = Part::new((2 * self.places.len()).max(PLACES_MIN), self.depth);
        std::mem::replace(self, larger).taken().for_each(|place| self.add(place));
    }

    /// Keeps the numbers whose tags go on with a zero; the part of the others.
    fn divide(&mut self) -> Part {
        let depth = self.depth + 1;
        let mut others = Part::new(self.places.len(), depth);
        let both = std::mem::replace(self, Part::new(self.places.len(), depth));
        for place in both.taken() {
            let goes_on_with_one = place.tag >> (u32::BITS - depth) & 1 == 1;
            if goes_on_with_one { others.add(place) } else { self.add(place) }
        }
        others
    }

    fn taken(self) -> impl Iterator<Item = NumberPlace> {
        work::beat(16 * self.count);
        self.places.into_iter().filter(|place| place.number != NONE)
    }

    /// Adds what is not there yet. REQUIRES a free place.
    fn add(&mut self, place: NumberPlace) {
        let at = self.place(place.tag, |_| false);
        self.places[at] = place;
        self.count += 1;
    }
}

impl Default for Numbers {
    fn default() -> Numbers {
        Numbers { directory: vec![0], depth: 0, parts: vec![Part::new(0, 0)], count: 0 }
    }
}

impl Numbers {
    pub fn clear(&mut self) {
        *self = Numbers::default();
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.count
    }

    #[inline]
    fn tag(hash: u64) -> u32 {
        // The hashes of some values differ in a few bits only: those of floating-point numbers that are integers, say.
        let wide = u128::from(hash) * 0x9e37_79b9_7f4a_7c15;
        (wide as u64 ^ (wide >> 64) as u64) as u32
    }

    /// Where the first `depth` bits of a tag are in a directory of so many.
    #[inline]
    fn beginning(tag: u32, depth: u32) -> usize {
        (u64::from(tag) >> (u32::BITS - depth)) as usize
    }

    #[inline]
    fn part(&self, tag: u32) -> usize {
        if self.depth == 0 { 0 } else { self.directory[Numbers::beginning(tag, self.depth)] as usize }
    }

    /// The number of this hash that `is` finds to be meant.
    #[inline]
    pub fn find(&self, hash: u64, is: impl Fn(usize) -> bool) -> Option<usize> {
        let tag = Numbers::tag(hash);
        let part = &self.parts[self.part(tag)];
        if part.count == 0 {
            return None;
        }
        let number = part.places[part.place(tag, is)].number;
        (number != NONE).then_some(number as usize)
    }

    /// The number of this hash that `is` finds to be meant, to be changed; [`NONE`] if there is none yet. REQUIRES that it is one afterwards.
    #[inline]
    pub fn entry(&mut self, hash: u64, is: impl Fn(usize) -> bool) -> &mut u32 {
        let tag = Numbers::tag(hash);
        let mut at = self.part(tag);
        if self.parts[at].is_full() {
            at = self.make_room(tag);
        }
        let part = &mut self.parts[at];
        let place = part.place(tag, is);
        let place = &mut part.places[place];
        if place.number == NONE {
            place.tag = tag;
            part.count += 1;
            self.count += 1;
        }
        &mut place.number
    }

    /// Makes room for one more of this tag; its part.
    #[cold]
    fn make_room(&mut self, tag: u32) -> usize {
        loop {
            let at = self.part(tag);
            let part = &mut self.parts[at];
            if !part.is_full() {
                return at;
            }
            if part.places.len() < PLACES_MAX || part.depth == DEPTH_MAX {
                part.grow();
                return at;
            }
            let (others, depth) = (part.divide(), part.depth);
            let new = self.parts.len() as u32;
            self.parts.push(others);
            if depth > self.depth {
                self.directory = self.directory.iter().flat_map(|&part| [part, part]).collect();
                self.depth = depth;
            }
            let entries = 1 << (self.depth - depth);
            let first = (Numbers::beginning(tag, depth) | 1) * entries;
            self.directory[first..first + entries].fill(new);
        }
    }
}

/// Evaluates the keys of a join; `false` if one is NULL, which equals nothing.
pub(super) fn read_key(codes: &[Code], key: &mut Vec<Datum>, cx: &mut Cx<'_, '_>, registers: &[Datum]) -> Result<bool> {
    key.clear();
    for code in codes {
        let value = code.eval(cx, registers)?;
        if value.is_null() {
            return Ok(false);
        }
        key.push(value);
    }
    Ok(true)
}

/// The slots of keys that are nothing else.
pub(super) fn slots_of<'c>(keys: impl Iterator<Item = &'c Code>) -> Option<Box<[Slot]>> {
    keys.map(|code| if let Code::Slot(slot) = code { Some(*slot) } else { None }).collect()
}

/// The hash of a key with values of these types. Integers of any width that are equal have the same.
#[inline]
pub(super) fn hash_of<'k>(types: &[Oid], value: impl Fn(usize) -> DatumRef<'k>) -> u64 {
    let mut hasher = FxHasher::default();
    for (at, ty) in types.iter().enumerate() {
        match value(at) {
            DatumRef::Int2(v) => hasher.write_i64(v.into()),
            DatumRef::Int4(v) => hasher.write_i64(v.into()),
            DatumRef::Int8(v) => hasher.write_i64(v),
            value => types::hash_as(*ty, &value, &mut hasher),
        }
    }
    hasher.finish()
}

/// Whether two keys with values of these types, or integers of any width, are the same, as NULLs are.
#[inline]
pub(super) fn is_key<'o, 'k>(
    types: &[Oid],
    own: impl IntoIterator<Item = &'o Datum>,
    value: impl Fn(usize) -> DatumRef<'k>,
) -> bool {
    own.into_iter().enumerate().all(|(at, own)| match (own, value(at)) {
        (Datum::Int4(a), DatumRef::Int4(b)) => *a == b,
        (Datum::Int8(a), DatumRef::Int8(b)) => *a == b,
        (Datum::Null, DatumRef::Null) => true,
        (Datum::Null, _) | (_, DatumRef::Null) => false,
        (a, b) => match (a.integer(), b.integer()) {
            (Some(a), Some(b)) => a == b,
            _ => types::compare_as(types[at], &a.as_ref(), &b).is_eq(),
        },
    })
}

/// Distinct keys with a number each, in order of first insertion. NULLs are equal here.
#[derive(Debug)]
pub(super) struct KeyTable {
    types: Box<[Oid]>,
    numbers: Numbers,
    keys: RowLists<Datum>,
}

impl KeyTable {
    pub fn new(types: &[Oid]) -> KeyTable {
        KeyTable { types: types.into(), numbers: Numbers::default(), keys: RowLists::default() }
    }

    pub fn clear(&mut self) {
        self.numbers.clear();
        self.keys.clear();
    }

    /// The number of a key.
    pub fn find(&self, key: &[Datum]) -> Option<usize> {
        self.find_by(|at| key[at].as_ref())
    }

    /// As [`KeyTable::find`], of a key whose values lie apart.
    #[inline]
    pub(crate) fn find_by<'k>(&self, value: impl Fn(usize) -> DatumRef<'k>) -> Option<usize> {
        let hash = hash_of(&self.types, &value);
        self.numbers.find(hash, |number| is_key(&self.types, self.key(number), &value))
    }

    /// The number of a key, which is added if it is new (`true`).
    pub fn insert(&mut self, key: &[Datum]) -> (usize, bool) {
        self.insert_as(|at| key[at].as_ref(), || key.iter().cloned())
    }

    /// As [`KeyTable::insert`], of a key whose values lie in a row; they are copied only if it is new.
    #[inline]
    pub(crate) fn insert_stored<'r>(&mut self, value: impl Fn(usize) -> DatumRef<'r>) -> (usize, bool) {
        let columns = self.types.len();
        self.insert_as(&value, || (0..columns).map(|at| value(at).to_owned()))
    }

    #[inline]
    fn insert_as<'k, I: Iterator<Item = Datum>>(
        &mut self,
        value: impl Fn(usize) -> DatumRef<'k>,
        copied: impl FnOnce() -> I,
    ) -> (usize, bool) {
        let hash = hash_of(&self.types, &value);
        let next = self.numbers.len() as u32;
        let number = self.numbers.entry(hash, |number| is_key(&self.types, self.keys.row(number), &value));
        let is_new = *number == NONE;
        if is_new {
            *number = next;
            self.keys.push(copied());
        }
        (*number as usize, is_new)
    }

    /// How many keys there are.
    pub fn len(&self) -> usize {
        self.numbers.len()
    }

    /// The key of a number.
    pub fn key(&self, number: usize) -> &[Datum] {
        self.keys.row(number)
    }

    /// Rough bytes that one more key takes.
    pub(crate) fn entry_bytes(&self) -> usize {
        let last = self.numbers.len().checked_sub(1).map_or(&[][..], |last| self.key(last));
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers of keys, of which several have the same hash, are all found, and no others.
    #[test]
    fn numbers_are_found_by_hash() {
        for (alike, count) in [(1, 200_000), (3, 100_000), (40, 4_000), (3_000, 6_000)] {
            // Those of integers as floating-point numbers: their last bits are zero.
            let hash = |key: usize| ((key / alike) as f64).to_bits();
            let mut numbers = Numbers::default();
            for key in 0..count {
                assert_eq!(numbers.find(hash(key), |number| number == key), None);
                let number = numbers.entry(hash(key), |number| number == key);
                assert_eq!(std::mem::replace(number, key as u32), NONE);
                assert_eq!(numbers.len(), key + 1);
            }
            for key in 0..count {
                assert_eq!(numbers.find(hash(key), |number| number == key), Some(key));
                assert_eq!(*numbers.entry(hash(key), |number| number == key), key as u32);
            }
            assert_eq!(numbers.find(hash(count + alike), |_| true), None);
            // Parts of different tags are divided, those of one tag grow.
            let largest = numbers.parts.iter().map(|part| part.places.len()).max();
            assert_eq!(largest > Some(PLACES_MAX), alike > PLACES_MAX);
            assert_eq!(numbers.len(), count);
            numbers.clear();
            assert_eq!((numbers.find(hash(0), |_| true), numbers.len()), (None, 0));
        }
    }
}
