//! SEARCH and CYCLE of recursive WITH queries (`parse_cte.c`, `rewriteSearchCycle.c`).
//!
//! Both add columns to the query, which the recursive part computes from those of the row it comes from: the way that leads to
//! a row, its depth, whether it has been met on its way. So each side of the UNION becomes a subquery of a query that adds
//! them. The recursive part itself does not see them.

use base::{Error, Result, SqlState};
use rupg_sql::nodes::{CTECycleClause, CTESearchClause, CommonTableExpr, Node, SelectStmt, SetOperation};
use sql_functions::{self as functions, CastContext};
use sql_ir::{Body, Column, Expr, Query, RelColumn, RelKind, Target, Ty};
use types::{Datum, oid};

use super::select::{BoundQuery, wrap};
use super::{Binder, Located};

/// What SEARCH and CYCLE add to a query.
pub(super) struct Added {
    search: Option<Search>,
    cycle: Option<Cycle>,
}

struct Search {
    /// The columns that order rows.
    columns: Vec<usize>,
    breadth: bool,
    name: String,
}

struct Cycle {
    /// The columns that tell whether a row has been met.
    columns: Vec<usize>,
    mark: String,
    path: String,
    /// The mark's value and its default.
    value: Expr,
    otherwise: Expr,
}

impl Added {
    /// The columns that are added.
    pub(super) fn columns(&self) -> Vec<RelColumn> {
        let mut out = Vec::new();
        if let Some(search) = &self.search {
            let ty = Ty::of(if search.breadth { oid::RECORD } else { oid::RECORD_ARRAY });
            out.push(RelColumn { name: search.name.clone(), ty });
        }
        if let Some(cycle) = &self.cycle {
            out.push(RelColumn { name: cycle.mark.clone(), ty: cycle.value.ty() });
            out.push(RelColumn { name: cycle.path.clone(), ty: Ty::of(oid::RECORD_ARRAY) });
        }
        out
    }
}

fn names(list: &[Option<Node>]) -> Vec<&str> {
    super::node::strings(list)
}

fn column(number: usize, ty: Ty) -> Expr {
    Expr::Column(Column { level: 0, rel: 0, column: number, ty })
}

/// The row of some columns.
fn row(numbers: &[usize], columns: &[RelColumn]) -> Expr {
    Expr::Row(numbers.iter().map(|&n| column(n, columns[n].ty)).collect(), Ty::of(oid::RECORD))
}

/// A list of one row.
fn list_of(row: Expr) -> Expr {
    let ty = Ty::of(oid::RECORD_ARRAY);
    Expr::Array { elements: vec![row], element: oid::RECORD, nested: false, ty }
}

fn call(name: &str, args: Vec<Expr>, ty: base::Oid) -> Result<Expr> {
    let function = functions::functions_named(name).first().copied();
    let function = function.ok_or_else(|| Error::internal(format!("no function \"{name}\"")))?;
    Ok(Expr::Call { function, args, ty: Ty::of(ty), location: -1 })
}

fn is_plain(side: Option<&SelectStmt>) -> bool {
    side.is_some_and(|select| select.op == SetOperation::SETOP_NONE)
}

