//! Run-time settings of a session: `SET`, `SHOW`, `SET LOCAL`, and the typed values that the executor reads.
//!
//! Responsible for: the table of settings, parsing and checking values, undoing changes at rollback.
//! Not responsible for: what a setting does.
//! Invariant: [`Settings::output`] always agrees with the text values.

use std::sync::Arc;

use base::{Error, Notice, Result, SqlState};
use engine_api::{Durability, Isolation};
use types::{DateOrder, DateStyle, IntervalStyle, OutputSettings};

/// How a setting's text is checked.
#[derive(Clone, Copy)]
enum Kind {
    Bool,
    /// Integer in the unit given (None, `ms`, `kB`), with bounds.
    Int {
        min: i64,
        max: i64,
        unit: &'static str,
    },
    Real,
    Text,
    Enum(&'static [&'static str]),
    /// As `Enum`; the second list is understood too, but not offered.
    EnumWith(&'static [&'static str], &'static [&'static str]),
    /// The one value that is supported of a boolean.
    AlwaysOn,
    /// Shown, never set.
    Fixed,
}

struct Spec {
    name: &'static str,
    default: &'static str,
    kind: Kind,
    /// Reported to the client by ParameterStatus when it changes.
    report: bool,
    about: &'static str,
}

const MS: Kind = Kind::Int { min: 0, max: i32::MAX as i64, unit: "ms" };
const KB: Kind = Kind::Int { min: 0, max: i32::MAX as i64, unit: "kB" };
const LEVELS: Kind = Kind::EnumWith(
    &["debug5", "debug4", "debug3", "debug2", "debug1", "log", "notice", "warning", "error"],
    &["debug", "info"],
);
const ISOLATION: Kind = Kind::Enum(&["serializable", "repeatable read", "read committed", "read uncommitted"]);

macro_rules! specs {
    ($($name:literal, $default:expr, $kind:expr, $report:expr, $about:literal;)+) => {
        &[$(Spec { name: $name, default: $default, kind: $kind, report: $report, about: $about }),+]
    };
}

/// The version whose behaviour is followed (rule R19).
pub const SERVER_VERSION: &str = "15.18";

