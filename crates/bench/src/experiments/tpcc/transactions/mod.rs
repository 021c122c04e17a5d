//! The five transactions of clause 2, as interactive SQL: what an application would do that runs one statement, looks
//! at its rows and decides on the next. Every target gets the same statements in the same order:
//!
//! - A statement is one round trip. BEGIN shares that of the first statement, as drivers send it; COMMIT has its own.
//!   Nothing else is pipelined, although the lines of an order could be.
//! - A row that is read and changed in one step is one `UPDATE … RETURNING`: the district's next order number, the
//!   stock of each line, the year-to-date sums. A row whose new value the client computes is read `FOR UPDATE` first.
//! - The lines of an order are sorted by (warehouse, item), but for the invalid item of clause 2.4.1.5, which stays
//!   last: so two orders never wait for each other in a circle.
//! - Delivery runs at once, as an ordinary transaction over the ten districts; the deferred queue of clause 2.7.2 is
//!   left out.
//! - What the specification shows on a screen is fetched but not laid out: the client costs as little as it can.
//!
//! In the pipelined mode the same statements travel together as far as one does not need another's rows: four round trips for
//! an order, whatever its lines. It is another experiment, whose results stand beside those of the interactive one, not in
//! their place.

mod delivery;
mod new_order;
mod order_status;
mod payment;
mod stock_level;

use super::mix::TransactionKind;
use super::random::{Constants, DISTRICTS};
use crate::client::{AsyncConnection, Failure, Param, Row};
use crate::rng::Rng;

const BEGIN: usize = 0;
const COMMIT: usize = 1;
const ROLLBACK: usize = 2;
const NEW_ORDER: usize = 3;
const PAYMENT: usize = NEW_ORDER + new_order::STATEMENTS;
const ORDER_STATUS: usize = PAYMENT + payment::SQL.len();
const DELIVERY: usize = ORDER_STATUS + order_status::SQL.len();
const STOCK_LEVEL: usize = DELIVERY + delivery::SQL.len();

/// Every statement, in the order of its number. `isolation` is the level's SQL name.
pub fn statements(isolation: &str) -> Vec<String> {
    let mut all = vec![format!("BEGIN ISOLATION LEVEL {isolation}"), "COMMIT".into(), "ROLLBACK".into()];
    all.extend(new_order::statements());
    for sql in [&payment::SQL[..], &order_status::SQL, &delivery::SQL, &stock_level::SQL] {
        all.extend(sql.iter().map(|s| s.to_string()));
    }
    all
}

/// How a transaction ended, if it did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// By COMMIT.
    Committed,
    /// By COMMIT, a Delivery with so many orders.
    Delivered(u64),
    /// By ROLLBACK, as the specification wants of one New-Order in a hundred.
    RolledBack,
}

/// Where a client sits, and what it draws from.
pub struct Terminal<'a> {
    /// Warehouses in the database.
    pub warehouses: i64,
    /// The warehouse of this transaction.
    pub warehouse: i64,
    /// The district whose stock this terminal watches.
    pub district: i64,
    /// The run's constants.
    pub constants: &'a Constants,
}

impl Terminal<'_> {
    /// Another warehouse than the terminal's own.
    fn other_warehouse(&self, rng: &mut Rng) -> i64 {
        let other = rng.uniform(1, self.warehouses - 1);
        if other < self.warehouse { other } else { other + 1 }
    }

    fn any_district(&self, rng: &mut Rng) -> i64 {
        rng.uniform(1, DISTRICTS)
    }
}

/// A customer by number, or by the number behind a last name (60 of 100 times).
#[derive(Clone, Copy, Debug)]
enum Who {
    Id(i64),
    LastName(i64),
}

impl Who {
    fn draw(terminal: &Terminal<'_>, rng: &mut Rng) -> Who {
        if rng.percent(60) {
            Who::LastName(terminal.constants.last_name(rng))
        } else {
            Who::Id(terminal.constants.customer(rng))
        }
    }
}

/// The input of a transaction. A transaction that is retried has the same input again.
pub enum Input {
    /// Clause 2.4.
    NewOrder(new_order::NewOrder),
    /// Clause 2.5.
    Payment(payment::Payment),
    /// Clause 2.6.
    OrderStatus(order_status::OrderStatus),
    /// Clause 2.7.
    Delivery(delivery::Delivery),
    /// Clause 2.8.
    StockLevel(stock_level::StockLevel),
}

