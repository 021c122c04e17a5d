//! The layout of a node's words: header, slots, byte heap (the box in the module's header).
//!
//! Responsible for: finding positions, reading and writing records, in a node that is read optimistically, latched, or
//! still private. Nothing here panics or leaves the node on words that do not fit together.
//! Not responsible for: latches, which entries belong together.

use super::MAX_KEY_LEN;
use super::far::{self, FarKey};
use super::position::{Position, Restart, Side};
use crate::memory::block_bytes;
use std::cmp::Ordering;
use std::hint::select_unpredictable;

pub(super) const LATCH: usize = 0;
const COUNTS: usize = 1;
pub(super) const LINK: usize = 2;
pub(super) const LOW: usize = 3;
pub(super) const HIGH: usize = 4;
const SLOTS: usize = 5;
/// Key bytes kept in the slot.
const HEAD_LEN: usize = 4;
const WORD: usize = 8;

const _: () = assert!(MAX_KEY_LEN < 1 << 14, "a slot has 14 bits for the length of a key");

/// The second word of a node.
#[derive(Clone, Copy, Debug)]
pub(super) struct Header {
    /// Slots in use.
    pub count: usize,
    /// First byte of the heap in use.
    pub heap: usize,
    /// Bytes of the heap that belong to removed records.
    pub dead: usize,
    /// Leading bytes that all keys share (N1).
    pub prefix: usize,
    /// 0 for leaves.
    pub level: u8,
    /// There is no high fence.
    pub endless: bool,
}

impl Header {
    #[inline]
    fn decode(word: u64) -> Header {
        let field = |shift: u32, bits: u32| (word >> shift) as usize & ((1 << bits) - 1);
        Header {
            count: field(0, 10),
            heap: field(10, 13),
            dead: field(23, 13),
            prefix: field(36, 14),
            level: field(50, 5) as u8,
            endless: field(55, 1) != 0,
        }
    }

    fn encode(self) -> u64 {
        self.count as u64
            | (self.heap as u64) << 10
            | (self.dead as u64) << 23
            | (self.prefix as u64) << 36
            | u64::from(self.level) << 50
            | u64::from(self.endless) << 55
    }

    fn child_len(self) -> usize {
        if self.level == 0 { 0 } else { WORD }
    }

    /// Bytes between slots and heap.
    pub fn gap(self) -> usize {
        self.heap.saturating_sub((SLOTS + self.count) * WORD)
    }

    /// Bytes that a new record and its slot may have, after compaction at worst.
    pub fn room(self) -> usize {
        self.gap() + self.dead
    }
}

/// One word per entry; the order of heads is the order of slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slot(u64);

impl Slot {
    fn new(head: u32, offset: usize, len: usize, row_len: usize, far: bool) -> Slot {
        // The offset of an empty record at the very end of a node may wrap; none of its bytes are ever read.
        let offset = (offset as u64 & 0xfff) << 20;
        Slot(u64::from(head) << 32 | offset | (len as u64) << 6 | (row_len as u64) << 2 | u64::from(far) << 1)
    }

    #[inline]
    fn offset(self) -> usize {
        (self.0 >> 20) as usize & 0xfff
    }

    /// Length of the whole key.
    #[inline]
    pub fn len(self) -> usize {
        (self.0 >> 6) as usize & 0x3fff
    }

    #[inline]
    fn row_len(self) -> usize {
        (self.0 >> 2) as usize & 0xf
    }

    #[inline]
    pub fn is_far(self) -> bool {
        self.0 & 2 != 0
    }

    /// Bytes of the record in a node with this many bytes of prefix and of child address.
    fn record_len(self, prefix: usize, child_len: usize) -> usize {
        let key = if self.is_far() { WORD } else { self.len().saturating_sub(prefix + HEAD_LEN) };
        self.row_len() + child_len + key
    }
}

fn row_len(row: u64) -> usize {
    WORD - row.leading_zeros() as usize / 8
}

