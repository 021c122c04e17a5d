//! The output queue of a connection: replies in order, each with the log position that must be durable before it leaves.
//!
//! A session raises the gate whenever a visibility decision depends on a commit that may not be durable (rule R1). The
//! gate only grows, and bytes leave in order, so the queue is a run of segments with ascending gates:
//!
//! ```text
//!   buf:  |....sent....|...gate 0...|...gate 120...|...gate 250...|
//!                  head|  released  | 120 > durable: all of this waits
//! ```
//!
//! Shared between the connection loop, which writes, and the session, which fills; both run on one task, so a `RefCell`
//! is enough. The borrow never lasts across a suspension.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::task::Poll;

use base::{Error, Lsn, Notice, Oid, Result, SqlState, work};
use types::encoding::Conversion;
use types::room::Room as _;
use types::{DatumRef, OutputSettings};

use crate::proto::{Column, Format, backend};

/// Queued bytes above which a producer of rows should [`flush`](Out::flush).
const FLUSH_ABOVE: usize = 64 << 10;
/// Bytes that are moved at most to make room in front of them.
const MOVED_MAX: usize = 1 << 20;
/// Queued bytes at which a flush is over: less than a full socket buffer, so that the socket never runs dry.
const FLUSHED_BELOW: usize = 32 << 10;
/// Capacity an idle connection keeps.
const IDLE_CAPACITY: usize = 8 << 10;
/// Bytes of COPY data handed over at once.
pub(crate) const COPY_CHUNK: usize = 64 << 10;

/// Where a session puts its replies. All methods take `&self`; inside a row closure only [`Out::raise_gate`] may be called.
#[derive(Default)]
pub struct Out {
    /// The session's gate. The queue takes it over at the end of each message.
    gate: Cell<Lsn>,
    queue: RefCell<Queue>,
    /// While somebody waits in [`Out::flush`]: the queue length he waits for.
    flushing: Cell<Option<usize>>,
    copy: RefCell<CopyQueue>,
    /// How texts become the client's; `None` for UTF-8.
    conversion: Cell<Option<&'static Conversion>>,
}

/// What [`Out::next_copy`] brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyIn {
    /// Data was put into the buffer; lines may be cut anywhere.
    Data,
    /// The client is done.
    Done,
}

/// COPY data on its way from the connection loop to the session.
#[derive(Default)]
struct CopyQueue {
    /// The session waits for data.
    wanted: bool,
    /// While it waits, its buffer; else empty, unless data has come that nobody waited for any more.
    data: Vec<u8>,
    /// Bytes at the end of `data` that the session has not had.
    new: usize,
    end: Option<Result<()>>,
}

#[derive(Default)]
struct Queue {
    buf: Vec<u8>,
    /// Bytes of `buf` that have been written to the socket.
    head: usize,
    /// Bytes of `buf` whose gate is open; at least `head`.
    released: usize,
    /// Closed segments past `released`: (end in `buf`, gate), both ascending.
    segments: VecDeque<(usize, Lsn)>,
    /// Gate of the bytes after the last closed segment.
    gate: Lsn,
    /// Where the replies since the last ReadyForQuery begin.
    series: usize,
}

impl Queue {
    fn unsent(&self) -> usize {
        self.buf.len() - self.head
    }

    /// Puts the message that starts at `start` under `gate`.
    fn seal(&mut self, start: usize, gate: Lsn) {
        if gate <= self.gate {
            return;
        }
        if start > self.segments.back().map_or(self.released, |s| s.0) {
            self.segments.push_back((start, self.gate));
        }
        self.gate = gate;
    }

    /// Puts what is queued since the last ReadyForQuery, and has not been released, under `gate` too.
    fn hold(&mut self, gate: Lsn) {
        if gate <= self.gate {
            return;
        }
        let start = self.series.max(self.released);
        let kept = self.segments.partition_point(|s| s.0 < start);
        if let Some(&(_, before)) = self.segments.get(kept) {
            self.gate = before;
            self.segments.truncate(kept);
        }
        self.seal(start, gate);
    }

