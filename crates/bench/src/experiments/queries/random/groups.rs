//! Shapes of statements that put rows together: groups, totals, different values, windows.

use super::shapes::{limit, named, ordered, some, texts};
use super::sources::Source;
use super::terms::{Col, Maker};

/// What to group by, one or two, mostly of few values.
fn grouping(maker: &mut Maker<'_>, columns: &[Col]) -> Option<Vec<String>> {
    let mut all = Vec::new();
    for _ in 0..*maker.one(&[1, 1, 1, 2, 2, 3]) {
        let two = [maker.column(columns, ordered)?, maker.column(columns, ordered)?];
        let best = match maker.rng.percent(75) && maker.variety(&two[1]) < maker.variety(&two[0]) {
            true => &two[1],
            false => &two[0],
        };
        let group = maker.group(best);
        if !all.contains(&group) {
            all.push(group);
        }
    }
    Some(all)
}

/// Groups with aggregates.
pub(super) fn groups(maker: &mut Maker<'_>) -> Option<(String, bool)> {
    let mut source = maker.any_source();
    let demands = maker.demands(&mut source);
    let (columns, key) = (source.columns(), source.key());
    let groups = grouping(maker, &columns)?;
    let count = maker.rng.uniform(1, 4);
    let aggregates: Vec<String> = (0..count).map(|_| maker.aggregate(&columns, &key)).collect();
    let having = match maker.rng.uniform(1, 100) {
        1..=18 => format!(" HAVING count(*) > {}", maker.small(1, if maker.is_broad() { 100 } else { 3 })),
        19..=24 => match maker.column(&columns, |column| column.kind.is_exact_number()) {
            Some(number) => format!(" HAVING sum({}) > {}", number.text, maker.small(0, 10_000)),
            None => String::new(),
        },
        25..=28 => format!(" HAVING {} IS NOT NULL", groups[0]),
        _ => String::new(),
    };
    let list = groups.join(", ");
    let sql = format!("SELECT {list}, {} FROM {}{demands} GROUP BY {list}{having}", aggregates.join(", "), source.text);
    let order = match maker.rng.percent(50) {
        true => format!("{} DESC, {list}", maker.rng.uniform(1, count) + groups.len() as i64),
        false => list,
    };
    Some((format!("{sql} ORDER BY {order} LIMIT {}", maker.one(&[10, 50, 100, 1000])), true))
}

/// Aggregates of all rows.
pub(super) fn totals(maker: &mut Maker<'_>) -> Option<(String, bool)> {
    let mut source = maker.any_source();
    let demands = maker.demands(&mut source);
    let (columns, key) = (source.columns(), source.key());
    let all: Vec<String> = (0..maker.rng.uniform(1, 4)).map(|_| maker.aggregate(&columns, &key)).collect();
    Some((format!("SELECT {} FROM {}{demands}", all.join(", "), source.text), false))
}

/// Different values.
pub(super) fn distinct(maker: &mut Maker<'_>) -> Option<(String, bool)> {
    let mut source = maker.any_source();
    let demands = maker.demands(&mut source);
    let chosen = some(maker, &source.columns(), 3, ordered);
    if chosen.is_empty() {
        return None;
    }
    let list = texts(&chosen);
    let sql = format!("SELECT DISTINCT {list} FROM {}{demands}", source.text);
    Some(match maker.rng.percent(75) {
        true => (format!("{sql} ORDER BY {list}{}", limit(maker)), true),
        false => {
            let name = maker.name();
            (format!("SELECT count(*) FROM ({sql}) AS {name}"), false)
        }
    })
}

/// The first row of each group.
pub(super) fn distinct_on(maker: &mut Maker<'_>) -> Option<(String, bool)> {
    let mut source = maker.any_source();
    let demands = maker.demands(&mut source);
    let columns = source.columns();
    let on = texts(&some(maker, &columns, 2, ordered));
    if on.is_empty() {
        return None;
    }
    let order = maker.order(&columns, &source.key());
    let list = texts(&some(maker, &columns, 4, |_| true));
    let sql = format!("SELECT DISTINCT ON ({on}) {on}, {list} FROM {}{demands} ORDER BY {on}, {order}", source.text);
    Some((format!("{sql}{}", limit(maker)), true))
}

