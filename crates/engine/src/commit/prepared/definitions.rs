//! Definitions of a prepared transaction on their way back at a start.
//!
//! Requirement: until it is ended the shard is as before the start: its definitions are invisible, storage and indexes that
//! it has made are there, the shapes that it has put in force are, and both of its ends find what they need.
//! Rule: only the final state of its definitions counts, because its savepoints can no longer be used. Storage that it
//! has made and given up again does not come back, nor do the rows that were in it.
//! First, while tables are loaded, new storage takes its place, so that its rows have one ([`Restored::storage`]); then, on the
//! open shard, shapes and indexes ([`Restored::put_in_force`]). No other transaction has written to a table of which the transaction has
//! changed a definition: its lock says so, so new indexes are filled from what is committed, and the rows of the transaction
//! itself are entered as they come back.

use std::collections::BTreeMap;
use std::sync::Arc;

use base::Oid;
use engine_api::{Catalog, CatalogObject, IndexDesc, SequenceDesc, TableDesc};
use env::World;
use mvcc::Store;
use types::user::{Current, Types, reading_by};

use crate::catalog::{Change, Definitions, Made};
use crate::index_build::fill::{self, Entries};
use crate::record::{Op, StorageId};
use crate::shard::Inner;
use crate::start::progress::Progress;
use crate::storage::shape::{Shape, settle_layouts};
use crate::storage::{IndexStore, TableStore, storage_id};

/// What a start has at hand to fill indexes with.
pub(crate) struct Filler<'w> {
    pub world: &'w World,
    pub threads: usize,
    pub progress: &'w Arc<Progress>,
}

/// Definitions that come back.
pub(crate) struct Restored {
    changes: Vec<Change>,
    /// The catalog as the transaction sees it.
    own: Arc<Catalog>,
    made: Vec<Arc<TableStore>>,
}

fn text(error: base::Error) -> String {
    error.to_string()
}

