//! Filling tables by several connections at once. The work is cut into jobs whose rows depend only on the seed and the job, so a load
//! gives the same rows whatever the number of connections, and to every server.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::client::{Connection, Failure};
use crate::interrupt::{self, INTERRUPTED};
use crate::progress::{Line, bar};
use crate::rng::Rng;
use crate::target::Target;

/// What to load, and how.
pub struct Plan<'a> {
    /// Where.
    pub target: &'a Target,
    /// How many connections.
    pub connections: usize,
    /// Source of every value.
    pub seed: u64,
    /// How many jobs there are.
    pub jobs: usize,
    /// How many rows they will have made, roughly.
    pub expected_rows: u64,
}

/// Does every job once; answers how many rows they have made. The first failure ends all.
pub fn run(
    plan: &Plan<'_>,
    progress: &mut Line,
    job: impl Fn(usize, &mut Connection, &mut Rng) -> Result<u64, Failure> + Sync,
) -> Result<u64, Failure> {
    let (next, rows, failed) = (AtomicUsize::new(0), AtomicU64::new(0), AtomicBool::new(false));
    let failure = Mutex::new(None);
    let work = || {
        let done = Connection::open(plan.target).and_then(|mut connection| {
            while !failed.load(Ordering::Relaxed) {
                if interrupt::asked() {
                    return Err(Failure::Lost(INTERRUPTED.into()));
                }
                let at = next.fetch_add(1, Ordering::Relaxed);
                if at >= plan.jobs {
                    break;
                }
                let made = job(at, &mut connection, &mut Rng::new(plan.seed, at as u64))?;
                rows.fetch_add(made, Ordering::Relaxed);
            }
            Ok(())
        });
        if let Err(why) = done {
            failed.store(true, Ordering::Relaxed);
            failure.lock().expect("no thread panics while it holds the lock").get_or_insert(why);
        }
    };
    let started = Instant::now();
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..plan.connections).map(|_| scope.spawn(work)).collect();
        while workers.iter().any(|worker| !worker.is_finished()) {
            let rows = rows.load(Ordering::Relaxed);
            progress.show(|| bar("load", rows, plan.expected_rows, started.elapsed()));
            std::thread::sleep(Duration::from_millis(20));
        }
    });
    if let Some(failure) = failure.into_inner().expect("no thread panics while it holds the lock") {
        return Err(failure);
    }
    let rows = rows.into_inner();
    progress.end(&bar("load", rows, rows, started.elapsed()));
    progress.end("indexes and statistics");
    Ok(rows)
}