    /// Opens every gate up to `durable`; the gate that still holds bytes back, if one does.
    fn release(&mut self, durable: Lsn) -> Option<Lsn> {
        while let Some(&(end, gate)) = self.segments.front() {
            if gate > durable {
                return Some(gate);
            }
            self.released = end;
            self.segments.pop_front();
        }
        if self.released == self.buf.len() {
            return None;
        }
        if self.gate > durable {
            return Some(self.gate);
        }
        self.released = self.buf.len();
        None
    }

    fn advance(&mut self, n: usize) {
        self.head += n;
        if self.head == self.buf.len() {
            self.buf.clear();
            (self.head, self.released, self.series) = (0, 0, 0);
        } else if self.head > FLUSH_ABOVE && self.head * 2 > self.buf.len() && self.buf.len() - self.head <= MOVED_MAX {
            // Half of a long queue is gone: move the rest to the front, unless that takes long. Each byte moves at most once per
            // halving.
            self.buf.drain(..self.head);
            self.released -= self.head;
            self.series = self.series.saturating_sub(self.head);
            self.segments.iter_mut().for_each(|s| s.0 -= self.head);
            self.head = 0;
        }
    }
}

impl Out {
    /// An empty queue.
    pub fn new() -> Out {
        Out::default()
    }

    // --- The gate -------------------------------------------------------------------------------------------------

    /// Nothing queued from now on leaves before `lsn` is durable. A lower gate than the present one changes nothing.
    pub fn raise_gate(&self, lsn: Lsn) {
        if lsn > self.gate.get() {
            self.gate.set(lsn);
        }
    }

    /// Like [`Out::raise_gate`]; the replies since the last ReadyForQuery that have not been released wait, too. So the
    /// answers of a statement that commits by itself are not ahead of its commit, and leave in one write.
    pub fn hold(&self, lsn: Lsn) {
        if lsn > self.gate.get() {
            self.gate.set(lsn);
            self.queue.borrow_mut().hold(lsn);
        }
    }

    /// The session's gate.
    pub fn gate(&self) -> Lsn {
        self.gate.get()
    }

    // --- The client's encoding ------------------------------------------------------------------------------------

