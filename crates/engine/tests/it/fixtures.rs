//! Data directories of every format version (tests/fixtures), and of versions that do not exist yet.

use std::path::{Path, PathBuf};

use engine::{CheckError, Progress, Shard, ShardOptions, check};
use engine_api::Engine as _;
use env::sim::SimDisk;
use env::{Disk as _, World};

use crate::support::world;

fn fixtures() -> Vec<PathBuf> {
    let all = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures");
    let entries = std::fs::read_dir(all).expect("they are there").flatten();
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    found.sort();
    found
}

/// A fixture on a disk of its own; `change` may change each file.
fn loaded(fixture: &Path, change: impl Fn(&str, &mut Vec<u8>)) -> World {
    let disk = SimDisk::new();
    for file in std::fs::read_dir(fixture).expect("it is there").flatten() {
        let name = file.file_name().into_string().expect("names are ASCII");
        let mut bytes = std::fs::read(file.path()).expect("it can be read");
        change(&name, &mut bytes);
        disk.create(&name).and_then(|file| file.write_at(&bytes, 0)).expect("healthy");
    }
    world(&disk)
}

fn open(world: &World) -> Result<Shard, String> {
    let log = redo::FileOptions { segment_bytes: 256 << 10, batch_bytes_max: 32 << 10 };
    let options = ShardOptions { memory_limit: 1 << 30, log, ..ShardOptions::default() };
    Shard::open(world, options, Box::new(|_| {})).map(|(shard, _)| shard).map_err(|error| error.to_string())
}

#[test]
fn every_version_opens() {
    assert!(fixtures().len() >= 4);
    for fixture in fixtures() {
        let world = loaded(&fixture, |_, _| {});
        check(&world, &Progress::default()).expect("sound");
        for life in 0..3 {
            let shard = open(&world).expect("it opens");
            let catalog = shard.catalog();
            let rows = |name: &str| {
                let mut named = catalog.objects().filter(|object| object.name() == name);
                shard.row_count(named.next().unwrap_or_else(|| panic!("no {name}")).oid())
            };
            let place = format!("{}, life {life}", fixture.display());
            // The two that prepared transactions have inserted are there, too, and nobody sees them.
            assert_eq!((rows("accounts"), rows("notes"), rows("moods")), (56, 3, 2), "{place}");
            let mut names: Vec<String> = shard.prepared().into_iter().map(|prepared| prepared.name).collect();
            names.retain(|name| !name.starts_with("definitions "));
            assert_eq!(names, ["before the image", "behind the image"], "{place}");
            let checkpoint = shard.begin_checkpoint().expect("no other goes on");
            let mut writer = checkpoint.writer(0).expect("healthy");
            while writer.step().expect("healthy") {}
            checkpoint.commit(vec![writer.finish().expect("healthy")]).expect("healthy");
        }
    }
}

/// CRC32C, bit by bit.
fn crc32c(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0x82f6_3b78 } else { crc >> 1 };
        }
    }
    !crc
}

/// Gives a file with a header of 64 bytes another version.
fn with_version(bytes: &mut [u8], version: u32) {
    bytes[8..12].copy_from_slice(&version.to_le_bytes());
    let sum = crc32c(&bytes[..60]);
    bytes[60..64].copy_from_slice(&sum.to_le_bytes());
}

#[test]
fn newer_versions_are_refused_by_name() {
    for fixture in fixtures() {
        let image = loaded(&fixture, |name, bytes| {
            if name.ends_with(".image") {
                with_version(bytes, 99);
            }
        });
        let log = loaded(&fixture, |name, bytes| {
            if name.ends_with(".log") {
                with_version(bytes, 98);
            }
        });
        let manifest = loaded(&fixture, |name, bytes| {
            if name == "manifest" {
                let text = String::from_utf8(bytes.clone()).expect("it is text");
                let (_, rest) = text.split_once('\n').expect("it has lines");
                let end = rest.len() - 10;
                let text = format!("NYALA MANIFEST 97\n{}", &rest[..end]);
                *bytes = format!("{text}\n{:08x}\n", crc32c(text.as_bytes())).into_bytes();
            }
        });
        let newest = checkpoint::VERSION;
        for (world, expected) in [
            (image, format!("0000000001-0000.image has version 99, this server reads 1 to {newest}")),
            (log, "00000000000000000000.log: the log's format has version 98, this server reads 1".to_string()),
            (manifest, format!("manifest has version 97, this server reads 1 to {newest}")),
        ] {
            let Err(refused) = open(&world).map(drop) else { panic!("{expected}") };
            assert!(refused.contains(&expected), "{refused}");
            assert!(!refused.contains("damaged"), "{refused}");
            match check(&world, &Progress::default()) {
                Err(CheckError::Unreadable(why)) => assert!(why.contains(&expected), "{why}"),
                other => panic!("{other:?}"),
            }
        }
    }
}
