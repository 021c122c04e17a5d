//! Scripts of operations on a shard, in `tests/transcripts`, with what came back, what versions there are and what the log says.
//!
//! A line is a command; `t1: insert 1 100` is one of transaction `t1`, which `t1: begin` has begun. After `---` stands what came of the commands above
//! it. `UPDATE_GOLDENFILES=1 cargo test -p engine transcripts` writes it anew: read the difference before you keep it.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;

use base::Lsn;
use engine::{Shard, inspect};
use engine_api::*;
use env::sim::{Crash, SimDisk, SimRandom};
use goldenscript::{Command, Runner};
use types::{Datum, RowRef};

use crate::prepared::named;
use crate::support::*;

type Answer = Result<String, Box<dyn Error>>;

/// A shard with one table of accounts: id and balance.
struct Script {
    disk: SimDisk,
    shard: Option<Shard>,
    txns: BTreeMap<String, Box<dyn Txn>>,
    /// Waits that are not over, by transaction.
    waits: BTreeMap<String, Wait>,
    savepoints: BTreeMap<String, Vec<Savepoint>>,
    /// Where the log ended when the table was defined.
    from: Lsn,
}

/// A tuple as `id=balance`.
fn shown(tuple: &[u8]) -> String {
    let layout = layout();
    let row = RowRef::new(&layout, tuple);
    match (row.get_owned(0), row.get_owned(1)) {
        (Datum::Int4(id), Datum::Int8(balance)) => format!("{id}={balance}"),
        other => panic!("{other:?}"),
    }
}

fn row_of(txn: &mut dyn Txn, id: i32) -> Result<base::RowId, Box<dyn Error>> {
    find(txn, id).map(|(row, _)| row).ok_or_else(|| "there is no such account".into())
}

fn told(error: base::Error) -> Box<dyn Error> {
    format!("{} {}", error.code().as_str(), error.fields().message).into()
}

impl Script {
    fn new() -> Script {
        let disk = SimDisk::new();
        let shard = open(&disk);
        define(&shard);
        let from = shard.log_end();
        Script {
            disk,
            shard: Some(shard),
            txns: BTreeMap::new(),
            waits: BTreeMap::new(),
            savepoints: BTreeMap::new(),
            from,
        }
    }

    fn shard(&self) -> &Shard {
        self.shard.as_ref().expect("the shard is open")
    }

    /// One step of a transaction's command: an answer, or a wait that is kept.
    fn stepped<T>(&mut self, name: &str, step: base::Result<Step<T>>, done: impl FnOnce(T) -> String) -> Answer {
        match step.map_err(told)? {
            Step::Ready(value) => {
                self.waits.remove(name);
                Ok(done(value))
            }
            Step::Wait(wait) => {
                self.waits.insert(name.to_string(), wait);
                Ok("waits".to_string())
            }
        }
    }

