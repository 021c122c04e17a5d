//! Every file of `tests/slt` in this process, by the simple protocol: the answers must be those that stand in the files.
//!
//! What needs parameters, a network or PostgreSQL beside it is left to the test `slt` of `testkit`. Records that are otherwise here, and may
//! be, are in `tests/slt/in-process.txt`: a script's name with the reason, or a line of it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::future::{Future, ready};
use std::path::{Path, PathBuf};
use std::pin::Pin;

use base::{Error, Lsn, Notice, Result};
use sandbox::{Sandbox, run};
use sql_exec::OutputRow;
use sql_session::{Output, ResultColumn, Session};
use testkit::script::{Record, Script, Send, recorded};
use testkit::{Column, Event, Fields, Reply};
use types::OutputSettings;

/// Statements that are compared: a script that is lost, or no longer found, must not look like success.
const STATEMENTS_MIN: usize = 15_000;

/// A build without optimisation needs more than a server's threads have.
const STACK_BYTES: usize = 256 << 20;

/// OIDs that servers give out themselves begin here.
const FIRST_USER_OID: u32 = 16384;

/// What came of a message, as a client sees it.
#[derive(Default)]
struct Answer {
    reply: Reply,
    /// COPY FROM STDIN reads this.
    data: VecDeque<Vec<u8>>,
}

impl Output for Answer {
    fn columns(&mut self, columns: &[ResultColumn]) {
        let column = |c: &ResultColumn| {
            let type_oid = if c.ty.oid.0 < FIRST_USER_OID { c.ty.oid.0 } else { 0 };
            Column { name: c.name.to_string(), type_oid, modifier: c.ty.typmod }
        };
        self.reply.events.push(Event::Columns(columns.iter().map(column).collect()));
    }
    fn row(&mut self, row: OutputRow<'_>, columns: &[ResultColumn], settings: &OutputSettings) {
        let values = row.iter().zip(columns).map(|(value, column)| {
            let mut text = Vec::new();
            (!value.is_null()).then(|| {
                types::write_text(value, column.ty.oid, settings, &mut text).expect("a value of its column");
                String::from_utf8_lossy(&text).into_owned()
            })
        });
        self.reply.events.push(Event::Row(values.collect()));
    }
    fn complete(&mut self, tag: &str) {
        self.reply.events.push(Event::Done(tag.to_owned()));
    }
    fn empty(&mut self) {
        self.reply.events.push(Event::Empty);
    }
    fn suspended(&mut self) {}
    fn notice(&mut self, notice: &Notice) {
        self.reply.events.push(Event::Notice(fields(notice)));
    }
    fn notification(&mut self, _: i32, channel: &str, payload: &str) {
        self.reply.events.push(Event::Notified(channel.to_owned(), payload.to_owned()));
    }
    fn parameter(&mut self, name: &str, value: &str) {
        self.reply.events.push(Event::Setting(name.to_owned(), value.to_owned()));
    }
    fn gate(&mut self, _: Lsn) {}
    fn is_full(&self) -> bool {
        false
    }
    fn flush<'a>(&'a mut self) -> Pin<Box<dyn Future<Output = Result<()>> + 'a>> {
        Box::pin(ready(Ok(())))
    }
    fn copy_in(&mut self, _: bool, _: usize) {
        self.reply.events.push(Event::CopyIn);
    }
    fn next_copy<'a>(&'a mut self, chunk: &'a mut Vec<u8>) -> Pin<Box<dyn Future<Output = Result<bool>> + 'a>> {
        let next = self.data.pop_front();
        let more = next.is_some();
        chunk.extend_from_slice(&next.unwrap_or_default());
        Box::pin(ready(Ok(more)))
    }
    fn copy_out(&mut self, _: bool, _: usize) {}
    fn copy_data(&mut self, bytes: &[u8]) {
        self.reply.events.push(Event::Copied(String::from_utf8_lossy(bytes).into_owned()));
    }
    fn copy_done(&mut self) {}
}

/// An error or a notice as a client gets it.
fn fields(error: &Error) -> Fields {
    let fields = error.fields();
    let schema = fields.schema.as_ref().map(|name| match name.strip_prefix("pg_temp_") {
        Some(number) if number.bytes().all(|b| b.is_ascii_digit()) => "pg_temp_N".to_owned(),
        _ => name.clone(),
    });
    Fields {
        severity: fields.severity.as_str().to_owned(),
        code: fields.code.as_str().to_owned(),
        message: fields.message.clone(),
        detail: fields.detail.clone(),
        hint: fields.hint.clone(),
        position: fields.position.map(|position| position.to_string()),
        objects: [
            schema,
            fields.table.clone(),
            fields.column.clone(),
            fields.data_type.clone(),
            fields.constraint.clone(),
        ],
        ..Fields::default()
    }
}

