//! GROUP BY, and the rule that a grouped query may use only what is grouped (`parse_agg.c`).

use base::{Error, Result, SqlState};
use engine_api::{ConstraintKind, TableLockMode};
use sql_ir::{Column, Expr, Query, Rel, RelKind};

use super::Binder;
use super::equal::same;
use super::visit::{children, query_parts};

impl Binder<'_, '_> {
    pub(super) fn has_own_aggregate(&self, expr: &Expr) -> bool {
        let mut found = false;
        super::visit::walk(expr, 0, &mut |e, depth| {
            found |= matches!(e, Expr::Agg { level, .. } if *level == depth);
        });
        found
    }

    /// `parseCheckAggregates`
    pub(super) fn check_grouping(&mut self, query: &Query) -> Result<()> {
        let grouped = query.is_grouped() || !self.scope().aggs.is_empty();
        self.check_groupings(query)?;
        if !grouped {
            return Ok(());
        }
        let mut check = GroupCheck { groups: &query.group_by, found: None, in_subquery: false, windows: Vec::new() };
        let mut cleared: Vec<usize> = Vec::new();
        let windows: Vec<Expr> = self.scope().rels.iter().flat_map(window_parts).cloned().collect();
        let direct: Vec<Expr> = self.scope().aggs.iter().flat_map(|agg| &agg.direct).cloned().collect();
        let is_window: Vec<bool> = self.scope().rels.iter().map(|rel| matches!(rel.kind, RelKind::Window(_))).collect();
        check.windows = is_window;
        let set_args = self.set_arguments_of(&query.group_by, false);
        if let Some((rel, _)) = self.scope().set_calls {
            check.windows[rel] = true;
        }
        let others = query.targets.iter().map(|t| &t.expr).chain(&query.having).chain(&windows).chain(&set_args);
        for (expr, is_direct) in others.map(|expr| (expr, false)).chain(direct.iter().map(|expr| (expr, true))) {
            loop {
                check.found = None;
                check.ungrouped(expr, 0, &cleared);
                let Some((column, is_row)) = check.found else { break };
                // Grouped by its table's primary key, every column of a row is determined.
                if !self.is_determined(column.rel, query) {
                    let error = self.ungrouped_error(column, is_row, check.in_subquery);
                    let detail = "Direct arguments of an ordered-set aggregate must use only grouped columns.";
                    return Err(if is_direct { error.detail(detail) } else { error });
                }
                cleared.push(column.rel);
            }
        }
        Ok(())
    }

    fn is_determined(&mut self, rel: usize, query: &Query) -> bool {
        let RelKind::Table(info) = &self.scope().rels[rel].kind else { return false };
        let table = info.desc.oid;
        let primary = info.desc.constraints.iter().find(|c| matches!(c.kind, ConstraintKind::PrimaryKey { .. }));
        let Some((constraint, key)) = primary.map(|c| (c.oid, c.columns.clone())) else { return false };
        let grouped = |number: &i16| {
            let wanted = *number as usize - 1;
            let in_all = |i: usize| query.grouping_sets.iter().all(|set| set.contains(&i));
            let all = query.group_by.iter().enumerate().filter(|(i, _)| in_all(*i));
            all.map(|(_, g)| g)
                .any(|g| matches!(g, Expr::Column(c) if c.level == 0 && c.rel == rel && c.column == wanted))
        };
        let determined = key.iter().all(grouped);
        if determined {
            self.lock(table, TableLockMode::AccessShare);
            self.keys.iter_mut().for_each(|keys| keys.push(constraint));
        }
        determined
    }

    fn ungrouped_error(&mut self, column: Column, is_row: bool, in_subquery: bool) -> Error {
        let scope = self.scope();
        let entry = &scope.rels[column.rel];
        let name = if is_row { "*" } else { entry.column_name(column.column) };
        let name = format!("{}.{name}", entry.alias);
        let at = scope
            .mentions
            .iter()
            .find(|m| m.rel == column.rel && m.column == column.column && !m.in_aggregate)
            .map_or(-1, |m| m.location);
        let message = match in_subquery {
            true => format!("subquery uses ungrouped column \"{name}\" from outer query"),
            false => {
                format!("column \"{name}\" must appear in the GROUP BY clause or be used in an aggregate function")
            }
        };
        self.error(SqlState::GROUPING_ERROR, message, at)
    }
}

/// The expressions of a window function's call.
pub fn window_parts(rel: &Rel) -> impl Iterator<Item = &Expr> {
    let call = match &rel.kind {
        RelKind::Window(call) => Some(call),
        _ => None,
    };
    call.into_iter().flat_map(|call| {
        let order = call.order.iter().map(|(expr, ..)| expr);
        call.args.iter().chain(&call.filter).chain(&call.partition).chain(order)
    })
}

/// Looks for columns of the grouped level outside of aggregates and grouping expressions.
struct GroupCheck<'q> {
    groups: &'q [Expr],
    /// The column, and whether it stands for its whole row.
    found: Option<(Column, bool)>,
    in_subquery: bool,
    /// Which rels are results of window functions, or of set-returning ones in the select list.
    windows: Vec<bool>,
}

impl GroupCheck<'_> {
    fn ungrouped(&mut self, expr: &Expr, depth: usize, cleared: &[usize]) {
        if self.found.is_some() {
            return;
        }
        if depth == 0 && self.groups.iter().any(|g| same(g, expr)) {
            return;
        }
        match expr {
            Expr::Column(c) if c.level == depth && self.windows.get(c.rel) == Some(&true) => {}
            Expr::Column(c) if c.level == depth => {
                let own = Column { level: 0, ..*c };
                let grouped = cleared.contains(&c.rel) || self.groups.iter().any(|g| same(g, &Expr::Column(own)));
                if !grouped {
                    self.in_subquery = depth > 0;
                    self.found = Some((own, false));
                }
            }
            Expr::WholeRow { level, rel } if *level == depth && !cleared.contains(rel) => {
                self.in_subquery = depth > 0;
                let ty = sql_ir::Ty::of(types::oid::RECORD);
                self.found = Some((Column { level: 0, rel: *rel, column: 0, ty }, true));
            }
            Expr::Agg { level, .. } if *level == depth => {}
            expr => {
                let this = std::cell::RefCell::new(self);
                children(expr, &mut |e| this.borrow_mut().ungrouped(e, depth, cleared), &mut |q| {
                    this.borrow_mut().ungrouped_query(q, depth + 1, cleared)
                });
            }
        }
    }

    fn ungrouped_query(&mut self, query: &Query, depth: usize, cleared: &[usize]) {
        let this = std::cell::RefCell::new(self);
        query_parts(query, &mut |e| this.borrow_mut().ungrouped(e, depth, cleared), &mut |q| {
            this.borrow_mut().ungrouped_query(q, depth + 1, cleared)
        });
    }
}
