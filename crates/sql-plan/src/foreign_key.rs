//! Foreign keys in plans: the keys of a table that point to others, those that others point to, and the queries that
//! follow a change of a row that is pointed to. PostgreSQL does the same with queries of its RI triggers.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use base::{Error, Oid, Result};
use engine_api::{Catalog, ConstraintKind, ForeignKeyAction, RowLockMode, TableDesc, WaitPolicy};
use sql_bind::own::{any_of, column, held, rows_of, table_info};
use sql_bind::{
    self as bind, BindContext, KeyComparison, key_comparison, key_equal, key_equality, key_value, stored_alike,
};
use sql_functions::{EvalContext, Function};
use sql_ir::{Delete, Expr, Locking, Statement, TableInfo, Ty, Update};
use types::{Datum, oid};

use super::node::{KeyColumn, PlannedTable};
use super::{Plan, PlannerStats};

/// A key of this table that points to another.
#[derive(Debug)]
pub struct ReferencingKey {
    /// The constraint.
    pub oid: Oid,
    /// Its name.
    pub constraint: String,
    /// `None`: looked at when the statement is done. Otherwise whether that waits for the end of the transaction, unless
    /// SET CONSTRAINTS says something else.
    pub deferred: Option<bool>,
    /// Columns here (attribute number - 1).
    pub columns: Vec<usize>,
    /// MATCH FULL.
    pub match_full: bool,
    /// The table it points to.
    pub parent: Arc<PlannedTable>,
    /// Unique index of the parent.
    pub index: Oid,
    /// For each column of the index: how it is encoded, and which of `columns` gives its value.
    pub key: Vec<(KeyColumn, usize)>,
    /// How each of `columns` becomes a value of the parent's column; `None`: its values are held as those are.
    pub(crate) as_held: Vec<Option<AsHeld>>,
}

/// How a value that points becomes one of the column that it points to, where the two are not held alike.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AsHeld {
    /// `None`: as it is, under the other type's name.
    cast: Option<&'static Function>,
    to: Oid,
    /// The operator that compares the values of the two types with each other. The value must then be equal to what it was made
    /// of, and what cannot be cast is equal to nothing.
    equal: Option<&'static Function>,
}

/// A key of this table that another table points to.
#[derive(Debug)]
pub struct ReferencedKey {
    /// The constraint.
    pub oid: Oid,
    /// Its name.
    pub constraint: String,
    /// As that of [`ReferencingKey`]; counts for NO ACTION only.
    pub deferred: Option<bool>,
    /// Columns here (attribute number - 1), in the order of the constraint.
    pub columns: Vec<usize>,
    /// The table that points here.
    pub child: Oid,
    /// Its name.
    pub child_name: String,
    /// Columns there (attribute number - 1).
    pub child_columns: Vec<usize>,
    /// ON DELETE.
    pub on_delete: ForeignKeyAction,
    /// ON UPDATE.
    pub on_update: ForeignKeyAction,
    /// This table and the unique index over the columns, to see whether the key came back.
    pub index: Oid,
    /// Key columns of the index of the child, if it has one, each with the column of the parent.
    pub key: Vec<(KeyColumn, usize)>,
    delete_plan: OnceLock<Arc<Plan>>,
    update_plan: OnceLock<Arc<Plan>>,
    check_plan: OnceLock<Arc<Plan>>,
}

/// Tables as large as the engine says, for plans that follow changes.
pub struct EngineRows<'a>(pub &'a dyn engine_api::Engine);

impl PlannerStats for EngineRows<'_> {
    fn row_count(&self, table: Oid) -> u64 {
        self.0.row_count(table)
    }
}

/// What happened to a row that is pointed to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParentChange {
    /// It is deleted.
    Deleted,
    /// Its key is another.
    KeyUpdated,
}

fn index_key(info: &TableInfo, index: Oid, parent_columns: &[i16]) -> Result<Vec<(KeyColumn, usize)>> {
    let desc = info
        .indexes
        .iter()
        .find(|i| i.oid == index)
        .ok_or_else(|| Error::internal(format!("the index {index} of a foreign key is not there")))?;
    desc.keys
        .iter()
        .map(|key| {
            let place = parent_columns
                .iter()
                .position(|c| *c == key.column)
                .ok_or_else(|| Error::internal("an index over other columns than its foreign key"))?;
            let ty = held(&info.desc, (key.column - 1) as usize).oid;
            Ok((KeyColumn { ty, descending: key.descending, nulls_first: key.nulls_first }, place))
        })
        .collect()
}

fn places(columns: &[i16]) -> Vec<usize> {
    columns.iter().map(|c| (*c - 1) as usize).collect()
}

