//! How large a value may be, and whether there is memory for it: asked before it is made.
//!
//! Responsible for: the limit of one value ([`VALUE_MAX`], 54000), the question to the owner of the process's memory
//! ([`ask`], 53200), texts and lists that ask before they grow ([`Room`]).
//! Not responsible for: how much memory there is (the server's ledger; without one there is always room).
//! Invariants: a value smaller than [`LARGE`] is not asked for. Nothing is reserved by asking: what is asked for is to be
//! allocated immediately, and is counted from then on.

use std::sync::OnceLock;

use base::{Error, Result, SqlState, work};

/// Bytes of the largest value, as in PostgreSQL.
pub const VALUE_MAX: usize = 0x3fff_ffff;
/// What is smaller than this is made without asking.
pub const LARGE: usize = 64 << 10;

/// Whether there is memory for so many bytes more; 53200 if not.
pub type Ledger = Box<dyn Fn(usize) -> Result<()> + Send + Sync>;

static LEDGER: OnceLock<Ledger> = OnceLock::new();

/// Says who is asked, for the whole process; the first one stays.
pub fn keep(ledger: Ledger) {
    // A second server in one process, as tests have it, shares the first one's memory as well.
    let _ = LEDGER.set(ledger);
}

/// Whether there is memory for so many bytes more.
///
/// # Errors
/// 53200 if there is not.
#[inline]
pub fn ask(bytes: usize) -> Result<()> {
    if bytes < LARGE { Ok(()) } else { ask_ledger(bytes) }
}

#[cold]
#[inline(never)]
fn ask_ledger(bytes: usize) -> Result<()> {
    LEDGER.get().map_or(Ok(()), |ledger| ledger(bytes))
}

/// The error of a value that would be longer than [`VALUE_MAX`].
#[cold]
pub fn too_long() -> Error {
    Error::new(SqlState::PROGRAM_LIMIT_EXCEEDED, "out of memory").detail("A value cannot be longer than 1 GB.")
}

/// Whether a value of so many bytes may be made. It is asked for twice: a text is built, and is then moved to where it is shared.
///
/// # Errors
/// 54000 for a value that is too long, 53200 without memory for it.
#[inline]
pub fn for_value(bytes: usize) -> Result<()> {
    if bytes < LARGE / 2 {
        return Ok(());
    }
    if bytes > VALUE_MAX { Err(too_long()) } else { ask(2 * bytes) }
}

/// As [`for_value`], of `count` pieces of `bytes` each.
///
/// # Errors
/// As [`for_value`].
#[inline]
pub fn for_values(count: usize, bytes: usize) -> Result<()> {
    for_value(count.saturating_mul(bytes))
}

/// Whether a list of `count` entries of `size` bytes may be made.
///
/// # Errors
/// As [`for_value`].
#[inline]
pub fn for_list(count: usize, size: usize) -> Result<()> {
    let bytes = count.saturating_mul(size);
    if bytes > VALUE_MAX { Err(too_long()) } else { ask(bytes) }
}

/// A text or list that asks before it grows.
pub trait Room {
    /// Makes room for `more` entries; for few in what is small that is left to who appends them.
    ///
    /// # Errors
    /// As [`for_value`], for what it grows to.
    fn make_room(&mut self, more: usize) -> Result<()>;
}

/// Bytes beside what was asked for that a large text has room for: what is short is appended without asking, and must not be what
/// makes it grow.
const SPARE: usize = 128;

/// Bytes that another thread moves to where there is more room.
const LONG: usize = 1 << 20;

/// Lets a list of so many bytes grow. Nothing stops it: what is being made may be somebody else's buffer.
fn grow<L: Default + Send + 'static>(list: &mut L, bytes: usize, reserve: impl FnOnce(&mut L) + Send + 'static) {
    if bytes < LONG {
        return reserve(list);
    }
    let mut moved = std::mem::take(list);
    *list = work::unstopped(|| {
        work::elsewhere_unwound(move || {
            reserve(&mut moved);
            moved
        })
    });
}

/// As `Vec::reserve`, for a list whose memory is counted elsewhere: nobody is asked, and it may be longer than a value. Nothing may be held
/// meanwhile that others of the thread want.
#[inline]
pub fn reserve<T: Send + 'static>(list: &mut Vec<T>, more: usize) {
    if list.capacity() - list.len() < more {
        grow(list, list.len() * size_of::<T>(), move |list| list.reserve(more));
    }
}

