//! Random views with `security_barrier`, nested, over tables whose hidden rows fail every condition that looks at them: a text
//! that is no number, a divisor of zero. No statement over the views may fail through such a row, whatever plan it gets.
//!
//! A view is *sealed* if nothing outside of it may be tested on a hidden row: it has the option, and nothing between it and the
//! condition that hides the rows may fail; or all it reads is sealed. Statements put conditions that may fail on sealed views
//! only, so that the two servers never have a reason to refuse them.

use crate::random::Random;

/// The tables that changes reach.
pub const TABLES: [&str; 2] = ["r", "q"];

/// Hidden rows have ids from here on.
const HIDDEN_FROM: u64 = 1000;

/// Views of one schema.
const VIEWS: usize = 14;

#[derive(Clone, Debug)]
struct View {
    name: String,
    sealed: bool,
    /// It can be changed, and locked.
    updatable: bool,
    /// Views below it.
    depth: u32,
}

/// Tables with their rows and indexes, and views over them.
pub struct Schema {
    /// What makes them.
    pub statements: Vec<String>,
    views: Vec<View>,
}

/// A statement of the test.
pub struct Statement {
    /// Its text.
    pub sql: String,
    /// It changes rows, or locks them.
    pub changes: bool,
}

/// Makes the tables and views of a round.
pub fn schema(random: &mut Random) -> Schema {
    let mut statements = vec!["CREATE TABLE ok (id int PRIMARY KEY)".to_owned()];
    for table in TABLES {
        statements.extend(table_with_rows(table, random));
    }
    statements.push(format!(
        "INSERT INTO ok SELECT id FROM r WHERE id < {HIDDEN_FROM} UNION SELECT id FROM q WHERE id < {HIDDEN_FROM}"
    ));
    if random.below(2) == 0 {
        statements.push("ANALYZE r, q".to_owned());
    }
    let mut schema = Schema { statements, views: Vec::new() };
    while schema.views.len() < VIEWS || !schema.views.iter().any(|view| view.sealed && view.updatable) {
        let (view, sql) = Writer { random, views: &schema.views, names: 0 }.view();
        schema.statements.push(sql);
        schema.views.push(view);
    }
    schema
}

fn table_with_rows(table: &str, random: &mut Random) -> Vec<String> {
    let columns = "id int NOT NULL, k int, t text, z int, n numeric, secret boolean NOT NULL";
    let mut statements = vec![format!("CREATE TABLE {table} ({columns})")];
    let count = 3 + random.below(40);
    let mut rows: Vec<String> = (1..=count)
        .map(|id| {
            let k = if random.below(8) == 0 { "NULL".to_owned() } else { random.below(6).to_string() };
            let t = if random.below(10) == 0 { "NULL".to_owned() } else { format!("'{}'", random.below(30)) };
            let z = if random.below(10) == 0 { "NULL".to_owned() } else { (1 + random.below(5)).to_string() };
            format!("({id}, {k}, {t}, {z}, {}, false)", random.below(20))
        })
        .collect();
    for number in 0..1 + random.below(6) {
        // What they share with others tempts indexes and equalities to lead to them.
        let (id, k) = (HIDDEN_FROM + number, random.below(6));
        let row = format!("({id}, {k}, 'boom', 0, {}, true)", random.below(20));
        rows.insert(random.below(rows.len() as u64 + 1) as usize, row);
    }
    statements.push(format!("INSERT INTO {table} VALUES {}", rows.join(", ")));
    let mut indexes = vec![
        format!("ALTER TABLE {table} ADD PRIMARY KEY (id)"),
        format!("CREATE INDEX ON {table} (k)"),
        format!("CREATE INDEX ON {table} (t)"),
        format!("CREATE INDEX ON {table} (z DESC, k)"),
        format!("CREATE INDEX ON {table} (n)"),
        format!("CREATE INDEX ON {table} (lower(t))"),
        format!("CREATE INDEX ON {table} (length(t), k)"),
        format!("CREATE UNIQUE INDEX ON {table} (k, id)"),
        format!("CREATE INDEX ON {table} (k) WHERE NOT secret"),
        format!("CREATE INDEX ON {table} (t) WHERE z <> 0"),
    ];
    indexes.retain(|_| random.below(2) == 0);
    statements.extend(indexes);
    statements
}

