//! Reading an image back.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use base::{LayoutId, RowId};
use env::{Aligned, Disk, DiskFile, PAGE};

use crate::block::{self, BlockRows, Holds};
use crate::manifest::{Manifest, ManifestFile};
use crate::part::{self, FOOTER, HEADER};
use crate::{ImageError, VERSION};

/// A block of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockRef {
    file: usize,
    offset: u64,
    len: u64,
    /// What it holds.
    pub holds: Holds,
}

impl BlockRef {
    /// Its bytes on disk.
    pub fn bytes(&self) -> u64 {
        self.len
    }
}

/// Memory that a thread uses again for each block.
#[derive(Debug, Default)]
pub struct Scratch {
    stored: Vec<u8>,
    content: Vec<u8>,
}

/// Blocks that lie one behind the other in a file and are read at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    blocks: Range<usize>,
    offset: u64,
    len: u64,
}

impl Piece {
    /// Its bytes on disk.
    pub fn bytes(&self) -> u64 {
        self.len
    }
}

/// The bytes of a piece. Used again, it keeps its memory.
#[derive(Debug, Default)]
pub struct PieceBytes {
    memory: Aligned,
    /// Where in the file they begin, and how many there are.
    offset: u64,
    filled: usize,
}

impl PieceBytes {
    /// Bytes of memory that it keeps.
    pub fn capacity(&self) -> usize {
        self.memory.len()
    }

    fn of(&self, block: &BlockRef) -> &[u8] {
        let at = block.offset.saturating_sub(self.offset) as usize;
        let bytes = self.memory.get(..self.filled).and_then(|filled| filled.get(at..));
        bytes.map_or(&[], |bytes| &bytes[..bytes.len().min(block.len as usize)])
    }
}

struct File {
    file: Arc<dyn DiskFile>,
    entry: ManifestFile,
    checkpoint: u64,
}

/// An image that is being read, by any number of threads.
pub struct Image {
    files: Vec<File>,
    blocks: Vec<BlockRef>,
}

impl Image {
    /// Opens the files that a manifest names and reads their directories.
    ///
    /// # Errors
    /// All.
    pub fn open(disk: &dyn Disk, manifest: &Manifest) -> Result<Image, ImageError> {
        let mut image = Image { files: Vec::new(), blocks: Vec::new() };
        for entry in &manifest.files {
            let file = disk.open_to_read(&entry.name).map_err(|error| match error.kind() {
                io::ErrorKind::NotFound => ImageError::Damaged(format!("{} is missing", entry.name)),
                _ => error.into(),
            })?;
            let file = File { file, entry: entry.clone(), checkpoint: manifest.checkpoint };
            image.directory_of(&file)?;
            image.files.push(file);
        }
        Ok(image)
    }

    /// The blocks, in the order of files and offsets.
    pub fn blocks(&self) -> &[BlockRef] {
        &self.blocks
    }

    /// The blocks of rows in pieces of so many bytes, or of one block that is larger.
    pub fn pieces(&self, bytes: u64) -> Vec<Piece> {
        let mut pieces: Vec<Piece> = Vec::new();
        for (number, block) in self.blocks.iter().enumerate() {
            if !matches!(block.holds, Holds::Rows { .. }) {
                continue;
            }
            match pieces.last_mut() {
                Some(last)
                    if last.blocks.end == number
                        && self.blocks[last.blocks.start].file == block.file
                        && last.len + block.len <= bytes =>
                {
                    last.blocks.end += 1;
                    last.len += block.len;
                }
                _ => pieces.push(Piece { blocks: number..number + 1, offset: block.offset, len: block.len }),
            }
        }
        pieces
    }

    /// The blocks of a piece.
    pub fn blocks_of(&self, piece: &Piece) -> &[BlockRef] {
        &self.blocks[piece.blocks.clone()]
    }

    /// Reads a piece. Nothing is verified.
    ///
    /// # Errors
    /// `Io`
    pub fn read_piece(&self, piece: &Piece, into: &mut PieceBytes) -> Result<(), ImageError> {
        let file = &self.files[self.blocks[piece.blocks.start].file].file;
        // Whole pages, so that the disk may read them where they are to be.
        into.offset = piece.offset / PAGE as u64 * PAGE as u64;
        let len = ((piece.offset + piece.len - into.offset) as usize).next_multiple_of(PAGE);
        into.memory.grow(len);
        into.filled = 0;
        into.filled = file.read_at(&mut into.memory[..len], into.offset)?;
        Ok(())
    }

    /// The engine's own bytes of this name, put together.
    ///
    /// # Errors
    /// All.
    pub fn meta(&self, name: u64) -> Result<Vec<u8>, ImageError> {
        let (mut all, mut scratch) = (Vec::new(), Scratch::default());
        for block in self.blocks.iter().filter(|block| block.holds == Holds::Meta(name)) {
            all.extend_from_slice(self.content(block, &mut scratch)?);
        }
        Ok(all)
    }

    /// Hands the rows of a block to `each`. Nothing of a block counts before this has returned `Ok`: a malformed one may have
    /// handed over some of its rows.
    ///
    /// # Errors
    /// All.
    pub fn rows(
        &self,
        block: &BlockRef,
        scratch: &mut Scratch,
        each: impl FnMut(RowId, LayoutId, &[u8]),
    ) -> Result<(), ImageError> {
        let content = self.content(block, scratch)?;
        self.each_row(block, content, each)
    }