impl<T: Send + 'static> Room for Vec<T> {
    #[inline]
    fn make_room(&mut self, more: usize) -> Result<()> {
        let spare = const { if size_of::<T>() == 1 { SPARE } else { 0 } };
        if self.capacity() - self.len() >= more.saturating_add(spare) || is_small(self.len(), more, size_of::<T>()) {
            return Ok(());
        }
        let grows = grown(self.len(), self.capacity(), more, size_of::<T>())?;
        grow(self, self.len() * size_of::<T>(), move |list| list.reserve_exact(grows));
        Ok(())
    }
}

impl Room for String {
    #[inline]
    fn make_room(&mut self, more: usize) -> Result<()> {
        if self.capacity() - self.len() >= more.saturating_add(SPARE) || is_small(self.len(), more, 1) {
            return Ok(());
        }
        let grows = grown(self.len(), self.capacity(), more, 1)?;
        grow(self, self.len(), move |text| text.reserve_exact(grows));
        Ok(())
    }
}

/// Whether `more` entries leave it so small that even as it doubles nobody is to be asked.
#[inline]
fn is_small(len: usize, more: usize, size: usize) -> bool {
    more < LARGE && (len + more) * size < LARGE / 4
}

/// As [`Room::make_room`], of a list of what is borrowed, which no other thread can move: it is moved entry by entry, counted.
///
/// # Errors
/// As [`Room::make_room`].
#[inline]
pub fn in_list<T>(list: &mut Vec<T>, more: usize) -> Result<()> {
    if list.capacity() - list.len() >= more || is_small(list.len(), more, size_of::<T>()) {
        return Ok(());
    }
    let grows = grown(list.len(), list.capacity(), more, size_of::<T>())?;
    let moved = std::mem::replace(list, Vec::with_capacity(list.len() + grows));
    for entry in moved {
        work::step(1)?;
        list.push(entry);
    }
    Ok(())
}

/// How many entries of `size` bytes more there is to be room for, so that lists double.
#[cold]
fn grown(len: usize, capacity: usize, more: usize, size: usize) -> Result<usize> {
    let size = size.max(1);
    let most = VALUE_MAX / size;
    let least = len.saturating_add(more);
    if least > most {
        return Err(too_long());
    }
    let spare = if size > 1 || least < LARGE - SPARE { 0 } else { SPARE };
    if capacity >= least + spare {
        return Ok(0);
    }
    let becomes = (least + spare).max(capacity.saturating_mul(2).min(most)).max(16);
    // While it moves it is there twice, and so it is when it is handed over.
    ask((2 * becomes - capacity) * size)?;
    Ok(becomes - len)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_end_at_the_limit_and_lists_double() {
        assert!(for_value(VALUE_MAX).is_ok());
        assert_eq!(for_value(VALUE_MAX + 1).unwrap_err().code(), SqlState::PROGRAM_LIMIT_EXCEEDED);
        assert_eq!(for_values(usize::MAX, 3).unwrap_err().code(), SqlState::PROGRAM_LIMIT_EXCEEDED);
        const QUARTER: usize = LARGE / 4;
        let mut text = String::from("abc");
        text.make_room(1000).unwrap();
        assert!(text.capacity() < 1000, "that is left to who appends");
        text = "x".repeat(QUARTER);
        text.make_room(1000).unwrap();
        assert_eq!(text.capacity(), 2 * QUARTER);
        text.push_str(&"x".repeat(QUARTER));
        text.make_room(1).unwrap();
        assert_eq!(text.capacity(), 4 * QUARTER);
        // What fits to the byte would leave it to the next byte to make it twice as large.
        text.make_room(2 * LARGE).unwrap();
        assert_eq!(text.capacity(), 2 * QUARTER + 2 * LARGE + SPARE);
        text.push_str(&"x".repeat(2 * LARGE));
        text.make_room(SPARE + 1).unwrap();
        assert_eq!(text.capacity(), 2 * (2 * QUARTER + 2 * LARGE + SPARE));
        assert_eq!(text.make_room(VALUE_MAX).unwrap_err().code(), SqlState::PROGRAM_LIMIT_EXCEEDED);
        let mut list: Vec<u64> = Vec::new();
        assert!(list.make_room(VALUE_MAX / 8 + 1).is_err());
        list.make_room(1).unwrap();
    }
}
