//! Checks of deferred constraints: the queue of the transaction, SET CONSTRAINTS, and looking at what is due.
//!
//! Responsible for: what waits for COMMIT, for PREPARE TRANSACTION or for SET CONSTRAINTS … IMMEDIATE, and how savepoints cut it.
//! Not responsible for: what a statement defers (`sql_exec::deferral`); how a check is done (`sql_exec::foreign_key`, the engine).
//! Invariants: the queue is empty unless a deferred constraint was touched. What was checked stays in it while there are
//! savepoints: going back to one makes it due again, as on PostgreSQL.

use std::cell::{Ref, RefCell, RefMut};
use std::collections::hash_map::Entry;
use std::sync::Arc;

use base::{Error, Oid, Result, RowId, Severity, SqlState};
use engine_api::{Catalog, RowBatch, Step, TableLockMode, WaitPolicy};
use rupg_sql::nodes::{ConstraintsSetStmt, Node, RangeVar};
use rustc_hash::FxHashMap;
use sql_exec::foreign_key::{ParentSearch, is_back, lock_parent, needs_parent, not_present, still_referenced};
use sql_exec::{Check, Deferrals, Execution, Held, MemoryBudget};
use sql_functions::reader;
use sql_ir::row_codec::RowReader;
use sql_parse::privileges::shown;
use sql_plan::{self as plan, EngineRows, PlannedTable, ReferencedKey, ReferencingKey};
use types::Datum;

use super::context::StatementContext;
use super::drive::RowList;
use super::{Block, Session};

/// Bytes of a check in the queue.
fn bytes_of(check: &Check) -> usize {
    size_of::<Queued>() + check.bytes()
}

#[derive(Debug)]
struct Queued {
    check: Check,
    /// The round in which it was looked at.
    done: Option<u64>,
}

/// What SET CONSTRAINTS has said in this transaction.
#[derive(Clone, Debug, Default)]
struct Said {
    all: Option<bool>,
    each: FxHashMap<Oid, bool>,
}

/// The deferred checks of a transaction.
#[derive(Debug, Default)]
pub(crate) struct Deferred {
    said: Option<Arc<Said>>,
    queue: Vec<Queued>,
    /// Rises with each savepoint.
    round: u64,
    held: Held,
}

/// The deferred checks as statements that run share them.
#[derive(Debug, Default)]
pub(crate) struct SharedDeferred(RefCell<Deferred>);

impl SharedDeferred {
    pub(crate) fn borrow(&self) -> Ref<'_, Deferred> {
        self.0.borrow()
    }

    pub(crate) fn borrow_mut(&self) -> RefMut<'_, Deferred> {
        self.0.borrow_mut()
    }
}

impl Deferrals for SharedDeferred {
    fn is_deferred(&self, constraint: Oid, initially: bool) -> bool {
        self.borrow().is_deferred(constraint, initially)
    }

    fn defer(&self, check: Check, memory: &Arc<MemoryBudget>) -> Result<()> {
        self.borrow_mut().push(check, memory)
    }
}

/// How far the queue was at a savepoint.
#[derive(Clone, Debug)]
pub(super) struct Mark {
    len: usize,
    round: u64,
    said: Option<Arc<Said>>,
}

impl Deferred {
    /// Whether a deferrable constraint is deferred now.
    pub fn is_deferred(&self, constraint: Oid, initially: bool) -> bool {
        let Some(said) = &self.said else { return initially };
        said.each.get(&constraint).copied().or(said.all).unwrap_or(initially)
    }

    /// Puts a check into the queue.
    ///
    /// # Errors
    /// 53200 beyond the budget.
    pub fn push(&mut self, check: Check, memory: &Arc<MemoryBudget>) -> Result<()> {
        self.held.charge(bytes_of(&check), memory)?;
        self.queue.push(Queued { check, done: None });
        Ok(())
    }

