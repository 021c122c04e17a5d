//! Blocks: rows of one table between two RowIds, or bytes of the engine's own. Byte tables: docs/formats/checkpoint.md.
//!
//! A block stands alone: it says what it holds, carries its checksum, and is compressed by itself, so blocks are written and
//! loaded in any order by any number of threads.

use std::ops::Range;

use base::{LayoutId, RowId};

use crate::bytes::{self, u32_at, u64_at};

const MAGIC: u32 = 0x4b4c_424e;

/// Bytes of a block before its content.
pub(crate) const HEADER: usize = 64;
/// Blocks begin at multiples of this.
pub(crate) const ALIGN: usize = 8;
/// Bytes of content, before compression, at which a block of rows is closed.
pub(crate) const CONTENT_TARGET: usize = 256 << 10;
/// Largest content: one row of the largest size, and what a block may hold beside it.
pub(crate) const CONTENT_MAX: usize = 1 << 30;

/// LZ4 makes of a byte less than this.
const LZ4_RATIO_MAX: u32 = 256;

/// What a block holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Holds {
    /// All rows of a table with RowIds in the range, in their order. The table is named as the engine names it.
    Rows {
        /// The table.
        table: u64,
        /// The range. What an older image has in it is replaced, rows that are in neither block included.
        range: Range<RowId>,
        /// How many there are.
        rows: u32,
    },
    /// A part of the engine's own bytes of this name.
    Meta(u64),
    /// Where the other blocks of the file are.
    Directory,
}

/// Where a block lies and what it says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockHeader {
    /// What it holds.
    pub holds: Holds,
    /// Number of the checkpoint that wrote it.
    pub checkpoint: u64,
    /// Bytes behind the header.
    pub stored: u32,
    /// Bytes before compression.
    pub content: u32,
    is_compressed: bool,
}

impl BlockHeader {
    /// Bytes of the whole block in its file.
    pub(crate) fn len(&self) -> usize {
        (HEADER + self.stored as usize).next_multiple_of(ALIGN)
    }

    fn encode(&self, out: &mut [u8]) {
        out.fill(0);
        let (kind, rows, table, range) = match &self.holds {
            Holds::Rows { table, range, rows } => (1, *rows, *table, range.start.0..range.end.0),
            Holds::Meta(name) => (2, 0, *name, 0..0),
            Holds::Directory => (3, 0, 0, 0..0),
        };
        out[..4].copy_from_slice(&MAGIC.to_le_bytes());
        out[8] = kind;
        out[9] = u8::from(self.is_compressed);
        out[12..16].copy_from_slice(&self.stored.to_le_bytes());
        out[16..20].copy_from_slice(&self.content.to_le_bytes());
        out[20..24].copy_from_slice(&rows.to_le_bytes());
        for (at, word) in [(24, table), (32, range.start), (40, range.end), (48, self.checkpoint)] {
            out[at..at + 8].copy_from_slice(&word.to_le_bytes());
        }
    }

    /// The header at the start of `bytes`; the checksum is not looked at.
    pub(crate) fn decode(bytes: &[u8]) -> Option<BlockHeader> {
        let bytes = bytes.get(..HEADER)?;
        if u32_at(bytes, 0) != MAGIC {
            return None;
        }
        let holds = match bytes[8] {
            1 => Holds::Rows {
                table: u64_at(bytes, 24),
                range: RowId(u64_at(bytes, 32))..RowId(u64_at(bytes, 40)),
                rows: u32_at(bytes, 20),
            },
            2 => Holds::Meta(u64_at(bytes, 24)),
            3 => Holds::Directory,
            _ => return None,
        };
        let is_compressed = match bytes[9] {
            0 => false,
            1 => true,
            _ => return None,
        };
        let (stored, content) = (u32_at(bytes, 12), u32_at(bytes, 16));
        // What memory is taken for is bounded by what is there.
        let largest = if is_compressed { stored.saturating_mul(LZ4_RATIO_MAX) } else { stored };
        let is_possible = content as usize <= CONTENT_MAX && content <= largest && (is_compressed || stored == content);
        let header = BlockHeader { holds, checkpoint: u64_at(bytes, 48), stored, content, is_compressed };
        is_possible.then_some(header)
    }
}

