//! COPY FROM STDIN: the stream becomes rows, which go through the plan of an INSERT.

use std::borrow::Cow;
use std::ops::Range;

use base::{Error, Result, SqlState};
use engine_api::{Privileges, Step, TableKind, TableLockMode, Wait};
use rupg_sql::nodes::CopyStmt;
use sql_bind::own::{bind_copy, stored_columns};
use sql_bind::value_type;
use sql_ddl as ddl;
use sql_exec::{ExecCx, Execution, Progress};
use sql_ir::Ty;
use types::Datum;
use types::encoding::{Conversion, utf8_text as utf8};
use types::room::{self, Room as _};

use super::condition::Condition;
use super::fields::{Fields, Search};
use super::format::Format;
use super::{
    ROWS_PER_BATCH, ROWS_PER_TURN, binary, check_forced, columns_of, locked, require_columns, without_position,
};
use crate::context::Environment;
use crate::drive::NoRows;
use crate::query::read_only_error;
use crate::{Output, Session};

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
        require_columns(session, &table, &columns_of(&table, stmt)?, Privileges::INSERT)?;
        let error = Error::new(SqlState::WRONG_OBJECT_TYPE, message);
        let hint = "To enable copying to a view, provide an INSTEAD OF INSERT trigger.";
        return Err(if table.kind == TableKind::View { error.hint(hint) } else { error });
    }
    if session.is_read_only() && table.persistence != engine_api::Persistence::Temporary {
        return Err(read_only_error("COPY FROM"));
    }
    let table = locked(session, &table, TableLockMode::RowExclusive).await?;
    let columns = columns_of(&table, stmt)?;
    check_forced("FORCE_NOT_NULL", &format.force_not_null, &table, &columns)?;
    check_forced("FORCE_NULL", &format.force_null, &table, &columns)?;
    let condition = match &stmt.whereClause {
        Some(clause) => Some(Condition::bind(session, clause, table.oid, &columns, sql).await?),
        None => None,
    };
    // A domain's value is read as the type under it; the INSERT checks the domain's conditions.
    let stored = if condition.is_some() { stored_columns(&table) } else { columns.clone() };
    let insert = session.begin_own(&mut |cx| bind_copy(table.oid, &stored, &columns, cx)).await?;
    let client = session.conversion();
    let conversion = if format.binary { None } else { format.conversion(client) };
    out.copy_in(format.binary, columns.len());
    out.flush().await?;
    let column = |at: usize| {
        let column = &table.columns[at];
        Column { name: column.name.clone(), ty: value_type(column) }
    };
    let mut loader = Loader {
        execution: Execution::new(insert.plan, Vec::new()),
        condition,
        columns: columns.iter().map(|&at| column(at)).collect(),
        table: table.name.clone(),
        format,
        client,
        line: 0,
        rows: 0,
        begun: false,
        ended: false,
        state: CopyState::Reading,
        at: 0,
        row: 0..0,
        batch: Vec::new(),
        failed: None,
        since_turn: 0,
        fields: Fields::default(),
        search: Search::default(),
    };
    let mut stream = Stream::of(conversion);
    loop {
        stream.make_room()?;
        let more = stream.next(out).await?;
        session.check_stop()?;
        stream.convert(!more).map_err(|e| e.context(loader.place(&stream.data)))?;
        loader.load(session, &stream.data, !more).await?;
        stream.data.drain(..std::mem::take(&mut loader.at));
        if stream.data.len() > room::VALUE_MAX {
            return Err(Error::new(SqlState::PROGRAM_LIMIT_EXCEEDED, "a line of COPY data is too long"));
        }
        if !more {
            break;
        }
    }
    session.end_query(out);
    Ok(format!("COPY {}", loader.rows))
}

/// The client's data as it comes, texts converted as far as their characters are whole.
struct Stream {
    conversion: Option<&'static Conversion>,
    /// What is not converted yet.
    raw: Vec<u8>,
    /// What is not loaded yet.
    data: Vec<u8>,
    text: String,
}

impl Stream {
    fn of(conversion: Option<&'static Conversion>) -> Stream {
        Stream { conversion, raw: Vec::new(), data: Vec::new(), text: String::new() }
    }

    /// Asks for room for more of a long line.
    fn make_room(&mut self) -> Result<()> {
        [&mut self.raw, &mut self.data].into_iter().try_for_each(|bytes| match bytes.len() {
            0..room::LARGE => Ok(()),
            _ => bytes.make_room(2 * room::LARGE),
        })
    }

