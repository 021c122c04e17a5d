//! Functions, set-returning functions and aggregates against a file of calls with PostgreSQL's answers.

use std::cell::RefCell;
use std::sync::Arc;

use base::{Error, Notice, Oid, Result, SqlState};
use engine_api::{Catalog, CatalogObject, RoleDesc, SchemaDesc, SequenceDesc, oids};
use sql_functions::{EvalContext, Identity, aggregates_named, functions_named, set_functions_named};
use types::{Array, Datum, InputContext, OutputSettings, TimeZone};

/// A session that has stood still at 2024-02-29 12:34:56.789012 UTC.
struct Still {
    settings: OutputSettings,
    catalog: Arc<Catalog>,
    changed: RefCell<Vec<(String, String)>>,
}

const NOW: i64 = 762_525_296_789_012;

impl Still {
    fn new() -> Still {
        sql_catalog::install();
        types::user::Current::by(&Arc::default()).stay();
        let mut catalog = Catalog::default();
        let schema = |oid, database, name: &str| {
            Arc::new(CatalogObject::Schema(SchemaDesc {
                oid,
                database,
                name: name.into(),
                owner: oids::ROLE_POSTGRES,
                comment: None,
            }))
        };
        catalog.put(schema(oids::SCHEMA_PG_CATALOG, Oid::INVALID, "pg_catalog"));
        catalog.put(schema(oids::SCHEMA_PUBLIC, oids::DATABASE_POSTGRES, "public"));
        catalog.put(Arc::new(CatalogObject::Role(RoleDesc::first(oids::ROLE_POSTGRES, "postgres"))));
        catalog.put(Arc::new(CatalogObject::Sequence(SequenceDesc::new(
            Oid(16384),
            oids::SCHEMA_PUBLIC,
            "s",
            oids::ROLE_POSTGRES,
            types::oid::INT8,
            i64::MAX,
        ))));
        let settings = OutputSettings {
            timezone: TimeZone::parse("America/New_York").expect("zone"),
            ..OutputSettings::default()
        };
        Still { settings, catalog: Arc::new(catalog), changed: RefCell::default() }
    }
}

impl EvalContext for Still {
    fn settings(&self) -> &OutputSettings {
        &self.settings
    }
    fn transaction_timestamp(&self) -> i64 {
        NOW
    }
    fn statement_timestamp(&self) -> i64 {
        NOW
    }
    fn clock_timestamp(&self) -> i64 {
        NOW
    }
    fn random(&self) -> f64 {
        0.5
    }
    fn set_seed(&self, _: f64) {}
    fn next_value(&self, _: Oid) -> Result<i64> {
        Ok(7)
    }
    fn current_value(&self, _: Oid) -> Result<i64> {
        Err(Error::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, "not yet defined"))
    }
    fn set_value(&self, _: Oid, _: i64, _: bool) -> Result<()> {
        Ok(())
    }
    fn last_value(&self) -> Result<i64> {
        Ok(7)
    }
    fn setting(&self, name: &str) -> Result<Option<String>> {
        if let Some((_, value)) = self.changed.borrow().iter().rev().find(|(n, _)| n == name) {
            return Ok(Some(value.clone()));
        }
        Ok((name == "search_path").then(|| "\"$user\", public".into()))
    }
    fn all_settings(&self) -> Vec<(&'static str, String, &'static str)> {
        Vec::new()
    }
    fn sequence_state(&self, _: Oid) -> Result<(i64, bool)> {
        Ok((7, true))
    }
    fn set_setting(&self, name: &str, value: Option<&str>, _: bool) -> Result<()> {
        self.changed.borrow_mut().push((name.into(), value.unwrap_or_default().into()));
        Ok(())
    }
    fn identity(&self) -> Identity {
        Identity {
            role: oids::ROLE_POSTGRES,
            superuser: true,
            current_user: "postgres".into(),
            session_user: "postgres".into(),
            database: "postgres".into(),
            database_oid: oids::DATABASE_POSTGRES,
            search_path: vec![oids::SCHEMA_PG_CATALOG, oids::SCHEMA_PUBLIC],
            client_addr: None,
        }
    }
    fn catalog(&self) -> Arc<Catalog> {
        Arc::clone(&self.catalog)
    }
    fn notice(&self, _: Notice) {}
    fn backend_pid(&self) -> i32 {
        42
    }
}