/// Appends a block to `out`, padded to the alignment, and answers its header. Content that does not shrink is stored as it is.
pub(crate) fn encode(holds: Holds, checkpoint: u64, content: &[u8], out: &mut Vec<u8>) -> BlockHeader {
    let at = out.len();
    let body = at + HEADER;
    out.resize(body + lz4_flex::block::get_maximum_output_size(content.len()), 0);
    let compressed = lz4_flex::block::compress_into(content, &mut out[body..]).unwrap_or(usize::MAX);
    // A sixteenth is the least that is worth the time of decompressing.
    let is_compressed = compressed < content.len() - content.len() / 16;
    let stored = if is_compressed { compressed } else { content.len() };
    if !is_compressed {
        out[body..body + stored].copy_from_slice(content);
    }
    out.truncate(body + stored);
    let header = BlockHeader { holds, checkpoint, stored: stored as u32, content: content.len() as u32, is_compressed };
    header.encode(&mut out[at..body]);
    let crc = crc32c::crc32c(&out[at + 8..]);
    out[at + 4..at + 8].copy_from_slice(&crc.to_le_bytes());
    out.resize(at + header.len(), 0);
    header
}

/// The block at the start of `bytes`: its header and its content, which may lie in `scratch`. `None` if it is damaged.
pub(crate) fn decode<'b>(bytes: &'b [u8], scratch: &'b mut Vec<u8>) -> Option<(BlockHeader, &'b [u8])> {
    let header = BlockHeader::decode(bytes)?;
    let block = bytes.get(..HEADER.checked_add(header.stored as usize)?)?;
    let padding = bytes.get(block.len()..header.len())?;
    if padding.iter().any(|byte| *byte != 0) || u32_at(block, 4) != crc32c::crc32c(&block[8..]) {
        return None;
    }
    let stored = &block[HEADER..];
    if !header.is_compressed {
        return Some((header, stored));
    }
    let content = header.content as usize;
    // Not made shorter: what is cut off would be cleared again for the next block.
    if scratch.len() < content {
        scratch.resize(content, 0);
    }
    let len = lz4_flex::block::decompress_into(stored, &mut scratch[..content]).ok()?;
    (len == content).then_some((header, &scratch[..content]))
}

/// Gathers the rows of a block.
#[derive(Default)]
pub(crate) struct RowsContent {
    bytes: Vec<u8>,
    rows: u32,
    last: u64,
}

impl RowsContent {
    pub fn begin(&mut self, first: RowId) {
        self.bytes.clear();
        self.rows = 0;
        self.last = first.0;
    }

    /// REQUIRES that RowIds rise.
    pub fn push(&mut self, row: RowId, layout: LayoutId, tuple: &[u8]) {
        bytes::put(&mut self.bytes, row.0 - self.last);
        bytes::put(&mut self.bytes, u64::from(layout.0));
        bytes::put(&mut self.bytes, tuple.len() as u64);
        self.bytes.extend_from_slice(tuple);
        self.last = row.0;
        self.rows += 1;
    }

    pub fn rows(&self) -> u32 {
        self.rows
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub fn is_full(&self) -> bool {
        self.bytes.len() >= CONTENT_TARGET
    }
}

/// The rows of a block's content, in order. Ends with `Err(())` where it is malformed.
pub(crate) struct BlockRows<'b> {
    rest: &'b [u8],
    last: u64,
    range: Range<RowId>,
    left: u32,
}

