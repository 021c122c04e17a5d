//! Every entry of the tables of functions on large arguments: none works for long without looking whether it should stop and
//! whether it is the turn of others.
//!
//! By default work is counted in units. With `NYALA_BUDGET_MILLIS` set, arguments are longer and the time between two looks is
//! measured on the thread's own clock: that finds work that is not counted at all.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use base::work::{self, Stop};
use base::{Error, Oid, Result, SqlState};
use types::oid::*;
use types::{Array, Datum, Numeric};

use super::{EvalContext, all_aggregates, all_functions, all_set_functions};
use crate::index_code::nobody;

/// Units that one count may be at most.
const UNITS_MAX: u64 = 1 << 20;
/// Looks after which a call is stopped.
const LOOKS: u64 = 24;

/// Stops a call after some looks, and keeps how long it was between two.
struct Looks {
    count: AtomicU64,
    last: AtomicU64,
    longest: AtomicU64,
    /// Looks that are allowed.
    most: u64,
}

/// Nanoseconds that the thread has used a processor.
fn used() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

impl Looks {
    fn begin(&self) {
        self.count.store(0, Relaxed);
        self.longest.store(0, Relaxed);
        self.last.store(used(), Relaxed);
    }

    fn note(&self) {
        let now = used();
        let before = self.last.swap(now, Relaxed);
        self.longest.fetch_max(now - before, Relaxed);
    }
}

impl Stop for Looks {
    fn look(&self) -> Result<()> {
        self.note();
        if self.count.fetch_add(1, Relaxed) < self.most {
            return Ok(());
        }
        Err(Error::new(SqlState::QUERY_CANCELED, "enough"))
    }
}

/// Runs calls and gathers what was wrong with them.
struct Trial {
    looks: Arc<Looks>,
    /// Nanoseconds that are allowed between two looks.
    nanos_max: Option<u64>,
    faults: Vec<String>,
    calls: usize,
}

impl Trial {
    fn call<T>(&mut self, name: impl Fn() -> String, call: impl FnOnce() -> Result<T>) -> Option<T> {
        self.calls += 1;
        work::largest();
        self.looks.begin();
        // Whether a function refuses what the binder never gives it is not asked here.
        let result = std::panic::catch_unwind(AssertUnwindSafe(|| work::caught(call)));
        self.looks.note();
        let (looks, longest) = (self.looks.count.load(Relaxed), self.looks.longest.load(Relaxed));
        if self.nanos_max.is_some_and(|most| longest > most) {
            self.faults.push(format!("{}: {} ms between two looks", name(), longest / 1_000_000));
        }
        let largest = work::largest();
        if largest > UNITS_MAX {
            self.faults.push(format!("{}: {largest} units at once", name()));
        }
        if looks > self.looks.most + 2 {
            self.faults.push(format!("{}: goes on after it was stopped, {looks} looks", name()));
        }
        result.ok()?.ok()
    }
}

/// What arguments are made of.
struct Values {
    text: usize,
    elements: usize,
}

const TEXTS: usize = 6;

impl Values {
    fn text(&self, kind: usize) -> String {
        let to_length = |part: &str| part.repeat(self.text / part.len());
        match kind {
            0 => to_length("ab "),
            1 => "7".repeat(self.text.min(130_000)),
            2 => format!("[{}]", (0..self.elements).map(|n| n.to_string()).collect::<Vec<_>>().join(",")),
            3 => format!("{{{}}}", (0..self.elements).map(|n| n.to_string()).collect::<Vec<_>>().join(",")),
            4 => {
                let fields = (0..self.elements / 4).map(|n| format!("\"k{n}\": {{\"é\\n\": [{n}.5, null]}}"));
                format!("{{{}}}", fields.collect::<Vec<_>>().join(", "))
            }
            _ => to_length("%é_\\\\"),
        }
    }

