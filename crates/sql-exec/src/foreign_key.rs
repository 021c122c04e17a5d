//! Foreign keys: the changes of a statement are noted row by row and checked when all rows are done.
//!
//! What was noted is a queue, in the order of PostgreSQL's triggers: row by row, and of a row first the keys that others point to. What
//! a cascade changes is noted behind it ([`Constraints::finish`]), so that a check sees what the cascades before it have done: a
//! row that two of them reach is gone when the key that only one of them follows is checked.
//!
//! Invariants: a row that points to another holds KEY SHARE on it, so the key it points to stays (rule R7); checks read the
//! newest committed versions, not the statement's view. Above READ COMMITTED a row points only to what the transaction's
//! snapshot has, and a row that is newer than the snapshot is not changed by a cascade (40001), as on PostgreSQL.

use std::sync::Arc;

use base::{Error, Oid, Result, RowId, SqlState};
use engine_api::{
    ForeignKeyAction, Isolation, RowBatch, RowLockMode, RowLockOutcome, Step, TableDesc, TableLockMode, Txn, WaitPolicy,
};
use sql_functions::{self as functions, EvalContext};
use sql_ir::row_codec::RowReader;
use sql_parse::privileges::shown;
use sql_plan::{EngineRows, KeyColumn, ParentChange, Plan, PlannedTable, ReferencedKey, ReferencingKey, Target};
use types::Datum;

use super::cte::HasTarget;
use super::deferral::Unproven;
use super::lock_rows::only_locks;
use super::scan::fitted_key;
use super::{Cx, Machine, Next};

/// What one statement has to look at.
pub(super) struct Constraints {
    /// Keys of the row as it was: of `references`, then of `referenced`.
    old: Vec<Vec<Datum>>,
    pub(super) noted: Vec<Noted>,
    /// Rows whose keys in deferrable unique indexes are looked at when the statement is done.
    pub(super) to_prove: Vec<Unproven>,
    /// How far [`Constraints::run`] has come.
    deferred: bool,
    started: bool,
    pub(super) proved: usize,
    /// How many of `noted` are done.
    done: usize,
    following: Option<Following>,
    watches: bool,
    /// The whole statement has what was noted ([`Constraints::finish`]).
    handed_over: bool,
    search: ParentSearch,
    rows: RowBatch,
    /// Reads the columns of a foreign key of a row.
    reader: Option<(usize, RowReader)>,
}

/// What the change of one row gives to look at.
pub(super) enum Noted {
    /// The row points to another.
    Child {
        /// The foreign key.
        key: usize,
        values: Vec<Datum>,
        row: RowId,
    },
    /// Others may have pointed to the row.
    Parent {
        /// The foreign key of the other table.
        key: usize,
        old: Vec<Datum>,
        /// `None`: it is deleted.
        new: Option<Vec<Datum>>,
    },
}

/// A statement that follows a change.
struct Following {
    plan: Arc<Plan>,
    machine: Option<Machine>,
    /// It looks for rows that must not be there, and changes nothing.
    checks: bool,
}

fn values(target: &Target, columns: &[usize], registers: &[Datum]) -> Vec<Datum> {
    columns.iter().map(|c| registers[target.slots[*c] as usize].clone()).collect()
}

fn same(a: &[Datum], b: &[Datum]) -> bool {
    a.iter().zip(b).all(|(a, b)| match (a.is_null(), b.is_null()) {
        (false, false) => types::compare(&a.as_ref(), &b.as_ref()).is_eq(),
        (a, b) => a == b,
    })
}

impl Constraints {
    pub fn new(target: &Target) -> Constraints {
        Constraints {
            old: Vec::new(),
            noted: Vec::new(),
            to_prove: Vec::new(),
            deferred: false,
            started: false,
            proved: 0,
            done: 0,
            following: None,
            watches: !target.references.is_empty() || !target.referenced.is_empty(),
            handed_over: false,
            search: ParentSearch::default(),
            rows: RowBatch::new(),
            reader: None,
        }
    }

    /// Whether no row is noted.
    pub(super) fn is_empty(&self) -> bool {
        self.noted.is_empty()
    }

