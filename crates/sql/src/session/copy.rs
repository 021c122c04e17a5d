//! COPY FROM STDIN and COPY TO STDOUT, in text, CSV and binary format.
//!
//! Responsible for: options, splitting the stream into rows and fields, escapes, error context (`COPY t, line 3`).
//! Not responsible for: storing rows – they go through the plan of `INSERT INTO t (…) VALUES ($1, …)`, so that defaults,
//! constraints and foreign keys are those of any INSERT.

mod binary;

use std::fmt::Write as _;
use std::sync::Arc;

use base::{Error, Result, SqlState};
use engine_api::{TableDesc, TableKind, Wait};
use rupg_sql::nodes::{CopyStmt, Node};
use types::{Datum, OutputSettings};

use super::block::{number_of, text_of};
use super::extended::utf8;
use super::internal::NoRows;
use super::query::read_only_error;
use super::statement::Kind;
use super::{Output, ResultColumn, Session};
use crate::ddl::{self, quote_name};
use crate::exec::Execution;
use crate::ir::Ty;
use crate::parse;

/// Rows between two turns for other connections of the core.
const ROWS_PER_TURN: u64 = 200;

/// The longest line that is accepted: PostgreSQL's limit of a string.
const LINE_BYTES_MAX: usize = 1 << 30;

#[derive(Clone, Debug, PartialEq)]
struct Format {
    binary: bool,
    csv: bool,
    header: bool,
    /// The header must have the columns' names.
    match_header: bool,
    delimiter: u8,
    null: String,
    quote: u8,
    escape: u8,
    force_quote_all: bool,
    /// Columns by name: quoted always; empty text instead of NULL; NULL also when quoted.
    force_quote: Vec<String>,
    force_not_null: Vec<String>,
    force_null: Vec<String>,
}

