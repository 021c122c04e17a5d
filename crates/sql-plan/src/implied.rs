//! Conditions that follow from others.

use std::cmp::Ordering;

use base::work::Count as _;
use sql_bind::equal::same;
use sql_functions::Function;
use sql_ir::expr::{How, comparison_of};
use sql_ir::{CastKind, Column, CompareOp, Expr};
use types::{Datum, oid};

use super::access::{Conjunct, rels_in};
use super::assume::Values;
use super::join::hashable;
use super::selectivity::column_of;
use super::walk;

/// Units of work for one of several alternatives.
const ALTERNATIVE: usize = 32;

/// Columns that are made equal to more than so many others are not all paired.
const CLASS_MAX: usize = 6;

/// `(a AND b) OR (a AND c)` as `a AND (b OR c)`: what all alternatives demand can be used on its own.
pub(super) fn without_common_alternatives(expr: Expr) -> Expr {
    match expr {
        Expr::And(all) => Expr::And(all.into_iter().map(without_common_alternatives).collect()),
        Expr::Or(any) => {
            let mut alternatives: Vec<Vec<Expr>> = Vec::with_capacity(any.len());
            let mut flat = Vec::with_capacity(any.len());
            any.into_iter().for_each(|one| disjuncts(one, &mut flat));
            for one in flat.into_iter().counted(ALTERNATIVE) {
                let mut all = Vec::new();
                walk::conjuncts(one, &mut all);
                alternatives.push(all);
            }
            let first = alternatives.first().cloned().unwrap_or_default();
            let is_common = |expr: &Expr| {
                !walk::is_volatile(expr)
                    && alternatives.iter().counted(ALTERNATIVE).all(|all| all.iter().any(|other| same(other, expr)))
            };
            let common: Vec<Expr> = first.into_iter().filter(is_common).collect();
            if common.is_empty() {
                return Expr::Or(alternatives.into_iter().counted(ALTERNATIVE).map(conjunction).collect());
            }
            for all in alternatives.iter_mut().counted(ALTERNATIVE) {
                all.retain(|expr| !common.iter().any(|c| same(c, expr)));
            }
            let mut all = common;
            // An alternative that demands nothing more makes the rest superfluous.
            if alternatives.iter().all(|rest| !rest.is_empty()) {
                all.push(Expr::Or(alternatives.into_iter().counted(ALTERNATIVE).map(conjunction).collect()));
            }
            Expr::And(all)
        }
        other => other,
    }
}

/// The alternatives of a disjunction, those of alternatives among them.
fn disjuncts(expr: Expr, out: &mut Vec<Expr>) {
    match expr {
        Expr::Or(any) => any.into_iter().for_each(|one| disjuncts(one, out)),
        one => out.push(one),
    }
}

fn conjunction(mut all: Vec<Expr>) -> Expr {
    if all.len() == 1 { all.remove(0) } else { Expr::And(all) }
}

/// Two columns of different rels and one type that a condition makes equal.
fn equated(conjunct: &Conjunct) -> Option<(Column, Column)> {
    let (a, b, _) = hashable(&conjunct.expr)?;
    let (a, b) = (column_of(a)?, column_of(b)?);
    (a.rel != b.rel && a.ty.oid == b.ty.oid).then_some((*a, *b))
}

/// An expression that is a column, labelled as something, with another column in its place.
fn with_column(expr: &mut Expr, column: Column) {
    match expr {
        Expr::Cast { arg, kind: CastKind::Relabel, .. } => with_column(arg, column),
        other => *other = Expr::Column(column),
    }
}

fn place(column: &Column) -> (usize, usize) {
    (column.rel, column.column)
}

