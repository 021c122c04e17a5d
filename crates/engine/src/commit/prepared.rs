//! Transactions between the phases of their commit.
//!
//! Responsible for: PREPARE TRANSACTION, COMMIT PREPARED, ROLLBACK PREPARED; bringing back at a start what was prepared.
//! Not responsible for: who may end one (`sql-session`).
//!
//! The Prepare record has the operations of the transaction, as a Commit record would, and last what it is beside them: its
//! name, its locks, what it has read if it is SERIALIZABLE ([`PreparedState`]). The record that ends it names its transaction id.
//! While it is prepared it is a running transaction that belongs to no session: its versions are undecided, its locks held, its
//! definitions invisible, the storage that they have made there ([`definitions`] brings them back).
//! A SERIALIZABLE one has validated its read set; from then on the read set is a guard (`commit::validate`). It must not have read
//! what another prepared one has written, because it is not known which of the two commits first.
//! An image carries what is prepared at its moment ([`carried`]), so that the log before it can go (rule R13).
//! Invariant: a name is in the registry exactly while its Prepare record is the last word of the log about it.

mod definitions;

use std::collections::BTreeMap;
use std::sync::Arc;

use base::{CommandId, Error, LayoutId, Lsn, Oid, Result, RowId, SqlState, TxnId};
use engine_api::{
    Catalog, CatalogObject, CommitOutcome, Durability, PREPARED_MAX, PreparedTransaction, RowLockMode, SequenceDesc,
    Step, Txn, TxnOptions,
};
use mvcc::index::OrderedIndex as _;
use mvcc::{LockResult, Newest, Store, pin};
use parking_lot::Mutex;
use redo::RecordKind;
use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Deserialize, Serialize};
use types::user::Current;

use crate::catalog::Definitions;
use crate::reads::{ReadSet, Written};
use crate::record::{self, Op, StorageId};
use crate::shard::{Inner, Shard};
use crate::storage::{TableStore, storage_id};
use crate::txn::Transaction;
use crate::{advisory, commit};

pub(crate) use definitions::{Filler, Restored};

/// A prepared transaction.
pub(crate) struct Prepared {
    what: PreparedTransaction,
    /// Not a [`Transaction`]: that would keep the shard alive, which keeps this.
    core: mvcc::Transaction,
    /// What it has read, if it is SERIALIZABLE and was so before it was prepared.
    reads: Option<Arc<Mutex<ReadSet>>>,
    definitions: Definitions,
    /// As the log names it; another than that of `core` after a restart.
    id: TxnId,
}

impl Prepared {
    /// What it is, for listing.
    pub fn described(&self) -> PreparedTransaction {
        self.what.clone()
    }

    /// The sequences that it has put.
    pub fn sequences(&self) -> impl Iterator<Item = &SequenceDesc> {
        self.definitions.changes.iter().filter_map(|(_, object)| match object.as_deref() {
            Some(CatalogObject::Sequence(sequence)) => Some(sequence),
            _ => None,
        })
    }
}

/// What the log says of a prepared transaction beside its operations.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct PreparedState {
    what: PreparedTransaction,
    /// (OID, modes)
    tables: Vec<(u32, u8)>,
    /// (table, storage, row, modes)
    rows: Vec<(u32, u32, u64, u8)>,
    reads: Option<Written>,
}

/// What the operations of a Prepare record say of the transaction beside them.
pub(crate) fn state_in<'p>(ops: &[(u64, Op<'p>)]) -> Option<&'p [u8]> {
    ops.iter().find_map(|(_, op)| match op {
        Op::Prepared { json } => Some(*json),
        _ => None,
    })
}

/// The name of a prepared transaction, from what the log or an image says of it beside its operations.
pub(crate) fn name_in(json: &[u8]) -> Option<String> {
    serde_json::from_slice::<PreparedState>(json).ok().map(|state| state.what.name)
}

/// What one transaction made of its rows: a row may be written more than once under one timestamp, and only its last state
/// is loaded (`None`: deleted).
pub(crate) type PreparedRows = BTreeMap<(StorageId, RowId), Option<(LayoutId, Vec<u8>)>>;

/// Names the storage that tables of `mvcc` are.
struct Storages<'s> {
    stores: &'s FxHashMap<StorageId, Arc<TableStore>>,
    /// By the tables' addresses.
    known: FxHashMap<usize, Option<StorageId>>,
}

