//! Delivery (clause 2.7): the oldest undelivered order of each district is delivered. 61 round trips.
//!
//! A district whose orders are all delivered is skipped, as clause 2.7.4.2 wants. `FOR UPDATE` on the oldest order
//! makes two deliveries of one district take turns.

use std::time::SystemTime;

use super::super::random::{DISTRICTS, push_time};
use super::{BEGIN, DELIVERY, Outcome, Terminal, begin, commit, must_change, row, run_and_commit};
use crate::client::Param::{Int, Text};
use crate::client::{AsyncConnection, Failure};
use crate::rng::Rng;

const OLDEST: usize = DELIVERY;
const TAKE: usize = DELIVERY + 1;
const ORDER: usize = DELIVERY + 2;
const LINES: usize = DELIVERY + 3;
const SUM: usize = DELIVERY + 4;
const CUSTOMER: usize = DELIVERY + 5;

/// The statements of the transaction.
pub const SQL: [&str; 6] = [
    "SELECT no_o_id, no_d_id FROM new_order WHERE no_w_id = $1 AND no_d_id = $2 ORDER BY no_o_id LIMIT 1 FOR UPDATE",
    "DELETE FROM new_order WHERE no_w_id = $1 AND no_d_id = $2 AND no_o_id = $3",
    "UPDATE orders SET o_carrier_id = $4 WHERE o_w_id = $1 AND o_d_id = $2 AND o_id = $3 RETURNING o_c_id",
    "UPDATE order_line SET ol_delivery_d = $4 WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id = $3",
    "SELECT sum(ol_amount) FROM order_line WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id = $3",
    "UPDATE customer SET c_balance = c_balance + $4, c_delivery_cnt = c_delivery_cnt + 1 \
     WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3",
];

/// The input.
pub struct Delivery {
    warehouse: i64,
    carrier: i64,
}

impl Delivery {
    /// Clause 2.7.1.
    pub fn draw(terminal: &Terminal<'_>, rng: &mut Rng) -> Delivery {
        Delivery { warehouse: terminal.warehouse, carrier: rng.uniform(1, 10) }
    }

    /// Clause 2.7.4.
    pub async fn run(&self, connection: &mut AsyncConnection) -> Result<Outcome, Failure> {
        let mut now = Vec::with_capacity(32);
        push_time(&mut now, SystemTime::now());
        let mut delivered = 0;
        for district in 1..=DISTRICTS {
            let (w, d) = (Int(self.warehouse), Int(district));
            if district == 1 {
                begin(connection, OLDEST, &[w, d]).await?;
            } else {
                connection.call(OLDEST, &[w, d]).await?;
            }
            if connection.row_count() > 0 {
                let order = connection.row(0).int(0)?;
                self.deliver(connection, district, order, &now).await?;
                delivered += 1;
            }
        }
        commit(connection).await?;
        Ok(Outcome::Delivered(delivered))
    }

    /// The same for all districts together, in three round trips: the oldest orders, the orders, the customers.
    pub async fn run_pipelined(&self, connection: &mut AsyncConnection) -> Result<Outcome, Failure> {
        let mut now = Vec::with_capacity(32);
        push_time(&mut now, SystemTime::now());
        let w = Int(self.warehouse);
        connection.bind(BEGIN, &[]);
        (1..=DISTRICTS).for_each(|district| connection.bind(OLDEST, &[w, Int(district)]));
        connection.run().await?;
        let mut orders = Vec::with_capacity(DISTRICTS as usize);
        for at in 0..connection.row_count() {
            let row = connection.row(at);
            orders.push((row.int(0)?, row.int(1)?));
        }
        for &(order, district) in &orders {
            let (d, o) = (Int(district), Int(order));
            connection.bind(TAKE, &[w, d, o]);
            connection.bind(ORDER, &[w, d, o, Int(self.carrier)]);
            connection.bind(LINES, &[w, d, o, Text(&now)]);
            connection.bind(SUM, &[w, d, o]);
        }
        connection.run().await?;
        let mut totals = Vec::with_capacity(orders.len());
        for at in 0..orders.len() {
            let customer = row(connection, 2 * at, "the order")?.int(0)?;
            totals.push((customer, row(connection, 2 * at + 1, "the order's sum")?.bytes(0).to_vec()));
        }
        for (&(_, district), (customer, total)) in orders.iter().zip(&totals) {
            connection.bind(CUSTOMER, &[w, Int(district), Int(*customer), Text(total)]);
        }
        run_and_commit(connection).await?;
        Ok(Outcome::Delivered(orders.len() as u64))
    }

    async fn deliver(
        &self,
        connection: &mut AsyncConnection,
        district: i64,
        order: i64,
        now: &[u8],
    ) -> Result<(), Failure> {
        let (w, d, o) = (Int(self.warehouse), Int(district), Int(order));
        must_change(connection, TAKE, &[w, d, o]).await?;
        connection.call(ORDER, &[w, d, o, Int(self.carrier)]).await?;
        let customer = connection.first("the order")?.int(0)?;
        must_change(connection, LINES, &[w, d, o, Text(now)]).await?;
        connection.call(SUM, &[w, d, o]).await?;
        let total = connection.first("the order's sum")?.bytes(0).to_vec();
        must_change(connection, CUSTOMER, &[w, d, Int(customer), Text(&total)]).await
    }
}
