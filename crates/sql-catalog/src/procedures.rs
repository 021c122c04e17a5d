//! pg_proc, pg_aggregate, pg_operator, pg_cast: what statements can call, and the internal functions behind types.

use base::Oid;
use engine_api::oids;
use sql_functions::{self as functions, CastContext, EvalContext, Volatility, extensions};
use sql_ir::system_relation::SystemRelation;
use types::Datum;

use super::aggregate_facts::{LAX, aggregate_facts};
use super::internal_functions::{INTERNAL_FUNCTIONS, InternalFunction, internal_function, internal_oid};
use super::operator_facts::operator_facts;
use super::relations::oid_array;
use super::{SystemRows, oid, row, text};

/// The numbers of all functions of a name, of any kind.
pub(crate) fn functions_named(name: &str) -> Vec<u32> {
    let scalars = functions::functions_named(name).iter().map(|f| f.oid);
    let aggregates = functions::aggregates_named(name).iter().map(|a| a.oid);
    let sets = functions::set_functions_named(name).iter().map(|s| s.oid);
    let internal = INTERNAL_FUNCTIONS.iter().filter(|f| f.name == name).map(|f| f.oid);
    let is_of_postgresql = |oid: &u32| !(OWN_FUNCTIONS..oids::FIRST_USER.0).contains(oid);
    let mut all: Vec<u32> = scalars.chain(aggregates).chain(sets).chain(internal).filter(is_of_postgresql).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// The name of a function of any kind.
pub(crate) fn function_name(number: u32) -> Option<&'static str> {
    functions::function_by_oid(number)
        .map(|f| f.name)
        .or_else(|| functions::all_aggregates().iter().find(|a| a.oid == number).map(|a| a.name))
        .or_else(|| functions::all_set_functions().iter().find(|s| s.oid == number).map(|s| s.name))
        .or_else(|| internal_function(number).map(|f| f.name))
}

/// The argument types of a function of any kind.
pub(crate) fn function_arguments(number: u32) -> Option<Vec<u32>> {
    let numbers = |args: &[Oid]| args.iter().map(|ty| ty.0).collect();
    functions::function_by_oid(number)
        .map(|f| numbers(f.args))
        .or_else(|| functions::all_aggregates().iter().find(|a| a.oid == number).map(|a| numbers(a.args)))
        .or_else(|| functions::all_set_functions().iter().find(|s| s.oid == number).map(|s| numbers(s.args)))
        .or_else(|| internal_function(number).map(|f| f.args.to_vec()))
}

/// Whether an internal function is not called for NULL.
pub(crate) fn is_strict(function: &InternalFunction) -> bool {
    !LAX_INTERNAL.contains(&function.name) && !LAX.contains(&function.oid)
}

/// What pg_proc says of a function.
struct Procedure<'a> {
    oid: u32,
    schema: Oid,
    name: &'a str,
    kind: &'a str,
    args: Vec<u32>,
    /// Output columns, if it returns several.
    columns: &'a [(&'a str, Oid)],
    ret: Oid,
    variadic: bool,
    strict: bool,
    set: bool,
    volatility: &'a str,
    leakproof: bool,
    /// Arguments that may be left out.
    defaults: usize,
}

/// Functions that make rows from what a statement sees or does; all others only from their arguments.
const STABLE_SETS: &[u32] = &[939, 1179, 1686, 2289, 3035];
/// `pg_partition_ancestors` and the like.
const VOLATILE_SETS: &[u32] = &[3425];
/// Functions with rows and arguments that may be left out; here each number of arguments is a function of its own.
const SETS_WITH_DEFAULTS: &[u32] = &[1179, 4006];
/// Aggregates whose result depends on settings.
const STABLE_AGGREGATES: &[u32] = &[3175, 3197, 3267];
/// Input functions of pseudo-types take NULL.
const LAX_INTERNAL: &[&str] =
    &["trigger_in", "language_handler_in", "internal_in", "event_trigger_in", "domain_in", "domain_recv"];

/// Internal functions that tell nothing of their arguments.
const LEAKPROOF_INTERNAL: &[&str] = &["bpchar_larger", "bpchar_smaller", "text_larger", "text_smaller"];

