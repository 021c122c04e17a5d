//! The population of clause 4.2.3: what one row of each table has, in COPY's text format.
//!
//! The rules are the specification's, its random numbers are not: rows of one seed are always the same, but they are not
//! those of the reference generator.

use super::words::{self, Text, pick};
use crate::client::{push_cents, push_int};
use crate::rng::Rng;

/// Days from the first order date, 1992-01-01, to the last, 1998-08-02: 151 days before the end of 1998.
const LAST_ORDER_DAY: i64 = 2405;
/// 1995-06-17, the day that flags and states of line items are as of.
const TODAY: i64 = 1263;
/// One in so many suppliers is complained about, another one is recommended: five of 10,000.
const REMARKED: i64 = 2000;

/// How many rows tables have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Parts; of each there are four suppliers.
    pub parts: i64,
    /// Suppliers.
    pub suppliers: i64,
    /// Customers.
    pub customers: i64,
    /// Orders, of one to seven line items.
    pub orders: i64,
    /// Clerks.
    clerks: i64,
}

impl Sizes {
    /// Those of a scale factor.
    pub fn of(scale: f64) -> Sizes {
        let of = |one: f64| ((one * scale).round() as i64).max(4);
        Sizes {
            parts: of(200_000.0),
            suppliers: of(10_000.0),
            customers: of(150_000.0),
            orders: of(1_500_000.0),
            clerks: of(1_000.0),
        }
    }

    /// Rows of all tables, about.
    pub fn rows(&self) -> i64 {
        30 + self.parts * 5 + self.suppliers + self.customers + self.orders * 5
    }

    /// The `i`th (0 to 3) of the suppliers of a part.
    fn supplier(&self, part: i64, i: i64) -> i64 {
        let count = self.suppliers;
        (part + i * (count / 4 + (part - 1) / count)) % count + 1
    }
}

/// Writes one row of COPY's text format, field by field.
struct Fields<'a>(&'a mut Vec<u8>);

impl Fields<'_> {
    fn text(self, text: &str) -> Self {
        self.0.extend_from_slice(text.as_bytes());
        self.0.push(b'\t');
        self
    }

    fn int(self, value: i64) -> Self {
        push_int(self.0, value);
        self.0.push(b'\t');
        self
    }

    fn cents(self, value: i64) -> Self {
        push_cents(self.0, value);
        self.0.push(b'\t');
        self
    }

    fn day(self, day: i64) -> Self {
        let (year, month, day) = civil(day);
        self.text(&format!("{year}-{month:02}-{day:02}"))
    }

    /// Letters, digits and a few signs, none of which COPY takes for something else.
    fn address(self, rng: &mut Rng) -> Self {
        const SIGNS: &[u8; 64] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ, ";
        for _ in 0..rng.uniform(10, 40) {
            self.0.push(SIGNS[rng.uniform(0, 63) as usize]);
        }
        self.0.push(b'\t');
        self
    }

    fn phone(self, rng: &mut Rng, nation: i64) -> Self {
        let (a, b, c) = (rng.uniform(100, 999), rng.uniform(100, 999), rng.uniform(1000, 9999));
        self.text(&format!("{}-{a}-{b}-{c}", nation + 10))
    }

    fn end(self) {
        self.0.pop();
        self.0.push(b'\n');
    }
}

/// The date so many days after 1992-01-01.
fn civil(mut day: i64) -> (i64, i64, i64) {
    let mut year = 1992;
    loop {
        let length = if year % 4 == 0 { 366 } else { 365 };
        if day < length {
            break;
        }
        day -= length;
        year += 1;
    }
    let february = if year % 4 == 0 { 29 } else { 28 };
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if day < length {
            break;
        }
        day -= length;
        month += 1;
    }
    (year, month, day + 1)
}

fn retail_price(part: i64) -> i64 {
    90_000 + (part / 10) % 20_001 + 100 * (part % 1_000)
}

/// A row of `region`, from 0.
pub fn region(out: &mut Vec<u8>, rng: &mut Rng, text: &Text, key: i64) {
    Fields(out).int(key).text(words::REGIONS[key as usize]).text(text.piece(rng, 31, 115)).end();
}

