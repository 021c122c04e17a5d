//! Functions of regular expressions, and SIMILAR TO, which becomes one.

use std::sync::Arc;

use base::{Error, Result, SqlState};
use regex::{Captures, Regex};
use types::oid::*;
use types::{Array, Datum};

use super::super::registry::{immutable, mismatch};
use super::super::{EvalContext, Function};
use super::pattern::{Options, compiled, is_match};

macro_rules! operator {
    ($holds:literal, $ignore_case:literal) => {
        |_, args| match args {
            [Datum::Text(text), Datum::Text(pattern)] => {
                let options = Options { ignore_case: $ignore_case, ..Options::default() };
                Ok(Datum::Bool(is_match(text, pattern, options)? == $holds))
            }
            _ => mismatch(args),
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
    text.char_indices().map(|(at, _)| at).chain([text.len()]).nth(character - 1)
}

/// Where to search on behind a match: an empty one must not be found again.
pub(in crate::functions) fn after(text: &str, start: usize, end: usize) -> usize {
    if start < end { end } else { end + text[end..].chars().next().map_or(1, char::len_utf8) }
}

/// The matches from a byte offset on, as PostgreSQL counts them.
pub(in crate::functions) fn matches<'t>(
    regex: &Regex,
    text: &'t str,
    from: usize,
) -> impl Iterator<Item = Captures<'t>> {
    let regex = regex.clone();
    let mut at = from;
    std::iter::from_fn(move || {
        if at > text.len() {
            return None;
        }
        let found = regex.captures_at(text, at)?;
        let whole = found.get(0)?;
        at = after(text, whole.start(), whole.end());
        Some(found)
    })
}

/// The texts of the groups of a match, or the whole match of an expression without groups.
pub(in crate::functions) fn groups(found: &Captures<'_>) -> Datum {
    let texts: Vec<Datum> = if found.len() == 1 {
        vec![Datum::text(&found[0])]
    } else {
        found.iter().skip(1).map(|g| g.map_or(Datum::Null, |g| Datum::text(g.as_str()))).collect()
    };
    Datum::Array(Arc::new(Array { element: TEXT, dims: vec![(texts.len() as i32, 1)], values: texts }))
}

fn substring(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    match args {
        [Datum::Text(text), Datum::Text(pattern)] => {
            let regex = compiled(pattern, Options::default())?;
            let Some(found) = regex.captures(text) else { return Ok(Datum::Null) };
            let part = if found.len() > 1 { found.get(1) } else { found.get(0) };
            Ok(part.map(|m| m.as_str()).into())
        }
        _ => mismatch(args),
    }
}

fn substring_similar(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    match args {
        [text @ Datum::Text(_), Datum::Text(pattern), Datum::Text(escape)] => {
            substring(cx, &[text.clone(), similar(pattern, Some(escape))?.into()])
        }
        _ => mismatch(args),
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
        _ => return mismatch(args),
    };
    Ok(compiled(pattern, options)?.captures(text).map_or(Datum::Null, |found| groups(&found)))
}

fn regexp_like(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let (text, pattern, options) = match args {
        [Datum::Text(text), Datum::Text(pattern)] => (text, pattern, Options::default()),
        [Datum::Text(text), Datum::Text(pattern), Datum::Text(flags)] => {
            (text, pattern, flags_without_global(flags, "regexp_like")?)
        }
        _ => return mismatch(args),
    };
    Ok(Datum::Bool(is_match(text, pattern, options)?))
}

/// `regexp_count(text, pattern [, start [, flags]])`
fn regexp_count(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let [Datum::Text(text), Datum::Text(pattern), rest @ ..] = args else { return mismatch(args) };
    let start = int(rest, 0, 1)?;
    let options = flags_without_global(flags(rest, 1), "regexp_count")?;
    let start = checked("start", start, 1)?;
    let regex = compiled(pattern, options)?;
    let count = offset_of(text, start).map_or(0, |from| matches(&regex, text, from).count());
    Ok(Datum::Int4(count as i32))
}

