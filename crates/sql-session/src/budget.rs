//! Every entry of the tables of functions on large arguments: none works for long without looking whether it should stop and
//! whether it is the turn of others.
//!
//! By default work is counted in units, and a call that counts next to none for large arguments must be quick on the thread's
//! own clock: that finds work that is not counted at all. With `NYALA_BUDGET_MILLIS` set, arguments are longer and the time
//! between two looks is measured; work that is sent away is another thread's. `NYALA_BUDGET_ONLY=text` takes the calls only that
//! have the text in their names.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Wake, Waker};
use std::thread::Thread;

use base::work::{self, Host, Stop};
use base::{Error, Oid, Result, SqlState};
use sql_catalog::index_code::nobody;
use sql_functions::{EvalContext, all_aggregates, all_functions, all_set_functions, extensions, weight};
use types::oid::*;
use types::{Array, Datum, Numeric};

use super::Settings;

/// Units that one count may be at most.
const UNITS_MAX: u64 = 1 << 20;
/// Bytes of arguments and result that a call may look at for each unit it counts.
const BYTES_PER_UNIT: u64 = 64;
/// Nanoseconds that a build with debug assertions may need for each of these bytes, and for a call, without counting it: many
/// times what copying and comparing them takes.
const NANOS_PER_BYTE: u64 = 25;
const NANOS_UNCOUNTED: u64 = 1_000_000;
/// Nanoseconds of [`loop_of_bytes`] on a machine for which these hold. A slower one, or one that is busy, may take longer for all.
const NANOS_OF_LOOP: u64 = 25_000;
/// Looks after which a call is stopped.
const LOOKS: u64 = 12;

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

