//! The data directory is its server's alone.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

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
    fs::read_dir(path).is_ok_and(|mut files| files.next().is_none())
        && fs::set_permissions(path, fs::Permissions::from_mode(0o700)).is_ok()
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
