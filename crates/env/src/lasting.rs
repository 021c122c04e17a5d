//! Memory for what stays, in huge pages, apart from what statements work with.
//!
//! Rows and indexes are read at random and all over: in huge pages the processor has more of their translations at hand. Who first touches
//! a huge page waits until the kernel has found and cleared 2 MB of memory. That is 0.2 ms at best, and many times as long where memory is in
//! pieces, or where the host of a virtual machine has taken it back. A statement with much working memory would hold its core for a
//! step of that length again and again; in small pages the same memory costs as much, but in small steps.
//!
//! Responsible for: a range of addresses for what stays; keeping the allocator's other memory in small pages.
//! Not responsible for: what stays.
//! Invariants: blocks of the range are freed as any others, by any thread.

#![allow(unsafe_code)]

use std::alloc::Layout;
use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};
use std::{fs, io, ptr};

use libmimalloc_sys::{mi_is_in_heap_region, mi_option_set, mi_option_t};
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

use crate::allocator::{count_allocated, is_plain};

/// What ranges begin at, and are multiples of: as much as the allocator keeps one account of.
const ALIGNED: usize = 32 << 20;
/// The largest range. What the allocator notes about one of 16 GB does not fit into its own pieces.
const RANGE: usize = 15 << 30;
/// Ranges at most, so that a thread notes in one word which it has been in.
const RANGES: usize = u64::BITS as usize;
/// `mi_option_allow_thp`, which the crate has no name for.
const ALLOW_HUGE: mi_option_t = 43;

/// A heap of mimalloc, of all threads.
type Heap = c_void;
/// A thread's part of a heap.
type ThreadHeap = c_void;

// Version 3 of mimalloc, which the crate does not name in full.
unsafe extern "C" {
    fn mi_manage_os_memory_ex(
        start: *mut c_void,
        size: usize,
        is_committed: bool,
        is_pinned: bool,
        is_zero: bool,
        numa_node: c_int,
        exclusive: bool,
        arena: *mut *mut c_void,
    ) -> bool;
    fn mi_heap_new_in_arena(arena: *mut c_void) -> *mut Heap;
    fn mi_heap_theap(heap: *mut Heap) -> *mut ThreadHeap;
    fn mi_theap_malloc(heap: *mut ThreadHeap, size: usize) -> *mut c_void;
    fn mi_theap_malloc_aligned(heap: *mut ThreadHeap, size: usize, align: usize) -> *mut c_void;
    fn mi_theap_collect(heap: *mut ThreadHeap, force: bool);
}

/// A heap over each range; those after them are null. Release and Acquire: who sees one sees it initialized.
static HEAPS: [AtomicPtr<Heap>; RANGES] = [const { AtomicPtr::new(ptr::null_mut()) }; RANGES];

thread_local! {
    /// The thread's part of the heap that it allocates from; null before it has. mimalloc takes the parts away at the end of the thread, after
    /// what is dropped with the thread.
    static PART: Cell<*mut ThreadHeap> = const { Cell::new(ptr::null_mut()) };
    /// Which heap that is, and a bit for each that the thread has a part of.
    static NUMBER: Cell<(usize, u64)> = const { Cell::new((0, 0)) };
}

/// What stays.
pub enum Lasting {}

impl Lasting {
    /// From now on [`Lasting::allocate`] allocates in huge pages, in a range of so many bytes of address space, and everything else that is
    /// new to the process in small ones. To be called once, when the process has allocated little.
    ///
    /// # Errors
    /// The system's. [`io::ErrorKind::Unsupported`] where programs may not ask for huge pages, or have them without asking, and in
    /// programs whose allocator is another. Nothing is changed then.
    pub fn separate(bytes: u64) -> io::Result<()> {
        if !fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled")?.contains("[madvise]") {
            return Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "huge pages are not for programs that ask for them",
            ));
        }
        if fs::read_to_string("/proc/sys/vm/overcommit_memory")?.trim() == "2" {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "addresses count as memory"));
        }
        let some = Box::new(0u64);
        // SAFETY: any address may be asked for.
        if !unsafe { mi_is_in_heap_region(ptr::from_ref(&*some).cast()) } {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "the allocator is another"));
        }
        let others = mapping(ptr::from_ref(&*some).expose_provenance())?;
        let mut left = usize::try_from(bytes).unwrap_or(usize::MAX / 2).next_multiple_of(ALIGNED);
        for heap in &HEAPS {
            let len = left.min(RANGE);
            left -= len;
            match if len > 0 { new_heap(len) } else { break } {
                Ok(new) => heap.store(new, Ordering::Release),
                Err(error) if ptr::eq(heap, &HEAPS[0]) => return Err(error),
                // There is less room than there might be.
                Err(_) => break,
            }
        }
        // SAFETY: the advice changes nothing that the memory holds.
        unsafe { madvise(others.0, others.1, Advice::LinuxNoHugepage) }?;
        // SAFETY: may be called at any time, from any thread.
        unsafe { mi_option_set(ALLOW_HUGE, 0) };
        Ok(())
    }

    /// Memory for what stays, as [`std::alloc::alloc`] gives it: null if there is none. It is freed by [`std::alloc::dealloc`]. May be called by any thread.
    #[inline]
    pub fn allocate(layout: Layout) -> *mut u8 {
        let part = PART.get();
        let block = if part.is_null() { ptr::null_mut() } else { allocate_from(part, layout) };
        if block.is_null() { allocate_elsewhere(layout) } else { block }
    }
}

