//! Backslashes in plain strings, as `standard_conforming_strings = off` has them: `'a\nb'` is what `E'a\nb'` says.
//!
//! Responsible for: writing such a text as one that means the same where backslashes are plain ([`conforming`]), the warnings of
//! `escape_string_warning`, what `backslash_quote` forbids.
//! Not responsible for: strings with escapes themselves, which the parser reads.
//! Invariants: every token begins at the character where it did, since errors have positions in characters. What a string becomes
//! shorter by is made up for by blanks behind it.

use std::borrow::Cow;

use base::work::Count;
use base::{Error, Notice, Result, Severity, SqlState};

use super::escapes::{comment, dollar_quoted};

/// How strings are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backslashes {
    /// They escape in plain strings too.
    pub in_plain: bool,
    /// That is warned of.
    pub warns: bool,
    /// A quote may be escaped by one.
    pub quote: bool,
}

impl Default for Backslashes {
    fn default() -> Backslashes {
        Backslashes { in_plain: false, warns: true, quote: true }
    }
}

impl Backslashes {
    /// Whether texts are read as they are.
    pub fn are_usual(self) -> bool {
        !self.in_plain && self.quote
    }
}

/// The text for a parser to which backslashes in plain strings are characters as others are; the warnings there are, in any case.
///
/// # Errors
/// 0A000 for `U&'…'`, 22P06 for a quote that may not be escaped, 42601 for a string without an end, and those of wrong escapes.
pub fn conforming(sql: &str, rules: Backslashes) -> (Result<Cow<'_, str>>, Vec<Notice>) {
    if rules.are_usual() || !sql.contains(['\\', '&']) {
        return (Ok(Cow::Borrowed(sql)), Vec::new());
    }
    let out = String::with_capacity(sql.len());
    let mut reader = Reader { sql, rules, out, warnings: Vec::new(), characters: 0, last: None };
    let mut at = 0;
    while at < sql.len() {
        match reader.token(at) {
            Ok(length) => at += length,
            Err(error) => return (Err(error), reader.warnings),
        }
    }
    (Ok(Cow::Owned(reader.out)), reader.warnings)
}

/// A string that goes on if the next one follows it on another line.
#[derive(Clone, Copy)]
struct Last {
    /// It is one with escapes.
    has_escapes: bool,
    /// There has been a warning of it.
    is_warned: bool,
    /// Where it begins, as errors say it.
    position: u32,
    /// A line has ended since.
    is_on_another_line: bool,
}

struct Reader<'a> {
    sql: &'a str,
    rules: Backslashes,
    out: String,
    warnings: Vec<Notice>,
    /// Characters before the token.
    characters: usize,
    last: Option<Last>,
}

