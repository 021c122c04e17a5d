//! The text of a script, as records.

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
            while at < lines.len() && !lines[at].trim().is_empty() {
                at += 1;
            }
            let fault = |what: &str| format!("{name}:{start}: {what}: {header}");
            if start == at {
                return Err(fault("a record without SQL"));
            }
            let template = template(header, &connection).map_err(|what| fault(&what))?;
            expand(&template, &lines[start..at], start + 1, &mut records).map_err(|what| fault(&what))?;
        }
        Ok(Script { name: name.to_owned(), records })
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

fn expand(template: &Template, lines: &[&str], first: usize, records: &mut Vec<Record>) -> Result<(), String> {
    let mut push = |line: usize, send: Send| records.push(Record { line, send, ..template.record.clone() });
    let parts = || {
        let middle = lines.iter().position(|line| *line == "----").ok_or("`----` expected")?;
        Ok::<_, String>((lines[..middle].join("\n"), &lines[middle + 1..]))
    };
    match template.kind.as_str() {
        "copy" => {
            let (sql, data) = parts()?;
            push(first, Send::Copy(sql, data.iter().map(|line| format!("{line}\n")).collect()));
        }
        "bind" => {
            let (sql, rows) = parts()?;
            for row in rows {
                let values = row.split('|').filter(|_| !row.is_empty() && *row != "-");
                let values = values.map(|value| (value != "\\N").then(|| value.to_owned()));
                push(first, Send::Bind(sql.clone(), values.collect()));
            }
        }
        "values" => {
            for (index, line) in lines.iter().enumerate() {
                for value in line.strip_suffix(';').unwrap_or(line).split("; ") {
                    push(first + index, Send::Statement(format!("SELECT {value}")));
                }
            }
        }
        "statements" | "queries" => {
            let mut start = 0;
            for (index, line) in lines.iter().enumerate() {
                if line.trim_end().ends_with(';') || index + 1 == lines.len() {
                    push(first + start, Send::Statement(lines[start..=index].join("\n")));
                    start = index + 1;
                }
            }
        }
        _ => push(first, Send::Query(lines.join("\n"))),
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
    fn a_wrong_header_names_its_line() {
        let fault = Script::parse("x", "\nstatemen ok\nSELECT 1\n").expect_err("a slip");
        assert_eq!(fault, "x:2: no such record: statemen ok");
    }
}