impl Format {
    fn parse(options: &[Option<Node>], is_from: bool, sql: &str) -> Result<Format> {
        let mut given: Vec<&str> = Vec::new();
        let (mut csv, mut binary) = (false, false);
        let (mut header, mut match_header, mut force_quote_all) = (false, false, false);
        let (mut delimiter, mut null, mut quote, mut escape) = (None, None, None, None);
        let (mut force_quote, mut force_not_null, mut force_null) = (Vec::new(), Vec::new(), Vec::new());
        for node in options.iter().flatten() {
            let Node::DefElem(option) = node else { continue };
            let name = option.defname.as_deref().unwrap_or_default();
            if given.contains(&name) {
                return Err(Error::new(SqlState::SYNTAX_ERROR, "conflicting or redundant options")
                    .at_byte(sql, option.location));
            }
            given.push(name);
            let names = || match &option.arg {
                Some(Node::List(list)) => list.iter().flatten().filter_map(text_of).collect(),
                _ => Vec::new(),
            };
            let text = || option.arg.as_ref().and_then(text_of).unwrap_or_default();
            match option.defname.as_deref().unwrap_or_default() {
                "format" => match text().as_str() {
                    "text" => csv = false,
                    "csv" => csv = true,
                    "binary" => binary = true,
                    other => {
                        return Err(Error::new(
                            SqlState::INVALID_PARAMETER_VALUE,
                            format!("COPY format \"{other}\" not recognized"),
                        )
                        .at_byte(sql, option.location));
                    }
                },
                "header" => {
                    (header, match_header) = header_choice(option.arg.as_ref())?;
                    if match_header && !is_from {
                        let message = "cannot use \"match\" with HEADER in COPY TO";
                        return Err(Error::new(SqlState::FEATURE_NOT_SUPPORTED, message));
                    }
                }
                "delimiter" => delimiter = Some(text()),
                "null" => null = Some(text()),
                "quote" => quote = Some(text()),
                "escape" => escape = Some(text()),
                "force_quote" if matches!(option.arg, Some(Node::A_Star(_))) => force_quote_all = true,
                "force_quote" => force_quote = names(),
                "force_not_null" => force_not_null = names(),
                "force_null" => force_null = names(),
                // Rows are visible to nobody else before commit whatever this says.
                "freeze" => {}
                "encoding" if text().eq_ignore_ascii_case("utf8") || text().eq_ignore_ascii_case("utf-8") => {}
                "encoding" => return Err(Error::unsupported("COPY in this encoding is not supported")),
                other => {
                    let message = format!("option \"{other}\" not recognized");
                    return Err(Error::new(SqlState::SYNTAX_ERROR, message).at_byte(sql, option.location));
                }
            }
        }
        if binary {
            for (given, name) in [(delimiter.is_some(), "DELIMITER"), (null.is_some(), "NULL")] {
                if given {
                    return Err(Error::new(SqlState::SYNTAX_ERROR, format!("cannot specify {name} in BINARY mode")));
                }
            }
        }
        let byte = |text: Option<String>, default: u8, what: &str| match text {
            None => Ok(default),
            Some(t) if t.len() == 1 => Ok(t.as_bytes()[0]),
            Some(_) => Err(Error::unsupported(format!("COPY {what} must be a single one-byte character"))),
        };
        let for_csv_only = [
            (quote.is_some(), "quote"),
            (escape.is_some(), "escape"),
            (force_quote_all || !force_quote.is_empty(), "force quote"),
            (!force_not_null.is_empty(), "force not null"),
            (!force_null.is_empty(), "force null"),
        ];
        let delimiter = byte(delimiter, if csv { b',' } else { b'\t' }, "delimiter")?;
        let invalid = |message: String| Err(Error::new(SqlState::INVALID_PARAMETER_VALUE, message));
        if matches!(delimiter, b'\n' | b'\r') {
            return invalid("COPY delimiter cannot be newline or carriage return".to_owned());
        }
        if null.as_deref().is_some_and(|text| text.contains(['\n', '\r'])) {
            return invalid("COPY null representation cannot use newline or carriage return".to_owned());
        }
        if !csv
            && !binary
            && (delimiter.is_ascii_lowercase() || delimiter.is_ascii_digit() || b"\\.".contains(&delimiter))
        {
            return invalid(format!("COPY delimiter cannot be \"{}\"", delimiter as char));
        }
        if let (false, Some((_, what))) = (csv, for_csv_only.iter().find(|(given, _)| *given)) {
            return Err(Error::unsupported(format!("COPY {what} available only in CSV mode")));
        }
        let quote = byte(quote, b'"', "quote")?;
        if csv && quote == delimiter {
            return invalid("COPY delimiter and quote must be different".to_owned());
        }
        if null.as_deref().is_some_and(|text| text.as_bytes().contains(&delimiter)) {
            return Err(Error::unsupported("COPY delimiter must not appear in the NULL specification"));
        }
        Ok(Format {
            binary,
            csv,
            header,
            match_header,
            delimiter,
            null: null.unwrap_or_else(|| if csv { String::new() } else { "\\N".to_string() }),
            quote,
            escape: byte(escape, quote, "escape")?,
            force_quote_all,
            force_quote,
            force_not_null,
            force_null,
        })
    }
}

/// `HEADER` with its word: whether there is a header, and whether it must match.
fn header_choice(arg: Option<&Node>) -> Result<(bool, bool)> {
    let Some(arg) = arg else { return Ok((true, false)) };
    match number_of(arg) {
        Some(0) => return Ok((false, false)),
        Some(1) => return Ok((true, false)),
        _ => {}
    }
    match text_of(arg).unwrap_or_default().to_ascii_lowercase().as_str() {
        "true" | "on" => Ok((true, false)),
        "false" | "off" => Ok((false, false)),
        "match" => Ok((true, true)),
        _ => Err(Error::new(SqlState::SYNTAX_ERROR, "header requires a Boolean value or \"match\"")),
    }
}

pub(super) async fn copy(session: &mut Session, stmt: &CopyStmt, sql: &str, out: &mut dyn Output) -> Result<String> {
    if stmt.filename.is_some() || stmt.is_program {
        return Err(Error::unsupported("COPY to or from a file on the server is not supported")
            .hint("Use COPY FROM STDIN or COPY TO STDOUT; psql's \\copy does."));
    }
    if stmt.whereClause.is_some() {
        return Err(Error::unsupported("COPY FROM with WHERE is not supported"));
    }
    let format = Format::parse(&stmt.options, stmt.is_from, sql)?;
    session.ensure_transaction()?;
    if stmt.is_from {
        copy_from(session, stmt, sql, format, out).await
    } else {
        copy_to(session, stmt, sql, format, out).await
    }
}

