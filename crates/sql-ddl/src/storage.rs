//! Storage parameters of tables and indexes: `WITH (fillfactor = 70)`.
//!
//! Responsible for: which there are for what, what values they take, what SET and RESET leave of a list.
//! Not responsible for: effects of the parameters. They have none, because rows are in memory; they are stored and shown, so that a
//! definition comes back as it was written. The options of views are in `view`.
//! Source: the parameters and errors of PostgreSQL 15's `reloptions.c`.

use base::{Error, Result, SqlState};
use rupg_sql::nodes::Node;
use sql_parse::amounts::{parse_bool, plain_number};

use super::create_table::storage_options;

/// What parameters are of.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Of {
    /// A table or materialized view.
    Table,
    /// An ordered index.
    Btree,
    /// A hash index.
    Hash,
}

impl Of {
    /// Of an index.
    pub(super) fn index(is_hash: bool) -> Of {
        if is_hash { Of::Hash } else { Of::Btree }
    }
}

/// The values of a parameter.
enum Values {
    Bool,
    Int(i64, i64),
    Float(f64, f64),
    /// When vacuum looks after indexes.
    Cleanup,
}

use Values::{Bool, Cleanup, Float, Int};

const INT_MAX: i64 = i32::MAX as i64;
const BILLION: i64 = 1_000_000_000;

/// Parameters of tables that those of their large values have too.
const OF_VALUES: &[(&str, Values)] = &[
    ("autovacuum_enabled", Bool),
    ("autovacuum_vacuum_threshold", Int(0, INT_MAX)),
    ("autovacuum_vacuum_insert_threshold", Int(-1, INT_MAX)),
    ("autovacuum_vacuum_cost_limit", Int(1, 10_000)),
    ("autovacuum_freeze_min_age", Int(0, BILLION)),
    ("autovacuum_multixact_freeze_min_age", Int(0, BILLION)),
    ("autovacuum_freeze_max_age", Int(100_000, 2 * BILLION)),
    ("autovacuum_multixact_freeze_max_age", Int(10_000, 2 * BILLION)),
    ("autovacuum_freeze_table_age", Int(0, 2 * BILLION)),
    ("autovacuum_multixact_freeze_table_age", Int(0, 2 * BILLION)),
    ("log_autovacuum_min_duration", Int(-1, INT_MAX)),
    ("autovacuum_vacuum_cost_delay", Float(-1.0, 100.0)),
    ("autovacuum_vacuum_scale_factor", Float(0.0, 100.0)),
    ("autovacuum_vacuum_insert_scale_factor", Float(0.0, 100.0)),
    ("vacuum_truncate", Bool),
    ("vacuum_index_cleanup", Cleanup),
];

/// Parameters of tables alone.
const OF_TABLES: &[(&str, Values)] = &[
    ("fillfactor", Int(10, 100)),
    ("user_catalog_table", Bool),
    ("parallel_workers", Int(0, 1024)),
    ("toast_tuple_target", Int(128, 8160)),
    ("autovacuum_analyze_threshold", Int(0, INT_MAX)),
    ("autovacuum_analyze_scale_factor", Float(0.0, 100.0)),
];

const OF_BTREES: &[(&str, Values)] = &[
    ("fillfactor", Int(10, 100)),
    ("vacuum_cleanup_index_scale_factor", Float(0.0, 1e10)),
    ("deduplicate_items", Bool),
];

const OF_HASHES: &[(&str, Values)] = &[("fillfactor", Int(10, 100))];

