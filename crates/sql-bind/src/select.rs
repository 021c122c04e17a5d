//! SELECT and VALUES (`analyze.c`, `parse_target.c`).

use std::sync::Arc;

use base::work::{self, Count};
use base::{Error, Oid, Result, SqlState};
use engine_api::{RowLockMode, TableKind, TableLockMode, WaitPolicy};
use rupg_sql::nodes::{
    LimitOption, LockClauseStrength as Strength, LockWaitPolicy as Policy, LockingClause, Node, SelectStmt,
    SetOperation,
};
use sql_functions::CastContext;
use sql_ir::{Body, Expr, From, JoinKind, Locking, Query, QueryOfView, Rel, RelColumn, RelKind, Target, Ty};
use sql_parse::privileges;
use types::oid;

use super::coerce::common_typmod;
use super::from::target_item;
use super::node::{figure_name, location};
use super::scope::{ClauseKind, Scope};
use super::visit::has_columns;
use super::{Binder, Located, ResultColumn};

/// Queries in one statement.
const MAX_QUERIES: usize = 10_000;

/// Entries of a target list, as in PostgreSQL.
const MAX_TARGETS: usize = 1664;

/// A bound query and where its targets begin in the statement.
pub(super) struct BoundQuery {
    pub(super) query: Query,
    pub(super) at: Vec<i32>,
}

