//! UNION, INTERSECT, EXCEPT (`transformSetOperationStmt`).

use base::{Result, SqlState};
use rupg_sql::nodes::{Node, SelectStmt, SetOperation};
use sql_functions::CastContext;
use sql_ir::{Body, Column, Expr, Query, RelColumn, SetOp, Target, Ty};
use types::oid;

use super::cte::RecursiveContext;
use super::select::{BoundQuery, clause_name, wrap};
use super::{Binder, Located};

/// A set operation and its name.
fn operation(select: &SelectStmt) -> (SetOp, &'static str) {
    match select.op {
        SetOperation::SETOP_UNION => (SetOp::Union, "UNION"),
        SetOperation::SETOP_INTERSECT => (SetOp::Intersect, "INTERSECT"),
        _ => (SetOp::Except, "EXCEPT"),
    }
}

/// What locks rows is no side of a set operation.
pub(super) fn refuse_locks(select: &SelectStmt) -> Result<()> {
    match select.lockingClause.first() {
        Some(Some(Node::LockingClause(clause))) => {
            let clause = clause_name(clause.strength);
            Err(base::Error::unsupported(format!("{clause} is not allowed with UNION/INTERSECT/EXCEPT")))
        }
        _ => Ok(()),
    }
}

fn one_sided() -> base::Error {
    base::Error::internal("a set operation without two sides")
}

