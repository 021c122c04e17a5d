//! Nodes in memory, and the three ways to look at one: optimistically, latched, and as a private image.
//!
//! Responsible for: allocating and freeing nodes, following addresses. With `far`, all of the index's unsafe code.
//! Words used below: an address is *current* when it was read from a node (or the root word) whose version was checked
//! afterwards, under a guard that is still alive.

use super::far::FarKey;
use super::latch;
use super::page::{Entry, HIGH, LATCH, LOW, Page, PageMut};
use super::position::Restart;
use crate::epoch::Guard;
use crate::memory::{block_bytes, boxed};
use crate::prefetch;
use crate::sync::{AtomicU64, Ordering};
use std::cell::Cell;

/// A node of `N` words. All sharing of its contents goes through atomics, so a reference is always sound; what the words
/// mean is another matter (`latch`).
#[repr(C, align(64))]
pub(super) struct Node<const N: usize> {
    words: [AtomicU64; N],
}

impl<const N: usize> Node<N> {
    const SHAPE: () = assert!(N.is_power_of_two() && N >= 32 && N <= 512, "12 bits of offset, masked word indexes");

    fn latch(&self) -> &AtomicU64 {
        &self.words[LATCH]
    }

    pub fn address(&self) -> u64 {
        std::ptr::from_ref(self).expose_provenance() as u64
    }

    /// A node of the tree with the words of `image`.
    pub fn allocate(image: Image<N>) -> u64 {
        const { Node::<N>::SHAPE };
        let words = image.words.each_ref().map(|word| AtomicU64::new(word.get()));
        words[LATCH].store(0, Ordering::Relaxed);
        image.leak();
        Box::into_raw(boxed(Node { words })).expose_provenance() as u64
    }

    /// The node at an address.
    ///
    /// # Safety
    /// The address is current, and the guard is the one it was read under.
    #[inline]
    pub unsafe fn at(address: u64, _guard: &Guard) -> &Node<N> {
        // SAFETY: a current address was in the tree after the guard began, nodes are retired only after they left the
        // tree, and retired nodes outlive all guards that were alive then.
        unsafe { &*std::ptr::with_exposed_provenance::<Node<N>>(address as usize) }
    }

    /// Frees a node when all guards of now have ended.
    ///
    /// # Safety
    /// The node has left the tree, and this is called once.
    pub unsafe fn retire(address: u64, guard: &Guard) {
        let free = move || {
            // SAFETY: allocated by `allocate`; by the caller's word nobody finds it any more, and those who had are gone.
            drop(unsafe { Box::from_raw(std::ptr::with_exposed_provenance_mut::<Node<N>>(address as usize)) });
        };
        // SAFETY: as above; an address is all that is captured.
        unsafe { guard.defer_unchecked(free) };
    }

    /// Frees a node and all below it.
    ///
    /// # Safety
    /// Nobody else uses the tree, and it is not used again.
    pub unsafe fn free_tree(address: u64) {
        // SAFETY: by the caller's word; the nodes of a tree are allocated by `allocate` and owned by one parent each.
        let node = unsafe { Box::from_raw(std::ptr::with_exposed_provenance_mut::<Node<N>>(address as usize)) };
        let page = Reading { node: &node, version: node.latch().load(Ordering::Relaxed) };
        for (address, len) in page.far_keys() {
            // SAFETY: N2, each far key belongs to one record or fence.
            drop(unsafe { FarKey::reclaim(address, len) });
        }
        let header = page.header();
        if header.level > 0 {
            for at in 0..=header.count {
                // SAFETY: as for this node.
                unsafe { Node::<N>::free_tree(page.child(at)) };
            }
        }
    }
}

/// Frees a far key when all guards of now have ended.
///
/// # Safety
/// The node that had it has let it go, under its latch, and this is called once.
pub(super) unsafe fn retire_far((address, len): (u64, usize), guard: &Guard) {
    // SAFETY: the caller's word, and readers that still have the address have older guards.
    let free = move || drop(unsafe { FarKey::reclaim(address, len) });
    // SAFETY: as above; address and length are all that is captured.
    unsafe { guard.defer_unchecked(free) };
}

/// An optimistic look at a node.
pub(super) struct Reading<'g, const N: usize> {
    pub node: &'g Node<N>,
    version: u64,
}

impl<const N: usize> Clone for Reading<'_, N> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<const N: usize> Copy for Reading<'_, N> {}

impl<'g, const N: usize> Reading<'g, N> {
    /// Waits for the latch and begins.
    ///
    /// # Errors
    /// [`Restart`] if the node left the tree.
    #[inline]
    pub fn begin(node: &'g Node<N>) -> Result<Reading<'g, N>, Restart> {
        Ok(Reading { node, version: latch::read(node.latch())? })
    }

    /// Begins at a child, and makes sure that it was still the right one by then.
    ///
    /// # Errors
    /// [`Restart`].
    #[inline]
    pub fn descend(&self, at: usize, guard: &'g Guard) -> Result<Reading<'g, N>, Restart> {
        let address = self.child(at);
        self.check()?;
        // SAFETY: checked in the line above.
        let child = Reading::begin(unsafe { Node::at(address, guard) })?;
        self.check()?;
        Ok(child)
    }

    /// Latches the node as it was read.
    ///
    /// # Errors
    /// [`Restart`] if it has changed.
    #[inline]
    pub fn lock(self) -> Result<Writing<'g, N>, Restart> {
        latch::try_lock(self.node.latch(), self.version)?;
        Ok(Writing { node: self.node, end: Cell::new(End::Changed) })
    }
}

impl<const N: usize> Page for Reading<'_, N> {
    const WORDS: usize = N;