    /// Puts what another run of the same statement has noted behind what this one has. REQUIRES that neither was looked at yet.
    pub(super) fn add(&mut self, other: Constraints) {
        self.noted.extend(other.noted);
    }

    pub fn clear(&mut self) {
        self.noted.clear();
        self.to_prove.clear();
        self.deferred = false;
        self.started = false;
        self.handed_over = false;
        self.proved = 0;
        self.search.found = None;
        self.done = 0;
        self.following = None;
    }

    /// Notes the keys of a row before it changes.
    pub(crate) fn note_old(&mut self, target: &Target, registers: &[Datum]) {
        if !self.watches {
            return;
        }
        self.old.clear();
        self.old.extend(target.references.iter().map(|k| values(target, &k.columns, registers)));
        self.old.extend(target.referenced.iter().map(|k| values(target, &k.columns, registers)));
    }

    /// Notes where a row points to. `alone`: nothing else than this statement's rows change with it.
    fn note_child(&mut self, target: &Target, key: usize, values: Vec<Datum>, row: RowId, alone: bool) {
        // A row that is looked at later, or that a cascade may reach, may go before; then another one with the same key counts.
        let each = !alone || !target.referenced.is_empty() || target.references[key].deferred.is_some();
        let is_same =
            |noted: &Noted| matches!(noted, Noted::Child { key: k, values: v, .. } if *k == key && same(v, &values));
        if each || !self.noted.last().is_some_and(is_same) {
            self.noted.push(Noted::Child { key, values, row });
        }
    }

    /// Notes a new row.
    pub(crate) fn note_inserted(&mut self, target: &Target, row: RowId, registers: &[Datum], cx: &Cx<'_, '_>) {
        for (i, key) in target.references.iter().enumerate() {
            self.note_child(target, i, values(target, &key.columns, registers), row, !cx.run.shared.defers());
        }
    }

    /// Notes a row after it has changed.
    pub(crate) fn note_updated(&mut self, target: &Target, row: RowId, registers: &[Datum], cx: &Cx<'_, '_>) {
        if !self.watches {
            return;
        }
        let mut old = std::mem::take(&mut self.old);
        let of_parents = old.drain(target.references.len().min(old.len())..);
        for (i, (key, old)) in target.referenced.iter().zip(of_parents).enumerate() {
            let new = values(target, &key.columns, registers);
            // Rows that point to it follow it to the last digit.
            if !old.iter().zip(&new).all(|(old, new)| old.is_identical(new)) {
                self.noted.push(Noted::Parent { key: i, old, new: Some(new) });
            }
        }
        for (i, (key, old)) in target.references.iter().zip(old).enumerate() {
            let new = values(target, &key.columns, registers);
            if !same(&old, &new) {
                self.note_child(target, i, new, row, !cx.run.shared.defers());
            }
        }
    }

    /// Notes that the row of [`Constraints::note_old`] is deleted.
    pub(crate) fn note_deleted(&mut self, target: &Target) {
        if !self.watches {
            return;
        }
        let old = std::mem::take(&mut self.old).into_iter().skip(target.references.len());
        self.noted.extend(old.enumerate().map(|(key, old)| Noted::Parent { key, old, new: None }));
    }

    /// All rows are done: looks at everything that was noted, and at what that changes in turn; or leaves it to the end of the
    /// whole statement if other parts of it change rows too, or if it follows a change itself. `Done` when all is well.
    ///
    /// # Errors
    /// Those of [`Constraints::run`].
    pub fn finish<N>(&mut self, node: &Arc<N>, cx: &mut Cx<'_, '_>) -> Result<Next>
    where
        Arc<N>: HasTarget + 'static,
    {
        if !cx.run.shared.defers() {
            return match self.run(node.target(), cx)? {
                Next::Done if cx.run.shared.has_deferred() => cx.run.finish_deferred(cx.plan),
                next => Ok(next),
            };
        }
        if !self.handed_over {
            let noted = std::mem::replace(self, Constraints::new(node.target()));
            cx.run.shared.defer(noted, Box::new(Arc::clone(node)));
            self.handed_over = true;
        }
        Ok(Next::Done)
    }

