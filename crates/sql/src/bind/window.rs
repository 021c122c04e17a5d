//! Calls with OVER: the functions that number rows.

use base::{Result, SqlState};
use rupg_sql::nodes::{FuncCall, Node, WindowDef};
use types::oid;

use super::node::{location, strings};
use super::scope::Place;
use super::visit::same;
use super::{Binder, Located};
use crate::ir::{Column, Expr, Ranking, Rel, RelColumn, RelKind, Ty, WindowCall};

/// The bit of `frameOptions` that says that a frame was written.
const FRAME_WRITTEN: i32 = 0x1;

impl<'a> Binder<'a, '_> {
    /// A call with OVER: a column of a rel of its own.
    pub(super) fn window_call(&mut self, call: &'a FuncCall, over: &'a WindowDef, at: i32) -> Result<Located> {
        let place = self.place();
        if !matches!(place, Place::Targets | Place::OrderBy | Place::DistinctOn) {
            let message = format!("window functions are not allowed in {}", place.name());
            return Err(self.error(SqlState::WINDOWING_ERROR, message, call.location));
        }
        let Some(ranking) = ranking(call) else {
            let message = "window functions other than row_number, rank and dense_rank are not supported";
            return Err(self.unsupported(message, call.location));
        };
        if over.name.is_some() || over.refname.is_some() || over.frameOptions & FRAME_WRITTEN != 0 {
            return Err(self.unsupported("named windows and window frames are not supported", over.location));
        }
        let mut partition = Vec::with_capacity(over.partitionClause.len());
        for node in over.partitionClause.iter().flatten() {
            let value = self.window_key(node)?;
            self.check_groupable(&value.expr, value.at)?;
            partition.push(value.expr);
        }
        let mut order = Vec::with_capacity(over.orderClause.len());
        for node in over.orderClause.iter().flatten() {
            let Node::SortBy(sort) = node else { continue };
            let Some(node) = &sort.node else { continue };
            let value = self.window_key(node)?;
            let (descending, nulls_first) = self.sort_direction(sort)?;
            self.check_sortable(&value.expr, value.at)?;
            order.push((value.expr, descending, nulls_first));
        }
        let rel = self.window_rel(WindowCall { ranking, partition, order });
        let column = Column { level: 0, rel, column: 0, ty: Ty::of(oid::INT8) };
        Ok(Located { expr: Expr::Column(column), at })
    }

    fn window_key(&mut self, node: &'a Node) -> Result<Located> {
        let value = self.at_place(Place::Window, |b| b.expr(node))?;
        let at = if value.at < 0 { location(node) } else { value.at };
        self.resolve_unknown(Located { expr: value.expr, at })
    }

    /// The rel of a call; calls that are the same share it, so that ORDER BY finds its target.
    fn window_rel(&mut self, call: WindowCall) -> usize {
        let known = self.scope().rels.iter().position(|rel| match &rel.kind {
            RelKind::Window(other) => same_call(other, &call),
            _ => false,
        });
        known.unwrap_or_else(|| {
            // Without a name nothing can refer to it.
            let column = RelColumn { name: String::new(), ty: Ty::of(oid::INT8) };
            let kind = RelKind::Window(Box::new(call));
            self.add_rel(Rel { alias: String::new(), kind, columns: vec![column] }, None)
        })
    }
}

fn same_call(a: &WindowCall, b: &WindowCall) -> bool {
    let partition = || a.partition.iter().zip(&b.partition).all(|(a, b)| same(a, b));
    let order = || a.order.iter().zip(&b.order).all(|(a, b)| same(&a.0, &b.0) && (a.1, a.2) == (b.1, b.2));
    let lengths = (a.partition.len(), a.order.len()) == (b.partition.len(), b.order.len());
    a.ranking == b.ranking && lengths && partition() && order()
}

/// Which function it is, if it is one of those without arguments.
fn ranking(call: &FuncCall) -> Option<Ranking> {
    let plain = call.args.is_empty() && !call.agg_star && !call.agg_distinct && !call.agg_within_group;
    if !plain || call.agg_filter.is_some() || !call.agg_order.is_empty() {
        return None;
    }
    match strings(&call.funcname).as_slice() {
        ["row_number"] | ["pg_catalog", "row_number"] => Some(Ranking::RowNumber),
        ["rank"] | ["pg_catalog", "rank"] => Some(Ranking::Rank),
        ["dense_rank"] | ["pg_catalog", "dense_rank"] => Some(Ranking::DenseRank),
        _ => None,
    }
}
