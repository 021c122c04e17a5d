//! The front of the log: transactions append records, a flusher carries them to the driver in groups.
//!
//! **Group commit.** Appending copies a record into the open batch and returns; no transaction waits for a timer. When the flusher is
//! free it takes everything that has gathered – one group –, hands it to the driver and waits until it is durable. At low load
//! a group is one transaction; under load it is whatever came while the last sync ran.
//!
//! **One order** (rule R2). Requirement: a view is a prefix of the log. Rule: timestamp, publication and position are taken
//! under the one lock of the open batch. Without it, a transaction with the lower timestamp could be appended second, and a
//! crash between the two would lose it while a reader had seen both.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use base::{Lsn, Timestamp, TxnId, WriterEpoch};
use env::{Clock, Joined, Task, Turn, World};
use rustc_hash::FxHashMap;

use crate::assembly::Assembly;
use crate::driver::{Batch, DriverError, Ending, Mark, ReplicatedLog};
use crate::durable::DurableWatch;
use crate::record::{self, PAYLOAD_MAX, Record, RecordKind};

/// Bytes that may wait for the flusher before long transactions have to.
const BACKLOG_BYTES_MAX: usize = 64 << 20;

/// Emptied buffers that are kept, and the capacity that is kept of each in any case.
const FREE_MAX: usize = 4;
const FREE_BYTES: usize = 1 << 20;

/// Space that one transaction has set aside and not appended into yet.
#[derive(Debug)]
#[must_use = "space set aside must be used or given back"]
pub struct Reservation {
    bytes: u64,
    log: Arc<Inner>,
}

impl Reservation {
    /// Hands the promise over to the batch that the transaction's last record is in.
    fn hand_to(mut self, batch: Option<&mut Gathered>) {
        if let Some(batch) = batch {
            batch.promised += std::mem::take(&mut self.bytes);
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.log.reserved.fetch_sub(self.bytes, Ordering::AcqRel);
    }
}

/// The answer to asking for space.
#[derive(Debug)]
pub enum Reserve {
    /// It is there.
    Ready(Reservation),
    /// It is being prepared: ask again when woken.
    Later,
    /// There is none (53100).
    Full,
}

/// Figures since the log was opened.
#[derive(Clone, Copy, Debug, Default)]
pub struct LogStats {
    /// Groups made durable.
    pub groups: u64,
    /// Records appended.
    pub records: u64,
    /// Bytes of records appended.
    pub bytes: u64,
    /// Nanoseconds spent waiting for the driver.
    pub flush_nanos: u64,
    /// Groups by records: those of at most 1, 2, 4, … records, and of more.
    pub groups_by_records: [u64; GROUP_BUCKETS],
    /// Groups by the time they took: at most 64, 128, 256, … microseconds, and longer.
    pub groups_by_time: [u64; GROUP_BUCKETS],
}

/// Classes by which groups are counted.
pub const GROUP_BUCKETS: usize = 16;

/// The class of a group by its size, where `first` is the largest of the first class.
fn group_bucket(size: u64, first: u64) -> usize {
    let times = size.div_ceil(first).max(1);
    (times.next_power_of_two().ilog2() as usize).min(GROUP_BUCKETS - 1)
}

/// What opening a log found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replayed {
    /// End of the log.
    pub end: Lsn,
    /// Timestamp of the last transaction.
    pub last_ts: Timestamp,
    /// Largest transaction id.
    pub last_txn: TxnId,
    /// Where something had to be cut off, if it had; see [`crate::Mark`].
    pub cut: Option<String>,
    /// Whether the log was closed there; a log of an earlier version does not say.
    pub was_closed: Option<bool>,
    /// Where it ends on the disk.
    pub ending: Ending,
}

/// Records that wait for the flusher.
#[derive(Default)]
struct Gathered {
    bytes: Vec<u8>,
    /// Space that was set aside for transactions whose last record is here. It stays promised until the driver has used
    /// it: given back earlier, the same space would be promised twice, and the driver would meet a full disk.
    promised: u64,
    records: u64,
}

