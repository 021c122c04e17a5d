//! How many rows a condition leaves, from the statistics of columns; without them, PostgreSQL's fixed guesses.
//!
//! Equality and ranges are computed from common values and histograms. Any other condition on one column is tried out: the
//! common values and the bounds of the histogram are a sample of the column.

use base::work;
use engine_api::IndexDesc;
use sql_functions::statistics::ColumnStatistics;
use sql_ir::expr::{Code, Resolve, Slot, compare_op_of, compile, evaluate_over};
use sql_ir::{AnyAllSource, CastKind, Column, CompareOp, Expr, Query, RelKind, SubqueryKind};
use types::Datum;

use super::access::{Conjunct, Mask, WantedOrder, rels_in};
use super::level::Level;
use super::walk;

/// Shares of rows where nothing is known, as in PostgreSQL's `selfuncs.h`.
const EQUAL: f64 = 0.005;
const RANGE: f64 = 1.0 / 3.0;
const BETWEEN: f64 = 0.005;
const PATTERN: f64 = 0.05;
const UNKNOWN: f64 = 1.0 / 3.0;
/// Units of work for a comparison of which nothing is known.
const COMPARISON: usize = 16;
/// Units of work for a look at one common value or bound.
const PER_COMMON: usize = 4;
/// Distinct values where nothing is known.
const DISTINCT: f64 = 200.0;
/// Rows with one key of an index that is not unique, where nothing is known.
pub(super) const ROWS_PER_KEY: f64 = 10.0;

/// The column that an expression is, casts that change nothing aside.
pub(super) fn column_of(expr: &Expr) -> Option<&Column> {
    match expr {
        Expr::Column(c) if c.level == 0 => Some(c),
        Expr::Cast { arg, kind: CastKind::Relabel, .. } => column_of(arg),
        _ => None,
    }
}

/// A value that is known when the plan is made.
pub(super) fn value_of<'e>(level: &'e Level<'_>, expr: &'e Expr) -> Option<&'e Datum> {
    match expr {
        Expr::Const(value, _) => Some(value),
        Expr::Param(number, _) => level.cx.values.known().get(*number),
        Expr::Cast { arg, kind: CastKind::Relabel, .. } => value_of(level, arg),
        _ => None,
    }
}

/// What is known of a column.
fn known<'l>(level: &'l Level<'_>, column: &Column) -> Option<(&'l ColumnStatistics, f64)> {
    Some((level.known(column.rel, column.column)?, level.tables[column.rel].as_ref()?.rows.max(1.0)))
}

/// The share of rows of a rel that its own conditions leave.
pub(super) fn of_rel<'c>(level: &Level<'_>, rel: usize, conjuncts: impl Iterator<Item = &'c Conjunct>) -> f64 {
    let mut share = 1.0;
    // Ranges of one column belong together: column, share above the lower end, share below the upper end.
    let mut ranges: Vec<(Column, Option<f64>, Option<f64>)> = Vec::new();
    for conjunct in conjuncts {
        if conjunct.after > 0 {
            // It is not tried out on values that it must not see either.
            share *= guessed(&conjunct.expr);
            continue;
        }
        match range(level, rel, &conjunct.expr) {
            Some((column, is_lower, part)) => {
                let at = ranges.iter().position(|(c, ..)| (c.rel, c.column) == (column.rel, column.column));
                let at = at.unwrap_or_else(|| {
                    ranges.push((*column, None, None));
                    ranges.len() - 1
                });
                let end = if is_lower { &mut ranges[at].1 } else { &mut ranges[at].2 };
                *end = Some(end.map_or(part, |before: f64| before.min(part)));
            }
            None => share *= of(level, rel, &conjunct.expr),
        }
    }
    for (column, lower, upper) in ranges {
        share *= match (lower, upper) {
            // Nothing is known of the ends.
            (Some(lower), Some(upper)) if lower == RANGE && upper == RANGE => BETWEEN,
            (Some(lower), Some(upper)) => match known(level, &column) {
                Some((of, _)) => (lower + upper + of.null_fraction - 1.0).clamp(1e-5, 1.0),
                None => BETWEEN,
            },
            (one, other) => one.or(other).unwrap_or(1.0),
        };
    }
    share.clamp(0.0, 1.0)
}