/// The first `len` bytes of a little-endian word.
#[inline]
fn mask(len: usize) -> u64 {
    if len >= WORD { u64::MAX } else { (1 << (len * 8)) - 1 }
}

/// The first four bytes of a key's rest as a number that orders like them; missing ones are `fill`.
#[inline]
fn head_of(suffix: &[u8], fill: u8) -> u32 {
    if let Some(bytes) = suffix.first_chunk::<HEAD_LEN>() {
        return u32::from_be_bytes(*bytes);
    }
    let mut bytes = [fill; HEAD_LEN];
    bytes[..suffix.len()].copy_from_slice(suffix);
    u32::from_be_bytes(bytes)
}

/// Up to eight leading bytes as a number that orders like them.
#[inline]
fn chunk_of(bytes: &[u8]) -> u64 {
    if let Some(chunk) = bytes.first_chunk::<WORD>() {
        return u64::from_be_bytes(*chunk);
    }
    let mut chunk = [0; WORD];
    chunk[..bytes.len()].copy_from_slice(bytes);
    u64::from_be_bytes(chunk)
}

/// A node's words for reading.
pub(super) trait Page {
    /// A power of two, so that an index is kept inside by masking.
    const WORDS: usize;

    /// A word; the index is masked.
    fn word(&self, index: usize) -> u64;

    /// Asks for the cache line of a word that may be read soon.
    #[inline]
    fn prefetch(&self, _index: usize) {}

    /// Whether all words read so far belong together.
    fn is_current(&self) -> bool;

    /// Ends a reading.
    ///
    /// # Errors
    /// [`Restart`] if words did not belong together.
    #[inline]
    fn check(&self) -> Result<(), Restart> {
        if self.is_current() { Ok(()) } else { Err(Restart) }
    }

    /// The longest key kept inside a node: with two fences, three of the largest records still fit.
    const NEAR_MAX: usize = Self::WORDS * WORD / 16;

    /// Bytes that any separator of this tree takes at most, with its slot.
    const SEPARATOR_MAX: usize = 4 * WORD + Self::NEAR_MAX;

    #[inline]
    fn header(&self) -> Header {
        Header::decode(self.word(COUNTS))
    }

    #[inline]
    fn slot(&self, at: usize) -> Slot {
        Slot(self.word(SLOTS + at))
    }

    /// Eight bytes of the heap.
    #[inline]
    fn heap_word(&self, offset: usize) -> u64 {
        let (index, shift) = (offset / WORD, offset % WORD * 8);
        let low = self.word(index) >> shift;
        if shift == 0 { low } else { low | self.word(index + 1) << (64 - shift) }
    }

    #[inline]
    fn row(&self, slot: Slot) -> u64 {
        self.heap_word(slot.offset()) & mask(slot.row_len())
    }

    /// The child that holds the entries from separator `at - 1` on; 0 is the one before all separators.
    #[inline]
    fn child(&self, at: usize) -> u64 {
        if at == 0 {
            return self.word(LINK);
        }
        let slot = self.slot(at - 1);
        self.heap_word(slot.offset() + slot.row_len())
    }

    /// Bytes in use by slots, records and fences.
    fn live_bytes(&self) -> usize {
        Self::WORDS * WORD - self.header().room()
    }

    /// Number of entries before a position that was routed here, so that the prefix need not be compared (N1).
    #[inline]
    fn find(&self, header: Header, position: &Position<'_>) -> Result<usize, Restart> {
        let suffix = position.key.get(header.prefix..).unwrap_or(&[]);
        let prefixes = position.side == Side::AfterPrefix;
        let head = u64::from(head_of(suffix, if prefixes { 0xff } else { 0 }));
        let low = count_slots(self, 0, header.count, |slot| slot.0 < head << 32);
        if low >= header.count || self.slot(low).0 >> 32 != head {
            return Ok(low);
        }
        let (mut from, mut to) = (low, header.count);
        let tail = Tail::of(suffix);
        // In a leaf the first that ties is often the only one, and the one that is looked for.
        let mut middle = if header.level == 0 { from } else { from.midpoint(to) };
        while from < to {
            let slot = self.slot(middle);
            if slot.0 >> 32 == head && self.tied_is_before(header, slot, suffix, &tail, position)? {
                from = middle + 1;
            } else {
                to = middle;
            }
            middle = from.midpoint(to);
        }
        Ok(from)
    }