impl<'a> Binder<'a, '_> {
    /// Binds a query one level inside the current one.
    pub(super) fn subquery(&mut self, select: &'a SelectStmt, resolve_unknowns: bool) -> Result<BoundQuery> {
        let scope = Scope::new(self.scopes.len().checked_sub(1));
        self.query_in(scope, select, resolve_unknowns)
    }

    /// Binds a query in a scope of its own.
    ///
    /// # Errors
    /// 54001 if it is nested too deep, or is one too many.
    pub(super) fn query_in(
        &mut self,
        scope: Scope<'a>,
        select: &'a SelectStmt,
        resolve_unknowns: bool,
    ) -> Result<BoundQuery> {
        self.enter_query()?;
        self.scopes.push(scope);
        let mut bound = self.select(select, resolve_unknowns);
        self.scopes.pop();
        self.leave_query();
        if let Ok(bound) = &mut bound {
            self.note_view(bound);
        }
        bound
    }

    /// Says of a query inside of a view that it is.
    pub(super) fn note_view(&self, bound: &mut BoundQuery) {
        if let Some(view) = &self.inside {
            bound.query.of_view.get_or_insert_with(|| QueryOfView {
                view: Arc::clone(view),
                is_whole: false,
                is_locked: false,
            });
        }
    }

    /// Enters a set operation inside of another one, in a scope of its own.
    pub(super) fn enter_chained(&mut self) -> Result<()> {
        let scope = Scope::new(self.scopes.len().checked_sub(1));
        self.enter_query()?;
        // A link of a chain takes none of the stack here.
        self.depth -= super::expr::QUERY_DEPTH - 1;
        self.scopes.push(scope);
        Ok(())
    }

    /// Counts a query.
    pub(super) fn enter_query(&mut self) -> Result<()> {
        self.check_depth()?;
        self.queries += 1;
        if self.queries > MAX_QUERIES {
            let message = format!("statement has more than {MAX_QUERIES} queries");
            return Err(Error::new(SqlState::STATEMENT_TOO_COMPLEX, message));
        }
        self.depth += super::expr::QUERY_DEPTH;
        Ok(())
    }

    /// Leaves a query that was entered.
    pub(super) fn leave_query(&mut self) {
        self.depth -= super::expr::QUERY_DEPTH;
    }

    /// What comes before a query's own parts.
    pub(super) fn begin_select(&mut self, select: &'a SelectStmt) -> Result<()> {
        if select.intoClause.is_some() {
            return Err(self.unsupported("SELECT INTO is not supported", -1));
        }
        self.add_ctes(select.withClause.as_deref())
    }

    /// Binds a query in the current, fresh scope.
    pub(super) fn select(&mut self, select: &'a SelectStmt, resolve_unknowns: bool) -> Result<BoundQuery> {
        self.begin_select(select)?;
        let mut bound = if select.op != SetOperation::SETOP_NONE {
            self.set_operation(select)?
        } else if !select.valuesLists.is_empty() {
            self.values(select, resolve_unknowns)?
        } else {
            self.plain_select(select, resolve_unknowns)?
        };
        self.finish_select(&mut bound)?;
        Ok(bound)
    }

    /// Gives a bound query what its scope has gathered.
    pub(super) fn finish_select(&mut self, bound: &mut BoundQuery) -> Result<()> {
        if bound.query.targets.len() > MAX_TARGETS {
            let message = format!("target lists can have at most {MAX_TARGETS} entries");
            return Err(Error::new(SqlState::TOO_MANY_COLUMNS, message));
        }
        bound.query.rels = std::mem::take(&mut self.scope().rels);
        bound.query.aggs = std::mem::take(&mut self.scope().aggs);
        if let Some((rel, _)) = self.scope().set_calls.take() {
            bound.query = super::set_calls::arrange(std::mem::take(&mut bound.query), rel)?;
        }
        self.finish_ctes(&mut bound.query)
    }

    fn plain_select(&mut self, select: &'a SelectStmt, resolve_unknowns: bool) -> Result<BoundQuery> {
        self.scope().windows = &select.windowClause;
        let mut query = Query { from: self.bind_from(&select.fromClause)?, ..Query::default() };
        let mut at = Vec::new();
        self.targets(&select.targetList, &mut query, &mut at, ClauseKind::Targets)?;
        query.filter = self.condition(select.whereClause.as_ref(), ClauseKind::Where, "WHERE")?;
        query.having = self.condition(select.havingClause.as_ref(), ClauseKind::Having, "HAVING")?;
        self.order_by(&select.sortClause, &mut query, &mut at)?;
        if resolve_unknowns {
            // As late as this, so that other uses of a parameter decide its type.
            self.settle_targets(&mut query, &at)?;
        }
        self.group_by(&select.groupClause, select.groupDistinct, &mut query, &mut at)?;
        self.distinct(&select.distinctClause, &mut query, &mut at)?;
        self.limit(select, &mut query)?;
        self.check_windows()?;
        self.check_grouping(&query)?;
        let recursive = self.scope().rels.iter().any(|rel| matches!(rel.kind, RelKind::WorkTable(_)));
        if recursive && !self.scope().aggs.is_empty() {
            let at = self.scope().first_aggregate;
            let message = "aggregate functions are not allowed in a recursive query's recursive term";
            return Err(self.error(SqlState::INVALID_RECURSION, message, at));
        }
        let has_set_call = self.scope().set_calls.is_some();
        self.locking(select, &mut query, has_set_call)?;
        Ok(BoundQuery { query, at })
    }

    /// A select list or RETURNING list.
    pub(super) fn targets(
        &mut self,
        list: &'a [Option<Node>],
        query: &mut Query,
        at: &mut Vec<i32>,
        place: ClauseKind,
    ) -> Result<()> {
        let before = std::mem::replace(&mut self.scope().place, place);
        for node in list.iter().flatten() {
            let Node::ResTarget(target) = node else { continue };
            let Some(value) = &target.val else { continue };
            if let Some(columns) = self.star(value)? {
                for (name, expr) in columns {
                    query.targets.push(Target { expr, name, junk: false });
                    at.push(location(value));
                }
                continue;
            }
            let name = target.name.as_deref().map_or_else(|| figure_name(value), str::to_string);
            let value = self.expr(value)?;
            at.push(value.at);
            query.targets.push(Target { expr: value.expr, name, junk: false });
        }
        self.scope().place = before;
        Ok(())
    }

    /// Targets that nothing gave a type are text.
    pub(super) fn settle_targets(&mut self, query: &mut Query, at: &[i32]) -> Result<()> {
        for (target, &at) in query.targets.iter_mut().zip(at) {
            if target.expr.ty().oid == oid::UNKNOWN {
                let expr = target.expr.clone();
                target.expr = self.resolve_unknown(Located { expr, at })?.expr;
            }
        }
        Ok(())
    }

    /// The columns of `*`, `t.*` or `(t).*`; `None` if the target is something else.
    pub(super) fn star(&mut self, node: &'a Node) -> Result<Option<Vec<(String, Expr)>>> {
        match node {
            Node::ColumnRef(c) if matches!(c.fields.last(), Some(Some(Node::A_Star(_)))) => {
                self.expand_star(c).map(Some)
            }
            Node::A_Indirection(i) if matches!(i.indirection.last(), Some(Some(Node::A_Star(_)))) => {
                let at = location(node);
                let [Some(Node::A_Star(_))] = i.indirection.as_slice() else {
                    return Err(self.unsupported("row expansion of this expression is not supported", at));
                };
                let Some(arg) = &i.arg else { return Ok(None) };
                let value = self.expr(arg)?;
                match self.record_fields(&value.expr) {
                    Some(fields) => Ok(Some(fields)),
                    None if value.expr.ty().oid == oid::RECORD => {
                        Err(self.unsupported("row expansion of this expression is not supported", at))
                    }
                    None => {
                        let shown = self.type_name(value.expr.ty().oid);
                        Err(self.error(SqlState::WRONG_OBJECT_TYPE, format!("type {shown} is not composite"), at))
                    }
                }
            }
            _ => Ok(None),
        }
    }

    /// WHERE and the like.
    pub(super) fn condition(
        &mut self,
        node: Option<&'a Node>,
        place: ClauseKind,
        construct: &str,
    ) -> Result<Option<Expr>> {
        let Some(node) = node else { return Ok(None) };
        self.at_place(place, |b| {
            let value = b.expr(node)?;
            b.coerce_to_boolean(value, construct).map(Some)
        })
    }

    /// LIMIT and OFFSET.
    pub(super) fn limit(&mut self, select: &'a SelectStmt, query: &mut Query) -> Result<()> {
        query.with_ties = select.limitOption == LimitOption::LIMIT_OPTION_WITH_TIES;
        query.offset = self.limit_part(select.limitOffset.as_ref(), ClauseKind::Offset, "OFFSET")?;
        query.limit = self.limit_part(select.limitCount.as_ref(), ClauseKind::Limit, "LIMIT")?;
        if query.with_ties && matches!(&select.limitCount, Some(Node::A_Const(constant)) if constant.isnull) {
            let message = "row count cannot be null in FETCH FIRST ... WITH TIES clause";
            return Err(Error::new(SqlState::INVALID_ROW_COUNT_IN_LIMIT_CLAUSE, message));
        }
        Ok(())
    }

    fn limit_part(&mut self, node: Option<&'a Node>, place: ClauseKind, name: &str) -> Result<Option<Expr>> {
        let Some(node) = node else { return Ok(None) };
        let value = self.at_place(place, |b| b.expr(node))?;
        let (from, at) = (value.expr.ty().oid, value.at);
        // It is shown as it was written.
        let shown = (self.cx.keeps_calls && from != oid::UNKNOWN).then(|| value.expr.clone());
        let Some(value) = self.coerce_to(value, Ty::of(oid::INT8), CastContext::Assignment, -1)? else {
            let message = format!("argument of {name} must be type bigint, not type {}", self.type_name(from));
            return Err(self.error(SqlState::DATATYPE_MISMATCH, message, at));
        };
        if has_columns(&value.expr) {
            let message = format!("argument of {name} must not contain variables");
            return Err(self.error(SqlState::INVALID_COLUMN_REFERENCE, message, at));
        }
        Ok(Some(shown.unwrap_or(value.expr)))
    }

    /// VALUES as a query.
    fn values(&mut self, select: &'a SelectStmt, resolve_unknowns: bool) -> Result<BoundQuery> {
        let mut rows: Vec<Vec<Located>> = Vec::with_capacity(select.valuesLists.len());
        for node in select.valuesLists.iter().flatten() {
            let Node::List(list) = node else { continue };
            let row = self.at_place(ClauseKind::Values, |b| b.exprs(list))?;
            if rows.first().is_some_and(|first| first.len() != row.len()) {
                let message = "VALUES lists must all be the same length";
                return Err(self.error(SqlState::SYNTAX_ERROR, message, location(node)));
            }
            rows.push(row);
        }
        let at: Vec<i32> = rows.first().map(|row| row.iter().map(|v| v.at).collect()).unwrap_or_default();
        let width = at.len();
        let mut types = Vec::with_capacity(width);
        for column in 0..width {
            let column_types: Vec<(Oid, i32)> =
                rows.iter().counted(8).map(|row| (row[column].expr.ty().oid, row[column].at)).collect();
            // A single row's literals stay untyped until their use decides.
            let all_unknown = column_types.iter().all(|t| t.0 == oid::UNKNOWN);
            types.push(match all_unknown && !resolve_unknowns && rows.len() == 1 {
                true => oid::UNKNOWN,
                false => self.common_type(&column_types, Some("VALUES"))?.unwrap_or(oid::TEXT),
            });
        }
        let mut bound: Vec<Vec<Expr>> = Vec::with_capacity(rows.len());
        for row in rows {
            let mut out = Vec::with_capacity(width);
            for (value, &ty) in row.into_iter().zip(&types) {
                out.push(self.coerce_to_common(value, ty, "VALUES")?.expr);
            }
            bound.push(out);
        }
        let columns: Vec<RelColumn> = (0..width)
            .map(|i| {
                let typmod = common_typmod(bound.iter().map(|row| &row[i]), types[i]);
                RelColumn { name: format!("column{}", i + 1), ty: Ty { oid: types[i], typmod } }
            })
            .collect();
        let mut query = self.over_virtual_rel("*VALUES*", columns);
        query.body = Body::Values(bound);
        let mut at = at;
        self.order_by(&select.sortClause, &mut query, &mut at)?;
        self.limit(select, &mut query)?;
        if let Some(Some(Node::LockingClause(clause))) = select.lockingClause.first() {
            let message = format!("{} cannot be applied to VALUES", clause_name(clause.strength));
            return Err(base::Error::unsupported(message));
        }
        Ok(BoundQuery { query, at })
    }

    /// A query whose rows come from its body: one virtual rel, whose columns are the targets.
    pub(super) fn over_virtual_rel(&mut self, alias: &str, columns: Vec<RelColumn>) -> Query {
        let rel = Rel { alias: alias.to_string(), aliased: false, kind: RelKind::Values, columns };
        let item = target_item(0, &rel, None);
        let targets = rel.columns.iter().zip(item.columns.iter());
        let targets =
            targets.map(|(c, n)| Target { expr: n.expr.clone(), name: c.name.clone(), junk: false }).collect();
        self.add_rel(rel, None);
        self.scope().items.push(item);
        Query { targets, ..Query::default() }
    }

    /// FOR UPDATE and the like: `transformLockingClause`.
    pub(super) fn locking(&mut self, select: &'a SelectStmt, query: &mut Query, has_set_call: bool) -> Result<()> {
        for node in select.lockingClause.iter().flatten() {
            let Node::LockingClause(clause) = node else { continue };
            let name = clause_name(clause.strength);
            // What is bound of the query so far is in its scope still.
            let scope = self.scope();
            let in_scope = [
                (!scope.aggs.is_empty(), "aggregate functions"),
                (is_windowed(&scope.rels), "window functions"),
                (has_set_call, "set-returning functions in the target list"),
            ];
            let of_scope = || in_scope.into_iter().find(|(is_there, _)| *is_there).map(|(_, what)| what);
            if let Some(what) = obstacle(query).or_else(of_scope) {
                return Err(base::Error::unsupported(format!("{name} is not allowed with {what}")));
            }
            let wanted = (lock_mode(clause.strength), wait_policy(clause.waitPolicy));
            if clause.lockedRels.is_empty() {
                for rel in 0..self.scope().rels.len() {
                    self.lock_rel(rel, wanted, None, query)?;
                }
            } else {
                self.lock_named(clause, wanted, query)?;
            }
        }
        Ok(())
    }

    fn lock_named(
        &mut self,
        clause: &LockingClause,
        wanted: (RowLockMode, WaitPolicy),
        query: &mut Query,
    ) -> Result<()> {
        let name = clause_name(clause.strength);
        for node in clause.lockedRels.iter().flatten() {
            let Node::RangeVar(var) = node else { continue };
            let wanted_name = var.relname.as_deref().unwrap_or("");
            if var.schemaname.is_some() {
                let message = format!("{name} must specify unqualified relation names");
                return Err(self.error(SqlState::SYNTAX_ERROR, message, var.location));
            }
            let scope = self.scope();
            if scope.items.iter().any(|i| i.rel.is_none() && i.name == wanted_name && !i.name.is_empty()) {
                let message = format!("{name} cannot be applied to a join");
                return Err(self.unsupported(message, var.location));
            }
            let Some(rel) = scope.rels.iter().position(|r| r.alias == wanted_name) else {
                let message = format!("relation \"{wanted_name}\" in {name} clause not found in FROM clause");
                return Err(self.error(SqlState::UNDEFINED_TABLE, message, var.location));
            };
            self.lock_rel(rel, wanted, Some((name, var.location)), query)?;
        }
        Ok(())
    }

    fn lock_rel(
        &mut self,
        rel: usize,
        (mode, policy): (RowLockMode, WaitPolicy),
        named: Option<(&str, i32)>,
        query: &mut Query,
    ) -> Result<()> {
        let mut nullable = Vec::new();
        query.from.iter().for_each(|f| nullable_rels(f, false, &mut nullable));
        let is_table = matches!(self.scope().rels[rel].kind, RelKind::Table(_));
        if is_table && nullable.contains(&rel) {
            let name = lock_name(mode);
            let message = format!("{name} cannot be applied to the nullable side of an outer join");
            return Err(base::Error::unsupported(message));
        }
        let mut tables = Vec::new();
        let refused = match &mut self.scope().rels[rel].kind {
            RelKind::Table(info) => {
                tables.push(info.desc.oid);
                add_locking(query, Locking { rel, mode, policy });
                None
            }
            RelKind::Subquery { query, .. } => {
                let is_view = query.of_view.is_some();
                if let Err(error) = lock_query(query, mode, policy, &mut tables) {
                    // What a view is over is found out when the statement runs.
                    if !is_view {
                        return Err(error);
                    }
                    self.refused.get_or_insert(error);
                }
                None
            }
            RelKind::Function { .. } => Some("a function"),
            RelKind::Cte { .. } | RelKind::WorkTable(_) => Some("a WITH query"),
            RelKind::Values => Some("VALUES"),
            RelKind::Join => Some("a join"),
            RelKind::System(relation) => {
                // Nobody can be granted it.
                let relation = *relation;
                if !self.cx.identity.superuser {
                    self.refused.get_or_insert_with(|| privileges::denied_on_system(relation.name, relation.is_view()));
                }
                None
            }
            RelKind::Window(_) => None,
        };
        for table in tables {
            self.lock(table, TableLockMode::RowShare);
            let of_view = self.cx.catalog.table(table).filter(|desc| desc.kind == TableKind::MaterializedView);
            if let Some(name) = of_view.map(|desc| &desc.name) {
                let message = format!("cannot lock rows in materialized view \"{name}\"");
                self.refused.get_or_insert_with(|| base::Error::new(SqlState::WRONG_OBJECT_TYPE, message));
            }
        }
        match (refused, named) {
            (Some(what), Some((name, at))) => Err(self.unsupported(format!("{name} cannot be applied to {what}"), at)),
            _ => Ok(()),
        }
    }
}

