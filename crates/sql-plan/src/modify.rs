//! INSERT, UPDATE, DELETE and MERGE.

use std::sync::Arc;

use base::{Error, Result};
use engine_api::{ConflictArbiter, RowLockMode};
use sql_ir::expr::{Code, Slot};
use sql_ir::row_codec::{RowReader, RowWriter};
use sql_ir::{
    self as ir, ColumnSource, Delete, Expr, From, Insert, InsertSource, JoinKind, Merge, MergeAction, MergeKind,
    OnConflict, Query, Rel, Statement, TableInfo, Update,
};

use super::level::{Level, Outer};
use super::merge_join::WantedRows;
use super::node::{
    ArbiterByValues, ConflictAction, CurrentNode, DeleteNode, InsertNode, InsertRows, MergeNode, MergeStep, MergeWork,
    Node, PlannedTable, QueryPlan, RowChoice, SubqueryNode, Target, UpdateNode, UpdateSet,
};
use super::{PlanContext, foreign_key, join, query, rewrite, walk};

/// Which kinds of change a target must be ready for.
#[derive(Clone, Copy)]
struct Kinds<'a> {
    inserts: bool,
    removes: bool,
    /// Rows are only changed, and only in these columns: the others stay in their tuples.
    changes: Option<&'a [usize]>,
    /// Columns that the statement gives values to.
    given: &'a [usize],
}

fn target(
    level: &mut Level<'_>,
    rel: usize,
    info: &Arc<TableInfo>,
    (checks, view_checks): (&[(String, Expr)], &[(String, Expr)]),
    generated: &[(usize, Expr)],
    returning: &[ir::Target],
    kinds: Kinds<'_>,
) -> Result<(Target, Vec<Slot>)> {
    let mut references = if kinds.inserts { foreign_key::referencing(info, level.cx.catalog)? } else { Vec::new() };
    let mut referenced = if kinds.removes { foreign_key::referenced(info, level.cx.catalog)? } else { Vec::new() };
    let writes = |column: usize| kinds.changes.is_none_or(|changes| changes.contains(&column));
    references.retain(|key| key.columns.iter().any(|c| writes(*c)));
    referenced.retain(|key| key.columns.iter().any(|c| writes(*c)));
    let (slots, carried) = match kinds.changes {
        None if kinds.inserts => (level.use_all(rel), Vec::new()),
        // Of a row that goes, what others point to and what RETURNING shows is looked at.
        _ => {
            let keys = references.iter().map(|key| &key.columns).chain(referenced.iter().map(|key| &key.columns));
            keys.flatten().for_each(|column| _ = level.column_slot(rel, *column));
            level.carry_all(rel)
        }
    };
    let row_slot = level.row_slot(rel);
    let checks = named(level, checks)?;
    let view_checks = named(level, view_checks)?;
    let generated = compile_set(level, generated)?;
    let (mut output, mut computed) = (Vec::new(), Vec::new());
    for column in returning {
        match level.compile(&column.expr)? {
            Code::Slot(slot) => output.push(slot),
            code => {
                let slot = level.slot();
                output.push(slot);
                computed.push((slot, code));
            }
        }
    }
    let columns = info.desc.columns.iter().enumerate();
    let tested = columns.filter(|(at, column)| column.not_null && !column.dropped && writes(*at)).map(|(at, _)| at);
    // Those that are written get their values without being read.
    let left: Vec<(usize, Slot)> = carried.into_iter().filter(|(column, _)| !writes(*column)).collect();
    let target = Target {
        may_defer: references.iter().any(|key| key.deferred.is_some())
            || referenced.iter().any(|key| key.deferred.is_some())
            || info.indexes.iter().any(|index| index.deferrable),
        table: PlannedTable::new(info),
        reader: level.reader(rel, info)?,
        writer: RowWriter::new(info),
        row_slot,
        slots,
        given: kinds.given.into(),
        not_null: tested.collect(),
        rest: RowReader::new(info, &left, None)?,
        checks,
        view_checks,
        generated,
        references,
        referenced,
        returning: computed,
        returns: !returning.is_empty(),
    };
    Ok((target, output))
}

/// Compiles conditions that have names.
fn named(level: &mut Level<'_>, conditions: &[(String, Expr)]) -> Result<Vec<(String, Code)>> {
    conditions.iter().map(|(name, condition)| Ok((name.clone(), level.compile(condition)?))).collect()
}

/// Whether a column is part of a key that others may point to.
fn is_in_key(info: &TableInfo, column: usize) -> bool {
    let mut keys = info.indexes.iter().filter(|i| i.unique && !i.needs_code());
    keys.any(|i| i.keys.iter().any(|k| (k.column - 1) as usize == column))
}

