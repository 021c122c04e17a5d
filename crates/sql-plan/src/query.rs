//! One query level: FROM and WHERE, grouping, the select list, DISTINCT, ORDER BY, row locks, LIMIT.

use std::collections::BTreeSet;
use std::sync::Arc;

use base::{Error, Oid, Result, work};
use sql_bind::visit::{is_constant, same_rows};
use sql_bind::{equal::same, window_parts};
use sql_ir::expr::{Code, Resolve, Slot};
use sql_ir::{AggCall, Body, Column, Expr, From, JoinKind, Query, RelKind, Sample, SetOp, Target};

use super::access::{Mask, rels_in};
use super::join;
use super::level::{Level, Outer};
use super::merge_join::{EXPRESSIONS, WantedColumn, WantedRows};
use super::methods::sort_cost;

use super::node::{
    Access, AggregateCall, AggregateNode, AggregateResult, DistinctNode, FilterNode, GatherNode, IncrementalSortNode,
    LateNode, LimitNode, LockRowsNode, LockTarget, Node, PlannedTable, ProjectNode, QueryPlan, RecursionNode,
    SampleNode, SetOpNode, SortNode, SortSlot, StoredColumns, UnionNode, ValuesNode, makes_rows,
};
use super::{PlanContext, RowOf, outer_joins, parallel, places, rewrite, sarg, selectivity, walk, window};

/// Plans a cursor's query. Answers also which tables' row identities follow the result's columns.
pub(super) fn plan_cursor(query: &Query, cx: &PlanContext<'_>) -> Result<(QueryPlan, Vec<RowOf>)> {
    let rewritten = rewritten(query);
    let query = rewritten.as_ref().unwrap_or(query);
    let mut level = Level::new(cx, &query.rels, |f| walk::walk_what_sees_rels(query, 0, &mut |e, depth| f(e, depth)));
    level.null_extended(&query.from);
    level.add_ctes(&query.ctes)?;
    let locked: Vec<usize> = query.locking.iter().map(|lock| lock.rel).collect();
    let alone = match query.from[..] {
        [From::Rel(rel)] if locked.is_empty() && matches!(query.body, Body::Select) => vec![rel],
        _ => Vec::new(),
    };
    let mut slots = Vec::new();
    for &rel in locked.iter().chain(&alone) {
        if let RelKind::Table(info) = &query.rels[rel].kind {
            let row = RowOf { table: info.desc.oid, locked: !locked.is_empty() };
            slots.push((row, level.row_slot(rel)));
        }
    }
    let (node, mut output) = build(&mut level, query)?;
    // Above a sort or a group there is no row of the table any more, unless locks need it.
    if locked.is_empty() && !node.passes_rows() {
        slots.clear();
    }
    output.extend(slots.iter().map(|(_, slot)| *slot));
    let (plan, outer) = level.finish(node, output);
    if !outer.is_empty() {
        return Err(Error::internal("the outermost query refers to one around it"));
    }
    Ok((plan, slots.into_iter().map(|(row, _)| row).collect()))
}

/// The query in a form that is cheaper to run, if there is one.
fn rewritten(query: &Query) -> Option<Query> {
    match query.locking.is_empty() {
        true => rewrite::rewrite(query),
        false => rewrite::rewrite_locked(query),
    }
}

/// How much of the stack must be left for running a plan: in hundredths.
const STACK_LEFT: usize = 20;

/// Plans a query. Answers also what it takes from the query around it.
pub(super) fn plan_query(query: &Query, cx: &PlanContext<'_>) -> Result<(QueryPlan, Vec<(Outer, Slot)>)> {
    if work::stack_is_below(STACK_LEFT) {
        return Err(sql_bind::stack_depth());
    }
    if let Body::Modify(statement) = &query.body {
        return super::modify::statement(statement, cx);
    }
    let rewritten = rewritten(query);
    let query = rewritten.as_ref().unwrap_or(query);
    let mut level = Level::new(cx, &query.rels, |f| walk::walk_what_sees_rels(query, 0, &mut |e, depth| f(e, depth)));
    for lock in &query.locking {
        level.row_slot(lock.rel);
    }
    if query.sample.is_some() {
        level.row_slot(0);
    }
    level.null_extended(&query.from);
    level.add_ctes(&query.ctes)?;
    let (node, output) = build(&mut level, query)?;
    Ok(level.finish(node, output))
}

