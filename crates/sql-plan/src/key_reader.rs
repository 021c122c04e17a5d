//! Reading columns of a table from the keys of an index, where those say all of them.

use engine_api::IndexDesc;
use smallvec::SmallVec;
use sql_ir::expr::Slot;
use types::Datum;

use super::node::KeyColumn;

/// Reads columns from an index's key into registers.
#[derive(Clone, Debug)]
pub struct KeyReader {
    /// The key's columns up to the last one that is wanted, with the slot of each that is.
    steps: SmallVec<[(KeyColumn, Option<Slot>); 4]>,
}

impl KeyReader {
    /// A reader of these columns (attribute number - 1, slot); `None` if a key does not say all of them. `key` describes the
    /// index's columns by their place.
    pub fn new(index: &IndexDesc, columns: &[(usize, Slot)], key: impl Fn(usize) -> KeyColumn) -> Option<KeyReader> {
        let place = |column: usize| index.keys.iter().position(|k| k.column as usize == column + 1);
        let mut steps: SmallVec<[(KeyColumn, Option<Slot>); 4]> = SmallVec::new();
        for &(column, slot) in columns {
            let place = place(column)?;
            while steps.len() <= place {
                steps.push((key(steps.len()), None));
            }
            steps[place].1 = Some(slot);
        }
        let says_all = |(column, _): &(KeyColumn, Option<Slot>)| types::key_says_all(column.ty);
        steps.iter().all(says_all).then_some(KeyReader { steps })
    }

    /// Whether nothing is read.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// How many of the key's first columns say the values of these slots; `None` if they do not.
    pub fn columns_of(&self, slots: impl IntoIterator<Item = Slot>) -> Option<usize> {
        let place = |slot: Slot| self.steps.iter().position(|(_, to)| *to == Some(slot)).map(|at| at + 1);
        slots.into_iter().try_fold(0, |most, slot| Some(most.max(place(slot)?)))
    }

    /// Bytes of a key's first columns, so many of those that are read; `None` if it is none of this index's.
    pub fn length(&self, key: &[u8], columns: usize) -> Option<usize> {
        let mut rest = key;
        for (column, _) in &self.steps[..columns] {
            rest = types::split_key(rest, column.ty, column.descending)?.1;
        }
        Some(key.len() - rest.len())
    }

    /// Reads a key; `false` if it is none of this index's.
    #[inline]
    pub fn read(&self, key: &[u8], registers: &mut [Datum]) -> bool {
        let mut rest = key;
        for (column, slot) in &self.steps {
            let Some((bytes, behind)) = types::split_key(rest, column.ty, column.descending) else { return false };
            if let Some(slot) = slot {
                let Some(value) = types::decode_key(bytes, column.ty, column.descending) else { return false };
                registers[*slot as usize] = value;
            }
            rest = behind;
        }
        true
    }
}
