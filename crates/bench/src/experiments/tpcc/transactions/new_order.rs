//! New-Order (clause 2.4): a customer orders 5 to 15 items, mostly from the terminal's own warehouse.
//! 21 to 51 round trips; pipelined four.

use std::time::SystemTime;

use super::super::random::{DISTRICTS, ITEMS, push_time};
use super::{BEGIN, NEW_ORDER, Outcome, ROLLBACK, Terminal, begin, commit, must_change, row, run_and_commit};
use crate::client::Param::{Cents, Int, Text};
use crate::client::{AsyncConnection, Failure, parse_cents};
use crate::rng::Rng;

const WAREHOUSE: usize = NEW_ORDER;
const CUSTOMER: usize = NEW_ORDER + 1;
const DISTRICT: usize = NEW_ORDER + 2;
const ORDER: usize = NEW_ORDER + 3;
const NEW: usize = NEW_ORDER + 4;
const ITEM: usize = NEW_ORDER + 5;
const LINE: usize = NEW_ORDER + 6;
/// One for each district: each returns another `s_dist` column.
const STOCK: usize = NEW_ORDER + 7;

const SQL: [&str; 7] = [
    "SELECT w_tax FROM warehouse WHERE w_id = $1",
    "SELECT c_discount, c_last, c_credit FROM customer WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3",
    "UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = $1 AND d_id = $2 RETURNING d_next_o_id, d_tax",
    "INSERT INTO orders (o_w_id, o_d_id, o_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local) \
     VALUES ($1, $2, $3, $4, $5, $6, $7)",
    "INSERT INTO new_order (no_w_id, no_d_id, no_o_id) VALUES ($1, $2, $3)",
    "SELECT i_price, i_name, i_data FROM item WHERE i_id = $1",
    "INSERT INTO order_line (ol_w_id, ol_d_id, ol_o_id, ol_number, ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, \
     ol_dist_info) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
];

/// How many statements [`statements`] gives.
pub const STATEMENTS: usize = SQL.len() + DISTRICTS as usize;

/// The statements of the transaction.
pub fn statements() -> Vec<String> {
    let stock = (1..=DISTRICTS).map(|district| {
        format!(
            "UPDATE stock SET s_quantity = CASE WHEN s_quantity >= $3 + 10 THEN s_quantity - $3 \
             ELSE s_quantity - $3 + 91 END, s_ytd = s_ytd + $3, s_order_cnt = s_order_cnt + 1, \
             s_remote_cnt = s_remote_cnt + $4 WHERE s_w_id = $1 AND s_i_id = $2 \
             RETURNING s_quantity, s_dist_{district:02}, s_data"
        )
    });
    SQL.iter().map(|sql| sql.to_string()).chain(stock).collect()
}

#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Line {
    supply: i64,
    item: i64,
    quantity: i64,
}

/// The input.
pub struct NewOrder {
    warehouse: i64,
    district: i64,
    customer: i64,
    lines: [Line; 15],
    count: usize,
}

impl NewOrder {
    /// Clause 2.4.1.
    pub fn draw(terminal: &Terminal<'_>, rng: &mut Rng) -> NewOrder {
        let district = terminal.any_district(rng);
        let customer = terminal.constants.customer(rng);
        let count = rng.uniform(5, 15) as usize;
        let mut lines = [Line::default(); 15];
        for line in &mut lines[..count] {
            let remote = terminal.warehouses > 1 && rng.percent(1);
            *line = Line {
                supply: if remote { terminal.other_warehouse(rng) } else { terminal.warehouse },
                item: terminal.constants.item(rng),
                quantity: rng.uniform(1, 10),
            };
        }
        let mut sorted = count;
        if rng.percent(1) {
            // An item that nobody has.
            lines[count - 1].item = ITEMS + 1;
            sorted -= 1;
        }
        lines[..sorted].sort_unstable();
        NewOrder { warehouse: terminal.warehouse, district, customer, lines, count }
    }

