//! The lines in which proofs wait, one for each network with a role, and what they cost.
//!
//! A proof waits in one line at most: that of its network and role once that has had its free failures; else that of the site once all
//! lines of the site together have had theirs, which are failures that were free before; else everybody's, in the same way. So a thousand wrong
//! passwords for one role count three times for the other roles of the site, and one site counts sixty times for everybody.
//!
//! **Invariants.** A line that is not free lets the next proof come no sooner than its pause. Those that wait in it count as failures to
//! come, so that many at once pay what one after the other would.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::origin::{Key, Network};

/// After so long without a failure a line is free again.
pub(super) const MEMORY: Duration = Duration::from_secs(15 * 60);
/// Lines of a network and role that are kept, …
pub(super) const KEYS_MAX: usize = 8192;
/// … and of sites.
pub(super) const SITES_MAX: usize = 1024;
/// The first pause; each failure doubles it.
pub(super) const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// What failures cost.
struct Tariff {
    free: u32,
    pause_max: Duration,
}

const OF_KEY: Tariff = Tariff { free: 3, pause_max: Duration::from_secs(10) };
const OF_SITE: Tariff = Tariff { free: 60, pause_max: Duration::from_secs(10) };
const OF_ALL: Tariff = Tariff { free: 1000, pause_max: FIRST_PAUSE };

impl Tariff {
    /// Zero while it is free.
    fn pause(&self, failures: u32) -> Duration {
        match failures.checked_sub(self.free) {
            None => Duration::ZERO,
            Some(more) => FIRST_PAUSE.saturating_mul(1 << more.min(10)).min(self.pause_max),
        }
    }
}

/// Which line.
#[derive(Clone, Copy, Debug)]
pub(super) enum At {
    Key(Key),
    Site(Network),
    All,
}

impl At {
    fn tariff(self) -> &'static Tariff {
        match self {
            At::Key(_) => &OF_KEY,
            At::Site(_) => &OF_SITE,
            At::All => &OF_ALL,
        }
    }
}

#[derive(Debug)]
struct Line {
    failures: u32,
    waiting: u32,
    last_failure: Instant,
    /// When the next proof may come.
    next: Instant,
}

impl Line {
    fn new(now: Instant) -> Line {
        Line { failures: 0, waiting: 0, last_failure: now, next: now }
    }

    fn pause(&self, tariff: &Tariff, now: Instant) -> Duration {
        if now >= self.last_failure + MEMORY {
            return Duration::ZERO;
        }
        tariff.pause(self.failures.saturating_add(self.waiting))
    }

    fn failed(&mut self, tariff: &Tariff, now: Instant) {
        if now >= self.last_failure + MEMORY {
            self.failures = 0;
        }
        self.failures = self.failures.saturating_add(1);
        self.last_failure = now;
        self.next = self.next.max(now + tariff.pause(self.failures));
    }
}

/// All lines.
#[derive(Debug, Default)]
pub(super) struct Lines {
    of_keys: BTreeMap<Key, Line>,
    of_sites: BTreeMap<Network, Line>,
    of_all: Option<Line>,
}

impl Lines {
    fn get(&self, at: At) -> Option<&Line> {
        match at {
            At::Key(key) => self.of_keys.get(&key),
            At::Site(site) => self.of_sites.get(&site),
            At::All => self.of_all.as_ref(),
        }
    }

    fn get_mut(&mut self, at: At) -> Option<&mut Line> {
        match at {
            At::Key(key) => self.of_keys.get_mut(&key),
            At::Site(site) => self.of_sites.get_mut(&site),
            At::All => self.of_all.as_mut(),
        }
    }

    fn is_free(&self, at: At, now: Instant) -> bool {
        self.get(at).is_none_or(|line| line.pause(at.tariff(), now).is_zero())
    }

    /// The line in which a proof has to stand; none if it is free. One that is trusted pays for its own failures only.
    pub(super) fn of(&self, key: Key, is_trusted: bool, now: Instant) -> Option<At> {
        let others = [At::Site(key.network.site()), At::All];
        let others = if is_trusted { &[] } else { &others[..] };
        [At::Key(key)].iter().chain(others).copied().find(|at| !self.is_free(*at, now))
    }

    /// How long the next one in a line has to wait if nobody waits for longer than `patience`.
    pub(super) fn wait(&self, at: At, patience: Duration, now: Instant) -> Duration {
        self.get(at).map_or(Duration::ZERO, |line| line.next.saturating_duration_since(now).min(patience))
    }

    /// Takes the next turn of a line: those who come later have theirs after a pause, as far as their patience allows.
    pub(super) fn take_turn(&mut self, at: At, patience: Duration, now: Instant) {
        let Some(line) = self.get_mut(at) else { return };
        let pause = line.pause(at.tariff(), now);
        line.next = (line.next.max(now) + pause).min(now + patience);
    }

    /// Somebody waits in a line, for a turn that was taken.
    pub(super) fn enter(&mut self, at: At) {
        if let Some(line) = self.get_mut(at) {
            line.waiting = line.waiting.saturating_add(1);
        }
    }

    /// Somebody waits no longer.
    pub(super) fn leave(&mut self, at: At) {
        if let Some(line) = self.get_mut(at) {
            line.waiting = line.waiting.saturating_sub(1);
        }
    }

    /// A proof was wrong.
    pub(super) fn failed(&mut self, key: Key, is_trusted: bool, now: Instant) {
        let site = At::Site(key.network.site());
        let was_free = self.is_free(At::Key(key), now);
        self.make_room(key, now);
        self.of_keys.entry(key).or_insert_with(|| Line::new(now)).failed(&OF_KEY, now);
        if is_trusted || !was_free {
            return;
        }
        let was_free = self.is_free(site, now);
        self.of_sites.entry(key.network.site()).or_insert_with(|| Line::new(now)).failed(&OF_SITE, now);
        if was_free {
            self.of_all.get_or_insert_with(|| Line::new(now)).failed(&OF_ALL, now);
        }
    }

    /// Forgets what is too much for one more. A key goes from the site that has most of them. What it was given for free is counted one
    /// level above, so that it does not pay to be forgotten.
    fn make_room(&mut self, key: Key, now: Instant) {
        let is_full = |lines: &Lines| lines.of_keys.len() >= KEYS_MAX && !lines.of_keys.contains_key(&key);
        if is_full(self) {
            self.of_keys.retain(|_, line| now < line.last_failure + MEMORY);
        }
        if is_full(self) {
            let mut counts = BTreeMap::new();
            self.of_keys.keys().for_each(|key| *counts.entry(key.network.site()).or_insert(0) += 1);
            let largest = counts.into_iter().max_by_key(|(_, count)| *count).map(|(site, _)| site);
            let of_largest = self.of_keys.iter().filter(|(key, _)| Some(key.network.site()) == largest);
            let oldest = of_largest.min_by_key(|(_, line)| line.last_failure).map(|(key, _)| *key);
            oldest.and_then(|key| self.of_keys.remove(&key));
        }
        if self.of_sites.len() >= SITES_MAX && !self.of_sites.contains_key(&key.network.site()) {
            let oldest = self.of_sites.iter().min_by_key(|(_, line)| line.last_failure).map(|(site, _)| *site);
            oldest.and_then(|site| self.of_sites.remove(&site));
        }
    }

    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.of_keys.len() + self.of_sites.len()
    }
}
