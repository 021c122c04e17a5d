//! The bytes of a log's segments from front to end, read ahead of their reader.
//!
//! Responsible for: reading segments in order, in pieces, by a thread of its own if threads run beside each other; the piece of
//! a segment that is looked at, in one run of memory.
//! Not responsible for: what the bytes mean, when it is enough.
//! Invariants: memory is bounded by the pieces on their way and the largest frame; a failed read is reported where it would be met
//! without reading ahead.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};

use env::{Disk, DiskFile, Joined, Spawn};

/// Bytes of a read.
const PIECE: usize = 2 << 20;
/// Pieces that are read and wait.
const WAITING: usize = 2;

/// Bytes of a segment, or its end.
enum Piece {
    Bytes(Vec<u8>),
    End,
}

/// Reads segments in order, piece by piece.
struct Source {
    disk: Arc<dyn Disk>,
    /// Those that are left, the next one last.
    names: Vec<String>,
    /// The one being read, and how far.
    file: Option<(Arc<dyn DiskFile>, u64)>,
}

impl Source {
    /// The next piece, in memory that is used again; `None` behind the last segment's end.
    fn next(&mut self, mut memory: Vec<u8>) -> io::Result<Option<Piece>> {
        let (file, at) = match self.file.take() {
            Some(open) => open,
            None => match self.names.pop() {
                Some(name) => (self.disk.open(&name)?, 0),
                None => return Ok(None),
            },
        };
        let left = file.len()?.saturating_sub(at);
        let len = left.min(PIECE as u64) as usize;
        if len == 0 {
            return Ok(Some(Piece::End));
        }
        memory.resize(len, 0);
        let read = file.read_at(&mut memory, at)?;
        memory.truncate(read);
        if read == 0 {
            return Ok(Some(Piece::End));
        }
        self.file = Some((file, at + read as u64));
        Ok(Some(Piece::Bytes(memory)))
    }
}

/// Where pieces come from.
enum From {
    /// Read when they are needed.
    Here(Source),
    /// From a thread that is ahead.
    Thread { pieces: Receiver<io::Result<Piece>>, used: Sender<Vec<u8>>, thread: Box<dyn Joined> },
    /// Nothing more.
    Nothing,
}

/// The segments' bytes. One segment is looked at, at a time; [`Stream::next_segment`] goes on to the next.
pub(crate) struct Stream {
    from: From,
    /// Bytes of the segment from `at` on.
    window: Vec<u8>,
    at: usize,
    /// The window goes to the segment's end.
    is_whole: bool,
    memory: Vec<u8>,
}

impl Stream {
    /// Of these segments. With `spawn`, a thread reads ahead.
    pub fn new(disk: &Arc<dyn Disk>, mut names: Vec<String>, spawn: Option<&dyn Spawn>) -> Stream {
        names.reverse();
        let mut source = Source { disk: Arc::clone(disk), names, file: None };
        let from = match spawn.filter(|spawn| spawn.runs_beside()) {
            None => From::Here(source),
            Some(spawn) => {
                let (sender, pieces) = sync_channel(WAITING);
                let (used, free) = channel();
                let thread = spawn.spawn("log-ahead", Box::new(move || read_ahead(&mut source, &sender, &free)));
                From::Thread { pieces, used, thread }
            }
        };
        Stream { from, window: Vec::new(), at: 0, is_whole: true, memory: Vec::new() }
    }

    /// Goes on to the next segment. REQUIRES that there is one.
    ///
    /// # Errors
    /// Of the disk.
    pub fn next_segment(&mut self) -> io::Result<()> {
        while !self.is_whole {
            self.window.clear();
            self.more()?;
        }
        (self.at, self.is_whole) = (0, false);
        self.window.clear();
        Ok(())
    }

    /// The segment's bytes from `offset` on: `len` of them, or fewer if it ends before. Bytes before `offset` may be forgotten.
    ///
    /// # Errors
    /// Of the disk.
    pub fn bytes(&mut self, offset: usize, len: usize) -> io::Result<&[u8]> {
        base::invariant!(offset >= self.at, "a log is read from front to end");
        let end = offset.saturating_add(len);
        if end > self.at + self.window.len() && !self.is_whole {
            let behind = (offset - self.at).min(self.window.len());
            self.window.drain(..behind);
            self.at += behind;
            while end > self.at + self.window.len() && !self.is_whole {
                self.more()?;
                // A long way to go.
                let behind = (offset - self.at).min(self.window.len());
                if behind == self.window.len() {
                    self.window.clear();
                    self.at += behind;
                }
            }
        }
        let from = (offset - self.at).min(self.window.len());
        Ok(&self.window[from..self.window.len().min(from.saturating_add(len))])
    }

