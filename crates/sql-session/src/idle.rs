//! Executions between two runs: what a finished run leaves is taken up by the next run of its plan.
//!
//! Responsible for: keeping them, where the next run finds them in its core's caches.
//! Not responsible for: whether an execution may run again ([`Execution::retire`]).
//!
//! Requirement: a statement that runs on many connections touches as little memory as one that runs on one, and cores do not
//! wait for each other. Rule: the sessions of a core share their executions, in a stripe that other cores do not touch. What is kept
//! holds no view.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use sql_exec::Execution;
use sql_parse::thread;
use sql_plan::Plan;

/// Executions of a stripe; when it is full, the one that is there the longest goes.
const STRIPE_MAX: usize = 256;

/// Executions by the addresses of their plans, which they keep alive; looking for one touches none of the others. The last
/// one kept is found first.
type Stripe = Mutex<Vec<(usize, Box<Execution>)>>;

#[derive(Default)]
#[repr(align(128))]
struct Padded(Stripe);

/// The idle executions of all cores.
pub(super) struct IdleExecutions {
    stripes: Box<[Padded]>,
    /// The version of the catalog that they were planned under, or one before. Relaxed: it guards nothing but memory.
    catalog_version: AtomicU64,
}

impl IdleExecutions {
    /// None.
    pub fn new() -> IdleExecutions {
        let stripes = (0..thread::stripes()).map(|_| Padded::default()).collect();
        IdleExecutions { stripes, catalog_version: AtomicU64::new(0) }
    }

    fn own(&self) -> &Stripe {
        &self.stripes[thread::number() % self.stripes.len()].0
    }

    /// An execution of this plan.
    pub fn take(&self, plan: &Arc<Plan>) -> Option<Box<Execution>> {
        let address = Arc::as_ptr(plan).addr();
        let mut own = self.own().lock();
        let at = own.iter().rposition(|(of, _)| *of == address)?;
        Some(own.swap_remove(at).1)
    }

    /// Keeps a finished execution, if it holds little.
    pub fn keep(&self, mut execution: Box<Execution>) {
        if !execution.retire() {
            return;
        }
        let mut own = self.own().lock();
        // Dropped when the latch is free again: it may close tables.
        let _oldest = (own.len() == STRIPE_MAX).then(|| own.remove(0));
        own.push((Arc::as_ptr(execution.plan()).addr(), execution));
        drop(own);
    }

    /// Drops what was planned under another version of the catalog: it would keep its tables open. One that ran while its
    /// tables were changed cannot come later: its transaction held them locked when it was kept.
    pub(crate) fn renew(&self, catalog_version: u64) {
        if self.catalog_version.swap(catalog_version, Ordering::Relaxed) == catalog_version {
            return;
        }
        for stripe in &self.stripes {
            let _of_others = std::mem::take(&mut *stripe.0.lock());
        }
    }
}
