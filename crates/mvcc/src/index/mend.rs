//! Splitting nodes that are too full and merging nodes that are too empty.
//!
//! Responsible for: one structural change per pass, top-down, with the parent latched (N4); where to split.
//! Not responsible for: repeating passes until the operation succeeds (`tree`).
//! A split needs room for a separator in the parent; since every pass splits the *topmost* node without room on the way,
//! there is some. Merging is an offer: it is declined when the result would not fit, for instance because the merged
//! range has a shorter prefix. An empty leaf between such neighbours stays until they shrink or it is filled.

use super::latch;
use super::node::{FarKeys, Image, Node, Reading, Writing, retire_far};
use super::page::{Entry, HIGH, Header, LINK, LOW, Page, PageMut};
use super::position::{Position, Restart};
use super::tree::{BTreeIndex, Root, Run};
use crate::epoch::Guard;
use crate::memory::block_bytes;
use crate::sync::Ordering;
use std::ops::Range;

/// Whether a pass changed the tree.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Mended {
    Yes,
    No,
}

/// A pair (key, row) of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Pair {
    pub key: Vec<u8>,
    pub row: u64,
}

impl Pair {
    pub fn as_ref(&self) -> (&[u8], u64) {
        (&self.key, self.row)
    }

    /// The shortest pair s with `left` < s <= `right`.
    fn between(left: &Pair, right: Pair) -> Pair {
        let shared = left.key.iter().zip(&right.key).take_while(|(a, b)| a == b).count();
        if shared == right.key.len() {
            return right;
        }
        let mut key = right.key;
        key.truncate(shared + 1);
        Pair { key, row: 0 }
    }
}

/// The latch of the root word; dropping it frees it.
pub(super) struct RootLatch<'a>(&'a Root);

impl<'a> RootLatch<'a> {
    pub fn lock(root: &'a Root, version: u64) -> Result<RootLatch<'a>, Restart> {
        latch::try_lock(&root.latch, version)?;
        Ok(RootLatch(root))
    }

    /// Makes the node at this address the root.
    pub fn set(&self, node: u64) {
        self.0.node.store(node, Ordering::Release);
    }
}

impl Drop for RootLatch<'_> {
    fn drop(&mut self) {
        latch::unlock(&self.0.latch);
    }
}

/// The two halves of a node, and what goes between them.
struct Halves<const N: usize> {
    left: Image<N>,
    right: Image<N>,
    separator: Pair,
    /// The separator's far key, if an inner node gives one up with it.
    far: Option<(u64, usize)>,
}

impl<const N: usize> BTreeIndex<N> {
    const BYTES: usize = N * 8;

