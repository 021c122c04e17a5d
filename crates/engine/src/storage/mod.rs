//! A table's rows with their indexes.

pub(crate) mod known;
pub(crate) mod shape;
pub(crate) mod unique;

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use base::{Oid, RowId, work};
use engine_api::{Catalog, IndexCode, IndexCompiler, IndexDesc, TableDesc, TableRef};
use mvcc::index::{BTreeIndex, OrderedIndex as _};
use mvcc::{LaidOut, RowGarbage, Store, Table};
use parking_lot::RwLock;

use crate::record::StorageId;
use crate::storage::known::KnownKeys;
use crate::storage::shape::Shape;

/// One index with its entries.
pub struct IndexStore {
    /// What it is.
    pub desc: IndexDesc,
    /// Its entries.
    pub tree: BTreeIndex,
    /// What its expressions and its condition compute, if it has any.
    pub code: Option<Arc<dyn IndexCode>>,
    /// Bytes of a tuple from which on its key may be long work.
    pub long_from: usize,
    /// Keys that were.
    pub known: KnownKeys,
}

/// Bytes of a tuple below which keys of plain columns do not count their work ([`types::encode_key`]).
const LONG_TUPLE: usize = 64 << 10;
/// The same for numbers, whose digits are many.
const LONG_NUMERIC: usize = 1 << 10;

/// [`IndexStore::long_from`]
fn long_from(table: &TableDesc, index: &IndexDesc) -> usize {
    if index.needs_code() {
        return 0;
    }
    let of_key = |key: &engine_api::IndexKey| {
        let column = table.columns.get((key.column as usize).wrapping_sub(1));
        let ty = column.map_or(Oid::INVALID, |c| types::user::plain_type(c.type_oid, c.typmod).0);
        match ty {
            types::oid::NUMERIC => LONG_NUMERIC,
            ty if types::key_says_all(ty) || ty == types::oid::BPCHAR => LONG_TUPLE,
            _ => 0,
        }
    };
    index.keys.iter().map(of_key).min().unwrap_or(LONG_TUPLE)
}

impl std::fmt::Debug for IndexStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({} entries)", self.desc.name, self.tree.len())
    }
}

/// How a table's rows are read and which indexes they are entered into, at one moment.
#[derive(Debug)]
pub struct Definition {
    /// Rises with every change.
    pub number: u64,
    /// A later one reads all that earlier ones do.
    pub shape: Arc<Shape>,
    /// Indexes that have all entries.
    pub indexes: Arc<Vec<Arc<IndexStore>>>,
    /// Indexes that are being filled: entries leave them with their rows, but nobody looks into them.
    pub building: Vec<Arc<IndexStore>>,
}

/// The definition of a table that is in force; shared with the collector of garbage.
#[derive(Debug)]
pub struct Upkeep {
    current: RwLock<Arc<Definition>>,
    /// The number of `current`, so that an open table is found current by one load. Stored under the latch (Release);
    /// who has taken a lock on the table after the one who changed the definition finds the change.
    number: AtomicU64,
    /// The rows are those of a table that was dropped or truncated.
    abandoned: AtomicBool,
}

impl Upkeep {
    fn new(shape: Shape, indexes: Vec<Arc<IndexStore>>) -> Upkeep {
        let first = Definition { number: 1, shape: Arc::new(shape), indexes: Arc::new(indexes), building: Vec::new() };
        Upkeep { current: RwLock::new(Arc::new(first)), number: AtomicU64::new(1), abandoned: AtomicBool::new(false) }
    }

    /// The definition in force.
    pub fn current(&self) -> Arc<Definition> {
        self.current.read().clone()
    }

    /// Looks at the definition in force. REQUIRES that `with` is short.
    pub fn with_current<R>(&self, with: impl FnOnce(&Definition) -> R) -> R {
        with(&self.current.read())
    }

