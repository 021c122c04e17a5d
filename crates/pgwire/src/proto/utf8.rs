//! Text of a client, checked as PostgreSQL checks it.

use base::{Error, Result, SqlState};

/// The bytes as text, or `22021` naming the first bytes that are not UTF-8.
pub fn text(bytes: &[u8]) -> Result<&str> {
    std::str::from_utf8(bytes).map_err(|e| invalid(&bytes[e.valid_up_to()..]))
}

/// PostgreSQL shows as many bytes as the first one announces, whether or not they belong to the character.
#[cold]
fn invalid(rest: &[u8]) -> Error {
    let announced = match rest.first() {
        Some(b) if b & 0xe0 == 0xc0 => 2,
        Some(b) if b & 0xf0 == 0xe0 => 3,
        Some(b) if b & 0xf8 == 0xf0 => 4,
        _ => 1,
    };
    let shown: Vec<String> = rest.iter().take(announced).map(|b| format!("0x{b:02x}")).collect();
    Error::new(
        SqlState::CHARACTER_NOT_IN_REPERTOIRE,
        format!("invalid byte sequence for encoding \"UTF8\": {}", shown.join(" ")),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_bytes_are_shown_as_postgresql_shows_them() {
        let message = |b: &[u8]| text(b).unwrap_err().fields().message.clone();
        assert_eq!(message(b"ok\xffx"), "invalid byte sequence for encoding \"UTF8\": 0xff");
        assert_eq!(message(b"\xe2\x28\xa1"), "invalid byte sequence for encoding \"UTF8\": 0xe2 0x28 0xa1");
        assert_eq!(message(b"\xc3"), "invalid byte sequence for encoding \"UTF8\": 0xc3");
        assert_eq!(text("gr\u{fc}n".as_bytes()).unwrap(), "gr\u{fc}n");
    }
}
