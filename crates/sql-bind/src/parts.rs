//! INSERT into parts of columns: `INSERT INTO t (list[1], list[2]) …`. Parts of the same column become one value, made from
//! left to right, beginning with NULL.

use base::{Error, Result, SqlState};
use rupg_sql::nodes::Node;
use sql_ir::{Column, Expr, Query, Target, Ty};
use types::{element_of, oid};

use super::dml::{Assigned, Written};
use super::select::BoundQuery;
use super::{Binder, Located};

/// For each column the place of its value among those that are made: one place for all parts of the same column.
fn places(columns: &[Assigned<'_>]) -> Vec<usize> {
    let mut places: Vec<usize> = Vec::with_capacity(columns.len());
    let mut count = 0;
    for (n, column) in columns.iter().enumerate() {
        let same = |c: &Assigned<'_>| c.part.is_some() && c.index == column.index && c.name == column.name;
        let first = columns[..n].iter().position(same).filter(|_| column.part.is_some());
        places.push(first.map_or(count, |first| places[first]));
        count += usize::from(first.is_none());
    }
    places
}

/// Each column once, as its values are made.
pub(super) fn each_once(columns: Vec<Assigned<'_>>) -> Vec<Assigned<'_>> {
    if columns.iter().all(|c| c.part.is_none()) {
        return columns;
    }
    let places = places(&columns);
    let first = |n: usize| !places[..n].contains(&places[n]);
    columns.into_iter().enumerate().filter(|(n, _)| first(*n)).map(|(_, column)| column).collect()
}

/// The type of the values that a part takes.
fn part_type(column: &Assigned<'_>) -> Ty {
    let is_slice = column.part.into_iter().flatten().flatten().any(|n| matches!(n, Node::A_Indices(i) if i.is_slice));
    match element_of(column.ty.oid) {
        Some(element) if !is_slice && column.ty.oid != oid::JSONB => Ty { oid: element, typmod: column.ty.typmod },
        _ => column.ty,
    }
}

impl<'a> Binder<'a, '_> {
    /// The values of one row, those of parts put together.
    pub(super) fn row_of_parts(
        &mut self,
        list: &'a [Option<Node>],
        columns: &[Assigned<'a>],
        written: &Written,
    ) -> Result<Vec<Expr>> {
        let mut row: Vec<Expr> = Vec::with_capacity(columns.len());
        for ((node, column), place) in list.iter().flatten().zip(columns).zip(places(columns)) {
            let before = row.get_mut(place).map(|value| std::mem::replace(value, Expr::Default));
            let value = self.assigned_value(node, column, written, before)?;
            match row.get_mut(place) {
                Some(slot) => *slot = value,
                None => row.push(value),
            }
        }
        Ok(row)
    }

    /// Refuses DEFAULT for a part.
    pub(super) fn default_of_part(&self, part: &[Option<Node>], at: i32) -> Error {
        let message = match part.first() {
            Some(Some(Node::A_Indices(_))) => "cannot set an array element to DEFAULT",
            _ => "cannot set a subfield to DEFAULT",
        };
        self.error(SqlState::FEATURE_NOT_SUPPORTED, message, at)
    }

    /// Makes the columns of a query those of the table, those of parts put together in a query around it.
    pub(super) fn assign_query(&mut self, bound: &mut BoundQuery, columns: &[Assigned<'a>]) -> Result<()> {
        self.retarget(bound, columns.len(), |b, value, i| {
            let column = &columns[i];
            match column.part {
                None => b.assign(value, column.ty, column.own, &column.name),
                Some(_) => {
                    let at = value.at;
                    let expr = b.part_value(value, part_type(column), (&column.name, column.ty, column.at))?;
                    Ok(Located { expr, at })
                }
            }
        })?;
        if columns.iter().all(|c| c.part.is_none()) {
            return Ok(());
        }
        let inner = super::from::visible_columns(&bound.query);
        let mut targets: Vec<Target> = Vec::with_capacity(columns.len());
        for ((n, column), place) in columns.iter().enumerate().zip(places(columns)) {
            let ty = inner.get(n).map_or(column.ty, |c| c.ty);
            let mut expr = Expr::Column(Column { level: 0, rel: 0, column: n, ty });
            if let Some(part) = column.part {
                let before = targets.get_mut(place).map(|t| std::mem::replace(&mut t.expr, Expr::Default));
                let container = before.unwrap_or_else(|| Self::null(column.ty));
                let value = Located { expr, at: -1 };
                expr = self.assign_part(container, (&column.name, column.ty, column.at), part, value)?;
            }
            match targets.get_mut(place) {
                Some(target) => target.expr = expr,
                None => targets.push(Target { expr, name: column.name.clone(), junk: false }),
            }
        }
        bound.at = vec![-1; targets.len()];
        let query = std::mem::take(&mut bound.query);
        bound.query = Query { targets, ..super::select::wrap(query, inner) };
        Ok(())
    }
}