impl<'s> Storages<'s> {
    fn new(stores: &'s FxHashMap<StorageId, Arc<TableStore>>) -> Storages<'s> {
        Storages { stores, known: FxHashMap::default() }
    }

    fn of(&mut self, rows: &Arc<mvcc::Table>) -> Option<StorageId> {
        let find = || self.stores.iter().find(|(_, store)| Arc::ptr_eq(&store.rows, rows)).map(|(id, _)| *id);
        *self.known.entry(Arc::as_ptr(rows).addr()).or_insert_with(find)
    }
}

/// What is to be written of a transaction beside its operations.
fn state(
    inner: &Inner,
    core: &mvcc::Transaction,
    reads: Option<&Mutex<ReadSet>>,
    what: &PreparedTransaction,
) -> PreparedState {
    let stores = inner.tables.read();
    let mut storages = Storages::new(&stores);
    let locks = inner.store.row_locks(core);
    let rows = locks.iter().filter_map(|(table, row, modes)| {
        let StorageId { table, storage } = storages.of(table)?;
        Some((table.0, storage, row.0, *modes))
    });
    PreparedState {
        what: what.clone(),
        rows: rows.collect(),
        tables: core.table_locks().map(|(oid, modes)| (oid.0, modes)).collect(),
        reads: reads.map(|reads| reads.lock().written()),
    }
}

/// What an image says of the transactions that are prepared at its moment: for each its id and the length of its payload (eight
/// bytes each), and the payload, which is that of its Prepare record but for whole tuples instead of differences.
///
/// REQUIRES that the registry is held since that moment: what they have written stays as it is.
pub(crate) fn carried(inner: &Inner, registry: &BTreeMap<String, Prepared>) -> Vec<u8> {
    let mut all = Vec::new();
    let mut payload = Vec::new();
    for prepared in registry.values() {
        let Prepared { what, core, reads, definitions, id } = prepared;
        payload.clear();
        operations(inner, core, definitions, &mut payload);
        let what = PreparedTransaction { txn: id.0, ..what.clone() };
        // It is plain data, and was written once: it has a JSON form.
        let json = serde_json::to_vec(&state(inner, core, reads.as_deref(), &what)).unwrap_or_default();
        record::prepared(&mut payload, &json);
        all.extend_from_slice(&id.0.to_le_bytes());
        all.extend_from_slice(&(payload.len() as u64).to_le_bytes());
        all.extend_from_slice(&payload);
    }
    all
}

/// What a transaction has changed of definitions, and then what it has made of each row that it has written. Rows that go with
/// their storage when it commits are left out.
fn operations(inner: &Inner, core: &mvcc::Transaction, definitions: &Definitions, out: &mut Vec<u8>) {
    for (oid, object) in &definitions.changes {
        match object {
            // It was written once.
            Some(object) => record::put_object(out, &serde_json::to_vec(&**object).unwrap_or_default()),
            None => record::drop_object(out, *oid),
        }
    }
    let own = (!definitions.changes.is_empty()).then(|| definitions.catalog(inner.catalog.get()));
    let goes = |storage: StorageId| {
        own.as_ref().is_some_and(|own| own.table(storage.table).is_none_or(|table| storage_id(table) != storage))
    };
    let stores = inner.tables.read();
    let mut storages = Storages::new(&stores);
    let mut seen = FxHashSet::default();
    for (table, row, _) in core.writes() {
        let Some(storage) = storages.of(table) else { continue };
        if goes(storage) || !seen.insert((storage, row)) {
            continue;
        }
        let guard = pin();
        let is_new =
            matches!(table.newest(row, None, &guard), Newest::Absent | Newest::Undecided { decided: None, .. });
        match table.newest(row, Some(core.id()), &guard) {
            Newest::Live(made) if is_new => record::insert(out, storage, row, made.layout, made.tuple),
            Newest::Live(made) => record::replace(out, storage, row, made.layout, made.tuple),
            Newest::Deleted(_) if !is_new => record::delete(out, storage, row),
            // Made here and gone again.
            _ => {}
        }
    }
}

/// The transactions that an image carries, as [`carried`] wrote them. `None` if that is malformed.
pub(crate) fn uncarried(mut bytes: &[u8]) -> Option<Vec<(TxnId, &[u8])>> {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let (id, rest) = bytes.split_first_chunk()?;
        let (len, rest) = rest.split_first_chunk()?;
        let (payload, rest) = rest.split_at_checked(usize::try_from(u64::from_le_bytes(*len)).ok()?)?;
        all.push((TxnId(u64::from_le_bytes(*id)), payload));
        bytes = rest;
    }
    Some(all)
}

