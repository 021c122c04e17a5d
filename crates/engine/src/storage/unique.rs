//! Entering keys into unique indexes (E4).

use base::{Error, LayoutId, RowId, SqlState, Timestamp, TxnId};
use engine_api::Catalog;
use mvcc::index::{KeyTooLong, OrderedIndex as _, RowIds};
use mvcc::{Guard, Newest, ReadVersion, Table, pin};
use parking_lot::Mutex;

use crate::planted::{self, Planted};
use crate::storage::shape::Shape;
use crate::storage::{IndexStore, TableHandle};

const STRIPES: usize = 256;

/// Latches by key: check and entry of one key are one step. Held for one call, never across a wait.
#[derive(Debug)]
pub struct Stripes(Box<[Latch]>);

/// A latch in a cache line of its own: cores that enter different keys write to different lines.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Latch(Mutex<()>);

impl Stripes {
    /// All free.
    pub fn new() -> Stripes {
        Stripes((0..STRIPES).map(|_| Latch::default()).collect())
    }

    /// The latch of a key, taken.
    pub fn latch(&self, index: &IndexStore, key: &[u8]) -> parking_lot::MutexGuard<'_, ()> {
        self.of(index, key).lock()
    }

    fn of(&self, index: &IndexStore, key: &[u8]) -> &Mutex<()> {
        use std::hash::Hasher;
        let mut hasher = rustc_hash::FxHasher::default();
        hasher.write_u32(index.desc.oid.0);
        hasher.write(key);
        &self.0[hasher.finish() as usize % STRIPES].0
    }
}

/// What stands in the way of a key.
#[derive(Debug, PartialEq, Eq)]
pub enum Entered {
    /// Nothing: the entry is made; `false` if it was there already.
    Done(bool),
    /// The entry is made, or was there; another row has the key or may get it, and the index is a deferrable one.
    Unproven(bool),
    /// A live row has the key.
    Duplicate(RowId),
    /// A row that `holder` has not decided about has it, or had it.
    Undecided {
        /// Who.
        holder: TxnId,
        /// The row.
        row: RowId,
    },
    /// The key is longer than an index takes.
    TooLong(KeyTooLong),
}

/// Makes an entry that nothing stands in the way of.
fn insert(index: &IndexStore, key: &[u8], row: RowId) -> Entered {
    match index.tree.insert(key, row) {
        Ok(added) => Entered::Done(added),
        Err(too_long) => Entered::TooLong(too_long),
    }
}

/// 54000
pub fn too_long(index: &IndexStore, key: KeyTooLong) -> Error {
    Error::new(
        SqlState::PROGRAM_LIMIT_EXCEEDED,
        format!(
            "index row size {} exceeds maximum {} for index \"{}\"",
            key.len,
            mvcc::index::MAX_KEY_LEN,
            index.desc.name
        ),
    )
}

/// Whether a version has `key`.
fn has_key(shape: &Shape, index: &IndexStore, version: &ReadVersion<'_>, key: &[u8], scratch: &mut Vec<u8>) -> bool {
    if !version.keys_diverged {
        return true;
    }
    scratch.clear();
    shape.key(index, version.layout, version.tuple, scratch);
    scratch == key
}

/// Whether a version above the newest decided one has `key`, also one that its writer has replaced since: a savepoint may
/// bring it back. If the writer decides meanwhile, what it wrote still counts; who then waits for it looks again.
fn is_written(
    shape: &Shape,
    rows: &Table,
    index: &IndexStore,
    key: &[u8],
    row: RowId,
    decided: Option<&ReadVersion<'_>>,
    guard: &Guard,
) -> bool {
    let mut found = Vec::new();
    let versions = rows.versions(row, guard);
    let above = versions.iter().take_while(|(_, tuple)| decided.is_none_or(|d| !std::ptr::eq(d.tuple, *tuple)));
    above.into_iter().any(|(layout, tuple)| {
        found.clear();
        shape.key(index, *layout, tuple, &mut found);
        found == key
    })
}

