//! Which charts a group has.

use super::chart::{self, Across, Bar, Column, Dot, Line, Part, Unit};
use super::groups::{Comparison, Group, Sample, Series};
use super::rows;
use crate::result::{Point, Second};
use crate::table::figure;

/// A series second by second is worth a picture from here on.
const SECONDS: usize = 3;
/// Columns are for so many numbers of clients.
const CATEGORIES: usize = 12;

/// All of a group.
pub fn of(group: &Group) -> Vec<String> {
    let mut all = vec![
        over_clients(group, "Transactions per second", Unit::Count, |p| Some(p.per_second)),
        over_clients(group, "Response time p95 (ms)", Unit::Time, |p| Some(p.latency.p95_ms)),
        over_clients(group, "Response time p99 (ms)", Unit::Time, |p| Some(p.latency.p99_ms)),
    ];
    let at = busiest(group);
    let title = format!("Transactions per second, {at} clients");
    all.push(over_time(group, at, &title, Unit::Count, |s| Some(s.per_second)));
    all.retain(|chart| !chart.is_empty());
    all
}

/// What a group's transactions cost, and how that goes over time at the number of clients with most throughput.
pub fn utilization(group: &Group) -> Vec<String> {
    let at = busiest(group);
    let over = |what: &str, unit: Unit, of: fn(&Second) -> Option<f64>| {
        over_time(group, at, &format!("{what}, {at} clients"), unit, of)
    };
    let mut all = vec![
        costs(group),
        over("Cores that the server keeps busy", Unit::Count, |s| s.server_cores),
        over("Cores that the server keeps busy in the kernel", Unit::Count, |s| s.server_system_cores),
        over("Cores that the generator keeps busy", Unit::Count, |s| s.client_cores),
        over("Bytes written in a second", Unit::Bytes, |s| s.written_per_second),
        over("Flushes of disks in a second", Unit::Count, |s| s.flushes_per_second),
        over("Memory of the server", Unit::Bytes, |s| Some(s.memory_bytes? as f64)),
    ];
    all.retain(|chart| !chart.is_empty());
    all
}

/// Best throughput of all groups of an experiment, in comparison with the baseline's.
pub fn ratios(all: &Comparison, experiment: &str) -> String {
    let groups = all.groups.iter().filter(|group| group.experiment == experiment);
    let groups: Vec<_> = groups.filter_map(|group| Some((group.short_title(), bars_of(all, group)?))).collect();
    if groups.is_empty() {
        return String::new();
    }
    let title = format!("{experiment}: best throughput, {} = 1 (transactions per second)", all.baseline);
    chart::bars(&title, Unit::Ratio, &groups)
}

/// Best throughput of all that was measured, but for the baseline's, in one picture.
pub fn summary(all: &Comparison) -> String {
    let others = |group: &Group| {
        let mut bars = bars_of(all, group)?;
        let baseline = group.of(&all.baseline).map(Series::name);
        bars.retain(|bar| Some(&bar.name) != baseline.as_ref());
        (!bars.is_empty()).then(|| (group.title(), bars))
    };
    let groups: Vec<_> = all.groups.iter().filter_map(others).collect();
    if groups.is_empty() {
        return String::new();
    }
    chart::bars(&format!("Best throughput, {} = 1 (transactions per second)", all.baseline), Unit::Ratio, &groups)
}

/// A bar for the best throughput of each series; `None` without the baseline's.
fn bars_of(all: &Comparison, group: &Group) -> Option<Vec<Bar>> {
    let base = group.of(&all.baseline).and_then(Series::best)?.per_second().median;
    let bar = |series: &Series| {
        let best = series.best()?;
        let (spread, value) = (best.per_second(), rows::best_ratio(all, group, best)?);
        let range = spread.range().map(|(min, max)| (min / base, max / base));
        Some(Bar {
            name: series.name(),
            slot: series.slot,
            value,
            spread: range,
            text: format!("{value:.2}× ({})", figure(spread.median)),
        })
    };
    Some(group.series.iter().filter_map(bar).collect())
}

fn dot(sample: &Sample, figure: impl Fn(&Point) -> Option<f64>) -> Option<Dot> {
    let spread = sample.spread(figure)?;
    let x = sample.threads as f64;
    Some(Dot { x, y: spread.median, spread: spread.range(), hollow: sample.short })
}

