//! Subqueries in expressions (`transformSubLink`).

use base::{Result, SqlState};
use rupg_sql::nodes::{Node, SelectStmt, SubLink, SubLinkType as Kind};
use sql_ir::{Expr, Query, SubqueryKind, Ty};
use types::{array_of, oid};

use super::cte::RecursiveContext;
use super::select::BoundQuery;
use super::{Binder, Located};

impl<'a> Binder<'a, '_> {
    #[inline(never)]
    pub(super) fn sublink(&mut self, link: &'a SubLink) -> Result<Located> {
        let at = link.location;
        let refused = match self.place() {
            super::scope::ClauseKind::Default => Some("DEFAULT expression"),
            super::scope::ClauseKind::Check => Some("check constraint"),
            super::scope::ClauseKind::Generated => Some("column generation expression"),
            super::scope::ClauseKind::Transform => Some("transform expression"),
            super::scope::ClauseKind::IndexExpression => Some("index expression"),
            super::scope::ClauseKind::IndexPredicate => Some("index predicate"),
            super::scope::ClauseKind::Argument => Some("EXECUTE parameter"),
            super::scope::ClauseKind::CopyWhere => Some("COPY FROM WHERE condition"),
            _ => None,
        };
        if let Some(name) = refused {
            return Err(self.unsupported(format!("cannot use subquery in {name}"), at));
        }
        let Some(Node::SelectStmt(select)) = &link.subselect else {
            return Err(base::Error::internal("a subquery without a query"));
        };
        let context = std::mem::replace(&mut self.recursive_context, RecursiveContext::Subquery);
        let bound = self.sublink_of(link, select);
        self.recursive_context = context;
        bound
    }

    fn sublink_of(&mut self, link: &'a SubLink, select: &'a SelectStmt) -> Result<Located> {
        let at = link.location;
        match link.subLinkType {
            Kind::EXISTS_SUBLINK => {
                let query = Box::new(self.subquery(select, true)?.query);
                let ty = Ty::of(oid::BOOL);
                Ok(Located { expr: Expr::Subquery { kind: SubqueryKind::Exists, query, ty }, at })
            }
            Kind::EXPR_SUBLINK => self.scalar_subquery(select, at),
            Kind::ARRAY_SUBLINK => self.array_subquery(select, at),
            Kind::ANY_SUBLINK => self.quantified(link, select, false),
            Kind::ALL_SUBLINK => self.quantified(link, select, true),
            _ => Err(self.unsupported("this kind of subquery is not supported", at)),
        }
    }

    fn scalar_subquery(&mut self, select: &'a SelectStmt, at: i32) -> Result<Located> {
        let query = self.subquery(select, true)?.query;
        let ty = self.single_column(&query, at)?;
        Ok(Located { expr: Expr::Subquery { kind: SubqueryKind::Scalar, query: Box::new(query), ty }, at })
    }

    fn array_subquery(&mut self, select: &'a SelectStmt, at: i32) -> Result<Located> {
        let query = self.subquery(select, true)?.query;
        let element = self.single_column(&query, at)?;
        super::domain::check_array_of(element.oid)?;
        let array = if super::coerce::is_array(element.oid) { Some(element.oid) } else { array_of(element.oid) };
        let Some(array) = array else {
            let message = format!("could not find array type for data type {}", self.type_name(element.oid));
            return Err(self.error(SqlState::UNDEFINED_OBJECT, message, at));
        };
        let ty = Ty { oid: array, typmod: element.typmod };
        Ok(Located { expr: Expr::Subquery { kind: SubqueryKind::Array, query: Box::new(query), ty }, at })
    }

    fn single_column(&self, query: &Query, at: i32) -> Result<Ty> {
        let mut visible = query.targets.iter().filter(|t| !t.junk);
        match (visible.next(), visible.next()) {
            (Some(target), None) => Ok(target.expr.ty()),
            _ => Err(self.error(SqlState::SYNTAX_ERROR, "subquery must return only one column", at)),
        }
    }

    /// `left op ANY/ALL (subquery)` and IN.
    fn quantified(&mut self, link: &'a SubLink, select: &'a SelectStmt, all: bool) -> Result<Located> {
        let name = match link.operName.is_empty() {
            true => "=",
            false => self.operator_name(&link.operName, link.location)?,
        };
        let left = match &link.testexpr {
            Some(Node::RowExpr(row)) => self.exprs(&row.args)?,
            Some(node) => vec![self.expr(node)?],
            None => return Err(base::Error::internal("a quantified comparison without left side")),
        };
        let mut bound = self.subquery(select, true)?;
        let at = left.first().map_or(link.location, |l| l.at);
        if left.len() > 1 && matches!(name, "<" | "<=" | ">" | ">=") {
            let expr = self.ordered_rows(name, left, bound.query, all, link.location)?;
            return Ok(Located { expr, at });
        }
        let (left, functions) = self.column_comparisons(name, left, &mut bound, link.location)?;
        let query = Box::new(bound.query);
        let kind = match all {
            false => SubqueryKind::Any { left, functions },
            true => SubqueryKind::All { left, functions },
        };
        Ok(Located { expr: Expr::Subquery { kind, query, ty: Ty::of(oid::BOOL) }, at })
    }

    /// `(a, b) < ANY/ALL (subquery)`: whether `true = ANY/ALL` of what the comparison gives for its rows.
    fn ordered_rows(&mut self, name: &str, left: Vec<Located>, query: Query, all: bool, at: i32) -> Result<Expr> {
        let columns = super::from::visible_columns(&query);
        self.check_width(left.len(), columns.len(), at)?;
        if left.iter().any(|value| super::visit::calls_volatile(&value.expr)) {
            return Err(self.unsupported("comparing a volatile row with the rows of a subquery is not supported", at));
        }
        let inwards = |mut value: Located| {
            super::visit::shift_levels(&mut value.expr, 1);
            value
        };
        let left = left.into_iter().map(inwards).collect();
        let right = columns.iter().enumerate().map(|(column, c)| {
            let expr = Expr::Column(sql_ir::Column { level: 0, rel: 0, column, ty: c.ty });
            Located { expr, at }
        });
        let compared = self.row_comparison(name, left, right.collect(), at)?.expr;
        let target = sql_ir::Target { expr: compared, name: String::new(), junk: false };
        let query = Query { targets: vec![target], ..super::select::wrap(query, columns) };
        let ty = Ty::of(oid::BOOL);
        let truth = Located { expr: Expr::Const(types::Datum::Bool(true), ty), at };
        let functions = vec![self.resolve_operator("=", Some(truth.clone()), truth.clone(), at)?.function];
        let left = vec![truth.expr];
        let kind = match all {
            false => SubqueryKind::Any { left, functions },
            true => SubqueryKind::All { left, functions },
        };
        Ok(Expr::Subquery { kind, query: Box::new(query), ty })
    }

    fn check_width(&self, left: usize, columns: usize, at: i32) -> Result<()> {
        let few = match left.cmp(&columns) {
            std::cmp::Ordering::Equal => return Ok(()),
            std::cmp::Ordering::Less => "many",
            std::cmp::Ordering::Greater => "few",
        };
        Err(self.error(SqlState::SYNTAX_ERROR, format!("subquery has too {few} columns"), at))
    }

    /// One operator per column; the subquery's columns get the operators' right types.
    fn column_comparisons(
        &mut self,
        name: &str,
        left: Vec<Located>,
        bound: &mut BoundQuery,
        at: i32,
    ) -> Result<(Vec<Expr>, Vec<&'static sql_functions::Function>)> {
        let columns = super::from::visible_columns(&bound.query);
        self.check_width(left.len(), columns.len(), at)?;
        let mut lefts = Vec::with_capacity(left.len());
        let mut functions = Vec::with_capacity(left.len());
        let mut wanted = Vec::with_capacity(left.len());
        for (value, column) in left.into_iter().zip(&columns) {
            let stand_in = Expr::Param(usize::MAX, column.ty);
            let found = self.resolve_operator(name, Some(value), Located { expr: stand_in, at }, at)?;
            if found.ty.oid != oid::BOOL {
                let message = format!(
                    "row comparison operator must yield type boolean, not type {}",
                    self.type_name(found.ty.oid)
                );
                return Err(self.error(SqlState::DATATYPE_MISMATCH, message, at));
            }
            wanted.push(found.args[1].ty().oid);
            functions.push(found.function);
            lefts.extend(found.args.into_iter().next());
        }
        let width = wanted.len();
        self.retarget(bound, width, |b, value, i| {
            b.coerce(value, wanted[i], sql_functions::CastContext::Implicit, -1)
        })?;
        Ok((lefts, functions))
    }

    /// `(a, b) op (SELECT …)`: the subquery gives one row.
    pub(super) fn row_sublink(
        &mut self,
        left: &'a [Option<Node>],
        operator: &'a [Option<Node>],
        link: &'a SubLink,
        at: i32,
    ) -> Result<Located> {
        let name = self.operator_name(operator, at)?;
        let left = self.exprs(left)?;
        let Some(Node::SelectStmt(select)) = &link.subselect else {
            return Err(base::Error::internal("a subquery without a query"));
        };
        let mut right = Vec::with_capacity(left.len());
        for i in 0..left.len() {
            let query = self.subquery(select, true)?.query;
            let have = query.targets.iter().filter(|t| !t.junk).count();
            if have != left.len() {
                let few = if have < left.len() { "few" } else { "many" };
                let message = format!("subquery has too {few} columns");
                return Err(self.error(SqlState::SYNTAX_ERROR, message, at));
            }
            if super::visit::is_volatile(&query) {
                return Err(self.unsupported("comparing a row with a volatile subquery is not supported", at));
            }
            right.push(Located { expr: pick_column(query, i), at: link.location });
        }
        self.row_comparison(name, left, right, at)
    }
}

/// One column of a one-row subquery.
pub(super) fn pick_column(query: Query, i: usize) -> Expr {
    let columns = super::from::visible_columns(&query);
    let column = sql_ir::Column { level: 0, rel: 0, column: i, ty: columns[i].ty };
    let target = sql_ir::Target { expr: Expr::Column(column), name: columns[i].name.clone(), junk: false };
    let ty = column.ty;
    let query = Query { targets: vec![target], ..super::select::wrap(query, columns) };
    Expr::Subquery { kind: SubqueryKind::Scalar, query: Box::new(query), ty }
}
