//! Window functions that number rows. The input comes sorted by partition and order.

use std::sync::Arc;

use base::Result;
use sql_ir::WindowKind;
use sql_plan::WindowNode;
use types::Datum;

use super::sort::{has_values, values_of};
use super::{Cx, Next, Operator, operator};

/// Numbers the rows of each partition.
pub(super) struct Window {
    node: Arc<WindowNode>,
    input: Box<dyn Operator>,
    /// Keys of the row before: of its partition, of its order. Unknown before the first row.
    last: Option<(Vec<Datum>, Vec<Datum>)>,
    numbers: Numbers,
}

/// What the row before has as its numbers.
#[derive(Default)]
struct Numbers {
    row: i64,
    rank: i64,
    dense: i64,
}

impl Window {
    pub fn new(node: &Arc<WindowNode>) -> Window {
        Window { node: Arc::clone(node), input: operator(&node.input), last: None, numbers: Numbers::default() }
    }

    fn number(&mut self, registers: &[Datum]) -> i64 {
        let node = &self.node;
        let (same_partition, same_order) = match &self.last {
            Some((partition, order)) => (
                has_values(&node.partition, partition, registers),
                // Without ORDER BY all rows of a partition are equal.
                has_values(&node.order, order, registers),
            ),
            None => (false, false),
        };
        if !same_partition {
            self.numbers = Numbers::default();
        }
        self.numbers.row += 1;
        if !same_partition || !same_order {
            self.numbers.rank = self.numbers.row;
            self.numbers.dense += 1;
            self.last = Some((values_of(&node.partition, registers), values_of(&node.order, registers)));
        }
        match node.ranking {
            WindowKind::Rank => self.numbers.rank,
            WindowKind::DenseRank => self.numbers.dense,
            _ => self.numbers.row,
        }
    }
}

impl Operator for Window {
    fn next(&mut self, cx: &mut Cx<'_, '_>, registers: &mut [Datum]) -> Result<Next> {
        let next = self.input.next(cx, registers)?;
        if matches!(next, Next::Row) {
            registers[self.node.slot as usize] = Datum::Int8(self.number(registers));
        }
        Ok(next)
    }

    fn rescan(&mut self, forget: bool) {
        self.last = None;
        self.numbers = Numbers::default();
        self.input.rescan(forget);
    }
}
