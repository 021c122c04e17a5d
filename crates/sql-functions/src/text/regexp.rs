//! Functions of regular expressions, and SIMILAR TO, which becomes one.

use std::sync::Arc;

use base::work::{self, Count};
use base::{Error, Oid, Result, SqlState};
use types::oid::*;
use types::room::{self, Room as _};
use types::{Array, Datum};

use super::super::entry::{immutable, mismatched};
use super::super::{EvalContext, Function, SetFn, SetFunction, SetRows};
use super::pattern::{Found, Options, Pattern, compiled, is_match};

/// The rows of a set-returning function.
macro_rules! operator {
    ($holds:literal, $ignore_case:literal) => {
        |_, args| match args {
            [Datum::Text(text), Datum::Text(pattern)] => {
                let options = Options { ignore_case: $ignore_case, ..Options::default() };
                Ok(Datum::Bool(is_match(text, pattern, options)? == $holds))
            }
            _ => mismatched(args),
        }
    };
}

#[cold]
fn invalid_parameter(name: &str, value: i32) -> Error {
    Error::new(SqlState::INVALID_PARAMETER_VALUE, format!("invalid value for parameter \"{name}\": {value}"))
}

/// A parameter that must not be less than `least`.
fn checked(name: &str, value: i32, least: i32) -> Result<usize> {
    if value < least { Err(invalid_parameter(name, value)) } else { Ok(value as usize) }
}

/// Flags of a function that looks for one match, or decides itself for how many.
fn flags_without_global(flags: &str, function: &str) -> Result<Options> {
    let options = Options::parse(flags)?;
    if options.global {
        let message = format!("{function}() does not support the \"global\" option");
        return Err(Error::new(SqlState::INVALID_PARAMETER_VALUE, message));
    }
    Ok(options)
}

/// Byte offset of a character counted from 1; `None` beyond the end, which itself counts.
fn offset_of(text: &str, character: usize) -> Option<usize> {
    text.char_indices().counted(1).map(|(at, _)| at).chain([text.len()]).nth(character - 1)
}

/// The texts of the groups of a match, or the whole match of an expression without groups.
pub(crate) fn groups(found: &Found<'_>) -> Datum {
    let texts: Vec<Datum> = match found.groups() {
        0 => vec![found.group(0).into()],
        count => (1..=count).map(|n| found.group(n).into()).collect(),
    };
    text_array(texts)
}

/// Parts of a text as values.
fn texts(parts: &[&str], text: &str) -> Result<work::List<Datum>> {
    /// A value, the counters of its text and what that is rounded up by.
    const EACH: usize = size_of::<Datum>() + 16 + 8;
    types::room::for_list(parts.len(), size_of::<Datum>())?;
    types::room::ask(parts.len().saturating_mul(EACH).saturating_add(text.len()))?;
    let mut values = work::List::new();
    values.reserve_exact(parts.len());
    for part in parts {
        work::beat(16 + work::bytes(part.len()));
        values.push(Datum::text(part));
    }
    Ok(values)
}

fn text_array(values: Vec<Datum>) -> Datum {
    Datum::Array(Arc::new(Array { element: TEXT, dims: vec![(values.len() as i32, 1)], values }))
}

/// The parts between the matches; empty matches at the ends and beside other matches do not split.
pub(crate) fn split<'t>(regex: &Pattern, text: &'t str) -> Result<Vec<&'t str>> {
    let mut parts = Vec::new();
    let mut from = 0;
    for found in regex.matches(text, 0) {
        let Some((start, end)) = found?.span(0) else { break };
        if start == end && (start == from || start == text.len()) {
            continue;
        }
        room::in_list(&mut parts, 1)?;
        parts.push(&text[from..start]);
        from = end;
    }
    parts.push(&text[from..]);
    Ok(parts)
}

/// What the functions that make rows take: text, pattern, flags.
fn for_rows(args: &[Datum]) -> Result<(&str, &str, &str)> {
    match args {
        [Datum::Text(text), Datum::Text(pattern), rest @ ..] => Ok((text, pattern, flags(rest, 0))),
        _ => mismatched(args).map(|_| ("", "", "")),
    }
}

