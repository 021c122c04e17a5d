//! One client's session: transaction blocks, prepared statements, portals, settings, and the loop that drives statements.
//!
//! Responsible for: PostgreSQL's rules of what a statement does to the transaction block (implicit blocks, the failed
//! state, savepoints), running queries and utilities, timeouts and cancellation, the statement cache.
//! Not responsible for: bytes on the wire; which thread it runs on.
//! Invariants:
//! - After an error in a transaction block nothing but its end (or ROLLBACK TO) runs: 25P02.
//! - A reply is queued only after [`Output::gate`] was raised to what it depends on (rule R1).
//! - The futures here suspend only on [`engine_api::Wait`]s, timers and [`Output::flush`].
//!
//! Start at [`Session::simple_query`] and [`Session::execute`].

#![forbid(unsafe_code)]

mod advisory;
mod analyze;
mod arguments;
mod block;
#[cfg(test)]
mod budget;
mod cache;
mod cancel;
mod changes;
mod context;
mod copy;
mod counts;
mod cursor;
mod deferred;
mod drive;
mod explain;
mod extended;
mod idle;
mod internal;
mod memory;
mod notify;
mod portal;
mod portals;
mod prepare;
mod query;
mod role;
pub(crate) mod settings;
mod snapshots;
mod statement;
mod switches;
mod two_phase;
mod utility;
mod wait;

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use base::{Error, Lsn, Notice, Oid, Result, SqlState};
use engine_api::{Catalog, Engine, Privileges, RoleSetting, Savepoint, Txn};
use rustc_hash::FxHashMap;
use sql_ddl::Arguments;
use sql_exec::{MemoryBudget, OutputRow};
use sql_functions::Identity;
use sql_functions::statistics::{Replaced, Statistics};
use sql_parse::monitor::{ClientPlace, Monitor};
use sql_parse::privileges::{self, Who};
use types::OutputSettings;
use types::encoding::Conversion;
use types::user::Current;

pub use analyze::Refresher;
pub use cancel::CancelToken;
pub use context::{Environment, Host, StatementContext};
pub use extended::{BoundValue, ExecuteEnd, ResultFormats};
use settings::Initial;
pub use settings::{Settings, check_configured, parse_bool};
pub use sql_bind::ResultColumn;
pub use sql_parse::metrics;
pub use statement::{Query, Statement, StatementBody, Verb};

use advisory::Advisory;
use cache::{BindingKey, StatementCache};
use idle::IdleExecutions;
use portals::Portals;

/// Default bound of the statement cache.
const STATEMENT_CACHE_BYTES: usize = 64 << 20;

