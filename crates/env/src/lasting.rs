//! Memory for what stays, in huge pages, apart from what statements work with.
//!
//! Rows and indexes are read at random and all over: in huge pages the processor has more of their translations at hand. Who first touches
//! a huge page waits until the kernel has found and cleared 2 MB of memory. That is 0.2 ms at best, and many times as long where memory is in
//! pieces, or where the host of a virtual machine has taken it back. A statement with much working memory would hold its core for a
//! step of that length again and again; in small pages the same memory costs as much, but in small steps.
//!
//! Responsible for: ranges of addresses for what stays; touching their next pages on a thread of its own, before the others need them; keeping the
//! allocator's other memory in small pages.
//! Not responsible for: what stays.
//! Invariants: blocks of the range are freed as any others, by any thread.

#![allow(unsafe_code)]

use std::alloc::Layout;
use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::thread::{self, Thread};
use std::{fs, io, mem, ptr};

use libmimalloc_sys::{mi_is_in_heap_region, mi_option_set, mi_option_t};
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

use crate::allocator::{count_allocated, is_plain};
use crate::text::{HUGE, addresses, huge_pages_setting};

/// What ranges begin at, and are multiples of: as much as the allocator keeps one account of.
const ALIGNED: usize = 32 << 20;
/// The largest range. What the allocator notes about one of 16 GB does not fit into its own pieces.
const RANGE: usize = 15 << 30;
/// Ranges at most, so that a thread notes in one word which it has been in.
const RANGES_MAX: usize = u64::BITS as usize;
/// `mi_option_allow_thp`, which the crate has no name for.
const ALLOW_HUGE: mi_option_t = 43;

/// A heap of mimalloc, of all threads.
type Heap = c_void;
/// A thread's part of a heap.
type ThreadHeap = c_void;

// Version 3 of mimalloc, which the crate does not name in full.
unsafe extern "C" {
    fn mi_manage_memory(
        start: *mut c_void,
        size: usize,
        is_committed: bool,
        is_pinned: bool,
        is_zero: bool,
        numa_node: c_int,
        exclusive: bool,
        commit: extern "C" fn(bool, *mut c_void, usize, *mut bool, *mut c_void) -> bool,
        argument: *mut c_void,
        arena: *mut *mut c_void,
    ) -> bool;
    fn mi_heap_new_in_arena(arena: *mut c_void) -> *mut Heap;
    fn mi_heap_theap(heap: *mut Heap) -> *mut ThreadHeap;
    fn mi_theap_malloc(heap: *mut ThreadHeap, size: usize) -> *mut c_void;
    fn mi_theap_malloc_aligned(heap: *mut ThreadHeap, size: usize, align: usize) -> *mut c_void;
    fn mi_theap_collect(heap: *mut ThreadHeap, force: bool);
}

/// A range and the heap over it.
struct Range {
    start: AtomicUsize,
    end: AtomicUsize,
    heap: AtomicPtr<Heap>,
}

/// Those that are there, and empty ones behind them. Release and Acquire: who sees a heap, or an end, sees what belongs to it.
static RANGES: [Range; RANGES_MAX] =
    [const { Range { start: AtomicUsize::new(0), end: AtomicUsize::new(0), heap: AtomicPtr::new(ptr::null_mut()) } };
        RANGES_MAX];

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
    /// programs whose allocator is another. Memory is allocated as before then; addresses may stay reserved.
    pub fn separate(bytes: u64) -> io::Result<()> {
        let unsupported = |why: &str| Err(io::Error::new(io::ErrorKind::Unsupported, why));
        if !huge_pages_setting()?.contains("[madvise]") {
            return unsupported("huge pages are not for programs that ask for them");
        }
        if fs::read_to_string("/proc/sys/vm/overcommit_memory")?.trim() == "2" {
            return unsupported("addresses count as memory");
        }
        let some = Box::new(0u64);
        // SAFETY: any address may be asked for.
        if !unsafe { mi_is_in_heap_region(ptr::from_ref(&*some).cast()) } {
            return unsupported("the allocator is another");
        }
        let others = mapping(ptr::from_ref(&*some).expose_provenance())?;
        let mut left = usize::try_from(bytes).unwrap_or(usize::MAX / 2).next_multiple_of(ALIGNED);
        for range in &RANGES {
            let len = left.min(RANGE);
            if len == 0 {
                break;
            }
            match range.begin(len) {
                Ok(()) => left -= len,
                Err(error) if ptr::eq(range, &RANGES[0]) => return Err(error),
                // There is less room than there might be.
                Err(_) => break,
            }
        }
        let toucher = thread::Builder::new().name("rows-ahead".into()).spawn(|| NEXT.wait().touch())?.thread().clone();
        let _ = NEXT.set(Next { used: [const { AtomicUsize::new(0) }; 8], toucher });
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
    for number in (own..RANGES_MAX).chain(0..own) {
        let heap = RANGES[number].heap.load(Ordering::Acquire);
        if heap.is_null() {
            continue;
        }
        // SAFETY: a heap stays for ever.
        let part = unsafe { mi_heap_theap(heap) };
        if part.is_null() {
            continue;
        }
        mask |= 1 << number;
        let block = allocate_from(part, layout);
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
        unsafe { mi_theap_collect(mi_heap_theap(RANGES[number].heap.load(Ordering::Acquire)), is_forced) };
    }
}

