//! One version of a row: a header and the tuple's bytes in one allocation.
//!
//! Responsible for: layout, allocation, the only code that follows a version pointer.
//! Not responsible for: what a chain of versions means (`visible`), who may change one (`locks`).
//!
//! Words: a version is *private* before a header points at it, *linked* while a header or a linked version does,
//! *unlinked* after, *retired* once handed to the reclamation epoch.
//!
//! Invariants, cited by `// SAFETY:`
//! - **I1** A pointer found in a row header or in `older` of a reachable version is null or points at a live version:
//!   a version is retired only after it is unlinked, exactly once, and freed only when no guard pinned before its
//!   retirement is left.
//! - **I2** `shape` and the bytes are written while the version is private and never after; `written` is, and once more by
//!   the writer, before it stamps `begin`.
//! - **I3** An allocation is a `Version`, the tuple's bytes and, if `shape` says so, the four bytes of the layout's number,
//!   aligned as `Version`; pointers to it keep the provenance of the whole: they are never made from a `&Version`.

use std::alloc::{Layout, dealloc};
use std::marker::PhantomData;
use std::ptr::NonNull;

use base::{CommandId, LayoutId, Timestamp, TxnId, work};

use crate::epoch::Guard;
use crate::memory::{Account, allocate, block_bytes};
use crate::prefetch;
use crate::sync::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

/// Set in `begin` while the writer is undecided; the rest is its TxnId.
const UNDECIDED: u64 = 1 << 63;
/// `begin` of a version that was undone. No TxnId has all bits set.
const ABORTED: u64 = u64::MAX;

/// In `written`: the version says that the row is deleted.
const TOMBSTONE: u32 = 1 << 31;
/// In `shape`: the layout is another one than [`FIRST_LAYOUT`], and its number stands behind the tuple.
const LAYOUT_BEHIND: u32 = 1 << 31;
/// What a table begins with, and most tables stay with.
const FIRST_LAYOUT: LayoutId = LayoutId(1);
/// Of a long tuple the processor sees by itself that it is read from one end to the other.
const PREFETCHED_MAX: usize = 512;
/// Commands that a transaction can number: a bit is needed for something else.
pub const COMMANDS_MAX: u32 = TOMBSTONE - 1;

#[repr(C)]
pub(crate) struct Version {
    /// Commit timestamp, or UNDECIDED | TxnId, or ABORTED. Written by the writing transaction alone: stamped after its
    /// commit is published (Release; pairs with Acquire in [`VersionRef::begin`]) or set to ABORTED before unlinking.
    begin: AtomicU64,
    /// The next older version. Changed under the row's exclusive lock only, Release; readers load Acquire.
    older: AtomicPtr<Version>,
    /// The command while `begin` names the writer, and the writer's [`TxnId::tag`] once that is stamped, 0 if the version
    /// was loaded; or'ed with TOMBSTONE, which never changes.
    written: AtomicU32,
    /// Length of the tuple, or'ed with LAYOUT_BEHIND.
    shape: u32,
}

#[cfg(not(shuttle))]
const _: () = assert!(size_of::<Version>() == 24);

impl Version {
    fn len(&self) -> usize {
        (self.shape & !LAYOUT_BEHIND) as usize
    }

    /// Bytes of the allocation.
    fn size(&self) -> usize {
        size_of::<Version>() + self.len() + if self.shape & LAYOUT_BEHIND != 0 { size_of::<u32>() } else { 0 }
    }

    /// What it is counted as.
    fn block(&self) -> i64 {
        block_bytes(self.size()) as i64
    }
}

/// What `begin` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Begin {
    Committed(Timestamp),
    Undecided(TxnId),
    Aborted,
}

/// What `written` says of a version: whether it is a tombstone, and of one that is stamped, who wrote it.
#[derive(Clone, Copy)]
pub(crate) struct Written(u32);

impl Written {
    #[inline]
    pub fn is_tombstone(self) -> bool {
        self.0 & TOMBSTONE != 0
    }

