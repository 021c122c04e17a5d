//! Calls of built-in functions, one per line of `data/functions_a.txt`, with the results that PostgreSQL 15 gives.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;

use base::{Error, Oid, Result};
use sql_functions::{EvalContext, Function, Identity, function, functions_named, set_functions_named};
use types::{Datum, InputContext, OutputSettings, TimeZone};

/// A session without a server: settings, and a clock that stands still.
struct Session {
    settings: OutputSettings,
    seed: Cell<f64>,
}

impl Session {
    fn new() -> Session {
        sql_catalog::install();
        types::user::Current::by(&std::sync::Arc::default()).stay();
        let timezone = TimeZone::parse("America/New_York").expect("a zone of the bundled database");
        Session { settings: OutputSettings { timezone, ..OutputSettings::default() }, seed: Cell::new(0.25) }
    }
}

fn absent<T>() -> Result<T> {
    Err(Error::unsupported("the session of this test has no such thing"))
}

impl EvalContext for Session {
    fn settings(&self) -> &OutputSettings {
        &self.settings
    }
    fn transaction_timestamp(&self) -> i64 {
        762_523_200_000_000
    }
    fn statement_timestamp(&self) -> i64 {
        self.transaction_timestamp()
    }
    fn clock_timestamp(&self) -> i64 {
        self.transaction_timestamp()
    }
    fn random(&self) -> f64 {
        self.seed.get()
    }
    fn set_seed(&self, seed: f64) {
        self.seed.set(seed);
    }
    fn next_value(&self, _: Oid) -> Result<i64> {
        absent()
    }
    fn current_value(&self, _: Oid) -> Result<i64> {
        absent()
    }
    fn set_value(&self, _: Oid, _: i64, _: bool) -> Result<()> {
        absent()
    }
    fn last_value(&self) -> Result<i64> {
        absent()
    }
    fn setting(&self, _: &str) -> Result<Option<String>> {
        Ok(None)
    }
    fn all_settings(&self) -> Vec<(&'static str, String, &'static str)> {
        Vec::new()
    }
    fn sequence_state(&self, _: Oid) -> Result<(i64, bool)> {
        absent()
    }
    fn set_setting(&self, _: &str, _: Option<&str>, _: bool) -> Result<()> {
        absent()
    }
    fn identity(&self) -> Identity {
        Identity::default()
    }
    fn catalog(&self) -> Arc<engine_api::Catalog> {
        Arc::new(engine_api::Catalog::default())
    }
    fn notice(&self, _: base::Notice) {}
    fn backend_pid(&self) -> i32 {
        1
    }
}

/// A value of the file: `\N` is NULL, `\n`, `\t` and `\\` are what they are in COPY.
fn unescaped(field: &str) -> Option<String> {
    if field == "\\N" {
        return None;
    }
    let mut out = String::new();
    let mut characters = field.chars();
    while let Some(c) = characters.next() {
        match c {
            '\\' => out.push(match characters.next() {
                Some('n') => '\n',
                Some('t') => '\t',
                other => other.unwrap_or('\\'),
            }),
            c => out.push(c),
        }
    }
    Some(out)
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('\n', "\\n").replace('\t', "\\t")
}

fn type_named(name: &str) -> Oid {
    match name {
        "anyarray" => types::oid::INT4_ARRAY,
        "char" => types::oid::CHAR,
        name => types::type_by_name(name).unwrap_or_else(|| panic!("type {name}")).oid,
    }
}

/// The function of exactly these types, else the one that takes anything.
fn resolve(name: &str, args: &[Oid]) -> Option<&'static Function> {
    let pseudo = |t: Oid| types::type_info(t).is_some_and(|t| t.category == 'P');
    let fits = |f: &Function| {
        (f.args.len() == args.len() || (f.variadic && f.args.len() <= args.len()))
            && f.args.iter().zip(args).all(|(want, have)| want == have || pseudo(*want))
    };
    function(name, args).or_else(|| functions_named(name).iter().copied().find(|f| fits(f)))
}

