//! Filling an empty index from entries in order: leaves are made one after the other, full to a chosen share, and the nodes
//! above them at the end.
//!
//! Responsible for: [`IndexPart`]s – runs of leaves between two positions, which any number of threads make beside each
//! other –, hanging them into the tree.
//! Not responsible for: sorting, sharing out the work, which entries there are.
//!
//! A leaf's prefix is that of its fences, and its high fence is known only when the next entry is: entries gather until the leaf
//! that would end before the next one is larger than it may be. Then the leaf ends one entry earlier, where it was found to
//! fit. The prefix never grows while entries gather, because they rise; so a size is taken anew only when it shrinks.
//!
//! Until they hang in the tree, nodes belong to their part, which frees them when it is dropped; their bytes are
//! charged to the index's budget from the moment they are made.

use super::far::FarKey;
use super::mend::{Pair, RootLatch};
use super::node::{Image, Node};
use super::page::{Entry, Page};
use super::tree::{BTreeIndex, retry};
use super::{KeyTooLong, MAX_KEY_LEN};
use crate::epoch::pin;
use crate::memory::{Memory, block_bytes};
use base::{RowId, work};
use std::sync::Arc;

/// Bytes of a node before its slots.
const HEADER: usize = 40;
/// Bytes of a slot.
const SLOT: usize = 8;

/// What a node is of work for the level above it.
const UNITS_PER_NODE: usize = 64;

/// Why entries were not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// An entry is not greater than the one before it, or lies before the part's beginning.
    Order,
    /// A key is longer than an index takes.
    TooLong(KeyTooLong),
}

/// A position where a part begins or ends: a pair (key, row).
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Boundary {
    /// The key.
    pub key: Vec<u8>,
    /// The row.
    pub row: RowId,
}

/// Nodes of one level, in order, and where each begins.
type Nodes = Vec<(Pair, u64)>;

/// The leaves between two positions. They belong to it until [`BTreeIndex::fill`].
pub struct IndexPart<const N: usize = 512> {
    low: Pair,
    high: Option<Pair>,
    nodes: Nodes,
    entries: usize,
    bytes: usize,
    budget: Option<Arc<Memory>>,
}

impl<const N: usize> IndexPart<N> {
    /// Number of entries.
    pub fn entries(&self) -> usize {
        self.entries
    }

    /// Parts that follow each other as one, with the nodes above them up to a root. `None` without parts.
    fn joined(parts: Vec<IndexPart<N>>, fill: u8) -> Option<IndexPart<N>> {
        let mut parts = parts.into_iter();
        let mut whole = parts.next()?;
        base::invariant!(whole.low == Pair::default(), "the first part of an index begins before all keys");
        // What is stopped half done would leave nodes that nobody frees.
        work::unstopped(|| {
            for mut part in parts {
                let follows = whole.high.as_ref() == Some(&part.low);
                base::invariant!(follows, "parts of an index follow each other without a gap");
                whole.high = part.high.take();
                whole.nodes.append(&mut part.nodes);
                whole.entries += part.entries;
                whole.bytes += std::mem::take(&mut part.bytes);
                work::beat(UNITS_PER_NODE);
            }
            base::invariant!(whole.high.is_none(), "the last part of an index goes to the end of all keys");
            for level in 1.. {
                if whole.nodes.len() == 1 {
                    break;
                }
                let bytes = nodes_above::<N>(level, &mut whole.nodes, fill);
                whole.count(bytes);
            }
        });
        Some(whole)
    }

    /// The root, which is the tree's from now on, the number of entries, and the bytes of all nodes.
    fn give(mut self) -> (u64, usize, usize) {
        let root = self.nodes.drain(..).next();
        (root.map_or(0, |(_, node)| node), self.entries, std::mem::take(&mut self.bytes))
    }

    fn count(&mut self, bytes: usize) {
        self.bytes += bytes;
        if let Some(budget) = &self.budget {
            budget.charge(bytes as i64);
        }
    }
}

impl<const N: usize> Drop for IndexPart<N> {
    fn drop(&mut self) {
        if let Some(budget) = &self.budget {
            budget.charge(-(self.bytes as i64));
        }
        for (_, node) in self.nodes.drain(..) {
            // SAFETY: made by this part, and not given to a tree: nobody else knows it.
            unsafe { Node::<N>::free_tree(node) };
        }
    }
}

