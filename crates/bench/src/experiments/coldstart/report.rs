//! What is printed.

use std::fmt;
use std::io::Write as _;
use std::path::Path;

use serde::Serialize;

use super::Refusal;
use super::disk::Image;
use super::node::Started;
use crate::result::Machine;
use crate::spread::median;

const GIGA: f64 = 1e9;

/// Everything about one run.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Always `coldstart`.
    pub experiment: &'static str,
    /// Megabytes of rows asked for.
    pub size_mb: u32,
    /// Source of every value.
    pub seed: u64,
    /// On what.
    pub host: Machine,
    /// Rows loaded.
    pub rows: u64,
    /// What was measured.
    pub cases: Vec<Case>,
}

/// The starts of one case; what is told of them is the median of each.
#[derive(Clone, Debug, Serialize)]
pub struct Case {
    /// Which.
    pub name: &'static str,
    /// Bytes of image and log that a start reads.
    pub file_bytes: u64,
    /// Bytes of rows: those of the image before compression, or those of the log.
    pub data_bytes: u64,
    /// Bytes per second at which the experiment read the files.
    pub disk: f64,
    /// Seconds until connections were taken.
    pub seconds: f64,
    /// Seconds of CPU time until then.
    pub cpu_seconds: f64,
    /// Most memory, in bytes.
    pub peak_bytes: u64,
    /// Milliseconds of reading the image.
    pub image_ms: u64,
    /// Milliseconds of reading the log.
    pub log_ms: u64,
    /// Milliseconds of building indexes.
    pub indexes_ms: u64,
    /// Bytes per second of rows.
    pub data_rate: f64,
    /// Bytes per second of files.
    pub file_rate: f64,
    /// The rate of the files against that of the disk.
    pub of_disk: f64,
    /// Bytes of rows per second of CPU time: what one core does alone.
    pub per_core: f64,
    /// Each start.
    pub starts: Vec<Started>,
}

impl Case {
    /// Of an image, the rates of the disk, and the starts.
    pub fn of(name: &'static str, image: Image, disk: Vec<f64>, starts: Vec<Started>) -> Case {
        let of = |pick: fn(&Started) -> f64| median(starts.iter().map(pick));
        let count = |pick: fn(&Started) -> u64| median(starts.iter().map(|start| pick(start) as f64)) as u64;
        let log_bytes = count(|s| s.log_bytes);
        let file_bytes = image.bytes + log_bytes;
        let data_bytes = if image.content > 0 { image.content } else { log_bytes };
        let (seconds, cpu_seconds, disk) = (of(|s| s.seconds), of(|s| s.cpu_seconds), median(disk));
        Case {
            name,
            file_bytes,
            data_bytes,
            disk,
            seconds,
            cpu_seconds,
            peak_bytes: count(|s| s.peak_bytes),
            image_ms: count(|s| s.image_ms),
            log_ms: count(|s| s.log_ms),
            indexes_ms: count(|s| s.indexes_ms),
            data_rate: data_bytes as f64 / seconds,
            file_rate: file_bytes as f64 / seconds,
            of_disk: file_bytes as f64 / seconds / disk,
            per_core: data_bytes as f64 / cpu_seconds.max(0.001),
            starts,
        }
    }
}

impl Report {
    /// Prints it.
    ///
    /// # Errors
    /// Of the output.
    pub fn write(&self, json: Option<&Path>) -> Result<(), Refusal> {
        let print = |text: String| std::io::stdout().write_all(text.as_bytes()).map_err(Refusal::io("stdout"));
        let Some(path) = json else { return print(self.to_string()) };
        let text = serde_json::to_string_pretty(self).expect("a report has only names as keys") + "\n";
        if path == Path::new("-") {
            eprint!("{self}");
            return print(text);
        }
        std::fs::write(path, text).map_err(Refusal::io(path.display().to_string()))?;
        print(self.to_string())
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Machine { cpus, .. } = &self.host;
        writeln!(f, "cold start: {} rows, {} MB asked for, seed {}, {cpus} CPUs", self.rows, self.size_mb, self.seed)?;
        writeln!(f, "medians; data = rows before compression (or log), files = what lies on the disk\n")?;
        writeln!(
            f,
            "{:<13}{:>9}{:>9}{:>8}{:>8}{:>8}{:>8}{:>8}{:>10}{:>10}{:>10}{:>8}{:>11}{:>9}",
            "",
            "data MB",
            "file MB",
            "ready s",
            "image s",
            "log s",
            "index s",
            "CPU s",
            "data GB/s",
            "file GB/s",
            "disk GB/s",
            "of disk",
            "GB/s/core",
            "peak MB"
        )?;
        for case in &self.cases {
            writeln!(
                f,
                "{:<13}{:>9.0}{:>9.0}{:>8.2}{:>8.2}{:>8.2}{:>8.2}{:>8.2}{:>10.3}{:>10.3}{:>10.3}{:>6.0} %{:>11.3}{:>9.0}",
                case.name,
                case.data_bytes as f64 / 1e6,
                case.file_bytes as f64 / 1e6,
                case.seconds,
                case.image_ms as f64 / 1e3,
                case.log_ms as f64 / 1e3,
                case.indexes_ms as f64 / 1e3,
                case.cpu_seconds,
                case.data_rate / GIGA,
                case.file_rate / GIGA,
                case.disk / GIGA,
                case.of_disk * 100.0,
                case.per_core / GIGA,
                case.peak_bytes as f64 / 1e6,
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_is_told_by_medians() {
        let start = |seconds, cpu_seconds| Started { seconds, cpu_seconds, log_bytes: 500, ..Started::default() };
        let image = Image { rows: 1, bytes: 1_500, content: 4_000 };
        let case = Case::of(
            "data",
            image,
            vec![900.0, 1000.0, 5000.0],
            vec![start(2.0, 8.0), start(9.0, 9.0), start(1.0, 1.0)],
        );
        assert_eq!((case.seconds, case.cpu_seconds, case.disk), (2.0, 8.0, 1000.0));
        assert_eq!((case.data_rate, case.file_rate, case.of_disk, case.per_core), (2000.0, 1000.0, 1.0, 500.0));
    }
}
