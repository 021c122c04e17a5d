//! A session: runs one transaction after the other, a step at a time, and compares all that it sees with the model.

use std::collections::{BTreeMap, BTreeSet};

use base::{Lsn, Oid, RowId, SqlState};
use engine::Shard;
use engine_api::*;
use env::sim::SimRandom;
use testkit::history::{self, Fate, registers};

use crate::model::{Effects, Entry, Key, Model, Recorded, Shapes, What, Writes};
use crate::program::{Act, By, End, Mix, Program};
use crate::schema::{self, BALANCE, BANK, LISTS, Lists, REGISTERS, Row, SEQUENCE};
use crate::trace::Trace;

/// What sessions share.
pub struct Common<'a> {
    /// The shard.
    pub shard: &'a Shard,
    /// What it must be.
    pub model: &'a mut Model,
    /// Choices.
    pub random: &'a mut SimRandom,
    /// The trace.
    pub trace: &'a mut Trace,
    /// What is beside rows.
    pub notes: &'a mut Notes,
    /// What programs are about.
    pub mix: &'a Mix,
}

/// What a run remembers beside the rows.
#[derive(Debug, Default)]
pub struct Notes {
    /// Steps made.
    pub step: u64,
    /// The newest number of a version.
    pub number: i64,
    /// The newest value of the sequence in this life, and the newest whose reply was sent.
    pub last_value: i64,
    /// See above.
    pub shown_value: i64,
    /// Transactions whose history is judged.
    pub history: Vec<registers::Transaction>,
    /// The same of lists.
    pub appends: Vec<history::Transaction>,
    /// What the versions of lists stand for.
    pub lists: Lists,
    /// Nothing new begins.
    pub is_draining: bool,
    /// The disk was full, or failed, in this life.
    pub may_be_full: bool,
    /// Commits whose reply was sent.
    pub commits: u64,
    /// Transactions that ended with an error, by its code.
    pub errors: BTreeMap<String, u64>,
}

impl Notes {
    /// How a recorded transaction ended, and when.
    pub fn recorded(&mut self, which: Recorded) -> (&mut Fate, &mut u64) {
        match which {
            Recorded::Register(number) => {
                let transaction = &mut self.history[number];
                (&mut transaction.fate, &mut transaction.ended)
            }
            Recorded::List(number) => {
                let transaction = &mut self.appends[number];
                (&mut transaction.fate, &mut transaction.ended)
            }
        }
    }
}

/// Why a step did not end well.
enum Stop {
    /// An error of the engine.
    Error(base::Error),
    /// Something is not as it must be.
    Wrong(String),
}

impl From<base::Error> for Stop {
    fn from(error: base::Error) -> Stop {
        Stop::Error(error)
    }
}

impl From<String> for Stop {
    fn from(wrong: String) -> Stop {
        Stop::Wrong(wrong)
    }
}

/// How far a command is.
enum Phase {
    /// It has not begun.
    Begin,
    /// Its table is locked.
    Locked,
    /// Rows are read.
    Scan { scan: Box<dyn Scan>, by: By, found: BTreeMap<i32, Row>, last: Option<(i32, i32)> },
    /// A row waits for its lock.
    Row { table: TableRef, row: RowId, seen: Row },
    /// A row is locked and is to be written.
    Write { table: TableRef, row: RowId, newest: Row, next: Row },
    /// A definition is being made.
    Define { objects: Vec<CatalogObject>, of: Oid, shape: schema::Shape },
}

enum Went {
    Done,
    On,
    Wait(Wait),
}

enum ClientState {
    Idle,
    Running,
    Ending,
    /// Committed; a part of the work is left.
    Finishing {
        gate: Lsn,
        entry: Option<usize>,
    },
    /// The reply waits.
    Replying {
        gate: Lsn,
        entry: Option<usize>,
        is_commit: bool,
    },
    /// Ends what another has prepared.
    Deciding {
        name: String,
        commits: bool,
    },
}

/// See [`Session`].
type Inserted = BTreeMap<Key, Option<Option<Row>>>;

/// A session.
pub struct Session {
    number: usize,
    state: ClientState,
    txn: Option<Box<dyn Txn>>,
    program: Option<Program>,
    phase: Phase,
    waiting: Option<Wait>,
    /// Length of the model when the transaction, and the command, took their views.
    view: Option<usize>,
    command_view: usize,
    own: Writes,
    shapes: Shapes,
    emptied: Vec<Oid>,
    /// Rows that it has inserted, with what it had made of their keys before.
    inserted: Inserted,
    savepoints: Vec<(Savepoint, Writes, (usize, usize, Inserted))>,
    /// Records that what was seen depends on.
    noted: BTreeSet<usize>,
    /// What a SERIALIZABLE transaction has read, and when.
    reads: Vec<(Oid, By, usize)>,
    ops: Vec<registers::Op>,
    list_ops: Vec<history::Op>,
    recorded: Option<Recorded>,
    started: u64,
    values: Vec<i64>,
}

impl Session {
    /// An idle one.
    pub fn new(number: usize) -> Session {
        Session {
            number,
            state: ClientState::Idle,
            txn: None,
            program: None,
            phase: Phase::Begin,
            waiting: None,
            view: None,
            command_view: 0,
            own: Writes::new(),
            shapes: Shapes::new(),
            emptied: Vec::new(),
            inserted: Inserted::new(),
            savepoints: Vec::new(),
            noted: BTreeSet::new(),
            reads: Vec::new(),
            ops: Vec::new(),
            list_ops: Vec::new(),
            recorded: None,
            started: 0,
            values: Vec::new(),
        }
    }

