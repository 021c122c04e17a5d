//! The list of known differences: it may only shrink.
//!
//! A script fails on a difference that is not in the list, and on one in the list that is no longer there. So a mended
//! difference leaves the list, and a new one is seen. Entries name the statement, not its line, so that editing a
//! script does not disturb them.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use crate::script::run::Difference;
use crate::script::summary;

/// The list, as read from a file of lines `TEST <tab> OCCURRENCE <tab> KIND <tab> STATEMENT`.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Known {
    /// By test, statement, and how often the test has sent that statement before: the kind of the difference.
    entries: BTreeMap<(String, String, usize), String>,
}

impl Known {
    /// Reads the list; a file that is not there is an empty list.
    ///
    /// PANICS on a line of another form.
    pub fn read(path: &Path) -> Known {
        Known::parse(&std::fs::read_to_string(path).unwrap_or_default())
    }

    fn parse(text: &str) -> Known {
        let entries = text.lines().filter(|line| !line.starts_with('#')).map(|line| {
            let mut parts = line.splitn(4, '\t');
            let mut part = || parts.next().unwrap_or_else(|| panic!("a known difference has four parts: {line}"));
            let (test, occurrence, kind, sql) = (part(), part(), part(), part());
            let occurrence = occurrence.parse().expect("the second part is a number");
            ((test.to_owned(), sql.to_owned(), occurrence), kind.to_owned())
        });
        Known { entries: entries.collect() }
    }

    /// The file's text.
    pub fn text(&self) -> String {
        let mut text = "# Known differences from PostgreSQL: test, occurrence, kind, statement. UPDATE_GOLDEN=1 rewrites this file.\n"
            .to_owned();
        for ((test, sql, occurrence), kind) in &self.entries {
            let _ = writeln!(text, "{test}\t{occurrence}\t{kind}\t{sql}");
        }
        text
    }

    /// Adds a difference of a test.
    pub fn add(&mut self, test: &str, difference: &Difference) {
        let kind = summary::kind(&difference.reference, &difference.subject).replace('\n', " ");
        self.entries.insert(key(test, difference), kind);
    }

    /// Whether a difference is in the list.
    pub fn has(&self, test: &str, difference: &Difference) -> bool {
        self.entries.contains_key(&key(test, difference))
    }

    /// Statements of a test that are in the list but no longer differ.
    pub fn mended(&self, test: &str, differences: &[Difference]) -> Vec<String> {
        let seen: Vec<_> = differences.iter().map(|difference| key(test, difference)).collect();
        let listed = self.entries.keys().filter(|(of, ..)| of == test);
        listed.filter(|entry| !seen.contains(entry)).map(|(_, sql, _)| sql.clone()).collect()
    }
}

fn key(test: &str, difference: &Difference) -> (String, String, usize) {
    (test.to_owned(), difference.sent.replace('\\', "\\\\").replace('\n', "\\n"), difference.occurrence)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reply::Reply;

    fn difference(sql: &str, occurrence: usize) -> Difference {
        Difference {
            place: String::new(),
            sent: sql.to_owned(),
            occurrence,
            what: String::new(),
            reference: Reply { status: Some('I'), ..Reply::default() },
            subject: Reply::default(),
        }
    }

    #[test]
    fn the_list_survives_its_file_and_tells_what_is_mended() {
        let mut known = Known::default();
        known.add("a", &difference("SELECT\n'\\'", 1));
        known.add("a", &difference("SELECT 2", 0));
        known.add("b", &difference("SELECT 3", 0));
        let again = Known::parse(&known.text());
        assert_eq!(again, known);
        let found = [difference("SELECT\n'\\'", 1)];
        assert!(again.has("a", &found[0]) && !again.has("a", &difference("SELECT 2", 1)));
        assert_eq!(again.mended("a", &found), ["SELECT 2"]);
    }
}