    /// How texts of the client are converted; `None` for UTF-8. Rows and COPY data are the session's to convert.
    pub fn conversion(&self) -> Option<&'static Conversion> {
        self.conversion.get()
    }

    /// From now on the client speaks another encoding.
    pub fn set_conversion(&self, conversion: Option<&'static Conversion>) {
        self.conversion.set(conversion);
    }

    // --- Rows and results -----------------------------------------------------------------------------------------

    /// Queues a DataRow of `columns` fields, which `fill` must write, all of them. On an error nothing is queued.
    #[inline]
    pub fn data_row<E: From<Error>>(
        &self,
        columns: usize,
        fill: impl FnOnce(&mut Row<'_>) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let mut failure = None;
        let queued = self.message(b'D', |buf| {
            buf.extend_from_slice(&(columns as u16).to_be_bytes());
            let mut row = Row { buf, fields: 0 };
            let filled = fill(&mut row);
            debug_assert!(filled.is_err() || row.fields == columns, "a row has as many fields as announced");
            filled.map_err(|e| {
                failure = Some(e);
                Error::internal("row not written")
            })
        });
        match failure {
            Some(e) => Err(e),
            None => queued.map_err(E::from),
        }
    }

    /// RowDescription.
    pub fn row_description<'a>(&self, columns: impl ExactSizeIterator<Item = Column<'a>>) -> Result<()> {
        match self.conversion.get() {
            None => self.append(|buf| backend::row_description(buf, columns)),
            Some(conversion) => {
                let columns: Vec<Column<'_>> = columns.collect();
                let names: Result<Vec<Vec<u8>>> = columns.iter().map(|c| conversion.encoded(c.name)).collect();
                let names = names?;
                let columns = columns.into_iter().zip(&names);
                self.append(|buf| backend::row_description_named(buf, columns.map(|(c, name)| (name.as_slice(), c))))
            }
        }
    }

    /// ParameterDescription.
    pub fn parameter_description(&self, types: impl ExactSizeIterator<Item = Oid>) {
        self.append(|buf| backend::parameter_description(buf, types));
    }

    /// NoData: the statement returns no rows.
    pub fn no_data(&self) {
        self.append(|buf| backend::empty(buf, b'n'));
    }

    /// CommandComplete with a finished tag (`BEGIN`, `CREATE TABLE`).
    pub fn command_complete(&self, tag: &str) {
        self.append(|buf| backend::command_complete(buf, tag));
    }

    /// CommandComplete of a verb and a count (`SELECT 3`; for INSERT the verb is `INSERT 0`).
    pub fn command_complete_rows(&self, verb: &str, rows: u64) {
        self.append(|buf| backend::command_complete_rows(buf, verb, rows));
    }

    /// EmptyQueryResponse.
    pub fn empty_query(&self) {
        self.append(|buf| backend::empty(buf, b'I'));
    }

    /// PortalSuspended: the row limit of Execute was reached.
    pub fn portal_suspended(&self) {
        self.append(|buf| backend::empty(buf, b's'));
    }

    // --- Beside results -------------------------------------------------------------------------------------------

    /// NoticeResponse.
    pub fn notice(&self, notice: &Notice) {
        self.append(|buf| {
            let start = buf.len();
            backend::report(buf, b'N', notice);
            self.convert(buf, start, 0);
        });
    }

    /// ErrorResponse. The connection loop calls this for every error a session returns, or the session for one that is long.
    pub fn error(&self, error: &Error) {
        let refused = self.conversion.get().and_then(|conversion| backend::check_report(error, conversion).err());
        self.append(|buf| {
            let start = buf.len();
            backend::report(buf, b'E', refused.as_ref().unwrap_or(error));
            self.convert(buf, start, 0);
        });
    }

    /// ParameterStatus: a setting that clients follow has this value now.
    pub fn parameter_status(&self, name: &str, value: &str) {
        self.append(|buf| {
            let start = buf.len();
            backend::parameter_status(buf, name, value);
            self.convert(buf, start, 0);
        });
    }

    /// NotificationResponse.
    pub fn notification(&self, pid: i32, channel: &str, payload: &str) {
        self.append(|buf| {
            let start = buf.len();
            backend::notification(buf, pid, channel, payload);
            self.convert(buf, start, 4);
        });
    }

    /// Converts the texts of the message at `start`, `skipped` bytes into its body, to the end; what the client's encoding
    /// lacks becomes a question mark.
    fn convert(&self, buf: &mut Vec<u8>, start: usize, skipped: usize) {
        let Some(conversion) = self.conversion.get() else { return };
        let texts = buf.split_off(start + 5 + skipped);
        // Only texts of the server's own are here, with the zero bytes between them.
        conversion.encode_lossy(&String::from_utf8_lossy(&texts), buf);
        let length = (buf.len() - start - 1) as u32;
        buf[start + 1..start + 5].copy_from_slice(&length.to_be_bytes());
    }

    /// A message of any type, for what has no method here.
    #[inline]
    pub fn message<T>(&self, tag: u8, fill: impl FnOnce(&mut Vec<u8>) -> Result<T>) -> Result<T> {
        self.append(|buf| backend::message(buf, tag, fill))
    }

    /// Queues what `fill` appends as one unit under the gate in force when it is complete. A session that is suspended in the
    /// middle of it keeps the queue: until it has gone on, the connection finds nothing to send.
    #[inline]
    pub(crate) fn append<T>(&self, fill: impl FnOnce(&mut Vec<u8>) -> T) -> T {
        let queue = &mut *self.queue.borrow_mut();
        let start = queue.buf.len();
        let mut unit = Unit { buf: &mut queue.buf, start, whole: false };
        let result = fill(unit.buf);
        unit.whole = true;
        drop(unit);
        queue.seal(start, self.gate.get());
        result
    }

    // --- COPY -----------------------------------------------------------------------------------------------------

    /// CopyInResponse. Read the data with [`Out::next_copy`] to its end, or return an error.
    pub fn copy_in_response(&self, format: Format, columns: usize) {
        self.append(|buf| backend::copy_response(buf, b'G', format, columns));
        *self.copy.borrow_mut() = CopyQueue::default();
    }

    /// Waits for COPY data and appends it to `chunk`.
    ///
    /// Errors if the client gives up (`57014`), goes away, or sends something else (`08P01`).
    pub async fn next_copy(&self, chunk: &mut Vec<u8>) -> Result<CopyIn> {
        // Data goes straight to where the session wants it.
        {
            let copy = &mut *self.copy.borrow_mut();
            chunk.append(&mut copy.data);
            std::mem::swap(chunk, &mut copy.data);
        }
        poll_fn(|_| {
            let copy = &mut *self.copy.borrow_mut();
            copy.wanted = copy.new == 0 && copy.end.is_none();
            if copy.wanted {
                return Poll::Pending;
            }
            std::mem::swap(chunk, &mut copy.data);
            if std::mem::take(&mut copy.new) > 0 {
                return Poll::Ready(Ok(CopyIn::Data));
            }
            Poll::Ready(copy.end.take().unwrap_or(Ok(())).map(|()| CopyIn::Done))
        })
        .await
    }

    /// CopyOutResponse.
    pub fn copy_out_response(&self, format: Format, columns: usize) {
        self.append(|buf| backend::copy_response(buf, b'H', format, columns));
    }

    /// CopyData: `fill` appends one row (text) or any piece of the stream (binary).
    pub fn copy_data(&self, fill: impl FnOnce(&mut Vec<u8>) -> Result<()>) -> Result<()> {
        self.message(b'd', fill)
    }

    /// CopyDone.
    pub fn copy_done(&self) {
        self.append(|buf| backend::empty(buf, b'c'));
    }

    // --- Back-pressure --------------------------------------------------------------------------------------------

    /// Whether enough is queued that a producer of rows should [`flush`](Out::flush) before it goes on.
    #[inline]
    pub fn wants_flush(&self) -> bool {
        self.unsent() >= FLUSH_ABOVE
    }

    /// Waits until most of the queue has been written, which the gate may delay.
    pub async fn flush(&self) {
        self.drain_below(FLUSHED_BELOW).await;
    }

    /// Waits until less than `limit` bytes are queued.
    pub(crate) async fn drain_below(&self, limit: usize) {
        poll_fn(|_| {
            let done = self.unsent() < limit;
            self.flushing.set((!done).then_some(limit));
            if done { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }

    /// Bytes queued and not written; 0 while a message is being queued.
    pub fn unsent(&self) -> usize {
        self.queue.try_borrow().map_or(0, |queue| queue.unsent())
    }

    // --- For the connection loop ----------------------------------------------------------------------------------

    /// A ReadyForQuery has been queued: what follows belongs to other statements.
    pub(crate) fn end_series(&self) {
        let queue = &mut *self.queue.borrow_mut();
        queue.series = queue.buf.len();
    }

    /// Whether a flush waits that could now go on. Says so once: the waiter may have been dropped.
    pub(crate) fn flush_can_end(&self) -> bool {
        let can_end = self.flushing.get().is_some_and(|limit| self.unsent() < limit);
        if can_end {
            self.flushing.set(None);
        }
        can_end
    }

    /// Opens gates up to `durable`; the one that still holds bytes back.
    pub(crate) fn release(&self, durable: Lsn) -> Option<Lsn> {
        self.queue.borrow_mut().release(durable)
    }

    /// Hands the bytes that may leave to `write`, which says how many it took; `None` if there are none.
    pub(crate) fn write_with<T>(&self, write: impl FnOnce(&[u8]) -> (T, usize)) -> Option<T> {
        let queue = &mut *self.queue.borrow_mut();
        if queue.head == queue.released {
            return None;
        }
        let (result, n) = write(&queue.buf[queue.head..queue.released]);
        queue.advance(n);
        Some(result)
    }

    /// Gives memory back while nothing happens.
    pub(crate) fn shrink(&self) {
        let queue = &mut *self.queue.borrow_mut();
        if queue.buf.is_empty() && queue.buf.capacity() > IDLE_CAPACITY * 4 {
            queue.buf.shrink_to(IDLE_CAPACITY);
        }
        if queue.segments.is_empty() && queue.segments.capacity() > 64 {
            queue.segments.shrink_to(16);
        }
        let copy = &mut *self.copy.borrow_mut();
        if copy.data.is_empty() && copy.data.capacity() > 0 {
            copy.data = Vec::new();
        }
    }

    /// Bytes of its buffers.
    pub(crate) fn capacity(&self) -> usize {
        self.queue.borrow().buf.capacity() + self.copy.borrow().data.capacity()
    }

    /// Whether [`shrink`](Out::shrink) would give memory back once all is sent.
    pub(crate) fn is_large(&self) -> bool {
        self.queue.borrow().buf.capacity() > IDLE_CAPACITY * 4 || self.copy.borrow().data.capacity() > 0
    }

    /// Whether the session waits for COPY data.
    pub(crate) fn copy_wanted(&self) -> bool {
        self.copy.borrow().wanted
    }

    /// Adds COPY data; whether there is room for more.
    pub(crate) fn copy_push(&self, data: &[u8]) -> bool {
        let copy = &mut *self.copy.borrow_mut();
        copy.data.extend_from_slice(data);
        copy.new += data.len();
        copy.new < COPY_CHUNK
    }

    /// Adds COPY data that `read` puts behind what is there: at most as many bytes as it is told, which are not more than `most`.
    pub(crate) fn copy_fill(
        &self,
        most: usize,
        read: impl FnOnce(&mut Vec<u8>, usize) -> Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        let copy = &mut *self.copy.borrow_mut();
        let most = most.min(COPY_CHUNK);
        copy.data.reserve(most);
        let result = read(&mut copy.data, most);
        copy.new += if let Poll::Ready(Ok(n)) = result { n } else { 0 };
        result
    }

    /// Ends the COPY data.
    pub(crate) fn copy_end(&self, end: Result<()>) {
        self.copy.borrow_mut().end = Some(end);
    }

    /// Whether data or an end waits for the session. It is told once: it may have stopped waiting.
    pub(crate) fn copy_ready(&self) -> bool {
        let copy = &mut *self.copy.borrow_mut();
        let ready = copy.new > 0 || copy.end.is_some();
        copy.wanted &= !ready;
        ready
    }

    /// A statement has ended: whatever it waited for, it does no longer.
    pub(crate) fn forget_waits(&self) {
        self.flushing.set(None);
        self.copy.borrow_mut().wanted = false;
    }
}

/// What is being queued. A panic amid it takes it back: the FATAL error that follows must not land inside of a message.
struct Unit<'a> {
    buf: &'a mut Vec<u8>,
    start: usize,
    whole: bool,
}

impl Drop for Unit<'_> {
    #[inline]
    fn drop(&mut self) {
        if !self.whole {
            self.buf.truncate(self.start);
        }
    }
}