fn build(level: &mut Level<'_>, query: &Query) -> Result<(Node, Vec<Slot>)> {
    if level.cx.verbose {
        level.shown_output = listed(query.targets.iter().filter(|t| !t.junk).map(|t| &t.expr), level);
    }
    let grouped = query.is_grouped();
    let of_first = is_of_first(query);
    level.note_above_from(query, of_first);
    let goal = goal(level, query);
    let shared = parallel::results(level, query);
    let wanted = WantedRows {
        order: &goal.order,
        exprs: &goal.exprs,
        limit: goal.limit,
        is_whole: goal.serves != Serves::Rows,
        shared,
    };
    let extremes = if grouped { extremes(level, query)? } else { None };
    let grouped_below = grouped && extremes.is_none();
    let Source { mut node, mut rows, mut cost, ordered } = match extremes {
        Some(found) => found,
        None => source(level, query, grouped, wanted)?,
    };
    let in_order = !goal.order.is_empty() && ordered == goal.order.len();
    let ordered = match goal.serves {
        Serves::Rows => ordered,
        Serves::Groups { order_by } | Serves::Window { order_by } if in_order => order_by,
        Serves::Groups { .. } | Serves::Window { .. } => 0,
    };
    // A sort that keeps the first rows reads columns late of those that may be among them, instead.
    let sorts_late = of_first && ordered == 0;
    if !sorts_late {
        node = LateNode::above(node, rows);
    }
    if let Some(sample) = &query.sample {
        node = sampled(level, sample, node)?;
    }
    let is_early = query.limit.is_some() && !(ordered < query.order_by.len() && query.locking.is_empty());
    // Every rel of FROM; what is above its rows is no wider.
    let all = Mask::MAX;
    let is_shared = !grouped && !is_early && ordered == 0 && query.locking.is_empty() && query.sample.is_none();
    if let Some(gather) = is_shared.then(|| parallel::gathering(level, &node, (rows, cost))).flatten() {
        node = level.note(Node::Gather(Arc::new(gather)), all, rows, cost);
    }
    if grouped_below {
        let groups = if query.group_by.is_empty() { 1.0 } else { selectivity::groups(level, &query.group_by, rows) };
        let read;
        (node, read) = aggregate(level, query, node, in_order, (rows, groups, cost))?;
        cost = cost * (read / rows.max(1.0)) + read * 1.5;
        rows = groups;
        if !query.group_by.is_empty() {
            level.tell_list("Group Key", || {
                let follows = determined_keys(query);
                listed(query.group_by.iter().zip(follows).filter(|(_, follows)| !follows).map(|(key, _)| key), level)
            });
        }
        node = level.note_from(node, all, rows, cost, cost + rows * 0.2);
        cost += rows * 0.2;
    }
    if let Some(having) = &query.having {
        let mut list = Vec::new();
        walk::conjuncts(having.clone(), &mut list);
        let conditions = level.compile_all(&list)?;
        node = Node::Filter(Arc::new(FilterNode { input: node, conditions }));
        rows = (rows / 3.0).max(1.0);
        level.tell("Filter", || super::explain::conditions(&list.iter().collect::<Vec<_>>(), level.rels));
        node = level.note_from(node, all, rows, cost, cost);
    }
    node = window::windows(level, node, in_order)?;
    let (targets, computed) = targets(level, query)?;
    let sorted = ordered < query.order_by.len();
    // Rows that are locked are computed again as they are then.
    let again = if query.locking.is_empty() { Vec::new() } else { computed.clone() };
    let (late, early): (Vec<_>, Vec<_>) =
        computed.into_iter().partition(|(slot, _)| sorted && waits_for_order(query, &targets, *slot));
    if !early.is_empty() {
        node = Node::Project(Arc::new(ProjectNode { input: node, targets: early }));
    }
    let visible: Vec<Slot> =
        query.targets.iter().zip(&targets).filter(|(t, _)| !t.junk).map(|(_, slot)| *slot).collect();
    let typed = |i: usize| (targets[i], query.targets[i].expr.ty().oid);
    if let Some(on) = query.distinct.as_ref().filter(|on| on.is_empty()) {
        debug_assert!(on.is_empty());
        let shown: Vec<usize> = (0..targets.len()).filter(|&i| !query.targets[i].junk).collect();
        let follows = match grouped {
            false => rewrite::determined(query, &shown.iter().map(|&i| &query.targets[i].expr).collect::<Vec<_>>()),
            true => vec![false; shown.len()],
        };
        // Nor does a constant tell rows apart.
        let is_constant = |i: usize| matches!(query.targets[i].expr, Expr::Const(..));
        let has_others = shown.iter().any(|&i| !is_constant(i));
        let follows = shown.iter().zip(follows).map(|(&i, follows)| follows || has_others && is_constant(i));
        let keys: Vec<(Slot, Oid)> = shown.iter().zip(follows).filter(|(_, f)| !f).map(|(&i, _)| typed(i)).collect();
        let exprs: Vec<Expr> = shown.iter().map(|&i| query.targets[i].expr.clone()).collect();
        let groups = selectivity::groups(level, &exprs, rows);
        let read = want_one_of_each(&mut node, &mut keys.iter().map(|(slot, _)| *slot), rows, groups);
        node = Node::Distinct(Arc::new(DistinctNode { input: node, keys }));
        cost = cost * (read / rows.max(1.0)) + read * 1.5;
        rows = groups;
        node = level.note(node, all, rows, cost);
    }
    let distinct_on = query.distinct.as_ref().filter(|on| !on.is_empty());
    if sorted {
        let limit = match (&query.limit, query.locking.is_empty() && distinct_on.is_none() && !query.with_ties) {
            (Some(limit), true) => {
                let offset = query.offset.as_ref().map(|o| level.compile(o)).transpose()?;
                Some((level.compile(limit)?, offset))
            }
            _ => None,
        };
        let first = limit.as_ref().filter(|_| is_shared).map(|_| first_rows(query));
        if let Some(parallel) = first.and_then(|first| parallel::first_rows(level.cx, &node, (first, rows))) {
            node = sort(level, query, node, (&targets, &late), limit.clone(), 0);
            if sorts_late {
                read_late(&mut node, query, rows);
            }
            if let Node::Sort(sorted) = &node {
                let slots = sorted.slots.clone();
                level.tell_list("Sort Key", || sort_keys(query, level));
                let input = level.note_from(node, all, rows, cost, cost);
                let gather = Node::Gather(Arc::new(GatherNode { input, slots, parallel }));
                node = level.note(gather, all, rows, cost);
            }
        }
        node = sort(level, query, node, (&targets, &late), limit, ordered);
        if sorts_late {
            read_late(&mut node, query, rows);
        }
        if matches!(node, Node::Sort(_)) {
            cost += sort_cost(rows, level.cx.methods);
            level.tell_list("Sort Key", || sort_keys(query, level));
            node = level.note_from(node, all, rows, cost, cost + rows * 0.1);
        } else if matches!(node, Node::IncrementalSort(_)) {
            level.tell_list("Sort Key", || sort_keys(query, level));
            level.tell_list("Presorted Key", || sort_keys(query, level).into_iter().take(ordered).collect());
            node = level.note(node, all, rows, cost);
        }
    }
    if let Some(on) = distinct_on {
        let keys = on.iter().map(|&i| typed(i)).collect();
        node = level.note(Node::Distinct(Arc::new(DistinctNode { input: node, keys })), all, rows, cost);
    }
    if !late.is_empty() {
        node = Node::Project(Arc::new(ProjectNode { input: node, targets: late }));
    }
    if !query.locking.is_empty() {
        node = lock_rows(level, query, node, again)?;
        node = level.note(node, all, rows, cost + rows);
    }
    if query.limit.is_some() || query.offset.is_some() {
        let limit = query.limit.as_ref().map(|l| level.compile(l)).transpose()?;
        let offset = query.offset.as_ref().map(|o| level.compile(o)).transpose()?;
        let ties = if query.with_ties { sort_slots(level, query, &targets) } else { Vec::new() };
        let wanted = limited(query, rows);
        node = Node::Limit(Arc::new(LimitNode { input: node, limit, offset, ties }));
        // What is not read costs nothing, unless all had to be sorted or grouped first.
        let blocks = grouped || sorted || query.distinct.is_some();
        cost = if blocks { cost } else { cost * (wanted / rows.max(1.0)).min(1.0) };
        rows = wanted;
        node = level.note(node, all, rows, cost);
    }
    level.result = (rows, cost);
    Ok((node, visible))
}

