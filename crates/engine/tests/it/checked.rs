//! Data directories verified without being opened.

use std::collections::BTreeMap;

use engine::{CheckError, CheckedTable, Progress, Shard, ShardOptions, Sound, check};
use engine_api::Isolation;
use env::Disk as _;
use env::sim::{Crash, SimDisk, SimRandom};

use crate::checkpoints::checkpoint;
use crate::prepared::{prepare, work};
use crate::support::*;

fn verify(disk: &SimDisk) -> Result<Sound, CheckError> {
    let before = contents(disk);
    let progress = Progress::default();
    let found = check(&world(disk), &progress);
    assert!(contents(disk) == before, "something was changed");
    found
}

fn contents(disk: &SimDisk) -> BTreeMap<String, Vec<u8>> {
    let read = |name: String| {
        let file = disk.open(&name).expect("it is there");
        let mut bytes = vec![0; file.len().expect("healthy") as usize];
        file.read_at(&mut bytes, 0).expect("healthy");
        (name, bytes)
    };
    disk.list().expect("healthy").into_iter().map(read).collect()
}

/// With an image, a log behind it, and a prepared transaction; as it is left by a process that is killed.
fn directory() -> SimDisk {
    let disk = SimDisk::new();
    let shard = bank(&disk, 9);
    prepare(&shard, work(&shard, Isolation::ReadCommitted), "one");
    checkpoint(&shard);
    for id in 100..110 {
        let mut txn = begin(&shard, Isolation::ReadCommitted);
        ready(insert(&mut *txn, id, 1));
        commit(&shard, txn);
    }
    assert!(shard.durable().block(shard.log_end()));
    disk.freeze_at(0);
    drop(shard);
    disk.after_crash(Crash::KeepAll, &mut SimRandom::new(1))
}

#[test]
fn a_sound_directory_is_told_of() {
    let empty = verify(&SimDisk::new()).expect("nothing is wrong");
    assert_eq!((empty.tables, empty.log_records), (Vec::new(), 0));
    let disk = SimDisk::new();
    // Ended: as long as it runs, its log may still be made longer.
    drop(bank(&disk, 7));
    let without = verify(&disk).expect("sound");
    assert_eq!(without.checkpoint, None);
    assert_eq!(without.tables, [CheckedTable { name: "public.accounts".to_string(), image_rows: 0, rows: 7 }]);
    let found = verify(&directory()).expect("sound");
    assert_eq!(found.checkpoint.map(|manifest| manifest.checkpoint), Some(1));
    assert_eq!(found.tables, [CheckedTable { name: "public.accounts".to_string(), image_rows: 9, rows: 19 }]);
    assert_eq!((found.prepared, found.log_records, found.cut), (vec!["one".to_string()], 10, None));
}

/// Whichever byte of the image or the manifest is not as it was, is found and named.
#[test]
fn every_flipped_byte_of_an_image_is_found() {
    let disk = directory();
    for (name, bytes) in contents(&disk).iter().filter(|(name, _)| *name == "manifest" || name.ends_with(".image")) {
        for byte in 0..bytes.len() as u64 {
            let bad = disk.after_crash(Crash::KeepAll, &mut SimRandom::new(1));
            bad.flip_bit(name, byte * 8 + byte % 8);
            let Err(CheckError::Damaged(place)) = verify(&bad) else { panic!("{name}, byte {byte}") };
            assert!(place.contains(&format!("{name} at byte ")), "{name}, byte {byte}: {place}");
        }
    }
}

/// Without a manifest nobody knows which image counts: images are beginnings only if the log does not need them.
#[test]
fn a_manifest_that_is_lost_takes_no_image_with_it() {
    let disk = directory();
    disk.remove("manifest").expect("it is there");
    assert_eq!(verify(&disk).expect("the log has all").tables[0].rows, 19);
    for log in [&["00000000000000000000.log"][..], &["00000000000000000000.log", "log.end"]] {
        let lost = disk.after_crash(Crash::KeepAll, &mut SimRandom::new(1));
        log.iter().for_each(|name| lost.remove(name).expect("it is there"));
        let before = contents(&lost);
        assert!(matches!(verify(&lost), Err(CheckError::Damaged(what)) if what.contains("manifest is missing")));
        let opened = Shard::open(&world(&lost), ShardOptions::default(), Box::new(|_| {}));
        assert!(opened.map(drop).unwrap_err().to_string().contains("manifest is missing"));
        assert!(contents(&lost) == before, "something was changed");
    }
}

#[test]
fn damage_in_the_log_is_told_from_a_torn_end() {
    let disk = directory();
    let log = "00000000000000000000.log";
    let bytes = &contents(&disk)[log];
    let end = bytes.iter().rposition(|byte| *byte != 0).expect("it has frames") as u64;
    let flipped = |byte: u64, disk: &SimDisk| {
        let bad = disk.after_crash(Crash::KeepAll, &mut SimRandom::new(1));
        bad.flip_bit(log, byte * 8);
        verify(&bad)
    };
    // In the first frame, which later ones say was durable, and in the last, of which `log.end` says it.
    for byte in [200, end - 2] {
        let Err(CheckError::Damaged(place)) = flipped(byte, &disk) else { panic!("it is sound") };
        assert!(place.starts_with(&format!("{log} at byte ")), "{place}");
    }
    // After a power failure that has undone what `log.end` said without a sync, nobody knows.
    disk.flip_bit("log.end", 2 * 4096 * 8);
    assert_eq!(verify(&disk).expect("sound").log_records, 10);
    let torn = flipped(end - 2, &disk).expect("a torn end is no damage");
    assert!(torn.cut.is_some_and(|cut| cut.starts_with(log)) && torn.log_records == 9);
    // A log that was closed has no torn end.
    drop(open(&disk));
    assert_eq!(verify(&disk).expect("sound").was_closed, Some(true));
    assert!(matches!(flipped(end - 2, &disk), Err(CheckError::Damaged(_))));
}
