//! The text of a script, as records.

use crate::reply::Reply;
use crate::script::recorded;

/// A parsed file.
#[derive(Debug)]
pub struct Script {
    /// Name for reports.
    pub name: String,
    /// What it does, in order.
    pub records: Vec<Record>,
}

/// One message to both servers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Line of its SQL, from 1.
    pub line: usize,
    /// Name of the connection.
    pub connection: String,
    /// What is sent.
    pub send: Send,
    /// What PostgreSQL must answer.
    pub expect: Expect,
    /// The order of rows is free.
    pub sort: bool,
    /// Errors and notices count by SQLSTATE only.
    pub skip_message: bool,
    /// Never ask for binary results.
    pub text: bool,
    /// The line after which the answer stands, from 1.
    pub end: usize,
    /// What PostgreSQL has answered ([`recorded::lines`]), if that is known.
    pub answer: Option<Vec<String>>,
}

impl Record {
    /// What of an answer to it must be equal.
    pub fn comparable(&self, mut reply: Reply) -> Reply {
        reply.drop_columns_of_errors();
        if self.sort {
            reply.sort_rows();
        }
        if self.skip_message {
            reply.keep_only_codes();
        }
        reply
    }
}

/// A message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Send {
    /// A simple Query, whatever it holds.
    Query(String),
    /// A single statement, by either protocol.
    Statement(String),
    /// A simple Query, and data if asked for.
    Copy(String, String),
    /// A statement by the extended protocol with its parameters.
    Bind(String, Vec<Option<String>>),
}

/// What PostgreSQL must answer, so that the script tests what its author meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expect {
    /// No error.
    Ok,
    /// An error, with this SQLSTATE if given.
    Error(Option<String>),
    /// Anything.
    Any,
}

impl Script {
    /// Parses a file's text. ERRORS name the line.
    pub fn parse(name: &str, text: &str) -> Result<Script, String> {
        let mut records = Vec::new();
        let mut connection = "default".to_owned();
        let lines: Vec<&str> = text.lines().collect();
        let mut at = 0;
        while at < lines.len() {
            let header = lines[at].trim_end();
            at += 1;
            if header.is_empty() || header.starts_with('#') {
                continue;
            }
            if let Some(chosen) = header.strip_prefix("connection ") {
                connection = chosen.trim().to_owned();
                continue;
            }
            let start = at;
            let (mut sql, mut answers) = (Vec::new(), Vec::<Vec<String>>::new());
            while at < lines.len() && !lines[at].trim().is_empty() {
                match (recorded::read(lines[at]), answers.last_mut()) {
                    (Some((false, line)), Some(answer)) => answer.push(line.to_owned()),
                    (Some((_, line)), _) => answers.push(vec![line.to_owned()]),
                    (None, _) => sql.push((at + 1, lines[at])),
                }
                at += 1;
            }
            let fault = |what: &str| format!("{name}:{start}: {what}: {header}");
            if sql.is_empty() {
                return Err(fault("a record without SQL"));
            }
            let template = template(header, &connection).map_err(|what| fault(&what))?;
            let first = records.len();
            expand(&template, &sql, &mut records).map_err(|what| fault(&what))?;
            // Statements that were added or taken away leave it open which answer is whose.
            if answers.len() == records.len() - first {
                let pairs = records[first..].iter_mut().zip(answers);
                pairs.for_each(|(record, answer)| record.answer = Some(answer));
            }
        }
        Ok(Script { name: name.to_owned(), records })
    }

    /// The file's text with these answers, one for each record.
    pub fn answered(&self, text: &str, answers: &[Vec<String>]) -> String {
        let mut pairs = self.records.iter().zip(answers).peekable();
        let mut out = String::new();
        for (index, line) in text.lines().enumerate().filter(|(_, line)| recorded::read(line).is_none()) {
            out.push_str(line);
            out.push('\n');
            while let Some((_, answer)) = pairs.next_if(|(record, _)| record.end == index + 1) {
                out.push_str(&recorded::written(answer));
            }
        }
        out
    }
}

/// A header's meaning: the record to fill, and its kind.
struct Template {
    kind: String,
    record: Record,
}

fn template(header: &str, connection: &str) -> Result<Template, String> {
    let mut words = header.split_whitespace().peekable();
    let kind = words.next().unwrap_or_default().to_owned();
    let expect = match kind.as_str() {
        "query" | "queries" | "values" => Expect::Ok,
        "copy" | "bind" => Expect::Any,
        "statement" | "statements" => match words.next() {
            Some("ok") => Expect::Ok,
            Some("any") => Expect::Any,
            Some("error") => Expect::Error(words.next_if(|word| is_code(word)).map(str::to_owned)),
            _ => return Err("ok, error or any expected".to_owned()),
        },
        _ => return Err("no such record".to_owned()),
    };
    let mut record = Record {
        line: 0,
        connection: connection.to_owned(),
        send: Send::Query(String::new()),
        expect,
        sort: false,
        skip_message: false,
        text: false,
        end: 0,
        answer: None,
    };
    for word in words {
        match word {
            "sort" => record.sort = true,
            "skip-message" => record.skip_message = true,
            "text" => record.text = true,
            _ => return Err(format!("no such modifier `{word}`")),
        }
    }
    Ok(Template { kind, record })
}

fn is_code(word: &str) -> bool {
    word.len() == 5 && word.bytes().all(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase())
}

