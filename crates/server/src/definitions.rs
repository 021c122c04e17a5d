//! Definitions that the server changes by itself at a start; those of earlier servers among them, whose expressions get references in
//! the place of names (decision 0022).

use std::sync::Arc;

use base::Result;
use engine::Shard;
use engine_api::{CatalogObject, Durability, Engine as _, Step, TableLockMode, Txn, TxnOptions, WaitPolicy};
use sql_catalog::conversion::convert;
use types::user::Current;

/// Converts what an earlier version has left, durably, and says what cannot be. What is converted already costs a look at the catalog.
///
/// # Errors
/// Those of a commit.
pub async fn convert_all(shard: &Shard) -> Result<()> {
    // Putting a table computes the shape of its rows, which depends on types.
    Current::of(Arc::new(shard.clone())).stay();
    let (converted, unclear) = convert(&shard.catalog());
    for unclear in unclear {
        tracing::warn!("{} stays a text: {}", unclear.what, unclear.why);
    }
    if converted.is_empty() {
        return Ok(());
    }
    let mut count = 0;
    let mut txn = shard.begin(TxnOptions::default());
    txn.begin_command();
    for object in converted {
        // What a prepared transaction is at is left to a later start: it may stay prepared for ever.
        let locked = match &object {
            CatalogObject::Index(index) => index.table,
            object => object.oid(),
        };
        if let Step::Wait(_) = txn.lock_table(locked, TableLockMode::AccessExclusive, WaitPolicy::Block)? {
            txn.cancel_wait();
            continue;
        }
        count += 1;
        put(&mut *txn, &object).await?;
    }
    commit(shard, &mut *txn).await?;
    if count > 0 {
        tracing::info!("{count} definitions of an earlier version were converted");
    }
    Ok(())
}

/// Puts a definition in the place of the one before.
///
/// # Errors
/// Those of the engine.
pub async fn put(txn: &mut dyn Txn, object: &CatalogObject) -> Result<()> {
    while let Step::Wait(wait) = txn.put_object(object.clone())? {
        wait.await;
    }
    Ok(())
}

/// Ends the command of a transaction and commits it; returns when that is durable.
///
/// # Errors
/// Those of a commit.
pub async fn commit(shard: &Shard, txn: &mut dyn Txn) -> Result<()> {
    txn.end_command();
    let outcome = loop {
        match txn.commit(Durability::On)? {
            Step::Ready(outcome) => break outcome,
            Step::Wait(wait) => wait.await,
        }
    };
    shard.durable().wait(outcome.gate).await;
    Ok(())
}
