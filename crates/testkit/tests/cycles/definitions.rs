//! Clients that define: tables of their own from birth to end, and indexes, columns and views of tables that others write.

use testkit::{Connection, Event, Random, Reply};

use super::ask::{Said, ask, must};
use super::clients::Client;

/// A life of a table. Each step is one transaction.
const STEPS: [&str; 17] = [
    "CREATE TABLE w# (a int PRIMARY KEY, b text DEFAULT 'none', s serial, CHECK (a > 0))",
    "INSERT INTO w# SELECT i, 'row ' || i FROM generate_series(1, 200) AS g (i)",
    "CREATE INDEX w#_b ON w# (b)",
    "ALTER TABLE w# ADD COLUMN c int NOT NULL DEFAULT 7",
    "CREATE INDEX CONCURRENTLY w#_c ON w# (c, a)",
    "BEGIN; CREATE TABLE v# (x int REFERENCES w#); INSERT INTO v# SELECT a FROM w#; ALTER TABLE w# ADD COLUMN d int; COMMIT",
    "CREATE VIEW o# AS SELECT a, b, c FROM w# WHERE a < 100",
    "UPDATE w# SET d = a * 2, b = 'new ' || a WHERE a % 3 = 0",
    "ALTER TABLE w# RENAME COLUMN c TO e",
    "BEGIN; DROP VIEW o#; DROP TABLE v#; DELETE FROM w#; ROLLBACK",
    "DROP VIEW o#",
    "ALTER TABLE w# ALTER COLUMN e TYPE bigint USING e + 1",
    "DROP TABLE v#",
    "ALTER TABLE w# DROP COLUMN d, ADD COLUMN f text DEFAULT 'f'",
    "TRUNCATE w# RESTART IDENTITY",
    "ALTER TABLE w# RENAME TO r#",
    "DROP TABLE r#",
];

/// Tables that are kept as they are, over many crashes.
const KEPT: usize = 4;

/// One client that walks through the steps with one table after the other.
pub struct Steps {
    me: u64,
    number: u64,
    /// Steps that the table at hand has behind it.
    done: usize,
    /// What [`describe`] says after so many steps.
    known: Vec<String>,
    /// Tables left behind, and after how many steps.
    kept: Vec<(String, usize)>,
}

impl Steps {
    pub fn new(me: u64) -> Steps {
        Steps { me, number: 0, done: 0, known: Vec::new(), kept: Vec::new() }
    }

    fn suffix(&self) -> String {
        format!("{}z{}z", self.me, self.number)
    }
}

impl Client for Steps {
    fn name(&self) -> &'static str {
        "definitions"
    }

    fn setup(&self) -> Vec<String> {
        Vec::new()
    }

    /// What each step leaves is asked of a server that nobody kills.
    fn learn(&mut self, connection: &mut Connection) {
        let suffix = self.suffix();
        self.known.push(describe(connection, &suffix));
        for step in STEPS {
            must(connection, &step.replace('#', &suffix));
            self.known.push(describe(connection, &suffix));
        }
        assert_eq!(self.known.first(), self.known.last(), "something is left of a table");
        self.number += 1;
    }

    fn run(&mut self, mut connection: Connection, mut random: Random) -> u64 {
        let mut done = 0;
        loop {
            let suffix = self.suffix();
            for step in STEPS {
                match ask(&mut connection, &step.replace('#', &suffix)) {
                    Said::Lost => return done,
                    // A statement that builds an index beside writers cannot be repeated as it is.
                    Said::Refused => panic!("{step} is refused, although nobody else knows the table"),
                    Said::Done(_) => done += 1,
                }
                self.done += 1;
                if self.kept.len() < KEPT && random.below(40) == 0 {
                    break;
                }
            }
            if self.done < STEPS.len() {
                self.kept.push((suffix, self.done));
            }
            (self.number, self.done) = (self.number + 1, 0);
        }
    }

    fn check(&mut self, connection: &mut Connection) {
        for (suffix, done) in &self.kept {
            let found = describe(connection, suffix);
            assert_eq!(found, self.known[*done], "a table left after step {}", STEPS[*done - 1]);
        }
        let (suffix, done) = (self.suffix(), self.done);
        let found = describe(connection, &suffix);
        let fits = found == self.known[done] || self.known.get(done + 1) == Some(&found);
        let next = STEPS.get(done).unwrap_or(&"nothing");
        assert!(
            fits,
            "before or after {next}:\n{found}\nexpected\n{}\nor\n{}",
            self.known[done],
            self.known.get(done + 1).map_or("", String::as_str)
        );
        remove(connection, &suffix);
        (self.number, self.done) = (self.number + 1, 0);
    }

    fn tidy(&mut self, connection: &mut Connection) {
        if self.kept.len() == KEPT {
            let (suffix, _) = self.kept.remove(0);
            remove(connection, &suffix);
        }
    }
}