/// Writes the fields of one DataRow straight into the output queue.
pub struct Row<'a> {
    buf: &'a mut Vec<u8>,
    fields: usize,
}

impl Row<'_> {
    /// A value of type `type_oid` in `format`.
    #[inline]
    pub fn field(
        &mut self,
        value: DatumRef<'_>,
        type_oid: Oid,
        format: Format,
        settings: &OutputSettings,
    ) -> Result<()> {
        match (value, format) {
            (DatumRef::Null, _) => {
                self.null();
                Ok(())
            }
            // A text is its own text form.
            (DatumRef::Text(text), Format::Text) => {
                self.buf.make_room(text.len() + 4)?;
                self.bytes(text.as_bytes());
                Ok(())
            }
            (_, Format::Text) => self.with(|buf| types::io::write_text(value, type_oid, settings, buf)),
            (_, Format::Binary) => self.with(|buf| types::io::write_binary(value, type_oid, buf)),
        }
    }

    /// NULL.
    #[inline]
    pub fn null(&mut self) {
        self.fields += 1;
        self.buf.extend_from_slice(&(-1i32).to_be_bytes());
    }

    /// A value that is already in its wire form.
    #[inline]
    pub fn bytes(&mut self, value: &[u8]) {
        self.fields += 1;
        self.buf.extend_from_slice(&(value.len() as u32).to_be_bytes());
        work::append(self.buf, value);
    }

    /// A value that `fill` appends.
    #[inline]
    pub fn with<T: FieldResult>(&mut self, fill: impl FnOnce(&mut Vec<u8>) -> T) -> Result<()> {
        self.fields += 1;
        let start = self.buf.len();
        self.buf.extend_from_slice(&[0; 4]);
        fill(self.buf).result()?;
        let length = i32::try_from(self.buf.len() - start - 4)
            .map_err(|_| Error::new(SqlState::PROGRAM_LIMIT_EXCEEDED, "out of memory"))?;
        self.buf[start..start + 4].copy_from_slice(&length.to_be_bytes());
        Ok(())
    }
}

