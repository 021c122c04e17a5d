//! The judge of recorded list-append histories, after Elle (Kingsbury and Alvaro, 2020).
//!
//! Transactions append unique values to lists and read whole lists. A list shows the order in which its appends took
//! effect, so the order of versions needs no guessing: the longest list ever read of a key *is* its version order, and
//! every other read must be a prefix of it. From that order follow the dependencies between transactions:
//!
//! | edge | from | to |
//! |---|---|---|
//! | ww | who appended a value | who appended the next one |
//! | wr | who appended the last value of a read | who read it |
//! | rw | who read a list | who appended the value that comes next |
//!
//! A cycle is an anomaly (Adya 1999): of ww alone G0; of ww and wr G1c; with exactly one rw G-single. Snapshot isolation
//! forbids all three, READ COMMITTED the first two. Cycles with more rw edges (G2) only SERIALIZABLE forbids.

mod cycle;
pub mod registers;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use cycle::Graph;

/// A list's name.
pub type Key = u64;
/// An appended value, unique in the history.
pub type Value = u64;

/// What a transaction did, in its order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Op {
    /// Added a value at the end of a list.
    Append(Key, Value),
    /// Saw a list.
    Read(Key, Vec<Value>),
}

/// How a transaction ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// COMMIT was acknowledged.
    Committed,
    /// It was rolled back, or the server said that it failed.
    Aborted,
    /// The connection was lost during COMMIT. It counts as committed if anybody saw its values.
    Unknown,
}

/// A recorded transaction.
#[derive(Debug, Clone)]
pub struct Transaction {
    /// What it did, as far as it got.
    pub ops: Vec<Op>,
    /// How it ended.
    pub fate: Fate,
    /// A clock's reading before its first statement.
    pub started: u64,
    /// The clock's reading after its end was known.
    pub ended: u64,
}

/// A transaction's index in the history.
type Id = usize;

/// Something that must not be, or not at every level.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Anomaly {
    /// A read shows a value that nobody appended.
    Garbage(Id, Key, Value),
    /// A read shows a value twice.
    Duplicate(Id, Key, Value),
    /// Two reads of a key are not prefixes of one order: a write was lost or torn.
    Fork(Id, Id, Key),
    /// A read does not end with the reader's own appends.
    Internal(Id, Key),
    /// A read shows a value of an aborted transaction (G1a).
    AbortedRead(Id, Id, Key),
    /// A read shows some but not all of another transaction's appends to a key (G1b).
    IntermediateRead(Id, Id, Key),
    /// An acknowledged append is missing from the last read of its key.
    Lost(Id, Key, Value),
    /// A read lacks a value that was acknowledged before the reader began.
    Stale(Id, Id, Key),
    /// A cycle of ww edges.
    G0(Vec<Id>),
    /// A cycle of ww and wr edges.
    G1c(Vec<Id>),
    /// A cycle with exactly one rw edge, from its last to its first transaction.
    GSingle(Vec<Id>),
    /// A cycle with rw edges, of whatever number.
    G2(Vec<Id>),
}

/// An isolation level, as far as the judge is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// READ COMMITTED.
    ReadCommitted,
    /// REPEATABLE READ, which is snapshot isolation.
    Snapshot,
    /// SERIALIZABLE.
    Serializable,
}

impl Level {
    /// Whether the level promises that this does not happen.
    pub fn forbids(self, anomaly: &Anomaly) -> bool {
        match anomaly {
            Anomaly::GSingle(_) => self != Level::ReadCommitted,
            Anomaly::G2(_) => self == Level::Serializable,
            _ => true,
        }
    }
}