/// What is temporary goes with its session.
fn check_no_temporary(txn: &mut Transaction) -> Result<()> {
    let catalogs = [txn.shard.0.catalog.get(), txn.catalog()];
    let is_temporary = |catalog: &Catalog, oid: Oid| {
        let Some(object) = catalog.get(oid) else { return false };
        let schema = match &**object {
            CatalogObject::Schema(_) => Some(object),
            other => catalog.get(other.namespace().1),
        };
        schema.is_some_and(|schema| {
            matches!(&**schema, CatalogObject::Schema(_)) && schema.name().starts_with("pg_temp_")
        })
    };
    let locked = txn.core.iter().flat_map(|core| core.table_locks()).map(|(table, _)| table);
    let changed = txn.definitions.changes.iter().map(|(oid, _)| *oid);
    if locked.chain(changed).any(|oid| catalogs.iter().any(|catalog| is_temporary(catalog, oid))) {
        return Err(Error::unsupported("cannot PREPARE a transaction that has operated on temporary objects"));
    }
    Ok(())
}

/// See [`engine_api::Txn::prepare`].
pub(crate) fn prepare(txn: &mut Transaction, what: &PreparedTransaction) -> Result<Step<CommitOutcome>> {
    let shard = txn.shard.clone();
    let mut registry = shard.0.prepared.lock();
    if registry.contains_key(&what.name) {
        return Err(Error::new(
            SqlState::DUPLICATE_OBJECT,
            format!("transaction identifier \"{}\" is already in use", what.name),
        ));
    }
    if registry.len() >= PREPARED_MAX {
        return Err(Error::new(SqlState::OUT_OF_MEMORY, "maximum number of prepared transactions reached")
            .hint(format!("Increase max_prepared_transactions (currently {PREPARED_MAX}).")));
    }
    txn.start_writing()?;
    let id = txn.core.as_ref().ok_or_else(|| Error::internal("just started"))?.id();
    let what = PreparedTransaction { txn: id.0, ..what.clone() };
    if !txn.is_sealed {
        check_no_temporary(txn)?;
        let core = txn.core.as_ref().ok_or_else(|| Error::internal("just started"))?;
        let state = state(&shard.0, core, txn.reads.as_deref(), &what);
        let json = serde_json::to_vec(&state).map_err(|e| Error::internal(format!("a prepared transaction: {e}")))?;
        record::prepared(&mut txn.redo, &json);
        txn.is_sealed = true;
    }
    if let Some(wait) = commit::send_ahead(txn)? {
        return Ok(Step::Wait(wait));
    }
    if txn.reads.is_some()
        && let Some(wait) = commit::ahead(txn)?
    {
        return Ok(Step::Wait(wait));
    }
    let room = match commit::reserve(txn)? {
        Step::Ready(room) => room,
        Step::Wait(wait) => return Ok(Step::Wait(wait)),
    };
    let inner = &shard.0;
    let append = |txn: &mut Transaction| {
        inner.log.append(room, RecordKind::Prepare, id, &txn.redo, |_| (inner.last_timestamp(), ())).0
    };
    let end = match txn.reads.clone() {
        None => append(txn),
        Some(reads) => {
            let others = registry.values().filter(|other| other.reads.is_some());
            let mut written = others.flat_map(|other| commit::writes(&other.core)).peekable();
            if written.peek().is_some() && reads.lock().is_touched(written, None) {
                return Err(commit::between_prepared(txn));
            }
            let step = commit::guarded(txn, |txn, serial| {
                serial.guards.push((id, reads));
                append(txn)
            })?;
            match step {
                Step::Ready(end) => end,
                Step::Wait(wait) => return Ok(Step::Wait(wait)),
            }
        }
    };
    let gate = txn.gate.max(end);
    let (core, reads, definitions) = txn.hand_over();
    if let Some(core) = core {
        inner.store.disown(&core);
        advisory::give(&inner.store, &core, &what.advisory);
        registry.insert(what.name.clone(), Prepared { what, core, reads, definitions, id });
    }
    Ok(Step::Ready(CommitOutcome { gate, position: Some(end) }))
}

