//! Binary wire forms read: what clients bind and COPY in.
//!
//! A value is read from the front of its bytes, so that what is wrong with it is found before what is left over.

use std::net::IpAddr;

use base::{Error, Oid, Result, SqlState};

use super::{AF_INET, AF_INET6, char_text};
use crate::encoding::utf8_text as utf8;
use crate::jsonpath::JsonPath;
use crate::numeric::Numeric;
use crate::snapshot::Snapshot;
use crate::{Datum, Inet, Interval, array, bits, json, oid, user};

/// The message of the error about bytes behind a value. Whoever knows which parameter it is says so.
pub const LEFT_OVER: &str = "incorrect binary data format";

/// Longest name in bytes.
const NAME_MAX: usize = 63;

/// Bytes that are read from the front.
pub(crate) struct Input<'a>(pub(crate) &'a [u8]);

impl<'a> Input<'a> {
    pub(crate) fn bytes(&mut self, len: usize) -> Result<&'a [u8]> {
        let short = || Error::new(SqlState::PROTOCOL_VIOLATION, "insufficient data left in message");
        let (head, tail) = self.0.split_at_checked(len).ok_or_else(short)?;
        self.0 = tail;
        Ok(head)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut out = [0; N];
        out.copy_from_slice(self.bytes(N)?);
        Ok(out)
    }

    fn byte(&mut self) -> Result<u8> {
        let (first, rest) =
            self.0.split_first().ok_or_else(|| Error::new(SqlState::PROTOCOL_VIOLATION, "no data left in message"))?;
        self.0 = rest;
        Ok(*first)
    }

    /// Bytes that are read one by one, which is what the error speaks of.
    fn each<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut out = [0; N];
        out.iter_mut().try_for_each(|byte| self.byte().map(|read| *byte = read))?;
        Ok(out)
    }

    /// Two bytes.
    pub(crate) fn short(&mut self) -> Result<u16> {
        Ok(u16::from_be_bytes(self.array()?))
    }

    /// Four bytes.
    pub(crate) fn word(&mut self) -> Result<i32> {
        Ok(i32::from_be_bytes(self.array()?))
    }

    pub(crate) fn long(&mut self) -> Result<i64> {
        Ok(i64::from_be_bytes(self.array()?))
    }

    fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }

    /// Family, prefix, whether it is a network, length of the address, address.
    fn inet(&mut self, is_network: bool) -> Result<Inet> {
        let name = if is_network { "cidr" } else { "inet" };
        let invalid = |message| Error::new(SqlState::INVALID_BINARY_REPRESENTATION, message);
        let wrong = |what: &str| invalid(format!("invalid {what} in external \"{name}\" value"));
        let bytes = match self.byte()? {
            AF_INET => 4,
            AF_INET6 => 16,
            _ => return Err(wrong("address family")),
        };
        let prefix = self.byte()?;
        if prefix > bytes * 8 {
            return Err(wrong("bits"));
        }
        // What it says of itself counts as little as with PostgreSQL.
        self.byte()?;
        if self.byte()? != bytes {
            return Err(wrong("length"));
        }
        let address = match bytes {
            4 => IpAddr::from(self.each::<4>()?),
            _ => IpAddr::from(self.each::<16>()?),
        };
        let value = Inet::new(address, prefix, is_network).ok_or_else(|| wrong("bits"))?;
        if is_network && value != value.network() {
            let error = invalid("invalid external \"cidr\" value".to_string());
            return Err(error.detail("Value has bits set to right of mask."));
        }
        Ok(value)
    }

    /// Text behind a version.
    fn versioned(&mut self, ty: &str) -> Result<&'a str> {
        match self.bytes(1)? {
            [1] => utf8(self.rest()),
            other => Err(Error::internal(format!(
                "unsupported {ty} version number{} {}",
                if ty == "jsonpath" { ":" } else { "" },
                other[0]
            ))),
        }
    }
}

/// Reads the binary wire form of a type.
///
/// # Errors
/// 08P01 and 22P03 for bytes of the wrong length or content, 22021 for text that is not UTF-8.
pub fn read_binary(ty: Oid, typmod: i32, bytes: &[u8]) -> Result<Datum> {
    let mut input = Input(bytes);
    let value = take(ty, typmod, &mut input)?;
    match input.0 {
        [] => Ok(value),
        _ => Err(Error::new(SqlState::INVALID_BINARY_REPRESENTATION, LEFT_OVER)),
    }
}