/// A window function over the source.
fn window(maker: &mut Maker<'_>, source: &Source) -> String {
    let columns = source.columns();
    let part = match maker.column(&columns, ordered) {
        Some(column) if maker.rng.percent(75) => format!("PARTITION BY {} ", column.text),
        _ => String::new(),
    };
    let order = maker.order(&columns, &source.key());
    let number = maker.column(&columns, |column| column.kind.is_exact_number());
    let by = maker.column(&columns, ordered);
    match (maker.rng.uniform(0, 7), number, by) {
        (0, _, Some(by)) => format!("rank() OVER ({part}ORDER BY {})", by.text),
        (1, _, Some(by)) => format!("dense_rank() OVER ({part}ORDER BY {} DESC)", by.text),
        (2, _, Some(by)) => format!("lag({}) OVER ({part}ORDER BY {order})", by.text),
        (3, Some(number), _) => format!("sum({}) OVER ({part}ORDER BY {order})", number.text),
        (4, Some(number), _) => format!("sum({}) OVER ({})", number.text, part.trim_end()),
        (5, _, _) => format!("count(*) OVER ({})", part.trim_end()),
        _ => format!("row_number() OVER ({part}ORDER BY {order})"),
    }
}

/// Window functions in a list.
pub(super) fn windows(maker: &mut Maker<'_>) -> Option<(String, bool)> {
    let count = maker.rng.uniform(1, 2);
    let mut source = maker.joined(count);
    let demands = maker.demands(&mut source);
    let list = texts(&some(maker, &source.columns(), 3, |_| true));
    let all: Vec<String> = (0..maker.rng.uniform(1, 2)).map(|_| window(maker, &source)).collect();
    let order = maker.order(&source.columns(), &source.key());
    let sql = format!("SELECT {list}, {} FROM {}{demands} ORDER BY {order}", all.join(", "), source.text);
    Some((format!("{sql}{}", limit(maker)), true))
}

/// A window function in a subquery, and a condition on it: the first of each group, differences to the row before.
pub(super) fn ranked(maker: &mut Maker<'_>) -> Option<(String, bool)> {
    let count = maker.rng.uniform(1, 3);
    let mut source = maker.joined(count);
    let demands = maker.demands(&mut source);
    let name = maker.name();
    let chosen = some(maker, &source.columns(), 4, ordered);
    let (list, outside) = named(&chosen, &name);
    if outside.is_empty() {
        return None;
    }
    let order = maker.order(&source.columns(), &source.key());
    let part = maker.column(&source.columns(), ordered)?;
    let rank = match maker.rng.uniform(0, 3) {
        0 => format!("rank() OVER (PARTITION BY {} ORDER BY {})", part.text, chosen[0].text),
        _ => format!("row_number() OVER (PARTITION BY {} ORDER BY {order})", part.text),
    };
    let mut demand = format!("{name}.place {} {}", maker.one(&["<=", "<=", "=", "<"]), maker.small(1, 5));
    if maker.rng.percent(40) {
        demand = format!("{demand} AND {}", maker.condition(&outside));
    }
    let from = format!("(SELECT {list}, {rank} AS place FROM {}{demands}) AS {name} WHERE {demand}", source.text);
    Some(match maker.rng.percent(60) {
        true => {
            let all = texts(&outside);
            (format!("SELECT {all}, {name}.place FROM {from} ORDER BY {all}, {name}.place{}", limit(maker)), true)
        }
        false => {
            let group = &outside[0].text;
            (format!("SELECT {group}, count(*) FROM {from} GROUP BY {group} ORDER BY 2 DESC, 1 LIMIT 100"), true)
        }
    })
}
