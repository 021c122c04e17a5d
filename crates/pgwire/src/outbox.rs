//! What a core's connections have to send at the same time, sent by one system call.
//!
//! Responsible for: gathering the replies of connections whose turn comes in the same round of the core, in [`Outbox`]; a
//! stream, by TCP or of a Unix socket, that sends through it, [`Wire`].
//! Not responsible for: what may leave and when; that is [`Out`](crate::Out)'s.
//! Invariants: the bytes of a connection leave in order: there is at most one send of it in a round, and none while the
//! kernel has not taken the rest of an earlier one. A round ends after the tasks that were ready when its first reply was
//! gathered; what is gathered never waits for anything else.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker, ready};

use rustix::net::{Shutdown, shutdown};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream, tcp, unix};
use tokio::task::{AbortHandle, spawn_local};

/// Bytes that are gathered at most: copying more costs more than the system call that it saves.
const GATHERED: usize = 8 << 10;
/// Capacity kept between rounds.
const KEPT: usize = 64 << 10;

/// Sends on many sockets by one system call.
pub trait SendMany {
    /// Sends each buffer on its socket, or as much of it as there is space for, without waiting. Answers for each, in order,
    /// into `results`, how much was sent; `WouldBlock` if there is no space.
    fn send(&mut self, sends: &[(BorrowedFd<'_>, &[u8])], results: &mut Vec<io::Result<usize>>);
}

/// Makes what sends for a core, on its thread.
pub type MakeSendMany = fn() -> io::Result<Box<dyn SendMany>>;

/// Where the connections of a core leave what they have to send.
pub(crate) struct Outbox {
    round: RefCell<Round>,
    /// Of the task that ends rounds.
    waker: RefCell<Option<Waker>>,
}

struct Round {
    many: Box<dyn SendMany>,
    bytes: Vec<u8>,
    sends: Vec<(Rc<Sink>, Range<usize>)>,
    results: Vec<io::Result<usize>>,
}

impl Outbox {
    pub(crate) fn new(many: Box<dyn SendMany>) -> Outbox {
        let round = Round { many, bytes: Vec::new(), sends: Vec::new(), results: Vec::new() };
        Outbox { round: RefCell::new(round), waker: RefCell::default() }
    }

    /// Ends rounds, for ever. Tasks run in the order they were woken in, so a round has all that was ready at its start.
    pub(crate) async fn run(self: Rc<Outbox>) {
        poll_fn(|cx| {
            self.end_round();
            let waker = &mut *self.waker.borrow_mut();
            if waker.is_none() {
                *waker = Some(cx.waker().clone());
            }
            Poll::Pending
        })
        .await
    }

    fn gather(&self, sink: &Rc<Sink>, bytes: &[u8]) {
        let round = &mut *self.round.borrow_mut();
        let start = round.bytes.len();
        round.bytes.extend_from_slice(bytes);
        round.sends.push((Rc::clone(sink), start..round.bytes.len()));
        sink.gathered.set(true);
        if round.sends.len() == 1
            && let Some(waker) = &*self.waker.borrow()
        {
            waker.wake_by_ref();
        }
    }

    /// Sends what has been gathered.
    fn end_round(&self) {
        let round = &mut *self.round.borrow_mut();
        let Round { many, bytes, sends, results } = round;
        match sends.as_slice() {
            [] => return,
            [(sink, range)] => {
                results.clear();
                results.push(sink.half.try_write(&bytes[range.clone()]));
            }
            several => {
                let list: Vec<_> = several.iter().map(|(s, range)| (s.half.as_fd(), &bytes[range.clone()])).collect();
                many.send(&list, results);
            }
        }
        for ((sink, range), result) in sends.drain(..).zip(results.drain(..)) {
            sink.gathered.set(false);
            Sink::sent(&sink, &bytes[range], result);
        }
        bytes.clear();
        if bytes.capacity() > KEPT {
            bytes.shrink_to(KEPT);
        }
    }
}

/// What is read from.
enum ReadHalf {
    Tcp(tcp::OwnedReadHalf),
    Unix(unix::OwnedReadHalf),
}

/// What is written to.
enum WriteHalf {
    Tcp(tcp::OwnedWriteHalf),
    Unix(unix::OwnedWriteHalf),
}

impl WriteHalf {
    fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            WriteHalf::Tcp(half) => half.try_write(bytes),
            WriteHalf::Unix(half) => half.try_write(bytes),
        }
    }

    fn poll_write_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            WriteHalf::Tcp(half) => half.as_ref().poll_write_ready(cx),
            WriteHalf::Unix(half) => half.as_ref().poll_write_ready(cx),
        }
    }
}

