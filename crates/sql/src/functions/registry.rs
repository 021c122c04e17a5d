//! Look-up in the function tables, by name, by OID and by types.
//!
//! Invariant: names are unique per (name, argument types) in each table; the maps are made once, on first use.

use std::sync::LazyLock;

use base::Oid;
use rustc_hash::FxHashMap;

use super::{
    Aggregate, CastEntry, Function, Operator, SetFunction, aggregates, arithmetic, array, casts, comparison, datetime,
    format, json, math, operators, session, sets, text,
};

static SCALAR_TABLES: [&[Function]; 10] = [
    arithmetic::FUNCTIONS,
    array::FUNCTIONS,
    casts::FUNCTIONS,
    comparison::FUNCTIONS,
    datetime::FUNCTIONS,
    format::FUNCTIONS,
    json::FUNCTIONS,
    math::FUNCTIONS,
    session::FUNCTIONS,
    text::FUNCTIONS,
];

struct Registry {
    functions: FxHashMap<&'static str, Vec<&'static Function>>,
    functions_by_oid: FxHashMap<u32, &'static Function>,
    operators: FxHashMap<&'static str, Vec<&'static Operator>>,
    casts: FxHashMap<(Oid, Oid), &'static CastEntry>,
    aggregates: FxHashMap<&'static str, Vec<&'static Aggregate>>,
    sets: FxHashMap<&'static str, Vec<&'static SetFunction>>,
}

static REGISTRY: LazyLock<Registry> = LazyLock::new(|| {
    let mut r = Registry {
        functions: FxHashMap::default(),
        functions_by_oid: FxHashMap::default(),
        operators: FxHashMap::default(),
        casts: FxHashMap::default(),
        aggregates: FxHashMap::default(),
        sets: FxHashMap::default(),
    };
    for f in all_functions() {
        r.functions.entry(f.name).or_default().push(f);
        r.functions_by_oid.entry(f.oid).or_insert(f);
    }
    for o in operators::OPERATORS {
        r.operators.entry(o.name).or_default().push(o);
    }
    for c in casts::CASTS {
        r.casts.insert((c.source, c.target), c);
    }
    for a in aggregates::AGGREGATES {
        r.aggregates.entry(a.name).or_default().push(a);
    }
    for s in sets::SET_FUNCTIONS {
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

/// A scalar function by OID.
pub fn function_by_oid(oid: u32) -> Option<&'static Function> {
    REGISTRY.functions_by_oid.get(&oid).copied()
}

/// Operators of a symbol.
pub fn operators_named(name: &str) -> &'static [&'static Operator] {
    REGISTRY.operators.get(name).map_or(&[], Vec::as_slice)
}

/// The cast between two types, if the catalog has one.
pub fn cast(source: Oid, target: Oid) -> Option<&'static CastEntry> {
    REGISTRY.casts.get(&(source, target)).copied()
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
    SCALAR_TABLES.iter().flat_map(|t| t.iter())
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
pub fn all_set_functions() -> &'static [SetFunction] {
    sets::SET_FUNCTIONS
}
