//! Far keys: keys too long for a node, in an allocation of their own that never changes (N2).
//!
//! Responsible for: turning them into the address kept in a node, and back.

/// A far key that is not in a node yet; dropping it frees it.
pub(super) struct FarKey(Box<[u8]>);

impl FarKey {
    pub fn new(key: &[u8]) -> FarKey {
        FarKey(key.into())
    }

    /// The address a node keeps. Stays valid when the owner moves.
    pub fn address(&self) -> u64 {
        self.0.as_ptr().expose_provenance() as u64
    }

    /// Leaves the key to the node that has its address.
    pub fn leak(self) -> u64 {
        Box::into_raw(self.0).cast::<u8>().expose_provenance() as u64
    }

    /// Takes a leaked key back.
    ///
    /// # Safety
    /// `address` and `len` are those of a leaked key, whose node and readers are done with it.
    pub unsafe fn reclaim(address: u64, len: usize) -> FarKey {
        let bytes =
            std::ptr::slice_from_raw_parts_mut(std::ptr::with_exposed_provenance_mut::<u8>(address as usize), len);
        // SAFETY: `leak` gave away a box of this address and length; the caller says that nobody else uses it.
        FarKey(unsafe { Box::from_raw(bytes) })
    }
}

/// The bytes of a far key in a node.
///
/// # Safety
/// `address` and `len` come from one record of a node that was current after they were read, and the caller's guard,
/// older than that reading, lives through `'a` (or the caller holds the node's latch or owns the node).
pub(super) unsafe fn bytes<'a>(address: u64, len: usize) -> &'a [u8] {
    // SAFETY: such a record was in the tree, so the key is allocated with this length; it is freed only after the guard
    // (or the latch), and its bytes were written before the version that the caller checked.
    unsafe { std::slice::from_raw_parts(std::ptr::with_exposed_provenance(address as usize), len) }
}
