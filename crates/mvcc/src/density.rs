//! How densely rows lie in memory.
//!
//! Responsible for: the bytes of versions in each stretch of memory of the size of the allocator's pages, and which stretches are sparse.
//! Not responsible for: finding versions, moving them (`table`).
//! Invariants: a guess. What else lies in a stretch is not known, and versions come and go while they are counted; nothing but where
//! a version lies may depend on it.

use rustc_hash::FxHashMap;

/// Bytes of a stretch: a page of mimalloc for blocks of one size, which goes back to the system when the last of them is free.
const STRETCH: usize = 64 << 10;
/// Bytes below which a stretch is sparse.
const SPARSE: usize = STRETCH / 10 * 7;

/// Bytes of versions, by stretch.
#[derive(Debug, Default)]
pub struct Density(FxHashMap<usize, u32>);

impl Density {
    /// A block of so many bytes is in use.
    pub(crate) fn add(&mut self, block: *const u8, bytes: usize) {
        let sum = self.0.entry(block.addr() / STRETCH).or_default();
        *sum = sum.saturating_add(u32::try_from(bytes).unwrap_or(u32::MAX));
    }

    /// A block is no longer in use.
    pub(crate) fn remove(&mut self, block: *const u8, bytes: usize) {
        if let Some(sum) = self.0.get_mut(&(block.addr() / STRETCH)) {
            *sum = sum.saturating_sub(u32::try_from(bytes).unwrap_or(u32::MAX));
        }
    }

    /// Whether little is in use where a block lies.
    pub(crate) fn is_sparse(&self, block: *const u8) -> bool {
        self.0.get(&(block.addr() / STRETCH)).is_some_and(|sum| (*sum as usize) < SPARSE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stretch_is_sparse_until_it_has_most_of_its_bytes() {
        let mut density = Density::default();
        let at = |address: usize| std::ptr::without_provenance::<u8>(address);
        assert!(!density.is_sparse(at(STRETCH)), "nothing is known of it");
        density.add(at(STRETCH), 1000);
        assert!(density.is_sparse(at(STRETCH + 999)) && !density.is_sparse(at(2 * STRETCH)));
        density.add(at(2 * STRETCH - 8), SPARSE);
        assert!(!density.is_sparse(at(STRETCH)));
        density.remove(at(STRETCH + 5000), 2000);
        assert!(density.is_sparse(at(STRETCH)));
        density.add(at(STRETCH), usize::MAX);
        assert!(!density.is_sparse(at(STRETCH)));
    }
}