    /// As [`Image::rows`], for a block of a piece that was read.
    ///
    /// # Errors
    /// `Damaged`
    pub fn rows_of(
        &self,
        block: &BlockRef,
        piece: &PieceBytes,
        scratch: &mut Scratch,
        each: impl FnMut(RowId, LayoutId, &[u8]),
    ) -> Result<(), ImageError> {
        let content = self.content_of(block, piece.of(block), &mut scratch.content)?;
        self.each_row(block, content, each)
    }

    fn each_row(
        &self,
        block: &BlockRef,
        content: &[u8],
        mut each: impl FnMut(RowId, LayoutId, &[u8]),
    ) -> Result<(), ImageError> {
        let Holds::Rows { range, rows, .. } = block.holds.clone() else { return Ok(()) };
        for row in BlockRows::new(content, range, rows) {
            let (row, layout, tuple) = row.map_err(|()| self.damaged(block))?;
            each(row, layout, tuple);
        }
        Ok(())
    }

    /// Reads and verifies a block of any kind. Answers the bytes of its content.
    ///
    /// # Errors
    /// All.
    pub fn verify(&self, block: &BlockRef, scratch: &mut Scratch) -> Result<u64, ImageError> {
        let content = self.content(block, scratch)?;
        if let Holds::Rows { range, rows, .. } = block.holds.clone() {
            let mut last = None;
            for row in BlockRows::new(content, range, rows) {
                let (row, ..) = row.map_err(|()| self.damaged(block))?;
                if last.is_some_and(|last| row <= last) {
                    return Err(self.damaged(block));
                }
                last = Some(row);
            }
        }
        Ok(content.len() as u64)
    }

    /// The number of the file that a block is in, in the order of the manifest.
    pub fn file_of(&self, block: &BlockRef) -> usize {
        block.file
    }

    /// Where a block lies, as errors say it.
    pub fn place_of(&self, block: &BlockRef) -> String {
        format!("{} at byte {}", self.files[block.file].entry.name, block.offset)
    }

    fn damaged(&self, block: &BlockRef) -> ImageError {
        ImageError::Damaged(self.place_of(block))
    }

    fn content<'s>(&self, block: &BlockRef, scratch: &'s mut Scratch) -> Result<&'s [u8], ImageError> {
        let file = &self.files[block.file];
        scratch.stored.resize(block.len as usize, 0);
        let read = file.file.read_at(&mut scratch.stored, block.offset)?;
        self.content_of(block, &scratch.stored[..read], &mut scratch.content)
    }

    /// The content of a block with these bytes, which may lie in `content`.
    fn content_of<'s>(
        &self,
        block: &BlockRef,
        bytes: &'s [u8],
        content: &'s mut Vec<u8>,
    ) -> Result<&'s [u8], ImageError> {
        let (header, content) = block::decode(bytes, content).ok_or_else(|| self.damaged(block))?;
        let is_it = header.holds == block.holds && header.checkpoint == self.files[block.file].checkpoint;
        if is_it { Ok(content) } else { Err(self.damaged(block)) }
    }

    /// Reads a file's directory. REQUIRES that the file is pushed next.
    fn directory_of(&mut self, file: &File) -> Result<(), ImageError> {
        let name = &file.entry.name;
        let damaged = |at: u64, what: &str| ImageError::Damaged(format!("{name} at byte {at}: {what}"));
        let mut header = [0; HEADER];
        file.file.read_at(&mut header, 0)?;
        match part::decode_header(&header) {
            Some((version, checkpoint)) if crate::is_read(version) && checkpoint == file.checkpoint => {}
            Some((version, _)) if version > VERSION => return Err(crate::newer(name, version)),
            _ => return Err(damaged(0, "its header is wrong")),
        }
        let len = file.file.len()?;
        if len != file.entry.bytes || len < (HEADER + FOOTER) as u64 {
            return Err(damaged(len, &format!("it ends here, not at {}", file.entry.bytes)));
        }
        let mut footer = [0; FOOTER];
        let behind = len - FOOTER as u64;
        file.file.read_at(&mut footer, behind)?;
        let (at, bytes) = part::decode_footer(&footer).ok_or_else(|| damaged(behind, "its end is wrong"))?;
        if at.checked_add(bytes) != Some(behind) {
            return Err(damaged(behind, "its end is wrong"));
        }
        let mut scratch = Scratch::default();
        scratch.stored.resize(bytes as usize, 0);
        file.file.read_at(&mut scratch.stored, at)?;
        let found = block::decode(&scratch.stored, &mut scratch.content);
        let (header, mut directory) = found.ok_or_else(|| damaged(at, "its directory is damaged"))?;
        if header.holds != Holds::Directory || header.checkpoint != file.checkpoint {
            return Err(damaged(at, "its directory is not its own"));
        }
        // Blocks lie one behind the other: no byte is in none.
        let mut end = HEADER as u64;
        while !directory.is_empty() {
            let entry = part::next_entry(&mut directory).filter(|(offset, ..)| *offset == end);
            let (offset, len, holds) = entry.ok_or_else(|| damaged(at, "its directory is malformed"))?;
            end = offset
                .checked_add(len)
                .filter(|end| *end <= at)
                .ok_or_else(|| damaged(at, "its directory is malformed"))?;
            self.blocks.push(BlockRef { file: self.files.len(), offset, len, holds });
        }
        if end == at { Ok(()) } else { Err(damaged(end, "a block is missing in its directory")) }
    }
}
