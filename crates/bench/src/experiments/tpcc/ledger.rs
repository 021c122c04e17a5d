//! What the clients of a run were told, against what the database has afterwards.
//!
//! A transaction that was acknowledged and is missing as a whole, or is there twice, breaks none of the specification's conditions.
//! So orders, payments and deliveries are counted in the tables before and after a run. No other client may use them
//! meanwhile.

use super::mix::TransactionKind;
use super::random::DISTRICTS;
use super::transactions::Outcome;
use crate::client::{Connection, Failure};
use crate::expected::Expected;
use crate::result::Verdict;

/// What is counted: a clause that defines it, what must hold, and a query.
const COUNTED: [(&str, &str, &str); 3] = [
    ("2.4", "sum(D_NEXT_O_ID) rose by the acknowledged orders", "SELECT sum(d_next_o_id) FROM district"),
    ("2.5", "HISTORY grew by the acknowledged payments", "SELECT count(*) FROM history"),
    ("2.7", "sum(C_DELIVERY_CNT) rose by the acknowledged deliveries", "SELECT sum(c_delivery_cnt) FROM customer"),
];

/// What transactions have made, by [`COUNTED`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Made {
    acknowledged: [u64; COUNTED.len()],
    unknown: [u64; COUNTED.len()],
}

impl Made {
    /// Takes in what another client's transactions have made.
    pub fn add(&mut self, other: &Made) {
        for at in 0..COUNTED.len() {
            self.acknowledged[at] += other.acknowledged[at];
            self.unknown[at] += other.unknown[at];
        }
    }

    /// The server has acknowledged a transaction.
    pub fn acknowledged(&mut self, kind: TransactionKind, outcome: Outcome) {
        match (kind, outcome) {
            (_, Outcome::RolledBack) => {}
            (_, Outcome::Delivered(orders)) => self.acknowledged[2] += orders,
            (TransactionKind::NewOrder, Outcome::Committed) => self.acknowledged[0] += 1,
            (TransactionKind::Payment, Outcome::Committed) => self.acknowledged[1] += 1,
            (_, Outcome::Committed) => {}
        }
    }

    /// The connection of a transaction was lost.
    pub fn unknown(&mut self, kind: TransactionKind) {
        match kind {
            TransactionKind::NewOrder => self.unknown[0] += 1,
            TransactionKind::Payment => self.unknown[1] += 1,
            TransactionKind::Delivery => self.unknown[2] += DISTRICTS as u64,
            TransactionKind::OrderStatus | TransactionKind::StockLevel => {}
        }
    }
}

/// What the tables have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counts([i64; COUNTED.len()]);

impl Counts {
    /// Counts.
    pub fn read(connection: &mut Connection) -> Result<Counts, Failure> {
        let mut counts = [0; COUNTED.len()];
        for (count, (.., sql)) in counts.iter_mut().zip(COUNTED) {
            connection.query(sql)?;
            *count = connection.first(sql)?.int(0)?;
        }
        Ok(Counts(counts))
    }
}

/// Compares.
pub fn verdicts(before: &Counts, after: Result<Counts, Failure>, made: &Made) -> Vec<Verdict> {
    let one = |at: usize| {
        let (clause, says, _) = COUNTED[at];
        let says = format!("{clause} {says}");
        match &after {
            Err(failure) => Verdict { says, holds: false, found: format!("could not be checked: {failure}") },
            Ok(after) => {
                let mut expected = Expected::default();
                expected.add(made.acknowledged[at], made.unknown[at]);
                expected.verdict(&says, after.0[at] - before.0[at])
            }
        }
    };
    (0..COUNTED.len()).map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_transaction_is_found_and_an_unknown_one_forgiven() {
        let mut made = Made::default();
        made.acknowledged(TransactionKind::NewOrder, Outcome::Committed);
        made.acknowledged(TransactionKind::NewOrder, Outcome::RolledBack);
        made.acknowledged(TransactionKind::Payment, Outcome::Committed);
        made.acknowledged(TransactionKind::StockLevel, Outcome::Committed);
        made.acknowledged(TransactionKind::Delivery, Outcome::Delivered(9));
        let mut all = Made::default();
        all.add(&made);
        all.add(&made);
        let holds = |made: &Made, after: [i64; 3]| {
            let verdicts = verdicts(&Counts([100, 50, 7]), Ok(Counts(after)), made);
            [verdicts[0].holds, verdicts[1].holds, verdicts[2].holds]
        };
        assert_eq!(holds(&all, [102, 52, 25]), [true; 3]);
        assert_eq!(holds(&all, [101, 53, 24]), [false; 3]);
        [TransactionKind::NewOrder, TransactionKind::Payment, TransactionKind::Delivery]
            .into_iter()
            .for_each(|kind| all.unknown(kind));
        assert_eq!(holds(&all, [103, 53, 35]), [true; 3]);
        assert_eq!(holds(&all, [104, 51, 36]), [false; 3]);
        let lost = verdicts(&Counts([0; 3]), Err(Failure::Lost("gone".into())), &all);
        assert!(lost.iter().all(|verdict| !verdict.holds));
    }
}
