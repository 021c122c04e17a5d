//! A log's last segment that is removed, emptied, cut short, or replaced by an older copy of itself: all that was acknowledged is
//! read back, or nothing is.

use std::sync::Arc;

use base::{Lsn, Timestamp, TxnId};
use env::sim::{Crash, SimDisk, SimRandom};
use env::{Disk as _, World, real};
use redo::{
    DriverError, Ending, FileLog, FileOptions, Log, RecordKind, Replayed, Reserve, belong_to, database_of, ending,
    inspect,
};

const OPTIONS: FileOptions = FileOptions { segment_bytes: 16 << 10, batch_bytes_max: 4 << 10 };
/// Of a segment's header and a frame's.
const HEADERS: [u64; 2] = [64, 48];

fn open(disk: &SimDisk) -> Result<(Log, Replayed, Vec<u64>), DriverError> {
    open_with(disk, OPTIONS)
}

fn open_with(disk: &SimDisk, options: FileOptions) -> Result<(Log, Replayed, Vec<u64>), DriverError> {
    let world = World {
        disk: Arc::new(disk.clone()),
        clock: Arc::new(real::SystemClock::new()),
        spawn: Arc::new(real::Threads),
    };
    let driver = Box::new(FileLog::new(Arc::clone(&world.disk), options));
    let mut found = Vec::new();
    let mut keep = |record: redo::Record<'_>| {
        found.push(record.ts.0);
        Ok(())
    };
    let (log, replayed) = Log::open(&world, driver, Lsn(0), &mut keep, Box::new(|_| {}))?;
    Ok((log, replayed, found))
}

fn append(log: &Log, ts: u64, bytes: usize) -> Lsn {
    loop {
        if let Reserve::Ready(room) = log.reserve(bytes, || Box::new(|| {})) {
            let payload = vec![ts as u8; bytes];
            return log.append(room, RecordKind::Commit, TxnId(ts), &payload, |_| (Timestamp(ts), ())).0;
        }
        std::thread::yield_now();
    }
}

fn copy(disk: &SimDisk) -> SimDisk {
    disk.after_crash(Crash::KeepAll, &mut SimRandom::new(1))
}

fn segments(disk: &SimDisk) -> Vec<String> {
    disk.list().unwrap().into_iter().filter(|name| name.ends_with(".log")).collect()
}

fn bytes_of(disk: &SimDisk, name: &str) -> Vec<u8> {
    let file = disk.open(name).unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_at(&mut bytes, 0).unwrap();
    bytes
}

/// Gives a file other bytes.
fn replace(disk: &SimDisk, name: &str, bytes: &[u8]) {
    let file = disk.open(name).unwrap();
    file.truncate(0).unwrap();
    file.write_at(bytes, 0).unwrap();
    file.sync().unwrap();
}

/// How the process ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ends {
    InOrder,
    Killed,
}

/// A log whose records, up to the last, are acknowledged; and its last segment as it was after each of them.
fn written(records: u64, bytes: usize, ends: Ends) -> (SimDisk, Vec<Vec<u8>>) {
    let disk = SimDisk::new();
    let (log, _, _) = open(&disk).unwrap();
    let mut before = Vec::new();
    for ts in 1..=records {
        let end = append(&log, ts, bytes);
        assert!(log.durable().block(end));
        before.push(bytes_of(&disk, segments(&disk).last().unwrap()));
    }
    if ends == Ends::Killed {
        disk.freeze_at(0);
    }
    drop(log);
    (copy(&disk), before)
}

/// Where the frames of a segment begin, and where the last one ends.
fn borders(bytes: &[u8]) -> Vec<usize> {
    let [segment, frame] = HEADERS.map(|len| len as usize);
    let mut borders = vec![segment];
    let mut at = segment;
    while bytes.get(at..at + 4) == Some(&0x4c41_594e_u32.to_le_bytes()) {
        let len = u32::from_le_bytes(bytes[at + 8..at + 12].try_into().unwrap()) as usize;
        at += (frame + len).next_multiple_of(8);
        borders.push(at);
    }
    borders
}

