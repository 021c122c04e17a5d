//! Values of settings as they are written and shown: booleans, numbers, amounts of time and memory.
//!
//! Responsible for: reading and printing them, their bounds.
//! Not responsible for: which setting takes what.

use base::work::{self, Count};
use base::{Error, Result, SqlState};
use types::io::parse_float8;

/// 22023: a value that a parameter cannot have.
pub fn invalid(name: &str, value: &str) -> Error {
    Error::new(SqlState::INVALID_PARAMETER_VALUE, format!("invalid value for parameter \"{name}\": \"{value}\""))
}

/// PostgreSQL's boolean spellings, unambiguous prefixes included.
pub fn parse_bool(text: &str) -> Option<bool> {
    // No spelling is longer.
    let t = Some(text).filter(|text| text.len() <= "false".len())?.to_ascii_lowercase();
    match t.as_str() {
        "on" | "1" => Some(true),
        "of" | "off" | "0" => Some(false),
        "" | "o" => None,
        _ if "true".starts_with(&t) || "yes".starts_with(&t) => Some(true),
        _ if "false".starts_with(&t) || "no".starts_with(&t) => Some(false),
        _ => None,
    }
}

/// Units of time and of memory, the largest first, in milliseconds and bytes.
const TIMES: [(&str, f64); 6] = [("d", 864e5), ("h", 36e5), ("min", 6e4), ("s", 1e3), ("ms", 1.0), ("us", 1e-3)];
const SIZES: [(&str, f64); 5] =
    [("TB", 1_099_511_627_776.0), ("GB", 1_073_741_824.0), ("MB", 1_048_576.0), ("kB", 1024.0), ("B", 1.0)];

/// The units that go with a setting's, and how large its own is.
fn units_of(unit: &str) -> Option<(&'static [(&'static str, f64)], f64)> {
    Some(match unit {
        "8kB" => (&SIZES, 8192.0),
        "" => return None,
        unit => {
            let units: &'static [(&'static str, f64)] =
                if SIZES.iter().any(|(u, _)| *u == unit) { &SIZES } else { &TIMES };
            (units, units.iter().find(|(u, _)| *u == unit)?.1)
        }
    })
}

/// A hexadecimal number, as C writes it, without a unit.
fn parse_hexadecimal(text: &str) -> Option<f64> {
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"))?;
    let zeros = digits.bytes().counted(1).take_while(|b| *b == b'0').count();
    // The last digit stays.
    let digits = &digits[zeros.min(digits.len().saturating_sub(1))..];
    i64::from_str_radix(digits, 16).ok().map(|value| value as f64)
}

/// A number with or without a unit, in the setting's own.
fn parse_number(name: &str, text: &str, unit: &str) -> Result<f64> {
    let t = text.trim_matches(|c: char| {
        work::beat(1);
        c.is_whitespace()
    });
    if let Some(value) = parse_hexadecimal(t) {
        return Ok(value);
    }
    let is_exponent = |at: usize| {
        t[at..].starts_with(['e', 'E'])
            && t[at + 1..].trim_start_matches(['+', '-']).starts_with(|c: char| c.is_ascii_digit())
    };
    let digits = t
        .char_indices()
        .counted(4)
        .find(|&(at, c)| {
            let sign = "+-".contains(c) && (at == 0 || t[..at].ends_with(['e', 'E']));
            !(c.is_ascii_digit() || c == '.' || sign || is_exponent(at))
        })
        .map_or(t.len(), |(at, _)| at);
    let (number, suffix) = (&t[..digits], t[digits..].trim());
    let value: f64 = match number.len() {
        // Not read as a value of the type, which may not be too large.
        0..100 => number.parse().map_err(|_| invalid(name, text))?,
        _ => parse_float8(number).map_err(|_| invalid(name, text))?,
    };
    if suffix.is_empty() {
        return Ok(value);
    }
    let Some((units, own)) = units_of(unit) else { return Err(invalid(name, text)) };
    match units.iter().find(|(u, _)| *u == suffix) {
        Some((_, scale)) => Ok(value * scale / own),
        None if units.len() == TIMES.len() => Err(invalid(name, text)
            .hint("Valid units for this parameter are \"us\", \"ms\", \"s\", \"min\", \"h\", and \"d\".")),
        None => {
            Err(invalid(name, text)
                .hint("Valid units for this parameter are \"B\", \"kB\", \"MB\", \"GB\", and \"TB\"."))
        }
    }
}

