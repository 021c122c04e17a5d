//! The generator: clients, each with a connection, that share a thread per processor, until the time is over or the work is done.
//!
//! Responsible for: when a transaction starts, how long it took, what became of it, the line that shows it.
//! Not responsible for: what a transaction is; a [`Worker`] knows.
//! Invariants: a transaction counts if it ends inside the measured time; one that the server refuses with 40001 or 40P01 is
//! run again with the same input, and its response time is that of all its attempts; one that fails otherwise is
//! counted as an error and given up. With a rate, transactions are due at times that do not depend on earlier answers, and
//! a response time begins when a transaction was due, so that a server which stalls is charged for all that would
//! have come meanwhile (no coordinated omission).

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use crate::client::{AsyncConnection, Connection, Failure};
use crate::interrupt::{self, INTERRUPTED};
use crate::progress::Line;
use crate::reactor::{self, Alarm, Task};
use crate::result::Second;
use crate::rng::Rng;
use crate::target::{Dialect, Target};
use crate::usage::{Meter, Usage};

/// A transaction that conflicts this often is given up, so that a server which always refuses ends the run.
const ATTEMPTS: u32 = 10_000;
/// A client whose server cannot be reached for so long ends.
const GONE_AFTER: Duration = Duration::from_secs(5);
/// Between two attempts to connect.
const RECONNECT: Duration = Duration::from_millis(200);

/// What one client does over and over.
pub trait Worker: Send {
    /// Draws the input of the next transaction and answers its kind, a number in [`Plan::kinds`]; `None` when there is nothing left.
    fn draw(&mut self) -> Option<usize>;

    /// Runs the transaction drawn last from its beginning. After a failure the connection may be inside a transaction,
    /// which the driver then rolls back.
    fn run(&mut self, connection: &mut AsyncConnection) -> impl Future<Output = Result<Done, Failure>>;

    /// How long the client waits before the transaction drawn last: its keying, or its think time. Not part of the response.
    fn pause(&mut self) -> Duration {
        Duration::ZERO
    }

    /// Whether it keeps its thread while it waits for the server, so that it has to have one of its own.
    fn blocks(&self) -> bool {
        false
    }

    /// Whether a transaction that failed so is run again with the same input.
    fn repeats(&self, failure: &Failure) -> bool {
        failure.is_conflict()
    }
}

/// What a transaction did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// Statements, those that begin and end it included.
    pub statements: u64,
    /// Rows read or written.
    pub rows: u64,
    /// It was rolled back because the workload wants it.
    pub rolled_back: bool,
}

impl Done {
    /// So many statements with so many rows.
    pub fn new(statements: u64, rows: u64) -> Done {
        Done { statements, rows, rolled_back: false }
    }
}

/// What to run.
pub struct Plan<'a> {
    /// Where.
    pub target: &'a Target,
    /// Prepared on every connection, in the order of their numbers.
    pub statements: &'a [String],
    /// Names of the kinds of transactions.
    pub kinds: &'a [&'static str],
    /// Time before the measurement.
    pub warmup: Duration,
    /// Time of the measurement; without it, until no worker has anything left.
    pub duration: Option<Duration>,
    /// Transactions per second of all clients together, due at random times; without it, each starts when the one before has ended.
    pub rate: Option<f64>,
    /// Source of the times of arrivals.
    pub seed: u64,
}

/// What one kind of transaction did.
#[derive(Clone)]
pub struct KindTally {
    /// Response times in microseconds, of committed and rolled back transactions.
    pub times: Histogram<u64>,
    /// Rolled back because the workload says so.
    pub rolled_back: u64,
}

/// What happened in the measured time.
#[derive(Clone)]
pub struct Tally {
    /// By kind.
    pub kinds: Vec<KindTally>,
    /// Statements of the transactions that count.
    pub statements: u64,
    /// Their rows.
    pub rows: u64,
    /// Attempts that were repeated, by SQLSTATE.
    pub retries: BTreeMap<String, u64>,
    /// Transactions given up: how many, and the first message, by SQLSTATE.
    pub errors: BTreeMap<String, (u64, String)>,
    /// Transactions that were due before the end and had not begun: the server did not keep up with the rate.
    pub late: u64,
    /// Of all clients, from the first to the last transaction, warm-up included: acknowledged by the server.
    pub acknowledged: u64,
    /// Of the same, those whose end is not known because the connection was lost.
    pub unknown: u64,
}

