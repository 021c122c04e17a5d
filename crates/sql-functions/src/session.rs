//! Functions about the session and the catalog.
//!
//! Responsible for: their table, who and where the session is, settings, what clients ask for on connecting.
//! Not responsible for: the catalog's names and definitions (`catalog`), sequences and privileges (their submodules).

mod advisory;
mod backends;
mod notify;
mod sequences;
pub(crate) mod transaction;
mod waits;

pub use sequences::no_sequence;
pub use transaction::{Question, answer, question};

use std::sync::Arc;

use base::{Error, Oid, Result, SqlState};
use sql_parse::names::{is_temporary, schema_name};
use types::encoding::Encoding;
use types::oid::*;
use types::{Array, Datum, Numeric};

use super::entry::{argument_types, immutable, int_of, mismatch, stable, text_of, volatile};
use super::{EvalContext, Function, Suspension};

/// What an identity column gets; binding puts it in the place of the `nextval` of the column's default.
pub static IDENTITY_VALUE: Function = volatile(9540, "identity value", &[REGCLASS], INT8, sequences::next_identity);

/// The table.
#[rustfmt::skip]
pub(super) static FUNCTIONS: &[Function] = &[
    stable(89, "version", &[], TEXT, version),
    stable(861, "current_database", &[], NAME, current_database),
    stable(1402, "current_schema", &[], NAME, current_schema),
    stable(1403, "current_schemas", &[BOOL], NAME_ARRAY, current_schemas),
    stable(745, "current_user", &[], NAME, current_user),
    stable(746, "session_user", &[], NAME, session_user),
    stable(710, "getpgusername", &[], NAME, current_user),
    volatile(315, "pg_jit_available", &[], BOOL, no),
    stable(2026, "pg_backend_pid", &[], INT4, backend_pid),
    stable(1573, "pg_get_ruledef", &[OID], TEXT, null),
    stable(2504, "pg_get_ruledef", &[OID, BOOL], TEXT, null),
    stable(1662, "pg_get_triggerdef", &[OID], TEXT, null),
    stable(2730, "pg_get_triggerdef", &[OID, BOOL], TEXT, null),
    volatile(2322, "pg_tablespace_size", &[OID], INT8, null),
    volatile(2323, "pg_tablespace_size", &[NAME], INT8, null),
    immutable(2288, "pg_size_pretty", &[INT8], TEXT, size_pretty),
    immutable(3166, "pg_size_pretty", &[NUMERIC], TEXT, size_pretty),
    stable(1597, "pg_encoding_to_char", &[INT4], NAME, encoding_to_char),
    stable(1264, "pg_char_to_encoding", &[NAME], INT4, char_to_encoding),
    stable(1039, "getdatabaseencoding", &[], NAME, database_encoding),
    immutable(2319, "pg_encoding_max_length", &[INT4], INT4, encoding_max_length),
    stable(810, "pg_client_encoding", &[], NAME, client_encoding),
    stable(3298, "row_security_active", &[OID], BOOL, no),
    stable(3299, "row_security_active", &[TEXT], BOOL, no),
    volatile(3810, "pg_is_in_recovery", &[], BOOL, no),
    stable(1269, "pg_column_size", &[ANY], INT4, column_size),
    stable(1619, "pg_typeof", &[ANY], REGTYPE, type_of).lax().told_types(),
    stable(2077, "current_setting", &[TEXT], TEXT, current_setting),
    stable(3294, "current_setting", &[TEXT, BOOL], TEXT, current_setting),
    volatile(2078, "set_config", &[TEXT, TEXT, BOOL], TEXT, set_config).lax(),
    volatile(1574, "nextval", &[REGCLASS], INT8, sequences::nextval).drawing(),
    volatile(1575, "currval", &[REGCLASS], INT8, sequences::currval),
    volatile(1576, "setval", &[REGCLASS, INT8], INT8, sequences::setval).drawing(),
    volatile(1765, "setval", &[REGCLASS, INT8, BOOL], INT8, sequences::setval).drawing(),
    volatile(2559, "lastval", &[], INT8, sequences::lastval),
    // Names that no statement can write without quotes: what a sequence shows as a table.
    volatile(4032, "pg_sequence_last_value", &[REGCLASS], INT8, sequences::sequence_last_value),
    volatile(3809, "pg_export_snapshot", &[], TEXT, waits::export_snapshot),
    volatile(3036, "pg_notify", &[TEXT, TEXT], VOID, notify::notify).lax(),
    volatile(3296, "pg_notification_queue_usage", &[], FLOAT8, notify::queue_usage),
    volatile(2626, "pg_sleep", &[FLOAT8], VOID, waits::sleep),
    volatile(3935, "pg_sleep_for", &[INTERVAL], VOID, waits::sleep_for),
    volatile(3936, "pg_sleep_until", &[TIMESTAMPTZ], VOID, waits::sleep_until),
    volatile(2880, "pg_advisory_lock", &[INT8], VOID, advisory::lock),
    volatile(2881, "pg_advisory_lock_shared", &[INT8], VOID, advisory::lock_shared),
    volatile(2882, "pg_try_advisory_lock", &[INT8], BOOL, advisory::try_lock),
    volatile(2883, "pg_try_advisory_lock_shared", &[INT8], BOOL, advisory::try_lock_shared),
    volatile(2884, "pg_advisory_unlock", &[INT8], BOOL, advisory::unlock),
    volatile(2885, "pg_advisory_unlock_shared", &[INT8], BOOL, advisory::unlock_shared),
    volatile(3089, "pg_advisory_xact_lock", &[INT8], VOID, advisory::xact_lock),
    volatile(3090, "pg_advisory_xact_lock_shared", &[INT8], VOID, advisory::xact_lock_shared),
    volatile(3091, "pg_try_advisory_xact_lock", &[INT8], BOOL, advisory::try_xact_lock),
    volatile(3092, "pg_try_advisory_xact_lock_shared", &[INT8], BOOL, advisory::try_xact_lock_shared),
    volatile(2886, "pg_advisory_lock", &[INT4, INT4], VOID, advisory::lock),
    volatile(2887, "pg_advisory_lock_shared", &[INT4, INT4], VOID, advisory::lock_shared),
    volatile(2888, "pg_try_advisory_lock", &[INT4, INT4], BOOL, advisory::try_lock),
    volatile(2889, "pg_try_advisory_lock_shared", &[INT4, INT4], BOOL, advisory::try_lock_shared),
    volatile(2890, "pg_advisory_unlock", &[INT4, INT4], BOOL, advisory::unlock),
    volatile(2891, "pg_advisory_unlock_shared", &[INT4, INT4], BOOL, advisory::unlock_shared),
    volatile(3093, "pg_advisory_xact_lock", &[INT4, INT4], VOID, advisory::xact_lock),
    volatile(3094, "pg_advisory_xact_lock_shared", &[INT4, INT4], VOID, advisory::xact_lock_shared),
    volatile(3095, "pg_try_advisory_xact_lock", &[INT4, INT4], BOOL, advisory::try_xact_lock),
    volatile(3096, "pg_try_advisory_xact_lock_shared", &[INT4, INT4], BOOL, advisory::try_xact_lock_shared),
    volatile(2892, "pg_advisory_unlock_all", &[], VOID, advisory::unlock_all),
    volatile(2561, "pg_blocking_pids", &[INT4], INT4_ARRAY, advisory::blocking_pids),
    stable(2854, "pg_my_temp_schema", &[], OID, temporary_schema),
    stable(2855, "pg_is_other_temp_schema", &[OID], BOOL, no),
    stable(6174, "pg_get_statisticsobjdef_columns", &[OID], TEXT, null),
    stable(3415, "pg_get_statisticsobjdef", &[OID], TEXT, null),
    stable(3352, "pg_get_partkeydef", &[OID], TEXT, null),
    stable(3408, "pg_get_partition_constraintdef", &[OID], TEXT, null),
    stable(2199, "inet_server_port", &[], INT4, null).lax(),
    stable(2197, "inet_client_port", &[], INT4, backends::client_port).lax(),
    stable(3808, "pg_get_function_arg_default", &[OID, INT4], TEXT, null),
    stable(6197, "pg_get_function_sqlbody", &[OID], TEXT, null),
    stable(2034, "pg_conf_load_time", &[], TIMESTAMPTZ, backends::started),
    stable(2560, "pg_postmaster_start_time", &[], TIMESTAMPTZ, backends::started),
    volatile(2171, "pg_cancel_backend", &[INT4], BOOL, backends::cancel),
    volatile(2096, "pg_terminate_backend", &[INT4, INT8], BOOL, backends::terminate).or(&[Datum::Int8(0)]),
    volatile(2621, "pg_reload_conf", &[], BOOL, backends::reload),
    volatile(9599, "pg_stat_statements_reset", &[], VOID, backends::reset_statements),
    stable(3778, "pg_tablespace_location", &[OID], TEXT, tablespace_location),
    stable(2198, "inet_server_addr", &[], INET, null).lax(),
    stable(9510, "current_role", &[], NAME, current_user),
    stable(9511, "user", &[], NAME, current_user),
    stable(9512, "current_catalog", &[], NAME, current_database),
];

