//! The twelve consistency conditions of clause 3.3.2, each as SQL that finds the rows breaking it.
//!
//! Eleven are as the specification has them. 3.3.2.11 there holds only before the first delivery; here the deliveries
//! that the customers of a district have had are added, which makes it hold at any time.

use crate::client::{Connection, Failure, Row};
use crate::result::Verdict;

/// One condition.
struct Condition {
    clause: &'static str,
    says: &'static str,
    /// What to show of a row that breaks it.
    columns: &'static str,
    /// FROM and WHERE of the rows that break it.
    broken: &'static str,
}

const CONDITIONS: [Condition; 12] = [
    Condition {
        clause: "3.3.2.1",
        says: "W_YTD = sum(D_YTD)",
        columns: "w_id, w_ytd, d_sum",
        broken: "FROM warehouse LEFT JOIN (SELECT d_w_id, sum(d_ytd) AS d_sum FROM district GROUP BY d_w_id) AS d \
                 ON d_w_id = w_id WHERE w_ytd <> coalesce(d_sum, 0)",
    },
    Condition {
        clause: "3.3.2.2",
        says: "D_NEXT_O_ID - 1 = max(O_ID) = max(NO_O_ID)",
        columns: "d_w_id, d_id, d_next_o_id, o_max, no_max",
        broken: "FROM district \
                 LEFT JOIN (SELECT o_w_id, o_d_id, max(o_id) AS o_max FROM orders GROUP BY o_w_id, o_d_id) AS o \
                 ON o_w_id = d_w_id AND o_d_id = d_id \
                 LEFT JOIN (SELECT no_w_id, no_d_id, max(no_o_id) AS no_max FROM new_order GROUP BY no_w_id, no_d_id) \
                 AS n ON no_w_id = d_w_id AND no_d_id = d_id \
                 WHERE d_next_o_id - 1 <> coalesce(o_max, 0) OR d_next_o_id - 1 <> coalesce(no_max, d_next_o_id - 1)",
    },
    Condition {
        clause: "3.3.2.3",
        says: "max(NO_O_ID) - min(NO_O_ID) + 1 = rows in NEW-ORDER",
        columns: "no_w_id, no_d_id, no_max, no_min, no_count",
        broken: "FROM (SELECT no_w_id, no_d_id, max(no_o_id) AS no_max, min(no_o_id) AS no_min, count(*) AS no_count \
                 FROM new_order GROUP BY no_w_id, no_d_id) AS n WHERE no_max - no_min + 1 <> no_count",
    },
    Condition {
        clause: "3.3.2.4",
        says: "sum(O_OL_CNT) = rows in ORDER-LINE",
        columns: "d_w_id, d_id, o_lines, ol_count",
        broken: "FROM district \
                 LEFT JOIN (SELECT o_w_id, o_d_id, sum(o_ol_cnt) AS o_lines FROM orders GROUP BY o_w_id, o_d_id) AS o \
                 ON o_w_id = d_w_id AND o_d_id = d_id \
                 LEFT JOIN (SELECT ol_w_id, ol_d_id, count(*) AS ol_count FROM order_line GROUP BY ol_w_id, ol_d_id) \
                 AS l ON ol_w_id = d_w_id AND ol_d_id = d_id WHERE coalesce(o_lines, 0) <> coalesce(ol_count, 0)",
    },
    Condition {
        clause: "3.3.2.5",
        says: "O_CARRIER_ID is null exactly for the rows in NEW-ORDER",
        columns: "o_w_id, o_d_id, o_id, o_carrier_id, no_o_id",
        broken: "FROM orders LEFT JOIN new_order ON no_w_id = o_w_id AND no_d_id = o_d_id AND no_o_id = o_id \
                 WHERE (o_carrier_id IS NULL AND no_o_id IS NULL) \
                 OR (o_carrier_id IS NOT NULL AND no_o_id IS NOT NULL)",
    },
    Condition {
        clause: "3.3.2.6",
        says: "O_OL_CNT = rows of the order in ORDER-LINE",
        columns: "o_w_id, o_d_id, o_id, o_ol_cnt, ol_count",
        broken: "FROM orders LEFT JOIN (SELECT ol_w_id, ol_d_id, ol_o_id, count(*) AS ol_count FROM order_line \
                 GROUP BY ol_w_id, ol_d_id, ol_o_id) AS l ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id \
                 WHERE o_ol_cnt <> coalesce(ol_count, 0)",
    },
    Condition {
        clause: "3.3.2.7",
        says: "OL_DELIVERY_D is null exactly where O_CARRIER_ID is null",
        columns: "o_w_id, o_d_id, o_id, o_carrier_id, ol_number, ol_delivery_d",
        broken: "FROM order_line JOIN orders ON o_w_id = ol_w_id AND o_d_id = ol_d_id AND o_id = ol_o_id \
                 WHERE (ol_delivery_d IS NULL AND o_carrier_id IS NOT NULL) \
                 OR (ol_delivery_d IS NOT NULL AND o_carrier_id IS NULL)",
    },
    Condition {
        clause: "3.3.2.8",
        says: "W_YTD = sum(H_AMOUNT)",
        columns: "w_id, w_ytd, h_sum",
        broken: "FROM warehouse LEFT JOIN (SELECT h_w_id, sum(h_amount) AS h_sum FROM history GROUP BY h_w_id) AS h \
                 ON h_w_id = w_id WHERE w_ytd <> coalesce(h_sum, 0)",
    },
    Condition {
        clause: "3.3.2.9",
        says: "D_YTD = sum(H_AMOUNT)",
        columns: "d_w_id, d_id, d_ytd, h_sum",
        broken: "FROM district LEFT JOIN (SELECT h_w_id, h_d_id, sum(h_amount) AS h_sum FROM history \
                 GROUP BY h_w_id, h_d_id) AS h ON h_w_id = d_w_id AND h_d_id = d_id WHERE d_ytd <> coalesce(h_sum, 0)",
    },
    Condition {
        clause: "3.3.2.10",
        says: "C_BALANCE = sum(OL_AMOUNT delivered) - sum(H_AMOUNT)",
        columns: "c_w_id, c_d_id, c_id, c_balance, ol_sum, h_sum",
        broken: "FROM customer \
                 LEFT JOIN (SELECT o_w_id, o_d_id, o_c_id, sum(ol_amount) AS ol_sum FROM orders \
                 JOIN order_line ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id \
                 WHERE ol_delivery_d IS NOT NULL GROUP BY o_w_id, o_d_id, o_c_id) AS l \
                 ON o_w_id = c_w_id AND o_d_id = c_d_id AND o_c_id = c_id \
                 LEFT JOIN (SELECT h_c_w_id, h_c_d_id, h_c_id, sum(h_amount) AS h_sum FROM history \
                 GROUP BY h_c_w_id, h_c_d_id, h_c_id) AS h \
                 ON h_c_w_id = c_w_id AND h_c_d_id = c_d_id AND h_c_id = c_id \
                 WHERE c_balance <> coalesce(ol_sum, 0) - coalesce(h_sum, 0)",
    },
    Condition {
        clause: "3.3.2.11",
        says: "rows in ORDER - rows in NEW-ORDER = 2100 + sum(C_DELIVERY_CNT)",
        columns: "d_w_id, d_id, o_count, no_count, c_delivered",
        broken: "FROM district \
                 LEFT JOIN (SELECT o_w_id, o_d_id, count(*) AS o_count FROM orders GROUP BY o_w_id, o_d_id) AS o \
                 ON o_w_id = d_w_id AND o_d_id = d_id \
                 LEFT JOIN (SELECT no_w_id, no_d_id, count(*) AS no_count FROM new_order GROUP BY no_w_id, no_d_id) \
                 AS n ON no_w_id = d_w_id AND no_d_id = d_id \
                 LEFT JOIN (SELECT c_w_id, c_d_id, sum(c_delivery_cnt) AS c_delivered FROM customer \
                 GROUP BY c_w_id, c_d_id) AS c ON c_w_id = d_w_id AND c_d_id = d_id \
                 WHERE coalesce(o_count, 0) - coalesce(no_count, 0) <> 2100 + coalesce(c_delivered, 0)",
    },
    Condition {
        clause: "3.3.2.12",
        says: "C_BALANCE + C_YTD_PAYMENT = sum(OL_AMOUNT delivered)",
        columns: "c_w_id, c_d_id, c_id, c_balance, c_ytd_payment, ol_sum",
        broken: "FROM customer \
                 LEFT JOIN (SELECT o_w_id, o_d_id, o_c_id, sum(ol_amount) AS ol_sum FROM orders \
                 JOIN order_line ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id \
                 WHERE ol_delivery_d IS NOT NULL GROUP BY o_w_id, o_d_id, o_c_id) AS l \
                 ON o_w_id = c_w_id AND o_d_id = c_d_id AND o_c_id = c_id \
                 WHERE c_balance + c_ytd_payment <> coalesce(ol_sum, 0)",
    },
];

