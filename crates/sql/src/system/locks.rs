//! pg_locks, pg_prepared_xacts.
//!
//! A row lock is a word in its row, so – as on PostgreSQL – only rows that somebody waits for are listed. A transaction shows
//! its id (`transactionid`) only if somebody waits for its end; `waitstart` is not known.

use base::TxnId;
use engine_api::{LockRow, Locked, RowLockMode, TableLockMode};
use types::Datum;

use super::{Rows, SystemRelation, oid, row, text};
use crate::functions::EvalContext;

/// Rows of a page, as `page` and `tuple` name a row.
const PAGE: u64 = 128;

fn mode_name(mode: TableLockMode) -> &'static str {
    use TableLockMode as M;
    match mode {
        M::AccessShare => "AccessShareLock",
        M::RowShare => "RowShareLock",
        M::RowExclusive => "RowExclusiveLock",
        M::ShareUpdateExclusive => "ShareUpdateExclusiveLock",
        M::Share => "ShareLock",
        M::ShareRowExclusive => "ShareRowExclusiveLock",
        M::Exclusive => "ExclusiveLock",
        M::AccessExclusive => "AccessExclusiveLock",
    }
}

/// The mode of the lock that a waiter for a row has on the row's place.
fn tuple_mode(mode: RowLockMode) -> TableLockMode {
    match mode {
        RowLockMode::KeyShare => TableLockMode::AccessShare,
        RowLockMode::Share => TableLockMode::RowShare,
        RowLockMode::NoKeyUpdate => TableLockMode::Exclusive,
        RowLockMode::Update => TableLockMode::AccessExclusive,
    }
}

fn virtual_id(lock: &LockRow) -> String {
    // A prepared transaction has no session.
    let session = if lock.session == 0 { -1 } else { i64::from(lock.session) };
    format!("{session}/{}", lock.txn.0 & 0xffff_ffff)
}

fn pid(lock: &LockRow) -> Datum {
    if lock.session == 0 { Datum::Null } else { Datum::Int4(lock.session as i32) }
}

fn xid(txn: TxnId) -> Datum {
    Datum::Oid(txn.0 as u32)
}

fn lock_row(rel: &SystemRelation, lock: &LockRow, database: base::Oid) -> Vec<Datum> {
    let mut values = match lock.locked {
        Locked::Table(table, _) => vec![
            ("locktype", text("relation")),
            ("database", oid(if is_shared(table) { base::Oid(0) } else { database })),
            ("relation", oid(table)),
        ],
        Locked::Row(table, id, _) => vec![
            ("locktype", text("tuple")),
            ("database", oid(database)),
            ("relation", oid(table)),
            ("page", Datum::Int4((id.0 / PAGE) as i32)),
            ("tuple", Datum::Int2((id.0 % PAGE) as i16 + 1)),
        ],
        Locked::Txn(of, _) => vec![("locktype", text("transactionid")), ("transactionid", xid(of))],
        Locked::Advisory(key, _) => vec![
            ("locktype", text("advisory")),
            ("database", oid(key.database)),
            ("classid", Datum::Oid((key.number >> 32) as u32)),
            ("objid", Datum::Oid(key.number as u32)),
            ("objsubid", Datum::Int2(if key.is_pair { 2 } else { 1 })),
        ],
    };
    let mode = match lock.locked {
        Locked::Table(_, mode) | Locked::Txn(_, mode) | Locked::Advisory(_, mode) => mode,
        Locked::Row(_, _, mode) => tuple_mode(mode),
    };
    values.extend([
        ("virtualtransaction", text(virtual_id(lock))),
        ("pid", pid(lock)),
        ("mode", text(mode_name(mode))),
        ("granted", Datum::Bool(lock.is_granted)),
        ("fastpath", Datum::Bool(lock.is_fast)),
    ]);
    row(rel, values)
}

/// Relations of all databases.
fn is_shared(table: base::Oid) -> bool {
    (1260..1263).contains(&table.0)
}

pub(super) fn locks(rel: &SystemRelation, cx: &dyn EvalContext) -> Rows {
    let database = cx.identity().database_oid;
    let locks = cx.locks();
    let mut rows: Vec<Vec<Datum>> = locks.iter().map(|lock| lock_row(rel, lock, database)).collect();
    // Every transaction has its own virtual id.
    let mut shown = Vec::new();
    for lock in locks.iter().filter(|lock| lock.session != 0 && !matches!(lock.locked, Locked::Advisory(..))) {
        if shown.contains(&lock.txn) {
            continue;
        }
        shown.push(lock.txn);
        rows.push(row(
            rel,
            vec![
                ("locktype", text("virtualxid")),
                ("virtualxid", text(virtual_id(lock))),
                ("virtualtransaction", text(virtual_id(lock))),
                ("pid", pid(lock)),
                ("mode", text(mode_name(TableLockMode::Exclusive))),
                ("granted", Datum::Bool(true)),
                ("fastpath", Datum::Bool(true)),
            ],
        ));
    }
    Ok(rows)
}

pub(super) fn prepared(rel: &SystemRelation, cx: &dyn EvalContext) -> Rows {
    let catalog = cx.catalog();
    let rows = cx.prepared_transactions().into_iter().map(|prepared| {
        let database = catalog.get(prepared.database).map(|object| object.name().to_string()).unwrap_or_default();
        row(
            rel,
            vec![
                ("transaction", xid(TxnId(prepared.txn))),
                ("gid", text(&prepared.name)),
                ("prepared", Datum::TimestampTz(prepared.prepared_at)),
                ("owner", text(&prepared.owner)),
                ("database", text(database)),
            ],
        )
    });
    Ok(rows.collect())
}
