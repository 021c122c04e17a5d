//! Records out of batches, their chunks put together; and a log read so without being opened.

use std::sync::Arc;

use base::{Lsn, Timestamp, TxnId};
use env::Disk;
use rustc_hash::FxHashMap;

use crate::driver::{Batch, DriverError, Ending};
use crate::file::{FileLog, FileOptions};
use crate::record::{self, Record, RecordKind};

/// Memory of chains that is kept for others, and how much of it at most each.
const SPARES: usize = 4;
const SPARE_BYTES_MAX: usize = 16 << 20;

/// Puts records together, from a position on where one begins.
pub(crate) struct Assembly {
    from: Lsn,
    /// Chunks whose last record is still to come.
    chains: FxHashMap<TxnId, Vec<u8>>,
    /// Memory of chains that are complete, for the next ones.
    spare: Vec<Vec<u8>>,
    pub last_ts: Timestamp,
    pub last_txn: TxnId,
    /// Whole ones handed over.
    pub records: u64,
}

impl Assembly {
    pub fn new(from: Lsn) -> Assembly {
        let (chains, spare) = (FxHashMap::default(), Vec::new());
        Assembly { from, chains, spare, last_ts: Timestamp(0), last_txn: TxnId(0), records: 0 }
    }

    /// Takes the next batch and hands over what is complete with it.
    pub fn take(
        &mut self,
        batch: Batch<'_>,
        each: &mut dyn FnMut(Record<'_>) -> Result<(), String>,
    ) -> Result<(), String> {
        let (mut rest, mut at) = (batch.bytes, batch.start);
        while !rest.is_empty() {
            let (record, tail) = record::split(rest, at).ok_or("a record is malformed")?;
            let begin = std::mem::replace(&mut at, record.end);
            rest = tail;
            if begin < self.from {
                continue;
            }
            self.last_txn = self.last_txn.max(record.txn);
            if record.kind == RecordKind::Chunk {
                let spare = &mut self.spare;
                let chain = self.chains.entry(record.txn).or_insert_with(|| spare.pop().unwrap_or_default());
                chain.extend_from_slice(record.payload);
                continue;
            }
            self.last_ts = self.last_ts.max(record.ts);
            self.records += 1;
            match self.chains.remove(&record.txn) {
                None => each(record)?,
                Some(mut chain) => {
                    chain.extend_from_slice(record.payload);
                    each(Record { payload: &chain, ..record })?;
                    if chain.capacity() <= SPARE_BYTES_MAX && self.spare.len() < SPARES {
                        chain.clear();
                        self.spare.push(chain);
                    }
                }
            }
        }
        Ok(())
    }
}

/// What reading a log has found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inspected {
    /// Its end.
    pub end: Lsn,
    /// Whole records.
    pub records: u64,
    /// Where something lies behind its end that an opening would cut off: the log was not closed, and whether that was
    /// acknowledged cannot be told.
    pub cut: Option<String>,
    /// Whether the log was closed there; a log of an earlier version does not say.
    pub was_closed: Option<bool>,
}

/// Reads a log's files as opening it would, record by record from `from` on, and changes nothing. Others know that it was durable
/// up to `known`.
///
/// # Errors
/// `Corrupt` if something durable is damaged or `each` refuses a record, `Refused` for another version, `Failed`.
pub fn inspect(
    disk: &Arc<dyn Disk>,
    from: Lsn,
    known: Lsn,
    each: &mut dyn FnMut(Record<'_>) -> Result<(), String>,
) -> Result<Inspected, DriverError> {
    let mut assembly = Assembly::new(from);
    let mut log = FileLog::new(Arc::clone(disk), FileOptions::default()).durable_up_to(known);
    let scan = log.scan(from, &mut |batch| assembly.take(batch, each))?;
    Ok(Inspected { end: scan.end, records: assembly.records, cut: scan.cut, was_closed: scan.was_closed })
}

/// Where a log ends whose end is at this position, as an opening would say it. Changes nothing.
///
/// # Errors
/// `Corrupt`, `Refused`, `Failed`.
pub fn ending(disk: &Arc<dyn Disk>, end: Lsn) -> Result<Ending, DriverError> {
    let mut log = FileLog::new(Arc::clone(disk), FileOptions::default());
    log.scan(end, &mut |_| Ok(())).map(|scan| scan.ending)
}
