//! Images beside writers: what a start finds with image and log, wherever the machine stopped.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use engine::{Checkpoint, CheckpointWriter, Shard};
use engine_api::*;
use env::Disk as _;
use env::sim::{Crash, SimDisk, SimRandom};

use crate::support::*;

/// A checkpoint in two files that goes on a step at a time.
struct Going {
    checkpoint: Arc<Checkpoint>,
    writers: Vec<CheckpointWriter>,
}

impl Going {
    fn begin(shard: &Shard) -> std::io::Result<Going> {
        let checkpoint = shard.begin_checkpoint().expect("no other goes on");
        let writers = vec![checkpoint.writer(0)?, checkpoint.writer(1)?];
        Ok(Going { checkpoint, writers })
    }

    /// `Ok(false)` when all rows are written.
    fn step(&mut self, which: usize) -> std::io::Result<bool> {
        self.writers[which % 2].step()
    }

    fn commit(self) -> std::io::Result<()> {
        let mut files = Vec::new();
        for mut writer in self.writers {
            while writer.step()? {}
            files.push(writer.finish()?);
        }
        self.checkpoint.commit(files).map(drop)
    }
}

pub fn checkpoint(shard: &Shard) {
    Going::begin(shard).and_then(Going::commit).expect("a healthy disk");
}

/// Commits; `false` if the log failed before it was durable.
fn is_durable(shard: &Shard, mut txn: Box<dyn Txn>) -> bool {
    loop {
        match txn.commit(Durability::On) {
            Ok(Step::Ready(outcome)) => return shard.durable().block(outcome.gate),
            Ok(Step::Wait(_)) if !shard.durable().has_failed() => std::thread::yield_now(),
            _ => return false,
        }
    }
}

/// One random transaction, and what it makes of the accounts.
fn change(shard: &Shard, accounts: &mut BTreeMap<i32, i64>, random: &mut SimRandom) -> bool {
    let mut txn = begin(shard, Isolation::ReadCommitted);
    for _ in 0..1 + random.below(4) {
        txn.begin_command();
        let id = random.below(40) as i32;
        let amount = random.below(1000) as i64;
        match (accounts.contains_key(&id), random.below(4)) {
            (false, _) => {
                assert!(matches!(ready(insert(&mut *txn, id, amount)), InsertOutcome::Inserted(_)));
                accounts.insert(id, amount);
            }
            (true, 0) => {
                let (row, _) = find(&mut *txn, id).expect("it is there");
                let table = txn.open_table(ACCOUNTS).expect("it is there");
                let mut moved = RowBatch::new();
                ready(txn.lock_row(&table, row, RowLockMode::Update, WaitPolicy::Block, &mut moved));
                txn.delete(&table, row).expect("it is locked");
                accounts.remove(&id);
            }
            (true, _) => {
                ready(update(&mut *txn, id, |_| amount));
                accounts.insert(id, amount);
            }
        }
    }
    is_durable(shard, txn)
}

fn sorted(shard: &Shard) -> BTreeMap<i32, i64> {
    let rows = all(shard);
    let mut txn = begin(shard, Isolation::ReadCommitted);
    let by_index = scan(&mut *txn, Some(BY_ID));
    let map: BTreeMap<i32, i64> = rows.iter().copied().collect();
    assert_eq!(map.len(), rows.len(), "no row twice");
    assert_eq!(by_index, map.iter().map(|(id, balance)| (*id, *balance)).collect::<Vec<_>>(), "index and table");
    map
}

#[test]
fn a_start_finds_image_and_log() {
    let disk = SimDisk::new();
    let shard = bank(&disk, 100);
    checkpoint(&shard);
    let mut txn = begin(&shard, Isolation::ReadCommitted);
    ready(update(&mut *txn, 7, |b| b + 1));
    commit(&shard, txn);
    assert!(shard.begin_checkpoint().is_some(), "the one before is over");
    let number = shard.last_checkpoint().expect("just made").checkpoint;
    drop(shard);
    for _ in 0..2 {
        let shard = open(&disk);
        let found = sorted(&shard);
        assert_eq!((found.len(), found[&7], found[&8]), (100, 101, 100));
        assert_eq!(shard.last_checkpoint().map(|manifest| manifest.checkpoint), Some(number));
    }
    let shard = open(&disk);
    checkpoint(&shard);
    assert_eq!(shard.last_checkpoint().map(|manifest| manifest.checkpoint), Some(number + 1));
    assert_eq!(disk.list().expect("healthy").iter().filter(|name| name.ends_with(".image")).count(), 2);
}

/// A disk that cannot say whether the manifest has been renamed.
struct Unsure(SimDisk, AtomicBool);

impl env::Disk for Unsure {
    fn create(&self, name: &str) -> std::io::Result<Arc<dyn env::DiskFile>> {
        self.0.create(name)
    }

