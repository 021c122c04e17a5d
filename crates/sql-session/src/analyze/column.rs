//! From the sampled values of a column to its statistics, as PostgreSQL's `analyze.c` computes them.

use base::Oid;
use sql_functions::statistics::ColumnStatistics;
use types::{Datum, oid};

/// Values wider than this are counted, not kept.
const WIDTH_MAX: usize = 1024;

/// Values of a column that are too wide to be kept.
#[derive(Clone, Copy, Default)]
pub(super) struct TooWide {
    count: usize,
    bytes: usize,
}

impl TooWide {
    /// Counts a value if it is one, and leaves NULL in its place: a sample of a table of large values would be as large as a good
    /// part of the table.
    pub fn take(&mut self, value: &mut Datum, ty: Oid) {
        if matches!(value, Datum::Text(_) | Datum::Bytea(_) | Datum::Bits(_) | Datum::Array(_) | Datum::Record(_)) {
            let width = width_of(value, ty);
            if width > WIDTH_MAX {
                *value = Datum::Null;
                self.count += 1;
                self.bytes += width;
            }
        }
    }
}

/// How much is wanted, and of how many rows the sample is.
#[derive(Clone, Copy)]
pub(super) struct Target {
    /// Common values, and parts of the histogram.
    pub values: usize,
    /// Rows of the table.
    pub rows: f64,
}

/// The sampled values of one column.
pub(super) struct Collected<'v> {
    ty: Oid,
    /// Rows of the sample.
    rows: usize,
    nulls: usize,
    too_wide: usize,
    bytes: usize,
    /// The others, sorted, each with its place among them before.
    values: Vec<(&'v Datum, usize)>,
}

/// A run of equal values: where it begins among the sorted ones, and its length.
#[derive(Clone, Copy)]
struct Run {
    at: usize,
    count: usize,
}

fn width_of(value: &Datum, ty: Oid) -> usize {
    match value {
        Datum::Text(text) => text.len() + 1,
        Datum::Bytea(bytes) => bytes.len() + 1,
        Datum::Bits(held) => types::bits::bytes(held).len() + 5,
        Datum::Inet(v) => 3 + usize::from(v.width() / 8),
        Datum::Array(array) => 24 + array.values.iter().map(|v| width_of(v, array.element)).sum::<usize>(),
        Datum::Record(fields) => 24 + fields.iter().map(|v| width_of(v, oid::TEXT)).sum::<usize>(),
        Datum::Numeric(_) => 8,
        Datum::Int4(_) => 4,
        Datum::Int8(_) | Datum::Timestamp(_) => 8,
        _ => types::type_info(ty).and_then(|t| usize::try_from(t.len).ok()).unwrap_or(8),
    }
}

