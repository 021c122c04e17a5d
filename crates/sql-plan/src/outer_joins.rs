//! Outer joins that are less than that: inner joins, anti-joins, or nothing at all.
//!
//! - A condition that no row of NULLs satisfies makes an inner join of the outer join that would add such rows.
//! - `LEFT JOIN … WHERE r.c IS NULL`, where only a row that was added has a NULL, is an anti-join.
//! - A left join whose right side has at most one partner for each row, and of which nothing is used, is left out.
//!
//! Invariant: the rows of the query and their values stay what they are.

use engine_api::IndexDesc;
use sql_bind::equal::same;
use sql_bind::visit::walk_query_mut;
use sql_ir::expr::{How, comparison_of};
use sql_ir::{AnyAllSource, CastKind, Column, CompareOp, Expr, From, JoinKind, Query, RelKind};
use types::Datum;

use super::access::{Mask, rels_at, rels_in};
use super::join::mask_of;
use super::rewrite::{conjunction, dead_rel};
use super::selectivity::column_of;
use super::walk;

/// Whether FROM has an outer join.
pub(super) fn has_outer(from: &From) -> bool {
    match from {
        From::Rel(_) => false,
        From::Join { kind, left, right, .. } => {
            matches!(kind, JoinKind::Left | JoinKind::Right | JoinKind::Full) || has_outer(left) || has_outer(right)
        }
    }
}

/// Rels for whose row of NULLs an expression is NULL.
fn strict(expr: &Expr) -> Mask {
    match expr {
        Expr::Column(c) if c.level == 0 => 1 << c.rel,
        Expr::Call { function, args, .. } if function.strict => args.iter().fold(0, |mask, arg| mask | strict(arg)),
        Expr::Cast {
            arg, kind: CastKind::Relabel | CastKind::InOut | CastKind::Typmod | CastKind::Collate(_), ..
        } => strict(arg),
        Expr::AnyAll { all, function, left, right } if function.strict => match right {
            // With nothing to compare with, ALL holds of NULL, too.
            AnyAllSource::List(items) if !items.is_empty() || !all => strict(left),
            AnyAllSource::Array(_) if !all => strict(left),
            _ => 0,
        },
        Expr::RowCompare { pairs, .. } => pairs.first().map_or(0, |(left, right, ..)| strict(left) | strict(right)),
        Expr::Not(arg) => strict(arg),
        _ => 0,
    }
}

/// Rels for whose row of NULLs a condition does not hold.
fn demands(condition: &Expr) -> Mask {
    match condition {
        Expr::Const(Datum::Bool(false) | Datum::Null, _) => Mask::MAX,
        Expr::And(all) => all.iter().fold(0, |mask, one| mask | demands(one)),
        Expr::Or(any) => any.iter().fold(Mask::MAX, |mask, one| mask & demands(one)),
        Expr::IsNull { arg, negated: true, fields: false } => strict(arg),
        Expr::BooleanTest { arg, want: Some(_), negated: false } => strict(arg),
        Expr::Not(arg) => demands_refuted(arg),
        other => strict(other),
    }
}

/// Rels for whose row of NULLs the opposite of a condition does not hold.
fn demands_refuted(condition: &Expr) -> Mask {
    match condition {
        Expr::And(all) => all.iter().fold(Mask::MAX, |mask, one| mask & demands_refuted(one)),
        Expr::Or(any) => any.iter().fold(0, |mask, one| mask | demands_refuted(one)),
        Expr::Not(arg) => demands(arg),
        Expr::IsNull { arg, negated: false, fields: false } => strict(arg),
        other => strict(other),
    }
}

fn demanded_by(on: Option<&Expr>) -> Mask {
    on.map_or(0, demands)
}