fn remove(connection: &mut Connection, suffix: &str) {
    must(
        connection,
        &format!("DROP TABLE IF EXISTS v{suffix}, r{suffix} CASCADE; DROP TABLE IF EXISTS w{suffix} CASCADE"),
    );
}

/// Everything that can be seen of the relations with this suffix: columns, constraints, indexes that are valid, views, rows.
fn describe(connection: &mut Connection, suffix: &str) -> String {
    let like = format!("LIKE '_{suffix}%'");
    let mut questions = vec![
        format!(
            "SELECT table_name, column_name, ordinal_position, column_default, is_nullable, data_type \
             FROM information_schema.columns WHERE table_name {like}"
        ),
        format!(
            "SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE conname {like}"
        ),
        format!(
            "SELECT indexdef FROM pg_indexes JOIN pg_index ON indexrelid = indexname::regclass WHERE indisvalid AND indexname {like}"
        ),
        format!("SELECT viewname, definition FROM pg_views WHERE viewname {like}"),
        format!("SELECT relname, relkind FROM pg_class WHERE relkind IN ('r', 'S', 'v') AND relname {like}"),
    ];
    let tables =
        must(connection, &format!("SELECT relname FROM pg_class WHERE relkind IN ('r', 'v') AND relname {like}"));
    questions.extend(
        tables
            .rows()
            .flatten()
            .flatten()
            .map(|name| format!("SELECT '{name}', count(*), sum(hashtext(x::text)::bigint) FROM {name} AS x")),
    );
    let mut lines: Vec<String> = Vec::new();
    for question in questions {
        let mut reply = must(connection, &question);
        reply.sort_rows();
        lines.extend(reply.rows().map(|row| format!("{row:?}").replace(suffix, "#")));
    }
    lines.sort();
    lines.join("\n")
}

/// Something of a table that others write: its name, whether it is there, how it comes, how it goes.
struct Thing {
    there: &'static str,
    come: &'static str,
    go: &'static str,
}

const INDEX: &str =
    "SELECT count(*) FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid WHERE indisvalid AND relname = ";

const THINGS: [Thing; 6] = [
    Thing {
        there: "'beside_journal'",
        come: "CREATE INDEX beside_journal ON journal (amount, id)",
        go: "DROP INDEX beside_journal",
    },
    Thing {
        there: "'beside_moving'",
        come: "CREATE INDEX CONCURRENTLY beside_moving ON moving (n, g)",
        go: "DROP INDEX beside_moving",
    },
    Thing {
        there: "'beside_singles'",
        come: "CREATE UNIQUE INDEX CONCURRENTLY beside_singles ON singles (v, id)",
        go: "DROP INDEX CONCURRENTLY beside_singles",
    },
    Thing {
        there: "'beside_accounts'",
        come: "CREATE INDEX CONCURRENTLY beside_accounts ON accounts (balance)",
        go: "DROP INDEX beside_accounts",
    },
    Thing {
        there: "SELECT count(*) FROM information_schema.columns WHERE table_name = 'singles' AND column_name = 'extra'",
        come: "ALTER TABLE singles ADD COLUMN extra int NOT NULL DEFAULT 5",
        go: "ALTER TABLE singles DROP COLUMN extra",
    },
    Thing {
        there: "SELECT count(*) FROM pg_views WHERE viewname = 'beside_view'",
        come: "CREATE VIEW beside_view AS SELECT j.id, a.balance FROM journal AS j JOIN accounts AS a ON a.id = j.source",
        go: "DROP VIEW beside_view",
    },
];

