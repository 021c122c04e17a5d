//! Simplifies expressions by the constants in them, as PostgreSQL's `eval_const_expressions` does.
//!
//! Not responsible for: calls of constants, which are folded as they are bound.

use types::{Datum, oid};

use super::raise::truth;
use super::visit;
use crate::ir::{Expr, Ty};

fn boolean(value: bool) -> Expr {
    Expr::Const(Datum::Bool(value), Ty::of(oid::BOOL))
}

/// The expression without the parts that cannot change its value and those that are never evaluated.
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
        Expr::Not(arg) => match truth(arg) {
            Some(Some(value)) => *expr = boolean(!value),
            Some(None) => *expr = std::mem::replace(&mut **arg, Expr::Default),
            None => {}
        },
        Expr::Case { branches, otherwise, ty } => {
            branches.retain(|(when, _)| !matches!(truth(when), Some(Some(false) | None)));
            if let Some(at) = branches.iter().position(|(when, _)| truth(when) == Some(Some(true))) {
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
    if args.iter().any(|arg| truth(arg) == Some(Some(decides))) {
        return boolean(decides);
    }
    args.retain(|arg| truth(arg) != Some(Some(!decides)));
    match args.len() {
        0 => boolean(!decides),
        1 => args.remove(0),
        _ => join(args),
    }
}
