//! COPY FROM STDIN: the stream becomes rows, which go through the plan of an INSERT.

use std::fmt::Write as _;
use std::sync::Arc;

use base::{Error, Result, SqlState};
use engine_api::{TableKind, Wait};
use rupg_sql::nodes::CopyStmt;
use types::Datum;
use types::encoding::{Conversion, utf8_text as utf8};

use super::condition::Condition;
use super::format::Format;
use super::{LINE_BYTES_MAX, ROWS_PER_TURN, binary, check_forced, columns_of, names, without_position};
use crate::ddl;
use crate::exec::Execution;
use crate::ir::Ty;
use crate::parse;
use crate::session::drive::NoRows;
use crate::session::query::read_only_error;
use crate::session::statement::Kind;
use crate::session::{Output, Session};

pub(super) async fn copy_from(
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
    check_forced("FORCE_NOT_NULL", &format.force_not_null, &table, &columns)?;
    check_forced("FORCE_NULL", &format.force_null, &table, &columns)?;
    let mut insert = format!(
        "INSERT INTO {} ({}) OVERRIDING SYSTEM VALUE VALUES (",
        ddl::qualified_name(session, &table),
        names(&table, &columns)
    );
    for i in 0..columns.len() {
        let _ = write!(insert, "{}${}", if i > 0 { ", " } else { "" }, i + 1);
    }
    insert.push(')');
    if columns.is_empty() {
        insert = format!("INSERT INTO {} DEFAULT VALUES", ddl::qualified_name(session, &table));
    }
    // A domain's value is read as the type under it; the INSERT checks the domain's conditions.
    let tys: Vec<Ty> = columns.iter().map(|&c| type_under(&table.columns[c])).collect();
    let types: Vec<_> = tys.iter().map(|ty| ty.oid).collect();
    let condition = match &stmt.whereClause {
        Some(clause) => Some(Condition::bind(session, clause, &table, &columns, sql)?),
        None => None,
    };
    let mut parsed = parse::parse(&insert)?;
    let node = parsed.pop().ok_or_else(|| Error::internal("no INSERT of our own"))?.node;
    let statement = Arc::new(session.bind_query(&node, &insert, &types, 0, true)?);
    let statement = session.begin_query(&statement).await?;
    let Kind::Query(query) = &statement.kind else { return Err(Error::internal("not a query")) };
    let client = session.conversion();
    let mut stream = Stream::of(if format.binary { None } else { format.conversion(client) });
    out.copy_in(format.binary, columns.len());
    out.flush().await?;
    let mut loader = Loader {
        execution: Execution::new(Arc::clone(&query.plan), Vec::new()),
        condition,
        tys,
        names: columns.iter().map(|&c| table.columns[c].name.clone()).collect(),
        table: table.name.clone(),
        format,
        line: 0,
        rows: 0,
        begun: false,
        ended: false,
        client,
    };
    let mut pending: Vec<u8> = Vec::new();
    let mut chunk = Vec::new();
    loop {
        let more = out.next_copy(&mut chunk).await?;
        session.check_stop()?;
        stream.take(&chunk, !more, &mut pending).map_err(|e| e.context(loader.place(&pending)))?;
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

fn type_under(column: &engine_api::ColumnDesc) -> Ty {
    let (oid, typmod) = types::user::base_type(column.type_oid, column.typmod);
    Ty { oid, typmod }
}

/// The text of the client as it comes, converted as far as its characters are whole.
struct Stream {
    conversion: Option<&'static Conversion>,
    /// What is left of a character that has been cut.
    cut: Vec<u8>,
    text: String,
}

impl Stream {
    fn of(conversion: Option<&'static Conversion>) -> Stream {
        Stream { conversion, cut: Vec::new(), text: String::new() }
    }

    /// Appends the data to `pending`.
    fn take(&mut self, chunk: &[u8], last: bool, pending: &mut Vec<u8>) -> Result<()> {
        let Some(conversion) = self.conversion else {
            pending.extend_from_slice(chunk);
            return Ok(());
        };
        self.cut.extend_from_slice(chunk);
        self.text.clear();
        let used = conversion.decode_part(&self.cut, last, &mut self.text);
        pending.extend_from_slice(self.text.as_bytes());
        self.cut.drain(..used?);
        Ok(())
    }
}

/// Turns bytes into rows.
pub(super) struct Loader {
    pub(super) execution: Box<Execution>,
    /// WHERE
    condition: Option<Condition>,
    pub(super) tys: Vec<Ty>,
    pub(super) names: Vec<String>,
    pub(super) table: String,
    pub(super) format: Format,
    pub(super) line: u64,
    pub(super) rows: u64,
    /// The header of the binary format was read.
    pub(super) begun: bool,
    /// `\.` or the binary trailer was seen: the rest is ignored.
    pub(super) ended: bool,
    /// The client's encoding, that of texts in binary data.
    client: Option<&'static Conversion>,
}

impl Loader {
    /// Where bytes that follow these, which have not been loaded, are.
    fn place(&self, pending: &[u8]) -> String {
        let lines = pending.iter().filter(|b| **b == b'\n').count() as u64;
        format!("COPY {}, line {}", self.table, self.line + 1 + lines)
    }

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
                            Some(bytes) => binary::value(self.tys[i], bytes, self.client).map_err(|e| {
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
        if let Some(condition) = &mut self.condition
            && !condition.holds(session, &params).await?
        {
            return Ok(());
        }
        self.execution.reset(params);
        session.drive_into(&mut self.execution, &mut NoRows).await?;
        self.rows += 1;
        Ok(())
    }

    async fn row(&mut self, session: &mut Session, line: &[u8]) -> Result<()> {
        let text = utf8(line).map_err(|e| e.context(format!("COPY {}, line {}", self.table, self.line)))?;
        let mut fields = if self.format.csv { self.csv_fields(text)? } else { self.text_fields(text)? };
        if self.tys.is_empty() && text.is_empty() {
            // A row without columns is an empty line.
            fields.clear();
        }
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
}

fn clip(text: &str, bytes: usize) -> &str {
    let mut end = text.len().min(bytes);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
