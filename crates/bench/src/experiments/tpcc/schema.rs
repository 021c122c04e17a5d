//! The nine tables of clause 1.3, their keys and the two indexes that the transactions need.
//!
//! Identifiers, counts and whole quantities are integers, money is `numeric` with two digits. Clause 1.4 allows more
//! keys than the primary ones only where they do not change what a transaction sees; the two here serve the accesses by
//! last name and by customer, as every implementation has them. `history` has no key by the specification.

use crate::client::{Connection, Failure};
use crate::schema;
use crate::target::Dialect;

/// The tables, referenced before referencing.
pub const TABLES: [&str; 9] =
    ["item", "warehouse", "district", "customer", "stock", "orders", "new_order", "order_line", "history"];

/// What creates them.
pub const CREATE: [&str; 9] = [
    "CREATE TABLE item (
        i_id integer NOT NULL,
        i_im_id integer NOT NULL,
        i_name varchar(24) NOT NULL,
        i_price numeric(5,2) NOT NULL,
        i_data varchar(50) NOT NULL,
        PRIMARY KEY (i_id))",
    "CREATE TABLE warehouse (
        w_id integer NOT NULL,
        w_name varchar(10) NOT NULL,
        w_street_1 varchar(20) NOT NULL,
        w_street_2 varchar(20) NOT NULL,
        w_city varchar(20) NOT NULL,
        w_state char(2) NOT NULL,
        w_zip char(9) NOT NULL,
        w_tax numeric(4,4) NOT NULL,
        w_ytd numeric(12,2) NOT NULL,
        PRIMARY KEY (w_id))",
    "CREATE TABLE district (
        d_w_id integer NOT NULL,
        d_id integer NOT NULL,
        d_name varchar(10) NOT NULL,
        d_street_1 varchar(20) NOT NULL,
        d_street_2 varchar(20) NOT NULL,
        d_city varchar(20) NOT NULL,
        d_state char(2) NOT NULL,
        d_zip char(9) NOT NULL,
        d_tax numeric(4,4) NOT NULL,
        d_ytd numeric(12,2) NOT NULL,
        d_next_o_id integer NOT NULL,
        PRIMARY KEY (d_w_id, d_id))",
    "CREATE TABLE customer (
        c_w_id integer NOT NULL,
        c_d_id integer NOT NULL,
        c_id integer NOT NULL,
        c_first varchar(16) NOT NULL,
        c_middle char(2) NOT NULL,
        c_last varchar(16) NOT NULL,
        c_street_1 varchar(20) NOT NULL,
        c_street_2 varchar(20) NOT NULL,
        c_city varchar(20) NOT NULL,
        c_state char(2) NOT NULL,
        c_zip char(9) NOT NULL,
        c_phone char(16) NOT NULL,
        c_since timestamp NOT NULL,
        c_credit char(2) NOT NULL,
        c_credit_lim numeric(12,2) NOT NULL,
        c_discount numeric(4,4) NOT NULL,
        c_balance numeric(12,2) NOT NULL,
        c_ytd_payment numeric(12,2) NOT NULL,
        c_payment_cnt integer NOT NULL,
        c_delivery_cnt integer NOT NULL,
        c_data varchar(500) NOT NULL,
        PRIMARY KEY (c_w_id, c_d_id, c_id))",
    "CREATE TABLE stock (
        s_w_id integer NOT NULL,
        s_i_id integer NOT NULL,
        s_quantity integer NOT NULL,
        s_dist_01 char(24) NOT NULL,
        s_dist_02 char(24) NOT NULL,
        s_dist_03 char(24) NOT NULL,
        s_dist_04 char(24) NOT NULL,
        s_dist_05 char(24) NOT NULL,
        s_dist_06 char(24) NOT NULL,
        s_dist_07 char(24) NOT NULL,
        s_dist_08 char(24) NOT NULL,
        s_dist_09 char(24) NOT NULL,
        s_dist_10 char(24) NOT NULL,
        s_ytd integer NOT NULL,
        s_order_cnt integer NOT NULL,
        s_remote_cnt integer NOT NULL,
        s_data varchar(50) NOT NULL,
        PRIMARY KEY (s_w_id, s_i_id))",
    "CREATE TABLE orders (
        o_w_id integer NOT NULL,
        o_d_id integer NOT NULL,
        o_id integer NOT NULL,
        o_c_id integer NOT NULL,
        o_entry_d timestamp NOT NULL,
        o_carrier_id integer,
        o_ol_cnt integer NOT NULL,
        o_all_local integer NOT NULL,
        PRIMARY KEY (o_w_id, o_d_id, o_id))",
    "CREATE TABLE new_order (
        no_w_id integer NOT NULL,
        no_d_id integer NOT NULL,
        no_o_id integer NOT NULL,
        PRIMARY KEY (no_w_id, no_d_id, no_o_id))",
    "CREATE TABLE order_line (
        ol_w_id integer NOT NULL,
        ol_d_id integer NOT NULL,
        ol_o_id integer NOT NULL,
        ol_number integer NOT NULL,
        ol_i_id integer NOT NULL,
        ol_supply_w_id integer NOT NULL,
        ol_delivery_d timestamp,
        ol_quantity integer NOT NULL,
        ol_amount numeric(6,2) NOT NULL,
        ol_dist_info char(24) NOT NULL,
        PRIMARY KEY (ol_w_id, ol_d_id, ol_o_id, ol_number))",
    "CREATE TABLE history (
        h_c_id integer NOT NULL,
        h_c_d_id integer NOT NULL,
        h_c_w_id integer NOT NULL,
        h_d_id integer NOT NULL,
        h_w_id integer NOT NULL,
        h_date timestamp NOT NULL,
        h_amount numeric(6,2) NOT NULL,
        h_data varchar(24) NOT NULL)",
];

