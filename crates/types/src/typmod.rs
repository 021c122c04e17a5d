//! Applying a type's modifier: the length of strings, precision and scale of numbers, precision of times.

use base::work::Count;
use base::{Error, Oid, Result, SqlState};

use crate::oid::{self, numeric_typmod};
use crate::{Array, Datum, bits};

/// Blanks that a value may be padded to: PostgreSQL's limit of a declared length. Called as a function, `bpchar` is
/// given any number.
const LENGTH_MAX: usize = 10_485_760;

/// Whether a text is a value of this type as it is, without a look at its characters: so few bytes are no more characters.
#[inline]
pub fn fits_as_it_is(ty: Oid, typmod: i32, text: &str) -> bool {
    matches!(ty, oid::TEXT | oid::VARCHAR) && (typmod < 0 || text.len() as i64 <= i64::from(typmod) - 4)
}

/// Makes a value of type `ty` fit its modifier. An explicit cast cuts strings where an assignment refuses.
///
/// # Errors
/// 22001 for a string that is too long, 22003 for a number that is too large.
pub fn apply_typmod(value: Datum, ty: Oid, typmod: i32, explicit: bool) -> Result<Datum> {
    if typmod < 0 || value.is_null() {
        return Ok(value);
    }
    Ok(match (ty, value) {
        (oid::VARCHAR, Datum::Text(text)) => {
            let limit = (typmod - 4).max(0) as usize;
            match cut(&text, limit, ty, explicit)? {
                Some(cut) => Datum::from(cut),
                None => Datum::Text(text),
            }
        }
        (oid::BPCHAR, Datum::Text(text)) => {
            let limit = (typmod - 4).max(0) as usize;
            let length = text.chars().count();
            if length < limit {
                if limit > LENGTH_MAX {
                    let message = format!("invalid memory alloc request size {}", limit as u64 + 4);
                    return Err(Error::new(SqlState::INTERNAL_ERROR, message));
                }
                crate::room::for_value(text.len() + limit - length)?;
                let mut padded = String::with_capacity(text.len() + limit - length);
                padded.push_str(&text);
                padded.extend(std::iter::repeat_n(' ', limit - length));
                Datum::from(padded)
            } else {
                match cut(&text, limit, ty, explicit)? {
                    Some(cut) => Datum::from(cut),
                    None => Datum::Text(text),
                }
            }
        }
        (oid::BIT | oid::VARBIT, Datum::Bits(held)) => {
            Datum::Bits(bits::fit(held, typmod as usize, ty == oid::VARBIT, explicit)?)
        }
        (oid::NUMERIC, Datum::Numeric(number)) => {
            let (precision, scale) = numeric_typmod(typmod);
            Datum::Numeric(number.apply_typmod(precision, scale)?)
        }
        (oid::TIME, Datum::Time(micros)) => Datum::Time(round_micros(micros, typmod)),
        (oid::TIMETZ, Datum::TimeTz(micros, west)) => Datum::TimeTz(round_micros(micros, typmod), west),
        (oid::TIMESTAMP, Datum::Timestamp(micros)) => Datum::Timestamp(round_finite(micros, typmod)),
        (oid::TIMESTAMPTZ, Datum::TimestampTz(micros)) => Datum::TimestampTz(round_finite(micros, typmod)),
        (oid::INTERVAL, Datum::Interval(interval)) => {
            Datum::Interval(crate::datetime::limit_interval(interval, typmod))
        }
        (ty, Datum::Array(array)) => {
            let element = oid::element_of(ty).unwrap_or(array.element);
            crate::room::for_list(array.values.len(), size_of::<Datum>())?;
            let mut values = Vec::with_capacity(array.values.len());
            for value in array.values.iter().counted(8) {
                values.push(apply_typmod(value.clone(), element, typmod, explicit)?);
            }
            Datum::Array(std::sync::Arc::new(Array { element: array.element, dims: array.dims.clone(), values }))
        }
        (_, value) => value,
    })
}

/// The first `limit` characters if there are more; only blanks may be lost in an assignment.
fn cut(text: &str, limit: usize, ty: Oid, explicit: bool) -> Result<Option<&str>> {
    if text.len() <= limit {
        return Ok(None);
    }
    let Some((end, _)) = text.char_indices().nth(limit) else { return Ok(None) };
    if !explicit && text[end..].bytes().any(|b| b != b' ') {
        return Err(Error::new(
            SqlState::STRING_DATA_RIGHT_TRUNCATION,
            format!("value too long for type {}", oid::format_type(ty, limit as i32 + 4)),
        ));
    }
    Ok(Some(&text[..end]))
}

/// Rounds half away from zero to `precision` digits of a second.
pub(crate) fn round_micros(micros: i64, precision: i32) -> i64 {
    let unit = match precision {
        0..=5 => 10i64.pow(6 - precision as u32),
        _ => return micros,
    };
    let half = unit / 2;
    let shifted = if micros >= 0 { micros.saturating_add(half) } else { micros.saturating_sub(half) };
    shifted / unit * unit
}

fn round_finite(micros: i64, precision: i32) -> i64 {
    if micros == i64::MIN || micros == i64::MAX { micros } else { round_micros(micros, precision) }
}
