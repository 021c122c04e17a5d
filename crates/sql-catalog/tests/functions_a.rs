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

/// A value for the `row`th row of an aggregate's argument; whole numbers, so that sums of floats are exact. `None`: no such type here.
fn sample(ty: Oid, row: i64) -> Option<Datum> {
    use types::oid;
    let small = (row * 7) % 100;
    Some(match ty {
        oid::INT2 => Datum::Int2(small as i16),
        oid::INT4 | oid::ANYELEMENT | oid::ANY => Datum::Int4((row * 7919 % 1000) as i32),
        oid::INT8 => Datum::Int8(row * 40_000_000_000_000_007),
        oid::OID => Datum::Oid(small as u32),
        oid::FLOAT4 => Datum::Float4(small as f32),
        oid::FLOAT8 => Datum::Float8(small as f64),
        oid::NUMERIC if row == 41 => Datum::Numeric(types::Numeric::NAN),
        oid::NUMERIC => Datum::Numeric(types::Numeric::new(row * 1_000_003, (row % 4) as u16)),
        oid::INTERVAL => Datum::Interval(types::Interval { months: (row % 5) as i32, days: small as i32, micros: row }),
        oid::BOOL => Datum::Bool(row % 3 > 0),
        oid::TEXT | oid::BPCHAR => Datum::text(&format!("text {small}")),
        oid::DATE => Datum::Date(small as i32),
        oid::TIME => Datum::Time(row),
        oid::TIMESTAMP => Datum::Timestamp(row),
        oid::TIMESTAMPTZ => Datum::TimestampTz(row),
        _ => return None,
    })
}

/// States that have taken parts of the rows are combined to the one that has taken all, whatever part has how many.
#[test]
fn combined_states_are_those_of_all_rows() {
    let session = Session::new();
    let shown = |state: &mut Box<dyn sql_functions::Accumulator>| format!("{:?}", state.finish(&session));
    let mut tried = 0;
    for aggregate in sql_functions::all_aggregates().iter().filter(|a| !a.shows_order && !a.ordered_set) {
        let row = |number: i64| aggregate.args.iter().map(|ty| sample(*ty, number)).collect::<Option<Vec<_>>>();
        if row(0).is_none() {
            continue;
        }
        tried += 1;
        for parts in [[0..0, 0..0, 0..0], [0..0, 0..40, 40..40], [0..1, 1..2, 2..100], [0..33, 33..34, 34..60]] {
            let mut whole = (aggregate.create)(aggregate.args);
            let mut combined = (aggregate.create)(aggregate.args);
            for part in parts.clone() {
                let mut state = (aggregate.create)(aggregate.args);
                for values in part.filter_map(row) {
                    whole.add(&session, &values).expect("the values are its types'");
                    state.add(&session, &values).expect("the values are its types'");
                }
                combined.combine(&mut *state).expect("a state of the same aggregate");
            }
            let (expected, found) = (shown(&mut whole), shown(&mut combined));
            let is_close = match (whole.finish(&session), combined.finish(&session)) {
                (Ok(Datum::Float8(a)), Ok(Datum::Float8(b))) => (a - b).abs() <= a.abs().max(1.0) * 1e-12,
                _ => expected == found,
            };
            assert!(is_close, "{aggregate:?} of {parts:?}: {expected} and {found}");
        }
        let other = if aggregate.name == "count" { "bool_and" } else { "count" };
        let mut other = (sql_functions::aggregates_named(other)[0].create)(aggregate.args);
        assert!(
            (aggregate.create)(aggregate.args).combine(&mut *other).is_err(),
            "{aggregate:?} takes another's state"
        );
    }
    assert!(tried > 80, "only {tried} aggregates have values here");
}