/// A comparison of a column with a known value that leaves a range: whether that is the lower end, and its share.
fn range<'e>(level: &Level<'_>, rel: usize, expr: &'e Expr) -> Option<(&'e Column, bool, f64)> {
    let (column, op, value) = comparison(expr, rel)?;
    let is_lower = match op {
        CompareOp::Gt | CompareOp::Ge => true,
        CompareOp::Lt | CompareOp::Le => false,
        CompareOp::Eq | CompareOp::Ne => return None,
    };
    Some((column, is_lower, of_comparison(level, column, op, value)))
}

/// A comparison of a column of `rel` with something that is not of it.
fn comparison(expr: &Expr, rel: usize) -> Option<(&Column, CompareOp, &Expr)> {
    let (op, left, right) = match expr {
        Expr::Call { function, args, .. } => match args.as_slice() {
            [left, right] => (compare_op_of(function)?, left, right),
            _ => return None,
        },
        // The first columns decide on most rows. Those that are equal in them are counted as if all of them held.
        Expr::RowCompare { op, pairs } => {
            let op = match op {
                CompareOp::Lt if pairs.len() > 1 => CompareOp::Le,
                CompareOp::Gt if pairs.len() > 1 => CompareOp::Ge,
                op => *op,
            };
            pairs.first().map(|(left, right, ..)| (op, left, right))?
        }
        _ => return None,
    };
    let of = |one| column_of(one).filter(|column| column.rel == rel);
    let is_apart = |expr: &Expr| rels_in(expr) & (1 << rel) == 0;
    match (of(left), of(right)) {
        (Some(column), _) if is_apart(right) => Some((column, op, right)),
        (_, Some(column)) if is_apart(left) => Some((column, op.flipped(), left)),
        _ => None,
    }
}

/// The share of rows that a condition leaves.
pub(super) fn of(level: &Level<'_>, rel: usize, expr: &Expr) -> f64 {
    let share = match expr {
        Expr::Const(Datum::Bool(true), _) => 1.0,
        Expr::Const(..) => 0.0,
        Expr::And(args) => args.iter().map(|arg| of(level, rel, arg)).product(),
        Expr::Or(args) => 1.0 - args.iter().map(|arg| 1.0 - of(level, rel, arg)).product::<f64>(),
        Expr::Not(arg) => 1.0 - of(level, rel, arg),
        Expr::IsNull { arg, negated, .. } => {
            let nulls = column_of(arg).and_then(|c| known(level, c)).map_or(EQUAL, |(of, _)| of.null_fraction);
            if *negated { 1.0 - nulls } else { nulls }
        }
        Expr::Subquery { kind: SubqueryKind::Exists | SubqueryKind::Any { .. }, .. } => 0.5,
        Expr::AnyAll { all, function, left, right } => of_list(level, rel, expr, *all, function, left, right),
        Expr::Call { .. } | Expr::RowCompare { .. } => match comparison(expr, rel) {
            Some((column, op, value)) => of_comparison(level, column, op, value),
            None => tried(level, rel, expr).unwrap_or_else(|| guessed(expr)),
        },
        _ => tried(level, rel, expr).unwrap_or(UNKNOWN),
    };
    share.clamp(0.0, 1.0)
}

/// A condition about which nothing is known but its operator.
fn guessed(expr: &Expr) -> f64 {
    let Expr::Call { function, .. } = expr else { return UNKNOWN };
    match (compare_op_of(function), function.name) {
        (Some(CompareOp::Eq), _) => EQUAL,
        (Some(CompareOp::Ne), _) => 1.0 - EQUAL,
        (Some(_), _) => RANGE,
        (None, name) if name.contains("notlike") || name.ends_with("nlike") => 1.0 - PATTERN,
        (None, name) if name.contains("like") => PATTERN,
        _ => UNKNOWN,
    }
}

