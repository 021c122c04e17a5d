//! Statements bound and planned once for all sessions (rule R10).
//!
//! Key: what binding depends on – the text (or its fingerprint), the parameter types asked for, the database, the role,
//! the search path and the settings that binding reads. A hit is used only while nothing has changed that matters to it
//! ([`Changes`]). Bounded in bytes, roughly: when full, the older half goes.

use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use base::Oid;
use engine_api::Catalog;
use parking_lot::RwLock;
use rustc_hash::{FxHashMap, FxHasher};

use super::changes::Changes;
use super::statement::Statement;

/// Rough cost of one cached statement: plans are trees whose exact size is not known, but it grows with the text.
const BYTES_PER_STATEMENT: usize = 8 << 10;
const BYTES_PER_BYTE_OF_TEXT: usize = 16;

/// What a cached statement depends on besides its text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BindingKey {
    /// Database.
    pub database: Oid,
    /// Role.
    pub role: String,
    /// Search path, resolved.
    pub search_path: Vec<Oid>,
    /// Settings that binding reads (zone, date style, …), as one text.
    pub settings: String,
}

impl BindingKey {
    /// A number that stands for the key; collisions are caught by comparing the key itself.
    pub(crate) fn hash64(&self) -> u64 {
        let mut hasher = FxHasher::default();
        self.hash(&mut hasher);
        hasher.finish()
    }
}

struct Entry {
    text: Arc<str>,
    types: Box<[Oid]>,
    binding: Arc<BindingKey>,
    statement: Arc<Statement>,
    /// Tick of the last use; racy by design, it only steers eviction.
    used: AtomicU64,
}

impl Entry {
    fn bytes(&self) -> usize {
        cost(&self.text)
    }
}

/// What a statement is taken to cost.
pub(super) fn cost(text: &str) -> usize {
    BYTES_PER_STATEMENT + text.len() * BYTES_PER_BYTE_OF_TEXT
}

#[derive(Default)]
struct Entries {
    by_key: FxHashMap<u64, Entry>,
    /// Sum of their costs.
    bytes: usize,
}

impl Entries {
    fn retain(&mut self, keep: impl Fn(&Entry) -> bool) {
        self.by_key.retain(|_, entry| keep(entry));
        self.bytes = self.by_key.values().map(Entry::bytes).sum();
    }

    fn insert(&mut self, key: u64, entry: Entry) {
        self.bytes += entry.bytes();
        if let Some(before) = self.by_key.insert(key, entry) {
            self.bytes -= before.bytes();
        }
    }

    /// Drops the half that was not used for longest.
    fn halve(&mut self) {
        let mut ticks: Vec<u64> = self.by_key.values().map(|e| e.used.load(Ordering::Relaxed)).collect();
        if ticks.is_empty() {
            return;
        }
        let middle = ticks.len() / 2;
        let (_, &mut median, _) = ticks.select_nth_unstable(middle);
        self.retain(|e| e.used.load(Ordering::Relaxed) > median);
    }
}

/// The cache.
pub struct StatementCache {
    entries: RwLock<Entries>,
    tick: AtomicU64,
    /// Newest catalog version of a statement.
    newest: AtomicU64,
    limit_bytes: usize,
}

fn key_of(text: &str, types: &[Oid], binding_hash: u64) -> u64 {
    let mut hasher = FxHasher::default();
    text.hash(&mut hasher);
    types.hash(&mut hasher);
    binding_hash.hash(&mut hasher);
    hasher.finish()
}

impl StatementCache {
    /// A cache of at most about `limit_bytes`.
    pub fn new(limit_bytes: usize) -> StatementCache {
        StatementCache { entries: RwLock::default(), tick: AtomicU64::new(0), newest: AtomicU64::new(0), limit_bytes }
    }

    /// What it holds, roughly.
    pub fn bytes(&self) -> usize {
        self.entries.read().bytes
    }

