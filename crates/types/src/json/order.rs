//! The order of `jsonb`: null, string, number, boolean, array, object; containers by size first.
//!
//! Invariant: for any two documents, the byte order of their keys is the order of the documents, so that documents that
//! are equal although they are written differently (`1` and `1.0`) have one key.

use std::cmp::Ordering;

use base::work::{self, Count};

use super::{Value, parse};

/// Compares two documents, given as the text that `jsonb` is held as.
pub fn compare(a: &str, b: &str) -> Ordering {
    // Most comparisons are for equality, and most equal documents are written alike.
    if a == b {
        return Ordering::Equal;
    }
    match (parse(a), parse(b)) {
        (Ok(a), Ok(b)) => compare_values(&a, &b, true),
        // Not documents: nothing that `jsonb` holds.
        _ => a.cmp(b),
    }
}

fn rank(value: &Value, top: bool) -> u8 {
    match value {
        // An array without elements sorts below every scalar at the top level.
        Value::Array(values) if top && values.is_empty() => 0,
        Value::Null => 1,
        Value::String(_) | Value::Moment(_) => 2,
        Value::Number(_) => 3,
        Value::Bool(_) => 4,
        Value::Array(_) => 5,
        Value::Object(_) => 6,
    }
}

fn compare_values(a: &Value, b: &Value, top: bool) -> Ordering {
    use Value as V;
    let bytes = |a: &str, b: &str| a.as_bytes().cmp(b.as_bytes());
    match (a, b) {
        (V::String(a), V::String(b)) => bytes(a, b),
        (V::Number(a), V::Number(b)) => a.cmp(b),
        (V::Bool(a), V::Bool(b)) => a.cmp(b),
        (V::Array(a), V::Array(b)) => a.len().cmp(&b.len()).then_with(|| {
            let unequal = a.iter().zip(b).counted(8).map(|(x, y)| compare_values(x, y, false)).find(|o| o.is_ne());
            unequal.unwrap_or(Ordering::Equal)
        }),
        (V::Object(a), V::Object(b)) => a.len().cmp(&b.len()).then_with(|| {
            let pair =
                |((k, v), (l, w)): (&(String, V), &(String, V))| bytes(k, l).then_with(|| compare_values(v, w, false));
            a.iter().zip(b).counted(8).map(pair).find(|o| o.is_ne()).unwrap_or(Ordering::Equal)
        }),
        _ => rank(a, top).cmp(&rank(b, top)),
    }
}

/// Appends the key of a document. Counted.
pub(crate) fn write_key(text: &str, out: &mut Vec<u8>) {
    match parse(text) {
        Ok(value) => write_value(&value, true, out),
        Err(_) => crate::key::write_bytes(text.as_bytes(), out),
    }
}

fn write_value(value: &Value, top: bool, out: &mut Vec<u8>) {
    out.push(rank(value, top));
    work::beat(8);
    match value {
        Value::Null | Value::Moment(_) => {}
        Value::Bool(v) => out.push(*v as u8),
        Value::Number(v) => v.write_key(out),
        Value::String(v) => crate::key::write_bytes(v.as_bytes(), out),
        Value::Array(values) => {
            out.extend_from_slice(&(values.len() as u32).to_be_bytes());
            for value in values {
                write_value(value, false, out);
            }
        }
        Value::Object(fields) => {
            out.extend_from_slice(&(fields.len() as u32).to_be_bytes());
            for (key, value) in fields {
                crate::key::write_bytes(key.as_bytes(), out);
                write_value(value, false, out);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_in_the_order_of_documents() {
        let documents = [
            "[]",
            "null",
            "\"\"",
            "\"a\"",
            "\"b\"",
            "-1",
            "0",
            "1",
            "1.0",
            "1.50",
            "1.5",
            "false",
            "true",
            "[null]",
            "[1]",
            "[1, 2]",
            "[[], 1]",
            "{}",
            "{\"a\": 1}",
            "{\"a\": 2}",
            "{\"b\": 0}",
            "{\"a\": 1, \"b\": 1}",
            "[\"a\"]",
            "[{}]",
        ];
        let key = |text: &str| {
            let mut out = Vec::new();
            write_key(text, &mut out);
            out
        };
        for a in documents {
            for b in documents {
                assert_eq!(key(a).cmp(&key(b)), compare(a, b), "{a} {b}");
            }
        }
        assert!(compare("1", "1.0").is_eq());
    }
}
