//! EXISTS that only equalities tie to the query around it, as a lookup.
//!
//! Responsible for: taking such a subquery apart into the keys of both sides and a query that depends on nothing.
//! Not responsible for: EXISTS that WHERE demands, which becomes a join (`rewrite`); when the lookup is used (`sql_exec::machine`).
//! Invariant: the query that is left evaluates nothing that could fail where the subquery would not: keys are columns, and its
//! conditions cannot fail.

use base::Oid;
use sql_bind::visit::shift_levels;
use sql_ir::expr::{How, comparison_of};
use sql_ir::{CastKind, CompareOp, Expr, Query, Target};

use super::rewrite::{expr_reaches_out, is_plain, reaches_out};
use super::{leak, walk};

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
        if !expr_reaches_out(&condition) {
            if leak::is_leaky(&condition) {
                return None;
            }
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

/// The sides of an equality between a column of a query around and one of this, and the type by which they are equal.
fn tie(condition: Expr) -> Option<(Expr, Expr, Oid)> {
    let Expr::Call { function, args, .. } = condition else { return None };
    let [left, right] = <[Expr; 2]>::try_from(args).ok()?;
    let (there, here) = match (level_of_column(&left)?, level_of_column(&right)?) {
        (0, 1..) => (right, left),
        (1.., 0) => (left, right),
        _ => return None,
    };
    let test = comparison_of(function);
    let ty = match test.how {
        _ if test.op != CompareOp::Eq => return None,
        // Integers of any width are equal as keys if they are.
        How::Int => here.ty().oid,
        How::Order(ty) => ty,
        _ => return None,
    };
    Some((there, here, ty))
}

/// How many queries out a column is, under what it is only labelled as.
fn level_of_column(expr: &Expr) -> Option<usize> {
    match expr {
        Expr::Column(column) => Some(column.level),
        Expr::Cast { arg, kind: CastKind::Relabel, .. } => level_of_column(arg),
        _ => None,
    }
}
