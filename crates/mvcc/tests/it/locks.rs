//! Who waits, who is next, and what is a deadlock.

use std::sync::Arc;

use base::Oid;
use mvcc::{LockResult, RowLockMode, TableLockMode, WaitPolicy, WaitTarget, Wakeup};

use crate::support::{GRANTED, HELD, World, bell};
use RowLockMode::{KeyShare, NoKeyUpdate, Share, Update};

const WAIT: LockResult = LockResult::Wait;

#[test]
fn hand_over_is_first_come_first_served() {
    let w = World::new();
    let row = w.row("a");
    let (mut a, mut b, mut c, mut d) = (w.begin(), w.begin(), w.begin(), w.begin());
    let bells = [bell(), bell(), bell()];
    assert_eq!(w.try_lock(&mut a, row, Update), GRANTED);
    assert_eq!(w.lock(&mut b, row, Update, &bells[0]), WAIT);
    assert_eq!(w.lock(&mut c, row, KeyShare, &bells[1]), WAIT);
    assert_eq!(w.lock(&mut d, row, Share, &bells[2]), WAIT);
    assert_eq!(w.lock(&mut b, row, Update, &bells[0]), WAIT, "asking again does not move it");
    w.commit(a);
    assert_eq!(bells.each_ref().map(|b| b.rung()), [1, 0, 0]);
    let mut late = w.begin();
    assert_eq!(w.try_lock(&mut late, row, KeyShare), LockResult::WouldBlock, "b holds it before it runs");
    assert_eq!(w.lock(&mut b, row, Update, &bells[0]), GRANTED);
    assert_eq!(w.lock(&mut b, row, Update, &bells[0]), HELD);
    w.commit(b);
    assert_eq!(bells.each_ref().map(|b| b.rung()), [1, 1, 1], "both fit together");
    assert_eq!(w.lock(&mut c, row, KeyShare, &bells[1]), GRANTED);
    assert_eq!(w.lock(&mut d, row, Share, &bells[2]), GRANTED);
    w.abort([c, d, late]);
    let mut again = w.begin();
    assert_eq!(w.try_lock(&mut again, row, Update), GRANTED, "the word is free again");
    w.store.abort(again);
}

#[test]
fn of_those_who_wait_for_a_row_nobody_is_overtaken() {
    let w = World::new();
    let row = w.row("a");
    let (mut a, mut b, mut c, mut d) = (w.begin(), w.begin(), w.begin(), w.begin());
    assert_eq!(w.try_lock(&mut a, row, KeyShare), GRANTED);
    assert_eq!(w.lock(&mut b, row, Update, &bell()), WAIT);
    assert_eq!(w.try_lock(&mut c, row, Share), GRANTED, "it goes with all that is held");
    let bell_d = bell();
    assert_eq!(w.lock(&mut d, row, NoKeyUpdate, &bell_d), WAIT);
    w.store.abort(c);
    assert_eq!(bell_d.rung(), 0, "it would go with what is held, and does not overtake");
    w.store.cancel_wait(&mut b);
    assert_eq!(bell_d.rung(), 1);
    w.abort([a, b, d]);
}

/// `last` waits only because `before` stands before it: the line is rearranged.
#[test]
fn a_line_is_rearranged_where_that_ends_a_deadlock() {
    let w = World::new();
    let row = w.row("a");
    let (mut holder, mut before, mut last) = (w.begin(), w.begin(), w.begin());
    let table = |txn: &mut mvcc::Transaction, mode, ring: &Arc<crate::support::Bell>| {
        let ring: Arc<dyn Wakeup> = ring.clone();
        w.store.lock_table(txn, Oid(7), mode, WaitPolicy::Block, &ring)
    };
    assert_eq!(table(&mut holder, TableLockMode::AccessShare, &bell()), GRANTED);
    assert_eq!(w.try_lock(&mut last, row, Update), GRANTED);
    assert_eq!(table(&mut before, TableLockMode::AccessExclusive, &bell()), WAIT);
    let bell_last = bell();
    assert_eq!(w.lock(&mut holder, row, Update, &bell()), WAIT);
    assert_eq!(table(&mut last, TableLockMode::AccessShare, &bell_last), WAIT);
    assert_eq!(bell_last.rung(), 1);
    assert_eq!(table(&mut last, TableLockMode::AccessShare, &bell_last), GRANTED);
    w.abort([last, before, holder]);
    // The other way round: the one who closes the cycle is not the one who overtakes.
    let (mut holder, mut before, mut last) = (w.begin(), w.begin(), w.begin());
    assert_eq!(table(&mut holder, TableLockMode::AccessShare, &bell()), GRANTED);
    assert_eq!(w.try_lock(&mut last, row, Update), GRANTED);
    assert_eq!(table(&mut before, TableLockMode::AccessExclusive, &bell()), WAIT);
    let bell_last = bell();
    assert_eq!(table(&mut last, TableLockMode::AccessShare, &bell_last), WAIT);
    assert_eq!(w.lock(&mut holder, row, Update, &bell()), WAIT);
    assert_eq!(bell_last.rung(), 1);
    w.abort([last, before, holder]);
}

