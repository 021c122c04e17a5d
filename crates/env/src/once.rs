//! A file that is read once, bypassing the page cache unless it has the file: a start reads many files that are not read again,
//! and a copy of each in the cache costs memory that has to be found and cleared, and the copying.

use std::fs::{File, OpenOptions};
use std::io::{self, IoSliceMut};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::OFlags;
use rustix::io::{Errno, ReadWriteFlags, preadv2};

use crate::DiskFile;
use crate::aligned::PAGE;
use crate::real::RealFile;

/// See [`crate::Disk::open_to_read`].
pub(crate) struct ReadOnce {
    cached: RealFile,
    /// The file past the cache, while reads of it go well.
    direct: Option<File>,
    refuses: AtomicBool,
}

/// Whether the cache has what there is in some places of a file.
fn is_cached(file: &File) -> io::Result<bool> {
    let len = file.metadata()?.len();
    let mut byte = [0];
    for quarter in 1..4 {
        match preadv2(file, &mut [IoSliceMut::new(&mut byte)], len / 4 * quarter, ReadWriteFlags::NOWAIT) {
            Ok(_) => {}
            Err(Errno::AGAIN) => return Ok(false),
            // A file system that cannot tell.
            Err(_) => return Ok(true),
        }
    }
    Ok(true)
}

impl ReadOnce {
    pub fn open(path: &Path) -> io::Result<ReadOnce> {
        let cached = File::open(path)?;
        let direct = match is_cached(&cached)? {
            true => None,
            false => OpenOptions::new().read(true).custom_flags(OFlags::DIRECT.bits() as i32).open(path).ok(),
        };
        Ok(ReadOnce { cached: RealFile(cached), direct, refuses: AtomicBool::new(false) })
    }

    /// The file past the cache, if that can be read so.
    fn direct_for(&self, buffer: &[u8], offset: u64) -> Option<&File> {
        let is_aligned = [buffer.as_ptr().addr(), buffer.len(), offset as usize].iter().all(|n| n.is_multiple_of(PAGE));
        self.direct.as_ref().filter(|_| is_aligned && !self.refuses.load(Ordering::Relaxed))
    }
}

impl DiskFile for ReadOnce {
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.cached.write_at(bytes, offset)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let Some(direct) = self.direct_for(buffer, offset) else { return self.cached.read_at(buffer, offset) };
        let mut filled = 0;
        while filled < buffer.len() {
            match direct.read_at(&mut buffer[filled..], offset + filled as u64) {
                Ok(0) => break,
                Ok(n) => filled += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if e.kind() == io::ErrorKind::InvalidInput => {
                    // A disk that wants more than pages, or a file system that takes the flag and not the read.
                    self.refuses.store(true, Ordering::Relaxed);
                    return self.cached.read_at(buffer, offset);
                }
                Err(e) => return Err(e),
            }
            // Only the end of the file lies within a page.
            if !filled.is_multiple_of(PAGE) {
                break;
            }
        }
        Ok(filled)
    }

    fn will_read(&self, offset: u64, len: u64) {
        if self.direct.is_none() {
            self.cached.will_read(offset, len);
        }
    }

    fn allocate(&self, offset: u64, len: u64) -> io::Result<()> {
        self.cached.allocate(offset, len)
    }

    fn sync(&self) -> io::Result<()> {
        self.cached.sync()
    }

    fn len(&self) -> io::Result<u64> {
        self.cached.len()
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        self.cached.truncate(len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Aligned, Disk as _};

    #[test]
    fn what_is_read_is_the_same_past_the_cache_and_through_it() {
        let path = std::env::temp_dir().join(format!("nyala-read-once-{}", std::process::id()));
        let disk = crate::real::Directory::open(&path).unwrap();
        let bytes: Vec<u8> = (0..3 * PAGE as u32 + 100).map(|n| ((n * n) >> 3) as u8).collect();
        let file = disk.create("file").unwrap();
        file.write_at(&bytes, 0).unwrap();
        file.sync().unwrap();
        let file = File::open(path.join("file")).unwrap();
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
        let file = disk.open_to_read("file").unwrap();
        let mut memory = Aligned::default();
        memory.grow(5 * PAGE);
        // Whole pages, what the file's end cuts short, what lies behind it, and parts of pages.
        for (offset, len) in [(0, PAGE), (PAGE, 4 * PAGE), (2 * PAGE, 2 * PAGE), (4 * PAGE, PAGE), (7, 100), (PAGE, 50)]
        {
            let read = file.read_at(&mut memory[..len], offset as u64).unwrap();
            let expected = &bytes[offset.min(bytes.len())..bytes.len().min(offset + len)];
            assert_eq!(&memory[..read], expected, "{len} bytes at {offset}");
        }
        assert!(disk.open_to_read("other").is_err_and(|error| error.kind() == io::ErrorKind::NotFound));
        std::fs::remove_dir_all(&path).unwrap();
    }
}