/// In order of name, case-folded.
static SPECS: &[Spec] = specs! {
    "application_name", "", Kind::Text, true, "Sets the application name to be reported in statistics and logs.";
    "bytea_output", "hex", Kind::Enum(&["escape", "hex"]), false, "Sets the output format for bytea.";
    "check_function_bodies", "on", Kind::Bool, false, "Check routine bodies during CREATE FUNCTION and CREATE PROCEDURE.";
    "client_encoding", "UTF8", Kind::Text, true, "Sets the client's character set encoding.";
    "client_min_messages", "notice", LEVELS, false, "Sets the message levels that are sent to the client.";
    "DateStyle", "ISO, MDY", Kind::Text, true, "Sets the display format for date and time values.";
    "default_table_access_method", "heap", Kind::Text, false, "Sets the default table access method for new tables.";
    "default_tablespace", "", Kind::Text, false, "Sets the default tablespace to create tables and indexes in.";
    "default_transaction_deferrable", "off", Kind::Bool, false, "Sets the default deferrable status of new transactions.";
    "default_transaction_isolation", "read committed", ISOLATION, false, "Sets the transaction isolation level of each new transaction.";
    "default_transaction_read_only", "off", Kind::Bool, true, "Sets the default read-only status of new transactions.";
    "enable_hashjoin", "on", Kind::Bool, false, "Enables the planner's use of hash join plans.";
    "enable_indexscan", "on", Kind::Bool, false, "Enables the planner's use of index-scan plans.";
    "enable_nestloop", "on", Kind::Bool, false, "Enables the planner's use of nested-loop join plans.";
    "enable_seqscan", "on", Kind::Bool, false, "Enables the planner's use of sequential-scan plans.";
    "extra_float_digits", "1", Kind::Int { min: -15, max: 3, unit: "" }, false, "Sets the number of digits displayed for floating-point values.";
    "idle_in_transaction_session_timeout", "0", MS, false, "Sets the maximum allowed idle time between queries, when in a transaction.";
    "idle_session_timeout", "0", MS, false, "Sets the maximum allowed idle time between queries, when not in a transaction.";
    "in_hot_standby", "off", Kind::Fixed, true, "Shows whether hot standby is currently active.";
    "integer_datetimes", "on", Kind::Fixed, true, "Shows whether datetimes are integer based.";
    "IntervalStyle", "postgres", Kind::Enum(&["postgres", "postgres_verbose", "sql_standard", "iso_8601"]), true, "Sets the display format for interval values.";
    "is_superuser", "on", Kind::Fixed, true, "Shows whether the current user is a superuser.";
    "jit", "off", Kind::Bool, false, "Allow JIT compilation.";
    "lc_collate", "C.UTF-8", Kind::Fixed, false, "Shows the collation order locale.";
    "lc_ctype", "C.UTF-8", Kind::Fixed, false, "Shows the character classification and case conversion locale.";
    "lc_messages", "C.UTF-8", Kind::Text, false, "Sets the language in which messages are displayed.";
    "lc_monetary", "C.UTF-8", Kind::Text, false, "Sets the locale for formatting monetary amounts.";
    "lc_numeric", "C.UTF-8", Kind::Text, false, "Sets the locale for formatting numbers.";
    "lc_time", "C.UTF-8", Kind::Text, false, "Sets the locale for formatting date and time values.";
    "lock_timeout", "0", MS, false, "Sets the maximum allowed duration of any wait for a lock.";
    "log_min_duration_statement", "-1", Kind::Int { min: -1, max: i32::MAX as i64, unit: "ms" }, false, "Sets the minimum execution time above which all statements will be logged.";
    "log_statement", "none", Kind::Enum(&["none", "ddl", "mod", "all"]), false, "Sets the type of statements logged.";
    "maintenance_work_mem", "65536", KB, false, "Sets the maximum memory to be used for maintenance operations.";
    "max_connections", "100", Kind::Fixed, false, "Sets the maximum number of concurrent connections.";
    "max_identifier_length", "63", Kind::Fixed, false, "Shows the maximum identifier length.";
    "max_index_keys", "32", Kind::Fixed, false, "Shows the maximum number of index keys.";
    "quote_all_identifiers", "off", Kind::Bool, false, "When generating SQL fragments, quote all identifiers.";
    "random_page_cost", "4", Kind::Real, false, "Sets the planner's estimate of the cost of a nonsequentially fetched disk page.";
    "role", "none", Kind::Text, false, "Sets the current role.";
    "row_security", "on", Kind::Bool, false, "Enable row security.";
    "search_path", "\"$user\", public", Kind::Text, false, "Sets the schema search order for names that are not schema-qualified.";
    "server_encoding", "UTF8", Kind::Fixed, true, "Shows the server (database) character set encoding.";
    "server_version", SERVER_VERSION, Kind::Fixed, true, "Shows the server version.";
    "server_version_num", "150018", Kind::Fixed, false, "Shows the server version as an integer.";
    "session_authorization", "postgres", Kind::Fixed, true, "Shows the session user name.";
    "standard_conforming_strings", "on", Kind::AlwaysOn, true, "Causes '...' strings to treat backslashes literally.";
    "statement_timeout", "0", MS, false, "Sets the maximum allowed duration of any statement.";
    "synchronize_seqscans", "on", Kind::Bool, false, "Enable synchronized sequential scans.";
    "synchronous_commit", "on", Kind::Enum(&["local", "remote_write", "remote_apply", "on", "off"]), false, "Sets the current transaction's synchronization level.";
    "temp_buffers", "1024", Kind::Int { min: 100, max: 1073741823, unit: "" }, false, "Sets the maximum number of temporary buffers used by each session.";
    "TimeZone", "UTC", Kind::Text, true, "Sets the time zone for displaying and interpreting time stamps.";
    "transaction_deferrable", "off", Kind::Bool, false, "Whether to defer a read-only serializable transaction.";
    "transaction_isolation", "read committed", ISOLATION, false, "Sets the current transaction's isolation level.";
    "transaction_read_only", "off", Kind::Bool, false, "Sets the current transaction's read-only status.";
    "vacuum_cost_delay", "0", Kind::Real, false, "Vacuum cost delay in milliseconds.";
    "work_mem", "4096", KB, false, "Sets the maximum memory to be used for query workspaces.";
    "xmloption", "content", Kind::Enum(&["content", "document"]), false, "Sets whether XML data is considered as documents or fragments.";
};

#[derive(Clone)]
struct Value {
    text: Arc<str>,
    /// What RESET goes back to: the default, or what the start-up packet asked for.
    reset: Arc<str>,
}

/// A setting of the table, or one of an extension's or application's.
#[derive(Clone, PartialEq, Eq)]
enum Place {
    Spec(usize),
    Custom(String),
}

#[derive(Clone)]
struct Change {
    place: Place,
    /// The value before; only a custom setting can have had none.
    old: Option<Arc<str>>,
    local: bool,
    /// Nesting depth of savepoints at the time.
    level: u32,
}

