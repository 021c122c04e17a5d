//! Merge joins: by which keys, in which order, and how each side comes in it.
//!
//! A side that is one table comes in order by an index where that is cheaper than sorting it; any other side is sorted.
//! Invariant: NULLs among the keys may be at either end, on each side: rows with one match no row.

use std::sync::Arc;

use base::{Oid, Result};
use sql_ir::expr::{Code, Slot};
use sql_ir::{Expr, RelKind, TableInfo};
use types::oid;

use super::access::{Conjunct, Mask, Wanted};
use super::join::{Joined, hash_keys, key_of, slots_of};
use super::level::Level;
use super::methods::{PlanMethod, sort_cost};
use super::node::{JoinType, MergeJoinNode, MergeKey, Node, ProjectNode, SortNode, SortSlot};
use super::sarg::key_number;
use super::{access, explain};

/// What is wanted of the rows of a FROM.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WantedRows<'w> {
    /// The order that they should have.
    pub order: &'w [WantedColumn],
    /// Expressions over one rel each that the order is by, see [`WantedColumn::column`].
    pub exprs: &'w [Expr],
    /// So many of them are read, expected, if they come in this order; `None` is all.
    pub limit: Option<f64>,
    /// The order of the first keys alone is of no use.
    pub is_whole: bool,
    /// Several threads may share the work, if there are so many results at most for one of them to put together; `None` if they may not.
    pub shared: Option<f64>,
}

/// The number of the first expression of an order that no index has.
pub(super) const EXPRESSIONS: usize = 1 << 32;

/// A column by which the rows of a FROM are wanted in order.
#[derive(Clone, Copy, Debug)]
pub(super) struct WantedColumn {
    pub rel: usize,
    /// The column, or the number of an index's expression, or [`EXPRESSIONS`] and more for an expression that no index has.
    pub column: usize,
    pub descending: bool,
    pub nulls_first: bool,
}

/// An equality by which two sides are merged.
#[derive(Debug)]
pub(super) struct Key {
    /// Number of its condition.
    pub conjunct: usize,
    pub left: Expr,
    pub right: Expr,
    ty: Oid,
    descending: bool,
    nulls_first: bool,
}

impl Key {
    fn of(&self, is_left: bool) -> &Expr {
        if is_left { &self.left } else { &self.right }
    }
}

/// The equalities that tie two sides.
pub(super) fn keys(conjuncts: &[Conjunct], left: Mask, right: Mask) -> Vec<Key> {
    let found = hash_keys(conjuncts, left, right).into_iter();
    found
        .map(|(conjunct, left, right, ty)| Key { conjunct, left, right, ty, descending: false, nulls_first: false })
        .collect()
}

fn is_integer(ty: Oid) -> bool {
    matches!(ty, oid::INT2 | oid::INT4 | oid::INT8)
}

fn is_column(expr: &Expr, rel: usize, column: usize) -> bool {
    matches!(expr, Expr::Column(c) if c.level == 0 && (c.rel, c.column) == (rel, column))
}

/// Puts the keys into the wanted order. Answers whether rows that are merged so come in it.
pub(super) fn serve(keys: &mut [Key], wanted: &[WantedColumn], join: JoinType) -> bool {
    if wanted.is_empty() || matches!(join, JoinType::Right | JoinType::Full) {
        return false;
    }
    let is_it = |key: &Key, column: &WantedColumn| {
        is_column(&key.left, column.rel, column.column)
            || (join == JoinType::Inner && is_column(&key.right, column.rel, column.column))
    };
    let mut places = Vec::with_capacity(wanted.len());
    for column in wanted {
        match keys.iter().position(|key| is_it(key, column)) {
            Some(at) if !places.contains(&at) => places.push(at),
            _ => return false,
        }
    }
    for (place, column) in wanted.iter().enumerate() {
        if let Some(at) = keys.iter().skip(place).position(|key| is_it(key, column)) {
            keys.swap(place, place + at);
            (keys[place].descending, keys[place].nulls_first) = (column.descending, column.nulls_first);
        }
    }
    true
}

/// Puts the keys into the order of an index of a table on one side, if there is one.
fn follow_index(keys: &mut [Key], rel: usize, info: &TableInfo, is_left: bool) -> bool {
    for (number, index) in info.indexes.iter().enumerate() {
        if index.keys.len() < keys.len() || index.predicate.is_some() {
            continue;
        }
        let place =
            |at: usize| keys.iter().position(|key| is_column(key.of(is_left), rel, key_number(number, index, at)));
        let places: Vec<usize> = (0..keys.len()).map_while(place).collect();
        let mut each = places.clone();
        each.sort_unstable();
        each.dedup();
        if each.len() != keys.len() {
            continue;
        }
        for at in 0..keys.len() {
            let column = key_number(number, index, at);
            if let Some(found) = keys[at..].iter().position(|key| is_column(key.of(is_left), rel, column)) {
                keys.swap(at, at + found);
            }
        }
        return true;
    }
    false
}

/// The table that a side is, if it is one.
fn table_of<'l>(level: &Level<'l>, mask: Mask) -> Option<(usize, &'l Arc<TableInfo>)> {
    let rel = (mask.count_ones() == 1).then(|| mask.trailing_zeros() as usize)?;
    match &level.rels[rel].kind {
        RelKind::Table(info) => Some((rel, info)),
        _ => None,
    }
}

