//! Sequences: values are handed out from memory, the log runs ahead of them.
//!
//! Responsible for: the next value, its record in the log, the position that replies about it wait for.
//! Not responsible for: waiting for space in the log, which is the caller's, who also raises its gate (rule R1).
//! A state is kept under an OID of its own ([`SequenceDesc::state_id`]): that of a restart stands beside the one before until
//! the restart is committed. Values are asked for by a definition, which may be older than the last restart.
//!
//! Invariant: each value handed out lies within the last state logged. After a crash the sequence continues behind the last
//! state that is durable, so a value that was shown does not come again if the reply that showed it waited for its record.

use std::sync::Arc;

use base::{Error, Lsn, Oid, Result, SqlState, TxnId};
use engine_api::{SequenceDesc, SequenceState, Step, Wait, WaitCell};
use parking_lot::Mutex;
use redo::{RecordKind, Reservation, Reserve};
use rustc_hash::FxHashMap;

use crate::shard::Inner;

/// Values that one log record covers, and how many while log space is short: for each record that was taken from those kept
/// aside twice as many as for the one before, so that they last however long the next segment takes.
const AHEAD: i64 = 32;
const AHEAD_SHORT: i64 = 1024;
const DOUBLINGS: usize = 12;

/// Records whose space is kept aside, so that values seldom wait while the next segment is being prepared.
const SPARE_RECORDS: usize = 64;

#[derive(Clone, Copy, Debug)]
struct Sequence {
    /// Whose state it is; invalid for what a start has found.
    of: Oid,
    state: SequenceState,
    /// What its last record says.
    recorded: SequenceState,
    /// Values that may still be handed out before the log must run ahead again.
    logged: i64,
    /// End of the last record.
    gate: Lsn,
}

impl Sequence {
    /// One whose last record says where it is.
    fn recorded(of: Oid, state: SequenceState, gate: Lsn) -> Sequence {
        Sequence { of, state, recorded: state, logged: 0, gate }
    }
}

#[derive(Debug, Default)]
struct SequenceValues {
    sequences: FxHashMap<Oid, Sequence>,
    spare: Vec<Reservation>,
}

/// The sequences of a shard.
#[derive(Debug, Default)]
pub struct Sequences(Mutex<SequenceValues>);

/// Bytes of a sequence record: what the state is kept under, last value, whether it was called.
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
    /// Recovery: a record of the log. Answers whose, `None` if it is malformed.
    pub fn replay(&self, payload: &[u8]) -> Option<Oid> {
        let bytes: &[u8; RECORD] = payload.try_into().ok()?;
        let oid = Oid(u32::from_le_bytes(bytes[..4].try_into().ok()?));
        let state =
            SequenceState { last_value: i64::from_le_bytes(bytes[4..12].try_into().ok()?), is_called: bytes[12] != 0 };
        self.0.lock().sequences.insert(oid, Sequence::recorded(Oid::INVALID, state, Lsn(0)));
        Some(oid)
    }

    /// Recovery: a state that an image has.
    pub fn restore(&self, oid: Oid, state: SequenceState) {
        self.0.lock().sequences.insert(oid, Sequence::recorded(Oid::INVALID, state, Lsn(0)));
    }

    /// Recovery: forgets the states of sequences that nobody has, and learns whose the others are.
    pub fn settle<'s>(&self, known: impl Iterator<Item = &'s SequenceDesc>) {
        let owners: FxHashMap<Oid, Oid> = known.map(|desc| (desc.state_id(), desc.oid)).collect();
        self.0.lock().sequences.retain(|id, sequence| {
            sequence.of = owners.get(id).copied().unwrap_or(Oid::INVALID);
            sequence.of.is_valid()
        });
    }

    /// Calls `look` while no record of a sequence can be appended, and puts down what their last records say: OID, last
    /// value, whether it was handed out.
    pub fn hold<R>(&self, recorded: &mut Vec<(u32, i64, bool)>, look: impl FnOnce() -> R) -> R {
        let all = self.0.lock();
        recorded.extend(all.sequences.iter().map(|(oid, s)| (oid.0, s.recorded.last_value, s.recorded.is_called)));
        recorded.sort_unstable();
        look()
    }

    fn start(desc: &SequenceDesc) -> Sequence {
        Sequence::recorded(desc.oid, SequenceState { last_value: desc.start, is_called: false }, Lsn(0))
    }

    /// The next value.
    pub fn next(&self, inner: &Inner, desc: &SequenceDesc) -> Result<Step<(i64, Lsn)>> {
        let mut guard = self.0.lock();
        let SequenceValues { sequences, spare } = &mut *guard;
        let id = current(sequences, inner, desc);
        let sequence = sequences.entry(id).or_insert_with(|| Sequences::start(desc));
        let value = advance(desc, sequence.state, 1)?;
        let state = SequenceState { last_value: value, is_called: true };
        if sequence.logged == 0 {
            let (room, is_short) = match room(inner, spare)? {
                Step::Ready(found) => found,
                Step::Wait(wait) => return Ok(Step::Wait(wait)),
            };
            let short = AHEAD_SHORT << (SPARE_RECORDS - spare.len().min(SPARE_RECORDS)).min(DOUBLINGS);
            let wanted = if is_short { &[short, AHEAD_SHORT, AHEAD][..] } else { &[AHEAD] };
            // Near the end there are fewer values than the log would run ahead: then it keeps up value by value.
            let (ahead, covered) = wanted
                .iter()
                .filter(|_| !desc.cycle)
                .find_map(|&wanted| Some((advance(desc, state, wanted).ok()?, wanted)))
                .unwrap_or((value, 0));
            sequence.recorded = SequenceState { last_value: ahead, is_called: true };
            sequence.gate = append(inner, room, id, sequence.recorded);
            sequence.logged = covered;
        } else {
            sequence.logged -= 1;
        }
        sequence.state = state;
        let gate = sequence.gate;
        drop(guard);
        Ok(Step::Ready((value, not_durable(inner, gate))))
    }

    /// Sets the state.
    pub fn set(&self, inner: &Inner, desc: &SequenceDesc, state: SequenceState) -> Result<Step<()>> {
        let mut all = self.0.lock();
        let id = current(&all.sequences, inner, desc);
        put(inner, &mut all, id, desc.oid, state)
    }

    /// Sets the state that a restart will bring, before any definition speaks of it.
    pub fn set_ahead(&self, inner: &Inner, desc: &SequenceDesc, state: SequenceState) -> Result<Step<()>> {
        put(inner, &mut self.0.lock(), desc.state_id(), desc.oid, state)
    }

    /// The sequence or its restart was never committed.
    pub fn forget(&self, state_id: Oid) {
        self.0.lock().sequences.remove(&state_id);
    }

    /// Forgets the states of a sequence but for that of the definition in force. REQUIRES that no other transaction has
    /// restarted it: its lock.
    pub fn forget_others(&self, oid: Oid, in_force: Option<&SequenceDesc>) {
        let kept = in_force.map(SequenceDesc::state_id);
        self.0.lock().sequences.retain(|id, sequence| sequence.of != oid || kept == Some(*id));
    }

    /// The state.
    pub fn get(&self, inner: &Inner, desc: &SequenceDesc) -> SequenceState {
        let all = self.0.lock();
        let found = all.sequences.get(&current(&all.sequences, inner, desc));
        found.map_or_else(|| Sequences::start(desc).state, |s| s.state)
    }

    /// The position that covers all values handed out; `Lsn(0)` if it is durable.
    pub fn gate(&self, inner: &Inner, desc: &SequenceDesc) -> Lsn {
        let gate = {
            let all = self.0.lock();
            match all.sequences.get(&desc.state_id()) {
                Some(sequence) => sequence.gate,
                // It was restarted since: that was logged behind all values of the state before.
                None => inner.gates.up_to(inner.catalog_timestamp(), inner.log.durable()),
            }
        };
        not_durable(inner, gate)
    }
}