/// Some of the rows of the only table.
fn sampled(level: &mut Level<'_>, sample: &Sample, input: Node) -> Result<Node> {
    let random = sql_functions::functions_named("random").first().copied();
    let node = SampleNode {
        input,
        percent: level.compile(&sample.percent)?,
        seed: sample.seed.as_ref().map(|seed| level.compile(seed)).transpose()?,
        system: sample.system,
        row_slot: level.row_slot(0),
        random: random.ok_or_else(|| Error::internal("no random numbers"))?,
    };
    Ok(Node::Sample(Arc::new(node)))
}

fn listed<'e>(exprs: impl Iterator<Item = &'e Expr>, level: &Level<'_>) -> Vec<String> {
    exprs.map(|expr| super::explain::show(expr, level.rels)).collect()
}

/// What follows a sort key.
pub(super) fn direction(descending: bool, nulls_first: bool) -> &'static str {
    match (descending, nulls_first) {
        (false, false) => "",
        (false, true) => " NULLS FIRST",
        (true, true) => " DESC",
        (true, false) => " DESC NULLS LAST",
    }
}

fn sort_keys(query: &Query, level: &Level<'_>) -> Vec<String> {
    let key = |key: &sql_ir::SortKey| {
        let text = super::explain::show(&query.targets[key.target].expr, level.rels);
        text + direction(key.descending, key.nulls_first)
    };
    query.order_by.iter().map(key).collect()
}

/// Rows that LIMIT and OFFSET leave, as far as they are known; PostgreSQL takes a tenth of the others.
fn limited(query: &Query, rows: f64) -> f64 {
    let known = |expr: &Option<Expr>| match expr {
        Some(Expr::Const(types::Datum::Int8(value), _)) => Some((*value).max(0) as f64),
        _ => None,
    };
    let rest = match (&query.offset, known(&query.offset)) {
        (None, _) => rows,
        (Some(_), offset) => (rows - offset.unwrap_or(rows * 0.1)).max(1.0),
    };
    match &query.limit {
        Some(Expr::Const(types::Datum::Null, _)) | None => rest,
        Some(_) => known(&query.limit).unwrap_or(rest * 0.1).clamp(1.0, rest.max(1.0)),
    }
}

/// Rows that LIMIT and OFFSET ask for of an order; many if that is not known.
fn first_rows(query: &Query) -> f64 {
    let known = |expr: &Option<Expr>| match expr {
        Some(Expr::Const(types::Datum::Int8(value), _)) => (*value).max(0) as f64,
        None => 0.0,
        Some(_) => f64::INFINITY,
    };
    known(&query.limit) + known(&query.offset)
}

/// Where the rows of a query come from.
struct Source {
    node: Node,
    rows: f64,
    cost: f64,
    /// How many keys of ORDER BY, the first ones, the rows are in the order of.
    ordered: usize,
}

fn source(level: &mut Level<'_>, query: &Query, grouped: bool, wanted: WantedRows<'_>) -> Result<Source> {
    Ok(match &query.body {
        Body::Select => match grouped.then(|| minimum(level, query)).transpose()?.flatten() {
            Some(node) => Source { node, rows: 1.0, cost: 4.0, ordered: 0 },
            None => {
                let joined = join::from_where(level, &query.from, &query.guards, query.filter.as_ref(), wanted)?;
                Source { node: joined.node, rows: joined.rows, cost: joined.cost, ordered: joined.ordered }
            }
        },
        Body::Values(values) => {
            let slots = level.use_all(0);
            let compiled = values.iter().map(|row| level.compile_all(row)).collect::<Result<_>>()?;
            let node = Node::Values(Arc::new(ValuesNode { rows: compiled, slots }));
            let rows = values.len() as f64;
            Source { node: level.note(node, 0, rows, rows * 0.1), rows, cost: rows * 0.1, ordered: 0 }
        }
        Body::Modify(_) => return Err(Error::internal("a statement that changes rows in place of a query")),
        Body::SetOp { op: SetOp::Union, all, recursion: None, .. } => union(level, query, *all)?,
        Body::SetOp { op, all, left, right, recursion } => {
            let slots = level.use_all(0);
            let types = level.rels[0].columns.iter().map(|c| c.ty.oid).collect();
            let table = recursion.map(|table| level.cx.cells.add_work_table(table));
            let (left, right) = (level.subplan(left)?, level.subplan(right)?);
            let (rows, cost) = (left.plan.rows + right.plan.rows, left.plan.cost + right.plan.cost);
            let cost = if *all && *op == SetOp::Union { cost } else { cost + rows * 1.5 };
            let (node, rows, cost) = match table {
                Some(table) => {
                    let node = RecursionNode { table, all: *all, first: left, next: right, slots, types };
                    // PostgreSQL expects ten rounds.
                    (Node::Recursion(Arc::new(node)), rows * 10.0, cost * 10.0)
                }
                None => {
                    let except = *op == SetOp::Except;
                    (Node::SetOp(Arc::new(SetOpNode { except, all: *all, left, right, slots, types })), rows, cost)
                }
            };
            Source { node: level.note(node, 1, rows, cost), rows, cost, ordered: 0 }
        }
    })
}

