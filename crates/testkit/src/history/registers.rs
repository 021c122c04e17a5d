//! The judge of recorded register histories: rows that are inserted once, changed, moved between groups, deleted once, and read
//! by key and by predicate.
//!
//! Every version of a row has a number of its own and names the one before it, so the versions of a row are a line, from
//! *absent* over those it had to *absent* again. A read says which version it saw of each row that it found. Of a row that it
//! did not find it says only that the version it saw did not match: if all those that can be meant – in time, and without
//! a matching version between them – are one run, the read comes after the writer of the run's first version and before the
//! writer of what follows the run; otherwise it says nothing. So no edge is a guess, and a cycle is a proof.
//!
//! A cycle means that no serial order explains the history: write skew, a phantom, a read-only anomaly, or worse.

use std::collections::BTreeMap;
use std::fmt;

use super::Fate;
use super::cycle::Graph;

/// A row's key.
pub type Row = u64;
/// The number of a version, unique in the history.
pub type Version = u64;
/// What a predicate asks for.
pub type Group = u64;

/// What a transaction did. Field names say the same everywhere: the row, the version that it made, its group, and the version
/// it wrote over.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Op {
    /// Inserted a row.
    Insert { row: Row, version: Version, group: Group },
    /// Wrote a version over another.
    Update { row: Row, over: Version, version: Version, group: Group },
    /// Deleted a row whose version was this.
    Delete { row: Row, over: Version },
    /// Read a row by its key.
    Read { row: Row, seen: Option<Version> },
    /// Read all rows with keys in a range, both ends included.
    Range { first: Row, last: Row, seen: BTreeMap<Row, Version> },
    /// Read all rows of a group.
    Members { group: Group, seen: BTreeMap<Row, Version> },
}

/// A recorded transaction.
#[derive(Debug, Clone)]
pub struct Transaction {
    /// What it did, as far as it got.
    pub ops: Vec<Op>,
    /// How it ended; [`Fate::Unknown`] is not judged.
    pub fate: Fate,
    /// A clock's reading before its first statement.
    pub started: u64,
    /// The clock's reading after its end was known.
    pub ended: u64,
}

/// Something that must not be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Anomaly {
    /// A read shows a version that no committed transaction made.
    Garbage(usize, Row, Version),
    /// Two committed transactions wrote over the same version.
    LostUpdate(usize, usize, Row),
    /// A read found a row that its predicate does not ask for, or lacks one that it must have.
    Predicate(usize, Row),
    /// No serial order explains these.
    Cycle(Vec<usize>),
}

impl fmt::Display for Anomaly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Anomaly::Garbage(id, row, version) => write!(f, "T{id} read version {version} of row {row}, which is not"),
            Anomaly::LostUpdate(a, b, row) => write!(f, "T{a} and T{b} wrote over the same version of row {row}"),
            Anomaly::Predicate(id, row) => write!(f, "T{id}'s predicate is wrong about row {row}"),
            Anomaly::Cycle(cycle) => write!(f, "no serial order has {cycle:?}"),
        }
    }
}

/// A version of a row: its number and group (`None`: absent), and who made it (`None`: nobody, it was so at first).
#[derive(Debug, Clone, Copy)]
struct RowVersion {
    version: Option<(Version, Group)>,
    writer: Option<usize>,
}

/// All anomalies of a history whose rows are absent at first.
pub fn check(history: &[Transaction]) -> Vec<Anomaly> {
    let mut found = Vec::new();
    let lines = lines(history, &mut found);
    if !found.is_empty() {
        // Without one line of versions per row the rest means nothing.
        return found;
    }
    let judge = Judge { history, lines };
    let mut graph = Graph::new(history.len());
    for line in judge.lines.values() {
        for pair in line.windows(2) {
            judge.edge(&mut graph, pair[0].writer, pair[1].writer);
        }
    }
    for (id, transaction) in committed(history) {
        let mut own: Vec<Row> = Vec::new();
        for op in &transaction.ops {
            judge.read(&mut graph, id, op, &own, &mut found);
            match op {
                Op::Insert { row, .. } | Op::Update { row, .. } | Op::Delete { row, .. } => own.push(*row),
                _ => {}
            }
        }
    }
    found.extend(graph.cycle().map(Anomaly::Cycle));
    found
}

fn committed(history: &[Transaction]) -> impl Iterator<Item = (usize, &Transaction)> {
    history.iter().enumerate().filter(|(_, transaction)| transaction.fate == Fate::Committed)
}

