//! Structural equality of expressions and queries, wherever they stand in the text.

use base::work;
use sql_ir::{Body, Expr, FrameBound, From, Query, Rel, RelKind, SetCall, SubqueryKind, WindowCall, WindowCallee};

use super::visit::{collect, same_aggregate, same_head};

/// Whether two expressions are the same but for where they stand in the text.
pub fn same(a: &Expr, b: &Expr) -> bool {
    work::beat(16);
    if !same_head(a, b) {
        return false;
    }
    let (mut left, mut right) = (Vec::new(), Vec::new());
    let (mut left_queries, mut right_queries) = (Vec::new(), Vec::new());
    collect(a, &mut left, &mut left_queries);
    collect(b, &mut right, &mut right_queries);
    left_queries.len() == right_queries.len()
        && all_same(left.into_iter(), right.into_iter())
        && left_queries.iter().zip(&right_queries).all(|(a, b)| same_query(a, b))
}

/// Whether two bindings of a view's query are the same. Of those that are not even the same as themselves, as they lock rows or have
/// window functions, the result's types and all constants are.
pub(crate) fn same_result(a: &Query, b: &Query) -> bool {
    if same_query(a, a) {
        return same_query(a, b);
    }
    let types = |q: &Query| q.targets.iter().map(|t| t.expr.ty()).collect::<Vec<_>>();
    let constants = |q: &Query| {
        let mut found = Vec::new();
        super::visit::walk_query(q, 0, &mut |expr, _| {
            if let Expr::Const(value, ty) = expr {
                found.push(format!("{value:?} {ty:?}"));
            }
        });
        found
    };
    types(a) == types(b) && constants(a) == constants(b)
}

/// Whether two subqueries are used in the same way.
pub(super) fn same_use(a: &SubqueryKind, b: &SubqueryKind) -> bool {
    use SubqueryKind as K;
    match (a, b) {
        (K::Exists, K::Exists) | (K::Scalar, K::Scalar) | (K::Array, K::Array) => true,
        (K::Any { functions: f, .. }, K::Any { functions: g, .. })
        | (K::All { functions: f, .. }, K::All { functions: g, .. }) => f == g,
        _ => false,
    }
}

fn all_same<'e>(left: impl ExactSizeIterator<Item = &'e Expr>, right: impl ExactSizeIterator<Item = &'e Expr>) -> bool {
    left.len() == right.len() && left.zip(right).all(|(a, b)| same(a, b))
}

fn same_option(a: &Option<Expr>, b: &Option<Expr>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => same(a, b),
        (a, b) => a.is_none() && b.is_none(),
    }
}

/// Whether two queries are the same. Those that change or lock rows, or have kept queries of their own, never are.
fn same_query(a: &Query, b: &Query) -> bool {
    let plain = |q: &Query| {
        let kept = q.ctes.is_empty() && q.locking.is_empty() && q.guards.is_empty();
        kept && q.sample.is_none() && q.current_of.is_none()
    };
    let view = |q: &Query| q.of_view.as_ref().map(|of| of.view.oid);
    plain(a)
        && plain(b)
        && view(a) == view(b)
        && a.rels.len() == b.rels.len()
        && a.rels.iter().zip(&b.rels).all(|(a, b)| same_rel(a, b))
        && same_from(&a.from, &b.from)
        && same_option(&a.filter, &b.filter)
        && a.targets.len() == b.targets.len()
        && a.targets.iter().zip(&b.targets).all(|(a, b)| a.junk == b.junk && same(&a.expr, &b.expr))
        && all_same(a.group_by.iter(), b.group_by.iter())
        && a.grouping_sets == b.grouping_sets
        && a.grouped_constants == b.grouped_constants
        && a.aggs.len() == b.aggs.len()
        && a.aggs.iter().zip(&b.aggs).all(|(a, b)| same_aggregate(a, b))
        && same_option(&a.having, &b.having)
        && a.distinct == b.distinct
        && a.order_by == b.order_by
        && same_option(&a.limit, &b.limit)
        && same_option(&a.offset, &b.offset)
        && a.with_ties == b.with_ties
        && same_body(&a.body, &b.body)
}