/// The settings of one session.
pub struct Settings {
    values: Vec<Value>,
    /// Dotted names of extensions and applications.
    custom: Vec<(String, Arc<str>)>,
    /// Changes of the running transaction, oldest first, for undo.
    changes: Vec<Change>,
    /// Typed copy of what input and output read.
    output: Arc<OutputSettings>,
    /// `synchronous_commit`, as commits take it.
    durability: Durability,
    /// `default_transaction_isolation`
    default_isolation: Isolation,
    /// `default_transaction_read_only`
    default_read_only: bool,
    /// See [`Settings::has_usual_modes`].
    has_usual_modes: bool,
    /// `lock_timeout` in milliseconds, 0 = none.
    pub lock_timeout_ms: u64,
    /// `statement_timeout` in milliseconds, 0 = none.
    pub statement_timeout_ms: u64,
    /// `idle_in_transaction_session_timeout` in milliseconds, 0 = none.
    pub idle_in_transaction_timeout_ms: u64,
    /// `idle_session_timeout` in milliseconds, 0 = none.
    pub idle_session_timeout_ms: u64,
    /// `log_statement`: 0 `none`, 1 `ddl`, 2 `mod`, 3 `all`.
    pub log_statement: u8,
    /// `log_min_duration_statement` in milliseconds, -1 = off.
    pub log_min_duration_ms: i64,
    /// Changes to be reported by ParameterStatus: (name, value).
    reports: Vec<(&'static str, Arc<str>)>,
    /// What the client knows of each setting that is reported.
    announced: Vec<Arc<str>>,
    /// Rises when a setting that binding reads changes (search_path, DateStyle, TimeZone …).
    pub binding_generation: u64,
}

fn find(name: &str) -> Option<usize> {
    let name = match name {
        n if n.eq_ignore_ascii_case("time zone") => "TimeZone",
        n => n,
    };
    SPECS.iter().position(|s| s.name.eq_ignore_ascii_case(name))
}

fn unrecognized(name: &str) -> Error {
    Error::new(SqlState::UNDEFINED_OBJECT, format!("unrecognized configuration parameter \"{name}\""))
}

fn invalid(name: &str, value: &str) -> Error {
    Error::new(SqlState::INVALID_PARAMETER_VALUE, format!("invalid value for parameter \"{name}\": \"{value}\""))
}

/// An encoding's name as PostgreSQL compares it: letters and digits only.
fn encoding_name(written: &str) -> String {
    written.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_uppercase()).collect()
}

/// PostgreSQL's boolean spellings, unambiguous prefixes included.
pub fn parse_bool(text: &str) -> Option<bool> {
    let t = text.to_ascii_lowercase();
    match t.as_str() {
        "on" | "1" => Some(true),
        "of" | "off" | "0" => Some(false),
        "" | "o" => None,
        _ if "true".starts_with(&t) || "yes".starts_with(&t) => Some(true),
        _ if "false".starts_with(&t) || "no".starts_with(&t) => Some(false),
        _ => None,
    }
}

fn parse_int(name: &str, text: &str, min: i64, max: i64, unit: &str) -> Result<i64> {
    let t = text.trim();
    let digits = t.find(|c: char| !(c.is_ascii_digit() || "+-.".contains(c))).unwrap_or(t.len());
    let (number, suffix) = (t[..digits].trim(), t[digits..].trim());
    if number.is_empty() {
        return Err(invalid(name, text));
    }
    let scale: f64 = match (unit, suffix) {
        (_, "") => 1.0,
        ("ms", "us") => 0.001,
        ("ms", "ms") => 1.0,
        ("ms", "s") => 1e3,
        ("ms", "min") => 6e4,
        ("ms", "h") => 36e5,
        ("ms", "d") => 864e5,
        ("kB", "B") => 1.0 / 1024.0,
        ("kB", "kB") => 1.0,
        ("kB", "MB") => 1024.0,
        ("kB", "GB") => 1048576.0,
        ("kB", "TB") => 1073741824.0,
        ("ms", _) => {
            return Err(invalid(name, text)
                .hint("Valid units for this parameter are \"us\", \"ms\", \"s\", \"min\", \"h\", and \"d\"."));
        }
        ("kB", _) => {
            return Err(invalid(name, text)
                .hint("Valid units for this parameter are \"B\", \"kB\", \"MB\", \"GB\", and \"TB\"."));
        }
        _ => return Err(invalid(name, text)),
    };
    let value: f64 = number.parse().map_err(|_| invalid(name, text))?;
    let value = (value * scale).round();
    if value < min as f64 || value > max as f64 {
        let unit = if unit.is_empty() { String::new() } else { format!(" {unit}") };
        return Err(Error::new(
            SqlState::INVALID_PARAMETER_VALUE,
            format!("{value}{unit} is outside the valid range for parameter \"{name}\" ({min} .. {max})"),
        ));
    }
    Ok(value as i64)
}