struct Open {
    /// Closed batches in order, then the open one.
    batches: VecDeque<Gathered>,
    /// Position of the first byte of the first batch.
    start: Lsn,
    /// Position after the last record.
    end: Lsn,
    /// Emptied buffers, to be used again.
    free: Vec<Vec<u8>>,
    backlog: usize,
    flusher_sleeps: bool,
    closed: bool,
    /// Told when space or backlog changes.
    waiting: Vec<Box<dyn FnOnce() + Send>>,
    records: u64,
    /// Transactions that write ahead of their commit or of being prepared: where the first record of each begins.
    ahead: FxHashMap<TxnId, Lsn>,
}

struct Inner {
    open: Mutex<Open>,
    work: Condvar,
    durable: DurableWatch,
    room: Arc<dyn Fn() -> u64 + Send + Sync>,
    overhead: u64,
    batch_bytes_max: usize,
    reserved: AtomicU64,
    /// The preparer's last word: no space.
    full: std::sync::atomic::AtomicBool,
    prepare: (Mutex<bool>, Condvar),
    /// What lies before is not needed any more. Raised by anyone, acted upon by the flusher.
    needed_from: AtomicU64,
    /// What came of closing the log, once the flusher has done it.
    closed: Mutex<Option<Result<(), DriverError>>>,
    groups: AtomicU64,
    flush_nanos: AtomicU64,
    groups_by_records: [AtomicU64; GROUP_BUCKETS],
    groups_by_time: [AtomicU64; GROUP_BUCKETS],
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Log")
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(|e| e.into_inner())
    }

    fn wake_waiting(&self) {
        let waiting = std::mem::take(&mut self.lock().waiting);
        waiting.into_iter().for_each(|wake| wake());
    }

    /// Counts a group that has become durable.
    fn count_group(&self, nanos: u64, records: u64) {
        self.flush_nanos.fetch_add(nanos, Ordering::Relaxed);
        self.groups.fetch_add(1, Ordering::Relaxed);
        self.groups_by_records[group_bucket(records, 1)].fetch_add(1, Ordering::Relaxed);
        self.groups_by_time[group_bucket(nanos / 1000, 64)].fetch_add(1, Ordering::Relaxed);
    }

    /// Tells the preparer to look again.
    fn poke_preparer(&self) {
        *self.prepare.0.lock().unwrap_or_else(|e| e.into_inner()) = true;
        self.prepare.1.notify_one();
    }
}

/// The log of one shard.
pub struct Log {
    inner: Arc<Inner>,
    flusher: Mutex<Option<Box<dyn Joined>>>,
    preparer: Mutex<Option<Box<dyn Joined>>>,
}

