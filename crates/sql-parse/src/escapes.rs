//! Escapes in strings that a later release reads otherwise: `\v` in E'…' is a `v`.

use std::borrow::Cow;

/// The text as release 15 reads it. Every token begins where it did: a backslash that goes is made up for by a space behind
/// its string.
pub(super) fn as_release_15(sql: &str) -> Cow<'_, str> {
    if !sql.contains("\\v") {
        return Cow::Borrowed(sql);
    }
    let bytes = sql.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let rest = &sql[at..];
        let is_word = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'$' || b >= 0x80;
        let begins_word = at == 0 || !is_word(bytes[at - 1]);
        let length = match byte {
            b'e' | b'E' if begins_word && bytes.get(at + 1) == Some(&b'\'') => {
                at += escaped_string(&bytes[at..], &mut out);
                continue;
            }
            b'\'' | b'"' => rest[1..].find(char::from(byte)).map_or(rest.len(), |end| end + 2),
            b'-' if rest.starts_with("--") => rest.find('\n').unwrap_or(rest.len()),
            b'/' if rest.starts_with("/*") => comment(bytes, at),
            b'$' if begins_word => dollar_quoted(rest),
            _ => rest.chars().next().map_or(1, char::len_utf8),
        };
        out.extend_from_slice(&bytes[at..at + length]);
        at += length;
    }
    // Only ASCII bytes have been moved.
    String::from_utf8(out).map_or(Cow::Borrowed(sql), Cow::Owned)
}

/// Copies the string at the start of `bytes`; its length.
fn escaped_string(bytes: &[u8], out: &mut Vec<u8>) -> usize {
    out.extend_from_slice(&bytes[..2]);
    let (mut at, mut dropped) = (2, 0);
    while let Some(&byte) = bytes.get(at) {
        match (byte, bytes.get(at + 1)) {
            (b'\\', Some(b'v')) => {
                out.push(b'v');
                dropped += 1;
                at += 2;
            }
            (b'\\', Some(next)) => {
                out.extend_from_slice(&[b'\\', *next]);
                at += 2;
            }
            (b'\'', Some(b'\'')) => {
                out.extend_from_slice(b"''");
                at += 2;
            }
            (byte, _) => {
                out.push(byte);
                at += 1;
                if byte == b'\'' {
                    break;
                }
            }
        }
    }
    out.resize(out.len() + dropped, b' ');
    at
}

/// The length of the comment at `start`; comments nest.
pub(super) fn comment(bytes: &[u8], start: usize) -> usize {
    let (mut at, mut depth) = (start, 0);
    while at < bytes.len() {
        match &bytes[at..] {
            [b'/', b'*', ..] => (at, depth) = (at + 2, depth + 1),
            [b'*', b'/', ..] => {
                (at, depth) = (at + 2, depth - 1);
                if depth == 0 {
                    break;
                }
            }
            _ => at += 1,
        }
    }
    at - start
}

/// The length of what begins with a dollar sign: a string, or only the sign.
pub(super) fn dollar_quoted(rest: &str) -> usize {
    let tag = rest[1..].find('$').map(|end| &rest[..end + 2]);
    let is_tag = |tag: &&str| {
        let name = &tag[1..tag.len() - 1];
        !name.starts_with(|c: char| c.is_ascii_digit())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || !c.is_ascii())
    };
    match tag.filter(is_tag) {
        Some(tag) => rest[tag.len()..].find(tag).map_or(rest.len(), |end| tag.len() * 2 + end),
        None => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::as_release_15;

    #[test]
    fn only_escape_strings_change_and_tokens_stay_where_they_are() {
        for (sql, expected) in [
            (r"select E'a\vb', 'c\vd'", r"select E'avb' , 'c\vd'"),
            (r"select e'\\v\v\'\v', x", r"select e'\\vv\'v'  , x"),
            (r"select E'''\v'''", r"select E'''v''' "),
            (r#"select "E'\v'", $a$E'\v'$a$, $$ E'\v' $$"#, r#"select "E'\v'", $a$E'\v'$a$, $$ E'\v' $$"#),
            ("select 1 -- E'\\v'\n, E'\\v'", "select 1 -- E'\\v'\n, E'v' "),
            (r"select /* E'\v' /* */ E'\v' */ E'\v'", r"select /* E'\v' /* */ E'\v' */ E'v' "),
            (r"select type'\v', E'\v", r"select type'\v', E'v "),
            (r"select $1, E'\v', é", r"select $1, E'v' , é"),
        ] {
            assert_eq!(as_release_15(sql), expected);
        }
    }
}
