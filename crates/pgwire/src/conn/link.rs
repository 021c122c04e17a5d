//! A connection's socket and queue, and how a session's future is driven between them.
//!
//! Everything here runs on the connection's one task. [`Link::drive`] polls the session; whenever it is Pending, replies
//! whose gate is open are written, COPY data is fetched if it is waited for, and the socket is watched for its end.

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use base::{Error, Result, SqlState, work};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::time::{Instant, Sleep};

use super::Options;
use crate::buffers::Counted;
use crate::proto::{self, Body, fatal_violation};
use crate::registry::Control;
use crate::timers::sleep;
use crate::{DurableHorizon, Out};

/// Room made for each read, and capacity an idle connection keeps.
const READ_CHUNK: usize = 8 << 10;
/// Capacity above which an idle connection gives memory back.
const LARGE_CAPACITY: usize = 32 << 10;
/// Type and length of a message.
const FRAME_HEADER: usize = 5;
/// Bytes read while a statement runs, to notice the end of the connection.
const READ_AHEAD: usize = 64 << 10;
/// How long a connection is idle before large buffers are given back: a busy one would only get them anew.
const SHRINK_AFTER: Duration = Duration::from_secs(1);

/// Why a connection ends.
#[derive(Debug)]
pub(super) enum Ended {
    /// In order: what is queued is still delivered.
    Closed,
    /// With this error as the last message.
    Fatal(Error),
    /// The socket is gone.
    Lost,
}

/// The socket, shared by the reader and the writer; borrowed only within one poll.
pub(super) struct Io<S>(RefCell<S>);

impl<S: AsyncRead + AsyncWrite + Unpin> Io<S> {
    pub(super) fn new(stream: S) -> Io<S> {
        Io(RefCell::new(stream))
    }

    /// Reads once into the spare capacity of `buf`; 0 is the end.
    fn poll_read(&self, cx: &mut Context<'_>, buf: &mut Vec<u8>) -> Poll<io::Result<usize>> {
        pin!(self.0.borrow_mut().read_buf(buf)).poll(cx)
    }

    /// As [`poll_read`](Io::poll_read), but so many bytes at most.
    fn poll_read_some(&self, cx: &mut Context<'_>, buf: &mut Vec<u8>, most: usize) -> Poll<io::Result<usize>> {
        pin!((&mut *self.0.borrow_mut()).take(most as u64).read_buf(buf)).poll(cx)
    }

    fn poll_write(&self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.0.borrow_mut()).poll_write(cx, bytes)
    }

    pub(super) fn into_inner(self) -> S {
        self.0.into_inner()
    }

    pub(super) fn with<R>(&self, look: impl FnOnce(&S) -> R) -> R {
        look(&self.0.borrow())
    }

    pub(super) async fn shutdown(&self) {
        // The peer may be gone already; nothing is left to tell it.
        let _ = poll_fn(|cx| Pin::new(&mut *self.0.borrow_mut()).poll_shutdown(cx)).await;
    }
}

/// Writes what may leave, for ever; completes only when the socket fails. Polled by whoever has queued something.
pub(super) async fn write_loop<S, H>(io: &Io<S>, out: &Out, horizon: &H) -> io::Error
where
    S: AsyncRead + AsyncWrite + Unpin,
    H: DurableHorizon,
{
    loop {
        let waits = poll_fn(|cx| {
            let gate = if out.unsent() == 0 { None } else { out.release(horizon.current()) };
            let mut written = 0;
            loop {
                // A client that reads meanwhile makes room: one call may send many megabytes.
                let wrote = out.write_with(|bytes| match io.poll_write(cx, &bytes[..bytes.len().min(work::STRETCH)]) {
                    Poll::Ready(Ok(0)) => (Poll::Ready(Err(io::ErrorKind::WriteZero.into())), 0),
                    Poll::Ready(Ok(n)) => (Poll::Ready(Ok(n)), n),
                    Poll::Ready(Err(e)) => (Poll::Ready(Err(e)), 0),
                    Poll::Pending => (Poll::Pending, 0),
                });
                match wrote {
                    Some(result) => written += ready!(result)?,
                    None => break,
                }
                if written >= work::STRETCH {
                    // The others of the core have their turn.
                    let _ = pin!(tokio::task::yield_now()).poll(cx);
                    return Poll::Pending;
                }
            }
            match gate {
                Some(gate) => Poll::Ready(io::Result::Ok(gate)),
                // Nothing wakes this: the next one to queue bytes polls it.
                None => Poll::Pending,
            }
        });
        match waits.await {
            Ok(gate) => horizon.wait(gate).await,
            Err(e) => return e,
        }
    }
}

