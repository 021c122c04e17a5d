//! The log against a disk that loses, tears, reorders and damages what was not synced.
//!
//! Each run appends transactions one after the other, notes which were reported durable, and stops the machine at some write
//! or sync. What is read back must be a prefix of what was appended that contains all that was reported durable: for a short
//! run at each of its operations and kind of crash, for longer ones at random operations, through several lives.
//!
//! A failing case prints its seed; `NYALA_SEED=n cargo test -p redo` runs that one first, and those after it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use base::{Lsn, Timestamp, TxnId};
use env::Disk as _;
use env::sim::{Crash, SimDisk, SimRandom};
use env::{World, real};
use redo::{DriverError, FileLog, FileOptions, Log, RecordKind, Replayed, Reserve};

const OPTIONS: FileOptions = FileOptions { segment_bytes: 16 << 10, batch_bytes_max: 4 << 10 };

fn world(disk: &SimDisk) -> World {
    World { disk: Arc::new(disk.clone()), clock: Arc::new(real::SystemClock::new()), spawn: Arc::new(real::Threads) }
}

/// Opens the log on a disk and collects what it has: (timestamp, payload).
fn open(disk: &SimDisk) -> Result<(Log, Replayed, Vec<(u64, Vec<u8>)>), DriverError> {
    open_from(disk, Lsn(0))
}

/// As [`open`], from a position on.
fn open_from(disk: &SimDisk, from: Lsn) -> Result<(Log, Replayed, Vec<(u64, Vec<u8>)>), DriverError> {
    let world = world(disk);
    let driver = Box::new(FileLog::new(Arc::clone(&world.disk), OPTIONS));
    let mut found = Vec::new();
    let (log, replayed) = Log::open(
        &world,
        driver,
        from,
        &mut |record| {
            found.push((record.ts.0, record.payload.to_vec()));
            Ok(())
        },
        Box::new(|_| {}),
    )?;
    Ok((log, replayed, found))
}

/// Appends one transaction once there is room; `None` if the log failed first.
fn append(log: &Log, ts: u64, payload: &[u8]) -> Option<Lsn> {
    loop {
        match log.reserve(payload.len(), || Box::new(|| {})) {
            Reserve::Ready(room) => {
                let stamp = |_| (Timestamp(ts), ());
                return Some(log.append(room, RecordKind::Commit, TxnId(ts), payload, stamp).0);
            }
            Reserve::Later | Reserve::Full if log.durable().has_failed() => return None,
            Reserve::Full => return None,
            Reserve::Later => std::thread::yield_now(),
        }
    }
}

fn payload(ts: u64, random: &mut SimRandom) -> Vec<u8> {
    let len = if random.below(8) == 0 { random.below(3000) } else { random.below(200) } as usize;
    (0..len).map(|i| (ts as usize * 31 + i) as u8).collect()
}

/// Appends transactions until the machine stops; answers those appended and how many of them were reported durable.
fn run(log: &Log, first: u64, count: u64, random: &mut SimRandom) -> (Vec<(u64, Vec<u8>)>, usize) {
    let (mut appended, mut durable) = (Vec::new(), 0);
    for ts in first..first + count {
        let bytes = payload(ts, random);
        let Some(end) = append(log, ts, &bytes) else { break };
        appended.push((ts, bytes));
        // Some are not waited for, so that groups hold more than one.
        if random.below(3) > 0 {
            if !log.durable().block(end) {
                break;
            }
            durable = appended.len();
        }
    }
    (appended, durable)
}

