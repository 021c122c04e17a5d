//! Which database a log's files are of.
//!
//! Responsible for: the number of the database in `log.end` and in the headers of segments; that all name the same.
//! Not responsible for: how the number is made, and the file that says it for the whole directory (`server`).
//! Invariants: 0 is a number that is not known, as files have it that were made before it was written; any other is refused beside
//! another. Nothing is changed where something is refused.

use base::Lsn;
use env::Disk;

use crate::driver::DriverError;
use crate::end::{End, EndFile};
use crate::file::{failed, segments};
use crate::frame::{SEGMENT_DATABASE, SEGMENT_HEADER, SegmentHeader};

/// The database that a directory's log names; 0 if it names none.
///
/// # Errors
/// `Corrupt` if its files are of several, or `log.end` is damaged; `Refused` for another version, `Failed`.
pub fn database_of(disk: &dyn Disk) -> Result<u64, DriverError> {
    of_files(disk, EndFile::read(disk)?.as_ref(), &segments(disk)?)
}

/// Refuses a directory's log if it is another database's than this one. Changes nothing.
///
/// # Errors
/// `Corrupt` if it is another's, or `log.end` is damaged; `Refused`, `Failed`.
pub fn belongs_to(disk: &dyn Disk, database: u64) -> Result<(), DriverError> {
    compare(disk, database).map(drop)
}

/// Makes a directory's log one of this database, durably and before it is opened: `log.end` says it, and segments that are begun from now
/// on. It may have been that before. A log of an earlier version, with segments and without `log.end`, stays as it is.
///
/// # Errors
/// As [`belongs_to`], and `Full`.
pub fn belong_to(disk: &dyn Disk, database: u64) -> Result<(), DriverError> {
    let (file, segments) = compare(disk, database)?;
    match file {
        Some(file) if file.end().database == database => Ok(()),
        Some(mut file) => file.write(End { database, ..file.end() }),
        None if segments.is_empty() => EndFile::create(disk, End::unknown(database)).map(drop),
        // Opening makes the file, or sees that it is missing.
        None => Ok(()),
    }
}

type Files = (Option<EndFile>, Vec<(Lsn, String)>);

/// The files of a log that is of this database, or names none.
fn compare(disk: &dyn Disk, database: u64) -> Result<Files, DriverError> {
    let (file, segments) = (EndFile::read(disk)?, segments(disk)?);
    let found = of_files(disk, file.as_ref(), &segments)?;
    if found == 0 || found == database {
        return Ok((file, segments));
    }
    let by_end = file.as_ref().filter(|file| file.end().database != 0).map(EndFile::place_of_database);
    let by_segment = || segments.last().map(|(_, name)| place_of(name)).unwrap_or_default();
    Err(DriverError::Corrupt(another(&by_end.unwrap_or_else(by_segment), found, database)))
}

/// The database that these files of a log name; 0 if they name none.
pub(crate) fn of_files(disk: &dyn Disk, end: Option<&EndFile>, segments: &[(Lsn, String)]) -> Result<u64, DriverError> {
    let mut database = end.map_or(0, |file| file.end().database);
    for (_, name) in segments {
        match header(disk, name)?.map_or(0, |header| header.database) {
            0 => {}
            found if database == 0 => database = found,
            found if found == database => {}
            found => return Err(DriverError::Corrupt(another(&place_of(name), found, database))),
        }
    }
    Ok(database)
}

/// The header of a segment, if there is one that is whole and can be read. What is wrong with another is said when it is read.
fn header(disk: &dyn Disk, name: &str) -> Result<Option<SegmentHeader>, DriverError> {
    let mut bytes = [0; SEGMENT_HEADER];
    let read = disk.open(name).and_then(|file| file.read_at(&mut bytes, 0)).map_err(failed)?;
    Ok(SegmentHeader::decode(&bytes[..read]).ok().flatten())
}

fn place_of(segment: &str) -> String {
    format!("{segment} at byte {SEGMENT_DATABASE}")
}

fn another(place: &str, found: u64, database: u64) -> String {
    format!("{place}: the file is of database {found}, not of {database}")
}