/// The columns a COPY is about: those named, or all.
fn columns_of(table: &TableDesc, stmt: &CopyStmt) -> Result<Vec<usize>> {
    if stmt.attlist.is_empty() {
        return Ok(table.live_columns().map(|c| c.number as usize - 1).collect());
    }
    let mut columns = Vec::new();
    for node in stmt.attlist.iter().flatten() {
        let name = text_of(node).unwrap_or_default();
        let column = table.column(&name).ok_or_else(|| {
            Error::new(
                SqlState::UNDEFINED_COLUMN,
                format!("column \"{name}\" of relation \"{}\" does not exist", table.name),
            )
        })?;
        let at = column.number as usize - 1;
        if columns.contains(&at) {
            return Err(Error::new(SqlState::DUPLICATE_COLUMN, format!("column \"{name}\" specified more than once")));
        }
        columns.push(at);
    }
    Ok(columns)
}

fn names(table: &TableDesc, columns: &[usize]) -> String {
    columns.iter().map(|&c| quote_name(&table.columns[c].name)).collect::<Vec<_>>().join(", ")
}

async fn copy_from(
    session: &mut Session,
    stmt: &CopyStmt,
    sql: &str,
    format: Format,
    out: &mut dyn Output,
) -> Result<String> {
    let name = stmt.relation.as_deref().ok_or_else(|| Error::internal("COPY FROM without a table"))?;
    let table = ddl::relation_desc(session, name, sql).map_err(without_position)?;
    if let Some(message) = match table.kind {
        TableKind::Table => None,
        TableKind::View => Some(format!("cannot copy to view \"{}\"", table.name)),
        TableKind::MaterializedView => Some(format!("cannot copy to materialized view \"{}\"", table.name)),
    } {
        let error = Error::new(SqlState::WRONG_OBJECT_TYPE, message);
        let hint = "To enable copying to a view, provide an INSTEAD OF INSERT trigger.";
        return Err(if table.kind == TableKind::View { error.hint(hint) } else { error });
    }
    if session.is_read_only() {
        return Err(read_only_error("COPY FROM"));
    }
    let columns = columns_of(&table, stmt)?;
    let mut insert =
        format!("INSERT INTO {} ({}) VALUES (", ddl::qualified_name(session, &table), names(&table, &columns));
    for i in 0..columns.len() {
        let _ = write!(insert, "{}${}", if i > 0 { ", " } else { "" }, i + 1);
    }
    insert.push(')');
    let types: Vec<_> = columns.iter().map(|&c| table.columns[c].type_oid).collect();
    let mut parsed = parse::parse(&insert)?;
    let node = parsed.pop().ok_or_else(|| Error::internal("no INSERT of our own"))?.node;
    let statement = Arc::new(session.bind_query(&node, &insert, &types, 0, true)?);
    let statement = session.begin_query(&statement).await?;
    let Kind::Query(query) = &statement.kind else { return Err(Error::internal("not a query")) };
    out.copy_in(format.binary, columns.len());
    out.flush().await?;
    let mut loader = Loader {
        execution: Execution::new(Arc::clone(&query.plan), Vec::new()),
        tys: columns.iter().map(|&c| Ty { oid: table.columns[c].type_oid, typmod: table.columns[c].typmod }).collect(),
        names: columns.iter().map(|&c| table.columns[c].name.clone()).collect(),
        table: table.name.clone(),
        format,
        line: 0,
        rows: 0,
        begun: false,
        ended: false,
    };
    let mut pending: Vec<u8> = Vec::new();
    let mut chunk = Vec::new();
    loop {
        let more = out.next_copy(&mut chunk).await?;
        pending.extend_from_slice(&chunk);
        let used = match loader.format.binary {
            true => loader.load_binary(session, &pending, !more).await?,
            false => loader.load(session, &pending, !more).await?,
        };
        pending.drain(..used);
        if pending.len() > LINE_BYTES_MAX {
            return Err(Error::new(SqlState::PROGRAM_LIMIT_EXCEEDED, "a line of COPY data is too long"));
        }
        if !more {
            break;
        }
    }
    session.end_query(out);
    Ok(format!("COPY {}", loader.rows))
}

