//! Columns of subqueries that are not read.
//!
//! Responsible for: taking it out of a statement, so that it is neither computed nor planned, as PostgreSQL does when it flattens
//! subqueries and UNION ALL and of what is left (`remove_unused_subquery_outputs`); and the select list of EXISTS, of which only the
//! number of rows counts (`simplify_EXISTS_query`).
//! Not responsible for: rights, which are needed for everything in the text, so they are checked before.
//! Invariants: columns keep their places: what is not read is NULL. What decides which rows there are, or how many, stays; so does
//! what is volatile.

use std::collections::BTreeSet;

use sql_ir::{Body, Expr, Query, RelKind, SetOp, Statement, SubqueryKind};
use types::Datum;

use super::{simplify, visit};

/// Takes it out of a statement.
pub(super) fn drop_from(statement: &mut Statement) {
    visit::statement_parts_mut(statement, &mut in_expr, &mut in_query);
}

fn in_expr(expr: &mut Expr) {
    if let Expr::Subquery { kind: SubqueryKind::Exists, query, .. } = expr
        && shows_nothing(query)
    {
        show_nothing(query);
    }
    visit::children_mut(expr, &mut in_expr, &mut in_query);
}

fn in_query(query: &mut Query) {
    if query.rels.iter().any(|rel| matches!(rel.kind, RelKind::Subquery { .. })) {
        let read = columns_read(query);
        for (rel, read) in query.rels.iter_mut().zip(read) {
            if let (RelKind::Subquery { query, .. }, Some(columns)) = (&mut rel.kind, read) {
                keep_only(query, &columns);
            }
        }
    }
    visit::query_parts_mut(query, &mut in_expr, &mut in_query);
}

fn become_null(expr: &mut Expr) {
    *expr = Expr::Const(Datum::Null, expr.ty());
}

/// Makes NULLs of the output columns of a query that are not among these.
fn keep_only(query: &mut Query, read: &BTreeSet<usize>) {
    match &mut query.body {
        Body::Select if query.distinct.is_none() && query.sample.is_none() => {}
        Body::SetOp { op: SetOp::Union, all: true, left, right, .. } => {
            let is_plain = query.order_by.is_empty() && query.limit.is_none() && query.offset.is_none();
            if is_plain && query.ctes.is_empty() && query.locking.is_empty() {
                keep_only(left, read);
                keep_only(right, read);
            }
            return;
        }
        _ => return,
    }
    let mut is_dropped = false;
    for at in 0..query.targets.len() {
        let is_key = query.order_by.iter().any(|key| key.target == at)
            || query.grouped_constants.iter().any(|(target, _)| *target == at);
        let target = &mut query.targets[at];
        let is_kept = target.junk || is_key || read.contains(&at) || matches!(target.expr, Expr::Const(..));
        if !is_kept && !visit::calls_volatile(&target.expr) {
            become_null(&mut target.expr);
            is_dropped = true;
        }
    }
    if is_dropped {
        simplify::drop_uncalled(query);
    }
}

/// Whether nothing counts of a query in EXISTS but whether it has rows, and its select list does not decide that.
fn shows_nothing(query: &Query) -> bool {
    let is_windowed = query.rels.iter().any(|rel| matches!(rel.kind, RelKind::Window(_)));
    let is_aggregated = !query.aggs.is_empty() || query.having.is_some() || !query.grouping_sets.is_empty();
    let is_limited = match &query.limit {
        None => false,
        Some(Expr::Const(value, _)) => matches!(value, Datum::Int8(..=0)),
        Some(_) => true,
    };
    let is_select = matches!(query.body, Body::Select) && query.sample.is_none();
    is_select && !is_aggregated && !is_windowed && !is_limited && query.offset.is_none()
}

/// Leaves of a query whether it has rows.
fn show_nothing(query: &mut Query) {
    query.limit = None;
    query.with_ties = false;
    query.distinct = None;
    query.order_by.clear();
    query.group_by.clear();
    query.grouped_constants.clear();
    query.targets.iter_mut().for_each(|target| become_null(&mut target.expr));
}

/// The columns that a query reads of each of its entries; nothing if it reads the row as a whole.
fn columns_read(query: &Query) -> Vec<Option<BTreeSet<usize>>> {
    let mut read = vec![Some(BTreeSet::new()); query.rels.len()];
    visit::walk_query(query, 0, &mut |expr, depth| match expr {
        Expr::Column(column) if column.level == depth => {
            if let Some(Some(columns)) = read.get_mut(column.rel) {
                columns.insert(column.column);
            }
        }
        Expr::WholeRow { level, rel } if *level == depth => {
            if let Some(entry) = read.get_mut(*rel) {
                *entry = None;
            }
        }
        _ => {}
    });
    read
}