    /// Whether entry `at` lies before a position that was routed here.
    #[inline]
    fn is_before(&self, header: Header, at: usize, position: &Position<'_>) -> Result<bool, Restart> {
        let suffix = position.key.get(header.prefix..).unwrap_or(&[]);
        let head = head_of(suffix, if position.side == Side::AfterPrefix { 0xff } else { 0 });
        let slot = self.slot(at);
        match ((slot.0 >> 32) as u32).cmp(&head) {
            Ordering::Equal => self.tied_is_before(header, slot, suffix, &Tail::of(suffix), position),
            order => Ok(order.is_lt()),
        }
    }

    /// Number of entries before any position.
    fn find_anywhere(&self, header: Header, position: &Position<'_>) -> Result<usize, Restart> {
        if header.prefix > 0 {
            let low = Slot(self.word(LOW));
            let shared = position.key.len().min(header.prefix);
            match self.compare(low, low.offset() + low.row_len(), 0, &position.key[..shared])? {
                Ordering::Less => return Ok(header.count),
                Ordering::Greater => return Ok(0),
                Ordering::Equal if shared < header.prefix => {
                    return Ok(if position.side == Side::AfterPrefix { header.count } else { 0 });
                }
                Ordering::Equal => {}
            }
        }
        self.find(header, position)
    }

    /// Whether an entry with the position's head lies before the position, whose key goes on with `tail`. Always inline: with it in
    /// a call of its own a descent costs a tenth more.
    #[inline(always)]
    fn tied_is_before(
        &self,
        header: Header,
        slot: Slot,
        suffix: &[u8],
        tail: &Tail<'_>,
        position: &Position<'_>,
    ) -> Result<bool, Restart> {
        // One word tells, mostly.
        let common = slot.len().saturating_sub(header.prefix + HEAD_LEN).min(tail.rest.len());
        if !slot.is_far() {
            let offset = slot.offset() + slot.row_len() + header.child_len();
            let own = (self.heap_word(offset) & mask(common)).swap_bytes();
            let other = tail.word & mask(common).swap_bytes();
            if own != other {
                return Ok(own < other);
            }
        }
        self.tied_is_before_by_all(header, slot, suffix, tail.rest, position)
    }

    /// As [`Page::tied_is_before`], for keys of any length.
    #[inline(never)]
    fn tied_is_before_by_all(
        &self,
        header: Header,
        slot: Slot,
        suffix: &[u8],
        rest: &[u8],
        position: &Position<'_>,
    ) -> Result<bool, Restart> {
        let order = self.compare_rest(header, slot, rest)?;
        let len = slot.len().saturating_sub(header.prefix);
        Ok(match order.then(len.cmp(&suffix.len())) {
            Ordering::Less => true,
            Ordering::Greater => order.is_eq() && position.side == Side::AfterPrefix,
            Ordering::Equal => match position.side {
                Side::Before => self.row(slot) < position.row,
                Side::After => self.row(slot) <= position.row,
                Side::AfterPrefix => true,
            },
        })
    }

    /// Compares the bytes of the entry's key after prefix and head with `rest`, as far as both go.
    #[inline]
    fn compare_rest(&self, header: Header, slot: Slot, rest: &[u8]) -> Result<Ordering, Restart> {
        let skip = header.prefix + HEAD_LEN;
        let common = slot.len().saturating_sub(skip).min(rest.len());
        self.compare(slot, slot.offset() + slot.row_len() + header.child_len(), skip, &rest[..common])
    }

