//! `nyala check`: whether a data directory is sound, without starting it.

use std::fmt::Write as _;
use std::io::{self, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use base::Lsn;
use clap::Args;
use engine::{CheckError, Progress, Sound};
use env::{Disk, DiskLock};
use redo::Ending;

use crate::directory;
use crate::identity::{Identity, Origin, Unidentified, is_of_database};

/// Time between two drawings of the bar.
const DRAW: Duration = Duration::from_millis(100);
/// Characters of the bar.
const BAR: usize = 40;

/// Exit codes beside 0.
const DAMAGED: u8 = 1;
const UNREADABLE: u8 = 2;

/// What a cut end is.
pub const TORN: &str = "its end is torn or damaged: if a crash has torn it, it was never acknowledged; if it was damaged later, it may \
                        have been";

/// Options of `nyala check`.
#[derive(Clone, Debug, Args)]
pub struct CheckOptions {
    /// The data directory. No server may be running on it; nothing in it is changed.
    #[arg(value_name = "DIR")]
    pub data: PathBuf,
}

/// Verifies a directory and says what is in it: 0 if it is sound, 1 if it is damaged, 2 if it cannot be read.
pub fn main(options: &CheckOptions) -> ExitCode {
    let shown = options.data.display();
    match verify(&options.data) {
        Ok(found) => {
            // Whoever does not read it does not want to know.
            let _ = io::stdout().write_all(report(&options.data, &found).as_bytes());
            ExitCode::SUCCESS
        }
        Err(CheckError::Damaged(what)) => {
            eprintln!("nyala: {shown} is damaged: {what}");
            ExitCode::from(DAMAGED)
        }
        Err(CheckError::Unreadable(what)) => {
            eprintln!("nyala: cannot check {shown}: {what}");
            ExitCode::from(UNREADABLE)
        }
    }
}

/// What a sound directory has.
struct Found {
    /// As its file says, or else its log.
    identity: Option<Identity>,
    origin: Origin,
    sound: Sound,
    ending: Ending,
    /// What is wrong with the planner's statistics.
    statistics: Option<String>,
}

impl Found {
    /// Position of the log's end.
    fn end(&self) -> Lsn {
        let from = self.sound.checkpoint.as_ref().map_or(0, |manifest| manifest.log_from);
        Lsn(from + self.sound.log_bytes)
    }
}

/// What is said of a log that was not closed.
pub fn unclosed(end: Lsn, ending: &Ending) -> String {
    let place = ending.place.as_deref().unwrap_or("no file");
    let known = match ending.is_noted {
        true => "as far as log.end has it",
        false => "acknowledged transactions behind that, if a power failure took them, could not be told",
    };
    format!("not closed, as after a crash: it ends at position {end} ({place}), {known}")
}

fn verify(path: &Path) -> Result<Found, CheckError> {
    let unreadable = |error: io::Error| CheckError::Unreadable(error.to_string());
    if directory::is_dangling(path) {
        return Err(CheckError::Unreadable("it is a link to nothing".to_string()));
    }
    if !std::fs::metadata(path).map_err(unreadable)?.is_dir() {
        return Err(CheckError::Unreadable("it is not a directory".to_string()));
    }
    let world = env::real::world_to_read(path).map_err(unreadable)?;
    let _lock = lock(path, &world)?;
    let names = world.disk.list().map_err(unreadable)?;
    if !names.iter().any(|name| is_of_database(name)) {
        return Err(CheckError::Unreadable("it has neither a checkpoint nor a log".to_string()));
    }
    let (identity, origin) = identify(&*world.disk)?;
    let statistics = crate::statistics::damage(&*world.disk);
    let disk = Arc::clone(&world.disk);
    let progress = Arc::new(Progress::default());
    let (checking, told) = (Arc::clone(&progress), Arc::clone(&progress));
    let check = std::thread::spawn(move || engine::check(&world, &checking));
    if io::stderr().is_terminal() {
        while !check.is_finished() {
            draw(told.percent());
            std::thread::sleep(DRAW);
        }
        // The line goes as it came.
        eprint!("\r{:BAR$}           \r", "");
    }
    let checked = check.join().unwrap_or_else(|_| Err(CheckError::Unreadable("the check itself failed".to_string())));
    let mut found = Found { identity, origin, sound: checked?, ending: Ending::default(), statistics };
    if found.sound.was_closed == Some(false) {
        found.ending = redo::ending(&disk, found.end())?;
    }
    Ok(found)
}

/// Which database it is, as the file or else the log says.
fn identify(disk: &dyn Disk) -> Result<(Option<Identity>, Origin), CheckError> {
    let known = Identity::read(disk).map_err(|why| match why {
        Unidentified::Damaged(what) => CheckError::Damaged(what),
        Unidentified::Unreadable(why) => CheckError::Unreadable(why),
    })?;
    match known {
        Some(identity) => redo::belongs_to(disk, identity.0)?,
        None => {
            let number = redo::database_of(disk)?;
            return Ok((Some(Identity(number)).filter(|_| number != 0), Origin::Log));
        }
    }
    Ok((known, Origin::File))
}

/// Keeps servers away. A directory that no server has been in, a copy perhaps, has no file to lock, and gets none.
fn lock(path: &Path, world: &env::World) -> Result<Option<Box<dyn DiskLock>>, CheckError> {
    if !path.join(env::real::LOCK_FILE).exists() {
        return Ok(None);
    }
    if path.join(env::real::LOCK_FILE).is_dir() {
        return Err(CheckError::Unreadable(format!("{} is a directory, not the file to lock", env::real::LOCK_FILE)));
    }
    let locked = world.disk.lock().map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock => "it is in use by a server".to_string(),
        _ => format!("it cannot be locked: {error}"),
    });
    locked.map(Some).map_err(CheckError::Unreadable)
}

