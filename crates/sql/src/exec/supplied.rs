//! Rows of parameters: an INSERT of one row of VALUES that takes them stores each in its turn.
//!
//! Responsible for: keeping them, and which of them is stored (errors name it).
//! Not responsible for: where they come from (COPY).
//!
//! Why: what a run of a plan costs beside its rows is paid once for many.

use types::Datum;

/// The rows of a run.
#[derive(Default)]
pub(crate) struct Supplied {
    values: Vec<Datum>,
    rows: usize,
    /// Rows taken.
    taken: usize,
}

impl Supplied {
    /// Forgets them.
    pub fn clear(&mut self) {
        self.values.clear();
        (self.rows, self.taken) = (0, 0);
    }

    /// Rows that are there, taken or not.
    pub fn len(&self) -> usize {
        self.rows
    }

    /// The number of the row that was taken last.
    pub fn last_taken(&self) -> Option<usize> {
        self.taken.checked_sub(1).filter(|row| *row < self.rows)
    }

    /// Adds a row of so many NULLs, whose values are set through the answer.
    pub fn push(&mut self, width: usize) -> &mut [Datum] {
        let from = self.values.len();
        self.values.resize(from + width, Datum::Null);
        self.rows += 1;
        &mut self.values[from..]
    }

    /// The values of the first row, of so many, as long as it is not taken.
    pub fn first(&self, width: usize) -> &[Datum] {
        &self.values[..width]
    }

    /// Takes back the row that was added last, of so many values.
    pub fn pop(&mut self, width: usize) {
        self.values.truncate(self.values.len() - width);
        self.rows -= 1;
    }

    /// Puts the next row in place of the one before; `false`, until there are others, if there is none.
    #[inline]
    pub(super) fn take(&mut self, params: &mut [Datum]) -> bool {
        let there = self.taken < self.rows;
        if there {
            let width = self.values.len() / self.rows;
            let from = self.taken * width;
            for (param, value) in params.iter_mut().zip(&mut self.values[from..from + width]) {
                param.put(std::mem::replace(value, Datum::Null));
            }
        }
        // Beyond the last row nothing is taken.
        self.taken = (self.taken + 1).min(self.rows + 1);
        there
    }
}
