//! TABLESAMPLE: some of the rows of a table.

use std::hash::BuildHasher;
use std::sync::Arc;

use base::{Error, Result, SqlState};
use rustc_hash::FxBuildHasher;
use sql_ir::expr::Env;
use sql_plan::SampleNode;
use types::Datum;

use super::{Cx, Next, Operator, operator};

/// Rows that SYSTEM takes or leaves together.
const BLOCK_ROWS: u64 = 128;

/// Passes on the rows whose numbers, hashed, are small enough.
pub(super) struct Sample {
    node: Arc<SampleNode>,
    input: Box<dyn Operator>,
    /// Seed and limit; `None` before the first row.
    chosen: Option<(u64, f64)>,
}

impl Sample {
    pub fn new(node: &Arc<SampleNode>) -> Sample {
        Sample { node: Arc::clone(node), input: operator(&node.input), chosen: None }
    }

    fn start(&self, cx: &mut Cx<'_, '_>, registers: &[Datum]) -> Result<(u64, f64)> {
        let percent = match self.node.percent.eval(cx, registers)? {
            Datum::Float4(percent) => f64::from(percent),
            _ => {
                let message = "TABLESAMPLE parameter cannot be null";
                return Err(Error::new(SqlState::INVALID_TABLESAMPLE_ARGUMENT, message));
            }
        };
        if !(0.0..=100.0).contains(&percent) {
            let message = "sample percentage must be between 0 and 100";
            return Err(Error::new(SqlState::INVALID_TABLESAMPLE_ARGUMENT, message));
        }
        let seed = match &self.node.seed {
            Some(seed) => match seed.eval(cx, registers)? {
                Datum::Float8(seed) => seed,
                _ => {
                    let message = "TABLESAMPLE REPEATABLE parameter cannot be null";
                    return Err(Error::new(SqlState::INVALID_TABLESAMPLE_REPEAT, message));
                }
            },
            None => match (self.node.random.eval)(cx.eval(), &[])? {
                Datum::Float8(seed) => seed,
                _ => return Err(Error::internal("a random number that is none")),
            },
        };
        Ok((seed.to_bits(), percent / 100.0))
    }
}

/// A number from 0 to 1 that depends on both.
fn share(seed: u64, number: u64) -> f64 {
    // Mixed further: neighbours must not be taken together.
    let mut bits = FxBuildHasher.hash_one((seed, number));
    bits ^= bits >> 33;
    bits = bits.wrapping_mul(0xff51_afd7_ed55_8ccd);
    bits ^= bits >> 33;
    bits = bits.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    bits ^= bits >> 33;
    (bits >> 11) as f64 / (1u64 << 53) as f64
}

impl Operator for Sample {
    fn next(&mut self, cx: &mut Cx<'_, '_>, registers: &mut [Datum]) -> Result<Next> {
        let (seed, limit) = match self.chosen {
            Some(chosen) => chosen,
            None => {
                let chosen = self.start(cx, registers)?;
                self.chosen = Some(chosen);
                chosen
            }
        };
        loop {
            match self.input.next(cx, registers)? {
                Next::Row => {
                    let Datum::Int8(row) = registers[self.node.row_slot as usize] else { continue };
                    let number = if self.node.system { row as u64 / BLOCK_ROWS } else { row as u64 };
                    if share(seed, number) < limit {
                        return Ok(Next::Row);
                    }
                    if let Some(wait) = cx.run.tick(1)? {
                        return Ok(Next::Wait(wait));
                    }
                }
                other => return Ok(other),
            }
        }
    }

    fn rescan(&mut self, forget: bool) {
        self.chosen = None;
        self.input.rescan(forget);
    }
}
