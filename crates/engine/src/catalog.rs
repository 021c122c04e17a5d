//! Definitions inside a transaction: the catalog as it sees it, storage that comes and goes with it.
//!
//! Changes are a list of objects put or dropped. The transaction's own catalog is the newest committed one with the list
//! applied; at commit the list is applied to what is then the newest and takes its place in the log's critical section.

use std::cell::RefCell;
use std::sync::Arc;

use base::{Error, Oid, Result, SqlState, work};
use engine_api::Txn as _;
use engine_api::{
    AclItem, Catalog, CatalogObject, DatabaseDesc, IndexDesc, Membership, MemoryKind, Privileges, PrivilegesDesc,
    RoleDesc, SchemaDesc, SequenceDesc, Step, TableDesc, TableLockMode, Wait, WaitPolicy, oids,
};

use crate::index_build::build::{Build, CannotEnter};
use crate::index_build::concurrent_build::Filling;
use crate::memory::throttle::{PER_ENTRY, Purpose};
use crate::record;
use crate::shard::Inner;
use crate::storage::shape::Shape;
use crate::storage::unique;
use crate::storage::{IndexStore, TableStore, storage_id};
use crate::txn::Transaction;

/// Rows entered into a new index between two turns for other connections.
const ROWS_PER_STEP: u64 = 4096;

/// Something done to storage at once, to be undone with the transaction.
#[derive(Debug)]
pub(crate) enum Made {
    Storage(Arc<TableStore>),
    Index {
        store: Arc<TableStore>,
        index: Oid,
    },
    /// An index was taken away, or will be replaced by one that is built anew.
    Gone {
        store: Arc<TableStore>,
        before: Arc<IndexStore>,
    },
    Shape {
        store: Arc<TableStore>,
        before: Arc<Shape>,
    },
    /// What a state is kept under: of a new sequence, or after a restart.
    Sequence(Oid),
}

/// An object, and what it became (`None`: dropped).
pub(crate) type Change = (Oid, Option<Arc<CatalogObject>>);

/// The object that was put last. If it is put again with nothing between, as by ALTER TABLE with many commands, what it was
/// meanwhile is not kept: a definition may be long.
#[derive(Debug)]
pub(crate) struct LastPut {
    oid: Oid,
    /// Where the record says it, and where that ends: bytes of the record, those gone ahead included.
    begin: u64,
    end: u64,
}

/// The definitions of one transaction.
#[derive(Debug, Default)]
pub(crate) struct Definitions {
    /// In order.
    pub changes: Vec<Change>,
    pub made: Vec<Made>,
    /// The committed catalog that `own` was made from, and `own`.
    cached: RefCell<Option<(Arc<Catalog>, Arc<Catalog>)>>,
    build: Option<Build>,
    /// `None` after a savepoint: what was before it must be there to go back to.
    pub last_put: Option<LastPut>,
    pub filling: Option<Filling>,
}

/// The catalog of an empty shard.
pub(crate) fn initial() -> Catalog {
    let mut catalog = Catalog::default();
    catalog.version = 1;
    let owner = oids::ROLE_POSTGRES;
    let schema = |oid, database, name: &str| {
        CatalogObject::Schema(SchemaDesc { oid, database, name: name.to_string(), owner, comment: None })
    };
    let database = DatabaseDesc {
        oid: oids::DATABASE_POSTGRES,
        name: "postgres".to_string(),
        owner,
        comment: None,
        settings: Vec::new(),
    };
    for object in [
        CatalogObject::Database(database),
        CatalogObject::Role(RoleDesc::first(owner, "postgres")),
        schema(oids::SCHEMA_PG_CATALOG, Oid::INVALID, "pg_catalog"),
        schema(oids::SCHEMA_INFORMATION_SCHEMA, Oid::INVALID, "information_schema"),
        CatalogObject::Schema(SchemaDesc {
            oid: oids::SCHEMA_PUBLIC,
            database: oids::DATABASE_POSTGRES,
            name: "public".to_string(),
            owner: oids::ROLE_DATABASE_OWNER,
            comment: None,
        }),
    ] {
        catalog.put(Arc::new(object));
    }
    for (oid, name, member_of) in PREDEFINED {
        let membership = |&role| Membership { role, grantor: owner, admin: false };
        let member_of = member_of.iter().map(membership).collect();
        catalog.put(Arc::new(CatalogObject::Role(RoleDesc { member_of, ..RoleDesc::new(*oid, *name) })));
    }
    for (schema, owner, grants) in [
        (oids::SCHEMA_PG_CATALOG, owner, Privileges::USAGE),
        (oids::SCHEMA_INFORMATION_SCHEMA, owner, Privileges::USAGE),
        (oids::SCHEMA_PUBLIC, oids::ROLE_DATABASE_OWNER, Privileges::USAGE),
    ] {
        let item = |grantee, privileges| AclItem { grantee, grantor: owner, privileges, grantable: Privileges::NONE };
        let items = Some(vec![item(owner, Privileges::USAGE | Privileges::CREATE), item(Oid::INVALID, grants)]);
        let list = PrivilegesDesc { items, ..PrivilegesDesc::initial(schema) };
        catalog.put(Arc::new(CatalogObject::Privileges(list)));
    }
    templates(&catalog).into_iter().for_each(|object| catalog.put(Arc::new(object)));
    catalog
}

