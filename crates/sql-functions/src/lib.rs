//! Built-in functions, operators, casts and aggregates: what they are called, what they take, what they do.
//!
//! Responsible for: one static table per family of types, one file each; what a function asks of the session that calls it
//! ([`EvalContext`]), and what is known of the values in tables ([`statistics`]).
//! Not responsible for: which overload a call means (`sql_bind::resolve`); functions that read the catalog, which
//! `sql-catalog` adds when it is installed.
//! Invariants: OIDs and names are PostgreSQL's where it has the function, so that catalogs and EXPLAIN agree. A call that can take
//! long counts its work ([`base::work`]), so that it can be stopped and others have their turn.

#![forbid(unsafe_code)]

mod aggregates;
mod arithmetic;
mod array;
mod bits;
mod casts;
mod compare_op;
mod comparison;
mod datetime;
pub mod entry;
pub mod extensions;
mod format;
mod json;
mod like_prefix;
mod math;
pub mod network;
mod operators;
mod record;
mod registry;
mod send;
mod server;
mod session;
pub mod statistics;
pub use comparison::{AS_TIMESTAMP, AS_TIMESTAMPTZ, DAY, DAY_AFTER, DAY_BEFORE};
pub use like_prefix::{LIKE_BEHIND, LIKE_FIRST, LikePrefix};
pub use session::{IDENTITY_VALUE, Question, answer, question};
mod sets;
mod size;
pub use size::{call, change_text, test_texts, weight};
mod spread;
mod text;
mod user;
pub use user::{ELEMENTS_OID, keep};
mod windows;
mod words;

use std::any::Any;
use std::borrow::Cow;
use std::fmt;

use base::{Error, Oid, Result};
use sql_parse::privileges::Who;
use types::{Datum, DatumRef};

pub use aggregates::float;
pub use aggregates::{GROUPING, hypothetical_named};
pub use compare_op::CompareOp;
pub use registry::complete;
pub use registry::{
    aggregates_named, all_aggregates, all_casts, all_functions, all_operators, all_set_functions, cast, function,
    function_by_oid, functions_named, has_two_forms, is_of_cast, is_sessionless, key_word, operator_of,
    operators_named, set_functions_named,
};
pub use server::{LoginRule, Server};
pub use windows::{WindowFunction, WindowKind, window_functions_named};
pub use words::in_words;
/// Checks what of a path is not checked when it is read: its regular expressions.
pub fn check_jsonpath(text: &str) -> Result<()> {
    json::path::check(text)
}

/// Whether the values of a type are shown as names from the catalog (`regclass` and the like).
pub fn is_name_in_catalog(ty: Oid) -> bool {
    use types::oid::*;
    [REGCLASS, REGTYPE, REGNAMESPACE, REGROLE, REGPROC, REGPROCEDURE, REGOPER, REGOPERATOR, REGCOLLATION].contains(&ty)
}

/// Whether the text of a type's values may have names from the catalog: those types, their arrays, and records.
pub fn has_names_of_catalog(ty: Oid) -> bool {
    use types::oid::*;
    const OTHERS: [Oid; 11] = [
        RECORD,
        RECORD_ARRAY,
        REGCLASS_ARRAY,
        REGTYPE_ARRAY,
        REGNAMESPACE_ARRAY,
        REGROLE_ARRAY,
        REGPROC_ARRAY,
        REGPROCEDURE_ARRAY,
        REGOPER_ARRAY,
        REGOPERATOR_ARRAY,
        REGCOLLATION_ARRAY,
    ];
    is_name_in_catalog(ty) || OTHERS.contains(&ty)
}

/// The input function of such a type.
pub fn input_of_names(ty: Oid) -> Option<&'static Function> {
    let name = &types::type_info(ty)?.name;
    function(&format!("{name} input"), &[types::oid::TEXT])
}

/// The value that a text means in such a type, which [`is_name_in_catalog`] says it is.
pub fn from_name_in_catalog(cx: &dyn EvalContext, ty: Oid, text: &str) -> Result<Datum> {
    let input = input_of_names(ty).ok_or_else(|| Error::internal("a type whose values are no names"))?;
    (input.eval)(cx, &[Datum::text(text)])
}