/// Turns bytes into rows.
struct Loader {
    execution: Execution,
    tys: Vec<Ty>,
    names: Vec<String>,
    table: String,
    format: Format,
    line: u64,
    rows: u64,
    /// The header of the binary format was read.
    begun: bool,
    /// `\.` or the binary trailer was seen: the rest is ignored.
    ended: bool,
}

impl Loader {
    /// Loads every complete line of `data` (and the last one without a newline if `last`). Answers the bytes used.
    async fn load(&mut self, session: &mut Session, data: &[u8], last: bool) -> Result<usize> {
        let mut at = 0;
        while at < data.len() {
            if self.ended {
                return Ok(data.len());
            }
            let Some((line, used)) = self.next_line(&data[at..], last)? else { break };
            at += used;
            self.line += 1 + self.breaks(line);
            if line == b"\\." {
                self.ended = true;
                continue;
            }
            if self.line == 1 && self.format.header {
                if self.format.match_header {
                    self.check_header(line)?;
                }
                continue;
            }
            self.row(session, line).await?;
            if self.rows.is_multiple_of(ROWS_PER_TURN) {
                session.wait_in_transaction(Wait::yield_now()).await?;
            }
        }
        Ok(at)
    }

    /// The names of the header line must be those of the columns.
    fn check_header(&self, line: &[u8]) -> Result<()> {
        let shown = || format!("COPY {}, line {}: \"{}\"", self.table, self.line, String::from_utf8_lossy(line));
        let refused = |message: String| Error::new(SqlState::BAD_COPY_FILE_FORMAT, message).context(shown());
        let text = utf8(line).map_err(|e| e.context(shown()))?;
        let fields = if self.format.csv { self.csv_fields(text)? } else { self.text_fields(text)? };
        if fields.len() != self.names.len() {
            let (got, expected) = (fields.len(), self.names.len());
            return Err(refused(format!("wrong number of fields in header line: got {got}, expected {expected}")));
        }
        for (number, (field, name)) in fields.iter().zip(&self.names).enumerate() {
            let message = match field {
                Some(field) if field == name => continue,
                Some(field) => format!("got \"{field}\", expected \"{name}\""),
                None => format!("got null value (\"{}\"), expected \"{name}\"", self.format.null),
            };
            return Err(refused(format!("column name mismatch in header line field {}: {message}", number + 1)));
        }
        Ok(())
    }

    /// Loads every complete tuple of the binary format. Answers the bytes used.
    async fn load_binary(&mut self, session: &mut Session, data: &[u8], last: bool) -> Result<usize> {
        let mut at = 0;
        if !self.begun {
            let Some(used) = binary::header(data)? else {
                return if last { Err(binary::not_recognized()) } else { Ok(0) };
            };
            self.begun = true;
            at = used;
        }
        while !self.ended {
            self.line += 1;
            let tuple = binary::tuple(&data[at..], &self.names).map_err(|e| self.in_row(e))?;
            match tuple {
                binary::Tuple::Row { fields, used } => {
                    let mut params = Vec::with_capacity(fields.len());
                    for (i, field) in fields.into_iter().enumerate() {
                        let value = match field {
                            None => Datum::Null,
                            Some(bytes) => binary::value(self.tys[i], bytes).map_err(|e| {
                                let place =
                                    format!("COPY {}, line {}, column {}", self.table, self.line, self.names[i]);
                                e.context(place)
                            })?,
                        };
                        params.push(value);
                    }
                    self.insert(session, params).await.map_err(|e| self.in_row(e))?;
                    at += used;
                }
                binary::Tuple::End => self.ended = true,
                // The trailer may be missing.
                binary::Tuple::Incomplete if last && at == data.len() => self.ended = true,
                binary::Tuple::Incomplete if last => {
                    return Err(self.in_row(Error::new(SqlState::BAD_COPY_FILE_FORMAT, "unexpected EOF in COPY data")));
                }
                binary::Tuple::Incomplete => {
                    self.line -= 1;
                    return Ok(at);
                }
            }
            if self.rows.is_multiple_of(ROWS_PER_TURN) {
                session.wait_in_transaction(Wait::yield_now()).await?;
            }
        }
        Ok(data.len())
    }

