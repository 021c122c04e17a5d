//! Look-up in the function tables, by name, by OID and by types.
//!
//! Invariant: names are unique per (name, argument types) in each table; the maps are made once, on first use.

use std::sync::{LazyLock, OnceLock};

use base::Oid;
use rustc_hash::FxHashMap;

use super::{
    Aggregate, CastEntry, Function, Operator, SetFunction, Volatility, aggregates, arithmetic, array, bits, casts,
    comparison, datetime, format, json, math, network, operators, record, send, session, sets, spread, text, user,
};

/// What the stable functions of a table ask for.
#[derive(Clone, Copy, PartialEq)]
enum Asks {
    /// At most settings, the time of the statement, and names of the catalog.
    Settings,
    /// What only the session's thread knows.
    Session,
}

static SCALAR_TABLES: &[(&[Function], Asks)] = &[
    (arithmetic::FUNCTIONS, Asks::Session),
    (arithmetic::times::FUNCTIONS, Asks::Session),
    (array::FUNCTIONS, Asks::Session),
    (bits::FUNCTIONS, Asks::Session),
    (casts::FUNCTIONS, Asks::Settings),
    (comparison::FUNCTIONS, Asks::Settings),
    (datetime::FUNCTIONS, Asks::Settings),
    (format::FUNCTIONS, Asks::Settings),
    (json::FUNCTIONS, Asks::Settings),
    (json::path::FUNCTIONS, Asks::Settings),
    (math::FUNCTIONS, Asks::Session),
    (math::integers::FUNCTIONS, Asks::Session),
    (network::FUNCTIONS, Asks::Session),
    (record::FUNCTIONS, Asks::Session),
    (session::FUNCTIONS, Asks::Session),
    (session::transaction::FUNCTIONS, Asks::Session),
    (spread::FUNCTIONS, Asks::Session),
    (text::FUNCTIONS, Asks::Settings),
    (send::FUNCTIONS, Asks::Session),
    (text::bytes::FUNCTIONS, Asks::Settings),
    (text::digest::FUNCTIONS, Asks::Session),
    (text::join::FUNCTIONS, Asks::Settings),
    (text::like::FUNCTIONS, Asks::Session),
    (text::regexp::FUNCTIONS, Asks::Session),
    (text::unicode::FUNCTIONS, Asks::Session),
    (user::FUNCTIONS, Asks::Session),
];

/// Whether a function can be called for a statement on another thread than its session's: it is immutable, or a stable one that asks for no
/// more than settings, the time of the statement, and names of the catalog.
pub fn is_sessionless(function: &'static Function) -> bool {
    let is_in = |table: &[Function]| table.as_ptr_range().contains(&std::ptr::from_ref(function));
    let is_listed = || SCALAR_TABLES.iter().any(|(table, asks)| *asks == Asks::Settings && is_in(table));
    match function.volatility {
        Volatility::Immutable => true,
        Volatility::Stable => is_listed(),
        Volatility::Volatile => false,
    }
}

/// Tables of functions that know what only the layers above do.
static FROM_ABOVE: OnceLock<&'static [&'static [Function]]> = OnceLock::new();

/// Adds the tables of the layers above. To be called before anything is looked up; again, it does nothing.
pub fn complete(tables: &'static [&'static [Function]]) {
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
    debug_assert!(
        cfg!(test) || FROM_ABOVE.get().is_some(),
        "a function is looked up before those of the catalog are there"
    );
    let from_above = FROM_ABOVE.get().copied().unwrap_or_default();
    SCALAR_TABLES.iter().map(|(table, _)| table).chain(from_above).flat_map(|t| t.iter())
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
