//! Keeping statistics fresh, beside the statements: one table at a time, a few rows at a time.

use std::sync::Arc;

use base::Oid;
use engine_api::{Catalog, TableKind, Txn, TxnOptions};
use rustc_hash::FxHashMap;

use super::Sampler;
use crate::Shared;

/// Changes after which a table is looked at again: these many, …
const CHANGES_MIN: f64 = 50.0;
/// … and this share of its rows.
const CHANGES_SHARE: f64 = 0.1;
/// A table is left alone after a look for so many times as long as the look took: a thousandth of one core for each table that changes
/// all the time, …
const IDLE: u64 = 1000;
/// … and at least so long, in nanoseconds, …
const IDLE_MIN: u64 = 2_000_000_000;
/// … and at most so long, which is how often PostgreSQL looks.
const IDLE_MAX: u64 = 60_000_000_000;

/// Looks at tables that have changed.
pub struct Refresher {
    shared: Arc<Shared>,
    running: Option<Running>,
    /// When a table may be looked at again, on the host's clock.
    idle_until: FxHashMap<Oid, u64>,
}

/// A look that goes on.
struct Running {
    table: Oid,
    /// Until enough rows have been seen.
    txn: Option<Box<dyn Txn>>,
    sampler: Sampler,
    /// Nanoseconds spent so far.
    spent: u64,
}

impl Running {
    fn close(&mut self) {
        if let Some(mut txn) = self.txn.take() {
            txn.rollback();
        }
    }
}

impl Refresher {
    /// For the tables of a server.
    pub fn new(shared: Arc<Shared>) -> Refresher {
        Refresher { shared, running: None, idle_until: FxHashMap::default() }
    }

    /// Does a little work, some rows or one column; `false` if there is nothing to do for now.
    pub fn step(&mut self) -> bool {
        let _entered = self.shared.types().entered();
        let Some(mut running) = self.running.take() else { return self.begin() };
        let began = self.now();
        let more = match &mut running.txn {
            Some(txn) => match running.sampler.step(&mut **txn) {
                Ok(true) => true,
                Ok(false) => {
                    txn.end_command();
                    running.close();
                    true
                }
                // A table that cannot be read now is looked at later.
                Err(_) => {
                    running.close();
                    self.idle_until.insert(running.table, began + IDLE_MIN);
                    return true;
                }
            },
            None => running.sampler.evaluate(self.shared.engine.row_count(running.table)),
        };
        running.spent += self.now().saturating_sub(began);
        if more {
            self.running = Some(running)
        } else {
            self.end(running)
        }
        true
    }

    fn now(&self) -> u64 {
        self.shared.host.monotonic_nanos()
    }

    fn end(&mut self, running: Running) {
        let Running { table, sampler, spent, .. } = running;
        let rows = self.shared.engine.row_count(table);
        self.shared.statistics().put(table, sampler.finish(rows));
        self.idle_until.insert(table, self.now() + (spent * IDLE).clamp(IDLE_MIN, IDLE_MAX));
    }

    /// Begins with the first table that has changed enough; `false` if there is none.
    fn begin(&mut self) -> bool {
        let catalog = self.shared.engine.catalog();
        self.shared.statistics().retain(|table| catalog.table(table).is_some());
        let now = self.now();
        self.idle_until.retain(|_, until| *until > now);
        let Some(table) = self.changed(&catalog) else { return false };
        match self.open(table, &catalog) {
            Some(running) => self.running = Some(running),
            None => _ = self.idle_until.insert(table, now + IDLE_MIN),
        }
        true
    }

    fn changed(&self, catalog: &Catalog) -> Option<Oid> {
        let engine = &self.shared.engine;
        let tables = catalog.walk().filter_map(|object| catalog.table(object.oid()));
        let mut tables = tables.filter(|t| t.kind == TableKind::Table && !self.idle_until.contains_key(&t.oid));
        let is_stale = |table: Oid| {
            let changes = engine.changes(table);
            let known = self.shared.statistics().table(table);
            let (rows, before) = known.map_or((0.0, 0), |s| (s.rows, s.changes));
            // Fewer than before: the table was emptied by TRUNCATE.
            let since = if changes >= before { changes - before } else { u64::MAX };
            since as f64 > CHANGES_MIN + CHANGES_SHARE * rows
        };
        tables.find(|t| is_stale(t.oid)).map(|t| t.oid)
    }

    fn open(&self, table: Oid, catalog: &Catalog) -> Option<Running> {
        let desc = catalog.table(table)?;
        let mut txn = self.shared.engine.begin(TxnOptions { read_only: true, ..TxnOptions::default() });
        txn.begin_command();
        match Sampler::open(&mut *txn, desc, self.shared.engine.changes(table), None) {
            Ok(sampler) => Some(Running { table, txn: Some(txn), sampler, spent: 0 }),
            Err(_) => {
                txn.rollback();
                None
            }
        }
    }
}