    /// Compares key bytes at `offset` of the heap (or, of a far key, from `skip` on) with as many of `bytes`.
    fn compare(&self, slot: Slot, offset: usize, skip: usize, bytes: &[u8]) -> Result<Ordering, Restart> {
        if bytes.is_empty() {
            return Ok(Ordering::Equal);
        }
        if slot.is_far() {
            let key = self.far_key(slot, offset)?;
            let own = key.get(skip..).unwrap_or(&[]);
            return Ok(own[..own.len().min(bytes.len())].cmp(bytes));
        }
        for (at, chunk) in bytes.chunks(WORD).enumerate() {
            let own = (self.heap_word(offset + at * WORD) & mask(chunk.len())).swap_bytes();
            let order = own.cmp(&chunk_of(chunk));
            if order.is_ne() {
                return Ok(order);
            }
        }
        Ok(Ordering::Equal)
    }

    /// The far key whose address is at `offset` of the heap.
    fn far_key(&self, slot: Slot, offset: usize) -> Result<&[u8], Restart> {
        let address = self.heap_word(offset);
        self.check()?;
        // SAFETY: the words were current after the address and the slot were read, and a page is borrowed from the guard
        // that the operation began with, from a latch, or from an owner.
        Ok(unsafe { far::bytes(address, slot.len()) })
    }

    /// Whether entry `at` has this key; the key was routed here.
    #[inline]
    fn has_key(&self, header: Header, at: usize, key: &[u8]) -> Result<bool, Restart> {
        let slot = self.slot(at);
        let suffix = key.get(header.prefix..).unwrap_or(&[]);
        if slot.0 >> 32 != u64::from(head_of(suffix, 0)) || slot.len() != key.len() {
            return Ok(false);
        }
        Ok(self.compare_rest(header, slot, suffix.get(HEAD_LEN..).unwrap_or(&[]))?.is_eq())
    }

    /// Appends the bytes that all keys of the node begin with.
    fn prefix_into(&self, header: Header, out: &mut Vec<u8>) -> Result<(), Restart> {
        if header.prefix > 0 {
            let end = out.len() + header.prefix;
            self.fence_into(LOW, out)?;
            out.truncate(end);
        }
        Ok(())
    }

    /// Appends the key of a fence and returns its row.
    fn fence_into(&self, which: usize, out: &mut Vec<u8>) -> Result<u64, Restart> {
        let slot = Slot(self.word(which));
        self.bytes_into(slot, slot.offset() + slot.row_len(), slot.len(), out)?;
        Ok(self.row(slot))
    }

    /// Appends the key of an entry, whose first bytes are `prefix`.
    #[inline]
    fn key_into(&self, header: Header, slot: Slot, prefix: &[u8], out: &mut Vec<u8>) -> Result<(), Restart> {
        let offset = slot.offset() + slot.row_len() + header.child_len();
        if slot.is_far() {
            return self.bytes_into(slot, offset, slot.len(), out);
        }
        let end = out.len() + slot.len();
        out.extend_from_slice(prefix);
        // Whole words are appended and cut off: copies of a fixed length are the fast ones.
        out.extend_from_slice(&((slot.0 >> 32) as u32).to_be_bytes());
        let mut at = 0;
        while out.len() < end {
            out.extend_from_slice(&self.heap_word(offset + at).to_le_bytes());
            at += WORD;
        }
        out.truncate(end);
        Ok(())
    }

    /// Appends `len` bytes of the heap, or a far key.
    fn bytes_into(&self, slot: Slot, offset: usize, len: usize, out: &mut Vec<u8>) -> Result<(), Restart> {
        if slot.is_far() {
            out.extend_from_slice(self.far_key(slot, offset)?);
            return Ok(());
        }
        let end = out.len() + len;
        for at in (0..len).step_by(WORD) {
            out.extend_from_slice(&self.heap_word(offset + at).to_le_bytes());
        }
        out.truncate(end);
        Ok(())
    }