impl<'v> Collected<'v> {
    /// Of these values, and of those that were taken from among them and are NULL there.
    pub fn of(values: impl Iterator<Item = &'v Datum>, wide: TooWide, ty: Oid) -> Collected<'v> {
        let (too_wide, bytes) = (wide.count, wide.bytes);
        let mut of = Collected { ty, rows: 0, nulls: 0, too_wide, bytes, values: Vec::new() };
        for value in values {
            of.rows += 1;
            if value.is_null() {
                of.nulls += 1;
                continue;
            }
            let width = width_of(value, ty);
            of.bytes += width;
            if width > WIDTH_MAX {
                of.too_wide += 1;
            } else {
                let place = of.values.len();
                of.values.push((value, place));
            }
        }
        of.nulls = of.nulls.saturating_sub(wide.count);
        // Values without an order are only counted.
        if matches!(ty, oid::JSON | oid::UNKNOWN) {
            of.too_wide += of.values.len();
            of.values.clear();
        }
        of.sort();
        of
    }

    /// Sorts the values, those that are equal by their places: first by a number that most of them differ in.
    fn sort(&mut self) {
        let ty = self.ty;
        let key = |value: &(&'v Datum, usize)| (types::abbreviate(ty, &value.0.as_ref()), *value);
        let mut order: Vec<(u64, (&'v Datum, usize))> = self.values.iter().map(key).collect();
        order.sort_unstable_by(|(a, (x, at)), (b, (y, bt))| {
            let whole = || types::compare_as(ty, &x.as_ref(), &y.as_ref());
            a.cmp(b).then_with(whole).then(at.cmp(bt))
        });
        self.values = order.into_iter().map(|(_, value)| value).collect();
    }

    fn runs(&self) -> Vec<Run> {
        let mut runs: Vec<Run> = Vec::new();
        for (at, (value, _)) in self.values.iter().enumerate() {
            match runs.last_mut() {
                Some(run) if types::compare_as(self.ty, &self.values[run.at].0.as_ref(), &value.as_ref()).is_eq() => {
                    run.count += 1;
                }
                _ => runs.push(Run { at, count: 1 }),
            }
        }
        runs
    }

    pub fn statistics(self, target: Target) -> ColumnStatistics {
        let (rows, present) = (self.rows.max(1) as f64, self.rows - self.nulls);
        let mut found = ColumnStatistics {
            null_fraction: self.nulls as f64 / rows,
            width: if present > 0 { self.bytes as f64 / present as f64 } else { 0.0 },
            ..ColumnStatistics::default()
        };
        let runs = self.runs();
        found.distinct = self.distinct(&runs, target.rows, found.null_fraction);
        if runs.is_empty() {
            return found;
        }
        let mut frequent: Vec<Run> = runs.iter().copied().filter(|run| run.count > 1).collect();
        frequent.sort_by_key(|run| std::cmp::Reverse(run.count));
        frequent.truncate(target.values);
        let all_known = frequent.len() == runs.len() && self.too_wide == 0 && found.distinct > 0.0;
        if !all_known {
            let keep = self.worth_keeping(&frequent, &found, target.rows);
            frequent.truncate(keep);
        }
        found.common = frequent.iter().map(|run| (self.values[run.at].0.clone(), run.count as f64 / rows)).collect();
        found.histogram = self.histogram(&runs, &frequent, target.values);
        found.correlation = self.correlation();
        found
    }

    /// Haas and Stokes' estimator; negative (a share of the rows) if the number seems to grow with the table.
    fn distinct(&self, runs: &[Run], total: f64, null_fraction: f64) -> f64 {
        let (kinds, multiple) = (runs.len() as f64, runs.iter().filter(|run| run.count > 1).count());
        if runs.is_empty() {
            return if self.too_wide > 0 { -1.0 + null_fraction } else { 0.0 };
        }
        if multiple == 0 {
            // PostgreSQL has the share of NULLs in single precision.
            return -(1.0 - f64::from(null_fraction as f32));
        }
        let distinct = if self.too_wide == 0 && multiple == runs.len() {
            kinds
        } else {
            let once = (runs.len() - multiple + self.too_wide) as f64;
            let kinds = kinds + self.too_wide as f64;
            let sampled = (self.rows - self.nulls) as f64;
            let all = (total * (1.0 - null_fraction)).max(sampled);
            let estimate = sampled * kinds / (sampled - once + once * sampled / all);
            estimate.clamp(kinds, all).floor()
        };
        if distinct > 0.1 * total { -(distinct / total) } else { distinct }
    }

    /// How many of the frequent values are certainly more frequent than the rest.
    fn worth_keeping(&self, frequent: &[Run], found: &ColumnStatistics, total: f64) -> usize {
        let sampled = self.rows as f64;
        if sampled >= total || total <= 1.0 {
            return frequent.len();
        }
        let distinct = found.distinct_of(total);
        let mut keep = frequent.len();
        let mut before: f64 = frequent.iter().rev().skip(1).map(|run| run.count as f64).sum();
        while keep > 0 {
            let rest = (1.0 - before / sampled - found.null_fraction).clamp(0.0, 1.0);
            let expected = rest / (distinct - (keep - 1) as f64).max(1.0) * sampled;
            let count = frequent[keep - 1].count as f64;
            let k = total * count / sampled;
            let variance = sampled * k * (total - k) * (total - sampled) / (total * total * (total - 1.0));
            if count > expected + 2.0 * variance.max(0.0).sqrt() + 0.5 {
                break;
            }
            keep -= 1;
            if keep > 0 {
                before -= frequent[keep - 1].count as f64;
            }
        }
        keep
    }

    /// Bounds of parts of equal size, of the values that are not among the common ones.
    fn histogram(&self, runs: &[Run], common: &[Run], parts: usize) -> Vec<Datum> {
        let mut skipped: Vec<Run> = common.to_vec();
        skipped.sort_by_key(|run| run.at);
        let rest: usize = self.values.len() - skipped.iter().map(|run| run.count).sum::<usize>();
        let bounds = (runs.len() - common.len()).min(parts + 1);
        if bounds < 2 {
            return Vec::new();
        }
        // The `n`th of the values that are left lies behind the runs skipped before it.
        let (mut passed, mut skip) = (0, skipped.iter().peekable());
        let mut at = |n: usize| {
            while let Some(run) = skip.peek()
                && run.at <= n + passed
            {
                passed += run.count;
                skip.next();
            }
            self.values[n + passed].0.clone()
        };
        (0..bounds).map(|bound| at(bound * (rest - 1) / (bounds - 1))).collect()
    }

    fn correlation(&self) -> Option<f64> {
        let count = self.values.len();
        if count < 2 {
            return None;
        }
        let n = count as f64;
        let products: f64 = self.values.iter().enumerate().map(|(at, (_, place))| at as f64 * *place as f64).sum();
        let sum = n * (n - 1.0) / 2.0;
        let squares = n * (n - 1.0) * (2.0 * n - 1.0) / 6.0;
        Some((n * products - sum * sum) / (n * squares - sum * sum))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_were_too_wide_to_keep_count_as_before() {
        let values: Vec<Datum> = (0..40)
            .map(|n| match n % 4 {
                0 => Datum::Null,
                1 => Datum::text(&"x".repeat(5000 + n)),
                _ => Datum::text(&format!("{}", n % 3)),
            })
            .collect();
        let target = Target { values: 100, rows: 40.0 };
        let whole = Collected::of(values.iter(), TooWide::default(), oid::TEXT).statistics(target);
        let (mut kept, mut wide) = (values, TooWide::default());
        kept.iter_mut().for_each(|value| wide.take(value, oid::TEXT));
        assert_eq!((wide.count, kept.iter().filter(|value| value.is_null()).count()), (10, 20));
        let parts = Collected::of(kept.iter(), wide, oid::TEXT).statistics(target);
        assert_eq!(format!("{parts:?}"), format!("{whole:?}"));
    }

    fn collected(values: &[i32], rows: f64) -> ColumnStatistics {
        let values: Vec<Datum> = values.iter().map(|v| if *v < 0 { Datum::Null } else { Datum::Int4(*v) }).collect();
        Collected::of(values.iter(), TooWide::default(), oid::INT4).statistics(Target { values: 100, rows })
    }

    #[test]
    fn a_key_is_distinct_in_any_table() {
        let values: Vec<i32> = (0..1000).collect();
        let found = collected(&values, 1_000_000.0);
        assert_eq!((found.distinct, found.common.len(), found.histogram.len()), (-1.0, 0, 101));
        assert_eq!(found.correlation, Some(1.0));
        assert!(matches!((&found.histogram[0], &found.histogram[100]), (Datum::Int4(0), Datum::Int4(999))));
    }

    #[test]
    fn few_values_are_all_known() {
        let values: Vec<i32> = (0..1000).map(|n| if n % 10 == 0 { -1 } else { n % 3 }).collect();
        let found = collected(&values, 1000.0);
        assert_eq!((found.distinct, found.null_fraction, found.common.len()), (3.0, 0.1, 3));
        assert!(found.histogram.is_empty());
        let shares: f64 = found.common.iter().map(|(_, share)| share).sum();
        assert!((shares - 0.9).abs() < 1e-9);
    }

    #[test]
    fn a_frequent_value_stands_beside_a_histogram_without_it() {
        let values: Vec<i32> = (0..3000).map(|n| if n % 3 == 0 { 7 } else { 10_000 - n }).collect();
        let found = collected(&values, 300_000.0);
        assert!(matches!(found.common[..], [(Datum::Int4(7), share)] if (share - 1.0 / 3.0).abs() < 1e-9));
        assert!(found.histogram.iter().all(|bound| !matches!(bound, Datum::Int4(7))));
        assert_eq!(found.distinct, 5885.0);
    }

    #[test]
    fn no_rows_and_no_values_are_no_trouble() {
        assert_eq!(collected(&[], 0.0).distinct, 0.0);
        let nulls = collected(&[-1, -1], 2.0);
        assert_eq!((nulls.null_fraction, nulls.distinct), (1.0, 0.0));
    }
}