fn of_list(
    level: &Level<'_>,
    rel: usize,
    expr: &Expr,
    all: bool,
    function: &'static sql_functions::Function,
    left: &Expr,
    right: &AnyAllSource,
) -> f64 {
    let (op, column) = (compare_op_of(function), column_of(left));
    match (column, op, right) {
        (Some(column), Some(op), AnyAllSource::List(items)) => {
            let parts = items.iter().map(|item| of_comparison(level, column, op, item));
            match (all, op) {
                (false, CompareOp::Eq) => parts.sum::<f64>(),
                (false, _) => 1.0 - parts.map(|part| 1.0 - part).product::<f64>(),
                (true, _) => parts.product(),
            }
        }
        (Some(column), Some(CompareOp::Eq), AnyAllSource::Array(array)) if !all => {
            let count = match value_of(level, array) {
                Some(Datum::Array(array)) => array.values.len() as f64,
                _ => 10.0,
            };
            count * of_equality(level, column, None)
        }
        _ => tried(level, rel, expr).unwrap_or(if op == Some(CompareOp::Eq) { 10.0 * EQUAL } else { UNKNOWN }),
    }
}

fn of_comparison(level: &Level<'_>, column: &Column, op: CompareOp, value: &Expr) -> f64 {
    work::beat(COMPARISON);
    let value = value_of(level, value);
    match op {
        CompareOp::Eq => of_equality(level, column, value),
        CompareOp::Ne => {
            let nulls = known(level, column).map_or(0.0, |(of, _)| of.null_fraction);
            1.0 - of_equality(level, column, value) - nulls
        }
        CompareOp::Lt => below(level, column, value).unwrap_or(RANGE),
        CompareOp::Le => below(level, column, value).map_or(RANGE, |below| below + of_common(level, column, value)),
        CompareOp::Gt | CompareOp::Ge => {
            let nulls = known(level, column).map_or(0.0, |(of, _)| of.null_fraction);
            let equal = if op == CompareOp::Gt { of_common(level, column, value) } else { 0.0 };
            below(level, column, value).map_or(RANGE, |below| 1.0 - below - equal - nulls)
        }
    }
    .clamp(0.0, 1.0)
}

/// The share of rows equal to one value; `None` is a value that is not known.
pub(super) fn of_equality(level: &Level<'_>, column: &Column, value: Option<&Datum>) -> f64 {
    let Some((of, rows)) = known(level, column) else {
        return 1.0 / distinct(level, column).max(1.0);
    };
    let distinct = of.distinct_of(rows);
    let present = 1.0 - of.null_fraction;
    match value {
        Some(Datum::Null) => 0.0,
        None => present / distinct,
        Some(value) => {
            work::beat(PER_COMMON * of.common.len());
            if let Some((_, share)) = of.common.iter().find(|(common, _)| order(common, value) == Some(0.0)) {
                return *share;
            }
            let common: f64 = of.common.iter().map(|(_, share)| share).sum();
            let others = (distinct - of.common.len() as f64).max(1.0);
            let share = ((present - common) / others).max(0.0);
            // A value that is not among the common ones is rarer than they are.
            of.common.last().map_or(share, |(_, least)| share.min(*least)).max(0.5 / rows)
        }
    }
}

/// The share of rows equal to a value that is among the common ones, otherwise 0.
fn of_common(level: &Level<'_>, column: &Column, value: Option<&Datum>) -> f64 {
    let (Some((of, _)), Some(value)) = (known(level, column), value) else { return 0.0 };
    work::beat(PER_COMMON * of.common.len());
    of.common.iter().find(|(common, _)| order(common, value) == Some(0.0)).map_or(0.0, |(_, share)| *share)
}

/// The share of rows below a value.
fn below(level: &Level<'_>, column: &Column, value: Option<&Datum>) -> Option<f64> {
    let ((of, _), value) = (known(level, column)?, value?);
    if value.is_null() {
        return Some(0.0);
    }
    work::beat(PER_COMMON * (of.common.len() + of.histogram.len()));
    let common: f64 = of.common.iter().map(|(_, share)| share).sum();
    let mut share = 0.0;
    for (one, part) in &of.common {
        share += if order(one, value)? < 0.0 { *part } else { 0.0 };
    }
    let rest = (1.0 - common - of.null_fraction).max(0.0);
    if of.histogram.len() < 2 {
        return Some(share + rest * if of.common.is_empty() { RANGE } else { 0.5 });
    }
    let parts = (of.histogram.len() - 1) as f64;
    let mut at = 0;
    while at < of.histogram.len() && order(&of.histogram[at], value)? < 0.0 {
        at += 1;
    }
    let inside = match at {
        0 => 0.0,
        at if at == of.histogram.len() => parts,
        at => {
            let (low, high) = (&of.histogram[at - 1], &of.histogram[at]);
            let whole = order(high, low).filter(|w| w.is_finite() && *w > 0.0);
            let part = order(value, low).filter(|p| p.is_finite());
            let within = match (part, whole) {
                (Some(part), Some(whole)) if whole != 1.0 || part != 1.0 => (part / whole).clamp(0.0, 1.0),
                _ => 0.5,
            };
            (at - 1) as f64 + within
        }
    };
    // The ends of a sample are not those of the table.
    Some(share + rest * (inside / parts).clamp(0.0001, 0.9999))
}