impl Thing {
    fn is_there(&self, connection: &mut Connection) -> bool {
        let question =
            if self.there.starts_with('\'') { format!("{INDEX}{}", self.there) } else { self.there.to_owned() };
        must(connection, &question).value() == Some("1")
    }
}

/// The client that lets such things come and go.
#[derive(Default)]
pub struct Beside {
    there: [bool; THINGS.len()],
    under_way: Option<usize>,
}

impl Client for Beside {
    fn name(&self) -> &'static str {
        "definitions beside writers"
    }

    fn setup(&self) -> Vec<String> {
        Vec::new()
    }

    fn run(&mut self, mut connection: Connection, mut random: Random) -> u64 {
        if let Said::Lost = ask(&mut connection, "SET lock_timeout = 200") {
            return 0;
        }
        let mut done = 0;
        loop {
            let number = random.below(THINGS.len() as u64) as usize;
            let thing = &THINGS[number];
            self.under_way = Some(number);
            let (there, sql) = if self.there[number] { (false, thing.go) } else { (true, thing.come) };
            match ask(&mut connection, sql) {
                Said::Lost => return done,
                Said::Refused => {
                    // What came half way is removed.
                    if sql.contains("CONCURRENTLY") && there {
                        let Some(reply) = half(&mut connection, thing) else { return done };
                        assert!(reply.error().is_none() || reply.code() == "55P03", "{reply}");
                    } else if sql.contains("CONCURRENTLY") {
                        // Half gone: it is not valid any more, and may be told to go again.
                        let Some(_) = half(&mut connection, thing) else { return done };
                        match ask(&mut connection, &format!("{INDEX}{}", thing.there)) {
                            Said::Done(reply) => self.there[number] = reply.value() == Some("1"),
                            _ => return done,
                        }
                    }
                }
                Said::Done(_) => (self.there[number], done) = (there, done + 1),
            }
            self.under_way = None;
        }
    }

    fn check(&mut self, connection: &mut Connection) {
        let under_way = self.under_way.take();
        for (number, thing) in THINGS.iter().enumerate() {
            let there = thing.is_there(connection);
            let fits = there == self.there[number] || under_way == Some(number);
            assert!(fits, "{}: acknowledged {}, found {there}", thing.come, self.there[number]);
            self.there[number] = there;
            if !there && thing.there.starts_with('\'') {
                // An index that was being built is there, and not valid.
                must(connection, &format!("DROP INDEX IF EXISTS {}", thing.there.trim_matches('\'')));
            }
        }
        if self.there[4] {
            let other = must(connection, "SELECT * FROM singles WHERE extra <> 5");
            assert_eq!(other.rows().count(), 0, "{other}");
        }
        if self.there[5] {
            must(connection, "SELECT count(*) FROM beside_view");
        }
    }
}

/// Removes an index that is not valid; `None` if the connection is lost.
fn half(connection: &mut Connection, thing: &Thing) -> Option<Reply> {
    let name = thing.there.trim_matches('\'');
    for _ in 0..50 {
        let reply = connection.query(&format!("DROP INDEX IF EXISTS {name}"));
        assert!(!reply.events.contains(&Event::NoAnswer), "no answer to DROP INDEX {name}");
        reply.status?;
        if reply.error().is_none() {
            return Some(reply);
        }
    }
    panic!("an index cannot be dropped: {name}")
}
