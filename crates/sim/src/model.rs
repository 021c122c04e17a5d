//! What the shard must be: a list of commits in the order of the log, and what each makes of rows and definitions.
//!
//! A view is a prefix of the list (rule R2), so what a transaction sees is the model at the length that the list had when it
//! took its view, with its own writes above. What a start finds is the model at the length that the log's end says.

use std::collections::{BTreeMap, BTreeSet};

use base::Oid;

use crate::program::By;
use crate::schema::{Row, Shape};

/// A row's name.
pub type Key = (Oid, i32);
/// Rows as they are after a transaction; `None`: deleted.
pub type Writes = BTreeMap<Key, Option<Row>>;
/// Definitions as they are after a transaction; `None`: dropped.
pub type Shapes = BTreeMap<Oid, Option<Shape>>;

/// What a transaction makes of rows and definitions.
#[derive(Clone, Debug, Default)]
pub struct Effects {
    /// Its rows.
    pub writes: Writes,
    /// Its definitions.
    pub shapes: Shapes,
    /// Tables that it emptied, before its rows.
    pub emptied: Vec<Oid>,
}

/// What a record of the log says.
#[derive(Clone, Debug)]
pub enum What {
    /// A commit.
    Commit(Effects),
    /// The first phase of one: its name and what it will make.
    Prepare(String, Effects),
    /// The second phase.
    Decide {
        /// The name of the first.
        name: String,
        /// How.
        commits: bool,
    },
}

/// A transaction in one of the histories, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recorded {
    /// On registers.
    Register(usize),
    /// On lists.
    List(usize),
}

/// A record of the log.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Where it ends in the log.
    pub position: u64,
    /// What it says.
    pub what: What,
    /// Its reply waits for it.
    pub is_sync: bool,
    /// Its writer was SERIALIZABLE, and had read this: of which table, by what, in which view.
    pub serializable: Option<Vec<(Oid, By, usize)>>,
    /// Its reply was sent.
    pub is_acknowledged: bool,
    /// Where it is among the transactions whose history is judged.
    pub recorded: Option<Recorded>,
}

/// The model. Lengths are of the list.
#[derive(Clone, Debug, Default)]
pub struct Model {
    entries: Vec<Entry>,
    /// Versions of rows with the length from which on they are there.
    rows: BTreeMap<Key, Vec<(usize, Option<Row>)>>,
    shapes: BTreeMap<Oid, Vec<(usize, Option<Shape>)>>,
    /// The last time that a table was emptied, dropped or made: older views are not asked about it.
    barriers: BTreeMap<Oid, usize>,
    /// What is prepared.
    prepared: BTreeMap<String, Effects>,
}

fn at<T: Clone>(versions: &[(usize, Option<T>)], len: usize) -> Option<T> {
    versions.iter().rev().find(|(from, _)| *from <= len).and_then(|(_, value)| value.clone())
}

impl Model {
    /// The length.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// The records.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// A reply was sent.
    pub fn acknowledge(&mut self, number: usize) {
        self.entries[number].is_acknowledged = true;
    }

    /// A row at a length.
    pub fn row(&self, key: Key, len: usize) -> Option<Row> {
        self.rows.get(&key).and_then(|versions| at(versions, len))
    }

    /// The number of the record that made a row what it is at a length; `None`: none has.
    pub fn writer(&self, key: Key, len: usize) -> Option<usize> {
        let versions = self.rows.get(&key)?;
        versions.iter().rev().find(|(from, _)| *from <= len).map(|(from, _)| from - 1)
    }

    /// The rows of a table at a length.
    pub fn table(&self, of: Oid, len: usize) -> BTreeMap<i32, Row> {
        let range = self.rows.range((of, i32::MIN)..=(of, i32::MAX));
        range.filter_map(|(key, versions)| Some((key.1, at(versions, len)?))).collect()
    }

    /// Keys of a table that ever had a row.
    pub fn keys(&self, of: Oid) -> impl Iterator<Item = i32> + '_ {
        self.rows.range((of, i32::MIN)..=(of, i32::MAX)).map(|(key, _)| key.1)
    }

    /// Whether a key ever had a row.
    pub fn was_there(&self, key: Key) -> bool {
        self.rows.contains_key(&key)
    }

    /// A table's definition at a length.
    pub fn shape(&self, of: Oid, len: usize) -> Option<Shape> {
        self.shapes.get(&of).and_then(|versions| at(versions, len))
    }

    /// The tables that there are.
    pub fn tables(&self) -> Vec<Oid> {
        self.shapes.keys().copied().filter(|oid| self.shape(*oid, self.len()).is_some()).collect()
    }

    /// Whether a view of this length can be asked about a table.
    pub fn is_seen(&self, of: Oid, len: usize) -> bool {
        self.barriers.get(&of).is_none_or(|barrier| *barrier <= len)
    }

    /// Names of what is prepared.
    pub fn prepared(&self) -> BTreeSet<String> {
        self.prepared.keys().cloned().collect()
    }

    /// A record was appended; answers its number.
    pub fn append(&mut self, entry: Entry) -> usize {
        self.apply(&entry.what);
        self.entries.push(entry);
        self.entries.len() - 1
    }

    fn apply(&mut self, what: &What) {
        match what {
            What::Commit(effects) => self.commit(effects),
            What::Prepare(name, effects) => _ = self.prepared.insert(name.clone(), effects.clone()),
            What::Decide { name, commits } => {
                let effects = self.prepared.remove(name).unwrap_or_default();
                if *commits {
                    self.commit(&effects);
                }
            }
        }
    }

    fn commit(&mut self, Effects { writes, shapes, emptied }: &Effects) {
        let len = self.entries.len() + 1;
        let gone = shapes.iter().filter(|(_, shape)| shape.is_none()).map(|(oid, _)| *oid);
        for table in emptied.iter().copied().chain(gone) {
            self.barriers.insert(table, len);
            for (_, versions) in self.rows.range_mut((table, i32::MIN)..=(table, i32::MAX)) {
                versions.push((len, None));
            }
        }
        for (oid, shape) in shapes {
            if !self.shapes.contains_key(oid) {
                self.barriers.insert(*oid, len);
            }
            self.shapes.entry(*oid).or_default().push((len, shape.clone()));
        }
        self.write(writes, len);
    }

    fn write(&mut self, writes: &Writes, len: usize) {
        for (key, row) in writes {
            self.rows.entry(*key).or_default().push((len, *row));
        }
    }

    /// Forgets what lies behind the end of the log that a start has found.
    ///
    /// # Errors
    /// If a reply was sent that depends on it.
    pub fn cut(&mut self, end: u64) -> Result<Vec<Entry>, String> {
        let kept = self.entries.iter().take_while(|entry| entry.position <= end).count();
        let lost = self.entries.split_off(kept);
        let acknowledged = lost.iter().find(|entry| entry.is_acknowledged && entry.is_sync);
        if let Some(entry) = acknowledged {
            return Err(format!(
                "a commit that ends at {} was acknowledged, and the log ends at {end}: {:?}",
                entry.position, entry.what
            ));
        }
        if !lost.is_empty() {
            self.again();
        }
        Ok(lost)
    }

    /// As [`Model::cut`], whatever replies were sent.
    pub fn forget(&mut self, end: u64) {
        self.entries.retain(|entry| entry.position <= end);
        self.again();
    }

    fn again(&mut self) {
        for entry in std::mem::take(self).entries {
            self.append(entry);
        }
    }
}
