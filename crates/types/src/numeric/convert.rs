//! NUMERIC to and from other types, and its type modifier.

use base::{Error, Result, SqlState};
use num_traits::ToPrimitive;

use super::{Numeric, Repr};

impl Numeric {
    /// Rounds to a `numeric(precision, scale)` modifier.
    ///
    /// # Errors
    /// 22003 `numeric field overflow`.
    pub fn apply_typmod(&self, precision: i32, scale: i32) -> Result<Numeric> {
        let field_overflow =
            |detail: String| Error::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "numeric field overflow").detail(detail);
        if self.is_nan() {
            return Ok(Numeric::NAN);
        }
        if !self.is_finite() {
            return Err(field_overflow(format!(
                "A field with precision {precision}, scale {scale} cannot hold an infinite value."
            )));
        }
        let rounded = self.round(scale);
        let room = precision - scale;
        let fits = rounded.exponent().is_none_or(|e| e < room as i64);
        if fits {
            return Ok(rounded);
        }
        let bound = if room == 0 { "1".to_string() } else { format!("10^{room}") };
        Err(field_overflow(format!(
            "A field with precision {precision}, scale {scale} must round to an absolute value less than {bound}."
        )))
    }

    /// To a whole number, rounded.
    fn to_integer(&self, ty: &str) -> Result<i128> {
        let out_of_range = || Error::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, format!("{ty} out of range"));
        match self.0 {
            Repr::NaN => Err(Error::unsupported(format!("cannot convert NaN to {ty}"))),
            Repr::Infinity | Repr::NegInfinity => Err(Error::unsupported(format!("cannot convert infinity to {ty}"))),
            Repr::Small(m, 0) => Ok(m as i128),
            _ => self.round(0).parts().and_then(|(m, _)| m.to_i128()).ok_or_else(out_of_range),
        }
    }

    /// To `smallint`, rounded.
    ///
    /// # Errors
    /// 22003
    pub fn to_i16(&self) -> Result<i16> {
        i16::try_from(self.to_integer("smallint")?)
            .map_err(|_| Error::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "smallint out of range"))
    }

    /// To `integer`, rounded.
    ///
    /// # Errors
    /// 22003
    pub fn to_i32(&self) -> Result<i32> {
        i32::try_from(self.to_integer("integer")?)
            .map_err(|_| Error::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "integer out of range"))
    }

    /// To `bigint`, rounded.
    ///
    /// # Errors
    /// 22003
    pub fn to_i64(&self) -> Result<i64> {
        i64::try_from(self.to_integer("bigint")?)
            .map_err(|_| Error::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "bigint out of range"))
    }

    /// To the nearest `double precision`; infinite if it is too large.
    pub fn to_f64(&self) -> f64 {
        match self.0 {
            Repr::NaN => f64::NAN,
            Repr::Infinity => f64::INFINITY,
            Repr::NegInfinity => f64::NEG_INFINITY,
            // Both operands are exact, so the quotient is rounded once.
            Repr::Small(m, s) if m.unsigned_abs() <= 1 << 53 && s <= 22 => m as f64 / 10f64.powi(s as i32),
            _ => self.to_string().parse().unwrap_or(f64::NAN),
        }
    }

    /// To `double precision`, as a cast does it.
    ///
    /// # Errors
    /// 22003 if it is too large, or too small to be told from 0.
    pub fn to_float8(&self) -> Result<f64> {
        let value = self.to_f64();
        if self.is_finite() && (value.is_infinite() || (value == 0.0 && !self.is_zero())) {
            return Err(self.float_range("double precision"));
        }
        Ok(value)
    }

    /// To `real`, as a cast does it.
    ///
    /// # Errors
    /// 22003 if it is too large, or too small to be told from 0.
    pub fn to_float4(&self) -> Result<f32> {
        if !self.is_finite() {
            return Ok(self.to_f64() as f32);
        }
        // Through the text: rounding to 64 bits first would round twice.
        let value: f32 = self.to_string().parse().unwrap_or(f32::NAN);
        if value.is_infinite() || (value == 0.0 && !self.is_zero()) {
            return Err(self.float_range("real"));
        }
        Ok(value)
    }

    fn float_range(&self, ty: &str) -> Error {
        Error::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, format!("\"{self}\" is out of range for type {ty}"))
    }

    /// From `double precision`: 15 significant digits, as PostgreSQL does.
    pub fn from_f64(value: f64) -> Numeric {
        Numeric::from_float(value, 15)
    }

    /// From `real`: 6 significant digits, as PostgreSQL does.
    pub fn from_f32(value: f32) -> Numeric {
        Numeric::from_float(value as f64, 6)
    }

    fn from_float(value: f64, digits: usize) -> Numeric {
        if value.is_nan() {
            return Numeric::NAN;
        }
        if value.is_infinite() {
            return if value > 0.0 { Numeric::INFINITY } else { Numeric::NEG_INFINITY };
        }
        let text = format!("{value:.*e}", digits - 1);
        let parsed = Numeric::parse(&text).unwrap_or(Numeric::NAN);
        // `%.15g` shows no trailing zeros.
        parsed.trim_scale()
    }
}
