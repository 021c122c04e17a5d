//! What the tables of functions, operators and casts must agree on, those of the catalog included.

use base::Oid;
use rustc_hash::FxHashMap;
use sql_functions::{
    CastEntry, Function, Operator, all_casts, all_functions, all_operators, cast, function, functions_named,
};
use types::Datum;

#[test]
fn names_and_oids_are_unique() {
    sql_catalog::install();
    let mut by_oid: FxHashMap<u32, &Function> = FxHashMap::default();
    let mut by_name: FxHashMap<(&str, &[Oid]), &Function> = FxHashMap::default();
    for f in all_functions() {
        if let Some(other) = by_oid.insert(f.oid, f) {
            panic!("{f:?}({:?}) has the OID of {other:?}({:?})", f.args, other.args);
        }
        if let Some(other) = by_name.insert((f.name, f.args), f) {
            panic!("{f:?}({:?}) and {other:?} have one signature", f.args);
        }
    }
    let mut operators: FxHashMap<u32, &Operator> = FxHashMap::default();
    let mut signatures: FxHashMap<(&str, Oid, Oid), &Operator> = FxHashMap::default();
    for o in all_operators() {
        assert!(operators.insert(o.oid, o).is_none(), "{o:?} has another's OID");
        assert!(signatures.insert((o.name, o.left, o.right), o).is_none(), "{o:?} has another's signature");
    }
    let mut casts: FxHashMap<(Oid, Oid), &CastEntry> = FxHashMap::default();
    for c in all_casts() {
        assert!(casts.insert((c.source, c.target), c).is_none(), "{c:?} is there twice");
    }
}

#[test]
fn every_operator_has_its_function() {
    sql_catalog::install();
    for o in all_operators() {
        let both = [o.left, o.right];
        let args: &[Oid] = if o.left.is_valid() { &both } else { &both[1..] };
        assert!(function(o.function, args).is_some(), "{o:?}");
    }
}

#[test]
fn every_cast_has_its_function() {
    sql_catalog::install();
    for c in all_casts() {
        let Some(name) = c.function else { continue };
        let alike = |a, b| types::type_info(a).map(|t| t.category) == types::type_info(b).map(|t| t.category);
        // A function of what the source is held as serves too.
        let takes = |ty: Oid| ty == c.source || cast(c.source, ty).is_some_and(|held| held.function.is_none());
        let fits = |f: &&Function| f.args.first().is_some_and(|ty| takes(*ty)) && alike(f.ret, c.target);
        assert!(functions_named(name).iter().any(fits), "{c:?}");
    }
}

/// Values of a type that functions are most likely to refuse.
fn extremes(ty: Oid) -> Vec<Datum> {
    use types::oid::*;
    let texts = ["", " ", "boom", "\u{10ffff}", "\\", "%", "NaN"].map(str::to_string);
    let texts = texts.into_iter().chain([i64::MIN.to_string(), "ü".repeat(100)]);
    let micros = [i64::MIN, i64::MIN + 1, -1, 0, 1, i64::MAX - 1, i64::MAX];
    let doubles = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, f64::MIN_POSITIVE, -0.0];
    let interval = |(micros, days, months)| Datum::Interval(types::Interval { micros, days, months });
    match ty {
        BOOL => [false, true].map(Datum::Bool).into(),
        INT2 => [i16::MIN, -1, 0, i16::MAX].map(Datum::Int2).into(),
        INT4 => [i32::MIN, -1, 0, i32::MAX].map(Datum::Int4).into(),
        INT8 | TID | XID8 => micros.map(Datum::Int8).into(),
        OID | XID | CID => [0, 1, u32::MAX].map(Datum::Oid).into(),
        FLOAT4 => doubles.map(|value| Datum::Float4(value as f32)).into(),
        FLOAT8 => doubles.map(Datum::Float8).into(),
        TEXT | VARCHAR | BPCHAR | NAME => texts.map(|text| Datum::text(&text)).collect(),
        CHAR => ["", "a", "\u{7f}", "\\377"].map(Datum::text).into(),
        BYTEA => [&b""[..], b"\0", b"\xff\\"].map(|bytes| Datum::Bytea(bytes.into())).into(),
        DATE => [i32::MIN, i32::MIN + 1, 0, i32::MAX].map(Datum::Date).into(),
        TIME => [0, 86_400_000_000].map(Datum::Time).into(),
        TIMETZ => [(0, 57_599), (86_400_000_000, -57_599)].map(|(time, zone)| Datum::TimeTz(time, zone)).into(),
        TIMESTAMP => micros.map(Datum::Timestamp).into(),
        TIMESTAMPTZ => micros.map(Datum::TimestampTz).into(),
        INTERVAL => {
            let ends = [(i64::MIN, i32::MIN, i32::MIN), (i64::MAX, i32::MAX, i32::MAX), (i64::MAX, i32::MIN, 1)];
            ends.map(interval).into()
        }
        OIDVECTOR => {
            let array = |values: &[u32]| {
                let dims = vec![(values.len() as i32, 0)];
                let values = values.iter().map(|&value| Datum::Oid(value)).collect();
                Datum::Array(std::sync::Arc::new(types::Array { element: OID, dims, values }))
            };
            [&[][..], &[1], &[1, u32::MAX]].map(array).into()
        }
        UUID => [[0; 16], [255; 16]].map(Datum::Uuid).into(),
        MACADDR => [[0; 6], [255; 6]].map(Datum::Mac).into(),
        MACADDR8 => [[0; 8], [255; 8]].map(Datum::Mac8).into(),
        INET | CIDR => {
            let texts = ["0.0.0.0/0", "255.255.255.255/32", "::/0", "ffff::/16"];
            texts.map(|text| Datum::Inet(types::Inet::parse(text, ty == CIDR).expect("a network"))).into()
        }
        BIT | VARBIT => ["", "1", "111111110"].map(|text| Datum::Bits(types::bits::parse(text).expect("bits"))).into(),
        other => panic!("no values of type {other:?}: a leakproof function must be tried out"),
    }
}

#[test]
fn leakproof_functions_have_no_errors() {
    sql_catalog::install();
    let (cx, mut tried) = (sql_catalog::index_code::nobody(std::sync::Arc::default()), 0);
    for function in all_functions().filter(|f| f.leakproof) {
        let mut calls: Vec<Vec<Datum>> = vec![Vec::new()];
        for &ty in function.args {
            let with = |call: &Vec<Datum>| {
                let call = call.clone();
                extremes(ty).into_iter().map(move |value| [call.clone(), vec![value]].concat())
            };
            calls = calls.iter().flat_map(with).collect();
        }
        for call in calls {
            let value = (function.eval)(&cx, &call);
            assert!(value.is_ok(), "{function:?} of {call:?}: {value:?}");
            tried += 1;
        }
    }
    assert!(tried > 1000, "only {tried} calls");
}