    fn in_row(&self, error: Error) -> Error {
        if error.fields().context.is_some() {
            return error;
        }
        error.context(format!("COPY {}, line {}", self.table, self.line))
    }

    /// Stores one row.
    async fn insert(&mut self, session: &mut Session, params: Vec<Datum>) -> Result<()> {
        self.execution.reset(params);
        session.drive_into(&mut self.execution, &mut NoRows).await?;
        self.rows += 1;
        Ok(())
    }

    /// The next line without its end, and the bytes it takes with it; `None` if it is not complete.
    fn next_line<'a>(&self, data: &'a [u8], last: bool) -> Result<Option<(&'a [u8], usize)>> {
        let end = match self.format.csv {
            false => memchr::memchr(b'\n', data),
            true => self.csv_line_end(data),
        };
        let (line, used) = match end {
            Some(end) => (&data[..end], end + 1),
            None if last => (data, data.len()),
            None => return Ok(None),
        };
        if end.is_none() && self.format.csv && self.in_quotes(line) {
            let at = self.line + 1 + self.breaks(line.strip_suffix(b"\n").unwrap_or(line));
            let context = format!("COPY {}, line {at}: \"{}\"", self.table, String::from_utf8_lossy(line));
            let error = Error::new(SqlState::BAD_COPY_FILE_FORMAT, "unterminated CSV quoted field");
            return Err(error.context(context));
        }
        Ok(Some((line.strip_suffix(b"\r").unwrap_or(line), used)))
    }

    /// Line breaks inside of a CSV row: errors count lines of the file.
    fn breaks(&self, line: &[u8]) -> u64 {
        if self.format.csv { memchr::memchr_iter(b'\n', line).count() as u64 } else { 0 }
    }

    fn csv_line_end(&self, data: &[u8]) -> Option<usize> {
        let mut quoted = false;
        let mut i = 0;
        while i < data.len() {
            match data[i] {
                b if quoted && b == self.format.escape && self.format.escape != self.format.quote => i += 1,
                b if b == self.format.quote => quoted = !quoted,
                b'\n' if !quoted => return Some(i),
                _ => {}
            }
            i += 1;
        }
        None
    }

    fn in_quotes(&self, line: &[u8]) -> bool {
        line.iter().filter(|&&b| b == self.format.quote).count() % 2 == 1
    }

    async fn row(&mut self, session: &mut Session, line: &[u8]) -> Result<()> {
        let text = utf8(line).map_err(|e| e.context(format!("COPY {}, line {}", self.table, self.line)))?;
        let fields = if self.format.csv { self.csv_fields(text)? } else { self.text_fields(text)? };
        let shown = || if text.len() > 100 { format!("{}...", clip(text, 100)) } else { text.to_string() };
        let in_line = |e: Error| e.context(format!("COPY {}, line {}: \"{}\"", self.table, self.line, shown()));
        if fields.len() > self.tys.len() {
            return Err(in_line(Error::new(SqlState::BAD_COPY_FILE_FORMAT, "extra data after last expected column")));
        }
        if fields.len() < self.tys.len() {
            let missing = &self.names[fields.len()];
            return Err(in_line(Error::new(
                SqlState::BAD_COPY_FILE_FORMAT,
                format!("missing data for column \"{missing}\""),
            )));
        }
        let mut params = Vec::with_capacity(fields.len());
        for (i, field) in fields.iter().enumerate() {
            let value = match field {
                None => Datum::Null,
                Some(text) => session.parse_value(self.tys[i], text).map_err(|e| {
                    e.context(format!(
                        "COPY {}, line {}, column {}: \"{}\"",
                        self.table,
                        self.line,
                        self.names[i],
                        clip(text, 100)
                    ))
                })?,
            };
            params.push(value);
        }
        self.insert(session, params).await.map_err(|error| match error.fields().context {
            Some(_) => error,
            // PostgreSQL enters rows into indexes in bunches, and then has their lines no more.
            None if error.code() == SqlState::UNIQUE_VIOLATION => {
                error.context(format!("COPY {}, line {}", self.table, self.line))
            }
            None => error.context(format!("COPY {}, line {}: \"{}\"", self.table, self.line, shown())),
        })
    }

    fn text_fields(&self, line: &str) -> Result<Vec<Option<String>>> {
        let mut fields = Vec::with_capacity(self.tys.len());
        if self.tys.is_empty() && line.is_empty() {
            return Ok(fields);
        }
        let bytes = line.as_bytes();
        let mut start = 0;
        loop {
            let mut end = start;
            let mut escaped = false;
            while end < bytes.len() && bytes[end] != self.format.delimiter {
                if bytes[end] == b'\\' {
                    escaped = true;
                    end += 1;
                }
                end += 1;
            }
            let end = end.min(bytes.len());
            let raw = &line[start..end];
            fields.push(if raw == self.format.null {
                None
            } else if escaped {
                let plain = unescape(raw.as_bytes());
                Some(utf8(&plain)?.to_string())
            } else {
                Some(raw.to_string())
            });
            if end >= bytes.len() {
                return Ok(fields);
            }
            start = end + 1;
        }
    }

    fn csv_fields(&self, line: &str) -> Result<Vec<Option<String>>> {
        let bytes = line.as_bytes();
        let mut fields = Vec::with_capacity(self.tys.len());
        let mut field: Vec<u8> = Vec::new();
        let (mut quoted, mut was_quoted) = (false, false);
        let mut i = 0;
        loop {
            let byte = bytes.get(i).copied();
            match byte {
                Some(b) if quoted => {
                    let next = bytes.get(i + 1).copied();
                    if b == self.format.escape && (next == Some(self.format.quote) || next == Some(self.format.escape))
                    {
                        field.push(next.expect("just seen"));
                        i += 1;
                    } else if b == self.format.quote {
                        quoted = false;
                    } else {
                        field.push(b);
                    }
                }
                Some(b) if b == self.format.quote => {
                    quoted = true;
                    was_quoted = true;
                }
                Some(b) if b != self.format.delimiter => field.push(b),
                _ => {
                    let text = utf8(&field)?.to_string();
                    let column = self.names.get(fields.len());
                    let listed = |list: &[String]| column.is_some_and(|name| list.contains(name));
                    let is_null = text == self.format.null
                        && if was_quoted {
                            listed(&self.format.force_null)
                        } else {
                            !listed(&self.format.force_not_null)
                        };
                    fields.push(if is_null { None } else { Some(text) });
                    field.clear();
                    was_quoted = false;
                    if byte.is_none() {
                        return Ok(fields);
                    }
                }
            }
            i += 1;
        }
    }
}

