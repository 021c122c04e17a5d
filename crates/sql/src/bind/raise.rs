//! Errors of constants.
//!
//! Responsible for: finding what a statement computes of constants alone and cannot compute. PostgreSQL computes constants when it
//! plans (`eval_const_expressions`), so such a statement fails whether or not a row ever asks for the value.
//! Not responsible for: computing constants (`fold`), which notes that something failed; without that nothing is looked for here.
//! Invariants: what PostgreSQL leaves out before it computes constants is left out here too: branches that a constant closes, what a
//! subquery shows and nobody reads, the select list of EXISTS.

use std::cell::RefCell;
use std::collections::BTreeSet;

use base::{Error, Result, work};
use types::Datum;

use super::{BindContext, fold, simplify, visit};
use crate::ir::{Body, ColumnSource, Expr, From, InsertSource, MergeKind, Query, RelKind, Statement, SubqueryKind};

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

/// Takes what nobody reads out of a statement that has such an error: it is not computed when the statement runs either.
pub(super) fn drop_unread(statement: &mut Statement, cx: &BindContext<'_>) {
    if !cx.failed.get() {
        return;
    }
    visit::statement_parts_mut(statement, &mut drop_unread_in, &mut drop_unread_of);
}

fn drop_unread_in(expr: &mut Expr) {
    visit::children_mut(expr, &mut drop_unread_in, &mut drop_unread_of);
    if let Expr::Subquery { kind: SubqueryKind::Exists, query, .. } = expr
        && shows_nothing(query)
    {
        clear(query, &BTreeSet::new());
    }
}

fn drop_unread_of(query: &mut Query) {
    for rel in 0..query.rels.len() {
        if matches!(query.rels[rel].kind, RelKind::Subquery { .. })
            && let Some(read) = columns_read(query, rel)
            && let RelKind::Subquery { query, .. } = &mut query.rels[rel].kind
        {
            clear(query, &read);
        }
    }
    visit::query_parts_mut(query, &mut drop_unread_in, &mut drop_unread_of);
}

/// Makes NULLs of the output columns of a query that are not read, and of the aggregates that only they called.
fn clear(query: &mut Query, read: &BTreeSet<usize>) {
    for at in 0..query.targets.len() {
        if !is_computed(query, at, Some(read)) {
            let ty = query.targets[at].expr.ty();
            query.targets[at].expr = Expr::Const(Datum::Null, ty);
        }
    }
    simplify::drop_uncalled(query);
}

struct Look<'a, 'c> {
    cx: &'a BindContext<'c>,
}

impl Look<'_, '_> {
    fn statement(&self, statement: &Statement) -> Result<()> {
        let (query, returning) = match statement {
            Statement::Select(query) => return self.query(query, None),
            Statement::Insert(insert) => {
                insert.ctes.iter().try_for_each(|cte| self.query(&cte.query, None))?;
                match &insert.source {
                    InsertSource::Values(rows) => rows.iter().flatten().try_for_each(|value| self.expr(value))?,
                    InsertSource::Query(query) => self.query(query, None)?,
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
        self.query(query, None)
    }

    /// A query of whose columns these are read; all if nothing is said.
    fn query(&self, query: &Query, read: Option<&BTreeSet<usize>>) -> Result<()> {
        query
            .ctes
            .iter()
            .filter(|cte| cte.modifies || reads_cte(query, cte.id))
            .try_for_each(|cte| self.query(&cte.query, None))?;
        for at in (0..query.targets.len()).filter(|at| is_computed(query, *at, read)) {
            self.in_level(query, &query.targets[at].expr)?;
        }
        query.from.iter().try_for_each(|from| self.from(from))?;
        self.exprs(query.guards.iter().map(|guard| &guard.condition).chain(&query.filter))?;
        query.having.iter().try_for_each(|having| self.in_level(query, having))?;
        self.exprs(query.group_by.iter().chain(&query.offset).chain(&query.limit))?;
        match &query.body {
            Body::Select => {}
            Body::Values(rows) => self.exprs(rows.iter().flatten())?,
            Body::SetOp { left, right, .. } => {
                self.query(left, None)?;
                self.query(right, None)?;
            }
            Body::Modify(statement) => self.statement(statement)?,
        }
        for (rel, entry) in query.rels.iter().enumerate() {
            match &entry.kind {
                RelKind::Subquery { query: inner, .. } => self.query(inner, columns_read(query, rel).as_ref())?,
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
            Expr::Subquery { kind: SubqueryKind::Exists, query, .. } if shows_nothing(query) => {
                self.query(query, Some(&BTreeSet::new()))
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
                    then(&|| self.query(query, None));
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

/// Whether an output column is computed of a query of whose columns these are read.
fn is_computed(query: &Query, at: usize, read: Option<&BTreeSet<usize>>) -> bool {
    let is_key = query.order_by.iter().any(|key| key.target == at);
    let all = query.distinct.is_some() || !matches!(query.body, Body::Select);
    all || is_key || query.targets[at].junk || read.is_none_or(|read| read.contains(&at))
}

/// Whether nothing but the number of its rows counts of a query in EXISTS (`simplify_EXISTS_query`).
fn shows_nothing(query: &Query) -> bool {
    let is_windowed = query.rels.iter().any(|rel| matches!(rel.kind, RelKind::Window(_)));
    let is_aggregated = !query.aggs.is_empty() || query.having.is_some() || !query.grouping_sets.is_empty();
    matches!(query.body, Body::Select) && !is_aggregated && !is_windowed && query.offset.is_none()
}

fn reads_cte(query: &Query, cte: usize) -> bool {
    let mut inner = Vec::new();
    visit::subqueries(query, &mut inner);
    let is_it = |kind: &RelKind| matches!(kind, RelKind::Cte { id, .. } if *id == cte);
    let others = query.ctes.iter().map(|other| &*other.query);
    let mut inner = inner.into_iter().chain(others);
    query.rels.iter().any(|rel| is_it(&rel.kind)) || inner.any(|inner| reads_cte(inner, cte))
}

/// The columns of an entry that its query reads; nothing if it reads the row as a whole.
fn columns_read(query: &Query, rel: usize) -> Option<BTreeSet<usize>> {
    let (mut read, mut whole) = (BTreeSet::new(), false);
    visit::walk_query(query, 0, &mut |expr, depth| match expr {
        Expr::Column(column) if column.level == depth && column.rel == rel => {
            read.insert(column.column);
        }
        Expr::WholeRow { level, rel: entry } if *level == depth && *entry == rel => whole = true,
        _ => {}
    });
    (!whole).then_some(read)
}
