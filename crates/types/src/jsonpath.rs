//! `jsonpath`: the language of SQL/JSON for taking parts of a document.
//!
//! Responsible for: what a path is, and the text that PostgreSQL shows for it. Not responsible for: running paths (`sql-functions`),
//! and whether the regular expressions in them are valid.

mod lex;
mod parse;
mod write;

use crate::Numeric;

/// A parsed path.
#[derive(Clone, Debug, PartialEq)]
pub struct JsonPath {
    /// Structural errors are not made up for.
    pub strict: bool,
    /// What it computes.
    pub expr: Expr,
}

/// A primary and the accessors applied to it, in order. REQUIRES that it is not empty.
pub type Expr = Vec<Node>;

/// Binary operators, predicates among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// `||`
    Or,
    /// `&&`
    And,
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
    /// `starts with`
    StartsWith,
    /// `+`
    Add,
    /// `-`
    Sub,
    /// `*`
    Mul,
    /// `/`
    Div,
    /// `%`
    Mod,
}

/// Methods without arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// `.abs()`
    Abs,
    /// `.size()`
    Size,
    /// `.type()`
    Type,
    /// `.floor()`
    Floor,
    /// `.double()`
    Double,
    /// `.ceiling()`
    Ceiling,
    /// `.keyvalue()`
    KeyValue,
}

impl Method {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Method::Abs => "abs",
            Method::Size => "size",
            Method::Type => "type",
            Method::Floor => "floor",
            Method::Double => "double",
            Method::Ceiling => "ceiling",
            Method::KeyValue => "keyvalue",
        }
    }
}

/// One step of an expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    /// `null`
    Null,
    /// `true`, `false`
    Bool(bool),
    /// A number.
    Number(Numeric),
    /// A string.
    String(String),
    /// `$name`
    Variable(String),
    /// `$`
    Root,
    /// `@`
    Current,
    /// `last`
    Last,
    /// An operator between two expressions.
    Binary(Op, Box<Expr>, Box<Expr>),
    /// `-x` (`true`) or `+x`.
    Sign(bool, Box<Expr>),
    /// `!(…)`
    Not(Box<Expr>),
    /// `(…) is unknown`
    IsUnknown(Box<Expr>),
    /// `exists (…)`
    Exists(Box<Expr>),
    /// `… like_regex "…" flag "…"`
    LikeRegex {
        /// What is matched.
        expr: Box<Expr>,
        /// The expression.
        pattern: String,
        /// Its flags.
        flags: RegexFlags,
    },
    /// `.key`
    Key(String),
    /// `.*`
    AnyKey,
    /// `[*]`
    AnyElement,
    /// `[a, b to c]`
    Elements(Vec<(Expr, Option<Expr>)>),
    /// `.**{from to to}`; `u32::MAX` is `last`.
    AnyLevel(u32, u32),
    /// `?(…)`
    Filter(Box<Expr>),
    /// `.method()`
    Method(Method),
    /// `.datetime(template)`
    DateTime(Option<String>),
}

/// Flags of `like_regex`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RegexFlags {
    /// `i`
    pub ignore_case: bool,
    /// `s`: the dot matches newlines.
    pub dot_all: bool,
    /// `m`: `^` and `$` match at newlines.
    pub multi_line: bool,
    /// `q`: a text, not an expression.
    pub quoted: bool,
}

impl JsonPath {
    /// Parses a path.
    ///
    /// # Errors
    /// 42601 for what is no path, 22P02 for an empty text or a bad escape, 0A000 for what PostgreSQL does not support.
    pub fn parse(text: &str) -> base::Result<JsonPath> {
        parse::path(text)
    }
}

impl std::fmt::Display for JsonPath {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&write::path(self))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_shown_as_postgresql_shows_them() {
        let paths = [
            ("$", "$"),
            ("strict $.a.b", "strict $.\"a\".\"b\""),
            ("$.a + 1 * 2", "($.\"a\" + 1 * 2)"),
            ("($.a + 1) * 2", "(($.\"a\" + 1) * 2)"),
            ("$.a[1,2 to 5, last]", "$.\"a\"[1,2 to 5,last]"),
            ("$ ? (@.a > 1 && @.b == \"x\" || !(@.c < 3))", "$?(@.\"a\" > 1 && @.\"b\" == \"x\" || !(@.\"c\" < 3))"),
            ("$.a == 1 && $.b == 2 && $.c == 3", "(($.\"a\" == 1 && $.\"b\" == 2) && $.\"c\" == 3)"),
            ("$.**{2 to last}", "$.**{2 to last}"),
            ("(1.2).type()", "(1.2).type()"),
        ];
        for (text, shown) in paths {
            assert_eq!(JsonPath::parse(text).unwrap().to_string(), shown);
        }
    }
}
