//! What random statements are made of: tables, columns, keys, links between tables and values, as a loaded database has them.
//!
//! Everything is read in an order that depends on the rows alone, so that the same rows give the same statements.

use std::collections::BTreeSet;

use crate::client::{Connection, Failure};

/// Rows of a table whose values conditions use.
const SAMPLES: usize = 64;
/// Values that are longer are not used.
const LONGEST: usize = 120;

/// The tables of a database.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    /// Those with rows, by their names.
    pub tables: Vec<Table>,
    /// How rows of one belong to a row of another.
    pub links: Vec<Link>,
}

/// A table.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// As a statement names it: quoted if necessary, with its namespace.
    pub name: String,
    /// Its columns in order.
    pub columns: Vec<Column>,
    /// What orders its rows totally: the columns of the primary key, or all columns if there is none.
    pub key: Vec<usize>,
    /// How many rows it has.
    pub rows: u64,
    /// Columns of its indexes, up to the first expression. The primary key is one of them.
    pub indexes: Vec<Vec<usize>>,
    /// Some of its rows, as text; a value that is long is `None`, as NULL is.
    pub samples: Vec<Vec<Option<String>>>,
}

/// A column.
#[derive(Clone, Debug)]
pub struct Column {
    /// Quoted if necessary.
    pub name: String,
    /// What can be done with it.
    pub kind: ValueKind,
    /// Whether it may be NULL.
    pub nullable: bool,
}

/// Types, as far as statements treat them differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueKind {
    /// smallint, integer, bigint.
    Integer,
    /// numeric.
    Numeric,
    /// real, double precision.
    Float,
    /// text, varchar, char.
    Text,
    /// boolean.
    Bool,
    /// date.
    Date,
    /// timestamp with or without time zone.
    Timestamp,
    /// An enumeration, or uuid: has an order, and no operators of its own.
    Plain,
    /// json, jsonb.
    Json,
    /// Anything else.
    Other,
}

impl ValueKind {
    /// Whether statements order and group by it.
    pub fn is_ordered(self) -> bool {
        !matches!(self, ValueKind::Json | ValueKind::Other)
    }

    /// Whether sums of it do not depend on the order of the rows.
    pub fn is_exact_number(self) -> bool {
        matches!(self, ValueKind::Integer | ValueKind::Numeric)
    }

    fn of(name: &str) -> ValueKind {
        match name {
            "int2" | "int4" | "int8" => ValueKind::Integer,
            "numeric" => ValueKind::Numeric,
            "float4" | "float8" => ValueKind::Float,
            "text" | "varchar" | "bpchar" => ValueKind::Text,
            "bool" => ValueKind::Bool,
            "date" => ValueKind::Date,
            "timestamp" | "timestamptz" => ValueKind::Timestamp,
            "uuid" | "enum" => ValueKind::Plain,
            "json" | "jsonb" => ValueKind::Json,
            _ => ValueKind::Other,
        }
    }
}

/// Rows of `from` have the key of one row of `to` in their columns, at most.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// The table that refers.
    pub from: usize,
    /// Its columns.
    pub columns: Vec<usize>,
    /// The table that is referred to.
    pub to: usize,
    /// Its columns in the same order; they are unique together.
    pub to_columns: Vec<usize>,
    /// How many rows of `from` a row of it shares its values with, itself included, in the mean over its rows.
    pub siblings: f64,
}

impl Table {
    /// Whether an index begins with these columns, in any order.
    pub fn has_index_on(&self, columns: &[usize]) -> bool {
        let wanted: BTreeSet<usize> = columns.iter().copied().collect();
        let begins = |index: &Vec<usize>| {
            index.len() >= wanted.len() && index[..wanted.len()].iter().copied().collect::<BTreeSet<_>>() == wanted
        };
        self.indexes.iter().any(begins)
    }

    fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }

    /// The name without namespace and quotes.
    pub fn bare_name(&self) -> String {
        self.name.rsplit('.').next().unwrap_or_default().replace('"', "")
    }
}

/// A row for each column of each table: table, column, type, whether it is NOT NULL.
const COLUMNS: &str = "
SELECT c.oid::regclass::text, quote_ident(a.attname), CASE WHEN t.typtype = 'e' THEN 'enum' ELSE t.typname END, a.attnotnull
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
JOIN pg_type t ON t.oid = a.atttypid
WHERE c.relkind = 'r' AND n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname NOT LIKE 'pg\\_temp%'
ORDER BY c.oid::regclass::text COLLATE \"C\", a.attnum";

