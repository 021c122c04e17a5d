//! Names and literals in the text of SQL: how they are quoted, qualified and taken apart.
//!
//! Responsible for: the quotes that an identifier, a string or a name in an access list needs, the longest name, `schema.name`, lists of names,
//! which schemas are those of temporary relations.
//! Not responsible for: what a name means (`sql-bind`), whether it is visible (`sql-functions`, `sql-catalog`), names that DDL makes up (`sql_ddl::names`).
//! Invariants: what is quoted here is read back by the parser as what it was.

use base::work::{self, Count};
use base::{Error, Oid, Result, SqlState};
use engine_api::Catalog;
use engine_api::oids::SCHEMA_PG_CATALOG;
use types::quote::push_doubled;

pub use types::quote::{quote_name, quote_shown};

/// Bytes of an identifier; longer ones are cut, as PostgreSQL does (`NAMEDATALEN - 1`).
pub const IDENTIFIER_BYTES_MAX: usize = 63;

/// What the names of the schemas of temporary relations begin with; a session's number follows.
pub const TEMPORARY_PREFIX: &str = "pg_temp_";

/// Whether a schema is a session's own, for its temporary relations.
pub fn is_temporary(catalog: &Catalog, schema: Oid) -> bool {
    catalog.get(schema).is_some_and(|s| s.name().starts_with(TEMPORARY_PREFIX))
}

/// The name of a schema, not quoted.
pub fn schema_name(catalog: &Catalog, schema: Oid) -> Option<&str> {
    match catalog.get(schema) {
        None if schema == SCHEMA_PG_CATALOG => Some("pg_catalog"),
        found => found.map(|schema| schema.name()),
    }
}

/// `schema.name`, quoted; the name alone if there is no such schema, as for objects that are in none.
pub fn qualified(catalog: &Catalog, schema: Oid, name: &str) -> String {
    match schema_name(catalog, schema) {
        Some(schema) => format!("{}.{}", quote_name(schema), quote_name(name)),
        None => quote_name(name),
    }
}

/// The quoted name of an object behind its schema's; its number if it is gone.
pub fn qualified_object(catalog: &Catalog, oid: Oid) -> String {
    catalog.get(oid).map_or_else(|| oid.to_string(), |object| qualified(catalog, object.namespace().1, object.name()))
}

