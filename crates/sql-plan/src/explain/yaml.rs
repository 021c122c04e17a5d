//! EXPLAIN (FORMAT YAML), laid out as PostgreSQL does.

use super::json::quoted;
use super::tree::{Fields, Value};

pub(super) fn write(query: &Fields) -> String {
    let mut out = String::new();
    item(query, 0, &mut out);
    out
}

/// An object that is one of a list: its first line has the dash.
fn item(fields: &Fields, indent: usize, out: &mut String) {
    for (number, (name, value)) in fields.iter().enumerate() {
        if !out.is_empty() {
            out.push('\n');
        }
        out.push_str(&" ".repeat(indent));
        out.push_str(if number == 0 { "- " } else { "  " });
        field(name, value, indent + 2, out);
    }
}

fn field(name: &str, value: &Value, indent: usize, out: &mut String) {
    out.push_str(name);
    out.push_str(": ");
    let line = |indent: usize, out: &mut String| {
        out.push('\n');
        out.push_str(&" ".repeat(indent));
    };
    match value {
        Value::Text(text) => quoted(text, out),
        Value::Bare(text) => out.push_str(text),
        Value::List(_, items) => items.iter().for_each(|fields| item(fields, indent + 2, out)),
        Value::Texts(items) => {
            for text in items {
                line(indent + 2, out);
                out.push_str("- ");
                quoted(text, out);
            }
        }
        Value::Object(fields) => {
            for (name, value) in fields {
                line(indent + 2, out);
                field(name, value, indent + 2, out);
            }
        }
        Value::Settings(settings) => {
            for (name, text) in settings {
                line(indent + 2, out);
                out.push_str(name);
                out.push_str(": ");
                quoted(text, out);
            }
        }
    }
}
