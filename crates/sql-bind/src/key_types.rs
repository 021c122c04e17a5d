//! How a foreign key compares the values of its column with those of the column that it points to: PostgreSQL's rules for the
//! operators of `pg_constraint`. Domains are what they are over here.

use base::Oid;
use sql_functions::{CastContext, Operator};
use types::oid;

use super::{can_cast, equality_operator};

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyComparison {
    /// The two values as they are.
    Direct,
    /// The value that points as one of this type, by an implicit cast.
    As(Oid),
}

/// How values of two types are compared: the operator family of the key's index compares the two, or the one becomes what that
/// index takes. `None` if neither.
pub fn key_comparison(foreign: Oid, key: Oid) -> Option<KeyComparison> {
    /// Types whose values one operator family compares with each other.
    const FAMILIES: [&[Oid]; 4] = [
        &[oid::INT2, oid::INT4, oid::INT8],
        &[oid::FLOAT4, oid::FLOAT8],
        &[oid::DATE, oid::TIMESTAMP, oid::TIMESTAMPTZ],
        &[oid::TEXT, oid::NAME],
    ];
    if foreign == key {
        return equality_operator(key, key).map(|_| KeyComparison::Direct);
    }
    // What the operator class of an index over the key takes.
    let input = match key {
        oid::CIDR => oid::INET,
        oid::VARCHAR => oid::TEXT,
        _ if oid::element_of(key).is_some() => return None,
        _ if oid::is_oid_like(key) => oid::OID,
        _ => key,
    };
    if FAMILIES.iter().any(|family| family.contains(&foreign) && family.contains(&input)) {
        return equality_operator(input, foreign).map(|_| KeyComparison::Direct);
    }
    let becomes = can_cast(foreign, input, CastContext::Implicit);
    (becomes && equality_operator(input, input).is_some()).then_some(KeyComparison::As(input))
}

/// The operators of a foreign key's columns in `pg_constraint`: `conpfeqop`, `conppeqop`, `conffeqop`.
pub fn key_operators(foreign: Oid, key: Oid) -> Option<[&'static Operator; 3]> {
    let pair = match key_comparison(foreign, key)? {
        KeyComparison::Direct => [(key, foreign), (key, key), (foreign, foreign)],
        KeyComparison::As(input) => [(input, input); 3],
    };
    let [between, keys, own] = pair.map(|(left, right)| equality_operator(left, right));
    Some([between?, keys?, own?])
}
