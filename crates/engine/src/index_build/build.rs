//! Building an index without concurrent writers (CREATE INDEX).
//!
//! Requirement: a view that is older than the index finds through it what it sees. Rule: a row is entered under the keys
//! of *all* its versions, and if these differ the row is marked, so that who finds it compares keys (rule R6).
//! Alternative: PostgreSQL keeps older views off the index (`indcheckxmin`); but its plans are made per view, ours are not.
//!
//! Entries are gathered, sorted in ranges of keys, and made into leaves, some at a time between turns for other connections; the
//! index is filled in one step. There are no writers meanwhile, but the collector removes versions. It knows of the index from before
//! the first row on: what it unlinks before the index is filled is still among the entries, and goes by a second look at the rows
//! that had more than one version, for only those can lose one.

use std::sync::Arc;

use base::work::{self, Count as _};
use base::{Error, LayoutId, Result, RowId, TxnId};
use mvcc::index::{IndexPart, KeyTooLong, MAX_KEY_LEN, OrderedIndex as _, Unfit};
use mvcc::{LaidOut, Memory, Newest, pin};
use smallvec::SmallVec;

use crate::index_build::fill::{self, Bucket, Ranges};
use crate::storage::shape::Shape;
use crate::storage::{IndexStore, TableStore};

/// What a row is of work: its versions are found, its keys made and put aside.
const UNITS_PER_ROW: usize = 256;

fn count(units: usize) -> Result<(), CannotEnter> {
    work::step(units).map_err(|error| CannotEnter::Refused(Box::new(error)))
}

/// Keys of one row's versions.
pub(crate) type Keys = SmallVec<[Vec<u8>; 2]>;

/// Why a row cannot be entered.
pub(crate) enum CannotEnter {
    Duplicate(LayoutId, Vec<u8>),
    TooLong(KeyTooLong),
    /// Its key cannot be computed, or something is wrong with the index.
    Refused(Box<Error>),
}

/// The distinct keys of versions of a row.
pub(crate) fn keys_of(index: &IndexStore, shape: &Shape, versions: &[LaidOut<'_>], keys: &mut Keys) {
    keys.clear();
    for (layout, tuple) in versions {
        let mut key = Vec::new();
        shape.key(index, *layout, tuple, &mut key);
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
}

/// An index build that goes on. Dropped before it is done, it takes the index out of the table's definition.
pub(crate) struct Build {
    pub index: Arc<IndexStore>,
    pub store: Arc<TableStore>,
    shape: Arc<Shape>,
    own: TxnId,
    /// The next row, and where rows end.
    next: RowId,
    end: RowId,
    ranges: Ranges,
    buckets: Vec<Bucket>,
    /// The last entry that was gathered, while entries rise.
    last: Option<(Vec<u8>, RowId)>,
    /// Rows that had not exactly one version, and the keys that they were entered under.
    unsure: Vec<(RowId, Keys)>,
    parts: Vec<IndexPart>,
    /// The first row whose key another row before it has.
    duplicate: Option<RowId>,
    /// What is counted of the memory that the build itself holds, and where.
    charged: i64,
    memory: Arc<Memory>,
    kind: usize,
    is_done: bool,
}

impl std::fmt::Debug for Build {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} up to row {} of {}", self.index, self.next, self.end)
    }
}

impl Drop for Build {
    fn drop(&mut self) {
        self.charge(0);
        if !self.is_done {
            self.store.remove_index(self.index.desc.oid);
        }
    }
}

impl Build {
    /// Begins to build an index that is empty, for a transaction. What it holds meanwhile is counted as of `kind`.
    pub fn begin(
        index: Arc<IndexStore>,
        store: Arc<TableStore>,
        own: TxnId,
        memory: Arc<Memory>,
        kind: usize,
    ) -> Build {
        let shape = Arc::clone(&store.upkeep.current().shape);
        // What stops the statement here unwinds it.
        let ranges = fill::ranges(&store, &shape, &index);
        store.begin_index(&index);
        Build {
            end: store.rows.end(),
            next: RowId(0),
            buckets: (0..ranges.count()).map(|_| Bucket::default()).collect(),
            last: Some((Vec::new(), RowId(0))),
            unsure: Vec::new(),
            parts: Vec::new(),
            duplicate: None,
            charged: 0,
            is_done: false,
            index,
            store,
            shape,
            own,
            ranges,
            memory,
            kind,
        }
    }