/// Whether a generated column is part of such a key.
fn generates_key(info: &TableInfo) -> bool {
    let mut generated = info.desc.columns.iter().filter(|column| column.generated.is_some());
    generated.any(|column| is_in_key(info, (column.number - 1) as usize))
}

/// The row lock that an update of these columns takes: the strongest if a key that others may point to can change.
fn lock_mode(info: &TableInfo, set: &[(usize, Expr)]) -> RowLockMode {
    if generates_key(info) || set.iter().any(|(column, _)| is_in_key(info, *column)) {
        RowLockMode::Update
    } else {
        RowLockMode::NoKeyUpdate
    }
}

/// What an update gives to columns, and how it locks.
fn update_set(level: &mut Level<'_>, info: &TableInfo, set: &[(usize, Expr)]) -> Result<UpdateSet> {
    let in_keys = set.iter().enumerate().filter(|(_, (column, _))| is_in_key(info, *column));
    let keys = if generates_key(info) { Vec::new() } else { in_keys.map(|(at, _)| at).collect() };
    Ok(UpdateSet { values: compile_set(level, set)?, mode: lock_mode(info, set), keys })
}

fn compile_set(level: &mut Level<'_>, set: &[(usize, Expr)]) -> Result<Vec<(usize, Code)>> {
    set.iter().map(|(column, expr)| Ok((*column, level.compile(expr)?))).collect()
}

fn finish(level: Level<'_>, node: Node, output: Vec<Slot>) -> Result<Planned> {
    let node = level.note(node, 0, 0.0, 0.0);
    Ok(level.finish(node, output))
}

/// A plan, and what it takes from the query around it.
type Planned = (QueryPlan, Vec<(Outer, Slot)>);

/// Plans a statement that changes rows.
pub(super) fn statement(statement: &Statement, cx: &PlanContext<'_>) -> Result<Planned> {
    match statement {
        Statement::Select(query) => query::plan_query(query, cx),
        Statement::Insert(insert) => self::insert(insert, statement, cx),
        Statement::Update(update) => self::update(update, statement, cx),
        Statement::Delete(delete) => self::delete(delete, statement, cx),
        Statement::Merge(merge) => self::merge(merge, statement, cx),
    }
}

/// Plans an INSERT.
fn insert(insert: &Insert, statement: &Statement, cx: &PlanContext<'_>) -> Result<Planned> {
    let rels: &[Rel] = &insert.rels;
    let mut level = Level::new(cx, rels, |f| walk::walk_statement(statement, 0, &mut |e, depth| f(e, depth)));
    level.add_ctes(&insert.ctes)?;
    let updates = insert.on_conflict.as_ref().is_some_and(|c| c.update.is_some());
    let set = insert.on_conflict.iter().filter_map(|c| c.update.as_ref()).flat_map(|update| &update.set);
    let given: Vec<usize> = insert.named.iter().copied().chain(set.map(|(column, _)| *column)).collect();
    let kinds = Kinds { inserts: true, removes: updates, changes: None, given: &given };
    let (target, output) = target(
        &mut level,
        0,
        &insert.table,
        (&insert.checks, &insert.view_checks),
        &insert.generated,
        &insert.returning,
        kinds,
    )?;
    // A column of the source that goes to one column of the table is put there at once.
    let column_of = |number: usize| {
        let takes = |column: &ColumnSource| matches!(column, ColumnSource::Source(n) if *n == number);
        insert.columns.iter().position(takes)
    };
    let (source, source_slots) = source(&mut level, &insert.source, &target.slots, &column_of)?;
    let mut columns = Vec::new();
    for (at, (&slot, column)) in target.slots.iter().zip(&insert.columns).enumerate() {
        let code = match column {
            ColumnSource::Source(number) => {
                let from = source_slots.get(*number);
                Code::Slot(*from.ok_or_else(|| Error::internal("a source column that is not there"))?)
            }
            ColumnSource::Default(expr) => level.compile(expr)?,
        };
        if !matches!(code, Code::Slot(from) if from == slot) {
            columns.push((slot, code));
        }
        if let Some((_, tested)) = insert.tests.iter().find(|(column, _)| *column == at) {
            columns.push((slot, level.compile(tested)?));
        }
    }
    let (arbiter, on_conflict) = match &insert.on_conflict {
        None => (ConflictArbiter::None, None),
        Some(conflict) => {
            let arbiter = conflict.arbiter.map_or(ConflictArbiter::Any, ConflictArbiter::Index);
            (arbiter, Some(conflict_action(&mut level, &insert.table, conflict)?))
        }
    };
    let by_values = match &insert.on_conflict {
        Some(conflict) => arbiter_by_values(&mut level, conflict)?,
        None => None,
    };
    let node = InsertNode { target, source, columns, arbiter, by_values, on_conflict };
    finish(level, Node::Insert(Arc::new(node)), output)
}