/// Where a session's replies go. One per connection; calls are in the order of the protocol.
pub trait Output {
    /// A result follows with these columns (simple protocol: RowDescription).
    fn columns(&mut self, columns: &[ResultColumn]);
    /// Rows that follow are a BINARY cursor's, or no more: they are sent in binary form where the protocol leaves the choice.
    fn binary(&mut self, _on: bool) {}
    /// One row.
    fn row(&mut self, row: OutputRow<'_>, columns: &[ResultColumn], settings: &OutputSettings);
    /// Whether values of a column are sent as text.
    fn wants_text(&self, _column: usize) -> bool {
        true
    }
    /// A statement is complete.
    fn complete(&mut self, tag: &str);
    /// A statement of rows is complete.
    fn complete_rows(&mut self, verb: Verb, rows: u64) {
        self.complete(&verb.tag(rows));
    }
    /// The statement was empty.
    fn empty(&mut self);
    /// The portal has more rows.
    fn suspended(&mut self);
    /// A notice or warning.
    fn notice(&mut self, notice: &Notice);
    /// A notification of another session, or the session's own.
    fn notification(&mut self, _pid: i32, _channel: &str, _payload: &str) {}
    /// The client's texts are of another encoding from now on; `None` is UTF-8.
    fn encoding(&mut self, _conversion: Option<&'static Conversion>) {}
    /// A setting changed that the client is told about.
    fn parameter(&mut self, name: &str, value: &str);
    /// What is queued from now on (and before) leaves only when the log is durable up to here (rule R1).
    fn gate(&mut self, gate: Lsn);
    /// Enough is queued that it should be written before more is produced.
    fn is_full(&self) -> bool;
    /// Writes what may leave and waits until there is room.
    fn flush<'a>(&'a mut self) -> Pin<Box<dyn Future<Output = Result<()>> + 'a>>;
    /// COPY FROM STDIN begins: the client sends rows of `columns` columns.
    fn copy_in(&mut self, binary: bool, columns: usize);
    /// Waits for COPY data and appends it to `chunk`; `false` at CopyDone.
    ///
    /// # Errors
    /// 57014 if the client gives up (CopyFail).
    fn next_copy<'a>(&'a mut self, chunk: &'a mut Vec<u8>) -> Pin<Box<dyn Future<Output = Result<bool>> + 'a>>;
    /// COPY TO STDOUT begins.
    fn copy_out(&mut self, binary: bool, columns: usize);
    /// Bytes of COPY TO STDOUT.
    fn copy_data(&mut self, bytes: &[u8]);
    /// COPY TO STDOUT ends.
    fn copy_done(&mut self);
}

/// What the sessions of a server share.
pub struct Shared {
    /// The engine.
    pub engine: Arc<dyn Engine>,
    /// Clock, timers, randomness.
    pub host: Arc<dyn Host>,
    /// `max_connections`, for SHOW.
    pub max_connections: usize,
    /// What all sessions begin with, by the configuration file.
    pub settings: Vec<(String, String)>,
    /// What ALTER SYSTEM had said when the configuration was read.
    system: Mutex<Arc<[RoleSetting]>>,
    /// What sessions are doing.
    pub monitor: Arc<Monitor>,
    /// For sorts, hash tables and groups.
    memory: Arc<MemoryBudget>,
    /// The limit of all memory that the server was started with.
    memory_limit: u64,
    cache: StatementCache,
    idle: IdleExecutions,
    changes: changes::Changes,
    statistics: Arc<Statistics>,
    hub: notify::Hub,
    snapshots: snapshots::Snapshots,
}

impl Shared {
    /// The shared part of a server over `engine`.
    pub fn new(
        engine: Arc<dyn Engine>,
        host: Arc<dyn Host>,
        max_connections: usize,
        settings: Vec<(String, String)>,
    ) -> Arc<Shared> {
        sql_catalog::install();
        let changes = changes::Changes::since(engine.catalog());
        let system = Mutex::new(system_settings(&engine.catalog()));
        let shared = Arc::new(Shared {
            memory: Arc::new(MemoryBudget::of(Arc::clone(&engine))),
            memory_limit: engine.memory_level().1,
            monitor: Arc::new(Monitor::new(host.now())),
            engine,
            host,
            max_connections,
            settings,
            system,
            cache: StatementCache::new(STATEMENT_CACHE_BYTES),
            idle: IdleExecutions::new(),
            changes,
            statistics: Arc::default(),
            hub: notify::Hub::default(),
            snapshots: snapshots::Snapshots::default(),
        });
        shared.apply_memory_limit();
        shared
    }

    /// Reads the configuration again: sessions that begin from now on have what ALTER SYSTEM said.
    pub fn reload(&self) {
        *self.system.lock().unwrap_or_else(PoisonError::into_inner) = system_settings(&self.engine.catalog());
        self.apply_memory_limit();
        self.host.reload();
    }

    /// The types that a session begins with. Who polls a session keeps them, and makes them the thread's meanwhile.
    pub fn types(&self) -> Current {
        Current::of(self.engine.clone())
    }

    /// What is known of the values in tables.
    pub fn statistics(&self) -> &Statistics {
        &self.statistics
    }
}

/// State of the transaction block, as ReadyForQuery reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Block {
    /// No block; a transaction may be open for the statement or the pipeline (`implicit`).
    None,
    /// BEGIN was given.
    Open,
    /// BEGIN was given and something failed.
    Failed,
}

struct NamedSavepoint {
    name: String,
    point: Savepoint,
    /// What had been said by then.
    said: notify::Mark,
    /// Whether the transaction was read-only at this point.
    read_only: bool,
    /// What had been taken of advisory locks.
    advisory: usize,
    /// What had been deferred to the end of the transaction.
    deferred: deferred::Mark,
    /// How many columns had been given other types.
    retyped: usize,
    /// How many tables had been analyzed.
    analyzed: usize,
}