    #[inline]
    fn word(&self, index: usize) -> u64 {
        self.node.words[index & (N - 1)].load(Ordering::Relaxed)
    }

    #[inline]
    fn prefetch(&self, index: usize) {
        prefetch::line(&raw const self.node.words[index & (N - 1)]);
    }

    #[inline]
    fn is_current(&self) -> bool {
        latch::is_current(self.node.latch(), self.version)
    }
}

/// A latched node; dropping this frees the latch.
pub(super) struct Writing<'g, const N: usize> {
    pub node: &'g Node<N>,
    end: Cell<End>,
}

/// What becomes of a latched node.
#[derive(Clone, Copy)]
enum End {
    Changed,
    Unchanged,
    Obsolete,
}

impl<const N: usize> Writing<'_, N> {
    /// Marks a node that has left the tree.
    pub fn set_obsolete(&self) {
        self.end.set(End::Obsolete);
    }

    /// Frees the latch of a node none of whose words was stored to; readings of it go on.
    pub fn leave(self) {
        self.end.set(End::Unchanged);
    }

    /// Replaces all words. Far keys of before are the caller's.
    pub fn install(&self, image: Image<N>) {
        for index in LATCH + 1..N {
            self.set_word(index, image.word(index));
        }
        image.leak();
    }
}

impl<const N: usize> Page for Writing<'_, N> {
    const WORDS: usize = N;

    #[inline]
    fn word(&self, index: usize) -> u64 {
        self.node.words[index & (N - 1)].load(Ordering::Relaxed)
    }

    #[inline]
    fn is_current(&self) -> bool {
        true
    }
}

impl<const N: usize> PageMut for Writing<'_, N> {
    #[inline]
    fn set_word(&self, index: usize, value: u64) {
        self.node.words[index & (N - 1)].store(value, Ordering::Relaxed);
    }
}

impl<const N: usize> Drop for Writing<'_, N> {
    fn drop(&mut self) {
        let latch = self.node.latch();
        match self.end.get() {
            End::Changed => latch::unlock(latch),
            End::Unchanged => latch::unlock_unchanged(latch),
            End::Obsolete => latch::unlock_obsolete(latch),
        }
    }
}

/// A node in the making. It owns the far keys of its fences until it becomes (part of) a node, and borrows those of
/// its entries from the nodes it is made of.
pub(super) struct Image<const N: usize> {
    words: [Cell<u64>; N],
    fences: [Option<FarKey>; 2],
}

impl<const N: usize> Image<N> {
    /// An empty image.
    pub fn new(level: u8, link: u64, low: (&[u8], u64), high: Option<(&[u8], u64)>) -> Image<N> {
        let own = |key: &[u8]| (key.len() > Self::NEAR_MAX).then(|| FarKey::new(key));
        let fences = [own(low.0), high.and_then(|high| own(high.0))];
        let far = [fences[0].as_ref().map(FarKey::address), fences[1].as_ref().map(FarKey::address)];
        let image = Image { words: [const { Cell::new(0) }; N], fences };
        image.format(level, link, low, high, far);
        image
    }

    /// Appends an entry, whose key stays at `far` if it is there; `false` if there is no room.
    pub fn push(&self, entry: Entry<'_>, far: Option<u64>) -> bool {
        let header = self.header();
        let fits = self.entry_len(header, entry.key, entry.row) <= header.gap();
        if fits {
            self.put(header.count, entry, far);
        }
        fits
    }

    /// Bytes of the far keys it owns.
    pub fn fence_bytes(&self) -> usize {
        self.far_keys_of_fences().map(|(_, len)| block_bytes(len)).sum()
    }

    fn leak(self) {
        self.fences.into_iter().flatten().for_each(|key| _ = key.leak());
    }
}

impl<const N: usize> Page for Image<N> {
    const WORDS: usize = N;

    fn word(&self, index: usize) -> u64 {
        self.words[index & (N - 1)].get()
    }

    fn is_current(&self) -> bool {
        true
    }
}

impl<const N: usize> PageMut for Image<N> {
    fn set_word(&self, index: usize, value: u64) {
        self.words[index & (N - 1)].set(value);
    }
}

/// The far keys of a node that is latched or private.
pub(super) trait FarKeys: Page {
    fn far_keys_of_fences(&self) -> impl Iterator<Item = (u64, usize)> {
        let header = self.header();
        let high = (!header.endless).then_some(HIGH);
        [Some(LOW), high].into_iter().flatten().filter_map(move |which| {
            let slot = self.fence_slot(which);
            self.far_address(header, slot, true)
        })
    }

    fn far_keys(&self) -> impl Iterator<Item = (u64, usize)> {
        let header = self.header();
        let entries = (0..header.count).filter_map(move |at| self.far_address(header, self.slot(at), false));
        self.far_keys_of_fences().chain(entries)
    }
}

impl<P: Page> FarKeys for P {}