    /// The tag of the transaction that wrote it; `None` if it was loaded. REQUIRES that it is stamped.
    #[inline]
    pub fn tag(self) -> Option<u32> {
        Some(self.0 & COMMANDS_MAX).filter(|tag| *tag != 0)
    }
}

/// A version nobody else can see yet. Dropping it frees it.
pub(crate) struct PrivateVersion(NonNull<Version>);

fn memory_layout(size: usize) -> Layout {
    Layout::from_size_align(size, align_of::<Version>()).expect("a tuple is far below isize::MAX")
}

/// Copies what is long, a stretch at a time; nothing stops it.
///
/// # Safety
/// There is room for `from` at `to`, which nobody else uses.
#[cold]
unsafe fn copy_counted(from: &[u8], to: NonNull<u8>) {
    for (at, part) in from.chunks(work::STRETCH).enumerate() {
        work::unstopped(|| work::beat(work::bytes(part.len())));
        // SAFETY: the part lies as far behind `to` as in `from`.
        unsafe { to.add(at * work::STRETCH).copy_from_nonoverlapping(NonNull::from(part).cast(), part.len()) };
    }
}

impl PrivateVersion {
    /// Allocates a version of `writer`; `None` for the bytes makes a tombstone.
    #[inline]
    pub fn undecided(writer: TxnId, command: CommandId, layout: LayoutId, tuple: Option<&[u8]>) -> PrivateVersion {
        PrivateVersion::allocate(UNDECIDED | writer.0, command, layout, tuple)
    }

    /// Allocates a version committed at `ts` (recovery).
    #[inline]
    pub fn committed(ts: Timestamp, layout: LayoutId, tuple: Option<&[u8]>) -> PrivateVersion {
        PrivateVersion::allocate(ts.0, CommandId(0), layout, tuple)
    }

    #[inline]
    fn allocate(begin: u64, command: CommandId, layout: LayoutId, tuple: Option<&[u8]>) -> PrivateVersion {
        let deleted = if tuple.is_none() { TOMBSTONE } else { 0 };
        let behind = tuple.is_some() && layout != FIRST_LAYOUT;
        let tuple = tuple.unwrap_or(&[]);
        let len = u32::try_from(tuple.len()).ok().filter(|len| len & LAYOUT_BEHIND == 0);
        let version = Version {
            begin: AtomicU64::new(begin),
            older: AtomicPtr::new(std::ptr::null_mut()),
            written: AtomicU32::new(command.0 & COMMANDS_MAX | deleted),
            shape: len.expect("a tuple is shorter than 2 GiB") | if behind { LAYOUT_BEHIND } else { 0 },
        };
        let memory = memory_layout(version.size());
        // SAFETY: the size is not zero. By I3 the block holds a Version, `len` bytes behind it and, if `behind`, four more;
        // all are written before anyone else can see the block.
        unsafe {
            let at = allocate(memory).cast::<Version>();
            at.write(version);
            let bytes = at.add(1).cast::<u8>();
            if tuple.len() <= work::STRETCH {
                bytes.copy_from_nonoverlapping(NonNull::from(tuple).cast(), tuple.len());
            } else {
                copy_counted(tuple, bytes);
            }
            if behind {
                bytes.add(tuple.len()).cast::<u32>().write_unaligned(layout.0);
            }
            PrivateVersion(at)
        }
    }

    /// Where it lies, for a header that takes it over.
    pub fn as_ptr(&self) -> *mut Version {
        self.0.as_ptr()
    }

    /// What it is counted as.
    #[inline]
    pub fn size(&self) -> usize {
        // SAFETY: private until now, so alive (I1).
        block_bytes(unsafe { self.0.as_ref() }.size())
    }

    /// Leaves it, without an older one, to the header that has its pointer. Its bytes are the caller's to count.
    pub fn leak(self) {
        std::mem::forget(self);
    }