/// See [`engine_api::Engine::finish_prepared`].
pub(crate) fn finish(shard: &Shard, name: &str, commits: bool) -> Result<Step<(CommitOutcome, Box<dyn Txn>)>> {
    let inner = &shard.0;
    let mut registry = inner.prepared.lock();
    let Some(prepared) = registry.remove(name) else {
        return Err(Error::new(
            SqlState::UNDEFINED_OBJECT,
            format!("prepared transaction with identifier \"{name}\" does not exist"),
        ));
    };
    let mut txn = Transaction::new(shard.clone(), TxnOptions::default());
    let room = match commit::reserve(&txn) {
        Ok(Step::Ready(room)) => room,
        later => {
            registry.insert(name.to_string(), prepared);
            let gate = CommitOutcome { gate: Lsn(0), position: None };
            let none = |_| -> (CommitOutcome, Box<dyn Txn>) { (gate, Box::new(txn)) };
            return later.map(|step| step.map(none));
        }
    };
    let Prepared { what, mut core, reads, definitions, id } = prepared;
    advisory::give_back(&inner.store, &mut core, &what.advisory);
    txn.core = Some(core);
    txn.definitions = definitions;
    let mut serial = reads.is_some().then(|| inner.serial.lock());
    let (end, ts) = if commits {
        commit::stamp_as(&mut txn, room, Durability::On, RecordKind::CommitPrepared, id)
    } else {
        inner.log.append(room, RecordKind::RollbackPrepared, id, &[], |_| {
            let last = inner.last_timestamp();
            (last, last)
        })
    };
    if let Some(serial) = &mut serial {
        serial.guards.retain(|(guard, _)| *guard != id);
        if commits {
            serial.last = ts;
            if let Some(reads) = reads {
                serial.end_as(inner, None, reads, ts, ts, || commit::Writes::of(txn.core.as_ref()));
            }
        }
    }
    drop(serial);
    drop(registry);
    if commits {
        commit::publish(&mut txn, ts);
    } else {
        txn.undo_all();
    }
    Ok(Step::Ready((CommitOutcome { gate: end, position: Some(end) }, Box::new(txn))))
}

/// A prepared transaction on its way back at a start.
pub(crate) struct Restoring {
    id: TxnId,
    state: PreparedState,
    rows: PreparedRows,
    core: mvcc::Transaction,
    inserted: Vec<(StorageId, RowId)>,
    definitions: Option<Restored>,
    /// Storage that it has made.
    new: Vec<StorageId>,
}

impl Restoring {
    /// First part, while tables are loaded: rows it has inserted take their places.
    pub fn begin(
        store: &Store,
        tables: &BTreeMap<StorageId, Arc<TableStore>>,
        id: TxnId,
        json: &[u8],
        rows: PreparedRows,
        mut definitions: Option<Restored>,
    ) -> Result<Restoring, String> {
        let state = serde_json::from_slice(json).map_err(|e| format!("a prepared transaction cannot be read: {e}"))?;
        let core = store.begin_txn().map_err(|_| "too many prepared transactions")?;
        let mut inserted = Vec::new();
        let guard = pin();
        for ((storage, row), made) in &rows {
            let Some(table) = tables.get(storage) else { continue };
            if let (Newest::Absent, Some((layout, tuple))) = (table.rows.newest(*row, None, &guard), made) {
                table.rows.restore_insert(&core, *row, *layout, tuple, &guard);
                inserted.push((*storage, *row));
            }
        }
        let new = definitions.as_mut().map(Restored::let_go).unwrap_or_default();
        Ok(Restoring { id, state, rows, core, inserted, definitions, new })
    }

