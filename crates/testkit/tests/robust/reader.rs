//! An old snapshot beside a steady load of updates: memory stays flat (rule R12).

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use testkit::Connection;

use super::server::{number, run, start};

const ROWS: i64 = 1000;
const LENGTH: Duration = Duration::from_secs(6);

#[test]
fn an_old_reader_pins_little() {
    let Some(server) = start(&[]) else { return };
    let mut connection = server.connect();
    run(&mut connection, "CREATE TABLE hot (a int PRIMARY KEY, n bigint, filler text)");
    run(
        &mut connection,
        &format!("INSERT INTO hot SELECT i, 0, repeat('x', 500) FROM generate_series(1, {ROWS}) AS g (i)"),
    );
    let mut reader = server.connect();
    run(&mut reader, "BEGIN ISOLATION LEVEL REPEATABLE READ");
    assert_eq!(number(&mut reader, "SELECT sum(n) FROM hot"), 0);
    let (stop, updates) = (AtomicBool::new(false), AtomicU64::new(0));
    let mut sizes = Vec::new();
    std::thread::scope(|scope| {
        for first in 0..4 {
            let connection = server.connect();
            let (stop, updates) = (&stop, &updates);
            scope.spawn(move || update(connection, first, stop, updates));
        }
        let begun = Instant::now();
        while begun.elapsed() < LENGTH {
            std::thread::sleep(LENGTH / 10);
            sizes.push(server.resident_mib());
        }
        stop.store(true, Ordering::Relaxed);
    });
    let updates = updates.into_inner();
    println!("{updates} updates beside an old reader; resident MiB: {sizes:?}");
    assert!(updates > 2 * ROWS as u64, "only {updates} updates");
    // Were every version kept, each update would cost half a kilobyte.
    let (early, late) = (sizes[2], sizes[9]);
    assert!(late < early + 32 + updates / 2048 / 4, "{sizes:?} MiB after {updates} updates");
    assert_eq!(number(&mut reader, "SELECT sum(n) FROM hot"), 0, "the snapshot has moved");
    run(&mut reader, "COMMIT");
    assert_eq!(number(&mut connection, "SELECT sum(n) FROM hot"), updates as i64);
    server.assert_sound();
}

fn update(mut connection: Connection, first: i64, stop: &AtomicBool, updates: &AtomicU64) {
    let mut key = first;
    while !stop.load(Ordering::Relaxed) {
        key = (key + 4) % ROWS;
        run(&mut connection, &format!("UPDATE hot SET n = n + 1 WHERE a = {}", key + 1));
        updates.fetch_add(1, Ordering::Relaxed);
    }
}
