//! A scan of a stored table: which rows it visits, by which parts of an index.

use std::sync::Arc;

use base::Oid;
use engine_api::RowContent;
use sql_ir::expr::Code;
use sql_ir::row_codec::RowReader;

use super::key_reader::KeyReader;
use super::node::PlannedTable;

/// A scan of a stored table.
#[derive(Debug)]
pub struct ScanNode {
    /// The table that is read.
    pub table: Arc<PlannedTable>,
    /// The name that EXPLAIN shows.
    pub alias: String,
    /// Reads the used columns of a row into the registers.
    pub reader: RowReader,
    /// Reads the used columns from the index's key instead: an index-only scan.
    pub keys: Option<KeyReader>,
    /// What is asked of the engine.
    pub content: RowContent,
    /// Which rows are visited.
    pub access: Access,
    /// Conditions that all must hold.
    pub filter: Vec<Code>,
    /// What each condition of the filter needs of the row.
    pub stages: Box<[Stage]>,
    /// So many of the first conditions are tested before a row of a scan is copied: those that are tested where it lies.
    pub pushed: usize,
    /// Nobody asks for more than one row: it has no filter, and stands below a semi or anti join without conditions.
    pub one_is_enough: bool,
    /// One row is enough of each value of so many of the index's first columns; 0: all rows are wanted. It is an index-only scan
    /// of a range then.
    pub distinct: usize,
    /// Rows expected that its conditions leave.
    pub rows: f64,
    /// So many of the reader's columns, the first ones, are all that its conditions and the joins above ask for.
    pub early: usize,
    /// The others are read when a [`super::LateNode`] above asks for them.
    pub is_late: bool,
    /// The conditions as EXPLAIN shows them: those of the index, those of the filter.
    pub shown: (String, String),
}

/// What a condition of a scan's filter needs of the reader's columns; the others are read if it holds.
#[derive(Clone, Copy, Debug)]
pub enum Stage {
    /// So many, from the first on, in the registers.
    Columns(usize),
    /// It is about this column and values that are the same for all rows of a scan, and is tested where the row lies.
    Stored(usize),
    /// It compares these two columns, and is tested where the row lies.
    Both(usize, usize),
    /// It is evaluated where the row lies, and may fail.
    InPlace,
}

/// Which rows a scan visits.
#[derive(Debug)]
pub enum Access {
    /// All.
    Full,
    /// Those at some places, by `ctid`.
    Places(ListSource),
    /// Those with one key.
    Point {
        /// The index.
        index: Oid,
        /// The values of its columns.
        key: Vec<KeyPart>,
    },
    /// Those with one of several whole keys, in the order of the index: some parts of the key have several values.
    Multi {
        /// The index.
        index: Oid,
        /// The values of its columns.
        key: Vec<KeyPart>,
    },
    /// Those of a span without lists.
    Range {
        /// The index.
        index: Oid,
        /// Where in the index.
        span: KeySpan,
        /// The span is read from its end.
        reverse: bool,
    },
    /// Those of any of several ranges of one index, each once.
    Ranges {
        /// The index.
        index: Oid,
        /// Where in the index: a range for each combination of the values in a span's lists.
        spans: Vec<KeySpan>,
        /// They are read from their end.
        reverse: bool,
        /// The rows come in the order of what is behind the prefix of each range, otherwise in that of the index.
        merges: bool,
    },
    /// Those of any of several spans of several indexes, each once, in the order of their identities.
    Union(Vec<UnionPart>),
}

/// One of the spans of a union.
#[derive(Debug)]
pub struct UnionPart {
    /// The index.
    pub index: Oid,
    /// Where in the index.
    pub span: KeySpan,
    /// The conditions as EXPLAIN shows them.
    pub shown: String,
}

/// Where the values of an IN list come from.
#[derive(Debug)]
pub enum ListSource {
    /// Values one by one.
    List(Vec<Code>),
    /// The elements of an array.
    Array(Code),
}

impl ListSource {
    /// Values that it has in any case.
    pub fn least(&self) -> usize {
        match self {
            ListSource::List(values) => values.len(),
            ListSource::Array(_) => 0,
        }
    }
}

/// A column of an index key.
#[derive(Clone, Copy, Debug)]
pub struct KeyColumn {
    /// Its type.
    pub ty: Oid,
    /// DESC.
    pub descending: bool,
    /// NULLS FIRST.
    pub nulls_first: bool,
}

/// A column of a key with its value.
#[derive(Debug)]
pub struct KeyPart {
    /// The column.
    pub column: KeyColumn,
    /// What it equals.
    pub value: KeyValue,
}

/// What a column of a key equals.
#[derive(Debug)]
pub enum KeyValue {
    /// A value. Nothing equals NULL.
    Value(Code),
    /// NULL.
    Null,
    /// Any of several values.
    List(ListSource),
    /// Each value that the column has, NULL among them; they are few.
    Any,
}

/// A part of an index.
#[derive(Debug)]
pub struct KeySpan {
    /// The first columns with their values. If it has two lists or more and the values of one come from an array, only lists up to some
    /// length need be put together: the rows behind the first one may have any values then. So they may behind [`KeyValue::Any`].
    pub prefix: Vec<KeyPart>,
    /// The column behind them.
    pub next: Option<KeyColumn>,
    /// The lower end in that column.
    pub lower: Option<Bound>,
    /// The upper end in that column.
    pub upper: Option<Bound>,
    /// Without keys that are NULL in that column.
    pub not_null: bool,
}

/// One end of a range.
#[derive(Debug)]
pub struct Bound {
    /// The value at the end.
    pub value: Code,
    /// Values of the columns behind, where the end is one of several columns, which are all in one direction. A NULL among them cuts the
    /// end off before it.
    pub more: Vec<(KeyColumn, Code)>,
    /// The values themselves are in the range.
    pub inclusive: bool,
}
