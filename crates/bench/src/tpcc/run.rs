//! The measurement: one thread per client, each with a connection, a deck and a generator of its own.
//!
//! A transaction counts if it ends inside the measured time. One that the server refuses with 40001 or 40P01 is run
//! again with the same input, and its response time is that of all its attempts; one that fails otherwise is counted as
//! an error and given up.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use super::ledger::Made;
use super::mix::{Deck, Kind};
use super::random::{Constants, DISTRICTS};
use super::transactions::{Input, Outcome, Terminal, abandon, statements};
use crate::client::{Connection, Failure};
use crate::cpu;
use crate::progress::Line;
use crate::rng::Rng;
use crate::target::Target;

/// Longest response time told apart, in microseconds: one hour.
const SLOWEST_US: u64 = 3_600_000_000;
/// A transaction that conflicts this often is given up, so that a server which always refuses ends the run.
const ATTEMPTS: u32 = 10_000;

/// What to run.
pub struct Plan<'a> {
    /// Where.
    pub target: &'a Target,
    /// Warehouses in the database.
    pub warehouses: i64,
    /// Clients at once.
    pub clients: usize,
    /// Time before the measurement.
    pub warmup: Duration,
    /// Time of the measurement.
    pub duration: Duration,
    /// SQL name of the isolation level.
    pub isolation: &'a str,
    /// Whether clients wait as people would.
    pub think: bool,
    /// Source of every value.
    pub seed: u64,
}

/// What one kind of transaction did.
#[derive(Clone)]
pub struct KindTally {
    /// Response times in microseconds, of committed and rolled back transactions.
    pub times: Histogram<u64>,
    /// Rolled back because the specification says so.
    pub rolled_back: u64,
}

/// What happened in the measured time.
pub struct Tally {
    /// By kind, in the order of [`Kind::ALL`].
    pub kinds: [KindTally; 5],
    /// Attempts that were repeated, by SQLSTATE.
    pub retries: BTreeMap<String, u64>,
    /// Transactions given up: how many, and the first message, by SQLSTATE.
    pub errors: BTreeMap<String, (u64, String)>,
    /// What all transactions have made, those of the warm-up included.
    pub made: Made,
}

impl Tally {
    fn new() -> Tally {
        let times = Histogram::new_with_bounds(1, SLOWEST_US, 3).expect("the bounds are in order");
        let kind = KindTally { times, rolled_back: 0 };
        Tally {
            kinds: std::array::from_fn(|_| kind.clone()),
            retries: BTreeMap::new(),
            errors: BTreeMap::new(),
            made: Made::default(),
        }
    }

    fn add(&mut self, other: Tally) {
        self.made.add(&other.made);
        for (mine, theirs) in self.kinds.iter_mut().zip(other.kinds) {
            mine.times.add(theirs.times).expect("all histograms have the same bounds");
            mine.rolled_back += theirs.rolled_back;
        }
        for (state, count) in other.retries {
            *self.retries.entry(state).or_default() += count;
        }
        for (state, (count, message)) in other.errors {
            self.errors.entry(state).or_insert((0, message)).0 += count;
        }
    }
}

/// What a run gives.
pub struct Measured {
    /// How long it was measured, exactly.
    pub elapsed: Duration,
    /// What happened.
    pub tally: Tally,
    /// CPU time of the server and the number of its processes, or why it is not known.
    pub server_cpu: Result<(Duration, usize), String>,
    /// CPU time of this process.
    pub client_cpu: Duration,
}

/// Phases of a run, in [`Shared::phase`].
const WARMING: u8 = 0;
const MEASURING: u8 = 1;
const STOPPED: u8 = 2;

/// What all clients and the progress line see. Counters run from the start of the warm-up.
struct Shared {
    /// Written by the main thread; a client that reads it late counts one transaction more or less, no harm.
    phase: AtomicU8,
    transactions: AtomicU64,
    new_orders: AtomicU64,
    retries: AtomicU64,
    errors: AtomicU64,
}