    /// Whether a table's rows wait for a check.
    pub fn concerns(&self, table: Oid) -> bool {
        self.queue.iter().any(|q| q.done.is_none() && q.check.table() == table)
    }

    pub(super) fn is_untouched(&self) -> bool {
        self.queue.is_empty() && self.said.is_none()
    }

    pub(super) fn mark(&mut self) -> Mark {
        self.round += 1;
        Mark { len: self.queue.len(), round: self.round, said: self.said.clone() }
    }

    pub(super) fn undo_to(&mut self, mark: &Mark) {
        let gone = self.queue.drain(mark.len.min(self.queue.len())..).map(|q| bytes_of(&q.check)).sum();
        self.held.forget(gone);
        for queued in &mut self.queue {
            if queued.done.is_some_and(|round| round >= mark.round) {
                queued.done = None;
            }
        }
        self.said.clone_from(&mark.said);
    }

    /// The transaction is over.
    pub(super) fn clear(&mut self) {
        self.round = 0;
        if !self.is_untouched() {
            *self = Deferred::default();
        }
    }

    /// The next check from `at` on that is due, which then counts as done.
    fn next_due(&mut self, at: &mut usize, all: bool) -> Option<Check> {
        while let Some(queued) = self.queue.get(*at) {
            // What is in the queue was deferred when it came: it waits unless the last word about it is IMMEDIATE.
            let waits = !all && self.is_deferred(queued.check.constraint(), true);
            if queued.done.is_none() && !waits {
                self.queue[*at].done = Some(self.round);
                return Some(self.queue[*at].check.clone());
            }
            *at += 1;
        }
        None
    }

    fn say(&mut self, constraints: Option<&[Oid]>, deferred: bool) {
        let said = Arc::make_mut(self.said.get_or_insert_default());
        match constraints {
            None => *said = Said { all: Some(deferred), each: FxHashMap::default() },
            Some(list) => said.each.extend(list.iter().map(|&oid| (oid, deferred))),
        }
    }
}

/// A foreign key as the table that points sees it.
struct ChildKey {
    key: Arc<ReferencingKey>,
    table: Arc<PlannedTable>,
    reader: RowReader,
}

/// A foreign key as the table that is pointed to sees it.
struct ParentKey {
    key: Arc<ReferencedKey>,
    table: Arc<PlannedTable>,
}

/// What checks of one round work with.
#[derive(Default)]
struct Keys {
    children: FxHashMap<Oid, Option<ChildKey>>,
    parents: FxHashMap<Oid, Option<ParentKey>>,
    rows: RowBatch,
}

fn child_key(catalog: &Catalog, table: Oid, constraint: Oid) -> Result<Option<ChildKey>> {
    if catalog.table(table).is_none() {
        return Ok(None);
    }
    let info = sql_bind::own::table_info(catalog, table)?;
    let keys = plan::referencing(&info, catalog)?;
    let Some(key) = keys.into_iter().find(|key| key.oid == constraint) else { return Ok(None) };
    let columns: Vec<_> = key.columns.iter().enumerate().map(|(slot, &column)| (column, slot as u32)).collect();
    let reader = RowReader::new(&info, &columns, None)?;
    Ok(Some(ChildKey { key, reader, table: PlannedTable::new(&info) }))
}

fn parent_key(catalog: &Catalog, table: Oid, constraint: Oid) -> Result<Option<ParentKey>> {
    if catalog.table(table).is_none() {
        return Ok(None);
    }
    let info = sql_bind::own::table_info(catalog, table)?;
    let keys = plan::referenced(&info, catalog)?;
    let key = keys.into_iter().find(|key| key.oid == constraint);
    Ok(key.map(|key| ParentKey { key, table: PlannedTable::new(&info) }))
}

/// Checks between two turns for other connections.
const CHECKS_PER_TURN: usize = 256;