impl AsFd for WriteHalf {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            WriteHalf::Tcp(half) => half.as_ref().as_fd(),
            WriteHalf::Unix(half) => half.as_ref().as_fd(),
        }
    }
}

/// The sending side of a connection.
struct Sink {
    half: WriteHalf,
    /// It has bytes in the present round.
    gathered: Cell<bool>,
    /// What the kernel has not taken yet.
    rest: RefCell<Vec<u8>>,
    /// Sends the rest; there is no other send meanwhile.
    resting: RefCell<Option<AbortHandle>>,
    failed: Cell<Option<io::Error>>,
    /// Waits until the rest is sent.
    waiter: RefCell<Option<Waker>>,
}

impl Sink {
    /// Takes note of what became of `bytes`.
    fn sent(sink: &Rc<Sink>, bytes: &[u8], result: io::Result<usize>) {
        let taken = match result {
            Ok(taken) if taken == bytes.len() => return,
            Ok(taken) => taken,
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => 0,
            // Nobody waits for it: the next to write, or to read, finds the connection broken.
            Err(error) => return sink.failed.set(Some(error)),
        };
        sink.rest.borrow_mut().extend_from_slice(&bytes[taken..]);
        let task = spawn_local(Sink::send_rest(Rc::clone(sink)));
        *sink.resting.borrow_mut() = Some(task.abort_handle());
    }

    async fn send_rest(sink: Rc<Sink>) {
        let mut start = 0;
        let failed = loop {
            if start == sink.rest.borrow().len() {
                break None;
            }
            if let Err(error) = poll_fn(|cx| sink.half.poll_write_ready(cx)).await {
                break Some(error);
            }
            match sink.half.try_write(&sink.rest.borrow()[start..]) {
                Ok(taken) => start += taken,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => break Some(error),
            }
        };
        sink.failed.set(failed);
        *sink.rest.borrow_mut() = Vec::new();
        *sink.resting.borrow_mut() = None;
        if let Some(waiter) = sink.waiter.borrow_mut().take() {
            waiter.wake();
        }
    }

    /// Ready when no rest is left.
    fn poll_rest(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.resting.borrow().is_some() {
            *self.waiter.borrow_mut() = Some(cx.waker().clone());
            return Poll::Pending;
        }
        Poll::Ready(self.failed.take().map_or(Ok(()), Err))
    }
}

/// A stream whose short writes leave with those of the core's other connections.
pub(crate) struct Wire {
    read: ReadHalf,
    sink: Owner,
    outbox: Option<Rc<Outbox>>,
}

/// The stream's hold on its sink: without it the rest is not sent any more.
struct Owner(Rc<Sink>);

impl Drop for Owner {
    fn drop(&mut self) {
        if let Some(task) = self.0.resting.take() {
            task.abort();
        }
    }
}

impl Wire {
    /// A stream by TCP that sends through `outbox` if there is one.
    pub(crate) fn tcp(stream: TcpStream, outbox: Option<Rc<Outbox>>) -> Wire {
        let (read, write) = stream.into_split();
        Wire::of(ReadHalf::Tcp(read), WriteHalf::Tcp(write), outbox)
    }