    /// Counts it and hands the pointer out to be linked above `older`.
    pub fn link_above(self, older: *mut Version, account: &Account) -> NonNull<Version> {
        let at = self.0;
        std::mem::forget(self);
        // SAFETY: private until now, so alive (I1).
        let version = unsafe { at.as_ref() };
        // Relaxed: the caller's Release store of the pointer publishes it.
        version.older.store(older, Ordering::Relaxed);
        account.made_version(version.block());
        at
    }
}

impl Drop for PrivateVersion {
    fn drop(&mut self) {
        // SAFETY: never linked, so nobody else has the pointer.
        unsafe { free(self.0) }
    }
}

/// Frees a version at once.
///
/// # Safety
/// Nobody else can reach it any more, and it is not freed twice.
pub(crate) unsafe fn free(at: NonNull<Version>) {
    // SAFETY: the caller has the only pointer, so the version is alive; its layout is as it was allocated (I2, I3).
    unsafe {
        let size = at.as_ref().size();
        #[cfg(shuttle)]
        std::ptr::drop_in_place(at.as_ptr());
        dealloc(at.as_ptr().cast(), memory_layout(size));
    }
}

/// Frees a whole chain at once.
///
/// # Safety
/// As [`free`], for every version of the chain.
pub(crate) unsafe fn free_chain(mut at: *mut Version) {
    while let Some(version) = NonNull::new(at) {
        // SAFETY: the caller owns the whole chain; `older` is read before its holder is freed.
        unsafe {
            at = version.as_ref().older.load(Ordering::Relaxed);
            free(version);
        }
    }
}

/// A live version, for as long as a guard lives.
#[derive(Clone, Copy)]
pub(crate) struct VersionRef<'g> {
    at: NonNull<Version>,
    guard: PhantomData<&'g Guard>,
}

impl<'g> VersionRef<'g> {
    /// # Safety
    /// `at` was loaded from a header or from `older` of a reachable version under `_guard` (I1).
    pub unsafe fn new(at: *mut Version, _guard: &'g Guard) -> Option<VersionRef<'g>> {
        NonNull::new(at).map(|at| VersionRef { at, guard: PhantomData })
    }

    fn get(&self) -> &'g Version {
        // SAFETY: by I1 it lives as long as the guard, which outlives 'g; I2 and atomics make sharing it sound.
        unsafe { self.at.as_ref() }
    }

    pub fn as_ptr(self) -> *mut Version {
        self.at.as_ptr()
    }

    /// Asks for the memory of what decides whether it is seen.
    #[inline]
    pub fn prefetch(self) {
        prefetch::line(self.at.as_ptr());
    }

    /// Asks for the rest of its memory, up to [`PREFETCHED_MAX`].
    #[inline]
    pub fn prefetch_tuple(self) {
        let end = self.get().size().min(PREFETCHED_MAX);
        (prefetch::LINE..end)
            .step_by(prefetch::LINE)
            .for_each(|at| prefetch::line(self.at.as_ptr().wrapping_byte_add(at)));
    }

    pub fn begin(self) -> Begin {
        match self.get().begin.load(Ordering::Acquire) {
            ABORTED => Begin::Aborted,
            begin if begin & UNDECIDED != 0 => Begin::Undecided(TxnId(begin & !UNDECIDED)),
            ts => Begin::Committed(Timestamp(ts)),
        }
    }

    /// Whether `writer` wrote it and has not stamped it.
    pub fn is_undecided_of(self, writer: TxnId) -> bool {
        self.get().begin.load(Ordering::Relaxed) == UNDECIDED | writer.0
    }

    /// Gives it its commit timestamp, and the tag of its writer. REQUIRES that the caller is its writer, after publication.
    pub fn stamp(self, ts: Timestamp, writer: TxnId) {
        let version = self.get();
        // Nobody else writes here. Relaxed: whoever finds the timestamp in `begin` finds the tag.
        let deleted = version.written.load(Ordering::Relaxed) & TOMBSTONE;
        version.written.store(writer.tag() | deleted, Ordering::Relaxed);
        version.begin.store(ts.0, Ordering::Release);
    }