/// The databases that others are made like, with what is in them, as far as a catalog does not have them: those of directories that
/// are older than they.
pub(crate) fn templates(catalog: &Catalog) -> Vec<CatalogObject> {
    let owner = oids::ROLE_POSTGRES;
    let item = |grantee, privileges| AclItem { grantee, grantor: owner, privileges, grantable: Privileges::NONE };
    let list = |object, items| {
        CatalogObject::Privileges(PrivilegesDesc { items: Some(items), ..PrivilegesDesc::initial(object) })
    };
    let all = Privileges::CREATE | Privileges::TEMPORARY | Privileges::CONNECT;
    let mut missing = Vec::new();
    for (oid, public, name) in [
        (oids::DATABASE_TEMPLATE1, oids::SCHEMA_PUBLIC_TEMPLATE1, "template1"),
        (oids::DATABASE_TEMPLATE0, oids::SCHEMA_PUBLIC_TEMPLATE0, "template0"),
    ] {
        // One of somebody's own may have the name.
        if catalog.get(oid).is_some() || catalog.database(name).is_some() {
            continue;
        }
        let name = name.to_string();
        missing.extend([
            CatalogObject::Database(DatabaseDesc { oid, name, owner, comment: None, settings: Vec::new() }),
            CatalogObject::Schema(SchemaDesc {
                oid: public,
                database: oid,
                name: "public".to_string(),
                owner: oids::ROLE_DATABASE_OWNER,
                comment: None,
            }),
            list(oid, vec![item(Oid::INVALID, Privileges::CONNECT), item(owner, all)]),
            list(
                public,
                vec![item(owner, Privileges::USAGE | Privileges::CREATE), item(Oid::INVALID, Privileges::USAGE)],
            ),
        ]);
    }
    missing
}

/// Roles that exist from the start, with what they are members of.
const PREDEFINED: &[(Oid, &str, &[Oid])] = &[
    (oids::ROLE_DATABASE_OWNER, "pg_database_owner", &[]),
    (oids::ROLE_READ_ALL_DATA, "pg_read_all_data", &[]),
    (oids::ROLE_WRITE_ALL_DATA, "pg_write_all_data", &[]),
    (oids::ROLE_MONITOR, "pg_monitor", &[oids::ROLE_READ_ALL_SETTINGS, oids::ROLE_READ_ALL_STATS, Oid(3377)]),
    (oids::ROLE_READ_ALL_SETTINGS, "pg_read_all_settings", &[]),
    (oids::ROLE_READ_ALL_STATS, "pg_read_all_stats", &[]),
    (Oid(3377), "pg_stat_scan_tables", &[]),
    (Oid(4569), "pg_read_server_files", &[]),
    (Oid(4570), "pg_write_server_files", &[]),
    (Oid(4571), "pg_execute_server_program", &[]),
    (oids::ROLE_SIGNAL_BACKEND, "pg_signal_backend", &[]),
    (oids::ROLE_CHECKPOINT, "pg_checkpoint", &[]),
];

/// Applies changes in order.
pub(crate) fn apply(catalog: &mut Catalog, changes: &[Change]) {
    for (oid, change) in changes {
        match change {
            Some(object) => catalog.put(Arc::clone(object)),
            None => catalog.remove(*oid),
        }
    }
}

