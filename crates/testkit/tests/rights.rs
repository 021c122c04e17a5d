//! Random roles, grants, views and statements: PostgreSQL and the server under test must agree on who may do what, who sees
//! what, and who is told what.
//!
//! The seed is printed; `NYALA_SEED=n` repeats a run, `NYALA_ROUNDS=n` makes it n times as long, `NYALA_WORLDS=n` makes n worlds
//! only, `NYALA_SHOWN=n` prints n differences, `NYALA_TRACE=1` each statement before it is sent.

use std::collections::BTreeMap;
use std::time::Duration;

use testkit::rights::{self, Case, Start, Step, World};
use testkit::{Column, Connection, Event, Fields, Random, Reply, Target};

/// Worlds, and cases in each.
const WORLDS: u64 = 25;
const CASES: u64 = 400;

/// More than that says nothing new.
const SHOWN: usize = 12;

/// What `COPY … FROM STDIN` gets: two rows of one column.
const COPIED: &str = "31\n32\n";

/// The same session on both servers.
struct Pair {
    reference: Connection,
    subject: Connection,
}

/// One server's world: where sessions of it are opened.
#[derive(Clone, Copy)]
struct Place<'a> {
    port: u16,
    database: &'a str,
}

impl Place<'_> {
    fn connect(self) -> Connection {
        Connection::open(self.port, self.database).expect("the superuser gets in")
    }
}

impl Pair {
    fn open(places: [Place<'_>; 2]) -> Pair {
        Pair { reference: places[0].connect(), subject: places[1].connect() }
    }

    /// Asks both at once.
    fn ask(&mut self, sql: &str) -> [Reply; 2] {
        trace(sql);
        self.reference.send(sql);
        self.subject.send(sql);
        [&mut self.reference, &mut self.subject].map(|connection| {
            connection.receive(Duration::from_secs(30)).unwrap_or_else(|| panic!("no answer in time: {sql}"))
        })
    }

    /// Runs what has to succeed on both.
    fn must(&mut self, sql: &str) {
        for (server, reply) in ["PostgreSQL", "under test"].into_iter().zip(self.ask(sql)) {
            assert_eq!(reply.error(), None, "{server}: {sql}");
        }
    }

    fn is_closed(&self) -> bool {
        self.reference.is_closed() || self.subject.is_closed()
    }

    fn step(&mut self, step: &Step) -> [Reply; 2] {
        let replies = if step.sql.starts_with("COPY") {
            trace(&step.sql);
            [&mut self.reference, &mut self.subject].map(|connection| connection.copy(&step.sql, COPIED))
        } else if step.extended {
            trace(&step.sql);
            [&mut self.reference, &mut self.subject].map(|connection| connection.extended(&step.sql, &[]))
        } else {
            self.ask(&step.sql)
        };
        replies.map(|reply| comparable(reply, step))
    }
}

fn trace(sql: &str) {
    if std::env::var_os("NYALA_TRACE").is_some() {
        println!("{sql};");
    }
}

/// What has been compared, and what differed.
#[derive(Default)]
struct Tally {
    cases: u64,
    statements: u64,
    fine: u64,
    /// Those that failed on one of the two.
    failed: u64,
    /// Refusals of what is not there (COMPATIBILITY.md), by statement.
    refused: BTreeMap<String, u64>,
    wrong: Vec<String>,
}

#[test]
fn random_rights_agree() {
    let seed = Random::seed();
    println!("NYALA_SEED={seed}");
    let times = number_in("NYALA_ROUNDS").unwrap_or(1);
    let mut random = Random::new(seed);
    let (reference, subject) = (Target::reference(), Target::start());
    let settings = common_settings(&mut reference.connect(), &mut subject.connect());
    let mut tally = Tally::default();
    for round in 0..number_in("NYALA_WORLDS").unwrap_or(WORLDS) * times {
        let world = World::new(&mut random, &format!("world_{round}"), &settings);
        if Target::is_postgres() {
            println!("not run: roles are the cluster's, and there is one cluster");
            return;
        }
        in_world(&mut random, &world, [reference.port(), subject.port()], &mut tally);
    }
    for (what, count) in &tally.refused {
        println!("not there: {count} x {what}");
    }
    let Tally { cases, statements, fine, .. } = tally;
    println!("{cases} cases, {fine} of {statements} statements succeed");
    assert!(fine * 4 >= statements, "hardly anything is allowed at all");
    let count = tally.wrong.len();
    tally.wrong.truncate(number_in("NYALA_SHOWN").map_or(SHOWN, |n| n as usize));
    assert!(count == 0, "NYALA_SEED={seed}: {count} cases differ:\n{}", tally.wrong.join("\n\n"));
}

fn number_in(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|text| text.parse().expect("it is a number"))
}