impl<'a> Binder<'a, '_> {
    /// What the clauses of a recursive query add to it, whose columns are these.
    pub(super) fn search_and_cycle(
        &mut self,
        cte: &'a CommonTableExpr,
        select: &'a SelectStmt,
        columns: &[RelColumn],
    ) -> Result<Option<Added>> {
        if cte.search_clause.is_none() && cte.cycle_clause.is_none() {
            return Ok(None);
        }
        let side = |node: &'a Option<Box<SelectStmt>>| node.as_deref();
        if !is_plain(side(&select.larg)) {
            let message = "with a SEARCH or CYCLE clause, the left side of the UNION must be a SELECT";
            return Err(Error::unsupported(message));
        }
        if !is_plain(side(&select.rarg)) {
            let message = "with a SEARCH or CYCLE clause, the right side of the UNION must be a SELECT";
            return Err(Error::new(SqlState::SYNTAX_ERROR, message));
        }
        let search = cte.search_clause.as_deref().map(|clause| self.search(clause, columns)).transpose()?;
        let cycle = cte.cycle_clause.as_deref().map(|clause| self.cycle(clause, columns)).transpose()?;
        if let (Some(search), Some(cycle), Some(clause)) = (&search, &cycle, &cte.search_clause) {
            for (name, what) in [(&cycle.mark, "mark"), (&cycle.path, "path")] {
                if search.name == *name {
                    let message = format!("search sequence column name and cycle {what} column name are the same");
                    return Err(self.error(SqlState::SYNTAX_ERROR, message, clause.location));
                }
            }
        }
        Ok(Some(Added { search, cycle }))
    }

    /// The numbers of the columns that a clause lists.
    fn listed(&self, list: &[&str], columns: &[RelColumn], kind: &str, at: i32) -> Result<Vec<usize>> {
        let mut numbers = Vec::with_capacity(list.len());
        for name in list {
            let Some(number) = columns.iter().position(|c| c.name == *name) else {
                let message = format!("{kind} column \"{name}\" not in WITH query column list");
                return Err(self.error(SqlState::SYNTAX_ERROR, message, at));
            };
            if numbers.contains(&number) {
                let message = format!("{kind} column \"{name}\" specified more than once");
                return Err(self.error(SqlState::DUPLICATE_COLUMN, message, at));
            }
            numbers.push(number);
        }
        Ok(numbers)
    }

    fn check_new(&self, name: &str, columns: &[RelColumn], kind: &str, at: i32) -> Result<()> {
        if columns.iter().any(|c| c.name == name) {
            let message = format!("{kind} column name \"{name}\" already used in WITH query column list");
            return Err(self.error(SqlState::SYNTAX_ERROR, message, at));
        }
        Ok(())
    }

    fn search(&self, clause: &'a CTESearchClause, columns: &[RelColumn]) -> Result<Search> {
        let numbers = self.listed(&names(&clause.search_col_list), columns, "search", clause.location)?;
        let name = clause.search_seq_column.as_deref().unwrap_or("").to_string();
        self.check_new(&name, columns, "search sequence", clause.location)?;
        Ok(Search { columns: numbers, breadth: clause.search_breadth_first, name })
    }

    fn cycle(&mut self, clause: &'a CTECycleClause, columns: &[RelColumn]) -> Result<Cycle> {
        let at = clause.location;
        let numbers = self.listed(&names(&clause.cycle_col_list), columns, "cycle", at)?;
        let (value, otherwise) = match (&clause.cycle_mark_value, &clause.cycle_mark_default) {
            (Some(value), Some(otherwise)) => (self.expr(value)?, self.expr(otherwise)?),
            _ => {
                let constant = |b| Located { expr: Expr::Const(Datum::Bool(b), Ty::of(oid::BOOL)), at: -1 };
                (constant(true), constant(false))
            }
        };
        let types = [(value.expr.ty().oid, value.at), (otherwise.expr.ty().oid, otherwise.at)];
        let ty = self.common_type(&types, Some("CYCLE"))?.unwrap_or(oid::TEXT);
        let value = self.coerce_to_common(value, ty, "CYCLE/SET/TO")?.expr;
        let otherwise = self.coerce_to_common(otherwise, ty, "CYCLE/SET/DEFAULT")?.expr;
        if super::resolve::binary_operator("=", ty, ty).is_err() {
            let shown = self.type_name(ty);
            let message = format!("could not identify an equality operator for type {shown}");
            return Err(Error::new(SqlState::UNDEFINED_FUNCTION, message));
        }
        let mark = clause.cycle_mark_column.as_deref().unwrap_or("").to_string();
        let path = clause.cycle_path_column.as_deref().unwrap_or("").to_string();
        self.check_new(&mark, columns, "cycle mark", at)?;
        self.check_new(&path, columns, "cycle path", at)?;
        if mark == path {
            let message = "cycle mark column name and cycle path column name are the same";
            return Err(self.error(SqlState::SYNTAX_ERROR, message, at));
        }
        Ok(Cycle { columns: numbers, mark, path, value, otherwise })
    }

    /// Adds the columns to a recursive query that is otherwise bound; `id` is what its recursive part reads it as.
    pub(super) fn add_searched(&mut self, added: &Added, bound: &mut BoundQuery, id: usize, name: &str) -> Result<()> {
        let columns: Vec<RelColumn> = self.scope().rels[0].columns.clone();
        let extra = added.columns();
        let Body::SetOp { left, right, .. } = &mut bound.query.body else {
            return Err(Error::internal("a recursive query that is no union"));
        };
        let first = std::mem::take(&mut **left);
        **left = first_rows(added, first, &columns);
        let Some(rel) = right.rels.iter().position(|r| matches!(r.kind, RelKind::WorkTable(own) if own == id)) else {
            let message = format!(
                "with a SEARCH or CYCLE clause, the recursive reference to WITH query \"{name}\" must be at the top \
                 level of its right-hand SELECT"
            );
            return Err(Error::unsupported(message));
        };
        let mut next = std::mem::take(&mut **right);
        for (i, column) in extra.iter().enumerate() {
            let old = Column { level: 0, rel, column: columns.len() + i, ty: column.ty };
            next.targets.push(Target { expr: Expr::Column(old), name: column.name.clone(), junk: false });
        }
        let next = self.next_rows(added, next, &columns, &extra)?;
        if let Body::SetOp { right, .. } = &mut bound.query.body {
            **right = next;
        }
        for column in extra {
            let entry = &mut self.scope().rels[0];
            let expr = Expr::Column(Column { level: 0, rel: 0, column: entry.columns.len(), ty: column.ty });
            bound.query.targets.push(Target { expr, name: column.name.clone(), junk: false });
            bound.at.push(-1);
            entry.columns.push(column);
        }
        Ok(())
    }

    /// The recursive part with the columns that are added, computed from those of the row before.
    fn next_rows(&mut self, added: &Added, next: Query, columns: &[RelColumn], extra: &[RelColumn]) -> Result<Query> {
        let mut at = columns.len();
        let mut targets = passed_on(columns);
        let mut filter = None;
        if let Some(search) = &added.search {
            let (old, new) = (column(at, extra[0].ty), row(&search.columns, columns));
            let expr = match search.breadth {
                true => call("record deeper", vec![old, new], oid::RECORD)?,
                false => call("record appended", vec![old, new], oid::RECORD_ARRAY)?,
            };
            targets.push(Target { expr, name: search.name.clone(), junk: false });
            at += 1;
        }
        if let Some(cycle) = &added.cycle {
            let (mark, path) = (column(at, cycle.value.ty()), column(at + 1, Ty::of(oid::RECORD_ARRAY)));
            let new = row(&cycle.columns, columns);
            let met = call("record among", vec![new.clone(), path.clone()], oid::BOOL)?;
            let expr = Expr::Case {
                simple: false,
                branches: vec![(met, cycle.value.clone())],
                otherwise: Some(Box::new(cycle.otherwise.clone())),
                ty: cycle.value.ty(),
            };
            targets.push(Target { expr, name: cycle.mark.clone(), junk: false });
            let expr = call("record appended", vec![path, new], oid::RECORD_ARRAY)?;
            targets.push(Target { expr, name: cycle.path.clone(), junk: false });
            // Nothing follows a row that was met before.
            let located = |expr: Expr| Located { expr, at: -1 };
            let goes_on = self.operator("<>", Some(located(mark)), located(cycle.value.clone()), -1)?;
            filter = Some(self.coerce(goes_on, oid::BOOL, CastContext::Implicit, -1)?.expr);
        }
        let shown = super::from::visible_columns(&next);
        Ok(Query { targets, filter, ..wrap(next, shown) })
    }
}

