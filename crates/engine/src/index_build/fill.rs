//! Filling an index from the rows of its table at a start, with all threads.
//!
//! Rows that were inserted in the order of their keys, as most primary keys are: each thread takes ranges of rows and makes leaves
//! of them as they come, full to the brim, because what is inserted next goes behind them. The first key that does not rise
//! ends this, and the entries are sorted: keys of a sample of the rows cut the keys into ranges, each thread hands the entries
//! of ranges of rows out to them, then each sorts ranges of keys and makes leaves of them, full to nine tenths.
//!
//! What is held beside the index while it is sorted are its keys, once, and 24 bytes for each.

use std::cmp::Ordering;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering as Memory};

use base::RowId;
use base::work::{self, Count as _};
use checkpoint::Scratch;
use env::World;
use mvcc::index::{BTreeIndex, Boundary, IndexPart, Unfit};
use mvcc::pin;
use parking_lot::Mutex;
use redo::DriverError;
use types::user::Types;

use crate::start::load::{Parts, run};
use crate::start::progress::Progress;
use crate::storage::shape::Shape;
use crate::storage::{IndexStore, TableStore};

/// How full leaves are made, in hundredths, if keys rise with rows, and if not.
pub(crate) const FILL_RISING: u8 = 100;
pub(crate) const FILL_SORTED: u8 = 90;
/// Rows of a table that are worth more than one thread.
const ROWS_ALONE: u64 = 16 << 10;
/// Rows that a thread takes at once.
const ROWS_PER_PART: u64 = 64 << 10;
/// Entries of a range of keys, which a core's cache holds while they are sorted.
const ENTRIES_PER_RANGE: u64 = 8 << 10;
/// Ranges of keys at most: more would be too little at a time for each.
const RANGES_MAX: u64 = 4096;
/// What an entry is of work, when it is sorted and again when it is put into a leaf.
pub(crate) const UNITS_PER_ENTRY: usize = 64;
/// Rows looked at for each range of keys.
const SAMPLES_PER_RANGE: u64 = 16;

/// An index to be filled.
#[derive(Clone)]
pub(crate) struct Entries {
    pub store: Arc<TableStore>,
    pub shape: Arc<Shape>,
    pub index: Arc<IndexStore>,
    pub progress: Arc<Progress>,
}

impl Entries {
    /// Calls `each` with the entries of the rows from `from` up to `end`, in the order of rows, while it answers `true`.
    fn each(&self, from: u64, end: u64, mut each: impl FnMut(&[u8], RowId) -> bool) {
        let mut key = Vec::new();
        let guard = pin();
        self.store.rows.each_live(RowId(from), RowId(end), &guard, |row, version| {
            key.clear();
            self.shape.key(&self.index, version.layout, version.tuple, &mut key);
            // A partial index does not have every row.
            key.is_empty() || each(&key, row)
        });
    }

    fn first(&self, from: u64, end: u64) -> Option<Boundary> {
        let mut first = None;
        self.each(from, end, |key, row| {
            first = Some(Boundary { key: key.to_vec(), row });
            false
        });
        first
    }

    /// The first entry of some rows whose key is no long work.
    fn sample(&self, from: u64, end: u64) -> Option<Boundary> {
        let mut key = Vec::new();
        let mut found = None;
        let guard = pin();
        self.store.rows.each_live(RowId(from), RowId(end), &guard, |row, version| {
            key.clear();
            let known = self.shape.old_key(&self.index, version.layout, version.tuple, &mut key);
            if known.is_some() && !key.is_empty() {
                found = Some(Boundary { key: std::mem::take(&mut key), row });
            }
            found.is_none()
        });
        found
    }

    fn ranges_of_rows(&self) -> Vec<(u64, u64)> {
        let end = self.store.rows.end().0;
        (0..end).step_by(ROWS_PER_PART as usize).map(|from| (from, end.min(from + ROWS_PER_PART))).collect()
    }

    fn is_small(&self) -> bool {
        self.store.rows.row_count() <= ROWS_ALONE
    }

    fn error(&self, unfit: Unfit) -> DriverError {
        DriverError::Corrupt(format!("an entry of index \"{}\" does not fit: {unfit:?}", self.index.desc.name))
    }
}

/// Small indexes: each is the work of one thread.
impl Parts for Vec<Entries> {
    fn part(&self, number: usize, _: &mut Scratch) -> Result<bool, DriverError> {
        let Some(entries) = self.get(number) else { return Ok(false) };
        fill(entries, &|parts| alone(&*parts))?;
        Ok(true)
    }
}