/// Runs the mix.
pub fn run(plan: &Plan<'_>, progress: &mut Line) -> Result<Measured, Failure> {
    let constants = Constants::run(&mut Rng::new(plan.seed, 0));
    let statements = statements(plan.isolation);
    let connections = (0..plan.clients).map(|_| connect(plan.target, &statements)).collect::<Result<Vec<_>, _>>()?;
    let zero = || AtomicU64::new(0);
    let shared = Shared {
        phase: AtomicU8::new(WARMING),
        transactions: zero(),
        new_orders: zero(),
        retries: zero(),
        errors: zero(),
    };
    let server = cpu::Server::find(plan.target);
    thread::scope(|scope| {
        let client = |(number, connection)| {
            let client = Client {
                plan,
                shared: &shared,
                constants: &constants,
                statements: &statements,
                number,
                rng: Rng::new(plan.seed, 1 + number as u64),
                deck: Deck::new(),
                tally: Tally::new(),
            };
            scope.spawn(move || client.work(connection))
        };
        let clients: Vec<_> = connections.into_iter().enumerate().map(client).collect();
        watch("warm-up", plan.warmup, &shared, progress);
        let used = || server.as_ref().map(|s| s.used()).map_err(|e| e.clone());
        let (server_before, client_before, started) = (used(), cpu::own(), Instant::now());
        shared.phase.store(MEASURING, Ordering::Relaxed);
        watch("run", plan.duration, &shared, progress);
        shared.phase.store(STOPPED, Ordering::Relaxed);
        let (elapsed, client_cpu, server_after) = (started.elapsed(), cpu::own() - client_before, used());
        clients.iter().for_each(|client| client.thread().unpark());
        let mut tally = Tally::new();
        clients.into_iter().for_each(|client| tally.add(client.join().expect("a client does not panic")));
        let server_cpu = server_before.and_then(|before| {
            let used = server_after?.since(&before);
            Ok((used.total(), used.processes))
        });
        Ok(Measured { elapsed, tally, server_cpu, client_cpu })
    })
}

fn connect(target: &Target, statements: &[String]) -> Result<Connection, Failure> {
    let mut connection = Connection::open(target)?;
    connection.prepare(statements)?;
    Ok(connection)
}

/// Shows what happens each second, until `time` is over.
fn watch(phase: &str, time: Duration, shared: &Shared, progress: &mut Line) {
    let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    let started = Instant::now();
    let mut second = 0;
    while let Some(left) = time.checked_sub(started.elapsed()).filter(|left| !left.is_zero()) {
        let (before, transactions, new_orders) = (Instant::now(), read(&shared.transactions), read(&shared.new_orders));
        thread::sleep(left.min(Duration::from_secs(1)));
        let seconds = before.elapsed().as_secs_f64();
        second += 1;
        let text = format!(
            "{phase} {second:3} s  {:.0} tx/s  {:.0} new orders/min  {} retries  {} errors",
            (read(&shared.transactions) - transactions) as f64 / seconds,
            (read(&shared.new_orders) - new_orders) as f64 / seconds * 60.0,
            read(&shared.retries),
            read(&shared.errors),
        );
        progress.show(|| text);
    }
}

struct Client<'a> {
    plan: &'a Plan<'a>,
    shared: &'a Shared,
    constants: &'a Constants,
    statements: &'a [String],
    number: usize,
    rng: Rng,
    deck: Deck,
    tally: Tally,
}

impl<'a> Client<'a> {
    fn work(mut self, connection: Connection) -> Tally {
        let mut connection = Some(connection);
        if self.plan.think {
            // Terminals do not start in step.
            let offset = Kind::NewOrder.keying().mul_f64(self.rng.unit());
            self.wait(offset);
        }
        while !self.stopped() {
            let kind = self.deck.draw(&mut self.rng);
            if self.plan.think {
                self.wait(kind.keying());
            }
            let terminal = self.terminal();
            let input = Input::draw(kind, &terminal, &mut self.rng);
            self.transact(kind, &input, &mut connection);
            if self.plan.think {
                let think = kind.think(&mut self.rng);
                self.wait(think);
            }
        }
        self.tally
    }