    /// Waits for more; `false` at the end.
    async fn next(&mut self, out: &mut dyn Output) -> Result<bool> {
        out.next_copy(if self.conversion.is_some() { &mut self.raw } else { &mut self.data }).await
    }

    fn convert(&mut self, last: bool) -> Result<()> {
        let Some(conversion) = self.conversion else { return Ok(()) };
        self.text.clear();
        let used = conversion.decode_part(&self.raw, last, &mut self.text);
        self.data.extend_from_slice(self.text.as_bytes());
        self.raw.drain(..used?);
        Ok(())
    }
}

/// A column that values come for.
pub(super) struct Column {
    pub(super) name: String,
    ty: Ty,
}

/// What is done next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CopyState {
    /// The next rows are read.
    Reading,
    /// The values of the only one are looked at by WHERE.
    Testing,
    /// They are stored.
    Storing,
}

/// Turns bytes into rows. Stops where something must be waited for, and goes on there.
pub(super) struct Loader {
    execution: Box<Execution>,
    /// WHERE
    condition: Option<Condition>,
    pub(super) columns: Vec<Column>,
    pub(super) table: String,
    pub(super) format: Format,
    /// The client's encoding, that of texts in binary data.
    client: Option<&'static Conversion>,
    pub(super) line: u64,
    rows: u64,
    /// The header of the binary format was read.
    begun: bool,
    /// `\.` or the binary trailer was seen: the rest is ignored.
    ended: bool,
    state: CopyState,
    /// Where the next line begins in the data at hand.
    at: usize,
    /// Where the row that was read last is there.
    row: Range<usize>,
    /// The line and the place of each row that has been read and is not stored yet.
    batch: Vec<(u64, Range<usize>)>,
    /// Why no more rows can be read, once those before it are stored.
    failed: Option<Error>,
    /// Lines since other connections had their turn.
    since_turn: u64,
    fields: Fields,
    /// For the end of the next line.
    pub(super) search: Search,
}

impl Loader {
    /// Where bytes that follow these, which have not been loaded, are.
    fn place(&self, pending: &[u8]) -> String {
        let lines = pending.iter().filter(|b| **b == b'\n').count() as u64;
        format!("COPY {}, line {}", self.table, self.line + 1 + lines)
    }

    /// Loads every complete row of `data` from [`Loader::at`] on (and, if it is the `last`, a last line without a newline).
    async fn load(&mut self, session: &mut Session, data: &[u8], last: bool) -> Result<()> {
        let own = session.changed_catalog();
        while let Some(wait) = session.step(own.as_ref(), |cx, eval| self.run(cx, eval.environment, data, last))? {
            let waited = session.wait_for_lock(wait).await;
            waited.map_err(|e| if self.state == CopyState::Reading { e } else { self.in_stored_row(e, data) })?;
        }
        Ok(())
    }

    /// Loads until there is no whole row left, or something must be waited for.
    fn run(&mut self, cx: &mut ExecCx<'_>, env: &Environment, data: &[u8], last: bool) -> Result<Option<Wait>> {
        loop {
            let step = match self.state {
                CopyState::Reading => {
                    if let Some(error) = self.failed.take() {
                        return Err(error);
                    }
                    if self.since_turn >= ROWS_PER_TURN {
                        self.since_turn = 0;
                        return Ok(Some(Wait::yield_now()));
                    }
                    self.read_batch(env, data, last);
                    self.since_turn += self.batch.len() as u64;
                    if self.batch.is_empty() && self.failed.is_none() {
                        return Ok(None);
                    }
                    self.begin_batch();
                    continue;
                }
                CopyState::Testing => self.test(cx),
                CopyState::Storing => self.store(cx),
            };
            if let Step::Wait(wait) = step.map_err(|e| self.in_stored_row(e, data))? {
                return Ok(Some(wait));
            }
        }
    }

    /// Reads rows until there are enough, or no more.
    fn read_batch(&mut self, env: &Environment, data: &[u8], last: bool) {
        self.batch.clear();
        self.execution.parameter_rows().clear(self.columns.len());
        // A row that WHERE is asked about comes alone.
        let most = if self.condition.is_some() { 1 } else { ROWS_PER_BATCH };
        while self.batch.len() < most {
            let read = match self.format.binary {
                true => self.read_tuple(data, last),
                false => self.read_line(env, data, last),
            };
            match read {
                Ok(true) if self.execution.parameter_rows().len() > self.batch.len() => {
                    self.batch.push((self.line, self.row.clone()));
                }
                // A header, or the end.
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => {
                    if self.execution.parameter_rows().len() > self.batch.len() {
                        self.execution.parameter_rows().pop();
                    }
                    self.failed = Some(error);
                    break;
                }
            }
        }
    }