impl Session {
    /// Looks at everything that was deferred to the end of the transaction.
    ///
    /// # Errors
    /// 23503 and 23505, as the statements would have answered.
    pub(super) async fn check_deferred(&mut self) -> Result<()> {
        if self.environment.deferred.borrow().queue.is_empty() {
            return Ok(());
        }
        Box::pin(self.look_at_due(true)).await
    }

    async fn look_at_due(&mut self, all: bool) -> Result<()> {
        let (mut at, mut count, mut keys) = (0, 0, Keys::default());
        self.transaction().begin_command();
        loop {
            let due = self.environment.deferred.borrow_mut().next_due(&mut at, all);
            let Some(check) = due else { break };
            match check {
                Check::Child { constraint, table, row } => {
                    self.look_at_child(constraint, table, row, &mut keys).await?
                }
                Check::Parent { constraint, table, old } => {
                    self.look_at_parent(constraint, table, &old, &mut keys).await?;
                }
                Check::Unique { table, index, row, .. } => self.look_at_unique(table, index, row).await?,
            }
            count += 1;
            if count % CHECKS_PER_TURN == 0 {
                self.wait_for_lock(engine_api::Wait::yield_now()).await?;
            }
        }
        if let Some(txn) = &mut self.txn {
            txn.end_command();
        }
        Ok(())
    }

