//! Random schedules of several sessions: the same steps on two servers must wait, continue, answer and fail alike.
//!
//! Responsible for: running a schedule ([`Stage::run`]), making it shorter while two servers still differ about it ([`shorten`]).
//! Not responsible for: what is in one ([`locks`], [`reads`]).
//!
//! Unlike those that are written by hand ([`crate::schedule`]), many are run, so no result depends on the time that a step takes: a step waits if
//! the server says that its session is blocked (`pg_blocking_pids`), and a session that waited is looked at again until it is blocked anew
//! or has answered.

pub mod locks;
pub mod reads;

use std::time::{Duration, Instant};

use crate::client::Connection;
use crate::reply::{Event, Reply};
use crate::target::Target;

/// How long PostgreSQL waits before it looks for a deadlock, in milliseconds; and how long a blocked session is left alone so that it has
/// looked.
const DEADLOCK_MILLIS: u64 = 5;
const BLOCKED: Duration = Duration::from_millis(15);
/// Between two looks at a session.
const LOOK: Duration = Duration::from_millis(2);
/// After so long something is wrong.
const PATIENCE: Duration = Duration::from_secs(20);

/// A statement of one of the sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Which.
    pub session: usize,
    /// What it says.
    pub sql: String,
}

/// What became of a step, in the order in which it became known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Which step.
    pub step: usize,
    /// The answer; `None`: it waits.
    pub answer: Option<String>,
}

impl Outcome {
    /// Whether the statement ended a deadlock.
    pub fn is_deadlock(&self) -> bool {
        self.answer.as_ref().is_some_and(|answer| answer.contains("40P01"))
    }
}

struct Session {
    connection: Connection,
    pid: String,
    /// The step that it waits in.
    waiting: Option<usize>,
}

/// A schedule that has run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// What became of its steps.
    pub outcomes: Vec<Outcome>,
    /// From this one on chance decides: several sessions were released at once and may want the same, or a deadlock was found by one of
    /// several whose turn to look it was.
    pub certain: usize,
}

impl Run {
    /// Whether two servers did the same, as far as the first is certain.
    pub fn agrees(&self, other: &Run) -> bool {
        let certain = |run: &Run| run.outcomes.iter().take(self.certain).cloned().collect::<Vec<_>>();
        certain(self) == certain(other) || self.is_ahead(other)
    }

    /// Whether the other server is only sooner with a deadlock: this one waits for the holders of a row one after another, and finds the
    /// deadlock with the second when the first has ended (COMPATIBILITY.md).
    fn is_ahead(&self, other: &Run) -> bool {
        let certain = || self.outcomes.iter().take(self.certain);
        let mut pairs = certain().zip(&other.outcomes);
        let Some((later, sooner)) = pairs.find(|(own, other)| own != other) else { return false };
        later.step == sooner.step
            && later.answer.is_none()
            && sooner.is_deadlock()
            && certain().filter(|outcome| outcome.answer.is_some()).all(|outcome| other.outcomes.contains(outcome))
    }

    /// Whether nothing was left to chance.
    pub fn is_certain(&self) -> bool {
        self.certain == usize::MAX
    }
}

/// Connections to one server, used for one schedule after the other.
pub struct Stage {
    sessions: Vec<Session>,
    monitor: Connection,
}

impl Stage {
    /// Opens so many sessions, each prepared by these statements, which may fail where a server does not know them.
    pub fn new(target: &Target, sessions: usize, prepare: &[&str]) -> Stage {
        let sessions = (0..sessions).map(|_| {
            let mut connection = target.connect();
            let pid = connection.query("SELECT pg_backend_pid()").value().expect("a number").to_string();
            connection.query(&format!("SET deadlock_timeout = {DEADLOCK_MILLIS}"));
            prepare.iter().for_each(|sql| _ = connection.query(sql));
            Session { connection, pid, waiting: None }
        });
        Stage { sessions: sessions.collect(), monitor: target.connect() }
    }

    /// Runs statements that must succeed, outside of any session.
    pub fn prepare(&mut self, statements: &[&str]) {
        for sql in statements {
            assert_eq!(self.monitor.query(sql).error(), None, "{sql}");
        }
    }

    /// Asks outside of any session.
    pub fn ask(&mut self, sql: &str) -> Reply {
        self.monitor.query(sql)
    }

    /// Whether a session stands in the way of this one.
    fn is_blocked(&mut self, session: usize) -> bool {
        let sql = format!("SELECT cardinality(pg_blocking_pids({}))", self.sessions[session].pid);
        self.monitor.query(&sql).value() != Some("0")
    }

    /// Looks at a session until it has answered or is blocked.
    fn settle(&mut self, session: usize) -> Option<Reply> {
        let since = Instant::now();
        loop {
            if let Some(reply) = self.sessions[session].connection.receive(LOOK) {
                return Some(reply);
            }
            // Blocked, left alone, and blocked still.
            if self.is_blocked(session) {
                if let Some(reply) = self.sessions[session].connection.receive(BLOCKED) {
                    return Some(reply);
                }
                if self.is_blocked(session) {
                    return None;
                }
            }
            assert!(since.elapsed() < PATIENCE, "a session neither answers nor is blocked");
        }
    }

