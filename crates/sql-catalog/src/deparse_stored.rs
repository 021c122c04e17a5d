//! The text that a view was made from, for queries that have no other form: its relations are named so that the text means the
//! same under the search path of its reader, as a dump does with none.

use base::Oid;
use engine_api::{CatalogObject, TableDesc, ViewDesc};
use rupg_sql::nodes::RangeVar;
use sql_functions::EvalContext;
use sql_parse::names::quote_name;

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

/// A relation that may have been renamed since, or its columns, of which the text speaks by the names of then.
fn by_names_of_then(name: String, table: &TableDesc, var: &RangeVar, view: &ViewDesc) -> String {
    let own = var.relname.as_deref().unwrap_or_default();
    let known = view.relations.iter().find(|relation| relation.oid == table.oid);
    let then = |number: i16| known?.columns.iter().find(|(known, _)| *known == number).map(|(_, name)| name);
    let columns: Vec<_> = table.live_columns().map(|c| (&c.name, then(c.number).unwrap_or(&c.name))).collect();
    let listed = |each: &dyn Fn(&(&String, &String)) -> String| columns.iter().map(each).collect::<Vec<_>>().join(", ");
    match (columns.iter().any(|(now, then)| now != then), var.alias.is_some()) {
        (false, false) if table.name != own => format!("{name} AS {}", quote_name(own)),
        (false, _) => name,
        (true, false) => format!("{name} AS {}({})", quote_name(own), listed(&|(_, then)| quote_name(then))),
        (true, true) => {
            let each = |(now, then): &(&String, &String)| format!("{} AS {}", quote_name(now), quote_name(then));
            format!("(SELECT {} FROM {name})", listed(&each))
        }
    }
}

/// Where the names end that stand before another one, with the dot.
fn qualifier_end(text: &str, at: usize, parts: usize) -> Option<usize> {
    let end = name_end(text, at, parts)?;
    let rest = text[end..].trim_start().strip_prefix('.')?.trim_start();
    Some(text.len() - rest.len())
}

/// The text of a view whose relations stand at these places, and columns with the names before that of their relation at those
/// ([`sql_bind::BindContext::qualifiers`]).
pub(super) fn stored_text(
    view: &ViewDesc,
    places: &[(RangeVar, Oid)],
    qualifiers: &[(i32, usize, Oid)],
    cx: &dyn EvalContext,
) -> String {
    let (catalog, identity) = (cx.catalog(), cx.identity());
    let mut text = sql_bind::stored::text(&view.query, &catalog, None).into_owned();
    let mut changes: Vec<(usize, usize, String)> = Vec::new();
    for (var, oid) in places {
        let parts = 1 + usize::from(var.schemaname.is_some()) + usize::from(var.catalogname.is_some());
        let Ok(at) = usize::try_from(var.location) else { continue };
        let Some(end) = name_end(&text, at, parts) else { continue };
        let name = super::relation_text(&catalog, &identity.search_path, *oid);
        let own = var.relname.as_deref().unwrap_or_default();
        let shown = match catalog.get(*oid).map(|object| &**object) {
            Some(CatalogObject::Table(table)) => by_names_of_then(name, table, var, view),
            Some(object) if var.alias.is_none() && object.name() != own => format!("{name} AS {}", quote_name(own)),
            _ => name,
        };
        changes.push((at, end, shown));
    }
    // A relation that has been renamed or moved is found by its name of then alone.
    let is_as_then = |oid: Oid| {
        let object = catalog.get(oid)?;
        let schema = catalog.get(object.namespace().1)?;
        let then = view.relations.iter().find(|relation| relation.oid == oid)?;
        Some(then.schema_name == schema.name() && then.name == object.name())
    };
    for &(at, parts, _) in qualifiers.iter().filter(|(_, _, oid)| is_as_then(*oid) == Some(false)) {
        let Ok(at) = usize::try_from(at) else { continue };
        let Some(end) = qualifier_end(&text, at, parts) else { continue };
        changes.push((at, end, String::new()));
    }
    changes.sort_by_key(|(at, ..)| std::cmp::Reverse(*at));
    changes.dedup_by_key(|(at, ..)| *at);
    for (at, end, shown) in changes {
        text.replace_range(at..end, &shown);
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