fn draw(percent: u8) {
    let full = BAR * usize::from(percent) / 100;
    eprint!("\r[{:#<full$}{:-<rest$}] {percent:3} %", "", "", rest = BAR - full);
}

fn report(path: &Path, found: &Found) -> String {
    let sound = &found.sound;
    let mut out = String::new();
    // Writing to a string does not fail.
    let mut line = |text: String| _ = writeln!(out, "{text}");
    line(format!("{} is sound", path.display()));
    if let Some(identity) = found.identity {
        line(format!("database {identity}"));
        if found.origin == Origin::Log {
            line(format!("identity: the file is missing; the log says {identity}, and a start makes it again"));
        }
    }
    match &sound.checkpoint {
        Some(manifest) => line(format!(
            "checkpoint {}: {} rows in {} files, {} bytes",
            manifest.checkpoint,
            manifest.rows(),
            manifest.files.len(),
            manifest.bytes()
        )),
        None => line("no checkpoint".to_string()),
    }
    line(format!("log: {} bytes in {} records to read back", sound.log_bytes, sound.log_records));
    if let Some(place) = &sound.cut {
        line(format!("log: a start will cut it off in {place}: {TORN}"));
    }
    if let Some(was_closed) = sound.was_closed {
        let unclosed = || unclosed(found.end(), &found.ending);
        line(format!("log: {}", if was_closed { "closed in order".to_string() } else { unclosed() }));
    }
    line(format!("catalog: {} objects", sound.objects));
    for unclear in sql_catalog::conversion::unclear(&sound.catalog) {
        line(format!("definition: {} has no meaning: {}", unclear.what, unclear.why));
    }
    if let Some(why) = &found.statistics {
        line(format!("statistics: {why}; a start leaves out what cannot be read, and samples tables again"));
    }
    for name in &sound.prepared {
        line(format!("prepared transaction \"{name}\""));
    }
    for table in &sound.tables {
        line(format!("table {}: {} rows, {} of them in the checkpoint", table.name, table.rows, table.image_rows));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_says_what_was_found() {
        let table = engine::CheckedTable { name: "public.t".to_string(), image_rows: 2, rows: 5 };
        let sound = Sound {
            tables: vec![table],
            objects: 9,
            prepared: vec!["p".to_string()],
            log_bytes: 77,
            log_records: 3,
            cut: Some("1.log at byte 8".to_string()),
            was_closed: Some(false),
            ..Sound::default()
        };
        let place = Some("1.log at byte 8".to_string());
        let ending = Ending { place, is_noted: false };
        let mut found = Found { identity: Some(Identity(7)), origin: Origin::File, sound, ending, statistics: None };
        let expected = "/d is sound\ndatabase 7\nno checkpoint\nlog: 77 bytes in 3 records to read back\n\
            log: a start will cut it off in 1.log at byte 8: its end is torn or damaged: if a crash has torn it, it was never \
            acknowledged; if it was damaged later, it may have been\nlog: not closed, as after a crash: it ends at position 77 (1.log at byte 8), \
            acknowledged transactions behind that, if a power failure took them, could not be told\ncatalog: 9 objects\n\
            prepared transaction \"p\"\ntable public.t: 5 rows, 2 of them in the checkpoint\n";
        assert_eq!(report(Path::new("/d"), &found), expected);
        (found.ending.is_noted, found.origin) = (true, Origin::Log);
        found.statistics = Some("statistics is damaged at byte 16".to_string());
        let said = report(Path::new("/d"), &found);
        assert!(said.contains("at position 77 (1.log at byte 8), as far as log.end has it\n"), "{said}");
        assert!(said.contains("\nstatistics: statistics is damaged at byte 16; a start leaves out"), "{said}");
        assert!(said.contains("identity: the file is missing; the log says 7, and a start makes it again\n"), "{said}");
    }
}
