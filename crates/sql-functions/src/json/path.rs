//! Functions that run paths over documents.
//!
//! Responsible for: their table, what they make of the items that a path finds. Not responsible for: the language
//! (`types::jsonpath`), running it (`run`).

mod places;
mod run;

use base::{Error, Result, SqlState};
use types::Datum;
use types::json::{Value, parse};
use types::jsonpath::JsonPath;
use types::oid::*;

use super::super::entry::{immutable, mismatch, set, stable};
use super::super::{EvalContext, Function, SetFunction, SetRows};
use super::change::datum;
use super::invalid;

/// Names of the arguments of `jsonb_path_…`.
const NAMES: &[&str] = &["target", "path", "vars", "silent"];

/// Without variables and not silent. A value that is no document stands for that there are no variables.
const DEFAULTS: &[Datum] = &[Datum::Bool(false), Datum::Bool(false)];

/// The table.
#[rustfmt::skip]
pub(in super::super) static FUNCTIONS: &[Function] = &[
    immutable(4005, "jsonb_path_exists", &[JSONB, JSONPATH, JSONB, BOOL], BOOL, exists).or(DEFAULTS).named(NAMES),
    immutable(4009, "jsonb_path_match", &[JSONB, JSONPATH, JSONB, BOOL], BOOL, matches).or(DEFAULTS).named(NAMES),
    immutable(4007, "jsonb_path_query_array", &[JSONB, JSONPATH, JSONB, BOOL], JSONB, query_array).or(DEFAULTS).named(NAMES),
    immutable(4008, "jsonb_path_query_first", &[JSONB, JSONPATH, JSONB, BOOL], JSONB, query_first).or(DEFAULTS).named(NAMES),
    immutable(4010, "jsonb_path_exists_opr", &[JSONB, JSONPATH], BOOL, exists_silently),
    immutable(4011, "jsonb_path_match_opr", &[JSONB, JSONPATH], BOOL, matches_silently),
    stable(1177, "jsonb_path_exists_tz", &[JSONB, JSONPATH, JSONB, BOOL], BOOL, exists_tz).or(DEFAULTS).named(NAMES),
    stable(2030, "jsonb_path_match_tz", &[JSONB, JSONPATH, JSONB, BOOL], BOOL, matches_tz).or(DEFAULTS).named(NAMES),
    stable(1180, "jsonb_path_query_array_tz", &[JSONB, JSONPATH, JSONB, BOOL], JSONB, query_array_tz).or(DEFAULTS).named(NAMES),
    stable(2023, "jsonb_path_query_first_tz", &[JSONB, JSONPATH, JSONB, BOOL], JSONB, query_first_tz).or(DEFAULTS).named(NAMES),
];

/// Those that return sets.
#[rustfmt::skip]
pub(in super::super) static SET_FUNCTIONS: &[SetFunction] = &[
    set(4006, "jsonb_path_query", &[JSONB, JSONPATH, JSONB, BOOL], &[("", JSONB)], query).named(NAMES).or(DEFAULTS),
    set(9576, "jsonb_path_query", &[JSONB, JSONPATH], &[("", JSONB)], query).named(NAMES),
    set(9577, "jsonb_path_query", &[JSONB, JSONPATH, JSONB], &[("", JSONB)], query).named(NAMES),
    set(1179, "jsonb_path_query_tz", &[JSONB, JSONPATH, JSONB, BOOL], &[("", JSONB)], query_tz).named(NAMES).or(DEFAULTS),
    set(9597, "jsonb_path_query_tz", &[JSONB, JSONPATH, JSONB], &[("", JSONB)], query_tz),
    set(9578, "jsonb_path_query_tz", &[JSONB, JSONPATH], &[("", JSONB)], query_tz).named(NAMES),
];

/// A call's arguments.
struct Call {
    document: Value,
    path: JsonPath,
    variables: Value,
    silent: bool,
    /// The session's zone may be asked.
    zoned: bool,
}