/// Whether a query calls window functions.
fn is_windowed(rels: &[Rel]) -> bool {
    rels.iter().any(|rel| matches!(rel.kind, RelKind::Window(_)))
}

/// Adds a row lock; the strongest counts.
fn add_locking(query: &mut Query, new: Locking) {
    match query.locking.iter_mut().find(|l| l.rel == new.rel) {
        Some(known) => {
            known.mode = known.mode.max(new.mode);
            // NOWAIT wins over SKIP LOCKED, which wins over waiting.
            known.policy = match (known.policy, new.policy) {
                (WaitPolicy::Error, _) | (_, WaitPolicy::Error) => WaitPolicy::Error,
                (WaitPolicy::Skip, _) | (_, WaitPolicy::Skip) => WaitPolicy::Skip,
                _ => WaitPolicy::Block,
            };
        }
        None => query.locking.push(new),
    }
}

/// What keeps the rows of a query from being rows of its tables.
fn obstacle(query: &Query) -> Option<&'static str> {
    let is_grouped = !query.group_by.is_empty() || !query.grouping_sets.is_empty();
    let obstacles = [
        (query.distinct.is_some(), "DISTINCT clause"),
        (is_grouped, "GROUP BY clause"),
        (query.having.is_some(), "HAVING clause"),
        (!query.aggs.is_empty(), "aggregate functions"),
        (is_windowed(&query.rels), "window functions"),
    ];
    obstacles.into_iter().find(|(is_there, _)| *is_there).map(|(_, what)| what)
}

