//! What a start has found, against the model.

use std::collections::BTreeMap;

use base::Oid;
use engine::Shard;
use engine_api::*;

use crate::model::Model;
use crate::schema::{self, BALANCE, BANK, Lists, Row, SEQUENCE};
use crate::session::difference;

/// All rows of a table, by an index or without.
fn rows(txn: &mut dyn Txn, of: Oid, index: Option<Oid>, lists: &Lists) -> Result<BTreeMap<i32, Row>, String> {
    let failed = |error: base::Error| format!("table {of} cannot be read: {error:?}");
    let table = txn.open_table(of).map_err(failed)?;
    let (range, content) = (KeyRange::all(), RowContent::Tuple);
    let mut scan = txn.open_scan(ScanSpec { table, index, range, reverse: false, content }).map_err(failed)?;
    let mut batch = RowBatch::new();
    while scan.next(txn, 256, &mut batch).map_err(failed)? {}
    let mut found = BTreeMap::new();
    for row in batch.iter() {
        let (id, row) = schema::decode_of(of, row, lists)?;
        if found.insert(id, row).is_some() {
            return Err(format!("row {id} of {of} is found twice by {index:?}"));
        }
    }
    Ok(found)
}

/// Tables, indexes, definitions and prepared transactions are the model's, and what is counted of memory is what is held.
///
/// # Errors
/// What is not.
pub fn everything(shard: &Shard, model: &Model, accounts: i32, lists: &Lists) -> Result<(), String> {
    let catalog = shard.catalog();
    let tables = catalog.objects().filter(|object| matches!(&***object, CatalogObject::Table(_)));
    let mut defined: Vec<Oid> = tables.map(|table| table.oid()).collect();
    defined.sort();
    if defined != model.tables() {
        return Err(format!("there are the tables {defined:?}, and must be {:?}", model.tables()));
    }
    let prepared: std::collections::BTreeSet<String> = shard.prepared().into_iter().map(|p| p.name).collect();
    if prepared != model.prepared() {
        return Err(format!("{prepared:?} are prepared, and must be {:?}", model.prepared()));
    }
    let mut txn = shard.begin(TxnOptions::default());
    txn.begin_command();
    for of in defined {
        let (found, expected) = (schema::shape(&catalog, of), model.shape(of, model.len()));
        if found != expected {
            return Err(format!("table {of} is {found:?} and must be {expected:?}"));
        }
        let expected = model.table(of, model.len());
        let by_index = found.iter().flat_map(|shape| [Some(shape.by_id), shape.by_grp]).flatten().map(Some);
        for index in std::iter::once(None).chain(by_index) {
            let found = rows(&mut *txn, of, index, lists)?;
            if found != expected {
                return Err(format!("table {of} by {index:?}: {}", difference(&found, &expected)));
            }
        }
        if of == BANK {
            let sum: i64 = expected.values().map(|row| row.val).sum();
            if sum != i64::from(accounts) * BALANCE {
                return Err(format!("the bank has {sum}"));
            }
        }
    }
    txn.rollback();
    drop(txn);
    engine::inspect::check(shard)?;
    match shard.audit() {
        right if right.is_empty() => Ok(()),
        wrong => Err(format!("memory is not what is held: {}", wrong.join("; "))),
    }
}

/// Makes the tables of the workloads and the accounts; answers the objects that a first transaction puts.
pub fn objects() -> Vec<CatalogObject> {
    let mut objects = Vec::new();
    for of in [BANK, schema::ITEMS, schema::REGISTERS, schema::LISTS] {
        objects.push(CatalogObject::Table(schema::table(of, 4, 1)));
        objects.push(CatalogObject::Index(schema::index(Oid(of.0 + 1), of, true)));
        objects.push(CatalogObject::Index(schema::index(Oid(of.0 + 2), of, false)));
    }
    objects.push(CatalogObject::Sequence(schema::sequence()));
    debug_assert!(objects.iter().all(|object| object.oid() <= SEQUENCE));
    objects
}
