//! The binary form of values: what PostgreSQL writes both servers must read, and write again; what is damaged they must
//! refuse with the same error.
//!
//! The seed is printed; `NYALA_SEED=n` repeats a run, `NYALA_ROUNDS=n` makes it n times as long.

use testkit::{Comparison, Random, Reply};

const DAMAGED: u64 = 2500;

/// Types with values, as text.
const TYPES: &[(&str, &[&str])] = &[
    ("bool", &["t", "f"]),
    ("int2", &["0", "-32768", "32767"]),
    ("int4", &["0", "-1", "2147483647"]),
    ("int8", &["0", "-9223372036854775808", "5000000000"]),
    ("float4", &["0", "-0", "1.5", "NaN", "Infinity", "-Infinity", "1e-40", "3.4e38"]),
    ("float8", &["0", "-0", "0.1", "NaN", "Infinity", "-Infinity", "1e-310", "1.7e308"]),
    (
        "numeric",
        &[
            "0",
            "0.000",
            "1",
            "-1",
            "10000",
            "9999",
            "0.0001",
            "0.00001",
            "123456789.987654321",
            "1e100",
            "1e-100",
            "NaN",
            "Infinity",
            "-Infinity",
            "100",
            "1.5000",
            "-12345678901234567890.123",
            "99990000",
        ],
    ),
    ("numeric(10,2)", &["0", "1.5", "-12345678.99", "NaN"]),
    ("text", &["", "a", "é日本", "a b\n"]),
    ("varchar(3)", &["", "abc"]),
    ("bpchar(4)", &["", "ab"]),
    ("name", &["", "abc"]),
    ("\"char\"", &["", "a"]),
    ("bytea", &["", "\\x00ff", "\\xdeadbeef"]),
    ("date", &["2000-01-01", "infinity", "-infinity", "4713-01-01 BC", "5874897-12-31"]),
    ("time", &["00:00", "24:00", "12:34:56.789012"]),
    ("timetz", &["00:00+00", "24:00-15:59", "12:34:56.789+05:30"]),
    ("timestamp", &["2000-01-01", "infinity", "-infinity", "1999-12-31 23:59:59.999999"]),
    ("timestamptz", &["2000-01-01 00:00+00", "infinity", "-infinity", "2024-02-29 12:00+02"]),
    ("interval", &["0", "1 year 2 mons 3 days 04:05:06.7", "-1 day", "-00:00:00.5"]),
    ("uuid", &["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"]),
    ("inet", &["10.0.0.1", "10.0.0.1/8", "::1", "2001:db8::/32"]),
    ("cidr", &["10.0.0.0/8", "1.2.3.4", "::/0"]),
    ("macaddr", &["08:00:2b:01:02:03"]),
    ("macaddr8", &["08:00:2b:01:02:03:04:05"]),
    ("\"bit\"", &["", "1", "10101010", "101010101"]),
    ("bit(4)", &["1010"]),
    ("varbit(10)", &["", "1", "1010101010"]),
    ("inet[]", &["{10.0.0.1,NULL,::/0}"]),
    ("varbit[]", &["{101,\"\",NULL}"]),
    ("json", &["{}", "[1, 2]", "\"a\"", " null "]),
    ("jsonb", &["{}", "[1, 2]", "{\"b\": 1, \"a\": null}", "1.50"]),
    ("jsonpath", &["$", "$.a[*] ? (@ > 1)"]),
    ("oid", &["0", "4294967295"]),
    ("int4[]", &["{}", "{1,2,3}", "{NULL,1}", "{{1,2},{3,4}}", "[0:1]={5,6}", "[-1:0][2:3]={{1,2},{NULL,4}}"]),
    ("text[]", &["{}", "{a,NULL,\"\"}", "{{x},{y}}"]),
    ("numeric[]", &["{1.50,NaN,Infinity}", "{}"]),
    ("bool[]", &["{t,f,NULL}"]),
    ("timestamptz[]", &["{2000-01-01 00:00+00,infinity}"]),
    ("jsonb[]", &["{\"{}\",NULL}"]),
    ("uuid[]", &["{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}"]),
    ("bytea[]", &["{\"\\\\x00ff\"}"]),
    ("mood", &["happy", "sad"]),
    ("positive", &["1", "12"]),
    ("int2vector", &["1 2", ""]),
    ("oidvector", &["1 2"]),
];