    /// Splits the topmost node on the way to `position` that has no room for what may come there: the pair of its key and `row`.
    pub(super) fn split_pass(&self, position: &Position<'_>, row: u64, guard: &Guard) -> Result<Mended, Restart> {
        let route = position.inclusive();
        let (mut node, root_version) = self.enter(guard)?;
        let mut parent: Option<(Reading<'_, N>, usize)> = None;
        loop {
            let header = node.header();
            let need = match header.level {
                0 => node.entry_len(header, position.key, row),
                _ => Reading::<N>::SEPARATOR_MAX,
            };
            if need > header.room() {
                self.split(parent, root_version, node, position, guard)?;
                return Ok(Mended::Yes);
            }
            if header.level == 0 {
                node.check()?;
                return Ok(Mended::No);
            }
            let at = node.find(header, &route)?;
            let child = node.descend(at, guard)?;
            parent = Some((node, at));
            node = child;
        }
    }

    fn split(
        &self,
        parent: Option<(Reading<'_, N>, usize)>,
        root_version: u64,
        node: Reading<'_, N>,
        position: &Position<'_>,
        guard: &Guard,
    ) -> Result<(), Restart> {
        match parent {
            Some((parent, at)) => {
                let parent = parent.lock()?;
                let node = node.lock()?;
                let (separator, right) = self.split_latched(&node, position, guard)?;
                let entry = Entry { key: &separator.key, row: separator.row, child: right };
                let allocated = parent.insert(at, entry).expect("the pass saw room in the parent, and latched that");
                self.count_bytes(allocated, 0);
            }
            None => {
                let root = RootLatch::lock(self.root(), root_version)?;
                let node = node.lock()?;
                let level = node.header().level + 1;
                let (separator, right) = self.split_latched(&node, position, guard)?;
                let image = Image::<N>::new(level, node.node.address(), (b"", 0), None);
                let entry = Entry { key: &separator.key, row: separator.row, child: right };
                let allocated = image.insert(0, entry).expect("an empty node has room");
                self.count_bytes(size_of::<Node<N>>() + allocated, 0);
                root.set(Node::allocate(image));
            }
        }
        Ok(())
    }

    /// Makes two nodes of one and returns what the parent has to learn.
    fn split_latched(
        &self,
        node: &Writing<'_, N>,
        position: &Position<'_>,
        guard: &Guard,
    ) -> Result<(Pair, u64), Restart> {
        let header = node.header();
        let low = fence(node, LOW)?;
        let high = if header.endless { None } else { Some(fence(node, HIGH)?) };
        let bounds = (&low, high.as_ref());
        let halves = match header.level {
            0 => self.split_leaf(node, header, bounds, position)?,
            _ => self.split_inner(node, header, bounds)?,
        };
        let Halves { left, right, separator, far } = halves;
        let old: Vec<_> = node.far_keys_of_fences().chain(far).collect();
        let freed = old.iter().map(|far| block_bytes(far.1)).sum();
        self.count_bytes(size_of::<Node<N>>() + left.fence_bytes() + right.fence_bytes(), freed);
        let right = Node::allocate(right);
        node.install(left);
        for far in old {
            // SAFETY: `install` has replaced the fences, and a separator that moves up is copied there.
            unsafe { retire_far(far, guard) };
        }
        Ok((separator, right))
    }

    fn split_leaf(
        &self,
        node: &Writing<'_, N>,
        header: Header,
        (low, high): (&Pair, Option<&Pair>),
        position: &Position<'_>,
    ) -> Result<Halves<N>, Restart> {
        let run = Run::decode(node.word(LINK));
        let at = node.find(header, position)?;
        let at_end = header.endless && at * 16 >= header.count * 15;
        let ascending = (at > 0 && (at_end || run.expects(at))).then_some(at);
        // Ascending keys leave a full leaf behind; others leave two halves. The rest is for odd sizes of keys. A run amid
        // others first gets the room of those behind it, and then goes on without them.
        let goes_left = ascending.is_some_and(|at| !at_end && at < header.count);
        let cuts = ascending.into_iter().chain([middle(node, header)]).chain(1..header.count);
        for (choice, cut) in cuts.enumerate() {
            let runs_on = ascending.is_some() && choice == 0;
            let new = || Pair { key: position.key.to_vec(), row: position.row };
            let separator = match runs_on {
                true if goes_left => Pair::between(&new(), pair(node, header, cut)?),
                true => Pair::between(&pair(node, header, cut - 1)?, new()),
                false => Pair::between(&pair(node, header, cut - 1)?, pair(node, header, cut)?),
            };
            let links = match runs_on {
                true if goes_left => (run.encode(), 0),
                true => (0, run.moved().encode()),
                false => (0, 0),
            };
            let left = build(node, 0..cut, links.0, low.as_ref(), Some(separator.as_ref()))?;
            let right = build(node, cut..header.count, links.1, separator.as_ref(), high.map(Pair::as_ref))?;
            if let (Some(left), Some(right)) = (left, right) {
                return Ok(Halves { left, right, separator, far: None });
            }
        }
        unreachable!("a leaf without room has entries enough that some cut leaves both sides smaller (NEAR_MAX)")
    }

    fn split_inner(
        &self,
        node: &Writing<'_, N>,
        header: Header,
        (low, high): (&Pair, Option<&Pair>),
    ) -> Result<Halves<N>, Restart> {
        let right_edge = header.endless.then_some(header.count - 1 - header.count / 16);
        for cut in right_edge.into_iter().chain([middle(node, header)]).chain(0..header.count) {
            let separator = pair(node, header, cut)?;
            let left = build(node, 0..cut, node.child(0), low.as_ref(), Some(separator.as_ref()))?;
            let rest = cut + 1..header.count;
            let right = build(node, rest, node.child(cut + 1), separator.as_ref(), high.map(Pair::as_ref))?;
            if let (Some(left), Some(right)) = (left, right) {
                let far = node.far_address(header, node.slot(cut), false);
                return Ok(Halves { left, right, separator, far });
            }
        }
        unreachable!("an inner node without room has three separators or more (NEAR_MAX)")
    }

    /// Merges the topmost sparse node on the way to `position` with a neighbour, or takes away a root with one child.
    pub(super) fn merge_pass(&self, position: &Position<'_>, guard: &Guard) -> Result<Mended, Restart> {
        let route = position.inclusive();
        let (mut node, root_version) = self.enter(guard)?;
        let header = node.header();
        if header.level > 0 && header.count == 0 {
            return self.lower_root(root_version, node, guard);
        }
        loop {
            let header = node.header();
            if header.level == 0 {
                node.check()?;
                return Ok(Mended::No);
            }
            let at = node.find(header, &route)?;
            let child = node.descend(at, guard)?;
            if child.live_bytes() < Self::BYTES / 4 {
                let lefts = [Some(at).filter(|&at| at < header.count), at.checked_sub(1)];
                for left in lefts.into_iter().flatten() {
                    if self.merge(node, left, guard)? == Mended::Yes {
                        return Ok(Mended::Yes);
                    }
                }
            }
            node = child;
        }
    }

    fn lower_root(&self, version: u64, node: Reading<'_, N>, guard: &Guard) -> Result<Mended, Restart> {
        let root = RootLatch::lock(self.root(), version)?;
        let node = node.lock()?;
        root.set(node.child(0));
        node.set_obsolete();
        self.count_bytes(0, size_of::<Node<N>>());
        // SAFETY: the root word no longer has it; the latch on it made this happen once. Roots have no far fences.
        unsafe { Node::<N>::retire(node.node.address(), guard) };
        Ok(Mended::Yes)
    }

    /// Merges child `at` of `parent` with the one after it, if the result fits.
    fn merge(&self, parent: Reading<'_, N>, at: usize, guard: &Guard) -> Result<Mended, Restart> {
        let left = parent.descend(at, guard)?;
        let right = parent.descend(at + 1, guard)?;
        if left.live_bytes() + right.live_bytes() > Self::BYTES * 3 / 4 {
            return Ok(Mended::No);
        }
        let parent = parent.lock()?;
        let left = left.lock()?;
        let right = right.lock()?;
        let slot = parent.slot(at);
        let far = parent.far_address(parent.header(), slot, false);
        let Some(image) = merged(&left, &right, far)? else {
            [parent, left, right].into_iter().for_each(Writing::leave);
            return Ok(Mended::No);
        };
        parent.take(at);
        let mut old: Vec<_> = left.far_keys_of_fences().chain(right.far_keys_of_fences()).collect();
        if left.header().level == 0 {
            old.extend(far);
        }
        let freed: usize = old.iter().map(|far| block_bytes(far.1)).sum();
        self.count_bytes(image.fence_bytes(), freed + size_of::<Node<N>>());
        left.install(image);
        self.forget(&right);
        right.set_obsolete();
        for far in old {
            // SAFETY: no node has these fences, nor this separator, any more; the latches made this happen once.
            unsafe { retire_far(far, guard) };
        }
        // SAFETY: the parent, latched, no longer has it.
        unsafe { Node::<N>::retire(right.node.address(), guard) };
        Ok(Mended::Yes)
    }
}

/// The image of two neighbours in one; inner nodes pull the separator down, with its far key.
fn merged<const N: usize>(
    left: &Writing<'_, N>,
    right: &Writing<'_, N>,
    far: Option<(u64, usize)>,
) -> Result<Option<Image<N>>, Restart> {
    let (low, middle) = (fence(left, LOW)?, fence(right, LOW)?);
    let high = if right.header().endless { None } else { Some(fence(right, HIGH)?) };
    let header = left.header();
    let Some(image) = build(left, 0..header.count, left.word(LINK), low.as_ref(), high.as_ref().map(Pair::as_ref))?
    else {
        return Ok(None);
    };
    if header.level > 0 {
        let entry = Entry { key: &middle.key, row: middle.row, child: right.child(0) };
        if !image.push(entry, far.map(|far| far.0)) {
            return Ok(None);
        }
    } else {
        image.set_word(LINK, 0);
    }
    Ok(append(&image, right, 0..right.header().count)?.then_some(image))
}

fn fence<P: Page>(page: &P, which: usize) -> Result<Pair, Restart> {
    let mut key = Vec::new();
    let row = page.fence_into(which, &mut key)?;
    Ok(Pair { key, row })
}

fn pair<P: Page>(page: &P, header: Header, at: usize) -> Result<Pair, Restart> {
    let (mut prefix, mut key) = (Vec::new(), Vec::new());
    page.prefix_into(header, &mut prefix)?;
    page.key_into(header, page.slot(at), &prefix, &mut key)?;
    Ok(Pair { key, row: page.row(page.slot(at)) })
}

/// The slot that starts the second half of the bytes.
fn middle<P: Page>(page: &P, header: Header) -> usize {
    let len = |at| page.record_len_at(header, at);
    let total: usize = (0..header.count).map(len).sum();
    let mut sum = 0;
    let first = (0..header.count).position(|at| {
        sum += len(at);
        sum * 2 >= total
    });
    first.unwrap_or(0).clamp(1, header.count.max(2) - 1)
}

/// An image with some entries of a latched node; `None` if they do not fit.
fn build<const N: usize>(
    from: &Writing<'_, N>,
    entries: Range<usize>,
    link: u64,
    low: (&[u8], u64),
    high: Option<(&[u8], u64)>,
) -> Result<Option<Image<N>>, Restart> {
    let image = Image::new(from.header().level, link, low, high);
    Ok(append(&image, from, entries)?.then_some(image))
}

fn append<const N: usize>(image: &Image<N>, from: &Writing<'_, N>, entries: Range<usize>) -> Result<bool, Restart> {
    let header = from.header();
    let (mut prefix, mut key) = (Vec::new(), Vec::new());
    from.prefix_into(header, &mut prefix)?;
    for at in entries {
        let slot = from.slot(at);
        if header.level == 0 && image.push_short(from, header, slot) {
            continue;
        }
        key.clear();
        from.key_into(header, slot, &prefix, &mut key)?;
        let child = if header.level == 0 { 0 } else { from.child(at + 1) };
        let far = from.far_address(header, slot, false).map(|far| far.0);
        if !image.push(Entry { key: &key, row: from.row(slot), child }, far) {
            return Ok(false);
        }
    }
    Ok(true)
}