impl Definitions {
    /// The transaction's catalog over the newest committed one; kept for the next call.
    pub fn catalog(&self, committed: Arc<Catalog>) -> Arc<Catalog> {
        if self.changes.is_empty() {
            return committed;
        }
        let mut cached = self.cached.borrow_mut();
        if let Some((base, own)) = &*cached
            && Arc::ptr_eq(base, &committed)
        {
            return Arc::clone(own);
        }
        let mut own = Catalog::clone(&committed);
        apply(&mut own, &self.changes);
        let own = Arc::new(own);
        *cached = Some((committed, Arc::clone(&own)));
        own
    }

    /// Whether nothing was defined, nor a catalog made for what was.
    #[inline]
    pub fn are_untouched(&self) -> bool {
        let Definitions { changes, made, cached, build, last_put, filling } = self;
        changes.is_empty()
            && made.is_empty()
            && cached.borrow().is_none()
            && build.is_none()
            && last_put.is_none()
            && filling.is_none()
    }

    /// What the transaction keeps between the phases of its commit.
    pub fn hand_over(&mut self) -> Definitions {
        Definitions {
            changes: std::mem::take(&mut self.changes),
            made: std::mem::take(&mut self.made),
            ..Definitions::default()
        }
    }

    fn change(&mut self, oid: Oid, object: Option<Arc<CatalogObject>>) {
        let change = [(oid, object)];
        if let Some((_, own)) = self.cached.get_mut() {
            // Whoever has it keeps it as it was.
            apply(Arc::make_mut(own), &change);
        }
        self.changes.extend(change);
    }

    /// Goes back to an earlier number of changes and of things made.
    pub fn undo_to(&mut self, inner: &Inner, changes: usize, made: usize) {
        if self.are_untouched() {
            return;
        }
        self.build = None;
        self.filling = None;
        *self.cached.get_mut() = None;
        self.last_put = None;
        self.changes.truncate(changes);
        while self.made.len() > made {
            match self.made.pop().expect("longer than the mark") {
                Made::Storage(store) => {
                    store.abandon();
                    inner.tables.write().remove(&store.id);
                }
                Made::Index { store, index } => store.remove_index(index),
                Made::Gone { store, before } => store.add_index(before),
                Made::Shape { store, before } => drop(store.upkeep.replace_shape(before)),
                Made::Sequence(state_id) => inner.sequences.forget(state_id),
            }
        }
    }
}

/// Bytes of a definition that is written down at once.
const SHORT: usize = 256 << 10;

/// Takes what is short.
struct Short(Vec<u8>);

impl std::io::Write for Short {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.0.len() + bytes.len() > SHORT {
            return Err(std::io::ErrorKind::StorageFull.into());
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A definition as the log has it. A long one, of thousands of labels or with a text of megabytes, is written by another thread.
fn written(object: &Arc<CatalogObject>) -> Result<Vec<u8>> {
    let failed = |e: serde_json::Error| Error::internal(format!("catalog object: {e}"));
    let mut short = Short(Vec::new());
    match serde_json::to_writer(&mut short, &**object) {
        Ok(()) => Ok(short.0),
        Err(e) if e.is_io() => {
            let object = Arc::clone(object);
            work::elsewhere(move || serde_json::to_vec(&*object))?.map_err(failed)
        }
        Err(e) => Err(failed(e)),
    }
}

/// The lock that stands for a name: two transactions that make the same one meet here.
fn name_lock(object: &CatalogObject) -> Oid {
    use std::hash::{Hash, Hasher};
    let mut hasher = rustc_hash::FxHasher::default();
    (object.namespace(), object.name()).hash(&mut hasher);
    // Above all OIDs of objects.
    Oid(hasher.finish() as u32 | 1 << 31)
}

impl Transaction {
    /// See [`engine_api::Txn::put_object`].
    pub(crate) fn put(&mut self, object: CatalogObject) -> Result<Step<()>> {
        if self.definitions.build.is_some() {
            return self.go_on_building();
        }
        let catalog = self.catalog();
        if catalog.get(object.oid()).is_none() {
            // Never a wait.
            let _none = self.ask_memory(Purpose::Shrink, 0)?;
        }
        let taken = catalog
            .get(object.oid())
            .is_some_and(|old| old.namespace() == object.namespace() && old.name() == object.name());
        if !taken {
            if let Step::Wait(wait) =
                self.lock_relation(name_lock(&object), TableLockMode::AccessExclusive, WaitPolicy::Block)?
            {
                return Ok(Step::Wait(wait));
            }
            self.check_name(&object)?;
        }
        let object = Arc::new(object);
        match &*object {
            CatalogObject::Table(table) => self.put_table(table)?,
            CatalogObject::Index(index) => {
                let step = self.put_index(index)?;
                self.log_object(&object)?;
                return Ok(step);
            }
            CatalogObject::Sequence(sequence) => {
                let before = catalog.sequence(sequence.oid).map(SequenceDesc::state_id);
                if before != Some(sequence.state_id()) {
                    self.definitions.made.push(Made::Sequence(sequence.state_id()));
                }
            }
            _ => {}
        }
        self.log_object(&object)?;
        Ok(Step::Ready(()))
    }

