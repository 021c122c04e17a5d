//! A simulated world: a disk, a clock, and parts of the system that run when they are scheduled.
//!
//! **The disk.** Everything that was not synced may be lost, torn, reordered or damaged by a crash. Each file has a *live* image, which reads see, and a *durable* one, which syncs bring up to date. Writes since the last
//! sync are kept apart, so that a crash can let any subset of their 512-byte sectors survive. After a sync that failed nobody
//! takes them for unwritten any more: they are made durable only if they are written again.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

use crate::{Clock as _, Disk, DiskFile, DiskLock};

mod clock;
mod tasks;

pub use clock::SimClock;
pub use tasks::SimTasks;

/// What survives a power failure in one piece.
const SECTOR: usize = 512;

/// How a crash treats what was not synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crash {
    /// All of it is lost.
    LoseUnsynced,
    /// All of it is there (the process died, the machine did not).
    KeepAll,
    /// Any sectors survive, in no order: lost, torn and reordered writes.
    AnySectors,
    /// Like `AnySectors`, and a bit of what was not synced is flipped.
    FlipBits,
}

/// A deterministic source of choices.
#[derive(Clone, Debug)]
pub struct SimRandom(u64);

impl SimRandom {
    /// Choices from a seed.
    pub fn new(seed: u64) -> SimRandom {
        SimRandom(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// The next 64 bits (xorshift64*).
    pub fn bits(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `n`.
    pub fn below(&mut self, n: u64) -> u64 {
        (self.bits() >> 11) % n.max(1)
    }
}

#[derive(Clone, Default, Debug)]
struct Image {
    live: Vec<u8>,
    durable: Vec<u8>,
    /// Unsynced writes in order: offset and bytes.
    pending: Vec<(u64, Vec<u8>)>,
    /// Bytes for which space is set aside.
    allocated: u64,
    /// A sync under way: how many of the pending writes it is about, and when it is done.
    syncing: Option<(usize, u64)>,
}

impl Image {
    /// Makes the first `n` of the pending writes durable, and the length.
    fn settle(&mut self, n: usize) {
        self.durable.resize(self.live.len(), 0);
        for (offset, bytes) in self.pending.drain(..n) {
            let end = (offset as usize + bytes.len()).min(self.durable.len());
            let from = (offset as usize).min(end);
            self.durable[from..end].copy_from_slice(&bytes[..end - from]);
        }
    }
}

/// An operation that can be made to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// Of a file.
    Read,
    /// Of a file; a part of it may be done all the same.
    Write,
    /// Of a file or the directory.
    Sync,
}

#[derive(Default, Debug)]
struct SimState {
    /// Files by number; a file keeps its number when it is renamed, and lives on while it is open.
    files: BTreeMap<u64, Image>,
    names: BTreeMap<String, u64>,
    next_file: u64,
    /// The names that a crash finds: creations, renames and removals count after a directory sync.
    durable_names: BTreeMap<String, u64>,
    /// Operations (writes and syncs) done.
    operations: u64,
    /// Everything fails from this operation on.
    frozen_at: Option<u64>,
    /// So many syncs fail from now on.
    failing_syncs: u32,
    /// Operations that are to fail, each after so many of its kind.
    failures: BTreeMap<Operation, u64>,
    /// One of so many syncs answers that all is well and does nothing.
    skipped_syncs: Option<u64>,
    quota: Option<u64>,
    locked: bool,
    /// How long a sync takes at most, in nanoseconds by this clock.
    slow: Option<(SimClock, u64)>,
    random: Option<SimRandom>,
    figures: Figures,
}

/// What was done with a disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Reads of files.
    pub reads: u64,
    /// Writes of files.
    pub writes: u64,
    /// Syncs of files and the directory.
    pub syncs: u64,
    /// Operations that were made to fail.
    pub failures: u64,
    /// Operations that found no space.
    pub full: u64,
}

/// The simulated disk. Clones are the same disk.
#[derive(Clone, Default)]
pub struct SimDisk(Arc<Mutex<SimState>>);

fn full() -> io::Error {
    io::Error::from(io::ErrorKind::StorageFull)
}

impl SimState {
    /// Counts an operation.
    fn step(&mut self) -> io::Result<()> {
        if self.frozen_at.is_some_and(|at| self.operations >= at) {
            return Err(io::Error::other("the simulated machine is down"));
        }
        self.operations += 1;
        Ok(())
    }

    fn used(&self) -> u64 {
        self.names.values().filter_map(|id| self.files.get(id)).map(|f| f.allocated.max(f.live.len() as u64)).sum()
    }

    fn has_room(&mut self, more: u64) -> io::Result<()> {
        match self.quota {
            Some(quota) if more > 0 && self.used() + more > quota => {
                self.figures.full += 1;
                Err(full())
            }
            _ => Ok(()),
        }
    }