/// Looks for another row with a key. `free` is raised to the commits that an answer of none depends on: those that
/// deleted rows with the key, or gave them another (rule R1).
pub fn conflict(
    shape: &Shape,
    rows: &Table,
    index: &IndexStore,
    key: &[u8],
    row: RowId,
    own: TxnId,
    free: &mut Timestamp,
) -> Option<Entered> {
    let mut candidates = RowIds::new();
    index.tree.get(key, &mut candidates);
    conflict_among(candidates, shape, rows, index, key, row, own, free)
}

/// As [`conflict`], among the rows that have the key.
fn conflict_among(
    candidates: RowIds,
    shape: &Shape,
    rows: &Table,
    index: &IndexStore,
    key: &[u8],
    row: RowId,
    own: TxnId,
    free: &mut Timestamp,
) -> Option<Entered> {
    let guard = pin();
    let mut scratch = Vec::new();
    for other in candidates.into_iter().filter(|r| *r != row) {
        match rows.newest(other, Some(own), &guard) {
            Newest::Live(version) if has_key(shape, index, &version, key, &mut scratch) => {
                return Some(Entered::Duplicate(other));
            }
            Newest::Undecided { holder, decided } => {
                let stays = decided.is_some_and(|v| has_key(shape, index, &v, key, &mut scratch));
                if stays || is_written(shape, rows, index, key, other, decided.as_ref(), &guard) {
                    return Some(Entered::Undecided { holder, row: other });
                }
            }
            Newest::Live(ReadVersion { ts, .. }) | Newest::Deleted(ts) => *free = (*free).max(ts),
            Newest::Absent => {}
        }
    }
    None
}

/// Makes the entry (key, row) of an index, unless it is unique and another row has the key; `free` as in [`conflict`].
pub fn enter(
    stripes: &Stripes,
    handle: &TableHandle,
    index: &IndexStore,
    key: &[u8],
    has_null: bool,
    row: RowId,
    own: TxnId,
    free: &mut Timestamp,
) -> Entered {
    if key.is_empty() {
        // The index does not have such rows.
        return Entered::Done(false);
    }
    if !index.desc.unique || (has_null && !index.desc.nulls_not_distinct) {
        if planted::strikes(Planted::LostIndexEntry) {
            return Entered::Done(true);
        }
        return insert(index, key, row);
    }
    let _latch = stripes.latch(index, key);
    let mut others = RowIds::new();
    match index.tree.insert_alone(key, row, &mut others) {
        Ok(true) => return Entered::Done(true),
        Ok(false) => {}
        Err(too_long) => return Entered::TooLong(too_long),
    }
    match conflict_among(others, &handle.shape, &handle.store.rows, index, key, row, own, free) {
        // Of two that enter a key, the second one finds the first, and looks again later.
        Some(_) if index.desc.deferrable => match insert(index, key, row) {
            Entered::Done(added) => Entered::Unproven(added),
            other => other,
        },
        Some(conflict) => conflict,
        None => insert(index, key, row),
    }
}

/// Makes the entry (key, row) of an index that the row's transaction has dropped, whatever it would violate; answers whether it was
/// not there. What does not fit is left out: it is found through that index by nobody.
pub fn enter_unasked(index: &IndexStore, key: &[u8], row: RowId) -> bool {
    !key.is_empty() && index.tree.insert(key, row).unwrap_or(false)
}

/// The name of a table's schema, for errors.
pub fn schema_of(catalog: &Catalog, table: &engine_api::TableDesc) -> String {
    catalog.get(table.schema).map(|schema| schema.name().to_owned()).unwrap_or_default()
}

/// 23505 for a key that is taken. Names are those of `catalog`: the index or its table may have been renamed.
pub fn violation(catalog: &Catalog, handle: &TableHandle, index: &IndexStore, layout: LayoutId, tuple: &[u8]) -> Error {
    let table = catalog.table(handle.desc.oid).unwrap_or(&handle.desc);
    let name = catalog.index(index.desc.oid).map_or(&index.desc.name, |desc| &desc.name);
    let key = handle.shape.key_text(table, index, layout, tuple);
    Error::new(SqlState::UNIQUE_VIOLATION, format!("duplicate key value violates unique constraint \"{name}\""))
        .detail(format!("Key {key} already exists."))
        .schema(schema_of(catalog, table))
        .table(&table.name)
        .constraint(name)
}
