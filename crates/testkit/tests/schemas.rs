//! Random definitions that refer to each other, and statements that rename, move, alter and drop them: PostgreSQL and the server under test must agree on
//! each answer, on the catalogs after it, and on a row for each table; dumps, restored dumps and restarts must change nothing.
//!
//! The seed is printed; `NYALA_SEED=n` repeats a run, `NYALA_ROUNDS=n` makes it n times as long, `NYALA_SHOWN=n` prints n differences,
//! `NYALA_TRACE=1` each statement before it is sent.

use std::collections::BTreeMap;
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Duration;

use testkit::schemas::{self, Schema};
use testkit::{Connection, Event, Fields, Nyala, Oracle, Random, Reply, Target};

/// Lanes, of the seed and of those that follow it, each with a server of its own.
const LANES: u64 = 2;

/// Databases of a lane, and steps in each.
const WORLDS: u64 = 5;
const STEPS: u64 = 200;

/// More than that says nothing new.
const SHOWN: usize = 12;

/// Differences after which a run ends.
const ENOUGH: usize = 40;

/// The server under test.
struct Subject {
    /// Nothing if PostgreSQL is compared with itself.
    server: Option<(Nyala, tempfile::TempDir)>,
    databases: u64,
}

impl Subject {
    fn start() -> Subject {
        let server = (!Target::is_postgres()).then(|| {
            let directory = tempfile::tempdir().expect("a directory for the server");
            (Nyala::start(&directory.path().join("data"), Nyala::free_port()), directory)
        });
        Subject { server, databases: 0 }
    }

    /// A new database.
    fn database(&mut self) -> String {
        let Some((server, _)) = &self.server else { return Oracle::shared().fresh_database() };
        self.databases += 1;
        let name = format!("world_{}", self.databases);
        let reply = server.connect().query(&format!("CREATE DATABASE {name} TEMPLATE template0"));
        assert_eq!(reply.error(), None, "a database for the test");
        name
    }

    fn port(&self) -> u16 {
        self.server.as_ref().map_or_else(|| Oracle::shared().port(), |(server, _)| server.port())
    }

    /// Ends the server, with a warning, or without one but behind a checkpoint, and starts it again.
    fn restart(&mut self, gently: bool) {
        let Some((server, directory)) = self.server.take() else { return };
        let port = server.port();
        if gently {
            server.terminate();
        } else {
            assert_eq!(server.connect().query("CHECKPOINT").error(), None);
            server.kill();
        }
        self.server = Some((Nyala::start(&directory.path().join("data"), port), directory));
    }

    fn panics(&self) -> Vec<String> {
        let log = self.server.as_ref().map(|(server, _)| server.stderr()).unwrap_or_default();
        log.lines().filter(|line| line.contains("panicked")).map(str::to_owned).collect()
    }
}

/// The same session on both servers.
struct Pair {
    connections: [Connection; 2],
    places: [(u16, String); 2],
}

impl Pair {
    fn open(places: [(u16, String); 2]) -> Pair {
        let connections =
            places.each_ref().map(|(port, database)| Connection::open(*port, database).expect("the superuser gets in"));
        Pair { connections, places }
    }

    /// Asks both at once, one statement behind the other.
    fn ask_all(&mut self, statements: &[&str]) -> Vec<[Reply; 2]> {
        for sql in statements {
            trace(sql);
            self.connections.iter_mut().for_each(|connection| connection.send(sql));
        }
        let mut replies = Vec::new();
        for sql in statements {
            replies.push(self.connections.each_mut().map(|connection| {
                let reply = connection.receive(Duration::from_secs(60));
                reply.unwrap_or_else(|| panic!("no answer in time: {sql}"))
            }));
        }
        replies
    }

    fn ask(&mut self, sql: &str) -> [Reply; 2] {
        self.ask_all(&[sql]).remove(0)
    }
}

fn trace(sql: &str) {
    if std::env::var_os("NYALA_TRACE").is_some() {
        println!("{sql};");
    }
}

fn number_in(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|text| text.parse().expect("it is a number"))
}

/// What has been compared, and what differed.
#[derive(Default)]
struct Tally {
    steps: u64,
    fine: u64,
    /// Refusals of what is not there (COMPATIBILITY.md), by message.
    refused: BTreeMap<String, u64>,
    wrong: Vec<String>,
}