fn set_volatility(oid: u32) -> &'static str {
    match oid {
        oid if STABLE_SETS.contains(&oid) => "s",
        oid if VOLATILE_SETS.contains(&oid) => "v",
        _ => "i",
    }
}

fn procedure(rel: &SystemRelation, p: Procedure<'_>) -> Vec<Datum> {
    let count = p.args.len() as i16;
    let last = p.args.last().copied().unwrap_or(0);
    let variadic = match last {
        _ if !p.variadic => 0,
        last if last == types::oid::ANY.0 => last,
        last => types::element_of(Oid(last)).map_or(last, |e| e.0),
    };
    let mut values = vec![
        ("oid", Datum::Oid(p.oid)),
        ("proname", text(p.name)),
        ("pronamespace", oid(p.schema)),
        ("proowner", oid(oids::ROLE_POSTGRES)),
        ("prolang", Datum::Oid(12)),
        ("procost", Datum::Float4(1.0)),
        ("prorows", Datum::Float4(if p.set { 1000.0 } else { 0.0 })),
        ("provariadic", Datum::Oid(variadic)),
        ("prosupport", Datum::Oid(0)),
        ("prokind", text(p.kind)),
        ("prosecdef", Datum::Bool(false)),
        ("proleakproof", Datum::Bool(p.leakproof)),
        ("proisstrict", Datum::Bool(p.strict)),
        ("proretset", Datum::Bool(p.set)),
        ("provolatile", text(p.volatility)),
        ("proparallel", text("s")),
        ("pronargs", Datum::Int2(count)),
        ("pronargdefaults", Datum::Int2(p.defaults as i16)),
        ("prorettype", oid(p.ret)),
        ("proargtypes", oid_array(&p.args, 0)),
        ("prosrc", text(if p.kind == "a" { "aggregate_dummy" } else { p.name })),
    ];
    if p.columns.len() > 1 {
        let all: Vec<u32> = p.args.iter().copied().chain(p.columns.iter().map(|c| c.1.0)).collect();
        let modes = p.args.iter().map(|_| text("i")).chain(p.columns.iter().map(|_| text("o"))).collect();
        let names = p.args.iter().map(|_| text("")).chain(p.columns.iter().map(|c| text(c.0))).collect();
        values.extend([
            ("proallargtypes", oid_array(&all, 1)),
            ("proargmodes", super::relations::text_array(modes)),
            ("proargnames", super::relations::text_array(names)),
        ]);
    }
    row(rel, values)
}

/// Whether a name can be written: those of functions that only the binder calls cannot.
fn is_callable(name: &str) -> bool {
    !name.is_empty() && !name.contains(' ')
}

