//! Cuts the text of a date, time or interval into fields, each with a first guess of what it is.

use super::Bad;
use super::tokens::word;
use base::work;

/// First guess of a field's meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FieldKind {
    Number,
    Text,
    /// With separators: a date, or a zone's name.
    Date,
    /// With colons.
    Time,
    /// A signed number: a zone's offset.
    Offset,
    /// A signed word.
    Signed,
}

/// A lower-case field.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Field<'a> {
    pub text: &'a str,
    pub kind: FieldKind,
}

/// Most fields of a text.
const FIELDS_MAX: usize = 25;
/// Longest text, without the spaces between fields.
const TEXT_MAX: usize = 230;

/// The fields of a text. Their lower-case bytes live in an inline buffer.
pub(crate) struct Fields {
    buffer: [u8; TEXT_MAX],
    used: usize,
    spans: [(u8, u8, FieldKind); FIELDS_MAX],
    count: usize,
}

struct Scanner<'a> {
    input: &'a [u8],
    at: usize,
    fields: Fields,
}

fn is_space(b: u8) -> bool {
    matches!(b, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c)
}

impl Scanner<'_> {
    /// The byte at the position; 0 at the end.
    fn peek(&self) -> u8 {
        self.input.get(self.at).copied().unwrap_or(0)
    }

    fn push(&mut self) -> Result<(), Bad> {
        let slot = self.fields.buffer.get_mut(self.fields.used).ok_or(Bad::Format)?;
        *slot = self.input[self.at].to_ascii_lowercase();
        self.fields.used += 1;
        self.at += 1;
        Ok(())
    }

    fn push_while(&mut self, accept: impl Fn(u8) -> bool) -> Result<(), Bad> {
        while self.at < self.input.len() && accept(self.input[self.at]) {
            self.push()?;
        }
        Ok(())
    }

    /// A field that starts with a digit.
    fn number(&mut self) -> Result<FieldKind, Bad> {
        self.push_while(|b| b.is_ascii_digit())?;
        let delimiter = self.peek();
        match delimiter {
            b':' => {
                self.push_while(|b| b.is_ascii_digit() || b == b':' || b == b'.')?;
                Ok(FieldKind::Time)
            }
            b'-' | b'/' | b'.' => {
                self.push()?;
                if !self.peek().is_ascii_digit() {
                    self.push_while(|b| b.is_ascii_alphanumeric() || b == delimiter)?;
                    return Ok(FieldKind::Date);
                }
                self.push_while(|b| b.is_ascii_digit())?;
                if self.peek() == delimiter {
                    // Three fields with the same delimiter.
                    self.push_while(|b| b.is_ascii_digit() || b == delimiter)?;
                    return Ok(FieldKind::Date);
                }
                Ok(if delimiter == b'.' { FieldKind::Number } else { FieldKind::Date })
            }
            _ => Ok(FieldKind::Number),
        }
    }

    /// A field that starts with a letter: a word, a date with a month's name, or the name of a zone.
    fn text(&mut self, start: usize) -> Result<FieldKind, Bad> {
        self.push_while(|b| b.is_ascii_alphabetic())?;
        let compound = match self.peek() {
            b'-' | b'/' | b'.' => true,
            // A known word ends here (`may5`, `utc+3` does not).
            b'+' | b'0'..=b'9' => {
                let so_far = std::str::from_utf8(&self.fields.buffer[start..self.fields.used]).unwrap_or("");
                word(so_far).is_none()
            }
            _ => false,
        };
        if !compound {
            return Ok(FieldKind::Text);
        }
        self.push_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'/' | b'_' | b'.' | b':'))?;
        Ok(FieldKind::Date)
    }

    /// A field that starts with a sign.
    fn signed(&mut self) -> Result<FieldKind, Bad> {
        self.push()?;
        while is_space(self.peek()) {
            work::beat(1);
            self.at += 1;
        }
        let next = self.peek();
        if next.is_ascii_digit() {
            self.push_while(|b| b.is_ascii_digit() || matches!(b, b':' | b'.' | b'-'))?;
            Ok(FieldKind::Offset)
        } else if next.is_ascii_alphabetic() {
            self.push_while(|b| b.is_ascii_alphabetic())?;
            Ok(FieldKind::Signed)
        } else {
            Err(Bad::Format)
        }
    }
}

impl Fields {
    /// Cuts a text.
    pub(crate) fn split(input: &str) -> Result<Fields, Bad> {
        let fields =
            Fields { buffer: [0; TEXT_MAX], used: 0, spans: [(0, 0, FieldKind::Number); FIELDS_MAX], count: 0 };
        let mut s = Scanner { input: input.as_bytes(), at: 0, fields };
        while s.at < s.input.len() {
            let b = s.peek();
            if is_space(b) {
                work::beat(1);
                s.at += 1;
                continue;
            }
            let start = s.fields.used;
            let kind = match b {
                b'0'..=b'9' => s.number()?,
                b'.' => {
                    s.push()?;
                    s.push_while(|b| b.is_ascii_digit())?;
                    FieldKind::Number
                }
                b'+' | b'-' => s.signed()?,
                _ if b.is_ascii_alphabetic() => s.text(start)?,
                _ if b.is_ascii_punctuation() => {
                    work::beat(1);
                    s.at += 1;
                    continue;
                }
                _ => return Err(Bad::Format),
            };
            let slot = s.fields.spans.get_mut(s.fields.count).ok_or(Bad::Format)?;
            *slot = (start as u8, s.fields.used as u8, kind);
            s.fields.count += 1;
        }
        Ok(s.fields)
    }

    pub(crate) fn len(&self) -> usize {
        self.count
    }

    pub(crate) fn get(&self, at: usize) -> Field<'_> {
        let (start, end, kind) = self.spans[at];
        // Only ASCII bytes are ever pushed.
        let text = std::str::from_utf8(&self.buffer[start as usize..end as usize]).unwrap_or("");
        Field { text, kind }
    }
}

/// A leading integer as strtol() reads it, and the rest; `None` beyond 32 bits. Without digits, 0 and all of the text.
pub(crate) fn leading_i32(text: &str) -> Option<(i32, &str)> {
    let (n, rest) = leading_i64(text)?;
    Some((i32::try_from(n).ok()?, rest))
}

/// A leading integer as strtoll() reads it, and the rest; `None` beyond 64 bits.
pub(crate) fn leading_i64(text: &str) -> Option<(i64, &str)> {
    let b = text.as_bytes();
    let signed = usize::from(matches!(b.first(), Some(b'+' | b'-')));
    let digits = b[signed..].iter().take_while(|c| c.is_ascii_digit()).count();
    if digits == 0 {
        return Some((0, text));
    }
    let end = signed + digits;
    let number = text[..end].strip_prefix('+').unwrap_or(&text[..end]);
    Some((number.parse().ok()?, &text[end..]))
}

/// A fraction from its point on, as a part of 1.
pub(crate) fn leading_fraction(text: &str) -> Result<f64, Bad> {
    if text == "." {
        return Ok(0.0);
    }
    if !text.starts_with('.') || !text[1..].bytes().all(|b| b.is_ascii_digit()) {
        return Err(Bad::Format);
    }
    text.parse().map_err(|_| Bad::Format)
}

/// A fraction of a second, from its point on, in microseconds.
pub(crate) fn fraction_micros(text: &str) -> Result<i32, Bad> {
    Ok((leading_fraction(text)? * 1e6).round_ties_even() as i32)
}