fn null(_: &dyn EvalContext, _: &[Datum]) -> Result<Datum> {
    Ok(Datum::Null)
}

fn no(_: &dyn EvalContext, _: &[Datum]) -> Result<Datum> {
    Ok(Datum::Bool(false))
}

/// The schema of the session's temporary relations, which is always on its path; 0 if there is none.
fn temporary_schema(cx: &dyn EvalContext, _: &[Datum]) -> Result<Datum> {
    let (catalog, path) = (cx.catalog(), cx.identity().search_path);
    let own = path.into_iter().find(|&schema| is_temporary(&catalog, schema));
    Ok(Datum::Oid(own.map_or(0, |schema| schema.0)))
}

fn version(_: &dyn EvalContext, _: &[Datum]) -> Result<Datum> {
    Ok(Datum::from(format!(
        "PostgreSQL {} (Nyala {}) on {}-{}, 64-bit",
        super::SERVER_VERSION,
        env!("CARGO_PKG_VERSION"),
        std::env::consts::ARCH,
        std::env::consts::OS,
    )))
}

fn current_database(cx: &dyn EvalContext, _: &[Datum]) -> Result<Datum> {
    Ok(Datum::from(cx.identity().database))
}

fn current_user(cx: &dyn EvalContext, _: &[Datum]) -> Result<Datum> {
    Ok(Datum::from(cx.identity().current_user))
}