fn clip(text: &str, bytes: usize) -> &str {
    let mut end = text.len().min(bytes);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Backslash sequences of COPY's text format.
fn unescape(raw: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(raw.len());
    let mut i = 0;
    while i < raw.len() {
        if raw[i] != b'\\' || i + 1 == raw.len() {
            out.push(raw[i]);
            i += 1;
            continue;
        }
        i += 1;
        let digits = |from: usize, most: usize, hex: bool| {
            let is = |b: &u8| if hex { b.is_ascii_hexdigit() } else { (b'0'..=b'7').contains(b) };
            raw[from..].iter().take(most).take_while(|b| is(b)).count()
        };
        match raw[i] {
            b'b' => out.push(8),
            b'f' => out.push(12),
            b'n' => out.push(b'\n'),
            b'r' => out.push(b'\r'),
            b't' => out.push(b'\t'),
            b'v' => out.push(11),
            b'0'..=b'7' => {
                let n = digits(i, 3, false);
                let value = raw[i..i + n].iter().fold(0u32, |v, b| v * 8 + (b - b'0') as u32);
                out.push(value as u8);
                i += n - 1;
            }
            b'x' if digits(i + 1, 2, true) > 0 => {
                let n = digits(i + 1, 2, true);
                let text = std::str::from_utf8(&raw[i + 1..i + 1 + n]).unwrap_or("0");
                out.push(u8::from_str_radix(text, 16).unwrap_or(0));
                i += n;
            }
            other => out.push(other),
        }
        i += 1;
    }
    out
}

async fn copy_to(
    session: &mut Session,
    stmt: &CopyStmt,
    sql: &str,
    format: Format,
    out: &mut dyn Output,
) -> Result<String> {
    let statement = match &stmt.query {
        Some(node) => Arc::new(session.bind_query(node, sql, &[], 0, false)?),
        None => {
            let name = stmt.relation.as_deref().ok_or_else(|| Error::internal("COPY TO without a table"))?;
            let table = ddl::relation_desc(session, name, sql).map_err(without_position)?;
            if let Some(message) = match table.kind {
                TableKind::Table => None,
                TableKind::View => Some(format!("cannot copy from view \"{}\"", table.name)),
                TableKind::MaterializedView => Some(format!("cannot copy from materialized view \"{}\"", table.name)),
            } {
                let hint = "Try the COPY (SELECT ...) TO variant.";
                return Err(Error::new(SqlState::WRONG_OBJECT_TYPE, message).hint(hint));
            }
            let columns = columns_of(&table, stmt)?;
            let select = format!("SELECT {} FROM {}", names(&table, &columns), ddl::qualified_name(session, &table));
            let mut parsed = parse::parse(&select)?;
            let node = parsed.pop().ok_or_else(|| Error::internal("no SELECT of our own"))?.node;
            Arc::new(session.bind_query(&node, &select, &[], 0, false)?)
        }
    };
    let statement = session.begin_query(&statement).await?;
    let Kind::Query(query) = &statement.kind else { return Err(Error::internal("not a query")) };
    out.copy_out(format.binary, query.columns.len());
    if format.header {
        let names: Vec<Vec<u8>> = query.columns.iter().map(|c| c.name.clone().into_bytes()).collect();
        let mut line = Vec::new();
        write_line(&format, names.iter().map(|n| Some(n.as_slice())), &[], &mut line);
        out.copy_data(&line);
    }
    let mut execution = Execution::new(Arc::clone(&query.plan), Vec::new());
    let mut lines = Lines {
        format: &format,
        columns: &query.columns,
        settings: session.output_settings(),
        out: Vec::new(),
        quoted: query.columns.iter().map(|c| format.force_quote.contains(&c.name)).collect(),
        ends: Vec::new(),
        rows: 0,
        scratch: Vec::new(),
    };
    if format.binary {
        binary::write_header(&mut lines.out);
    }
    loop {
        let done = session.drive_batch(&mut execution, &mut lines).await?;
        lines.hand_over(out);
        if done {
            break;
        }
        let gate = session.current_gate();
        out.gate(gate);
        if out.is_full() {
            out.flush().await?;
        }
    }
    if format.binary {
        binary::write_trailer(&mut lines.out);
        lines.ends.push(lines.out.len());
        lines.hand_over(out);
    }
    let rows = lines.rows;
    out.copy_done();
    session.end_query(out);
    Ok(format!("COPY {rows}"))
}

/// Bytes of COPY TO that are collected before they are handed to the connection.
const COPY_OUT_BYTES: usize = 64 << 10;

struct Lines<'a> {
    format: &'a Format,
    columns: &'a [ResultColumn],
    settings: Arc<OutputSettings>,
    out: Vec<u8>,
    /// Columns that FORCE_QUOTE names.
    quoted: Vec<bool>,
    /// Where the rows in `out` end: clients expect one message per row.
    ends: Vec<usize>,
    rows: u64,
    scratch: Vec<u8>,
}