/// One session.
pub struct Session {
    shared: Arc<Shared>,
    environment: Environment,
    txn: Option<Box<dyn Txn>>,
    /// The message that is being run, if it has several statements.
    message: Option<Arc<str>>,
    /// The last transaction, committed: the next one begins in its place.
    ended: Option<Box<dyn Txn>>,
    block: Block,
    /// Whether there may be temporary relations, and whether commits change some.
    temporary: Cell<(bool, bool)>,
    /// The transaction has run a query: its characteristics are fixed.
    has_queried: bool,
    /// The transaction has its own `transaction_deferrable`.
    has_deferrable: bool,
    /// The message has several statements, which are one block to those that cannot run inside of one.
    implicit_block: bool,
    savepoints: Vec<NamedSavepoint>,
    /// The parameters of the statement that is no query, and runs.
    arguments: Arguments,
    /// Where the statement that is no query, and runs, begins in its text.
    statement_at: usize,
    statements: FxHashMap<String, Arc<Statement>>,
    /// Empty: the memory of the parameters of the last statement, for those of the next.
    spare_params: Vec<types::Datum>,
    /// What `statements` are taken to cost.
    statement_bytes: usize,
    portals: Portals,
    /// Portals that an error has ended, until its block is over: their names, and whether they return rows.
    ended_portals: Vec<(String, bool)>,
    binding: Option<Binding>,
    /// Where the last statements other than queries were counted, by the role that ran them.
    utility_figures: RefCell<Vec<(Oid, Arc<sql_parse::monitor::statements::Figures>)>>,
    /// Names of the snapshots that the transaction has exported.
    exported: Vec<String>,
    /// Columns that the transaction gave other types (table, attribute number): what is known of their values goes with its commit.
    retyped: Vec<(Oid, i16)>,
    /// Statistics that the block has replaced.
    analyzed: Vec<Replaced>,
    /// Where notifications arrive, once it has listened.
    mailbox: Option<Arc<notify::Mailbox>>,
    /// The newest commit of this session; replies wait for it (a client may act on what it was told).
    gate: Lsn,
    /// The version of the catalog whose types values are read by; 0 if it is the transaction's own, or none.
    types_version: Cell<u64>,
}

/// Whether the current role may look into a schema; those it may not are left out of its search path.
fn may_use(catalog: &Catalog, identity: &Identity, schema: Oid) -> bool {
    let who = identity.who();
    catalog.get(schema).is_some_and(|o| privileges::held(catalog, who, o).contains(Privileges::USAGE))
}

/// What ALTER SYSTEM has said.
fn system_settings(catalog: &Catalog) -> Arc<[RoleSetting]> {
    let first = catalog.role_by_oid(engine_api::oids::ROLE_POSTGRES);
    first.map_or_else(Arc::default, |role| role.settings_of_system.as_slice().into())
}

/// What a session begins with, the weaker word first: the configuration's, that for all roles, the database's, the role's,
/// the role's in the database.
fn initial_settings(shared: &Shared, role: &[RoleSetting], catalog: &Catalog, database: &str) -> Vec<Initial> {
    let database = catalog.database(database);
    let here = database.map(|database| database.oid);
    let from = |source| move |s: &RoleSetting| Initial { name: s.name.clone(), value: s.value.clone(), source };
    let of_file = shared.settings.iter().map(|(name, value)| Initial {
        name: name.clone(),
        value: value.clone(),
        source: "configuration file",
    });
    let system = Arc::clone(&shared.system.lock().unwrap_or_else(PoisonError::into_inner));
    let of_system = system.iter().map(from("configuration file"));
    let first = catalog.role_by_oid(engine_api::oids::ROLE_POSTGRES);
    let of_all = first.into_iter().flat_map(|first| &first.settings_of_all).map(from("global"));
    let of_database = database.into_iter().flat_map(|database| &database.settings).map(from("database"));
    let of_role = role.iter().filter(|s| !s.database.is_valid()).map(from("user"));
    let of_both = role.iter().filter(|s| s.database.is_valid() && Some(s.database) == here).map(from("database user"));
    of_file.chain(of_system).chain(of_all).chain(of_database).chain(of_role).chain(of_both).collect()
}

