//! What a server answered to one message, comparable and printable.

use std::fmt;

/// The fields of an error or a notice that a client can see and act on.
///
/// The source file, line and routine of the server's code and the call context are left out.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Fields {
    /// `ERROR`, `FATAL`, `NOTICE`, `WARNING`, …
    pub severity: String,
    /// SQLSTATE.
    pub code: String,
    /// Primary message.
    pub message: String,
    /// Second line, if any.
    pub detail: Option<String>,
    /// Advice, if any.
    pub hint: Option<String>,
    /// Character position in the statement, from 1.
    pub position: Option<String>,
    /// Schema, table, column, data type and constraint that the error is about.
    pub objects: [Option<String>; 5],
    /// The server's own statement that failed inside of the client's, if PostgreSQL names one; it is not compared.
    pub inside: Inside,
}

/// A statement of the server's own; all are equal.
#[derive(Debug, Clone, Eq, Default)]
pub struct Inside(pub Option<String>);

impl PartialEq for Inside {
    fn eq(&self, _: &Inside) -> bool {
        true
    }
}

impl Inside {
    /// Whether it follows a foreign key.
    pub fn is_of_foreign_key(&self) -> bool {
        self.0.as_ref().is_some_and(|sql| ["FROM ONLY \"", "UPDATE ONLY \""].iter().any(|words| sql.contains(words)))
    }
}

/// A column of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Label.
    pub name: String,
    /// Type OID, or 0 for a type that a user made: its OID says nothing.
    pub type_oid: u32,
    /// Type modifier.
    pub modifier: i32,
}

/// OIDs from here on are given out at run time.
const FIRST_USER_OID: u32 = 16384;

/// A type's number, 0 for types that statements made: two servers number them as they come.
pub fn known_type(oid: u32) -> u32 {
    if oid < FIRST_USER_OID { oid } else { 0 }
}

/// The name of a schema, without the session's number if it is the one of its temporary tables.
pub fn without_session(schema: String) -> String {
    match schema.strip_prefix("pg_temp_") {
        Some(number) if number.bytes().all(|b| b.is_ascii_digit()) => "pg_temp_N".into(),
        _ => schema,
    }
}

/// One message of an answer, in the order they came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The columns of the rows that follow.
    Columns(Vec<Column>),
    /// Types of a prepared statement's parameters.
    Parameters(Vec<u32>),
    /// A row as text; `None` is NULL.
    Row(Vec<Option<String>>),
    /// A line of COPY TO.
    Copied(String),
    /// The server waits for COPY data.
    CopyIn,
    /// A statement is done, with its tag.
    Done(String),
    /// The statement was empty.
    Empty,
    /// The statement returns no rows (answer to Describe).
    NoData,
    /// A setting that clients are told about has a new value.
    Setting(String, String),
    /// A notification: channel and payload.
    Notified(String, String),
    /// A notice or a warning.
    Notice(Fields),
    /// An error.
    Error(Fields),
    /// The server has not answered for so long that the connection was given up.
    NoAnswer,
}

/// All that came between a message and the next ReadyForQuery.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reply {
    /// The messages.
    pub events: Vec<Event>,
    /// `I` idle, `T` in a block, `E` in a failed block; `None` if the connection was closed.
    pub status: Option<char>,
}

impl Reply {
    /// The first error.
    pub fn error(&self) -> Option<&Fields> {
        self.events.iter().find_map(|event| match event {
            Event::Error(fields) => Some(fields),
            _ => None,
        })
    }

    /// SQLSTATE of the first error, `08006` if the connection ended (or nothing came in time) without one, or `00000`.
    pub fn code(&self) -> &str {
        match self.error() {
            Some(fields) => &fields.code,
            None if self.status.is_none() => "08006",
            None => "00000",
        }
    }

    /// All rows.
    pub fn rows(&self) -> impl Iterator<Item = &[Option<String>]> {
        self.events.iter().filter_map(|event| match event {
            Event::Row(row) => Some(row.as_slice()),
            _ => None,
        })
    }

