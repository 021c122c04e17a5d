//! Messages of the server, appended to a buffer.

use base::{Error, Oid, Result, SqlState, work};
use types::encoding::Conversion;

use super::Format;

/// Longest message PostgreSQL sends or reads.
const MAX_MESSAGE: usize = 0x3fff_ffff;

/// One column of RowDescription.
#[derive(Clone, Copy, Debug)]
pub struct Column<'a> {
    /// Name.
    pub name: &'a str,
    /// Table it comes straight from, or [`Oid::INVALID`].
    pub table: Oid,
    /// Its number in that table, or 0.
    pub attribute: i16,
    /// Data type.
    pub type_oid: Oid,
    /// `pg_type.typlen`: negative for variable width.
    pub type_len: i16,
    /// Type modifier, or -1.
    pub type_mod: i32,
    /// Format its values will have.
    pub format: Format,
}

impl Format {
    /// The code on the wire.
    pub fn code(self) -> i16 {
        self as i16
    }
}

/// Appends one message whose body `fill` writes. Nothing is appended if it fails, or if the message is too long.
#[inline]
pub fn message<T>(buf: &mut Vec<u8>, tag: u8, fill: impl FnOnce(&mut Vec<u8>) -> Result<T>) -> Result<T> {
    let start = buf.len();
    buf.extend_from_slice(&[tag, 0, 0, 0, 0]);
    let result = fill(buf);
    let length = buf.len() - start - 1;
    if result.is_err() || length > MAX_MESSAGE {
        buf.truncate(start);
        result?;
        return Err(too_long());
    }
    buf[start + 1..start + 5].copy_from_slice(&(length as u32).to_be_bytes());
    result
}

#[cold]
fn too_long() -> Error {
    Error::new(SqlState::PROGRAM_LIMIT_EXCEEDED, "out of memory").detail("A message to the client is longer than 1 GB.")
}

/// Appends a string and its zero byte; a zero byte inside would end it early, so it is cut there.
pub fn cstr(buf: &mut Vec<u8>, text: &str) {
    let end = super::zero(text.as_bytes()).unwrap_or(text.len());
    work::append_unstopped(buf, &text.as_bytes()[..end]);
    buf.push(0);
}

/// A message without a body.
pub fn empty(buf: &mut Vec<u8>, tag: u8) {
    buf.extend_from_slice(&[tag, 0, 0, 0, 4]);
}

/// A message that always fits, written without a result.
fn short(buf: &mut Vec<u8>, tag: u8, fill: impl FnOnce(&mut Vec<u8>)) {
    // Only texts of the server's own go through here; none comes near the limit.
    let _ = message(buf, tag, |buf| {
        fill(buf);
        Ok(())
    });
}

/// Authentication request `code`, with its data.
pub fn authentication(buf: &mut Vec<u8>, code: i32, data: &[u8]) {
    short(buf, b'R', |buf| {
        buf.extend_from_slice(&code.to_be_bytes());
        buf.extend_from_slice(data);
    });
}

/// ParameterStatus.
pub fn parameter_status(buf: &mut Vec<u8>, name: &str, value: &str) {
    short(buf, b'S', |buf| {
        cstr(buf, name);
        cstr(buf, value);
    });
}

/// BackendKeyData.
pub fn backend_key_data(buf: &mut Vec<u8>, pid: i32, secret: i32) {
    short(buf, b'K', |buf| {
        buf.extend_from_slice(&pid.to_be_bytes());
        buf.extend_from_slice(&secret.to_be_bytes());
    });
}

/// NegotiateProtocolVersion: what the server speaks, and the options it does not know.
pub fn negotiate_protocol_version(buf: &mut Vec<u8>, unknown: &[String]) {
    short(buf, b'v', |buf| {
        buf.extend_from_slice(&(3u32 << 16).to_be_bytes());
        buf.extend_from_slice(&(unknown.len() as u32).to_be_bytes());
        unknown.iter().for_each(|name| cstr(buf, name));
    });
}

/// ReadyForQuery.
pub fn ready_for_query(buf: &mut Vec<u8>, status: u8) {
    buf.extend_from_slice(&[b'Z', 0, 0, 0, 5, status]);
}

