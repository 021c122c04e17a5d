//! Conditions moved to where they leave fewer rows to group, sort and number: from HAVING to WHERE, and into subqueries in FROM.
//!
//! A condition goes into a subquery if it is about columns whose value is the same for all rows that the subquery makes one of, or looks
//! at together: what it groups by, what it makes distinct, what its windows partition by. It goes into each branch of a set operation.
//! Of the view of a barrier it goes below only if nothing leaks ([`leak`]).
//!
//! Invariant: nothing is tested whose value could change by being evaluated more or less often.

use sql_bind::equal::same;
use sql_bind::visit::children_mut;
use sql_ir::{Body, Expr, From, JoinKind, Query, RelKind};

use super::access::Conjunct;
use super::rewrite::conjunction;
use super::{implied, leak, walk};

/// More rels than these are not looked at for what follows from equalities.
const RELS_MAX: usize = 60;

/// Moves the conditions of HAVING that are about nothing but what is grouped by to WHERE.
pub(super) fn having_to_where(query: &mut Query) -> bool {
    if query.group_by.is_empty() || !query.grouping_sets.is_empty() || !query.grouped_constants.is_empty() {
        return false;
    }
    let Some(having) = query.having.take() else { return false };
    let mut conditions = Vec::new();
    walk::conjuncts(having, &mut conditions);
    let (mut kept, mut moved) = (Vec::new(), Vec::new());
    for condition in conditions {
        let mut fits = !walk::is_volatile(&condition);
        walk::walk(&condition, 0, &mut |e, _| fits &= !matches!(e, Expr::Agg { .. } | Expr::Subquery { .. }));
        if fits { moved.push(condition) } else { kept.push(condition) }
    }
    let is_moved = !moved.is_empty();
    query.filter = moved.into_iter().fold(query.filter.take(), |all, one| conjunction(all, Some(one)));
    query.having = kept.into_iter().fold(None, |all, one| conjunction(all, Some(one)));
    is_moved
}

/// Moves conditions into subqueries in FROM that remain.
pub(super) fn push_conditions(query: &mut Query, alone: bool) -> bool {
    let Some(filter) = query.filter.clone() else { return false };
    let mut rels = Vec::new();
    query.from.iter().for_each(|item| kept_rels(item, &mut rels));
    rels.retain(|rel| matches!(query.rels[*rel].kind, RelKind::Subquery { .. }));
    if rels.is_empty() {
        return false;
    }
    let mut conditions = Vec::new();
    walk::conjuncts(filter, &mut conditions);
    let mut pushed = false;
    conditions.retain(|condition| {
        let target = rels.iter().find(|rel| may_go_below(query, **rel, condition, alone)).copied();
        if let Some(rel) = target
            && let RelKind::Subquery { query: inner, .. } = &mut query.rels[rel].kind
        {
            push(inner, rel, condition);
            pushed = true;
            return false;
        }
        true
    });
    if pushed {
        query.filter = conditions.into_iter().fold(None, |all, one| conjunction(all, Some(one)));
    }
    pushed
}

/// Adds to subqueries in FROM what follows for them from equalities: `v.a = t.b AND t.b = 1` means `v.a = 1`.
pub(super) fn push_implied(query: &mut Query, alone: bool) -> bool {
    let is_subquery = |rel: &usize| matches!(query.rels[*rel].kind, RelKind::Subquery { lateral: false, .. });
    if query.rels.len() > RELS_MAX || !(0..query.rels.len()).any(|rel| is_subquery(&rel)) {
        return false;
    }
    let mut conditions = Vec::new();
    query.filter.iter().for_each(|filter| walk::conjuncts(filter.clone(), &mut conditions));
    query.from.iter().for_each(|item| demanded(item, &mut conditions));
    let mut rels = Vec::new();
    query.from.iter().for_each(|item| kept_rels(item, &mut rels));
    rels.retain(is_subquery);
    let mut found: Vec<(usize, Expr)> = Vec::new();
    if !rels.is_empty() {
        let mut conjuncts: Vec<Conjunct> = conditions.iter().cloned().map(Conjunct::new).collect();
        implied::derive(&mut conjuncts);
        for conjunct in conjuncts.iter().filter(|conjunct| conjunct.derived) {
            found.extend(rels.iter().find(|rel| conjunct.mask == 1 << **rel).map(|rel| (*rel, conjunct.expr.clone())));
        }
    }
    // A row on the null side matters only for rows that satisfy the other conditions.
    let mut joins = Vec::new();
    query.from.iter().for_each(|item| null_side_rels(item, &mut joins));
    for (rel, on) in joins.into_iter().filter(|(rel, _)| is_subquery(rel)) {
        let mut all: Vec<Conjunct> =
            conditions.iter().cloned().map(Conjunct::new).filter(|c| c.mask & (1 << rel) == 0).collect();
        let mut own = Vec::new();
        walk::conjuncts(on.clone(), &mut own);
        all.extend(own.into_iter().map(Conjunct::new));
        implied::derive(&mut all);
        found.extend(all.into_iter().filter(|c| c.mask == 1 << rel).map(|c| (rel, c.expr)));
    }
    let mut pushed = false;
    for (rel, condition) in found {
        if may_go_below(query, rel, &condition, alone)
            && let RelKind::Subquery { query: inner, .. } = &mut query.rels[rel].kind
        {
            push(inner, rel, &condition);
            pushed = true;
        }
    }
    pushed
}