fn call(session: &Session, name: &str, arg_types: &[Oid], values: &[Option<String>]) -> Result<Option<String>> {
    let Some(function) = resolve(name, arg_types) else {
        return Err(Error::unsupported(format!("no function {name}")));
    };
    let cx = InputContext { settings: &session.settings, now_micros: session.transaction_timestamp() };
    let mut args = Vec::new();
    for (ty, value) in arg_types.iter().zip(values) {
        args.push(match value {
            None => Datum::Null,
            Some(text) => types::parse_text(*ty, -1, text, &cx)?,
        });
    }
    if function.strict && args.iter().any(Datum::is_null) {
        return Ok(None);
    }
    let result = (function.eval)(session, &args)?;
    if result.is_null() {
        return Ok(None);
    }
    let mut out = Vec::new();
    types::write_text(result.as_ref(), function.ret, &session.settings, &mut out)?;
    Ok(Some(String::from_utf8(out).expect("text forms are UTF-8")))
}

/// Floats that differ in the last digit: how roots and angles round is up to the mathematical library.
fn nearly(got: &str, expected: &str) -> bool {
    let float = |s: &str| s.parse::<f64>().ok().filter(|v| v.is_finite() && s.len() > 14);
    match (float(got), float(expected)) {
        (Some(a), Some(b)) => (a - b).abs() <= 4.0 * f64::EPSILON * b.abs(),
        _ => false,
    }
}

#[test]
fn functions_do_what_postgresql_does() {
    let session = Session::new();
    let mut wrong: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    let mut calls = 0;
    for line in include_str!("data/functions_a.txt").lines().filter(|l| !l.starts_with('#')) {
        let mut fields = line.split('\t');
        let name = fields.next().unwrap_or_default();
        let arg_types: Vec<Oid> =
            fields.next().unwrap_or_default().split(',').filter(|t| !t.is_empty()).map(type_named).collect();
        let fields: Vec<&str> = fields.collect();
        let (values, expected) = fields.split_at(arg_types.len());
        let values: Vec<Option<String>> = values.iter().map(|v| unescaped(v)).collect();
        let got = match call(&session, name, &arg_types, &values) {
            Ok(None) => "\\N".to_string(),
            Ok(Some(text)) => escaped(&text),
            Err(e) => format!("!{} {}", e.code().as_str(), e.fields().message),
        };
        calls += 1;
        if expected != [got.as_str()] && !(arg_types.contains(&types::oid::FLOAT8) && nearly(&got, expected[0])) {
            wrong.entry(name).or_default().push(format!("{line}\n    got {got}"));
        }
    }
    let count: usize = wrong.values().map(Vec::len).sum();
    let report: Vec<String> = wrong.into_values().flatten().collect();
    assert!(count == 0, "{count} of {calls} calls differ:\n{}", report.join("\n"));
}

#[test]
fn expressions_make_rows() {
    let session = Session::new();
    let rows = |name: &str, args: &[&str]| -> Vec<String> {
        let args: Vec<Datum> = args.iter().map(|a| Datum::text(a)).collect();
        let function = set_functions_named(name).iter().find(|f| f.args.len() == args.len()).expect("is there");
        let show = |row: Result<Vec<Datum>>| {
            let mut out = Vec::new();
            let value = row.expect("no error").remove(0);
            let ty = function.columns[0].1;
            types::write_text(value.as_ref(), ty, &session.settings, &mut out).expect("can be written");
            String::from_utf8(out).expect("text forms are UTF-8")
        };
        (function.eval)(&session, &args).expect("no error").map(show).collect()
    };
    assert_eq!(rows("regexp_matches", &["foobarbequebaz", "ba."]), ["{bar}"]);
    assert_eq!(rows("regexp_matches", &["foobarbequebazil", "(b[^b]+)(b[^b]+)", "g"]), ["{bar,beque}"]);
    assert_eq!(rows("regexp_matches", &["abcabd", "ab(.)", "g"]), ["{c}", "{d}"]);
    assert_eq!(rows("regexp_matches", &["abc", "x"]), [""; 0]);
    assert_eq!(rows("regexp_split_to_table", &["the quick  fox", "\\s+"]), ["the", "quick", "fox"]);
    assert_eq!(rows("regexp_split_to_table", &["aXbxc", "x", "i"]), ["a", "b", "c"]);
}

#[test]
fn random_values_are_random() {
    let session = Session::new();
    let make = || call(&session, "gen_random_uuid", &[], &[]).expect("no error").expect("a value");
    let (a, b) = (make(), make());
    assert_ne!(a, b);
    assert_eq!(a.as_bytes()[14], b'4');
    call(&session, "setseed", &[types::oid::FLOAT8], &[Some("0.5".to_string())]).expect("in range");
    assert_eq!(call(&session, "random", &[], &[]).expect("no error").as_deref(), Some("0.5"));
}
