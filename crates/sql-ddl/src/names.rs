//! Names that definitions leave out, and the text of expressions that the catalog keeps as text.

use base::Oid;
use base::work::{self, Count};
use engine_api::{Catalog, CatalogObject, TypeKind};
use rupg_sql::nodes::{Node, RangeVar};
use rupg_sql::{Lexer, Value};
use sql_parse::names::{IDENTIFIER_BYTES_MAX, quote_name};

/// The name as it was written: with its schema if it had one.
pub(super) fn display(name: &RangeVar) -> String {
    let relname = name.relname.as_deref().unwrap_or_default();
    match &name.schemaname {
        Some(schema) => format!("{schema}.{relname}"),
        None => relname.to_string(),
    }
}

/// A relation's name: with its schema unless the search path finds it without.
pub(super) fn shown(catalog: &Catalog, path: &[Oid], schema: Oid, name: &str) -> String {
    let found = path.iter().find(|&&s| catalog.relation(s, name).is_some());
    match catalog.get(schema) {
        Some(in_schema) if found != Some(&schema) => format!("{}.{}", quote_name(in_schema.name()), quote_name(name)),
        _ => quote_name(name),
    }
}

/// The strings of a list of names.
pub(super) fn strings(list: &[Option<Node>]) -> Vec<String> {
    list.iter()
        .flatten()
        .filter_map(|node| match node {
            Node::String(s) => Some(s.to_string()),
            _ => None,
        })
        .collect()
}

