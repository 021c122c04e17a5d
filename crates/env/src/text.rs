//! The program's own instructions in huge pages.
//!
//! Serving a statement goes through some hundreds of kilobytes of code, more pages of 4 KiB than a processor has translations
//! of at hand. The system gives huge pages to memory that asks for them, and to files hardly anywhere; so the instructions are
//! copied to such memory, which then takes the place of the file's pages, at the same addresses.

#![allow(unsafe_code)]

use std::ffi::c_void;
use std::{fs, io, mem, ptr};

use rustix::mm::{Advice, MapFlags, MprotectFlags, MremapFlags, ProtFlags};
use rustix::mm::{madvise, mmap_anonymous, mprotect, mremap_fixed, munmap};

/// What a huge page is here. Where it is larger, the system does not use any.
pub(crate) const HUGE: usize = 2 << 20;

/// Copies the instructions of this program to huge pages, as far as they fill such pages, and returns how many bytes. May be
/// called while other threads run. Tools that find a function by the file of its page, such as `perf`, do not find the names any more.
///
/// # Errors
/// The system's; the program is as it was then. [`io::ErrorKind::Unsupported`] where huge pages are switched off.
pub fn move_to_huge_pages() -> io::Result<usize> {
    if huge_pages_setting()?.contains("[never]") {
        return Err(io::Error::new(io::ErrorKind::Unsupported, "the system has no huge pages for programs"));
    }
    let maps = fs::read_to_string("/proc/self/maps")?;
    let here = (move_to_huge_pages as fn() -> io::Result<usize>) as usize;
    let (start, end) = maps.lines().find_map(|line| segment(line, here)).ok_or(io::ErrorKind::NotFound)?;
    let (start, end) = (start.next_multiple_of(HUGE), end / HUGE * HUGE);
    if start >= end {
        return Ok(0);
    }
    let len = end - start;
    let text = ptr::with_exposed_provenance_mut::<c_void>(start);
    let copy = Copy::allocate(len)?;
    // SAFETY: `text` is mapped for reading and executing, nobody writes to it, and it stays. The copy is nobody else's, and as long.
    unsafe { ptr::copy_nonoverlapping(text.cast::<u8>(), copy.start.cast::<u8>(), len) };
    copy.put_at(text)?;
    Ok(len)
}

/// The addresses of a line of `/proc/self/maps`, if they are executable and `address` is among them.
fn segment(line: &str, address: usize) -> Option<(usize, usize)> {
    let is_executable = line.split_ascii_whitespace().nth(1)? == "r-xp";
    addresses(line).filter(|(start, end)| is_executable && (*start..*end).contains(&address))
}

/// Where a line of `/proc/self/maps` begins and ends.
pub(crate) fn addresses(line: &str) -> Option<(usize, usize)> {
    let (start, end) = line.split_ascii_whitespace().next()?.split_once('-')?;
    Some((usize::from_str_radix(start, 16).ok()?, usize::from_str_radix(end, 16).ok()?))
}

/// Which programs have huge pages, in brackets among the words of the system's setting.
///
/// # Errors
/// The system's.
pub(crate) fn huge_pages_setting() -> io::Result<String> {
    fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled")
}

/// Memory that is going to be instructions; unmapped when it is dropped.
struct Copy {
    start: *mut c_void,
    len: usize,
}

impl Copy {
    /// Room for `len` bytes in huge pages, a multiple of [`HUGE`].
    fn allocate(len: usize) -> io::Result<Copy> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: memory of its own, wherever there is room.
        let all = unsafe { mmap_anonymous(ptr::null_mut(), len + HUGE, protection, MapFlags::PRIVATE) }?;
        let start = all.map_addr(|address| address.next_multiple_of(HUGE));
        let before = start.addr() - all.addr();
        // SAFETY: what lies before and behind the `len` bytes was mapped with them, and nobody knows of it.
        unsafe {
            let _ = munmap(all, before);
            let _ = munmap(start.byte_add(len), HUGE - before);
        }
        let copy = Copy { start, len };
        // SAFETY: the range is the copy's own.
        unsafe { madvise(start, len, Advice::LinuxHugepage) }?;
        Ok(copy)
    }

    /// Makes the copy executable and lets it take the place of what it is a copy of.
    fn put_at(self, text: *mut c_void) -> io::Result<()> {
        // SAFETY: nobody writes to the copy any more.
        unsafe { mprotect(self.start, self.len, MprotectFlags::READ | MprotectFlags::EXEC) }?;
        // SAFETY: the same bytes are at the same addresses before and after, with the same rights. The system exchanges the
        // pages under its lock of the address space: a thread that runs into the gap waits for the end of the call.
        unsafe { mremap_fixed(self.start, self.len, self.len, MremapFlags::MAYMOVE, text) }?;
        // What was here is there.
        mem::forget(self);
        Ok(())
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        // SAFETY: mapped by `allocate`, and not moved.
        let _ = unsafe { munmap(self.start, self.len) };
    }
}
