//! Domains taken out of what has been bound: behind the binder a value has the type that it is held as.
//!
//! The binder keeps the domains of expressions, because overloads, common types and the columns of views depend on them.
//! Nothing that plans or runs a statement does: a domain's conditions are calls by then.

use sql_ir::{CastKind, Expr, Query, RelKind, Statement, Ty};
use types::user;

use super::visit::{children_mut, query_parts_mut, statement_parts_mut};

fn ty(ty: &mut Ty) {
    let (oid, typmod) = user::plain_type(ty.oid, ty.typmod);
    (ty.oid, ty.typmod) = (oid, typmod);
}

/// An expression, subqueries included.
pub(super) fn expr(expr: &mut Expr) {
    if user::any_domains() {
        each(expr);
    }
}

/// As [`expr`], of an expression that is given away.
pub(super) fn erased(mut value: Expr) -> Expr {
    expr(&mut value);
    value
}

/// A statement.
pub(super) fn statement(statement: &mut Statement) {
    if user::any_domains() {
        heads(statement);
        statement_parts_mut(statement, &mut each, &mut query);
    }
}

/// A query, those inside of it included.
pub(super) fn whole_query(value: &mut Query) {
    if user::any_domains() {
        query(value);
    }
}

fn each(expr: &mut Expr) {
    children_mut(expr, &mut each, &mut query);
    match expr {
        Expr::Const(_, own) | Expr::Param(_, own) | Expr::Coalesce(_, own) | Expr::Row(_, own) => ty(own),
        Expr::Column(column) => ty(&mut column.ty),
        Expr::Array { element, ty: own, .. } => {
            *element = user::plain_type(*element, -1).0;
            ty(own);
        }
        Expr::Cast { ty: own, .. } => ty(own),
        Expr::Agg { ty: own, .. }
        | Expr::Call { ty: own, .. }
        | Expr::Case { ty: own, .. }
        | Expr::NullIf { ty: own, .. }
        | Expr::MinMax { ty: own, .. }
        | Expr::Subscript { ty: own, .. }
        | Expr::Subquery { ty: own, .. } => ty(own),
        Expr::WholeRow { .. }
        | Expr::And(_)
        | Expr::Or(_)
        | Expr::Not(_)
        | Expr::IsNull { .. }
        | Expr::BooleanTest { .. }
        | Expr::Distinct { .. }
        | Expr::AnyAll { .. }
        | Expr::RowCompare { .. }
        | Expr::Default => {}
    }
    // What only took a domain off is nothing now, nor is COLLATE.
    if let Expr::Cast { arg, ty, kind: CastKind::Relabel | CastKind::Collate(_) | CastKind::Called, .. } = expr
        && arg.ty() == *ty
    {
        *expr = std::mem::replace(&mut **arg, Expr::Default);
    }
}

fn query(value: &mut Query) {
    head(value);
    query_parts_mut(value, &mut each, &mut query);
}

/// The types that a query has beside those of its expressions.
fn head(query: &mut Query) {
    rels(&mut query.rels);
    query.aggs.iter_mut().for_each(|agg| ty(&mut agg.ty));
    if let sql_ir::Body::Modify(statement) = &mut query.body {
        heads(statement);
    }
}

fn rels(rels: &mut [sql_ir::Rel]) {
    for rel in rels {
        rel.columns.iter_mut().for_each(|column| ty(&mut column.ty));
        if let RelKind::Window(call) = &mut rel.kind {
            ty(&mut call.ty);
        }
    }
}

/// As [`head`], of the query that a statement is without being one.
fn heads(statement: &mut Statement) {
    match statement {
        Statement::Insert(insert) => rels(&mut insert.rels),
        Statement::Update(update) => head(&mut update.query),
        Statement::Delete(delete) => head(&mut delete.query),
        Statement::Merge(merge) => head(&mut merge.query),
        Statement::Select(_) => {}
    }
}