/// The foreign keys of a table.
pub fn referencing(info: &TableInfo, catalog: &Catalog) -> Result<Vec<Arc<ReferencingKey>>> {
    let mut keys = Vec::new();
    if info.desc.triggers_off {
        return Ok(keys);
    }
    for constraint in &info.desc.constraints {
        let ConstraintKind::ForeignKey { table, columns, index, match_full, .. } = &constraint.kind else { continue };
        let parent = table_info(catalog, *table)?;
        let pairs = constraint.columns.iter().zip(columns);
        let as_held = pairs.map(|(&own, &its)| {
            AsHeld::new(held(&info.desc, own as usize - 1).oid, held(&parent.desc, its as usize - 1).oid)
        });
        keys.push(Arc::new(ReferencingKey {
            oid: constraint.oid,
            constraint: constraint.name.clone(),
            deferred: constraint.deferrable.then_some(constraint.deferred),
            columns: places(&constraint.columns),
            match_full: *match_full,
            key: index_key(&parent, *index, columns)?,
            as_held: as_held.collect::<Result<_>>()?,
            parent: PlannedTable::new(&parent),
            index: *index,
        }));
    }
    Ok(keys)
}

/// The foreign keys that point to a table.
pub fn referenced(info: &TableInfo, catalog: &Catalog) -> Result<Vec<Arc<ReferencedKey>>> {
    let mut keys = Vec::new();
    if info.desc.triggers_off {
        return Ok(keys);
    }
    for object in catalog.walk() {
        let engine_api::CatalogObject::Table(child) = &**object else { continue };
        for constraint in &child.constraints {
            let ConstraintKind::ForeignKey { table, columns, index, on_delete, on_update, .. } = &constraint.kind
            else {
                continue;
            };
            if *table != info.desc.oid {
                continue;
            }
            keys.push(Arc::new(ReferencedKey {
                oid: constraint.oid,
                constraint: constraint.name.clone(),
                deferred: constraint.deferrable.then_some(constraint.deferred),
                columns: places(columns),
                child: child.oid,
                child_name: child.name.clone(),
                child_columns: places(&constraint.columns),
                on_delete: *on_delete,
                on_update: *on_update,
                index: *index,
                key: index_key(info, *index, columns)?,
                delete_plan: OnceLock::new(),
                update_plan: OnceLock::new(),
                check_plan: OnceLock::new(),
            }));
        }
    }
    Ok(keys)
}

impl ReferencingKey {
    /// The values of a key as the columns that they point to hold them; `None` if one has no value there.
    ///
    /// # Errors
    /// Those of implicit casts (22003).
    pub fn as_held<'v>(&self, values: &'v [Datum], eval: &dyn EvalContext) -> Result<Option<Cow<'v, [Datum]>>> {
        if self.as_held.iter().all(Option::is_none) {
            return Ok(Some(Cow::Borrowed(values)));
        }
        let one = |(value, as_held): (&Datum, &Option<AsHeld>)| match as_held {
            Some(as_held) => as_held.value(value, eval),
            None => Ok(Some(value.clone())),
        };
        let held = values.iter().zip(&self.as_held).map(one).collect::<Result<Option<Vec<_>>>>()?;
        Ok(held.map(Cow::Owned))
    }
}

impl ReferencedKey {
    /// What the constraint demands after a change.
    pub fn action(&self, change: ParentChange) -> ForeignKeyAction {
        match change {
            ParentChange::Deleted => self.on_delete,
            ParentChange::KeyUpdated => self.on_update,
        }
    }

    /// The statement that follows a change. Parameters: the old key, then the new one (ON UPDATE CASCADE).
    pub fn plan(
        &self,
        change: ParentChange,
        parent: &TableDesc,
        catalog: &Arc<Catalog>,
        eval: &dyn EvalContext,
        stats: &dyn PlannerStats,
    ) -> Result<Arc<Plan>> {
        let cell = match change {
            ParentChange::Deleted => &self.delete_plan,
            ParentChange::KeyUpdated => &self.update_plan,
        };
        self.planned(cell, change, self.action(change), parent, catalog, eval, stats)
    }

    /// The query that looks for rows that still point to a key, whatever the constraint's action.
    pub fn check_plan(
        &self,
        parent: &TableDesc,
        catalog: &Arc<Catalog>,
        eval: &dyn EvalContext,
        stats: &dyn PlannerStats,
    ) -> Result<Arc<Plan>> {
        self.planned(&self.check_plan, ParentChange::Deleted, ForeignKeyAction::NoAction, parent, catalog, eval, stats)
    }

    fn planned(
        &self,
        cell: &OnceLock<Arc<Plan>>,
        change: ParentChange,
        action: ForeignKeyAction,
        parent: &TableDesc,
        catalog: &Arc<Catalog>,
        eval: &dyn EvalContext,
        stats: &dyn PlannerStats,
    ) -> Result<Arc<Plan>> {
        if let Some(plan) = cell.get() {
            return Ok(Arc::clone(plan));
        }
        let statement = self.statement(change, action, parent, catalog, eval)?;
        let params = self.columns.len() * 2;
        let plan = super::plan_with_params(&statement, params, catalog, stats)?;
        Ok(Arc::clone(cell.get_or_init(|| plan)))
    }

