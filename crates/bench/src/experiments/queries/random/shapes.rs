//! Random statements, by the shapes that applications and reports send.

use super::catalog::{Catalog, Link, ValueKind};
use super::groups::{distinct, distinct_on, groups, ranked, totals, windows};
use super::sources::{Rel, pairs};
use super::terms::{Col, Maker};
use crate::rng::Rng;

/// A statement that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Made {
    /// Its text.
    pub sql: String,
    /// Its shape, one of [`SHAPES`].
    pub shape: &'static str,
    /// Whether its rows come in a total order.
    pub ordered: bool,
}

/// Makes a statement and says whether its rows are ordered; `None` if it does not succeed this time.
pub(super) type Make = for<'m, 'c> fn(&'m mut Maker<'c>) -> Option<(String, bool)>;

/// Shapes by their names, with how often each is made.
pub(super) const SHAPES: [(&str, i64, Make); 15] = [
    ("rows", 9, rows),
    ("page", 14, page),
    ("keyset", 7, keyset),
    ("groups", 16, groups),
    ("totals", 8, totals),
    ("distinct", 6, distinct),
    ("distinct on", 5, distinct_on),
    ("windows", 5, windows),
    ("ranked", 6, ranked),
    ("union", 8, union),
    ("grouped cte", 5, grouped_cte),
    ("cte", 4, cte),
    ("lateral", 4, lateral),
    ("scalars", 6, scalars),
    ("joined views", 5, joined_views),
];

/// Statement `number` over the tables: the same text for the same seed, whatever other statements are made.
pub fn statement(catalog: &Catalog, seed: u64, number: u64) -> Made {
    let mut rng = Rng::new(seed, number);
    loop {
        let mut left = rng.uniform(1, SHAPES.iter().map(|(_, weight, _)| weight).sum());
        let chosen = SHAPES.iter().find(|(_, weight, _)| {
            left -= weight;
            left <= 0
        });
        let Some(&(shape, _, make)) = chosen else { continue };
        // A shape that some tables do not fit is tried on others before it gives way.
        for _ in 0..20 {
            if let Some((sql, ordered)) = make(&mut Maker::new(catalog, Rng::new(rng.bits(), 0))) {
                return Made { sql, shape, ordered };
            }
        }
    }
}

/// Some columns for a list: at most `count`, none twice.
pub(super) fn some(maker: &mut Maker<'_>, columns: &[Col], count: i64, fits: impl Fn(&Col) -> bool) -> Vec<Col> {
    let mut left: Vec<Col> = columns.iter().filter(|column| fits(column)).cloned().collect();
    maker.rng.shuffle(&mut left);
    left.truncate(maker.rng.uniform(1, count) as usize);
    left
}

/// Columns under the names `c1`, `c2`, …: the list, and how the statement around it names them.
pub(super) fn named(columns: &[Col], outside: &str) -> (String, Vec<Col>) {
    let list = columns.iter().enumerate().map(|(at, column)| format!("{} AS c{}", column.text, at + 1));
    let list = list.collect::<Vec<_>>().join(", ");
    let column = |(at, column): (usize, &Col)| Col { text: format!("{outside}.c{}", at + 1), ..column.clone() };
    (list, columns.iter().enumerate().map(column).collect())
}

pub(super) fn texts(columns: &[Col]) -> String {
    columns.iter().map(|column| column.text.as_str()).collect::<Vec<_>>().join(", ")
}

pub(super) fn ordered(column: &Col) -> bool {
    column.kind.is_ordered()
}

/// A LIMIT, mostly of a page, sometimes with an OFFSET.
pub(super) fn limit(maker: &mut Maker<'_>) -> String {
    let limit = *maker.one(&[1, 5, 10, 20, 20, 25, 50, 100, 100, 500]);
    match maker.rng.uniform(1, 100) {
        1..=70 => format!(" LIMIT {limit}"),
        71..=80 => format!(" LIMIT {limit} OFFSET {}", limit * maker.small(1, 10)),
        81..=100 if maker.is_broad() => format!(" LIMIT {limit} OFFSET {}", maker.rng.uniform(1000, 20_000)),
        _ => format!(" LIMIT {limit} OFFSET {}", maker.small(1, 10)),
    }
}

