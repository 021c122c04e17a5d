//! Comparisons that are more than an operator: of rows, with lists and arrays, BETWEEN, IS DISTINCT FROM, NULLIF.

use base::work::Count;
use base::{Result, SqlState};
use rupg_sql::nodes::{A_Expr, A_Expr_Kind as Kind, Node};
use sql_functions::CastContext;
use sql_ir::{AnyAllSource, CompareOp, Expr, Ty};
use types::{Datum, array_of, element_of, oid};

use super::coerce::{base_of, can_coerce};
use super::expr::{and, or};
use super::{Binder, Located, fold};

impl<'a> Binder<'a, '_> {
    /// `(a, b) op (c, d)`
    pub(super) fn row_comparison(
        &mut self,
        name: &str,
        left: Vec<Located>,
        right: Vec<Located>,
        at: i32,
    ) -> Result<Located> {
        if left.len() != right.len() {
            let message = "unequal number of entries in row expressions";
            return Err(self.error(SqlState::SYNTAX_ERROR, message, at));
        }
        if left.is_empty() {
            let message = "cannot compare rows of zero length";
            return Err(self.error(SqlState::FEATURE_NOT_SUPPORTED, message, at));
        }
        let single = left.len() == 1;
        let op = match name {
            "=" => CompareOp::Eq,
            "<>" => CompareOp::Ne,
            "<" => CompareOp::Lt,
            "<=" => CompareOp::Le,
            ">" => CompareOp::Gt,
            ">=" => CompareOp::Ge,
            _ if single => CompareOp::Eq,
            _ => {
                let message = format!("could not determine interpretation of row comparison operator {name}");
                return Err(self
                    .error(SqlState::FEATURE_NOT_SUPPORTED, message, at)
                    .hint("Row comparison operators must be associated with btree operator families."));
            }
        };
        let mut pairs = left.into_iter().zip(right);
        if single || matches!(op, CompareOp::Eq | CompareOp::Ne) {
            let parts: Result<Vec<Expr>> =
                pairs.map(|(l, r)| self.operator(name, Some(l), r, at).map(|v| v.expr)).collect();
            let expr = match op {
                CompareOp::Ne => or(parts?),
                _ => and(parts?),
            };
            return Ok(Located { expr, at });
        }
        let parts: Result<Vec<_>> = pairs
            .by_ref()
            .map(|(l, r)| {
                let found = self.resolve_operator("<", Some(l), r, at)?;
                let (left, right) = (found.operator.left, found.operator.right);
                let equal = super::resolve::binary_operator("=", left, right)
                    .ok()
                    .and_then(super::resolve::operator_function)
                    .ok_or_else(|| self.unsupported("row comparison of these types is not supported", at))?;
                let mut args = found.args.into_iter();
                let (Some(l), Some(r)) = (args.next(), args.next()) else {
                    return Err(base::Error::internal("a comparison without operands"));
                };
                Ok((l, r, equal, found.function))
            })
            .collect();
        Ok(Located { expr: Expr::RowCompare { op, pairs: parts? }, at })
    }

    /// `x [NOT] IN (list)`
    #[inline(never)]
    pub(super) fn in_list(&mut self, e: &'a A_Expr) -> Result<Located> {
        let name = self.operator_name(&e.name, e.location)?;
        let negated = name == "<>";
        let (Some(left_node), Some(Node::List(list))) = (&e.lexpr, &e.rexpr) else {
            return Err(base::Error::internal("IN without a list"));
        };
        if let Node::RowExpr(l) = left_node {
            return self.row_in_list(name, negated, l, list, e.location);
        }
        let left = self.expr(left_node)?;
        let at = left.at;
        let (mut plain, mut with_columns) = (Vec::with_capacity(list.len()), Vec::new());
        for value in self.exprs(list)? {
            if super::visit::has_columns(&value.expr) {
                with_columns.push(value);
            } else {
                plain.push(value);
            }
        }
        let mut parts = Vec::new();
        if plain.len() > 1 {
            let mut types = Vec::with_capacity(1 + plain.len());
            types.push((left.expr.ty().oid, left.at));
            types.extend(plain.iter().counted(4).map(|v| (v.expr.ty().oid, v.at)));
            let all_fit =
                |t: &base::Oid| types.iter().counted(4).all(|&(ty, _)| can_coerce(ty, *t, CastContext::Implicit));
            let common = self.common_type(&types, None)?.filter(|&t| t != oid::RECORD && array_of(t).is_some());
            let common = common.filter(all_fit);
            if let Some(common) = common {
                let mut values = Vec::with_capacity(plain.len());
                for value in std::mem::take(&mut plain) {
                    values.push(self.coerce_to_common(value, common, "IN")?);
                }
                parts.push(self.list_comparison(name, left.clone(), values, common, negated, e.location)?);
            }
        }
        for value in plain.into_iter().chain(with_columns) {
            parts.push(self.operator(name, Some(left.clone()), value, e.location)?.expr);
        }
        Ok(Located { expr: if negated { and(parts) } else { or(parts) }, at })
    }

    fn row_in_list(
        &mut self,
        name: &str,
        negated: bool,
        left: &'a rupg_sql::nodes::RowExpr,
        list: &'a [Option<Node>],
        at: i32,
    ) -> Result<Located> {
        let mut parts = Vec::with_capacity(list.len());
        for node in list.iter().flatten() {
            let Node::RowExpr(right) = node else {
                return Err(self.unsupported("IN of a row and an expression that is no row is not supported", at));
            };
            let left = self.exprs(&left.args)?;
            let right = self.exprs(&right.args)?;
            parts.push(self.row_comparison(name, left, right, at)?.expr);
        }
        Ok(Located { expr: if negated { and(parts) } else { or(parts) }, at })
    }

    /// `left = ANY (list)` over expressions of one type.
    fn list_comparison(
        &mut self,
        name: &str,
        left: Located,
        values: Vec<Located>,
        element: base::Oid,
        all: bool,
        at: i32,
    ) -> Result<Expr> {
        let stand_in = Located { expr: Expr::Const(Datum::Null, Ty::of(element)), at };
        let found = self.resolve_operator(name, Some(left), stand_in, at)?;
        let right_type = found.args[1].ty().oid;
        let mut list = Vec::with_capacity(values.len());
        for value in values {
            list.push(self.coerce(value, right_type, CastContext::Implicit, -1)?.expr);
        }
        let left = found.args.into_iter().next().ok_or_else(|| base::Error::internal("a comparison of nothing"))?;
        Ok(fold::any_all(self.cx, all, found.function, left, list))
    }

    /// `x op ANY/ALL (array)`: `make_scalar_array_op`
    #[inline(never)]
    pub(super) fn any_all(&mut self, e: &'a A_Expr, all: bool) -> Result<Located> {
        let left = self.operand(e.lexpr.as_ref())?;
        let mut right = self.operand(e.rexpr.as_ref())?;
        let at = left.at;
        let name = self.operator_name(&e.name, e.location)?;
        let (left_type, right_type) = (left.expr.ty().oid, right.expr.ty().oid);
        let element = match right_type {
            oid::UNKNOWN => oid::UNKNOWN,
            ty => match element_of(base_of(ty)) {
                Some(element) => element,
                None => {
                    let message = "op ANY/ALL (array) requires array on right side";
                    return Err(self.error(SqlState::WRONG_OBJECT_TYPE, message, e.location));
                }
            },
        };
        let wanted = if left_type == oid::UNKNOWN && element == oid::UNKNOWN { oid::TEXT } else { element };
        let stand_in = match wanted {
            oid::UNKNOWN => Expr::Const(Datum::Null, Ty::of(oid::UNKNOWN)),
            ty => Expr::Const(Datum::Null, Ty::of(ty)),
        };
        let found = self.resolve_operator(name, Some(left), Located { expr: stand_in, at: right.at }, e.location)?;
        if found.ty.oid != oid::BOOL {
            let message = "op ANY/ALL (array) requires operator to yield boolean";
            return Err(self.error(SqlState::WRONG_OBJECT_TYPE, message, e.location));
        }
        let target = found.args[1].ty().oid;
        let Some(array) = array_of(target) else {
            let message = format!("could not find array type for data type {}", self.type_name(target));
            return Err(self.error(SqlState::UNDEFINED_OBJECT, message, e.location));
        };
        // Vectors of the catalog are read as arrays of their elements.
        if element != target || element == oid::UNKNOWN {
            right = self.coerce(right, array, CastContext::Implicit, -1)?;
        }
        let left = found.args.into_iter().next().ok_or_else(|| base::Error::internal("a comparison of nothing"))?;
        let right = AnyAllSource::Array(Box::new(right.expr));
        Ok(Located { expr: Expr::AnyAll { all, function: found.function, left: Box::new(left), right }, at })
    }

    #[inline(never)]
    pub(super) fn is_distinct(&mut self, e: &'a A_Expr, negated: bool) -> Result<Located> {
        if let (Some(Node::RowExpr(l)), Some(Node::RowExpr(r))) = (&e.lexpr, &e.rexpr) {
            let (left, right) = (self.exprs(&l.args)?, self.exprs(&r.args)?);
            if left.len() != right.len() {
                let message = "unequal number of entries in row expressions";
                return Err(self.error(SqlState::SYNTAX_ERROR, message, e.location));
            }
            let parts: Result<Vec<Expr>> =
                left.into_iter().zip(right).map(|(l, r)| self.distinct_from(l, r, negated, e.location)).collect();
            let expr = if negated { and(parts?) } else { or(parts?) };
            return Ok(Located { expr, at: e.location });
        }
        let left = self.operand(e.lexpr.as_ref())?;
        let right = self.operand(e.rexpr.as_ref())?;
        let at = left.at;
        // Against NULL it is a test for NULL.
        let is_null = |v: &Located| matches!(&v.expr, Expr::Const(Datum::Null, ty) if ty.oid == oid::UNKNOWN);
        let tested = match (is_null(&left), is_null(&right)) {
            (_, true) => Some(left.clone()),
            (true, _) => Some(right.clone()),
            _ => None,
        };
        if let Some(value) = tested {
            let arg = Box::new(value.expr);
            return Ok(Located { expr: Expr::IsNull { arg, negated: !negated, fields: false }, at });
        }
        Ok(Located { expr: self.distinct_from(left, right, negated, e.location)?, at })
    }

    fn distinct_from(&mut self, left: Located, right: Located, negated: bool, at: i32) -> Result<Expr> {
        let found = self.resolve_operator("=", Some(left), right, at)?;
        if found.ty.oid != oid::BOOL {
            let message = "IS DISTINCT FROM requires = operator to yield boolean";
            return Err(self.error(SqlState::DATATYPE_MISMATCH, message, at));
        }
        let args = two(found.args)?;
        Ok(Expr::Distinct { equal: found.function, args: Box::new(args), negated })
    }

    #[inline(never)]
    pub(super) fn null_if(&mut self, e: &'a A_Expr) -> Result<Located> {
        let left = self.operand(e.lexpr.as_ref())?;
        let right = self.operand(e.rexpr.as_ref())?;
        let found = self.resolve_operator("=", Some(left), right, e.location)?;
        if found.ty.oid != oid::BOOL {
            let message = "NULLIF requires = operator to yield boolean";
            return Err(self.error(SqlState::DATATYPE_MISMATCH, message, e.location));
        }
        let args = two(found.args)?;
        let ty = args[0].ty();
        Ok(Located { expr: Expr::NullIf { equal: found.function, args: Box::new(args), ty }, at: e.location })
    }

    #[inline(never)]
    pub(super) fn between(&mut self, e: &'a A_Expr) -> Result<Located> {
        let Some(Node::List(bounds)) = &e.rexpr else { return Err(base::Error::internal("BETWEEN without bounds")) };
        let (Some(Some(low)), Some(Some(high))) = (bounds.first(), bounds.get(1)) else {
            return Err(base::Error::internal("BETWEEN without bounds"));
        };
        let negated = matches!(e.kind, Kind::AEXPR_NOT_BETWEEN | Kind::AEXPR_NOT_BETWEEN_SYM);
        let symmetric = matches!(e.kind, Kind::AEXPR_BETWEEN_SYM | Kind::AEXPR_NOT_BETWEEN_SYM);
        let expr = match symmetric {
            false => self.within(e, low, high, negated)?,
            true => {
                let one = self.within(e, low, high, negated)?;
                let other = self.within(e, high, low, negated)?;
                if negated { and(vec![one, other]) } else { or(vec![one, other]) }
            }
        };
        self.note_decided(&expr);
        Ok(Located { expr, at: e.location })
    }

    fn within(&mut self, e: &'a A_Expr, low: &'a Node, high: &'a Node, negated: bool) -> Result<Expr> {
        let (above, below) = if negated { ("<", ">") } else { (">=", "<=") };
        let first = self.compared_with_bound(above, e, low)?;
        let second = self.compared_with_bound(below, e, high)?;
        Ok(if negated { or(vec![first, second]) } else { and(vec![first, second]) })
    }

    /// The left side of BETWEEN compared with one bound.
    fn compared_with_bound(&mut self, name: &str, e: &'a A_Expr, bound: &'a Node) -> Result<Expr> {
        if let (Some(Node::RowExpr(left)), Node::RowExpr(right)) = (&e.lexpr, bound) {
            let (left, right) = (self.exprs(&left.args)?, self.exprs(&right.args)?);
            return Ok(self.row_comparison(name, left, right, e.location)?.expr);
        }
        let value = self.operand(e.lexpr.as_ref())?;
        let bound = self.expr(bound)?;
        Ok(self.operator(name, Some(value), bound, e.location)?.expr)
    }
}

fn two(args: Vec<Expr>) -> Result<[Expr; 2]> {
    args.try_into().map_err(|_| base::Error::internal("a comparison without two operands"))
}
