//! Folding of constants: immutable calls over constants become their value.
//!
//! Invariant: what would raise an error stays a call, so that it raises it when – and only if – it is evaluated.

use types::Datum;

use super::BindContext;
use crate::functions::{Function, Volatility};
use crate::ir::{CastKind, Expr, Ty};

/// Bytes of the largest value that becomes part of a plan: plans are kept, and are taken to be as large as their texts.
const FOLDED_MAX: usize = 4 << 10;

/// A call, or its value if that is known.
pub(super) fn call(cx: &BindContext<'_>, function: &'static Function, args: Vec<Expr>, ty: Ty, location: i32) -> Expr {
    if !cx.keeps_calls
        && function.volatility == Volatility::Immutable
        && args.iter().all(|a| matches!(a, Expr::Const(..)))
    {
        let values: Vec<Datum> = args
            .iter()
            .map(|a| match a {
                Expr::Const(value, _) => value.clone(),
                _ => Datum::Null,
            })
            .collect();
        if function.strict && values.iter().any(Datum::is_null) {
            return Expr::Const(Datum::Null, ty);
        }
        if function.strict
            && let Ok(value) = crate::functions::call(function, cx.eval, &values)
            && crate::functions::weight(&value) <= FOLDED_MAX
        {
            return Expr::Const(value, ty);
        }
    }
    Expr::Call { function, args, ty, location }
}

/// A cast, or its value if that is known.
pub(super) fn cast(cx: &BindContext<'_>, arg: Expr, ty: Ty, kind: CastKind, explicit: bool, location: i32) -> Expr {
    if let Expr::Const(value, from) = &arg
        && (!cx.keeps_calls || from.oid == types::oid::UNKNOWN)
    {
        if value.is_null() {
            return Expr::Const(Datum::Null, ty);
        }
        match kind {
            CastKind::Relabel => return Expr::Const(value.clone(), ty),
            CastKind::Typmod => {
                if let Ok(value) = types::apply_typmod(value.clone(), ty.oid, ty.typmod, explicit)
                    && crate::functions::weight(&value) <= FOLDED_MAX
                {
                    return Expr::Const(value, ty);
                }
            }
            CastKind::InOut | CastKind::ArrayElements(_) => {}
        }
    }
    Expr::Cast { arg: Box::new(arg), ty, kind, explicit, location }
}
