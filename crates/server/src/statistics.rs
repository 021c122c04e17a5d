//! The planner's statistics beside the statements: kept fresh, and kept over a restart.
//!
//! Responsible for: the thread that looks at tables; the file `statistics`, its form and its switch to a newer one.
//! Not responsible for: which table is looked at, what a record says (`sql_session`).
//! Invariants: a start depends on nothing in the file. Records that are damaged, or a file of another version, are left out with a line
//! in the log, and their tables are looked at again.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use env::{Disk, DiskFile, Joined, Spawn};
use sql_session::{Refresher, Shared};

use crate::directory;

/// Shortest pause between steps of a look at a table; otherwise as long as the step: half of a core at most, and only while it looks.
const PAUSE_WORKING: Duration = Duration::from_micros(500);
/// Pause while nothing has changed enough.
const PAUSE_IDLE: Duration = Duration::from_millis(500);
/// The file is not written again for so many times as long as it took, …
const WRITE_IDLE: u32 = 1000;
/// … and at least so long, …
const WRITE_IDLE_MIN: Duration = Duration::from_secs(2);
/// … and at most so long.
const WRITE_IDLE_MAX: Duration = Duration::from_mins(10);

/// The file's name.
const FILE: &str = "statistics";
const FILE_NEW: &str = "statistics.new";
const TITLE: &[u8; 8] = b"NYALASTA";
const VERSION: u32 = 1;
/// Title, version, checksum of both.
const HEADER: usize = 16;
/// Length and checksum before a record.
const RECORD_HEADER: usize = 8;

/// The running thread; stopped when dropped.
pub struct Watcher {
    stop: Option<mpsc::Sender<()>>,
    thread: Option<Box<dyn Joined>>,
}

impl Watcher {
    /// Starts to watch tables. Their statistics are those of the file at first, and written to it when they have changed, and in the end.
    pub fn start(spawn: &dyn Spawn, disk: Arc<dyn Disk>, shared: &Arc<Shared>) -> Watcher {
        let mut keeper =
            Keeper { disk, shared: Arc::clone(shared), written: 0, idle_until: Instant::now(), failed: false };
        keeper.restore();
        let mut refresher = Refresher::new(Arc::clone(shared));
        let (stop, stopped) = mpsc::channel();
        let watch = move || {
            let mut pause = PAUSE_IDLE;
            while stopped.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                let began = Instant::now();
                let has_worked = pause != PAUSE_IDLE;
                pause = if refresher.step() { began.elapsed().max(PAUSE_WORKING) } else { PAUSE_IDLE };
                if pause == PAUSE_IDLE {
                    keeper.write_if_newer();
                }
                if has_worked && pause == PAUSE_IDLE {
                    // What this thread has freed in its own pages nobody else can give back.
                    env::give_back_all();
                }
            }
            keeper.write();
        };
        Watcher { stop: Some(stop), thread: Some(spawn.spawn("statistics", Box::new(watch))) }
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            thread.join();
        }
    }
}

/// Keeps the file.
struct Keeper {
    disk: Arc<dyn Disk>,
    shared: Arc<Shared>,
    /// Version of the statistics that the file has.
    written: u64,
    idle_until: Instant,
    /// Whether the last write failed: the log says so once.
    failed: bool,
}

impl Keeper {
    fn restore(&mut self) {
        let mut damaged = 0;
        let take = |record: &[u8]| damaged += u32::from(self.shared.restore_statistics(record).is_err());
        let read = read(&*self.disk, take);
        self.written = self.shared.statistics().version();
        let why = match (read, damaged) {
            (Err(why), _) => why,
            (Ok(()), 0) => return,
            (Ok(()), tables) => format!("the records of {tables} tables are damaged"),
        };
        tracing::warn!("statistics are left out, and tables are sampled again: {why}");
    }

    fn write_if_newer(&mut self) {
        if self.shared.statistics().version() != self.written && Instant::now() >= self.idle_until {
            self.write();
        }
    }

    fn write(&mut self) {
        let version = self.shared.statistics().version();
        if version == 0 {
            return;
        }
        let began = Instant::now();
        let written = write(&*self.disk, self.shared.statistics_records());
        self.idle_until = Instant::now() + (began.elapsed() * WRITE_IDLE).clamp(WRITE_IDLE_MIN, WRITE_IDLE_MAX);
        match written {
            Ok(()) => (self.written, self.failed) = (version, false),
            Err(error) if !self.failed => {
                tracing::warn!("{FILE} cannot be written: {error}; a restart would sample tables again");
                self.failed = true;
            }
            Err(_) => {}
        }
    }
}

/// Writes a new file in place of the one before.
fn write(disk: &dyn Disk, records: impl Iterator<Item = Vec<u8>>) -> io::Result<()> {
    directory::replace(disk, FILE, FILE_NEW, |file| {
        let mut header = [TITLE.as_slice(), &VERSION.to_le_bytes()].concat();
        header.extend(crc32c::crc32c(&header).to_le_bytes());
        file.write_at(&header, 0)?;
        let mut at = HEADER as u64;
        for record in records {
            let (length, sum) = (record.len() as u32, crc32c::crc32c(&record));
            let framed = [&length.to_le_bytes(), &sum.to_le_bytes(), record.as_slice()].concat();
            file.write_at(&framed, at)?;
            at += framed.len() as u64;
        }
        Ok(())
    })
}

