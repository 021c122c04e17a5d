//! Random values and patterns: `to_char`, `to_date`, `to_timestamp` and `to_number` must agree with PostgreSQL on every
//! value and every error.
//!
//! The seed is printed; `NYALA_SEED=n` repeats a run, `NYALA_ROUNDS=n` makes it n times as long, `NYALA_SHOWN=n` prints n
//! differences.

use testkit::{Comparison, Random, Reply, formats};

const STATEMENTS: u64 = 4000;

#[test]
fn formats_agree() {
    let seed = Random::seed();
    println!("NYALA_SEED={seed}");
    let rounds: u64 = std::env::var("NYALA_ROUNDS").map_or(1, |text| text.parse().expect("NYALA_ROUNDS is a number"));
    let mut random = Random::new(seed);
    let mut servers = Comparison::start(&["SET timezone = 'America/New_York'", "SET statement_timeout = '2s'"]);
    for _ in 0..rounds * STATEMENTS {
        let sql = formats::statement(&mut random);
        servers.ask(&sql, is_cut_character);
    }
    servers.finish(seed);
}

/// PostgreSQL's errors may show half a character, which is no text.
fn is_cut_character(expected: &Reply, actual: &Reply) -> bool {
    let half = |reply: &Reply| reply.error().is_some_and(|error| error.message.contains('\u{fffd}'));
    half(expected) && expected.code() == actual.code()
}
