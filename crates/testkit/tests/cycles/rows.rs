//! Clients that write rows, each in a way of its own.

use std::collections::{BTreeMap, BTreeSet};

use testkit::{Connection, Random};

use super::ask::{Said, ask, ask_all, is_whole, judge, must, number, numbers};
use super::clients::Client;

fn texts(statements: &[&str]) -> Vec<String> {
    statements.iter().map(|sql| (*sql).to_owned()).collect()
}

/// Single rows, one statement each, now and then deleted again.
pub struct Singles {
    me: i64,
    next: i64,
    expected: BTreeSet<i64>,
    /// Inserted or deleted just now.
    under_way: Option<i64>,
}

impl Singles {
    pub fn new(me: i64) -> Singles {
        Singles { me, next: me, expected: BTreeSet::new(), under_way: None }
    }
}

impl Client for Singles {
    fn name(&self) -> &'static str {
        "single rows"
    }

    fn setup(&self) -> Vec<String> {
        if self.me > 0 {
            return Vec::new();
        }
        texts(&[
            "CREATE TABLE singles (id bigint PRIMARY KEY, v text NOT NULL, w int)",
            "CREATE INDEX singles_v ON singles (v)",
            "CREATE INDEX singles_w ON singles (w DESC NULLS LAST, id)",
        ])
    }

    fn run(&mut self, mut connection: Connection, mut random: Random) -> u64 {
        for done in 0.. {
            let old = self.expected.iter().nth(random.below(200) as usize).copied().filter(|_| random.below(4) == 0);
            self.next += 2;
            let id = old.unwrap_or(self.next);
            self.under_way = Some(id);
            let said = match old {
                Some(id) => ask(&mut connection, &format!("DELETE FROM singles WHERE id = {id}")),
                None => ask(
                    &mut connection,
                    &format!(
                        "INSERT INTO singles (id, v, w) VALUES ({id}, 'v' || {id}, nullif({}, 0))",
                        random.below(9)
                    ),
                ),
            };
            match said {
                Said::Lost => return done,
                Said::Refused => {}
                Said::Done(_) if old.is_some() => _ = self.expected.remove(&id),
                Said::Done(_) => _ = self.expected.insert(id),
            }
            self.under_way = None;
        }
        unreachable!("the loop ends by a return")
    }

    fn check(&mut self, connection: &mut Connection) {
        let found = numbers(connection, &format!("SELECT id FROM singles WHERE id % 2 = {}", self.me));
        let found: BTreeSet<i64> = found.into_iter().collect();
        let different: Vec<_> = found.symmetric_difference(&self.expected).collect();
        assert!(
            is_whole(&found, &self.expected, self.under_way.take()),
            "single rows of client {}: {different:?}",
            self.me
        );
        let wrong = must(connection, "SELECT * FROM singles WHERE v <> 'v' || id");
        assert_eq!(wrong.rows().count(), 0, "{wrong}");
        self.expected = found;
    }

    fn tidy(&mut self, connection: &mut Connection) {
        must(connection, &format!("DELETE FROM singles WHERE id % 2 = {}", self.me));
        self.expected.clear();
    }
}

/// Numbers appended to lists that several clients share.
pub struct Lists {
    me: i64,
    next: i64,
    /// Its own, by list.
    expected: BTreeMap<i64, Vec<i64>>,
    under_way: Option<(i64, i64)>,
}

const LISTS: u64 = 5;

impl Lists {
    pub fn new(me: i64) -> Lists {
        Lists { me, next: me, expected: BTreeMap::new(), under_way: None }
    }
}