impl Call {
    fn of(args: &[Datum]) -> Result<Call> {
        let [Datum::Text(document), Datum::Text(path), rest @ ..] = args else { return Err(mismatch("jsonb_path")) };
        let variables = match rest.first() {
            Some(Datum::Text(variables)) => parse(variables)?,
            _ => Value::Object(Vec::new()),
        };
        if !matches!(variables, Value::Object(_)) {
            return Err(invalid("\"vars\" argument is not an object")
                .detail("Jsonpath parameters should be encoded as key-value pairs of \"vars\" object."));
        }
        let silent = matches!(rest.get(1), Some(Datum::Bool(true)));
        Ok(Call { document: parse(document)?, path: JsonPath::parse(path)?, variables, silent, zoned: false })
    }

    /// All items; `None` for an error that is passed over. What was found before such an error counts.
    fn items(&self, cx: &dyn EvalContext) -> Result<(Vec<Value>, bool)> {
        let (items, outcome) = run::items(cx, &self.path, &self.document, &self.variables, false, self.zoned);
        self.settled(items, outcome)
    }

    fn settled(&self, items: Vec<Value>, outcome: Result<()>) -> Result<(Vec<Value>, bool)> {
        match outcome {
            Ok(()) => Ok((items, true)),
            Err(e) if self.silent && run::is_suppressed(&e) => Ok((items, false)),
            Err(e) => Err(e),
        }
    }

    fn exists(&self, cx: &dyn EvalContext) -> Result<Datum> {
        // A lax path that found something looks no further, and so meets no later error.
        let (items, outcome) =
            run::items(cx, &self.path, &self.document, &self.variables, !self.path.strict, self.zoned);
        let (items, whole) = self.settled(items, outcome)?;
        Ok(if whole { Datum::Bool(!items.is_empty()) } else { Datum::Null })
    }

    /// A call of a function that may ask the session's zone.
    fn zoned(args: &[Datum]) -> Result<Call> {
        Ok(Call { zoned: true, ..Call::of(args)? })
    }

    fn array(&self, cx: &dyn EvalContext) -> Result<Datum> {
        datum(&Value::Array(self.items(cx)?.0))
    }

    fn first(&self, cx: &dyn EvalContext) -> Result<Datum> {
        self.items(cx)?.0.first().map_or(Ok(Datum::Null), datum)
    }

    fn rows(&self, cx: &dyn EvalContext) -> Result<SetRows> {
        Ok(Box::new(self.items(cx)?.0.into_iter().map(|item| Ok(vec![datum(&item)?]))))
    }

    fn matches(&self, cx: &dyn EvalContext) -> Result<Datum> {
        match self.items(cx)?.0.as_slice() {
            [Value::Bool(v)] => Ok(Datum::Bool(*v)),
            [Value::Null] => Ok(Datum::Null),
            _ if self.silent => Ok(Datum::Null),
            _ => Err(Error::new(SqlState::SINGLETON_SQL_JSON_ITEM_REQUIRED, "single boolean result is expected")),
        }
    }
}

fn exists(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    Call::of(args)?.exists(cx)
}

fn matches(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    Call::of(args)?.matches(cx)
}

fn exists_silently(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    Call { silent: true, ..Call::of(args)? }.exists(cx)
}

fn matches_silently(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    Call { silent: true, ..Call::of(args)? }.matches(cx)
}

fn exists_tz(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    Call::zoned(args)?.exists(cx)
}

fn matches_tz(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    Call::zoned(args)?.matches(cx)
}

fn query_array(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    Call::of(args)?.array(cx)
}

fn query_array_tz(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    Call::zoned(args)?.array(cx)
}

fn query_first(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    Call::of(args)?.first(cx)
}

fn query_first_tz(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    Call::zoned(args)?.first(cx)
}

/// The rows of a set.
fn query(cx: &dyn EvalContext, args: &[Datum]) -> Result<SetRows> {
    Call::of(args)?.rows(cx)
}

fn query_tz(cx: &dyn EvalContext, args: &[Datum]) -> Result<SetRows> {
    Call::zoned(args)?.rows(cx)
}

/// Checks the regular expressions of a path, which PostgreSQL does when the path is read.
pub(in super::super) fn check(text: &str) -> Result<()> {
    run::check_patterns(&JsonPath::parse(text)?.expr)
}
