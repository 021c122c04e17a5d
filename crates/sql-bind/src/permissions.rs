//! Whether the current role may do what a bound statement does (`ExecCheckRTPerms`).
//!
//! Asked once per plan: plans are cached by role, and any GRANT or REVOKE changes the catalog's version. The answer is kept
//! with the plan and given when it is run, as PostgreSQL does: what may not be run can still be prepared and described.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::Arc;

use base::{Error, Oid};
use engine_api::{Catalog, Privileges, TableDesc, TableKind};
use sql_functions::SEQUENCE_STATE;
use sql_ir::system_relation::SystemRelation;
use sql_ir::{
    Body, Expr, Insert, InsertSource, MergeKind, Query, QueryOfView, Rel, RelKind, SetCall, Statement, Target,
    ThroughViews, ViewUse,
};
use sql_parse::privileges::{self, Who};
use types::Datum;

use super::{BindContext, visit};

/// What a statement does to one range-table entry.
struct Need {
    table: Arc<TableDesc>,
    /// Who must be allowed to: the current role, or the owner of the view that it stands in.
    role: Oid,
    wanted: Privileges,
    /// Indexes of the columns that are read; all if `whole`.
    read: BTreeSet<usize>,
    whole: bool,
    /// Indexes of the columns that are inserted.
    inserted: BTreeSet<usize>,
    /// Indexes of the columns that are updated.
    updated: BTreeSet<usize>,
    /// Of a sample, the columns of the table that its columns are.
    sampled: Vec<Option<usize>>,
}

/// Walks a statement and notes what it needs, in the order of its range tables.
struct Walk {
    needs: Vec<Need>,
    /// For each query level the needs of its entries.
    levels: Vec<Vec<Option<usize>>>,
    /// Who runs the statement.
    invoker: Oid,
    /// In whose name what is met is done.
    role: Oid,
    /// Relations of the system's that are read, and in whose name.
    secrets: Vec<(&'static SystemRelation, Oid)>,
    /// Sequences whose state is read, and in whose name.
    sequences: Vec<(Oid, Oid)>,
}

/// The refusal of running a statement, if it is refused.
pub(super) fn denied(statement: &Statement, cx: &BindContext<'_>) -> Option<Error> {
    let who = Who { role: cx.identity.role, database: cx.identity.database_oid };
    let mut walk = Walk {
        needs: Vec::new(),
        levels: Vec::new(),
        invoker: who.role,
        role: who.role,
        secrets: Vec::new(),
        sequences: Vec::new(),
    };
    walk.statement(statement);
    if !cx.spared.is_empty() {
        walk.needs.retain(|need| !cx.spared.contains(&need.table.oid));
    }
    // PostgreSQL asks about views while it plans, about all else when it runs the plan.
    let (views, others): (Vec<_>, Vec<_>) = walk.needs.iter().partition(|need| need.table.kind == TableKind::View);
    let mut needs = views.into_iter().chain(others);
    let refused = needs.find(|need| !is_met(&cx.catalog, Who { role: need.role, ..who }, need));
    if let Some(need) = refused {
        return cx.catalog.get(need.table.oid).map(|object| privileges::denied_on(object));
    }
    let mut secrets = walk.secrets.iter();
    let hidden = secrets
        .find_map(|&(table, role)| privileges::hidden(&cx.catalog, Who { role, ..who }, table.name, table.is_view()));
    if hidden.is_some() {
        return hidden;
    }
    let mut sequences = walk.sequences.iter().filter_map(|&(oid, role)| Some((cx.catalog.get(oid)?, role)));
    sequences.find_map(|(sequence, role)| {
        privileges::require(&cx.catalog, Who { role, ..who }, sequence, Privileges::SELECT).err()
    })
}

fn is_met(catalog: &Catalog, who: Who, need: &Need) -> bool {
    let Some(object) = catalog.get(need.table.oid) else { return true };
    let missing = need.wanted.without(privileges::held(catalog, who, object));
    missing.each().all(|privilege| match privilege {
        Privileges::SELECT => columns_allow(catalog, who, need, privilege, &need.read, need.whole),
        Privileges::INSERT => columns_allow(catalog, who, need, privilege, &need.inserted, false),
        Privileges::UPDATE => columns_allow(catalog, who, need, privilege, &need.updated, false),
        _ => false,
    })
}

/// Whether privileges on columns do for one that the table lacks: on all that are used, or on any if none is.
fn columns_allow(
    catalog: &Catalog,
    who: Who,
    need: &Need,
    privilege: Privileges,
    used: &BTreeSet<usize>,
    whole: bool,
) -> bool {
    let may = |oid: Oid, number: i16| privileges::held_on_column(catalog, who, oid, number).contains(privilege);
    let table = &need.table;
    if whole {
        return table.live_columns().all(|column| may(table.oid, column.number));
    }
    if used.is_empty() {
        return table.live_columns().any(|column| may(table.oid, column.number));
    }
    let number = |index: usize| match table.columns.get(index) {
        Some(column) => column.number,
        None => table.columns.len() as i16 - index as i16 - 1,
    };
    used.iter().all(|&index| may(table.oid, number(index)))
}

impl Walk {
    /// Enters a level of entries that are wanted for something.
    fn enter(&mut self, rels: &[Rel], wanted: impl Fn(usize) -> Privileges) {
        let mut level = Vec::with_capacity(rels.len());
        for (i, rel) in rels.iter().enumerate() {
            level.push(match &rel.kind {
                RelKind::Table(info) => Some(self.add_need(Arc::new(info.desc.clone()), wanted(i))),
                RelKind::Subquery { query, .. } if query.sample.is_some() => self.add_sampled(query, wanted(i)),
                RelKind::Subquery { query, .. } => {
                    let whole = query.of_view.as_ref().filter(|of| of.is_whole);
                    let locked = |of: &QueryOfView| if of.is_locked { Privileges::UPDATE } else { Privileges::NONE };
                    whole.map(|of| self.add_need(Arc::clone(&of.view), wanted(i) | locked(of)))
                }
                RelKind::System(system) => {
                    if privileges::is_secret(system.name) {
                        self.secrets.push((system, self.role));
                    }
                    None
                }
                RelKind::Function { calls, .. } => {
                    let role = self.role;
                    self.sequences.extend(calls.iter().filter_map(sequence_of).map(|sequence| (sequence, role)));
                    None
                }
                _ => None,
            });
        }
        self.levels.push(level);
    }

