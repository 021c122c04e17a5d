//! Which transaction a version says that wrote it.

use std::collections::HashSet;

use base::{CommandId, Ending, RowId, Timestamp, TxnId, Unseen};
use mvcc::{Read, RowLockMode, Store, StoreOptions, View, ViewTooOld, pin};

use crate::support::{GRANTED, LAYOUT, World};

/// The tag of the version that a view taken now sees.
fn writer(w: &World, row: RowId) -> u32 {
    let token = w.store.begin_view();
    let view = View { read_ts: token.read_ts(), own: None, command: CommandId(0) };
    let seen = match w.table.read(row, &view, &pin()) {
        Read::Visible(version) => version.writer,
        other => panic!("{other:?}"),
    };
    w.store.end_view(token);
    seen
}

#[test]
fn a_version_names_its_writer_before_and_after_it_is_stamped() {
    let w = World::new();
    let row = w.row("a");
    let first = writer(&w, row);
    let mut txn = w.begin();
    let tag = txn.id().tag();
    assert_ne!(tag, first);
    assert_eq!(w.try_lock(&mut txn, row, RowLockMode::NoKeyUpdate), GRANTED);
    w.update(&mut txn, row, 5, "b");
    assert_eq!(writer(&w, row), first, "undecided");
    w.store.publish(&txn, Timestamp(9));
    assert_eq!(writer(&w, row), tag, "published, not stamped");
    w.store.finish_commit(txn, Timestamp(9));
    assert_eq!(writer(&w, row), tag);
    assert_eq!(w.compact(), 1);
    assert_eq!(writer(&w, row), tag, "moved");
}

#[test]
fn loaded_versions_name_nobody_who_was_or_will_be() {
    let w = World::new();
    let last = TxnId(12345 << TxnId::PLACE_BITS);
    w.store.start_ids_after(last);
    assert!(w.table.load(RowId(0), Timestamp(1), LAYOUT, b"a", &pin()));
    let loaded = writer(&w, RowId(0));
    assert!(loaded > last.tag());
    let next = w.begin();
    assert!(next.id().tag() > loaded);
    assert!(w.store.last_txn() > next.id(), "what a checkpoint notes is beyond all");
    w.store.abort(next);
}

fn new_store() -> Store {
    Store::new(StoreOptions { horizon: Timestamp(1), memory_limit: 1 << 40 })
}

