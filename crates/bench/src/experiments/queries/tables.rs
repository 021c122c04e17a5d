//! The report: a line for each statement, the geometric mean of the ratios, the worst statements with both plans.

use std::fmt::Write;

use super::run::{FINDING_MS, FINDING_RATIO, Judged, LONG_MS, MUCH_ROWS};

/// One statement in a line.
pub fn line(judged: &Judged) -> String {
    let name = format!("{}/{}", judged.schema, judged.name);
    let ms = |ms: Option<f64>| ms.map_or("-".into(), |ms| format!("{ms:.3}"));
    let ratio = judged.ratio().map_or("-".into(), |ratio| format!("{ratio:.2}"));
    let mut line =
        format!("{name:<44} {:>9} {:>11} {:>11} {ratio:>9}", judged.rows, ms(judged.baseline_ms), ms(judged.ms));
    let reasons = [("differs", &judged.difference), ("failed", &judged.error), ("left out", &judged.left_out)];
    for (what, why) in reasons {
        if let Some(why) = why {
            write!(line, "  {what}: {why}").expect("a string takes every character");
        }
    }
    if judged.is_finding() {
        line.push_str("  a finding");
    }
    line + "\n"
}

/// A statement with its text, if it is random, and both plans.
pub fn told(judged: &Judged) -> String {
    let mut out = line(judged);
    let mut put = |text: String| out.push_str(&text);
    if let Some(sql) = &judged.sql {
        put(format!("  {sql};\n"));
    }
    for (label, plan) in [("PostgreSQL", &judged.baseline_plan), ("Nyala", &judged.plan)] {
        let plan = plan.as_deref().unwrap_or_default().replace('\n', "\n    ");
        put(format!("  {label}\n    {plan}\n"));
    }
    out
}

/// Geometric mean of what `of` says of each statement; `None` if it says nothing of any.
fn mean(all: &[Judged], of: impl Fn(&Judged) -> Option<f64>) -> Option<f64> {
    let logs: Vec<f64> = all.iter().filter_map(of).map(|ratio| ratio.max(1e-6).ln()).collect();
    (!logs.is_empty()).then(|| (logs.iter().sum::<f64>() / logs.len() as f64).exp())
}

/// The statements that are slowest beside PostgreSQL, the worst first. Those that do not count are told of, too.
fn by_ratio(all: &[Judged]) -> Vec<&Judged> {
    let mut sorted: Vec<&Judged> = all.iter().filter(|judged| judged.ratio().is_some()).collect();
    sorted.sort_by(|a, b| b.ratio().unwrap_or_default().total_cmp(&a.ratio().unwrap_or_default()));
    sorted
}

/// Whether a statement is slower than PostgreSQL, and one of the `count` worst so far.
pub fn is_among_worst(judged: &Judged, before: &[Judged], count: usize) -> bool {
    let Some(ratio) = judged.ratio().filter(|&ratio| ratio > 1.0) else { return false };
    let worse = |other: &&Judged| other.ratio().is_some_and(|other| other >= ratio);
    before.iter().filter(worse).count() < count
}

/// The geometric mean, of all that count and by schema, and how many are slower by how much.
pub fn summary(all: &[Judged]) -> String {
    let mut out = random(all);
    let bad = all.iter().filter(|judged| !judged.is_good()).count();
    let all: &[Judged] = &all.iter().filter(|judged| judged.counts()).cloned().collect::<Vec<_>>();
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
    put(format!("times PostgreSQL's: {}; {bad} failed or differ\n", counts.join(", ")));
    out
}

/// What is to be said of random statements before the figures: which of them count, and the share of the slow. Empty if there are none.
fn random(all: &[Judged]) -> String {
    let counting: Vec<&Judged> = all.iter().filter(|judged| judged.counts()).collect();
    if all.iter().all(|judged| judged.sql.is_none()) {
        return String::new();
    }
    let slow = counting.iter().filter(|judged| judged.ratio().is_some_and(|ratio| ratio > 2.0)).count();
    let percent = 100.0 * slow as f64 / counting.len().max(1) as f64;
    let count = |of: fn(&Judged) -> bool| all.iter().filter(|judged| of(judged)).count();
    format!(
        "\n{} random statements; {} took over {LONG_MS} ms on one of the servers or read {MUCH_ROWS} rows or more by PostgreSQL's plan, and count\n\
         {slow} of these ({percent:.1} %) took more than 2 times PostgreSQL's time; \
         {} of all took more than {FINDING_RATIO} times and {FINDING_MS} ms, \
         {} had different rows, {} failed on one server only, {} were left out\n",
        all.len(),
        counting.len(),
        count(Judged::is_finding),
        count(|judged| judged.difference.is_some()),
        count(|judged| judged.error.is_some()),
        count(|judged| judged.left_out.is_some()),
    )
}

