//! What sessions and their statements say that they hold, and the limit of it all as a setting.
//!
//! Responsible for: the charge of a session, `memory_limit` by ALTER SYSTEM.
//! Not responsible for: what happens at the limit (`engine`), budgets of statements (`sql_exec::budget`).

use std::sync::{Arc, PoisonError};

use engine_api::{Engine, MemoryKind, RoleSetting};

use super::{STATEMENT_CACHE_BYTES, Shared};

/// The setting.
pub(super) const NAME: &str = "memory_limit";
/// What an idle session takes with its connection: settings, buffers, the state of its task.
const SESSION_BYTES: i64 = 48 << 10;

/// The charge of one session, given back when it ends.
pub struct SessionCharge(Arc<dyn Engine>);

impl SessionCharge {
    /// Charges a session.
    pub fn new(engine: &Arc<dyn Engine>) -> SessionCharge {
        engine.charge_memory(MemoryKind::Sessions, SESSION_BYTES);
        SessionCharge(Arc::clone(engine))
    }
}

impl Drop for SessionCharge {
    fn drop(&mut self) {
        self.0.charge_memory(MemoryKind::Sessions, -SESSION_BYTES);
    }
}

impl Shared {
    /// Says what is held that is not counted as it changes.
    pub fn measure_memory(&self) {
        self.engine.set_memory(MemoryKind::Plans, self.cache.bytes() as u64);
    }

    /// What all running statements may keep.
    pub(crate) fn statement_memory_limit(&self) -> u64 {
        self.memory.total()
    }

    /// What the statement cache may hold.
    pub(crate) fn plan_memory_limit(&self) -> u64 {
        STATEMENT_CACHE_BYTES as u64
    }

    /// Puts the limit in force that ALTER SYSTEM has said, or else the one that the server was started with.
    pub(super) fn apply_memory_limit(&self) {
        let system = Arc::clone(&*self.system.lock().unwrap_or_else(PoisonError::into_inner));
        self.engine.set_memory_limit(said(&system).unwrap_or(self.memory_limit));
    }
}

/// The limit that ALTER SYSTEM has said, in bytes. Its value was checked, and is in kilobytes.
fn said(system: &[RoleSetting]) -> Option<u64> {
    let setting = system.iter().find(|setting| setting.name == NAME)?;
    super::settings::kilobytes(NAME, &setting.value).map(|kilobytes| kilobytes << 10)
}