/// A row of `nation`, from 0.
pub fn nation(out: &mut Vec<u8>, rng: &mut Rng, text: &Text, key: i64) {
    let (name, region) = words::NATIONS[key as usize];
    Fields(out).int(key).text(name).int(region).text(text.piece(rng, 31, 114)).end();
}

/// A row of `supplier`, from 1.
pub fn supplier(out: &mut Vec<u8>, rng: &mut Rng, text: &Text, key: i64) {
    let nation = rng.uniform(0, 24);
    let row = Fields(out).int(key).text(&format!("Supplier#{key:09}")).address(rng).int(nation).phone(rng, nation);
    let row = row.cents(rng.uniform(-99_999, 999_999));
    let comment = text.piece(rng, 25, 100);
    let remark = match key % REMARKED {
        37 => "Complaints",
        71 => "Recommends",
        _ => return row.text(comment).end(),
    };
    // Somewhere in the comment, with something between the two words.
    let between = rng.uniform(0, 6) as usize;
    let place = rng.uniform(0, (comment.len() - 24) as i64 / 2) as usize;
    let head = &comment[..place];
    let tail = &comment[(place + 18 + between).min(comment.len())..];
    row.text(&format!("{head}Customer{}{remark}{tail}", &comment[..between])).end();
}

/// A row of `part`, from 1.
pub fn part(out: &mut Vec<u8>, rng: &mut Rng, text: &Text, key: i64) {
    let mut colours: Vec<&str> = Vec::with_capacity(5);
    while colours.len() < 5 {
        let colour = pick(rng, &words::COLOURS);
        if !colours.contains(&colour) {
            colours.push(colour);
        }
    }
    let maker = rng.uniform(1, 5);
    let row = Fields(out).int(key).text(&colours.join(" ")).text(&format!("Manufacturer#{maker}"));
    let row = row.text(&format!("Brand#{maker}{}", rng.uniform(1, 5)));
    let kind: Vec<&str> = words::TYPES.iter().map(|list| pick(rng, list)).collect();
    let row = row.text(&kind.join(" ")).int(rng.uniform(1, 50));
    let container: Vec<&str> = words::CONTAINERS.iter().map(|list| pick(rng, list)).collect();
    row.text(&container.join(" ")).cents(retail_price(key)).text(text.piece(rng, 5, 22)).end();
}

/// The four rows of `partsupp` for a part.
pub fn part_suppliers(out: &mut Vec<u8>, rng: &mut Rng, text: &Text, sizes: &Sizes, part: i64) {
    for i in 0..4 {
        let row = Fields(out).int(part).int(sizes.supplier(part, i)).int(rng.uniform(1, 9_999));
        row.cents(rng.uniform(100, 100_000)).text(text.piece(rng, 49, 198)).end();
    }
}

/// A row of `customer`, from 1.
pub fn customer(out: &mut Vec<u8>, rng: &mut Rng, text: &Text, key: i64) {
    let nation = rng.uniform(0, 24);
    let row = Fields(out).int(key).text(&format!("Customer#{key:09}")).address(rng).int(nation).phone(rng, nation);
    let row = row.cents(rng.uniform(-99_999, 999_999)).text(pick(rng, &words::SEGMENTS));
    row.text(text.piece(rng, 29, 116)).end();
}