/// Locks all tables of a subquery in FROM.
fn lock_query(query: &mut Query, mode: RowLockMode, policy: WaitPolicy, tables: &mut Vec<Oid>) -> Result<()> {
    if let Some(what) = obstacle(query) {
        let message = format!("{} is not allowed with {what}", lock_name(mode));
        return Err(base::Error::unsupported(message));
    }
    if let Some(of) = &mut query.of_view {
        of.is_locked = true;
    }
    if !matches!(query.body, Body::Select) {
        return Ok(());
    }
    let mut own = Vec::new();
    for (rel, entry) in query.rels.iter_mut().enumerate() {
        match &mut entry.kind {
            RelKind::Table(info) => {
                tables.push(info.desc.oid);
                own.push(Locking { rel, mode, policy });
            }
            RelKind::Subquery { query, .. } => lock_query(query, mode, policy, tables)?,
            _ => {}
        }
    }
    own.into_iter().for_each(|l| add_locking(query, l));
    Ok(())
}

/// The rels that an outer join may fill with NULLs.
fn nullable_rels(from: &From, nullable: bool, out: &mut Vec<usize>) {
    match from {
        From::Rel(rel) => {
            if nullable {
                out.push(*rel);
            }
        }
        From::Join { kind, left, right, .. } => {
            nullable_rels(left, nullable || matches!(kind, JoinKind::Right | JoinKind::Full), out);
            nullable_rels(right, nullable || matches!(kind, JoinKind::Left | JoinKind::Full), out);
        }
    }
}

