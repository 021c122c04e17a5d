//! The source of failures of the disk and the clock.

use std::collections::BTreeMap;

use env::sim::{Crash, Operation, SimClock, SimDisk, SimRandom};

use crate::trace::Trace;

/// The injector: what it does is chosen by the seed.
#[derive(Debug)]
pub struct Faults {
    /// In ten thousand steps, by kind: full disk, failing operation, clock.
    rates: [u64; 3],
    is_full: bool,
    /// In ten thousand steps, how often a full disk is freed: rarely enough in some runs for the log to use up what it has.
    freed: u64,
    /// How often each kind was done.
    pub done: BTreeMap<&'static str, u64>,
}

impl Faults {
    /// A choice of rates; some kinds are left out.
    pub fn choose(random: &mut SimRandom) -> Faults {
        let rates = [60, 15, 40].map(|rate| random.below(2) * random.below(rate));
        let freed = [12, 1][random.below(2) as usize];
        Faults { rates, is_full: false, freed, done: BTreeMap::new() }
    }

    /// Counts a fault.
    pub fn count(&mut self, kind: &'static str) {
        *self.done.entry(kind).or_default() += 1;
    }

    /// Does something, mostly nothing; `true` if the disk may be full, or fail, from now on.
    pub fn step(&mut self, disk: &SimDisk, clock: &SimClock, random: &mut SimRandom, trace: &mut Trace) -> bool {
        let choice = random.below(10_000);
        if self.is_full && choice < self.freed {
            return self.free(disk, trace);
        }
        if choice < self.rates[0] && !self.is_full {
            let room = random.below(2) * random.below(60_000);
            trace.say(format_args!("the disk has room for {room} bytes"));
            disk.set_quota(Some(disk.used() + room));
            self.is_full = true;
            self.count("full disk");
            return true;
        }
        let choice = choice.saturating_sub(self.rates[0]);
        if choice < self.rates[1] {
            let (operation, kind) = match random.below(2) {
                0 => (Operation::Write, "EIO on write"),
                _ => (Operation::Sync, "EIO on sync"),
            };
            let others = random.below(12);
            trace.say(format_args!("a {operation:?} fails after {others} others"));
            disk.fail(operation, others);
            self.count(kind);
            return true;
        }
        let choice = choice.saturating_sub(self.rates[1]);
        if choice < self.rates[2] {
            let micros = random.below(20_000_000_000) as i64 - 10_000_000_000;
            trace.say(format_args!("the clock is set by {micros} us"));
            clock.jump(micros);
            self.count("clock jump");
        }
        false
    }

    /// There is space again.
    pub fn free(&mut self, disk: &SimDisk, trace: &mut Trace) -> bool {
        if self.is_full {
            trace.say(format_args!("the disk has room again"));
            disk.set_quota(None);
            self.is_full = false;
        }
        false
    }

    /// A way to crash.
    pub fn crash(random: &mut SimRandom) -> Crash {
        [Crash::LoseUnsynced, Crash::KeepAll, Crash::AnySectors, Crash::FlipBits][random.below(4) as usize]
    }
}