/// Decides on the order of the keys. Answers whether it is the wanted one.
pub(super) fn arrange(
    level: &Level<'_>,
    keys: &mut [Key],
    sides: [Mask; 2],
    wanted: &[WantedColumn],
    join: JoinType,
) -> bool {
    if serve(keys, wanted, join) {
        return true;
    }
    for (mask, is_left) in sides.into_iter().zip([true, false]) {
        if let Some((rel, info)) = table_of(level, mask)
            && follow_index(keys, rel, info, is_left)
        {
            break;
        }
    }
    false
}

/// The order of one side as an order of a table's columns.
pub(super) fn columns(keys: &[Key], rel: usize, is_left: bool) -> Option<Vec<(usize, bool, bool)>> {
    let column = |key: &Key| match key.of(is_left) {
        Expr::Column(c) if c.level == 0 && c.rel == rel => Some((c.column, key.descending, key.nulls_first)),
        _ => None,
    };
    keys.iter().map(column).collect()
}

/// Cost of reading a table in the order of the keys, if an index has it.
pub(super) fn cost_in_order(
    level: &Level<'_>,
    rel: usize,
    keys: &[Key],
    is_left: bool,
    conditions: &[Conjunct],
) -> Option<f64> {
    let RelKind::Table(info) = &level.rels[rel].kind else { return None };
    let wanted = columns(keys, rel, is_left)?;
    let path =
        access::choose(level, rel, info, conditions, 0, Some(Wanted { order: &wanted, limit: None, is_whole: true }));
    (path.ordered == wanted.len()).then_some(path.cost)
}

/// Sorts a side that does not come in order.
pub(super) fn sorted(level: &mut Level<'_>, side: Joined, keys: &[Key], is_left: bool) -> Result<Joined> {
    if side.ordered == keys.len() {
        return Ok(side);
    }
    let mut slots: Vec<Slot> = slots_of(level, side.mask);
    let (mut computed, mut by) = (Vec::new(), Vec::new());
    for key in keys {
        let expr = key.of(is_left);
        let slot = match level.compile(expr)? {
            Code::Slot(slot) => slot,
            code => {
                let slot = level.slot();
                computed.push((slot, code));
                slots.push(slot);
                slot
            }
        };
        let ty = if is_integer(key.ty) { expr.ty().oid } else { key.ty };
        by.push(SortSlot { slot, ty, descending: key.descending, nulls_first: key.nulls_first });
    }
    let mut node = side.node;
    if !computed.is_empty() {
        node = Node::Project(Arc::new(ProjectNode { input: node, targets: computed }));
    }
    level.tell_list("Sort Key", || {
        let shown = |key: &Key| {
            let order = super::query::direction(key.descending, key.nulls_first);
            explain::show(key.of(is_left), level.rels) + order
        };
        keys.iter().map(shown).collect()
    });
    let node = Node::Sort(Arc::new(SortNode { input: node, keys: by, slots, limit: None, is_late: false }));
    let cost = side.cost + sort_cost(side.rows, level.cx.methods);
    let node = level.note_from(node, side.mask, side.rows, cost, cost + side.rows * 0.1);
    Ok(Joined { node, cost, ordered: keys.len(), ..side })
}

/// Merges two sides that come in the order of the keys.
pub(super) fn merged(
    level: &mut Level<'_>,
    [left, right]: [Joined; 2],
    keys: &[Key],
    join: JoinType,
    on: &[Conjunct],
    rows: f64,
) -> Result<Joined> {
    let mask = match join {
        JoinType::Semi | JoinType::Anti => left.mask,
        _ => left.mask | right.mask,
    };
    let cost = left.cost + right.cost + left.rows + right.rows * 1.2 + rows * 0.3;
    let cost = cost + level.cx.methods.cost(PlanMethod::MergeJoin);
    level.tell("Merge Cond", || {
        let exprs: Vec<Expr> =
            keys.iter().map(|key| with_sides(&on[key.conjunct].expr, &key.left, &key.right)).collect();
        explain::conditions(&exprs.iter().collect::<Vec<_>>(), level.rels)
    });
    let is_key = |number: usize| keys.iter().any(|key| key.conjunct == number);
    let is_left_over = |(number, conjunct): &(usize, &Conjunct)| !conjunct.used && !is_key(*number);
    let left_over: Vec<&Expr> = match join {
        // What else there is to an inner join is tested above it.
        JoinType::Inner => Vec::new(),
        _ => on.iter().enumerate().filter(is_left_over).map(|(_, conjunct)| &conjunct.expr).collect(),
    };
    if !left_over.is_empty() {
        level.tell("Join Filter", || explain::conditions(&left_over, level.rels));
    }
    let node = MergeJoinNode {
        left_slots: slots_of(level, left.mask),
        right_slots: slots_of(level, right.mask),
        left: left.node,
        right: right.node,
        join,
        left_keys: level.compile_all(&keys.iter().map(|key| key_of(&key.left, key.ty)).collect::<Vec<_>>())?,
        right_keys: level.compile_all(&keys.iter().map(|key| key_of(&key.right, key.ty)).collect::<Vec<_>>())?,
        keys: keys.iter().map(|key| MergeKey { ty: key.ty, descending: key.descending }).collect(),
        conditions: level.compile_all(left_over)?,
    };
    let node = level.note(Node::MergeJoin(Arc::new(node)), mask, rows, cost);
    Ok(Joined { node, mask, rows, cost, ordered: 0 })
}

/// An equality with the side that is the left one of the join on the left.
pub(super) fn with_sides(equality: &Expr, left: &Expr, right: &Expr) -> Expr {
    match equality {
        Expr::Call { function, ty, location, .. } if function.args.first() == function.args.last() => {
            Expr::Call { function, args: vec![left.clone(), right.clone()], ty: *ty, location: *location }
        }
        other => other.clone(),
    }
}