    /// Whether it may have a text: what is too long to be kept is not looked for.
    pub(crate) fn may_have(&self, text: &str) -> bool {
        cost(text) <= self.limit_bytes / 16
    }

    /// The statement bound for exactly this text, these parameter types and this binding.
    pub fn get(
        &self,
        text: &str,
        types: &[Oid],
        binding: &BindingKey,
        binding_hash: u64,
        catalog: &Arc<Catalog>,
        changes: &Changes,
    ) -> Option<Arc<Statement>> {
        if !self.may_have(text) {
            return None;
        }
        let entries = self.entries.read();
        let entry = entries.by_key.get(&key_of(text, types, binding_hash))?;
        let same = *entry.text == *text && *entry.types == *types && *entry.binding == *binding;
        if !same || !entry.statement.is_good_for(catalog, changes) {
            return None;
        }
        entry.used.store(self.tick.load(Ordering::Relaxed), Ordering::Relaxed);
        Some(Arc::clone(&entry.statement))
    }

    /// Remembers a statement.
    pub fn put(
        &self,
        text: Arc<str>,
        types: &[Oid],
        binding: &Arc<BindingKey>,
        binding_hash: u64,
        statement: Arc<Statement>,
        (catalog, changes): (&Arc<Catalog>, &Changes),
    ) {
        // One that would push out many others is bound each time.
        if !self.may_have(&text) {
            return;
        }
        let cost = cost(&text);
        let key = key_of(&text, types, binding_hash);
        let used = self.tick.fetch_add(1, Ordering::Relaxed);
        let mut entries = self.entries.write();
        // Plans hold their tables open: what is bound to older definitions goes, so that dropped tables can.
        let version = statement.version();
        let newest = self.newest.fetch_max(version, Ordering::Relaxed);
        if newest < version {
            entries.retain(|e| e.statement.is_good_for(catalog, changes));
        } else if !statement.is_valid_for(newest) {
            return;
        }
        while entries.bytes + cost > self.limit_bytes && entries.bytes > 0 {
            entries.halve();
        }
        let entry =
            Entry { text, types: types.into(), binding: Arc::clone(binding), statement, used: AtomicU64::new(used) };
        entries.insert(key, entry);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statement::StatementBody;

    fn nothing() -> (Arc<Catalog>, Changes) {
        let mut catalog = Catalog::default();
        catalog.version = 1;
        let catalog = Arc::new(catalog);
        (Arc::clone(&catalog), Changes::since(catalog))
    }

    fn put(cache: &StatementCache, binding: &Arc<BindingKey>, text: &str) {
        let text: Arc<str> = text.into();
        let statement = Statement {
            text: Arc::clone(&text),
            start: 0,
            param_types: Vec::new(),
            kind: StatementBody::Empty,
            catalog_version: 1.into(),
            own: None,
            binding: 0,
            bound_with: None,
        };
        let (catalog, changes) = nothing();
        cache.put(text, &[], binding, binding.hash64(), Arc::new(statement), (&catalog, &changes));
    }

    #[test]
    fn long_texts_count_and_the_oldest_go() {
        let limit = 64 << 20;
        let cache = StatementCache::new(limit);
        let binding = Arc::new(BindingKey {
            database: Oid(1),
            role: String::new(),
            search_path: Vec::new(),
            settings: String::new(),
        });
        let long = |n: usize| format!("{n:08}{}", "x".repeat(100_000));
        for n in 0..1000 {
            put(&cache, &binding, &long(n));
            assert!(cache.entries.read().bytes <= limit);
        }
        let (catalog, changes) = nothing();
        let found = |text: &str| cache.get(text, &[], &binding, binding.hash64(), &catalog, &changes).is_some();
        assert!(found(&long(999)) && !found(&long(1)));
        let all: usize = cache.entries.read().by_key.values().map(Entry::bytes).sum();
        assert_eq!(all, cache.entries.read().bytes);
        put(&cache, &binding, &"x".repeat(1 << 20));
        assert!(!found(&"x".repeat(1 << 20)));
    }
}
