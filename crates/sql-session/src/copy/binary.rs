//! COPY's binary format: a header, tuples of length-prefixed fields, a trailer.

use base::{Error, Result, SqlState};
use smallvec::SmallVec;
use sql_exec::OutputRow;
use sql_ir::Ty;
use types::encoding::{Conversion, recode_binary, utf8};
use types::{Datum, DatumRef};

use crate::ResultColumn;
use crate::extended::read_binary_in;

const SIGNATURE: &[u8; 11] = b"PGCOPY\n\xff\r\n\0";

/// The flags that must be understood; none of them is.
const CRITICAL_FLAGS: u32 = 0xffff_0000;

/// What a piece of the stream begins with.
pub(super) enum Tuple<'a> {
    /// A row.
    Row {
        /// Its fields; `None` is NULL.
        fields: SmallVec<[Option<&'a [u8]>; 8]>,
        /// The bytes it takes.
        used: usize,
    },
    /// The trailer.
    End,
    /// Less than a whole tuple.
    Incomplete,
}

fn bad(message: impl Into<String>) -> Error {
    Error::new(SqlState::BAD_COPY_FILE_FORMAT, message)
}

/// The stream is something else.
pub(super) fn not_recognized() -> Error {
    bad("COPY file signature not recognized")
}

fn int(data: &[u8], at: usize) -> Option<i32> {
    Some(i32::from_be_bytes(data.get(at..at + 4)?.try_into().ok()?))
}

/// Reads the header. Answers the bytes it takes, `None` if it is not all there.
pub(super) fn header(data: &[u8]) -> Result<Option<usize>> {
    let known = data.len().min(SIGNATURE.len());
    if data[..known] != SIGNATURE[..known] {
        return Err(not_recognized());
    }
    let at = SIGNATURE.len();
    let (Some(flags), Some(extension)) = (int(data, at), int(data, at + 4)) else { return Ok(None) };
    if flags as u32 & CRITICAL_FLAGS != 0 {
        return Err(bad("unrecognized critical flags in COPY file header"));
    }
    let Ok(extension) = usize::try_from(extension) else {
        return Err(bad("invalid COPY file header (missing length)"));
    };
    let end = at + 8 + extension;
    Ok((data.len() >= end).then_some(end))
}

/// Reads what `data` begins with; a row has as many fields as there are `columns`.
pub(super) fn tuple(data: &[u8], columns: usize) -> Result<Tuple<'_>> {
    let Some(count) = data.get(..2) else { return Ok(Tuple::Incomplete) };
    let count = i16::from_be_bytes([count[0], count[1]]);
    if count == -1 {
        return Ok(Tuple::End);
    }
    if usize::try_from(count) != Ok(columns) {
        return Err(bad(format!("row field count is {count}, expected {columns}")));
    }
    let mut fields = SmallVec::new();
    let mut at = 2;
    for _ in 0..columns {
        let Some(length) = int(data, at) else { return Ok(Tuple::Incomplete) };
        at += 4;
        match usize::try_from(length) {
            Ok(length) => {
                let Some(bytes) = at.checked_add(length).and_then(|end| data.get(at..end)) else {
                    return Ok(Tuple::Incomplete);
                };
                fields.push(Some(bytes));
                at += length;
            }
            Err(_) if length == -1 => fields.push(None),
            Err(_) => return Err(bad("invalid field size")),
        }
    }
    Ok(Tuple::Row { fields, used: at })
}

/// A field's value.
pub(super) fn value(ty: Ty, bytes: &[u8], client: Option<&Conversion>) -> Result<Datum> {
    let value = match client {
        None => types::read_binary(ty.oid, ty.typmod, bytes)?,
        Some(client) => read_binary_in(client, ty.oid, bytes)?,
    };
    types::apply_typmod(value, ty.oid, ty.typmod, false)
}

pub(super) fn write_header(out: &mut Vec<u8>) {
    out.extend_from_slice(SIGNATURE);
    out.extend_from_slice(&[0; 8]);
}

pub(super) fn write_trailer(out: &mut Vec<u8>) {
    out.extend_from_slice(&(-1i16).to_be_bytes());
}

pub(super) fn write_tuple(
    row: OutputRow<'_>,
    columns: &[ResultColumn],
    client: Option<&Conversion>,
    out: &mut Vec<u8>,
) -> Result<()> {
    out.extend_from_slice(&(columns.len() as i16).to_be_bytes());
    for (value, column) in row.iter().zip(columns) {
        if matches!(value, DatumRef::Null) {
            out.extend_from_slice(&(-1i32).to_be_bytes());
            continue;
        }
        let length = out.len();
        out.extend_from_slice(&[0; 4]);
        types::write_binary(value, column.ty.oid, out)?;
        if let Some(client) = client {
            let value = out.split_off(length + 4);
            let convert = |text: &[u8]| client.encoded(utf8(text)?);
            out.extend_from_slice(&recode_binary(column.ty.oid, &value, &convert)?.unwrap_or(value));
        }
        let bytes = (out.len() - length - 4) as i32;
        out[length..length + 4].copy_from_slice(&bytes.to_be_bytes());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tuples_come_whole_or_not_at_all() {
        let data = [0, 2, 0, 0, 0, 1, 7, 255, 255, 255, 255];
        for cut in 0..data.len() {
            assert!(matches!(tuple(&data[..cut], 2), Ok(Tuple::Incomplete)), "{cut} bytes");
        }
        let Ok(Tuple::Row { fields, used }) = tuple(&data, 2) else { panic!("a row") };
        assert_eq!((&fields[..], used), (&[Some(&[7u8][..]), None][..], data.len()));
        assert!(matches!(tuple(&[255, 255], 2), Ok(Tuple::End)));
        assert!(tuple(&[0, 3], 2).is_err());
    }

    #[test]
    fn a_header_is_known_by_its_signature() {
        let mut stream = Vec::new();
        write_header(&mut stream);
        assert_eq!(header(&stream).unwrap(), Some(19));
        assert_eq!(header(&stream[..15]).unwrap(), None);
        assert!(header(b"1\t2\n").is_err());
    }
}
