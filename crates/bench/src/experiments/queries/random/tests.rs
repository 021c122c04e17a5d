//! Statements over a small catalog, without a server.

use super::catalog::{Catalog, Column, Link, Table, ValueKind};
use super::shapes::{Made, SHAPES, statement};
use super::*;

fn table(name: &str, columns: &[(&str, ValueKind)], key: &[usize], indexes: &[&[usize]], rows: u64) -> Table {
    let value = |row: u64, kind: ValueKind| match kind {
        ValueKind::Integer => (row % 9).to_string(),
        ValueKind::Numeric => format!("{}.50", row % 7),
        ValueKind::Bool => "true".into(),
        ValueKind::Date => format!("2025-01-{:02}", row % 20 + 1),
        ValueKind::Timestamp => format!("2025-01-{:02} 10:00:00", row % 20 + 1),
        ValueKind::Json => "{\"size\": 1}".into(),
        _ => format!("it's {row}%"),
    };
    let column =
        |(name, kind): &(&str, ValueKind)| Column { name: (*name).into(), kind: *kind, nullable: *name != "id" };
    Table {
        name: name.into(),
        columns: columns.iter().map(column).collect(),
        key: key.to_vec(),
        rows,
        indexes: indexes.iter().map(|index| index.to_vec()).chain([key.to_vec()]).collect(),
        samples: (0..20)
            .map(|row| columns.iter().map(|(_, kind)| (row % 5 != 4).then(|| value(row, *kind))).collect())
            .collect(),
    }
}

/// Users, their orders and lines of these.
fn shop() -> Catalog {
    use ValueKind::{Bool, Date, Integer, Json, Numeric, Plain, Text, Timestamp};
    let users = [("id", Integer), ("email", Text), ("active", Bool), ("born", Date), ("settings", Json)];
    let orders = [("id", Integer), ("user_id", Integer), ("state", Plain), ("at", Timestamp), ("total", Numeric)];
    let lines = [("order_id", Integer), ("number", Integer), ("product", Text), ("price", Numeric)];
    let mut shop = Catalog {
        tables: vec![
            table("shop.users", &users, &[0], &[&[1]], 1_000),
            table("orders", &orders, &[0], &[&[1, 3]], 50_000),
            table("lines", &lines, &[0, 1], &[], 200_000),
        ],
        links: vec![Link { from: 2, columns: vec![0], to: 1, to_columns: vec![0], siblings: 1.0 }],
    };
    shop.guess_links();
    shop
}

#[test]
fn a_link_is_found_by_its_name() {
    let links = shop().links;
    assert!(
        links.contains(&Link { from: 1, columns: vec![1], to: 0, to_columns: vec![0], siblings: 1.0 }),
        "{links:?}"
    );
    assert_eq!(links.len(), 2, "{links:?}");
}

#[test]
fn a_seed_repeats_its_statements() {
    let shop = shop();
    for number in 0..300 {
        assert_eq!(statement(&shop, 7, number), statement(&shop, 7, number));
    }
    assert_ne!(statement(&shop, 7, 0), statement(&shop, 8, 0));
}

#[test]
fn every_shape_and_every_condition_occurs() {
    let shop = shop();
    let made: Vec<Made> = (0..1_500).map(|number| statement(&shop, 1, number)).collect();
    for (shape, ..) in SHAPES {
        assert!(made.iter().any(|made| made.shape == shape), "{shape}");
    }
    let parts = [
        " JOIN ",
        " LEFT JOIN ",
        " RIGHT JOIN ",
        " FULL JOIN ",
        " JOIN LATERAL ",
        " FROM (SELECT ",
        " BETWEEN ",
        " IN (",
        ") IN ((",
        ") > (",
        " LIKE '",
        " LIKE '%",
        " IS NULL",
        " OR ",
        "NOT (",
        "lower(",
        "- interval '",
        "::date = ",
        "::numeric = ",
        "= ANY (ARRAY[",
        "NOT EXISTS (",
        " EXISTS (SELECT",
        " IN (SELECT ",
        " NOT IN (SELECT ",
        "(SELECT count(*) FROM",
        " HAVING ",
        "count(DISTINCT ",
        "string_agg(",
        " FILTER (WHERE ",
        "DISTINCT ON (",
        "row_number() OVER (",
        "rank() OVER (",
        "lag(",
        ") OVER (PARTITION BY",
        " UNION ALL ",
        " UNION SELECT",
        "WITH ",
        " OFFSET ",
        ".place <= ",
        " ->> 'size'",
        "date_trunc(",
    ];
    for part in parts {
        assert!(made.iter().any(|made| made.sql.contains(part)), "{part}");
    }
    let tables = |made: &Made| made.sql.matches("JOIN ").count() + 1;
    assert!((1..=5).all(|count| made.iter().any(|made| tables(made) == count)));
}

#[test]
fn what_is_cut_is_ordered() {
    let shop = shop();
    for number in 0..1_500 {
        let made = statement(&shop, 3, number);
        let (open, close) = (made.sql.matches('(').count(), made.sql.matches(')').count());
        assert_eq!(open, close, "{}", made.sql);
        let cut = made.sql.rsplit(')').next().unwrap_or_default().contains(" LIMIT ");
        assert!(!cut || made.ordered && made.sql.contains(" ORDER BY "), "{}", made.sql);
    }
}

#[test]
fn statements_are_shared_among_the_schemas() {
    assert_eq!(shares(300, 11, 0).iter().sum::<u64>(), 300);
    let of = |seed| shares(2, 11, seed);
    assert_eq!(of(5).iter().sum::<u64>(), 2);
    assert_ne!(of(5), of(6));
    assert_eq!(shares(0, 3, 1), [0, 0, 0]);
    assert_ne!(stream("oscar", 1), stream("ledger", 1));
}

#[test]
fn a_plan_says_what_it_reads() {
    let table = |name: &str, rows| Table { name: name.into(), rows, ..Table::default() };
    let catalog = Catalog { tables: vec![table("a.job", 1000), table("entries", 300_000)], links: Vec::new() };
    let plan = "Limit  (cost=0.00..1.00 rows=5 width=4)\n  ->  Hash Join  (cost=0.00..9.00 rows=7 width=4)\n\
                \x20       Hash Cond: (a.id = b.id)\n\
                \x20       ->  Parallel Seq Scan on entries t1  (cost=0.00..5.00 rows=4 width=4)\n\
                \x20       ->  Seq Scan on job  (cost=0.00..5.00 rows=4 width=4)\n\
                \x20       ->  Index Scan using x on entries t2  (cost=0.00..5.00 rows=40 width=4)";
    assert_eq!(scanned(plan, &catalog), 301_040);
}

#[test]
fn what_says_nothing_of_the_other_server_is_left_out() {
    let failed = |states: [Option<&str>; 2]| {
        let states = states.map(|state| state.map(str::to_string));
        let mut judged = Judged { error: Some("why".into()), states, ..Judged::default() };
        leave_out(&mut judged);
        judged.left_out.is_some()
    };
    assert!(failed([Some("22012"), Some("22012")]) && failed([Some("57014"), None]));
    assert!(
        !failed([None, Some("57014")]) && !failed([Some("22012"), None]) && !failed([Some("22012"), Some("22003")])
    );
}
