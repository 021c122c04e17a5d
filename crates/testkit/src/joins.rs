//! Random joins of small tables with NULLs: trees of inner and outer joins, subqueries and LATERAL, any conditions, subqueries in
//! subqueries that look at every level around them, rows as values, changes.
//!
//! The tables are small and the values few, so that every kind of match, of non-match and of NULL occurs in most queries.
//! Every query orders its rows by all columns, so that two servers must agree on every byte.

use crate::random::Random;

const TABLES: [&str; 4] = ["a", "b", "c", "d"];
const COLUMNS: [&str; 3] = ["k", "v", "w"];

/// Values of columns: 0 to this.
const VALUES: u64 = 4;

/// Statements that make the tables `a` to `d`, with indexes that tempt the planner.
pub fn tables(random: &mut Random) -> Vec<String> {
    let mut statements = Vec::new();
    for table in TABLES {
        statements.push(format!("CREATE TABLE {table} (k int, v int, w int)"));
        let rows: Vec<String> = (0..random.below(9)).map(|_| row(random)).collect();
        if !rows.is_empty() {
            statements.push(format!("INSERT INTO {table} VALUES {}", rows.join(", ")));
        }
    }
    statements.push("CREATE TABLE e (k int PRIMARY KEY, v int, w int)".to_owned());
    statements.push("INSERT INTO e VALUES (0, 1, 2), (1, NULL, 0), (3, 3, NULL), (4, 4, 4)".to_owned());
    statements.push("CREATE INDEX ON a (k)".to_owned());
    statements.push("CREATE INDEX ON b (v, k)".to_owned());
    statements.push("CREATE INDEX ON c (w DESC)".to_owned());
    // One more of several columns, in any directions, so that ranges, lists and orders of all kinds have one.
    for table in TABLES {
        let mut key = |column: &str| {
            let direction = random.pick(&["", "", " DESC", " NULLS FIRST", " DESC NULLS LAST"]);
            format!("{column}{direction}")
        };
        let columns = match key("") {
            first if first.is_empty() => [key("k"), key("v"), key("w")],
            _ => [key("w"), key("k"), key("v")],
        };
        statements.push(format!("CREATE INDEX ON {table} ({})", columns.join(", ")));
    }
    if random.below(2) == 0 {
        statements.extend(TABLES.map(|table| format!("ANALYZE {table}")));
    }
    statements
}

fn row(random: &mut Random) -> String {
    let value = |random: &mut Random| match random.below(5) {
        0 => "NULL".to_owned(),
        _ => random.below(VALUES + 1).to_string(),
    };
    format!("({}, {}, {})", value(random), value(random), value(random))
}

/// A query over the tables of [`tables`].
pub fn query(random: &mut Random) -> String {
    let mut writer = Writer { random, names: 0 };
    writer.statement()
}

struct Writer<'a> {
    random: &'a mut Random,
    /// Aliases handed out.
    names: usize,
}

/// A FROM item and the aliases in it.
struct Tree {
    text: String,
    aliases: Vec<String>,
}

