use std::collections::BTreeMap;

use expect_test::{Expect, expect};

use super::chart::{Unit, powers, ticks};
use super::groups::Comparison;
use super::{html, markdown};
use crate::result::{FORMAT, KindResult, Latency, Machine, Point, RunFile, Second, ServerFacts, Verdict};
use crate::spread::Spread;
use crate::usage::{GENERATOR, Process, Usage};

fn process(name: &str, count: usize, rate: f64) -> Process {
    let (user_seconds, system_seconds) = (rate / 1000.0, rate / 2000.0);
    Process { name: name.into(), is_server: name != GENERATOR, count, user_seconds, system_seconds }
}

/// A run with a point for each of these: variant, clients, transactions per second.
pub fn run(label: &str, started: u64, points: &[(&str, usize, f64)]) -> RunFile {
    let text = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
    };
    let point = |&(variant, threads, per_second): &(&str, usize, f64)| Point {
        variant: variant.into(),
        threads,
        repetition: 1,
        seconds: 10.0,
        transactions: (per_second * 10.0) as u64,
        per_second,
        latency: Latency { p50_ms: 0.5, p95_ms: threads as f64, p99_ms: 2.0 * threads as f64, ..Latency::default() },
        usage: Usage {
            server_user_seconds: Some(per_second / 1000.0),
            server_system_seconds: Some(per_second / 2000.0),
            client_seconds: per_second / 4000.0,
            processes: vec![process("server: clients", threads, per_second), process(GENERATOR, 1, per_second / 6.0)],
            ..Usage::default()
        },
        series: (1..=4)
            .map(|second| Second { at_seconds: f64::from(second), per_second, ..Second::default() })
            .collect(),
        ..Point::default()
    };
    RunFile {
        format: FORMAT,
        experiment: "sysbench".into(),
        label: label.into(),
        target: "postgres://postgres@h:5432/d".into(),
        started,
        settings: text(&[("rows", "1000"), ("duration", "10 s"), ("seed", &started.to_string())]),
        server: ServerFacts {
            product: label.into(),
            version: format!("{label} 1"),
            settings: text(&[("fsync", "on"), ("default_transaction_isolation", "read committed")]),
            durable: Some(true),
        },
        machine: Machine { cpus: 2, model: "X".into(), kernel: "6".into(), memory_bytes: 8 << 30 },
        program: "nyala 0.1.0".into(),
        load: None,
        queries: Vec::new(),
        points: points.iter().map(point).collect(),
        verdicts: Vec::new(),
        notes: Vec::new(),
        ended: None,
    }
}

/// Three servers, one with repetitions, one that is fast because it forgets, one whose run was cut short and whose name is hostile.
pub fn example() -> Vec<RunFile> {
    let both = [("a", 1, 100.0), ("a", 8, 400.0), ("b", 8, 50.0)];
    let mut fast = run("Fast", 5, &[("a", 1, 900.0), ("a", 8, 1000.0)]);
    fast.server.durable = Some(false);
    fast.settings.insert("duration".into(), "3 s".into());
    let mut hostile = run("<b>&\"'|", 6, &[("a", 1, 10.0)]);
    hostile.ended = Some("<script src=http://x>".into());
    hostile.verdicts = vec![Verdict { says: "sum".into(), holds: false, found: "99 | 98".into() }];
    hostile.points[0].kinds = vec![
        KindResult { name: "read".into(), count: 3, ..KindResult::default() },
        KindResult { name: "*write*".into(), ..KindResult::default() },
    ];
    vec![
        fast,
        run("PostgreSQL", 1, &both),
        run("PostgreSQL", 2, &both.map(|(variant, threads, rate)| (variant, threads, rate * 1.2))),
        hostile,
    ]
}

fn check(actual: &str, expected: Expect) {
    expected.assert_eq(actual);
}

#[test]
fn spreads_have_their_middle() {
    assert_eq!(Spread::of([]), None);
    let of = |values: &[f64]| Spread::of(values.iter().copied()).map(|s| (s.median, s.min, s.max, s.count));
    assert_eq!(of(&[3.0]), Some((3.0, 3.0, 3.0, 1)));
    assert_eq!(of(&[9.0, 1.0, 2.0]), Some((2.0, 1.0, 9.0, 3)));
    assert_eq!(of(&[4.0, 1.0, 2.0, f64::NAN, 9.0]), Some((3.0, 1.0, 9.0, 4)));
}

