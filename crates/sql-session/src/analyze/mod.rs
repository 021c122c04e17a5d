//! ANALYZE: looking at a table's rows for what the planner should know of its values.
//!
//! Responsible for: sampling a table ([`Sampler`]), when a client asks ([`analyze`]) and by itself after enough changes ([`Refresher`]);
//! what was found as bytes (`stored`).
//! Not responsible for: keeping what was found ([`sql_functions::statistics`]).

mod column;
mod refresh;
mod sample;
mod stored;

use base::Result;
use engine_api::{TableDesc, Wait};
use sql_functions::statistics::Replaced;

pub use refresh::Refresher;
use sample::Sampler;

use super::Session;

/// ANALYZE of one table, or of some of its columns (attribute number - 1).
pub(crate) async fn analyze(session: &mut Session, table: &TableDesc, only: Option<&[usize]>) -> Result<()> {
    session.ensure_transaction()?;
    let changes = session.engine().changes(table.oid);
    let txn = session.transaction();
    txn.begin_command();
    let mut sampler = Sampler::open(txn, table, changes, only)?;
    while sampler.step(session.transaction())? {
        session.wait_for_lock(Wait::yield_now()).await?;
    }
    session.transaction().end_command();
    let rows = session.engine().row_count(table.oid);
    while sampler.evaluate(rows) {
        session.wait_for_lock(Wait::yield_now()).await?;
    }
    let before = session.statistics().table(table.oid);
    let version = session.statistics().put(table.oid, sampler.finish(rows));
    session.note_analyzed(Replaced { table: table.oid, before, version });
    Ok(())
}