impl Tally {
    /// Nothing yet, of so many kinds.
    pub fn new(kinds: usize) -> Tally {
        // Grows with the times it sees: most clients of most runs see none above a few milliseconds.
        let times = Histogram::new(3).expect("three digits are few enough");
        Tally {
            kinds: vec![KindTally { times, rolled_back: 0 }; kinds],
            statements: 0,
            rows: 0,
            retries: BTreeMap::new(),
            errors: BTreeMap::new(),
            late: 0,
            acknowledged: 0,
            unknown: 0,
        }
    }

    /// Takes in what another client did.
    pub fn add(&mut self, other: Tally) {
        for (mine, theirs) in self.kinds.iter_mut().zip(other.kinds) {
            mine.times.add(theirs.times).expect("it grows");
            mine.rolled_back += theirs.rolled_back;
        }
        self.statements += other.statements;
        self.rows += other.rows;
        self.late += other.late;
        self.acknowledged += other.acknowledged;
        self.unknown += other.unknown;
        for (state, count) in other.retries {
            *self.retries.entry(state).or_default() += count;
        }
        for (state, (count, message)) in other.errors {
            self.errors.entry(state).or_insert((0, message)).0 += count;
        }
    }

    /// Transactions that count.
    pub fn transactions(&self) -> u64 {
        self.kinds.iter().map(|kind| kind.times.len()).sum()
    }
}

/// What a run gives, with its workers.
pub struct Measured<W> {
    /// How long it was measured, exactly.
    pub elapsed: Duration,
    /// What happened.
    pub tally: Tally,
    /// Second by second.
    pub series: Vec<Second>,
    /// What it cost.
    pub usage: Usage,
    /// Why it ended before its time.
    pub ended: Option<String>,
    /// The workers, with what they have noted.
    pub workers: Vec<W>,
}

/// Phases of a run, in [`Shared::phase`].
const WARMING: u8 = 0;
const MEASURING: u8 = 1;
const STOPPED: u8 = 2;

struct Shared {
    /// Written by the main thread; a client that reads it late counts one transaction more or less, no harm.
    phase: AtomicU8,
    clients: Vec<Arc<Counters>>,
}

/// A client's own counters, on a cache line that only it writes, from the start of the warm-up. Read by the main thread, which
/// wants no more than a recent value of each.
#[derive(Default)]
#[repr(align(128))]
struct Counters {
    transactions: AtomicU64,
    microseconds: AtomicU64,
    retries: AtomicU64,
    errors: AtomicU64,
    ended: AtomicU8,
}

/// Sums over all clients.
#[derive(Clone, Copy, Default)]
struct Sums {
    transactions: u64,
    microseconds: u64,
    retries: u64,
    errors: u64,
    running: usize,
}

impl Shared {
    fn sums(&self) -> Sums {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        self.clients.iter().fold(Sums::default(), |sums, client| Sums {
            transactions: sums.transactions + read(&client.transactions),
            microseconds: sums.microseconds + read(&client.microseconds),
            retries: sums.retries + read(&client.retries),
            errors: sums.errors + read(&client.errors),
            running: sums.running + usize::from(client.ended.load(Ordering::Relaxed) == 0),
        })
    }
}