fn clip(text: &str, bytes: usize) -> &str {
    let mut end = text.len().min(bytes);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// `name1_name2_label`, shortened to an identifier's length as PostgreSQL does (`makeObjectName`).
pub(super) fn object_name(name1: &str, name2: &str, label: &str) -> String {
    let mut overhead = 0;
    if !name2.is_empty() {
        overhead += 1;
    }
    if !label.is_empty() {
        overhead += 1 + label.len();
    }
    let room = IDENTIFIER_BYTES_MAX - overhead;
    // On its way down from any length the loop would pass here.
    let (mut len1, mut len2) = (name1.len().min(room), name2.len().min(room));
    while len1 + len2 > room {
        if len1 > len2 { len1 -= 1 } else { len2 -= 1 }
    }
    let mut name = clip(name1, len1).to_string();
    for part in [clip(name2, len2), label] {
        if !part.is_empty() {
            name.push('_');
            name.push_str(part);
        }
    }
    name
}

/// A relation name that is free in `schema`: the plain one, else with a number (`ChooseRelationName`).
pub(super) fn free_relation_name(
    catalog: &Catalog,
    schema: Oid,
    name1: &str,
    name2: &str,
    label: &str,
    also_taken: &[String],
) -> String {
    for n in 0.. {
        let label = if n == 0 { label.to_string() } else { format!("{label}{n}") };
        let name = object_name(name1, name2, &label);
        if catalog.relation(schema, &name).is_none() && !also_taken.contains(&name) {
            return name;
        }
    }
    unreachable!("the natural numbers do not end")
}

/// The names of all constraints of a schema's tables and domains.
pub(super) fn constraint_names(catalog: &Catalog, schema: Oid) -> Vec<String> {
    let mut names = Vec::new();
    for object in catalog.walk() {
        work::beat(1);
        match &**object {
            CatalogObject::Table(table) if table.schema == schema => {
                names.extend(table.constraints.iter().map(|constraint| constraint.name.clone()));
            }
            CatalogObject::Type(ty) if ty.schema == schema => {
                if let TypeKind::Domain(domain) = &ty.kind {
                    names.extend(domain.checks.iter().map(|check| check.name.clone()));
                }
            }
            _ => {}
        }
    }
    names
}

/// A constraint name that is free in a schema and among `taken` (`ChooseConstraintName`).
pub(super) fn free_constraint_name(
    catalog: &Catalog,
    schema: Oid,
    taken: &[String],
    name1: &str,
    name2: &str,
    label: &str,
) -> String {
    let there = constraint_names(catalog, schema);
    for n in 0.. {
        let label = if n == 0 { label.to_string() } else { format!("{label}{n}") };
        let name = object_name(name1, name2, &label);
        if !taken.contains(&name) && !there.contains(&name) {
            return name;
        }
    }
    unreachable!("the natural numbers do not end")
}

/// Words after which a column's DEFAULT expression cannot go on.
const AFTER_DEFAULT: &[&str] = &[
    "constraint",
    "not",
    "null",
    "check",
    "primary",
    "unique",
    "references",
    "generated",
    "deferrable",
    "initially",
    "default",
    "using",
    "collate",
];

/// The text of the expression that begins at byte `from`: up to a comma, closing parenthesis, semicolon or – for
/// `in_column` – the next column constraint, outside any parentheses of its own.
pub(crate) fn source_expression(sql: &str, from: usize, in_column: bool) -> &str {
    let bytes = sql.as_bytes();
    let mut depth = 0usize;
    let mut i = from;
    let mut seen_token = false;
    while i < bytes.len() {
        work::beat(2);
        match bytes[i] {
            b'\'' | b'"' => i = skip_quoted(bytes, i),
            b'-' if bytes.get(i + 1) == Some(&b'-') => i = skip_line(bytes, i),
            b'(' | b'[' => depth += 1,
            b')' | b']' if depth == 0 => break,
            b')' | b']' => depth -= 1,
            b',' | b';' if depth == 0 => break,
            b'$' if bytes.get(i + 1).is_some_and(|b| *b == b'$' || b.is_ascii_alphabetic()) => {
                i = skip_dollar(sql, i);
            }
            b if b.is_ascii_alphabetic() || b == b'_' => {
                let start = i;
                while i + 1 < bytes.len() && (bytes[i + 1].is_ascii_alphanumeric() || bytes[i + 1] == b'_') {
                    work::beat(1);
                    i += 1;
                }
                let word = &sql[start..=i];
                let ends = |other: &&str| other.eq_ignore_ascii_case(word);
                // What stands inside of CASE … END ends nothing.
                if word.eq_ignore_ascii_case("case") {
                    depth += 1;
                } else if word.eq_ignore_ascii_case("end") {
                    depth = depth.saturating_sub(1);
                }
                if in_column && depth == 0 && seen_token && AFTER_DEFAULT.iter().any(ends) {
                    return sql[from..start].trim();
                }
            }
            _ => {}
        }
        seen_token |= !bytes[i.min(bytes.len() - 1)].is_ascii_whitespace();
        i += 1;
    }
    sql[from..i.min(sql.len())].trim()
}

fn skip_quoted(bytes: &[u8], start: usize) -> usize {
    let quote = bytes[start];
    let escapes = start > 0 && matches!(bytes[start - 1], b'e' | b'E') && quote == b'\'';
    let mut i = start + 1;
    while i < bytes.len() {
        work::beat(1);
        match bytes[i] {
            b'\\' if escapes => i += 1,
            b if b == quote && bytes.get(i + 1) == Some(&quote) => i += 1,
            b if b == quote => return i,
            _ => {}
        }
        i += 1;
    }
    bytes.len()
}

fn skip_line(bytes: &[u8], start: usize) -> usize {
    bytes[start..].iter().counted(1).position(|&b| b == b'\n').map_or(bytes.len(), |n| start + n)
}

fn skip_dollar(sql: &str, start: usize) -> usize {
    let Some(len) = position(&sql[start + 1..], "$") else { return start };
    let tag = &sql[start..start + len + 2];
    match position(&sql[start + tag.len()..], tag) {
        Some(end) => start + tag.len() + end + tag.len() - 1,
        None => start,
    }
}

/// Where a word stands in a text, in whichever case; the first place.
pub(super) fn position(text: &str, word: &str) -> Option<usize> {
    let mut windows = text.as_bytes().windows(word.len()).counted(2);
    windows.position(|part| part.eq_ignore_ascii_case(word.as_bytes()))
}

/// As [`position`], the last place.
pub(super) fn last_position(text: &str, word: &str) -> Option<usize> {
    let mut windows = text.as_bytes().windows(word.len()).counted(2);
    windows.rposition(|part| part.eq_ignore_ascii_case(word.as_bytes()))
}

/// What stands in front of a text's last word, if that is `word` in whichever case.
pub(super) fn before_word<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    let text = text.trim_end_matches(|c: char| {
        work::beat(1);
        c.is_whitespace()
    });
    let (before, last) = text.split_at_checked(text.len().checked_sub(word.len())?)?;
    last.eq_ignore_ascii_case(word).then_some(before)
}

/// The expression after the first word `keyword` at or after byte `from`.
pub(super) fn expression_after<'a>(sql: &'a str, from: i32, keyword: &str, in_column: bool) -> Option<&'a str> {
    let from = usize::try_from(from).ok()?;
    let at = from + position(sql.get(from..)?, keyword)? + keyword.len();
    Some(source_expression(sql, at, in_column))
}

/// The text between the parentheses that follow the first word `keyword` at or after byte `from`.
pub(super) fn parenthesised_after<'a>(sql: &'a str, from: i32, keyword: &str) -> Option<&'a str> {
    let from = usize::try_from(from).ok()?;
    let at = from + position(sql.get(from..)?, keyword)? + keyword.len();
    let open = at + position(sql.get(at..)?, "(")?;
    Some(source_expression(sql, open + 1, false))
}

