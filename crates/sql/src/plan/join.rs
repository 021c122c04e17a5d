//! FROM: in which order tables are joined, and how.
//!
//! Inner joins are taken apart into tables and conditions and put together again greedily: first what is expected to give the
//! fewest rows, then always what joins most cheaply. Outer joins stay where they are written.

use std::sync::Arc;

use base::{Error, Oid, Result};
use types::oid;

use super::access::{self, Conjunct, Mask, WantedOrder};
use super::level::Level;
use super::node::{
    CteScanNode, FilterNode, FunctionNode, HashJoinNode, JoinType, MaterializeNode, NestedLoopNode, Node, SubqueryNode,
    SystemNode, WorkTableNode,
};
use super::walk;
use crate::expr::{How, Slot, comparison_of};
use crate::functions;
use crate::ir::{CompareOp, Expr, From, JoinKind, RelKind};

/// A joined part of FROM.
#[derive(Debug)]
pub(super) struct Joined {
    pub node: Node,
    pub mask: Mask,
    pub rows: f64,
    /// The wanted order comes by itself.
    pub ordered: bool,
}

/// Largest number of rels in one FROM.
const MAX_RELS: usize = 128;

/// A part of FROM to be put together with others.
enum Item<'q> {
    Rel(usize),
    Outer(&'q From),
}

impl Item<'_> {
    fn mask(&self) -> Mask {
        match self {
            Item::Rel(rel) => 1 << rel,
            Item::Outer(from) => mask_of(from),
        }
    }
}

fn mask_of(from: &From) -> Mask {
    match from {
        From::Rel(rel) => 1 << rel,
        From::Join { left, right, .. } => mask_of(left) | mask_of(right),
    }
}

/// Joins a FROM list under a WHERE. All conditions have been tested in the result.
pub(super) fn from_where(
    level: &mut Level<'_>,
    from: &[From],
    filter: Option<&Expr>,
    wanted: Option<(&WantedOrder, bool)>,
) -> Result<Joined> {
    if level.rels.len() > MAX_RELS {
        return Err(Error::unsupported(format!("more than {MAX_RELS} relations in one FROM clause")));
    }
    let mut conjuncts = Vec::new();
    if let Some(filter) = filter {
        let mut list = Vec::new();
        walk::conjuncts(filter.clone(), &mut list);
        conjuncts.extend(list.into_iter().map(Conjunct::new));
    }
    let items: Vec<&From> = from.iter().collect();
    let mut joined = list(level, &items, &mut conjuncts, wanted)?;
    add_filter(level, &mut joined, &mut conjuncts)?;
    Ok(joined)
}

/// Tests the conditions that are left and can be tested by now.
fn add_filter(level: &mut Level<'_>, joined: &mut Joined, conjuncts: &mut [Conjunct]) -> Result<()> {
    let mut conditions = Vec::new();
    for conjunct in conjuncts.iter_mut().filter(|c| !c.used && c.mask & !joined.mask == 0) {
        conjunct.used = true;
        conditions.push(level.compile(&conjunct.expr)?);
        joined.rows = (joined.rows * 0.3).max(1.0);
    }
    if !conditions.is_empty() {
        let input = std::mem::replace(&mut joined.node, Node::OneRow);
        joined.node = Node::Filter(Arc::new(FilterNode { input, conditions }));
    }
    Ok(())
}

/// Joins a list of FROM items (inner).
fn list(
    level: &mut Level<'_>,
    from: &[&From],
    conjuncts: &mut Vec<Conjunct>,
    wanted: Option<(&WantedOrder, bool)>,
) -> Result<Joined> {
    let mut items = Vec::new();
    for from in from {
        flatten(from, &mut items, conjuncts);
    }
    if items.is_empty() {
        return Ok(Joined { node: Node::OneRow, mask: 0, rows: 1.0, ordered: false });
    }
    let wanted = if items.len() == 1 { wanted } else { None };
    // What items need from outside of this list is there when they are read.
    let all = items.iter().fold(0, |mask, item| mask | item.mask());
    let first = cheapest_first(level, &items, conjuncts, all);
    let item = items.swap_remove(first);
    let mut joined = start(level, &item, conjuncts, wanted)?;
    add_filter(level, &mut joined, conjuncts)?;
    while !items.is_empty() {
        let next = cheapest_next(level, &items, conjuncts, &joined, all);
        let item = items.remove(next);
        joined = add(level, joined, &item, conjuncts)?;
        add_filter(level, &mut joined, conjuncts)?;
    }
    Ok(joined)
}

