//! Whether a condition holds wherever others do: what a partial index needs to be of use.

use sql_ir::expr::{How, comparison_of};
use sql_ir::{AnyAllSource, CompareOp, Expr};

use super::equal::same;

/// Whether `predicate` is true for every row for which `condition` is.
pub fn implies(condition: Option<&Expr>, predicate: &Expr) -> bool {
    let given: Vec<&Expr> = condition.into_iter().flat_map(parts).collect();
    all_implied(&given, predicate)
}

/// Whether `predicate` is true for every row for which all of `given` are.
pub fn all_implied(given: &[&Expr], predicate: &Expr) -> bool {
    match predicate {
        Expr::And(all) => all.iter().all(|part| all_implied(given, part)),
        Expr::Or(any) => {
            any.iter().any(|part| all_implied(given, part))
                || given
                    .iter()
                    .any(|g| matches!(g, Expr::Or(all) if all.iter().all(|one| implies(Some(one), predicate))))
        }
        Expr::Const(types::Datum::Bool(true), _) => true,
        one => given.iter().any(|g| implies_one(g, one)),
    }
}

fn parts(expr: &Expr) -> Vec<&Expr> {
    match expr {
        Expr::And(all) => all.iter().flat_map(parts).collect(),
        one => vec![one],
    }
}

fn implies_one(given: &Expr, wanted: &Expr) -> bool {
    if same(given, wanted) {
        return true;
    }
    match wanted {
        // What is compared is not NULL.
        Expr::IsNull { arg, negated: true, .. } => is_strict_in(given, arg),
        Expr::Call { .. } => compared_implies(given, wanted),
        Expr::AnyAll { all: false, function, left, right: AnyAllSource::List(items) } => {
            let test = comparison_of(function);
            let Some((of, CompareOp::Eq, value)) = against_constant(given) else { return false };
            test.op == CompareOp::Eq && same(of, left) && items.iter().any(|item| same(item, value))
        }
        _ => false,
    }
}

/// Whether a condition is not true where `arg` is NULL.
fn is_strict_in(given: &Expr, arg: &Expr) -> bool {
    match given {
        Expr::Call { function, args, .. } => {
            function.strict && args.iter().any(|a| same(a, arg) || is_strict_in(a, arg))
        }
        Expr::Cast { arg: inner, .. } => same(inner, arg) || is_strict_in(inner, arg),
        Expr::AnyAll { all: false, function, left, .. } => {
            function.strict && (same(left, arg) || is_strict_in(left, arg))
        }
        _ => false,
    }
}

/// `of op constant`.
fn against_constant(expr: &Expr) -> Option<(&Expr, CompareOp, &Expr)> {
    let Expr::Call { function, args, .. } = expr else { return None };
    let [left, right] = args.as_slice() else { return None };
    let test = comparison_of(function);
    if matches!(test.how, How::Function(_)) {
        return None;
    }
    match (left, right) {
        (of, Expr::Const(value, _)) if !value.is_null() => Some((of, test.op, right)),
        (Expr::Const(value, _), of) if !value.is_null() => Some((of, test.op.flipped(), left)),
        _ => None,
    }
}

/// A comparison with a constant follows from one of the same thing with another constant of the same type.
fn compared_implies(given: &Expr, wanted: &Expr) -> bool {
    use CompareOp as C;
    let (Some((of, op, value)), Some((wanted_of, wanted_op, bound))) =
        (against_constant(given), against_constant(wanted))
    else {
        return false;
    };
    let (Expr::Const(value, ty), Expr::Const(bound, bound_ty)) = (value, bound) else { return false };
    if !same(of, wanted_of) || ty.oid != bound_ty.oid {
        return false;
    }
    let order = types::compare_as(ty.oid, &value.as_ref(), &bound.as_ref());
    match (op, wanted_op) {
        (C::Eq, C::Eq) => order.is_eq(),
        (C::Eq, C::Ne) => order.is_ne(),
        (C::Eq | C::Gt | C::Ge, C::Ge) => order.is_ge(),
        (C::Eq | C::Lt | C::Le, C::Le) => order.is_le(),
        (C::Eq | C::Ge, C::Gt) => order.is_gt(),
        (C::Eq | C::Le, C::Lt) => order.is_lt(),
        (C::Gt, C::Gt | C::Ne) => order.is_ge(),
        (C::Lt, C::Lt | C::Ne) => order.is_le(),
        (C::Ge, C::Ne) => order.is_gt(),
        (C::Le, C::Ne) => order.is_lt(),
        _ => false,
    }
}