/// The versions of each row in their order.
fn lines(history: &[Transaction], found: &mut Vec<Anomaly>) -> BTreeMap<Row, Vec<RowVersion>> {
    // What follows a version: `None` as a version is the absence before the insert.
    let mut next: BTreeMap<(Row, Option<Version>), RowVersion> = BTreeMap::new();
    for (id, transaction) in committed(history) {
        for op in &transaction.ops {
            let (row, over, version) = match op {
                Op::Insert { row, version, group } => (*row, None, Some((*version, *group))),
                Op::Update { row, over, version, group } => (*row, Some(*over), Some((*version, *group))),
                Op::Delete { row, over } => (*row, Some(*over), None),
                _ => continue,
            };
            if let Some(other) = next.insert((row, over), RowVersion { version, writer: Some(id) }) {
                found.push(Anomaly::LostUpdate(other.writer.unwrap_or(id), id, row));
            }
        }
    }
    let mut lines: BTreeMap<Row, Vec<RowVersion>> = BTreeMap::new();
    let mut taken = 0;
    for (row, over) in next.keys().copied().filter(|(_, over)| over.is_none()) {
        let line = lines.entry(row).or_insert_with(|| vec![RowVersion { version: None, writer: None }]);
        let mut at = over;
        while let Some(state) = next.get(&(row, at)) {
            taken += 1;
            line.push(*state);
            match state.version {
                Some((version, _)) => at = Some(version),
                None => break,
            }
        }
    }
    if taken != next.len() {
        // Somebody wrote over a version that was never committed.
        let stray = next.iter().find(|((row, over), state)| {
            let line = lines.get(row);
            over.is_some() && !line.is_some_and(|line| line.iter().any(|known| known.writer == state.writer))
        });
        if let Some(((row, over), state)) = stray {
            found.push(Anomaly::Garbage(state.writer.unwrap_or_default(), *row, over.unwrap_or_default()));
        }
    }
    lines
}

struct Judge<'a> {
    history: &'a [Transaction],
    lines: BTreeMap<Row, Vec<RowVersion>>,
}

