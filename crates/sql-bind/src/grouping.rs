//! GROUPING SETS, ROLLUP, CUBE, and GROUPING (`parse_clause.c`, `parse_agg.c`).

use base::{Error, Result, SqlState};
use rupg_sql::nodes::{CoercionForm, GroupingFunc, GroupingSet, GroupingSetKind as Kind, Node};
use sql_functions as functions;
use sql_ir::{AggCall, Column, Expr, Query, Ty};

use super::equal::same;
use super::scope::ClauseKind;
use super::visit::{shift_levels, walk};
use super::{Binder, Located};

/// Grouping sets of one query, as in PostgreSQL.
const MAX_SETS: usize = 4096;
/// Elements of a CUBE.
const MAX_CUBE: usize = 12;
/// Arguments of GROUPING: its result has 32 bits, one of them the sign.
const MAX_GROUPING: usize = 31;

/// Grouping sets: each the numbers of its grouping expressions.
type Sets = Vec<Vec<usize>>;

/// The parts of `(a, b)`, which in GROUP BY is no row.
fn parts(node: &Node) -> Option<&[Option<Node>]> {
    match node {
        Node::RowExpr(row) if row.row_format == CoercionForm::COERCE_IMPLICIT_CAST => Some(&row.args),
        Node::List(list) => Some(list),
        _ => None,
    }
}

