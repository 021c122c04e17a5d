//! What sessions are doing, and what statements have cost: the figures behind `pg_stat_activity`, `pg_stat_ssl`,
//! `pg_stat_database` and `pg_stat_statements`.
//!
//! Responsible for: the list of sessions, what each says of itself, the figures of statements by their text.
//! Not responsible for: who may see what (the relations in `sql_catalog::activity`).
//! Invariants: a session writes to its own entry only, and readers take a copy; nothing here waits for a statement. A
//! statement's figures are kept by each core for itself ([`statements`]).

pub mod secrets;
pub mod statements;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU8, AtomicU64, Ordering};

use crate::metrics::StatementKind;
use base::Oid;
use parking_lot::Mutex;
use statements::Statements;

/// Bytes of a statement that are kept for show (`track_activity_query_size`).
const QUERY_BYTES_MAX: usize = 1024;

/// What a session is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum SessionState {
    /// Running a statement.
    Active,
    /// Waiting for its client, outside of a block.
    Idle,
    /// Waiting for its client, inside of a block.
    IdleInTransaction,
    /// The same, and the block has failed.
    IdleInFailed,
}

impl SessionState {
    /// As `pg_stat_activity` names it.
    pub fn name(self) -> &'static str {
        match self {
            SessionState::Active => "active",
            SessionState::Idle => "idle",
            SessionState::IdleInTransaction => "idle in transaction",
            SessionState::IdleInFailed => "idle in transaction (aborted)",
        }
    }

    fn of(number: u8) -> SessionState {
        [SessionState::Active, SessionState::Idle, SessionState::IdleInTransaction, SessionState::IdleInFailed]
            [usize::from(number & 3)]
    }
}

/// What a running statement waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Waiting {
    /// Nothing.
    No,
    /// Another transaction's lock.
    Lock,
    /// Time to pass.
    Sleep,
    /// Memory that is nearly used up.
    Memory,
}

/// The encryption of a session's connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Encryption {
    /// Version of TLS.
    pub version: &'static str,
    /// Cipher.
    pub cipher: &'static str,
    /// Bits of the key.
    pub bits: i32,
}

/// Where a session's client sits.
#[derive(Clone, Debug, Default)]
pub struct ClientPlace {
    /// Address; none by a Unix socket.
    pub address: Option<String>,
    /// Port; none by a Unix socket.
    pub port: Option<u16>,
    /// How the connection is encrypted, if it is.
    pub encryption: Option<Encryption>,
}

/// What a session says of itself.
pub struct Activity {
    /// Number of the session.
    pub pid: i32,
    /// When it began.
    pub started: i64,
    /// Its database.
    pub database: Oid,
    /// The role that logged in.
    pub role: Oid,
    /// Its client.
    pub client: ClientPlace,
    state: AtomicU8,
    waiting: AtomicU8,
    query_start: AtomicI64,
    /// 0: no transaction.
    transaction_start: AtomicI64,
    state_change: AtomicI64,
    counters: Counters,
    /// Written by the session for each statement; the lock is contended by readers only.
    words: Mutex<Words>,
}

#[derive(Default)]
struct Words {
    query: String,
    application: String,
}

/// A copy of what a session says.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// State.
    pub state: SessionState,
    /// What is waited for.
    pub waiting: Waiting,
    /// Start of the last statement; 0 before the first.
    pub query_start: i64,
    /// Start of the transaction; 0 outside.
    pub transaction_start: i64,
    /// When the state came about.
    pub state_change: i64,
    /// The statement, shortened.
    pub query: String,
    /// `application_name`
    pub application: String,
}

impl Activity {
    /// A statement begins.
    pub fn begins(&self, query: &str, now: i64) {
        let mut end = query.len().min(QUERY_BYTES_MAX);
        while !query.is_char_boundary(end) {
            end -= 1;
        }
        {
            let mut words = self.words.lock();
            words.query.clear();
            words.query.push_str(&query[..end]);
        }
        self.query_start.store(now, Ordering::Relaxed);
        self.state_change.store(now, Ordering::Relaxed);
        self.state.store(SessionState::Active as u8, Ordering::Relaxed);
    }

