//! Which parts of a plan several threads may share.
//!
//! Responsible for: whether the rows of an aggregation, or those that a condition leaves, can be read in parts, by threads that have no session;
//! how many threads pay.
//! Not responsible for: sharing the rows (`sql_exec::team`), how many threads there are.
//! Invariants: a plan that may be shared gives the same rows to one thread. What a worker evaluates asks nothing of the session but its
//! settings, the statement's time and names of the catalog, and runs no subquery.

use base::Oid;
use base::work::Count;
use sql_functions::{has_names_of_catalog, is_sessionless};
use sql_ir::expr::{Code, Comparison, How, Slot};
use sql_ir::{AggCall, Body, CastKind, Query};

use super::level::Level;
use super::node::{Access, AggregateCall, GatherNode, KeyPart, KeyValue, Node, Parallel, ScanNode, makes_rows};
use super::{PlanContext, implied, selectivity};

/// Groups, or rows that conditions leave, for each row of the table: they are combined or handed over by one thread. More rows are handed
/// over where a condition is long work.
pub(super) const OF_ROW: f64 = 0.125;
const OF_ROW_OF_LONG: f64 = 0.5;

/// Bytes of a table that count as a row: those of PostgreSQL's blocks, by the rows that one counts as (`PlanMethods::shared_rows_min`).
const BYTES_OF_ROW: u64 = 256;

/// Threads that may share an aggregation into so many groups, of an input of this cost, in rows of a scan: joins may be many times the rows of the
/// table whose rows are shared.
pub(super) fn aggregation(
    cx: &PlanContext<'_>,
    input: &Node,
    (keys, calls): (&[(Code, Slot, Oid)], &[AggregateCall]),
    (groups, cost): (f64, f64),
) -> Option<Parallel> {
    let is_shared = |call: &AggregateCall| {
        let order = call.order.iter().map(|(code, ..)| code);
        let mut codes = call.args.iter().chain(&call.filter).chain(&call.direct).chain(order);
        !call.aggregate.shows_order && codes.all(is_free)
    };
    let (parallel, rows) = threads(cx, input)?;
    let pays = groups <= OF_ROW * rows.max(cost) || parallel.rows_min == 0;
    (pays && keys.iter().all(|(code, ..)| is_free(code)) && calls.iter().all(is_shared)).then_some(parallel)
}

/// How many results of joins one thread puts together at most if several have shared the work: groups, or all rows. `None` if they may not share
/// it.
pub(super) fn results(level: &Level<'_>, query: &Query) -> Option<f64> {
    let plain = query.locking.is_empty() && query.sample.is_none() && matches!(query.body, Body::Select);
    // One rel is joined to nothing.
    if !plain || query.rels.len() < 2 || level.cx.methods.workers() == 0 {
        return None;
    }
    if !query.is_grouped() {
        // All rows are read.
        return (query.limit.is_none() || !query.order_by.is_empty()).then_some(f64::INFINITY);
    }
    let is_shared = |call: &AggCall| {
        let exprs = call.args.iter().chain(&call.filter).chain(call.order_by.iter().map(|(expr, ..)| expr));
        !call.aggregate.shows_order && exprs.counted(1).all(|expr| !implied::has_subquery(expr))
    };
    let keys = query.group_by.iter().counted(1).all(|key| !implied::has_subquery(key));
    (keys && query.aggs.iter().all(is_shared)).then(|| match query.group_by.is_empty() {
        true => 1.0,
        false => selectivity::groups(level, &query.group_by, f64::MAX),
    })
}

/// Whether a table has so many rows that several threads may read them.
pub(super) fn is_shared(cx: &PlanContext<'_>, table: Oid) -> bool {
    workers(cx, table).is_some_and(|(workers, _)| workers > 0)
}

/// Has several threads read an input of so many rows and this cost, if that pays. REQUIRES that nobody needs the order of the rows, or only the
/// first of them.
pub(super) fn gathering(level: &Level<'_>, input: &Node, (rows, cost): (f64, f64)) -> Option<GatherNode> {
    let (parallel, of_table) = threads(level.cx, input)?;
    let most = if has_long_work(input) { OF_ROW_OF_LONG } else { OF_ROW };
    let pays = rows <= most * of_table.max(cost) || parallel.rows_min == 0;
    pays.then(|| GatherNode { input: input.clone(), slots: level.slots_so_far(), parallel })
}

/// Has several threads find the first rows of an order, as many as one of them then sorts again, if that pays. REQUIRES what [`gathering`] does.
pub(super) fn first_rows(cx: &PlanContext<'_>, input: &Node, (first, rows): (f64, f64)) -> Option<Parallel> {
    let (parallel, _) = threads(cx, input)?;
    (first <= OF_ROW * rows || parallel.rows_min == 0).then_some(parallel)
}

/// Whether a condition calls functions whose work grows with the length of values.
fn has_long_work(node: &Node) -> bool {
    let any = |codes: &[Code]| {
        let mut long = false;
        for code in codes {
            code.visit(&mut |code| long |= matches!(code, Code::Call { function, .. } if !function.is_light));
        }
        long
    };
    match node {
        Node::Metered(node) => has_long_work(&node.input),
        Node::Late(node) => has_long_work(&node.input),
        Node::Filter(node) => any(&node.conditions) || has_long_work(&node.input),
        Node::HashJoin(node) => any(&node.conditions) || has_long_work(&node.probe),
        Node::NestedLoop(node) => any(&node.conditions) || has_long_work(&node.outer),
        Node::Scan(scan) => any(&scan.filter),
        Node::Project(_) | Node::Limit(_) | makes_rows!() => false,
    }
}

