//! Functions about transactions by their numbers: the own one, what the view sees, how others have ended.
//!
//! What asks the transaction is no function of its arguments: the compiler of expressions makes a question of it
//! (`sql_ir::expr::Code::Transaction`).

use base::{Ending, Error, Result, SqlState};
use engine_api::Txn;
use types::oid::*;
use types::{Datum, Snapshot};

use super::super::entry::{immutable, mismatched, set, stable, volatile};
use super::super::{EvalContext, Function, SetFunction, SetRows};

/// What is asked of the transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question {
    /// Its number; if it has none, it gets one.
    Number,
    /// Its number, if it has one.
    NumberIfAny,
    /// What its view sees.
    Snapshot,
    /// How another one has ended.
    Status,
    /// How many numbers ago another one was.
    Age,
}

/// The question that a function is.
pub fn question(function: u32) -> Option<Question> {
    Some(match function {
        2943 | 5059 => Question::Number,
        3348 | 5060 => Question::NumberIfAny,
        2944 | 5061 => Question::Snapshot,
        3360 | 5066 => Question::Status,
        1181 => Question::Age,
        _ => return None,
    })
}

/// The table.
#[rustfmt::skip]
pub(in super::super) static FUNCTIONS: &[Function] = &[
    stable(2943, "txid_current", &[], INT8, unsupported),
    stable(3348, "txid_current_if_assigned", &[], INT8, unsupported),
    stable(5059, "pg_current_xact_id", &[], XID8, unsupported),
    stable(5060, "pg_current_xact_id_if_assigned", &[], XID8, unsupported),
    stable(2944, "txid_current_snapshot", &[], TXID_SNAPSHOT, unsupported),
    stable(5061, "pg_current_snapshot", &[], PG_SNAPSHOT, unsupported),
    volatile(3360, "txid_status", &[INT8], TEXT, unsupported),
    volatile(5066, "pg_xact_status", &[XID8], TEXT, unsupported),
    stable(1181, "age", &[XID], INT4, unsupported),
    immutable(2945, "txid_snapshot_xmin", &[TXID_SNAPSHOT], INT8, xmin::<true>),
    immutable(5062, "pg_snapshot_xmin", &[PG_SNAPSHOT], XID8, xmin::<false>),
    immutable(2946, "txid_snapshot_xmax", &[TXID_SNAPSHOT], INT8, xmax::<true>),
    immutable(5063, "pg_snapshot_xmax", &[PG_SNAPSHOT], XID8, xmax::<false>),
    immutable(2948, "txid_visible_in_snapshot", &[INT8, TXID_SNAPSHOT], BOOL, sees::<true>),
    immutable(5065, "pg_visible_in_snapshot", &[XID8, PG_SNAPSHOT], BOOL, sees::<false>),
];

/// The table of those that give rows.
#[rustfmt::skip]
pub(in super::super) static SET_FUNCTIONS: &[SetFunction] = &[
    set(2947, "txid_snapshot_xip", &[TXID_SNAPSHOT], &[("", INT8)], running::<true>),
    set(5064, "pg_snapshot_xip", &[PG_SNAPSHOT], &[("", XID8)], running::<false>),
];

/// A number as `bigint`, or as `xid8`.
fn shown(number: u64, is_bigint: bool) -> Datum {
    if is_bigint { Datum::Int8(number as i64) } else { types::xid8(number) }
}

/// The number that a `bigint` or an `xid8` is.
fn numbered(value: i64, is_bigint: bool) -> u64 {
    if is_bigint { value as u64 } else { types::xid8_number(value) }
}

/// The answer. Numbers are `bigint`, or `xid8`.
///
/// # Errors
/// 53400 if the transaction cannot have a number, 72000 if the view is too old, 22023 for a number that is still to come.
pub fn answer(question: Question, arg: Option<Datum>, is_bigint: bool, txn: &mut dyn Txn) -> Result<Datum> {
    Ok(match (question, arg) {
        (_, Some(Datum::Null)) => Datum::Null,
        (Question::Number, None) => shown(txn.take_id()?.xid8(), is_bigint),
        (Question::NumberIfAny, None) => txn.shown_id().map_or(Datum::Null, |id| shown(id.xid8(), is_bigint)),
        (Question::Snapshot, None) => {
            let unseen = txn.unseen()?;
            Datum::from(Snapshot::new(unseen.limit, unseen.below.clone()).text()?)
        }
        (Question::Status, Some(Datum::Int8(number))) => status(numbered(number, is_bigint), txn)?,
        // Those below are older than all.
        (Question::Age, Some(Datum::Oid(0..3))) => Datum::Int4(i32::MAX),
        (Question::Age, Some(Datum::Oid(number))) => {
            let now = txn.shown_id().unwrap_or_else(|| txn.last_number());
            Datum::Int4((now.tag().wrapping_sub(number) & i32::MAX as u32) as i32)
        }
        (_, arg) => return mismatched(arg.as_slice()),
    })
}

fn unsupported(_: &dyn EvalContext, _: &[Datum]) -> Result<Datum> {
    Err(Error::unsupported("numbers of transactions cannot be used here"))
}

fn status(number: u64, txn: &dyn Txn) -> Result<Datum> {
    Ok(match txn.ending(number) {
        // Bootstrap and frozen rows have these.
        _ if matches!(number, 1 | 2) => Datum::from("committed"),
        Ending::Running => Datum::from("in progress"),
        Ending::Committed => Datum::from("committed"),
        Ending::Undone => Datum::from("aborted"),
        Ending::Forgotten => Datum::Null,
        Ending::Future => {
            let message = format!("transaction ID {number} is in the future");
            return Err(Error::new(SqlState::INVALID_PARAMETER_VALUE, message));
        }
    })
}

fn of(args: &[Datum]) -> Result<Snapshot> {
    match args {
        [.., Datum::Text(text)] => Snapshot::parse(text),
        _ => Err(Error::internal("a function of snapshots was called without one")),
    }
}

fn xmin<const BIGINT: bool>(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    Ok(shown(of(args)?.xmin, BIGINT))
}

fn xmax<const BIGINT: bool>(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    Ok(shown(of(args)?.xmax, BIGINT))
}

fn sees<const BIGINT: bool>(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    match args {
        [Datum::Int8(number), _] => Ok(Datum::Bool(of(args)?.sees(numbered(*number, BIGINT)))),
        _ => mismatched(args),
    }
}

fn running<const BIGINT: bool>(_: &dyn EvalContext, args: &[Datum]) -> Result<SetRows> {
    Ok(Box::new(of(args)?.running.into_iter().map(|number| Ok(vec![shown(number, BIGINT)]))))
}
