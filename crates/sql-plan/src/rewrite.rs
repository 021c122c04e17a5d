//! From a query to an equal one that is easier to plan: subqueries become parts of FROM.
//!
//! - A simple subquery in FROM is merged into the query around it, so that its tables are joined in the best order.
//! - `EXISTS`, `NOT EXISTS` and `IN` that WHERE demands become semi- and anti-joins, so that they need not run per row.
//! - Outer joins become inner joins and anti-joins, or go ([`outer_joins`]); conditions go into subqueries ([`pushdown`]).
//! - The query of a view with `security_barrier` stays one of its own: only conditions that leak nothing go into it, so that an
//!   index may answer them.
//!
//! In queries that lock or change rows only subqueries that WHERE demands become joins: a row that has moved is tested again with the rows
//! that it was joined with kept in place (rule R7).
//! Invariant: nothing is merged whose value could change by being evaluated more or less often, or at another place.

use base::work;
use sql_bind::visit::{shift_levels, walk_query_mut};
use sql_ir::expr::{How, comparison_of};
use sql_ir::{Body, Column, CompareOp, Expr, From, JoinKind, Query, Rel, RelColumn, RelKind, SubqueryKind, Ty};

use super::pushdown::kept_rels;
use super::{outer_joins, pushdown, walk};

/// More tables than this are not put into one FROM.
const RELS_MAX: usize = 60;
/// Rels up to which those stay that nothing refers to: EXPLAIN shows by them, as PostgreSQL does, that there was more than one.
const DEAD_KEPT: usize = 16;

/// The query to plan instead; `None` if this one is best as it is.
pub(super) fn rewrite(query: &Query) -> Option<Query> {
    better(query, true)
}

/// As [`rewrite`]; `alone`: the query is not about to become part of another, so that what it has of queries around it can go
/// into its subqueries.
fn better(query: &Query, alone: bool) -> Option<Query> {
    if !matches!(query.body, Body::Select) || !query.locking.is_empty() || query.from.is_empty() {
        return None;
    }
    let has_subquery = query.rels.iter().any(|rel| matches!(rel.kind, RelKind::Subquery { .. }));
    let has_sublink = query.filter.as_ref().is_some_and(|filter| {
        let mut found = false;
        walk::walk(filter, 0, &mut |e, _| found |= matches!(e, Expr::Subquery { .. }));
        found
    });
    let has_outer = query.from.iter().any(outer_joins::has_outer);
    let has_having = query.having.is_some() && !query.group_by.is_empty();
    let is_distinct = query.distinct.is_some();
    if !has_subquery && !has_sublink && !has_outer && !has_having && !is_distinct {
        return None;
    }
    let before = work::total();
    let mut query = query.clone();
    let mut better = has_having && pushdown::having_to_where(&mut query);
    for rel in &mut query.rels {
        if let RelKind::Subquery { query, .. } = &mut rel.kind {
            better |= matches!(query.body, Body::Select) && drop_distinct(query);
        }
    }
    let mut merged = merge_from(&mut query);
    if (has_outer || merged) && outer_joins::reduce(&mut query) {
        better = true;
        merged |= merge_from(&mut query);
    }
    if merged && query.rels.len() > DEAD_KEPT {
        forget_dead(&mut query);
    }
    better |= merged;
    if has_sublink && join_sublinks(&mut query, alone) {
        better = true;
        // A semi-join keeps no row of NULLs that its condition is about.
        if has_outer || merged {
            outer_joins::reduce(&mut query);
        }
    }
    better |= (has_outer || merged) && outer_joins::remove_unused(&mut query);
    better |= is_distinct && drop_distinct(&mut query);
    if has_subquery {
        better |= prune(&mut query);
    }
    if has_subquery || has_sublink {
        better |= pushdown::limit_numbered(&mut query);
        better |= pushdown::push_implied(&mut query, alone);
        better |= pushdown::push_conditions(&mut query, alone);
    }
    if better {
        return Some(query);
    }
    work::discard_made(query, before);
    None
}

