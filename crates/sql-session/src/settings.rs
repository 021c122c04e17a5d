//! Run-time settings of a session: `SET`, `SHOW`, `SET LOCAL`, and the typed values that the executor reads.
//!
//! Responsible for: the table of settings, checking values, undoing changes at rollback.
//! Not responsible for: what a setting does.
//! Invariant: [`Settings::output`] always agrees with the text values.

mod table;

use std::sync::Arc;

use base::work::{self, Count};
use base::{Error, Notice, Result, SqlState};
use engine_api::{Durability, Engine, Isolation};
use rustc_hash::{FxHashMap, FxHashSet};
use sql_parse::Backslashes;
use sql_parse::amounts::{invalid, parse_int, parse_real, show_real, show_unit};
use sql_parse::names::split_identifiers;
use types::encoding::{Conversion, Encoding};
use types::room;
use types::{DateOrder, DateStyle, IntervalStyle, OutputSettings};

pub(super) use sql_parse::amounts::kilobytes;
pub use sql_parse::amounts::parse_bool;
use table::{Context, Domain, Mark, SPECS, Spec, ValueKind};

use super::role::{Allowed, Setting as Identity};

/// What a session's settings may take together.
const BYTES_MAX: usize = 16 << 20;
/// What a setting or a change takes beside its texts.
const CHANGE_BYTES: usize = 128;

#[derive(Clone)]
struct Value {
    text: Arc<str>,
    /// What RESET goes back to: the default, or what the start-up packet asked for.
    reset: Arc<str>,
    /// Where that comes from.
    source: &'static str,
}

/// A setting that a session begins with.
#[derive(Clone, Debug)]
pub(super) struct Initial {
    pub name: String,
    pub value: String,
    /// As pg_settings calls it.
    pub source: &'static str,
}

/// A setting of the table, or one of an extension's or application's.
#[derive(Clone, PartialEq, Eq, Hash)]
enum SettingSlot {
    Spec(usize),
    Custom(String),
}

#[derive(Clone)]
struct Change {
    place: SettingSlot,
    /// The value before; only a custom setting can have had none.
    old: Option<Arc<str>>,
    /// Of the two that say who the session is: what [`Settings::told`] was.
    told: bool,
    local: bool,
    /// Nesting depth of savepoints at the time.
    level: u32,
}

