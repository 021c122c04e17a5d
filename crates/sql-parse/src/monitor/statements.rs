//! Figures of statements by their text: calls, times, rows (`pg_stat_statements`).
//!
//! Requirement: all cores run the same few statements, and counting must not make them wait for each other. Rule: each
//! statement has a cell for every thread that runs some, and a thread writes to its own only, with plain loads and stores;
//! beyond so many threads they share the last cell, by locked instructions. Cells say of which reset they are: one that is
//! older counts as empty, and its thread empties it at its next call.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::thread;
use base::Oid;
use parking_lot::RwLock;
use rustc_hash::FxHashMap;

/// Statements that are kept (`pg_stat_statements.max`); when full, those with the fewest calls go.
pub const STATEMENTS_MAX: usize = 5000;

/// Bytes of a statement's text that are kept.
const TEXT_BYTES_MAX: usize = 16 << 10;

/// What is kept of a statement's text.
pub fn counted_text(text: &str) -> &str {
    &text[..text.floor_char_boundary(TEXT_BYTES_MAX)]
}

static RESETS: AtomicU64 = AtomicU64::new(1);

#[derive(Default)]
#[repr(align(64))]
struct Cell {
    reset: AtomicU64,
    calls: AtomicU64,
    micros: AtomicU64,
    micros_min: AtomicU64,
    micros_max: AtomicU64,
    rows: AtomicU64,
}

/// The figures of one statement.
pub struct Figures {
    /// Who runs it, where, and its text.
    pub key: Key,
    cells: Box<[Cell]>,
}

/// What a statement is counted under.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    /// Database.
    pub database: Oid,
    /// Role.
    pub role: Oid,
    /// Text, with `$n` for literals where statements share their plan.
    pub text: Arc<str>,
}

/// Sums over all threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// Runs.
    pub calls: u64,
    /// Time of all runs.
    pub micros: u64,
    /// Time of the shortest run.
    pub micros_min: u64,
    /// Time of the longest run.
    pub micros_max: u64,
    /// Rows returned or changed.
    pub rows: u64,
}

impl Figures {
    fn new(key: Key) -> Figures {
        Figures { key, cells: (0..thread::stripes()).map(|_| Cell::default()).collect() }
    }

    /// Counts a run.
    #[inline]
    pub fn count(&self, micros: i64, rows: u64) {
        let micros = micros.max(0).unsigned_abs();
        let thread = thread::number();
        let reset = RESETS.load(Ordering::Relaxed);
        match self.cells.get(thread).filter(|_| thread + 1 < self.cells.len()) {
            Some(own) => own.count_alone(reset, micros, rows),
            None => self.cells[self.cells.len() - 1].count_shared(reset, micros, rows),
        }
    }

    /// What is counted since the last reset.
    pub fn sums(&self) -> Sums {
        let reset = RESETS.load(Ordering::Relaxed);
        let mut sums = Sums { micros_min: u64::MAX, ..Sums::default() };
        for cell in self.cells.iter().filter(|cell| cell.reset.load(Ordering::Relaxed) == reset) {
            sums.calls += cell.calls.load(Ordering::Relaxed);
            sums.micros += cell.micros.load(Ordering::Relaxed);
            sums.rows += cell.rows.load(Ordering::Relaxed);
            sums.micros_min = sums.micros_min.min(cell.micros_min.load(Ordering::Relaxed));
            sums.micros_max = sums.micros_max.max(cell.micros_max.load(Ordering::Relaxed));
        }
        if sums.calls == 0 { Sums::default() } else { sums }
    }

    /// A number that stands for the statement.
    pub fn id(&self) -> i64 {
        use std::hash::{Hash, Hasher};
        let mut hasher = rustc_hash::FxHasher::default();
        self.key.text.hash(&mut hasher);
        hasher.finish() as i64
    }
}

impl Cell {
    fn begin(&self, reset: u64) {
        if self.reset.load(Ordering::Relaxed) != reset {
            for counter in [&self.calls, &self.micros, &self.micros_max, &self.rows] {
                counter.store(0, Ordering::Relaxed);
            }
            self.micros_min.store(u64::MAX, Ordering::Relaxed);
            self.reset.store(reset, Ordering::Relaxed);
        }
    }

