//! Text input of `interval`: PostgreSQL's words, the SQL standard's forms, ISO 8601.

use super::decode::decode_clock;
use super::fields::{FieldKind, Fields, leading_fraction, leading_i32, leading_i64};
use super::tokens::{Label, Unit, Word, unit, word};
use super::{Bad, MICROS_PER_DAY, MICROS_PER_HOUR, MICROS_PER_MINUTE, MICROS_PER_SEC, interval_out_of_range};
use crate::interval::{Interval, apply_typmod, range};
use crate::settings::{InputContext, IntervalStyle};
use base::Result;

/// Reads an `interval`. `typmod` is its type modifier, -1 without one.
pub fn parse_interval(text: &str, typmod: i32, cx: &InputContext<'_>) -> Result<Interval> {
    let fields = if typmod >= 0 { (typmod >> 16) & 0x7fff } else { range::FULL };
    let standard = cx.settings.interval_style == IntervalStyle::SqlStandard;
    let read = match decode_fields(text, fields, standard) {
        Err(Bad::Format) => decode_iso(text),
        other => other,
    };
    let sums = read.map_err(|bad| {
        let bad = if bad == Bad::Field { Bad::Interval } else { bad };
        bad.error(text, "interval")
    })?;
    let months = i64::from(sums.years) * 12 + i64::from(sums.months);
    let months = i32::try_from(months).map_err(|_| interval_out_of_range())?;
    apply_typmod(Interval { micros: sums.micros, days: sums.days, months }, typmod)
}

/// Sums of the fields read.
#[derive(Default)]
struct Sums {
    micros: i64,
    days: i32,
    months: i32,
    years: i32,
}

fn narrow(value: i64) -> Result<i32, Bad> {
    i32::try_from(value).map_err(|_| Bad::Field)
}

impl Sums {
    /// A fraction of a unit of `scale` microseconds.
    fn fraction_micros(&mut self, fraction: f64, scale: i64) -> Result<(), Bad> {
        let exact = fraction * scale as f64;
        let mut micros = exact as i64;
        let rest = exact - micros as f64;
        if rest > 0.5 {
            micros += 1;
        } else if rest < -0.5 {
            micros -= 1;
        }
        self.micros = self.micros.checked_add(micros).ok_or(Bad::Field)?;
        Ok(())
    }

    fn micros(&mut self, value: i64, fraction: f64, scale: i64) -> Result<(), Bad> {
        let whole = value.checked_mul(scale).ok_or(Bad::Field)?;
        self.micros = self.micros.checked_add(whole).ok_or(Bad::Field)?;
        self.fraction_micros(fraction, scale)
    }

    fn fraction_days(&mut self, fraction: f64, scale: i32) -> Result<(), Bad> {
        let exact = fraction * f64::from(scale);
        let days = exact as i32;
        self.days = self.days.checked_add(days).ok_or(Bad::Field)?;
        self.fraction_micros(exact - f64::from(days), MICROS_PER_DAY)
    }

    fn days(&mut self, value: i64, scale: i32) -> Result<(), Bad> {
        let days = narrow(value)?.checked_mul(scale).ok_or(Bad::Field)?;
        self.days = self.days.checked_add(days).ok_or(Bad::Field)?;
        Ok(())
    }

    fn months(&mut self, value: i64, fraction: f64) -> Result<(), Bad> {
        self.months = self.months.checked_add(narrow(value)?).ok_or(Bad::Field)?;
        self.fraction_days(fraction, 30)
    }

    /// Fractions of years become whole months.
    fn years(&mut self, value: i64, fraction: f64, scale: i32) -> Result<(), Bad> {
        let years = narrow(value)?.checked_mul(scale).ok_or(Bad::Field)?;
        self.years = self.years.checked_add(years).ok_or(Bad::Field)?;
        let months = (fraction * f64::from(scale) * 12.0).round_ties_even() as i32;
        self.months = self.months.checked_add(months).ok_or(Bad::Field)?;
        Ok(())
    }

