//! Files in one directory, as the log and the checkpoints need them.

use std::io;
use std::sync::Arc;

/// A directory of files. Names have no separators.
pub trait Disk: Send + Sync {
    /// Creates a file for writing and reading.
    ///
    /// # Errors
    /// `AlreadyExists` if there is one; `StorageFull`.
    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>>;

    /// Opens a file for writing and reading.
    ///
    /// # Errors
    /// `NotFound`
    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>>;

    /// Opens a file that is read once, from end to end, and not written. Reads of whole [pages](crate::PAGE) into memory that
    /// begins at one ([`crate::Aligned`]) go past the system's cache if the disk can and the cache does not have the file.
    ///
    /// # Errors
    /// `NotFound`
    fn open_to_read(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        self.open(name)
    }

    /// Opens a file that is written forward: a write begins where the one before ended. What there is behind a write, up to the
    /// next [page](crate::PAGE), may become zero. The writes go past the system's cache if the disk can.
    ///
    /// # Errors
    /// `NotFound`
    fn open_to_append(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        self.open(name)
    }

    /// Removes a file. Durable after [`Disk::sync_directory`].
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Renames a file, replacing another. Durable after [`Disk::sync_directory`].
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Names of the files, sorted.
    fn list(&self) -> io::Result<Vec<String>>;

    /// Makes creations, removals and renames durable.
    fn sync_directory(&self) -> io::Result<()>;

    /// Takes the directory for this process alone, until the lock is dropped.
    ///
    /// # Errors
    /// `WouldBlock` if another process has it.
    fn lock(&self) -> io::Result<Box<dyn DiskLock>>;
}

/// Held while a process owns a directory.
pub trait DiskLock: Send + Sync {}

/// An open file. Calls block; they are made from threads that may.
pub trait DiskFile: Send + Sync {
    /// Writes all bytes at an offset, growing the file if need be.
    ///
    /// # Errors
    /// `StorageFull` if space was not allocated before and there is none.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Fills `buffer` from an offset; answers how much there was.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Says that bytes will be read soon, so that the disk may begin with them. Changes nothing else.
    fn will_read(&self, _offset: u64, _len: u64) {}

    /// Allocates space, so that writes within it cannot fail for lack of it. The new bytes read as zero.
    ///
    /// # Errors
    /// `StorageFull`
    fn allocate(&self, offset: u64, len: u64) -> io::Result<()>;

    /// Makes written bytes and the length durable (`fdatasync`).
    fn sync(&self) -> io::Result<()>;

    /// Begins to make written bytes and the length durable, or looks how far that is; `true` once all is durable that was
    /// written before it began. A file that cannot do it aside does it at once.
    ///
    /// # Errors
    /// As [`DiskFile::sync`].
    fn poll_sync(&self) -> io::Result<bool> {
        self.sync().map(|()| true)
    }

    /// Length in bytes.
    fn len(&self) -> io::Result<u64>;

    /// Cuts the file.
    fn truncate(&self, len: u64) -> io::Result<()>;
}
