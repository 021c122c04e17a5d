//! SQL that is nearly right against a living server: the statements of `tests/slt`, changed at random; calls of all functions
//! with values at the ends of their types; random queries.
//!
//! Any answer is fine but an internal error (XX000), a lost connection, silence, or a panic in the server's log. The seed is
//! printed, `NYALA_SEED=n` repeats a run; `NYALA_FUZZ_SECONDS` says how long it runs.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::time::{Duration, Instant};

use testkit::{Connection, Event, Nyala, Random, Reply, Target, joins, query};

use robust_fuzz::calls::Calls;

mod robust_fuzz {
    pub mod calls;
}

/// Without `NYALA_FUZZ_SECONDS`.
const SECONDS: u64 = 5;
/// What PostgreSQL answers with XX000, too: how the messages begin.
const INTERNAL_TO_POSTGRESQL: [&str; 1] = ["unrecognized object type abbreviation"];
/// After so many statements the server starts anew, empty.
const ROUND: usize = 3000;

/// Statements that are told when the server is silent.
const RECENT: usize = 6;

/// Different failures that are shown.
const SHOWN: usize = 20;

/// Statements with these words would lock the test out.
const FORBIDDEN: [&str; 5] = ["password", "login", "role", "database", "pg_terminate_backend"];

/// What literals and other tokens are replaced by.
const STRANGE: [&str; 46] = [
    "0",
    "-1",
    "2147483647",
    "-2147483648",
    "9223372036854775807",
    "-9223372036854775808",
    "1e308",
    "1e400",
    "0.1",
    "'NaN'::numeric",
    "'Infinity'::float8",
    "NULL",
    "''",
    "'\u{1F600}'",
    "'\\'",
    "E'\\\\x'",
    "'a''b'",
    "$1",
    "$0",
    "$99999",
    "'2024-02-30'",
    "'infinity'::timestamp",
    "'1 year -1 day'::interval",
    "'{}'",
    "'{1,{2}}'",
    "'[]'::jsonb",
    "'{\"a\":1}'",
    "ARRAY[]::int[]",
    "ROW()",
    "(SELECT 1)",
    "(SELECT 1 WHERE false)",
    "*",
    "DISTINCT",
    "NOT",
    "ALL",
    "ANY",
    "::text",
    "::int",
    "OVER ()",
    "FOR UPDATE",
    "LIMIT 0",
    "OFFSET -1",
    "generate_series(1, 3)",
    "count(*)",
    "DEFAULT",
    "ORDER BY 1",
];

