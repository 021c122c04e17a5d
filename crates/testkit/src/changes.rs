//! Random changes to tables full of constraints, inside and outside of transaction blocks.
//!
//! The tables refer to each other and to themselves with a random action per key; statements are written so that what they
//! do does not depend on the order in which rows are visited: a step that could go either way changes one row, or fails
//! with one error whichever row is first.

use crate::random::Random;

const ACTIONS: [&str; 5] = ["NO ACTION", "RESTRICT", "CASCADE", "SET NULL", "SET DEFAULT"];

/// The tables of [`tables`], parents first.
pub const TABLES: [&str; 4] = ["p", "q", "r", "s"];

/// Types of a key and of a column that points to it.
const KEYS: [(&str, &str); 14] = [
    ("int", "int"),
    ("int", "int"),
    ("int", "smallint"),
    ("int", "bigint"),
    ("bigint", "int"),
    ("numeric", "int"),
    ("numeric", "bigint"),
    ("numeric(6,2)", "smallint"),
    ("numeric", "numeric(5,1)"),
    ("float8", "int"),
    ("float8", "numeric"),
    ("float8", "float4"),
    ("float4", "float8"),
    ("float4", "int"),
];

/// Statements that make the tables and give them some rows.
pub fn tables(random: &mut Random) -> Vec<String> {
    let [(id, pid), (a, pa)] = [0; 2].map(|_| KEYS[random.below(KEYS.len() as u64) as usize]);
    let mut action = || {
        let deferrable = random.pick(&["", "", "", " DEFERRABLE", " DEFERRABLE INITIALLY DEFERRED"]);
        format!("ON DELETE {} ON UPDATE {}{deferrable}", random.pick(&ACTIONS), random.pick(&ACTIONS))
    };
    let (first, second, third) = (action(), action(), action());
    // A row of this one is reached over several ways at once.
    let ways = ["p int REFERENCES p (id)", "q int REFERENCES q", "r int DEFAULT 3 REFERENCES r"]
        .map(|column| format!("{column} {}", action()))
        .join(", ");
    vec![
        format!(
            "CREATE TABLE p (id {id} PRIMARY KEY, a {a} UNIQUE, b varchar(4), c numeric(5,2) CHECK (c <> 0), \
             d text NOT NULL DEFAULT 'd', UNIQUE (b, c))"
        ),
        format!(
            "CREATE TABLE q (id serial PRIMARY KEY, pid {pid} DEFAULT 1 REFERENCES p {first}, \
             a smallint, b char(3), t timestamp, CONSTRAINT small CHECK (a < 50 OR b = 'big'), UNIQUE (pid, a))"
        ),
        format!(
            "CREATE TABLE r (id int PRIMARY KEY, parent int REFERENCES r {second}, \
             pa {pa} DEFAULT 2 REFERENCES p (a) {third}, n numeric(4,1) NOT NULL)"
        ),
        format!("CREATE TABLE s (id int PRIMARY KEY, {ways}, twin int UNIQUE REFERENCES s (twin) {})", action()),
        "CREATE UNIQUE INDEX q_b ON q (b, t)".to_owned(),
        "INSERT INTO p SELECT i, i, 'b' || i, i, 'x' FROM generate_series(1, 6) AS i".to_owned(),
        "INSERT INTO q (pid, a, b) VALUES (1, 1, 'a'), (2, 2, 'b'), (2, 20, 'c'), (NULL, 3, NULL)".to_owned(),
        "INSERT INTO r VALUES (1, NULL, 1, 1), (2, 1, 2, 2), (3, 1, 2, 3), (4, 2, NULL, 4), (5, 5, 5, 5)".to_owned(),
        "INSERT INTO s VALUES (1, 1, 1, 1, 1), (2, 1, 1, 2, NULL), (3, 2, 2, NULL, 3), (4, 5, NULL, 5, NULL)"
            .to_owned(),
    ]
}

