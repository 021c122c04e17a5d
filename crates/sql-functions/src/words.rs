//! Functions that SQL has words for: `SUBSTRING(x FROM 2)`, `TRIM(x)`, `x AT TIME ZONE y`.
//!
//! A call in words means the same as one in parentheses, and is shown as it was written. So such a function has a twin, which the binder
//! takes for a call in words.
//! Invariant: a twin differs from its function in [`Function::in_words`] alone, and is equal to it.

use std::sync::LazyLock;

use rustc_hash::FxHashMap;

use super::Function;
use super::registry::all_functions;

/// Those whose words are shown. `POSITION` and `EXTRACT` are not among them: nothing else is called by their names.
const NAMES: [&str; 9] =
    ["substring", "overlay", "btrim", "ltrim", "rtrim", "normalize", "is_normalized", "timezone", "overlaps"];

static TWINS: LazyLock<FxHashMap<u32, Function>> = LazyLock::new(|| {
    let spoken = all_functions().filter(|function| NAMES.contains(&function.name));
    spoken.map(|function| (function.oid, Function { in_words: true, ..*function })).collect()
});

/// The function of a call in words.
pub fn in_words(function: &'static Function) -> &'static Function {
    TWINS.get(&function.oid).filter(|twin| *twin == function).unwrap_or(function)
}