    /// Adds a number of units; returns the bits of the fields it fills.
    fn unit(&mut self, unit: Unit, value: i64, fraction: f64) -> Result<u32, Bad> {
        match unit {
            Unit::Microsecond => self.micros(value, fraction, 1)?,
            Unit::Millisecond => self.micros(value, fraction, 1000)?,
            Unit::Second => self.micros(value, fraction, MICROS_PER_SEC)?,
            Unit::Minute => self.micros(value, fraction, MICROS_PER_MINUTE)?,
            Unit::Hour => self.micros(value, fraction, MICROS_PER_HOUR)?,
            Unit::Day => {
                self.days(value, 1)?;
                self.fraction_micros(fraction, MICROS_PER_DAY)?;
            }
            Unit::Week => {
                self.days(value, 7)?;
                self.fraction_days(fraction, 7)?;
            }
            Unit::Month => self.months(value, fraction)?,
            Unit::Year => self.years(value, fraction, 1)?,
            Unit::Decade => self.years(value, fraction, 10)?,
            Unit::Century => self.years(value, fraction, 100)?,
            Unit::Millennium => self.years(value, fraction, 1000)?,
            _ => return Err(Bad::Format),
        }
        let fractional_second = unit == Unit::Second && fraction != 0.0;
        Ok(if fractional_second { SECONDS } else { 1 << unit as u32 })
    }

    fn clock(&mut self, text: &str, fields: i32) -> Result<(), Bad> {
        let (mut hour, mut minute, mut second, micro) = decode_clock(text)?;
        let two = text.bytes().filter(|&b| b == b':').count() == 1 && !text.contains('.');
        if two && fields == range::MINUTE | range::SECOND {
            (hour, minute, second) = (0, narrow(hour)?, minute);
            if minute > 59 {
                return Err(Bad::Field);
            }
        }
        let rest = i64::from(minute) * MICROS_PER_MINUTE + i64::from(second) * MICROS_PER_SEC + i64::from(micro);
        let micros = hour.checked_mul(MICROS_PER_HOUR).and_then(|h| h.checked_add(rest));
        self.micros = micros.ok_or(Bad::Field)?;
        Ok(())
    }

    fn negate(&mut self) -> Result<(), Bad> {
        self.micros = self.micros.checked_neg().ok_or(Bad::Field)?;
        self.days = self.days.checked_neg().ok_or(Bad::Field)?;
        self.months = self.months.checked_neg().ok_or(Bad::Field)?;
        self.years = self.years.checked_neg().ok_or(Bad::Field)?;
        Ok(())
    }
}

const SECONDS: u32 = 1 << Unit::Second as u32 | 1 << Unit::Millisecond as u32 | 1 << Unit::Microsecond as u32;
const CLOCK: u32 = 1 << Unit::Hour as u32 | 1 << Unit::Minute as u32 | SECONDS;

/// The unit of a number without one, from the type's last field.
fn default_unit(fields: i32) -> Unit {
    use range::{DAY, HOUR, MINUTE, MONTH, YEAR};
    match fields {
        YEAR => Unit::Year,
        f if f == MONTH || f == YEAR | MONTH => Unit::Month,
        DAY => Unit::Day,
        f if f == HOUR || f == DAY | HOUR => Unit::Hour,
        f if f == MINUTE || f == HOUR | MINUTE || f == DAY | HOUR | MINUTE => Unit::Minute,
        _ => Unit::Second,
    }
}

