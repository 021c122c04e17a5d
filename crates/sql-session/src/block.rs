//! Transaction blocks: BEGIN, COMMIT, ROLLBACK, savepoints, and what an error does to them.
//!
//! The rules are PostgreSQL's (`xact.c`): a statement outside a block runs in a transaction of its own; a multi-statement
//! simple query is one implicit block; a pipeline of extended-protocol messages is one up to Sync.

use std::sync::Arc;

use base::{Error, Notice, Result, Severity, SqlState};
use engine_api::{Isolation, Savepoint, Step, Txn, TxnOptions};
use rupg_sql::nodes::{Node, TransactionStmt, TransactionStmtKind};
use sql_parse::{number_of, text_of};

use super::portal::Portal;
use super::settings::isolation_of;
use super::{Block, NamedSavepoint, Output, Session};

/// Savepoints of one transaction at a time: each costs some hundred bytes.
const SAVEPOINTS_MAX: usize = 1 << 18;

/// Characteristics given with BEGIN or SET TRANSACTION.
#[derive(Default)]
pub(super) struct Modes {
    pub isolation: Option<Isolation>,
    /// The level is to be shown as READ UNCOMMITTED, which means READ COMMITTED.
    pub uncommitted: bool,
    pub read_only: Option<bool>,
    pub deferrable: Option<bool>,
}

/// Reads the option list of BEGIN / SET TRANSACTION.
pub(super) fn modes(options: &[Option<Node>]) -> Modes {
    let mut modes = Modes::default();
    for option in options.iter().flatten() {
        let Node::DefElem(option) = option else { continue };
        let arg = option.arg.as_ref();
        match option.defname.as_deref() {
            Some("transaction_isolation") => {
                let level = arg.and_then(text_of).unwrap_or_default();
                modes.uncommitted = level.eq_ignore_ascii_case("read uncommitted");
                modes.isolation = Some(isolation_of(&level.to_ascii_lowercase()));
            }
            Some("transaction_read_only") => modes.read_only = Some(arg.and_then(number_of) == Some(1)),
            Some("transaction_deferrable") => modes.deferrable = Some(arg.and_then(number_of) == Some(1)),
            _ => {}
        }
    }
    modes
}

/// 25001
fn too_late(message: &str) -> Error {
    Error::new(SqlState::ACTIVE_SQL_TRANSACTION, message)
}

pub(super) fn no_transaction() -> Notice {
    Error::with_severity(Severity::Warning, SqlState::NO_ACTIVE_SQL_TRANSACTION, "there is no transaction in progress")
}

impl Modes {
    /// Whether a transaction of them is shown otherwise than one of the usual modes ([`super::Settings::has_usual_modes`]).
    fn are_unusual(&self) -> bool {
        let isolation = self.isolation.is_some_and(|level| level != Isolation::ReadCommitted);
        self.uncommitted || isolation || self.read_only == Some(true) || self.deferrable.is_some()
    }
}

impl Session {
    /// The error for anything but the end of a failed block.
    pub(super) fn check_not_failed(&self) -> Result<()> {
        if self.block == Block::Failed {
            return Err(Error::new(
                SqlState::IN_FAILED_SQL_TRANSACTION,
                "current transaction is aborted, commands ignored until end of transaction block",
            ));
        }
        Ok(())
    }

    /// The error of statements that cannot run inside a block (CREATE DATABASE, VACUUM).
    pub(super) fn check_no_block(&self, what: &str) -> Result<()> {
        if self.block != Block::None || self.implicit_block {
            return Err(Error::new(
                SqlState::ACTIVE_SQL_TRANSACTION,
                format!("{what} cannot run inside a transaction block"),
            ));
        }
        Ok(())
    }

    /// Opens a transaction if none is open.
    pub(crate) fn ensure_transaction(&mut self) -> Result<()> {
        if self.txn.is_some() {
            return Ok(());
        }
        self.begin_transaction(Modes::default());
        Ok(())
    }

