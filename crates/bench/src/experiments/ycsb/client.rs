//! A client of YCSB: one operation at a time, each a transaction of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::keys::{Distribution, key};
use super::{FIELD_BYTES, FIELDS, LONGEST_SCAN, Mix, TABLE};
use crate::client::Param::{Int, Text};
use crate::client::{AsyncConnection, Failure, Param};
use crate::drive::{Done, Worker};
use crate::rng::Rng;

const READ: usize = 0;
const SCAN: usize = 1;
const INSERT: usize = 2;
/// That of field 0; the others follow.
const UPDATE: usize = 3;

/// Names of the operations.
pub const KINDS: [&str; 5] = ["read", "update", "insert", "scan", "read-modify-write"];

/// Operations, by [`KINDS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    Read,
    Update,
    Insert,
    Scan,
    ReadModifyWrite,
}

/// Every statement, in the order of its number.
pub fn statements() -> Vec<String> {
    let names: Vec<String> = (0..FIELDS).map(|n| format!("field{n}")).collect();
    let places: Vec<String> = (1..=FIELDS + 1).map(|n| format!("${n}")).collect();
    let all = format!("ycsb_key, {}", names.join(", "));
    let mut statements = vec![
        format!("SELECT {all} FROM {TABLE} WHERE ycsb_key = $1"),
        format!("SELECT {all} FROM {TABLE} WHERE ycsb_key >= $1 ORDER BY ycsb_key LIMIT $2"),
        format!("INSERT INTO {TABLE} ({all}) VALUES ({})", places.join(", ")),
    ];
    statements.extend(names.iter().map(|name| format!("UPDATE {TABLE} SET {name} = $1 WHERE ycsb_key = $2")));
    statements
}

/// Printable bytes of a field.
pub fn push_field(out: &mut Vec<u8>, rng: &mut Rng) {
    for _ in 0..FIELD_BYTES / 10 {
        let mut bits = rng.bits();
        for _ in 0..10 {
            out.push(b'0' + (bits & 63) as u8 % 43);
            bits >>= 6;
        }
    }
}

/// Numbers of the records of all clients.
pub struct Records {
    /// The next that is inserted.
    next: AtomicU64,
    /// What each client inserts at the moment, or a number below; the greatest if it does not.
    inserting: Vec<AtomicU64>,
}

impl Records {
    /// With inserts from `next` on by so many clients; none if nobody inserts.
    pub fn new(next: u64, clients: usize) -> Records {
        Records { next: AtomicU64::new(next), inserting: (0..clients).map(|_| AtomicU64::new(u64::MAX)).collect() }
    }

    /// The next that is inserted.
    pub fn next(&self) -> u64 {
        self.next.load(Ordering::SeqCst)
    }

    /// As many as are there from the first on, unless an insert has failed.
    fn there(&self) -> u64 {
        let next = self.next();
        // Who has taken a number below `next` had marked it before.
        self.inserting.iter().map(|mark| mark.load(Ordering::SeqCst)).fold(next, u64::min).max(2)
    }

    fn begin(&self, client: usize) -> u64 {
        self.inserting[client].store(self.next(), Ordering::SeqCst);
        self.next.fetch_add(1, Ordering::SeqCst)
    }

    fn end(&self, client: usize) {
        self.inserting[client].store(u64::MAX, Ordering::SeqCst);
    }
}

/// One client, with what it has noted.
pub struct Client {
    /// From 0.
    place: usize,
    mix: Mix,
    records: Arc<Records>,
    keys: Distribution,
    rng: Rng,
    kind: Operation,
    key: String,
    number: u64,
    scan: i64,
    field: usize,
    text: Vec<u8>,
    /// Numbers of the records whose INSERT was answered.
    pub acknowledged: Vec<u64>,
    /// Those whose connection was lost.
    pub unknown: Vec<u64>,
    /// Reads and updates that met no record.
    pub missed: u64,
}

impl Client {
    /// Number `place` of a mix.
    pub fn new(place: usize, mix: Mix, records: Arc<Records>, keys: Distribution, rng: Rng) -> Client {
        Client {
            place,
            mix,
            records,
            keys,
            rng,
            kind: Operation::Read,
            key: String::new(),
            number: 0,
            scan: 0,
            field: 0,
            text: Vec::new(),
            acknowledged: Vec::new(),
            unknown: Vec::new(),
            missed: 0,
        }
    }