/// Makes less of outer joins. Answers whether anything was.
pub(super) fn reduce(query: &mut Query) -> bool {
    let demanded = demanded_by(query.filter.as_ref());
    let mut from = std::mem::take(&mut query.from);
    let mut reduced = false;
    for item in &mut from {
        reduce_item(item, demanded, &mut reduced);
    }
    query.from = from;
    let mut path = Vec::new();
    for at in 0..query.from.len() {
        while let Some(()) = to_anti_join(query, at, &mut path) {
            path.clear();
            reduced = true;
        }
        path.clear();
    }
    reduced
}

/// Makes less of the outer joins of an item, of whose rows those of NULLs in `demanded` rels do not count.
fn reduce_item(item: &mut From, demanded: Mask, reduced: &mut bool) {
    let From::Join { kind, left, right, on } = item else { return };
    let (of_left, of_right) = (mask_of(left) & demanded != 0, mask_of(right) & demanded != 0);
    let less = match kind {
        JoinKind::Left if of_right => JoinKind::Inner,
        JoinKind::Right if of_left => JoinKind::Inner,
        JoinKind::Full => match (of_left, of_right) {
            (true, true) => JoinKind::Inner,
            (true, false) => JoinKind::Left,
            (false, true) => JoinKind::Right,
            (false, false) => JoinKind::Full,
        },
        JoinKind::Inner | JoinKind::Left | JoinKind::Right | JoinKind::Semi | JoinKind::Anti => *kind,
    };
    *reduced |= less != *kind;
    *kind = less;
    let by_on = demanded_by(on.as_ref());
    let (to_left, to_right) = match kind {
        JoinKind::Inner => (demanded | by_on, demanded | by_on),
        JoinKind::Left => (demanded, by_on),
        JoinKind::Right => (by_on, demanded),
        JoinKind::Full => (0, 0),
        JoinKind::Semi => (demanded | by_on, by_on),
        JoinKind::Anti => (demanded, by_on),
    };
    reduce_item(left, to_left, reduced);
    reduce_item(right, to_right, reduced);
}

/// A step from a join to one of its sides.
#[derive(Clone, Copy)]
enum Side {
    Left,
    Right,
}

/// The item at the end of a path.
fn at<'f>(from: &'f mut From, path: &[Side]) -> Option<&'f mut From> {
    let mut item = from;
    for side in path {
        let From::Join { left, right, .. } = item else { return None };
        item = match side {
            Side::Left => left,
            Side::Right => right,
        };
    }
    Some(item)
}

/// Makes an anti-join of the first left join of an item that is one. `path` is where the search is.
fn to_anti_join(query: &mut Query, item: usize, path: &mut Vec<Side>) -> Option<()> {
    let join = at(&mut query.from[item], path)?;
    let From::Join { kind, right, on, .. } = join else { return None };
    let kind = *kind;
    if kind == JoinKind::Left {
        let null_side = mask_of(right);
        let alone = match **right {
            From::Rel(rel) => Some(rel),
            From::Join { .. } => None,
        };
        let on = on.clone();
        if let Some(number) = on.and_then(|on| wanted_null(query, null_side, alone, &on)) {
            return make_anti_join(query, item, path, number, null_side);
        }
    }
    let sides: &[Side] = match kind {
        JoinKind::Inner => &[Side::Left, Side::Right],
        JoinKind::Left | JoinKind::Semi | JoinKind::Anti => &[Side::Left],
        JoinKind::Right => &[Side::Right],
        JoinKind::Full => &[],
    };
    for side in sides {
        path.push(*side);
        if let Some(()) = to_anti_join(query, item, path) {
            return Some(());
        }
        path.pop();
    }
    None
}

/// The number of a condition of WHERE that wants a column of the null side to be NULL which is not NULL in any partner.
fn wanted_null(query: &Query, null_side: Mask, alone: Option<usize>, on: &Expr) -> Option<usize> {
    let mut conditions = Vec::new();
    walk::conjuncts(query.filter.clone()?, &mut conditions);
    let mut of_on = Vec::new();
    walk::conjuncts(on.clone(), &mut of_on);
    conditions.iter().position(|condition| {
        let Expr::IsNull { arg, negated: false, fields: false } = condition else { return false };
        let Expr::Column(column) = &**arg else { return false };
        if column.level != 0 || null_side & (1 << column.rel) == 0 {
            return false;
        }
        let not_null = match (&query.rels[column.rel].kind, alone) {
            (RelKind::Table(info), Some(rel)) if rel == column.rel => {
                info.desc.columns.get(column.column).is_some_and(|c| c.not_null)
            }
            _ => false,
        };
        not_null || of_on.iter().any(|part| demands_column(part, column))
    })
}

