//! Every built-in of the server with large arguments, at a limit: functions, aggregates, operators and casts as the server lists
//! them, so that a new one is not left out. Each answers, says what is wrong with its arguments, or is refused with 53200 or
//! 54000; the process stays within the limit.

use std::collections::BTreeMap;
use std::time::Duration;

use testkit::{Connection, Reply};

use super::server::{run, shortened, start};

/// What is not called: what waits, ends others, or changes what the test itself needs.
const NOT_CALLED: &[&str] = &[
    "pg_sleep",
    "pg_sleep_for",
    "pg_sleep_until",
    "pg_terminate_backend",
    "pg_cancel_backend",
    "pg_reload_conf",
    "pg_rotate_logfile",
    "set_config",
    "pg_advisory_lock",
    "pg_advisory_xact_lock",
    "pg_advisory_lock_shared",
    "pg_advisory_xact_lock_shared",
    "nyala_checkpoint",
];

/// Calls that cannot be made within the limit. They show that the arguments are large enough for the test.
const REFUSED: &[&str] = &["lpad(3)", "array_agg(1)", "jsonb_delete(2)", "array_to_string(2)"];

/// A large value of a type: about `unit` bytes. `None` for types that have no large or no usual values.
fn argument(ty: &str, unit: usize) -> Option<String> {
    Some(match ty {
        "text" | "unknown" | "varchar" | "bpchar" | "anyelement" | "anynonarray" | "anycompatible" | "\"any\"" => {
            format!("repeat('a,b1 ', {})", unit / 5)
        }
        "name" => "'abc'::name".to_string(),
        "\"char\"" => "'r'::\"char\"".to_string(),
        "int2" => "3::int2".to_string(),
        "int4" => format!("{}", 20 * unit),
        "int8" => format!("{}::int8", 20 * unit),
        "float4" | "float8" => format!("1e30::{ty}"),
        "numeric" => "1e2000".to_string(),
        "bool" => "true".to_string(),
        "bytea" => format!("decode(repeat('00ff5c', {}), 'hex')", unit / 3),
        "json" | "jsonb" => format!("('[' || repeat('\"a\",', {}) || '1]')::{ty}", unit / 4),
        "jsonpath" => "'$[*]'::jsonpath".to_string(),
        "text[]" => format!("string_to_array(repeat('a,', {}), ',')", unit / 40),
        "anyarray" | "anycompatiblearray" | "int4[]" => format!("array_fill(7, ARRAY[{}])", unit / 24),
        "date" => "'2024-02-29'::date".to_string(),
        "time" | "timetz" | "timestamp" | "timestamptz" => format!("'2024-02-29 12:34:56'::{ty}"),
        "interval" => "'3 days'::interval".to_string(),
        "uuid" => "'00000000-0000-0000-0000-000000000000'::uuid".to_string(),
        "oid" => "1::oid".to_string(),
        "regclass" => "'pg_class'::regclass".to_string(),
        "regtype" => "'text'::regtype".to_string(),
        "record" => format!("ROW(repeat('\"', {}), 1)", unit),
        _ => return None,
    })
}

/// Rows of one or more columns.
fn rows(connection: &mut Connection, sql: &str) -> Vec<Vec<String>> {
    let reply = run(connection, sql);
    reply.rows().map(|row| row.iter().map(|v| v.clone().unwrap_or_default()).collect()).collect()
}

