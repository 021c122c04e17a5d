//! Who sees what.

use base::{CommandId, RowId, Timestamp};
use mvcc::{Newest, Read, RowLockMode, View, pin};

use crate::support::{GRANTED, HELD, LAYOUT, World};

#[test]
fn a_commit_is_seen_by_later_views_only() {
    let w = World::new();
    let row = w.row("a");
    let old = w.store.begin_view();
    let mut txn = w.begin();
    assert_eq!(w.try_lock(&mut txn, row, RowLockMode::NoKeyUpdate), GRANTED);
    w.update(&mut txn, row, 0, "b");
    assert_eq!(w.see_now(row), "a", "undecided");
    w.store.publish(&txn, Timestamp(9));
    assert_eq!(w.see_now(row), "b", "published, not stamped");
    assert_eq!(w.see_at(row, &old), "a");
    w.store.finish_commit(txn, Timestamp(9));
    assert_eq!((w.see_now(row), w.see_at(row, &old)), ("b".into(), "a".into()));
    w.store.end_view(old);
}

#[test]
fn a_command_sees_what_earlier_commands_wrote() {
    let w = World::new();
    let mut txn = w.begin();
    let row = w.insert(&mut txn, 1, "one");
    w.update(&mut txn, row, 2, "two");
    w.delete(&mut txn, row, 3);
    let seen: Vec<String> = (1..=4).map(|command| w.own(row, &txn, command)).collect();
    assert_eq!(seen, ["", "one", "two", "-"]);
    assert_eq!(w.see_now(row), "");
    w.store.abort(txn);
    assert_eq!(w.see_now(row), "");
}

#[test]
fn going_back_to_a_mark_undoes_writes_and_locks() {
    let w = World::new();
    let (a, b) = (w.row("a"), w.row("b"));
    let mut txn = w.begin();
    assert_eq!(w.try_lock(&mut txn, a, RowLockMode::NoKeyUpdate), GRANTED);
    w.update(&mut txn, a, 1, "a1");
    let mark = txn.mark();
    assert_eq!(w.try_lock(&mut txn, a, RowLockMode::NoKeyUpdate), HELD);
    w.update(&mut txn, a, 2, "a2");
    assert_eq!(w.try_lock(&mut txn, b, RowLockMode::Update), GRANTED);
    w.delete(&mut txn, b, 2);
    let c = w.insert(&mut txn, 2, "c");
    w.store.undo_to(&mut txn, mark);
    assert_eq!(w.own(a, &txn, 9), "a1");
    assert_eq!(w.own(b, &txn, 9), "b");
    assert_eq!(w.own(c, &txn, 9), "");
    let mut other = w.begin();
    assert_eq!(w.try_lock(&mut other, b, RowLockMode::Update), GRANTED, "the lock on b was given back");
    assert_eq!(w.try_lock(&mut other, a, RowLockMode::KeyShare), GRANTED, "a is held with NoKeyUpdate");
    assert_eq!(w.try_lock(&mut other, c, RowLockMode::KeyShare), mvcc::LockResult::Gone);
    w.store.abort(other);
    w.commit(txn);
    assert_eq!(w.see_now(a), "a1");
}

#[test]
fn newest_names_the_undecided_writer() {
    let w = World::new();
    let row = w.row("a");
    let mut txn = w.begin();
    assert_eq!(w.try_lock(&mut txn, row, RowLockMode::Update), GRANTED);
    w.update(&mut txn, row, 0, "b");
    let guard = pin();
    match w.table.newest(row, None, &guard) {
        Newest::Undecided { holder, decided } => {
            assert_eq!((holder, decided.unwrap().tuple), (txn.id(), &b"a"[..]));
        }
        other => panic!("{other:?}"),
    }
    assert!(matches!(w.table.newest(row, Some(txn.id()), &guard), Newest::Live(v) if v.tuple == b"b"));
    w.delete(&mut txn, row, 1);
    assert_eq!(w.table.newest(row, Some(txn.id()), &guard), Newest::Deleted(Timestamp(0)));
    let ts = w.commit(txn);
    assert_eq!(w.table.newest(row, None, &guard), Newest::Deleted(ts));
}