    fn open(&self, name: &str) -> std::io::Result<Arc<dyn env::DiskFile>> {
        self.0.open(name)
    }

    fn remove(&self, name: &str) -> std::io::Result<()> {
        self.0.remove(name)
    }

    fn rename(&self, from: &str, to: &str) -> std::io::Result<()> {
        self.0.rename(from, to)?;
        let is_torn = to == "manifest" && self.1.swap(false, Ordering::Relaxed);
        if is_torn { Err(std::io::ErrorKind::Other.into()) } else { Ok(()) }
    }

    fn list(&self) -> std::io::Result<Vec<String>> {
        self.0.list()
    }

    fn sync_directory(&self) -> std::io::Result<()> {
        self.0.sync_directory()
    }

    fn lock(&self) -> std::io::Result<Box<dyn env::DiskLock>> {
        self.0.lock()
    }
}

/// After a switch that failed half way either image may be the one that a start takes: both stay, also when the next
/// checkpoint is given up.
#[test]
fn images_stay_as_long_as_either_may_count() {
    let disk = SimDisk::new();
    let shard = bank(&disk, 100);
    checkpoint(&shard);
    drop(shard);
    let unsure = Arc::new(Unsure(disk.clone(), AtomicBool::new(false)));
    let world = env::World { disk: unsure.clone(), ..world(&disk) };
    let log = redo::FileOptions { segment_bytes: 256 << 10, batch_bytes_max: 32 << 10 };
    let options = engine::ShardOptions { memory_limit: 1 << 30, log, ..engine::ShardOptions::default() };
    let shard = Shard::open(&world, options, Box::new(|_| {})).expect("the log opens").0;
    let mut txn = begin(&shard, Isolation::ReadCommitted);
    ready(update(&mut *txn, 7, |b| b + 1));
    commit(&shard, txn);
    let images = || disk.list().expect("healthy").into_iter().filter(|name| name.ends_with(".image")).count();
    unsure.1.store(true, Ordering::Relaxed);
    assert!(Going::begin(&shard).and_then(Going::commit).is_err());
    assert_eq!(images(), 4, "one of them counts");
    drop(Going::begin(&shard).expect("a healthy disk"));
    assert_eq!(images(), 4, "one of them counts still");
    let found = sorted(&open(&disk.after_crash(Crash::KeepAll, &mut SimRandom::new(1))));
    assert_eq!((found.len(), found[&7]), (100, 101));
    checkpoint(&shard);
    assert_eq!(images(), 2);
}

/// At each seed a machine runs random transactions with a checkpoint going on beside them, and stops at a random operation.
/// What is found is what some commit left, none that was reported durable missing.
#[test]
fn wherever_it_stops_nothing_durable_is_lost() {
    for seed in 1..=60 {
        let mut random = SimRandom::new(seed);
        let mut disk = SimDisk::new();
        drop(bank(&disk, 0));
        let mut accounts = BTreeMap::new();
        for life in 0..4 {
            let shard = open(&disk);
            assert_eq!(sorted(&shard), accounts, "seed {seed}, life {life}");
            // What each commit left, from the last that was durable on.
            let mut states = vec![accounts.clone()];
            let mut going: Option<Going> = None;
            disk.freeze_at(disk.operations() + random.below(120));
            for _ in 0..60 {
                let is_sure = change(&shard, &mut accounts, &mut random);
                states.push(accounts.clone());
                if !is_sure {
                    break;
                }
                states.drain(..states.len() - 1);
                match going.take() {
                    None if random.below(4) == 0 => going = Going::begin(&shard).ok(),
                    None => {}
                    Some(mut on) => match on.step(random.below(2) as usize) {
                        Ok(true) => going = Some(on),
                        Ok(false) if random.below(3) > 0 => going = Some(on),
                        // A failure leaves the image before; the machine stops soon anyway.
                        Ok(false) => _ = on.commit(),
                        Err(_) => {}
                    },
                }
            }
            drop(going);
            drop(shard);
            let crash = if random.below(2) == 0 { Crash::LoseUnsynced } else { Crash::AnySectors };
            disk = disk.after_crash(crash, &mut random);
            let found = sorted(&open(&disk));
            assert!(states.contains(&found), "seed {seed}, life {life}: {found:?} is none of {states:?}");
            accounts = found;
        }
    }
}