/// One statement: a change, or a step of a transaction block.
pub fn statement(random: &mut Random) -> String {
    let mut writer = Writer { random };
    match writer.below(35) {
        0 | 1 => "BEGIN".to_owned(),
        2 => writer.pick(&["COMMIT", "ROLLBACK", "COMMIT", "COMMIT AND CHAIN", "ROLLBACK AND CHAIN"]).to_owned(),
        3 => format!("SAVEPOINT s{}", writer.below(2)),
        4 => format!("ROLLBACK TO s{}", writer.below(2)),
        5 => format!("RELEASE s{}", writer.below(2)),
        6..=15 => writer.insert(),
        16..=23 => writer.update(),
        24..=28 => writer.delete(),
        29 | 30 => writer.parts(),
        31 | 32 => writer.merge(),
        33 => format!("SET CONSTRAINTS ALL {}", writer.pick(&["DEFERRED", "IMMEDIATE"])),
        _ => format!("TRUNCATE {}", writer.pick(&["q", "r", "p", "q, r", "q RESTART IDENTITY", "p CASCADE", "s"])),
    }
}

struct Writer<'a> {
    random: &'a mut Random,
}

impl Writer<'_> {
    fn below(&mut self, limit: u64) -> u64 {
        self.random.below(limit)
    }

    fn pick<'t>(&mut self, of: &[&'t str]) -> &'t str {
        self.random.pick(of)
    }

    fn id(&mut self) -> u64 {
        1 + self.below(9)
    }

    /// A value for a column, now and then one that does not fit: a query then, which PostgreSQL does not try out while it plans.
    fn value(&mut self, column: &str) -> String {
        let number = self.below(9);
        if self.below(9) == 0 {
            return self.pick(&["NULL", "DEFAULT", "NULL"]).to_owned();
        }
        match column {
            "pid" | "pa" | "p.a" if self.below(8) == 0 => self.pick(&["1.5", "2.0", "0.1", "7.5"]).to_owned(),
            "id" | "pid" | "parent" | "pa" | "p.a" | "of" => (1 + number).to_string(),
            "a" => self.pick(&["1", "2", "3", "20", "60", "(SELECT 40000)", "12.4", "'7'"]).to_owned(),
            "p.b" => self.pick(&["'b1'", "'b2'", "'long'", "(SELECT 'longer')", "'ab  '", "'abcd   '", "7"]).to_owned(),
            "b" => self.pick(&["'a'", "'B'", "'big'", "'b  '", "(SELECT 'long')"]).to_owned(),
            "c" | "n" => self
                .pick(&[
                    "1",
                    "2.345",
                    "0",
                    "0.004",
                    "(SELECT 999.99)",
                    "(SELECT 999.996)",
                    "(SELECT 99999)",
                    "'3'",
                    "20",
                ])
                .to_owned(),
            "d" => self.pick(&["'x'", "'y'", "''"]).to_owned(),
            _ => self
                .pick(&["'2024-02-29'", "'2024-02-30'", "'2024-02-30 10:00'", "timestamp '2020-01-01 10:00'"])
                .to_owned(),
        }
    }

    fn columns(table: &str) -> [(&'static str, &'static str); 5] {
        match table {
            "p" => [("id", "id"), ("a", "p.a"), ("b", "p.b"), ("c", "c"), ("d", "d")],
            "q" => [("id", "id"), ("pid", "pid"), ("a", "a"), ("b", "b"), ("t", "t")],
            "s" => [("id", "id"), ("p", "of"), ("q", "of"), ("r", "of"), ("twin", "of")],
            _ => [("id", "id"), ("parent", "parent"), ("pa", "pa"), ("n", "n"), ("n", "n")],
        }
    }

    fn insert(&mut self) -> String {
        let table = self.pick(&TABLES);
        let count = if table == "r" { 4 } else { 5 };
        let all = &Self::columns(table)[..count];
        let kept: Vec<_> = all.iter().filter(|_| self.below(6) > 0).copied().collect();
        let kept = if kept.is_empty() { all.to_vec() } else { kept };
        let names = kept.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
        let source = match self.below(5) {
            0 => {
                let values = kept.iter().map(|(_, kind)| match *kind {
                    "id" => "i".to_owned(),
                    kind => self.value(kind).replace("DEFAULT", "NULL"),
                });
                format!("SELECT {} FROM generate_series(7, 8) AS i", values.collect::<Vec<_>>().join(", "))
            }
            count => {
                let rows = (0..1 + count / 2).map(|_| {
                    let values: Vec<String> = kept.iter().map(|(_, kind)| self.value(kind)).collect();
                    format!("({})", values.join(", "))
                });
                format!("VALUES {}", rows.collect::<Vec<_>>().join(", "))
            }
        };
        let conflict = self.conflict(table);
        format!("INSERT INTO {table} AS x ({names}) {source}{conflict}{}", self.returning("x"))
    }

    fn conflict(&mut self, table: &str) -> String {
        let target = match table {
            "p" => self.pick(&["(id)", "(a)", "(b, c)", "ON CONSTRAINT p_pkey", "(c, b)", "(d)"]),
            "q" => self.pick(&["(id)", "(pid, a)", "(b, t)", "(t, b) WHERE a > 20"]),
            "s" => self.pick(&["(id)", "(twin)", "ON CONSTRAINT s_twin_key"]),
            _ => self.pick(&["(id)", "ON CONSTRAINT r_pkey", "(parent)", "ON CONSTRAINT nothing"]),
        };
        match self.below(6) {
            0 => " ON CONFLICT DO NOTHING".to_owned(),
            1 => format!(" ON CONFLICT {target} DO NOTHING"),
            2 | 3 => {
                let set = match table {
                    "p" => self.pick(&[
                        "d = x.d || excluded.d",
                        "b = excluded.b, c = x.c + 1",
                        "(a, d) = (excluded.a, DEFAULT)",
                        "c = 0",
                    ]),
                    "q" => self.pick(&["a = x.a + excluded.a", "b = excluded.b", "t = NULL, pid = excluded.pid"]),
                    "s" => {
                        self.pick(&["p = excluded.p, q = excluded.q", "twin = excluded.r", "id = excluded.q, r = x.id"])
                    }
                    _ => self.pick(&[
                        "n = x.n + excluded.n",
                        "parent = excluded.id",
                        "(pa, n) = (SELECT excluded.pa, 1)",
                    ]),
                };
                let filter = self.pick(&["", "", " WHERE x.id < 5", " WHERE excluded.id <> x.id", " WHERE NULL"]);
                format!(" ON CONFLICT {target} DO UPDATE SET {set}{filter}")
            }
            _ => String::new(),
        }
    }

    fn returning(&mut self, alias: &str) -> String {
        match self.below(3) {
            0 => format!(" RETURNING {}", self.pick(&["*", "x.id", "x.id + 1 AS next, x.id"])),
            1 => format!(" RETURNING {alias}.*, (SELECT count(*) FROM p) AS n"),
            _ => String::new(),
        }
    }

    fn update(&mut self) -> String {
        let table = self.pick(&TABLES);
        let id = self.id();
        let count = if table == "r" { 4 } else { 5 };
        let (column, kind) = Self::columns(table)[self.below(count) as usize];
        let mut value = self.value(kind);
        if column == "id" && value == "DEFAULT" {
            // Which row gets which number is free.
            value = "NULL".to_owned();
        }
        let returning = self.returning("x");
        match self.below(10) {
            7 | 8 => {
                // A key and what the row points to at once.
                let (other, of) = Self::columns(table)[self.below(count) as usize];
                let second = if other == column { String::new() } else { format!(", {other} = {}", self.fixed(of)) };
                format!("UPDATE {table} AS x SET {column} = {value}{second} WHERE id = {id}{returning}")
            }
            0 => {
                // Every row, by an amount that meets no other row.
                let set = match table {
                    "p" => self.pick(&[
                        "id = id + 100",
                        "a = -a",
                        "c = c / 3",
                        "d = d || b",
                        "b = b || 'zz'",
                        "c = c * 1000",
                    ]),
                    "q" => self.pick(&["a = a + 100", "b = 'big'", "id = id + 1000", "t = '2020-01-01'"]),
                    "s" => {
                        self.pick(&["id = id + 100", "p = NULL, q = r", "twin = id + 1000", "r = NULL, twin = NULL"])
                    }
                    _ => self.pick(&["id = id + 100", "n = n * 100", "parent = NULL", "n = n / 7", "parent = id"]),
                };
                format!("UPDATE {table} AS x SET {set}{returning}")
            }
            1 => format!(
                "UPDATE {table} AS x SET {column} = y.id FROM p AS y WHERE y.id = x.id AND x.id = {id}{returning}"
            ),
            2 => {
                format!(
                    "UPDATE {table} AS x SET {column} = {value} FROM q AS y LEFT JOIN r AS z ON z.id = y.id WHERE y.id = x.id AND x.id < {id}{returning}"
                )
            }
            3 => format!(
                "UPDATE {table} AS x SET {column} = (SELECT max(id) FROM r WHERE r.id <= x.id) WHERE id = {id}{returning}"
            ),
            _ => format!("UPDATE {table} AS x SET {column} = {value} WHERE id = {id}{returning}"),
        }
    }

    /// A value that is no DEFAULT: which row gets which number is free.
    fn fixed(&mut self, kind: &str) -> String {
        self.value(kind).replace("DEFAULT", "NULL")
    }

    /// A statement with several changing parts, each of another table.
    fn parts(&mut self) -> String {
        let (first, second) = (self.below(4), 1 + self.below(3));
        let tables = [first, (first + second) % 4].map(|at| TABLES[at as usize]);
        let parts = tables.map(|table| {
            let id = self.id();
            match self.below(4) {
                0 => format!("DELETE FROM {table} WHERE id = {id}"),
                1 => format!("UPDATE {table} SET id = {} WHERE id = {id}", self.id()),
                2 => {
                    let (column, kind) = Self::columns(table)[1 + self.below(3) as usize];
                    format!("UPDATE {table} SET {column} = {} WHERE id = {id}", self.fixed(kind))
                }
                _ => {
                    let values: Vec<String> = match table {
                        "r" => ["id", "parent", "pa", "n"].map(|kind| self.fixed(kind)).into(),
                        _ => Self::columns(table).map(|(_, kind)| self.fixed(kind)).into(),
                    };
                    format!("INSERT INTO {table} VALUES ({})", values.join(", "))
                }
            }
        });
        format!("WITH part AS ({} RETURNING id) {}", parts[0], parts[1])
    }

    fn merge(&mut self) -> String {
        let table = self.pick(&TABLES);
        let (column, kind) = Self::columns(table)[1 + self.below(3) as usize];
        let source = match self.below(3) {
            0 => format!("(VALUES ({}, {})) AS y (id, v)", self.id(), self.id()),
            1 => format!("(SELECT id, 3 FROM r WHERE id = {}) AS y (id, v)", self.id()),
            _ => format!("(SELECT id, id FROM q WHERE id = {}) AS y (id, v)", self.id()),
        };
        let matched = match self.below(3) {
            0 => "DELETE".to_owned(),
            1 => format!("UPDATE SET id = {}, {column} = {}", self.id(), self.fixed(kind)),
            _ => format!("UPDATE SET {column} = {}", self.fixed(kind)),
        };
        let more = match table {
            "r" => ", n",
            _ => "",
        };
        let inserted = if more.is_empty() { String::new() } else { ", y.v".to_owned() };
        format!(
            "MERGE INTO {table} AS x USING {source} ON x.id = y.id WHEN MATCHED AND y.v <> 9 THEN {matched} \
             WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id{more}) VALUES (y.v{inserted})"
        )
    }

    fn delete(&mut self) -> String {
        let table = self.pick(&TABLES);
        let id = self.id();
        let returning = self.returning("x");
        match self.below(4) {
            0 => format!("DELETE FROM {table} AS x USING q AS y WHERE y.id = x.id AND x.id >= {id}{returning}"),
            1 => format!(
                "DELETE FROM {table} AS x WHERE EXISTS (SELECT FROM r WHERE r.parent = x.id) AND id = {id}{returning}"
            ),
            2 => format!("DELETE FROM {table} AS x WHERE id IN ({id}, {})", self.id()),
            _ => format!("DELETE FROM {table} AS x WHERE id = {id}{returning}"),
        }
    }
}