/// Created after the load, which is faster on most servers.
pub const INDEXES: [&str; 2] = [
    "CREATE INDEX customer_by_last_name ON customer (c_w_id, c_d_id, c_last, c_first)",
    "CREATE INDEX orders_by_customer ON orders (o_w_id, o_d_id, o_c_id, o_id)",
];

/// Created after the load on request.
pub const FOREIGN_KEYS: [&str; 9] = [
    "ALTER TABLE district ADD FOREIGN KEY (d_w_id) REFERENCES warehouse (w_id)",
    "ALTER TABLE customer ADD FOREIGN KEY (c_w_id, c_d_id) REFERENCES district (d_w_id, d_id)",
    "ALTER TABLE history ADD FOREIGN KEY (h_c_w_id, h_c_d_id, h_c_id) REFERENCES customer (c_w_id, c_d_id, c_id)",
    "ALTER TABLE history ADD FOREIGN KEY (h_w_id, h_d_id) REFERENCES district (d_w_id, d_id)",
    "ALTER TABLE new_order ADD FOREIGN KEY (no_w_id, no_d_id, no_o_id) REFERENCES orders (o_w_id, o_d_id, o_id)",
    "ALTER TABLE orders ADD FOREIGN KEY (o_w_id, o_d_id, o_c_id) REFERENCES customer (c_w_id, c_d_id, c_id)",
    "ALTER TABLE order_line ADD FOREIGN KEY (ol_w_id, ol_d_id, ol_o_id) REFERENCES orders (o_w_id, o_d_id, o_id)",
    "ALTER TABLE order_line ADD FOREIGN KEY (ol_supply_w_id, ol_i_id) REFERENCES stock (s_w_id, s_i_id)",
    "ALTER TABLE stock ADD FOREIGN KEY (s_i_id) REFERENCES item (i_id)",
];

/// How many warehouses are loaded; `None` if there are no tables. Warehouses are loaded last, so 0 means a load that
/// was cut short.
pub fn loaded(connection: &mut Connection) -> Result<Option<i64>, Failure> {
    schema::int_if_there(connection, "SELECT count(*) FROM warehouse")
}

/// Creates the tables, empty and without their secondary indexes.
pub fn create_tables(connection: &mut Connection, dialect: Dialect) -> Result<(), Failure> {
    CREATE.iter().try_for_each(|sql| match dialect {
        Dialect::Postgres => connection.query(sql),
        // A timestamp there is a point in time since 1970 that changes by itself.
        Dialect::MySql => connection.query(&sql.replace(" timestamp", " datetime(6)")),
    })
}