/// Runs the workers, a client each.
///
/// # Errors
/// If a client cannot connect or prepare before the start; later, failures are counted.
pub fn drive<W: Worker>(plan: &Plan<'_>, workers: Vec<W>, progress: &mut Line) -> Result<Measured<W>, Failure> {
    let mut connections = Vec::new();
    for number in 0..workers.len() {
        progress.show(|| format!("connecting  {number} of {}", workers.len()));
        connections.push(connect(plan)?);
    }
    let clients = workers.iter().map(|_| Arc::default()).collect();
    // Without a warm-up the first transaction counts, also that of a client which starts before the others.
    let first = if plan.warmup.is_zero() { MEASURING } else { WARMING };
    let shared = Shared { phase: AtomicU8::new(first), clients };
    let alarm = Alarm::new()?;
    let meter = Meter::new(plan.target);
    let begun = (meter.read(), Instant::now());
    thread::scope(|scope| {
        let (count, threads) = (workers.len(), threads(plan, &workers));
        let mut shares: Vec<Vec<_>> = (0..threads).map(|_| Vec::new()).collect();
        for (number, (worker, connection)) in workers.into_iter().zip(connections).enumerate() {
            let client = Client {
                plan,
                shared: &shared,
                counters: &shared.clients[number],
                arrivals: plan.rate.map(|rate| Arrivals::new(rate / count as f64, plan.seed, number)),
                worker,
                tally: Tally::new(plan.kinds.len()),
                gone: None,
                away: None,
                kept: None,
            };
            shares[number % threads].push((client, connection));
        }
        let alarm = &alarm;
        let handles: Vec<_> = shares.into_iter().map(|share| scope.spawn(move || work(share, alarm))).collect();
        let mut watch = Watch { shared: &shared, meter: &meter, progress, series: Vec::new() };
        if !plan.warmup.is_zero() {
            watch.until("warm-up", Some(plan.warmup));
        }
        watch.series.clear();
        let (before, started) = if plan.warmup.is_zero() { begun } else { (meter.read(), Instant::now()) };
        shared.phase.store(MEASURING, Ordering::Relaxed);
        let in_time = watch.until("run", plan.duration);
        shared.phase.store(STOPPED, Ordering::Relaxed);
        let (elapsed, after) = (started.elapsed(), meter.read());
        // Clients keep their connections until they are joined, so that a server's processes for them still have names.
        let (usage, series) = (after.since_by_process(&before), watch.series);
        alarm.raise();
        let (mut tally, mut gone, mut workers) = (Tally::new(plan.kinds.len()), None, Vec::new());
        let (mut away, mut all_away) = (None, true);
        // In the order of their numbers.
        let mut shares = Vec::new();
        for handle in handles {
            shares.push(handle.join().expect("a client does not panic")?.into_iter());
        }
        for number in 0..count {
            let client = shares[number % threads].next().expect("a thread answers all its clients");
            tally.add(client.tally);
            gone = gone.or(client.gone);
            all_away &= client.away.is_some();
            away = away.or(client.away);
            workers.push(client.worker);
        }
        let interrupted = (!in_time && interrupt::asked()).then(|| INTERRUPTED.to_string());
        // A server that has left all clients is gone, also if the time was over before they had given up.
        let ended = gone.filter(|_| !in_time || plan.duration.is_none()).or(away.filter(|_| all_away)).or(interrupted);
        Ok(Measured { elapsed, tally, series, usage, ended, workers })
    })
}

/// As many threads as there are processors, which have a client at least each; as many as clients if these block.
fn threads<W: Worker>(plan: &Plan<'_>, workers: &[W]) -> usize {
    if plan.target.dialect == Dialect::MySql || workers.iter().any(Worker::blocks) {
        return workers.len();
    }
    thread::available_parallelism().map_or(1, usize::from).min(workers.len())
}

/// Lets a thread's clients work.
fn work<'a, W: Worker + 'a>(
    share: Vec<(Client<'a, W>, Connection)>,
    alarm: &Alarm,
) -> Result<Vec<Client<'a, W>>, Failure> {
    let boxed = |(client, connection): (Client<'a, W>, Connection)| Box::pin(client.work(connection)) as Task<'a, _>;
    Ok(reactor::run(share.into_iter().map(boxed).collect(), alarm)?)
}

fn connect(plan: &Plan<'_>) -> Result<Connection, Failure> {
    let mut connection = Connection::open(plan.target)?;
    connection.prepare(plan.statements)?;
    Ok(connection)
}

/// Shows what happens each second, and notes it.
struct Watch<'a> {
    shared: &'a Shared,
    meter: &'a Meter,
    progress: &'a mut Line,
    series: Vec<Second>,
}

