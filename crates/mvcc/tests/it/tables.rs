//! Table locks: weak ones in the slot, strong ones in the queue, and all pairs exclude each other as PostgreSQL says.

use std::sync::Arc;

use base::Oid;
use mvcc::{LockResult, TableLockMode, Transaction, WaitPolicy, Wakeup};

use crate::support::{GRANTED, HELD, World, bell};

const MODES: [TableLockMode; 8] = [
    TableLockMode::AccessShare,
    TableLockMode::RowShare,
    TableLockMode::RowExclusive,
    TableLockMode::ShareUpdateExclusive,
    TableLockMode::Share,
    TableLockMode::ShareRowExclusive,
    TableLockMode::Exclusive,
    TableLockMode::AccessExclusive,
];

/// PostgreSQL's table of conflicts, by mode and mode.
const CONFLICTS: [&str; 8] =
    [".......x", "......xx", "....xxxx", "...xxxxx", "..xx.xxx", "..xxxxxx", ".xxxxxxx", "xxxxxxxx"];

fn conflict(a: usize, b: usize) -> bool {
    CONFLICTS[a].as_bytes()[b] == b'x'
}

fn ask(w: &World, txn: &mut Transaction, table: u32, mode: TableLockMode, policy: WaitPolicy) -> LockResult {
    let wake: Arc<dyn Wakeup> = bell();
    w.store.lock_table(txn, Oid(table), mode, policy, &wake)
}

#[test]
fn modes_exclude_each_other_as_in_postgresql() {
    let w = World::new();
    for (a, held) in MODES.into_iter().enumerate() {
        for (b, wanted) in MODES.into_iter().enumerate() {
            let (mut first, mut second) = (w.begin(), w.begin());
            assert_eq!(ask(&w, &mut first, 7, held, WaitPolicy::Never), GRANTED);
            let expected = if conflict(a, b) { LockResult::WouldBlock } else { GRANTED };
            assert_eq!(ask(&w, &mut second, 7, wanted, WaitPolicy::Never), expected, "{held:?} {wanted:?}");
            w.abort([first]);
            let expected = if conflict(a, b) { GRANTED } else { HELD };
            assert_eq!(ask(&w, &mut second, 7, wanted, WaitPolicy::Never), expected, "{held:?} {wanted:?}");
            w.abort([second]);
        }
    }
}

/// Transactions take, keep and give back modes of a few tables at random; a plain list says who must be let in.
#[test]
fn random_requests_agree_with_a_list() {
    let w = World::new();
    let mut seed = 0x9e37_79b9_7f4a_7c15u64;
    let mut below = move |n: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        (seed % n as u64) as usize
    };
    type Held = Vec<(u32, usize)>;
    let mut open: Vec<(Transaction, Held, Option<(mvcc::TxnMark, usize)>)> = Vec::new();
    let (mut granted, mut refused) = (0, 0);
    for _ in 0..60_000 {
        if open.len() < 6 {
            open.push((w.begin(), Vec::new(), None));
        }
        let at = below(open.len());
        match below(10) {
            0 => {
                let (txn, _, _) = open.swap_remove(at);
                w.abort([txn]);
            }
            1 => open[at].2 = Some((open[at].0.mark(), open[at].1.len())),
            2 => {
                let (txn, held, mark) = &mut open[at];
                if let Some((mark, len)) = *mark {
                    w.store.undo_to(txn, mark);
                    held.truncate(len);
                }
            }
            _ => {
                // More tables than words, and few enough to meet.
                let (table, mode) = (below(12) as u32, if below(8) == 0 { below(8) } else { below(3) });
                let blocked = open.iter().enumerate().any(|(other, (_, held, _))| {
                    other != at && held.iter().any(|(t, m)| *t == table && conflict(*m, mode))
                });
                let answer = ask(&w, &mut open[at].0, table, MODES[mode], WaitPolicy::Never);
                assert_eq!(answer == LockResult::WouldBlock, blocked, "{table} {mode}: {answer:?}");
                if !blocked {
                    open[at].1.push((table, mode));
                }
                *(if blocked { &mut refused } else { &mut granted }) += 1;
            }
        }
    }
    assert!(granted > 10_000 && refused > 1_000, "{granted} {refused}");
    open.into_iter().for_each(|(txn, _, _)| w.abort([txn]));
    let mut last = w.begin();
    for table in 0..12 {
        assert_eq!(ask(&w, &mut last, table, TableLockMode::AccessExclusive, WaitPolicy::Never), GRANTED);
    }
    w.abort([last]);
}

#[test]
fn a_strong_lock_waits_for_weak_ones_taken_before_and_holds_up_later_ones() {
    let w = World::new();
    let (mut reader, mut definer, mut late) = (w.begin(), w.begin(), w.begin());
    assert_eq!(ask(&w, &mut reader, 7, TableLockMode::AccessShare, WaitPolicy::Block), GRANTED);
    let rung = bell();
    let wake: Arc<dyn Wakeup> = rung.clone();
    let strong = TableLockMode::AccessExclusive;
    assert_eq!(w.store.lock_table(&mut definer, Oid(7), strong, WaitPolicy::Block, &wake), LockResult::Wait);
    assert_eq!(ask(&w, &mut late, 7, TableLockMode::AccessShare, WaitPolicy::Never), LockResult::WouldBlock);
    // Who is in already is not held up.
    assert_eq!(ask(&w, &mut reader, 7, TableLockMode::RowExclusive, WaitPolicy::Never), GRANTED);
    w.abort([reader]);
    assert_eq!(rung.rung(), 1);
    assert_eq!(w.store.lock_table(&mut definer, Oid(7), strong, WaitPolicy::Block, &wake), GRANTED);
    w.abort([definer]);
    assert_eq!(ask(&w, &mut late, 7, TableLockMode::AccessShare, WaitPolicy::Never), GRANTED);
    w.abort([late]);
}

/// Threads hold a table weakly or strongly; two counters notice if a strong holder is ever not alone.
#[test]
fn threads_never_hold_conflicting_modes() {
    use std::sync::atomic::{AtomicU64, Ordering};
    let w = World::new();
    let inside = [const { AtomicU64::new(0) }; 2];
    const STRONG: u64 = 1 << 32;
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            let (w, inside) = (&w, &inside);
            scope.spawn(move || {
                for n in 0..20_000u64 {
                    let mut txn = w.begin();
                    let table = (n + thread) as usize % 2;
                    let is_strong = (n * 7 + thread).is_multiple_of(29);
                    let mode = if is_strong { TableLockMode::Share } else { TableLockMode::RowExclusive };
                    loop {
                        match ask(w, &mut txn, table as u32 + 1, mode, WaitPolicy::Block) {
                            LockResult::Wait => std::thread::yield_now(),
                            answer => break assert_eq!(answer, GRANTED),
                        }
                    }
                    let more = if is_strong { STRONG } else { 1 };
                    let before = inside[table].fetch_add(more, Ordering::SeqCst);
                    let others = if is_strong { before % STRONG } else { before / STRONG };
                    assert_eq!(others, 0, "{mode:?} beside others");
                    inside[table].fetch_sub(more, Ordering::SeqCst);
                    w.abort([txn]);
                }
            });
        }
    });
}