/// Everything, or a refusal that names the file; and looking at it without opening it says the same, and changes nothing.
fn all_or_refused(disk: &SimDisk, records: u64, what: &str) -> Option<String> {
    let looked = inspect(&(Arc::new(disk.clone()) as Arc<dyn env::Disk>), Lsn(0), Lsn(0), &mut |_| Ok(()));
    let before: Vec<Vec<u8>> = disk.list().unwrap().iter().map(|name| bytes_of(disk, name)).collect();
    match open(disk) {
        Ok((_, replayed, found)) => {
            assert_eq!(found, (1..=records).collect::<Vec<_>>(), "{what}: {replayed:?}");
            assert_eq!(looked.unwrap_or_else(|error| panic!("{what}: {error}")).records, records, "{what}");
            None
        }
        Err(DriverError::Corrupt(place)) => {
            let now: Vec<Vec<u8>> = disk.list().unwrap().iter().map(|name| bytes_of(disk, name)).collect();
            assert!(now == before, "{what}: a refused start has changed something");
            match looked {
                Err(DriverError::Corrupt(said)) => assert_eq!(said, place, "{what}"),
                other => panic!("{what}: refused with {place}, and looking says {other:?}"),
            }
            assert!(place.contains(".log ") || place.contains("log.end "), "{what}: {place}");
            Some(place)
        }
        Err(error) => panic!("{what}: {error}"),
    }
}

/// Each way of damage to the last segment after each way to end, with one segment and with many.
#[test]
fn a_damaged_last_segment_is_refused() {
    for ends in [Ends::InOrder, Ends::Killed] {
        for (records, bytes) in [(1, 10), (9, 100), (60, 900)] {
            let (disk, before) = written(records, bytes, ends);
            let what = |damage: &str| format!("{ends:?}, {records} records, {damage}");
            assert_eq!(all_or_refused(&copy(&disk), records, &what("undamaged")), None);
            let last = segments(&disk).pop().unwrap();
            let whole = bytes_of(&disk, &last);
            let refused = |damage: &str, change: &dyn Fn(&SimDisk)| {
                let damaged = copy(&disk);
                change(&damaged);
                let place = all_or_refused(&damaged, records, &what(damage));
                assert!(place.is_some_and(|place| place.contains(&last)), "{}: it starts", what(damage));
            };
            refused("removed", &|disk| disk.remove(&last).unwrap());
            refused("emptied", &|disk| replace(disk, &last, &[]));
            refused("zeros", &|disk| replace(disk, &last, &vec![0; whole.len()]));
            refused("one byte longer", &|disk| replace(disk, &last, &[&whole[..], &[0]].concat()));
            let borders = borders(&whole);
            let inside = borders.windows(2).flat_map(|pair| [pair[0] + 1, pair[0] + 47, pair[0] + 50, pair[1] - 1]);
            let cuts = borders.iter().copied().chain(inside).chain([1, 63, 65, whole.len() - 1]);
            for cut in cuts {
                refused(&format!("cut at {cut}"), &|disk| replace(disk, &last, &whole[..cut]));
            }
            for border in &borders[..borders.len() - 1] {
                // As a copy by blocks that stopped leaves it: its size is right.
                let mut zeros = whole.clone();
                zeros[*border..].fill(0);
                refused(&format!("zeros from {border} on"), &|disk| replace(disk, &last, &zeros));
            }
            for (n, older) in before.iter().enumerate().filter(|(_, older)| **older != whole) {
                // Of this segment, or of the one before it.
                refused(&format!("as after record {n}"), &|disk| replace(disk, &last, older));
            }
        }
    }
}

#[test]
fn a_file_that_knows_the_end_is_not_done_without() {
    for ends in [Ends::InOrder, Ends::Killed] {
        let (disk, _) = written(60, 900, ends);
        for (damage, bytes) in [("emptied", Vec::new()), ("zeros", vec![0; 3 * 4096]), ("short", vec![0; 64])] {
            let damaged = copy(&disk);
            replace(&damaged, "log.end", &bytes);
            assert!(all_or_refused(&damaged, 60, damage).is_some_and(|place| place.contains("log.end")), "{damage}");
        }
        let damaged = copy(&disk);
        damaged.remove("log.end").unwrap();
        assert!(all_or_refused(&damaged, 60, "removed").is_some_and(|place| place.contains("log.end is missing")));
        // Any bit of what it says.
        for bit in (0..3).flat_map(|page| page * 4096 * 8..(page * 4096 + 64) * 8) {
            let damaged = copy(&disk);
            damaged.flip_bit("log.end", bit);
            all_or_refused(&damaged, 60, &format!("bit {bit} of log.end"));
        }
    }
}