/// A number with the largest unit that divides it, as SHOW prints.
fn show_unit(value: i64, unit: &str) -> String {
    let steps: &[(i64, &str)] = match unit {
        "ms" => &[(86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1000, "s"), (1, "ms")],
        "kB" => &[(1 << 30, "TB"), (1 << 20, "GB"), (1 << 10, "MB"), (1, "kB")],
        _ => return value.to_string(),
    };
    match steps.iter().find(|(step, _)| value != 0 && value % step == 0) {
        Some((step, name)) => format!("{}{name}", value / step),
        None => value.to_string(),
    }
}

impl Settings {
    /// Defaults, with the start-up packet's wishes on top.
    pub fn new(
        given: &[(String, String)],
        startup: &[(String, String)],
        user: &str,
        superuser: bool,
        max_connections: usize,
    ) -> Result<Settings> {
        let values = SPECS
            .iter()
            .map(|s| {
                let text: Arc<str> = match s.name {
                    "session_authorization" => user.into(),
                    "is_superuser" => if superuser { "on" } else { "off" }.into(),
                    "max_connections" => max_connections.to_string().into(),
                    _ => s.default.into(),
                };
                Value { reset: Arc::clone(&text), text }
            })
            .collect();
        let mut settings = Settings {
            values,
            custom: Vec::new(),
            changes: Vec::new(),
            output: Arc::default(),
            durability: Durability::On,
            default_isolation: Isolation::ReadCommitted,
            default_read_only: false,
            has_usual_modes: true,
            lock_timeout_ms: 0,
            statement_timeout_ms: 0,
            idle_in_transaction_timeout_ms: 0,
            log_statement: 0,
            log_min_duration_ms: -1,
            idle_session_timeout_ms: 0,
            reports: Vec::new(),
            announced: Vec::new(),
            binding_generation: 0,
        };
        for (name, value) in given {
            settings.adopt(name, value);
        }
        for (name, value) in startup {
            settings.set(name, value, false, 0)?;
        }
        settings.commit();
        for value in &mut settings.values {
            value.reset = Arc::clone(&value.text);
        }
        settings.reports.clear();
        settings.announced = settings.values.iter().map(|value| Arc::clone(&value.text)).collect();
        Ok(settings)
    }

    /// What input and output functions read.
    pub fn output(&self) -> &Arc<OutputSettings> {
        &self.output
    }

    /// Everything that ParameterStatus announces at start-up.
    pub fn reported(&self) -> impl Iterator<Item = (&'static str, &str)> {
        SPECS.iter().zip(&self.values).filter(|(s, _)| s.report).map(|(s, v)| (s.name, &*v.text))
    }

    /// Takes the changes to announce now: of what is not as the client knows it.
    pub fn take_reports(&mut self) -> Vec<(&'static str, Arc<str>)> {
        let mut reports = std::mem::take(&mut self.reports);
        reports.sort_by_key(|(name, _)| find(name));
        reports.retain(|(name, text)| {
            let known = SPECS.iter().position(|s| s.name == *name).and_then(|at| self.announced.get_mut(at));
            known.is_none_or(|known| std::mem::replace(known, Arc::clone(text)) != *text)
        });
        reports
    }

    /// Whether there is something to announce.
    pub fn has_reports(&self) -> bool {
        !self.reports.is_empty()
    }

    /// All settings as pg_settings shows them.
    pub fn values(&self) -> Vec<crate::functions::SettingValue> {
        let source = |spec: &Spec, value: &Value| match () {
            () if value.text != value.reset => "session",
            () if *value.reset == *spec.default => "default",
            () if matches!(spec.kind, Kind::Fixed) => "override",
            () => "client",
        };
        let both = SPECS.iter().zip(&self.values);
        both.map(|(spec, value)| crate::functions::SettingValue {
            name: spec.name,
            value: Arc::clone(&value.text),
            reset: Arc::clone(&value.reset),
            boot: spec.default,
            source: source(spec, value),
            about: spec.about,
        })
        .collect()
    }

    /// All settings: name, value as SHOW prints it, description.
    pub fn all(&self) -> impl Iterator<Item = (&'static str, String, &'static str)> {
        SPECS.iter().enumerate().map(|(i, s)| (s.name, self.shown(i), s.about))
    }

