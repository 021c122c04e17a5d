//! Set-returning functions in a select list, in ORDER BY, GROUP BY and DISTINCT ON.
//!
//! While a query is bound, its calls are those of one rel, each with columns of its own, and a call among the arguments of
//! another is a column like any other. When all of it is bound, [`arrange`] decides when they run, as PostgreSQL does: those
//! that are grouped by before the grouping, all others after groups and windows; those that others read before these, and what
//! is left side by side.

use base::Result;
use rupg_sql::nodes::FuncCall;
use sql_functions::SetFunction;
use sql_ir::{Column, Expr, From, Query, Rel, RelColumn, RelKind, SetCall, SortKey, Target, Ty};

use super::equal::{same, same_call};
use super::func::Overload;
use super::scope::ClauseKind;
use super::select::wrap;
use super::visit::{calls_volatile, children_mut, walk, walk_mut};
use super::{Binder, Located};

/// Where calls of set-returning functions may stand.
pub(super) fn allowed(place: ClauseKind) -> bool {
    matches!(place, ClauseKind::Targets | ClauseKind::OrderBy | ClauseKind::GroupBy | ClauseKind::DistinctOn)
}

/// Whether an error is that of a call in VALUES.
pub(super) fn is_misplaced(error: &base::Error) -> bool {
    error.code() == base::SqlState::FEATURE_NOT_SUPPORTED
        && error.fields().message == "set-returning functions are not allowed in VALUES"
}

impl<'a> Binder<'a, '_> {
    /// A call of a set-returning function outside of FROM: its value in each row, a record if it has several columns.
    pub(super) fn set_call(
        &mut self,
        call: &FuncCall,
        found: Overload,
        function: &'static SetFunction,
        args: Vec<Located>,
        name: &str,
    ) -> Result<Expr> {
        let (args, outputs) = self.set_arguments(found, function, args)?;
        let columns: Vec<RelColumn> = function
            .columns
            .iter()
            .zip(outputs)
            .map(|((column, _), ty)| RelColumn {
                name: if column.is_empty() { name } else { column }.to_string(),
                ty: Ty::of(ty),
            })
            .collect();
        Ok(self.add_set_call(SetCall { function, args }, columns, call.location))
    }

    /// Adds a call to those of the select list; answers its value.
    pub(super) fn add_set_call(&mut self, call: SetCall, columns: Vec<RelColumn>, at: i32) -> Expr {
        let width = columns.len();
        let rel = match self.scope().set_calls {
            Some((rel, _)) => {
                let entry = &mut self.scope().rels[rel];
                entry.columns.extend(columns);
                if let RelKind::Function { calls, .. } = &mut entry.kind {
                    calls.push(call);
                }
                rel
            }
            None => {
                let alias = columns.first().map(|c| c.name.clone()).unwrap_or_default();
                let kind = RelKind::Function { calls: vec![call], ordinality: false, per_row: true };
                self.add_rel(Rel { alias, aliased: false, kind, columns }, None)
            }
        };
        self.scope().set_calls = Some((rel, at));
        let entry = &self.scope().rels[rel];
        let first = entry.columns.len() - width;
        let column =
            |i: usize| Expr::Column(Column { level: 0, rel, column: first + i, ty: entry.columns[first + i].ty });
        match width {
            1 => column(0),
            _ => Expr::Row((0..width).map(column).collect(), Ty::of(types::oid::RECORD)),
        }
    }

    /// Whether an expression has a set-returning call of this select list in it.
    pub(super) fn has_set_call(&self, expr: &Expr) -> bool {
        let Some((rel, _)) = self.scopes.last().and_then(|s| s.set_calls) else { return false };
        uses_rel(expr, rel)
    }

    /// Refuses a set-returning call where it would have to run for some rows only.
    pub(super) fn refuse_set_call(&self, expr: &Expr, message: &str) -> Result<()> {
        if !self.has_set_call(expr) {
            return Ok(());
        }
        let at = self.scopes.last().and_then(|s| s.set_calls).map_or(-1, |(_, at)| at);
        Err(self
            .unsupported(message, at)
            .hint("You might be able to move the set-returning function into a LATERAL FROM item."))
    }

    /// The arguments of the set-returning calls that run before the rows are grouped by these expressions (`early`), or after.
    pub(super) fn set_arguments_of(&self, group_by: &[Expr], early: bool) -> Vec<Expr> {
        let Some(scope) = self.scopes.last() else { return Vec::new() };
        let Some((rel, _)) = scope.set_calls else { return Vec::new() };
        let RelKind::Function { calls, .. } = &scope.rels[rel].kind else { return Vec::new() };
        let chosen = calls.iter().zip(self::early(calls, group_by, rel)).filter(|(_, is)| *is == early);
        chosen.flat_map(|(call, _)| call.args.iter().cloned()).collect()
    }

    /// How many set-returning calls there are so far.
    pub(super) fn set_call_count(&self) -> usize {
        match self.scopes.last().and_then(|s| s.set_calls.map(|(rel, _)| &s.rels[rel].kind)) {
            Some(RelKind::Function { calls, .. }) => calls.len(),
            _ => 0,
        }
    }

    /// The target that an expression of ORDER BY or GROUP BY repeats, its set-returning calls included: those bound since
    /// there were `known` are forgotten then.
    pub(super) fn repeated_target(&mut self, expr: &Expr, known: usize, query: &Query) -> Option<usize> {
        let (rel, _) = self.scope().set_calls?;
        let entry = &mut self.scope().rels[rel];
        let RelKind::Function { calls, .. } = &mut entry.kind else { return None };
        let starts = starts(calls);
        let mut wanted = expr.clone();
        let mut stand_ins: Vec<usize> = (0..calls.len()).collect();
        for i in known..calls.len() {
            let args = calls[i].args.iter().map(|a| renumbered(a, rel, &starts, &stand_ins)).collect();
            let call = SetCall { function: calls[i].function, args };
            stand_ins[i] = calls[..known].iter().position(|c| same_call(c, &call))?;
        }
        wanted = renumbered(&wanted, rel, &starts, &stand_ins);
        let found = query.targets.iter().position(|t| same(&t.expr, &wanted))?;
        calls.truncate(known);
        entry.columns.truncate(starts[known]);
        Some(found)
    }
}

