//! Networks from which a role has logged in of late: if guesses come from there, the role's own clients are there, too.
//!
//! Only a right password puts one here, and there is room for many networks of a role; a role that comes from ever new ones pushes out
//! its own.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::origin::Key;

/// So long a login is remembered.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// Networks of roles that are kept.
pub(super) const TRUSTED_MAX: usize = 8192;

/// When each role logged in last from each network.
#[derive(Debug, Default)]
pub(super) struct Trusted(BTreeMap<Key, Instant>);

impl Trusted {
    pub(super) fn has(&self, key: Key, now: Instant) -> bool {
        self.0.get(&key).is_some_and(|last| now < *last + DAY)
    }

    pub(super) fn add(&mut self, key: Key, now: Instant) {
        if let Some(last) = self.0.get_mut(&key) {
            *last = now;
            return;
        }
        if self.0.len() >= TRUSTED_MAX {
            self.0.retain(|_, last| now < *last + DAY);
        }
        if self.0.len() >= TRUSTED_MAX {
            let mut counts = BTreeMap::new();
            self.0.keys().for_each(|key| *counts.entry(key.role).or_insert(0) += 1);
            let widest = counts.into_iter().max_by_key(|(_, count)| *count).map(|(role, _)| role);
            let of_widest = self.0.iter().filter(|(key, _)| Some(key.role) == widest);
            let oldest = of_widest.min_by_key(|(_, last)| **last).map(|(key, _)| *key);
            oldest.and_then(|key| self.0.remove(&key));
        }
        self.0.insert(key, now);
    }

    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.0.len()
    }
}
