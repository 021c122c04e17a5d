//! What expressions may see of their session: settings, times, sequences, identity ([`EvalContext`]).

use std::cell::{Cell, OnceCell, RefCell};
use std::sync::{Arc, Weak};

use base::work::{self, Stop};
use base::{Error, Lsn, Notice, Oid, Result, SqlState};
use engine_api::{
    AdvisoryKey, Catalog, Engine, LockRow, MemoryKind, PreparedTransaction, Privileges, SequenceDesc, SequenceState,
    Step,
};
use rustc_hash::FxHashMap;
use sql_functions::statistics::{Statistics, TableStatistics};
use sql_functions::{
    self as functions, AdvisoryRequest, EvalContext, Identity, LoginRule, OpenCursor, PreparedStatement, Server,
    Suspension,
};
use sql_parse::monitor::{Activity, Listed, Monitor};
use sql_parse::names::is_temporary;
use sql_parse::privileges::{self, Class};
use types::OutputSettings;
use types::encoding::Conversion;

use super::Shared;
use super::advisory::Advisory;
use super::cancel::{CancelToken, StatementStop};
use super::memory::SessionCharge;
use super::notify::{Channels, Pending};
use super::role::Setting;
use super::settings::Settings;

/// The part of a session that lives as long as the connection and that statements read.
pub struct Environment {
    /// The engine, for sequences.
    pub engine: Arc<dyn Engine>,
    /// What is known of the values in tables.
    pub statistics: Arc<Statistics>,
    /// Settings.
    pub settings: RefCell<Settings>,
    /// Who and where.
    pub identity: RefCell<Identity>,
    /// Whom the client has logged in as.
    pub login_role: Oid,
    /// Whether that was a superuser then: what the session is told of itself when it goes back to that role.
    pub login_superuser: bool,
    /// In whose name a security-restricted operation runs, if one does: nothing that it calls changes who the session is.
    pub acting: Cell<Option<Oid>>,
    /// Whom `role` and `session_authorization` meant when they were set.
    pub named_roles: RefCell<FxHashMap<String, Oid>>,
    /// The clock and randomness of the host.
    pub host: Arc<dyn Host>,
    /// What all sessions are doing.
    pub monitor: Arc<Monitor>,
    /// What this one is doing.
    pub listed: Listed,
    /// The clock as it was last read.
    pub clock: Cell<i64>,
    /// Notices not sent yet.
    pub notices: RefCell<Vec<Notice>>,
    /// `currval` by sequence, and the last one used.
    pub sequences: RefCell<(FxHashMap<Oid, i64>, Option<Oid>)>,
    /// Named prepared statements, for `pg_prepared_statements`.
    pub prepared: RefCell<Vec<PreparedStatement>>,
    /// What the current role may do with the sequence used last: sequence, role, version of the catalog.
    pub sequence_rights: Cell<Option<((Oid, Oid, u64), Privileges)>>,
    /// Named portals: `pg_cursors`, and where WHERE CURRENT OF finds its row.
    pub cursors: RefCell<Vec<OpenCursor>>,
    /// Snapshots that expressions export.
    pub exports: RefCell<Vec<String>>,
    /// How many have got names.
    pub snapshots_named: Cell<u32>,
    /// Notifications and changes of listening of the transaction.
    pub pending: RefCell<Pending>,
    /// Checks of constraints that the transaction has deferred to its end.
    pub(crate) deferred: super::deferred::SharedDeferred,
    /// The channels that the session listens to.
    pub channels: RefCell<Channels>,
    /// What it is charged with.
    pub charge: SessionCharge,
    /// What it shares with others.
    pub shared: Weak<Shared>,
    /// State of `random()`.
    pub random: Cell<u64>,
    /// Process number of the session, as `pg_backend_pid()` shows it.
    pub pid: i32,
    /// Microseconds for which expressions suspend the statement ([`EvalContext::suspend`]).
    pub sleep: Cell<i64>,
    /// Advisory locks.
    pub advisory: Advisory,
    /// The transaction is read-only.
    pub read_only: Cell<bool>,
    /// What replies must wait for because of sequence values that were handed out.
    pub sequence_gate: Cell<Lsn>,
    /// Start of the transaction.
    pub transaction_start: Cell<i64>,
    /// Start of the statement.
    pub statement_start: Cell<i64>,
    /// What cancels a running statement.
    pub cancel: Arc<CancelToken>,
    /// What stops a running statement: cancellation and `statement_timeout`.
    pub(super) stop: Arc<StatementStop>,
    /// The same, as work is told of it.
    pub(super) stopped_by: Arc<dyn Stop>,
}

