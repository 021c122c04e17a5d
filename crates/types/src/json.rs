//! `json` and `jsonb`: checking text, and the normal form that `jsonb` is held and shown in.
//!
//! `json` keeps the text it was given. `jsonb` is held as the text that PostgreSQL prints for it: keys by length and then
//! by bytes, the last of equal keys, numbers as NUMERIC prints them, one blank after commas and colons.

mod moment;
mod order;

use base::work::{self, Count};
use base::{Error, Result, SqlState};

use crate::Numeric;
use crate::room::{self, Room as _};

pub use moment::Moment;
pub use order::compare;
pub(crate) use order::write_key;

/// Nesting that is accepted, so that no text can exhaust the stack.
const DEPTH_MAX: usize = 1000;
/// Bytes of a line that an error's context shows.
const CONTEXT_LEN: usize = 50;

/// Bytes that are small beside those of a document that matters.
const SMALL: usize = 64;
/// Bytes of the longest number.
const NUMBER_MAX: usize = 150_000;

/// A parsed document.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number, with its scale.
    Number(Numeric),
    /// A string, without quotes and escapes.
    String(String),
    /// `[…]`
    Array(Vec<Value>),
    /// `{…}`; keys in the order of `jsonb`, none twice.
    Object(Vec<(String, Value)>),
    /// What a path has made of a string; no document has it.
    Moment(Moment),
}

/// Checks that text is one JSON document, as `json` takes it.
///
/// # Errors
/// 22P02 with what is wrong as detail.
pub fn validate(text: &str) -> Result<()> {
    Parser::new(text, false).document().map(drop)
}

/// Parses a document as `jsonb` takes it.
///
/// # Errors
/// 22P02 with what is wrong as detail, 22P05 for `\u0000`, 22003 for a number that NUMERIC cannot hold.
pub fn parse(text: &str) -> Result<Value> {
    room::ask(text.len())?;
    Parser::new(text, true).document()
}

/// The text that `jsonb` shows for a document.
///
/// # Errors
/// As [`parse`].
pub fn normal_form(text: &str) -> Result<String> {
    let value = parse(text)?;
    room::for_value(text.len())?;
    let mut out = Vec::with_capacity(text.len());
    value.write(&mut out)?;
    Ok(crate::written(out))
}

impl Value {
    /// Appends the text of `jsonb`.
    ///
    /// # Errors
    /// 54000 and 53200 if it becomes too long.
    pub fn write(&self, out: &mut Vec<u8>) -> Result<()> {
        work::beat(8);
        // A short number can have many digits.
        let more = if out.len() < room::LARGE { SMALL } else { NUMBER_MAX };
        out.make_room(more)?;
        match self {
            Value::Null => out.extend_from_slice(b"null"),
            Value::Bool(v) => out.extend_from_slice(if *v { b"true" } else { b"false" }),
            Value::Number(v) => v.write(out),
            Value::String(v) => {
                out.make_room(string_len(v))?;
                write_string(v, out);
            }
            Value::Moment(v) => {
                out.push(b'"');
                v.write(out);
                out.push(b'"');
            }
            Value::Array(values) => {
                out.push(b'[');
                for (i, value) in values.iter().enumerate() {
                    if i > 0 {
                        out.extend_from_slice(b", ");
                    }
                    value.write(out)?;
                }
                out.push(b']');
            }
            Value::Object(fields) => {
                out.push(b'{');
                for (i, (key, value)) in fields.iter().enumerate() {
                    if i > 0 {
                        out.extend_from_slice(b", ");
                    }
                    out.make_room(string_len(key) + SMALL)?;
                    write_string(key, out);
                    out.extend_from_slice(b": ");
                    value.write(out)?;
                }
                out.push(b'}');
            }
        }
        Ok(())
    }

    /// A field of an object.
    pub fn field(&self, key: &str) -> Option<&Value> {
        match self {
            Value::Object(fields) => fields.iter().counted(2).find(|(k, _)| k == key).map(|(_, value)| value),
            _ => None,
        }
    }
}