impl Judge<'_> {
    fn edge(&self, graph: &mut Graph, from: Option<usize>, to: Option<usize>) {
        if let (Some(from), Some(to)) = (from, to) {
            graph.edge(from, to);
        }
    }

    fn read(&self, graph: &mut Graph, id: usize, op: &Op, own: &[Row], found: &mut Vec<Anomaly>) {
        match op {
            Op::Read { row, seen } => {
                let seen: BTreeMap<Row, Version> = seen.iter().map(|version| (*row, *version)).collect();
                self.predicate(graph, id, *row..=*row, None, &seen, own, found);
            }
            Op::Range { first, last, seen } => self.predicate(graph, id, *first..=*last, None, seen, own, found),
            Op::Members { group, seen } => self.predicate(graph, id, 0..=Row::MAX, Some(*group), seen, own, found),
            Op::Insert { .. } | Op::Update { .. } | Op::Delete { .. } => {}
        }
    }

    /// What a read of the rows of a range, and of a group if there is one, says of the order.
    #[allow(clippy::too_many_arguments)]
    fn predicate(
        &self,
        graph: &mut Graph,
        id: usize,
        rows: std::ops::RangeInclusive<Row>,
        group: Option<Group>,
        seen: &BTreeMap<Row, Version>,
        own: &[Row],
        found: &mut Vec<Anomaly>,
    ) {
        let matches = |state: &RowVersion| match (state.version, group) {
            (None, _) => false,
            (Some(_), None) => true,
            (Some((_, of)), Some(group)) => of == group,
        };
        let known = |row: &Row| rows.contains(row) && self.lines.contains_key(row);
        for (row, version) in seen.iter().filter(|(row, _)| !own.contains(row) && !known(row)) {
            found.push(Anomaly::Garbage(id, *row, *version));
        }
        for (row, line) in self.lines.range(rows.clone()).filter(|(row, _)| !own.contains(row)) {
            // Rows that the reader writes later are judged like others; an edge to itself says nothing.
            match seen.get(row) {
                Some(version) => {
                    let at = line.iter().position(|state| state.version.is_some_and(|(known, _)| known == *version));
                    match at {
                        None => found.push(Anomaly::Garbage(id, *row, *version)),
                        Some(at) if !matches(&line[at]) => found.push(Anomaly::Predicate(id, *row)),
                        Some(at) => self.between(graph, id, line, at, at),
                    }
                }
                None => self.missing(graph, id, *row, line, &matches, found),
            }
        }
    }

    /// The reader saw one of the versions `first..=last` of a line.
    fn between(&self, graph: &mut Graph, id: usize, line: &[RowVersion], first: usize, last: usize) {
        self.edge(graph, line[first].writer, Some(id));
        if let Some(next) = line.get(last + 1) {
            self.edge(graph, Some(id), next.writer);
        }
    }

    fn missing(
        &self,
        graph: &mut Graph,
        id: usize,
        row: Row,
        line: &[RowVersion],
        matches: &dyn Fn(&RowVersion) -> bool,
        found: &mut Vec<Anomaly>,
    ) {
        let reader = &self.history[id];
        let ended_before = |state: &RowVersion| {
            state.writer.is_none_or(|writer| writer != id && self.history[writer].ended < reader.started)
        };
        let begun_after =
            |state: &RowVersion| state.writer.is_some_and(|writer| self.history[writer].started > reader.ended);
        let first = line.iter().rposition(ended_before).unwrap_or(0);
        let last = line.iter().position(begun_after).unwrap_or(line.len()).max(first + 1) - 1;
        let candidates: Vec<usize> = (first..=last).filter(|at| !matches(&line[*at])).collect();
        match (candidates.first(), candidates.last()) {
            (Some(from), Some(to)) if to - from + 1 == candidates.len() => {
                // The run may begin before what time allows.
                let before = (0..*from).rev().take_while(|at| !matches(&line[*at])).last().unwrap_or(*from);
                self.between(graph, id, line, before, *to);
            }
            (None, _) => found.push(Anomaly::Predicate(id, row)),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transaction(ops: Vec<Op>, started: u64, ended: u64) -> Transaction {
        Transaction { ops, fate: Fate::Committed, started, ended }
    }

    /// Rows 1 (group 1) and 2 (group 2) as versions 10 and 20.
    fn first() -> Transaction {
        let insert = |row, version| Op::Insert { row, version, group: row };
        transaction(vec![insert(1, 10), insert(2, 20)], 0, 1)
    }

    fn seen(rows: &[(Row, Version)]) -> BTreeMap<Row, Version> {
        rows.iter().copied().collect()
    }

    #[test]
    fn what_could_have_run_one_after_the_other_is_clean() {
        let history = [
            first(),
            transaction(
                vec![
                    Op::Range { first: 1, last: 9, seen: seen(&[(1, 10), (2, 20)]) },
                    Op::Insert { row: 3, version: 30, group: 1 },
                ],
                2,
                9,
            ),
            transaction(
                vec![
                    Op::Members { group: 1, seen: seen(&[(1, 10), (3, 30)]) },
                    Op::Update { row: 1, over: 10, version: 11, group: 2 },
                    Op::Delete { row: 3, over: 30 },
                ],
                3,
                9,
            ),
            transaction(vec![Op::Members { group: 1, seen: seen(&[]) }, Op::Read { row: 3, seen: None }], 10, 11),
        ];
        assert_eq!(check(&history), []);
    }

    #[test]
    fn write_skew_is_a_cycle() {
        let skew = |reads: Row, saw, writes, over| {
            let update = Op::Update { row: writes, over, version: over + 1, group: writes };
            transaction(vec![Op::Read { row: reads, seen: Some(saw) }, update], 2, 9)
        };
        assert_eq!(check(&[first(), skew(1, 10, 2, 20), skew(2, 20, 1, 10)]), [Anomaly::Cycle(vec![2, 1])]);
    }

    #[test]
    fn two_phantoms_are_a_cycle() {
        let phantom = |first: Row, row| {
            let range = Op::Range { first, last: first + 9, seen: seen(&[]) };
            transaction(vec![range, Op::Insert { row, version: row, group: 7 }], 2, 9)
        };
        assert_eq!(check(&[first(), phantom(100, 205), phantom(200, 105)]), [Anomaly::Cycle(vec![2, 1])]);
        assert_eq!(check(&[first(), phantom(100, 305), phantom(200, 105)]), []);
    }

    #[test]
    fn a_row_that_left_a_group_is_looked_for() {
        let moves = |group: Group, found: Row, saw, over, to| {
            let members = Op::Members { group, seen: seen(&[(found, saw)]) };
            let row = over / 10;
            transaction(vec![members, Op::Update { row, over, version: over + 1, group: to }], 2, 9)
        };
        // Each takes the other's row out of the group that it has read.
        assert_eq!(check(&[first(), moves(1, 1, 10, 20, 9), moves(2, 2, 20, 10, 9)]), [Anomaly::Cycle(vec![2, 1])]);
    }

    #[test]
    fn the_read_only_anomaly_is_a_cycle() {
        // T1 reads both and writes 2 after T2 wrote 1; T3 sees what T2 wrote and not what T1 did.
        let one = vec![
            Op::Read { row: 1, seen: Some(10) },
            Op::Read { row: 2, seen: Some(20) },
            Op::Update { row: 2, over: 20, version: 21, group: 2 },
        ];
        let two = vec![Op::Update { row: 1, over: 10, version: 11, group: 1 }];
        let three = vec![Op::Read { row: 1, seen: Some(11) }, Op::Read { row: 2, seen: Some(20) }];
        let history = [first(), transaction(one, 2, 9), transaction(two, 3, 4), transaction(three, 5, 6)];
        assert!(matches!(check(&history)[..], [Anomaly::Cycle(_)]));
    }

    #[test]
    fn lost_and_invented_versions_are_named() {
        let update = |over| transaction(vec![Op::Update { row: 1, over, version: over + over, group: 1 }], 2, 9);
        let mut twice = [first(), update(10), update(10)];
        twice[2].ops = vec![Op::Update { row: 1, over: 10, version: 99, group: 1 }];
        assert_eq!(check(&twice), [Anomaly::LostUpdate(1, 2, 1)]);
        let read = transaction(vec![Op::Read { row: 1, seen: Some(77) }], 2, 9);
        assert_eq!(check(&[first(), read]), [Anomaly::Garbage(1, 1, 77)]);
    }
}
