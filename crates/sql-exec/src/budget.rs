//! Memory of sorts, hash tables and groups: a share of the server's for all running statements, and a part of that for one.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use base::{Error, Result, SqlState};
use engine_api::{Engine, MemoryKind};

/// What one statement may take at most (rule R18).
const STATEMENT_MAX: usize = 2 << 30;
/// What all statements may take at least, however small the server's limit is.
const TOTAL_MIN: usize = 8 << 20;
/// Taken from the common budget at once, so that statements do not meet at its counter for every row.
const STEP: usize = 256 << 10;

/// The memory that the statements of a server share, beside a first step of each: a quarter of the server's limit, or a sixteenth of it once all
/// memory is in use, which goes beyond the limit then, so that reading goes on.
pub struct MemoryBudget {
    /// Reserved by running statements. Relaxed: it guards no other memory.
    used: AtomicUsize,
    /// Whose limit it is a share of, and what it is charged to.
    engine: Option<Arc<dyn Engine>>,
    /// The limit without an engine.
    limit: u64,
}

impl std::fmt::Debug for MemoryBudget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemoryBudget").field("used", &self.used).finish_non_exhaustive()
    }
}

impl MemoryBudget {
    /// Of a limit that stays.
    pub fn new(limit: u64) -> MemoryBudget {
        MemoryBudget { used: AtomicUsize::new(0), engine: None, limit }
    }

    /// Of an engine's limit; what statements take is charged there.
    pub fn of(engine: Arc<dyn Engine>) -> MemoryBudget {
        MemoryBudget { engine: Some(engine), ..MemoryBudget::new(0) }
    }

    /// What all statements may take, unless memory is full.
    pub fn total(&self) -> u64 {
        let limit = self.engine.as_ref().map_or(self.limit, |engine| engine.memory_level().1);
        (limit / 4).max(TOTAL_MIN as u64)
    }

    /// What all statements may take now.
    fn share(&self) -> usize {
        let share = match self.engine.as_ref().map(|engine| engine.memory_level()) {
            Some((used, limit)) if used >= limit => (limit / 16).max(TOTAL_MIN as u64),
            _ => self.total(),
        };
        usize::try_from(share).unwrap_or(usize::MAX)
    }

    fn charge(&self, bytes: i64) {
        if let Some(engine) = &self.engine {
            engine.charge_memory(MemoryKind::Statements, bytes);
        }
    }
}

/// What one execution holds of a budget; given back when dropped.
#[derive(Debug, Default)]
pub struct Held {
    budget: Option<Arc<MemoryBudget>>,
    /// Bytes that operators say they keep.
    charged: usize,
    /// Bytes taken from the budget for that.
    reserved: usize,
}

impl Held {
    /// Counts `bytes` that an operator keeps from now on.
    ///
    /// # Errors
    /// 53200 beyond what the statement, or all statements together, may take.
    #[inline]
    pub fn charge(&mut self, bytes: usize, budget: &Arc<MemoryBudget>) -> Result<()> {
        self.charged += bytes;
        if self.charged <= self.reserved { Ok(()) } else { self.reserve(budget) }
    }

    fn reserve(&mut self, budget: &Arc<MemoryBudget>) -> Result<()> {
        if self.charged > STATEMENT_MAX {
            return Err(exhausted(format!(
                "The statement needs more than {} MB for its sorts, hash tables and groups.",
                STATEMENT_MAX >> 20
            )));
        }
        let step = (self.charged - self.reserved).max(STEP);
        // The first step is everybody's, however much others hold: small statements go on beside large ones.
        let is_first = self.reserved == 0 && step <= STEP;
        if !is_first {
            types::room::ask(step)?;
        }
        self.budget.get_or_insert_with(|| Arc::clone(budget));
        let share = budget.share();
        let before = budget.used.fetch_add(step, Ordering::Relaxed);
        budget.charge(step as i64);
        self.reserved += step;
        if is_first || before + step <= share {
            return Ok(());
        }
        Err(exhausted(format!(
            "Running statements need more than {} MB for their sorts, hash tables and groups.",
            share >> 20
        )))
    }

    /// Counts `bytes` that are not kept any more; the budget gets them back with the rest.
    pub fn forget(&mut self, bytes: usize) {
        self.charged = self.charged.saturating_sub(bytes);
    }

    /// What operators said they keep.
    pub fn bytes(&self) -> usize {
        self.charged
    }

    /// Gives everything back.
    pub fn release(&mut self) {
        if let Some(budget) = &self.budget {
            budget.used.fetch_sub(self.reserved, Ordering::Relaxed);
            budget.charge(-(self.reserved as i64));
        }
        (self.charged, self.reserved) = (0, 0);
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.release();
    }
}

#[cold]
fn exhausted(detail: String) -> Error {
    Error::new(SqlState::OUT_OF_MEMORY, "out of memory").detail(detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_statement_goes_on_beside_one_that_has_all() {
        let budget = Arc::new(MemoryBudget::new(64 << 20));
        let (mut large, mut small) = (Held::default(), Held::default());
        large.charge(16 << 20, &budget).unwrap();
        small.charge(100 << 10, &budget).unwrap();
        small.charge(100 << 10, &budget).unwrap();
        assert!(small.charge(100 << 10, &budget).is_err(), "the second step is refused");
    }

    #[test]
    fn statements_share_and_give_back() {
        let budget = Arc::new(MemoryBudget::new(64 << 20));
        let (mut one, mut other) = (Held::default(), Held::default());
        one.charge(10 << 20, &budget).unwrap();
        let refused = other.charge(7 << 20, &budget).unwrap_err();
        assert_eq!(refused.code(), SqlState::OUT_OF_MEMORY);
        drop(one);
        other.release();
        for _ in 0..15 << 10 {
            other.charge(1 << 10, &budget).unwrap();
        }
        drop(other);
        assert_eq!(budget.used.load(Ordering::Relaxed), 0);
    }
}
