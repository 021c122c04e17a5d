//! What EXPLAIN says in its structured forms: PostgreSQL's keys in PostgreSQL's order.

use super::{ExplainOptions, ExplainTimes, ROW_COST, Shown, Told};

/// A value.
pub(super) enum Value {
    Text(String),
    /// Number or truth value, as it is written.
    Bare(String),
    /// Parts that are called by a name of their own where lists have no brackets.
    List(&'static str, Vec<Fields>),
    Texts(Vec<String>),
    Object(Fields),
    /// Names and values that are not PostgreSQL's own words.
    Settings(Vec<(String, String)>),
}

pub(super) type Fields = Vec<(&'static str, Value)>;

/// All that is said of one statement.
pub(super) fn query(top: &Shown<'_>, options: &ExplainOptions, times: ExplainTimes) -> Fields {
    let mut answer: Fields = vec![("Plan", Value::Object(node(top, None, options)))];
    if let Some(settings) = options.settings.as_ref().filter(|settings| !settings.is_empty()) {
        answer.push(("Settings", Value::Settings(settings.clone())));
    }
    if options.summary {
        answer.push(("Planning Time", Value::Bare(format!("{:.3}", times.planning))));
    }
    if options.analyze {
        answer.push(("Triggers", Value::List("Trigger", Vec::new())));
        if options.summary {
            answer.push(("Execution Time", Value::Bare(format!("{:.3}", times.execution))));
        }
    }
    answer
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
    fields.push(("Parallel Aware", Value::Bare(shown.is_parallel.to_string())));
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
    fields.extend(shown.details.iter().map(|(name, told)| {
        let value = match told {
            Told::Text(text) => Value::Text(text.clone()),
            Told::Number(number) => Value::Bare(number.to_string()),
            Told::List(items) => Value::Texts(items.clone()),
        };
        (*name, value)
    }));
    if !shown.below.is_empty() {
        let below = shown.below.iter().map(|below| node(below, Some(below.relationship), options)).collect();
        fields.push(("Plans", Value::List("Plan", below)));
    }
    fields
}
