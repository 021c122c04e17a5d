//! Rows of an answer, whichever server gave it: the body of PostgreSQL's DataRow message.

use super::text::parse_int;
use super::{Failure, nonsense};

/// A row of an answer. Bytes that are not as announced read as NULL.
#[derive(Clone, Copy)]
pub struct Row<'a> {
    pub(super) cells: &'a [u8],
}

impl<'a> Row<'a> {
    /// The cells from left to right; `None` is NULL.
    pub fn cells(self) -> Cells<'a> {
        Cells { rest: self.cells.get(2..).unwrap_or_default() }
    }

    /// Cell `index` as an integer.
    pub fn int(self, index: usize) -> Result<i64, Failure> {
        let cell = self.cells().nth(index).flatten();
        cell.and_then(parse_int).ok_or_else(|| nonsense("a cell is not an integer"))
    }

    /// Cell `index` as bytes; NULL is empty.
    pub fn bytes(self, index: usize) -> &'a [u8] {
        self.cells().nth(index).flatten().unwrap_or_default()
    }
}

/// Iterator over the cells of a [`Row`].
pub struct Cells<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Cells<'a> {
    type Item = Option<&'a [u8]>;

    fn next(&mut self) -> Option<Self::Item> {
        let (length, rest) = self.rest.split_first_chunk::<4>()?;
        let Ok(length) = usize::try_from(i32::from_be_bytes(*length)) else {
            self.rest = rest;
            return Some(None);
        };
        let (cell, rest) = rest.split_at_checked(length)?;
        self.rest = rest;
        Some(Some(cell))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_survive_any_bytes() {
        let row = Row { cells: b"\0\x03\0\0\0\x0212\xff\xff\xff\xff\0\0\0\0" };
        assert_eq!(row.cells().collect::<Vec<_>>(), [Some(&b"12"[..]), None, Some(&b""[..])]);
        assert_eq!(row.int(0).unwrap(), 12);
        assert!(row.int(1).is_err() && row.int(9).is_err());
        let cut = Row { cells: b"\0\x01\0\0\0\x09ab" };
        assert_eq!(cut.cells().count(), 0);
        assert_eq!(Row { cells: b"" }.bytes(0), b"");
    }
}
