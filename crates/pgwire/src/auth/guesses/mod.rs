//! Sources of wrong passwords, and how long each of them waits before the next proof is checked.
//!
//! **Requirement**: passwords cannot be guessed fast, by one connection after the other or by many together; a client with the right
//! one waits as little as that allows, and wrong passwords of others do not lock it out. **Rule**: the proof is checked, and a failure is
//! counted, in one step, and before it comes a wait. A network that has proved a role's password within a day is trusted with this role and
//! waits a second at most. All others wait in lines ([`lines`]), longer with each failure, to an end. Who waits holds no
//! thread and no place for clients, but one in a room of its own ([`room`]); so many wait, and for so long, and that bounds the guesses of
//! all networks together. When the room is full, one of the largest crowd is refused, and its proof is not checked.
//! **Alternatives**: decision 0018.
//!
//! All of it is plain state and a time that the caller tells, which never goes back.

mod lines;
pub(crate) mod origin;
mod room;
mod trusted;

use std::hash::RandomState;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use self::lines::Lines;
use self::origin::Key;
use self::room::{Full, Room, Waiter};
use self::trusted::Trusted;
use crate::Peer;

/// The longest wait of who is trusted, …
const PATIENCE_TRUSTED: Duration = Duration::from_secs(1);
/// … and of all others. A login may take twice as long.
const PATIENCE: Duration = Duration::from_secs(30);
/// Places in the room. Who waits costs little, so that a server with few places for clients is no easier to crowd.
pub(crate) const PLACES: usize = 256;

/// What is known of those who log in.
#[derive(Debug)]
pub(crate) struct Guesses {
    names: RandomState,
    state: Mutex<GuessCounts>,
}

#[derive(Debug)]
struct GuessCounts {
    lines: Lines,
    trusted: Trusted,
    room: Room,
}

impl GuessCounts {
    fn leave(&mut self, id: u64) {
        if let Some(waiter) = self.room.leave(id) {
            self.lines.leave(waiter.at);
        }
    }
}

/// When a proof is looked at.
#[derive(Debug)]
pub(crate) enum Turn<'a> {
    /// Now.
    Now,
    /// After a wait.
    Wait(Waiting<'a>),
    /// Never: there is no place to wait.
    Never,
}

/// A place in the room, left when it is dropped.
#[derive(Debug)]
pub(crate) struct Waiting<'a> {
    guesses: &'a Guesses,
    id: u64,
}

impl Waiting<'_> {
    /// How long to wait still; `None` if the place is lost. It may get shorter meanwhile.
    pub(crate) fn remaining(&self, now: Instant) -> Option<Duration> {
        self.guesses.state().room.due(self.id).map(|due| due.saturating_duration_since(now))
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.guesses.state().leave(self.id);
    }
}

impl Default for Guesses {
    fn default() -> Guesses {
        let state = GuessCounts { lines: Lines::default(), trusted: Trusted::default(), room: Room::new(PLACES) };
        Guesses { names: RandomState::new(), state: Mutex::new(state) }
    }
}

impl Guesses {
    fn state(&self) -> MutexGuard<'_, GuessCounts> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// When the proof that came now may be looked at. The turn is taken.
    pub(crate) fn turn(&self, peer: &Peer, role: &str, now: Instant) -> Turn<'_> {
        let key = Key::new(peer, role, &self.names);
        let mut state = self.state();
        let GuessCounts { lines, trusted, room } = &mut *state;
        let is_trusted = trusted.has(key, now);
        let Some(at) = lines.of(key, is_trusted, now) else { return Turn::Now };
        let patience = if is_trusted { PATIENCE_TRUSTED } else { PATIENCE };
        let wait = lines.wait(at, patience, now);
        if wait.is_zero() {
            lines.take_turn(at, patience, now);
            return Turn::Now;
        }
        match room.place_for(key, is_trusted) {
            Ok(None) => {}
            Ok(Some(another)) => state.leave(another),
            Err(Full) => return Turn::Never,
        }
        state.lines.take_turn(at, patience, now);
        state.lines.enter(at);
        let id = state.room.enter(Waiter { key, at, is_trusted, due: now + wait });
        Turn::Wait(Waiting { guesses: self, id })
    }

    /// A proof was wrong.
    pub(crate) fn failed(&self, peer: &Peer, role: &str, now: Instant) {
        let key = Key::new(peer, role, &self.names);
        let mut state = self.state();
        let is_trusted = state.trusted.has(key, now);
        state.lines.failed(key, is_trusted, now);
    }

    /// A proof was right. What was wrong before is not forgotten: who may log in could have others guess for ever.
    pub(crate) fn succeeded(&self, peer: &Peer, role: &str, now: Instant) {
        let key = Key::new(peer, role, &self.names);
        let mut state = self.state();
        state.trusted.add(key, now);
        state.room.trust(key, now + PATIENCE_TRUSTED);
    }
}

#[cfg(test)]
mod tests;
