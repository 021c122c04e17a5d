//! Errors of constants.
//!
//! Responsible for: finding what a statement computes of constants alone and cannot compute. PostgreSQL computes constants when it
//! plans (`eval_const_expressions`), so such a statement fails whether or not a row ever asks for the value.
//! Not responsible for: computing constants (`fold`), which notes that something failed; without that nothing is looked for here.
//! Invariants: what PostgreSQL leaves out before it computes constants is left out here too: branches that a constant closes. What
//! nobody reads is not there any more (`unread`).

use std::cell::RefCell;

use base::{Error, Result, work};
use sql_ir::{Body, ColumnSource, Expr, From, InsertSource, MergeKind, Query, RelKind, Statement};
use types::Datum;

use super::{BindContext, fold, visit};

/// The first error of a constant that a statement has, in about PostgreSQL's order.
pub(super) fn error(statement: &Statement, cx: &BindContext<'_>) -> Option<Error> {
    if cx.failed.get() { Look { cx }.statement(statement).err() } else { None }
}

/// The first such error of what a table computes of the rows that a statement puts into it. PostgreSQL finds these when it starts to
/// run an INSERT or a MERGE, behind the rights, and whether or not there will be a row.
pub(super) fn error_at_start(statement: &Statement, cx: &BindContext<'_>) -> Option<Error> {
    let generated = match statement {
        Statement::Insert(insert) if !cx.copies => &insert.generated,
        Statement::Merge(merge) => &merge.generated,
        _ => return None,
    };
    generated.iter().find_map(|(_, value)| error_of(value, cx))
}

/// The first such error of an expression.
pub(super) fn error_of(expr: &Expr, cx: &BindContext<'_>) -> Option<Error> {
    if cx.failed.get() { Look { cx }.expr(expr).err() } else { None }
}

struct Look<'a, 'c> {
    cx: &'a BindContext<'c>,
}

impl Look<'_, '_> {
    fn statement(&self, statement: &Statement) -> Result<()> {
        let (query, returning) = match statement {
            Statement::Select(query) => return self.query(query),
            Statement::Insert(insert) => {
                insert.ctes.iter().try_for_each(|cte| self.query(&cte.query))?;
                match &insert.source {
                    InsertSource::Values(rows) => rows.iter().flatten().try_for_each(|value| self.expr(value))?,
                    InsertSource::Query(query) => self.query(query)?,
                }
                for column in &insert.columns {
                    if let ColumnSource::Default(value) = column {
                        self.expr(value)?;
                    }
                }
                if let Some(update) = insert.on_conflict.as_ref().and_then(|conflict| conflict.update.as_ref()) {
                    self.exprs(update.set.iter().map(|(_, value)| value).chain(&update.filter))?;
                }
                return self.exprs(insert.returning.iter().map(|target| &target.expr));
            }
            Statement::Update(update) => {
                self.exprs(update.set.iter().map(|(_, value)| value))?;
                (&update.query, &update.returning[..])
            }
            Statement::Delete(delete) => (&delete.query, &delete.returning[..]),
            Statement::Merge(merge) => {
                for action in &merge.actions {
                    self.exprs(&action.condition)?;
                    if let MergeKind::Update(values) | MergeKind::Insert(values, _) = &action.kind {
                        self.exprs(values.iter().map(|(_, value)| value))?;
                    }
                }
                self.expr(&merge.on)?;
                (&merge.query, &[][..])
            }
        };
        self.exprs(returning.iter().map(|target| &target.expr))?;
        self.query(query)
    }