    /// The statement is over, or the client is to say what comes next.
    pub fn note_idle(&self, state: SessionState, transaction_start: i64, now: i64) {
        self.transaction_start.store(transaction_start, Ordering::Relaxed);
        self.state_change.store(now, Ordering::Relaxed);
        self.state.store(state as u8, Ordering::Relaxed);
    }

    /// The statement's transaction began.
    pub fn in_transaction(&self, since: i64) {
        self.transaction_start.store(since, Ordering::Relaxed);
    }

    /// The statement waits, or does not any more.
    pub fn waits(&self, waiting: Waiting) {
        self.waiting.store(waiting as u8, Ordering::Relaxed);
    }

    /// A statement has returned or changed rows.
    pub fn count_rows(&self, kind: StatementKind, rows: u64) {
        let counter = match kind {
            StatementKind::Insert => &self.counters.inserted,
            StatementKind::Update => &self.counters.updated,
            StatementKind::Delete => &self.counters.deleted,
            _ => &self.counters.returned,
        };
        add(counter, rows);
    }

    /// A transaction is over.
    pub fn count_transaction(&self, committed: bool) {
        add(if committed { &self.counters.commits } else { &self.counters.rollbacks }, 1);
    }

    /// The client has another name.
    pub fn set_application(&self, name: &str) {
        self.words.lock().application = name.to_string();
    }

    /// What it says now.
    pub fn snapshot(&self) -> Snapshot {
        let (query, application) = {
            let words = self.words.lock();
            (secrets::without_secrets(&words.query).into_owned(), words.application.clone())
        };
        Snapshot {
            state: SessionState::of(self.state.load(Ordering::Relaxed)),
            waiting: match self.waiting.load(Ordering::Relaxed) {
                0 => Waiting::No,
                1 => Waiting::Lock,
                2 => Waiting::Sleep,
                _ => Waiting::Memory,
            },
            query_start: self.query_start.load(Ordering::Relaxed),
            transaction_start: self.transaction_start.load(Ordering::Relaxed),
            state_change: self.state_change.load(Ordering::Relaxed),
            query,
            application,
        }
    }
}

/// Counters that a session writes alone.
#[derive(Default)]
struct Counters {
    commits: AtomicU64,
    rollbacks: AtomicU64,
    returned: AtomicU64,
    inserted: AtomicU64,
    updated: AtomicU64,
    deleted: AtomicU64,
}

/// What happened in a database since the server began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DatabaseCounts {
    /// Sessions there are.
    pub backends: u64,
    /// Sessions begun.
    pub sessions: u64,
    /// Transactions committed.
    pub commits: u64,
    /// Transactions rolled back.
    pub rollbacks: u64,
    /// Rows returned by queries.
    pub returned: u64,
    /// Rows inserted.
    pub inserted: u64,
    /// Rows updated.
    pub updated: u64,
    /// Rows deleted.
    pub deleted: u64,
}

impl DatabaseCounts {
    fn add(&mut self, counters: &Counters) {
        self.commits += counters.commits.load(Ordering::Relaxed);
        self.rollbacks += counters.rollbacks.load(Ordering::Relaxed);
        self.returned += counters.returned.load(Ordering::Relaxed);
        self.inserted += counters.inserted.load(Ordering::Relaxed);
        self.updated += counters.updated.load(Ordering::Relaxed);
        self.deleted += counters.deleted.load(Ordering::Relaxed);
    }
}

/// Adds to a counter that only the calling session writes.
fn add(counter: &AtomicU64, n: u64) {
    counter.store(counter.load(Ordering::Relaxed).wrapping_add(n), Ordering::Relaxed);
}

/// The sessions of a server.
pub struct Monitor {
    /// When the server began, in microseconds since 2000.
    pub started: i64,
    sessions: Mutex<BTreeMap<i32, Arc<Activity>>>,
    /// Databases that are dropped, or about to be: nobody gets in any more. Changed under the latch of `sessions`.
    dropping: Mutex<Vec<Oid>>,
    /// What sessions that have ended had counted, and how many have begun.
    databases: Mutex<BTreeMap<Oid, DatabaseCounts>>,
    /// Figures of statements.
    pub statements: Statements,
}

/// Takes a session off the list when it ends.
pub struct Listed {
    monitor: Arc<Monitor>,
    /// What it says of itself.
    pub activity: Arc<Activity>,
}