fn session_user(cx: &dyn EvalContext, _: &[Datum]) -> Result<Datum> {
    Ok(Datum::from(cx.identity().session_user))
}

fn backend_pid(cx: &dyn EvalContext, _: &[Datum]) -> Result<Datum> {
    Ok(Datum::Int4(cx.backend_pid()))
}

/// A setting that everybody may see.
fn setting_of(cx: &dyn EvalContext, name: &str) -> Option<String> {
    cx.setting(name).ok().flatten()
}

/// The names of the schemas that are searched; `pg_catalog` is left out if nobody named it and it is not wanted.
fn search_path(cx: &dyn EvalContext, implicit: bool) -> Vec<String> {
    let system = engine_api::oids::SCHEMA_PG_CATALOG;
    let named = setting_of(cx, "search_path").is_some_and(|path| path.contains("pg_catalog"));
    let catalog = cx.catalog();
    let path = cx.identity().search_path;
    let temporary = setting_of(cx, "search_path").is_some_and(|path| path.contains("pg_temp"));
    let own = |s: Oid| !implicit && !temporary && is_temporary(&catalog, s);
    let wanted = path.iter().filter(|&&s| (s != system || implicit || named) && !own(s));
    wanted.filter_map(|&s| Some(schema_name(&catalog, s)?.to_string())).collect()
}

fn current_schema(cx: &dyn EvalContext, _: &[Datum]) -> Result<Datum> {
    Ok(search_path(cx, false).into_iter().next().into())
}

fn current_schemas(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let values: Vec<Datum> =
        search_path(cx, matches!(args, [Datum::Bool(true)])).into_iter().map(Datum::from).collect();
    let dims = if values.is_empty() { Vec::new() } else { vec![(values.len() as i32, 1)] };
    Ok(Datum::Array(Arc::new(Array { element: NAME, dims, values })))
}

fn tablespace_location(_: &dyn EvalContext, _: &[Datum]) -> Result<Datum> {
    Ok(Datum::text(""))
}

fn encoding_to_char(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    Ok(Datum::text(Encoding::from_number(int_of(args, 0)?).map_or("", Encoding::name)))
}

fn char_to_encoding(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    Ok(Datum::Int4(Encoding::from_name(text_of(args, 0)?).map_or(-1, Encoding::number)))
}

fn encoding_max_length(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    Ok(Encoding::from_number(int_of(args, 0)?).map_or(Datum::Null, |e| Datum::Int4(e.max_length())))
}

fn database_encoding(_: &dyn EvalContext, _: &[Datum]) -> Result<Datum> {
    Ok(Datum::text("UTF8"))
}