    /// A row that points to another, as it is by now: the other must be there.
    async fn look_at_child(&mut self, constraint: Oid, table: Oid, row: RowId, keys: &mut Keys) -> Result<()> {
        let child = match keys.children.entry(constraint) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(free) => free.insert(child_key(&self.catalog(), table, constraint)?),
        };
        let Some(child) = child else { return Ok(()) };
        let mut values = vec![Datum::Null; child.key.columns.len()];
        {
            let txn = self.transaction();
            let opened = child.table.open(txn)?;
            keys.rows.clear();
            if !txn.fetch(opened, row, &mut keys.rows)? {
                return Ok(());
            }
            child.reader.read(keys.rows.row(0), &mut values);
        }
        let desc = &child.table.info.desc;
        let own = self.catalog();
        let held = {
            let eval = StatementContext::new(&self.environment, Arc::clone(&own));
            if !needs_parent(&child.key, desc, &values, &eval)? {
                return Ok(());
            }
            child.key.as_held(&values, &eval)?
        };
        let mut search = ParentSearch::default();
        while let Some(held) = &held {
            match lock_parent(&child.key, held, &mut search, self.transaction())? {
                Step::Ready(true) => return Ok(()),
                Step::Ready(false) => break,
                Step::Wait(wait) => self.wait_for_lock(wait).await?,
            }
        }
        Err(not_present(&child.key, desc, &values, &StatementContext::new(&self.environment, own)))
    }

    /// A key that has gone: nobody may point to it, unless it is back.
    async fn look_at_parent(&mut self, constraint: Oid, table: Oid, old: &[Datum], keys: &mut Keys) -> Result<()> {
        let catalog = self.catalog();
        let parent = match keys.parents.entry(constraint) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(free) => free.insert(parent_key(&catalog, table, constraint)?),
        };
        let Some(parent) = parent else { return Ok(()) };
        if is_back(&parent.key, &parent.table, old, &mut keys.rows, self.transaction())? {
            return Ok(());
        }
        let desc = &parent.table.info.desc;
        let plan = {
            let eval = StatementContext::new(&self.environment, Arc::clone(&catalog));
            parent.key.check_plan(desc, &catalog, &eval, &EngineRows(&*self.shared.engine))?
        };
        loop {
            match self.transaction().lock_table(parent.key.child, TableLockMode::RowShare, WaitPolicy::Block)? {
                Step::Ready(()) => break,
                Step::Wait(wait) => self.wait_for_lock(wait).await?,
            }
        }
        self.transaction().begin_newest_command();
        let mut params = old.to_vec();
        params.resize(old.len() * 2, Datum::Null);
        let mut rows = RowList::default();
        self.drive_into(&mut Execution::new(plan, params), &mut rows).await?;
        self.transaction().begin_command();
        if rows.0.is_empty() {
            return Ok(());
        }
        let eval = StatementContext::new(&self.environment, catalog);
        Err(still_referenced(&parent.key, desc, old, &eval))
    }

    /// A row whose key another row may have had.
    async fn look_at_unique(&mut self, table: Oid, index: Oid, row: RowId) -> Result<()> {
        if self.catalog().table(table).is_none() {
            return Ok(());
        }
        let opened = self.transaction().open_table(table)?;
        loop {
            let proven = self.transaction().prove_unique(&opened, index, row);
            let proven = proven.map_err(|error| {
                let eval = StatementContext::new(&self.environment, self.catalog());
                shown::within_rights(error, || reader(&eval))
            });
            match proven? {
                Step::Ready(()) => return Ok(()),
                Step::Wait(wait) => self.wait_for_lock(wait).await?,
            }
        }
    }

    /// SET CONSTRAINTS.
    pub(super) async fn set_constraints(&mut self, stmt: &ConstraintsSetStmt) -> Result<&'static str> {
        if self.block == Block::None && !self.implicit_block {
            self.push_notice(Error::with_severity(
                Severity::Warning,
                SqlState::NO_ACTIVE_SQL_TRANSACTION,
                "SET CONSTRAINTS can only be used in transaction blocks",
            ));
        }
        self.ensure_transaction()?;
        let names = stmt.constraints.iter().flatten().filter_map(|node| match node {
            Node::RangeVar(name) => Some(&**name),
            _ => None,
        });
        let mut found = Vec::new();
        for name in names {
            found.extend(self.constraints_named(name, stmt.deferred)?);
        }
        let list = (!stmt.constraints.is_empty()).then_some(&found[..]);
        self.environment.deferred.borrow_mut().say(list, stmt.deferred);
        if !stmt.deferred && !self.environment.deferred.borrow().queue.is_empty() {
            Box::pin(self.look_at_due(false)).await?;
        }
        Ok("SET CONSTRAINTS")
    }

    /// The deferrable constraints that a name means: those of the first schema of the path that has some with the name.
    fn constraints_named(&mut self, name: &RangeVar, deferred: bool) -> Result<Vec<Oid>> {
        let catalog = self.catalog();
        let constraint = name.relname.as_deref().unwrap_or_default();
        let identity = self.identity();
        if let Some(database) = name.catalogname.as_deref().filter(|database| *database != identity.database) {
            let schema = name.schemaname.as_deref().unwrap_or_default();
            return Err(Error::unsupported(format!(
                "cross-database references are not implemented: \"{database}.{schema}.{constraint}\""
            )));
        }
        let path = match name.schemaname.as_deref() {
            Some(schema) => {
                let found = catalog.schema(identity.database_oid, schema).ok_or_else(|| {
                    Error::new(SqlState::INVALID_SCHEMA_NAME, format!("schema \"{schema}\" does not exist"))
                })?;
                vec![found.oid]
            }
            None => self.resolve_search_path(&catalog),
        };
        for schema in path {
            let tables = catalog.walk().filter_map(|o| catalog.table(o.oid())).filter(|t| t.schema == schema);
            let named: Vec<_> = tables.flat_map(|t| &t.constraints).filter(|c| c.name == constraint).collect();
            if named.is_empty() {
                continue;
            }
            if deferred && named.iter().any(|c| !c.deferrable) {
                let message = format!("constraint \"{constraint}\" is not deferrable");
                return Err(Error::new(SqlState::WRONG_OBJECT_TYPE, message));
            }
            return Ok(named.iter().filter(|c| c.deferrable).map(|c| c.oid).collect());
        }
        Err(Error::new(SqlState::UNDEFINED_OBJECT, format!("constraint \"{constraint}\" does not exist")))
    }
}