/// `regexp_matches(text, pattern [, flags])`: a row for each match with `g`, else for the first.
fn regexp_matches(_: &dyn EvalContext, args: &[Datum]) -> Result<SetRows> {
    let (text, pattern, flags) = for_rows(args)?;
    let options = Options::parse(flags)?;
    let limit = if options.global { usize::MAX } else { 1 };
    let regex = compiled(pattern, options)?;
    let mut found = work::List::new();
    for one in regex.matches(text, 0).take(limit) {
        // Beside the row, an array and its only text at least.
        let more = 1 + found.len() / 2;
        found.make_room(more)?;
        found.push(groups(&one?));
    }
    Ok(Box::new(found.into_iter().map(|row| Ok(vec![row]))))
}

/// `regexp_split_to_table(text, pattern [, flags])`
fn regexp_split_to_table(_: &dyn EvalContext, args: &[Datum]) -> Result<SetRows> {
    let (text, pattern, flags) = for_rows(args)?;
    let regex = compiled(pattern, flags_without_global(flags, "regexp_split_to_table")?)?;
    let parts = texts(&split(&regex, text)?, text)?;
    Ok(Box::new(parts.into_iter().map(|row| Ok(vec![row]))))
}

/// `regexp_split_to_array(text, pattern [, flags])`
fn regexp_split_to_array(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let [Datum::Text(text), Datum::Text(pattern), rest @ ..] = args else { return mismatched(args) };
    let regex = compiled(pattern, flags_without_global(flags(rest, 0), "regexp_split_to_array")?)?;
    Ok(text_array(texts(&split(&regex, text)?, text)?.done()))
}

fn substring(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    match args {
        [Datum::Text(text), Datum::Text(pattern)] => {
            let regex = compiled(pattern, Options::default())?;
            let Some(found) = regex.find(text, 0)? else { return Ok(Datum::Null) };
            Ok(found.group(found.groups().min(1)).into())
        }
        _ => mismatched(args),
    }
}

fn substring_similar(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    match args {
        [text @ Datum::Text(_), Datum::Text(pattern), Datum::Text(escape)] => {
            substring(cx, &[text.clone(), similar(pattern, Some(escape))?.into()])
        }
        _ => mismatched(args),
    }
}

fn regexp_match(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let (text, pattern, options) = match args {
        [Datum::Text(text), Datum::Text(pattern)] => (text, pattern, Options::default()),
        [Datum::Text(text), Datum::Text(pattern), Datum::Text(flags)] => {
            let hint = |e: Error| match e.fields().message.starts_with("regexp_match()") {
                true => e.hint("Use the regexp_matches function instead."),
                false => e,
            };
            (text, pattern, flags_without_global(flags, "regexp_match").map_err(hint)?)
        }
        _ => return mismatched(args),
    };
    Ok(compiled(pattern, options)?.find(text, 0)?.map_or(Datum::Null, |found| groups(&found)))
}

fn regexp_like(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let (text, pattern, options) = match args {
        [Datum::Text(text), Datum::Text(pattern)] => (text, pattern, Options::default()),
        [Datum::Text(text), Datum::Text(pattern), Datum::Text(flags)] => {
            (text, pattern, flags_without_global(flags, "regexp_like")?)
        }
        _ => return mismatched(args),
    };
    Ok(Datum::Bool(is_match(text, pattern, options)?))
}

/// `regexp_count(text, pattern [, start [, flags]])`
fn regexp_count(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let [Datum::Text(text), Datum::Text(pattern), rest @ ..] = args else { return mismatched(args) };
    let start = int(rest, 0, 1)?;
    let start = checked("start", start, 1)?;
    let options = flags_without_global(flags(rest, 1), "regexp_count")?;
    let regex = compiled(pattern, options)?;
    let Some(from) = offset_of(text, start) else { return Ok(Datum::Int4(0)) };
    let count = regex.matches(text, from).try_fold(0, |count, found| found.map(|_| count + 1))?;
    Ok(Datum::Int4(count))
}

/// The integer at a place of the optional arguments.
fn int(rest: &[Datum], at: usize, default: i32) -> Result<i32> {
    match rest.get(at) {
        None => Ok(default),
        Some(Datum::Int4(value)) => Ok(*value),
        Some(_) => mismatched(rest).map(|_| 0),
    }
}

fn flags(rest: &[Datum], at: usize) -> &str {
    match rest.get(at) {
        Some(Datum::Text(flags)) => flags,
        _ => "",
    }
}