    /// The single value of a one-row, one-column result, `None` if it is NULL or there is none.
    pub fn value(&self) -> Option<&str> {
        self.rows().next().and_then(|row| row.first()).and_then(|value| value.as_deref())
    }

    /// Puts each run of rows into a fixed order, for results whose order SQL leaves open.
    pub fn sort_rows(&mut self) {
        for run in self.events.chunk_by_mut(|a, b| matches!((a, b), (Event::Row(_), Event::Row(_)))) {
            run.sort_by_cached_key(|event| match event {
                Event::Row(row) => row.clone(),
                _ => Vec::new(),
            });
        }
    }

    /// Forgets columns that an error follows at once: whether a constant's error is found before they are sent or after
    /// is the planner's affair, and no driver shows it.
    pub fn drop_columns_of_errors(&mut self) {
        let events = std::mem::take(&mut self.events);
        let fails = |next: Option<&Event>| matches!(next, Some(Event::Error(_)));
        let kept = events
            .iter()
            .enumerate()
            .filter(|(index, event)| !(matches!(event, Event::Columns(_)) && fails(events.get(index + 1))));
        self.events = kept.map(|(_, event)| event.clone()).collect();
    }

    /// Forgets all of errors and notices but their SQLSTATE.
    pub fn keep_only_codes(&mut self) {
        for event in &mut self.events {
            if let Event::Notice(fields) | Event::Error(fields) = event {
                *fields = Fields { code: std::mem::take(&mut fields.code), ..Fields::default() };
            }
        }
    }
}

impl fmt::Display for Fields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.severity, self.code, self.message)?;
        let named = [("detail", &self.detail), ("hint", &self.hint), ("position", &self.position)];
        let objects = ["schema", "table", "column", "type", "constraint"].into_iter().zip(&self.objects);
        for (name, value) in named.into_iter().chain(objects) {
            if let Some(value) = value {
                write!(f, " | {name}: {value}")?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Event::Columns(columns) => {
                let columns = columns.iter().map(|c| format!("{}:{}:{}", c.name, c.type_oid, c.modifier));
                write!(f, "columns {}", columns.collect::<Vec<_>>().join(", "))
            }
            Event::Parameters(types) => write!(f, "parameters {types:?}"),
            Event::Row(row) => {
                let values = row.iter().map(|value| value.as_deref().map_or("NULL".to_owned(), |v| format!("`{v}`")));
                write!(f, "row {}", values.collect::<Vec<_>>().join(", "))
            }
            Event::Copied(line) => write!(f, "copy `{line}`"),
            Event::CopyIn => write!(f, "copy in"),
            Event::Done(tag) => write!(f, "done {tag}"),
            Event::Empty => write!(f, "empty"),
            Event::NoData => write!(f, "no data"),
            Event::NoAnswer => write!(f, "no answer"),
            Event::Setting(name, value) => write!(f, "setting {name} = {value}"),
            Event::Notified(channel, payload) => write!(f, "notified {channel} {payload}"),
            Event::Notice(fields) | Event::Error(fields) => write!(f, "{fields}"),
        }
    }
}

impl fmt::Display for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for event in &self.events {
            writeln!(f, "    {event}")?;
        }
        match self.status {
            Some(status) => write!(f, "    ready {status}"),
            None => write!(f, "    connection closed"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(text: &str) -> Event {
        Event::Row(vec![Some(text.to_owned())])
    }

    #[test]
    fn sorting_stays_within_a_result() {
        let done = || Event::Done("SELECT 2".to_owned());
        let mut reply =
            Reply { events: vec![row("b"), row("a"), done(), row("d"), row("c"), done()], status: Some('I') };
        reply.sort_rows();
        assert_eq!(reply.events, vec![row("a"), row("b"), done(), row("c"), row("d"), done()]);
    }
}
