//! Images against a disk that loses, tears and damages what was not synced.
//!
//! Two images are made one after the other, the first whole. The machine stops at each write or sync of the second: what is
//! found must be one of the two, whole; the second if its commit was reported. A failing case names its operation and crash.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use base::{CommandId, LayoutId, Oid, RowId, Timestamp};
use checkpoint::{Holds, Image, ImageError, Manifest, PartWriter, Scratch, remove_unnamed};
use env::Disk as _;
use env::sim::{Crash, SimDisk, SimRandom};
use mvcc::{LockResult, NoIndexes, Read, RowLockMode, Store, StoreOptions, Table, View, WaitPolicy, Wakeup, pin};

/// Nobody waits here.
struct Unwaited;

impl Wakeup for Unwaited {
    fn wake(&self) {}
}

type Rows = BTreeMap<u64, (u32, Vec<u8>)>;

fn table(rows: Range<u64>, salt: u8) -> (Store, Table, Rows) {
    let store = Store::new(StoreOptions { horizon: Timestamp(0), memory_limit: u64::MAX });
    let table = store.new_table(Oid(7), Arc::new(NoIndexes));
    let (mut expected, guard) = (Rows::new(), pin());
    for row in rows.filter(|row| row % 5 != 3) {
        let layout = 1 + (row % 2) as u32;
        let tuple: Vec<u8> = (0..row % 400).map(|n| (n % 7) as u8 ^ salt).collect();
        table.load(RowId(row), Timestamp(1), LayoutId(layout), &tuple, &guard);
        expected.insert(row, (layout, tuple));
    }
    store.advance_horizon(Timestamp(1));
    (store, table, expected)
}

/// Writes an image in two files and commits it.
fn write(disk: &SimDisk, checkpoint: u64, store: &Store, rows: &Table, meta: &[u8]) -> std::io::Result<()> {
    let token = store.begin_view();
    let view = View { read_ts: token.read_ts(), own: None, command: CommandId(0) };
    let end = rows.end();
    let half = RowId(end.0 / 2);
    let mut manifest = Manifest { checkpoint, ts: view.read_ts.0, ..Manifest::default() };
    let result = (0..2).try_for_each(|part| {
        let mut writer = PartWriter::create(disk, checkpoint, part)?;
        let (mut next, until) = if part == 0 { (RowId(0), half) } else { (half, end) };
        while next < until {
            next = writer.write_rows(7, rows, next, until, &view)?;
        }
        if part == 1 {
            writer.write_meta(1, meta)?;
        }
        manifest.files.push(writer.finish()?);
        Ok(())
    });
    store.end_view(token);
    result.and_then(|()| manifest.commit(disk))
}

fn read(disk: &SimDisk) -> Result<Option<(u64, Rows, Vec<u8>)>, ImageError> {
    let Some(manifest) = Manifest::read(disk)? else { return Ok(None) };
    let image = Image::open(disk, &manifest)?;
    let (mut rows, mut scratch) = (Rows::new(), Scratch::default());
    for block in image.blocks() {
        let Holds::Rows { table, .. } = &block.holds else { continue };
        assert_eq!(*table, 7);
        image.rows(block, &mut scratch, |row, layout, tuple| {
            assert!(rows.insert(row.0, (layout.0, tuple.to_vec())).is_none(), "row {row} twice");
        })?;
    }
    Ok(Some((manifest.checkpoint, rows, image.meta(1)?)))
}

#[test]
fn an_image_is_what_the_view_saw() {
    let (store, rows, expected) = table(0..9000, 0);
    let disk = SimDisk::new();
    let meta: Vec<u8> = (0..700_000u32).map(|n| (n % 251) as u8).collect();
    write(&disk, 4, &store, &rows, &meta).expect("a healthy disk");
    assert_eq!(read(&disk).expect("undamaged"), Some((4, expected, meta)));
    assert!(read(&SimDisk::new()).expect("an empty directory").is_none());
}

