//! What carries the bytes of a log: a file here, a replicated log service elsewhere (rule R14).

use std::fmt;

use base::{Lsn, WriterEpoch};

/// Records to append as one unit.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    /// Position of the first byte; the end of what was appended before.
    pub start: Lsn,
    /// The records.
    pub bytes: &'a [u8],
}

/// A position that was read back, and where it lies, for error messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Position after the last good batch.
    pub end: Lsn,
    /// Where something after it had to be cut off, if it had: the log was not closed, and whether that was acknowledged cannot be
    /// told.
    pub cut: Option<String>,
    /// Whether the log was closed there; a log of an earlier version does not say.
    pub was_closed: Option<bool>,
    /// Where it ends on the disk.
    pub ending: Ending,
}

/// Where a log ends on the disk, and whether that is all that there was.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ending {
    /// File and byte; `None` if there is no file.
    pub place: Option<String>,
    /// It had been noted that the log was durable up to there. The note is not synced: after a power failure it may be missing,
    /// and transactions that were acknowledged behind it with it.
    pub is_noted: bool,
}

/// What a driver can take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Batches that may be on their way at once.
    pub window: usize,
    /// Largest batch in bytes.
    pub batch_bytes_max: usize,
}

/// Why a driver refuses.
#[derive(Debug)]
pub enum DriverError {
    /// Another writer has taken over.
    Fenced(WriterEpoch),
    /// No space. Heals when there is some.
    Full,
    /// The batch is larger than the limit.
    TooLarge(usize),
    /// Written bytes may or may not be there; only reading back tells. The writer must stop.
    Failed(std::io::Error),
    /// What was durable is damaged: where.
    Corrupt(String),
    /// What goes with the log on the disk cannot be used: what, and why.
    Refused(String),
}

impl fmt::Display for DriverError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DriverError::Fenced(by) => write!(f, "the log was taken over by epoch {by}"),
            DriverError::Full => f.write_str("no space left for the log"),
            DriverError::TooLarge(bytes) => write!(f, "a batch of {bytes} bytes is too large for the log"),
            DriverError::Failed(error) => write!(f, "the log failed: {error}"),
            DriverError::Refused(what) => f.write_str(what),
            DriverError::Corrupt(place) => write!(f, "the log is damaged: {place}"),
        }
    }
}

impl std::error::Error for DriverError {}

/// Carries a log. Used by one writer thread; [`ReplicatedLog::read`] only before the first append.
pub trait ReplicatedLog: Send {
    /// What it can take.
    fn limits(&self) -> Limits;

    /// Reads every batch that ends behind `from`, in order, and makes the driver ready to append after the last good one.
    ///
    /// # Errors
    /// `Corrupt` if something that was durable is damaged; `Failed`.
    fn read(&mut self, from: Lsn, visit: &mut dyn FnMut(Batch<'_>) -> Result<(), String>) -> Result<Mark, DriverError>;

    /// Starts to append a batch. `durable` is the durable position now.
    ///
    /// # Errors
    /// All. REQUIRES that fewer than `window` batches are on their way.
    fn submit(&mut self, epoch: WriterEpoch, durable: Lsn, batch: Batch<'_>) -> Result<(), DriverError>;

    /// Whether all that was submitted is durable; `false`: not yet, look again. A driver with nothing else to offer waits for it.
    ///
    /// # Errors
    /// `Fenced`, `Failed`
    fn complete(&mut self) -> Result<bool, DriverError>;

    /// Says durably that the log ends with what was submitted: the next reading finds exactly that, or refuses. REQUIRES that all
    /// is durable; nothing is submitted any more.
    ///
    /// # Errors
    /// `Full`, `Failed`. After one the log is as one that was not closed.
    fn close(&mut self) -> Result<(), DriverError>;

    /// Bytes (records and overhead) that can be appended into space that is set aside. Callable from any thread through
    /// the handle, which stays valid.
    fn room(&self) -> std::sync::Arc<dyn Fn() -> u64 + Send + Sync>;

    /// Bytes a batch takes besides its records.
    fn overhead(&self) -> u64;

    /// Sets space aside ahead of need; `Ok(true)` if it did something. Called from a thread of its own, beside
    /// everything else.
    fn preparer(&self) -> Option<Box<dyn FnMut() -> Result<bool, DriverError> + Send>>;

    /// Drops whole segments before `upto`.
    fn trim(&mut self, upto: Lsn) -> Result<(), DriverError>;

    /// From now on only writers of `epoch` or later may append.
    fn fence(&mut self, epoch: WriterEpoch) -> Result<(), DriverError>;
}
