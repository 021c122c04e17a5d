//! Deferrable constraints: what is checked at the end of the statement, and what at the end of the transaction.
//!
//! A statement notes everything as if nothing were deferrable. When all its rows are done, what the transaction defers goes to
//! the session's queue (`sql_session::deferred`), and the rest is checked as usual.

use std::sync::Arc;

use base::{Oid, Result, RowId};
use engine_api::{Catalog, ConstraintDesc, ConstraintKind, ForeignKeyAction, Step, TableDesc, TableRef, Wait};
use sql_plan::{ParentChange, ReferencedKey, Target};
use types::Datum;

use super::Cx;
use super::budget::MemoryBudget;
use super::foreign_key::{Constraints, Noted};
use super::rows::datum_bytes;

/// Something to be looked at before the transaction may commit.
#[derive(Clone, Debug)]
pub enum Check {
    /// A row that points to another.
    Child {
        /// The constraint.
        constraint: Oid,
        /// The table of the row.
        table: Oid,
        /// The row.
        row: RowId,
    },
    /// A key that was pointed to, perhaps.
    Parent {
        /// The constraint.
        constraint: Oid,
        /// The table of the row.
        table: Oid,
        /// The key that the row had.
        old: Box<[Datum]>,
    },
    /// A row that may share its key with another.
    Unique {
        /// The constraint.
        constraint: Oid,
        /// The table of the row.
        table: Oid,
        /// The index of the constraint.
        index: Oid,
        /// The row.
        row: RowId,
    },
}

impl Check {
    /// The constraint that is checked.
    pub fn constraint(&self) -> Oid {
        match self {
            Check::Child { constraint, .. } | Check::Parent { constraint, .. } | Check::Unique { constraint, .. } => {
                *constraint
            }
        }
    }

    /// The table whose row is looked at.
    pub fn table(&self) -> Oid {
        match self {
            Check::Child { table, .. } | Check::Parent { table, .. } | Check::Unique { table, .. } => *table,
        }
    }

    /// Bytes of its values.
    pub fn bytes(&self) -> usize {
        match self {
            Check::Parent { old, .. } => old.iter().map(datum_bytes).sum(),
            _ => 0,
        }
    }
}

/// What the transaction defers, and where it goes until it is due.
pub trait Deferrals {
    /// Whether a deferrable constraint is deferred now.
    fn is_deferred(&self, constraint: Oid, initially: bool) -> bool;
    /// Takes a check.
    ///
    /// # Errors
    /// 53200 beyond the budget.
    fn defer(&self, check: Check, memory: &Arc<MemoryBudget>) -> Result<()>;
}

/// A row that may share its key in a unique index with another.
pub(super) struct Unproven {
    pub table: TableRef,
    pub index: Oid,
    pub row: RowId,
}

/// The constraint that an index is of, with its table.
fn constraint_of(catalog: &Catalog, index: Oid) -> Option<(&TableDesc, &ConstraintDesc)> {
    let table = catalog.table(catalog.index(index)?.table)?;
    let own = |c: &&ConstraintDesc| matches!(c.kind, ConstraintKind::PrimaryKey { index: of } | ConstraintKind::Unique { index: of } if of == index);
    Some((table, table.constraints.iter().find(own)?))
}

impl Constraints {
    /// Hands what is deferred to the session; what is left is to be looked at now.
    pub(super) fn defer_checks(&mut self, target: &Target, cx: &mut Cx<'_, '_>) -> Result<()> {
        let mut unproven = Vec::new();
        cx.run.txn.take_unproven(&mut unproven);
        let deferrals = cx.run.deferrals;
        let memory = cx.run.memory;
        let is_deferred = |oid: Oid, initially: Option<bool>| {
            let (Some(deferrals), Some(initially)) = (deferrals, initially) else { return false };
            deferrals.is_deferred(oid, initially)
        };
        let defer = |check: Check| match deferrals {
            Some(deferrals) => deferrals.defer(check, memory),
            None => Ok(()),
        };
        for (index, row) in unproven {
            let catalog = cx.run.txn.catalog();
            let Some((table, constraint)) = constraint_of(&catalog, index) else { continue };
            if is_deferred(constraint.oid, constraint.deferrable.then_some(constraint.deferred)) {
                defer(Check::Unique { constraint: constraint.oid, table: table.oid, index, row })?;
            } else {
                let table = cx.run.txn.open_table(table.oid)?;
                self.to_prove.push(Unproven { table, index, row });
            }
        }
        let own = target.table.info.desc.oid;
        let waits = |key: &ReferencedKey, is_updated: bool| {
            let change = if is_updated { ParentChange::KeyUpdated } else { ParentChange::Deleted };
            key.action(change) == ForeignKeyAction::NoAction && is_deferred(key.oid, key.deferred)
        };
        for noted in std::mem::take(&mut self.noted) {
            match noted {
                Noted::Child { key, values, row }
                    if is_deferred(target.references[key].oid, target.references[key].deferred) =>
                {
                    // NULLs point to nothing, whatever happens later; a change of the row is noted anew.
                    if values.iter().any(|value| !value.is_null()) {
                        defer(Check::Child { constraint: target.references[key].oid, table: own, row })?;
                    }
                }
                Noted::Parent { key, old, new } if waits(&target.referenced[key], new.is_some()) => {
                    if !old.iter().any(Datum::is_null) {
                        let constraint = target.referenced[key].oid;
                        defer(Check::Parent { constraint, table: own, old: old.into() })?;
                    }
                }
                now => self.noted.push(now),
            }
        }
        Ok(())
    }

    /// Looks whether rows are alone with their keys.
    pub(super) fn prove(&mut self, cx: &mut Cx<'_, '_>) -> Result<Option<Wait>> {
        while let Some(unproven) = self.to_prove.get(self.proved) {
            match cx.run.txn.prove_unique(&unproven.table, unproven.index, unproven.row)? {
                Step::Ready(()) => self.proved += 1,
                Step::Wait(wait) => return Ok(Some(wait)),
            }
            if let Some(wait) = cx.run.tick(1)? {
                return Ok(Some(wait));
            }
        }
        Ok(None)
    }
}
