//! Random queries on random tables: PostgreSQL and the server under test must agree on every row.
//!
//! The seed is printed; `NYALA_SEED=n` repeats a run.

use testkit::{Connection, Event, Random, Reply, Target, query};

const ROUNDS: u64 = 3;
const QUERIES: u64 = 1000;

/// More than that says nothing new.
const SHOWN: usize = 10;

#[test]
fn random_queries_agree() {
    let seed = Random::seed();
    println!("NYALA_SEED={seed}");
    let mut random = Random::new(seed);
    let (mut wrong, mut fine) = (Vec::new(), 0);
    for round in 0..ROUNDS {
        let (reference, subject) = (Target::reference(), Target::start());
        let (mut first, mut second) = (reference.connect(), subject.connect());
        if round == 1 {
            // Several threads read tables of any size.
            create(&mut second, "SET min_parallel_table_scan_size = 0");
        }
        for sql in query::tables(&mut random) {
            create(&mut first, &sql);
            create(&mut second, &sql);
        }
        for _ in 0..QUERIES {
            let sql = query::query(&mut random);
            let [expected, actual] =
                [&mut first, &mut second].map(|connection| without_modifiers(connection.query(&sql)));
            fine += usize::from(expected.error().is_none());
            if expected != actual
                && !same_but_for_ties(&sql, &expected, &actual)
                && !is_of_inner_constant(&sql, &expected, &actual)
            {
                wrong.push(format!("{sql}\n  PostgreSQL:\n{expected}\n  under test:\n{actual}"));
            }
        }
    }
    println!("{fine} of {} queries give rows", ROUNDS * QUERIES);
    assert!(fine as u64 * 10 >= ROUNDS * QUERIES * 9, "only {fine} queries are right at all");
    let count = wrong.len();
    wrong.truncate(SHOWN);
    assert!(count == 0, "NYALA_SEED={seed}: {count} queries differ:\n{}", wrong.join("\n\n"));
}

/// PostgreSQL describes rows after it has simplified the expressions; type modifiers tell which of them it has.
fn without_modifiers(mut reply: Reply) -> Reply {
    for event in &mut reply.events {
        if let Event::Columns(columns) = event {
            columns.iter_mut().for_each(|column| column.modifier = -1);
        }
    }
    reply
}

/// Numbers that sort alike may look different (1.5 and 1.50): which of them comes first, or within the LIMIT, is free, and which of
/// them stands for all that are not distinct.
fn same_but_for_ties(sql: &str, expected: &Reply, actual: &Reply) -> bool {
    fn plain(reply: &Reply) -> Vec<Vec<Option<&str>>> {
        reply.rows().map(|row| row.iter().map(value_of).collect()).collect()
    }
    let sorted = |reply: &Reply| {
        let mut rows: Vec<_> = reply.rows().map(<[_]>::to_vec).collect();
        rows.sort();
        rows
    };
    let chooses = [" LIMIT ", "DISTINCT ", " GROUP BY "].iter().any(|word| sql.contains(word));
    plain(expected) == plain(actual) && (chooses || sorted(expected) == sorted(actual))
}

/// An error of constants that come out of a subquery's select list, which PostgreSQL finds when it plans, and we when a row asks for the
/// value (COMPATIBILITY.md).
fn is_of_inner_constant(sql: &str, expected: &Reply, actual: &Reply) -> bool {
    let has_constant = sql.match_indices(" AS ").any(|(at, _)| !names_column(item_before(&sql[..at])));
    has_constant && expected.code() == "22012" && actual.error().is_none()
}

/// The last item of a list, back to where the list begins.
fn item_before(text: &str) -> &str {
    let mut depth = 0;
    for (at, byte) in text.bytes().enumerate().rev() {
        match byte {
            b')' => depth += 1,
            b'(' if depth == 0 => return &text[at + 1..],
            b'(' => depth -= 1,
            b',' if depth == 0 => return &text[at + 1..],
            _ if depth == 0 && text[at..].starts_with("SELECT ") => return &text[at + "SELECT ".len()..],
            _ => {}
        }
    }
    text
}

/// Whether an expression of a generated query has a column in it: they are all qualified.
fn names_column(item: &str) -> bool {
    item.as_bytes()
        .windows(3)
        .any(|three| three[1] == b'.' && three[0].is_ascii_alphanumeric() && three[2].is_ascii_alphabetic())
}

/// A value without the zeros at the end of a fraction.
fn value_of(text: &Option<String>) -> Option<&str> {
    let text = text.as_deref()?;
    let number = text.contains('.') && text.parse::<f64>().is_ok();
    Some(if number { text.trim_end_matches('0').trim_end_matches('.') } else { text })
}

fn create(connection: &mut Connection, sql: &str) {
    let reply = connection.query(sql);
    assert_eq!(reply.error(), None, "{sql}");
}
