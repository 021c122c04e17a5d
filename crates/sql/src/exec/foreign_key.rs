//! Foreign keys: what a statement changed is noted row by row and looked at when all rows are done.
//!
//! Invariants: a row that points to another holds KEY SHARE on it, so the key it points to stays (rule R7); checks read the
//! newest committed versions, not the statement's view. Above READ COMMITTED a row points only to what the transaction's
//! snapshot has, and a row that is newer than the snapshot is not changed by a cascade (40001), as on PostgreSQL.

use std::sync::Arc;

use base::{Error, Oid, Result, SqlState};
use engine_api::{ForeignKeyAction, Isolation, RowBatch, RowLockMode, RowLockOutcome, Step, TableLockMode, WaitPolicy};
use types::Datum;

use super::lock_rows::only_locks;
use super::scan::fitted_key;
use super::{Cx, Machine, Next};
use crate::plan::{KeyColumn, ParentChange, Plan, PlannedTable, PlannerStats, ReferencedKey, ReferencingKey, Target};

/// What one statement has to look at.
pub(super) struct Constraints {
    /// Keys of the row as it was: of `references`, then of `referenced`.
    old: Vec<Vec<Datum>>,
    /// (foreign key, its values)
    to_find: Vec<(usize, Vec<Datum>)>,
    /// (foreign key of another table, old key, new key)
    to_follow: Vec<(usize, Vec<Datum>, Option<Vec<Datum>>)>,
    /// How far [`Constraints::run`] has come.
    started: bool,
    found: usize,
    followed: usize,
    following: Option<Following>,
    watches: bool,
    rows: RowBatch,
}

/// A statement that follows a change.
struct Following {
    plan: Arc<Plan>,
    machine: Option<Machine>,
    /// It looks for rows that must not be there, and changes nothing.
    checks: bool,
}

struct EngineRows<'a>(&'a dyn engine_api::Engine);

impl PlannerStats for EngineRows<'_> {
    fn row_count(&self, table: Oid) -> u64 {
        self.0.row_count(table)
    }
}

