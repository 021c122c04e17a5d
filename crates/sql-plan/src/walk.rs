//! Walks over bound expressions and queries.

use base::work::{self, Count as _};
use sql_ir::{AnyAllSource, Body, Column, Expr, From, InsertSource, Query, RelKind, Statement, SubqueryKind};

use super::negation::negated;

/// Calls `f` on an expression and everything in it, with the number of query levels between the start and the node.
pub(super) fn walk<'a>(expr: &'a Expr, depth: usize, f: &mut dyn FnMut(&'a Expr, usize)) {
    work::beat(8);
    f(expr, depth);
    let each = |exprs: &'a [Expr], f: &mut dyn FnMut(&'a Expr, usize)| {
        for expr in exprs {
            walk(expr, depth, f);
        }
    };
    match expr {
        Expr::Const(..)
        | Expr::Param(..)
        | Expr::Column(_)
        | Expr::WholeRow { .. }
        | Expr::Agg { .. }
        | Expr::Default => {}
        Expr::Call { args, .. } => each(args, f),
        Expr::Cast { arg, .. } | Expr::Not(arg) | Expr::IsNull { arg, .. } | Expr::BooleanTest { arg, .. } => {
            walk(arg, depth, f);
        }
        Expr::And(args) | Expr::Or(args) | Expr::Coalesce(args, _) | Expr::Row(args, _) => each(args, f),
        Expr::Distinct { args, .. } | Expr::NullIf { args, .. } => each(&args[..], f),
        Expr::Case { branches, otherwise, .. } => {
            for (condition, result) in branches {
                walk(condition, depth, f);
                walk(result, depth, f);
            }
            if let Some(otherwise) = otherwise {
                walk(otherwise, depth, f);
            }
        }
        Expr::MinMax { args, .. } => each(args, f),
        Expr::AnyAll { left, right, .. } => {
            walk(left, depth, f);
            match right {
                AnyAllSource::Array(array) => walk(array, depth, f),
                AnyAllSource::List(items) => each(items, f),
            }
        }
        Expr::RowCompare { pairs, .. } => {
            for (left, right, ..) in pairs {
                walk(left, depth, f);
                walk(right, depth, f);
            }
        }
        Expr::Array { elements, .. } => each(elements, f),
        Expr::Subscript { array, indexes, .. } => {
            walk(array, depth, f);
            each(indexes, f);
        }
        Expr::Subquery { kind, query, .. } => {
            match kind {
                SubqueryKind::Any { left, .. } | SubqueryKind::All { left, .. } => each(left, f),
                SubqueryKind::Exists | SubqueryKind::Scalar | SubqueryKind::Array => {}
            }
            walk_query(query, depth + 1, f);
        }
    }
}

fn walk_from<'a>(from: &'a From, depth: usize, f: &mut dyn FnMut(&'a Expr, usize)) {
    if let From::Join { left, right, on, .. } = from {
        walk_from(left, depth, f);
        walk_from(right, depth, f);
        if let Some(on) = on {
            walk(on, depth, f);
        }
    }
}

/// Walks everything of a query; `depth` is that of its own expressions.
pub(super) fn walk_query<'a>(query: &'a Query, depth: usize, f: &mut dyn FnMut(&'a Expr, usize)) {
    walk_what_sees_rels(query, depth, f);
    if let Body::SetOp { left, right, .. } = &query.body {
        walk_query(left, depth + 1, f);
        walk_query(right, depth + 1, f);
    }
}

/// As [`walk_query`] without the sides of a set operation, which cannot refer to the query's own rels: each link of a chain of
/// them is walked once so.
pub(super) fn walk_what_sees_rels<'a>(query: &'a Query, depth: usize, f: &mut dyn FnMut(&'a Expr, usize)) {
    query.from.iter().for_each(|from| walk_from(from, depth, f));
    query.filter.iter().for_each(|e| walk(e, depth, f));
    walk_rels(query, depth, f);
    walk_above(query, depth, f);
}

