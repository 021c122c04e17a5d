//! A batch of rows as an engine hands them out: copied bytes, so that no guard outlives a call (rule R9).

use base::{LayoutId, RowId, work};

/// Bytes at which a batch is full.
const FULL: usize = 1 << 20;

/// Rows in the row codec of `types`, in one arena. Reused between calls, so that a warm scan allocates nothing.
#[derive(Debug, Default)]
pub struct RowBatch {
    arena: Vec<u8>,
    rows: Vec<Slot>,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    row: RowId,
    layout: LayoutId,
    start: u32,
    len: u32,
    writer: u32,
}

/// One row of a [`RowBatch`].
#[derive(Clone, Copy, Debug)]
pub struct BatchRow<'a> {
    /// The row's identity in its table.
    pub row: RowId,
    /// The layout its bytes were written with.
    pub layout: LayoutId,
    /// The transaction that wrote the version, as `xmin` shows it.
    pub writer: u32,
    /// The tuple, or what a scan was asked for in its place ([`crate::RowContent`]).
    pub tuple: &'a [u8],
}

impl RowBatch {
    /// An empty batch.
    pub fn new() -> RowBatch {
        RowBatch::default()
    }

    /// Forgets the rows and keeps the memory, unless it is much.
    pub fn clear(&mut self) {
        self.arena.clear();
        self.rows.clear();
        if self.arena.capacity() > 2 * FULL {
            self.arena.shrink_to(FULL);
        }
    }

    /// Whether it holds so many bytes that a scan is to stop, however few the rows are.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.arena.len() >= FULL
    }

    /// Keeps the first `len` rows.
    pub fn truncate(&mut self, len: usize) {
        if let Some(slot) = self.rows.get(len) {
            self.arena.truncate(slot.start as usize);
            self.rows.truncate(len);
        }
    }

    /// Appends a copy of `tuple`.
    #[inline]
    pub fn push(&mut self, row: RowId, layout: LayoutId, writer: u32, tuple: &[u8]) {
        let start = u32::try_from(self.arena.len()).expect("a batch stays far below 4 GiB");
        work::append_unstopped(&mut self.arena, tuple);
        self.rows.push(Slot { row, layout, start, len: tuple.len() as u32, writer });
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The `i`th row. Panics past the end.
    #[inline]
    pub fn row(&self, i: usize) -> BatchRow<'_> {
        let slot = self.rows[i];
        let start = slot.start as usize;
        BatchRow {
            row: slot.row,
            layout: slot.layout,
            writer: slot.writer,
            tuple: &self.arena[start..start + slot.len as usize],
        }
    }

    /// All rows in order.
    pub fn iter(&self) -> impl Iterator<Item = BatchRow<'_>> {
        (0..self.rows.len()).map(|i| self.row(i))
    }

    /// Bytes of tuples held.
    pub fn bytes(&self) -> usize {
        self.arena.len()
    }
}
