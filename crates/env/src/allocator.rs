//! The memory allocator of the binary: mimalloc, asked the cheapest way.
//!
//! The crate `mimalloc` asks with an alignment always, which is a detour for every allocation above a kilobyte and for each
//! that finds its page's free list empty. Its plain functions align as far as a value of that size can need.
//!
//! What the process has allocated is counted: each thread counts for itself and hands its sums over now and then, so that an
//! allocation costs two more instructions. What is counted is what was asked for, not what the allocator's classes round it to.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;
use std::ffi::{c_long, c_void};
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use libmimalloc_sys::{
    mi_collect, mi_free, mi_malloc, mi_malloc_aligned, mi_option_set_default, mi_option_t, mi_realloc,
    mi_realloc_aligned, mi_zalloc, mi_zalloc_aligned,
};

use crate::lasting;

/// mimalloc as the global allocator.
pub struct Allocator;

/// A thread hands over what it has allocated, or freed, when it is so much.
const HAND_OVER: i64 = 256 << 10;

/// What threads have handed over: allocated less freed. Relaxed: a statistic.
static HEAP: AtomicI64 = AtomicI64::new(0);

thread_local! {
    /// What may be allocated, and freed, before that is handed over. What a thread has not handed over at its end is lost.
    static ALLOCATED: Cell<i64> = const { Cell::new(HAND_OVER) };
    static FREED: Cell<i64> = const { Cell::new(HAND_OVER) };
}

/// Bytes that the process has allocated and not freed, of sizes asked for; off by half a megabyte for each thread at most.
pub fn heap_bytes() -> u64 {
    HEAP.load(Ordering::Relaxed).max(0) as u64
}

#[inline]
pub(crate) fn count_allocated(bytes: usize) {
    let left = ALLOCATED.get().wrapping_sub(bytes as i64);
    ALLOCATED.set(left);
    if left < 0 {
        hand_over_allocated();
    }
}

#[inline]
fn count_freed(bytes: usize) {
    let left = FREED.get().wrapping_sub(bytes as i64);
    FREED.set(left);
    if left < 0 {
        hand_over_freed();
    }
}

#[cold]
#[inline(never)]
fn hand_over_allocated() {
    HEAP.fetch_add(HAND_OVER - ALLOCATED.replace(HAND_OVER), Ordering::Relaxed);
}

#[cold]
#[inline(never)]
fn hand_over_freed() {
    HEAP.fetch_sub(HAND_OVER - FREED.replace(HAND_OVER), Ordering::Relaxed);
}

/// `mi_option_purge_delay`, in milliseconds, which the crate has no name for.
const PURGE_DELAY: mi_option_t = 15;

/// From now on free memory stays with the process for so long, unless the environment says otherwise (`MIMALLOC_PURGE_DELAY`).
pub fn keep_free_memory(time: Duration) {
    // SAFETY: may be called at any time, from any thread.
    unsafe { mi_option_set_default(PURGE_DELAY, time.as_millis() as c_long) }
}

/// Gives back to the system what has been free for long enough ([`keep_free_memory`]), of all threads: by itself mimalloc looks for that only when a
/// thread asks for more memory than it has at hand, which after a large transaction may be never. Visits the pages of the
/// calling thread, so it is for threads that have few.
pub fn give_back() {
    // SAFETY: may be called at any time, from any thread.
    unsafe { mi_collect(false) }
    lasting::collect(false);
}

/// As [`give_back`], at once and whatever the time that it has been free. For when memory is short.
pub fn give_back_all() {
    // SAFETY: may be called at any time, from any thread.
    unsafe { mi_collect(true) }
    lasting::collect(true);
}

/// What mimalloc aligns every block of at least this size to.
const ALIGNED: usize = 16;

/// Whether any block of this size is aligned enough: mimalloc aligns those of 16 bytes and more to 16, smaller ones to 8.
#[inline]
pub(crate) fn is_plain(size: usize, align: usize) -> bool {
    align <= ALIGNED && align <= size
}

// SAFETY: mimalloc's functions are an allocator: blocks are disjoint, of at least the size asked for, stay until they are
// freed, may be freed by any thread, and null says that there is no memory. Alignment is `is_plain`'s or asked for.
unsafe impl GlobalAlloc for Allocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let (size, align) = (layout.size(), layout.align());
        count_allocated(size);
        // SAFETY: any size and any alignment that is a power of two may be asked for.
        unsafe { if is_plain(size, align) { mi_malloc(size) } else { mi_malloc_aligned(size, align) }.cast() }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let (size, align) = (layout.size(), layout.align());
        count_allocated(size);
        // SAFETY: as in `alloc`.
        unsafe { if is_plain(size, align) { mi_zalloc(size) } else { mi_zalloc_aligned(size, align) }.cast() }
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        count_freed(layout.size());
        // SAFETY: the caller's promise: a block of this allocator, not freed before.
        unsafe { mi_free(block.cast::<c_void>()) }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let (block, align) = (block.cast::<c_void>(), layout.align());
        count_allocated(size);
        count_freed(layout.size());
        // SAFETY: as in `dealloc`, and any new size may be asked for.
        unsafe {
            if is_plain(size, align) { mi_realloc(block, size) } else { mi_realloc_aligned(block, size, align) }.cast()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_memory_is_kept_as_long_as_asked() {
        // SAFETY: as in `keep_free_memory`.
        let delay = || unsafe { libmimalloc_sys::mi_option_get(PURGE_DELAY) };
        assert_eq!(delay(), 1000, "another default: is the option another one?");
        keep_free_memory(Duration::from_millis(1234));
        assert_eq!(delay(), 1234);
    }

    #[test]
    fn what_is_allocated_is_counted() {
        const LARGE: usize = 1 << 30;
        let layout = Layout::from_size_align(LARGE, 8).unwrap();
        // Other tests take and free memory beside this one, but no such amounts.
        let half = LARGE as u64 / 2;
        let before = heap_bytes();
        // SAFETY: the block is freed once, with the size that it has then.
        unsafe {
            let block = Allocator.alloc(layout);
            assert!(heap_bytes() > before + half);
            let block = Allocator.realloc(block, layout, 16);
            assert!(heap_bytes() < before + half);
            Allocator.dealloc(block, Layout::from_size_align(16, 8).unwrap());
        }
    }

    #[test]
    fn blocks_are_aligned_as_asked_and_keep_what_they_hold() {
        for align in [1, 2, 4, 8, 16, 32, 64, 128, 4096] {
            for size in [1usize, 3, 8, 15, 16, 24, 40, 100, 384, 1000, 1352, 5000, 70_000] {
                let layout = Layout::from_size_align(size, align).unwrap();
                let grown = Layout::from_size_align(3 * size, align).unwrap();
                // SAFETY: each block is used within its size and freed once.
                unsafe {
                    let block = Allocator.alloc_zeroed(layout);
                    assert!(block.addr().is_multiple_of(align) && (0..size).all(|at| *block.add(at) == 0));
                    block.write_bytes(7, size);
                    let block = Allocator.realloc(block, layout, grown.size());
                    assert!(block.addr().is_multiple_of(align) && (0..size).all(|at| *block.add(at) == 7));
                    Allocator.dealloc(block, grown);
                    let block = Allocator.alloc(layout);
                    assert!(block.addr().is_multiple_of(align));
                    Allocator.dealloc(block, layout);
                }
            }
        }
    }
}