/// What was closed and goes on, or was closed before a segment, is another directory's.
#[test]
fn a_closed_log_does_not_go_on() {
    let disk = SimDisk::new();
    let (log, replayed, _) = open(&disk).unwrap();
    assert_eq!(replayed.was_closed, None);
    append(&log, 1, 100);
    log.close().unwrap();
    let closed = bytes_of(&disk, "log.end");
    let (log, replayed, _) = open(&disk).unwrap();
    assert_eq!(replayed.was_closed, Some(true));
    append(&log, 2, 100);
    log.close().unwrap();
    let damaged = copy(&disk);
    replace(&damaged, "log.end", &closed);
    let place = all_or_refused(&damaged, 2, "closed before").unwrap();
    assert!(place.contains("it goes on where the log was closed"), "{place}");
    let (log, _, _) = open(&disk).unwrap();
    (3..40).for_each(|ts| _ = append(&log, ts, 900));
    log.close().unwrap();
    assert!(segments(&disk).len() > 2);
    // Closed at the end of the first segment.
    let first = segments(&disk)[1].clone();
    let damaged = copy(&disk);
    let end: u64 = first.strip_suffix(".log").unwrap().parse().unwrap();
    let mut bytes = closed;
    for page in [0, 4096] {
        bytes[page + 32..page + 40].copy_from_slice(&end.to_le_bytes());
        let sum = crc32c::crc32c(&bytes[page..page + 60]);
        bytes[page + 60..page + 64].copy_from_slice(&sum.to_le_bytes());
    }
    replace(&damaged, "log.end", &bytes);
    assert!(all_or_refused(&damaged, 39, "closed before a segment").is_some_and(|place| place.contains(&first)));
}

/// A group that was written and not synced may be cut off, after a crash of any kind, and the start says where.
#[test]
fn a_torn_last_group_is_cut_and_told_of() {
    let (disk, _) = written(9, 100, Ends::Killed);
    let (log, _, _) = open(&disk).unwrap();
    // The next segment is prepared: no other sync than that of the group is to fail.
    while !disk.list().unwrap().iter().any(|name| name == "spare") {
        std::thread::yield_now();
    }
    disk.fail_syncs(1);
    let end = append(&log, 10, 100);
    assert!(!log.durable().block(end));
    drop(log);
    let last = segments(&disk).pop().unwrap();
    let whole = bytes_of(&disk, &last);
    let borders = borders(&whole);
    let (begin, end) = (borders[borders.len() - 2], borders[borders.len() - 1]);
    let mut told = 0;
    for from in begin..end {
        let torn = copy(&disk);
        let mut bytes = whole.clone();
        bytes[from..].fill(0);
        replace(&torn, &last, &bytes);
        let (log, replayed, found) = open(&torn).unwrap();
        assert!(found.len() == 9 || bytes == whole, "zeros from {from} on: {}", found.len());
        if found.len() == 9 && from > begin {
            let cut = replayed.cut.as_deref().unwrap_or_default();
            assert_eq!(cut, format!("{last} at byte {begin}"), "zeros from {from} on");
            told += 1;
        }
        log.close().unwrap();
        let (_, replayed, _) = open(&torn).unwrap();
        assert_eq!((replayed.was_closed, replayed.cut), (Some(true), None), "it is told once");
    }
    assert!(told > 100);
}

/// The size of segments may be another one at each start: each has the one that it was made with.
#[test]
fn segments_may_be_smaller_or_larger_from_now_on() {
    let disk = SimDisk::new();
    let mut last = 0;
    for (segment_bytes, batch_bytes_max) in [(64 << 10, 4096), (16 << 10, 4096), (4 << 10, 1024), (32 << 10, 2048)] {
        for _ in 0..2 {
            let (log, _, found) = open_with(&disk, FileOptions { segment_bytes, batch_bytes_max }).unwrap();
            assert_eq!(found, (1..=last).collect::<Vec<_>>());
            for ts in last + 1..=last + 30 {
                let end = append(&log, ts, 800);
                assert!(log.durable().block(end));
            }
            last += 30;
            log.close().unwrap();
        }
    }
    assert_eq!(all_or_refused(&copy(&disk), last, "undamaged"), None);
}

