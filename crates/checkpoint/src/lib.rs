//! Images of tables on disk: what a start loads before it replays the log from there on.
//!
//! Responsible for: the form of images, writing one from a read view beside writers, its manifest and the atomic switch to it,
//! reading it back in any order by any number of threads, finding damage.
//! Not responsible for: when an image is made, what the engine's own bytes in it mean, which part of the log it replaces
//! (`engine`), how many threads write and read.
//!
//! An image is a set of files of blocks ([`PartWriter`], one per writing thread), named by the [`Manifest`]. A block of rows
//! holds all rows of a table within a range of RowIds as one view saw them. An image that has only blocks of ranges that
//! changed, on top of an older one, would need no other form: a later block replaces what an earlier one had in its range.
//!
//! Invariants
//! - **C1** An image is valid once the manifest that names its files is durable; until then the one before is. Files are
//!   durable before their manifest is written, and are never changed afterwards.
//! - **C2** Every byte read back is covered by a checksum; damage is an error that names file and byte, never a wrong row.
//! - **C3** No epoch guard is held while the disk is written.
//!
//! Start at [`PartWriter`] and [`Image`]. Byte tables: docs/formats/checkpoint.md.

#![forbid(unsafe_code)]

mod block;
mod bytes;
mod image;
mod manifest;
mod part;

pub use block::Holds;
pub use image::{BlockRef, Image, Piece, PieceBytes, Scratch};
pub use manifest::{Manifest, ManifestFile, is_image_file, remove_unnamed};
pub use part::PartWriter;

use std::fmt;
use std::io;

/// Version of the form of all files. Older ones that are listed in docs/formats/checkpoint.md are read, newer ones refused.
pub const VERSION: u32 = 5;
/// The oldest that is read.
const OLDEST: u32 = 1;

/// Whether this version reads files of that one.
fn is_read(version: u32) -> bool {
    (OLDEST..=VERSION).contains(&version)
}

/// What is said of a file of a newer version.
fn newer(name: &str, version: u32) -> ImageError {
    ImageError::Newer(format!("{name} has version {version}, this server reads {OLDEST} to {VERSION}"))
}

/// Why an image cannot be read.
#[derive(Debug)]
pub enum ImageError {
    /// The disk failed.
    Io(io::Error),
    /// Bytes are not what was written: where.
    Damaged(String),
    /// Made by a newer version.
    Newer(String),
}

impl fmt::Display for ImageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ImageError::Io(error) => write!(f, "a checkpoint cannot be read: {error}"),
            ImageError::Damaged(place) => write!(f, "a checkpoint is damaged: {place}"),
            ImageError::Newer(what) => write!(f, "a checkpoint was made by a newer version: {what}"),
        }
    }
}

impl std::error::Error for ImageError {}

impl From<io::Error> for ImageError {
    fn from(error: io::Error) -> ImageError {
        ImageError::Io(error)
    }
}