/// Single rels on the null sides of left joins whose other side is kept, with what joins them.
fn null_side_rels<'f>(from: &'f From, out: &mut Vec<(usize, &'f Expr)>) {
    let From::Join { kind, left, right, on } = from else { return };
    if let (JoinKind::Left, From::Rel(rel), Some(on)) = (kind, &**right, on) {
        out.push((*rel, on));
    }
    if !matches!(kind, JoinKind::Right | JoinKind::Full) {
        null_side_rels(left, out);
    }
    if matches!(kind, JoinKind::Inner | JoinKind::Right) {
        null_side_rels(right, out);
    }
}

/// The conditions of joins that every row of FROM meets.
fn demanded(from: &From, out: &mut Vec<Expr>) {
    let From::Join { kind, left, right, on } = from else { return };
    if !matches!(kind, JoinKind::Right | JoinKind::Full) {
        demanded(left, out);
    }
    if matches!(kind, JoinKind::Inner | JoinKind::Right) {
        demanded(right, out);
    }
    if *kind == JoinKind::Inner {
        on.iter().for_each(|on| walk::conjuncts(on.clone(), out));
    }
}

/// Rels of FROM whose rows a WHERE may be tested on before they are joined.
pub(super) fn kept_rels(from: &From, out: &mut Vec<usize>) {
    match from {
        From::Rel(rel) => out.push(*rel),
        From::Join { kind, left, right, .. } => {
            if !matches!(kind, JoinKind::Right | JoinKind::Full) {
                kept_rels(left, out);
            }
            if matches!(kind, JoinKind::Inner | JoinKind::Right) {
                kept_rels(right, out);
            }
        }
    }
}

/// Whether a condition of a query, which is about one subquery in its FROM alone, may be tested in that.
fn may_go_below(query: &Query, rel: usize, condition: &Expr, alone: bool) -> bool {
    let RelKind::Subquery { query: inner, lateral: false } = &query.rels[rel].kind else { return false };
    let (mut fits, mut columns) = (!walk::is_volatile(condition), Vec::new());
    walk::walk(condition, 0, &mut |e, _| match e {
        Expr::Column(c) if c.level > 0 => fits &= alone,
        Expr::Column(c) => {
            columns.push(c.column);
            fits &= c.rel == rel;
        }
        Expr::Subquery { .. } | Expr::Agg { .. } | Expr::WholeRow { .. } => fits = false,
        _ => {}
    });
    fits && !columns.is_empty() && takes(inner, rel, &columns, condition)
}

/// Whether a query may test a condition that is about these of its output columns, as columns of `rel` around it.
pub(super) fn takes(inner: &Query, rel: usize, columns: &[usize], condition: &Expr) -> bool {
    if !may_filter(inner, columns) {
        return false;
    }
    if !inner.is_barrier() {
        return true;
    }
    // What the view computes may leak as well.
    matches!(inner.body, Body::Select) && !leak::is_leaky(&below(condition, rel, inner))
}

/// Whether the rows of a query whose output columns of these numbers have some values are those that it has if only such rows are read.
fn may_filter(inner: &Query, columns: &[usize]) -> bool {
    if inner.limit.is_some() || inner.offset.is_some() || inner.sample.is_some() {
        return false;
    }
    // Junk targets stand behind the visible ones, so a column is the target of its number.
    let mut targets = Vec::with_capacity(columns.len());
    for column in columns {
        let Some(target) = inner.targets.get(*column) else { return false };
        targets.push(&target.expr);
    }
    match &inner.body {
        Body::Select => {
            let on = inner.distinct.as_deref().unwrap_or_default();
            !inner.from.is_empty()
                && (on.is_empty() || columns.iter().all(|column| on.contains(column)))
                && targets.iter().all(|target| selects(inner, target))
        }
        Body::SetOp { left, right, recursion: None, .. } => {
            let mut below = Vec::with_capacity(columns.len());
            for target in &targets {
                let Expr::Column(c) = target else { return false };
                if c.level != 0 {
                    return false;
                }
                below.push(c.column);
            }
            let same_types = |side: &Query| {
                let ty = |column: usize| side.targets.get(column).map(|target| target.expr.ty().oid);
                below.iter().all(|&column| ty(column) == inner.rels[0].columns.get(column).map(|c| c.ty.oid))
            };
            [left, right].into_iter().all(|side| same_types(side) && may_filter(side, &below))
        }
        Body::SetOp { .. } | Body::Values(_) | Body::Modify(_) => false,
    }
}