/// Whether an expression has a column of a rel of its own query level.
fn uses_rel(expr: &Expr, rel: usize) -> bool {
    let mut found = false;
    walk(expr, 0, &mut |e, depth| found |= matches!(e, Expr::Column(c) if c.level == depth && c.rel == rel));
    found
}

/// The first column of each call, and the number of all columns.
fn starts(calls: &[SetCall]) -> Vec<usize> {
    let mut at = 0;
    let mut starts = Vec::with_capacity(calls.len() + 1);
    for call in calls {
        starts.push(at);
        at += call.function.columns.len();
    }
    starts.push(at);
    starts
}

/// The call that a column belongs to.
fn call_of(starts: &[usize], column: usize) -> usize {
    starts.partition_point(|s| *s <= column).saturating_sub(1)
}

/// An expression that reads other calls instead.
fn renumbered(expr: &Expr, rel: usize, starts: &[usize], stand_ins: &[usize]) -> Expr {
    let mut expr = expr.clone();
    walk_mut(&mut expr, 0, &mut |e, depth| {
        if let Expr::Column(c) = e
            && (c.level, c.rel) == (depth, rel)
        {
            let call = call_of(starts, c.column);
            c.column = starts[stand_ins[call]] + (c.column - starts[call]);
        }
    });
    expr
}

/// The calls whose columns an expression reads.
fn calls_in(expr: &Expr, rel: usize, starts: &[usize]) -> Vec<usize> {
    let mut found = Vec::new();
    walk(expr, 0, &mut |e, depth| {
        if let Expr::Column(c) = e
            && (c.level, c.rel) == (depth, rel)
        {
            found.push(call_of(starts, c.column));
        }
    });
    found
}

/// Which calls run before the rows are grouped: those that are grouped by, and what they read.
fn early(calls: &[SetCall], group_by: &[Expr], rel: usize) -> Vec<bool> {
    let starts = starts(calls);
    let mut early = vec![false; calls.len()];
    let mut open: Vec<usize> = group_by.iter().flat_map(|g| calls_in(g, rel, &starts)).collect();
    while let Some(call) = open.pop() {
        early[call] = true;
        open.extend(calls[call].args.iter().flat_map(|a| calls_in(a, rel, &starts)));
    }
    early
}

