//! Answers as scripts carry them, so that a reader sees what is right and a run without PostgreSQL can tell.
//!
//! Below what is sent stands what PostgreSQL has answered by the simple protocol: a line that begins with `> ` and further ones that begin
//! with `| `.
//!
//! ```text
//! SELECT 1 AS a, 'x' AS b;
//! > a integer, b text
//! | 1, x
//! ```
//!
//! Values stand in backticks, with escapes, where they could be misread. Of long results the first rows are there, and a hash of the
//! others. `> ?` is an answer that changes from run to run.

use std::hash::Hasher;

use rustc_hash::FxHasher;

use crate::reply::{Column, Event, Reply};

/// Rows of a result that are written out.
const ROWS_SHOWN: usize = 20;

/// What begins an answer, and what goes on with it.
const FIRST: &str = "> ";
const NEXT: &str = "| ";

/// The answer to what is not answered alike twice.
pub const CHANGES: &str = "?";

/// What the time, chance or the machine has a part in.
const CHANGING: &[&str] = &[
    "current_date",
    "current_time",
    "localtime",
    "now()",
    "'now",
    "'today",
    "'tomorrow",
    "'yesterday",
    "clock_timestamp",
    "statement_timestamp",
    "transaction_timestamp",
    "timeofday",
    "random()",
    "gen_random_bytes",
    "gen_random_uuid",
    "age(",
    "uuid_generate_v1",
    "uuid_generate_v4",
    "gen_salt",
    "_pid()",
    "pg_timezone",
];

/// Whether the answer to a text may be another tomorrow.
pub fn may_change(sent: &str) -> bool {
    let sent = sent.to_lowercase();
    // A word that goes on to the left is another.
    let is_word = |at: usize| !sent[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
    CHANGING.iter().any(|word| sent.match_indices(word).any(|(at, _)| word.starts_with('_') || is_word(at)))
}

/// An answer as lines.
pub fn lines(reply: &Reply) -> Vec<String> {
    let mut lines = Vec::new();
    let (mut rows, mut copied) = (Vec::<String>::new(), String::new());
    for event in &reply.events {
        if let Event::Row(row) = event {
            rows.push(row.iter().map(|value| shown(value.as_deref())).collect::<Vec<_>>().join(", "));
            continue;
        }
        // Where the pieces of COPY TO begin says nothing.
        if let Event::Copied(piece) = event {
            copied.push_str(piece);
            continue;
        }
        lines.extend(std::mem::take(&mut copied).lines().map(|line| format!("copy {}", shown(Some(line)))));
        let count = rows.len();
        put_rows(&mut lines, std::mem::take(&mut rows));
        match event {
            Event::Columns(columns) if columns.is_empty() => lines.push("no columns".to_owned()),
            Event::Columns(columns) => lines.push(columns.iter().map(head).collect::<Vec<_>>().join(", ")),
            Event::Done(tag) if *tag == format!("SELECT {count}") && lines.len() > usize::from(count > 0) => {}
            Event::Done(tag) => lines.push(tag.clone()),
            other => lines.push(escaped(&other.to_string())),
        }
    }
    put_rows(&mut lines, rows);
    match reply.status {
        Some('I') => {}
        Some(status) => lines.push(format!("ready {status}")),
        None => lines.push("connection closed".to_owned()),
    }
    lines
}

/// An answer in a script.
pub fn written(lines: &[String]) -> String {
    let mark = |(index, line): (usize, &String)| format!("{}{line}\n", if index == 0 { FIRST } else { NEXT });
    lines.iter().enumerate().map(mark).collect()
}

/// What a line of a script says of an answer: whether it begins one, and its text. `None`: it is no part of an answer.
pub fn read(line: &str) -> Option<(bool, &str)> {
    let first = line.strip_prefix(FIRST).map(|text| (true, text));
    first.or_else(|| line.strip_prefix(NEXT).map(|text| (false, text)))
}

fn head(column: &Column) -> String {
    let ty = match column.type_oid {
        0 => "?".to_owned(),
        oid => types::format_type(base::Oid(oid), column.modifier),
    };
    format!("{} {ty}", shown(Some(&column.name)))
}

fn put_rows(lines: &mut Vec<String>, rows: Vec<String>) {
    let more = rows.len().saturating_sub(ROWS_SHOWN);
    let mut hasher = FxHasher::default();
    for row in rows.iter().skip(ROWS_SHOWN) {
        hasher.write(row.as_bytes());
        // No text has this byte: where a row ends matters.
        hasher.write_u8(0xff);
    }
    lines.extend(rows.into_iter().take(ROWS_SHOWN));
    if more > 0 {
        lines.push(format!("and {more} more rows: {:016x}", hasher.finish()));
    }
}

fn shown(value: Option<&str>) -> String {
    let Some(value) = value else { return "NULL".to_owned() };
    let is_plain = !value.is_empty()
        && value != "NULL"
        && value.trim() == value
        && !value.contains(", ")
        && !value.chars().any(|c| c.is_control() || c == '`');
    if is_plain { value.to_owned() } else { format!("`{}`", escaped(&value.replace('\\', "\\\\").replace('`', "\\`"))) }
}

/// A text without control characters.
fn escaped(text: &str) -> String {
    let one = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
    text.chars().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_chance_has_a_part_in_is_told_by_whole_words() {
        for sent in ["SELECT Random()", "SELECT x, age(y)", "SELECT pg_backend_pid()", "SELECT 'now'::timestamp"] {
            assert!(may_change(sent), "{sent}");
        }
        for sent in ["SHOW random_page_cost", "SELECT pg_message(1)", "SELECT 1"] {
            assert!(!may_change(sent), "{sent}");
        }
    }

    #[test]
    fn values_are_told_apart() {
        let values = [None, Some("NULL"), Some(""), Some("a, b"), Some("a"), Some("`\\\n")];
        assert_eq!(values.map(shown), ["NULL", "`NULL`", "``", "`a, b`", "a", "`\\`\\\\\\n`"]);
    }

    #[test]
    fn an_answer_is_read_as_it_is_written() {
        let row = |text: &str| Event::Row(vec![Some(text.to_owned())]);
        let columns = Event::Columns(vec![Column { name: "a".to_owned(), type_oid: 1043, modifier: 7 }]);
        let mut events = vec![columns];
        events.extend((0..30).map(|number| row(&number.to_string())));
        events.push(Event::Done("SELECT 30".to_owned()));
        let lines = lines(&Reply { events, status: Some('T') });
        assert_eq!(lines.len(), 1 + ROWS_SHOWN + 2);
        assert_eq!((lines[0].as_str(), lines[1].as_str()), ("a character varying(3)", "0"));
        assert!(lines[ROWS_SHOWN + 1].starts_with("and 10 more rows: "), "{lines:?}");
        let text = written(&lines);
        let again: Vec<(bool, &str)> = text.lines().filter_map(read).collect();
        assert_eq!(again.iter().map(|(_, line)| *line).collect::<Vec<_>>(), lines);
        assert!(again[0].0 && again[1..].iter().all(|(first, _)| !first));
    }
}