    /// Appends the next piece of the segment to the window.
    fn more(&mut self) -> io::Result<()> {
        let piece = match &mut self.from {
            From::Here(source) => source.next(std::mem::take(&mut self.memory))?,
            From::Thread { pieces, .. } => pieces.recv().ok().transpose()?,
            From::Nothing => None,
        };
        let Some(Piece::Bytes(bytes)) = piece else {
            self.is_whole = true;
            return Ok(());
        };
        self.window.extend_from_slice(&bytes);
        match &self.from {
            // A thread that has ended needs none.
            From::Thread { used, .. } => _ = used.send(bytes),
            _ => self.memory = bytes,
        }
        Ok(())
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if let From::Thread { pieces, used, thread } = std::mem::replace(&mut self.from, From::Nothing) {
            // It finds that nobody listens.
            drop((pieces, used));
            thread.join();
        }
    }
}

fn read_ahead(source: &mut Source, pieces: &SyncSender<io::Result<Piece>>, used: &Receiver<Vec<u8>>) {
    loop {
        let piece = source.next(used.try_recv().unwrap_or_default()).transpose();
        let Some(piece) = piece else { return };
        let is_over = piece.is_err();
        if pieces.send(piece).is_err() || is_over {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use env::real::Threads;
    use env::sim::{Operation, SimDisk};

    fn disk(lens: &[usize]) -> (SimDisk, Arc<dyn Disk>, Vec<String>) {
        let sim = SimDisk::new();
        let names: Vec<String> = (0..lens.len()).map(|n| n.to_string()).collect();
        for (name, len) in names.iter().zip(lens) {
            let bytes: Vec<u8> = (0..*len).map(|at| byte(name, at)).collect();
            sim.create(name).unwrap().write_at(&bytes, 0).unwrap();
        }
        (sim.clone(), Arc::new(sim), names)
    }

    fn byte(name: &str, at: usize) -> u8 {
        (at / 7 + name.len() * 13) as u8 ^ (at >> 11) as u8
    }

    #[test]
    fn bytes_are_those_of_the_files() {
        let lens = [0, 10, PIECE - 1, PIECE, 3 * PIECE + 5, 1];
        let (_, disk, names) = disk(&lens);
        for spawn in [None, Some(&Threads as &dyn Spawn)] {
            for step in [1000, PIECE / 3, PIECE, 2 * PIECE + 1, 8 * PIECE] {
                let mut stream = Stream::new(&disk, names.clone(), spawn);
                for (name, len) in names.iter().zip(lens) {
                    stream.next_segment().unwrap();
                    let mut at = 0;
                    loop {
                        // Also less than what is taken next, and not all is looked at.
                        let head = stream.bytes(at, step / 2).unwrap().to_vec();
                        let bytes = stream.bytes(at, step).unwrap();
                        assert!(bytes.starts_with(&head) && bytes.len() == step.min(len.saturating_sub(at)), "{name}");
                        assert!(bytes.iter().enumerate().step_by(97).all(|(n, b)| *b == byte(name, at + n)), "{name}");
                        if bytes.is_empty() || at > 2 * PIECE {
                            break;
                        }
                        at += step + step % 3;
                    }
                }
            }
        }
    }

    #[test]
    fn a_failed_read_is_told_where_it_is_met() {
        let lens = [PIECE + 1, 3 * PIECE];
        for spawn in [None, Some(&Threads as &dyn Spawn)] {
            for failing in 0..5 {
                let (sim, disk, names) = disk(&lens);
                sim.fail(Operation::Read, failing);
                let mut stream = Stream::new(&disk, names, spawn);
                let mut met = 0;
                let read = lens.iter().try_for_each(|len| {
                    stream.next_segment()?;
                    (0..len.div_ceil(PIECE)).try_for_each(|piece| {
                        stream.bytes(piece * PIECE, PIECE)?;
                        met += 1;
                        Ok::<(), io::Error>(())
                    })
                });
                assert!(read.is_err(), "read {failing}");
                assert_eq!(met, failing);
            }
        }
    }
}