fn flatten<'q>(from: &'q From, items: &mut Vec<Item<'q>>, conjuncts: &mut Vec<Conjunct>) {
    match from {
        From::Rel(rel) => items.push(Item::Rel(*rel)),
        From::Join { kind: JoinKind::Inner, left, right, on } => {
            flatten(left, items, conjuncts);
            flatten(right, items, conjuncts);
            if let Some(on) = on {
                let mut list = Vec::new();
                walk::conjuncts(on.clone(), &mut list);
                conjuncts.extend(list.into_iter().map(Conjunct::new));
            }
        }
        outer => items.push(Item::Outer(outer)),
    }
}

/// Rels that must be there before this one can be read (LATERAL, arguments of functions).
fn depends_on(level: &Level<'_>, rel: usize) -> Mask {
    let mut mask = 0;
    match &level.rels[rel].kind {
        RelKind::Function { calls, .. } => {
            for arg in calls.iter().flat_map(|call| &call.args) {
                walk::columns_of(arg, &mut |c| mask |= 1 << c.rel);
            }
        }
        RelKind::Subquery { query, lateral: true } => walk::walk_query(query, 1, &mut |e, depth| {
            if let Expr::Column(c) = e
                && c.level == depth
            {
                mask |= 1 << c.rel;
            }
        }),
        _ => {}
    }
    mask & !(1 << rel)
}

fn item_depends_on(level: &Level<'_>, item: &Item<'_>) -> Mask {
    let own = item.mask();
    let mut mask = 0;
    for rel in 0..level.rels.len() {
        if own & (1 << rel) != 0 {
            mask |= depends_on(level, rel);
        }
    }
    mask & !own
}

/// Rows expected of an item by itself, and what reading it costs.
fn estimate(level: &Level<'_>, item: &Item<'_>, conjuncts: &[Conjunct], available: Mask) -> (f64, f64) {
    let Item::Rel(rel) = item else { return (1000.0, 10_000.0) };
    let conditions = conjuncts.iter().filter(|c| !c.used && c.mask & !available == 1 << rel).count() as i32;
    let filtered = |rows: f64| (rows * 0.3f64.powi(conditions.min(4))).max(1.0);
    match &level.rels[*rel].kind {
        RelKind::Table(info) => {
            let path = access::choose(level, *rel, info, conjuncts, available, None);
            (path.rows, path.cost)
        }
        RelKind::System(_) => (filtered(300.0), 300.0),
        RelKind::Subquery { .. } => (filtered(1000.0), 1000.0),
        RelKind::Cte { .. } | RelKind::WorkTable(_) => (filtered(1000.0), 1000.0),
        RelKind::Function { .. } => (filtered(100.0), 100.0),
        RelKind::Values | RelKind::Window(_) | RelKind::Join => (filtered(10.0), 10.0),
    }
}

fn cheapest_first(level: &Level<'_>, items: &[Item<'_>], conjuncts: &[Conjunct], all: Mask) -> usize {
    let mut best = (f64::INFINITY, 0);
    for (i, item) in items.iter().enumerate() {
        if item_depends_on(level, item) & all != 0 {
            continue;
        }
        let (rows, cost) = estimate(level, item, conjuncts, 0);
        let total = rows * 2.0 + cost;
        if total < best.0 {
            best = (total, i);
        }
    }
    best.1
}

fn cheapest_next(level: &Level<'_>, items: &[Item<'_>], conjuncts: &[Conjunct], joined: &Joined, all: Mask) -> usize {
    let mut best = (f64::INFINITY, 0);
    for (i, item) in items.iter().enumerate() {
        if item_depends_on(level, item) & all & !joined.mask != 0 {
            continue;
        }
        let (alone, alone_cost) = estimate(level, item, conjuncts, 0);
        let (each, each_cost) = estimate(level, item, conjuncts, joined.mask);
        let connected = conjuncts.iter().any(|c| !c.used && c.mask & item.mask() != 0 && c.mask & joined.mask != 0);
        let loops = joined.rows * (each_cost + 1.0);
        let hash = if connected { alone_cost + joined.rows + alone } else { f64::INFINITY };
        let cost = loops.min(hash) + joined.rows * each * if connected { 0.5 } else { 2.0 };
        if cost < best.0 {
            best = (cost, i);
        }
    }
    best.1
}

/// Reads one item.
fn start(
    level: &mut Level<'_>,
    item: &Item<'_>,
    conjuncts: &mut [Conjunct],
    wanted: Option<(&WantedOrder, bool)>,
) -> Result<Joined> {
    match item {
        Item::Rel(rel) => read(level, *rel, conjuncts, 0, wanted),
        Item::Outer(from) => outer(level, from, conjuncts),
    }
}

