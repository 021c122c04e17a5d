//! Window functions proper: those that look at the rows around theirs.

use base::Oid;
use types::oid::*;

/// What a window function does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowKind {
    /// `row_number`: one by one.
    RowNumber,
    /// `rank`: rows equal in ORDER BY have the number of the first of them.
    Rank,
    /// `dense_rank`: like `rank`, without gaps.
    DenseRank,
    /// `percent_rank`
    PercentRank,
    /// `cume_dist`
    CumeDist,
    /// `ntile`
    Ntile,
    /// `lag`
    Lag,
    /// `lead`
    Lead,
    /// `first_value`
    FirstValue,
    /// `last_value`
    LastValue,
    /// `nth_value`
    NthValue,
}

impl WindowKind {
    /// Its name.
    pub fn name(self) -> &'static str {
        WINDOW_FUNCTIONS.iter().find(|f| f.kind == self).map_or("", |f| f.name)
    }

    /// Whether the rows before a row decide about it.
    pub fn numbers_only(self) -> bool {
        matches!(self, WindowKind::RowNumber | WindowKind::Rank | WindowKind::DenseRank)
    }
}

/// A window function.
#[derive(Debug)]
pub struct WindowFunction {
    /// OID.
    pub oid: u32,
    /// Name.
    pub name: &'static str,
    /// Argument types.
    pub args: &'static [Oid],
    /// Result type; pseudo-types follow the arguments.
    pub ret: Oid,
    /// What it does.
    pub kind: WindowKind,
}

const fn window(oid: u32, name: &'static str, args: &'static [Oid], ret: Oid, kind: WindowKind) -> WindowFunction {
    WindowFunction { oid, name, args, ret, kind }
}

/// The table.
#[rustfmt::skip]
static WINDOW_FUNCTIONS: &[WindowFunction] = &[
    window(3100, "row_number", &[], INT8, WindowKind::RowNumber),
    window(3101, "rank", &[], INT8, WindowKind::Rank),
    window(3102, "dense_rank", &[], INT8, WindowKind::DenseRank),
    window(3103, "percent_rank", &[], FLOAT8, WindowKind::PercentRank),
    window(3104, "cume_dist", &[], FLOAT8, WindowKind::CumeDist),
    window(3105, "ntile", &[INT4], INT4, WindowKind::Ntile),
    window(3106, "lag", &[ANYELEMENT], ANYELEMENT, WindowKind::Lag),
    window(3107, "lag", &[ANYELEMENT, INT4], ANYELEMENT, WindowKind::Lag),
    window(3108, "lag", &[ANYCOMPATIBLE, INT4, ANYCOMPATIBLE], ANYCOMPATIBLE, WindowKind::Lag),
    window(3109, "lead", &[ANYELEMENT], ANYELEMENT, WindowKind::Lead),
    window(3110, "lead", &[ANYELEMENT, INT4], ANYELEMENT, WindowKind::Lead),
    window(3111, "lead", &[ANYCOMPATIBLE, INT4, ANYCOMPATIBLE], ANYCOMPATIBLE, WindowKind::Lead),
    window(3112, "first_value", &[ANYELEMENT], ANYELEMENT, WindowKind::FirstValue),
    window(3113, "last_value", &[ANYELEMENT], ANYELEMENT, WindowKind::LastValue),
    window(3114, "nth_value", &[ANYELEMENT, INT4], ANYELEMENT, WindowKind::NthValue),
];

/// Window functions of a name.
pub fn window_functions_named(name: &str) -> impl Iterator<Item = &'static WindowFunction> {
    WINDOW_FUNCTIONS.iter().filter(move |f| f.name == name)
}