    /// Goes on for so many rows, or about as many entries; `true` when the index has its entries.
    pub fn step(&mut self, rows: u64) -> Result<bool, CannotEnter> {
        let (mut left, from) = (2 * rows, self.next);
        if self.next < self.end {
            self.gather(rows)?;
            left -= self.next.0 - from.0;
        }
        let is_gathered = self.next == self.end;
        while is_gathered && self.parts.len() < self.buckets.len() {
            let entries = self.buckets[self.parts.len()].len() as u64;
            // A large range has a turn of its own.
            if entries > left && left < 2 * rows {
                break;
            }
            self.make_leaves()?;
            left = left.saturating_sub(entries.max(1));
        }
        let held: usize = self.buckets.iter().map(Bucket::bytes).sum();
        self.charge((held + self.unsure.len() * size_of::<(RowId, Keys)>()) as i64);
        if !is_gathered || self.parts.len() < self.buckets.len() {
            return Ok(false);
        }
        self.finish()?;
        self.is_done = true;
        Ok(true)
    }

    /// Says what is held now.
    fn charge(&mut self, bytes: i64) {
        let change = bytes - std::mem::replace(&mut self.charged, bytes);
        if change != 0 {
            self.memory.charge_other(self.kind, change);
        }
    }

    fn gather(&mut self, rows: u64) -> Result<(), CannotEnter> {
        let end = self.end.0.min(self.next.0.saturating_add(rows));
        let mut keys = Keys::new();
        while self.next.0 < end {
            while let Some((layout, tuple)) = self.row(self.next, &mut keys)? {
                let prepared = self.shape.prepare(&self.index, layout, &tuple, true);
                prepared.map_err(|error| CannotEnter::Refused(Box::new(error)))?;
            }
            self.next.0 += 1;
            count(UNITS_PER_ROW)?;
        }
        Ok(())
    }

    /// Gathers the entries of one row, or answers a version of it whose key is to be prepared before.
    fn row(&mut self, row: RowId, keys: &mut Keys) -> Result<Option<(LayoutId, Vec<u8>)>, CannotEnter> {
        let store = Arc::clone(&self.store);
        let guard = pin();
        let versions = store.rows.versions(row, &guard);
        if let Some((layout, tuple)) = self.shape.first_long(&self.index, &versions) {
            return Ok(Some((layout, tuple.to_vec())));
        }
        if self.index.code.is_some()
            && let Newest::Live(version) = store.rows.newest(row, Some(self.own), &guard)
        {
            let key = self.shape.new_key(&self.index, version.layout, version.tuple, &mut Vec::new());
            key.map_err(|error| CannotEnter::Refused(Box::new(error)))?;
        }
        keys_of(&self.index, &self.shape, &versions, keys);
        if keys.len() > 1 {
            store.rows.mark_keys_diverged(row, &guard);
        }
        for key in keys.iter().filter(|key| !key.is_empty()) {
            if key.len() > MAX_KEY_LEN {
                return Err(CannotEnter::TooLong(KeyTooLong { len: key.len() }));
            }
            let rises = self.last.as_ref().is_some_and(|(last, before)| (last, *before) <= (key, row));
            match &mut self.last {
                Some((last, before)) if rises => {
                    last.clone_from(key);
                    *before = row;
                }
                last => *last = None,
            }
            self.buckets[self.ranges.of(key, row)].push(key, row);
        }
        // A row that is deleted has a version that is none of these: its entry goes with the row.
        let is_sure = versions.len() == 1 && matches!(store.rows.newest(row, Some(self.own), &guard), Newest::Live(_));
        if !is_sure && keys.iter().any(|key| !key.is_empty()) {
            self.unsure.push((row, std::mem::take(keys)));
        }
        Ok(None)
    }

