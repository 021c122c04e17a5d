//! The logins that wait. Their number is bounded; when it is reached, a login of the largest crowd is refused.
//!
//! **Invariants.** No login is refused while there are places. A trusted one is never refused in favour of one that is not. Nobody is
//! turned away for one of a site, of a network in it, or of a role there, that has as many waiting: so a crowd from elsewhere, or after another role,
//! takes no place from who comes alone.

use std::collections::BTreeMap;
use std::time::Instant;

use super::lines::At;
use super::origin::Key;

/// One that waits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiter {
    pub(super) key: Key,
    pub(super) at: At,
    pub(super) is_trusted: bool,
    /// When it is heard.
    pub(super) due: Instant,
}

/// All that wait, by the number of their coming.
#[derive(Debug)]
pub(super) struct Room {
    pub(super) places: usize,
    last: u64,
    waiters: BTreeMap<u64, Waiter>,
}

impl Room {
    pub(super) fn new(places: usize) -> Room {
        Room { places, last: 0, waiters: BTreeMap::new() }
    }

    /// Who has to go for one that comes: `Ok(None)` if nobody has to, an error if it is the one that comes.
    pub(super) fn place_for(&self, key: Key, is_trusted: bool) -> Result<Option<u64>, Full> {
        if self.waiters.len() < self.places {
            return Ok(None);
        }
        let any_strangers = self.waiters.values().any(|waiter| !waiter.is_trusted);
        if any_strangers {
            let strangers = self.waiters.iter().filter(|(_, waiter)| !waiter.is_trusted);
            return give_way(strangers.map(|(id, waiter)| (*id, waiter.key)).collect(), key, is_trusted).map(Some);
        }
        if !is_trusted {
            return Err(Full);
        }
        give_way(self.waiters.iter().map(|(id, waiter)| (*id, waiter.key)).collect(), key, false).map(Some)
    }

    /// Takes a place; the number under which it is left.
    pub(super) fn enter(&mut self, waiter: Waiter) -> u64 {
        self.last += 1;
        self.waiters.insert(self.last, waiter);
        self.last
    }

    /// When the one with this number is heard; never, if it was turned away.
    pub(super) fn due(&self, id: u64) -> Option<Instant> {
        self.waiters.get(&id).map(|waiter| waiter.due)
    }

    pub(super) fn leave(&mut self, id: u64) -> Option<Waiter> {
        self.waiters.remove(&id)
    }

    /// Those that wait with this key are trusted now, and heard by then.
    pub(super) fn trust(&mut self, key: Key, by: Instant) {
        for waiter in self.waiters.values_mut().filter(|waiter| waiter.key == key && !waiter.is_trusted) {
            waiter.is_trusted = true;
            waiter.due = waiter.due.min(by);
        }
    }

    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.waiters.len()
    }
}

/// There is no place for one that comes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Full;

/// The newest of the largest crowd among `waiters`, or one of them at any rate if `must` is set.
fn give_way(mut waiters: Vec<(u64, Key)>, key: Key, must: bool) -> Result<u64, Full> {
    let groups: [fn(&Key) -> Key; 3] =
        [|key| Key { network: key.network.site(), role: 0 }, |key| Key { network: key.network, role: 0 }, |key| *key];
    for group in groups {
        let mut crowds: BTreeMap<Key, (usize, u64)> = BTreeMap::new();
        for (id, waiter) in &waiters {
            let crowd = crowds.entry(group(waiter)).or_insert((0, 0));
            *crowd = (crowd.0 + 1, crowd.1.max(*id));
        }
        let own = crowds.get(&group(&key)).map_or(0, |crowd| crowd.0);
        let Some((count, newest)) = crowds.into_values().max() else { return Err(Full) };
        if count > own + 1 || must {
            return Ok(newest);
        }
        waiters.retain(|(_, waiter)| group(waiter) == group(&key));
    }
    Err(Full)
}
