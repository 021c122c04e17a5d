//! PostgreSQL's regular expressions as PostgreSQL matches them: which match of several is taken, back references, look-around.
//!
//! Responsible for: reading an expression ([`parse()`]), deciding what prefers long and what short matches (`shape`),
//! finding where parts can match (`nfa`), and dividing a match among the groups (`dissect`).
//! Not responsible for: flags of SQL functions, caching, and the fast path of expressions whose answer does not depend on
//! preferences (`text/pattern.rs` of `sql-functions`).
//! Invariants: work is counted ([`base::work`]), and given up when the statement is cancelled; recursion is as deep as the
//! expression is nested, and that is bounded.
//!
//! A match is found in two stages. The whole expression has one preference, for the longest or the shortest match, and
//! takes the leftmost place; then the span is divided from the outside in, each part by its own preference. That is not
//! what a backtracking matcher does, which knows no whole.

#![forbid(unsafe_code)]

mod class;
mod dissect;
mod names;
mod nfa;
mod parse;
mod shape;
mod write;

use base::{Result, work};

pub use class::Class;
pub use dissect::{Matcher, Subject};
pub use parse::parse;
pub use write::{size, write};

/// What the reader of an expression makes of it.
#[derive(Clone, Debug)]
pub enum Node {
    /// Matches the empty text.
    Empty,
    /// One character.
    Class(Class),
    /// A place in the text.
    Assert(Assert),
    /// Look-around: whether the expression matches ahead or behind, or must not.
    Look {
        /// It looks ahead, otherwise behind.
        ahead: bool,
        /// It must not match.
        negated: bool,
        /// What is looked for.
        node: Box<Node>,
    },
    /// `\1`
    Back(u32),
    /// A group that is remembered.
    Group(u32, Box<Node>),
    /// A quantifier; `None` is no upper bound.
    Repeat {
        /// What is looked for.
        node: Box<Node>,
        /// The least number of times.
        min: u32,
        /// The greatest number.
        max: Option<u32>,
        /// What it takes first.
        prefers: Preference,
    },
    /// One after the other.
    Concat(Vec<Node>),
    /// `|`
    Alternatives(Vec<Node>),
}

/// Constraints on a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Assert {
    /// `\A`, and `^` outside of newline-sensitive matching.
    TextStart,
    /// `\Z`, `$`
    TextEnd,
    /// `^` in newline-sensitive matching.
    LineStart,
    /// `$` in newline-sensitive matching.
    LineEnd,
    /// `\m`
    WordStart,
    /// `\M`
    WordEnd,
    /// `\y`
    WordEdge,
    /// `\Y`
    NoWordEdge,
}

/// Which matches a part takes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preference {
    /// It has none.
    None,
    /// The longest.
    Long,
    /// The shortest.
    Short,
}

/// How the text of an expression is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Syntax {
    /// `i`
    pub ignore_case: bool,
    /// Dot and negated brackets do not match newlines.
    pub dot_excludes_newline: bool,
    /// `^` and `$` match at newlines.
    pub line_anchors: bool,
    /// `x`
    pub expanded: bool,
    /// `e`: extended expressions, without the escapes of advanced ones.
    pub extended: bool,
    /// `q`: a text.
    pub literal: bool,
}

/// An expression that was read.
pub struct Parsed {
    /// The expression.
    pub node: Node,
    /// Number of groups.
    pub groups: u32,
    /// The syntax with the options inside of the expression.
    pub syntax: Syntax,
    /// It has back references.
    pub has_back: bool,
    /// It has look-around.
    pub has_look: bool,
}

/// Units of work that a step of a machine is.
const STEP_UNITS: usize = 4;

/// Counts the steps of a machine.
///
/// # Errors
/// 57014 if the statement was cancelled or its time is over.
#[inline]
fn took(steps: usize) -> Result<()> {
    work::step(steps * STEP_UNITS)
}