#[inline]
fn allocate_from(part: *mut ThreadHeap, layout: Layout) -> *mut u8 {
    let (size, align) = (layout.size(), layout.align());
    // SAFETY: the part is this thread's; any size and any alignment that is a power of two may be asked for.
    let block = unsafe {
        if is_plain(size, align) { mi_theap_malloc(part, size) } else { mi_theap_malloc_aligned(part, size, align) }
    };
    if !block.is_null() {
        count_allocated(size);
    }
    block.cast()
}

/// From the first range that has room, beginning with the thread's; from the global allocator if none has.
#[cold]
#[inline(never)]
fn allocate_elsewhere(layout: Layout) -> *mut u8 {
    let (own, mut mask) = NUMBER.get();
    for number in (own..RANGES).chain(0..own) {
        let heap = HEAPS[number].load(Ordering::Acquire);
        if heap.is_null() {
            continue;
        }
        // SAFETY: a heap stays for ever.
        let part = unsafe { mi_heap_theap(heap) };
        let block = if part.is_null() { ptr::null_mut() } else { allocate_from(part, layout) };
        mask |= 1 << number;
        if !block.is_null() {
            PART.set(part);
            NUMBER.set((number, mask));
            return block;
        }
    }
    NUMBER.set((own, mask));
    // SAFETY: the caller's layout; an empty block is as good as any to mimalloc.
    unsafe { std::alloc::alloc(layout) }
}

/// Gives the memory of what stays back as the allocator does with other memory, as far as it is this thread's.
pub(crate) fn collect(is_forced: bool) {
    let (_, mut mask) = NUMBER.get();
    while mask != 0 {
        let number = mask.trailing_zeros() as usize;
        mask &= mask - 1;
        // SAFETY: the thread has a part of this heap, and heaps stay for ever.
        unsafe { mi_theap_collect(mi_heap_theap(HEAPS[number].load(Ordering::Acquire)), is_forced) };
    }
}

/// A heap that allocates in a range of its own only, of so many bytes (a multiple of [`ALIGNED`]), where the kernel uses huge pages.
fn new_heap(len: usize) -> io::Result<*mut Heap> {
    let all = len + ALIGNED;
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    let mut arena = ptr::null_mut();
    // SAFETY: new memory, which nobody else has. From where the allocator has taken it, it stays for ever.
    unsafe {
        let range = mmap_anonymous(ptr::null_mut(), all, protection, MapFlags::PRIVATE | MapFlags::NORESERVE)?;
        let aligned = range.wrapping_byte_add(range.addr().next_multiple_of(ALIGNED) - range.addr());
        let advised = madvise(aligned, len, Advice::LinuxHugepage);
        if advised.is_err() || !mi_manage_os_memory_ex(aligned, len, true, false, true, -1, true, &raw mut arena) {
            munmap(range, all)?;
            advised?;
            return Err(io::Error::other("the allocator does not take the memory"));
        }
        let heap = mi_heap_new_in_arena(arena);
        if heap.is_null() { Err(io::ErrorKind::OutOfMemory.into()) } else { Ok(heap) }
    }
}

/// Where the mapping begins that has this address, and how long it is.
fn mapping(address: usize) -> io::Result<(*mut c_void, usize)> {
    let maps = fs::read_to_string("/proc/self/maps")?;
    let of_line = |line: &str| {
        let (start, end) = line.split_ascii_whitespace().next()?.split_once('-')?;
        let (start, end) = (usize::from_str_radix(start, 16).ok()?, usize::from_str_radix(end, 16).ok()?);
        (start..end).contains(&address).then(|| (ptr::with_exposed_provenance_mut(start), end - start))
    };
    maps.lines().find_map(of_line).ok_or_else(|| io::ErrorKind::NotFound.into())
}
