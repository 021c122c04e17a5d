//! From the bound statement to a plan.

use std::sync::Arc;

use base::{Oid, Result};
use engine_api::Catalog;

use crate::ir;

/// A plan, shared by all sessions that run the statement.
pub struct Plan {}

/// What the planner asks about tables.
pub trait PlannerStats {
    /// Rows of a table, roughly.
    fn row_count(&self, table: Oid) -> u64;
}

/// Plans a statement.
pub fn plan(_statement: &ir::Statement, _catalog: &Catalog, _stats: &dyn PlannerStats) -> Result<Arc<Plan>> {
    todo!()
}

impl Plan {
    /// EXPLAIN's lines.
    pub fn explain(&self) -> Vec<String> {
        todo!()
    }
}