#[test]
fn mutated_statements_are_answered() {
    if Target::is_postgres() {
        println!("not run: there is no server to fuzz");
        return;
    }
    let seed = Random::seed();
    let seconds = std::env::var("NYALA_FUZZ_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(SECONDS);
    println!("NYALA_SEED={seed}, {seconds} s");
    let statements = statements();
    assert!(statements.len() > 500, "only {} statements", statements.len());
    let mut random = Random::new(seed);
    let (mut failures, mut count, mut fine) = (BTreeMap::new(), 0, 0);
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(seconds) {
        let mut fuzzed = Fuzzed::start();
        // Something to speak of.
        for sql in statements.iter().filter(|sql| sql.starts_with("CREATE") || sql.starts_with("INSERT")) {
            fuzzed.connection.query(sql);
        }
        let mut panics = 0;
        let calls = fuzzed.prepare(&mut random);
        for _ in 0..ROUND {
            let sql = match random.below(8) {
                0..4 => mutate(&statements, &mut random),
                4..7 => calls.statement(&mut random),
                _ => mutate(&[query::query(&mut random), joins::query(&mut random)], &mut random),
            };
            count += 1;
            match fuzzed.check(&sql, &mut random) {
                Ok(reply) => fine += usize::from(reply.error().is_none()),
                // One complaint per place is enough.
                Err(_) if fuzzed.panics() > panics => {
                    panics = fuzzed.panics();
                    let complaint = fuzzed.last_panic();
                    if let Entry::Vacant(unseen) = failures.entry(complaint) {
                        println!("{}\n    {sql}", unseen.key());
                        unseen.insert(sql);
                    }
                }
                Err(complaint) if failures.contains_key(&complaint) => {}
                Err(complaint) => {
                    println!("{complaint}\n    {sql}");
                    _ = failures.entry(complaint).or_insert(sql);
                }
            }
            if begun.elapsed() >= Duration::from_secs(seconds) || fuzzed.server.is_gone() {
                break;
            }
        }
        fuzzed.end(&mut failures);
    }
    println!("{count} statements, {fine} without an error");
    let shown: Vec<String> = failures.iter().take(SHOWN).map(|(what, sql)| format!("{what}\n    {sql}")).collect();
    assert!(failures.is_empty(), "NYALA_SEED={seed}: {} failures:\n{}", failures.len(), shown.join("\n"));
}

/// A server under fire.
struct Fuzzed {
    server: Nyala,
    connection: Connection,
    /// The last statements, the newest at the end: what is wrong with one may come from those before.
    recent: VecDeque<String>,
    _directory: tempfile::TempDir,
}

impl Fuzzed {
    fn start() -> Fuzzed {
        let directory = tempfile::Builder::new().prefix("nyala-").tempdir().expect("a directory for the server");
        let limits = ["--memory-limit", "512MB", "--cores", "1"];
        // The settings that RESET ALL, DISCARD ALL and a rollback lead back to.
        let flags = [&limits[..], &["--set", "statement_timeout=2000", "--set", "lock_timeout=1000"]].concat();
        let server = Nyala::start_with(&directory.path().join("data"), Nyala::free_port(), &flags);
        let connection = server.connect();
        Fuzzed { server, connection, recent: VecDeque::new(), _directory: directory }
    }

    /// Makes the tables of the queries and calls.
    fn prepare(&mut self, random: &mut Random) -> Calls {
        self.connection.query("ROLLBACK");
        robust_fuzz::calls::clear(&mut self.connection, &["r", "s", "t"]);
        for sql in query::tables(random).into_iter().chain(joins::tables(random)) {
            self.connection.query(&sql);
        }
        Calls::prepare(&mut self.connection)
    }

    /// Sends a statement by either protocol; a complaint if the answer is none.
    fn check(&mut self, sql: &str, random: &mut Random) -> Result<Reply, String> {
        let parameters = [Some("1"), None, Some("x"), Some("2024-01-01"), Some("{1,2}"), Some("")];
        let way = random.below(5);
        self.recent.push_back(format!("way {way}: {sql}"));
        if self.recent.len() > RECENT {
            self.recent.pop_front();
        }
        let reply = match way {
            // The Sync behind a COPY FROM STDIN is swallowed by it, as the protocol has it.
            0 | 1 if !sql.to_lowercase().contains("stdin") => {
                let count = sql.matches('$').count().min(3);
                let first = random.below(4) as usize;
                let parameters = &parameters[first..first + count];
                if way == 0 {
                    self.connection.extended(sql, parameters)
                } else {
                    self.connection.binary(sql, parameters)
                }
            }
            2 => {
                let copied = ["1\tx\n", "\\N\n", "1,2,3\n", "\\.\n", ""][random.below(5) as usize];
                self.connection.copy(sql, copied)
            }
            _ => self.connection.query(sql),
        };
        if reply.events.iter().any(|event| matches!(event, Event::NoAnswer)) {
            println!("no answer after {:#?}", self.recent);
            self.connection = self.server.connect();
            return Err("no answer".to_owned());
        }
        if reply.status == Some('E') && random.below(2) == 0 {
            self.connection.query("ROLLBACK");
        }
        if random.below(50) == 0 {
            self.connection.query("ROLLBACK; RESET ALL");
        }
        let is_known = |message: &str| INTERNAL_TO_POSTGRESQL.iter().any(|begun| message.starts_with(begun));
        if let Some(error) = reply.error().filter(|error| error.code == "XX000" && !is_known(&error.message)) {
            return Err(format!("XX000 {}", error.message));
        }
        if reply.status.is_none() {
            println!("the connection is lost after {:#?}", self.recent);
            self.connection = self.server.connect();
            return Err(format!("the connection is lost: {reply}"));
        }
        Ok(reply)
    }

    /// How many panics the server's log tells of.
    fn panics(&self) -> usize {
        self.server.stderr().lines().filter(|line| is_panic(line)).count()
    }

    /// Where the last one was.
    fn last_panic(&self) -> String {
        panic_of(self.server.stderr().lines().rfind(|line| is_panic(line)).unwrap_or_default())
    }

    /// Stops the server; panics in its log are failures.
    fn end(self, failures: &mut BTreeMap<String, String>) {
        let log = self.server.stderr();
        for line in log.lines().filter(|line| is_panic(line)) {
            failures.entry(panic_of(line)).or_default();
        }
        if self.server.is_gone() {
            failures.entry(format!("the server is gone: {}", log.lines().last().unwrap_or(""))).or_default();
        }
    }
}

fn is_panic(line: &str) -> bool {
    line.contains("panic") || line.contains("overflowed its stack")
}

/// A line of the log without the time.
fn panic_of(line: &str) -> String {
    format!("panic{}", line.split("panic").last().unwrap_or(line))
}

/// All statements of the scripts.
fn statements() -> Vec<String> {
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/slt");
    let mut paths: Vec<_> =
        std::fs::read_dir(scripts).expect("the scripts are there").flatten().map(|e| e.path()).collect();
    paths.sort();
    let mut statements = Vec::new();
    for path in paths.iter().filter(|path| path.extension().is_some_and(|e| e == "slt")) {
        let text = std::fs::read_to_string(path).expect("scripts are text");
        for record in text.split("\n\n") {
            let lines = record.lines().skip_while(|line| line.starts_with('#'));
            // The header, and what follows the statement in records with data.
            let body: Vec<&str> = lines.skip(1).take_while(|line| *line != "----").collect();
            statements.extend(body.join("\n").split(";\n").map(|sql| sql.trim().trim_end_matches(';').to_owned()));
        }
    }
    statements.retain(|sql| sql.len() > 3);
    statements
}

/// A statement changed a little, or a cross of two.
fn mutate(statements: &[String], random: &mut Random) -> String {
    loop {
        let mut pick = |limit: usize| random.below(limit.max(1) as u64) as usize;
        let mut tokens = tokens(&statements[pick(statements.len())]);
        for _ in 0..pick(4) {
            let other = self::tokens(&statements[pick(statements.len())]);
            change(&mut tokens, &other, &mut pick);
        }
        let sql = tokens.concat();
        let lower = sql.to_lowercase();
        if !FORBIDDEN.iter().any(|word| lower.contains(word)) && !sql.contains('\0') {
            return sql;
        }
    }
}

fn change(tokens: &mut Vec<String>, other: &[String], pick: &mut impl FnMut(usize) -> usize) {
    let (at, from) = (pick(tokens.len()), pick(other.len()));
    if tokens.is_empty() || other.is_empty() {
        tokens.extend_from_slice(other);
        return;
    }
    match pick(9) {
        0 => _ = tokens.remove(at),
        1 => tokens.insert(at, tokens[at].clone()),
        2 => {
            let second = pick(tokens.len());
            tokens.swap(at, second);
        }
        3 => tokens[at] = format!(" {} ", STRANGE[pick(STRANGE.len())]),
        4 => tokens.insert(at, format!(" {} ", STRANGE[pick(STRANGE.len())])),
        5 => tokens[at] = other[from].clone(),
        6 => {
            let until = (from + 1 + pick(6)).min(other.len());
            tokens.splice(at..at, other[from..until].iter().cloned());
        }
        7 => {
            tokens.truncate(at);
            tokens.extend_from_slice(&other[from..]);
        }
        _ => {
            let mut text: Vec<char> = tokens[at].chars().collect();
            let place = pick(text.len());
            text[place] = ['\'', '"', '(', ')', '9', '\u{e9}', '$', ';', '-', '\u{1}'][pick(10)];
            tokens[at] = text.into_iter().collect();
        }
    }
}

/// Words, quoted texts, single signs and the space between.
fn tokens(sql: &str) -> Vec<String> {
    let mut tokens: Vec<String> = Vec::new();
    let mut quoted = None;
    let kind = |c: char| {
        if c.is_alphanumeric() || c == '_' {
            1
        } else if c.is_whitespace() {
            2
        } else {
            3
        }
    };
    for c in sql.chars() {
        let continues = tokens.last().and_then(|token| token.chars().last());
        let joins = quoted.is_some() || continues.is_some_and(|last| kind(last) == kind(c) && kind(c) != 3);
        match tokens.last_mut() {
            Some(token) if joins => token.push(c),
            _ => tokens.push(c.to_string()),
        }
        match quoted {
            Some(quote) if quote == c => quoted = None,
            None if c == '\'' || c == '"' => quoted = Some(c),
            _ => {}
        }
    }
    tokens
}