impl fmt::Display for Anomaly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Anomaly::Garbage(id, key, value) => write!(f, "T{id} read {value} in list {key}, which nobody appended"),
            Anomaly::Duplicate(id, key, value) => write!(f, "T{id} read {value} twice in list {key}"),
            Anomaly::Fork(a, b, key) => write!(f, "T{a} and T{b} read list {key} in different orders"),
            Anomaly::Internal(id, key) => write!(f, "T{id} did not see its own append to list {key} at the end"),
            Anomaly::AbortedRead(id, of, key) => write!(f, "G1a: T{id} read aborted T{of}'s value in list {key}"),
            Anomaly::IntermediateRead(id, of, key) => {
                write!(f, "G1b: T{id} read a part of T{of}'s appends to list {key}")
            }
            Anomaly::Lost(id, key, value) => write!(f, "T{id}'s acknowledged {value} is missing from list {key}"),
            Anomaly::Stale(id, of, key) => {
                write!(f, "T{id} did not see T{of}, acknowledged before it began, in list {key}")
            }
            Anomaly::G0(cycle) => write!(f, "G0: cycle of writes {cycle:?}"),
            Anomaly::G1c(cycle) => write!(f, "G1c: cycle of writes and reads {cycle:?}"),
            Anomaly::G2(cycle) => write!(f, "G2: cycle with anti-dependencies {cycle:?}"),
            Anomaly::GSingle(cycle) => write!(f, "G-single: cycle {cycle:?}, its last read what its first overwrote"),
        }
    }
}

/// All anomalies of a history.
///
/// `last` holds each list as it was read when all transactions had ended.
pub fn check(history: &[Transaction], last: &BTreeMap<Key, Vec<Value>>) -> Vec<Anomaly> {
    let judge = Judge::new(history, last);
    let mut found = judge.reads();
    found.extend(judge.lost());
    // Edges mean nothing if there is no one order of versions.
    if found.iter().any(|anomaly| matches!(anomaly, Anomaly::Fork(..) | Anomaly::Duplicate(..) | Anomaly::Garbage(..)))
    {
        return found;
    }
    found.extend(judge.cycles());
    found
}

struct Judge<'a> {
    history: &'a [Transaction],
    last: &'a BTreeMap<Key, Vec<Value>>,
    /// Who appended a value to a key.
    writers: BTreeMap<(Key, Value), Id>,
    /// All appends of a transaction to a key, in order.
    appends: BTreeMap<(Id, Key), Vec<Value>>,
    /// The version order of each key, and who read it.
    orders: BTreeMap<Key, (Option<Id>, &'a [Value])>,
    /// Transactions that count as committed.
    committed: BTreeSet<Id>,
}