/// The integer at a place of the optional arguments.
fn int(rest: &[Datum], at: usize, default: i32) -> Result<i32> {
    match rest.get(at) {
        None => Ok(default),
        Some(Datum::Int4(value)) => Ok(*value),
        Some(_) => mismatch(rest).map(|_| 0),
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
    let [Datum::Text(text), Datum::Text(pattern), rest @ ..] = args else { return mismatch(args) };
    let start = checked("start", int(rest, 0, 1)?, 1)?;
    let nth = checked("n", int(rest, 1, 1)?, 1)?;
    let end = int(rest, 2, 0)?;
    if end != 0 && end != 1 {
        return Err(invalid_parameter("endoption", end));
    }
    let group = checked("subexpr", int(rest, 4, 0)?, 0)?;
    let regex = compiled(pattern, flags_without_global(flags(rest, 3), "regexp_instr")?)?;
    let found = offset_of(text, start).and_then(|from| matches(&regex, text, from).nth(nth - 1));
    let part = found.and_then(|f| f.get(group).map(|m| if end == 1 { m.end() } else { m.start() }));
    Ok(Datum::Int4(part.map_or(0, |at| text[..at].chars().count() as i32 + 1)))
}

/// `regexp_substr(text, pattern [, start [, N [, flags [, subexpr]]]])`
fn regexp_substr(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let [Datum::Text(text), Datum::Text(pattern), rest @ ..] = args else { return mismatch(args) };
    let start = checked("start", int(rest, 0, 1)?, 1)?;
    let nth = checked("n", int(rest, 1, 1)?, 1)?;
    let group = checked("subexpr", int(rest, 3, 0)?, 0)?;
    let regex = compiled(pattern, flags_without_global(flags(rest, 2), "regexp_substr")?)?;
    let found = offset_of(text, start).and_then(|from| matches(&regex, text, from).nth(nth - 1));
    Ok(found.and_then(|f| f.get(group).map(|m| m.as_str())).into())
}

/// Appends the replacement: `\1` to `\9` are groups, `\&` is the match, `\\` a backslash.
fn append(replacement: &str, found: &Captures<'_>, out: &mut String) {
    let mut rest = replacement;
    while let Some(at) = rest.find('\\') {
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
        out.push_str(found.get(group).map_or("", |m| m.as_str()));
        rest = &rest[1..];
    }
    out.push_str(rest);
}

/// Replaces the `nth` match, or all if that is 0.
fn replace(regex: &Regex, text: &str, replacement: &str, from: usize, nth: usize) -> Datum {
    let mut out = String::with_capacity(text.len());
    let mut copied = 0;
    for (number, found) in matches(regex, text, from).enumerate() {
        if nth != 0 && number + 1 < nth {
            continue;
        }
        let Some(whole) = found.get(0) else { break };
        out.push_str(&text[copied..whole.start()]);
        append(replacement, &found, &mut out);
        copied = whole.end();
        if nth != 0 {
            break;
        }
    }
    out.push_str(&text[copied..]);
    out.into()
}

/// `regexp_replace(text, pattern, replacement [, flags])`
fn regexp_replace(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let [Datum::Text(text), Datum::Text(pattern), Datum::Text(replacement), rest @ ..] = args else {
        return mismatch(args);
    };
    let flags = flags(rest, 0);
    let options = Options::parse(flags).map_err(|e| match flags.bytes().next() {
        Some(b'0'..=b'9') => e.hint(
            "If you meant to use regexp_replace() with a start parameter, cast the fourth argument to integer explicitly.",
        ),
        _ => e,
    })?;
    Ok(replace(&compiled(pattern, options)?, text, replacement, 0, usize::from(!options.global)))
}

/// `regexp_replace(text, pattern, replacement, start [, N [, flags]])`
fn regexp_replace_from(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let [Datum::Text(text), Datum::Text(pattern), Datum::Text(replacement), rest @ ..] = args else {
        return mismatch(args);
    };
    let start = checked("start", int(rest, 0, 1)?, 1)?;
    let nth = checked("n", int(rest, 1, 1)?, 0)?;
    let regex = compiled(pattern, Options::parse(flags(rest, 2))?)?;
    match offset_of(text, start) {
        Some(from) => Ok(replace(&regex, text, replacement, from, nth)),
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
    let (mut escaped, mut in_brackets, mut separators) = (false, false, 0);
    for c in pattern.chars() {
        if escaped {
            escaped = false;
            if c == '"' && !in_brackets {
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
            }
        } else if Some(c) == escape {
            escaped = true;
        } else if in_brackets {
            if c == '\\' {
                out.push('\\');
            }
            out.push(c);
            in_brackets = c != ']';
        } else {
            match c {
                '%' => out.push_str(".*"),
                '_' => out.push('.'),
                '(' => out.push_str("(?:"),
                '\\' | '.' | '^' | '$' => {
                    out.push('\\');
                    out.push(c);
                }
                c => {
                    in_brackets = c == '[';
                    out.push(c);
                }
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
        _ => mismatch(args),
    }
}

/// The table, by OID.
#[rustfmt::skip]
pub(in crate::functions) static FUNCTIONS: &[Function] = &[
    immutable(79, "nameregexeq", &[NAME, TEXT], BOOL, operator!(true, false)),
    immutable(1238, "texticregexeq", &[TEXT, TEXT], BOOL, operator!(true, true)),
    immutable(1239, "texticregexne", &[TEXT, TEXT], BOOL, operator!(false, true)),
    immutable(1240, "nameicregexeq", &[NAME, TEXT], BOOL, operator!(true, true)),
    immutable(1241, "nameicregexne", &[NAME, TEXT], BOOL, operator!(false, true)),
    immutable(1252, "nameregexne", &[NAME, TEXT], BOOL, operator!(false, false)),
    immutable(1254, "textregexeq", &[TEXT, TEXT], BOOL, operator!(true, false)),
    immutable(1256, "textregexne", &[TEXT, TEXT], BOOL, operator!(false, false)),
    immutable(1623, "similar_escape", &[TEXT, TEXT], TEXT, similar_to_escape).lenient(),
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
