//! Medians, spread and ratios of several servers' runs of one experiment.

use std::collections::BTreeSet;
use std::fmt::Write;

use crate::result::{Point, RunFile};
use crate::spread::Spread;
use crate::table::{self, grouped};

/// A figure of a point that servers are compared by, and its digits.
type Figure = (&'static str, fn(&Point) -> Option<f64>, usize);

/// Those of every experiment; an experiment's own come after them.
const FIGURES: [Figure; 4] = [
    ("tx/s", |point| Some(point.per_second), 0),
    ("p95 ms", |point| Some(point.latency.p95_ms), 2),
    ("server us/tx", Point::server_us, 1),
    ("client us/tx", |point| Some(point.client_us()), 1),
];

/// One line of what verification found, more only where something is wrong.
pub fn verdict(run: &RunFile) -> String {
    let mut out = String::new();
    let holding = run.verdicts.iter().filter(|verdict| verdict.holds).count();
    if !run.verdicts.is_empty() {
        writeln!(out, "{}: {holding} of {} conditions hold", run.label, run.verdicts.len()).expect("a string");
    }
    for broken in run.verdicts.iter().filter(|verdict| !verdict.holds) {
        writeln!(out, "{}: BROKEN {}: {}", run.label, broken.says, broken.found).expect("a string");
    }
    if let Some(why) = &run.ended {
        writeln!(out, "{}: cut short: {why}", run.label).expect("a string");
    }
    out
}

/// Medians of each server, the least and the most in brackets, and the ratio to the first server's median: of pairs that were measured
/// one after the other, the median of their ratios.
pub fn table(runs: &[&RunFile]) -> String {
    let mut out = String::new();
    let Some(first) = runs.first() else { return out };
    let mut places: Vec<(&str, usize)> = first.points.iter().map(|p| (p.variant.as_str(), p.threads)).collect();
    places.dedup();
    for (variant, threads) in places {
        writeln!(out, "{variant} {threads} clients").expect("a string takes every character");
        let here = |run: &RunFile, of: &dyn Fn(&Point) -> Option<f64>| -> Vec<Option<f64>> {
            run.points.iter().filter(|p| p.variant == variant && p.threads == threads).map(of).collect()
        };
        for (name, of, digits) in &FIGURES {
            let show = |value: f64| if *digits == 0 { grouped(value) } else { format!("{value:.digits$}") };
            let rows: Vec<_> = runs.iter().map(|run| (run.label.as_str(), here(run, of))).collect();
            lines(&mut out, name, &rows, show);
        }
        let own: BTreeSet<&String> = runs.iter().flat_map(|run| &run.points).flat_map(|p| p.figures.keys()).collect();
        for name in own {
            let of = |point: &Point| point.figures.get(name).copied();
            let rows: Vec<_> = runs.iter().map(|run| (run.label.as_str(), here(run, &of))).collect();
            lines(&mut out, name, &rows, table::figure);
        }
    }
    out
}

/// A line per server for one figure.
fn lines(out: &mut String, name: &str, rows: &[(&str, Vec<Option<f64>>)], show: impl Fn(f64) -> String) {
    let Some((_, base)) = rows.first() else { return };
    writeln!(out, "  {name}").expect("a string takes every character");
    for (number, (label, values)) in rows.iter().enumerate() {
        let Some(all) = Spread::of(values.iter().copied().flatten()) else { continue };
        let ratio = match Spread::of(values.iter().zip(base).filter_map(|(a, b)| Some((*a)? / (*b)?))) {
            Some(ratios) if number > 0 => format!("{:.2}x", ratios.median),
            _ => String::new(),
        };
        let range = format!("({} - {})", show(all.min), show(all.max));
        let line = format!("    {label:<14}{:>12}  {range:<24}{ratio:>8}", show(all.median));
        writeln!(out, "{}", line.trim_end()).expect("a string takes every character");
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::result::{Latency, ServerFacts};
    use crate::usage::Usage;

    fn run(label: &str, rates: &[f64]) -> RunFile {
        let target = "postgres://h/d".parse().unwrap();
        let mut run = RunFile::begin("sysbench", &target, Some(label), ServerFacts::default());
        run.points = rates
            .iter()
            .map(|&per_second| Point {
                variant: "oltp_read_write".into(),
                threads: 8,
                per_second,
                transactions: per_second as u64,
                latency: Latency { p95_ms: 8000.0 / per_second, ..Latency::default() },
                usage: Usage {
                    server_user_seconds: Some(0.75),
                    server_system_seconds: Some(0.25),
                    client_seconds: 0.25,
                    ..Usage::default()
                },
                ..Point::default()
            })
            .collect();
        run
    }

    #[test]
    fn ratios_are_medians_of_pairs() {
        let (one, two) = (run("PostgreSQL", &[1000.0, 1100.0, 900.0]), run("Nyala", &[2100.0, 2200.0, 1700.0]));
        expect![[r#"
            oltp_read_write 8 clients
              tx/s
                PostgreSQL           1,000  (900 - 1,100)
                Nyala                2,100  (1,700 - 2,200)            2.00x
              p95 ms
                PostgreSQL            8.00  (7.27 - 8.89)
                Nyala                 3.81  (3.64 - 4.71)              0.50x
              server us/tx
                PostgreSQL          1000.0  (909.1 - 1111.1)
                Nyala                476.2  (454.5 - 588.2)            0.50x
              client us/tx
                PostgreSQL           250.0  (227.3 - 277.8)
                Nyala                119.0  (113.6 - 147.1)            0.50x
        "#]]
        .assert_eq(&table(&[&one, &two]));
    }
}
