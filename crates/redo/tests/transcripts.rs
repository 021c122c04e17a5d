//! Scripts of operations on a log, in `tests/transcripts`, with what came back, what the disk has and what an opening reads.
//!
//! After `---` stands what came of the commands above it. `UPDATE_GOLDENFILES=1 cargo test -p redo transcripts` writes it anew: read the difference
//! before you keep it.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use base::{Lsn, Timestamp, TxnId};
use env::sim::{Crash, SimDisk, SimRandom};
use env::{Disk as _, World, real};
use goldenscript::{Argument, Command, Runner};
use redo::{DriverError, FileLog, FileOptions, Log, RecordKind, Reserve};

type Answer = Result<String, Box<dyn Error>>;

const OPTIONS: FileOptions = FileOptions { segment_bytes: 16 << 10, batch_bytes_max: 4 << 10 };

/// A log on a simulated disk. Records are commits, named by their timestamps.
struct Script {
    disk: SimDisk,
    log: Option<Log>,
    /// The end of what was appended.
    end: Lsn,
}

fn number(arg: Option<&Argument>) -> Result<u64, Box<dyn Error>> {
    Ok(arg.ok_or("a number is missing")?.value.parse()?)
}

impl Script {
    fn log(&self) -> Result<&Log, Box<dyn Error>> {
        self.log.as_ref().ok_or_else(|| "it is not open".into())
    }

    fn open(&mut self) -> Answer {
        let world = World {
            disk: Arc::new(self.disk.clone()),
            clock: Arc::new(real::SystemClock::new()),
            spawn: Arc::new(real::Threads),
        };
        let driver = Box::new(FileLog::new(Arc::clone(&world.disk), OPTIONS));
        let mut lines = Vec::new();
        let mut keep = |record: redo::Record<'_>| {
            lines.push(format!("{:?} {}: {} bytes", record.kind, record.ts.0, record.payload.len()));
            Ok(())
        };
        match Log::open(&world, driver, Lsn(0), &mut keep, Box::new(|_| {})) {
            Ok((log, replayed)) => {
                (self.log, self.end) = (Some(log), replayed.end);
                lines.extend(replayed.cut.map(|_| "cut off what was torn".to_string()));
                lines.extend(replayed.was_closed.map(|closed| {
                    if closed { "it had been closed".to_string() } else { "it had not been closed".to_string() }
                }));
                Ok(lines.join("\n"))
            }
            Err(DriverError::Corrupt(place)) => Err(format!("corrupt: {place}").into()),
            Err(error) => Err(error.to_string().into()),
        }
    }
}

impl Runner for Script {
    fn run(&mut self, command: &Command) -> Answer {
        let mut args = command.consume_args();
        match command.name.as_str() {
            "open" => self.open(),
            "append" => {
                let (ts, bytes) = (number(args.next_pos())?, number(args.next_pos())? as usize);
                let log = self.log()?;
                let room = loop {
                    match log.reserve(bytes, || Box::new(|| {})) {
                        Reserve::Ready(room) => break room,
                        Reserve::Full => return Err("the disk is full".into()),
                        Reserve::Later => std::thread::yield_now(),
                    }
                };
                let payload = vec![ts as u8; bytes];
                let (end, ()) = log.append(room, RecordKind::Commit, TxnId(ts), &payload, |_| (Timestamp(ts), ()));
                self.end = end;
                Ok(format!("up to {}", end.0))
            }
            // Waits until all that was appended is durable.
            "durable" => {
                let durable = self.log()?.durable().block(self.end);
                Ok(if durable { format!("up to {}", self.end.0) } else { "it never will be".to_string() })
            }
            "close" => {
                let log = self.log.take().ok_or("it is not open")?;
                log.close().map_err(|error| error.to_string())?;
                Ok(String::new())
            }
            // The process dies, or the machine: what was not synced stays, is lost, or is there in part.
            "kill" | "crash" | "tear" => {
                let seed = args.next_pos().map_or(Ok(1), |arg| arg.value.parse::<u64>())?;
                let crash = match command.name.as_str() {
                    "kill" => Crash::KeepAll,
                    "crash" => Crash::LoseUnsynced,
                    _ => Crash::AnySectors,
                };
                let after = self.disk.after_crash(crash, &mut SimRandom::new(seed));
                self.log = None;
                self.disk = after;
                Ok(String::new())
            }
            // What is on the disk of the log is changed behind its back.
            "damage" => {
                let name = args.next_pos().ok_or("a file is missing")?.value.clone();
                let at = number(args.next_pos())?;
                let file = self.disk.open(&name)?;
                let mut byte = [0];
                file.read_at(&mut byte, at)?;
                file.write_at(&[!byte[0]], at)?;
                file.sync()?;
                Ok(String::new())
            }
            "files" => {
                let mut names = self.disk.list()?;
                // The spare segment is made in the background.
                names.retain(|name| name != "spare");
                names.sort();
                Ok(names.join("\n"))
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
        let mut script = Script { disk: SimDisk::new(), log: None, end: Lsn(0) };
        goldenscript::run(&mut script, &path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
}
