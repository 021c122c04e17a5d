//! Pieces of files that are read ahead of the threads that work on them.
//!
//! Responsible for: keeping the disk and all cores busy, within bounded memory; the error that one thread would find.
//! Not responsible for: what a piece is, how it is read, what is made of it.
//!
//! Readers, which mostly sleep, take numbers in order, read the pieces into memory that goes round, and put them into a queue;
//! workers take whatever is there. **Rule**: the reported error is that of the first piece in order that has one,
//! whichever thread met it and whatever was found behind it meanwhile. It holds because numbers are handed out in order: all
//! pieces before one that failed are taken already, and are worked on to the end; those behind it are given up.
//!
//! Where threads do not run beside each other, each piece is read and worked on in its turn.

use std::collections::VecDeque;
use std::sync::Arc;

use checkpoint::Scratch;
use env::World;
use parking_lot::{Condvar, Mutex, MutexGuard};
use redo::DriverError;

/// Reads that are under way at once: what a disk needs to show all that it has.
const READERS: usize = 4;
/// Pieces that are read and wait, for each worker.
const WAITING: usize = 2;

/// Numbered pieces.
pub(crate) trait Pieces: Send + Sync + 'static {
    /// What a piece is read into; used again.
    type Bytes: Default + Send + 'static;

    /// How many there are.
    fn count(&self) -> usize;

    /// Reads a piece.
    fn read(&self, number: usize, into: &mut Self::Bytes) -> Result<(), DriverError>;

    /// Works on a piece that was read.
    fn work(&self, number: usize, bytes: &mut Self::Bytes, scratch: &mut Scratch) -> Result<(), DriverError>;
}

struct ReadAheadState<B> {
    /// The next piece to be read.
    next: usize,
    /// Those that are read.
    ready: VecDeque<(usize, B)>,
    /// Memory that nobody uses.
    free: Vec<B>,
    /// Readers that are not over.
    readers: usize,
    /// The first error, by the piece that has it.
    failed: Option<(usize, DriverError)>,
}

impl<B> ReadAheadState<B> {
    fn is_behind_failure(&self, number: usize) -> bool {
        self.failed.as_ref().is_some_and(|(first, _)| *first < number)
    }

    fn fail(&mut self, number: usize, error: DriverError) {
        if !self.is_behind_failure(number) {
            self.failed = Some((number, error));
        }
    }
}

struct Ahead<P: Pieces> {
    pieces: P,
    state: Mutex<ReadAheadState<P::Bytes>>,
    /// A piece is ready, or there will be none.
    filled: Condvar,
    /// Memory is free, or not needed.
    freed: Condvar,
}

impl<P: Pieces> Ahead<P> {
    /// The next piece, and memory for it.
    fn take(&self) -> Option<(usize, P::Bytes)> {
        let mut state = self.state.lock();
        loop {
            let number = state.next;
            if number == self.pieces.count() || state.is_behind_failure(number) {
                return None;
            }
            if let Some(bytes) = state.free.pop() {
                state.next += 1;
                return Some((number, bytes));
            }
            self.freed.wait(&mut state);
        }
    }

    fn read_all(&self) {
        while let Some((number, mut bytes)) = self.take() {
            let read = self.pieces.read(number, &mut bytes);
            let mut state = self.state.lock();
            match read {
                Ok(()) => {
                    state.ready.push_back((number, bytes));
                    self.filled.notify_one();
                }
                Err(error) => {
                    state.fail(number, error);
                    self.give_back(state, bytes);
                }
            }
        }
        self.state.lock().readers -= 1;
        self.filled.notify_all();
        self.freed.notify_all();
    }

    fn give_back(&self, mut state: MutexGuard<'_, ReadAheadState<P::Bytes>>, bytes: P::Bytes) {
        state.free.push(bytes);
        drop(state);
        self.freed.notify_one();
    }

    fn work_all(&self) {
        let mut scratch = Scratch::default();
        let mut state = self.state.lock();
        loop {
            let Some((number, mut bytes)) = state.ready.pop_front() else {
                if state.readers == 0 {
                    return;
                }
                self.filled.wait(&mut state);
                continue;
            };
            let worked = match state.is_behind_failure(number) {
                true => Ok(()),
                false => MutexGuard::unlocked(&mut state, || self.pieces.work(number, &mut bytes, &mut scratch)),
            };
            worked.unwrap_or_else(|error| state.fail(number, error));
            self.give_back(state, bytes);
            state = self.state.lock();
        }
    }
}