    /// Whether this operation is the one that fails.
    fn fails(&mut self, operation: Operation) -> bool {
        let is_due = match self.failures.get_mut(&operation) {
            Some(0) => true,
            Some(left) => {
                *left -= 1;
                false
            }
            None => false,
        };
        if is_due {
            self.failures.remove(&operation);
            self.figures.failures += 1;
        }
        is_due
    }

    fn below(&mut self, n: u64) -> u64 {
        self.random.get_or_insert_with(|| SimRandom::new(1)).below(n)
    }

    /// Begins a sync: whether it is to fail, and how long it takes.
    fn begin_sync(&mut self) -> io::Result<bool> {
        self.step()?;
        self.figures.syncs += 1;
        if self.failing_syncs > 0 {
            self.failing_syncs -= 1;
            return Ok(true);
        }
        Ok(self.fails(Operation::Sync))
    }

    /// A sync of a file fails: any of what was to be made durable is, and the rest is forgotten.
    fn fail_sync(&mut self, id: u64) -> io::Error {
        let mut random = self.random.take().unwrap_or_else(|| SimRandom::new(1));
        if let Some(image) = self.files.get_mut(&id) {
            image.syncing = None;
            for (offset, written) in std::mem::take(&mut image.pending) {
                survive(&mut image.durable, offset, &written, false, &mut random);
            }
        }
        self.random = Some(random);
        io::Error::other("simulated failure of a sync")
    }

    /// Whether a sync says that it is done and does nothing.
    fn is_skipped(&mut self) -> bool {
        self.skipped_syncs.is_some_and(|of| self.figures.syncs.is_multiple_of(of))
    }
}

impl SimDisk {
    /// An empty disk.
    pub fn new() -> SimDisk {
        SimDisk::default()
    }

    fn state(&self) -> MutexGuard<'_, SimState> {
        self.0.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Writes and syncs so far.
    pub fn operations(&self) -> u64 {
        self.state().operations
    }

    /// From the `n`th write or sync on everything fails, as if the machine had stopped there.
    pub fn freeze_at(&self, n: u64) {
        self.state().frozen_at = Some(n);
    }

    /// Whether an operation has met the stop of [`SimDisk::freeze_at`], or the next one would.
    pub fn is_frozen(&self) -> bool {
        let state = self.state();
        state.frozen_at.is_some_and(|at| state.operations >= at)
    }

    /// The next `n` syncs fail with an I/O error.
    pub fn fail_syncs(&self, n: u32) {
        self.state().failing_syncs = n;
    }

    /// An operation fails with an I/O error, after `others` of its kind.
    pub fn fail(&self, operation: Operation, others: u64) {
        self.state().failures.insert(operation, others);
    }

    /// Forgets what was to fail.
    pub fn heal(&self) {
        let mut state = self.state();
        state.failures.clear();
        state.failing_syncs = 0;
    }

    /// One of so many syncs of files does nothing and says that all is well: a disk that lies, or a sync that was forgotten.
    pub fn skip_syncs_every(&self, n: u64) {
        self.state().skipped_syncs = Some(n);
    }

    /// Takes back a stop that was not met.
    pub fn unfreeze(&self) {
        self.state().frozen_at = None;
    }

    /// Takes choices of the disk's own from `random`.
    pub fn seed(&self, random: SimRandom) {
        self.state().random = Some(random);
    }

    /// Syncs that are looked at ([`DiskFile::poll_sync`]) take up to `nanos` by `clock`.
    pub fn slow(&self, clock: &SimClock, nanos: u64) {
        self.state().slow = Some((clock.clone(), nanos));
    }

    /// What was done so far.
    pub fn figures(&self) -> Figures {
        self.state().figures
    }

    /// Bytes that all files have or have set aside.
    pub fn used(&self) -> u64 {
        self.state().used()
    }

    /// The process has ended and the machine goes on: its caches are there, no file is open, nothing is locked.
    pub fn end_process(&self) {
        let mut state = self.state();
        state.frozen_at = None;
        state.locked = false;
        state.failures.clear();
        state.failing_syncs = 0;
    }

    /// A file's durable length, 0 if there is none of this name.
    pub fn durable_len(&self, name: &str) -> u64 {
        let state = self.state();
        let image = state.names.get(name).and_then(|id| state.files.get(id));
        image.map_or(0, |image| image.durable.len() as u64)
    }

    /// Limits the bytes of all files together.
    pub fn set_quota(&self, bytes: Option<u64>) {
        self.state().quota = bytes;
    }

    /// Flips a bit of a file, synced or not.
    pub fn flip_bit(&self, name: &str, bit: u64) {
        let mut state = self.state();
        let id = state.names.get(name).copied().unwrap_or(u64::MAX);
        if let Some(image) = state.files.get_mut(&id) {
            let at = (bit / 8) as usize;
            for bytes in [&mut image.live, &mut image.durable] {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= 1 << (bit % 8);
                }
            }
        }
    }