/// The calls to make, by what they are called.
fn calls(connection: &mut Connection, unit: usize) -> Vec<(String, String)> {
    let mut calls = Vec::new();
    // Short names, as `argument` takes them.
    let types: BTreeMap<String, String> = rows(
        connection,
        "SELECT oid::text, CASE WHEN typname ~ '^_' AND typelem <> 0 THEN substr(typname, 2) || '[]' \
         WHEN typname IN ('any', 'char') THEN '\"' || typname || '\"' ELSE typname::text END FROM pg_type",
    )
    .into_iter()
    .map(|row| (row[0].clone(), row[1].clone()))
    .collect();
    let functions = rows(
        connection,
        "SELECT proname, proargtypes::text, prokind::text, proretset::text FROM pg_proc \
         WHERE prokind IN ('f', 'a') AND prorettype::regtype::text NOT IN ('trigger', 'internal', 'event_trigger') ORDER BY oid",
    );
    for function in functions {
        let [name, args, kind, set] = function.as_slice() else { unreachable!("four columns were asked for") };
        if NOT_CALLED.contains(&name.as_str()) || args.is_empty() {
            continue;
        }
        let args: Option<Vec<String>> = args.split_whitespace().map(|oid| argument(types.get(oid)?, unit)).collect();
        let Some(args) = args else { continue };
        let list = args.join(", ");
        let sql = match (kind.as_str(), set.as_str()) {
            ("a", _) => format!("SELECT length(\"{name}\"({list})::text) FROM generate_series(1, 60)"),
            (_, "true" | "t") => format!("SELECT count(*) FROM \"{name}\"({list}) AS f"),
            _ => format!("SELECT length(\"{name}\"({list})::text)"),
        };
        calls.push((format!("{name}({})", args.len()), sql));
    }
    for operator in rows(connection, "SELECT oprname, oprleft::text, oprright::text FROM pg_operator ORDER BY oid") {
        let side = |oid: &String| argument(types.get(oid)?, unit);
        let (left, right) = (side(&operator[1]), side(&operator[2]));
        if let (Some(left), Some(right)) = (left, right) {
            calls.push((
                format!("operator {}", operator[0]),
                format!("SELECT length((({left}) {} ({right}))::text)", operator[0]),
            ));
        }
    }
    for cast in rows(connection, "SELECT castsource::text, casttarget::text, casttarget::regtype::text FROM pg_cast") {
        if let Some(value) = types.get(&cast[0]).and_then(|ty| argument(ty, unit)) {
            calls.push((format!("cast to {}", cast[2]), format!("SELECT length((({value})::{})::text)", cast[2])));
        }
    }
    for ty in ["text", "bytea", "json", "jsonb", "text[]", "int4[]", "numeric", "jsonpath", "uuid", "date", "interval"]
    {
        for value in ["text", "json", "text[]", "bytea"] {
            if let Some(value) = argument(value, unit) {
                calls.push((format!("{ty} read"), format!("SELECT length((({value})::text::{ty})::text)")));
            }
        }
    }
    calls
}

/// Whether a reply is one that a call with such arguments may have: a result, an error of its arguments, a refusal, or the end of
/// its time.
fn is_fine(reply: &Reply) -> bool {
    let class = &reply.code()[..2];
    matches!(class, "00" | "22" | "2B" | "2F" | "0A" | "42" | "54" | "55" | "57" | "3D" | "3F" | "25" | "21")
        || reply.code() == "53200"
}

#[test]
fn built_ins_stay_within_the_limit() {
    const LIMIT: u64 = 64;
    let Some(server) = start(&["--memory-limit", "64MB", "--cores", "2"]) else { return };
    let mut connection = server.connect();
    let all = std::env::var_os("NYALA_LARGE").is_some();
    let mut calls = calls(&mut connection, if all { 4 << 20 } else { 1 << 20 });
    assert!(calls.len() > 1500, "{} calls only", calls.len());
    let idle = server.resident_mib();
    // Without a timeout: how many of the others are refused before their time is over depends on the machine.
    for name in REFUSED {
        let refused = calls.iter().filter(|(what, _)| what == name).any(|(_, sql)| {
            connection.send(sql);
            let reply =
                connection.receive(Duration::from_secs(120)).unwrap_or_else(|| panic!("{name} goes on for ever"));
            matches!(reply.code(), "53200" | "54000")
        });
        assert!(refused, "{name} is not refused: the arguments are too small for the test");
    }
    if !all {
        // One of four parts, another one with another seed.
        let part = testkit::Random::seed() % 4;
        println!("part {part} of four; NYALA_SEED chooses, NYALA_LARGE=1 makes all");
        calls = calls.into_iter().zip(0u64..).filter(|(_, n)| n % 4 == part).map(|(call, _)| call).collect();
    }
    // A call that goes on is another test's business.
    run(&mut connection, "SET statement_timeout = 150");
    let (mut refused, mut worst) = (0, (0, String::new()));
    for (what, sql) in &calls {
        connection.send(sql);
        let reply = connection.receive(Duration::from_secs(120)).unwrap_or_else(|| panic!("{what} goes on for ever"));
        assert!(is_fine(&reply), "{what}: {}: {reply}", shortened(sql));
        refused += usize::from(matches!(reply.code(), "53200" | "54000"));
        let peak = server.peak_mib();
        assert!(peak <= idle + LIMIT + 64, "{what}: {peak} MiB at most, {idle} before: {}", shortened(sql));
        if peak > worst.0 {
            worst = (peak, what.clone());
        }
    }
    println!("{} calls, {refused} refused; {} MiB at most, by {}, {idle} before", calls.len(), worst.0, worst.1);
    run(&mut connection, "RESET statement_timeout; SELECT 1");
    server.assert_sound();
}