/// CommandComplete with a finished tag.
pub fn command_complete(buf: &mut Vec<u8>, tag: &str) {
    short(buf, b'C', |buf| cstr(buf, tag));
}

/// CommandComplete of a verb and a row count (`UPDATE 3`).
pub fn command_complete_rows(buf: &mut Vec<u8>, verb: &str, rows: u64) {
    // Most statements are about a row, and their tags are put together in registers.
    let mut bytes = [0; 24];
    if let (0..10, Some(word)) = (rows, bytes.get_mut(5..5 + verb.len()).filter(|word| word.len() <= 8)) {
        word.copy_from_slice(verb.as_bytes());
        let len = 5 + verb.len() + 3;
        bytes[0] = b'C';
        bytes[1..5].copy_from_slice(&(len as u32 - 1).to_be_bytes());
        bytes[len - 3] = b' ';
        bytes[len - 2] = b'0' + rows as u8;
        return buf.extend_from_slice(&bytes[..len]);
    }
    short(buf, b'C', |buf| {
        buf.extend_from_slice(verb.as_bytes());
        buf.push(b' ');
        // No statement touches 2^63 rows.
        types::io::write_int(rows as i64, buf);
        buf.push(0);
    });
}

/// RowDescription.
pub fn row_description<'a>(buf: &mut Vec<u8>, columns: impl ExactSizeIterator<Item = Column<'a>>) -> Result<()> {
    row_description_named(buf, columns.map(|column| (column.name.as_bytes(), column)))
}

/// RowDescription with names in the client's encoding, which stand in for those of the columns.
pub fn row_description_named<'a>(
    buf: &mut Vec<u8>,
    columns: impl ExactSizeIterator<Item = (&'a [u8], Column<'a>)>,
) -> Result<()> {
    message(buf, b'T', |buf| {
        buf.extend_from_slice(&(columns.len() as u16).to_be_bytes());
        for (name, column) in columns {
            buf.extend_from_slice(name.split(|b| *b == 0).next().unwrap_or_default());
            buf.push(0);
            buf.extend_from_slice(&column.table.0.to_be_bytes());
            buf.extend_from_slice(&column.attribute.to_be_bytes());
            buf.extend_from_slice(&column.type_oid.0.to_be_bytes());
            buf.extend_from_slice(&column.type_len.to_be_bytes());
            buf.extend_from_slice(&column.type_mod.to_be_bytes());
            buf.extend_from_slice(&column.format.code().to_be_bytes());
        }
        Ok(())
    })
}

/// ParameterDescription.
pub fn parameter_description(buf: &mut Vec<u8>, types: impl ExactSizeIterator<Item = Oid>) {
    short(buf, b't', |buf| {
        buf.extend_from_slice(&(types.len() as u16).to_be_bytes());
        types.for_each(|oid| buf.extend_from_slice(&oid.0.to_be_bytes()));
    });
}

/// CopyInResponse (`G`), CopyOutResponse (`H`): the overall format, repeated for each column.
pub fn copy_response(buf: &mut Vec<u8>, tag: u8, format: Format, columns: usize) {
    short(buf, tag, |buf| {
        buf.push(format as u8);
        buf.extend_from_slice(&(columns as u16).to_be_bytes());
        (0..columns).for_each(|_| buf.extend_from_slice(&format.code().to_be_bytes()));
    });
}

/// NotificationResponse.
pub fn notification(buf: &mut Vec<u8>, pid: i32, channel: &str, payload: &str) {
    short(buf, b'A', |buf| {
        buf.extend_from_slice(&pid.to_be_bytes());
        cstr(buf, channel);
        cstr(buf, payload);
    });
}

/// Bytes of the other fields, roughly.
const REST: usize = 512;

