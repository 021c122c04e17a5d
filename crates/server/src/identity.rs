//! Which database a data directory is: the file `identity`.
//!
//! Responsible for: the number, which the log has before anything else is there; writing the file once all else is there, reading it,
//! what it says; that it says what the log says.
//! Not responsible for: who asks.
//! Invariants: an identity stays as it was made; a directory with one has a log and `log.end`, or has lost them.

use std::io;

use checkpoint::is_image_file;
use env::{Clock, Disk};

use crate::directory;

/// Its name.
pub const FILE: &str = "identity";
const FILE_NEW: &str = "identity.new";
/// The log's file that is there before an identity is.
const END: &str = "log.end";
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

/// Where an identity is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The file.
    File,
    /// The log; the file is not there.
    Log,
    /// It was made now.
    New,
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
        let names = disk.list().map_err(failed)?;
        let is_lost = match names.iter().any(|name| is_of_database(name) && name != FILE) {
            false => Some("its checkpoint and its log are missing"),
            true if !names.iter().any(|name| name == END) => Some("log.end is missing, which says where its log ends"),
            true => None,
        };
        match is_lost {
            Some(lost) => Err(Unidentified::Damaged(format!("it was database {identity}, and {lost}"))),
            None => Ok(Some(identity)),
        }
    }

    /// Which database a directory is, or will be. The log has the number from now on, which comes before the file: that is written
    /// once all else is there.
    ///
    /// # Errors
    /// The file and the log are not as they were written, or not of the same database: what, in one line.
    pub fn settle(disk: &dyn Disk, clock: &dyn Clock) -> Result<(Identity, Origin), String> {
        let known = Identity::read(disk).map_err(|why| why.to_string())?;
        let in_log = redo::database_of(disk).map_err(|why| why.to_string())?;
        let (identity, origin) = match (known, in_log) {
            (Some(identity), _) => (identity, Origin::File),
            (None, 0) => (Identity::new(clock), Origin::New),
            (None, number) => (Identity(number), Origin::Log),
        };
        let names = disk.list().map_err(|error| format!("the data directory cannot be read: {error}"))?;
        // One of a database whose log has no such file gets it when the log was read.
        if names.iter().any(|name| name == END) || !names.iter().any(|name| is_of_database(name)) {
            redo::belong_to(disk, identity.0).map_err(|why| why.to_string())?;
        }
        Ok((identity, origin))
    }

    /// Writes the file, for a directory that has all else.
    ///
    /// # Errors
    /// Of the disk.
    pub fn write(self, disk: &dyn Disk) -> io::Result<()> {
        directory::replace(disk, FILE, FILE_NEW, |file| file.write_at(&self.encode(), 0))
    }
}

/// Whether a file of this name is there only in a directory that has, or had, a database.
pub fn is_of_database(name: &str) -> bool {
    let is_segment = |name: &str| name.strip_suffix(".log").is_some_and(|n| n.len() == 20 && is_number(n));
    name == FILE || name == "manifest" || name == END || is_image_file(name) || is_segment(name)
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
                let new = Identity::new(&SimClock::new());
                let made = new.write(&disk);
                let after = disk.after_crash(crash, &mut SimRandom::new(stop + 1));
                let found = Identity::read(&after).unwrap_or_else(|why| panic!("stopped at {stop}, {crash:?}: {why}"));
                assert!(found.is_none_or(|found| found == new), "stopped at {stop}, {crash:?}");
                assert!(made.is_err() || found.is_some(), "stopped at {stop}, {crash:?}");
                assert!(found.is_some() || new.write(&after).is_ok());
            }
        }
    }

    #[test]
    fn a_directory_that_has_lost_all_else_is_told() {
        let disk = SimDisk::new();
        Identity(7).write(&disk).expect("healthy");
        assert!(matches!(Identity::read(&disk), Err(Unidentified::Damaged(why)) if why.contains("are missing")));
        // Or the file of the log that was there before it, with which the log's newest segments may have gone.
        disk.create("00000000000000000000.log").expect("healthy");
        assert!(matches!(Identity::read(&disk), Err(Unidentified::Damaged(why)) if why.contains("log.end is missing")));
    }

    #[test]
    fn the_log_has_the_number_first_and_keeps_it() {
        let (disk, clock) = (SimDisk::new(), SimClock::new());
        let (identity, origin) = Identity::settle(&disk, &clock).expect("nothing is there");
        assert_eq!((origin, Identity::read(&disk).expect("nothing is wrong")), (Origin::New, None));
        // The file was not written, or is lost: it is the same database.
        assert_eq!(Identity::settle(&disk, &clock), Ok((identity, Origin::Log)));
        identity.write(&disk).expect("healthy");
        assert_eq!(Identity::settle(&disk, &clock), Ok((identity, Origin::File)));
        Identity(identity.0 + 1).write(&disk).expect("healthy");
        let refused = Identity::settle(&disk, &clock).expect_err("it is another's");
        let expected = format!("the file is of database {identity}, not of {}", identity.0 + 1);
        assert!(refused.contains("log.end at byte ") && refused.ends_with(&expected), "{refused}");
    }

    /// A directory of an earlier version is not touched before its log was read.
    #[test]
    fn an_older_directory_gets_a_number_and_stays_as_it_is() {
        for file in ["manifest", "00000000000000000000.log"] {
            let disk = SimDisk::new();
            disk.create(file).expect("healthy");
            let (_, origin) = Identity::settle(&disk, &SimClock::new()).expect("nothing is wrong");
            assert_eq!((origin, disk.list().expect("healthy")), (Origin::New, vec![file.to_string()]));
        }
    }
}
