//! Payment (clause 2.5): a customer pays, in 15 of 100 cases one of another warehouse. 6 to 8 round trips;
//! pipelined two to four.

use std::time::SystemTime;

use super::super::random::{push_last_name, push_time};
use super::{BEGIN, Outcome, PAYMENT, Terminal, Who, begin, commit, middle, must_change, row, run_and_commit};
use crate::client::Param::{Cents, Int, Text};
use crate::client::{AsyncConnection, Failure, push_cents, push_int};
use crate::rng::Rng;

const WAREHOUSE: usize = PAYMENT;
const DISTRICT: usize = PAYMENT + 1;
const BY_NAME: usize = PAYMENT + 2;
const CUSTOMER: usize = PAYMENT + 3;
const CUSTOMER_DATA: usize = PAYMENT + 4;
const PAY: usize = PAYMENT + 5;
const PAY_BAD_CREDIT: usize = PAYMENT + 6;
const HISTORY: usize = PAYMENT + 7;

/// The statements of the transaction.
pub const SQL: [&str; 8] = [
    "UPDATE warehouse SET w_ytd = w_ytd + $2 WHERE w_id = $1 \
     RETURNING w_name, w_street_1, w_street_2, w_city, w_state, w_zip",
    "UPDATE district SET d_ytd = d_ytd + $3 WHERE d_w_id = $1 AND d_id = $2 \
     RETURNING d_name, d_street_1, d_street_2, d_city, d_state, d_zip",
    "SELECT c_id FROM customer WHERE c_w_id = $1 AND c_d_id = $2 AND c_last = $3 ORDER BY c_first",
    "SELECT c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone, c_since, c_credit, \
     c_credit_lim, c_discount, c_balance FROM customer WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3 FOR UPDATE",
    "SELECT c_data FROM customer WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3",
    "UPDATE customer SET c_balance = c_balance - $4, c_ytd_payment = c_ytd_payment + $4, \
     c_payment_cnt = c_payment_cnt + 1 WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3",
    "UPDATE customer SET c_balance = c_balance - $4, c_ytd_payment = c_ytd_payment + $4, \
     c_payment_cnt = c_payment_cnt + 1, c_data = $5 WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3",
    "INSERT INTO history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data) \
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
];

/// Column of CUSTOMER with the credit.
const CREDIT: usize = 10;
/// Room in `c_data`.
const DATA_LIMIT: usize = 500;

/// The input.
pub struct Payment {
    warehouse: i64,
    district: i64,
    customer_warehouse: i64,
    customer_district: i64,
    who: Who,
    cents: i64,
}

impl Payment {
    /// Clause 2.5.1.
    pub fn draw(terminal: &Terminal<'_>, rng: &mut Rng) -> Payment {
        let district = terminal.any_district(rng);
        let remote = terminal.warehouses > 1 && rng.percent(15);
        Payment {
            warehouse: terminal.warehouse,
            district,
            customer_warehouse: if remote { terminal.other_warehouse(rng) } else { terminal.warehouse },
            customer_district: if remote { terminal.any_district(rng) } else { district },
            who: Who::draw(terminal, rng),
            cents: rng.uniform(100, 500_000),
        }
    }

    /// Clause 2.5.2.
    pub async fn run(&self, connection: &mut AsyncConnection) -> Result<Outcome, Failure> {
        let (w, d, amount) = (Int(self.warehouse), Int(self.district), Cents(self.cents));
        let (cw, cd) = (Int(self.customer_warehouse), Int(self.customer_district));
        begin(connection, WAREHOUSE, &[w, amount]).await?;
        let mut about = Vec::with_capacity(32);
        about.extend_from_slice(connection.first("warehouse")?.bytes(0));
        about.extend_from_slice(b"    ");
        connection.call(DISTRICT, &[w, d, amount]).await?;
        about.extend_from_slice(connection.first("district")?.bytes(0));
        let customer = self.customer(connection).await?;
        let c = Int(customer);
        connection.call(CUSTOMER, &[cw, cd, c]).await?;
        if connection.first("customer")?.bytes(CREDIT) == b"BC" {
            connection.call(CUSTOMER_DATA, &[cw, cd, c]).await?;
            let data = self.bad_credit(customer, connection.first("customer")?.bytes(0));
            must_change(connection, PAY_BAD_CREDIT, &[cw, cd, c, amount, Text(&data)]).await?;
        } else {
            must_change(connection, PAY, &[cw, cd, c, amount]).await?;
        }
        let mut now = Vec::with_capacity(32);
        push_time(&mut now, SystemTime::now());
        must_change(connection, HISTORY, &[c, cd, cw, d, w, Text(&now), amount, Text(&about)]).await?;
        commit(connection).await
    }