/// UNION: all its branches are below one operator.
fn union(level: &mut Level<'_>, query: &Query, all: bool) -> Result<Source> {
    let slots = level.use_all(0);
    let types = level.rels[0].columns.iter().map(|c| c.ty.oid).collect();
    let branches = union_branches(query, all);
    let branches =
        branches.into_iter().map(|(branch, links)| level.subplan_below(branch, links)).collect::<Result<Vec<_>>>()?;
    let rows: f64 = branches.iter().map(|branch| branch.plan.rows).sum();
    let cost: f64 = branches.iter().map(|branch| branch.plan.cost).sum();
    let cost = if all { cost } else { cost + rows * 1.5 };
    let node = Node::Union(Arc::new(UnionNode { all, branches, slots, types }));
    Ok(Source { node: level.note(node, 1, rows, cost), rows, cost, ordered: 0 })
}

/// The queries whose rows a UNION gives, in order: a side that is a UNION itself, and no more than that, is taken apart. A UNION
/// without ALL takes sides with and without. With each, how many UNIONs were around it but for the first.
fn union_branches(query: &Query, all: bool) -> Vec<(&Query, usize)> {
    let mut branches = Vec::new();
    let mut waiting = vec![(query, None)];
    while let Some((query, around)) = waiting.pop() {
        work::beat(1);
        match &query.body {
            Body::SetOp { op: SetOp::Union, all: inner, left, right, recursion: None }
                if (*inner || !all) && (around.is_none() || is_bare(query)) =>
            {
                let around = Some(around.map_or(0, |around| around + 1));
                waiting.extend([(&**right, around), (&**left, around)]);
            }
            _ => branches.push((query, around.unwrap_or(0))),
        }
    }
    branches
}

/// Whether a set operation gives its rows as they are, all of them and in any order.
fn is_bare(query: &Query) -> bool {
    let is_column = |(i, target): (usize, &Target)| match target.expr {
        Expr::Column(Column { level: 0, rel: 0, column, .. }) => column == i,
        _ => false,
    };
    query.ctes.is_empty()
        && query.limit.is_none()
        && query.offset.is_none()
        && query.order_by.is_empty()
        && query.filter.is_none()
        && query.distinct.is_none()
        && query.locking.is_empty()
        && query.targets.len() == query.rels[0].columns.len()
        && query.targets.iter().enumerate().all(is_column)
}

/// What should come from FROM, and what for.
struct RowsGoal {
    order: Vec<WantedColumn>,
    /// See [`WantedRows::exprs`].
    exprs: Vec<Expr>,
    limit: Option<f64>,
    serves: Serves,
}

/// What an order of the rows of FROM is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Serves {
    /// ORDER BY; the first keys alone may be of use.
    Rows,
    /// GROUP BY or DISTINCT; so many keys of ORDER BY come with it.
    Groups { order_by: usize },
    /// The window of all window functions; so many keys of ORDER BY come with it.
    Window { order_by: usize },
}

/// A key of an order: expression, descending, nulls first.
type Key<'e> = (&'e Expr, bool, bool);

/// What should come from FROM.
fn goal(level: &Level<'_>, query: &Query) -> RowsGoal {
    let none = RowsGoal { order: Vec::new(), exprs: Vec::new(), limit: None, serves: Serves::Rows };
    let order_by =
        || query.order_by.iter().map(|key| (&query.targets[key.target].expr, key.descending, key.nulls_first));
    let plain = matches!(query.body, Body::Select) && query.sample.is_none();
    if !plain {
        return none;
    }
    let read = query.limit.as_ref().map(|_| read_at_most(level, query));
    let (groups, windows) = (query.is_grouped(), has_windows(query));
    match (groups, windows, &query.distinct) {
        (false, false, None) => {
            let order = columns_of(query, order_by());
            // Without an order that FROM can give, all its rows are needed before the first one is known.
            let pipes = order.is_some() || query.order_by.is_empty();
            let (order, exprs) = order.unwrap_or_default();
            RowsGoal { order, exprs, limit: read.filter(|_| pipes), serves: Serves::Rows }
        }
        // The rows of each key are in the wanted order among themselves.
        (false, false, Some(on)) if !on.is_empty() => {
            let Some((order, exprs)) = columns_of(query, order_by()) else { return none };
            let keys = on.iter().map(|at| query.targets[*at].expr.clone()).collect::<Vec<_>>();
            let limit = read.map(|read| read * rows_per_group(level, query, &keys));
            RowsGoal { order, exprs, limit, serves: Serves::Rows }
        }
        (false, false, Some(_)) => {
            let keys: Vec<&Expr> = query.targets.iter().filter(|t| !t.junk).map(|t| &t.expr).collect();
            grouped_goal(level, query, &keys, read).unwrap_or(none)
        }
        (true, false, None) if query.grouping_sets.is_empty() && !query.group_by.is_empty() => {
            let keys: Vec<&Expr> = query.group_by.iter().collect();
            grouped_goal(level, query, &keys, read).unwrap_or(none)
        }
        (false, true, None) => {
            let Some(keys) = window::only_order(level.rels) else { return none };
            let Some((order, exprs)) = columns_of(query, keys.iter().copied()) else { return none };
            let same_key = |(a, b): (Key<'_>, &Key<'_>)| same(a.0, b.0) && (a.1, a.2) == (b.1, b.2);
            let comes = query.order_by.len() <= keys.len() && order_by().zip(&keys).all(same_key);
            let limit = read.filter(|_| comes);
            let order_by = if comes { query.order_by.len() } else { 0 };
            RowsGoal { order, exprs, limit, serves: Serves::Window { order_by } }
        }
        _ => none,
    }
}

