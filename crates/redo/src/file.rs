//! The file driver: segments in a directory, one sync per group.
//!
//! Segments are named by the position of their first record, hold a header and frames, and have their full size from the
//! start, written with zeros: overwriting allocated bytes keeps a sync from touching the file system's metadata. The next
//! segment is prepared ahead, as `spare`, by a thread of its own, and takes its name when the one in use is full.
//!
//! Reading back (rule R5): frames follow each other without a gap. The first that does not – damaged, or of an older
//! generation than the one before – ends the log, unless a later frame says that it had been durable. The generation rises
//! with every opening above that of all frames found and of all that `log.end` knows of, so that none is handed out twice and frames
//! left behind a cut never come back. A torn one that is whole again, since what was written over it had the bytes that it missed, does not
//! either: `log.end` says where the newest generation began. What was read back
//! without a record that it was durable is written and synced again: it may lie in the system's cache only, and
//! after a failed sync even that cache may take it for written.
//!
//! The last group has no frame behind it that could say that it was durable. The file `log.end` ([`crate::end`]) does: how far the log
//! was durable, which segment is the newest, and where the log was closed. A log that is behind that is refused.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use base::{Lsn, WriterEpoch};
use env::{Aligned, Disk, DiskFile, Spawn};

use crate::database;
use crate::driver::{Batch, DriverError, Ending, Limits, Mark, ReplicatedLog};
use crate::end::{END_FILE, End, EndFile};
use crate::frame::{self, ALIGN, FRAME_HEADER, FrameHeader, SEGMENT_HEADER, SegmentHeader};
use crate::stream::Stream;

const SPARE: &str = "spare";
const SPARE_NEW: &str = "spare.new";

/// Bytes written at once while a segment is prepared.
const ZEROS: usize = 1 << 20;

/// Bytes that are looked at as one when what is behind the end of a log is searched.
const ZEROS_AT_ONCE: usize = 4096;

/// Sizes of the file driver.
#[derive(Clone, Copy, Debug)]
pub struct FileOptions {
    /// Bytes of a segment.
    pub segment_bytes: u64,
    /// Largest batch. At most a quarter of a segment.
    pub batch_bytes_max: usize,
}

impl Default for FileOptions {
    fn default() -> FileOptions {
        FileOptions { segment_bytes: 64 << 20, batch_bytes_max: 4 << 20 }
    }
}

/// What the writer and the preparer share.
struct Space {
    /// Bytes left in the segment in use.
    left: AtomicU64,
    /// A prepared segment waits.
    spare: AtomicBool,
    /// Bytes a prepared segment is good for: less its header, and the end that a batch may not fit into.
    spare_bytes: u64,
    /// Held while a segment is made.
    making: Mutex<()>,
}

impl Space {
    fn room(&self) -> u64 {
        // In this order, and `rotate` stores in the other: a spare that is just put to use is not counted twice.
        let left = self.left.load(Ordering::Acquire);
        left + if self.spare.load(Ordering::Acquire) { self.spare_bytes } else { 0 }
    }

    /// Makes the spare segment if there is none.
    fn make(&self, disk: &dyn Disk, bytes: u64) -> Result<(), DriverError> {
        let _making = self.making.lock().unwrap_or_else(|e| e.into_inner());
        if !self.spare.load(Ordering::Acquire) {
            if !finds_spare(disk, bytes).map_err(failed)? {
                prepare(disk, bytes)?;
            }
            self.spare.store(true, Ordering::Release);
        }
        Ok(())
    }
}

struct Segment {
    file: Arc<dyn DiskFile>,
    start: Lsn,
    /// Where the next frame goes.
    end: u64,
    /// Written since the last sync.
    dirty: bool,
}

/// A log in files.
pub struct FileLog {
    disk: Arc<dyn Disk>,
    options: FileOptions,
    space: Arc<Space>,
    segments: Vec<Segment>,
    generation: u64,
    epoch: WriterEpoch,
    buffer: Vec<u8>,
    /// Where what was submitted ends.
    submitted: Lsn,
    /// There once the log was read.
    end_file: Option<EndFile>,
    /// Others know that the log was durable up to here.
    known: Lsn,
    /// Which database the log is of; 0 if that is not known.
    database: u64,
    /// Who reads ahead.
    ahead: Option<Arc<dyn Spawn>>,
}