fn type_named(name: &str) -> Oid {
    types::type_by_name(name).unwrap_or_else(|| panic!("no type {name}")).oid
}

fn value(cx: &Still, ty: Oid, text: &str) -> Datum {
    if text == "NULL" {
        return Datum::Null;
    }
    let input = InputContext { settings: &cx.settings, now_micros: NOW };
    types::parse_text(ty, -1, text, &input).unwrap_or_else(|e| panic!("{text}: {e}"))
}

/// Whether a declared type takes an actual one.
fn takes(declared: Oid, actual: Oid) -> bool {
    use types::oid::*;
    let is_array = types::type_info(actual).is_some_and(|t| t.is_array());
    match declared {
        ANY | ANYELEMENT | ANYCOMPATIBLE => true,
        ANYNONARRAY => !is_array,
        ANYARRAY | ANYCOMPATIBLEARRAY => is_array,
        other => other == actual,
    }
}

/// How well a signature fits: the number of exact types, if it fits at all.
fn fit(declared: &[Oid], variadic: bool, actual: &[Oid]) -> Option<usize> {
    let repeats = variadic && actual.len() >= declared.len();
    if declared.len() != actual.len() && !repeats {
        return None;
    }
    let mut exact = 0;
    for (i, &ty) in actual.iter().enumerate() {
        let wanted = declared[i.min(declared.len() - 1)];
        if !takes(wanted, ty) {
            return None;
        }
        exact += usize::from(wanted == ty);
    }
    Some(exact)
}

fn text(cx: &Still, value: &Datum, ty: Oid) -> String {
    if value.is_null() {
        return "\\N".into();
    }
    let mut out = Vec::new();
    types::write_text(value.as_ref(), ty, &cx.settings, &mut out).expect("a value of its type");
    String::from_utf8(out).expect("UTF-8").replace('\\', "\\\\").replace('\n', "\\n")
}

fn answer(result: Result<String>) -> String {
    result.unwrap_or_else(|e| format!("!{} {}", e.code().as_str(), e.fields().message))
}

fn arguments(cx: &Still, parts: &[&str]) -> (Vec<Oid>, Vec<Datum>) {
    let pairs = parts.iter().map(|p| p.split_once(':').expect("type:value"));
    pairs
        .map(|(ty, text)| {
            let ty = type_named(ty);
            (ty, value(cx, ty, text))
        })
        .unzip()
}

fn call_scalar(cx: &Still, name: &str, parts: &[&str], ret: &str) -> String {
    let (types, mut args) = arguments(cx, parts);
    let best = functions_named(name).iter().filter_map(|f| Some((fit(f.args, f.variadic, &types)?, *f)));
    let Some((_, function)) = best.max_by_key(|(exact, _)| *exact) else { return "no such function".into() };
    if function.strict && args.iter().any(Datum::is_null) {
        return "\\N".into();
    }
    if function.wants_types {
        let values: Vec<Datum> = types.iter().map(|t| Datum::Oid(t.0)).collect();
        let dims = vec![(values.len() as i32, 1)];
        args.insert(0, Datum::Array(Arc::new(Array { element: types::oid::OID, dims, values })));
    }
    answer((function.eval)(cx, &args).map(|v| match (&v, ret) {
        (Datum::Oid(oid), "regtype") => types::format_type(Oid(*oid), -1),
        _ if ret == "-" => format!("{v:?}"),
        _ => text(cx, &v, type_named(ret)),
    }))
}

fn call_set(cx: &Still, name: &str, parts: &[&str]) -> String {
    let (types, args) = arguments(cx, parts);
    let best = set_functions_named(name).iter().filter_map(|f| Some((fit(f.args, f.variadic, &types)?, *f)));
    let Some((_, function)) = best.max_by_key(|(exact, _)| *exact) else { return "no such function".into() };
    let column = |ty: Oid| match ty {
        types::oid::ANYELEMENT => types::element_of(types[0]).expect("an array"),
        other => other,
    };
    let rows = (function.eval)(cx, &args).and_then(|rows| {
        let mut shown = Vec::new();
        for row in rows {
            let row = row?;
            assert_eq!(row.len(), function.columns.len());
            let cells: Vec<String> =
                row.iter().zip(function.columns).map(|(v, (_, ty))| text(cx, v, column(*ty))).collect();
            shown.push(cells.join("~"));
        }
        Ok(if shown.is_empty() { "(no rows)".to_string() } else { shown.join(" ; ") })
    });
    answer(rows)
}