/// How far apart two values are, as a number where they have one: negative if `a` comes first. `None` if they cannot be
/// compared; 1 or -1 says no more than which comes first.
fn order(a: &Datum, b: &Datum) -> Option<f64> {
    let number = |value: &Datum| match value {
        Datum::Int2(v) => Some(f64::from(*v)),
        Datum::Int4(v) => Some(f64::from(*v)),
        Datum::Int8(v) => Some(*v as f64),
        Datum::Oid(v) => Some(f64::from(*v)),
        Datum::Float4(v) => Some(f64::from(*v)),
        Datum::Float8(v) => Some(*v),
        Datum::Numeric(v) => Some(v.to_f64()),
        Datum::Date(v) => Some(f64::from(*v) * 86_400e6),
        Datum::Timestamp(v) | Datum::TimestampTz(v) | Datum::Time(v) => Some(*v as f64),
        _ => None,
    };
    if let (Some(a), Some(b)) = (number(a), number(b)) {
        return Some(a - b);
    }
    if std::mem::discriminant(a) != std::mem::discriminant(b) {
        return None;
    }
    // Trailing blanks count for nothing in char(n), and say little elsewhere.
    let ordering = match (a, b) {
        (Datum::Text(a), Datum::Text(b)) => a.trim_end_matches(' ').cmp(b.trim_end_matches(' ')),
        (a, b) => types::compare(&a.as_ref(), &b.as_ref()),
    };
    Some(f64::from(ordering as i8))
}

/// Names of a condition on one column: that is slot 0, parameters follow.
struct OneColumn<'a> {
    column: &'a Column,
    params: usize,
}

impl Resolve for OneColumn<'_> {
    fn column(&mut self, column: &Column) -> base::Result<Slot> {
        match (column.level, column.rel, column.column) == (0, self.column.rel, self.column.column) {
            true => Ok(0),
            false => Err(base::Error::internal("another column")),
        }
    }
    fn whole_row(&mut self, _: usize, _: usize) -> base::Result<Code> {
        Err(base::Error::internal("a row"))
    }
    fn aggregate(&mut self, _: usize, _: usize) -> base::Result<Slot> {
        Err(base::Error::internal("an aggregate"))
    }
    fn param(&mut self, index: usize) -> Slot {
        self.params = self.params.max(index + 1);
        index as Slot + 1
    }
    fn subquery(&mut self, _: &SubqueryKind, _: &Query) -> base::Result<Code> {
        Err(base::Error::internal("a subquery"))
    }
}

/// Tries a condition on one column out on what is known of the column.
fn tried(level: &Level<'_>, rel: usize, expr: &Expr) -> Option<f64> {
    let mut column: Option<Column> = None;
    walk::columns_of(expr, &mut |c| {
        if c.rel == rel {
            column.get_or_insert(c);
        }
    });
    let column = column?;
    let (of, _) = known(level, &column)?;
    let eval = level.cx.eval?;
    if of.common.is_empty() && of.histogram.len() < 10 || walk::is_volatile(expr) {
        return None;
    }
    let mut names = OneColumn { column: &column, params: 0 };
    let code = compile(expr, &mut names).ok()?;
    let hints = level.cx.values.known();
    if names.params > hints.len() {
        return None;
    }
    let mut registers = vec![Datum::Null];
    registers.extend_from_slice(&hints[..names.params]);
    let mut holds = |value: &Datum| {
        registers[0] = value.clone();
        evaluate_over(&code, &registers, eval).ok().map(|result| matches!(result, Datum::Bool(true)))
    };
    let (mut share, mut rest) = (0.0, 1.0 - of.null_fraction);
    for (value, part) in &of.common {
        rest -= part;
        share += if holds(value)? { *part } else { 0.0 };
    }
    if of.histogram.is_empty() {
        return Some(share + rest.max(0.0) * UNKNOWN);
    }
    let mut found: f64 = 0.0;
    for value in &of.histogram {
        found += if holds(value)? { 1.0 } else { 0.0 };
    }
    let count = of.histogram.len() as f64;
    // None of a hundred is still some of a million.
    Some(share + rest.max(0.0) * (found.max(0.3) / count).min(1.0 - 0.3 / count))
}

