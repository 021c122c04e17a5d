//! Exported snapshots: what one transaction sees, another may see too.
//!
//! Responsible for: `pg_export_snapshot`, `SET TRANSACTION SNAPSHOT`, which snapshots a session may import.
//! Not responsible for: views (the engine's).
//! Invariant: a snapshot is listed from the statement that exports it to the end of its transaction.

use std::sync::Mutex;

use base::{Error, Oid, Result, Severity, SqlState};
use engine_api::{Isolation, KeptView};
use rupg_sql::nodes::List;
use rustc_hash::FxHashMap;
use sql_parse::text_of;

use super::context::Environment;
use super::{Block, Session};

/// Those of all sessions, by name.
#[derive(Default)]
pub(super) struct Snapshots(Mutex<FxHashMap<String, Exported>>);

struct Exported {
    view: KeptView,
    database: Oid,
    isolation: Isolation,
    read_only: bool,
}

impl Snapshots {
    fn with<T>(&self, act: impl FnOnce(&mut FxHashMap<String, Exported>) -> T) -> T {
        // The map is whole whatever a session that panicked was doing.
        act(&mut self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
    }
}

impl Environment {
    /// The name of the next snapshot.
    pub(super) fn next_snapshot(&self) -> Result<String> {
        if self.settings.borrow().depth > 0 {
            return Err(too_late("cannot export a snapshot from a subtransaction"));
        }
        let number = self.snapshots_named.get() + 1;
        self.snapshots_named.set(number);
        Ok(format!("{:08X}-{number:08X}-1", self.pid))
    }
}

/// 25001
fn too_late(message: &str) -> Error {
    Error::new(SqlState::ACTIVE_SQL_TRANSACTION, message)
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|b| matches!(b, b'0'..=b'9' | b'A'..=b'F' | b'-'))
}

impl Session {
    /// Lists what the running command sees under the names that its expressions have handed out.
    pub(super) fn export_as_asked(&mut self) {
        let names = std::mem::take(&mut *self.environment.exports.borrow_mut());
        let Some(txn) = &mut self.txn else { return };
        for name in names {
            let exported = Exported {
                view: txn.keep_view(),
                database: self.environment.identity.borrow().database_oid,
                isolation: txn.isolation(),
                read_only: self.environment.read_only.get(),
            };
            self.shared.snapshots.with(|all| all.insert(name.clone(), exported));
            self.exported.push(name);
        }
    }

    /// Whether the transaction has exported snapshots.
    pub(super) fn has_exported(&self) -> bool {
        !self.exported.is_empty()
    }

    /// The transaction ends, and with it what it has exported.
    pub(super) fn forget_snapshots(&mut self) {
        for name in self.exported.drain(..) {
            self.shared.snapshots.with(|all| all.remove(&name));
        }
    }

    /// `SET TRANSACTION SNAPSHOT`
    pub(super) fn import_snapshot(&mut self, args: &List) -> Result<()> {
        if self.block == Block::None && !self.implicit_block {
            self.push_notice(Error::with_severity(
                Severity::Warning,
                SqlState::NO_ACTIVE_SQL_TRANSACTION,
                "SET TRANSACTION can only be used in transaction blocks",
            ));
            self.ensure_transaction()?;
        }
        let name = args.iter().flatten().find_map(text_of).unwrap_or_default();
        let inside = !self.savepoints.is_empty();
        let has_queried = self.has_queried;
        let read_only = self.is_read_only();
        let Some(txn) = &mut self.txn else { return Err(Error::internal("a block without a transaction")) };
        if has_queried || inside || txn.id().is_some() || txn.has_view() {
            return Err(too_late("SET TRANSACTION SNAPSHOT must be called before any query"));
        }
        let isolation = txn.isolation();
        if isolation == Isolation::ReadCommitted {
            return Err(Error::unsupported(
                "a snapshot-importing transaction must have isolation level SERIALIZABLE or REPEATABLE READ",
            ));
        }
        let database = self.environment.identity.borrow().database_oid;
        self.shared.snapshots.with(|all| {
            let exported = all.get(&name).filter(|_| is_name(&name)).ok_or_else(|| {
                let message = format!("invalid snapshot identifier: \"{name}\"");
                Error::new(SqlState::INVALID_PARAMETER_VALUE, message)
            })?;
            if isolation == Isolation::Serializable {
                if exported.isolation != Isolation::Serializable {
                    return Err(Error::unsupported(
                        "a serializable transaction cannot import a snapshot from a non-serializable transaction",
                    ));
                }
                if exported.read_only && !read_only {
                    return Err(Error::unsupported(
                        "a non-read-only serializable transaction cannot import a snapshot from a read-only transaction",
                    ));
                }
            }
            if exported.database != database {
                return Err(Error::unsupported("cannot import a snapshot from a different database"));
            }
            txn.adopt_view(&exported.view);
            Ok(())
        })
    }
}
