//! What a random statement reads: tables and subqueries joined along links, and what is demanded of them.

use super::catalog::{Link, Table, ValueKind};
use super::terms::{Col, Maker};

/// No more rows than this come out of a join before conditions, as far as can be told.
const MOST_ROWS: f64 = 2e6;
/// How many pairs of rows a subquery for each row of the others may look at without an index.
const MOST_PAIRS: f64 = 3e6;

/// A relation of a FROM.
#[derive(Clone, Debug)]
pub struct Rel {
    /// The table whose columns it has, in order; `None` if it was computed.
    pub table: Option<usize>,
    /// Its columns.
    pub columns: Vec<Col>,
    /// What tells its rows apart.
    pub key: Vec<String>,
}

/// A FROM.
#[derive(Clone, Debug)]
pub struct Source {
    /// The text behind FROM.
    pub text: String,
    /// What it has.
    pub rels: Vec<Rel>,
    /// About how many rows come out of it.
    pub rows: f64,
}

impl Source {
    /// All columns.
    pub fn columns(&self) -> Vec<Col> {
        self.rels.iter().flat_map(|rel| rel.columns.iter().cloned()).collect()
    }

    /// What tells its rows apart: a total order of them.
    pub fn key(&self) -> String {
        let all: Vec<&str> = self.rels.iter().flat_map(|rel| rel.key.iter().map(String::as_str)).collect();
        all.join(", ")
    }

    /// Every column may be NULL now.
    fn weaken(&mut self) {
        self.rels.iter_mut().flat_map(|rel| &mut rel.columns).for_each(|column| column.nullable = true);
    }
}

/// How a table is joined to one that is there.
struct Step {
    /// The relation that is there.
    at: usize,
    link: Link,
    /// Whether the new table is the one that refers: several rows of it have the same partner.
    is_child: bool,
}