fn lock_name(mode: RowLockMode) -> &'static str {
    match mode {
        RowLockMode::KeyShare => "FOR KEY SHARE",
        RowLockMode::Share => "FOR SHARE",
        RowLockMode::NoKeyUpdate => "FOR NO KEY UPDATE",
        RowLockMode::Update => "FOR UPDATE",
    }
}

fn lock_mode(strength: Strength) -> RowLockMode {
    match strength {
        Strength::LCS_FORKEYSHARE => RowLockMode::KeyShare,
        Strength::LCS_FORSHARE => RowLockMode::Share,
        Strength::LCS_FORNOKEYUPDATE => RowLockMode::NoKeyUpdate,
        _ => RowLockMode::Update,
    }
}

fn wait_policy(policy: Policy) -> WaitPolicy {
    match policy {
        Policy::LockWaitSkip => WaitPolicy::Skip,
        Policy::LockWaitError => WaitPolicy::Error,
        _ => WaitPolicy::Block,
    }
}

/// A locking clause as it is written.
pub fn clause_name(strength: Strength) -> &'static str {
    match strength {
        Strength::LCS_FORKEYSHARE => "FOR KEY SHARE",
        Strength::LCS_FORSHARE => "FOR SHARE",
        Strength::LCS_FORNOKEYUPDATE => "FOR NO KEY UPDATE",
        _ => "FOR UPDATE",
    }
}