impl<'a> Binder<'a, '_> {
    /// GROUP BY.
    pub(super) fn group_by(
        &mut self,
        list: &'a [Option<Node>],
        distinct: bool,
        query: &mut Query,
        at: &mut Vec<i32>,
    ) -> Result<()> {
        let mut sets: Sets = vec![Vec::new()];
        let mut several = false;
        for node in list.iter().flatten() {
            several |= matches!(node, Node::GroupingSet(_));
            let item = self.grouping_item(node, query, at)?;
            if sets.len() * item.len() > MAX_SETS {
                let message = format!("too many grouping sets present (maximum {MAX_SETS})");
                return Err(Error::new(SqlState::STATEMENT_TOO_COMPLEX, message));
            }
            sets = sets.iter().flat_map(|left| item.iter().map(|right| union(left, right))).collect();
        }
        if !several {
            return Ok(());
        }
        if distinct {
            let mut kept: Sets = Vec::new();
            for mut set in sets {
                set.sort_unstable();
                if !kept.contains(&set) {
                    kept.push(set);
                }
            }
            sets = kept;
        }
        query.grouping_sets = sets;
        Ok(())
    }

    /// The sets of one item of GROUP BY.
    fn grouping_item(&mut self, node: &'a Node, query: &mut Query, at: &mut Vec<i32>) -> Result<Sets> {
        match node {
            Node::GroupingSet(set) => self.grouping_set(set, query, at),
            node => Ok(vec![self.grouping_element(node, query, at)?]),
        }
    }

    /// The expressions of one element: several, if it is written `(a, b)`.
    fn grouping_element(&mut self, node: &'a Node, query: &mut Query, at: &mut Vec<i32>) -> Result<Vec<usize>> {
        let Some(parts) = parts(node) else { return Ok(vec![self.grouping_expression(node, query, at)?]) };
        let mut set = Vec::with_capacity(parts.len());
        for part in parts.iter().flatten() {
            set = union(&set, &self.grouping_element(part, query, at)?);
        }
        Ok(set)
    }

    fn grouping_set(&mut self, set: &'a GroupingSet, query: &mut Query, at: &mut Vec<i32>) -> Result<Sets> {
        if set.kind == Kind::GROUPING_SET_EMPTY {
            return Ok(vec![Vec::new()]);
        }
        if set.kind == Kind::GROUPING_SET_SETS {
            let mut sets = Vec::new();
            for node in set.content.iter().flatten() {
                sets.extend(self.grouping_item(node, query, at)?);
            }
            return Ok(sets);
        }
        let mut elements = Vec::with_capacity(set.content.len());
        for node in set.content.iter().flatten() {
            elements.push(self.grouping_element(node, query, at)?);
        }
        if set.kind == Kind::GROUPING_SET_ROLLUP {
            let prefix = |n: usize| elements[..n].iter().fold(Vec::new(), |all, e| union(&all, e));
            return Ok((0..=elements.len()).rev().map(prefix).collect());
        }
        if set.kind == Kind::GROUPING_SET_CUBE {
            if elements.len() > MAX_CUBE {
                let message = format!("CUBE is limited to {MAX_CUBE} elements");
                return Err(self.error(SqlState::TOO_MANY_COLUMNS, message, set.location));
            }
            let all = (1usize << elements.len()) - 1;
            let chosen = |bits: usize| {
                let within = elements.iter().enumerate().filter(|(i, _)| bits >> i & 1 == 1);
                within.fold(Vec::new(), |all, (_, e)| union(&all, e))
            };
            return Ok((0..=all).rev().map(chosen).collect());
        }
        Ok(vec![elements.iter().fold(Vec::new(), |all, e| union(&all, e))])
    }

    /// The number of a grouping expression.
    fn grouping_expression(&mut self, node: &'a Node, query: &mut Query, at: &mut Vec<i32>) -> Result<usize> {
        let before = query.targets.len();
        let (target, item_at) = self.find_target(node, query, at, ClauseKind::GroupBy)?;
        let expr = query.targets[target].expr.clone();
        self.check_groupable(&expr, item_at)?;
        let mut computed = self.set_arguments_of(std::slice::from_ref(&expr), true);
        computed.push(expr.clone());
        if computed.iter().any(|part| self.has_own_aggregate(part)) {
            let message = "aggregate functions are not allowed in GROUP BY";
            return Err(self.error(SqlState::GROUPING_ERROR, message, at.get(target).copied().unwrap_or(-1)));
        }
        if computed.iter().any(|part| self.has_window_call(part)) {
            let message = "window functions are not allowed in GROUP BY";
            return Err(self.error(SqlState::WINDOWING_ERROR, message, at.get(target).copied().unwrap_or(-1)));
        }
        // Grouping needs no target of its own.
        query.targets.truncate(before);
        at.truncate(before);
        let visible = target < before && super::simplify::is_constant(&expr, self.cx);
        let own = |number: usize| query.grouped_constants.contains(&(target, number));
        let known = (0..query.group_by.len()).find(|&n| same(&query.group_by[n], &expr) && (!visible || own(n)));
        Ok(known.unwrap_or_else(|| {
            query.group_by.push(expr);
            let number = query.group_by.len() - 1;
            query.grouped_constants.extend(visible.then_some((target, number)));
            number
        }))
    }

    /// `GROUPING(a, b)`: an aggregate call that the planner knows. Whether its arguments are grouped is seen when GROUP BY is.
    pub(super) fn grouping_call(&mut self, call: &'a GroupingFunc) -> Result<Located> {
        if call.args.len() > MAX_GROUPING {
            let message = "GROUPING must have fewer than 32 arguments";
            return Err(self.error(SqlState::TOO_MANY_ARGUMENTS, message, call.location));
        }
        let marks: Vec<usize> = self.scopes.iter().map(|scope| scope.mentions.len()).collect();
        let args = self.exprs(&call.args)?;
        let level = args.iter().filter_map(|arg| least_level(&arg.expr)).min().unwrap_or(0);
        if let Some(arg) = args.iter().find(|arg| has_aggregate_of(&arg.expr, level)) {
            return Err(self.error(SqlState::GROUPING_ERROR, "aggregate function calls cannot be nested", arg.at));
        }
        let index = self.scopes.len() - 1 - level;
        let place = self.scopes[index].place;
        if !matches!(
            place,
            ClauseKind::Targets
                | ClauseKind::Having
                | ClauseKind::OrderBy
                | ClauseKind::DistinctOn
                | ClauseKind::Window
        ) {
            let message = format!("grouping operations are not allowed in {}", place.name());
            return Err(self.error(SqlState::GROUPING_ERROR, message, call.location));
        }
        self.scopes.iter_mut().zip(marks).for_each(|(scope, mark)| scope.mentions.truncate(mark));
        let places: Vec<i32> = args.iter().map(|a| a.at).collect();
        let mut args: Vec<Expr> = args.into_iter().map(|a| a.expr).collect();
        args.iter_mut().for_each(|arg| shift_levels(arg, -(level as isize)));
        let ty = Ty::of(types::oid::INT4);
        let scope = &mut self.scopes[index];
        scope.aggs.push(AggCall {
            aggregate: &functions::GROUPING,
            args,
            direct: Vec::new(),
            distinct: false,
            order_by: Vec::new(),
            filter: None,
            ty,
        });
        let number = scope.aggs.len() - 1;
        scope.groupings.push((number, places));
        Ok(Located { expr: Expr::Agg { level, index: number, ty }, at: call.location })
    }

    /// Whether the arguments of GROUPING are grouped.
    pub(super) fn check_groupings(&mut self, query: &Query) -> Result<()> {
        for (index, places) in std::mem::take(&mut self.scope().groupings) {
            let args = self.scope().aggs[index].args.clone();
            for (arg, at) in args.iter().zip(places) {
                if !query.group_by.iter().any(|g| same(g, arg)) {
                    let message = "arguments to GROUPING must be grouping expressions of the associated query level";
                    return Err(self.error(SqlState::GROUPING_ERROR, message, at));
                }
            }
        }
        Ok(())
    }
}

/// The query level that an expression is about: that of the nearest column or aggregate.
fn least_level(expr: &Expr) -> Option<usize> {
    let mut least: Option<usize> = None;
    walk(expr, 0, &mut |e, depth| {
        let level = match e {
            Expr::Column(Column { level, .. }) | Expr::WholeRow { level, .. } | Expr::Agg { level, .. } => *level,
            _ => return,
        };
        if let Some(level) = level.checked_sub(depth) {
            least = Some(least.map_or(level, |least| least.min(level)));
        }
    });
    least
}

fn has_aggregate_of(expr: &Expr, wanted: usize) -> bool {
    let mut found = false;
    walk(expr, 0, &mut |e, depth| found |= matches!(e, Expr::Agg { level, .. } if *level == depth + wanted));
    found
}

fn union(left: &[usize], right: &[usize]) -> Vec<usize> {
    let mut all = left.to_vec();
    all.extend(right.iter().filter(|n| !left.contains(n)));
    all
}