impl<'b> BlockRows<'b> {
    pub fn new(content: &'b [u8], range: Range<RowId>, rows: u32) -> BlockRows<'b> {
        BlockRows { rest: content, last: range.start.0, range, left: rows }
    }

    #[inline]
    fn row(&mut self) -> Option<(RowId, LayoutId, &'b [u8])> {
        let row = RowId(self.last.checked_add(bytes::take(&mut self.rest)?)?);
        let layout = u32::try_from(bytes::take(&mut self.rest)?).ok()?;
        let len = usize::try_from(bytes::take(&mut self.rest)?).ok()?;
        let (tuple, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        self.last = row.0;
        self.range.contains(&row).then_some((row, LayoutId(layout), tuple))
    }
}

impl<'b> Iterator for BlockRows<'b> {
    type Item = Result<(RowId, LayoutId, &'b [u8]), ()>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.left == 0 {
            // Bytes behind the last row are as wrong as too few.
            return (!std::mem::take(&mut self.rest).is_empty()).then_some(Err(()));
        }
        self.left -= 1;
        let row = self.row().ok_or(());
        if row.is_err() {
            (self.left, self.rest) = (0, &[]);
        }
        Some(row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(table: u64, range: Range<u64>, rows: u32) -> Holds {
        Holds::Rows { table, range: RowId(range.start)..RowId(range.end), rows }
    }

    fn sample() -> (Vec<u8>, Vec<u8>) {
        let mut content = RowsContent::default();
        content.begin(RowId(100));
        for n in 0..50u64 {
            content.push(RowId(100 + 3 * n), LayoutId(1 + (n % 2) as u32), format!("row {n} of many alike").as_bytes());
        }
        let mut out = Vec::new();
        encode(rows(7, 100..400, content.rows()), 3, content.as_bytes(), &mut out);
        (out, content.as_bytes().to_vec())
    }

    #[test]
    fn a_block_of_rows_round_trips_compressed() {
        let (block, content) = sample();
        let mut scratch = Vec::new();
        let (header, read) = decode(&block, &mut scratch).expect("undamaged");
        assert_eq!((header.checkpoint, header.len(), read), (3, block.len(), &content[..]));
        assert!(header.is_compressed && block.len() < content.len());
        let Holds::Rows { table: 7, range, rows: 50 } = header.holds else { panic!("{header:?}") };
        let read: Vec<_> = BlockRows::new(read, range, 50).collect::<Result<_, _>>().expect("well formed");
        assert_eq!(read[2], (RowId(106), LayoutId(1), &b"row 2 of many alike"[..]));
        assert_eq!(read.len(), 50);
    }

    #[test]
    fn what_does_not_shrink_is_stored() {
        let mut state = 1u32;
        let mut noise = || {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            state as u8
        };
        let noise: Vec<u8> = (0..1000).map(|_| noise()).collect();
        for content in [&noise[..], &[], &[1]] {
            let mut out = Vec::new();
            let header = encode(Holds::Meta(9), 1, content, &mut out);
            assert!(!header.is_compressed);
            assert_eq!(out.len() % ALIGN, 0);
            let mut scratch = Vec::new();
            assert_eq!(decode(&out, &mut scratch), Some((header, content)));
        }
    }

    #[test]
    fn every_flipped_bit_and_every_cut_is_found() {
        let (block, _) = sample();
        let stored = HEADER + BlockHeader::decode(&block).expect("a header").stored as usize;
        let mut scratch = Vec::new();
        for bit in 0..stored * 8 {
            let mut bad = block.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(decode(&bad, &mut scratch), None, "bit {bit}");
        }
        for cut in 0..stored {
            assert_eq!(decode(&block[..cut], &mut scratch), None, "cut at {cut}");
        }
    }

    #[test]
    fn malformed_rows_end_with_an_error() {
        let mut content = RowsContent::default();
        content.begin(RowId(10));
        content.push(RowId(12), LayoutId(1), b"abc");
        let good = content.as_bytes();
        let read = |bytes: &[u8], range: Range<u64>, rows: u32| {
            BlockRows::new(bytes, RowId(range.start)..RowId(range.end), rows).any(|row| row.is_err())
        };
        assert!(!read(good, 10..20, 1));
        assert!(read(good, 10..12, 1), "a row outside of the range");
        assert!(read(good, 10..20, 2), "fewer rows than said");
        assert!(read(good, 10..20, 0), "more bytes than rows");
        assert!(read(&good[..good.len() - 1], 10..20, 1), "cut");
        assert!(read(&[255; 30], 10..20, 1), "a number without end");
    }
}
