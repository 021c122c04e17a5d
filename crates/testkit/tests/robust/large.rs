//! Transactions as large as the memory: a COPY, an UPDATE and a DELETE of everything, committed and taken back. Beside them
//! other sessions of the same core are served, and what they leave is given back.
//!
//! `NYALA_LARGE=1` makes them as large as in earnest: 1 GB and a million rows.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use testkit::Connection;

use super::server::{Server, number, run, start};
use super::wire::{self, Wire};

/// Characters per row.
const WIDTH: usize = 1000;

/// Rows per message of a COPY.
const CHUNK: usize = 64;

/// Longest wait of a point select beside all this, on a busy machine and unoptimized.
const LONGEST: Duration = Duration::from_millis(1500);

/// Memory that has not gone down in so many looks, of a tenth of a second, does not go down any more: what is free goes back after ten.
const LOOKS: u32 = 120;

/// How long a statement may take.
const PATIENCE: Duration = Duration::from_secs(600);

/// What the session beside it has seen since it was last asked.
#[derive(Default)]
struct Beside {
    stop: AtomicBool,
    selects: AtomicU64,
    longest_micros: AtomicU64,
}

/// A figure per statement.
struct Measured<'a> {
    server: &'a Server,
    beside: &'a Beside,
    /// The highest of all.
    longest: Duration,
}

#[test]
fn large_transactions_leave_room_for_others() {
    let Some(server) = start(&["--cores", "1"]) else { return };
    let rows = if std::env::var_os("NYALA_LARGE").is_some() { 1_000_000 } else { 50_000 };
    let mut connection = server.connect();
    run(&mut connection, "CREATE TABLE point (a int PRIMARY KEY, b text)");
    run(&mut connection, "INSERT INTO point SELECT i, 'row ' || i FROM generate_series(1, 1000) AS g (i)");
    run(&mut connection, "CREATE TABLE large (a int PRIMARY KEY, b text)");
    let beside = Beside::default();
    let longest = std::thread::scope(|scope| {
        scope.spawn(|| select_points(server.connect(), &beside));
        // The other session must end also when this one panics.
        let _stop = StopAtEnd(&beside);
        let mut measured = Measured { server: &server, beside: &beside, longest: Duration::ZERO };
        all(&mut measured, &mut connection, rows);
        measured.longest
    });
    assert!(longest < LONGEST, "a point select took {longest:?}");
    assert_eq!(number(&mut connection, "SELECT count(*) FROM point"), 1000);
    server.assert_sound();
}

fn all(measured: &mut Measured<'_>, connection: &mut Connection, rows: usize) {
    let empty = measured.server.resident_mib();
    let mut wire = Wire::login(measured.server.nyala.port());
    measured.step("COPY", || copy(&mut wire, rows));
    measured.step("its ROLLBACK", || end(&mut wire, "ROLLBACK"));
    assert_eq!(number(connection, "SELECT count(*) FROM large"), 0);
    let after = measured.settled(empty + 32);
    assert!(after < empty + 32 + (rows / 4096) as u64, "{empty} MiB before, {after} MiB after ROLLBACK of a COPY");

    measured.step("COPY", || copy(&mut wire, rows));
    measured.step("its COMMIT", || end(&mut wire, "COMMIT"));
    let full = measured.server.resident_mib();
    for (sql, value) in [("UPDATE large SET b = 'y' || b", "y"), ("DELETE FROM large", "x")] {
        measured.step("BEGIN", || run_long(connection, "BEGIN"));
        measured.step(sql, || run_long(connection, sql));
        measured.step("its ROLLBACK", || run_long(connection, "ROLLBACK"));
        let after = measured.settled(full + full / 8 + 16);
        assert!(after < full + full / 3 + 32, "{full} MiB before, {after} MiB after ROLLBACK of {sql}");
        assert_eq!(number(connection, "SELECT count(*) FROM large"), rows as i64, "{sql}");
        assert_eq!(number(connection, "SELECT count(*) FROM large WHERE left(b, 1) = 'x'"), rows as i64, "{value}");
    }
    measured.step("UPDATE", || run_long(connection, "UPDATE large SET b = 'y' || b"));
    let after = measured.settled(full + full / 8 + 16);
    assert!(after < full + full / 3 + 32, "{full} MiB before, {after} MiB after UPDATE");
    measured.step("DELETE", || run_long(connection, "DELETE FROM large"));
    let after = measured.settled(empty + 64);
    // What the allocator keeps for the next rows counts here; it must not add up.
    assert!(after < full + full / 3 + 32, "{empty} MiB when empty, {full} MiB when full, {after} MiB after DELETE");
    assert_eq!(number(connection, "SELECT count(*) FROM large"), 0);
}