    fn begin(&mut self, isolation: Isolation, read_only: bool) -> Box<dyn Txn> {
        let session = self.environment.pid.unsigned_abs();
        let options = TxnOptions { isolation, read_only, session };
        if let Some(mut txn) = self.ended.take() {
            txn.begin_anew(options);
            return txn;
        }
        self.shared.engine.begin(options)
    }

    /// Opens a transaction with these characteristics, and the defaults for the others.
    fn begin_transaction(&mut self, modes: Modes) {
        let (isolation, read_only, is_usual) = {
            let settings = self.environment.settings.borrow();
            (settings.default_isolation(), settings.default_read_only(), settings.has_usual_modes())
        };
        let isolation = modes.isolation.unwrap_or(isolation);
        let read_only = modes.read_only.unwrap_or(read_only);
        self.has_queried = false;
        self.environment.read_only.set(read_only);
        self.environment.transaction_start.set(self.environment.statement_start.get());
        self.environment.listed.activity.in_transaction(self.environment.statement_start.get());
        self.txn = Some(self.begin(isolation, read_only));
        if !is_usual || modes.are_unusual() {
            self.show_modes(&modes);
        }
    }

    /// Commits the open transaction, if any. The gate rises to it.
    pub(super) async fn commit_transaction(&mut self, out: &mut dyn Output) -> Result<()> {
        if self.txn.is_some()
            && let Err(error) = self.check_deferred().await
        {
            self.abort_transaction();
            return Err(error);
        }
        if self.txn.is_some()
            && self.holds_cursors()
            && let Err(error) = Box::pin(self.hold_cursors()).await
        {
            self.abort_transaction();
            return Err(error);
        }
        if self.txn.is_some()
            && self.temporary.get().1
            && let Err(error) = Box::pin(sql_ddl::temporary::on_commit(self)).await
        {
            self.abort_transaction();
            return Err(error);
        }
        let Some(mut txn) = self.txn.take() else {
            return Ok(());
        };
        let shared = Arc::clone(&self.shared);
        let durability = self.environment.settings.borrow().durability();
        let said = self.has_notifications();
        let mut listening = if said { self.listen_ahead() } else { None };
        let outcome = loop {
            let entry = if said { self.enter_hub(&shared.hub) } else { None };
            match txn.commit(durability) {
                Ok(Step::Ready(outcome)) => {
                    if said {
                        self.publish(entry, listening.take(), &outcome);
                    }
                    break Ok(outcome);
                }
                Ok(Step::Wait(wait)) => {
                    drop(entry);
                    if let Err(error) = self.wait(wait).await {
                        txn.cancel_wait();
                        break Err(error);
                    }
                }
                Err(error) => break Err(error),
            }
        };
        // What is left of a large one is not for others of this core to wait for; it is committed, whatever comes now.
        while outcome.is_ok() && !txn.finish_some() {
            self.environment.host.turn().await;
        }
        let retyped = std::mem::take(&mut self.retyped);
        self.end_block();
        match outcome {
            Ok(outcome) => {
                for (table, column) in retyped {
                    shared.statistics().forget(table, column);
                }
                self.environment.listed.activity.count_transaction(true);
                self.gate = self.gate.max(outcome.gate);
                out.gate(self.gate);
                self.environment.settings.borrow_mut().commit();
                if !txn.has_definitions() {
                    txn.rollback();
                    self.ended = Some(txn);
                }
                Ok(())
            }
            Err(error) => {
                self.take_listening_back(listening);
                self.forget_said();
                self.take_analyzed_back(0);
                txn.rollback();
                self.gate = self.gate.max(txn.gate());
                self.environment.settings.borrow_mut().rollback();
                Err(error)
            }
        }
    }

    /// Rolls back whatever is open and leaves the block.
    pub(super) fn abort_transaction(&mut self) {
        if let Some(mut txn) = self.txn.take() {
            txn.rollback();
            self.environment.listed.activity.count_transaction(false);
            self.gate = self.gate.max(txn.gate());
        }
        self.environment.settings.borrow_mut().rollback();
        self.forget_said();
        self.take_analyzed_back(0);
        self.end_block();
    }