/// Whether a condition does not hold where a column is NULL.
fn demands_column(condition: &Expr, column: &Column) -> bool {
    match condition {
        Expr::Call { function, args, .. } if function.strict => args.iter().any(|arg| demands_column(arg, column)),
        other => column_of(other).is_some_and(|c| (c.rel, c.column) == (column.rel, column.column)),
    }
}

/// Makes an anti-join of a left join: the condition goes, and what is said of the null side is NULL.
fn make_anti_join(query: &mut Query, item: usize, path: &[Side], number: usize, null_side: Mask) -> Option<()> {
    let whole_row = |query: &Query| {
        let mut found = false;
        walk::walk_query(query, 0, &mut |e, depth| {
            found |= matches!(e, Expr::WholeRow { level, rel } if *level == depth && null_side & (1 << rel) != 0);
        });
        found
    };
    if whole_row(query) {
        return None;
    }
    let mut conditions = Vec::new();
    walk::conjuncts(query.filter.take()?, &mut conditions);
    conditions.remove(number);
    query.filter = conditions.into_iter().fold(None, |all, one| conjunction(all, Some(one)));
    // What is said within the join stays as it is.
    let From::Join { kind, right, on, .. } = at(&mut query.from[item], path)? else { return None };
    *kind = JoinKind::Anti;
    let (own_right, own_on) = (std::mem::replace(&mut **right, From::Rel(0)), on.take());
    walk_query_mut(query, 0, &mut |expr, depth| {
        if let Expr::Column(c) = expr
            && c.level == depth
            && null_side & (1 << c.rel) != 0
        {
            *expr = Expr::Const(Datum::Null, c.ty);
        }
    });
    let From::Join { right, on, .. } = at(&mut query.from[item], path)? else { return None };
    **right = own_right;
    *on = own_on;
    Some(())
}

/// Leaves out left joins that change nothing. Answers whether any was.
pub(super) fn remove_unused(query: &mut Query) -> bool {
    let mut removed = false;
    let mut from = std::mem::take(&mut query.from);
    // What one join needed may not be needed without it.
    loop {
        let mut found = None;
        for item in &mut from {
            found = found.or_else(|| unused(query, item));
        }
        let Some(rel) = found else { break };
        from.iter_mut().for_each(|item| leave_out(item, rel));
        query.rels[rel] = dead_rel();
        removed = true;
    }
    query.from = from;
    removed
}

/// A rel that is the right side of a left join which changes nothing. The query is without its FROM, which `top` is of.
fn unused(query: &Query, item: &From) -> Option<usize> {
    let mut candidates = Vec::new();
    left_joined(item, &mut candidates);
    candidates.retain(|(rel, on)| has_one_partner(query, *rel, on));
    if candidates.is_empty() {
        return None;
    }
    let mut used: Mask = query.guards.iter().fold(0, |mask, guard| mask | 1 << guard.rel);
    walk::walk_query(query, 0, &mut |e, depth| used |= rels_at(e, depth));
    candidates.into_iter().map(|(rel, _)| rel).find(|rel| used & (1 << rel) == 0 && !used_in(item, *rel))
}

/// Whether a condition of FROM other than its own is about a rel. Rels of other items are not known to an item's conditions.
fn used_in(item: &From, rel: usize) -> bool {
    let From::Join { left, right, on, kind } = item else { return false };
    let own = *kind == JoinKind::Left && matches!(**right, From::Rel(r) if r == rel);
    let used = on.as_ref().filter(|_| !own).map_or(0, rels_in);
    used & (1 << rel) != 0 || used_in(left, rel) || used_in(right, rel)
}