impl Restored {
    /// What the operations of a payload say of definitions; nothing if they say nothing.
    pub fn read(ops: &[(u64, Op<'_>)], committed: &Catalog) -> Result<Option<Restored>, String> {
        let (mut changes, mut own): (Vec<Change>, Catalog) = (Vec::new(), committed.clone());
        for (_, op) in ops {
            let change = match op {
                Op::PutObject { json } => {
                    let mut object: CatalogObject =
                        serde_json::from_slice(json).map_err(|e| format!("a catalog object cannot be read: {e}"))?;
                    if let CatalogObject::Table(table) = &mut object {
                        reading_by(own.types(), || settle_layouts(table, own.table(table.oid)));
                    }
                    (object.oid(), Some(Arc::new(object)))
                }
                Op::DropObject { oid } => (*oid, None),
                _ => continue,
            };
            crate::catalog::apply(&mut own, std::slice::from_ref(&change));
            changes.push(change);
        }
        if changes.is_empty() {
            return Ok(None);
        }
        let restored = Restored { changes, own: Arc::new(own), made: Vec::new() };
        restored.check()?;
        Ok(Some(restored))
    }

    /// Whether what the objects speak of is there.
    fn check(&self) -> Result<(), String> {
        let lost = self.objects().find_map(|object| match object {
            CatalogObject::Index(index) if self.own.table(index.table).is_none_or(|table| !table.is_stored()) => {
                Some(format!("index \"{}\" of a prepared transaction is of no table", index.name))
            }
            _ => None,
        });
        lost.map_or(Ok(()), Err)
    }

    /// The objects that it has put and not dropped, each as it is at last.
    fn objects(&self) -> impl Iterator<Item = &CatalogObject> {
        let mut oids: Vec<Oid> = self.changes.iter().map(|(oid, _)| *oid).collect();
        oids.sort_unstable();
        oids.dedup();
        oids.into_iter().filter_map(|oid| self.own.get(oid).map(|object| &**object))
    }

    fn tables(&self) -> impl Iterator<Item = &TableDesc> {
        self.objects().filter_map(|object| match object {
            CatalogObject::Table(table) if table.is_stored() => Some(table),
            _ => None,
        })
    }

    /// All OIDs that it has given to something.
    pub fn oids(&self) -> impl Iterator<Item = Oid> + '_ {
        self.changes.iter().flat_map(|(oid, object)| {
            let more = match object.as_deref() {
                Some(CatalogObject::Type(ty)) => ty.oids().collect(),
                _ => Vec::new(),
            };
            std::iter::once(*oid).chain(more)
        })
    }

    /// The types that the transaction reads values by.
    pub fn types(&self) -> &Arc<Types> {
        self.own.types()
    }

    /// First part, while tables are loaded: new storage, empty.
    pub fn storage(&mut self, store: &Store, tables: &mut BTreeMap<StorageId, Arc<TableStore>>) {
        let _entered = Current::by(self.types()).entered();
        let new: Vec<_> = self.tables().filter(|table| !tables.contains_key(&storage_id(table))).cloned().collect();
        for table in new {
            let made = Arc::new(TableStore::new(store, &table, Vec::new()));
            tables.insert(made.id, Arc::clone(&made));
            self.made.push(made);
        }
    }

    /// Gives up what would keep storage from being settled. It is found by its id from now on.
    pub fn let_go(&mut self) -> Vec<StorageId> {
        self.made.drain(..).map(|store| store.id).collect()
    }

    /// Second part, on the open shard and before the rows: shapes, indexes, sequences. `new`: storage that it has made.
    pub fn put_in_force(self, inner: &Inner, new: &[StorageId], filler: &Filler<'_>) -> Result<Definitions, String> {
        let mut definitions = Definitions::default();
        let mut entries = Vec::new();
        for table in self.tables() {
            let store = inner.storage(table).map_err(text)?;
            let before = store.upkeep.replace_shape(Arc::new(Shape::of(table)));
            if !new.contains(&store.id) {
                definitions.made.push(Made::Shape { store, before });
                continue;
            }
            for desc in self.own.indexes(table.oid).filter(|desc| !desc.unready) {
                store.add_index(self.index(inner, table, desc)?);
            }
            definitions.made.push(Made::Storage(store));
        }
        for object in self.objects() {
            match object {
                CatalogObject::Index(desc) => {
                    entries.extend(self.put_index(inner, new, desc, filler, &mut definitions)?)
                }
                CatalogObject::Sequence(sequence) => {
                    let committed = inner.catalog.get();
                    if committed.sequence(sequence.oid).map(SequenceDesc::state_id) != Some(sequence.state_id()) {
                        definitions.made.push(Made::Sequence(sequence.state_id()));
                    }
                }
                _ => {}
            }
        }
        fill::all(filler.world, filler.threads, self.own.types(), entries).map_err(|error| error.to_string())?;
        definitions.changes = self.changes;
        Ok(definitions)
    }

    fn index(&self, inner: &Inner, table: &TableDesc, desc: &IndexDesc) -> Result<Arc<IndexStore>, String> {
        IndexStore::empty(&inner.store, inner.compiler.as_deref(), &self.own, table, desc.clone()).map_err(text)
    }

    /// An index of storage that was there before, as [`crate::txn::Transaction::put`] makes it; answers what is to be entered.
    fn put_index(
        &self,
        inner: &Inner,
        new: &[StorageId],
        desc: &IndexDesc,
        filler: &Filler<'_>,
        definitions: &mut Definitions,
    ) -> Result<Option<Entries>, String> {
        let Some(table) = self.own.table(desc.table) else { return Ok(None) };
        if new.contains(&storage_id(table)) || desc.unready {
            return Ok(None);
        }
        let store = inner.storage(table).map_err(text)?;
        let current = store.upkeep.current();
        if let Some(before) = current.indexes.iter().find(|index| index.desc.oid == desc.oid) {
            if before.desc.deferrable == desc.deferrable {
                return Ok(None);
            }
            definitions.made.push(Made::Gone { store: Arc::clone(&store), before: Arc::clone(before) });
        }
        let index = self.index(inner, table, desc)?;
        store.add_index(Arc::clone(&index));
        definitions.made.push(Made::Index { store: Arc::clone(&store), index: desc.oid });
        let (shape, progress) = (Arc::clone(&current.shape), Arc::clone(filler.progress));
        Ok(Some(Entries { store, shape, index, progress }))
    }
}