/// The binding key of the session, remade when search path, role or settings change.
struct Binding {
    key: Arc<BindingKey>,
    hash: u64,
    settings_version: u64,
    catalog_version: u64,
    /// It was made of definitions of the open transaction: the catalog's version does not tell when they are taken back.
    of_own: bool,
}

impl Session {
    /// A session for a client that has been authenticated as `user`.
    ///
    /// # Errors
    /// FATAL 3D000 for an unknown database, 28000 for an unknown role, 22023 and the like for bad start-up parameters.
    pub fn new(
        shared: &Arc<Shared>,
        user: &str,
        database: &str,
        startup: &[(String, String)],
        client: ClientPlace,
        pid: i32,
    ) -> Result<Session> {
        let catalog = shared.engine.catalog();
        let fatal = |code, message| Error::fatal(code, message);
        let role = catalog.role(user).ok_or_else(|| {
            fatal(SqlState::INVALID_AUTHORIZATION_SPECIFICATION, format!("role \"{user}\" does not exist"))
        })?;
        if !role.login {
            return Err(fatal(
                SqlState::INVALID_AUTHORIZATION_SPECIFICATION,
                format!("role \"{user}\" is not permitted to log in"),
            ));
        }
        let (login_role, superuser) = (role.oid, role.superuser);
        let initial = initial_settings(shared, &role.settings, &catalog, database);
        let database = catalog
            .database(database)
            .ok_or_else(|| fatal(SqlState::INVALID_CATALOG_NAME, format!("database \"{database}\" does not exist")))?;
        if !database.takes_connections() {
            let message = format!("database \"{}\" is not currently accepting connections", database.name);
            return Err(fatal(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, message));
        }
        let identity = Identity {
            role: login_role,
            superuser,
            current_user: user.to_string(),
            session_user: user.to_string(),
            database: database.name.clone(),
            database_oid: database.oid,
            search_path: Vec::new(),
            client_addr: client.address.clone(),
        };
        let limit = catalog.role_by_oid(login_role).map_or(-1, |role| role.connection_limit);
        if limit >= 0 && !superuser && shared.monitor.sessions_of(login_role) >= limit as usize {
            let message = format!("too many connections for role \"{user}\"");
            return Err(fatal(SqlState::TOO_MANY_CONNECTIONS, message));
        }
        let who = Who { role: login_role, database: database.oid };
        if let Some(object) = catalog.get(database.oid)
            && !privileges::held(&catalog, who, object).contains(Privileges::CONNECT)
        {
            let message = format!("permission denied for database \"{}\"", database.name);
            return Err(
                fatal(SqlState::INSUFFICIENT_PRIVILEGE, message).detail("User does not have CONNECT privilege.")
            );
        }
        let startup = &*switches::expand(startup)?;
        let mut settings = Settings::new(&initial, startup, user, superuser, shared.max_connections)
            .map_err(|e| e.severity(base::Severity::Fatal))?;
        settings.show_memory_of(&shared.engine);
        let random = shared.host.random();
        let cancel = Arc::new(CancelToken::default());
        let stop = Arc::new(cancel::StatementStop::new(Arc::clone(&cancel), Arc::clone(&shared.host)));
        let now = shared.host.now();
        let listed = shared.monitor.list(pid, now, database.oid, login_role, client);
        if shared.monitor.is_dropping(listed.activity.database) || shared.engine.catalog().get(database.oid).is_none() {
            let message = format!("database \"{}\" does not exist", database.name);
            return Err(
                fatal(SqlState::INVALID_CATALOG_NAME, message).detail("It seems to have just been dropped or renamed.")
            );
        }
        listed.activity.set_application(&settings.show("application_name").unwrap_or_default());
        let session = Session {
            environment: Environment {
                engine: Arc::clone(&shared.engine),
                statistics: Arc::clone(&shared.statistics),
                settings: RefCell::new(settings),
                identity: RefCell::new(identity),
                login_role,
                login_superuser: superuser,
                acting: Cell::new(None),
                named_roles: RefCell::new(std::iter::once((user.to_string(), login_role)).collect()),
                host: Arc::clone(&shared.host),
                monitor: Arc::clone(&shared.monitor),
                listed,
                clock: Cell::new(now),
                notices: RefCell::default(),
                sequences: RefCell::default(),
                sequence_rights: Cell::new(None),
                prepared: RefCell::default(),
                cursors: RefCell::default(),
                exports: RefCell::default(),
                snapshots_named: Cell::new(0),
                pending: RefCell::default(),
                deferred: deferred::SharedDeferred::default(),
                channels: RefCell::default(),
                charge: memory::SessionCharge::new(&shared.engine),
                shared: Arc::downgrade(shared),
                random: Cell::new(random | 1),
                pid,
                sleep: Cell::new(0),
                sequence_gate: Cell::new(Lsn(0)),
                read_only: Cell::new(false),
                advisory: Advisory::default(),
                transaction_start: Cell::new(now),
                statement_start: Cell::new(now),
                cancel,
                stopped_by: Arc::clone(&stop) as Arc<dyn base::work::Stop>,
                stop,
            },
            shared: Arc::clone(shared),
            txn: None,
            message: None,
            ended: None,
            block: Block::None,
            temporary: Cell::new((false, false)),
            has_queried: false,
            has_deferrable: false,
            implicit_block: false,
            savepoints: Vec::new(),
            arguments: Arguments::default(),
            statement_at: 0,
            statements: FxHashMap::default(),
            spare_params: Vec::new(),
            statement_bytes: 0,
            portals: Portals::default(),
            ended_portals: Vec::new(),
            binding: None,
            utility_figures: RefCell::default(),
            exported: Vec::new(),
            retyped: Vec::new(),
            analyzed: Vec::new(),
            mailbox: None,
            gate: Lsn(0),
            types_version: Cell::new(0),
        };
        session.environment.begin_identity(&catalog, &initial, startup)?;
        Ok(session)
    }