    /// The disk that a machine finds after a crash now.
    pub fn after_crash(&self, crash: Crash, random: &mut SimRandom) -> SimDisk {
        let state = self.state();
        let mut files = BTreeMap::new();
        let names = if crash == Crash::KeepAll { &state.names } else { &state.durable_names };
        for id in names.values() {
            let Some(image) = state.files.get(id) else { continue };
            let mut bytes = image.durable.clone();
            match crash {
                Crash::LoseUnsynced => {}
                Crash::KeepAll => bytes = image.live.clone(),
                Crash::AnySectors | Crash::FlipBits => {
                    for (offset, written) in &image.pending {
                        survive(&mut bytes, *offset, written, crash == Crash::FlipBits, random);
                    }
                }
            }
            let allocated = bytes.len() as u64;
            let image = Image { live: bytes.clone(), durable: bytes, allocated, ..Image::default() };
            files.insert(*id, image);
        }
        SimDisk(Arc::new(Mutex::new(SimState {
            files,
            names: names.clone(),
            durable_names: names.clone(),
            next_file: state.next_file,
            quota: state.quota,
            slow: state.slow.clone(),
            random: state.random.clone(),
            figures: state.figures,
            skipped_syncs: state.skipped_syncs,
            ..SimState::default()
        })))
    }
}

/// Lets each sector of an unsynced write survive with even odds.
fn survive(bytes: &mut Vec<u8>, offset: u64, written: &[u8], flip: bool, random: &mut SimRandom) {
    let mut at = 0;
    while at < written.len() {
        let position = offset as usize + at;
        let len = (SECTOR - position % SECTOR).min(written.len() - at);
        if random.below(2) == 0 {
            if bytes.len() < position + len {
                bytes.resize(position + len, 0);
            }
            // A sector that is written with the bytes it has keeps them: that is what rewriting a log in place relies on.
            let differs = bytes[position..position + len] != written[at..at + len];
            bytes[position..position + len].copy_from_slice(&written[at..at + len]);
            if flip && differs && random.below(4) == 0 {
                let bit = random.below(len as u64 * 8);
                bytes[position + (bit / 8) as usize] ^= 1 << (bit % 8);
            }
        }
        at += len;
    }
}

impl Disk for SimDisk {
    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        let mut state = self.state();
        state.step()?;
        if state.names.contains_key(name) {
            return Err(io::Error::from(io::ErrorKind::AlreadyExists));
        }
        let id = state.next_file;
        state.next_file += 1;
        state.files.insert(id, Image::default());
        state.names.insert(name.to_string(), id);
        Ok(Arc::new(SimFile { disk: self.clone(), id }))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        match self.state().names.get(name) {
            Some(&id) => Ok(Arc::new(SimFile { disk: self.clone(), id })),
            None => Err(io::Error::from(io::ErrorKind::NotFound)),
        }
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut state = self.state();
        state.step()?;
        state.names.remove(name).map(|_| ()).ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut state = self.state();
        state.step()?;
        let id = state.names.remove(from).ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
        state.names.insert(to.to_string(), id);
        Ok(())
    }

    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.state().names.keys().cloned().collect())
    }

    fn sync_directory(&self) -> io::Result<()> {
        let mut state = self.state();
        if state.begin_sync()? {
            return Err(io::Error::other("simulated failure of a sync"));
        }
        state.durable_names = state.names.clone();
        Ok(())
    }

    fn lock(&self) -> io::Result<Box<dyn DiskLock>> {
        let mut state = self.state();
        if state.locked {
            return Err(io::Error::from(io::ErrorKind::WouldBlock));
        }
        state.locked = true;
        Ok(Box::new(SimLock(self.clone())))
    }
}

struct SimLock(SimDisk);

impl DiskLock for SimLock {}

impl Drop for SimLock {
    fn drop(&mut self) {
        self.0.state().locked = false;
    }
}

struct SimFile {
    disk: SimDisk,
    id: u64,
}

impl SimFile {
    fn with<T>(&self, run: impl FnOnce(&mut Image) -> T) -> io::Result<T> {
        let mut state = self.disk.state();
        state.files.get_mut(&self.id).map(run).ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
    }

    fn write(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.with(|image| {
            let end = offset as usize + bytes.len();
            if image.live.len() < end {
                image.live.resize(end, 0);
            }
            image.live[offset as usize..end].copy_from_slice(bytes);
            image.pending.push((offset, bytes.to_vec()));
        })
    }
}