/// What the rels of a query ask of each other, and guards.
pub(super) fn walk_rels<'a>(query: &'a Query, depth: usize, f: &mut dyn FnMut(&'a Expr, usize)) {
    work::beat(8);
    query.ctes.iter().for_each(|cte| walk_query(&cte.query, depth + 1, f));
    for rel in &query.rels {
        match &rel.kind {
            RelKind::Subquery { query, .. } => walk_query(query, depth + 1, f),
            RelKind::Function { calls, .. } => {
                calls.iter().flat_map(|call| &call.args).for_each(|a| walk(a, depth, f));
            }
            RelKind::Window(call) => {
                let bounds = [&call.frame.start, &call.frame.end];
                call.args.iter().chain(&call.filter).for_each(|e| walk(e, depth, f));
                bounds.iter().filter_map(|b| b.offset()).for_each(|e| walk(e, depth, f));
                call.partition.iter().chain(call.order.iter().map(|(e, ..)| e)).for_each(|e| walk(e, depth, f));
            }
            RelKind::Table(_)
            | RelKind::System(_)
            | RelKind::Values
            | RelKind::Join
            | RelKind::Cte { .. }
            | RelKind::WorkTable(_) => {}
        }
    }
    query.guards.iter().for_each(|guard| walk(&guard.condition, depth, f));
}

/// What is asked for when the rows of FROM have been found.
pub(super) fn walk_above<'a>(query: &'a Query, depth: usize, f: &mut dyn FnMut(&'a Expr, usize)) {
    let single = [&query.having, &query.limit, &query.offset];
    single.into_iter().flatten().for_each(|e| walk(e, depth, f));
    query.targets.iter().for_each(|t| walk(&t.expr, depth, f));
    query.group_by.iter().for_each(|e| walk(e, depth, f));
    for call in &query.aggs {
        call.args.iter().chain(&call.direct).for_each(|e| walk(e, depth, f));
        call.order_by.iter().for_each(|(e, ..)| walk(e, depth, f));
        call.filter.iter().for_each(|e| walk(e, depth, f));
    }
    if let Some(sample) = &query.sample {
        walk(&sample.percent, depth, f);
        sample.seed.iter().for_each(|e| walk(e, depth, f));
    }
    match &query.body {
        Body::Select | Body::SetOp { .. } => {}
        Body::Values(rows) => rows.iter().flatten().for_each(|e| walk(e, depth, f)),
        Body::Modify(statement) => walk_statement(statement, depth, f),
    }
}

/// The columns of the query at `level` that an expression refers to.
pub(super) fn columns_of(expr: &Expr, f: &mut dyn FnMut(Column)) {
    walk(expr, 0, &mut |e, depth| match e {
        Expr::Column(column) if column.level == depth => f(*column),
        _ => {}
    });
}

/// The rels of the query at `level` whose rows an expression refers to as a whole.
pub(super) fn whole_rows_of(expr: &Expr, f: &mut dyn FnMut(usize)) {
    walk(expr, 0, &mut |e, depth| match e {
        Expr::WholeRow { level, rel } if *level == depth => f(*rel),
        _ => {}
    });
}

