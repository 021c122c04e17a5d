//! The statements, by the schemas that they run in.
//!
//! A schema is a directory of `crates/bench/queries`: `schema.sql` makes its tables and, behind the line `-- indexes`, what is
//! made once they have rows; `data.sql` fills them from a table `noise` (see [`super::load`]); `statements.sql` holds the
//! statements. A statement is `-- name: …`, its origin, its parameters if it has some, and one text that ends with a semicolon:
//!
//! ```text
//! -- name: order_line_3
//! -- from: oscar/apps/order/abstract_models.py
//! -- with: '17', NULL
//! SELECT …;
//! ```
//!
//! `from` is the file of the application that sent the statement to PostgreSQL, from whose log it was taken; the package stands at
//! the head of the file. `class` instead of `from` names the class of plans that a statement was written for.

use std::fmt;

/// The tables of an application, its rows and what is asked of them.
#[derive(Clone, Copy, Debug)]
pub struct Schema {
    /// Name of its directory, and of the database.
    pub name: &'static str,
    schema: &'static str,
    data: &'static str,
    statements: &'static str,
}

/// The texts of a directory.
macro_rules! schema {
    ($name:literal) => {
        Schema {
            name: $name,
            schema: include_str!(concat!("../../../queries/", $name, "/schema.sql")),
            data: include_str!(concat!("../../../queries/", $name, "/data.sql")),
            statements: include_str!(concat!("../../../queries/", $name, "/statements.sql")),
        }
    };
}

/// Every schema, in the order in which they are measured.
pub const SCHEMAS: [Schema; 11] = [
    schema!("oscar"),
    schema!("machina"),
    schema!("keycloak"),
    schema!("pgboss"),
    schema!("optuna"),
    schema!("openfga"),
    schema!("miniflux"),
    schema!("wagtail"),
    schema!("unleash"),
    schema!("ledger"),
    schema!("series"),
];

/// Where a statement is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Sent by an application: the file that sends it.
    Captured(&'static str),
    /// Written for a class of plans.
    Class(&'static str),
    /// Made from a seed, in one of the shapes of [`super::random`].
    Random(&'static str),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Captured(file) => f.write_str(file),
            Origin::Class(class) => write!(f, "class: {class}"),
            Origin::Random(shape) => write!(f, "random: {shape}"),
        }
    }
}

/// One statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement<'t> {
    /// Unique in its schema.
    pub name: &'t str,
    /// Where it is from.
    pub origin: Origin,
    /// Values of its parameters as text, `None` for NULL. A statement without parameters is sent as a text with literals.
    pub params: Option<Vec<Option<String>>>,
    /// The text without its semicolon.
    pub sql: &'t str,
    /// Whether its rows come in a total order, so that the order is compared, too.
    pub ordered: bool,
}

impl Statement<'_> {
    /// Whether it changes or locks rows: it is then measured in a transaction that is rolled back.
    pub fn changes(&self) -> bool {
        let first = self.sql.split_whitespace().next().unwrap_or_default().to_ascii_uppercase();
        let reads = matches!(first.as_str(), "SELECT" | "VALUES" | "TABLE") || first.starts_with('(');
        !reads || self.sql.to_ascii_uppercase().contains(" FOR ")
    }
}

impl Schema {
    /// What makes its tables, and what follows once they have rows.
    pub fn definitions(&self) -> (&'static str, &'static str) {
        self.schema.split_once("\n-- indexes\n").unwrap_or((self.schema, ""))
    }