    /// Runs the steps, and rolls back what is left open. A session that waits takes no further steps until it has answered; those are
    /// left out. `read` makes a text of an answer.
    pub fn run(&mut self, steps: &[Step], read: &dyn Fn(&Reply) -> String) -> Run {
        let mut run = Run { outcomes: Vec::new(), certain: usize::MAX };
        for (number, step) in steps.iter().enumerate() {
            if self.sessions[step.session].waiting.is_some() {
                continue;
            }
            self.step(number, step.session, &step.sql, &mut run, read);
        }
        self.finish(steps.len(), &mut run, read);
        run
    }

    /// How many wait for this session, and not for another that waits.
    fn directly_behind(&mut self, session: usize) -> usize {
        let waiting = self.sessions.iter().filter(|other| other.waiting.is_some()).map(|other| other.pid.clone());
        let waiting: Vec<String> = waiting.collect();
        if waiting.len() < 2 {
            return waiting.len();
        }
        let pid = self.sessions[session].pid.clone();
        let mut is_behind = |other: &String| {
            self.monitor.query(&format!("SELECT {pid} = ANY (pg_blocking_pids({other}))")).value() == Some("t")
        };
        waiting.iter().filter(|other| is_behind(other)).count()
    }

    fn step(&mut self, number: usize, session: usize, sql: &str, run: &mut Run, read: &dyn Fn(&Reply) -> String) {
        let before = run.outcomes.len();
        let is_crowd = self.directly_behind(session) > 1;
        self.sessions[session].connection.send(sql);
        let answer = self.settle(session);
        if answer.is_none() {
            self.sessions[session].waiting = Some(number);
        }
        run.outcomes.push(Outcome { step: number, answer: answer.as_ref().map(read) });
        self.look_at_waiting(&mut run.outcomes, read);
        let released = &run.outcomes[before + 1..];
        if (is_crowd && !released.is_empty()) || released.iter().any(Outcome::is_deadlock) {
            run.certain = run.certain.min(before + 1);
        }
    }

    /// Looks at those that wait, until none of them goes on.
    fn look_at_waiting(&mut self, outcomes: &mut Vec<Outcome>, read: &dyn Fn(&Reply) -> String) {
        let mut goes_on = true;
        while std::mem::take(&mut goes_on) {
            for session in 0..self.sessions.len() {
                let Some(number) = self.sessions[session].waiting else { continue };
                if let Some(reply) = self.settle(session) {
                    self.sessions[session].waiting = None;
                    outcomes.push(Outcome { step: number, answer: Some(read(&reply)) });
                    goes_on = true;
                }
            }
        }
    }

    /// Rolls back until nobody waits.
    fn finish(&mut self, steps: usize, run: &mut Run, read: &dyn Fn(&Reply) -> String) {
        let mut is_open = vec![true; self.sessions.len()];
        while is_open.contains(&true) {
            let free = (0..is_open.len()).find(|at| is_open[*at] && self.sessions[*at].waiting.is_none());
            let session = free.unwrap_or_else(|| panic!("all wait for each other: {run:?}"));
            is_open[session] = false;
            self.step(steps + session, session, "ROLLBACK", run, read);
        }
    }
}

/// Rows, tags and SQLSTATEs on one line.
pub fn brief(reply: &Reply) -> String {
    let parts = reply.events.iter().filter_map(|event| match event {
        Event::Row(row) => {
            let values = row.iter().map(|value| value.as_deref().unwrap_or("NULL"));
            Some(format!("({})", values.collect::<Vec<_>>().join(",")))
        }
        Event::Done(tag) => Some(tag.clone()),
        Event::Error(fields) => Some(format!("{} {}", fields.code, fields.message)),
        _ => None,
    });
    let parts: Vec<String> = parts.collect();
    if reply.status.is_none() { format!("{} closed", parts.join(" ")) } else { parts.join(" ") }
}

/// Leaves out steps as long as `differs` says that two servers still differ.
pub fn shorten(mut steps: Vec<Step>, mut differs: impl FnMut(&[Step]) -> bool) -> Vec<Step> {
    let mut at = steps.len();
    while at > 0 {
        at -= 1;
        let mut fewer = steps.clone();
        fewer.remove(at);
        if differs(&fewer) {
            steps = fewer;
        }
    }
    steps
}

/// Two runs of a schedule beside each other, each line a step's outcome.
pub fn side_by_side(steps: &[Step], expected: &[Outcome], actual: &[Outcome]) -> String {
    let line = |outcome: &Outcome| {
        let (session, sql) = match steps.get(outcome.step) {
            Some(step) => (step.session, step.sql.as_str()),
            None => (outcome.step - steps.len(), "ROLLBACK"),
        };
        let name = char::from(b'a' + session as u8);
        format!("{name}: {sql} -> {}", outcome.answer.as_deref().unwrap_or("waits"))
    };
    let length = expected.len().max(actual.len());
    let lines = (0..length).map(|at| {
        let (left, right) = (expected.get(at).map(line), actual.get(at).map(line));
        match (left, right) {
            (Some(left), Some(right)) if left == right => format!("    {left}"),
            (left, right) => format!("  P {}\n  N {}", left.unwrap_or_default(), right.unwrap_or_default()),
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}