impl Reader<'_> {
    /// Copies what begins at `at`; its length in bytes.
    fn token(&mut self, at: usize) -> Result<usize> {
        let (bytes, rest) = (self.sql.as_bytes(), &self.sql[at..]);
        let is_word = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'$' || b >= 0x80;
        let begins_word = at == 0 || !is_word(bytes[at - 1]);
        let before = self.last.take();
        let length = match bytes[at] {
            b'e' | b'E' if begins_word && rest[1..].starts_with('\'') => {
                self.last = Some(self.begins(true));
                1 + self.escaped(&rest[1..])?.unwrap_or(rest.len() - 1)
            }
            b'u' | b'U' if begins_word && self.rules.in_plain && rest[1..].starts_with("&'") => {
                return Err(self.unsafe_unicode());
            }
            b'b' | b'B' | b'x' | b'X' if begins_word && rest[1..].starts_with('\'') => {
                rest[2..].find('\'').map_or(rest.len(), |end| end + 3)
            }
            b'\'' => match before.filter(|last| last.is_on_another_line) {
                Some(last) if last.has_escapes => {
                    self.last = Some(Last { is_on_another_line: false, ..last });
                    self.escaped(rest)?.unwrap_or(rest.len())
                }
                last if self.rules.in_plain => return self.plain(rest, last),
                _ => quoted(rest, '\''),
            },
            b'"' => quoted(rest, '"'),
            b'-' if rest.starts_with("--") => {
                self.last = before;
                rest.find('\n').unwrap_or(rest.len())
            }
            b'/' if rest.starts_with("/*") => comment(bytes, at),
            b'$' if begins_word => dollar_quoted(rest),
            blank @ (b' ' | b'\t' | b'\x0c' | b'\n' | b'\r') => {
                let ends_line = matches!(blank, b'\n' | b'\r');
                self.last =
                    before.map(|last| Last { is_on_another_line: last.is_on_another_line || ends_line, ..last });
                1
            }
            _ => rest.chars().next().map_or(1, char::len_utf8),
        };
        self.out.push_str(&rest[..length]);
        self.characters += rest[..length].chars().count();
        Ok(length)
    }

    /// A string that begins here.
    fn begins(&self, has_escapes: bool) -> Last {
        Last { has_escapes, is_warned: false, position: self.position(), is_on_another_line: false }
    }

    fn unsafe_unicode(&self) -> Error {
        Error::unsupported("unsafe use of string constant with Unicode escapes")
            .detail("String constants with Unicode escapes cannot be used when standard_conforming_strings is off.")
            .at_character(self.position())
    }

    fn position(&self) -> u32 {
        self.characters as u32 + 1
    }

    /// The length of a string with escapes that begins with its quote; `None` if it has no end.
    fn escaped(&self, text: &str) -> Result<Option<usize>> {
        let bytes = text.as_bytes();
        let mut at = 1;
        while let Some(&byte) = bytes.get(at) {
            match (byte, bytes.get(at + 1)) {
                (b'\\', Some(b'\'')) if !self.rules.quote => return Err(self.unsafe_quote()),
                (b'\\', Some(_)) | (b'\'', Some(b'\'')) => at += 2,
                (b'\'', _) => return Ok(Some(at + 1)),
                _ => at += 1,
            }
            base::work::beat(1);
        }
        Ok(None)
    }

    fn unsafe_quote(&self) -> Error {
        Error::new(SqlState::NONSTANDARD_USE_OF_ESCAPE_CHARACTER, "unsafe use of \\' in a string literal")
            .hint("Use '' to write quotes in strings. \\' is insecure in client-only encodings.")
            .at_character(self.position())
    }

    /// Writes a plain string, which begins with its quote, without its escapes; its length in bytes. It may go on with another one.
    fn plain(&mut self, rest: &str, before: Option<Last>) -> Result<usize> {
        let mut this = before.unwrap_or_else(|| self.begins(false));
        this.is_on_another_line = false;
        let end = self.escaped(rest)?;
        let raw = &rest[..end.unwrap_or(rest.len())];
        let first = raw.find('\\');
        if let Some(first) = first
            && self.rules.warns
            && !this.is_warned
            && is_escape(&raw[first + 1..])
        {
            this.is_warned = true;
            self.warnings.push(warning(raw.as_bytes()[first + 1]).at_character(this.position));
        }
        let Some(length) = end else {
            let message = format!("unterminated quoted string at or near \"{rest}\"");
            return Err(Error::new(SqlState::SYNTAX_ERROR, message).at_character(self.position()));
        };
        let count = raw.chars().counted(1).count();
        match first.map(|_| unescaped(&raw[1..length - 1])) {
            None => self.out.push_str(raw),
            Some(Some(content)) => {
                let content = content.replace('\'', "''");
                let blanks = count.saturating_sub(content.chars().count() + 2);
                self.out.push('\'');
                self.out.push_str(&content);
                self.out.push('\'');
                self.out.extend(std::iter::repeat_n(' ', blanks));
            }
            Some(None) => return Err(self.wrong_escape(raw)),
        }
        self.characters += count;
        self.last = Some(this);
        Ok(length)
    }

    /// What the parser says of a string whose escapes are wrong.
    fn wrong_escape(&self, raw: &str) -> Error {
        let Err(mut error) = super::parse(&format!("SELECT E{raw}")) else {
            return Error::internal("an escape that is wrong to one reader only");
        };
        let position = &mut error.fields_mut().position;
        // The letter is not in the client's text.
        *position = position.map(|p| (self.characters + (p as usize).saturating_sub("SELECT E".len())) as u32);
        error
    }
}

/// The length of what stands in quotes without escapes.
fn quoted(rest: &str, quote: char) -> usize {
    rest[1..].find(quote).map_or(rest.len(), |end| end + 2)
}

/// Whether what follows a backslash is an escape: of a number for a character all digits are there.
fn is_escape(text: &str) -> bool {
    let digits = match text.as_bytes().first() {
        Some(b'u') => 4,
        Some(b'U') => 8,
        _ => 0,
    };
    digits == 0 || text.bytes().skip(1).take_while(u8::is_ascii_hexdigit).count() >= digits
}

fn warning(escaped: u8) -> Notice {
    let (message, hint) = match escaped {
        b'\'' => (
            "nonstandard use of \\' in a string literal",
            "Use '' to write quotes in strings, or use the escape string syntax (E'...').",
        ),
        b'\\' => (
            "nonstandard use of \\\\ in a string literal",
            "Use the escape string syntax for backslashes, e.g., E'\\\\'.",
        ),
        _ => (
            "nonstandard use of escape in a string literal",
            "Use the escape string syntax for escapes, e.g., E'\\r\\n'.",
        ),
    };
    Error::with_severity(Severity::Warning, SqlState::NONSTANDARD_USE_OF_ESCAPE_CHARACTER, message).hint(hint)
}