/// The text form of a value of such a type, or an array or a record of texts in the places of such values; `None` for others and
/// for NULL.
pub fn name_in_catalog(cx: &dyn EvalContext, ty: Oid, value: &Datum) -> Option<Datum> {
    match value {
        Datum::Array(array) if has_names_of_catalog(array.element) => {
            let named = |value: &Datum| name_in_catalog(cx, array.element, value);
            let shown: Vec<Option<Datum>> = array.values.iter().map(named).collect();
            let element = if array.element == types::oid::RECORD { array.element } else { types::oid::TEXT };
            return shown.iter().any(Option::is_some).then(|| {
                let values =
                    array.values.iter().zip(shown).map(|(value, shown)| shown.unwrap_or_else(|| value.clone()));
                Datum::Array(types::Array { element, dims: array.dims.clone(), values: values.collect() }.into())
            });
        }
        Datum::Record(record) => {
            let shown: Vec<Option<Datum>> = record.typed().map(|(field, ty)| name_in_catalog(cx, ty, field)).collect();
            return shown.iter().any(Option::is_some).then(|| {
                let types =
                    shown.iter().zip(record.types.iter()).map(|(shown, ty)| shown.as_ref().map_or(*ty, type_of_shown));
                let types = types.collect();
                let fields = record.iter().zip(shown).map(|(field, shown)| shown.unwrap_or_else(|| field.clone()));
                Datum::Record(types::Record::new(types, fields.collect()).into())
            });
        }
        _ => {}
    }
    if value.is_null() || !is_name_in_catalog(ty) {
        return None;
    }
    let out = function("regout", &[ty])?;
    (out.eval)(cx, std::slice::from_ref(value)).ok()
}

/// The type of what [`name_in_catalog`] shows.
fn type_of_shown(shown: &Datum) -> Oid {
    match shown {
        Datum::Array(array) if array.element == types::oid::RECORD => types::oid::RECORD_ARRAY,
        Datum::Array(_) => types::oid::TEXT_ARRAY,
        Datum::Record(_) => types::oid::RECORD,
        _ => types::oid::TEXT,
    }
}

/// As [`types::write_text`], with the names that the catalog has for values of `regclass` and the like.
///
/// # Errors
/// As [`types::write_text`].
pub fn write_text(cx: &dyn EvalContext, value: &Datum, ty: Oid, out: &mut Vec<u8>) -> Result<()> {
    match name_in_catalog(cx, ty, value) {
        Some(shown) => types::write_text(shown.as_ref(), type_of_shown(&shown), cx.settings(), out),
        None => types::write_text(value.as_ref(), ty, cx.settings(), out),
    }
}

pub use session::no_sequence;
pub use sets::{SEQUENCE_STATE, SINGLE_VALUE};

/// The version whose behaviour is followed (rule R19).
pub const SERVER_VERSION: &str = "15.18";

/// How far a function's value can be trusted to repeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Volatility {
    /// Always the same for the same arguments: folded by the binder.
    Immutable,
    /// The same within a statement.
    Stable,
    /// Anything.
    Volatile,
}