impl Tally {
    fn differs(&mut self, history: &[String], what: &str, [expected, actual]: &[Reply; 2]) {
        let history = history.join(";\n");
        self.wrong.push(format!("{history};\n{what}\n  PostgreSQL:\n{expected}\n  under test:\n{actual}"));
    }
}

#[test]
fn random_definitions_agree() {
    let seed = Random::seed();
    println!("NYALA_SEED={seed}");
    let times = number_in("NYALA_ROUNDS").unwrap_or(1);
    let lanes: Vec<Tally> = std::thread::scope(|scope| {
        let started = (0..LANES).map(|lane| scope.spawn(move || in_lane(Random::new(seed.wrapping_add(lane)), times)));
        let started: Vec<_> = started.collect();
        started.into_iter().map(|lane| lane.join().expect("a lane goes to its end")).collect()
    });
    let mut tally = Tally::default();
    for lane in lanes {
        tally.steps += lane.steps;
        tally.fine += lane.fine;
        tally.wrong.extend(lane.wrong);
        for (what, count) in lane.refused {
            *tally.refused.entry(what).or_default() += count;
        }
    }
    for (what, count) in &tally.refused {
        println!("not there: {count} x {what}");
    }
    let Tally { steps, fine, .. } = tally;
    println!("{fine} of {steps} statements succeed");
    assert!(fine * 3 >= steps, "hardly anything succeeds at all");
    let unsupported: u64 = tally.refused.values().sum();
    assert!(unsupported * 20 <= steps, "{unsupported} of {steps} statements are not supported");
    let count = tally.wrong.len();
    tally.wrong.truncate(number_in("NYALA_SHOWN").map_or(SHOWN, |n| n as usize));
    assert!(count == 0, "NYALA_SEED={seed}: {count} differ:\n{}", tally.wrong.join("\n\n"));
}

/// Some worlds, with a server of their own.
fn in_lane(mut random: Random, times: u64) -> Tally {
    let mut subject = Subject::start();
    let mut tally = Tally::default();
    while tally.steps < WORLDS * STEPS * times && tally.wrong.len() < ENOUGH {
        in_world(&mut random, &mut subject, &mut tally);
        println!("{} steps, {} differ", tally.steps, tally.wrong.len());
    }
    assert_eq!(subject.panics(), Vec::<String>::new());
    tally
}

/// One database on each server, from nothing; it ends early if they differ in what they keep.
fn in_world(random: &mut Random, subject: &mut Subject, tally: &mut Tally) {
    let places = [(Oracle::shared().port(), Oracle::shared().fresh_database()), (subject.port(), subject.database())];
    let mut pair = Pair::open(places.clone());
    let mut reader = Oracle::shared().connect(&places[0].1);
    assert_eq!(reader.query("SET search_path = ''").error(), None);
    let mut history = Vec::new();
    let mut schema = Schema::read(&mut reader);
    for step in 1..=STEPS {
        let sql = schemas::step(random, &schema);
        tally.steps += 1;
        if takes(&mut pair, &sql, &history, tally) {
            // What a session of PostgreSQL has folded in indexes over a domain stays so until it looks at their table again.
            if sql.starts_with("ALTER DOMAIN") {
                pair = Pair::open(places.clone());
            }
            history.push(sql);
            schema = Schema::read(&mut reader);
            if !agree_on(&mut pair, &schemas::questions(step), &history, tally)
                || !take_rows(random, &mut pair, &schema, &mut history, tally)
            {
                return;
            }
        }
        if step % 40 == 0 && !agree_at_rest(&mut pair, &schema, &history, tally) {
            return;
        }
        if step % (STEPS / 2) == 0 {
            drop(pair);
            subject.restart(step < STEPS);
            pair = Pair::open(places.clone());
            history.push("-- restart".to_owned());
            set_sequences(&mut pair, &mut history);
            if !agree(&mut pair, &history, tally) || !agree_at_rest(&mut pair, &schema, &history, tally) {
                return;
            }
        }
    }
    go_through_dumps(&pair, subject, &history, tally);
}

