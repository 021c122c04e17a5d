//! Look-up in the function tables, by name, by OID and by types.
//!
//! Invariant: names are unique per (name, argument types) in each table; the maps are made once, on first use.

use std::sync::{LazyLock, OnceLock};

use base::Oid;
use rustc_hash::FxHashMap;

use super::{
    Aggregate, CastEntry, Function, Operator, SetFunction, aggregates, arithmetic, array, bits, casts, comparison,
    datetime, format, json, math, network, operators, record, send, session, sets, spread, text, user,
};

static SCALAR_TABLES: &[&[Function]] = &[
    arithmetic::FUNCTIONS,
    arithmetic::times::FUNCTIONS,
    array::FUNCTIONS,
    bits::FUNCTIONS,
    casts::FUNCTIONS,
    comparison::FUNCTIONS,
    datetime::FUNCTIONS,
    format::FUNCTIONS,
    json::FUNCTIONS,
    json::path::FUNCTIONS,
    math::FUNCTIONS,
    math::integers::FUNCTIONS,
    network::FUNCTIONS,
    record::FUNCTIONS,
    session::FUNCTIONS,
    session::transaction::FUNCTIONS,
    spread::FUNCTIONS,
    text::FUNCTIONS,
    send::FUNCTIONS,
    text::bytes::FUNCTIONS,
    text::digest::FUNCTIONS,
    text::join::FUNCTIONS,
    text::like::FUNCTIONS,
    text::regexp::FUNCTIONS,
    text::unicode::FUNCTIONS,
    user::FUNCTIONS,
];

/// Tables of functions that know what only the layers above do.
static FROM_ABOVE: OnceLock<&'static [&'static [Function]]> = OnceLock::new();

/// Adds the tables of the layers above. To be called before anything is looked up; again, it does nothing.
pub(crate) fn complete(tables: &'static [&'static [Function]]) {
    FROM_ABOVE.get_or_init(|| tables);
}

struct Registry {
    functions: FxHashMap<&'static str, Vec<&'static Function>>,
    functions_by_oid: FxHashMap<u32, &'static Function>,
    operators: FxHashMap<&'static str, Vec<&'static Operator>>,
    casts: FxHashMap<(Oid, Oid), &'static CastEntry>,
    aggregates: FxHashMap<&'static str, Vec<&'static Aggregate>>,
    sets: FxHashMap<&'static str, Vec<&'static SetFunction>>,
    all_sets: Vec<&'static SetFunction>,
}

static REGISTRY: LazyLock<Registry> = LazyLock::new(|| {
    let mut r = Registry {
        functions: FxHashMap::default(),
        functions_by_oid: FxHashMap::default(),
        operators: FxHashMap::default(),
        casts: FxHashMap::default(),
        aggregates: FxHashMap::default(),
        sets: FxHashMap::default(),
        all_sets: Vec::new(),
    };
    for f in all_functions() {
        r.functions.entry(f.name).or_default().push(f);
        r.functions_by_oid.entry(f.oid).or_insert(f);
    }
    // An operator without its function is not offered.
    let implemented = |o: &&Operator| {
        let both = [o.left, o.right];
        let args: &[Oid] = if o.left.is_valid() { &both } else { &both[1..] };
        r.functions.get(o.function).is_some_and(|all| all.iter().any(|f| f.args == args))
    };
    let offered: Vec<&'static Operator> = operators::OPERATORS.iter().filter(implemented).collect();
    for o in offered {
        r.operators.entry(o.name).or_default().push(o);
    }
    for c in casts::CASTS {
        r.casts.insert((c.source, c.target), c);
    }
    for a in aggregates::AGGREGATES {
        r.aggregates.entry(a.name).or_default().push(a);
    }
    for s in sets::SET_FUNCTIONS
        .iter()
        .chain(text::regexp::SET_FUNCTIONS)
        .chain(json::path::SET_FUNCTIONS)
        .chain(json::record::SET_FUNCTIONS)
        .chain(session::transaction::SET_FUNCTIONS)
    {
        r.all_sets.push(s);
        r.sets.entry(s.name).or_default().push(s);
    }
    r
});

/// Scalar functions of a name.
pub fn functions_named(name: &str) -> &'static [&'static Function] {
    REGISTRY.functions.get(name).map_or(&[], Vec::as_slice)
}

/// The scalar function of exactly this name and these declared argument types.
pub fn function(name: &str, args: &[Oid]) -> Option<&'static Function> {
    functions_named(name).iter().copied().find(|f| f.args == args)
}