    /// A table of which a sample is taken: what is read of the sample is read of the table.
    fn add_sampled(&mut self, query: &Query, wanted: Privileges) -> Option<usize> {
        let RelKind::Table(info) = &query.rels.first()?.kind else { return None };
        let locked = if query.locking.is_empty() { Privileges::NONE } else { Privileges::UPDATE };
        let need = self.add_need(Arc::new(info.desc.clone()), wanted | locked);
        let column = |target: &Target| match &target.expr {
            Expr::Column(column) => Some(column.column),
            _ => None,
        };
        self.needs[need].sampled = query.targets.iter().map(column).collect();
        Some(need)
    }

    fn add_need(&mut self, table: Arc<TableDesc>, wanted: Privileges) -> usize {
        self.needs.push(Need {
            table,
            role: self.role,
            wanted,
            read: BTreeSet::new(),
            whole: false,
            inserted: BTreeSet::new(),
            updated: BTreeSet::new(),
            sampled: Vec::new(),
        });
        self.needs.len() - 1
    }

    /// What is written through views is written to each of them by the one who names it, and to the table by the owner of
    /// the last. Read is, if the statement reads anything, what the statement reads of the first, and what each view's own query
    /// reads of what it is over (`rewriteTargetView`).
    fn write_through(&mut self, first: usize, ThroughViews { views, used }: &ThroughViews) {
        if views.is_empty() || self.needs.len() <= first {
            return;
        }
        let mut table = self.needs.remove(first);
        table.wanted = table.wanted.without(Privileges::SELECT);
        if !used.read.is_empty() {
            table.wanted = table.wanted | Privileges::SELECT;
        }
        let (mut role, mut used) = (self.role, used.clone());
        for (i, view) in views.iter().enumerate() {
            let need = Need {
                table: Arc::clone(&view.desc),
                role,
                wanted: table.wanted,
                read: used.read,
                whole: false,
                inserted: used.inserted.clone(),
                updated: used.updated.clone(),
                sampled: Vec::new(),
            };
            // In the order of PostgreSQL's range table: what is under a view comes last.
            self.needs.insert(if i == 0 { first } else { self.needs.len() }, need);
            role = self.acting(&view.desc);
            let under = |columns: &BTreeSet<usize>| match views.get(i + 1) {
                Some(next) => next.over_same(view, columns),
                None => columns.iter().filter_map(|&column| view.columns.get(column).copied().flatten()).collect(),
            };
            used = ViewUse { read: view.below.clone(), inserted: under(&used.inserted), updated: under(&used.updated) };
        }
        table.role = role;
        table.read = used.read;
        table.whole = false;
        self.needs.push(table);
    }

