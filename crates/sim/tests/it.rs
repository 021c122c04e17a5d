//! Seeds: those that are kept, 200 more, and whether faults that are planted are found.

use sim::{Options, Planted, Report, run};

/// The kept seeds.
fn kept() -> Vec<u64> {
    let lines = include_str!("../seeds.txt").lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| line.split(':').next().and_then(|seed| seed.trim().parse().ok()).expect("seed: why")).collect()
}

fn check(seeds: impl Iterator<Item = u64>) -> Report {
    let mut total = Report::default();
    for seed in seeds {
        match run(seed, &Options::default()) {
            Ok(report) => total.add(&report),
            Err(failure) => panic!("seed {seed}: {}\n{}", failure.what, failure.tail.join("\n")),
        }
    }
    total
}

/// The first one comes from NYALA_SEED; `make fuzz` chooses others.
#[test]
fn nothing_is_lost_torn_or_out_of_order() {
    let first = std::env::var("NYALA_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let total = check(kept().into_iter().chain(first..first + 200));
    println!("{total:#?}");
    assert!(total.commits > 5000 && total.starts > 400, "the runs do too little: {total:?}");
}

#[test]
fn a_seed_replays_a_run_exactly() {
    for seed in 1..=12 {
        let hashes = [(), ()].map(|()| run(seed, &Options::default()).expect("a healthy engine").hash);
        assert_eq!(hashes[0], hashes[1], "seed {seed}");
    }
}

/// A planted fault is found before long.
fn is_found(fault: Planted) {
    let options = Options { planted: Some(fault), ..Options::default() };
    let found = (1..=40).find_map(|seed| run(seed, &options).err());
    let found = found.unwrap_or_else(|| panic!("{fault:?} is not found in 40 seeds"));
    println!("{fault:?} is found by seed {}: {}", found.seed, found.what);
}

#[test]
fn a_skipped_sync_is_found() {
    is_found(Planted::SkippedSync(16));
}

#[test]
fn a_lock_that_goes_early_is_found() {
    is_found(Planted::Engine(engine::planted::Planted::LockGoesEarly));
}

#[test]
fn a_lost_index_entry_is_found() {
    is_found(Planted::Engine(engine::planted::Planted::LostIndexEntry));
}
