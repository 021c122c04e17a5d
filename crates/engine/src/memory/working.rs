//! Working memory: what the process has allocated beside rows, indexes and what else has an account of its own.
//!
//! Responsible for: how much of it there is, how much there may be, the refusal (53200) that says so; what the process holds beside.
//! Not responsible for: counting what is allocated (`env`), budgets of single statements (`sql-exec`), rows (`throttle`).
//! Invariants: working memory is what is left of the process's heap when everything that is counted as it changes is taken
//! off: values under evaluation, parse trees, plans being made, settings, prepared statements, messages. So nothing that a
//! session can make grow is outside of the limit, whether or not its owner counts it.
//!
//! Together with what statements say that they keep (`MemoryKind::Statements`) it may be a quarter of the limit, and, once
//! rows fill that, a sixteenth beyond it.

use base::{Error, Result, SqlState};
use engine_api::MemoryKind;

use crate::memory::throttle::size;
use crate::shard::{Inner, Shard};

/// What there may be at least, however small the limit is.
const SHARE_MIN: u64 = 8 << 20;
/// Beyond the limit, the process may hold so much that is free but has not gone back to the system, or is its program.
const SLACK: u64 = 64 << 20;
/// The part of the limit that may be free without counting against it, …
const FREE_SHARE: u64 = 8;
/// … if it is more than this: less than [`SLACK`], since the process goes on between two measurements.
const FREE_MIN: u64 = 56 << 20;
/// What is larger looks at what the process holds, too.
const LOOK: u64 = 1 << 20;

/// Kinds of working memory; the others have a bound of their own, or grow with rows only.
const WORKING: [MemoryKind; 3] = [MemoryKind::Working, MemoryKind::Statements, MemoryKind::Connections];

/// What working memory may be, beside `storage` bytes of the rest.
fn share(limit: u64, storage: u64) -> u64 {
    let left = (limit + limit / 16).saturating_sub(storage);
    (limit / 4).min(left).max(limit / 16).max(SHARE_MIN)
}

impl Inner {
    fn kinds(&self, kinds: &[MemoryKind]) -> u64 {
        kinds.iter().map(|kind| self.store.memory().other(*kind as usize)).sum()
    }

    /// What is allocated and counted beside working memory.
    fn stored(&self) -> u64 {
        let memory = self.store.memory();
        memory.used().saturating_sub(self.kinds(&WORKING) + memory.beyond())
    }
}

/// What the process says of itself.
pub trait Process: Send + Sync {
    /// Bytes that it has allocated.
    fn heap(&self) -> u64;
    /// Bytes that it holds of the system, beside its program; nothing if that is not known.
    fn resident(&self) -> u64;
    /// Gives back to the system what is free.
    fn give_back(&self);
}

impl Shard {
    /// Takes note of what the process has allocated.
    pub fn measure_heap(&self, heap: u64) {
        let inner = &*self.0;
        let others = inner.kinds(&[MemoryKind::Statements, MemoryKind::Connections]);
        let working = heap.saturating_sub(inner.stored() + others);
        inner.store.memory().set_other(MemoryKind::Working as usize, working);
    }

    /// Takes note of what the process holds of the system beyond what is counted; whether it is more than may be free. What may be, an
    /// eighth of the limit, does not count: rows that come find room there, and who deletes a part of a full table must be able to
    /// fill it again.
    pub fn measure_resident(&self, resident: u64) -> bool {
        let memory = self.0.store.memory();
        let free = resident.saturating_sub(memory.used().saturating_sub(memory.beyond()));
        memory.set_other_beyond(MemoryKind::Free as usize, free, (memory.limit() / FREE_SHARE).max(FREE_MIN));
        memory.beyond() > 0
    }

    /// Whether working memory may grow by so many bytes; `idle` bytes of the heap are not counted: what the process had when it
    /// began to serve.
    ///
    /// # Errors
    /// 53200 if it may not.
    pub fn ask_working(&self, process: &dyn Process, idle: u64, bytes: u64) -> Result<()> {
        let inner = &*self.0;
        let (limit, storage) = (inner.store.memory().limit(), inner.stored());
        let working = process.heap().saturating_sub(storage + idle);
        let share = share(limit, storage);
        if working.saturating_add(bytes) > share {
            return Err(refused(format!(
                "Statements, values and sessions hold {} of the {} that they may have together; {} more are needed.",
                size(working),
                size(share),
                size(bytes)
            )));
        }
        // What is free in pages that are in use, and what is kept for a while, is the process's as well.
        let most = limit + limit / 8 + SLACK;
        if bytes < LOOK || process.resident() + bytes <= most {
            return Ok(());
        }
        process.give_back();
        let resident = process.resident();
        if resident + bytes <= most {
            return Ok(());
        }
        Err(refused(format!(
            "The process holds {} of the system's memory, {} of it in use; {} more are needed.",
            size(resident),
            size(process.heap()),
            size(bytes)
        )))
    }
}

#[cold]
fn refused(detail: String) -> Error {
    Error::new(SqlState::OUT_OF_MEMORY, "out of memory for statements and values").detail(detail).hint(
        "Make values and statements smaller, end sessions that keep much in settings, prepared statements or cursors, or \
         raise memory_limit.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const MB: u64 = 1 << 20;

    #[test]
    fn a_quarter_then_a_sixteenth_beyond() {
        assert_eq!(share(1600 * MB, 0), 400 * MB);
        assert_eq!(share(1600 * MB, 1300 * MB), 400 * MB);
        assert_eq!(share(1600 * MB, 1500 * MB), 200 * MB);
        assert_eq!(share(1600 * MB, 1600 * MB), 100 * MB);
        assert_eq!(share(1600 * MB, 1900 * MB), 100 * MB, "what is over the limit takes nothing of it");
        assert_eq!(share(MB, 0), 8 * MB);
    }
}