    fn begin_batch(&mut self) {
        self.state = match &mut self.condition {
            _ if self.batch.is_empty() => CopyState::Reading,
            Some(condition) => {
                condition.begin(self.execution.parameter_rows().first());
                CopyState::Testing
            }
            None => self.begin_storing(self.columns.len()),
        };
    }

    fn begin_storing(&mut self, width: usize) -> CopyState {
        self.execution.begin_parameter_rows(width);
        CopyState::Storing
    }

    fn test(&mut self, cx: &mut ExecCx<'_>) -> Result<Step<()>> {
        let Some(condition) = &mut self.condition else { return Err(Error::internal("a test without a condition")) };
        Ok(match condition.test(cx)? {
            Step::Ready(Some(row)) => {
                let (rows, width) = (self.execution.parameter_rows(), row.len());
                rows.clear(width);
                rows.push().iter_mut().zip(row).for_each(|(place, value)| place.put(value));
                self.state = self.begin_storing(width);
                Step::Ready(())
            }
            Step::Ready(None) => {
                self.state = CopyState::Reading;
                Step::Ready(())
            }
            Step::Wait(wait) => Step::Wait(wait),
        })
    }

    fn store(&mut self, cx: &mut ExecCx<'_>) -> Result<Step<()>> {
        Ok(match self.execution.run(cx, &mut NoRows, 0)? {
            Progress::Done { .. } => {
                self.rows += self.batch.len() as u64;
                self.state = CopyState::Reading;
                Step::Ready(())
            }
            Progress::Wait(wait) => Step::Wait(wait),
            Progress::MaxRows { .. } | Progress::SinkFull => Step::Ready(()),
        })
    }

    /// An error of the row that was tested or is being stored, with its place; a foreign key's has none.
    #[cold]
    fn in_stored_row(&mut self, error: Error, data: &[u8]) -> Error {
        let at = if self.state == CopyState::Testing { Some(0) } else { self.execution.parameter_rows().last_taken() };
        let Some((line, row)) = at.and_then(|at| self.batch.get(at)).cloned() else { return error };
        self.in_row(error, line, row, data)
    }

    /// An error of the tuple that is being read.
    #[cold]
    fn in_tuple(&self, error: Error, data: &[u8]) -> Error {
        self.in_row(error, self.line, self.row.clone(), data)
    }

    /// An error of a row, with its place.
    #[cold]
    fn in_row(&self, error: Error, line: u64, row: Range<usize>, data: &[u8]) -> Error {
        if error.fields().context.is_some() {
            return error;
        }
        let place = format!("COPY {}, line {line}", self.table);
        // PostgreSQL enters rows into indexes in bunches, and then has their lines no more.
        if self.format.binary || error.code() == SqlState::UNIQUE_VIOLATION {
            return error.context(place);
        }
        let line = String::from_utf8_lossy(&data[row]);
        error.context(format!("{place}: \"{}\"", shown(&line)))
    }

    /// Takes the next line. `false` if it is not all there, or none is left.
    fn read_line(&mut self, env: &Environment, data: &[u8], last: bool) -> Result<bool> {
        if self.at >= data.len() {
            return Ok(false);
        }
        if self.ended {
            self.at = data.len();
            return Ok(false);
        }
        let Some((line, used)) = self.next_line(&data[self.at..], last)? else { return Ok(false) };
        self.row = self.at..self.at + line.len();
        self.at += used;
        self.line += 1 + self.breaks(line);
        if line == b"\\." {
            self.ended = true;
        } else if self.line == 1 && self.format.header {
            if self.format.match_header {
                self.check_header(line)?;
            }
        } else {
            self.read_row(env, line)?;
        }
        Ok(true)
    }

