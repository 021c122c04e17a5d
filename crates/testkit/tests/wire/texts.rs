//! Settings that steer texts, and texts that are cut.

use crate::*;

#[test]
fn date_styles_are_announced_and_used() {
    let mut pair = Pair::new(&[("DateStyle", "SQL, DMY")]);
    pair.query("SHOW DateStyle");
    for style in [
        "ISO",
        "SQL",
        "Postgres",
        "German",
        "ISO, YMD",
        "SQL, DMY",
        "Postgres, DMY",
        "SQL, MDY",
        "German, YMD",
        "euro",
        "us",
        "noneuro",
        "default",
    ] {
        pair.query(&format!("SET DateStyle = '{style}'"));
        pair.query("SHOW DateStyle");
        pair.query(
            "SELECT date '2021-02-03', timestamp '2021-02-03 04:05:06.789', timestamptz '2021-02-03 04:05:06.789+00', \
             date '0044-03-15 BC', timestamp '2021-02-03 00:00', date 'infinity', timestamptz '-infinity'",
        );
        pair.query("SELECT '01/02/2003'::date, '01-02-03'::date");
        pair.query("SELECT to_json(date '2021-02-03'), ARRAY[date '2021-02-03'], ROW(timestamp '2021-02-03 04:05')");
    }
    let announced = pair.query("SET DateStyle = 'Postgres, YMD'");
    assert!(announced.iter().any(|m| m.starts_with("S DateStyle")), "{announced:?}");
    let announced = pair.query("SET DateStyle = 'Postgres, YMD'");
    assert!(!announced.iter().any(|m| m.starts_with('S')), "nothing has changed: {announced:?}");
    pair.query("SET DateStyle = 'SQL, ISO'");
    pair.query("SET DateStyle = 'nonsense'");
    pair.query("BEGIN; SET LOCAL DateStyle = 'German'; SELECT date '2021-02-03'");
    pair.query("COMMIT; SELECT date '2021-02-03'");
    pair.query("RESET DateStyle");
}

#[test]
fn float_digits() {
    let mut pair = Pair::new(&[]);
    for digits in -15..=3 {
        pair.query(&format!("SET extra_float_digits = {digits}"));
        pair.query(
            "SELECT 1::float8 / 3, 1::float4 / 3, 1e100::float8, 123456789.123::float8, 1e-5::float4, 0.1::float8",
        );
    }
    pair.query("SET extra_float_digits = 4");
    pair.query("SET extra_float_digits = -16");
}

#[test]
fn identifiers_are_cut_at_63_bytes() {
    let mut pair = Pair::new(&[]);
    for name in [
        "a".repeat(63),
        "a".repeat(64),
        "b".repeat(200),
        format!("{}\u{e9}", "c".repeat(62)),
        format!("{}\u{65e5}x", "d".repeat(61)),
        format!("{}\u{1f600}", "e".repeat(60)),
    ] {
        pair.query(&format!("SELECT 1 AS \"{name}\""));
        pair.query(&format!("SELECT 1 AS {name}"));
        pair.same(
            &[
                parse("", format!("SELECT 1 AS \"{name}\"").as_bytes()),
                bind("", &[], 0),
                describe(),
                execute(0),
                sync(),
            ],
            1,
        );
        pair.query(&format!("CREATE TABLE \"{name}\" (\"{name}\" int)"));
        pair.query(&format!("SELECT relname, attname FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid WHERE attnum = 1 AND relname = '{name}'::name"));
        pair.query(&format!("DROP TABLE \"{name}\""));
        pair.query(&format!("LISTEN \"{name}\"; NOTIFY \"{name}\", 'x'; UNLISTEN *"));
        pair.query(&format!("SAVEPOINT \"{name}\""));
        pair.query(&format!("PREPARE \"{name}\" AS SELECT 1; EXECUTE \"{name}\"; DEALLOCATE \"{name}\""));
    }
}

#[test]
fn escapes() {
    let mut pair = Pair::new(&[]);
    pair.query(r"SELECT E'\v', E'\b\f\n\r\t', E'\101\x41\u0041\U00000041', E'\q', E'\'', convert_to(E'a\vb', 'UTF8')");
    pair.query(r"SELECT E'\xe9'");
    pair.query(r"SELECT E'\000'");
    pair.query(r"SELECT E'\u0000'");
    pair.query(r"SELECT E'\ud800'");
    pair.query(r"SELECT E'\ud83d\ude00', U&'\+01F600'");
    pair.query(r"COPY (SELECT E'a\vb\\c\td') TO STDOUT");
}
