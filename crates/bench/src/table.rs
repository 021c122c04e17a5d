//! A run as people read it: what was measured against what, a line per point, what was found afterwards.

use std::fmt::Write;

use crate::result::{Point, RunFile};
use crate::usage::Process;

/// Before the first point.
pub fn head(run: &RunFile) -> String {
    let mut out = String::new();
    let mut say = |name: &str, text: &str| writeln!(out, "{name:<14}{text}").expect("a string takes every character");
    say(&run.experiment, &format!("on {} ({})", run.label, run.target));
    say("server", &run.server.version);
    let durable = match run.server.durable {
        Some(true) => "; a commit is on the disk before it is acknowledged",
        Some(false) => "; A COMMIT MAY BE LOST after it is acknowledged",
        None => "",
    };
    let settings: Vec<String> = run.server.settings.iter().map(|(name, value)| format!("{name}={value}")).collect();
    say("", &(settings.join(" ") + durable));
    let settings: Vec<String> = run.settings.iter().map(|(name, value)| format!("{name}={value}")).collect();
    say("settings", &settings.join(" "));
    say("machine", &run.machine.name());
    if let Some(load) = &run.load {
        let rate = grouped(load.rows as f64 / load.rows_seconds.max(1e-9));
        let (rows, time, indexes) = (grouped(load.rows as f64), load.rows_seconds, load.index_seconds);
        say("load", &format!("{rows} rows in {time:.1} s ({rate} rows/s), indexes and statistics {indexes:.1} s"));
    }
    out.push('\n');
    let columns = ["clients", "tx/s", "stmts/s", "rows/s", "mean ms", "p50", "p90", "p95", "p99", "p99.9", "max"];
    let costs = ["server us/tx", "client us/tx", "KB/tx", "flush/tx"];
    let names: String = columns.iter().map(|name| format!("{name:>10}")).collect();
    let costs: String = costs.iter().map(|name| format!("{name:>14}")).collect();
    out + &format!("{:<20}{names}{costs}\n", "variant")
}

/// A point.
pub fn line(point: &Point) -> String {
    let latency = &point.latency;
    let mut out = format!("{:<20}{:>10}", point.variant, point.threads);
    for rate in [point.per_second, point.statements_per_second, point.rows_per_second] {
        write!(out, "{:>10}", grouped(rate)).expect("a string takes every character");
    }
    for time in [
        latency.mean_ms,
        latency.p50_ms,
        latency.p90_ms,
        latency.p95_ms,
        latency.p99_ms,
        latency.p999_ms,
        latency.max_ms,
    ] {
        write!(out, "{time:>10.2}").expect("a string takes every character");
    }
    let costs = [(point.server_us(), 1), (Some(point.client_us()), 1), (point.written_kb(), 2), (point.flushes(), 3)];
    for (cost, digits) in costs {
        let text = cost.map_or("?".to_string(), |cost| format!("{cost:.digits$}"));
        write!(out, "{text:>14}").expect("a string takes every character");
    }
    out.push('\n');
    for kind in &point.kinds {
        let l = &kind.latency;
        let share = 100.0 * kind.count as f64 / point.transactions.max(1) as f64;
        let times: String = [l.mean_ms, l.p50_ms, l.p90_ms, l.p95_ms, l.p99_ms, l.p999_ms, l.max_ms]
            .iter()
            .map(|t| format!("{t:>10.2}"))
            .collect();
        writeln!(out, "  {:<28}{:>10}{:>9.1}%{:>10}{times}", kind.name, grouped(kind.count as f64), share, "")
            .expect("a string takes every character");
    }
    let mut note = |text: String| writeln!(out, "  {text}").expect("a string takes every character");
    note(utilization(point));
    for (name, value) in &point.figures {
        note(format!("{name:<40}{}", figure(*value)));
    }
    if point.late > 0 {
        note(format!(
            "{} transactions were due and had not begun: the server did not keep up",
            grouped(point.late as f64)
        ));
    }
    for (state, count) in &point.retries {
        note(format!("{} retries after {state}", grouped(*count as f64)));
    }
    for (state, errors) in &point.errors {
        note(format!("{} errors {state}, the first: {}", grouped(errors.count as f64), errors.example));
    }
    out
}

/// Who has used the processors, user and system, and how much memory the server has, in a line.
fn utilization(point: &Point) -> String {
    let process = |process: &Process| {
        let us = |seconds: f64| figure(point.each(seconds * 1e6));
        let count = if process.count > 1 { format!(" ({})", process.count) } else { String::new() };
        format!("{}{count} {} + {}", process.name, us(process.user_seconds), us(process.system_seconds))
    };
    // What does next to nothing is in the results.
    let seen = |process: &&Process| process.user_seconds + process.system_seconds >= 0.005 * point.seconds;
    let all: Vec<String> = point.usage.processes.iter().filter(seen).map(process).collect();
    let memory = point.usage.memory_bytes.map_or("?".into(), |bytes| grouped(bytes as f64 / f64::from(1 << 20)));
    format!("user + system us/tx: {}; the server's memory: {memory} MiB", all.join(", "))
}

/// After the last point.
pub fn tail(run: &RunFile) -> String {
    let mut out = String::new();
    let mut say = |text: String| writeln!(out, "{text}").expect("a string takes every character");
    for (variant, peak) in peaks(run) {
        let (rate, clients) = (grouped(peak.per_second), peak.threads);
        say(format!(
            "peak   {variant}{}{rate} tx/s with {clients} clients",
            if variant.is_empty() { "" } else { ": " }
        ));
    }
    for verdict in &run.verdicts {
        let (word, found) = (if verdict.holds { "holds " } else { "BROKEN" }, &verdict.found);
        say(format!("{word} {}: {found}", verdict.says));
    }
    if !run.verdicts.is_empty() {
        let holding = run.verdicts.iter().filter(|verdict| verdict.holds).count();
        say(format!("data   {holding} of {} conditions hold", run.verdicts.len()));
    }
    for note in &run.notes {
        say(format!("note   {note}"));
    }
    if let Some(why) = &run.ended {
        say(format!("cut short: {why}"));
    }
    out
}

/// The fastest point of each variant that was measured with more than two numbers of clients.
fn peaks(run: &RunFile) -> Vec<(&str, &Point)> {
    let mut variants: Vec<&str> = run.points.iter().map(|point| point.variant.as_str()).collect();
    variants.dedup();
    let of = |variant: &&str| {
        let points: Vec<&Point> = run.points.iter().filter(|point| point.variant == *variant).collect();
        let mut threads: Vec<usize> = points.iter().map(|point| point.threads).collect();
        threads.dedup();
        let peak = points.into_iter().max_by(|a, b| a.per_second.total_cmp(&b.per_second))?;
        (threads.len() > 2).then_some(peak)
    };
    variants.iter().filter_map(|variant| Some((*variant, of(variant)?))).collect()
}

/// A figure with as many digits as say something.
pub fn figure(value: f64) -> String {
    match value.abs() {
        0.0 => "0".into(),
        1000.0.. => grouped(value),
        10.0.. => format!("{value:.1}"),
        _ => format!("{value:.3}"),
    }
}

/// A number without fraction, in groups of three digits.
pub fn grouped(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_and_digits_are_readable() {
        assert_eq!([0.0, 999.4, 1000.0, 1234567.0].map(grouped), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!([0.0, 0.25, 12.34, 84503.2].map(figure), ["0", "0.250", "12.3", "84,503"]);
    }
}