    /// The same of a Unix socket.
    pub(crate) fn unix(stream: UnixStream, outbox: Option<Rc<Outbox>>) -> Wire {
        let (read, write) = stream.into_split();
        Wire::of(ReadHalf::Unix(read), WriteHalf::Unix(write), outbox)
    }

    fn of(read: ReadHalf, half: WriteHalf, outbox: Option<Rc<Outbox>>) -> Wire {
        let sink = Sink {
            half,
            gathered: Cell::new(false),
            rest: RefCell::default(),
            resting: RefCell::default(),
            failed: Cell::new(None),
            waiter: RefCell::default(),
        };
        Wire { read, sink: Owner(Rc::new(sink)), outbox }
    }

    /// The socket, if it is one of TCP.
    pub(crate) fn tcp_socket(&self) -> Option<&TcpStream> {
        match &self.sink.0.half {
            WriteHalf::Tcp(half) => Some(half.as_ref()),
            WriteHalf::Unix(_) => None,
        }
    }

    /// The stream itself; `None` if the connection has failed, or is none of TCP. Call it when it has been flushed.
    pub(crate) fn into_tcp(self) -> Option<TcpStream> {
        let Wire { read, sink, .. } = self;
        let shared = Rc::clone(&sink.0);
        drop(sink);
        match (read, Rc::into_inner(shared)?.half) {
            (ReadHalf::Tcp(read), WriteHalf::Tcp(half)) => read.reunite(half).ok(),
            _ => None,
        }
    }

    /// Ends the round if it has bytes of this stream.
    fn send_gathered(&self) {
        if self.sink.0.gathered.get()
            && let Some(outbox) = &self.outbox
        {
            outbox.end_round();
        }
    }
}

