//! Tables of a report, as rows of text: the page and the Markdown show the same.

use super::groups::{Comparison, Group, Sample, durability, isolation};
use crate::clock::date;
use crate::experiments::queries;
use crate::result::{Point, RunFile};
use crate::spread::Spread;
use crate::table::{figure, grouped};

/// A table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// Names of columns; those that begin with a `<` hold text, the others numbers.
    pub head: Vec<String>,
    /// Its lines.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    fn new(head: &[&str]) -> Table {
        Table { head: head.iter().map(|name| name.to_string()).collect(), rows: Vec::new() }
    }

    /// The name of a column, and whether it holds text.
    pub fn columns(&self) -> impl Iterator<Item = (&str, bool)> {
        self.head.iter().map(|name| name.strip_prefix('<').map_or((name.as_str(), false), |text| (text, true)))
    }
}

/// A figure with its spread, if it was measured several times.
pub fn spread(spread: Option<Spread>) -> String {
    match spread {
        None => "?".into(),
        Some(spread) => {
            let (least, greatest) = (figure(spread.min), figure(spread.max));
            let range = if least == greatest { String::new() } else { format!(" ({least}–{greatest})") };
            figure(spread.median) + &range
        }
    }
}

fn ratio(ratio: Option<f64>) -> String {
    ratio.map_or("?".into(), |ratio| format!("{ratio:.2}×"))
}

fn clients(sample: &Sample) -> String {
    format!("{}{}", sample.threads, if sample.short { " †" } else { "" })
}

/// Whether there are servers to be compared by their best throughput.
pub fn compares(all: &Comparison) -> bool {
    all.labels.len() > 1
}

/// Best throughput of each series of each group.
pub fn overview(all: &Comparison) -> Table {
    let against = format!("of {}", all.baseline);
    let mut table = Table::new(&["<measured", "<server", "best tx/s", "clients", &against, "p95 ms", "server µs/tx"]);
    for group in &all.groups {
        for (at, series) in group.series.iter().enumerate() {
            let Some(best) = series.best() else { continue };
            table.rows.push(vec![
                if at == 0 { group.title() } else { String::new() },
                series.name(),
                spread(Some(best.per_second())),
                clients(best),
                ratio(best_ratio(all, group, best)),
                spread(best.spread(|p| Some(p.latency.p95_ms))),
                spread(best.spread(Point::server_us)),
            ]);
        }
    }
    table
}

/// The best throughput beside the baseline's best, with whatever numbers of clients.
pub fn best_ratio(all: &Comparison, group: &Group, best: &Sample) -> Option<f64> {
    let base = group.of(&all.baseline)?.best()?.per_second().median;
    (base > 0.0).then(|| best.per_second().median / base)
}

/// A figure whose spread is that of the throughput.
fn middle(sample: &Sample, of: impl Fn(&Point) -> f64) -> String {
    sample.spread(|point| Some(of(point))).map_or("?".into(), |spread| figure(spread.median))
}

/// A count over all measurements.
fn counts(sample: &Sample, of: impl Fn(&Point) -> u64) -> String {
    grouped(sample.points.iter().map(of).sum::<u64>() as f64)
}

/// All figures of a group.
pub fn figures(all: &Comparison, group: &Group) -> Table {
    let against = format!("of {}", all.baseline);
    let mut table = Table::new(&[
        "clients",
        "<server",
        "tx/s",
        &against,
        "stmts/s",
        "rows/s",
        "mean ms",
        "p50 ms",
        "p95 ms",
        "p99 ms",
        "server µs/tx",
        "client µs/tx",
        "KB/tx",
        "flushes/tx",
        "retries",
        "errors",
    ]);
    let extra = group.figures();
    table.head.extend(extra.iter().cloned());
    for threads in group.threads() {
        for series in &group.series {
            let Some(sample) = series.at(threads) else { continue };
            let mut row = vec![
                clients(sample),
                series.name(),
                spread(Some(sample.per_second())),
                ratio(all.ratio(group, sample)),
                middle(sample, |p| p.statements_per_second),
                middle(sample, |p| p.rows_per_second),
                spread(sample.spread(|p| Some(p.latency.mean_ms))),
                spread(sample.spread(|p| Some(p.latency.p50_ms))),
                spread(sample.spread(|p| Some(p.latency.p95_ms))),
                spread(sample.spread(|p| Some(p.latency.p99_ms))),
                spread(sample.spread(Point::server_us)),
                spread(sample.spread(|p| Some(p.client_us()))),
                spread(sample.spread(Point::written_kb)),
                spread(sample.spread(Point::flushes)),
                counts(sample, |p| p.retries.values().sum()),
                counts(sample, |p| p.errors.values().map(|errors| errors.count).sum()),
            ];
            row.extend(extra.iter().map(|name| spread(sample.spread(|p| p.figures.get(name).copied()))));
            table.rows.push(row);
        }
    }
    table
}

