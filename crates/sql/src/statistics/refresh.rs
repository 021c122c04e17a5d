//! Keeping statistics fresh, beside the statements: one table at a time, a few rows at a time.

use std::sync::Arc;

use base::Oid;
use engine_api::{Catalog, TableKind, Txn, TxnOptions};
use rustc_hash::FxHashMap;

use super::Sampler;
use crate::session::Shared;

/// Changes after which a table is looked at again: these many, …
const CHANGES_MIN: f64 = 50.0;
/// … and this share of its rows.
const CHANGES_SHARE: f64 = 0.1;
/// After a look no known table is looked at again for so many times as long as the look took: a hundredth of one core goes to
/// all tables together at most, however many of them change.
const REST: u64 = 100;
/// A table rests at least so long, in nanoseconds.
const REST_MIN: u64 = 2_000_000_000;

/// Looks at tables that have changed.
pub struct Refresher {
    shared: Arc<Shared>,
    running: Option<Running>,
    /// When tables were looked at last, on the host's clock.
    looked: FxHashMap<Oid, u64>,
    /// When a table that is known already may be looked at again.
    again: u64,
}

/// A look that goes on.
struct Running {
    table: Oid,
    txn: Box<dyn Txn>,
    sampler: Sampler,
    /// Nanoseconds spent so far.
    spent: u64,
}

impl Refresher {
    /// For the tables of a server.
    pub fn new(shared: Arc<Shared>) -> Refresher {
        Refresher { shared, running: None, looked: FxHashMap::default(), again: 0 }
    }

    /// Does a little work, less than a millisecond; `false` if there is nothing to do for now.
    pub fn step(&mut self) -> bool {
        let Some(mut running) = self.running.take() else { return self.begin() };
        let began = self.now();
        match running.sampler.step(&mut *running.txn) {
            Ok(more) => {
                running.spent += self.now().saturating_sub(began);
                if more { self.running = Some(running) } else { self.end(running) }
            }
            // A table that cannot be read now is looked at later.
            Err(_) => {
                running.txn.rollback();
                self.looked.insert(running.table, self.now());
            }
        }
        true
    }

    fn now(&self) -> u64 {
        self.shared.host.monotonic_nanos()
    }

    fn end(&mut self, running: Running) {
        let began = self.now();
        let Running { table, mut txn, sampler, spent } = running;
        txn.end_command();
        txn.rollback();
        let rows = self.shared.engine.row_count(table);
        self.shared.statistics().put(table, sampler.finish(rows));
        let now = self.now();
        self.looked.insert(table, now);
        self.again = now + REST * (spent + now.saturating_sub(began));
    }

    /// Begins with a table that has changed enough; `false` if there is none.
    fn begin(&mut self) -> bool {
        let catalog = self.shared.engine.catalog();
        self.shared.statistics().retain(|table| catalog.table(table).is_some());
        let now = self.now();
        self.looked.retain(|table, _| catalog.table(*table).is_some());
        let Some(table) = self.changed(&catalog, now) else { return false };
        match self.open(table, &catalog) {
            Some(running) => self.running = Some(running),
            None => _ = self.looked.insert(table, now),
        }
        true
    }

    /// Of the tables that have changed enough, the one that was looked at the longest ago: none is forgotten over others.
    fn changed(&self, catalog: &Catalog, now: u64) -> Option<Oid> {
        let engine = &self.shared.engine;
        let is_stale = |table: Oid| {
            let changes = engine.changes(table);
            let known = self.shared.statistics().table(table);
            let waits = known.is_some() && now < self.again;
            let (rows, before) = known.map_or((0.0, 0), |s| (s.rows, s.changes));
            // Fewer than before: the table was emptied by TRUNCATE.
            let since = if changes >= before { changes - before } else { u64::MAX };
            !waits && since as f64 > CHANGES_MIN + CHANGES_SHARE * rows
        };
        let looked = |table: Oid| self.looked.get(&table).copied();
        let tables = catalog.objects().filter_map(|object| catalog.table(object.oid()));
        let tables = tables.filter(|t| t.kind == TableKind::Table).map(|t| t.oid);
        let rested = tables.filter(|t| looked(*t).is_none_or(|at| at + REST_MIN <= now));
        rested.filter(|t| is_stale(*t)).min_by_key(|t| looked(*t))
    }

    fn open(&self, table: Oid, catalog: &Catalog) -> Option<Running> {
        let desc = catalog.table(table)?;
        let mut txn = self.shared.engine.begin(TxnOptions { read_only: true, ..TxnOptions::default() });
        txn.begin_command();
        match Sampler::open(&mut *txn, desc, self.shared.engine.changes(table), None) {
            Ok(sampler) => Some(Running { table, txn, sampler, spent: 0 }),
            Err(_) => {
                txn.rollback();
                None
            }
        }
    }
}