impl Lines<'_> {
    /// Notes the end of a row; whether enough is collected.
    fn row_ends(&mut self) -> bool {
        self.rows += 1;
        self.ends.push(self.out.len());
        self.out.len() >= COPY_OUT_BYTES
    }

    fn hand_over(&mut self, out: &mut dyn Output) {
        let mut start = 0;
        for end in self.ends.drain(..) {
            out.copy_data(&self.out[start..end]);
            start = end;
        }
        self.out.drain(..start);
    }
}

impl crate::exec::RowSink for Lines<'_> {
    fn row(&mut self, row: crate::exec::OutputRow<'_>) -> Result<bool> {
        if self.format.binary {
            binary::write_tuple(row, self.columns, &mut self.out)?;
            return Ok(self.row_ends());
        }
        self.scratch.clear();
        let mut ends = Vec::with_capacity(row.len());
        for (value, column) in row.iter().zip(self.columns) {
            if matches!(value, Datum::Null) {
                ends.push(None);
            } else {
                let start = self.scratch.len();
                types::write_text(value.as_ref(), column.ty.oid, &self.settings, &mut self.scratch)?;
                ends.push(Some((start, self.scratch.len())));
            }
        }
        let fields = ends.iter().map(|e| e.map(|(start, end)| &self.scratch[start..end]));
        write_line(self.format, fields, &self.quoted, &mut self.out);
        Ok(self.row_ends())
    }
}

