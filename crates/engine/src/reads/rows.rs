//! The list of rows read.
//!
//! Rule: reading a row appends; what is in the list twice is found when the list would have to grow, by sorting. So a read
//! costs a few instructions however often a row is read, and the list is at most twice as long as it needs to be.
//! Alternative: a hash table finds a second read immediately, and costs each first one a hash, a probe and, while it grows, its
//! place in a new table.

use base::{RowId, Timestamp};

/// Places of the first list.
const FIRST: usize = 32;

/// A row that was read, or a block of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Item {
    pub table: u16,
    /// The row, or the number of the block.
    pub row: RowId,
    pub as_of: Timestamp,
}

/// Rows read, some of them twice.
#[derive(Debug, Default)]
pub(super) struct RowItems {
    items: Vec<Item>,
    /// So many at the front are sorted, each row once.
    settled: usize,
}

const ITEM_BYTES: i64 = size_of::<Item>() as i64;

impl RowItems {
    /// Items, those that are twice in the list counted twice.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    pub fn iter(&self) -> impl Iterator<Item = &Item> {
        self.items.iter()
    }

    /// Appends an item; answers the bytes that the list has grown by.
    #[inline]
    pub fn push(&mut self, item: Item) -> i64 {
        if let Some(last) = self.items.last_mut()
            && (last.table, last.row) == (item.table, item.row)
        {
            last.as_of = last.as_of.min(item.as_of);
            return 0;
        }
        let grown = if self.items.len() == self.items.capacity() { self.make_room() } else { 0 };
        self.items.push(item);
        grown
    }

    #[cold]
    fn make_room(&mut self) -> i64 {
        let before = self.items.capacity();
        self.sort();
        // Half of it must be free afterwards, or the next sorting would come soon.
        if self.items.len() * 2 >= before {
            self.items.reserve_exact(before.max(FIRST));
        }
        (self.items.capacity() - before) as i64 * ITEM_BYTES
    }

    fn sort(&mut self) {
        if self.settled < self.items.len() {
            self.items.sort_unstable();
            // The oldest time comes first, and stays.
            self.items.dedup_by(|later, first| (later.table, later.row) == (first.table, first.row));
            self.settled = self.items.len();
        }
    }

    /// Sorts, each row once; answers the bytes given back.
    pub fn settle(&mut self) -> i64 {
        self.sort();
        let before = self.items.capacity();
        if self.items.len() * 4 < before {
            self.items.shrink_to(self.items.len() * 2);
        }
        (before - self.items.capacity()) as i64 * ITEM_BYTES
    }

    /// Makes the rows of a table blocks, `1 << step` times larger than they are.
    pub fn coarsen(&mut self, table: u16, step: u8) {
        self.items.iter_mut().filter(|item| item.table == table).for_each(|item| item.row.0 >>= step);
        self.settled = 0;
        self.sort();
    }

    /// Takes out what is of a table, and lowers `oldest` to the oldest time among it; answers the bytes given back.
    pub fn remove(&mut self, table: u16, oldest: &mut Timestamp) -> i64 {
        self.items.retain(|item| {
            let stays = item.table != table;
            if !stays {
                *oldest = (*oldest).min(item.as_of);
            }
            stays
        });
        self.settled = 0;
        self.settle()
    }

    /// Whether a row, or its block, is among them as of a time before `end`. REQUIRES [`RowItems::settle`] for speed only.
    pub fn contains(&self, table: u16, row: RowId, end: Timestamp) -> bool {
        let (sorted, rest) = self.items.split_at(self.settled);
        let found = sorted.binary_search_by_key(&(table, row), |item| (item.table, item.row));
        found.is_ok_and(|at| sorted[at].as_of < end)
            || rest.iter().any(|item| (item.table, item.row) == (table, row) && item.as_of < end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(table: u16, row: u64, as_of: u64) -> Item {
        Item { table, row: RowId(row), as_of: Timestamp(as_of) }
    }

    #[test]
    fn a_row_read_again_and_again_takes_no_more_room() {
        let mut rows = RowItems::default();
        let grown: i64 = (0..100_000).map(|n| rows.push(item(1, n * 7 % 24, 100 + n / 5 % 3))).sum();
        assert!(grown <= 64 * ITEM_BYTES, "{grown}");
        rows.settle();
        assert_eq!(rows.len(), 24);
        assert!(rows.iter().all(|item| item.as_of == Timestamp(100)), "the oldest time stays");
    }

    #[test]
    fn blocks_have_the_rows_that_they_are_made_of() {
        let mut rows = RowItems::default();
        (0..1000).for_each(|n| _ = rows.push(item((n % 2) as u16, n, 5)));
        let contains = |rows: &RowItems, table, row| rows.contains(table, RowId(row), Timestamp(6));
        assert!(contains(&rows, 1, 999) && !contains(&rows, 0, 999) && !rows.contains(1, RowId(999), Timestamp(5)));
        rows.coarsen(1, 4);
        assert_eq!(rows.len(), 500 + 63);
        assert!(contains(&rows, 1, 62) && contains(&rows, 0, 998));
        let mut oldest = Timestamp(9);
        rows.remove(0, &mut oldest);
        assert_eq!((rows.len(), oldest), (63, Timestamp(5)));
    }
}