/// Input that arrives while a message is being executed, whose bytes are borrowed from the main buffer.
#[derive(Default)]
pub(super) struct Ahead {
    buf: Vec<u8>,
    pos: usize,
    /// Bytes of a CopyData message that are still to come: its beginning has been handed over.
    unfinished: usize,
    /// What followed the message in the main buffer has been moved here.
    took_rest: bool,
    eof: bool,
    /// Runs since the end was seen.
    grace: Option<Pin<Box<Sleep>>>,
}

impl Ahead {
    /// Makes room at the end for another read.
    fn reserve(&mut self) {
        if self.pos == self.buf.len() {
            // What was read to the brim has more behind it.
            let more = if self.pos == self.buf.capacity() { READ_AHEAD.min(self.pos * 2) } else { 0 };
            self.buf.clear();
            self.buf.reserve(more);
            self.pos = 0;
        } else if self.pos > READ_AHEAD {
            self.buf.drain(..self.pos);
            self.pos = 0;
        }
        if self.buf.len() == self.buf.capacity() {
            self.buf.reserve(READ_CHUNK);
        }
    }
}

/// The unread input of a connection.
#[derive(Default)]
pub(super) struct Input {
    pub(super) buf: Vec<u8>,
    pub(super) pos: usize,
    /// Bytes to come that belong to no message: the rest of one whose beginning a COPY had.
    skip: usize,
}

impl Input {
    pub(super) fn is_empty(&self) -> bool {
        self.pos == self.buf.len() && self.skip == 0
    }

    /// Steps over what belongs to no message; whether all of it was there.
    pub(super) fn skip(&mut self) -> bool {
        let there = self.skip.min(self.buf.len() - self.pos);
        self.pos += there;
        self.skip -= there;
        self.skip == 0
    }

    /// Steps over a message that has been executed, and takes in what came meanwhile.
    pub(super) fn consume(&mut self, total: usize, ahead: &mut Ahead) {
        self.pos += total;
        self.skip = std::mem::take(&mut ahead.unfinished);
        if std::mem::take(&mut ahead.took_rest) {
            self.pos = self.buf.len();
        }
        if ahead.pos == ahead.buf.len() {
            return;
        }
        if self.pos == self.buf.len() {
            std::mem::swap(&mut self.buf, &mut ahead.buf);
            self.pos = std::mem::take(&mut ahead.pos);
        } else {
            self.buf.extend_from_slice(&ahead.buf[ahead.pos..]);
        }
        ahead.buf.clear();
        ahead.pos = 0;
    }

    /// Makes room to read the rest of a message of `need` bytes. A long message gets its room as its bytes arrive: a
    /// length alone costs the server nothing.
    ///
    /// # Errors
    /// 53200 if there is no memory for it.
    pub(super) async fn reserve(&mut self, need: usize) -> Result<()> {
        if self.pos == self.buf.len() {
            self.buf.clear();
        } else {
            self.buf.drain(..self.pos);
        }
        self.pos = 0;
        let missing = need.saturating_sub(self.buf.len());
        let more = missing.min(self.buf.len().max(READ_CHUNK)).max(READ_CHUNK / 2);
        if self.buf.capacity() - self.buf.len() < more {
            // While it grows it is there twice.
            types::room::ask(2 * (self.buf.len() + more))?;
        }
        if self.buf.len() <= work::STRETCH {
            self.buf.reserve(more);
        } else if self.buf.capacity() - self.buf.len() < more {
            let mut longer = Vec::with_capacity(self.buf.len() + more);
            for part in self.buf.chunks(work::STRETCH) {
                longer.extend_from_slice(part);
                tokio::task::yield_now().await;
            }
            self.buf = longer;
        }
        Ok(())
    }