    /// Clause 2.4.2.
    pub async fn run(&self, connection: &mut AsyncConnection) -> Result<Outcome, Failure> {
        let (w, d) = (Int(self.warehouse), Int(self.district));
        begin(connection, WAREHOUSE, &[w]).await?;
        connection.first("warehouse")?;
        connection.call(CUSTOMER, &[w, d, Int(self.customer)]).await?;
        connection.first("customer")?;
        connection.call(DISTRICT, &[w, d]).await?;
        let order = Int(connection.first("district")?.int(0)? - 1);
        let local = self.lines[..self.count].iter().all(|line| line.supply == self.warehouse);
        let mut text = Vec::with_capacity(32);
        push_time(&mut text, SystemTime::now());
        let (count, local) = (Int(self.count as i64), Int(i64::from(local)));
        must_change(connection, ORDER, &[w, d, order, Int(self.customer), Text(&text), count, local]).await?;
        must_change(connection, NEW, &[w, d, order]).await?;
        for (at, line) in self.lines[..self.count].iter().enumerate() {
            connection.call(ITEM, &[Int(line.item)]).await?;
            if connection.row_count() == 0 {
                connection.call(ROLLBACK, &[]).await?;
                return Ok(Outcome::RolledBack);
            }
            let price = parse_cents(connection.row(0).bytes(0)).unwrap_or_default();
            let (item, supply, quantity) = (Int(line.item), Int(line.supply), Int(line.quantity));
            let remote = Int(i64::from(line.supply != self.warehouse));
            connection.call(STOCK + self.district as usize - 1, &[supply, item, quantity, remote]).await?;
            text.clear();
            text.extend_from_slice(connection.first("stock")?.bytes(1));
            let (number, amount) = (Int(at as i64 + 1), Cents(price * line.quantity));
            must_change(connection, LINE, &[w, d, order, number, item, supply, quantity, amount, Text(&text)]).await?;
        }
        commit(connection).await
    }

    /// The same in four round trips: what is read of the head; the order and the items; the stock; the lines.
    pub async fn run_pipelined(&self, connection: &mut AsyncConnection) -> Result<Outcome, Failure> {
        let (w, d, lines) = (Int(self.warehouse), Int(self.district), &self.lines[..self.count]);
        connection.bind(BEGIN, &[]);
        connection.bind(WAREHOUSE, &[w]);
        connection.bind(CUSTOMER, &[w, d, Int(self.customer)]);
        connection.bind(DISTRICT, &[w, d]);
        connection.run().await?;
        let order = Int(row(connection, 2, "warehouse, customer, district")?.int(0)? - 1);
        let local = Int(i64::from(lines.iter().all(|line| line.supply == self.warehouse)));
        let mut now = Vec::with_capacity(32);
        push_time(&mut now, SystemTime::now());
        connection.bind(ORDER, &[w, d, order, Int(self.customer), Text(&now), Int(self.count as i64), local]);
        connection.bind(NEW, &[w, d, order]);
        lines.iter().for_each(|line| connection.bind(ITEM, &[Int(line.item)]));
        connection.run().await?;
        if connection.row_count() < self.count {
            connection.call(ROLLBACK, &[]).await?;
            return Ok(Outcome::RolledBack);
        }
        let mut prices = [0; 15];
        for (at, price) in prices[..self.count].iter_mut().enumerate() {
            *price = parse_cents(connection.row(at).bytes(0)).unwrap_or_default();
        }
        for line in lines {
            let remote = Int(i64::from(line.supply != self.warehouse));
            let stock = [Int(line.supply), Int(line.item), Int(line.quantity), remote];
            connection.bind(STOCK + self.district as usize - 1, &stock);
        }
        connection.run().await?;
        row(connection, self.count - 1, "stock")?;
        let text: Vec<Vec<u8>> = (0..self.count).map(|at| connection.row(at).bytes(1).to_vec()).collect();
        for (at, line) in lines.iter().enumerate() {
            let (number, amount) = (Int(at as i64 + 1), Cents(prices[at] * line.quantity));
            let (item, supply, quantity) = (Int(line.item), Int(line.supply), Int(line.quantity));
            connection.bind(LINE, &[w, d, order, number, item, supply, quantity, amount, Text(&text[at])]);
        }
        run_and_commit(connection).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments::tpcc::random::Constants;

    #[test]
    fn orders_are_drawn_as_the_specification_says() {
        let mut rng = Rng::new(9, 0);
        let constants = Constants::run(&mut rng);
        let terminal = Terminal { warehouses: 4, warehouse: 2, district: 1, constants: &constants };
        let (mut lines, mut remote, mut invalid) = (0, 0, 0);
        for _ in 0..20_000 {
            let order = NewOrder::draw(&terminal, &mut rng);
            assert!((5..=15).contains(&order.count) && (1..=10).contains(&order.district));
            let drawn = &order.lines[..order.count];
            let wrong = drawn.iter().filter(|l| l.item > ITEMS).count();
            assert!(wrong == 0 || (wrong == 1 && drawn[order.count - 1].item == ITEMS + 1));
            assert!(drawn[..order.count - wrong].is_sorted());
            lines += order.count;
            remote += drawn.iter().filter(|l| l.supply != 2).count();
            invalid += wrong;
        }
        assert!((150..250).contains(&invalid), "1 % of 20,000: {invalid}");
        let share = remote as f64 / lines as f64;
        assert!((0.008..0.012).contains(&share), "{share}");
        assert!((9.8..10.2).contains(&(lines as f64 / 20_000.0)));
    }
}