fn passed_on(columns: &[RelColumn]) -> Vec<Target> {
    let target = |(i, c): (usize, &RelColumn)| Target { expr: column(i, c.ty), name: c.name.clone(), junk: false };
    columns.iter().enumerate().map(target).collect()
}

/// The non-recursive part with the columns that are added.
fn first_rows(added: &Added, first: Query, columns: &[RelColumn]) -> Query {
    let mut targets = passed_on(columns);
    if let Some(search) = &added.search {
        let expr = match search.breadth {
            true => {
                let zero = Expr::Const(Datum::Int8(0), Ty::of(oid::INT8));
                let fields = search.columns.iter().map(|&n| column(n, columns[n].ty));
                Expr::Row(std::iter::once(zero).chain(fields).collect(), Ty::of(oid::RECORD))
            }
            false => list_of(row(&search.columns, columns)),
        };
        targets.push(Target { expr, name: search.name.clone(), junk: false });
    }
    if let Some(cycle) = &added.cycle {
        targets.push(Target { expr: cycle.otherwise.clone(), name: cycle.mark.clone(), junk: false });
        let expr = list_of(row(&cycle.columns, columns));
        targets.push(Target { expr, name: cycle.path.clone(), junk: false });
    }
    let shown = super::from::visible_columns(&first);
    Query { targets, ..wrap(first, shown) }
}
