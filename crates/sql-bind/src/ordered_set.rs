//! WITHIN GROUP: ordered-set and hypothetical-set aggregates (`parse_func.c`).

use base::{Oid, Result, SqlState};
use rupg_sql::nodes::{FuncCall, Node};
use sql_functions::{self as functions, Aggregate};
use sql_ir::{AggCall, Expr};

use super::func::Callee;
use super::node::strings;
use super::resolve::{Ambiguity, Candidate};
use super::{Binder, Located};

impl<'a> Binder<'a, '_> {
    /// A call with WITHIN GROUP.
    pub(super) fn ordered_set_call(&mut self, call: &'a FuncCall, at: i32) -> Result<Located> {
        let mentions = self.scopes.iter().map(|s| s.mentions.len()).collect::<Vec<_>>();
        let direct = self.exprs(&call.args)?;
        let after_direct = self.scopes.iter().map(|s| s.mentions.len()).collect::<Vec<_>>();
        let (mut sorted, mut directions) = (Vec::new(), Vec::new());
        for node in call.agg_order.iter().flatten() {
            let Node::SortBy(sort) = node else { continue };
            let Some(node) = &sort.node else { continue };
            sorted.push(self.expr(node)?);
            directions.push(self.sort_direction(sort)?);
        }
        let name = strings(&call.funcname).join(".");
        let own_name = self.function_name(call)?;
        let hypothetical = functions::hypothetical_named(own_name);
        let (aggregate, direct, sorted, ty) = match hypothetical {
            Some(aggregate) => {
                let (direct, sorted) = self.hypothetical_arguments(call, direct, sorted)?;
                let ty = sql_ir::Ty::of(aggregate.ret);
                (aggregate, direct, sorted, ty)
            }
            None => {
                let count = direct.len();
                let all: Vec<Located> = direct.into_iter().chain(sorted).collect();
                let found = self.find_callee(call, &all)?;
                let Some((found, Callee::Aggregate(aggregate))) = found.map(|f| (f, f.callee)) else {
                    let message = format!("WITHIN GROUP specified, but {name} is not an aggregate function");
                    return Err(self.error(SqlState::WRONG_OBJECT_TYPE, message, call.location));
                };
                if !aggregate.ordered_set {
                    let message = format!("{name} is not an ordered-set aggregate, so it cannot have WITHIN GROUP");
                    return Err(self.error(SqlState::WRONG_OBJECT_TYPE, message, call.location));
                }
                let declared: Vec<Oid> = (0..all.len()).map(|i| found.arg(i)).collect();
                let (mut args, ty) = self.coerce_arguments(all, &declared, aggregate.ret, None, aggregate.name)?;
                if args.len() < count {
                    return Err(base::Error::internal("an ordered-set aggregate lost an argument"));
                }
                let sorted = args.split_off(count);
                (aggregate, args, sorted, ty)
            }
        };
        for expr in &sorted {
            self.check_sortable(expr, call.location)?;
        }
        let filter = match &call.agg_filter {
            Some(node) => Some(self.at_place(super::scope::ClauseKind::Filter, |b| {
                let value = b.expr(node)?;
                b.coerce_to_boolean(value, "FILTER")
            })?),
            None => None,
        };
        let order_by = sorted.iter().cloned().zip(directions).map(|(e, (d, n))| (e, d, n)).collect();
        let agg = AggCall { aggregate, args: sorted, direct, distinct: false, order_by, filter, ty };
        let _ = mentions;
        Ok(Located { expr: self.add_aggregate(agg, call, &after_direct)?, at })
    }

    /// Each direct argument has one type with the column it is compared with.
    fn hypothetical_arguments(
        &mut self,
        call: &FuncCall,
        direct: Vec<Located>,
        sorted: Vec<Located>,
    ) -> Result<(Vec<Expr>, Vec<Expr>)> {
        if direct.len() != sorted.len() {
            let types: Vec<Oid> = direct.iter().chain(&sorted).map(|v| v.expr.ty().oid).collect();
            let name = strings(&call.funcname).join(".");
            let hint = format!(
                "To use the hypothetical-set aggregate {name}, the number of hypothetical direct arguments (here {}) \
                 must match the number of ordering columns (here {}).",
                direct.len(),
                sorted.len()
            );
            return Err(self.function_error(call, &types, Ambiguity::None).hint(hint));
        }
        let (mut left, mut right) = (Vec::new(), Vec::new());
        for (direct, sorted) in direct.into_iter().zip(sorted) {
            let pair = [(direct.expr.ty().oid, direct.at), (sorted.expr.ty().oid, sorted.at)];
            let Some(ty) = self.common_type(&pair, Some("WITHIN GROUP"))? else {
                let message = format!(
                    "WITHIN GROUP types {} and {} cannot be matched",
                    self.type_name(pair[0].0),
                    self.type_name(pair[1].0)
                );
                return Err(self.error(SqlState::DATATYPE_MISMATCH, message, pair[1].1));
            };
            left.push(self.coerce_to_common(direct, ty, "WITHIN GROUP")?.expr);
            right.push(self.coerce_to_common(sorted, ty, "WITHIN GROUP")?.expr);
        }
        Ok((left, right))
    }

    /// The error of an ordered-set aggregate without WITHIN GROUP.
    pub(super) fn check_within_group(&self, aggregate: &Aggregate, call: &FuncCall) -> Result<()> {
        if !aggregate.ordered_set {
            return Ok(());
        }
        let message = format!("WITHIN GROUP is required for ordered-set aggregate {}", aggregate.name);
        Err(self.error(SqlState::WRONG_OBJECT_TYPE, message, call.location))
    }
}