/// As [`rewrite`], for a query that locks rows or finds those that a statement changes: subqueries that WHERE demands become joins.
pub(super) fn rewrite_locked(query: &Query) -> Option<Query> {
    let plain = matches!(query.body, Body::Select) && query.guards.is_empty() && query.current_of.is_none();
    if !plain || query.from.is_empty() {
        return None;
    }
    let mut found = false;
    walk::walk(query.filter.as_ref()?, 0, &mut |e, _| found |= matches!(e, Expr::Subquery { .. }));
    let mut query = found.then(|| query.clone())?;
    // What says where the rows are says of one that has moved what a join would not ([`super::places`]).
    let (mut places, mut others) = (Vec::new(), Vec::new());
    query.filter.take().into_iter().for_each(|filter| walk::conjuncts(filter, &mut others));
    others.retain(|condition| {
        let is_place = matches!(condition, Expr::Subquery { kind: SubqueryKind::Any { left, .. }, .. } if left.iter().any(|left| left.ty().oid == types::oid::TID));
        if is_place {
            places.push(condition.clone());
        }
        !is_place
    });
    query.filter = others.into_iter().fold(None, |all, one| conjunction(all, Some(one)));
    let linked = join_sublinks(&mut query, true);
    query.filter = places.into_iter().fold(query.filter.take(), |all, one| conjunction(all, Some(one)));
    linked.then_some(query)
}

/// Whether a query is no more than a join with a WHERE and a select list.
pub(super) fn is_plain(query: &Query) -> bool {
    matches!(query.body, Body::Select)
        && query.ctes.is_empty()
        && !query.from.is_empty()
        && query.group_by.is_empty()
        && query.grouping_sets.is_empty()
        && query.aggs.is_empty()
        && query.having.is_none()
        && query.limit.is_none()
        && query.offset.is_none()
        && query.locking.is_empty()
        && query.sample.is_none()
        && query.guards.is_empty()
        && !query.is_barrier()
        && !query.rels.iter().any(|rel| matches!(rel.kind, RelKind::Window(_)))
        && !walk::is_volatile_query(query)
}

/// Makes the expressions of a query those of the query around it: its rels come behind `offset` others.
fn lift(query: &mut Query, offset: usize) {
    query.from.iter_mut().for_each(|from| lift_from(from, offset));
    walk_query_mut(query, 0, &mut |expr, depth| {
        let (level, rel) = match expr {
            Expr::Column(Column { level, rel, .. }) | Expr::WholeRow { level, rel } => (level, Some(rel)),
            Expr::Agg { level, .. } => (level, None),
            _ => return,
        };
        match (*level).cmp(&depth) {
            std::cmp::Ordering::Greater => *level -= 1,
            std::cmp::Ordering::Equal => {
                if let Some(rel) = rel {
                    *rel += offset;
                }
            }
            std::cmp::Ordering::Less => {}
        }
    });
}

fn lift_from(from: &mut From, offset: usize) {
    match from {
        From::Rel(rel) => *rel += offset,
        From::Join { left, right, .. } => {
            lift_from(left, offset);
            lift_from(right, offset);
        }
    }
}

/// Whether anything of a query but its WHERE refers to queries around it.
fn reaches_out_beside_filter(query: &Query) -> bool {
    let mut without = query.clone();
    without.filter = None;
    without.targets.clear();
    reaches_out(&without)
}

pub(super) fn reaches_out(query: &Query) -> bool {
    let mut found = false;
    walk::walk_query(query, 0, &mut |e, depth| found |= level_of(e).is_some_and(|level| level > depth));
    found
}

pub(super) fn expr_reaches_out(expr: &Expr) -> bool {
    let mut found = false;
    walk::walk(expr, 0, &mut |e, depth| found |= level_of(e).is_some_and(|level| level > depth));
    found
}

fn level_of(expr: &Expr) -> Option<usize> {
    work::beat(1);
    match expr {
        Expr::Column(c) => Some(c.level),
        Expr::WholeRow { level, .. } | Expr::Agg { level, .. } => Some(*level),
        _ => None,
    }
}

/// A rel that nothing refers to any more.
pub(super) fn dead_rel() -> Rel {
    Rel { alias: String::new(), aliased: false, kind: RelKind::Join, columns: Vec::new() }
}