impl Writer<'_> {
    fn below(&mut self, limit: u64) -> u64 {
        self.random.below(limit)
    }

    fn pick<'t>(&mut self, of: &[&'t str]) -> &'t str {
        self.random.pick(of)
    }

    fn statement(&mut self) -> String {
        if self.below(5) == 0 { self.change() } else { self.query() }
    }

    /// A change of rows that a condition on subqueries chooses, and the rows there are then; nothing stays.
    fn change(&mut self) -> String {
        let (table, alias) = (self.pick(&TABLES), self.alias());
        let mut scope = vec![alias.clone()];
        let other = Tree { text: self.table().to_owned(), aliases: vec![self.alias()] };
        let using = self.below(2) == 0;
        if using {
            scope.extend(other.aliases.clone());
        }
        let condition = self.linked(&scope, 2);
        let (name, source) = (&other.aliases[0], &other.text);
        let change = match (self.below(3), using) {
            (0, false) => format!("DELETE FROM {table} AS {alias} WHERE {condition}"),
            (0, true) => format!("DELETE FROM {table} AS {alias} USING {source} AS {name} WHERE {condition}"),
            (1, false) => format!("UPDATE {table} AS {alias} SET w = w + 10 WHERE {condition}"),
            (1, true) => format!("UPDATE {table} AS {alias} SET w = w + 10 FROM {source} AS {name} WHERE {condition}"),
            (_, false) => format!(
                "MERGE INTO {table} AS {alias} USING (SELECT 1) AS one ON {condition} \
                 WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT VALUES (7, 7, 7)"
            ),
            (_, true) => {
                let key = self.pick(&COLUMNS);
                format!(
                    "MERGE INTO {table} AS {alias} USING (SELECT DISTINCT ON ({key}) * FROM {source} ORDER BY {key}, k, v, w) AS {name} \
                     ON {alias}.{key} = {name}.{key} WHEN MATCHED AND {condition} THEN UPDATE SET w = {alias}.w + 10 \
                     WHEN NOT MATCHED THEN INSERT VALUES ({name}.k, {name}.v, {name}.w)"
                )
            }
        };
        format!("BEGIN; {change}; SELECT k, v, w FROM {table} ORDER BY 1, 2, 3; ROLLBACK")
    }

    fn query(&mut self) -> String {
        let rels = 2 + self.below(3) as usize;
        let (from, scope) = match self.below(4) {
            // FROM with a comma; the second part may see the first.
            0 => {
                let first = self.tree(rels / 2, &[]);
                let second = self.tree(rels - rels / 2, &first.aliases);
                let scope = [first.aliases, second.aliases].concat();
                (format!("{}, {}", first.text, second.text), scope)
            }
            _ => {
                let tree = self.tree(rels, &[]);
                (tree.text, tree.aliases)
            }
        };
        let filter = match self.below(3) {
            0 => String::new(),
            _ => format!(" WHERE {}", self.condition(&scope, 3)),
        };
        if self.below(6) == 0 {
            let alias = &scope[self.below(scope.len() as u64) as usize];
            let column = self.pick(&COLUMNS);
            let other = &scope[self.below(scope.len() as u64) as usize];
            return format!(
                "SELECT {alias}.{column}, count(*), sum({0}.v), count({0}.k), {1} FROM {from}{filter} GROUP BY 1 ORDER BY 1, 2, 3, 4",
                scope[0],
                self.whole_rows(other)
            );
        }
        let mut columns: Vec<String> =
            scope.iter().flat_map(|alias| COLUMNS.map(|column| format!("{alias}.{column}"))).collect();
        let mut order: Vec<String> = (1..=columns.len()).map(|n| n.to_string()).collect();
        if self.below(3) == 0 {
            let alias = &scope[self.below(scope.len() as u64) as usize];
            let value = self.whole_row(alias);
            // A row of NULLs and none differ in this alone.
            order.push(format!("({value})::text"));
            columns.push(value);
        }
        // Any of the columns may come first; under LIMIT equal rows are all that may be cut off.
        for at in 0..order.len() {
            let other = self.below(order.len() as u64) as usize;
            order.swap(at, other);
        }
        if self.below(2) == 0 {
            let direction = self.pick(&[" DESC", " NULLS FIRST", " DESC NULLS LAST"]);
            order[0] += direction;
        }
        let limit = match self.below(3) {
            0 => format!(" LIMIT {} OFFSET {}", self.below(6), self.below(3)),
            _ => String::new(),
        };
        let distinct = self.pick(&["", "", "", "DISTINCT "]);
        let order = order.join(", ");
        if distinct.is_empty() || !order.contains("::text") {
            return format!("SELECT {distinct}{} FROM {from}{filter} ORDER BY {order}{limit}", columns.join(", "));
        }
        format!("SELECT {} FROM {from}{filter} ORDER BY {order}{limit}", columns.join(", "))
    }

    /// A value made of a row as a whole: on the null side of an outer join there is none.
    fn whole_row(&mut self, alias: &str) -> String {
        let value = self.pick(&[
            "#::text",
            "# IS NULL",
            "# IS NOT NULL",
            "# IS DISTINCT FROM NULL",
            "ROW(#) IS NOT DISTINCT FROM NULL",
            "to_jsonb(#)",
            "row_to_json(#)",
            "coalesce(#::text, 'none')",
            "num_nulls(#)",
            "ROW(#, 1)::text",
            "ROW(#) IS NULL",
            "ROW(#.k, #) IS NOT NULL",
            "ROW(#.k, ROW(#.v)) IS NULL",
            "(#).k",
            "# = #",
            "(SELECT #)::text",
            "(SELECT count(#) FROM e)",
            "(SELECT s.r IS NULL FROM (SELECT # AS r) AS s)",
            "to_json(ARRAY[#])",
            "(CASE WHEN # IS NULL THEN NULL ELSE # END)::text",
            "jsonb_build_object('r', #)",
            "nullif(#, #)::text",
        ]);
        value.replace('#', alias)
    }

    /// An aggregate over rows as a whole.
    fn whole_rows(&mut self, alias: &str) -> String {
        let value = self.pick(&[
            "count(#)",
            "count(DISTINCT #)",
            "json_agg(# ORDER BY #)",
            "(array_agg(# ORDER BY #.k, #.v, #.w, #::text))[1]::text",
        ]);
        value.replace('#', alias)
    }

    fn alias(&mut self) -> String {
        self.names += 1;
        format!("t{}", self.names)
    }

    fn table(&mut self) -> &'static str {
        match self.below(5) {
            4 => "e",
            n => TABLES[n as usize],
        }
    }

    /// A tree of `rels` relations; `outer` may be named by LATERAL parts.
    fn tree(&mut self, rels: usize, outer: &[String]) -> Tree {
        if rels <= 1 {
            return self.leaf(outer);
        }
        let left_rels = 1 + self.below(rels as u64 - 1) as usize;
        let left = self.tree(left_rels, outer);
        let kind = self.pick(&["JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "CROSS JOIN"]);
        // The right side may look at the left one only where every row of it is there first.
        let visible = match kind {
            "JOIN" | "LEFT JOIN" | "CROSS JOIN" => [outer, &left.aliases].concat(),
            _ => Vec::new(),
        };
        let right = self.tree(rels - left_rels, &visible);
        let text = match kind {
            "CROSS JOIN" => format!("{} CROSS JOIN {}", left.text, parenthesized(&right)),
            "FULL JOIN" => {
                // PostgreSQL needs an equality to hash by.
                let (l, r) = (self.column_of(&left.aliases), self.column_of(&right.aliases));
                let more = match self.below(3) {
                    0 => format!(" AND {}", self.simple(&[left.aliases.clone(), right.aliases.clone()].concat())),
                    _ => String::new(),
                };
                format!("{} FULL JOIN {} ON {l} = {r}{more}", left.text, parenthesized(&right))
            }
            kind => {
                let on = self.on(&left.aliases, &right.aliases);
                format!("{} {kind} {} ON {on}", left.text, parenthesized(&right))
            }
        };
        Tree { text, aliases: [left.aliases, right.aliases].concat() }
    }

    fn leaf(&mut self, outer: &[String]) -> Tree {
        let (alias, table) = (self.alias(), self.table());
        let inner = [alias.clone()];
        let text = match self.below(15) {
            0 => format!("(SELECT * FROM {table} AS {alias} WHERE {}) AS {alias}", self.simple(&inner)),
            1 => format!("(SELECT DISTINCT k, v, w FROM {table}) AS {alias}"),
            2 => {
                let having = self.pick(&["", " HAVING k > 1", " HAVING count(*) > 1 AND k IS NOT NULL"]);
                format!("(SELECT k, max(v) AS v, count(*) AS w FROM {table} GROUP BY k{having}) AS {alias}")
            }
            3 => format!("(VALUES (1, 2, 3), (NULL, 0, 1), (2, NULL, 2)) AS {alias} (k, v, w)"),
            4 if !outer.is_empty() => {
                let scope = [outer, &inner].concat();
                format!("LATERAL (SELECT * FROM {table} AS {alias} WHERE {}) AS {alias}", self.compare(&scope))
            }
            5 => format!("(SELECT k, v, w FROM {table} ORDER BY k, v, w LIMIT 3) AS {alias}"),
            6 => {
                let operator = self.pick(&["UNION ALL", "UNION", "INTERSECT", "EXCEPT"]);
                format!("(SELECT k, v, w FROM {table} {operator} SELECT v, w, k FROM e) AS {alias}")
            }
            7 => {
                let call = self.pick(&["count(*)", "sum(w)", "max(v)", "rank()"]);
                format!("(SELECT k, v, ({call} OVER (PARTITION BY k, v ORDER BY w))::int AS w FROM {table}) AS {alias}")
            }
            8 => format!("(SELECT DISTINCT ON (k) k, v, w FROM {table} ORDER BY k, v, w) AS {alias}"),
            _ => format!("{table} AS {alias}"),
        };
        Tree { text, aliases: vec![alias] }
    }

    fn on(&mut self, left: &[String], right: &[String]) -> String {
        let both = [left, right].concat();
        let equal = format!("{} = {}", self.column_of(left), self.column_of(right));
        match self.below(10) {
            0 => self.pick(&["true", "false", "NULL"]).to_owned(),
            1 => self.condition(&both, 1),
            2 => format!("{equal} OR {}", self.simple(&both)),
            3 | 4 => format!("{equal} AND {}", self.condition(&both, 1)),
            5 => format!("{equal} AND {} = {}", self.column_of(left), self.column_of(right)),
            _ => equal,
        }
    }

    fn column_of(&mut self, aliases: &[String]) -> String {
        let alias = &aliases[self.below(aliases.len() as u64) as usize];
        format!("{alias}.{}", self.pick(&COLUMNS))
    }

    fn compare(&mut self, aliases: &[String]) -> String {
        let operator = self.pick(&["=", "=", "=", "<", ">=", "<>", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"]);
        format!("{} {operator} {}", self.column_of(aliases), self.column_of(aliases))
    }

    fn simple(&mut self, aliases: &[String]) -> String {
        let column = self.column_of(aliases);
        let number = |writer: &mut Self| match writer.below(8) {
            0 => "NULL".to_owned(),
            _ => writer.below(VALUES + 1).to_string(),
        };
        match self.below(12) {
            7 => {
                let alias = &aliases[self.below(aliases.len() as u64) as usize];
                let (pair, operator) = (self.pair(alias), self.pick(&["<", "<=", ">", ">="]));
                format!("({pair}) {operator} ({}, {})", number(self), number(self))
            }
            8 => {
                let alias = &aliases[self.below(aliases.len() as u64) as usize];
                let pairs: Vec<String> =
                    (0..1 + self.below(3)).map(|_| format!("({}, {})", number(self), number(self))).collect();
                format!("({}) {}IN ({})", self.pair(alias), self.pick(&["", "", "NOT "]), pairs.join(", "))
            }
            9 => format!("{column} BETWEEN {} AND {}", self.below(VALUES), self.below(VALUES)),
            10 => format!("{column} = ANY ('{{{}, {}, {}}}'::int[])", number(self), number(self), number(self)),
            11 => {
                let alias = &aliases[self.below(aliases.len() as u64) as usize];
                let [first, second] = [number(self), number(self)];
                format!(
                    "({alias}.k = {first} AND {alias}.v > {second} OR {alias}.w = {second} OR {alias}.k IS NULL AND {alias}.w < {first})"
                )
            }
            0 => format!("{column} IS NULL"),
            1 => format!("{column} IS NOT NULL"),
            2 => format!("{column} IN ({}, {})", self.below(VALUES), self.below(VALUES)),
            3 => format!("{column} {} {}", self.pick(&["<", ">", "<>"]), self.below(VALUES)),
            4 => format!("coalesce({column}, {}) = {}", self.below(VALUES), self.below(VALUES)),
            5 => format!("{column} = {}", self.below(VALUES)),
            _ => self.compare(aliases),
        }
    }

    /// Two columns of one table.
    fn pair(&mut self, alias: &str) -> String {
        let (first, second) = (self.pick(&COLUMNS), self.pick(&COLUMNS));
        format!("{alias}.{first}, {alias}.{second}")
    }

    fn condition(&mut self, aliases: &[String], depth: u32) -> String {
        if depth == 0 {
            return self.simple(aliases);
        }
        match self.below(9) {
            0 => format!("({} OR {})", self.condition(aliases, depth - 1), self.condition(aliases, depth - 1)),
            1 | 2 => format!("({} AND {})", self.condition(aliases, depth - 1), self.condition(aliases, depth - 1)),
            3 => format!("NOT ({})", self.condition(aliases, depth - 1)),
            4..=6 => self.linked(aliases, depth),
            _ => self.simple(aliases),
        }
    }

    /// A condition on a subquery; what is in it may look at every level around it, and be such a condition again.
    fn linked(&mut self, aliases: &[String], depth: u32) -> String {
        let (alias, table) = (self.alias(), self.table());
        let scope = [aliases, std::slice::from_ref(&alias)].concat();
        let inside = |writer: &mut Self| match writer.below(3) {
            0 if depth > 0 => writer.linked(&scope, depth - 1),
            1 if depth > 0 => writer.condition(&scope, depth - 1),
            _ => writer.simple(&scope),
        };
        let (column, not) = (self.pick(&COLUMNS), self.pick(&["", "NOT "]));
        let outer = self.column_of(aliases);
        match self.below(7) {
            5 => {
                let (left, right) = (self.column_of(aliases), self.pair(&alias));
                let more = if self.below(2) == 0 { format!(" WHERE {}", inside(self)) } else { String::new() };
                format!("({outer}, {left}) {not}IN (SELECT {right} FROM {table} AS {alias}{more})")
            }
            6 => {
                let (joined, other) = (self.alias(), self.table());
                let both = [scope.as_slice(), std::slice::from_ref(&joined)].concat();
                let (tied, more) = (self.column_of(aliases), self.simple(&both));
                let kind = self.pick(&["JOIN", "LEFT JOIN"]);
                format!(
                    "{not}EXISTS (SELECT 1 FROM {table} AS {alias} {kind} {other} AS {joined} ON {joined}.k = {alias}.v \
                     WHERE {alias}.{column} = {tied} AND {more})"
                )
            }
            0 | 1 => {
                let (other, more) = (self.column_of(&scope), inside(self));
                let tied = if self.below(3) == 0 { String::new() } else { format!("{alias}.{column} = {other} AND ") };
                format!("{not}EXISTS (SELECT 1 FROM {table} AS {alias} WHERE {tied}{more})")
            }
            2 => format!("{outer} {not}IN (SELECT {alias}.{column} FROM {table} AS {alias})"),
            3 => {
                // What is looked for may come from two levels.
                let value = match self.below(3) {
                    0 => format!("coalesce({outer}, {})", self.column_of(aliases)),
                    _ => outer,
                };
                format!("{value} {not}IN (SELECT {alias}.{column} FROM {table} AS {alias} WHERE {})", inside(self))
            }
            _ => {
                let (tied, more) = (self.column_of(aliases), inside(self));
                format!(
                    "{outer} >= (SELECT count(*) FROM {table} AS {alias} WHERE {alias}.{column} = {tied} AND {more})"
                )
            }
        }
    }
}

fn parenthesized(tree: &Tree) -> String {
    if tree.aliases.len() > 1 { format!("({})", tree.text) } else { tree.text.clone() }
}
