//! Foreign keys in plans: the keys of a table that point to others, those that others point to, and the queries that
//! follow a change of a row that is pointed to. PostgreSQL does the same with queries of its RI triggers.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use base::{Error, Oid, Result};
use engine_api::{Catalog, ConstraintKind, ForeignKeyAction, RowLockMode, TableDesc, WaitPolicy};
use sql_bind::{self as bind, BindContext, KeyComparison, key_comparison};
use sql_functions::{self as functions, EvalContext, Function, Operator};
use sql_ir::{
    CastKind, Column, Delete, Expr, From, Locking, Query, Rel, RelColumn, RelKind, Statement, TableInfo, Target, Ty,
    Update,
};
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

/// A table with its indexes, as a plan has it.
pub fn table_info(catalog: &Catalog, table: Oid) -> Result<Arc<TableInfo>> {
    let desc = catalog.table(table).cloned().ok_or_else(|| Error::internal(format!("no table {table}")))?;
    let indexes = catalog.indexes(table).filter(|index| !index.invalid).cloned().collect();
    Ok(Arc::new(TableInfo { desc, indexes, codes: Vec::new() }))
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
        let columns = table
            .desc
            .columns
            .iter()
            .enumerate()
            .map(|(i, c)| RelColumn { name: c.name.clone(), ty: held(&table.desc, i) });
        let rel = Rel {
            alias: table.desc.name.clone(),
            aliased: false,
            columns: columns.collect(),
            kind: RelKind::Table(Arc::clone(&table)),
        };
        let mut conditions = Vec::new();
        for (i, (&child, &own)) in self.child_columns.iter().zip(&self.columns).enumerate() {
            let ty = held(&table.desc, child);
            let column = Expr::Column(Column { level: 0, rel: 0, column: child, ty });
            conditions.push(equal(column, Expr::Param(i, Ty::of(held(parent, own).oid)))?);
        }
        let mut query = Query {
            rels: vec![rel],
            from: vec![From::Rel(0)],
            filter: Some(Expr::And(conditions)),
            ..Query::default()
        };
        if matches!(action, ForeignKeyAction::NoAction | ForeignKeyAction::Restrict) {
            let one = Expr::Const(Datum::Int4(1), Ty::of(oid::INT4));
            query.targets = vec![Target { expr: one, name: "?column?".into(), junk: false }];
            query.limit = Some(Expr::Const(Datum::Int8(1), Ty::of(oid::INT8)));
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
            let column = &table.desc.columns[child];
            let ty = held(&table.desc, child);
            let default = column.default.clone().or_else(|| bind::domain_default(column.type_oid, &cx));
            let value = match (action, &default) {
                (ForeignKeyAction::Cascade, _) => {
                    let from = held(parent, own).oid;
                    assign(Expr::Param(self.columns.len() + i, Ty::of(from)), from, ty)?
                }
                (ForeignKeyAction::SetDefault, Some(text)) => bind::bind_default(text, ty, &column.name, &mut cx)?,
                _ => Expr::Const(Datum::Null, ty),
            };
            set.push((child, value));
        }
        let checks = bind::bind_checks(&table.desc, &mut cx)?;
        let generated = bind::generated_columns(&table.desc, &mut cx)?;
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

/// The type that the values of a column are held as.
fn held(table: &TableDesc, column: usize) -> Ty {
    let column = &table.columns[column];
    let (oid, typmod) = types::user::plain_type(column.type_oid, column.typmod);
    Ty { oid, typmod }
}

fn relabel(expr: Expr, ty: Oid) -> Expr {
    if expr.ty().oid == ty || ty == oid::ANYARRAY {
        return expr;
    }
    Expr::Cast { arg: Box::new(expr), ty: Ty::of(ty), kind: CastKind::Relabel, explicit: false, location: -1 }
}

fn incomparable(foreign: Oid, key: Oid) -> Error {
    let [foreign, key] = [foreign, key].map(|ty| oid::format_type(ty, -1));
    Error::internal(format!("a foreign key from {foreign} to {key}"))
}

impl AsHeld {
    fn new(foreign: Oid, key: Oid) -> Result<Option<AsHeld>> {
        if stored_alike(foreign, key) {
            return Ok(None);
        }
        let incomparable = || incomparable(foreign, key);
        let cast = bind::cast_between(foreign, key).ok_or_else(incomparable)?;
        let equal = match key_comparison(foreign, key).ok_or_else(incomparable)? {
            KeyComparison::As(_) => None,
            KeyComparison::Direct => Some(equality(key, foreign).ok_or_else(incomparable)?.1),
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

/// Whether an operator's operand takes what a column holds as it is.
fn takes(operand: Oid, column: Oid) -> bool {
    stored_alike(column, operand) || (operand == oid::ANYARRAY && oid::element_of(column).is_some())
}

/// The operator `=` that takes what two columns hold, with its function.
fn equality(left: Oid, right: Oid) -> Option<(&'static Operator, &'static Function)> {
    let operator = bind::equality_operator(left, right)?;
    let function = functions::function(operator.function, &[operator.left, operator.right])?;
    (takes(operator.left, left) && takes(operator.right, right)).then_some((operator, function))
}

/// `child = key` for the column types of a foreign key.
fn equal(child: Expr, key: Expr) -> Result<Expr> {
    let (from, to) = (child.ty().oid, key.ty().oid);
    let incomparable = || incomparable(from, to);
    let child = match key_comparison(from, to) {
        Some(KeyComparison::As(ty)) if !stored_alike(from, to) => assign(child, from, Ty::of(ty))?,
        _ => child,
    };
    let (operator, function) = equality(child.ty().oid, to).ok_or_else(incomparable)?;
    let args = vec![relabel(child, operator.left), relabel(key, operator.right)];
    Ok(Expr::Call { function, args, ty: Ty::of(oid::BOOL), location: -1 })
}

/// Whether values of two types are stored alike, so that an index over one finds values of the other. Domains are what they
/// are over here.
pub(crate) fn stored_alike(a: Oid, b: Oid) -> bool {
    const FAMILIES: [&[Oid]; 4] = [
        &[oid::INT2, oid::INT4, oid::INT8],
        &[oid::TEXT, oid::VARCHAR],
        &[oid::INET, oid::CIDR],
        &[oid::BIT, oid::VARBIT],
    ];
    a == b
        || FAMILIES.iter().any(|family| family.contains(&a) && family.contains(&b))
        || (oid::is_oid_like(a) && oid::is_oid_like(b))
}

/// A value of the parent's column as a value of the child's.
fn assign(value: Expr, from: Oid, to: Ty) -> Result<Expr> {
    let value = match bind::cast_between(from, to.oid) {
        _ if from == to.oid => value,
        Some(Some(function)) => Expr::Call { function, args: vec![value], ty: Ty::of(to.oid), location: -1 },
        Some(None) => relabel(value, to.oid),
        None => return Err(incomparable(from, to.oid)),
    };
    if to.typmod < 0 {
        return Ok(value);
    }
    Ok(Expr::Cast { arg: Box::new(value), ty: to, kind: CastKind::Typmod, explicit: false, location: -1 })
}