    fn query(&self, query: &Query) -> Result<()> {
        query
            .ctes
            .iter()
            .filter(|cte| cte.modifies || reads_cte(query, cte.id))
            .try_for_each(|cte| self.query(&cte.query))?;
        query.targets.iter().try_for_each(|target| self.in_level(query, &target.expr))?;
        query.from.iter().try_for_each(|from| self.from(from))?;
        self.exprs(query.guards.iter().map(|guard| &guard.condition).chain(&query.filter))?;
        query.having.iter().try_for_each(|having| self.in_level(query, having))?;
        self.exprs(query.group_by.iter().chain(&query.offset).chain(&query.limit))?;
        match &query.body {
            Body::Select => {}
            Body::Values(rows) => self.exprs(rows.iter().flatten())?,
            Body::SetOp { left, right, .. } => {
                self.query(left)?;
                self.query(right)?;
            }
            Body::Modify(statement) => self.statement(statement)?,
        }
        for entry in &query.rels {
            match &entry.kind {
                RelKind::Subquery { query: inner, .. } => self.query(inner)?,
                RelKind::Function { calls, .. } => self.exprs(calls.iter().flat_map(|call| &call.args))?,
                RelKind::Window(call) => {
                    self.exprs(call.args.iter().chain(&call.filter).chain(&call.partition))?;
                    self.exprs(call.order.iter().map(|(key, ..)| key))?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn from(&self, from: &From) -> Result<()> {
        let From::Join { left, right, on, .. } = from else { return Ok(()) };
        self.from(left)?;
        self.from(right)?;
        self.exprs(on)
    }

    /// An expression of a query, with the aggregates that it calls there.
    fn in_level(&self, query: &Query, expr: &Expr) -> Result<()> {
        self.expr(expr)?;
        let mut called = Vec::new();
        visit::walk(expr, 0, &mut |e, depth| match e {
            Expr::Agg { level, index, .. } if *level == depth => called.push(*index),
            _ => {}
        });
        for call in called.into_iter().filter_map(|index| query.aggs.get(index)) {
            let keys = call.order_by.iter().map(|(key, ..)| key);
            self.exprs(call.direct.iter().chain(&call.args).chain(keys).chain(&call.filter))?;
        }
        Ok(())
    }

    fn exprs<'e>(&self, exprs: impl IntoIterator<Item = &'e Expr>) -> Result<()> {
        exprs.into_iter().try_for_each(|expr| self.expr(expr))
    }

    fn expr(&self, expr: &Expr) -> Result<()> {
        work::step(8)?;
        match expr {
            Expr::And(args) => self.exprs(args.iter().take_while(|arg| truth(arg) != Some(Some(false)))),
            Expr::Or(args) => self.exprs(args.iter().take_while(|arg| truth(arg) != Some(Some(true)))),
            Expr::Coalesce(args, _) => {
                self.exprs(args.iter().take_while(|arg| !matches!(arg, Expr::Const(value, _) if !value.is_null())))
            }
            Expr::Case { branches, otherwise, .. } => {
                for (condition, result) in branches {
                    match truth(condition) {
                        Some(Some(true)) => return self.expr(result),
                        Some(_) => {}
                        None => {
                            self.expr(condition)?;
                            self.expr(result)?;
                        }
                    }
                }
                otherwise.iter().try_for_each(|otherwise| self.expr(otherwise))
            }
            expr => {
                let mut result = Ok(());
                let shared = RefCell::new(&mut result);
                let then = |look: &dyn Fn() -> Result<()>| {
                    let mut result = shared.borrow_mut();
                    if result.is_ok() {
                        **result = look();
                    }
                };
                visit::children(expr, &mut |child| then(&|| self.expr(child)), &mut |query| {
                    then(&|| self.query(query));
                });
                result?;
                fold::error(self.cx, expr).map_or(Ok(()), Err)
            }
        }
    }
}

/// What a constant says as a condition.
pub(super) fn truth(expr: &Expr) -> Option<Option<bool>> {
    match expr {
        Expr::Const(Datum::Bool(value), _) => Some(Some(*value)),
        Expr::Const(Datum::Null, _) => Some(None),
        _ => None,
    }
}

fn reads_cte(query: &Query, cte: usize) -> bool {
    let is_it = |kind: &RelKind| matches!(kind, RelKind::Cte { id, .. } if *id == cte);
    let mut reads = query.rels.iter().any(|rel| is_it(&rel.kind));
    visit::queries_inside(query, &mut |inner| reads = reads || reads_cte(inner, cte));
    reads
}