    /// Looks at everything that was noted. `Done` when all is well.
    ///
    /// # Errors
    /// 23503, 23505, and those of cascades.
    pub fn run(&mut self, target: &Target, cx: &mut Cx<'_, '_>) -> Result<Next> {
        if target.may_defer {
            if !self.deferred {
                self.defer_checks(target, cx)?;
                self.deferred = true;
            }
            if let Some(wait) = self.prove(cx)? {
                return Ok(Next::Wait(wait));
            }
        }
        while let Some(noted) = self.noted.get(self.done) {
            let wait = match noted {
                Noted::Child { .. } => self.find(target, cx)?,
                Noted::Parent { .. } => self.follow(target, cx)?,
            };
            if let Some(wait) = wait {
                return Ok(Next::Wait(wait));
            }
            self.following = None;
            self.done += 1;
            if let Some(wait) = cx.run.tick(1)? {
                return Ok(Next::Wait(wait));
            }
        }
        Ok(Next::Done)
    }

    /// Looks for the row that a row points to.
    fn find(&mut self, target: &Target, cx: &mut Cx<'_, '_>) -> Result<Option<engine_api::Wait>> {
        if !self.started {
            // What the statement itself has written is there to be pointed to.
            cx.run.txn.begin_command();
            self.started = true;
        }
        if cx.run.shared.has_cascaded && self.is_passed(target, cx)? {
            return Ok(None);
        }
        let Some(Noted::Child { key, values, .. }) = self.noted.get(self.done) else { return Ok(None) };
        let key = &target.references[*key];
        let child = &target.table.info.desc;
        if !needs_parent(key, child, values, cx.run.eval)? {
            return Ok(None);
        }
        let found = match key.as_held(values, cx.run.eval)? {
            Some(held) => lock_parent(key, &held, &mut self.search, cx.run.txn)?,
            None => Step::Ready(false),
        };
        match found {
            Step::Ready(true) => Ok(None),
            Step::Ready(false) => Err(not_present(key, child, values, cx.run.eval)),
            Step::Wait(wait) => Ok(Some(wait)),
        }
    }

    /// Whether a cascade has deleted the row, or changed where it points to: that change has been noted for itself.
    fn is_passed(&mut self, target: &Target, cx: &mut Cx<'_, '_>) -> Result<bool> {
        let Some(Noted::Child { key, values, row }) = self.noted.get(self.done) else { return Ok(false) };
        let reader = match &mut self.reader {
            Some((of, reader)) if of == key => reader,
            reader => {
                let columns = target.references[*key].columns.iter().enumerate();
                let places: Vec<_> = columns.map(|(slot, &column)| (column, slot as u32)).collect();
                &mut reader.insert((*key, RowReader::new(&target.table.info, &places, None)?)).1
            }
        };
        let table = target.table.open(cx.run.txn)?;
        self.rows.clear();
        if !cx.run.txn.fetch(table, *row, &mut self.rows)? {
            return Ok(true);
        }
        let mut now = vec![Datum::Null; values.len()];
        reader.read(self.rows.row(0), &mut now);
        Ok(!same(&now, values))
    }

