//! Keys that took long to compute, kept for those who cannot wait for them.
//!
//! Requirement: a key is computed where nothing is held, so that others have their turn and the statement can be stopped. But
//! entries are also removed under latches – by who undoes, or collects garbage –, and other rows' keys are compared there. So the
//! key of a tuple is kept if it was long work, and found by the tuple's content.
//! Invariant: it is a cache. What it has lost is computed again, where that is needed.

use std::collections::VecDeque;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::sync::atomic::{AtomicBool, Ordering};

use base::LayoutId;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;

/// Bytes of keys that an index keeps at most.
const BYTES_MAX: usize = 1 << 20;
/// What a key takes beside its bytes.
const PER_KEY: usize = 128;

/// What a tuple is found by: two hashes of its content under secrets of this process, and its length.
type Content = (u64, u64, usize);

/// A key, and whether one of its columns is NULL.
type Key = (Box<[u8]>, bool);

/// The keys of an index that took long to compute.
#[derive(Debug, Default)]
pub(crate) struct KnownKeys {
    any: AtomicBool,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    secrets: (RandomState, RandomState),
    keys: FxHashMap<Content, Key>,
    /// In the order in which they came.
    order: VecDeque<Content>,
    bytes: usize,
}

impl Kept {
    fn content(&self, layout: LayoutId, tuple: &[u8]) -> Content {
        let hash = |secret: &RandomState| {
            let mut hasher = secret.build_hasher();
            hasher.write_u32(layout.0);
            hasher.write(tuple);
            hasher.finish()
        };
        (hash(&self.secrets.0), hash(&self.secrets.1), tuple.len())
    }
}

impl KnownKeys {
    /// Appends the key of a tuple, if it is known; whether one of its columns is NULL.
    pub fn find(&self, layout: LayoutId, tuple: &[u8], out: &mut Vec<u8>) -> Option<bool> {
        if !self.any.load(Ordering::Acquire) {
            return None;
        }
        let kept = self.kept.lock();
        let (key, has_null) = kept.keys.get(&kept.content(layout, tuple))?;
        out.extend_from_slice(key);
        Some(*has_null)
    }

    /// Keeps the key of a tuple. The oldest go if there are too many.
    pub fn keep(&self, layout: LayoutId, tuple: &[u8], key: &[u8], has_null: bool) {
        let mut kept = self.kept.lock();
        let content = kept.content(layout, tuple);
        if kept.keys.insert(content, (key.into(), has_null)).is_some() {
            return;
        }
        kept.bytes += key.len() + PER_KEY;
        kept.order.push_back(content);
        while kept.bytes > BYTES_MAX && kept.order.len() > 1 {
            let Some(oldest) = kept.order.pop_front() else { break };
            if let Some((key, _)) = kept.keys.remove(&oldest) {
                kept.bytes -= key.len() + PER_KEY;
            }
        }
        self.any.store(true, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_found_by_content_and_bounded() {
        let known = KnownKeys::default();
        let mut out = Vec::new();
        assert_eq!(known.find(LayoutId(1), b"a", &mut out), None);
        known.keep(LayoutId(1), b"a", b"key", true);
        assert_eq!((known.find(LayoutId(1), b"a", &mut out), out.as_slice()), (Some(true), &b"key"[..]));
        assert_eq!(known.find(LayoutId(2), b"a", &mut out), None);
        assert_eq!(known.find(LayoutId(1), b"b", &mut out), None);
        for n in 0..2000_u32 {
            known.keep(LayoutId(1), &n.to_be_bytes(), &[0; 1000], false);
        }
        assert_eq!(known.find(LayoutId(1), b"a", &mut out), None);
        assert_eq!(known.find(LayoutId(1), &1999_u32.to_be_bytes(), &mut out), Some(false));
        let kept = known.kept.lock();
        assert!(kept.bytes <= BYTES_MAX && kept.keys.len() == kept.order.len());
    }
}