/// What a field writer may return: nothing, or whether it worked.
pub trait FieldResult {
    /// As a result.
    fn result(self) -> Result<()>;
}

impl FieldResult for () {
    #[inline]
    fn result(self) -> Result<()> {
        Ok(())
    }
}

impl FieldResult for Result<()> {
    #[inline]
    fn result(self) -> Result<()> {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes all that may leave, at most `most` bytes at a time.
    fn take(out: &Out, durable: u64, most: usize) -> (Vec<u8>, Option<Lsn>) {
        let mut sent = Vec::new();
        let waits = out.release(Lsn(durable));
        while let Some(()) = out.write_with(|bytes| {
            let n = bytes.len().min(most);
            sent.extend_from_slice(&bytes[..n]);
            ((), n)
        }) {}
        (sent, waits)
    }

    fn put(out: &Out, byte: u8) {
        out.append(|buf| buf.push(byte));
    }

    #[test]
    fn half_a_message_is_not_sent() {
        let out = Out::new();
        put(&out, b'x');
        assert_eq!(out.unsent(), 1);
        out.append(|buf| {
            buf.push(b'y');
            assert!(out.unsent() == 0 && !out.flush_can_end());
            buf.push(b'z');
        });
        assert_eq!(take(&out, 0, 100).0, b"xyz");
    }

    #[test]
    fn a_panic_amid_a_row_leaves_nothing_of_it() {
        let out = Out::new();
        let row = || {
            out.data_row(2, |row| -> Result<()> {
                row.bytes(b"half");
                panic!("on purpose")
            })
        };
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(row)).is_err());
        out.command_complete("X");
        assert_eq!(take(&out, 0, 100).0, b"C\0\0\0\x06X\0");
    }

    #[test]
    fn bytes_leave_in_order_when_their_gate_opens() {
        let out = Out::new();
        put(&out, b'a');
        out.raise_gate(Lsn(10));
        put(&out, b'b');
        put(&out, b'c');
        out.raise_gate(Lsn(5));
        put(&out, b'd');
        out.raise_gate(Lsn(20));
        put(&out, b'e');
        assert_eq!(take(&out, 0, 1), (b"a".to_vec(), Some(Lsn(10))));
        assert_eq!(take(&out, 9, 1), (b"".to_vec(), Some(Lsn(10))));
        assert_eq!(take(&out, 10, 1), (b"bcd".to_vec(), Some(Lsn(20))));
        put(&out, b'f');
        assert_eq!(take(&out, 25, 9), (b"ef".to_vec(), None));
        assert_eq!(out.unsent(), 0);
        put(&out, b'g');
        assert_eq!(take(&out, 25, 9), (b"g".to_vec(), None));
    }

    #[test]
    fn a_commit_holds_back_the_replies_of_its_own_statements() {
        let out = Out::new();
        put(&out, b'a');
        out.raise_gate(Lsn(10));
        put(&out, b'b');
        put(&out, b'Z');
        out.end_series();
        put(&out, b'c');
        out.raise_gate(Lsn(12));
        put(&out, b'd');
        out.hold(Lsn(20));
        put(&out, b'e');
        out.hold(Lsn(15));
        assert_eq!(take(&out, 0, 9), (b"a".to_vec(), Some(Lsn(10))));
        assert_eq!(take(&out, 19, 9), (b"bZ".to_vec(), Some(Lsn(20))));
        out.end_series();
        put(&out, b'f');
        out.hold(Lsn(30));
        put(&out, b'g');
        assert_eq!(take(&out, 29, 9), (b"cde".to_vec(), Some(Lsn(30))));
        assert_eq!(take(&out, 30, 9), (b"fg".to_vec(), None));
    }

    #[test]
    fn a_message_finished_under_a_higher_gate_waits_whole() {
        let out = Out::new();
        out.append(|buf| {
            buf.push(b'x');
            out.raise_gate(Lsn(3));
            buf.push(b'y');
        });
        assert_eq!(take(&out, 2, 9), (b"".to_vec(), Some(Lsn(3))));
        assert_eq!(take(&out, 3, 9), (b"xy".to_vec(), None));
    }

    #[test]
    fn random_interleavings_never_let_a_byte_out_early() {
        let mut seed = 0x9e37_79b9_7f4a_7c15u64;
        let mut random = move |n: u64| {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            seed % n
        };
        for _ in 0..200 {
            let (out, mut durable, mut gate) = (Out::new(), 0, 0);
            let (mut expected, mut sent) = (Vec::new(), 0usize);
            for i in 0..400u32 {
                match random(4) {
                    0 => {
                        gate = gate.max(random(1000));
                        out.raise_gate(Lsn(gate));
                    }
                    1 | 2 => {
                        let size = random(5000) as usize;
                        out.append(|buf| buf.resize(buf.len() + size, i as u8));
                        expected.resize(expected.len() + size, (i as u8, gate));
                    }
                    _ => {
                        durable = durable.max(random(1000));
                        let (bytes, _) = take(&out, durable, 1 + random(9000) as usize);
                        for (byte, want) in bytes.iter().zip(&expected[sent..]) {
                            assert!(*byte == want.0 && want.1 <= durable);
                        }
                        sent += bytes.len();
                        assert!(expected.get(sent).is_none_or(|next| next.1 > durable), "an open gate held bytes");
                    }
                }
            }
        }
    }

    #[test]
    fn rows_are_written_in_place_and_a_failed_one_is_taken_back() {
        let out = Out::new();
        out.data_row(2, |row| -> Result<()> {
            row.null();
            row.bytes(b"hi");
            Ok(())
        })
        .unwrap();
        let failed = out.data_row(1, |row| row.with(|_| Err(Error::unsupported("no"))));
        assert_eq!(failed.unwrap_err().code(), SqlState::FEATURE_NOT_SUPPORTED);
        assert_eq!(take(&out, 0, 99).0, b"D\0\0\0\x10\0\x02\xff\xff\xff\xff\0\0\0\x02hi");
    }
}
