//! Order-Status (clause 2.6): what became of a customer's last order. 4 round trips.

use super::super::random::push_last_name;
use super::{ORDER_STATUS, Outcome, Terminal, Who, begin, commit, middle, run_and_commit};
use crate::client::Param::{Int, Text};
use crate::client::{AsyncConnection, Failure};
use crate::rng::Rng;

const BY_ID: usize = ORDER_STATUS;
const BY_NAME: usize = ORDER_STATUS + 1;
const LAST_ORDER: usize = ORDER_STATUS + 2;
const LINES: usize = ORDER_STATUS + 3;

/// The statements of the transaction.
pub const SQL: [&str; 4] = [
    "SELECT c_id, c_balance, c_first, c_middle, c_last FROM customer WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3",
    "SELECT c_id, c_balance, c_first, c_middle, c_last FROM customer \
     WHERE c_w_id = $1 AND c_d_id = $2 AND c_last = $3 ORDER BY c_first",
    "SELECT o_id, o_entry_d, o_carrier_id FROM orders WHERE o_w_id = $1 AND o_d_id = $2 AND o_c_id = $3 \
     ORDER BY o_id DESC LIMIT 1",
    "SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM order_line \
     WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id = $3",
];

/// The input.
pub struct OrderStatus {
    warehouse: i64,
    district: i64,
    who: Who,
}

impl OrderStatus {
    /// Clause 2.6.1.
    pub fn draw(terminal: &Terminal<'_>, rng: &mut Rng) -> OrderStatus {
        let district = terminal.any_district(rng);
        OrderStatus { warehouse: terminal.warehouse, district, who: Who::draw(terminal, rng) }
    }

    /// Clause 2.6.2.
    pub async fn run(&self, connection: &mut AsyncConnection, pipelined: bool) -> Result<Outcome, Failure> {
        let (w, d) = (Int(self.warehouse), Int(self.district));
        match self.who {
            Who::Id(id) => begin(connection, BY_ID, &[w, d, Int(id)]).await?,
            Who::LastName(number) => {
                let mut name = Vec::with_capacity(16);
                push_last_name(&mut name, number);
                begin(connection, BY_NAME, &[w, d, Text(&name)]).await?;
            }
        }
        connection.first("customer")?;
        let customer = connection.row(middle(connection.row_count())).int(0)?;
        connection.call(LAST_ORDER, &[w, d, Int(customer)]).await?;
        let order = connection.first("the customer's last order")?.int(0)?;
        connection.bind(LINES, &[w, d, Int(order)]);
        if pipelined {
            return run_and_commit(connection).await;
        }
        connection.run().await?;
        connection.first("the order's lines")?;
        commit(connection).await
    }
}