fn is_dead(rel: &Rel) -> bool {
    rel.alias.is_empty() && rel.columns.is_empty() && matches!(rel.kind, RelKind::Join)
}

/// Takes the rels away that nothing refers to any more: of queries one within another they would be more and more.
fn forget_dead(query: &mut Query) {
    let mut numbers = Vec::with_capacity(query.rels.len());
    let mut live = 0;
    for rel in &query.rels {
        numbers.push(live);
        live += usize::from(!is_dead(rel));
    }
    query.rels.retain(|rel| !is_dead(rel));
    query.from.iter_mut().for_each(|from| renumber(from, &numbers));
    walk_query_mut(query, 0, &mut |expr, depth| match expr {
        Expr::Column(Column { level, rel, .. }) | Expr::WholeRow { level, rel } if *level == depth => {
            *rel = numbers[*rel]
        }
        _ => {}
    });
}

fn renumber(from: &mut From, numbers: &[usize]) {
    match from {
        From::Rel(rel) => *rel = numbers[*rel],
        From::Join { left, right, .. } => {
            renumber(left, numbers);
            renumber(right, numbers);
        }
    }
}

/// A FROM list as one item.
fn joined(mut from: Vec<From>) -> Option<From> {
    let first = (!from.is_empty()).then(|| from.remove(0))?;
    let join =
        |left, right| From::Join { kind: JoinKind::Inner, left: Box::new(left), right: Box::new(right), on: None };
    Some(from.into_iter().fold(first, join))
}

/// Merges the simple subqueries of FROM into the query.
fn merge_from(query: &mut Query) -> bool {
    let mut merged = false;
    loop {
        let mut rels = Vec::new();
        query.from.iter().for_each(|item| kept_rels(item, &mut rels));
        let Some((rel, inner)) = rels.into_iter().find_map(|rel| Some((rel, mergeable(query, rel)?))) else {
            return merged;
        };
        let (instead, filter) = merge(query, rel, inner);
        // As in PostgreSQL, what is within is tested first, then the conditions of joins around it.
        let mut of_joins = filter.is_some().then(Vec::new);
        for item in &mut query.from {
            replace_rel(item, rel, &instead, &mut of_joins);
        }
        let first = of_joins.into_iter().flatten().fold(filter, |all, on| conjunction(all, Some(on)));
        query.filter = conjunction(first, query.filter.take());
        merged = true;
    }
}

/// Puts something in the place of a relation; whether it was there. The conditions of the inner joins around it go to `of_joins`, from
/// the innermost on, if that is asked for.
fn replace_rel(item: &mut From, rel: usize, instead: &From, of_joins: &mut Option<Vec<Expr>>) -> bool {
    match item {
        From::Rel(r) if *r == rel => {
            *item = instead.clone();
            true
        }
        From::Rel(_) => false,
        From::Join { kind, left, right, on } => {
            let is_within = replace_rel(left, rel, instead, of_joins) || replace_rel(right, rel, instead, of_joins);
            if is_within
                && *kind == JoinKind::Inner
                && let Some(of_joins) = of_joins
            {
                of_joins.extend(on.take());
            }
            is_within
        }
    }
}

fn mergeable(query: &Query, rel: usize) -> Option<Query> {
    let RelKind::Subquery { query: inner, lateral: false } = &query.rels[rel].kind else { return None };
    let plain = is_plain(inner) && inner.distinct.is_none() && inner.order_by.is_empty();
    if !plain || query.rels.len() + inner.rels.len() > RELS_MAX {
        return None;
    }
    // A value that is computed for each row of the subquery must not be computed more often.
    let is_cheap = |expr: &Expr| {
        let mut cheap = true;
        walk::walk(expr, 0, &mut |e, _| cheap &= !matches!(e, Expr::Subquery { .. }));
        cheap
    };
    let costly = |(number, target): (usize, &sql_ir::Target)| (!is_cheap(&target.expr)).then_some(number);
    let costly: Vec<usize> = inner.targets.iter().enumerate().filter_map(costly).collect();
    if !costly.is_empty() && used_columns(query, rel).iter().any(|column| costly.contains(column)) {
        return None;
    }
    // In a set that a column is not grouped by it is NULL, whatever it is below: it must stay one that can be told from others.
    if !query.grouping_sets.is_empty() && !distinct_columns(inner) {
        return None;
    }
    // Rows as values have the subquery's shape.
    let mut whole = false;
    walk::walk_query(query, 0, &mut |e, depth| {
        whole |= matches!(e, Expr::WholeRow { level, rel: r } if *level == depth && *r == rel);
    });
    (!whole).then(|| inner.as_ref().clone())
}