impl Watch<'_> {
    /// Until `time` is over; `false` if all clients had ended before, or somebody has interrupted it.
    fn until(&mut self, phase: &str, time: Option<Duration>) -> bool {
        let started = Instant::now();
        let left = || time.map_or(Duration::MAX, |time| time.saturating_sub(started.elapsed()));
        let mut reading = self.meter.read();
        while !left().is_zero() {
            let (at, before) = (Instant::now(), self.shared.sums());
            // Looks often enough that a run without a time ends when it is over.
            let goes_on = || self.shared.sums().running > 0 && !interrupt::asked();
            while at.elapsed() < Duration::from_secs(1) && !left().is_zero() && goes_on() {
                let step = if time.is_some() { Duration::from_millis(100) } else { Duration::from_millis(5) };
                thread::sleep(step.min(left()));
            }
            let (seconds, sums, now) = (at.elapsed().as_secs_f64(), self.shared.sums(), self.meter.read());
            let (transactions, used) = (sums.transactions - before.transactions, now.since(&reading));
            let second = Second {
                at_seconds: started.elapsed().as_secs_f64(),
                per_second: transactions as f64 / seconds,
                mean_ms: (sums.microseconds - before.microseconds) as f64 / 1e3 / transactions.max(1) as f64,
                errors: sums.errors - before.errors,
                server_cores: used.server_seconds().map(|busy| busy / seconds),
                server_system_cores: used.server_system_seconds.map(|busy| busy / seconds),
                client_cores: Some(used.client_seconds / seconds),
                written_per_second: used.written_bytes.map(|bytes| bytes as f64 / seconds),
                flushes_per_second: used.flushes.map(|flushes| flushes as f64 / seconds),
                memory_bytes: now.memory,
            };
            reading = now;
            let (errors, retries) = (sums.errors, sums.retries);
            let (whole, rate, mean) = (second.at_seconds, second.per_second, second.mean_ms);
            self.progress.show(|| {
                format!("{phase} {whole:3.0} s  {rate:.0} tx/s  {mean:.2} ms  {retries} retries  {errors} errors")
            });
            self.series.push(second);
            if sums.running == 0 || interrupt::asked() {
                return false;
            }
        }
        true
    }
}

/// When a client's transactions are due: a Poisson process.
struct Arrivals {
    per_second: f64,
    rng: Rng,
    due: Instant,
}

impl Arrivals {
    fn new(per_second: f64, seed: u64, client: usize) -> Arrivals {
        // Streams apart from those that workloads draw from.
        Arrivals { per_second, rng: Rng::new(seed, (1 << 40) + client as u64), due: Instant::now() }
    }

    fn next(&mut self) -> Instant {
        let gap = -(1.0 - self.rng.unit()).ln() / self.per_second;
        self.due += Duration::from_secs_f64(gap.min(3600.0));
        self.due
    }

    /// How many more were due before `now`, on average.
    fn late(&self, now: Instant) -> u64 {
        (now.saturating_duration_since(self.due).as_secs_f64() * self.per_second) as u64
    }
}

struct Client<'a, W> {
    plan: &'a Plan<'a>,
    shared: &'a Shared,
    counters: &'a Counters,
    arrivals: Option<Arrivals>,
    worker: W,
    tally: Tally,
    /// Why it ended before its time.
    gone: Option<String>,
    /// Why it has no connection at the moment.
    away: Option<String>,
    /// Its connection when it has ended.
    kept: Option<AsyncConnection>,
}

