//! What happens when memory is nearly used up: those who make it grow wait, each a little longer, and in the end are refused.
//!
//! Responsible for: who waits, for how long, who is refused with 53200 and what that says.
//! Not responsible for: counting (`mvcc::memory`), freeing (`mvcc::garbage`).
//! Invariants: while memory is not tight nothing here is touched. No thread is blocked (rule R9): a call answers
//! `Step::Wait` once and succeeds when it is repeated, whether or not its turn has come, so that a caller which does not
//! wait is not stuck. Deletes never wait.
//!
//! From nine tenths of the limit on, what is left is given out at a rate by which half of it lasts for a second or more:
//! growth slows down as memory fills, and garbage has time to go. At the limit inserts and index builds wait for
//! [`FULL_WAIT`] in case something is freed, and are refused then. Updates, whose old versions go soon, may use a small
//! reserve beyond the limit, deletes and definitions a larger one: what frees memory must have some.
//! Where many make memory grow, each refusal gives the others a little, and none of them would come to an end for long: a
//! transaction that has waited for [`PATIENCE`] in all is refused while memory is tight.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use base::{Error, Oid, Result, SqlState};
use engine_api::{MemoryKind, Wait, WaitCell};
use mvcc::{InUse, Memory};
use parking_lot::Mutex;

use crate::shard::{Inner, Shard};
use crate::txn::Transaction;

/// How long a call waits at the limit for something to be freed.
const FULL_WAIT: u64 = 250_000_000;
/// How often in a row a transaction waits so long before it is refused, although its purpose has a reserve.
const FULL_WAITS: u32 = 8;
/// How long a transaction waits in all.
const PATIENCE: u64 = 10_000_000_000;
/// Growth goes on at this rate at least until the limit is reached, in bytes a second.
const RATE_MIN: u64 = 1 << 20;
/// What may be given out at once.
const CREDIT_MAX: i64 = 1 << 20;
/// For longer than this nothing is earned at once, in nanoseconds.
const PASSED_MAX: u64 = 100_000_000;
/// A transaction waits at its first write, and whenever it has written so much more.
const QUANTUM: usize = 16 << 10;
/// A row of so many bytes is looked at before it is made, however much memory is left.
const LARGE: usize = 256 << 10;
/// Versions that stay for a view, from which on the view is named.
const HELD_MIN: usize = 1000;
/// What a row or a version takes beside its bytes, roughly.
const PER_ROW: usize = 64;
/// What an index entry takes, roughly.
pub(crate) const PER_ENTRY: usize = 32;

/// Who asks for memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// A new row, or index entries.
    Grow,
    /// A new version of a row.
    Change,
    /// A deletion, or a new definition.
    Shrink,
}

impl Purpose {
    /// Where it is refused.
    fn bound(self, memory: &Memory) -> u64 {
        let limit = memory.limit();
        match self {
            Purpose::Grow => limit,
            Purpose::Change => limit + limit / 32,
            Purpose::Shrink => memory.limit_or_floor() + limit / 8,
        }
    }
}

/// What counts against the limit where rows are concerned. Working memory comes and goes, and has a sixteenth beyond the limit: so much of
/// it is nothing to rows.
fn used(memory: &Memory) -> u64 {
    counted(memory, &memory.in_use(MemoryKind::Working as usize))
}

fn counted(memory: &Memory, in_use: &InUse) -> u64 {
    in_use.total.saturating_sub(in_use.kind.min(memory.limit() / 16))
}

/// How far a transaction is with waiting for memory.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    /// It has waited once.
    begun: bool,
    /// The last call answered a wait.
    waited: bool,
    /// Written since the last wait.
    debt: usize,
    /// Waits in a row at whose end memory was at the limit still.
    in_vain: u32,
    /// When the last wait began, and how long all together were.
    since: u64,
    waited_for: u64,
}

impl Pace {
    /// A wait is over: whether the transaction has waited for long enough.
    fn has_waited(&mut self, now: u64) -> bool {
        self.waited_for += now.saturating_sub(self.since);
        self.waited_for >= PATIENCE
    }
}

struct Waiter {
    bytes: i64,
    since: u64,
    cell: Arc<WaitCell>,
}

