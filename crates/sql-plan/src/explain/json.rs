//! EXPLAIN (FORMAT JSON), laid out as PostgreSQL does.

use super::tree::{Fields, Value};

pub(super) fn write(query: Fields) -> String {
    let mut out = String::new();
    value(&Value::List("Query", vec![query]), 0, &mut out);
    out
}

fn value(of: &Value, indent: usize, out: &mut String) {
    match of {
        Value::Text(text) => quoted(text, out),
        Value::Bare(text) => out.push_str(text),
        Value::Object(fields) => object(fields, indent, out),
        Value::List(_, items) => {
            out.push('[');
            for (number, item) in items.iter().enumerate() {
                out.push_str(if number > 0 { ",\n" } else { "\n" });
                out.push_str(&" ".repeat(indent + 2));
                object(item, indent + 2, out);
            }
            out.push('\n');
            out.push_str(&" ".repeat(indent));
            out.push(']');
        }
        Value::Texts(items) => {
            out.push('[');
            for (number, item) in items.iter().enumerate() {
                out.push_str(if number > 0 { ", " } else { "" });
                quoted(item, out);
            }
            out.push(']');
        }
        Value::Settings(settings) => {
            out.push('{');
            for (number, (name, text)) in settings.iter().enumerate() {
                out.push_str(if number > 0 { ",\n" } else { "\n" });
                out.push_str(&" ".repeat(indent + 2));
                quoted(name, out);
                out.push_str(": ");
                quoted(text, out);
            }
            out.push('\n');
            out.push_str(&" ".repeat(indent));
            out.push('}');
        }
    }
}

fn object(fields: &Fields, indent: usize, out: &mut String) {
    out.push('{');
    for (number, (name, of)) in fields.iter().enumerate() {
        out.push_str(if number > 0 { ",\n" } else { "\n" });
        out.push_str(&" ".repeat(indent + 2));
        quoted(name, out);
        out.push_str(": ");
        value(of, indent + 2, out);
    }
    out.push('\n');
    out.push_str(&" ".repeat(indent));
    out.push('}');
}

/// A text between quotes, as JSON and YAML write it.
pub(super) fn quoted(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            c if (c as u32) < 0x20 => out.push_str(&format!("\\u{:04x}", c as u32)),
            c => out.push(c),
        }
    }
    out.push('"');
}