/// Reads a value from the front of bytes; texts take all of them.
pub(crate) fn take(ty: Oid, typmod: i32, input: &mut Input<'_>) -> Result<Datum> {
    Ok(match ty {
        oid::BOOL => Datum::Bool(input.byte()? != 0),
        oid::INT2 => Datum::Int2(input.short()? as i16),
        oid::INT4 => Datum::Int4(input.word()?),
        oid::INT8 => Datum::Int8(input.long()?),
        ty if oid::is_oid_like(ty) => Datum::Oid(input.word()? as u32),
        oid::TID => {
            let block = input.word()? as u32;
            super::counted::tid(block, input.short()?)
        }
        oid::XID8 => super::counted::xid8(input.long()? as u64),
        oid::FLOAT4 => Datum::Float4(f32::from_be_bytes(input.array()?)),
        oid::FLOAT8 => Datum::Float8(f64::from_be_bytes(input.array()?)),
        oid::NUMERIC => Datum::Numeric(Numeric::read_binary(input)?),
        oid::BYTEA => Datum::from(input.rest()),
        oid::UUID => Datum::Uuid(input.array()?),
        oid::INET | oid::CIDR => Datum::Inet(input.inet(ty == oid::CIDR)?),
        oid::MACADDR => Datum::Mac(input.each()?),
        oid::MACADDR8 => Datum::Mac8(match input.0.len() {
            6 => {
                let [a, b, c, d, e, f] = input.each()?;
                [a, b, c, 0xff, 0xfe, d, e, f]
            }
            _ => input.each()?,
        }),
        oid::BIT | oid::VARBIT => {
            let len = usize::try_from(input.word()?).ok().filter(|len| *len <= bits::BITS_MAX);
            let invalid =
                || Error::new(SqlState::INVALID_BINARY_REPRESENTATION, "invalid length in external bit string");
            let len = len.ok_or_else(invalid)?;
            Datum::Bits(bits::from_bytes(input.bytes(len.div_ceil(8))?, len))
        }
        oid::DATE => Datum::Date(in_range(input.word()?, -2_451_545..2_145_031_949, i32::MIN, i32::MAX, "date")?),
        oid::TIME => Datum::Time(time_of_day(input.long()?)?),
        oid::TIMESTAMP => Datum::Timestamp(instant(input.long()?)?),
        oid::TIMESTAMPTZ => Datum::TimestampTz(instant(input.long()?)?),
        oid::TIMETZ => {
            let micros = time_of_day(input.long()?)?;
            let west = input.word()?;
            if west.abs_diff(0) >= 16 * 3600 {
                let message = "time zone displacement out of range";
                return Err(Error::new(SqlState::INVALID_TIME_ZONE_DISPLACEMENT_VALUE, message));
            }
            Datum::TimeTz(micros, west)
        }
        oid::INTERVAL => {
            Datum::Interval(Interval { micros: input.long()?, days: input.word()?, months: input.word()? })
        }
        oid::CHAR => char_text(input.byte()?),
        oid::NAME => {
            let text = utf8(input.rest())?;
            if text.len() > NAME_MAX {
                return Err(Error::new(SqlState::NAME_TOO_LONG, "identifier too long")
                    .detail(format!("Identifier must be less than {} characters.", NAME_MAX + 1)));
            }
            Datum::from(text)
        }
        ty if oid::element_of(ty).is_some() => array::read_binary(ty, typmod, input)?,
        oid::RECORD => return Err(Error::unsupported("input of anonymous composite types is not implemented")),
        oid::JSON => {
            let text = utf8(input.rest())?;
            json::validate(text)?;
            Datum::from(text)
        }
        oid::JSONB => Datum::from(json::normal_form(input.versioned("jsonb")?)?),
        oid::JSONPATH => Datum::from(JsonPath::parse(input.versioned("jsonpath")?)?.to_string()),
        oid::PG_SNAPSHOT | oid::TXID_SNAPSHOT => Datum::from(Snapshot::read_binary(input)?.text()?),
        ty if user::is_enum(ty) => user::parse_label(ty, utf8(input.rest())?)?,
        ty if user::is_domain(ty) => {
            let (base, typmod) = user::base_type(ty, typmod);
            crate::apply_typmod(take(base, typmod, input)?, base, typmod, false)?
        }
        _ => Datum::from(utf8(input.rest())?),
    })
}

/// A date or an instant from a client: within the calendar, or infinite.
fn in_range<T: PartialOrd + Copy>(v: T, calendar: std::ops::Range<T>, before: T, after: T, ty: &str) -> Result<T> {
    if calendar.contains(&v) || v == before || v == after {
        return Ok(v);
    }
    Err(Error::new(SqlState::DATETIME_FIELD_OVERFLOW, format!("{ty} out of range")))
}

fn instant(micros: i64) -> Result<i64> {
    let calendar = -211_813_488_000_000_000..9_223_371_331_200_000_000;
    in_range(micros, calendar, i64::MIN, i64::MAX, "timestamp")
}

fn time_of_day(micros: i64) -> Result<i64> {
    // 24:00 is a time too.
    in_range(micros, 0..86_400_000_001, 0, 0, "time")
}
