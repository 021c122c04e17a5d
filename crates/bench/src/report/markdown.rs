//! A report as Markdown, to be pasted where people talk about it.

use std::fmt::Write;

use super::groups::Comparison;
use super::rows::{self, Table};
use crate::experiments::queries;

/// The whole report.
pub fn page(all: &Comparison, title: &str) -> String {
    let mut out = format!("# {}\n\n", escape(title));
    let mut put = |text: String| out.write_str(&text).expect("a string takes every character");
    for warning in rows::warnings(all) {
        put(format!("- **Warning:** {}\n", escape(&warning)));
    }
    for (name, text) in rows::facts(all) {
        put(format!("- {name}: {}\n", escape(&text)));
    }
    put(format!("\n{}", table(&rows::servers(all))));
    if rows::compares(all) {
        put(format!("\n## Best throughput\n\n{}", table(&rows::overview(all))));
    }
    for group in &all.groups {
        put(format!("\n## {}\n\n", escape(&group.title())));
        let settings: Vec<String> = group.settings.iter().map(|(name, value)| format!("{name} {value}")).collect();
        if !settings.is_empty() {
            put(format!("{}\n\n", escape(&settings.join(", "))));
        }
        put(table(&rows::figures(all, group)));
        put(format!("\nUtilization\n\n{}", table(&rows::utilization(group))));
        let kinds = rows::kinds(group);
        if !kinds.rows.is_empty() {
            put(format!("\n{}", table(&kinds)));
        }
    }
    for run in all.runs.iter().filter(|run| !run.queries.is_empty()) {
        let summary = queries::summary(&run.queries);
        put(format!("\n## Queries on {}\n\n```\n{}```\n\n", escape(&run.label), summary.trim_start()));
        put(table(&rows::queries(run)));
        let worst = queries::worst(&run.queries);
        if !worst.is_empty() {
            put(format!("\n```\n{}```\n", worst.trim_start()));
        }
    }
    put(format!("\n## Runs\n\n{}", table(&rows::runs(all))));
    if all.runs.iter().any(|run| run.ended.is_some()) {
        put("\n† with the last point of a run that was cut short\n".into());
    }
    out
}

/// A table.
pub fn table(table: &Table) -> String {
    let names: Vec<String> = table.columns().map(|(name, _)| escape(name)).collect();
    let rules: Vec<&str> = table.columns().map(|(_, text)| if text { "---" } else { "--:" }).collect();
    let mut out = format!("| {} |\n|{}|\n", names.join(" | "), rules.join("|"));
    for row in &table.rows {
        let cells: Vec<String> = row.iter().map(|cell| escape(cell)).collect();
        writeln!(out, "| {} |", cells.join(" | ")).expect("a string takes every character");
    }
    out
}

/// What comes from files is text and nothing else.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' | '\r' => out.push(' '),
            '<' => out.push_str("&lt;"),
            '&' => out.push_str("&amp;"),
            '|' | '\\' | '`' | '*' | '_' | '[' | ']' | '#' | '!' | '~' => out.extend(['\\', character]),
            _ => out.push(character),
        }
    }
    out
}