    fn log_object(&mut self, object: &Arc<CatalogObject>) -> Result<()> {
        let json = written(object)?;
        let last = self.definitions.last_put.take();
        if let Some(again) = last.filter(|last| last.oid == object.oid() && last.end == self.redo_end())
            && let Some(kept) = again.begin.checked_sub(self.redo_ahead)
        {
            self.redo.truncate(kept as usize);
            self.definitions.changes.pop();
        }
        let begin = self.redo_end();
        record::put_object(&mut self.redo, &json);
        self.definitions.last_put = Some(LastPut { oid: object.oid(), begin, end: self.redo_end() });
        self.definitions.change(object.oid(), Some(Arc::clone(object)));
        Ok(())
    }

    /// Bytes of the record, those gone ahead included.
    pub(crate) fn redo_end(&self) -> u64 {
        self.redo_ahead + self.redo.len() as u64
    }

    /// Another object with the name may have been committed while this transaction waited for it.
    fn check_name(&mut self, object: &CatalogObject) -> Result<()> {
        let catalog = self.catalog();
        let holder = catalog.holder_of(object.namespace(), object.name());
        if holder.is_none_or(|holder| holder.oid() == object.oid()) {
            return Ok(());
        }
        let (code, what) = match object {
            CatalogObject::Database(_) => (SqlState::DUPLICATE_DATABASE, "database"),
            CatalogObject::Role(_) => (SqlState::DUPLICATE_OBJECT, "role"),
            CatalogObject::Schema(_) => (SqlState::DUPLICATE_SCHEMA, "schema"),
            CatalogObject::Type(_) => (SqlState::DUPLICATE_OBJECT, "type"),
            CatalogObject::Extension(_) => (SqlState::DUPLICATE_OBJECT, "extension"),
            _ => (SqlState::DUPLICATE_TABLE, "relation"),
        };
        Err(Error::new(code, format!("{what} \"{}\" already exists", object.name())))
    }

    fn put_table(&mut self, table: &TableDesc) -> Result<()> {
        if !table.is_stored() {
            return Ok(());
        }
        let inner = Arc::clone(&self.shard.0);
        let existing = inner.tables.read().get(&storage_id(table)).cloned();
        match existing {
            Some(store) => {
                let shape = Arc::new(Shape::of(table));
                let before = store.upkeep.replace_shape(shape);
                let is_again = self
                    .definitions
                    .last_put
                    .as_ref()
                    .is_some_and(|last| last.oid == table.oid && last.end == self.redo_end())
                    && matches!(self.definitions.made.last(), Some(Made::Shape { store: last, .. }) if Arc::ptr_eq(last, &store));
                if !is_again {
                    self.definitions.made.push(Made::Shape { store, before });
                }
            }
            None => {
                // New, truncated or rewritten: its indexes, if any, start empty and fill with the rows.
                let catalog = self.catalog();
                let compiler = inner.compiler.as_deref();
                let indexes = catalog.indexes(table.oid).filter(|desc| !desc.unready);
                let indexes = indexes
                    .map(|desc| IndexStore::empty(&inner.store, compiler, &catalog, table, desc.clone()))
                    .collect::<Result<Vec<_>>>()?;
                let store = Arc::new(TableStore::new(&inner.store, table, indexes));
                inner.tables.write().insert(store.id, Arc::clone(&store));
                self.definitions.made.push(Made::Storage(store));
            }
        }
        Ok(())
    }