pub(super) fn procedures(rel: &SystemRelation, cx: &dyn EvalContext) -> SystemRows {
    let (catalog, database) = (cx.catalog(), cx.identity().database_oid);
    let numbers = |args: &[Oid]| args.iter().map(|a| a.0).collect::<Vec<u32>>();
    let mut rows = Vec::new();
    let built_in = functions::all_functions().filter(|f| is_callable(f.name)).map(|f| (oids::SCHEMA_PG_CATALOG, f));
    let of_extensions = extensions::all()
        .filter_map(|(extension, function)| Some((catalog.extension(database, extension.name)?.schema, function)));
    for (schema, f) in built_in.chain(of_extensions) {
        let volatility = match f.volatility {
            Volatility::Immutable => "i",
            Volatility::Stable => "s",
            Volatility::Volatile => "v",
        };
        rows.push(procedure(
            rel,
            Procedure {
                oid: f.oid,
                schema,
                name: f.name,
                kind: "f",
                args: numbers(f.args),
                columns: &[],
                ret: f.ret,
                variadic: f.variadic,
                strict: f.strict,
                set: false,
                volatility,
                leakproof: f.leakproof,
                defaults: match f.oid {
                    // Fewer arguments are functions of their own here.
                    4350 | 4351 => 1,
                    5054 => 2,
                    _ => f.defaults.len(),
                },
            },
        ));
    }
    for a in functions::all_aggregates() {
        rows.push(procedure(
            rel,
            Procedure {
                oid: a.oid,
                schema: oids::SCHEMA_PG_CATALOG,
                name: a.name,
                kind: "a",
                args: numbers(a.args),
                columns: &[],
                ret: a.ret,
                variadic: false,
                strict: false,
                set: false,
                volatility: if STABLE_AGGREGATES.contains(&a.oid) { "s" } else { "i" },
                leakproof: false,
                defaults: 0,
            },
        ));
    }
    for s in functions::all_set_functions().iter().filter(|s| is_callable(s.name)) {
        let ret = match s.columns {
            [(_, ty)] => *ty,
            _ => types::oid::RECORD,
        };
        rows.push(procedure(
            rel,
            Procedure {
                oid: s.oid,
                schema: oids::SCHEMA_PG_CATALOG,
                name: s.name,
                kind: "f",
                args: numbers(s.args),
                columns: s.columns,
                ret,
                variadic: s.variadic,
                strict: s.strict,
                set: true,
                volatility: set_volatility(s.oid),
                leakproof: false,
                defaults: if SETS_WITH_DEFAULTS.contains(&s.oid) { 2 } else { 0 },
            },
        ));
    }
    for f in INTERNAL_FUNCTIONS.iter().filter(|f| functions::function_by_oid(f.oid).is_none()) {
        rows.push(procedure(
            rel,
            Procedure {
                oid: f.oid,
                schema: oids::SCHEMA_PG_CATALOG,
                name: f.name,
                kind: "f",
                args: f.args.to_vec(),
                columns: &[],
                ret: Oid(f.ret),
                variadic: false,
                strict: is_strict(f),
                set: false,
                volatility: match f.volatility {
                    'i' => "i",
                    's' => "s",
                    _ => "v",
                },
                leakproof: LEAKPROOF_INTERNAL.contains(&f.name),
                defaults: 0,
            },
        ));
    }
    Ok(rows)
}

pub(super) fn aggregates(rel: &SystemRelation, _: &dyn EvalContext) -> SystemRows {
    let facts = functions::all_aggregates().iter().filter_map(|a| aggregate_facts(a.oid));
    let optional = |text_of: Option<&str>| text_of.map_or(Datum::Null, text);
    Ok(facts
        .map(|facts| {
            let [trans, last, combine, serial, deserial, moving, inverse, moving_last] =
                facts.functions.map(Datum::Oid);
            let (extra, moving_extra, modify, moving_modify) = facts.finals;
            let [state, space, moving_state, moving_space] = facts.states;
            row(
                rel,
                vec![
                    ("aggfnoid", Datum::Oid(facts.oid)),
                    ("aggkind", text(facts.kind.0)),
                    ("aggnumdirectargs", Datum::Int2(facts.kind.1)),
                    ("aggtransfn", trans),
                    ("aggfinalfn", last),
                    ("aggcombinefn", combine),
                    ("aggserialfn", serial),
                    ("aggdeserialfn", deserial),
                    ("aggmtransfn", moving),
                    ("aggminvtransfn", inverse),
                    ("aggmfinalfn", moving_last),
                    ("aggfinalextra", Datum::Bool(extra)),
                    ("aggmfinalextra", Datum::Bool(moving_extra)),
                    ("aggfinalmodify", text(modify)),
                    ("aggmfinalmodify", text(moving_modify)),
                    ("aggsortop", Datum::Oid(facts.sort_operator)),
                    ("aggtranstype", Datum::Oid(state as u32)),
                    ("aggtransspace", Datum::Int4(space)),
                    ("aggmtranstype", Datum::Oid(moving_state as u32)),
                    ("aggmtransspace", Datum::Int4(moving_space)),
                    ("agginitval", optional(facts.initial.0)),
                    ("aggminitval", optional(facts.initial.1)),
                ],
            )
        })
        .collect())
}

