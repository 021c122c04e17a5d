//! A cursor over the body of one message, with PostgreSQL's complaints (`pqformat.c`).

use base::Result;

use super::{text, violation};

/// The unread part of a message body.
#[derive(Clone, Copy, Debug)]
pub struct Body<'a> {
    rest: &'a [u8],
}

impl<'a> Body<'a> {
    /// A cursor at the start of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Body<'a> {
        Body { rest: bytes }
    }

    /// What has not been read.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// One byte.
    pub fn u8(&mut self) -> Result<u8> {
        let (&first, rest) = self.rest.split_first().ok_or_else(|| violation("no data left in message"))?;
        self.rest = rest;
        Ok(first)
    }

    /// `n` bytes.
    pub fn bytes(&mut self, n: usize) -> Result<&'a [u8]> {
        let (taken, rest) =
            self.rest.split_at_checked(n).ok_or_else(|| violation("insufficient data left in message"))?;
        self.rest = rest;
        Ok(taken)
    }

    /// A two-byte count.
    pub fn u16(&mut self) -> Result<u16> {
        let b = self.bytes(2)?;
        Ok(u16::from_be_bytes([b[0], b[1]]))
    }

    /// A four-byte integer.
    pub fn i32(&mut self) -> Result<i32> {
        let b = self.bytes(4)?;
        Ok(i32::from_be_bytes([b[0], b[1], b[2], b[3]]))
    }

    /// A string ended by a zero byte, as bytes.
    pub fn cstr(&mut self) -> Result<&'a [u8]> {
        let end = super::zero(self.rest).ok_or_else(|| violation("invalid string in message"))?;
        let string = &self.rest[..end];
        self.rest = &self.rest[end + 1..];
        Ok(string)
    }

    /// A string ended by a zero byte, as UTF-8.
    #[inline]
    pub fn text(&mut self) -> Result<&'a str> {
        // Most portals and many statements have no name.
        if let Some((0, rest)) = self.rest.split_first() {
            self.rest = rest;
            return Ok("");
        }
        text(self.cstr()?)
    }

    /// Checks that everything has been read.
    pub fn end(&self) -> Result<()> {
        if self.rest.is_empty() { Ok(()) } else { Err(violation("invalid message format")) }
    }
}
