//! What the disk can do: the files of a data directory, read from end to end past the page cache.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Instant;

use rustix::fs::{Advice, OFlags, fadvise};

use super::is_read_at_start;

/// Bytes of one read.
const READ: usize = 4 << 20;
/// Where reads past the page cache begin, in the file and in memory.
const ALIGN: usize = 4096;
/// Reads under way at once: what a disk needs to show all that it has.
const DEPTH: usize = 4;

/// What the image in a data directory is, from its manifest.
#[derive(Clone, Copy, Debug, Default)]
pub struct Image {
    /// Rows.
    pub rows: u64,
    /// Bytes on disk.
    pub bytes: u64,
    /// Bytes before compression.
    pub content: u64,
}

impl Image {
    /// That of a data directory; nothing if it has none.
    pub fn of(data: &Path) -> Image {
        let text = std::fs::read_to_string(data.join("manifest")).unwrap_or_default();
        // A title, an object, a checksum.
        let object = text.split_once('\n').and_then(|(_, rest)| Some(rest.trim_end().rsplit_once('\n')?.0));
        let manifest: serde_json::Value = object.and_then(|json| serde_json::from_str(json).ok()).unwrap_or_default();
        let files = manifest["files"].as_array().map_or(&[][..], Vec::as_slice);
        let sum = |field: &str| files.iter().filter_map(|file| file[field].as_u64()).sum();
        Image { rows: sum("rows"), bytes: sum("bytes"), content: sum("content") }
    }
}

/// The files that a start reads.
pub struct Files(Vec<(PathBuf, u64)>);

impl Files {
    /// Those of a data directory.
    ///
    /// # Errors
    /// Of the file system.
    pub fn of(data: &Path) -> io::Result<Files> {
        let mut files = Vec::new();
        for entry in std::fs::read_dir(data)? {
            let path = entry?.path();
            if is_read_at_start(&path) {
                let len = path.metadata()?.len();
                files.push((path, len));
            }
        }
        files.sort();
        Ok(Files(files))
    }

    /// Their bytes.
    pub fn bytes(&self) -> u64 {
        self.0.iter().map(|(_, len)| len).sum()
    }

    /// Takes them out of the page cache, after what is only there has been written.
    ///
    /// # Errors
    /// Of the file system.
    pub fn drop_cached(&self) -> io::Result<()> {
        for (path, _) in &self.0 {
            let file = File::open(path)?;
            file.sync_all()?;
            fadvise(&file, 0, None, Advice::DontNeed)?;
        }
        Ok(())
    }

    /// Reads all of them, and answers bytes per second: with several reads under way past the page cache where the file system
    /// can, through it where it cannot.
    ///
    /// # Errors
    /// Of the file system.
    pub fn read(&self) -> io::Result<f64> {
        let parts = self.0.iter().flat_map(|(path, len)| (0..*len).step_by(READ).map(move |at| (path, at)));
        let next = Mutex::new(parts);
        let began = Instant::now();
        let read: io::Result<Vec<u64>> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..DEPTH)
                .map(|_| {
                    scope.spawn(|| -> io::Result<u64> {
                        let mut memory = vec![0u8; READ + ALIGN];
                        let skip = memory.as_ptr().align_offset(ALIGN).min(ALIGN);
                        let buffer = &mut memory[skip..skip + READ];
                        let (mut sum, mut open): (u64, Option<(&Path, File)>) = (0, None);
                        loop {
                            let part = next.lock().expect("nothing panics under it").next();
                            let Some((path, at)) = part else { return Ok(sum) };
                            if open.as_ref().is_none_or(|(opened, _)| *opened != path) {
                                open = Some((path, open_past_cache(path)?));
                            }
                            if let Some((_, file)) = &open {
                                sum += file.read_at(buffer, at)? as u64;
                            }
                        }
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().expect("a reader does not panic")).collect()
        });
        Ok(read?.iter().sum::<u64>() as f64 / began.elapsed().as_secs_f64())
    }
}

fn open_past_cache(path: &Path) -> io::Result<File> {
    let direct = OpenOptions::new().read(true).custom_flags(OFlags::DIRECT.bits() as i32).open(path);
    direct.or_else(|_| File::open(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_tells_of_the_image() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(Image::of(directory.path()).rows, 0);
        let files = r#""files": [{"rows": 2, "bytes": 5, "content": 9}, {"rows": 1, "bytes": 1, "content": 1}]"#;
        let manifest = format!("NYALA MANIFEST 1\n{{\n  \"ts\": 3,\n  {files}\n}}\n00ff00ff\n");
        std::fs::write(directory.path().join("manifest"), manifest).unwrap();
        let Image { rows, bytes, content } = Image::of(directory.path());
        assert_eq!((rows, bytes, content), (3, 6, 10));
    }

    #[test]
    fn all_bytes_are_read() {
        let directory = tempfile::tempdir().unwrap();
        for (name, len) in [("a", 10_000_001), ("b", 1), ("lock", 100), ("c", 0)] {
            std::fs::write(directory.path().join(name), vec![7; len]).unwrap();
        }
        let files = Files::of(directory.path()).unwrap();
        assert_eq!(files.bytes(), 10_000_002);
        files.drop_cached().unwrap();
        assert!(files.read().unwrap() > 0.0);
    }
}