    /// In whose name the query of a view is run: its owner's, unless the view says that it is that of whoever runs the statement.
    fn acting(&self, view: &TableDesc) -> Oid {
        if sql_ir::view::runs_as_invoker(view) { self.invoker } else { view.owner }
    }

    fn need(&mut self, level: usize, rel: usize) -> Option<&mut Need> {
        let at = self.levels.len().checked_sub(1 + level)?;
        let need = (*self.levels.get(at)?.get(rel)?)?;
        self.needs.get_mut(need)
    }

    /// The need of the table that a statement changes.
    fn target(&mut self) -> Option<&mut Need> {
        self.need(0, 0)
    }

    fn statement(&mut self, statement: &Statement) {
        let first = self.needs.len();
        match statement {
            Statement::Select(query) => return self.query(query),
            Statement::Insert(insert) => {
                self.enter(&insert.rels[..1], |_| Privileges::INSERT);
                // `excluded` is the row to be inserted; its columns, which may have got defaults, are read as the table's.
                self.levels.last_mut().into_iter().for_each(|level| level.push(level[0]));
                if let Some(need) = self.target() {
                    need.inserted = insert.named.iter().copied().collect();
                }
                insert.ctes.iter().for_each(|cte| self.query(&cte.query));
                match &insert.source {
                    InsertSource::Values(rows) => rows.iter().flatten().for_each(|value| self.expr(value)),
                    InsertSource::Query(query) => self.query(query),
                }
                if let Some(update) = insert.on_conflict.as_ref().and_then(|c| c.update.as_ref()) {
                    self.updates(&update.set);
                    update.set.iter().for_each(|(_, value)| self.expr(value));
                    update.filter.iter().for_each(|filter| self.expr(filter));
                }
                self.arbiter(insert);
                insert.view_checks.iter().for_each(|(_, check)| self.expr(check));
                insert.returning.iter().for_each(|target| self.expr(&target.expr));
            }
            Statement::Update(update) => {
                let rels = &update.query.rels;
                self.enter(rels, |i| if i == 0 { Privileges::UPDATE } else { Privileges::SELECT });
                self.updates(&update.set);
                update.set.iter().for_each(|(_, value)| self.expr(value));
                self.parts(&update.query);
                update.returning.iter().for_each(|target| self.expr(&target.expr));
            }
            Statement::Delete(delete) => {
                let rels = &delete.query.rels;
                self.enter(rels, |i| if i == 0 { Privileges::DELETE } else { Privileges::SELECT });
                self.parts(&delete.query);
                delete.returning.iter().for_each(|target| self.expr(&target.expr));
            }
            Statement::Merge(merge) => {
                self.enter(&merge.query.rels, |i| if i == 0 { Privileges::NONE } else { Privileges::SELECT });
                for action in &merge.actions {
                    match &action.kind {
                        MergeKind::Update(set) => self.updates(set),
                        MergeKind::Delete => self.wants(Privileges::DELETE),
                        MergeKind::Insert(values, named) => self.inserts(&values[..*named]),
                        MergeKind::Nothing => self.wants(Privileges::SELECT),
                    }
                    action.condition.iter().for_each(|condition| self.expr(condition));
                    match &action.kind {
                        MergeKind::Update(values) | MergeKind::Insert(values, _) => {
                            values.iter().for_each(|(_, value)| self.expr(value));
                        }
                        MergeKind::Delete | MergeKind::Nothing => {}
                    }
                }
                self.parts(&merge.query);
            }
        }
        self.levels.pop();
        match statement {
            Statement::Insert(insert) => self.write_through(first, &insert.through),
            Statement::Update(update) => self.write_through(first, &update.through),
            Statement::Delete(delete) => self.write_through(first, &delete.through),
            Statement::Select(_) | Statement::Merge(_) => {}
        }
    }

