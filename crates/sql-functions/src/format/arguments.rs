//! `format()`

use base::{Error, Oid, Result, SqlState, work};
use sql_parse::names::{quote_literal, quote_name};
use types::Datum;
use types::oid::UNKNOWN;
use types::room::{self, Room as _};

use super::super::entry::{argument_types, mismatch, natural_type};
use super::super::{EvalContext, write_text};

const HINT: &str = "For a single \"%\" use \"%%\".";

fn invalid(message: impl Into<String>) -> Error {
    Error::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

#[cold]
fn unterminated() -> Error {
    invalid("unterminated format() type specifier").hint(HINT)
}

#[cold]
fn too_few() -> Error {
    invalid("too few arguments for format()")
}

/// Where a width comes from.
enum Width {
    Fixed(i32),
    NextArgument,
    Argument(usize),
}

struct Specifier {
    argument: Option<usize>,
    left: bool,
    width: Width,
    kind: char,
}

/// The characters of the format, one by one; running out of them within a specifier is an error.
struct Scanner<'a> {
    rest: std::iter::Peekable<std::str::Chars<'a>>,
}

impl Scanner<'_> {
    fn peek(&mut self) -> Result<char> {
        self.rest.peek().copied().ok_or_else(unterminated)
    }

    /// A number, if one stands here.
    fn number(&mut self) -> Result<Option<i32>> {
        let mut number: Option<i32> = None;
        while let Some(digit) = self.peek()?.to_digit(10) {
            let next = number.unwrap_or(0).checked_mul(10).and_then(|n| n.checked_add(digit as i32));
            number =
                Some(next.ok_or_else(|| Error::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "number is out of range"))?);
            self.rest.next();
        }
        Ok(number)
    }

    /// What follows a percent sign, up to and with the letter.
    fn specifier(&mut self) -> Result<Specifier> {
        let mut s = Specifier { argument: None, left: false, width: Width::Fixed(0), kind: 's' };
        let number = self.number()?;
        match number {
            Some(n) if self.peek()? == '$' => {
                self.rest.next();
                s.argument = Some(position(n)?);
            }
            Some(n) => {
                s.width = Width::Fixed(n);
                s.kind = self.kind()?;
                return Ok(s);
            }
            None => {}
        }
        while self.peek()? == '-' {
            s.left = true;
            self.rest.next();
        }
        if self.peek()? == '*' {
            self.rest.next();
            s.width = match self.number()? {
                Some(n) if self.peek()? == '$' => {
                    self.rest.next();
                    Width::Argument(position(n)?)
                }
                Some(_) => return Err(invalid("width argument position must be ended by \"$\"")),
                None => Width::NextArgument,
            };
        } else if let Some(n) = self.number()? {
            s.width = Width::Fixed(n);
        }
        s.kind = self.kind()?;
        Ok(s)
    }

    fn kind(&mut self) -> Result<char> {
        let kind = self.peek()?;
        self.rest.next();
        if !matches!(kind, 's' | 'I' | 'L') {
            return Err(invalid(format!("unrecognized format() type specifier \"{kind}\"")).hint(HINT));
        }
        Ok(kind)
    }
}

fn position(number: i32) -> Result<usize> {
    match number {
        0 => Err(invalid("format specifies argument 0, but arguments are numbered from 1")),
        n => Ok(n as usize),
    }
}

/// The arguments after the format, and the one that was used last.
struct Arguments<'a> {
    values: &'a [Datum],
    types: Option<&'a [Datum]>,
    last: usize,
}

impl<'a> Arguments<'a> {
    fn take(&mut self, wanted: Option<usize>) -> Result<(&'a Datum, Oid)> {
        self.last = wanted.unwrap_or(self.last + 1);
        let value = self.values.get(self.last - 1).ok_or_else(too_few)?;
        let ty = match self.types.and_then(|t| t.get(self.last - 1)) {
            Some(Datum::Oid(oid)) => Oid(*oid),
            _ => natural_type(value).unwrap_or(if matches!(value, Datum::Oid(_)) { types::oid::OID } else { UNKNOWN }),
        };
        Ok((value, ty))
    }