/// A scalar function by OID, those of extensions among them.
pub fn function_by_oid(oid: u32) -> Option<&'static Function> {
    let of_extension = || super::extensions::function_by_oid(oid).map(|(_, function)| function);
    REGISTRY.functions_by_oid.get(&oid).copied().or_else(of_extension)
}

/// Operators of a symbol.
pub fn operators_named(name: &str) -> &'static [&'static Operator] {
    REGISTRY.operators.get(name).map_or(&[], Vec::as_slice)
}

/// The cast between two types, if the catalog has one.
pub fn cast(source: Oid, target: Oid) -> Option<&'static CastEntry> {
    REGISTRY.casts.get(&(source, target)).copied()
}

/// Whether a function is that of a cast to a type.
pub fn is_of_cast(function: &Function, target: Oid) -> bool {
    let entry = function.args.first().and_then(|source| cast(*source, target));
    entry.is_some_and(|entry| entry.function == Some(function.name))
}

/// The operator that a function of one argument or of two stands behind.
pub fn operator_of(function: &Function, args: usize) -> Option<&'static str> {
    let of = |o: &&Operator| {
        let types: &[Oid] = if args == 2 { &[o.left, o.right] } else { &[o.right] };
        o.left.is_valid() == (args == 2)
            && o.function == function.name
            && self::function(o.function, types).is_some_and(|f| std::ptr::eq(f, function))
    };
    all_operators().iter().find(of).map(|o| o.name)
}

/// How the grammar spells a function that it has a key word for.
pub fn key_word(name: &str) -> Option<&'static str> {
    Some(match name {
        "current_date" => "CURRENT_DATE",
        "current_time" => "CURRENT_TIME",
        "current_timestamp" => "CURRENT_TIMESTAMP",
        "localtime" => "LOCALTIME",
        "localtimestamp" => "LOCALTIMESTAMP",
        "current_user" => "CURRENT_USER",
        "session_user" => "SESSION_USER",
        "current_role" => "CURRENT_ROLE",
        "user" => "USER",
        "current_catalog" => "CURRENT_CATALOG",
        "current_schema" => "CURRENT_SCHEMA",
        _ => return None,
    })
}

/// Whether a function can stand for a cast, an operator or a key word, so that a call by its name is kept as such.
pub fn has_two_forms(function: &Function, args: usize, target: Oid) -> bool {
    is_of_cast(function, target) || operator_of(function, args).is_some() || key_word(function.name).is_some()
}

/// Aggregates of a name.
pub fn aggregates_named(name: &str) -> &'static [&'static Aggregate] {
    REGISTRY.aggregates.get(name).map_or(&[], Vec::as_slice)
}

/// Set-returning functions of a name.
pub fn set_functions_named(name: &str) -> &'static [&'static SetFunction] {
    REGISTRY.sets.get(name).map_or(&[], Vec::as_slice)
}

/// Every scalar function.
pub fn all_functions() -> impl Iterator<Item = &'static Function> {
    // Tests may look at everything.
    #[cfg(test)]
    crate::system::install();
    debug_assert!(FROM_ABOVE.get().is_some(), "a function is looked up before those of the catalog are there");
    let from_above = FROM_ABOVE.get().copied().unwrap_or_default();
    SCALAR_TABLES.iter().chain(from_above).flat_map(|t| t.iter())
}

/// Every operator.
pub fn all_operators() -> &'static [Operator] {
    operators::OPERATORS
}

/// Every cast.
pub fn all_casts() -> &'static [CastEntry] {
    casts::CASTS
}

/// Every aggregate.
pub fn all_aggregates() -> &'static [Aggregate] {
    aggregates::AGGREGATES
}

/// Every set-returning function.
pub fn all_set_functions() -> &'static [&'static SetFunction] {
    &REGISTRY.all_sets
}

#[cfg(test)]
mod tests {
    use types::Datum;

    use super::*;

    #[test]
    fn names_and_oids_are_unique() {
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
        for o in all_operators() {
            let both = [o.left, o.right];
            let args: &[Oid] = if o.left.is_valid() { &both } else { &both[1..] };
            assert!(function(o.function, args).is_some(), "{o:?}");
        }
    }

    #[test]
    fn every_cast_has_its_function() {
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
            BIT | VARBIT => {
                ["", "1", "111111110"].map(|text| Datum::Bits(types::bits::parse(text).expect("bits"))).into()
            }
            other => panic!("no values of type {other:?}: a leakproof function must be tried out"),
        }
    }

    #[test]
    fn leakproof_functions_have_no_errors() {
        let (cx, mut tried) = (crate::index_code::nobody(), 0);
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
}