fn values(target: &Target, columns: &[usize], frame: &[Datum]) -> Vec<Datum> {
    columns.iter().map(|c| frame[target.slots[*c] as usize].clone()).collect()
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
            to_find: Vec::new(),
            to_follow: Vec::new(),
            started: false,
            found: 0,
            followed: 0,
            following: None,
            watches: !target.references.is_empty() || !target.referenced.is_empty(),
            rows: RowBatch::new(),
        }
    }

    pub fn clear(&mut self) {
        self.to_find.clear();
        self.to_follow.clear();
        self.started = false;
        self.found = 0;
        self.followed = 0;
        self.following = None;
    }

    /// Notes the keys of a row before it changes.
    pub fn note_old(&mut self, target: &Target, frame: &[Datum]) {
        if !self.watches {
            return;
        }
        self.old.clear();
        self.old.extend(target.references.iter().map(|k| values(target, &k.columns, frame)));
        self.old.extend(target.referenced.iter().map(|k| values(target, &k.columns, frame)));
    }

    fn find(&mut self, key: usize, values: Vec<Datum>) {
        if self.to_find.last().is_none_or(|(k, v)| *k != key || !same(v, &values)) {
            self.to_find.push((key, values));
        }
    }

    /// Notes a new row.
    pub fn note_inserted(&mut self, target: &Target, frame: &[Datum]) {
        for (i, key) in target.references.iter().enumerate() {
            self.find(i, values(target, &key.columns, frame));
        }
    }

    /// Notes a row after it has changed.
    pub fn note_updated(&mut self, target: &Target, frame: &[Datum]) {
        if !self.watches {
            return;
        }
        let mut old = std::mem::take(&mut self.old).into_iter();
        for (i, key) in target.references.iter().enumerate() {
            let new = values(target, &key.columns, frame);
            if old.next().is_none_or(|old| !same(&old, &new)) {
                self.find(i, new);
            }
        }
        for (i, key) in target.referenced.iter().enumerate() {
            let new = values(target, &key.columns, frame);
            if let Some(old) = old.next()
                && !same(&old, &new)
            {
                self.to_follow.push((i, old, Some(new)));
            }
        }
    }

    /// Notes that the row of [`Constraints::note_old`] is deleted.
    pub fn note_deleted(&mut self, target: &Target) {
        if !self.watches {
            return;
        }
        let old = std::mem::take(&mut self.old).into_iter().skip(target.references.len());
        self.to_follow.extend(old.enumerate().map(|(i, old)| (i, old, None)));
    }

    /// Looks at everything that was noted. `Done` when all is well.
    ///
    /// # Errors
    /// 23503, and those of cascades.
    pub fn run(&mut self, target: &Target, cx: &mut Cx<'_, '_>) -> Result<Next> {
        if !self.started && !self.to_find.is_empty() {
            // What the statement itself has written is there to be pointed to.
            cx.run.txn.begin_command();
            self.started = true;
        }
        while let Some((key, values)) = self.to_find.get(self.found) {
            let reference = Arc::clone(&target.references[*key]);
            let values = values.clone();
            if let Some(wait) = self.check_parent(target, &reference, &values, cx)? {
                return Ok(Next::Wait(wait));
            }
            self.found += 1;
            if let Some(wait) = cx.run.tick(1)? {
                return Ok(Next::Wait(wait));
            }
        }
        while self.followed < self.to_follow.len() {
            if let Some(wait) = self.follow(target, cx)? {
                return Ok(Next::Wait(wait));
            }
            self.following = None;
            self.followed += 1;
            if let Some(wait) = cx.run.tick(1)? {
                return Ok(Next::Wait(wait));
            }
        }
        Ok(Next::Done)
    }

    /// Locks the row that a key points to.
    fn check_parent(
        &mut self,
        target: &Target,
        key: &ReferencingKey,
        values: &[Datum],
        cx: &mut Cx<'_, '_>,
    ) -> Result<Option<engine_api::Wait>> {
        let nulls = values.iter().filter(|v| v.is_null()).count();
        if nulls == values.len() || (nulls > 0 && !key.match_full) {
            return Ok(None);
        }
        let child = &target.table.info.desc;
        let violation = |cx: &Cx<'_, '_>, detail: String| {
            Error::new(
                SqlState::FOREIGN_KEY_VIOLATION,
                format!(
                    "insert or update on table \"{}\" violates foreign key constraint \"{}\"",
                    child.name, key.constraint
                ),
            )
            .detail(detail)
            .schema(super::modify::schema_name(cx, target))
            .table(&child.name)
            .constraint(&key.constraint)
        };
        if nulls > 0 {
            let detail = "MATCH FULL does not allow mixing of null and nonnull key values.";
            return Err(violation(cx, detail.to_string()));
        }
        // A row whose key has gone elsewhere while its lock was waited for is looked for again, as often as that happens:
        // another may have got the key meanwhile.
        'search: loop {
            let newest = cx.run.txn.isolation() == Isolation::ReadCommitted;
            let rows = rows_with_key(&key.parent, key.index, &key.key, values, newest, &mut self.rows, cx)?;
            for row in rows {
                let table = key.parent.open(cx.run.txn)?;
                self.rows.clear();
                let step = cx.run.txn.lock_row(table, row, RowLockMode::KeyShare, WaitPolicy::Block, &mut self.rows);
                match step.map_err(only_locks)? {
                    Step::Ready(RowLockOutcome::Locked) => return Ok(None),
                    Step::Ready(RowLockOutcome::Moved) => {
                        let again = rows_with_key(&key.parent, key.index, &key.key, values, true, &mut self.rows, cx)?;
                        if again.contains(&row) {
                            return Ok(None);
                        }
                        continue 'search;
                    }
                    Step::Ready(RowLockOutcome::Gone | RowLockOutcome::Skipped) => {}
                    Step::Wait(wait) => return Ok(Some(wait)),
                }
            }
            break;
        }
        let names = key.columns.iter().map(|c| child.columns[*c].name.as_str());
        let shown = show_key(names, key.columns.iter().map(|c| child.columns[*c].type_oid), values, cx);
        let detail = format!("Key {shown} is not present in table \"{}\".", key.parent.info.desc.name);
        Err(violation(cx, detail))
    }

    /// Does what a foreign key of another table demands after a row here changed.
    fn follow(&mut self, target: &Target, cx: &mut Cx<'_, '_>) -> Result<Option<engine_api::Wait>> {
        let (number, old, new) = &self.to_follow[self.followed];
        if old.iter().any(Datum::is_null) {
            return Ok(None);
        }
        let key = Arc::clone(&target.referenced[*number]);
        let change = if new.is_some() { ParentChange::KeyUpdated } else { ParentChange::Deleted };
        let action = key.action(change);
        let old = old.clone();
        let new = new.clone();
        if self.following.is_none() {
            if action == ForeignKeyAction::NoAction
                && !rows_with_key(&target.table, key.index, &key.key, &old, true, &mut self.rows, cx)?.is_empty()
            {
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
            let mut params = old.clone();
            params.extend(new.unwrap_or_else(|| vec![Datum::Null; old.len()]));
            following.machine = Some(Machine::new(following.plan.query(), params));
        }
        let Some(machine) = &mut following.machine else { return Ok(None) };
        // Rows that cascades change do not count as the statement's.
        let changed = cx.run.changed;
        let next = machine.next(cx.run);
        cx.run.changed = changed;
        match next? {
            Next::Wait(wait) => Ok(Some(wait)),
            Next::Row if following.checks => Err(still_referenced(target, &key, &old, cx)),
            Next::Row | Next::Done if action == ForeignKeyAction::SetDefault && !following.checks => {
                // Rows whose default is the key that goes have not changed, so nothing has looked at them.
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

fn still_referenced(target: &Target, key: &ReferencedKey, old: &[Datum], cx: &Cx<'_, '_>) -> Error {
    let parent = &target.table.info.desc;
    let names = key.columns.iter().map(|c| parent.columns[*c].name.as_str());
    let shown = show_key(names, key.columns.iter().map(|c| parent.columns[*c].type_oid), old, cx);
    let catalog = cx.run.eval.catalog();
    let schema = catalog.table(key.child).and_then(|t| catalog.get(t.schema)).map(|s| s.name().to_string());
    Error::new(
        SqlState::FOREIGN_KEY_VIOLATION,
        format!(
            "update or delete on table \"{}\" violates foreign key constraint \"{}\" on table \"{}\"",
            parent.name, key.constraint, key.child_name
        ),
    )
    .detail(format!("Key {shown} is still referenced from table \"{}\".", key.child_name))
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
    cx: &mut Cx<'_, '_>,
) -> Result<Vec<base::RowId>> {
    let Some(bytes) = fitted_key(key.iter().map(|(column, place)| (*column, &values[*place]))) else {
        return Ok(Vec::new());
    };
    let table = table.open(cx.run.txn)?;
    rows.clear();
    cx.run.txn.get_referenced(table, index, &bytes, newest, rows)?;
    Ok(rows.iter().map(|r| r.row).collect())
}

/// `(a, b)=(1, x)`
fn show_key<'a>(
    names: impl Iterator<Item = &'a str>,
    types: impl Iterator<Item = Oid>,
    values: &[Datum],
    cx: &Cx<'_, '_>,
) -> String {
    let names: Vec<&str> = names.collect();
    let shown: Vec<String> = values
        .iter()
        .zip(types)
        .map(|(value, ty)| {
            let mut text = Vec::new();
            match types::write_text(value.as_ref(), ty, cx.run.eval.settings(), &mut text) {
                Ok(()) => String::from_utf8_lossy(&text).into_owned(),
                Err(_) => String::new(),
            }
        })
        .collect();
    format!("({})=({})", names.join(", "), shown.join(", "))
}