/// Whether both servers take a statement; it is undone if one does not.
fn takes(pair: &mut Pair, sql: &str, history: &[String], tally: &mut Tally) -> bool {
    let replies = pair.ask_all(&["BEGIN", sql]).remove(1);
    let [expected, actual] = &replies;
    let lacking = actual.error().filter(|error| error.code == "0A000" && expected.code() != "0A000");
    if let Some(error) = lacking {
        *tally.refused.entry(error.message.clone()).or_default() += 1;
    } else if expected.code() != "XX000" && !same(sql, expected, actual) {
        // An internal error of PostgreSQL's own says nothing: it drops a type twice where a view that reads itself is of it.
        tally.differs(history, sql, &replies);
    }
    let succeeds = replies.iter().all(|reply| reply.error().is_none());
    let end = if succeeds { "COMMIT" } else { "ROLLBACK" };
    let ends = pair.ask(end);
    if ends[0] != ends[1] {
        tally.differs(history, end, &ends);
    }
    tally.fine += u64::from(succeeds);
    succeeds
}

/// Answers whose rows may come in any order.
fn rows_only(mut reply: Reply) -> Reply {
    reply.events.retain(|event| !matches!(event, Event::Columns(_)));
    reply.sort_rows();
    reply
}

/// The rows that only one of the servers shows.
fn difference([expected, actual]: &[Reply; 2]) -> String {
    let only = |one: &Reply, other: &Reply| {
        let rows = one.events.iter().filter(|event| !other.events.contains(event));
        rows.map(|event| format!("    {event}\n")).collect::<String>()
    };
    format!("  PostgreSQL:\n{}  under test:\n{}", only(expected, actual), only(actual, expected))
}

fn agree_on(pair: &mut Pair, questions: &[(&str, &str)], history: &[String], tally: &mut Tally) -> bool {
    let replies = pair.ask_all(&questions.iter().map(|(_, sql)| *sql).collect::<Vec<_>>());
    let mut agreed = true;
    for ((about, sql), replies) in questions.iter().zip(replies) {
        let replies = replies.map(rows_only);
        if !same(sql, &replies[0], &replies[1]) {
            agreed = false;
            let history = history.join(";\n");
            tally.wrong.push(format!("{history};\n-- {about}\n{}", difference(&replies)));
        }
    }
    agreed
}

/// Whether both servers keep the same.
fn agree(pair: &mut Pair, history: &[String], tally: &mut Tally) -> bool {
    let questions = [schemas::questions(0), schemas::questions(1), schemas::questions(2)].concat();
    agree_on(pair, &questions, history, tally)
}

fn agree_at_rest(pair: &mut Pair, schema: &Schema, history: &[String], tally: &mut Tally) -> bool {
    let questions = schemas::at_rest(schema);
    agree_on(pair, &questions.iter().map(|sql| (sql.as_str(), sql.as_str())).collect::<Vec<_>>(), history, tally)
}

/// Puts a row into each table; whether the answers agree.
fn take_rows(
    random: &mut Random,
    pair: &mut Pair,
    schema: &Schema,
    history: &mut Vec<String>,
    tally: &mut Tally,
) -> bool {
    if !schema.of_kinds("S").is_empty() {
        set_sequences(pair, history);
    }
    let rows = schemas::inserts(random, schema);
    let replies = pair.ask_all(&rows.iter().map(String::as_str).collect::<Vec<_>>());
    let mut agreed = true;
    for (sql, replies) in rows.into_iter().zip(replies) {
        if !same(&sql, &replies[0], &replies[1]) {
            agreed = false;
            tally.differs(history, &sql, &replies);
        }
        if replies[0].error().is_none() {
            history.push(sql);
        }
    }
    agreed
}

/// Sets the sequences of both servers to the same values.
fn set_sequences(pair: &mut Pair, history: &mut Vec<String>) {
    let sql = schemas::sequences_at(history.len() as u64 + 40);
    pair.ask(&sql);
    history.push(sql);
}

