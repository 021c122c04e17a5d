//! Rows of parameters: an INSERT of one row of VALUES that takes them stores each in its turn.
//!
//! Responsible for: keeping them, and which of them is stored (errors name it).
//! Not responsible for: where they come from (COPY).
//!
//! Why: what a run of a plan costs beside its rows is paid once for many.

use types::Datum;

/// The rows of a run.
#[derive(Default)]
pub struct ParameterRows {
    /// The values of the rows one after the other, NULL where a row was taken. Behind them are NULLs of runs before.
    values: Vec<Datum>,
    /// Values of a row.
    width: usize,
    rows: usize,
    /// Rows taken.
    taken: usize,
}

impl ParameterRows {
    /// Forgets them. The rows to come have so many values.
    pub fn clear(&mut self, width: usize) {
        let left = self.taken.min(self.rows) * self.width..self.rows * self.width;
        self.values[left].fill(Datum::Null);
        (self.width, self.rows, self.taken) = (width, 0, 0);
    }

    /// Rows that are there, taken or not.
    pub fn len(&self) -> usize {
        self.rows
    }

    /// The number of the row that was taken last.
    pub fn last_taken(&self) -> Option<usize> {
        self.taken.checked_sub(1).filter(|row| *row < self.rows)
    }

    /// Adds a row of NULLs, whose values are set through the answer.
    pub fn push(&mut self) -> &mut [Datum] {
        let row = self.rows * self.width..(self.rows + 1) * self.width;
        if self.values.len() < row.end {
            self.values.resize(row.end, Datum::Null);
        }
        self.rows += 1;
        &mut self.values[row]
    }

    /// The values of the first row, as long as it is not taken.
    pub fn first(&self) -> &[Datum] {
        &self.values[..self.width]
    }

    /// Takes back the row that was added last.
    pub fn pop(&mut self) {
        self.rows -= 1;
        let row = self.rows * self.width..(self.rows + 1) * self.width;
        self.values[row].fill(Datum::Null);
    }

    /// Puts the next row in place of the one before; `false`, until there are others, if there is none.
    #[inline]
    pub(super) fn take(&mut self, params: &mut [Datum]) -> bool {
        let there = self.taken < self.rows;
        if there {
            let row = self.taken * self.width..(self.taken + 1) * self.width;
            for (param, value) in params.iter_mut().zip(&mut self.values[row]) {
                param.put(std::mem::replace(value, Datum::Null));
            }
        }
        // Beyond the last row nothing is taken.
        self.taken = (self.taken + 1).min(self.rows + 1);
        there
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_begins_with_nulls_whatever_became_of_those_before() {
        let mut rows = ParameterRows::default();
        for width in [3, 2, 5, 0, 4] {
            rows.clear(width);
            for row in 0..4 {
                let values = rows.push();
                assert_eq!(values, vec![Datum::Null; width], "row {row}");
                values.fill(Datum::Int4(row));
            }
            rows.pop();
            let mut params = vec![Datum::Null; width];
            assert!(rows.take(&mut params) && rows.take(&mut params));
            assert_eq!((rows.len(), rows.last_taken(), params), (3, Some(1), vec![Datum::Int4(1); width]));
        }
        rows.clear(1);
        assert!(!rows.take(&mut [Datum::Null]));
        assert_eq!((rows.len(), rows.last_taken()), (0, None));
    }
}