    /// Outside of a transaction a change of settings lasts at once.
    pub(super) fn commit_settings(&mut self) {
        if self.block == Block::None && self.txn.is_none() {
            self.environment.settings.borrow_mut().commit();
        }
    }

    /// Nothing that the transaction said is heard.
    fn forget_said(&self) {
        if self.has_notifications() {
            self.environment.pending.take().discard();
        }
    }

    pub(super) fn end_block(&mut self) {
        self.ended_portals.clear();
        self.forget_snapshots();
        self.block = Block::None;
        if !self.savepoints.is_empty() {
            self.savepoints.clear();
            self.environment.settings.borrow_mut().depth = 0;
        }
        self.retain_portals(Portal::is_held);
        self.has_queried = false;
        self.has_deferrable = false;
        self.environment.read_only.set(false);
        self.environment.advisory.release_since(0);
        self.environment.deferred.borrow_mut().clear();
        self.retyped.clear();
        self.analyzed.clear();
    }

    /// Statistics are again what they were when so many tables had been analyzed.
    fn take_analyzed_back(&mut self, from: usize) {
        if self.analyzed.len() > from {
            sql_functions::statistics::take_back(self.shared.statistics(), self.analyzed.drain(from..));
        }
    }

    /// Undoes all of a large transaction but little, in parts between which other connections of the core have their turns.
    /// What follows finds little to do: [`Session::fail`] if `failed`, otherwise the end of the transaction.
    pub async fn undo_ahead(&mut self, failed: bool) {
        let inside = failed && self.block != Block::None;
        let point = self.savepoints.last().filter(|_| inside).map(|savepoint| savepoint.point);
        self.undo_back_to(point).await;
    }

    async fn undo_back_to(&mut self, point: Option<Savepoint>) {
        while let Some(txn) = &mut self.txn
            && !txn.undo_some(point)
        {
            self.environment.host.turn().await;
        }
    }

    /// What an error does: outside a block everything is undone; inside, the block has failed and releases what it held
    /// since its innermost savepoint.
    pub fn fail(&mut self) {
        self.end_timer();
        // The error depends on what the statement has seen, and on what it found defined.
        self.gate = self.current_gate().max(self.shared.engine.catalog_gate());
        match (self.block, self.savepoints.last()) {
            (Block::None, _) => self.abort_transaction(),
            (_, Some(savepoint)) => {
                if let Some(txn) = &mut self.txn {
                    txn.rollback_to(savepoint.point);
                    txn.end_command();
                }
                self.environment.advisory.release_since(savepoint.advisory);
                self.environment.pending.borrow_mut().undo_to(savepoint.said);
                self.environment.deferred.borrow_mut().undo_to(&savepoint.deferred);
                let analyzed = savepoint.analyzed;
                self.take_analyzed_back(analyzed);
                self.block = Block::Failed;
                let level = self.savepoints.len();
                self.environment.settings.borrow_mut().rollback_to(level as u32);
                self.end_portals(|portal| portal.is_held() || portal.level < level);
            }
            (_, None) => {
                if let Some(mut txn) = self.txn.take() {
                    txn.rollback();
                    self.gate = self.gate.max(txn.gate());
                }
                self.environment.advisory.release_since(0);
                self.environment.deferred.borrow_mut().clear();
                self.environment.settings.borrow_mut().rollback();
                self.forget_said();
                self.take_analyzed_back(0);
                self.block = Block::Failed;
                self.end_portals(Portal::is_held);
            }
        }
    }

    /// An error in a block ends its portals. Until the block is over they are there, and not run.
    fn end_portals(&mut self, keep: impl Fn(&Portal) -> bool) {
        for (name, portal) in self.portals.iter().filter(|(_, portal)| !keep(portal)) {
            self.ended_portals.push((name.to_owned(), portal.statement.columns().is_some()));
        }
        self.retain_portals(keep);
    }