/// The result columns of a query, with the table columns they come from.
pub(super) fn result_columns(query: &Query) -> Vec<ResultColumn> {
    let visible = query.targets.iter().filter(|t| !t.junk);
    visible
        .counted(64)
        .map(|t| {
            let mut column = ResultColumn::new(t.name.clone(), t.expr.ty());
            if let Some((table, number)) = origin(&t.expr, &query.rels) {
                (column.table, column.column) = (table, number);
            }
            column
        })
        .collect()
}

/// The table column an expression passes on unchanged.
pub(super) fn origin(expr: &Expr, rels: &[Rel]) -> Option<(Oid, i16)> {
    let Expr::Column(c) = expr else { return None };
    if c.level != 0 {
        return None;
    }
    match &rels.get(c.rel)?.kind {
        RelKind::Table(info) => Some((info.desc.oid, rels[c.rel].column_number(c.column))),
        RelKind::System(relation) => Some((relation.oid, c.column as i16 + 1)),
        RelKind::Cte { origins, .. } => origins.get(c.column).copied().flatten(),
        RelKind::Subquery { query, .. } => {
            let target = query.output(c.column)?;
            work::beat(16);
            matches!(query.body, Body::Select).then_some(())?;
            origin(&target.expr, &query.rels)
        }
        _ => None,
    }
}

/// A query around another one, which it reads as its only FROM item.
pub(super) fn wrap(mut inner: Query, columns: Vec<RelColumn>) -> Query {
    super::visit::shift_query(&mut inner, 1);
    let kind = RelKind::Subquery { query: Box::new(inner), lateral: false };
    let rel = Rel { alias: "*SELECT*".to_string(), aliased: false, kind, columns };
    Query { rels: vec![rel], from: vec![From::Rel(0)], ..Query::default() }
}