/// `regexp_instr(text, pattern [, start [, N [, endoption [, flags [, subexpr]]]]])`
fn regexp_instr(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let [Datum::Text(text), Datum::Text(pattern), rest @ ..] = args else { return mismatched(args) };
    let start = checked("start", int(rest, 0, 1)?, 1)?;
    let nth = checked("n", int(rest, 1, 1)?, 1)?;
    let end = int(rest, 2, 0)?;
    if end != 0 && end != 1 {
        return Err(invalid_parameter("endoption", end));
    }
    let group = checked("subexpr", int(rest, 4, 0)?, 0)?;
    let regex = compiled(pattern, flags_without_global(flags(rest, 3), "regexp_instr")?)?;
    let found = offset_of(text, start).and_then(|from| regex.matches(text, from).nth(nth - 1)).transpose()?;
    let part = found.and_then(|f| f.span(group_of(&f, group))).map(|(from, to)| if end == 1 { to } else { from });
    Ok(Datum::Int4(part.map_or(0, |at| text[..at].chars().count() as i32 + 1)))
}

/// `regexp_substr(text, pattern [, start [, N [, flags [, subexpr]]]])`
fn regexp_substr(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let [Datum::Text(text), Datum::Text(pattern), rest @ ..] = args else { return mismatched(args) };
    let start = checked("start", int(rest, 0, 1)?, 1)?;
    let nth = checked("n", int(rest, 1, 1)?, 1)?;
    let group = checked("subexpr", int(rest, 3, 0)?, 0)?;
    let regex = compiled(pattern, flags_without_global(flags(rest, 2), "regexp_substr")?)?;
    let found = offset_of(text, start).and_then(|from| regex.matches(text, from).nth(nth - 1)).transpose()?;
    Ok(found.and_then(|f| f.group(group_of(&f, group))).into())
}

/// A group as `regexp_instr` and `regexp_substr` count them: an expression without groups is its own first group.
fn group_of(found: &Found<'_>, group: usize) -> usize {
    if found.groups() == 0 && group == 1 { 0 } else { group }
}

/// Appends the replacement: `\1` to `\9` are groups, `\&` is the match, `\\` a backslash.
///
/// # Errors
/// 54000, 53200
fn append(replacement: &str, found: &Found<'_>, out: &mut String) -> Result<()> {
    let mut rest = replacement;
    while let Some(at) = rest.find('\\') {
        work::step(8 + work::bytes(at))?;
        out.make_room(at + 1)?;
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let group = match rest.bytes().next() {
            Some(d @ b'1'..=b'9') => usize::from(d - b'0'),
            Some(b'&') => 0,
            Some(b'\\') => {
                out.push('\\');
                rest = &rest[1..];
                continue;
            }
            _ => {
                out.push('\\');
                continue;
            }
        };
        let part = found.group(group).unwrap_or_default();
        work::step(work::bytes(part.len()))?;
        out.make_room(part.len())?;
        out.push_str(part);
        rest = &rest[1..];
    }
    out.make_room(rest.len())?;
    out.push_str(rest);
    Ok(())
}

/// Replaces the `nth` match, or all if that is 0.
fn replace(regex: &Pattern, text: &str, replacement: &str, from: usize, nth: usize) -> Result<Datum> {
    let mut out = String::with_capacity(text.len());
    let mut copied = 0;
    for (number, found) in regex.matches(text, from).enumerate() {
        let found = found?;
        if nth != 0 && number + 1 < nth {
            continue;
        }
        let Some((start, end)) = found.span(0) else { break };
        out.make_room(start - copied)?;
        out.push_str(&text[copied..start]);
        append(replacement, &found, &mut out)?;
        copied = end;
        if nth != 0 {
            break;
        }
    }
    out.make_room(text.len() - copied)?;
    out.push_str(&text[copied..]);
    Ok(out.into())
}

/// `regexp_replace(text, pattern, replacement [, flags])`
fn regexp_replace(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let [Datum::Text(text), Datum::Text(pattern), Datum::Text(replacement), rest @ ..] = args else {
        return mismatched(args);
    };
    let flags = flags(rest, 0);
    let options = Options::parse(flags).map_err(|e| match flags.bytes().next() {
        Some(b'0'..=b'9') => e.hint(
            "If you meant to use regexp_replace() with a start parameter, cast the fourth argument to integer explicitly.",
        ),
        _ => e,
    })?;
    replace(&compiled(pattern, options)?, text, replacement, 0, usize::from(!options.global))
}

