//! EXPLAIN (FORMAT JSON): PostgreSQL's keys in PostgreSQL's order and layout.

use super::{ExplainOptions, ExplainTimes, ROW_COST, Shown};

/// A value as JSON writes it.
enum Value {
    Text(String),
    /// Number or truth value, as it is written.
    Bare(String),
    List(Vec<Fields>),
    Object(Fields),
}

type Fields = Vec<(&'static str, Value)>;

pub(super) fn write(top: &Shown<'_>, options: &ExplainOptions, times: ExplainTimes) -> String {
    let mut answer: Fields = vec![("Plan", Value::Object(node(top, None, options)))];
    if options.summary {
        answer.push(("Planning Time", Value::Bare(format!("{:.3}", times.planning))));
    }
    if options.analyze {
        answer.push(("Triggers", Value::List(Vec::new())));
        if options.summary {
            answer.push(("Execution Time", Value::Bare(format!("{:.3}", times.execution))));
        }
    }
    let mut out = String::new();
    value(&Value::List(vec![answer]), 0, &mut out);
    out
}

fn node(shown: &Shown<'_>, relationship: Option<&str>, options: &ExplainOptions) -> Fields {
    let mut fields: Fields = vec![("Node Type", Value::Text(shown.kind.to_string()))];
    let strategy =
        shown.properties.iter().filter(|(name, _)| matches!(*name, "Strategy" | "Partial Mode" | "Operation"));
    fields.extend(strategy.map(|(name, text)| (*name, Value::Text(text.clone()))));
    if let Some(relationship) = relationship {
        fields.push(("Parent Relationship", Value::Text(relationship.to_string())));
    }
    if let Some(name) = &shown.subplan {
        fields.push(("Subplan Name", Value::Text(name.clone())));
    }
    fields.push(("Parallel Aware", Value::Bare("false".to_string())));
    fields.push(("Async Capable", Value::Bare("false".to_string())));
    let others =
        shown.properties.iter().filter(|(name, _)| !matches!(*name, "Strategy" | "Partial Mode" | "Operation"));
    fields.extend(others.map(|(name, text)| (*name, Value::Text(text.clone()))));
    let number = |number: f64, digits: usize| Value::Bare(format!("{number:.digits$}"));
    if let Some(meter) = shown.metered()
        && options.costs
    {
        fields.push(("Startup Cost", number(meter.first * ROW_COST, 2)));
        fields.push(("Total Cost", number(meter.cost * ROW_COST, 2)));
        fields.push(("Plan Rows", number(meter.rows.round(), 0)));
        fields.push(("Plan Width", number(meter.width as f64, 0)));
    }
    if let Some(actual) = shown.actual()
        && options.analyze
    {
        if options.timing {
            fields.push(("Actual Startup Time", number(actual.first_ms, 3)));
            fields.push(("Actual Total Time", number(actual.total_ms, 3)));
        }
        fields.push(("Actual Rows", number(actual.rows, 0)));
        fields.push(("Actual Loops", number(actual.loops as f64, 0)));
    }
    fields.extend(shown.details.iter().map(|(name, text)| (*name, Value::Text(text.clone()))));
    if !shown.below.is_empty() {
        let below = shown.below.iter().map(|below| node(below, Some(below.relationship), options)).collect();
        fields.push(("Plans", Value::List(below)));
    }
    fields
}

fn value(of: &Value, indent: usize, out: &mut String) {
    match of {
        Value::Text(text) => quoted(text, out),
        Value::Bare(text) => out.push_str(text),
        Value::Object(fields) => object(fields, indent, out),
        Value::List(items) => {
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

fn quoted(text: &str, out: &mut String) {
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
