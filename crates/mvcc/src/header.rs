//! The row header: the head of the version chain, and the row's lock word.
//!
//! Responsible for: linking and unlinking versions.
//! Not responsible for: the meaning of the lock word (`locks::row`), choosing what to unlink (`garbage`).
//!
//! Invariants
//! - **H1** The pointer in `head` and the `older` links below it change only under the row's *exclusive lock*: a row lock of mode
//!   NoKeyUpdate or Update, or the collector's mark in the lock word. There is one such owner at a time.
//! - **H2** The two low bits of `head` are flags: versions are 8-aligned. `DIVERGED` is sticky: once versions of the row
//!   had different index keys, an index scan must compare the key of the version it sees with the entry's (rule R6).
//!   Clearing it when the old versions go would race with a scan that found the old entry before it was removed.

use crate::density::Density;
use crate::epoch::Guard;
use crate::memory::Account;
use crate::sync::{AtomicPtr, AtomicU64, Ordering};
use crate::version::{PrivateVersion, Version, VersionRef, free_chain};

/// Versions of this row had different index keys.
const DIVERGED: usize = 1;
/// The version below the newest one is in the garbage queue, or the tombstone that is the last of the row.
const QUEUED: usize = 2;
const FLAGS: usize = DIVERGED | QUEUED;

pub(crate) struct RowHeader {
    head: AtomicPtr<Version>,
    /// See `locks::row`.
    pub lock: AtomicU64,
}

#[cfg(not(shuttle))]
const _: () = assert!(size_of::<RowHeader>() == 16);

/// What `head` says at one moment.
#[derive(Clone, Copy)]
pub(crate) struct Head<'g> {
    pub newest: Option<VersionRef<'g>>,
    pub diverged: bool,
    pub queued: bool,
}

impl RowHeader {
    pub const fn new() -> RowHeader {
        RowHeader { head: AtomicPtr::new(std::ptr::null_mut()), lock: AtomicU64::new(0) }
    }

    #[inline]
    pub fn head<'g>(&self, guard: &'g Guard) -> Head<'g> {
        let tagged = self.head.load(Ordering::Acquire);
        let flags = tagged.addr() & FLAGS;
        // SAFETY: I1: loaded from a header under the guard.
        let newest = unsafe { VersionRef::new(tagged.map_addr(|a| a & !FLAGS), guard) };
        Head { newest, diverged: flags & DIVERGED != 0, queued: flags & QUEUED != 0 }
    }

    fn replace(&self, newest: *mut Version, set: usize, clear: usize) {
        // A loop because of `mark_diverged`, which needs no lock; the pointer itself cannot change meanwhile (H1).
        let mut now = self.head.load(Ordering::Relaxed);
        loop {
            let flags = (now.addr() & FLAGS & !clear) | set;
            let new = newest.map_addr(|a| a | flags);
            match self.head.compare_exchange_weak(now, new, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return,
                Err(other) => now = other,
            }
        }
    }

    /// Notes that versions of this row have different index keys. Needs no lock.
    pub fn mark_diverged(&self) {
        let mut now = self.head.load(Ordering::Relaxed);
        loop {
            let new = now.map_addr(|a| a | DIVERGED);
            match self.head.compare_exchange_weak(now, new, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return,
                Err(other) => now = other,
            }
        }
    }

    /// Links a version as the newest.
    ///
    /// # Safety
    /// The caller has the row exclusively (H1).
    pub unsafe fn push(&self, version: PrivateVersion, diverged: bool, account: &Account) {
        let older = self.head.load(Ordering::Relaxed).map_addr(|a| a & !FLAGS);
        let newest = version.link_above(older, account);
        self.replace(newest.as_ptr(), if diverged { DIVERGED } else { 0 }, QUEUED);
    }

    /// Links the first version of a row that is being loaded, and answers its bytes, which the caller counts. `None`, and the
    /// version is freed, if the row has one. Needs no lock: an empty chain has nothing that a reader could stand on. REQUIRES that
    /// nobody else loads the row: of two versions stored at once, one would never be freed.
    #[inline]
    pub fn fill(&self, version: PrivateVersion) -> Option<usize> {
        if !self.head.load(Ordering::Relaxed).is_null() {
            return None;
        }
        let bytes = version.size();
        // Release: publishes the version; pairs with the load in `head`.
        self.head.store(version.as_ptr(), Ordering::Release);
        version.leak();
        Some(bytes)
    }

    /// Unlinks the newest version and retires it; the reference stays good for the guard.
    ///
    /// # Safety
    /// The caller has the row exclusively (H1).
    pub unsafe fn pop(&self, account: &Account, guard: &Guard) {
        let Some(newest) = self.head(guard).newest else { return };
        let older = newest.older(guard).map_or(std::ptr::null_mut(), VersionRef::as_ptr);
        self.replace(older, 0, 0);
        // SAFETY: just unlinked, by the only one who may (H1), so once.
        unsafe { newest.retire(account, guard) }
    }

    /// Puts a copy of the newest version, if that is committed, in its place: the same in another block. Answers whether it did.
    ///
    /// # Safety
    /// The caller has the row exclusively (H1).
    pub unsafe fn relocate(&self, density: &mut Density, guard: &Guard) -> bool {
        let Some(newest) = self.head(guard).newest else { return false };
        let Some(copy) = newest.copy() else { return false };
        let bytes = copy.size();
        density.remove(newest.as_ptr().cast_const().cast(), bytes);
        density.add(copy.as_ptr().cast_const().cast(), bytes);
        self.replace(copy.as_ptr(), 0, 0);
        copy.leak();
        // SAFETY: just unlinked, by the only one who may (H1), so once. It keeps its own `older`, as in `unlink_below`.
        unsafe { newest.retire_uncounted(guard) }
        true
    }

    /// Unlinks and retires the version below `above`; returns the one that takes its place.
    ///
    /// # Safety
    /// The caller has the row exclusively (H1), and `above` is linked here.
    pub unsafe fn unlink_below<'g>(
        &self,
        above: VersionRef<'g>,
        account: &Account,
        guard: &'g Guard,
    ) -> Option<VersionRef<'g>> {
        let gone = above.older(guard)?;
        let next = gone.older(guard);
        // SAFETY: H1 by the caller. `gone` keeps its own `older`, so a reader that stands on it goes on to a version
        // that I1 covers for its guard.
        unsafe {
            above.set_older(next.map_or(std::ptr::null_mut(), VersionRef::as_ptr));
            gone.retire(account, guard);
        }
        next
    }

    /// Notes that what the newest version superseded is in the garbage queue, until there is a newer one.
    ///
    /// # Safety
    /// The caller has the row exclusively (H1).
    pub unsafe fn set_queued(&self) {
        let newest = self.head.load(Ordering::Relaxed).map_addr(|a| a & !FLAGS);
        self.replace(newest, QUEUED, 0);
    }

    /// Frees the chain.
    pub fn clear(&mut self) {
        let head = self.head.load(Ordering::Relaxed).map_addr(|a| a & !FLAGS);
        // SAFETY: `&mut self`: no reader can be here, and what is linked is not retired (I1).
        unsafe { free_chain(head) }
        self.head.store(std::ptr::null_mut(), Ordering::Relaxed);
    }
}
