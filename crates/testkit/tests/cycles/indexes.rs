//! Each index says the same as its table.

use testkit::Connection;

use super::ask::must;

/// The settings that leave a scan of all rows, and those that leave the index.
const BY_TABLE: &str = "SET enable_seqscan = on; SET enable_sort = on; SET enable_indexscan = off; \
    SET enable_indexonlyscan = off; SET enable_bitmapscan = off";
const BY_INDEX: &str = "SET enable_seqscan = off; SET enable_sort = off; SET enable_indexscan = on; \
    SET enable_indexonlyscan = off; SET enable_bitmapscan = off";

/// Reads every table by each of its valid indexes and without, and compares; how many indexes there are.
pub fn check(connection: &mut Connection) -> usize {
    let all = must(
        connection,
        "SELECT indexrelid::regclass, indrelid::regclass, \
                coalesce(pg_get_expr(indpred, indrelid), 'true'), \
                (SELECT string_agg(coalesce(nullif(pg_get_indexdef(indexrelid, k, true), ''), '1') \
                        || CASE indoption[k - 1] WHEN 3 THEN ' DESC' WHEN 1 THEN ' DESC NULLS LAST' WHEN 2 THEN ' NULLS FIRST' ELSE '' END, \
                        ', ' ORDER BY k) FROM generate_series(1, indnkeyatts) AS k) \
         FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid \
         WHERE indisvalid AND relnamespace = 'public'::regnamespace ORDER BY 1",
    );
    for row in all.rows() {
        let text = |n: usize| row[n].clone().unwrap_or_default();
        compare(connection, &text(0), &text(1), &text(2), &text(3));
    }
    must(connection, "RESET ALL");
    all.rows().count()
}

fn compare(connection: &mut Connection, index: &str, table: &str, predicate: &str, keys: &str) {
    // An expression gives no order to a query; a condition on it takes the index, and passes rows without the value.
    let is_expression = keys.starts_with(|c: char| !c.is_alphabetic()) || keys.contains('(');
    let first = keys.split(", ").next().filter(|key| key.matches('(').count() == key.matches(')').count());
    let (predicate, order) = match first.filter(|_| is_expression) {
        Some(key) => (&*format!("{predicate} AND {key} >= (SELECT min({key}) FROM {table})"), String::new()),
        None => (predicate, format!(" ORDER BY {keys}")),
    };
    let ordered = format!("SELECT * FROM {table} WHERE {predicate}{order}");
    must(connection, BY_INDEX);
    let plan = must(connection, &format!("EXPLAIN {ordered}")).to_string();
    assert!(plan.contains(&format!(" using {index} ")), "{index} is not used for {ordered}:\n{plan}");
    let mut by_index = must(connection, &ordered);
    must(connection, BY_TABLE);
    let mut by_table = must(connection, &format!("SELECT * FROM {table} WHERE {predicate}"));
    by_index.sort_rows();
    by_table.sort_rows();
    if by_index != by_table {
        let (a, b): (Vec<_>, Vec<_>) = (by_index.rows().collect(), by_table.rows().collect());
        type Rows<'r> = [&'r [Option<String>]];
        let only = |x: &Rows<'_>, y: &Rows<'_>| -> Vec<String> {
            x.iter().filter(|row| !y.contains(row)).take(3).map(|row| format!("{row:?}")).collect()
        };
        panic!(
            "{index} of {table}: {} rows by the index, {} in the table; only there {:?}, only here {:?}",
            a.len(),
            b.len(),
            only(&a, &b),
            only(&b, &a)
        );
    }
}
