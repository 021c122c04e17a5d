//! Statements bound and planned once for all sessions (rule R10).
//!
//! Key: what binding depends on – the text (or its fingerprint), the parameter types asked for, the database, the role,
//! the search path and the settings that binding reads. A hit is used only while the catalog has the version it was
//! bound to. Bounded in bytes: when full, the older half goes.

use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use base::Oid;
use parking_lot::RwLock;
use rustc_hash::{FxHashMap, FxHasher};

use super::statement::Statement;

/// Rough cost of one cached statement beside its text; plans are trees of closures whose exact size is not known.
const BYTES_PER_STATEMENT: usize = 8 << 10;

/// What a cached statement depends on besides its text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BindingKey {
    /// Database.
    pub database: Oid,
    /// Role.
    pub role: String,
    /// Search path, resolved.
    pub search_path: Vec<Oid>,
    /// Settings that binding reads (zone, date style), as one text.
    pub settings: String,
}

impl BindingKey {
    /// A number that stands for the key; collisions are caught by comparing the key itself.
    pub fn hash64(&self) -> u64 {
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

/// The cache.
pub struct StatementCache {
    entries: RwLock<FxHashMap<u64, Entry>>,
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

    /// The statement bound for exactly this text, these parameter types and this binding.
    pub fn get(
        &self,
        text: &str,
        types: &[Oid],
        binding: &BindingKey,
        binding_hash: u64,
        catalog_version: u64,
    ) -> Option<Arc<Statement>> {
        let entries = self.entries.read();
        let entry = entries.get(&key_of(text, types, binding_hash))?;
        let same = *entry.text == *text && *entry.types == *types && *entry.binding == *binding;
        if !same || !entry.statement.is_valid_for(catalog_version) {
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
    ) {
        let key = key_of(&text, types, binding_hash);
        let used = self.tick.fetch_add(1, Ordering::Relaxed);
        let mut entries = self.entries.write();
        // Plans hold their tables open: what is bound to older definitions goes, so that dropped tables can.
        let version = statement.catalog_version;
        if self.newest.fetch_max(version, Ordering::Relaxed) < version {
            entries.retain(|_, e| e.statement.is_valid_for(version));
        }
        if entries.len() * BYTES_PER_STATEMENT >= self.limit_bytes {
            let mut ticks: Vec<u64> = entries.values().map(|e| e.used.load(Ordering::Relaxed)).collect();
            let middle = ticks.len() / 2;
            let (_, &mut median, _) = ticks.select_nth_unstable(middle);
            entries.retain(|_, e| e.used.load(Ordering::Relaxed) > median);
        }
        let entry =
            Entry { text, types: types.into(), binding: Arc::clone(binding), statement, used: AtomicU64::new(used) };
        entries.insert(key, entry);
    }
}
