//! CREATE INDEX CONCURRENTLY: an index that is built while others write to its table.
//!
//! In one transaction the index is made, without entries and not valid: from its commit on who writes enters his keys. In
//! another one the rows that were there are entered, and the index becomes valid. Both hold a lock that lets writers go on. If
//! the second one fails, the index stays, not valid, and in a third one it is said that nothing is entered any more: it can be
//! dropped, or built anew by REINDEX. After a crash in the middle it is kept up, but not valid.

use base::{Error, Oid, Result};
use engine_api::{CatalogObject, IndexDesc, Step, TableLockMode};
use rupg_sql::nodes::IndexStmt;

use super::{Cx, index, rights};
use crate::session::Session;

/// What there is to fill once the transaction is committed.
pub(crate) struct Begun {
    table: Oid,
    index: Oid,
}

/// Makes the index. `None`: there is nothing more to do.
pub(crate) async fn begin(session: &mut Session, stmt: &IndexStmt, sql: &str) -> Result<Option<Begun>> {
    let mut cx = Cx { session, sql };
    rights::check(&mut cx, &rupg_sql::nodes::Node::IndexStmt(Box::new(stmt.clone())))?;
    let made = index::define_index(&mut cx, stmt, true).await?;
    Ok(made.filter(|index| index.invalid).map(|index| Begun { table: index.table, index: index.oid }))
}

/// Fills it, in a transaction of its own.
pub(crate) async fn fill(session: &mut Session, begun: &Begun, sql: &str) -> Result<()> {
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
pub(crate) async fn give_up(session: &mut Session, begun: &Begun, sql: &str) -> Result<()> {
    let mut cx = Cx { session, sql };
    cx.lock(begun.table, TableLockMode::ShareUpdateExclusive).await?;
    match cx.catalog().index(begun.index).cloned() {
        Some(index) => cx.put(CatalogObject::Index(IndexDesc { unready: true, ..index })).await,
        None => Ok(()),
    }
}