impl Environment {
    /// The value of a setting as SHOW prints it; `None` for an unknown name.
    ///
    /// # Errors
    /// 42501 for one that only some may see.
    pub(super) fn shown(&self, name: &str, catalog: &Catalog) -> Result<Option<String>> {
        if Settings::is_secret(name) && !self.sees_secrets(catalog) {
            let message = format!("must be superuser or have privileges of pg_read_all_settings to examine \"{name}\"");
            return Err(Error::new(SqlState::INSUFFICIENT_PRIVILEGE, message));
        }
        Ok(self.settings.borrow().show(name))
    }

    /// All settings that the current role may see: name, value as SHOW prints it, description.
    pub(super) fn all_shown(&self, catalog: &Catalog) -> Vec<(&'static str, String, &'static str)> {
        let sees_all = self.sees_secrets(catalog);
        self.settings.borrow().all().filter(|(name, ..)| sees_all || !Settings::is_secret(name)).collect()
    }

    /// Whether the current role sees all settings.
    pub(super) fn sees_secrets(&self, catalog: &Catalog) -> bool {
        privileges::roles::has_privileges_of(catalog, self.who(), engine_api::oids::ROLE_READ_ALL_SETTINGS)
    }
}

/// What the process lends to sessions. SQL itself reads no clock.
pub trait Host: Send + Sync + 'static {
    /// Microseconds since 2000-01-01 00:00 UTC.
    fn now(&self) -> i64;
    /// Nanoseconds of a clock that never steps back.
    fn monotonic_nanos(&self) -> u64;
    /// A random seed.
    fn random(&self) -> u64;
    /// A future that completes after `ms` milliseconds, for timeouts.
    fn sleep(&self, ms: u64) -> std::pin::Pin<Box<dyn std::future::Future<Output = ()>>>;
    /// A future that completes when the other tasks of this core have had their turn, new input among them.
    fn turn(&self) -> std::pin::Pin<Box<dyn std::future::Future<Output = ()>>>;
    /// Writes a line to the server's log.
    fn log(&self, _line: &str) {}
    /// Reads the configuration's files again.
    fn reload(&self) {}
    /// Memory of the process as the system counts it, if it tells.
    fn resident_bytes(&self) -> Option<u64> {
        None
    }
    /// The rules of logging in, as their file has them now.
    fn login_rules(&self) -> Vec<LoginRule> {
        Vec::new()
    }
    /// Cancels the statement of a session; whether there is one with this number.
    fn cancel_backend(&self, _pid: i32) -> bool {
        false
    }
    /// Ends a session; whether there is one with this number.
    fn terminate_backend(&self, _pid: i32) -> bool {
        false
    }
    /// The SCRAM-SHA-256 verifier of a password; a verifier passes unchanged.
    ///
    /// # Errors
    /// 22023 for a password that cannot be prepared.
    fn password_verifier(&self, password: &str) -> Result<String>;
}

impl Server for Environment {
    fn engine(&self) -> &dyn Engine {
        &*self.engine
    }

    fn monitor(&self) -> &Monitor {
        &self.monitor
    }

    fn activity(&self) -> &Activity {
        &self.listed.activity
    }

    fn memory_limit_of(&self, kind: MemoryKind) -> Option<u64> {
        let shared = self.shared.upgrade()?;
        match kind {
            MemoryKind::Statements => Some(shared.statement_memory_limit()),
            MemoryKind::Plans => Some(shared.plan_memory_limit()),
            _ => None,
        }
    }

    fn resident_bytes(&self) -> Option<u64> {
        self.host.resident_bytes()
    }

    fn login_rules(&self) -> Vec<LoginRule> {
        self.host.login_rules()
    }