/// Columns that conditions make equal to each other.
pub(super) fn classes(conjuncts: &[Conjunct]) -> Vec<Vec<Column>> {
    let mut classes: Vec<Vec<Column>> = Vec::new();
    for (a, b) in conjuncts.iter().filter(|c| !c.derived).filter_map(equated) {
        let of = |column: &Column| classes.iter().position(|class| class.iter().any(|c| place(c) == place(column)));
        match (of(&a), of(&b)) {
            (Some(x), Some(y)) if x != y => {
                let other = classes.swap_remove(x.max(y));
                classes[x.min(y)].extend(other);
            }
            (Some(_), Some(_)) => {}
            (Some(x), None) => classes[x].push(b),
            (None, Some(y)) => classes[y].push(a),
            (None, None) => classes.push(vec![a, b]),
        }
    }
    classes
}

/// The number of the class that a column is of, or the columns that a condition makes equal.
pub(super) fn class_of(classes: &[Vec<Column>], expr: &Expr) -> Option<usize> {
    let column = match column_of(expr) {
        Some(column) => column,
        None => column_of(hashable(expr)?.0)?,
    };
    classes.iter().position(|class| class.iter().any(|c| place(c) == place(column)))
}

/// Puts the values that columns must have into the comparisons of these columns with other values: `a = 1 AND (a, b) > (1, 2)` means
/// `a = 1 AND b > 2`, and `a = 1 AND a > 2` never holds.
pub(super) fn put_values(of: &Values<'_>, conjuncts: &mut [Conjunct]) {
    if conjuncts.len() < 2 {
        return;
    }
    let mut values: Vec<(Column, Expr)> = Vec::new();
    for conjunct in conjuncts.iter().filter(|c| c.is_plain()) {
        if let Some((column, CompareOp::Eq, value)) = compared(&conjunct.expr) {
            values.push((*column, value.clone()));
        }
    }
    if values.is_empty() {
        return;
    }
    let value_of = |column: &Column| values.iter().find(|(c, _)| place(c) == place(column)).map(|(_, value)| value);
    for conjunct in conjuncts.iter_mut().filter(|c| c.is_plain()) {
        let known = match &mut conjunct.expr {
            Expr::RowCompare { op, pairs } => shorten(of, (*op, pairs), value_of),
            expr => compared(expr).and_then(|(column, op, value)| {
                let known = value_of(column)?;
                (op != CompareOp::Eq || !same(known, value)).then(|| Some(op.holds(of.order(known, value)?)))?
            }),
        };
        match known {
            Some(true) => conjunct.used = true,
            Some(false) => {
                conjunct.expr = Expr::Const(Datum::Bool(false), sql_ir::Ty::of(oid::BOOL));
                conjunct.mask = 0;
            }
            None => {}
        }
    }
}

/// A comparison of a column with a constant or a parameter of its type, of which equal values are the same value.
fn compared(expr: &Expr) -> Option<(&Column, CompareOp, &Expr)> {
    let Expr::Call { function, args, .. } = expr else { return None };
    let [Expr::Column(column), value] = &args[..] else { return None };
    let test = comparison_of(function);
    let is_value = matches!(value, Expr::Const(..) | Expr::Param(..)) && value.ty().oid == column.ty.oid;
    let plain = column.level == 0 && is_value && !matches!(test.how, How::Function(_));
    (plain && types::key_says_all(column.ty.oid)).then_some((column, test.op, value))
}

/// Takes the first columns off a comparison of rows whose values are known and equal; what it comes to if they are not.
fn shorten<'v>(
    of: &Values<'_>,
    (op, pairs): (CompareOp, &mut Vec<(Expr, Expr, &'static Function, &'static Function)>),
    value_of: impl Fn(&Column) -> Option<&'v Expr>,
) -> Option<bool> {
    if matches!(op, CompareOp::Eq | CompareOp::Ne) {
        return None;
    }
    while let Some((Expr::Column(column), value, ..)) = pairs.first() {
        let Some(known) = value_of(column).filter(|known| known.ty().oid == value.ty().oid) else { break };
        match of.order(known, value)? {
            Ordering::Equal if pairs.len() > 1 => _ = pairs.remove(0),
            order => return Some(op.holds(order)),
        }
    }
    None
}

