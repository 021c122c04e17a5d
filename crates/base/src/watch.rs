//! What a thread that serves many is doing, for another one to see.
//!
//! Responsible for: notes that a core's thread makes with plain stores, and the list of such threads.
//! Not responsible for: what is made of them.
//! Invariants: only the thread itself writes its notes; a reader may see them a moment late and not of one instant.

use std::cell::Cell;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering::Relaxed};

/// The notes of one thread.
#[derive(Debug)]
#[repr(align(128))]
pub struct Watched {
    /// Turns begun and ended: odd while something runs.
    turns: AtomicU64,
    /// Number of the session that runs; 0 for none.
    session: AtomicI32,
    /// OID of the function called last, or one of [`Phase`].
    what: AtomicU32,
}

/// Work of a statement that is no call of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Phase {
    /// Anything else.
    Other = u32::MAX - 15,
    /// Reading a statement's text.
    Parse,
    /// Finding out what it means, and how to do it.
    Plan,
    /// ORDER BY.
    Sort,
    /// GROUP BY, aggregates.
    Aggregate,
    /// A join's hash table.
    Hash,
}

impl Phase {
    /// Its name; `None` for the OID of a function.
    pub fn name(what: u32) -> Option<&'static str> {
        const NAMES: [&str; 6] = ["execution", "parsing", "planning", "sort", "aggregate", "hash table"];
        let at = what.checked_sub(Phase::Other as u32)?;
        Some(NAMES.get(at as usize).copied().unwrap_or(NAMES[0]))
    }
}

impl Watched {
    const fn new() -> Watched {
        Watched { turns: AtomicU64::new(0), session: AtomicI32::new(0), what: AtomicU32::new(Phase::Other as u32) }
    }

    /// A turn begins, or is over.
    #[inline]
    pub fn turns(&self) {
        self.turns.store(self.turns.load(Relaxed).wrapping_add(1), Relaxed);
    }

    /// The number of turns begun and ended; odd while one lasts.
    pub fn turn(&self) -> u64 {
        self.turns.load(Relaxed)
    }

    /// The session that runs, and what it does.
    pub fn doing(&self) -> (i32, u32) {
        (self.session.load(Relaxed), self.what.load(Relaxed))
    }
}

/// For threads that nobody watches.
static NOBODY: Watched = Watched::new();

static THREADS: Mutex<Vec<&'static Watched>> = Mutex::new(Vec::new());

thread_local! {
    static OWN: Cell<&'static Watched> = const { Cell::new(&NOBODY) };
}

/// Has the calling thread watched for the rest of its life. There are as many such threads as cores.
pub fn this_thread() -> &'static Watched {
    let own: &'static Watched = Box::leak(Box::new(Watched::new()));
    THREADS.lock().unwrap_or_else(PoisonError::into_inner).push(own);
    OWN.set(own);
    own
}

/// The threads that are watched, in the order they began.
pub fn threads() -> Vec<&'static Watched> {
    THREADS.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Notes which session runs; answers which one was noted.
#[inline]
pub fn session(pid: i32) -> i32 {
    let own = OWN.get();
    let before = own.session.load(Relaxed);
    own.session.store(pid, Relaxed);
    before
}

/// Notes the call of a function.
#[inline]
pub fn calls(oid: u32) {
    OWN.get().what.store(oid, Relaxed);
}

/// Notes what is done by no function.
#[inline]
pub fn does(phase: Phase) {
    OWN.get().what.store(phase as u32, Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_seen_from_elsewhere() {
        std::thread::spawn(|| {
            let own = this_thread();
            own.turns();
            assert_eq!(session(7), 0);
            calls(1254);
        })
        .join()
        .unwrap();
        let threads = threads();
        let noted = threads.iter().find(|thread| thread.doing() == (7, 1254));
        assert_eq!(noted.unwrap().turn(), 1);
        assert_eq!(Phase::name(1254), None);
        assert_eq!(Phase::name(Phase::Sort as u32), Some("sort"));
    }
}
