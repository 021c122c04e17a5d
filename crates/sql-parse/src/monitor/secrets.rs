//! Secrets in statements: passwords, wherever a statement is shown or kept beyond its run.
//!
//! The literal behind the word PASSWORD is left out (`CREATE ROLE r PASSWORD '…'`, `password = '…'`), also one that is not closed,
//! and the password of a connection string (`password=… `, `//user:…@`). What is no literal – a parameter, NULL – stays.

use std::borrow::Cow;

const WORD: &[u8] = b"password";
/// What is shown instead.
const MASK: &str = "********";

/// The statement without its passwords. For show and for the log; not for the path of each statement.
pub fn without_secrets(text: &str) -> Cow<'_, str> {
    let mut shown = String::new();
    let mut kept = 0;
    let mut at = 0;
    while let Some((from, to)) = next_secret(text, at) {
        shown.push_str(&text[kept..from]);
        shown.push_str(MASK);
        (kept, at) = (to, to);
    }
    if kept == 0 {
        return Cow::Borrowed(text);
    }
    shown.push_str(&text[kept..]);
    Cow::Owned(shown)
}

/// The next secret at or behind `at`: from and to where.
fn next_secret(text: &str, at: usize) -> Option<(usize, usize)> {
    let bytes = text.as_bytes();
    (at..bytes.len()).find_map(|i| match bytes[i] {
        b'p' | b'P' => after_word(text, i).filter(|(from, to)| to > from),
        b'/' => in_address(text, i).filter(|(from, to)| to > from),
        _ => None,
    })
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

/// If the word PASSWORD begins at `at`: the literal behind it.
fn after_word(text: &str, at: usize) -> Option<(usize, usize)> {
    let bytes = text.as_bytes();
    let end = at + WORD.len();
    let is_it = bytes.get(at..end)?.eq_ignore_ascii_case(WORD) && !bytes.get(end).copied().is_some_and(is_word);
    if !is_it {
        return None;
    }
    // `"password"` as a name, and what is between it and its value.
    let mut from = skip_blanks(bytes, end + usize::from(bytes.get(end) == Some(&b'"')));
    let joined = bytes[from..].iter().take_while(|b| matches!(b, b'=' | b':' | b'>')).count();
    let from_sign = from;
    from = skip_blanks(bytes, from + joined);
    literal(text, from).or_else(|| {
        // In a connection string a value stands without quotes, right behind its sign.
        let is_bare = joined > 0 && bytes.get(from_sign) == Some(&b'=') && from == from_sign + 1;
        is_bare.then(|| (from, from + bare(&bytes[from..])))
    })
}

/// Bytes of a value in a connection string. A parameter or a call is no such value.
fn bare(bytes: &[u8]) -> usize {
    if bytes.first() == Some(&b'$') {
        return 0;
    }
    bytes
        .iter()
        .take_while(|b| !b.is_ascii_whitespace() && !matches!(b, b'\'' | b'"' | b'&' | b';' | b',' | b')' | b'('))
        .count()
}

/// Blanks and comments.
fn skip_blanks(bytes: &[u8], mut at: usize) -> usize {
    loop {
        let rest = bytes.get(at..).unwrap_or_default();
        at += match rest {
            [b, ..] if b.is_ascii_whitespace() => 1,
            [b'-', b'-', ..] => rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len()),
            [b'/', b'*', ..] => rest.windows(2).position(|w| w == b"*/").map_or(rest.len(), |end| end + 2),
            _ => return at.min(bytes.len()),
        };
    }
}