impl Measured<'_> {
    /// Runs one step and tells of it.
    fn step(&mut self, what: &str, work: impl FnOnce()) {
        self.beside.selects.store(0, Ordering::Relaxed);
        self.beside.longest_micros.store(0, Ordering::Relaxed);
        let begun = Instant::now();
        work();
        let took = begun.elapsed();
        let longest = Duration::from_micros(self.beside.longest_micros.load(Ordering::Relaxed));
        let selects = self.beside.selects.load(Ordering::Relaxed);
        let (now, peak) = (self.server.resident_mib(), self.server.peak_mib());
        println!("{what}: {took:.1?}, {now} MiB (peak {peak}); {selects} selects beside it, the longest {longest:.1?}");
        self.longest = self.longest.max(longest);
    }

    /// Waits until memory has gone down to `target`, or does not go down any more; MiB then.
    fn settled(&self, target: u64) -> u64 {
        let (mut least, mut looks) = (u64::MAX, 0);
        while looks < LOOKS && least > target {
            std::thread::sleep(Duration::from_millis(100));
            let now = self.server.resident_mib();
            looks = if now < least { 0 } else { looks + 1 };
            least = least.min(now);
        }
        println!("    then {least} MiB");
        least
    }
}

/// Begins a transaction and copies rows into it, to the end of the COPY.
fn copy(wire: &mut Wire, rows: usize) {
    wire.send(&[wire::query("BEGIN"), wire::query("COPY large FROM STDIN")].concat());
    let filler = "x".repeat(WIDTH);
    for first in (0..rows).step_by(CHUNK) {
        let lines: String = (first..(first + CHUNK).min(rows)).map(|i| format!("{i}\t{filler}\n")).collect();
        assert!(wire.send(&wire::message(b'd', lines.as_bytes())), "the connection is lost after {first} rows");
    }
    wire.send(&wire::message(b'c', b""));
    ready(wire, b"Z\0\0\0\x05T", 2);
}

fn end(wire: &mut Wire, sql: &str) {
    wire.send(&wire::query(sql));
    ready(wire, b"Z\0\0\0\x05I", 1);
}

/// Reads on until ReadyForQuery has come so many times, the last in this state.
fn ready(wire: &mut Wire, status: &[u8], times: usize) {
    let is_complete = |bytes: &[u8]| {
        bytes.ends_with(status) && bytes.windows(5).filter(|window| *window == b"Z\0\0\0\x05").count() >= times
    };
    let (answer, _) = wire.read_until(PATIENCE, is_complete);
    assert_eq!(wire::errors(&answer), Vec::<String>::new());
    assert!(is_complete(&answer), "no answer");
}

fn run_long(connection: &mut Connection, sql: &str) {
    connection.send(sql);
    let reply = connection.receive(PATIENCE).unwrap_or_else(|| panic!("{sql} goes on for ever"));
    assert_eq!(reply.error(), None, "{sql}");
}

/// Selects single rows until told to stop.
fn select_points(mut connection: Connection, beside: &Beside) {
    while !beside.stop.load(Ordering::Relaxed) {
        let begun = Instant::now();
        let reply = connection.query("SELECT b FROM point WHERE a = 471");
        assert_eq!(reply.value(), Some("row 471"), "{reply}");
        beside.longest_micros.fetch_max(begun.elapsed().as_micros() as u64, Ordering::Relaxed);
        beside.selects.fetch_add(1, Ordering::Relaxed);
        std::thread::sleep(Duration::from_millis(1));
    }
}

struct StopAtEnd<'a>(&'a Beside);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.stop.store(true, Ordering::Relaxed);
    }
}