    /// Does what a foreign key of another table demands after a row here changed.
    fn follow(&mut self, target: &Target, cx: &mut Cx<'_, '_>) -> Result<Option<engine_api::Wait>> {
        let Some(Noted::Parent { key: number, old, new }) = self.noted.get(self.done) else { return Ok(None) };
        if old.iter().any(Datum::is_null) {
            return Ok(None);
        }
        let key = Arc::clone(&target.referenced[*number]);
        let change = if new.is_some() { ParentChange::KeyUpdated } else { ParentChange::Deleted };
        let action = key.action(change);
        let old = old.clone();
        let new = new.clone();
        if self.following.is_none() {
            if action == ForeignKeyAction::NoAction && is_back(&key, &target.table, &old, &mut self.rows, cx.run.txn)? {
                return Ok(None);
            }
            let catalog = cx.run.txn.catalog();
            let plan = {
                let stats = EngineRows(cx.run.txn.engine());
                key.plan(change, &target.table.info.desc, &catalog, cx.run.eval, &stats)?
            };
            let checks = matches!(action, ForeignKeyAction::NoAction | ForeignKeyAction::Restrict);
            self.following = Some(Following { plan, machine: None, checks });
        }
        let Some(following) = &mut self.following else { return Ok(None) };
        if following.machine.is_none() {
            let mode = if following.checks { TableLockMode::RowShare } else { TableLockMode::RowExclusive };
            if let Step::Wait(wait) = cx.run.txn.lock_table(key.child, mode, WaitPolicy::Block)? {
                return Ok(Some(wait));
            }
            cx.run.txn.begin_newest_command();
            self.started = false;
            cx.run.shared.has_cascaded |= !following.checks;
            let mut params = old.clone();
            params.extend(new.unwrap_or_else(|| vec![Datum::Null; old.len()]));
            following.machine = Some(Machine::new(following.plan.query(), params));
        }
        let Some(machine) = &mut following.machine else { return Ok(None) };
        match machine.next_behind(cx.run)? {
            Next::Wait(wait) => Ok(Some(wait)),
            Next::Row if following.checks => Err(still_referenced(&key, &target.table.info.desc, &old, cx.run.eval)),
            Next::Row | Next::Done if action == ForeignKeyAction::SetDefault && !following.checks => {
                // Rows whose default is the key that goes have not changed, so nothing has looked at them. Another row may have the key by now.
                if is_back(&key, &target.table, &old, &mut self.rows, cx.run.txn)? {
                    return Ok(None);
                }
                let catalog = cx.run.txn.catalog();
                let plan = {
                    let stats = EngineRows(cx.run.txn.engine());
                    key.check_plan(&target.table.info.desc, &catalog, cx.run.eval, &stats)?
                };
                self.following = Some(Following { plan, machine: None, checks: true });
                self.follow(target, cx)
            }
            Next::Row | Next::Done => Ok(None),
        }
    }
}

/// Whether a foreign key's values have to be there in the other table.
///
/// # Errors
/// 23503 if some are NULL and that is not allowed.
pub fn needs_parent(key: &ReferencingKey, child: &TableDesc, values: &[Datum], eval: &dyn EvalContext) -> Result<bool> {
    let nulls = values.iter().filter(|v| v.is_null()).count();
    if nulls == 0 {
        return Ok(true);
    }
    if nulls == values.len() || !key.match_full {
        return Ok(false);
    }
    Err(violation(key, child, eval).detail("MATCH FULL does not allow mixing of null and nonnull key values."))
}

/// The search for the row that a key points to, over waits.
#[derive(Default)]
pub struct ParentSearch {
    /// What was found, and how many of them are not it. `None`: nothing was looked for yet.
    found: Option<(Vec<RowId>, usize)>,
    rows: RowBatch,
}

/// Locks the row that a key, held as its parent's ([`ReferencingKey::as_held`]), points to; `false` if there is none. To be called again after a wait: a row that was waited for and
/// is deleted is gone, even if another has its key by then, as on PostgreSQL.
pub fn lock_parent(
    key: &ReferencingKey,
    values: &[Datum],
    search: &mut ParentSearch,
    txn: &mut dyn Txn,
) -> Result<Step<bool>> {
    loop {
        let (rows, at) = match search.found.take() {
            Some(found) => found,
            None => {
                let newest = txn.isolation() == Isolation::ReadCommitted;
                let rows = rows_with_key(&key.parent, key.index, &key.key, values, newest, &mut search.rows, txn)?;
                (rows, 0)
            }
        };
        let Some(&row) = rows.get(at) else { return Ok(Step::Ready(false)) };
        let table = key.parent.open(txn)?;
        search.rows.clear();
        let step = txn.lock_row(table, row, RowLockMode::KeyShare, WaitPolicy::Block, &mut search.rows);
        match step.map_err(only_locks)? {
            Step::Ready(RowLockOutcome::Locked | RowLockOutcome::Own) => return Ok(Step::Ready(true)),
            Step::Ready(RowLockOutcome::Moved) => {
                let again = rows_with_key(&key.parent, key.index, &key.key, values, true, &mut search.rows, txn)?;
                if again.contains(&row) {
                    return Ok(Step::Ready(true));
                }
                // Its key has gone elsewhere while its lock was waited for. It is looked for again, as often as that happens:
                // another may have got the key meanwhile.
            }
            Step::Ready(RowLockOutcome::OwnUnlocked | RowLockOutcome::Gone | RowLockOutcome::Skipped) => {
                search.found = Some((rows, at + 1))
            }
            Step::Wait(wait) => {
                search.found = Some((rows, at));
                return Ok(Step::Wait(wait));
            }
        }
    }
}