    fn shown(&self, spec: usize) -> String {
        let text = &self.values[spec].text;
        match SPECS[spec].kind {
            Kind::Int { unit, .. } => text.parse().map(|n| show_unit(n, unit)).unwrap_or_else(|_| text.to_string()),
            _ => text.to_string(),
        }
    }

    /// The value as SHOW prints it; `None` for an unknown name.
    pub fn show(&self, name: &str) -> Option<String> {
        match find(name) {
            Some(spec) => Some(self.shown(spec)),
            None => self.custom.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, v)| v.to_string()),
        }
    }

    /// The canonical spelling of a setting's name.
    pub fn canonical_name<'a>(&self, name: &'a str) -> &'a str
    where
        'static: 'a,
    {
        find(name).map_or(name, |i| SPECS[i].name)
    }

    fn text(&self, name: &str) -> &str {
        find(name).map_or("", |i| &self.values[i].text)
    }

    /// `SET`. `level` is the savepoint depth of the running transaction.
    pub fn set(&mut self, name: &str, value: &str, local: bool, level: u32) -> Result<()> {
        let Some(spec) = find(name) else {
            return self.set_custom(name, Some(value), local, level);
        };
        self.check_right(spec)?;
        let text = self.check(spec, name, value)?;
        self.change(spec, text, local, level)
    }

    /// Whether a setting may begin with a value in other sessions.
    pub(super) fn check_for_others(&self, name: &str, value: &str) -> Result<()> {
        match find(name) {
            Some(spec) => {
                self.check_right(spec)?;
                self.check(spec, name, value).map(drop)
            }
            None if name.contains('.') => Ok(()),
            None => Err(unrecognized(name)),
        }
    }

    /// The spelling of a setting's name.
    pub(super) fn canonical_of(&self, name: &str) -> String {
        find(name).map_or_else(|| name.to_string(), |spec| SPECS[spec].name.to_string())
    }

    /// Takes the value that an administrator has said; what is no longer understood is left out.
    fn adopt(&mut self, name: &str, value: &str) {
        let _ = match find(name) {
            Some(spec) => self.check(spec, name, value).and_then(|text| self.change(spec, text, false, 0)),
            None => self.set_custom(name, Some(value), false, 0),
        };
    }

    /// What the server logs is no business of those who are watched by it.
    fn check_right(&self, spec: usize) -> Result<()> {
        let name = SPECS[spec].name;
        if name.starts_with("log_") && self.text("is_superuser") != "on" {
            let message = format!("permission denied to set parameter \"{name}\"");
            return Err(Error::new(SqlState::INSUFFICIENT_PRIVILEGE, message));
        }
        Ok(())
    }

    /// Changes a setting to a value that the caller has checked.
    pub(super) fn set_checked(&mut self, name: &str, value: &str, local: bool, level: u32) -> Result<()> {
        let spec = find(name).ok_or_else(|| unrecognized(name))?;
        self.change(spec, value.into(), local, level)
    }

    /// Changes a setting that follows from others; it is made anew whenever they change.
    pub(super) fn derive(&mut self, name: &str, value: &str) {
        if let Some(spec) = find(name) {
            // Such settings have no form that could be wrong.
            let _ = self.assign(spec, value.into());
        }
    }

    /// Whether a setting would take a value.
    pub fn check_value(&self, name: &str, value: &str) -> Result<()> {
        let spec = find(name).ok_or_else(|| unrecognized(name))?;
        self.check(spec, name, value).map(drop)
    }

    /// `RESET` / `SET … TO DEFAULT`.
    pub fn reset(&mut self, name: &str, local: bool, level: u32) -> Result<()> {
        let spec = match find(name) {
            Some(spec) => spec,
            None if name.contains('.') => return self.set_custom(name, None, local, level),
            None => return Err(unrecognized(name)),
        };
        if matches!(SPECS[spec].kind, Kind::Fixed) && SPECS[spec].name != "session_authorization" {
            return Err(cannot_change(SPECS[spec].name));
        }
        self.check_right(spec)?;
        let text = Arc::clone(&self.values[spec].reset);
        self.change(spec, text, local, level)
    }

    /// `RESET ALL`.
    pub fn reset_all(&mut self, level: u32) -> Result<()> {
        for (spec, definition) in SPECS.iter().enumerate() {
            let transactional = definition.name.starts_with("transaction_");
            if !transactional && self.values[spec].text != self.values[spec].reset {
                let text = Arc::clone(&self.values[spec].reset);
                self.change(spec, text, false, level)?;
            }
        }
        let names: Vec<String> = self.custom.iter().map(|(name, _)| name.clone()).collect();
        names.iter().try_for_each(|name| self.set_custom(name, None, false, level))
    }

    fn set_custom(&mut self, name: &str, value: Option<&str>, local: bool, level: u32) -> Result<()> {
        if !name.contains('.') {
            return Err(unrecognized(name));
        }
        let old = self.custom.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, v)| Arc::clone(v));
        // RESET leaves a custom setting empty, as PostgreSQL does: it was never defined by an extension.
        let new = match (value, &old) {
            (None, None) => return Ok(()),
            (value, _) => value.unwrap_or_default(),
        };
        self.changes.push(Change { place: Place::Custom(name.to_ascii_lowercase()), old, local, level });
        self.assign_custom(name, Some(new.into()));
        Ok(())
    }

    fn assign_custom(&mut self, name: &str, value: Option<Arc<str>>) {
        let at = self.custom.iter().position(|(n, _)| n.eq_ignore_ascii_case(name));
        match (at, value) {
            (Some(at), Some(value)) => self.custom[at].1 = value,
            // Once set in a session, it is known; rolled back, it is empty.
            (Some(at), None) => self.custom[at].1 = "".into(),
            (None, Some(value)) => self.custom.push((name.to_string(), value)),
            (None, None) => {}
        }
    }

    /// The value as it is kept. `written` is the name as the statement has it, which most errors repeat.
    fn check(&self, spec: usize, written: &str, value: &str) -> Result<Arc<str>> {
        let Spec { name, kind, .. } = SPECS[spec];
        let not_boolean = || {
            let message = format!("parameter \"{written}\" requires a Boolean value");
            Error::new(SqlState::INVALID_PARAMETER_VALUE, message)
        };
        Ok(match kind {
            Kind::Fixed => return Err(cannot_change(name)),
            Kind::Bool => match parse_bool(value) {
                Some(true) => "on".into(),
                Some(false) => "off".into(),
                None => return Err(not_boolean()),
            },
            Kind::AlwaysOn => match parse_bool(value) {
                Some(true) => "on".into(),
                Some(false) => return Err(Error::unsupported(format!("{name} = off is not supported"))),
                None => return Err(not_boolean()),
            },
            Kind::Int { min, max, unit } => parse_int(written, value, min, max, unit)?.to_string().into(),
            Kind::Real => {
                value.trim().parse::<f64>().map_err(|_| invalid(written, value))?;
                value.trim().into()
            }
            Kind::EnumWith(words, more) => match words.iter().chain(more).find(|w| w.eq_ignore_ascii_case(value)) {
                Some(word) => (*word).into(),
                None => return Err(invalid(written, value).hint(format!("Available values: {}.", words.join(", ")))),
            },
            Kind::Enum(words) => match words.iter().find(|w| w.eq_ignore_ascii_case(value)) {
                Some(word) => (*word).into(),
                None if name == "synchronous_commit" && parse_bool(value).is_some() => {
                    if parse_bool(value) == Some(true) { "on" } else { "off" }.into()
                }
                None => {
                    return Err(invalid(written, value).hint(format!("Available values: {}.", words.join(", "))));
                }
            },
            Kind::Text => match name {
                "client_encoding" => match encoding_name(value).as_str() {
                    "UTF8" | "UNICODE" => "UTF8".into(),
                    "SQLASCII" => "SQL_ASCII".into(),
                    encoding if !is_encoding(encoding) => return Err(invalid(name, value)),
                    _ => {
                        return Err(Error::unsupported(format!(
                            "client encoding \"{value}\" is not supported; use UTF8"
                        )));
                    }
                },
                "DateStyle" => {
                    let (style, order) = self.parse_date_style(value)?;
                    date_style_text(style, order).into()
                }
                "TimeZone" => parse_zone(value)?.name().into(),
                _ => value.into(),
            },
        })
    }

    fn parse_date_style(&self, value: &str) -> Result<(DateStyle, DateOrder)> {
        let (mut style, mut order) = (self.output.date_style, self.output.date_order);
        for word in value.split(',').map(str::trim).filter(|w| !w.is_empty()) {
            match word.to_ascii_lowercase().as_str() {
                "iso" => style = DateStyle::Iso,
                "sql" => style = DateStyle::Sql,
                "postgres" => style = DateStyle::Postgres,
                "german" => (style, order) = (DateStyle::German, DateOrder::Dmy),
                "ymd" => order = DateOrder::Ymd,
                "dmy" | "euro" | "european" => order = DateOrder::Dmy,
                "mdy" | "us" | "noneuro" | "noneuropean" => order = DateOrder::Mdy,
                "default" => (style, order) = (DateStyle::Iso, DateOrder::Mdy),
                _ => {
                    return Err(invalid("DateStyle", value).detail(format!("Unrecognized key word: \"{word}\".")));
                }
            }
        }
        Ok((style, order))
    }

    fn change(&mut self, spec: usize, text: Arc<str>, local: bool, level: u32) -> Result<()> {
        let old = Arc::clone(&self.values[spec].text);
        self.changes.push(Change { place: Place::Spec(spec), old: Some(old), local, level });
        self.assign(spec, text)
    }

    fn assign(&mut self, spec: usize, text: Arc<str>) -> Result<()> {
        if self.values[spec].text == text {
            return Ok(());
        }
        let name = SPECS[spec].name;
        match name {
            "DateStyle" => {
                let (style, order) = self.parse_date_style(&text)?;
                let output = Arc::make_mut(&mut self.output);
                (output.date_style, output.date_order) = (style, order);
            }
            "TimeZone" => Arc::make_mut(&mut self.output).timezone = parse_zone(&text)?,
            "IntervalStyle" => {
                Arc::make_mut(&mut self.output).interval_style = match &*text {
                    "sql_standard" => IntervalStyle::SqlStandard,
                    "postgres_verbose" => IntervalStyle::PostgresVerbose,
                    "iso_8601" => IntervalStyle::Iso8601,
                    _ => IntervalStyle::Postgres,
                }
            }
            "extra_float_digits" => Arc::make_mut(&mut self.output).extra_float_digits = text.parse().unwrap_or(1),
            "bytea_output" => {
                Arc::make_mut(&mut self.output).bytea_output =
                    if &*text == "escape" { types::ByteaOutput::Escape } else { types::ByteaOutput::Hex }
            }
            "synchronous_commit" => {
                self.durability = if &*text == "off" { Durability::Off } else { Durability::On };
            }
            "default_transaction_isolation" => self.default_isolation = isolation_of(&text),
            "default_transaction_read_only" => self.default_read_only = &*text == "on",
            "log_statement" => {
                self.log_statement = match &*text {
                    "ddl" => 1,
                    "mod" => 2,
                    "all" => 3,
                    _ => 0,
                };
            }
            "log_min_duration_statement" => self.log_min_duration_ms = text.parse().unwrap_or(-1),
            "lock_timeout" => self.lock_timeout_ms = text.parse().unwrap_or(0),
            "statement_timeout" => self.statement_timeout_ms = text.parse().unwrap_or(0),
            "idle_session_timeout" => self.idle_session_timeout_ms = text.parse().unwrap_or(0),
            "idle_in_transaction_session_timeout" => {
                self.idle_in_transaction_timeout_ms = text.parse().unwrap_or(0);
            }
            _ => {}
        }
        if matches!(name, "DateStyle" | "TimeZone" | "IntervalStyle" | "search_path" | "extra_float_digits")
            || super::role::is_identity(name)
        {
            self.binding_generation += 1;
        }
        if name.starts_with("default_transaction_") {
            let value = |other| if other == name { &*text } else { self.text(other) };
            self.has_usual_modes = value("default_transaction_isolation") == "read committed"
                && value("default_transaction_read_only") == "off"
                && value("default_transaction_deferrable") == "off";
        }
        if SPECS[spec].report {
            self.reports.retain(|(n, _)| *n != name);
            self.reports.push((name, Arc::clone(&text)));
        }
        self.values[spec].text = text;
        Ok(())
    }

    fn undo(&mut self, from: usize, only_local: bool) {
        let changes = self.changes.split_off(from);
        for (i, change) in changes.iter().enumerate().rev() {
            // At commit a LOCAL change ends; a later plain SET of the same name in the transaction outlives it.
            let overridden =
                only_local && changes[i + 1..].iter().any(|later| later.place == change.place && !later.local);
            if (change.local || !only_local) && !overridden {
                match (&change.place, &change.old) {
                    // The old value was accepted once, so it is again.
                    (Place::Spec(spec), Some(old)) => drop(self.assign(*spec, Arc::clone(old))),
                    (Place::Spec(_), None) => {}
                    (Place::Custom(name), old) => self.assign_custom(name, old.clone()),
                }
            }
        }
    }

    /// End of transaction: LOCAL changes end, others stay.
    pub fn commit(&mut self) {
        if !self.changes.is_empty() {
            self.undo(0, true);
        }
    }

    /// Rollback: every change of the transaction is undone.
    pub fn rollback(&mut self) {
        if !self.changes.is_empty() {
            self.undo(0, false);
        }
    }

    /// ROLLBACK TO: changes made at a savepoint depth of `level` or more are undone.
    pub fn rollback_to(&mut self, level: u32) {
        let from = self.changes.iter().position(|c| c.level >= level).unwrap_or(self.changes.len());
        self.undo(from, false);
    }

    /// The schemas of `search_path`, unresolved.
    pub fn search_path(&self) -> Vec<String> {
        split_names(self.text("search_path"))
    }

    /// `default_transaction_isolation`.
    pub fn default_isolation(&self) -> Isolation {
        self.default_isolation
    }

    /// Whether transactions begin as READ COMMITTED, read-write and not deferrable, and are shown so.
    pub fn has_usual_modes(&self) -> bool {
        self.has_usual_modes
    }

    /// `default_transaction_read_only`.
    pub fn default_read_only(&self) -> bool {
        self.default_read_only
    }

    /// `synchronous_commit`.
    pub fn durability(&self) -> Durability {
        self.durability
    }

    /// Whether a notice of this severity goes to the client.
    pub fn wants(&self, notice: &Notice) -> bool {
        use base::Severity::*;
        let rank = |word: &str| match word {
            "error" => 5,
            "warning" => 4,
            "log" | "notice" => 3,
            "info" => 2,
            _ => 1,
        };
        let own = match notice.fields().severity {
            Info => return true,
            Warning => 4,
            Notice => 3,
            Debug | Log => 1,
            Error | Fatal | Panic => 5,
        };
        own >= rank(self.text("client_min_messages"))
    }
}

