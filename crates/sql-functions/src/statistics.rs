//! What is known of the values in tables: the planner's ground for guessing how many rows a condition leaves.
//!
//! Responsible for: keeping what was found.
//! Not responsible for: finding it (`sql_session::analyze`), what a plan makes of it (`sql_plan::selectivity`).
//! Invariants: statistics are hints; a plan made from stale ones is slow at worst. They are not part of the log: a start reads those of
//! the last file that was written (docs/formats/statistics.md).
//!
//! Start at [`Statistics`].

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use base::Oid;
use engine_api::ColumnDesc;
use parking_lot::RwLock;
use rustc_hash::FxHashMap;
use types::Datum;

/// What is known of one column.
#[derive(Clone, Debug, Default)]
pub struct ColumnStatistics {
    /// Type, type modifier and collation of the column when it was looked at.
    pub ty: (Oid, i32, Option<u32>),
    /// Share of NULLs.
    pub null_fraction: f64,
    /// Bytes of a value on average.
    pub width: f64,
    /// Distinct values if positive; if negative, their number divided by that of the rows.
    pub distinct: f64,
    /// The most common values with their shares, the most common first.
    pub common: Vec<(Datum, f64)>,
    /// The other values cut into parts of equal size: the bounds of the parts.
    pub histogram: Vec<Datum>,
    /// How far the order of rows is that of the values, from -1 to 1.
    pub correlation: Option<f64>,
}

impl ColumnStatistics {
    /// Distinct values in a table of so many rows.
    pub fn distinct_of(&self, rows: f64) -> f64 {
        if self.distinct < 0.0 { (-self.distinct * rows).max(1.0) } else { self.distinct.max(1.0) }
    }
}

/// What is known of one table.
#[derive(Clone, Debug, Default)]
pub struct TableStatistics {
    /// Rows when it was looked at.
    pub rows: f64,
    /// By attribute number - 1; `None` for a column that was not looked at.
    pub columns: Vec<Option<ColumnStatistics>>,
    /// [`engine_api::Engine::changes`] when it was looked at.
    pub changes: u64,
    /// When it was put here; rises over all tables.
    pub version: u64,
}

impl TableStatistics {
    /// What is known of a column as it is now: nothing, if its values were of another type when it was looked at.
    pub fn column(&self, column: &ColumnDesc) -> Option<&ColumnStatistics> {
        let known = self.columns.get(usize::try_from(column.number).ok()?.checked_sub(1)?)?.as_ref()?;
        (known.ty == type_of(column) && !column.dropped).then_some(known)
    }
}

/// What the values of a column depend on.
pub fn type_of(column: &ColumnDesc) -> (Oid, i32, Option<u32>) {
    (column.type_oid, column.typmod, column.collation)
}

/// The statistics of all tables of a server.
#[derive(Debug, Default)]
pub struct Statistics {
    tables: RwLock<FxHashMap<Oid, Arc<TableStatistics>>>,
    /// Version of the newest. Release when one was put, pairing with Acquire of those who ask for it after.
    version: AtomicU64,
}

impl Statistics {
    /// Those of a table, if it was looked at.
    pub fn table(&self, table: Oid) -> Option<Arc<TableStatistics>> {
        self.tables.read().get(&table).cloned()
    }

    /// Those of all tables, by OID.
    pub fn all(&self) -> Vec<(Oid, Arc<TableStatistics>)> {
        let mut all: Vec<_> = self.tables.read().iter().map(|(table, known)| (*table, Arc::clone(known))).collect();
        all.sort_unstable_by_key(|(table, _)| *table);
        all
    }

    /// Version of the newest statistics.
    pub fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// Whether statistics of one of these tables are newer than `version`.
    pub fn is_newer(&self, tables: impl Iterator<Item = Oid>, version: u64) -> bool {
        let known = self.tables.read();
        tables.into_iter().any(|table| known.get(&table).is_some_and(|s| s.version > version))
    }

    /// Replaces those of a table. Columns that were not looked at keep what was known of them. Answers the version of the new ones.
    pub fn put(&self, table: Oid, mut statistics: TableStatistics) -> u64 {
        let mut tables = self.tables.write();
        if let Some(before) = tables.get(&table) {
            for (new, old) in statistics.columns.iter_mut().zip(&before.columns) {
                if new.is_none() {
                    new.clone_from(old);
                }
            }
        }
        let version = self.version.load(Ordering::Relaxed) + 1;
        statistics.version = version;
        tables.insert(table, Arc::new(statistics));
        self.version.store(version, Ordering::Release);
        version
    }

    /// Puts back what was known of a table before somebody put a version there, if that is what is known now.
    fn restore(&self, replaced: Replaced) {
        let mut tables = self.tables.write();
        if tables.get(&replaced.table).is_none_or(|now| now.version != replaced.version) {
            return;
        }
        tables.remove(&replaced.table);
        if let Some(before) = replaced.before {
            let version = self.version.load(Ordering::Relaxed) + 1;
            tables.insert(replaced.table, Arc::new(TableStatistics { version, ..(*before).clone() }));
            self.version.store(version, Ordering::Release);
        }
    }

    /// Forgets a column (attribute number) whose values are others now.
    pub fn forget(&self, table: Oid, column: i16) {
        let mut tables = self.tables.write();
        let Some(known) = tables.get_mut(&table) else { return };
        let place = usize::try_from(column - 1).ok().and_then(|at| Arc::make_mut(known).columns.get_mut(at));
        if let Some(place) = place {
            *place = None;
        }
    }

    /// Forgets tables that are no more.
    pub fn retain(&self, exists: impl Fn(Oid) -> bool) {
        if self.tables.read().keys().any(|table| !exists(*table)) {
            self.tables.write().retain(|table, _| exists(*table));
        }
    }
}

/// What ANALYZE in a transaction has replaced: a rollback puts it back.
#[derive(Debug)]
pub struct Replaced {
    /// The table.
    pub table: Oid,
    /// What was known before.
    pub before: Option<Arc<TableStatistics>>,
    /// The version that was put in its place.
    pub version: u64,
}

/// Takes back what was put, the last first.
pub fn take_back(statistics: &Statistics, replaced: impl DoubleEndedIterator<Item = Replaced>) {
    replaced.rev().for_each(|each| statistics.restore(each));
}