/// Bytes of a string as [`write_string`] writes it, or a few more.
pub fn string_len(text: &str) -> usize {
    if text.len() < SMALL {
        return 6 * SMALL;
    }
    let length = |b: u8| match b {
        b'"' | b'\\' | 0x08 | 0x0c | b'\n' | b'\r' | b'\t' => 2,
        0..0x20 => 6,
        _ => 1,
    };
    text.bytes().counted(1).map(length).sum::<usize>() + 2
}

/// Appends a string with quotes and the escapes it needs.
pub fn write_string(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    for &b in text.as_bytes().iter().counted(1) {
        match b {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            0x08 => out.extend_from_slice(b"\\b"),
            0x0c => out.extend_from_slice(b"\\f"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0..0x20 => out.extend_from_slice(format!("\\u{b:04x}").as_bytes()),
            b => out.push(b),
        }
    }
    out.push(b'"');
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Token {
    End,
    /// One of `{}[],:`.
    Mark(u8),
    String,
    Number,
    True,
    False,
    Null,
}

struct Parser<'a> {
    text: &'a str,
    /// Whether values are built, and escapes therefore checked for what they mean.
    builds: bool,
    token: Token,
    /// The token's place.
    start: usize,
    end: usize,
    /// The token's string, if it is one and values are built.
    string: String,
    line: usize,
    line_start: usize,
}

/// Letters, digits and all that could be part of a word.
fn is_word(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'_' || b >= 0x80
}

impl<'a> Parser<'a> {
    fn new(text: &'a str, builds: bool) -> Parser<'a> {
        Parser { text, builds, token: Token::Null, start: 0, end: 0, string: String::new(), line: 1, line_start: 0 }
    }

    fn document(&mut self) -> Result<Value> {
        self.advance()?;
        let value = self.value(0)?;
        if self.token != Token::End {
            return Err(self.expected("end of input"));
        }
        Ok(value)
    }

    fn value(&mut self, depth: usize) -> Result<Value> {
        if depth > DEPTH_MAX {
            return Err(Error::new(SqlState::STATEMENT_TOO_COMPLEX, "stack depth limit exceeded"));
        }
        let value = match self.token {
            Token::Mark(b'{') => return self.object(depth),
            Token::Mark(b'[') => return self.array(depth),
            Token::String => Value::String(std::mem::take(&mut self.string)),
            Token::Number if self.builds => Value::Number(Numeric::parse(&self.text[self.start..self.end])?),
            Token::Number | Token::Null => Value::Null,
            Token::True => Value::Bool(true),
            Token::False => Value::Bool(false),
            Token::Mark(_) | Token::End => return Err(self.expected("JSON value")),
        };
        self.advance()?;
        Ok(value)
    }

    fn array(&mut self, depth: usize) -> Result<Value> {
        let mut values = Vec::new();
        self.advance()?;
        if self.token != Token::Mark(b']') {
            loop {
                let value = self.value(depth + 1)?;
                if self.builds {
                    values.make_room(1)?;
                    values.push(value);
                }
                if self.token != Token::Mark(b',') {
                    break;
                }
                self.advance()?;
            }
        }
        self.expect(b']', "\",\" or \"]\"")?;
        Ok(Value::Array(values))
    }

    fn object(&mut self, depth: usize) -> Result<Value> {
        let mut fields: Vec<(String, Value)> = Vec::new();
        self.advance()?;
        match self.token {
            Token::String => loop {
                let key = std::mem::take(&mut self.string);
                self.advance()?;
                self.expect(b':', "\":\"")?;
                let value = self.value(depth + 1)?;
                if self.builds {
                    fields.make_room(1)?;
                    fields.push((key, value));
                }
                if self.token != Token::Mark(b',') {
                    break;
                }
                self.advance()?;
                if self.token != Token::String {
                    return Err(self.expected("string"));
                }
            },
            Token::Mark(b'}') => {}
            _ => return Err(self.expected("string or \"}\"")),
        }
        self.expect(b'}', "\",\" or \"}\"")?;
        // Stable, so that of equal keys the last one given stays last and is kept.
        fields.sort_by(|(a, _), (b, _)| {
            work::beat(4);
            a.len().cmp(&b.len()).then_with(|| a.cmp(b))
        });
        work::step(8 * fields.len().min(1024))?;
        fields.reverse();
        fields.dedup_by(|(a, _), (b, _)| a == b);
        fields.reverse();
        Ok(Value::Object(fields))
    }

    fn expect(&mut self, mark: u8, what: &str) -> Result<()> {
        if self.token != Token::Mark(mark) {
            return Err(self.expected(what));
        }
        self.advance()
    }

    /// Reads the next token.
    fn advance(&mut self) -> Result<()> {
        // The token before was looked at byte by byte; what is made of it is copied.
        work::step(8 + work::bytes(self.end - self.start))?;
        let bytes = self.text.as_bytes();
        let mut at = self.end;
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = bytes.get(at) {
            work::step(1)?;
            at += 1;
            if bytes[at - 1] == b'\n' {
                self.line += 1;
                self.line_start = at;
            }
        }
        (self.start, self.end) = (at, at + 1);
        self.token = match bytes.get(at) {
            None => {
                self.end = at;
                Token::End
            }
            Some(&mark @ (b'{' | b'}' | b'[' | b']' | b',' | b':')) => Token::Mark(mark),
            Some(b'"') => return self.read_string(),
            Some(b'-' | b'0'..=b'9') => return self.read_number(),
            Some(_) => {
                let len = bytes[at..].iter().counted(1).take_while(|b| is_word(**b)).count();
                self.end = at + len.max(1);
                match &self.text[at..self.end] {
                    "true" => Token::True,
                    "false" => Token::False,
                    "null" => Token::Null,
                    _ => return Err(self.invalid_token()),
                }
            }
        };
        Ok(())
    }

    fn read_number(&mut self) -> Result<()> {
        let bytes = self.text.as_bytes();
        let digits = |at: usize| bytes[at..].iter().counted(1).take_while(|b| b.is_ascii_digit()).count();
        let mut at = self.start + (bytes[self.start] == b'-') as usize;
        let whole = if bytes.get(at) == Some(&b'0') { 1 } else { digits(at) };
        let mut valid = whole > 0;
        at += whole;
        if bytes.get(at) == Some(&b'.') {
            let fraction = digits(at + 1);
            valid &= fraction > 0;
            at += 1 + fraction;
        }
        if let Some(b'e' | b'E') = bytes.get(at) {
            at += 1;
            at += matches!(bytes.get(at), Some(b'+' | b'-')) as usize;
            let exponent = digits(at);
            valid &= exponent > 0;
            at += exponent;
        }
        let garbage = bytes[at..].iter().counted(1).take_while(|b| is_word(**b)).count();
        self.end = at + garbage;
        self.token = Token::Number;
        if valid && garbage == 0 { Ok(()) } else { Err(self.invalid_token()) }
    }

    fn read_string(&mut self) -> Result<()> {
        self.token = Token::String;
        self.string.clear();
        let bytes = self.text.as_bytes();
        // A high surrogate that waits for its other half.
        let mut high: Option<u32> = None;
        let mut at = self.start + 1;
        loop {
            let run = bytes[at..].iter().counted(1).take_while(|b| **b >= 0x20 && !matches!(b, b'"' | b'\\')).count();
            self.end = at + run;
            if high.is_some() && (run > 0 || bytes.get(self.end) == Some(&b'"')) {
                // The quote that ends the string is shown too.
                self.end += (run == 0) as usize;
                return Err(self.invalid("Unicode low surrogate must follow a high surrogate."));
            }
            if self.builds {
                self.string.push_str(&self.text[at..self.end]);
            }
            at = self.end;
            match bytes.get(at) {
                None => return Err(self.invalid_token()),
                Some(b'"') => break,
                Some(b'\\') => at = self.read_escape(at + 1, &mut high)?,
                Some(control) => {
                    return Err(self.invalid(format!("Character with value 0x{control:02x} must be escaped.")));
                }
            }
        }
        self.end = at + 1;
        Ok(())
    }

    /// Reads what follows a backslash; where it ends.
    fn read_escape(&mut self, at: usize, high: &mut Option<u32>) -> Result<usize> {
        self.end = at;
        let escape = self.text[at..].chars().next().ok_or_else(|| self.invalid_token())?;
        if escape != 'u' && high.is_some() {
            return Err(self.invalid("Unicode low surrogate must follow a high surrogate."));
        }
        let character = match escape {
            'u' => return self.read_unicode(at + 1, high),
            '"' | '\\' | '/' => escape,
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            other => {
                self.end = at + other.len_utf8();
                return Err(self.invalid(format!("Escape sequence \"\\{other}\" is invalid.")));
            }
        };
        self.string.push(character);
        Ok(at + 1)
    }

    /// Reads the four digits of `\u`; where they end.
    fn read_unicode(&mut self, at: usize, high: &mut Option<u32>) -> Result<usize> {
        let mut code = 0u32;
        for i in 0..4 {
            let c = self.text[at + i..].chars().next();
            self.end = at + i + c.map_or(0, char::len_utf8);
            let digit = match c {
                None => return Err(self.invalid_token()),
                Some(c) => c.to_digit(16),
            };
            let digit = digit.ok_or_else(|| self.invalid("\"\\u\" must be followed by four hexadecimal digits."))?;
            code = code << 4 | digit;
        }
        self.end = at + 4;
        if !self.builds {
            return Ok(at + 4);
        }
        let code = match (code, high.take()) {
            (0xd800..0xdc00, Some(_)) => {
                return Err(self.invalid("Unicode high surrogate must not follow a high surrogate."));
            }
            (0xd800..0xdc00, None) => {
                *high = Some(code);
                return Ok(at + 4);
            }
            (0xdc00..0xe000, Some(first)) => 0x10000 + ((first - 0xd800) << 10) + (code - 0xdc00),
            (0xdc00..0xe000, None) | (_, Some(_)) => {
                return Err(self.invalid("Unicode low surrogate must follow a high surrogate."));
            }
            (0, None) => {
                let error = Error::new(SqlState::UNTRANSLATABLE_CHARACTER, "unsupported Unicode escape sequence");
                return Err(error.detail("\\u0000 cannot be converted to text.").context(self.context()));
            }
            (code, None) => code,
        };
        self.string.extend(char::from_u32(code));
        Ok(at + 4)
    }

    fn token_text(&self) -> &'a str {
        &self.text[self.start..self.end]
    }

    #[cold]
    fn expected(&self, what: &str) -> Error {
        if self.token == Token::End {
            return self.invalid("The input string ended unexpectedly.");
        }
        self.invalid(work::between(&format!("Expected {what}, but found \""), self.token_text(), "\"."))
    }

    #[cold]
    fn invalid_token(&self) -> Error {
        self.invalid(work::between("Token \"", self.token_text(), "\" is invalid."))
    }

    #[cold]
    fn invalid(&self, detail: impl Into<String>) -> Error {
        let error = Error::new(SqlState::INVALID_TEXT_REPRESENTATION, "invalid input syntax for type json");
        error.detail(detail).context(self.context())
    }

    /// The line up to the token at fault, or its end if it is long.
    fn context(&self) -> String {
        let shortest = (self.end + 1).saturating_sub(CONTEXT_LEN);
        let mut start = self.line_start.max(shortest);
        while !self.text.is_char_boundary(start) {
            start += 1;
        }
        if start - self.line_start <= 3 {
            start = self.line_start;
        }
        let before = if start > self.line_start { "..." } else { "" };
        let next = self.text.as_bytes().get(self.end);
        let goes_on = self.token != Token::End && next.is_some_and(|b| !matches!(b, b'\n' | b'\r'));
        let after = if goes_on { "..." } else { "" };
        format!("JSON data, line {}: {before}{}{after}", self.line, &self.text[start..self.end])
    }
}