fn seeds(count: u64) -> Vec<u64> {
    let first = std::env::var("NYALA_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(1u64);
    (first..first + count).collect()
}

#[test]
fn crashes_at_random_operations_lose_nothing_that_was_durable() {
    const CRASHES: [Crash; 4] = [Crash::LoseUnsynced, Crash::KeepAll, Crash::AnySectors, Crash::FlipBits];
    for seed in seeds(120) {
        let mut random = SimRandom::new(seed);
        let crash = CRASHES[(seed % 4) as usize];
        let mut disk = SimDisk::new();
        let mut expected: Vec<(u64, Vec<u8>)> = Vec::new();
        // Three lives, so that cuts, generations and segments of earlier ones are met again.
        for life in 0..3 {
            let (log, replayed, found) = open(&disk).unwrap_or_else(|e| panic!("seed {seed}, life {life}: {e}"));
            assert_eq!(found, expected, "seed {seed}, life {life}");
            let last = expected.last().map_or(0, |(ts, _)| *ts);
            assert_eq!(replayed.last_ts, Timestamp(last), "seed {seed}, life {life}");
            let stop = disk.operations() + 1 + random.below(60);
            disk.freeze_at(stop);
            let (appended, durable) = run(&log, last + 1, 40, &mut random);
            drop(log);
            let after = disk.after_crash(crash, &mut random);
            let (_, _, found) = open(&after.clone()).unwrap_or_else(|e| panic!("seed {seed}, life {life}: {e}"));
            let kept = found.len().checked_sub(expected.len()).expect("nothing of an earlier life is lost");
            assert!(kept >= durable, "seed {seed}, life {life}: {durable} were durable, {kept} are there");
            expected.extend_from_slice(&appended[..kept]);
            assert_eq!(found, expected, "seed {seed}, life {life}");
            disk = after.after_crash(Crash::KeepAll, &mut random);
        }
    }
}

/// A torn frame is cut at a start. Its first sector stays; the other ones may come from what is written over it next, if a client sends the same again.
#[test]
fn a_frame_that_was_cut_does_not_come_back_in_pieces() {
    const SECTOR: usize = 512;
    let whole = |disk: &SimDisk| {
        let file = disk.open(&disk_segments(disk)[0]).unwrap();
        let mut bytes = vec![0; OPTIONS.segment_bytes as usize];
        assert_eq!(file.read_at(&mut bytes, 0).unwrap(), bytes.len());
        bytes
    };
    let write = |disk: &SimDisk, bytes: &[u8]| {
        let file = disk.open(&disk_segments(disk)[0]).unwrap();
        file.write_at(bytes, 0).and_then(|()| file.sync()).unwrap();
    };
    let mut random = SimRandom::new(1);
    // Appends what is written and never synced.
    let mut append_unsynced = |disk: &SimDisk, payload: &[u8]| {
        let (log, _, found) = open(disk).unwrap();
        if found.is_empty() {
            let end = append(&log, 1, b"first").unwrap();
            assert!(log.durable().block(end));
        }
        let before = whole(disk);
        // The thread that prepares segments syncs as well.
        disk.fail_syncs(u32::MAX);
        let end = append(&log, 2, payload).unwrap();
        assert!(!log.durable().block(end));
        let after = disk.after_crash(Crash::KeepAll, &mut random);
        let start = before.iter().zip(whole(&after)).position(|(a, b)| *a != b).expect("a frame was written");
        (after, start.next_multiple_of(SECTOR))
    };
    let text = |first: u8| [vec![first; 1000], vec![9; 1000]].concat();
    let (disk, cut) = append_unsynced(&SimDisk::new(), &text(1));
    let (old, cut) = (whole(&disk), cut + 2 * SECTOR);
    let mut torn = old.clone();
    torn[cut..].fill(0);
    write(&disk, &torn);
    let (disk, _) = append_unsynced(&disk, &text(2));
    let mut mixed = whole(&disk);
    assert_eq!(mixed[cut..], old[cut..], "the same was sent again");
    mixed[..cut].copy_from_slice(&old[..cut]);
    write(&disk, &mixed);
    let (_, _, found) = open(&disk).unwrap();
    assert_eq!(found, [(1, b"first".to_vec())]);
}

/// The same short run, stopped at each of its writes and syncs in turn, under each kind of crash.
#[test]
fn a_short_run_survives_a_crash_at_each_of_its_operations() {
    const SEED: u64 = 5;
    const TRANSACTIONS: u64 = 12;
    let whole = SimDisk::new();
    let (log, _, _) = open(&whole).unwrap();
    let opened = whole.operations();
    let (appended, durable) = run(&log, 1, TRANSACTIONS, &mut SimRandom::new(SEED));
    assert!(appended.len() as u64 == TRANSACTIONS && durable > 0);
    drop(log);
    for stop in opened..=whole.operations() {
        for crash in [Crash::LoseUnsynced, Crash::KeepAll, Crash::AnySectors, Crash::FlipBits] {
            let disk = SimDisk::new();
            let (log, _, _) = open(&disk).unwrap();
            disk.freeze_at(stop);
            let (appended, durable) = run(&log, 1, TRANSACTIONS, &mut SimRandom::new(SEED));
            drop(log);
            let after = disk.after_crash(crash, &mut SimRandom::new(stop + 1));
            let (_, _, found) = open(&after).unwrap_or_else(|e| panic!("stopped at {stop}, {crash:?}: {e}"));
            assert!(found.len() >= durable, "stopped at {stop}, {crash:?}: {durable} durable, {} there", found.len());
            assert_eq!(found, appended[..found.len()], "stopped at {stop}, {crash:?}");
        }
    }
}

#[test]
fn damage_to_what_was_durable_is_refused() {
    let disk = SimDisk::new();
    let mut random = SimRandom::new(7);
    let (log, _, _) = open(&disk).unwrap();
    let mut ends = Vec::new();
    for ts in 1..=20 {
        let end = append(&log, ts, &payload(ts, &mut random)).unwrap();
        assert!(log.durable().block(end));
        ends.push(end);
    }
    drop(log);
    // The last frame has no witness that it was durable; every earlier one has.
    let name = disk_segments(&disk).remove(0);
    for bit in [64 * 8 + 5, 64 * 8 + 48 * 8 + 3, 200 * 8] {
        let damaged = disk.after_crash(Crash::KeepAll, &mut random);
        damaged.flip_bit(&name, bit);
        match open(&damaged) {
            Err(DriverError::Corrupt(place)) => assert!(place.contains(&name), "{place}"),
            other => panic!("bit {bit}: opened: {:?}", other.map(|o| o.1)),
        }
    }
}

fn disk_segments(disk: &SimDisk) -> Vec<String> {
    use env::Disk;
    disk.list().unwrap().into_iter().filter(|n| n.ends_with(".log")).collect()
}

#[test]
fn a_failed_sync_stops_the_log() {
    let disk = SimDisk::new();
    let world = world(&disk);
    let told = Arc::new(AtomicBool::new(false));
    let telling = Arc::clone(&told);
    let driver = Box::new(FileLog::new(Arc::clone(&world.disk), OPTIONS));
    let on_failure = Box::new(move |_| telling.store(true, Ordering::SeqCst));
    let (log, _) = Log::open(&world, driver, Lsn(0), &mut |_| Ok(()), on_failure).unwrap();
    let end = append(&log, 1, b"one").unwrap();
    assert!(log.durable().block(end));
    append_until_one_fails(&log, &disk, 2);
    drop(log);
    assert!(told.load(Ordering::SeqCst));
}

#[test]
fn a_full_disk_refuses_before_the_stamp_and_heals() {
    let disk = SimDisk::new();
    let (log, _, _) = open(&disk).unwrap();
    let end = append(&log, 1, b"first").unwrap();
    assert!(log.durable().block(end));
    // Room for what is there, not for one more segment.
    disk.set_quota(Some(3 * OPTIONS.segment_bytes));
    let mut ts = 1;
    let refused = loop {
        match log.reserve(1000, || Box::new(|| {})) {
            Reserve::Ready(room) => {
                ts += 1;
                let (end, ()) = log.append(room, RecordKind::Commit, TxnId(ts), &[7; 1000], |_| (Timestamp(ts), ()));
                assert!(log.durable().block(end), "an append whose space was set aside is durable");
            }
            Reserve::Later => std::thread::yield_now(),
            Reserve::Full => break ts,
        }
    };
    assert!(refused > 10);
    disk.set_quota(None);
    let end = append_retrying(&log, ts + 1);
    assert!(log.durable().block(end));
    drop(log);
    let (_, _, found) = open(&disk).unwrap();
    assert_eq!(found.len() as u64, ts + 1);
}

/// Space is promised once: records that wait for the flusher keep theirs.
#[test]
fn a_full_disk_refuses_transactions_that_nobody_waits_for() {
    for round in 0..20 {
        let disk = SimDisk::new();
        let (log, _, _) = open(&disk).unwrap();
        let end = append(&log, 1, b"first").unwrap();
        assert!(log.durable().block(end));
        disk.set_quota(Some((3 + round % 3) * OPTIONS.segment_bytes));
        let (mut ts, mut last) = (1, end);
        loop {
            match log.reserve(1000, || Box::new(|| {})) {
                Reserve::Ready(room) => {
                    ts += 1;
                    last = log.append(room, RecordKind::Commit, TxnId(ts), &[7; 1000], |_| (Timestamp(ts), ())).0;
                }
                Reserve::Later => std::thread::yield_now(),
                Reserve::Full => break,
            }
        }
        assert!(log.durable().block(last), "round {round}: what was appended is durable, after {ts}");
        drop(log);
        disk.set_quota(None);
        let (_, _, found) = open(&disk).unwrap();
        assert_eq!(found.len() as u64, ts);
    }
}

/// Lets the sync of a record fail; its timestamp, `ts` or later: the failure may meet the thread that prepares space, and
/// then the next record has its turn.
fn append_until_one_fails(log: &Log, disk: &SimDisk, ts: u64) -> u64 {
    for ts in ts.. {
        disk.fail_syncs(1);
        let end = append_retrying(log, ts);
        if !log.durable().block(end) {
            return ts;
        }
    }
    unreachable!("a sync fails before time is over")
}

fn append_retrying(log: &Log, ts: u64) -> Lsn {
    loop {
        if let Some(end) = append(log, ts, b"after") {
            return end;
        }
        std::thread::yield_now();
    }
}

#[test]
fn chunks_of_several_transactions_interleave() {
    let disk = SimDisk::new();
    let (log, _, _) = open(&disk).unwrap();
    let chunk = |txn: u64, bytes: &[u8]| loop {
        if let Reserve::Ready(room) = log.reserve(bytes.len(), || Box::new(|| {})) {
            assert!(log.append_chunk(room, TxnId(txn), bytes, || Box::new(|| {})));
            return;
        }
        std::thread::yield_now();
    };
    chunk(1, b"a");
    chunk(2, b"b");
    chunk(1, b"a");
    chunk(3, b"never committed");
    chunk(2, b"b");
    let end = append(&log, 2, b"B").unwrap();
    let last = append(&log, 1, b"A").unwrap();
    assert!(end < last && log.durable().block(last));
    drop(log);
    let (_, replayed, found) = open(&disk).unwrap();
    assert_eq!(found, [(2, b"bbB".to_vec()), (1, b"aaA".to_vec())]);
    assert_eq!(replayed.last_txn, TxnId(3));
}

#[test]
fn anything_may_lie_in_a_segment() {
    use env::Disk;
    for seed in seeds(300) {
        let mut random = SimRandom::new(seed);
        let disk = SimDisk::new();
        let (log, _, _) = open(&disk).unwrap();
        let end = append(&log, 1, b"one").unwrap();
        log.durable().block(end);
        drop(log);
        let name = disk_segments(&disk).remove(0);
        let file = disk.open(&name).unwrap();
        let bytes: Vec<u8> = (0..random.below(400)).map(|_| random.bits() as u8).collect();
        file.write_at(&bytes, random.below(500)).unwrap();
        // Refused or cut, never a panic.
        let _ = open(&disk);
    }
}

#[test]
fn old_segments_can_be_trimmed() {
    let disk = SimDisk::new();
    let (log, _, _) = open(&disk).unwrap();
    let mut ends = vec![Lsn(0)];
    for ts in 1..=100 {
        ends.push(append(&log, ts, &[1; 900]).unwrap());
    }
    assert!(log.durable().block(ends[100]));
    let before = disk_segments(&disk);
    log.trim(ends[60]);
    // The flusher trims behind a group.
    let end = append(&log, 101, &[2; 10]).unwrap();
    assert!(log.durable().block(end));
    drop(log);
    let left = disk_segments(&disk);
    assert!(left.len() < before.len() && !left.is_empty());
    let (log, replayed, found) = open_from(&disk, ends[60]).unwrap();
    assert_eq!(replayed.end, end);
    let expected: Vec<u64> = (61..=101).collect();
    assert_eq!(found.iter().map(|f| f.0).collect::<Vec<_>>(), expected, "from the position on, and only that");
    drop(log);
    // Some of what is not needed may have come back with a crash.
    disk.create(&before[0]).unwrap();
    assert_eq!(open_from(&disk, ends[60]).unwrap().2.len(), expected.len());
    disk.remove(&before[0]).unwrap();
    // What is needed and missing is refused.
    assert!(matches!(open(&disk), Err(DriverError::Corrupt(_))));
    for name in disk_segments(&disk) {
        disk.remove(&name).unwrap();
    }
    assert!(matches!(open_from(&disk, ends[60]), Err(DriverError::Corrupt(_))));
}

/// On a disk that is full of log nothing is written before it is cut, so cutting must not wait for a write.
#[test]
fn an_idle_log_is_trimmed_and_a_full_disk_takes_more() {
    let disk = SimDisk::new();
    let (log, _, _) = open(&disk).unwrap();
    let mut end = Lsn(0);
    for ts in 1..=100 {
        end = append(&log, ts, &[1; 900]).unwrap();
    }
    assert!(log.durable().block(end));
    let before = disk_segments(&disk).len();
    let begun = std::time::Instant::now();
    while !disk.list().unwrap().iter().any(|name| name == "spare") {
        assert!(begun.elapsed().as_secs() < 20, "no segment is prepared");
        std::thread::yield_now();
    }
    let used = disk.list().unwrap().iter().map(|name| disk.open(name).unwrap().len().unwrap()).sum();
    disk.set_quota(Some(used));
    let mut ts = 100;
    // A refusal may come before the last segment that was prepared is in use.
    while !log.is_full() || disk.list().unwrap().iter().any(|name| name == "spare") {
        assert!(begun.elapsed().as_secs() < 20, "the disk does not get full");
        if let Some(at) = append(&log, ts + 1, &[1; 900]) {
            (end, ts) = (at, ts + 1);
            assert!(log.durable().block(end));
        }
    }
    disk.set_quota(None);
    log.trim(end);
    while disk_segments(&disk).len() >= before || log.is_full() {
        assert!(begun.elapsed().as_secs() < 20, "the log is not cut, or still said to be full");
        std::thread::yield_now();
    }
    assert!(append(&log, ts + 1, &[1; 900]).is_some());
}

#[test]
fn a_transaction_that_writes_ahead_keeps_its_log() {
    let disk = SimDisk::new();
    let (log, _, _) = open(&disk).unwrap();
    let chunk = |txn: u64| match log.reserve(100, || Box::new(|| {})) {
        Reserve::Ready(room) => assert!(log.append_chunk(room, TxnId(txn), &[7; 100], || Box::new(|| {}))),
        other => panic!("{other:?}"),
    };
    let first = append(&log, 1, &[1; 10]).unwrap();
    chunk(50);
    chunk(60);
    let second = append(&log, 2, &[1; 10]).unwrap();
    chunk(50);
    assert_eq!(log.at_end(|end, oldest| (end > second, oldest)), (true, first));
    log.forget(TxnId(50));
    assert!(log.at_end(|_, oldest| first < oldest && oldest < second));
    let end = append(&log, 60, &[1; 10]).unwrap();
    assert_eq!(log.at_end(|end, oldest| (end, oldest)), (end, end));
}

/// A driver on a disk, and the payloads it reads back.
fn driver(disk: &SimDisk) -> (FileLog, Vec<Vec<u8>>) {
    use redo::ReplicatedLog;
    let mut driver = FileLog::new(Arc::new(disk.clone()), OPTIONS);
    let mut found = Vec::new();
    let mut visit = |batch: redo::Batch<'_>| {
        found.push(batch.bytes.to_vec());
        Ok(())
    };
    driver.read(Lsn(0), &mut visit).unwrap();
    (driver, found)
}