/// All rows that the conditions leave.
fn rows(maker: &mut Maker<'_>) -> Option<(String, bool)> {
    let mut source = maker.any_source();
    let demands = maker.demands(&mut source);
    if source.rows > 40_000.0 || demands.is_empty() {
        return None;
    }
    let list = texts(&some(maker, &source.columns(), 5, |_| true));
    let sql = format!("SELECT {}, {list} FROM {}{demands}", source.rels[0].key.join(", "), source.text);
    Some(match maker.rng.percent(40) {
        true => (format!("{sql} ORDER BY {}", maker.order(&source.columns(), &source.key())), true),
        false => (sql, false),
    })
}

/// The first rows in an order.
fn page(maker: &mut Maker<'_>) -> Option<(String, bool)> {
    let mut source = maker.any_source();
    let demands = maker.demands(&mut source);
    let list = texts(&some(maker, &source.columns(), 6, |_| true));
    // Orders that an index of the first table gives are frequent.
    let order = match maker.rng.percent(35) {
        true => source.key(),
        false if maker.rng.percent(60) => maker.order(&source.rels[0].columns, &source.key()),
        false => maker.order(&source.columns(), &source.key()),
    };
    Some((format!("SELECT {list} FROM {}{demands} ORDER BY {order}{}", source.text, limit(maker)), true))
}

/// The page behind a row.
fn keyset(maker: &mut Maker<'_>) -> Option<(String, bool)> {
    let table = maker.table();
    let mut source = maker.single(table);
    let known = &maker.catalog.tables[table];
    let mut order: Vec<usize> = match maker.rng.percent(65) && !known.indexes.is_empty() {
        true => maker.one(&known.indexes).clone(),
        false => vec![maker.rng.uniform(0, known.columns.len() as i64 - 1) as usize],
    };
    order.extend(known.key.iter().filter(|at| !order.contains(at)).copied().collect::<Vec<_>>());
    if order.len() > 5 || order.iter().any(|&at| !known.columns[at].kind.is_ordered()) || known.samples.is_empty() {
        return None;
    }
    let columns: Vec<Col> = order.iter().map(|&at| source.rels[0].columns[at].clone()).collect();
    let row = maker.one(&known.samples);
    let values: Option<Vec<String>> =
        order.iter().map(|&at| Some(format!("'{}'", row[at].as_ref()?.replace('\'', "''")))).collect();
    let (values, is_down) = (values?, maker.rng.percent(40));
    let sign = if is_down { "<" } else { ">" };
    let behind = match maker.rng.percent(65) || columns.len() != 2 {
        true => format!("({}) {sign} ({})", texts(&columns), values.join(", ")),
        false => {
            let [first, second] = [&columns[0].text, &columns[1].text];
            format!("({first} {sign} {} OR ({first} = {} AND {second} {sign} {}))", values[0], values[0], values[1])
        }
    };
    let more = maker.demands(&mut source).replacen(" WHERE ", " AND ", 1);
    let list = texts(&some(maker, &source.columns(), 6, |_| true));
    let direction = if is_down { " DESC" } else { "" };
    let order: Vec<String> = columns.iter().map(|column| format!("{}{direction}", column.text)).collect();
    let (from, order, limit) = (&source.text, order.join(", "), maker.one(&[10, 20, 50, 200]));
    Some((format!("SELECT {list} FROM {from} WHERE {behind}{more} ORDER BY {order} LIMIT {limit}"), true))
}

