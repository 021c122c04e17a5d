//! What a transaction has done, in order.
//!
//! Responsible for: the list of its entries, which grows without ever copying many of them at once: a statement that writes
//! millions of rows holds its core no longer for any one of them.
//! Not responsible for: what entries mean (`txn`).
//! Invariants: all entries are in `first` until that has [`SEGMENT`] of them; of the segments in `more` only the last one is not
//! full, and none is empty.

use std::ops::Index;
use std::slice;

use smallvec::SmallVec;

use crate::txn::Entry;

/// Entries of a segment.
const SEGMENT: usize = 1 << 14;

/// A list of entries. One thread at a time.
#[derive(Debug, Default)]
pub(crate) struct Log {
    first: SmallVec<[Entry; 8]>,
    more: Vec<Vec<Entry>>,
}

impl Log {
    #[inline]
    pub fn push(&mut self, entry: Entry) {
        if self.first.len() < SEGMENT { self.first.push(entry) } else { self.push_more(entry) }
    }

    fn push_more(&mut self, entry: Entry) {
        match self.more.last_mut() {
            Some(last) if last.len() < SEGMENT => last.push(entry),
            _ => {
                let mut segment = Vec::with_capacity(SEGMENT);
                segment.push(entry);
                self.more.push(segment);
            }
        }
    }

    pub fn pop(&mut self) -> Option<Entry> {
        let Some(last) = self.more.last_mut() else { return self.first.pop() };
        let entry = last.pop();
        if last.is_empty() {
            self.more.pop();
        }
        entry
    }

    #[inline]
    pub fn len(&self) -> usize {
        self.first.len() + self.more.last().map_or(0, |last| (self.more.len() - 1) * SEGMENT + last.len())
    }

    #[inline]
    pub fn iter(&self) -> Entries<'_> {
        Entries { here: self.first.iter(), more: self.more.iter() }
    }

    /// Bytes beside those of the list itself.
    #[inline]
    pub fn held_bytes(&self) -> usize {
        let first = if self.first.spilled() { self.first.capacity() } else { 0 };
        (first + self.more.len() * SEGMENT) * size_of::<Entry>()
    }
}

/// The entries of a list in order. Most lists are short: what is in `more` costs them one look at their end.
pub(crate) struct Entries<'a> {
    here: slice::Iter<'a, Entry>,
    more: slice::Iter<'a, Vec<Entry>>,
}

impl<'a> Iterator for Entries<'a> {
    type Item = &'a Entry;

    #[inline]
    fn next(&mut self) -> Option<&'a Entry> {
        loop {
            if let Some(entry) = self.here.next() {
                return Some(entry);
            }
            self.here = self.more.next()?.iter();
        }
    }
}

impl Index<usize> for Log {
    type Output = Entry;

    #[inline]
    fn index(&self, at: usize) -> &Entry {
        match self.first.get(at) {
            Some(entry) => entry,
            None => &self.more[(at - SEGMENT) / SEGMENT][(at - SEGMENT) % SEGMENT],
        }
    }
}

#[cfg(test)]
mod tests {
    use base::RowId;

    use super::*;

    #[test]
    fn entries_come_and_go_in_order() {
        let entry = |n: usize| Entry::Wrote { table: 0, row: RowId(n as u64) };
        let same = |a: &Entry, n: usize| matches!(a, Entry::Wrote { row, .. } if row.0 == n as u64);
        let (mut log, count) = (Log::default(), 3 * SEGMENT + 5);
        for n in 0..count {
            assert_eq!(log.len(), n);
            log.push(entry(n));
        }
        assert!((0..count).all(|n| same(&log[n], n)));
        assert!(log.iter().zip(0..).all(|(entry, n)| same(entry, n)) && log.iter().count() == count);
        assert!(log.held_bytes() >= count * size_of::<Entry>());
        for n in (0..count).rev() {
            assert!(log.pop().is_some_and(|entry| same(&entry, n)));
            assert_eq!(log.len(), n);
        }
        assert!(log.pop().is_none() && log.more.is_empty());
    }
}
