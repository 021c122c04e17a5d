//! The tree: root, descent, point operations.

use super::mend::Mended;
use super::node::{FarKeys as _, Image, Node, Reading, Writing, retire_far};
use super::page::{Entry, HIGH, Header, LINK, Page, PageMut};
use super::position::{Direction, KeyRange, Position, Restart};
use super::{EntryBatch, KeyTooLong, MAX_KEY_LEN, OrderedIndex, RowIds, latch, scan};
use crate::epoch::{Guard, pin};
use crate::memory::{Memory, Padded, block_bytes};
use crate::sync::{AtomicI64, AtomicU64, Ordering, spin, stripe};
use base::RowId;
use std::sync::Arc;

const STRIPES: usize = 4;

/// A concurrent B+tree. `N` is the node's size in words of eight bytes: a power of two from 32 to 512.
pub struct BTreeIndex<const N: usize = 512> {
    root: Padded<Root>,
    /// Entries and bytes, per stripe. Statistics: Relaxed, they order nothing.
    counts: [Padded<[AtomicI64; 2]>; STRIPES],
    /// The leaf in which keys ascend, per stripe, or 0 (N5). Release by the holder of the leaf's latch; Acquire by those who
    /// follow it.
    fingers: [Padded<AtomicU64>; STRIPES],
    /// What the bytes are counted against as well, if anything.
    budget: Option<Arc<Memory>>,
}

/// Where the tree begins. `latch` guards `root` as a node's latch guards its words.
#[derive(Default)]
pub(super) struct Root {
    pub latch: AtomicU64,
    /// Release by the latch holder; Acquire by readers, who check the latch after.
    pub node: AtomicU64,
}

enum Inserted {
    New,
    Known,
    NoRoom,
}

/// What an insertion must not meet.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unless {
    /// The pair itself.
    Pair,
    /// A pair with the key.
    Key,
}

impl<const N: usize> BTreeIndex<N> {
    /// An empty index whose bytes no budget counts.
    pub fn new() -> BTreeIndex<N> {
        BTreeIndex::make(None)
    }

    /// An empty index whose nodes and far keys are charged to `budget` (rule R18) until it is dropped.
    pub fn charged_to(budget: Arc<Memory>) -> BTreeIndex<N> {
        BTreeIndex::make(Some(budget))
    }

    fn make(budget: Option<Arc<Memory>>) -> BTreeIndex<N> {
        let tree =
            BTreeIndex { root: Padded::default(), counts: Default::default(), fingers: Default::default(), budget };
        let root = Node::allocate(Image::<N>::new(0, 0, (b"", 0), None));
        tree.root.0.node.store(root, Ordering::Release);
        tree.count_bytes(size_of::<Self>() + size_of::<Node<N>>(), 0);
        tree
    }

    /// Counts anew entries and bytes, by looking at every node: what [`OrderedIndex::len`] and
    /// [`OrderedIndex::memory_bytes`] say, if nobody writes meanwhile.
    pub fn recount(&self) -> (usize, usize) {
        let guard = pin();
        retry(|| self.try_recount(&guard))
    }

    fn try_recount(&self, guard: &Guard) -> Result<(usize, usize), Restart> {
        let (mut entries, mut bytes) = (0, size_of::<Self>());
        let mut nodes = vec![self.enter(guard)?.0];
        while let Some(node) = nodes.pop() {
            let header = node.header();
            bytes += size_of::<Node<N>>() + node.far_keys().map(|(_, len)| block_bytes(len)).sum::<usize>();
            if header.level == 0 {
                entries += header.count;
            } else {
                for at in 0..=header.count {
                    nodes.push(node.descend(at, guard)?);
                }
            }
            node.check()?;
        }
        Ok((entries, bytes))
    }

    /// Leaves in which keys ascend.
    #[cfg(test)]
    pub(super) fn fingers(&self) -> impl Iterator<Item = u64> {
        self.fingers.iter().map(|finger| finger.0.load(Ordering::Acquire)).filter(|leaf| *leaf != 0)
    }

    pub(super) fn root(&self) -> &Root {
        &self.root.0
    }

