//! A whole server but for its sockets, in the process of a test: a shard on a simulated disk and sessions on it.
//!
//! Responsible for: [`Sandbox`], which runs statements and gives back what came of them.
//! Not responsible for: knowing what is right (`testkit`, the targets of `fuzz`); faults of disks and clocks (`sim`).
//! Invariants: messages run on the caller's thread, one after the other; a statement that waits for another session never returns. The
//! disk is in memory and is dropped with its [`Sandbox`].

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
use sql_parse::monitor::ClientPlace;
use sql_session::{Host, Output, ResultColumn, Session, Shared};
use testkit::{Column, Event, Fields, Reply, known_type, without_session};
use types::OutputSettings;
use types::user::Current;

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

/// What came of a message, as a client sees it, and what COPY FROM STDIN reads.
#[derive(Default)]
pub struct Answer {
    /// The messages. Its status is not set.
    pub reply: Reply,
    /// The bytes of COPY TO STDOUT, which need not be text.
    pub copied: Vec<u8>,
    chunks: VecDeque<Vec<u8>>,
}

impl Answer {
    /// For a message with a COPY FROM STDIN that reads these pieces.
    fn to_copy(chunks: VecDeque<Vec<u8>>) -> Answer {
        Answer { chunks, ..Answer::default() }
    }

    /// Values of the rows, as text.
    pub fn values(&self) -> Vec<Option<String>> {
        self.reply.rows().flatten().cloned().collect()
    }
}

impl Output for Answer {
    fn columns(&mut self, columns: &[ResultColumn]) {
        let column = |column: &ResultColumn| Column {
            name: column.name.to_string(),
            type_oid: known_type(column.ty.oid.0),
            modifier: column.ty.typmod,
        };
        self.reply.events.push(Event::Columns(columns.iter().map(column).collect()));
    }
    fn row(&mut self, row: OutputRow<'_>, columns: &[ResultColumn], settings: &OutputSettings) {
        let text = |value, column: &ResultColumn| {
            let mut text = Vec::new();
            types::write_text(value, column.ty.oid, settings, &mut text).expect("a value of its column");
            String::from_utf8(text).expect("texts are UTF-8")
        };
        let values = row.iter().zip(columns).map(|(value, column)| (!value.is_null()).then(|| text(value, column)));
        self.reply.events.push(Event::Row(values.collect()));
    }
    fn complete(&mut self, tag: &str) {
        self.reply.events.push(Event::Done(tag.to_owned()));
    }
    fn empty(&mut self) {
        self.reply.events.push(Event::Empty);
    }
    fn suspended(&mut self) {}
    fn notice(&mut self, notice: &Notice) {
        self.reply.events.push(Event::Notice(fields(notice)));
    }
    fn notification(&mut self, _: i32, channel: &str, payload: &str) {
        self.reply.events.push(Event::Notified(channel.to_owned(), payload.to_owned()));
    }
    fn parameter(&mut self, name: &str, value: &str) {
        self.reply.events.push(Event::Setting(name.to_owned(), value.to_owned()));
    }
    fn gate(&mut self, _: Lsn) {}
    fn is_full(&self) -> bool {
        false
    }
    fn flush<'a>(&'a mut self) -> Pin<Box<dyn Future<Output = Result<()>> + 'a>> {
        Box::pin(ready(Ok(())))
    }
    fn copy_in(&mut self, _: bool, _: usize) {
        self.reply.events.push(Event::CopyIn);
    }
    fn next_copy<'a>(&'a mut self, chunk: &'a mut Vec<u8>) -> Pin<Box<dyn Future<Output = Result<bool>> + 'a>> {
        let next = self.chunks.pop_front();
        let more = next.is_some();
        chunk.extend_from_slice(&next.unwrap_or_default());
        Box::pin(ready(Ok(more)))
    }
    fn copy_out(&mut self, _: bool, _: usize) {}
    fn copy_data(&mut self, bytes: &[u8]) {
        self.copied.extend_from_slice(bytes);
        self.reply.events.push(Event::Copied(String::from_utf8_lossy(bytes).into_owned()));
    }
    fn copy_done(&mut self) {}
}

/// An error or a notice as a client gets it.
fn fields(error: &Error) -> Fields {
    let fields = error.fields();
    let [table, column] = [&fields.table, &fields.column].map(Clone::clone);
    let [data_type, constraint] = [&fields.data_type, &fields.constraint].map(Clone::clone);
    Fields {
        severity: fields.severity.as_str().to_owned(),
        code: fields.code.as_str().to_owned(),
        message: fields.message.clone(),
        detail: fields.detail.clone(),
        hint: fields.hint.clone(),
        position: fields.position.map(|position| position.to_string()),
        objects: [fields.schema.clone().map(without_session), table, column, data_type, constraint],
        ..Fields::default()
    }
}