/// Fills indexes, all empty, of a catalog with these types.
pub(crate) fn all(
    world: &World,
    threads: usize,
    types: &Arc<Types>,
    mut indexes: Vec<Entries>,
) -> Result<(), DriverError> {
    let small = indexes.extract_if(.., |entries| entries.is_small()).collect::<Vec<_>>();
    if !small.is_empty() {
        run(world, threads.min(small.len()), "load-indexes", types, small)?;
    }
    // One after the other, so that the keys of one only are held beside it.
    let together = |parts| run(world, threads, "load-index", types, parts);
    indexes.iter().try_for_each(|entries| fill(entries, &together))
}

/// Does the parts of some work, with some number of threads.
type Doing<'d> = &'d dyn Fn(Arc<dyn Parts>) -> Result<(), DriverError>;

fn alone(parts: &dyn Parts) -> Result<(), DriverError> {
    let (mut scratch, mut number) = (Scratch::default(), 0);
    while parts.part(number, &mut scratch)? {
        number += 1;
    }
    Ok(())
}

fn fill(entries: &Entries, doing: Doing<'_>) -> Result<(), DriverError> {
    let filled = match rising(entries, doing)? {
        Some(parts) => entries.index.tree.fill(parts, FILL_RISING),
        None => entries.index.tree.fill(sorted(entries, doing)?, FILL_SORTED),
    };
    base::invariant!(filled, "an index that is being loaded is empty");
    Ok(())
}

/// Parts of an index that were made, by number.
type Made = Mutex<Vec<Option<IndexPart>>>;

fn in_order(made: &Made) -> Vec<IndexPart> {
    made.lock().iter_mut().filter_map(Option::take).collect()
}

/// Leaves straight from ranges of rows.
struct Rising {
    entries: Entries,
    /// Where each part begins in the rows, and its first entry.
    starts: Vec<(u64, Boundary)>,
    end: u64,
    falls: AtomicBool,
    made: Made,
}

/// The index's parts if keys rise with rows, and `None` if they do not.
fn rising(entries: &Entries, doing: Doing<'_>) -> Result<Option<Vec<IndexPart>>, DriverError> {
    let mut starts: Vec<(u64, Boundary)> = Vec::new();
    for (from, end) in entries.ranges_of_rows() {
        let Some(first) = entries.first(from, end) else { continue };
        match starts.last() {
            Some((_, before)) if *before >= first => return Ok(None),
            _ => starts.push((from, first)),
        }
    }
    match starts.first_mut() {
        // The first part has all that lies before it too.
        Some((_, first)) => *first = Boundary::default(),
        None => starts.push((0, Boundary::default())),
    }
    let made = Mutex::new(starts.iter().map(|_| None).collect());
    let end = entries.store.rows.end().0;
    let work = Arc::new(Rising { entries: entries.clone(), starts, end, falls: AtomicBool::new(false), made });
    doing(Arc::clone(&work) as Arc<dyn Parts>)?;
    Ok((!work.falls.load(Memory::Acquire)).then(|| in_order(&work.made)))
}

impl Parts for Rising {
    fn part(&self, number: usize, _: &mut Scratch) -> Result<bool, DriverError> {
        let Some((from, low)) = self.starts.get(number) else { return Ok(false) };
        if self.falls.load(Memory::Acquire) {
            return Ok(false);
        }
        let next = self.starts.get(number + 1);
        let end = next.map_or(self.end, |(from, _)| *from);
        let mut part = self.entries.index.tree.part(low, FILL_RISING);
        let mut pushed = Ok(());
        self.entries.each(*from, end, |key, row| {
            pushed = part.push(key, row);
            pushed.is_ok()
        });
        match pushed.and_then(|()| part.finish(next.map(|(_, first)| first))) {
            Ok(part) => {
                self.entries.progress.indexed(end - from);
                self.made.lock()[number] = Some(part);
            }
            Err(Unfit::Order) => self.falls.store(true, Memory::Release),
            Err(unfit) => return Err(self.entries.error(unfit)),
        }
        Ok(true)
    }
}

/// An entry that is to be sorted.
#[derive(Clone, Copy)]
struct Entry {
    /// The first eight bytes of the key, as a number that orders like them; missing ones are 0.
    head: u64,
    row: u64,
    /// Where the bytes after them lie (48 bits), and the key's length.
    rest: u64,
}

