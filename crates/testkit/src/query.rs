//! Random queries that are right by construction: every expression has a type, every order is total, and nothing can
//! overflow or divide by zero but where a constant decides before it, so that two servers must agree on every row.

mod rows;
mod shapes;

use crate::random::Random;

/// Statements that make the tables `r`, `s` and `t` with a few dozen rows each, NULLs and duplicates among them.
pub fn tables(random: &mut Random) -> Vec<String> {
    let mut statements = Vec::new();
    for table in TABLES {
        statements.push(format!("CREATE TABLE {table} (i int, j int, n numeric(8,2), x text, b boolean, d date)"));
        let rows = (0..20 + random.below(20)).map(|_| row(random)).collect::<Vec<_>>();
        statements.push(format!("INSERT INTO {table} VALUES {}", rows.join(", ")));
    }
    statements.push("CREATE SEQUENCE num".to_owned());
    statements.push("CREATE INDEX ON r (i)".to_owned());
    statements.push("CREATE INDEX ON s (j, x)".to_owned());
    statements.push("CREATE INDEX ON t (x)".to_owned());
    statements.push("CREATE INDEX ON t (d)".to_owned());
    statements.push("CREATE VIEW v AS SELECT j AS i, i AS j, n, upper(x) AS x, b, d FROM r WHERE i > 1".to_owned());
    statements
}

const TABLES: [&str; 3] = ["r", "s", "t"];

fn row(random: &mut Random) -> String {
    let or_null = |value: String, random: &mut Random| if random.below(6) == 0 { "NULL".to_owned() } else { value };
    let i = random.below(10).to_string();
    let j = random.below(40).to_string();
    let n = format!("{}.{}", random.below(20), random.below(100));
    let x = format!("'{}'", WORDS[random.below(WORDS.len() as u64) as usize]);
    let b = (random.below(2) == 0).to_string();
    let d = format!("'2024-01-{:02}'", 1 + random.below(28));
    let values = [i, j, n, x, b, d].map(|value| or_null(value, random));
    format!("({})", values.join(", "))
}

const WORDS: [&str; 8] = ["", "a", "ab", "B", "lorem", "ipsum", "é", "a b"];

#[derive(Clone, Copy, PartialEq, Eq)]
enum ExpressionKind {
    Int,
    Numeric,
    Text,
    Bool,
    Date,
}

/// A column of each kind.
const COLUMN_OF: [&str; 5] = ["j", "n", "x", "b", "d"];

const KINDS: [ExpressionKind; 5] =
    [ExpressionKind::Int, ExpressionKind::Numeric, ExpressionKind::Text, ExpressionKind::Bool, ExpressionKind::Date];

/// A query over the tables of [`tables`].
pub fn query(random: &mut Random) -> String {
    // The view last: what changes rows names the tables.
    let tables = TABLES.iter().chain(&["v"]).map(|table| (*table).to_owned()).collect();
    let mut writer = Writer { random, scope: Vec::new(), tables };
    writer.statement()
}

struct Writer<'a> {
    random: &'a mut Random,
    /// Aliases that may be named.
    scope: Vec<String>,
    /// Tables, and queries of WITH that have their columns.
    tables: Vec<String>,
}