/// A session of the superuser, with what its values are read by.
pub struct Client {
    session: Session,
    types: Current,
}

impl Client {
    fn new(shared: &Arc<Shared>, settings: &[(String, String)], number: i32) -> Client {
        let place = ClientPlace::default();
        let session = Session::new(shared, "postgres", "postgres", settings, place, number).expect("a session");
        Client { session, types: shared.types() }
    }

    /// A message of the simple protocol, with the data of a COPY FROM STDIN: all that the client gets.
    pub fn ask(&mut self, sql: &str, data: &[u8]) -> Reply {
        let mut answer = Answer::to_copy(VecDeque::from([data.to_vec()]));
        if let Err(error) = run(&mut self.types, self.session.simple_query(sql, &mut answer)) {
            answer.reply.events.push(Event::Error(fields(&error)));
            self.session.send_parameters(&mut answer);
        }
        answer.reply.status = Some(char::from(self.session.transaction_status()));
        answer.reply
    }
}

/// Runs a session's future, which waits for nothing but other threads.
fn run<F: Future>(types: &mut Current, future: F) -> F::Output {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    let _entered = types.enter();
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(value) => return value,
            Poll::Pending => std::thread::yield_now(),
        }
    }
}

/// A world on this disk.
pub fn world(disk: &SimDisk) -> World {
    World { disk: Arc::new(disk.clone()), clock: Arc::new(real::SystemClock::new()), spawn: Arc::new(real::Threads) }
}

/// The server.
pub struct Sandbox {
    shard: Shard,
    shared: Arc<Shared>,
    client: Client,
    /// Sessions that there have been.
    sessions: i32,
}

impl Sandbox {
    /// A server that has run `schema`. It stays on the thread that has made it.
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
        let (shard, _) = Shard::open(&world(disk), options, Box::new(|_| {})).expect("the disk has a log, or nothing");
        let shared = Shared::new(Arc::new(shard.clone()), Arc::new(Still::default()), 10, Vec::new());
        // What runs outside of sessions, as their end.
        shared.types().stay();
        let client = Client::new(&shared, &[], 1);
        let mut sandbox = Sandbox { shard, shared, client, sessions: 1 };
        sandbox.simple(schema).expect("the schema is right");
        sandbox
    }

    /// Another session, which begins with these settings.
    pub fn connect(&mut self, settings: &[(String, String)]) -> Client {
        self.sessions += 1;
        Client::new(&self.shared, settings, self.sessions)
    }

    /// The shard.
    pub fn shard(&self) -> &Shard {
        &self.shard
    }

    /// A message of the simple protocol.
    ///
    /// # Errors
    /// Those of its statements.
    pub fn simple(&mut self, sql: &str) -> Result<Answer> {
        let mut answer = Answer::default();
        let Client { session, types } = &mut self.client;
        run(types, session.simple_query(sql, &mut answer)).map(|()| answer)
    }

    /// A message of the simple protocol with a COPY FROM STDIN, whose data comes in pieces of at most `piece` bytes.
    ///
    /// # Errors
    /// Those of its statements.
    pub fn copy_in(&mut self, sql: &str, data: &[u8], piece: usize) -> Result<()> {
        let chunks = data.chunks(piece.max(1)).map(<[u8]>::to_vec).collect();
        let Client { session, types } = &mut self.client;
        run(types, session.simple_query(sql, &mut Answer::to_copy(chunks)))
    }

    /// Parse and Describe of the extended protocol: the statement is bound and not run.
    ///
    /// # Errors
    /// Those of binding.
    pub fn describe(&mut self, sql: &str) -> Result<()> {
        let Client { session, types } = &mut self.client;
        run(types, async {
            let parsed = session.parse("", sql, &[]).await;
            let described = parsed.and_then(|()| session.describe_statement(""));
            session.close_statement("");
            let synced = session.sync(&mut Answer::default()).await;
            described.map(drop).and(synced)
        })
    }

    /// Ends the transaction block, whatever state it is in, and frees what nobody sees.
    pub fn roll_back(&mut self) {
        self.simple("ROLLBACK").expect("it is always possible");
        self.shard.collect_garbage(usize::MAX);
        self.shard.reclaim();
    }
}
