//! The manifest: which files are the image, and what of the log goes with it.
//!
//! A line `NYALA MANIFEST` and the version, a JSON object, and a line with the checksum of both. It is written under another name, made
//! durable, and renamed: that rename is the moment at which the new image counts (C1).

use std::io;

use env::Disk;
use serde::{Deserialize, Serialize};

use crate::{ImageError, VERSION};

const NAME: &str = "manifest";
const NAME_NEW: &str = "manifest.new";
const TITLE: &str = "NYALA MANIFEST ";
/// Larger than any: 32 files of an image take some kilobytes.
const BYTES_MAX: u64 = 16 << 20;

/// One file of an image.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManifestFile {
    /// Its name.
    pub name: String,
    /// Its bytes.
    pub bytes: u64,
    /// Blocks in it, without the directory.
    pub blocks: u64,
    /// Rows in it.
    pub rows: u64,
    /// Bytes before compression.
    pub content: u64,
}

/// The image that counts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// Number of the checkpoint; rises.
    pub checkpoint: u64,
    /// Timestamp of the newest commit in it.
    pub ts: u64,
    /// The log position at which that view was taken: records that end above count, those that end at or below are in the image.
    pub upto: u64,
    /// The log is needed from here on: where the oldest transaction that was open began to write ahead.
    pub log_from: u64,
    /// Largest transaction id at that moment.
    pub last_txn: u64,
    /// Microseconds since 1970 when it was made.
    pub made_at: i64,
    /// Its files.
    pub files: Vec<ManifestFile>,
}

impl Manifest {
    /// Rows in the image.
    pub fn rows(&self) -> u64 {
        self.files.iter().map(|file| file.rows).sum()
    }

    /// Bytes of the image on disk.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }

    fn encode(&self) -> io::Result<Vec<u8>> {
        let mut bytes = format!("{TITLE}{VERSION}\n").into_bytes();
        serde_json::to_writer_pretty(&mut bytes, self)?;
        let crc = crc32c::crc32c(&bytes);
        bytes.extend_from_slice(format!("\n{crc:08x}\n").as_bytes());
        Ok(bytes)
    }

    /// Reads a manifest's bytes.
    ///
    /// # Errors
    /// `Damaged`, `Newer`.
    pub fn decode(bytes: &[u8]) -> Result<Manifest, ImageError> {
        let damaged = |why: &str| ImageError::Damaged(format!("{NAME} at byte 0: {why}"));
        let (rest, sum) = bytes.split_at_checked(bytes.len().saturating_sub(10)).ok_or_else(|| damaged("too short"))?;
        let text = std::str::from_utf8(rest).map_err(|_| damaged("not text"))?;
        if sum != format!("\n{:08x}\n", crc32c::crc32c(rest)).as_bytes() {
            return Err(damaged("its checksum is wrong"));
        }
        let (title, json) = text.split_once('\n').ok_or_else(|| damaged("no title"))?;
        let version = title.strip_prefix(TITLE).and_then(|n| n.parse::<u32>().ok());
        match version {
            Some(version) if crate::is_read(version) => serde_json::from_str(json).map_err(|e| damaged(&e.to_string())),
            Some(version) if version > VERSION => Err(crate::newer(NAME, version)),
            _ => Err(damaged("no title")),
        }
    }

    /// Reads the manifest of a directory; `None` if there is none.
    ///
    /// # Errors
    /// All.
    pub fn read(disk: &dyn Disk) -> Result<Option<Manifest>, ImageError> {
        let file = match disk.open(NAME) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let len = file.len()?;
        if len > BYTES_MAX {
            return Err(ImageError::Damaged(format!("{NAME}: {len} bytes")));
        }
        let mut bytes = vec![0; len as usize];
        let read = file.read_at(&mut bytes, 0)?;
        Manifest::decode(&bytes[..read]).map(Some)
    }

    /// Makes this image the one that counts. REQUIRES that its files are durable.
    ///
    /// # Errors
    /// As [`Manifest::prepare`] and [`Manifest::switch`].
    pub fn commit(&self, disk: &dyn Disk) -> io::Result<()> {
        self.prepare(disk)?;
        Manifest::switch(disk)
    }

    /// Writes the manifest under another name. REQUIRES that the image's files are durable.
    ///
    /// # Errors
    /// Of the disk. After one, the image before counts.
    pub fn prepare(&self, disk: &dyn Disk) -> io::Result<()> {
        // The names of the image's files become durable before the manifest speaks of them.
        disk.sync_directory()?;
        if disk.list()?.iter().any(|name| name == NAME_NEW) {
            disk.remove(NAME_NEW)?;
        }
        let file = disk.create(NAME_NEW)?;
        file.write_at(&self.encode()?, 0)?;
        file.sync()
    }

    /// Makes the manifest that was [prepared](Manifest::prepare) the one that counts.
    ///
    /// # Errors
    /// Of the disk. After one, either image may be the one that counts; both are whole as long as nothing is removed.
    pub fn switch(disk: &dyn Disk) -> io::Result<()> {
        disk.rename(NAME_NEW, NAME)?;
        disk.sync_directory()
    }
}

/// Whether a file of this name is one of an image.
pub fn is_image_file(name: &str) -> bool {
    name.ends_with(".image")
}

/// Removes images, and beginnings of images, that no manifest of `manifests` names.
///
/// # Errors
/// Of the disk.
pub fn remove_unnamed<'m>(disk: &dyn Disk, manifests: impl IntoIterator<Item = &'m Manifest>) -> io::Result<()> {
    let named: Vec<&str> = manifests.into_iter().flat_map(|m| m.files.iter().map(|file| file.name.as_str())).collect();
    let is_named = |name: &str| named.contains(&name);
    for name in disk.list()? {
        if name == NAME_NEW || (is_image_file(&name) && !is_named(&name)) {
            disk.remove(&name)?;
        }
    }
    disk.sync_directory()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(checkpoint: u64) -> Manifest {
        let file = ManifestFile { name: "0000000001-0000.image".to_string(), bytes: 192, ..ManifestFile::default() };
        Manifest { checkpoint, ts: 7, upto: 100, log_from: 90, last_txn: 5, made_at: 1, files: vec![file] }
    }

    #[test]
    fn manifests_round_trip_and_every_flip_is_found() {
        let bytes = manifest(3).encode().expect("encodes");
        assert_eq!(Manifest::decode(&bytes).expect("undamaged"), manifest(3));
        for bit in 0..bytes.len() * 8 {
            let mut bad = bytes.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(Manifest::decode(&bad).is_err(), "bit {bit}");
        }
        for cut in 0..bytes.len() {
            assert!(Manifest::decode(&bytes[..cut]).is_err(), "cut at {cut}");
        }
    }

    #[test]
    fn a_newer_version_is_told_from_damage() {
        let mut bytes = format!("{TITLE}{}\n{{}}", VERSION + 1).into_bytes();
        let crc = crc32c::crc32c(&bytes);
        bytes.extend_from_slice(format!("\n{crc:08x}\n").as_bytes());
        assert!(matches!(Manifest::decode(&bytes), Err(ImageError::Newer(_))));
    }
}
