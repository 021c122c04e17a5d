//! What is known of a log's end without reading the log: the file `log.end`.
//!
//! Responsible for: which segment is the newest, up to where the log was durable, whether it was closed there, which generation
//! was the last to be handed out and which database the log is of, in a form that survives a crash at any moment and takes no space once it is there.
//! Not responsible for: what follows from it (`file`).
//! Invariants: it is never ahead of the log, so a log that is behind it has lost something. What it says synced is as new as the
//! newest segment; what it says without a sync is as new as the last group, unless the machine has stopped since.

use std::io;
use std::sync::Arc;

use base::Lsn;
use env::{Disk, DiskFile, PAGE};

use crate::driver::DriverError;
use crate::file::failed;
use crate::frame::{VERSION, u32_at, u64_at};

/// Its name.
pub(crate) const END_FILE: &str = "log.end";
const END_NEW: &str = "log.end.new";

const MAGIC: &[u8; 8] = b"NYALAEND";
/// Bytes of an entry; each has a page of its own.
const ENTRY: usize = 64;
/// Two entries that are synced in turn, so that one is always whole, and the one that is not synced.
const SYNCED: u64 = 2;
const UNSYNCED: u64 = SYNCED;
const PAGES: u64 = SYNCED + 1;
/// Where an entry names the database.
const DATABASE: u64 = 48;
/// The first version of the log that has the file.
const OLDEST: u32 = 4;

const OPEN: u32 = 0;
const CLOSED: u32 = 1;
const NOTED: u32 = 2;

/// What is known of the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct End {
    /// First position of the newest segment, if there is one.
    pub newest: Option<Lsn>,
    /// The log was durable up to here at least.
    pub durable: Lsn,
    /// It was closed there: nothing follows.
    pub is_closed: bool,
    /// The newest generation that was handed out; 0 if that is not known.
    pub generation: u64,
    /// Which database the log is of; 0 if that is not known.
    pub database: u64,
}

impl End {
    /// Of a log that nothing was read of or written to yet.
    pub fn unknown(database: u64) -> End {
        End { newest: None, durable: Lsn(0), is_closed: false, generation: 0, database }
    }

    /// Whether a frame that begins here was cut at a start: what the log has from `durable` on is of the newest generation.
    pub fn has_cut(&self, start: Lsn, generation: u64) -> bool {
        start >= self.durable && generation < self.generation
    }

    /// Whether a log was opened since the file was made.
    pub fn is_opened(&self) -> bool {
        self.newest.is_some()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    kind: u32,
    /// Rises with each that is synced.
    number: u64,
    newest: Option<Lsn>,
    durable: Lsn,
    generation: u64,
    database: u64,
}

impl Entry {
    fn new(kind: u32, number: u64, end: &End) -> Entry {
        let End { newest, durable, generation, database, .. } = *end;
        Entry { kind, number, newest, durable, generation, database }
    }

