//! EXPLAIN's lines.

use super::{ExplainOptions, ExplainTimes, ROW_COST, Shown, Told};

pub(super) fn write(top: &Shown<'_>, options: &ExplainOptions, times: ExplainTimes) -> Vec<String> {
    let mut out = Vec::new();
    node(top, 0, options, &mut out);
    if let Some(settings) = options.settings.as_ref().filter(|settings| !settings.is_empty()) {
        let shown: Vec<String> = settings.iter().map(|(name, value)| format!("{name} = '{value}'")).collect();
        out.push(format!("Settings: {}", shown.join(", ")));
    }
    if options.summary {
        out.push(format!("Planning Time: {:.3} ms", times.planning));
        if options.analyze {
            out.push(format!("Execution Time: {:.3} ms", times.execution));
        }
    }
    out
}

/// Writes a node; `indent` is the column of its first letter.
fn node(shown: &Shown<'_>, indent: usize, options: &ExplainOptions, out: &mut Vec<String>) {
    let mut line = match indent {
        0 => shown.title(),
        indent => format!("{}->  {}", " ".repeat(indent - 4), shown.title()),
    };
    if let Some(meter) = shown.metered()
        && options.costs
    {
        let (first, cost) = (meter.first * ROW_COST, meter.cost * ROW_COST);
        let rows = meter.rows.round();
        line.push_str(&format!("  (cost={first:.2}..{cost:.2} rows={rows:.0} width={})", meter.width));
    }
    if options.analyze {
        match shown.actual() {
            Some(actual) if actual.loops == 0 => line.push_str(" (never executed)"),
            Some(actual) => {
                line.push_str(" (actual ");
                if options.timing {
                    line.push_str(&format!("time={:.3}..{:.3} ", actual.first_ms, actual.total_ms));
                }
                line.push_str(&format!("rows={:.0} loops={})", actual.rows, actual.loops));
            }
            None => {}
        }
    }
    out.push(line);
    let inside = " ".repeat(indent + 2);
    for (name, value) in &shown.details {
        match value {
            Told::Text(text) => out.push(format!("{inside}{name}: {text}")),
            Told::Number(number) => out.push(format!("{inside}{name}: {number}")),
            Told::List(items) => out.push(format!("{inside}{name}: {}", items.join(", "))),
        }
    }
    for below in &shown.below {
        match &below.subplan {
            Some(name) => {
                out.push(format!("{inside}{name}"));
                node(below, indent + 8, options, out);
            }
            None => node(below, indent + 6, options, out),
        }
    }
}