/// A role's name in an access list: in quotes if it has other characters than letters, digits and underscores. A keyword needs none there.
pub(crate) fn quote_name_in_list(name: &str) -> String {
    let plain = name.chars().all(|c| c == '_' || c.is_alphanumeric());
    if plain { name.to_string() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}

/// A string as SQL must write it, whatever `standard_conforming_strings` says: with `E` if it has backslashes.
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

/// A text in parts that are copied in one step, each counted.
fn stretches(mut text: &str) -> impl Iterator<Item = &str> {
    std::iter::from_fn(move || {
        let (part, more) = text.split_at(text.floor_char_boundary(work::STRETCH));
        work::beat(work::bytes(part.len()));
        text = more;
        (!part.is_empty()).then_some(part)
    })
}

/// Whether a character stands between names: what PostgreSQL's scanner takes for a blank.
fn is_blank(c: char) -> bool {
    work::beat(1);
    c.is_ascii_whitespace()
}

/// The name in front of the quotation mark that ends it, in which two marks are one, and what follows. `text` begins behind the
/// mark that begins it; `None` if nothing ends it.
fn quoted_name(text: &str) -> Option<(String, &str)> {
    let (mut name, mut rest) = (String::new(), text);
    loop {
        let end = rest.bytes().counted(1).position(|b| b == b'"')?;
        name.extend(stretches(&rest[..end]));
        rest = &rest[end + 1..];
        match rest.strip_prefix('"') {
            Some(more) => {
                name.push('"');
                rest = more;
            }
            None => return Some((name, rest)),
        }
    }
}

/// A word in lower case, as an identifier without quotes is.
fn folded(word: &str) -> String {
    let mut name = String::with_capacity(word.len());
    for part in stretches(word) {
        let from = name.len();
        name.push_str(part);
        name[from..].make_ascii_lowercase();
    }
    name
}

/// The names of a list of identifiers, those without quotes in lower case; `None` if it is no such list. As PostgreSQL's
/// `SplitIdentifierString`: a blank text is an empty list, everything but blanks and separators may be in a name, and a long name
/// is cut, as it was where something got it.
pub fn split_identifiers(text: &str, separator: char) -> Option<Vec<String>> {
    let mut names = Vec::new();
    let mut rest = text.trim_matches(is_blank);
    if rest.is_empty() {
        return Some(names);
    }
    loop {
        work::beat(16);
        let (name, behind) = match rest.strip_prefix('"') {
            Some(quoted) => {
                let (mut name, behind) = quoted_name(quoted)?;
                name.truncate(name.floor_char_boundary(IDENTIFIER_BYTES_MAX));
                (name, behind)
            }
            None => {
                let end = rest.find(|c| c == separator || is_blank(c)).unwrap_or(rest.len());
                if end == 0 {
                    return None;
                }
                let word = &rest[..end];
                (folded(&word[..word.floor_char_boundary(IDENTIFIER_BYTES_MAX)]), &rest[end..])
            }
        };
        names.push(name);
        rest = behind.trim_start_matches(is_blank);
        if rest.is_empty() {
            return Some(names);
        }
        rest = rest.strip_prefix(separator)?.trim_start_matches(is_blank);
    }
}

/// The parts of a possibly qualified name (`Public."My Table"`): unquoted ones in lower case.
///
/// # Errors
/// 42602
pub fn split_name(text: &str) -> Result<Vec<String>> {
    let names = split_identifiers(text, '.').filter(|names| !names.is_empty());
    names.ok_or_else(|| Error::new(SqlState::INVALID_NAME, "invalid name syntax"))
}

#[cfg(test)]
mod tests {
    use rupg_sql::nodes::Node;

    use super::*;

    /// The names of `SELECT 'literal' AS label FROM schema.relation alias`, and the literal, as the parser reads them.
    fn read_back(sql: &str) -> [String; 5] {
        let parsed = crate::parse(sql).unwrap_or_else(|error| panic!("{sql}: {error:?}")).remove(0);
        let Node::SelectStmt(select) = parsed.node else { panic!("{sql}") };
        let [Some(Node::ResTarget(target))] = &select.targetList[..] else { panic!("{sql}") };
        let [Some(Node::RangeVar(relation))] = &select.fromClause[..] else { panic!("{sql}") };
        let Some(Node::A_Const(constant)) = &target.val else { panic!("{sql}") };
        let Some(Node::String(literal)) = &constant.val else { panic!("{sql}") };
        let alias = relation.alias.as_ref().and_then(|alias| alias.aliasname.as_deref());
        let names = [target.name.as_deref(), relation.schemaname.as_deref(), relation.relname.as_deref(), alias];
        let [label, schema, relation, alias] = names.map(|name| name.unwrap_or_default().to_string());
        [literal.to_string(), label, schema, relation, alias]
    }

    #[test]
    fn every_keyword_and_odd_name_is_read_back() {
        let odd = [
            "a",
            "A",
            "a b",
            "1a",
            "_",
            "a1_",
            "a$",
            "\u{e4}",
            "\u{c4}",
            "\"",
            "a\"b",
            "\"\"",
            "'",
            "a'b",
            "\\",
            "a\\b",
            "\\'",
            ".",
            "a.b",
            " ",
            "-- a",
            "/*",
            ";",
            "$1",
            "$$",
            "%",
            "U&",
            "\n",
            "null",
            "public",
            "\u{1f600}",
        ];
        let names = rupg_sql::keywords().iter().map(|keyword| keyword.name).chain(odd);
        for name in names {
            let (quoted, literal) = (quote_name(name), quote_literal(name));
            let sql = format!("SELECT {literal} AS {quoted} FROM {quoted}.{quoted} {quoted}");
            assert_eq!(read_back(&sql), [(); 5].map(|()| name.to_string()), "{sql}");
            let sql = format!("SELECT {} AS a FROM b.c d", quote_shown(name));
            assert_eq!(read_back(&sql)[0], name, "{sql}");
            assert_eq!(
                split_identifiers(&format!("{quoted}, {quoted}"), ',').as_deref(),
                Some(&[(); 2].map(|()| name.to_string())[..])
            );
        }
    }

    #[test]
    fn lists_are_taken_apart_as_postgresql_does() {
        let check = |text: &str, expect: Option<&[&str]>| {
            let found = split_identifiers(text, ',');
            assert_eq!(
                found.as_deref(),
                expect.map(|names| names.iter().map(ToString::to_string).collect::<Vec<_>>()).as_deref(),
                "{text}"
            );
        };
        check("", Some(&[]));
        check(" \n", Some(&[]));
        check("Abc , \"D\"\"e, f\",\"\", 1-.x", Some(&["abc", "D\"e, f", "", "1-.x"]));
        check("\u{a0}\u{c4}B", Some(&["\u{a0}\u{c4}b"]));
        for text in [",a", "a,", "a,,b", "a b", "\"a", "\"a\"b"] {
            check(text, None);
        }
        assert_eq!(split_name("a.\"B\"").as_deref(), Ok(&["a".to_string(), "B".to_string()][..]));
        assert_eq!(split_name(" ").unwrap_err().code(), SqlState::INVALID_NAME);
    }

    #[test]
    fn every_byte_of_a_list_is_counted() {
        for text in ["\"\"", "\"", "A", "\u{e4}", "a,", " "] {
            let long = match text {
                "\"" => format!("\"{}\"", "\"\"".repeat(200_000)),
                "\"\"" => format!("\"{}\"", "x".repeat(600_000)),
                _ => text.repeat(600_000),
            };
            work::largest();
            let before = work::total();
            split_identifiers(&long, ',');
            let units = work::total() - before;
            assert!(units >= long.len() as u64 / 2, "{text}: {units} units");
            assert!(work::largest() <= 1 << 16, "{text}");
        }
    }
}
