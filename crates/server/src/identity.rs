//! Which database a data directory is: the file `identity`.
//!
//! Responsible for: making it once all else is there, reading it, what it says.
//! Not responsible for: who asks.
//! Invariants: an identity stays as it was made; a directory with one has a log, or has lost it.

use std::io;

use checkpoint::is_image_file;
use env::{Clock, Disk};

/// Its name.
pub const FILE: &str = "identity";
const FILE_NEW: &str = "identity.new";
const TITLE: &str = "NYALA DATABASE ";
const VERSION: u32 = 1;
/// Larger than any.
const BYTES_MAX: u64 = 4096;

/// The number by which a database is told from others; as PostgreSQL's system identifier is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity(pub u64);

impl std::fmt::Display for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// Why there is no identity.
#[derive(Debug)]
pub enum Unidentified {
    /// The file is not as it was written, or what goes with it is gone: what.
    Damaged(String),
    /// It is of another version, or the disk has failed.
    Unreadable(String),
}

impl std::fmt::Display for Unidentified {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (Unidentified::Damaged(what) | Unidentified::Unreadable(what)) = self;
        f.write_str(what)
    }
}

impl Identity {
    /// A new one.
    fn new(clock: &dyn Clock) -> Identity {
        let micros = u64::try_from(clock.now_micros()).unwrap_or_default();
        let (seconds, rest) = (micros / 1_000_000, micros % 1_000_000);
        Identity(seconds << 32 | rest << 12 | u64::from(std::process::id() & 0xfff))
    }

    fn encode(self) -> Vec<u8> {
        let text = format!("{TITLE}{VERSION}\n{self}");
        let crc = crc32c::crc32c(text.as_bytes());
        format!("{text}\n{crc:08x}\n").into_bytes()
    }

    fn decode(bytes: &[u8]) -> Result<Identity, Unidentified> {
        let damaged = |why: &str| Unidentified::Damaged(format!("{FILE} at byte 0: {why}"));
        let (rest, sum) = bytes.split_at_checked(bytes.len().saturating_sub(10)).ok_or_else(|| damaged("too short"))?;
        let text = std::str::from_utf8(rest).map_err(|_| damaged("not text"))?;
        if sum != format!("\n{:08x}\n", crc32c::crc32c(rest)).as_bytes() {
            return Err(damaged("its checksum is wrong"));
        }
        let (title, number) = text.split_once('\n').ok_or_else(|| damaged("no title"))?;
        match title.strip_prefix(TITLE).and_then(|version| version.parse::<u32>().ok()) {
            Some(VERSION) => number.parse().map(Identity).map_err(|_| damaged("no number")),
            Some(version) => {
                let newer = format!("{FILE} has version {version}, this server reads {VERSION}");
                Err(Unidentified::Unreadable(newer))
            }
            None => Err(damaged("no title")),
        }
    }

    /// The identity of a directory, if it has one: it was made last, so that what it speaks of must be there.
    ///
    /// # Errors
    /// All.
    pub fn read(disk: &dyn Disk) -> Result<Option<Identity>, Unidentified> {
        let failed = |error: io::Error| Unidentified::Unreadable(format!("{FILE} cannot be read: {error}"));
        let file = match disk.open(FILE) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(error)),
        };
        let mut bytes = vec![0; file.len().map_err(failed)?.min(BYTES_MAX) as usize];
        let read = file.read_at(&mut bytes, 0).map_err(failed)?;
        let identity = Identity::decode(&bytes[..read])?;
        if !disk.list().map_err(failed)?.iter().any(|name| is_of_database(name) && name != FILE) {
            let lost = format!("it was database {identity}, and its checkpoint and its log are missing");
            return Err(Unidentified::Damaged(lost));
        }
        Ok(Some(identity))
    }

    /// Makes one for a directory that has all else.
    ///
    /// # Errors
    /// Of the disk.
    pub fn make(disk: &dyn Disk, clock: &dyn Clock) -> io::Result<Identity> {
        let identity = Identity::new(clock);
        if disk.list()?.iter().any(|name| name == FILE_NEW) {
            disk.remove(FILE_NEW)?;
        }
        let file = disk.create(FILE_NEW)?;
        file.write_at(&identity.encode(), 0)?;
        file.sync()?;
        disk.rename(FILE_NEW, FILE)?;
        disk.sync_directory()?;
        Ok(identity)
    }
}

/// Whether a file of this name is there only in a directory that has, or had, a database.
pub fn is_of_database(name: &str) -> bool {
    let is_segment = |name: &str| name.strip_suffix(".log").is_some_and(|n| n.len() == 20 && is_number(n));
    name == FILE || name == "manifest" || name == "log.end" || is_image_file(name) || is_segment(name)
}

/// Whether a file of this name may be of the beginnings of one.
pub fn is_of_beginning(name: &str) -> bool {
    const NAMES: [&str; 6] = [env::real::LOCK_FILE, "spare", "spare.new", "log.end.new", "manifest.new", FILE_NEW];
    NAMES.contains(&name) || name.starts_with(".s.PGSQL.")
}

fn is_number(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;
    use env::sim::{Crash, SimClock, SimDisk, SimRandom};

    #[test]
    fn an_identity_stays_and_every_flip_is_found() {
        let bytes = Identity(7_000_000_000_000_000_000).encode();
        assert_eq!(Identity::decode(&bytes).expect("undamaged"), Identity(7_000_000_000_000_000_000));
        for bit in 0..bytes.len() * 8 {
            let mut bad = bytes.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(matches!(Identity::decode(&bad), Err(Unidentified::Damaged(_))), "bit {bit}");
        }
        for cut in 0..bytes.len() {
            assert!(Identity::decode(&bytes[..cut]).is_err(), "cut at {cut}");
        }
    }

    /// Wherever the machine stops, there is a whole one or none.
    #[test]
    fn it_is_made_as_a_whole() {
        for stop in 0..8 {
            for crash in [Crash::LoseUnsynced, Crash::KeepAll, Crash::AnySectors, Crash::FlipBits] {
                let disk = SimDisk::new();
                disk.create("log.end").and_then(|_| disk.sync_directory()).expect("healthy");
                disk.freeze_at(disk.operations() + stop);
                let made = Identity::make(&disk, &SimClock::new());
                let after = disk.after_crash(crash, &mut SimRandom::new(stop + 1));
                let found = Identity::read(&after).unwrap_or_else(|why| panic!("stopped at {stop}, {crash:?}: {why}"));
                assert!(made.is_err() || found == made.ok(), "stopped at {stop}, {crash:?}");
                assert!(found.is_some() || Identity::make(&after, &SimClock::new()).is_ok());
            }
        }
    }

    #[test]
    fn a_directory_that_has_lost_all_else_is_told() {
        let disk = SimDisk::new();
        Identity::make(&disk, &SimClock::new()).expect("healthy");
        assert!(matches!(Identity::read(&disk), Err(Unidentified::Damaged(why)) if why.contains("are missing")));
    }
}
