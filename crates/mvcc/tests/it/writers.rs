//! Which transaction a version says that wrote it.

use std::collections::HashSet;

use base::{CommandId, RowId, Timestamp, TxnId};
use mvcc::{Read, RowLockMode, Store, StoreOptions, View, pin};

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
}
