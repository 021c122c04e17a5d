//! Scripts of operations on a table of texts, in `tests/transcripts`, with what came back and what versions there are.
//!
//! `t1: …` is an operation of transaction `t1`, `v1: …` of a view. After `---` stands what came of the commands above it.
//! `UPDATE_GOLDENFILES=1 cargo test -p mvcc transcripts` writes it anew: read the difference before you keep it.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use base::{CommandId, RowId, Timestamp, TxnId};
use goldenscript::{Argument, Command, Runner};
use mvcc::{LockResult, Newest, RowLockMode, Transaction, TxnMark, View, ViewToken, pin};

use crate::support::{Bell, World, bell};

type Answer = Result<String, Box<dyn Error>>;

struct Active {
    txn: Transaction,
    /// The command that goes on.
    command: u32,
    marks: Vec<TxnMark>,
    bell: Arc<Bell>,
}

#[derive(Default)]
struct Script {
    world: Option<World>,
    txns: BTreeMap<String, Active>,
    views: BTreeMap<String, ViewToken>,
}

fn row(arg: Option<&Argument>) -> Result<RowId, Box<dyn Error>> {
    Ok(RowId(arg.ok_or("a row is missing")?.value.parse()?))
}

fn text(tuple: &[u8]) -> String {
    String::from_utf8_lossy(tuple).into_owned()
}

/// What a view sees, in words.
fn seen(seen: String) -> String {
    match seen.as_str() {
        "" => "nothing".to_string(),
        "-" => "deleted".to_string(),
        _ => seen,
    }
}

impl Script {
    fn world(&mut self) -> &World {
        self.world.get_or_insert_with(World::new)
    }

    /// The name of the transaction with an id.
    fn name_of(&self, id: TxnId) -> String {
        let named = self.txns.iter().find(|(_, active)| active.txn.id() == id);
        named.map_or_else(|| "somebody".to_string(), |(name, _)| name.clone())
    }

    fn newest(&mut self, row: RowId) -> String {
        let (guard, world) = (pin(), self.world.take().expect("there is a row"));
        let said = match world.table.newest(row, None, &guard) {
            Newest::Live(version) => format!("{} of {}", text(version.tuple), version.ts.0),
            Newest::Deleted(ts) => format!("deleted at {}", ts.0),
            Newest::Undecided { holder, decided } => {
                let below = decided.map_or_else(|| "nothing".to_string(), |version| text(version.tuple));
                format!("{} has not decided, above {below}", self.name_of(holder))
            }
            Newest::Absent => "nothing".to_string(),
        };
        let versions: Vec<String> = world.table.versions(row, &guard).iter().map(|(_, tuple)| text(tuple)).collect();
        self.world = Some(world);
        format!("{said}; versions: {}", versions.join(", "))
    }

    fn of_view(&mut self, name: &str, command: &Command) -> Answer {
        let mut args = command.consume_args();
        match command.name.as_str() {
            "open" => {
                let token = self.world().store.begin_view();
                self.views.insert(name.to_string(), token);
                Ok(String::new())
            }
            "see" => {
                let row = row(args.next_pos())?;
                let token = self.views.get(name).ok_or("it is not open")?;
                Ok(seen(self.world.as_ref().expect("a view is open").see_at(row, token)))
            }
            "end" => {
                let token = self.views.remove(name).ok_or("it is not open")?;
                self.world().store.end_view(token);
                Ok(String::new())
            }
            other => Err(format!("what is {other}?").into()),
        }
    }

    fn of_transaction(&mut self, name: &str, command: &Command) -> Answer {
        let mut args = command.consume_args();
        if command.name == "begin" {
            let active = Active { txn: self.world().begin(), command: 0, marks: Vec::new(), bell: bell() };
            self.txns.insert(name.to_string(), active);
            return Ok(String::new());
        }
        let mut active = self.txns.remove(name).ok_or("it has not begun")?;
        let world = self.world.as_ref().expect("a transaction has begun");
        match command.name.as_str() {
            "commit" => {
                let ts = world.commit(active.txn);
                return Ok(format!("at {}", ts.0));
            }
            "abort" => {
                world.store.abort(active.txn);
                return Ok(String::new());
            }
            _ => {}
        }
        let txn = &mut active.txn;
        let answer = match command.name.as_str() {
            "command" => {
                active.command += 1;
                String::new()
            }
            "insert" => {
                let tuple = &args.next_pos().ok_or("a text is missing")?.value;
                format!("row {}", world.insert(txn, active.command, tuple).0)
            }
            "update" => {
                let row = row(args.next_pos())?;
                let tuple = &args.next_pos().ok_or("a text is missing")?.value;
                world.update(txn, row, active.command, tuple);
                String::new()
            }
            "delete" => {
                world.delete(txn, row(args.next_pos())?, active.command);
                String::new()
            }
            "see" => {
                let view =
                    View { read_ts: world.store.horizon(), own: Some(txn.id()), command: CommandId(active.command) };
                seen(world.see(row(args.next_pos())?, view))
            }
            "lock" => {
                let row = row(args.next_pos())?;
                let mode = match args.lookup("mode").map(|arg| arg.value.as_str()) {
                    None | Some("update") => RowLockMode::Update,
                    Some("no-key-update") => RowLockMode::NoKeyUpdate,
                    Some("share") => RowLockMode::Share,
                    Some("key-share") => RowLockMode::KeyShare,
                    Some(other) => return Err(format!("what is {other}?").into()),
                };
                match world.lock(txn, row, mode, &active.bell) {
                    LockResult::Granted { newly: true } => "granted".to_string(),
                    LockResult::Granted { newly: false } => "held already".to_string(),
                    LockResult::Deadlock(cycle) => format!("deadlock of {}", cycle.len()),
                    other => format!("{other:?}").to_lowercase(),
                }
            }
            "mark" => {
                active.marks.push(txn.mark());
                String::new()
            }
            "undo" => {
                let mark = active.marks.pop().ok_or("there is no mark")?;
                world.store.undo_to(txn, mark);
                String::new()
            }
            "woken" => active.bell.rung().to_string(),
            other => return Err(format!("what is {other}?").into()),
        };
        args.reject_rest()?;
        self.txns.insert(name.to_string(), active);
        Ok(answer)
    }
}

impl Runner for Script {
    fn run(&mut self, command: &Command) -> Answer {
        match command.prefix.clone() {
            Some(name) if name.starts_with('v') => return self.of_view(&name, command),
            Some(name) => return self.of_transaction(&name, command),
            None => {}
        }
        let mut args = command.consume_args();
        match command.name.as_str() {
            "newest" => {
                let row = row(args.next_pos())?;
                Ok(self.newest(row))
            }
            // What nobody can see any more goes. Only what is durable may be deleted.
            "collect" => {
                let world = self.world();
                world.durable();
                world.store.collect(usize::MAX);
                Ok(format!("nothing is older than {}", world.store.horizon().max(Timestamp(0)).0))
            }
            other => Err(format!("what is {other}?").into()),
        }
    }
}

#[test]
fn scripts() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts");
    let mut found: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    found.sort();
    assert!(found.len() >= 3, "{found:?}");
    for path in found {
        let mut script = Script::default();
        goldenscript::run(&mut script, &path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        // Transactions and views must be ended by who has begun them.
        assert!(script.txns.is_empty() && script.views.is_empty(), "{} leaves something open", path.display());
    }
}