#[derive(Default)]
struct Queue {
    waiters: VecDeque<Waiter>,
    /// Bytes that may be given out.
    credit: i64,
    /// When the credit was last raised.
    raised: u64,
}

/// Those who wait for memory, in the order in which they came.
#[derive(Default)]
pub(crate) struct Throttle {
    queue: Mutex<Queue>,
    /// Calls that have waited, and calls that were refused. Relaxed: statistics.
    pub delays: AtomicU64,
    pub refusals: AtomicU64,
}

impl Queue {
    /// Raises the credit by what may be given out for the time that has passed: half of what is left lasts a second.
    fn earn(&mut self, memory: &Memory, now: u64) {
        let (used, limit) = (used(memory), memory.limit());
        let passed = now.saturating_sub(self.raised).min(PASSED_MAX);
        self.raised = now;
        let rate = if used < limit { ((limit - used) / 2).max(RATE_MIN) } else { 0 };
        let earned = u128::from(rate) * u128::from(passed) / 1_000_000_000;
        self.credit = (self.credit + i64::try_from(earned).unwrap_or(CREDIT_MAX)).min(CREDIT_MAX);
    }
}

impl Throttle {
    /// Gives out `bytes` if nobody waits and there is credit for them, or answers what to wait for.
    fn take(&self, bytes: usize, memory: &Memory, now: u64) -> Option<Wait> {
        let bytes = bytes as i64;
        let mut queue = self.queue.lock();
        if queue.waiters.is_empty() {
            // Who is alone is not to wait for the background task after each quantum: its pace would be the task's.
            queue.earn(memory, now);
            if queue.credit > 0 && used(memory) < memory.limit() {
                queue.credit -= bytes;
                return None;
            }
        }
        Some(self.enqueue(&mut queue, bytes, now))
    }

    /// Waits for its turn, however much is left.
    fn wait(&self, bytes: usize, now: u64) -> Wait {
        self.enqueue(&mut self.queue.lock(), bytes as i64, now)
    }

    fn enqueue(&self, queue: &mut Queue, bytes: i64, now: u64) -> Wait {
        let cell = WaitCell::new();
        self.delays.fetch_add(1, Ordering::Relaxed);
        queue.waiters.push_back(Waiter { bytes, since: now, cell: Arc::clone(&cell) });
        Wait::for_memory(&cell)
    }

    /// Lets those go on whose turn has come; whether anybody still waits.
    pub fn turn(&self, memory: &Memory, now: u64) -> bool {
        let mut queue = self.queue.lock();
        let queue = &mut *queue;
        if queue.waiters.is_empty() {
            return false;
        }
        queue.earn(memory, now);
        let (used, limit) = (used(memory), memory.limit());
        // Those who gave up are passed over wherever they stand.
        queue.waiters.retain(|waiter| Arc::strong_count(&waiter.cell) > 1);
        while let Some(first) = queue.waiters.front() {
            let is_free = used < memory.tight_from();
            let overdue = used >= limit && now.saturating_sub(first.since) >= FULL_WAIT;
            if !is_free && !overdue && (used >= limit || queue.credit <= 0) {
                break;
            }
            queue.credit -= if is_free || overdue { 0 } else { first.bytes };
            queue.waiters.pop_front().into_iter().for_each(|waiter| waiter.cell.wake());
        }
        !queue.waiters.is_empty()
    }
}

impl Transaction {
    /// Asks for memory for `bytes` of a row. A wait ends when asking again makes sense. One look at two words of one cache
    /// line while memory is not tight.
    ///
    /// # Errors
    /// 53200 when all that the purpose may have is used up.
    #[inline]
    pub(crate) fn ask_memory(&mut self, purpose: Purpose, bytes: usize) -> Result<Option<Wait>> {
        // A large row may fill what is left by itself.
        if bytes >= LARGE || self.shard.0.store.memory().is_tight() {
            self.ask_tight_memory(purpose, bytes)
        } else {
            Ok(None)
        }
    }

