//! Whether the bank's books are what its transfers have made of them.

use super::{ACCOUNTS, INITIAL, JOURNAL};
use crate::client::{Connection, Failure};
use crate::expected::RollCall;
use crate::result::Verdict;
use crate::schema;

/// Rows of the journal that are read at a time.
const PAGE: usize = 50_000;

/// No account and no money is lost or invented, and every balance follows from the journal.
pub fn balances(connection: &mut Connection, accounts: i64) -> Result<Vec<Verdict>, Failure> {
    connection.query(&format!("SELECT count(*), coalesce(sum(balance), 0) FROM {ACCOUNTS}"))?;
    let row = connection.first("the sum")?;
    let (count, sum) = (row.int(0)?, row.int(1)?);
    let whole = Verdict {
        says: "the sum of all balances is unchanged".into(),
        holds: (count, sum) == (accounts, accounts * INITIAL),
        found: format!("{sum} of {} in {count} accounts of {accounts}", accounts * INITIAL),
    };
    let moved = |side: &str| format!("SELECT {side} AS account, sum(amount) AS amount FROM {JOURNAL} GROUP BY {side}");
    let differ = schema::int(
        connection,
        &format!(
            "SELECT count(*) FROM {ACCOUNTS} LEFT JOIN ({}) AS gone ON gone.account = id \
             LEFT JOIN ({}) AS come ON come.account = id \
             WHERE balance <> {INITIAL} - coalesce(gone.amount, 0) + coalesce(come.amount, 0)",
            moved("from_id"),
            moved("to_id")
        ),
    )?;
    let each = Verdict {
        says: "every balance is its first one with the journal's transfers".into(),
        holds: differ == 0,
        found: format!("{differ} accounts differ"),
    };
    Ok(vec![whole, each])
}

/// Every acknowledged transfer is in the journal, and no other but those whose end is not known. Those up to `start` are not looked at.
pub fn journal(
    connection: &mut Connection,
    start: i64,
    acknowledged: &[i64],
    unknown: &[i64],
) -> Result<Verdict, Failure> {
    let (mut roll, mut last) = (RollCall::new(acknowledged, unknown), start);
    loop {
        connection.query(&format!("SELECT id FROM {JOURNAL} WHERE id > {last} ORDER BY id LIMIT {PAGE}"))?;
        let count = connection.row_count();
        for at in 0..count {
            last = connection.row(at).int(0)?;
            roll.see(&last);
        }
        if count < PAGE {
            return Ok(roll.verdict("every acknowledged transfer is in the journal, and no other"));
        }
    }
}