/// Entries and the bytes of their keys.
#[derive(Default)]
pub(crate) struct Bucket {
    entries: Vec<Entry>,
    bytes: Vec<u8>,
}

const HEAD: usize = 8;

fn head_of(key: &[u8]) -> u64 {
    if let Some(head) = key.first_chunk::<HEAD>() {
        return u64::from_be_bytes(*head);
    }
    let mut head = [0; HEAD];
    head[..key.len()].copy_from_slice(key);
    u64::from_be_bytes(head)
}

impl Entry {
    fn len(self) -> usize {
        (self.rest & 0xffff) as usize
    }

    fn rest(self, bytes: &[u8]) -> &[u8] {
        let at = (self.rest >> 16) as usize;
        &bytes[at..at + self.len().saturating_sub(HEAD)]
    }

    #[inline]
    fn order(self, other: Entry, bytes: &[u8]) -> Ordering {
        self.head.cmp(&other.head).then_with(|| self.order_of_equals(other, bytes))
    }

    fn order_of_equals(self, other: Entry, bytes: &[u8]) -> Ordering {
        let (len, other_len) = (self.len(), other.len());
        // A key that ends within the head is the beginning of the other: bytes that are missing are zero, and so are the other's.
        let by_key = match len.min(other_len) <= HEAD {
            true => len.cmp(&other_len),
            false => self.rest(bytes).cmp(other.rest(bytes)),
        };
        by_key.then(self.row.cmp(&other.row))
    }
}

impl Bucket {
    pub fn push(&mut self, key: &[u8], row: RowId) {
        let rest = (self.bytes.len() as u64) << 16 | key.len() as u64;
        self.entries.push(Entry { head: head_of(key), row: row.0, rest });
        self.bytes.extend_from_slice(key.get(HEAD..).unwrap_or(&[]));
    }

    fn append(&mut self, mut other: Bucket) {
        let base = (self.bytes.len() as u64) << 16;
        other.entries.iter_mut().for_each(|entry| entry.rest += base);
        self.entries.append(&mut other.entries);
        self.bytes.append(&mut other.bytes);
    }

    pub fn sort(&mut self) {
        let bytes = &self.bytes;
        self.entries.sort_unstable_by(|a, b| a.order(*b, bytes));
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Bytes that it holds.
    pub fn bytes(&self) -> usize {
        self.entries.capacity() * size_of::<Entry>() + self.bytes.capacity()
    }

    pub fn row(&self, at: usize) -> RowId {
        RowId(self.entries[at].row)
    }

    /// Puts the key of an entry into `key`.
    pub fn key(&self, at: usize, key: &mut Vec<u8>) {
        let entry = self.entries[at];
        key.clear();
        key.extend_from_slice(&entry.head.to_be_bytes()[..entry.len().min(HEAD)]);
        key.extend_from_slice(entry.rest(&self.bytes));
    }

    /// Whether two entries have one key.
    pub fn same_key(&self, a: usize, b: usize) -> bool {
        let (a, b) = (self.entries[a], self.entries[b]);
        a.head == b.head && a.len() == b.len() && a.rest(&self.bytes) == b.rest(&self.bytes)
    }

    /// Leaves of the entries, which lie between two positions. REQUIRES that they are sorted.
    pub fn leaves(
        &self,
        tree: &BTreeIndex,
        low: &Boundary,
        high: Option<&Boundary>,
        fill: u8,
    ) -> Result<IndexPart, Unfit> {
        let mut part = tree.part(low, fill);
        let mut key = Vec::new();
        for at in (0..self.len()).counted(UNITS_PER_ENTRY) {
            self.key(at, &mut key);
            part.push(&key, self.row(at))?;
        }
        part.finish(high)
    }
}

/// Ranges of keys, each of about as many entries.
pub(crate) struct Ranges {
    /// Where each range but the first begins, and the heads of those keys.
    cuts: Vec<Boundary>,
    heads: Vec<u64>,
}

impl Ranges {
    fn new(cuts: Vec<Boundary>) -> Ranges {
        let heads = cuts.iter().map(|cut| head_of(&cut.key)).collect();
        Ranges { cuts, heads }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.cuts.len() + 1
    }

    /// That of an entry.
    pub fn of(&self, key: &[u8], row: RowId) -> usize {
        let head = head_of(key);
        let mut range = self.heads.partition_point(|cut| *cut < head);
        // Seldom are there more with the same head.
        while self.heads.get(range) == Some(&head)
            && (self.cuts[range].key.as_slice(), self.cuts[range].row) <= (key, row)
        {
            range += 1;
        }
        range
    }