/// What a string with escapes says; `None` if an escape is wrong, or gives what is no text.
fn unescaped(content: &str) -> Option<String> {
    let bytes = content.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        base::work::beat(1);
        match (byte, bytes.get(at + 1)) {
            (b'\\', Some(escaped)) => at += escape(*escaped, &content[at + 1..], &mut out)? + 1,
            (b'\'', _) => {
                out.push(b'\'');
                at += 2;
            }
            _ => {
                out.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8(out).ok().filter(|text| !text.contains('\0'))
}

/// Appends what an escape means; its length without the backslash.
fn escape(escaped: u8, text: &str, out: &mut Vec<u8>) -> Option<usize> {
    let digits = |from: usize, most: usize, radix: u32| {
        let found = text[from..].bytes().take(most).take_while(|b| char::from(*b).is_digit(radix)).count();
        (found > 0).then(|| (u32::from_str_radix(&text[from..from + found], radix).unwrap_or(0), found))
    };
    let plain = match escaped {
        b'b' => 8,
        b'f' => 12,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'0'..=b'7' => {
            let (value, length) = digits(0, 3, 8)?;
            out.push(value as u8);
            return Some(length);
        }
        b'x' if digits(1, 2, 16).is_some() => {
            let (value, length) = digits(1, 2, 16)?;
            out.push(value as u8);
            return Some(length + 1);
        }
        b'u' | b'U' => return unicode(escaped, text, out),
        _ => {
            let character = text.chars().next()?;
            out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
            return Some(character.len_utf8());
        }
    };
    out.push(plain);
    Some(1)
}

/// Appends the character of `uXXXX` or `UXXXXXXXX`, or of two that are its halves; the length.
fn unicode(kind: u8, text: &str, out: &mut Vec<u8>) -> Option<usize> {
    let code = |kind: u8, from: usize| {
        let count = if kind == b'u' { 4 } else { 8 };
        let digits = text.get(from + 1..from + 1 + count)?;
        let is_hex = digits.bytes().all(|b| b.is_ascii_hexdigit());
        Some((u32::from_str_radix(digits, 16).ok().filter(|_| is_hex)?, 1 + count))
    };
    let (first, length) = code(kind, 0)?;
    let (value, length) = match first {
        0xd800..0xdc00 => {
            let next = text.as_bytes().get(length..length + 2)?;
            let kind = Some(next[1]).filter(|kind| next[0] == b'\\' && matches!(kind, b'u' | b'U'))?;
            let (second, more) = code(kind, length + 1)?;
            let low = second.checked_sub(0xdc00).filter(|low| *low < 0x400)?;
            (0x10000 + ((first - 0xd800) << 10) + low, length + 1 + more)
        }
        _ => (first, length),
    };
    out.extend_from_slice(char::from_u32(value)?.encode_utf8(&mut [0; 4]).as_bytes());
    Some(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OFF: Backslashes = Backslashes { in_plain: true, warns: true, quote: true };

    #[test]
    fn tokens_stay_where_they_are() {
        for (sql, expected) in [
            (r"select 'a\nb', x", "select 'a\nb' , x"),
            (r"select 'a\\b\'c''d', 1", r"select 'a\b''c''d' , 1"),
            (r"select '\101\x42\u00e9\U0001F600'||y", "select 'ABé😀'                    ||y"),
            (r"select '\ud83d\ude00'", "select '😀'           "),
            ("select E'a'\n'\\\\b', 'a' -- c\n '\\\\'", "select E'a'\n'\\\\b', 'a' -- c\n '\\' "),
            (r"select E'\n', b'1', $$a\n$$, $a$\'$a$, -- '\n", r"select E'\n', b'1', $$a\n$$, $a$\'$a$, -- '\n"),
            (r#"select "a\n", n'\t' /* '\n' */"#, "select \"a\\n\", n'\t'  /* '\\n' */"),
            (r"select 'é\303\251'", "select 'éé'       "),
        ] {
            let (text, warnings) = conforming(sql, OFF);
            let text = text.unwrap();
            assert_eq!(text, expected);
            assert_eq!(text.chars().count(), sql.chars().count());
            assert_eq!(warnings.is_empty(), sql.contains("E'\\n'"), "{sql}");
        }
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        let e = conforming(r"select é, 'a\'", OFF).0.unwrap_err();
        assert_eq!((e.code(), e.fields().position), (SqlState::SYNTAX_ERROR, Some(11)));
        let e = conforming(r"select 'a\n''", OFF).0.unwrap_err();
        assert_eq!((e.code(), e.fields().position), (SqlState::SYNTAX_ERROR, Some(8)));
        let e = conforming("select 1, U&'a'", OFF).0.unwrap_err();
        assert_eq!((e.code(), e.fields().position), (SqlState::FEATURE_NOT_SUPPORTED, Some(11)));
        let strict = Backslashes { quote: false, ..Backslashes::default() };
        let e = conforming(r"select E'a\'b'", strict).0.unwrap_err();
        assert_eq!(e.fields().message, "unsafe use of \\' in a string literal");
    }
}