/// Queries of the same columns put together, below conditions.
fn union(maker: &mut Maker<'_>) -> Option<(String, bool)> {
    let name = maker.name();
    let first = maker.table();
    let (mut parts, mut outside, mut chosen) = (Vec::new(), Vec::new(), Vec::new());
    let count = *maker.one(&[2, 2, 2, 3]);
    for at in 0..count {
        let table = if at > 0 && maker.rng.percent(55) { maker.table() } else { first };
        let mut source = maker.single(table);
        let columns = source.columns();
        let same = |column: &Col| column.kind.is_ordered() && !matches!(column.kind, ValueKind::Plain);
        if at == 0 {
            chosen = some(maker, &columns, 4, same);
        } else {
            let kinds: Vec<ValueKind> = chosen.iter().map(|column| column.kind).collect();
            let other: Option<Vec<Col>> =
                kinds.iter().map(|kind| maker.column(&columns, |column| column.kind == *kind)).collect();
            match other {
                Some(other) => chosen = other,
                None => continue,
            }
        }
        let (list, renamed) = named(&chosen, &name);
        if at == 0 {
            outside = renamed;
        }
        let demands = maker.demands(&mut source);
        parts.push(format!("SELECT {list} FROM {}{demands}", source.text));
    }
    if parts.len() < 2 || outside.is_empty() {
        return None;
    }
    let between =
        *maker.one(&[" UNION ALL ", " UNION ALL ", " UNION ALL ", " UNION ", " UNION ", " INTERSECT ", " EXCEPT "]);
    let demand = match maker.rng.percent(65) {
        true => format!(" WHERE {}", maker.condition(&outside)),
        false => String::new(),
    };
    let from = format!("({}) AS {name}{demand}", parts.join(between));
    let all = texts(&outside);
    Some(match maker.rng.uniform(0, 3) {
        0 => (format!("SELECT count(*), {} FROM {from}", maker.aggregate(&outside, &all)), false),
        1 => {
            let group = &outside[0].text;
            (format!("SELECT {group}, count(*) FROM {from} GROUP BY {group} ORDER BY 2 DESC, 1 LIMIT 100"), true)
        }
        _ => (format!("SELECT {all} FROM {from} ORDER BY {all}{}", limit(maker)), true),
    })
}

/// A link with the rows that refer.
fn link(maker: &mut Maker<'_>) -> Option<Link> {
    let links = &maker.catalog.links;
    // The larger of two: reports are made of what there is much of.
    if links.is_empty() {
        return None;
    }
    let two = [maker.one(links).clone(), maker.one(links).clone()];
    two.into_iter().max_by_key(|link| maker.catalog.tables[link.from].rows)
}

/// Groups in a WITH, joined to what they are groups of.
fn grouped_cte(maker: &mut Maker<'_>) -> Option<(String, bool)> {
    let link = link(maker)?;
    let (query, groups) = maker.grouped_by(&link);
    let name = groups.key[0].split('.').next()?.to_string();
    let mut source = maker.single(link.to);
    let numbers: Vec<usize> = (0..link.columns.len()).collect();
    let on = pairs(&groups, &numbers, &source.rels[0], &link.to_columns);
    let kept = maker.one(&["", "", "MATERIALIZED ", "NOT MATERIALIZED "]);
    let mut demands = maker.demands(&mut source);
    if maker.rng.percent(40) {
        let word = if demands.is_empty() { " WHERE" } else { " AND" };
        demands = format!("{demands}{word} {name}.n > (SELECT avg(n) FROM {name})");
    }
    let (kind, from) = (maker.one(&["JOIN", "LEFT JOIN"]), source.text.clone());
    source.rels.push(groups);
    let list = texts(&some(maker, &source.columns(), 5, |_| true));
    let order = maker.order(&source.columns(), &source.key());
    let sql = format!("WITH {name} AS {kept}({query}) SELECT {list} FROM {from} {kind} {name} ON {on}{demands}");
    Some((format!("{sql} ORDER BY {order}{}", limit(maker)), true))
}

/// Rows in a WITH that are grouped, or looked at twice.
fn cte(maker: &mut Maker<'_>) -> Option<(String, bool)> {
    let mut source = maker.any_source();
    let demands = maker.demands(&mut source);
    let (name, other) = (maker.name(), maker.name());
    let chosen = some(maker, &source.columns(), 4, ordered);
    let (list, outside) = named(&chosen, &name);
    if outside.is_empty() {
        return None;
    }
    let with = format!("WITH {name} AS (SELECT {list} FROM {}{demands})", source.text);
    Some(match maker.rng.percent(50) {
        true => {
            let aggregate = maker.aggregate(&outside, &texts(&outside));
            let group = &outside[0].text;
            let demand = maker.condition(&outside);
            let sql =
                format!("{with} SELECT {group}, count(*), {aggregate} FROM {name} WHERE {demand} GROUP BY {group}");
            (format!("{sql} ORDER BY 2 DESC, 1 LIMIT 100"), true)
        }
        false => {
            let demand = maker.condition(&outside);
            let most = format!("(SELECT max(c1) FROM (SELECT {}.c1 FROM {name}) AS {other})", name);
            let is_comparable = !matches!(outside[0].kind, ValueKind::Bool | ValueKind::Plain);
            let last = if is_comparable { most } else { outside[0].text.clone() };
            (format!("{with} SELECT count(*) FROM {name} WHERE {demand} AND {} <= {last}", outside[0].text), false)
        }
    })
}

