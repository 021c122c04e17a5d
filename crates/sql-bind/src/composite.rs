//! Rows as values: their fields.

use base::{Result, SqlState};
use rupg_sql::nodes::{Node, TypeCast};
use sql_functions::{self as functions, CastContext};
use sql_ir::{Column, Expr, Query, Rel, RelColumn, RelKind, SubqueryKind, Ty};
use types::{Datum, oid};

use super::equal::same;
use super::node::strings;
use super::{Binder, Located};

/// The internal function that takes a field out of a record.
pub(super) const FIELD: &str = "record field";

impl<'a> Binder<'a, '_> {
    /// A field of a record.
    pub(super) fn record_field(&self, value: &Expr, field: &str) -> Option<Expr> {
        let fields = self.record_fields(value)?;
        fields.into_iter().find(|(name, _)| name == field).map(|(_, value)| value)
    }

    /// The fields of a record whose names are known from where it was made: here, or in a query below this one.
    pub(super) fn record_fields(&self, value: &Expr) -> Option<Vec<(String, Expr)>> {
        let index = |level: usize| self.scopes.len().checked_sub(1 + level);
        match value {
            Expr::WholeRow { level, rel } => {
                let columns = self.scopes[index(*level)?].rels.get(*rel)?.columns.iter().enumerate();
                let live = columns.filter(|(_, c)| !c.name.is_empty());
                let column = |column, ty| Expr::Column(Column { level: *level, rel: *rel, column, ty });
                Some(live.map(|(i, c)| (c.name.clone(), column(i, c.ty))).collect())
            }
            Expr::Row(values, _) => {
                let rels = &self.scopes.last()?.rels;
                let names = values.iter().map(|value| field_name(value, rels)).collect::<Option<Vec<String>>>();
                let names = names.filter(|names| !names.is_empty()).or_else(|| self.names_of_row(values));
                let names = names.unwrap_or_else(|| numbered(values.len()));
                Some(names.into_iter().zip(values.iter().cloned()).collect())
            }
            Expr::Subquery { kind: SubqueryKind::Scalar, query, .. } => parts_of(value, self.target_shape(query, 0)?),
            Expr::Column(Column { level, rel, column, .. }) => {
                parts_of(value, self.shape_of(self.scopes[index(*level)?].rels.get(*rel)?, *column)?)
            }
            _ => None,
        }
    }

    /// A row whose fields have these names.
    pub(super) fn named_row(&mut self, fields: Vec<(String, Expr)>) -> Expr {
        let (names, values): (Vec<String>, Vec<Expr>) = fields.into_iter().unzip();
        self.named_rows.push((values.clone(), names));
        Expr::Row(values, Ty::of(oid::RECORD))
    }

    fn names_of_row(&self, values: &[Expr]) -> Option<Vec<String>> {
        let is_it = |row: &&(Vec<Expr>, Vec<String>)| {
            row.0.len() == values.len() && row.0.iter().zip(values).all(|(a, b)| same(a, b))
        };
        self.named_rows.iter().rev().find(is_it).map(|(_, names)| names.clone())
    }

    /// Names and types of the fields of a record that is a column of a rel.
    fn shape_of(&self, rel: &Rel, column: usize) -> Option<Vec<(String, Ty)>> {
        match &rel.kind {
            RelKind::Subquery { query, .. } => self.target_shape(query, column),
            RelKind::Cte { id, .. } => self.target_shape(self.cte_body(*id)?, column),
            _ => None,
        }
    }

    /// The same for a column of a query's result.
    fn target_shape(&self, query: &Query, column: usize) -> Option<Vec<(String, Ty)>> {
        let target = query.output(column)?;
        match &target.expr {
            Expr::Row(values, _) => {
                let named = |value: &Expr| Some((field_name(value, &query.rels)?, value.ty()));
                let fields = values.iter().map(named).collect::<Option<Vec<_>>>();
                fields.or_else(|| {
                    let names = self.names_of_row(values).unwrap_or_else(|| numbered(values.len()));
                    Some(names.into_iter().zip(values.iter().map(Expr::ty)).collect())
                })
            }
            Expr::WholeRow { level: 0, rel } => {
                let live = query.rels.get(*rel)?.columns.iter().filter(|c| !c.name.is_empty());
                Some(live.map(|c| (c.name.clone(), c.ty)).collect())
            }
            Expr::Column(c) if c.level == 0 => self.shape_of(query.rels.get(c.rel)?, c.column),
            Expr::Subquery { kind: SubqueryKind::Scalar, query, .. } => self.target_shape(query, 0),
            _ => None,
        }
    }

    /// `ROW(…)::t` and the like, where `t` is the name of a table; `None` if it is not.
    ///
    /// # Errors
    /// 0A000 for a value whose fields are not known.
    pub(super) fn row_type_cast(&mut self, cast: &'a TypeCast) -> Result<Option<Located>> {
        let (Some(name), Some(arg)) = (cast.typeName.as_deref(), cast.arg.as_ref()) else { return Ok(None) };
        if !name.arrayBounds.is_empty() || !name.typmods.is_empty() {
            return Ok(None);
        }
        let Some(desc) = self.table_of_type(&strings(&name.names)) else { return Ok(None) };
        self.note_row_type(name, desc.oid);
        let at = cast.location;
        let columns = super::from::table_columns(&desc).into_iter().filter(|c| !c.name.is_empty());
        let columns: Vec<RelColumn> = columns.collect();
        let refuse = |b: &Self, why: String| {
            b.error(SqlState::CANNOT_COERCE, format!("cannot cast type record to {}", desc.name), at).detail(why)
        };
        let Node::RowExpr(row) = arg else {
            let value = self.expr(arg)?.expr;
            return match value {
                Expr::Const(Datum::Null, _) => {
                    Ok(Some(Located { expr: Expr::Const(Datum::Null, Ty::of(oid::RECORD)), at }))
                }
                Expr::WholeRow { level, rel } if self.is_row_of(level, rel, &desc) => {
                    Ok(Some(Located { expr: Expr::WholeRow { level, rel }, at }))
                }
                _ => Err(self.unsupported("casts of this value to the row type of a table are not supported", at)),
            };
        };
        let values = self.exprs(&row.args)?;
        match values.len().cmp(&columns.len()) {
            std::cmp::Ordering::Less => return Err(refuse(self, "Input has too few columns.".to_string())),
            std::cmp::Ordering::Greater => return Err(refuse(self, "Input has too many columns.".to_string())),
            std::cmp::Ordering::Equal => {}
        }
        let mut fields = Vec::with_capacity(columns.len());
        for (number, (value, column)) in values.into_iter().zip(columns).enumerate() {
            let from = self.type_name(value.expr.ty().oid);
            let Some(value) = self.coerce_to(value, column.ty, CastContext::Explicit, -1)? else {
                let to = self.type_name(column.ty.oid);
                return Err(refuse(self, format!("Cannot cast type {from} to {to} in column {}.", number + 1)));
            };
            fields.push((column.name, value.expr));
        }
        Ok(Some(Located { expr: self.named_row(fields), at }))
    }

    fn is_row_of(&self, level: usize, rel: usize, desc: &engine_api::TableDesc) -> bool {
        let rel = self.scopes.len().checked_sub(1 + level).and_then(|index| self.scopes[index].rels.get(rel));
        matches!(rel.map(|r| &r.kind), Some(RelKind::Table(info)) if info.desc.oid == desc.oid)
    }
}

/// The fields of a record, each taken out of it.
fn parts_of(record: &Expr, shape: Vec<(String, Ty)>) -> Option<Vec<(String, Expr)>> {
    let function = functions::functions_named(FIELD).first().copied()?;
    let part = |number: usize, ty: Ty| {
        let number = Expr::Const(Datum::Int4(number as i32), Ty::of(oid::INT4));
        Expr::Call { function, args: vec![record.clone(), number], ty, location: -1 }
    };
    Some(shape.into_iter().enumerate().map(|(i, (name, ty))| (name, part(i, ty))).collect())
}

/// What fields are called that have no names of their own.
fn numbered(count: usize) -> Vec<String> {
    (1..=count).map(|i| format!("f{i}")).collect()
}

/// The name of a field of a row that was not written as one: of a function in the select list, or of a document.
fn field_name(value: &Expr, rels: &[Rel]) -> Option<String> {
    if let Some(name) = super::json_rows::field_name(value) {
        return Some(name.to_string());
    }
    let Expr::Column(c) = value else { return None };
    let rel = rels.get(c.rel).filter(|rel| c.level == 0 && matches!(rel.kind, RelKind::Function { .. }))?;
    Some(rel.columns[c.column].name.clone())
}
