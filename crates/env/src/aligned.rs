//! Memory that a disk can read into without a copy.

use std::ops::{Deref, DerefMut};

/// Where reads past the system's cache begin and end, in a file and in memory.
pub const PAGE: usize = 4096;

/// Bytes that begin at a multiple of [`PAGE`].
#[derive(Debug, Default)]
pub struct Aligned {
    memory: Vec<u8>,
    skip: usize,
    len: usize,
}

impl Aligned {
    /// Makes it hold so many bytes at least; what is in it is lost if it has to grow.
    pub fn grow(&mut self, len: usize) {
        if len <= self.len {
            return;
        }
        let len = len.next_multiple_of(PAGE);
        *self = Aligned { memory: vec![0; len + PAGE], skip: 0, len };
        self.skip = self.memory.as_ptr().align_offset(PAGE).min(PAGE);
    }
}

impl Deref for Aligned {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.memory[self.skip..self.skip + self.len]
    }
}

impl DerefMut for Aligned {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.skip..self.skip + self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_begins_and_ends_at_pages() {
        let mut memory = Aligned::default();
        assert!(memory.is_empty());
        for len in [1, PAGE, PAGE + 1, 100] {
            memory.grow(len);
            assert!(memory.len() >= len && memory.len().is_multiple_of(PAGE));
            assert!(memory.as_ptr().addr().is_multiple_of(PAGE));
            memory.fill(7);
        }
    }
}