impl Client for Lists {
    fn name(&self) -> &'static str {
        "appends to lists"
    }

    fn setup(&self) -> Vec<String> {
        if self.me > 0 {
            return Vec::new();
        }
        vec![
            "CREATE TABLE lists (k bigint PRIMARY KEY, items bigint[] NOT NULL)".to_owned(),
            format!("INSERT INTO lists SELECT i, '{{}}' FROM generate_series(0, {}) AS g (i)", LISTS - 1),
        ]
    }

    fn run(&mut self, mut connection: Connection, mut random: Random) -> u64 {
        for done in 0.. {
            let list = random.below(LISTS) as i64;
            self.next += 2;
            self.under_way = Some((list, self.next));
            let sql = format!("UPDATE lists SET items = items || {}::bigint WHERE k = {list}", self.next);
            match ask(&mut connection, &sql) {
                Said::Lost => return done,
                Said::Refused => {}
                Said::Done(_) => self.expected.entry(list).or_default().push(self.next),
            }
            self.under_way = None;
        }
        unreachable!("the loop ends by a return")
    }

    fn check(&mut self, connection: &mut Connection) {
        let under_way = self.under_way.take();
        for list in 0..LISTS as i64 {
            let sql = format!(
                "SELECT i FROM lists, unnest(items) WITH ORDINALITY AS u (i, n) WHERE k = {list} AND i % 2 = {} ORDER BY n",
                self.me
            );
            let found = numbers(connection, &sql);
            let expected = self.expected.entry(list).or_default();
            if let Some((_, number)) = under_way.filter(|(at, _)| *at == list)
                && found.last() == Some(&number)
            {
                expected.push(number);
            }
            assert_eq!(&found, expected, "list {list}, client {}: {under_way:?} was under way", self.me);
        }
    }

    fn tidy(&mut self, connection: &mut Connection) {
        must(connection, "UPDATE lists SET items = '{}'");
        self.expected.clear();
    }
}

/// Rows whose index keys change, that go and come again; each client has its own rows.
pub struct Moving {
    me: i64,
    /// `g, h, n` by row; a row that is not there has no entry.
    expected: BTreeMap<i64, String>,
    under_way: Option<BTreeMap<i64, String>>,
    writes: i64,
}

const ROWS: i64 = 40;

impl Moving {
    pub fn new(me: i64) -> Moving {
        Moving { me, expected: BTreeMap::new(), under_way: None, writes: me }
    }

    /// A change of one row, in SQL and in the model.
    fn change(&mut self, random: &mut Random, rows: &mut BTreeMap<i64, String>) -> String {
        let id = 2 * random.below(ROWS as u64) as i64 + self.me;
        self.writes += 2;
        let (g, n) = (random.below(10), self.writes);
        let h = if random.below(5) == 0 { None } else { Some(format!("h{n}")) };
        let shown = h.as_ref().map_or("NULL".to_owned(), |h| format!("'{h}'"));
        if rows.contains_key(&id) && random.below(5) == 0 {
            rows.remove(&id);
            return format!("DELETE FROM moving WHERE id = {id}");
        }
        let sql = match rows.contains_key(&id) {
            true => format!("UPDATE moving SET g = {g}, h = {shown}, n = {n} WHERE id = {id}"),
            false => format!("INSERT INTO moving VALUES ({id}, {g}, {shown}, {n})"),
        };
        rows.insert(id, format!("{g} {} {n}", h.as_deref().unwrap_or("-")));
        sql
    }
}

impl Client for Moving {
    fn name(&self) -> &'static str {
        "changes of keys"
    }

    fn setup(&self) -> Vec<String> {
        if self.me > 0 {
            return Vec::new();
        }
        texts(&[
            "CREATE TABLE moving (id bigint PRIMARY KEY, g int NOT NULL, h text UNIQUE, n bigint NOT NULL)",
            "CREATE INDEX moving_g ON moving (g, n)",
            "CREATE INDEX moving_part ON moving (n) WHERE g < 5",
            "CREATE INDEX moving_sum ON moving ((g + n))",
        ])
    }

    fn run(&mut self, mut connection: Connection, mut random: Random) -> u64 {
        for done in 0.. {
            let mut rows = self.expected.clone();
            let mut statements = vec!["BEGIN".to_owned()];
            for _ in 0..1 + random.below(4) {
                statements.push(self.change(&mut random, &mut rows));
            }
            statements.push("COMMIT".to_owned());
            if statements.len() == 3 {
                statements = vec![statements.swap_remove(1)];
            }
            self.under_way = Some(rows.clone());
            match ask_all(&mut connection, &statements) {
                Said::Lost => return done,
                Said::Refused => {}
                Said::Done(_) => self.expected = rows,
            }
            self.under_way = None;
        }
        unreachable!("the loop ends by a return")
    }

    fn check(&mut self, connection: &mut Connection) {
        let sql = format!("SELECT id, g || ' ' || coalesce(h, '-') || ' ' || n FROM moving WHERE id % 2 = {}", self.me);
        let found = must(connection, &sql);
        let found: BTreeMap<i64, String> =
            found.rows().map(|row| (number(&row[0]), row[1].clone().unwrap_or_default())).collect();
        let under_way = self.under_way.take();
        let fits = found == self.expected || Some(&found) == under_way.as_ref();
        assert!(fits, "client {}: {found:?}, expected {:?} or {under_way:?}", self.me, self.expected);
        self.expected = found;
    }
}

