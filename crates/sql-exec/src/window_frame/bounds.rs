//! Where the frame of a row begins and ends.

use base::{Error, Result, SqlState, work};
use sql_functions::EvalContext;
use sql_ir::FrameMode;
use sql_plan::{FrameBound, PlannedFrame, SortSlot};
use types::Datum;

use super::super::Cx;
use super::Partition;
use super::range::Offset;

/// The offsets of a frame, which are the same for all rows.
pub(super) struct Offsets {
    start: Distance,
    end: Distance,
}

/// How far a bound is from the current row.
enum Distance {
    None,
    /// Rows or groups.
    Count(usize),
    /// A value to be added to that of ORDER BY.
    Value(Offset),
}

impl Offsets {
    /// Evaluates the offsets of a frame.
    pub fn new(frame: &PlannedFrame, cx: &mut Cx<'_, '_>, row: &[Datum]) -> Result<Offsets> {
        let mut distance = |bound: &FrameBound, name: &str| {
            let (FrameBound::Preceding(code) | FrameBound::Following(code)) = bound else { return Ok(Distance::None) };
            let value = code.eval(cx, row)?;
            if value.is_null() {
                let message = format!("frame {name} offset must not be null");
                return Err(Error::new(SqlState::NULL_VALUE_NOT_ALLOWED, message));
            }
            if frame.mode == FrameMode::Range {
                return Offset::new(value).map(Distance::Value);
            }
            match value {
                Datum::Int8(n) => usize::try_from(n).map(Distance::Count).map_err(|_| {
                    let message = format!("frame {name} offset must not be negative");
                    Error::new(SqlState::INVALID_PRECEDING_OR_FOLLOWING_SIZE, message)
                }),
                _ => Err(Error::internal("a frame offset that is no number")),
            }
        };
        Ok(Offsets { start: distance(&frame.start, "starting")?, end: distance(&frame.end, "ending")? })
    }
}

/// Where the frame of the row before was.
#[derive(Default)]
pub(super) struct Bounds {
    start: usize,
    end: usize,
}

impl Bounds {
    /// First row and end of the frame of a row. Rows are asked for in their order.
    pub fn of(
        &mut self,
        frame: &PlannedFrame,
        offsets: &Offsets,
        order: Option<&SortSlot>,
        partition: &Partition,
        row: usize,
        cx: &dyn EvalContext,
    ) -> Result<(usize, usize)> {
        let count = partition.len();
        let place = FrameRow { frame, partition, row, order, cx };
        self.start = match (&frame.start, &offsets.start) {
            (FrameBound::UnboundedPreceding, _) => 0,
            (FrameBound::UnboundedFollowing, _) => count,
            (FrameBound::CurrentRow, _) if frame.mode == FrameMode::Rows => row,
            (FrameBound::CurrentRow, _) => partition.group(row).0,
            (bound, Distance::Count(n)) => place.counted(bound, *n).0,
            (bound, Distance::Value(offset)) => place.start(self.start, bound, offset)?,
            (_, Distance::None) => 0,
        };
        self.end = match (&frame.end, &offsets.end) {
            (FrameBound::UnboundedPreceding, _) => 0,
            (FrameBound::UnboundedFollowing, _) => count,
            (FrameBound::CurrentRow, _) if frame.mode == FrameMode::Rows => row + 1,
            (FrameBound::CurrentRow, _) => partition.group(row).1,
            (bound, Distance::Count(n)) => place.counted(bound, *n).1,
            (bound, Distance::Value(offset)) => place.end(self.end, bound, offset)?,
            (_, Distance::None) => count,
        };
        Ok((self.start, self.end.max(self.start)))
    }
}

/// A row whose frame is looked for.
struct FrameRow<'p> {
    frame: &'p PlannedFrame,
    partition: &'p Partition,
    row: usize,
    order: Option<&'p SortSlot>,
    cx: &'p dyn EvalContext,
}

fn is_preceding(bound: &FrameBound) -> bool {
    matches!(bound, FrameBound::Preceding(_))
}

impl FrameRow<'_> {
    /// The row or group `n` before or after: where it begins and ends.
    fn counted(&self, bound: &FrameBound, n: usize) -> (usize, usize) {
        let count = self.partition.len();
        if self.frame.mode == FrameMode::Rows {
            return match is_preceding(bound) {
                true => (self.row.saturating_sub(n), (self.row + 1).saturating_sub(n)),
                false => {
                    let at = self.row.saturating_add(n).min(count);
                    (at, at.saturating_add(1).min(count))
                }
            };
        }
        let group = self.partition.group_of[self.row] as usize;
        let found = if is_preceding(bound) { group.checked_sub(n) } else { group.checked_add(n) };
        match (found, is_preceding(bound)) {
            (Some(group), _) if group < self.partition.groups.len() => self.partition.groups[group],
            (_, true) => (0, 0),
            (_, false) => (count, count),
        }
    }

    /// The first row whose value is within reach, from `at` on.
    fn start(&self, at: usize, bound: &FrameBound, offset: &Offset) -> Result<usize> {
        let Some(key) = self.order else { return Ok(0) };
        let reach = self.reach(bound, offset, false)?;
        let mut at = at;
        while at < self.partition.len() {
            work::step(super::ROW_UNITS)?;
            let stop = match self.nulls(at) {
                Some((head, current)) => match key.nulls_first {
                    true => !head || current,
                    false => head || !current,
                },
                None => reach.as_ref().is_none_or(|reach| reach.contains(&self.partition.order[at])),
            };
            if stop {
                break;
            }
            at += 1;
        }
        Ok(at)
    }

    /// The first row whose value is beyond reach, from `at` on.
    fn end(&self, at: usize, bound: &FrameBound, offset: &Offset) -> Result<usize> {
        let Some(key) = self.order else { return Ok(self.partition.len()) };
        let reach = self.reach(bound, offset, true)?;
        let mut at = at;
        while at < self.partition.len() {
            work::step(super::ROW_UNITS)?;
            let stop = match self.nulls(at) {
                Some((tail, current)) => match key.nulls_first {
                    true => !tail && current,
                    false => tail && !current,
                },
                None => reach.as_ref().is_some_and(|reach| !reach.contains(&self.partition.order[at])),
            };
            if stop {
                break;
            }
            at += 1;
        }
        Ok(at)
    }

    /// Whether a row's value, and that of the current row, are NULL; `None` if neither is.
    fn nulls(&self, at: usize) -> Option<(bool, bool)> {
        let nulls = (self.partition.order[at].is_null(), self.partition.order[self.row].is_null());
        (nulls != (false, false)).then_some(nulls)
    }

    /// The values from the current row's plus or minus an offset on, or up to it.
    fn reach(&self, bound: &FrameBound, offset: &Offset, upper: bool) -> Result<Option<super::range::Reach>> {
        let base = &self.partition.order[self.row];
        let descending = self.order.is_some_and(|key| key.descending);
        if base.is_null() {
            return Ok(None);
        }
        // In a descending order what precedes is greater.
        offset.reach(base, is_preceding(bound) != descending, upper != descending, self.cx).map(Some)
    }
}
