//! RowId to row header: chunks of headers behind a two-level array that grows by doubling and never moves.
//!
//! Responsible for: handing out RowIds, finding headers, freeing chunks whose rows are all gone.
//! Not responsible for: what a header holds.
//!
//! RowId = chunk number · CHUNK_ROWS + place. Segment k holds `FIRST << k` chunk pointers, so 40 segments reach further
//! than any counter will, a small table pays for 32 pointers, and nothing is ever copied under a reader.
//!
//! Invariants
//! - **D1** A segment, once set, stays until the directory is dropped.
//! - **D2** A chunk pointer goes null → chunk → null at most once. It returns to null only when all of its RowIds are
//!   *gone*: handed out, and their rows removed (`mark_gone` once each). So an id that is still to be filled keeps its
//!   chunk, and a null chunk below the counter means "no such row any more".
//! - **D3** An unset chunk is freed only when no guard pinned before is left.

use std::ptr::NonNull;

use base::RowId;

use crate::epoch::Guard;
use crate::header::RowHeader;
use crate::memory::{Account, MemoryClass, Padded, block_bytes, boxed};
use crate::sync::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};

/// Headers per chunk: 4 KiB, so that a small table is small, and a block of the allocator without waste. Under shuttle small enough to cross chunk borders.
pub(crate) const CHUNK_ROWS: usize = if cfg!(shuttle) { 4 } else { 256 };
const FIRST: u64 = 32;
const SEGMENTS: usize = 40;

/// The headers of consecutive rows.
pub(crate) type Chunk = [RowHeader; CHUNK_ROWS];

/// Where a chunk is found.
struct Slot {
    chunk: AtomicPtr<Chunk>,
    /// Rows of it that are over. AcqRel: the one who counts the last row frees what the others have finished with.
    gone: AtomicUsize,
}

impl Slot {
    fn empty() -> Slot {
        Slot { chunk: AtomicPtr::new(std::ptr::null_mut()), gone: AtomicUsize::new(0) }
    }
}

pub(crate) struct Directory {
    segments: [AtomicPtr<Slot>; SEGMENTS],
    /// The next RowId. In a line of its own: it is written with every row, what is around it is read with every row.
    next: Padded<AtomicU64>,
}

struct DirectorySlot {
    segment: usize,
    chunk: usize,
    row: usize,
}

#[inline]
fn place(row: RowId) -> DirectorySlot {
    let chunk = row.0 / CHUNK_ROWS as u64 + FIRST;
    let segment = (chunk.ilog2() - FIRST.ilog2()) as usize;
    DirectorySlot { segment, chunk: (chunk - (FIRST << segment)) as usize, row: (row.0 % CHUNK_ROWS as u64) as usize }
}

fn segment_len(segment: usize) -> usize {
    (FIRST as usize) << segment
}

/// What a chunk is counted as.
const CHUNK_BYTES: i64 = block_bytes(size_of::<Chunk>()) as i64;

/// What a segment is counted as.
fn segment_bytes(segment: usize) -> i64 {
    block_bytes(segment_len(segment) * size_of::<Slot>()) as i64
}

impl Directory {
    pub fn new() -> Directory {
        Directory { segments: [const { AtomicPtr::new(std::ptr::null_mut()) }; SEGMENTS], next: Padded::default() }
    }

    /// RowIds below this have been handed out.
    pub fn end(&self) -> RowId {
        RowId(self.next.0.load(Ordering::Acquire))
    }

    fn slot(&self, at: &DirectorySlot) -> Option<&Slot> {
        let segment = NonNull::new(self.segments[at.segment].load(Ordering::Acquire))?;
        // SAFETY: D1, and `chunk` is below the segment's length by construction of `place`.
        Some(unsafe { segment.add(at.chunk).as_ref() })
    }