    /// Whether the key of a fence is this one.
    fn fence_has_key(&self, which: usize, key: &[u8]) -> Result<bool, Restart> {
        let slot = Slot(self.word(which));
        Ok(slot.len() == key.len() && self.compare(slot, slot.offset() + slot.row_len(), 0, key)?.is_eq())
    }

    /// Whether a key lies behind the low fence's and before the high fence's, so that all of its pairs are routed here, wherever
    /// the reading came from; `false` if they only may be.
    #[inline]
    fn covers(&self, key: &[u8]) -> Result<bool, Restart> {
        Ok((self.fence_cmp(LOW, key)?.is_lt()) && (self.header().endless || self.fence_cmp(HIGH, key)?.is_gt()))
    }

    /// The order of a fence's key and a key.
    #[inline]
    fn fence_cmp(&self, which: usize, key: &[u8]) -> Result<Ordering, Restart> {
        let slot = Slot(self.word(which));
        let common = slot.len().min(key.len());
        let order = self.compare(slot, slot.offset() + slot.row_len(), 0, &key[..common])?;
        Ok(order.then(slot.len().cmp(&key.len())))
    }

    /// Bytes that a new entry takes, with its slot.
    fn entry_len(&self, header: Header, key: &[u8], row: u64) -> usize {
        let slot = Slot::new(0, 0, key.len(), row_len(row), key.len() > Self::NEAR_MAX);
        WORD + slot.record_len(header.prefix, header.child_len())
    }

    /// Address and length of the far key of an entry or (`fence`) of a fence.
    fn far_address(&self, header: Header, slot: Slot, fence: bool) -> Option<(u64, usize)> {
        let child_len = if fence { 0 } else { header.child_len() };
        slot.is_far().then(|| (self.heap_word(slot.offset() + slot.row_len() + child_len), slot.len()))
    }

    fn fence_slot(&self, which: usize) -> Slot {
        Slot(self.word(which))
    }

    /// Length of a record.
    fn record_len_at(&self, header: Header, at: usize) -> usize {
        self.slot(at).record_len(header.prefix, header.child_len())
    }
}

/// The number of slots from `from` to `to` for which `below` holds, plus `from`; it holds for the first ones only.
#[inline]
fn count_slots<P: Page + ?Sized>(page: &P, from: usize, to: usize, below: impl Fn(Slot) -> bool) -> usize {
    let (mut base, mut left) = (from, to.saturating_sub(from));
    if left >= 64 {
        // The first three steps look at lines that are far apart: those of the second and third come with that of the first.
        for eighths in [2, 6, 1, 3, 5, 7] {
            page.prefetch(SLOTS + base + left * eighths / 8 - 1);
        }
    }
    while left > 1 {
        let half = left / 2;
        base = select_unpredictable(below(page.slot(base + half - 1)), base + half, base);
        left -= half;
    }
    base + usize::from(left == 1 && below(page.slot(base)))
}

/// What of a key comes behind the prefix and the head.
pub(super) struct Tail<'a> {
    rest: &'a [u8],
    /// Its first bytes.
    word: u64,
}

impl Tail<'_> {
    #[inline]
    fn of(suffix: &[u8]) -> Tail<'_> {
        let rest = suffix.get(HEAD_LEN..).unwrap_or(&[]);
        Tail { rest, word: chunk_of(&rest[..rest.len().min(WORD)]) }
    }
}

/// What goes into a node.
#[derive(Clone, Copy)]
pub(super) struct Entry<'a> {
    pub key: &'a [u8],
    pub row: u64,
    /// The child to the right of a separator; 0 in leaves.
    pub child: u64,
}

/// A node's words for changing: latched, or private.
pub(super) trait PageMut: Page {
    /// Stores a word; the index is masked.
    fn set_word(&self, index: usize, value: u64);

    fn set_header(&self, header: Header) {
        self.set_word(COUNTS, header.encode());
    }