/// Checks all conditions, one after the other. The tables must not change meanwhile.
///
/// # Errors
/// If the connection is lost: that says nothing of the data. What the server refuses to check does not hold.
pub fn check(connection: &mut Connection, mut before_each: impl FnMut(&str)) -> Result<Vec<Verdict>, Failure> {
    let mut one = |condition: &Condition| {
        before_each(condition.clause);
        let found = match breaks(connection, condition) {
            Ok(found) => found,
            Err(error @ Failure::Server { .. }) => Some(format!("could not be checked: {error}")),
            Err(lost) => return Err(lost),
        };
        Ok(Verdict {
            says: format!("{} {}", condition.clause, condition.says),
            holds: found.is_none(),
            found: found.unwrap_or_else(|| "no row breaks it".into()),
        })
    };
    CONDITIONS.iter().map(&mut one).collect()
}

fn breaks(connection: &mut Connection, condition: &Condition) -> Result<Option<String>, Failure> {
    let Condition { columns, broken, .. } = condition;
    let count = connection.query_one(&format!("SELECT count(*) {broken}"))?;
    if count.as_deref() == Some("0") {
        return Ok(None);
    }
    connection.query(&format!("SELECT {columns} {broken} LIMIT 3"))?;
    let rows: Vec<String> = (0..connection.row_count()).map(|at| show(connection.row(at))).collect();
    Ok(Some(format!("rows that break it: {}, as ({columns}) = {}", count.unwrap_or_default(), rows.join(", "))))
}

fn show(row: Row<'_>) -> String {
    let cells: Vec<_> =
        row.cells().map(|cell| cell.map_or("null".into(), |text| String::from_utf8_lossy(text))).collect();
    format!("({})", cells.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_twelve_clauses_are_there() {
        let clauses: Vec<&str> = CONDITIONS.iter().map(|c| c.clause).collect();
        let expected: Vec<String> = (1..=12).map(|n| format!("3.3.2.{n}")).collect();
        assert_eq!(clauses, expected);
    }
}