    pub(super) fn count_bytes(&self, more: usize, less: usize) {
        let change = more as i64 - less as i64;
        self.count(1, change);
        if let Some(budget) = &self.budget {
            budget.charge(change);
        }
    }

    pub(super) fn budget(&self) -> Option<&Arc<Memory>> {
        self.budget.as_ref()
    }

    /// Counts entries and bytes that the budget knows of already.
    pub(super) fn count_filled(&self, entries: usize, bytes: usize) {
        self.count(0, entries as i64);
        self.count(1, bytes as i64);
    }

    fn count(&self, what: usize, change: i64) {
        self.counts[stripe() % STRIPES].0[what].fetch_add(change, Ordering::Relaxed);
    }

    fn total(&self, what: usize) -> usize {
        self.counts.iter().map(|s| s.0[what].load(Ordering::Relaxed)).sum::<i64>().max(0) as usize
    }

    /// Begins at the root; the second value is the version of the root's latch.
    #[inline]
    pub(super) fn enter<'g>(&'g self, guard: &'g Guard) -> Result<(Reading<'g, N>, u64), Restart> {
        let root = self.root();
        let version = latch::read(&root.latch)?;
        let address = root.node.load(Ordering::Acquire);
        // SAFETY: the word always holds the address of a node that was the root after the guard began: roots are
        // retired after they are replaced.
        let node = Reading::begin(unsafe { Node::<N>::at(address, guard) })?;
        if latch::is_current(&root.latch, version) { Ok((node, version)) } else { Err(Restart) }
    }

    /// The leaf that a position is routed to. With `Before`, a position equal to a separator goes to the left of it.
    #[inline]
    pub(super) fn leaf<'g>(&'g self, position: &Position<'_>, guard: &'g Guard) -> Result<Reading<'g, N>, Restart> {
        let (mut node, _) = self.enter(guard)?;
        loop {
            let header = node.header();
            if header.level == 0 {
                return Ok(node);
            }
            let at = node.find(header, position)?;
            node = node.descend(at, guard)?;
        }
    }

    /// As [`BTreeIndex::leaf`] of the inclusive position, without a descent if the thread's last key was near.
    #[inline]
    fn leaf_of_run<'g>(&'g self, position: &Position<'_>, guard: &'g Guard) -> Result<Reading<'g, N>, Restart> {
        let address = self.fingers[stripe() % STRIPES].0.load(Ordering::Acquire);
        if address != 0 {
            // SAFETY: the leaf was in the tree after the guard began: it is retired after all fingers have let go of it, and
            // none takes it up again, for it is obsolete (N5).
            let leaf = Reading::begin(unsafe { Node::<N>::at(address, guard) });
            if let Ok(leaf) = leaf
                && leaf.covers(position.key)?
            {
                return Ok(leaf);
            }
        }
        self.leaf(&position.inclusive(), guard)
    }

    /// Notes where the thread's keys ascend. REQUIRES the latch of `leaf`.
    #[inline]
    fn point_at(&self, leaf: &Writing<'_, N>, run: Run) {
        let address = if run.is_worth_it() { leaf.node.address() } else { 0 };
        let finger = &self.fingers[stripe() % STRIPES].0;
        if finger.load(Ordering::Relaxed) != address {
            finger.store(address, Ordering::Release);
        }
    }

    /// Makes all let go of a leaf that leaves the tree. REQUIRES its latch, and that it is obsolete when that is free.
    pub(super) fn forget(&self, leaf: &Writing<'_, N>) {
        let address = leaf.node.address();
        for finger in &self.fingers {
            let _ = finger.0.compare_exchange(address, 0, Ordering::AcqRel, Ordering::Relaxed);
        }
    }

    /// Inserts a pair. With [`Unless::Key`] the position is that before all pairs with the key.
    fn try_insert(
        &self,
        position: &Position<'_>,
        row: u64,
        unless: Unless,
        guard: &Guard,
    ) -> Result<Inserted, Restart> {
        let leaf = self.leaf_of_run(position, guard)?;
        let header = leaf.header();
        let run = Run::decode(leaf.word(LINK));
        let at = match run.len > 0 && is_between(&leaf, header, run.next, position)? {
            true => run.next,
            false => leaf.find(header, position)?,
        };
        let is_there = match unless {
            Unless::Pair => holds(&leaf, header, at, position)?,
            Unless::Key if at < header.count => leaf.has_key(header, at, position.key)?,
            // The key's rows may begin in the next leaf. Without it, any row of the key lies below the fence.
            Unless::Key => !header.endless && leaf.fence_has_key(HIGH, position.key)?,
        };
        if is_there {
            leaf.check()?;
            return Ok(Inserted::Known);
        }
        let leaf = leaf.lock()?;
        let entry = Entry { key: position.key, row, child: 0 };
        let Some(allocated) = leaf.insert(at, entry) else {
            leaf.leave();
            return Ok(Inserted::NoRoom);
        };
        let run = run.insert(at);
        leaf.set_word(LINK, run.encode());
        self.point_at(&leaf, run);
        if allocated > 0 {
            self.count_bytes(allocated, 0);
        }
        Ok(Inserted::New)
    }

    /// Inserts a pair, making room for it; `false` if there is one that it must not meet.
    fn insert_unless(&self, key: &[u8], row: RowId, unless: Unless) -> Result<bool, KeyTooLong> {
        if key.len() > MAX_KEY_LEN {
            return Err(KeyTooLong { len: key.len() });
        }
        let guard = pin();
        let position = Position::before(key, if unless == Unless::Key { 0 } else { row.0 });
        loop {
            match retry(|| self.try_insert(&position, row.0, unless, &guard)) {
                Inserted::Known => return Ok(false),
                Inserted::New => {
                    self.count(0, 1);
                    return Ok(true);
                }
                // One pass splits one node, so that the next passes find room higher up.
                Inserted::NoRoom => while retry(|| self.split_pass(&position, row.0, &guard)) == Mended::Yes {},
            }
        }
    }

    /// Returns whether the pair was there, and if so, whether its leaf has become too empty.
    fn try_remove(&self, position: &Position<'_>, guard: &Guard) -> Result<Option<bool>, Restart> {
        let leaf = self.leaf(&position.inclusive(), guard)?;
        let header = leaf.header();
        let at = leaf.find(header, position)?;
        if !holds(&leaf, header, at, position)? {
            leaf.check()?;
            return Ok(None);
        }
        let leaf = leaf.lock()?;
        if let Some(far) = leaf.take(at) {
            self.count_bytes(0, block_bytes(far.1));
            // SAFETY: the record is gone, and the latch kept others from taking it out too.
            unsafe { retire_far(far, guard) };
        }
        // Mending costs a descent and may be in vain (full neighbours), so it is tried now and then only.
        let count = leaf.header().count;
        Ok(Some(count % 8 == 0 && leaf.live_bytes() < N * 8 / 4))
    }

    fn try_get(&self, position: &Position<'_>, guard: &Guard, out: &mut RowIds) -> Result<Option<u64>, Restart> {
        let leaf = self.leaf(&position.inclusive(), guard)?;
        let header = leaf.header();
        let mut at = leaf.find(header, position)?;
        while at < header.count && leaf.has_key(header, at, position.key)? {
            out.push(RowId(leaf.row(leaf.slot(at))));
            at += 1;
        }
        // The key's rows go on in the next leaf only if that begins with the same key.
        let goes_on = at == header.count && !header.endless && leaf.fence_has_key(HIGH, position.key)?;
        let next = leaf.row(leaf.fence_slot(HIGH));
        leaf.check()?;
        Ok(goes_on.then_some(next))
    }
}