/// Differences that COMPATIBILITY.md lists: parentheses of the pretty form; which of two unique indexes over the same columns a foreign
/// key depends on, which in PostgreSQL is the one that was built last after ALTER TYPE; whether a generated column depends on its own type.
fn is_listed(sql: &str, expected: &Reply, actual: &Reply) -> bool {
    let of_key = |reply: &Reply| {
        let detail = reply.error().filter(|error| error.code == "2BP01").and_then(|error| error.detail.as_deref());
        detail.is_some_and(|detail| detail.starts_with("constraint ") && detail.contains(" depends on index "))
    };
    if sql.contains(" DROP CONSTRAINT ") && expected.error().is_some() != actual.error().is_some() {
        return of_key(expected) || of_key(actual);
    }
    let refused =
        |reply: &Reply| reply.error().filter(|error| error.code == "2BP01").and_then(|error| error.detail.clone());
    if let (Some(expected), Some(actual)) = (refused(expected), refused(actual)) {
        let on_own_type = |(one, other): (&str, &str)| {
            let [one, other] = [one, other].map(|line| line.split_once(" depends on "));
            let (Some((what, on)), Some((same, on_other))) = (one, other) else { return false };
            let is_either = |first: &str, second: &str| first.starts_with("type ") && second.starts_with("column ");
            what == same && what.starts_with("column ") && (is_either(on, on_other) || is_either(on_other, on))
        };
        let mut lines = expected.lines().zip(actual.lines());
        return expected.lines().count() == actual.lines().count() && lines.all(|(e, a)| e == a || on_own_type((e, a)));
    }
    let shown = |reply: &Reply| {
        let rows = reply.events.iter().map(|event| event.to_string());
        let mut rows: Vec<String> = match () {
            () if sql.contains("pg_get_expr(adbin, adrelid, true)") => {
                rows.map(|row| row.replace(['(', ')'], "")).collect()
            }
            () if sql.contains("pg_depend") => rows
                .filter(|row| !(row.contains("`constraint ") && row.contains("`i ") && row.contains("`n`")))
                .filter(|row| !row.starts_with("done "))
                .collect(),
            () => return None,
        };
        rows.sort_unstable();
        Some(rows)
    };
    let (Some(expected), Some(actual)) = (shown(expected), shown(actual)) else { return false };
    let on_type = |row: &&String| row.contains("`default ") && row.contains("`type ") && row.contains("`n`");
    let without = |rows: &[String], others: &[String]| -> Vec<String> {
        rows.iter().filter(|row| others.binary_search(row).is_ok() || !on_type(row)).cloned().collect()
    };
    without(&expected, &actual) == without(&actual, &expected)
}

/// Whether two answers say the same. Of several faults of a statement either may be told; columns in the text of a key, and types in refusals of
/// values and operators, are named with or without quotes and schemas.
fn same(sql: &str, expected: &Reply, actual: &Reply) -> bool {
    // A literal of a default does not keep the type that its column had when it was set.
    if expected.error().is_some_and(|error| error.message.starts_with("default for column")) {
        return true;
    }
    // What a view computes of constants alone PostgreSQL computes without rows too, and in generation expressions before it has a collation.
    let shows_rows = sql.starts_with("SELECT *") || sql.starts_with("CREATE MATERIALIZED VIEW");
    // Which of a view's conditions is tested first is nobody's promise.
    let of_constants = |reply: &Reply| ["23514", "22P02", "23502"].contains(&reply.code());
    let has_constants = shows_rows && (of_constants(expected) || of_constants(actual)) || expected.code() == "42P22";
    if expected == actual || has_constants || is_listed(sql, expected, actual) {
        return true;
    }
    let cut =
        |reply: &Reply| reply.events.iter().filter(|event| matches!(event, Event::Row(_))).count() == schemas::ROWS_MAX;
    if cut(expected) && cut(actual) {
        return true;
    }
    // PostgreSQL does not look whether the default of a new column's domain is a key.
    if sql.starts_with("ALTER TABLE")
        && sql.contains(" ADD COLUMN ")
        && sql.contains(" REFERENCES ")
        && actual.code() == "23503"
    {
        return expected.error().is_none();
    }
    let (Some(first), Some(second)) = (expected.error(), actual.error()) else { return false };
    let has_parts = sql.contains(", ") || sql.contains("FOREIGN KEY") || sql.contains(" REFERENCES ");
    if sql.starts_with("CREATE TABLE") || sql.starts_with("ALTER TABLE") && has_parts {
        return true;
    }
    // What a row meets first is not the same.
    let of_rows = |fields: &Fields| ["23502", "23505", "23514"].contains(&fields.code.as_str());
    // PostgreSQL makes and looks up the keys of a row index by index; here all are made before one is looked up.
    if sql.starts_with("INSERT") && first.code == "23505" && second.code.starts_with("22") {
        return true;
    }
    // Of several foreign keys PostgreSQL tells of the one that was made, or made anew by ALTER TYPE, first.
    if sql.starts_with("INSERT") && first.code == "23503" && second.code == "23503" {
        return true;
    }
    if sql.starts_with("ALTER TABLE") && (of_rows(first) || of_rows(second) || first.message == second.message)
        || sql.starts_with("INSERT") && of_rows(first) && of_rows(second)
    {
        return true;
    }
    // Of several columns of a domain PostgreSQL looks first at the one that was made first, and not at that of the oldest table.
    let is_about_nulls = |fields: &Fields| fields.code == "23502" && fields.message.ends_with(" contains null values");
    if sql.starts_with("ALTER DOMAIN") && is_about_nulls(first) && is_about_nulls(second) {
        return true;
    }
    // A name that is looked for when a row comes.
    if first.code == "3F000" && second.code == "42P01" {
        return true;
    }
    let code = |code: &str| first.code == code && second.code == code;
    if code("22P02")
        || code("23514")
        || code("42883")
        || code("23505") && first.message.starts_with("could not create unique index")
    {
        return true;
    }
    let detail = |fields: &Fields| fields.detail.as_ref().map(|detail| detail.replace('"', ""));
    code("23505") && detail(first) == detail(second)
}