/// Makes an [`IndexPart`].
pub struct PartBuilder<const N: usize = 512> {
    part: IndexPart<N>,
    level: Level<N>,
}

impl<const N: usize> PartBuilder<N> {
    /// Appends an entry.
    ///
    /// # Errors
    /// [`Unfit`]; the part is to be dropped then.
    pub fn push(&mut self, key: &[u8], row: RowId) -> Result<(), Unfit> {
        if key.len() > MAX_KEY_LEN {
            return Err(Unfit::TooLong(KeyTooLong { len: key.len() }));
        }
        let Some(last) = self.level.entries.len().checked_sub(1) else {
            if (key, row.0) < self.level.low.as_ref() {
                return Err(Unfit::Order);
            }
            self.level.append(key, row.0, 0);
            self.part.entries += 1;
            return Ok(());
        };
        let before = self.level.key(last);
        let shared = shared_len(before, key);
        let end = if shared == key.len() {
            if before.len() > key.len() || self.level.entries[last].row >= row.0 {
                return Err(Unfit::Order);
            }
            (key, row.0)
        } else {
            if shared < before.len() && before[shared] > key[shared] {
                return Err(Unfit::Order);
            }
            // The shortest that lies between them.
            (&key[..shared + 1], 0)
        };
        if self.level.fits(end) {
            self.level.keep_end(end);
        } else {
            let node = self.level.end_leaf();
            self.take(node);
            // With one entry anything fits; the next leaf's prefix is taken from its own beginning.
            self.level.fits(end);
            self.level.keep_end(end);
        }
        self.level.append(key, row.0, 0);
        self.part.entries += 1;
        Ok(())
    }

    fn take(&mut self, (low, node, bytes): (Pair, u64, usize)) {
        self.part.nodes.push((low, node));
        self.part.count(bytes);
    }

    /// Ends the part, where the next one begins or, with `None`, after all keys.
    ///
    /// # Errors
    /// [`Unfit::Order`] if an entry is not before `high`.
    pub fn finish(mut self, high: Option<&Boundary>) -> Result<IndexPart<N>, Unfit> {
        let high = high.map(|high| Pair { key: high.key.clone(), row: high.row.0 });
        let fits = match (self.level.entries.len().checked_sub(1), &high) {
            (Some(last), Some(high)) if (self.level.key(last), self.level.entries[last].row) >= high.as_ref() => {
                return Err(Unfit::Order);
            }
            (_, Some(high)) => self.level.fits(high.as_ref()),
            (_, None) => self.level.fits_endless(),
        };
        if !fits {
            let node = self.level.end_leaf();
            self.take(node);
        }
        let count = self.level.entries.len();
        let node = self.level.end_node(count, high.as_ref());
        self.take(node);
        self.part.high = high;
        Ok(self.part)
    }
}

/// Entries that gather for the next node of a level.
struct Level<const N: usize> {
    level: u8,
    low: Pair,
    /// The child before the first entry, above leaves.
    link: u64,
    entries: Vec<Gathered>,
    keys: Vec<u8>,
    /// Bytes that the low fence shares with the last position that was looked at, and the records' bytes with that prefix.
    prefix: usize,
    bytes: usize,
    /// Where a leaf without the last entry ends.
    end: Pair,
    /// Bytes that a node may have.
    limit: usize,
}

struct Gathered {
    end: u32,
    row: u64,
    child: u64,
}

