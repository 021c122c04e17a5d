//! Sequences: values are handed out from memory, the log runs ahead of them.

use base::{Error, Oid, Result, SqlState, TxnId};
use engine_api::{SequenceDesc, SequenceState};
use parking_lot::Mutex;
use redo::{RecordKind, Reserve};
use rustc_hash::FxHashMap;

use crate::shard::Inner;

/// Values that one log record covers.
const AHEAD: i64 = 32;

#[derive(Clone, Copy, Debug)]
struct Sequence {
    state: SequenceState,
    /// Values that may still be handed out before the log must run ahead again.
    logged: i64,
}

/// The sequences of a shard.
#[derive(Debug, Default)]
pub struct Sequences(Mutex<FxHashMap<Oid, Sequence>>);

/// Bytes of a sequence record: oid, last value, whether it was called.
const RECORD: usize = 13;

fn encode(oid: Oid, state: SequenceState) -> [u8; RECORD] {
    let mut bytes = [0; RECORD];
    bytes[..4].copy_from_slice(&oid.0.to_le_bytes());
    bytes[4..12].copy_from_slice(&state.last_value.to_le_bytes());
    bytes[12] = state.is_called as u8;
    bytes
}

fn limit(desc: &SequenceDesc, maximum: bool) -> Error {
    let (what, value) = if maximum { ("maximum", desc.max) } else { ("minimum", desc.min) };
    Error::new(
        SqlState::SEQUENCE_GENERATOR_LIMIT_EXCEEDED,
        format!("nextval: reached {what} value of sequence \"{}\" ({value})", desc.name),
    )
}

/// The value after `state`, `steps` further.
fn advance(desc: &SequenceDesc, state: SequenceState, steps: i64) -> Result<i64> {
    if !state.is_called && steps == 1 {
        return Ok(state.last_value);
    }
    let moved = desc.increment as i128 * (if state.is_called { steps } else { steps - 1 }) as i128;
    let next = state.last_value as i128 + moved;
    match (next > desc.max as i128, next < desc.min as i128) {
        (false, false) => Ok(next as i64),
        (over, _) if desc.cycle => Ok(if over { desc.min } else { desc.max }),
        (over, _) => Err(limit(desc, over)),
    }
}

impl Sequences {
    /// Recovery: a record of the log.
    pub fn replay(&self, payload: &[u8]) -> Option<()> {
        let bytes: &[u8; RECORD] = payload.try_into().ok()?;
        let oid = Oid(u32::from_le_bytes(bytes[..4].try_into().ok()?));
        let state =
            SequenceState { last_value: i64::from_le_bytes(bytes[4..12].try_into().ok()?), is_called: bytes[12] != 0 };
        self.0.lock().insert(oid, Sequence { state, logged: 0 });
        Some(())
    }

    fn start(desc: &SequenceDesc) -> Sequence {
        Sequence { state: SequenceState { last_value: desc.start, is_called: false }, logged: 0 }
    }

    /// The next value.
    pub fn next(&self, inner: &Inner, desc: &SequenceDesc) -> Result<i64> {
        let mut all = self.0.lock();
        let sequence = all.entry(desc.oid).or_insert_with(|| Sequences::start(desc));
        let value = advance(desc, sequence.state, 1)?;
        let state = SequenceState { last_value: value, is_called: true };
        if sequence.logged == 0 {
            // Near the end there are fewer values than the log would run ahead: then it keeps up value by value.
            let (ahead, covered) = match desc.cycle {
                true => (value, 0),
                false => advance(desc, state, AHEAD).map_or((value, 0), |last| (last, AHEAD)),
            };
            append(inner, desc.oid, SequenceState { last_value: ahead, is_called: true })?;
            sequence.logged = covered;
        } else {
            sequence.logged -= 1;
        }
        sequence.state = state;
        Ok(value)
    }

    /// Sets the state.
    pub fn set(&self, inner: &Inner, oid: Oid, state: SequenceState) -> Result<()> {
        let mut all = self.0.lock();
        append(inner, oid, state)?;
        all.insert(oid, Sequence { state, logged: 0 });
        Ok(())
    }

    /// The state.
    pub fn get(&self, desc: &SequenceDesc) -> SequenceState {
        self.0.lock().get(&desc.oid).map_or_else(|| Sequences::start(desc).state, |s| s.state)
    }
}

/// Logs a state. It is durable with the first commit after it: a value that no durable commit uses may come again.
fn append(inner: &Inner, oid: Oid, state: SequenceState) -> Result<()> {
    let payload = encode(oid, state);
    match inner.log.reserve(payload.len(), || Box::new(|| {})) {
        Reserve::Ready(room) => {
            // Outside of any transaction, so it takes no timestamp of its own.
            let stamp = |_| (inner.last_timestamp(), ());
            inner.log.append(room, RecordKind::Sequence, TxnId(0), &payload, stamp);
            Ok(())
        }
        Reserve::Later | Reserve::Full => Err(crate::commit::disk_full()),
    }
}