    /// With as many clients as warehouses or more, a client stays at one warehouse; with fewer, each serves its share.
    fn terminal(&mut self) -> Terminal<'a> {
        let (number, clients, warehouses) = (self.number as i64, self.plan.clients as i64, self.plan.warehouses);
        let warehouse = if clients >= warehouses {
            number % warehouses
        } else {
            let share = (warehouses - number + clients - 1) / clients;
            number + clients * self.rng.uniform(0, share - 1)
        };
        let district = number / warehouses % DISTRICTS + 1;
        Terminal { warehouses, warehouse: warehouse + 1, district, constants: self.constants }
    }

    fn stopped(&self) -> bool {
        self.shared.phase.load(Ordering::Relaxed) == STOPPED
    }

    fn counts(&self) -> bool {
        self.shared.phase.load(Ordering::Relaxed) == MEASURING
    }

    /// Sleeps, but not beyond the end of the run.
    fn wait(&self, time: Duration) {
        let started = Instant::now();
        while !self.stopped() {
            let Some(left) = time.checked_sub(started.elapsed()).filter(|left| !left.is_zero()) else { return };
            thread::park_timeout(left);
        }
    }

    /// One transaction, until it succeeds, fails for good, or the run ends.
    fn transact(&mut self, kind: Kind, input: &Input, connection: &mut Option<Connection>) {
        let started = Instant::now();
        for _ in 0..ATTEMPTS {
            let failure = match self.attempt(kind, input, connection) {
                Ok(outcome) => return self.done(kind, outcome, started.elapsed()),
                Err(failure) => failure,
            };
            if !failure.is_conflict() {
                return self.failed(&failure);
            }
            self.shared.retries.fetch_add(1, Ordering::Relaxed);
            if self.counts() {
                *self.tally.retries.entry(failure.state().to_string()).or_default() += 1;
            }
            if self.stopped() {
                return;
            }
        }
        let message = format!("given up after {ATTEMPTS} attempts");
        self.failed(&Failure::Server { state: *b"40001", message });
    }

    fn attempt(&mut self, kind: Kind, input: &Input, slot: &mut Option<Connection>) -> Result<Outcome, Failure> {
        let connection = match slot {
            Some(connection) => connection,
            None => slot.insert(connect(self.plan.target, self.statements)?),
        };
        let result = input.run(connection);
        let Err(failure) = &result else { return result };
        // A lost connection is replaced before the next transaction.
        if matches!(failure, Failure::Lost(_)) || abandon(connection).is_err() {
            *slot = None;
            self.tally.made.unknown(kind);
        }
        result
    }

    fn done(&mut self, kind: Kind, outcome: Outcome, took: Duration) {
        self.tally.made.acknowledged(kind, outcome);
        self.shared.transactions.fetch_add(1, Ordering::Relaxed);
        if kind == Kind::NewOrder {
            self.shared.new_orders.fetch_add(1, Ordering::Relaxed);
        }
        if self.counts() {
            let tally = &mut self.tally.kinds[kind as usize];
            tally.times.saturating_record(took.as_micros() as u64);
            tally.rolled_back += u64::from(outcome == Outcome::RolledBack);
        }
    }

    fn failed(&mut self, failure: &Failure) {
        self.shared.errors.fetch_add(1, Ordering::Relaxed);
        if self.counts() {
            self.tally.errors.entry(failure.state().to_string()).or_insert((0, failure.to_string())).0 += 1;
        }
        if matches!(failure, Failure::Lost(_)) {
            // The server may be restarting.
            self.wait(Duration::from_millis(200));
        }
    }
}