/// What functions may see of the world: the session's settings, the statement's times, sequences.
/// Implemented by the session; one indirection, used only by functions that need it.
pub trait EvalContext {
    /// Output and input settings (zone, DateStyle …).
    fn settings(&self) -> &types::OutputSettings;
    /// Start of the transaction, µs since 2000-01-01 UTC (`now()`).
    fn transaction_timestamp(&self) -> i64;
    /// Start of the statement.
    fn statement_timestamp(&self) -> i64;
    /// The clock now.
    fn clock_timestamp(&self) -> i64;
    /// A uniform value in [0, 1).
    fn random(&self) -> f64;
    /// Seeds [`EvalContext::random`].
    fn set_seed(&self, seed: f64);
    /// `nextval`
    ///
    /// # Errors
    /// 42P01 and 42809 if there is no such sequence; 42501; those of the sequence.
    fn next_value(&self, sequence: Oid) -> Result<i64>;
    /// The next value of an identity column, which is as its table's: whoever may insert gets it.
    fn next_identity(&self, sequence: Oid) -> Result<i64> {
        self.next_value(sequence)
    }
    /// Whether the current role may know what a sequence has come to.
    ///
    /// # Errors
    /// 42501
    fn may_see_sequence(&self, _sequence: Oid) -> Result<()> {
        Ok(())
    }
    /// `currval`
    fn current_value(&self, sequence: Oid) -> Result<i64>;
    /// `setval`
    fn set_value(&self, sequence: Oid, value: i64, is_called: bool) -> Result<()>;
    /// `lastval`
    fn last_value(&self) -> Result<i64>;
    /// `current_setting(name, missing_ok)`
    ///
    /// # Errors
    /// 42501 for a setting that the current role may not see.
    fn setting(&self, name: &str) -> Result<Option<String>>;
    /// All settings: name, value, description.
    fn all_settings(&self) -> Vec<(&'static str, String, &'static str)>;
    /// All settings with what pg_settings shows of their values.
    fn setting_values(&self) -> Vec<SettingValue> {
        Vec::new()
    }
    /// Bytes that a table's rows, or an index's nodes, take in memory.
    fn relation_bytes(&self, _relation: Oid) -> Option<u64> {
        None
    }
    /// The session's named prepared statements.
    fn prepared_statements(&self) -> Vec<PreparedStatement> {
        Vec::new()
    }
    /// The session's open cursors.
    fn cursors(&self) -> Vec<OpenCursor> {
        Vec::new()
    }
    /// The name of the next exported snapshot.
    ///
    /// # Errors
    /// 25001 inside of a savepoint; 0A000 where there is no session.
    fn next_snapshot(&self) -> Result<String> {
        Err(base::Error::unsupported("pg_export_snapshot is not supported here"))
    }
    /// `pg_notify`
    ///
    /// # Errors
    /// 22023; 0A000 where there is no session.
    fn notify(&self, _channel: &str, _payload: &str) -> Result<()> {
        Err(base::Error::unsupported("pg_notify is not supported here"))
    }
    /// `pg_listening_channels`
    fn listening_channels(&self) -> Vec<std::sync::Arc<str>> {
        Vec::new()
    }
    /// `pg_notification_queue_usage`
    fn notification_usage(&self) -> f64 {
        0.0
    }
    /// The row of a table that a cursor is on.
    ///
    /// # Errors
    /// 34000 and 24000: no such cursor, none over the table, none on a row.
    fn cursor_row(&self, cursor: &str, _table: Oid, _name: &str) -> Result<base::RowId> {
        Err(base::Error::new(base::SqlState::INVALID_CURSOR_NAME, format!("cursor \"{cursor}\" does not exist")))
    }
    /// A sequence's `last_value` and `is_called`.
    fn sequence_state(&self, sequence: Oid) -> Result<(i64, bool)>;
    /// `set_config`; without a value the setting gets its default.
    fn set_setting(&self, name: &str, value: Option<&str>, local: bool) -> Result<()>;
    /// Current and session user, database, schemas.
    fn identity(&self) -> Identity;
    /// The catalog of the statement.
    fn catalog(&self) -> std::sync::Arc<engine_api::Catalog>;
    /// Queues a notice.
    fn notice(&self, notice: base::Notice);
    /// `pg_backend_pid()`
    fn backend_pid(&self) -> i32;
    /// The server, if a session runs the statement.
    fn server(&self) -> Option<&dyn Server> {
        None
    }
    /// Suspends the statement (`pg_sleep`). An expression cannot wait; whoever runs the statement
    /// does, before the row leaves it (rule R9).
    ///
    /// # Errors
    /// 0A000 where nobody would.
    fn suspend(&self, suspension: Suspension) -> Result<()> {
        Err(base::Error::unsupported(format!("waiting inside of this expression is not supported ({suspension:?})")))
    }
    /// Takes an advisory lock, or suspends the statement until it is free; `false`: others have it, and it is not waited for.
    ///
    /// # Errors
    /// 0A000 where there are none.
    fn take_advisory(&self, _wanted: AdvisoryRequest, _waits: bool) -> Result<bool> {
        Err(base::Error::unsupported("advisory locks inside of this expression are not supported"))
    }
    /// Gives back an advisory lock of the session; `false` if it has none.
    fn give_advisory(&self, _key: engine_api::AdvisoryKey, _is_shared: bool) -> bool {
        false
    }
    /// Gives back all advisory locks of the session.
    fn give_all_advisory(&self) {}
    /// Who holds and waits for what.
    fn locks(&self) -> Vec<engine_api::LockRow> {
        Vec::new()
    }
    /// Transactions between the phases of their commit.
    fn prepared_transactions(&self) -> Vec<engine_api::PreparedTransaction> {
        Vec::new()
    }
    /// The sessions that one waits for.
    fn blockers_of(&self, _session: u32) -> Vec<u32> {
        Vec::new()
    }
    /// Whether the statement is suspended.
    fn is_suspended(&self) -> bool {
        false
    }
    /// What is known of the values in a table.
    fn statistics(&self, _table: Oid) -> Option<std::sync::Arc<crate::statistics::TableStatistics>> {
        None
    }
}