    /// Stores the first `len` bytes of `value`.
    fn set_heap(&self, offset: usize, value: u64, len: usize) {
        let (index, shift) = (offset / WORD, offset % WORD * 8);
        let (mask, value) = (mask(len), value & mask(len));
        self.set_word(index, self.word(index) & !(mask << shift) | value << shift);
        if shift + len * 8 > 64 {
            let over = 64 - shift;
            self.set_word(index + 1, self.word(index + 1) & !(mask >> over) | value >> over);
        }
    }

    fn set_heap_bytes(&self, offset: usize, bytes: &[u8]) {
        for (at, chunk) in bytes.chunks(WORD).enumerate() {
            self.set_heap(offset + at * WORD, chunk_of(chunk).swap_bytes(), chunk.len());
        }
    }

    /// Makes an empty node. Far fences come as owners, which must outlive their place in the node.
    fn format(&self, level: u8, link: u64, low: (&[u8], u64), high: Option<(&[u8], u64)>, far: [Option<u64>; 2]) {
        let prefix = high.map_or(0, |high| low.0.iter().zip(high.0).take_while(|(a, b)| a == b).count());
        let mut header = Header { count: 0, heap: Self::WORDS * WORD, dead: 0, prefix, level, endless: high.is_none() };
        self.set_word(LINK, link);
        self.set_word(HIGH, 0);
        for (which, fence, far) in [(LOW, Some(low), far[0]), (HIGH, high, far[1])] {
            let Some((key, row)) = fence else { continue };
            let key_len = if far.is_some() { WORD } else { key.len() };
            header.heap -= row_len(row) + key_len;
            self.set_word(which, Slot::new(0, header.heap, key.len(), row_len(row), far.is_some()).0);
            self.set_heap(header.heap, row, row_len(row));
            let offset = header.heap + row_len(row);
            match far {
                Some(address) => self.set_heap(offset, address, WORD),
                None => self.set_heap_bytes(offset, key),
            }
        }
        self.set_header(header);
    }

    /// Puts an entry at slot `at`; `far` is the address of its key if that is too long. The gap must suffice.
    fn put(&self, at: usize, entry: Entry<'_>, far: Option<u64>) {
        let mut header = self.header();
        let suffix = entry.key.get(header.prefix..).unwrap_or(&[]);
        let row_len = row_len(entry.row);
        let mut slot = Slot::new(head_of(suffix, 0), 0, entry.key.len(), row_len, far.is_some());
        header.heap -= slot.record_len(header.prefix, header.child_len());
        slot = Slot::new(head_of(suffix, 0), header.heap, entry.key.len(), row_len, far.is_some());
        let rest = suffix.get(HEAD_LEN..).unwrap_or(&[]);
        if far.is_none() && header.level == 0 && (1..WORD).contains(&row_len) && row_len + rest.len() <= WORD {
            // A small row and a number: one word.
            let word = entry.row | chunk_of(rest).swap_bytes() << (row_len * 8);
            self.set_heap(header.heap, word, row_len + rest.len());
        } else {
            self.set_heap(header.heap, entry.row, row_len);
            let mut offset = header.heap + row_len;
            if header.level > 0 {
                self.set_heap(offset, entry.child, WORD);
                offset += WORD;
            }
            match far {
                Some(address) => self.set_heap(offset, address, WORD),
                None => self.set_heap_bytes(offset, rest),
            }
        }
        for index in (SLOTS + at..SLOTS + header.count).rev() {
            self.set_word(index + 1, self.word(index));
        }
        self.set_word(SLOTS + at, slot.0);
        header.count += 1;
        self.set_header(header);
    }

