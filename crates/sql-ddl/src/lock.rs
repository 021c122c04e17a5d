//! LOCK TABLE: a table, or a view with all that it is over.

use std::collections::BTreeSet;

use base::{Error, Oid, Result, SqlState};
use engine_api::{CatalogObject, Privileges, Step, TableKind, TableLockMode, WaitPolicy};
use rupg_sql::nodes::RangeVar;
use sql_parse::privileges::{self, Who};

use super::Cx;
use super::names::display;

pub(super) async fn lock_named(
    cx: &mut Cx<'_>,
    name: &RangeVar,
    mode: TableLockMode,
    policy: WaitPolicy,
) -> Result<()> {
    let Some(object) = cx.find_relation(name)? else {
        let message = format!("relation \"{}\" does not exist", display(name));
        return Err(Error::new(SqlState::UNDEFINED_TABLE, message));
    };
    if let Some(kinds) = cannot_be_locked(&object) {
        let message = format!("cannot lock relation \"{}\"", object.name());
        let detail = format!("This operation is not supported for {kinds}.");
        return Err(Error::new(SqlState::WRONG_OBJECT_TYPE, message).detail(detail));
    }
    let own = cx.session.who().role;
    // What is to be locked yet, the next one last, and in whose name.
    let mut next = vec![(object.oid(), own)];
    let mut seen = BTreeSet::new();
    while let Some((oid, role)) = next.pop() {
        require_lock(cx, oid, role, mode)?;
        lock(cx, oid, mode, policy).await?;
        let catalog = cx.catalog();
        let Some(table) = catalog.table(oid).filter(|table| table.kind == TableKind::View) else { continue };
        if !seen.insert((oid, role)) {
            continue;
        }
        let acting = if sql_ir::view::runs_as_invoker(table) { own } else { table.owner };
        let relations = table.view.iter().flat_map(|view| &view.relations).map(|relation| relation.oid);
        let lockable = |oid: &Oid| catalog.get(*oid).is_some_and(|object| cannot_be_locked(object).is_none());
        let mut under: Vec<_> = relations.filter(lockable).map(|oid| (oid, acting)).collect();
        under.reverse();
        next.extend(under);
    }
    Ok(())
}

/// What objects of this kind are called, if they are not locked by name.
fn cannot_be_locked(object: &CatalogObject) -> Option<&'static str> {
    match object {
        CatalogObject::Table(table) if table.kind == TableKind::MaterializedView => Some("materialized views"),
        CatalogObject::Table(_) => None,
        CatalogObject::Sequence(_) => Some("sequences"),
        _ => Some("indexes"),
    }
}

/// Refuses a lock by a role that may do nothing with the relation that such a lock is for.
fn require_lock(cx: &mut Cx<'_>, oid: Oid, role: Oid, mode: TableLockMode) -> Result<()> {
    use Privileges as P;
    let catalog = cx.catalog();
    let Some(object) = catalog.get(oid) else { return Ok(()) };
    let enough = match mode {
        TableLockMode::AccessShare => P::SELECT,
        TableLockMode::RowExclusive => P::INSERT | P::UPDATE | P::DELETE | P::TRUNCATE,
        _ => P::UPDATE | P::DELETE | P::TRUNCATE,
    };
    let who = Who { role, ..cx.session.who() };
    if privileges::held(&catalog, who, object).meets(enough) {
        return Ok(());
    }
    Err(privileges::denied_on(object))
}

async fn lock(cx: &mut Cx<'_>, oid: Oid, mode: TableLockMode, policy: WaitPolicy) -> Result<()> {
    loop {
        match cx.txn().lock_table(oid, mode, policy)? {
            Step::Ready(()) => return Ok(()),
            Step::Wait(wait) => cx.session.wait_in_transaction(wait).await?,
        }
    }
}