/// Fields from the last to the first, so that a unit is known before its number.
fn decode_fields(text: &str, fields: i32, standard: bool) -> Result<Sums, Bad> {
    let list = Fields::split(text)?;
    let signed = |i: usize| list.get(i).text.starts_with(['+', '-']);
    // In the standard's style one leading minus holds for all fields.
    let all_negative = standard && list.len() > 0 && list.get(0).text.starts_with('-') && !(1..list.len()).any(signed);
    let mut sums = Sums::default();
    let (mut seen, mut current, mut ago) = (0u32, None, false);
    for i in (0..list.len()).rev() {
        let field = list.get(i);
        let mut new = 0;
        match field.kind {
            FieldKind::Time => {
                sums.clock(field.text, fields)?;
                if all_negative && sums.micros > 0 {
                    sums.micros = -sums.micros;
                }
                (new, current) = (CLOCK, Some(Unit::Day));
            }
            FieldKind::Offset if field.text.contains(':') && sums.clock(&field.text[1..], fields).is_ok() => {
                if field.text.starts_with('-') {
                    sums.micros = -sums.micros;
                }
                if all_negative && sums.micros > 0 {
                    sums.micros = -sums.micros;
                }
                (new, current) = (CLOCK, Some(Unit::Day));
            }
            FieldKind::Offset | FieldKind::Date | FieldKind::Number => {
                let mut unit = current.unwrap_or_else(|| default_unit(fields));
                let (mut value, mut fraction) = number_or_year_month(field.text, &mut unit)?;
                current = Some(unit);
                if all_negative {
                    (value, fraction) = (-value.abs(), -fraction.abs());
                }
                new = sums.unit(unit, value, fraction)?;
            }
            FieldKind::Text | FieldKind::Signed => match interval_word(field.text)? {
                Unit::Filler => continue,
                Unit::Ago => {
                    ago = true;
                    // A number before it needs its own unit.
                    current = Some(Unit::Ago);
                }
                unit => current = Some(unit),
            },
        }
        if seen & new != 0 {
            return Err(Bad::Format);
        }
        seen |= new;
    }
    if seen == 0 {
        return Err(Bad::Format);
    }
    if ago {
        sums.negate()?;
    }
    Ok(sums)
}

fn interval_word(text: &str) -> Result<Unit, Bad> {
    if let Some(unit) = unit(text) {
        return Ok(unit);
    }
    match word(text) {
        Some(Word::Filler) => Ok(Unit::Filler),
        Some(Word::Label(Label::Minute)) => Ok(Unit::Minute),
        _ => Err(Bad::Format),
    }
}

/// `n`, `n.f`, or `years-months`, which changes the unit.
fn number_or_year_month(text: &str, unit: &mut Unit) -> Result<(i64, f64), Bad> {
    let (value, rest) = leading_i64(text).ok_or(Bad::Field)?;
    let negative = text.starts_with('-');
    if let Some(rest) = rest.strip_prefix('-') {
        let (months, rest) = leading_i32(rest).ok_or(Bad::Field)?;
        if !(0..12).contains(&months) {
            return Err(Bad::Field);
        }
        if !rest.is_empty() {
            return Err(Bad::Format);
        }
        *unit = Unit::Month;
        let months = i64::from(if negative { -months } else { months });
        let total = value.checked_mul(12).and_then(|m| m.checked_add(months)).ok_or(Bad::Field)?;
        return Ok((total, 0.0));
    }
    if rest.is_empty() {
        return Ok((value, 0.0));
    }
    // A sign before the point is not part of what strtol() read: `-.5`.
    let point = if rest.len() == text.len() { rest.trim_start_matches(['+', '-']) } else { rest };
    let fraction = leading_fraction(point)?;
    Ok((value, if negative { -fraction } else { fraction }))
}

