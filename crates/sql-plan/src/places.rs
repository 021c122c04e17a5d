//! Rows by their identity: conditions on `ctid`, which say where the rows are instead of what they are.

use base::Result;
use sql_ir::expr::{How, Resolve, comparison_of};
use sql_ir::system_column::SystemColumn;
use sql_ir::{AnyAllSource, CompareOp, Expr, Query, Rel, SubqueryKind};
use types::{element_of, oid};

use super::access::{Conjunct, Mask};
use super::level::Level;
use super::node::ListSource;
use super::sarg::known;
use super::walk;

/// Rows expected of a subquery or an array that says nothing of how many it has.
const SEVERAL: f64 = 10.0;

/// What a condition says of the places of rows.
#[derive(Clone, Debug)]
pub(super) enum Places<'e> {
    One(&'e Expr),
    List(&'e [Expr]),
    Array(&'e Expr),
    /// What a query finds that looks at nothing around it.
    Query(&'e Query),
}

fn is_place(expr: &Expr, rels: &[Rel], of: Option<usize>) -> bool {
    let Expr::Column(c) = expr else { return false };
    c.level == 0
        && of.is_none_or(|rel| rel == c.rel)
        && rels.get(c.rel).and_then(|rel| rel.system_column(c.column)) == Some(SystemColumn::Ctid)
}

fn is_equality(function: &'static sql_functions::Function) -> bool {
    let test = comparison_of(function);
    test.op == CompareOp::Eq && matches!(test.how, How::Order(oid::TID))
}

impl<'e> Places<'e> {
    /// Where a condition says that the rows of `rel` are, when rows of `available` are there.
    pub fn of(conjunct: &'e Conjunct, rels: &[Rel], rel: usize, available: Mask) -> Option<Places<'e>> {
        let place = |expr: &Expr| is_place(expr, rels, Some(rel));
        match &conjunct.expr {
            Expr::Call { function, args, .. } if is_equality(function) => match args.as_slice() {
                [left, right] if place(left) && known(right, rel, available) => Some(Places::One(right)),
                [left, right] if place(right) && known(left, rel, available) => Some(Places::One(left)),
                _ => None,
            },
            Expr::AnyAll { all: false, function, left, right } if is_equality(function) && place(left) => match right {
                AnyAllSource::List(items) if items.iter().all(|item| known(item, rel, available)) => {
                    Some(Places::List(items))
                }
                AnyAllSource::Array(array) if element_of(array.ty().oid).is_some() && known(array, rel, available) => {
                    Some(Places::Array(array))
                }
                _ => None,
            },
            Expr::Subquery { kind: SubqueryKind::Any { left, functions }, query, .. } => {
                let ([left], [function]) = (left.as_slice(), functions.as_slice()) else { return None };
                let alone = || says_only_places(&conjunct.expr, rels) && conjunct.mask == 1 << rel;
                let finds_places = || query.output(0).is_some_and(|target| target.expr.ty().oid == oid::TID);
                (is_equality(function) && place(left) && finds_places() && alone()).then_some(Places::Query(query))
            }
            _ => None,
        }
    }

    /// How many rows there are, expected.
    pub fn rows(&self) -> f64 {
        match self {
            Places::One(_) => 1.0,
            Places::List(items) => items.len() as f64,
            Places::Array(_) => SEVERAL,
            Places::Query(query) => match &query.limit {
                Some(Expr::Const(limit, _)) => limit.integer().map_or(SEVERAL, |rows| rows as f64),
                _ => SEVERAL,
            },
        }
    }

    /// Compiles them.
    pub fn compile(&self, level: &mut Level<'_>) -> Result<ListSource> {
        Ok(match *self {
            Places::One(value) => ListSource::List(level.compile_all([value])?),
            Places::List(items) => ListSource::List(level.compile_all(items)?),
            Places::Array(array) => ListSource::Array(level.compile(array)?),
            Places::Query(query) => ListSource::Array(level.subquery(&SubqueryKind::Array, query)?),
        })
    }
}

/// What a condition that looks at no more of the rows than where they are says of one that has moved; `None` of another condition.
///
/// A row stays where it is, so most of them hold as they did, and what is in them is not asked again: a subquery that locks rows
/// would lock others. But a query that has found the row as it was, and has not locked it, might not find it as it is: to
/// PostgreSQL, which joins by `ctid`, it is no longer where it was found.
pub(super) fn of_moved(expr: &Expr, rels: &[Rel], moving: Option<usize>) -> Option<bool> {
    if !says_only_places(expr, rels) {
        return None;
    }
    Some(match expr {
        Expr::Subquery { kind: SubqueryKind::Any { left, .. }, query, .. } => {
            let found_before = moving.is_some() && left.iter().any(|left| is_place(left, rels, moving));
            !(found_before && query.locking.is_empty())
        }
        _ => true,
    })
}

/// Whether a condition looks at no more of the rows than where they are.
fn says_only_places(expr: &Expr, rels: &[Rel]) -> bool {
    let (mut only, mut any) = (true, false);
    walk::walk(expr, 0, &mut |e, depth| match e {
        Expr::Column(c) if c.level == depth => {
            any = true;
            only &= is_place(&Expr::Column(sql_ir::Column { level: 0, ..*c }), rels, None);
        }
        Expr::WholeRow { level, .. } | Expr::Agg { level, .. } if *level == depth => only = false,
        _ => {}
    });
    only && any
}
