//! Random scalar expressions: PostgreSQL and the server under test must agree on every value and every error, in text and
//! in binary form.
//!
//! The seed is printed; `NYALA_SEED=n` repeats a run, `NYALA_ROUNDS=n` makes it n times as long,
//! `NYALA_SHOWN=n` prints n differences, `NYALA_TRACE=1` each expression before it is sent.

use testkit::{Event, Random, Reply, Target, scalars};

const COMPUTATIONS: u64 = 1500;

/// More than that says nothing new.
const SHOWN: usize = 12;

#[test]
fn random_scalars_agree() {
    let seed = Random::seed();
    println!("NYALA_SEED={seed}");
    let rounds = std::env::var("NYALA_ROUNDS").map_or(1, |text| text.parse().expect("NYALA_ROUNDS is a number"));
    let shown = std::env::var("NYALA_SHOWN").map_or(SHOWN, |text| text.parse().expect("NYALA_SHOWN is a number"));
    let mut random = Random::new(seed);
    let (reference, subject) = (Target::reference(), Target::start());
    let (mut first, mut second) = (reference.connect(), subject.connect());
    let calls = scalars::Calls::read(&mut first, &mut second);
    for sql in scalars::table() {
        assert_eq!(first.query(&sql).error(), None, "{sql}");
        assert_eq!(second.query(&sql).error(), None, "{sql}");
    }
    let (mut wrong, mut fine) = (Vec::new(), 0);
    for count in 0..rounds * COMPUTATIONS {
        if first.is_closed() || second.is_closed() {
            (first, second) = (reference.connect(), subject.connect());
        }
        if count % 300 == 0 {
            let zone = ["UTC", "America/New_York", "Asia/Kolkata", "Europe/Berlin"][random.below(4) as usize];
            let settings = format!("SET timezone = '{zone}'; SET statement_timeout = '1s'");
            first.query(&settings);
            second.query(&settings);
        }
        let work = scalars::computation(&mut random, &calls);
        let parameters: Vec<Option<&str>> = work.parameters.iter().map(Option::as_deref).collect();
        let form = random.below(3);
        if std::env::var_os("NYALA_TRACE").is_some() {
            println!("{} {parameters:?}", work.sql);
        }
        let [expected, actual] = [&mut first, &mut second].map(|connection| {
            comparable(match (form, parameters.is_empty()) {
                (0, _) => connection.binary(&work.sql, &parameters),
                (1, _) | (_, false) => connection.extended(&work.sql, &parameters),
                _ => connection.query(&work.sql),
            })
        });
        fine += usize::from(expected.error().is_none());
        let same = expected == actual || within_rounding(&expected, &actual) || is_refused(&expected, &actual);
        if !same && !is_order_of_evaluation(&work.sql, &expected, &actual) {
            wrong.push(format!("{} {parameters:?}\n  PostgreSQL:\n{expected}\n  under test:\n{actual}", work.sql));
        }
    }
    println!("{fine} of {} expressions have a value", rounds * COMPUTATIONS);
    assert!(fine as u64 * 5 >= rounds * COMPUTATIONS, "only {fine} expressions are right at all");
    let count = wrong.len();
    wrong.truncate(shown);
    assert!(count == 0, "NYALA_SEED={seed}: {count} expressions differ:\n{}", wrong.join("\n\n"));
}

/// Without what PostgreSQL's planner decides: modifiers of simplified constants, and whether columns come before an error.
fn comparable(mut reply: Reply) -> Reply {
    for event in &mut reply.events {
        if let Event::Columns(columns) = event {
            columns.iter_mut().for_each(|column| column.modifier = -1);
        }
    }
    reply.drop_columns_of_errors();
    reply
}

/// PostgreSQL simplifies constants first, so it finds their errors first, and spares what a NULL makes needless; where
/// calls are nested, which error is found, or whether one is, may differ.
fn is_order_of_evaluation(sql: &str, expected: &Reply, actual: &Reply) -> bool {
    let is_run_time = |reply: &Reply| reply.error().is_some_and(|error| error.position.is_none());
    let is_fine = |reply: &Reply| reply.error().is_none() && reply.status == Some('I');
    let both = |a: &Reply, b: &Reply| is_run_time(a) && (is_fine(b) || is_run_time(b));
    sql.matches('(').count() > 1 && (both(expected, actual) || both(actual, expected))
}

/// The last digits of transcendental functions are the mathematics library's affair.
fn within_rounding(expected: &Reply, actual: &Reply) -> bool {
    let number = |reply: &Reply| match reply.value() {
        Some(text) if text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
            u64::from_str_radix(text, 16).ok().map(f64::from_bits)
        }
        Some(text) => text.parse::<f64>().ok(),
        None => None,
    };
    match (number(expected), number(actual)) {
        (Some(a), Some(b)) => a == b || a.is_nan() && b.is_nan() || (a - b).abs() <= 1e-13 * a.abs(),
        _ => false,
    }
}

/// A refusal in so many words is no wrong answer, and which of the two is too slow for an absurd number neither. Functions
/// of bit strings and MAC addresses, which only PostgreSQL has, make some calls ambiguous.
fn is_refused(expected: &Reply, actual: &Reply) -> bool {
    let other_types = ["trunc(", "set_bit(", "get_bit(", "bit_count(", "binary digit"];
    let is_other = |text: &str| other_types.iter().any(|part| text.contains(part));
    expected.error().is_some_and(|error| is_other(&error.message))
        || actual.code() == "0A000"
        || [expected, actual].iter().any(|reply| reply.code() == "57014")
}
