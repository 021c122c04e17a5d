//! Interleaved statements of several sessions, and the result of each: an immediate answer, or a wait that another
//! session's step ends.
//!
//! A schedule is text, one step per line, `SESSION: SQL`, or `SESSION: cancel OTHER` for a cancel request. A step is *waiting* if no answer is there after
//! [`PATIENCE`]; the session takes no further step until it comes. After each step the sessions that wait are looked at
//! again, so the transcript says which step released whom. The transcript of the same schedule must be equal on two
//! servers.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::client::Connection;
use crate::reply::{Event, Reply};
use crate::target::Target;

/// How long a step may take before it counts as waiting.
pub const PATIENCE: Duration = Duration::from_millis(200);

/// How long a step that the last one has released may take to answer.
const AFTER_RELEASE: Duration = Duration::from_millis(60);

/// The longest wait at a schedule's end, for what a timeout or the deadlock detector must end.
const AT_END: Duration = Duration::from_secs(10);

/// A named schedule.
#[derive(Debug)]
pub struct Schedule {
    /// Name for reports.
    pub name: String,
    /// Session and SQL of each step.
    steps: Vec<(String, String)>,
}

impl Schedule {
    /// Parses `SESSION: SQL` lines; empty lines and `#` comments are skipped.
    ///
    /// PANICS on a line of another form.
    pub fn parse(name: &str, text: &str) -> Schedule {
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        let steps = lines.map(|line| {
            let (session, sql) = line.split_once(": ").unwrap_or_else(|| panic!("{name}: no session in `{line}`"));
            (session.to_owned(), sql.to_owned())
        });
        Schedule { name: name.to_owned(), steps: steps.collect() }
    }

    /// All schedules of a file: each begins with a line `== NAME`. `{level}` in the text becomes `level`.
    pub fn parse_all(text: &str, level: &str) -> Vec<Schedule> {
        let text = text.replace("{level}", level);
        let parts = text.split("\n== ").skip(1);
        parts
            .map(|part| {
                let (name, steps) = part.split_once('\n').unwrap_or((part, ""));
                Schedule::parse(name.trim(), steps)
            })
            .collect()
    }

    /// Runs the steps and returns the transcript, one line per event.
    pub fn run(&self, target: &Target) -> Vec<String> {
        let mut run = Run { target, sessions: BTreeMap::new(), transcript: Vec::new() };
        for (session, sql) in &self.steps {
            run.step(session, sql);
        }
        run.finish();
        run.transcript
    }
}

/// A session of a schedule under way.
struct Session {
    connection: Connection,
    waiting: Option<String>,
}

struct Run<'a> {
    target: &'a Target,
    sessions: BTreeMap<String, Session>,
    transcript: Vec<String>,
}

impl Run<'_> {
    fn step(&mut self, name: &str, sql: &str) {
        let target = self.target;
        let new = || Session { connection: target.connect(), waiting: None };
        let session = self.sessions.entry(name.to_owned()).or_insert_with(new);
        if session.waiting.is_some() {
            // A schedule may count on a wait's end that a timeout brings.
            self.transcript.push(format!("{name} is not free for: {sql}"));
            self.collect(name, AT_END);
        }
        let session = self.sessions.get_mut(name).expect("entered above");
        if session.waiting.is_some() {
            return;
        }
        if let Some(other) = sql.strip_prefix("cancel ") {
            self.sessions[other].connection.cancel();
            self.transcript.push(format!("{name}: cancels {other}"));
            self.collect_released();
            return;
        } else {
            session.connection.send(sql);
        }
        match session.connection.receive(PATIENCE) {
            Some(reply) => self.transcript.push(format!("{name}: {sql} -> {}", brief(&reply))),
            None => {
                session.waiting = Some(sql.to_owned());
                self.transcript.push(format!("{name}: {sql} -> waits"));
            }
        }
        self.collect_released();
    }

    /// Looks whether the step just taken released sessions; their answers are listed by session name, since the order of
    /// arrival is chance.
    fn collect_released(&mut self) {
        let waiting = self.sessions.iter().filter(|(_, session)| session.waiting.is_some());
        for name in waiting.map(|(name, _)| name.clone()).collect::<Vec<_>>() {
            self.collect(&name, AFTER_RELEASE);
        }
    }

    fn collect(&mut self, name: &str, limit: Duration) {
        let session = self.sessions.get_mut(name).expect("only known sessions wait");
        if let Some(reply) = session.connection.receive(limit) {
            let sql = session.waiting.take().unwrap_or_default();
            self.transcript.push(format!("  {name} goes on: {sql} -> {}", brief(&reply)));
        }
    }

    fn finish(&mut self) {
        let waiting = self.sessions.iter().filter(|(_, session)| session.waiting.is_some());
        for name in waiting.map(|(name, _)| name.clone()).collect::<Vec<_>>() {
            self.collect(&name, AT_END);
            if self.sessions[&name].waiting.is_some() {
                self.transcript.push(format!("  {name} waits to the end"));
            }
        }
    }
}

/// Rows, tags and SQLSTATEs on one line. Texts of lock errors name processes, so they are left out.
fn brief(reply: &Reply) -> String {
    let parts = reply.events.iter().filter_map(|event| match event {
        Event::Row(row) => {
            let values = row.iter().map(|value| value.as_deref().unwrap_or("NULL"));
            Some(format!("({})", values.collect::<Vec<_>>().join(",")))
        }
        Event::Done(tag) => Some(tag.clone()),
        Event::Error(fields) | Event::Notice(fields) => Some(fields.code.clone()),
        _ => None,
    });
    let parts: Vec<String> = parts.collect();
    if reply.status.is_none() { format!("{} closed", parts.join(" ")) } else { parts.join(" ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_holds_several_schedules() {
        let found = Schedule::parse_all("# about\n\n== one\na: BEGIN\n== two\n# c\nb: SELECT '{level}'\n", "x");
        let seen: Vec<_> = found.iter().map(|s| (s.name.as_str(), s.steps.clone())).collect();
        let step = |session: &str, sql: &str| vec![(session.to_owned(), sql.to_owned())];
        assert_eq!(seen, vec![("one", step("a", "BEGIN")), ("two", step("b", "SELECT 'x'"))]);
    }
}