/// Nanoseconds that looking at some bytes, one after the other, takes now.
fn loop_of_bytes() -> u64 {
    let began = used();
    let mut sum = 0u64;
    for byte in std::hint::black_box(&[1u8; 1 << 13]) {
        sum = sum.wrapping_mul(31).wrapping_add(u64::from(*byte));
    }
    std::hint::black_box(sum);
    used() - began
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

/// Wakes a thread that waits for work it has sent away.
struct Waiter(Thread);

impl Wake for Waiter {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// From now on the thread runs as a strand that can send work away.
fn become_strand() {
    work::host(Host {
        pause: || {},
        can_leave: || true,
        send: |work| _ = std::thread::spawn(work),
        assist: |_| false,
        now: || 0,
        wait: |take| {
            take(Waker::from(Arc::new(Waiter(std::thread::current()))));
            std::thread::park();
        },
    });
    // The test is the thread's only work, to its end.
    let _outside = work::enter(1, (0, 0));
}

/// Runs calls and gathers what was wrong with them.
struct Trial {
    /// What names are to contain.
    only: String,
    looks: Arc<Looks>,
    /// Nanoseconds that are allowed between two looks.
    nanos_max: Option<u64>,
    /// Whether what calls take is held against what they count.
    is_timed: bool,
    faults: Vec<String>,
    calls: usize,
}

/// What one call came to.
struct Run<T> {
    /// `None` after a panic.
    result: Option<Result<T>>,
    /// Work counted, the most of it between two looks, and the looks.
    units: u64,
    largest: u64,
    looks: u64,
    /// The most nanoseconds between two looks.
    longest: u64,
}

impl<T> Run<T> {
    /// Whether a call took longer than looking at so many bytes once may take without counting them, as fast as the machine is now.
    fn is_uncounted(&self, bytes: usize) -> bool {
        let nanos_max = NANOS_UNCOUNTED.max(NANOS_PER_BYTE * bytes as u64);
        self.looks == 0
            && self.units < bytes as u64 / BYTES_PER_UNIT
            && self.longest > nanos_max
            && self.longest * NANOS_OF_LOOP > nanos_max * loop_of_bytes()
    }
}

impl Trial {
    fn run<T>(&mut self, call: &mut impl FnMut() -> Result<T>) -> Run<T> {
        work::largest();
        let before = work::total();
        self.looks.begin();
        // Whether a function refuses what the binder never gives it is not asked here.
        let result = std::panic::catch_unwind(AssertUnwindSafe(|| work::caught(call))).ok();
        self.looks.note();
        let (looks, longest) = (self.looks.count.load(Relaxed), self.looks.longest.load(Relaxed));
        Run { result, units: work::total() - before, largest: work::largest(), looks, longest }
    }

    /// Calls with arguments of so many bytes; `size` is what is made.
    fn call<T>(
        &mut self,
        name: impl Fn() -> String,
        bytes: usize,
        size: impl Fn(&T) -> usize,
        mut call: impl FnMut() -> Result<T>,
    ) -> Option<T> {
        self.calls += 1;
        if !self.only.is_empty() && !name().contains(&self.only) {
            // What makes arguments counts its work, too.
            self.looks.begin();
            return None;
        }
        let run = self.run(&mut call);
        if self.nanos_max.is_some_and(|most| run.longest > most) {
            self.faults.push(format!("{}: {} ms between two looks", name(), run.longest / 1_000_000));
        }
        if run.largest > UNITS_MAX {
            self.faults.push(format!("{}: {} units at once", name(), run.largest));
        }
        if run.looks > self.looks.most + 2 {
            self.faults.push(format!("{}: goes on after it was stopped, {} looks", name(), run.looks));
        }
        let made = run.result.as_ref().and_then(|result| result.as_ref().ok()).map_or(0, size);
        let bytes = bytes + made;
        // A clock that was wrong is so once.
        if self.is_timed && run.is_uncounted(bytes) && (0..20).all(|_| self.run(&mut call).is_uncounted(bytes)) {
            let (millis, units) = (run.longest as f64 / 1e6, run.units);
            self.faults.push(format!("{}: {units} units counted in {millis:.1} ms for {bytes} bytes", name()));
        }
        run.result?.ok()
    }
}

/// What arguments are made of.
struct Values {
    text: usize,
    elements: usize,
    /// A long text of each kind.
    texts: Vec<Arc<str>>,
}

/// What long texts repeat, for every kind of thing that a function may look for in one.
const PARTS: [&str; 24] = [
    "ab ",
    "%é_\\\\",
    "\"",
    "'",
    "%1$s",
    "%s",
    "YYYY ",
    "FMMonthTH",
    "x",
    "9",
    "9G0D0",
    "\\",
    ",",
    "{",
    "é",
    "0123abcd-",
    "a.",
    "(",
    "1 day ",
    "2000-01-01 ",
    "QUJD",
    "<b>&",
    "\\u0041",
    " \n",
];
/// Kinds of long texts; the last ones are whole values.
const TEXTS: usize = PARTS.len() + 6;

impl Values {
    fn new(text: usize, elements: usize) -> Values {
        let mut values = Values { text, elements, texts: Vec::new() };
        values.texts = (0..TEXTS).map(|kind| values.make_text(kind).into()).collect();
        values
    }

    fn make_text(&self, kind: usize) -> String {
        let numbers = |n: usize| (0..n).map(|n| n.to_string()).collect::<Vec<_>>().join(",");
        match kind.checked_sub(PARTS.len()) {
            None => PARTS[kind].repeat(self.text / PARTS[kind].len()),
            Some(0) => "7".repeat(self.text.min(130_000)),
            Some(1) => format!("[{}]", numbers(self.elements)),
            Some(2) => format!("{{{}}}", numbers(self.elements)),
            Some(3) => {
                let fields = (0..self.elements / 4).map(|n| format!("\"k{n}\": {{\"é\\n\": [{n}.5, null]}}"));
                format!("{{{}}}", fields.collect::<Vec<_>>().join(", "))
            }
            Some(4) => format!("0.{}1", "0".repeat(self.text)),
            Some(_) => format!("\\x{}", "ab".repeat(self.text / 2)),
        }
    }

    fn text(&self, kind: usize) -> Arc<str> {
        self.texts[kind % TEXTS].clone()
    }

    fn digits(&self) -> Arc<str> {
        self.text(PARTS.len())
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
            ty if is_text(ty) => Datum::Text(self.text(kind)),
            BYTEA => Datum::Bytea(self.text(kind).as_bytes().into()),
            BIT | VARBIT => {
                Datum::Bits(types::bits::from_bytes(self.text(kind).as_bytes(), self.text(kind).len() * 8 - 3))
            }
            NUMERIC => {
                let digits = self.digits();
                let (whole, part) = digits.split_at(digits.len().min(100_000));
                Datum::Numeric(Numeric::parse(&format!("{whole}.{}", &part[..part.len().min(16_000)])).expect("digits"))
            }
            PG_SNAPSHOT | TXID_SNAPSHOT => {
                let running = (1..=self.elements as u64).collect();
                Datum::from(types::Snapshot::new(self.elements as u64 + 1, running).text().expect("there is room"))
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
            UUID => Datum::Uuid([7; 16]),
            INET | CIDR => Datum::Inet(types::Inet::parse("10.1.0.0/16", ty == CIDR).expect("a network")),
            MACADDR => Datum::Mac([7; 6]),
            MACADDR8 => Datum::Mac8([7; 8]),
            BIT | VARBIT => Datum::Bits(types::bits::from_bytes(b"abc", 20)),
            JSON | JSONB => Datum::text(["1", "[1]", "{\"k1\": 1}"][kind % 3]),
            JSONPATH => Datum::text(["$[*]", "$.** ? (@ > 5)", "$.k1"][kind % 3]),
            ty if is_text(ty) => {
                const SHORT: [&str; 6] = ["a", "(a|b)*c", "hex", "%a%b%c", ",", "base64"];
                Datum::text(SHORT[kind % SHORT.len()])
            }
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

fn is_text(ty: Oid) -> bool {
    [TEXT, VARCHAR, BPCHAR, NAME, UNKNOWN, JSON, JSONB, ANY, ANYNONARRAY, ANYELEMENT].contains(&ty)
}

/// Which arguments are long, by turns: each, and all.
fn masks(args: &[Oid]) -> impl Iterator<Item = usize> {
    let all = (1 << args.len()) - 1;
    let each = if args.len() > 1 { args.len() } else { 0 };
    (0..each).map(|at| 1 << at).chain((!args.is_empty()).then_some(all))
}

/// How many kinds of arguments a function is called with: every kind of text, if it takes any.
fn kinds(args: &[Oid]) -> usize {
    if args.iter().any(|ty| is_text(*ty) || *ty == BYTEA) { TEXTS } else { 3 }
}

fn functions(trial: &mut Trial, values: &Values, cx: &dyn EvalContext) {
    // Names with a blank are the binder's own.
    let built_in = all_functions().filter(|function| !function.name.contains(' '));
    for function in built_in.chain(extensions::all().map(|(_, function)| function)) {
        for kind in 0..kinds(function.args) {
            for mask in masks(function.args) {
                let args = values.arguments(function.args, kind, mask);
                let name = || format!("{} ({}), arguments {kind}/{mask}", function.name, function.oid);
                let bytes = args.iter().map(weight).sum();
                trial.call(name, bytes, weight, || (function.eval)(cx, &args));
            }
        }
    }
}

/// Functions that do nothing unless their last argument says how.
fn algorithms(trial: &mut Trial, values: &Values, cx: &dyn EvalContext) {
    const WORDS: [&str; 8] =
        ["md5", "sha1", "sha512", "aes", "aes-ecb", "bf/pad:none", "$1$abcdefgh", "$2a$04$abcdefghijklmnopqrstuu"];
    for (_, function) in extensions::all().filter(|(_, function)| function.args.len() > 1) {
        for (word, mask) in WORDS.iter().flat_map(|word| masks(function.args).map(move |mask| (word, mask))) {
            let mut args = values.arguments(function.args, 0, mask);
            if let Some(last @ Datum::Text(_)) = args.last_mut() {
                *last = Datum::text(word);
            }
            let name = || format!("{} ({}), {word}, arguments {mask}", function.name, function.oid);
            let bytes = args.iter().map(weight).sum();
            trial.call(name, bytes, weight, || (function.eval)(cx, &args));
        }
    }
}

fn sets(trial: &mut Trial, values: &Values, cx: &dyn EvalContext) {
    for function in all_set_functions() {
        for kind in 0..kinds(function.args) {
            for mask in masks(function.args) {
                let args = values.arguments(function.args, kind, mask);
                let name = || format!("{} ({}), arguments {kind}/{mask}", function.name, function.oid);
                let bytes = args.iter().map(weight).sum();
                let count = |rows: Box<dyn Iterator<Item = _>>| {
                    rows.take(1000).try_fold(0, |n, row: Result<_>| row.map(|_| n + 1))
                };
                trial.call(name, bytes, |_| 0, || count((function.eval)(cx, &args)?));
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
        trial.call(name, 0, weight, || state.finish(cx));
        for kind in 0..kinds(aggregate.args) {
            let args = values.arguments(aggregate.args, kind, usize::MAX);
            trial.call(name, args.iter().map(weight).sum(), |_| 0, || state.add(cx, &args));
        }
        trial.call(name, 0, weight, || state.finish(cx));
    }
}

/// Text forms of long values. What casts call are functions of the tables.
fn conversions(trial: &mut Trial, values: &Values, cx: &dyn EvalContext) {
    #[rustfmt::skip]
    let types = [
        TEXT, VARCHAR, BPCHAR, NAME, BYTEA, NUMERIC, JSON, JSONB, JSONPATH, TEXT_ARRAY, INT4_ARRAY, FLOAT8, FLOAT4, INT2,
        INT4, INT8, OID, BOOL, UUID, INET, CIDR, MACADDR, MACADDR8, BIT, VARBIT, DATE, TIME, TIMETZ, TIMESTAMP, TIMESTAMPTZ, INTERVAL,
    ];
    let input = types::InputContext { settings: cx.settings(), now_micros: 0 };
    for ty in types {
        for kind in 0..TEXTS {
            let text = values.text(kind);
            trial.call(
                || format!("reading {}, text {kind}", types::format_type(ty, -1)),
                text.len(),
                weight,
                || types::parse_text(ty, -1, &text, &input),
            );
            let value = values.long(ty, kind);
            let mut out = Vec::new();
            trial.call(
                || format!("writing {}, value {kind}", types::format_type(ty, -1)),
                weight(&value),
                |_| 0,
                || types::write_text(value.as_ref(), ty, cx.settings(), &mut out),
            );
            let other = values.long(ty, kind + 1);
            trial.call(
                || format!("comparing {}, value {kind}", types::format_type(ty, -1)),
                weight(&value).min(weight(&other)),
                |_| 0,
                || Ok(types::compare_as(ty, &value.as_ref(), &other.as_ref())),
            );
        }
    }
}

/// Long values of every setting, and a long name.
fn settings(trial: &mut Trial, values: &Values) {
    let mut settings = Settings::of_nobody().expect("settings");
    let names: Vec<&str> = settings.all().map(|(name, ..)| name).collect();
    for kind in 0..TEXTS {
        let text = values.text(kind);
        for name in &names {
            let call = || settings.check_value(name, &text);
            trial.call(|| format!("checking {name}, text {kind}"), text.len(), |()| 0, call);
        }
        for (name, value) in [("a.b".to_string(), &*text), (format!("a.{text}"), "")] {
            let call = || settings.set(&name, value, true, 0);
            trial.call(|| format!("a setting of nobody's, text {kind}"), text.len(), |()| 0, call);
        }
        settings.rollback();
    }
}

#[test]
fn no_entry_works_for_long_without_a_look() {
    let millis: Option<u64> = std::env::var("NYALA_BUDGET_MILLIS").ok().map(|n| n.parse().expect("milliseconds"));
    let (values, most) = match millis {
        Some(_) => (Values::new(8 << 20, 300_000), 2000),
        None => (Values::new(40_000, 3_000), LOOKS),
    };
    let looks = Arc::new(Looks { count: AtomicU64::new(0), last: AtomicU64::new(0), longest: AtomicU64::new(0), most });
    if millis.is_some() {
        become_strand();
    }
    let stop: Arc<dyn Stop> = looks.clone();
    work::stopped_by(&stop);
    let is_timed = millis.is_none() && cfg!(debug_assertions);
    let nanos_max = millis.map(|n| n * 1_000_000);
    let only = std::env::var("NYALA_BUDGET_ONLY").unwrap_or_default();
    let mut trial = Trial { only, looks, nanos_max, is_timed, faults: Vec::new(), calls: 0 };
    types::user::Current::by(&Arc::default()).stay();
    let cx = nobody(Arc::default());
    functions(&mut trial, &values, &cx);
    algorithms(&mut trial, &values, &cx);
    sets(&mut trial, &values, &cx);
    aggregates(&mut trial, &values, &cx);
    conversions(&mut trial, &values, &cx);
    settings(&mut trial, &values);
    assert!(trial.calls > 30_000, "{} calls only", trial.calls);
    assert!(trial.faults.is_empty(), "{} of {} calls:\n{}", trial.faults.len(), trial.calls, trial.faults.join("\n"));
}
