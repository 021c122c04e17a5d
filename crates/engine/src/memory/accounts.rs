//! Who holds how much memory: figures of tables and kinds, and a recount of everything that is counted.
//!
//! Responsible for: [`Engine::memory`](engine_api::Engine::memory) and the like, [`Shard::audit`].
//! Not responsible for: counting (`mvcc::memory`), limits (`throttle`).

use engine_api::{CatalogObject, MemoryKind, MemoryUse, TableMemoryUse};
use mvcc::index::OrderedIndex as _;

use crate::shard::{Inner, Shard};

/// What an object of the catalog takes at least: itself, its place in three maps, its name twice.
const PER_OBJECT: usize = 256;

impl Inner {
    /// What each table holds, in no order; those of transactions that have not committed are not named in the catalog.
    pub fn table_memory(&self) -> Vec<TableMemoryUse> {
        let tables = self.tables.read();
        let each = tables.values().map(|store| {
            let rows = store.rows.memory();
            let definition = store.upkeep.current();
            let indexes = definition.indexes.iter().chain(&definition.building);
            TableMemoryUse {
                table: store.id.table,
                rows: rows.rows,
                headers: rows.headers,
                version_count: rows.version_count,
                versions: rows.versions,
                indexes: indexes.map(|index| index.tree.memory_bytes() as u64).sum(),
            }
        });
        each.collect()
    }

    /// What is held, by kind.
    pub fn memory_use(&self) -> MemoryUse {
        let memory = self.store.memory();
        let tables = self.table_memory();
        let mut others = [0; MemoryKind::ALL.len()];
        MemoryKind::ALL.iter().for_each(|kind| others[*kind as usize] = memory.other(*kind as usize));
        let indexes = tables.iter().map(|t| t.indexes).sum();
        let used = memory.used();
        let held = used + memory.other(MemoryKind::Free as usize).saturating_sub(memory.beyond());
        MemoryUse {
            rows: held.saturating_sub(indexes + others.iter().sum::<u64>()),
            headers: tables.iter().map(|t| t.headers).sum(),
            versions: tables.iter().map(|t| t.versions).sum(),
            indexes,
            others,
            held,
            used,
            limit: memory.limit(),
        }
    }
}

impl Shard {
    /// Measures what is not counted as it changes: the log's end that is not durable yet, and the catalog.
    pub fn measure_memory(&self) {
        let inner = &*self.0;
        let memory = inner.store.memory();
        let behind = inner.log.stats().bytes.saturating_sub(inner.log.durable().current().0);
        memory.set_other(MemoryKind::LogBuffers as usize, behind);
        memory.set_other(MemoryKind::Garbage as usize, inner.store.garbage_bytes() as u64);
        let catalog = inner.catalog.get();
        // A descriptor is in the catalog once; its tree of expressions is text.
        let sizes = catalog.objects().map(|object| {
            PER_OBJECT
                + size_of::<CatalogObject>()
                + match &**object {
                    CatalogObject::Table(table) => {
                        let fields: usize = table.layouts.iter().map(|layout| layout.fields.len()).sum();
                        table.columns.len() * 192 + fields * 16 + table.constraints.len() * 256
                    }
                    CatalogObject::Index(index) => index.keys.len() * 16 + index.expressions.len() * 128,
                    _ => 0,
                }
        });
        memory.set_other(MemoryKind::Catalog as usize, sizes.sum::<usize>() as u64);
    }

    /// Counts anew all that tables and indexes hold, by looking at every row, version and node, and answers where that
    /// is not what the counters say; nothing if they are right. REQUIRES that nobody writes meanwhile, that no
    /// transaction is open, and for the total that no statement has a table open which is gone. For tests.
    pub fn audit(&self) -> Vec<String> {
        let inner = &*self.0;
        let mut wrong = Vec::new();
        let mut differs = |what: String, counted: u64, found: u64| {
            if counted != found {
                wrong.push(format!("{what}: {counted} counted, {found} found"));
            }
        };
        let mut total = MemoryKind::ALL.iter().map(|kind| inner.store.memory().other(*kind as usize)).sum::<u64>();
        for store in inner.tables.read().values() {
            let (counted, found) = (store.rows.memory(), store.rows.recount());
            let name = format!("table {}", store.id.table);
            differs(format!("{name}, rows"), counted.rows, found.rows);
            differs(format!("{name}, versions"), counted.version_count, found.version_count);
            differs(format!("{name}, bytes of headers"), counted.headers, found.headers);
            differs(format!("{name}, bytes of versions"), counted.versions, found.versions);
            total += found.headers + found.versions;
            let definition = store.upkeep.current();
            for index in definition.indexes.iter().chain(&definition.building) {
                let (entries, bytes) = index.tree.recount();
                differs(
                    format!("{name}, entries of index {}", index.desc.oid),
                    index.tree.len() as u64,
                    entries as u64,
                );
                let counted = index.tree.memory_bytes() as u64;
                differs(format!("{name}, bytes of index {}", index.desc.oid), counted, bytes as u64);
                total += bytes as u64;
            }
        }
        let memory = inner.store.memory();
        total -= memory.other(MemoryKind::Free as usize).saturating_sub(memory.beyond());
        differs("all memory".to_string(), memory.used(), total);
        wrong
    }
}