/// The order in which groups by these keys are complete one after the other. It is of use where only the first ones are wanted.
fn grouped_goal(level: &Level<'_>, query: &Query, keys: &[&Expr], read: Option<f64>) -> Option<RowsGoal> {
    let read = read?;
    let mut order: Vec<Key<'_>> = Vec::with_capacity(keys.len());
    for key in &query.order_by {
        let expr = &query.targets[key.target].expr;
        if !keys.iter().any(|group| same(group, expr)) {
            return None;
        }
        if !order.iter().any(|(other, ..)| same(other, expr)) {
            order.push((expr, key.descending, key.nulls_first));
        }
    }
    let (descending, nulls_first) = order.last().map_or((false, false), |last| (last.1, last.2));
    for key in keys {
        if !order.iter().any(|(other, ..)| same(other, key)) {
            order.push((key, descending, nulls_first));
        }
    }
    let own: Vec<Expr> = keys.iter().map(|key| (*key).clone()).collect();
    let limit = read * rows_per_group(level, query, &own);
    let (order, exprs) = columns_of(query, order.into_iter())?;
    Some(RowsGoal { order, exprs, limit: Some(limit), serves: Serves::Groups { order_by: query.order_by.len() } })
}

/// Rows of FROM that are equal in some keys, before any condition.
fn rows_per_group(level: &Level<'_>, query: &Query, keys: &[Expr]) -> f64 {
    let mut rels = Vec::new();
    query.from.iter().for_each(|from| super::pushdown::kept_rels(from, &mut rels));
    let rows = rels.iter().map(|rel| level.rows[*rel]).fold(1.0, f64::max);
    (rows / selectivity::groups(level, keys, rows)).max(1.0)
}

/// An order as one of columns of FROM and expressions over one rel each, if it is about these alone; the expressions that no index has.
fn columns_of<'e>(query: &Query, keys: impl Iterator<Item = Key<'e>>) -> Option<(Vec<WantedColumn>, Vec<Expr>)> {
    let mut exprs = Vec::new();
    let columns = keys.map(|(expr, descending, nulls_first)| {
        let (rel, column) = match expr {
            Expr::Column(c) if c.level == 0 && !matches!(query.rels[c.rel].kind, RelKind::Window(_)) => {
                (c.rel, c.column)
            }
            expr => sarg::indexed(&query.rels, expr).or_else(|| {
                let rel = only_rel(query, expr)?;
                exprs.push(expr.clone());
                Some((rel, EXPRESSIONS + exprs.len() - 1))
            })?,
        };
        Some(WantedColumn { rel, column, descending, nulls_first })
    });
    let columns = columns.collect::<Option<Vec<_>>>()?;
    Some((columns, exprs))
}

/// The table whose columns are all that an expression depends on.
fn only_rel(query: &Query, expr: &Expr) -> Option<usize> {
    let (mut rels, mut plain): (Mask, bool) = (0, true);
    walk::walk(expr, 0, &mut |e, _| match e {
        Expr::Column(c) if c.level == 0 => rels |= rels_in(e),
        Expr::Column(_) | Expr::WholeRow { .. } | Expr::Agg { .. } | Expr::Subquery { .. } => plain = false,
        _ => {}
    });
    let rel = (plain && rels.is_power_of_two() && !walk::is_volatile(expr)).then(|| rels.trailing_zeros() as usize)?;
    matches!(query.rels[rel].kind, RelKind::Table(_)).then_some(rel)
}

fn has_windows(query: &Query) -> bool {
    query.rels.iter().any(|rel| matches!(rel.kind, RelKind::Window(_)))
}

/// Rows that LIMIT and OFFSET ask for, as far as they are known; PostgreSQL takes a tenth of all where they are not, this is few.
fn read_at_most(level: &Level<'_>, query: &Query) -> f64 {
    let known = |expr: &Option<Expr>, otherwise: f64| match expr.as_ref().map(|expr| selectivity::value_of(level, expr))
    {
        None => 0.0,
        Some(Some(value)) => value.integer().map_or(f64::MAX, |rows| rows.max(0) as f64),
        Some(None) => otherwise,
    };
    (known(&query.limit, 100.0) + known(&query.offset, 100.0)).max(1.0)
}

/// `SELECT min(c)` or `max(c)` of one table: the first row of an index, if one has that order.
fn minimum(level: &mut Level<'_>, query: &Query) -> Result<Option<Node>> {
    let ([call], [From::Rel(rel)], [], []) =
        (&query.aggs[..], &query.from[..], &query.group_by[..], &query.grouping_sets[..])
    else {
        return Ok(None);
    };
    let descending = match call.aggregate.name {
        "min" => false,
        "max" => true,
        _ => return Ok(None),
    };
    let [Expr::Column(column)] = &call.args[..] else { return Ok(None) };
    let is_table = matches!(level.rels[*rel].kind, RelKind::Table(_));
    if column.level != 0 || !is_table || call.filter.is_some() || !call.order_by.is_empty() {
        return Ok(None);
    }
    let not_null = Expr::IsNull { arg: Box::new(call.args[0].clone()), negated: true, fields: false };
    let filter = match &query.filter {
        Some(filter) => Expr::And(vec![filter.clone(), not_null]),
        None => not_null,
    };
    let wanted = [WantedColumn { rel: *rel, column: column.column, descending, nulls_first: descending }];
    let subplans = level.subplans.len();
    let joined = join::from_where(
        level,
        &query.from,
        &query.guards,
        Some(&filter),
        WantedRows { order: &wanted, limit: Some(1.0), is_whole: true, ..WantedRows::default() },
    )?;
    if joined.ordered < wanted.len() {
        level.subplans.truncate(subplans);
        return Ok(None);
    }
    let one = Code::Const(types::Datum::Int8(1));
    Ok(Some(Node::Limit(Arc::new(LimitNode { input: joined.node, limit: Some(one), offset: None, ties: Vec::new() }))))
}