fn call_aggregate(cx: &Still, name: &str, types: &str, rows: &str, ret: &str) -> String {
    let types: Vec<Oid> = if types == "-" { Vec::new() } else { types.split(',').map(type_named).collect() };
    let best = aggregates_named(name).iter().filter_map(|a| Some((fit(a.args, false, &types)?, *a)));
    let Some((_, aggregate)) = best.max_by_key(|(exact, _)| *exact) else { return "no such aggregate".into() };
    let mut state = (aggregate.create)(&types);
    let mut run = || {
        for row in rows.split(" ; ") {
            let args: Vec<Datum> = types.iter().zip(row.split('~')).map(|(&ty, text)| value(cx, ty, text)).collect();
            if !aggregate.strict || !args.iter().any(Datum::is_null) {
                state.add(cx, &args)?;
            }
        }
        state.finish(cx)
    };
    answer(run().map(|v| text(cx, &v, type_named(if ret == "-" { "text" } else { ret }))))
}

#[test]
fn answers_are_postgresql_s() {
    let cx = Still::new();
    let (mut failures, mut count) = (Vec::new(), 0);
    for line in include_str!("data/functions_b.txt").lines().filter(|l| !l.starts_with('#')) {
        let mut fields = line.splitn(3, " => ");
        let (call, ret, expected) =
            (fields.next().expect("call"), fields.next().expect("type"), fields.next().expect("result"));
        let parts: Vec<&str> = call.split(" | ").collect();
        let (kind, name) = parts[0].split_once(' ').expect("kind and name");
        let got = match kind {
            "F" => call_scalar(&cx, name, &parts[1..], ret),
            "S" => call_set(&cx, name, &parts[1..]),
            _ => call_aggregate(&cx, name, parts[1], parts[2], ret),
        };
        count += 1;
        if got != expected {
            failures.push(format!("{call}\n    is  {got}\n    not {expected}"));
        }
    }
    assert!(failures.is_empty(), "{} of {count} calls:\n{}", failures.len(), failures.join("\n"));
}

fn scalar(cx: &Still, name: &str, args: &[Datum]) -> Result<Datum> {
    let function = functions_named(name).iter().find(|f| f.args.len() == args.len()).expect("the function");
    (function.eval)(cx, args)
}

#[test]
fn the_clock_is_the_session_s() {
    let cx = Still::new();
    assert_eq!(scalar(&cx, "now", &[]).unwrap(), Datum::TimestampTz(NOW));
    let shown = |name: &str, args: &[Datum], ty| text(&cx, &scalar(&cx, name, args).unwrap(), ty);
    assert_eq!(shown("current_date", &[], types::oid::DATE), "2024-02-29");
    assert_eq!(shown("localtime", &[Datum::Int4(0)], types::oid::TIME), "07:34:57");
    assert_eq!(shown("current_timestamp", &[Datum::Int4(2)], types::oid::TIMESTAMPTZ), "2024-02-29 07:34:56.79-05");
    assert_eq!(shown("current_time", &[], types::oid::TIMETZ), "07:34:56.789012-05");
    assert_eq!(shown("timeofday", &[], types::oid::TEXT), "Thu Feb 29 07:34:56.789012 2024 EST");
}