/// Decides when the set-returning calls of a bound query run: they are in its range table as `rel`, and not in FROM yet.
pub(super) fn arrange(mut query: Query, rel: usize) -> Result<Query> {
    let RelKind::Function { calls, .. } = &query.rels[rel].kind else { return Ok(query) };
    let starts = starts(calls);
    let early = early(calls, &query.group_by, rel);
    let windowed = query.rels.iter().any(|r| matches!(r.kind, RelKind::Window(_)));
    // What ORDER BY and DISTINCT ON do not speak of runs for the rows that they leave.
    let is_key = |target: usize| uses_rel(&query.targets[target].expr, rel);
    let chosen = query.distinct.as_ref().filter(|on| !on.is_empty() && !query.order_by.is_empty());
    let after_choice = chosen.is_some_and(|on| {
        let mut keys = on.iter().copied().chain(query.order_by.iter().map(|key| key.target));
        !keys.any(is_key)
    });
    let after = after_choice || (query.is_grouped() || windowed) && early.iter().any(|e| !e);
    // How many calls run one after the other until a call's arguments are known.
    let mut rounds = vec![0; calls.len()];
    for (i, call) in calls.iter().enumerate() {
        let inner = call.args.iter().flat_map(|a| calls_in(a, rel, &starts));
        // A call is bound after those among its arguments.
        let before = inner.filter(|&c| early[c] == early[i] || !after).map(|c| rounds[c] + 1).max();
        rounds[i] = before.unwrap_or(0);
    }
    let calls = calls.clone();
    let columns = query.rels[rel].columns.clone();
    let alias = query.rels[rel].alias.clone();
    let mut plan = Arrangement { rel, starts, places: vec![(0, 0); calls.len()] };
    let last = rounds.iter().copied().max().unwrap_or(0);
    if !after {
        if last == 0 {
            query.from.push(From::Rel(rel));
            return Ok(query);
        }
        let first = query.rels.len();
        let rels = plan.rels(&calls, &columns, &alias, (0..=last).map(|r| (r, first + r)), |i, r| rounds[i] == r);
        query.rels.extend(rels);
        // The rel that held them all is read by nobody now.
        query.rels[rel].kind = RelKind::Values;
        query.from.extend((0..=last).map(|r| From::Rel(first + r)));
        super::visit::query_parts_mut(&mut query, &mut |e| plan.move_columns(e), &mut |_| {});
        return Ok(query);
    }
    if early.iter().any(|e| *e) {
        return Err(base::Error::unsupported(
            "set-returning functions in GROUP BY beside others in the select list are not supported",
        ));
    }
    // What is grouped or windowed becomes a query of its own, whose rows the calls are made for.
    query.rels[rel].kind = RelKind::Values;
    let choice = after_choice.then(|| {
        let order = std::mem::take(&mut query.order_by);
        (query.targets.clone(), query.distinct.take().unwrap_or_default(), order)
    });
    let mut outer = Query {
        targets: std::mem::take(&mut query.targets),
        distinct: query.distinct.take(),
        order_by: std::mem::take(&mut query.order_by),
        limit: query.limit.take(),
        offset: query.offset.take(),
        with_ties: std::mem::take(&mut query.with_ties),
        ..Query::default()
    };
    let rels = plan.rels(&calls, &columns, &alias, (0..=last).map(|r| (r, 1 + r)), |i, r| rounds[i] == r);
    let mut lift = Lift { set_rel: rel, plan: &plan, lifted: Vec::new() };
    outer.targets.iter_mut().for_each(|t| lift.lift(&mut t.expr));
    let mut set_rels = rels;
    for entry in &mut set_rels {
        if let RelKind::Function { calls, .. } = &mut entry.kind {
            calls.iter_mut().flat_map(|c| &mut c.args).for_each(|a| lift.lift(a));
        }
    }
    let lifted = lift.lifted;
    let column = |(i, e): (usize, &Expr)| RelColumn { name: format!("c{i}"), ty: e.ty() };
    let shown: Vec<RelColumn> = lifted.iter().enumerate().map(column).collect();
    let target = |(e, c): (Expr, &RelColumn)| Target { expr: e, name: c.name.clone(), junk: false };
    query.targets = lifted.into_iter().zip(&shown).map(target).collect();
    if let Some((keys, distinct, order)) = choice {
        let targets = &mut query.targets;
        let mut place = |at: usize| {
            let key = &keys[at];
            targets.iter().position(|target| same(&target.expr, &key.expr)).unwrap_or_else(|| {
                targets.push(Target { junk: true, ..key.clone() });
                targets.len() - 1
            })
        };
        query.distinct = Some(distinct.into_iter().map(&mut place).collect());
        query.order_by = order.into_iter().map(|key| SortKey { target: place(key.target), ..key }).collect();
        outer.targets.retain(|target| !target.junk);
    }
    let mut wrapped = wrap(query, shown);
    wrapped.from.extend((0..set_rels.len()).map(|r| From::Rel(1 + r)));
    wrapped.rels.extend(set_rels);
    Ok(Query { rels: wrapped.rels, from: wrapped.from, ..outer })
}