/// Several `min` and `max` of one table, each the first row of an index: a subquery for each. `None` if that is not less than reading
/// all rows.
fn extremes(level: &mut Level<'_>, query: &Query) -> Result<Option<Source>> {
    let [From::Rel(rel)] = query.from[..] else { return Ok(None) };
    let RelKind::Table(info) = &level.rels[rel].kind else { return Ok(None) };
    let is_extreme = |call: &AggCall| {
        matches!(call.aggregate.name, "min" | "max")
            && call.filter.is_none()
            && call.order_by.is_empty()
            && matches!(&call.args[..], [Expr::Column(c)] if c.level == 0 && c.column < info.desc.columns.len())
    };
    let plain = matches!(query.body, Body::Select)
        && query.group_by.is_empty()
        && query.grouping_sets.is_empty()
        && query.guards.is_empty()
        && query.sample.is_none()
        && query.rels.len() == 1
        && query.aggs.len() > 1
        && !query.filter.as_ref().is_some_and(walk::is_volatile);
    if !plain || !query.aggs.iter().all(is_extreme) || !only_aggregates(query) {
        return Ok(None);
    }
    let before = level.subplans.len();
    let (mut slots, mut targets, mut cost) = (Vec::new(), Vec::new(), 0.0);
    for call in &query.aggs {
        let first = first_row(query, call);
        let code = level.subquery(&sql_ir::SubqueryKind::Scalar, &first)?;
        cost += level.subplans.last().map_or(f64::INFINITY, |subplan| subplan.plan.cost);
        let slot = level.slot();
        slots.push(slot);
        targets.push((slot, code));
    }
    if cost >= level.rows[rel] {
        level.subplans.truncate(before);
        return Ok(None);
    }
    level.aggregates = slots;
    let node = Node::Project(Arc::new(ProjectNode { input: Node::OneRow, targets }));
    Ok(Some(Source { node: level.note(node, 0, 1.0, cost), rows: 1.0, cost, ordered: 0 }))
}

/// Whether the columns of a query are looked at by its aggregates and its WHERE alone.
fn only_aggregates(query: &Query) -> bool {
    let mut only = true;
    for expr in query.targets.iter().map(|target| &target.expr).chain(&query.having) {
        walk::columns_of(expr, &mut |_| only = false);
        walk::whole_rows_of(expr, &mut |_| only = false);
    }
    only
}

/// The query of the first row whose value is what `min` or `max` gives.
fn first_row(query: &Query, call: &AggCall) -> Query {
    let descending = call.aggregate.name == "max";
    let arg = call.args[0].clone();
    let not_null = Expr::IsNull { arg: Box::new(arg.clone()), negated: true, fields: false };
    let filter = match &query.filter {
        Some(filter) => Expr::And(vec![filter.clone(), not_null]),
        None => not_null,
    };
    let one = Expr::Const(types::Datum::Int8(1), sql_ir::Ty::of(types::oid::INT8));
    let mut first = Query {
        rels: query.rels.clone(),
        from: query.from.clone(),
        filter: Some(filter),
        targets: vec![Target { expr: arg, name: String::new(), junk: false }],
        order_by: vec![sql_ir::SortKey { target: 0, descending, nulls_first: descending }],
        limit: Some(one),
        ..Query::default()
    };
    // The query whose aggregates these were is one further around it.
    sql_bind::visit::walk_query_mut(&mut first, 0, &mut |expr, depth| match expr {
        Expr::Column(Column { level, .. }) | Expr::WholeRow { level, .. } | Expr::Agg { level, .. }
            if *level > depth =>
        {
            *level += 1;
        }
        _ => {}
    });
    first
}

/// Grouping and aggregates of so many rows, at this cost, into so many groups; `in_order`: the rows of each group come one after the other. Answers also
/// how many rows are read.
fn aggregate(
    level: &mut Level<'_>,
    query: &Query,
    mut input: Node,
    in_order: bool,
    (rows, groups, cost): (f64, f64, f64),
) -> Result<(Node, f64)> {
    let mut keys: Vec<(Code, Slot, Oid)> = Vec::new();
    let mut grouped = Vec::new();
    let (mut carried, mut group_slots) = (BTreeSet::new(), Vec::with_capacity(query.group_by.len()));
    for (expr, follows) in query.group_by.iter().zip(determined_keys(query)) {
        let code = level.compile(expr)?;
        let slot = match (&code, expr) {
            (Code::Slot(slot), Expr::Column(c)) if c.level == 0 => *slot,
            _ => {
                let slot = level.slot();
                // PostgreSQL does not look for a constant among the keys: only the target that is one is NULL in other sets.
                if query.grouping_sets.is_empty() || !is_constant(expr) {
                    grouped.push((expr.clone(), slot));
                }
                slot
            }
        };
        group_slots.push(slot);
        if follows {
            carried.insert(slot);
        } else {
            keys.push((code, slot, expr.ty().oid));
        }
    }
    let (mut calls, mut called, mut averages) = (Vec::new(), Vec::new(), Vec::new());
    let (mut aggregates, mut results, mut groupings) = (Vec::new(), Vec::new(), Vec::new());
    for call in &query.aggs {
        let slot = level.slot();
        aggregates.push(slot);
        if std::ptr::eq(call.aggregate, &sql_functions::GROUPING) {
            let number = |arg: &Expr| query.group_by.iter().position(|g| same(g, arg));
            groupings.push((slot, call.args.iter().filter_map(number).collect()));
            continue;
        }
        if query.aggs.iter().any(|sum| is_average_of(call, sum)) {
            averages.push((call, slot));
            continue;
        }
        let mut order = Vec::new();
        for (expr, descending, nulls_first) in &call.order_by {
            order.push((level.compile(expr)?, expr.ty().oid, *descending, *nulls_first));
        }
        if call.distinct && call.aggregate.shows_order {
            // PostgreSQL finds the distinct values by sorting, which shows.
            let done = order.len();
            for arg in call.args.iter().filter(|a| !call.order_by.iter().take(done).any(|(o, ..)| same(o, a))) {
                order.push((level.compile(arg)?, arg.ty().oid, false, false));
            }
        }
        results.push(AggregateResult { call: calls.len(), average: false, slot });
        called.push(call);
        calls.push(AggregateCall {
            aggregate: call.aggregate,
            args: level.compile_all(&call.args)?,
            arg_types: call.args.iter().map(|a| a.ty().oid).collect(),
            distinct: call.distinct,
            order,
            filter: call.filter.as_ref().map(|f| level.compile(f)).transpose()?,
            sorts_argument: call.aggregate.ordered_set
                && matches!((call.args.as_slice(), call.order_by.as_slice()), ([arg], [(by, ..)]) if same(arg, by)),
            direct: Vec::new(),
        });
    }
    for (average, slot) in averages {
        let sum = called.iter().position(|sum| is_average_of(average, sum));
        let call = sum.ok_or_else(|| Error::internal("an average without its sum"))?;
        results.push(AggregateResult { call, average: true, slot });
    }
    level.aggregates = aggregates;
    level.grouped = grouped;
    level.group_slots = group_slots;
    // Direct arguments are evaluated once for a group, over its keys.
    for (call, from) in calls.iter_mut().zip(&called) {
        call.direct = level.compile_all(&from.direct)?;
    }
    let windows = query.rels.iter().flat_map(window_parts);
    let above = query.targets.iter().map(|t| &t.expr).chain(&query.having).chain(windows);
    for expr in above {
        let mut columns = Vec::new();
        walk::columns_of(expr, &mut |c| columns.push(c));
        for mut column in columns {
            column.level = 0;
            // A column inside of a grouping expression alone has no value of its own above.
            if let Ok(slot) = level.column(&column) {
                carried.insert(slot);
            }
        }
        walk::whole_rows_of(expr, &mut |rel| carried.extend(level.rel_slots(rel)));
    }
    for (_, slot, _) in &keys {
        carried.remove(slot);
    }
    let carried: Vec<Slot> = carried.into_iter().collect();
    let is_plain = query.grouping_sets.is_empty();
    let is_distinct = is_plain && calls.is_empty() && !keys.is_empty() && query.sample.is_none();
    let mut slots = keys.iter().map(|(_, slot, _)| *slot).chain(carried.iter().copied());
    let read = if is_distinct { want_one_of_each(&mut input, &mut slots, rows, groups) } else { rows };
    let stored = is_plain.then(|| StoredColumns::of(&input, &keys, &carried, &calls)).flatten();
    let parallel =
        if in_order { None } else { parallel::aggregation(level.cx, &input, (&keys, &calls), (groups, cost)) };
    let node = Node::Aggregate(Arc::new(AggregateNode {
        input,
        keys,
        carried,
        calls,
        results,
        sets: query.grouping_sets.clone(),
        groupings,
        stored,
        in_order,
        parallel,
    }));
    Ok((node, read))
}