/// The values of a setting.
#[derive(Clone, Debug)]
pub struct SettingValue {
    /// Name.
    pub name: &'static str,
    /// Now, in the setting's unit.
    pub value: std::sync::Arc<str>,
    /// What RESET goes back to.
    pub reset: std::sync::Arc<str>,
    /// Without any configuration.
    pub boot: &'static str,
    /// Where the value comes from.
    pub source: &'static str,
    /// Who may set it, and when.
    pub context: &'static str,
    /// Of which group it is.
    pub category: &'static str,
    /// What it is for.
    pub about: &'static str,
    /// What else there is to say.
    pub extra: &'static str,
    /// The kind of values: `bool`, `integer`, `real`, `string` or `enum`.
    pub vartype: &'static str,
    /// Of a number.
    pub unit: Option<&'static str>,
    /// The least and the greatest number.
    pub bounds: Option<[String; 2]>,
    /// Of an enumeration.
    pub words: Option<&'static [&'static str]>,
}

/// An advisory lock that an expression wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdvisoryRequest {
    /// Its name.
    pub key: engine_api::AdvisoryKey,
    /// With others.
    pub is_shared: bool,
    /// Until the end of the transaction.
    pub of_transaction: bool,
}

/// What an expression wants to be waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Suspension {
    /// So many microseconds pass.
    Sleep(i64),
    /// What the command sees is kept under this name for other sessions.
    Export(String),
}

/// What `pg_prepared_statements` shows of a statement.
#[derive(Clone, Debug)]
pub struct PreparedStatement {
    /// Its name.
    pub name: String,
    /// The text it was prepared from.
    pub text: std::sync::Arc<str>,
    /// When, in microseconds since 2000-01-01 UTC.
    pub time: i64,
    /// Types of its parameters.
    pub param_types: Vec<Oid>,
    /// By PREPARE, not by the protocol.
    pub from_sql: bool,
}

/// What `pg_cursors` shows of a cursor, and where WHERE CURRENT OF finds it.
#[derive(Clone, Debug)]
pub struct OpenCursor {
    /// Its name.
    pub name: String,
    /// The text it was declared by.
    pub statement: std::sync::Arc<str>,
    /// WITH HOLD
    pub holdable: bool,
    /// BINARY
    pub binary: bool,
    /// Goes backward.
    pub scrollable: bool,
    /// When, in microseconds since 2000-01-01 UTC.
    pub time: i64,
    /// Materialised by the end of its transaction.
    pub held: bool,
    /// The tables whose rows it is on, whether it locks them, and the rows; none between rows.
    pub rows: Vec<(Oid, bool, Option<base::RowId>)>,
}

/// Who and where a session is.
#[derive(Clone, Debug, Default)]
pub struct Identity {
    /// OID of `current_user`.
    pub role: Oid,
    /// Whether it is a superuser.
    pub superuser: bool,
    /// `current_user`
    pub current_user: String,
    /// `session_user`
    pub session_user: String,
    /// `current_database()`
    pub database: String,
    /// OID of the database.
    pub database_oid: Oid,
    /// Effective search path: existing schemas in order, `pg_catalog` first unless named.
    pub search_path: Vec<Oid>,
    /// Client address, if TCP.
    pub client_addr: Option<String>,
}