/// Transactions of some megabytes, which go to the log in parts; every one removes the one before.
#[derive(Default)]
pub struct Large {
    next: i64,
    expected: BTreeSet<i64>,
    under_way: Option<(i64, BTreeSet<i64>)>,
}

/// Of one batch, in two statements.
const BATCH: i64 = 3000;

impl Client for Large {
    fn name(&self) -> &'static str {
        "large transactions"
    }

    fn setup(&self) -> Vec<String> {
        texts(&[
            "CREATE TABLE large (batch bigint, i int, filler text, PRIMARY KEY (batch, i))",
            "CREATE INDEX large_filler ON large ((length(filler) + i), batch)",
        ])
    }

    fn run(&mut self, mut connection: Connection, mut random: Random) -> u64 {
        for done in 0.. {
            self.next += 1;
            let batch = self.next;
            let removed: BTreeSet<i64> = self.expected.iter().copied().filter(|_| random.below(3) > 0).collect();
            let mut after: BTreeSet<i64> = self.expected.difference(&removed).copied().collect();
            after.insert(batch);
            let half = BATCH / 2;
            let insert = |from: i64| {
                format!(
                    "INSERT INTO large SELECT {batch}, i, i || repeat('{}', 500) FROM generate_series({from}, {}) AS g (i)",
                    batch % 10,
                    from + half - 1
                )
            };
            let mut statements = vec!["BEGIN".to_owned(), insert(1), insert(half + 1)];
            statements.extend(removed.iter().map(|old| format!("DELETE FROM large WHERE batch = {old}")));
            statements.push("COMMIT".to_owned());
            self.under_way = Some((batch, after.clone()));
            match ask_all(&mut connection, &statements) {
                Said::Lost => return done,
                Said::Refused => {}
                Said::Done(_) => self.expected = after,
            }
            self.under_way = None;
            std::thread::sleep(std::time::Duration::from_millis(random.below(100)));
        }
        unreachable!("the loop ends by a return")
    }

    fn check(&mut self, connection: &mut Connection) {
        let reply = must(connection, "SELECT batch, count(*), sum(i), min(length(filler)) FROM large GROUP BY 1");
        let mut found = BTreeSet::new();
        for row in reply.rows() {
            let row: Vec<i64> = row.iter().map(number).collect();
            assert_eq!(row[1..], [BATCH, BATCH * (BATCH + 1) / 2, 501], "batch {} is not whole", row[0]);
            found.insert(row[0]);
        }
        let under_way = self.under_way.take();
        let fits = found == self.expected || under_way.as_ref().is_some_and(|(_, after)| *after == found);
        assert!(fits, "{found:?}, expected {:?} or {under_way:?}", self.expected);
        self.expected = found;
    }
}

/// Transactions of which a part is rolled back.
#[derive(Default)]
pub struct Saved {
    next: i64,
    expected: BTreeSet<i64>,
    under_way: Option<i64>,
}

impl Client for Saved {
    fn name(&self) -> &'static str {
        "savepoints"
    }

    fn setup(&self) -> Vec<String> {
        texts(&["CREATE TABLE saved (id bigint, part text, PRIMARY KEY (id, part))"])
    }

    fn run(&mut self, mut connection: Connection, _: Random) -> u64 {
        for done in 0.. {
            self.next += 1;
            let id = self.next;
            let insert = |part: &str| format!("INSERT INTO saved VALUES ({id}, '{part}')");
            let statements = [
                "BEGIN".to_owned(),
                insert("before"),
                "SAVEPOINT outer_one".to_owned(),
                insert("undone"),
                "SAVEPOINT inner_one".to_owned(),
                insert("undone too"),
                "RELEASE inner_one".to_owned(),
                "ROLLBACK TO outer_one".to_owned(),
                insert("after"),
                format!("UPDATE saved SET part = 'kept' WHERE id = {id} AND part = 'before'"),
                "COMMIT".to_owned(),
            ];
            self.under_way = Some(id);
            match ask_all(&mut connection, &statements) {
                Said::Lost => return done,
                Said::Refused => {}
                Said::Done(_) => _ = self.expected.insert(id),
            }
            self.under_way = None;
        }
        unreachable!("the loop ends by a return")
    }

    fn check(&mut self, connection: &mut Connection) {
        let reply = must(connection, "SELECT id, string_agg(part, ' ' ORDER BY part) FROM saved GROUP BY id");
        let mut found = BTreeSet::new();
        for row in reply.rows() {
            assert_eq!(row[1].as_deref(), Some("after kept"), "transaction {:?}", row[0]);
            found.insert(number(&row[0]));
        }
        let under_way = self.under_way.take();
        assert!(is_whole(&found, &self.expected, under_way), "{found:?}, expected {:?}", self.expected);
        self.expected = found;
    }

    fn tidy(&mut self, connection: &mut Connection) {
        must(connection, "DELETE FROM saved");
        self.expected.clear();
    }
}