#[test]
fn writers_go_on_and_are_not_seen() {
    let (store, rows, expected) = table(0..3000, 0);
    let rows = Arc::new(rows);
    let disk = SimDisk::new();
    let token = store.begin_view();
    let view = View { read_ts: token.read_ts(), own: None, command: CommandId(0) };
    let mut writer = PartWriter::create(&disk, 1, 0).expect("creates");
    let (mut next, end, mut ts) = (RowId(0), rows.end(), 1);
    while next < end {
        next = writer.write_rows(7, &rows, next, end, &view).expect("writes");
        // Each pass changes rows everywhere, those not yet written among them, and adds one.
        ts += 1;
        let mut txn = store.begin_txn().expect("room");
        let guard = pin();
        for row in (0..3000).step_by(97).filter(|row| row % 5 != 3) {
            let wake: Arc<dyn Wakeup> = Arc::new(Unwaited);
            let locked = store.lock_row(&mut txn, &rows, RowId(row), RowLockMode::Update, WaitPolicy::Never, &wake);
            assert!(matches!(locked, LockResult::Granted { .. }), "nobody else writes");
            rows.update(&mut txn, RowId(row), CommandId(0), LayoutId(9), b"changed", false, &guard);
        }
        rows.insert(&mut txn, CommandId(0), LayoutId(9), b"new", &guard);
        drop(guard);
        store.publish(&txn, Timestamp(ts));
        store.finish_commit(txn, Timestamp(ts));
    }
    store.end_view(token);
    let mut manifest = Manifest { checkpoint: 1, ..Manifest::default() };
    manifest.files.push(writer.finish().expect("finishes"));
    manifest.commit(&disk).expect("commits");
    assert_eq!(read(&disk).expect("undamaged").map(|(_, rows, _)| rows), Some(expected));
    let guard = pin();
    let now = View { read_ts: Timestamp(ts), own: None, command: CommandId(0) };
    assert!(matches!(rows.read(RowId(0), &now, &guard), Read::Visible(v) if v.tuple == b"changed"));
}

#[test]
fn a_crash_leaves_one_of_two_images_whole() {
    let (old_store, old_rows, old) = table(0..300, 0);
    let (new_store, new_rows, new) = table(0..400, 0x50);
    let operations = {
        let disk = SimDisk::new();
        write(&disk, 1, &old_store, &old_rows, b"old").expect("a healthy disk");
        let before = disk.operations();
        write(&disk, 2, &new_store, &new_rows, b"new").expect("a healthy disk");
        before..=disk.operations()
    };
    for at in operations {
        for (kind, crash) in [Crash::LoseUnsynced, Crash::KeepAll, Crash::AnySectors].into_iter().enumerate() {
            let disk = SimDisk::new();
            write(&disk, 1, &old_store, &old_rows, b"old").expect("a healthy disk");
            disk.freeze_at(at);
            let reported = write(&disk, 2, &new_store, &new_rows, b"new").is_ok();
            let disk = disk.after_crash(crash, &mut SimRandom::new(at * 4 + kind as u64));
            let (checkpoint, rows, meta) = read(&disk).expect("whole").expect("there is one");
            let case = format!("operation {at}, {crash:?}");
            if checkpoint == 2 {
                assert!(rows == new && meta == b"new", "{case}");
            } else {
                assert!(!reported && rows == old && meta == b"old", "{case}");
            }
            // What is left over goes, and what counts stays.
            let manifest = Manifest::read(&disk).expect("whole");
            remove_unnamed(&disk, manifest.as_ref()).expect("a healthy disk");
            assert_eq!(disk.list().expect("a healthy disk").len(), 3, "{case}");
            assert_eq!(read(&disk).expect("whole").map(|(number, ..)| number), Some(checkpoint), "{case}");
        }
    }
}

#[test]
fn every_flipped_byte_is_found() {
    let (store, rows, _) = table(0..100, 0);
    let disk = SimDisk::new();
    write(&disk, 1, &store, &rows, b"meta").expect("a healthy disk");
    for name in disk.list().expect("a healthy disk") {
        let len = disk.open(&name).expect("there").len().expect("known");
        for byte in 0..len {
            let bit = byte * 8 + byte % 8;
            disk.flip_bit(&name, bit);
            let found = read(&disk);
            disk.flip_bit(&name, bit);
            let is_padding = found.as_ref().is_ok_and(|found| *found == read(&disk).expect("mended"));
            assert!(found.is_err() || is_padding, "{name}: byte {byte}");
        }
    }
}

#[test]
fn what_is_missing_or_short_is_named() {
    let (store, rows, _) = table(0..100, 0);
    let disk = SimDisk::new();
    write(&disk, 1, &store, &rows, b"meta").expect("a healthy disk");
    let name = "0000000001-0001.image";
    let file = disk.open(name).expect("there");
    let len = file.len().expect("known");
    file.truncate(len - 1).expect("cuts");
    assert!(matches!(read(&disk), Err(ImageError::Damaged(place)) if place.contains(name)));
    disk.remove(name).expect("there");
    assert!(matches!(read(&disk), Err(ImageError::Damaged(place)) if place.contains(name)));
}

#[test]
fn a_full_disk_leaves_the_old_image() {
    let (store, rows, expected) = table(0..300, 0);
    let disk = SimDisk::new();
    write(&disk, 1, &store, &rows, b"old").expect("a healthy disk");
    let (large_store, large, _) = table(0..20_000, 1);
    disk.set_quota(Some(10_000));
    assert!(write(&disk, 2, &large_store, &large, b"new").is_err());
    remove_unnamed(&disk, Manifest::read(&disk).expect("whole").as_ref()).expect("a healthy disk");
    assert_eq!(read(&disk).expect("whole"), Some((1, expected, b"old".to_vec())));
}