/// The threads that may read an input together, and the number of rows of the table that they divide among them.
fn threads(cx: &PlanContext<'_>, input: &Node) -> Option<(Parallel, f64)> {
    if cx.methods.workers() == 0 {
        return None;
    }
    let (workers, rows) = workers(cx, driving(input)?.table.info.desc.oid)?;
    let rows_min = cx.methods.shared_rows_min().min(rows / 2);
    Some((Parallel { workers, rows_min, ..Parallel::default() }, rows as f64))
}

/// The number of threads that may read a table beside the statement's own, and the number of the table's rows; `None` if the table is small. As in
/// PostgreSQL, a table of the least size gets one thread, and each threefold size another one.
fn workers(cx: &PlanContext<'_>, table: Oid) -> Option<(usize, u64)> {
    let rows_min = cx.methods.shared_rows_min();
    let rows = cx.stats.row_count(table);
    // Few rows may be large.
    let of_bytes = cx.stats.bytes(table) / BYTES_OF_ROW;
    let times = rows.max(of_bytes) / rows_min.max(1);
    if times == 0 && rows_min > 0 {
        return None;
    }
    let workers = 1 + times.checked_ilog(3).unwrap_or(0) as usize;
    Some((cx.methods.workers().min(workers), rows))
}

/// The scan whose rows can be shared, if each operator above it can run on several threads.
fn driving(node: &Node) -> Option<&ScanNode> {
    let all_free = |codes: &[Code]| codes.iter().all(is_free);
    match node {
        Node::Metered(node) => driving(&node.input),
        Node::Late(node) => driving(&node.input),
        Node::Filter(node) if all_free(&node.conditions) => driving(&node.input),
        Node::Project(node) if node.targets.iter().all(|(_, code)| is_free(code)) => driving(&node.input),
        Node::HashJoin(node) => {
            (all_free(&node.probe_keys) && all_free(&node.conditions)).then(|| driving(&node.probe)).flatten()
        }
        Node::NestedLoop(node) if all_free(&node.conditions) && is_lookup(&node.inner) => driving(&node.outer),
        Node::Scan(scan) if matches!(scan.access, Access::Full) && all_free(&scan.filter) => Some(scan),
        Node::Scan(_) | Node::Filter(_) | Node::Project(_) | Node::NestedLoop(_) | Node::Limit(_) | makes_rows!() => {
            None
        }
    }
}

/// Whether an inner side looks up rows by an index, which any thread can do by itself.
fn is_lookup(node: &Node) -> bool {
    match node {
        Node::Metered(node) => is_lookup(&node.input),
        Node::Filter(node) => node.conditions.iter().all(is_free) && is_lookup(&node.input),
        Node::Scan(scan) => {
            let is_in_key = match &scan.access {
                Access::Point { key, .. } => key.iter().all(is_free_part),
                Access::Range { span, .. } => {
                    let bounds = span.lower.iter().chain(&span.upper);
                    let mut codes =
                        bounds.flat_map(|b| std::iter::once(&b.value).chain(b.more.iter().map(|(_, code)| code)));
                    span.prefix.iter().all(is_free_part) && codes.all(is_free)
                }
                _ => false,
            };
            is_in_key && scan.filter.iter().all(is_free)
        }
        Node::Project(_) | Node::NestedLoop(_) | Node::HashJoin(_) | Node::Late(_) | Node::Limit(_) | makes_rows!() => {
            false
        }
    }
}

fn is_free_part(part: &KeyPart) -> bool {
    match &part.value {
        KeyValue::Value(code) => is_free(code),
        KeyValue::Null => true,
        KeyValue::List(_) | KeyValue::Any => false,
    }
}

/// Whether an expression can be evaluated on any thread.
fn is_free(code: &Code) -> bool {
    let compares = |comparison: &Comparison| match comparison.how {
        How::Int | How::Order(_) => true,
        How::Function(function) => is_sessionless(function),
    };
    let mut free = true;
    code.visit(&mut |code| {
        free &= match code {
            Code::Subquery { .. } | Code::Transaction { .. } => false,
            Code::Call { function, .. } => is_sessionless(function),
            Code::Cast { from, to, kind, .. } => {
                let calls = match kind {
                    CastKind::ArrayElements(Some(function)) => is_sessionless(function),
                    _ => true,
                };
                calls && !has_names_of_catalog(*from) && !has_names_of_catalog(*to)
            }
            Code::Compare(test, _)
            | Code::NullIf(test, _)
            | Code::Distinct { equal: test, .. }
            | Code::AnyAllList { test, .. }
            | Code::AnyAllArray { test, .. } => compares(test),
            Code::RowCompare { pairs, .. } => pairs.iter().all(|pair| compares(&pair.equal) && compares(&pair.less)),
            _ => true,
        };
    });
    free
}