#[test]
fn what_is_open_at_the_view_counts_when_it_commits() {
    let disk = SimDisk::new();
    let shard = bank(&disk, 50);
    // One that writes ahead of its commit, one that is prepared, one that is prepared and ended before the view.
    let mut long = begin(&shard, Isolation::ReadCommitted);
    for id in 1000..8000 {
        long.begin_command();
        loop {
            match insert(&mut *long, id, 5).expect("there is room") {
                Step::Ready(_) => break,
                Step::Wait(_) => std::thread::yield_now(),
            }
        }
    }
    let prepare = |name: &str, id: i32| {
        let mut txn = begin(&shard, Isolation::ReadCommitted);
        ready(update(&mut *txn, id, |b| b + 1));
        let what = PreparedTransaction {
            name: name.to_string(),
            owner: "somebody".to_string(),
            database: base::Oid(5),
            prepared_at: 1,
            txn: 0,
            advisory: Vec::new(),
        };
        ready(txn.prepare(&what));
    };
    prepare("ended", 1);
    prepare("kept", 2);
    prepare("undone", 3);
    ready(shard.finish_prepared("ended", true));
    checkpoint(&shard);
    checkpoint(&shard);
    commit(&shard, long);
    drop(shard);
    let shard = open(&disk);
    let found = sorted(&shard);
    assert_eq!((found.len(), found[&1], found[&2], found[&7999]), (7050, 101, 100, 5));
    checkpoint(&shard);
    drop(shard);
    let shard = open(&disk);
    ready(shard.finish_prepared("kept", true));
    ready(shard.finish_prepared("undone", false));
    checkpoint(&shard);
    drop(shard);
    let shard = open(&disk);
    let found = sorted(&shard);
    assert_eq!((found.len(), found[&2], found[&3], shard.prepared().len()), (7050, 101, 100, 0));
}

#[test]
fn the_log_stays_small_under_endless_load() {
    let disk = SimDisk::new();
    let shard = bank(&disk, 20);
    let used = || -> u64 {
        let names = disk.list().expect("healthy");
        names.iter().map(|name| disk.open(name).and_then(|file| file.len()).unwrap_or(0)).sum()
    };
    let mut most = 0;
    for round in 0..30 {
        let mut txn = begin(&shard, Isolation::ReadCommitted);
        for id in 0..20 {
            for _ in 0..100 {
                ready(update(&mut *txn, id, |b| b ^ round));
            }
        }
        commit(&shard, txn);
        checkpoint(&shard);
        most = most.max(used());
    }
    // Segments of 256 KiB: the one in use, the next, and those that the flusher has not come to remove.
    assert!(most < 6 * (256 << 10), "{most} bytes");
    drop(shard);
    assert_eq!(sorted(&open(&disk)).len(), 20);
}

/// An image that takes long: writers do not wait for it, and what it needs of a row that changes all the time is one version.
#[test]
fn an_image_stops_no_writer_and_holds_no_history() {
    let disk = SimDisk::new();
    let shard = bank(&disk, 20);
    let mut going = Going::begin(&shard).expect("a healthy disk");
    let load = |rounds: i64| {
        for round in 0..rounds {
            let mut txn = begin(&shard, Isolation::ReadCommitted);
            ready(update(&mut *txn, 4, |b| b ^ round));
            commit(&shard, txn);
        }
        shard.collect_garbage(10_000);
        (0..8).for_each(|_| shard.reclaim());
        shard.memory().rows
    };
    let before = load(100);
    let after = load(4000);
    assert!(after < before + (32 << 10), "{before} bytes became {after}");
    while going.step(0).expect("a healthy disk") {}
    going.commit().expect("a healthy disk");
    drop(shard);
    assert_eq!(sorted(&open(&disk)).len(), 20);
}

/// A disk that is full fails the checkpoint and nothing else; the next one is made when there is room.
#[test]
fn a_full_disk_fails_a_checkpoint_only() {
    let disk = SimDisk::new();
    let shard = bank(&disk, 2000);
    checkpoint(&shard);
    let images = || disk.list().expect("healthy").into_iter().filter(|name| name.ends_with(".image")).count();
    assert_eq!(images(), 2);
    let names = disk.list().expect("healthy");
    let used: u64 = names.iter().map(|name| disk.open(name).and_then(|file| file.len()).unwrap_or(0)).sum();
    disk.set_quota(Some(used + 1000));
    let number = shard.request_checkpoint();
    let error = Going::begin(&shard).and_then(|going| {
        let (checkpoint, made) = (Arc::clone(&going.checkpoint), going.commit());
        made.inspect_err(|error| checkpoint.fail(error))
    });
    assert_eq!(error.map_err(|error| error.kind()), Err(std::io::ErrorKind::StorageFull));
    let Err(told) = shard.checkpoint_done(number) else { panic!("it failed") };
    assert_eq!((told.code(), told.fields().message.as_str()), (base::SqlState::DISK_FULL, "checkpoint request failed"));
    assert_eq!((shard.last_checkpoint().map(|last| last.checkpoint), images()), (Some(1), 2));
    let mut txn = begin(&shard, Isolation::ReadCommitted);
    ready(update(&mut *txn, 7, |b| b + 1));
    commit(&shard, txn);
    disk.set_quota(None);
    let number = shard.request_checkpoint();
    checkpoint(&shard);
    assert!(matches!(shard.checkpoint_done(number), Ok(Step::Ready(()))));
    let figures = shard.checkpoint_figures();
    assert_eq!((figures.made, figures.failed, images()), (2, 1, 2));
    drop(shard);
    assert_eq!(sorted(&open(&disk))[&7], 101);
}

