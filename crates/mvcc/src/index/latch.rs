//! The version latch of a node: even = free, odd = latched, top bit = obsolete.
//!
//! Responsible for: the orderings of optimistic reading, which make a sequence lock of relaxed words.
//! Pairing: [`read`]'s Acquire takes what [`unlock`]'s Release published. A reader that met a word of a later writer has,
//! by the Release fence in [`try_lock`] before the writer's first store and the Acquire fence in [`is_current`] after the
//! reader's last load, to see that writer's odd version, and so fails the check.

use super::position::Restart;
use crate::sync::{AtomicU64, Ordering, fence, spin};

const LATCHED: u64 = 1;
const OBSOLETE: u64 = 1 << 63;

/// Waits until nobody holds the latch and returns the version to check later.
///
/// # Errors
/// [`Restart`] if the node left the tree.
#[inline]
pub(super) fn read(latch: &AtomicU64) -> Result<u64, Restart> {
    let mut version = latch.load(Ordering::Acquire);
    let mut round = 0;
    while version & (LATCHED | OBSOLETE) != 0 {
        if version & OBSOLETE != 0 {
            return Err(Restart);
        }
        // Eight rounds, then the processor is given up: the holder may have lost its own.
        spin(round * 8);
        round += 1;
        version = latch.load(Ordering::Acquire);
    }
    Ok(version)
}

/// Whether all words loaded since [`read`] returned `version` belong to it.
#[inline]
pub(super) fn is_current(latch: &AtomicU64, version: u64) -> bool {
    fence(Ordering::Acquire);
    latch.load(Ordering::Relaxed) == version
}

/// Latches if nothing has changed since `version`.
///
/// # Errors
/// [`Restart`] if something has.
#[inline]
pub(super) fn try_lock(latch: &AtomicU64, version: u64) -> Result<(), Restart> {
    latch.compare_exchange(version, version | LATCHED, Ordering::Acquire, Ordering::Relaxed).map_err(|_| Restart)?;
    fence(Ordering::Release);
    Ok(())
}

/// Frees the latch under a new version.
#[inline]
pub(super) fn unlock(latch: &AtomicU64) {
    let version = latch.load(Ordering::Relaxed);
    latch.store(version + 1, Ordering::Release);
}

/// Frees the latch under the old version, because nothing was stored.
pub(super) fn unlock_unchanged(latch: &AtomicU64) {
    let version = latch.load(Ordering::Relaxed);
    latch.store(version - 1, Ordering::Release);
}

/// Frees the latch of a node that is no longer in the tree.
pub(super) fn unlock_obsolete(latch: &AtomicU64) {
    let version = latch.load(Ordering::Relaxed);
    latch.store((version + 1) | OBSOLETE, Ordering::Release);
}
