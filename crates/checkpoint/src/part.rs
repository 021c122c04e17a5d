//! Writing one file of an image.

use std::io;
use std::sync::Arc;

use base::RowId;
use env::{Disk, DiskFile};
use mvcc::{Read, Table, View, pin};

use crate::VERSION;
use crate::block::{self, BlockHeader, Holds, RowsContent};
use crate::bytes;
use crate::manifest::ManifestFile;

const MAGIC: &[u8; 8] = b"NYALAIMG";
const END_MAGIC: &[u8; 8] = b"NYALAEND";

/// Bytes before the first block, and of the file's end.
pub(crate) const HEADER: usize = 64;
pub(crate) const FOOTER: usize = 64;

/// Bytes gathered before they are written.
const WRITE: usize = 1 << 20;
/// Bytes written before they are synced: the disk gets its work in even portions, and commits do not queue behind one large one.
const SYNC: u64 = 16 << 20;

fn name_of(checkpoint: u64, part: u32) -> String {
    format!("{checkpoint:010}-{part:04}.image")
}

fn encode_header(checkpoint: u64, part: u32) -> [u8; HEADER] {
    let mut header = [0; HEADER];
    header[..8].copy_from_slice(MAGIC);
    header[8..12].copy_from_slice(&VERSION.to_le_bytes());
    header[12..16].copy_from_slice(&part.to_le_bytes());
    header[16..24].copy_from_slice(&checkpoint.to_le_bytes());
    seal(&mut header);
    header
}

/// Puts the checksum at the end of a header or footer.
fn seal(bytes: &mut [u8; 64]) {
    let crc = crc32c::crc32c(&bytes[..60]);
    bytes[60..].copy_from_slice(&crc.to_le_bytes());
}

fn is_sealed(bytes: &[u8; 64], magic: &[u8; 8]) -> bool {
    &bytes[..8] == magic && bytes::u32_at(bytes, 60) == crc32c::crc32c(&bytes[..60])
}

/// The version and the checkpoint that a file's header tells.
pub(crate) fn decode_header(header: &[u8; HEADER]) -> Option<(u32, u64)> {
    is_sealed(header, MAGIC).then(|| (bytes::u32_at(header, 8), bytes::u64_at(header, 16)))
}

/// Where the directory lies, and its bytes, as a file's end tells.
pub(crate) fn decode_footer(footer: &[u8; FOOTER]) -> Option<(u64, u64)> {
    is_sealed(footer, END_MAGIC).then(|| (bytes::u64_at(footer, 8), bytes::u64_at(footer, 16)))
}

/// Writes one file of an image, block by block. One thread at a time.
pub struct PartWriter {
    file: Arc<dyn DiskFile>,
    entry: ManifestFile,
    checkpoint: u64,
    /// Encoded and not written yet.
    buffer: Vec<u8>,
    /// Bytes written before it.
    written: u64,
    synced: u64,
    directory: Vec<u8>,
    content: RowsContent,
}

impl PartWriter {
    /// Begins file number `part` of a checkpoint.
    ///
    /// # Errors
    /// As [`Disk::create`].
    pub fn create(disk: &dyn Disk, checkpoint: u64, part: u32) -> io::Result<PartWriter> {
        let name = name_of(checkpoint, part);
        let file = disk.create(&name)?;
        Ok(PartWriter {
            file,
            entry: ManifestFile { name, ..ManifestFile::default() },
            checkpoint,
            buffer: encode_header(checkpoint, part).to_vec(),
            written: 0,
            synced: 0,
            directory: Vec::new(),
            content: RowsContent::default(),
        })
    }