/// Whether a key that a row has lost is another row's, or its own again.
pub fn is_back(
    key: &ReferencedKey,
    parent: &PlannedTable,
    old: &[Datum],
    found: &mut RowBatch,
    txn: &mut dyn Txn,
) -> Result<bool> {
    Ok(!rows_with_key(parent, key.index, &key.key, old, true, found, txn)?.is_empty())
}

fn schema_name(table: &TableDesc, eval: &dyn EvalContext) -> String {
    eval.catalog().get(table.schema).map(|s| s.name().to_string()).unwrap_or_default()
}

fn violation(key: &ReferencingKey, child: &TableDesc, eval: &dyn EvalContext) -> Error {
    Error::new(
        SqlState::FOREIGN_KEY_VIOLATION,
        format!("insert or update on table \"{}\" violates foreign key constraint \"{}\"", child.name, key.constraint),
    )
    .schema(schema_name(child, eval))
    .table(&child.name)
    .constraint(&key.constraint)
}

/// 23503 for a row that points to nothing.
pub fn not_present(key: &ReferencingKey, child: &TableDesc, values: &[Datum], eval: &dyn EvalContext) -> Error {
    let key_text = show_key(child, &key.columns, values, eval);
    let detail = format!("Key {key_text}is not present in table \"{}\".", key.parent.info.desc.name);
    violation(key, child, eval).detail(detail)
}

/// 23503 for a row that others still point to.
pub fn still_referenced(key: &ReferencedKey, parent: &TableDesc, old: &[Datum], eval: &dyn EvalContext) -> Error {
    let key_text = show_key(parent, &key.columns, old, eval);
    let catalog = eval.catalog();
    let schema = catalog.table(key.child).and_then(|t| catalog.get(t.schema)).map(|s| s.name().to_string());
    Error::new(
        SqlState::FOREIGN_KEY_VIOLATION,
        format!(
            "update or delete on table \"{}\" violates foreign key constraint \"{}\" on table \"{}\"",
            parent.name, key.constraint, key.child_name
        ),
    )
    .detail(format!("Key {key_text}is still referenced from table \"{}\".", key.child_name))
    .schema(schema.unwrap_or_default())
    .table(&key.child_name)
    .constraint(&key.constraint)
}

/// The rows that have a key, in their newest committed (or own) version or in the command's view.
fn rows_with_key(
    table: &PlannedTable,
    index: Oid,
    key: &[(KeyColumn, usize)],
    values: &[Datum],
    newest: bool,
    rows: &mut RowBatch,
    txn: &mut dyn Txn,
) -> Result<Vec<RowId>> {
    let Some(bytes) = fitted_key(key.iter().map(|(column, place)| (*column, &values[*place]))) else {
        return Ok(Vec::new());
    };
    let table = table.open(txn)?;
    rows.clear();
    txn.get_referenced(table, index, &bytes, newest, rows)?;
    Ok(rows.iter().map(|r| r.row).collect())
}

/// `(a, b)=(1, x) `; nothing if the current role may not read that.
fn show_key(table: &TableDesc, columns: &[usize], values: &[Datum], eval: &dyn EvalContext) -> String {
    let numbers = columns.iter().map(|&column| table.columns[column].number);
    if !shown::reads_columns(&eval.catalog(), eval.identity().who(), table.oid, numbers) {
        return String::new();
    }
    let names: Vec<&str> = columns.iter().map(|&c| table.columns[c].name.as_str()).collect();
    let texts: Vec<String> = values
        .iter()
        .zip(columns)
        .map(|(value, &column)| {
            let mut text = Vec::new();
            match functions::write_text(eval, value, table.columns[column].type_oid, &mut text) {
                Ok(()) => String::from_utf8_lossy(&text).into_owned(),
                Err(_) => String::new(),
            }
        })
        .collect();
    format!("({})=({}) ", names.join(", "), texts.join(", "))
}
