//! Prometheus' text format, version 0.0.4.

use std::fmt::{Display, Write as _};

/// What a family of samples is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FamilyKind {
    /// Only grows, until the server ends.
    Counter,
    /// Goes up and down.
    Gauge,
}

/// A page of figures that is being written.
#[derive(Debug, Default)]
pub struct Exposition {
    text: String,
}

impl Exposition {
    /// Begins a family of samples.
    pub fn family(&mut self, name: &str, kind: FamilyKind, help: &str) {
        let kind = match kind {
            FamilyKind::Counter => "counter",
            FamilyKind::Gauge => "gauge",
        };
        self.head(name, kind, help);
    }

    fn head(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a string does not fail.
        let _ = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    /// One sample of the family begun last.
    pub fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        self.text.push_str(name);
        self.labels(labels, None);
        let _ = writeln!(self.text, " {value}");
    }

    /// A family of one sample without labels.
    pub fn single(&mut self, name: &str, kind: FamilyKind, help: &str, value: impl Display) {
        self.family(name, kind, help);
        self.sample(name, &[], value);
    }

    /// Begins a family of histograms.
    pub fn histograms(&mut self, name: &str, help: &str) {
        self.head(name, "histogram", help);
    }

    /// One histogram: for each bucket its upper bound and how many values lie in it (not below it). Values beyond the
    /// last bound are those of `count` that no bucket has.
    pub fn histogram(
        &mut self,
        name: &str,
        labels: &[(&str, &str)],
        buckets: impl IntoIterator<Item = (f64, u64)>,
        sum: f64,
        count: u64,
    ) {
        let mut below = 0;
        for (bound, values) in buckets {
            below += values;
            let _ = write!(self.text, "{name}_bucket");
            self.labels(labels, Some(&bound.to_string()));
            let _ = writeln!(self.text, " {below}");
        }
        let _ = write!(self.text, "{name}_bucket");
        self.labels(labels, Some("+Inf"));
        let _ = writeln!(self.text, " {count}");
        for (part, value) in [("sum", sum), ("count", count as f64)] {
            let _ = write!(self.text, "{name}_{part}");
            self.labels(labels, None);
            let _ = writeln!(self.text, " {value}");
        }
    }

    fn labels(&mut self, labels: &[(&str, &str)], bound: Option<&str>) {
        let all = labels.iter().copied().chain(bound.map(|bound| ("le", bound)));
        let mut between = '{';
        for (name, value) in all {
            self.text.push(between);
            between = ',';
            let _ = write!(self.text, "{name}=\"");
            for c in value.chars() {
                match c {
                    '\\' => self.text.push_str("\\\\"),
                    '"' => self.text.push_str("\\\""),
                    '\n' => self.text.push_str("\\n"),
                    c => self.text.push(c),
                }
            }
            self.text.push('"');
        }
        if between == ',' {
            self.text.push('}');
        }
    }

    /// The page.
    pub fn into_text(self) -> String {
        self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_format_is_prometheus() {
        let mut out = Exposition::default();
        out.single("a", FamilyKind::Gauge, "An a.", 5);
        out.family("b_total", FamilyKind::Counter, "Some b.");
        out.sample("b_total", &[("kind", "x\"y\\z"), ("n", "1")], 7);
        out.histograms("c_seconds", "Times.");
        out.histogram("c_seconds", &[("k", "v")], [(0.5, 2), (1.0, 3)], 4.25, 6);
        let expected = "# HELP a An a.\n# TYPE a gauge\na 5\n\
            # HELP b_total Some b.\n# TYPE b_total counter\nb_total{kind=\"x\\\"y\\\\z\",n=\"1\"} 7\n\
            # HELP c_seconds Times.\n# TYPE c_seconds histogram\n\
            c_seconds_bucket{k=\"v\",le=\"0.5\"} 2\nc_seconds_bucket{k=\"v\",le=\"1\"} 5\n\
            c_seconds_bucket{k=\"v\",le=\"+Inf\"} 6\nc_seconds_sum{k=\"v\"} 4.25\nc_seconds_count{k=\"v\"} 6\n";
        assert_eq!(out.into_text(), expected);
    }
}