impl Input {
    /// Draws the input of a transaction.
    pub fn draw(kind: TransactionKind, terminal: &Terminal<'_>, rng: &mut Rng) -> Input {
        match kind {
            TransactionKind::NewOrder => Input::NewOrder(new_order::NewOrder::draw(terminal, rng)),
            TransactionKind::Payment => Input::Payment(payment::Payment::draw(terminal, rng)),
            TransactionKind::OrderStatus => Input::OrderStatus(order_status::OrderStatus::draw(terminal, rng)),
            TransactionKind::Delivery => Input::Delivery(delivery::Delivery::draw(terminal, rng)),
            TransactionKind::StockLevel => Input::StockLevel(stock_level::StockLevel::draw(terminal, rng)),
        }
    }

    /// Runs the transaction once. After a failure the connection may be inside a transaction.
    pub async fn run(&self, connection: &mut AsyncConnection, pipelined: bool) -> Result<Outcome, Failure> {
        match self {
            Input::NewOrder(input) if pipelined => input.run_pipelined(connection).await,
            Input::NewOrder(input) => input.run(connection).await,
            Input::Payment(input) if pipelined => input.run_pipelined(connection).await,
            Input::Payment(input) => input.run(connection).await,
            Input::OrderStatus(input) => input.run(connection, pipelined).await,
            Input::Delivery(input) if pipelined => input.run_pipelined(connection).await,
            Input::Delivery(input) => input.run(connection).await,
            Input::StockLevel(input) => input.run(connection, pipelined).await,
        }
    }
}

/// The first statement of a transaction, with BEGIN in the same round trip.
async fn begin(connection: &mut AsyncConnection, id: usize, params: &[Param<'_>]) -> Result<(), Failure> {
    connection.bind(BEGIN, &[]);
    connection.call(id, params).await
}

async fn commit(connection: &mut AsyncConnection) -> Result<Outcome, Failure> {
    connection.call(COMMIT, &[]).await?;
    Ok(Outcome::Committed)
}

/// Sends what is queued with COMMIT behind it.
async fn run_and_commit(connection: &mut AsyncConnection) -> Result<Outcome, Failure> {
    connection.bind(COMMIT, &[]);
    connection.run().await?;
    Ok(Outcome::Committed)
}

/// The row number `at` of an answer to several statements.
fn row<'c>(connection: &'c AsyncConnection, at: usize, of: &str) -> Result<Row<'c>, Failure> {
    if at >= connection.row_count() {
        return Err(Failure::Server { state: *b"02000", message: format!("no row: {of}") });
    }
    Ok(connection.row(at))
}

/// An update or insert by key that must have met its row.
async fn must_change(connection: &mut AsyncConnection, id: usize, params: &[Param<'_>]) -> Result<(), Failure> {
    connection.call(id, params).await?;
    if connection.affected() == 0 {
        return Err(Failure::Server { state: *b"02000", message: format!("statement {id} changed no row") });
    }
    Ok(())
}

/// The row in the middle, rounded up, of the customers with one last name: clause 2.5.2.2.
fn middle(rows: usize) -> usize {
    rows.div_ceil(2).saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_statements_meet_their_text() {
        let all = statements("READ COMMITTED");
        assert_eq!(all[BEGIN], "BEGIN ISOLATION LEVEL READ COMMITTED");
        assert!(all[NEW_ORDER].contains("w_tax"));
        assert!(all[PAYMENT].starts_with("UPDATE warehouse"));
        assert!(all[ORDER_STATUS].contains("c_balance"));
        assert!(all[DELIVERY].contains("new_order"));
        assert!(all[STOCK_LEVEL].contains("d_next_o_id"));
        assert_eq!(all.len(), STOCK_LEVEL + stock_level::SQL.len());
    }

    #[test]
    fn the_middle_is_rounded_up() {
        assert_eq!([1, 2, 3, 4, 5].map(middle), [0, 0, 1, 1, 2]);
        assert_eq!(middle(0), 0);
    }

    #[test]
    fn another_warehouse_is_never_the_own_one() {
        let mut rng = Rng::new(2, 0);
        let constants = Constants::run(&mut rng);
        let terminal = Terminal { warehouses: 3, warehouse: 2, district: 1, constants: &constants };
        let drawn: Vec<i64> = (0..100).map(|_| terminal.other_warehouse(&mut rng)).collect();
        assert!(drawn.contains(&1) && drawn.contains(&3) && !drawn.contains(&2));
    }
}
