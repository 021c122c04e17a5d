//! Simplifies expressions by the constants in them, as PostgreSQL's `eval_const_expressions` does.
//!
//! Not responsible for: computing calls of constants (`fold`), most of which are folded as they are bound; errors of constants in what
//! is taken out here, which are found before (`raise`).
//!
//! A statement is gone through only if one of its conditions holds a constant, which the binder notes as it meets it.

use std::collections::BTreeSet;

use sql_ir::{Expr, From, Query, RelKind, Statement, Ty};
use types::{Datum, oid};

use super::raise::truth;
use super::{BindContext, fold, visit};

fn boolean(value: bool) -> Expr {
    Expr::Const(Datum::Bool(value), Ty::of(oid::BOOL))
}

/// The expression without the parts that cannot change its value and those that are never evaluated. Calls stay.
pub(crate) fn simplified(expr: &Expr) -> Expr {
    let mut expr = expr.clone();
    in_one(&mut expr);
    expr
}

fn in_one(expr: &mut Expr) {
    visit::children_mut(expr, &mut in_one, &mut |_| {});
    node(expr);
}

/// Simplifies the expressions of a statement, if there is something to simplify. What they leave out is not evaluated when the
/// statement runs.
pub(super) fn statement(statement: &mut Statement, cx: &BindContext<'_>) -> bool {
    if !cx.has_decided_condition.get() {
        return false;
    }
    let simplify = Simplify { cx, is_kept: false };
    visit::statement_parts_mut(statement, &mut |expr| simplify.expr(expr), &mut |query| simplify.query(query));
    match statement {
        Statement::Update(update) => conditions(&mut update.query),
        Statement::Delete(delete) => conditions(&mut delete.query),
        Statement::Merge(merge) => conditions(&mut merge.query),
        Statement::Insert(_) | Statement::Select(_) => {}
    }
    true
}

/// Simplifies an expression that belongs to no statement.
pub(super) fn alone(expr: &mut Expr, cx: &BindContext<'_>) {
    if cx.has_decided_condition.get() {
        Simplify { cx, is_kept: false }.expr(expr);
    }
}

/// Simplifies an expression that a definition is to keep: all in it that constants decide is computed.
pub(super) fn kept(expr: &mut Expr, cx: &BindContext<'_>) {
    Simplify { cx, is_kept: true }.expr(expr);
}

/// Whether an expression is a constant once it is simplified.
pub(super) fn is_constant(expr: &Expr, cx: &BindContext<'_>) -> bool {
    let mut expr = expr.clone();
    alone(&mut expr, cx);
    visit::is_constant(&expr)
}

struct Simplify<'a, 'c> {
    cx: &'a BindContext<'c>,
    /// A definition keeps the expression.
    is_kept: bool,
}

impl Simplify<'_, '_> {
    fn expr(&self, expr: &mut Expr) {
        visit::children_mut(expr, &mut |child| self.expr(child), &mut |query| self.query(query));
        node(expr);
        // Its arguments may be constants only now.
        let known = fold::known(self.cx, expr);
        if let Some(known) = known.or_else(|| self.is_kept.then(|| fold::composed(self.cx, expr)).flatten()) {
            *expr = known;
        }
    }

    fn query(&self, value: &mut Query) {
        let written = (!value.grouping_sets.is_empty()).then(|| value.clone());
        visit::query_parts_mut(value, &mut |expr| self.expr(expr), &mut |query| self.query(query));
        if let Some(written) = written.filter(|written| has_merged(&written.group_by, &value.group_by)) {
            restore_grouped(value, written);
        }
        conditions(value);
        drop_uncalled(value);
    }
}

/// Whether two grouping expressions that could be told from each other no longer can. In a set that has only one of them the other
/// one is NULL, so they are not one and the same.
fn has_merged(before: &[Expr], after: &[Expr]) -> bool {
    let pairs = |all: &[Expr]| {
        let same = |at: usize| all[..at].iter().filter(|one| super::same(one, &all[at])).count();
        (1..all.len()).map(same).sum::<usize>()
    };
    pairs(before) != pairs(after)
}