/// A number of the ISO form, cut to its whole part and its fraction.
fn iso_number<'t>(text: &'t str, rest: &mut &'t str) -> Result<(i64, f64), Bad> {
    let b = text.as_bytes();
    let mut end = usize::from(b.first() == Some(&b'-'));
    let digits = |from: usize| from + b[from..].iter().take_while(|c| c.is_ascii_digit()).count();
    let start = end;
    end = digits(end);
    let mut any = end > start;
    if b.get(end) == Some(&b'.') {
        let after = digits(end + 1);
        any |= after > end + 1;
        end = after;
    }
    if !any {
        return Err(Bad::Format);
    }
    if matches!(b.get(end), Some(b'e' | b'E')) {
        let signed = end + 1 + usize::from(matches!(b.get(end + 1), Some(b'+' | b'-')));
        if signed <= b.len() && digits(signed) > signed {
            end = digits(signed);
        }
    }
    let value: f64 = text[..end].parse().map_err(|_| Bad::Format)?;
    if !(-1e15..=1e15).contains(&value) {
        return Err(Bad::Field);
    }
    *rest = &text[end..];
    Ok((value.trunc() as i64, value - value.trunc()))
}

/// Digits of the whole part of a number.
fn width(text: &str) -> usize {
    text.strip_prefix('-').unwrap_or(text).bytes().take_while(u8::is_ascii_digit).count()
}

/// `P1Y2M3DT4H5M6S`, `P0001-02-03T04:05:06`, `P00010203T040506`
fn decode_iso(text: &str) -> Result<Sums, Bad> {
    let mut rest = text.strip_prefix('P').filter(|r| !r.is_empty()).ok_or(Bad::Format)?;
    let mut sums = Sums::default();
    let (mut in_date, mut any) = (true, false);
    while !rest.is_empty() {
        if let Some(time) = rest.strip_prefix('T') {
            (rest, in_date, any) = (time, false, false);
            continue;
        }
        let start = rest;
        let (value, fraction) = iso_number(start, &mut rest)?;
        let designator = rest.as_bytes().first().copied().unwrap_or(0);
        if in_date {
            let unit = match designator {
                b'Y' => Unit::Year,
                b'M' => Unit::Month,
                b'W' => Unit::Week,
                b'D' => Unit::Day,
                b'T' | 0 if width(start) == 8 && !any => {
                    sums.years(value / 10_000, 0.0, 1)?;
                    sums.months(value / 100 % 100, 0.0)?;
                    sums.unit(Unit::Day, value % 100, fraction)?;
                    continue;
                }
                b'T' | b'-' | 0 if !any => {
                    sums.years(value, fraction, 1)?;
                    rest = extended(&mut sums, rest, b'-', &[Unit::Month, Unit::Day])?;
                    if !rest.is_empty() && !rest.starts_with('T') {
                        return Err(Bad::Format);
                    }
                    continue;
                }
                _ => return Err(Bad::Format),
            };
            sums.unit(unit, value, fraction)?;
        } else {
            let unit = match designator {
                b'H' => Unit::Hour,
                b'M' => Unit::Minute,
                b'S' => Unit::Second,
                0 if width(start) == 6 && !any => {
                    sums.micros(value / 10_000, 0.0, MICROS_PER_HOUR)?;
                    sums.micros(value / 100 % 100, 0.0, MICROS_PER_MINUTE)?;
                    sums.micros(value % 100, 0.0, MICROS_PER_SEC)?;
                    sums.fraction_micros(fraction, 1)?;
                    return Ok(sums);
                }
                b':' | 0 if !any => {
                    sums.micros(value, fraction, MICROS_PER_HOUR)?;
                    rest = extended(&mut sums, rest, b':', &[Unit::Minute, Unit::Second])?;
                    if !rest.is_empty() {
                        return Err(Bad::Format);
                    }
                    continue;
                }
                _ => return Err(Bad::Format),
            };
            sums.unit(unit, value, fraction)?;
        }
        rest = &rest[1..];
        any = true;
    }
    Ok(sums)
}

/// The further fields of the extended form, each after a separator.
fn extended<'t>(sums: &mut Sums, text: &'t str, separator: u8, units: &[Unit]) -> Result<&'t str, Bad> {
    let mut rest = text;
    for &unit in units {
        if rest.as_bytes().first() != Some(&separator) {
            break;
        }
        let (value, fraction) = iso_number(&rest[1..], &mut rest)?;
        sums.unit(unit, value, fraction)?;
    }
    Ok(rest)
}