/// The last few rows that refer to each of some rows.
fn lateral(maker: &mut Maker<'_>) -> Option<(String, bool)> {
    let link = link(maker)?;
    let mut source = maker.single(link.to);
    let mut demands = maker.demands(&mut source);
    if !maker.is_lookup(link.from, &link.columns, source.rows) {
        return None;
    }
    let there = source.rels[0].clone();
    maker.join_lateral(&mut source, &link, &there);
    if maker.rng.percent(25) {
        let word = if demands.is_empty() { " WHERE" } else { " AND" };
        demands = format!("{demands}{word} {}", maker.condition(&source.rels[1].columns));
    }
    let list = texts(&some(maker, &source.columns(), 6, |_| true));
    let sql = format!("SELECT {list} FROM {}{demands}", source.text);
    let order = maker.order(&source.columns(), &source.key());
    Some((format!("{sql} ORDER BY {order}{}", limit(maker)), true))
}

/// Subqueries for each row of a list.
fn scalars(maker: &mut Maker<'_>) -> Option<(String, bool)> {
    let link = link(maker)?;
    let mut source = maker.single(link.to);
    let demands = maker.demands(&mut source);
    if !maker.is_lookup(link.from, &link.columns, source.rows) {
        return None;
    }
    let mut list: Vec<String> =
        some(maker, &source.columns(), 3, |_| true).into_iter().map(|column| column.text).collect();
    for number in 0..maker.rng.uniform(1, 2) {
        let (inner, text) = maker.rel(link.from);
        let on = pairs(&inner, &link.columns, &source.rels[0], &link.to_columns);
        let more = match maker.rng.percent(35) {
            true => format!(" AND {}", maker.condition(&inner.columns)),
            false => String::new(),
        };
        let value = scalar(maker, &inner);
        list.push(match value.split_once(" ORDER BY ").filter(|_| value.ends_with("LIMIT 1")) {
            Some((value, order)) => {
                format!("(SELECT {value} FROM {text} WHERE {on}{more} ORDER BY {order}) AS s{number}")
            }
            None => format!("(SELECT {value} FROM {text} WHERE {on}{more}) AS s{number}"),
        });
    }
    // By what was computed, or by what may save computing it.
    let order = match maker.rng.percent(25) {
        true => format!("s0 DESC, {}", source.key()),
        false => maker.order(&source.columns(), &source.key()),
    };
    Some((format!("SELECT {} FROM {}{demands} ORDER BY {order}{}", list.join(", "), source.text, limit(maker)), true))
}

/// An aggregate, or a value of the last row: `value ORDER BY … LIMIT 1`.
fn scalar(maker: &mut Maker<'_>, inner: &Rel) -> String {
    let key = inner.key.join(", ");
    match maker.column(&inner.columns, ordered) {
        Some(column) if maker.rng.percent(40) => {
            format!("{} ORDER BY {} LIMIT 1", column.text, maker.order(&inner.columns, &key))
        }
        _ => maker.aggregate(&inner.columns, &key),
    }
}

/// A grouped subquery joined to what it groups, and conditions on both: a view as reports use it.
fn joined_views(maker: &mut Maker<'_>) -> Option<(String, bool)> {
    let link = link(maker)?;
    let (query, mut groups) = maker.grouped_by(&link);
    let name = groups.key[0].split('.').next()?.to_string();
    let mut source = maker.single(link.to);
    let numbers: Vec<usize> = (0..link.columns.len()).collect();
    let on = pairs(&groups, &numbers, &source.rels[0], &link.to_columns);
    let demands = maker.demands(&mut source);
    let word = if demands.is_empty() { "WHERE" } else { "AND" };
    let demand = maker.condition(&groups.columns);
    let (kind, from) = (maker.one(&["JOIN", "LEFT JOIN"]), source.text.clone());
    groups.columns.iter_mut().for_each(|column| column.nullable = true);
    source.rels.push(groups);
    let list = texts(&some(maker, &source.columns(), 5, |_| true));
    let sql = format!("SELECT {list} FROM {from} {kind} ({query}) AS {name} ON {on}{demands} {word} {demand}");
    let order = maker.order(&source.columns(), &source.key());
    Some((format!("{sql} ORDER BY {order}{}", limit(maker)), true))
}
