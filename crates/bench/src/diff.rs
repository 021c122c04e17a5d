//! `bench diff`: what has changed from one set of results to another.
//!
//! Responsible for: finding what corresponds, ratios, which of them repetitions explain, differences of settings, versions and machines.
//! Not responsible for: judging; a change is shown, never refused.
//! Invariants: a ratio is B/A; it stands without a mark only if both sides were measured several times and their spreads do not
//! meet; whatever has no counterpart is named.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use crate::report::groups::{Comparison, Group, Sample, Series, durability, isolation};
use crate::report::markdown::{escape, table};
use crate::report::read_all;
use crate::report::rows::{Table, spread};
use crate::result::{Point, RunFile};
use crate::spread::Spread;

/// Options of `bench diff`.
#[derive(Args, Clone, Debug)]
pub struct DiffArgs {
    /// A result, or a directory of them.
    #[arg(value_name = "A")]
    a: PathBuf,
    /// What it is compared with.
    #[arg(value_name = "B")]
    b: PathBuf,
    /// Print Markdown.
    #[arg(long)]
    markdown: bool,
}

/// Does it.
pub fn main(args: DiffArgs) -> ExitCode {
    match read(&args) {
        Ok(diff) => {
            print!("{}", if args.markdown { diff.markdown() } else { diff.text() });
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("diff: {why}");
            ExitCode::FAILURE
        }
    }
}

fn read(args: &DiffArgs) -> Result<Diff, String> {
    let side = |path: &PathBuf| Comparison::of(read_all(std::slice::from_ref(path))?, None);
    Ok(Diff::of(&side(&args.a)?, &side(&args.b)?))
}

/// What has changed.
#[derive(Debug, Default)]
pub struct Diff {
    /// Figures that correspond.
    pub figures: Table,
    /// What is not the same: what, in A, in B.
    pub differences: Vec<(String, String, String)>,
    /// What has no counterpart.
    pub alone: Vec<String>,
}

/// A series with the group it belongs to.
type Place<'a> = (&'a Group, &'a Series);

impl Diff {
    /// Compares B with A.
    pub fn of(a: &Comparison, b: &Comparison) -> Diff {
        // If there is one server on each side, these are meant whatever they are called.
        let one = a.labels.len() == 1 && b.labels.len() == 1;
        let (ours, theirs) = (places(a), places(b));
        let mut diff = Diff { figures: Table { head: head(), rows: Vec::new() }, ..Diff::default() };
        let mut met = BTreeSet::new();
        for (group, series) in &ours {
            let Some(other) = counterpart((group, series), &ours, &theirs, one) else {
                diff.alone.push(format!("only in A: {}, {}", group.title(), series.label));
                continue;
            };
            met.insert(other);
            diff.compare((group, series), theirs[other], one);
        }
        for (at, (group, series)) in theirs.iter().enumerate() {
            if !met.contains(&at) {
                diff.alone.push(format!("only in B: {}, {}", group.title(), series.label));
            }
        }
        for label in a.labels.iter().filter(|label| one || b.labels.contains(label)) {
            let theirs = facts(&b.runs, if one { &b.labels[0] } else { label });
            let prefix = if one { String::new() } else { format!("{label}: ") };
            diff.differ(&prefix, &facts(&a.runs, label), &theirs);
        }
        diff
    }

    fn differ(&mut self, prefix: &str, a: &BTreeMap<String, String>, b: &BTreeMap<String, String>) {
        let names: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
        let say = |value: Option<&String>| value.map_or("–".to_string(), String::clone);
        for name in names.into_iter().filter(|name| a.get(*name) != b.get(*name)) {
            self.differences.push((format!("{prefix}{name}"), say(a.get(name)), say(b.get(name))));
        }
    }

    fn compare(&mut self, a: Place<'_>, b: Place<'_>, one: bool) {
        let mut name = a.0.title();
        if !one {
            write!(name, " · {}", a.1.label).expect("a string takes every character");
        }
        if a.0.settings != b.0.settings {
            let prefix = format!("{name}: ");
            self.differ(&prefix, &a.0.settings, &b.0.settings);
        }
        let marks: Vec<String> = [("A", a.1), ("B", b.1)]
            .iter()
            .filter(|(_, series)| !series.marks.is_empty())
            .map(|(side, series)| format!("{side} {}", series.marks.join("; ")))
            .collect();
        if !marks.is_empty() {
            write!(name, " [{}]", marks.join(", ")).expect("a string takes every character");
        }
        for sample in &a.1.samples {
            match b.1.at(sample.threads) {
                Some(other) => self.figures.rows.push(row(&name, sample, other)),
                None => self.alone.push(format!("only in A: {name}, {} clients", sample.threads)),
            }
        }
        for sample in b.1.samples.iter().filter(|sample| a.1.at(sample.threads).is_none()) {
            self.alone.push(format!("only in B: {name}, {} clients", sample.threads));
        }
    }

