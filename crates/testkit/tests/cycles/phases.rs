//! kill -9 at each step of a commit in two phases.

use std::time::Duration;

use testkit::{Connection, Nyala, Random, Target};

use super::ask::{must, number};

/// Transactions that are at the step when the server dies.
const TRANSACTIONS: i64 = 6;

/// Kills per step without `NYALA_KILLS`; with it, at most [`KILLS_MAX`].
const KILLS: u64 = 1;
const KILLS_MAX: u64 = 20;

/// Where the server dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// All is written, nothing prepared.
    Written,
    /// PREPARE TRANSACTION is sent.
    Preparing,
    /// It is acknowledged.
    Prepared,
    /// It is acknowledged, and a checkpoint has been made since.
    PreparedInImage,
    /// COMMIT PREPARED is sent.
    Committing,
    /// It is acknowledged.
    Committed,
    /// ROLLBACK PREPARED is sent.
    RollingBack,
    /// It is acknowledged.
    RolledBack,
    /// COMMIT PREPARED is sent after a crash.
    CommittingLater,
    /// ROLLBACK PREPARED is sent after a crash and a checkpoint.
    RollingBackLater,
}

const STEPS: [Step; 10] = [
    Step::Written,
    Step::Preparing,
    Step::Prepared,
    Step::PreparedInImage,
    Step::Committing,
    Step::Committed,
    Step::RollingBack,
    Step::RolledBack,
    Step::CommittingLater,
    Step::RollingBackLater,
];

/// What may be found of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Nothing,
    Prepared,
    Committed,
}

impl Step {
    fn fates(self) -> &'static [Fate] {
        match self {
            Step::Written | Step::RolledBack => &[Fate::Nothing],
            Step::Preparing | Step::RollingBack | Step::RollingBackLater => &[Fate::Nothing, Fate::Prepared],
            Step::Prepared | Step::PreparedInImage => &[Fate::Prepared],
            Step::Committing | Step::CommittingLater => &[Fate::Prepared, Fate::Committed],
            Step::Committed => &[Fate::Committed],
        }
    }

    /// What ends it.
    fn verb(self) -> &'static str {
        match self {
            Step::Committing | Step::Committed | Step::CommittingLater => "COMMIT PREPARED",
            _ => "ROLLBACK PREPARED",
        }
    }

    fn is_sent_only(self) -> bool {
        matches!(self, Step::Committing | Step::RollingBack | Step::CommittingLater | Step::RollingBackLater)
    }
}

#[test]
fn every_step_of_two_phases_survives() {
    if Target::is_postgres() {
        println!("not run: there is no server to kill");
        return;
    }
    let seed = Random::seed();
    println!("NYALA_SEED={seed}");
    let mut random = Random::new(seed);
    let kills =
        std::env::var("NYALA_KILLS").ok().and_then(|text| text.parse().ok()).map_or(KILLS, |n: u64| n.min(KILLS_MAX));
    let directory = tempfile::tempdir().expect("a directory for the server");
    let (data, port) = (directory.path().join("data"), Nyala::free_port());
    let mut server = Nyala::start(&data, port);
    let mut connection = server.connect();
    must(&mut connection, "CREATE TABLE two (id bigint PRIMARY KEY, v text)");
    must(&mut connection, "CREATE TABLE counted (id bigint PRIMARY KEY, n bigint)");
    must(&mut connection, &format!("INSERT INTO counted SELECT i, 0 FROM generate_series(1, {TRANSACTIONS}) AS g (i)"));
    let mut first = 1;
    for step in STEPS {
        let mut found = Vec::new();
        for _ in 0..kills {
            let mut clients: Vec<Connection> = (0..TRANSACTIONS).map(|_| server.connect()).collect();
            for (n, client) in (0..).zip(&mut clients) {
                write(client, n + 1, first + n);
                if step != Step::Written && step != Step::Preparing {
                    must(client, &format!("PREPARE TRANSACTION '{}'", first + n));
                }
            }
            if step == Step::PreparedInImage {
                must(&mut server.connect(), "CHECKPOINT");
            }
            if matches!(step, Step::CommittingLater | Step::RollingBackLater) {
                server.kill();
                server = Nyala::start(&data, port);
                if step == Step::RollingBackLater {
                    must(&mut server.connect(), "CHECKPOINT");
                }
                clients = (0..TRANSACTIONS).map(|_| server.connect()).collect();
            }
            last_words(step, &mut clients, first);
            if step.is_sent_only() || step == Step::Preparing {
                std::thread::sleep(Duration::from_micros(random.below(1500)));
            }
            server.kill();
            server = Nyala::start(&data, port);
            let fates = look(&mut server.connect(), step, first);
            found.extend(fates);
            first += TRANSACTIONS;
        }
        let count = |fate| found.iter().filter(|found| **found == fate).count();
        println!(
            "{step:?}, {kills} kills: {} found prepared, {} committed, {} not there",
            count(Fate::Prepared),
            count(Fate::Committed),
            count(Fate::Nothing)
        );
    }
    assert_eq!(server.terminate(), 0, "SIGTERM is an orderly end");
}

fn write(client: &mut Connection, slot: i64, id: i64) {
    must(client, "BEGIN");
    must(client, &format!("INSERT INTO two VALUES ({id}, 'row ' || {id})"));
    must(client, &format!("UPDATE counted SET n = n + 1 WHERE id = {slot}"));
}

fn last_words(step: Step, clients: &mut [Connection], first: i64) {
    for (id, client) in (first..).zip(clients) {
        match step {
            Step::Written | Step::Prepared | Step::PreparedInImage => {}
            Step::Preparing => client.send(&format!("PREPARE TRANSACTION '{id}'")),
            Step::Committed | Step::RolledBack => _ = must(client, &format!("{} '{id}'", step.verb())),
            _ => client.send(&format!("{} '{id}'", step.verb())),
        }
    }
}

/// What has become of the transactions; they are ended, and counted once each if they were committed.
fn look(connection: &mut Connection, step: Step, first: i64) -> Vec<Fate> {
    let mut all = Vec::new();
    for (slot, id) in (1..=TRANSACTIONS).zip(first..) {
        let one = must(
            connection,
            &format!(
                "SELECT (SELECT count(*) FROM pg_prepared_xacts WHERE gid = '{id}'), (SELECT count(*) FROM two WHERE id = {id})"
            ),
        );
        let row: Vec<i64> = one.rows().flatten().map(number).collect();
        let fate = match row[..] {
            [0, 0] => Fate::Nothing,
            [1, 0] => Fate::Prepared,
            [0, 1] => Fate::Committed,
            _ => panic!("{step:?}: transaction {id} is prepared and committed"),
        };
        assert!(step.fates().contains(&fate), "{step:?}: transaction {id}: {fate:?}");
        if fate == Fate::Prepared {
            let locked = connection.query(&format!("SELECT * FROM counted WHERE id = {slot} FOR UPDATE NOWAIT"));
            assert_eq!(locked.code(), "55P03", "{step:?}: prepared transaction {id} has lost its lock");
            must(connection, &format!("{} '{id}'", if id % 2 == 0 { "COMMIT PREPARED" } else { "ROLLBACK PREPARED" }));
        }
        all.push(fate);
    }
    let others = must(connection, "SELECT count(*) FROM pg_prepared_xacts");
    assert_eq!(others.value(), Some("0"), "{step:?}: transactions that nobody prepared");
    let counted = must(connection, "SELECT (SELECT sum(n) FROM counted) - (SELECT count(*) FROM two)");
    assert_eq!(counted.value(), Some("0"), "{step:?}: half of a transaction");
    all
}
