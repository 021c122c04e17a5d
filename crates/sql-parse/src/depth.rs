//! A bound on how deep a statement nests, taken from its text before it is parsed.
//!
//! The tree is walked and dropped recursively, so its depth must be bounded before it exists. The bound is an over-estimate:
//! every token of an expression may nest one level deeper; commas, semicolons, AND and OR (lists in the tree) begin anew, and so
//! do the branches of CASE.

use base::{Error, Result, SqlState};

/// Deepest estimate that is parsed.
const LIMIT: usize = 10_000;

/// The same where the stack is long.
const LIMIT_LONG: usize = 20_000;

/// Texts below this many bytes cannot nest deeper than the limit.
const SHORT: usize = LIMIT;

/// Refuses a text that may nest deeper than the stack allows.
pub(super) fn check(sql: &str, has_long_stack: bool) -> Result<()> {
    let limit = if has_long_stack { LIMIT_LONG } else { LIMIT };
    if sql.len() < SHORT || estimate(sql.as_bytes()) < limit {
        return Ok(());
    }
    Err(Error::new(SqlState::STATEMENT_TOO_COMPLEX, "stack depth limit exceeded")
        .hint("The statement nests too deep; write it with fewer nested expressions."))
}

/// What the chain around is waiting to have closed.
#[derive(Clone, Copy)]
enum Open {
    Parenthesis,
    Case,
}

fn estimate(text: &[u8]) -> usize {
    // Depth of the current chain at each open parenthesis or CASE, and of what is inside the current one.
    let mut outer: Vec<(Open, usize)> = Vec::new();
    let begin = |outer: &[(Open, usize)]| outer.last().map_or(0, |(_, depth)| depth + 1);
    let (mut chain, mut deepest) = (0usize, 0usize);
    let mut i = 0;
    while i < text.len() {
        let c = text[i];
        match c {
            b'\'' | b'"' => {
                i = skip_quoted(text, i);
                continue;
            }
            b'(' | b'[' => {
                outer.push((Open::Parenthesis, chain));
                chain += 1;
            }
            b')' | b']' => {
                outer.pop();
                chain += 1;
            }
            b',' | b';' => chain = begin(&outer),
            c if c.is_ascii_alphanumeric() || c == b'_' || c >= 0x80 => {
                let start = i;
                while i < text.len() && (text[i].is_ascii_alphanumeric() || text[i] == b'_' || text[i] >= 0x80) {
                    i += 1;
                }
                let word = &text[start..i];
                let is = |keyword: &[u8]| word.eq_ignore_ascii_case(keyword);
                let inside = matches!(outer.last(), Some((Open::Case, _)));
                if is(b"and") || is(b"or") || (inside && (is(b"when") || is(b"then") || is(b"else"))) {
                    chain = begin(&outer);
                } else if is(b"case") {
                    outer.push((Open::Case, chain));
                    chain += 1;
                } else if inside && is(b"end") {
                    outer.pop();
                    chain += 1;
                } else if !c.is_ascii_digit() {
                    chain += 1;
                }
                deepest = deepest.max(chain);
                continue;
            }
            c if c.is_ascii_whitespace() => {}
            _ => chain += 1,
        }
        deepest = deepest.max(chain);
        i += 1;
    }
    deepest
}

fn skip_quoted(text: &[u8], start: usize) -> usize {
    let quote = text[start];
    match memchr::memchr(quote, &text[start + 1..]) {
        Some(at) => start + at + 2,
        None => text.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_do_not_nest_and_chains_do() {
        let values = format!("insert into t values {}", "(1, 'a''b', -2), ".repeat(5_000));
        assert!(estimate(values.as_bytes()) < 100);
        assert!(estimate("a = 1 and ".repeat(10_000).as_bytes()) < 10);
        let cases = format!("case {} else 0 end", "when a = 1 then 2 + b ".repeat(10_000));
        assert!(estimate(cases.as_bytes()) < 20);
        assert!(estimate("case when a then ".repeat(5_000).as_bytes()) >= 5_000);
        assert!(estimate("case when ".repeat(5_000).as_bytes()) >= 5_000);
        assert!(estimate("case a when 1 then 2 end + ".repeat(5_000).as_bytes()) >= 5_000);
        assert!(estimate("1+".repeat(10_000).as_bytes()) >= 10_000);
        assert!(estimate("(".repeat(10_000).as_bytes()) >= 10_000);
        assert!(estimate("f(1+2)+".repeat(10_000).as_bytes()) >= 10_000);
    }
}
