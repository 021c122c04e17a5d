//! pg_locks, pg_prepared_xacts.
//!
//! A row lock is a word in its row, so – as on PostgreSQL – only rows with waiters are listed. A transaction shows
//! its id (`transactionid`) only if another transaction waits for its end; `waitstart` is not known.

use base::TxnId;
use engine_api::{Catalog, CatalogObject, LockRow, Locked, RowLockMode, TableLockMode};
use sql_functions::EvalContext;
use sql_ir::system_relation::SystemRelation;
use types::Datum;

use super::{SystemRows, oid, row, text};

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
    format!("{session}/{}", lock.txn.tag())
}

fn pid(lock: &LockRow) -> Datum {
    if lock.session == 0 { Datum::Null } else { Datum::Int4(lock.session as i32) }
}

fn xid(txn: TxnId) -> Datum {
    Datum::Oid(txn.tag())
}

/// The catalog that lists an object that is no relation, and whether it is of all databases.
fn class_of(object: &CatalogObject) -> Option<(u32, bool)> {
    match object {
        CatalogObject::Table(_) | CatalogObject::Index(_) | CatalogObject::Sequence(_) => None,
        CatalogObject::Type(_) => Some((1247, false)),
        CatalogObject::Schema(_) => Some((2615, false)),
        CatalogObject::Role(_) => Some((1260, true)),
        CatalogObject::Database(_) => Some((1262, true)),
        CatalogObject::Privileges(_) => Some((826, false)),
        CatalogObject::Extension(_) => Some((3079, false)),
    }
}

/// A lock that belongs to something with an OID.
fn object_lock(locked: base::Oid, database: base::Oid, catalog: &Catalog) -> Vec<(&'static str, Datum)> {
    let of = |shared: bool| oid(if shared { base::Oid::INVALID } else { database });
    match catalog.get(locked).and_then(|object| class_of(object)) {
        Some((class, shared)) => vec![
            ("locktype", text("object")),
            ("database", of(shared)),
            ("classid", Datum::Oid(class)),
            ("objid", oid(locked)),
            ("objsubid", Datum::Int2(0)),
        ],
        None => {
            // What a name will belong to is known to the transaction that makes it only.
            let relation = if is_name(locked) { Datum::Null } else { oid(locked) };
            vec![("locktype", text("relation")), ("database", of(is_shared(locked))), ("relation", relation)]
        }
    }
}

/// Locks that stand for the names of objects being made have OIDs above all objects.
fn is_name(locked: base::Oid) -> bool {
    locked.0 >= 1 << 31
}

/// What is shown of the locks of names. As on PostgreSQL, where two meet in an index of a catalog, who waits for one waits for
/// the transaction that has it.
fn without_names(locks: Vec<LockRow>) -> Vec<LockRow> {
    let name = |lock: &LockRow| match lock.locked {
        Locked::Table(table, _) if is_name(table) => Some(table),
        _ => None,
    };
    if locks.iter().all(|lock| name(lock).is_none()) {
        return locks;
    }
    let holders: Vec<_> = locks.iter().filter(|lock| lock.is_granted).filter_map(|l| Some((name(l)?, *l))).collect();
    let own = |lock: &LockRow| lock.is_granted && matches!(lock.locked, Locked::Txn(..));
    let mut known: Vec<TxnId> = locks.iter().filter(|lock| own(lock)).map(|lock| lock.txn).collect();
    let mut shown: Vec<LockRow> = Vec::with_capacity(locks.len());
    for lock in locks {
        let Some(of) = name(&lock) else {
            shown.push(lock);
            continue;
        };
        let holder = holders.iter().find(|(held, _)| !lock.is_granted && *held == of);
        let Some((_, holder)) = holder else {
            shown.push(lock);
            continue;
        };
        if !known.contains(&holder.txn) {
            known.push(holder.txn);
            let locked = Locked::Txn(holder.txn, TableLockMode::Exclusive);
            shown.push(LockRow { locked, is_fast: false, ..*holder });
        }
        shown.push(LockRow { locked: Locked::Txn(holder.txn, TableLockMode::Share), ..lock });
    }
    shown
}

fn lock_row(rel: &SystemRelation, lock: &LockRow, database: base::Oid, catalog: &Catalog) -> Vec<Datum> {
    let mut values = match lock.locked {
        Locked::Table(table, _) => object_lock(table, database, catalog),
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

pub(super) fn locks(rel: &SystemRelation, cx: &dyn EvalContext) -> SystemRows {
    let database = cx.identity().database_oid;
    let (locks, catalog) = (without_names(cx.locks()), cx.catalog());
    let mut rows: Vec<Vec<Datum>> = locks.iter().map(|lock| lock_row(rel, lock, database, &catalog)).collect();
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

pub(super) fn prepared(rel: &SystemRelation, cx: &dyn EvalContext) -> SystemRows {
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