impl Writer<'_> {
    fn below(&mut self, limit: u64) -> u64 {
        self.random.below(limit)
    }

    fn pick<'t>(&mut self, of: &[&'t str]) -> &'t str {
        self.random.pick(of)
    }

    fn select(&mut self) -> String {
        let from = self.from();
        let filter = if self.below(3) > 0 { format!(" WHERE {}", self.boolean(3)) } else { String::new() };
        let grouped = self.below(3) == 0;
        let (list, tail) = if grouped { self.grouped() } else { self.plain() };
        let distinct = if !grouped && self.below(4) == 0 { "DISTINCT " } else { "" };
        let columns = list.len();
        let order: Vec<String> = (1..=columns).map(|column| format!("{column}{}", self.direction())).collect();
        let limit = match self.below(3) {
            0 => format!(" LIMIT {} OFFSET {}", self.below(20), self.below(5)),
            _ => String::new(),
        };
        self.scope.clear();
        format!("SELECT {distinct}{} FROM {from}{filter}{tail} ORDER BY {}{limit}", list.join(", "), order.join(", "))
    }

    fn direction(&mut self) -> &'static str {
        self.pick(&["", " DESC", " NULLS FIRST", " DESC NULLS LAST"])
    }

    fn from(&mut self) -> String {
        let mut text = self.table();
        for _ in 0..self.below(3) {
            let join = self.pick(&["JOIN", "LEFT JOIN", "RIGHT JOIN", "CROSS JOIN"]);
            let table = self.table();
            text = match join {
                "CROSS JOIN" => format!("{text} CROSS JOIN {table}"),
                _ => format!("{text} {join} {table} ON {}", self.join_condition()),
            };
        }
        text
    }

    fn table(&mut self) -> String {
        let alias = format!("q{}", self.scope.len());
        let table = self.any_table();
        let text = match self.below(8) {
            0 => format!("(SELECT * FROM {table} WHERE i < {}) AS {alias}", self.below(10)),
            1 => format!("(SELECT DISTINCT i, j, n, x, b, d FROM {table}) AS {alias}"),
            _ => format!("{table} AS {alias}"),
        };
        self.scope.push(alias);
        text
    }

    fn join_condition(&mut self) -> String {
        let last = self.scope.len() - 1;
        let other = self.below(last as u64);
        let column = self.pick(&["i", "j", "x", "d"]);
        let equal = format!("q{last}.{column} = q{other}.{column}");
        if self.below(3) == 0 { format!("{equal} AND {}", self.boolean(1)) } else { equal }
    }

    fn plain(&mut self) -> (Vec<String>, String) {
        let list = (0..1 + self.below(4)).map(|_| self.any(2)).collect();
        (list, String::new())
    }

    fn grouped(&mut self) -> (Vec<String>, String) {
        let keys: Vec<String> = (0..self.below(3)).map(|_| self.any_column()).collect();
        let mut list = keys.clone();
        list.extend((0..1 + self.below(3)).map(|_| self.aggregate()));
        let group = if keys.is_empty() { String::new() } else { format!(" GROUP BY {}", keys.join(", ")) };
        let having =
            if self.below(3) == 0 { format!(" HAVING {} > {}", self.count(), self.below(3)) } else { String::new() };
        (list, format!("{group}{having}"))
    }

    fn count(&mut self) -> String {
        match self.below(3) {
            0 => "count(*)".to_owned(),
            1 => format!("count({})", self.any(1)),
            _ => format!("count(DISTINCT {})", self.any_column()),
        }
    }

    fn aggregate(&mut self) -> String {
        let filter = if self.below(5) == 0 { format!(" FILTER (WHERE {})", self.boolean(1)) } else { String::new() };
        let call = match self.below(12) {
            7 => format!("sum(DISTINCT {})", self.column(ExpressionKind::Int)),
            8 => format!("array_agg({0} ORDER BY {0} DESC)", self.column(ExpressionKind::Int)),
            9 => format!(
                "percentile_disc(0.{}) WITHIN GROUP (ORDER BY {})",
                self.below(10),
                self.column(ExpressionKind::Int)
            ),
            10 => format!("mode() WITHIN GROUP (ORDER BY {})", self.column(ExpressionKind::Date)),
            11 => format!("rank({}) WITHIN GROUP (ORDER BY {})", self.below(20), self.column(ExpressionKind::Int)),
            0 => self.count(),
            1 => format!("sum({})", self.of(ExpressionKind::Int, 1)),
            2 => format!("avg({})", self.of(ExpressionKind::Numeric, 1)),
            3 => format!("min({})", self.of(ExpressionKind::Text, 1)),
            4 => format!("max({})", self.of(ExpressionKind::Date, 1)),
            5 => format!("bool_or({})", self.boolean(1)),
            _ => {
                let text = self.column(ExpressionKind::Text);
                format!("string_agg({text}, ',' ORDER BY {text})")
            }
        };
        call + &filter
    }

    fn any(&mut self, depth: u32) -> String {
        let kind = KINDS[self.below(KINDS.len() as u64) as usize];
        self.of(kind, depth)
    }

    fn any_column(&mut self) -> String {
        let kind = KINDS[self.below(KINDS.len() as u64) as usize];
        self.column(kind)
    }

    fn column(&mut self, kind: ExpressionKind) -> String {
        let alias = self.below(self.scope.len() as u64) as usize;
        let name = match kind {
            ExpressionKind::Int => self.pick(&["i", "j"]),
            ExpressionKind::Numeric => "n",
            ExpressionKind::Text => "x",
            ExpressionKind::Bool => "b",
            ExpressionKind::Date => "d",
        };
        format!("{}.{name}", self.scope[alias])
    }

    fn literal(&mut self, kind: ExpressionKind) -> String {
        match kind {
            _ if self.below(12) == 0 => {
                let name = ["int", "numeric", "text", "boolean", "date"][kind as usize];
                format!("NULL::{name}")
            }
            ExpressionKind::Int => self.below(20).to_string(),
            ExpressionKind::Numeric => format!("{}.{}", self.below(20), self.below(100)),
            ExpressionKind::Text => format!("'{}'", self.pick(&WORDS)),
            ExpressionKind::Bool => (self.below(2) == 0).to_string(),
            ExpressionKind::Date => format!("date '2024-01-{:02}'", 1 + self.below(28)),
        }
    }

    fn of(&mut self, kind: ExpressionKind, depth: u32) -> String {
        if kind == ExpressionKind::Bool {
            return self.boolean(depth);
        }
        if depth == 0 || self.below(3) == 0 {
            return if self.below(4) == 0 { self.literal(kind) } else { self.column(kind) };
        }
        match self.below(9) {
            8 if kind != ExpressionKind::Bool => {
                let (table, column) = (self.pick(&TABLES), COLUMN_OF[kind as usize]);
                let (name, outer) = (self.pick(&["min", "max"]), self.column(ExpressionKind::Int));
                format!("(SELECT {name}(q.{column}) FROM {table} AS q WHERE q.i = {outer})")
            }
            0 => format!("coalesce({}, {})", self.of(kind, depth - 1), self.of(kind, depth - 1)),
            1 => format!(
                "CASE WHEN {} THEN {} ELSE {} END",
                self.boolean(depth - 1),
                self.of(kind, depth - 1),
                self.of(kind, depth - 1)
            ),
            2 => format!("nullif({}, {})", self.of(kind, depth - 1), self.literal(kind)),
            3 => format!("greatest({}, {})", self.of(kind, depth - 1), self.of(kind, depth - 1)),
            _ => self.operation(kind, depth),
        }
    }

    fn operation(&mut self, kind: ExpressionKind, depth: u32) -> String {
        let inner = self.of(kind, depth - 1);
        match kind {
            ExpressionKind::Int => match self.below(6) {
                0 => format!("({inner} + {})", self.of(kind, depth - 1)),
                1 => format!("({inner} - {})", self.of(kind, depth - 1)),
                2 => format!("({inner} * {})", self.below(9)),
                3 => format!("({inner} / {})", 1 + self.below(9)),
                4 => format!("({inner} % {})", 1 + self.below(9)),
                _ => format!("length({})", self.of(ExpressionKind::Text, depth - 1)),
            },
            ExpressionKind::Numeric => match self.below(5) {
                0 => format!("({inner} + {})", self.of(ExpressionKind::Int, depth - 1)),
                1 => format!("({inner} * {})", self.literal(ExpressionKind::Numeric)),
                2 => format!("({inner} / {}.5)", 1 + self.below(9)),
                3 => format!("round({inner}, {})", self.below(3)),
                _ => format!("abs({inner} - 5)"),
            },
            ExpressionKind::Text => match self.below(5) {
                0 => format!("({inner} || {})", self.of(kind, depth - 1)),
                1 => format!("upper({inner})"),
                2 => format!("substr({inner}, {}, {})", 1 + self.below(3), self.below(4)),
                3 => format!("({inner} || {})", self.of(ExpressionKind::Int, depth - 1)),
                _ => format!("({})::text", self.of(ExpressionKind::Numeric, depth - 1)),
            },
            ExpressionKind::Date | ExpressionKind::Bool => format!("({inner} + {})", self.below(30)),
        }
    }

    fn boolean(&mut self, depth: u32) -> String {
        if depth == 0 {
            return self.column(ExpressionKind::Bool);
        }
        let kind = KINDS[self.below(KINDS.len() as u64) as usize];
        let (left, table) = (self.of(kind, depth - 1), self.pick(&TABLES));
        match self.below(12) {
            0 => format!("({} AND {})", self.boolean(depth - 1), self.boolean(depth - 1)),
            1 => format!("({} OR {})", self.boolean(depth - 1), self.boolean(depth - 1)),
            2 => format!("(NOT {})", self.boolean(depth - 1)),
            3 => format!("({left} IS {}NULL)", self.pick(&["", "NOT "])),
            4 => format!("({left} IN ({}, {}))", self.literal(kind), self.literal(kind)),
            5 => format!("({left} BETWEEN {} AND {})", self.literal(kind), self.of(kind, depth - 1)),
            6 => format!(
                "({} LIKE '{}')",
                self.of(ExpressionKind::Text, depth - 1),
                self.pick(&["a%", "%m", "_", "%", "%o_e%", "lo%", "a", "a_b%", "é%"])
            ),
            7 => format!("EXISTS (SELECT 1 FROM {table} AS e WHERE e.i = {})", self.of(ExpressionKind::Int, depth - 1)),
            8 => format!(
                "({} {}IN (SELECT e.j FROM {table} AS e WHERE e.b))",
                self.column(ExpressionKind::Int),
                self.pick(&["", "NOT "])
            ),
            9 => self.decided(),
            10 => self.instants(depth),
            _ => {
                let operator = self.pick(&["=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM"]);
                format!("({left} {operator} {})", self.of(kind, depth - 1))
            }
        }
    }

    /// A comparison of a date with an instant of another type.
    fn instants(&mut self, depth: u32) -> String {
        let date = self.of(ExpressionKind::Date, depth - 1);
        let (operator, day) = (self.pick(&["=", "<>", "<", "<=", ">", ">="]), 1 + self.below(28));
        let time = self.pick(&["00:00", "00:00", "17:30"]);
        let other = match self.below(3) {
            0 => format!("timestamp '2024-01-{day:02} {time}'"),
            1 => format!("timestamptz '2024-01-{day:02} {time}+00'"),
            _ => format!("({}::timestamp + interval '{time}')", self.of(ExpressionKind::Date, depth - 1)),
        };
        match self.below(2) {
            0 => format!("({date} {operator} {other})"),
            _ => format!("({other} {operator} {date})"),
        }
    }

    /// A condition that a constant decides before the division by zero in it is evaluated.
    fn decided(&mut self) -> String {
        let holds =
            self.pick(&["true", "1 = 1", "NOT false", "NULL IS NULL", "1 IN (2, 1)", "true IS TRUE", "'a' LIKE 'a'"]);
        let fails =
            ["false", "1 = 2", "NOT true", "1 IS NULL", "1 IN (2, 3)", "true IS UNKNOWN", "2 NOT BETWEEN 1 AND 3"];
        let fails = self.pick(&fails);
        let column = self.column(ExpressionKind::Int);
        let fault = format!("1 / ({column} - {column}) = 1");
        match self.below(4) {
            0 => format!("({fault} OR {holds})"),
            1 => format!("({fault} AND {fails})"),
            2 => format!("({holds} OR {fault})"),
            _ => format!("(CASE WHEN {fails} THEN {fault} ELSE {column} > 3 END)"),
        }
    }
}