/// Settings with the same value on both servers, and that value.
fn common_settings(first: &mut Connection, second: &mut Connection) -> Vec<(String, String)> {
    let [expected, actual] = [first, second].map(|connection| {
        let reply = connection.query(
            "SELECT name, setting, coalesce(unit, '') FROM pg_settings WHERE context <> 'postmaster' ORDER BY name",
        );
        reply.rows().map(<[_]>::to_vec).collect::<Vec<_>>()
    });
    // What a transaction is like cannot be said once it has begun; PostgreSQL looks for a library without a name at each login. What
    // takes a restart Nyala only shows.
    let left_out = |row: &[Option<String>]| {
        let name = row[0].as_deref().unwrap_or_default();
        name.starts_with("transaction_") || name.ends_with("_preload_libraries")
    };
    let both = expected.into_iter().filter(|row| actual.contains(row) && !left_out(row));
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    both.map(|row| (text(&row[0]), format!("'{}'", text(&row[1])))).collect()
}

/// Makes a world on both servers, tries the cases, and takes it away.
fn in_world(random: &mut Random, world: &World, ports: [u16; 2], tally: &mut Tally) {
    let home = ports.map(|port| Place { port, database: "postgres" });
    let mut outside = Pair::open(home);
    for sql in world.of_roles.iter().chain([&format!("CREATE DATABASE {} TEMPLATE template0", world.database)]) {
        outside.must(sql);
    }
    let places = ports.map(|port| Place { port, database: &world.database });
    let mut pair = Pair::open(places);
    for sql in &world.statements {
        let [expected, actual] = pair.ask(sql);
        assert!(expected.error().is_none(), "{sql}\n{expected}\n{}", world.statements.join(";\n"));
        if actual.error().is_some() {
            tally.wrong.push(format!("{sql}\n  PostgreSQL:\n{expected}\n  under test:\n{actual}"));
        }
    }
    let [expected, actual] = pair.step(&Step::plain(rights::PROBE_RIGHTS.to_owned()));
    if let Some(wrong) = apart(&expected, &actual) {
        tally.wrong.push(format!("{};\n{wrong}", world.statements.join(";\n")));
    }
    // Others, for what is seen of them and done to them.
    let bystanders: Vec<_> = world.roles.iter().take(2).map(|role| logged_in(places, role, &[]).ok()).collect();
    for _ in 0..CASES {
        let case = rights::case(random, world);
        if pair.is_closed() {
            pair = Pair::open(places);
        }
        tally.cases += 1;
        let failed = tally.failed;
        if let Some(wrong) = run(&case, &mut pair, &mut outside, places, tally) {
            let number = tally.cases;
            tally.wrong.push(format!("world {}, case {number}: {wrong}", world.database));
            // What is not undone by a rollback may have been done by one of them only.
            pair = Pair::open(places);
            for sequence in &world.sequences {
                pair.ask(&format!("SELECT setval('{sequence}', 10)"));
            }
        } else if tally.failed > failed && !pair.is_closed() {
            level(&world.sequences, &mut pair);
        }
    }
    drop((bystanders, pair));
    outside.must(&format!("DROP DATABASE {} WITH (FORCE)", world.database));
    for role in world.roles.iter().rev() {
        outside.must(&format!("DROP ROLE {role}"));
    }
}

/// Gives sequences that have come apart the same value again: a statement that fails may have come to another row first.
fn level(sequences: &[String], pair: &mut Pair) {
    let each = sequences.iter().map(|sequence| format!("SELECT last_value, is_called FROM {sequence}"));
    let [expected, actual] = pair.ask(&each.collect::<Vec<_>>().join("; "));
    if expected != actual {
        for sequence in sequences {
            pair.ask(&format!("SELECT setval('{sequence}', 10)"));
        }
    }
}