    fn array(&self, element: Oid, kind: usize) -> Datum {
        let value = |n: usize| match element {
            INT8 => Datum::Int8(n as i64),
            FLOAT8 => Datum::Float8(n as f64),
            NUMERIC => Datum::Numeric(Numeric::new(n as i64, 2)),
            TEXT | VARCHAR | BPCHAR | NAME | JSON | JSONB => Datum::from(n.to_string()),
            BOOL => Datum::Bool(n.is_multiple_of(2)),
            _ => Datum::Int4(n as i32),
        };
        // The other half for every second one: nothing is in both.
        let from = if kind.is_multiple_of(2) { 0 } else { self.elements };
        let values: Vec<Datum> = (from..from + self.elements).map(value).collect();
        Datum::Array(Arc::new(Array { element, dims: vec![(values.len() as i32, 1)], values }))
    }

    fn long(&self, ty: Oid, kind: usize) -> Datum {
        match ty {
            TEXT | VARCHAR | BPCHAR | NAME | UNKNOWN | JSON | JSONB | ANY | ANYNONARRAY => Datum::from(self.text(kind)),
            BYTEA => Datum::Bytea(self.text(kind).into_bytes().into()),
            NUMERIC => {
                let digits = self.text(1);
                let (whole, part) = digits.split_at(digits.len().min(100_000));
                Datum::Numeric(Numeric::parse(&format!("{whole}.{}", &part[..part.len().min(16_000)])).expect("digits"))
            }
            ANYARRAY | ANYCOMPATIBLEARRAY => self.array(if kind.is_multiple_of(2) { INT4 } else { TEXT }, kind),
            ty => match types::element_of(ty) {
                Some(element) => self.array(element, kind),
                None => self.short(ty, kind),
            },
        }
    }

    fn short(&self, ty: Oid, kind: usize) -> Datum {
        match ty {
            BOOL => Datum::Bool(kind.is_multiple_of(2)),
            INT2 => Datum::Int2(2),
            INT8 => Datum::Int8(300),
            FLOAT4 => Datum::Float4(0.5),
            FLOAT8 => Datum::Float8(0.5),
            OID => Datum::Oid(25),
            DATE => Datum::Date(9000),
            TIME => Datum::Time(1_000_000),
            TIMESTAMP => Datum::Timestamp(1_000_000),
            TIMESTAMPTZ => Datum::TimestampTz(1_000_000),
            INTERVAL => Datum::Interval(types::Interval { micros: 5, days: 1, months: 1 }),
            NUMERIC => Datum::Numeric(Numeric::new(25, 1)),
            BYTEA => Datum::Bytea(b"hex"[..].into()),
            TEXT | VARCHAR | BPCHAR | NAME | UNKNOWN | ANY | ANYNONARRAY => {
                Datum::text(["a", "(a|b)*c", "hex", "%a%b%c", ",", "base64"][kind % TEXTS])
            }
            JSON | JSONB => Datum::text(["1", "[1]", "{\"k1\": 1}"][kind % 3]),
            JSONPATH => Datum::text(["$[*]", "$.** ? (@ > 5)", "$.k1"][kind % 3]),
            ty => match types::element_of(ty) {
                Some(TEXT) => list(TEXT, ["k1", "é"].map(Datum::text).to_vec()),
                Some(element) => list(element, vec![self.short(element, kind)]),
                None if ty == ANYARRAY || ty == ANYCOMPATIBLEARRAY => list(INT4, vec![Datum::Int4(5)]),
                None => Datum::Int4(40),
            },
        }
    }

    /// Arguments of these types: `mask` says which are long.
    fn arguments(&self, args: &[Oid], kind: usize, mask: usize) -> Vec<Datum> {
        let value = |(at, ty): (usize, &Oid)| match mask >> at & 1 {
            1 => self.long(*ty, kind),
            _ => self.short(*ty, kind),
        };
        args.iter().enumerate().map(value).collect()
    }
}

fn list(element: Oid, values: Vec<Datum>) -> Datum {
    Datum::Array(Arc::new(Array { element, dims: vec![(values.len() as i32, 1)], values }))
}

/// Which of so many arguments are long, by turns.
fn masks(count: usize) -> std::ops::Range<usize> {
    1..1 << count.min(2)
}

