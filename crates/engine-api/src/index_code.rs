//! What storage asks of who knows SQL: the code of indexes over expressions and of indexes that have some rows only
//! (rule R11).

use std::fmt::Debug;
use std::sync::Arc;

use base::Result;
use types::Datum;

use crate::{Catalog, IndexDesc, TableDesc};

/// The code of one index: which rows it has, and the values of its expressions.
///
/// What it computes depends on the row alone, today and after a restart.
pub trait IndexCode: Debug + Send + Sync {
    /// The columns (attribute numbers) that it reads.
    fn columns(&self) -> &[i16];

    /// Computes the expressions of a row, given by attribute number - 1, in their order into `out`; `false` if the index
    /// does not have the row.
    ///
    /// May be long work, which is counted ([`base::work`]): who holds what others may want does this in a closed section.
    ///
    /// # Errors
    /// Those of the expressions: such a row cannot be written; why the statement should stop.
    fn compute(&self, row: &[Datum], out: &mut Vec<Datum>) -> Result<bool>;

    /// The expressions as errors show them, with the names of a version of the table.
    fn shown(&self, table: &TableDesc) -> Vec<String>;
}

/// Makes the code of indexes from their descriptors.
pub trait IndexCompiler: Send + Sync + 'static {
    /// The code of an index.
    ///
    /// # Errors
    /// If its text cannot be bound to the table.
    fn compile(&self, catalog: &Catalog, table: &TableDesc, index: &IndexDesc) -> Result<Arc<dyn IndexCode>>;
}
