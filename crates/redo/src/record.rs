//! Records: what one transaction writes, cut into chunks (rule R4).
//!
//! ```text
//! kind u8 | 0 u8 ×3 | payload length u32 | transaction u64 | timestamp u64 | payload
//! ```
//! Little-endian. A transaction is a chain of `Chunk` records whose last is of another kind; a chain without it is ignored.

use base::{Lsn, Timestamp, TxnId};

/// Bytes of a record before its payload.
pub(crate) const HEADER: usize = 24;

/// Largest payload of one record.
pub(crate) const PAYLOAD_MAX: usize = (1 << 20) - HEADER;

/// What a record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum RecordKind {
    /// Part of a transaction that more records follow.
    Chunk = 1,
    /// The end of a committed transaction.
    Commit = 2,
    /// The end of the first phase of a transaction in two.
    Prepare = 3,
    /// A prepared transaction is committed.
    CommitPrepared = 4,
    /// A prepared transaction is rolled back.
    RollbackPrepared = 5,
    /// A slot that came to nothing.
    Noop = 6,
    /// Sequence values are used up to here.
    Sequence = 7,
    /// A message of a transaction to the outside.
    Message = 8,
}

impl RecordKind {
    pub(crate) fn from_u8(byte: u8) -> Option<RecordKind> {
        use RecordKind::*;
        [Chunk, Commit, Prepare, CommitPrepared, RollbackPrepared, Noop, Sequence, Message]
            .into_iter()
            .find(|k| *k as u8 == byte)
    }
}

/// A record read back, its chunks put together.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// What it is.
    pub kind: RecordKind,
    /// Whose it is.
    pub txn: TxnId,
    /// When it was committed.
    pub ts: Timestamp,
    /// The position after it.
    pub end: Lsn,
    /// What it says.
    pub payload: &'a [u8],
}

pub(crate) fn write_header(kind: RecordKind, len: usize, txn: TxnId, ts: Timestamp, out: &mut Vec<u8>) {
    out.extend_from_slice(&[kind as u8, 0, 0, 0]);
    out.extend_from_slice(&(len as u32).to_le_bytes());
    out.extend_from_slice(&txn.0.to_le_bytes());
    out.extend_from_slice(&ts.0.to_le_bytes());
}

/// Splits the first record off `bytes`, which begin at a position.
pub(crate) fn split(bytes: &[u8], at: Lsn) -> Option<(Record<'_>, &[u8])> {
    let (header, rest) = bytes.split_at_checked(HEADER)?;
    let kind = RecordKind::from_u8(header[0])?;
    let word = |at: usize| u64::from_le_bytes(header[at..at + 8].try_into().expect("eight bytes"));
    let len = u32::from_le_bytes(header[4..8].try_into().expect("four bytes")) as usize;
    let (payload, rest) = rest.split_at_checked(len)?;
    let end = Lsn(at.0.checked_add((HEADER + len) as u64)?);
    Some((Record { kind, txn: TxnId(word(8)), ts: Timestamp(word(16)), end, payload }, rest))
}
