//! Advisory locks, and who is in whose way.

use std::sync::Arc;

use base::{Error, Result, Severity, SqlState};
use engine_api::AdvisoryKey;
use types::{Array, Datum};

use super::super::AdvisoryRequest;
use super::super::entry::mismatch;
use super::EvalContext;

fn key(cx: &dyn EvalContext, args: &[Datum]) -> Result<AdvisoryKey> {
    let database = cx.identity().database_oid;
    match args {
        [Datum::Int8(number)] => Ok(AdvisoryKey { database, number: *number as u64, is_pair: false }),
        [Datum::Int4(first), Datum::Int4(second)] => {
            let number = u64::from(*first as u32) << 32 | u64::from(*second as u32);
            Ok(AdvisoryKey { database, number, is_pair: true })
        }
        _ => Err(mismatch("pg_advisory_lock")),
    }
}

fn take(cx: &dyn EvalContext, args: &[Datum], is_shared: bool, of_transaction: bool, waits: bool) -> Result<bool> {
    cx.take_advisory(AdvisoryRequest { key: key(cx, args)?, is_shared, of_transaction }, waits)
}

fn void(_: bool) -> Datum {
    Datum::text("")
}

pub(super) fn lock(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    take(cx, args, false, false, true).map(void)
}

pub(super) fn lock_shared(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    take(cx, args, true, false, true).map(void)
}

pub(super) fn xact_lock(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    take(cx, args, false, true, true).map(void)
}

pub(super) fn xact_lock_shared(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    take(cx, args, true, true, true).map(void)
}

pub(super) fn try_lock(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    take(cx, args, false, false, false).map(Datum::Bool)
}

pub(super) fn try_lock_shared(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    take(cx, args, true, false, false).map(Datum::Bool)
}

pub(super) fn try_xact_lock(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    take(cx, args, false, true, false).map(Datum::Bool)
}

pub(super) fn try_xact_lock_shared(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    take(cx, args, true, true, false).map(Datum::Bool)
}

fn give(cx: &dyn EvalContext, args: &[Datum], is_shared: bool) -> Result<Datum> {
    let given = cx.give_advisory(key(cx, args)?, is_shared);
    if !given {
        let mode = if is_shared { "ShareLock" } else { "ExclusiveLock" };
        let message = format!("you don't own a lock of type {mode}");
        cx.notice(Error::with_severity(Severity::Warning, SqlState::WARNING, message));
    }
    Ok(Datum::Bool(given))
}

pub(super) fn unlock(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    give(cx, args, false)
}

pub(super) fn unlock_shared(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    give(cx, args, true)
}

pub(super) fn unlock_all(cx: &dyn EvalContext, _: &[Datum]) -> Result<Datum> {
    cx.give_all_advisory();
    Ok(void(true))
}

pub(super) fn blocking_pids(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let [Datum::Int4(pid)] = args else { return Err(mismatch("pg_blocking_pids")) };
    let pids = match u32::try_from(*pid) {
        Ok(session) if session != 0 => cx.blockers_of(session),
        _ => Vec::new(),
    };
    let values: Vec<Datum> = pids.into_iter().map(|pid| Datum::Int4(pid as i32)).collect();
    let dims = if values.is_empty() { Vec::new() } else { vec![(values.len() as i32, 1)] };
    Ok(Datum::Array(Arc::new(Array { element: types::oid::INT4, dims, values })))
}
