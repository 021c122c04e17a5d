//! Runs side by side: what measured the same is one group, what was called the same is one series of it.
//!
//! Responsible for: which runs can be compared, medians and spreads, the baseline, what has to be said of a run beside its figures.
//! Invariants: runs of an experiment with different options are never in one group, but for the numbers of clients, the length of the
//! measurement and the seed; a series says of itself what makes it incomparable.

use std::collections::{BTreeMap, BTreeSet};

use crate::result::{KindResult, Point, RunFile, Second};
use crate::spread::Spread;

/// Options that do not change what is measured, only how long, how often and with which random values.
const FREE: [&str; 5] = ["threads", "duration", "warmup", "seed", "repeat"];

/// All measurements of a series with the same number of clients.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// Clients.
    pub threads: usize,
    /// What was measured.
    pub points: Vec<Point>,
    /// One of them is the last of a run that was cut short.
    pub short: bool,
}

impl Sample {
    /// A figure over all measurements that have it.
    pub fn spread(&self, figure: impl Fn(&Point) -> Option<f64>) -> Option<Spread> {
        Spread::of(self.points.iter().filter_map(figure))
    }

    /// Transactions per second.
    pub fn per_second(&self) -> Spread {
        self.spread(|point| Some(point.per_second)).unwrap_or_default()
    }

    /// The measurement in the middle by throughput.
    pub fn middle(&self) -> Option<&Point> {
        let mut all: Vec<&Point> = self.points.iter().collect();
        all.sort_by(|a, b| a.per_second.total_cmp(&b.per_second));
        all.get(all.len().saturating_sub(1) / 2).copied()
    }

    /// Second by second, of the measurement in the middle.
    pub fn seconds(&self) -> &[Second] {
        self.middle().map_or(&[], |point| &point.series)
    }

    /// By kind of transaction, of the measurement in the middle.
    pub fn kinds(&self) -> &[KindResult] {
        self.middle().map_or(&[], |point| &point.kinds)
    }
}

/// One line of a chart.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// What the server is called.
    pub label: String,
    /// Where the label is in [`Comparison::labels`]: colour and form.
    pub slot: usize,
    /// What has to be known before it is compared, in a few words each.
    pub marks: Vec<String>,
    /// By number of clients.
    pub samples: Vec<Sample>,
}

impl Series {
    /// Its name as it stands in charts and tables.
    pub fn name(&self) -> String {
        match self.marks.as_slice() {
            [] => self.label.clone(),
            marks => format!("{} [{}]", self.label, marks.join("; ")),
        }
    }

    /// What was measured with so many clients.
    pub fn at(&self, threads: usize) -> Option<&Sample> {
        self.samples.iter().find(|sample| sample.threads == threads)
    }

    /// The sample with the highest throughput.
    pub fn best(&self) -> Option<&Sample> {
        self.samples.iter().max_by(|a, b| a.per_second().median.total_cmp(&b.per_second().median))
    }
}

/// What can be compared.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// The experiment.
    pub experiment: String,
    /// Its variant, or nothing.
    pub variant: String,
    /// Options by which it differs from other groups of the same variant.
    pub told_by: Vec<String>,
    /// All options.
    pub settings: BTreeMap<String, String>,
    /// A series for each label, in the order of [`Comparison::labels`].
    pub series: Vec<Series>,
}

impl Group {
    /// What stands above it.
    pub fn title(&self) -> String {
        let mut parts = vec![self.experiment.as_str()];
        parts.extend((!self.variant.is_empty()).then_some(self.variant.as_str()));
        parts.extend(self.told_by.iter().map(String::as_str));
        parts.join(" · ")
    }

    /// The same without the experiment, if there is something else to tell it by.
    pub fn short_title(&self) -> String {
        let title = self.title();
        title.split_once(" · ").map_or(title.clone(), |(_, rest)| rest.to_string())
    }

    /// All numbers of clients, rising.
    pub fn threads(&self) -> Vec<usize> {
        let all: BTreeSet<usize> = self.series.iter().flat_map(|s| &s.samples).map(|sample| sample.threads).collect();
        all.into_iter().collect()
    }

