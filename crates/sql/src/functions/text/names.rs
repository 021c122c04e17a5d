//! Identifiers and literals in text: quoting them, taking them apart.

use base::work::{self, Count};
use base::{Error, Result, SqlState};

/// Whether a word is one of PostgreSQL's keywords that are not "unreserved".
fn needs_quotes(word: &str) -> bool {
    rupg_sql::keyword(word).is_some_and(|keyword| keyword.category != rupg_sql::Category::Unreserved)
}

/// An identifier as SQL must write it.
pub(crate) fn quote_identifier(name: &str) -> String {
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_';
    let starts = name.bytes().next().is_some_and(|b| b.is_ascii_lowercase() || b == b'_');
    if starts && name.bytes().counted(1).all(plain) && !needs_quotes(name) {
        return name.to_string();
    }
    let mut out = String::with_capacity(name.len() + 2);
    out.push('"');
    push_doubled(name, b"\"", &mut out);
    out.push('"');
    out
}

/// Appends a text with each of these ASCII characters doubled.
fn push_doubled(text: &str, marks: &[u8], out: &mut String) {
    let mut copied = 0;
    for (at, byte) in text.bytes().counted(2).enumerate() {
        if marks.contains(&byte) {
            out.push_str(&text[copied..=at]);
            // Once more with what follows it.
            copied = at;
        }
    }
    out.push_str(&text[copied..]);
}

/// A string as SQL must write it: with `E` if it has backslashes.
pub fn quote_literal(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 3);
    if text.contains('\\') {
        out.push('E');
    }
    out.push('\'');
    push_doubled(text, b"'\\", &mut out);
    out.push('\'');
    out
}

/// A text in parts that are copied in one step, each counted.
fn stretches(mut text: &str) -> impl Iterator<Item = &str> {
    std::iter::from_fn(move || {
        let (part, more) = text.split_at(text.floor_char_boundary(work::STRETCH));
        work::beat(work::bytes(part.len()));
        text = more;
        (!part.is_empty()).then_some(part)
    })
}

/// Whether a character stands between names: what PostgreSQL's scanner takes for a blank.
fn is_blank(c: char) -> bool {
    work::beat(1);
    c.is_ascii_whitespace()
}

/// The name in front of the quotation mark that ends it, in which two marks are one, and what follows. `text` begins behind the
/// mark that begins it; `None` if nothing ends it.
fn quoted_name(text: &str) -> Option<(String, &str)> {
    let (mut name, mut rest) = (String::new(), text);
    loop {
        let end = rest.bytes().counted(1).position(|b| b == b'"')?;
        name.extend(stretches(&rest[..end]));
        rest = &rest[end + 1..];
        match rest.strip_prefix('"') {
            Some(more) => {
                name.push('"');
                rest = more;
            }
            None => return Some((name, rest)),
        }
    }
}

/// A word in lower case, as an identifier without quotes is.
fn folded(word: &str) -> String {
    let mut name = String::with_capacity(word.len());
    for part in stretches(word) {
        let from = name.len();
        name.push_str(part);
        name[from..].make_ascii_lowercase();
    }
    name
}

/// Bytes of a name.
const NAME_MAX: usize = 63;

/// The names of a list of identifiers, those without quotes in lower case; `None` if it is no such list. As PostgreSQL's
/// `SplitIdentifierString`: a blank text is an empty list, everything but blanks and separators may be in a name, and a long name
/// is cut, as it was where something got it.
pub(crate) fn split_identifiers(text: &str, separator: char) -> Option<Vec<String>> {
    let mut names = Vec::new();
    let mut rest = text.trim_matches(is_blank);
    if rest.is_empty() {
        return Some(names);
    }
    loop {
        work::beat(16);
        let (name, behind) = match rest.strip_prefix('"') {
            Some(quoted) => {
                let (mut name, behind) = quoted_name(quoted)?;
                name.truncate(name.floor_char_boundary(NAME_MAX));
                (name, behind)
            }
            None => {
                let end = rest.find(|c| c == separator || is_blank(c)).unwrap_or(rest.len());
                if end == 0 {
                    return None;
                }
                let word = &rest[..end];
                (folded(&word[..word.floor_char_boundary(NAME_MAX)]), &rest[end..])
            }
        };
        names.push(name);
        rest = behind.trim_start_matches(is_blank);
        if rest.is_empty() {
            return Some(names);
        }
        rest = rest.strip_prefix(separator)?.trim_start_matches(is_blank);
    }
}

/// The parts of a possibly qualified name (`Public."My Table"`): unquoted ones in lower case.
///
/// # Errors
/// 42602
pub(crate) fn split_name(text: &str) -> Result<Vec<String>> {
    let names = split_identifiers(text, '.').filter(|names| !names.is_empty());
    names.ok_or_else(|| Error::new(SqlState::INVALID_NAME, "invalid name syntax"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_taken_apart_as_postgresql_does() {
        let check = |text: &str, expect: Option<&[&str]>| {
            let found = split_identifiers(text, ',');
            assert_eq!(
                found.as_deref(),
                expect.map(|names| names.iter().map(ToString::to_string).collect::<Vec<_>>()).as_deref(),
                "{text}"
            );
        };
        check("", Some(&[]));
        check(" \n", Some(&[]));
        check("Abc , \"D\"\"e, f\",\"\", 1-.x", Some(&["abc", "D\"e, f", "", "1-.x"]));
        check("\u{a0}\u{c4}B", Some(&["\u{a0}\u{c4}b"]));
        for text in [",a", "a,", "a,,b", "a b", "\"a", "\"a\"b"] {
            check(text, None);
        }
        assert_eq!(split_name("a.\"B\"").as_deref(), Ok(&["a".to_string(), "B".to_string()][..]));
        assert_eq!(split_name(" ").unwrap_err().code(), SqlState::INVALID_NAME);
    }

    #[test]
    fn every_byte_of_a_list_is_counted() {
        for text in ["\"\"", "\"", "A", "\u{e4}", "a,", " "] {
            let long = match text {
                "\"" => format!("\"{}\"", "\"\"".repeat(200_000)),
                "\"\"" => format!("\"{}\"", "x".repeat(600_000)),
                _ => text.repeat(600_000),
            };
            work::largest();
            let before = work::total();
            split_identifiers(&long, ',');
            let units = work::total() - before;
            assert!(units >= long.len() as u64 / 2, "{text}: {units} units");
            assert!(work::largest() <= 1 << 16, "{text}");
        }
    }
}