    fn encode(&self) -> [u8; ENTRY] {
        let mut bytes = [0; ENTRY];
        bytes[..8].copy_from_slice(MAGIC);
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.kind.to_le_bytes());
        let newest = self.newest.map_or(u64::MAX, |newest| newest.0);
        let words = [self.number, newest, self.durable.0, self.generation, self.database];
        for (word, place) in words.iter().zip(bytes[16..].chunks_exact_mut(8)) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        let crc = crc32c::crc32c(&bytes[..ENTRY - 4]);
        bytes[ENTRY - 4..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// `Ok(None)` for bytes that are no entry; an error for one of another version.
    fn decode(bytes: &[u8]) -> Result<Option<Entry>, String> {
        let Some(bytes) = bytes.get(..ENTRY) else { return Ok(None) };
        if &bytes[..8] != MAGIC || u32_at(bytes, ENTRY - 4) != crc32c::crc32c(&bytes[..ENTRY - 4]) {
            return Ok(None);
        }
        let version = u32_at(bytes, 8);
        if !(OLDEST..=VERSION).contains(&version) {
            return Err(format!("the log's format has version {version}, this server reads {OLDEST} to {VERSION}"));
        }
        let newest = Some(u64_at(bytes, 24)).filter(|newest| *newest != u64::MAX).map(Lsn);
        Ok(Some(Entry {
            kind: u32_at(bytes, 12),
            number: u64_at(bytes, 16),
            newest,
            durable: Lsn(u64_at(bytes, 32)),
            generation: u64_at(bytes, 40),
            database: u64_at(bytes, 48),
        }))
    }
}

/// The file.
pub(crate) struct EndFile {
    file: Arc<dyn DiskFile>,
    number: u64,
    end: End,
    /// What was noted without a sync since the entry that counts.
    noted: Option<Lsn>,
}

impl EndFile {
    /// Opens and reads it; `None` if there is none.
    ///
    /// # Errors
    /// `Corrupt` if nothing in it is whole, `Refused` for another version, `Failed`.
    pub fn read(disk: &dyn Disk) -> Result<Option<EndFile>, DriverError> {
        let file = match disk.open(END_FILE) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(error)),
        };
        let (len, full) = (file.len().map_err(failed)?, PAGES * PAGE as u64);
        if len != full {
            return Err(DriverError::Corrupt(format!(
                "{END_FILE} at byte {}: the file has {len} bytes, not {full}",
                len.min(full)
            )));
        }
        let (mut synced, mut noted) = (None::<Entry>, None::<Entry>);
        for page in 0..PAGES {
            let mut bytes = [0; ENTRY];
            let read = file.read_at(&mut bytes, page * PAGE as u64).map_err(failed)?;
            let entry = Entry::decode(&bytes[..read]).map_err(|e| DriverError::Refused(format!("{END_FILE}: {e}")))?;
            match entry {
                Some(entry) if page == UNSYNCED && entry.kind == NOTED => noted = Some(entry),
                Some(entry) if page != UNSYNCED && matches!(entry.kind, OPEN | CLOSED) => {
                    synced = synced.filter(|other| other.number > entry.number).or(Some(entry));
                }
                // Torn by a crash; the other one that is synced is whole then.
                _ => {}
            }
        }
        let Some(Entry { kind, number, newest, durable, generation, database }) = synced else {
            return Err(DriverError::Corrupt(format!("{END_FILE} at byte 0: it says nothing that is whole")));
        };
        let durable = durable.max(noted.map_or(Lsn(0), |noted| noted.durable));
        let end = End { newest, durable, is_closed: kind == CLOSED, generation, database };
        let noted = noted.filter(|noted| noted.number == number).map(|noted| noted.durable);
        Ok(Some(EndFile { file, number, end, noted }))
    }

    /// Makes it.
    ///
    /// # Errors
    /// `Full`, `Failed`
    pub fn create(disk: &dyn Disk, end: End) -> Result<EndFile, DriverError> {
        let make = || -> io::Result<EndFile> {
            if disk.list()?.iter().any(|name| name == END_NEW) {
                disk.remove(END_NEW)?;
            }
            let file = disk.create(END_NEW)?;
            file.write_at(&[0; PAGES as usize * PAGE], 0)?;
            let mut made = EndFile { file, number: 0, end, noted: None };
            made.put(end)?;
            disk.rename(END_NEW, END_FILE)?;
            disk.sync_directory()?;
            Ok(made)
        };
        make().map_err(failed)
    }

    /// What is known.
    pub fn end(&self) -> End {
        self.end
    }

    /// What was noted without a sync since it was last written durably, if that is whole.
    pub fn noted(&self) -> Option<Lsn> {
        self.noted
    }

    /// Where the number of the database lies that counts.
    pub fn place_of_database(&self) -> String {
        format!("{END_FILE} at byte {}", self.number % SYNCED * PAGE as u64 + DATABASE)
    }

    /// Says something else from now on, durably.
    ///
    /// # Errors
    /// `Full`, `Failed`. After one, either may be what it says.
    pub fn write(&mut self, end: End) -> Result<(), DriverError> {
        self.put(end).map_err(failed)
    }

    fn put(&mut self, end: End) -> io::Result<()> {
        self.number += 1;
        let kind = if end.is_closed { CLOSED } else { OPEN };
        let entry = Entry::new(kind, self.number, &end);
        self.file.write_at(&entry.encode(), self.number % SYNCED * PAGE as u64)?;
        self.file.sync()?;
        (self.end, self.noted) = (end, None);
        Ok(())
    }