/// A line over the numbers of clients, or bars if there is one number.
fn over_clients(group: &Group, title: &str, unit: Unit, of: impl Fn(&Point) -> Option<f64> + Copy) -> String {
    let threads = group.threads();
    if let [only] = threads[..] {
        let bar = |series: &Series| {
            let spread = series.at(only)?.spread(of)?;
            let (value, text) = (spread.median, rows::spread(Some(spread)));
            Some(Bar { name: series.name(), slot: series.slot, value, spread: spread.range(), text })
        };
        let bars: Vec<Bar> = group.series.iter().filter_map(bar).collect();
        let clients = if only == 1 { "1 client".to_string() } else { format!("{only} clients") };
        return chart::bars(&format!("{title}, {clients}"), unit, &[(String::new(), bars)]);
    }
    let line = |series: &Series| Line {
        name: series.name(),
        slot: series.slot,
        dots: series.samples.iter().filter_map(|sample| dot(sample, of)).collect(),
    };
    let lines: Vec<Line> = group.series.iter().map(line).collect();
    chart::lines(title, unit, Across::Clients, &lines)
}

/// Processor time of a transaction.
fn costs(group: &Group) -> String {
    let mut threads = group.threads();
    // The most interesting are the ends, and what lies between them evenly.
    while threads.len() > CATEGORIES {
        let last = threads.len() - 1;
        threads =
            threads.into_iter().enumerate().filter(|(at, _)| at % 2 == 0 || *at == last).map(|(_, n)| n).collect();
    }
    let middle = |sample: &Sample, of: &dyn Fn(&Point) -> Option<f64>| sample.spread(of).map_or(0.0, |s| s.median);
    let each = |seconds: Option<f64>, point: &Point| Some(point.each(seconds? * 1e6));
    let mut columns = Vec::new();
    for series in &group.series {
        for (category, count) in threads.iter().enumerate() {
            let Some(sample) = series.at(*count) else { continue };
            let parts = vec![
                middle(sample, &|p| each(p.usage.server_user_seconds, p)),
                middle(sample, &|p| each(p.usage.server_system_seconds, p)),
                middle(sample, &|p| Some(p.client_us())),
            ];
            columns.push(Column { category, slot: series.slot, parts });
        }
    }
    let parts = [
        Part { name: "server, programs", class: "p0" },
        Part { name: "server, kernel", class: "p1" },
        Part { name: "generator", class: "p2" },
    ];
    let unknown = |series: &Series| series.samples.iter().all(|s| s.points.iter().all(|p| p.server_us().is_none()));
    let name = |series: &Series| {
        let gap = if unknown(series) { " (server not known)" } else { "" };
        (series.slot, format!("{}{gap}", series.name()))
    };
    let series: Vec<_> = group.series.iter().map(name).collect();
    let categories: Vec<String> = threads.iter().map(|count| Unit::Count.tick(*count as f64)).collect();
    let title = "Processor time of a transaction (µs)";
    chart::columns(title, Unit::Count, "clients", &categories, &series, &parts, &columns)
}

/// The number of clients at which most was done, by whichever server did most.
fn busiest(group: &Group) -> usize {
    let samples = group.series.iter().flat_map(|series| &series.samples);
    let best = samples.max_by(|a, b| a.per_second().median.total_cmp(&b.per_second().median));
    best.map_or(0, |sample| sample.threads)
}

fn over_time(group: &Group, threads: usize, title: &str, unit: Unit, of: impl Fn(&Second) -> Option<f64>) -> String {
    let line = |series: &Series| {
        let seconds = series.at(threads)?.seconds();
        let dot = |second: &Second| Some(Dot { x: second.at_seconds, y: of(second)?, ..Dot::default() });
        let dots: Vec<Dot> = seconds.iter().filter_map(dot).collect();
        (dots.len() >= SECONDS).then(|| Line { name: series.name(), slot: series.slot, dots })
    };
    let lines: Vec<Line> = group.series.iter().filter_map(line).collect();
    if lines.is_empty() { String::new() } else { chart::lines(title, unit, Across::Seconds, &lines) }
}