#[test]
fn a_scan_walks_in_row_order_and_goes_on_where_it_stopped() {
    let w = World::new();
    let rows: Vec<RowId> = (0..1000).map(|i| w.row(&i.to_string())).collect();
    w.remove(rows[500]);
    let token = w.store.begin_view();
    let view = View { read_ts: token.read_ts(), own: None, command: CommandId(0) };
    let (mut at, end, mut seen, mut gone) = (RowId(0), w.table.end(), Vec::new(), 0);
    while at < end {
        let guard = pin();
        let mut left = 7;
        at = w.table.scan(at, end, true, &view, &guard, |row, read| {
            match read {
                Read::Visible(_) => seen.push(row),
                Read::Gone(_) => gone += 1,
                Read::Absent => unreachable!("absent rows are passed over"),
            }
            left -= 1;
            left > 0
        });
    }
    let expected: Vec<RowId> = rows.iter().copied().filter(|r| *r != rows[500]).collect();
    assert_eq!((seen, gone), (expected, 1));
    w.store.end_view(token);
}

#[test]
fn rows_read_together_are_what_each_is_alone() {
    let w = World::new();
    // More than one group; the last is long enough for several lines of memory.
    let rows: Vec<RowId> = (0..50).map(|i| w.row(&"x".repeat(i * i))).collect();
    w.remove(rows[20]);
    let mut txn = w.begin();
    assert_eq!(w.try_lock(&mut txn, rows[3], RowLockMode::Update), GRANTED);
    w.update(&mut txn, rows[3], 0, "own");
    let token = w.store.begin_view();
    let asked: Vec<RowId> = rows.iter().rev().copied().chain([RowId(1 << 40), rows[3]]).collect();
    for own in [None, Some(txn.id())] {
        let view = View { read_ts: token.read_ts(), own, command: CommandId(1) };
        for (tuples, some) in
            [(true, &asked[..]), (false, &asked[..]), (true, &asked[..16]), (true, &asked[..1]), (true, &[])]
        {
            let guard = pin();
            let mut together = Vec::new();
            w.table.read_each(some, tuples, &view, &guard, |at, read| {
                together.push((at, read));
                true
            });
            let alone = some.iter().map(|row| w.table.read(*row, &view, &guard));
            assert_eq!(together, alone.enumerate().collect::<Vec<_>>());
        }
    }
    w.store.end_view(token);
    w.commit(txn);
}

#[test]
fn loading_keeps_the_newest_version_and_the_counter() {
    let w = World::new();
    let mut table = w.store.new_table(base::Oid(1), std::sync::Arc::new(mvcc::NoIndexes));
    let guard = pin();
    assert!(table.load(RowId(5), Timestamp(3), LAYOUT, b"old", &guard));
    assert!(table.load(RowId(5), Timestamp(4), LAYOUT, b"new", &guard));
    assert!(table.load(RowId(5), Timestamp(4), LAYOUT, b"new", &guard), "a commit may write a row twice");
    assert!(!table.load(RowId(5), Timestamp(3), LAYOUT, b"again", &guard));
    assert!(table.load(RowId(100_000), Timestamp(5), LAYOUT, b"far", &guard));
    assert!(table.load_delete(RowId(100_000), Timestamp(6), &guard));
    table.set_next_row_id(RowId(200_000));
    drop(guard);
    table.settle();
    assert_eq!((table.row_count(), table.end()), (1, RowId(200_000)));
    let guard = pin();
    let view = View { read_ts: Timestamp(9), own: None, command: CommandId(0) };
    assert!(
        matches!(table.read(RowId(5), &view, &guard), Read::Visible(v) if v.tuple == b"new" && v.ts == Timestamp(4))
    );
    assert_eq!(table.read(RowId(100_000), &view, &guard), Read::Absent);
    let table = std::sync::Arc::new(table);
    let mut txn = w.begin();
    assert_eq!(table.insert(&mut txn, CommandId(0), LAYOUT, b"x", &guard), RowId(200_000));
    w.commit(txn);
}