/// A statement over the views.
pub fn statement(schema: &Schema, random: &mut Random) -> Statement {
    let mut writer = Writer { random, views: &schema.views, names: 0 };
    let changes = writer.below(3) == 0;
    let sql = if changes { writer.change() } else { writer.query() };
    Statement { sql, changes }
}

struct Writer<'a> {
    random: &'a mut Random,
    views: &'a [View],
    /// Aliases handed out.
    names: usize,
}

impl Writer<'_> {
    fn below(&mut self, limit: u64) -> u64 {
        self.random.below(limit)
    }

    fn pick<'t>(&mut self, of: &[&'t str]) -> &'t str {
        self.random.pick(of)
    }

    fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    fn alias(&mut self) -> String {
        self.names += 1;
        format!("a{}", self.names)
    }

    // Views.

    fn view(&mut self) -> (View, String) {
        let name = format!("v{}", self.views.len());
        let option = self.pick(&["WITH (security_barrier) ", "WITH (security_barrier = on) ", "", ""]);
        let barrier = !option.is_empty();
        let below: Vec<View> = self.views.iter().filter(|view| view.depth < 3).cloned().collect();
        let (mut view, query) = match below.is_empty() || self.one_in(3) {
            true => {
                let table = self.pick(&TABLES);
                let hides = self.hiding("b");
                let sql = format!("SELECT b.id, b.k, b.t, b.z, b.n FROM {table} b WHERE {hides}");
                (View { name: name.clone(), sealed: false, updatable: true, depth: 1 }, sql)
            }
            false => self.over(&name, &below),
        };
        view.sealed |= barrier;
        let option = match view.updatable && self.one_in(4) {
            true => format!("{query} WITH {}CHECK OPTION", self.pick(&["", "LOCAL ", "CASCADED "])),
            false => query,
        };
        let head = if barrier { "WITH (security_barrier) " } else { "" };
        (view, format!("CREATE VIEW {name} {head}AS {option}"))
    }

    /// A condition that hides the rows, and may not fail.
    fn hiding(&mut self, alias: &str) -> String {
        match self.below(9) {
            0 => format!("NOT {alias}.secret"),
            1 => format!("{alias}.secret = false"),
            2 => format!("{alias}.secret IS NOT TRUE"),
            3 => format!("{alias}.id < {HIDDEN_FROM}"),
            4 => format!("{alias}.t <> 'boom'"),
            5 => format!("{alias}.z <> 0 AND {alias}.k >= 0"),
            6 => format!("EXISTS (SELECT FROM ok WHERE ok.id = {alias}.id)"),
            7 => format!("{alias}.id IN (SELECT ok.id FROM ok)"),
            _ => format!("({alias}.z > 0 OR {alias}.t = '7') AND NOT {alias}.secret"),
        }
    }

    /// A view over others.
    fn over(&mut self, name: &str, below: &[View]) -> (View, String) {
        let first = below[self.below(below.len() as u64) as usize].clone();
        let other = below[self.below(below.len() as u64) as usize].clone();
        let mut view = View { name: name.to_owned(), sealed: first.sealed, updatable: false, depth: first.depth + 1 };
        // Conditions of the view may fail only where nothing below is open.
        let filter = |writer: &mut Self, alias: &str| match writer.below(4) {
            0 => String::new(),
            _ => {
                let aliases = [alias.to_owned()];
                let both = if first.sealed { writer.condition(&aliases, 1) } else { writer.safe(&aliases) };
                format!(" WHERE {both}")
            }
        };
        let sql = match self.below(9) {
            0 if first.sealed && other.sealed => {
                view.depth = view.depth.max(other.depth + 1);
                let (a, b) = (["b".to_owned()], ["c".to_owned()]);
                let on = self.tie(&a[0], &b[0]);
                let more = self.condition(&[a, b].concat(), 1);
                format!(
                    "SELECT b.id, c.k, b.t, c.z, b.n FROM {} b JOIN {} c ON {on} WHERE {more}",
                    first.name, other.name
                )
            }
            1 if first.sealed && other.sealed => {
                view.depth = view.depth.max(other.depth + 1);
                let (one, two) = (filter(self, "b"), self.leaky("c"));
                format!(
                    "SELECT b.id, b.k, b.t, b.z, b.n FROM {} b{one} UNION ALL SELECT c.id, c.k, c.t, c.z, c.n FROM {} c WHERE {two}",
                    first.name, other.name
                )
            }
            2 => {
                let filter = filter(self, "b");
                format!(
                    "SELECT min(b.id) AS id, b.k, b.t, b.z, max(b.n) AS n FROM {} b{filter} GROUP BY b.k, b.t, b.z",
                    first.name
                )
            }
            3 => format!("SELECT DISTINCT b.id, b.k, b.t, b.z, b.n FROM {} b{}", first.name, filter(self, "b")),
            4 => {
                let filter = filter(self, "b");
                format!("SELECT b.id, b.k, b.t, b.z, b.n FROM {} b{filter} ORDER BY b.id LIMIT 20", first.name)
            }
            5 if first.sealed => {
                let filter = filter(self, "b");
                view.updatable = first.updatable;
                let k = self.pick(&["b.t::int + 1", "12 / b.z", "b.k + b.t::int % 3"]);
                format!("SELECT b.id, {k} AS k, b.t, b.z, b.n FROM {} b{filter}", first.name)
            }
            6 => {
                let filter = filter(self, "b");
                format!("SELECT b.id, b.k, b.t, b.z, b.n FROM {} b{filter} OFFSET 0", first.name)
            }
            _ => {
                let filter = filter(self, "b");
                view.updatable = first.updatable;
                format!("SELECT b.id, b.k, b.t, b.z, b.n FROM {} b{filter}", first.name)
            }
        };
        (view, sql)
    }

    fn sealed(&mut self) -> String {
        let sealed: Vec<String> = self.views.iter().filter(|v| v.sealed).map(|v| v.name.clone()).collect();
        sealed[self.below(sealed.len() as u64) as usize].clone()
    }

    fn changeable(&mut self) -> String {
        let these = self.views.iter().filter(|v| v.sealed && v.updatable);
        let these: Vec<String> = these.map(|v| v.name.clone()).collect();
        these[self.below(these.len() as u64) as usize].clone()
    }

    // Conditions.

    /// A condition that fails on a hidden row.
    fn leaky(&mut self, a: &str) -> String {
        let (c, d) = (self.below(30), self.below(6));
        let operator = self.pick(&["=", "<", ">", "<=", ">=", "<>"]);
        match self.below(20) {
            0 | 1 => format!("{a}.t::int {operator} {c}"),
            2 | 3 => format!("12 / {a}.z {operator} {d}"),
            4 => format!("12 % {a}.z = {}", d % 2),
            5 => format!("({a}.t || '0')::int {operator} {}", c * 10),
            6 => format!("{a}.n / {a}.z {operator} {d}"),
            7 => format!("{a}.t::int IN ({c}, {d}, {})", c + 1),
            8 => format!("{a}.t::int = ANY (ARRAY[{c}, {d}])"),
            9 => format!("CASE WHEN {a}.k > {d} THEN 12 / {a}.z ELSE {a}.t::int END {operator} {d}"),
            10 => format!("coalesce(12 / {a}.z, 0) {operator} {d}"),
            11 => format!("lower({a}.t)::int {operator} {c}"),
            12 => format!("({a}.k = {d} OR {a}.t::int {operator} {c})"),
            13 => format!("NOT ({a}.k = {d} AND 12 / {a}.z {operator} {d})"),
            14 => format!("({a}.t::int, {a}.k) {operator} ({c}, {d})"),
            15 => format!("greatest({a}.t::int, {d}) {operator} {c}"),
            16 => format!("(SELECT {a}.t::int) {operator} {c}"),
            17 => format!("nullif({a}.t::int, {c}) IS NOT NULL"),
            18 => format!("sqrt(abs({a}.z) - 1) {operator} {d}"),
            _ => self.linked(a),
        }
    }

    /// A condition with a subquery over another view.
    fn linked(&mut self, a: &str) -> String {
        let (view, x) = (self.sealed(), self.alias());
        let more = self.simple(&x);
        let not = self.pick(&["", "", "NOT "]);
        match self.below(7) {
            5 => {
                let (other, y) = (self.sealed(), self.alias());
                let tie = self.tie(&x, &y);
                format!(
                    "(SELECT count(*) FROM {view} {x} JOIN {other} {y} ON {tie} WHERE {x}.k = {a}.k AND {more}) > {}",
                    self.below(3)
                )
            }
            6 => format!("{a}.k > ANY (SELECT {x}.t::int FROM {view} {x} WHERE {x}.id <= {a}.id AND {more})"),
            0 => format!("{a}.t::int {not}IN (SELECT {x}.t::int FROM {view} {x} WHERE {more} AND {x}.t IS NOT NULL)"),
            1 => format!("{a}.id {not}IN (SELECT {x}.id FROM {view} {x} WHERE {more})"),
            2 => format!("{not}EXISTS (SELECT FROM {view} {x} WHERE {x}.id = {a}.id AND {more})"),
            3 => format!("{not}EXISTS (SELECT FROM {view} {x} WHERE {x}.t::int = {a}.t::int AND {more})"),
            _ => format!("(SELECT count(*) FROM {view} {x} WHERE {x}.k = {a}.k AND {more}) > {}", self.below(3)),
        }
    }

    /// A condition that may be tested anywhere.
    fn harmless(&mut self, a: &str) -> String {
        let (c, d) = (self.below(30), self.below(6));
        let id = if self.one_in(4) { HIDDEN_FROM + d } else { c };
        let operator = self.pick(&["=", "<", ">", "<=", ">=", "<>"]);
        match self.below(13) {
            0 | 1 => format!("{a}.id {operator} {id}"),
            2 => format!("{a}.k {operator} {d}"),
            3 => format!("{a}.t {operator} '{c}'"),
            4 => format!("{a}.t = 'boom'"),
            5 => format!("{a}.id IN ({c}, {d}, {id})"),
            6 => format!("{a}.id BETWEEN {d} AND {id}"),
            7 => format!("{a}.k IS DISTINCT FROM {d}"),
            8 => format!("{a}.n {operator} {c}"),
            9 => format!("lower({a}.t) = '{c}'"),
            10 => format!("length({a}.t) {operator} 2 AND {a}.k = {d}"),
            11 => format!("({a}.z = {d} OR {a}.id = {id})"),
            _ => format!("{a}.t LIKE '1%'"),
        }
    }

    fn simple(&mut self, a: &str) -> String {
        if self.below(5) < 3 { self.leaky(a) } else { self.harmless(a) }
    }

    fn one_of(&mut self, aliases: &[String]) -> String {
        aliases[self.below(aliases.len() as u64) as usize].clone()
    }

    /// Harmless conditions only.
    fn safe(&mut self, aliases: &[String]) -> String {
        let a = self.one_of(aliases);
        let first = self.harmless(&a);
        if self.one_in(2) { first } else { format!("{first} AND {}", self.harmless(&a)) }
    }

    /// What ties two.
    fn tie(&mut self, a: &str, b: &str) -> String {
        match self.below(8) {
            0 | 1 => format!("{a}.id = {b}.id"),
            2 => format!("{a}.k = {b}.k"),
            3 => format!("{a}.t::int = {b}.t::int"),
            4 => format!("{a}.k = {b}.t::int"),
            5 => format!("12 / {a}.z = 12 / {b}.z AND {a}.t = {b}.t"),
            6 => format!("{a}.z / {b}.z = 2"),
            _ => format!("{a}.t = {b}.t AND {}", self.simple(a)),
        }
    }

    fn condition(&mut self, aliases: &[String], depth: u32) -> String {
        if depth == 0 || self.one_in(4) {
            if aliases.len() > 1 && self.one_in(3) {
                return self.tie(&aliases[0], &aliases[1]);
            }
            let a = self.one_of(aliases);
            return self.simple(&a);
        }
        let (left, right) = (self.condition(aliases, depth - 1), self.condition(aliases, depth - 1));
        match self.below(6) {
            0 => format!("({left} OR {right})"),
            1 => format!("NOT ({left}) AND {right}"),
            _ => format!("{left} AND {right}"),
        }
    }

    // Statements.

    /// A FROM, and its aliases.
    fn from(&mut self) -> (String, Vec<String>) {
        let (view, a) = (self.sealed(), self.alias());
        let first = match self.below(7) {
            0 => format!("(SELECT * FROM {view} {a} WHERE {}) {a}", self.simple(&a)),
            1 => format!("(SELECT id, t::int AS k, t, z, n FROM {view} {a} WHERE {}) {a}", self.simple(&a)),
            _ => format!("{view} {a}"),
        };
        if self.one_in(2) {
            return (first, vec![a]);
        }
        let (other, b) = (self.sealed(), self.alias());
        let aliases = vec![a.clone(), b.clone()];
        let second = match self.below(6) {
            0 => {
                let (tie, more) = (self.tie(&b, &a), self.simple(&b));
                let kind = self.pick(&["JOIN", "LEFT JOIN"]);
                format!(" {kind} LATERAL (SELECT * FROM {other} {b} WHERE {tie} AND {more}) {b} ON true")
            }
            1 => format!(", {other} {b}"),
            // A table that anybody may read, hidden rows and all.
            2 => {
                let (table, c) = (self.pick(&TABLES), self.alias());
                let (on, tie) = (self.pick(&["id", "k", "t"]), self.tie(&a, &b));
                format!(" JOIN {table} {c} ON {c}.{on} = {a}.{on} JOIN {other} {b} ON {tie}")
            }
            _ => {
                let (tie, more) = (self.tie(&a, &b), self.simple(&b));
                let kind = self.pick(&["JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN"]);
                let more = if self.one_in(2) { format!(" AND {more}") } else { String::new() };
                format!(" {kind} {other} {b} ON {tie}{more}")
            }
        };
        (first + &second, aliases)
    }

    fn query(&mut self) -> String {
        let (from, aliases) = self.from();
        let filter = match self.below(6) {
            0 => String::new(),
            _ => format!(" WHERE {}", self.condition(&aliases, 2)),
        };
        let a = self.one_of(&aliases);
        let columns: Vec<String> =
            aliases.iter().flat_map(|a| ["id", "k", "t", "z"].map(|c| format!("{a}.{c}"))).collect();
        let columns = columns.join(", ");
        match self.below(12) {
            0 => format!(
                "SELECT {a}.t::int % 4, count(*), sum(12 / {a}.z) FROM {from}{filter} GROUP BY 1 HAVING max({a}.t::int) >= 0"
            ),
            1 => format!("SELECT count(*), max({a}.t::int), min(12 / {a}.z) FROM {from}{filter}"),
            2 => format!("SELECT DISTINCT {a}.t::int, 12 / {a}.z FROM {from}{filter}"),
            3 => {
                let (view, b) = (self.sealed(), self.alias());
                let (more, op) = (self.simple(&b), self.pick(&["UNION", "UNION ALL", "EXCEPT", "INTERSECT"]));
                format!(
                    "SELECT {a}.id, {a}.t::int FROM {from}{filter} {op} SELECT {b}.id, {b}.t::int FROM {view} {b} WHERE {more}"
                )
            }
            4 => {
                let (b, kept) = (self.alias(), self.pick(&["", "MATERIALIZED ", "NOT MATERIALIZED "]));
                let more = self.simple(&b);
                format!(
                    "WITH w AS {kept}(SELECT {a}.id, {a}.k, {a}.t, {a}.z, {a}.n FROM {from}{filter}) SELECT {b}.id, {b}.t FROM w {b} WHERE {more}"
                )
            }
            5 => {
                let (b, more) = (self.alias(), self.below(4));
                format!(
                    "SELECT * FROM (SELECT {a}.t::int % 5 AS m, count(*) AS c FROM {from}{filter} GROUP BY 1) {b} WHERE 12 / ({b}.m + 1) > {more}"
                )
            }
            6 => format!(
                "SELECT {a}.id FROM {from}{filter} ORDER BY {a}.t::int NULLS FIRST, {a}.id LIMIT {}",
                1 + self.below(5)
            ),
            7 => {
                let (g, x) = (self.alias(), self.alias());
                let (view, more) = (self.sealed(), self.linked(&x));
                format!(
                    "SELECT {g}, (SELECT max({x}.t::int) FROM {view} {x} WHERE {x}.id = {g} AND {more}) FROM generate_series(1, 8) {g}"
                )
            }
            8 => format!("SELECT {a}.id, rank() OVER (ORDER BY {a}.t::int) FROM {from}{filter}"),
            _ => format!("SELECT {columns} FROM {from}{filter}"),
        }
    }

    fn change(&mut self) -> String {
        let (view, a) = (self.changeable(), self.alias());
        if self.one_in(5) {
            let (filter, how) =
                (self.condition(std::slice::from_ref(&a), 1), self.pick(&["UPDATE", "NO KEY UPDATE", "SHARE"]));
            return format!("SELECT {a}.id FROM {view} {a} WHERE {filter} FOR {how}");
        }
        if self.one_in(6) {
            return self.stores();
        }
        let (mut aliases, mut other) = (vec![a.clone()], None);
        if self.one_in(3) {
            let (view, b) = (self.sealed(), self.alias());
            other = Some(format!("{view} {b}"));
            aliases.push(b);
        }
        let mut filter = self.condition(&aliases, 2);
        if let [a, b] = &aliases[..] {
            filter = format!("{} AND {filter}", self.tie(a, b));
        }
        let returning = if self.one_in(2) { format!(" RETURNING {a}.id, {a}.t::int") } else { String::new() };
        match self.below(3) {
            0 => {
                let using = other.map(|other| format!(" USING {other}")).unwrap_or_default();
                format!("DELETE FROM {view} {a}{using} WHERE {filter}{returning}")
            }
            _ => {
                let from = other.map(|other| format!(" FROM {other}")).unwrap_or_default();
                let value = self.pick(&["n + 1", "t::int + 100", "12 / z", "-1"]);
                let value = if value == "-1" {
                    value.to_owned()
                } else {
                    value
                        .replace("n ", &format!("{a}.n "))
                        .replace("t:", &format!("{a}.t:"))
                        .replace("/ z", &format!("/ {a}.z"))
                };
                format!("UPDATE {view} {a} SET n = {value}{from} WHERE {filter}{returning}")
            }
        }
    }

    /// A change of a table by what views show.
    fn stores(&mut self) -> String {
        let table = self.pick(&TABLES);
        if self.one_in(2) {
            let (from, aliases) = self.from();
            let (filter, a) = (self.condition(&aliases, 2), self.one_of(&aliases));
            return format!(
                "INSERT INTO {table} SELECT DISTINCT {a}.id + 5000, {a}.t::int, {a}.t, 12 / {a}.z, {a}.n, false FROM {from} WHERE {filter}"
            );
        }
        let (view, a) = (self.sealed(), self.alias());
        let (on, first, second) = (self.simple(&a), self.simple(&a), self.simple(&a));
        let unmatched = match self.below(3) {
            0 => " WHEN NOT MATCHED THEN DO NOTHING".to_owned(),
            1 => {
                let values = format!("{a}.id + 5000, {a}.t::int, {a}.t, {a}.z, {a}.n, false");
                format!(" WHEN NOT MATCHED AND {} THEN INSERT VALUES ({values})", self.simple(&a))
            }
            _ => String::new(),
        };
        format!(
            "MERGE INTO {table} m USING {view} {a} ON m.id = {a}.id AND {on} WHEN MATCHED AND {first} THEN DELETE WHEN MATCHED AND {second} \
             THEN UPDATE SET n = {a}.t::int{unmatched}"
        )
    }
}