    /// The series of a label.
    pub fn of(&self, label: &str) -> Option<&Series> {
        self.series.iter().find(|series| series.label == label)
    }

    /// What only this experiment measures.
    pub fn figures(&self) -> Vec<String> {
        let points = self.series.iter().flat_map(|s| &s.samples).flat_map(|sample| &sample.points);
        let names: BTreeSet<&String> = points.flat_map(|point| point.figures.keys()).collect();
        names.into_iter().cloned().collect()
    }
}

/// Runs side by side.
pub struct Comparison {
    /// All runs, by the time they began.
    pub runs: Vec<RunFile>,
    /// The baseline first, then as they were met.
    pub labels: Vec<String>,
    /// What others are compared with.
    pub baseline: String,
    /// In the order in which they were met.
    pub groups: Vec<Group>,
}

/// How much a server can be relied on to keep a commit, in words.
pub fn durability(durable: Option<bool>) -> &'static str {
    match durable {
        Some(true) => "durable",
        Some(false) => "not durable",
        None => "durability unknown",
    }
}

/// The level that transactions of a run had, as far as that is known.
pub fn isolation(run: &RunFile) -> Option<String> {
    run.settings.get("isolation").cloned().or_else(|| run.server.isolation())
}

impl Comparison {
    /// Puts runs side by side. Without a word about the baseline it is PostgreSQL if that is there, else the first.
    ///
    /// # Errors
    /// There are no runs, or none with the label of the baseline.
    pub fn of(mut runs: Vec<RunFile>, baseline: Option<&str>) -> Result<Comparison, String> {
        runs.sort_by_key(|run| run.started);
        let mut labels: Vec<String> = Vec::new();
        for run in &runs {
            if !labels.contains(&run.label) {
                labels.push(run.label.clone());
            }
        }
        let place = match baseline {
            Some(name) => labels.iter().position(|label| label.eq_ignore_ascii_case(name)),
            None => labels.iter().position(|label| label.to_lowercase().starts_with("postgres")).or(Some(0)),
        };
        if labels.is_empty() {
            return Err("there are no results".into());
        }
        let place = place.ok_or_else(|| {
            format!("no result has the label \"{}\"; there are: {}", baseline.unwrap_or_default(), labels.join(", "))
        })?;
        let first = labels.remove(place);
        labels.insert(0, first.clone());
        let groups = groups(&runs, &labels);
        Ok(Comparison { runs, labels, baseline: first, groups })
    }

    /// The throughput of a sample beside the baseline's with as many clients.
    pub fn ratio(&self, group: &Group, sample: &Sample) -> Option<f64> {
        let base = group.of(&self.baseline)?.at(sample.threads)?.per_second().median;
        (base > 0.0).then(|| sample.per_second().median / base)
    }
}