/// The settings of one session.
pub struct Settings {
    values: Vec<Value>,
    /// Where `memory_limit` is looked up.
    engine: Option<Arc<dyn Engine>>,
    /// Those of extensions and applications, by their dotted names in lower case.
    custom: FxHashMap<String, Arc<str>>,
    /// Savepoints there are, for changes by `set_config`.
    pub depth: u32,
    /// Changes of the running transaction, oldest first, for undo.
    changes: Vec<Change>,
    /// The last of them by what it changed.
    last_changes: FxHashMap<SettingSlot, usize>,
    /// What custom settings and changes have, roughly; counted anew at the end of a transaction.
    bytes: usize,
    /// Typed copy of what input and output read.
    output: Arc<OutputSettings>,
    /// `client_encoding`, as a conversion; `None` for UTF-8.
    conversion: Option<&'static Conversion>,
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
    /// `standard_conforming_strings`, `escape_string_warning` and `backslash_quote`, but for what the client's encoding has to say of
    /// the last ([`Settings::backslashes`]).
    strings: Backslashes,
    /// `backslash_quote = on`: whatever the client's encoding.
    quotes_always: bool,
    /// `log_statement`: 0 `none`, 1 `ddl`, 2 `mod`, 3 `all`.
    pub log_statement: u8,
    /// `log_min_duration_statement` in milliseconds, -1 = off.
    pub log_min_duration_ms: i64,
    /// Changes to be reported by ParameterStatus: (name, value).
    reports: Vec<(&'static str, Arc<str>)>,
    /// What the client knows of each setting that is reported.
    announced: Vec<Arc<str>>,
    /// Rises when a setting that binding reads changes (search_path, DateStyle, TimeZone …).
    pub binding_version: u64,
    /// What the planner is not to use.
    pub methods: sql_plan::PlanMethods,
    /// Whether the current role is a superuser now, to what only they may change.
    superuser: bool,
    /// What `is_superuser` tells: whether the session's role, and `role`, was one when the setting got its value.
    told: [bool; 2],
}

/// Where [`Settings::told`] is about a setting.
fn identity_place(spec: usize) -> Option<usize> {
    match SPECS[spec].name {
        "session_authorization" => Some(0),
        "role" => Some(1),
        _ => None,
    }
}

fn find(name: &str) -> Option<usize> {
    let name = match name {
        n if n.eq_ignore_ascii_case("time zone") => "TimeZone",
        n => n,
    };
    SPECS.iter().position(|s| s.name.eq_ignore_ascii_case(name))
}

fn out_of_memory() -> Error {
    Error::new(SqlState::OUT_OF_MEMORY, "out of memory").detail(format!(
        "The settings of a session, and what its transaction has changed of them, can have at most {} MB.",
        BYTES_MAX >> 20
    ))
}

fn unrecognized(name: &str) -> Error {
    Error::new(SqlState::UNDEFINED_OBJECT, format!("unrecognized configuration parameter \"{name}\""))
}

impl Settings {
    /// Defaults, with the start-up packet's on top.
    pub(super) fn new(
        given: &[Initial],
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
                let source = if s.fixed().is_some() { "override" } else { "default" };
                Value { reset: Arc::clone(&text), text, source }
            })
            .collect();
        let mut settings = Settings {
            values,
            custom: FxHashMap::default(),
            depth: 0,
            changes: Vec::new(),
            last_changes: FxHashMap::default(),
            bytes: 0,
            output: Arc::default(),
            conversion: None,
            durability: Durability::On,
            default_isolation: Isolation::ReadCommitted,
            default_read_only: false,
            has_usual_modes: true,
            lock_timeout_ms: 0,
            statement_timeout_ms: 0,
            idle_in_transaction_timeout_ms: 0,
            strings: Backslashes::default(),
            quotes_always: false,
            log_statement: 0,
            log_min_duration_ms: -1,
            idle_session_timeout_ms: 0,
            superuser,
            told: [superuser; 2],
            reports: Vec::new(),
            announced: Vec::new(),
            binding_version: 0,
            methods: sql_plan::PlanMethods::default(),
            engine: None,
        };
        for Initial { name, value, source } in given.iter().filter(|given| Identity::of(&given.name).is_none()) {
            settings.adopt(name, value);
            settings.comes_from(name, source);
        }
        for (name, value) in startup.iter().filter(|(name, _)| Identity::of(name).is_none()) {
            settings.set(name, value, false, 0)?;
            settings.comes_from(name, "client");
        }
        settings.begin();
        Ok(settings)
    }

    /// Those of a session for tests.
    #[cfg(test)]
    pub(crate) fn of_nobody() -> Result<Settings> {
        Settings::new(&[], &[], "postgres", true, 1)
    }

    /// What is set now is what RESET goes back to, and what the client is told of first.
    fn begin(&mut self) {
        self.commit();
        for value in &mut self.values {
            value.reset = Arc::clone(&value.text);
        }
        self.reports.clear();
        self.announced = self.values.iter().map(|value| Arc::clone(&value.text)).collect();
    }

    /// The session begins with the value that a setting has now.
    pub(super) fn begins_so(&mut self, name: &str, source: &'static str) {
        self.comes_from(name, source);
        self.begin();
    }

    /// What a setting of the table had when the session began.
    pub(super) fn first_value(&self, name: &str) -> Arc<str> {
        find(name).map_or_else(|| "".into(), |spec| Arc::clone(&self.values[spec].reset))
    }

    /// Whether only some may see the value of a setting.
    pub(super) fn is_secret(name: &str) -> bool {
        find(name).is_some_and(|spec| SPECS[spec].is(Mark::Secret))
    }

    /// What input and output functions read.
    pub fn output(&self) -> &Arc<OutputSettings> {
        &self.output
    }

    /// How the client's texts are read. A quote is not escaped by a backslash that may be half of a character to the client.
    pub(crate) fn backslashes(&self) -> Backslashes {
        let hides = self.conversion.is_some_and(Conversion::is_client_only) && !self.quotes_always;
        Backslashes { quote: self.strings.quote && !hides, ..self.strings }
    }

    /// How the client's texts are converted; `None` for UTF-8.
    pub fn conversion(&self) -> Option<&'static Conversion> {
        self.conversion
    }

    /// Everything that ParameterStatus announces at start-up.
    pub fn reported(&self) -> impl Iterator<Item = (&'static str, &str)> {
        SPECS.iter().zip(&self.values).filter(|(s, _)| s.is(Mark::Reported)).map(|(s, v)| (s.name, &*v.text))
    }

    /// Takes the changes to announce now: of what is not as the client knows it.
    pub(crate) fn take_reports(&mut self) -> Vec<(&'static str, Arc<str>)> {
        let mut reports = std::mem::take(&mut self.reports);
        reports.sort_by_key(|(name, _)| find(name));
        reports.retain(|(name, text)| {
            let known = SPECS.iter().position(|s| s.name == *name).and_then(|at| self.announced.get_mut(at));
            known.is_none_or(|known| std::mem::replace(known, Arc::clone(text)) != *text)
        });
        reports
    }

    /// Whether there is something to announce.
    pub(crate) fn has_reports(&self) -> bool {
        !self.reports.is_empty()
    }

    /// All settings as pg_settings shows them.
    pub fn values(&self) -> Vec<sql_functions::SettingValue> {
        let source = |spec: &Spec, value: &Value| match () {
            () if value.text != value.reset => "session",
            () if spec.fixed().is_some() && *value.reset == *spec.default => "default",
            () => value.source,
        };
        let both = SPECS.iter().zip(&self.values).enumerate().filter(|(_, (spec, _))| !spec.is(Mark::Unlisted));
        both.map(|(at, (spec, value))| {
            let Domain { vartype, unit, bounds, words } = spec.kind.domain();
            sql_functions::SettingValue {
                name: spec.name,
                context: spec.context.name(),
                value: self.value_of(at),
                reset: if spec.name == super::memory::NAME { self.value_of(at) } else { Arc::clone(&value.reset) },
                boot: spec.default,
                source: source(spec, value),
                category: spec.category,
                about: spec.about,
                extra: spec.extra,
                vartype,
                unit,
                bounds,
                words,
            }
        })
        .collect()
    }

    /// All settings: name, value as SHOW prints it, description.
    pub fn all(&self) -> impl Iterator<Item = (&'static str, String, &'static str)> {
        let listed = SPECS.iter().enumerate().filter(|(_, spec)| !spec.is(Mark::Unlisted));
        listed.map(|(i, s)| (s.name, self.shown(i), s.about))
    }

    /// Settings that steer the planner and are not what they are at first: PostgreSQL's `GUC_EXPLAIN`.
    pub(crate) fn of_planner(&self) -> Vec<(String, String)> {
        let changed = SPECS
            .iter()
            .zip(&self.values)
            .enumerate()
            .filter(|(_, (spec, value))| spec.is(Mark::Steers) && *value.text != *spec.default);
        changed.map(|(number, (spec, _))| (spec.name.to_string(), self.shown(number))).collect()
    }

    /// From now on `memory_limit` is the engine's, whatever it becomes.
    pub(super) fn show_memory_of(&mut self, engine: &Arc<dyn Engine>) {
        self.engine = Some(Arc::clone(engine));
    }

    /// The value of a setting; that of `memory_limit` is the same for all sessions.
    fn value_of(&self, spec: usize) -> Arc<str> {
        match &self.engine {
            Some(engine) if SPECS[spec].name == super::memory::NAME => {
                (engine.memory_level().1 >> 10).to_string().into()
            }
            _ => Arc::clone(&self.values[spec].text),
        }
    }

    fn shown(&self, spec: usize) -> String {
        let text = self.value_of(spec);
        match SPECS[spec].kind {
            ValueKind::Int { unit, .. } => {
                text.parse().map(|n| show_unit(n, unit)).unwrap_or_else(|_| text.to_string())
            }
            ValueKind::Real { unit, .. } => {
                text.parse().map(|n| show_real(n, unit)).unwrap_or_else(|_| text.to_string())
            }
            _ => text.to_string(),
        }
    }

    /// The value as SHOW prints it; `None` for an unknown name.
    pub fn show(&self, name: &str) -> Option<String> {
        match find(name) {
            Some(spec) => Some(self.shown(spec)),
            None => self.custom.get(&name.to_ascii_lowercase()).map(|value| value.to_string()),
        }
    }

    fn text(&self, name: &str) -> &str {
        find(name).map_or("", |i| &self.values[i].text)
    }

    /// `SET`, but for [`Identity`]. `level` is the savepoint depth of the running transaction.
    pub fn set(&mut self, name: &str, value: &str, local: bool, level: u32) -> Result<()> {
        let Some(spec) = find(name) else {
            return self.set_custom(name, Some(value), local, level);
        };
        self.check_right(spec)?;
        check_is_own(spec)?;
        if value.len() > BYTES_MAX {
            return Err(out_of_memory());
        }
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
            None => check_custom(name).and_then(|()| self.check_superuser(name)),
        }
    }

    /// Refuses what ALTER SYSTEM may not say at all; answers whether only the server's own options say it.
    pub(super) fn check_for_system(&self, name: &str) -> Result<bool> {
        let spec = find(name).ok_or_else(|| unrecognized(name))?;
        let Spec { name, kind, context, .. } = SPECS[spec];
        if matches!(kind, ValueKind::Identity) || context == Context::Internal || name.starts_with("transaction_") {
            return Err(cannot_change(name, ""));
        }
        Ok(SPECS[spec].fixed().is_some())
    }

    /// Whether the current role may take away what other sessions begin with.
    pub(super) fn may_change(&self, name: &str) -> Result<()> {
        match find(name) {
            Some(spec) => self.check_reset(spec),
            None => check_custom(name).and_then(|()| self.check_superuser(name)),
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

    fn comes_from(&mut self, name: &str, source: &'static str) {
        if let Some(spec) = find(name) {
            self.values[spec].source = source;
        }
    }

    /// What the server logs is no business of those who are watched by it.
    fn check_right(&self, spec: usize) -> Result<()> {
        match SPECS[spec].context {
            Context::Superuser => self.check_superuser(SPECS[spec].name),
            _ => Ok(()),
        }
    }

    /// As [`check_right`](Settings::check_right), of a setting whose value is not given.
    fn check_reset(&self, spec: usize) -> Result<()> {
        match SPECS[spec].fixed() {
            Some(how) => Err(cannot_change(SPECS[spec].name, how)),
            None => self.check_right(spec),
        }
    }

    fn check_superuser(&self, name: &str) -> Result<()> {
        if self.superuser {
            return Ok(());
        }
        let message = format!("permission denied to set parameter \"{name}\"");
        Err(Error::new(SqlState::INSUFFICIENT_PRIVILEGE, message))
    }

    /// Takes on an identity: the only way to change those two settings.
    pub(super) fn assume(&mut self, allowed: &Allowed, is_superuser: bool, local: bool) {
        if let Some(spec) = find(allowed.setting().name()) {
            // A name has no form that could be wrong.
            let _ = self.change(spec, Arc::clone(allowed.value()), local, self.depth);
            if let Some(place) = identity_place(spec) {
                self.told[place] = is_superuser;
                self.tell_superuser();
            }
        }
    }

    /// What the current role may is what it is now.
    pub(super) fn follow_identity(&mut self, superuser: bool) {
        self.superuser = superuser;
    }

    /// As in PostgreSQL, `is_superuser` tells what the current role was when the session became it: ALTER ROLE does not change it.
    fn tell_superuser(&mut self) {
        let has_role = self.text("role") != super::role::NONE;
        if let Some(spec) = find("is_superuser") {
            // It has no form that could be wrong.
            let _ = self.assign(spec, if self.told[usize::from(has_role)] { "on" } else { "off" }.into());
        }
    }

    /// Whether a setting would take a value.
    pub(crate) fn check_value(&self, name: &str, value: &str) -> Result<()> {
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
        check_is_no_identity(spec)?;
        self.check_reset(spec)?;
        check_is_own(spec)?;
        let text = Arc::clone(&self.values[spec].reset);
        self.change(spec, text, local, level)
    }

    /// `RESET ALL`; the identity stays.
    pub(crate) fn reset_all(&mut self, level: u32) -> Result<()> {
        for (spec, definition) in SPECS.iter().enumerate() {
            let stays = definition.name.starts_with("transaction_") || definition.is(Mark::Unlisted);
            if !stays && self.values[spec].text != self.values[spec].reset {
                let text = Arc::clone(&self.values[spec].reset);
                self.change(spec, text, false, level)?;
            }
        }
        let names: Vec<String> = self.custom.keys().cloned().collect();
        names.iter().try_for_each(|name| self.set_custom(name, None, false, level))
    }

    fn set_custom(&mut self, name: &str, value: Option<&str>, local: bool, level: u32) -> Result<()> {
        check_custom(name)?;
        let name = name.to_ascii_lowercase();
        let old = self.custom.get(&name).map(Arc::clone);
        // RESET leaves a custom setting empty, as PostgreSQL does: it was never defined by an extension.
        let new = match (value, &old) {
            (None, None) => return Ok(()),
            (value, _) => value.unwrap_or_default(),
        };
        self.grow(3 * name.len() + new.len())?;
        self.note(Change { place: SettingSlot::Custom(name.clone()), old, told: false, local, level });
        self.assign_custom(name, Some(new.into()));
        Ok(())
    }

    /// Keeps what a change can be undone by; the last one of a setting does so for one just like it.
    fn note(&mut self, change: Change) {
        let last = self.last_changes.get(&change.place).map(|last| &self.changes[*last]);
        if last.is_none_or(|last| (last.local, last.level) != (change.local, change.level)) {
            self.last_changes.insert(change.place.clone(), self.changes.len());
            self.changes.push(change);
        }
    }

    /// Counts what a change takes, the old value included, which is kept until the transaction ends.
    ///
    /// # Errors
    /// 53200 if the session's settings take too much, or there is no memory.
    fn grow(&mut self, bytes: usize) -> Result<()> {
        let more = bytes + CHANGE_BYTES;
        if self.bytes + more > BYTES_MAX {
            // Values that others have taken the place of are gone.
            self.count_bytes();
        }
        if self.bytes + more <= BYTES_MAX {
            if self.bytes / room::LARGE != (self.bytes + more) / room::LARGE {
                room::ask(more.max(room::LARGE))?;
            }
            self.bytes += more;
            return Ok(());
        }
        Err(out_of_memory())
    }

    /// Counts what is left when changes are forgotten.
    fn count_bytes(&mut self) {
        let custom = self.custom.iter().map(|(name, value)| name.len() + value.len());
        let changed = self.changes.iter().map(|change| change.old.as_ref().map_or(0, |old| old.len()));
        self.bytes = custom.chain(changed).sum::<usize>() + (self.custom.len() + self.changes.len()) * CHANGE_BYTES;
    }

    /// Once set in a session, a setting is known; rolled back, it is empty.
    fn assign_custom(&mut self, name: String, value: Option<Arc<str>>) {
        self.custom.insert(name, value.unwrap_or_default());
    }

    /// The value as it is kept. `written` is the name as the statement has it, which most errors repeat.
    fn check(&self, spec: usize, written: &str, value: &str) -> Result<Arc<str>> {
        let Spec { name, kind, .. } = SPECS[spec];
        let not_boolean = || {
            let message = format!("parameter \"{written}\" requires a Boolean value");
            Error::new(SqlState::INVALID_PARAMETER_VALUE, message)
        };
        if let Some(how) = SPECS[spec].fixed() {
            return Err(cannot_change(name, how));
        }
        Ok(match kind {
            ValueKind::Identity => return Err(cannot_change(name, "")),
            ValueKind::Bool => match parse_bool(value) {
                Some(true) => "on".into(),
                Some(false) => "off".into(),
                None => return Err(not_boolean()),
            },
            ValueKind::Only(only, words) => {
                let given = match parse_bool(value) {
                    Some(on) if words.is_empty() => {
                        if on {
                            "on"
                        } else {
                            "off"
                        }
                    }
                    None if words.is_empty() => return Err(not_boolean()),
                    _ => match words.iter().find(|word| word.eq_ignore_ascii_case(value)) {
                        Some(word) => *word,
                        None => return Err(not_among(written, value, words)),
                    },
                };
                if given != only {
                    return Err(Error::unsupported(format!("{name} = {given} is not supported")));
                }
                only.into()
            }
            ValueKind::Int { min, max, unit } => parse_int(written, value, min, max, unit)?.to_string().into(),
            ValueKind::Real { min, max, unit } => parse_real(written, value, min, max, unit)?.to_string().into(),
            ValueKind::EnumWith(words, more) => {
                match words.iter().chain(more).find(|w| w.eq_ignore_ascii_case(value)) {
                    Some(word) => (*word).into(),
                    None => return Err(not_among(written, value, words)),
                }
            }
            ValueKind::Enum(words) => match words.iter().find(|w| w.eq_ignore_ascii_case(value)) {
                Some(word) => (*word).into(),
                None if words.contains(&"off") && parse_bool(value).is_some() => {
                    if parse_bool(value) == Some(true) { "on" } else { "off" }.into()
                }
                None => return Err(not_among(written, value, words)),
            },
            ValueKind::Text => match name {
                "client_encoding" => {
                    let encoding = Encoding::from_name(value).ok_or_else(|| invalid(name, value))?;
                    if !encoding.is_plain() && encoding.conversion().is_none() {
                        let detail = format!("Conversion between {} and UTF8 is not supported.", encoding.name());
                        let mut error = invalid(name, value).detail(detail);
                        error.fields_mut().code = SqlState::FEATURE_NOT_SUPPORTED;
                        return Err(error);
                    }
                    encoding.name().into()
                }
                "DateStyle" => {
                    let (style, order) = self.parse_date_style(value)?;
                    date_style_text(style, order).into()
                }
                "TimeZone" => parse_zone(value)?.name().into(),
                "search_path" | "temp_tablespaces" if split_identifiers(value, ',').is_none() => {
                    return Err(no_list(name, value));
                }
                // All relations are kept in one place, whichever of those that are there is named.
                "default_tablespace" if !["", "pg_default", "pg_global"].contains(&value) => {
                    return Err(invalid(name, value).detail(format!("Tablespace \"{value}\" does not exist.")));
                }
                "lc_messages" | "lc_monetary" | "lc_numeric" | "lc_time" if !is_locale(name, value) => {
                    return Err(invalid(name, value));
                }
                _ => value.into(),
            },
        })
    }

    fn parse_date_style(&self, value: &str) -> Result<(DateStyle, DateOrder)> {
        use DateOrder::{Dmy, Mdy, Ymd};
        let (mut style, mut order) = (None, None);
        let mut conflict = false;
        let mut say_style = |new| conflict |= style.replace(new).is_some_and(|old| old != new);
        let mut said_order = Vec::new();
        let mut says_default = false;
        let words = split_identifiers(value, ',').ok_or_else(|| no_list("DateStyle", value))?;
        for word in words {
            work::beat(32);
            match word.to_ascii_lowercase().as_str() {
                "iso" => say_style(DateStyle::Iso),
                "sql" => say_style(DateStyle::Sql),
                "postgres" => say_style(DateStyle::Postgres),
                "german" => {
                    say_style(DateStyle::German);
                    if said_order.is_empty() {
                        order = Some(Dmy);
                    }
                }
                "ymd" => said_order.push(Ymd),
                "dmy" => said_order.push(Dmy),
                "mdy" | "us" | "noneuro" | "noneuropean" => said_order.push(Mdy),
                word if word.starts_with("euro") => said_order.push(Dmy),
                "default" => says_default = true,
                _ => {
                    return Err(invalid("DateStyle", value).detail(format!("Unrecognized key word: \"{word}\".")));
                }
            }
        }
        if let Some(first) = said_order.first() {
            conflict |= said_order.iter().any(|other| other != first);
            order = Some(*first);
        }
        if conflict {
            return Err(invalid("DateStyle", value).detail("Conflicting \"datestyle\" specifications."));
        }
        if says_default {
            // Whatever is not said otherwise is as RESET would have it.
            let reset = find("DateStyle").map_or("ISO, MDY", |spec| &*self.values[spec].reset);
            let (its_style, its_order) = self.parse_date_style(reset)?;
            return Ok((style.unwrap_or(its_style), order.unwrap_or(its_order)));
        }
        Ok((style.unwrap_or(self.output.date_style), order.unwrap_or(self.output.date_order)))
    }

    fn change(&mut self, spec: usize, text: Arc<str>, local: bool, level: u32) -> Result<()> {
        self.grow(text.len())?;
        let old = Arc::clone(&self.values[spec].text);
        let told = identity_place(spec).is_some_and(|place| self.told[place]);
        self.note(Change { place: SettingSlot::Spec(spec), old: Some(old), told, local, level });
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
            "client_encoding" => self.conversion = Encoding::from_name(&text).and_then(Encoding::conversion),
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
            "array_nulls" => {
                Arc::make_mut(&mut self.output).array_nulls = &*text == "on";
                self.binding_version += 1;
            }
            "standard_conforming_strings" => self.strings.in_plain = &*text == "off",
            "escape_string_warning" => self.strings.warns = &*text == "on",
            "backslash_quote" => {
                self.strings.quote = &*text != "off";
                self.quotes_always = &*text == "on";
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
            name if name.starts_with("enable_") && self.methods.follow(name, &*text == "on") => {
                self.binding_version += 1;
            }
            name if name.contains("_parallel_")
                && self.methods.follow_workers(name, text.parse().unwrap_or(u32::MAX)) =>
            {
                self.binding_version += 1;
            }
            "lock_timeout" => self.lock_timeout_ms = text.parse().unwrap_or(0),
            "statement_timeout" => self.statement_timeout_ms = text.parse().unwrap_or(0),
            "idle_session_timeout" => self.idle_session_timeout_ms = text.parse().unwrap_or(0),
            "idle_in_transaction_session_timeout" => {
                self.idle_in_transaction_timeout_ms = text.parse().unwrap_or(0);
            }
            _ => {}
        }
        if matches!(name, "DateStyle" | "TimeZone" | "IntervalStyle" | "search_path" | "extra_float_digits")
            || Identity::of(name).is_some()
        {
            self.binding_version += 1;
        }
        if name.starts_with("default_transaction_") {
            let value = |other| if other == name { &*text } else { self.text(other) };
            self.has_usual_modes = value("default_transaction_isolation") == "read committed"
                && value("default_transaction_read_only") == "off"
                && value("default_transaction_deferrable") == "off";
        }
        if SPECS[spec].is(Mark::Reported) {
            self.reports.retain(|(n, _)| *n != name);
            self.reports.push((name, Arc::clone(&text)));
        }
        self.values[spec].text = text;
        Ok(())
    }

    fn undo(&mut self, from: usize, only_local: bool) {
        let changes = self.changes.split_off(from);
        let left = self.changes.iter().enumerate().counted(64);
        self.last_changes = left.map(|(at, change)| (change.place.clone(), at)).collect();
        // At commit a LOCAL change ends; a later plain SET of the same name in the transaction outlives it.
        let mut overridden = FxHashSet::default();
        for change in changes.iter().rev().counted(64) {
            if only_local && !change.local {
                overridden.insert(&change.place);
            } else if !overridden.contains(&change.place) {
                match (&change.place, &change.old) {
                    // The old value was accepted once, so it is again.
                    (SettingSlot::Spec(spec), Some(old)) => {
                        let _ = self.assign(*spec, Arc::clone(old));
                        if let Some(place) = identity_place(*spec) {
                            self.told[place] = change.told;
                            self.tell_superuser();
                        }
                    }
                    (SettingSlot::Spec(_), None) => {}
                    (SettingSlot::Custom(name), old) => self.assign_custom(name.clone(), old.clone()),
                }
            }
        }
    }

    /// End of transaction: LOCAL changes end, others stay.
    pub fn commit(&mut self) {
        if !self.changes.is_empty() {
            self.undo(0, true);
            self.count_bytes();
        }
    }

    /// Rollback: every change of the transaction is undone.
    pub fn rollback(&mut self) {
        if !self.changes.is_empty() {
            self.undo(0, false);
            self.count_bytes();
        }
    }

    /// RELEASE: what was changed inside belongs to what is around; `level` savepoints are left.
    pub fn release(&mut self, level: u32) {
        self.depth = level;
        self.changes.iter_mut().for_each(|change| change.level = change.level.min(level));
    }

    /// ROLLBACK TO: changes made at a savepoint depth of `level` or more are undone.
    pub fn rollback_to(&mut self, level: u32) {
        self.depth = level;
        let from = self.changes.iter().position(|c| c.level >= level).unwrap_or(self.changes.len());
        self.undo(from, false);
    }

    /// The schemas of `search_path`, unresolved.
    pub fn search_path(&self) -> Vec<String> {
        split_identifiers(self.text("search_path"), ',').unwrap_or_default()
    }

    /// `default_transaction_isolation`.
    pub(crate) fn default_isolation(&self) -> Isolation {
        self.default_isolation
    }

    /// Whether transactions begin as READ COMMITTED, read-write and not deferrable, and are shown so.
    pub(crate) fn has_usual_modes(&self) -> bool {
        self.has_usual_modes
    }

    /// `default_transaction_read_only`.
    pub(crate) fn default_read_only(&self) -> bool {
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

/// Who the session is goes through [`Allowed`].
fn check_is_no_identity(spec: usize) -> Result<()> {
    match SPECS[spec].kind {
        ValueKind::Identity => Err(cannot_change(SPECS[spec].name, "")),
        _ => Ok(()),
    }
}

/// What holds for the whole server is set by ALTER SYSTEM.
fn check_is_own(spec: usize) -> Result<()> {
    match SPECS[spec].name {
        name @ super::memory::NAME => Err(cannot_change(name, " now")),
        _ => Ok(()),
    }
}

fn cannot_change(name: &str, how: &str) -> Error {
    Error::new(SqlState::CANT_CHANGE_RUNTIME_PARAM, format!("parameter \"{name}\" cannot be changed{how}"))
}

fn no_list(name: &str, value: &str) -> Error {
    invalid(name, value).detail("List syntax is invalid.")
}

fn not_among(name: &str, value: &str, words: &[&str]) -> Error {
    invalid(name, value).hint(format!("Available values: {}.", words.join(", ")))
}

/// Whether a name that is in no table may be an extension's or an application's.
fn check_custom(name: &str) -> Result<()> {
    if !name.contains('.') {
        return Err(unrecognized(name));
    }
    if !is_custom_name(name) {
        let message = format!("invalid configuration parameter name \"{name}\"");
        return Err(Error::new(SqlState::INVALID_NAME, message)
            .detail("Custom parameter names must be two or more simple identifiers separated by dots."));
    }
    Ok(())
}

/// Whether the configuration may say that all sessions begin with these settings: as ALTER SYSTEM may, but for what has an option
/// of its own, and not who they are.
///
/// # Errors
/// The first one that is refused.
pub fn check_configured(settings: &[(String, String)]) -> Result<()> {
    let defaults = Settings::new(&[], &[], "postgres", true, 1)?;
    settings.iter().try_for_each(|(name, value)| match find(name).map(|spec| &SPECS[spec]) {
        Some(spec @ Spec { name, kind, .. })
            if spec.fixed().is_some() || matches!(kind, ValueKind::Identity) || *name == super::memory::NAME =>
        {
            Err(cannot_change(name, " by the configuration"))
        }
        _ => defaults.check_for_others(name, value),
    })
}

/// Whether a name with dots is one that anybody may use.
fn is_custom_name(name: &str) -> bool {
    name.split('.').all(|part| {
        let mut bytes = part.bytes().counted(1);
        bytes.next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_' || b >= 0x80)
            && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'$' || b >= 0x80)
    })
}

/// An isolation level by PostgreSQL's words.
pub(crate) fn isolation_of(text: &str) -> Isolation {
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

/// Bytes of the longest name of a time zone, as in PostgreSQL.
const ZONE_MAX: usize = 255;

fn parse_zone(value: &str) -> Result<types::TimeZone> {
    let is_long = value.len() > ZONE_MAX;
    if is_long { None } else { types::TimeZone::parse(value) }.ok_or_else(|| invalid("TimeZone", value))
}

/// Whether texts are formatted as in this locale: there is no other than that of C. Messages are English.
fn is_locale(setting: &str, value: &str) -> bool {
    let is_plain = ["", "C", "POSIX", "C.UTF-8", "C.utf8"].contains(&value);
    is_plain || (setting == "lc_messages" && (value.starts_with("en_") || value == "en"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_custom(count: usize) -> Settings {
        let mut settings = Settings::of_nobody().unwrap();
        for n in 0..count {
            settings.set(&format!("A.b{n}"), "new", n % 2 == 0, 0).unwrap();
        }
        settings
    }

    /// Settings of plans that Nyala has no use for: it has no such method, no such cost, or decides by itself.
    const WITHOUT_EFFECT: [&str; 17] = [
        "enable_async_append",
        "enable_gathermerge",
        "enable_hashagg",
        "enable_material",
        "enable_memoize",
        "enable_parallel_append",
        "enable_parallel_hash",
        "enable_partition_pruning",
        "enable_partitionwise_aggregate",
        "enable_partitionwise_join",
        "max_parallel_maintenance_workers",
        "max_worker_processes",
        "min_parallel_index_scan_size",
        "parallel_leader_participation",
        "parallel_setup_cost",
        "parallel_tuple_cost",
        "force_parallel_mode",
    ];

    #[test]
    fn who_adds_a_setting_of_plans_says_what_it_does() {
        for spec in SPECS {
            let is_one = spec.name.starts_with("enable_") || spec.name.contains("parallel");
            let mut methods = sql_plan::PlanMethods::default();
            let is_followed = methods.follow(spec.name, false) || methods.follow_workers(spec.name, 1);
            let is_known = WITHOUT_EFFECT.contains(&spec.name);
            assert!(!is_one || is_followed != is_known, "{} is followed by no plan, and not listed", spec.name);
        }
    }

    #[test]
    fn local_changes_end_with_the_transaction() {
        let mut settings = with_custom(2);
        settings.set("a.b0", "newer", false, 0).unwrap();
        settings.set("a.b0", "newest", true, 0).unwrap();
        settings.set("work_mem", "64", true, 0).unwrap();
        settings.commit();
        let shown = ["a.B0", "a.b1", "work_mem"].map(|name| settings.show(name).unwrap());
        assert_eq!(shown, ["newer", "new", "4MB"]);
        settings.set("a.b1", "other", true, 0).unwrap();
        settings.rollback();
        assert_eq!(settings.show("a.b1").as_deref(), Some("new"));
    }

    #[test]
    fn the_end_of_many_changes_takes_a_step_for_each() {
        let units = |count: usize| {
            let mut settings = with_custom(count);
            let before = work::total();
            settings.commit();
            work::total() - before
        };
        let (few, many) = (units(100), units(2000));
        assert!(few > 0 && many <= 20 * few, "{few} and {many} units");
    }

    #[test]
    fn numbers_may_have_zeros_in_front() {
        let zeros = "0".repeat(100_000);
        for (text, expect) in
            [(format!("{zeros}64"), "64kB"), (format!(" 0x{zeros}40 "), "64kB"), (format!("{zeros}1MB"), "1MB")]
        {
            let mut settings = Settings::of_nobody().unwrap();
            let before = work::total();
            settings.set("work_mem", &text, false, 0).unwrap();
            assert_eq!(settings.show("work_mem").as_deref(), Some(expect));
            assert!(work::total() - before >= 100_000);
        }
    }
}