/// The choice of an arbiter that waits for the values of parameters.
fn arbiter_by_values(level: &mut Level<'_>, conflict: &OnConflict) -> Result<Option<ArbiterByValues>> {
    let Some(condition) = conflict.condition.as_ref().filter(|_| !conflict.by_values.is_empty()) else {
        return Ok(None);
    };
    let mut found: Vec<(usize, Expr)> = Vec::new();
    walk::walk(condition, 0, &mut |expr, _| {
        if let Expr::Param(number, _) = expr
            && !found.iter().any(|(known, _)| known == number)
        {
            found.push((*number, expr.clone()));
        }
    });
    let params = found.iter().map(|(number, expr)| Ok((*number, level.compile(expr)?))).collect::<Result<_>>()?;
    Ok(Some(ArbiterByValues::new(condition.clone(), params, conflict.by_values.clone())))
}

/// The source of an INSERT, and the slots of its columns: that of the table's column that `column_of` says, or one of their own.
fn source(
    level: &mut Level<'_>,
    source: &InsertSource,
    places: &[Slot],
    column_of: &dyn Fn(usize) -> Option<usize>,
) -> Result<(InsertRows, Vec<Slot>)> {
    let slots = |level: &mut Level<'_>, width: usize| -> Vec<Slot> {
        (0..width).map(|number| column_of(number).map_or_else(|| level.slot(), |column| places[column])).collect()
    };
    match source {
        InsertSource::Values(rows) => {
            let slots = slots(level, rows.first().map_or(0, Vec::len));
            let mut order: Vec<usize> = (0..slots.len()).collect();
            if let [_] = &rows[..] {
                // The values of one row are computed in the order of the columns, those of several as they stand.
                order.sort_by_key(|at| column_of(*at));
            }
            let compiled = rows.iter().map(|row| order.iter().map(|at| level.compile(&row[*at])).collect());
            let rows = compiled.collect::<Result<_>>()?;
            Ok((InsertRows::Values { rows, slots: order.iter().map(|at| slots[*at]).collect() }, slots))
        }
        InsertSource::Query(query) => {
            let subplan = level.subplan(query)?;
            let slots = slots(level, subplan.plan.output.len());
            let columns = slots.iter().copied().enumerate().collect();
            let node = SubqueryNode { subplan, alias: "*SELECT*".into(), columns };
            Ok((InsertRows::Query(Node::Subquery(Arc::new(node))), slots))
        }
    }
}

fn conflict_action(level: &mut Level<'_>, info: &TableInfo, conflict: &OnConflict) -> Result<ConflictAction> {
    let Some(update) = &conflict.update else { return Ok(ConflictAction::Nothing) };
    let excluded = level.use_all(1);
    let mut conditions = Vec::new();
    if let Some(filter) = &update.filter {
        walk::conjuncts(filter.clone(), &mut conditions);
    }
    Ok(ConflictAction::Update {
        excluded,
        set: compile_set(level, &update.set)?,
        filter: level.compile_all(&conditions)?,
        mode: lock_mode(info, &update.set),
    })
}

fn choice(level: &mut Level<'_>, query: &Query) -> Result<RowChoice> {
    let recheck = query::qualification(level, query, Some(0))?;
    // The right side of a semi- or anti-join gives no rows.
    let mut from = query.from.as_slice();
    while let [From::Join { kind: JoinKind::Semi | JoinKind::Anti, left, .. }] = from {
        from = std::slice::from_ref(&**left);
    }
    Ok(RowChoice { recheck, may_repeat: !matches!(from, [From::Rel(_)]) })
}

/// The rows to change: those of FROM and WHERE, or the one that a cursor is on.
fn rows(level: &mut Level<'_>, query: &Query, table: &Arc<TableInfo>) -> Result<Node> {
    let Some(cursor) = &query.current_of else {
        return Ok(
            join::from_where(level, &query.from, &query.guards, query.filter.as_ref(), WantedRows::default())?.node
        );
    };
    if !matches!(query.from[..], [From::Rel(0)]) {
        return Err(Error::unsupported("WHERE CURRENT OF with other tables is not supported"));
    }
    let reader = level.reader(0, table)?;
    let alias = level.rels[0].alias.clone();
    let node = CurrentNode { table: PlannedTable::new(table), alias, reader, cursor: cursor.clone() };
    Ok(Node::Current(Arc::new(node)))
}