/// The string literal that begins at `at`; one that is not closed goes to the end.
fn literal(text: &str, at: usize) -> Option<(usize, usize)> {
    let bytes = text.as_bytes();
    let rest = bytes.get(at..)?;
    let prefix = match rest {
        [b'E' | b'e' | b'N' | b'n' | b'B' | b'b' | b'X' | b'x', b'\'', ..] => 1,
        [b'U' | b'u', b'&', b'\'', ..] => 2,
        _ => 0,
    };
    match rest.get(prefix)? {
        b'\'' => {
            let escapes = matches!(rest[0], b'E' | b'e');
            let mut end = at + prefix + 1;
            loop {
                match bytes.get(end) {
                    Some(b'\\') if escapes => end += 2,
                    Some(b'\'') if bytes.get(end + 1) == Some(&b'\'') => end += 2,
                    Some(b'\'') => {
                        // One that goes on in the next line is the same literal.
                        let next = skip_blanks(bytes, end + 1);
                        let goes_on = bytes.get(next) == Some(&b'\'') && bytes[end + 1..next].contains(&b'\n');
                        match goes_on {
                            true => end = next + 1,
                            false => return Some((at, end + 1)),
                        }
                    }
                    Some(_) => end += 1,
                    None => return Some((at, bytes.len())),
                }
            }
        }
        b'$' if !rest.get(1)?.is_ascii_digit() => {
            let tag = 1 + rest[1..].iter().take_while(|b| is_word(**b)).count();
            let quote = rest.get(..=tag).filter(|quote| quote.last() == Some(&b'$'))?;
            let body = &rest[quote.len()..];
            let end = body.windows(quote.len()).position(|w| w == quote).map_or(body.len(), |end| end + quote.len());
            Some((at, at + quote.len() + end))
        }
        _ => None,
    }
}

/// If `//user:password@` begins at `at`: the password.
fn in_address(text: &str, at: usize) -> Option<(usize, usize)> {
    let rest = text.get(at..)?.strip_prefix("//")?;
    let end = rest.find(|c: char| c.is_whitespace() || matches!(c, '/' | '\'' | '"' | '?'))?;
    let (who, _) = rest[..end].rsplit_once('@')?;
    let (user, password) = who.split_once(':')?;
    let from = at + 2 + user.len() + 1;
    Some((from, from + password.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_left_out() {
        for (text, shown) in [
            (
                "ALTER ROLE a PASSWORD 'x''y' VALID UNTIL '2030-01-01'",
                "ALTER ROLE a PASSWORD ******** VALID UNTIL '2030-01-01'",
            ),
            (
                "create user a encrypted password E'x\\'y'; select 1",
                "create user a encrypted password ********; select 1",
            ),
            ("create user a password/* 'no' */ $q$x$y$q$ login", "create user a password/* 'no' */ ******** login"),
            ("alter role a password U&'\\0061'", "alter role a password ********"),
            ("alter role a password 'cut of", "alter role a password ********"),
            ("alter role a password 'two'\n  'lines'", "alter role a password ********"),
            ("alter role a password $$x", "alter role a password ********"),
            ("ALTER ROLE a PASSWORD NULL", "ALTER ROLE a PASSWORD NULL"),
            ("update u set password = 'x', name = 'y'", "update u set password = ********, name = 'y'"),
            ("update u set password = $1", "update u set password = $1"),
            ("update u set password=$1", "update u set password=$1"),
            ("select passwords, 'x' from u", "select passwords, 'x' from u"),
            ("select dblink('host=h password=x user=y')", "select dblink('host=h password=******** user=y')"),
            ("select 'postgres://u:x@h/d'", "select 'postgres://u:********@h/d'"),
            ("select 1 / 2 // 3, ':', '@'", "select 1 / 2 // 3, ':', '@'"),
            ("{\"password\": \"x\"}", "{\"password\": \"x\"}"),
            ("alter role \u{e4} password '\u{e4}\u{fc}' -- \u{df}", "alter role \u{e4} password ******** -- \u{df}"),
        ] {
            assert_eq!(without_secrets(text), shown, "{text}");
        }
    }

    #[test]
    fn any_cut_is_shown_without_it() {
        let text = "ALTER ROLE a PASSWORD 'top-secret'";
        for end in 0..text.len() {
            assert!(!without_secrets(&text[..end]).contains("top"), "{end}");
        }
    }
}
