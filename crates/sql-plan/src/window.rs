//! Window functions: rows are sorted by partition and order, then numbered, or evaluated with the rows around them.
//!
//! Calls of one partition and order share a sort.

use std::collections::BTreeSet;
use std::sync::Arc;

use base::Result;
use sql_bind::equal::same;
use sql_ir::expr::{Code, Slot};
use sql_ir::{self as ir, RelKind, WindowCall, WindowCallee};

use super::level::Level;
use super::node::{
    FrameBound, FrameCall, Node, PlannedFrame, ProjectNode, SortNode, SortSlot, WindowFrameNode, WindowNode,
};

/// The window functions of a level, one after the other over the rows of `input`.
pub(super) fn windows(level: &mut Level<'_>, input: Node, in_order: bool) -> Result<Node> {
    let rels = level.rels;
    let mut groups: Vec<Vec<(&WindowCall, Slot)>> = Vec::new();
    for (rel, entry) in rels.iter().enumerate() {
        let (RelKind::Window(call), Some(&(_, slot))) = (&entry.kind, level.columns(rel).first()) else { continue };
        match groups.iter_mut().find(|group| same_window(group[0].0, call)) {
            Some(group) => group.push((call, slot)),
            None => groups.push(vec![(call, slot)]),
        }
    }
    let mut node = input;
    for group in groups {
        node = window(level, &group, node, in_order)?;
    }
    Ok(node)
}

/// The order that the rows need for the window functions of a level, if all of them need the same.
pub(super) fn only_order(rels: &[ir::Rel]) -> Option<Vec<(&ir::Expr, bool, bool)>> {
    let mut calls = rels.iter().filter_map(|rel| match &rel.kind {
        RelKind::Window(call) => Some(call),
        _ => None,
    });
    let first = calls.next()?;
    let partition = first.partition.iter().map(|expr| (expr, false, false));
    let order = first.order.iter().map(|(expr, descending, nulls_first)| (expr, *descending, *nulls_first));
    calls.all(|call| same_window(first, call)).then(|| partition.chain(order).collect())
}

fn same_window(a: &WindowCall, b: &WindowCall) -> bool {
    (a.partition.len(), a.order.len()) == (b.partition.len(), b.order.len())
        && a.partition.iter().zip(&b.partition).all(|(a, b)| same(a, b))
        && a.order.iter().zip(&b.order).all(|(a, b)| same(&a.0, &b.0) && (a.1, a.2) == (b.1, b.2))
}

/// `in_order`: the rows come in the order of the window.
fn window(level: &mut Level<'_>, calls: &[(&WindowCall, Slot)], mut node: Node, in_order: bool) -> Result<Node> {
    let first = calls[0].0;
    let mut computed = Vec::new();
    let (mut partition, mut order) = (Vec::new(), Vec::new());
    for expr in &first.partition {
        partition.extend(key(level, expr, false, false, &mut computed)?);
    }
    for (expr, descending, nulls_first) in &first.order {
        order.extend(key(level, expr, *descending, *nulls_first, &mut computed)?);
    }
    let (mut numbered, mut framed) = (Vec::new(), Vec::new());
    for &(call, slot) in calls {
        match &call.callee {
            WindowCallee::Function(kind) if kind.numbers_only() => numbered.push((*kind, slot)),
            _ => framed.push(frame_call(level, call, slot)?),
        }
    }
    let mut slots: BTreeSet<Slot> = (0..level.rels.len()).flat_map(|rel| level.rel_slots(rel)).collect();
    slots.extend(computed.iter().map(|(slot, _)| *slot));
    slots.extend(level.aggregates.iter().copied());
    slots.extend(level.grouped.iter().map(|(_, slot)| *slot));
    let slots: Vec<Slot> = slots.into_iter().collect();
    if !computed.is_empty() {
        node = Node::Project(Arc::new(ProjectNode { input: node, targets: computed }));
    }
    if !in_order && (!partition.is_empty() || !order.is_empty()) {
        let keys = partition.iter().chain(&order).copied().collect();
        node = Node::Sort(Arc::new(SortNode { input: node, keys, slots: slots.clone(), limit: None, is_late: false }));
    }
    for (ranking, slot) in numbered {
        let (partition, order) = (partition.clone(), order.clone());
        node = Node::Window(Arc::new(WindowNode { input: node, ranking, partition, order, slot }));
    }
    if !framed.is_empty() {
        let own: Vec<Slot> = framed.iter().map(|call| call.slot).collect();
        let slots = slots.into_iter().filter(|slot| !own.contains(slot)).collect();
        node = Node::WindowFrames(Arc::new(WindowFrameNode { input: node, slots, partition, order, calls: framed }));
    }
    Ok(node)
}

fn frame_call(level: &mut Level<'_>, call: &WindowCall, slot: Slot) -> Result<FrameCall> {
    let mut bound = |bound: &ir::FrameBound| {
        Ok(match bound {
            ir::FrameBound::UnboundedPreceding => FrameBound::UnboundedPreceding,
            ir::FrameBound::Preceding(expr) => FrameBound::Preceding(level.compile(expr)?),
            ir::FrameBound::CurrentRow => FrameBound::CurrentRow,
            ir::FrameBound::Following(expr) => FrameBound::Following(level.compile(expr)?),
            ir::FrameBound::UnboundedFollowing => FrameBound::UnboundedFollowing,
        })
    };
    let (start, end) = (bound(&call.frame.start)?, bound(&call.frame.end)?);
    Ok(FrameCall {
        callee: call.callee,
        args: level.compile_all(&call.args)?,
        arg_types: call.args.iter().map(|a| a.ty().oid).collect(),
        filter: call.filter.as_ref().map(|f| level.compile(f)).transpose()?,
        frame: PlannedFrame { mode: call.frame.mode, start, end, exclude: call.frame.exclude },
        slot,
    })
}

/// A key's slot; none if its value is the same in all rows.
fn key(
    level: &mut Level<'_>,
    expr: &ir::Expr,
    descending: bool,
    nulls_first: bool,
    computed: &mut Vec<(Slot, Code)>,
) -> Result<Option<SortSlot>> {
    let slot = match level.compile(expr)? {
        Code::Slot(slot) if slot < level.cx.params as Slot => return Ok(None),
        Code::Slot(slot) => slot,
        code => {
            let slot = level.slot();
            computed.push((slot, code));
            slot
        }
    };
    Ok(Some(SortSlot { slot, ty: expr.ty().oid, descending, nulls_first }))
}