pub(crate) fn name_of(start: Lsn) -> String {
    format!("{:020}.log", start.0)
}

fn start_of(name: &str) -> Option<Lsn> {
    name.strip_suffix(".log").filter(|n| n.len() == 20)?.parse().ok().map(Lsn)
}

pub(crate) fn failed(error: io::Error) -> DriverError {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => DriverError::Full,
        _ => DriverError::Failed(error),
    }
}

/// Names and first positions of the segments on a disk, in order.
pub(crate) fn segments(disk: &dyn Disk) -> Result<Vec<(Lsn, String)>, DriverError> {
    let names = disk.list().map_err(failed)?;
    let mut found: Vec<_> = names.into_iter().filter_map(|n| start_of(&n).map(|start| (start, n))).collect();
    found.sort();
    Ok(found)
}

/// A segment that was read back: the end of its good frames.
struct ReadBack {
    name: String,
    /// As its header says.
    version: u32,
    start: Lsn,
    end: Lsn,
    offset: usize,
    /// The first frame of which no later one says that it is durable.
    unsure: Option<usize>,
}

/// A log that was read.
pub(crate) struct Scan {
    consumed: Vec<ReadBack>,
    /// Segments behind the end.
    behind: Vec<String>,
    /// Position after the last good batch.
    pub end: Lsn,
    /// The position that the frames themselves say was durable.
    durable: Lsn,
    /// The newest generation of a frame, those behind the end included.
    newest: u64,
    /// Where something lies behind the end, if it does and the log was not closed there.
    pub cut: Option<String>,
    /// Whether the log was closed there; a log of an earlier version does not say.
    pub was_closed: Option<bool>,
    /// Where it ends.
    pub ending: Ending,
    end_file: Option<EndFile>,
}

/// Where reading stopped.
struct Stop {
    segment: usize,
    offset: usize,
    end: Lsn,
}

/// What lies behind a stop.
struct Behind {
    /// The newest generation of a frame.
    newest: u64,
    is_zero: bool,
}

/// The frame at a place of a segment, if there is a whole and undamaged one.
fn frame_at(stream: &mut Stream, offset: usize) -> Result<Option<(FrameHeader, &[u8])>, DriverError> {
    let header = stream.bytes(offset, FRAME_HEADER).map_err(failed)?;
    let Some(len) = frame::len_of(header) else { return Ok(None) };
    stream.bytes(offset, len).map(frame::decode).map_err(failed)
}

impl FileLog {
    /// A log in a directory. Nothing is read or written yet; [`ReplicatedLog::read`] comes first.
    pub fn new(disk: Arc<dyn Disk>, options: FileOptions) -> FileLog {
        assert!(
            options.batch_bytes_max as u64 * 4 <= options.segment_bytes,
            "a batch is at most a quarter of a segment"
        );
        let waste = frame::frame_len(options.batch_bytes_max) as u64;
        let space = Space {
            left: AtomicU64::new(0),
            spare: AtomicBool::new(false),
            spare_bytes: options.segment_bytes - SEGMENT_HEADER as u64 - waste,
            making: Mutex::new(()),
        };
        FileLog {
            disk,
            options,
            space: Arc::new(space),
            segments: Vec::new(),
            generation: 1,
            epoch: WriterEpoch(0),
            buffer: Vec::new(),
            submitted: Lsn(0),
            end_file: None,
            known: Lsn(0),
            database: 0,
            ahead: None,
        }
    }

    /// Others know that the log was durable up to here: reading refuses one that ends before.
    pub fn durable_up_to(self, known: Lsn) -> FileLog {
        FileLog { known, ..self }
    }

    /// With a thread that reads ahead of whoever looks at what is read back.
    pub fn read_ahead_by(self, spawn: Arc<dyn Spawn>) -> FileLog {
        FileLog { ahead: Some(spawn), ..self }
    }