    /// The same with the statements that do not need each other's rows sent together.
    pub async fn run_pipelined(&self, connection: &mut AsyncConnection) -> Result<Outcome, Failure> {
        let (w, d, amount) = (Int(self.warehouse), Int(self.district), Cents(self.cents));
        let (cw, cd) = (Int(self.customer_warehouse), Int(self.customer_district));
        connection.bind(BEGIN, &[]);
        connection.bind(WAREHOUSE, &[w, amount]);
        connection.bind(DISTRICT, &[w, d, amount]);
        match self.who {
            Who::Id(id) => connection.bind(CUSTOMER, &[cw, cd, Int(id)]),
            Who::LastName(number) => {
                let mut name = Vec::with_capacity(16);
                push_last_name(&mut name, number);
                connection.bind(BY_NAME, &[cw, cd, Text(&name)]);
            }
        }
        connection.run().await?;
        let found = row(connection, 2, "warehouse, district, customer").map(|_| connection.row_count() - 2)?;
        let mut about = connection.row(0).bytes(0).to_vec();
        about.extend_from_slice(b"    ");
        about.extend_from_slice(connection.row(1).bytes(0));
        let (customer, credit) = match self.who {
            Who::Id(id) => (id, connection.row(2).bytes(CREDIT) == b"BC"),
            Who::LastName(_) => {
                let customer = connection.row(2 + middle(found)).int(0)?;
                connection.call(CUSTOMER, &[cw, cd, Int(customer)]).await?;
                (customer, connection.first("customer")?.bytes(CREDIT) == b"BC")
            }
        };
        let c = Int(customer);
        if credit {
            connection.call(CUSTOMER_DATA, &[cw, cd, c]).await?;
            let data = self.bad_credit(customer, connection.first("customer")?.bytes(0));
            connection.bind(PAY_BAD_CREDIT, &[cw, cd, c, amount, Text(&data)]);
        } else {
            connection.bind(PAY, &[cw, cd, c, amount]);
        }
        let mut now = Vec::with_capacity(32);
        push_time(&mut now, SystemTime::now());
        connection.bind(HISTORY, &[c, cd, cw, d, w, Text(&now), amount, Text(&about)]);
        run_and_commit(connection).await
    }

    async fn customer(&self, connection: &mut AsyncConnection) -> Result<i64, Failure> {
        let number = match self.who {
            Who::Id(id) => return Ok(id),
            Who::LastName(number) => number,
        };
        let mut name = Vec::with_capacity(16);
        push_last_name(&mut name, number);
        connection.call(BY_NAME, &[Int(self.customer_warehouse), Int(self.customer_district), Text(&name)]).await?;
        connection.first("customers by last name")?;
        connection.row(middle(connection.row_count())).int(0)
    }

    /// What a payment leaves in the data of a customer with bad credit: itself, then what was there.
    fn bad_credit(&self, customer: i64, old: &[u8]) -> Vec<u8> {
        let mut data = Vec::with_capacity(DATA_LIMIT + 64);
        let places = [customer, self.customer_district, self.customer_warehouse, self.district, self.warehouse];
        for number in places {
            push_int(&mut data, number);
            data.push(b' ');
        }
        push_cents(&mut data, self.cents);
        data.push(b'|');
        data.extend_from_slice(old);
        data.truncate(DATA_LIMIT);
        data
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments::tpcc::random::Constants;

    #[test]
    fn payments_are_drawn_as_the_specification_says() {
        let mut rng = Rng::new(10, 0);
        let constants = Constants::run(&mut rng);
        let terminal = Terminal { warehouses: 4, warehouse: 2, district: 1, constants: &constants };
        let drawn: Vec<Payment> = (0..20_000).map(|_| Payment::draw(&terminal, &mut rng)).collect();
        let remote = drawn.iter().filter(|p| p.customer_warehouse != 2).count();
        assert!((2_800..3_200).contains(&remote), "{remote}");
        let by_name = drawn.iter().filter(|p| matches!(p.who, Who::LastName(_))).count();
        assert!((11_700..12_300).contains(&by_name), "{by_name}");
        assert!(drawn.iter().all(|p| p.customer_warehouse != 2 || p.customer_district == p.district));
        let alone = Terminal { warehouses: 1, warehouse: 1, ..terminal };
        assert!((0..1000).all(|_| Payment::draw(&alone, &mut rng).customer_warehouse == 1));
    }

    #[test]
    fn bad_credit_keeps_the_newest_500_bytes() {
        let payment = Payment {
            warehouse: 1,
            district: 2,
            customer_warehouse: 3,
            customer_district: 4,
            who: Who::Id(5),
            cents: 12345,
        };
        assert_eq!(payment.bad_credit(5, b"old"), b"5 4 3 2 1 123.45|old");
        assert_eq!(payment.bad_credit(5, &[b'x'; 500]).len(), 500);
    }
}