    /// Whether it has nothing under way.
    pub fn is_idle(&self) -> bool {
        matches!(self.state, ClientState::Idle)
    }

    /// Steps that it makes when its turn comes.
    pub fn steps_at_once(&self) -> usize {
        let acts = self.program.as_ref().map_or(0, |program| program.acts.len());
        if acts > 20 && matches!(self.state, ClientState::Running) { 24 } else { 1 }
    }

    /// What it is at, for who asks why nothing goes on.
    pub fn describe(&self) -> String {
        let state = match &self.state {
            ClientState::Idle => "idle".to_string(),
            ClientState::Running => format!("running {:?}", self.program.as_ref().and_then(|p| p.acts.front())),
            ClientState::Ending => "ending".to_string(),
            ClientState::Finishing { .. } => "finishing".to_string(),
            ClientState::Replying { gate, .. } => format!("replying at {gate}"),
            ClientState::Deciding { name, .. } => format!("deciding {name}"),
        };
        format!("session {}: {state}, {}", self.number, if self.waiting.is_some() { "waits" } else { "goes on" })
    }

    /// Makes a step.
    ///
    /// # Errors
    /// What is not as it must be.
    pub fn step(&mut self, common: &mut Common<'_>) -> Result<(), String> {
        if let Some(wait) = &self.waiting
            && !wait.is_over()
        {
            // Timeouts and cancelled statements end some waits.
            if common.random.below(400) == 0 && matches!(self.state, ClientState::Running) {
                self.txn_mut().cancel_wait();
                common.trace.say(format_args!("s{} gives up its wait", self.number));
                self.waiting = None;
                self.roll_back(common);
            }
            return Ok(());
        }
        self.waiting = None;
        match std::mem::replace(&mut self.state, ClientState::Idle) {
            ClientState::Idle => self.begin(common),
            ClientState::Running => {
                self.state = ClientState::Running;
                self.run(common)
            }
            ClientState::Ending => {
                self.state = ClientState::Ending;
                self.end(common)
            }
            ClientState::Finishing { gate, entry } => {
                if self.txn_mut().finish_some() {
                    self.txn = None;
                    self.state = ClientState::Replying { gate, entry, is_commit: true };
                } else {
                    self.state = ClientState::Finishing { gate, entry };
                }
                Ok(())
            }
            ClientState::Replying { gate, entry, is_commit } => self.reply(gate, entry, is_commit, common),
            ClientState::Deciding { name, commits } => self.decide(name, commits, common),
        }
    }

    fn txn_mut(&mut self) -> &mut dyn Txn {
        &mut **self.txn.as_mut().expect("a transaction is running")
    }

    fn begin(&mut self, common: &mut Common<'_>) -> Result<(), String> {
        let prepared: Vec<String> = common.model.prepared().into_iter().collect();
        if !prepared.is_empty() && (common.notes.is_draining || common.random.below(6) == 0) {
            let name = prepared[common.random.below(prepared.len() as u64) as usize].clone();
            self.state = ClientState::Deciding { name, commits: common.random.below(3) > 0 };
            return Ok(());
        }
        if common.notes.is_draining {
            return Ok(());
        }
        let made: Vec<Oid> = common.model.tables().into_iter().filter(|oid| oid.0 > SEQUENCE.0).collect();
        // The judge wants rows that are inserted once: those that were are left behind little by little.
        let newest = common.model.keys(REGISTERS).max().unwrap_or(0);
        let program = common.mix.program(common.random, &made, (newest - common.mix.ids / 2).max(0));
        common.trace.say(format_args!(
            "s{} begins {:?} {:?} of {} to {:?}",
            self.number,
            program.isolation,
            program.durability,
            program.acts.len(),
            program.end
        ));
        let options = TxnOptions { isolation: program.isolation, read_only: false, session: self.number as u32 + 1 };
        *self = Session { started: common.notes.step, ..Session::new(self.number) };
        self.txn = Some(common.shard.begin(options));
        self.program = Some(program);
        self.state = ClientState::Running;
        Ok(())
    }

    fn run(&mut self, common: &mut Common<'_>) -> Result<(), String> {
        let program = self.program.as_mut().expect("a transaction is running");
        let Some(act) = program.acts.front().cloned() else {
            self.state = ClientState::Ending;
            return Ok(());
        };
        match self.act(&act, common) {
            Ok(Went::On) => {}
            Ok(Went::Wait(wait)) => self.waiting = Some(wait),
            Ok(Went::Done) => {
                common.trace.say(format_args!("s{} {act:?}", self.number));
                self.act_is_over(common);
            }
            Err(Stop::Wrong(wrong)) => return Err(format!("session {}, {act:?}: {wrong}", self.number)),
            Err(Stop::Error(error)) => self.refused(&act, &error, common)?,
        }
        Ok(())
    }

    fn act_is_over(&mut self, common: &mut Common<'_>) {
        self.phase = Phase::Begin;
        if let Some(program) = &mut self.program {
            program.acts.pop_front();
        }
        if common.random.below(4) == 0 {
            self.txn_mut().end_command();
        }
    }

