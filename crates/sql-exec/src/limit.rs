//! LIMIT and OFFSET.

use std::sync::Arc;

use base::{Error, Result, SqlState};
use sql_ir::expr::Code;
use sql_plan::LimitNode;
use types::Datum;

use super::sort::{has_values, values_of};
use super::{Cx, Next, Operator, operator};

/// Skips some rows and ends after some more.
pub(super) struct Limit {
    node: Arc<LimitNode>,
    input: Box<dyn Operator>,
    /// Rows still to skip and to hand out; unknown before the first row.
    left: Option<(u64, u64)>,
    /// WITH TIES: the keys of the last row that was handed out.
    last: Vec<Datum>,
}

impl Limit {
    pub fn new(node: &Arc<LimitNode>) -> Limit {
        Limit { node: Arc::clone(node), input: operator(&node.input), left: None, last: Vec::new() }
    }
}

/// The value of LIMIT; `None` is no limit.
///
/// # Errors
/// 2201W for a negative one.
pub(super) fn limit_of(code: &Code, cx: &mut Cx<'_, '_>, registers: &[Datum]) -> Result<Option<u64>> {
    match count(code.eval(cx, registers)?) {
        None => Ok(None),
        Some(n) => u64::try_from(n)
            .map(Some)
            .map_err(|_| Error::new(SqlState::INVALID_ROW_COUNT_IN_LIMIT_CLAUSE, "LIMIT must not be negative")),
    }
}

/// The value of OFFSET.
///
/// # Errors
/// 2201X for a negative one.
pub(super) fn offset_of(code: &Code, cx: &mut Cx<'_, '_>, registers: &[Datum]) -> Result<u64> {
    u64::try_from(count(code.eval(cx, registers)?).unwrap_or(0))
        .map_err(|_| Error::new(SqlState::INVALID_ROW_COUNT_IN_RESULT_OFFSET_CLAUSE, "OFFSET must not be negative"))
}

fn count(value: Datum) -> Option<i64> {
    match value {
        Datum::Int8(v) => Some(v),
        Datum::Int4(v) => Some(v as i64),
        Datum::Int2(v) => Some(v as i64),
        _ => None,
    }
}

impl Operator for Limit {
    fn next(&mut self, cx: &mut Cx<'_, '_>, registers: &mut [Datum]) -> Result<Next> {
        if self.left.is_none() {
            let skip = match &self.node.offset {
                Some(code) => offset_of(code, cx, registers)?,
                None => 0,
            };
            let take = match &self.node.limit {
                Some(code) => limit_of(code, cx, registers)?.unwrap_or(u64::MAX),
                None => u64::MAX,
            };
            self.left = Some((skip, take));
        }
        let Some((skip, take)) = &mut self.left else { return Ok(Next::Done) };
        while *take > 0 {
            let next = self.input.next(cx, registers)?;
            if !matches!(next, Next::Row) {
                return Ok(next);
            }
            if *skip == 0 {
                *take -= 1;
                if *take == 0 {
                    self.last = values_of(&self.node.ties, registers);
                }
                return Ok(Next::Row);
            }
            *skip -= 1;
        }
        if self.last.is_empty() {
            return Ok(Next::Done);
        }
        let next = self.input.next(cx, registers)?;
        if matches!(next, Next::Row) && !has_values(&self.node.ties, &self.last, registers) {
            self.last.clear();
            return Ok(Next::Done);
        }
        Ok(next)
    }

    fn rescan(&mut self, forget: bool) {
        self.left = None;
        self.last.clear();
        self.input.rescan(forget);
    }
}