/// Adds what follows from equalities: `a = b AND b = c` means `a = c`, `a = b AND b = 1` means `a = 1`. And of alternatives
/// about several rels what they demand of each.
pub(super) fn derive(conjuncts: &mut Vec<Conjunct>) {
    let mut derived: Vec<Expr> = Vec::new();
    for class in classes(conjuncts) {
        let mut by_values: Vec<(&Conjunct, usize)> = Vec::new();
        for conjunct in conjuncts.iter() {
            let Some((a, b, _)) = hashable(&conjunct.expr) else { continue };
            let is_value = |expr: &Expr, member: &Expr| {
                rels_in(expr) == 0 && expr.ty().oid == member.ty().oid && !has_subquery(expr)
            };
            let is_member = |expr: &Expr| column_of(expr).is_some_and(|c| class.iter().any(|m| place(m) == place(c)));
            match (is_member(a) && is_value(b, a), is_member(b) && is_value(a, b)) {
                (true, _) => by_values.push((conjunct, 0)),
                (_, true) => by_values.push((conjunct, 1)),
                _ => {}
            }
        }
        if let Some((conjunct, side)) = by_values.first() {
            for member in &class {
                let has = |(c, side): &(&Conjunct, usize)| match &c.expr {
                    Expr::Call { args, .. } => column_of(&args[*side]).is_some_and(|c| place(c) == place(member)),
                    _ => false,
                };
                if !by_values.iter().any(has) {
                    derived.extend(with_side(&conjunct.expr, *side, *member));
                }
            }
        }
        if class.len() < 3 || class.len() > CLASS_MAX {
            continue;
        }
        let Some(pattern) =
            conjuncts.iter().find(|c| equated(c).is_some_and(|(a, _)| class.iter().any(|m| place(m) == place(&a))))
        else {
            continue;
        };
        for (i, a) in class.iter().enumerate() {
            for b in &class[i + 1..] {
                let is_there = |c: &Conjunct| {
                    equated(c).is_some_and(|(x, y)| {
                        (place(&x), place(&y)) == (place(a), place(b)) || (place(&x), place(&y)) == (place(b), place(a))
                    })
                };
                if a.rel != b.rel && !conjuncts.iter().any(is_there) {
                    let one = with_side(&pattern.expr, 0, *a);
                    derived.extend(one.and_then(|one| with_side(&one, 1, *b)));
                }
            }
        }
    }
    for conjunct in conjuncts.iter() {
        if let Expr::Or(any) = &conjunct.expr
            && conjunct.mask.count_ones() > 1
        {
            derived.extend(demands_of_each(any, conjunct.mask));
        }
    }
    conjuncts.extend(derived.into_iter().map(|expr| Conjunct { derived: true, ..Conjunct::new(expr) }));
}

pub(super) fn has_subquery(expr: &Expr) -> bool {
    let mut found = false;
    walk::walk(expr, 0, &mut |e, _| found |= matches!(e, Expr::Subquery { .. }));
    found
}

/// An equality with another column on one side.
fn with_side(equality: &Expr, side: usize, column: Column) -> Option<Expr> {
    let mut expr = equality.clone();
    let Expr::Call { args, .. } = &mut expr else { return None };
    if column_of(&args[side])?.ty.oid != column.ty.oid {
        return None;
    }
    with_column(&mut args[side], column);
    Some(expr)
}

/// For each rel about which every alternative demands something: the alternatives without the rest.
fn demands_of_each(any: &[Expr], mask: super::access::Mask) -> Vec<Expr> {
    let mut found = Vec::new();
    for rel in (0..super::access::Mask::BITS).filter(|rel| mask & (1 << rel) != 0) {
        let mut alternatives = Vec::with_capacity(any.len());
        for one in any.iter().counted(ALTERNATIVE) {
            let mut all = Vec::new();
            walk::conjuncts(one.clone(), &mut all);
            all.retain(|e| rels_in(e) == 1 << rel && !walk::is_volatile(e) && !has_subquery(e));
            if all.is_empty() {
                break;
            }
            alternatives.push(conjunction(all));
        }
        if alternatives.len() == any.len() {
            found.push(Expr::Or(alternatives));
        }
    }
    found
}
