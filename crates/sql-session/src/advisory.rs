//! Advisory locks of the session.
//!
//! Responsible for: making them when they are first asked for, waiting behind an expression that asked.
//! Not responsible for: counting and conflicts (the engine).
//! An expression cannot wait: for a lock that it did not get, the statement is suspended before the row leaves it.

use std::cell::RefCell;
use std::collections::VecDeque;

use base::Result;
use engine_api::{AdvisoryKey, AdvisoryLocks, Step, WaitPolicy};
use sql_functions::AdvisoryRequest;

use super::Session;
use super::context::Environment;

/// The session's locks and requests.
#[derive(Default)]
pub struct Advisory {
    locks: RefCell<Option<Box<dyn AdvisoryLocks>>>,
    requests: RefCell<VecDeque<AdvisoryRequest>>,
}

impl Advisory {
    /// Takes a lock, or requests it if the statement may wait.
    pub(super) fn take(&self, environment: &Environment, wanted: AdvisoryRequest, waits: bool) -> Result<bool> {
        let mut locks = self.locks.borrow_mut();
        if locks.is_none() {
            *locks = Some(environment.engine.advisory_locks(environment.pid.unsigned_abs())?);
        }
        let Some(locks) = locks.as_mut() else { return Ok(false) };
        // Who waits waits for one after the other.
        let behind = waits && !self.requests.borrow().is_empty();
        let AdvisoryRequest { key, is_shared, of_transaction } = wanted;
        if !behind && matches!(locks.lock(key, is_shared, of_transaction, WaitPolicy::Error)?, Step::Ready(true)) {
            return Ok(true);
        }
        if waits {
            self.requests.borrow_mut().push_back(wanted);
        }
        Ok(false)
    }

    /// Whether a lock is requested.
    pub(super) fn is_requested(&self) -> bool {
        !self.requests.borrow().is_empty()
    }

    /// Gives back a lock of the session.
    pub(super) fn unlock(&self, key: AdvisoryKey, is_shared: bool) -> bool {
        self.locks.borrow_mut().as_mut().is_some_and(|locks| locks.unlock(key, is_shared))
    }

    /// Gives back all locks of the session.
    pub(super) fn unlock_all(&self) {
        if let Some(locks) = self.locks.borrow_mut().as_mut() {
            locks.unlock_all();
        }
    }

    /// See [`AdvisoryLocks::of_transaction`].
    pub(super) fn of_transaction(&self) -> Result<Vec<(AdvisoryKey, bool)>> {
        self.locks.borrow().as_ref().map_or_else(|| Ok(Vec::new()), |locks| locks.of_transaction())
    }

    /// See [`AdvisoryLocks::mark`].
    pub(super) fn mark(&self) -> usize {
        self.locks.borrow().as_ref().map_or(0, |locks| locks.mark())
    }

    /// See [`AdvisoryLocks::release_since`].
    pub(super) fn release_since(&self, mark: usize) {
        if let Some(locks) = self.locks.borrow_mut().as_mut() {
            locks.release_since(mark);
        }
        self.forget_requests();
    }

    fn forget_requests(&self) {
        let mut requests = self.requests.borrow_mut();
        if !requests.is_empty() {
            requests.clear();
        }
    }

    fn try_first(&self) -> Result<Option<engine_api::Wait>> {
        let first = self.requests.borrow().front().copied();
        let Some(AdvisoryRequest { key, is_shared, of_transaction }) = first else { return Ok(None) };
        let mut locks = self.locks.borrow_mut();
        let Some(locks) = locks.as_mut() else { return Ok(None) };
        match locks.lock(key, is_shared, of_transaction, WaitPolicy::Block)? {
            Step::Wait(wait) => Ok(Some(wait)),
            Step::Ready(_) => {
                self.requests.borrow_mut().pop_front();
                Ok(None)
            }
        }
    }

    fn give_up(&self) {
        if let Some(locks) = self.locks.borrow_mut().as_mut() {
            locks.cancel_wait();
        }
        self.forget_requests();
    }
}

impl Session {
    /// Waits for the locks that expressions have requested.
    pub(super) async fn lock_as_asked(&self) -> Result<()> {
        let advisory = &self.environment.advisory;
        while advisory.is_requested() {
            let result = match advisory.try_first() {
                Ok(None) => continue,
                Ok(Some(wait)) => self.wait(wait).await,
                Err(error) => Err(error),
            };
            if let Err(error) = result {
                advisory.give_up();
                return Err(error);
            }
        }
        Ok(())
    }
}