    /// The names of the header line must be those of the columns.
    fn check_header(&self, line: &[u8]) -> Result<()> {
        let shown = || format!("COPY {}, line {}: \"{}\"", self.table, self.line, String::from_utf8_lossy(line));
        let refused = |message: String| Error::new(SqlState::BAD_COPY_FILE_FORMAT, message).context(shown());
        let text = utf8(line).map_err(|e| e.context(shown()))?;
        let mut fields = Fields::default();
        self.find_fields(text, &mut fields)?;
        if fields.len() != self.columns.len() {
            let (got, expected) = (fields.len(), self.columns.len());
            return Err(refused(format!("wrong number of fields in header line: got {got}, expected {expected}")));
        }
        for (number, (field, Column { name, .. })) in fields.of(text).zip(&self.columns).enumerate() {
            let message = match field {
                Some(field) if field == name => continue,
                Some(field) => format!("got \"{field}\", expected \"{name}\""),
                None => format!("got null value (\"{}\"), expected \"{name}\"", self.format.null),
            };
            return Err(refused(format!("column name mismatch in header line field {}: {message}", number + 1)));
        }
        Ok(())
    }

    /// Finds the fields of a line.
    fn find_fields(&self, text: &str, fields: &mut Fields) -> Result<()> {
        match self.format.csv {
            true => self.csv_fields(text, fields)?,
            false => self.text_fields(text, fields)?,
        }
        if self.columns.is_empty() && text.is_empty() {
            // A row without columns is an empty line.
            fields.clear();
        }
        Ok(())
    }

    /// Reads the values of a line.
    fn read_row(&mut self, env: &Environment, line: &[u8]) -> Result<()> {
        let text = utf8(line).map_err(|e| e.context(format!("COPY {}, line {}", self.table, self.line)))?;
        let mut fields = std::mem::take(&mut self.fields);
        self.find_fields(text, &mut fields)?;
        let in_line = |e: Error| e.context(format!("COPY {}, line {}: \"{}\"", self.table, self.line, shown(text)));
        if fields.len() > self.columns.len() {
            return Err(in_line(Error::new(SqlState::BAD_COPY_FILE_FORMAT, "extra data after last expected column")));
        }
        let values = self.execution.parameter_rows().push();
        for ((column, field), value) in self.columns.iter().zip(fields.of(text)).zip(values) {
            value.put(match field {
                None => Datum::Null,
                Some(text) => env.parse_value(column.ty, text).map_err(|e| {
                    let place = format!("COPY {}, line {}, column {}", self.table, self.line, column.name);
                    e.context(format!("{place}: \"{}\"", clip(text, 100)))
                })?,
            });
        }
        // The fields that are there are read before.
        if let Some(Column { name, .. }) = self.columns.get(fields.len()) {
            let message = format!("missing data for column \"{name}\"");
            return Err(in_line(Error::new(SqlState::BAD_COPY_FILE_FORMAT, message)));
        }
        self.fields = fields;
        Ok(())
    }

    /// Takes the next tuple of the binary format. `false` if it is not all there, or none is left.
    fn read_tuple(&mut self, data: &[u8], last: bool) -> Result<bool> {
        if !self.begun {
            let Some(used) = binary::header(data)? else {
                return if last { Err(binary::not_recognized()) } else { Ok(false) };
            };
            self.begun = true;
            self.at = used;
        }
        if self.ended {
            self.at = data.len();
            return Ok(false);
        }
        self.line += 1;
        let tuple = binary::tuple(&data[self.at..], self.columns.len()).map_err(|e| self.in_tuple(e, data))?;
        match tuple {
            binary::Tuple::Row { fields, used } => {
                let values = self.execution.parameter_rows().push();
                for ((column, field), value) in self.columns.iter().zip(fields).zip(values) {
                    *value = match field {
                        None => Datum::Null,
                        Some(bytes) => binary::value(column.ty, bytes, self.client).map_err(|e| {
                            e.context(format!("COPY {}, line {}, column {}", self.table, self.line, column.name))
                        })?,
                    };
                }
                self.at += used;
            }
            binary::Tuple::End => self.ended = true,
            // The trailer may be missing.
            binary::Tuple::Incomplete if last && self.at == data.len() => self.ended = true,
            binary::Tuple::Incomplete if last => {
                let error = Error::new(SqlState::BAD_COPY_FILE_FORMAT, "unexpected EOF in COPY data");
                return Err(self.in_tuple(error, data));
            }
            binary::Tuple::Incomplete => {
                self.line -= 1;
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// A line as contexts of errors have it.
fn shown(line: &str) -> Cow<'_, str> {
    if line.len() > 100 { format!("{}...", clip(line, 100)).into() } else { line.into() }
}

fn clip(text: &str, bytes: usize) -> &str {
    let mut end = text.len().min(bytes);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