fn place((port, database): &(u16, String)) -> [String; 8] {
    ["-h", "127.0.0.1", "-U", "postgres", "-p", &port.to_string(), "-d", database].map(str::to_owned)
}

/// What psql complains of when it runs a script.
fn run_script(at: &(u16, String), script: &str) -> String {
    let mut psql = Command::new("psql")
        .args(["-X", "-q", "-o", "/dev/null"])
        .args(place(at))
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("psql runs");
    psql.stdin.take().expect("a pipe").write_all(script.as_bytes()).expect("psql reads");
    let output = psql.wait_with_output().expect("psql ends");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The dump without the lines that name versions, and what is complained of.
fn dump(at: &(u16, String)) -> String {
    let output = Command::new("pg_dump").args(place(at)).output().expect("pg_dump runs");
    let text = String::from_utf8_lossy(&output.stdout);
    let kept = text.lines().filter(|l| !l.starts_with("-- Dumped ") && !l.contains("restrict "));
    let dump = kept.fold(String::new(), |all, line| all + line + "\n");
    // What pg_dump tells of loops between definitions has OIDs in it.
    let complained = String::from_utf8_lossy(&output.stderr);
    complained.lines().filter(|l| !l.starts_with("pg_dump: detail")).fold(dump, |all, line| all + line + "\n")
}

/// The dumps must be the same, and so must be what is restored from them.
fn go_through_dumps(pair: &Pair, subject: &mut Subject, history: &[String], tally: &mut Tally) {
    let dumps = pair.places.each_ref().map(dump);
    let history = [history, &["-- dumped".to_owned()]].concat();
    if dumps[0] != dumps[1] {
        let only = |one: &str, other: &str| {
            let lines = one.lines().filter(|line| !other.lines().any(|l| l == *line));
            lines.map(|line| format!("    {line}\n")).collect::<String>()
        };
        let (expected, actual) = (only(&dumps[0], &dumps[1]), only(&dumps[1], &dumps[0]));
        let history = history.join(";\n");
        tally.wrong.push(format!("{history};\n  PostgreSQL:\n{expected}\n  under test:\n{actual}"));
        return;
    }
    let places = [(Oracle::shared().port(), Oracle::shared().fresh_database()), (subject.port(), subject.database())];
    let complaints = [0, 1].map(|at| run_script(&places[at], &dumps[at]));
    // Of several keys that are there twice, which one is met first depends on how they are sorted.
    let keys_apart = |text: &str| {
        let lines = text.lines().map(|line| if line.ends_with(" is duplicated.") { "DETAIL:  a key" } else { line });
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let [expected, actual] = complaints.each_ref().map(|text| keys_apart(text));
    // What a materialized view computes of constants alone: see `same`.
    let of_constants =
        |line: &&String| line.starts_with("ERROR:  value for domain ") || line.ends_with(" does not allow null values");
    if expected != actual {
        let kept = |lines: &[String]| lines.iter().filter(|line| !of_constants(line)).cloned().collect::<Vec<_>>();
        if kept(&expected) == kept(&actual) {
            return;
        }
        trace(&dumps[0]);
        let history = history.join(";\n");
        let [expected, actual] = complaints;
        tally.wrong.push(format!("{history};\n  PostgreSQL:\n{expected}\n  under test:\n{actual}"));
        return;
    }
    let mut restored = Pair::open(places.clone());
    let mut reader = Oracle::shared().connect(&places[0].1);
    assert_eq!(reader.query("SET search_path = ''").error(), None);
    let schema = Schema::read(&mut reader);
    if agree(&mut restored, &history, tally) {
        agree_at_rest(&mut restored, &schema, &history, tally);
    }
}
