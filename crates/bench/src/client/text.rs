//! Numbers as servers write and read them.

/// Reads an integer.
pub fn parse_int(text: &[u8]) -> Option<i64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// Appends an integer in decimal.
pub fn push_int(out: &mut Vec<u8>, value: i64) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// Appends hundredths as a decimal number with two digits.
pub fn push_cents(out: &mut Vec<u8>, cents: i64) {
    if cents < 0 {
        out.push(b'-');
    }
    let cents = cents.unsigned_abs();
    push_int(out, (cents / 100) as i64);
    out.extend_from_slice(&[b'.', b'0' + (cents / 10 % 10) as u8, b'0' + (cents % 10) as u8]);
}

/// Reads a decimal number as hundredths, exactly; more digits than two after the point are cut.
pub fn parse_cents(text: &[u8]) -> Option<i64> {
    let (negative, text) = match text.strip_prefix(b"-") {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let mut parts = text.splitn(2, |&b| b == b'.');
    let whole = parse_int(parts.next()?)?;
    let fraction = parts.next().unwrap_or_default();
    let digit = |at: usize| fraction.get(at).map_or(0, |b| i64::from(b.wrapping_sub(b'0')));
    let cents = whole.checked_mul(100)? + digit(0) * 10 + digit(1);
    Some(if negative { -cents } else { cents })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(push: fn(&mut Vec<u8>, i64), value: i64) -> String {
        let mut out = Vec::new();
        push(&mut out, value);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn numbers_are_written_as_text() {
        for value in [0, 7, -7, 10, 1234567890123, i64::MIN, i64::MAX] {
            assert_eq!(text(push_int, value), value.to_string());
        }
        for (cents, expected) in [(0, "0.00"), (5, "0.05"), (-5, "-0.05"), (123456, "1234.56"), (-1000, "-10.00")] {
            assert_eq!(text(push_cents, cents), expected);
            assert_eq!(parse_cents(expected.as_bytes()), Some(cents));
        }
        assert_eq!(parse_cents(b"17"), Some(1700));
        assert_eq!(parse_cents(b"0.1234"), Some(12));
        assert_eq!(parse_cents(b""), None);
    }
}
