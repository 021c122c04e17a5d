//! The channels that a session listens to, in the order in which it began to.

use std::collections::BTreeMap;
use std::sync::Arc;

use base::work::{Count, beat};
use rustc_hash::FxHashMap;

/// Channels in order, each once. None is looked for among all others.
#[derive(Default)]
pub struct Channels {
    /// By number; a later one has a larger number.
    ordered: BTreeMap<u64, Arc<str>>,
    numbers: FxHashMap<Arc<str>, u64>,
    last: u64,
}

impl Channels {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.ordered.len()
    }

    /// In order.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<str>> {
        self.ordered.values()
    }

    /// Adds a channel behind all others. Whether it is new.
    pub(super) fn push(&mut self, channel: &Arc<str>) -> bool {
        if self.numbers.contains_key(channel) {
            return false;
        }
        self.last += 1;
        self.numbers.insert(Arc::clone(channel), self.last);
        self.ordered.insert(self.last, Arc::clone(channel));
        true
    }

    /// Removes a channel. Whether it was there.
    pub(super) fn remove(&mut self, channel: &Arc<str>) -> bool {
        self.numbers.remove(channel).is_some_and(|number| self.ordered.remove(&number).is_some())
    }

    /// Drops them, counted.
    pub(super) fn discard(mut self) {
        self.numbers.drain().counted(16).for_each(drop);
        while self.ordered.pop_first().is_some() {
            beat(16);
        }
    }

    /// The same once more; counted.
    pub(super) fn copy(&self) -> Channels {
        let mut copy = Channels::default();
        self.iter().counted(64).for_each(|channel| _ = copy.push(channel));
        copy
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channels_keep_their_order() {
        let mut channels = Channels::default();
        let all: Vec<Arc<str>> = ["a", "b", "c"].map(Arc::from).to_vec();
        assert!(all.iter().all(|channel| channels.push(channel)) && !channels.push(&all[1]));
        assert!(channels.remove(&all[0]) && !channels.remove(&all[0]) && channels.push(&all[0]));
        let shown: Vec<&str> = channels.iter().map(|channel| &**channel).collect();
        assert_eq!((shown.as_slice(), channels.len(), channels.copy().len()), (&["b", "c", "a"][..], 3, 3));
    }
}
