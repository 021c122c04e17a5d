//! Options that every experiment has.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::target::Target;

/// Where to measure, how long, and what to do with the result.
#[derive(Args, Clone, Debug)]
pub struct Common {
    /// The server: `postgres://user[:password]@host:port/database`, or `mysql://…`.
    #[arg(long, value_name = "URL", default_value = "postgres://postgres@127.0.0.1:5432/postgres")]
    pub target: Target,
    /// Clients at once, a connection each; a list like "1;2;4;8" or "1;2;…;64" measures one after the other [default: 8, or what the experiment wants].
    #[arg(long, value_name = "LIST", visible_alias = "clients", value_parser = list)]
    pub threads: Option<List>,
    /// How long to measure each point, like 30s or 5m.
    #[arg(long, default_value = "30s", value_parser = duration)]
    pub duration: Duration,
    /// How long to run before each measurement.
    #[arg(long, default_value = "5s", value_parser = duration)]
    pub warmup: Duration,
    /// Measurements of each point.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    pub repeat: u16,
    /// Transactions per second of all clients together, at random times; without it, clients do not wait.
    #[arg(long, value_name = "N", value_parser = rate)]
    pub rate: Option<f64>,
    /// Look at the data afterwards, and fail if a row was lost or invented.
    #[arg(long)]
    pub verify: bool,
    /// Drop what is there and load anew. Without this, tables are loaded only if there are none.
    #[arg(long, conflicts_with_all = ["no_load", "drop"])]
    pub load: bool,
    /// Never load.
    #[arg(long)]
    pub no_load: bool,
    /// Drop the tables and stop.
    #[arg(long)]
    pub drop: bool,
    /// Source of every random value [default: taken from the clock, and printed].
    #[arg(long)]
    pub seed: Option<u64>,
    /// What to call the server in tables [default: what it calls itself].
    #[arg(long, value_name = "NAME")]
    pub label: Option<String>,
    /// Write the result as JSON to a file, or under a name of its own into a directory.
    #[arg(long, value_name = "PATH")]
    pub json: Option<PathBuf>,
}

/// Numbers of clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct List(pub Vec<usize>);

impl std::fmt::Display for List {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let all: Vec<String> = self.0.iter().map(usize::to_string).collect();
        f.write_str(&all.join(";"))
    }
}

/// Reads "1;2;4", or with commas; "1;2;4;…;128" goes on as it has begun.
fn list(text: &str) -> Result<List, String> {
    let number = |part: &str| match part.trim().parse::<usize>() {
        Ok(number @ 1..=10_000) => Ok(number),
        _ => Err(format!("\"{part}\" is not a number of clients from 1 to 10000")),
    };
    let (mut all, mut parts) = (Vec::new(), text.split([';', ',']));
    while let Some(part) = parts.next() {
        if !["…", "..."].contains(&part.trim()) {
            all.push(number(part)?);
            continue;
        }
        let wrong =
            || format!("\"{text}\": … stands between numbers that rise evenly or by a factor, like 1;2;4;…;128");
        let ([.., before, last], Some(end)) = (&all[..], parts.next()) else { return Err(wrong()) };
        let (before, last, end) = (*before, *last, number(end)?);
        if last <= before || end <= last {
            return Err(wrong());
        }
        // 1;2;…;8 doubles, as lists of clients do; what is no factor is a step.
        let next = |at: usize| if last % before == 0 { at * (last / before) } else { at + last - before };
        all.extend(std::iter::successors(Some(next(last)), |at| Some(next(*at))).take_while(|at| *at < end));
        all.push(end);
    }
    Ok(List(all))
}

fn rate(text: &str) -> Result<f64, String> {
    let number: Option<f64> = text.parse().ok().filter(|&n: &f64| n > 0.0 && n.is_finite());
    number.ok_or_else(|| format!("\"{text}\" is not a number of transactions per second"))
}

/// A seed that is short enough to type.
pub fn clock_seed() -> u64 {
    crate::clock::now().as_micros() as u64 % 1_000_000_000
}

/// What the command line calls a value.
pub fn name(value: &impl ValueEnum) -> String {
    value.to_possible_value().map(|value| value.get_name().to_string()).unwrap_or_default()
}

/// Reads 500ms, 30s, 5m, 1h, or a bare number of seconds.
pub fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let seconds = match &text[digits.len()..] {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        unit => return Err(format!("\"{unit}\" is not a unit of time: ms, s, m, h")),
    };
    let number: f64 = digits.parse().map_err(|_| format!("\"{digits}\" is not a number"))?;
    Duration::try_from_secs_f64(number * seconds).map_err(|e| e.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_with_their_units() {
        assert_eq!(duration("30s"), Ok(Duration::from_secs(30)));
        assert_eq!(duration("1.5m"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(duration("2"), Ok(Duration::from_secs(2)));
        assert!(duration("x").is_err() && duration("3d").is_err() && duration("-1s").is_err());
    }

    #[test]
    fn lists_of_clients_are_read_with_either_mark() {
        assert_eq!(list("1;2;4"), Ok(List(vec![1, 2, 4])));
        assert_eq!(list("8, 32"), Ok(List(vec![8, 32])));
        assert_eq!(list("1;2;4;…;128"), Ok(List(vec![1, 2, 4, 8, 16, 32, 64, 128])));
        assert_eq!(list("8, 12, ..., 24, 50"), Ok(List(vec![8, 12, 16, 20, 24, 50])));
        assert!(list("1;…;8").is_err() && list("…").is_err() && list("1;2;…").is_err() && list("4;2;…;1").is_err());
        assert!(list("").is_err() && list("1;0").is_err() && list("x").is_err());
        assert_eq!(List(vec![1, 128]).to_string(), "1;128");
    }

    #[test]
    fn a_rate_is_above_zero() {
        assert_eq!(rate("250"), Ok(250.0));
        assert!(rate("0").is_err() && rate("-1").is_err() && rate("inf").is_err());
    }
}