/// Logs in on both servers; the answers to it if one of them refuses.
fn logged_in(places: [Place<'_>; 2], role: &str, more: &[(String, String)]) -> Result<(Pair, [Reply; 2]), [Reply; 2]> {
    let [first, second] = places.map(|place| {
        let mut parameters = vec![("user", role), ("database", place.database), ("application_name", "testkit")];
        parameters.extend(more.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        Connection::open_with(place.port, &parameters).expect("the servers listen")
    });
    let ((reference, expected), (subject, actual)) = (first, second);
    let replies = [expected, actual].map(|mut reply| {
        let told = |event: &Event| match event {
            Event::Setting(name, _) => name == "is_superuser" || name == "session_authorization",
            _ => true,
        };
        reply.events.retain(told);
        reply.events.sort_by_key(|event| matches!(event, Event::Setting(name, _) if name == "session_authorization"));
        reply
    });
    match replies.iter().all(|reply| reply.status.is_some()) {
        true => Ok((Pair { reference, subject }, replies)),
        false => Err(replies),
    }
}

/// Runs a case; what differs, if anything.
fn run(case: &Case, pair: &mut Pair, outside: &mut Pair, places: [Place<'_>; 2], tally: &mut Tally) -> Option<String> {
    let mut history = Vec::new();
    let wrong = match &case.start {
        Start::Block(start) => {
            pair.must("BEGIN");
            let wrong = begin(start, pair, &mut history).or_else(|| steps(case, pair, true, &mut history, tally));
            // All but prepared statements goes with the block.
            let prepares = case.steps.iter().any(|step| step.sql.starts_with("PREPARE"));
            pair.ask(if prepares { "ROLLBACK; DEALLOCATE ALL" } else { "ROLLBACK" });
            wrong
        }
        Start::Open(start) => {
            let wrong = begin(start, pair, &mut history).or_else(|| steps(case, pair, false, &mut history, tally));
            pair.ask("ROLLBACK; RESET SESSION AUTHORIZATION");
            pair.ask("DISCARD ALL");
            wrong
        }
        Start::Login { role, parameters, before } => {
            let wrong = begin(before, outside, &mut history);
            history.push(format!("-- login as {role} {parameters:?}"));
            let wrong = wrong.or_else(|| match logged_in(places, role, parameters) {
                Ok((mut own, [expected, actual])) => {
                    differ(&expected, &actual).or_else(|| steps(case, &mut own, false, &mut history, tally))
                }
                Err([expected, actual]) => differ(&expected, &actual),
            });
            settle(outside);
            wrong
        }
    };
    for sql in &case.undo {
        outside.ask(sql);
    }
    wrong.map(|wrong| format!("{};\n{wrong}", history.join(";\n")))
}

/// Waits until a session that is over is over on both servers: others see it in `pg_stat_activity` until then.
fn settle(outside: &mut Pair) {
    let sessions = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'";
    for _ in 0..1000 {
        let [expected, actual] = outside.ask(sessions);
        if expected.rows().eq(actual.rows()) {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

/// What comes before the steps: it may fail, but alike.
fn begin(start: &[String], pair: &mut Pair, history: &mut Vec<String>) -> Option<String> {
    start.iter().find_map(|sql| {
        history.push(sql.clone());
        let replies = pair.ask(sql).map(|reply| comparable(reply, &Step::plain(sql.clone())));
        if replies[0].status == Some('E') && replies[1].status == Some('E') {
            pair.must("ROLLBACK");
            pair.must("BEGIN");
        }
        differ(&replies[0], &replies[1])
    })
}

fn steps(case: &Case, pair: &mut Pair, in_block: bool, history: &mut Vec<String>, tally: &mut Tally) -> Option<String> {
    let mut is_failed = false;
    for step in &case.steps {
        history.push(step.sql.clone());
        tally.statements += 1;
        match (in_block, is_failed) {
            (false, _) => {}
            (true, false) => pair.must("SAVEPOINT before"),
            (true, true) => pair.must("ROLLBACK TO before"),
        }
        let [expected, actual] = pair.step(step);
        tally.fine += u64::from(expected.error().is_none());
        tally.failed += u64::from(expected.error().or(actual.error()).is_some());
        let message = actual.error().map(|error| error.message.clone()).unwrap_or_default();
        // What is not there is found before what PostgreSQL finds out while it runs the query of a CREATE TABLE AS.
        let is_refused = expected.code() != "42501" || message.contains("in schema information_schema");
        if actual.code() == "0A000" && expected.code() != "0A000" && is_refused {
            let words = step.sql.split(' ').take(2).collect::<Vec<_>>().join(" ");
            *tally.refused.entry(format!("{words}: {message}")).or_default() += 1;
            return None;
        }
        // Foreign keys are followed without asking the rights of the other table's owner.
        if expected.code() == "42501" && expected.error().is_some_and(|error| error.inside.is_of_foreign_key()) {
            return None;
        }
        if let Some(wrong) = differ(&expected, &actual)
            && !both_refused(&step.sql, &expected, &actual)
            && !is_unfilled(&step.sql, &expected, &actual)
        {
            let is_other = is_taken_away(&step.sql, &actual) || is_no_superuser(history, &actual);
            if is_other || is_forgotten(&step.sql, &expected, &actual) {
                // The session is another one from here on.
                return None;
            }
            return Some(wrong);
        }
        is_failed = in_block && expected.status == Some('E');
        if in_block && step.sql.contains(" RENAME VALUE ") && expected.error().is_none() {
            // What shows the label has its old name until COMMIT (COMPATIBILITY.md).
            return None;
        }
    }
    if is_failed {
        pair.must("ROLLBACK TO before");
    }
    let probe = case.probe.as_ref()?;
    pair.must("RESET SESSION AUTHORIZATION");
    history.push("-- what is there then".to_owned());
    let [expected, actual] = pair.step(&Step::plain(probe.clone()));
    apart(&expected, &actual)
}

/// The rows that only one of two long answers has.
fn apart(expected: &Reply, actual: &Reply) -> Option<String> {
    if expected == actual {
        return None;
    }
    let only = |one: &Reply, other: &Reply| {
        let rows = one.events.iter().filter(|event| !other.events.contains(event));
        rows.map(|event| format!("    {event}")).collect::<Vec<_>>().join("\n")
    };
    Some(format!("  PostgreSQL:\n{}\n  under test:\n{}", only(expected, actual), only(actual, expected)))
}

/// What depends on what is dropped is listed in the order in which PostgreSQL finds it, and told column by column; which rights
/// keep a role from being dropped is compared, in a fixed order.
fn in_order(fields: &mut Fields) {
    let Some(detail) = &mut fields.detail else { return };
    // Which of several rows is met first depends on their order in the table.
    if fields.code == "23503" {
        fields.detail = None;
        return;
    }
    if fields.code == "2BP01" && !fields.message.starts_with("role ") {
        fields.detail = None;
        return;
    }
    let mut lines: Vec<_> = detail.lines().collect();
    lines.sort_unstable();
    *detail = lines.join("\n");
}

/// RESET comes back to the role of the start only if the session may still become it: PostgreSQL 15 does not ask.
fn is_taken_away(sql: &str, actual: &Reply) -> bool {
    let resets =
        ["RESET", "SET role TO DEFAULT", "DISCARD", "SET SESSION AUTHORIZATION"].iter().any(|word| sql.contains(word));
    resets && actual.error().is_some_and(|error| error.message.starts_with("permission denied to set role"))
}

/// Who logged in as a superuser and is none any more becomes nobody else: PostgreSQL 15 goes by what the role was at the login.
fn is_no_superuser(history: &[String], actual: &Reply) -> bool {
    let refused =
        actual.error().is_some_and(|error| error.message.starts_with("permission denied to set session authorization"));
    refused && history.iter().any(|sql| sql.starts_with("ALTER ROLE") && sql.ends_with("NOSUPERUSER"))
}

/// PostgreSQL 15 does not ask about what a query is over of which its planner has made one row, since nobody reads the query's
/// aggregates.
fn is_forgotten(sql: &str, expected: &Reply, actual: &Reply) -> bool {
    let is_refused = actual.error().is_some_and(|error| error.message.starts_with("permission denied for "));
    is_refused && expected.error().is_none() && sql.starts_with("WITH w AS (SELECT count(")
}

/// PostgreSQL begins to run the query before it makes the relation: a materialized view that is not filled is told of first.
fn is_unfilled(sql: &str, expected: &Reply, actual: &Reply) -> bool {
    let creates = sql.starts_with("CREATE") || sql.starts_with("SELECT");
    creates
        && expected.error().is_some_and(|error| error.message.ends_with("has not been populated"))
        && actual.error().is_some_and(|error| error.message.starts_with("permission denied to create \"pg_catalog."))
}

/// Both refuse the statement for relations that it reads or writes, each for another one: which of them comes first depends on what
/// PostgreSQL's planner has made of subqueries and views. A prepared statement is refused for a schema if PostgreSQL had reasons of
/// its own to look its names up again.
fn both_refused(sql: &str, expected: &Reply, actual: &Reply) -> bool {
    let refused_for = |reply: &Reply| {
        let error = reply.error().filter(|error| error.code == "42501")?;
        let what = error.message.strip_prefix("permission denied for ")?;
        let (kind, name) = what.rsplit_once(' ')?;
        let is_relation = ["table", "view", "materialized view"].contains(&kind);
        (is_relation || kind == "schema" && sql.starts_with("EXECUTE")).then(|| name.to_owned())
    };
    // Which row of a join is changed first is each server's own.
    let of_a_row = |reply: &Reply| {
        let error = reply.error().filter(|error| error.code.starts_with("23"))?;
        Some(format!("{} {}", error.code, error.message))
    };
    // So is which row that others refer to is found first, and by it which table and key are named.
    let refers = |reply: &Reply| {
        let error = reply.error().filter(|error| error.code == "23503")?;
        Some(error.message.split_once(" violates foreign key ")?.0.to_owned())
    };
    let joins = sql.starts_with("MERGE") || sql.contains(" FROM ") || sql.contains(" USING ");
    let agree = |told: &dyn Fn(&Reply) -> Option<String>| told(expected).is_some() && told(expected) == told(actual);
    match (refused_for(expected), refused_for(actual)) {
        (Some(first), Some(second)) => first != second && expected.status == actual.status,
        _ => joins && agree(&of_a_row) || agree(&refers),
    }
}

fn differ(expected: &Reply, actual: &Reply) -> Option<String> {
    (expected != actual).then(|| format!("  PostgreSQL:\n{expected}\n  under test:\n{actual}"))
}

/// Rows in a fixed order; no rows before an error, no plans, and no types where `information_schema` has domains.
fn comparable(mut reply: Reply, step: &Step) -> Reply {
    reply.drop_columns_of_errors();
    reply.sort_rows();
    // The order of a table's rows is each server's own.
    let is_copied = |event: &Event| matches!(event, Event::Copied(_));
    reply.events.chunk_by_mut(|a, b| is_copied(a) && is_copied(b)).for_each(|lines| {
        lines.sort_by_key(|line| match line {
            Event::Copied(line) => line.clone(),
            _ => String::new(),
        });
    });
    // Settings that changed are told of at another moment.
    reply.events.sort_by_key(|event| match event {
        Event::Setting(name, _) => name.clone(),
        _ => String::new(),
    });
    if reply.error().is_some() {
        // PostgreSQL sends rows as they come, Nyala when there are many.
        // What a statement is like is told of before or after its refusal; the server that waits for rows has told so.
        let said_before = |event: &Event| {
            matches!(event, Event::Columns(_) | Event::Row(_) | Event::Parameters(_) | Event::NoData | Event::CopyIn)
        };
        reply.events.retain(|event| !said_before(event));
    }
    // How many numbers a statement that failed has taken from a sequence is free.
    if step.sql.starts_with("SELECT last_value, is_called") || step.sql.starts_with("EXPLAIN") {
        reply.events.retain(|event| !matches!(event, Event::Row(_)));
    }
    for event in &mut reply.events {
        if let Event::Notice(fields) | Event::Error(fields) = event {
            in_order(fields);
            // The number of a temporary schema is the session's.
            if let Some((before, after)) = fields.message.split_once("pg_temp_") {
                fields.message = format!("{before}pg_temp_N{}", after.trim_start_matches(|c: char| c.is_ascii_digit()));
            }
        }
        if let Event::Columns(columns) = event
            && !step.typed
        {
            for column in columns {
                *column = Column { name: column.name.clone(), type_oid: 0, modifier: -1 };
            }
        }
    }
    reply
}