/// `regexp_replace(text, pattern, replacement, start [, N [, flags]])`
fn regexp_replace_from(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let [Datum::Text(text), Datum::Text(pattern), Datum::Text(replacement), rest @ ..] = args else {
        return mismatched(args);
    };
    let start = checked("start", int(rest, 0, 1)?, 1)?;
    let nth = checked("n", int(rest, 1, 1)?, 0)?;
    let regex = compiled(pattern, Options::parse(flags(rest, 2))?)?;
    match offset_of(text, start) {
        Some(from) => replace(&regex, text, replacement, from, nth),
        None => Ok(args[0].clone()),
    }
}

/// The regular expression of a SIMILAR TO pattern. `None` is the backslash, an empty escape means that there is none.
fn similar(pattern: &str, escape: Option<&str>) -> Result<String> {
    let mut characters = escape.unwrap_or("\\").chars();
    let escape = characters.next();
    if characters.next().is_some() {
        return Err(Error::new(SqlState::INVALID_ESCAPE_SEQUENCE, "invalid escape string")
            .hint("Escape string must be empty or one character."));
    }
    let mut out = String::from("^(?:");
    let (mut escaped, mut separators) = (false, 0);
    // How deep in brackets, and how far in them: 1 behind the first one, 2 behind its `^`, where `]` stands for itself, 3 later.
    let (mut depth, mut place) = (0usize, 0);
    for c in pattern.chars().counted(2) {
        if escaped {
            escaped = false;
            if c == '"' && depth == 0 {
                // The parts of SUBSTRING … SIMILAR: what is before, what is wanted, what is behind.
                out.push_str(match separators {
                    0 => "){1,1}?(",
                    1 => "){1,1}(?:",
                    _ => {
                        let code = SqlState::parse("2200C").unwrap_or(SqlState::DATA_EXCEPTION);
                        let message =
                            "SQL regular expression may not contain more than two escape-double-quote separators";
                        return Err(Error::new(code, message));
                    }
                });
                separators += 1;
            } else {
                out.push('\\');
                out.push(c);
                place = 3;
            }
        } else if Some(c) == escape {
            escaped = true;
        } else if depth > 0 {
            if c == '\\' {
                out.push('\\');
            }
            out.push(c);
            match c {
                ']' if place > 2 => depth -= 1,
                '[' => (depth, place) = (depth + 1, 3),
                '^' => place += 1,
                _ => place = 3,
            }
        } else {
            match c {
                '%' => out.push_str(".*"),
                '_' => out.push('.'),
                '(' => out.push_str("(?:"),
                '\\' | '.' | '^' | '$' => {
                    out.push('\\');
                    out.push(c);
                }
                '[' => {
                    (depth, place) = (1, 1);
                    out.push(c);
                }
                c => out.push(c),
            }
        }
    }
    out.push_str(")$");
    Ok(out)
}

fn similar_to_escape(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    match args {
        [Datum::Null, ..] => Ok(Datum::Null),
        [Datum::Text(pattern)] | [Datum::Text(pattern), Datum::Null] => Ok(similar(pattern, None)?.into()),
        [Datum::Text(pattern), Datum::Text(escape)] => Ok(similar(pattern, Some(escape))?.into()),
        _ => mismatched(args),
    }
}

const fn rows(oid: u32, name: &'static str, args: &'static [Oid], column: Oid, eval: SetFn) -> SetFunction {
    let columns: &'static [(&'static str, Oid)] = if column.0 == TEXT.0 { &[("", TEXT)] } else { &[("", TEXT_ARRAY)] };
    super::super::entry::set(oid, name, args, columns, eval)
}

/// The functions that make rows, by OID.
pub(crate) static SET_FUNCTIONS: &[SetFunction] = &[
    rows(2763, "regexp_matches", &[TEXT, TEXT], TEXT_ARRAY, regexp_matches),
    rows(2764, "regexp_matches", &[TEXT, TEXT, TEXT], TEXT_ARRAY, regexp_matches),
    rows(2765, "regexp_split_to_table", &[TEXT, TEXT], TEXT, regexp_split_to_table),
    rows(2766, "regexp_split_to_table", &[TEXT, TEXT, TEXT], TEXT, regexp_split_to_table),
];

