//! NOT moved to the comparisons that it is about, where an index can answer them.
//!
//! Each step keeps the value: true, false or NULL.

use base::work;
use sql_ir::Expr;
use sql_ir::expr::opposite_of;
use types::Datum;

/// Units of work for one part of a condition.
const PART: usize = 16;

/// NOT of a condition.
pub(super) fn negated(expr: Expr) -> Expr {
    work::beat(PART);
    match expr {
        Expr::Not(arg) => moved(*arg),
        Expr::And(args) => Expr::Or(args.into_iter().map(negated).collect()),
        Expr::Or(args) => Expr::And(args.into_iter().map(negated).collect()),
        Expr::Const(Datum::Bool(value), ty) => Expr::Const(Datum::Bool(!value), ty),
        Expr::IsNull { arg, negated, fields: false } => Expr::IsNull { arg, negated: !negated, fields: false },
        Expr::BooleanTest { arg, want, negated } => Expr::BooleanTest { arg, want, negated: !negated },
        Expr::Distinct { equal, args, negated } => Expr::Distinct { equal, args, negated: !negated },
        mut other => {
            let function = match &mut other {
                Expr::Call { function, .. } => Some(function),
                Expr::AnyAll { all, function, .. } => {
                    *all ^= opposite_of(function).is_some();
                    Some(function)
                }
                _ => None,
            };
            match function.and_then(|function| Some((opposite_of(function)?, function))) {
                Some((opposite, function)) => {
                    *function = opposite;
                    other
                }
                None => Expr::Not(Box::new(other)),
            }
        }
    }
}

/// A condition with NOT moved down in it.
fn moved(expr: Expr) -> Expr {
    work::beat(PART);
    match expr {
        Expr::Not(arg) => negated(*arg),
        Expr::And(args) => Expr::And(args.into_iter().map(moved).collect()),
        Expr::Or(args) => Expr::Or(args.into_iter().map(moved).collect()),
        other => other,
    }
}