/// `quoted`: columns that CSV quotes always.
fn write_line<'a>(
    format: &Format,
    fields: impl ExactSizeIterator<Item = Option<&'a [u8]>>,
    quoted: &[bool],
    out: &mut Vec<u8>,
) {
    let alone = fields.len() == 1;
    for (i, field) in fields.enumerate() {
        if i > 0 {
            out.push(format.delimiter);
        }
        match field {
            None => out.extend_from_slice(format.null.as_bytes()),
            Some(text) if format.csv => {
                let quote = format.force_quote_all || quoted.get(i) == Some(&true) || (alone && text == b"\\.");
                write_csv(format, text, quote, out);
            }
            Some(text) => write_escaped(format, text, out),
        }
    }
    out.push(b'\n');
}

fn write_csv(format: &Format, text: &[u8], quote: bool, out: &mut Vec<u8>) {
    let special = |b: &u8| [format.delimiter, format.quote, b'\n', b'\r'].contains(b);
    let needs = quote || text == format.null.as_bytes() || text.iter().any(special);
    if !needs {
        return out.extend_from_slice(text);
    }
    out.push(format.quote);
    for &b in text {
        if b == format.quote || b == format.escape {
            out.push(format.escape);
        }
        out.push(b);
    }
    out.push(format.quote);
}

fn write_escaped(format: &Format, text: &[u8], out: &mut Vec<u8>) {
    for &b in text {
        let code = match b {
            8 => b'b',
            12 => b'f',
            b'\n' => b'n',
            b'\r' => b'r',
            b'\t' => b't',
            11 => b'v',
            b'\\' => b'\\',
            b if b == format.delimiter => b,
            b => {
                out.push(b);
                continue;
            }
        };
        out.extend_from_slice(&[b'\\', code]);
    }
}

/// COPY's errors about its table point nowhere.
fn without_position(mut error: Error) -> Error {
    error.fields_mut().position = None;
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_round_trip() {
        let format = Format::parse(&[], true, "").unwrap();
        let text = b"a\tb\nc\\d\x08\x0b";
        let mut out = Vec::new();
        write_escaped(&format, text, &mut out);
        assert_eq!(unescape(&out), text);
        assert_eq!(unescape(b"\\101\\x42\\q\\"), b"ABq\\");
    }

    #[test]
    fn csv_quotes_what_needs_it() {
        let format =
            Format { csv: true, delimiter: b',', null: String::new(), ..Format::parse(&[], true, "").unwrap() };
        let mut out = Vec::new();
        write_line(&format, [Some(&b"a,b"[..]), None, Some(b""), Some(b"x\"y")].into_iter(), &[], &mut out);
        assert_eq!(out, b"\"a,b\",,\"\",\"x\"\"y\"\n");
    }
}