/// Whether the value of a target says which rows of FROM are looked at together, so that a condition on it may be tested before.
fn selects(inner: &Query, target: &Expr) -> bool {
    if walk::is_volatile(target) {
        return false;
    }
    let mut fits = true;
    walk::walk(target, 0, &mut |e, depth| match e {
        Expr::Subquery { .. } | Expr::Agg { .. } | Expr::WholeRow { .. } => fits = false,
        Expr::Column(c) if c.level == depth => {
            fits &= !matches!(inner.rels[c.rel].kind, RelKind::Window(_) | RelKind::Function { per_row: true, .. });
        }
        _ => {}
    });
    let grouped = inner.is_grouped();
    // In a set that a column is not grouped by it is NULL.
    let is_key = || inner.grouping_sets.is_empty() && inner.group_by.iter().any(|key| same(key, target));
    let windows = || {
        inner.rels.iter().filter_map(|rel| match &rel.kind {
            RelKind::Window(call) => Some(call),
            _ => None,
        })
    };
    fits && (!grouped || is_key()) && windows().all(|call| call.partition.iter().any(|key| same(key, target)))
}

/// Adds a condition about `rel`, which this query is, to the query.
pub(super) fn push(inner: &mut Query, rel: usize, condition: &Expr) {
    let condition = below(condition, rel, inner);
    match &mut inner.body {
        Body::SetOp { left, right, .. } => {
            push(left, 0, &condition);
            push(right, 0, &condition);
        }
        _ => {
            let mut there = Vec::new();
            inner.filter.iter().for_each(|filter| walk::conjuncts(filter.clone(), &mut there));
            if !there.iter().any(|other| same(other, &condition)) {
                inner.filter = conjunction(inner.filter.take(), Some(condition));
            }
        }
    }
}

/// An expression around a subquery, which is `rel` there, as one inside of it.
fn below(expr: &Expr, rel: usize, inner: &Query) -> Expr {
    let mut expr = expr.clone();
    put_below(&mut expr, rel, inner);
    expr
}

fn put_below(expr: &mut Expr, rel: usize, inner: &Query) {
    match expr {
        Expr::Column(c) if c.level == 0 && c.rel == rel => *expr = inner.targets[c.column].expr.clone(),
        Expr::Column(c) => c.level += 1,
        _ => children_mut(expr, &mut |child| put_below(child, rel, inner), &mut |_| {}),
    }
}

/// A limit for a subquery whose rows are numbered and of which the first ones are wanted: `row_number() OVER (ORDER BY …) <= 10`.
pub(super) fn limit_numbered(query: &mut Query) -> bool {
    let Some(filter) = &query.filter else { return false };
    let mut conditions = Vec::new();
    walk::conjuncts(filter.clone(), &mut conditions);
    let mut limited = false;
    let mut rels = Vec::new();
    query.from.iter().for_each(|item| kept_rels(item, &mut rels));
    for rel in rels {
        let RelKind::Subquery { query: inner, lateral: false } = &mut query.rels[rel].kind else { continue };
        let Some(column) = numbered(inner) else { continue };
        let most = conditions.iter().filter_map(|condition| at_most(condition, rel, column)).min();
        if let Some(most) = most {
            let ty = sql_ir::Ty::of(types::oid::INT8);
            inner.limit = Some(Expr::Const(types::Datum::Int8(most.max(0)), ty));
            limited = true;
        }
    }
    limited
}

/// The output column of a query that numbers its rows in the order in which they come.
fn numbered(inner: &Query) -> Option<usize> {
    let is_plain = matches!(inner.body, Body::Select)
        && inner.limit.is_none()
        && inner.offset.is_none()
        && inner.distinct.is_none()
        && inner.order_by.is_empty()
        && inner.locking.is_empty()
        && inner.sample.is_none();
    let mut windows = inner.rels.iter().enumerate().filter_map(|(rel, entry)| match &entry.kind {
        RelKind::Window(call) => Some((rel, call)),
        _ => None,
    });
    let (rel, call) = windows.next()?;
    let numbers = matches!(call.callee, sql_ir::WindowCallee::Function(sql_ir::WindowKind::RowNumber));
    if !is_plain || windows.next().is_some() || !numbers || !call.partition.is_empty() {
        return None;
    }
    let is_number = |target: &sql_ir::Target| {
        !target.junk && matches!(&target.expr, Expr::Column(c) if c.level == 0 && c.rel == rel)
    };
    inner.targets.iter().position(is_number)
}

/// The greatest number that a condition lets a column have.
fn at_most(condition: &Expr, rel: usize, column: usize) -> Option<i64> {
    use sql_ir::CompareOp::{Eq, Le, Lt};
    let Expr::Call { function, args, .. } = condition else { return None };
    let [left, right] = args.as_slice() else { return None };
    let is_it = |expr: &Expr| matches!(expr, Expr::Column(c) if c.level == 0 && (c.rel, c.column) == (rel, column));
    let value = |expr: &Expr| match expr {
        Expr::Const(value, _) => value.integer(),
        _ => None,
    };
    let op = sql_ir::expr::compare_op_of(function)?;
    let (op, value) = match (is_it(left), is_it(right)) {
        (true, _) => (op, value(right)?),
        (_, true) => (op.flipped(), value(left)?),
        _ => return None,
    };
    match op {
        Le | Eq => Some(value),
        Lt => value.checked_sub(1),
        _ => None,
    }
}
