//! Constraints that are deferrable: what is looked at when the statement is done, and what when the transaction ends.
//!
//! A statement notes everything as if nothing were deferrable. When all its rows are done, what the transaction defers goes to
//! the session's queue (`session::deferred`), and the rest is looked at as ever.

use base::{Oid, Result, RowId};
use engine_api::{Catalog, ConstraintDesc, ConstraintKind, ForeignKeyAction, Step, TableDesc, TableRef, Wait};

use super::Cx;
use super::foreign_key::Constraints;
use crate::plan::{ParentChange, Target};
use crate::session::Check;

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
    pub(super) fn put_off(&mut self, target: &Target, cx: &mut Cx<'_, '_>) -> Result<()> {
        let mut unproven = Vec::new();
        cx.run.txn.take_unproven(&mut unproven);
        let session = cx.run.eval.session();
        let memory = cx.run.memory;
        let is_deferred = |oid: Oid, initially: Option<bool>| {
            let (Some(session), Some(initially)) = (session, initially) else { return false };
            session.deferred.borrow().is_deferred(oid, initially)
        };
        let defer = |check: Check| match session {
            Some(session) => session.deferred.borrow_mut().push(check, memory),
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
        for (key, values, row) in std::mem::take(&mut self.to_find) {
            let reference = &target.references[key];
            if is_deferred(reference.oid, reference.deferred) {
                // NULLs point to nothing, whatever happens later; a change of the row is noted anew.
                if values.iter().any(|value| !value.is_null()) {
                    defer(Check::Child { constraint: reference.oid, table: own, row })?;
                }
            } else {
                self.to_find.push((key, values, row));
            }
        }
        for (key, old, new) in std::mem::take(&mut self.to_follow) {
            let referenced = &target.referenced[key];
            let change = if new.is_some() { ParentChange::KeyUpdated } else { ParentChange::Deleted };
            let waits = referenced.action(change) == ForeignKeyAction::NoAction;
            if waits && is_deferred(referenced.oid, referenced.deferred) {
                if !old.iter().any(types::Datum::is_null) {
                    defer(Check::Parent { constraint: referenced.oid, table: own, old: old.into() })?;
                }
            } else {
                self.to_follow.push((key, old, new));
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
