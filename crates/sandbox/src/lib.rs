//! A whole server but for its sockets, in the process of a test: a shard on a simulated disk and sessions on it.
//!
//! Responsible for: [`Sandbox`], which runs statements and gives back what came of them.
//! Not responsible for: knowing what is right (`testkit`, the targets of `fuzz`); faults of disks and clocks (`sim`).
//! Invariants: everything runs on the caller's thread, one message after the other, so that a statement that waits for another session
//! waits for ever. The disk is memory and ends with its [`Sandbox`].

#![forbid(unsafe_code)]

use std::collections::VecDeque;
use std::future::{Future, ready};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};

use base::{Error, Lsn, Notice, Result};
use engine::{Shard, ShardOptions};
use env::sim::SimDisk;
use env::{World, real};
use sql_exec::OutputRow;
use sql_functions::monitor::ClientPlace;
use sql_session::{Host, Output, ResultColumn, Session, Shared};
use types::OutputSettings;

/// Bytes of memory.
const MEMORY: u64 = 256 << 20;
const LOG: redo::FileOptions = redo::FileOptions { segment_bytes: 16 << 20, batch_bytes_max: 4 << 20 };

/// A clock that ticks when it is read, and no randomness.
#[derive(Default)]
struct Still(AtomicU64);

impl Host for Still {
    fn now(&self) -> i64 {
        self.0.fetch_add(1, Ordering::Relaxed) as i64
    }
    fn monotonic_nanos(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed)
    }
    fn random(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed)
    }
    fn sleep(&self, _: u64) -> Pin<Box<dyn Future<Output = ()>>> {
        Box::pin(ready(()))
    }
    fn turn(&self) -> Pin<Box<dyn Future<Output = ()>>> {
        Box::pin(ready(()))
    }
    fn password_verifier(&self, _: &str) -> Result<String> {
        Err(Error::unsupported("passwords are not kept here"))
    }
}

/// What came of statements, and what COPY FROM STDIN reads.
#[derive(Default)]
pub struct Reply {
    /// The bytes of COPY TO STDOUT.
    pub copied: Vec<u8>,
    /// Values of the rows, as text.
    pub values: Vec<String>,
    chunks: VecDeque<Vec<u8>>,
}

impl Output for Reply {
    fn columns(&mut self, _: &[ResultColumn]) {}
    fn row(&mut self, row: OutputRow<'_>, columns: &[ResultColumn], settings: &OutputSettings) {
        for (value, column) in row.iter().zip(columns) {
            let mut text = Vec::new();
            types::write_text(value, column.ty.oid, settings, &mut text).expect("a value of its column");
            self.values.push(String::from_utf8(text).expect("texts are UTF-8"));
        }
    }
    fn complete(&mut self, _: &str) {}
    fn empty(&mut self) {}
    fn suspended(&mut self) {}
    fn notice(&mut self, _: &Notice) {}
    fn parameter(&mut self, _: &str, _: &str) {}
    fn gate(&mut self, _: Lsn) {}
    fn is_full(&self) -> bool {
        false
    }
    fn flush<'a>(&'a mut self) -> Pin<Box<dyn Future<Output = Result<()>> + 'a>> {
        Box::pin(ready(Ok(())))
    }
    fn copy_in(&mut self, _: bool, _: usize) {}
    fn next_copy<'a>(&'a mut self, chunk: &'a mut Vec<u8>) -> Pin<Box<dyn Future<Output = Result<bool>> + 'a>> {
        let next = self.chunks.pop_front();
        let more = next.is_some();
        chunk.extend_from_slice(&next.unwrap_or_default());
        Box::pin(ready(Ok(more)))
    }
    fn copy_out(&mut self, _: bool, _: usize) {}
    fn copy_data(&mut self, bytes: &[u8]) {
        self.copied.extend_from_slice(bytes);
    }
    fn copy_done(&mut self) {}
}

/// Runs a future that waits for nothing but other threads.
pub fn run<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(value) => return value,
            Poll::Pending => std::thread::yield_now(),
        }
    }
}

/// The server.
pub struct Sandbox {
    shard: Shard,
    shared: Arc<Shared>,
    session: Session,
    /// Sessions that there have been.
    sessions: i32,
}

impl Sandbox {
    /// A server that has run `schema`.
    pub fn new(schema: &str) -> Sandbox {
        Sandbox::on(&SimDisk::new(), LOG, schema)
    }

    /// A server on this disk, with a log of this form, that has run `schema`.
    pub fn on(disk: &SimDisk, log: redo::FileOptions, schema: &str) -> Sandbox {
        let options = ShardOptions {
            memory_limit: MEMORY,
            log,
            threads: 1,
            compiler: Some(sql_catalog::index_code::compiler()),
            ..ShardOptions::default()
        };
        let world = World {
            disk: Arc::new(disk.clone()),
            clock: Arc::new(real::SystemClock::new()),
            spawn: Arc::new(real::Threads),
        };
        let (shard, _) = Shard::open(&world, options, Box::new(|_| {})).expect("the disk has a log, or nothing");
        let shared = Shared::new(Arc::new(shard.clone()), Arc::new(Still::default()), 10, Vec::new());
        let session = Session::new(&shared, "postgres", "postgres", &[], ClientPlace::default(), 1).expect("a session");
        let mut sandbox = Sandbox { shard, shared, session, sessions: 1 };
        sandbox.simple(schema).expect("the schema is right");
        sandbox
    }

    /// A session more, of the superuser, that begins with these settings.
    pub fn connect(&mut self, settings: &[(String, String)]) -> Session {
        self.sessions += 1;
        let place = ClientPlace::default();
        Session::new(&self.shared, "postgres", "postgres", settings, place, self.sessions).expect("a session")
    }

    /// The shard.
    pub fn shard(&self) -> &Shard {
        &self.shard
    }

    /// A message of the simple protocol.
    ///
    /// # Errors
    /// Those of its statements.
    pub fn simple(&mut self, sql: &str) -> Result<Reply> {
        let mut reply = Reply::default();
        run(self.session.simple_query(sql, &mut reply)).map(|()| reply)
    }

    /// A message of the simple protocol with a COPY FROM STDIN, whose data comes in pieces of at most `piece` bytes.
    ///
    /// # Errors
    /// Those of its statements.
    pub fn copy_in(&mut self, sql: &str, data: &[u8], piece: usize) -> Result<()> {
        let chunks = data.chunks(piece.max(1)).map(<[u8]>::to_vec).collect();
        let mut reply = Reply { chunks, ..Reply::default() };
        run(self.session.simple_query(sql, &mut reply))
    }

    /// Parse and Describe of the extended protocol: the statement is bound and not run.
    ///
    /// # Errors
    /// Those of binding.
    pub fn describe(&mut self, sql: &str) -> Result<()> {
        let described = run(self.session.parse("", sql, &[])).and_then(|()| self.session.describe_statement(""));
        self.session.close_statement("");
        let synced = run(self.session.sync(&mut Reply::default()));
        described.map(drop).and(synced)
    }

    /// Ends the transaction block, whatever state it is in, and frees what nobody sees.
    pub fn roll_back(&mut self) {
        self.simple("ROLLBACK").expect("it is always possible");
        self.shard.collect_garbage(usize::MAX);
        self.shard.reclaim();
    }
}
