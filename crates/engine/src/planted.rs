//! Faults that the simulator plants to see whether it finds them. Of one thread; nothing of it is in a release build.

use std::cell::Cell;

/// A fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Planted {
    /// The lock of a row is given back as soon as it is held.
    LockGoesEarly,
    /// A row gets no entry in an index that is not unique.
    LostIndexEntry,
}

/// It strikes at one of so many occasions.
const EVERY: u32 = 16;

thread_local! {
    static PLANTED: Cell<Option<(Planted, u32)>> = const { Cell::new(None) };
}

/// Plants a fault for the shards of this thread, or takes it away.
pub fn plant(fault: Option<Planted>) {
    PLANTED.set(fault.map(|fault| (fault, 0)));
}

/// Whether a fault strikes now.
#[inline]
pub(crate) fn strikes(fault: Planted) -> bool {
    if !cfg!(debug_assertions) {
        return false;
    }
    match PLANTED.get() {
        Some((planted, occasions)) if planted == fault => {
            PLANTED.set(Some((planted, occasions + 1)));
            occasions % EVERY == EVERY - 1
        }
        _ => false,
    }
}