    fn draw_kind(&mut self) -> Operation {
        let percent = self.rng.uniform(1, 100);
        let [read, update, insert, scan] = self.mix.shares();
        match percent {
            _ if percent <= read => Operation::Read,
            _ if percent <= read + update => Operation::Update,
            _ if percent <= read + update + insert => Operation::Insert,
            _ if percent <= read + update + insert + scan => Operation::Scan,
            _ => Operation::ReadModifyWrite,
        }
    }

    async fn read(&mut self, connection: &mut AsyncConnection) -> Result<u64, Failure> {
        connection.call(READ, &[Text(self.key.as_bytes())]).await?;
        self.missed += u64::from(connection.row_count() == 0);
        Ok(connection.row_count() as u64)
    }

    async fn update(&mut self, connection: &mut AsyncConnection) -> Result<u64, Failure> {
        connection.call(UPDATE + self.field, &[Text(&self.text), Text(self.key.as_bytes())]).await?;
        self.missed += u64::from(connection.affected() == 0);
        Ok(connection.affected())
    }

    async fn insert(&mut self, connection: &mut AsyncConnection) -> Result<u64, Failure> {
        let mut params: Vec<Param<'_>> = vec![Text(self.key.as_bytes())];
        params.extend(self.text.chunks(FIELD_BYTES).map(Text));
        let inserted = connection.call(INSERT, &params).await;
        match &inserted {
            Ok(()) => self.acknowledged.push(self.number),
            Err(Failure::Lost(_)) => self.unknown.push(self.number),
            Err(_) => {}
        }
        inserted.map(|()| connection.affected())
    }
}

impl Worker for Client {
    fn draw(&mut self) -> Option<usize> {
        if self.kind == Operation::Insert {
            // However it has ended.
            self.records.end(self.place);
        }
        self.kind = self.draw_kind();
        self.text.clear();
        if self.kind == Operation::Insert {
            self.number = self.records.begin(self.place);
            (0..FIELDS).for_each(|_| push_field(&mut self.text, &mut self.rng));
        } else {
            self.number = self.keys.draw(self.records.there(), &mut self.rng);
            self.field = self.rng.uniform(0, FIELDS as i64 - 1) as usize;
            self.scan = self.rng.uniform(1, LONGEST_SCAN);
            if matches!(self.kind, Operation::Update | Operation::ReadModifyWrite) {
                push_field(&mut self.text, &mut self.rng);
            }
        }
        self.key = key(self.number);
        Some(self.kind as usize)
    }

    async fn run(&mut self, connection: &mut AsyncConnection) -> Result<Done, Failure> {
        Ok(match self.kind {
            Operation::Read => Done::new(1, self.read(connection).await?),
            Operation::Update => Done::new(1, self.update(connection).await?),
            Operation::Insert => Done::new(1, self.insert(connection).await?),
            Operation::Scan => {
                connection.call(SCAN, &[Text(self.key.as_bytes()), Int(self.scan)]).await?;
                Done::new(1, connection.row_count() as u64)
            }
            Operation::ReadModifyWrite => {
                let read = self.read(connection).await?;
                Done::new(2, read + self.update(connection).await?)
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_there_up_to_the_first_insert_under_way() {
        let records = Records::new(100, 2);
        assert_eq!((records.there(), records.begin(0), records.begin(1)), (100, 100, 101));
        assert_eq!(records.there(), 100);
        records.end(0);
        assert_eq!(records.there(), 101);
        records.end(1);
        assert_eq!((records.there(), records.next()), (102, 102));
    }

    #[test]
    fn fields_are_printable_and_need_no_escape() {
        let mut out = Vec::new();
        push_field(&mut out, &mut Rng::new(1, 0));
        assert_eq!(out.len(), FIELD_BYTES);
        assert!(out.iter().all(|byte| (b'0'..b'[').contains(byte)), "{out:?}");
    }

    #[test]
    fn statements_have_every_parameter_once() {
        let all = statements();
        assert_eq!(all.len(), UPDATE + FIELDS);
        assert!(all[INSERT].ends_with("VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)"));
        assert_eq!(all[UPDATE + 9], "UPDATE usertable SET field9 = $1 WHERE ycsb_key = $2");
    }
}
