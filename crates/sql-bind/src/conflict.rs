//! ON CONFLICT: which unique index decides whether a row is in the way, and what is done then.

use std::sync::Arc;

use base::{Error, Result, SqlState};
use engine_api::{ConstraintKind, TableDesc};
use rupg_sql::nodes::{InferClause, Node, OnConflictAction, OnConflictClause};
use sql_ir::system_column;
use sql_ir::{ConflictUpdate, Expr, OnConflict, Rel, TableInfo};

use super::Binder;
use super::dml::Written;
use super::equal::same;
use super::scope::ClauseKind;

impl<'a> Binder<'a, '_> {
    pub(super) fn on_conflict(
        &mut self,
        clause: &'a OnConflictClause,
        written: &Written,
        rels: &mut [Rel],
    ) -> Result<Option<OnConflict>> {
        let updates = match clause.action {
            OnConflictAction::ONCONFLICT_NOTHING => false,
            OnConflictAction::ONCONFLICT_UPDATE => true,
            OnConflictAction::ONCONFLICT_NONE => return Ok(None),
            _ => return Err(self.unsupported("ON CONFLICT DO SELECT is not supported", clause.location)),
        };
        if updates && clause.infer.is_none() {
            let message = "ON CONFLICT DO UPDATE requires inference specification or constraint name";
            return Err(self
                .error(SqlState::SYNTAX_ERROR, message, clause.location)
                .hint("For example, ON CONFLICT (column_name)."));
        }
        let mut by_values = Vec::new();
        let (arbiter, condition) = match clause.infer.as_deref() {
            None => (None, None),
            Some(infer) => match infer.conname.as_deref() {
                Some(name) => (Some(constraint_index(name, &written.table.desc)?), None),
                None => {
                    let (index, condition) = self.inferred_index(infer, (rels, updates), written, &mut by_values)?;
                    (Some(index), condition)
                }
            },
        };
        self.refuse_deferrable_arbiter(arbiter, &written.table);
        let update = match updates {
            false => None,
            true => {
                self.enter_target(rels, written);
                let set = self.set_list(&clause.targetList, written)?;
                let filter = self.condition(clause.whereClause.as_ref(), ClauseKind::Where, "WHERE")?;
                self.keep_system_columns(rels);
                Some(ConflictUpdate { set, filter })
            }
        };
        Ok(Some(OnConflict { arbiter, condition, by_values, update }))
    }

    /// A deferrable unique index does not know a duplicate when it sees one. The statement can be described, but not run.
    fn refuse_deferrable_arbiter(&mut self, arbiter: Option<base::Oid>, table: &TableInfo) {
        let takes = |index: &&engine_api::IndexDesc| index.deferrable && arbiter.is_none_or(|oid| oid == index.oid);
        let Some(index) = table.indexes.iter().find(takes) else { return };
        let message = "ON CONFLICT does not support deferrable unique constraints/exclusion constraints as arbiters";
        let schema = self.cx.catalog.get(table.desc.schema).map(|s| s.name().to_string()).unwrap_or_default();
        self.refused.get_or_insert_with(|| {
            Error::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, message)
                .schema(schema)
                .table(&table.desc.name)
                .constraint(&index.name)
        });
    }

    /// The unique index over exactly the columns and expressions of a conflict target, and the target's condition. If that cannot
    /// be told before parameters have values, those that may be meant go to `by_values`.
    fn inferred_index(
        &mut self,
        infer: &'a InferClause,
        (rels, updates): (&[Rel], bool),
        written: &Written,
        by_values: &mut Vec<(base::Oid, Expr)>,
    ) -> Result<(base::Oid, Option<Expr>)> {
        let (table, at) = (Arc::clone(&written.table), infer.location);
        let mut wanted: Vec<i16> = Vec::with_capacity(infer.indexElems.len());
        let mut computed: Vec<Expr> = Vec::new();
        self.enter_target_alone(rels, updates, written);
        for node in infer.indexElems.iter().flatten() {
            let Node::IndexElem(element) = node else { continue };
            let Some(name) = element.name.as_deref() else {
                let Some(node) = &element.expr else { continue };
                let value = self.at_place(ClauseKind::IndexExpression, |b| b.expr(node))?;
                // As the index has it.
                computed.push(super::erase::erased(self.resolve_unknown(value)?.expr));
                continue;
            };
            let number = match &written.through {
                None => system_column::number_of(&table.desc, name),
                Some(through) => {
                    self.through.used.read.extend(through.position(name));
                    through.base_column(name).map(|base| base.map_or(0, |i| i as i16 + 1))
                }
            };
            let Some(number) = number else {
                return Err(self.missing_column(None, name, at));
            };
            if !wanted.contains(&number) {
                wanted.push(number);
            }
        }
        let condition = self.condition(infer.whereClause.as_ref(), ClauseKind::IndexPredicate, "WHERE")?;
        let condition = condition.map(super::erase::erased);
        self.scope().items.clear();
        let predicate = |number: usize| table.code(number).flatten().and_then(|code| code.predicate.as_ref());
        let is_over = |number: usize| {
            let index = &table.indexes[number];
            let Some(code) = table.code(number) else { return false };
            let expressions = code.map(|c| c.expressions.as_slice()).unwrap_or_default();
            index.unique
                && index.keys.iter().all(|k| k.column == 0 || wanted.contains(&k.column))
                && wanted.iter().all(|w| index.keys.iter().any(|k| k.column == *w))
                && expressions.iter().all(|e| computed.iter().any(|c| same(c, e)))
                && computed.iter().all(|c| expressions.iter().any(|e| same(c, e)))
        };
        // An index without a condition of its own is to be preferred: it finds all conflicts.
        let mut numbers: Vec<usize> = (0..table.indexes.len()).collect();
        numbers.sort_by_key(|&n| table.indexes[n].predicate.is_some());
        numbers.retain(|&n| is_over(n));
        let is_implied = |n: &&usize| predicate(**n).is_none_or(|p| super::implies(condition.as_ref(), p));
        if let Some(&number) = numbers.iter().find(is_implied) {
            return Ok((table.indexes[number].oid, condition));
        }
        if condition.as_ref().is_some_and(super::visit::has_params) {
            by_values.extend(numbers.iter().filter_map(|&n| Some((table.indexes[n].oid, predicate(n)?.clone()))));
        }
        if let Some((first, _)) = by_values.first() {
            return Ok((*first, condition));
        }
        // PostgreSQL looks for the index when it plans: the statement can be described, but not run.
        self.refused.get_or_insert_with(no_arbiter);
        Ok((base::Oid::INVALID, condition))
    }
}

fn constraint_index(name: &str, desc: &TableDesc) -> Result<base::Oid> {
    let Some(constraint) = desc.constraints.iter().find(|c| c.name == name) else {
        let message = format!("constraint \"{name}\" for table \"{}\" does not exist", desc.name);
        return Err(Error::new(SqlState::UNDEFINED_OBJECT, message));
    };
    match constraint.kind {
        ConstraintKind::PrimaryKey { index } | ConstraintKind::Unique { index } => Ok(index),
        _ => {
            let message = "constraint in ON CONFLICT clause has no associated index";
            Err(Error::new(SqlState::WRONG_OBJECT_TYPE, message))
        }
    }
}

/// 42P10 for a conflict target that no unique index is for.
pub fn no_arbiter() -> Error {
    let message = "there is no unique or exclusion constraint matching the ON CONFLICT specification";
    Error::new(SqlState::INVALID_COLUMN_REFERENCE, message)
}
