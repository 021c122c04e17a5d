//! Batches as they lie in a segment, and the segment's own header. Byte tables: docs/formats/log.md.

use base::{Lsn, WriterEpoch};

const SEGMENT_MAGIC: &[u8; 8] = b"NYALALOG";
const FRAME_MAGIC: u32 = 0x4c41_594e;

/// Version of the format. Older ones that are listed in docs/formats/log.md are read, newer ones refused.
pub(crate) const VERSION: u32 = 5;
/// The oldest that is read.
const OLDEST: u32 = 1;
/// From this one on a segment says how large its file is.
const SIZED: u32 = 4;

/// Bytes before the first frame.
pub(crate) const SEGMENT_HEADER: usize = 64;
/// Where a segment's header names the database.
pub(crate) const SEGMENT_DATABASE: usize = 40;
/// Bytes of a frame before its records.
pub(crate) const FRAME_HEADER: usize = 48;
/// Frames begin at multiples of this.
pub(crate) const ALIGN: usize = 8;

/// Bytes that a frame with `records` bytes of records takes.
pub(crate) fn frame_len(records: usize) -> usize {
    (FRAME_HEADER + records).next_multiple_of(ALIGN)
}

/// What a segment says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SegmentHeader {
    /// What the segment has is of this version at most; nothing of a newer one is added to it.
    pub version: u32,
    pub start: Lsn,
    pub generation: u64,
    /// Bytes of the file; `None` before version 4.
    pub size: Option<u64>,
    /// Which database it is of; 0 if that is not known.
    pub database: u64,
}

impl SegmentHeader {
    pub fn encode(&self) -> [u8; SEGMENT_HEADER] {
        let mut bytes = [0u8; SEGMENT_HEADER];
        bytes[..8].copy_from_slice(SEGMENT_MAGIC);
        bytes[8..12].copy_from_slice(&self.version.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.start.0.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.generation.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.size.unwrap_or(0).to_le_bytes());
        bytes[SEGMENT_DATABASE..SEGMENT_DATABASE + 8].copy_from_slice(&self.database.to_le_bytes());
        let crc = crc32c::crc32c(&bytes[..60]);
        bytes[60..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// `Ok(None)` for bytes that are no header; an error for a header of another version.
    pub fn decode(bytes: &[u8]) -> Result<Option<SegmentHeader>, String> {
        let Some(bytes) = bytes.get(..SEGMENT_HEADER) else { return Ok(None) };
        if &bytes[..8] != SEGMENT_MAGIC || u32_at(bytes, 60) != crc32c::crc32c(&bytes[..60]) {
            return Ok(None);
        }
        let version = u32_at(bytes, 8);
        if !(OLDEST..=VERSION).contains(&version) {
            return Err(format!("the log's format has version {version}, this server reads {OLDEST} to {VERSION}"));
        }
        let size = (version >= SIZED).then(|| u64_at(bytes, 32));
        let (start, generation, database) =
            (Lsn(u64_at(bytes, 16)), u64_at(bytes, 24), u64_at(bytes, SEGMENT_DATABASE));
        Ok(Some(SegmentHeader { version, start, generation, size, database }))
    }
}

/// What a frame says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrameHeader {
    /// Bytes of records.
    pub len: u32,
    pub start: Lsn,
    pub generation: u64,
    pub epoch: WriterEpoch,
    /// The durable position when the frame was written (rule R5).
    pub durable: Lsn,
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

/// Appends a frame, padded to the alignment.
pub(crate) fn encode(header: &FrameHeader, records: &[u8], out: &mut Vec<u8>) {
    let at = out.len();
    out.extend_from_slice(&FRAME_MAGIC.to_le_bytes());
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&header.len.to_le_bytes());
    out.extend_from_slice(&[0; 4]);
    for word in [header.start.0, header.generation, header.epoch.0, header.durable.0] {
        out.extend_from_slice(&word.to_le_bytes());
    }
    out.extend_from_slice(records);
    let crc = crc32c::crc32c(&out[at + 8..]);
    out[at + 4..at + 8].copy_from_slice(&crc.to_le_bytes());
    out.resize(at + frame_len(records.len()), 0);
}

/// Bytes of the frame, without padding, that `bytes` look like the beginning of.
pub(crate) fn len_of(bytes: &[u8]) -> Option<usize> {
    let header = bytes.get(..FRAME_HEADER)?;
    if u32_at(header, 0) != FRAME_MAGIC {
        return None;
    }
    FRAME_HEADER.checked_add(u32_at(header, 8) as usize)
}

/// The frame at the start of `bytes`, if there is a whole and undamaged one.
pub(crate) fn decode(bytes: &[u8]) -> Option<(FrameHeader, &[u8])> {
    let header = bytes.get(..FRAME_HEADER)?;
    if u32_at(header, 0) != FRAME_MAGIC {
        return None;
    }
    let len = u32_at(header, 8);
    let end = FRAME_HEADER.checked_add(len as usize)?;
    let frame = bytes.get(..end)?;
    if u32_at(header, 4) != crc32c::crc32c(&frame[8..]) {
        return None;
    }
    let decoded = FrameHeader {
        len,
        start: Lsn(u64_at(header, 16)),
        generation: u64_at(header, 24),
        epoch: WriterEpoch(u64_at(header, 32)),
        durable: Lsn(u64_at(header, 40)),
    };
    Some((decoded, &frame[FRAME_HEADER..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(len: u32) -> FrameHeader {
        FrameHeader { len, start: Lsn(10), generation: 3, epoch: WriterEpoch(1), durable: Lsn(7) }
    }

    #[test]
    fn frames_round_trip_and_are_aligned() {
        for len in [0usize, 1, 7, 8, 100] {
            let records = vec![5u8; len];
            let mut out = Vec::new();
            encode(&header(len as u32), &records, &mut out);
            assert_eq!(out.len() % ALIGN, 0);
            assert_eq!(decode(&out), Some((header(len as u32), &records[..])));
        }
    }

    #[test]
    fn every_flipped_bit_is_found() {
        let mut out = Vec::new();
        encode(&header(5), b"hello", &mut out);
        for bit in 0..(FRAME_HEADER + 5) * 8 {
            let mut bad = out.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(decode(&bad), None, "bit {bit}");
        }
        for cut in 0..FRAME_HEADER + 5 {
            assert_eq!(decode(&out[..cut]), None);
        }
        let header = SegmentHeader { version: VERSION, start: Lsn(5), generation: 2, size: Some(4096), database: 9 };
        let segment = header.encode();
        assert_eq!(SegmentHeader::decode(&segment), Ok(Some(header)));
        let mut bad = segment;
        bad[20] ^= 1;
        assert_eq!(SegmentHeader::decode(&bad), Ok(None));
    }
}