fn fixed_settings(run: &RunFile) -> BTreeMap<String, String> {
    run.settings
        .iter()
        .filter(|(name, _)| !FREE.contains(&name.as_str()))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

/// What makes groups apart: experiment, variant, options.
type Key = (String, String, BTreeMap<String, String>);

fn groups(runs: &[RunFile], labels: &[String]) -> Vec<Group> {
    let mut keys: Vec<Key> = Vec::new();
    for run in runs {
        for point in &run.points {
            let key = (run.experiment.clone(), point.variant.clone(), fixed_settings(run));
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
    }
    let group = |key: &Key| {
        let (experiment, variant, settings) = key;
        let same: Vec<&RunFile> =
            runs.iter().filter(|run| run.experiment == *experiment && fixed_settings(run) == *settings).collect();
        let measures = |run: &RunFile| run.points.iter().any(|point| point.variant == *variant);
        let same: Vec<&RunFile> = same.into_iter().filter(|run| measures(run)).collect();
        let series = (0..labels.len()).filter_map(|slot| one_series(&same, variant, labels, slot)).collect();
        let told_by = told_by(key, &keys);
        Group { experiment: experiment.clone(), variant: variant.clone(), told_by, settings: settings.clone(), series }
    };
    let mut all: Vec<Group> = keys.iter().map(group).collect();
    // Groups of an experiment stand together, in the order of the first.
    let order: Vec<String> = keys.iter().map(|key| key.0.clone()).collect();
    all.sort_by_key(|group| order.iter().position(|name| *name == group.experiment));
    all
}

/// Options that other groups of the same variant have otherwise.
fn told_by(key: &Key, keys: &[Key]) -> Vec<String> {
    let others: Vec<&Key> = keys.iter().filter(|other| other.0 == key.0 && other.1 == key.1 && *other != key).collect();
    let names: BTreeSet<&String> = others.iter().flat_map(|other| other.2.keys()).chain(key.2.keys()).collect();
    let differs = |name: &&String| others.iter().any(|other| other.2.get(*name) != key.2.get(*name));
    let say = |name: &String| match key.2.get(name) {
        Some(value) => format!("{name} {value}"),
        None => format!("no {name}"),
    };
    names.into_iter().filter(differs).map(say).collect()
}

fn one_series(runs: &[&RunFile], variant: &str, labels: &[String], slot: usize) -> Option<Series> {
    let label = &labels[slot];
    let mine: Vec<&RunFile> = runs.iter().copied().filter(|run| run.label == *label).collect();
    let mut samples: BTreeMap<usize, Sample> = BTreeMap::new();
    for run in &mine {
        for (at, point) in run.points.iter().enumerate().filter(|(_, point)| point.variant == variant) {
            let empty = Sample { threads: point.threads, points: Vec::new(), short: false };
            let sample = samples.entry(point.threads).or_insert(empty);
            sample.points.push(point.clone());
            sample.short |= run.ended.is_some() && at + 1 == run.points.len();
        }
    }
    if samples.is_empty() {
        return None;
    }
    // The baseline's label is the first.
    let baseline: Vec<&RunFile> = runs.iter().copied().filter(|run| run.label == labels[0]).collect();
    let marks = marks(&mine, if baseline.is_empty() { runs } else { &baseline });
    Some(Series { label: label.clone(), slot, marks, samples: samples.into_values().collect() })
}

/// A value that no line breaks in.
fn kept(value: &str) -> String {
    value.replace(' ', "\u{a0}")
}

/// What a reader has to know before he compares these runs with those of the baseline.
fn marks(mine: &[&RunFile], baseline: &[&RunFile]) -> Vec<String> {
    let mut marks = Vec::new();
    if mine.iter().any(|run| run.server.durable == Some(false)) {
        marks.push("not durable".into());
    } else if mine.iter().any(|run| run.server.durable.is_none()) {
        marks.push("durability unknown".into());
    }
    let differ = |of: &dyn Fn(&RunFile) -> Option<String>| {
        let all = |runs: &[&RunFile]| runs.iter().map(|run| of(run)).collect::<BTreeSet<Option<String>>>();
        let (own, theirs) = (all(mine), all(baseline));
        let word = |value: Option<String>| value.unwrap_or_else(|| "?".into());
        (own != theirs || own.len() > 1).then(|| own.into_iter().map(word).collect::<Vec<_>>().join(", "))
    };
    marks.extend(differ(&isolation).map(|level| if level == "?" { "isolation unknown".into() } else { level }));
    for name in ["duration", "warmup"] {
        marks.extend(differ(&|run| run.settings.get(name).cloned()).map(|value| format!("{name} {}", kept(&value))));
    }
    marks.extend(differ(&|run| Some(run.machine.name())).map(|machine| format!("on {machine}")));
    let versions: BTreeSet<&String> = mine.iter().map(|run| &run.server.version).collect();
    if versions.len() > 1 {
        marks.push(format!("{} versions", versions.len()));
    }
    if mine.iter().any(|run| run.server.settings != mine[0].server.settings) {
        marks.push("settings differ between runs".into());
    }
    if mine.iter().any(|run| run.verdicts.iter().any(|verdict| !verdict.holds)) {
        marks.push("DATA WRONG".into());
    }
    if mine.iter().any(|run| run.ended.is_some()) {
        marks.push("cut short".into());
    }
    marks
}
