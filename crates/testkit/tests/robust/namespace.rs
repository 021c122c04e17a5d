//! Small disks of a test's own. Mounts are made in a mount namespace, so the test runs itself again inside of one.

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;
pub use testkit::skip;

const INSIDE: &str = "NYALA_IN_NAMESPACE";

/// Whether the caller is inside of a namespace of its own. Outside, the test `name` is run inside, and must pass there; where
/// that cannot be, it is skipped.
pub fn is_inside(name: &str) -> bool {
    if testkit::Target::is_postgres() {
        println!("not run: there is no server whose disk could fail");
        return false;
    }
    if std::env::var_os(INSIDE).is_some() {
        return true;
    }
    let can = |flags: &str| Command::new("unshare").args([flags, "true"]).output().is_ok_and(|o| o.status.success());
    let Some(flags) = ["-m", "-Urm"].into_iter().find(|flags| can(flags)) else {
        skip(name, "no namespaces here");
        return false;
    };
    let this = std::env::current_exe().expect("the test knows its own path");
    let output = Command::new("unshare")
        .args([flags, this.to_str().expect("the path is UTF-8")])
        .args(["--exact", name, "--nocapture"])
        .env(INSIDE, "1")
        .output()
        .expect("unshare runs");
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    assert!(output.status.success(), "{said}");
    println!("{said}");
    false
}

/// A small file system.
pub struct SmallDisk {
    directory: TempDir,
    /// The file that an ext4 lies in.
    image: Option<PathBuf>,
}

impl SmallDisk {
    /// Of so many megabytes in memory.
    pub fn in_memory(test: &str, megabytes: usize) -> Option<SmallDisk> {
        let directory = tempfile::tempdir().expect("a directory for the server");
        let size = format!("size={megabytes}M");
        mounted(test, directory.path(), &["-t", "tmpfs", "-o", &size, "tmpfs"])?;
        Some(SmallDisk { directory, image: None })
    }

    /// Of so many megabytes with ext4, which becomes read-only after an error.
    pub fn ext4(test: &str, megabytes: u64) -> Option<SmallDisk> {
        let directory = tempfile::tempdir().expect("a directory for the server");
        let image = directory.path().with_extension("ext4");
        let file = std::fs::File::create(&image).expect("a file for the file system");
        file.set_len(megabytes << 20).expect("a sparse file");
        let disk = SmallDisk { directory, image: Some(image.clone()) };
        let made = Command::new("mkfs.ext4").arg("-q").arg(&image).status();
        if !made.is_ok_and(|status| status.success()) {
            skip(test, "mkfs.ext4 does not run");
            return None;
        }
        let image = image.to_str().expect("the path is UTF-8");
        mounted(test, disk.path(), &["-o", "loop,errors=remount-ro", image])?;
        Some(disk)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Takes the ext4 off and mounts it again, as it is after a restart of the machine.
    pub fn mount_again(&self) -> bool {
        let ok = |command: &mut Command| command.status().is_ok_and(|status| status.success());
        let Some(image) = &self.image else { return false };
        ok(Command::new("umount").arg(self.path()))
            && ok(Command::new("mount").args(["-o", "loop"]).arg(image).arg(self.path()))
    }

    /// A file of zeros that takes so many megabytes.
    pub fn ballast(&self, megabytes: usize) -> PathBuf {
        let path = self.path().join("ballast");
        std::fs::write(&path, vec![b'x'; megabytes << 20]).expect("the ballast fits");
        path
    }

    /// Megabytes that are free.
    pub fn free(&self) -> u64 {
        let space = rustix::fs::statvfs(self.path()).expect("the disk is there");
        (space.f_bavail * space.f_frsize) >> 20
    }
}

fn mounted(test: &str, at: &Path, arguments: &[&str]) -> Option<()> {
    let output = Command::new("mount").args(arguments).arg(at).output().expect("mount runs");
    if output.status.success() {
        return Some(());
    }
    skip(test, &format!("mount {}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr).trim()));
    None
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.path()).status();
        if let Some(image) = &self.image {
            let _ = std::fs::remove_file(image);
        }
    }
}

/// Names of the files of a data directory with one of these endings.
pub fn files(data: &Path, endings: &[&str]) -> Vec<String> {
    let entries = std::fs::read_dir(data).expect("the data directory is there").flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = names.filter(|name| endings.iter().any(|end| name.ends_with(end))).collect();
    names.sort();
    names
}
