//! Scans: leaf by leaf, each found again from the root by the fence of the one before.
//!
//! A scan holds no leaf between two of them, so leaves have no neighbour pointers to maintain, and a leaf that is split
//! or merged meanwhile is simply found under its new fences.

use super::EntryBatch;
use super::node::Reading;
use super::page::{HIGH, Header, LOW, Page};
use super::position::{Direction, KeyRange, Position, Restart};
use super::tree::{BTreeIndex, retry};
use crate::epoch::Guard;
use base::RowId;

/// Buffers that a batch keeps for the next scan.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    /// The fence where the scan goes on.
    fence: Vec<u8>,
    next: Vec<u8>,
    prefix: Vec<u8>,
}

/// How a leaf ended.
enum Leaf {
    /// The range is exhausted.
    Done,
    /// The limit is reached.
    Limit,
    /// The scan goes on at the fence with this row.
    Next(u64),
}

/// What does not change during a scan.
#[derive(Clone, Copy)]
struct Way<'a> {
    direction: Direction,
    /// The edge where the scan ends.
    stop: Position<'a>,
}

/// See [`OrderedIndex::scan`](super::OrderedIndex::scan).
pub(super) fn scan<const N: usize>(
    tree: &BTreeIndex<N>,
    range: &KeyRange<'_>,
    direction: Direction,
    resume: Option<(&[u8], RowId)>,
    limit: usize,
    out: &mut EntryBatch,
    guard: &Guard,
) -> bool {
    let (from, to) = (Position::of_edge(range.from), Position::of_edge(range.to));
    let (first, stop) = match direction {
        Direction::Forward => (from, to),
        Direction::Backward => (to, from),
    };
    let first = resume.map_or(first, |entry| Position::resume(entry, direction));
    let way = Way { direction, stop };
    let end = out.len().saturating_add(limit);
    let mut scratch = std::mem::take(&mut out.scratch);
    let mut fence_row = None;
    let more = loop {
        let Scratch { fence, next, prefix } = &mut scratch;
        let start = fence_row.map_or(first, |row| Position::before(fence, row));
        let mark = out.len();
        let leaf = retry(|| {
            out.truncate(mark);
            next.clear();
            prefix.clear();
            scan_leaf(tree, way, &start, end - mark, out, next, prefix, guard)
        });
        match leaf {
            Leaf::Done => break false,
            Leaf::Limit => break true,
            Leaf::Next(row) => fence_row = Some(row),
        }
        std::mem::swap(fence, next);
    };
    out.scratch = scratch;
    more
}

fn scan_leaf<const N: usize>(
    tree: &BTreeIndex<N>,
    way: Way<'_>,
    start: &Position<'_>,
    limit: usize,
    out: &mut EntryBatch,
    fence: &mut Vec<u8>,
    prefix: &mut Vec<u8>,
    guard: &Guard,
) -> Result<Leaf, Restart> {
    let forward = way.direction == Direction::Forward;
    let leaf = tree.leaf(&if forward { start.inclusive() } else { *start }, guard)?;
    let header = leaf.header();
    let near = leaf.find(header, start)?;
    let far = leaf.find_anywhere(header, &way.stop)?;
    let wanted = if forward { far.saturating_sub(near) } else { near.saturating_sub(far) };
    let taken = wanted.min(limit);
    let slots = (0..taken).map(|step| leaf.slot(if forward { near + step } else { near - 1 - step }));
    if out.wants_keys() {
        out.reserve(taken);
        leaf.prefix_into(header, prefix)?;
        for slot in slots {
            leaf.key_into(header, slot, prefix, &mut out.keys)?;
            out.push(leaf.row(slot));
        }
    } else {
        out.extend(slots.map(|slot| RowId(leaf.row(slot))));
    }
    let end = if taken < wanted { Leaf::Limit } else { leaf_end(&leaf, header, way, far, taken == limit, fence)? };
    if matches!(end, Leaf::Limit) && !out.wants_keys() && taken > 0 {
        let last = if forward { near + taken - 1 } else { near - taken };
        prefix.clear();
        leaf.prefix_into(header, prefix)?;
        out.keys.clear();
        leaf.key_into(header, leaf.slot(last), prefix, &mut out.keys)?;
    }
    leaf.check()?;
    Ok(end)
}

/// What comes after a leaf whose entries in the range are all taken.
fn leaf_end<const N: usize>(
    leaf: &Reading<'_, N>,
    header: Header,
    way: Way<'_>,
    far: usize,
    is_full: bool,
    fence: &mut Vec<u8>,
) -> Result<Leaf, Restart> {
    let row = match way.direction {
        Direction::Forward => {
            if far < header.count || header.endless {
                return Ok(Leaf::Done);
            }
            let row = leaf.fence_into(HIGH, fence)?;
            if !way.stop.is_after(fence, row) {
                return Ok(Leaf::Done);
            }
            row
        }
        Direction::Backward => {
            if far > 0 {
                return Ok(Leaf::Done);
            }
            let row = leaf.fence_into(LOW, fence)?;
            let is_first = fence.is_empty() && row == 0;
            if is_first || way.stop.is_after(fence, row) {
                return Ok(Leaf::Done);
            }
            row
        }
    };
    Ok(if is_full { Leaf::Limit } else { Leaf::Next(row) })
}
