//! The ordered index: memcomparable key bytes to row ids, read without locks while others write.
//!
//! Responsible for: [`OrderedIndex`], and [`BTreeIndex`], a B+tree with optimistic lock coupling behind it.
//! Not responsible for: what a key means (`types` encodes it), which row a view sees under a key (rule R6: the caller
//! compares the key of the version it sees), uniqueness, when an entry is garbage.
//!
//! ```text
//! node: N words of 8 bytes, all of them atomics
//! +---------+-------------------------------+--------+-----------+-----------+
//! | version | count heap dead prefix level… | link   | low fence | high fence|  5 words
//! +---------+-------------------------------+--------+-----------+-----------+
//! | slot 0 | slot 1 | …      -> grows                                        |  a word each, sorted by (key, row)
//! |                          free                                            |
//! |          grows <-   … record | record | fence | fence                    |  byte-addressed heap
//! +---------------------------------------------------------------------------+
//! slot   = head: 4 key bytes after the prefix | offset | key length | length of the row | far
//! record = row (0..8 bytes) | child address (inner nodes) | key bytes after the head, or the address of a far key
//! link   = inner: the child before slot 0; leaf: where the last insert went and how long the run is
//! ```
//!
//! Invariants
//! - N1 All entries e of a node satisfy low <= e < high, as (key, row) pairs; a child's fences are its separators in the
//!   parent. Both fences start with the node's prefix, so every key of the node does, and so does every position that is
//!   routed to it: the prefix is neither stored per entry nor compared.
//! - N2 Whether a key is far (out of line) depends on its length alone, so rebuilding a node with another prefix moves
//!   far keys by address. A far key never changes; each is owned by exactly one record or fence.
//! - N3 A node's level never changes. A node that left the tree is obsolete for ever.
//! - N4 Words are changed only by the holder of the node's latch; the latches of a node and of its new or dying neighbours
//!   are held together with the parent's whenever a fence changes.
//! - N5 A finger is 0 or the address of a leaf that is in the tree. It is set and cleared under the latch of that leaf.
//!
//! # Concurrency
//! Requirement: readers take no lock and write nothing, and what they return was true at one moment per leaf.
//! Rule: a reader takes the version (waits while it is odd), reads words, and believes them only if the version is the same
//! afterwards (`latch`). An address is followed only after such a check, so that it is one that a writer stored while
//! the node was in the tree; the reclamation epoch keeps what it points at alive. On the way down the parent is checked
//! *again* after the child's version is taken.
//! Otherwise: reader R takes the address of child C from parent P; writer W splits C and moves key k right; R takes C's new
//! version, finds k absent, validates C, and reports a key lost that was there all the time. The second check of P sees
//! W's change of P.
//! Writers take versions like readers and turn them into latches by compare-and-swap; they never wait for one latch
//! holding another, so there is no deadlock, only restarts. A node too full or too empty is mended top-down, one node per
//! pass with its parent latched, and the operation starts again. Where keys ascend an insertion begins at the leaf of the one
//! before, by a finger, and believes it if the key lies strictly between the leaf's fences: a descent would end there too.
//! Alternative: latch coupling with reader counters makes every reader write to the root's cache line.
//! The paper omits: node words must be atomics with fences for this to be defined behaviour, and a torn offset or
//! length must be harmless before the check: word indexes are masked, lengths saturate, nothing is followed.

mod batch;
mod bulk;
mod far;
mod latch;
mod mend;
mod node;
mod page;
mod position;
mod scan;
mod tree;

#[cfg(test)]
mod tests;

pub use batch::EntryBatch;
pub use bulk::{Boundary, IndexPart, PartBuilder, Unfit};
pub use position::{Direction, Edge, KeyRange};
pub use tree::BTreeIndex;

use base::RowId;
use smallvec::SmallVec;

/// The longest key an index takes, in bytes.
pub const MAX_KEY_LEN: usize = 8191;

/// A key is longer than [`MAX_KEY_LEN`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyTooLong {
    /// Its length in bytes.
    pub len: usize,
}

/// Rows of one key; four fit without allocation.
pub type RowIds = SmallVec<[RowId; 4]>;

/// Ordered multimap from memcomparable key bytes to row ids. Entries are unique as (key, row) pairs and ordered by key,
/// then row. All methods may be called by any number of threads at once.
pub trait OrderedIndex: Send + Sync {
    /// Adds the pair; `false` if it was there already.
    ///
    /// # Errors
    /// [`KeyTooLong`].
    fn insert(&self, key: &[u8], row: RowId) -> Result<bool, KeyTooLong>;

    /// Adds the pair if no pair has the key. Otherwise answers `false` and appends the rows that have it to `others`.
    /// REQUIRES that nobody else adds pairs of this key meanwhile.
    ///
    /// # Errors
    /// [`KeyTooLong`].
    fn insert_alone(&self, key: &[u8], row: RowId, others: &mut RowIds) -> Result<bool, KeyTooLong> {
        let before = others.len();
        self.get(key, others);
        if others.len() == before { self.insert(key, row) } else { Ok(false) }
    }

    /// Takes the pair out; `false` if it was not there.
    fn remove(&self, key: &[u8], row: RowId) -> bool;

    /// Appends to `out` the next at most `limit` entries of `range` in `direction`, starting after the entry `resume`
    /// (which need not exist any more). Returns whether there may be more: `false` says that the range is exhausted.
    /// Entries present during the whole call are all found; each leaf is seen at one moment.
    fn scan(
        &self,
        range: &KeyRange<'_>,
        direction: Direction,
        resume: Option<(&[u8], RowId)>,
        limit: usize,
        out: &mut EntryBatch,
    ) -> bool;

    /// Appends the rows of exactly this key, ascending.
    fn get(&self, key: &[u8], out: &mut RowIds);

    /// Number of entries; exact when nobody is writing.
    fn len(&self) -> usize;

    /// Bytes allocated for nodes and far keys; what only waits for readers to leave is not in it.
    fn memory_bytes(&self) -> usize;
}
