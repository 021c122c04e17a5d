//! A read set in the log: what a prepared transaction has read is a guard, and outlives a restart.

use std::ops::Bound;
use std::sync::Arc;

use base::{RowId, Timestamp};

use super::{Key, ReadSet, Span, borrowed};
use crate::record::StorageId;
use crate::storage::TableStore;

/// A read set in the log.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct Written {
    tables: Vec<WrittenTable>,
}

#[derive(Debug, serde::Serialize, serde::Deserialize)]
struct WrittenTable {
    oid: u32,
    storage: u32,
    whole: bool,
    /// The rows are blocks of so many, as a power of two.
    #[serde(default)]
    block: u8,
    rows: Vec<u64>,
    below: Vec<u64>,
    keys: Vec<WrittenKeys>,
}

#[derive(Debug, serde::Serialize, serde::Deserialize)]
struct WrittenKeys {
    index: u32,
    lower: Bound<Vec<u8>>,
    upper: Bound<Vec<u8>>,
}

impl ReadSet {
    /// As it is written to the log.
    pub fn written(&self) -> Written {
        let tables = self.tables.iter().enumerate().map(|(number, known)| {
            let number = number as u16;
            let mut written = WrittenTable {
                oid: known.store.id.table.0,
                storage: known.store.id.storage,
                whole: known.whole.is_some(),
                block: known.block,
                rows: self.rows.iter().filter(|item| item.table == number).map(|item| item.row.0).collect(),
                below: Vec::new(),
                keys: Vec::new(),
            };
            written.rows.sort_unstable();
            written.rows.dedup();
            let own = |bound: &Bound<Key>| borrowed(bound).map(<[u8]>::to_vec);
            for range in self.ranges.iter().filter(|range| range.table == number) {
                match &range.span {
                    Span::Rows { below } => written.below.push(below.0),
                    Span::Keys { index, lower, upper } => {
                        written.keys.push(WrittenKeys { index: index.desc.oid.0, lower: own(lower), upper: own(upper) })
                    }
                }
            }
            written
        });
        Written { tables: tables.collect() }
    }

    /// Adds what the log says. Tables and indexes that are gone are passed over: they were read in a part that was rolled
    /// back.
    pub fn read(&mut self, written: Written, find: impl Fn(StorageId) -> Option<Arc<TableStore>>) {
        let as_of = Timestamp(0);
        for table in written.tables {
            let id = StorageId { table: base::Oid(table.oid), storage: table.storage };
            let Some(store) = find(id) else { continue };
            let number = self.number_of(&store) as usize;
            self.tables[number].block = table.block.min(63);
            let first_of = |block: u64| RowId(block << table.block.min(63));
            table.rows.iter().for_each(|row| self.add_row(&store, first_of(*row), as_of));
            for below in table.below {
                self.add_range(&store, Span::Rows { below: RowId(below) }, as_of);
            }
            let definition = store.upkeep.current();
            for WrittenKeys { index, lower, upper } in table.keys {
                let known = definition.indexes.iter().find(|known| known.desc.oid.0 == index);
                let span = known.map_or(Span::ALL, |index| Span::keys(index, &engine_api::KeyRange { lower, upper }));
                self.add_range(&store, span, as_of);
            }
            if table.whole {
                self.add_range(&store, Span::ALL, as_of);
            }
        }
        self.settle();
    }
}