    /// Replaces the definition by what `change` makes of it.
    fn change(&self, change: impl FnOnce(&mut Definition)) {
        let mut current = self.current.write();
        let mut next = Definition {
            number: current.number + 1,
            shape: Arc::clone(&current.shape),
            indexes: Arc::clone(&current.indexes),
            building: current.building.clone(),
        };
        change(&mut next);
        self.number.store(next.number, Ordering::Release);
        *current = Arc::new(next);
    }

    /// Puts another shape in force and returns the one before. REQUIRES the table's lock.
    pub fn replace_shape(&self, shape: Arc<Shape>) -> Arc<Shape> {
        let before = Arc::clone(&self.current().shape);
        self.change(|next| next.shape = shape);
        before
    }
}

impl RowGarbage for Upkeep {
    fn removed(&self, row: RowId, removed: LaidOut<'_>, remaining: &[LaidOut<'_>]) {
        let current = self.current();
        let (mut gone, mut kept) = (Vec::new(), Vec::new());
        for index in current.indexes.iter().chain(&current.building) {
            gone.clear();
            current.shape.key(index, removed.0, removed.1, &mut gone);
            let still_used = remaining.iter().any(|(layout, tuple)| {
                kept.clear();
                current.shape.key(index, *layout, tuple, &mut kept);
                kept == gone
            });
            if !still_used && !gone.is_empty() {
                index.tree.remove(&gone, row);
            }
        }
    }
}

/// The rows of a table under one storage number.
#[derive(Debug)]
pub struct TableStore {
    /// Which.
    pub id: StorageId,
    /// The rows.
    pub rows: Arc<Table>,
    /// Shape and indexes.
    pub upkeep: Arc<Upkeep>,
}

/// Rows that are freed with their table at once; more are by another thread.
const FEW_ROWS: u64 = 4096;

impl Drop for TableStore {
    fn drop(&mut self) {
        if self.rows.end().0 > FEW_ROWS {
            work::discard_elsewhere((Arc::clone(&self.rows), Arc::clone(&self.upkeep)));
        }
    }
}

/// The rows that a descriptor speaks of.
pub fn storage_id(table: &TableDesc) -> StorageId {
    StorageId { table: table.oid, storage: table.storage }
}

impl TableStore {
    /// Empty storage with these indexes.
    pub fn new(store: &Store, table: &TableDesc, indexes: Vec<Arc<IndexStore>>) -> TableStore {
        let upkeep = Arc::new(Upkeep::new(Shape::of(table), indexes));
        let rows = store.new_table(table.oid, upkeep.clone());
        TableStore { id: storage_id(table), rows: Arc::new(rows), upkeep }
    }

    /// Ends loading. REQUIRES that nobody has the rows open.
    pub fn settle(&mut self) {
        let alone = Arc::get_mut(&mut self.rows);
        base::invariant!(alone.is_some(), "nobody has rows open while they are loaded");
        alone.into_iter().for_each(Table::settle);
    }

    /// Lets the collector of garbage know of an index that is being filled.
    pub fn begin_index(&self, index: &Arc<IndexStore>) {
        self.upkeep.change(|next| next.building.push(Arc::clone(index)));
    }

    /// Adds an index that has its entries.
    pub fn add_index(&self, index: Arc<IndexStore>) {
        self.upkeep.change(|next| {
            let oid = index.desc.oid;
            next.building.retain(|i| i.desc.oid != oid);
            let others = next.indexes.iter().filter(|i| i.desc.oid != oid);
            next.indexes = Arc::new(others.cloned().chain([index]).collect());
        });
    }

    /// Forgets an index, finished or not.
    pub fn remove_index(&self, oid: Oid) {
        let mut removed = Vec::new();
        self.upkeep.change(|next| {
            removed.extend(next.indexes.iter().chain(&next.building).filter(|i| i.desc.oid == oid).cloned());
            next.building.retain(|i| i.desc.oid != oid);
            next.indexes = Arc::new(next.indexes.iter().filter(|i| i.desc.oid != oid).cloned().collect());
        });
        if self.rows.end().0 > FEW_ROWS {
            work::discard_elsewhere(removed);
        }
    }