    /// What fills its tables.
    pub fn data(&self) -> &'static str {
        self.data
    }

    /// What is asked.
    ///
    /// # Errors
    /// One line that says which entry is not one.
    pub fn statements(&self) -> Result<Vec<Statement<'static>>, String> {
        let mut all = Vec::new();
        for entry in self.statements.split("\n-- name: ").skip(1) {
            let (name, mut rest) = entry.split_once('\n').unwrap_or((entry, ""));
            let wrong = |why: &str| format!("{}/{name}: {why}", self.name);
            let (mut origin, mut params) = (None, None);
            while let Some((line, after)) = rest.split_once('\n') {
                let Some((key, value)) = line.strip_prefix("-- ").and_then(|line| line.split_once(": ")) else { break };
                match key {
                    "from" => origin = Some(Origin::Captured(value)),
                    "class" => origin = Some(Origin::Class(value)),
                    "with" => params = Some(values(value).ok_or_else(|| wrong("the parameters cannot be read"))?),
                    _ => return Err(wrong("a line is not known")),
                }
                rest = after;
            }
            let sql = rest.trim().strip_suffix(';').ok_or_else(|| wrong("the text does not end with a semicolon"))?;
            let origin = origin.ok_or_else(|| wrong("it does not say where it is from"))?;
            all.push(Statement { name, origin, params, sql, ordered: false });
        }
        Ok(all)
    }
}

/// A list of quoted literals and NULLs.
fn values(mut text: &str) -> Option<Vec<Option<String>>> {
    let mut all = Vec::new();
    loop {
        text = text.trim_start();
        if let Some(rest) = text.strip_prefix("NULL") {
            all.push(None);
            text = rest;
        } else {
            let (value, rest) = literal(text.strip_prefix('\'')?)?;
            all.push(Some(value));
            text = rest;
        }
        match text.trim_start().strip_prefix(',') {
            Some(rest) => text = rest,
            None => return text.trim().is_empty().then_some(all),
        }
    }
}

/// What is before the closing quote, and what is behind it.
fn literal(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut rest = text;
    loop {
        let (before, after) = rest.split_once('\'')?;
        value.push_str(before);
        match after.strip_prefix('\'') {
            Some(more) => {
                value.push('\'');
                rest = more;
            }
            None => return Some((value, after)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    /// Classes of plans that have statements on schemas of their own.
    const CLASSES: [&str; 11] = [
        "hash keys",
        "several ranges",
        "keys in parts",
        "rows as keys",
        "other conditions",
        "order",
        "pushdown",
        "outer joins",
        "subqueries",
        "min and max",
        "executor",
    ];

    #[test]
    fn the_list_is_as_large_as_it_says() {
        let (mut names, mut captured, mut classes) = (BTreeSet::new(), 0, BTreeMap::new());
        for schema in SCHEMAS {
            for statement in schema.statements().expect("the list can be read") {
                assert!(names.insert((schema.name, statement.name)), "{}/{} twice", schema.name, statement.name);
                match statement.origin {
                    Origin::Captured(_) => captured += 1,
                    Origin::Class(class) => *classes.entry(class).or_insert(0) += 1,
                    Origin::Random(_) => panic!("{} is in the list", statement.name),
                }
            }
        }
        assert!(names.len() >= 300 && captured >= 200, "{} statements, {captured} captured", names.len());
        for class in CLASSES {
            assert!(classes.get(class).is_some_and(|&n| n >= 5), "{class}: {classes:?}");
        }
        assert_eq!(classes.len(), CLASSES.len(), "{classes:?}");
    }

    #[test]
    fn parameters_are_literals_and_nulls() {
        let all = values("'a', NULL,'it''s, \"so\"', ''").expect("a list");
        assert_eq!(all, [Some("a".into()), None, Some("it's, \"so\"".into()), Some(String::new())]);
        for wrong in ["", "a", "'a' 'b'", "'a", "NULL,"] {
            assert_eq!(values(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn what_changes_or_locks_is_told_from_what_reads() {
        let statement = |sql| Statement { name: "", origin: Origin::Class(""), params: None, sql, ordered: false };
        let changes = |sql| statement(sql).changes();
        assert!(changes("update t set a = 1") && changes("WITH x AS (SELECT 1) DELETE FROM t"));
        assert!(changes("select * from t for update skip locked"));
        assert!(!changes("SELECT 1") && !changes("(SELECT 1) UNION (SELECT 2)"));
    }
}