/// Forgets the plans of all but the worst, and of those that are not good.
pub fn keep_worst(all: &mut [Judged], count: usize) {
    let limit = by_ratio(all).get(count).and_then(|judged| judged.ratio()).unwrap_or_default();
    let is_worse = |judged: &Judged| judged.ratio().is_some_and(|ratio| ratio > limit);
    for judged in all.iter_mut().filter(|judged| judged.is_good() && !is_worse(judged)) {
        (judged.baseline_plan, judged.plan) = (None, None);
    }
}

/// A row for each statement, for a table of a report: its name, where it is from, rows, milliseconds on both, the ratio.
pub fn figures(all: &[Judged]) -> Vec<Vec<String>> {
    let ms = |ms: Option<f64>| ms.map_or(String::new(), |ms| format!("{ms:.3}"));
    let row = |judged: &Judged| {
        let ratio = match judged.ratio() {
            Some(ratio) if judged.error.is_none() && judged.difference.is_none() => format!("{ratio:.2}"),
            _ if judged.left_out.is_some() => "left out".into(),
            _ => "failed".into(),
        };
        let name = format!("{}/{}", judged.schema, judged.name);
        vec![name, judged.origin.clone(), judged.rows.to_string(), ms(judged.baseline_ms), ms(judged.ms), ratio]
    };
    all.iter().map(row).collect()
}

/// The worst with both plans, those of which plans were kept; behind them the random ones that are not good.
pub fn worst(all: &[Judged]) -> String {
    let mut out = String::new();
    let is_bad = |judged: &&Judged| judged.sql.is_some() && !judged.is_good();
    let slow = by_ratio(all).into_iter().filter(|judged| judged.plan.is_some() && !is_bad(judged));
    for judged in slow.chain(all.iter().filter(is_bad)) {
        write!(out, "\n{}", told(judged)).expect("a string takes every character");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn random(name: &str, baseline: f64, own: f64) -> Judged {
        Judged {
            schema: "shop".into(),
            name: name.into(),
            baseline_ms: Some(baseline),
            ms: Some(own),
            sql: Some(format!("SELECT '{name}'")),
            plan: Some("Seq Scan".into()),
            ..Judged::default()
        }
    }

    #[test]
    fn random_statements_that_do_not_count_are_in_no_share() {
        let mut all = vec![random("short", 0.1, 5.0), random("even", 30.0, 30.0), random("slow", 40.0, 120.0)];
        let said = summary(&all);
        assert!(said.contains("3 random statements; 2 took") && said.contains("1 of these (50.0 %)"), "{said}");
        assert!(said.contains("1.73"), "{said}");
        assert!(is_among_worst(&all[0], &[], 10) && !is_among_worst(&all[2], &all[..2], 1));
        all.push(Judged { difference: Some("1, not 2".into()), ..random("wrong", 1.0, 1.0) });
        keep_worst(&mut all, 2);
        assert_eq!(all.iter().filter(|judged| judged.plan.is_some()).count(), 3);
        let told = worst(&all);
        assert!(
            told.contains("SELECT 'slow';")
                && told.ends_with("differs: 1, not 2\n  SELECT 'wrong';\n  PostgreSQL\n    \n  Nyala\n    Seq Scan\n"),
            "{told}"
        );
    }

    #[test]
    fn a_finding_is_told_whatever_number_of_the_worst_is_asked_for() {
        let mut all = vec![random("finding", 3.0, 99.0)];
        keep_worst(&mut all, 0);
        assert!(worst(&all).contains("a finding\n  SELECT 'finding';"));
        assert!(summary(&[Judged { sql: None, ..all[0].clone() }]).starts_with("\nschema"));
    }
}