/// A row for each index: table, whether it is the primary key, its columns up to the first expression.
const INDEXES: &str = "
SELECT i.indrelid::regclass::text, i.indisprimary,
    (SELECT string_agg(coalesce(quote_ident(a.attname), '*'), ',' ORDER BY k.at)
     FROM unnest(i.indkey::int2[]) WITH ORDINALITY AS k(number, at)
     LEFT JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.number AND k.number > 0
     WHERE k.at <= i.indnkeyatts)
FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
WHERE i.indpred IS NULL OR i.indisprimary
ORDER BY i.indrelid::regclass::text COLLATE \"C\", c.relname COLLATE \"C\"";

/// A row for each foreign key: both tables and their columns.
const FOREIGN_KEYS: &str = "
SELECT k.conrelid::regclass::text, k.confrelid::regclass::text,
    (SELECT string_agg(quote_ident(a.attname), ',' ORDER BY u.at) FROM unnest(k.conkey) WITH ORDINALITY AS u(number, at)
     JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = u.number),
    (SELECT string_agg(quote_ident(a.attname), ',' ORDER BY u.at) FROM unnest(k.confkey) WITH ORDINALITY AS u(number, at)
     JOIN pg_attribute a ON a.attrelid = k.confrelid AND a.attnum = u.number)
FROM pg_constraint k WHERE k.contype = 'f'
ORDER BY k.conrelid::regclass::text COLLATE \"C\", k.conname COLLATE \"C\"";

impl Catalog {
    /// Reads it from a loaded database.
    ///
    /// # Errors
    /// Of the server.
    pub fn read(connection: &mut Connection) -> Result<Catalog, Failure> {
        let mut tables: Vec<Table> = Vec::new();
        for row in cells(connection, COLUMNS)? {
            let [table, name, kind, not_null] = row.as_slice() else { continue };
            if tables.last().is_none_or(|last| last.name != *table) {
                tables.push(Table { name: table.clone(), ..Table::default() });
            }
            let column = Column { name: name.clone(), kind: ValueKind::of(kind), nullable: not_null != "t" };
            tables.last_mut().expect("one was pushed").columns.push(column);
        }
        for row in cells(connection, INDEXES)? {
            let [name, primary, columns] = row.as_slice() else { continue };
            let Some(table) = tables.iter_mut().find(|table| table.name == *name) else { continue };
            let columns: Vec<usize> = columns.split(',').map_while(|name| table.column(name)).collect();
            if primary == "t" {
                table.key.clone_from(&columns);
            }
            if !columns.is_empty() {
                table.indexes.push(columns);
            }
        }
        for table in &mut tables {
            read_rows(connection, table)?;
        }
        // A table without rows says nothing, and one whose rows cannot be ordered cannot be cut.
        tables.retain(|table| table.rows > 0 && !table.key.is_empty());
        let mut catalog = Catalog { tables, links: Vec::new() };
        for row in cells(connection, FOREIGN_KEYS)? {
            let [from, to, columns, to_columns] = row.as_slice() else { continue };
            let at = |name: &str| catalog.tables.iter().position(|table| table.name == name);
            let (Some(from), Some(to)) = (at(from), at(to)) else { continue };
            let of = |table: usize, names: &str| -> Vec<usize> {
                names.split(',').filter_map(|name| catalog.tables[table].column(name)).collect()
            };
            let link = Link { from, columns: of(from, columns), to, to_columns: of(to, to_columns), siblings: 1.0 };
            catalog.links.push(link);
        }
        catalog.guess_links();
        let Catalog { tables, links } = &mut catalog;
        for link in links {
            let table = &tables[link.from];
            let columns: Vec<&str> = link.columns.iter().map(|&at| table.columns[at].name.as_str()).collect();
            let columns = columns.join(", ");
            let groups =
                format!("SELECT count(*) AS n FROM {} WHERE ({columns}) IS NOT NULL GROUP BY {columns}", table.name);
            let mean =
                connection.query_one(&format!("SELECT coalesce(sum(n * n) / sum(n), 1) FROM ({groups}) AS g"))?;
            link.siblings = mean.and_then(|mean| mean.parse().ok()).unwrap_or(1.0);
        }
        Ok(catalog)
    }

