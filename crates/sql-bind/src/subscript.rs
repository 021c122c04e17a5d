//! Subscripts of documents, and assignments to parts of columns: `doc['a'][1]`, `SET list[2] = 5`.

use base::{Result, SqlState};
use rupg_sql::nodes::{A_Indices, Node};
use sql_functions::{self as functions, CastContext, Function};
use sql_ir::{Expr, Ty};
use types::{Datum, element_of, oid};

use super::coerce::{can_coerce, is_array};
use super::{Binder, Located, fold};

fn internal(name: &str) -> Result<&'static Function> {
    let function = functions::functions_named(name).first().copied();
    function.ok_or_else(|| base::Error::internal(format!("no function \"{name}\"")))
}

impl<'a> Binder<'a, '_> {
    /// The steps into a document as a `text[]`.
    fn document_path(&mut self, steps: &[&'a A_Indices]) -> Result<Expr> {
        let mut elements = Vec::with_capacity(steps.len());
        for step in steps {
            if step.is_slice {
                let node = step.uidx.as_ref().or(step.lidx.as_ref());
                let at = node.map_or(-1, super::node::location);
                let message = "jsonb subscript does not support slices";
                return Err(self.error(SqlState::DATATYPE_MISMATCH, message, at));
            }
            let index = self.operand(step.uidx.as_ref())?;
            let (from, at) = (index.expr.ty().oid, index.at);
            let target = match from {
                oid::UNKNOWN => oid::TEXT,
                from => {
                    let fits: Vec<base::Oid> = [oid::INT4, oid::TEXT]
                        .into_iter()
                        .filter(|&to| can_coerce(from, to, CastContext::Implicit))
                        .collect();
                    let error = |hint: &str| {
                        let message = format!("subscript type {} is not supported", self.type_name(from));
                        self.error(SqlState::DATATYPE_MISMATCH, message, at).hint(hint)
                    };
                    match fits.as_slice() {
                        [one] => *one,
                        [] => return Err(error("jsonb subscript must be coercible to either integer or text.")),
                        _ => return Err(error("jsonb subscript must be coercible to only one type, integer or text.")),
                    }
                }
            };
            let index = self.coerce(index, target, CastContext::Implicit, -1)?;
            let index = self.coerce_to(index, Ty::of(oid::TEXT), CastContext::Explicit, -1)?;
            elements.push(index.map(|i| i.expr).ok_or_else(|| base::Error::internal("a subscript that is no text"))?);
        }
        Ok(Expr::Array { elements, element: oid::TEXT, nested: false, ty: Ty::of(oid::TEXT_ARRAY) })
    }

    /// `document[step]…`
    pub(super) fn document_subscript(&mut self, value: Located, steps: &[&'a A_Indices]) -> Result<Located> {
        let path = self.document_path(steps)?;
        let function = internal("jsonb_extract_path")?;
        let Located { expr, at } = value;
        let expr = fold::call(self.cx, function, vec![expr, path], Ty::of(oid::JSONB), at);
        Ok(Located { expr, at })
    }

    /// The new value of a column of which a part is assigned to.
    pub(super) fn assign_part(
        &mut self,
        container: Expr,
        column: (&str, Ty, i32),
        indirection: &'a [Option<Node>],
        value: Located,
    ) -> Result<Expr> {
        let (name, ty, target_at) = column;
        let mut steps = Vec::with_capacity(indirection.len());
        for node in indirection.iter().flatten() {
            match node {
                Node::A_Indices(step) => steps.push(step),
                Node::String(field) => {
                    let message = format!(
                        "cannot assign to field \"{field}\" of column \"{name}\" because its type {} is not a composite \
                         type",
                        self.type_name(ty.oid)
                    );
                    return Err(self.error(SqlState::DATATYPE_MISMATCH, message, target_at));
                }
                _ => return Err(self.unsupported("assignment to this part of a column is not supported", value.at)),
            }
        }
        let steps: Vec<&'a A_Indices> = steps.into_iter().map(|s| &**s).collect();
        if ty.oid == oid::JSONB {
            let path = self.document_path(&steps)?;
            let value = self.part_value(value, ty, column)?;
            let function = internal("jsonb assign")?;
            return Ok(Expr::Call { function, args: vec![container, path, value], ty, location: -1 });
        }
        self.assign_element(container, column, &steps, value)
    }

    fn assign_element(
        &mut self,
        container: Expr,
        column: (&str, Ty, i32),
        steps: &[&'a A_Indices],
        value: Located,
    ) -> Result<Expr> {
        let (_, ty, target_at) = column;
        let element = match element_of(ty.oid) {
            Some(element) if is_array(ty.oid) => element,
            _ => {
                let message = format!(
                    "cannot subscript type {} because it does not support subscripting",
                    self.type_name(ty.oid)
                );
                // A new row has no column yet that could be pointed at.
                let at = if matches!(container, Expr::Const(..)) { -1 } else { target_at };
                return Err(self.error(SqlState::DATATYPE_MISMATCH, message, at));
            }
        };
        if steps.len() > types::DIMENSIONS_MAX {
            return Err(types::too_many_dimensions(steps.len()));
        }
        let is_slice = steps.iter().any(|s| s.is_slice);
        let mut bounds = Vec::with_capacity(2 * steps.len());
        for step in steps {
            let one = Expr::Const(Datum::Int4(1), Ty::of(oid::INT4));
            match (is_slice, step.is_slice) {
                (true, true) => bounds.push(self.slice_bound(step.lidx.as_ref())?),
                (true, false) => bounds.push(one),
                (false, _) => {}
            }
            bounds.push(self.slice_bound(step.uidx.as_ref())?);
        }
        let target = if is_slice { ty } else { Ty { oid: element, typmod: ty.typmod } };
        let value = self.part_value(value, target, column)?;
        let function = internal(if is_slice { "array assign slice" } else { "array assign" })?;
        let held = types::user::plain_type(element, -1).0;
        let type_of_elements = Expr::Const(Datum::Oid(held.0), Ty::of(oid::OID));
        let mut args = vec![container, type_of_elements, value];
        args.extend(bounds);
        Ok(Expr::Call { function, args, ty, location: -1 })
    }

    /// The value for a part of a column.
    pub(super) fn part_value(&mut self, value: Located, ty: Ty, column: (&str, Ty, i32)) -> Result<Expr> {
        let (from, (name, _, at)) = (value.expr.ty().oid, column);
        match self.coerce_to(value, ty, CastContext::Assignment, -1)? {
            Some(value) => Ok(value.expr),
            None => {
                let message = format!(
                    "subscripted assignment to \"{name}\" requires type {} but expression is of type {}",
                    self.type_name(ty.oid),
                    self.type_name(from)
                );
                Err(self
                    .error(SqlState::DATATYPE_MISMATCH, message, at)
                    .hint("You will need to rewrite or cast the expression."))
            }
        }
    }
}