/// Reads a rel; rows of `available` are there.
fn read(
    level: &mut Level<'_>,
    rel: usize,
    conjuncts: &mut [Conjunct],
    available: Mask,
    wanted: Option<(&WantedOrder, bool)>,
) -> Result<Joined> {
    let mask = 1 << rel;
    let rels = level.rels;
    let alias = rels[rel].alias.clone();
    let node = match &rels[rel].kind {
        RelKind::Table(info) => {
            let (node, rows, ordered) = access::scan(level, rel, info, conjuncts, available, wanted)?;
            return Ok(Joined { node, mask, rows, ordered });
        }
        RelKind::System(relation) => {
            let columns = level.columns(rel).to_vec();
            Node::System(Arc::new(SystemNode { relation, alias, columns }))
        }
        RelKind::Function { calls, ordinality } => {
            let mut planned = Vec::with_capacity(calls.len());
            for call in calls {
                planned.push((call.function, level.compile_all(&call.args)?));
            }
            let width = rels[rel].columns.len();
            let last = ordinality.then(|| width - 1);
            let all = level.columns(rel);
            let columns = all.iter().copied().filter(|(c, _)| Some(*c) != last).collect();
            let ordinality = all.iter().find(|(c, _)| Some(*c) == last).map(|(_, slot)| *slot);
            Node::Function(Arc::new(FunctionNode { calls: planned, alias, columns, ordinality }))
        }
        RelKind::Subquery { query, .. } => {
            let subplan = level.subplan(query)?;
            let columns = level.columns(rel).to_vec();
            Node::Subquery(Arc::new(SubqueryNode { subplan, alias, columns }))
        }
        RelKind::Cte { id, .. } => {
            let cell = level.cx.cells.cell(*id)?;
            Node::Cte(Arc::new(CteScanNode { cell, alias, columns: level.columns(rel).to_vec() }))
        }
        RelKind::WorkTable(id) => {
            let table = level.cx.cells.work_table(*id)?;
            Node::WorkTable(Arc::new(WorkTableNode { table, alias, columns: level.columns(rel).to_vec() }))
        }
        RelKind::Values | RelKind::Window(_) | RelKind::Join => {
            return Err(Error::internal("a relation that cannot be read stands in FROM"));
        }
    };
    let rows = estimate(level, &Item::Rel(rel), conjuncts, available).0;
    Ok(Joined { node, mask, rows, ordered: false })
}

fn slots_of(level: &Level<'_>, mask: Mask) -> Vec<Slot> {
    (0..level.rels.len()).filter(|rel| mask & (1 << rel) != 0).flat_map(|rel| level.rel_slots(rel)).collect()
}

/// Keys by which two sides can be joined: (left, right, type), and the conjuncts they come from.
fn hash_keys(conjuncts: &[Conjunct], left: Mask, right: Mask) -> Vec<(usize, Expr, Expr, Oid)> {
    let side = |expr: &Expr| Conjunct::new(expr.clone()).mask;
    let mut keys = Vec::new();
    for (i, conjunct) in conjuncts.iter().enumerate().filter(|(_, c)| !c.used) {
        let Expr::Call { function, args, .. } = &conjunct.expr else { continue };
        let [a, b] = args.as_slice() else { continue };
        let test = comparison_of(function);
        let (ta, tb) = (a.ty().oid, b.ty().oid);
        let ty = match test.how {
            How::Order(ty) => ty,
            How::Int if ta == tb => ta,
            How::Int => oid::INT8,
            How::Function(_) => continue,
        };
        if test.op != CompareOp::Eq || walk::is_volatile(&conjunct.expr) {
            continue;
        }
        let (ma, mb) = (side(a), side(b));
        if ma == 0 || mb == 0 {
            continue;
        }
        if ma & !left == 0 && mb & !right == 0 {
            keys.push((i, key_of(a, ty), key_of(b, ty), ty));
        } else if ma & !right == 0 && mb & !left == 0 {
            keys.push((i, key_of(b, ty), key_of(a, ty), ty));
        }
    }
    keys
}

/// One side of an equality as a key of type `ty`: integers of two widths meet in the widest.
fn key_of(expr: &Expr, ty: Oid) -> Expr {
    let widen = || functions::function("int8", &[expr.ty().oid]).filter(|_| ty == oid::INT8 && expr.ty().oid != ty);
    match widen() {
        Some(function) => Expr::Call { function, args: vec![expr.clone()], ty: crate::ir::Ty::of(ty), location: -1 },
        None => expr.clone(),
    }
}

