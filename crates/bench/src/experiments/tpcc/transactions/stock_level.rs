//! Stock-Level (clause 2.8): which items of the last 20 orders of a district run short. 3 round trips.

use super::{Outcome, STOCK_LEVEL, Terminal, begin, commit, run_and_commit};
use crate::client::Param::Int;
use crate::client::{AsyncConnection, Failure};
use crate::rng::Rng;

const NEXT_ORDER: usize = STOCK_LEVEL;
const SHORT: usize = STOCK_LEVEL + 1;

/// The statements of the transaction.
pub const SQL: [&str; 2] = [
    "SELECT d_next_o_id FROM district WHERE d_w_id = $1 AND d_id = $2",
    "SELECT count(DISTINCT s_i_id) FROM order_line JOIN stock ON s_w_id = ol_w_id AND s_i_id = ol_i_id \
     WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id >= $3 AND ol_o_id < $4 AND s_quantity < $5",
];

/// The input.
pub struct StockLevel {
    warehouse: i64,
    district: i64,
    threshold: i64,
}

impl StockLevel {
    /// Clause 2.8.1.
    pub fn draw(terminal: &Terminal<'_>, rng: &mut Rng) -> StockLevel {
        StockLevel { warehouse: terminal.warehouse, district: terminal.district, threshold: rng.uniform(10, 20) }
    }

    /// Clause 2.8.2.
    pub async fn run(&self, connection: &mut AsyncConnection, pipelined: bool) -> Result<Outcome, Failure> {
        let (w, d) = (Int(self.warehouse), Int(self.district));
        begin(connection, NEXT_ORDER, &[w, d]).await?;
        let next = connection.first("district")?.int(0)?;
        connection.bind(SHORT, &[w, d, Int(next - 20), Int(next), Int(self.threshold)]);
        if pipelined {
            return run_and_commit(connection).await;
        }
        connection.run().await?;
        connection.first("a count")?.int(0)?;
        commit(connection).await
    }
}