impl<'a> Judge<'a> {
    fn new(history: &'a [Transaction], last: &'a BTreeMap<Key, Vec<Value>>) -> Judge<'a> {
        let mut judge = Judge {
            history,
            last,
            writers: BTreeMap::new(),
            appends: BTreeMap::new(),
            orders: last.iter().map(|(key, list)| (*key, (None, list.as_slice()))).collect(),
            committed: BTreeSet::new(),
        };
        for (id, transaction) in history.iter().enumerate() {
            for op in &transaction.ops {
                if let Op::Append(key, value) = op {
                    judge.writers.insert((*key, *value), id);
                    judge.appends.entry((id, *key)).or_default().push(*value);
                }
            }
        }
        judge.committed = judge.find_committed();
        for (id, key, list) in judge.committed_reads() {
            let longest = judge.orders.entry(key).or_insert((Some(id), list));
            if list.len() > longest.1.len() {
                *longest = (Some(id), list);
            }
        }
        judge
    }

    fn find_committed(&self) -> BTreeSet<Id> {
        let fates = self.history.iter().enumerate();
        let mut committed: BTreeSet<Id> =
            fates.filter(|(_, transaction)| transaction.fate == Fate::Committed).map(|(id, _)| id).collect();
        let reads = committed.iter().flat_map(|id| &self.history[*id].ops).filter_map(|op| match op {
            Op::Read(key, list) => Some((*key, list)),
            Op::Append(..) => None,
        });
        let seen = reads.chain(self.last.iter().map(|(key, list)| (*key, list)));
        let writers =
            seen.flat_map(|(key, list)| list.iter().filter_map(move |value| self.writers.get(&(key, *value))));
        let unknown: Vec<Id> = writers.copied().filter(|id| self.history[*id].fate == Fate::Unknown).collect();
        committed.extend(unknown);
        committed
    }

    /// Reads of committed transactions.
    fn committed_reads(&self) -> Vec<(Id, Key, &'a [Value])> {
        let history = self.history;
        let reads = self.committed.iter().flat_map(|id| {
            history[*id].ops.iter().filter_map(|op| match op {
                Op::Read(key, list) => Some((*id, *key, list.as_slice())),
                Op::Append(..) => None,
            })
        });
        reads.collect()
    }

    fn reads(&self) -> Vec<Anomaly> {
        let mut found = Vec::new();
        let finals = self.last.iter().map(|(key, list)| (usize::MAX, *key, list.as_slice()));
        for (id, key, list) in self.committed_reads().into_iter().chain(finals) {
            self.read_alone(id, key, list, &mut found);
            let (other, order) = self.orders[&key];
            if !order.starts_with(list) {
                found.push(Anomaly::Fork(id, other.unwrap_or(usize::MAX), key));
            } else if let Some(reader) = self.history.get(id) {
                let missing = order[list.len()..].iter().filter_map(|value| self.writers.get(&(key, *value)));
                let mut acknowledged = missing.filter(|of| {
                    self.history[**of].fate == Fate::Committed && self.history[**of].ended < reader.started
                });
                if let Some(of) = acknowledged.next() {
                    found.push(Anomaly::Stale(id, *of, key));
                }
            }
        }
        for id in &self.committed {
            self.own_appends(*id, &mut found);
        }
        found
    }

    /// What a single read shows to be wrong.
    fn read_alone(&self, id: Id, key: Key, list: &[Value], found: &mut Vec<Anomaly>) {
        let mut seen = BTreeSet::new();
        let mut writers = BTreeSet::new();
        for value in list {
            if !seen.insert(*value) {
                found.push(Anomaly::Duplicate(id, key, *value));
            }
            match self.writers.get(&(key, *value)) {
                None => found.push(Anomaly::Garbage(id, key, *value)),
                Some(of) => {
                    writers.insert(*of);
                }
            }
        }
        for of in writers.into_iter().filter(|of| *of != id) {
            if !self.committed.contains(&of) {
                found.push(Anomaly::AbortedRead(id, of, key));
            } else if self.appends[&(of, key)].iter().any(|value| !seen.contains(value)) {
                found.push(Anomaly::IntermediateRead(id, of, key));
            }
        }
    }

    /// Whether each read of a transaction ends with exactly what it had appended until then.
    fn own_appends(&self, id: Id, found: &mut Vec<Anomaly>) {
        let mut own: BTreeMap<Key, Vec<Value>> = BTreeMap::new();
        for op in &self.history[id].ops {
            match op {
                Op::Append(key, value) => own.entry(*key).or_default().push(*value),
                Op::Read(key, list) => {
                    let own = own.get(key).map_or(&[][..], Vec::as_slice);
                    let of_own = list.iter().filter(|value| self.writers.get(&(*key, **value)) == Some(&id)).count();
                    if !list.ends_with(own) || of_own != own.len() {
                        found.push(Anomaly::Internal(id, *key));
                    }
                }
            }
        }
    }

    fn lost(&self) -> Vec<Anomaly> {
        let acknowledged = self.writers.iter().filter(|(_, id)| self.history[**id].fate == Fate::Committed);
        let missing =
            acknowledged.filter(|((key, value), _)| self.last.get(key).is_some_and(|list| !list.contains(value)));
        missing.map(|((key, value), id)| Anomaly::Lost(*id, *key, *value)).collect()
    }

    fn cycles(&self) -> Vec<Anomaly> {
        let mut writes = Graph::new(self.history.len());
        for (key, (_, order)) in &self.orders {
            for pair in order.windows(2) {
                writes.edge(self.writers[&(*key, pair[0])], self.writers[&(*key, pair[1])]);
            }
        }
        let mut information = writes.clone();
        let mut against = BTreeSet::new();
        for (id, key, list) in self.committed_reads() {
            if let Some(value) = list.last() {
                information.edge(self.writers[&(key, *value)], id);
            }
            if let Some(next) = self.orders[&key].1.get(list.len()) {
                against.insert((id, self.writers[&(key, *next)]));
            }
        }
        let mut found = Vec::new();
        found.extend(writes.cycle().map(Anomaly::G0));
        if found.is_empty() {
            found.extend(information.cycle().map(Anomaly::G1c));
        }
        // One witness is enough to fail a test and to be looked into.
        let mut all = information.clone();
        against.iter().filter(|(reader, writer)| reader != writer).for_each(|edge| all.edge(edge.0, edge.1));
        let singles = against.into_iter().filter(|(reader, writer)| reader != writer);
        let mut paths = singles.filter_map(|(reader, writer)| information.path(writer, reader));
        found.extend(paths.next().map(Anomaly::GSingle));
        if found.is_empty() {
            found.extend(all.cycle().map(Anomaly::G2));
        }
        found
    }
}
