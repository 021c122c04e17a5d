//! The SQL text of bound queries, as PostgreSQL's `ruleutils.c` writes that of views: one column per line, clauses indented.
//!
//! Every column is written with the name of its relation, so that the text means the same under any search path that
//! finds the relations.

use std::rc::Rc;

use engine_api::{RowLockMode, WaitPolicy};
use rustc_hash::FxHashMap;
use sql_bind::sequence_of;
use sql_functions::{self as functions, SEQUENCE_STATE};
use sql_ir::{
    Body, CastKind, Column, Cte, Expr, From, JoinKind, Query, Rel, RelKind, SetCall, SetOp, SubqueryKind, Target,
};
use sql_parse::names::{IDENTIFIER_BYTES_MAX, quote_name};

use super::deparse::{Around, Writer, as_written, without_casts};

/// How much deeper a query's lines are than those of the query around it.
pub(super) const STEP: usize = 8;

/// How many spaces a line has in front. So that those of deep queries have room left, PostgreSQL goes slower from some depth on, and
/// from the left again.
pub(super) fn spaces(level: usize) -> usize {
    const LIMIT: usize = 40;
    match level.checked_sub(LIMIT) {
        None => level,
        Some(more) => (LIMIT + more / (STEP / 2)) % LIMIT,
    }
}

/// A name; with a number behind it if it is taken.
fn unique(taken: &mut FxHashMap<String, u32>, name: String) -> String {
    let Some(mut number) = taken.get(&name).copied().filter(|_| !name.is_empty()) else {
        taken.insert(name.clone(), 0);
        return name;
    };
    loop {
        number += 1;
        let suffix = format!("_{number}");
        let mut changed = name[..name.floor_char_boundary(IDENTIFIER_BYTES_MAX - suffix.len())].to_string();
        changed.push_str(&suffix);
        if !taken.contains_key(&changed) {
            taken.insert(name, number);
            taken.insert(changed.clone(), 0);
            return changed;
        }
    }
}

impl<'a> Writer<'a> {
    /// A new line, indented `plus` deeper than the query.
    fn line(&mut self, plus: usize, word: &str) -> bool {
        while self.out.ends_with(' ') {
            self.out.pop();
        }
        self.out.push('\n');
        self.out.extend(std::iter::repeat_n(' ', spaces(self.indent) + plus));
        self.word(word)
    }

    /// Writes a query; `names` are those of its columns if others than its own.
    pub(super) fn query(&mut self, query: &Query, names: Option<&[&str]>) -> bool {
        self.within(query, |inner| inner.whole(query, names))
    }

