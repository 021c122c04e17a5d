//! Shapes of queries beyond one SELECT over joined tables: WITH, recursion, set operations, window functions, grouping sets.

use super::{ExpressionKind, KINDS, TABLES, Writer};

/// Columns of every table, and of everything that stands for one.
const COLUMNS: [(&str, ExpressionKind); 6] = [
    ("i", ExpressionKind::Int),
    ("j", ExpressionKind::Int),
    ("n", ExpressionKind::Numeric),
    ("x", ExpressionKind::Text),
    ("b", ExpressionKind::Bool),
    ("d", ExpressionKind::Date),
];

impl Writer<'_> {
    /// A statement of any shape.
    pub(super) fn statement(&mut self) -> String {
        match self.below(19) {
            18 => self.numbered(),
            12 => self.lateral(),
            13 => self.set_returning(),
            14 => self.documents(),
            15 => self.row_comparisons(),
            16 | 17 => self.changes(),
            0 | 1 => self.with(),
            2 | 3 => self.set_operation(),
            4 | 5 => self.windowed(),
            6 => self.grouping_sets(),
            7 => self.windowed_groups(),
            _ => self.select(),
        }
    }

    /// `WITH a AS (…), b AS (…) SELECT …`
    fn with(&mut self) -> String {
        let count = 1 + self.below(3);
        let mut recursive = false;
        let mut parts = Vec::new();
        for number in 0..count {
            let name = format!("c{number}");
            let body = if self.below(4) == 0 {
                recursive = true;
                self.recursion(&name)
            } else {
                self.table_like(2)
            };
            let kept = self.pick(&["", "", "MATERIALIZED ", "NOT MATERIALIZED "]);
            parts.push(format!("{name} (i, j, n, x, b, d) AS {kept}({body})"));
            self.tables.push(name);
        }
        let recursive = if recursive { "RECURSIVE " } else { "" };
        let main = match self.below(4) {
            0 => self.windowed(),
            1 => self.grouping_sets(),
            _ => self.select(),
        };
        self.tables.truncate(TABLES.len() + 1);
        format!("WITH {recursive}{} {main}", parts.join(", "))
    }

    /// A query over itself that ends.
    fn recursion(&mut self, name: &str) -> String {
        let table = self.pick(&TABLES);
        let (all, limit) = (self.pick(&["", " ALL"]), 4 + self.below(5));
        let first = format!("SELECT i, j, n, x, b, d FROM {table} WHERE i < {}", 1 + self.below(3));
        let step = match self.below(3) {
            0 => format!("SELECT {name}.i + 1, j, n, x, b, d FROM {name} WHERE {name}.i < {limit}"),
            1 => format!(
                "SELECT {name}.i + 2, e.j, {name}.n, e.x, e.b, {name}.d FROM {name} JOIN {table} AS e ON e.i = {name}.i WHERE {name}.i < 4"
            ),
            _ => format!(
                "SELECT s.i + 1, s.j, s.n, s.x, s.b, s.d FROM (SELECT * FROM {name} WHERE i < {limit}) AS s WHERE s.b IS NOT NULL"
            ),
        };
        format!("{first} UNION{all} {step}")
    }

    /// A query with the columns of a table.
    fn table_like(&mut self, depth: u32) -> String {
        if depth > 0 && self.below(3) == 0 {
            let (left, right) = (self.table_like(depth - 1), self.table_like(depth - 1));
            let operator = self.pick(&["UNION", "UNION ALL", "INTERSECT", "EXCEPT", "INTERSECT ALL", "EXCEPT ALL"]);
            return format!("({left}) {operator} ({right})");
        }
        let outer = std::mem::take(&mut self.scope);
        let table = self.any_table();
        self.scope.push("e".to_owned());
        let list: Vec<String> = COLUMNS
            .iter()
            .map(|(name, kind)| match self.below(3) {
                0 if *kind == ExpressionKind::Numeric => format!("round({}, 2) AS n", self.of(*kind, 1)),
                0 => format!("{} AS {name}", self.of(*kind, 1)),
                _ => format!("e.{name}"),
            })
            .collect();
        let filter = if self.below(2) == 0 { format!(" WHERE {}", self.boolean(1)) } else { String::new() };
        let distinct = self.pick(&["", "", "DISTINCT "]);
        let tail = match self.below(5) {
            0 => format!(" ORDER BY 1, 2, 3, 4, 5, 6 LIMIT {}", 1 + self.below(30)),
            _ => String::new(),
        };
        self.scope = outer;
        format!("SELECT {distinct}{} FROM {table} AS e{filter}{tail}", list.join(", "))
    }

    /// UNION and the like of queries whose columns have the same types.
    fn set_operation(&mut self) -> String {
        let kinds: Vec<ExpressionKind> =
            (0..1 + self.below(3)).map(|_| KINDS[self.below(KINDS.len() as u64) as usize]).collect();
        let body = self.operands(&kinds, 2);
        let order: Vec<String> = (1..=kinds.len()).map(|column| format!("{column}{}", self.direction())).collect();
        let limit = if self.below(3) == 0 { format!(" LIMIT {}", self.below(20)) } else { String::new() };
        format!("{body} ORDER BY {}{limit}", order.join(", "))
    }

    fn operands(&mut self, kinds: &[ExpressionKind], depth: u32) -> String {
        if depth == 0 || self.below(3) == 0 {
            return self.operand(kinds);
        }
        let (left, right) = (self.operands(kinds, depth - 1), self.operands(kinds, depth - 1));
        let operator = self.pick(&["UNION", "UNION ALL", "INTERSECT", "EXCEPT", "INTERSECT ALL", "EXCEPT ALL"]);
        format!("({left}) {operator} ({right})")
    }

    fn operand(&mut self, kinds: &[ExpressionKind]) -> String {
        let table = self.any_table();
        self.scope.push("e".to_owned());
        let mut list = Vec::new();
        for kind in kinds {
            list.push(match kind {
                ExpressionKind::Numeric => format!("round({}, 1)", self.of(*kind, 1)),
                kind => self.of(*kind, 1),
            });
        }
        let filter = if self.below(2) == 0 { format!(" WHERE {}", self.boolean(1)) } else { String::new() };
        self.scope.clear();
        format!("SELECT {} FROM {table} AS e{filter}", list.join(", "))
    }

    /// Window functions over one table.
    fn windowed(&mut self) -> String {
        // Which of two equal rows goes with which result is free: there are none.
        let table = format!("(SELECT DISTINCT i, j, n, x, b, d FROM {})", self.any_table());
        self.scope.push("e".to_owned());
        let mut list = vec![self.any_column()];
        for _ in 0..1 + self.below(3) {
            list.push(self.window_call());
        }
        let filter = if self.below(2) == 0 { format!(" WHERE {}", self.boolean(1)) } else { String::new() };
        let order: Vec<String> = (1..=list.len()).map(|column| column.to_string()).collect();
        self.scope.clear();
        format!("SELECT {} FROM {table} AS e{filter} ORDER BY {}", list.join(", "), order.join(", "))
    }

    /// All columns in some order: rows that are equal in it are equal.
    pub(super) fn total_order(&mut self) -> String {
        let start = self.below(6) as usize;
        let keys: Vec<String> =
            (0..6).map(|k| format!("e.{}{}", COLUMNS[(start + k) % 6].0, self.direction())).collect();
        keys.join(", ")
    }

    fn window_call(&mut self) -> String {
        let partition = match self.below(3) {
            0 => String::new(),
            1 => format!("PARTITION BY {} ", self.any_column()),
            _ => format!("PARTITION BY {}, {} ", self.any_column(), self.column(ExpressionKind::Bool)),
        };
        let total = self.total_order();
        match self.below(9) {
            0 => {
                let name = self.pick(&["rank()", "dense_rank()", "percent_rank()", "cume_dist()"]);
                let key = self.any_column();
                format!("{name} OVER ({partition}ORDER BY {key}{})", self.direction())
            }
            1 => format!("row_number() OVER ({partition}ORDER BY {total})"),
            2 => format!("ntile({}) OVER ({partition}ORDER BY {total})", 1 + self.below(6)),
            3 => {
                let kind = KINDS[self.below(KINDS.len() as u64) as usize];
                let (name, value) = (self.pick(&["lag", "lead"]), self.column(kind));
                let rest = match self.below(3) {
                    0 => String::new(),
                    1 => format!(", {}", self.below(4)),
                    _ => format!(", {}, {}", self.below(4), self.literal(kind)),
                };
                format!("{name}({value}{rest}) OVER ({partition}ORDER BY {total})")
            }
            4 => {
                let value = self.any_column();
                let call = match self.below(3) {
                    0 => format!("first_value({value})"),
                    1 => format!("last_value({value})"),
                    _ => format!("nth_value({value}, {})", 1 + self.below(4)),
                };
                let frame = self.frame("ROWS");
                format!("{call} OVER ({partition}ORDER BY {total}{frame})")
            }
            5 => {
                let (call, frame) = (self.unordered(), self.frame("ROWS"));
                format!("{call} OVER ({partition}ORDER BY {total}{frame})")
            }
            6 => {
                let (call, key, frame) = (self.unordered(), self.any_column(), self.frame("GROUPS"));
                format!("{call} OVER ({partition}ORDER BY {key}{}{frame})", self.direction())
            }
            7 => {
                let call = self.unordered();
                let key = self.pick(&["e.i", "e.j", "e.n"]);
                let frame = self.frame("RANGE");
                format!("{call} OVER ({partition}ORDER BY {key}{}{frame})", self.direction())
            }
            _ => {
                let call = self.unordered();
                let order = if self.below(2) == 0 { format!("ORDER BY {}", self.any_column()) } else { String::new() };
                format!("{call} OVER ({partition}{order})")
            }
        }
    }

    /// An aggregate that does not show the order of its rows.
    fn unordered(&mut self) -> String {
        let call = match self.below(8) {
            0 => "count(*)".to_owned(),
            1 => format!("count({})", self.any_column()),
            2 => format!("sum({})", self.column(ExpressionKind::Int)),
            3 => format!("avg({})", self.column(ExpressionKind::Int)),
            4 => format!("sum({})", self.column(ExpressionKind::Numeric)),
            5 => format!("min({})", self.column(ExpressionKind::Text)),
            6 => format!("max({})", self.column(ExpressionKind::Date)),
            _ => format!("bool_and({})", self.column(ExpressionKind::Bool)),
        };
        if self.below(4) == 0 { format!("{call} FILTER (WHERE {})", self.boolean(1)) } else { call }
    }

    fn frame(&mut self, mode: &str) -> String {
        let (a, b) = (self.below(4), self.below(4));
        let bounds = match self.below(8) {
            0 => format!("BETWEEN {} PRECEDING AND {} FOLLOWING", a, b),
            1 => format!("BETWEEN UNBOUNDED PRECEDING AND {b} FOLLOWING"),
            2 => format!("BETWEEN {a} PRECEDING AND UNBOUNDED FOLLOWING"),
            3 => format!("{a} PRECEDING"),
            4 => format!("BETWEEN {} PRECEDING AND {} PRECEDING", a.max(b), a.min(b)),
            5 => format!("BETWEEN {} FOLLOWING AND {} FOLLOWING", a.min(b), a.max(b)),
            6 => "BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING".to_owned(),
            _ => "UNBOUNDED PRECEDING".to_owned(),
        };
        let exclude =
            self.pick(&["", "", "", " EXCLUDE CURRENT ROW", " EXCLUDE GROUP", " EXCLUDE TIES", " EXCLUDE NO OTHERS"]);
        // Which of two equal rows is the current one shows when its peers are taken out one by one.
        let exclude = if mode == "ROWS" && exclude.contains("TIES") { "" } else { exclude };
        format!(" {mode} {bounds}{exclude}")
    }

    /// ROLLUP, CUBE and lists of sets.
    fn grouping_sets(&mut self) -> String {
        let table = self.any_table();
        self.scope.push("e".to_owned());
        let mut keys: Vec<String> = Vec::new();
        for _ in 0..1 + self.below(3) {
            // PostgreSQL takes a subquery that is written twice for two.
            let simple: Vec<&String> = keys.iter().filter(|key| !key.contains("SELECT")).collect();
            let key = match self.below(8) {
                0 => format!("({} + {})", self.below(5), 10 * (1 + keys.len())),
                1 => self.any(1),
                2 if !simple.is_empty() => simple[self.below(simple.len() as u64) as usize].clone(),
                _ => self.any_column(),
            };
            keys.push(key);
        }
        // A literal alone is the number of a column.
        keys.iter_mut().filter(|key| !key.contains(['.', '('])).for_each(|key| *key = format!("coalesce({key})"));
        let all = keys.join(", ");
        let group = match self.below(5) {
            0 => format!("ROLLUP ({all})"),
            1 => format!("CUBE ({all})"),
            2 => format!("GROUPING SETS (({all}), ({}), ())", keys[0]),
            3 => format!("{}, ROLLUP ({all})", self.any_column()),
            _ => format!("GROUPING SETS (CUBE ({}), ROLLUP ({all}))", keys[0]),
        };
        let mut list = keys.clone();
        list.push(format!("grouping({all})"));
        list.extend((0..1 + self.below(2)).map(|_| self.aggregate()));
        if self.below(3) == 0 && !keys[0].contains("SELECT") {
            // What is looked for is of the group.
            let (direct, column) = (&keys[0], self.column(ExpressionKind::Int));
            list.push(format!("rank(length(({direct})::text)) WITHIN GROUP (ORDER BY {column})"));
        }
        let filter = if self.below(2) == 0 { format!(" WHERE {}", self.boolean(1)) } else { String::new() };
        let having =
            if self.below(4) == 0 { format!(" HAVING {} >= {}", self.count(), self.below(3)) } else { String::new() };
        let columns: Vec<String> = (1..=list.len()).map(|column| format!("c{column}")).collect();
        let outside = match self.below(4) {
            0 => format!(" WHERE c1 IS {}NULL", self.pick(&["", "NOT "])),
            1 => " WHERE c1 = c1".to_owned(),
            _ => String::new(),
        };
        self.scope.clear();
        // PostgreSQL takes a constant for one in all sets when it sorts groups: the rows are sorted further out.
        format!(
            "SELECT * FROM (SELECT {} FROM {table} AS e{filter} GROUP BY {group}{having}) AS g ({}){outside} ORDER BY {}",
            list.join(", "),
            columns.join(", "),
            columns.join(", ")
        )
    }

    /// Window functions over groups.
    fn windowed_groups(&mut self) -> String {
        let table = self.any_table();
        self.scope.push("e".to_owned());
        let (key, aggregate) = (self.any_column(), format!("sum({})", self.column(ExpressionKind::Int)));
        let call = match self.below(4) {
            0 => format!("rank() OVER (ORDER BY {aggregate}{})", self.direction()),
            1 => format!("sum(count(*)) OVER (ORDER BY {key}{})", self.direction()),
            2 => format!("lag({aggregate}) OVER (ORDER BY {key})"),
            _ => format!(
                "max({aggregate}) OVER (ORDER BY count(*) ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)"
            ),
        };
        let filter = if self.below(2) == 0 { format!(" WHERE {}", self.boolean(1)) } else { String::new() };
        self.scope.clear();
        format!("SELECT {key}, {aggregate}, {call} FROM {table} AS e{filter} GROUP BY {key} ORDER BY 1, 2, 3")
    }

    pub(super) fn any_table(&mut self) -> String {
        let at = self.below(self.tables.len() as u64) as usize;
        self.tables[at].clone()
    }
}