/// The single rels on the right of left joins with an ON.
fn left_joined<'f>(item: &'f From, out: &mut Vec<(usize, &'f Expr)>) {
    let From::Join { kind, left, right, on } = item else { return };
    if let (JoinKind::Left, From::Rel(rel), Some(on)) = (kind, &**right, on) {
        out.push((*rel, on));
    }
    left_joined(left, out);
    left_joined(right, out);
}

fn leave_out(item: &mut From, gone: usize) {
    let From::Join { kind, left, right, .. } = item else { return };
    leave_out(left, gone);
    leave_out(right, gone);
    if *kind == JoinKind::Left && matches!(**right, From::Rel(rel) if rel == gone) {
        *item = std::mem::replace(&mut **left, From::Rel(0));
    }
}

/// The table whose rows those of an item are, each once at most: it is joined with what has one partner at most for each of its rows.
pub(super) fn only_rel(query: &Query, item: &From) -> Option<usize> {
    match item {
        From::Rel(rel) => Some(*rel),
        From::Join { kind: JoinKind::Semi | JoinKind::Anti, left, .. } => only_rel(query, left),
        From::Join { kind: JoinKind::Left | JoinKind::Inner, left, right, on } => match (&**right, on) {
            (From::Rel(rel), Some(on)) if has_one_partner(query, *rel, on) => only_rel(query, left),
            _ => None,
        },
        From::Join { .. } => None,
    }
}

/// Whether at most one row of a rel satisfies a condition, for each row of the others.
fn has_one_partner(query: &Query, rel: usize, on: &Expr) -> bool {
    if walk::is_volatile(on) {
        return false;
    }
    let mut conditions = Vec::new();
    walk::conjuncts(on.clone(), &mut conditions);
    let equated: Vec<&Column> = conditions.iter().filter_map(|condition| equated(condition, rel)).collect();
    let has = |column: usize| equated.iter().any(|c| c.column == column);
    match &query.rels[rel].kind {
        RelKind::Table(info) => {
            let is_key = |index: &IndexDesc| {
                index.unique
                    && index.is_immediate()
                    && !index.invalid
                    && !index.needs_code()
                    && index.keys.iter().all(|key| key.column > 0 && has(key.column as usize - 1))
            };
            info.indexes.iter().any(is_key)
        }
        RelKind::Subquery { query: inner, lateral: false } => {
            let visible = |number: &usize| inner.targets.get(*number).is_some_and(|target| !target.junk);
            let keys_of = |exprs: &[Expr]| {
                exprs.iter().all(|key| {
                    let at = inner.targets.iter().position(|target| !target.junk && same(&target.expr, key));
                    at.is_some_and(has)
                })
            };
            if walk::is_volatile_query(inner) {
                return false;
            }
            match &inner.distinct {
                Some(on) if on.is_empty() => (0..inner.targets.len()).filter(visible).all(has),
                Some(on) => on.iter().all(|number| visible(number) && has(*number)),
                None => {
                    let makes_rows = |rel: &sql_ir::Rel| matches!(rel.kind, RelKind::Function { per_row: true, .. });
                    let grouped = !inner.group_by.is_empty() && inner.grouping_sets.is_empty();
                    grouped && !inner.rels.iter().any(makes_rows) && keys_of(&inner.group_by)
                }
            }
        }
        _ => false,
    }
}

/// The column of a rel that a condition makes equal to something that is not of it.
fn equated(condition: &Expr, rel: usize) -> Option<&Column> {
    let Expr::Call { function, args, .. } = condition else { return None };
    let [left, right] = args.as_slice() else { return None };
    let test = comparison_of(function);
    if test.op != CompareOp::Eq || matches!(test.how, How::Function(_)) {
        return None;
    }
    let sides = [(left, right), (right, left)].into_iter();
    let mut found = sides.filter(|(_, other)| rels_in(other) & (1 << rel) == 0);
    found.find_map(|(side, _)| column_of(side).filter(|column| column.rel == rel))
}