/// Who has used the processors, and what the disks and memory have had to do, of the measurement in the middle.
pub fn utilization(group: &Group) -> Table {
    let mut table = Table::new(&[
        "clients",
        "<server",
        "<process",
        "count",
        "user µs/tx",
        "system µs/tx",
        "cores",
        "KB/tx",
        "flushes/tx",
        "memory MiB",
    ]);
    for threads in group.threads() {
        for series in &group.series {
            let Some((sample, point)) = series.at(threads).and_then(|sample| Some((sample, sample.middle()?))) else {
                continue;
            };
            let or_unknown = |value: Option<f64>| value.map_or("?".into(), figure);
            // Those that have done nothing are in the result.
            for process in point.usage.processes.iter().filter(|p| p.user_seconds + p.system_seconds > 0.0) {
                let us = |seconds: f64| figure(point.each(seconds * 1e6));
                let cores = (process.user_seconds + process.system_seconds) / point.seconds.max(1e-9);
                let count = if process.count == 0 { String::new() } else { process.count.to_string() };
                let mut row = vec![clients(sample), series.name(), process.name.clone(), count];
                row.extend([us(process.user_seconds), us(process.system_seconds), figure(cores)]);
                row.resize(table.head.len(), String::new());
                table.rows.push(row);
            }
            let cores = |seconds: Option<f64>| or_unknown(seconds.map(|seconds| seconds / point.seconds.max(1e-9)));
            let usage = &point.usage;
            let each = |seconds: Option<f64>| or_unknown(seconds.map(|seconds| point.each(seconds * 1e6)));
            let mut row = vec![clients(sample), series.name(), "the whole server".into()];
            row.push(usage.server_processes.map_or("?".into(), |count| count.to_string()));
            row.extend([each(usage.server_user_seconds), each(usage.server_system_seconds)]);
            row.extend([cores(usage.server_seconds()), or_unknown(point.written_kb()), or_unknown(point.flushes())]);
            row.push(or_unknown(usage.memory_bytes.map(|bytes| bytes as f64 / f64::from(1 << 20))));
            table.rows.push(row);
        }
    }
    table
}

/// Response times by kind of transaction; empty if there is one kind.
pub fn kinds(group: &Group) -> Table {
    let mut table = Table::new(&[
        "clients", "<server", "<kind", "count", "share", "mean ms", "p50 ms", "p90 ms", "p95 ms", "p99 ms", "p99.9 ms",
        "max ms",
    ]);
    for threads in group.threads() {
        for series in &group.series {
            let Some(sample) = series.at(threads) else { continue };
            let all: u64 = sample.kinds().iter().map(|kind| kind.count).sum();
            for kind in sample.kinds() {
                let l = &kind.latency;
                let mut row = vec![clients(sample), series.name(), kind.name.clone(), grouped(kind.count as f64)];
                row.push(format!("{:.1} %", 100.0 * kind.count as f64 / all.max(1) as f64));
                row.extend([l.mean_ms, l.p50_ms, l.p90_ms, l.p95_ms, l.p99_ms, l.p999_ms, l.max_ms].map(figure));
                table.rows.push(row);
            }
        }
    }
    table
}

