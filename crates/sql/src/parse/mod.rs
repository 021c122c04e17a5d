//! From text to PostgreSQL's raw parse tree.

pub mod fingerprint;

use base::Result;
use rupg_sql::nodes::Node;

/// One statement of a text.
#[derive(Debug)]
pub struct ParsedStatement {
    /// Its raw parse tree.
    pub node: Node,
    /// Where it begins in the text, in bytes.
    pub start: usize,
    /// Its bytes.
    pub len: usize,
}

/// Parses a text of any number of statements.
///
/// # Errors
/// 42601 and the scanner's errors with their position; 54001 if it nests too deep.
pub fn parse(_sql: &str) -> Result<Vec<ParsedStatement>> {
    todo!()
}