    /// What cancels a running statement of this session.
    pub fn cancel_token(&self) -> Arc<CancelToken> {
        Arc::clone(&self.environment.cancel)
    }

    /// Settings announced at start-up.
    pub fn announced_settings(&self) -> Vec<(&'static str, String)> {
        self.environment.settings.borrow().reported().map(|(n, v)| (n, v.to_string())).collect()
    }

    /// `I`, `T` or `E`, as ReadyForQuery reports it.
    pub fn transaction_status(&self) -> u8 {
        match self.block {
            Block::None => b'I',
            Block::Open => b'T',
            Block::Failed => b'E',
        }
    }

    /// How long the client may be idle from now on, in milliseconds, and the error if it is for longer.
    pub fn idle_timeout(&self) -> Option<(u64, Error)> {
        let settings = self.environment.settings.borrow();
        let (ms, code, message) = match self.block {
            Block::None => (
                settings.idle_session_timeout_ms,
                SqlState::IDLE_SESSION_TIMEOUT,
                "terminating connection due to idle-session timeout",
            ),
            _ => (
                settings.idle_in_transaction_timeout_ms,
                SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT,
                "terminating connection due to idle-in-transaction timeout",
            ),
        };
        (ms > 0).then(|| (ms, Error::fatal(code, message)))
    }

    /// The output settings, for encoding replies.
    pub(crate) fn output_settings(&self) -> Arc<OutputSettings> {
        Arc::clone(self.environment.settings.borrow().output())
    }

    /// The catalog that statements of this session bind to now. From now on values are read by its types.
    fn catalog(&self) -> Arc<Catalog> {
        let catalog = match &self.txn {
            Some(txn) => txn.catalog(),
            None => self.shared.engine.catalog(),
        };
        self.types_version.set(if self.has_own_ddl() { 0 } else { catalog.version });
        types::user::bind_by(catalog.types());
        catalog
    }

