//! The data directory is its server's alone, and has a database or nothing.

use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use env::{Disk, DiskFile};

use crate::identity::{is_of_beginning, is_of_database};

/// Time in which a server that has made a directory puts something into it.
const SOON: Duration = Duration::from_millis(300);

/// What a data directory has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// It is not there.
    Absent,
    /// Nothing, or what a new file system has.
    Nothing,
    /// What is left of a database that was being made.
    Beginning,
    /// A database.
    Database,
}

/// What a directory has.
///
/// # Errors
/// Something else than a database, or it cannot be read: what, in one line.
pub fn content(path: &Path) -> Result<Content, String> {
    let shown = path.display();
    let entries = match fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound && is_dangling(path) => {
            return Err(format!("cannot open the data directory {shown}: it is a link to nothing"));
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Content::Absent),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
            return Err(format!("cannot open the data directory {shown}: it is not a directory"));
        }
        Err(error) => return Err(format!("cannot open the data directory {shown}: {error}")),
    };
    let (mut is_begun, mut other) = (false, None);
    for entry in entries {
        let name = entry.map_err(|error| format!("cannot read the data directory {shown}: {error}"))?.file_name();
        match name.to_str() {
            Some(name) if is_of_database(name) => return Ok(Content::Database),
            Some("PG_VERSION") => return Err(format!("the data directory {shown} is PostgreSQL's")),
            Some("lost+found") => {}
            Some(name) if is_of_beginning(name) => is_begun = true,
            _ => other = Some(name),
        }
    }
    match other {
        Some(name) => Err(format!("{shown} is no data directory: there is {} in it, and no database", name.display())),
        None if is_begun => Ok(Content::Beginning),
        None => Ok(Content::Nothing),
    }
}

/// Whether a path is a link to what is not there.
pub fn is_dangling(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink()) && !path.exists()
}

/// Puts a file in the place of the one of its name; a crash leaves one or the other. `new` is the name it has until it is complete.
///
/// # Errors
/// Of the disk, and of `write`.
pub fn replace(
    disk: &dyn Disk,
    name: &str,
    new: &str,
    write: impl FnOnce(&dyn DiskFile) -> io::Result<()>,
) -> io::Result<()> {
    if disk.list()?.iter().any(|there| there == new) {
        disk.remove(new)?;
    }
    let file = disk.create(new)?;
    write(&*file)?;
    file.sync()?;
    disk.rename(new, name)?;
    disk.sync_directory()
}

/// A directory that is made for a database: it goes again unless there is more in it than its lock.
pub struct Made(Option<PathBuf>);

impl Made {
    /// `path` is about to be made, if it is not there.
    ///
    /// # Errors
    /// As [`content`].
    pub fn unless_there(path: &Path) -> Result<Made, String> {
        Ok(Made((content(path)? == Content::Absent).then(|| path.to_path_buf())))
    }

    /// From now on it stays, whatever happens.
    pub fn stays(&mut self) {
        self.0 = None;
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        let Some(path) = &self.0 else { return };
        let names =
            fs::read_dir(path).map(|entries| entries.flatten().map(|entry| entry.file_name()).collect::<Vec<_>>());
        if names.is_ok_and(|names| names == [env::real::LOCK_FILE]) {
            // What cannot be removed is refused by the next start, which says how to go on.
            let _ = fs::remove_file(path.join(env::real::LOCK_FILE)).and_then(|()| fs::remove_dir(path));
        }
    }
}

/// Whether an empty directory is one that nobody fills. Another server may just have made it.
///
/// # Errors
/// As [`content`].
pub fn stays_empty(path: &Path) -> Result<bool, String> {
    std::thread::sleep(SOON);
    Ok(content(path)? == Content::Nothing)
}

/// Refuses a directory of somebody else's, and one that others may look into. An empty one is closed to them, as `initdb` does.
///
/// # Errors
/// What is wrong, in one line and in PostgreSQL's words.
pub fn check(path: &Path) -> Result<(), String> {
    let shown = path.display();
    let found = fs::metadata(path).map_err(|e| format!("could not read permissions of directory \"{shown}\": {e}"))?;
    if !found.is_dir() {
        return Err(format!("cannot open the data directory {shown}: it is not a directory"));
    }
    if found.uid() != rustix::process::geteuid().as_raw() {
        return Err(format!(
            "data directory \"{shown}\" has wrong ownership: the server must be started by the user that owns the data \
             directory"
        ));
    }
    let is_open = || fs::metadata(path).is_ok_and(|found| found.permissions().mode() & 0o077 != 0);
    // It is looked at again, for another server may have closed it and begun to fill it meanwhile.
    if is_open() && !closed(path) && is_open() {
        return Err(format!("data directory \"{shown}\" has invalid permissions: permissions should be u=rwx (0700)"));
    }
    Ok(())
}