/// A segment under the name of the one that is prepared, as a copy of a running directory may have it, is not put to use: what is in
/// it would follow on what comes.
#[test]
fn a_spare_that_was_in_use_is_made_anew() {
    let disk = SimDisk::new();
    let (log, _, _) = open(&disk).unwrap();
    while !disk.list().unwrap().iter().any(|name| name == "spare") {
        std::thread::yield_now();
    }
    let before = copy(&disk);
    (1..60).for_each(|ts| _ = append(&log, ts, 500));
    log.close().unwrap();
    let second = segments(&disk)[1].clone();
    // As it was before, but for what is in the spare by the time that it is copied.
    replace(&before, "spare", &bytes_of(&disk, &second));
    let (log, _, found) = open(&before).unwrap();
    assert!(found.is_empty());
    for ts in 101..140 {
        append(&log, ts, 500);
    }
    log.close().unwrap();
    assert_eq!(open(&before).unwrap().2, (101..140).collect::<Vec<_>>());
}

/// Nor is one whose frames lie behind zeros, wherever they begin: a copy that was made file by file has it.
#[test]
fn a_spare_with_frames_behind_zeros_is_made_anew() {
    let disk = SimDisk::new();
    let (log, _, _) = open(&disk).unwrap();
    log.close().unwrap();
    let before = copy(&disk);
    let (log, _, _) = open(&disk).unwrap();
    (1..60).for_each(|ts| _ = append(&log, ts, 500));
    log.close().unwrap();
    let stale = bytes_of(&disk, &segments(&disk)[1]);
    for border in borders(&stale) {
        let copied = copy(&before);
        let mut spare = stale.clone();
        spare[..border].fill(0);
        if copied.list().unwrap().iter().any(|name| name == "spare") {
            copied.remove("spare").unwrap();
        }
        copied.create("spare").unwrap();
        replace(&copied, "spare", &spare);
        let (log, _, found) = open(&copied).unwrap();
        assert!(found.is_empty());
        // The frames before it end where those that are stale begin.
        for ts in 101..160 {
            append(&log, ts, 500);
        }
        let end = log.end();
        assert!(log.durable().block(end));
        copied.freeze_at(0);
        drop(log);
        assert_eq!(open(&copy(&copied)).unwrap().2, (101..160).collect::<Vec<_>>(), "from {border} on");
    }
}

