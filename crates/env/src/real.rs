//! The real world: the file system, the clock, threads.

use std::fs::{File, OpenOptions};
use std::io;
use std::num::NonZeroU64;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use rustix::fs::{Advice, FallocateFlags, FlockOperation, fadvise, fallocate, flock};

use crate::append::Append;
use crate::once::ReadOnce;
use crate::{Clock, Disk, DiskFile, DiskLock, Joined, Spawn, World};

/// Name of the file whose lock says that a process owns the directory.
pub const LOCK_FILE: &str = "lock";

/// The real world over a directory, which is made (mode 0700) if it is not there.
///
/// # Errors
/// Those of the file system.
pub fn world(directory: &Path) -> io::Result<World> {
    Ok(World {
        disk: Arc::new(Directory::open(directory)?),
        clock: Arc::new(SystemClock::new()),
        spawn: Arc::new(Threads),
    })
}

/// The real world over a directory that is there and in which nothing is changed: it may lie where nobody can write. Its lock keeps
/// away those who write, and needs the file that they lock.
///
/// # Errors
/// Those of the file system.
pub fn world_to_read(directory: &Path) -> io::Result<World> {
    let disk = Directory { path: directory.to_path_buf(), handle: File::open(directory)?, is_written: false };
    Ok(World { disk: Arc::new(disk), clock: Arc::new(SystemClock::new()), spawn: Arc::new(Threads) })
}

/// A directory of the file system.
pub struct Directory {
    path: PathBuf,
    handle: File,
    is_written: bool,
}

impl Directory {
    /// Opens a directory; makes it if need be.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn open(path: &Path) -> io::Result<Directory> {
        if !path.exists() {
            use std::os::unix::fs::DirBuilderExt;
            std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path)?;
        }
        Ok(Directory { path: path.to_path_buf(), handle: File::open(path)?, is_written: true })
    }

    /// Refuses what would change something.
    fn to_write(&self) -> io::Result<()> {
        if self.is_written { Ok(()) } else { Err(io::ErrorKind::ReadOnlyFilesystem.into()) }
    }

    fn options() -> OpenOptions {
        let mut options = OpenOptions::new();
        options.read(true).write(true).mode(0o600);
        options
    }
}

impl Disk for Directory {
    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        self.to_write()?;
        Ok(Arc::new(RealFile(Directory::options().create_new(true).open(self.path.join(name))?)))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        let mut options = Directory::options();
        Ok(Arc::new(RealFile(options.write(self.is_written).open(self.path.join(name))?)))
    }

    fn open_to_read(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        Ok(Arc::new(ReadOnce::open(&self.path.join(name))?))
    }

    fn open_to_append(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        self.to_write()?;
        Ok(Arc::new(Append::open(&self.path.join(name))?))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.to_write()?;
        std::fs::remove_file(self.path.join(name))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.to_write()?;
        std::fs::rename(self.path.join(from), self.path.join(to))
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(&self.path)? {
            let entry = entry?;
            if entry.file_type()?.is_file() {
                names.push(entry.file_name().to_string_lossy().into_owned());
            }
        }
        names.sort();
        Ok(names)
    }

    fn sync_directory(&self) -> io::Result<()> {
        self.to_write()?;
        self.handle.sync_all()
    }

    fn lock(&self) -> io::Result<Box<dyn DiskLock>> {
        if !self.is_written {
            let file = File::open(self.path.join(LOCK_FILE))?;
            // Others may read, too.
            flock(&file, FlockOperation::NonBlockingLockShared)?;
            return Ok(Box::new(FileLock(file)));
        }
        let file = Directory::options().create(true).truncate(false).open(self.path.join(LOCK_FILE))?;
        flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        Ok(Box::new(FileLock(file)))
    }
}

/// The lock goes with the last descriptor, so with the process at the latest.
struct FileLock(#[expect(dead_code, reason = "held, not used")] File);

impl DiskLock for FileLock {}

/// Bytes that the system is told of at once.
const HINT: u64 = 1 << 20;

pub(crate) struct RealFile(pub File);

impl DiskFile for RealFile {
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.0.write_all_at(bytes, offset)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.0.read_at(&mut buffer[filled..], offset + filled as u64) {
                Ok(0) => break,
                Ok(n) => filled += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(filled)
    }

    fn will_read(&self, offset: u64, len: u64) {
        // One hint is good for some megabytes at most.
        for at in (offset..offset + len).step_by(HINT as usize) {
            // A file system that does not take it reads when it is asked to.
            let _ = fadvise(&self.0, at, NonZeroU64::new(HINT.min(offset + len - at)), Advice::WillNeed);
        }
    }

    fn allocate(&self, offset: u64, len: u64) -> io::Result<()> {
        Ok(fallocate(&self.0, FallocateFlags::empty(), offset, len)?)
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }
}

/// The system's clock.
pub struct SystemClock {
    start: Instant,
}

impl SystemClock {
    /// A clock whose monotonic time starts now.
    pub fn new() -> SystemClock {
        SystemClock { start: Instant::now() }
    }
}

impl Clock for SystemClock {
    fn now_micros(&self) -> i64 {
        crate::time::now_micros()
    }

    fn monotonic_nanos(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }
}

/// The system's threads.
pub struct Threads;

impl Spawn for Threads {
    fn spawn(&self, name: &str, task: Box<dyn FnOnce() + Send>) -> Box<dyn Joined> {
        let thread = std::thread::Builder::new().name(name.to_string()).spawn(task);
        Box::new(Thread(thread.expect("the system can start another thread")))
    }
}

struct Thread(std::thread::JoinHandle<()>);

impl Joined for Thread {
    fn join(self: Box<Self>) {
        // A panic of the thread was reported when it happened.
        let _ = self.0.join();
    }
}