/// Many at a time, in many threads: every number is one transaction's.
#[test]
fn numbers_are_given_once() {
    let store = new_store();
    let tags: Vec<u32> = std::thread::scope(|scope| {
        let begin = || {
            let mut tags = Vec::new();
            for round in 0..300 {
                let open: Vec<_> = (0..1 + round % 7).map(|_| store.begin_txn().unwrap()).collect();
                tags.extend(open.iter().map(|txn| txn.id().tag()));
                open.into_iter().for_each(|txn| store.abort(txn));
            }
            tags
        };
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(begin)).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    let distinct: HashSet<u32> = tags.iter().copied().collect();
    assert_eq!(distinct.len(), tags.len());
}

/// Tags begin anew after 2^31 numbers, and those below 3 are nobody's.
#[test]
fn tags_begin_anew_above_those_that_mean_something_else() {
    let store = new_store();
    store.start_ids_after(TxnId(((1 << 31) - 66_000) << TxnId::PLACE_BITS));
    let mut before = 0;
    for _ in 0..1000 {
        let txn = store.begin_txn().unwrap();
        let (tag, number) = (txn.id().tag(), txn.id().xid8());
        assert!(tag >= 3 && number > before && number as u32 == tag, "{tag} {number}");
        before = number;
        store.abort(txn);
    }
    assert_eq!(before >> 32, 1, "the tags have begun anew");
    assert_eq!(store.ending(1 << 31), Ending::Forgotten, "no transaction is shown so");
}

#[test]
fn a_view_does_not_see_who_runs_or_has_committed_since() {
    let w = World::new();
    let before = w.begin();
    let running = w.begin();
    let committed = w.begin();
    let undone = w.begin();
    let [before, committed, undone] = [before, committed, undone].map(|txn| (txn.id().xid8(), txn));
    w.commit(before.1);
    let token = w.store.begin_view();
    w.commit(committed.1);
    w.store.abort(undone.1);
    let later = w.begin();
    let unseen = w.store.unseen(token.read_ts()).unwrap();
    let Unseen { limit, below } = &unseen;
    let mut expected = vec![running.id().xid8(), committed.0, later.id().xid8()];
    expected.sort_unstable();
    assert_eq!(*below, expected);
    assert!(*limit > later.id().xid8());
    let next = w.begin();
    assert!(next.id().xid8() >= *limit, "no number below is given any more");
    assert_eq!(w.store.ending(before.0), Ending::Committed);
    assert_eq!(w.store.ending(committed.0), Ending::Committed);
    assert_eq!(w.store.ending(undone.0), Ending::Undone);
    assert_eq!(w.store.ending(running.id().xid8()), Ending::Running);
    assert_eq!(w.store.ending(u64::MAX), Ending::Future);
    assert_eq!(w.store.ending(3), Ending::Forgotten, "of a number before the start");
    assert_eq!(w.store.ending(1 << 31), Ending::Future);
    // A commit that has written nothing is one too.
    let number = later.id().xid8();
    w.store.note_committed(&later);
    w.abort([running, later, next]);
    assert_eq!(w.store.ending(number), Ending::Committed);
    // What a view does not see stays the same, whatever ends.
    assert_eq!(w.store.unseen(token.read_ts()).unwrap().below, [committed.0]);
    w.store.end_view(token);
}

#[test]
fn what_is_too_long_ago_is_said_to_be() {
    let w = World::new();
    let token = w.store.begin_view();
    let old = w.begin();
    let first = old.id().xid8();
    for _ in 1..1 << 16 {
        let txn = w.begin();
        w.commit(txn);
    }
    assert_eq!(w.store.unseen(token.read_ts()).unwrap().below.len(), 1 << 16);
    let txn = w.begin();
    let last = txn.id().xid8();
    w.commit(txn);
    assert_eq!(w.store.unseen(token.read_ts()), Err(ViewTooOld));
    w.store.end_view(token);
    for _ in 0..1 << 19 {
        w.abort([w.begin()]);
    }
    assert_eq!(w.store.ending(last), Ending::Forgotten);
    assert_eq!(w.store.ending(first), Ending::Running);
    // Where its ending would stand, others' stand now.
    w.commit(old);
    assert_eq!(w.store.ending(first), Ending::Forgotten);
}

/// Writers commit and undo in many threads; what each view is said not to see is what had not committed when it was taken.
#[test]
fn what_views_do_not_see_agrees_with_when_everybody_committed() {
    let store = new_store();
    let clock = std::sync::Mutex::new(1u64);
    let writer = |seed: u64| {
        let mut ends = Vec::new();
        for round in 0..2000 {
            let txn = store.begin_txn().unwrap();
            let number = txn.id().xid8();
            if (round + seed).is_multiple_of(3) {
                store.abort(txn);
                ends.push((number, None));
                continue;
            }
            let mut last = clock.lock().unwrap();
            *last += 1;
            let ts = Timestamp(*last);
            store.publish(&txn, ts);
            drop(last);
            store.finish_commit(txn, ts);
            ends.push((number, Some(ts)));
        }
        ends
    };
    let reader = || {
        let mut told = Vec::new();
        for _ in 0..500 {
            let token = store.begin_view();
            told.push((token.read_ts(), store.unseen(token.read_ts()).unwrap()));
            store.end_view(token);
        }
        told
    };
    let (ends, told) = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..3).map(|seed| scope.spawn(move || writer(seed))).collect();
        let told = reader();
        let ends: Vec<_> = writers.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
        (ends, told)
    });
    crate::support::check_unseen(&ends, &told);
    for (number, committed) in &ends {
        let expected = if committed.is_some() { Ending::Committed } else { Ending::Undone };
        assert_eq!(store.ending(*number), expected);
    }
}