/// Servers: a line for each that differs in what it says of itself.
pub fn servers(all: &Comparison) -> Table {
    let mut table = Table::new(&["<server", "<version", "<a commit", "<isolation", "<settings", "<address"]);
    for label in &all.labels {
        let mut seen: Vec<Vec<String>> = Vec::new();
        for run in all.runs.iter().filter(|run| run.label == *label) {
            let of = &run.server.settings;
            let settings: Vec<String> = of.iter().map(|(name, value)| format!("{name} = {value}")).collect();
            let row = vec![
                label.clone(),
                run.server.version.clone(),
                durability(run.server.durable).into(),
                isolation(run).unwrap_or_else(|| "not known".into()),
                settings.join(", "),
                run.target.clone(),
            ];
            if !seen.contains(&row) {
                seen.push(row);
            }
        }
        table.rows.extend(seen);
    }
    table
}

/// Runs: when, with which program and options, on which machine, and what became of each.
pub fn runs(all: &Comparison) -> Table {
    let mut table = Table::new(&["<experiment", "<server", "<began (UTC)", "<options", "points", "<data", "<end"]);
    for run in &all.runs {
        let options: Vec<String> = run.settings.iter().map(|(name, value)| format!("{name} {value}")).collect();
        table.rows.push(vec![
            run.experiment.clone(),
            run.label.clone(),
            date(run.started),
            options.join(", "),
            run.points.len().to_string(),
            verdict(run),
            run.ended.as_ref().map_or("complete".into(), |why| format!("CUT SHORT: {why}")),
        ]);
    }
    table
}

fn verdict(run: &RunFile) -> String {
    let broken: Vec<String> =
        run.verdicts.iter().filter(|v| !v.holds).map(|v| format!("BROKEN: {} ({})", v.says, v.found)).collect();
    match (run.verdicts.len(), broken.is_empty()) {
        (0, _) => "not verified".into(),
        (count, true) => format!("verified: {count} hold"),
        _ => broken.join("; "),
    }
}

/// The statements of `bench queries`, one by one.
pub fn queries(run: &RunFile) -> Table {
    let head = ["<statement", "<from", "rows", "PostgreSQL, ms", "Nyala, ms", "ratio"];
    Table { rows: queries::figures(&run.queries), ..Table::new(&head) }
}

/// What has to be seen before any figure: broken data and runs that were cut short.
pub fn warnings(all: &Comparison) -> Vec<String> {
    let mut warnings = Vec::new();
    for run in &all.runs {
        let name = format!("{} on {}, {}", run.experiment, run.label, date(run.started));
        if run.verdicts.iter().any(|v| !v.holds) {
            warnings.push(format!("{name}: the data is wrong. {}", verdict(run)));
        }
        if let Some(why) = &run.ended {
            warnings.push(format!("{name}: cut short. {why}"));
        }
        let bad = run.queries.iter().filter(|judged| !judged.is_good()).count();
        if bad > 0 {
            warnings
                .push(format!("{name}: {bad} statements failed, gave other rows than PostgreSQL or took far longer"));
        }
        if run.points.iter().any(|point| point.transactions == 0) {
            warnings.push(format!("{name}: nothing was measured at a point"));
        }
    }
    for label in &all.labels {
        if all.runs.iter().any(|run| run.label == *label && run.server.durable == Some(false)) {
            warnings.push(format!("{label}: not durable, a commit may be lost after it is acknowledged"));
        }
    }
    warnings
}

/// Programs that measured, machines, notes of experiments, each once.
pub fn facts(all: &Comparison) -> Vec<(&'static str, String)> {
    let mut facts: Vec<(&'static str, String)> = Vec::new();
    let mut say = |name: &'static str, text: String| {
        if !facts.contains(&(name, text.clone())) {
            facts.push((name, text));
        }
    };
    for run in &all.runs {
        say("machine", run.machine.name());
    }
    for run in &all.runs {
        say("program", run.program.clone());
    }
    let times = all.runs.iter().map(|run| run.started);
    if let (Some(first), Some(last)) = (times.clone().min(), times.max()) {
        say("measured", format!("{} runs, begun from {} to {} UTC", all.runs.len(), date(first), date(last)));
    }
    say("baseline", format!("{}: ratios are throughput in comparison with it", all.baseline));
    for run in &all.runs {
        for note in &run.notes {
            say("note", format!("{}: {note}", run.experiment));
        }
    }
    facts
}