fn invalid(message: String) -> Error {
    Error::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

/// The parameters that a definition gives.
///
/// # Errors
/// 22023 for a name that is unknown or given twice and for a value that is none, 0A000 for WITH OIDS.
pub(super) fn given(options: &[Option<Node>], of: Of) -> Result<Vec<(String, String)>> {
    let mut kept: Vec<(String, String)> = Vec::new();
    let mut of_values: Vec<String> = Vec::new();
    for (option, (name, value)) in definitions(options).zip(storage_options(options)) {
        let is_of_values = space(option.defnamespace.as_deref(), of)?;
        if of == Of::Table && !is_of_values && name == "oids" {
            if parse_bool(&value) == Some(true) {
                return Err(Error::unsupported("tables declared WITH OIDS are not supported"));
            }
            continue;
        }
        let taken = if is_of_values { of_values.contains(&name) } else { kept.iter().any(|(other, _)| *other == name) };
        if taken {
            return Err(invalid(format!("parameter \"{name}\" specified more than once")));
        }
        check(&name, &value, of, is_of_values)?;
        match is_of_values {
            // There is nothing that they would be of.
            true => of_values.push(name),
            false => kept.push((name, value)),
        }
    }
    Ok(kept)
}

/// What SET (…) makes of a list.
///
/// # Errors
/// As [`given`].
pub(super) fn set(kept: &[(String, String)], options: &[Option<Node>], of: Of) -> Result<Vec<(String, String)>> {
    let new = given(options, of)?;
    let stays = |(name, _): &&(String, String)| new.iter().all(|(other, _)| other != name);
    Ok(kept.iter().filter(stays).cloned().chain(new.iter().cloned()).collect())
}

/// What RESET (…) makes of a list.
///
/// # Errors
/// 42601 for a value.
pub(super) fn reset(kept: &[(String, String)], options: &[Option<Node>]) -> Result<Vec<(String, String)>> {
    let mut gone = Vec::new();
    for option in definitions(options) {
        if option.arg.is_some() {
            return Err(Error::new(SqlState::SYNTAX_ERROR, "RESET must not include values for parameters"));
        }
        if option.defnamespace.is_none() {
            gone.extend(option.defname.as_deref());
        }
    }
    Ok(kept.iter().filter(|(name, _)| !gone.contains(&name.as_str())).cloned().collect())
}

fn definitions(options: &[Option<Node>]) -> impl Iterator<Item = &rupg_sql::nodes::DefElem> {
    options.iter().flatten().filter_map(|node| match node {
        Node::DefElem(option) if option.defname.is_some() => Some(&**option),
        _ => None,
    })
}

/// Whether a parameter is of a table's large values.
fn space(name: Option<&str>, of: Of) -> Result<bool> {
    match name {
        None => Ok(false),
        Some("toast") if of == Of::Table => Ok(true),
        Some(name) => Err(invalid(format!("unrecognized parameter namespace \"{name}\""))),
    }
}

fn check(name: &str, value: &str, of: Of, is_of_values: bool) -> Result<()> {
    let lists: &[&[(&str, Values)]] = match of {
        Of::Table if is_of_values => &[OF_VALUES],
        Of::Table => &[OF_TABLES, OF_VALUES],
        Of::Btree => &[OF_BTREES],
        Of::Hash => &[OF_HASHES],
    };
    let found = lists.iter().flat_map(|list| list.iter()).find(|(known, _)| *known == name);
    let (_, values) = found.ok_or_else(|| invalid(format!("unrecognized parameter \"{name}\"")))?;
    let wrong = |kind: &str| invalid(format!("invalid value for {kind} option \"{name}\": {value}"));
    let beyond = |least: String, most: String| {
        let error = invalid(format!("value {value} out of bounds for option \"{name}\""));
        Err(error.detail(format!("Valid values are between \"{least}\" and \"{most}\".")))
    };
    match values {
        Bool => parse_bool(value).map(|_| ()).ok_or_else(|| wrong("boolean")),
        Cleanup if value.eq_ignore_ascii_case("auto") || parse_bool(value).is_some() => Ok(()),
        Cleanup => Err(wrong("enum").detail("Valid values are \"on\", \"off\", and \"auto\".")),
        Int(least, most) => {
            let number = plain_number(value).map(f64::round_ties_even);
            let number = number.filter(|number| (f64::from(i32::MIN)..=f64::from(i32::MAX)).contains(number));
            match number.ok_or_else(|| wrong("integer"))? as i64 {
                number if (*least..=*most).contains(&number) => Ok(()),
                _ => beyond(least.to_string(), most.to_string()),
            }
        }
        Float(least, most) => match plain_number(value).ok_or_else(|| wrong("floating point"))? {
            number if (*least..=*most).contains(&number) => Ok(()),
            _ => beyond(format!("{least:.6}"), format!("{most:.6}")),
        },
    }
}