impl<'a> Binder<'a, '_> {
    /// Binds a set operation in the current, fresh scope. A chain of them leans to the left, and is walked without recursion: down
    /// to its first query, and back.
    pub(super) fn set_operation(&mut self, select: &'a SelectStmt) -> Result<BoundQuery> {
        let (scopes, depth, context) = (self.scopes.len(), self.depth, self.recursive_context);
        let bound = self.chain_of(select);
        // Where it has failed in the middle.
        self.scopes.truncate(scopes);
        (self.depth, self.recursive_context) = (depth, context);
        bound
    }

    /// A query of a set operation.
    pub(super) fn side(&mut self, select: &'a SelectStmt) -> Result<BoundQuery> {
        refuse_locks(select)?;
        self.subquery(select, false)
    }

    fn chain_of(&mut self, select: &'a SelectStmt) -> Result<BoundQuery> {
        let mut links = vec![(select, self.recursive_context)];
        let mut link = select;
        let mut left = loop {
            refuse_locks(link)?;
            if operation(link).0 == SetOp::Intersect {
                self.recursive_context = RecursiveContext::Intersect;
            }
            let below = link.larg.as_deref().ok_or_else(one_sided)?;
            if below.op == SetOperation::SETOP_NONE {
                break self.side(below)?;
            }
            self.enter_chained()?;
            self.begin_select(below)?;
            links.push((below, self.recursive_context));
            link = below;
        };
        while let Some((link, context)) = links.pop() {
            if operation(link).0 == SetOp::Except {
                self.recursive_context = RecursiveContext::Except;
            }
            let right = self.side(link.rarg.as_deref().ok_or_else(one_sided)?)?;
            self.recursive_context = context;
            left = self.combine(link, left, right)?;
            if !links.is_empty() {
                self.finish_select(&mut left)?;
                self.scopes.pop();
                self.depth -= 1;
                self.note_view(&mut left);
            }
        }
        Ok(left)
    }

    /// Puts the sides of a set operation together.
    pub(super) fn combine(
        &mut self,
        select: &'a SelectStmt,
        mut left: BoundQuery,
        mut right: BoundQuery,
    ) -> Result<BoundQuery> {
        let (op, name) = operation(select);
        let width = |b: &BoundQuery| b.query.targets.iter().filter(|t| !t.junk).count();
        if width(&left) != width(&right) {
            let message = format!("each {name} query must have the same number of columns");
            let at = right.at.first().copied().unwrap_or(-1);
            return Err(self.error(SqlState::SYNTAX_ERROR, message, at));
        }
        let mut types = Vec::with_capacity(width(&left));
        let names: Vec<String> = left.query.targets.iter().filter(|t| !t.junk).map(|t| t.name.clone()).collect();
        for i in 0..width(&left) {
            types.push(self.unify_column(&left, &right, i, name)?);
        }
        let chosen: Vec<i32> = (0..types.len()).map(|i| chosen_at(&left, &right, i, types[i])).collect();
        self.bring_to(&mut left, &types, name)?;
        self.bring_to(&mut right, &types, name)?;
        let columns: Vec<RelColumn> = names.into_iter().zip(&types).map(|(name, &ty)| RelColumn { name, ty }).collect();
        let mut at = left.at[..columns.len()].to_vec();
        let mut query = self.over_virtual_rel("*SELECT*", columns);
        if !select.all {
            for (target, &at) in query.targets.iter().zip(&chosen) {
                self.check_groupable(&target.expr, at)?;
            }
        }
        let (left, right) = (Box::new(left.query), Box::new(right.query));
        query.body = Body::SetOp { op, all: select.all, left, right, recursion: None };
        self.order_by(&select.sortClause, &mut query, &mut at)?;
        self.limit(select, &mut query)?;
        Ok(BoundQuery { query, at })
    }

    /// The type of one output column.
    fn unify_column(&self, left: &BoundQuery, right: &BoundQuery, i: usize, name: &str) -> Result<Ty> {
        let side = |b: &BoundQuery| {
            let target = b.query.output(i);
            target.map(|t| (t.expr.ty(), b.at.get(i).copied().unwrap_or(-1)))
        };
        let (Some((l, l_at)), Some((r, r_at))) = (side(left), side(right)) else {
            return Err(base::Error::internal("a set operation of different widths"));
        };
        let oid = self.common_type(&[(l.oid, l_at), (r.oid, r_at)], Some(name))?.unwrap_or(types::oid::TEXT);
        let typmod = if l == r { l.typmod } else { -1 };
        Ok(Ty { oid, typmod })
    }

    /// Gives a query's visible columns these types. In a query that is bound for display the columns keep their own types.
    fn bring_to(&mut self, bound: &mut BoundQuery, types: &[Ty], name: &str) -> Result<()> {
        self.retarget(bound, types.len(), |b, value, i| match b.shows && value.expr.ty().oid != oid::UNKNOWN {
            true => Ok(value),
            false => b.coerce_to_common(value, types[i].oid, name),
        })
    }

    /// Converts the visible columns of a query: in place where nothing else looks at them, else in a query around it.
    pub(super) fn retarget(
        &mut self,
        bound: &mut BoundQuery,
        width: usize,
        mut convert: impl FnMut(&mut Self, Located, usize) -> Result<Located>,
    ) -> Result<()> {
        let visible: Vec<usize> = (0..bound.query.targets.len()).filter(|&i| !bound.query.targets[i].junk).collect();
        let unknown = |e: &Expr| e.ty().oid == types::oid::UNKNOWN;
        if let Body::Values(rows) = &mut bound.query.body
            && bound.query.order_by.is_empty()
        {
            let mut columns = Vec::with_capacity(width);
            for row in rows.iter_mut() {
                for (i, slot) in row.iter_mut().enumerate().take(width) {
                    let at = bound.at.get(i).copied().unwrap_or(-1);
                    let value = Located { expr: std::mem::replace(slot, Expr::Default), at };
                    *slot = convert(self, value, i)?.expr;
                    if columns.len() < width {
                        columns.push(slot.ty());
                    }
                }
            }
            for (i, ty) in columns.into_iter().enumerate() {
                if let Some(column) = bound.query.rels.first_mut().and_then(|r| r.columns.get_mut(i)) {
                    column.ty = ty;
                }
                if let Some(Target { expr: Expr::Column(c), .. }) = bound.query.targets.get_mut(i) {
                    c.ty = ty;
                }
            }
            return Ok(());
        }
        let movable = matches!(bound.query.body, Body::Select) && bound.query.distinct.is_none();
        let mut late = Vec::new();
        for (i, &n) in visible.iter().enumerate().take(width) {
            let target = &bound.query.targets[n];
            let sorted = bound.query.order_by.iter().any(|k| k.target == n);
            let at = bound.at.get(n).copied().unwrap_or(-1);
            let value = Located { expr: target.expr.clone(), at };
            let in_place = unknown(&target.expr) || (movable && !sorted);
            if in_place {
                bound.query.targets[n].expr = convert(self, value, i)?.expr;
            } else {
                late.push(i);
            }
        }
        self.convert_around(bound, &late, convert)
    }

    /// Converts some columns in a query around `bound`.
    fn convert_around(
        &mut self,
        bound: &mut BoundQuery,
        late: &[usize],
        mut convert: impl FnMut(&mut Self, Located, usize) -> Result<Located>,
    ) -> Result<()> {
        let columns = super::from::visible_columns(&bound.query);
        let at: Vec<i32> = (0..bound.query.targets.len())
            .filter(|&i| !bound.query.targets[i].junk)
            .map(|i| bound.at.get(i).copied().unwrap_or(-1))
            .collect();
        let mut targets = Vec::with_capacity(columns.len());
        let mut changed = false;
        for (i, column) in columns.iter().enumerate() {
            let mut expr = Expr::Column(Column { level: 0, rel: 0, column: i, ty: column.ty });
            if late.contains(&i) {
                expr = convert(self, Located { expr, at: at[i] }, i)?.expr;
                changed |= !matches!(expr, Expr::Column(_));
            }
            targets.push(Target { expr, name: column.name.clone(), junk: false });
        }
        if changed {
            let inner = std::mem::take(&mut bound.query);
            bound.query = Query { targets, ..wrap(inner, columns) };
            bound.at = at;
        }
        Ok(())
    }

    /// A value assigned to a column, whose values are held as of type `ty` and which is `own` to messages: `transformAssignedExpr`.
    pub(super) fn assign(&mut self, value: Located, ty: Ty, own: base::Oid, column: &str) -> Result<Located> {
        let (from, at) = (value.expr.ty().oid, value.at);
        match self.coerce_to(value, ty, CastContext::Assignment, -1)? {
            Some(value) => Ok(value),
            None => {
                let message = format!(
                    "column \"{column}\" is of type {} but expression is of type {}",
                    self.type_name(own),
                    self.type_name(from)
                );
                Err(self
                    .error(SqlState::DATATYPE_MISMATCH, message, at)
                    .hint("You will need to rewrite or cast the expression."))
            }
        }
    }
}

/// Where the column is whose type both have got.
fn chosen_at(left: &BoundQuery, right: &BoundQuery, column: usize, ty: Ty) -> i32 {
    let side = |b: &BoundQuery| {
        let target = b.query.output(column);
        target.map(|t| (t.expr.ty().oid, b.at.get(column).copied().unwrap_or(-1)))
    };
    match (side(left), side(right)) {
        (Some((l, _)), Some((r, at))) if l != ty.oid && r == ty.oid => at,
        (Some((_, at)), _) => at,
        _ => -1,
    }
}
