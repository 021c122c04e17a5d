//! Memory asked for before it is read.
//!
//! Responsible for: the hint to the processor.
//! Not responsible for: who is worth it. One access is not: the hint pays where the misses of several overlap.

/// Bytes that come at once.
pub(crate) const LINE: usize = 64;

/// Asks for the line of `at`. A hint: it reads nothing, and any address will do.
#[inline]
pub(crate) fn line<T>(at: *const T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a hint neither reads nor faults, whatever the address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}
