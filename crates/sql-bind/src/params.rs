//! Parameters: their types are what the client said or what the first use makes of them (`parse_param.c`).

use base::{Oid, Result, SqlState};
use rupg_sql::nodes::ParamRef;
use sql_ir::{ColumnSource, Expr, InsertSource, Statement, Target, Ty};
use types::oid;

use super::visit::{walk, walk_query};
use super::{Binder, Located};

/// More than the extended protocol can pass, which EXECUTE need not use; and so few that a list of their types is no long work.
const MAX_PARAMS: usize = 1 << 20;

impl Binder<'_, '_> {
    /// `$n`.
    pub(super) fn param(&mut self, node: &ParamRef) -> Result<Located> {
        let number = usize::try_from(node.number).unwrap_or(0);
        let unknown = number > self.cx.param_types.len() && !self.cx.infer_params;
        if !(1..=MAX_PARAMS).contains(&number) || self.params_forbidden || unknown {
            let message = format!("there is no parameter ${}", node.number);
            return Err(self.error(SqlState::UNDEFINED_PARAMETER, message, node.location));
        }
        let types = &mut self.cx.param_types;
        if types.len() < number {
            types.resize(number, Oid::INVALID);
        }
        let ty = &mut types[number - 1];
        if !ty.is_valid() {
            *ty = oid::UNKNOWN;
        }
        let ty = *ty;
        if ty == oid::UNKNOWN {
            self.undecided.insert((number - 1, node.location));
        }
        let held = types::user::plain_type(ty, -1).0;
        if held != ty {
            let expr = Expr::Param(number - 1, Ty::of(held));
            let expr = super::domain::made(expr, Ty::of(ty), false, self.cx)?;
            return Ok(Located { expr, at: node.location });
        }
        Ok(Located { expr: Expr::Param(number - 1, Ty::of(ty)), at: node.location })
    }

    /// A parameter of unknown type gets one.
    pub(super) fn decide_param(&mut self, index: usize, ty: Ty, location: i32) -> Result<Expr> {
        let known = self.cx.param_types[index];
        if known == oid::UNKNOWN || !known.is_valid() {
            self.cx.param_types[index] = ty.oid;
        } else if known != ty.oid {
            let message = format!("inconsistent types deduced for parameter ${}", index + 1);
            let detail = format!("{} versus {}", self.type_name(known), self.type_name(ty.oid));
            return Err(self.error(SqlState::AMBIGUOUS_PARAMETER, message, location).detail(detail));
        }
        self.undecided.remove(&(index, location));
        Ok(Expr::Param(index, Ty::of(types::user::plain_type(ty.oid, -1).0)))
    }

    /// Every parameter must have got a type, the same everywhere.
    pub(super) fn check_params(&mut self, statement: &Statement) -> Result<()> {
        let types = self.cx.param_types.clone();
        let mut bad: Option<usize> = None;
        let mut check = |e: &Expr, _: usize| {
            if let Expr::Param(i, ty) = e
                && ty.oid == oid::UNKNOWN
                && types[*i] != oid::UNKNOWN
            {
                bad.get_or_insert(*i);
            }
        };
        walk_statement(statement, &mut check);
        if let Some(i) = bad {
            let message = format!("could not determine data type of parameter ${}", i + 1);
            let at = self.undecided.range((i, i32::MIN)..).next().map_or(-1, |u| u.1);
            return Err(self.error(SqlState::AMBIGUOUS_PARAMETER, message, at));
        }
        if let Some(i) = types.iter().position(|t| *t == oid::UNKNOWN || !t.is_valid()) {
            let message = format!("could not determine data type of parameter ${}", i + 1);
            return Err(base::Error::new(SqlState::INDETERMINATE_DATATYPE, message));
        }
        Ok(())
    }
}

fn walk_targets(targets: &[Target], f: &mut dyn FnMut(&Expr, usize)) {
    for target in targets {
        walk(&target.expr, 0, f);
    }
}

/// Every expression of a statement.
fn walk_statement(statement: &Statement, f: &mut dyn FnMut(&Expr, usize)) {
    match statement {
        Statement::Select(query) => walk_query(query, 0, f),
        Statement::Insert(insert) => {
            insert.ctes.iter().for_each(|cte| walk_query(&cte.query, 0, f));
            match &insert.source {
                InsertSource::Values(rows) => rows.iter().flatten().for_each(|e| walk(e, 0, f)),
                InsertSource::Query(query) => walk_query(query, 0, f),
            }
            for column in &insert.columns {
                if let ColumnSource::Default(expr) = column {
                    walk(expr, 0, f);
                }
            }
            if let Some(update) = insert.on_conflict.as_ref().and_then(|c| c.update.as_ref()) {
                update.set.iter().for_each(|(_, e)| walk(e, 0, f));
                update.filter.iter().for_each(|e| walk(e, 0, f));
            }
            walk_targets(&insert.returning, f);
        }
        Statement::Update(update) => {
            walk_query(&update.query, 0, f);
            update.set.iter().for_each(|(_, e)| walk(e, 0, f));
            walk_targets(&update.returning, f);
        }
        Statement::Delete(delete) => {
            walk_query(&delete.query, 0, f);
            walk_targets(&delete.returning, f);
        }
        Statement::Merge(merge) => {
            walk_query(&merge.query, 0, f);
            for action in &merge.actions {
                action.condition.iter().for_each(|e| walk(e, 0, f));
                action.kind.values().iter().for_each(|(_, e)| walk(e, 0, f));
            }
        }
    }
}
