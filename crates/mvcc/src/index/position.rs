//! Places in the order of entries, and ranges of keys.

use base::RowId;
use std::ops::Bound;

/// What was read is not to be believed: begin again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Restart;

/// Which way a scan goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Ascending by key, then row.
    Forward,
    /// Descending by key, then row.
    Backward,
}

/// A place between keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edge<'a> {
    /// Before every key.
    Start,
    /// Just before this key.
    Before(&'a [u8]),
    /// Just after this key (and before the longer keys that begin with it).
    After(&'a [u8]),
    /// After every key that begins with these bytes.
    AfterPrefix(&'a [u8]),
    /// After every key.
    End,
}

/// The keys between two edges; empty if they are crossed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyRange<'a> {
    /// The lower edge.
    pub from: Edge<'a>,
    /// The upper edge.
    pub to: Edge<'a>,
}

impl<'a> KeyRange<'a> {
    /// Every key.
    pub fn all() -> KeyRange<'static> {
        KeyRange { from: Edge::Start, to: Edge::End }
    }

    /// Exactly this key.
    pub fn point(key: &'a [u8]) -> KeyRange<'a> {
        KeyRange { from: Edge::Before(key), to: Edge::After(key) }
    }

    /// The keys that begin with `prefix`.
    pub fn prefix(prefix: &'a [u8]) -> KeyRange<'a> {
        KeyRange { from: Edge::Before(prefix), to: Edge::AfterPrefix(prefix) }
    }

    /// Whether a key lies between the edges.
    pub fn contains(&self, key: &[u8]) -> bool {
        let is_before = |edge: Edge<'a>| Position::of_edge(edge).is_after(key, 0);
        !is_before(self.from) && is_before(self.to)
    }

    /// The keys between two bounds over whole keys.
    pub fn bounds(lower: Bound<&'a [u8]>, upper: Bound<&'a [u8]>) -> KeyRange<'a> {
        let from = match lower {
            Bound::Unbounded => Edge::Start,
            Bound::Included(key) => Edge::Before(key),
            Bound::Excluded(key) => Edge::After(key),
        };
        let to = match upper {
            Bound::Unbounded => Edge::End,
            Bound::Included(key) => Edge::After(key),
            Bound::Excluded(key) => Edge::Before(key),
        };
        KeyRange { from, to }
    }
}

/// On which side of the entries that match it a position lies.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    /// Before the pair (key, row).
    Before,
    /// After the pair (key, row).
    After,
    /// After everything that begins with key; the row does not count.
    AfterPrefix,
}

/// A place between entries.
#[derive(Clone, Copy)]
pub(super) struct Position<'a> {
    pub key: &'a [u8],
    pub row: u64,
    pub side: Side,
}

impl<'a> Position<'a> {
    pub fn before(key: &'a [u8], row: u64) -> Position<'a> {
        Position { key, row, side: Side::Before }
    }

    pub fn after(key: &'a [u8], row: u64) -> Position<'a> {
        Position { key, row, side: Side::After }
    }

    pub fn of_edge(edge: Edge<'a>) -> Position<'a> {
        match edge {
            Edge::Start => Position::before(b"", 0),
            Edge::Before(key) => Position::before(key, 0),
            Edge::After(key) => Position::after(key, u64::MAX),
            Edge::AfterPrefix(key) => Position { key, row: 0, side: Side::AfterPrefix },
            Edge::End => Position { key: b"", row: 0, side: Side::AfterPrefix },
        }
    }

    pub fn resume(entry: (&'a [u8], RowId), direction: Direction) -> Position<'a> {
        match direction {
            Direction::Forward => Position::after(entry.0, entry.1.0),
            Direction::Backward => Position::before(entry.0, entry.1.0),
        }
    }

    /// The position to route by when the entry at the position is wanted: a separator equal to (key, row) is the lower
    /// fence of the child that holds that entry, so it counts as passed.
    pub fn inclusive(self) -> Position<'a> {
        let side = if self.side == Side::Before { Side::After } else { self.side };
        Position { side, ..self }
    }

    /// Whether the entry (key, row) lies before this position.
    pub fn is_after(&self, key: &[u8], row: u64) -> bool {
        if self.side == Side::AfterPrefix {
            return key < self.key || key.starts_with(self.key);
        }
        match key.cmp(self.key) {
            std::cmp::Ordering::Equal => row < self.row || (row == self.row && self.side == Side::After),
            order => order.is_lt(),
        }
    }
}