    /// Says that the log is durable up to here, which the system makes durable when it likes. It is there when the process is
    /// killed. What cannot be written leaves the end less known, and nothing else.
    pub fn note(&mut self, durable: Lsn) {
        if durable > self.end.durable {
            (self.end.durable, self.noted) = (durable, Some(durable));
            let entry = Entry::new(NOTED, self.number, &self.end);
            let write = || self.file.write_at(&entry.encode(), UNSYNCED * PAGE as u64);
            // A write that fails may have torn the note before it: that a disk fails once loses neither.
            let _ = write().or_else(|_| write());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use env::sim::{Crash, Operation, SimDisk, SimRandom};

    fn end(newest: u64, durable: u64, is_closed: bool) -> End {
        End { newest: Some(Lsn(newest)), durable: Lsn(durable), is_closed, generation: newest + 7, database: 5 }
    }

    fn read(disk: &SimDisk) -> End {
        EndFile::read(disk).expect("it is whole").expect("it is there").end()
    }

    #[test]
    fn what_was_said_last_counts() {
        let disk = SimDisk::new();
        assert!(EndFile::read(&disk).expect("nothing is wrong").is_none());
        let none = End::unknown(5);
        let mut file = EndFile::create(&disk, none).expect("healthy");
        assert_eq!(read(&disk), none);
        for n in 1..5 {
            file.write(end(n, 10 * n, n % 2 == 0)).expect("healthy");
            assert_eq!(read(&disk), end(n, 10 * n, n % 2 == 0));
            file.note(Lsn(10 * n + 5));
            assert_eq!(read(&disk).durable, Lsn(10 * n + 5));
        }
    }

    /// At each operation, under each kind of crash: what was said last, or what was to be said.
    #[test]
    fn a_crash_leaves_one_or_the_other() {
        for stop in 0..6 {
            for crash in [Crash::LoseUnsynced, Crash::KeepAll, Crash::AnySectors, Crash::FlipBits] {
                for seed in 0..20 {
                    let disk = SimDisk::new();
                    let mut file = EndFile::create(&disk, end(1, 10, false)).expect("healthy");
                    disk.freeze_at(disk.operations() + stop);
                    file.note(Lsn(15));
                    let first = file.write(end(2, 20, false)).is_ok();
                    let second = first && file.write(end(2, 30, true)).is_ok();
                    let found = read(&disk.after_crash(crash, &mut SimRandom::new(seed)));
                    let allowed = match (first, second) {
                        (_, true) => vec![end(2, 30, true)],
                        (true, false) => vec![end(2, 20, false), end(2, 30, true)],
                        (false, false) => vec![end(1, 10, false), end(1, 15, false), end(2, 20, false)],
                    };
                    assert!(allowed.contains(&found), "{stop}, {crash:?}, {seed}: {found:?}");
                }
            }
        }
    }

    #[test]
    fn a_note_is_not_lost_because_a_disk_fails_once() {
        let disk = SimDisk::new();
        let mut file = EndFile::create(&disk, end(1, 10, false)).expect("healthy");
        file.note(Lsn(12));
        disk.fail(Operation::Write, 0);
        file.note(Lsn(15));
        assert_eq!(disk.figures().failures, 1);
        assert_eq!(read(&disk), end(1, 15, false));
    }

    #[test]
    fn a_file_that_is_cut_short_or_empty_is_damage() {
        let disk = SimDisk::new();
        EndFile::create(&disk, end(1, 10, true)).expect("healthy");
        for page in 0..2 {
            disk.flip_bit(END_FILE, page * PAGE as u64 * 8 + 9);
        }
        assert!(matches!(EndFile::read(&disk).map(drop), Err(DriverError::Corrupt(_))));
        disk.open(END_FILE).expect("it is there").truncate(PAGE as u64).expect("healthy");
        assert!(matches!(EndFile::read(&disk).map(drop), Err(DriverError::Corrupt(_))));
    }
}