impl Log {
    /// Reads back what `driver` has from `from` on, record by record, and starts to take new ones. `from` is where a record
    /// begins; what lies before may be gone.
    ///
    /// `on_failure` is called once if the driver fails: the process is expected to end.
    ///
    /// # Errors
    /// `Corrupt` if something durable is damaged, or `replay` refuses a record; `Full`, `Failed`.
    pub fn open(
        world: &World,
        mut driver: Box<dyn ReplicatedLog>,
        from: Lsn,
        replay: &mut dyn FnMut(Record<'_>) -> Result<(), String>,
        on_failure: Box<dyn FnOnce(DriverError) + Send>,
    ) -> Result<(Log, Replayed), DriverError> {
        let mut assembly = Assembly::new(from);
        let mark = driver.read(from, &mut |batch| assembly.take(batch, replay))?;
        let Assembly { last_ts, last_txn, .. } = assembly;
        let limits = driver.limits();
        let inner = Arc::new(Inner {
            open: Mutex::new(Open {
                batches: VecDeque::new(),
                start: mark.end,
                end: mark.end,
                free: Vec::new(),
                backlog: 0,
                flusher_sleeps: false,
                closed: false,
                waiting: Vec::new(),
                records: 0,
                // What was open when the writer stopped will not be ended.
                ahead: FxHashMap::default(),
            }),
            work: Condvar::new(),
            durable: DurableWatch::new(mark.end),
            room: driver.room(),
            overhead: driver.overhead(),
            batch_bytes_max: limits.batch_bytes_max,
            reserved: AtomicU64::new(0),
            full: false.into(),
            prepare: (Mutex::new(true), Condvar::new()),
            needed_from: AtomicU64::new(0),
            closed: Mutex::default(),
            groups: AtomicU64::new(0),
            flush_nanos: AtomicU64::new(0),
            groups_by_records: Default::default(),
            groups_by_time: Default::default(),
        });
        let preparer = driver
            .preparer()
            .map(|prepare| world.spawn.start("log-space", Box::new(Preparer { inner: Arc::clone(&inner), prepare })));
        let flusher = Flusher {
            inner: Arc::clone(&inner),
            driver,
            window: limits.window,
            clock: Arc::clone(&world.clock),
            group: Vec::new(),
            start: mark.end,
            end: mark.end,
            began: 0,
            trimmed: 0,
            on_failure: Some(on_failure),
        };
        let flusher = world.spawn.start("log-flush", Box::new(flusher));
        let Mark { end, cut, was_closed, ending } = mark;
        let replayed = Replayed { end, last_ts, last_txn, cut, was_closed, ending };
        Ok((Log { inner, flusher: Mutex::new(Some(flusher)), preparer: Mutex::new(preparer) }, replayed))
    }

    /// Sets space aside for a transaction of `payload` bytes, before it is stamped (rule R5).
    ///
    /// With [`Reserve::Later`], `wake` is called when asking again makes sense.
    pub fn reserve(&self, payload: usize, wake: impl FnOnce() -> Box<dyn FnOnce() + Send>) -> Reserve {
        let records = payload.div_ceil(self.chunk_bytes_max()).max(1) as u64;
        // Each record may come to lie in a frame of its own.
        let bytes = payload as u64 + records * (record::HEADER as u64 + self.inner.overhead);
        let before = self.inner.reserved.fetch_add(bytes, Ordering::AcqRel);
        let reservation = Reservation { bytes, log: Arc::clone(&self.inner) };
        if before + bytes <= (self.inner.room)() {
            return Reserve::Ready(reservation);
        }
        drop(reservation);
        self.inner.poke_preparer();
        if self.inner.full.load(Ordering::Acquire) {
            return Reserve::Full;
        }
        self.inner.lock().waiting.push(wake());
        // Space that came between the look above and the registration would never be told of.
        if self.inner.reserved.load(Ordering::Acquire) + bytes <= (self.inner.room)() {
            self.inner.wake_waiting();
        }
        Reserve::Later
    }

    /// Appends the last record of a transaction. `stamp` is called with the position its end will have, inside the one
    /// critical section of the log, and answers the timestamp; what it publishes there is published in log order.
    ///
    /// Never blocks on a disk and never fails: the space was set aside.
    pub fn append<R>(
        &self,
        reservation: Reservation,
        kind: RecordKind,
        txn: TxnId,
        payload: &[u8],
        stamp: impl FnOnce(Lsn) -> (Timestamp, R),
    ) -> (Lsn, R) {
        let max = self.chunk_bytes_max();
        let chunks = payload.len().saturating_sub(1) / max;
        let (body, last) = payload.split_at(chunks * max);
        let mut open = self.inner.lock();
        base::invariant!(!open.closed, "an append to a closed log");
        if !open.ahead.is_empty() {
            open.ahead.remove(&txn);
        }
        for chunk in body.chunks(max) {
            self.push(&mut open, RecordKind::Chunk, txn, Timestamp(0), chunk);
        }
        let end = Lsn(open.end.0 + (record::HEADER + last.len()) as u64);
        let (ts, result) = stamp(end);
        self.push(&mut open, kind, txn, ts, last);
        reservation.hand_to(open.batches.back_mut());
        debug_assert_eq!(open.end, end);
        let wake = std::mem::take(&mut open.flusher_sleeps);
        drop(open);
        if wake {
            self.inner.work.notify_one();
        }
        (end, result)
    }

    /// Appends part of a transaction ahead of its commit. `false` if the flusher is too far behind: `wake` is called when
    /// asking again makes sense.
    pub fn append_chunk(
        &self,
        reservation: Reservation,
        txn: TxnId,
        payload: &[u8],
        wake: impl FnOnce() -> Box<dyn FnOnce() + Send>,
    ) -> bool {
        let mut open = self.inner.lock();
        if open.backlog > BACKLOG_BYTES_MAX {
            open.waiting.push(wake());
            return false;
        }
        let begin = open.end;
        open.ahead.entry(txn).or_insert(begin);
        for chunk in payload.chunks(self.chunk_bytes_max()) {
            self.push(&mut open, RecordKind::Chunk, txn, Timestamp(0), chunk);
        }
        reservation.hand_to(open.batches.back_mut());
        let wake = std::mem::take(&mut open.flusher_sleeps);
        drop(open);
        if wake {
            self.inner.work.notify_one();
        }
        true
    }

    /// A transaction that has sent chunks ahead is rolled back: they mean nothing.
    pub fn forget(&self, txn: TxnId) {
        self.inner.lock().ahead.remove(&txn);
    }

    /// Calls `look` inside the critical section of the log with its end and with the position from which on the log has all
    /// of every transaction whose last record is not appended yet: what `look` reads goes with that end (rule R2).
    pub fn at_end<R>(&self, look: impl FnOnce(Lsn, Lsn) -> R) -> R {
        let open = self.inner.lock();
        let oldest = open.ahead.values().copied().min().unwrap_or(open.end);
        look(open.end, oldest.min(open.end))
    }

    /// What lies before `upto` is not needed any more. The flusher gives the space back soon, also when nothing is written: on a
    /// full disk nothing can be before it has.
    pub fn trim(&self, upto: Lsn) {
        self.inner.needed_from.fetch_max(upto.0, Ordering::AcqRel);
        if std::mem::take(&mut self.inner.lock().flusher_sleeps) {
            self.inner.work.notify_one();
        }
    }

    /// Largest payload of a record: a record lies in one batch. Space for more at once may never come to be set aside.
    pub fn chunk_bytes_max(&self) -> usize {
        PAYLOAD_MAX.min(self.inner.batch_bytes_max - record::HEADER)
    }

    fn push(&self, open: &mut Open, kind: RecordKind, txn: TxnId, ts: Timestamp, payload: &[u8]) {
        let len = record::HEADER + payload.len();
        let fits = open.batches.back().is_some_and(|b| b.bytes.len() + len <= self.inner.batch_bytes_max);
        if !fits {
            let bytes = open.free.pop().unwrap_or_default();
            open.batches.push_back(Gathered { bytes, promised: 0, records: 0 });
        }
        let gathered = open.batches.back_mut().expect("pushed if there was none");
        gathered.records += 1;
        let batch = &mut gathered.bytes;
        record::write_header(kind, payload.len(), txn, ts, batch);
        batch.extend_from_slice(payload);
        open.end = Lsn(open.end.0 + len as u64);
        open.backlog += len;
        open.records += 1;
    }

    /// The durable position.
    pub fn durable(&self) -> &DurableWatch {
        &self.inner.durable
    }

    /// End of what was appended.
    pub fn end(&self) -> Lsn {
        self.inner.lock().end
    }

    /// Whether the disk had no space for the log when it was last asked.
    pub fn is_full(&self) -> bool {
        self.inner.full.load(Ordering::Acquire)
    }

    /// Figures since opening.
    pub fn stats(&self) -> LogStats {
        let (records, end) = {
            let open = self.inner.lock();
            (open.records, open.end)
        };
        LogStats {
            groups: self.inner.groups.load(Ordering::Relaxed),
            records,
            bytes: end.0,
            flush_nanos: self.inner.flush_nanos.load(Ordering::Relaxed),
            groups_by_records: self.inner.groups_by_records.each_ref().map(|n| n.load(Ordering::Relaxed)),
            groups_by_time: self.inner.groups_by_time.each_ref().map(|n| n.load(Ordering::Relaxed)),
        }
    }

    /// Makes everything durable, says durably that the log ends there, and ends the log's threads. Nothing may be appended any
    /// more. The first call answers what came of it.
    ///
    /// # Errors
    /// Of the driver. What was reported durable is so all the same.
    pub fn close(&self) -> Result<(), DriverError> {
        self.inner.lock().closed = true;
        self.inner.work.notify_all();
        if let Some(flusher) = taken(&self.flusher) {
            flusher.join();
        }
        self.inner.poke_preparer();
        if let Some(preparer) = taken(&self.preparer) {
            preparer.join();
        }
        match taken(&self.inner.closed) {
            Some(closed) => closed,
            None if self.inner.durable.has_failed() => Err(DriverError::Failed(io::Error::other("it failed before"))),
            None => Ok(()),
        }
    }
}

fn taken<T>(place: &Mutex<Option<T>>) -> Option<T> {
    place.lock().unwrap_or_else(|e| e.into_inner()).take()
}

impl Drop for Log {
    fn drop(&mut self) {
        // What could not be closed is read back as after a crash.
        let _ = self.close();
    }
}

/// The flusher: one group after the other, until the log is closed and empty.
struct Flusher {
    inner: Arc<Inner>,
    driver: Box<dyn ReplicatedLog>,
    window: usize,
    clock: Arc<dyn Clock>,
    /// The group on its way; empty: none.
    group: Vec<Gathered>,
    /// Where it begins and ends, and when it began.
    start: Lsn,
    end: Lsn,
    began: u64,
    trimmed: u64,
    on_failure: Option<Box<dyn FnOnce(DriverError) + Send>>,
}

impl Flusher {
    fn go_on(&mut self) -> Result<Turn, DriverError> {
        if self.group.is_empty() {
            let is_closed = self.gather();
            if self.group.is_empty() {
                return Ok(match is_closed {
                    true => self.close(),
                    false if self.trim() => Turn::Again,
                    false => Turn::Idle,
                });
            }
            self.submit()?;
        }
        if self.driver.complete()? {
            self.finish();
        }
        Ok(Turn::Again)
    }