/// COPY of some hundred rows.
#[derive(Default)]
pub struct Copied {
    next: i64,
    expected: BTreeSet<i64>,
    under_way: Option<i64>,
}

const LINES: i64 = 500;

impl Client for Copied {
    fn name(&self) -> &'static str {
        "COPY"
    }

    fn setup(&self) -> Vec<String> {
        texts(&["CREATE TABLE copied (batch bigint, i int, v text)", "CREATE INDEX copied_batch ON copied (batch, i)"])
    }

    fn run(&mut self, mut connection: Connection, _: Random) -> u64 {
        for done in 0.. {
            self.next += 1;
            let batch = self.next;
            let lines: String = (1..=LINES).map(|i| format!("{batch}\t{i}\tline {i} of {batch}\n")).collect();
            self.under_way = Some(batch);
            let reply = connection.copy("COPY copied FROM STDIN", &lines);
            match judge(&mut connection, "COPY", reply) {
                Said::Lost => return done,
                Said::Refused => {}
                Said::Done(_) => _ = self.expected.insert(batch),
            }
            self.under_way = None;
        }
        unreachable!("the loop ends by a return")
    }

    fn check(&mut self, connection: &mut Connection) {
        let reply = must(connection, "SELECT batch, count(*), count(DISTINCT i), max(i) FROM copied GROUP BY batch");
        let mut found = BTreeSet::new();
        for row in reply.rows() {
            let row: Vec<i64> = row.iter().map(number).collect();
            assert_eq!(row[1..], [LINES; 3], "COPY number {}", row[0]);
            found.insert(row[0]);
        }
        let under_way = self.under_way.take();
        assert!(is_whole(&found, &self.expected, under_way), "{found:?}, expected {:?}", self.expected);
        self.expected = found;
    }

    fn tidy(&mut self, connection: &mut Connection) {
        must(connection, "TRUNCATE copied");
        self.expected.clear();
    }
}

/// Values of a sequence, by themselves and as keys: none is handed out twice, over crashes too.
#[derive(Default)]
pub struct Sequence {
    highest: i64,
    rows: BTreeSet<i64>,
}

impl Client for Sequence {
    fn name(&self) -> &'static str {
        "sequences"
    }

    fn setup(&self) -> Vec<String> {
        texts(&["CREATE TABLE numbered (id bigserial PRIMARY KEY, v int)"])
    }

    fn run(&mut self, mut connection: Connection, mut random: Random) -> u64 {
        for done in 0.. {
            let inserts = random.below(2) == 0;
            let said = match inserts {
                true => ask(&mut connection, "INSERT INTO numbered (v) VALUES (1) RETURNING id"),
                false => ask(&mut connection, "SELECT nextval('numbered_id_seq')"),
            };
            match said {
                Said::Lost => return done,
                Said::Refused => {}
                Said::Done(reply) => {
                    let id = reply.value().and_then(|text| text.parse().ok()).expect("a number");
                    assert!(id > self.highest, "{id} after {}", self.highest);
                    self.highest = id;
                    if inserts {
                        self.rows.insert(id);
                    }
                }
            }
        }
        unreachable!("the loop ends by a return")
    }

    fn check(&mut self, connection: &mut Connection) {
        let found: BTreeSet<i64> = numbers(connection, "SELECT id FROM numbered").into_iter().collect();
        assert!(self.rows.is_subset(&found), "acknowledged rows are lost: {:?}", self.rows.difference(&found));
        assert!(found.len() <= self.rows.len() + 1, "{found:?}, expected {:?}", self.rows);
        // One that nobody was told of may be there.
        let highest = found.last().copied().unwrap_or(0).max(self.highest);
        let next = numbers(connection, "SELECT nextval('numbered_id_seq')")[0];
        assert!(next > highest, "the sequence says {next} after {highest}");
        (self.highest, self.rows) = (next, found);
    }

    fn tidy(&mut self, connection: &mut Connection) {
        must(connection, "DELETE FROM numbered");
        self.rows.clear();
    }
}