/// One token of a statement.
pub(super) struct Token {
    pub start: usize,
    pub end: usize,
    /// A key word in lower case; anything else as it stands there.
    pub word: String,
}

/// The tokens of a statement that has been parsed, from byte `from` to its end.
pub(super) fn tokens(sql: &str, from: usize) -> Vec<Token> {
    let rest = sql.get(from..).unwrap_or_default();
    let mut lexer = Lexer::new(rest);
    let mut all = Vec::new();
    let mut depth = 0usize;
    while let Ok(token) = lexer.next_token() {
        work::beat(64 + (token.end - token.start));
        let word = match &token.value {
            Value::Keyword(keyword) => keyword.name.to_string(),
            _ => rest[token.start..token.end].to_string(),
        };
        match word.as_str() {
            "" => break,
            "(" => depth += 1,
            ")" => depth = depth.saturating_sub(1),
            ";" if depth == 0 => break,
            _ => {}
        }
        all.push(Token { start: from + token.start, end: from + token.end, word });
    }
    all
}

/// The leftmost position in a parse tree, in bytes.
pub(super) fn leftmost(node: &Node) -> i32 {
    let text = node.to_text();
    work::beat(text.len());
    let mut least = i32::MAX;
    for part in text.split(":location ").skip(1) {
        let end = part.find(|c: char| !(c.is_ascii_digit() || c == '-')).unwrap_or(part.len());
        if let Ok(location) = part[..end].parse::<i32>()
            && location >= 0
        {
            least = least.min(location);
        }
    }
    if least == i32::MAX { -1 } else { least }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_shortened_as_postgresql_does() {
        assert_eq!(object_name("t", "a", "key"), "t_a_key");
        assert_eq!(object_name("t", "", "pkey"), "t_pkey");
        let long = "x".repeat(60);
        assert_eq!(object_name(&long, &long, "fkey").len(), 63);
        // Byte by byte, as PostgreSQL does it.
        let by_bytes = |mut len1: usize, mut len2: usize| {
            while len1 + len2 > 63 - 1 - 5 {
                if len1 > len2 { len1 -= 1 } else { len2 -= 1 }
            }
            (len1, len2)
        };
        for (len1, len2) in [(1, 70), (70, 1), (30, 200), (200, 30), (28, 29), (57, 58), (1000, 1000), (999, 1000)] {
            let name = object_name(&"x".repeat(len1), &"y".repeat(len2), "fkey");
            let shown = |letter: char| name.chars().filter(|c| *c == letter).count();
            assert_eq!((shown('x'), shown('y') - 1), by_bytes(len1, len2), "{len1} {len2}");
        }
        let (long, before) = ("x".repeat(1 << 26), base::work::total());
        assert_eq!(object_name(&long, "", "fkey").len(), 63);
        assert!(base::work::total() - before < 1000);
    }

    #[test]
    fn long_texts_are_counted() {
        let long = "x".repeat(100_000);
        for (text, keyword) in [
            (format!("default '{long}'"), "default"),
            (format!("default \"{long}\""), "default"),
            (format!("default {long}"), "default"),
            (format!("default 1 --{long}\n"), "default"),
            (format!("default $a$ {long} $a$"), "default"),
            (format!("{long} DEFAULT 1"), "default"),
        ] {
            let units = |work: &dyn Fn()| {
                let before = base::work::total();
                work();
                base::work::total() - before
            };
            let found = units(&|| assert!(expression_after(&text, 0, keyword, true).is_some()));
            assert!(found >= long.len() as u64, "{}: {found}", &text[..12]);
            assert!(units(&|| _ = last_position(&long, "using")) >= long.len() as u64);
            assert!(units(&|| _ = quote_name(&text)) >= 1000);
            assert!(units(&|| _ = tokens(&text, 0)) >= long.len() as u64 / 2 || text.contains("--"));
        }
        assert_eq!(before_word("CREATE Recursive VIEW \n", "view"), Some("CREATE Recursive "));
        assert_eq!((before_word("é", "view"), before_word("", "view")), (None, None));
        assert_eq!((last_position("Using a USING b", "using"), position("a", "using")), (Some(8), None));
    }

    #[test]
    fn expressions_end_where_the_grammar_ends_them() {
        let check = |sql: &str, expect: &str| assert_eq!(expression_after(sql, 0, "default", true), Some(expect));
        check("a int default 1 + f(2, 3) not null, b int", "1 + f(2, 3)");
        check("a text default 'x, y)' check (a > 1)", "'x, y)'");
        check("a text default null)", "null");
        check("a int default (1)) ", "(1)");
        check("a timestamp default now()", "now()");
        assert_eq!(parenthesised_after("check (a > (1)) , x", 0, "check"), Some("a > (1)"));
    }
}