/// Rows that are read, of so many, for so many groups that lie behind each other in an index: the others are passed over.
const READ_OF_GROUP: f64 = 20.0;

/// Has a scan give one row of each value of these slots, if an index says their values in its first columns and the groups are few.
/// Answers how many rows are read.
fn want_one_of_each(node: &mut Node, slots: &mut dyn Iterator<Item = Slot>, rows: f64, groups: f64) -> f64 {
    let read = groups * READ_OF_GROUP;
    if read >= rows {
        return rows;
    }
    match node {
        Node::Metered(metered) => {
            let Some(metered) = Arc::get_mut(metered) else { return rows };
            let read = want_one_of_each(&mut metered.input, slots, rows, groups);
            if read < rows {
                (metered.rows, metered.cost) = (groups, metered.cost * (read / rows));
            }
            read
        }
        Node::Scan(scan) if matches!(scan.access, Access::Range { .. }) => {
            let Some(columns) = scan.keys.as_ref().and_then(|keys| keys.columns_of(slots)) else { return rows };
            let Some(scan) = Arc::get_mut(scan) else { return rows };
            scan.distinct = columns;
            read
        }
        Node::Scan(_)
        | Node::Filter(_)
        | Node::Project(_)
        | Node::NestedLoop(_)
        | Node::HashJoin(_)
        | Node::Late(_)
        | Node::Limit(_)
        | makes_rows!() => rows,
    }
}

/// Which keys of GROUP BY follow from the others.
fn determined_keys(query: &Query) -> Vec<bool> {
    match query.grouping_sets.is_empty() {
        true => rewrite::determined(query, &query.group_by.iter().collect::<Vec<_>>()),
        false => vec![false; query.group_by.len()],
    }
}

/// Whether an aggregate is the average of what another sums.
fn is_average_of(average: &AggCall, sum: &AggCall) -> bool {
    average.aggregate.average_of == Some(sum.aggregate.oid)
        && same_rows(average, sum)
        && !sum.args.iter().chain(&sum.filter).any(walk::is_volatile)
}

/// Slots of the targets, and those that must be computed.
fn targets(level: &mut Level<'_>, query: &Query) -> Result<(Vec<Slot>, Vec<(Slot, Code)>)> {
    let (mut slots, mut computed) = (Vec::new(), Vec::new());
    for (number, target) in query.targets.iter().enumerate() {
        // In sets without it a constant that is grouped by is NULL.
        let grouped = query.grouped_constants.iter().find(|(at, _)| *at == number && !query.grouping_sets.is_empty());
        if let Some(&(_, group)) = grouped
            && same(&query.group_by[group], &target.expr)
        {
            slots.push(level.group_slots[group]);
            continue;
        }
        match level.compile(&target.expr)? {
            Code::Slot(slot) => slots.push(slot),
            code => {
                let slot = level.slot();
                slots.push(slot);
                computed.push((slot, code));
            }
        }
    }
    Ok((slots, computed))
}