/// Puts the grouping expressions of a query back as they were written, and what is computed of them.
fn restore_grouped(query: &mut Query, written: Query) {
    let Query { group_by, targets, having, rels, aggs, .. } = written;
    (query.group_by, query.targets, query.having) = (group_by, targets, having);
    for (rel, written) in query.rels.iter_mut().zip(rels) {
        if matches!(written.kind, RelKind::Window(_)) {
            *rel = written;
        }
    }
    for (call, written) in query.aggs.iter_mut().zip(aggs) {
        if std::ptr::eq(written.aggregate, &sql_functions::GROUPING) {
            *call = written;
        } else {
            call.direct = written.direct;
        }
    }
}

/// What decides which rows a query keeps: NULL is as good as FALSE there (`canonicalize_qual`).
fn conditions(query: &mut Query) {
    query.from.iter_mut().for_each(join_conditions);
    query.filter.iter_mut().chain(&mut query.having).for_each(condition);
    if query.filter.as_ref().is_some_and(|filter| truth(filter) == Some(Some(true))) {
        query.filter = None;
    }
}

fn join_conditions(from: &mut From) {
    if let From::Join { left, right, on, .. } = from {
        join_conditions(left);
        join_conditions(right);
        on.iter_mut().for_each(condition);
    }
}

fn condition(expr: &mut Expr) {
    let (args, decides, join): (_, _, fn(Vec<Expr>) -> Expr) = match expr {
        Expr::And(args) => (args, false, Expr::And),
        Expr::Or(args) => (args, true, Expr::Or),
        _ => return,
    };
    for arg in args.iter_mut() {
        condition(arg);
        if truth(arg) == Some(None) {
            *arg = boolean(false);
        }
    }
    *expr = joined(std::mem::take(args), decides, join);
}

/// Makes NULLs of the arguments of the aggregates of a query that nothing calls.
pub(super) fn drop_uncalled(query: &mut Query) {
    if query.aggs.is_empty() {
        return;
    }
    let mut called = BTreeSet::new();
    visit::walk_query(query, 0, &mut |expr, depth| match expr {
        Expr::Agg { level, index, .. } if *level == depth => {
            called.insert(*index);
        }
        _ => {}
    });
    for (_, call) in query.aggs.iter_mut().enumerate().filter(|(at, _)| !called.contains(at)) {
        let keys = call.order_by.iter_mut().map(|(key, ..)| key);
        for expr in call.args.iter_mut().chain(keys).chain(&mut call.filter) {
            *expr = Expr::Const(Datum::Null, expr.ty());
        }
    }
}

/// An expression whose parts are simplified.
fn node(expr: &mut Expr) {
    match expr {
        Expr::And(args) => *expr = joined(std::mem::take(args), false, Expr::And),
        Expr::Or(args) => *expr = joined(std::mem::take(args), true, Expr::Or),
        Expr::Not(arg) => match truth(arg) {
            Some(Some(value)) => *expr = boolean(!value),
            Some(None) => *expr = std::mem::replace(&mut **arg, Expr::Default),
            None => {}
        },
        Expr::Case { branches, otherwise, ty, .. } => {
            branches.retain(|(when, _)| !matches!(truth(when), Some(Some(false) | None)));
            if let Some(at) = branches.iter().position(|(when, _)| truth(when) == Some(Some(true))) {
                branches.truncate(at + 1);
                *otherwise = branches.pop().map(|(_, result)| Box::new(result));
            }
            let result = otherwise.as_ref().map_or(*ty, |otherwise| otherwise.ty());
            if branches.is_empty() && result == *ty {
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
                1 if args[0].ty() == *ty => *expr = args.remove(0),
                _ => {}
            }
        }
        // It is never called, whatever its other arguments are.
        Expr::Call { function, args, ty, .. }
            if function.strict && args.iter().any(|arg| matches!(arg, Expr::Const(Datum::Null, _))) =>
        {
            *expr = Expr::Const(Datum::Null, *ty);
        }
        Expr::Call { function, args, .. } if function.name == "domain within" => {
            // Nothing that is left asks for the value.
            if let [_, asking] = args.as_mut_slice()
                && !super::domain::asks_for_held(asking)
            {
                *expr = std::mem::replace(asking, Expr::Default);
            }
        }
        Expr::IsNull { arg, negated, fields: false } => {
            if let Expr::Const(value, _) = &**arg {
                *expr = boolean(value.is_null() != *negated);
            }
        }
        Expr::BooleanTest { arg, want, negated } => {
            if let Some(value) = truth(arg) {
                *expr = boolean((value == *want) != *negated);
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