/// A row of `orders`, from 1, and those of its line items.
pub fn order(orders: &mut Vec<u8>, lines: &mut Vec<u8>, rng: &mut Rng, text: &Text, sizes: &Sizes, number: i64) {
    // Of 32 keys the first eight are used.
    let key = (number - 1) / 8 * 32 + (number - 1) % 8 + 1;
    // A third of the customers have no order.
    let mut customer = rng.uniform(1, sizes.customers);
    while customer % 3 == 0 {
        customer = rng.uniform(1, sizes.customers);
    }
    let ordered = rng.uniform(0, LAST_ORDER_DAY);
    let (mut total, mut open, count) = (0, 0, rng.uniform(1, 7));
    for line in 1..=count {
        let part = rng.uniform(1, sizes.parts);
        let supplier = sizes.supplier(part, rng.uniform(0, 3));
        let (quantity, discount, tax) = (rng.uniform(1, 50), rng.uniform(0, 10), rng.uniform(0, 8));
        let price = quantity * retail_price(part);
        let shipped = ordered + rng.uniform(1, 121);
        let committed = ordered + rng.uniform(30, 90);
        let received = shipped + rng.uniform(1, 30);
        let flag = match received <= TODAY {
            true => pick(rng, &["R", "A"]),
            false => "N",
        };
        let is_open = shipped > TODAY;
        open += i64::from(is_open);
        total += price * (100 - discount) / 100 * (100 + tax) / 100;
        let row = Fields(lines).int(key).int(part).int(supplier).int(line);
        let row = row.cents(quantity * 100).cents(price).cents(discount).cents(tax).text(flag);
        let row = row.text(if is_open { "O" } else { "F" }).day(shipped).day(committed).day(received);
        let row = row.text(pick(rng, &words::INSTRUCTIONS)).text(pick(rng, &words::MODES));
        row.text(text.piece(rng, 10, 43)).end();
    }
    let status = match open {
        0 => "F",
        open if open == count => "O",
        _ => "P",
    };
    let row = Fields(orders).int(key).int(customer).text(status).cents(total).day(ordered);
    let row = row.text(pick(rng, &words::PRIORITIES)).text(&format!("Clerk#{:09}", rng.uniform(1, sizes.clerks)));
    row.int(0).text(text.piece(rng, 19, 78)).end();
}

#[cfg(test)]
mod tests {
    use super::super::schema;
    use super::*;

    #[test]
    fn rows_have_as_many_fields_as_their_tables_have_columns() {
        let (text, sizes, mut rng) = (Text::new(), Sizes::of(0.01), Rng::new(1, 0));
        let check = |table: &str, rows: Vec<u8>| {
            let create = schema::CREATE.iter().find(|c| c.starts_with(&format!("CREATE TABLE {table} ("))).unwrap();
            let columns = create.lines().skip(1).filter(|l| l.starts_with("        ") && !l.contains("KEY (")).count();
            for line in String::from_utf8(rows).unwrap().lines() {
                assert_eq!(line.split('\t').count(), columns, "{table}: {line}");
                assert!(!line.contains('\\'), "{table}: {line}");
            }
        };
        let mut one = |write: &mut dyn FnMut(&mut Vec<u8>, &mut Rng)| {
            let mut out = Vec::new();
            (0..100).for_each(|_| write(&mut out, &mut rng));
            out
        };
        check("region", one(&mut |o, r| region(o, r, &text, 4)));
        check("nation", one(&mut |o, r| nation(o, r, &text, 24)));
        check("part", one(&mut |o, r| part(o, r, &text, 7)));
        check("supplier", one(&mut |o, r| supplier(o, r, &text, 37)));
        check("partsupp", one(&mut |o, r| part_suppliers(o, r, &text, &sizes, 7)));
        check("customer", one(&mut |o, r| customer(o, r, &text, 7)));
        check("orders", one(&mut |o, r| order(o, &mut Vec::new(), r, &text, &sizes, 7)));
        check("lineitem", one(&mut |o, r| order(&mut Vec::new(), o, r, &text, &sizes, 7)));
    }

    #[test]
    fn the_four_suppliers_of_a_part_differ() {
        for scale in [0.01, 0.1, 1.0] {
            let sizes = Sizes::of(scale);
            for part in 1..=sizes.parts.min(3000) {
                let mut suppliers: Vec<i64> = (0..4).map(|i| sizes.supplier(part, i)).collect();
                suppliers.sort_unstable();
                suppliers.dedup();
                assert_eq!(suppliers.len(), 4, "part {part} at scale {scale}");
            }
        }
    }

    #[test]
    fn days_are_dates() {
        assert_eq!((civil(0), civil(59), civil(60)), ((1992, 1, 1), (1992, 2, 29), (1992, 3, 1)));
        assert_eq!((civil(TODAY), civil(LAST_ORDER_DAY)), ((1995, 6, 17), (1998, 8, 2)));
    }

    #[test]
    fn remarks_are_found_by_their_query() {
        let (text, mut rng, mut out) = (Text::new(), Rng::new(1, 0), Vec::new());
        (0..50).for_each(|_| supplier(&mut out, &mut rng, &text, 37));
        for line in String::from_utf8(out).unwrap().lines() {
            let comment = line.rsplit('\t').next().unwrap();
            assert!(
                comment.len() <= 101 && comment.contains("Customer") && comment.contains("Complaints"),
                "{comment}"
            );
        }
    }
}