/// Distinct values of a column in its whole table.
pub(super) fn distinct(level: &Level<'_>, column: &Column) -> f64 {
    let rows = level.rows[column.rel];
    if let Some((of, rows)) = known(level, column) {
        return of.distinct_of(rows);
    }
    match &level.rels[column.rel].kind {
        RelKind::Table(info) => {
            let is = |index: &IndexDesc| index.keys.first().is_some_and(|key| key.column as usize == column.column + 1);
            let mut of = info.indexes.iter().filter(|index| is(index));
            match of.clone().any(|index| index.unique && index.keys.len() == 1 && index.predicate.is_none()) {
                true => rows,
                false if of.next().is_some() => (rows / ROWS_PER_KEY).max(1.0),
                false => rows.min(DISTINCT),
            }
        }
        RelKind::Subquery { query, .. } => {
            let target = query.targets.get(column.column).map(|target| &target.expr);
            match (&query.group_by[..], target) {
                ([key], Some(target)) if sql_bind::equal::same(key, target) => rows,
                ([], _) => rows.min(DISTINCT),
                _ => (rows / 2.0).max(1.0),
            }
        }
        _ => rows.min(DISTINCT),
    }
}

/// Distinct values of an expression among so many rows.
pub(super) fn groups(level: &Level<'_>, exprs: &[Expr], rows: f64) -> f64 {
    let mut groups = 1.0;
    for expr in exprs {
        groups *= match column_of(expr) {
            Some(column) if column.rel < level.rows.len() => distinct(level, column),
            _ => DISTINCT,
        };
        if groups > rows {
            return rows.max(1.0);
        }
    }
    groups.max(1.0)
}

/// Distinct values of columns of a rel, each with a direction, among so many rows.
pub(super) fn groups_by_columns(level: &Level<'_>, rel: usize, columns: &WantedOrder, rows: f64) -> f64 {
    // Of an index's expression nothing is known.
    let column = |&(column, ..): &(usize, bool, bool)| {
        let ty = level.rels[rel].columns.get(column).map(|known| known.ty);
        ty.map_or(Expr::Const(Datum::Null, sql_ir::Ty::of(types::oid::UNKNOWN)), |ty| {
            Expr::Column(Column { level: 0, rel, column, ty })
        })
    };
    groups(level, &columns.iter().map(column).collect::<Vec<_>>(), rows)
}

/// The share of pairs that an equality between two rels leaves.
pub(super) fn of_join(level: &Level<'_>, left: &Expr, right: &Expr) -> f64 {
    let most = |expr: &Expr| column_of(expr).map_or(DISTINCT, |column| distinct(level, column));
    1.0 / most(left).max(most(right)).max(1.0)
}

/// The share of rows of the left side of a semi-join that have a partner.
pub(super) fn of_semi_join(level: &Level<'_>, on: &[Conjunct], right: Mask, right_rows: f64) -> f64 {
    let mut share: f64 = 1.0;
    for conjunct in on.iter().filter(|c| c.mask & !right != 0) {
        let Expr::Call { function, args, .. } = &conjunct.expr else { continue };
        let ([a, b], Some(op)) = (args.as_slice(), compare_op_of(function)) else { continue };
        if op != CompareOp::Eq {
            share *= 0.9;
            continue;
        }
        let of = |expr: &Expr| column_of(expr).map_or(DISTINCT, |column| distinct(level, column));
        let is_right = |expr: &Expr| rels_in(expr) & right != 0;
        let (inner, outer) = if is_right(a) { (of(a), of(b)) } else { (of(b), of(a)) };
        share *= (inner.min(right_rows) / outer.max(1.0)).min(1.0);
    }
    share.clamp(1e-4, 1.0)
}