    /// Writes a block of the rows from `from` on, below `end`, that `view` sees; answers where to go on, `end` when done. A
    /// range without rows gets no block.
    ///
    /// REQUIRES that the view is held until this returns. The rows are named `table` in the image.
    ///
    /// # Errors
    /// As [`DiskFile::write_at`] and [`DiskFile::sync`].
    pub fn write_rows(&mut self, table: u64, rows: &Table, from: RowId, end: RowId, view: &View) -> io::Result<RowId> {
        self.content.begin(from);
        let next = {
            let guard = pin();
            rows.scan(from, end, true, view, &guard, |row, read| {
                if let Read::Visible(version) = read {
                    self.content.push(row, version.layout, version.tuple);
                }
                !self.content.is_full()
            })
        };
        if self.content.rows() > 0 {
            let holds = Holds::Rows { table, range: from..next, rows: self.content.rows() };
            self.entry.rows += u64::from(self.content.rows());
            let content = std::mem::take(&mut self.content);
            let written = self.block(holds, content.as_bytes());
            self.content = content;
            written?;
        }
        Ok(next)
    }

    /// Writes bytes of the engine's own.
    ///
    /// # Errors
    /// As [`PartWriter::write_rows`].
    pub fn write_meta(&mut self, name: u64, content: &[u8]) -> io::Result<()> {
        for part in content.chunks(block::CONTENT_TARGET) {
            self.block(Holds::Meta(name), part)?;
        }
        Ok(())
    }

    /// Bytes written so far, those still in memory included.
    fn bytes(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }

    fn block(&mut self, holds: Holds, content: &[u8]) -> io::Result<()> {
        let offset = self.bytes();
        let header = block::encode(holds, self.checkpoint, content, &mut self.buffer);
        note(&mut self.directory, offset, &header);
        self.entry.blocks += 1;
        self.entry.content += content.len() as u64;
        if self.buffer.len() >= WRITE { self.write() } else { Ok(()) }
    }

    fn write(&mut self) -> io::Result<()> {
        self.file.write_at(&self.buffer, self.written)?;
        self.written += self.buffer.len() as u64;
        self.buffer.clear();
        if self.written - self.synced >= SYNC {
            self.file.sync()?;
            self.synced = self.written;
        }
        Ok(())
    }

    /// Writes the directory and makes the file durable; its name becomes so with [`Disk::sync_directory`].
    ///
    /// # Errors
    /// As [`PartWriter::write_rows`].
    pub fn finish(mut self) -> io::Result<ManifestFile> {
        let at = self.bytes();
        let directory = std::mem::take(&mut self.directory);
        block::encode(Holds::Directory, self.checkpoint, &directory, &mut self.buffer);
        let mut footer = [0; FOOTER];
        footer[..8].copy_from_slice(END_MAGIC);
        footer[8..16].copy_from_slice(&at.to_le_bytes());
        footer[16..24].copy_from_slice(&(self.bytes() - at).to_le_bytes());
        seal(&mut footer);
        self.buffer.extend_from_slice(&footer);
        self.write()?;
        self.file.sync()?;
        self.entry.bytes = self.written;
        Ok(self.entry)
    }
}

/// Bytes of one entry of a directory: offset, and the block's header.
fn note(directory: &mut Vec<u8>, offset: u64, header: &BlockHeader) {
    let (kind, table, range, rows) = match &header.holds {
        Holds::Rows { table, range, rows } => (1, *table, range.clone(), *rows),
        Holds::Meta(name) => (2, *name, RowId(0)..RowId(0), 0),
        Holds::Directory => return,
    };
    for n in [kind, offset, header.len() as u64, table, range.start.0, range.end.0, u64::from(rows)] {
        bytes::put(directory, n);
    }
}

/// The next entry of a directory: offset, length, what the block holds.
pub(crate) fn next_entry(directory: &mut &[u8]) -> Option<(u64, u64, Holds)> {
    let mut words = [0; 7];
    for word in &mut words {
        *word = bytes::take(directory)?;
    }
    let [kind, offset, len, table, start, end, rows] = words;
    let holds = match kind {
        1 => Holds::Rows { table, range: RowId(start)..RowId(end), rows: u32::try_from(rows).ok()? },
        2 => Holds::Meta(table),
        _ => return None,
    };
    Some((offset, len, holds))
}
