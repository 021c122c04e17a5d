//! Rows as values: their fields.

use types::{Datum, oid};

use super::Binder;
use super::scope::Found;
use crate::functions;
use crate::ir::{Column, Expr, Rel, RelKind, Ty};

/// The internal function that takes a field out of a record.
pub(super) const FIELD: &str = "record field";

impl<'a> Binder<'a, '_> {
    /// `tableoid` of a relation of the catalog: of the one that was found, or of the only one around.
    pub(super) fn system_tableoid(&self, found: Option<&Found>, column: &str) -> Option<Expr> {
        if column != "tableoid" {
            return None;
        }
        let level = found.map_or(0, |f| f.level);
        let scope = &self.scopes[self.scopes.len().checked_sub(1 + level)?];
        let is_system = |rel: usize| matches!(scope.rels[rel].kind, RelKind::System(_));
        let rel = match found {
            Some(found) => scope.items.get(found.item)?.rel,
            None => {
                let mut rels =
                    scope.items.iter().filter(|i| i.columns_visible).filter_map(|i| i.rel).filter(|&r| is_system(r));
                rels.next().filter(|_| rels.next().is_none())
            }
        };
        let rel = rel.filter(|&rel| is_system(rel))?;
        let column = scope.rels[rel].columns.len() - 1;
        Some(Expr::Column(Column { level, rel, column, ty: Ty::of(oid::OID) }))
    }

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
                let names = values.iter().map(|value| field_name(value, rels)).collect::<Option<Vec<String>>>()?;
                Some(names.into_iter().zip(values.iter().cloned()).collect())
            }
            Expr::Column(Column { level, rel, column, .. }) => {
                let shape = shape_of(self.scopes[index(*level)?].rels.get(*rel)?, *column)?;
                let function = functions::functions_named(FIELD).first().copied()?;
                let part = |number: usize, ty: Ty| {
                    let number = Expr::Const(Datum::Int4(number as i32), Ty::of(oid::INT4));
                    Expr::Call { function, args: vec![value.clone(), number], ty, location: -1 }
                };
                Some(shape.into_iter().enumerate().map(|(i, (name, ty))| (name, part(i, ty))).collect())
            }
            _ => None,
        }
    }
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

/// Names and types of the fields of a record that is a column of a rel.
fn shape_of(rel: &Rel, column: usize) -> Option<Vec<(String, Ty)>> {
    let RelKind::Subquery { query, .. } = &rel.kind else { return None };
    let target = query.targets.iter().filter(|t| !t.junk).nth(column)?;
    match &target.expr {
        Expr::Row(values, _) => {
            let named = |value: &Expr| Some((field_name(value, &query.rels)?, value.ty()));
            values.iter().map(named).collect()
        }
        Expr::WholeRow { level: 0, rel } => {
            let live = query.rels.get(*rel)?.columns.iter().filter(|c| !c.name.is_empty());
            Some(live.map(|c| (c.name.clone(), c.ty)).collect())
        }
        Expr::Column(c) if c.level == 0 => shape_of(query.rels.get(c.rel)?, c.column),
        _ => None,
    }
}
