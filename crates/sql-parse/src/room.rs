//! What a text needs to be parsed, bound and planned, before that begins.

use base::Result;
use types::room;

/// What each token of a statement takes of parse tree, bound tree and plan together, as measured with lists of values, calls
/// and conditions: 120 to 210 bytes.
const TOKEN_BYTES: usize = 220;
/// Copies of the text that are held while it is read.
const COPIES: usize = 4;
/// Texts below this have no more tokens than can be made without asking, roughly.
const SHORT: usize = 4 << 10;

/// Asks for room for the trees of a text.
///
/// # Errors
/// 53200 without memory for them.
pub(super) fn check(sql: &str) -> Result<()> {
    if sql.len() < SHORT {
        return Ok(());
    }
    room::ask(tokens(sql.as_bytes()) * TOKEN_BYTES + COPIES * sql.len())
}

/// Tokens of a text, or more: comments count, and so do the words of strings between dollars.
fn tokens(text: &[u8]) -> usize {
    let is_word = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b >= 0x80;
    let (mut count, mut at, mut in_word) = (0, 0, false);
    while let Some(&b) = text.get(at) {
        let was_in_word = std::mem::replace(&mut in_word, is_word(b));
        match b {
            b'\'' | b'"' => {
                count += 1;
                at += 1 + memchr::memchr(b, &text[at + 1..]).unwrap_or(text.len());
            }
            b if is_word(b) => count += usize::from(!was_in_word),
            b if b.is_ascii_whitespace() => {}
            _ => count += 1,
        }
        at += 1;
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_counted() {
        let count = |text: &str| tokens(text.as_bytes());
        assert_eq!(count("select a1, 'it is one', \"so is this\" from t"), 8);
        assert_eq!(count("1=2 or 3<>4"), 8);
        assert_eq!(count(""), 0);
        assert_eq!(count("'unfinished"), 1);
    }
}