    /// All is durable, and nothing comes any more.
    fn close(&mut self) -> Turn {
        let closed = self.driver.close();
        *self.inner.closed.lock().unwrap_or_else(|e| e.into_inner()) = Some(closed);
        Turn::Ended
    }

    /// Takes what waits as the next group; whether the log is closed.
    fn gather(&mut self) -> bool {
        let mut open = self.inner.lock();
        let n = open.batches.len().min(self.window);
        self.group.extend(open.batches.drain(..n));
        self.start = open.start;
        open.closed
    }

    fn submit(&mut self) -> Result<(), DriverError> {
        self.began = self.clock.monotonic_nanos();
        self.end = self.start;
        for batch in &self.group {
            let durable = self.inner.durable.current();
            self.driver.submit(WriterEpoch(1), durable, Batch { start: self.end, bytes: &batch.bytes })?;
            self.end = Lsn(self.end.0 + batch.bytes.len() as u64);
        }
        Ok(())
    }

    /// The group is durable: tells so, and gives back its space.
    fn finish(&mut self) {
        let inner = &*self.inner;
        inner
            .count_group(self.clock.monotonic_nanos() - self.began, self.group.iter().map(|batch| batch.records).sum());
        inner.durable.advance(self.end);
        inner.reserved.fetch_sub(self.group.iter().map(|batch| batch.promised).sum(), Ordering::AcqRel);
        let has_waiting = {
            let mut open = inner.lock();
            open.start = self.end;
            open.backlog -= (self.end.0 - self.start.0) as usize;
            for Gathered { bytes: mut buffer, .. } in self.group.drain(..) {
                // One that grew large is kept as long as it is needed, not for the small groups that come then.
                if open.free.len() < FREE_MAX && buffer.capacity() <= (buffer.len() * 4).max(FREE_BYTES) {
                    buffer.clear();
                    open.free.push(buffer);
                } else {
                    open.free.retain(|other| other.capacity() <= FREE_BYTES);
                }
            }
            !open.waiting.is_empty()
        };
        if (inner.room)() < inner.batch_bytes_max as u64 * 8 || has_waiting {
            inner.poke_preparer();
        }
        if has_waiting {
            inner.wake_waiting();
        }
        self.trim();
    }