    /// Where a range begins and, if it is not the last, ends.
    pub fn bounds(&self, number: usize) -> (Boundary, Option<&Boundary>) {
        let low = number.checked_sub(1).map_or_else(Boundary::default, |at| self.cuts[at].clone());
        (low, self.cuts.get(number))
    }
}

/// Ranges of the keys that a table's rows have in an index.
pub(crate) fn ranges(store: &Arc<TableStore>, shape: &Arc<Shape>, index: &Arc<IndexStore>) -> Ranges {
    let entries = Entries {
        store: Arc::clone(store),
        shape: Arc::clone(shape),
        index: Arc::clone(index),
        progress: Arc::default(),
    };
    Ranges::new(cuts(&entries))
}

/// Entries handed out to ranges of keys.
struct HandOut {
    entries: Entries,
    rows: Vec<(u64, u64)>,
    keys: Ranges,
    ranges: Vec<Mutex<Bucket>>,
}

impl Parts for HandOut {
    fn part(&self, number: usize, _: &mut Scratch) -> Result<bool, DriverError> {
        let Some((from, end)) = self.rows.get(number) else { return Ok(false) };
        let mut own: Vec<Bucket> = self.ranges.iter().map(|_| Bucket::default()).collect();
        let mut longest = 0;
        self.entries.each(*from, *end, |key, row| {
            longest = longest.max(key.len());
            own[self.keys.of(key, row)].push(key, row);
            true
        });
        if longest > mvcc::index::MAX_KEY_LEN {
            return Err(self.entries.error(Unfit::TooLong(mvcc::index::KeyTooLong { len: longest })));
        }
        for (range, bucket) in self.ranges.iter().zip(own) {
            if !bucket.entries.is_empty() {
                range.lock().append(bucket);
            }
        }
        self.entries.progress.indexed((end - from) / 2);
        Ok(true)
    }
}

/// Ranges of keys being sorted and made into leaves.
struct Sorting {
    handed: Arc<HandOut>,
    made: Made,
}

impl Parts for Sorting {
    fn part(&self, number: usize, _: &mut Scratch) -> Result<bool, DriverError> {
        let HandOut { entries, keys, ranges, .. } = &*self.handed;
        let Some(range) = ranges.get(number) else { return Ok(false) };
        let mut bucket = std::mem::take(&mut *range.lock());
        bucket.sort();
        let (low, high) = keys.bounds(number);
        let part = bucket.leaves(&entries.index.tree, &low, high, FILL_SORTED).map_err(|unfit| entries.error(unfit))?;
        entries.progress.indexed(part.entries() as u64 / 2);
        self.made.lock()[number] = Some(part);
        Ok(true)
    }
}

/// Where ranges of keys begin, from a sample of the rows.
fn cuts(entries: &Entries) -> Vec<Boundary> {
    let ranges = (entries.store.rows.row_count() / ENTRIES_PER_RANGE).clamp(1, RANGES_MAX);
    let end = entries.store.rows.end().0;
    let samples = if ranges == 1 { 0 } else { ranges * SAMPLES_PER_RANGE };
    // A row that is not there is no sample; what is missing makes the ranges uneven, not wrong.
    let mut found: Vec<Boundary> = (0..samples)
        .filter_map(|sample| {
            let row = (u128::from(end) * u128::from(sample) / u128::from(samples)) as u64;
            work::beat(64);
            entries.sample(row, end.min(row + 8))
        })
        .collect();
    found.sort();
    found.dedup();
    let each = found.len() as f64 / ranges as f64;
    let mut cuts: Vec<Boundary> =
        (1..ranges).filter_map(|range| found.get((range as f64 * each) as usize).cloned()).collect();
    cuts.dedup();
    cuts
}

fn sorted(entries: &Entries, doing: Doing<'_>) -> Result<Vec<IndexPart>, DriverError> {
    let keys = Ranges::new(cuts(entries));
    let ranges = (0..keys.count()).map(|_| Mutex::default()).collect();
    let handed = Arc::new(HandOut { entries: entries.clone(), rows: entries.ranges_of_rows(), keys, ranges });
    doing(Arc::clone(&handed) as Arc<dyn Parts>)?;
    let made = Mutex::new(handed.ranges.iter().map(|_| None).collect());
    let sorting = Arc::new(Sorting { handed, made });
    doing(Arc::clone(&sorting) as Arc<dyn Parts>)?;
    Ok(in_order(&sorting.made))
}
