//! Many differences in few lines: which kinds there are, the commonest first.

use std::collections::BTreeMap;
use std::fmt;

use crate::reply::{Event, Fields, Reply};
use crate::script::run::Difference;

/// How much of a message tells one kind from another.
const MESSAGE_CHARS: usize = 70;

/// Counts of differences by kind, with an example's place for each.
#[derive(Debug, Default)]
pub struct Summary {
    kinds: BTreeMap<String, (usize, String)>,
}

impl Summary {
    /// Counts a difference in.
    pub fn add(&mut self, difference: &Difference) {
        let kind = kind(&difference.reference, &difference.subject);
        self.kinds.entry(kind).or_insert_with(|| (0, difference.place.clone())).0 += 1;
    }
}

/// What kind of difference it is.
pub(super) fn kind(reference: &Reply, subject: &Reply) -> String {
    if subject.status.is_none() {
        return "the connection is lost".to_owned();
    }
    match (reference.error(), subject.error()) {
        (None, Some(fields)) => format!("refused: {} {}", fields.code, shortened(&fields.message)),
        (Some(fields), None) => format!("accepted, PostgreSQL says: {} {}", fields.code, shortened(&fields.message)),
        (Some(right), Some(wrong)) if right != wrong => error_kind(right, wrong),
        _ => answer_kind(reference, subject),
    }
}

fn error_kind(right: &Fields, wrong: &Fields) -> String {
    if right.code != wrong.code {
        return format!("{} instead of {}: {}", wrong.code, right.code, shortened(&wrong.message));
    }
    let what = [
        ("message", right.message != wrong.message),
        ("detail", right.detail != wrong.detail),
        ("hint", right.hint != wrong.hint),
        ("position", right.position != wrong.position),
        ("named objects", right.objects != wrong.objects),
        ("severity", right.severity != wrong.severity),
    ];
    let wrong_fields: Vec<&str> = what.into_iter().filter(|(_, differs)| *differs).map(|(name, _)| name).collect();
    format!("{} with another {}", right.code, wrong_fields.join(", "))
}

/// Which kind of message is the first to differ.
fn answer_kind(reference: &Reply, subject: &Reply) -> String {
    let pairs = reference.events.iter().zip(&subject.events);
    let first = pairs.filter(|(right, wrong)| right != wrong).map(|(right, wrong)| (name(right), name(wrong))).next();
    match first {
        Some((right, wrong)) if right == wrong => format!("other {right}"),
        Some((right, wrong)) => format!("{wrong} instead of {right}"),
        None if reference.events.len() != subject.events.len() => "more or fewer messages".to_owned(),
        None => "another transaction status".to_owned(),
    }
}

fn name(event: &Event) -> &'static str {
    match event {
        Event::Columns(_) => "columns",
        Event::Parameters(_) => "parameter types",
        Event::Row(_) => "values",
        Event::Copied(_) => "COPY lines",
        Event::CopyIn => "CopyInResponse",
        Event::Done(_) => "tag",
        Event::Empty => "EmptyQueryResponse",
        Event::NoData => "NoData",
        Event::Setting(..) => "ParameterStatus",
        Event::Notified(..) => "notification",
        Event::Notice(_) => "notice",
        Event::Error(_) => "error",
        Event::NoAnswer => "no answer",
    }
}

/// The start of a message, with names and numbers in quotes left out, so that like messages count together.
fn shortened(message: &str) -> String {
    let mut quoted = false;
    let kept = message.chars().filter(|char| {
        let keep = !quoted || *char == '"';
        quoted ^= *char == '"';
        keep
    });
    kept.take(MESSAGE_CHARS).collect()
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut kinds: Vec<_> = self.kinds.iter().collect();
        kinds.sort_by_key(|(_, (count, _))| std::cmp::Reverse(*count));
        for (kind, (count, place)) in kinds {
            writeln!(f, "{count:6}  {kind}  ({place})")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(code: &str, message: &str) -> Reply {
        let fields = Fields { code: code.to_owned(), message: message.to_owned(), ..Fields::default() };
        Reply { events: vec![Event::Error(fields)], status: Some('I') }
    }

    #[test]
    fn kinds_of_differences() {
        let fine = Reply { events: vec![Event::Done("SELECT 1".to_owned())], status: Some('I') };
        assert_eq!(kind(&fine, &error("0A000", "no \"x\" yet")), "refused: 0A000 no \"\" yet");
        assert_eq!(kind(&error("42703", "a"), &error("42703", "b")), "42703 with another message");
        assert_eq!(kind(&error("42703", "a"), &error("42P01", "b")), "42P01 instead of 42703: b");
        assert_eq!(kind(&fine, &Reply::default()), "the connection is lost");
    }
}