/// A writer's frames behind a cut must not follow on those of the next one, even if the cut is met before it has written.
#[test]
fn frames_behind_a_cut_stay_lost() {
    use redo::{Batch, ReplicatedLog};
    let disk = SimDisk::new();
    let submit = |driver: &mut FileLog, at: u64, byte: u8| {
        driver.submit(base::WriterEpoch(1), Lsn(0), Batch { start: Lsn(at * 100), bytes: &[byte; 100] }).unwrap();
    };
    let (mut first, _) = driver(&disk);
    submit(&mut first, 0, 1);
    first.complete().unwrap();
    drop(first);
    // Three frames on their way at once; the first of them does not survive.
    let (mut second, _) = driver(&disk);
    (1..4).for_each(|at| submit(&mut second, at, 2));
    drop(second);
    let torn = 64 + (48u64 + 100).next_multiple_of(8) + 60;
    disk.flip_bit(&disk_segments(&disk)[0], torn * 8);
    let (mut third, found) = driver(&disk);
    assert_eq!(found, [vec![1; 100]]);
    submit(&mut third, 1, 3);
    third.complete().unwrap();
    drop(third);
    assert_eq!(driver(&disk).1, [vec![1; 100], vec![3; 100]]);
}

/// What a process left unsynced and the next one has read back is as durable as what it says.
#[test]
fn what_was_read_back_survives_a_power_failure() {
    let disk = SimDisk::new();
    let (log, _, _) = open(&disk).unwrap();
    let end = append(&log, 1, b"one").unwrap();
    assert!(log.durable().block(end));
    let records = append_until_one_fails(&log, &disk, 2);
    drop(log);
    let (log, replayed, found) = open(&disk).unwrap();
    assert_eq!((found.len() as u64, log.durable().current()), (records, replayed.end));
    let after = disk.after_crash(Crash::LoseUnsynced, &mut SimRandom::new(1));
    assert_eq!(open(&after).unwrap().2, found);
}