/// How many bytes two keys share at their beginning. Eight at a time.
#[inline]
fn shared_len(a: &[u8], b: &[u8]) -> usize {
    let mut at = 0;
    while let (Some(a), Some(b)) = (a[at..].first_chunk::<8>(), b[at..].first_chunk::<8>()) {
        let differ = u64::from_le_bytes(*a) ^ u64::from_le_bytes(*b);
        if differ != 0 {
            return at + (differ.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    at + a[at..].iter().zip(&b[at..]).take_while(|(a, b)| a == b).count()
}

fn row_len(row: u64) -> usize {
    8 - row.leading_zeros() as usize / 8
}

impl<const N: usize> Level<N> {
    const NEAR_MAX: usize = <Image<N> as Page>::NEAR_MAX;

    fn new(level: u8, low: Pair, link: u64, fill: u8) -> Level<N> {
        let limit = N * 8 * usize::from(fill.clamp(50, 100)) / 100;
        let prefix = low.key.len();
        let (entries, keys) = (Vec::with_capacity(N), Vec::with_capacity(N * 8));
        Level { level, low, link, entries, keys, prefix, bytes: 0, end: Pair::default(), limit }
    }

    fn key(&self, at: usize) -> &[u8] {
        let start = if at == 0 { 0 } else { self.entries[at - 1].end as usize };
        &self.keys[start..self.entries[at].end as usize]
    }

    /// Bytes of an entry with its slot; the same sum as `Page::entry_len` takes.
    fn entry_len(&self, key_len: usize, row: u64) -> usize {
        let key = if key_len > Self::NEAR_MAX { 8 } else { key_len.saturating_sub(self.prefix + 4) };
        SLOT + row_len(row) + key + if self.level > 0 { 8 } else { 0 }
    }

    fn fence_len((key, row): (&[u8], u64)) -> usize {
        row_len(row) + if key.len() > Self::NEAR_MAX { 8 } else { key.len() }
    }

    /// Whether the node of all gathered entries may end at `end`. REQUIRES that it lies behind them.
    fn fits(&mut self, end: (&[u8], u64)) -> bool {
        let low = &self.low.key[..self.prefix];
        if !end.0.starts_with(low) {
            self.shrink_prefix(shared_len(low, end.0));
        }
        HEADER + Self::fence_len(self.low.as_ref()) + Self::fence_len(end) + self.bytes <= self.limit
    }

    /// Whether the node of all gathered entries may be the last of its level: such a one has no prefix.
    fn fits_endless(&mut self) -> bool {
        self.shrink_prefix(0);
        HEADER + Self::fence_len(self.low.as_ref()) + self.bytes <= self.limit
    }

    fn shrink_prefix(&mut self, prefix: usize) {
        self.prefix = prefix;
        self.bytes = (0..self.entries.len()).map(|at| self.entry_len(self.key(at).len(), self.entries[at].row)).sum();
    }

    fn keep_end(&mut self, (key, row): (&[u8], u64)) {
        self.end.key.clear();
        self.end.key.extend_from_slice(key);
        self.end.row = row;
    }

    fn append(&mut self, key: &[u8], row: u64, child: u64) {
        self.keys.extend_from_slice(key);
        self.entries.push(Gathered { end: self.keys.len() as u32, row, child });
        // Its own share of the prefix is looked at with the next position, which shares no more.
        self.bytes += self.entry_len(key.len(), row);
    }

    /// Makes a leaf of all entries but the last, which begins the next one.
    fn end_leaf(&mut self) -> (Pair, u64, usize) {
        let last = self.entries.len().saturating_sub(1);
        base::invariant!(last > 0, "a leaf has room for one entry and two fences (NEAR_MAX)");
        let end = std::mem::take(&mut self.end);
        let row = self.entries[last].row;
        let key = self.key(last).to_vec();
        let node = self.end_node(last, Some(&end));
        self.begin(end, 0);
        self.append(&key, row, 0);
        node
    }

    /// Makes an inner node that ends at separator `at`, which goes up; its child begins the next node.
    fn end_at(&mut self, at: usize) -> (Pair, u64, usize) {
        let end = Pair { key: self.key(at).to_vec(), row: self.entries[at].row };
        let link = self.entries[at].child;
        let rest: Vec<_> = (at + 1..self.entries.len())
            .map(|at| (self.key(at).to_vec(), self.entries[at].row, self.entries[at].child))
            .collect();
        let node = self.end_node(at, Some(&end));
        self.begin(end, link);
        for (key, row, child) in rest {
            self.fits((&key, row));
            self.append(&key, row, child);
        }
        node
    }

    /// Makes a node of the first `count` entries; those gathered are forgotten.
    fn end_node(&mut self, count: usize, high: Option<&Pair>) -> (Pair, u64, usize) {
        let low = std::mem::take(&mut self.low);
        let image = Image::<N>::new(self.level, self.link, low.as_ref(), high.map(Pair::as_ref));
        let mut bytes = size_of::<Node<N>>() + image.fence_bytes();
        for (at, gathered) in self.entries.iter().enumerate().take(count) {
            let key = self.key(at);
            let far = (key.len() > Self::NEAR_MAX).then(|| FarKey::new(key));
            bytes += far.as_ref().map_or(0, |_| block_bytes(key.len()));
            let entry = Entry { key, row: gathered.row, child: gathered.child };
            let pushed = image.push(entry, far.map(FarKey::leak));
            base::invariant!(pushed, "a node was found to have room for its entries");
        }
        (low, Node::allocate(image), bytes)
    }

    fn begin(&mut self, low: Pair, link: u64) {
        self.entries.clear();
        self.keys.clear();
        (self.prefix, self.bytes) = (low.key.len(), 0);
        (self.low, self.link) = (low, link);
    }
}

impl<const N: usize> BTreeIndex<N> {
    /// Begins a part of the index at `low`, whose nodes are filled to `fill` hundredths (50 to 100).
    pub fn part(&self, low: &Boundary, fill: u8) -> PartBuilder<N> {
        let low = Pair { key: low.key.clone(), row: low.row.0 };
        let level = Level::new(0, low.clone(), 0, fill);
        let (nodes, budget) = (Vec::new(), self.budget().cloned());
        PartBuilder { part: IndexPart { low, high: None, nodes, entries: 0, bytes: 0, budget }, level }
    }

    /// Makes the parts, in order, the index. `false`, and nothing has changed, if the index has an entry or a node more than
    /// its root; the parts are dropped then.
    ///
    /// # Panics
    /// If the parts do not cover all keys without a gap.
    pub fn fill(&self, parts: Vec<IndexPart<N>>, fill: u8) -> bool {
        let Some(whole) = IndexPart::joined(parts, fill) else { return false };
        let guard = pin();
        let locked = retry(|| {
            let (node, version) = self.enter(&guard)?;
            let header = node.header();
            if header.level > 0 || header.count > 0 {
                node.check()?;
                return Ok(None);
            }
            let latch = RootLatch::lock(self.root(), version)?;
            Ok(Some((latch, node.lock()?)))
        });
        let Some((latch, empty)) = locked else { return false };
        let (root, entries, bytes) = whole.give();
        // What the parts have charged to the budget is not charged again.
        self.count_filled(entries, bytes);
        latch.set(root);
        empty.set_obsolete();
        let address = empty.node.address();
        drop(empty);
        self.count_bytes(0, size_of::<Node<N>>());
        // SAFETY: the root word no longer has it, and its latch made this happen once. An empty root has no far fences.
        unsafe { Node::<N>::retire(address, &guard) };
        true
    }
}

/// Makes the nodes above `nodes`, puts them in their place, and answers their bytes.
fn nodes_above<const N: usize>(level: u8, nodes: &mut Nodes, fill: u8) -> usize {
    let mut below = std::mem::take(nodes).into_iter();
    let Some((low, first)) = below.next() else { return 0 };
    let mut making = Level::<N>::new(level, low, first, fill);
    let mut total = 0;
    let mut take = |(low, node, bytes): (Pair, u64, usize)| {
        nodes.push((low, node));
        total += bytes;
    };
    for (separator, child) in below {
        work::beat(UNITS_PER_NODE);
        if !making.fits(separator.as_ref()) {
            take(making.end_at(making.entries.len() - 1));
            making.fits(separator.as_ref());
        }
        making.append(&separator.key, separator.row, child);
    }
    if !making.fits_endless() {
        // Not the last one: a node of the tree has a separator.
        take(making.end_at(making.entries.len() - 2));
    }
    let count = making.entries.len();
    take(making.end_node(count, None));
    total
}

impl<const N: usize> BTreeIndex<N> {
    /// The share of the leaves' bytes that is in use, for figures.
    pub fn leaf_fill(&self) -> f64 {
        let guard = pin();
        let mut totals = (0usize, 0usize);
        retry(|| {
            let (root, _) = self.enter(&guard)?;
            totals = (0, 0);
            sum_leaves(root, &guard, &mut totals)
        });
        totals.0 as f64 / totals.1.max(1) as f64
    }
}

fn sum_leaves<const N: usize>(
    node: super::node::Reading<'_, N>,
    guard: &crate::epoch::Guard,
    totals: &mut (usize, usize),
) -> Result<(), super::position::Restart> {
    let header = node.header();
    if header.level == 0 {
        totals.0 += node.live_bytes();
        totals.1 += N * 8;
        return node.check();
    }
    (0..=header.count).try_for_each(|at| sum_leaves(node.descend(at, guard)?, guard, totals))
}