fn functions(trial: &mut Trial, values: &Values, cx: &dyn EvalContext) {
    // Names with a blank are the binder's own.
    for function in all_functions().filter(|function| !function.name.contains(' ')) {
        for kind in 0..TEXTS {
            for mask in masks(function.args.len()) {
                let args = values.arguments(function.args, kind, mask);
                let name = || format!("{} ({}), arguments {kind}/{mask}", function.name, function.oid);
                trial.call(name, || (function.eval)(cx, &args));
            }
        }
    }
}

fn sets(trial: &mut Trial, values: &Values, cx: &dyn EvalContext) {
    for function in all_set_functions() {
        for kind in 0..TEXTS {
            for mask in masks(function.args.len()) {
                let args = values.arguments(function.args, kind, mask);
                let name = || format!("{} ({}), arguments {kind}/{mask}", function.name, function.oid);
                let rows = trial.call(name, || (function.eval)(cx, &args));
                trial
                    .call(name, || rows.map_or(Ok(0), |rows| rows.take(1000).try_fold(0, |n, row| row.map(|_| n + 1))));
            }
        }
    }
}

fn aggregates(trial: &mut Trial, values: &Values, cx: &dyn EvalContext) {
    for aggregate in all_aggregates() {
        let mut state = (aggregate.create)(aggregate.args);
        let name = || format!("{} ({})", aggregate.name, aggregate.oid);
        let args = values.arguments(aggregate.args, 0, 0);
        for _ in 0..values.elements * 4 {
            // The operator that calls it counts rows.
            let _ = state.add(cx, &args);
        }
        trial.call(name, || state.finish(cx));
        let args = values.arguments(aggregate.args, 0, 1);
        trial.call(name, || state.add(cx, &args));
    }
}

/// Text forms of long values. What casts call are functions of the tables.
fn conversions(trial: &mut Trial, values: &Values, cx: &dyn EvalContext) {
    let types = [TEXT, VARCHAR, BPCHAR, BYTEA, NUMERIC, JSON, JSONB, JSONPATH, TEXT_ARRAY, INT4_ARRAY, FLOAT8, INT4];
    let input = types::InputContext { settings: cx.settings(), now_micros: 0 };
    for ty in types {
        for kind in 0..TEXTS {
            let text = values.text(kind);
            trial.call(
                || format!("reading {}, text {kind}", types::format_type(ty, -1)),
                || types::parse_text(ty, -1, &text, &input),
            );
            let value = values.long(ty, kind);
            let mut out = Vec::new();
            trial.call(
                || format!("writing {}, value {kind}", types::format_type(ty, -1)),
                || types::write_text(value.as_ref(), ty, cx.settings(), &mut out),
            );
            let other = values.long(ty, kind + 1);
            trial.call(
                || format!("comparing {}, value {kind}", types::format_type(ty, -1)),
                || Ok(types::compare_as(ty, &value.as_ref(), &other.as_ref())),
            );
        }
    }
}

#[test]
fn no_entry_works_for_long_without_a_look() {
    let millis: Option<u64> = std::env::var("NYALA_BUDGET_MILLIS").ok().map(|n| n.parse().expect("milliseconds"));
    let (values, most) = match millis {
        Some(_) => (Values { text: 8 << 20, elements: 300_000 }, 2000),
        None => (Values { text: 80_000, elements: 6_000 }, LOOKS),
    };
    let looks = Arc::new(Looks { count: AtomicU64::new(0), last: AtomicU64::new(0), longest: AtomicU64::new(0), most });
    let stop: Arc<dyn Stop> = looks.clone();
    work::stopped_by(&stop);
    let mut trial = Trial { looks, nanos_max: millis.map(|n| n * 1_000_000), faults: Vec::new(), calls: 0 };
    let cx = nobody();
    functions(&mut trial, &values, &cx);
    sets(&mut trial, &values, &cx);
    aggregates(&mut trial, &values, &cx);
    conversions(&mut trial, &values, &cx);
    assert!(trial.calls > 3000, "{} calls only", trial.calls);
    assert!(trial.faults.is_empty(), "{} of {} calls:\n{}", trial.faults.len(), trial.calls, trial.faults.join("\n"));
}
