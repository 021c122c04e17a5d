//! The log: segments of any bytes. Properties: it opens, or says what is wrong; what was read once is read again, record by record,
//! by the next start.

use std::sync::Arc;

use base::Lsn;
use env::Disk as _;
use env::sim::SimDisk;
use redo::{FileLog, FileOptions, Log, RecordKind};
use sandbox::world;

use crate::seal;

/// Small, so that an input reaches more than one.
const OPTIONS: FileOptions = FileOptions { segment_bytes: 16 << 10, batch_bytes_max: 4 << 10 };
const SEGMENTS_MAX: usize = 4;

/// The first byte: whether checksums and sizes are put right; then segments, each behind its length (2 bytes), each of which has the
/// position in its name that it has in its header. If one says that there is a file that knows the log's end, it is made, or has the
/// bytes that are left.
fn disk_of(input: &[u8]) -> Option<SimDisk> {
    let (flags, mut rest) = input.split_first()?;
    let disk = SimDisk::new();
    let mut newest = None;
    for _ in 0..SEGMENTS_MAX {
        let Some((len, tail)) = rest.split_first_chunk() else { break };
        let (bytes, tail) = tail.split_at(usize::from(u16::from_le_bytes(*len)).min(tail.len()));
        rest = tail;
        let mut bytes = bytes.to_vec();
        let is_sized = bytes.get(8).is_some_and(|version| *version > 3);
        if is_sized && flags & 2 == 0 && bytes.len() >= 40 {
            bytes[32..40].copy_from_slice(&OPTIONS.segment_bytes.to_le_bytes());
        }
        if flags & 1 == 1 {
            seal::segment(&mut bytes);
        }
        let start = bytes.get(16..24).map_or(0, |b| u64::from_le_bytes(b.try_into().unwrap_or_default()));
        let Ok(file) = disk.create(&format!("{start:020}.log")) else { continue };
        newest = newest.max(is_sized.then_some(start));
        if flags & 2 == 0 {
            bytes.resize(bytes.len().max(OPTIONS.segment_bytes as usize), 0);
        }
        file.write_at(&bytes, 0).and_then(|()| file.sync()).ok()?;
    }
    if let Some(newest) = newest {
        let mut bytes = if flags & 4 == 0 { seal::log_end(newest) } else { rest.to_vec() };
        bytes.resize(3 * env::PAGE, 0);
        disk.create("log.end").and_then(|file| file.write_at(&bytes, 0)).ok()?;
    }
    disk.sync_directory().ok()?;
    Some(disk)
}

type Read = Vec<(RecordKind, u64, u64, Vec<u8>)>;

/// Records as the log hands them over, and where it ends; `None` if it refuses.
fn records(disk: &SimDisk) -> Option<(Read, Lsn)> {
    let mut found = Vec::new();
    let mut keep = |record: redo::Record<'_>| {
        engine::fuzz_operations(record.payload);
        found.push((record.kind, record.txn.0, record.ts.0, record.payload.to_vec()));
        Ok(())
    };
    let driver = Box::new(FileLog::new(Arc::new(disk.clone()), OPTIONS));
    let opened = Log::open(&world(disk), driver, Lsn(0), &mut keep, Box::new(|_| {}));
    let (_, replayed) = opened.ok()?;
    Some((found, replayed.end))
}

/// See the module.
pub(crate) fn run(input: &[u8]) {
    // What a record says is read without a frame around it, too.
    engine::fuzz_operations(input);
    let Some(disk) = disk_of(input) else { return };
    let Some(first) = records(&disk) else { return };
    assert_eq!(records(&disk), Some(first), "read back twice");
}