/// The generation in a frame that a start has written.
fn generation_of_last_frame(disk: &SimDisk) -> u64 {
    let bytes = bytes_of(disk, segments(disk).last().unwrap());
    let borders = borders(&bytes);
    let at = borders[borders.len() - 2] + 24;
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

/// Each opening has a generation of its own, also beside those that have left no frame.
#[test]
fn a_generation_is_handed_out_once() {
    let disk = SimDisk::new();
    for _ in 0..3 {
        drop(open(&disk).unwrap());
    }
    let (log, _, _) = open(&disk).unwrap();
    append(&log, 1, 100);
    log.close().unwrap();
    assert_eq!(generation_of_last_frame(&disk), 5);
    // A directory from before it was written has the generations of its frames only.
    let mut bytes = bytes_of(&disk, "log.end");
    for page in [0, 4096, 8192] {
        bytes[page + 40..page + 48].fill(0);
        let sum = crc32c::crc32c(&bytes[page..page + 60]);
        bytes[page + 60..page + 64].copy_from_slice(&sum.to_le_bytes());
    }
    replace(&disk, "log.end", &bytes);
    let (log, _, _) = open(&disk).unwrap();
    append(&log, 2, 100);
    log.close().unwrap();
    assert_eq!(generation_of_last_frame(&disk), 6);
}

/// A log of a database, with several segments.
fn log_of(database: u64) -> SimDisk {
    let disk = SimDisk::new();
    belong_to(&disk, database).unwrap();
    let (log, replayed, _) = open(&disk).unwrap();
    assert_eq!(replayed.was_closed, None, "a new one was not closed, nor was it open");
    for ts in 1..60 {
        let end = append(&log, ts, 900);
        assert!(log.durable().block(end));
    }
    log.close().unwrap();
    assert_eq!(database_of(&disk).unwrap(), database);
    belong_to(&disk, database).unwrap();
    copy(&disk)
}

#[test]
fn files_of_another_database_are_refused() {
    let (disk, other) = (log_of(7), log_of(8));
    assert_eq!(all_or_refused(&copy(&disk), 59, "its own"), None);
    let names = segments(&disk);
    assert_eq!(names, segments(&other));
    for name in &names {
        let mixed = copy(&disk);
        replace(&mixed, name, &bytes_of(&other, name));
        let place = all_or_refused(&mixed, 59, name).unwrap();
        assert_eq!(place, format!("{name} at byte 40: the file is of database 8, not of 7"));
    }
    let mixed = copy(&disk);
    replace(&mixed, "log.end", &bytes_of(&other, "log.end"));
    assert!(all_or_refused(&mixed, 59, "log.end").is_some_and(|place| place.contains(&names[0])));
    let before = bytes_of(&disk, "log.end");
    let refused = belong_to(&disk, 8).unwrap_err().to_string();
    assert!(refused.contains("log.end at byte ") && refused.ends_with("is of database 7, not of 8"), "{refused}");
    assert_eq!(bytes_of(&disk, "log.end"), before);
}

/// What has no number is of any database, and gets one; it stays closed, and where it was durable.
#[test]
fn a_log_without_a_number_takes_one() {
    for ends in [Ends::InOrder, Ends::Killed] {
        let (disk, _) = written(9, 100, ends);
        assert_eq!(database_of(&disk).unwrap(), 0);
        belong_to(&disk, 7).unwrap();
        assert_eq!(database_of(&disk).unwrap(), 7);
        let (_, replayed, found) = open(&disk).unwrap();
        assert_eq!((replayed.was_closed, found.len()), (Some(ends == Ends::InOrder), 9));
        assert_eq!(database_of(&disk).unwrap(), 7);
    }
}

/// After a kill the note says that nothing is missing behind the end; what may be missing after a power failure is told of.
#[test]
fn an_end_that_was_not_noted_is_told() {
    let (disk, _) = written(9, 100, Ends::Killed);
    let last = segments(&disk).pop().unwrap();
    let end = *borders(&bytes_of(&disk, &last)).last().unwrap();
    let place = Some(format!("{last} at byte {end}"));
    let looked = |disk: &SimDisk, end: Lsn| ending(&(Arc::new(disk.clone()) as Arc<dyn env::Disk>), end).unwrap();
    let without_note = copy(&disk);
    let mut bytes = bytes_of(&disk, "log.end");
    bytes[8192..].fill(0);
    replace(&without_note, "log.end", &bytes);
    for (disk, is_noted) in [(copy(&disk), true), (without_note, false)] {
        let expected = Ending { place: place.clone(), is_noted };
        // Nine records with their headers.
        let position = Lsn(9 * (24 + 100));
        assert_eq!(looked(&disk, position), expected);
        let (_, replayed, _) = open(&disk).unwrap();
        assert_eq!((replayed.end, replayed.was_closed, replayed.ending), (position, Some(false), expected));
    }
}

/// A start that is stopped at any of its operations leaves a directory that the next one opens, and nothing is lost.
#[test]
fn a_start_may_stop_anywhere() {
    for ends in [Ends::InOrder, Ends::Killed] {
        let (disk, _) = written(30, 900, ends);
        for stop in 0..40 {
            for crash in [Crash::LoseUnsynced, Crash::KeepAll, Crash::AnySectors, Crash::FlipBits] {
                let started = copy(&disk);
                started.freeze_at(started.operations() + stop);
                drop(open(&started));
                let after = started.after_crash(crash, &mut SimRandom::new(stop + 1));
                let what = format!("{ends:?}, stopped at {stop}, {crash:?}");
                assert_eq!(all_or_refused(&after, 30, &what), None, "{what}");
            }
        }
    }
}