/// Reads the records of the file, if there is one, up to the first that is damaged.
///
/// # Errors
/// The file is damaged, of another version, or cannot be read: what, in one line.
fn read(disk: &dyn Disk, mut take: impl FnMut(&[u8])) -> Result<(), String> {
    let failed = |error: io::Error| format!("{FILE} cannot be read: {error}");
    let file = match disk.open(FILE) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed(error)),
    };
    let bytes = file.len().map_err(failed)?;
    let header = read_exactly(&*file, 0, HEADER as u64, bytes)?;
    let (known, sum) = header.split_at(HEADER - 4);
    if sum != crc32c::crc32c(known).to_le_bytes() || !known.starts_with(TITLE) {
        return Err(format!("{FILE} is damaged at byte 0"));
    }
    if known[TITLE.len()..] != VERSION.to_le_bytes() {
        return Err(format!("{FILE} is of another version, this server reads {VERSION}"));
    }
    let mut at = HEADER as u64;
    while at < bytes {
        let header = read_exactly(&*file, at, RECORD_HEADER as u64, bytes)?;
        let word = |at: usize| header[at..].first_chunk().map_or(0, |word| u32::from_le_bytes(*word));
        let record = read_exactly(&*file, at + RECORD_HEADER as u64, word(0).into(), bytes)?;
        if crc32c::crc32c(&record) != word(4) {
            return Err(format!("{FILE} is damaged at byte {at}"));
        }
        take(&record);
        at += RECORD_HEADER as u64 + record.len() as u64;
    }
    Ok(())
}

/// So many bytes of a file that has `bytes`.
fn read_exactly(file: &dyn DiskFile, at: u64, length: u64, bytes: u64) -> Result<Vec<u8>, String> {
    if at + length > bytes {
        return Err(format!("{FILE} is damaged at byte {at}"));
    }
    let mut read = vec![0; length as usize];
    match file.read_at(&mut read, at) {
        Ok(found) if found == read.len() => Ok(read),
        Ok(_) => Err(format!("{FILE} is damaged at byte {at}")),
        Err(error) => Err(format!("{FILE} cannot be read: {error}")),
    }
}

/// What is wrong with the file of a directory; nothing, if there is none.
pub fn damage(disk: &dyn Disk) -> Option<String> {
    read(disk, |_| {}).err()
}

#[cfg(test)]
mod tests {
    use super::*;
    use env::sim::{Crash, SimDisk, SimRandom};

    const RECORDS: [&[u8]; 3] = [b"one", b"", b"another record"];

    fn write_all(disk: &dyn Disk, records: &[&[u8]]) -> io::Result<()> {
        write(disk, records.iter().map(|record| record.to_vec()))
    }

    fn read_all(disk: &dyn Disk) -> (Vec<Vec<u8>>, Result<(), String>) {
        let mut found = Vec::new();
        let read = read(disk, |record| found.push(record.to_vec()));
        (found, read)
    }

    #[test]
    fn what_is_written_is_read_and_damage_is_told() {
        let disk = SimDisk::new();
        assert_eq!(read_all(&disk), (Vec::new(), Ok(())));
        write_all(&disk, &RECORDS[1..]).expect("healthy");
        write_all(&disk, &RECORDS).expect("healthy");
        assert_eq!(read_all(&disk), (RECORDS.map(<[u8]>::to_vec).to_vec(), Ok(())));
        let file = disk.open(FILE).expect("it is there");
        let bytes = file.len().expect("healthy");
        for at in 0..bytes {
            let mut byte = [0];
            file.read_at(&mut byte, at).expect("healthy");
            file.write_at(&[byte[0] ^ 4], at).expect("healthy");
            let (found, read) = read_all(&disk);
            assert!(read.is_err(), "byte {at}");
            assert!(RECORDS.iter().zip(&found).all(|(record, found)| record == found), "byte {at}");
            file.write_at(&byte, at).expect("healthy");
        }
        for length in (0..bytes).rev() {
            file.truncate(length).expect("healthy");
            let (found, read) = read_all(&disk);
            let is_whole = [bytes, 16, 27, 35].contains(&length);
            assert_eq!(read.is_ok(), is_whole, "cut at {length}: {found:?}");
        }
    }

    /// Wherever the machine stops, there is the file before or the new one.
    #[test]
    fn it_is_replaced_as_a_whole() {
        for stop in 0..12 {
            for crash in [Crash::LoseUnsynced, Crash::KeepAll, Crash::AnySectors, Crash::FlipBits] {
                let disk = SimDisk::new();
                write_all(&disk, &RECORDS[..1]).expect("healthy");
                disk.freeze_at(disk.operations() + stop);
                let written = write_all(&disk, &RECORDS);
                let after = disk.after_crash(crash, &mut SimRandom::new(stop + 1));
                let (found, read) = read_all(&after);
                assert_eq!(read, Ok(()), "stopped at {stop}, {crash:?}");
                assert!(
                    found.len() == RECORDS.len() || found.len() == 1 && written.is_err(),
                    "stopped at {stop}, {crash:?}"
                );
                write_all(&after, &RECORDS).expect("healthy again");
            }
        }
    }
}
