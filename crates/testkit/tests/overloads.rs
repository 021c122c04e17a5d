//! Which overload of an operator or function is meant, for every pair of types and for literals: the type of the result, or
//! the error, must be PostgreSQL's. The catalogs of functions, operators and casts must agree as well.
//!
//! All operators are tried, and of the calls of functions a sample; `NYALA_ROUNDS=n` makes it n times as large.

use testkit::overloads::{self, OPERANDS};
use testkit::{Comparison, Random, Reply};

/// Statements that are described at once.
const BATCH: usize = 200;
/// Calls of functions in one round.
const CALLS: usize = 12_000;

fn describe(servers: &mut Comparison, statements: &[String]) {
    for batch in statements.chunks(BATCH) {
        let (first, second) = servers.connections();
        let answers: Vec<_> = first.describe(batch).into_iter().zip(second.describe(batch)).collect();
        for (sql, (mut expected, mut actual)) in batch.iter().zip(answers) {
            expected.drop_columns_of_errors();
            actual.drop_columns_of_errors();
            servers.judge(sql, &expected, &actual, is_found_later);
        }
    }
}

/// PostgreSQL finds out only when it runs GREATEST that there is nothing to compare by.
fn is_found_later(expected: &Reply, actual: &Reply) -> bool {
    let missing = "could not identify a comparison function";
    expected.error().is_none() && actual.error().is_some_and(|error| error.message.starts_with(missing))
}

#[test]
fn operators_agree() {
    let mut servers = Comparison::start(&[]);
    let (first, second) = servers.connections();
    let names = overloads::names(first, second);
    let mut statements = Vec::new();
    for name in &names.prefix {
        statements.extend(OPERANDS.iter().map(|right| format!("SELECT {name} {right} AS x")));
    }
    for name in &names.binary {
        for left in OPERANDS {
            statements.extend(OPERANDS.iter().map(|right| format!("SELECT {left} {name} {right} AS x")));
        }
    }
    println!("{} operators", names.prefix.len() + names.binary.len());
    describe(&mut servers, &statements);
    servers.finish_rarely_fine(0);
}

#[test]
fn functions_agree() {
    let seed = Random::seed();
    println!("NYALA_SEED={seed}");
    let rounds: usize = std::env::var("NYALA_ROUNDS").map_or(1, |text| text.parse().expect("NYALA_ROUNDS is a number"));
    let mut random = Random::new(seed);
    let mut servers = Comparison::start(&[]);
    let (first, second) = servers.connections();
    let names = overloads::names(first, second);
    println!("{} functions", names.functions.len());
    let mut statements = Vec::new();
    for _ in 0..rounds * CALLS {
        let (name, counts) = &names.functions[random.below(names.functions.len() as u64) as usize];
        let count = *counts.iter().nth(random.below(counts.len() as u64) as usize).expect("there is one");
        let arguments: Vec<&str> = (0..count).map(|_| OPERANDS[random.below(OPERANDS.len() as u64) as usize]).collect();
        statements.push(format!("SELECT \"{name}\"({}) AS x", arguments.join(", ")));
    }
    describe(&mut servers, &statements);
    servers.finish_rarely_fine(seed);
}

#[test]
fn common_types_and_casts_agree() {
    let mut servers = Comparison::start(&[]);
    let types: Vec<&str> = OPERANDS.iter().filter_map(|operand| operand.strip_prefix("NULL::")).collect();
    let (first, second) = servers.connections();
    for connection in [first, second] {
        for (number, name) in types.iter().enumerate() {
            let reply = connection.query(&format!("CREATE TABLE t{number} (a {name})"));
            assert_eq!(reply.error(), None, "{name}");
        }
    }
    let mut statements = Vec::new();
    for left in OPERANDS {
        for right in OPERANDS {
            statements.push(format!("SELECT {left} AS x UNION SELECT {right}"));
            statements.push(format!("SELECT CASE WHEN true THEN {left} ELSE {right} END AS x"));
            statements.push(format!("SELECT ARRAY[{left}, {right}] AS x"));
            statements.push(format!("SELECT greatest({left}, {right}) AS x"));
            statements.push(format!("SELECT nullif({left}, {right}) AS x"));
            statements.push(format!("SELECT {left} IN ({right}, {left}) AS x"));
            statements.push(format!("SELECT {left} BETWEEN {right} AND {right} AS x"));
            statements.push(format!("SELECT {left} = ANY ({right}) AS x"));
        }
    }
    for left in OPERANDS {
        for (number, name) in types.iter().enumerate() {
            statements.push(format!("SELECT ({left})::{name} AS x"));
            statements.push(format!("SELECT CAST({left} AS {name}[]) AS x"));
            statements.push(format!("INSERT INTO t{number} VALUES ({left})"));
            statements.push(format!("UPDATE t{number} SET a = {left}"));
        }
    }
    describe(&mut servers, &statements);
    servers.finish_rarely_fine(0);
}

#[test]
fn catalogs_agree() {
    let mut servers = Comparison::start(&[]);
    let queries = [
        "SELECT oid, proname, proargtypes::text, prorettype, provolatile, proisstrict, proretset, prokind, provariadic, pronargs, \
         pronargdefaults, proleakproof, obj_description(oid, 'pg_proc') FROM pg_proc WHERE pronamespace = 11",
        "SELECT oid, oprname, oprkind, oprleft, oprright, oprresult, oprcode::oid, oprcom, oprnegate, oprcanmerge, oprcanhash, \
         obj_description(oid, 'pg_operator') FROM pg_operator WHERE oprnamespace = 11",
        "SELECT castsource::text || '>' || casttarget, castcontext, castmethod, castfunc FROM pg_cast",
        "SELECT oid, typname, typlen, typbyval, typtype, typcategory, typispreferred, typdelim, typelem, typarray, typinput::oid, \
         typoutput::oid, typreceive::oid, typsend::oid, \
         obj_description(oid, 'pg_type') FROM pg_type WHERE typnamespace = 11 AND typrelid = 0",
    ];
    for sql in queries {
        let (first, second) = servers.connections();
        let read = |reply: testkit::Reply| -> std::collections::BTreeMap<Option<String>, Vec<Option<String>>> {
            assert_eq!(reply.error(), None, "{sql}");
            reply.rows().map(|row| (row[0].clone(), row.to_vec())).collect()
        };
        let (expected, actual) = (read(first.query(sql)), read(second.query(sql)));
        for (key, row) in actual {
            servers.count += 1;
            servers.fine += 1;
            // What only one server has, the other cannot say anything about.
            // Types that are not there are text.
            let is_other = |row: &[Option<String>]| {
                let types = row.iter().skip(2).take(2).flatten().flat_map(|types| types.split(' '));
                types.into_iter().any(|ty| matches!(ty, "194" | "869" | "1034"))
            };
            if let Some(other) = expected.get(&key).filter(|other| **other != row && !is_other(other)) {
                servers.differs(format!("{sql}\n  PostgreSQL: {other:?}\n  under test: {row:?}"));
            }
        }
    }
    servers.finish(0);
}
