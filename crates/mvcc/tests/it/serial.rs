//! SERIALIZABLE under random schedules: the look at what was read and the stamp, against others that commit.
//!
//! This is the protocol of `engine::commit::validate` over the real rows: a look before the section, which counts if nobody
//! was stamped since it began, otherwise one inside; then timestamp and publication, all in one section.

use std::sync::Arc;

use base::{CommandId, RowId, Timestamp};
use mvcc::{Read, RowLockMode, Transaction, View, pin};
use shuttle::sync::Mutex;
use shuttle::thread;

use crate::schedules::{Shard, run};
use crate::support::{GRANTED, LAYOUT};

/// What a transaction has read: rows, or all of them.
enum Reads<'a> {
    Rows(&'a [RowId]),
    All,
}

struct Serial {
    shard: Arc<Shard>,
    /// The newest commit of a SERIALIZABLE writer.
    last: Mutex<Timestamp>,
}

impl Serial {
    fn new() -> Arc<Serial> {
        Arc::new(Serial { shard: Shard::new(), last: Mutex::new(Timestamp(0)) })
    }

    fn is_as_it_was(&self, reads: &Reads<'_>, as_of: Timestamp) -> bool {
        let (table, guard) = (&self.shard.w.table, pin());
        match reads {
            Reads::Rows(rows) => rows.iter().all(|row| table.last_commit(*row, &guard).is_some_and(|ts| ts <= as_of)),
            Reads::All => table.find_commit_after(RowId(0), table.end(), as_of, usize::MAX, &guard).1.is_none(),
        }
    }

    /// Commits unless what was read has changed since `as_of`; answers the timestamp.
    fn commit(&self, txn: Transaction, reads: &Reads<'_>, as_of: Timestamp) -> Option<Timestamp> {
        let store = &self.shard.w.store;
        let horizon = store.horizon();
        let mut good = self.is_as_it_was(reads, as_of);
        let mut last = self.last.lock().unwrap();
        if good && *last > horizon {
            good = self.is_as_it_was(reads, as_of);
        }
        if !good {
            drop(last);
            store.abort(txn);
            return None;
        }
        let ts = self.shard.stamp(&txn);
        *last = ts;
        drop(last);
        self.shard.finish(txn, ts);
        Some(ts)
    }

    /// Reads `reads` and writes `row` at one snapshot; what it read, and whether it committed.
    fn read_and_write(&self, reads: &[RowId], row: RowId) -> (Vec<u8>, Option<Timestamp>) {
        let store = &self.shard.w.store;
        let token = store.begin_view();
        let as_of = token.read_ts();
        let seen = reads.iter().map(|row| self.read(*row, as_of)).collect();
        let mut txn = self.shard.w.begin();
        let is_free = self.shard.lock(&mut txn, row, RowLockMode::NoKeyUpdate) == GRANTED
            && self.is_as_it_was(&Reads::Rows(&[row]), as_of);
        let committed = if is_free {
            self.shard.add(&mut txn, row);
            self.commit(txn, &Reads::Rows(reads), as_of)
        } else {
            store.abort(txn);
            None
        };
        store.end_view(token);
        (seen, committed)
    }

    fn read(&self, row: RowId, read_ts: Timestamp) -> u8 {
        let view = View { read_ts, own: None, command: CommandId(0) };
        match self.shard.w.table.read(row, &view, &pin()) {
            Read::Visible(version) => version.tuple[0],
            other => panic!("row {row} must be seen: {other:?}"),
        }
    }
}

/// Each reads both rows and writes one: both commit only if one saw what the other wrote.
#[test]
fn no_write_skew() {
    run(|| {
        let serial = Serial::new();
        let rows = [serial.shard.counter(), serial.shard.counter()];
        let tasks = rows.map(|row| {
            let serial = serial.clone();
            thread::spawn(move || serial.read_and_write(&rows, row))
        });
        let [a, b] = tasks.map(|task| task.join().unwrap());
        if let (Some(first), Some(second)) = (a.1, b.1) {
            let (later, wrote) = if first < second { (&b.0, 0) } else { (&a.0, 1) };
            assert_eq!(later[wrote], 1, "the later one has not seen what the earlier one wrote");
        }
        assert!(a.1.is_some() || b.1.is_some(), "one of two commits");
    });
}

/// Each counts all rows and inserts one: the counts of those that commit differ.
#[test]
fn no_phantoms() {
    run(|| {
        let serial = Serial::new();
        // The first transaction makes the table of transactions, which the schedules cannot look into.
        serial.shard.counter();
        let task = || {
            let serial = serial.clone();
            thread::spawn(move || {
                let (store, table) = (&serial.shard.w.store, &serial.shard.w.table);
                let token = store.begin_view();
                let view = View { read_ts: token.read_ts(), own: None, command: CommandId(0) };
                let mut count = 0;
                table.scan(RowId(0), table.end(), true, &view, &pin(), |_, read| {
                    count += usize::from(matches!(read, Read::Visible(_)));
                    true
                });
                let mut txn = serial.shard.w.begin();
                table.insert(&mut txn, CommandId(0), LAYOUT, &[1], &pin());
                let committed = serial.commit(txn, &Reads::All, view.read_ts);
                store.end_view(token);
                (count, committed)
            })
        };
        let [a, b] = [task(), task()].map(|task| task.join().unwrap());
        assert!(a.1.is_none() || b.1.is_none() || a.0 != b.0, "both counted {}", a.0);
    });
}

/// Fekete, O'Neil and O'Neil (2004): a reader sees the second writer and not the first, who did not see the second.
#[test]
fn no_read_only_anomaly() {
    run(|| {
        let serial = Serial::new();
        let rows = [serial.shard.counter(), serial.shard.counter()];
        let writer = |reads: Vec<RowId>, row| {
            let serial = serial.clone();
            thread::spawn(move || serial.read_and_write(&reads, row))
        };
        let (first, second) = (writer(rows.to_vec(), rows[1]), writer(Vec::new(), rows[0]));
        let reader = {
            let serial = serial.clone();
            thread::spawn(move || {
                let token = serial.shard.w.store.begin_view();
                let seen = rows.map(|row| serial.read(row, token.read_ts()));
                serial.shard.w.store.end_view(token);
                seen
            })
        };
        let [first, _] = [first, second].map(|task| task.join().unwrap());
        let seen = reader.join().unwrap();
        let missed_second = first.1.is_some() && first.0[0] == 0;
        assert!(!(missed_second && seen == [1, 0]), "no order has {first:?} before the second and after the reader");
    });
}