/// Whether the directory was empty, and is its owner's alone now.
fn closed(path: &Path) -> bool {
    content(path) == Ok(Content::Nothing) && fs::set_permissions(path, fs::Permissions::from_mode(0o700)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_others_may_enter_is_refused() {
        let place = tempfile::tempdir().expect("a directory");
        let data = place.path().join("data");
        // Made as the server makes it, whatever the mask is.
        drop(env::real::world(&data).expect("it is made"));
        assert_eq!(check(&data), Ok(()));
        fs::set_permissions(&data, fs::Permissions::from_mode(0o755)).expect("it is ours");
        assert_eq!(check(&data), Ok(()), "an empty one is closed");
        assert_eq!(fs::metadata(&data).expect("it is there").permissions().mode() & 0o777, 0o700);
        fs::write(data.join("file"), "").expect("there is room");
        for mode in [0o750, 0o701, 0o710, 0o704, 0o777] {
            fs::set_permissions(&data, fs::Permissions::from_mode(mode)).expect("it is ours");
            let wrong = check(&data).expect_err("others may look");
            assert!(wrong.ends_with("has invalid permissions: permissions should be u=rwx (0700)"), "{wrong}");
        }
        fs::set_permissions(&data, fs::Permissions::from_mode(0o700)).expect("it is ours");
        assert_eq!(check(&data), Ok(()));
        assert!(check(&place.path().join("none")).is_err());
    }

    #[test]
    fn what_is_in_it_is_told_apart() {
        let place = tempfile::tempdir().expect("a directory");
        let data = place.path().join("data");
        assert_eq!(content(&data), Ok(Content::Absent));
        let link = place.path().join("link");
        std::os::unix::fs::symlink(&data, &link).expect("there is room");
        assert!(content(&link).is_err_and(|wrong| wrong.ends_with("it is a link to nothing")));
        fs::create_dir(&data).expect("there is room");
        assert_eq!(content(&data), Ok(Content::Nothing));
        assert_eq!(content(&link), Ok(Content::Nothing));
        fs::create_dir(data.join("lost+found")).expect("there is room");
        assert_eq!(content(&data), Ok(Content::Nothing), "a new file system");
        let with = |name: &str| {
            fs::write(data.join(name), "").expect("there is room");
            let found = content(&data);
            fs::remove_file(data.join(name)).expect("it is there");
            found
        };
        for name in ["lock", "spare.new", "log.end.new", ".s.PGSQL.5432"] {
            assert_eq!(with(name), Ok(Content::Beginning), "{name}");
        }
        for name in ["identity", "manifest", "log.end", "00000000000000000000.log", "0000000001-0000.image"] {
            assert_eq!(with(name), Ok(Content::Database), "{name}");
        }
        for name in ["notes.txt", "server.log", "0.log", "base"] {
            assert!(with(name).is_err_and(|wrong| wrong.contains(&format!("there is {name} in it"))), "{name}");
        }
        assert!(with("PG_VERSION").is_err_and(|wrong| wrong.ends_with("is PostgreSQL's")));
        fs::write(data.join("notes.txt"), "").expect("there is room");
        assert_eq!(with("manifest"), Ok(Content::Database), "whatever else somebody has put there");
        assert!(with("lock").is_err());
    }

    #[test]
    fn one_that_was_made_in_vain_goes_again() {
        let place = tempfile::tempdir().expect("a directory");
        let data = place.path().join("data");
        let begin = |more: Option<&str>| {
            let mut made = Made::unless_there(&data).expect("nothing is wrong");
            let _ = fs::create_dir(&data);
            more.into_iter().chain(["lock"]).for_each(|name| fs::write(data.join(name), "").expect("there is room"));
            if more == Some("spare") {
                made.stays();
            }
        };
        begin(None);
        assert_eq!(content(&data), Ok(Content::Absent));
        begin(Some("log.end"));
        assert_eq!(content(&data), Ok(Content::Database));
        fs::remove_file(data.join("log.end")).expect("it is there");
        begin(None);
        assert_eq!(content(&data), Ok(Content::Beginning), "it was there before");
        fs::remove_dir_all(&data).expect("it is there");
        begin(Some("spare"));
        assert_eq!(content(&data), Ok(Content::Beginning));
    }

    #[test]
    fn files_in_it_are_its_owners_alone() {
        let place = tempfile::tempdir().expect("a directory");
        let world = env::real::world(&place.path().join("data")).expect("it is made");
        drop(world.disk.lock().expect("nobody has it"));
        world.disk.create("file").expect("there is room");
        for name in ["lock", "file"] {
            let mode = fs::metadata(place.path().join("data").join(name)).expect("it is there").permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{name}");
        }
    }
}