/// The columns of a rel that a query looks at.
fn used_columns(query: &Query, rel: usize) -> Vec<usize> {
    let mut used = Vec::new();
    walk::walk_what_sees_rels(query, 0, &mut |e, depth| {
        if let Expr::Column(c) = e
            && c.level == depth
            && c.rel == rel
            && !used.contains(&c.column)
        {
            used.push(c.column);
        }
    });
    used
}

/// Leaves out what subqueries in FROM compute for columns that nothing looks at, under DISTINCT those that follow from others.
fn prune(query: &mut Query) -> bool {
    let mut pruned = false;
    for rel in 0..query.rels.len() {
        let RelKind::Subquery { query: inner, .. } = &query.rels[rel].kind else { continue };
        let mut whole = false;
        walk::walk_what_sees_rels(query, 0, &mut |e, depth| {
            whole |= matches!(e, Expr::WholeRow { level, rel: r } if *level == depth && *r == rel);
        });
        let chooses = inner.distinct.as_ref().is_some_and(|on| !on.is_empty());
        let keeps = whole || !matches!(inner.body, Body::Select) || chooses || inner.is_barrier();
        if keeps || inner.is_grouped() {
            continue;
        }
        let used = used_columns(query, rel);
        // What decides whether rows are distinct stays.
        let follows = inner.distinct.as_ref().map(|_| {
            let exprs: Vec<&Expr> = inner.targets.iter().map(|target| &target.expr).collect();
            determined(inner, &exprs)
        });
        let RelKind::Subquery { query: inner, .. } = &mut query.rels[rel].kind else { continue };
        let sorted: Vec<usize> = inner.order_by.iter().map(|key| key.target).collect();
        for (number, target) in inner.targets.iter_mut().enumerate() {
            let is_free = match &follows {
                Some(follows) => follows[number],
                None => !matches!(target.expr, Expr::Column(_) | Expr::Const(..) | Expr::Param(..)),
            };
            if !is_free || target.junk || used.contains(&number) || sorted.contains(&number) {
                continue;
            }
            if !walk::is_volatile(&target.expr) {
                target.expr = Expr::Const(types::Datum::Null, target.expr.ty());
                pruned = true;
            }
        }
    }
    pruned
}

/// Takes DISTINCT away from a query whose rows are distinct: its select list has the key of a table, and of what that is joined with
/// each row has one partner at most.
fn drop_distinct(query: &mut Query) -> bool {
    if !query.distinct.as_ref().is_some_and(|on| on.is_empty()) || query.is_grouped() {
        return false;
    }
    let [from] = &query.from[..] else { return false };
    let Some(rel) = outer_joins::only_rel(query, from) else { return false };
    let shown: Vec<&Expr> = query.targets.iter().filter(|target| !target.junk).map(|target| &target.expr).collect();
    let distinct = key_among(query, rel, &shown).is_some();
    if distinct {
        query.distinct = None;
    }
    distinct
}

/// The key of a table all of whose columns are among these expressions: rows of the table with the same are the same.
fn key_among<'q>(query: &'q Query, rel: usize, exprs: &[&Expr]) -> Option<&'q engine_api::IndexDesc> {
    let RelKind::Table(info) = &query.rels[rel].kind else { return None };
    let has = |column: usize| {
        exprs.iter().any(|e| matches!(e, Expr::Column(c) if c.level == 0 && (c.rel, c.column) == (rel, column)))
    };
    let is_among = |index: &&engine_api::IndexDesc| {
        let not_null = |column: usize| info.desc.columns.get(column).is_some_and(|c| c.not_null);
        index.unique
            && index.is_immediate()
            && !index.invalid
            && !index.needs_code()
            && index
                .keys
                .iter()
                .all(|key| key.column > 0 && not_null(key.column as usize - 1) && has(key.column as usize - 1))
    };
    info.indexes.iter().find(is_among)
}