    /// A transaction-control statement. Answers its completion tag.
    pub(super) async fn transaction_statement(
        &mut self,
        stmt: &TransactionStmt,
        out: &mut dyn Output,
    ) -> Result<&'static str> {
        use TransactionStmtKind as K;
        let name = || stmt.savepoint_name.as_deref().unwrap_or_default();
        match stmt.kind {
            K::TRANS_STMT_BEGIN | K::TRANS_STMT_START => {
                self.begin_block(&stmt.options)?;
                Ok(if stmt.kind == K::TRANS_STMT_BEGIN { "BEGIN" } else { "START TRANSACTION" })
            }
            K::TRANS_STMT_COMMIT => self.commit_block(stmt.chain, out).await,
            K::TRANS_STMT_ROLLBACK => {
                if self.block != Block::None || !stmt.chain {
                    self.undo_ahead(false).await;
                }
                self.rollback_block(stmt.chain)
            }
            K::TRANS_STMT_SAVEPOINT => {
                self.check_not_failed()?;
                self.savepoint(name())?;
                Ok("SAVEPOINT")
            }
            K::TRANS_STMT_RELEASE => {
                self.check_not_failed()?;
                self.release(name())?;
                Ok("RELEASE")
            }
            K::TRANS_STMT_ROLLBACK_TO => {
                self.rollback_to_savepoint(name()).await?;
                Ok("ROLLBACK")
            }
            K::TRANS_STMT_PREPARE => {
                let gid = stmt.gid.as_deref().unwrap_or_default();
                Box::pin(self.prepare_transaction(gid, out)).await
            }
            K::TRANS_STMT_COMMIT_PREPARED | K::TRANS_STMT_ROLLBACK_PREPARED => {
                let gid = stmt.gid.as_deref().unwrap_or_default();
                Box::pin(self.finish_prepared(gid, stmt.kind == K::TRANS_STMT_COMMIT_PREPARED, out)).await
            }
            _ => Err(Error::internal("a transaction statement of an unknown kind")),
        }
    }

    fn begin_block(&mut self, options: &[Option<Node>]) -> Result<()> {
        self.check_not_failed()?;
        if self.block == Block::Open {
            self.environment.notices.borrow_mut().push(Error::with_severity(
                Severity::Warning,
                SqlState::ACTIVE_SQL_TRANSACTION,
                "there is already a transaction in progress",
            ));
            return Ok(());
        }
        let modes = modes(options);
        if self.txn.is_none() {
            self.begin_transaction(modes);
        } else {
            // The transaction of a query with several statements becomes a block, if it can have the modes still.
            self.set_transaction(modes)?;
        }
        self.block = Block::Open;
        Ok(())
    }

    /// `SET TRANSACTION`: mostly only before the first query of the transaction.
    pub(super) fn set_transaction(&mut self, modes: Modes) -> Result<()> {
        let Some(txn) = &self.txn else {
            return Ok(());
        };
        let begun = self.has_queried || txn.id().is_some() || txn.has_view();
        let inside = !self.savepoints.is_empty();
        let mut isolation = txn.isolation();
        if let Some(level) = modes.isolation.filter(|level| *level != isolation) {
            if begun {
                return Err(too_late("SET TRANSACTION ISOLATION LEVEL must be called before any query"));
            }
            if inside {
                return Err(too_late("SET TRANSACTION ISOLATION LEVEL must not be called in a subtransaction"));
            }
            isolation = level;
        }
        let read_only = modes.read_only.unwrap_or(self.is_read_only());
        if self.is_read_only() && !read_only {
            if self.savepoints.last().is_some_and(|savepoint| savepoint.read_only) {
                return Err(too_late("cannot set transaction read-write mode inside a read-only transaction"));
            }
            if begun {
                return Err(too_late("transaction read-write mode must be set before any query"));
            }
        }
        if modes.deferrable.is_some() {
            if inside {
                return Err(too_late("SET TRANSACTION [NOT] DEFERRABLE cannot be called within a subtransaction"));
            }
            if begun {
                return Err(too_late("SET TRANSACTION [NOT] DEFERRABLE must be called before any query"));
            }
        }
        if !begun && !inside {
            // What was said to the engine at the beginning is said anew.
            self.txn = Some(self.begin(isolation, read_only));
        }
        self.environment.read_only.set(read_only);
        self.show_modes(&modes);
        Ok(())
    }

    /// `SHOW transaction_isolation` and the like tell the truth inside the transaction.
    fn show_modes(&mut self, modes: &Modes) {
        let Some(txn) = &self.txn else { return };
        let inside = self.savepoint_level();
        let mut settings = self.environment.settings.borrow_mut();
        let default = settings.show("default_transaction_isolation").unwrap_or_default();
        let shown = settings.show("transaction_isolation").unwrap_or_default();
        let level = match txn.isolation() {
            Isolation::ReadCommitted if modes.uncommitted => "read uncommitted",
            Isolation::ReadCommitted if modes.isolation.is_some() => "read committed",
            Isolation::ReadCommitted if shown == "read uncommitted" || default == "read uncommitted" => {
                "read uncommitted"
            }
            Isolation::ReadCommitted => "read committed",
            Isolation::RepeatableRead => "repeatable read",
            Isolation::Serializable => "serializable",
        };
        let word = |on: bool| if on { "on" } else { "off" };
        let deferrable = match modes.deferrable {
            Some(deferrable) => word(deferrable).to_string(),
            None if self.has_deferrable => settings.show("transaction_deferrable").unwrap_or_default(),
            None => settings.show("default_transaction_deferrable").unwrap_or_default(),
        };
        self.has_deferrable = true;
        let read_only = word(self.is_read_only());
        let shown = [
            ("transaction_isolation", level),
            ("transaction_read_only", read_only),
            ("transaction_deferrable", &deferrable),
        ];
        for (name, value) in shown {
            if settings.show(name).as_deref() != Some(value) {
                // The values come from the tables of words these settings accept.
                let _ = settings.set(name, value, true, inside);
            }
        }
    }

    async fn commit_block(&mut self, chain: bool, out: &mut dyn Output) -> Result<&'static str> {
        match self.block {
            Block::Failed => return self.rollback_block(chain),
            Block::None if chain => return Err(chain_outside_block("COMMIT AND CHAIN")),
            Block::None => self.environment.notices.borrow_mut().push(no_transaction()),
            Block::Open => {}
        }
        let modes = chain.then(|| self.modes_to_chain());
        self.commit_transaction(out).await?;
        if let Some(modes) = modes {
            self.chain_block(modes);
        }
        Ok("COMMIT")
    }

    pub(super) fn rollback_block(&mut self, chain: bool) -> Result<&'static str> {
        if self.block == Block::None {
            if chain {
                return Err(chain_outside_block("ROLLBACK AND CHAIN"));
            }
            self.environment.notices.borrow_mut().push(no_transaction());
        }
        let modes = chain.then(|| self.modes_to_chain());
        self.abort_transaction();
        if let Some(modes) = modes {
            self.chain_block(modes);
        }
        Ok("ROLLBACK")
    }

    /// The characteristics that AND CHAIN hands on. A block that failed outside of its savepoints has lost its own.
    fn modes_to_chain(&self) -> Modes {
        if self.txn.is_none() {
            return Modes::default();
        }
        let settings = self.environment.settings.borrow();
        let is_on = |name| settings.show(name).as_deref() == Some("on");
        let level = settings.show("transaction_isolation").unwrap_or_default();
        Modes {
            isolation: Some(self.txn.as_ref().map_or_else(|| isolation_of(&level), |txn| txn.isolation())),
            uncommitted: level == "read uncommitted",
            read_only: Some(self.is_read_only()),
            deferrable: Some(is_on("transaction_deferrable")),
        }
    }

    fn chain_block(&mut self, modes: Modes) {
        self.begin_transaction(modes);
        self.block = Block::Open;
    }

    fn require_block(&self, what: &str) -> Result<()> {
        if self.block == Block::None {
            return Err(Error::new(
                SqlState::NO_ACTIVE_SQL_TRANSACTION,
                format!("{what} can only be used in transaction blocks"),
            ));
        }
        Ok(())
    }

    fn savepoint(&mut self, name: &str) -> Result<()> {
        self.require_block("SAVEPOINT")?;
        self.ensure_transaction()?;
        if self.savepoints.len() >= SAVEPOINTS_MAX {
            return Err(Error::new(SqlState::OUT_OF_MEMORY, "out of memory")
                .detail(format!("A transaction can have at most {SAVEPOINTS_MAX} savepoints at a time.")));
        }
        let txn = self.txn.as_mut().expect("just ensured");
        let point = txn.savepoint();
        let said = self.environment.pending.borrow().mark();
        self.environment.settings.borrow_mut().depth += 1;
        let advisory = self.environment.advisory.mark();
        let deferred = self.environment.deferred.borrow_mut().mark();
        self.savepoints.push(NamedSavepoint {
            deferred,
            retyped: self.retyped.len(),
            analyzed: self.analyzed.len(),
            name: name.to_string(),
            point,
            said,
            read_only: self.is_read_only(),
            advisory,
        });
        Ok(())
    }

    fn find_savepoint(&self, name: &str) -> Result<usize> {
        self.savepoints.iter().rposition(|s| s.name == name).ok_or_else(|| {
            Error::new(SqlState::INVALID_SAVEPOINT_SPECIFICATION, format!("savepoint \"{name}\" does not exist"))
        })
    }

    fn release(&mut self, name: &str) -> Result<()> {
        self.require_block("RELEASE SAVEPOINT")?;
        let at = self.find_savepoint(name)?;
        let NamedSavepoint { point, read_only, .. } = self.savepoints[at];
        self.transaction().release(point);
        self.environment.settings.borrow_mut().release(at as u32);
        self.savepoints.truncate(at);
        for portal in self.portals.iter_mut() {
            portal.level = portal.level.min(at);
        }
        self.restore_read_only(read_only);
        Ok(())
    }

    async fn rollback_to_savepoint(&mut self, name: &str) -> Result<()> {
        self.require_block("ROLLBACK TO SAVEPOINT")?;
        let at = self.find_savepoint(name)?;
        self.savepoints.truncate(at + 1);
        let point = self.savepoints[at].point;
        self.undo_back_to(Some(point)).await;
        let txn = self.txn.as_mut().expect("a block with savepoints keeps its transaction");
        txn.rollback_to(point);
        self.environment.advisory.release_since(self.savepoints[at].advisory);
        let said = self.savepoints[at].said;
        self.environment.deferred.borrow_mut().undo_to(&self.savepoints[at].deferred);
        self.environment.pending.borrow_mut().undo_to(said);
        self.retyped.truncate(self.savepoints[at].retyped);
        self.take_analyzed_back(self.savepoints[at].analyzed);
        self.environment.settings.borrow_mut().rollback_to(at as u32 + 1);
        self.restore_read_only(self.savepoints[at].read_only);
        self.retain_portals(|portal| portal.is_held() || portal.level <= at);
        self.ended_portals.clear();
        self.block = Block::Open;
        Ok(())
    }

    /// The end of a part between savepoints ends what it said of read-only.
    fn restore_read_only(&mut self, read_only: bool) {
        if self.environment.read_only.get() != read_only {
            self.environment.read_only.set(read_only);
            self.show_modes(&Modes::default());
        }
    }

    /// Savepoint depth, for settings changed inside.
    pub(super) fn savepoint_level(&self) -> u32 {
        self.savepoints.len() as u32
    }
}

fn chain_outside_block(what: &str) -> Error {
    Error::new(SqlState::NO_ACTIVE_SQL_TRANSACTION, format!("{what} can only be used in transaction blocks"))
}