impl Range {
    /// Becomes a range of so many bytes, a multiple of [`ALIGNED`], where the kernel uses huge pages, with a heap that allocates nowhere else.
    fn begin(&self, len: usize) -> io::Result<()> {
        let all = len + ALIGNED;
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        let mut arena = ptr::null_mut();
        // SAFETY: new memory, which nobody else has. From where the allocator has taken it, it stays for ever.
        unsafe {
            let mapped = mmap_anonymous(ptr::null_mut(), all, protection, MapFlags::PRIVATE | MapFlags::NORESERVE)?;
            let start = mapped.map_addr(|address| address.next_multiple_of(ALIGNED));
            let advised = madvise(start, len, Advice::LinuxHugepage);
            if advised.is_err() || !take(start, len, &raw mut arena) {
                munmap(mapped, all)?;
                advised?;
                return Err(io::Error::other("the allocator does not take the memory"));
            }
            let heap = mi_heap_new_in_arena(arena);
            if heap.is_null() {
                return Err(io::ErrorKind::OutOfMemory.into());
            }
            self.start.store(start.expose_provenance(), Ordering::Relaxed);
            self.end.store(start.addr() + len, Ordering::Release);
            self.heap.store(heap, Ordering::Release);
        }
        Ok(())
    }

    fn has(&self, page: usize) -> bool {
        let end = self.end.load(Ordering::Acquire);
        self.start.load(Ordering::Relaxed) <= page && page + HUGE <= end
    }
}

/// Gives the allocator a range, of which it says what it begins to use, and what it uses no more.
///
/// # Safety
/// The range is mapped and nobody else's, from now on for ever.
unsafe fn take(start: *mut c_void, len: usize, arena: *mut *mut c_void) -> bool {
    // SAFETY: the caller's word.
    unsafe { mi_manage_memory(start, len, false, false, true, -1, true, begin_or_end_use, ptr::null_mut(), arena) }
}

/// The allocator begins to use memory, 64 kB and more at a time, or ceases to. It must not allocate.
extern "C" fn begin_or_end_use(
    begins: bool,
    start: *mut c_void,
    len: usize,
    is_zero: *mut bool,
    _: *mut c_void,
) -> bool {
    if !begins {
        // SAFETY: the allocator has no block there.
        return unsafe { madvise(start, len, Advice::LinuxDontNeed) }.is_ok();
    }
    if !is_zero.is_null() {
        // SAFETY: the allocator's variable.
        unsafe { *is_zero = false };
    }
    if let Some(next) = NEXT.get() {
        next.follows(start.addr() + len);
    }
    true
}

/// Pages that are touched before they are used: so many behind the one that is used.
const AHEAD: usize = 2;

/// What is to be touched next, and by whom.
struct Next {
    /// One place for each of some pieces of [`ALIGNED`] bytes that are being filled: where the page begins up to which it is used.
    used: [AtomicUsize; 8],
    toucher: Thread,
}

static NEXT: OnceLock<Next> = OnceLock::new();

impl Next {
    /// Memory up to `end` is used now.
    fn follows(&self, end: usize) {
        let page = (end - 1) / HUGE * HUGE;
        // Relaxed: a hint.
        if self.used[page / ALIGNED % self.used.len()].swap(page, Ordering::Relaxed) != page {
            self.toucher.unpark();
        }
    }

    /// Touches pages behind those that are used, for ever.
    fn touch(&self) {
        let mut done = [0; 8];
        loop {
            for (place, done) in self.used.iter().zip(&mut done) {
                let page = place.load(Ordering::Relaxed);
                if page == mem::replace(done, page) {
                    continue;
                }
                let next = (1..=AHEAD).map(|ahead| page + ahead * HUGE);
                for page in next.filter(|page| RANGES.iter().any(|range| range.has(*page))) {
                    let start = ptr::with_exposed_provenance_mut(page);
                    // SAFETY: the range stays, and what it holds is not changed. Where it fails, the page is touched by who uses it.
                    let _ = unsafe { madvise(start, HUGE, Advice::LinuxPopulateWrite) };
                }
            }
            thread::park();
        }
    }
}

/// Where the mapping begins that has this address, and how long it is.
fn mapping(address: usize) -> io::Result<(*mut c_void, usize)> {
    let maps = fs::read_to_string("/proc/self/maps")?;
    let (start, end) = maps
        .lines()
        .filter_map(addresses)
        .find(|(start, end)| (*start..*end).contains(&address))
        .ok_or(io::ErrorKind::NotFound)?;
    Ok((ptr::with_exposed_provenance_mut(start), end - start))
}