impl Identity {
    /// Whose rights count.
    pub fn who(&self) -> Who {
        Who { role: self.role, database: self.database_oid }
    }
}

/// Whose rights limit what messages show of rows; none, if a superuser reads them.
pub fn reader(cx: &dyn EvalContext) -> Option<(std::sync::Arc<engine_api::Catalog>, Who)> {
    let identity = cx.identity();
    (!identity.superuser).then(|| (cx.catalog(), identity.who()))
}

/// A scalar function's code. Strict functions never see NULL.
pub type ScalarFn = fn(&dyn EvalContext, &[Datum]) -> Result<Datum>;

/// A scalar function or operator implementation.
pub struct Function {
    /// PostgreSQL's OID of the function.
    pub oid: u32,
    /// Name (`int4pl`, `lower`).
    pub name: &'static str,
    /// Argument types; pseudo-types (`anyelement`, `any`…) allowed.
    pub args: &'static [Oid],
    /// Last argument repeats (VARIADIC).
    pub variadic: bool,
    /// Names of the arguments, for `f(name => value)`; empty if they have none.
    pub names: &'static [&'static str],
    /// Number of trailing arguments that may be left out, with their defaults.
    pub defaults: &'static [Datum],
    /// Result type.
    pub ret: Oid,
    /// NULL in, NULL out.
    pub strict: bool,
    /// Trust.
    pub volatility: Volatility,
    /// It tells nothing of its arguments but by its result.
    pub leakproof: bool,
    /// It is called in words that SQL has for it, and shown so.
    pub in_words: bool,
    /// Its arguments and its result are of types whose values are a few bytes each.
    pub is_light: bool,
    /// It takes from the sequence that its first argument names, or sets it.
    pub draws: bool,
    /// It writes values of any type without being told of which they are.
    pub spells: bool,
    /// A call passes, before the arguments that are written, one more: the `oid[]` of their types. Functions of any type need it, since a
    /// value does not tell `text` from `json` or `varchar`, nor `oid` from `regclass`.
    pub wants_types: bool,
    /// What it does, if it tests two texts and keeps neither: a caller may lend them.
    pub on_texts: Option<TextTest>,
    /// What it does, if it makes a text of another one: a caller may lend it.
    pub on_text: Option<TextChange>,
    /// Code.
    pub eval: ScalarFn,
}

/// A test of two texts.
pub type TextTest = fn(&str, &str) -> Result<bool>;

/// A text made of another one.
pub type TextChange = fn(&str) -> Cow<'_, str>;

/// A set-returning function's code: all rows at once, each with the function's columns.
pub type SetFn = fn(&dyn EvalContext, &[Datum]) -> Result<SetRows>;

/// The rows of a set-returning function, made as they are asked for.
pub type SetRows = Box<dyn Iterator<Item = Result<Vec<Datum>>> + Send>;

/// A set-returning function.
pub struct SetFunction {
    /// OID.
    pub oid: u32,
    /// Name.
    pub name: &'static str,
    /// Argument types.
    pub args: &'static [Oid],
    /// Names of the arguments, for `f(name => value)`; empty if they have none.
    pub names: &'static [&'static str],
    /// What stands for the last arguments if a call that names arguments leaves them out.
    pub defaults: &'static [Datum],
    /// Last argument repeats.
    pub variadic: bool,
    /// Output columns; one unnamed column takes the function's (or alias's) name. Pseudo-types follow the arguments.
    pub columns: &'static [(&'static str, Oid)],
    /// NULL in, no rows out.
    pub strict: bool,
    /// Code.
    pub eval: SetFn,
}

