//! Window functions: rows are sorted by partition and order, then numbered.

use std::collections::BTreeSet;
use std::sync::Arc;

use base::Result;

use super::level::Level;
use super::node::{Node, ProjectNode, SortNode, SortSlot, WindowNode};
use crate::expr::{Code, Slot};
use crate::ir::{Expr, RelKind, WindowCall};

/// The window functions of a level, one after the other over the rows of `input`.
pub(super) fn windows(level: &mut Level<'_>, input: Node) -> Result<Node> {
    let rels = level.rels;
    let mut node = input;
    for (rel, entry) in rels.iter().enumerate() {
        if let (RelKind::Window(call), Some(&(_, slot))) = (&entry.kind, level.columns(rel).first()) {
            node = window(level, call, slot, node)?;
        }
    }
    Ok(node)
}

fn window(level: &mut Level<'_>, call: &WindowCall, slot: Slot, mut node: Node) -> Result<Node> {
    let mut computed = Vec::new();
    let (mut partition, mut order) = (Vec::new(), Vec::new());
    for expr in &call.partition {
        partition.extend(key(level, expr, false, false, &mut computed)?);
    }
    for (expr, descending, nulls_first) in &call.order {
        order.extend(key(level, expr, *descending, *nulls_first, &mut computed)?);
    }
    let mut slots: BTreeSet<Slot> = (0..level.rels.len()).flat_map(|rel| level.rel_slots(rel)).collect();
    slots.extend(computed.iter().map(|(slot, _)| *slot));
    if !computed.is_empty() {
        node = Node::Project(Arc::new(ProjectNode { input: node, targets: computed }));
    }
    if !partition.is_empty() || !order.is_empty() {
        let keys = partition.iter().chain(&order).copied().collect();
        node = Node::Sort(Arc::new(SortNode { input: node, keys, slots: slots.into_iter().collect(), limit: None }));
    }
    Ok(Node::Window(Arc::new(WindowNode { input: node, ranking: call.ranking, partition, order, slot })))
}

/// A key's slot; none if its value is the same in all rows.
fn key(
    level: &mut Level<'_>,
    expr: &Expr,
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
