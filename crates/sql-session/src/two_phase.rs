//! PREPARE TRANSACTION, COMMIT PREPARED, ROLLBACK PREPARED.

use base::{Error, Result, SqlState};
use engine_api::{PreparedTransaction, Step};

use super::block::no_transaction;
use super::{Block, Output, Session};

/// The longest name of a prepared transaction, in bytes.
const NAME_MAX: usize = 199;

impl Session {
    /// Hands the block's transaction to the engine under a name. Whatever comes of it, the block is over.
    pub(super) async fn prepare_transaction(&mut self, name: &str, out: &mut dyn Output) -> Result<&'static str> {
        match self.block {
            Block::Failed => return self.rollback_block(false),
            Block::None => {
                self.environment.notices.borrow_mut().push(no_transaction());
                return Ok("ROLLBACK");
            }
            Block::Open => {}
        }
        let result = match self.check_preparable(name) {
            Ok(()) => match self.check_deferred().await {
                Ok(()) => self.hand_over(name).await,
                refused => refused,
            },
            Err(error) => Err(error),
        };
        if let Err(error) = result {
            self.abort_transaction();
            return Err(error);
        }
        out.gate(self.gate);
        Ok("PREPARE TRANSACTION")
    }

    fn check_preparable(&self, name: &str) -> Result<()> {
        if name.len() > NAME_MAX {
            return Err(Error::new(
                SqlState::INVALID_PARAMETER_VALUE,
                format!("transaction identifier \"{name}\" is too long"),
            ));
        }
        if self.holds_cursors() {
            return Err(Error::unsupported("cannot PREPARE a transaction that has created a cursor WITH HOLD"));
        }
        if self.has_exported() {
            return Err(Error::unsupported("cannot PREPARE a transaction that has exported snapshots"));
        }
        if self.has_notifications() {
            return Err(Error::unsupported(
                "cannot PREPARE a transaction that has executed LISTEN, UNLISTEN, or NOTIFY",
            ));
        }
        Ok(())
    }

    async fn hand_over(&mut self, name: &str) -> Result<()> {
        let what = {
            let identity = self.environment.identity.borrow();
            PreparedTransaction {
                name: name.to_string(),
                owner: identity.current_user.clone(),
                database: identity.database_oid,
                prepared_at: self.environment.host.now(),
                txn: 0,
                advisory: self.environment.advisory.of_transaction()?,
            }
        };
        loop {
            let Some(txn) = &mut self.txn else { return Err(Error::internal("a block without a transaction")) };
            match txn.prepare(&what)? {
                Step::Ready(outcome) => {
                    self.gate = self.gate.max(outcome.gate);
                    break;
                }
                Step::Wait(wait) => self.wait(wait).await?,
            }
        }
        self.txn = None;
        self.end_block();
        self.environment.settings.borrow_mut().commit();
        Ok(())
    }

    /// Ends a prepared transaction, whoever prepared it.
    pub(super) async fn finish_prepared(
        &mut self,
        name: &str,
        commits: bool,
        out: &mut dyn Output,
    ) -> Result<&'static str> {
        self.check_not_failed()?;
        let what = if commits { "COMMIT PREPARED" } else { "ROLLBACK PREPARED" };
        self.check_no_block(what)?;
        self.check_may_finish(name)?;
        loop {
            match self.shared.engine.finish_prepared(name, commits)? {
                Step::Ready((outcome, mut txn)) => {
                    self.gate = self.gate.max(outcome.gate);
                    // What is left of a large one is not for others of this core to wait for.
                    while !txn.finish_some() {
                        self.environment.host.turn().await;
                    }
                    break;
                }
                Step::Wait(wait) => self.wait(wait).await?,
            }
        }
        out.gate(self.gate);
        Ok(what)
    }

    fn check_may_finish(&self, name: &str) -> Result<()> {
        let prepared = self.shared.engine.prepared();
        let Some(prepared) = prepared.iter().find(|prepared| prepared.name == name) else { return Ok(()) };
        let identity = self.environment.identity.borrow();
        let catalog = self.shared.engine.catalog();
        let is_superuser = catalog.role(&identity.current_user).is_some_and(|role| role.superuser);
        if prepared.owner != identity.current_user && !is_superuser {
            return Err(Error::new(
                SqlState::INSUFFICIENT_PRIVILEGE,
                "permission denied to finish prepared transaction",
            )
            .hint("Must be superuser or the user that prepared the transaction."));
        }
        if prepared.database != identity.database_oid {
            return Err(Error::unsupported("prepared transaction belongs to another database")
                .hint("Connect to the database where the transaction was prepared to finish it."));
        }
        Ok(())
    }
}