    /// Adds links that no foreign key declares: a column `x_id` or `x` beside a table whose name is or ends with `x`, and columns
    /// named as all those of another table's primary key.
    pub fn guess_links(&mut self) {
        let mut found = Vec::new();
        for (from, table) in self.tables.iter().enumerate() {
            for (at, column) in table.columns.iter().enumerate() {
                if self.links.iter().any(|link| link.from == from && link.columns.contains(&at)) {
                    continue;
                }
                let stem = column.name.trim_matches('"').trim_end_matches("_id").trim_end_matches("_name");
                let fits = |(to, other): (usize, &Table)| {
                    let [key] = other.key.as_slice() else { return None };
                    let named = is_named(&other.bare_name(), stem) && other.columns[*key].kind == column.kind;
                    (to != from && named).then(|| Link {
                        from,
                        columns: vec![at],
                        to,
                        to_columns: vec![*key],
                        siblings: 1.0,
                    })
                };
                found.extend(self.tables.iter().enumerate().find_map(fits));
            }
            for (to, other) in self.tables.iter().enumerate().filter(|(to, _)| *to != from) {
                let same = |key: &usize| {
                    let column = &other.columns[*key];
                    let generic = other.key.len() == 1 && column.name == "id";
                    let at = table.column(&column.name).filter(|_| !generic)?;
                    (table.columns[at].kind == column.kind).then_some(at)
                };
                let columns: Option<Vec<usize>> = other.key.iter().map(same).collect();
                let Some(columns) = columns.filter(|columns| columns.len() <= 5) else { continue };
                // Without a primary key all columns stand for it.
                if other.indexes.contains(&other.key) {
                    found.push(Link { from, columns, to, to_columns: other.key.clone(), siblings: 1.0 });
                }
            }
        }
        for link in found {
            let is_there =
                |other: &Link| other.from == link.from && other.columns == link.columns && other.to == link.to;
            if !self.links.iter().any(is_there) {
                self.links.push(link);
            }
        }
    }
}

/// Whether a table with this name has what a column with this stem refers to.
fn is_named(table: &str, stem: &str) -> bool {
    let singular = table.strip_suffix("ies").map(|begin| format!("{begin}y"));
    let singular = singular.unwrap_or_else(|| table.strip_suffix('s').unwrap_or(table).to_string());
    !stem.is_empty()
        && (table == stem
            || singular == stem
            || table.ends_with(&format!("_{stem}"))
            || table == format!("{stem}_entity"))
}

/// Counts the rows of a table and takes some of them.
fn read_rows(connection: &mut Connection, table: &mut Table) -> Result<(), Failure> {
    let count = connection.query_one(&format!("SELECT count(*) FROM {}", table.name))?;
    table.rows = count.and_then(|count| count.parse().ok()).unwrap_or_default();
    if table.key.is_empty() && table.columns.iter().all(|column| column.kind.is_ordered()) {
        table.key = (0..table.columns.len()).collect();
    }
    if table.key.is_empty() {
        return Ok(());
    }
    let text = |column: &Column| format!("{}::text", column.name);
    let columns: Vec<String> = table.columns.iter().map(text).collect();
    let key: Vec<String> = table.key.iter().map(|&at| format!("coalesce({}, '')", columns[at])).collect();
    connection.query(&format!(
        "SELECT {} FROM {} ORDER BY md5({}) COLLATE \"C\", {} LIMIT {SAMPLES}",
        columns.join(", "),
        table.name,
        key.join(" || '/' || "),
        key.join(", ")
    ))?;
    let value = |cell: Option<&[u8]>| {
        cell.filter(|text| text.len() <= LONGEST).map(|text| String::from_utf8_lossy(text).into_owned())
    };
    table.samples = (0..connection.row_count()).map(|at| connection.row(at).cells().map(value).collect()).collect();
    Ok(())
}

/// The rows of an answer as texts; NULL is empty.
fn cells(connection: &mut Connection, sql: &str) -> Result<Vec<Vec<String>>, Failure> {
    connection.query(sql)?;
    let text = |cell: Option<&[u8]>| String::from_utf8_lossy(cell.unwrap_or_default()).into_owned();
    Ok((0..connection.row_count()).map(|at| connection.row(at).cells().map(text).collect()).collect())
}
