//! Random schedules on PostgreSQL and on the server under test: who waits, what each statement answers, who fails with what.
//!
//! The seed is printed; `NYALA_SEED=n` repeats a run, and `NYALA_ROUNDS=n` makes it n times as long.

use testkit::interleaving::{self, Run, Stage, Step, locks};
use testkit::{Random, Target};

/// Schedules of one round, for each level.
const SCHEDULES: u64 = 30;
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
        std::thread::scope(|scope| {
            let expected = scope.spawn(|| run(first));
            let actual = run(second);
            [expected.join().expect("PostgreSQL's run"), actual]
        })
    }

    fn differ(&mut self, steps: &[Step]) -> bool {
        (0..ATTEMPTS).all(|_| {
            let [expected, actual] = self.run(steps);
            !expected.0.agrees(&actual.0) || (expected.0.is_certain() && expected.1 != actual.1)
        })
    }
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