impl AsyncRead for Wire {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match &mut self.read {
            ReadHalf::Tcp(half) => Pin::new(half).poll_read(cx, buf),
            ReadHalf::Unix(half) => Pin::new(half).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for Wire {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.send_gathered();
        ready!(self.sink.0.poll_rest(cx))?;
        if let Some(outbox) = self.outbox.as_ref().filter(|_| bytes.len() <= GATHERED) {
            outbox.gather(&self.sink.0, bytes);
            return Poll::Ready(Ok(bytes.len()));
        }
        loop {
            ready!(self.sink.0.half.poll_write_ready(cx))?;
            match self.sink.0.half.try_write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                result => return Poll::Ready(result),
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.send_gathered();
        self.sink.0.poll_rest(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.as_mut().poll_flush(cx))?;
        Poll::Ready(shutdown(&self.sink.0.half, Shutdown::Write).map_err(io::Error::from))
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpListener};

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::runtime::LocalRuntime;

    use super::*;

    /// Sends a little, nothing, or all, as a sequence of numbers has it.
    struct Moody(u32);

    impl SendMany for Moody {
        fn send(&mut self, sends: &[(BorrowedFd<'_>, &[u8])], results: &mut Vec<io::Result<usize>>) {
            results.clear();
            for (socket, bytes) in sends {
                self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let some = match self.0 >> 30 {
                    0 => 0,
                    1 => bytes.len() / 2,
                    _ => bytes.len(),
                };
                results.push(match some {
                    0 if !bytes.is_empty() => Err(io::ErrorKind::WouldBlock.into()),
                    some => {
                        rustix::net::send(socket, &bytes[..some], rustix::net::SendFlags::DONTWAIT).map_err(Into::into)
                    }
                });
            }
        }
    }

    /// A stream by TCP over the outbox, and its peer.
    fn pair(outbox: &Rc<Outbox>) -> (Wire, Wire) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let near = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let far = listener.accept().unwrap().0;
        near.set_nonblocking(true).unwrap();
        far.set_nonblocking(true).unwrap();
        let near = Wire::tcp(TcpStream::from_std(near).unwrap(), Some(Rc::clone(outbox)));
        (near, Wire::tcp(TcpStream::from_std(far).unwrap(), None))
    }

    /// A stream of a Unix socket over the outbox, and its peer.
    fn unix_pair(outbox: &Rc<Outbox>) -> (Wire, Wire) {
        let (near, far) = UnixStream::pair().unwrap();
        (Wire::unix(near, Some(Rc::clone(outbox))), Wire::unix(far, None))
    }

    fn on_a_core<F: Future>(many: Box<dyn SendMany>, run: impl FnOnce(Rc<Outbox>) -> F) -> F::Output {
        let outbox = Rc::new(Outbox::new(many));
        LocalRuntime::new().unwrap().block_on(async {
            spawn_local(Rc::clone(&outbox).run());
            run(outbox).await
        })
    }

    #[test]
    fn bytes_arrive_in_order_however_little_the_kernel_takes() {
        on_a_core(Box::new(Moody(7)), |outbox| async move {
            let mut tasks = Vec::new();
            for number in 0..6u32 {
                let (mut wire, mut peer) = if number % 2 == 0 { pair(&outbox) } else { unix_pair(&outbox) };
                tasks.push(spawn_local(async move {
                    let text: Vec<u8> = (0..200_000u32).map(|i| (i.wrapping_mul(31) + number) as u8).collect();
                    let mut sent = 0;
                    while sent < text.len() {
                        // Now short, now too long to be gathered.
                        let length = ((sent * 7 + number as usize) % (GATHERED * 3 / 2)).clamp(1, text.len() - sent);
                        sent += wire.write(&text[sent..sent + length]).await.unwrap();
                        tokio::task::yield_now().await;
                    }
                    wire.shutdown().await.unwrap();
                    (text, wire)
                }));
                tasks.push(spawn_local(async move {
                    let mut read = Vec::new();
                    peer.read_to_end(&mut read).await.unwrap();
                    (read, peer)
                }));
            }
            for pair in tasks.chunks_mut(2) {
                let [sent, read] = pair else { unreachable!("tasks come in pairs") };
                assert!(sent.await.unwrap().0 == read.await.unwrap().0);
            }
        });
    }

    #[test]
    fn what_is_gathered_leaves_without_another_word() {
        on_a_core(Box::new(Moody(1)), |outbox| async move {
            let (mut one, mut peer_of_one) = pair(&outbox);
            let (mut two, mut peer_of_two) = unix_pair(&outbox);
            one.write_all(b"one").await.unwrap();
            two.write_all(b"two").await.unwrap();
            let mut read = [0; 3];
            peer_of_one.read_exact(&mut read).await.unwrap();
            assert_eq!(&read, b"one");
            peer_of_two.read_exact(&mut read).await.unwrap();
            assert_eq!(&read, b"two");
        });
    }

    #[test]
    fn a_flushed_stream_can_be_taken_away() {
        on_a_core(Box::new(Moody(3)), |outbox| async move {
            let (mut wire, mut peer) = pair(&outbox);
            wire.write_all(b"before").await.unwrap();
            wire.flush().await.unwrap();
            let mut stream = wire.into_tcp().unwrap();
            stream.write_all(b" after").await.unwrap();
            drop(stream);
            let mut read = String::new();
            peer.read_to_string(&mut read).await.unwrap();
            assert_eq!(read, "before after");
        });
    }

    #[test]
    fn a_broken_connection_is_told_to_the_next_who_writes() {
        on_a_core(Box::new(Moody(5)), |outbox| async move {
            let (mut wire, peer) = pair(&outbox);
            drop(peer);
            let mut failed = false;
            for _ in 0..1000 {
                if wire.write_all(b"hello").await.is_err() || wire.flush().await.is_err() {
                    failed = true;
                    break;
                }
                tokio::task::yield_now().await;
            }
            assert!(failed);
        });
    }
}
