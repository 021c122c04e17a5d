//! Look-up in the function tables, by name, by OID and by types.
//!
//! Invariant: names are unique per (name, argument types) in each table; the maps are made once, on first use.

use std::sync::LazyLock;

use base::Oid;
use rustc_hash::FxHashMap;

use super::{
    Aggregate, CastEntry, Function, Operator, SetFunction, aggregates, arithmetic, array, casts, comparison, datetime,
    format, json, math, operators, record, session, sets, spread, text, user,
};

static SCALAR_TABLES: &[&[Function]] = &[
    arithmetic::FUNCTIONS,
    arithmetic::times::FUNCTIONS,
    array::FUNCTIONS,
    casts::FUNCTIONS,
    comparison::FUNCTIONS,
    datetime::FUNCTIONS,
    format::FUNCTIONS,
    json::FUNCTIONS,
    json::path::FUNCTIONS,
    math::FUNCTIONS,
    math::integers::FUNCTIONS,
    record::FUNCTIONS,
    session::FUNCTIONS,
    spread::FUNCTIONS,
    text::FUNCTIONS,
    text::bytes::FUNCTIONS,
    text::digest::FUNCTIONS,
    text::join::FUNCTIONS,
    text::like::FUNCTIONS,
    text::regexp::FUNCTIONS,
    text::unicode::FUNCTIONS,
    user::FUNCTIONS,
];

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
pub fn all_set_functions() -> &'static [&'static SetFunction] {
    &REGISTRY.all_sets
}

#[cfg(test)]
mod tests {
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
            let fits = |f: &&Function| f.args.first() == Some(&c.source) && alike(f.ret, c.target);
            assert!(functions_named(name).iter().any(fits), "{c:?}");
        }
    }
}