fn cannot_change(name: &str) -> Error {
    Error::new(SqlState::CANT_CHANGE_RUNTIME_PARAM, format!("parameter \"{name}\" cannot be changed"))
}

/// Whether PostgreSQL has an encoding of this name (upper case, without hyphens and underscores).
fn is_encoding(name: &str) -> bool {
    const NAMES: [&str; 15] = [
        "BIG5",
        "EUCCN",
        "EUCJIS2004",
        "EUCJP",
        "EUCKR",
        "EUCTW",
        "GB18030",
        "GBK",
        "JOHAB",
        "KOI8R",
        "KOI8U",
        "MULEINTERNAL",
        "SHIFTJIS2004",
        "SJIS",
        "UHC",
    ];
    let numbered = |prefix: &str, range: &[u32]| {
        name.strip_prefix(prefix).and_then(|n| n.parse().ok()).is_some_and(|n: u32| range.contains(&n))
    };
    NAMES.contains(&name)
        || numbered("LATIN", &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10])
        || numbered("ISO8859", &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 13, 14, 15, 16])
        || numbered("WIN", &[866, 874, 1250, 1251, 1252, 1253, 1254, 1255, 1256, 1257, 1258])
}

/// An isolation level by PostgreSQL's words.
pub fn isolation_of(text: &str) -> Isolation {
    match text {
        "serializable" => Isolation::Serializable,
        "repeatable read" => Isolation::RepeatableRead,
        _ => Isolation::ReadCommitted,
    }
}