    /// What stands beside `begin`, for who has found a timestamp in it: one load for all of it.
    #[inline]
    pub fn written(self) -> Written {
        Written(self.get().written.load(Ordering::Relaxed))
    }

    /// Marks it undone. REQUIRES that the caller is its writer. Comes before the unlinking, so that a reader which
    /// holds the version and finds the writer's slot reused or committed reads this instead of trusting the slot.
    pub fn mark_aborted(self) {
        self.get().begin.store(ABORTED, Ordering::Release);
    }

    /// The command that wrote it. REQUIRES that it is not stamped and the caller acts for its writer.
    pub fn command(self) -> CommandId {
        CommandId(self.get().written.load(Ordering::Relaxed) & COMMANDS_MAX)
    }

    pub fn layout(self) -> LayoutId {
        if self.is_tombstone() { LayoutId(0) } else { self.tuple_layout() }
    }

    /// As [`VersionRef::layout`], of one that is no tombstone.
    #[inline]
    pub fn tuple_layout(self) -> LayoutId {
        if self.get().shape & LAYOUT_BEHIND == 0 {
            return FIRST_LAYOUT;
        }
        // SAFETY: I3: the four bytes behind the tuple are in the same allocation, and `at` may reach all of it; I2: nobody
        // writes to them; I1: alive.
        LayoutId(unsafe { self.at.as_ptr().add(1).cast::<u8>().add(self.get().len()).cast::<u32>().read_unaligned() })
    }

    pub fn is_tombstone(self) -> bool {
        self.written().is_tombstone()
    }

    /// The tuple; empty for a tombstone.
    pub fn bytes(self) -> &'g [u8] {
        let len = self.get().len();
        // SAFETY: I3: `len` bytes follow the header in the same allocation, and `at` may reach all of it; I2: nobody
        // writes to them; I1: alive for 'g.
        unsafe { std::slice::from_raw_parts(self.at.as_ptr().add(1).cast::<u8>(), len) }
    }

    pub fn older(self, guard: &'g Guard) -> Option<VersionRef<'g>> {
        // SAFETY: `self` is reachable under the guard, so I1 covers its `older`.
        unsafe { VersionRef::new(self.get().older.load(Ordering::Acquire), guard) }
    }

    /// Points `older` past what is unlinked.
    ///
    /// # Safety
    /// The caller has the row exclusively, and `older` is reachable or null.
    pub unsafe fn set_older(self, older: *mut Version) {
        self.get().older.store(older, Ordering::Release);
    }

    /// A copy of a committed version, its `older` included; `None` of another. Nothing is counted.
    pub fn copy(self) -> Option<PrivateVersion> {
        let Begin::Committed(ts) = self.begin() else { return None };
        let tuple = if self.is_tombstone() { None } else { Some(self.bytes()) };
        let copy = PrivateVersion::committed(ts, self.layout(), tuple);
        // SAFETY: private, so alive.
        let made = unsafe { copy.0.as_ref() };
        // Relaxed: whoever links the copy publishes it.
        made.older.store(self.get().older.load(Ordering::Acquire), Ordering::Relaxed);
        made.written.store(self.get().written.load(Ordering::Relaxed), Ordering::Relaxed);
        Some(copy)
    }

    /// Bytes that it is counted as.
    pub fn counted(self) -> u64 {
        self.get().block() as u64
    }

    /// Frees it once no guard can reach it.
    ///
    /// # Safety
    /// Unlinked by the caller, retired once.
    pub unsafe fn retire(self, account: &Account, guard: &Guard) {
        account.gone_version(self.get().block());
        // SAFETY: the caller's promise.
        unsafe { self.retire_uncounted(guard) }
    }

    /// As [`VersionRef::retire`], for one whose copy stays counted.
    ///
    /// # Safety
    /// As there.
    pub unsafe fn retire_uncounted(self, guard: &Guard) {
        let at = self.at;
        // SAFETY: unlinked, so guards pinned from now on cannot find it, and the allocator works from any thread.
        unsafe { guard.defer_unchecked(move || free(at)) }
    }
}