    #[cold]
    fn ask_tight_memory(&mut self, purpose: Purpose, bytes: usize) -> Result<Option<Wait>> {
        let inner = Arc::clone(&self.shard.0);
        let memory = inner.store.memory();
        let in_use = memory.in_use(MemoryKind::Working as usize);
        let used = match purpose {
            // What frees rows does not wait for statements to end.
            Purpose::Shrink => in_use.total.saturating_sub(in_use.kind),
            _ => counted(memory, &in_use),
        };
        let alone = if bytes >= LARGE { bytes as u64 } else { 0 };
        let is_full = used + alone >= purpose.bound(memory);
        let waited = std::mem::take(&mut self.pace.waited);
        match used >= memory.limit() {
            true => self.pace.in_vain += u32::from(waited),
            false => self.pace.in_vain = 0,
        }
        // The reserve is for what is freed soon. Who goes on to wait for that, a piece at a time, would do so for hours.
        let is_in_vain = purpose == Purpose::Change && self.pace.in_vain >= FULL_WAITS;
        let is_tired = waited && self.pace.has_waited(inner.world.clock.monotonic_nanos());
        let gives_up = is_in_vain || (is_tired && purpose != Purpose::Shrink && used >= memory.tight_from());
        // What frees rows waits only for those that lie among free memory to be put together.
        let waits_for_pages = is_full && purpose == Purpose::Shrink && in_use.beyond > 0;
        let is_over = if waits_for_pages { is_tired } else { is_full && (waited || purpose == Purpose::Shrink) };
        if is_over || gives_up {
            inner.throttle.refusals.fetch_add(1, Ordering::Relaxed);
            return Err(full(&inner));
        }
        if waited && !waits_for_pages {
            self.pace.debt = 0;
            return Ok(None);
        }
        if !waits_for_pages && (purpose == Purpose::Shrink || (used < memory.tight_from() && !is_full)) {
            return Ok(None);
        }
        self.pace.debt += bytes + PER_ROW;
        if !is_full && self.pace.begun && self.pace.debt < QUANTUM {
            return Ok(None);
        }
        let now = inner.world.clock.monotonic_nanos();
        let wait = match alone {
            _ if waits_for_pages => Some(inner.throttle.wait(self.pace.debt, now)),
            0 => inner.throttle.take(self.pace.debt, memory, now),
            _ if is_full => Some(inner.throttle.wait(self.pace.debt, now)),
            // It fits.
            _ => None,
        };
        (self.pace.begun, self.pace.waited, self.pace.since) = (true, wait.is_some(), now);
        if wait.is_none() {
            self.pace.debt = 0;
        }
        Ok(wait)
    }
}

impl Shard {
    /// Lets those go on who wait for memory and whose turn has come. For a background task that looks again soon if anybody
    /// still waits, which is the answer.
    pub fn relieve(&self) -> bool {
        let inner = &*self.0;
        inner.throttle.turn(inner.store.memory(), inner.world.clock.monotonic_nanos())
    }
}

/// A number of bytes in a sentence.
pub(crate) fn size(bytes: u64) -> String {
    match bytes {
        0..0x10_0000 => format!("{} kB", bytes.div_ceil(1 << 10)),
        _ => format!("{} MB", bytes >> 20),
    }
}

