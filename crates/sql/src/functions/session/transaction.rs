//! The number of the transaction: functions that the compiler of expressions turns into a look at it
//! ([`crate::expr::Code::Transaction`]), for no function sees the transaction.

use base::TxnId;
use types::Datum;

/// `txid_current()`
pub(crate) const TXID_CURRENT: u32 = 2943;
/// `txid_current_if_assigned()`
pub(crate) const TXID_IF_ASSIGNED: u32 = 3348;
/// `pg_current_xact_id()`
pub(crate) const XACT_ID: u32 = 5059;
/// `pg_current_xact_id_if_assigned()`
pub(crate) const XACT_ID_IF_ASSIGNED: u32 = 5060;

/// Whether a function answers the transaction's number, and gives it one if it has none.
pub(crate) fn asks_for_number(function: u32) -> Option<bool> {
    match function {
        TXID_CURRENT | XACT_ID => Some(true),
        TXID_IF_ASSIGNED | XACT_ID_IF_ASSIGNED => Some(false),
        _ => None,
    }
}

/// The number as an `xid8`, or as `bigint`.
pub(crate) fn number_of(txn: Option<TxnId>, is_xid8: bool) -> Datum {
    match txn {
        None => Datum::Null,
        Some(txn) if is_xid8 => types::xid8(txn.xid8()),
        Some(txn) => Datum::Int8(txn.xid8() as i64),
    }
}