    fn conversion(&self) -> Option<&'static Conversion> {
        self.settings.borrow().conversion()
    }

    fn reload(&self) {
        match self.shared.upgrade() {
            Some(shared) => shared.reload(),
            None => self.host.reload(),
        }
    }

    fn cancel(&self, pid: i32) -> bool {
        self.host.cancel_backend(pid)
    }

    fn terminate(&self, pid: i32) -> bool {
        self.host.terminate_backend(pid)
    }
}

/// One statement's view of its session: the environment and the catalog the statement is bound to.
pub struct StatementContext<'a> {
    /// The session's part.
    pub environment: &'a Environment,
    /// Settings as they were when the statement began.
    pub output: Arc<OutputSettings>,
    /// Fetched when it is first asked for: few statements do while they run, and its counter is shared by all cores.
    catalog: OnceCell<Arc<Catalog>>,
}

/// What the engine answers once there is space in the log.
fn with_log_space<T>(ask: impl Fn() -> Result<Step<T>>) -> Result<T> {
    loop {
        match ask()? {
            Step::Ready(answer) => return Ok(answer),
            Step::Wait(wait) => {
                if !work::wait_for(wait)? {
                    let message = "could not write to the log: its next segment is being prepared";
                    return Err(Error::new(SqlState::DISK_FULL, message));
                }
            }
        }
    }
}