/// Adds the records that these lines, each with its number in the file, are.
fn expand(template: &Template, lines: &[(usize, &str)], records: &mut Vec<Record>) -> Result<(), String> {
    let mut push =
        |line: usize, end: usize, send: Send| records.push(Record { line, end, send, ..template.record.clone() });
    let joined = |lines: &[(usize, &str)]| lines.iter().map(|(_, line)| *line).collect::<Vec<_>>().join("\n");
    let parts = || {
        let middle = lines.iter().position(|(_, line)| *line == "----").ok_or("`----` expected")?;
        Ok::<_, String>((joined(&lines[..middle]), &lines[middle + 1..]))
    };
    let (first, last) = (lines[0].0, lines[lines.len() - 1].0);
    match template.kind.as_str() {
        "copy" => {
            let (sql, data) = parts()?;
            push(first, last, Send::Copy(sql, data.iter().map(|(_, line)| format!("{line}\n")).collect()));
        }
        "bind" => {
            let (sql, rows) = parts()?;
            for (number, row) in rows {
                let values = row.split('|').filter(|_| !row.is_empty() && *row != "-");
                let values = values.map(|value| (value != "\\N").then(|| value.to_owned()));
                push(first, *number, Send::Bind(sql.clone(), values.collect()));
            }
        }
        "values" => {
            for (number, line) in lines {
                for value in line.strip_suffix(';').unwrap_or(line).split("; ") {
                    push(*number, *number, Send::Statement(format!("SELECT {value}")));
                }
            }
        }
        "statements" | "queries" => {
            let mut start = 0;
            for (index, (number, line)) in lines.iter().enumerate() {
                if line.trim_end().ends_with(';') || index + 1 == lines.len() {
                    push(lines[start].0, *number, Send::Statement(joined(&lines[start..=index])));
                    start = index + 1;
                }
            }
        }
        _ => push(first, last, Send::Query(joined(lines))),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_statement_of_a_plural_record_is_sent_alone() {
        let script = Script::parse(
            "x",
            "# c\nconnection a\nqueries sort\nSELECT 1;\nSELECT\n 2;\n\nquery\nSELECT 3; SELECT 4;\n",
        );
        let records = script.expect("well formed").records;
        let seen: Vec<_> = records.iter().map(|r| (r.line, r.connection.as_str(), r.send.clone(), r.sort)).collect();
        let statement = |sql: &str| Send::Statement(sql.to_owned());
        let expected = vec![
            (4, "a", statement("SELECT 1;"), true),
            (5, "a", statement("SELECT\n 2;"), true),
            (9, "a", Send::Query("SELECT 3; SELECT 4;".to_owned()), false),
        ];
        assert_eq!(seen, expected);
    }

    #[test]
    fn each_value_is_a_statement() {
        let script = Script::parse("x", "values\n1; '2';\n3\n").expect("well formed");
        let seen: Vec<_> = script.records.iter().map(|r| (r.line, r.send.clone())).collect();
        let query = |sql: &str| Send::Statement(sql.to_owned());
        assert_eq!(seen, vec![(2, query("SELECT 1")), (2, query("SELECT '2'")), (3, query("SELECT 3"))]);
    }

    #[test]
    fn parameters_and_data_follow_the_line() {
        let script = Script::parse("x", "bind\nSELECT $1, $2\n----\n1|\\N\n\ncopy\nCOPY t FROM STDIN\n----\na\tb\n");
        let records = script.expect("well formed").records;
        assert_eq!(records[0].send, Send::Bind("SELECT $1, $2".to_owned(), vec![Some("1".to_owned()), None]));
        assert_eq!(records[1].send, Send::Copy("COPY t FROM STDIN".to_owned(), "a\tb\n".to_owned()));
    }

    #[test]
    fn answers_stand_below_what_was_sent() {
        let text = "# c\n\nqueries\nSELECT 1;\nSELECT\n 2;\n\nvalues\n1; 2;\n\nquery\nSELECT 3;\n";
        let script = Script::parse("x", text).expect("well formed");
        let answers: Vec<Vec<String>> = (0..5).map(|n| vec![format!("a {n}"), n.to_string()]).collect();
        let answered = script.answered(text, &answers);
        assert!(
            answered.contains("\nSELECT\n 2;\n> a 1\n| 1\n\nvalues\n1; 2;\n> a 2\n| 2\n> a 3\n| 3\n\n"),
            "{answered}"
        );
        let again = Script::parse("x", &answered).expect("well formed");
        let read: Vec<_> = again.records.iter().filter_map(|record| record.answer.clone()).collect();
        assert_eq!(read, answers);
        let sent = |script: &Script| script.records.iter().map(|record| record.send.clone()).collect::<Vec<_>>();
        assert_eq!(sent(&again), sent(&script));
        assert_eq!(again.answered(&answered, &answers), answered);
        // With a statement more it is open whose the answers are.
        let more =
            Script::parse("x", &answered.replace("\nSELECT 1;\n", "\nSELECT 0;\nSELECT 1;\n")).expect("well formed");
        assert!(more.records[..3].iter().all(|record| record.answer.is_none()) && more.records[3].answer.is_some());
    }

    #[test]
    fn a_wrong_header_names_its_line() {
        let fault = Script::parse("x", "\nstatemen ok\nSELECT 1\n").expect_err("a slip");
        assert_eq!(fault, "x:2: no such record: statemen ok");
    }
}
