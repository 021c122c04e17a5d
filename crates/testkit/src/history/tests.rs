//! Planted anomalies: each must be found, and histories without any must pass.

use super::*;

/// Parses `T0: a x 1, r y 1 2` lines; a line that ends in `!` is aborted, in `?` of unknown fate. Keys x, y, z.
fn history(text: &str) -> Vec<Transaction> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let parsed = lines.enumerate().map(|(index, line)| {
        let (line, fate) = match line.strip_suffix('!') {
            Some(line) => (line, Fate::Aborted),
            None => line.strip_suffix('?').map_or((line, Fate::Committed), |line| (line, Fate::Unknown)),
        };
        // All at the same time, unless a test says otherwise.
        Transaction { ops: line.split(',').map(op).collect(), fate, started: 0, ended: 1 + index as u64 }
    });
    parsed.collect()
}

fn op(text: &str) -> Op {
    let words: Vec<&str> = text.split_whitespace().collect();
    let key = u64::from(words[1].as_bytes()[0]);
    let values: Vec<Value> = words[2..].iter().map(|word| word.parse().expect("a number")).collect();
    if words[0] == "a" { Op::Append(key, values[0]) } else { Op::Read(key, values) }
}

fn found(text: &str, last: &[(char, &[Value])]) -> Vec<String> {
    let last = last.iter().map(|(key, list)| (u64::from(*key), list.to_vec())).collect();
    check(&history(text), &last).iter().map(ToString::to_string).collect()
}

#[test]
fn a_serial_history_is_clean() {
    let text = "a x 1, a y 2
                r x 1, a x 3, r x 1 3
                r x 1 3, r y 2";
    assert_eq!(found(text, &[('x', &[1, 3]), ('y', &[2])]), Vec::<String>::new());
}

#[test]
fn write_skew_is_for_serializable_to_forbid() {
    let text = "r x, a y 1
                r y, a x 2";
    let last = BTreeMap::from([(u64::from('x'), vec![2]), (u64::from('y'), vec![1])]);
    let anomalies = check(&history(text), &last);
    assert_eq!(anomalies, [Anomaly::G2(vec![1, 0])]);
    assert!(!Level::Snapshot.forbids(&anomalies[0]) && Level::Serializable.forbids(&anomalies[0]));
}

#[test]
fn g0() {
    let text = "a x 1, a y 2
                a x 3, a y 4";
    assert_eq!(found(text, &[('x', &[1, 3]), ('y', &[4, 2])]), ["G0: cycle of writes [1, 0]"]);
}

#[test]
fn g1a() {
    let text = "a x 1 !
                r x 1";
    assert_eq!(found(text, &[('x', &[])])[0], "G1a: T1 read aborted T0's value in list 120");
}

#[test]
fn g1b() {
    let text = "a x 1, a x 2
                r x 1";
    assert_eq!(found(text, &[('x', &[1, 2])])[0], "G1b: T1 read a part of T0's appends to list 120");
}

#[test]
fn g1c() {
    let text = "a x 1, r y 2
                a y 2, r x 1";
    assert_eq!(found(text, &[('x', &[1]), ('y', &[2])])[0], "G1c: cycle of writes and reads [1, 0]");
}

#[test]
fn g_single_is_allowed_at_read_committed_only() {
    let text = "r x, r y 2
                a x 1, a y 2";
    let last = BTreeMap::from([(u64::from('x'), vec![1]), (u64::from('y'), vec![2])]);
    let anomalies = check(&history(text), &last);
    assert_eq!(anomalies, [Anomaly::GSingle(vec![1, 0])]);
    assert!(!Level::ReadCommitted.forbids(&anomalies[0]) && Level::Snapshot.forbids(&anomalies[0]));
}

#[test]
fn g_single_over_three() {
    let text = "r x, r z 3
                a x 1, a y 2
                r y 2, a z 3";
    let anomalies = found(text, &[('x', &[1]), ('y', &[2]), ('z', &[3])]);
    assert_eq!(anomalies, ["G-single: cycle [1, 2, 0], its last read what its first overwrote"]);
}

#[test]
fn a_lost_update_is_a_missing_append() {
    let text = "r x, a x 1
                r x, a x 2";
    assert_eq!(found(text, &[('x', &[2])])[0], "T0's acknowledged 1 is missing from list 120");
}

#[test]
fn two_orders() {
    let text = "a x 1
                a x 2
                r x 2 1";
    assert!(found(text, &[('x', &[1, 2])])[0].contains("in different orders"));
}

#[test]
fn garbage_and_duplicates() {
    assert!(found("r x 9", &[('x', &[9])])[0].contains("which nobody appended"));
    assert!(found("a x 1", &[('x', &[1, 1])])[0].contains("twice"));
}

#[test]
fn own_appends_must_be_seen() {
    let text = "a x 1
                a x 2, r x 1";
    assert!(
        found(text, &[('x', &[1, 2])]).contains(&"T1 did not see its own append to list 120 at the end".to_owned())
    );
}

#[test]
fn an_unknown_commit_counts_if_it_was_seen() {
    assert_eq!(found("a x 1 ?", &[('x', &[])]), Vec::<String>::new());
    assert_eq!(found("a x 1 ?\nr x 1", &[('x', &[1])]), Vec::<String>::new());
}

#[test]
fn an_acknowledged_commit_must_be_seen_by_who_comes_later() {
    let mut history = history("a x 1\nr x");
    history[1].started = 5;
    let last = BTreeMap::from([(u64::from('x'), vec![1])]);
    assert_eq!(check(&history, &last), [Anomaly::Stale(1, 0, u64::from('x'))]);
}
