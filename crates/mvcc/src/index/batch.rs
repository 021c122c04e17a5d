//! What a scan returns: row ids, and keys in one arena.

use super::scan::Scratch;
use base::RowId;

/// Entries in the order of the scan. Reuse it: nothing is allocated once it has grown.
#[derive(Debug, Default)]
pub struct EntryBatch {
    rows: Vec<RowId>,
    pub(super) keys: Vec<u8>,
    ends: Vec<u32>,
    /// Keys are left out, but for the last one, where the scan can be resumed.
    rows_only: bool,
    pub(super) scratch: Scratch,
}

impl EntryBatch {
    /// A batch with keys.
    pub fn new() -> EntryBatch {
        EntryBatch::default()
    }

    /// A batch for callers that need no keys.
    pub fn rows_only() -> EntryBatch {
        EntryBatch { rows_only: true, ..EntryBatch::default() }
    }

    /// Empties the batch, keeping its memory.
    pub fn clear(&mut self) {
        self.truncate(0);
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The row ids.
    pub fn rows(&self) -> &[RowId] {
        &self.rows
    }

    /// The key of entry `at`.
    ///
    /// # Panics
    /// If there is no such entry, or the batch is without keys.
    pub fn key(&self, at: usize) -> &[u8] {
        let start = if at == 0 { 0 } else { self.ends[at - 1] as usize };
        &self.keys[start..self.ends[at] as usize]
    }

    /// The key of entry `at`; `None` if the batch is without keys.
    ///
    /// # Panics
    /// If there is no such entry.
    pub fn get_key(&self, at: usize) -> Option<&[u8]> {
        (!self.rows_only).then(|| self.key(at))
    }

    /// Entries with their keys; nothing if the batch is without keys.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], RowId)> {
        (0..self.ends.len()).map(|at| (self.key(at), self.rows[at]))
    }

    /// The last entry, to resume the scan after. A batch without keys has it when the scan stopped at its limit.
    pub fn last(&self) -> Option<(&[u8], RowId)> {
        let row = *self.rows.last()?;
        if self.rows_only { Some((&self.keys, row)) } else { Some((self.key(self.rows.len() - 1), row)) }
    }

    /// Appends an entry; for other implementations of [`OrderedIndex`](super::OrderedIndex).
    pub fn append(&mut self, key: &[u8], row: RowId) {
        if self.rows_only {
            self.keys.clear();
        }
        self.keys.extend_from_slice(key);
        self.push(row.0);
    }

    pub(super) fn wants_keys(&self) -> bool {
        !self.rows_only
    }

    /// Ends the entry whose key was appended to `keys`.
    #[inline]
    pub(super) fn push(&mut self, row: u64) {
        self.rows.push(RowId(row));
        if !self.rows_only {
            self.ends.push(self.keys.len() as u32);
        }
    }

    /// Appends entries without keys.
    #[inline]
    pub(super) fn extend(&mut self, rows: impl ExactSizeIterator<Item = RowId>) {
        self.rows.extend(rows);
    }

    pub(super) fn reserve(&mut self, entries: usize) {
        self.rows.reserve(entries);
        self.ends.reserve(entries);
    }

    /// Takes entries from `len` on back.
    pub(super) fn truncate(&mut self, len: usize) {
        self.rows.truncate(len);
        self.ends.truncate(len);
        self.keys.truncate(self.ends.last().map_or(0, |&end| end as usize));
    }
}