/// A position that replies still have to wait for; 0 if they need not.
fn not_durable(inner: &Inner, gate: Lsn) -> Lsn {
    if gate > inner.log.durable().current() { gate } else { Lsn(0) }
}

/// What the state of a sequence is kept under: as its definition says, unless a restart was committed since that was read.
fn current(sequences: &FxHashMap<Oid, Sequence>, inner: &Inner, desc: &SequenceDesc) -> Oid {
    let id = desc.state_id();
    if sequences.contains_key(&id) {
        return id;
    }
    inner.catalog.get().sequence(desc.oid).map_or(id, SequenceDesc::state_id)
}

/// Logs and keeps a state that was set.
fn put(inner: &Inner, all: &mut SequenceValues, id: Oid, of: Oid, state: SequenceState) -> Result<Step<()>> {
    let (room, _) = match room(inner, &mut all.spare)? {
        Step::Ready(found) => found,
        Step::Wait(wait) => return Ok(Step::Wait(wait)),
    };
    let gate = append(inner, room, id, state);
    all.sequences.insert(id, Sequence::recorded(of, state, gate));
    Ok(Step::Ready(()))
}

/// Space for one record, and whether the log is short of it. What is kept aside is filled up when there is plenty.
fn room(inner: &Inner, spare: &mut Vec<Reservation>) -> Result<Step<(Reservation, bool)>> {
    let cell = WaitCell::new();
    let ask = || {
        let waking = Arc::clone(&cell);
        inner.log.reserve(RECORD, || Box::new(move || waking.wake()))
    };
    match ask() {
        Reserve::Ready(room) => {
            while spare.len() < SPARE_RECORDS {
                let Reserve::Ready(more) = ask() else { break };
                spare.push(more);
            }
            Ok(Step::Ready((room, false)))
        }
        Reserve::Later => match spare.pop() {
            Some(room) => Ok(Step::Ready((room, true))),
            None => Ok(Step::Wait(Wait::for_space(&cell))),
        },
        Reserve::Full => Err(crate::commit::disk_full()),
    }
}

/// Logs a state and returns the end of its record.
fn append(inner: &Inner, room: Reservation, oid: Oid, state: SequenceState) -> Lsn {
    // Outside of any transaction, so it takes no timestamp of its own.
    let stamp = |_| (inner.last_timestamp(), ());
    inner.log.append(room, RecordKind::Sequence, TxnId(0), &encode(oid, state), stamp).0
}
