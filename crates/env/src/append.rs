//! A file that is written forward and synced often, past the system's cache: a sync of few bytes then costs the processor less,
//! and waits for less, than one that has the cache look for what is to be written.
//!
//! The disk takes whole blocks, so the beginning of a block that was written in part is kept and written again with what comes
//! behind it. A block that is torn by a crash has its durable bytes all the same: both writes say the same about them.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::{Mutex, MutexGuard};

use rustix::fs::OFlags;

use crate::DiskFile;
use crate::aligned::{Aligned, PAGE};
use crate::real::RealFile;

/// The smallest block of a disk. One that wants more refuses it, and gets [`PAGE`].
const SECTOR: usize = 512;

/// See [`crate::Disk::open_to_append`].
pub(crate) struct Append {
    /// For all but writing.
    cached: RealFile,
    writing: Mutex<Writing>,
}

struct Writing {
    /// The file past the cache, while writes of it go well.
    direct: Option<File>,
    block: usize,
    buffer: Aligned,
    /// The block that was written last in part: where it begins, and what it begins with.
    last: (u64, Vec<u8>),
}

impl Append {
    pub fn open(path: &Path) -> io::Result<Append> {
        let cached = RealFile(File::options().read(true).write(true).open(path)?);
        let direct = OpenOptions::new().write(true).custom_flags(OFlags::DIRECT.bits() as i32).open(path).ok();
        let writing = Writing { direct, block: SECTOR, buffer: Aligned::default(), last: (0, Vec::new()) };
        Ok(Append { cached, writing: Mutex::new(writing) })
    }

    fn writing(&self) -> MutexGuard<'_, Writing> {
        self.writing.lock().unwrap_or_else(|e| e.into_inner())
    }

    #[cfg(test)]
    fn is_direct(&self) -> bool {
        self.writing().direct.is_some()
    }
}

impl Writing {
    /// Puts whole blocks with `bytes` at `offset` into the buffer; where they begin and how long they are.
    fn gather(&mut self, cached: &RealFile, bytes: &[u8], offset: u64) -> io::Result<(u64, usize)> {
        let head = offset as usize % self.block;
        let start = offset - head as u64;
        let (end, len) = (head + bytes.len(), (head + bytes.len()).next_multiple_of(self.block));
        self.buffer.grow(len);
        match &self.last {
            (at, kept) if *at == start && kept.len() >= head => self.buffer[..head].copy_from_slice(&kept[..head]),
            _ => {
                let there = cached.read_at(&mut self.buffer[..head], start)?;
                self.buffer[there..head].fill(0);
            }
        }
        self.buffer[head..end].copy_from_slice(bytes);
        self.buffer[end..len].fill(0);
        Ok((start, len))
    }

    /// Keeps what the block begins with in which the written bytes end.
    fn keep(&mut self, start: u64, end: usize) {
        let begin = end - end % self.block;
        self.last.0 = start + begin as u64;
        self.last.1.clear();
        self.last.1.extend_from_slice(&self.buffer[begin..end]);
    }
}

impl DiskFile for Append {
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let writing = &mut *self.writing();
        while let Some(direct) = &writing.direct {
            let is_whole = [bytes.as_ptr().addr(), bytes.len(), offset as usize].iter().all(|n| n.is_multiple_of(PAGE));
            let written = if is_whole {
                writing.last.1.clear();
                direct.write_all_at(bytes, offset)
            } else {
                let (start, len) = writing.gather(&self.cached, bytes, offset)?;
                let direct = writing.direct.as_ref().expect("looked at above");
                direct.write_all_at(&writing.buffer[..len], start).map(|()| {
                    writing.keep(start, (offset - start) as usize + bytes.len());
                })
            };
            match written {
                Err(error) if error.kind() == io::ErrorKind::InvalidInput => match writing.block {
                    SECTOR => writing.block = PAGE,
                    _ => writing.direct = None,
                },
                written => return written,
            }
        }
        self.cached.write_at(bytes, offset)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.cached.read_at(buffer, offset)
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
        self.writing().last.1.clear();
        self.cached.truncate(len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Disk as _;

    /// Writes of all lengths, one behind the other, with the file opened anew now and then.
    #[test]
    fn what_is_written_forward_is_what_is_read() {
        let path = std::env::temp_dir().join(format!("nyala-append-{}", std::process::id()));
        let disk = crate::real::Directory::open(&path).unwrap();
        let created = disk.create("file").unwrap();
        created.write_at(&vec![0xee; 64 * PAGE], 0).unwrap();
        created.sync().unwrap();
        let mut file = Append::open(&path.join("file")).unwrap();
        let mut expected: Vec<u8> = (0..100).collect();
        file.write_at(&expected, 0).unwrap();
        let mut pages = Aligned::default();
        pages.grow(2 * PAGE);
        for round in 0..200usize {
            let len = [1, 7, 400, 512, 513, 1000, 4096, 5000][round * 7 % 8];
            let bytes: Vec<u8> = (0..len).map(|at| (at * 31 + round) as u8).collect();
            if round % 13 == 5 {
                file = Append::open(&path.join("file")).unwrap();
            }
            file.write_at(&bytes, expected.len() as u64).unwrap();
            expected.extend_from_slice(&bytes);
            if round % 29 == 3 {
                // Whole pages of a page's memory go as they are.
                let padding = expected.len().next_multiple_of(PAGE) - expected.len();
                file.write_at(&vec![9; padding], expected.len() as u64).unwrap();
                expected.resize(expected.len() + padding, 9);
                pages.fill(round as u8);
                file.write_at(&pages, expected.len() as u64).unwrap();
                expected.extend_from_slice(&pages);
            }
            file.sync().unwrap();
            let mut read = vec![1; expected.len() + PAGE];
            let there = disk.open("file").unwrap().read_at(&mut read, 0).unwrap();
            assert!(there >= expected.len());
            assert_eq!(read[..expected.len()], expected, "after {round} writes, direct: {}", file.is_direct());
        }
        // Again from before the end: what was there behind it up to the next page is not kept, what was before is.
        file.write_at(b"again", 1000).unwrap();
        let mut read = vec![1; 1005];
        file.read_at(&mut read, 0).unwrap();
        assert_eq!((&read[..1000], &read[1000..]), (&expected[..1000], &b"again"[..]));
        std::fs::remove_dir_all(&path).unwrap();
    }
}