    /// How full leaves are made.
    fn fill(&self) -> u8 {
        if self.last.is_some() { fill::FILL_RISING } else { fill::FILL_SORTED }
    }

    /// Sorts the next range of keys and makes leaves of it.
    fn make_leaves(&mut self) -> Result<(), CannotEnter> {
        let number = self.parts.len();
        let mut bucket = std::mem::take(&mut self.buckets[number]);
        bucket.sort();
        count(bucket.len() * fill::UNITS_PER_ENTRY)?;
        if self.index.desc.unique {
            self.look_for_duplicates(&bucket);
        }
        let (low, high) = self.ranges.bounds(number);
        let part = bucket.leaves(&self.index.tree, &low, high, self.fill()).map_err(|unfit| self.wrong(unfit))?;
        self.parts.push(part);
        Ok(())
    }

    fn wrong(&self, unfit: Unfit) -> CannotEnter {
        match unfit {
            Unfit::TooLong(key) => CannotEnter::TooLong(key),
            Unfit::Order => {
                let name = &self.index.desc.name;
                CannotEnter::Refused(Box::new(Error::internal(format!("entries of index \"{name}\" are not in order"))))
            }
        }
    }

    /// Finds the first row, in the order of rows, whose key a row before it has. REQUIRES that the bucket is sorted.
    fn look_for_duplicates(&mut self, bucket: &Bucket) {
        let (mut key, mut before) = (Vec::new(), Vec::new());
        // The last row that counts, of the key `before`.
        let mut has: Option<RowId> = None;
        let mut last: Option<usize> = None;
        for at in (0..bucket.len()).counted(fill::UNITS_PER_ENTRY) {
            let same_as_next = at + 1 < bucket.len() && bucket.same_key(at, at + 1);
            let same_as_last = last.is_some_and(|last| bucket.same_key(last, at));
            last = Some(at);
            if !same_as_last {
                has = None;
            }
            if !same_as_last && !same_as_next {
                continue;
            }
            if !same_as_last {
                bucket.key(at, &mut before);
            }
            let row = bucket.row(at);
            if !self.counts(row, &before, &mut key) {
                continue;
            }
            match has {
                None => has = Some(row),
                Some(_) if self.duplicate.is_none_or(|first| row < first) => self.duplicate = Some(row),
                Some(_) => {}
            }
        }
    }

    /// Whether the newest version of a row has `key` in the unique index, and nobody else may have it.
    fn counts(&self, row: RowId, key: &[u8], scratch: &mut Vec<u8>) -> bool {
        let guard = pin();
        let Newest::Live(version) = self.store.rows.newest(row, Some(self.own), &guard) else { return false };
        scratch.clear();
        let has_null = self.shape.key(&self.index, version.layout, version.tuple, scratch);
        scratch == key && (!has_null || self.index.desc.nulls_not_distinct)
    }

    /// Fills the index, or says whose key is not unique.
    fn finish(&mut self) -> Result<(), CannotEnter> {
        let (store, index) = (Arc::clone(&self.store), Arc::clone(&self.index));
        if let Some(row) = self.duplicate {
            let guard = pin();
            if let Newest::Live(version) = store.rows.newest(row, Some(self.own), &guard) {
                return Err(CannotEnter::Duplicate(version.layout, version.tuple.to_vec()));
            }
        }
        if !index.tree.fill(std::mem::take(&mut self.parts), self.fill()) {
            let error = Error::internal(format!("index \"{}\" has entries before it is filled", index.desc.name));
            return Err(CannotEnter::Refused(Box::new(error)));
        }
        let mut keys = Keys::new();
        for (row, entered) in std::mem::take(&mut self.unsure) {
            count(UNITS_PER_ROW)?;
            let guard = pin();
            keys_of(&index, &self.shape, &store.rows.versions(row, &guard), &mut keys);
            for key in entered.iter().filter(|key| !key.is_empty() && !keys.contains(key)) {
                index.tree.remove(key, row);
            }
        }
        Ok(())
    }
}