#[test]
fn an_upgrade_goes_ahead_and_can_be_taken_back() {
    let w = World::new();
    let row = w.row("a");
    let (mut a, mut b, mut c) = (w.begin(), w.begin(), w.begin());
    let (bell_a, bell_c) = (bell(), bell());
    assert_eq!(w.try_lock(&mut a, row, KeyShare), GRANTED);
    assert_eq!(w.try_lock(&mut b, row, KeyShare), GRANTED);
    assert_eq!(w.lock(&mut c, row, Update, &bell_c), WAIT);
    let mark = a.mark();
    assert_eq!(w.lock(&mut a, row, Update, &bell_a), WAIT);
    w.store.abort(b);
    assert_eq!((bell_a.rung(), bell_c.rung()), (1, 0));
    assert_eq!(w.lock(&mut a, row, Update, &bell_a), GRANTED);
    let mut d = w.begin();
    assert_eq!(w.try_lock(&mut d, row, KeyShare), LockResult::WouldBlock);
    w.store.cancel_wait(&mut c);
    w.store.undo_to(&mut a, mark);
    assert_eq!(w.try_lock(&mut d, row, KeyShare), GRANTED, "a is back at KeyShare");
    assert_eq!(w.try_lock(&mut d, row, Update), LockResult::WouldBlock);
    w.abort([a, c, d]);
}

#[test]
fn upgrades_that_do_not_conflict_are_no_deadlock() {
    let w = World::new();
    let row = w.row("a");
    let (mut a, mut b, mut c) = (w.begin(), w.begin(), w.begin());
    assert_eq!(w.try_lock(&mut a, row, KeyShare), GRANTED);
    assert_eq!(w.try_lock(&mut b, row, KeyShare), GRANTED);
    assert_eq!(w.try_lock(&mut c, row, Share), GRANTED);
    assert_eq!(w.lock(&mut a, row, Update, &bell()), WAIT);
    let bell_b = bell();
    assert_eq!(w.lock(&mut b, row, NoKeyUpdate, &bell_b), WAIT, "b waits for c only");
    w.store.abort(c);
    assert_eq!(bell_b.rung(), 1);
    w.abort([b, a]);
}

#[test]
fn two_upgrades_are_a_deadlock() {
    let w = World::new();
    let row = w.row("a");
    let (mut a, mut b) = (w.begin(), w.begin());
    assert_eq!(w.try_lock(&mut a, row, Share), GRANTED);
    assert_eq!(w.try_lock(&mut b, row, Share), GRANTED);
    let bell_a = bell();
    assert_eq!(w.lock(&mut a, row, Update, &bell_a), WAIT);
    let LockResult::Deadlock(edges) = w.lock(&mut b, row, Update, &bell()) else { panic!("not found") };
    assert_eq!(edges.iter().map(|e| (e.waiter, e.holder)).collect::<Vec<_>>(), [(b.id(), a.id()), (a.id(), b.id())]);
    w.store.abort(b);
    assert_eq!(bell_a.rung(), 1);
    assert_eq!(w.lock(&mut a, row, Update, &bell_a), GRANTED);
    w.store.abort(a);
}

#[test]
fn a_deadlock_is_found_through_those_before_in_the_line() {
    let w = World::new();
    let (first, second) = (w.row("a"), w.row("b"));
    let (mut holder, mut before, mut last, mut other) = (w.begin(), w.begin(), w.begin(), w.begin());
    assert_eq!(w.try_lock(&mut holder, first, KeyShare), GRANTED);
    assert_eq!(w.try_lock(&mut other, first, Share), GRANTED);
    assert_eq!(w.try_lock(&mut last, second, Update), GRANTED);
    assert_eq!(w.lock(&mut before, first, Update, &bell()), WAIT);
    assert_eq!(w.lock(&mut holder, second, Update, &bell()), WAIT);
    // It would fit beside the first holder, and waits for the one before it, too, which waits for him.
    let LockResult::Deadlock(edges) = w.lock(&mut last, first, NoKeyUpdate, &bell()) else { panic!("not found") };
    let expected = [(last.id(), holder.id()), (holder.id(), last.id())];
    assert_eq!(edges.iter().map(|e| (e.waiter, e.holder)).collect::<Vec<_>>(), expected);
    w.abort([last, before, holder, other]);
}