fn same_rel(a: &Rel, b: &Rel) -> bool {
    match (&a.kind, &b.kind) {
        (RelKind::Table(a), RelKind::Table(b)) => a.desc.oid == b.desc.oid,
        (RelKind::System(a), RelKind::System(b)) => std::ptr::eq(*a, *b),
        (RelKind::Subquery { query: a, lateral: l }, RelKind::Subquery { query: b, lateral: m }) => {
            l == m && same_query(a, b)
        }
        (RelKind::Function { calls: a, ordinality: n, .. }, RelKind::Function { calls: b, ordinality: o, .. }) => {
            n == o && a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_call(a, b))
        }
        (RelKind::Cte { id: a, .. }, RelKind::Cte { id: b, .. }) => a == b,
        (RelKind::WorkTable(a), RelKind::WorkTable(b)) => a == b,
        (RelKind::Window(a), RelKind::Window(b)) => same_window(a, b),
        (RelKind::Values, RelKind::Values) | (RelKind::Join, RelKind::Join) => true,
        _ => false,
    }
}

fn same_window(a: &WindowCall, b: &WindowCall) -> bool {
    let same_callee = match (&a.callee, &b.callee) {
        (WindowCallee::Function(a), WindowCallee::Function(b)) => a == b,
        (WindowCallee::Aggregate(a), WindowCallee::Aggregate(b)) => std::ptr::eq(*a, *b),
        _ => false,
    };
    let same_bound = |a: &FrameBound, b: &FrameBound| {
        std::mem::discriminant(a) == std::mem::discriminant(b)
            && match (a.offset(), b.offset()) {
                (Some(a), Some(b)) => same(a, b),
                (a, b) => a.is_none() && b.is_none(),
            }
    };
    let same_order = |(a, d, n): &(Expr, bool, bool), (b, e, o): &(Expr, bool, bool)| d == e && n == o && same(a, b);
    same_callee
        && a.ty == b.ty
        && all_same(a.args.iter(), b.args.iter())
        && same_option(&a.filter, &b.filter)
        && all_same(a.partition.iter(), b.partition.iter())
        && a.order.len() == b.order.len()
        && a.order.iter().zip(&b.order).all(|(a, b)| same_order(a, b))
        && a.frame.mode == b.frame.mode
        && a.frame.exclude == b.frame.exclude
        && same_bound(&a.frame.start, &b.frame.start)
        && same_bound(&a.frame.end, &b.frame.end)
}

/// Whether two calls of set-returning functions are the same.
pub(super) fn same_call(a: &SetCall, b: &SetCall) -> bool {
    std::ptr::eq(a.function, b.function) && all_same(a.args.iter(), b.args.iter())
}

fn same_from(a: &[From], b: &[From]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_item(a, b))
}

fn same_item(a: &From, b: &From) -> bool {
    match (a, b) {
        (From::Rel(a), From::Rel(b)) => a == b,
        (From::Join { kind: k, left: l, right: r, on: o }, From::Join { kind, left, right, on }) => {
            k == kind && same_item(l, left) && same_item(r, right) && same_option(o, on)
        }
        _ => false,
    }
}

fn same_body(a: &Body, b: &Body) -> bool {
    match (a, b) {
        (Body::Select, Body::Select) => true,
        (Body::Values(a), Body::Values(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| all_same(a.iter(), b.iter()))
        }
        (
            Body::SetOp { op: o, all: a, left: l, right: r, recursion: None },
            Body::SetOp { op, all, left, right, recursion: None },
        ) => o == op && a == all && same_query(l, left) && same_query(r, right),
        _ => false,
    }
}
