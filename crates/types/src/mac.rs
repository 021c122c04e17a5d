//! Hardware addresses: `macaddr` (6 bytes), `macaddr8` (8 bytes).
//!
//! Source: what PostgreSQL reads. A `macaddr` is read as C's `scanf` would, by seven patterns; a `macaddr8` by pairs of digits.

use base::{Error, Result, SqlState, work};

use crate::io::invalid_syntax;

/// Separators of the forms of a `macaddr`, before each of its bytes; digits of a byte are not bounded in the first two.
const FORMS: [([&str; 6], usize); 7] = [
    (["", ":", ":", ":", ":", ":"], usize::MAX),
    (["", "-", "-", "-", "-", "-"], usize::MAX),
    (["", "", "", ":", "", ""], 2),
    (["", "", "", "-", "", ""], 2),
    (["", "", ".", "", ".", ""], 2),
    (["", "", "-", "", "-", ""], 2),
    (["", "", "", "", "", ""], 2),
];

/// Reads a `macaddr`.
///
/// # Errors
/// 22P02, 22003
pub fn parse(text: &str) -> Result<[u8; 6]> {
    for (separators, digits) in FORMS {
        let Some(numbers) = scan(text, separators, digits)? else { continue };
        let mut bytes = [0; 6];
        for (byte, number) in bytes.iter_mut().zip(numbers) {
            *byte = u8::try_from(number).map_err(|_| {
                let message = format!("invalid octet value in \"macaddr\" value: \"{text}\"");
                Error::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, message)
            })?;
        }
        return Ok(bytes);
    }
    Err(invalid_syntax("macaddr", text))
}

/// Six numbers of a form, with blanks before each and behind the last.
fn scan(text: &str, separators: [&str; 6], digits: usize) -> Result<Option<[i64; 6]>> {
    let (mut rest, mut numbers) = (text.as_bytes(), [0; 6]);
    for (number, separator) in numbers.iter_mut().zip(separators) {
        let Some(behind) = rest.strip_prefix(separator.as_bytes()) else { return Ok(None) };
        let Some((value, behind)) = hexadecimal(behind, digits)? else { return Ok(None) };
        (*number, rest) = (value, behind);
    }
    Ok(without_blanks(rest)?.is_empty().then_some(numbers))
}

fn is_blank(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte == 0x0b
}

fn without_blanks(mut rest: &[u8]) -> Result<&[u8]> {
    while let [first, behind @ ..] = rest
        && is_blank(*first)
    {
        work::step(1)?;
        rest = behind;
    }
    Ok(rest)
}

/// A number as `scanf` reads it: a sign, `0x`, digits, all within `width` bytes. Nothing larger than an `int` can be told apart.
fn hexadecimal(text: &[u8], width: usize) -> Result<Option<(i64, &[u8])>> {
    let text = without_blanks(text)?;
    let field = &text[..text.len().min(width)];
    let (sign, unsigned) = match field {
        [b'-', rest @ ..] => (-1, rest),
        [b'+', rest @ ..] => (1, rest),
        rest => (1, rest),
    };
    let digits = match unsigned {
        [b'0', b'x' | b'X', rest @ ..] if rest.first().is_some_and(u8::is_ascii_hexdigit) => rest,
        rest => rest,
    };
    let (mut value, mut len) = (0i64, 0);
    while let Some(digit) = digits.get(len).and_then(|b| char::from(*b).to_digit(16)) {
        work::step(1)?;
        value = (value << 4 | i64::from(digit)).min(i64::from(u32::MAX));
        len += 1;
    }
    let used = field.len() - digits.len() + len;
    Ok((len > 0).then(|| (sign * value, &text[used..])))
}

/// Reads a `macaddr8`: six bytes are filled to eight.
///
/// # Errors
/// 22P02
pub fn parse8(text: &str) -> Result<[u8; 8]> {
    let invalid = || invalid_syntax("macaddr8", text);
    let (mut bytes, mut count) = ([0; 8], 0);
    let mut separator = None;
    let mut rest = without_blanks(text.as_bytes())?;
    while let [high, low, behind @ ..] = rest {
        let digit = |byte: u8| char::from(byte).to_digit(16).ok_or_else(invalid);
        *bytes.get_mut(count).ok_or_else(invalid)? = (digit(*high)? << 4 | digit(*low)?) as u8;
        count += 1;
        rest = behind;
        if let [found @ (b':' | b'-' | b'.'), behind @ ..] = rest {
            if *separator.get_or_insert(*found) != *found {
                return Err(invalid());
            }
            rest = behind;
        }
        if (count == 6 || count == 8) && rest.first().is_some_and(|byte| is_blank(*byte)) {
            rest = without_blanks(rest)?;
            if !rest.is_empty() {
                return Err(invalid());
            }
        }
    }
    match count {
        6 => {
            let [a, b, c, d, e, f, ..] = bytes;
            Ok([a, b, c, 0xff, 0xfe, d, e, f])
        }
        8 => Ok(bytes),
        _ => Err(invalid()),
    }
}

/// Appends the text form of either.
pub fn write(bytes: &[u8], out: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    for (i, byte) in bytes.iter().enumerate() {
        if i > 0 {
            out.push(b':');
        }
        out.extend_from_slice(&[HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_forms_are_read() {
        let wanted = [8, 0, 0x2b, 1, 2, 3];
        for text in [
            "08:00:2b:01:02:03",
            "08-00-2b-01-02-03",
            "08002b:010203",
            "08002b-010203",
            "0800.2b01.0203",
            "0800-2b01-0203",
            "08002b010203",
            " 8:0:2b:1:2:3 ",
        ] {
            assert_eq!(parse(text).unwrap(), wanted, "{text}");
        }
        assert_eq!(parse("08:00:2b:01:02:1ff").unwrap_err().code(), SqlState::NUMERIC_VALUE_OUT_OF_RANGE);
        for text in ["", "08:00:2b:01:02", "08002b010", "08:00:2b:01:02:03x"] {
            assert!(parse(text).is_err(), "{text}");
        }
        assert_eq!(parse8("08002b:010203").unwrap(), [8, 0, 0x2b, 0xff, 0xfe, 1, 2, 3]);
        assert!(parse8("08:00-2b:01:02:03:04:05").is_err());
    }
}
