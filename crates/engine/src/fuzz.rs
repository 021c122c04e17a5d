//! One entry for fuzzers: what the payload of a log record says.

use crate::record::{self, Delta, Op, Ops};

/// Decodes `payload` as operations, and what they say once more. Must return, whatever the bytes are.
pub fn fuzz_operations(payload: &[u8]) {
    for op in Ops::new(payload).flatten() {
        let mut written = Vec::new();
        match &op {
            Op::Insert { storage, row, layout, tuple } => record::insert(&mut written, *storage, *row, *layout, tuple),
            Op::Delete { storage, row } => record::delete(&mut written, *storage, *row),
            Op::PutObject { json } => record::put_object(&mut written, json),
            Op::DropObject { oid } => record::drop_object(&mut written, *oid),
            Op::UndoTo { offset } => record::undo_to(&mut written, *offset),
            Op::Prepared { json } => record::prepared(&mut written, json),
            Op::Update { delta, .. } => return changes(delta),
        }
        assert_eq!(Ops::new(&written).collect::<Vec<_>>(), [Ok(op)]);
    }
}

/// A change is of some older tuple, or of none. What it makes is bounded by what it was made of.
fn changes(delta: &Delta<'_>) {
    let old: Vec<u8> = (0..=255).collect();
    let mut new = Vec::new();
    for old in [&old[..0], &old[..7], &old] {
        if delta.apply(old, &mut new).is_ok() {
            let more = match delta {
                Delta::Runs(_) => 0,
                Delta::Splice { middle, .. } => middle.len(),
            };
            assert!(new.len() <= old.len() + more);
        }
    }
}
