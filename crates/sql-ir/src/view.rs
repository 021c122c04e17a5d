//! Options of views that change what a statement over one may do.

use engine_api::TableDesc;

/// Whether what is outside of a view may not be tested on the rows that it hides.
pub fn is_barrier(view: &TableDesc) -> bool {
    has_option(view, "security_barrier")
}

/// Whether what a view is over is read in the name of who asks, not of its owner.
pub fn runs_as_invoker(view: &TableDesc) -> bool {
    has_option(view, "security_invoker")
}

/// Whether an option of a view is on, by any spelling of it.
fn has_option(view: &TableDesc, option: &str) -> bool {
    let is_on = |value: &str| {
        let word = value.to_ascii_lowercase();
        matches!(&*word, "on" | "1") || !word.is_empty() && ("true".starts_with(&*word) || "yes".starts_with(&*word))
    };
    view.options.iter().any(|(name, value)| name == option && is_on(value))
}
