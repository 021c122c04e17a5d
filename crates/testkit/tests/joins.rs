//! Random join trees over small tables with NULLs: PostgreSQL and the server under test must agree on every row,
//! whichever kind of join it must use.
//!
//! The seed is printed; `NYALA_SEED=n` repeats a run.

use testkit::{Connection, Random, Target, joins};

const ROUNDS: u64 = 6;
const QUERIES: u64 = 150;

/// What is switched off, so that each kind of join has its turn.
const METHODS: [&[&str]; 5] = [
    &[],
    &["enable_mergejoin", "enable_nestloop"],
    &["enable_hashjoin", "enable_nestloop"],
    &["enable_hashjoin", "enable_mergejoin"],
    &["enable_hashjoin", "enable_nestloop", "enable_seqscan"],
];

/// More than that says nothing new.
const SHOWN: usize = 10;

#[test]
fn random_joins_agree() {
    let seed = Random::seed();
    println!("NYALA_SEED={seed}");
    let mut random = Random::new(seed);
    let (mut wrong, mut fine) = (Vec::new(), 0);
    for _ in 0..ROUNDS {
        let (reference, subject) = (Target::reference(), Target::start());
        let (mut first, mut second) = (reference.connect(), subject.connect());
        let tables = joins::tables(&mut random);
        for sql in &tables {
            create(&mut first, sql);
            create(&mut second, sql);
        }
        for _ in 0..QUERIES {
            let sql = joins::query(&mut random);
            let forced = METHODS[random.below(METHODS.len() as u64) as usize];
            for setting in ["enable_hashjoin", "enable_mergejoin", "enable_nestloop", "enable_seqscan"] {
                let on = if forced.contains(&setting) { "off" } else { "on" };
                create(&mut second, &format!("SET {setting} = {on}"));
            }
            // Several threads read tables of any size, or none as small as these.
            let shared = ["0", "8MB"][random.below(2) as usize];
            create(&mut second, &format!("SET min_parallel_table_scan_size = '{shared}'"));
            let begun = std::time::Instant::now();
            let expected = first.query(&sql);
            let theirs = begun.elapsed();
            let actual = second.query(&sql);
            let ours = begun.elapsed() - theirs;
            if ours.as_secs() > 2 {
                println!(
                    "{theirs:?} and {ours:?}: {sql}; without {forced:?}, shared from {shared}\n{}",
                    tables.join(";\n")
                );
            }
            fine += usize::from(expected.error().is_none());
            // A change that fails leaves its transaction open.
            create(&mut first, "ROLLBACK");
            create(&mut second, "ROLLBACK");
            if expected != actual {
                let made = tables.join(";\n");
                wrong.push(format!(
                    "{made};\n{sql}\n  without {forced:?}, shared from {shared}\n  PostgreSQL:\n{expected}\n  under test:\n{actual}"
                ));
            }
        }
    }
    println!("{fine} of {} queries give rows", ROUNDS * QUERIES);
    assert!(fine as u64 * 10 >= ROUNDS * QUERIES * 9, "only {fine} queries are right at all");
    let count = wrong.len();
    wrong.truncate(SHOWN);
    assert!(count == 0, "NYALA_SEED={seed}: {count} queries differ:\n{}", wrong.join("\n\n"));
}

fn create(connection: &mut Connection, sql: &str) {
    let reply = connection.query(sql);
    assert_eq!(reply.error(), None, "{sql}");
}
