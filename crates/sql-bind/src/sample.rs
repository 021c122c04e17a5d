//! TABLESAMPLE (`transformRangeTableSample`).

use base::{Result, SqlState};
use rupg_sql::nodes::{Node, RangeTableSample};
use sql_functions::CastContext;
use sql_ir::{Expr, From, Query, Rel, RelKind, Sample, Target};
use types::oid;

use super::Binder;
use super::from::{FromItem, Relation, visible_columns};
use super::node::{location, strings};
use super::scope::{ClauseKind, columns_of};
use super::visit::shift_levels;

impl<'a> Binder<'a, '_> {
    /// Some of the rows of a table: a subquery of its own.
    pub(super) fn range_sample(&mut self, sample: &'a RangeTableSample) -> Result<FromItem> {
        let Some(Node::RangeVar(var)) = &sample.relation else {
            return Err(self.unsupported("TABLESAMPLE of this is not supported", sample.location));
        };
        let refused = "TABLESAMPLE clause can only be applied to tables and materialized views";
        let name = var.relname.as_deref().unwrap_or("");
        if var.schemaname.is_none() && self.find_cte(name).is_some() {
            return Err(self.unsupported(refused, var.location));
        }
        if self.shows {
            return Err(self.unsupported("TABLESAMPLE in a view is not supported", sample.location));
        }
        let info = match self.relation(var)? {
            Relation::Table(info) => info,
            Relation::System(..) => {
                return Err(self.unsupported("TABLESAMPLE of a relation of the catalog is not supported", var.location));
            }
            Relation::View(_) | Relation::Sequence(..) => return Err(self.unsupported(refused, var.location)),
        };
        let method = strings(&sample.method).last().copied().unwrap_or("").to_string();
        let system = match method.as_str() {
            "system" => true,
            "bernoulli" => false,
            _ => {
                let message = format!("tablesample method {method} does not exist");
                return Err(self.error(SqlState::UNDEFINED_OBJECT, message, sample.location));
            }
        };
        let [Some(percent)] = sample.args.as_slice() else {
            let message = format!("tablesample method {method} requires 1 argument, not {}", sample.args.len());
            return Err(self.error(SqlState::INVALID_TABLESAMPLE_ARGUMENT, message, sample.location));
        };
        let percent = self.sample_argument(percent, oid::FLOAT4)?;
        let seed = sample.repeatable.as_ref().map(|seed| self.sample_argument(seed, oid::FLOAT8)).transpose()?;
        let oid = info.desc.oid;
        self.lock(info.desc.oid, engine_api::TableLockMode::AccessShare);
        let columns = self.named_columns(var, &info.desc);
        let rel = Rel { alias: name.to_string(), aliased: false, kind: RelKind::Table(info), columns };
        let targets = columns_of(0, &rel).into_iter().filter(|c| !c.name.is_empty());
        let targets = targets.map(|c| Target { expr: c.expr, name: c.name, junk: false }).collect();
        let sample = Some(Box::new(Sample { percent, seed, system }));
        let query = Query { rels: vec![rel], from: vec![From::Rel(0)], targets, sample, ..Query::default() };
        let columns = visible_columns(&query);
        let kind = RelKind::Subquery { query: Box::new(query), lateral: true };
        self.add_from_rel(kind, columns, name, var.alias.as_deref(), Some(oid))
    }

    fn sample_argument(&mut self, node: &'a Node, ty: base::Oid) -> Result<Expr> {
        let lateral = std::mem::replace(&mut self.scope().lateral_active, true);
        let bound = self.at_place(ClauseKind::FromFunction, |b| b.expr(node));
        self.scope().lateral_active = lateral;
        let value = bound?;
        let (from, at) = (value.expr.ty().oid, value.at);
        let Some(value) = self.coerce_to(value, sql_ir::Ty::of(ty), CastContext::Assignment, -1)? else {
            let (from, to) = (self.type_name(from), self.type_name(ty));
            let message = format!("argument of TABLESAMPLE must be type {to}, not type {from}");
            let at = if at >= 0 { at } else { location(node) };
            return Err(self.error(SqlState::DATATYPE_MISMATCH, message, at));
        };
        let mut expr = value.expr;
        shift_levels(&mut expr, 1);
        Ok(expr)
    }
}