/// Whether entry `at` is the pair (key, row).
#[inline]
fn holds<P: Page>(leaf: &P, header: Header, at: usize, pair: &Position<'_>) -> Result<bool, Restart> {
    Ok(at < header.count && leaf.row(leaf.slot(at)) == pair.row && leaf.has_key(header, at, pair.key)?)
}

/// Whether a position lies right before slot `at`.
#[inline]
fn is_between<P: Page>(leaf: &P, header: Header, at: usize, position: &Position<'_>) -> Result<bool, Restart> {
    Ok((1..=header.count).contains(&at)
        && leaf.is_before(header, at - 1, position)?
        && (at == header.count || !leaf.is_before(header, at, position)?))
}

/// Calls `attempt` until what it read was consistent.
#[inline]
pub(super) fn retry<T>(mut attempt: impl FnMut() -> Result<T, Restart>) -> T {
    let mut round = 0;
    loop {
        if let Ok(value) = attempt() {
            return value;
        }
        spin(round * 8);
        round += 1;
    }
}

impl<const N: usize> OrderedIndex for BTreeIndex<N> {
    fn insert(&self, key: &[u8], row: RowId) -> Result<bool, KeyTooLong> {
        self.insert_unless(key, row, Unless::Pair)
    }

    fn insert_alone(&self, key: &[u8], row: RowId, others: &mut RowIds) -> Result<bool, KeyTooLong> {
        if self.insert_unless(key, row, Unless::Key)? {
            return Ok(true);
        }
        let before = others.len();
        self.get(key, others);
        // They have gone meanwhile, or only a fence has the key.
        if others.len() == before { self.insert(key, row) } else { Ok(false) }
    }