/// Whether a target that is computed is so once the rows are in order, and no more of them than LIMIT asks for: what is volatile,
/// and under LIMIT what runs a subquery. The order itself must not need it.
fn waits_for_order(query: &Query, targets: &[Slot], slot: Slot) -> bool {
    if !query.locking.is_empty() || query.distinct.as_ref().is_some_and(|on| on.is_empty()) {
        return false;
    }
    let used = |target: usize| targets[target] == slot;
    let in_order = query.order_by.iter().any(|key| used(key.target));
    let in_distinct = query.distinct.iter().flatten().any(|&target| used(target));
    let Some(target) = targets.iter().position(|s| *s == slot).filter(|_| !in_order && !in_distinct) else {
        return false;
    };
    let expr = &query.targets[target].expr;
    let mut subquery = false;
    walk::walk(expr, 0, &mut |e, _| subquery |= matches!(e, Expr::Subquery { .. }));
    walk::is_volatile(expr) || (subquery && query.limit.is_some())
}

/// The slots that expressions read, those of their subqueries' arguments among them.
fn slots_read(level: &Level<'_>, code: &Code, out: &mut BTreeSet<Slot>) {
    code.visit(&mut |code| match code {
        Code::Slot(slot) => _ = out.insert(*slot),
        Code::Subquery { index, .. } => {
            level.subplans[*index].args.iter().for_each(|(arg, _)| slots_read(level, arg, out));
        }
        _ => {}
    });
}

fn sort(
    level: &Level<'_>,
    query: &Query,
    input: Node,
    (targets, late): (&[Slot], &[(Slot, Code)]),
    limit: Option<(Code, Option<Code>)>,
    presorted: usize,
) -> Node {
    let mut slots: BTreeSet<Slot> = targets.iter().copied().collect();
    for (slot, code) in late {
        slots.remove(slot);
        slots_read(level, code, &mut slots);
    }
    slots.retain(|slot| *slot >= level.cx.params as Slot);
    if !query.locking.is_empty() {
        // A row that has moved is looked at as a whole again.
        slots.extend((0..level.rels.len()).flat_map(|rel| level.rel_slots(rel)));
    }
    let sort_keys = sort_slots(level, query, targets);
    if sort_keys.is_empty() {
        return input;
    }
    let sort = Arc::new(SortNode { input, keys: sort_keys, slots: slots.into_iter().collect(), limit, is_late: false });
    match presorted {
        0 => Node::Sort(sort),
        _ => Node::IncrementalSort(Arc::new(IncrementalSortNode { sort, presorted })),
    }
}

/// Whether a query shows the first rows in an order, as they are found by FROM and WHERE.
fn is_of_first(query: &Query) -> bool {
    query.limit.is_some()
        && !query.with_ties
        && !query.order_by.is_empty()
        && query.distinct.is_none()
        && query.locking.is_empty()
        && query.sample.is_none()
        && !query.is_grouped()
        && !query.rels.iter().any(|rel| matches!(rel.kind, RelKind::Window(_)))
}

/// Lets a sort that keeps the first rows read columns late, if it sees many more rows than it may keep.
fn read_late(node: &mut Node, query: &Query, rows: f64) {
    /// Rows that a sort keeps before it drops any.
    const AT_FIRST: f64 = 1024.0;
    /// Rows that it keeps later and drops again, for each row of the result.
    const REPLACED: f64 = 4.0;
    let Node::Sort(sort) = node else { return };
    let kept = (first_rows(query).min(rows / 10.0) * REPLACED + AT_FIRST).min(rows);
    if sort.scan().is_none()
        && let Some(sort) = Arc::get_mut(sort)
    {
        sort.is_late = sort.input.read_late(kept);
    }
}

/// The slots of ORDER BY's keys; parameters are the same in all rows.
fn sort_slots(level: &Level<'_>, query: &Query, targets: &[Slot]) -> Vec<SortSlot> {
    let keys = query.order_by.iter().filter(|key| targets[key.target] >= level.cx.params as Slot);
    keys.map(|key| SortSlot {
        slot: targets[key.target],
        ty: query.targets[key.target].expr.ty().oid,
        descending: key.descending,
        nulls_first: key.nulls_first,
    })
    .collect()
}

/// The conditions of joins that every row of FROM meets. What an anti-join found no partner for is not asked again.
fn on_conditions<'q>(from: &'q From, out: &mut Vec<&'q Expr>) {
    let From::Join { kind, left, right, on } = from else { return };
    if *kind == JoinKind::Anti {
        return on_conditions(left, out);
    }
    on_conditions(left, out);
    on_conditions(right, out);
    out.extend(on);
}

/// The whole qualification of a query's rows, for rows that have moved (rule R7): those of `moving`, if it is one rel only.
pub(super) fn qualification(level: &mut Level<'_>, query: &Query, moving: Option<usize>) -> Result<Vec<Code>> {
    let mut conditions: Vec<&Expr> = query.guards.iter().map(|guard| &guard.condition).collect();
    for from in &query.from {
        // Below an outer join a condition decides what is joined, not whether there is a row.
        if !outer_joins::has_outer(from) {
            on_conditions(from, &mut conditions);
        }
    }
    conditions.extend(&query.filter);
    let mut parts = Vec::new();
    conditions.into_iter().for_each(|condition| walk::conjuncts(condition.clone(), &mut parts));
    let mut codes = Vec::with_capacity(parts.len());
    for part in &parts {
        match places::of_moved(part, level.rels, moving) {
            None => codes.push(level.compile(part)?),
            Some(true) => {}
            Some(false) => codes.push(Code::Const(types::Datum::Bool(false))),
        }
    }
    Ok(codes)
}

fn lock_rows(level: &mut Level<'_>, query: &Query, input: Node, recompute: Vec<(Slot, Code)>) -> Result<Node> {
    let moving = match query.locking[..] {
        [ref lock] => Some(lock.rel),
        _ => None,
    };
    let recheck = qualification(level, query, moving)?;
    let mut targets = Vec::new();
    for lock in &query.locking {
        let RelKind::Table(info) = &level.rels[lock.rel].kind else { continue };
        targets.push(LockTarget {
            table: PlannedTable::new(info),
            reader: level.reader(lock.rel, info)?,
            row_slot: level.row_slot(lock.rel),
            mode: lock.mode,
            policy: lock.policy,
        });
    }
    Ok(Node::LockRows(Arc::new(LockRowsNode { input, targets, recheck, recompute })))
}
