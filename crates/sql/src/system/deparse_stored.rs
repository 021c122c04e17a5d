//! The text that a view was made from, for queries that have no other form: its relations are named so that the text means the
//! same under the search path of whoever reads it, as a dump does with none.

use base::Oid;
use engine_api::ViewDesc;
use rupg_sql::nodes::RangeVar;

use crate::ddl::quote_name;
use crate::functions::EvalContext;

/// Where the identifier at `at` ends.
fn identifier_end(text: &str, at: usize) -> usize {
    let bytes = text.as_bytes();
    if bytes.get(at) != Some(&b'"') {
        let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | 0x80..);
        return at + bytes[at..].iter().take_while(|byte| is_part(byte)).count();
    }
    let mut end = at + 1;
    while end < bytes.len() {
        end += 1;
        if bytes[end - 1] == b'"' {
            if bytes.get(end) != Some(&b'"') {
                break;
            }
            end += 1;
        }
    }
    end
}

/// Where a name of so many parts ends; `None` if the text there is no such name.
fn name_end(text: &str, at: usize, parts: usize) -> Option<usize> {
    let mut at = at;
    for part in 0..parts {
        if part > 0 {
            let rest = text.get(at..)?.trim_start().strip_prefix('.')?.trim_start();
            at = text.len() - rest.len();
        }
        let end = identifier_end(text, at);
        if end == at {
            return None;
        }
        at = end;
    }
    Some(at)
}

/// The text of a view whose relations stand at these places.
pub(super) fn stored_text(view: &ViewDesc, places: &[(RangeVar, Oid)], cx: &dyn EvalContext) -> String {
    let mut text = view.query.clone();
    let (catalog, identity) = (cx.catalog(), cx.identity());
    let mut places: Vec<_> = places.iter().collect();
    places.sort_by_key(|(var, _)| std::cmp::Reverse(var.location));
    places.dedup_by_key(|(var, _)| var.location);
    for (var, oid) in places {
        let parts = 1 + usize::from(var.schemaname.is_some()) + usize::from(var.catalogname.is_some());
        let Ok(at) = usize::try_from(var.location) else { continue };
        let Some(end) = name_end(&text, at, parts) else { continue };
        let mut name = super::relation_text(&catalog, &identity.search_path, *oid);
        let own = var.relname.as_deref().unwrap_or_default();
        if var.alias.is_none() && catalog.get(*oid).is_some_and(|object| object.name() != own) {
            // It was renamed, and the text speaks of its columns by the name of then.
            name = format!("{name} AS {}", quote_name(own));
        }
        text.replace_range(at..end, &name);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::name_end;

    #[test]
    fn names_end_where_they_end() {
        for (text, parts, name) in [
            ("abc d", 1, "abc"),
            ("abc,d", 1, "abc"),
            ("a . \"b.\"\"c\" x", 2, "a . \"b.\"\"c\""),
            ("täxt", 1, "täxt"),
            ("\"a\"", 1, "\"a\""),
        ] {
            assert_eq!(name_end(text, 0, parts), Some(name.len()), "{text}");
        }
        assert_eq!(name_end("a b", 0, 2), None);
        assert_eq!(name_end("(", 0, 1), None);
        assert_eq!(name_end("\"a", 0, 1), Some(2));
    }
}