    fn statement(
        &self,
        change: ParentChange,
        action: ForeignKeyAction,
        parent: &TableDesc,
        catalog: &Arc<Catalog>,
        eval: &dyn EvalContext,
    ) -> Result<Statement> {
        let table = table_info(catalog, self.child)?;
        let mut conditions = Vec::new();
        for (i, (&child, &own)) in self.child_columns.iter().zip(&self.columns).enumerate() {
            let key = Expr::Param(i, Ty::of(held(parent, own).oid));
            conditions.push(key_equal(column(&table.desc, child, 0), key)?);
        }
        let mut query = rows_of(&table, Some(Expr::And(conditions)));
        if matches!(action, ForeignKeyAction::NoAction | ForeignKeyAction::Restrict) {
            query = any_of(query);
            query.locking = vec![Locking { rel: 0, mode: RowLockMode::KeyShare, policy: WaitPolicy::Block }];
            return Ok(Statement::Select(Box::new(query)));
        }
        if action == ForeignKeyAction::Cascade && change == ParentChange::Deleted {
            return Ok(Statement::Delete(Box::new(Delete {
                table,
                query,
                returning: Vec::new(),
                through: Default::default(),
            })));
        }
        let mut cx = BindContext::new(Arc::clone(catalog), eval.identity(), eval, &[]);
        let mut set = Vec::new();
        // ON DELETE SET NULL (columns)
        let own_constraint = table.desc.constraints.iter().find(|c| c.name == self.constraint);
        let set_columns = match own_constraint.map(|c| &c.kind) {
            Some(ConstraintKind::ForeignKey { set_columns, .. }) => set_columns.clone(),
            _ => Vec::new(),
        };
        for (i, (&child, &own)) in self.child_columns.iter().zip(&self.columns).enumerate() {
            if change == ParentChange::Deleted && !set_columns.is_empty() && !set_columns.contains(&(child as i16 + 1))
            {
                continue;
            }
            let desc = &table.desc.columns[child];
            let ty = held(&table.desc, child);
            let default = desc.default.clone().or_else(|| bind::domain_default(desc.type_oid, &cx));
            let value = match (action, &default) {
                (ForeignKeyAction::Cascade, _) => {
                    let from = held(parent, own).oid;
                    key_value(Expr::Param(self.columns.len() + i, Ty::of(from)), from, ty)?
                }
                (ForeignKeyAction::SetDefault, Some(text)) => bind::bind_default(text, ty, &desc.name, &mut cx)?,
                _ => Expr::Const(Datum::Null, ty),
            };
            set.push((child, value));
        }
        let checks = bind::bind_checks(&table.desc, &mut cx)?;
        let generated = bind::regenerated_columns(&table.desc, &set, &mut cx)?;
        Ok(Statement::Update(Box::new(Update {
            table,
            query,
            set,
            checks,
            view_checks: Vec::new(),
            generated,
            returning: Vec::new(),
            through: Default::default(),
        })))
    }
}

impl AsHeld {
    fn new(foreign: Oid, key: Oid) -> Result<Option<AsHeld>> {
        if stored_alike(foreign, key) {
            return Ok(None);
        }
        let incomparable = || {
            let [foreign, key] = [foreign, key].map(|ty| oid::format_type(ty, -1));
            Error::internal(format!("a foreign key from {foreign} to {key}"))
        };
        let cast = bind::cast_between(foreign, key).ok_or_else(incomparable)?;
        let equal = match key_comparison(foreign, key).ok_or_else(incomparable)? {
            KeyComparison::As(_) => None,
            KeyComparison::Direct => Some(key_equality(key, foreign).ok_or_else(incomparable)?.1),
        };
        Ok(Some(AsHeld { cast, to: key, equal }))
    }

    /// The value of the column that is pointed to; `None` if it has none that is equal.
    ///
    /// # Errors
    /// Those of an implicit cast (22003).
    pub fn value(&self, value: &Datum, eval: &dyn EvalContext) -> Result<Option<Datum>> {
        if value.is_null() {
            return Ok(None);
        }
        let cast = match self.cast {
            Some(function) => (function.eval)(eval, std::slice::from_ref(value)),
            None => Ok(types::relabelled(value.clone(), self.to)),
        };
        let Some(equal) = self.equal else { return cast.map(Some) };
        let Ok(cast) = cast else { return Ok(None) };
        let same = (equal.eval)(eval, &[cast.clone(), value.clone()]);
        Ok(matches!(same, Ok(Datum::Bool(true))).then_some(cast))
    }
}