#[test]
fn a_circle_of_three_over_row_table_and_transaction_is_a_deadlock() {
    let w = World::new();
    let row = w.row("a");
    let (mut a, mut b, mut c) = (w.begin(), w.begin(), w.begin());
    let ring: Arc<dyn Wakeup> = bell();
    let table = |txn: &mut mvcc::Transaction, mode| w.store.lock_table(txn, Oid(7), mode, WaitPolicy::Block, &ring);
    assert_eq!(w.try_lock(&mut a, row, Update), GRANTED);
    assert_eq!(table(&mut b, TableLockMode::AccessShare), GRANTED);
    assert_eq!(table(&mut a, TableLockMode::AccessExclusive), WAIT);
    assert_eq!(w.store.wait_for_txn(&mut b, c.id(), &w.table, row, &ring), WAIT);
    let LockResult::Deadlock(edges) = w.lock(&mut c, row, KeyShare, &bell()) else { panic!("not found") };
    assert_eq!(
        edges.iter().map(|e| (e.waiter, e.target, e.holder)).collect::<Vec<_>>(),
        [
            (c.id(), WaitTarget::Row { table: w.table.oid(), row }, a.id()),
            (a.id(), WaitTarget::Table(Oid(7)), b.id()),
            (b.id(), WaitTarget::Txn(c.id()), c.id()),
        ]
    );
    assert_eq!(w.store.waits().len(), 2);
    w.store.abort(c);
    let gone = mvcc::LockResult::Granted { newly: false };
    assert_eq!(
        b.is_waiting().then(|| w.store.wait_for_txn(&mut b, a.id(), &w.table, row, &ring)),
        Some(LockResult::Deadlock(vec![
            edge(b.id(), WaitTarget::Txn(a.id()), a.id()),
            edge(a.id(), WaitTarget::Table(Oid(7)), b.id()),
        ]))
    );
    let ended = w.begin();
    let id = ended.id();
    w.store.abort(ended);
    assert_eq!(w.store.wait_for_txn(&mut b, id, &w.table, row, &ring), gone);
    w.store.abort(b);
    assert_eq!(table(&mut a, TableLockMode::AccessExclusive), GRANTED);
    assert_eq!(table(&mut a, TableLockMode::Share), HELD);
    w.store.abort(a);
    assert!(w.store.waits().is_empty());
}

#[test]
fn undoing_a_row_wakes_those_who_wait_because_of_it() {
    let w = World::new();
    let other = w.row("a");
    let (mut holder, mut first, mut second) = (w.begin(), w.begin(), w.begin());
    let mark = holder.mark();
    let row = w.insert(&mut holder, 0, "b");
    let (one, two) = (bell(), bell());
    let (wake_one, wake_two): (Arc<dyn Wakeup>, Arc<dyn Wakeup>) = (one.clone(), two.clone());
    assert_eq!(w.store.wait_for_txn(&mut first, holder.id(), &w.table, row, &wake_one), WAIT);
    assert_eq!(w.store.wait_for_txn(&mut second, holder.id(), &w.table, other, &wake_two), WAIT);
    w.store.undo_to(&mut holder, mark);
    assert_eq!((one.rung(), two.rung()), (1, 0));
    // Until it asks again, `first` waits for nobody.
    assert_eq!(w.store.waits().iter().map(|edge| edge.waiter).collect::<Vec<_>>(), [second.id()]);
    assert_eq!(w.store.wait_for_txn(&mut holder, first.id(), &w.table, other, &wake_one), WAIT);
    w.store.cancel_wait(&mut holder);
    w.store.cancel_wait(&mut first);
    w.store.abort(holder);
    assert_eq!((one.rung(), two.rung()), (1, 1));
    w.store.abort(first);
    w.store.abort(second);
    assert!(w.store.waits().is_empty());
}