    #[inline]
    pub fn get<'g>(&'g self, row: RowId, _guard: &'g Guard) -> Option<&'g RowHeader> {
        let at = place(row);
        let chunk = NonNull::new(self.slot(&at)?.chunk.load(Ordering::Acquire))?;
        // SAFETY: D3: loaded under the guard, so alive for 'g.
        Some(unsafe { &chunk.as_ref()[at.row] })
    }

    /// The chunk of a row.
    pub fn chunk<'g>(&'g self, row: RowId, _guard: &'g Guard) -> Option<&'g Chunk> {
        let chunk = NonNull::new(self.slot(&place(row))?.chunk.load(Ordering::Acquire))?;
        // SAFETY: D3: loaded under the guard, so alive for 'g.
        Some(unsafe { chunk.as_ref() })
    }

    /// The chunk of a RowId that a checkpoint names (recovery). The caller raises the counter past the rows that it fills.
    pub fn claim_chunk<'g>(&'g self, row: RowId, account: &Account, guard: &'g Guard) -> &'g Chunk {
        self.ensure(row, account, guard);
        self.chunk(row, guard).expect("D2: an id still to be filled keeps its chunk")
    }

    /// Hands out the next RowId and its header. The caller fills it or marks it gone.
    pub fn reserve<'g>(&'g self, account: &Account, guard: &'g Guard) -> (RowId, &'g RowHeader) {
        let row = RowId(self.next.0.fetch_add(1, Ordering::AcqRel));
        (row, self.ensure(row, account, guard))
    }

    /// The header of a RowId that the log or a checkpoint names (recovery); raises the counter past it.
    pub fn claim<'g>(&'g self, row: RowId, account: &Account, guard: &'g Guard) -> &'g RowHeader {
        self.next.0.fetch_max(row.0 + 1, Ordering::AcqRel);
        self.ensure(row, account, guard)
    }

    /// Raises the counter to `end` (recovery: ids used by rows that are gone are not used again).
    pub fn raise(&self, end: RowId) {
        self.next.0.fetch_max(end.0, Ordering::AcqRel);
    }

    fn ensure<'g>(&'g self, row: RowId, account: &Account, guard: &'g Guard) -> &'g RowHeader {
        if let Some(header) = self.get(row, guard) {
            return header;
        }
        let at = place(row);
        let slot = self.ensure_segment(&at, account);
        let fresh = Box::into_raw(boxed([const { RowHeader::new() }; CHUNK_ROWS]));
        match slot.chunk.compare_exchange(std::ptr::null_mut(), fresh, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => account.charge(MemoryClass::Header, CHUNK_BYTES),
            // SAFETY: lost the race, so the fresh chunk was never shared.
            Err(_) => drop(unsafe { Box::from_raw(fresh) }),
        }
        self.get(row, guard).expect("D2: an id still to be filled keeps its chunk")
    }

    fn ensure_segment(&self, at: &DirectorySlot, account: &Account) -> &Slot {
        if self.segments[at.segment].load(Ordering::Acquire).is_null() {
            let len = segment_len(at.segment);
            let fresh: Box<[Slot]> = (0..len).map(|_| Slot::empty()).collect();
            let fresh = Box::into_raw(fresh).cast::<Slot>();
            let null = std::ptr::null_mut();
            match self.segments[at.segment].compare_exchange(null, fresh, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => account.charge(MemoryClass::Header, segment_bytes(at.segment)),
                // SAFETY: lost the race, so never shared; the length is the one it was made with.
                Err(_) => drop(unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(fresh, len)) }),
            }
        }
        self.slot(at).expect("D1: just set")
    }

    /// Counts a row as over and frees its chunk if it was the last.
    ///
    /// # Safety
    /// Once per RowId, after its header's chain was emptied and its lock word was made DEAD: nothing is stored in the
    /// header afterwards.
    pub unsafe fn mark_gone(&self, row: RowId, account: &Account, guard: &Guard) {
        let at = place(row);
        let slot = self.slot(&at).expect("D2: the row was not gone");
        // By D2 this row was not counted before, so the chunk is still set.
        let Some(chunk) = NonNull::new(slot.chunk.load(Ordering::Acquire)) else { return };
        if slot.gone.fetch_add(1, Ordering::AcqRel) + 1 < CHUNK_ROWS {
            return;
        }
        slot.chunk.store(std::ptr::null_mut(), Ordering::Release);
        account.charge(MemoryClass::Header, -CHUNK_BYTES);
        // SAFETY: unset, all rows counted once (D2), so nobody finds it from now on (D3), and all chains are empty.
        unsafe { guard.defer_unchecked(move || drop(Box::from_raw(chunk.as_ptr()))) }
    }

    /// After recovery: counts every unused id below the counter as gone, so that sparse chunks can be freed later, and
    /// frees the chunks that are empty at once.
    ///
    /// Needs `&mut`: no reader or writer is there yet.
    pub fn settle(&mut self, account: &Account) {
        let end = self.next.0.load(Ordering::Relaxed);
        let guard = crate::epoch::pin();
        for first in (0..end).step_by(CHUNK_ROWS) {
            let Some(slot) = self.slot(&place(RowId(first))) else { continue };
            let Some(chunk) = NonNull::new(slot.chunk.load(Ordering::Relaxed)) else { continue };
            let used = (end - first).min(CHUNK_ROWS as u64) as usize;
            // SAFETY: `&mut self`: nobody else is in the chunk.
            let headers = unsafe { chunk.as_ref() };
            let gone = headers[..used].iter().filter(|h| h.head(&guard).newest.is_none()).count();
            slot.gone.store(gone, Ordering::Relaxed);
            if gone == CHUNK_ROWS {
                slot.chunk.store(std::ptr::null_mut(), Ordering::Relaxed);
                account.charge(MemoryClass::Header, -CHUNK_BYTES);
                // SAFETY: as above; the chunk is unset and empty.
                drop(unsafe { Box::from_raw(chunk.as_ptr()) });
            }
        }
    }

    /// Bytes of the segments and chunks that there are, as they are counted.
    pub fn bytes(&self) -> u64 {
        let mut bytes = 0;
        for (index, segment) in self.segments.iter().enumerate() {
            let Some(segment) = NonNull::new(segment.load(Ordering::Acquire)) else { continue };
            bytes += segment_bytes(index);
            for at in 0..segment_len(index) {
                // SAFETY: D1, and `at` is below the segment's length.
                let slot = unsafe { segment.add(at).as_ref() };
                bytes += if slot.chunk.load(Ordering::Acquire).is_null() { 0 } else { CHUNK_BYTES };
            }
        }
        bytes as u64
    }

    /// The first RowId at or after `from` that may have a row: skips chunks that do not exist.
    pub fn skip_missing(&self, from: RowId, end: RowId) -> RowId {
        let mut row = from;
        while row < end {
            let at = place(row);
            let next = match self.slot(&at) {
                Some(slot) if !slot.chunk.load(Ordering::Acquire).is_null() => return row,
                Some(_) => (row.0 / CHUNK_ROWS as u64 + 1) * CHUNK_ROWS as u64,
                None => ((FIRST << (at.segment + 1)) - FIRST) * CHUNK_ROWS as u64,
            };
            row = RowId(next);
        }
        end
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        for (index, segment) in self.segments.iter().enumerate() {
            let Some(segment) = NonNull::new(segment.load(Ordering::Relaxed)) else { continue };
            // SAFETY: `&mut self` (drop): nobody else is here; lengths are as made.
            let slots =
                unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(segment.as_ptr(), segment_len(index))) };
            for chunk in slots.iter().filter_map(|slot| NonNull::new(slot.chunk.load(Ordering::Relaxed))) {
                // SAFETY: a set chunk is not retired (D2).
                let mut chunk = unsafe { Box::from_raw(chunk.as_ptr()) };
                chunk.iter_mut().for_each(RowHeader::clear);
            }
        }
    }
}
