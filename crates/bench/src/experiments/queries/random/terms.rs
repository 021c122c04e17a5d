//! Conditions and expressions over the columns of a statement, with values that its tables have.

use std::collections::BTreeSet;

use super::catalog::{Catalog, ValueKind};
use crate::rng::Rng;

/// A column that a part of a statement can name.
#[derive(Clone, Debug)]
pub struct Col {
    /// How it is named there.
    pub text: String,
    /// Its type.
    pub kind: ValueKind,
    /// Whether it may be NULL.
    pub nullable: bool,
    /// The table and the column whose values it has; `None` if it was computed.
    pub source: Option<(usize, usize)>,
}

/// What makes the parts of a statement: the tables, the randomness, names that are not taken.
pub struct Maker<'c> {
    /// The tables.
    pub catalog: &'c Catalog,
    /// Decides everything.
    pub rng: Rng,
    /// Whether conditions leave many rows.
    is_broad: bool,
    /// Which of the rows that were taken of a table most values come from, so that several conditions are true together.
    at: usize,
    names: usize,
}

impl<'c> Maker<'c> {
    /// One without names.
    pub fn new(catalog: &'c Catalog, mut rng: Rng) -> Maker<'c> {
        let (is_broad, at) = (rng.percent(60), rng.uniform(0, 1 << 20) as usize);
        Maker { catalog, rng, is_broad, at, names: 0 }
    }

    /// Whether conditions leave many rows.
    pub fn is_broad(&self) -> bool {
        self.is_broad
    }

    /// How many values of a column are different among those that were taken.
    pub fn variety(&self, column: &Col) -> usize {
        let Some((table, at)) = column.source else { return usize::MAX };
        let values = self.catalog.tables[table].samples.iter().filter_map(|row| row.get(at));
        values.collect::<BTreeSet<_>>().len()
    }

    /// A name that nothing else in the statement has.
    pub fn name(&mut self) -> String {
        self.names += 1;
        format!("t{}", self.names)
    }

    /// One of them.
    pub fn one<'t, T>(&mut self, of: &'t [T]) -> &'t T {
        &of[self.rng.uniform(0, of.len() as i64 - 1) as usize]
    }

    /// Between the bounds, small ones far more often.
    pub fn small(&mut self, low: i64, high: i64) -> i64 {
        let unit = self.rng.unit();
        low + ((high - low + 1) as f64 * unit * unit * unit) as i64
    }

    /// A column that `fits`.
    pub fn column(&mut self, columns: &[Col], fits: impl Fn(&Col) -> bool) -> Option<Col> {
        let fitting: Vec<&Col> = columns.iter().filter(|column| fits(column)).collect();
        (!fitting.is_empty()).then(|| (*self.one(&fitting)).clone())
    }

    /// A value of the column, as text; from row `row` of those that were taken if it is said.
    fn value(&mut self, column: &Col, row: Option<usize>) -> Option<String> {
        let (table, at) = column.source?;
        let samples = &self.catalog.tables[table].samples;
        if let Some(row) = row {
            return samples.get(row)?.get(at)?.clone();
        }
        if !samples.is_empty() && self.rng.percent(60) {
            let value = samples[self.at % samples.len()].get(at)?.clone();
            if value.is_some() {
                return value;
            }
        }
        // A column that is mostly NULL has a value somewhere.
        (0..4).find_map(|_| self.one(samples).get(at)?.clone())
    }

    /// Several values of it, without repetition.
    fn values(&mut self, column: &Col, count: i64) -> Vec<String> {
        let rows =
            self.catalog.tables.get(column.source.map_or(0, |(table, _)| table)).map_or(0, |table| table.samples.len());
        let last = (rows as i64 - 1).max(0);
        let any = |maker: &mut Self| maker.rng.uniform(0, last) as usize;
        let mut all: Vec<String> = (0..count)
            .filter_map(|_| {
                let row = any(self);
                self.value(column, Some(row))
            })
            .collect();
        all.sort();
        all.dedup();
        all
    }

    /// A condition on some of the columns: mostly one comparison, sometimes several in an OR, NOT or AND.
    pub fn condition(&mut self, columns: &[Col]) -> String {
        match self.rng.uniform(1, 100) {
            1..=9 => format!("({} OR {})", self.comparison(columns), self.comparison(columns)),
            10..=12 => {
                let all = [self.comparison(columns), self.comparison(columns), self.comparison(columns)];
                format!("({} OR ({} AND {}))", all[0], all[1], all[2])
            }
            13..=17 => format!("NOT ({})", self.comparison(columns)),
            18..=19 => format!("NOT ({} OR {})", self.comparison(columns), self.comparison(columns)),
            20..=27 => self.rows(columns).unwrap_or_else(|| self.comparison(columns)),
            _ => self.comparison(columns),
        }
    }

    /// A comparison of two columns of one table as a row.
    fn rows(&mut self, columns: &[Col]) -> Option<String> {
        let usable =
            |column: &Col| column.source.is_some() && column.kind.is_ordered() && column.kind != ValueKind::Bool;
        let first = self.column(columns, usable)?;
        let prefix = first.text.split_once('.')?.0.to_string();
        let beside = |column: &Col| {
            usable(column) && column.text != first.text && column.text.starts_with(&(prefix.clone() + "."))
        };
        let second = self.column(columns, beside)?;
        let pair = format!("({}, {})", first.text, second.text);
        let mut values = Vec::new();
        for _ in 0..self.small(1, 12) + 3 {
            let row = self.rng.uniform(0, self.catalog.tables[first.source?.0].samples.len() as i64 - 1) as usize;
            if let (Some(a), Some(b)) = (self.value(&first, Some(row)), self.value(&second, Some(row))) {
                values.push(format!("({}, {})", literal(first.kind, &a), literal(second.kind, &b)));
            }
        }
        let value = values.first()?.clone();
        Some(match self.rng.uniform(0, 3) {
            0 => format!("{pair} {} {value}", self.one(&["<", ">", "<=", ">="])),
            1 => format!("{pair} = {value}"),
            _ => format!("{pair} IN ({})", values.join(", ")),
        })
    }

    /// Conditions that an index of the table answers: its first columns are equal to values of a row, the next is in a range or a list.
    /// `columns` are the table's in its order.
    pub fn lookup(&mut self, table: usize, columns: &[Col]) -> Option<String> {
        let known = &self.catalog.tables[table];
        if known.indexes.is_empty() || known.samples.is_empty() {
            return None;
        }
        let index = self.one(&known.indexes);
        let row = self.rng.uniform(0, known.samples.len() as i64 - 1) as usize;
        let equal = self.rng.uniform(1, index.len() as i64) as usize;
        let mut all = Vec::new();
        for &at in &index[..equal] {
            let column = &columns[at];
            match self.value(column, Some(row)) {
                Some(value) => all.push(format!("{} = {}", column.text, literal(column.kind, &value))),
                None if column.nullable => all.push(format!("{} IS NULL", column.text)),
                None => return None,
            }
        }
        if self.rng.percent(40) {
            all.pop();
            let at = index[equal - 1];
            all.push(self.compare(&columns[at]));
        }
        Some(all.join(" AND "))
    }

    /// A comparison of one of the columns.
    fn comparison(&mut self, columns: &[Col]) -> String {
        match self.column(columns, |column| column.kind != ValueKind::Other) {
            Some(column) => self.compare(&column),
            None => "true".into(),
        }
    }

    /// A comparison of this column.
    pub fn compare(&mut self, column: &Col) -> String {
        let text = column.text.clone();
        if column.nullable && self.rng.percent(10) {
            return format!("{text} IS {}NULL", self.one(&["", "NOT "]));
        }
        if column.kind == ValueKind::Bool {
            return match self.rng.uniform(0, 3) {
                0 => text,
                1 => format!("NOT {text}"),
                2 => format!("{text} IS {}TRUE", self.one(&["", "NOT "])),
                _ => format!("{text} = {}", self.one(&["true", "false"])),
            };
        }
        let Some(value) = self.value(column, None) else {
            return match column.kind {
                ValueKind::Integer => format!("{text} > {}", self.small(0, 50)),
                ValueKind::Numeric => format!("{text} > {}", self.small(0, 50_000)),
                _ => format!("{text} IS {}NULL", self.one(&["", "NOT "])),
            };
        };
        let quoted = literal(column.kind, &value);
        if column.kind == ValueKind::Json {
            return match self.name_in(&value) {
                Some(name) => format!("{text} ->> '{name}' IS {}NULL", self.one(&["", "NOT "])),
                None => format!("{text}::text = {quoted}"),
            };
        }
        let mut choice = self.rng.uniform(1, 100);
        // Equality with one of many values leaves few rows.
        if self.is_broad && choice <= 22 && self.variety(column) > 12 {
            choice += 22;
        }
        match choice {
            1..=22 => format!("{text} = {quoted}"),
            23..=36 => format!("{text} {} {quoted}", self.one(&["<", "<=", ">", ">="])),
            37..=47 => {
                let mut bounds = [value.clone(), self.value(column, None).unwrap_or(value)];
                bounds.sort_by(|a, b| match (a.parse::<f64>(), b.parse::<f64>()) {
                    (Ok(a), Ok(b)) if column.kind != ValueKind::Text => a.total_cmp(&b),
                    _ => a.cmp(b),
                });
                let [low, high] = bounds.map(|bound| literal(column.kind, &bound));
                match self.rng.percent(70) {
                    true => format!("{text} BETWEEN {low} AND {high}"),
                    false => format!("({text} >= {low} AND {text} < {high})"),
                }
            }
            48..=60 => {
                let count = self.small(2, 40);
                let values: Vec<String> =
                    self.values(column, count).iter().map(|value| literal(column.kind, value)).collect();
                if values.is_empty() {
                    return format!("{text} = {quoted}");
                }
                self.list(column, &values)
            }
            61..=64 => format!("{text} <> {quoted}"),
            _ => self.special(column, &value, &quoted),
        }
    }

    fn list(&mut self, column: &Col, values: &[String]) -> String {
        let (text, all) = (&column.text, values.join(", "));
        match (self.rng.uniform(0, 5), column.kind) {
            (0, _) => format!("{text} NOT IN ({all})"),
            (1, ValueKind::Integer | ValueKind::Text) => format!("{text} = ANY (ARRAY[{all}])"),
            (2, ValueKind::Integer) => format!("{text} = ANY ('{{{}}}'::bigint[])", all.replace([' ', '(', ')'], "")),
            _ => format!("{text} IN ({all})"),
        }
    }

    /// A comparison that only this type has: expressions, patterns, casts.
    fn special(&mut self, column: &Col, value: &str, quoted: &str) -> String {
        let text = &column.text;
        match column.kind {
            ValueKind::Integer => match self.rng.uniform(0, 6) {
                0 => format!("{text} % {} = {}", self.small(2, 50), self.rng.uniform(0, 1)),
                1 => format!("{text}::numeric = {quoted}"),
                2 => format!("{text} = {}.0", quoted.trim_matches(['(', ')'])),
                3 => format!("{text}::bigint {} {quoted}", self.one(&["=", "<", ">="])),
                4 => format!("{text} + {} > {quoted}", self.small(1, 100)),
                5 => format!("{text}::text = '{value}'"),
                _ => format!("coalesce({text}, 0) = {quoted}"),
            },
            ValueKind::Numeric => match self.rng.uniform(0, 2) {
                0 => format!("round({text}) = round({quoted})"),
                1 => format!("{text}::bigint = {quoted}::bigint"),
                _ => format!("{text} * {} < {quoted}", self.one(&["2", "1.5", "0.5"])),
            },
            ValueKind::Float => match self.rng.uniform(0, 1) {
                0 => format!("{text}::numeric > {quoted}::numeric"),
                _ => format!("{text} > {quoted}::numeric"),
            },
            ValueKind::Text => self.pattern(text, value, quoted),
            ValueKind::Date | ValueKind::Timestamp => self.moment(column, value, quoted),
            ValueKind::Plain => match self.rng.uniform(0, 1) {
                0 => format!("{text}::text = {quoted}"),
                _ => format!("{text}::text LIKE '{}%'", pattern(&begin(value, 3))),
            },
            _ => format!("{text} IS NOT NULL"),
        }
    }

    fn pattern(&mut self, text: &str, value: &str, quoted: &str) -> String {
        let length = value.chars().count() as i64;
        let longest = if self.is_broad { length.min(3) } else { length };
        let count = self.rng.uniform(1.min(length), longest.max(1)) as usize;
        let part = |from: usize, count: usize| pattern(&value.chars().skip(from).take(count).collect::<String>());
        let from = self.rng.uniform(0, (length - 3).max(0)) as usize;
        match self.rng.uniform(0, 9) {
            0..=2 => format!("{text} LIKE '{}%'", part(0, count)),
            3..=4 => format!("{text} LIKE '%{}%'", part(from, 4)),
            5 => format!("{text} ILIKE '%{}%'", part(from, 4).to_lowercase()),
            6..=7 => format!("lower({text}) = lower({quoted})"),
            8 => format!("substring({text}, 1, 3) = '{}'", begin(value, 3).replace('\'', "''")),
            _ => format!("length({text}) > {length}"),
        }
    }

    fn moment(&mut self, column: &Col, value: &str, quoted: &str) -> String {
        let text = &column.text;
        let day: String = value.chars().take(10).collect();
        let day = day.replace('\'', "");
        let unit = *self.one(&["day", "week", "month"]);
        match self.rng.uniform(0, 7) {
            0 => format!("{text}::date = '{day}'"),
            1 => format!("{text} >= date '{day}'"),
            2 => format!("{text} >= date '{day}' AND {text} < date '{day}' + interval '{} {unit}'", self.small(1, 4)),
            3 => format!("{text} > timestamp '{day}' - interval '{} {unit}s'", self.small(1, 9)),
            4 => format!("{text} < timestamptz '{day} 12:00:00+00'"),
            5 => format!("date_trunc('{unit}', {text}) = date_trunc('{unit}', timestamp '{day}')"),
            6 => format!("extract(month FROM {text}) = {}", self.rng.uniform(1, 12)),
            _ => format!("{text} + interval '1 day' > {quoted}"),
        }
    }

    /// A name at the beginning of a document.
    fn name_in(&mut self, value: &str) -> Option<String> {
        let name = value.strip_prefix("{\"")?.split_once('"')?.0;
        name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_').then(|| name.to_string())
    }

    /// What rows are grouped by: a column of few values or an expression that has fewer.
    pub fn group(&mut self, column: &Col) -> String {
        let text = &column.text;
        match column.kind {
            ValueKind::Timestamp | ValueKind::Date => match self.rng.uniform(0, 4) {
                0 => format!("{text}::date"),
                1 => format!("extract(year FROM {text})"),
                2 => format!("to_char({text}, 'YYYY-MM')"),
                _ => format!("date_trunc('{}', {text})", self.one(&["day", "month", "hour"])),
            },
            ValueKind::Text if self.rng.percent(20) => format!("lower({text})"),
            ValueKind::Text if self.rng.percent(15) => format!("left({text}, 2)"),
            ValueKind::Integer if self.rng.percent(15) => format!("{text} % 10"),
            ValueKind::Float => format!("floor({text})"),
            _ => text.clone(),
        }
    }

    /// An aggregate over the columns. `ordered` orders the rows of a text that is put together.
    pub fn aggregate(&mut self, columns: &[Col], ordered: &str) -> String {
        let number = self.column(columns, |column| column.kind.is_exact_number());
        let ordinary = |column: &Col| {
            column.kind.is_ordered() && column.kind != ValueKind::Bool && column.kind != ValueKind::Plain
        };
        let any = self.column(columns, ordinary);
        let filter = match self.rng.percent(18) {
            true => format!(" FILTER (WHERE {})", self.comparison(columns)),
            false => String::new(),
        };
        let call = match (self.rng.uniform(0, 11), number, any) {
            (0..=1, Some(number), _) => format!("sum({})", number.text),
            (2, Some(number), _) => format!("avg({})", number.text),
            (3, Some(number), Some(any)) => {
                format!("sum(CASE WHEN {} THEN {} ELSE 0 END)", self.compare(&any), number.text)
            }
            (4..=5, _, Some(any)) => format!("min({})", any.text),
            (6, _, Some(any)) => format!("max({})", any.text),
            (7..=8, _, Some(any)) => format!("count(DISTINCT {})", any.text),
            (9, _, Some(any)) => {
                let value = format!("{}::text", any.text);
                return format!("md5(string_agg({value}, ',' ORDER BY {value}, {ordered}){filter})");
            }
            (10, _, Some(any)) => format!("count({})", any.text),
            _ => "count(*)".into(),
        };
        call + &filter
    }
}

/// A value as a literal.
fn literal(kind: ValueKind, value: &str) -> String {
    match kind {
        ValueKind::Integer | ValueKind::Numeric if value.starts_with('-') => format!("({value})"),
        ValueKind::Integer | ValueKind::Numeric if value.parse::<f64>().is_ok_and(f64::is_finite) => value.into(),
        _ => format!("'{}'", value.replace('\'', "''")),
    }
}

fn begin(value: &str, count: usize) -> String {
    value.chars().take(count).collect()
}

/// Text inside a pattern of LIKE that stands for itself.
fn pattern(text: &str) -> String {
    text.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_").replace('\'', "''")
}