    fn put_index(&mut self, index: &IndexDesc) -> Result<Step<()>> {
        let catalog = self.catalog();
        let table = catalog
            .table(index.table)
            .ok_or_else(|| Error::internal(format!("index \"{}\" of no table", index.name)))?;
        let store = self.shard.0.storage(table)?;
        let before = store.upkeep.current().indexes.iter().find(|i| i.desc.oid == index.oid).cloned();
        if let Some(before) = before {
            if before.desc.deferrable == index.deferrable && !index.unready {
                // Renamed, or made again with fresh storage: its entries are there.
                return Ok(Step::Ready(()));
            }
            if index.unready {
                store.remove_index(index.oid);
            }
            self.definitions.made.push(Made::Gone { store: Arc::clone(&store), before });
        }
        if index.unready {
            return Ok(Step::Ready(()));
        }
        let inner = &self.shard.0;
        let built = IndexStore::empty(&inner.store, inner.compiler.as_deref(), &catalog, table, index.clone())?;
        if index.invalid {
            // From now on who writes enters his keys; what is there already, `fill` will.
            store.add_index(Arc::clone(&built));
            self.definitions.made.push(Made::Index { store, index: index.oid });
            return Ok(Step::Ready(()));
        }
        let memory = Arc::clone(inner.store.memory());
        let own = self.core.as_ref().expect("a definition has started to write").id();
        self.definitions.build = Some(Build::begin(built, store, own, memory, MemoryKind::Statements as usize));
        self.go_on_building()
    }

    /// Enters some more rows. REQUIRES that nobody writes to the table (its Share lock).
    fn go_on_building(&mut self) -> Result<Step<()>> {
        let Some(mut build) = self.definitions.build.take() else { return Ok(Step::Ready(())) };
        match self.ask_memory(Purpose::Grow, ROWS_PER_STEP as usize * PER_ENTRY) {
            Ok(None) => {}
            Ok(Some(wait)) => {
                self.definitions.build = Some(build);
                return Ok(Step::Wait(wait));
            }
            Err(error) => return Err(error),
        }
        match build.step(ROWS_PER_STEP) {
            Ok(true) => {}
            Ok(false) => {
                self.definitions.build = Some(build);
                return Ok(Step::Wait(Wait::yield_now()));
            }
            Err(why) => {
                let shape = build.store.upkeep.current().shape.clone();
                return Err(self.cannot_build(&build.index, &shape, why));
            }
        }
        build.store.add_index(Arc::clone(&build.index));
        self.definitions.made.push(Made::Index { store: Arc::clone(&build.store), index: build.index.desc.oid });
        Ok(Step::Ready(()))
    }

    pub(crate) fn cannot_build(&mut self, index: &IndexStore, shape: &Shape, why: CannotEnter) -> Error {
        let desc = &index.desc;
        let (layout, tuple) = match why {
            CannotEnter::TooLong(key) => return unique::too_long(index, key),
            CannotEnter::Refused(error) => return *error,
            CannotEnter::Duplicate(layout, tuple) => (layout, tuple),
        };
        let catalog = self.catalog();
        let Some(table) = catalog.table(desc.table) else { return Error::internal("the table went away") };
        Error::new(SqlState::UNIQUE_VIOLATION, format!("could not create unique index \"{}\"", desc.name))
            .detail(format!("Key {} is duplicated.", shape.key_text(table, index, layout, &tuple)))
            .schema(unique::schema_of(&catalog, table))
            .table(&table.name)
            .constraint(&desc.name)
    }

    /// See [`engine_api::Txn::drop_object`].
    pub(crate) fn drop_definition(&mut self, oid: Oid) -> Result<()> {
        self.start_writing()?;
        // So that the change is made to what is kept, instead of all changes again at the next look.
        drop(self.catalog());
        record::drop_object(&mut self.redo, oid);
        self.definitions.change(oid, None);
        Ok(())
    }

    /// See [`engine_api::Txn::truncate`].
    pub(crate) fn truncate_table(&mut self, table: Oid) -> Result<()> {
        let catalog = self.catalog();
        let mut desc =
            catalog.table(table).cloned().ok_or_else(|| Error::internal(format!("no table {table} to truncate")))?;
        desc.storage += 1;
        self.start_writing()?;
        self.put_table(&desc)?;
        self.log_object(&Arc::new(CatalogObject::Table(desc)))
    }
}