    fn remove(&self, key: &[u8], row: RowId) -> bool {
        if key.len() > MAX_KEY_LEN {
            return false;
        }
        let guard = pin();
        let position = Position::before(key, row.0);
        let Some(sparse) = retry(|| self.try_remove(&position, &guard)) else { return false };
        self.count(0, -1);
        if sparse {
            while retry(|| self.merge_pass(&position, &guard)) == Mended::Yes {}
        }
        true
    }

    fn scan(
        &self,
        range: &KeyRange<'_>,
        direction: Direction,
        resume: Option<(&[u8], RowId)>,
        limit: usize,
        out: &mut EntryBatch,
    ) -> bool {
        let guard = pin();
        scan::scan(self, range, direction, resume, limit, out, &guard)
    }

    fn get(&self, key: &[u8], out: &mut RowIds) {
        if key.len() > MAX_KEY_LEN {
            return;
        }
        let guard = pin();
        let mut next = Some(0);
        while let Some(row) = next {
            let before = out.len();
            next = retry(|| {
                out.truncate(before);
                self.try_get(&Position::before(key, row), &guard, out)
            });
        }
    }

    fn len(&self) -> usize {
        self.total(0)
    }

    fn memory_bytes(&self) -> usize {
        self.total(1)
    }
}

impl<const N: usize> Default for BTreeIndex<N> {
    fn default() -> Self {
        BTreeIndex::new()
    }
}

impl<const N: usize> Drop for BTreeIndex<N> {
    fn drop(&mut self) {
        if let Some(budget) = &self.budget {
            budget.charge(-(self.memory_bytes() as i64));
        }
        // SAFETY: `&mut self` says that nobody else is here, and this is the end of it.
        unsafe { Node::<N>::free_tree(self.root.0.node.load(Ordering::Acquire)) };
    }
}

/// What a leaf remembers of its insertions, to tell keys that ascend from random ones.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    /// The slot that continues the run.
    next: usize,
    /// Insertions in a row, each right behind the one before.
    pub len: usize,
}

impl Run {
    pub fn decode(word: u64) -> Run {
        Run { next: word as usize & 0xffff, len: (word >> 16) as usize & 0xffff }
    }

    pub fn encode(self) -> u64 {
        self.next as u64 | (self.len.min(0xffff) as u64) << 16
    }

    fn insert(self, at: usize) -> Run {
        Run { next: at + 1, len: if at == self.next { self.len + 1 } else { 0 } }
    }

    /// The run as it goes on in a new leaf.
    pub fn moved(self) -> Run {
        Run { next: 0, ..self }
    }

    /// Whether an insertion at `at` goes on with a run worth the name.
    pub fn expects(self, at: usize) -> bool {
        at == self.next && self.is_worth_it()
    }

    fn is_worth_it(self) -> bool {
        self.len >= 8
    }
}