/// Commits that do not wait for the disk: after a crash the last ones may be missing, none before them.
#[derive(Default)]
pub struct Relaxed {
    tried: i64,
    /// Of the ones before the last start.
    certain: i64,
}

impl Client for Relaxed {
    fn name(&self) -> &'static str {
        "commits without waiting"
    }

    fn setup(&self) -> Vec<String> {
        texts(&["CREATE TABLE relaxed (id bigint PRIMARY KEY)"])
    }

    fn run(&mut self, mut connection: Connection, _: Random) -> u64 {
        if let Said::Lost = ask(&mut connection, "SET synchronous_commit = off") {
            return 0;
        }
        for done in 0.. {
            self.tried += 1;
            if let Said::Lost = ask(&mut connection, &format!("INSERT INTO relaxed VALUES ({})", self.tried)) {
                return done;
            }
        }
        unreachable!("the loop ends by a return")
    }

    fn check(&mut self, connection: &mut Connection) {
        let reply = must(connection, "SELECT coalesce(min(id), 1), coalesce(max(id), 0), count(*) FROM relaxed");
        let row: Vec<i64> = reply.rows().flatten().map(number).collect();
        let (first, last) = (row[0], row[1]);
        assert_eq!(row[2], last - first + 1, "one is missing before the last: {row:?}");
        assert!(first == 1, "the first is missing: {row:?}");
        assert!(last >= self.certain && last <= self.tried, "{row:?}, {} certain, {} tried", self.certain, self.tried);
        (self.tried, self.certain) = (last, last);
    }

    fn tidy(&mut self, connection: &mut Connection) {
        must(connection, "TRUNCATE relaxed");
        (self.tried, self.certain) = (0, 0);
    }
}

/// A table that is filled and emptied.
#[derive(Default)]
pub struct Emptied {
    expected: i64,
    under_way: Option<i64>,
}

impl Client for Emptied {
    fn name(&self) -> &'static str {
        "TRUNCATE"
    }

    fn setup(&self) -> Vec<String> {
        texts(&["CREATE TABLE emptied (i bigint PRIMARY KEY, v text)", "CREATE INDEX emptied_v ON emptied (v)"])
    }

    fn run(&mut self, mut connection: Connection, mut random: Random) -> u64 {
        for done in 0.. {
            let before = self.expected;
            let insert = format!(
                "INSERT INTO emptied SELECT i, 'v' || i FROM generate_series({}, {}) AS g (i)",
                before + 1,
                before + 50
            );
            let (after, statements) = match random.below(6) {
                0 => (0, vec!["TRUNCATE emptied".to_owned()]),
                // Emptied and filled again at once.
                1 => (
                    30,
                    texts(&[
                        "BEGIN",
                        "TRUNCATE emptied",
                        "INSERT INTO emptied SELECT i, 'v' || i FROM generate_series(1, 30) AS g (i)",
                        "COMMIT",
                    ]),
                ),
                2 => (before, texts(&["BEGIN", "TRUNCATE emptied", "INSERT INTO emptied VALUES (1, 'x')", "ROLLBACK"])),
                _ => (before + 50, vec![insert]),
            };
            self.under_way = Some(after);
            match ask_all(&mut connection, &statements) {
                Said::Lost => return done,
                Said::Refused => {}
                Said::Done(_) => self.expected = after,
            }
            self.under_way = None;
        }
        unreachable!("the loop ends by a return")
    }

    fn check(&mut self, connection: &mut Connection) {
        let reply = must(
            connection,
            "SELECT count(*), coalesce(max(i), 0), count(*) FILTER (WHERE v <> 'v' || i) FROM emptied",
        );
        let row: Vec<i64> = reply.rows().flatten().map(number).collect();
        let under_way = self.under_way.take();
        let fits = row[0] == self.expected || Some(row[0]) == under_way;
        assert!(fits && row[1] == row[0] && row[2] == 0, "{row:?} rows, expected {} or {under_way:?}", self.expected);
        self.expected = row[0];
    }
}
