//! Random regular expressions: what they match, how a match is divided among the groups, and what is wrong with them must
//! be as PostgreSQL has it.
//!
//! The seed is printed; `NYALA_SEED=n` repeats a run, `NYALA_ROUNDS=n` makes it n times as long.

use testkit::{Comparison, Random, Reply, expressions};

const STATEMENTS: u64 = 3000;

#[test]
fn regular_expressions_agree() {
    let seed = Random::seed();
    println!("NYALA_SEED={seed}");
    let rounds: u64 = std::env::var("NYALA_ROUNDS").map_or(1, |text| text.parse().expect("NYALA_ROUNDS is a number"));
    let mut random = Random::new(seed);
    let mut servers = Comparison::start(&["SET statement_timeout = '3s'"]);
    for _ in 0..rounds * STATEMENTS {
        let sql = expressions::statement(&mut random);
        servers.ask(&sql, is_slow);
    }
    servers.finish(seed);
}

/// Which of the two is too slow for an absurd expression says nothing.
fn is_slow(expected: &Reply, actual: &Reply) -> bool {
    [expected, actual].iter().any(|reply| reply.code() == "57014")
}
