//! EXPLAIN (FORMAT XML), laid out as PostgreSQL does.

use super::tree::{Fields, Value};

pub(super) fn write(query: &Fields) -> String {
    let mut out = String::from("<explain xmlns=\"http://www.postgresql.org/2009/explain\">");
    element("Query", &|out| object(query, 4, out), 2, &mut out);
    out.push_str("\n</explain>");
    out
}

fn line(indent: usize, out: &mut String) {
    out.push('\n');
    out.push_str(&" ".repeat(indent));
}

/// An element whose parts stand on lines of their own.
fn element(name: &str, inside: &dyn Fn(&mut String), indent: usize, out: &mut String) {
    line(indent, out);
    out.push_str(&format!("<{name}>"));
    inside(out);
    line(indent, out);
    out.push_str(&format!("</{name}>"));
}

fn leaf(name: &str, text: &str, indent: usize, out: &mut String) {
    line(indent, out);
    out.push_str(&format!("<{name}>"));
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\r' => out.push_str("&#x0d;"),
            c => out.push(c),
        }
    }
    out.push_str(&format!("</{name}>"));
}

fn object(fields: &Fields, indent: usize, out: &mut String) {
    for (name, value) in fields {
        let tag = name.replace(' ', "-");
        match value {
            Value::Text(text) | Value::Bare(text) => leaf(&tag, text, indent, out),
            Value::List(each, items) => {
                let all = |out: &mut String| {
                    items.iter().for_each(|item| element(each, &|out| object(item, indent + 4, out), indent + 2, out));
                };
                element(&tag, &all, indent, out);
            }
            Value::Texts(items) => {
                let all = |out: &mut String| items.iter().for_each(|text| leaf("Item", text, indent + 2, out));
                element(&tag, &all, indent, out);
            }
            Value::Object(fields) => element(&tag, &|out| object(fields, indent + 2, out), indent, out),
            Value::Settings(settings) => {
                let all = |out: &mut String| {
                    settings.iter().for_each(|(name, text)| leaf(name, text, indent + 2, out));
                };
                element(&tag, &all, indent, out);
            }
        }
    }
}