/// Plans an UPDATE.
fn update(update: &Update, statement: &Statement, cx: &PlanContext<'_>) -> Result<Planned> {
    let rewritten = rewrite::rewrite_locked(&update.query);
    let query: &Query = rewritten.as_ref().unwrap_or(&update.query);
    let mut level = Level::new(cx, &query.rels, |f| {
        walk::walk_statement(statement, 0, &mut |e, depth| f(e, depth));
        rewritten.iter().for_each(|query| walk::walk_what_sees_rels(query, 0, &mut |e, depth| f(e, depth)));
    });
    level.null_extended(&query.from);
    level.add_ctes(&query.ctes)?;
    let changes: Vec<usize> = update.set.iter().chain(&update.generated).map(|(column, _)| *column).collect();
    let given = &changes[..update.set.len()];
    // The values of keys before are looked at, so that a key that stays what it is is not locked as one that changes.
    given
        .iter()
        .filter(|column| is_in_key(&update.table, **column))
        .for_each(|column| _ = level.column_slot(0, *column));
    let kinds = Kinds { inserts: true, removes: true, changes: Some(&changes), given };
    let (target, output) = target(
        &mut level,
        0,
        &update.table,
        (&update.checks, &update.view_checks),
        &update.generated,
        &update.returning,
        kinds,
    )?;
    let input = rows(&mut level, query, &update.table)?;
    let choice = choice(&mut level, query)?;
    let set = update_set(&mut level, &update.table, &update.set)?;
    let places = target.writer.places(&changes, &target.slots);
    let node = UpdateNode { target, input, set, places, choice };
    finish(level, Node::Update(Arc::new(node)), output)
}

/// Plans a DELETE.
fn delete(delete: &Delete, statement: &Statement, cx: &PlanContext<'_>) -> Result<Planned> {
    let rewritten = rewrite::rewrite_locked(&delete.query);
    let query: &Query = rewritten.as_ref().unwrap_or(&delete.query);
    let mut level = Level::new(cx, &query.rels, |f| {
        walk::walk_statement(statement, 0, &mut |e, depth| f(e, depth));
        rewritten.iter().for_each(|query| walk::walk_what_sees_rels(query, 0, &mut |e, depth| f(e, depth)));
    });
    level.null_extended(&query.from);
    level.add_ctes(&query.ctes)?;
    let kinds = Kinds { inserts: false, removes: true, changes: None, given: &[] };
    let (target, output) = target(&mut level, 0, &delete.table, (&[], &[]), &[], &delete.returning, kinds)?;
    let input = rows(&mut level, query, &delete.table)?;
    let choice = choice(&mut level, query)?;
    let node = DeleteNode { target, input, choice };
    finish(level, Node::Delete(Arc::new(node)), output)
}

/// Plans a MERGE.
fn merge(merge: &Merge, statement: &Statement, cx: &PlanContext<'_>) -> Result<Planned> {
    let query: &Query = &merge.query;
    let mut level = Level::new(cx, &query.rels, |f| walk::walk_statement(statement, 0, &mut |e, depth| f(e, depth)));
    level.null_extended(&query.from);
    level.add_ctes(&query.ctes)?;
    let does = |wanted: fn(&MergeKind) -> bool| merge.actions.iter().any(|action| wanted(&action.kind));
    let said = |action: &MergeAction| match &action.kind {
        MergeKind::Update(values) => values.clone(),
        MergeKind::Insert(values, named) => values[..*named].to_vec(),
        MergeKind::Delete | MergeKind::Nothing => Vec::new(),
    };
    let given: Vec<usize> = merge.actions.iter().flat_map(said).map(|(column, _)| column).collect();
    let kinds = Kinds {
        inserts: does(|kind| matches!(kind, MergeKind::Insert(..) | MergeKind::Update(_))),
        removes: does(|kind| matches!(kind, MergeKind::Delete | MergeKind::Update(_))),
        changes: None,
        given: &given,
    };
    let (target, output) = target(&mut level, 0, &merge.table, (&merge.checks, &[]), &merge.generated, &[], kinds)?;
    let input = join::from_where(&mut level, &query.from, &[], None, WantedRows::default())?.node;
    let mut conditions = Vec::new();
    walk::conjuncts(merge.on.clone(), &mut conditions);
    let recheck = level.compile_all(&conditions)?;
    let actions = merge.actions.iter().map(|a| merge_step(&mut level, &merge.table, a)).collect::<Result<_>>()?;
    finish(level, Node::Merge(Arc::new(MergeNode { target, input, recheck, actions })), output)
}

fn merge_step(level: &mut Level<'_>, info: &TableInfo, action: &MergeAction) -> Result<MergeStep> {
    let kind = match &action.kind {
        MergeKind::Update(set) => MergeWork::Update(update_set(level, info, set)?),
        MergeKind::Delete => MergeWork::Delete,
        MergeKind::Insert(values, _) => {
            let mut values: Vec<_> = values.iter().collect();
            values.sort_by_key(|(column, _)| *column);
            let compiled = values.into_iter().map(|(column, value)| Ok((*column, level.compile(value)?)));
            MergeWork::Insert(compiled.collect::<Result<_>>()?)
        }
        MergeKind::Nothing => MergeWork::Nothing,
    };
    Ok(MergeStep { matched: action.matched, condition: level.compile_all(&action.condition)?, kind })
}