/// Which of these expressions follow from the others: columns of a table whose key is among them. Where the table is the side of an outer
/// join that may be missing, all of them are NULL then, and only then is its key.
pub(super) fn determined(query: &Query, exprs: &[&Expr]) -> Vec<bool> {
    let mut keys: Vec<(usize, Option<&engine_api::IndexDesc>)> = Vec::new();
    let mut follows = |expr: &Expr| {
        let Expr::Column(c) = expr else { return false };
        if c.level > 0 {
            return false;
        }
        let known = keys.iter().find(|(rel, _)| *rel == c.rel).map(|(_, key)| *key);
        let key = known.unwrap_or_else(|| {
            let key = key_among(query, c.rel, exprs);
            keys.push((c.rel, key));
            key
        });
        key.is_some_and(|key| key.keys.iter().all(|part| part.column as usize != c.column + 1))
    };
    exprs.iter().map(|expr| follows(expr)).collect()
}

/// Whether a query's select list is columns, each of them once.
fn distinct_columns(query: &Query) -> bool {
    let mut seen = Vec::new();
    query.targets.iter().all(|target| match target.expr {
        Expr::Column(c) if !seen.contains(&(c.level, c.rel, c.column)) => {
            seen.push((c.level, c.rel, c.column));
            true
        }
        _ => false,
    })
}

/// Puts the tables of `inner` in the place of `rel`. Answers what stands in FROM for it, and its conditions.
fn merge(query: &mut Query, rel: usize, mut inner: Query) -> (From, Option<Expr>) {
    if let Some(better) = better(&inner, false).filter(|better| query.rels.len() + better.rels.len() <= RELS_MAX) {
        inner = better;
    }
    lift(&mut inner, query.rels.len());
    query.rels[rel] = dead_rel();
    query.rels.append(&mut inner.rels);
    let targets: Vec<Expr> = inner.targets.into_iter().filter(|t| !t.junk).map(|t| t.expr).collect();
    let replace = &mut |expr: &mut Expr, depth: usize| {
        let Expr::Column(c) = expr else { return };
        if c.level == depth && c.rel == rel {
            let mut value = targets[c.column].clone();
            shift_levels(&mut value, depth as isize);
            *expr = value;
        }
    };
    walk_query_mut(query, 0, replace);
    (joined(inner.from).expect("a plain query has a FROM"), inner.filter)
}

pub(super) fn conjunction(a: Option<Expr>, b: Option<Expr>) -> Option<Expr> {
    match (a, b) {
        (Some(a), Some(b)) => {
            let mut all = Vec::new();
            walk::conjuncts(a, &mut all);
            walk::conjuncts(b, &mut all);
            Some(Expr::And(all))
        }
        (a, b) => a.or(b),
    }
}

/// Makes joins of the subqueries that WHERE demands.
///
/// In a query that is about to become part of another one, what looks at the queries around it stays a condition: an ON may name
/// only rels of its own join, and these would be beside that join.
fn join_sublinks(query: &mut Query, alone: bool) -> bool {
    let mut conditions = Vec::new();
    if let Some(filter) = query.filter.take() {
        walk::conjuncts(filter, &mut conditions);
    }
    let mut joined_any = false;
    let mut left = Vec::with_capacity(conditions.len());
    for condition in conditions {
        let link = if alone || !expr_reaches_out(&condition) { sublink(query, &condition) } else { None };
        match link {
            Some((kind, right, on)) => {
                let all = joined(std::mem::take(&mut query.from)).expect("looked at by the caller");
                query.from = vec![From::Join { kind, left: Box::new(all), right: Box::new(right), on: Some(on) }];
                joined_any = true;
            }
            None => left.push(condition),
        }
    }
    query.filter = match left.len() {
        0 => None,
        1 => left.pop(),
        _ => Some(Expr::And(left)),
    };
    joined_any
}