#[test]
fn runs_are_put_side_by_side() {
    let all = Comparison::of(example(), None).unwrap();
    assert_eq!(all.labels, ["PostgreSQL", "Fast", "<b>&\"'|"]);
    let say = |group: &super::groups::Group| {
        let series = group.series.iter().map(|series| {
            let samples = series.samples.iter().map(|sample| {
                let spread = sample.per_second();
                let ratio = all.ratio(group, sample).unwrap_or_default();
                format!("{}:{}({}–{})={ratio:.2}", sample.threads, spread.median, spread.min, spread.max)
            });
            format!("  {}: {}\n", series.name(), samples.collect::<Vec<_>>().join(" "))
        });
        format!("{}\n{}", group.title(), series.collect::<String>())
    };
    let text: String = all.groups.iter().map(say).collect();
    check(
        &text,
        expect![[r#"
            sysbench · a
              PostgreSQL: 1:110(100–120)=1.00 8:440(400–480)=1.00
              Fast [not durable; duration 3 s]: 1:900(900–900)=8.18 8:1000(1000–1000)=2.27
              <b>&"'| [DATA WRONG; cut short]: 1:10(10–10)=0.09
            sysbench · b
              PostgreSQL: 8:55(50–60)=1.00
        "#]],
    );
}

#[test]
fn other_options_make_another_group() {
    let mut other = run("PostgreSQL", 3, &[("a", 1, 100.0)]);
    other.settings.insert("rows".into(), "5".into());
    other.settings.insert("think".into(), "1 s".into());
    let all = Comparison::of(vec![run("Nyala", 1, &[("a", 1, 100.0)]), other], None).unwrap();
    let titles: Vec<String> = all.groups.iter().map(|group| group.title()).collect();
    assert_eq!(titles, ["sysbench · a · rows 1000 · no think", "sysbench · a · rows 5 · think 1 s"]);
    assert_eq!(all.groups[0].series.len(), 1, "there is nothing to compare it with");
    assert_eq!(all.baseline, "PostgreSQL");
}

#[test]
fn a_baseline_has_to_be_there() {
    let refused = |runs, name| Comparison::of(runs, name).err().unwrap();
    assert_eq!(refused(Vec::new(), None), "there are no results");
    assert_eq!(
        refused(vec![run("Nyala", 1, &[])], Some("Oracle")),
        "no result has the label \"Oracle\"; there are: Nyala"
    );
    assert_eq!(Comparison::of(example(), Some("fast")).unwrap().labels[0], "Fast");
}

#[test]
fn axes_have_four_to_six_round_numbers() {
    let say = |max: f64, unit: Unit| ticks(max, unit).iter().map(|t| unit.tick(*t)).collect::<Vec<_>>().join(" ");
    assert_eq!(say(0.0, Unit::Count), "0 0.2 0.4 0.6 0.8 1");
    assert_eq!(say(931.0, Unit::Count), "0 200 400 600 800 1,000");
    assert_eq!(say(108_580.0, Unit::Count), "0 25k 50k 75k 100k 125k");
    assert_eq!(say(3.77, Unit::Ratio), "0× 1× 2× 3× 4×");
    assert_eq!(say(1.5e9, Unit::Bytes), "0 MiB 512 MiB 1 GiB 1.5 GiB");
    assert_eq!(say(1.3e6, Unit::Count), "0 500k 1M 1.5M");
    for exponent in -30..60 {
        let max = 1.37f64.powi(exponent);
        let all = ticks(max, Unit::Count);
        assert!((4..=6).contains(&all.len()) && *all.last().unwrap() >= max, "{max}: {all:?}");
        assert!(all[all.len() - 2] < max, "{max}: {all:?}");
    }
    assert_eq!(powers(0.3, 6000.0), [0.1, 1.0, 10.0, 100.0, 1000.0, 10000.0]);
    assert_eq!(powers(1.0, 1.0), [1.0, 10.0]);
}

#[test]
fn markdown_shows_all_figures_and_every_doubt() {
    let all = Comparison::of(example(), None).unwrap();
    check(
        &markdown::page(&all, "A *title*"),
        expect![[r##"
            # A \*title\*

            - **Warning:** sysbench on &lt;b>&amp;"'\|, 1970-01-01 00:00: the data is wrong. BROKEN: sum (99 \| 98)
            - **Warning:** sysbench on &lt;b>&amp;"'\|, 1970-01-01 00:00: cut short. &lt;script src=http://x>
            - **Warning:** Fast: not durable, a commit may be lost after it is acknowledged
            - machine: 2 CPUs (X), 8 GiB, kernel 6
            - program: nyala 0.1.0
            - measured: 4 runs, begun from 1970-01-01 00:00 to 1970-01-01 00:00 UTC
            - baseline: PostgreSQL: ratios are throughput in comparison with it

            | server | version | a commit | isolation | settings | address |
            |---|---|---|---|---|---|
            | PostgreSQL | PostgreSQL 1 | durable | read committed | default\_transaction\_isolation = read committed, fsync = on | postgres://postgres@h:5432/d |
            | Fast | Fast 1 | not durable | read committed | default\_transaction\_isolation = read committed, fsync = on | postgres://postgres@h:5432/d |
            | &lt;b>&amp;"'\| | &lt;b>&amp;"'\| 1 | durable | read committed | default\_transaction\_isolation = read committed, fsync = on | postgres://postgres@h:5432/d |

            ## Best throughput

            | measured | server | best tx/s | clients | of PostgreSQL | p95 ms | server µs/tx |
            |---|---|--:|--:|--:|--:|--:|
            | sysbench · a | PostgreSQL | 440.0 (400.0–480.0) | 8 | 1.00× | 8.000 | 150.0 |
            |  | Fast \[not durable; duration 3 s\] | 1,000 | 8 | 2.27× | 8.000 | 150.0 |
            |  | &lt;b>&amp;"'\| \[DATA WRONG; cut short\] | 10.0 | 1 † | 0.02× | 1.000 | 150.0 |
            | sysbench · b | PostgreSQL | 55.0 (50.0–60.0) | 8 | 1.00× | 8.000 | 150.0 |

            ## sysbench · a

            rows 1000

            | clients | server | tx/s | of PostgreSQL | stmts/s | rows/s | mean ms | p50 ms | p95 ms | p99 ms | server µs/tx | client µs/tx | KB/tx | flushes/tx | retries | errors |
            |--:|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|
            | 1 | PostgreSQL | 110.0 (100.0–120.0) | 1.00× | 0 | 0 | 0 | 0.500 | 1.000 | 2.000 | 150.0 | 25.0 | ? | ? | 0 | 0 |
            | 1 | Fast \[not durable; duration 3 s\] | 900.0 | 8.18× | 0 | 0 | 0 | 0.500 | 1.000 | 2.000 | 150.0 | 25.0 | ? | ? | 0 | 0 |
            | 1 † | &lt;b>&amp;"'\| \[DATA WRONG; cut short\] | 10.0 | 0.09× | 0 | 0 | 0 | 0.500 | 1.000 | 2.000 | 150.0 | 25.0 | ? | ? | 0 | 0 |
            | 8 | PostgreSQL | 440.0 (400.0–480.0) | 1.00× | 0 | 0 | 0 | 0.500 | 8.000 | 16.0 | 150.0 | 25.0 | ? | ? | 0 | 0 |
            | 8 | Fast \[not durable; duration 3 s\] | 1,000 | 2.27× | 0 | 0 | 0 | 0.500 | 8.000 | 16.0 | 150.0 | 25.0 | ? | ? | 0 | 0 |

            Utilization

            | clients | server | process | count | user µs/tx | system µs/tx | cores | KB/tx | flushes/tx | memory MiB |
            |--:|---|---|--:|--:|--:|--:|--:|--:|--:|
            | 1 | PostgreSQL | server: clients | 1 | 100.0 | 50.0 | 0.015 |  |  |  |
            | 1 | PostgreSQL | generator | 1 | 16.7 | 8.333 | 0.003 |  |  |  |
            | 1 | PostgreSQL | the whole server | ? | 100.0 | 50.0 | 0.015 | ? | ? | ? |
            | 1 | Fast \[not durable; duration 3 s\] | server: clients | 1 | 100.0 | 50.0 | 0.135 |  |  |  |
            | 1 | Fast \[not durable; duration 3 s\] | generator | 1 | 16.7 | 8.333 | 0.022 |  |  |  |
            | 1 | Fast \[not durable; duration 3 s\] | the whole server | ? | 100.0 | 50.0 | 0.135 | ? | ? | ? |
            | 1 † | &lt;b>&amp;"'\| \[DATA WRONG; cut short\] | server: clients | 1 | 100.0 | 50.0 | 0.002 |  |  |  |
            | 1 † | &lt;b>&amp;"'\| \[DATA WRONG; cut short\] | generator | 1 | 16.7 | 8.333 | 0.000 |  |  |  |
            | 1 † | &lt;b>&amp;"'\| \[DATA WRONG; cut short\] | the whole server | ? | 100.0 | 50.0 | 0.002 | ? | ? | ? |
            | 8 | PostgreSQL | server: clients | 8 | 100.0 | 50.0 | 0.060 |  |  |  |
            | 8 | PostgreSQL | generator | 1 | 16.7 | 8.333 | 0.010 |  |  |  |
            | 8 | PostgreSQL | the whole server | ? | 100.0 | 50.0 | 0.060 | ? | ? | ? |
            | 8 | Fast \[not durable; duration 3 s\] | server: clients | 8 | 100.0 | 50.0 | 0.150 |  |  |  |
            | 8 | Fast \[not durable; duration 3 s\] | generator | 1 | 16.7 | 8.333 | 0.025 |  |  |  |
            | 8 | Fast \[not durable; duration 3 s\] | the whole server | ? | 100.0 | 50.0 | 0.150 | ? | ? | ? |

            | clients | server | kind | count | share | mean ms | p50 ms | p90 ms | p95 ms | p99 ms | p99.9 ms | max ms |
            |--:|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|
            | 1 † | &lt;b>&amp;"'\| \[DATA WRONG; cut short\] | read | 3 | 100.0 % | 0 | 0 | 0 | 0 | 0 | 0 | 0 |
            | 1 † | &lt;b>&amp;"'\| \[DATA WRONG; cut short\] | \*write\* | 0 | 0.0 % | 0 | 0 | 0 | 0 | 0 | 0 | 0 |

            ## sysbench · b

            rows 1000

            | clients | server | tx/s | of PostgreSQL | stmts/s | rows/s | mean ms | p50 ms | p95 ms | p99 ms | server µs/tx | client µs/tx | KB/tx | flushes/tx | retries | errors |
            |--:|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|
            | 8 | PostgreSQL | 55.0 (50.0–60.0) | 1.00× | 0 | 0 | 0 | 0.500 | 8.000 | 16.0 | 150.0 | 25.0 | ? | ? | 0 | 0 |

            Utilization

            | clients | server | process | count | user µs/tx | system µs/tx | cores | KB/tx | flushes/tx | memory MiB |
            |--:|---|---|--:|--:|--:|--:|--:|--:|--:|
            | 8 | PostgreSQL | server: clients | 8 | 100.0 | 50.0 | 0.008 |  |  |  |
            | 8 | PostgreSQL | generator | 1 | 16.7 | 8.333 | 0.001 |  |  |  |
            | 8 | PostgreSQL | the whole server | ? | 100.0 | 50.0 | 0.008 | ? | ? | ? |

            ## Runs

            | experiment | server | began (UTC) | options | points | data | end |
            |---|---|---|---|--:|---|---|
            | sysbench | PostgreSQL | 1970-01-01 00:00 | duration 10 s, rows 1000, seed 1 | 3 | not verified | complete |
            | sysbench | PostgreSQL | 1970-01-01 00:00 | duration 10 s, rows 1000, seed 2 | 3 | not verified | complete |
            | sysbench | Fast | 1970-01-01 00:00 | duration 3 s, rows 1000, seed 5 | 2 | not verified | complete |
            | sysbench | &lt;b>&amp;"'\| | 1970-01-01 00:00 | duration 10 s, rows 1000, seed 6 | 1 | BROKEN: sum (99 \| 98) | CUT SHORT: &lt;script src=http://x> |

            † with the last point of a run that was cut short
        "##]],
    );
}

/// Goes through the tags of a page; says what is not closed.
fn unbalanced(page: &str) -> Option<String> {
    let mut open: Vec<&str> = Vec::new();
    let mut rest = page;
    while let Some(at) = rest.find('<') {
        let Some(end) = rest[at..].find('>') else { return Some(format!("a tag without an end: {}", &rest[at..])) };
        let tag = &rest[at + 1..at + end];
        rest = &rest[at + end + 1..];
        if !tag.matches('"').count().is_multiple_of(2) || tag.contains('<') {
            return Some(format!("a tag with open quotes: {tag}"));
        }
        let name = tag.trim_start_matches('/').split([' ', '/']).next().unwrap_or_default();
        let void = tag.ends_with('/') || tag.starts_with('!') || name == "meta";
        if let Some(closed) = tag.strip_prefix('/') {
            if open.pop() != Some(closed) {
                return Some(format!("</{closed}> closes nothing"));
            }
        } else if !void {
            open.push(name);
        }
    }
    (!open.is_empty()).then(|| format!("not closed: {open:?}"))
}

#[test]
fn a_page_is_whole_and_needs_nothing() {
    let page = html::page(&Comparison::of(example(), None).unwrap(), "A <title>");
    assert_eq!(unbalanced(&page), None);
    for outside in ["<script", " src=\"", "@import", "url(", "<link", "NaN", "inf\"", "<b>"] {
        assert!(!page.contains(outside), "{outside}");
    }
    let addresses: Vec<&str> =
        page.match_indices("href=\"").map(|(at, found)| &page[at + found.len()..][..1]).collect();
    assert!(!addresses.is_empty() && addresses.iter().all(|first| *first == "#"));
    assert_eq!(page.matches("<svg").count(), page.matches("<desc>").count());
    assert!(page.contains("&lt;script src=http://x&gt;") && page.contains("A &lt;title&gt;"));
}

#[test]
fn a_crowd_of_servers_stays_inside_of_the_pictures() {
    let name = |n: usize| format!("server {n} with a name that is much longer-than-anybody-would-give-it-seriously");
    let points = [1, 2, 3, 4, 5, 6, 7, 8, 9, 128, 1000].map(|n| ("v", n, 1e7 / n as f64));
    let runs = (0..12).map(|n| run(&name(n), n as u64, &points)).collect();
    let page = html::page(&Comparison::of(runs, None).unwrap(), "x");
    assert_eq!(unbalanced(&page), None);
    for picture in page.split("<svg").skip(1) {
        let height: f64 = picture.split("height=\"").nth(1).unwrap().split('"').next().unwrap().parse().unwrap();
        let number = |text: &str| text.split('"').next().unwrap().parse::<f64>().unwrap();
        for place in picture.split(" y=\"").skip(1) {
            assert!((0.0..=height).contains(&number(place)), "{}", &place[..40]);
        }
        for place in picture.split(" x=\"").skip(1) {
            assert!((0.0..=super::chart::WIDTH).contains(&number(place)), "{}", &place[..40]);
        }
    }
}

#[test]
fn one_server_has_no_best_throughput() {
    let alone: Vec<RunFile> = example().into_iter().take(1).collect();
    let all = Comparison::of(alone, None).unwrap();
    assert_eq!(all.labels.len(), 1);
    for page in [markdown::page(&all, "t"), html::page(&all, "t")] {
        assert!(!page.contains("Best throughput") && page.contains("sysbench"), "{page}");
    }
    let all = Comparison::of(example(), None).unwrap();
    assert!(html::page(&all, "t").contains("Best throughput"));
}

#[test]
fn a_picture_stands_alone() {
    let all = Comparison::of(example(), None).unwrap();
    let picture = html::picture(&super::charts::summary(&all));
    assert!(
        picture.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\" ") && picture.trim_end().ends_with("</svg>")
    );
    assert!(picture.contains("prefers-color-scheme: dark") && picture.contains("2.27×"), "{picture}");
    // The baseline is the line at 1.
    assert!(!picture.contains("1.00× ("), "{picture}");
    let alone: Vec<RunFile> = example().into_iter().take(1).collect();
    assert_eq!(super::charts::summary(&Comparison::of(alone, None).unwrap()), "");
}