impl Maker<'_> {
    /// A table; large ones more often.
    pub fn table(&mut self) -> usize {
        let weight = |table: &Table| (table.rows as f64).powf(0.6) as i64 + 5;
        let all: i64 = self.catalog.tables.iter().map(weight).sum();
        let mut left = self.rng.uniform(0, all - 1);
        for (at, table) in self.catalog.tables.iter().enumerate() {
            left -= weight(table);
            if left < 0 {
                return at;
            }
        }
        0
    }

    /// The table under a new name: its columns, and its text.
    pub fn rel(&mut self, table: usize) -> (Rel, String) {
        let (name, known) = (self.name(), &self.catalog.tables[table]);
        let column = |(at, column): (usize, &super::catalog::Column)| Col {
            text: format!("{name}.{}", column.name),
            kind: column.kind,
            nullable: column.nullable,
            source: Some((table, at)),
        };
        let columns: Vec<Col> = known.columns.iter().enumerate().map(column).collect();
        let key = known.key.iter().map(|&at| columns[at].text.clone()).collect();
        (Rel { table: Some(table), columns, key }, format!("{} AS {name}", known.name))
    }

    /// A FROM with one table.
    pub fn single(&mut self, table: usize) -> Source {
        let (rel, text) = self.rel(table);
        Source { text, rels: vec![rel], rows: self.catalog.tables[table].rows as f64 }
    }

    /// A FROM with this many tables, or as many as are linked.
    pub fn joined(&mut self, count: i64) -> Source {
        let root = self.table();
        let mut source = self.single(root);
        if self.rng.percent(12) {
            source.text = self.narrowed(root, &source.text, &source.rels[0]);
        }
        for _ in 1..count {
            let Some(step) = self.step(&source) else { break };
            self.join(&mut source, &step);
        }
        source
    }

    /// As many as statements have: mostly few.
    pub fn any_source(&mut self) -> Source {
        let count = *self.one(&[1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 4, 5]);
        self.joined(count)
    }

    /// The table below a condition, in a subquery with the same name.
    fn narrowed(&mut self, table: usize, text: &str, rel: &Rel) -> String {
        let name = text.rsplit(' ').next().unwrap_or_default();
        let condition = self.condition(&rel.columns);
        format!("(SELECT * FROM {} AS {name} WHERE {condition}) AS {name}", self.catalog.tables[table].name)
    }

    /// A link of one of the tables that does not multiply rows too much.
    fn step(&mut self, source: &Source) -> Option<Step> {
        let mut all = Vec::new();
        for (at, rel) in source.rels.iter().enumerate() {
            for link in &self.catalog.links {
                if rel.table == Some(link.from) {
                    all.push(Step { at, link: link.clone(), is_child: false });
                }
                if rel.table == Some(link.to) && source.rows * self.children(link, source) <= MOST_ROWS {
                    all.push(Step { at, link: link.clone(), is_child: true });
                }
            }
        }
        let count = all.len() as i64;
        (count > 0).then(|| all.swap_remove(self.rng.uniform(0, count - 1) as usize))
    }

    /// How many rows refer to one of the other table: those to which many refer are frequent if rows that refer were joined before.
    fn children(&self, link: &Link, source: &Source) -> f64 {
        let rows = |table: usize| self.catalog.tables[table].rows as f64;
        match source.rels.len() {
            1 => (rows(link.from) / rows(link.to)).max(1.0),
            _ => link.siblings,
        }
    }

    /// Whether a subquery may be computed for each of so many rows.
    pub fn is_lookup(&self, table: usize, columns: &[usize], outer: f64) -> bool {
        let known = &self.catalog.tables[table];
        known.has_index_on(columns) || outer * known.rows as f64 <= MOST_PAIRS
    }

    fn join(&mut self, source: &mut Source, step: &Step) {
        let (link, there) = (&step.link, source.rels[step.at].clone());
        let form = self.rng.uniform(1, 100);
        if step.is_child && form <= 25 {
            return self.join_grouped(source, link, &there);
        }
        if step.is_child && form <= 40 && self.is_lookup(link.from, &link.columns, source.rows) {
            return self.join_lateral(source, link, &there);
        }
        let (table, own, other) = match step.is_child {
            true => (link.from, &link.columns, &link.to_columns),
            false => (link.to, &link.to_columns, &link.columns),
        };
        let (mut rel, mut text) = self.rel(table);
        if form > 90 {
            text = self.narrowed(table, &text, &rel);
        }
        let mut on = pairs(&rel, own, &there, other);
        let kind = match self.rng.uniform(1, 100) {
            1..=52 => "JOIN",
            53..=86 => "LEFT JOIN",
            87..=94 => "RIGHT JOIN",
            _ => "FULL JOIN",
        };
        if kind == "LEFT JOIN" && self.rng.percent(25) {
            on = format!("{on} AND {}", self.condition(&rel.columns));
        }
        if step.is_child {
            source.rows *= self.children(link, source);
        }
        if matches!(kind, "LEFT JOIN" | "FULL JOIN") {
            rel.columns.iter_mut().for_each(|column| column.nullable = true);
        }
        if matches!(kind, "RIGHT JOIN" | "FULL JOIN") {
            source.weaken();
            source.rows = source.rows.max(self.catalog.tables[table].rows as f64);
        }
        source.text = format!("{} {kind} {text} ON {on}", source.text);
        source.rels.push(rel);
    }

    /// A subquery with a row for each group of rows that refer to the same row, as a view has it.
    pub fn grouped_by(&mut self, link: &Link) -> (String, Rel) {
        let (inner, text) = self.rel(link.from);
        let name = self.name();
        let (mut list, mut columns, mut groups) = (Vec::new(), Vec::new(), Vec::new());
        for (number, &at) in link.columns.iter().enumerate() {
            let column = &inner.columns[at];
            list.push(format!("{} AS k{number}", column.text));
            groups.push(column.text.clone());
            columns.push(Col { text: format!("{name}.k{number}"), ..column.clone() });
        }
        let key = columns.iter().map(|column| column.text.clone()).collect();
        let computed = |text: &str, kind| Col { text: format!("{name}.{text}"), kind, nullable: true, source: None };
        list.push("count(*) AS n".into());
        columns.push(Col { nullable: false, ..computed("n", ValueKind::Integer) });
        if let Some(number) = self.column(&inner.columns, |column| column.kind.is_exact_number()) {
            list.push(format!("sum({}) AS total", number.text));
            columns.push(computed("total", ValueKind::Numeric));
        }
        let comparable = |column: &Col| {
            matches!(
                column.kind,
                ValueKind::Integer | ValueKind::Text | ValueKind::Timestamp | ValueKind::Date | ValueKind::Float
            )
        };
        if let Some(last) = self.column(&inner.columns, comparable) {
            list.push(format!("{}({}) AS last", self.one(&["max", "min"]), last.text));
            columns.push(computed("last", last.kind));
        }
        let mut query = format!("SELECT {} FROM {text}", list.join(", "));
        if self.rng.percent(35) {
            query = format!("{query} WHERE {}", self.condition(&inner.columns));
        }
        query = format!("{query} GROUP BY {}", groups.join(", "));
        if self.rng.percent(25) {
            query = format!("{query} HAVING count(*) > {}", self.small(1, 10));
        }
        (query, Rel { table: None, columns, key })
    }

    fn join_grouped(&mut self, source: &mut Source, link: &Link, there: &Rel) {
        let (query, mut rel) = self.grouped_by(link);
        let name = rel.key[0].split('.').next().unwrap_or_default().to_string();
        let numbers: Vec<usize> = (0..link.columns.len()).collect();
        let on = pairs(&rel, &numbers, there, &link.to_columns);
        let kind = *self.one(&["JOIN", "LEFT JOIN"]);
        if kind == "LEFT JOIN" {
            rel.columns.iter_mut().for_each(|column| column.nullable = true);
        }
        source.text = format!("{} {kind} ({query}) AS {name} ON {on}", source.text);
        source.rels.push(rel);
    }

    /// The first few rows that refer to a row of `there`.
    pub fn join_lateral(&mut self, source: &mut Source, link: &Link, there: &Rel) {
        let (inner, text) = self.rel(link.from);
        let name = self.name();
        let order = self.order(&inner.columns, &inner.key.join(", "));
        let on = pairs(&inner, &link.columns, there, &link.to_columns);
        let more = match self.rng.percent(30) {
            true => format!(" AND {}", self.condition(&inner.columns)),
            false => String::new(),
        };
        let limit = self.small(1, 5);
        let (kind, nullable) = *self.one(&[("JOIN", false), ("LEFT JOIN", true)]);
        source.text = format!(
            "{} {kind} LATERAL (SELECT * FROM {text} WHERE {on}{more} ORDER BY {order} LIMIT {limit}) AS {name} ON true",
            source.text
        );
        source.rows *= limit as f64;
        let renamed = |text: &String| format!("{name}.{}", text.split_once('.').unwrap_or_default().1);
        let column =
            |column: &Col| Col { text: renamed(&column.text), nullable: nullable || column.nullable, ..column.clone() };
        source.rels.push(Rel {
            table: inner.table,
            columns: inner.columns.iter().map(column).collect(),
            key: inner.key.iter().map(renamed).collect(),
        });
    }

    /// A total order: a column, and the key behind it.
    pub fn order(&mut self, columns: &[Col], key: &str) -> String {
        let Some(column) = self.column(columns, |column| column.kind.is_ordered()) else { return key.into() };
        let direction = *self.one(&["", "", " DESC", " DESC", " DESC NULLS LAST", " NULLS FIRST"]);
        format!("{}{direction}, {key}", column.text)
    }

    /// What is demanded of the rows: a WHERE, or nothing. Tells the source when it leaves few of them.
    pub fn demands(&mut self, source: &mut Source) -> String {
        let mut all = Vec::new();
        if self.rng.percent(if self.is_broad() { 10 } else { 70 }) {
            let at = self.rng.uniform(0, source.rels.len() as i64 - 1) as usize;
            let rel = source.rels[at].clone();
            if let Some(condition) = rel.table.and_then(|table| self.lookup(table, &rel.columns)) {
                all.push(condition);
                source.rows = (source.rows / 20.0).max(1.0);
            }
        }
        let counts = if self.is_broad() { [0, 0, 1, 1, 1, 2] } else { [0, 0, 0, 0, 1, 1] };
        for _ in 0..*self.one(&counts) {
            let rel = self.one(&source.rels).clone();
            all.push(self.condition(&rel.columns));
        }
        if self.rng.percent(22) {
            all.extend(self.subquery(source));
        }
        match all.is_empty() {
            true => String::new(),
            false => format!(" WHERE {}", all.join(" AND ")),
        }
    }

    /// A condition with a subquery.
    pub fn subquery(&mut self, source: &Source) -> Option<String> {
        let rel = self.one(&source.rels).clone();
        let table = rel.table?;
        if self.rng.percent(12) {
            let number = self.column(&rel.columns, |column| column.kind.is_exact_number())?;
            let name = &self.catalog.tables[table].columns[number.source?.1].name;
            let (function, from) = (*self.one(&["avg", "max", "min"]), &self.catalog.tables[table].name);
            return Some(format!("{} >= (SELECT {function}({name}) FROM {from})", number.text));
        }
        let links: Vec<&Link> =
            self.catalog.links.iter().filter(|link| link.to == table || link.from == table).collect();
        if links.is_empty() {
            return None;
        }
        let link = (*self.one(&links)).clone();
        let (other, own, theirs) = match link.to == table {
            true => (link.from, &link.to_columns, &link.columns),
            false => (link.to, &link.columns, &link.to_columns),
        };
        let (inner, text) = self.rel(other);
        let more = match self.rng.percent(65) {
            true => self.condition(&inner.columns),
            false => "true".into(),
        };
        let on = pairs(&inner, theirs, &rel, own);
        let row = |rel: &Rel, columns: &[usize]| match columns {
            [only] => rel.columns[*only].text.clone(),
            several => {
                let all: Vec<&str> = several.iter().map(|&at| rel.columns[at].text.as_str()).collect();
                format!("({})", all.join(", "))
            }
        };
        let list = row(&inner, theirs).trim_matches(['(', ')']).to_string();
        let is_lookup = self.is_lookup(other, theirs, source.rows);
        let is_small = source.rows * self.catalog.tables[other].rows as f64 <= 100.0 * MOST_PAIRS;
        let where_more = if more == "true" { String::new() } else { format!(" WHERE {more}") };
        let and_more = if more == "true" { String::new() } else { format!(" AND {more}") };
        Some(match self.rng.uniform(1, 100) {
            1..=28 => format!("EXISTS (SELECT 1 FROM {text} WHERE {on}{and_more})"),
            29..=46 => format!("NOT EXISTS (SELECT 1 FROM {text} WHERE {on}{and_more})"),
            47..=52 if is_lookup => {
                let beside = self.condition(&rel.columns);
                format!("({beside} OR EXISTS (SELECT 1 FROM {text} WHERE {on}{and_more}))")
            }
            53..=60 if is_small => format!("{} NOT IN (SELECT {list} FROM {text}{where_more})", row(&rel, own)),
            61..=75 if is_lookup => {
                format!("(SELECT count(*) FROM {text} WHERE {on}{and_more}) > {}", self.small(0, 20))
            }
            _ => format!("{} IN (SELECT {list} FROM {text}{where_more})", row(&rel, own)),
        })
    }
}

/// Equality of columns in pairs.
pub fn pairs(one: &Rel, columns: &[usize], other: &Rel, others: &[usize]) -> String {
    let pair = |(&a, &b): (&usize, &usize)| format!("{} = {}", one.columns[a].text, other.columns[b].text);
    columns.iter().zip(others).map(pair).collect::<Vec<_>>().join(" AND ")
}
