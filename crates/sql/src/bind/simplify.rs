//! What of an expression is ever evaluated, by the constants in it, as in PostgreSQL's `eval_const_expressions`.
//!
//! Not responsible for: calls of constants, which are folded as they are bound.

use types::{Datum, oid};

use super::visit;
use crate::ir::{Expr, Ty};

fn truth(value: bool) -> Expr {
    Expr::Const(Datum::Bool(value), Ty::of(oid::BOOL))
}

/// What remains of an expression without that which cannot change its value, and what is not reached.
pub(crate) fn simplified(expr: &Expr) -> Expr {
    let mut expr = expr.clone();
    simplify(&mut expr);
    expr
}

fn simplify(expr: &mut Expr) {
    visit::children_mut(expr, &mut simplify, &mut |_| {});
    match expr {
        Expr::And(args) => *expr = joined(std::mem::take(args), false, Expr::And),
        Expr::Or(args) => *expr = joined(std::mem::take(args), true, Expr::Or),
        Expr::Not(arg) => match **arg {
            Expr::Const(Datum::Bool(value), _) => *expr = truth(!value),
            Expr::Const(Datum::Null, ty) => *expr = Expr::Const(Datum::Null, ty),
            _ => {}
        },
        Expr::Case { branches, otherwise, ty } => {
            branches.retain(|(when, _)| !matches!(when, Expr::Const(Datum::Bool(false) | Datum::Null, _)));
            if let Some(at) = branches.iter().position(|(when, _)| matches!(when, Expr::Const(Datum::Bool(true), _))) {
                branches.truncate(at + 1);
                *otherwise = branches.pop().map(|(_, result)| Box::new(result));
            }
            if branches.is_empty() {
                *expr = otherwise.take().map_or(Expr::Const(Datum::Null, *ty), |otherwise| *otherwise);
            }
        }
        Expr::Coalesce(args, ty) => {
            args.retain(|arg| !matches!(arg, Expr::Const(Datum::Null, _)));
            if let Some(at) = args.iter().position(|arg| matches!(arg, Expr::Const(..))) {
                args.truncate(at + 1);
            }
            match args.len() {
                0 => *expr = Expr::Const(Datum::Null, *ty),
                1 => *expr = args.remove(0),
                _ => {}
            }
        }
        _ => {}
    }
}

/// AND (`decides` is false) or OR (true) of these.
fn joined(mut args: Vec<Expr>, decides: bool, join: fn(Vec<Expr>) -> Expr) -> Expr {
    let is = |arg: &Expr, value: bool| matches!(arg, Expr::Const(Datum::Bool(of), _) if *of == value);
    if args.iter().any(|arg| is(arg, decides)) {
        return truth(decides);
    }
    args.retain(|arg| !is(arg, !decides));
    match args.len() {
        0 => truth(!decides),
        1 => args.remove(0),
        _ => join(args),
    }
}
