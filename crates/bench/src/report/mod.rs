//! `bench report`: results as one page with charts, and as tables.
//!
//! Responsible for: finding results in files and directories, what is written where.
//! Not responsible for: measuring.
//! Invariants: the page needs no network and no script; what comes from files is shown as text; whatever makes figures incomparable
//! stands beside them.
//!
//! [`groups`] puts runs side by side, [`rows`] makes tables of them, [`chart`] pictures, [`html`] and [`markdown`] the
//! documents.

mod chart;
mod charts;
pub mod groups;
mod html;
pub mod markdown;
pub mod rows;
#[cfg(test)]
pub(crate) mod tests;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;

use crate::result::RunFile;
use groups::Comparison;

/// Options of `bench report`.
#[derive(Args, Clone, Debug)]
pub struct ReportArgs {
    /// Results, and directories in which all results are taken.
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Write one page with charts, which needs nothing beside it.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write tables as Markdown [default: to the standard output, if nothing else is written].
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// Write a picture of the best throughput of all that was measured, for light and dark pages (SVG).
    #[arg(long, value_name = "FILE")]
    chart: Option<PathBuf>,
    /// The server that others are compared with [default: PostgreSQL if it is there, else the first].
    #[arg(long, value_name = "LABEL")]
    baseline: Option<String>,
    /// What stands above all.
    #[arg(long, default_value = "Measured with the lab")]
    title: String,
}

/// Does it.
pub fn main(args: ReportArgs) -> ExitCode {
    match report(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("report: {why}");
            ExitCode::FAILURE
        }
    }
}

fn report(args: &ReportArgs) -> Result<(), String> {
    let all = Comparison::of(read_all(&args.paths)?, args.baseline.as_deref())?;
    if let Some(path) = &args.html {
        write(path, &html::page(&all, &args.title))?;
    }
    if let Some(path) = &args.markdown {
        write(path, &markdown::page(&all, &args.title))?;
    }
    if let Some(path) = &args.chart {
        match charts::summary(&all) {
            none if none.is_empty() => return Err("there are no servers to compare".into()),
            chart => write(path, &html::picture(&chart))?,
        }
    }
    if args.html.is_none() && args.markdown.is_none() && args.chart.is_none() {
        print!("{}", markdown::page(&all, &args.title));
    }
    Ok(())
}

/// Writes the page of some results.
///
/// # Errors
/// One line that says what could not be read or written.
pub fn write_page(paths: &[PathBuf], html: &Path, title: &str) -> Result<(), String> {
    let all = Comparison::of(read_all(paths)?, None)?;
    write(html, &html::page(&all, title))
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

/// Reads results. A file that is named must be one; in a directory others are passed over with a word.
///
/// # Errors
/// One line that says what could not be read, or that there is nothing.
pub fn read_all(paths: &[PathBuf]) -> Result<Vec<RunFile>, String> {
    let mut runs = Vec::new();
    for path in paths {
        if !path.is_dir() {
            runs.push(RunFile::read(path)?);
            continue;
        }
        for file in json_files(path)? {
            match RunFile::read(&file) {
                Ok(run) => runs.push(run),
                Err(why) => eprintln!("passed over: {why}"),
            }
        }
    }
    if runs.is_empty() {
        let names: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
        return Err(format!("there are no results in {}", names.join(", ")));
    }
    Ok(runs)
}

/// In this directory and those in it.
fn json_files(directory: &Path) -> Result<Vec<PathBuf>, String> {
    let wrong = |error: std::io::Error| format!("{}: {error}", directory.display());
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).map_err(wrong)? {
        let entry = entry.map_err(wrong)?;
        let path = entry.path();
        // A link to a directory may lead back here.
        if entry.file_type().map_err(wrong)?.is_dir() {
            files.extend(json_files(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "json") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}
