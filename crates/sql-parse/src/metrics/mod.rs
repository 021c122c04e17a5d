//! Counters of statements, kept by each thread and summed when they are read.
//!
//! Requirement: counting costs a few nanoseconds and no core waits for another's cache line. Rule: each thread writes to
//! counters of its own, with plain loads and stores; a reader adds up what all threads have, ended ones included. A sum is
//! not of one instant: it can hold a statement's time and not yet its rows.

mod histogram;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use base::SqlState;
use parking_lot::Mutex;

pub use histogram::{Histogram, Times};

/// Statements as they are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum StatementKind {
    /// SELECT, VALUES, TABLE
    Select,
    /// INSERT
    Insert,
    /// UPDATE
    Update,
    /// DELETE
    Delete,
    /// COPY
    Copy,
    /// COMMIT and END, of a block
    Commit,
    /// ROLLBACK of a block
    Rollback,
    /// BEGIN, SAVEPOINT and the like
    Transaction,
    /// CREATE, ALTER, DROP, GRANT and the like
    Definition,
    /// Settings, cursors, and all others
    Utility,
}

impl StatementKind {
    /// All of them, in order.
    pub const ALL: [StatementKind; 10] = {
        use StatementKind::*;
        [Select, Insert, Update, Delete, Copy, Commit, Rollback, Transaction, Definition, Utility]
    };

    /// Its name in figures.
    pub fn name(self) -> &'static str {
        use StatementKind::*;
        match self {
            Select => "select",
            Insert => "insert",
            Update => "update",
            Delete => "delete",
            Copy => "copy",
            Commit => "commit",
            Rollback => "rollback",
            Transaction => "transaction",
            Definition => "definition",
            Utility => "utility",
        }
    }
}

/// The counters of one kind of statement.
#[derive(Default)]
struct StatementCounters {
    times: Histogram,
    rows: AtomicU64,
}

/// The counters of one thread; written by it alone.
#[derive(Default)]
#[repr(align(128))]
struct Own {
    kinds: [StatementCounters; StatementKind::ALL.len()],
    /// Errors are rare enough for a lock that nobody else holds.
    errors: Mutex<BTreeMap<SqlState, u64>>,
}

/// The counters of all threads there have been. A server has as many as it has cores.
static THREADS: Mutex<Vec<Arc<Own>>> = Mutex::new(Vec::new());

thread_local! {
    static OWN: Arc<Own> = {
        let own = Arc::new(Own::default());
        THREADS.lock().push(Arc::clone(&own));
        own
    };
}

/// Counts a statement that succeeded.
#[inline]
pub fn count_statement(kind: StatementKind, micros: i64, rows: u64) {
    OWN.with(|own| {
        let kind = &own.kinds[kind as usize];
        // The clock may have been set back meanwhile.
        kind.times.record(micros.max(0).unsigned_abs());
        histogram::add(&kind.rows, rows);
    });
}

/// Counts an error that a client is told.
#[cold]
pub fn count_error(state: SqlState) {
    OWN.with(|own| *own.errors.lock().entry(state).or_default() += 1);
}

/// The sum over all threads of one kind of statement.
#[derive(Clone, Debug, Default)]
pub struct KindTotals {
    /// Their times; their number is its count.
    pub times: Times,
    /// Rows returned or changed.
    pub rows: u64,
}

/// The sum over all threads.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    kinds: [KindTotals; StatementKind::ALL.len()],
    /// Errors by SQLSTATE.
    pub errors: BTreeMap<SqlState, u64>,
}

impl Totals {
    /// Those of a kind.
    pub fn of(&self, kind: StatementKind) -> &KindTotals {
        &self.kinds[kind as usize]
    }
}

/// What has been counted so far.
pub fn totals() -> Totals {
    let mut totals = Totals::default();
    for own in THREADS.lock().iter() {
        for (total, kind) in totals.kinds.iter_mut().zip(&own.kinds) {
            kind.times.add_to(&mut total.times);
            total.rows += kind.rows.load(Ordering::Relaxed);
        }
        for (&state, count) in own.errors.lock().iter() {
            *totals.errors.entry(state).or_default() += count;
        }
    }
    totals
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_add_up() {
        let before = totals().of(StatementKind::Copy).clone();
        let count = || (0..1000).for_each(|_| count_statement(StatementKind::Copy, 3, 2));
        std::thread::scope(|s| {
            s.spawn(count);
            s.spawn(count);
        });
        count_statement(StatementKind::Copy, -5, 0);
        let after = totals().of(StatementKind::Copy).clone();
        assert_eq!(after.times.count() - before.times.count(), 2001);
        assert_eq!(after.rows - before.rows, 4000);
    }
}