    /// The engine has refused a command.
    fn refused(&mut self, act: &Act, error: &base::Error, common: &mut Common<'_>) -> Result<(), String> {
        let code = error.code();
        common.trace.say(format_args!("s{} {act:?}: {code}", self.number));
        self.check_error(error, common)?;
        if code == SqlState::UNIQUE_VIOLATION {
            let Act::Insert { of, id, .. } = act else { return Err(format!("{act:?}: {error:?}")) };
            self.check_duplicate((*of, *id), common)?;
        }
        self.phase = Phase::Begin;
        match self.savepoints.last().cloned() {
            Some((savepoint, own, ops)) if common.random.below(2) == 0 => {
                self.txn_mut().rollback_to(savepoint);
                self.own = own;
                self.ops.truncate(ops.0);
                self.list_ops.truncate(ops.1);
                self.inserted = ops.2;
                self.act_is_over(common);
            }
            _ => self.roll_back(common),
        }
        Ok(())
    }

    fn check_error(&self, error: &base::Error, common: &mut Common<'_>) -> Result<(), String> {
        let code = error.code();
        *common.notes.errors.entry(code.to_string()).or_default() += 1;
        let isolation = self.program.as_ref().map_or(Isolation::ReadCommitted, |program| program.isolation);
        let is_expected = match code {
            SqlState::SERIALIZATION_FAILURE => isolation != Isolation::ReadCommitted,
            SqlState::DEADLOCK_DETECTED | SqlState::UNIQUE_VIOLATION => true,
            SqlState::DISK_FULL => common.notes.may_be_full,
            _ => false,
        };
        if is_expected { Ok(()) } else { Err(format!("session {} is refused: {error:?}", self.number)) }
    }

    fn check_duplicate(&mut self, key: Key, common: &Common<'_>) -> Result<(), String> {
        let newest = self.own.get(&key).copied().unwrap_or_else(|| common.model.row(key, common.model.len()));
        if newest.is_none() {
            return Err(format!("{key:?} is said to be a duplicate, and is not there"));
        }
        if !self.own.contains_key(&key) {
            self.noted.extend(common.model.writer(key, common.model.len()));
        }
        Ok(())
    }

    fn roll_back(&mut self, common: &mut Common<'_>) {
        let gate = self.txn_mut().gate();
        while common.random.below(2) == 0 && !self.txn_mut().undo_some(None) {}
        self.txn_mut().rollback();
        self.txn = None;
        self.recorded = None;
        common.trace.say(format_args!("s{} rolls back", self.number));
        self.state = ClientState::Replying { gate, entry: None, is_commit: false };
    }

    /// A row as it was written.
    fn decode(&self, of: Oid, row: BatchRow<'_>, common: &Common<'_>) -> Result<(i32, Row), String> {
        schema::decode_of(of, row, &common.notes.lists)
    }

    /// A row as the command must see it.
    fn expected(&self, model: &Model, key: Key) -> Option<Row> {
        match self.own.get(&key) {
            Some(row) => *row,
            None if self.emptied.contains(&key.0) => None,
            None => model.row(key, self.command_view),
        }
    }

    /// The newest committed state of a row, or its own.
    fn newest(&self, model: &Model, key: Key) -> Option<Row> {
        match self.own.get(&key) {
            Some(row) => *row,
            None if self.emptied.contains(&key.0) => None,
            None => model.row(key, model.len()),
        }
    }

    fn note(&mut self, model: &Model, key: Key, len: usize) {
        if !self.own.contains_key(&key) && !self.emptied.contains(&key.0) {
            self.noted.extend(model.writer(key, len));
        }
    }

    fn is_asked(&self, model: &Model, of: Oid) -> bool {
        model.is_seen(of, self.command_view)
    }

    fn begin_command(&mut self, common: &Common<'_>) {
        let len = common.model.len();
        let is_snapshot = self.txn_mut().isolation() != Isolation::ReadCommitted;
        self.txn_mut().begin_command();
        self.command_view = if is_snapshot { *self.view.get_or_insert(len) } else { len };
    }

    /// The table as the transaction's catalog has it, which must be the model's.
    fn shape(&mut self, of: Oid, common: &Common<'_>) -> Result<Option<schema::Shape>, Stop> {
        let found = schema::shape(&self.txn_mut().catalog(), of);
        let expected = match self.shapes.get(&of) {
            Some(own) => own.clone(),
            None => common.model.shape(of, common.model.len()),
        };
        if found != expected {
            return Err(format!("table {of} is {found:?} and must be {expected:?}").into());
        }
        Ok(found)
    }