/// Calls `f` on every expression of a statement, which is itself `depth` queries deep.
pub(super) fn walk_statement<'a>(statement: &'a Statement, depth: usize, f: &mut dyn FnMut(&'a Expr, usize)) {
    match statement {
        Statement::Select(query) => walk_query(query, depth, f),
        Statement::Insert(insert) => {
            insert.ctes.iter().for_each(|cte| walk_query(&cte.query, depth + 1, f));
            match &insert.source {
                InsertSource::Values(rows) => rows.iter().flatten().for_each(|e| walk(e, depth, f)),
                InsertSource::Query(query) => walk_query(query, depth + 1, f),
            }
            for column in &insert.columns {
                if let sql_ir::ColumnSource::Default(expr) = column {
                    walk(expr, depth, f);
                }
            }
            if let Some(update) = insert.on_conflict.as_ref().and_then(|c| c.update.as_ref()) {
                update.set.iter().for_each(|(_, e)| walk(e, depth, f));
                update.filter.iter().for_each(|e| walk(e, depth, f));
            }
            // Parameters that choose the arbiter. Columns of its condition are not read.
            let chosen = insert.on_conflict.iter().filter(|conflict| !conflict.by_values.is_empty());
            chosen.flat_map(|conflict| &conflict.condition).for_each(|condition| {
                walk(condition, depth, &mut |e, depth| {
                    if let Expr::Param(..) = e {
                        f(e, depth);
                    }
                });
            });
            insert.returning.iter().for_each(|t| walk(&t.expr, depth, f));
            insert.checks.iter().chain(&insert.view_checks).for_each(|(_, e)| walk(e, depth, f));
            insert.tests.iter().chain(&insert.generated).for_each(|(_, e)| walk(e, depth, f));
        }
        Statement::Update(update) => {
            walk_query(&update.query, depth, f);
            update.set.iter().for_each(|(_, e)| walk(e, depth, f));
            update.checks.iter().chain(&update.view_checks).for_each(|(_, e)| walk(e, depth, f));
            update.generated.iter().for_each(|(_, e)| walk(e, depth, f));
            update.returning.iter().for_each(|t| walk(&t.expr, depth, f));
        }
        Statement::Delete(delete) => {
            walk_query(&delete.query, depth, f);
            delete.returning.iter().for_each(|t| walk(&t.expr, depth, f));
        }
        Statement::Merge(merge) => {
            walk_query(&merge.query, depth, f);
            walk(&merge.on, depth, f);
            for action in &merge.actions {
                action.condition.iter().for_each(|e| walk(e, depth, f));
                action.kind.values().iter().for_each(|(_, e)| walk(e, depth, f));
            }
            merge.checks.iter().for_each(|(_, e)| walk(e, depth, f));
            merge.generated.iter().for_each(|(_, e)| walk(e, depth, f));
        }
    }
}

/// Number of parameters of a statement.
pub(super) fn params(statement: &Statement) -> usize {
    let mut count = 0;
    walk_statement(statement, 0, &mut |e, _| {
        if let Expr::Param(index, _) = e {
            count = count.max(index + 1);
        }
    });
    count
}

/// Whether a statement calls a function with nothing but parameters and constants: with values in place of the parameters it would be
/// computed before the statement runs, and might fail there.
pub fn computes_parameters(statement: &Statement) -> bool {
    let mut found = false;
    walk_statement(statement, 0, &mut |e, _| {
        if let Expr::Call { function, args, .. } = e
            && function.volatility == sql_functions::Volatility::Immutable
            && args.iter().all(sql_bind::visit::is_constant)
        {
            args.iter().for_each(|arg| walk(arg, 0, &mut |e, _| found |= matches!(e, Expr::Param(..))));
        }
    });
    found
}

/// Whether an expression may differ between two evaluations over the same row.
pub(super) fn is_volatile(expr: &Expr) -> bool {
    let mut volatile = false;
    walk(expr, 0, &mut |e, _| {
        if let Expr::Call { function, .. } = e {
            volatile |= function.volatility == sql_functions::Volatility::Volatile;
        }
    });
    volatile
}

/// Whether a query may answer differently when it is run twice in a statement.
pub(super) fn is_volatile_query(query: &Query) -> bool {
    let mut volatile = query.sample.is_some();
    walk_query(query, 0, &mut |e, _| {
        if let Expr::Call { function, .. } = e {
            volatile |= function.volatility == sql_functions::Volatility::Volatile;
        }
    });
    volatile
}

/// Takes an AND apart, and what NOT makes an AND.
pub(super) fn conjuncts(expr: Expr, out: &mut Vec<Expr>) {
    match expr {
        Expr::And(args) => args.into_iter().counted(16).for_each(|arg| conjuncts(arg, out)),
        Expr::Not(arg) => match negated(*arg) {
            Expr::And(args) => args.into_iter().counted(16).for_each(|arg| conjuncts(arg, out)),
            expr => out.push(expr),
        },
        expr => out.push(expr),
    }
}