    fn of_transaction(&mut self, name: &str, command: &Command) -> Answer {
        let mut args = command.consume_args();
        if command.name == "begin" {
            let isolation = match args.next_pos().map(|arg| arg.value.as_str()) {
                None => Isolation::ReadCommitted,
                Some("repeatable-read") => Isolation::RepeatableRead,
                Some("serializable") => Isolation::Serializable,
                Some(other) => return Err(format!("what is {other}?").into()),
            };
            let txn = begin(self.shard(), isolation);
            self.txns.insert(name.to_string(), txn);
            return Ok(String::new());
        }
        let mut txn = self.txns.remove(name).ok_or("it has not begun")?;
        let id = |arg: Option<&goldenscript::Argument>| -> Result<i64, Box<dyn Error>> {
            Ok(arg.ok_or("a number is missing")?.value.parse()?)
        };
        // What a command that waited goes on with is the same command.
        if !self.waits.contains_key(name) {
            txn.begin_command();
        }
        let answer = match command.name.as_str() {
            "insert" => {
                let (id, balance) = (id(args.next_pos())? as i32, id(args.next_pos())?);
                let step = insert(&mut *txn, id, balance);
                self.stepped(name, step, |outcome| match outcome {
                    InsertOutcome::Inserted(row) => format!("row {}", row.0),
                    InsertOutcome::Conflict(row) => format!("in the way: row {}", row.0),
                })
            }
            "update" => {
                let (id, to) = (id(args.next_pos())? as i32, id(args.next_pos())?);
                match row_of(&mut *txn, id) {
                    Ok(_) => {
                        let step = update(&mut *txn, id, |_| to);
                        self.stepped(name, step, |()| String::new())
                    }
                    Err(error) => Err(error),
                }
            }
            "delete" => {
                let id = id(args.next_pos())? as i32;
                row_of(&mut *txn, id).and_then(|row| {
                    let table = txn.open_table(ACCOUNTS).map_err(told)?;
                    let mut moved = RowBatch::new();
                    match txn.lock_row(&table, row, RowLockMode::Update, WaitPolicy::Block, &mut moved).map_err(told)? {
                        Step::Wait(wait) => {
                            self.waits.insert(name.to_string(), wait);
                            Ok("waits".to_string())
                        }
                        Step::Ready(outcome) => {
                            self.waits.remove(name);
                            txn.delete(&table, row).map_err(told)?;
                            Ok(if outcome == RowLockOutcome::Locked { String::new() } else { format!("{outcome:?}") })
                        }
                    }
                })
            }
            "lock" => {
                let id = id(args.next_pos())? as i32;
                let mode = match args.lookup("mode").map(|arg| arg.value.as_str()) {
                    None | Some("update") => RowLockMode::Update,
                    Some("no-key-update") => RowLockMode::NoKeyUpdate,
                    Some("share") => RowLockMode::Share,
                    Some("key-share") => RowLockMode::KeyShare,
                    Some(other) => return Err(format!("what is {other}?").into()),
                };
                let policy = match args.lookup("else").map(|arg| arg.value.as_str()) {
                    None => WaitPolicy::Block,
                    Some("skip") => WaitPolicy::Skip,
                    Some("error") => WaitPolicy::Error,
                    Some(other) => return Err(format!("what is {other}?").into()),
                };
                row_of(&mut *txn, id).and_then(|row| {
                    let table = txn.open_table(ACCOUNTS).map_err(told)?;
                    let mut moved = RowBatch::new();
                    let step = txn.lock_row(&table, row, mode, policy, &mut moved);
                    let newest = moved.iter().next().map(|row| shown(row.tuple));
                    self.stepped(name, step, |outcome| match newest {
                        Some(newest) => format!("{outcome:?}: {newest}"),
                        None => format!("{outcome:?}"),
                    })
                })
            }
            "get" => {
                let id = id(args.next_pos())? as i32;
                Ok(find(&mut *txn, id)
                    .map_or("nothing".to_string(), |(row, balance)| format!("row {}: {balance}", row.0)))
            }
            "scan" => {
                let all = scan(&mut *txn, None);
                Ok(all.iter().map(|(id, balance)| format!("{id}={balance}")).collect::<Vec<_>>().join(", "))
            }
            "savepoint" => {
                let point = txn.savepoint();
                self.savepoints.entry(name.to_string()).or_default().push(point);
                Ok(String::new())
            }
            "rollback-to-savepoint" => {
                let point = self.savepoints.get_mut(name).and_then(Vec::pop).ok_or("there is no savepoint")?;
                txn.rollback_to(point);
                Ok(String::new())
            }
            "commit" => {
                let step = txn.commit(Durability::On);
                let shard = self.shard().clone();
                return self.stepped(name, step, |outcome| {
                    assert!(shard.durable().block(outcome.gate));
                    String::new()
                });
            }
            "prepare" => {
                let gid = args.next_pos().ok_or("a name is missing")?.value.clone();
                let step = txn.prepare(&named(&gid));
                let shard = self.shard().clone();
                return self.stepped(name, step, |outcome| {
                    assert!(shard.durable().block(outcome.gate));
                    String::new()
                });
            }
            "rollback" => {
                txn.rollback();
                self.waits.remove(name);
                return Ok(String::new());
            }
            other => Err(format!("what is {other}?").into()),
        };
        args.reject_rest()?;
        self.txns.insert(name.to_string(), txn);
        answer
    }
}

impl Runner for Script {
    fn run(&mut self, command: &Command) -> Answer {
        if let Some(name) = command.prefix.clone() {
            return self.of_transaction(&name, command);
        }
        let mut args = command.consume_args();
        let answer = match command.name.as_str() {
            // Whose wait is over, and whose is not.
            "waits" => {
                let state = |(name, wait): (&String, &Wait)| {
                    format!("{name} {}", if wait.is_over() { "can go on" } else { "waits" })
                };
                self.waits.iter().map(state).collect::<Vec<_>>().join("\n")
            }
            "versions" => inspect::versions(self.shard(), ACCOUNTS, &shown).join("\n"),
            "log" => inspect::log(&world(&self.disk), self.from, &shown)?.join("\n"),
            "finish" => {
                let gid = args.next_pos().ok_or("a name is missing")?.value.clone();
                let commits = args.next_pos().is_none_or(|arg| arg.value == "commit");
                match self.shard().finish_prepared(&gid, commits).map_err(told)? {
                    Step::Ready((outcome, _)) => assert!(self.shard().durable().block(outcome.gate)),
                    Step::Wait(_) => return Ok("waits".to_string()),
                }
                String::new()
            }
            "prepared" => crate::prepared::names(self.shard()).join(", "),
            "check" => inspect::check(self.shard()).map(|()| "sound".to_string())?,
            // The process dies, or the machine, and what was not synced is lost.
            "kill" | "crash" => {
                self.txns.clear();
                self.waits.clear();
                self.savepoints.clear();
                let crash = if command.name == "kill" { Crash::KeepAll } else { Crash::LoseUnsynced };
                self.disk = self.disk.after_crash(crash, &mut SimRandom::new(1));
                self.shard = None;
                String::new()
            }
            "start" => {
                self.shard = Some(open(&self.disk));
                String::new()
            }
            other => return Err(format!("what is {other}?").into()),
        };
        args.reject_rest()?;
        Ok(answer)
    }
}

#[test]
fn scripts() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts");
    let mut found: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    found.sort();
    assert!(found.len() >= 5, "{found:?}");
    for path in found {
        goldenscript::run(&mut Script::new(), &path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
}