    fn act(&mut self, act: &Act, common: &mut Common<'_>) -> Result<Went, Stop> {
        if let Phase::Scan { .. } = self.phase {
            return self.scan(act, common);
        }
        match act {
            Act::Read { of, id } => self.on_table(*of, TableLockMode::AccessShare, common, |session, shape, common| {
                session.find(*of, *id, &shape, common)?;
                Ok(Went::Done)
            }),
            Act::Scan { of, by } => self.on_table(*of, TableLockMode::AccessShare, common, |session, shape, _| {
                session.open_scan(*of, *by, &shape)
            }),
            Act::Insert { of, id, grp } => {
                self.on_table(*of, TableLockMode::RowExclusive, common, |session, shape, common| {
                    session.insert((*of, *id), *grp, &shape, common)
                })
            }
            Act::Update { of, id, grp } => {
                let grp = *grp;
                self.change((*of, *id), RowLockMode::NoKeyUpdate, common, move |row, number| {
                    Some(Row { grp: grp.unwrap_or(row.grp), val: number })
                })
            }
            Act::Add { id, amount } => {
                let amount = *amount;
                self.change((BANK, *id), RowLockMode::NoKeyUpdate, common, move |row, _| {
                    Some(Row { val: row.val + amount, ..row })
                })
            }
            Act::Delete { of, id } => self.change((*of, *id), RowLockMode::Update, common, |_, _| None),
            Act::Lock { of, id, mode } => self.change((*of, *id), *mode, common, |row, _| Some(row)),
            Act::Savepoint => {
                let savepoint = self.txn_mut().savepoint();
                self.savepoints.push((
                    savepoint,
                    self.own.clone(),
                    (self.ops.len(), self.list_ops.len(), self.inserted.clone()),
                ));
                Ok(Went::Done)
            }
            Act::RollbackTo => {
                if let Some((savepoint, own, ops)) = self.savepoints.last().cloned() {
                    self.txn_mut().rollback_to(savepoint);
                    self.own = own;
                    self.ops.truncate(ops.0);
                    self.list_ops.truncate(ops.1);
                    self.inserted = ops.2;
                }
                Ok(Went::Done)
            }
            Act::Release => {
                if let Some((savepoint, ..)) = self.savepoints.pop() {
                    self.txn_mut().release(savepoint);
                }
                Ok(Went::Done)
            }
            Act::Next => self.next_value(common),
            _ => self.define(act, common),
        }
    }

    /// Locks a table, takes the command's view, and goes on if the table is there.
    fn on_table<'a>(
        &mut self,
        of: Oid,
        mode: TableLockMode,
        common: &mut Common<'a>,
        on: impl FnOnce(&mut Session, schema::Shape, &mut Common<'a>) -> Result<Went, Stop>,
    ) -> Result<Went, Stop> {
        if let Phase::Begin = self.phase {
            if let Step::Wait(wait) = self.txn_mut().lock_table(of, mode, WaitPolicy::Block)? {
                return Ok(Went::Wait(wait));
            }
            self.begin_command(common);
            self.phase = Phase::Locked;
            if common.random.below(3) == 0 {
                return Ok(Went::On);
            }
        }
        match self.shape(of, common)? {
            Some(shape) => on(self, shape, common),
            None => Ok(Went::Done),
        }
    }

    fn find(
        &mut self,
        of: Oid,
        id: i32,
        shape: &schema::Shape,
        common: &Common<'_>,
    ) -> Result<Option<(TableRef, RowId, Row)>, Stop> {
        let table = self.txn_mut().open_table(of)?;
        let mut batch = RowBatch::new();
        self.txn_mut().get(&table, shape.by_id, &schema::key(id), &mut batch)?;
        if batch.len() > 1 {
            return Err(format!("{} rows with key {id}", batch.len()).into());
        }
        let found = match batch.iter().next() {
            None => None,
            Some(found) => Some((found.row, self.decode(of, found, common)?.1)),
        };
        if of == LISTS
            && let Some((_, row)) = found
        {
            let list = common.notes.lists.get(&row.val).cloned().unwrap_or_default();
            self.list_ops.push(history::Op::Read(id as u64, list));
        }
        if self.is_asked(common.model, of) {
            let expected = self.expected(common.model, (of, id));
            if found.map(|(_, row)| row) != expected {
                return Err(format!("it sees {found:?} and must see {expected:?}").into());
            }
            self.note(common.model, (of, id), self.command_view);
        }
        self.reads.push((of, By::Ids(id, id), self.command_view));
        if of == REGISTERS {
            self.ops.push(registers::Op::Read { row: id as u64, seen: found.map(|(_, row)| row.val as u64) });
        }
        Ok(found.map(|(at, row)| (table, at, row)))
    }

    fn open_scan(&mut self, of: Oid, by: By, shape: &schema::Shape) -> Result<Went, Stop> {
        let table = self.txn_mut().open_table(of)?;
        let (index, range) = match by {
            By::Rows => (None, KeyRange::all()),
            By::Ids(first, last) => {
                let (lower, upper) = (schema::key(first), schema::key(last));
                (
                    Some(shape.by_id),
                    KeyRange { lower: std::ops::Bound::Included(lower), upper: std::ops::Bound::Included(upper) },
                )
            }
            By::Group(grp) => match shape.by_grp {
                Some(index) => (Some(index), KeyRange::prefix(&schema::key(grp))),
                None => (None, KeyRange::all()),
            },
        };
        let spec = ScanSpec { table, index, range, reverse: false, content: RowContent::Tuple };
        let scan = self.txn_mut().open_scan(spec)?;
        self.phase = Phase::Scan { scan, by, found: BTreeMap::new(), last: None };
        Ok(Went::On)
    }

    fn scan(&mut self, act: &Act, common: &mut Common<'_>) -> Result<Went, Stop> {
        let Act::Scan { of, .. } = act else { return Err("a scan of nothing".to_string().into()) };
        let Phase::Scan { scan, by, found, last } = &mut self.phase else { return Ok(Went::Done) };
        let mut batch = RowBatch::new();
        let txn = &mut **self.txn.as_mut().expect("a transaction is running");
        let has_more = scan.next(txn, 1 + common.random.below(24) as usize, &mut batch)?;
        for row in batch.iter() {
            let (id, row) = schema::decode_of(*of, row, &common.notes.lists)?;
            if !by.finds(id, row.grp) {
                continue;
            }
            let place = if let By::Ids(..) = by { (id, 0) } else { (0, 0) };
            if last.replace(place).is_some_and(|last| last > place) {
                return Err(format!("key {id} is out of order").into());
            }
            if found.insert(id, row).is_some() {
                return Err(format!("row {id} is found twice").into());
            }
        }
        if has_more {
            return Ok(Went::On);
        }
        let (by, found) = (*by, std::mem::take(found));
        self.check_found(*of, by, &found, common)?;
        Ok(Went::Done)
    }