/// The table, by OID.
#[rustfmt::skip]
pub(crate) static FUNCTIONS: &[Function] = &[
    immutable(79, "nameregexeq", &[NAME, TEXT], BOOL, operator!(true, false)),
    immutable(1238, "texticregexeq", &[TEXT, TEXT], BOOL, operator!(true, true)),
    immutable(1239, "texticregexne", &[TEXT, TEXT], BOOL, operator!(false, true)),
    immutable(1240, "nameicregexeq", &[NAME, TEXT], BOOL, operator!(true, true)),
    immutable(1241, "nameicregexne", &[NAME, TEXT], BOOL, operator!(false, true)),
    immutable(1252, "nameregexne", &[NAME, TEXT], BOOL, operator!(false, false)),
    immutable(1254, "textregexeq", &[TEXT, TEXT], BOOL, operator!(true, false)),
    immutable(1256, "textregexne", &[TEXT, TEXT], BOOL, operator!(false, false)),
    immutable(1623, "similar_escape", &[TEXT, TEXT], TEXT, similar_to_escape).lax(),
    immutable(1656, "bpcharicregexeq", &[BPCHAR, TEXT], BOOL, operator!(true, true)),
    immutable(1657, "bpcharicregexne", &[BPCHAR, TEXT], BOOL, operator!(false, true)),
    immutable(1658, "bpcharregexeq", &[BPCHAR, TEXT], BOOL, operator!(true, false)),
    immutable(1659, "bpcharregexne", &[BPCHAR, TEXT], BOOL, operator!(false, false)),
    immutable(1986, "similar_to_escape", &[TEXT, TEXT], TEXT, similar_to_escape),
    immutable(1987, "similar_to_escape", &[TEXT], TEXT, similar_to_escape),
    immutable(2073, "substring", &[TEXT, TEXT], TEXT, substring),
    immutable(2074, "substring", &[TEXT, TEXT, TEXT], TEXT, substring_similar),
    immutable(2284, "regexp_replace", &[TEXT, TEXT, TEXT], TEXT, regexp_replace),
    immutable(2285, "regexp_replace", &[TEXT, TEXT, TEXT, TEXT], TEXT, regexp_replace),
    immutable(2767, "regexp_split_to_array", &[TEXT, TEXT], TEXT_ARRAY, regexp_split_to_array),
    immutable(2768, "regexp_split_to_array", &[TEXT, TEXT, TEXT], TEXT_ARRAY, regexp_split_to_array),
    immutable(3396, "regexp_match", &[TEXT, TEXT], TEXT_ARRAY, regexp_match),
    immutable(3397, "regexp_match", &[TEXT, TEXT, TEXT], TEXT_ARRAY, regexp_match),
    immutable(6251, "regexp_replace", &[TEXT, TEXT, TEXT, INT4, INT4, TEXT], TEXT, regexp_replace_from),
    immutable(6252, "regexp_replace", &[TEXT, TEXT, TEXT, INT4, INT4], TEXT, regexp_replace_from),
    immutable(6253, "regexp_replace", &[TEXT, TEXT, TEXT, INT4], TEXT, regexp_replace_from),
    immutable(6254, "regexp_count", &[TEXT, TEXT], INT4, regexp_count),
    immutable(6255, "regexp_count", &[TEXT, TEXT, INT4], INT4, regexp_count),
    immutable(6256, "regexp_count", &[TEXT, TEXT, INT4, TEXT], INT4, regexp_count),
    immutable(6257, "regexp_instr", &[TEXT, TEXT], INT4, regexp_instr),
    immutable(6258, "regexp_instr", &[TEXT, TEXT, INT4], INT4, regexp_instr),
    immutable(6259, "regexp_instr", &[TEXT, TEXT, INT4, INT4], INT4, regexp_instr),
    immutable(6260, "regexp_instr", &[TEXT, TEXT, INT4, INT4, INT4], INT4, regexp_instr),
    immutable(6261, "regexp_instr", &[TEXT, TEXT, INT4, INT4, INT4, TEXT], INT4, regexp_instr),
    immutable(6262, "regexp_instr", &[TEXT, TEXT, INT4, INT4, INT4, TEXT, INT4], INT4, regexp_instr),
    immutable(6263, "regexp_like", &[TEXT, TEXT], BOOL, regexp_like),
    immutable(6264, "regexp_like", &[TEXT, TEXT, TEXT], BOOL, regexp_like),
    immutable(6265, "regexp_substr", &[TEXT, TEXT], TEXT, regexp_substr),
    immutable(6266, "regexp_substr", &[TEXT, TEXT, INT4], TEXT, regexp_substr),
    immutable(6267, "regexp_substr", &[TEXT, TEXT, INT4, INT4], TEXT, regexp_substr),
    immutable(6268, "regexp_substr", &[TEXT, TEXT, INT4, INT4, TEXT], TEXT, regexp_substr),
    immutable(6269, "regexp_substr", &[TEXT, TEXT, INT4, INT4, TEXT, INT4], TEXT, regexp_substr),
];
