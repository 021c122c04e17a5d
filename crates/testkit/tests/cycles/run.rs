//! The cycles: load, kill, start, look.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use testkit::{Connection, Nyala, Random, Target};

use super::clients::{Client, all};
use super::indexes;

/// Without `NYALA_KILLS`.
const CYCLES: u64 = 4;

/// After so many cycles what has gathered is removed, so that looking at it does not take ever longer.
const TIDY: u64 = 4;

/// How a cycle ends.
#[derive(Clone, Copy, Debug)]
enum Moment {
    /// After some time under load.
    AfterAWhile,
    /// While files of an image are being written, or just after.
    AmidCheckpoint,
    /// As soon as the load begins.
    AtOnce,
}

/// What is told at the end.
#[derive(Default)]
struct Figures {
    acknowledged: std::collections::BTreeMap<&'static str, u64>,
    starts_ms: Vec<u64>,
    killed_at_start: u64,
    indexes: usize,
}

#[test]
fn everything_at_once_survives_kill_after_kill() {
    if Target::is_postgres() {
        println!("not run: there is no server to kill");
        return;
    }
    let seed = Random::seed();
    let cycles = std::env::var("NYALA_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(CYCLES);
    let directory = tempfile::tempdir().expect("a directory for the server");
    let (data, port) = (directory.path().join("data"), Nyala::free_port());
    let mut server = Nyala::start(&data, port);
    let mut clients = all();
    let mut connection = server.connect();
    for client in &mut clients {
        for sql in client.setup() {
            super::ask::must(&mut connection, &sql);
        }
        client.learn(&mut connection);
    }
    drop(connection);
    let mut figures = Figures::default();
    for cycle in 0..cycles {
        let seed = seed.wrapping_add(cycle);
        let mut random = Random::new(seed);
        let moment = [Moment::AfterAWhile, Moment::AmidCheckpoint, Moment::AfterAWhile, Moment::AtOnce]
            [random.below(4) as usize];
        println!("cycle {}: NYALA_SEED={seed}, killed {moment:?}", cycle + 1);
        load(&server, &data, &mut clients, moment, &mut random, &mut figures);
        server.kill();
        server = start_again(&data, port, &mut random, &mut figures);
        let mut connection = server.connect();
        for client in &mut clients {
            client.check(&mut connection);
        }
        figures.indexes += indexes::check(&mut connection);
        if cycle % TIDY == TIDY - 1 {
            clients.iter_mut().for_each(|client| client.tidy(&mut connection));
        }
    }
    assert_eq!(server.terminate(), 0, "SIGTERM is an orderly end");
    let server = Nyala::start(&data, port);
    let mut connection = server.connect();
    clients.iter_mut().for_each(|client| client.check(&mut connection));
    indexes::check(&mut connection);
    let log = server.stderr();
    let wrong: Vec<&str> = log.lines().filter(|line| line.contains("panic") || line.contains("overflowed")).collect();
    assert!(wrong.is_empty(), "the server has panicked: {wrong:?}");
    tell(cycles, &figures, log.lines().filter(|line| line.contains("; the log is kept from")).count());
}

/// Lets all clients work, beside checkpoints, until the moment has come; then the server is dead.
fn load(
    server: &Nyala,
    data: &Path,
    clients: &mut [Box<dyn Client>],
    moment: Moment,
    random: &mut Random,
    figures: &mut Figures,
) {
    let wants_checkpoints = matches!(moment, Moment::AmidCheckpoint) || random.below(3) == 0;
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let running: Vec<_> = clients
            .iter_mut()
            .map(|client| {
                let (connection, random) = (server.connect(), Random::new(random.number()));
                let name = client.name();
                (name, scope.spawn(move || client.run(connection, random)))
            })
            .collect();
        if wants_checkpoints {
            let mut connection: Connection = server.connect();
            let stop = &stop;
            // One after the other, so that the end comes at any place in the making of one.
            scope.spawn(
                move || {
                    while !stop.load(Ordering::Relaxed) && connection.query("CHECKPOINT").status.is_some() {}
                },
            );
        }
        wait_for(moment, data, random);
        server.kill_now();
        stop.store(true, Ordering::Relaxed);
        for (name, client) in running {
            let done = client.join().unwrap_or_else(|_| panic!("a client has found something wrong: {name}"));
            *figures.acknowledged.entry(name).or_default() += done;
        }
    });
}

fn wait_for(moment: Moment, data: &Path, random: &mut Random) {
    let images = || -> Vec<_> {
        let Ok(entries) = std::fs::read_dir(data) else { return Vec::new() };
        let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
        names.filter(|name| name.ends_with(".image") || name == "manifest.new").collect()
    };
    match moment {
        Moment::AfterAWhile => std::thread::sleep(Duration::from_millis(200 + random.below(500))),
        Moment::AtOnce => std::thread::sleep(Duration::from_millis(random.below(50))),
        Moment::AmidCheckpoint => {
            std::thread::sleep(Duration::from_millis(100 + random.below(200)));
            let (before, begun, after) = (images(), Instant::now(), random.below(40));
            while begun.elapsed() < Duration::from_secs(2) && images().iter().all(|name| before.contains(name)) {}
            std::thread::sleep(Duration::from_millis(after));
        }
    }
}

/// Starts the server, which is killed on the way now and then. Every other life keeps a short log.
fn start_again(data: &Path, port: u16, random: &mut Random, figures: &mut Figures) -> Nyala {
    let flags: &[&str] = if random.below(2) == 0 { &["--checkpoint-log", "1MB"] } else { &[] };
    let usual = figures.starts_ms.last().copied().unwrap_or(100);
    if random.below(3) == 0 {
        for _ in 0..1 + random.below(3) {
            let starting = Nyala::launch(data, port, flags);
            std::thread::sleep(Duration::from_millis(random.below(usual + 20)));
            starting.kill();
            figures.killed_at_start += 1;
        }
    }
    let begun = Instant::now();
    let server = Nyala::start_with(data, port, flags);
    figures.starts_ms.push(begun.elapsed().as_millis() as u64);
    server
}

fn tell(cycles: u64, figures: &Figures, checkpoints: usize) {
    let total: u64 = figures.acknowledged.values().sum();
    let mut starts = figures.starts_ms.clone();
    starts.sort_unstable();
    println!("{cycles} cycles, {} more kills during a start, {checkpoints} checkpoints", figures.killed_at_start);
    println!("{total} transactions acknowledged, none lost: {:?}", figures.acknowledged);
    println!("{} readings of an index beside its table", figures.indexes);
    let at = |share: usize| starts.get(starts.len() * share / 100).or(starts.last()).copied().unwrap_or(0);
    println!("starts: median {} ms, 95 % {} ms, longest {} ms", at(50), at(95), at(100));
    assert!(total > cycles * 100, "hardly anything was done");
}