#[test]
fn nowait_and_skip_locked_do_not_stand_in_line() {
    let w = World::new();
    let row = w.row("a");
    let (mut a, mut b) = (w.begin(), w.begin());
    assert_eq!(w.try_lock(&mut a, row, NoKeyUpdate), GRANTED);
    assert_eq!(w.try_lock(&mut b, row, Share), LockResult::WouldBlock);
    assert_eq!(w.try_lock(&mut b, row, KeyShare), GRANTED);
    assert_eq!(w.try_lock(&mut b, row, Update), LockResult::WouldBlock);
    assert!(!b.is_waiting());
    w.abort([a, b]);
}

#[test]
fn who_waits_for_an_undone_row_finds_it_gone() {
    let w = World::new();
    let (mut a, mut b) = (w.begin(), w.begin());
    let row = w.insert(&mut a, 0, "a");
    let bell_b = bell();
    assert_eq!(w.lock(&mut b, row, KeyShare, &bell_b), WAIT);
    w.store.abort(a);
    assert_eq!(bell_b.rung(), 1);
    assert_eq!(w.lock(&mut b, row, KeyShare, &bell_b), LockResult::Gone);
    assert_eq!(w.lock(&mut b, row, KeyShare, &bell_b), LockResult::Gone);
    w.store.abort(b);
    assert_eq!(w.table.row_count(), 0);
}

#[test]
fn a_cancelled_wait_gives_back_what_was_handed_over() {
    let w = World::new();
    let row = w.row("a");
    let (mut a, mut b, mut c) = (w.begin(), w.begin(), w.begin());
    let bell_c = bell();
    assert_eq!(w.try_lock(&mut a, row, Update), GRANTED);
    assert_eq!(w.lock(&mut b, row, Update, &bell()), WAIT);
    assert_eq!(w.lock(&mut c, row, Update, &bell_c), WAIT);
    w.store.abort(a);
    w.store.cancel_wait(&mut b);
    assert_eq!(bell_c.rung(), 1);
    assert_eq!(w.lock(&mut c, row, Update, &bell_c), GRANTED);
    w.abort([b, c]);
}

fn edge(waiter: base::TxnId, target: WaitTarget, holder: base::TxnId) -> mvcc::WaitEdge {
    mvcc::WaitEdge { waiter, target, holder, waiter_session: 0, holder_session: 0 }
}

/// Advisory locks are held by another transaction of the session than rows: a deadlock over both is found.
#[test]
fn the_locks_of_a_session_are_one_in_the_graph() {
    let w = World::new();
    let begin = |session| w.store.begin_txn_for(session).unwrap();
    let key = |number| mvcc::AdvisoryKey { database: Oid(5), number, is_pair: false };
    let wake: std::sync::Arc<dyn mvcc::Wakeup> = std::sync::Arc::new(Nobody);
    let lock = |txn: &mut mvcc::Transaction, number| {
        w.store.lock_advisory(txn, key(number), mvcc::AdvisoryMode::Exclusive, mvcc::WaitPolicy::Block, &wake)
    };
    let table = |txn: &mut mvcc::Transaction| {
        let mode = mvcc::TableLockMode::AccessExclusive;
        w.store.lock_table(txn, Oid(7), mode, mvcc::WaitPolicy::Block, &wake)
    };
    let (mut a, mut a_names, mut b, mut b_names) = (begin(1), begin(1), begin(2), begin(2));
    assert_eq!(lock(&mut a_names, 1), mvcc::LockResult::Granted { newly: true });
    assert_eq!(table(&mut b), mvcc::LockResult::Granted { newly: true });
    assert_eq!(lock(&mut b_names, 1), mvcc::LockResult::Wait);
    let mvcc::LockResult::Deadlock(cycle) = table(&mut a) else { panic!("not found") };
    assert_eq!(cycle.iter().map(|e| (e.waiter_session, e.holder_session)).collect::<Vec<_>>(), [(1, 2), (2, 1)]);
    assert_eq!(w.store.locks().iter().filter(|entry| !entry.is_granted).count(), 1);
    w.store.reduce_advisory(&mut a_names, key(1), &[]);
    assert_eq!(lock(&mut b_names, 1), mvcc::LockResult::Granted { newly: true });
    w.store.reduce_advisory(&mut b_names, key(1), &[]);
    for txn in [a, a_names, b, b_names] {
        w.store.abort(txn);
    }
    assert_eq!(w.store.locks(), []);
}

struct Nobody;

impl mvcc::Wakeup for Nobody {
    fn wake(&self) {}
}