    /// Second part, on the open shard: definitions, locks, changes, keys, guards.
    pub fn finish(self, shard: &Shard, filler: &Filler<'_>) -> Result<(), String> {
        let Restoring { id, state, rows, mut core, inserted, definitions, new } = self;
        let inner = &shard.0;
        let reading = match &definitions {
            Some(definitions) => Current::by(definitions.types()),
            None => Current::by(inner.catalog.get().types()),
        };
        let _entered = reading.entered();
        let definitions = match definitions {
            Some(definitions) => definitions.put_in_force(inner, &new, filler)?,
            None => Definitions::default(),
        };
        let tables = inner.tables.read();
        let refused = |what: String| format!("the prepared transaction \"{}\" cannot have {what}", state.what.name);
        for (storage, row) in &inserted {
            if let Some(table) = tables.get(storage) {
                table.rows.adopt(&mut core, *row);
                let (layout, tuple) = rows[&(*storage, *row)].as_ref().ok_or("an inserted row without a tuple")?;
                enter_keys(table, *row, *layout, tuple);
            }
        }
        for (oid, modes) in &state.tables {
            for mode in advisory::table_modes(*modes) {
                let mode = crate::locks::table_mode(mode);
                let answer = inner.store.lock_table(&mut core, Oid(*oid), mode, mvcc::WaitPolicy::Never, &inner.nobody);
                if !matches!(answer, LockResult::Granted { .. }) {
                    return Err(refused(format!("its lock on table {oid}")));
                }
            }
        }
        let lock = |core: &mut mvcc::Transaction, table: &TableStore, row: RowId, mode: RowLockMode| {
            let mode = crate::locks::row_mode(mode);
            let answer = inner.store.lock_row(core, &table.rows, row, mode, mvcc::WaitPolicy::Never, &inner.nobody);
            matches!(answer, LockResult::Granted { .. })
        };
        for (oid, storage, row, modes) in &state.rows {
            let id = StorageId { table: Oid(*oid), storage: *storage };
            let Some(table) = tables.get(&id) else { continue };
            for mode in advisory::row_modes(*modes) {
                if !lock(&mut core, table, RowId(*row), mode) {
                    return Err(refused(format!("its lock on row {row} of table {oid}")));
                }
            }
        }
        advisory::give(&inner.store, &core, &state.what.advisory);
        let written: Vec<_> = rows.iter().filter(|(key, _)| !inserted.contains(key)).collect();
        for ((storage, row), made) in written {
            let Some(table) = tables.get(storage) else { continue };
            let guard = pin();
            let Newest::Live(old) = table.rows.newest(*row, None, &guard) else { continue };
            if !lock(&mut core, table, *row, RowLockMode::NoKeyUpdate) {
                return Err(refused(format!("row {row} of table {}", storage.table)));
            }
            match made {
                None => table.rows.delete(&mut core, *row, CommandId(0), &guard),
                Some((layout, tuple)) => {
                    let differs = has_other_keys(table, (old.layout, old.tuple), (*layout, tuple));
                    table.rows.update(&mut core, *row, CommandId(0), *layout, tuple, differs, &guard);
                    if differs {
                        enter_keys(table, *row, *layout, tuple);
                    }
                }
            }
        }
        let reads = state.reads.map(|written| {
            let mut reads = ReadSet::new(inner.store.memory());
            reads.read(written, |id| tables.get(&id).cloned());
            Arc::new(Mutex::new(reads))
        });
        if let Some(reads) = &reads {
            inner.serial.lock().guards.push((id, Arc::clone(reads)));
        }
        drop(tables);
        inner
            .prepared
            .lock()
            .insert(state.what.name.clone(), Prepared { what: state.what, core, reads, definitions, id });
        Ok(())
    }
}

/// Whether two tuples of a row have different keys in some index.
fn has_other_keys(table: &TableStore, old: (LayoutId, &[u8]), new: (LayoutId, &[u8])) -> bool {
    let now = table.upkeep.current();
    let (mut before, mut after) = (Vec::new(), Vec::new());
    now.indexes.iter().any(|index| {
        before.clear();
        after.clear();
        now.shape.key(index, old.0, old.1, &mut before);
        now.shape.key(index, new.0, new.1, &mut after);
        before != after
    })
}

/// Enters the keys of a tuple; they were found free when it was written.
fn enter_keys(table: &TableStore, row: RowId, layout: LayoutId, tuple: &[u8]) {
    let now = table.upkeep.current();
    let mut key = Vec::new();
    for index in now.indexes.iter() {
        key.clear();
        now.shape.key(index, layout, tuple, &mut key);
        if key.is_empty() {
            // A partial index that does not have the row.
            continue;
        }
        let added = index.tree.insert(&key, row);
        base::invariant!(added.is_ok(), "a key of row {row} was accepted once");
    }
}