    /// Writes what stands inside of a query.
    pub(super) fn within(&mut self, query: &Query, write: impl FnOnce(&mut Writer<'_>) -> bool) -> bool {
        // The writer keeps no reference beyond the call: queries are taken off again before it returns.
        let mut inner = Writer {
            table: None,
            pretty: self.pretty,
            cx: self.cx,
            out: std::mem::take(&mut self.out),
            queries: self.queries.clone(),
            names: self.names.clone(),
            indent: self.indent,
            names_shown: self.names_shown,
        };
        inner.names.push(self.names_of(query));
        inner.queries.push(query);
        let written = write(&mut inner);
        self.out = inner.out;
        written
    }

    /// A query one step further in, in parentheses.
    fn inner(&mut self, query: &Query, names_shown: bool) -> bool {
        self.indent += STEP;
        let written = self.word("(") && self.naming(names_shown, |w| w.query(query, None)) && self.word(")");
        self.indent -= STEP;
        written
    }

    /// Writes with or without names that only the query itself would see.
    fn naming(&mut self, names_shown: bool, write: impl FnOnce(&mut Self) -> bool) -> bool {
        let around = std::mem::replace(&mut self.names_shown, names_shown);
        let written = write(self);
        self.names_shown = around;
        written
    }

    fn whole(&mut self, query: &Query, names: Option<&[&str]>) -> bool {
        if !query.grouping_sets.is_empty() || !self.with(&query.ctes) {
            return false;
        }
        let body = match &query.body {
            Body::Select => self.select(query, names),
            Body::Values(rows) => self.word(" VALUES ") && self.values(rows),
            Body::Modify(_) => false,
            Body::SetOp { op, all, left, right, .. } => self.operation(*op, *all, left, right, names),
        };
        body && self.tail(query)
    }

    /// A WITH clause.
    fn with(&mut self, ctes: &[Cte]) -> bool {
        let Some(first) = ctes.first() else { return true };
        self.indent += STEP;
        let mut shown = self.word(if first.written.recursive { " WITH RECURSIVE " } else { " WITH " });
        for (i, cte) in ctes.iter().enumerate() {
            let said = &cte.written;
            let columns: Vec<String> = said.columns.iter().map(|column| quote_name(column)).collect();
            let materialized = match said.materialized {
                None => "",
                Some(true) => "MATERIALIZED ",
                Some(false) => "NOT MATERIALIZED ",
            };
            shown = shown
                && !said.searched
                && (i == 0 || self.word(", "))
                && self.word(&quote_name(&cte.name))
                && (columns.is_empty() || self.word(&format!("({})", columns.join(", "))))
                && self.word(&format!(" AS {materialized}("))
                && self.line(0, "")
                && self.naming(true, |w| w.query(&cte.query, None))
                && self.line(0, "")
                && self.word(")");
        }
        self.indent -= STEP;
        shown && self.line(0, "")
    }

    fn values(&mut self, rows: &[Vec<Expr>]) -> bool {
        rows.iter().enumerate().all(|(i, row)| {
            (i == 0 || self.word(", "))
                && self.word("(")
                && row.iter().enumerate().all(|(i, value)| (i == 0 || self.word(",")) && self.expr(as_written(value)))
                && self.word(")")
        })
    }

    fn operation(&mut self, op: SetOp, all: bool, left: &Query, right: &Query, names: Option<&[&str]>) -> bool {
        let word = match op {
            SetOp::Union => "UNION",
            SetOp::Intersect => "INTERSECT",
            SetOp::Except => "EXCEPT",
        };
        self.operand(left, names, op, all, true)
            && self.word(word)
            && (!all || self.word(" ALL"))
            && self.naming(false, |w| w.operand(right, names, op, all, false))
    }

    /// One side of a set operation, with the line break between it and the word; another operation needs parentheses
    /// unless it is the same one on the left.
    fn operand(&mut self, query: &Query, names: Option<&[&str]>, op: SetOp, all: bool, left: bool) -> bool {
        let ends = !query.order_by.is_empty() || query.limit.is_some() || query.offset.is_some();
        let closed = ends || !query.ctes.is_empty() || !query.locking.is_empty();
        let nested = match &query.body {
            Body::SetOp { op: inner, all: inner_all, .. } => !left || (*inner, *inner_all) != (op, all),
            _ => false,
        };
        if nested && !closed {
            let open = self.word(if left { "(" } else { " (" });
            self.indent += STEP;
            let inner = self.line(0, "") && self.query(query, names);
            self.indent -= STEP;
            return open && inner && self.line(0, if left { ") " } else { ")" });
        }
        let before = left || self.line(0, "");
        let written = match closed {
            true => self.word("(") && self.query(query, names) && self.word(")"),
            false => self.query(query, names),
        };
        before && written && (!left || self.line(0, ""))
    }

    fn select(&mut self, query: &Query, names: Option<&[&str]>) -> bool {
        let distinct = match &query.distinct {
            None => true,
            Some(on) if on.is_empty() => self.word(" DISTINCT"),
            Some(_) => true,
        };
        let head = if matches!(&query.distinct, Some(on) if on.is_empty()) {
            self.out.truncate(self.out.len() - " DISTINCT".len());
            self.word(" SELECT DISTINCT ")
        } else {
            self.word(" SELECT ")
        };
        distinct
            && head
            && self.distinct_on(query)
            && self.targets(&query.targets, names)
            && self.tables(&query.from)
            && self.clause(query.filter.as_ref(), " WHERE ", 1)
            && self.group_by(&query.group_by)
            && self.clause(query.having.as_ref(), " HAVING ", 0)
    }

    fn distinct_on(&mut self, query: &Query) -> bool {
        let Some(on) = query.distinct.as_ref().filter(|on| !on.is_empty()) else { return true };
        self.word("DISTINCT ON (")
            && on.iter().enumerate().all(|(i, &t)| (i == 0 || self.word(", ")) && self.key(&query.targets[t]))
            && self.word(") ")
    }

    fn targets(&mut self, targets: &[Target], names: Option<&[&str]>) -> bool {
        let visible = targets.iter().filter(|t| !t.junk);
        visible.enumerate().all(|(i, target)| {
            let name = names.and_then(|n| n.get(i).copied()).unwrap_or(&target.name);
            if i > 0 {
                self.out.push(',');
                self.line(4, "");
            }
            if !self.expr(&target.expr) {
                return false;
            }
            let own = match &target.expr {
                Expr::Column(column) => self.column_name(column),
                // Written again the expression may name its column otherwise, as a cast of a constant does.
                _ => (!self.names_shown).then(|| "?column?".to_string()),
            };
            own.as_deref() == Some(name) || (self.word(" AS ") && self.word(&quote_name(name)))
        })
    }

    fn clause(&mut self, condition: Option<&Expr>, word: &str, plus: usize) -> bool {
        let Some(condition) = condition else { return true };
        self.line(plus, word) && self.expr(condition)
    }

    fn group_by(&mut self, keys: &[Expr]) -> bool {
        if keys.is_empty() {
            return true;
        }
        self.line(1, " GROUP BY ")
            && keys.iter().enumerate().all(|(i, key)| (i == 0 || self.word(", ")) && self.sort_expr(key))
    }

    /// ORDER BY, OFFSET and LIMIT.
    fn tail(&mut self, query: &Query) -> bool {
        let mut written = true;
        if !query.order_by.is_empty() {
            written &= self.line(1, " ORDER BY ");
            for (i, key) in query.order_by.iter().enumerate() {
                let Some(target) = query.targets.get(key.target) else { return false };
                let shown = match query.body {
                    Body::Select => self.sort_key(i, |w| w.key(target)),
                    // What a set operation is ordered by are its columns.
                    _ => self.sort_key(i, |w| w.word(&(key.target + 1).to_string())),
                };
                written &= shown && self.direction(key.descending, key.nulls_first);
            }
        }
        if let Some(offset) = &query.offset {
            written &= self.line(0, " OFFSET ") && self.expr(offset);
        }
        match &query.limit {
            None => {}
            Some(limit) if query.with_ties => {
                written &= self.line(0, " FETCH FIRST (") && self.expr(limit) && self.word(") ROWS WITH TIES");
            }
            Some(Expr::Const(value, _)) if value.is_null() => written &= self.line(0, " LIMIT ALL"),
            Some(limit) => written &= self.line(0, " LIMIT ") && self.expr(limit),
        }
        written && self.locks(query)
    }

    /// FOR UPDATE and the like. What a clause that names no table locks in subqueries is not told from what these lock.
    fn locks(&mut self, query: &Query) -> bool {
        let is_subquery = |rel: &Rel| matches!(rel.kind, RelKind::Subquery { .. });
        if !query.locking.is_empty() && query.rels.iter().any(is_subquery) {
            return false;
        }
        query.locking.iter().all(|lock| {
            let name = self.names.last().and_then(|names| names.get(lock.rel)).map(|name| quote_name(name));
            let mode = match lock.mode {
                RowLockMode::KeyShare => " FOR KEY SHARE",
                RowLockMode::Share => " FOR SHARE",
                RowLockMode::NoKeyUpdate => " FOR NO KEY UPDATE",
                RowLockMode::Update => " FOR UPDATE",
            };
            let policy = match lock.policy {
                WaitPolicy::Block => "",
                WaitPolicy::Error => " NOWAIT",
                WaitPolicy::Skip => " SKIP LOCKED",
            };
            name.is_some_and(|name| self.line(0, mode) && self.word(&format!(" OF {name}{policy}")))
        })
    }

    fn sort_key(&mut self, at: usize, key: impl FnOnce(&mut Self) -> bool) -> bool {
        (at == 0 || self.word(", ")) && key(self)
    }

    fn key(&mut self, target: &Target) -> bool {
        self.sort_expr(&target.expr)
    }

    /// A constant without its type would be taken for the number of a column.
    fn sort_expr(&mut self, expr: &Expr) -> bool {
        if let Expr::Const(value, ty) = expr {
            return self.constant(value, *ty, false) && self.label(*ty);
        }
        let called = match expr {
            Expr::Column(column) if !self.is_window(column) => return self.expr(expr),
            Expr::Call { function, args, .. } => functions::operator_of(function, args.len()).is_none(),
            Expr::Column(_) | Expr::Agg { .. } | Expr::Cast { kind: CastKind::Called, .. } => true,
            _ => false,
        };
        if called || self.pretty {
            return self.word("(") && self.expr(expr) && self.word(")");
        }
        self.expr(expr)
    }

    /// Whether a column is the call of a window function.
    fn is_window(&self, column: &Column) -> bool {
        let query = self.queries.len().checked_sub(column.level + 1).map(|at| self.queries[at]);
        let rel = query.and_then(|query| query.rels.get(column.rel));
        rel.is_some_and(|rel| matches!(rel.kind, RelKind::Window(_)))
    }

    fn direction(&mut self, descending: bool, nulls_first: bool) -> bool {
        let order = !descending || self.word(" DESC");
        let nulls = match (descending, nulls_first) {
            (false, true) => self.word(" NULLS FIRST"),
            (true, false) => self.word(" NULLS LAST"),
            _ => true,
        };
        order && nulls
    }

    fn tables(&mut self, items: &[From]) -> bool {
        let shown: Vec<&From> = items.iter().collect();
        shown.iter().enumerate().all(|(i, item)| {
            if i == 0 {
                self.line(2, " FROM ");
            } else {
                self.out.push(',');
                self.line(4, "");
            }
            self.joined_tables(item)
        })
    }

    fn joined_tables(&mut self, item: &From) -> bool {
        let (kind, left, right, on) = match item {
            From::Rel(rel) => return self.relation(*rel),
            From::Join { kind, left, right, on } => (kind, left, right, on),
        };
        let word = match (kind, on) {
            (JoinKind::Inner, None) => " CROSS JOIN ",
            (JoinKind::Inner, Some(_)) => " JOIN ",
            (JoinKind::Left, _) => " LEFT JOIN ",
            (JoinKind::Right, _) => " RIGHT JOIN ",
            (JoinKind::Full, _) => " FULL JOIN ",
            // The planner's own: no statement has them.
            (JoinKind::Semi | JoinKind::Anti, _) => " JOIN ",
        };
        let grouped = self.pretty && matches!(**right, From::Join { .. });
        (self.pretty || self.word("("))
            && self.joined_tables(left)
            && self.line(4, word)
            && (!grouped || self.word("("))
            && self.joined_tables(right)
            && (!grouped || self.word(")"))
            && match on {
                None if *kind == JoinKind::Inner => true,
                None => self.word(" ON true"),
                Some(on) => {
                    self.word(" ON ")
                        && (self.pretty || self.word("("))
                        && self.expr(on)
                        && (self.pretty || self.word(")"))
                }
            }
            && (self.pretty || self.word(")"))
    }

    fn relation(&mut self, number: usize) -> bool {
        let Some(rel) = self.queries.last().and_then(|q| q.rels.get(number)) else { return false };
        let Some(alias) = self.names.last().and_then(|names| names.get(number)).cloned() else { return false };
        let columns = rel.columns.clone();
        let names = |w: &mut Self| {
            let list: Vec<String> = columns.iter().map(|c| quote_name(&c.name)).collect();
            w.word(&format!("({})", list.join(", ")))
        };
        match &rel.kind {
            RelKind::Table(info) => {
                let (catalog, identity) = (self.cx.catalog(), self.cx.identity());
                let name = super::relation_text(&catalog, &identity.search_path, info.desc.oid);
                self.word(&name) && self.alias(rel, &alias, &info.desc.name, true)
            }
            RelKind::Function { calls, .. } if let Some(sequence) = calls.first().and_then(sequence_of) => {
                let (catalog, identity) = (self.cx.catalog(), self.cx.identity());
                let Some(object) = catalog.get(sequence) else { return false };
                let name = super::relation_text(&catalog, &identity.search_path, sequence);
                let same = SEQUENCE_STATE.columns.iter().map(|c| c.0).eq(columns.iter().map(|c| c.name.as_str()));
                self.word(&name) && self.alias(rel, &alias, object.name(), same) && (same || names(self))
            }
            RelKind::System(relation) => {
                let name = match relation.schema {
                    "pg_catalog" => quote_name(relation.name),
                    schema => format!("{schema}.{}", quote_name(relation.name)),
                };
                self.word(&name) && self.alias(rel, &alias, relation.name, true)
            }
            RelKind::Subquery { query, lateral } => {
                let same =
                    query.targets.iter().filter(|t| !t.junk).map(|t| &t.name).eq(columns.iter().map(|c| &c.name));
                let values = matches!(query.body, Body::Values(_));
                if super::deparse_documents::is_documents(query) {
                    return self.documents(query, &alias, &columns);
                }
                (!lateral || self.word("LATERAL "))
                    && self.inner(query, true)
                    && self.word(" ")
                    && self.word(&quote_name(&alias))
                    && (same && !values || names(self))
            }
            RelKind::Function { calls, ordinality, .. } => {
                let speaks = |call: &SetCall| super::deparse_documents::speaks_of_others(&call.args, 0);
                (!calls.iter().any(speaks) || self.word("LATERAL "))
                    && self.called(calls)
                    && (!ordinality || self.word(" WITH ORDINALITY"))
                    && self.word(" ")
                    && self.word(&quote_name(&alias))
                    && names(self)
            }
            RelKind::Cte { id, .. } | RelKind::WorkTable(id) => {
                let mut around = self.queries.iter().rev().flat_map(|query| &query.ctes);
                let Some(cte) = around.find(|cte| cte.id == *id) else { return false };
                let given = cte.written.columns.iter();
                let rest = cte.query.targets.iter().filter(|t| !t.junk).map(|t| &t.name).skip(given.len());
                let same = given.chain(rest).eq(columns.iter().map(|c| &c.name));
                let name = cte.name.clone();
                self.word(&quote_name(&name)) && self.alias(rel, &alias, &name, same) && (same || names(self))
            }
            RelKind::Values | RelKind::Window(_) | RelKind::Join => false,
        }
    }

    /// What the relations of a query are called (`set_rtable_names`): no name is that of another relation of the query or of a query
    /// around it.
    fn names_of(&self, query: &Query) -> Rc<[String]> {
        let around = self.names.iter().flat_map(|names| names.iter().cloned());
        let mut taken: FxHashMap<String, u32> = around.map(|name| (name, 0)).collect();
        // PostgreSQL's rule of a view has these two.
        taken.extend(["old", "new"].map(|name| (name.to_string(), 0)));
        query.rels.iter().map(|rel| unique(&mut taken, self.own_name(rel))).collect()
    }

    /// The alias of a relation behind its name, unless it goes by that. With a list of its columns it has an alias always.
    fn alias(&mut self, rel: &Rel, alias: &str, name: &str, without_list: bool) -> bool {
        let is_own = !rel.aliased && without_list && alias == name;
        is_own || self.word(" ") && self.word(&quote_name(alias))
    }

    /// Calls of functions in FROM.
    fn called(&mut self, calls: &[SetCall]) -> bool {
        // Names with a space are of no function that SQL can call.
        if calls.iter().any(|call| call.function.name.contains(' ')) {
            return false;
        }
        let one =
            |w: &mut Self, call: &SetCall| w.listed(&format!("{}(", quote_name(call.function.name)), &call.args, ")");
        match calls {
            [call] => one(self, call),
            calls if calls.iter().all(|call| call.function.name == "unnest") => {
                self.listed("UNNEST(", calls.iter().flat_map(|call| &call.args), ")")
            }
            calls => {
                self.word("ROWS FROM(")
                    && calls.iter().enumerate().all(|(i, call)| (i == 0 || self.word(", ")) && one(self, call))
                    && self.word(")")
            }
        }
    }

    /// The alias of a relation; a table or sequence without one goes by its name of today.
    fn own_name(&self, rel: &Rel) -> String {
        let oid = match &rel.kind {
            RelKind::Table(info) => Some(info.desc.oid),
            RelKind::Function { calls, .. } => calls.first().and_then(sequence_of),
            _ => None,
        };
        let unnamed = oid.filter(|_| !rel.aliased);
        let today = unnamed.and_then(|oid| self.cx.catalog().get(oid).map(|object| object.name().to_string()));
        today.unwrap_or_else(|| rel.alias.clone())
    }

    /// The name of a column in its relation as it is now.
    fn column_name(&self, column: &Column) -> Option<String> {
        let at = self.queries.len().checked_sub(column.level + 1)?;
        let rel = self.queries[at].rels.get(column.rel)?;
        match &rel.kind {
            RelKind::Table(info) => match rel.system_column(column.column) {
                Some(system) => Some(system.name().to_string()),
                None => info.desc.columns.get(column.column).map(|c| c.name.clone()),
            },
            RelKind::System(relation) => relation.columns.get(column.column).map(|c| c.0.to_string()),
            RelKind::Window(_) => None,
            _ => rel.columns.get(column.column).map(|c| c.name.clone()),
        }
    }

    pub(super) fn column(&mut self, column: &Column) -> bool {
        let Some(at) = self.queries.len().checked_sub(column.level + 1) else { return false };
        let Some(rel) = self.queries[at].rels.get(column.rel) else { return false };
        if let (RelKind::Window(call), 0) = (&rel.kind, column.level) {
            let call = (**call).clone();
            return self.window(&call);
        }
        let Some(alias) = self.names[at].get(column.rel).map(|name| quote_name(name)) else { return false };
        let Some(name) = self.column_name(column) else { return false };
        self.word(&alias) && self.word(".") && self.word(&quote_name(&name))
    }

    fn window(&mut self, call: &sql_ir::WindowCall) -> bool {
        use sql_ir::{Exclude, FrameBound, FrameMode, WindowCallee};
        let frame = &call.frame;
        let is_default = matches!((&frame.start, &frame.end), (FrameBound::UnboundedPreceding, FrameBound::CurrentRow))
            && frame.mode == FrameMode::Range
            && frame.exclude == Exclude::NoOthers;
        let name = call.callee.name();
        let star = call.args.is_empty() && matches!(call.callee, WindowCallee::Aggregate(_));
        let partition = call.partition.is_empty() || self.word("");
        let called = partition && self.word(name) && self.word("(");
        let args = if star { self.word("*") } else { call.args.is_empty() || self.listed("", &call.args, "") };
        let filter = match &call.filter {
            None => true,
            Some(filter) => self.word(") FILTER (WHERE ") && self.expr(filter),
        };
        let head = called && args && filter && self.word(") OVER (");
        let parts = call.partition.is_empty()
            || self.word("PARTITION BY ")
                && call
                    .partition
                    .iter()
                    .enumerate()
                    .all(|(i, expr)| (i == 0 || self.word(", ")) && self.sort_expr(expr));
        let space = call.partition.is_empty() || call.order.is_empty() || self.word(" ");
        let order = call.order.is_empty()
            || self.word("ORDER BY ")
                && call.order.iter().enumerate().all(|(i, (expr, descending, nulls_first))| {
                    (i == 0 || self.word(", ")) && self.sort_expr(expr) && self.direction(*descending, *nulls_first)
                });
        let gap = is_default || call.partition.is_empty() && call.order.is_empty() || self.word(" ");
        head && parts && space && order && gap && (is_default || self.frame(frame)) && self.word(")")
    }

    /// A frame that is not the usual one.
    fn frame(&mut self, frame: &sql_ir::WindowFrame) -> bool {
        use sql_ir::{Exclude, FrameMode};
        let mode = match frame.mode {
            FrameMode::Rows => "ROWS BETWEEN ",
            FrameMode::Range => "RANGE BETWEEN ",
            FrameMode::Groups => "GROUPS BETWEEN ",
        };
        let exclude = match frame.exclude {
            Exclude::NoOthers => "",
            Exclude::CurrentRow => " EXCLUDE CURRENT ROW",
            Exclude::Group => " EXCLUDE GROUP",
            Exclude::Ties => " EXCLUDE TIES",
        };
        self.word(mode)
            && self.bound(&frame.start)
            && self.word(" AND ")
            && self.bound(&frame.end)
            && self.word(exclude)
    }

    /// The offset of a frame; a number of rows has become a `bigint`, which is not shown.
    fn offset(&mut self, offset: &Expr) -> bool {
        match offset {
            Expr::Const(value @ types::Datum::Int8(_), ty) => self.constant(value, *ty, false),
            offset => self.expr(without_casts(offset)),
        }
    }

    fn bound(&mut self, bound: &sql_ir::FrameBound) -> bool {
        use sql_ir::FrameBound;
        match bound {
            FrameBound::UnboundedPreceding => self.word("UNBOUNDED PRECEDING"),
            FrameBound::Preceding(offset) => self.offset(offset) && self.word(" PRECEDING"),
            FrameBound::CurrentRow => self.word("CURRENT ROW"),
            FrameBound::Following(offset) => self.offset(offset) && self.word(" FOLLOWING"),
            FrameBound::UnboundedFollowing => self.word("UNBOUNDED FOLLOWING"),
        }
    }

    pub(super) fn aggregate(&mut self, level: usize, index: usize) -> bool {
        let at = self.queries.len().checked_sub(level + 1);
        let Some(call) = at.and_then(|at| self.queries[at].aggs.get(index)).cloned() else { return false };
        // Arguments of an aggregate of a query further out are that query's.
        if level > 0 {
            return false;
        }
        let name = quote_name(call.aggregate.name);
        let head = self.word(&name) && self.word("(") && (!call.distinct || self.word("DISTINCT "));
        let args = match call.args.is_empty() {
            _ if call.aggregate.ordered_set => self.listed("", &call.direct, ") WITHIN GROUP ("),
            true => self.word("*"),
            false => self.listed("", &call.args, ""),
        };
        let order = call.order_by.is_empty()
            || self.word(if call.aggregate.ordered_set { "ORDER BY " } else { " ORDER BY " })
                && call.order_by.iter().enumerate().all(|(i, (expr, descending, nulls_first))| {
                    (i == 0 || self.word(", ")) && self.sort_expr(expr) && self.direction(*descending, *nulls_first)
                });
        let filter = match &call.filter {
            None => true,
            Some(filter) => self.word(") FILTER (WHERE ") && self.expr(filter),
        };
        head && args && order && filter && self.word(")")
    }

    pub(super) fn subquery(&mut self, kind: &SubqueryKind, query: &Query) -> bool {
        match kind {
            SubqueryKind::Exists => self.word("(EXISTS ") && self.inner(query, false) && self.word(")"),
            SubqueryKind::Scalar => self.inner(query, false),
            SubqueryKind::Array => self.word("ARRAY") && self.inner(query, false),
            SubqueryKind::Any { left, functions } | SubqueryKind::All { left, functions } => {
                if left.len() > 1 {
                    let is_equal = functions.iter().all(|function| functions::operator_of(function, 2) == Some("="));
                    let is_in = is_equal && matches!(kind, SubqueryKind::Any { .. });
                    return is_in && self.listed("((", left, ") IN ") && self.inner(query, false) && self.word(")");
                }
                let ([left], [function]) = (left.as_slice(), functions.as_slice()) else { return false };
                let Some(operator) = functions::operator_of(function, 2) else { return false };
                let all = matches!(kind, SubqueryKind::All { .. });
                let word = match (operator, all) {
                    ("=", false) => " IN ".to_string(),
                    (operator, false) => format!(" {operator} ANY "),
                    (operator, true) => format!(" {operator} ALL "),
                };
                self.word("(")
                    && self.part(left, Around::Operator(operator, true))
                    && self.word(&word)
                    && self.inner(query, false)
                    && self.word(")")
            }
        }
    }
}
