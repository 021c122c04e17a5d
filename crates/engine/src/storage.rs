//! A table's rows with their indexes.

use std::sync::Arc;

use base::{Oid, RowId};
use engine_api::{IndexDesc, TableDesc, TableRef};
use mvcc::index::{BTreeIndex, OrderedIndex as _};
use mvcc::{LaidOut, RowGarbage, Store, Table};
use parking_lot::RwLock;

use crate::record::StorageId;
use crate::shape::Shape;

/// One index with its entries.
pub struct IndexStore {
    /// What it is.
    pub desc: IndexDesc,
    /// Its entries.
    pub tree: BTreeIndex,
}

impl std::fmt::Debug for IndexStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({} entries)", self.desc.name, self.tree.len())
    }
}

/// What index upkeep needs to know of a table; shared with the collector of garbage.
#[derive(Debug)]
pub struct Upkeep {
    /// Replaced by DDL under the table's lock; a later one reads all that earlier ones do.
    pub shape: RwLock<Arc<Shape>>,
    /// Replaced by DDL under the table's lock.
    pub indexes: RwLock<Arc<Vec<Arc<IndexStore>>>>,
}

impl RowGarbage for Upkeep {
    fn removed(&self, row: RowId, removed: LaidOut<'_>, remaining: &[LaidOut<'_>]) {
        let (shape, indexes) = (self.shape.read().clone(), self.indexes.read().clone());
        let (mut gone, mut kept) = (Vec::new(), Vec::new());
        for index in indexes.iter() {
            gone.clear();
            shape.key(&index.desc, removed.0, removed.1, &mut gone);
            let still_used = remaining.iter().any(|(layout, tuple)| {
                kept.clear();
                shape.key(&index.desc, *layout, tuple, &mut kept);
                kept == gone
            });
            if !still_used {
                index.tree.remove(&gone, row);
            }
        }
    }
}

/// The rows of one generation of a table.
#[derive(Debug)]
pub struct TableStore {
    /// Which.
    pub id: StorageId,
    /// The rows.
    pub rows: Arc<Table>,
    /// Shape and indexes.
    pub upkeep: Arc<Upkeep>,
}

/// The generation of rows that a descriptor speaks of.
pub fn storage_id(table: &TableDesc) -> StorageId {
    StorageId { table: table.oid, generation: table.storage }
}

impl TableStore {
    /// Empty storage with these indexes.
    pub fn new(store: &Store, table: &TableDesc, indexes: impl Iterator<Item = IndexDesc>) -> TableStore {
        let upkeep = Arc::new(Upkeep {
            shape: RwLock::new(Arc::new(Shape::of(table))),
            indexes: RwLock::new(Arc::new(indexes.map(|desc| IndexStore::empty(store, desc)).collect())),
        });
        let rows = store.new_table(table.oid, upkeep.clone());
        TableStore { id: storage_id(table), rows: Arc::new(rows), upkeep }
    }

    /// Adds an index that has its entries.
    pub fn add_index(&self, index: Arc<IndexStore>) {
        let mut indexes = self.upkeep.indexes.write();
        let mut list = Vec::clone(&indexes);
        list.retain(|i| i.desc.oid != index.desc.oid);
        list.push(index);
        *indexes = Arc::new(list);
    }

    /// Forgets an index.
    pub fn remove_index(&self, oid: Oid) {
        let mut indexes = self.upkeep.indexes.write();
        let list = indexes.iter().filter(|i| i.desc.oid != oid).cloned().collect();
        *indexes = Arc::new(list);
    }
}

impl IndexStore {
    /// An index without entries, charged to the budget of `store`.
    pub fn empty(store: &Store, desc: IndexDesc) -> Arc<IndexStore> {
        Arc::new(IndexStore { desc, tree: BTreeIndex::charged_to(Arc::clone(store.memory())) })
    }
}

/// A table as one catalog version has it open: what a [`TableRef`] holds.
#[derive(Debug)]
pub struct TableHandle {
    /// Its descriptor.
    pub desc: TableDesc,
    /// Its rows.
    pub store: Arc<TableStore>,
    /// How they are read.
    pub shape: Arc<Shape>,
    /// Its indexes.
    pub indexes: Arc<Vec<Arc<IndexStore>>>,
}

impl TableHandle {
    /// The handle inside a reference.
    pub fn of(table: &TableRef) -> base::Result<&TableHandle> {
        table.0.downcast_ref().ok_or_else(|| base::Error::internal("a table reference of another engine"))
    }

    /// One of its indexes.
    pub fn index(&self, oid: Oid) -> base::Result<&Arc<IndexStore>> {
        self.indexes
            .iter()
            .find(|i| i.desc.oid == oid)
            .ok_or_else(|| base::Error::internal(format!("table \"{}\" has no index {oid}", self.desc.name)))
    }
}