/// The join that a condition is; rels of its right side are added to the query.
fn sublink(query: &mut Query, condition: &Expr) -> Option<(JoinKind, From, Expr)> {
    let (kind, link) = match condition {
        Expr::Not(inner) => (JoinKind::Anti, &**inner),
        other => (JoinKind::Semi, other),
    };
    let Expr::Subquery { kind: how, query: inner, .. } = link else { return None };
    match how {
        SubqueryKind::Exists => {
            let (right, on) = correlated(query, inner, None)?;
            Some((kind, right, on?))
        }
        SubqueryKind::Any { left, functions } if kind == JoinKind::Semi => {
            for (left, function) in left.iter().zip(functions) {
                let test = comparison_of(function);
                if test.op != CompareOp::Eq || matches!(test.how, How::Function(_)) || !is_simple(left) {
                    return None;
                }
            }
            let equal = |values: Vec<Expr>| {
                let each = left.iter().zip(functions).zip(values).map(|((left, function), value)| Expr::Call {
                    function,
                    args: vec![left.clone(), value],
                    ty: Ty::of(types::oid::BOOL),
                    location: -1,
                });
                each.fold(None, |all, one| conjunction(all, Some(one)))
            };
            if let Some((right, on)) = correlated(query, inner, Some(&equal)) {
                return Some((kind, right, on?));
            }
            uncorrelated(query, inner, &equal).map(|(right, on)| (kind, right, on))
        }
        _ => None,
    }
}

/// The left side of IN: columns of this query, evaluated wherever the join is.
fn is_simple(expr: &Expr) -> bool {
    let (mut simple, mut columns) = (!walk::is_volatile(expr), false);
    walk::walk(expr, 0, &mut |e, _| {
        simple &= !matches!(e, Expr::Subquery { .. } | Expr::Agg { .. });
        columns |= matches!(e, Expr::Column(c) if c.level == 0);
    });
    simple && columns
}

/// The equality of the left side of IN with the columns of a row.
type Equal<'e> = dyn Fn(Vec<Expr>) -> Option<Expr> + 'e;

/// Takes a plain subquery apart: its FROM, and its WHERE with `equal` of its columns.
///
/// The condition is `None` if nothing ties it to the query around it: then it runs once as it is.
fn correlated(query: &mut Query, inner: &Query, equal: Option<&Equal<'_>>) -> Option<(From, Option<Expr>)> {
    // How often a row comes makes no difference to a semi-join; what DISTINCT ON keeps does.
    let distinct = inner.distinct.as_ref().is_none_or(|on| on.is_empty());
    if !is_plain(inner) || !distinct || query.rels.len() + inner.rels.len() > RELS_MAX {
        return None;
    }
    if reaches_out_beside_filter(inner) || (equal.is_none() && !reaches_out(inner)) {
        return None;
    }
    let mut inner = match better(inner, false) {
        Some(better) => better,
        None => inner.clone(),
    };
    lift(&mut inner, query.rels.len());
    let values = inner.targets.iter().filter(|target| !target.junk).map(|target| target.expr.clone()).collect();
    let on = match equal {
        Some(equal) => conjunction(Some(equal(values)?), inner.filter),
        None => inner.filter,
    };
    query.rels.append(&mut inner.rels);
    Some((joined(inner.from)?, on))
}

/// A subquery that stands by itself, as a rel whose rows are joined.
fn uncorrelated(query: &mut Query, inner: &Query, equal: &Equal<'_>) -> Option<(From, Expr)> {
    if reaches_out(inner) || walk::is_volatile_query(inner) || query.rels.len() >= RELS_MAX {
        return None;
    }
    let columns: Vec<RelColumn> = inner
        .targets
        .iter()
        .filter(|target| !target.junk)
        .map(|target| RelColumn { name: target.name.clone(), ty: target.expr.ty() })
        .collect();
    let rel = query.rels.len();
    let value = |(column, of): (usize, &RelColumn)| Expr::Column(Column { level: 0, rel, column, ty: of.ty });
    let values = columns.iter().enumerate().map(value).collect();
    let kind = RelKind::Subquery { query: Box::new(inner.clone()), lateral: false };
    query.rels.push(Rel { alias: "ANY_subquery".into(), aliased: false, kind, columns });
    Some((From::Rel(rel), equal(values)?))
}
