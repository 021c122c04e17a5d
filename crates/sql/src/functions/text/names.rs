//! Identifiers and literals in text: quoting them, taking them apart.

use base::work::{self, Count};
use base::{Error, Result, SqlState};

/// Words that need quotes as identifiers: all of PostgreSQL's keywords that are not "unreserved".
static KEYWORDS: &[&str] = &[
    "all",
    "analyse",
    "analyze",
    "and",
    "any",
    "array",
    "as",
    "asc",
    "asymmetric",
    "authorization",
    "between",
    "bigint",
    "binary",
    "bit",
    "boolean",
    "both",
    "case",
    "cast",
    "char",
    "character",
    "check",
    "coalesce",
    "collate",
    "collation",
    "column",
    "concurrently",
    "constraint",
    "create",
    "cross",
    "current_catalog",
    "current_date",
    "current_role",
    "current_schema",
    "current_time",
    "current_timestamp",
    "current_user",
    "dec",
    "decimal",
    "default",
    "deferrable",
    "desc",
    "distinct",
    "do",
    "else",
    "end",
    "except",
    "exists",
    "extract",
    "false",
    "fetch",
    "float",
    "for",
    "foreign",
    "freeze",
    "from",
    "full",
    "grant",
    "greatest",
    "group",
    "grouping",
    "having",
    "ilike",
    "in",
    "initially",
    "inner",
    "inout",
    "int",
    "integer",
    "intersect",
    "interval",
    "into",
    "is",
    "isnull",
    "join",
    "lateral",
    "leading",
    "least",
    "left",
    "like",
    "limit",
    "localtime",
    "localtimestamp",
    "national",
    "natural",
    "nchar",
    "none",
    "normalize",
    "not",
    "notnull",
    "null",
    "nullif",
    "numeric",
    "offset",
    "on",
    "only",
    "or",
    "order",
    "out",
    "outer",
    "overlaps",
    "overlay",
    "placing",
    "position",
    "precision",
    "primary",
    "real",
    "references",
    "returning",
    "right",
    "row",
    "select",
    "session_user",
    "setof",
    "similar",
    "smallint",
    "some",
    "substring",
    "symmetric",
    "table",
    "tablesample",
    "then",
    "time",
    "timestamp",
    "to",
    "trailing",
    "treat",
    "trim",
    "true",
    "union",
    "unique",
    "user",
    "using",
    "values",
    "varchar",
    "variadic",
    "verbose",
    "when",
    "where",
    "window",
    "with",
    "xmlattributes",
    "xmlconcat",
    "xmlelement",
    "xmlexists",
    "xmlforest",
    "xmlnamespaces",
    "xmlparse",
    "xmlpi",
    "xmlroot",
    "xmlserialize",
    "xmltable",
];

/// An identifier as SQL must write it.
pub fn quote_identifier(name: &str) -> String {
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_';
    let starts = name.bytes().next().is_some_and(|b| b.is_ascii_lowercase() || b == b'_');
    if starts && name.bytes().counted(1).all(plain) && KEYWORDS.binary_search(&name).is_err() {
        return name.to_string();
    }
    let mut out = String::with_capacity(name.len() + 2);
    out.push('"');
    push_doubled(name, b"\"", &mut out);
    out.push('"');
    out
}

/// Appends a text with each of these ASCII characters doubled.
fn push_doubled(text: &str, marks: &[u8], out: &mut String) {
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

/// A string as SQL must write it: with `E` if it has backslashes.
pub fn quote_literal(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 3);
    if text.contains('\\') {
        out.push('E');
    }
    out.push('\'');
    push_doubled(text, b"'\\", &mut out);
    out.push('\'');
    out
}

/// The parts of a possibly qualified name (`Public."My Table"`): unquoted ones in lower case.
///
/// # Errors
/// 42602
pub fn split_identifier(text: &str) -> Result<Vec<String>> {
    let invalid = || Error::new(SqlState::INVALID_NAME, "invalid name syntax");
    let blank = |c: char| {
        work::beat(1);
        c.is_ascii_whitespace() || c == '\x0b'
    };
    let mut rest = text.trim_matches(blank);
    let mut names = Vec::new();
    loop {
        let name;
        if let Some(quoted) = rest.strip_prefix('"') {
            let mut value = String::new();
            let mut tail = quoted;
            loop {
                let end = tail.find('"').ok_or_else(invalid)?;
                work::step(8 + end)?;
                value.push_str(&tail[..end]);
                tail = &tail[end + 1..];
                match tail.strip_prefix('"') {
                    Some(more) => {
                        value.push('"');
                        tail = more;
                    }
                    None => break,
                }
            }
            (name, rest) = (value, tail);
        } else {
            let end = rest.bytes().counted(1).position(|b| b == b'.' || blank(b.into())).unwrap_or(rest.len());
            (name, rest) = (rest[..end].to_ascii_lowercase(), &rest[end..]);
        }
        if name.is_empty() {
            return Err(invalid());
        }
        names.push(name);
        rest = rest.trim_start_matches(blank);
        if rest.is_empty() {
            return Ok(names);
        }
        rest = rest.strip_prefix('.').ok_or_else(invalid)?.trim_start_matches(blank);
    }
}