    fn check_found(
        &mut self,
        of: Oid,
        by: By,
        found: &BTreeMap<i32, Row>,
        common: &mut Common<'_>,
    ) -> Result<(), Stop> {
        if of == BANK {
            let sum: i64 = found.values().map(|row| row.val).sum();
            let is_whole = by == By::Rows && !self.own.keys().any(|key| key.0 == BANK);
            if is_whole && sum != i64::from(common.mix.accounts) * BALANCE {
                return Err(format!("the bank has {sum}").into());
            }
        }
        self.reads.push((of, by, self.command_view));
        if of == REGISTERS {
            let seen = found.iter().map(|(id, row)| (*id as u64, row.val as u64)).collect();
            self.ops.push(match by {
                By::Rows => registers::Op::Range { first: 0, last: u64::MAX, seen },
                By::Ids(first, last) => registers::Op::Range { first: first as u64, last: last as u64, seen },
                By::Group(group) => registers::Op::Members { group: group as u64, seen },
            });
        }
        if !self.is_asked(common.model, of) {
            return Ok(());
        }
        let base = if self.emptied.contains(&of) { BTreeMap::new() } else { common.model.table(of, self.command_view) };
        let mut expected = base;
        for ((_, id), row) in self.own.range((of, i32::MIN)..=(of, i32::MAX)) {
            match row {
                Some(row) => _ = expected.insert(*id, *row),
                None => _ = expected.remove(id),
            }
        }
        expected.retain(|id, row| by.finds(*id, row.grp));
        for id in found.keys() {
            self.note(common.model, (of, *id), self.command_view);
        }
        if *found != expected {
            return Err(difference(found, &expected).into());
        }
        Ok(())
    }

