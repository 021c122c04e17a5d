//! Quotation marks around what SQL text says: identifiers and strings.
//!
//! Responsible for: which identifiers need quotation marks, and the doubling of marks inside.
//! Not responsible for: names behind those of their schemas, lists of names, strings with their prefixes (`sql_parse::names`).
//! Invariants: what is quoted here is read back by the parser as what it was: its own table of keywords decides.

use base::work::Count as _;

/// Whether a word is one of PostgreSQL's keywords that are not "unreserved".
fn needs_quotes(word: &str) -> bool {
    rupg_sql::keyword(word).is_some_and(|keyword| keyword.category != rupg_sql::Category::Unreserved)
}

/// An identifier as SQL must write it: in quotes if it is not in lower case, or is a keyword that is not "unreserved".
pub fn quote_name(name: &str) -> String {
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_';
    let starts = name.bytes().next().is_some_and(|b| b.is_ascii_lowercase() || b == b'_');
    if starts && name.bytes().counted(1).all(plain) && !needs_quotes(name) {
        return name.to_string();
    }
    let mut out = String::with_capacity(name.len() + 2);
    out.push('"');
    push_doubled(name, b"\"", &mut out);
    out.push('"');
    out
}

/// Appends a text with each of these ASCII characters doubled.
pub fn push_doubled(text: &str, marks: &[u8], out: &mut String) {
    let mut copied = 0;
    for (at, byte) in text.bytes().counted(2).enumerate() {
        if marks.contains(&byte) {
            out.push_str(&text[copied..=at]);
            // Once more with what follows it.
            copied = at;
        }
    }
    out.push_str(&text[copied..]);
}

/// A string in a definition that is shown. As in PostgreSQL's it has no `E`: it is read back with `standard_conforming_strings` on.
pub fn quote_shown(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
