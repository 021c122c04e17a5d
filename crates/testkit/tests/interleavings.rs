//! Random schedules on PostgreSQL and on the server under test: who waits, what each statement answers, who fails with what.
//!
//! The seed is printed; `NYALA_SEED=n` repeats a run, and `NYALA_ROUNDS=n` makes it n times as long.

use testkit::interleaving::reads::Changes;
use testkit::interleaving::{self, Run, Stage, Step, locks, reads};
use testkit::{Random, Target};

/// Schedules of one round, for each level.
const SCHEDULES: u64 = 30;
/// Schedules of one round in which commits are counted, for each kind.
const COUNTED: u64 = 150;
/// A server can be late; a real difference is there every time.
const ATTEMPTS: u32 = 3;

fn rounds() -> u64 {
    std::env::var("NYALA_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(1)
}

/// Both servers.
struct Pair {
    stages: [Stage; 2],
}

impl Pair {
    fn new(sessions: usize, settings: &[&str]) -> Pair {
        let targets = [Target::reference(), Target::start()];
        // The servers live as long as the test.
        Pair { stages: targets.map(|target| Stage::new(Box::leak(Box::new(target)), sessions, settings)) }
    }

    /// The outcomes on both, and what is in the tables then.
    fn run(&mut self, steps: &[Step]) -> [(Run, Vec<String>); 2] {
        let [first, second] = &mut self.stages;
        let run = |stage: &mut Stage| {
            stage.prepare(&locks::START);
            let run = stage.run(steps, &interleaving::brief);
            let rows = locks::END.iter().map(|sql| interleaving::brief(&stage.ask(sql)));
            let rows = rows.collect();
            (run, rows)
        };
        both(|| run(first), || run(second))
    }

    /// How many transactions each server has refused with 40001.
    fn refused(&mut self, steps: &[Step]) -> [usize; 2] {
        let [first, second] = &mut self.stages;
        let run = |stage: &mut Stage| {
            stage.prepare(&reads::START);
            let run = stage.run(steps, &interleaving::brief);
            run.outcomes.iter().filter_map(|outcome| outcome.answer.as_ref()).filter(|a| a.contains("40001")).count()
        };
        both(|| run(first), || run(second))
    }

    fn differ(&mut self, steps: &[Step]) -> bool {
        (0..ATTEMPTS).all(|_| {
            let [expected, actual] = self.run(steps);
            let rows_differ = expected.0.is_certain() && expected.1 != actual.1;
            !is_listed(steps, &expected.0, &actual.0) && (!expected.0.agrees(&actual.0) || rows_differ)
        })
    }
}

/// Whether the first difference is one that COMPATIBILITY.md lists. A statement that waits has not changed its row yet, so ON CONFLICT DO NOTHING finds the row
/// as it was, where PostgreSQL waits for the statement. SKIP LOCKED and NOWAIT do not wait, where PostgreSQL waits for the lock on a newer version of the row.
fn is_listed(steps: &[Step], expected: &Run, actual: &Run) -> bool {
    let mut pairs = expected.outcomes.iter().zip(&actual.outcomes);
    let Some(at) = pairs.position(|(expected, actual)| expected != actual) else { return false };
    let (waited, went_on) = (&expected.outcomes[at], &actual.outcomes[at]);
    let sql = &steps[waited.step].sql;
    if waited.step == went_on.step && (sql.ends_with(" SKIP LOCKED") || sql.ends_with(" NOWAIT")) {
        return waited.answer.is_none() && went_on.answer.is_some();
    }
    let before = &expected.outcomes[..at];
    let waits = before.iter().enumerate().any(|(place, outcome)| {
        let goes_on = before[place + 1..].iter().any(|later| later.step == outcome.step);
        outcome.answer.is_none() && !goes_on && steps[outcome.step].sql.starts_with("UPDATE ")
    });
    waits
        && waited.step == went_on.step
        && sql.contains("ON CONFLICT DO NOTHING")
        && (waited.answer.is_none() || waited.is_deadlock())
        && went_on.answer.as_deref() == Some("INSERT 0 0")
}

/// Runs something on both servers at once.
fn both<T: Send>(first: impl FnOnce() -> T + Send, second: impl FnOnce() -> T) -> [T; 2] {
    std::thread::scope(|scope| {
        let expected = scope.spawn(first);
        let actual = second();
        [expected.join().expect("PostgreSQL's run"), actual]
    })
}

fn compare(level: &str) {
    let seed = Random::seed();
    println!("NYALA_SEED={seed}");
    let mut random = Random::new(seed);
    let mut pair = Pair::new(3, &locks::SETTINGS);
    let mut wrong = Vec::new();
    let count = SCHEDULES * rounds();
    for _ in 0..count {
        let sessions = 2 + random.below(2) as usize;
        let steps = locks::schedule(&mut random, sessions, level);
        if pair.differ(&steps) {
            let steps = interleaving::shorten(steps, |steps| pair.differ(steps));
            let [expected, actual] = pair.run(&steps);
            let rows = format!("    in the end {:?}\n               {:?}", expected.1, actual.1);
            wrong.push(format!(
                "{}\n{rows}",
                interleaving::side_by_side(&steps, &expected.0.outcomes, &actual.0.outcomes)
            ));
        }
    }
    assert!(wrong.is_empty(), "NYALA_SEED={seed}: {} of {count} differ:\n\n{}", wrong.len(), wrong.join("\n\n"));
}

#[test]
fn read_committed() {
    compare("READ COMMITTED");
}

#[test]
fn repeatable_read() {
    compare("REPEATABLE READ");
}

/// Both servers refuse what has no serial order (`registers`, `serializable_named`), so what is refused beyond PostgreSQL's refusals
/// is needless.
fn count(changes: Changes) {
    let seed = Random::seed();
    println!("NYALA_SEED={seed}");
    let mut random = Random::new(seed);
    let mut pair = Pair::new(3, &[]);
    let (mut sums, mut more, mut fewer) = ([0, 0], 0, 0);
    for _ in 0..COUNTED * rounds() {
        let sessions = 2 + random.below(2) as usize;
        let steps = reads::schedule(&mut random, sessions, changes);
        let [expected, actual] = pair.refused(&steps);
        sums = [sums[0] + expected, sums[1] + actual];
        more += usize::from(actual > expected);
        fewer += usize::from(actual < expected);
        if actual > expected && std::env::var_os("NYALA_TRACE").is_some() {
            let steps: Vec<_> = steps.iter().map(|step| format!("    {}: {}", step.session, step.sql)).collect();
            println!("refused {actual} instead of {expected}:\n{}", steps.join("\n"));
        }
    }
    let [expected, actual] = sums;
    println!(
        "{changes:?}: {actual} transactions are refused, by PostgreSQL {expected}; more in {more} schedules, fewer in {fewer}"
    );
    assert!(actual <= expected, "NYALA_SEED={seed}: {actual} transactions are refused, by PostgreSQL {expected}");
    assert!(expected > 0, "no schedule has a conflict");
}

#[test]
fn serializable_refuses_no_more_updates() {
    count(Changes::Updates);
}

#[test]
fn serializable_refuses_no_more_changes() {
    count(Changes::All);
}
