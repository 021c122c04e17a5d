//! What is freed, and when.

use std::sync::{Arc, Mutex};

use base::{CommandId, RowId};
use mvcc::{LaidOut, RowGarbage, RowLockMode, View, ViewToken, pin};

use crate::support::{GRANTED, LAYOUT, World};

#[derive(Default)]
struct Removed(Mutex<Vec<String>>);

impl RowGarbage for Removed {
    fn removed(&self, row: RowId, removed: LaidOut<'_>, remaining: &[LaidOut<'_>]) {
        let text = |t: &LaidOut<'_>| String::from_utf8(t.1.to_vec()).unwrap();
        let rest: Vec<String> = remaining.iter().map(text).collect();
        self.0.lock().unwrap().push(format!("{row}: {} of {}", text(&removed), rest.join(",")));
    }
}

impl Removed {
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

#[test]
fn an_old_reader_does_not_grow_a_hot_row() {
    let w = World::new();
    let row = w.row("first");
    let old = w.store.begin_view();
    let before = w.store.memory_used();
    let updates = if cfg!(miri) { 100 } else { 100_000 };
    for i in 0..updates {
        w.set(row, &i.to_string());
    }
    assert!(w.store.memory_used() < before + 200, "the chain is two versions long");
    assert_eq!(w.see_at(row, &old), "first");
    assert_eq!(w.store.garbage_len(), 1);
    assert_eq!(w.store.collect(10).rows, 0, "held by the view, not looked at");
    w.store.end_view(old);
    let done = w.store.collect(10);
    assert_eq!((done.rows, done.cleaned, done.queued), (1, 1, 0));
    assert!(w.store.memory_used() <= before);
    assert_eq!(w.see_now(row), (updates - 1).to_string());
}

/// The versions of a row.
fn versions(w: &World) -> u64 {
    w.table.memory().version_count
}

/// A row that waits for an old view has newer versions that wait for something else.
#[test]
fn what_a_young_view_held_goes_although_an_old_one_stays() {
    let w = World::new();
    let row = w.row("0");
    let old = w.store.begin_view();
    w.set(row, "1");
    assert_eq!((versions(&w), w.store.collect(10).rows), (2, 0));
    for i in 0..10 {
        let young = w.store.begin_view();
        w.set(row, &format!("{i}"));
        assert_eq!(versions(&w), 3, "one is the old view's, one the young one's");
        w.store.end_view(young);
        w.store.collect(10);
        assert_eq!(versions(&w), 2, "round {i}");
    }
    assert_eq!((w.see_at(row, &old), w.store.garbage_len()), ("0".into(), 1));
    w.store.end_view(old);
    w.store.collect(10);
    assert_eq!((versions(&w), w.store.garbage_len()), (1, 0));
}

/// Of two views the older may end first.
#[test]
fn what_the_older_of_two_views_held_goes_although_the_younger_stays() {
    let w = World::new();
    let row = w.row("0");
    let older = w.store.begin_view();
    w.set(row, "1");
    let younger = w.store.begin_view();
    w.set(row, "2");
    assert_eq!(versions(&w), 3);
    w.store.end_view(older);
    w.store.collect(10);
    assert_eq!(versions(&w), 2);
    assert_eq!(w.see_at(row, &younger), "1");
    w.store.end_view(younger);
    w.store.collect(10);
    assert_eq!((versions(&w), w.store.garbage_len()), (1, 0));
}

#[test]
fn keys_that_go_wait_for_their_commit_only_although_an_old_view_stays() {
    let w = World::with_indexes(Arc::new(Removed::default()));
    let row = w.row("0");
    let old = w.store.begin_view();
    for i in 1..10 {
        let mut txn = w.begin();
        assert_eq!(w.try_lock(&mut txn, row, RowLockMode::Update), GRANTED);
        w.table.update(&mut txn, row, CommandId(0), LAYOUT, format!("{i}").as_bytes(), true, &pin());
        w.commit(txn);
        w.durable();
        w.store.collect(10);
        assert_eq!(versions(&w), 2, "round {i}");
    }
    w.remove(row);
    w.durable();
    w.store.collect(10);
    assert_eq!((versions(&w), w.see_at(row, &old)), (2, "0".into()));
    w.store.end_view(old);
    w.store.collect(10);
    assert_eq!((versions(&w), w.store.garbage_len(), w.table.row_count()), (0, 0, 0));
}

/// A transaction that changes a row many times leaves one thing to do.
#[test]
fn a_row_changed_many_times_by_one_transaction_waits_once() {
    let w = World::new();
    let row = w.row("0");
    let old = w.store.begin_view();
    let mut txn = w.begin();
    assert_eq!(w.try_lock(&mut txn, row, RowLockMode::Update), GRANTED);
    for i in 0..100 {
        w.table.update(&mut txn, row, CommandId(i), LAYOUT, b"1", false, &pin());
    }
    w.commit(txn);
    assert_eq!((versions(&w), w.store.garbage_len()), (2, 1));
    w.store.end_view(old);
    w.store.collect(10);
    assert_eq!((versions(&w), w.store.garbage_len()), (1, 0));
}

/// What a transaction made and replaced itself waits for its commit, if keys went with it.
#[test]
fn keys_that_came_and_went_in_one_transaction_are_collected() {
    let w = World::with_indexes(Arc::new(Removed::default()));
    let row = w.row("0");
    let old = w.store.begin_view();
    let mut txn = w.begin();
    assert_eq!(w.try_lock(&mut txn, row, RowLockMode::Update), GRANTED);
    for (i, key) in [b"1", b"2", b"3"].into_iter().enumerate() {
        w.table.update(&mut txn, row, CommandId(i as u32), LAYOUT, key, true, &pin());
    }
    w.commit(txn);
    w.durable();
    w.store.collect(10);
    assert_eq!((versions(&w), w.see_at(row, &old)), (2, "0".into()));
    w.store.end_view(old);
    w.store.collect(10);
    assert_eq!((versions(&w), w.store.garbage_len()), (1, 0));
    let mut txn = w.begin();
    let made = w.insert(&mut txn, 0, "x");
    w.table.delete(&mut txn, made, CommandId(1), &pin());
    w.commit(txn);
    w.durable();
    w.store.collect(10);
    assert_eq!((versions(&w), w.store.garbage_len(), w.table.row_count()), (1, 0, 1));
}

#[test]
fn a_deleted_row_vanishes_when_its_deletion_is_durable() {
    let removed = Arc::new(Removed::default());
    let w = World::with_indexes(removed.clone());
    let row = w.row("a");
    w.remove(row);
    assert_eq!((w.see_now(row), w.store.collect(10).rows), ("-".into(), 0));
    let old = w.store.begin_view();
    w.durable();
    assert_eq!(w.store.collect(10).cleaned, 1, "the view came after the deletion");
    assert_eq!(removed.take(), ["0: a of "]);
    assert_eq!((w.see_now(row), w.table.row_count()), (String::new(), 0));
    w.store.end_view(old);
}

#[test]
fn index_keys_are_reported_when_they_diverge() {
    let removed = Arc::new(Removed::default());
    let w = World::with_indexes(removed.clone());
    let row = w.row("a");
    w.set(row, "b");
    assert!(removed.take().is_empty(), "same keys: no entry can go");
    let mut txn = w.begin();
    assert_eq!(w.try_lock(&mut txn, row, RowLockMode::Update), GRANTED);
    let mark = txn.mark();
    w.table.update(&mut txn, row, CommandId(0), LAYOUT, b"c", true, &pin());
    w.store.undo_to(&mut txn, mark);
    assert_eq!(removed.take(), ["0: c of b"]);
    w.table.update(&mut txn, row, CommandId(0), LAYOUT, b"d", true, &pin());
    w.commit(txn);
    assert!(removed.take().is_empty(), "not durable: a reader under the old key must find the row");
    w.durable();
    assert_eq!(w.store.collect(10).cleaned, 1);
    assert_eq!(removed.take(), ["0: b of d"]);
    assert!(w.table.keys_diverged(row, &pin()));
    let mut txn = w.begin();
    w.insert(&mut txn, 0, "x");
    w.store.abort(txn);
    assert_eq!(removed.take(), ["1: x of "]);
}

#[test]
fn a_locked_row_is_collected_later() {
    let w = World::new();
    let row = w.row("a");
    let old = w.store.begin_view();
    w.set(row, "b");
    w.store.end_view(old);
    let mut txn = w.begin();
    assert_eq!(w.try_lock(&mut txn, row, RowLockMode::KeyShare), GRANTED);
    assert_eq!(w.store.collect(10).cleaned, 0);
    w.store.abort(txn);
    assert_eq!(w.store.collect(10).cleaned, 1);
}

#[test]
fn rows_that_lie_sparse_are_moved_as_they_are() {
    let w = World::new();
    let old = w.store.begin_view();
    let rows = ["a", "b", "c", "d"].map(|tuple| w.row(tuple));
    let [changed, gone, locked, _] = rows;
    let middle = w.store.begin_view();
    w.set(changed, "A");
    w.remove(gone);
    let mut txn = w.begin();
    assert_eq!(w.try_lock(&mut txn, locked, RowLockMode::KeyShare), GRANTED);
    let before = (w.table.memory(), w.table.recount());
    let view = |token: &ViewToken| View { read_ts: token.read_ts(), own: None, command: CommandId(0) };
    assert_eq!(w.compact(), 3, "all but the one that is locked");
    assert_eq!((w.table.memory(), w.table.recount()), before);
    for (token, seen) in [(&old, ["", "", "", ""]), (&middle, ["a", "b", "c", "d"])] {
        assert_eq!(rows.map(|row| w.see(row, view(token))), seen);
    }
    w.store.abort(txn);
    let now = w.store.begin_view();
    assert_eq!(rows.map(|row| w.see(row, view(&now))), ["A", "-", "c", "d"]);
    assert_eq!(w.compact(), 4);
    for token in [old, middle, now] {
        w.store.end_view(token);
    }
    w.durable();
    w.store.collect(usize::MAX);
    assert_eq!(w.table.memory(), w.table.recount());
    assert_eq!(w.table.row_count(), 3);
}

#[test]
fn memory_comes_back() {
    let w = World::new();
    let empty = w.store.memory_used();
    let rows: Vec<RowId> = (0..1024).map(|i| w.row(&format!("row {i}"))).collect();
    assert!(w.table.memory().versions >= 1024 * 32);
    for row in rows {
        w.remove(row);
    }
    w.durable();
    assert_eq!(w.store.collect(usize::MAX).cleaned, 1024);
    let left = w.table.memory();
    assert_eq!(left.versions, 0);
    assert!(left.headers < 1024, "chunks are freed, the first segment stays: {}", left.headers);
    drop(w.table);
    assert_eq!(w.store.memory_used(), empty);
}