    fn width(&mut self, width: &Width) -> Result<i32> {
        let wanted = match width {
            Width::Fixed(n) => return Ok(*n),
            Width::NextArgument => None,
            Width::Argument(n) => Some(*n),
        };
        match self.take(wanted)?.0 {
            Datum::Null => Ok(0),
            Datum::Int4(n) => Ok(*n),
            Datum::Int2(n) => Ok(i32::from(*n)),
            Datum::Int8(n) => {
                i32::try_from(*n).map_err(|_| Error::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "integer out of range"))
            }
            Datum::Text(s) => s.trim().parse().map_err(|_| {
                let message = format!("invalid input syntax for type integer: \"{s}\"");
                Error::new(SqlState::INVALID_TEXT_REPRESENTATION, message)
            }),
            _ => Err(Error::unsupported("the width of a format must be an integer")),
        }
    }
}

fn shown(kind: char, value: &Datum, ty: Oid, cx: &dyn EvalContext) -> Result<String> {
    if value.is_null() {
        return match kind {
            'I' => {
                let message = "null values cannot be formatted as an SQL identifier";
                Err(Error::new(SqlState::NULL_VALUE_NOT_ALLOWED, message))
            }
            'L' => Ok("NULL".into()),
            _ => Ok(String::new()),
        };
    }
    let mut out = Vec::new();
    write_text(cx, value, ty, &mut out)?;
    work::step(16 + work::bytes(out.len()))?;
    let text = types::written(out);
    // Quotes double the text twice over at most.
    room::ask(5 * text.len())?;
    match kind {
        'I' => quoted(text, quote_name),
        'L' => quoted(text, quote_literal),
        _ => Ok(text),
    }
}

/// Another thread quotes what is long: the quotes are set without a look.
fn quoted(text: String, quote: fn(&str) -> String) -> Result<String> {
    if text.len() <= work::STRETCH { Ok(quote(&text)) } else { work::elsewhere(move || quote(&text)) }
}

/// Appends a text and the blanks that fill its width.
///
/// # Errors
/// 54000 if the result would be larger than a value can be.
fn pad(text: &str, width: i32, left: bool, out: &mut String) -> Result<()> {
    let blanks = (width.unsigned_abs() as usize).saturating_sub(text.chars().count());
    if out.len() + text.len() + blanks > room::VALUE_MAX {
        let detail = format!("Cannot enlarge string buffer containing {} bytes by {blanks} more bytes.", out.len());
        return Err(Error::new(SqlState::PROGRAM_LIMIT_EXCEEDED, "out of memory").detail(detail));
    }
    out.make_room(text.len() + blanks)?;
    let left = left || width < 0;
    if !left {
        out.extend(std::iter::repeat_n(' ', blanks));
    }
    out.push_str(text);
    if left {
        out.extend(std::iter::repeat_n(' ', blanks));
    }
    Ok(())
}

pub(super) fn format(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let (types, args) = argument_types(args);
    let (format, values) = match args {
        [Datum::Null, ..] => return Ok(Datum::Null),
        [Datum::Text(format), values @ ..] => (format, values),
        _ => return Err(mismatch("format")),
    };
    let types = types.and_then(|t| t.values.get(1..));
    let mut arguments = Arguments { values, types, last: 0 };
    let mut scanner = Scanner { rest: format.chars().peekable() };
    let mut out = String::new();
    while let Some(c) = scanner.rest.next() {
        work::step(2)?;
        out.make_room(4)?;
        if c != '%' {
            out.push(c);
            continue;
        }
        if scanner.peek()? == '%' {
            scanner.rest.next();
            out.push('%');
            continue;
        }
        let specifier = scanner.specifier()?;
        let width = arguments.width(&specifier.width)?;
        let (value, ty) = arguments.take(specifier.argument)?;
        pad(&shown(specifier.kind, value, ty, cx)?, width, specifier.left, &mut out)?;
    }
    Ok(Datum::from(out))
}
