//! CREATE INDEX CONCURRENTLY and DROP INDEX CONCURRENTLY. The former: an index that is built while others write to its table.
//!
//! In one transaction the index is made, without entries and not valid: from its commit on who writes enters his keys. In
//! another one the rows that were there are entered, and the index becomes valid. Both hold a lock that does not block writers. If
//! the second one fails, the index stays, not valid, and in a third one it is said that nothing is entered any more: it can be
//! dropped, or rebuilt by REINDEX. After a crash in the middle it is maintained, but not valid.

//! The latter: in one transaction the index becomes not valid, so that nothing new is read through it. Whoever has the table locked
//! then is waited for, without a place in the queue of its locks. Then it is dropped, while others read and write. If that fails, the
//! index stays, not valid.

use base::{Error, Oid, Result, TxnId};
use engine_api::{CatalogObject, IndexDesc, Locked, Persistence, Step, TableLockMode};
use rupg_sql::nodes::{DropStmt, IndexStmt, Node};

use super::Session;
use super::{Cx, drop, index, rights};

/// What there is to fill once the transaction is committed.
pub struct Begun {
    table: Oid,
    index: Oid,
}

/// Makes the index. `None`: there is nothing more to do.
pub async fn begin(session: &mut dyn Session, stmt: &IndexStmt, sql: &str) -> Result<Option<Begun>> {
    let mut cx = Cx { session, sql };
    rights::check(&mut cx, &Node::IndexStmt(Box::new(stmt.clone())))?;
    let made = index::define_index(&mut cx, stmt, true).await?;
    Ok(made.filter(|index| index.invalid).map(|index| Begun { table: index.table, index: index.oid }))
}

/// Fills it, in a transaction of its own.
pub async fn fill(session: &mut dyn Session, begun: &Begun, sql: &str) -> Result<()> {
    let mut cx = Cx { session, sql };
    cx.lock(begun.table, TableLockMode::ShareUpdateExclusive).await?;
    let Some(index) = cx.catalog().index(begun.index).cloned() else {
        return Err(Error::internal("the index was dropped while it was built"));
    };
    complete(&mut cx, index).await
}

/// Enters what an index that is not valid lacks, and makes it valid. REQUIRES a lock that keeps other definitions away, and
/// writers too if the index is not entered into.
pub(super) async fn complete(cx: &mut Cx<'_>, index: IndexDesc) -> Result<()> {
    if !index.unready {
        while let Step::Wait(wait) = cx.txn().fill_index(index.oid)? {
            cx.session.wait_in_transaction(wait).await?;
        }
    }
    cx.put(CatalogObject::Index(IndexDesc { invalid: false, unready: false, ..index })).await
}

/// Leaves what could not be filled to be dropped or built anew: nobody enters anything from now on.
pub async fn give_up(session: &mut dyn Session, begun: &Begun, sql: &str) -> Result<()> {
    let mut cx = Cx { session, sql };
    cx.lock(begun.table, TableLockMode::ShareUpdateExclusive).await?;
    match cx.catalog().index(begun.index).cloned() {
        Some(index) => cx.put(CatalogObject::Index(IndexDesc { unready: true, ..index })).await,
        None => Ok(()),
    }
}

/// An index on its way out.
pub struct Leaving {
    table: Oid,
    index: Oid,
}

/// Makes the index that is to go not valid. `None`: there is nothing more to do.
pub async fn begin_drop(session: &mut dyn Session, stmt: &DropStmt, sql: &str) -> Result<Option<Leaving>> {
    let mut cx = Cx { session, sql };
    rights::check(&mut cx, &Node::DropStmt(Box::new(stmt.clone())))?;
    let Some(oid) = drop::one_index(&mut cx, stmt)? else { return Ok(None) };
    let catalog = cx.catalog();
    let found = catalog.index(oid).and_then(|index| Some((index, catalog.table(index.table)?)));
    let (index, table) = found.ok_or_else(|| Error::internal("an index without a table"))?;
    let mine = table.persistence == Persistence::Temporary;
    // Nobody else sees what is temporary.
    let mode = if mine { TableLockMode::AccessExclusive } else { TableLockMode::ShareUpdateExclusive };
    cx.lock(table.oid, mode).await?;
    let Some(now) = cx.catalog().index(oid).cloned() else {
        return Err(Error::new(base::SqlState::UNDEFINED_OBJECT, format!("index \"{}\" does not exist", index.name)));
    };
    drop::drop_unused_index(&mut cx, oid, mine).await?;
    if mine {
        return Ok(None);
    }
    cx.put(CatalogObject::Index(IndexDesc { invalid: true, ..now })).await?;
    Ok(Some(Leaving { table: table.oid, index: oid }))
}

/// Waits until nobody has the table locked who had it when this began: nobody reads through the index then.
pub async fn until_unused(session: &mut dyn Session, leaving: &Leaving) -> Result<()> {
    const PAUSE_MS: u64 = 10;
    let holders = |session: &dyn Session| -> Vec<TxnId> {
        let is_of_table = |locked| matches!(locked, Locked::Table(table, _) if table == leaving.table);
        let locks = session.engine().locks();
        locks.iter().filter(|lock| lock.is_granted && is_of_table(lock.locked)).map(|lock| lock.txn).collect()
    };
    let mut awaited = holders(session);
    while !awaited.is_empty() {
        session.pause(PAUSE_MS).await?;
        let still = holders(session);
        awaited.retain(|txn| still.contains(txn));
    }
    Ok(())
}

/// Drops it, in a transaction of its own.
pub async fn end_drop(session: &mut dyn Session, leaving: &Leaving, sql: &str) -> Result<()> {
    let mut cx = Cx { session, sql };
    cx.lock(leaving.table, TableLockMode::ShareUpdateExclusive).await?;
    match cx.catalog().index(leaving.index) {
        Some(_) => drop::drop_unused_index(&mut cx, leaving.index, true).await,
        // Somebody was faster.
        None => Ok(()),
    }
}