/// Where the columns of calls are when each round of calls has a rel.
struct Arrangement {
    rel: usize,
    starts: Vec<usize>,
    /// Of each call: its rel, its first column there.
    places: Vec<(usize, usize)>,
}

impl Arrangement {
    /// The rels of the rounds.
    fn rels(
        &mut self,
        calls: &[SetCall],
        columns: &[RelColumn],
        alias: &str,
        rounds: impl Iterator<Item = (usize, usize)>,
        is_in: impl Fn(usize, usize) -> bool,
    ) -> Vec<Rel> {
        let mut rels = Vec::new();
        for (round, number) in rounds {
            let (mut own, mut shown) = (Vec::new(), Vec::new());
            for (i, call) in calls.iter().enumerate().filter(|(i, _)| is_in(*i, round)) {
                self.places[i] = (number, shown.len());
                own.push(call.clone());
                shown.extend_from_slice(&columns[self.starts[i]..self.starts[i + 1]]);
            }
            let kind = RelKind::Function { calls: own, ordinality: false, per_row: true };
            rels.push(Rel { alias: alias.to_string(), aliased: false, kind, columns: shown });
        }
        rels
    }

    /// The place of a column.
    fn place(&self, column: usize) -> (usize, usize) {
        let call = call_of(&self.starts, column);
        let (rel, first) = self.places[call];
        (rel, first + column - self.starts[call])
    }

    /// Lets an expression read the calls where they are.
    fn move_columns(&self, expr: &mut Expr) {
        walk_mut(expr, 0, &mut |e, depth| {
            if let Expr::Column(c) = e
                && (c.level, c.rel) == (depth, self.rel)
            {
                (c.rel, c.column) = self.place(c.column);
            }
        });
    }
}

/// Moves what does not need the calls into the query below them.
struct Lift<'p> {
    set_rel: usize,
    plan: &'p Arrangement,
    lifted: Vec<Expr>,
}

impl Lift<'_> {
    fn lift(&mut self, expr: &mut Expr) {
        if let Expr::Column(c) = expr
            && (c.level, c.rel) == (0, self.set_rel)
        {
            (c.rel, c.column) = self.plan.place(c.column);
            return;
        }
        if !is_own(expr) {
            return;
        }
        let is_leaf =
            matches!(expr, Expr::Column(_) | Expr::WholeRow { .. } | Expr::Agg { .. } | Expr::Subquery { .. });
        if !is_leaf && (uses_rel(expr, self.set_rel) || calls_volatile(expr)) {
            let this = std::cell::RefCell::new(self);
            children_mut(expr, &mut |e| this.borrow_mut().lift(e), &mut |_| {});
            return;
        }
        let number = self.lifted.iter().position(|l| same(l, expr)).unwrap_or_else(|| {
            self.lifted.push(expr.clone());
            self.lifted.len() - 1
        });
        *expr = Expr::Column(Column { level: 0, rel: 0, column: number, ty: expr.ty() });
    }
}

/// Whether an expression is about the rows or groups of its own query.
fn is_own(expr: &Expr) -> bool {
    let mut own = false;
    walk(expr, 0, &mut |e, depth| {
        own |= match e {
            Expr::Column(c) => c.level == depth,
            Expr::WholeRow { level, .. } | Expr::Agg { level, .. } => *level == depth,
            _ => false,
        }
    });
    own
}