#[test]
fn definitions_and_sequences_are_in_the_image() {
    let disk = SimDisk::new();
    let shard = bank(&disk, 3);
    let sequence =
        SequenceDesc::new(base::Oid(20020), oids::SCHEMA_PUBLIC, "s", oids::ROLE_POSTGRES, types::oid::INT8, i64::MAX);
    let mut txn = begin(&shard, Isolation::ReadCommitted);
    ready(txn.put_object(CatalogObject::Sequence(sequence.clone())));
    commit(&shard, txn);
    for _ in 0..40 {
        next_value(&shard, &sequence).expect("it has values");
    }
    let last = shard.allocate_oid();
    checkpoint(&shard);
    // A table that is dropped behind the view: the log goes on about rows that the image must have.
    let going = Going::begin(&shard).expect("a healthy disk");
    let mut txn = begin(&shard, Isolation::ReadCommitted);
    ready(update(&mut *txn, 1, |b| b + 1));
    commit(&shard, txn);
    let mut txn = begin(&shard, Isolation::ReadCommitted);
    txn.drop_object(BY_ID).expect("it is there");
    txn.drop_object(ACCOUNTS).expect("it is there");
    commit(&shard, txn);
    going.commit().expect("a healthy disk");
    drop(shard);
    let shard = open(&disk);
    assert!(shard.catalog().table(ACCOUNTS).is_none());
    assert!(next_value(&shard, &sequence).expect("it has values") > 40);
    assert!(shard.allocate_oid() >= last);
    // Schemas, roles and what else is there from the start are there once.
    let count = shard.catalog().objects().count();
    checkpoint(&shard);
    drop(shard);
    assert_eq!(open(&disk).catalog().objects().count(), count);
}

/// Rows with their RowIds, in order.
fn numbered(shard: &Shard) -> Vec<(u64, Vec<u8>)> {
    let mut txn = begin(shard, Isolation::ReadCommitted);
    let table = txn.open_table(ACCOUNTS).expect("it is there");
    let spec =
        ScanSpec { table, index: None, range: KeyRange::all(), reverse: false, content: engine_api::RowContent::Tuple };
    let mut rows = txn.open_scan(spec).expect("it is there");
    let mut batch = RowBatch::new();
    while rows.next(&mut *txn, 100, &mut batch).expect("it can be read") {}
    batch.iter().map(|row| (row.row.0, row.tuple.to_vec())).collect()
}

/// However many threads replay the log, and load the image before it, the rows are those of one thread.
#[test]
fn many_threads_replay_as_one_does() {
    for seed in 1..=10 {
        let mut random = SimRandom::new(seed);
        let disk = SimDisk::new();
        let shard = bank(&disk, 0);
        let mut accounts = BTreeMap::new();
        // More rows than stay together in one thread.
        for block in 0..4 {
            let mut txn = begin(&shard, Isolation::ReadCommitted);
            for id in 0..400 {
                ready(insert(&mut *txn, 1000 + block * 400 + id, i64::from(id)));
                accounts.insert(1000 + block * 400 + id, i64::from(id));
            }
            commit(&shard, txn);
        }
        for round in 0..60 {
            assert!(change(&shard, &mut accounts, &mut random), "a healthy disk");
            let id = 1000 + random.below(1600) as i32;
            let mut txn = begin(&shard, Isolation::ReadCommitted);
            // One commit writes a row more than once.
            for _ in 0..3 {
                ready(update(&mut *txn, id, |balance| balance * 3 + 1));
            }
            commit(&shard, txn);
            if seed % 2 == 0 && round == 30 {
                checkpoint(&shard);
            }
        }
        let expected = numbered(&shard);
        drop(shard);
        for threads in [1, 2, 5] {
            let copy = disk.after_crash(Crash::KeepAll, &mut random);
            let log = redo::FileOptions { segment_bytes: 256 << 10, batch_bytes_max: 32 << 10 };
            let options = engine::ShardOptions { memory_limit: 1 << 30, log, threads, ..Default::default() };
            let (shard, _) = Shard::open(&world(&copy), options, Box::new(|_| {})).expect("it opens");
            assert_eq!(numbered(&shard), expected, "seed {seed}, {threads} threads");
            sorted(&shard);
        }
    }
}
