//! What a transaction's log record says: a list of operations, each on a row (by RowId, rule R3) or a catalog object.
//!
//! Responsible for: encoding operations, the difference between two tuples, decoding without trust in the bytes.
//! Not responsible for: framing and checksums (`redo`), applying operations (`recovery`).
//! The byte tables are in docs/formats/log.md. All integers are unsigned LEB128 unless said otherwise.

use base::{LayoutId, Oid, RowId, work};

/// Which rows: a table and the number of its storage (TRUNCATE starts a new one).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StorageId {
    /// The table.
    pub table: Oid,
    /// Its number.
    pub storage: u32,
}

/// One decoded operation.
#[derive(Debug, PartialEq)]
pub enum Op<'a> {
    /// A new row.
    Insert { storage: StorageId, row: RowId, layout: LayoutId, tuple: &'a [u8] },
    /// A new version, given as the difference from the newest one.
    Update { storage: StorageId, row: RowId, layout: LayoutId, delta: Delta<'a> },
    /// The row is gone.
    Delete { storage: StorageId, row: RowId },
    /// A catalog object as JSON, new or replaced.
    PutObject { json: &'a [u8] },
    /// A catalog object is gone.
    DropObject { oid: Oid },
    /// The operations of this record from this byte on do not count: they were sent ahead and then rolled back.
    UndoTo { offset: u64 },
    /// What a prepared transaction is beside its changes, as JSON.
    Prepared { json: &'a [u8] },
}

/// How a tuple differs from its predecessor.
#[derive(Debug, PartialEq)]
pub enum Delta<'a> {
    /// Same length; these runs of bytes are different.
    Runs(Runs<'a>),
    /// Keep a prefix and a suffix, put `middle` between them.
    Splice { prefix: usize, suffix: usize, middle: &'a [u8] },
}

/// Encoded runs: (gap, length, bytes) until the input ends.
#[derive(Debug, PartialEq, Clone, Copy)]
pub struct Runs<'a>(&'a [u8]);

/// Bytes that are no operation.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
pub struct Malformed(pub &'static str);

const INSERT: u8 = 1;
const UPDATE_RUNS: u8 = 2;
const UPDATE_SPLICE: u8 = 3;
const DELETE: u8 = 4;
const PUT_OBJECT: u8 = 5;
const DROP_OBJECT: u8 = 6;
const UNDO_TO: u8 = 7;
const PREPARED: u8 = 8;

/// Runs closer than this are logged as one: a run costs two bytes of lengths.
const RUN_GAP_MIN: usize = 3;

fn put(out: &mut Vec<u8>, mut value: u64) {
    if value < 0x80 {
        return out.push(value as u8);
    }
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put(out, bytes.len() as u64);
    // The change that is recorded is made.
    work::append_unstopped(out, bytes);
}

/// How many bytes two tuples begin with in common, a stretch at a time.
fn same_stretches(old: &[u8], new: &[u8]) -> usize {
    bytes_alike(old.chunks_exact(work::STRETCH).zip(new.chunks_exact(work::STRETCH)))
}

/// As [`same_stretches`], of what they end with.
fn same_last_stretches(old: &[u8], new: &[u8]) -> usize {
    bytes_alike(old.rchunks_exact(work::STRETCH).zip(new.rchunks_exact(work::STRETCH)))
}

/// The bytes of the pairs of stretches before the first that differs, counted. Nothing stops it.
fn bytes_alike<'t>(pairs: impl Iterator<Item = (&'t [u8], &'t [u8])>) -> usize {
    let same = pairs.take_while(|(a, b)| {
        work::unstopped(|| work::beat(work::bytes(work::STRETCH)));
        a == b
    });
    same.count() * work::STRETCH
}

fn put_row(out: &mut Vec<u8>, kind: u8, storage: StorageId, row: RowId) {
    // Enough for the operation but for its bytes; a small transaction's buffer is made once.
    out.reserve(48);
    out.push(kind);
    put(out, storage.table.0 as u64);
    put(out, storage.storage as u64);
    put(out, row.0);
}

/// Appends an insert.
pub fn insert(out: &mut Vec<u8>, storage: StorageId, row: RowId, layout: LayoutId, tuple: &[u8]) {
    put_row(out, INSERT, storage, row);
    put(out, layout.0 as u64);
    put_bytes(out, tuple);
}

/// Appends an update from `old` to `new`: changed bytes only.
pub fn update(out: &mut Vec<u8>, storage: StorageId, row: RowId, layout: LayoutId, old: &[u8], new: &[u8]) {
    if old.len() == new.len() {
        put_row(out, UPDATE_RUNS, storage, row);
        put(out, layout.0 as u64);
        if new.len() <= work::STRETCH {
            put_runs(out, old, new);
        } else {
            put_long_runs(out, old, new);
        }
    } else {
        put_row(out, UPDATE_SPLICE, storage, row);
        put(out, layout.0 as u64);
        let far = same_stretches(old, new);
        let prefix = far + old[far..].iter().zip(&new[far..]).take_while(|(a, b)| a == b).count();
        let (old_rest, new_rest) = (&old[prefix..], &new[prefix..]);
        let far = same_last_stretches(old_rest, new_rest);
        let (old_rest, new_rest) = (&old_rest[..old_rest.len() - far], &new_rest[..new_rest.len() - far]);
        let suffix = far + old_rest.iter().rev().zip(new_rest.iter().rev()).take_while(|(a, b)| a == b).count();
        put(out, prefix as u64);
        put(out, suffix as u64);
        put_bytes(out, &new[prefix..new.len() - suffix]);
    }
}

/// Appends an update to a tuple, whatever was there before.
pub fn replace(out: &mut Vec<u8>, storage: StorageId, row: RowId, layout: LayoutId, tuple: &[u8]) {
    put_row(out, UPDATE_SPLICE, storage, row);
    put(out, layout.0 as u64);
    put(out, 0);
    put(out, 0);
    put_bytes(out, tuple);
}

/// Where `old` and `new`, of one length, first differ at or after `at`; their length if they do not. Four words, and then
/// one word, at a time: most of a row stays as it was.
fn next_difference(old: &[u8], new: &[u8], mut at: usize) -> usize {
    let word = |bytes: &[u8]| bytes.first_chunk().map(|word| u64::from_le_bytes(*word));
    while let (Some(a), Some(b)) = (old[at..].first_chunk::<32>(), new[at..].first_chunk::<32>())
        && a == b
    {
        at += 32;
    }
    while let (Some(a), Some(b)) = (word(&old[at..]), word(&new[at..])) {
        if a != b {
            return at + ((a ^ b).trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    (at..new.len()).find(|&i| old[i] != new[i]).unwrap_or(new.len())
}

/// The number of runs' bytes is written first; it is at most a few, so it is patched in front by a rotate.
fn put_runs(out: &mut Vec<u8>, old: &[u8], new: &[u8]) {
    let start = out.len();
    append_runs(out, old, new, 0, 0);
    let len = out.len() - start;
    let before = out.len();
    put(out, len as u64);
    let header = out.len() - before;
    out[start..].rotate_right(header);
}

/// As [`put_runs`], counted.
#[cold]
fn put_long_runs(out: &mut Vec<u8>, old: &[u8], new: &[u8]) {
    let mut runs = Vec::new();
    let (mut at, mut last) = (0, 0);
    while at < new.len() {
        at += same_stretches(&old[at..], &new[at..]);
        let upto = new.len().min(at + work::STRETCH);
        last = append_runs(&mut runs, &old[..upto], &new[..upto], at, last);
        at = upto;
        work::unstopped(|| work::beat(work::STRETCH));
    }
    put_bytes(out, &runs);
}

/// Appends the runs from `at` on; the one before ends at `last`. Answers where the last one ends.
fn append_runs(out: &mut Vec<u8>, old: &[u8], new: &[u8], mut at: usize, mut last: usize) -> usize {
    loop {
        let begin = next_difference(old, new, at);
        if begin == new.len() {
            return last;
        }
        let mut end = begin + 1;
        let mut i = end;
        while i < new.len() && i - end < RUN_GAP_MIN {
            if old[i] != new[i] {
                end = i + 1;
            }
            i += 1;
        }
        put(out, (begin - last) as u64);
        put_bytes(out, &new[begin..end]);
        (at, last) = (end, end);
    }
}

/// Appends a delete.
pub fn delete(out: &mut Vec<u8>, storage: StorageId, row: RowId) {
    put_row(out, DELETE, storage, row);
}

/// Appends a new or replaced catalog object.
pub fn put_object(out: &mut Vec<u8>, json: &[u8]) {
    out.push(PUT_OBJECT);
    put_bytes(out, json);
}

/// Appends the end of a catalog object.
pub fn drop_object(out: &mut Vec<u8>, oid: Oid) {
    out.push(DROP_OBJECT);
    put(out, oid.0 as u64);
}

/// Appends that what the record says from byte `offset` on does not count.
pub fn undo_to(out: &mut Vec<u8>, offset: u64) {
    out.push(UNDO_TO);
    put(out, offset);
}

/// Appends what a prepared transaction is.
pub fn prepared(out: &mut Vec<u8>, json: &[u8]) {
    out.push(PREPARED);
    put_bytes(out, json);
}

/// Decodes the operations of a payload in order.
#[derive(Debug)]
pub struct Ops<'a>(&'a [u8]);

impl<'a> Ops<'a> {
    /// All operations of `payload`.
    pub fn new(payload: &'a [u8]) -> Ops<'a> {
        Ops(payload)
    }

    /// Bytes not decoded yet.
    pub fn remaining(&self) -> usize {
        self.0.len()
    }

    fn number(&mut self) -> Result<u64, Malformed> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = self.0.split_first().ok_or(Malformed("number cut short"))?;
            self.0 = rest;
            value |= ((byte & 0x7f) as u64) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(Malformed("number too long"))
    }

    fn small(&mut self) -> Result<u32, Malformed> {
        u32::try_from(self.number()?).map_err(|_| Malformed("number too large"))
    }

    fn length(&mut self) -> Result<usize, Malformed> {
        usize::try_from(self.number()?).map_err(|_| Malformed("length too large"))
    }

    fn bytes(&mut self) -> Result<&'a [u8], Malformed> {
        let len = self.length()?;
        let (bytes, rest) = self.0.split_at_checked(len).ok_or(Malformed("bytes cut short"))?;
        self.0 = rest;
        Ok(bytes)
    }

    fn row(&mut self) -> Result<(StorageId, RowId), Malformed> {
        let table = Oid(self.small()?);
        let storage = self.small()?;
        Ok((StorageId { table, storage }, RowId(self.number()?)))
    }

    fn op(&mut self, kind: u8) -> Result<Op<'a>, Malformed> {
        match kind {
            INSERT => {
                let (storage, row) = self.row()?;
                Ok(Op::Insert { storage, row, layout: LayoutId(self.small()?), tuple: self.bytes()? })
            }
            UPDATE_RUNS => {
                let (storage, row) = self.row()?;
                let layout = LayoutId(self.small()?);
                Ok(Op::Update { storage, row, layout, delta: Delta::Runs(Runs(self.bytes()?)) })
            }
            UPDATE_SPLICE => {
                let (storage, row) = self.row()?;
                let layout = LayoutId(self.small()?);
                let (prefix, suffix) = (self.length()?, self.length()?);
                Ok(Op::Update { storage, row, layout, delta: Delta::Splice { prefix, suffix, middle: self.bytes()? } })
            }
            DELETE => {
                let (storage, row) = self.row()?;
                Ok(Op::Delete { storage, row })
            }
            PUT_OBJECT => Ok(Op::PutObject { json: self.bytes()? }),
            DROP_OBJECT => Ok(Op::DropObject { oid: Oid(self.small()?) }),
            PREPARED => Ok(Op::Prepared { json: self.bytes()? }),
            UNDO_TO => Ok(Op::UndoTo { offset: self.number()? }),
            _ => Err(Malformed("unknown operation")),
        }
    }
}

impl<'a> Iterator for Ops<'a> {
    type Item = Result<Op<'a>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        let (&kind, rest) = self.0.split_first()?;
        self.0 = rest;
        let op = self.op(kind);
        if op.is_err() {
            self.0 = &[];
        }
        Some(op)
    }
}

impl Delta<'_> {
    /// Writes the new tuple, given the old one, into `new` (cleared first).
    pub fn apply(&self, old: &[u8], new: &mut Vec<u8>) -> Result<(), Malformed> {
        new.clear();
        match self {
            Delta::Runs(runs) => {
                new.extend_from_slice(old);
                let mut input = Ops(runs.0);
                let mut at = 0usize;
                while !input.0.is_empty() {
                    at = at.checked_add(input.length()?).ok_or(Malformed("run past the end"))?;
                    let bytes = input.bytes()?;
                    let end = at.checked_add(bytes.len()).ok_or(Malformed("run past the end"))?;
                    new.get_mut(at..end).ok_or(Malformed("run past the end"))?.copy_from_slice(bytes);
                    at = end;
                }
            }
            Delta::Splice { prefix, suffix, middle } => {
                let kept = prefix.checked_add(*suffix).ok_or(Malformed("splice past the end"))?;
                if kept > old.len() {
                    return Err(Malformed("splice past the end"));
                }
                new.extend_from_slice(&old[..*prefix]);
                new.extend_from_slice(middle);
                new.extend_from_slice(&old[old.len() - suffix..]);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: StorageId = StorageId { table: Oid(16384), storage: 1 };

    fn roundtrip(old: &[u8], new: &[u8]) -> usize {
        let mut log = Vec::new();
        update(&mut log, S, RowId(7), LayoutId(1), old, new);
        let Op::Update { delta, row, .. } = Ops::new(&log).next().unwrap().unwrap() else { panic!("not an update") };
        assert_eq!(row, RowId(7));
        let mut out = Vec::new();
        delta.apply(old, &mut out).unwrap();
        assert_eq!(out, new);
        log.len()
    }

    #[test]
    fn updates_log_changed_bytes_only() {
        let old = vec![5u8; 200];
        let mut new = old.clone();
        new[10] = 6;
        new[12] = 9;
        new[150] = 1;
        assert!(roundtrip(&old, &new) < 24);
        roundtrip(&old, &old);
        roundtrip(&old, &old[..100]);
        roundtrip(b"", b"abc");
        roundtrip(b"abcabc", b"abc");
        let grown: Vec<u8> = [&old[..50], b"hello", &old[50..]].concat();
        roundtrip(&old, &grown);
    }

    #[test]
    fn long_tuples_round_trip() {
        let old: Vec<u8> = (0..3 * work::STRETCH + 100).map(|i| (i % 251) as u8).collect();
        for at in [0, 7, work::STRETCH - 1, work::STRETCH, 2 * work::STRETCH + 5, old.len() - 1] {
            let mut new = old.clone();
            new[at] ^= 1;
            assert!(roundtrip(&old, &new) < 32);
            new[old.len() / 2] ^= 1;
            assert!(roundtrip(&old, &new) < 40);
            new.insert(at, 9);
            assert!(roundtrip(&old, &new) < old.len());
            assert!(roundtrip(&old, &old[at..]) < 32 + at);
            roundtrip(&old[at..], &new);
        }
        let other: Vec<u8> = old.iter().map(|byte| !byte).collect();
        roundtrip(&old, &other);
    }

    #[test]
    fn random_pairs_round_trip() {
        let mut seed = 0x9e37_79b9_7f4a_7c15u64;
        let mut next = move || {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            seed
        };
        for _ in 0..2000 {
            let n = (next() % 64) as usize;
            let m = if next() % 2 == 0 { n } else { (next() % 64) as usize };
            let a: Vec<u8> = (0..n).map(|_| (next() % 3) as u8).collect();
            let b: Vec<u8> = (0..m).map(|_| (next() % 3) as u8).collect();
            roundtrip(&a, &b);
        }
    }

    #[test]
    fn numbers_of_all_lengths_round_trip() {
        let numbers = (0..64).flat_map(|bits| [0, 1, 0x55].map(|low| (1u64 << bits).wrapping_add(low)));
        for number in numbers.chain([0, 127, 128, 300, u64::MAX - 1, u64::MAX]) {
            for behind in 0..12 {
                let mut out = Vec::new();
                put(&mut out, number);
                let len = out.len();
                out.extend((0..behind).map(|n| 0xff - n as u8 % 3 * 0x7f));
                let mut ops = Ops::new(&out);
                assert_eq!((ops.number(), ops.remaining()), (Ok(number), behind));
                for cut in 0..len {
                    assert!(Ops::new(&out[..cut]).number().is_err(), "{number} without its end");
                }
            }
        }
        assert!(Ops::new(&[0x80; 11]).number().is_err());
    }

    #[test]
    fn expressions_of_before_are_read_and_kept_ones_come_back() {
        use engine_api::{Expression, Part, Reference};
        let read = |json: &str| serde_json::from_str::<Expression>(json).expect("it is read");
        assert_eq!(read("\"a > 1\""), Expression::Written("a > 1".into()));
        let kept = Expression::Kept(
            [
                Part::Name(Reference::Column(2)),
                Part::Text(" = ".to_string()),
                Part::Name(Reference::Label { of: Oid(16400), label: Oid(16401) }),
                Part::Name(Reference::Row {}),
            ]
            .into(),
        );
        let json = serde_json::to_string(&kept).expect("it has a form");
        assert_eq!(json, r#"[{"column":2}," = ",{"label":{"of":16400,"label":16401}},{"row":{}}]"#);
        assert_eq!(read(&json), kept);
    }

    #[test]
    fn garbage_is_an_error_not_a_panic() {
        let mut log = Vec::new();
        insert(&mut log, S, RowId(1), LayoutId(1), b"tuple");
        delete(&mut log, S, RowId(1));
        put_object(&mut log, b"{}");
        drop_object(&mut log, Oid(3));
        assert_eq!(Ops::new(&log).filter(|op| op.is_ok()).count(), 4);
        for cut in 0..log.len() {
            let _ = Ops::new(&log[..cut]).count();
            for bit in 0..8 {
                let mut flipped = log.clone();
                flipped[cut] ^= 1 << bit;
                for op in Ops::new(&flipped).flatten() {
                    if let Op::Update { delta, .. } = op {
                        let _ = delta.apply(b"tuple", &mut Vec::new());
                    }
                }
            }
        }
    }
}
