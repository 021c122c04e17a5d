//! The figures that SQL keeps of its statements.

use sql_session::metrics::{self, StatementKind};

use crate::{Exposition, FamilyKind};

const SECONDS_PER_MICRO: f64 = 1e-6;

/// Statements, rows, errors and times, summed over all cores.
pub fn expose_statements(out: &mut Exposition) {
    let totals = metrics::totals();
    out.family("nyala_statements_total", FamilyKind::Counter, "Statements that succeeded, by kind.");
    for kind in StatementKind::ALL {
        out.sample("nyala_statements_total", &[("kind", kind.name())], totals.of(kind).times.count());
    }
    out.family("nyala_statement_rows_total", FamilyKind::Counter, "Rows returned or changed by statements, by kind.");
    for kind in StatementKind::ALL {
        out.sample("nyala_statement_rows_total", &[("kind", kind.name())], totals.of(kind).rows);
    }
    out.family("nyala_errors_total", FamilyKind::Counter, "Errors sent to clients, by SQLSTATE.");
    for (state, count) in &totals.errors {
        out.sample("nyala_errors_total", &[("sqlstate", state.as_str())], count);
    }
    let name = "nyala_statement_duration_seconds";
    out.histograms(name, "Time of a statement that succeeded, waiting for the log excepted.");
    for kind in StatementKind::ALL {
        let times = &totals.of(kind).times;
        if times.count() == 0 {
            continue;
        }
        let buckets = times.buckets().map(|(bound, count)| (bound as f64 * SECONDS_PER_MICRO, count));
        let sum = times.sum_micros() as f64 * SECONDS_PER_MICRO;
        out.histogram(name, &[("kind", kind.name())], buckets, sum, times.count());
    }
}
