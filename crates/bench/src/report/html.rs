//! A report as one page.

use std::fmt::Write;

use super::charts;
use super::groups::Comparison;
use super::rows::{self, Table};
use crate::experiments::queries;

const STYLE: &str = include_str!("page.css");

/// The whole page.
pub fn page(all: &Comparison, title: &str) -> String {
    let name = escape(title);
    let mut out = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{name}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n\
         <main>\n<h1>{name}</h1>\n"
    );
    let mut put = |text: &str| out.write_str(text).expect("a string takes every character");
    put(&warnings(all));
    put("<dl class=\"facts\">\n");
    for (name, text) in rows::facts(all) {
        put(&format!("<dt>{}</dt><dd>{}</dd>\n", escape(name), escape(&text)));
    }
    put("</dl>\n");
    put(&table(&rows::servers(all)));
    put(&contents(all));
    if rows::compares(all) {
        put("<h2 id=\"best\">Best throughput</h2>\n");
        let mut experiments: Vec<&str> = all.groups.iter().map(|group| group.experiment.as_str()).collect();
        experiments.dedup();
        put("<div class=\"charts\">\n");
        for experiment in experiments {
            let chart = charts::ratios(all, experiment);
            if !chart.is_empty() {
                put(&format!("<figure>{chart}</figure>\n"));
            }
        }
        put("</div>\n");
        put(&details("the figures", &rows::overview(all)));
    }
    for (at, group) in all.groups.iter().enumerate() {
        put(&format!("<section>\n<h2 id=\"g{at}\">{}</h2>\n", escape(&group.title())));
        let settings: Vec<String> = group.settings.iter().map(|(name, value)| format!("{name} {value}")).collect();
        put(&format!("<p class=\"settings\">{}</p>\n<div class=\"charts\">\n", escape(&settings.join(", "))));
        for chart in charts::of(group) {
            put(&format!("<figure>{chart}</figure>\n"));
        }
        put("</div>\n");
        put(&details("the figures", &rows::figures(all, group)));
        put("<h3>Utilization</h3>\n<div class=\"charts\">\n");
        for chart in charts::utilization(group) {
            put(&format!("<figure>{chart}</figure>\n"));
        }
        put("</div>\n");
        put(&details("processors by process, disks and memory", &rows::utilization(group)));
        let kinds = rows::kinds(group);
        if !kinds.rows.is_empty() {
            put(&details("by kind of transaction", &kinds));
        }
        put("</section>\n");
    }
    for (at, run) in all.runs.iter().enumerate().filter(|(_, run)| !run.queries.is_empty()) {
        put(&format!("<section>\n<h2 id=\"q{at}\">Queries on {}</h2>\n", escape(&run.label)));
        put(&format!("<pre>{}</pre>\n", escape(queries::summary(&run.queries).trim_start())));
        put(&details("statement by statement", &rows::queries(run)));
        let worst = escape(queries::worst(&run.queries).trim_start());
        put(&format!(
            "<details><summary>the worst, with both plans</summary>\n<pre>{worst}</pre>\n</details>\n</section>\n"
        ));
    }
    put("<h2 id=\"runs\">Runs</h2>\n");
    put(&table(&rows::runs(all)));
    put(LEGEND);
    put("</main>\n</body>\n</html>\n");
    out
}

/// A chart as a picture of its own, with the colours of the page.
pub fn picture(chart: &str) -> String {
    let style = format!("<style>\n{STYLE}svg {{ background: var(--paper); }}\n</style>");
    let named = chart.replacen("<svg ", "<svg xmlns=\"http://www.w3.org/2000/svg\" ", 1);
    match named.find("<title>") {
        Some(at) => format!("{}{style}{}", &named[..at], &named[at..]),
        None => named,
    }
}

const LEGEND: &str = "<p class=\"settings\">Dots are medians over measurements of the same, whiskers go from the least to the greatest. \
                      Hollow dots and † are points with the end of a run that was cut short. Response times hold all attempts of a \
                      transaction. Curves over seconds are of the measurement whose throughput is in the middle.</p>\n";

fn warnings(all: &Comparison) -> String {
    let warnings = rows::warnings(all);
    if warnings.is_empty() {
        return String::new();
    }
    let items: String = warnings.iter().map(|warning| format!("<li>{}</li>\n", escape(warning))).collect();
    format!("<ul class=\"warnings\">\n{items}</ul>\n")
}

fn contents(all: &Comparison) -> String {
    let link = |(at, group): (usize, &super::groups::Group)| {
        format!("<li><a href=\"#g{at}\">{}</a></li>\n", escape(&group.title()))
    };
    let best = if rows::compares(all) { "<li><a href=\"#best\">Best throughput</a></li>\n" } else { "" };
    let groups = all.groups.iter().enumerate().map(link);
    let asked = all.runs.iter().enumerate().filter(|(_, run)| !run.queries.is_empty());
    let asked = asked.map(|(at, run)| format!("<li><a href=\"#q{at}\">Queries on {}</a></li>\n", escape(&run.label)));
    let items: String = groups.chain(asked).collect();
    format!("<nav><ul>\n{best}{items}<li><a href=\"#runs\">Runs</a></li>\n</ul></nav>\n")
}

fn details(title: &str, rows: &Table) -> String {
    format!("<details><summary>{}</summary>\n{}</details>\n", escape(title), table(rows))
}

fn table(table: &Table) -> String {
    let class = |text: bool| if text { " class=\"t\"" } else { "" };
    let columns: Vec<(&str, bool)> = table.columns().collect();
    let head: String =
        columns.iter().map(|(name, text)| format!("<th{}>{}</th>", class(*text), escape(name))).collect();
    let mut out = format!("<div class=\"wide\"><table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n");
    for row in &table.rows {
        let cell = |(cell, (_, text)): (&String, &(&str, bool))| format!("<td{}>{}</td>", class(*text), escape(cell));
        let cells: String = row.iter().zip(&columns).map(cell).collect();
        writeln!(out, "<tr>{cells}</tr>").expect("a string takes every character");
    }
    out + "</tbody>\n</table></div>\n"
}

/// What comes from files is text and nothing else.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // No character that HTML forbids.
            control if control.is_control() && !matches!(control, '\n' | '\t') => out.push('\u{fffd}'),
            other => out.push(other),
        }
    }
    out
}