/// What came of a record; `None` if it is not for here.
fn answer(session: &mut Session, record: &Record) -> Option<Reply> {
    let (sql, data) = match &record.send {
        Send::Query(sql) | Send::Statement(sql) => (sql, VecDeque::new()),
        Send::Copy(sql, data) => (sql, VecDeque::from([data.clone().into_bytes()])),
        Send::Bind(..) => return None,
    };
    let mut out = Answer { data, ..Answer::default() };
    if let Err(error) = run(session.simple_query(sql, &mut out)) {
        out.reply.events.push(Event::Error(fields(&error)));
        session.send_parameters(&mut out);
    }
    out.reply.status = Some(char::from(session.transaction_status()));
    let mut reply = out.reply;
    reply.drop_columns_of_errors();
    if record.sort {
        reply.sort_rows();
    }
    if record.skip_message {
        reply.keep_only_codes();
    }
    Some(reply)
}

/// What differs here: whole scripts, and lines of scripts.
struct Exceptions(BTreeSet<String>);

impl Exceptions {
    fn read(path: &Path) -> Exceptions {
        let text = std::fs::read_to_string(path).expect("the list of exceptions");
        let lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
        Exceptions(lines.map(|line| line.split('\t').next().unwrap_or(line).to_owned()).collect())
    }

    fn has(&self, script: &str, sql: &str) -> bool {
        self.0.contains(&format!("{script}: {sql}"))
    }
}

/// Runs a script; the number of answers compared, and what differs.
fn run_script(file: &Path, exceptions: &Exceptions) -> (usize, Vec<String>) {
    let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let text = std::fs::read_to_string(file).expect("the script can be read");
    let script = Script::parse(&name, &text).unwrap_or_else(|fault| panic!("{fault}"));
    if exceptions.0.contains(&name) {
        return (0, Vec::new());
    }
    let mut sandbox = Sandbox::new("");
    let settings = [("application_name".to_owned(), "testkit".to_owned())];
    let mut sessions: BTreeMap<&str, Session> = BTreeMap::new();
    let (mut compared, mut wrong) = (0, Vec::new());
    for record in &script.records {
        let session = sessions.entry(&record.connection).or_insert_with(|| sandbox.connect(&settings));
        let Some(reply) = answer(session, record) else { continue };
        let Some(expected) = &record.answer else {
            wrong.push(format!("{name}:{}: no answer stands in the script", record.line));
            continue;
        };
        let (Send::Query(sql) | Send::Statement(sql) | Send::Copy(sql, _) | Send::Bind(sql, _)) = &record.send;
        if *expected == [recorded::CHANGES] || exceptions.has(&name, sql) {
            continue;
        }
        compared += 1;
        let actual = recorded::lines(&reply);
        if actual != *expected {
            wrong.push(format!("{name}:{}: {sql}\n  expected: {expected:?}\n  actual:   {actual:?}", record.line));
        }
    }
    (compared, wrong)
}

#[test]
fn answers_are_those_of_the_scripts() {
    let directory = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/slt"));
    let exceptions = Exceptions::read(&directory.join("in-process.txt"));
    let entries = std::fs::read_dir(directory).expect("the scripts are there").flatten().map(|entry| entry.path());
    let filter = std::env::var("SLT_ONLY").unwrap_or_default();
    let mut files: Vec<PathBuf> = entries
        .filter(|path| path.extension().is_some_and(|extension| extension == "slt"))
        .filter(|path| path.to_string_lossy().contains(&filter))
        .collect();
    files.sort();
    // One after the other: types that statements make are the process's, and two servers in it would take each other's.
    let work = || {
        let (mut compared, mut wrong) = (0, Vec::new());
        for file in &files {
            let (count, found) = run_script(file, &exceptions);
            compared += count;
            wrong.extend(found);
        }
        (compared, wrong)
    };
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
    let (compared, wrong) =
        std::thread::scope(|scope| thread.spawn_scoped(scope, work).expect("a thread").join().expect("no panic"));
    println!("{compared} statements of {} scripts compared, {} differ", files.len(), wrong.len());
    wrong.iter().take(40).for_each(|line| println!("{line}"));
    assert!(wrong.is_empty(), "{} answers differ", wrong.len());
    assert!(!filter.is_empty() || compared >= STATEMENTS_MIN, "only {compared} statements: a script is missing");
}