    /// Gives up the message of `need` bytes that begins here: what there is of it goes, the rest is stepped over as it comes.
    /// Answers its type.
    pub(super) fn refuse(&mut self, need: usize) -> u8 {
        let tag = self.buf.get(self.pos).copied().unwrap_or_default();
        self.skip = need.saturating_sub(self.buf.len() - self.pos);
        (self.buf, self.pos) = (Vec::with_capacity(READ_CHUNK), 0);
        tag
    }
}

/// What the parts of a connection share.
pub(super) struct Link<'a, S, W> {
    pub(super) io: &'a Io<S>,
    pub(super) out: &'a Out,
    pub(super) control: &'a Control,
    pub(super) writer: Pin<&'a mut W>,
    pub(super) options: &'a Options,
    pub(super) ahead: Ahead,
    pub(super) shrink: Option<Pin<Box<Sleep>>>,
    /// What the buffers are counted with.
    pub(super) counted: Counted,
}

/// The error of a connection that is ended from outside.
#[cold]
fn ended(control: &Control) -> Ended {
    if control.is_crowded_out() {
        return Ended::Fatal(super::too_many());
    }
    Ended::Fatal(Error::fatal(SqlState::ADMIN_SHUTDOWN, "terminating connection due to administrator command"))
}

impl<S, W> Link<'_, S, W>
where
    S: AsyncRead + AsyncWrite + Unpin,
    W: Future<Output = io::Error>,
{
    /// Writes what may leave and can be taken now.
    pub(super) async fn write(&mut self) -> Result<(), Ended> {
        poll_fn(|cx| Poll::Ready(self.poll_writer(cx))).await
    }

    /// Whether nothing waits to be sent or has been read ahead.
    pub(super) fn is_quiet(&self) -> bool {
        self.out.unsent() == 0 && self.ahead.pos == self.ahead.buf.len() && !self.ahead.eof
    }

    /// Whether the client is known to send nothing more.
    pub(super) fn has_ended(&self) -> bool {
        self.ahead.eof
    }

    fn poll_writer(&mut self, cx: &mut Context<'_>) -> Result<(), Ended> {
        if self.out.unsent() == 0 {
            return Ok(());
        }
        match self.writer.as_mut().poll(cx) {
            Poll::Ready(_) => Err(Ended::Lost),
            Poll::Pending => Ok(()),
        }
    }

    /// Writes what may leave, then waits for input into `buf`; `Ok(0)` is the end. Meanwhile `idle` runs; what it
    /// returns ends the connection.
    pub(super) async fn read(&mut self, buf: &mut Vec<u8>, idle: impl Future<Output = Error>) -> Result<usize, Ended> {
        let mut idle = pin!(idle);
        let mut shrinking = false;
        self.counted.holds(buf.capacity() + self.ahead.buf.capacity() + self.out.capacity());
        if self.ahead.eof {
            return Ok(0);
        }
        // What a socket has, and the memory it is read into, may be many megabytes: others have their turn in between.
        let is_long = buf.capacity() - buf.len() > work::STRETCH;
        let read = poll_fn(|cx| {
            if self.control.is_ended() {
                return Poll::Ready(Err(ended(self.control)));
            }
            self.poll_writer(cx)?;
            let read = match is_long {
                false => self.io.poll_read(cx, buf),
                true => self.io.poll_read_some(cx, buf, work::STRETCH),
            };
            if let Poll::Ready(read) = read {
                return Poll::Ready(read.map_err(|_| Ended::Lost));
            }
            if let Poll::Ready(error) = idle.as_mut().poll(cx) {
                return Poll::Ready(Err(Ended::Fatal(error)));
            }
            self.poll_writer(cx)?;
            self.give_memory_back(cx, buf, &mut shrinking);
            Poll::Pending
        })
        .await?;
        if read >= work::STRETCH {
            tokio::task::yield_now().await;
        }
        Ok(read)
    }

    fn give_memory_back(&mut self, cx: &mut Context<'_>, buf: &mut Vec<u8>, armed: &mut bool) {
        if !*armed {
            if buf.capacity() + self.ahead.buf.capacity() <= LARGE_CAPACITY && !self.out.is_large() {
                return;
            }
            *armed = true;
            let timer = self.shrink.get_or_insert_with(|| Box::pin(sleep(SHRINK_AFTER)));
            timer.as_mut().reset(Instant::now() + SHRINK_AFTER);
        }
        if let Some(timer) = &mut self.shrink
            && timer.as_mut().poll(cx).is_ready()
        {
            self.shrink = None;
            self.out.shrink();
            self.ahead.buf.shrink_to(0);
            // A read needs room: an empty buffer would be taken for the end of the stream.
            buf.shrink_to(READ_CHUNK.max(buf.len() + 1));
            let spare = buf.capacity() == buf.len();
            buf.reserve(if spare { READ_CHUNK } else { 0 });
        }
    }

    /// Runs a session's future to its end. `rest` is what follows the message in the main buffer.
    pub(super) async fn drive<F: Future>(&mut self, mut future: Pin<&mut F>, rest: &[u8]) -> Result<F::Output, Ended> {
        poll_fn(|cx| {
            loop {
                if self.control.is_ended() {
                    return Poll::Ready(Err(ended(self.control)));
                }
                if let Poll::Ready(output) = future.as_mut().poll(cx) {
                    self.out.forget_waits();
                    return Poll::Ready(Ok(output));
                }
                self.poll_writer(cx)?;
                if self.out.flush_can_end() {
                    continue;
                }
                if self.out.copy_wanted() {
                    if self.poll_copy(cx, rest)?.is_ready() {
                        continue;
                    }
                } else {
                    self.poll_ahead(cx)?;
                }
                return Poll::Pending;
            }
        })
        .await
    }

    /// Reads a little ahead, so that the end of a connection is seen while its statement waits.
    fn poll_ahead(&mut self, cx: &mut Context<'_>) -> Result<(), Ended> {
        let ahead = &mut self.ahead;
        while !ahead.eof && ahead.buf.len() - ahead.pos < READ_AHEAD {
            ahead.reserve();
            match self.io.poll_read(cx, &mut ahead.buf) {
                Poll::Ready(Ok(0)) => {
                    ahead.eof = true;
                    ahead.grace = Some(Box::pin(sleep(self.options.disconnect_grace)));
                }
                Poll::Ready(Ok(_)) => {}
                Poll::Ready(Err(_)) => return Err(Ended::Lost),
                Poll::Pending => break,
            }
        }
        match ahead.grace.as_mut().map(|grace| grace.as_mut().poll(cx)) {
            Some(Poll::Ready(())) => Err(Ended::Lost),
            _ => Ok(()),
        }
    }

    /// Fetches COPY data; ready when the session can go on.
    fn poll_copy(&mut self, cx: &mut Context<'_>, rest: &[u8]) -> Result<Poll<()>, Ended> {
        if !self.ahead.took_rest {
            // Bytes already read ahead come after the rest of the main buffer.
            self.ahead.took_rest = true;
            drop(self.ahead.buf.splice(..self.ahead.pos, rest.iter().copied()));
            self.ahead.pos = 0;
        }
        loop {
            let need = match self.take_copy_messages() {
                Ok(need) => need,
                Err(error) => {
                    self.out.copy_end(Err(error));
                    0
                }
            };
            if self.out.copy_ready() {
                return Ok(Poll::Ready(()));
            }
            let there = self.ahead.buf.len() - self.ahead.pos;
            let read = if self.ahead.unfinished > 0 && there == 0 {
                // The rest of a message goes straight to where the session wants it.
                let most = self.ahead.unfinished;
                let read = self.out.copy_fill(most, |data, most| self.io.poll_read_some(cx, data, most));
                self.ahead.unfinished -= if let Poll::Ready(Ok(n)) = read { n } else { 0 };
                read
            } else {
                self.ahead.reserve();
                self.ahead.buf.reserve(need.saturating_sub(there).min(self.ahead.buf.len().max(READ_CHUNK)));
                self.io.poll_read(cx, &mut self.ahead.buf)
            };
            match read {
                Poll::Ready(Ok(0)) => {
                    self.ahead.eof = true;
                    let message = "unexpected EOF on client connection with an open transaction";
                    self.out.copy_end(Err(Error::fatal(SqlState::CONNECTION_FAILURE, message)));
                }
                Poll::Ready(Ok(_)) => {}
                Poll::Ready(Err(_)) => return Err(Ended::Lost),
                Poll::Pending => return Ok(Poll::Pending),
            }
        }
    }

    /// Moves COPY messages to the session, CopyData as far as it is there; the bytes needed in all to go on.
    fn take_copy_messages(&mut self) -> Result<usize> {
        loop {
            let input = &self.ahead.buf[self.ahead.pos..];
            if self.ahead.unfinished > 0 {
                let there = self.ahead.unfinished.min(input.len());
                let more = self.out.copy_push(&input[..there]);
                self.ahead.pos += there;
                self.ahead.unfinished -= there;
                if there == 0 || !more {
                    return Ok(self.ahead.unfinished.min(READ_AHEAD));
                }
                continue;
            }
            if let Some(tag) = input.first().filter(|tag| !b"dcfHS".contains(tag)) {
                return Err(fatal_violation(format!("unexpected message type 0x{tag:02X} during COPY from stdin")));
            }
            let frame = match proto::frame(input)? {
                Ok(frame) => frame,
                Err(need) if input.first() == Some(&b'd') && input.len() >= FRAME_HEADER => {
                    self.ahead.pos += FRAME_HEADER;
                    self.ahead.unfinished = need - FRAME_HEADER;
                    continue;
                }
                Err(need) => return Ok(need),
            };
            self.ahead.pos += frame.total();
            let more = match frame.tag {
                b'd' => self.out.copy_push(frame.body),
                b'c' => {
                    self.out.copy_end(Body::new(frame.body).end());
                    false
                }
                b'f' => {
                    let reason = Body::new(frame.body).text()?;
                    let message = format!("COPY from stdin failed: {reason}");
                    return Err(Error::new(SqlState::QUERY_CANCELED, message));
                }
                // Flush and Sync: a client of the extended protocol may send them before it learns of the COPY.
                _ => true,
            };
            if !more {
                return Ok(0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use base::Lsn;
    use tokio::io::ReadBuf;

    use super::*;

    /// Takes whatever it is given.
    struct Taking(usize);

    impl AsyncWrite for Taking {
        fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
            self.0 += bytes.len();
            Poll::Ready(Ok(bytes.len()))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    impl AsyncRead for Taking {
        fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, _: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
            Poll::Pending
        }
    }

    struct Durable;

    impl DurableHorizon for Durable {
        fn current(&self) -> Lsn {
            Lsn(u64::MAX)
        }

        async fn wait(&self, _: Lsn) {}
    }

    #[test]
    fn a_long_reply_leaves_in_turns() {
        const LONG: usize = 10 << 20;
        let (io, out) = (Io::new(Taking(0)), Out::new());
        out.copy_data(|bytes| {
            bytes.resize(bytes.len() + LONG, b'x');
            Ok(())
        })
        .unwrap();
        tokio::runtime::LocalRuntime::new().unwrap().block_on(async {
            let mut writer = pin!(write_loop(&io, &out, &Durable));
            let mut turns = 0;
            poll_fn(|cx| {
                let before = io.with(|taking| taking.0);
                assert!(writer.as_mut().poll(cx).is_pending());
                let after = io.with(|taking| taking.0);
                assert!(after > before && after - before <= work::STRETCH);
                turns += 1;
                // Nobody else wakes it.
                if out.unsent() > 0 { Poll::Pending } else { Poll::Ready(()) }
            })
            .await;
            assert_eq!(turns, (LONG + 5).div_ceil(work::STRETCH));
        });
    }
}
