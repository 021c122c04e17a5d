//! Conditions that are tested where a row lies, before anything of it is copied.
//!
//! Responsible for: comparisons of a column with a value, with another column, with a list; IS NULL.
//! Not responsible for: which conditions these are ([`sql_plan::Stage`]).
//! Invariant: a test cannot fail. The engine calls it within a scan, which has no way to report an error of a condition.

use base::{Error, Result};
use sql_ir::expr::{Code, Comparison, Constants};
use sql_ir::row_codec::StoredRow;
use sql_plan::Stage;
use types::{Datum, DatumRef};

/// A condition of a scan, with what it compares by in this execution. Columns have the numbers of the scan's reader.
pub(super) enum StoredTest<'a> {
    /// A column with a value.
    Value(&'a Comparison, usize, &'a Datum),
    /// A column with a text.
    Text(&'a Comparison, usize, &'a Datum),
    /// Two columns.
    Columns(&'a Comparison, usize, usize),
    /// `= ANY` and `<> ALL` of a few constants and values in registers.
    Few { all: bool, test: &'a Comparison, column: usize, items: &'a [Code], registers: &'a [Datum] },
    /// The same of the values of an array.
    Array { all: bool, test: &'a Comparison, column: usize, items: &'a [Datum] },
    /// The same of many constants.
    Many { all: bool, column: usize, constants: &'a Constants },
    /// IS NULL, or IS NOT NULL if `true`.
    Null(usize, bool),
}

impl<'a> StoredTest<'a> {
    /// The test of a condition in this stage. Always inline: a scan of one row makes it, too.
    #[inline(always)]
    pub fn new(stage: Stage, condition: &'a Code, registers: &'a [Datum]) -> Result<StoredTest<'a>> {
        Ok(match (stage, condition) {
            (Stage::Stored(column), Code::Compare(test, args)) => {
                let value = match &args[1] {
                    Code::Const(value) => value,
                    Code::Slot(slot) => &registers[*slot as usize],
                    _ => return Err(not_stored()),
                };
                match value {
                    Datum::Text(_) => StoredTest::Text(test, column, value),
                    value => StoredTest::Value(test, column, value),
                }
            }
            (Stage::Both(left, right), Code::Compare(test, _)) => StoredTest::Columns(test, left, right),
            (Stage::Stored(column), Code::AnyAllList { all, test, items, .. }) => {
                StoredTest::Few { all: *all, test, column, items, registers }
            }
            (Stage::Stored(column), Code::AnyAllArray { all, test, array, .. }) => match &**array {
                Code::Const(Datum::Array(array)) => StoredTest::Array { all: *all, test, column, items: &array.values },
                _ => return Err(not_stored()),
            },
            (Stage::Stored(column), Code::AnyAllConstants { all, constants, .. }) => {
                StoredTest::Many { all: *all, column, constants }
            }
            (Stage::Stored(column), Code::IsNull(_, negated)) => StoredTest::Null(column, *negated),
            _ => return Err(not_stored()),
        })
    }

    /// Whether the condition is true of a row (not false and not NULL).
    #[inline]
    pub fn holds(&self, row: &StoredRow<'_>) -> bool {
        match self {
            StoredTest::Value(test, column, value) => test.test_stored(&row.get(*column), value) == Some(true),
            StoredTest::Text(test, column, value) => is_text(row, test, *column, value),
            StoredTest::Columns(test, left, right) => {
                test.test_both_stored(&row.get(*left), &row.get(*right)) == Some(true)
            }
            StoredTest::Few { all, test, column, items, registers } => {
                in_list(row, test, *column, *all, items, |item| match item {
                    Code::Const(value) => value,
                    Code::Slot(slot) => &registers[*slot as usize],
                    _ => &Datum::Null,
                })
            }
            StoredTest::Array { all, test, column, items } => in_list(row, test, *column, *all, items, |item| item),
            StoredTest::Many { all, column, constants } => constants.has_stored(&row.get(*column)) == Some(!*all),
            StoredTest::Null(column, negated) => matches!(row.get(*column), DatumRef::Null) != *negated,
        }
    }

    /// Units of work that a test is.
    pub fn units(&self) -> usize {
        match self {
            StoredTest::Value(..) | StoredTest::Text(..) | StoredTest::Columns(..) | StoredTest::Null(..) => 1,
            StoredTest::Few { items, .. } => items.len(),
            StoredTest::Array { items, .. } => items.len(),
            StoredTest::Many { .. } => 8,
        }
    }
}

/// Whether a comparison of a column, which is a text as a rule, with a text is true. It is not looked whether the bytes are UTF-8.
#[inline]
fn is_text(row: &StoredRow<'_>, test: &Comparison, column: usize, value: &Datum) -> bool {
    let by_bytes = row.text_bytes(column).and_then(|bytes| test.test_text_bytes(bytes, value));
    by_bytes.or_else(|| test.test_stored(&row.get(column), value)) == Some(true)
}

/// Whether a comparison of a column holds of all values, otherwise of any.
#[inline]
fn in_list<'i, T>(
    row: &StoredRow<'_>,
    test: &Comparison,
    column: usize,
    all: bool,
    items: &'i [T],
    value_of: impl Fn(&'i T) -> &'i Datum,
) -> bool {
    if items.first().is_some_and(|item| matches!(value_of(item), Datum::Text(_))) {
        return each(all, items, |item| is_text(row, test, column, value_of(item)));
    }
    let held = row.get(column);
    each(all, items, |item| test.test_stored(&held, value_of(item)) == Some(true))
}

/// Whether a test holds of all items, otherwise of any.
fn each<'i, T>(all: bool, items: &'i [T], holds: impl FnMut(&'i T) -> bool) -> bool {
    if all { items.iter().all(holds) } else { items.iter().any(holds) }
}

#[cold]
fn not_stored() -> Error {
    Error::internal("a condition that is not tested where a row lies")
}