/// Joins one more item to what is there.
fn add(level: &mut Level<'_>, joined: Joined, item: &Item<'_>, conjuncts: &mut [Conjunct]) -> Result<Joined> {
    let lateral = item_depends_on(level, item) & joined.mask != 0;
    let mask = joined.mask | item.mask();
    let keys = hash_keys(conjuncts, joined.mask, item.mask());
    let (alone, alone_cost) = estimate(level, item, conjuncts, 0);
    let (each, each_cost) = estimate(level, item, conjuncts, joined.mask);
    let is_table = matches!(item, Item::Rel(rel) if matches!(level.rels[*rel].kind, RelKind::Table(_)));
    let looped = joined.rows * (each_cost + 1.0);
    let hashed = alone_cost + joined.rows + alone;
    let uses_index = is_table && each_cost < alone_cost;
    let rows = (joined.rows * each).max(1.0);
    if lateral || (uses_index && (looped <= hashed || keys.is_empty())) {
        let (inner, anew) = match item {
            Item::Rel(rel) => (read(level, *rel, conjuncts, joined.mask, None)?, false),
            Item::Outer(from) => (outer(level, from, conjuncts)?, true),
        };
        let node = NestedLoopNode {
            outer: joined.node,
            inner: inner.node,
            join: JoinType::Inner,
            conditions: Vec::new(),
            inner_slots: Vec::new(),
            anew,
        };
        return Ok(Joined { node: Node::NestedLoop(Arc::new(node)), mask, rows, ordered: false });
    }
    let mut inner = start(level, item, conjuncts, None)?;
    add_filter(level, &mut inner, conjuncts)?;
    if keys.is_empty() {
        let slots = slots_of(level, inner.mask);
        let node = NestedLoopNode {
            outer: joined.node,
            inner: Node::Materialize(Arc::new(MaterializeNode { input: inner.node, slots })),
            join: JoinType::Inner,
            conditions: Vec::new(),
            inner_slots: Vec::new(),
            anew: false,
        };
        return Ok(Joined { node: Node::NestedLoop(Arc::new(node)), mask, rows, ordered: false });
    }
    for (i, ..) in &keys {
        conjuncts[*i].used = true;
    }
    // The smaller side is kept.
    let keep_inner = inner.rows <= joined.rows * 2.0 || joined.rows > 100_000.0;
    let rows = (joined.rows * inner.rows / joined.rows.max(inner.rows)).max(1.0);
    let node = hash_join(level, joined, inner, &keys, JoinType::Inner, Vec::new(), keep_inner)?;
    Ok(Joined { node, mask, rows, ordered: false })
}

fn hash_join(
    level: &mut Level<'_>,
    left: Joined,
    right: Joined,
    keys: &[(usize, Expr, Expr, Oid)],
    join: JoinType,
    conditions: Vec<crate::expr::Code>,
    keep_right: bool,
) -> Result<Node> {
    let left_keys = level.compile_all(keys.iter().map(|k| &k.1))?;
    let right_keys = level.compile_all(keys.iter().map(|k| &k.2))?;
    let key_types = keys.iter().map(|k| k.3).collect();
    let (probe, build, probe_keys, build_keys) =
        if keep_right { (left, right, left_keys, right_keys) } else { (right, left, right_keys, left_keys) };
    Ok(Node::HashJoin(Arc::new(HashJoinNode {
        build_slots: slots_of(level, build.mask),
        probe_slots: slots_of(level, probe.mask),
        probe: probe.node,
        build: build.node,
        join,
        probe_keys,
        build_keys,
        key_types,
        conditions,
    })))
}