    fn insert(&mut self, key: Key, grp: i32, shape: &schema::Shape, common: &mut Common<'_>) -> Result<Went, Stop> {
        let was_there = |session: &Session, common: &Common<'_>| {
            key.0 == REGISTERS && (session.own.contains_key(&key) || common.model.was_there(key))
        };
        if was_there(self, common) && self.newest(common.model, key).is_none() {
            self.txn_mut().cancel_wait();
            return Ok(Went::Done);
        }
        let table = self.txn_mut().open_table(key.0)?;
        let row = Row { grp, val: common.notes.number + 1 };
        let tuple = schema::encode(key.1, row, shape.columns);
        match self.txn_mut().insert(&table, &tuple, ConflictArbiter::None)? {
            Step::Wait(wait) => return Ok(Went::Wait(wait)),
            Step::Ready(InsertOutcome::Conflict(_)) => {
                return Err("a conflict that nobody asked for".to_string().into());
            }
            Step::Ready(InsertOutcome::Inserted(_)) => {}
        }
        common.notes.number += 1;
        if let Some(there) = self.newest(common.model, key) {
            return Err(format!("{key:?} is inserted beside {there:?}").into());
        }
        self.note(common.model, key, common.model.len());
        let is_seen = self.expected(common.model, key).is_some();
        if (is_seen || was_there(self, common))
            && let Some(program) = &mut self.program
        {
            // It went since the view was taken, and the transaction sees two rows of the key from now on, as on PostgreSQL.
            program.end = End::Rollback;
            program.acts.truncate(1);
        }
        if key.0 == REGISTERS {
            self.ops.push(registers::Op::Insert { row: key.1 as u64, version: row.val as u64, group: grp as u64 });
        }
        let before = self.own.insert(key, Some(row));
        self.inserted.insert(key, before);
        Ok(Went::Done)
    }

    /// Finds, locks and writes a row; `next` answers what it becomes, `None`: it goes.
    fn change(
        &mut self,
        key: Key,
        mode: RowLockMode,
        common: &mut Common<'_>,
        next: impl Fn(Row, i64) -> Option<Row>,
    ) -> Result<Went, Stop> {
        let reads_only = matches!(mode, RowLockMode::KeyShare | RowLockMode::Share);
        let table_mode = if reads_only { TableLockMode::RowShare } else { TableLockMode::RowExclusive };
        if let Phase::Begin | Phase::Locked = self.phase {
            let went = self.on_table(key.0, table_mode, common, |session, shape, common| {
                Ok(match session.find(key.0, key.1, &shape, common)? {
                    None => Went::Done,
                    Some((table, row, seen)) => {
                        session.phase = Phase::Row { table, row, seen };
                        Went::On
                    }
                })
            })?;
            if !matches!((&went, &self.phase), (Went::On, Phase::Row { .. })) {
                return Ok(went);
            }
        }
        if let Phase::Row { table, row, seen } = &self.phase {
            let (table, row, seen) = (table.clone(), *row, *seen);
            let mut moved = RowBatch::new();
            let outcome = match self.txn_mut().lock_row(&table, row, mode, WaitPolicy::Block, &mut moved)? {
                Step::Wait(wait) => return Ok(Went::Wait(wait)),
                Step::Ready(outcome) => outcome,
            };
            let newest = match outcome {
                RowLockOutcome::Locked | RowLockOutcome::Own => seen,
                RowLockOutcome::Moved => self.decode(key.0, moved.row(0), common)?.1,
                RowLockOutcome::OwnUnlocked | RowLockOutcome::Gone => {
                    // Another row may have its key by now.
                    self.note(common.model, key, common.model.len());
                    return Ok(Went::Done);
                }
                RowLockOutcome::Skipped => return Err("a row is skipped".to_string().into()),
            };
            // Who locks the key only does not care for the rest.
            let expected = self.newest(common.model, key);
            if expected != Some(newest) && mode != RowLockMode::KeyShare {
                return Err(format!("{key:?} is locked as {newest:?} and must be {expected:?}").into());
            }
            self.note(common.model, key, common.model.len());
            let shown = next(newest, common.notes.number + 1).unwrap_or(newest);
            self.phase = Phase::Write { table, row, newest, next: shown };
            if common.random.below(3) == 0 {
                return Ok(Went::On);
            }
        }
        let Phase::Write { table, row, newest, next: shown } = &self.phase else { return Ok(Went::Done) };
        let (table, row, newest, shown) = (table.clone(), *row, *newest, *shown);
        let becomes = next(newest, shown.val);
        if becomes == Some(newest) {
            return Ok(Went::Done);
        }
        self.write(key, &table, row, newest, becomes, common)
    }

    fn write(
        &mut self,
        key: Key,
        table: &TableRef,
        row: RowId,
        newest: Row,
        becomes: Option<Row>,
        common: &mut Common<'_>,
    ) -> Result<Went, Stop> {
        let over = newest.val as u64;
        match becomes {
            None => {
                self.txn_mut().delete(table, row)?;
                if key.0 == REGISTERS {
                    self.ops.push(registers::Op::Delete { row: key.1 as u64, over });
                }
            }
            Some(becomes) => {
                // What was chosen before others had their turns may be another's number by now.
                let val = if key.0 == BANK { becomes.val } else { common.notes.number + 1 };
                let becomes = Row { val, ..becomes };
                let Some(shape) = self.shape(key.0, common)? else { return Ok(Went::Done) };
                let mut list = common.notes.lists.get(&newest.val).cloned().unwrap_or_default();
                list.push(val as u64);
                let tuple = match key.0 {
                    LISTS => schema::encode_list(key.1, becomes, &list),
                    _ => schema::encode(key.1, becomes, shape.columns),
                };
                if let Step::Wait(wait) = self.txn_mut().update(table, row, &tuple)? {
                    return Ok(Went::Wait(wait));
                }
                common.notes.number += 1;
                if key.0 == LISTS {
                    common.notes.lists.insert(val, list);
                    self.list_ops.push(history::Op::Append(key.1 as u64, val as u64));
                }
                if key.0 == REGISTERS {
                    let (version, group) = (becomes.val as u64, becomes.grp as u64);
                    self.ops.push(registers::Op::Update { row: key.1 as u64, over, version, group });
                }
                self.own.insert(key, Some(becomes));
                return Ok(Went::Done);
            }
        }
        // A row of its own goes without a trace: another may have the key by now.
        match self.inserted.remove(&key) {
            // The judge wants registers that are inserted once.
            _ if key.0 == REGISTERS => _ = self.own.insert(key, None),
            Some(None) => _ = self.own.remove(&key),
            Some(Some(before)) => _ = self.own.insert(key, before),
            None => _ = self.own.insert(key, None),
        }
        Ok(Went::Done)
    }

    fn next_value(&mut self, common: &mut Common<'_>) -> Result<Went, Stop> {
        let value = match common.shard.sequence_draw(&crate::schema::sequence())? {
            Step::Ready((value, _)) => value,
            Step::Wait(wait) => return Ok(Went::Wait(wait)),
        };
        if value <= common.notes.last_value || value <= common.notes.shown_value {
            let Notes { last_value, shown_value, .. } = &common.notes;
            return Err(format!("value {value} after {last_value}, and {shown_value} was shown").into());
        }
        common.notes.last_value = value;
        self.values.push(value);
        let gate = common.shard.sequence_gate(&crate::schema::sequence());
        self.txn_mut().raise_gate(gate);
        Ok(Went::Done)
    }

    fn define(&mut self, act: &Act, common: &mut Common<'_>) -> Result<Went, Stop> {
        if let Phase::Define { .. } = self.phase {
            return self.put(common);
        }
        match act {
            Act::CreateTable { with_group } => {
                self.begin_command(common);
                let mut fresh = || common.shard.allocate_oid();
                let (of, by_id, by_grp) = (fresh(), fresh(), with_group.then(&mut fresh));
                if schema::shape(&self.txn_mut().catalog(), of).is_some() {
                    return Err(format!("{of} is handed out twice").into());
                }
                let shape = schema::Shape { columns: 4, by_id, by_grp, storage: 1 };
                let mut objects = vec![
                    CatalogObject::Table(schema::table(of, 4, 1)),
                    CatalogObject::Index(schema::index(by_id, of, true)),
                ];
                objects.extend(by_grp.map(|oid| CatalogObject::Index(schema::index(oid, of, false))));
                self.phase = Phase::Define { objects, of, shape };
                Ok(Went::On)
            }
            Act::CreateIndex { of } => {
                self.on_table(*of, TableLockMode::ShareRowExclusive, common, |session, mut shape, common| {
                    if shape.by_grp.is_none() {
                        let oid = common.shard.allocate_oid();
                        shape.by_grp = Some(oid);
                        let objects = vec![CatalogObject::Index(schema::index(oid, *of, false))];
                        session.phase = Phase::Define { objects, of: *of, shape };
                        return Ok(Went::On);
                    }
                    Ok(Went::Done)
                })
            }
            Act::AddColumn { of } => {
                self.on_table(*of, TableLockMode::AccessExclusive, common, |session, mut shape, _| {
                    if shape.columns == 5 {
                        return Ok(Went::Done);
                    }
                    shape.columns = 5;
                    let objects = vec![CatalogObject::Table(schema::table(*of, 5, shape.storage))];
                    session.phase = Phase::Define { objects, of: *of, shape };
                    Ok(Went::On)
                })
            }
            Act::DropIndex { of } => {
                self.on_table(*of, TableLockMode::AccessExclusive, common, |session, mut shape, _| {
                    if let Some(index) = shape.by_grp.take() {
                        session.txn_mut().drop_object(index)?;
                        session.shapes.insert(*of, Some(shape));
                    }
                    Ok(Went::Done)
                })
            }
            Act::DropTable { of } => self.on_table(*of, TableLockMode::AccessExclusive, common, |session, shape, _| {
                for oid in shape.by_grp.into_iter().chain([shape.by_id, *of]) {
                    session.txn_mut().drop_object(oid)?;
                }
                session.own.retain(|key, _| key.0 != *of);
                session.shapes.insert(*of, None);
                Ok(Went::Done)
            }),
            Act::Empty { of } => self.on_table(*of, TableLockMode::AccessExclusive, common, |session, mut shape, _| {
                session.txn_mut().truncate(*of)?;
                session.own.retain(|key, _| key.0 != *of);
                session.emptied.push(*of);
                shape.storage += 1;
                session.shapes.insert(*of, Some(shape));
                Ok(Went::Done)
            }),
            other => Err(format!("{other:?} is no definition").into()),
        }
    }

    fn put(&mut self, common: &mut Common<'_>) -> Result<Went, Stop> {
        let Phase::Define { objects, of, shape } = &mut self.phase else { return Ok(Went::Done) };
        let txn = &mut **self.txn.as_mut().expect("a transaction is running");
        let Some(object) = objects.first().cloned() else {
            common.trace.say(format_args!("s{} defines {of} as {shape:?}", self.number));
            self.shapes.insert(*of, Some(shape.clone()));
            return Ok(Went::Done);
        };
        if let Step::Wait(wait) = txn.put_object(object)? {
            return Ok(Went::Wait(wait));
        }
        objects.remove(0);
        Ok(Went::On)
    }

    fn end(&mut self, common: &mut Common<'_>) -> Result<(), String> {
        let (end, durability) =
            self.program.as_ref().map_or((End::Rollback, Durability::On), |p| (p.end, p.durability));
        let answer = match end {
            End::Rollback => {
                self.roll_back(common);
                return Ok(());
            }
            End::Commit => self.txn_mut().commit(durability),
            End::Prepare => {
                let name = format!("p{}", self.started * 16 + self.number as u64);
                self.txn_mut().prepare(&prepared(&name))
            }
        };
        match answer {
            Ok(Step::Wait(wait)) => self.waiting = Some(wait),
            Ok(Step::Ready(outcome)) => self.committed(end, durability, outcome, common)?,
            Err(error) => {
                common.trace.say(format_args!("s{} {end:?}: {}", self.number, error.code()));
                self.check_error(&error, common)?;
                self.roll_back(common);
            }
        }
        Ok(())
    }

    fn committed(
        &mut self,
        end: End,
        durability: Durability,
        outcome: CommitOutcome,
        common: &mut Common<'_>,
    ) -> Result<(), String> {
        let is_serializable = self.txn_mut().isolation() == Isolation::Serializable;
        let writes = std::mem::take(&mut self.own);
        let has_written = !writes.is_empty() || !self.shapes.is_empty();
        if has_written && outcome.position.is_none() {
            return Err(format!("session {} has written {writes:?} and nothing is logged", self.number));
        }
        if is_serializable && outcome.position.is_some() {
            self.check_serializable(&writes, common.model)?;
        }
        let is_judged = self.program.as_ref().is_some_and(|program| program.is_judged);
        if is_judged && end == End::Commit {
            let fate = if outcome.position.is_some() { Fate::Committed } else { Fate::Unknown };
            let (started, ended) = (self.started, u64::MAX);
            let (ops, list_ops) = (std::mem::take(&mut self.ops), std::mem::take(&mut self.list_ops));
            self.recorded = Some(if list_ops.is_empty() {
                common.notes.history.push(registers::Transaction { ops, fate, started, ended });
                Recorded::Register(common.notes.history.len() - 1)
            } else {
                common.notes.appends.push(history::Transaction { ops: list_ops, fate, started, ended });
                Recorded::List(common.notes.appends.len() - 1)
            });
        }
        let entry = outcome.position.map(|position| {
            let effects = Effects {
                writes,
                shapes: std::mem::take(&mut self.shapes),
                emptied: std::mem::take(&mut self.emptied),
            };
            let what = match end {
                End::Prepare => What::Prepare(format!("p{}", self.started * 16 + self.number as u64), effects),
                _ => What::Commit(effects),
            };
            common.model.append(Entry {
                position: position.0,
                what,
                is_sync: durability == Durability::On || end == End::Prepare,
                serializable: is_serializable.then(|| self.reads.clone()),
                is_acknowledged: false,
                recorded: self.recorded,
            })
        });
        common.trace.say(format_args!("s{} {end:?}: {outcome:?}", self.number));
        self.state = ClientState::Finishing { gate: outcome.gate, entry };
        Ok(())
    }

    /// Of two SERIALIZABLE writers, one has not read what the other wrote beside it. Longer rings are for the judge of histories. A row that
    /// was not found when it was looked for, and has come and gone since, would not be found at the commit either, where the reader stands.
    fn check_serializable(&self, own: &Writes, model: &Model) -> Result<(), String> {
        let is_found = |key: Key, by: &By, at: usize| model.row(key, at).is_some_and(|row| by.finds(key.1, row.grp));
        let is_gone_again =
            |key: Key, by: &By, view: usize| !is_found(key, by, view) && !is_found(key, by, model.len());
        let touches = |writes: &Writes, number: usize, (of, by, view): &(Oid, By, usize)| {
            let keys = writes.range((*of, i32::MIN)..=(*of, i32::MAX));
            let mut keys = keys.filter(|(key, _)| number == model.len() || !is_gone_again(**key, by, *view));
            keys.find_map(|(key, after)| {
                let before = model.row(*key, number);
                let mut states = before.iter().chain(after);
                states.any(|row| by.finds(key.1, row.grp)).then_some(*key)
            })
        };
        let Some(view) = self.reads.iter().map(|read| read.2).min() else { return Ok(()) };
        for (number, entry) in model.entries().iter().enumerate().skip(view) {
            let (What::Commit(Effects { writes, .. }), Some(reads)) = (&entry.what, &entry.serializable) else {
                continue;
            };
            let mut seen = self.reads.iter().filter(|read| read.2 <= number);
            let Some(there) = seen.find_map(|read| touches(writes, number, read)) else { continue };
            if let Some(back) = reads.iter().find_map(|read| touches(own, model.len(), read)) {
                let (one, other) = (self.number, entry.position);
                return Err(format!(
                    "session {one} and {other} have each read what the other wrote: {there:?}, {back:?}"
                ));
            }
        }
        Ok(())
    }

    fn reply(
        &mut self,
        gate: Lsn,
        entry: Option<usize>,
        is_commit: bool,
        common: &mut Common<'_>,
    ) -> Result<(), String> {
        let durable = common.shard.durable().current();
        if durable < gate {
            self.state = ClientState::Replying { gate, entry, is_commit };
            return Ok(());
        }
        for number in &self.noted {
            let seen = &common.model.entries()[*number];
            if seen.is_sync && seen.position > durable.0 {
                let position = seen.position;
                return Err(format!(
                    "session {} replies at {durable} and has seen what ends at {position}: {:?}; it has read {:?}",
                    self.number, seen.what, self.reads
                ));
            }
        }
        if let Some(value) = self.values.iter().max() {
            common.notes.shown_value = common.notes.shown_value.max(*value);
        }
        if let Some(number) = entry {
            common.model.acknowledge(number);
        }
        if let (true, Some(recorded)) = (is_commit, self.recorded) {
            let step = common.notes.step;
            let (fate, ended) = common.notes.recorded(recorded);
            (*fate, *ended) = (Fate::Committed, step);
        }
        common.notes.commits += u64::from(is_commit);
        *self = Session::new(self.number);
        Ok(())
    }

    fn decide(&mut self, name: String, commits: bool, common: &mut Common<'_>) -> Result<(), String> {
        match common.shard.finish_prepared(&name, commits) {
            Ok(Step::Wait(wait)) => {
                self.waiting = Some(wait);
                self.state = ClientState::Deciding { name, commits };
            }
            Ok(Step::Ready((outcome, rest))) => {
                drop(rest);
                common.trace.say(format_args!("s{} ends {name}, commits: {commits}: {outcome:?}", self.number));
                let position = outcome.position.ok_or_else(|| format!("{name} is ended and nothing is logged"))?;
                let entry = common.model.append(Entry {
                    position: position.0,
                    what: What::Decide { name, commits },
                    is_sync: true,
                    serializable: None,
                    is_acknowledged: false,
                    recorded: None,
                });
                self.state = ClientState::Replying { gate: outcome.gate, entry: Some(entry), is_commit: true };
            }
            Err(error) => {
                let is_gone = error.code() == SqlState::UNDEFINED_OBJECT && !common.model.prepared().contains(&name);
                let is_full = error.code() == SqlState::DISK_FULL && common.notes.may_be_full;
                if !is_gone && !is_full {
                    return Err(format!("{name} cannot be ended: {error:?}"));
                }
            }
        }
        Ok(())
    }
}

/// What is prepared under a name.
fn prepared(name: &str) -> PreparedTransaction {
    PreparedTransaction {
        name: name.to_string(),
        owner: "somebody".to_string(),
        database: Oid(5),
        prepared_at: 1,
        txn: 0,
        advisory: Vec::new(),
    }
}

/// Says in what two tables differ.
pub fn difference(found: &BTreeMap<i32, Row>, expected: &BTreeMap<i32, Row>) -> String {
    let ids: BTreeSet<i32> = found.keys().chain(expected.keys()).copied().collect();
    let differ = ids.into_iter().filter(|id| found.get(id) != expected.get(id));
    let lines: Vec<String> = differ
        .take(5)
        .map(|id| format!("row {id} is {:?} and must be {:?}", found.get(&id), expected.get(&id)))
        .collect();
    lines.join("; ")
}