impl Drop for Listed {
    fn drop(&mut self) {
        self.monitor.databases.lock().entry(self.activity.database).or_default().add(&self.activity.counters);
        let mut sessions = self.monitor.sessions.lock();
        // The number may have gone to another session already.
        if sessions.get(&self.activity.pid).is_some_and(|listed| Arc::ptr_eq(listed, &self.activity)) {
            sessions.remove(&self.activity.pid);
        }
    }
}

impl Monitor {
    /// A monitor of a server that begins now.
    pub fn new(now: i64) -> Monitor {
        Monitor {
            started: now,
            sessions: Mutex::default(),
            dropping: Mutex::default(),
            databases: Mutex::default(),
            statements: Statements::default(),
        }
    }

    /// Puts a session on the list.
    pub fn list(self: &Arc<Monitor>, pid: i32, now: i64, database: Oid, role: Oid, client: ClientPlace) -> Listed {
        let activity = Arc::new(Activity {
            pid,
            started: now,
            database,
            role,
            client,
            state: AtomicU8::new(SessionState::Idle as u8),
            waiting: AtomicU8::new(Waiting::No as u8),
            query_start: AtomicI64::new(0),
            transaction_start: AtomicI64::new(0),
            state_change: AtomicI64::new(now),
            counters: Counters::default(),
            words: Mutex::default(),
        });
        self.sessions.lock().insert(pid, Arc::clone(&activity));
        self.databases.lock().entry(database).or_default().sessions += 1;
        Listed { monitor: Arc::clone(self), activity }
    }

    /// The sessions there are.
    pub fn sessions(&self) -> Vec<Arc<Activity>> {
        self.sessions.lock().values().cloned().collect()
    }

    /// A session by its number.
    pub fn session(&self, pid: i32) -> Option<Arc<Activity>> {
        self.sessions.lock().get(&pid).cloned()
    }

    /// Sessions of a role.
    pub fn sessions_of(&self, role: Oid) -> usize {
        self.sessions.lock().values().filter(|session| session.role == role).count()
    }

    /// Closes a database to new sessions, unless some are in it: then answers which.
    pub fn begin_drop(&self, database: Oid) -> Vec<i32> {
        let sessions = self.sessions.lock();
        let inside: Vec<i32> = sessions.values().filter(|s| s.database == database).map(|s| s.pid).collect();
        if inside.is_empty() {
            self.dropping.lock().push(database);
        }
        inside
    }

    /// Opens it again: it was not dropped after all.
    pub fn give_up_drop(&self, database: Oid) {
        self.dropping.lock().retain(|of| *of != database);
    }

    /// Whether a database is closed. To be asked by a session that is listed: then [`Monitor::begin_drop`] has seen it, or is seen.
    pub fn is_dropping(&self, database: Oid) -> bool {
        let _listed = self.sessions.lock();
        self.dropping.lock().contains(&database)
    }

    /// What happened in a database.
    pub fn counts_of(&self, database: Oid) -> DatabaseCounts {
        let mut counts = self.databases.lock().get(&database).copied().unwrap_or_default();
        for session in self.sessions.lock().values().filter(|session| session.database == database) {
            counts.backends += 1;
            counts.add(&session.counters);
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_are_listed_while_they_live() {
        let monitor = Arc::new(Monitor::new(5));
        let first = monitor.list(7, 10, Oid(1), Oid(2), ClientPlace::default());
        first.activity.begins(&"\u{e4}".repeat(2000), 20);
        let seen = monitor.session(7).unwrap().snapshot();
        assert_eq!((seen.state, seen.query_start, seen.query.len()), (SessionState::Active, 20, 1024));
        first.activity.count_transaction(true);
        first.activity.note_idle(SessionState::IdleInFailed, 15, 30);
        let seen = monitor.session(7).unwrap().snapshot();
        assert_eq!((seen.state.name(), seen.transaction_start), ("idle in transaction (aborted)", 15));
        // Another session has the number before the first one is gone.
        let second = monitor.list(7, 40, Oid(1), Oid(2), ClientPlace::default());
        drop(first);
        assert_eq!(monitor.sessions_of(Oid(2)), 1);
        drop(second);
        assert!(monitor.sessions().is_empty());
        assert_eq!(monitor.counts_of(Oid(1)), DatabaseCounts { sessions: 2, commits: 1, ..Default::default() });
    }
}