    /// Bytes of records that the log has from a position on, as far as the files' sizes and some places of the last one tell:
    /// roughly what will be read back. Nothing is verified.
    ///
    /// # Errors
    /// `Failed`
    pub fn bytes_from(&self, from: Lsn) -> Result<u64, DriverError> {
        let Some((start, name)) = self.list()?.pop() else { return Ok(0) };
        let file = self.disk.open(&name).map_err(failed)?;
        // What was never written is zeros to the end of the segment: where they begin is searched by halves.
        let (mut written, mut zero) = (0, file.len().map_err(failed)?.div_ceil(ZEROS_AT_ONCE as u64));
        let mut place = vec![0; ZEROS_AT_ONCE];
        while written < zero {
            let at = written.midpoint(zero);
            let read = file.read_at(&mut place, at * ZEROS_AT_ONCE as u64).map_err(failed)?;
            if is_zero(&place[..read]) { zero = at } else { written = at + 1 }
        }
        let end = written * ZEROS_AT_ONCE as u64;
        Ok((start.0 + end.saturating_sub(SEGMENT_HEADER as u64)).saturating_sub(from.0))
    }

    /// The segment with a position, and its bytes, for saying that it will be read soon. What fails here fails again when it is
    /// read.
    pub fn segment_at(&self, from: Lsn) -> Option<(Arc<dyn DiskFile>, u64)> {
        let names = self.list().ok()?;
        let (_, name) = names.iter().rev().find(|(start, _)| *start <= from)?;
        let file = self.disk.open(name).ok()?;
        let len = file.len().ok()?;
        Some((file, len))
    }

    /// Names and first positions of the segments, in order.
    fn list(&self) -> Result<Vec<(Lsn, String)>, DriverError> {
        segments(&*self.disk)
    }