/// ErrorResponse (`E`) or NoticeResponse (`N`), fields in the order PostgreSQL sends them.
pub fn report(buf: &mut Vec<u8>, tag: u8, error: &Error) {
    let fields = error.fields();
    // A text that may be long is not moved again for what stands behind it.
    let long = [&fields.detail, &fields.hint, &fields.context].into_iter().flatten().map(String::len).sum::<usize>();
    buf.reserve(fields.message.len() + long + REST);
    short(buf, tag, |buf| {
        let mut put = |code: u8, text: &str| {
            buf.push(code);
            cstr(buf, text);
        };
        put(b'S', fields.severity.as_str());
        put(b'V', fields.severity.as_str());
        put(b'C', fields.code.as_str());
        put(b'M', &fields.message);
        let optional = [
            (b'D', &fields.detail),
            (b'H', &fields.hint),
            (b'W', &fields.context),
            (b's', &fields.schema),
            (b't', &fields.table),
            (b'c', &fields.column),
            (b'd', &fields.data_type),
            (b'n', &fields.constraint),
        ];
        for (code, text) in optional {
            text.iter().for_each(|text| put(code, text));
        }
        if let Some(position) = fields.position {
            put(b'P', &position.to_string());
        }
        if let Some((position, query)) = &fields.internal {
            put(b'p', &position.to_string());
            put(b'q', query);
        }
        if let Some(routine) = fields.routine {
            put(b'R', routine);
        }
        buf.push(0);
    });
}

/// Whether the client's encoding has all that an error says.
pub fn check_report(error: &Error, conversion: &Conversion) -> Result<()> {
    let fields = error.fields();
    let texts = [&fields.detail, &fields.hint, &fields.context, &fields.table, &fields.column, &fields.constraint];
    let mut texts = texts.into_iter().flatten().map(|text| &**text).chain([&*fields.message]);
    texts.try_for_each(|text| if text.is_ascii() { Ok(()) } else { conversion.encoded(text).map(drop) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let mut buf = Vec::new();
        write(&mut buf);
        buf
    }

    #[test]
    fn fixed_messages() {
        assert_eq!(bytes(|b| ready_for_query(b, b'I')), b"Z\0\0\0\x05I");
        assert_eq!(bytes(|b| empty(b, b'1')), b"1\0\0\0\x04");
        assert_eq!(bytes(|b| backend_key_data(b, 7, -1)), b"K\0\0\0\x0c\0\0\0\x07\xff\xff\xff\xff");
        assert_eq!(bytes(|b| authentication(b, 0, b"")), b"R\0\0\0\x08\0\0\0\0");
        assert_eq!(bytes(|b| copy_response(b, b'G', Format::Text, 2)), b"G\0\0\0\x0b\0\0\x02\0\0\0\0");
        assert_eq!(
            bytes(|b| negotiate_protocol_version(b, &["_pq_.x".into()])),
            b"v\0\0\0\x13\0\x03\0\0\0\0\0\x01_pq_.x\0"
        );
    }

    #[test]
    fn command_tags() {
        assert_eq!(bytes(|b| command_complete(b, "BEGIN")), b"C\0\0\0\x0aBEGIN\0");
        assert_eq!(bytes(|b| command_complete_rows(b, "INSERT 0", 0)), b"C\0\0\0\x0fINSERT 0 0\0");
        assert_eq!(bytes(|b| command_complete_rows(b, "SELECT", 1204)), b"C\0\0\0\x10SELECT 1204\0");
    }

    #[test]
    fn row_descriptions() {
        let column = Column {
            name: "a",
            table: Oid(16384),
            attribute: 1,
            type_oid: Oid(23),
            type_len: 4,
            type_mod: -1,
            format: Format::Binary,
        };
        let expected = b"T\0\0\0\x1a\0\x01a\0\0\0\x40\0\0\x01\0\0\0\x17\0\x04\xff\xff\xff\xff\0\x01";
        assert_eq!(bytes(|b| row_description(b, [column].into_iter()).unwrap()), expected);
    }

    #[test]
    fn errors_have_their_fields_in_order() {
        let error = Error::new(SqlState::UNIQUE_VIOLATION, "dup").detail("d\0lost").constraint("k").at_character(3);
        let expected = b"E\0\0\0\x28SERROR\0VERROR\0C23505\0Mdup\0Dd\0nk\0P3\0\0";
        assert_eq!(bytes(|b| report(b, b'E', &error)), expected);
    }

    #[test]
    fn a_failed_message_leaves_nothing() {
        let mut buf = b"before".to_vec();
        let failed = message(&mut buf, b'D', |buf| {
            buf.extend_from_slice(b"half a row");
            Err::<(), _>(Error::unsupported("x"))
        });
        assert!(failed.is_err());
        assert_eq!(buf, b"before");
    }
}
