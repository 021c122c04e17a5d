//! The report: a line for each statement, the geometric mean of the ratios, the worst statements with both plans.

use std::fmt::Write;

use super::run::Judged;

/// One statement in a line.
pub fn line(judged: &Judged) -> String {
    let name = format!("{}/{}", judged.schema, judged.name);
    let ms = |ms: Option<f64>| ms.map_or("-".into(), |ms| format!("{ms:.3}"));
    let ratio = judged.ratio().map_or("-".into(), |ratio| format!("{ratio:.2}"));
    let mut line =
        format!("{name:<44} {:>9} {:>11} {:>11} {ratio:>9}", judged.rows, ms(judged.baseline_ms), ms(judged.ms));
    for (what, why) in [("differs", &judged.difference), ("failed", &judged.error)] {
        if let Some(why) = why {
            write!(line, "  {what}: {why}").expect("a string takes every character");
        }
    }
    line + "\n"
}

/// Geometric mean of what `of` says of each statement; `None` if it says nothing of any.
fn mean(all: &[Judged], of: impl Fn(&Judged) -> Option<f64>) -> Option<f64> {
    let logs: Vec<f64> = all.iter().filter_map(of).map(|ratio| ratio.max(1e-6).ln()).collect();
    (!logs.is_empty()).then(|| (logs.iter().sum::<f64>() / logs.len() as f64).exp())
}

/// The statements that are slowest beside PostgreSQL, the worst first.
fn by_ratio(all: &[Judged]) -> Vec<&Judged> {
    let mut sorted: Vec<&Judged> = all.iter().filter(|judged| judged.ratio().is_some()).collect();
    sorted.sort_by(|a, b| b.ratio().unwrap_or_default().total_cmp(&a.ratio().unwrap_or_default()));
    sorted
}

/// Whether a statement is slower than PostgreSQL, and one of the `count` worst so far.
pub fn is_among_worst(judged: &Judged, before: &[Judged], count: usize) -> bool {
    let Some(ratio) = judged.ratio().filter(|&ratio| ratio > 1.0) else { return false };
    before.iter().filter(|other| other.ratio().is_some_and(|other| other >= ratio)).count() < count
}

/// The geometric mean, of all and by schema, and how many are slower by how much.
pub fn summary(all: &[Judged]) -> String {
    let mut out = String::new();
    let mut put = |text: String| out.write_str(&text).expect("a string takes every character");
    let shown = |mean: Option<f64>| mean.map_or("-".into(), |mean| format!("{mean:.2}"));
    let worst = |all: &[Judged]| shown(by_ratio(all).first().and_then(|judged| judged.ratio()));
    let put_row = |put: &mut dyn FnMut(String), schema: &str, of: &[Judged]| {
        let means = [mean(of, Judged::quotient), mean(of, Judged::ratio)].map(shown);
        put(format!("{schema:<12} {:>10} {:>8} {:>14} {:>8}\n", of.len(), means[0], means[1], worst(of)));
    };
    // Of all times, and with those that count as equal.
    put(format!("\n{:<12} {:>10} {:>8} {:>14} {:>8}\n", "schema", "statements", "mean", "short as equal", "worst"));
    let mut schemas: Vec<&str> = all.iter().map(|judged| judged.schema.as_str()).collect();
    schemas.dedup();
    for schema in schemas {
        let of: Vec<Judged> = all.iter().filter(|judged| judged.schema == schema).cloned().collect();
        put_row(&mut put, schema, &of);
    }
    put_row(&mut put, "all", all);
    let over = |limit: f64| all.iter().filter(|judged| judged.ratio().is_some_and(|ratio| ratio > limit)).count();
    let counts: Vec<String> = [1.2, 2.0, 10.0, 100.0].iter().map(|&n| format!("{} over {n}", over(n))).collect();
    let bad = all.iter().filter(|judged| !judged.is_good()).count();
    put(format!("times PostgreSQL's: {}; {bad} failed or differ\n", counts.join(", ")));
    out
}

/// Forgets the plans of all but the worst.
pub fn keep_worst(all: &mut [Judged], count: usize) {
    let limit = by_ratio(all).get(count).and_then(|judged| judged.ratio()).unwrap_or_default();
    for judged in all.iter_mut().filter(|judged| judged.ratio().is_none_or(|ratio| ratio <= limit)) {
        (judged.baseline_plan, judged.plan) = (None, None);
    }
}

/// A row for each statement, for a table of a report: its name, where it is from, rows, milliseconds on both, the ratio.
pub fn figures(all: &[Judged]) -> Vec<Vec<String>> {
    let ms = |ms: Option<f64>| ms.map_or(String::new(), |ms| format!("{ms:.3}"));
    let row = |judged: &Judged| {
        let ratio = match judged.ratio() {
            Some(ratio) if judged.is_good() => format!("{ratio:.2}"),
            _ => "failed".into(),
        };
        let name = format!("{}/{}", judged.schema, judged.name);
        vec![name, judged.origin.clone(), judged.rows.to_string(), ms(judged.baseline_ms), ms(judged.ms), ratio]
    };
    all.iter().map(row).collect()
}

/// The worst with both plans, those of which plans were kept.
pub fn worst(all: &[Judged]) -> String {
    let mut out = String::new();
    for judged in by_ratio(all).into_iter().filter(|judged| judged.plan.is_some()) {
        write!(out, "\n{}", line(judged)).expect("a string takes every character");
        for (label, plan) in [("PostgreSQL", &judged.baseline_plan), ("Nyala", &judged.plan)] {
            let plan = plan.as_deref().unwrap_or_default().replace('\n', "\n    ");
            write!(out, "  {label}\n    {plan}\n").expect("a string takes every character");
        }
    }
    out
}