impl DiskFile for SimFile {
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        {
            let mut state = self.disk.state();
            state.step()?;
            state.figures.writes += 1;
            let end = offset + bytes.len() as u64;
            let has = state.files.get(&self.id).map_or(0, |f| f.allocated.max(f.live.len() as u64));
            state.has_room(end.saturating_sub(has))?;
            if state.fails(Operation::Write) {
                let short = state.below(bytes.len() as u64 + 1) as usize;
                drop(state);
                self.write(&bytes[..short], offset)?;
                return Err(io::Error::other("simulated failure of a write"));
            }
        }
        self.write(bytes, offset)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        {
            let mut state = self.disk.state();
            state.figures.reads += 1;
            if state.fails(Operation::Read) {
                return Err(io::Error::other("simulated failure of a read"));
            }
        }
        self.with(|image| {
            let from = (offset as usize).min(image.live.len());
            let n = buffer.len().min(image.live.len() - from);
            buffer[..n].copy_from_slice(&image.live[from..from + n]);
            n
        })
    }

    fn allocate(&self, offset: u64, len: u64) -> io::Result<()> {
        let end = offset + len;
        {
            let mut state = self.disk.state();
            let has = state.files.get(&self.id).map_or(0, |f| f.allocated.max(f.live.len() as u64));
            state.has_room(end.saturating_sub(has))?;
        }
        self.with(|image| {
            if (image.live.len() as u64) < end {
                image.live.resize(end as usize, 0);
            }
            image.allocated = image.allocated.max(end);
        })
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = self.disk.state();
        if state.begin_sync()? {
            return Err(state.fail_sync(self.id));
        }
        let is_skipped = state.is_skipped();
        let image = state.files.get_mut(&self.id).ok_or(io::ErrorKind::NotFound)?;
        image.syncing = None;
        if !is_skipped {
            let n = image.pending.len();
            image.settle(n);
        }
        Ok(())
    }

    fn poll_sync(&self) -> io::Result<bool> {
        let mut state = self.disk.state();
        let Some((clock, nanos)) = state.slow.clone() else {
            drop(state);
            return self.sync().map(|()| true);
        };
        let under_way = state.files.get(&self.id).ok_or(io::ErrorKind::NotFound)?.syncing;
        let Some((n, due)) = under_way else {
            state.step()?;
            let due = clock.monotonic_nanos() + state.below(nanos + 1);
            let image = state.files.get_mut(&self.id).ok_or(io::ErrorKind::NotFound)?;
            image.syncing = Some((image.pending.len(), due));
            return Ok(false);
        };
        if clock.monotonic_nanos() < due {
            return Ok(false);
        }
        if state.begin_sync()? {
            return Err(state.fail_sync(self.id));
        }
        let is_skipped = state.is_skipped();
        let image = state.files.get_mut(&self.id).ok_or(io::ErrorKind::NotFound)?;
        image.syncing = None;
        if !is_skipped {
            image.settle(n);
        }
        Ok(true)
    }

    fn len(&self) -> io::Result<u64> {
        self.with(|image| image.live.len() as u64)
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        self.disk.state().step()?;
        self.with(|image| {
            image.live.resize(len as usize, 0);
            image.allocated = len;
            // A cut is made durable at once: reverting it would be a fault of the file system, not of its user.
            image.durable.truncate(len as usize);
            image.pending.retain(|(offset, _)| *offset < len);
            image.syncing = None;
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_synced_bytes_survive() {
        let disk = SimDisk::new();
        let file = disk.create("a").unwrap();
        file.write_at(b"old", 0).unwrap();
        file.sync().unwrap();
        disk.sync_directory().unwrap();
        file.write_at(b"new", 0).unwrap();
        disk.create("b").unwrap();
        let mut random = SimRandom::new(1);
        let found = disk.after_crash(Crash::LoseUnsynced, &mut random);
        assert_eq!(found.list().unwrap(), ["a"]);
        let mut bytes = [0; 3];
        found.open("a").unwrap().read_at(&mut bytes, 0).unwrap();
        assert_eq!(&bytes, b"old");
        let found = disk.after_crash(Crash::KeepAll, &mut random);
        found.open("a").unwrap().read_at(&mut bytes, 0).unwrap();
        assert_eq!(&bytes, b"new");
    }

    #[test]
    fn a_quota_is_a_full_disk_and_allocation_guards_against_it() {
        let disk = SimDisk::new();
        let file = disk.create("a").unwrap();
        disk.set_quota(Some(1000));
        file.allocate(0, 1000).unwrap();
        file.write_at(&[1; 1000], 0).unwrap();
        assert_eq!(file.write_at(b"x", 1000).unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert_eq!(file.allocate(1000, 1).unwrap_err().kind(), io::ErrorKind::StorageFull);
    }

    #[test]
    fn a_directory_has_one_owner() {
        let disk = SimDisk::new();
        let lock = disk.lock().unwrap();
        assert!(disk.lock().is_err());
        drop(lock);
        assert!(disk.lock().is_ok());
    }
}
