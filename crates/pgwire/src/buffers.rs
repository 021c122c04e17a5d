//! How much the buffers of all connections hold.
//!
//! Responsible for: one sum for the process. Not responsible for: giving memory back (`conn::link`).
//! Invariant: a connection adds and takes back the same bytes. Small buffers are not counted: every connection has them.

use std::sync::atomic::{AtomicI64, Ordering};

/// Relaxed: a statistic.
static BYTES: AtomicI64 = AtomicI64::new(0);
/// A connection is counted anew when its buffers have changed by so much.
const STEP: i64 = 16 << 10;

/// Bytes that buffers of connections hold beyond what each has always.
pub fn buffered_bytes() -> u64 {
    BYTES.load(Ordering::Relaxed).max(0) as u64
}

/// What a connection is counted with.
#[derive(Default)]
pub(crate) struct Counted(i64);

impl Counted {
    /// Says what its buffers hold now.
    #[inline]
    pub fn holds(&mut self, bytes: usize) {
        let change = bytes as i64 - self.0;
        if change.abs() >= STEP {
            BYTES.fetch_add(change, Ordering::Relaxed);
            self.0 = bytes as i64;
        }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        BYTES.fetch_sub(self.0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_buffers_are_counted_while_they_live() {
        let (mut small, mut large) = (Counted::default(), Counted::default());
        small.holds(8 << 10);
        large.holds(1 << 30);
        assert!(buffered_bytes() >= 1 << 30);
        large.holds((1 << 30) + 100);
        assert_eq!((small.0, large.0), (0, 1 << 30));
        drop(large);
        assert!(buffered_bytes() < 1 << 30);
    }
}
