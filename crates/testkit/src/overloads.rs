//! Every operator and function with every pair of types: which overload is meant, or what is wrong.

use std::collections::{BTreeMap, BTreeSet};

use crate::client::Connection;

/// What operands are written as.
pub const OPERANDS: &[&str] = &[
    "NULL::int2",
    "NULL::int4",
    "NULL::int8",
    "NULL::numeric",
    "NULL::float4",
    "NULL::float8",
    "NULL::bool",
    "NULL::text",
    "NULL::varchar",
    "NULL::bpchar",
    "NULL::\"char\"",
    "NULL::name",
    "NULL::bytea",
    "NULL::date",
    "NULL::time",
    "NULL::timetz",
    "NULL::timestamp",
    "NULL::timestamptz",
    "NULL::interval",
    "NULL::uuid",
    "NULL::inet",
    "NULL::cidr",
    "NULL::macaddr",
    "NULL::macaddr8",
    "NULL::bit",
    "NULL::varbit",
    "NULL::json",
    "NULL::jsonb",
    "NULL::int4[]",
    "NULL::text[]",
    "NULL::oid",
    "NULL::regclass",
    "NULL::jsonpath",
    "'x'",
    "NULL",
];

/// Kinds of types that only PostgreSQL has; an overload with one of them can make a call ambiguous there.
pub struct Names {
    /// Symbols of binary operators and of prefix operators.
    pub binary: Vec<String>,
    /// Prefix operators.
    pub prefix: Vec<String>,
    /// Names of functions by the numbers of arguments that they can be called with.
    pub functions: Vec<(String, BTreeSet<usize>)>,
}

fn rows(connection: &mut Connection, sql: &str) -> Vec<Vec<String>> {
    let reply = connection.query(sql);
    assert_eq!(reply.error(), None, "{sql}");
    reply.rows().map(|row| row.iter().map(|value| value.clone().unwrap_or_default()).collect()).collect()
}

/// The condition that a function of pg_proc is a part of an aggregate: the catalog names it, but it cannot be called by itself.
pub(crate) const OF_AGGREGATES: &str = "oid IN (SELECT unnest(ARRAY[aggtransfn::oid, aggfinalfn::oid, aggcombinefn::oid, \
    aggmtransfn::oid, aggminvtransfn::oid, aggmfinalfn::oid, aggserialfn::oid, aggdeserialfn::oid]) FROM pg_aggregate)";

/// The names that the server under test has all overloads of, as far as PostgreSQL has them: where some are of types that
/// only PostgreSQL has, other calls may be ambiguous there.
///
/// PANICS if a catalog cannot be read.
pub fn names(reference: &mut Connection, subject: &mut Connection) -> Names {
    let functions = "SELECT proname, oid FROM pg_proc WHERE prokind IN ('f', 'a', 'w') AND pronamespace = 11";
    let operators = "SELECT oprname, oid, oprleft FROM pg_operator";
    let missing = |all: &[Vec<String>], known: &[Vec<String>]| -> BTreeSet<String> {
        let known: BTreeSet<&String> = known.iter().map(|row| &row[1]).collect();
        all.iter().filter(|row| !known.contains(&row[1])).map(|row| row[0].clone()).collect()
    };
    let (all, known) = (rows(reference, operators), rows(subject, operators));
    let partial = missing(&all, &known);
    let named = |left: bool| {
        let of = known.iter().filter(|row| (row[2] != "0") == left && !partial.contains(&row[0]));
        of.map(|row| row[0].clone()).collect::<BTreeSet<String>>().into_iter().collect()
    };
    let (binary, prefix) = (named(true), named(false));
    let partial = missing(&rows(reference, functions), &rows(subject, functions));
    let mut callable: BTreeMap<String, BTreeSet<usize>> = BTreeMap::new();
    let wanted = "SELECT proname, pronargs - pronargdefaults, pronargs + CASE WHEN provariadic <> 0 THEN 1 ELSE 0 END FROM pg_proc \
                  WHERE prokind IN ('f', 'a') AND pronamespace = 11 AND proname !~ '^(pg_|has_|lo_)' \
                  AND NOT ('internal'::regtype = ANY (proargtypes) OR 'cstring'::regtype = ANY (proargtypes)) \
                  AND prorettype <> 'cstring'::regtype AND proname !~ '_(handler|validator)$' \
                  AND proname NOT IN ('acldefault', 'inet_client_addr', 'inet_server_addr') \
                  AND oid NOT IN (SELECT unnest(ARRAY[typinput::oid, typoutput::oid, typreceive::oid, typsend::oid, typmodin::oid, \
                  typmodout::oid]) FROM pg_type) \
                  AND NOT ";
    for row in rows(reference, &format!("{wanted}{OF_AGGREGATES}")) {
        if partial.contains(&row[0]) {
            continue;
        }
        let count = |at: usize| row[at].parse::<usize>().unwrap_or(0);
        callable.entry(row[0].clone()).or_default().extend((count(1)..=count(2)).filter(|n| (1..=3).contains(n)));
    }
    let known: BTreeSet<String> = rows(subject, functions).into_iter().map(|mut row| row.swap_remove(0)).collect();
    let functions = callable.into_iter().filter(|(name, counts)| known.contains(name) && !counts.is_empty()).collect();
    Names { binary, prefix, functions }
}
