//! Rows as values: set-returning functions of several columns in a select list, and the fields of what they return.

use base::Result;
use rupg_sql::nodes::{FuncCall, Node};
use types::{Datum, oid};

use super::func::Callee;
use super::scope::Found;
use super::{Binder, Located};
use crate::functions;
use crate::ir::{Column, Expr, Query, Rel, RelColumn, RelKind, SetCall, Ty};

/// The internal function that takes a field out of a record.
pub(super) const FIELD: &str = "record field";

/// A call, and the one field that is taken of what it returns.
fn call_and_field(node: &Node) -> Option<(&FuncCall, Option<&str>)> {
    match node {
        Node::FuncCall(call) => Some((call, None)),
        Node::A_Indirection(indirection) => match (indirection.arg.as_ref(), indirection.indirection.as_slice()) {
            (Some(Node::FuncCall(call)), [Some(Node::String(field))]) => Some((call, Some(field))),
            _ => None,
        },
        _ => None,
    }
}

impl<'a> Binder<'a, '_> {
    /// A call of a set-returning function of several columns in the select list, or a field of one, as
    /// [`Binder::function_in_targets`] has it.
    pub(super) fn wide_function_in_targets(
        &mut self,
        node: &'a Node,
        name: &str,
        known: Option<usize>,
    ) -> Result<Option<(Expr, usize)>> {
        let Some((call, field)) = call_and_field(node) else { return Ok(None) };
        let function_name = self.function_name(call)?;
        if call.over.is_some() || functions::set_functions_named(function_name).iter().all(|f| f.columns.len() < 2) {
            return Ok(None);
        }
        let args = self.exprs(&call.args)?;
        let Some(found) = self.find_callee(call, &args)? else { return Ok(None) };
        let Callee::Set(function) = found.callee else { return Ok(None) };
        if let Some(inner) = args.iter().find(|a| self.has_set_call(&a.expr)) {
            let message = "set-returning functions of set-returning functions are supported only in FROM";
            return Err(self.unsupported(message, inner.at));
        }
        let (args, outputs) = self.set_arguments(found, function, args)?;
        if outputs.len() < 2 {
            return Ok(None);
        }
        let columns: Vec<RelColumn> = function
            .columns
            .iter()
            .zip(outputs)
            .map(|((name, _), ty)| RelColumn { name: name.to_string(), ty: Ty::of(ty) })
            .collect();
        let picked = match field {
            None => None,
            Some(field) => match columns.iter().position(|c| c.name == field) {
                Some(at) => Some(at),
                None => {
                    let message = format!("could not identify column \"{field}\" in record data type");
                    return Err(self.error(base::SqlState::UNDEFINED_COLUMN, message, call.location));
                }
            },
        };
        let width = columns.len();
        let call = SetCall { function, args };
        let rel = match known {
            Some(rel) => {
                let entry = &mut self.scope().rels[rel];
                entry.columns.extend(columns);
                if let RelKind::Function { calls, .. } = &mut entry.kind {
                    calls.push(call);
                }
                rel
            }
            None => {
                let kind = RelKind::Function { calls: vec![call], ordinality: false };
                self.add_rel(Rel { alias: name.to_string(), kind, columns }, None)
            }
        };
        let entry = &self.scope().rels[rel];
        let first = entry.columns.len() - width;
        let column =
            |i: usize| Expr::Column(Column { level: 0, rel, column: first + i, ty: entry.columns[first + i].ty });
        let expr = match picked {
            Some(at) => column(at),
            None => Expr::Row((0..width).map(column).collect(), Ty::of(oid::RECORD)),
        };
        Ok(Some((expr, rel)))
    }

    /// `tableoid` of a relation of the catalog: of the one that was found, or of the only one around.
    pub(super) fn system_tableoid(&self, found: Option<&Found>, column: &str) -> Option<Expr> {
        if column != "tableoid" {
            return None;
        }
        let level = found.map_or(0, |f| f.level);
        let scope = &self.scopes[self.scopes.len().checked_sub(1 + level)?];
        let is_system = |rel: usize| matches!(scope.rels[rel].kind, RelKind::System(_));
        let rel = match found {
            Some(found) => scope.items.get(found.item)?.rel,
            None => {
                let mut rels =
                    scope.items.iter().filter(|i| i.columns_visible).filter_map(|i| i.rel).filter(|&r| is_system(r));
                rels.next().filter(|_| rels.next().is_none())
            }
        };
        let rel = rel.filter(|&rel| is_system(rel))?;
        let column = scope.rels[rel].columns.len() - 1;
        Some(Expr::Column(Column { level, rel, column, ty: Ty::of(oid::OID) }))
    }

    /// A field of a record whose columns are known from where it was made, below this query.
    pub(super) fn record_field(&mut self, value: &Located, field: &str) -> Option<Expr> {
        let Expr::Column(Column { level, rel, column, .. }) = &value.expr else { return None };
        let index = self.scopes.len().checked_sub(1 + level)?;
        let RelKind::Subquery { query, .. } = &self.scopes[index].rels.get(*rel)?.kind else { return None };
        let (number, ty) = field_of(query, *column, field)?;
        let function = functions::functions_named(FIELD).first().copied()?;
        let number = Expr::Const(Datum::Int4(number as i32), Ty::of(oid::INT4));
        Some(Expr::Call { function, args: vec![value.expr.clone(), number], ty, location: value.at })
    }
}

/// The place and type of a field in a record that a query returns as one of its columns.
fn field_of(query: &Query, column: usize, field: &str) -> Option<(usize, Ty)> {
    match &query.targets.get(column)?.expr {
        Expr::Row(values, _) => values.iter().enumerate().find_map(|(at, value)| {
            let Expr::Column(c) = value else { return None };
            let rel = query.rels.get(c.rel)?;
            let is_it =
                c.level == 0 && matches!(rel.kind, RelKind::Function { .. }) && rel.columns[c.column].name == field;
            is_it.then_some((at, c.ty))
        }),
        Expr::Column(c) if c.level == 0 => match &query.rels.get(c.rel)?.kind {
            RelKind::Subquery { query, .. } => field_of(query, c.column, field),
            _ => None,
        },
        _ => None,
    }
}
