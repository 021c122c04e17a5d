//! EXISTS that only equalities tie to the query around it, as a lookup.
//!
//! Responsible for: taking such a subquery apart into the keys of both sides and a query that depends on nothing.
//! Not responsible for: EXISTS that WHERE demands, which becomes a join (`rewrite`); when the lookup is used (`sql_exec::machine`).
//! Invariant: nothing volatile is evaluated for other rows than the subquery would evaluate it for. What fails there means nothing: the
//! executor goes on with the subquery itself then.

use base::Oid;
use sql_bind::visit::shift_levels;
use sql_ir::expr::{How, comparison_of};
use sql_ir::{CastKind, CompareOp, Expr, Query, Target};

use super::rewrite::{expr_reaches_out, is_plain, reaches_out};
use super::walk;

/// A subquery of EXISTS that is taken apart: it has a row where the keys of the query around it are those of a row here.
pub(super) struct Untied {
    /// Shows the keys.
    pub query: Query,
    /// The keys that are looked up, as the query around it sees them.
    pub outer: Vec<Expr>,
    /// The types by which they are equal.
    pub types: Vec<Oid>,
}

/// Takes a subquery of EXISTS apart; `None` if that cannot be done.
pub(super) fn untied(inner: &Query) -> Option<Untied> {
    let distinct = inner.distinct.as_ref().is_none_or(|on| on.is_empty());
    if !is_plain(inner) || !distinct {
        return None;
    }
    // It is planned twice: with subqueries inside, each level would double what is below.
    let mut has_subquery = false;
    walk::walk_query(inner, 0, &mut |e, _| has_subquery |= matches!(e, Expr::Subquery { .. }));
    if has_subquery {
        return None;
    }
    let mut query = inner.clone();
    let mut conditions = Vec::new();
    walk::conjuncts(query.filter.take()?, &mut conditions);
    query.targets.clear();
    query.order_by.clear();
    query.distinct = None;
    let (mut own, mut outer, mut types) = (Vec::new(), Vec::new(), Vec::new());
    for condition in conditions {
        if walk::is_volatile(&condition) {
            return None;
        }
        if !expr_reaches_out(&condition) {
            own.push(condition);
            continue;
        }
        let (there, here, ty) = tie(condition)?;
        outer.push(there);
        types.push(ty);
        query.targets.push(Target { expr: here, name: String::new(), junk: false });
    }
    query.filter = match own.len() {
        0 | 1 => own.pop(),
        _ => Some(Expr::And(own)),
    };
    if outer.is_empty() || reaches_out(&query) {
        return None;
    }
    outer.iter_mut().for_each(|expr| shift_levels(expr, -1));
    Some(Untied { query, outer, types })
}

/// The sides of an equality between a column of a query around and what this one says of its rows, and the type by which they are equal.
fn tie(condition: Expr) -> Option<(Expr, Expr, Oid)> {
    let Expr::Call { function, args, .. } = condition else { return None };
    let [left, right] = <[Expr; 2]>::try_from(args).ok()?;
    let (there, here) = match (is_column_around(&left), is_column_around(&right)) {
        (true, false) => (left, right),
        (false, true) => (right, left),
        _ => return None,
    };
    if expr_reaches_out(&here) {
        return None;
    }
    let test = comparison_of(function);
    let ty = match test.how {
        _ if test.op != CompareOp::Eq => return None,
        // Integers of any width are equal as keys if they are.
        How::Int => here.ty().oid,
        How::Order(ty) => ty,
        How::Function(_) => return None,
    };
    Some((there, here, ty))
}

/// Whether an expression is a column of a query around, under what it is only labelled as.
fn is_column_around(expr: &Expr) -> bool {
    match expr {
        Expr::Column(column) => column.level > 0,
        Expr::Cast { arg, kind: CastKind::Relabel, .. } => is_column_around(arg),
        _ => false,
    }
}