/// A number without a unit, as settings are read.
pub fn plain_number(text: &str) -> Option<f64> {
    parse_number("", text, "").ok()
}

fn out_of_range(
    name: &str,
    value: impl std::fmt::Display,
    unit: &str,
    min: impl std::fmt::Display,
    max: impl std::fmt::Display,
) -> Error {
    let unit = if unit.is_empty() { String::new() } else { format!(" {unit}") };
    Error::new(
        SqlState::INVALID_PARAMETER_VALUE,
        format!("{value}{unit} is outside the valid range for parameter \"{name}\" ({min} .. {max})"),
    )
}

/// Reads a whole number with an optional unit, within bounds.
///
/// # Errors
/// 22023.
pub fn parse_int(name: &str, text: &str, min: i64, max: i64, unit: &str) -> Result<i64> {
    let value = parse_number(name, text, unit)?.round_ties_even();
    if value < min as f64 || value > max as f64 {
        return Err(out_of_range(name, value, unit, min, max));
    }
    Ok(value as i64)
}

/// Reads a number with an optional unit, within bounds.
///
/// # Errors
/// 22023.
pub fn parse_real(name: &str, text: &str, min: f64, max: f64, unit: &str) -> Result<f64> {
    let value = parse_number(name, text, unit)?;
    if !(min..=max).contains(&value) {
        let shown = |bound: f64| if bound == f64::MAX { "1.79769e+308".to_owned() } else { bound.to_string() };
        return Err(out_of_range(name, value, unit, shown(min), shown(max)));
    }
    Ok(value)
}

/// A number with the largest unit that divides it, as SHOW prints.
pub fn show_unit(value: i64, unit: &str) -> String {
    let Some((units, own)) = units_of(unit) else { return value.to_string() };
    if value <= 0 {
        return value.to_string();
    }
    let whole = value as f64 * own;
    match units.iter().find(|(_, scale)| whole % scale == 0.0) {
        Some((name, scale)) => format!("{}{name}", whole / scale),
        None => value.to_string(),
    }
}

/// A number as C's `%g` writes it: six digits at most.
fn six_digits(value: f64) -> String {
    let scientific = format!("{value:.5e}");
    let Some((digits, exponent)) = scientific.split_once('e').and_then(|(d, e)| Some((d, e.parse::<i32>().ok()?)))
    else {
        return value.to_string();
    };
    let without_zeros = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    };
    match exponent {
        -4..6 => without_zeros(&format!("{value:.0$}", (5 - exponent) as usize)),
        _ => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{}e{sign}{:02}", without_zeros(digits), exponent.abs())
        }
    }
}

/// A real value of a setting as SHOW prints it: in the largest unit that it is a whole number of, else in the smallest.
pub fn show_real(value: f64, unit: &str) -> String {
    let Some((units, own)) = units_of(unit).filter(|_| value > 0.0) else { return six_digits(value) };
    let in_unit = |scale: f64| value * own / scale;
    let is_whole = |scale: f64| (in_unit(scale).round_ties_even() / in_unit(scale) - 1.0).abs() <= 1e-8;
    match units.iter().find(|(_, scale)| is_whole(*scale)).or(units.last()) {
        Some((name, scale)) => format!("{}{name}", six_digits(in_unit(*scale))),
        None => six_digits(value),
    }
}

/// The value of a setting that is an amount of memory.
pub fn kilobytes(name: &str, text: &str) -> Option<u64> {
    parse_int(name, text, 0, i64::MAX, "kB").ok().and_then(|kilobytes| u64::try_from(kilobytes).ok())
}