impl<W: Worker> Client<'_, W> {
    async fn work(mut self, connection: Connection) -> Self {
        let mut slot = Some(AsyncConnection::new(connection));
        while !self.stopped() && self.gone.is_none() {
            let Some(kind) = self.worker.draw() else { break };
            let pause = self.worker.pause();
            let due = self.arrivals.as_mut().map(Arrivals::next);
            if !pause.is_zero() || due.is_some() {
                self.wait(Instant::now() + pause).await;
                if let Some(due) = due {
                    self.wait(due).await;
                }
                // What was drawn is run if it can begin at once: a worker may count on it.
                if self.stopped() {
                    break;
                }
            }
            self.transact(kind, due.unwrap_or_else(Instant::now), &mut slot).await;
        }
        if let Some(arrivals) = &self.arrivals {
            self.tally.late = arrivals.late(Instant::now());
        }
        self.counters.ended.store(1, Ordering::Relaxed);
        self.kept = slot;
        self
    }

    fn phase(&self) -> u8 {
        self.shared.phase.load(Ordering::Relaxed)
    }

    /// Work that has to be done is done: only time ends a run before.
    fn stopped(&self) -> bool {
        self.phase() == STOPPED
    }

    fn counts(&self) -> bool {
        self.phase() == MEASURING
    }

    /// Sleeps, but not beyond the end of the run.
    async fn wait(&self, until: Instant) {
        while !self.stopped() {
            if until <= Instant::now() {
                return;
            }
            reactor::until(until).await;
        }
    }

    /// One transaction, until it succeeds, fails for good, or the run ends.
    async fn transact(&mut self, kind: usize, started: Instant, slot: &mut Option<AsyncConnection>) {
        for _ in 0..ATTEMPTS {
            let Some(connection) = self.connected(slot).await else { return };
            let failure = match self.worker.run(connection).await {
                Ok(done) => return self.done(kind, done, started.elapsed()),
                Err(failure) => failure,
            };
            // A lost connection is replaced before the next attempt.
            if matches!(failure, Failure::Lost(_)) || abandon(connection).await.is_err() {
                *slot = None;
                self.away = Some(failure.to_string());
                self.tally.unknown += 1;
            }
            if !self.worker.repeats(&failure) {
                return self.failed(&failure);
            }
            self.counters.retries.fetch_add(1, Ordering::Relaxed);
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

    /// The connection, or a new one; `None` if the server stays away.
    async fn connected<'s>(&mut self, slot: &'s mut Option<AsyncConnection>) -> Option<&'s mut AsyncConnection> {
        let since = Instant::now();
        while slot.is_none() && !self.stopped() {
            match connect(self.plan) {
                Ok(connection) => (*slot, self.away) = (Some(AsyncConnection::new(connection)), None),
                Err(failure) if since.elapsed() > GONE_AFTER => {
                    self.gone = Some(failure.to_string());
                    return None;
                }
                // The server may be restarting.
                Err(_) => self.wait(Instant::now() + RECONNECT).await,
            }
        }
        slot.as_mut()
    }

    fn done(&mut self, kind: usize, done: Done, took: Duration) {
        let took = took.as_micros() as u64;
        self.tally.acknowledged += 1;
        // Only this thread writes them.
        let add = |counter: &AtomicU64, by| counter.store(counter.load(Ordering::Relaxed) + by, Ordering::Relaxed);
        add(&self.counters.transactions, 1);
        add(&self.counters.microseconds, took);
        if self.counts() {
            let tally = &mut self.tally.kinds[kind];
            tally.times.record(took).expect("it grows");
            tally.rolled_back += u64::from(done.rolled_back);
            self.tally.statements += done.statements;
            self.tally.rows += done.rows;
        }
    }

    fn failed(&mut self, failure: &Failure) {
        self.counters.errors.fetch_add(1, Ordering::Relaxed);
        if self.counts() {
            self.tally.errors.entry(failure.state().to_string()).or_insert((0, failure.to_string())).0 += 1;
        }
    }
}

/// Leaves the transaction that a failure has left open.
async fn abandon(connection: &mut AsyncConnection) -> Result<(), Failure> {
    if connection.in_transaction() { connection.query("ROLLBACK").await } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrivals_have_the_rate_they_were_given() {
        let mut arrivals = Arrivals::new(1000.0, 7, 3);
        let start = arrivals.due;
        let last = (0..10_000).map(|_| arrivals.next()).last().unwrap();
        let seconds = (last - start).as_secs_f64();
        assert!((9.5..10.5).contains(&seconds), "{seconds}");
        assert_eq!(arrivals.late(last), 0);
        assert_eq!(arrivals.late(last + Duration::from_secs(2)), 2000);
    }

    #[test]
    fn tallies_of_clients_are_one() {
        let mut one = Tally::new(2);
        one.kinds[1].times.record(5_000_000).unwrap();
        one.errors.insert("08006".into(), (2, "first".into()));
        let mut two = Tally::new(2);
        two.kinds[1].times.record(10).unwrap();
        two.errors.insert("08006".into(), (1, "second".into()));
        two.add(one);
        assert_eq!(two.transactions(), 2);
        assert_eq!(two.errors["08006"], (3, "second".into()));
        assert!(two.kinds[1].times.max() >= 5_000_000);
    }
}
