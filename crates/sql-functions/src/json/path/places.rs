//! Where the objects and arrays of a document are in PostgreSQL's binary form of it, by which `.keyvalue()` numbers objects.
//!
//! A container is a word of its count, a word for each element (of an object: for each key, then for each value), and what they are: keys
//! and strings as they are, numbers and containers at the next whole word.

use rustc_hash::FxHashMap;
use types::json::Value;

/// Bytes of a word.
const WORD: usize = 4;

/// Places of all containers in a document, by where they are in memory.
pub(super) struct Places(FxHashMap<usize, usize>);

impl Places {
    pub(super) fn of(document: &Value) -> Places {
        let mut places = Places(FxHashMap::default());
        // A scalar is the one element of an array.
        if matches!(document, Value::Array(_) | Value::Object(_)) {
            places.lay(document, 0);
        }
        places
    }

    /// The place of a container; 0 for one that is not in the document.
    pub(super) fn get(&self, item: &Value) -> usize {
        self.0.get(&address(item)).copied().unwrap_or(0)
    }

    /// Notes what is at a place; returns where it ends.
    fn lay(&mut self, value: &Value, at: usize) -> usize {
        match value {
            Value::Null | Value::Bool(_) | Value::Moment(_) => at,
            Value::String(s) => at + s.len(),
            Value::Number(n) => at.next_multiple_of(WORD) + n.stored_len(),
            Value::Array(values) => {
                let at = at.next_multiple_of(WORD);
                self.0.insert(address(value), at);
                values.iter().fold(at + WORD * (1 + values.len()), |end, value| self.lay(value, end))
            }
            Value::Object(fields) => {
                let at = at.next_multiple_of(WORD);
                self.0.insert(address(value), at);
                let keys: usize = fields.iter().map(|(key, _)| key.len()).sum();
                fields.iter().fold(at + WORD * (1 + 2 * fields.len()) + keys, |end, (_, value)| self.lay(value, end))
            }
        }
    }
}

fn address(value: &Value) -> usize {
    std::ptr::from_ref(value).addr()
}
