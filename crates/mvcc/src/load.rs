//! Many rows of a table at a start: loading those of an image's block, and reading the newest version of each.
//!
//! Responsible for: [`Loader`], [`Table::each_live`].
//! Not responsible for: which rows there are, in which order threads take them.
//! Headers come in chunks of consecutive rows ([`crate::directory`]): a chunk is found once, not for each of its rows. What is
//! made is counted when the loader is dropped, so that no counter that threads share is written for each row.

use base::{LayoutId, RowId, Timestamp};

use crate::directory::{CHUNK_ROWS, Chunk};
use crate::epoch::Guard;
use crate::table::Table;
use crate::version::PrivateVersion;
use crate::visible::{self, Newest, ReadVersion};

/// Loads committed rows into a table that nobody reads or writes.
pub struct Loader<'g> {
    table: &'g Table,
    guard: &'g Guard,
    /// The chunk of the last row, and its number.
    chunk: Option<(u64, &'g Chunk)>,
    end: u64,
    rows: i64,
    bytes: i64,
}

impl Table {
    /// Begins to load rows. REQUIRES that nobody else has the table open but other loaders, and that those load other rows.
    pub fn loader<'g>(&'g self, guard: &'g Guard) -> Loader<'g> {
        Loader { table: self, guard, chunk: None, end: 0, rows: 0, bytes: 0 }
    }

    /// Calls `each` for the rows from `from` up to `end`, in order, whose newest version is committed and not a deletion, while
    /// it answers `true`.
    pub fn each_live<'g>(
        &'g self,
        from: RowId,
        end: RowId,
        guard: &'g Guard,
        mut each: impl FnMut(RowId, ReadVersion<'g>) -> bool,
    ) {
        let mut row = self.directory.skip_missing(from, end);
        while row < end {
            let last = RowId(((row.0 / CHUNK_ROWS as u64 + 1) * CHUNK_ROWS as u64).min(end.0));
            if let Some(chunk) = self.directory.chunk(row, guard) {
                for number in row.0..last.0 {
                    let header = &chunk[(number % CHUNK_ROWS as u64) as usize];
                    if let Newest::Live(version) = visible::newest(header, None, &self.shared.txns, guard)
                        && !each(RowId(number), version)
                    {
                        return;
                    }
                }
            }
            row = self.directory.skip_missing(last, end);
        }
    }
}

impl Loader<'_> {
    /// Loads a row that was committed at `ts`. One that is there already is replaced, as [`Table::load`] does it.
    #[inline]
    pub fn load(&mut self, row: RowId, ts: Timestamp, layout: LayoutId, tuple: &[u8]) {
        let number = row.0 / CHUNK_ROWS as u64;
        let chunk = match self.chunk {
            Some((at, chunk)) if at == number => chunk,
            _ => self.table.directory.claim_chunk(row, &self.table.account, self.guard),
        };
        self.chunk = Some((number, chunk));
        let header = &chunk[(row.0 % CHUNK_ROWS as u64) as usize];
        match header.fill(PrivateVersion::committed(ts, layout, Some(tuple))) {
            Some(bytes) => {
                self.rows += 1;
                self.bytes += bytes as i64;
                self.end = self.end.max(row.0 + 1);
            }
            None => _ = self.table.load(row, ts, layout, tuple, self.guard),
        }
    }
}

impl Drop for Loader<'_> {
    fn drop(&mut self) {
        self.table.directory.raise(RowId(self.end));
        self.table.account.count_loaded(self.rows, self.bytes);
    }
}