    /// What is not needed any more, and has not been removed yet.
    fn not_needed(&self) -> Option<u64> {
        let needed_from = self.inner.needed_from.load(Ordering::Acquire);
        (needed_from > self.trimmed).then_some(needed_from)
    }

    /// Removes what is not needed any more; `false`: there was nothing.
    fn trim(&mut self) -> bool {
        let Some(upto) = self.not_needed() else { return false };
        // What cannot be removed now is removed with a later position, or at the next start.
        let _ = self.driver.trim(Lsn(upto));
        self.trimmed = upto;
        if self.inner.full.load(Ordering::Acquire) {
            self.inner.poke_preparer();
        }
        true
    }
}

impl Task for Flusher {
    fn step(&mut self) -> Turn {
        self.go_on().unwrap_or_else(|error| {
            self.inner.durable.fail();
            if let Some(tell) = self.on_failure.take() {
                tell(error);
            }
            self.group.clear();
            Turn::Ended
        })
    }

    fn rest(&mut self) {
        let mut open = self.inner.lock();
        while open.batches.is_empty() && !open.closed && self.not_needed().is_none() {
            open.flusher_sleeps = true;
            open = self.inner.work.wait(open).unwrap_or_else(|e| e.into_inner());
        }
        open.flusher_sleeps = false;
    }
}

/// The preparer: sets the next segment aside whenever it is told to look, until the log is closed.
struct Preparer {
    inner: Arc<Inner>,
    prepare: Box<dyn FnMut() -> Result<bool, DriverError> + Send>,
}

impl Preparer {
    fn is_wanted(&self) -> MutexGuard<'_, bool> {
        self.inner.prepare.0.lock().unwrap_or_else(|e| e.into_inner())
    }
}

impl Task for Preparer {
    fn step(&mut self) -> Turn {
        if !std::mem::take(&mut *self.is_wanted()) {
            return Turn::Idle;
        }
        if self.inner.lock().closed {
            return Turn::Ended;
        }
        // Whatever is wrong with preparing, what was reserved has its space; new transactions are refused.
        let is_full = (self.prepare)().is_err();
        self.inner.full.store(is_full, Ordering::Release);
        self.inner.wake_waiting();
        Turn::Again
    }

    fn rest(&mut self) {
        let mut wanted = self.is_wanted();
        while !*wanted {
            wanted = self.inner.prepare.1.wait(wanted).unwrap_or_else(|e| e.into_inner());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_counted_in_the_class_they_fit() {
        for (records, class) in [(0, 0), (1, 0), (2, 1), (3, 2), (4, 2), (5, 3), (1 << 14, 14), (u64::MAX / 4, 15)] {
            assert_eq!(group_bucket(records, 1), class, "{records}");
        }
        assert_eq!((group_bucket(64, 64), group_bucket(65, 64), group_bucket(129, 64)), (0, 1, 2));
    }
}