fn client_encoding(cx: &dyn EvalContext, _: &[Datum]) -> Result<Datum> {
    Ok(setting_of(cx, "client_encoding").map_or_else(|| Datum::text("UTF8"), Datum::from))
}

fn current_setting(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let name = text_of(args, 0)?;
    match cx.setting(name)? {
        Some(value) => Ok(Datum::from(value)),
        None if matches!(args.get(1), Some(Datum::Bool(true))) => Ok(Datum::Null),
        None => Err(Error::new(SqlState::UNDEFINED_OBJECT, format!("unrecognized configuration parameter \"{name}\""))),
    }
}

fn set_config(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let Some(Datum::Text(name)) = args.first() else {
        return Err(Error::new(SqlState::NULL_VALUE_NOT_ALLOWED, "SET requires parameter name"));
    };
    let value = match args.get(1) {
        Some(Datum::Text(value)) => Some(&**value),
        _ => None,
    };
    cx.set_setting(name, value, matches!(args.get(2), Some(Datum::Bool(true))))?;
    Ok(cx.setting(name)?.into())
}

/// Bytes of a value as PostgreSQL stores it in a row.
fn column_size(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let with_header = |bytes: usize| if bytes < 127 { bytes + 1 } else { bytes + 4 };
    let size = match args {
        [Datum::Bool(_)] => 1,
        [Datum::Int2(_)] => 2,
        [Datum::Int4(_) | Datum::Oid(_) | Datum::Float4(_) | Datum::Date(_)] => 4,
        [Datum::Int8(_) | Datum::Float8(_) | Datum::Time(_) | Datum::Timestamp(_) | Datum::TimestampTz(_)] => 8,
        [Datum::TimeTz(..)] => 12,
        [Datum::Mac(_)] => 6,
        [Datum::Mac8(_)] => 8,
        [Datum::Inet(v)] => with_header(2 + usize::from(v.width() / 8)),
        [Datum::Bits(held)] => with_header(4 + types::bits::bytes(held).len()),
        [Datum::Interval(_) | Datum::Uuid(_)] => 16,
        [Datum::Text(s)] => with_header(s.len()),
        [Datum::Bytea(b)] => with_header(b.len()),
        _ => return Err(Error::unsupported("pg_column_size of this type is not supported")),
    };
    Ok(Datum::Int4(size as i32))
}

fn type_of(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let (types, args) = argument_types(args);
    let ty = match (types, args) {
        (Some(types), _) => types.values.first().cloned().unwrap_or_default(),
        (None, [value]) => match super::entry::natural_type(value) {
            Some(ty) => Datum::Oid(ty.0),
            None => return Err(Error::unsupported("the type of this expression is not known when it is evaluated")),
        },
        _ => return Err(mismatch("pg_typeof")),
    };
    Ok(ty)
}

/// Limit, whether the number is held doubled to round at the end, and size in bits of each unit.
const UNITS: [(&str, i64, bool, u32); 6] = [
    ("bytes", 10 * 1024, false, 0),
    ("kB", 20 * 1024 - 1, true, 10),
    ("MB", 20 * 1024 - 1, true, 20),
    ("GB", 20 * 1024 - 1, true, 30),
    ("TB", 20 * 1024 - 1, true, 40),
    ("PB", 20 * 1024 - 1, true, 50),
];

fn size_pretty(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let mut size = match args {
        [Datum::Int8(n)] => Numeric::new(*n, 0),
        [Datum::Numeric(n)] => n.clone(),
        _ => return Err(mismatch("pg_size_pretty")),
    };
    for (i, &(unit, limit, round, bits)) in UNITS.iter().enumerate() {
        let next = UNITS.get(i + 1);
        if next.is_none() || size.abs() < Numeric::new(limit, 0) {
            if round {
                let one = Numeric::new(if size.signum() < 0 { -1 } else { 1 }, 0);
                size = size.add(&one)?.div_trunc(&Numeric::new(2, 0))?;
            }
            let mut text = Vec::new();
            size.write(&mut text);
            return Ok(Datum::from(format!("{} {unit}", String::from_utf8_lossy(&text))));
        }
        if let Some(next) = next {
            let shift = next.3 - bits - u32::from(next.2) + u32::from(round);
            size = size.div_trunc(&Numeric::new(1 << shift, 0))?;
        }
    }
    Err(mismatch("pg_size_pretty"))
}