fn date_style_text(style: DateStyle, order: DateOrder) -> String {
    let style = match style {
        DateStyle::Iso => "ISO",
        DateStyle::Sql => "SQL",
        DateStyle::Postgres => "Postgres",
        DateStyle::German => "German",
    };
    let order = match order {
        DateOrder::Ymd => "YMD",
        DateOrder::Dmy => "DMY",
        DateOrder::Mdy => "MDY",
    };
    format!("{style}, {order}")
}

fn parse_zone(value: &str) -> Result<types::TimeZone> {
    types::TimeZone::parse(value).ok_or_else(|| invalid("TimeZone", value))
}

/// Splits a comma-separated list of identifiers, quoted ones kept as they are.
pub fn split_names(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        if let Some(quoted) = rest.strip_prefix('"') {
            let end = quoted.find('"').unwrap_or(quoted.len());
            names.push(quoted[..end].to_string());
            rest = quoted.get(end + 1..).unwrap_or("");
        } else {
            let end = rest.find(',').unwrap_or(rest.len());
            let name = rest[..end].trim().to_ascii_lowercase();
            if !name.is_empty() {
                names.push(name);
            }
            rest = &rest[end..];
        }
        rest = rest.trim_start().strip_prefix(',').unwrap_or("").trim_start();
    }
    names
}
