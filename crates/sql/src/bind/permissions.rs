//! Whether the current role may do what a bound statement does (`ExecCheckRTPerms`).
//!
//! Asked once per plan: plans are cached by role, and any GRANT or REVOKE changes the catalog's version. The answer is kept
//! with the plan and given when it is run, as PostgreSQL does: what may not be run can still be prepared and described.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::Arc;

use base::{Error, Oid};
use engine_api::{Catalog, Privileges, TableDesc};
use types::Datum;

use super::{BindContext, visit};
use crate::functions::SEQUENCE_STATE;
use crate::ir::{ColumnSource, Expr, Insert, InsertSource, MergeKind, Query, Rel, RelKind, SetCall, Statement};
use crate::privileges::{self, Class, Who};

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
}

/// Walks a statement and notes what it needs, in the order of its range tables.
struct Walk {
    needs: Vec<Need>,
    /// For each query level the needs of its entries.
    levels: Vec<Vec<Option<usize>>>,
    /// In whose name what is met is done.
    role: Oid,
    secret: Option<&'static str>,
    /// Sequences whose state is read.
    sequences: Vec<Oid>,
}

/// The refusal of running a statement, if it is refused.
pub(super) fn denied(statement: &Statement, views: &[Arc<TableDesc>], cx: &BindContext<'_>) -> Option<Error> {
    if cx.identity.superuser {
        return None;
    }
    let who = Who { role: cx.identity.role, database: cx.identity.database_oid };
    let mut walk = Walk { needs: Vec::new(), levels: Vec::new(), role: who.role, secret: None, sequences: Vec::new() };
    walk.statement(statement);
    walk.write_through(views);
    let refused = walk.needs.iter().find(|need| !is_met(&cx.catalog, Who { role: need.role, ..who }, need));
    if let Some(need) = refused {
        return cx.catalog.get(need.table.oid).map(|object| privileges::denied_on(object));
    }
    if let Some(table) = walk.secret {
        return Some(privileges::denied(Class::Table, table));
    }
    let sequences = walk.sequences.iter().filter_map(|&oid| cx.catalog.get(oid));
    sequences.map(|sequence| privileges::require(&cx.catalog, who, sequence, Privileges::SELECT)).find_map(Result::err)
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
    used.iter().all(|&index| table.columns.get(index).is_some_and(|column| may(table.oid, column.number)))
}

impl Walk {
    /// Enters a level of entries that are wanted for something.
    fn enter(&mut self, rels: &[Rel], wanted: impl Fn(usize) -> Privileges) {
        let mut level = Vec::with_capacity(rels.len());
        for (i, rel) in rels.iter().enumerate() {
            level.push(match &rel.kind {
                RelKind::Table(info) => Some(self.add_need(Arc::new(info.desc.clone()), wanted(i))),
                RelKind::Subquery { query, .. } => {
                    query.of_view.as_ref().map(|view| self.add_need(Arc::clone(view), wanted(i)))
                }
                RelKind::System(system) => {
                    if privileges::is_secret(system.name) {
                        self.secret.get_or_insert(system.name);
                    }
                    None
                }
                RelKind::Function { calls, .. } => {
                    self.sequences.extend(calls.iter().filter_map(sequence_of));
                    None
                }
                _ => None,
            });
        }
        self.levels.push(level);
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
        });
        self.needs.len() - 1
    }

    /// What is written through views is written to each of them by the one who names it, and to the table by the owner of
    /// the last.
    fn write_through(&mut self, views: &[Arc<TableDesc>]) {
        let Some(target) = self.needs.first() else { return };
        let (wanted, mut role) = (target.wanted, target.role);
        for view in views {
            self.role = role;
            self.add_need(Arc::clone(view), wanted);
            role = acting(view, role);
        }
        self.needs[0].role = role;
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
        match statement {
            Statement::Select(query) => self.query(query),
            Statement::Insert(insert) => {
                // `excluded` is the row to be inserted, not one of the table.
                self.enter(&insert.rels[..1], |_| Privileges::INSERT);
                if let Some(need) = self.target() {
                    let given = |(_, source): &(usize, &ColumnSource)| matches!(source, ColumnSource::Source(_));
                    need.inserted = insert.columns.iter().enumerate().filter(given).map(|(i, _)| i).collect();
                }
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
                self.enter(&merge.query.rels, |_| Privileges::SELECT);
                for action in &merge.actions {
                    match &action.kind {
                        MergeKind::Update(set) => self.updates(set),
                        MergeKind::Delete => self.wants(Privileges::DELETE),
                        MergeKind::Insert(_) => self.wants(Privileges::INSERT),
                        MergeKind::Nothing => {}
                    }
                    action.condition.iter().for_each(|condition| self.expr(condition));
                    if let MergeKind::Update(set) = &action.kind {
                        set.iter().for_each(|(_, value)| self.expr(value));
                    }
                }
                self.parts(&merge.query);
            }
        }
        self.levels.clear();
    }

    /// The columns of the unique index that decides about conflicts are read.
    fn arbiter(&mut self, insert: &Insert) {
        let Some(arbiter) = insert.on_conflict.as_ref().and_then(|c| c.arbiter) else { return };
        let Some(index) = insert.table.indexes.iter().find(|index| index.oid == arbiter) else { return };
        if let Some(need) = self.target() {
            need.wanted = need.wanted | Privileges::SELECT;
            need.read.extend(index.keys.iter().map(|key| key.column as usize - 1));
        }
    }

    /// What is done with the target.
    fn wants(&mut self, privilege: Privileges) {
        if let Some(need) = self.target() {
            need.wanted = need.wanted | privilege;
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
        let before = self.role;
        if let Some(view) = &query.of_view {
            self.role = acting(view, before);
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
                Some(column) => drop(need.read.insert(column)),
                None => need.whole = true,
            }
        }
    }
}

/// The sequence whose state a call reads.
fn sequence_of(call: &SetCall) -> Option<Oid> {
    match call.args.first() {
        Some(Expr::Const(Datum::Oid(oid), _)) if std::ptr::eq(call.function, &SEQUENCE_STATE) => Some(Oid(*oid)),
        _ => None,
    }
}

/// In whose name the query of a view is run: its owner's, unless the view says that it is that of whoever reads it.
fn acting(view: &TableDesc, reader: Oid) -> Oid {
    let invoker =
        |(name, value): &(String, String)| name == "security_invoker" && !matches!(&**value, "false" | "off" | "0");
    if view.options.iter().any(invoker) { reader } else { view.owner }
}