/// The running state of one aggregate in one group.
pub trait Accumulator: Send + Any {
    /// Takes one row's arguments.
    fn add(&mut self, cx: &dyn EvalContext, args: &[Datum]) -> Result<()>;
    /// Takes one row's only argument where it lies.
    fn add_stored(&mut self, cx: &dyn EvalContext, value: DatumRef<'_>) -> Result<()> {
        self.add(cx, &[value.to_owned()])
    }
    /// Takes so many rows of an aggregate without arguments.
    fn add_rows(&mut self, cx: &dyn EvalContext, rows: usize) -> Result<()> {
        (0..rows).try_for_each(|_| self.add(cx, &[]))
    }
    /// Takes the only arguments of many rows, of an ordered-set aggregate in the order of WITHIN GROUP.
    fn add_sorted(&mut self, cx: &dyn EvalContext, values: Vec<Datum>) -> Result<()> {
        values.into_iter().try_for_each(|value| {
            base::work::step(16)?;
            self.add(cx, &[value])
        })
    }
    /// The result so far.
    fn finish(&mut self, cx: &dyn EvalContext) -> Result<Datum>;
    /// The average so far, of a state whose aggregate is a sum that has one ([`Aggregate::average_of`]).
    fn average(&mut self) -> Result<Datum> {
        Err(Error::internal("an average of no sum"))
    }
    /// Direct arguments of an ordered-set aggregate, and how the rows are sorted; told before the first row.
    fn direct(&mut self, _values: &[Datum], _order: &[SortedBy]) {}
    /// Takes a row out again that was added; `false` if the state cannot do that.
    fn remove(&mut self, _args: &[Datum]) -> Result<bool> {
        Ok(false)
    }
    /// Takes the rows that another state of the same aggregate has taken, of the same argument types and direct arguments, whatever their
    /// order. Not called if the result shows the order of rows ([`Aggregate::shows_order`]).
    ///
    /// # Errors
    /// As [`Accumulator::add`].
    fn combine(&mut self, _other: &mut dyn Accumulator) -> Result<()> {
        Err(Error::internal("an aggregate whose states cannot be combined"))
    }
    /// Bytes held, roughly.
    fn memory(&self) -> usize {
        64
    }
}

/// How an ordered-set aggregate's rows are sorted.
#[derive(Clone, Copy, Debug)]
pub struct SortedBy {
    /// Type of the key.
    pub ty: Oid,
    /// DESC
    pub descending: bool,
    /// NULLS FIRST
    pub nulls_first: bool,
}

/// An aggregate function.
pub struct Aggregate {
    /// OID.
    pub oid: u32,
    /// Name.
    pub name: &'static str,
    /// Argument types; empty for `count(*)`.
    pub args: &'static [Oid],
    /// Result type; pseudo-types follow the arguments.
    pub ret: Oid,
    /// Rows with a NULL argument are skipped.
    pub strict: bool,
    /// Ordered-set aggregate: its last arguments are the values it sorts (WITHIN GROUP).
    pub ordered_set: bool,
    /// The result shows the order of the rows: lists and joined texts.
    pub shows_order: bool,
    /// OID of the sum whose state answers this average too ([`Accumulator::average`]).
    pub average_of: Option<u32>,
    /// A fresh state, for the actual argument types.
    pub create: fn(&[Oid]) -> Box<dyn Accumulator>,
}

/// An operator of the catalog.
#[derive(Debug)]
pub struct Operator {
    /// PostgreSQL's OID.
    pub oid: u32,
    /// Symbol.
    pub name: &'static str,
    /// Left type; `Oid::INVALID` for prefix operators.
    pub left: Oid,
    /// Right type.
    pub right: Oid,
    /// Name of the function that implements it (in [`Function`] tables), with (left, right) argument types.
    pub function: &'static str,
    /// For comparison operators: which, so that the planner can use an index.
    pub compare: Option<CompareOp>,
}

/// When a cast applies by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CastContext {
    /// Everywhere.
    Implicit,
    /// In assignments to columns.
    Assignment,
    /// Only when written.
    Explicit,
}

/// A cast of the catalog.
#[derive(Debug)]
pub struct CastEntry {
    /// From.
    pub source: Oid,
    /// To.
    pub target: Oid,
    /// When.
    pub context: CastContext,
    /// Function name (first argument: source type); `None` is binary-compatible.
    pub function: Option<&'static str>,
}

macro_rules! debug_by_name {
    ($($t:ty),+) => {
        $(impl fmt::Debug for $t {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}#{}", self.name, self.oid)
            }
        })+
    };
}
debug_by_name!(Function, SetFunction, Aggregate);

impl PartialEq for Function {
    fn eq(&self, other: &Function) -> bool {
        std::ptr::eq(self, other) || self.oid == other.oid && self.name == other.name && self.args == other.args
    }
}

impl Eq for Function {}