    /// Resolves `search_path` to the schemas that exist.
    fn resolve_search_path(&self, catalog: &Catalog) -> Vec<Oid> {
        let identity = self.environment.identity.borrow();
        let mut path = Vec::new();
        let own = match self.may_have_temporary() {
            true => catalog.schema(identity.database_oid, &self.temporary_schema_name()).map(|s| s.oid),
            false => None,
        };
        for name in self.environment.settings.borrow().search_path() {
            let name = if name == "$user" { identity.current_user.clone() } else { name };
            if name == "pg_temp" {
                path.extend(own.filter(|schema| !path.contains(schema)));
                continue;
            }
            // Looking a schema up, and looking for it in the path.
            base::work::beat(64 + path.len() / 4);
            if let Some(schema) = catalog.schema(identity.database_oid, &name)
                && !path.contains(&schema.oid)
                && (identity.superuser || may_use(catalog, &identity, schema.oid))
            {
                path.push(schema.oid);
            }
        }
        if !path.contains(&engine_api::oids::SCHEMA_PG_CATALOG) {
            path.insert(0, engine_api::oids::SCHEMA_PG_CATALOG);
        }
        if let Some(own) = own.filter(|schema| !path.contains(schema)) {
            path.insert(0, own);
        }
        path
    }

    /// Brings search path and binding key up to date; cheap when nothing changed.
    fn refresh_binding(&mut self, catalog: &Catalog) {
        let settings_version = self.environment.settings.borrow().binding_version;
        if let Some(binding) = &self.binding
            && binding.settings_version == settings_version
            && binding.catalog_version == catalog.version
            && !binding.of_own
            && !self.has_own_ddl()
        {
            return;
        }
        self.shared.idle.renew(catalog.version);
        self.forget_rights();
        self.environment.adopt_identity(catalog);
        let search_path = self.resolve_search_path(catalog);
        let key = {
            let mut identity = self.environment.identity.borrow_mut();
            identity.search_path = search_path.clone();
            let settings = self.environment.settings.borrow();
            let shown = |name| settings.show(name).unwrap_or_default();
            BindingKey {
                database: identity.database_oid,
                role: identity.current_user.clone(),
                search_path,
                settings: format!(
                    "{}|{}|{}|{}|{}",
                    shown("TimeZone"),
                    shown("DateStyle"),
                    shown("IntervalStyle"),
                    shown("array_nulls"),
                    settings.methods.bits()
                ),
            }
        };
        let hash = key.hash64();
        let (catalog_version, of_own) = (catalog.version, self.has_own_ddl());
        self.binding = Some(Binding { key: Arc::new(key), hash, settings_version, catalog_version, of_own });
    }

    fn has_own_ddl(&self) -> bool {
        self.txn.as_ref().is_some_and(|txn| txn.has_definitions())
    }

    /// Sends the notices that there are; Parse and Bind leave theirs to be sent so.
    pub fn send_notices(&self, out: &mut dyn Output) {
        if self.environment.notices.borrow().is_empty() {
            return;
        }
        for notice in self.environment.notices.take() {
            if self.environment.settings.borrow().wants(&notice) {
                out.notice(&notice);
            }
        }
    }

    /// How the client's texts are converted; `None` for UTF-8.
    pub fn conversion(&self) -> Option<&'static Conversion> {
        self.environment.settings.borrow().conversion()
    }

    /// A statement that may have changed settings is done: what it changed of the encoding holds at once.
    fn follow_encoding(&self, out: &mut dyn Output) {
        let settings = self.environment.settings.borrow();
        if settings.has_reports() {
            out.encoding(settings.conversion());
        }
    }

    /// Tells the client which settings have changed; PostgreSQL does so right before ReadyForQuery.
    pub fn send_parameters(&self, out: &mut dyn Output) {
        if self.environment.settings.borrow().has_reports() {
            self.follow_encoding(out);
            for (name, value) in self.environment.settings.borrow_mut().take_reports() {
                if name == "application_name" {
                    self.environment.listed.activity.set_application(&value);
                }
                out.parameter(name, &value);
            }
        }
    }

    /// The client is gone or says goodbye: everything open is rolled back.
    pub fn terminate(&mut self) {
        self.stop_listening();
        self.abort_transaction();
        self.drop_temporary();
        self.temporary.set((false, false));
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.terminate();
    }
}