impl<'a> StatementContext<'a> {
    /// The context of a statement that starts now.
    pub fn new(environment: &'a Environment, catalog: Arc<Catalog>) -> StatementContext<'a> {
        let context = StatementContext::of_committed(environment);
        let _ = context.catalog.set(catalog);
        context
    }

    /// The context of a statement that starts now, in a transaction without definitions of its own.
    pub(crate) fn of_committed(environment: &'a Environment) -> StatementContext<'a> {
        let output = Arc::clone(environment.settings.borrow().output());
        StatementContext { environment, output, catalog: OnceCell::new() }
    }

    fn catalog_ref(&self) -> &Arc<Catalog> {
        self.catalog.get_or_init(|| self.environment.engine.catalog())
    }

    fn remember(&self, sequence: Oid, value: i64) {
        let mut sequences = self.environment.sequences.borrow_mut();
        sequences.0.insert(sequence, value);
        sequences.1 = Some(sequence);
    }

    fn sequence_name(&self, sequence: Oid) -> String {
        self.catalog_ref().get(sequence).map_or_else(|| sequence.to_string(), |o| o.name().to_string())
    }

    /// The definition of a sequence, as the statement sees it.
    fn sequence(&self, sequence: Oid) -> Result<&SequenceDesc> {
        self.catalog_ref().sequence(sequence).ok_or_else(|| functions::no_sequence(self.catalog_ref(), sequence))
    }

    /// Refuses the use of a sequence to a role that has none of `enough`. What was found is kept for the session: a default
    /// asks for every row.
    fn check_sequence(&self, sequence: Oid, enough: Privileges) -> Result<()> {
        let environment = self.environment;
        let identity = environment.identity.borrow();
        if identity.superuser {
            return Ok(());
        }
        let key = (sequence, identity.role, environment.engine.catalog_version());
        if let Some((known, held)) = environment.sequence_rights.get()
            && known == key
            && held.meets(enough)
        {
            return Ok(());
        }
        let catalog = self.catalog_ref();
        let Some(object) = catalog.get(sequence) else { return Ok(()) };
        let who = identity.who();
        let held = privileges::held(catalog, who, object);
        environment.sequence_rights.set(Some((key, held)));
        if held.meets(enough) {
            return Ok(());
        }
        Err(privileges::denied(Class::Sequence, object.name()))
    }

    /// The next value, which the session remembers.
    fn draw(&self, desc: &SequenceDesc) -> Result<i64> {
        self.check_may_write(desc.oid, "nextval()")?;
        let (value, gate) = with_log_space(|| self.environment.engine.sequence_draw(desc))?;
        self.environment.sequence_gate.set(self.environment.sequence_gate.get().max(gate));
        self.remember(desc.oid, value);
        Ok(value)
    }

    /// 25006 in a read-only transaction, but for a temporary sequence.
    fn check_may_write(&self, sequence: Oid, what: &str) -> Result<()> {
        let is_temporary = || {
            let catalog = self.catalog();
            catalog.sequence(sequence).is_some_and(|s| is_temporary(&catalog, s.schema))
        };
        match self.environment.read_only.get() && !is_temporary() {
            true => Err(super::query::read_only_error(what)),
            false => Ok(()),
        }
    }

    fn not_defined(&self, sequence: Oid) -> Error {
        Error::new(
            SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
            format!("currval of sequence \"{}\" is not yet defined in this session", self.sequence_name(sequence)),
        )
    }
}

impl EvalContext for StatementContext<'_> {
    fn settings(&self) -> &OutputSettings {
        &self.output
    }

    fn transaction_timestamp(&self) -> i64 {
        self.environment.transaction_start.get()
    }

    fn statement_timestamp(&self) -> i64 {
        self.environment.statement_start.get()
    }

    fn clock_timestamp(&self) -> i64 {
        // An expression behind `pg_sleep` sees the time at which the sleep will be over.
        self.environment.host.now().saturating_add(self.environment.sleep.get())
    }

    fn random(&self) -> f64 {
        // xorshift64*: fast and uniform enough for SQL's random(); not for secrets.
        let mut x = self.environment.random.get();
        x ^= x >> 12;
        x ^= x << 25;
        x ^= x >> 27;
        self.environment.random.set(x);
        (x.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11) as f64 / (1u64 << 53) as f64
    }

    fn set_seed(&self, seed: f64) {
        self.environment.random.set(seed.to_bits() ^ 0x9e37_79b9_7f4a_7c15 | 1);
    }

    fn next_value(&self, sequence: Oid) -> Result<i64> {
        let desc = self.sequence(sequence)?;
        self.check_sequence(sequence, Privileges::USAGE | Privileges::UPDATE)?;
        self.draw(desc)
    }

    fn next_identity(&self, sequence: Oid) -> Result<i64> {
        self.draw(self.sequence(sequence)?)
    }

    fn may_see_sequence(&self, sequence: Oid) -> Result<()> {
        self.check_sequence(sequence, Privileges::USAGE | Privileges::SELECT)
    }

    fn current_value(&self, sequence: Oid) -> Result<i64> {
        self.check_sequence(sequence, Privileges::USAGE | Privileges::SELECT)?;
        let value = self.environment.sequences.borrow().0.get(&sequence).copied();
        value.ok_or_else(|| self.not_defined(sequence))
    }

    fn set_value(&self, sequence: Oid, value: i64, is_called: bool) -> Result<()> {
        self.check_sequence(sequence, Privileges::UPDATE)?;
        self.check_may_write(sequence, "setval()")?;
        let desc = self.sequence(sequence)?;
        if value < desc.min || value > desc.max {
            return Err(Error::new(
                SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
                format!(
                    "setval: value {value} is out of bounds for sequence \"{}\" ({}..{})",
                    desc.name, desc.min, desc.max
                ),
            ));
        }
        let state = SequenceState { last_value: value, is_called };
        with_log_space(|| self.environment.engine.sequence_set(desc, state))?;
        if is_called {
            // For currval, not for lastval.
            self.environment.sequences.borrow_mut().0.insert(sequence, value);
        }
        Ok(())
    }

    fn last_value(&self) -> Result<i64> {
        // A sequence that is gone has left nothing behind.
        let last = self.environment.sequences.borrow().1.filter(|&sequence| self.sequence(sequence).is_ok());
        match last {
            Some(sequence) => self.current_value(sequence),
            None => Err(Error::new(
                SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
                "lastval is not yet defined in this session",
            )),
        }
    }

    fn setting(&self, name: &str) -> Result<Option<String>> {
        if !Settings::is_secret(name) {
            return Ok(self.environment.settings.borrow().show(name));
        }
        self.environment.shown(name, self.catalog_ref())
    }

    fn setting_values(&self) -> Vec<sql_functions::SettingValue> {
        let mut values = self.environment.settings.borrow().values();
        if !self.environment.sees_secrets(self.catalog_ref()) {
            values.retain(|value| !Settings::is_secret(value.name));
        }
        values
    }

    fn relation_bytes(&self, relation: Oid) -> Option<u64> {
        self.environment.engine.relation_bytes(relation)
    }

    fn all_settings(&self) -> Vec<(&'static str, String, &'static str)> {
        self.environment.all_shown(self.catalog_ref())
    }

    fn prepared_statements(&self) -> Vec<PreparedStatement> {
        self.environment.prepared.borrow().clone()
    }

    fn cursors(&self) -> Vec<OpenCursor> {
        self.environment.cursors.borrow().clone()
    }

    fn cursor_row(&self, cursor: &str, table: Oid, name: &str) -> Result<base::RowId> {
        super::portal::current_row(&self.environment.cursors.borrow(), cursor, table, name)
    }

    fn next_snapshot(&self) -> Result<String> {
        self.environment.next_snapshot()
    }

    fn notify(&self, channel: &str, payload: &str) -> Result<()> {
        self.environment.pending.borrow_mut().notify(channel, payload)
    }

    fn listening_channels(&self) -> Vec<Arc<str>> {
        self.environment.channels.borrow().iter().map(Arc::clone).collect()
    }

    fn notification_usage(&self) -> f64 {
        self.environment.shared.upgrade().map_or(0.0, |shared| shared.hub.usage())
    }

    fn sequence_state(&self, sequence: Oid) -> Result<(i64, bool)> {
        let state = self.environment.engine.sequence_get(self.sequence(sequence)?)?;
        Ok((state.last_value, state.is_called))
    }

    fn set_setting(&self, name: &str, value: Option<&str>, local: bool) -> Result<()> {
        if ["transaction_isolation", "transaction_read_only", "transaction_deferrable"]
            .iter()
            .any(|fixed| fixed.eq_ignore_ascii_case(name))
        {
            return Err(
                Error::unsupported(format!("set_config of {name} is not supported")).hint("Use SET TRANSACTION.")
            );
        }
        if let Some(setting) = Setting::of(name) {
            return self.environment.change_identity(self.catalog_ref(), setting, value, local);
        }
        let mut settings = self.environment.settings.borrow_mut();
        let level = settings.depth;
        match value {
            Some(value) => settings.set(name, value, local, level),
            None => settings.reset(name, local, level),
        }
    }

    fn identity(&self) -> Identity {
        self.environment.identity.borrow().clone()
    }

    fn catalog(&self) -> Arc<Catalog> {
        Arc::clone(self.catalog_ref())
    }

    fn notice(&self, notice: Notice) {
        self.environment.notices.borrow_mut().push(notice);
    }

    fn backend_pid(&self) -> i32 {
        self.environment.pid
    }

    fn take_advisory(&self, wanted: AdvisoryRequest, waits: bool) -> Result<bool> {
        self.environment.advisory.take(self.environment, wanted, waits)
    }

    fn give_advisory(&self, key: AdvisoryKey, is_shared: bool) -> bool {
        self.environment.advisory.unlock(key, is_shared)
    }

    fn give_all_advisory(&self) {
        self.environment.advisory.unlock_all();
    }

    fn locks(&self) -> Vec<LockRow> {
        self.environment.engine.locks()
    }

    fn prepared_transactions(&self) -> Vec<PreparedTransaction> {
        self.environment.engine.prepared()
    }

    fn blockers_of(&self, session: u32) -> Vec<u32> {
        self.environment.engine.blockers_of(session)
    }

    fn server(&self) -> Option<&dyn Server> {
        Some(self.environment)
    }

    fn suspend(&self, suspension: Suspension) -> Result<()> {
        match suspension {
            Suspension::Sleep(micros) => {
                self.environment.sleep.set(self.environment.sleep.get().saturating_add(micros))
            }
            Suspension::Export(name) => {
                self.environment.exports.borrow_mut().push(name);
                // The statement stops for it as for a sleep.
                self.environment.sleep.set(self.environment.sleep.get().saturating_add(1));
            }
        }
        Ok(())
    }

    fn is_suspended(&self) -> bool {
        self.environment.sleep.get() != 0 || self.environment.advisory.is_requested()
    }

    fn statistics(&self, table: Oid) -> Option<Arc<TableStatistics>> {
        self.environment.statistics.table(table)
    }
}
