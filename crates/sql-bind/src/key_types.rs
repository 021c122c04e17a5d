//! How a foreign key compares the values of its column with those of the column that it points to: PostgreSQL's rules for the
//! operators of `pg_constraint`. Domains are what they are over here.

use base::{Error, Oid, Result};
use sql_functions::{CastContext, Function, Operator, function as function_of};
use sql_ir::{CastKind, Expr, Ty};
use types::oid;

use super::{can_cast, cast_between, equality_operator};

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

/// A value under the name of another type that holds it alike.
fn relabelled(expr: Expr, ty: Oid) -> Expr {
    if expr.ty().oid == ty || is_any_of(ty, expr.ty().oid) {
        return expr;
    }
    Expr::Cast { arg: Box::new(expr), ty: Ty::of(ty), kind: CastKind::Relabel, explicit: false, location: -1 }
}

fn incomparable(foreign: Oid, key: Oid) -> Error {
    let [foreign, key] = [foreign, key].map(|ty| oid::format_type(ty, -1));
    Error::internal(format!("a foreign key from {foreign} to {key}"))
}

/// Whether a polymorphic operand stands for a type.
fn is_any_of(operand: Oid, ty: Oid) -> bool {
    match operand {
        oid::ANYARRAY => oid::element_of(ty).is_some(),
        oid::ANYENUM => types::user::is_enum(ty),
        _ => false,
    }
}

/// Whether an operator's operand takes what a column holds as it is.
fn takes(operand: Oid, column: Oid) -> bool {
    stored_alike(column, operand) || is_any_of(operand, column)
}

/// The operator `=` that takes what two columns hold, with its function.
pub fn key_equality(left: Oid, right: Oid) -> Option<(&'static Operator, &'static Function)> {
    let operator = equality_operator(left, right)?;
    let function = function_of(operator.function, &[operator.left, operator.right])?;
    (takes(operator.left, left) && takes(operator.right, right)).then_some((operator, function))
}

/// `child = key` for the column types of a foreign key.
///
/// # Errors
/// XX000 for types that no foreign key can be of.
pub fn key_equal(child: Expr, key: Expr) -> Result<Expr> {
    let (from, to) = (child.ty().oid, key.ty().oid);
    let incomparable = || incomparable(from, to);
    let child = match key_comparison(from, to) {
        Some(KeyComparison::As(ty)) if !stored_alike(from, to) => key_value(child, from, Ty::of(ty))?,
        _ => child,
    };
    let (operator, function) = key_equality(child.ty().oid, to).ok_or_else(incomparable)?;
    let args = vec![relabelled(child, operator.left), relabelled(key, operator.right)];
    Ok(Expr::Call { function, args, ty: Ty::of(oid::BOOL), location: -1 })
}

/// Whether values of two types are stored alike, so that an index over one finds values of the other. Domains are what they
/// are over here.
pub fn stored_alike(a: Oid, b: Oid) -> bool {
    const FAMILIES: [&[Oid]; 4] = [
        &[oid::INT2, oid::INT4, oid::INT8],
        &[oid::TEXT, oid::VARCHAR],
        &[oid::INET, oid::CIDR],
        &[oid::BIT, oid::VARBIT],
    ];
    a == b
        || FAMILIES.iter().any(|family| family.contains(&a) && family.contains(&b))
        || (oid::is_oid_like(a) && oid::is_oid_like(b))
}

/// A value of the parent's column as a value of the child's.
///
/// # Errors
/// XX000 for types that no foreign key can be of.
pub fn key_value(value: Expr, from: Oid, to: Ty) -> Result<Expr> {
    let value = match cast_between(from, to.oid) {
        _ if from == to.oid => value,
        Some(Some(function)) => Expr::Call { function, args: vec![value], ty: Ty::of(to.oid), location: -1 },
        Some(None) => relabelled(value, to.oid),
        None => return Err(incomparable(from, to.oid)),
    };
    if to.typmod < 0 {
        return Ok(value);
    }
    Ok(Expr::Cast { arg: Box::new(value), ty: to, kind: CastKind::Typmod, explicit: false, location: -1 })
}