    fn count_alone(&self, reset: u64, micros: u64, rows: u64) {
        self.begin(reset);
        for (counter, n) in [(&self.calls, 1), (&self.micros, micros), (&self.rows, rows)] {
            counter.store(counter.load(Ordering::Relaxed) + n, Ordering::Relaxed);
        }
        if micros < self.micros_min.load(Ordering::Relaxed) {
            self.micros_min.store(micros, Ordering::Relaxed);
        }
        if micros > self.micros_max.load(Ordering::Relaxed) {
            self.micros_max.store(micros, Ordering::Relaxed);
        }
    }

    fn count_shared(&self, reset: u64, micros: u64, rows: u64) {
        self.begin(reset);
        for (counter, n) in [(&self.calls, 1), (&self.micros, micros), (&self.rows, rows)] {
            counter.fetch_add(n, Ordering::Relaxed);
        }
        self.micros_min.fetch_min(micros, Ordering::Relaxed);
        self.micros_max.fetch_max(micros, Ordering::Relaxed);
    }
}

/// The figures of all statements.
#[derive(Default)]
pub struct Statements {
    all: RwLock<FxHashMap<Key, Arc<Figures>>>,
    dropped: AtomicU64,
}

impl Statements {
    /// The figures of a statement, to be counted in from now on. Looked up when a statement is bound.
    pub fn of(&self, database: Oid, role: Oid, text: &Arc<str>) -> Arc<Figures> {
        let mut key = Key { database, role, text: Arc::clone(text) };
        if text.len() > TEXT_BYTES_MAX {
            key.text = counted_text(text).into();
        }
        if let Some(found) = self.all.read().get(&key) {
            return Arc::clone(found);
        }
        let mut all = self.all.write();
        if all.len() >= STATEMENTS_MAX {
            self.forget_some(&mut all);
        }
        Arc::clone(all.entry(key.clone()).or_insert_with(|| Arc::new(Figures::new(key))))
    }

    /// Drops the tenth part that was called least.
    fn forget_some(&self, all: &mut FxHashMap<Key, Arc<Figures>>) {
        let mut calls: Vec<u64> = all.values().map(|figures| figures.sums().calls).collect();
        let at = calls.len() / 10;
        let (_, &mut limit, _) = calls.select_nth_unstable(at);
        let mut room = at + 1;
        all.retain(|_, figures| {
            let goes = room > 0 && figures.sums().calls <= limit;
            room -= usize::from(goes);
            !goes
        });
        self.dropped.fetch_add(1, Ordering::Relaxed);
    }

    /// All that were called since the last reset.
    pub fn all(&self) -> Vec<(Arc<Figures>, Sums)> {
        let all: Vec<Arc<Figures>> = self.all.read().values().cloned().collect();
        let counted = all.into_iter().map(|figures| (Arc::clone(&figures), figures.sums()));
        counted.filter(|(_, sums)| sums.calls > 0).collect()
    }

    /// How often statements had to go.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Counts from zero again.
    pub fn reset(&self) {
        RESETS.fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_add_up_over_threads_and_resets_forget_them() {
        let statements = Statements::default();
        let text: Arc<str> = "SELECT $1".into();
        let figures = statements.of(Oid(1), Oid(2), &text);
        std::thread::scope(|s| {
            for n in 1..=100 {
                let figures = &figures;
                s.spawn(move || figures.count(n, 2));
            }
        });
        let sums = statements.all()[0].1;
        let expected = Sums { calls: 100, micros: 5050, micros_min: 1, micros_max: 100, rows: 200 };
        assert_eq!(sums, expected);
        statements.reset();
        assert!(statements.all().is_empty());
        statements.of(Oid(1), Oid(2), &text).count(7, 0);
        assert_eq!(figures.sums(), Sums { calls: 1, micros: 7, micros_min: 7, micros_max: 7, rows: 0 });
        for n in 0..STATEMENTS_MAX {
            statements.of(Oid(1), Oid(2), &format!("SELECT {n}").into());
        }
        assert!(statements.dropped() == 1 && statements.all.read().len() <= STATEMENTS_MAX);
        assert_eq!(statements.all().len(), 1);
    }
}