    /// For a terminal.
    pub fn text(&self) -> String {
        let mut out = aligned(&self.figures);
        out.push_str(&format!("\n{LEGEND}\n"));
        let mut put = |line: String| writeln!(out, "{line}").expect("a string takes every character");
        for (name, a, b) in &self.differences {
            put(format!("differs: {name}: {a} -> {b}"));
        }
        self.alone.iter().for_each(|alone| put(alone.clone()));
        out
    }

    /// To be pasted.
    pub fn markdown(&self) -> String {
        let mut out = format!("{}\n{LEGEND}\n", table(&self.figures));
        if !self.differences.is_empty() {
            let head = ["<differs", "<A", "<B"].map(str::to_string).to_vec();
            let rows = self.differences.iter().map(|(name, a, b)| vec![name.clone(), a.clone(), b.clone()]).collect();
            write!(out, "\n{}", table(&Table { head, rows })).expect("a string takes every character");
        }
        for alone in &self.alone {
            write!(out, "\n- {}", escape(alone)).expect("a string takes every character");
        }
        out.trim_end().to_string() + "\n"
    }
}

const LEGEND: &str = "B/A. (=): within the spread of repetitions. (1): measured once, so that its spread is not known.";

fn head() -> Vec<String> {
    let names = ["<measured", "clients", "tx/s A", "tx/s B", "B/A", "p95 ms A", "p95 ms B", "B/A", "server µs/tx A"];
    names.into_iter().chain(["server µs/tx B", "B/A"]).map(str::to_string).collect()
}

fn places(all: &Comparison) -> Vec<Place<'_>> {
    all.groups.iter().flat_map(|group| group.series.iter().map(move |series| (group, series))).collect()
}

/// The same with the same options; or else the only one of this experiment and variant on each side.
fn counterpart(mine: Place<'_>, ours: &[Place<'_>], theirs: &[Place<'_>], one: bool) -> Option<usize> {
    let alike = |other: &Place<'_>| {
        (&other.0.experiment, &other.0.variant) == (&mine.0.experiment, &mine.0.variant)
            && (one || other.1.label == mine.1.label)
    };
    let all: Vec<usize> = (0..theirs.len()).filter(|&at| alike(&theirs[at])).collect();
    let same = all.iter().copied().find(|&at| theirs[at].0.settings == mine.0.settings);
    let only = all.len() == 1 && ours.iter().filter(|other| alike(other)).count() == 1;
    same.or(only.then(|| all[0]))
}

fn row(name: &str, a: &Sample, b: &Sample) -> Vec<String> {
    let cut = |sample: &Sample| if sample.short { " †" } else { "" };
    let mut row = vec![name.to_string(), format!("{}{}{}", a.threads, cut(a), cut(b))];
    let figures: [fn(&Point) -> Option<f64>; 3] =
        [|p| Some(p.per_second), |p| Some(p.latency.p95_ms), Point::server_us];
    for figure in figures {
        let (a, b) = (a.spread(figure), b.spread(figure));
        row.extend([spread(a), spread(b), ratio(a, b)]);
    }
    row
}

fn ratio(a: Option<Spread>, b: Option<Spread>) -> String {
    let (Some(a), Some(b)) = (a, b) else { return "?".into() };
    if a.median <= 0.0 {
        return "?".into();
    }
    let meet = if a.count > 1 || b.count > 1 { a.min <= b.max && b.min <= a.max } else { a.median == b.median };
    let once = a.count < 2 || b.count < 2;
    let mark = match (meet, once) {
        (true, _) => " (=)",
        (false, true) => " (1)",
        (false, false) => "",
    };
    format!("{:.2}{mark}", b.median / a.median)
}

/// What is known of a label's runs beside their figures.
fn facts(runs: &[RunFile], label: &str) -> BTreeMap<String, String> {
    let mut facts: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut say = |name: &str, value: String| {
        facts.entry(name.to_string()).or_default().insert(value);
    };
    for run in runs.iter().filter(|run| run.label == label) {
        say("label", run.label.clone());
        say("version", run.server.version.clone());
        say("machine", run.machine.name());
        say("program", run.program.clone());
        say("a commit", durability(run.server.durable).into());
        say("isolation", isolation(run).unwrap_or_else(|| "not known".into()));
        for name in ["duration", "warmup"] {
            if let Some(value) = run.settings.get(name) {
                say(name, value.clone());
            }
        }
        for (name, value) in &run.server.settings {
            say(&format!("server's {name}"), value.clone());
        }
        let data = run.verdicts.iter().all(|verdict| verdict.holds);
        say("data", if data { "right, or not verified".into() } else { "WRONG".into() });
        say("end", run.ended.as_ref().map_or("complete".into(), |why| format!("cut short: {why}")));
    }
    facts.into_iter().map(|(name, all)| (name, all.into_iter().collect::<Vec<_>>().join(" or "))).collect()
}