#[test]
fn the_session_and_its_catalog() {
    let cx = Still::new();
    let shown = |name: &str, args: &[Datum], ty| text(&cx, &scalar(&cx, name, args).unwrap(), ty);
    assert!(shown("version", &[], types::oid::TEXT).starts_with("PostgreSQL 15."));
    assert_eq!(shown("current_schema", &[], types::oid::NAME), "public");
    assert_eq!(shown("current_schemas", &[Datum::Bool(true)], types::oid::NAME_ARRAY), "{pg_catalog,public}");
    assert_eq!(shown("current_schemas", &[Datum::Bool(false)], types::oid::NAME_ARRAY), "{public}");
    assert_eq!(shown("pg_get_userbyid", &[Datum::Oid(10)], types::oid::NAME), "postgres");
    assert_eq!(shown("pg_get_userbyid", &[Datum::Oid(11)], types::oid::NAME), "unknown (OID=11)");
    assert_eq!(scalar(&cx, "pg_table_is_visible", &[Datum::Oid(16384)]).unwrap(), Datum::Bool(true));
    assert_eq!(scalar(&cx, "pg_table_is_visible", &[Datum::Oid(1)]).unwrap(), Datum::Null);
    assert_eq!(scalar(&cx, "to_regclass", &[Datum::text("public.S")]).unwrap(), Datum::Oid(16384));
    assert_eq!(scalar(&cx, "to_regclass", &[Datum::text("pg_class")]).unwrap(), Datum::Oid(1259));
    assert_eq!(scalar(&cx, "to_regclass", &[Datum::text("nope")]).unwrap(), Datum::Null);
    assert_eq!(scalar(&cx, "nextval", &[Datum::Oid(16384)]).unwrap(), Datum::Int8(7));
    let error = scalar(&cx, "currval", &[Datum::Oid(10)]).unwrap_err();
    assert_eq!(error.fields().message, "\"postgres\" is not a sequence");
    let error = scalar(&cx, "current_setting", &[Datum::text("nope")]).unwrap_err();
    assert_eq!(error.fields().message, "unrecognized configuration parameter \"nope\"");
    let set = [Datum::text("a.b"), Datum::text("c"), Datum::Bool(false)];
    assert_eq!(scalar(&cx, "set_config", &set).unwrap(), Datum::text("c"));
    assert_eq!(scalar(&cx, "current_setting", &[Datum::text("a.b")]).unwrap(), Datum::text("c"));
    let error = scalar(&cx, "has_table_privilege", &[Datum::text("s"), Datum::text("FLY")]).unwrap_err();
    assert_eq!(error.fields().message, "unrecognized privilege type: \"FLY\"");
    assert_eq!(scalar(&cx, "pg_sleep", &[Datum::Float8(1.0)]).unwrap_err().code(), SqlState::FEATURE_NOT_SUPPORTED);
}

#[test]
fn tables_are_consistent() {
    let mut seen = std::collections::BTreeSet::new();
    for f in sql_functions::all_functions() {
        assert!(seen.insert((f.name, format!("{:?}", f.args))), "{f:?} is there twice");
    }
}

/// A picture or a format of random words.
fn random_words(state: &mut u64) -> String {
    const WORDS: [&str; 30] = [
        "9", "0", "9", ".", ",", "D", "G", "S", "MI", "PL", "SG", "PR", "RN", "rn", "TH", "th", "V", "EEEE", "FM", "L",
        "B", "\"", "\\", " ", "é", "x", "-", "%", "$", "*",
    ];
    let mut next = || {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*state >> 33) as usize
    };
    (0..next() % 9).map(|_| WORDS[next() % WORDS.len()]).collect()
}

#[test]
fn no_text_makes_a_function_panic() {
    let cx = Still::new();
    let call = |name: &str, args: &[Datum], types: &[Oid]| {
        let all = functions_named(name).iter();
        let function =
            all.filter(|f| fit(f.args, f.variadic, types).is_some()).max_by_key(|f| fit(f.args, false, types));
        // Only that there is an answer counts.
        let _ = (function.expect("the function").eval)(&cx, args);
    };
    let long = "9".repeat(70_000);
    let times = format!("9V{}", &long[..5_000]);
    let mut state = 1;
    let mut pictures: Vec<String> = (0..3_000).map(|_| random_words(&mut state)).collect();
    pictures.extend([long.clone(), format!("9.{long}EEEE"), format!("9.{long}"), format!("FM0{long}"), times]);
    for picture in &pictures {
        let picture = Datum::text(picture);
        for number in ["0", "-1.25", "123456.789", "NaN", "-Infinity"] {
            let decimal = value(&cx, types::oid::NUMERIC, number);
            call("to_char", &[decimal, picture.clone()], &[types::oid::NUMERIC, types::oid::TEXT]);
            let float = value(&cx, types::oid::FLOAT8, number);
            call("to_char", &[float, picture.clone()], &[types::oid::FLOAT8, types::oid::TEXT]);
        }
        for text in ["-1,234.5", "é<7>", " 1 2-"] {
            call("to_number", &[Datum::text(text), picture.clone()], &[types::oid::TEXT, types::oid::TEXT]);
        }
        call("format", &[picture.clone(), Datum::Int4(1)], &[types::oid::TEXT, types::oid::INT4]);
        for name in ["to_regclass", "to_regtype"] {
            call(name, std::slice::from_ref(&picture), &[types::oid::TEXT]);
        }
    }
}