    /// Reads every batch that ends behind `from`, in order, and looks at what lies behind the last good one. Changes nothing on
    /// the disk.
    pub(crate) fn scan(
        &mut self,
        from: Lsn,
        visit: &mut dyn FnMut(Batch<'_>) -> Result<(), String>,
    ) -> Result<Scan, DriverError> {
        let mut names = self.list()?;
        let end_file = EndFile::read(&*self.disk)?;
        let said = end_file.as_ref().map(EndFile::end);
        if let Some(newest) = said.and_then(|end| end.newest)
            && !names.iter().any(|(start, _)| *start == newest)
        {
            let missing = format!("{} is missing, which {END_FILE} names as the newest segment", name_of(newest));
            return Err(DriverError::Corrupt(missing));
        }
        self.database = database::of_files(&*self.disk, end_file.as_ref(), &names)?;
        // Segments before the one with `from` are not needed, and may be gone in part.
        let first = names.iter().rposition(|(start, _)| *start <= from);
        if first.is_none() && (!names.is_empty() || from > Lsn(0)) {
            return Err(DriverError::Corrupt(missing(from, names.first())));
        }
        names.drain(..first.unwrap_or(0));
        let segments = names.iter().map(|(_, name)| name.clone()).collect();
        let mut stream = Stream::new(&self.disk, segments, self.ahead.as_deref());
        let mut expected = None;
        let mut stopped: Option<Stop> = None;
        let mut consumed: Vec<ReadBack> = Vec::new();
        let mut durable = from;
        // Frames that are not known to be durable: segment, offset, end.
        let mut unsure: VecDeque<(usize, usize, Lsn)> = VecDeque::new();
        for (i, (start, name)) in names.iter().enumerate() {
            stream.next_segment().map_err(failed)?;
            let header = SegmentHeader::decode(stream.bytes(0, SEGMENT_HEADER).map_err(failed)?)
                .map_err(|e| DriverError::Refused(format!("{name}: {e}")))?;
            let end = *expected.get_or_insert(*start);
            let Some(header) = header.filter(|h| h.start == *start && end == *start) else {
                // Earlier versions may have stopped while they made a segment: nothing is in it then.
                if said.is_some() {
                    return Err(DriverError::Corrupt(format!("{name} at byte 0: the segment's header is not there")));
                }
                stopped = Some(Stop { segment: i, offset: 0, end });
                break;
            };
            self.check_size(name, &header, said.is_some())?;
            // What is in it of an older generation was there before it was a segment.
            self.generation = self.generation.max(header.generation);
            let mut offset = SEGMENT_HEADER;
            let mut end = end;
            while let Some((frame_header, records)) = frame_at(&mut stream, offset)? {
                let is_cut = said.is_some_and(|said| said.has_cut(frame_header.start, frame_header.generation));
                if frame_header.start != end || frame_header.generation < self.generation || is_cut {
                    break;
                }
                self.generation = frame_header.generation;
                durable = durable.max(frame_header.durable);
                end = Lsn(end.0 + records.len() as u64);
                if let Some(End { durable: closed, is_closed: true, .. }) = said
                    && end > closed
                {
                    let place = format!("{name} at byte {offset}");
                    return Err(DriverError::Corrupt(format!(
                        "{place}: it goes on where the log was closed, at {closed}"
                    )));
                }
                if end > from {
                    let batch = Batch { start: frame_header.start, bytes: records };
                    visit(batch).map_err(|e| DriverError::Corrupt(format!("{name} at byte {offset}: {e}")))?;
                }
                self.epoch = self.epoch.max(frame_header.epoch);
                unsure.push_back((i, offset, end));
                while unsure.pop_front_if(|(_, _, end)| *end <= durable).is_some() {}
                offset += frame::frame_len(records.len());
            }
            expected = Some(end);
            let version = header.version;
            consumed.push(ReadBack { name: name.clone(), version, start: *start, end, offset, unsure: None });
            let next_follows = names.get(i + 1).is_some_and(|(next, _)| *next == end);
            if !next_follows {
                stopped = Some(Stop { segment: i, offset, end });
                break;
            }
        }
        for (segment, offset, _) in unsure {
            consumed[segment].unsure.get_or_insert(offset);
        }
        let mut cut = None;
        let mut newest = self.generation;
        let was_closed = said.filter(End::is_opened).map(|end| end.is_closed);
        let mut place = None;
        if let Some(stop) = stopped {
            self.check_end(&stop, &names, said)?;
            let behind = self.check_cut(&stop, &names, &mut stream)?;
            newest = newest.max(behind.newest);
            let stop_place = format!("{} at byte {}", names[stop.segment].1, stop.offset);
            // What lies behind a closed log is what an earlier start has cut.
            if was_closed != Some(true) && (!behind.is_zero || stop.segment + 1 < names.len()) {
                cut = Some(stop_place.clone());
            }
            place = Some(stop_place);
        }
        let behind = names.drain(consumed.len()..).map(|(_, name)| name).collect();
        let end = expected.unwrap_or(from);
        let newest = newest.max(said.map_or(0, |end| end.generation));
        let is_noted = end_file.as_ref().and_then(EndFile::noted).is_some_and(|noted| noted >= end);
        let ending = Ending { place, is_noted };
        Ok(Scan { consumed, behind, end, durable, newest, cut, was_closed, ending, end_file })
    }

    /// Refuses a segment that is not as large as it says: it was made in its full size. With segments that say it there is the file
    /// that knows the end.
    fn check_size(&self, name: &str, header: &SegmentHeader, has_end_file: bool) -> Result<(), DriverError> {
        let Some(size) = header.size else { return Ok(()) };
        if !has_end_file {
            return Err(DriverError::Corrupt(format!("{END_FILE} is missing, which says where the log ends")));
        }
        let len = self.disk.open(name).and_then(|file| file.len()).map_err(failed)?;
        if len != size {
            let place = format!("{name} at byte {}", len.min(size));
            return Err(DriverError::Corrupt(format!("{place}: the file has {len} bytes, and was made with {size}")));
        }
        Ok(())
    }

    /// Refuses if reading stopped before a position up to which the log was durable, or before the segment that was the last
    /// when it was closed.
    fn check_end(&self, stop: &Stop, names: &[(Lsn, String)], said: Option<End>) -> Result<(), DriverError> {
        let known = said.map_or(Lsn(0), |end| end.durable).max(self.known);
        let name = &names[stop.segment].1;
        if stop.end < known {
            let (place, end) = (format!("{name} at byte {}", stop.offset), stop.end);
            let what = format!("the log ends there, at position {end}, and was durable up to {known}");
            return Err(DriverError::Corrupt(format!("{place}: {what}")));
        }
        match names.get(stop.segment + 1) {
            Some((_, next)) if said.is_some_and(|end| end.is_closed) => {
                Err(DriverError::Corrupt(format!("{next} at byte 0: the log was closed before it, at {known}")))
            }
            _ => Ok(()),
        }
    }

    /// Refuses if a frame behind the stop says that what is damaged had been durable. Answers what is there: `is_zero` of the
    /// segment with the stop. The stream is at the stop.
    fn check_cut(&self, stop: &Stop, names: &[(Lsn, String)], stream: &mut Stream) -> Result<Behind, DriverError> {
        let mut behind = Behind { newest: 0, is_zero: true };
        self.look_behind(stop, names, stream, (stop.offset, stop.offset + ALIGN), &mut behind)?;
        let is_zero = behind.is_zero;
        for _ in stop.segment + 1..names.len() {
            stream.next_segment().map_err(failed)?;
            self.look_behind(stop, names, stream, (SEGMENT_HEADER, SEGMENT_HEADER), &mut behind)?;
        }
        Ok(Behind { is_zero, ..behind })
    }

    /// Looks at the bytes of a segment from `from` on, and for frames from `first` on.
    fn look_behind(
        &self,
        stop: &Stop,
        names: &[(Lsn, String)],
        stream: &mut Stream,
        (from, first): (usize, usize),
        behind: &mut Behind,
    ) -> Result<(), DriverError> {
        let mut at = from;
        loop {
            let end = (at / ZEROS_AT_ONCE + 1) * ZEROS_AT_ONCE;
            let bytes = stream.bytes(at, end - at).map_err(failed)?;
            if bytes.is_empty() {
                return Ok(());
            }
            // Most of what was never written to is zeros, and no frame begins with one.
            if !is_zero(bytes) {
                behind.is_zero = false;
                for at in (at.max(first)..end).step_by(ALIGN) {
                    let Some((header, _)) = frame_at(stream, at)? else { continue };
                    behind.newest = behind.newest.max(header.generation);
                    if header.generation >= self.generation && header.durable > stop.end {
                        let name = &names[stop.segment].1;
                        return Err(DriverError::Corrupt(format!("{name} at byte {}", stop.offset)));
                    }
                }
            }
            at = end;
        }
    }

    /// Makes what was read back durable: writes the frames of a segment of which it is not known once more, and syncs.
    fn settle(&self, read: &ReadBack) -> Result<(), DriverError> {
        let file = self.disk.open(&read.name).map_err(failed)?;
        let mut bytes = vec![0; ZEROS];
        let mut at = read.unsure.unwrap_or(read.offset);
        while at < read.offset {
            let len = bytes.len().min(read.offset - at);
            let found = file.read_at(&mut bytes[..len], at as u64).map_err(failed)?;
            if found == 0 {
                break;
            }
            file.write_at(&bytes[..found], at as u64).map_err(failed)?;
            at += found;
        }
        file.sync().map_err(DriverError::Failed)
    }

    /// Puts the spare in reach at once if the segment in use is nearly full: some who need space cannot wait. Otherwise the thread
    /// that prepares segments looks at it, which takes as long as reading it.
    fn take_spare(&self) {
        let is_needed_soon = self.space.left.load(Ordering::Acquire) < self.options.segment_bytes / 4;
        // What is wrong with it shows when one is made.
        if is_needed_soon && finds_spare(&*self.disk, self.options.segment_bytes).unwrap_or(false) {
            self.space.spare.store(true, Ordering::Release);
        }
    }

    fn set_left(&self) {
        let left = self.segments.last().map_or(0, |s| {
            // What a batch may not fit into any more counts as nothing.
            let waste = frame::frame_len(self.options.batch_bytes_max) as u64;
            (self.options.segment_bytes - s.end).saturating_sub(waste)
        });
        self.space.left.store(left, Ordering::Release);
    }

    /// What is said of an end that is not closed.
    fn end_at(&self, newest: Option<Lsn>, durable: Lsn) -> End {
        End { newest, durable, is_closed: false, generation: self.generation, database: self.database }
    }

    /// Puts the spare segment to use for records from `start` on. What comes into it is acknowledged only once `log.end` names it.
    fn rotate(&mut self, start: Lsn, durable: Lsn) -> Result<(), DriverError> {
        self.space.make(&*self.disk, self.options.segment_bytes)?;
        let name = name_of(start);
        let file = self.disk.open_to_append(SPARE).map_err(failed)?;
        let size = Some(self.options.segment_bytes);
        let (version, generation, database) = (frame::VERSION, self.generation, self.database);
        let header = SegmentHeader { version, start, generation, size, database };
        file.write_at(&header.encode(), 0).map_err(failed)?;
        file.sync().map_err(failed)?;
        self.disk.rename(SPARE, &name).map_err(failed)?;
        self.disk.sync_directory().map_err(failed)?;
        let end = self.end_at(Some(start), durable);
        self.end_file.as_mut().map_or(Ok(()), |file| file.write(end))?;
        self.segments.push(Segment { file, start, end: SEGMENT_HEADER as u64, dirty: false });
        self.space.spare.store(false, Ordering::Release);
        self.set_left();
        Ok(())
    }
}

/// Whether all bytes are zero. Whole pieces are compared, which is many times as fast as byte by byte.
fn is_zero(bytes: &[u8]) -> bool {
    bytes.chunks(ZEROS_AT_ONCE).all(|piece| *piece == [0; ZEROS_AT_ONCE][..piece.len()])
}

/// What is missing of a log that has to go back to a position, and begins with another segment or none.
fn missing(from: Lsn, first: Option<&(Lsn, String)>) -> String {
    let begins = first.map_or("there is no segment".to_string(), |(_, name)| format!("the log begins with {name}"));
    match from {
        Lsn(0) => format!("{} is missing: {begins}", name_of(from)),
        from => format!("the segment before {} with position {from} is missing: {begins}", name_of(from)),
    }
}

/// Whether there is a spare that can be put to use: one of this size, with nothing but zeros. Another one is removed: sizes may have
/// been configured differently before, and a copy that was made while it was put to use has frames in it, which might follow on
/// new ones.
fn finds_spare(disk: &dyn Disk, bytes: u64) -> io::Result<bool> {
    let file = match disk.open(SPARE) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    // What cannot be read is not used either.
    let is_fresh = file.len()? == bytes && is_all_zero(&*file).unwrap_or(false);
    if !is_fresh {
        disk.remove(SPARE)?;
    }
    Ok(is_fresh)
}

/// Whether a file has nothing but zeros.
fn is_all_zero(file: &dyn DiskFile) -> io::Result<bool> {
    let mut bytes = vec![0; ZEROS];
    let mut at = 0;
    loop {
        let read = file.read_at(&mut bytes, at)?;
        if read == 0 || !is_zero(&bytes[..read]) {
            return Ok(read == 0);
        }
        at += read as u64;
    }
}

/// Makes a segment of zeros named `spare`.
fn prepare(disk: &dyn Disk, bytes: u64) -> Result<(), DriverError> {
    let make = || -> io::Result<()> {
        if disk.list()?.iter().any(|n| n == SPARE_NEW) {
            disk.remove(SPARE_NEW)?;
        }
        disk.create(SPARE_NEW)?.allocate(0, bytes)?;
        let file = disk.open_to_append(SPARE_NEW)?;
        let mut zeros = Aligned::default();
        zeros.grow(ZEROS.min(bytes as usize));
        let mut at = 0;
        while at < bytes {
            let n = zeros.len().min((bytes - at) as usize);
            file.write_at(&zeros[..n], at)?;
            at += n as u64;
        }
        file.sync()?;
        disk.rename(SPARE_NEW, SPARE)?;
        disk.sync_directory()
    };
    make().map_err(|error| {
        // Half a segment is of no use and takes the space that is short.
        let _ = disk.remove(SPARE_NEW);
        failed(error)
    })
}

impl ReplicatedLog for FileLog {
    fn limits(&self) -> Limits {
        Limits { window: 8, batch_bytes_max: self.options.batch_bytes_max }
    }