/// Says what memory is full of: the kinds that hold most, and the largest table.
fn full(inner: &Inner) -> Error {
    let memory = inner.store.memory();
    let tables = inner.table_memory();
    let sum = |of: fn(&engine_api::TableMemoryUse) -> u64| tables.iter().map(of).sum::<u64>();
    let mut kinds = vec![
        ("row headers", sum(|t| t.headers)),
        ("row versions", sum(|t| t.versions)),
        ("indexes", sum(|t| t.indexes)),
    ];
    kinds.extend(MemoryKind::ALL.iter().map(|kind| (kind.words(), memory.other(*kind as usize))));
    kinds.sort_by_key(|kind| std::cmp::Reverse(kind.1));
    let kinds: Vec<String> = kinds
        .iter()
        .take(4)
        .filter(|kind| kind.1 > 0)
        .map(|(name, bytes)| format!("{name} {}", size(*bytes)))
        .collect();
    let mut detail = format!("{} of {} are in use: {}.", size(memory.used()), size(memory.limit()), kinds.join(", "));
    let largest = tables.iter().max_by_key(|table| table.bytes());
    if let Some((table, name)) = largest.and_then(|table| Some((table, name_of(inner, table.table)?))) {
        detail.push_str(&format!(" The largest table is {name} with {}.", size(table.bytes())));
        if table.version_count > table.rows + table.rows / 2 {
            let waiting = table.version_count - table.rows;
            detail.push_str(&format!(" {waiting} of its versions are old ones, or not committed."));
        }
    }
    let mut hint = String::new();
    if let Some((count, views)) = inner.store.most_held().filter(|held| held.0 >= HELD_MIN) {
        let sessions: Vec<String> = views.iter().filter(|pid| **pid != 0).map(u32::to_string).collect();
        let whose = match sessions.as_slice() {
            [] => "a checkpoint's or another background task's view".to_string(),
            [one] => format!("the view of the process with PID {one}"),
            several => format!("the views of the processes with PIDs {}", several.join(", ")),
        };
        detail.push_str(&format!(" {count} old versions stay for {whose}."));
        if !sessions.is_empty() {
            hint = format!("End the transaction of {}. ", sessions.join(", "));
        }
    }
    hint.push_str(
        "Delete rows, truncate or drop tables, end transactions that are open for long, or raise memory_limit.",
    );
    Error::new(SqlState::OUT_OF_MEMORY, "out of memory for rows and indexes").detail(detail).hint(hint)
}

fn name_of(inner: &Inner, table: Oid) -> Option<String> {
    let catalog = inner.catalog.get();
    let desc = catalog.table(table)?;
    let schema = catalog.get(desc.schema).map_or("", |schema| schema.name());
    Some(format!("\"{schema}.{}\"", desc.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn waits(throttle: &Throttle, memory: &Memory, count: usize, bytes: usize) -> Vec<Wait> {
        (0..count).map(|_| throttle.take(bytes, memory, 0).expect("nothing has been earned")).collect()
    }

    fn over(waits: &[Wait]) -> usize {
        waits.iter().filter(|wait| wait.is_over()).count()
    }

    #[test]
    fn growth_slows_down_and_ends() {
        let memory = Memory::new(100 << 20);
        memory.charge(95 << 20);
        let throttle = Throttle::default();
        let waiting = waits(&throttle, &memory, 100, 64 << 10);
        assert!(throttle.turn(&memory, SECOND / 10));
        // A tenth of a second at 2.5 MiB a second.
        assert_eq!(over(&waiting), 4);
        memory.charge(5 << 20);
        assert!(throttle.turn(&memory, SECOND / 5));
        assert_eq!(over(&waiting), 4, "nothing is given out at the limit");
        throttle.turn(&memory, SECOND / 2);
        assert_eq!(over(&waiting), 100, "and nobody waits there for long");
    }

    #[test]
    fn who_is_alone_keeps_the_rate_without_being_woken() {
        let memory = Memory::new(100 << 20);
        memory.charge(96 << 20);
        let throttle = Throttle::default();
        let quantum = 16 << 10;
        let mut given = 0;
        for now in (0..SECOND).step_by(SECOND as usize / 50) {
            while throttle.take(quantum, &memory, now).is_none() {
                given += quantum;
            }
            throttle.queue.lock().waiters.clear();
        }
        // 2 MiB a second.
        assert!((1_900 << 10..2_200 << 10).contains(&given), "{given}");
    }

    #[test]
    fn patience_is_that_of_all_waits_together() {
        let mut pace = Pace::default();
        let waits = (1..).find(|n| {
            pace.since = n * 7 * SECOND;
            pace.has_waited(pace.since + SECOND / 4)
        });
        assert_eq!(waits, Some(PATIENCE / (SECOND / 4)));
    }

    #[test]
    fn all_go_on_when_there_is_room() {
        let memory = Memory::new(100 << 20);
        memory.charge(99 << 20);
        let throttle = Throttle::default();
        let mut waiting = waits(&throttle, &memory, 100, 1 << 20);
        waiting.drain(..50);
        memory.charge(-(50 << 20));
        assert!(!throttle.turn(&memory, 1000));
        assert_eq!(over(&waiting), 50);
        assert!(!throttle.turn(&memory, 2000));
    }
}