    /// Appends an entry of another leaf whose prefix is no longer than this one's, if its row and what is left of its key are
    /// as short as most are; `false` if they are not, or there is no room.
    fn push_short(&self, from: &impl Page, source: Header, slot: Slot) -> bool {
        let mut header = self.header();
        let tail_len = |prefix: usize| slot.len().saturating_sub(prefix + HEAD_LEN);
        let (row_len, before, after) = (slot.row_len(), tail_len(source.prefix), tail_len(header.prefix));
        let len = row_len + after;
        let is_short = !slot.is_far() && row_len > 0 && len <= WORD && before <= WORD;
        if !is_short || header.prefix < source.prefix || WORD + len > header.gap() {
            return false;
        }
        let tail = from.heap_word(slot.offset() + row_len) & mask(before);
        let suffix = u128::from(slot.0 >> 32) << 96 | u128::from(tail.swap_bytes()) << 32;
        // What the prefix has from now on goes: at most the whole key, of twelve bytes.
        let suffix = suffix << ((header.prefix - source.prefix) * 8);
        header.heap -= len;
        let tail = ((suffix >> 32) as u64).swap_bytes() & mask(after);
        let word = from.row(slot) | if after > 0 { tail << (row_len * 8) } else { 0 };
        self.set_heap(header.heap, word, len);
        let slot = Slot::new((suffix >> 96) as u32, header.heap, slot.len(), row_len, false);
        self.set_word(SLOTS + header.count, slot.0);
        header.count += 1;
        self.set_header(header);
        true
    }

    /// Puts an entry after compacting if need be, and returns the bytes newly allocated for its key; `None` if there is
    /// no room.
    fn insert(&self, at: usize, entry: Entry<'_>) -> Option<usize> {
        let mut header = self.header();
        let need = self.entry_len(header, entry.key, entry.row);
        if need > header.room() {
            return None;
        }
        if need > header.gap() {
            self.compact();
            header = self.header();
        }
        debug_assert!(need <= header.gap());
        let far = (entry.key.len() > Self::NEAR_MAX).then(|| FarKey::new(entry.key));
        let allocated = far.as_ref().map_or(0, |_| block_bytes(entry.key.len()));
        self.put(at, entry, far.map(FarKey::leak));
        Some(allocated)
    }

    /// Takes slot `at` out. Its far key is the caller's.
    fn take(&self, at: usize) -> Option<(u64, usize)> {
        let mut header = self.header();
        let slot = self.slot(at);
        let far = self.far_address(header, slot, false);
        for index in SLOTS + at + 1..SLOTS + header.count {
            self.set_word(index - 1, self.word(index));
        }
        header.count -= 1;
        header.dead += slot.record_len(header.prefix, header.child_len());
        self.set_header(header);
        far
    }

    /// Moves the records together.
    fn compact(&self) {
        let mut header = self.header();
        let mut old = Vec::with_capacity(Self::WORDS);
        old.extend((0..Self::WORDS).map(|index| self.word(index)));
        let old = Words { words: &old };
        header.heap = Self::WORDS * WORD;
        header.dead = 0;
        let fences = [LOW, HIGH].into_iter().filter(|&which| which == LOW || !header.endless);
        for index in fences.chain(SLOTS..SLOTS + header.count) {
            let slot = Slot(old.word(index));
            let len = match index {
                LOW | HIGH if slot.is_far() => slot.row_len() + WORD,
                LOW | HIGH => slot.row_len() + slot.len(),
                _ => slot.record_len(header.prefix, header.child_len()),
            };
            header.heap -= len;
            for at in (0..len).step_by(WORD) {
                self.set_heap(header.heap + at, old.heap_word(slot.offset() + at), (len - at).min(WORD));
            }
            let head = (slot.0 >> 32) as u32;
            self.set_word(index, Slot::new(head, header.heap, slot.len(), slot.row_len(), slot.is_far()).0);
        }
        self.set_header(header);
    }
}

/// A copy of some node's words.
struct Words<'a> {
    words: &'a [u64],
}

impl Page for Words<'_> {
    const WORDS: usize = 0;

    fn word(&self, index: usize) -> u64 {
        self.words[index & (self.words.len() - 1)]
    }

    fn is_current(&self) -> bool {
        true
    }
}