fn bytes(hexadecimal: &str) -> Vec<u8> {
    let digit = |at: usize| u8::from_str_radix(&hexadecimal[at..at + 2], 16).expect("the client writes hexadecimal");
    (0..hexadecimal.len() / 2).map(|at| digit(2 * at)).collect()
}

/// A value with something changed, added or missing.
fn damaged(random: &mut Random, value: &[u8]) -> Vec<u8> {
    let mut value = value.to_vec();
    let at = random.below(value.len().max(1) as u64) as usize;
    match random.below(6) {
        0 => value.truncate(at),
        1 => value.push(random.below(256) as u8),
        2 if !value.is_empty() => value[at] = random.below(256) as u8,
        3 if !value.is_empty() => value[at] ^= 1 << random.below(8),
        4 if !value.is_empty() => {
            value.remove(at);
        }
        _ => value.insert(at, random.below(3) as u8),
    }
    value
}

#[test]
fn binary_forms_agree() {
    let seed = Random::seed();
    println!("NYALA_SEED={seed}");
    let rounds: u64 = std::env::var("NYALA_ROUNDS").map_or(1, |text| text.parse().expect("NYALA_ROUNDS is a number"));
    let mut random = Random::new(seed);
    let mut servers = Comparison::start(&["SET timezone = 'Europe/Berlin'"]);
    for sql in ["CREATE TYPE mood AS ENUM ('sad', 'happy')", "CREATE DOMAIN positive AS int4 CHECK (VALUE > 0)"] {
        let (first, second) = servers.connections();
        assert_eq!((first.query(sql).error(), second.query(sql).error()), (None, None), "{sql}");
    }
    let mut forms = Vec::new();
    for (name, values) in TYPES {
        for value in *values {
            let sql = format!("SELECT '{}'::{name}", value.replace('\'', "''"));
            let (first, second) = servers.connections();
            let [expected, actual] = [first, second].map(|connection| without_types(connection.binary(&sql, &[])));
            servers.judge(&sql, &expected, &actual, |_, _| false);
            let Some(form) = expected.value().map(bytes) else { panic!("{sql}: {expected}") };
            forms.push((format!("SELECT $1::{name}::text"), form));
        }
    }
    for (sql, form) in &forms {
        compare(&mut servers, sql, form);
    }
    for _ in 0..rounds * DAMAGED {
        let (sql, form) = &forms[random.below(forms.len() as u64) as usize];
        let form = damaged(&mut random, form);
        compare(&mut servers, sql, &form);
    }
    servers.finish(seed);
}

fn compare(servers: &mut Comparison, sql: &str, form: &[u8]) {
    let (first, second) = servers.connections();
    let [expected, actual] = [first, second].map(|connection| connection.with_binary(sql, form));
    servers.judge(&format!("{sql} {form:02x?}"), &expected, &actual, is_other_number);
}

/// Modifiers of constants are the planner's affair.
fn without_types(mut reply: Reply) -> Reply {
    reply.events.retain(|event| !matches!(event, testkit::Event::Columns(_) | testkit::Event::Parameters(_)));
    reply
}

/// Errors about the numbers of types that statements made show those numbers.
fn is_other_number(expected: &Reply, actual: &Reply) -> bool {
    let text = |reply: &Reply| reply.error().map(|e| e.message.replace(|c: char| c.is_ascii_digit(), ""));
    let same = text(expected).is_some() && text(expected) == text(actual) && expected.code() == actual.code();
    // Which of two faults is found first; and names of row types, of which there are fewer.
    same || expected.code() == "23514" && actual.code() == "22P03"
        || expected.code() == "42804" && actual.code() == "42804"
}