/// An outer join, as it is written. Conditions of `above` that are about its preserved side only are tested there.
fn outer(level: &mut Level<'_>, from: &From, above: &mut [Conjunct]) -> Result<Joined> {
    let From::Join { kind, left, right, on } = from else {
        return Err(Error::internal("a table is no outer join"));
    };
    let (kept, filled, full) = match kind {
        JoinKind::Right => (right, left, false),
        JoinKind::Full => (left, right, true),
        _ => (left, right, false),
    };
    let (kept_mask, filled_mask) = (mask_of(kept), mask_of(filled));
    let mask = kept_mask | filled_mask;
    let mut on_conjuncts = Vec::new();
    if let Some(on) = on {
        let mut list = Vec::new();
        walk::conjuncts(on.clone(), &mut list);
        on_conjuncts.extend(list.into_iter().map(Conjunct::new));
    }
    let mut kept_conjuncts: Vec<Conjunct> = Vec::new();
    if !full {
        for conjunct in above.iter_mut().filter(|c| !c.used && c.mask != 0 && c.mask & !kept_mask == 0) {
            conjunct.used = true;
            kept_conjuncts.push(Conjunct { used: false, ..conjunct.clone() });
        }
    }
    let mut preserved = list(level, &[&**kept], &mut kept_conjuncts, None)?;
    add_filter(level, &mut preserved, &mut kept_conjuncts)?;
    let join = if full { JoinType::Full } else { JoinType::Left };
    // An index of the other side, looked up per row.
    if let (false, From::Rel(rel)) = (full, &**filled) {
        let lateral = depends_on(level, *rel) != 0;
        let item = Item::Rel(*rel);
        let (_, each_cost) = estimate(level, &item, &on_conjuncts, kept_mask);
        let (alone, alone_cost) = estimate(level, &item, &on_conjuncts, 0);
        let is_table = matches!(level.rels[*rel].kind, RelKind::Table(_));
        let has_keys = !hash_keys(&on_conjuncts, kept_mask, filled_mask).is_empty();
        let looped = preserved.rows * (each_cost + 1.0);
        if lateral
            || (is_table && each_cost < alone_cost && (!has_keys || looped <= alone_cost + preserved.rows + alone))
        {
            let inner = read(level, *rel, &mut on_conjuncts, kept_mask, None)?;
            let left_over: Vec<&Expr> = on_conjuncts.iter().filter(|c| !c.used).map(|c| &c.expr).collect();
            let node = NestedLoopNode {
                conditions: level.compile_all(left_over)?,
                inner_slots: level.rel_slots(*rel),
                outer: preserved.node,
                inner: inner.node,
                join,
                anew: false,
            };
            return Ok(Joined { node: Node::NestedLoop(Arc::new(node)), mask, rows: preserved.rows, ordered: false });
        }
    }
    // Conditions about the other side alone are tested while it is read; it must not be FULL.
    let mut own: Vec<Conjunct> = Vec::new();
    if !full {
        for conjunct in on_conjuncts.iter_mut().filter(|c| c.mask != 0 && c.mask & !filled_mask == 0) {
            conjunct.used = true;
            own.push(Conjunct { used: false, ..conjunct.clone() });
        }
    }
    let mut other = list(level, &[&**filled], &mut own, None)?;
    add_filter(level, &mut other, &mut own)?;
    // A side that looks at the rows of the other one is read anew for each of them.
    let anew = item_depends_on(level, &Item::Outer(filled)) & kept_mask != 0;
    let keys = if anew { Vec::new() } else { hash_keys(&on_conjuncts, kept_mask, filled_mask) };
    for (i, ..) in &keys {
        on_conjuncts[*i].used = true;
    }
    let left_over: Vec<Expr> = on_conjuncts.iter().filter(|c| !c.used).map(|c| c.expr.clone()).collect();
    let conditions = level.compile_all(&left_over)?;
    let rows = preserved.rows.max(other.rows);
    if keys.is_empty() {
        if full {
            return full_without_keys(level, preserved, other, conditions, mask, rows);
        }
        let slots = slots_of(level, filled_mask);
        let inner = match anew {
            true => other.node,
            false => Node::Materialize(Arc::new(MaterializeNode { input: other.node, slots: slots.clone() })),
        };
        let node = NestedLoopNode { outer: preserved.node, inner, join, conditions, inner_slots: slots, anew };
        return Ok(Joined { node: Node::NestedLoop(Arc::new(node)), mask, rows, ordered: false });
    }
    let node = hash_join(level, preserved, other, &keys, join, conditions, true)?;
    Ok(Joined { node, mask, rows, ordered: false })
}

/// FULL JOIN ON without any equality. PostgreSQL refuses it unless the condition is constant; then one key serves all rows.
fn full_without_keys(
    level: &mut Level<'_>,
    left: Joined,
    right: Joined,
    conditions: Vec<crate::expr::Code>,
    mask: Mask,
    rows: f64,
) -> Result<Joined> {
    if conditions.iter().any(|c| !c.is_fixed(level.cx.params as Slot)) {
        return Err(Error::unsupported(
            "FULL JOIN is only supported with merge-joinable or hash-joinable join conditions",
        ));
    }
    let one = || Expr::Const(types::Datum::Int4(1), crate::ir::Ty::of(oid::INT4));
    let keys = [(0, one(), one(), oid::INT4)];
    let node = hash_join(level, left, right, &keys, JoinType::Full, conditions, true)?;
    Ok(Joined { node, mask, rows, ordered: false })
}