    /// The columns of the unique index that decides about conflicts are read.
    fn arbiter(&mut self, insert: &Insert) {
        let Some(conflict) = &insert.on_conflict else { return };
        conflict.condition.iter().for_each(|condition| self.expr(condition));
        let Some(arbiter) = conflict.arbiter else { return };
        let Some(number) = insert.table.indexes.iter().position(|index| index.oid == arbiter) else { return };
        let keys = insert.table.indexes[number].keys.iter();
        if let Some(need) = self.target() {
            need.wanted = need.wanted | Privileges::SELECT;
            need.read.extend(keys.filter(|key| key.column > 0).map(|key| key.column as usize - 1));
        }
        let code = insert.table.code(number).flatten();
        code.iter().flat_map(|code| &code.expressions).for_each(|expression| self.expr(expression));
    }

    /// What is done with the target.
    fn wants(&mut self, privilege: Privileges) {
        if let Some(need) = self.target() {
            need.wanted = need.wanted | privilege;
        }
    }

    /// Columns of the target that are given values.
    fn inserts(&mut self, values: &[(usize, Expr)]) {
        if let Some(need) = self.target() {
            need.wanted = need.wanted | Privileges::INSERT;
            need.inserted.extend(values.iter().map(|(index, _)| *index));
        }
    }

    /// Columns of the target that are assigned to.
    fn updates(&mut self, set: &[(usize, Expr)]) {
        if let Some(need) = self.target() {
            need.wanted = need.wanted | Privileges::UPDATE;
            need.updated.extend(set.iter().map(|(index, _)| *index));
        }
    }

    fn query(&mut self, query: &Query) {
        if let Body::Modify(statement) = &query.body {
            return self.statement(statement);
        }
        if let Some(sample) = &query.sample {
            // Its table is one of the level around it.
            self.levels.push(Vec::new());
            self.expr(&sample.percent);
            sample.seed.iter().for_each(|seed| self.expr(seed));
            self.levels.pop();
            return;
        }
        let before = self.role;
        if let Some(of) = &query.of_view {
            self.role = self.acting(&of.view);
        }
        let locked = |rel: usize| query.locking.iter().any(|locking| locking.rel == rel);
        let read = Privileges::SELECT;
        self.enter(&query.rels, |rel| if locked(rel) { read | Privileges::UPDATE } else { read });
        self.parts(query);
        self.role = before;
        self.levels.pop();
    }

    /// What belongs to a query whose level has been entered.
    fn parts(&mut self, query: &Query) {
        let me = RefCell::new(self);
        visit::query_parts(query, &mut |expr| me.borrow_mut().expr(expr), &mut |inner| me.borrow_mut().query(inner));
    }

    fn expr(&mut self, expr: &Expr) {
        match expr {
            Expr::Column(column) => self.reads(column.level, column.rel, Some(column.column)),
            Expr::WholeRow { level, rel } => self.reads(*level, *rel, None),
            expr => {
                let me = RefCell::new(self);
                visit::children(expr, &mut |child| me.borrow_mut().expr(child), &mut |query| {
                    me.borrow_mut().query(query);
                });
            }
        }
    }

    fn reads(&mut self, level: usize, rel: usize, column: Option<usize>) {
        if let Some(need) = self.need(level, rel) {
            need.wanted = need.wanted | Privileges::SELECT;
            match column {
                Some(column) if need.sampled.is_empty() => drop(need.read.insert(column)),
                Some(column) => need.read.extend(need.sampled.get(column).copied().flatten()),
                None => need.whole = true,
            }
        }
    }
}

/// The sequence whose state a call reads.
pub fn sequence_of(call: &SetCall) -> Option<Oid> {
    match call.args.first() {
        Some(Expr::Const(Datum::Oid(oid), _)) if std::ptr::eq(call.function, &SEQUENCE_STATE) => Some(Oid(*oid)),
        _ => None,
    }
}