/// Columns under each other.
fn aligned(table: &Table) -> String {
    let columns: Vec<(&str, bool)> = table.columns().collect();
    let wide = |at: usize| {
        let cells = table.rows.iter().map(|row| row[at].chars().count());
        cells.chain([columns[at].0.chars().count()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns.len()).map(wide).collect();
    let line = |cells: &[&str]| {
        let cell = |(at, cell): (usize, &&str)| {
            let wide = widths[at];
            if columns[at].1 { format!("{cell:<wide$}") } else { format!("{cell:>wide$}") }
        };
        let text: Vec<String> = cells.iter().enumerate().map(cell).collect();
        text.join("  ").trim_end().to_string() + "\n"
    };
    let names: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
    let mut out = line(&names);
    for row in &table.rows {
        out.push_str(&line(&row.iter().map(String::as_str).collect::<Vec<_>>()));
    }
    out
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::report::tests::run;

    fn side(runs: Vec<RunFile>) -> Comparison {
        Comparison::of(runs, None).unwrap()
    }

    fn twice(label: &str, rate: f64) -> Vec<RunFile> {
        [0.9, 1.1]
            .iter()
            .zip(1..)
            .map(|(part, at)| run(label, at, &[("a", 1, 100.0 * part), ("a", 8, rate * part)]))
            .collect()
    }

    #[test]
    fn what_repetitions_explain_is_marked() {
        let mut after = twice("Nyala", 700.0);
        for run in &mut after {
            run.server.version = "Nyala 2".into();
            run.server.settings.insert("fsync".into(), "off".into());
            run.server.durable = Some(false);
            run.settings.insert("rows".into(), "5000".into());
        }
        let diff = Diff::of(&side(twice("Nyala", 400.0)), &side(after));
        expect![[r#"
            measured                      clients               tx/s A               tx/s B       B/A  p95 ms A  p95 ms B       B/A  server µs/tx A  server µs/tx B       B/A
            sysbench · a [B not durable]        1   100.0 (90.0–110.0)   100.0 (90.0–110.0)  1.00 (=)     1.000     1.000  1.00 (=)           150.0           150.0  1.00 (=)
            sysbench · a [B not durable]        8  400.0 (360.0–440.0)  700.0 (630.0–770.0)      1.75     8.000     8.000  1.00 (=)           150.0           150.0  1.00 (=)

            B/A. (=): within the spread of repetitions. (1): measured once, so that its spread is not known.
            differs: sysbench · a: rows: 1000 -> 5000
            differs: a commit: durable -> not durable
            differs: server's fsync: on -> off
            differs: version: Nyala 1 -> Nyala 2
        "#]].assert_eq(&diff.text());
    }

    #[test]
    fn what_has_no_counterpart_is_named() {
        let a = side(vec![run("X", 1, &[("a", 1, 10.0), ("a", 2, 20.0)]), run("Y", 2, &[("a", 1, 10.0)])]);
        let b = side(vec![run("X", 3, &[("a", 1, 15.0), ("c", 1, 1.0)])]);
        expect![[r#"
            | measured | clients | tx/s A | tx/s B | B/A | p95 ms A | p95 ms B | B/A | server µs/tx A | server µs/tx B | B/A |
            |---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|
            | sysbench · a · X | 1 | 10.0 | 15.0 | 1.50 (1) | 1.000 | 1.000 | 1.00 (=) | 150.0 | 150.0 | 1.00 (=) |

            B/A. (=): within the spread of repetitions. (1): measured once, so that its spread is not known.

            - only in A: sysbench · a · X, 2 clients
            - only in A: sysbench · a, Y
            - only in B: sysbench · c, X
        "#]].assert_eq(&Diff::of(&a, &b).markdown());
    }

    #[test]
    fn one_server_on_each_side_is_meant_whatever_it_is_called() {
        let diff = Diff::of(&side(twice("Old", 400.0)), &side(twice("New", 400.0)));
        assert_eq!(diff.figures.rows.len(), 2);
        assert!(diff.alone.is_empty());
        assert_eq!(diff.differences[0], ("label".into(), "Old".into(), "New".into()));
    }
}
