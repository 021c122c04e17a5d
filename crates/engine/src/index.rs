//! The ordered index of a table: (key bytes, row), in order.
//!
//! Responsible for: entries, point lookups, ranges in both directions.
//! Not responsible for: what a key means, whether its row is visible.
//! Concurrency: one reader-writer latch per index, held for one call. No caller keeps it across another call.

use std::collections::BTreeSet;
use std::ops::Bound;

use base::RowId;
use engine_api::KeyRange;
use parking_lot::RwLock;

/// Entries of a key lie together, ordered by row.
type Entry = (Box<[u8]>, RowId);

/// An ordered multimap from keys to rows.
#[derive(Debug, Default)]
pub struct OrderedIndex {
    entries: RwLock<BTreeSet<Entry>>,
}

impl OrderedIndex {
    /// Adds an entry; `false` if it was there.
    pub fn insert(&self, key: &[u8], row: RowId) -> bool {
        self.entries.write().insert((key.into(), row))
    }

    /// Removes an entry; `false` if it was not there.
    pub fn remove(&self, key: &[u8], row: RowId) -> bool {
        self.entries.write().remove(&(key.into(), row))
    }

    /// Appends the rows of exactly this key.
    pub fn get(&self, key: &[u8], out: &mut Vec<RowId>) {
        let from: Entry = (key.into(), RowId(0));
        out.extend(self.entries.read().range(from..).take_while(|(k, _)| **k == *key).map(|(_, row)| *row));
    }

    /// Appends at most `max` entries of a range in order (or against it), after `resume` if given.
    pub fn scan(&self, range: &KeyRange, reverse: bool, resume: Option<&Entry>, max: usize, out: &mut Vec<Entry>) {
        let first = |key: &Vec<u8>| (Box::from(key.as_slice()), RowId(0));
        let last = |key: &Vec<u8>| (Box::from(key.as_slice()), RowId(u64::MAX));
        let mut lower: Bound<Entry> = match &range.lower {
            Bound::Included(key) => Bound::Included(first(key)),
            Bound::Excluded(key) => Bound::Excluded(last(key)),
            Bound::Unbounded => Bound::Unbounded,
        };
        let mut upper: Bound<Entry> = match &range.upper {
            Bound::Included(key) => Bound::Included(last(key)),
            Bound::Excluded(key) => Bound::Excluded(first(key)),
            Bound::Unbounded => Bound::Unbounded,
        };
        if let Some(entry) = resume {
            let end = if reverse { &mut upper } else { &mut lower };
            *end = Bound::Excluded(entry.clone());
        }
        if is_empty(&lower, &upper) {
            return;
        }
        let entries = self.entries.read();
        let found = entries.range((lower, upper));
        match reverse {
            false => out.extend(found.take(max).cloned()),
            true => out.extend(found.rev().take(max).cloned()),
        }
    }
}

/// Whether nothing can lie between two bounds; a set's range panics on bounds that cross.
fn is_empty(lower: &Bound<Entry>, upper: &Bound<Entry>) -> bool {
    match (lower, upper) {
        (Bound::Included(a), Bound::Included(b)) => a > b,
        (Bound::Included(a) | Bound::Excluded(a), Bound::Excluded(b)) | (Bound::Excluded(a), Bound::Included(b)) => {
            a >= b
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(keys: &[(&str, u64)]) -> OrderedIndex {
        let index = OrderedIndex::default();
        for (key, row) in keys {
            assert!(index.insert(key.as_bytes(), RowId(*row)));
        }
        index
    }

    fn scan(index: &OrderedIndex, range: &KeyRange, reverse: bool) -> Vec<u64> {
        let (mut all, mut resume) = (Vec::new(), None);
        loop {
            let mut out = Vec::new();
            index.scan(range, reverse, resume.as_ref(), 2, &mut out);
            let Some(last) = out.last() else { return all };
            resume = Some(last.clone());
            all.extend(out.iter().map(|(_, row)| row.0));
        }
    }

    #[test]
    fn ranges_prefixes_and_points() {
        let index = index(&[("a", 1), ("ab", 2), ("ab", 3), ("b", 4), ("c", 5)]);
        assert!(!index.insert(b"ab", RowId(2)));
        let mut rows = Vec::new();
        index.get(b"ab", &mut rows);
        assert_eq!(rows, [RowId(2), RowId(3)]);
        assert_eq!(scan(&index, &KeyRange::all(), false), [1, 2, 3, 4, 5]);
        assert_eq!(scan(&index, &KeyRange::all(), true), [5, 4, 3, 2, 1]);
        assert_eq!(scan(&index, &KeyRange::prefix(b"a"), false), [1, 2, 3]);
        let range = KeyRange { lower: Bound::Excluded(b"ab".to_vec()), upper: Bound::Included(b"b".to_vec()) };
        assert_eq!(scan(&index, &range, true), [4]);
        let crossed = KeyRange { lower: Bound::Included(b"c".to_vec()), upper: Bound::Excluded(b"a".to_vec()) };
        assert!(scan(&index, &crossed, false).is_empty());
        assert!(index.remove(b"ab", RowId(2)) && !index.remove(b"ab", RowId(2)));
        assert_eq!(scan(&index, &KeyRange::all(), false), [1, 3, 4, 5]);
    }
}
