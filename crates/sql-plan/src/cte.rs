//! WITH queries: where their rows are kept while a statement runs.
//!
//! The rows of a query are kept in a cell of the execution, which all references share, whatever level they stand at. Cells are
//! numbered here, per use of a WITH clause in a plan: a clause that has been copied has other cells in each copy.

use std::cell::RefCell;

use base::{Error, Result};
use rustc_hash::FxHashMap;
use sql_ir::Cte;

use super::level::Level;
use super::node::CtePlan;

/// The cells given out so far.
#[derive(Default)]
pub(crate) struct Cells(RefCell<Given>);

#[derive(Default)]
struct Given {
    kept: usize,
    work: usize,
    /// Cell of each query, work table of each recursive one.
    of_query: FxHashMap<usize, usize>,
    of_recursion: FxHashMap<usize, usize>,
}

impl Cells {
    /// A cell for the rows of a query.
    fn add(&self, id: usize) -> usize {
        let mut given = self.0.borrow_mut();
        given.kept += 1;
        let cell = given.kept - 1;
        given.of_query.insert(id, cell);
        cell
    }

    /// A work table.
    pub(crate) fn add_work_table(&self, id: usize) -> usize {
        let mut given = self.0.borrow_mut();
        given.work += 1;
        let table = given.work - 1;
        given.of_recursion.insert(id, table);
        table
    }

    /// The cell of a query.
    pub fn cell(&self, id: usize) -> Result<usize> {
        let found = self.0.borrow().of_query.get(&id).copied();
        found.ok_or_else(|| Error::internal("a WITH query is read where it is not known"))
    }

    /// The work table of a recursive query.
    pub(crate) fn work_table(&self, id: usize) -> Result<usize> {
        let found = self.0.borrow().of_recursion.get(&id).copied();
        found.ok_or_else(|| Error::internal("a recursive query is read where it is not known"))
    }

    /// Cells and work tables given out.
    pub fn counts(&self) -> (usize, usize) {
        let given = self.0.borrow();
        (given.kept, given.work)
    }
}

impl Level<'_> {
    /// Plans the WITH queries of this level; those that come later may read those before.
    pub fn add_ctes(&mut self, ctes: &[Cte]) -> Result<()> {
        for cte in ctes {
            let subplan = self.subplan(&cte.query)?;
            let cell = self.cx.cells.add(cte.id);
            self.ctes.push(CtePlan { cell, name: cte.name.clone(), subplan, modifies: cte.modifies });
        }
        Ok(())
    }
}