pub(super) fn operators(rel: &SystemRelation, _: &dyn EvalContext) -> SystemRows {
    Ok(functions::all_operators()
        .iter()
        .filter(|o| !o.name.is_empty() && o.name.bytes().all(|b| b"+-*/<>=~!@#%^&|`?".contains(&b)))
        .map(|o| {
            let both = [o.left, o.right];
            let args: &[Oid] = if o.left.is_valid() { &both } else { &both[1..] };
            let function = functions::function(o.function, args);
            let facts = operator_facts(o.oid);
            row(
                rel,
                vec![
                    ("oid", Datum::Oid(o.oid)),
                    ("oprname", text(o.name)),
                    ("oprnamespace", oid(oids::SCHEMA_PG_CATALOG)),
                    ("oprowner", oid(oids::ROLE_POSTGRES)),
                    ("oprkind", text(if o.left.is_valid() { "b" } else { "l" })),
                    ("oprcanmerge", Datum::Bool(facts.is_some_and(|f| f.merges))),
                    ("oprcanhash", Datum::Bool(facts.is_some_and(|f| f.hashes))),
                    ("oprleft", oid(o.left)),
                    ("oprright", oid(o.right)),
                    ("oprresult", function.map_or(Datum::Oid(0), |f| oid(f.ret))),
                    ("oprcom", Datum::Oid(facts.map_or(0, |f| f.commutator))),
                    ("oprnegate", Datum::Oid(facts.map_or(0, |f| f.negator))),
                    ("oprcode", function.map_or(Datum::Oid(0), |f| Datum::Oid(f.oid))),
                    ("oprrest", Datum::Oid(if o.name == "=" { internal_oid("eqsel") } else { 0 })),
                    ("oprjoin", Datum::Oid(if o.name == "=" { internal_oid("eqjoinsel") } else { 0 })),
                ],
            )
        })
        .collect())
}

/// Function and method of a cast, as PostgreSQL has it. Where a cast is free there, or shares a function, Nyala may have
/// one of its own, with a number that PostgreSQL does not use.
fn cast_method(c: &functions::CastEntry) -> (u32, &'static str) {
    use types::oid::{BPCHAR, CHAR, INT2, INT4, INT8, JSON, JSONB, OID, REGCLASS, VARCHAR};
    let fits = |f: &&&functions::Function| f.args.first() == Some(&c.source);
    let function = c.function.and_then(|name| functions::functions_named(name).iter().find(fits).map(|f| f.oid));
    // The networks of both types are held alike.
    let of_inet = || functions::function(c.function?, &[types::oid::INET]).filter(|_| c.source == types::oid::CIDR);
    let Some(function) = function.or_else(|| of_inet().map(|f| f.oid)) else { return (0, "b") };
    if !(OWN_FUNCTIONS..engine_api::oids::FIRST_USER.0).contains(&function) {
        return (function, "f");
    }
    match (c.source, c.target) {
        (INT2, _) => (313, "f"),
        (INT8, _) => (1287, "f"),
        (_, INT8) => (1288, "f"),
        (BPCHAR | VARCHAR, CHAR) => (944, "f"),
        (VARCHAR, REGCLASS) => (1079, "f"),
        (JSON, JSONB) | (JSONB, JSON) => (0, "i"),
        (INT4, _) | (_, INT4) | (OID, _) => (0, "b"),
        _ => (function, "f"),
    }
}

/// Numbers from here on are Nyala's own.
const OWN_FUNCTIONS: u32 = 9_000;

pub(super) fn casts(rel: &SystemRelation, _: &dyn EvalContext) -> SystemRows {
    Ok(functions::all_casts()
        .iter()
        .enumerate()
        .map(|(i, c)| {
            let (function, method) = cast_method(c);
            let context = match c.context {
                CastContext::Implicit => "i",
                CastContext::Assignment => "a",
                CastContext::Explicit => "e",
            };
            row(
                rel,
                vec![
                    ("oid", Datum::Oid(10_000 + i as u32)),
                    ("castsource", oid(c.source)),
                    ("casttarget", oid(c.target)),
                    ("castfunc", Datum::Oid(function)),
                    ("castcontext", text(context)),
                    ("castmethod", text(method)),
                ],
            )
        })
        .collect())
}