/// Reads and works on all pieces with so many workers; the first error, in the order of pieces, ends it.
pub(crate) fn run<P: Pieces>(world: &World, threads: usize, name: &str, pieces: P) -> Result<(), DriverError> {
    if !world.spawn.runs_beside() {
        let (mut bytes, mut scratch) = (P::Bytes::default(), Scratch::default());
        return (0..pieces.count()).try_for_each(|number| {
            pieces.read(number, &mut bytes)?;
            pieces.work(number, &mut bytes, &mut scratch)
        });
    }
    let readers = READERS.min(pieces.count());
    let free = (0..readers + WAITING * threads).map(|_| P::Bytes::default()).collect();
    let state = ReadAheadState { next: 0, ready: VecDeque::new(), free, readers, failed: None };
    let ahead = Arc::new(Ahead { pieces, state: Mutex::new(state), filled: Condvar::new(), freed: Condvar::new() });
    let start = |name: &str, run: fn(&Ahead<P>)| {
        let ahead = Arc::clone(&ahead);
        world.spawn.spawn(name, Box::new(move || run(&ahead)))
    };
    let reading: Vec<_> = (0..readers).map(|_| start("read-ahead", Ahead::read_all)).collect();
    let working: Vec<_> = (1..threads).map(|_| start(name, Ahead::work_all)).collect();
    ahead.work_all();
    reading.into_iter().chain(working).for_each(|thread| thread.join());
    let failed = ahead.state.lock().failed.take();
    failed.map_or(Ok(()), |(_, error)| Err(error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use env::sim::{SimClock, SimDisk, SimTasks};
    use std::io;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Pieces of which some cannot be read and others are no good; later ones are found out sooner.
    struct Some {
        count: usize,
        unreadable: Vec<usize>,
        damaged: Vec<usize>,
        worked: Arc<AtomicUsize>,
    }

    impl Pieces for Some {
        type Bytes = Vec<u8>;

        fn count(&self) -> usize {
            self.count
        }

        fn read(&self, number: usize, into: &mut Vec<u8>) -> Result<(), DriverError> {
            if self.unreadable.contains(&number) {
                std::thread::sleep(std::time::Duration::from_micros(200 - (number % 100) as u64));
                return Err(DriverError::Failed(io::Error::other(number.to_string())));
            }
            into.clear();
            into.push(number as u8);
            Ok(())
        }

        fn work(&self, number: usize, bytes: &mut Vec<u8>, _: &mut Scratch) -> Result<(), DriverError> {
            assert_eq!(bytes[..], [number as u8]);
            if self.damaged.contains(&number) {
                std::thread::sleep(std::time::Duration::from_micros(300 - (number % 100) as u64));
                return Err(DriverError::Corrupt(number.to_string()));
            }
            self.worked.fetch_add(1, Ordering::Relaxed);
            Ok(())
        }
    }

    fn worlds() -> [World; 2] {
        let clock = SimClock::default();
        let world = |spawn| World { disk: Arc::new(SimDisk::new()), clock: Arc::new(clock.clone()), spawn };
        [world(Arc::new(env::real::Threads)), world(Arc::new(SimTasks::new(&clock)))]
    }

    /// What comes of some pieces, and how many were worked on.
    fn outcome(world: &World, threads: usize, count: usize, bad: (Vec<usize>, Vec<usize>)) -> (Option<String>, usize) {
        let worked = Arc::new(AtomicUsize::new(0));
        let pieces = Some { count, unreadable: bad.0, damaged: bad.1, worked: Arc::clone(&worked) };
        let error = run(world, threads, "work", pieces).err().map(|error| error.to_string());
        (error, worked.load(Ordering::Relaxed))
    }

    #[test]
    fn all_pieces_are_worked_on_once() {
        for world in worlds() {
            for (threads, count) in [(1, 0), (1, 1), (2, 3), (3, 100), (1, 50), (8, 7)] {
                assert_eq!(outcome(&world, threads, count, (vec![], vec![])), (None, count));
            }
        }
    }

    #[test]
    fn the_first_error_in_order_is_told() {
        for world in worlds() {
            for (threads, round) in (1..4).flat_map(|threads| (0..20).map(move |round| (threads, round))) {
                let first = 10 + round;
                // Those behind the first are met while that is still looked at.
                let (error, worked) =
                    outcome(&world, threads, 100, (vec![first + 1, first + 3], vec![first, first + 2]));
                assert_eq!(error, Option::Some(format!("the log is damaged: {first}")), "{threads} threads");
                assert!((first..100).contains(&worked), "{threads} threads: {worked} of those before {first}");
                let (error, worked) = outcome(&world, threads, 100, (vec![first, 99], vec![first + 1, first + 2]));
                assert_eq!(error, Option::Some(format!("the log failed: {first}")), "{threads} threads");
                assert!((first..100).contains(&worked), "{threads} threads: {worked} of those before {first}");
            }
        }
    }
}