    /// The table no longer has these rows: writing them is an error from now on.
    pub fn abandon(&self) {
        self.upkeep.abandoned.store(true, Ordering::Release);
        self.upkeep.change(|_| {});
    }

    /// Whether [`TableStore::abandon`] was called.
    pub fn is_abandoned(&self) -> bool {
        self.upkeep.abandoned.load(Ordering::Acquire)
    }
}

impl IndexStore {
    /// An index without entries, charged to the budget of `store`.
    ///
    /// # Errors
    /// If it needs code and there is none to be had.
    pub fn empty(
        store: &Store,
        compiler: Option<&dyn IndexCompiler>,
        catalog: &Catalog,
        table: &TableDesc,
        desc: IndexDesc,
    ) -> base::Result<Arc<IndexStore>> {
        let code = match desc.needs_code() {
            false => None,
            true => {
                let compiler =
                    compiler.ok_or_else(|| base::Error::unsupported("this engine has no code for indexes"))?;
                Some(compiler.compile(catalog, table, &desc)?)
            }
        };
        Ok(Arc::new(IndexStore {
            tree: BTreeIndex::charged_to(Arc::clone(store.memory())),
            long_from: long_from(table, &desc),
            known: KnownKeys::default(),
            desc,
            code,
        }))
    }
}

/// A table as one catalog version has it open: what a [`TableRef`] holds.
#[derive(Clone, Debug)]
pub struct TableHandle {
    /// Its descriptor.
    pub desc: TableDesc,
    /// Its rows.
    pub store: Arc<TableStore>,
    /// How they are read.
    pub shape: Arc<Shape>,
    /// Its indexes.
    pub indexes: Arc<Vec<Arc<IndexStore>>>,
    /// The number of the definition that shape and indexes are of.
    number: u64,
}

impl TableHandle {
    /// Opens the rows of a table by the definition in force.
    pub fn open(desc: TableDesc, store: Arc<TableStore>) -> TableHandle {
        let now = store.upkeep.current();
        TableHandle {
            desc,
            store,
            shape: Arc::clone(&now.shape),
            indexes: Arc::clone(&now.indexes),
            number: now.number,
        }
    }

    /// The handle inside a reference.
    pub fn of(table: &TableRef) -> base::Result<&TableHandle> {
        table.0.downcast_ref().ok_or_else(|| base::Error::internal("a table reference of another engine"))
    }

    /// Whether the definition it was opened by is still in force.
    #[inline]
    pub fn is_current(&self) -> bool {
        self.store.upkeep.number.load(Ordering::Acquire) == self.number
    }

    /// Whether two versions of a row have the same keys in all unique indexes.
    pub fn same_keys(&self, a: &mvcc::ReadVersion<'_>, b: &mvcc::ReadVersion<'_>) -> bool {
        let (mut left, mut right) = (Vec::new(), Vec::new());
        self.indexes.iter().filter(|index| index.desc.unique && index.code.is_none()).all(|index| {
            left.clear();
            right.clear();
            self.shape.key(index, a.layout, a.tuple, &mut left);
            self.shape.key(index, b.layout, b.tuple, &mut right);
            left == right
        })
    }

    /// One of its indexes; one that was made since the table was opened is found too, and one that was dropped is not.
    pub fn index(&self, oid: Oid) -> base::Result<Cow<'_, Arc<IndexStore>>> {
        let find = |indexes: &[Arc<IndexStore>]| indexes.iter().position(|i| i.desc.oid == oid);
        let found = if self.is_current() {
            find(&self.indexes).map(|at| Cow::Borrowed(&self.indexes[at]))
        } else {
            let now = self.store.upkeep.current();
            find(&now.indexes).map(|at| Cow::Owned(Arc::clone(&now.indexes[at])))
        };
        found.ok_or_else(|| base::Error::internal(format!("table \"{}\" has no index {oid}", self.desc.name)))
    }
}