    fn overhead(&self) -> u64 {
        (FRAME_HEADER + ALIGN) as u64
    }

    fn room(&self) -> Arc<dyn Fn() -> u64 + Send + Sync> {
        let space = Arc::clone(&self.space);
        Arc::new(move || space.room())
    }

    fn preparer(&self) -> Option<Box<dyn FnMut() -> Result<bool, DriverError> + Send>> {
        let (disk, space, bytes) = (Arc::clone(&self.disk), Arc::clone(&self.space), self.options.segment_bytes);
        Some(Box::new(move || {
            if space.spare.load(Ordering::Acquire) {
                return Ok(false);
            }
            space.make(&*disk, bytes)?;
            Ok(true)
        }))
    }

    fn read(&mut self, from: Lsn, visit: &mut dyn FnMut(Batch<'_>) -> Result<(), String>) -> Result<Mark, DriverError> {
        let Scan { consumed, behind, end, durable, newest, cut, was_closed, ending, end_file } =
            self.scan(from, visit)?;
        let mark = Mark { end, cut, was_closed, ending };
        self.generation = newest + 1;
        for read in consumed.iter().filter(|read| read.end > durable) {
            self.settle(read)?;
        }
        // Before a segment goes, it must not be said to be the newest any more.
        let now = self.end_at(consumed.last().map(|read| read.start), end);
        self.end_file = Some(match end_file {
            Some(mut file) => file.write(now).map(|()| file)?,
            None => EndFile::create(&*self.disk, now)?,
        });
        self.submitted = end;
        for name in &behind {
            self.disk.remove(name).map_err(failed)?;
        }
        self.disk.sync_directory().map_err(DriverError::Failed)?;
        if let Some(last) = consumed.last() {
            let file = self.disk.open_to_append(&last.name).map_err(failed)?;
            // It may have been made with another size, and be full beyond the one of now.
            let has_room = file.len().map_err(failed)? >= self.options.segment_bytes
                && last.offset as u64 <= self.options.segment_bytes;
            if has_room && last.version == frame::VERSION {
                self.segments.push(Segment { file, start: last.start, end: last.offset as u64, dirty: false });
                self.set_left();
                self.take_spare();
                return Ok(mark);
            }
        }
        self.rotate(end, end)?;
        Ok(mark)
    }

    fn submit(&mut self, epoch: WriterEpoch, durable: Lsn, batch: Batch<'_>) -> Result<(), DriverError> {
        if epoch < self.epoch {
            return Err(DriverError::Fenced(self.epoch));
        }
        if batch.bytes.len() > self.options.batch_bytes_max {
            return Err(DriverError::TooLarge(batch.bytes.len()));
        }
        let len = frame::frame_len(batch.bytes.len()) as u64;
        let fits = self.segments.last().is_some_and(|s| s.end + len <= self.options.segment_bytes);
        if !fits {
            self.rotate(batch.start, durable)?;
        }
        self.buffer.clear();
        let header = FrameHeader {
            len: batch.bytes.len() as u32,
            start: batch.start,
            generation: self.generation,
            epoch,
            durable,
        };
        frame::encode(&header, batch.bytes, &mut self.buffer);
        let segment = self.segments.last_mut().expect("rotated above if there was none");
        segment.file.write_at(&self.buffer, segment.end).map_err(failed)?;
        segment.end += len;
        segment.dirty = true;
        self.submitted = Lsn(batch.start.0 + batch.bytes.len() as u64);
        self.set_left();
        Ok(())
    }

    fn complete(&mut self) -> Result<bool, DriverError> {
        // In order: a later segment must not be durable before an earlier one.
        for segment in self.segments.iter_mut().filter(|s| s.dirty) {
            if !segment.file.poll_sync().map_err(DriverError::Failed)? {
                return Ok(false);
            }
            segment.dirty = false;
        }
        let keep = self.segments.len().saturating_sub(1);
        self.segments.drain(..keep);
        if let Some(file) = &mut self.end_file {
            file.note(self.submitted);
        }
        Ok(true)
    }

    fn close(&mut self) -> Result<(), DriverError> {
        base::invariant!(self.segments.iter().all(|segment| !segment.dirty), "a log is closed when all is durable");
        let newest = self.segments.last().map(|segment| segment.start);
        let end = End { is_closed: true, ..self.end_at(newest, self.submitted) };
        self.end_file.as_mut().map_or(Ok(()), |file| file.write(end))
    }

    fn trim(&mut self, upto: Lsn) -> Result<(), DriverError> {
        let names = self.list()?;
        let mut removed = false;
        for pair in names.windows(2) {
            // A segment goes when the one after it begins at or before the position.
            let in_use = self.segments.iter().any(|s| s.start == pair[0].0);
            if pair[1].0 <= upto && !in_use {
                self.disk.remove(&pair[0].1).map_err(failed)?;
                removed = true;
            }
        }
        if removed { self.disk.sync_directory().map_err(failed) } else { Ok(()) }
    }

    fn fence(&mut self, epoch: WriterEpoch) -> Result<(), DriverError> {
        self.epoch = self.epoch.max(epoch);
        Ok(())
    }
}
