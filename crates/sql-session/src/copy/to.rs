//! COPY TO STDOUT: the rows of a query become lines or binary tuples.

use std::sync::Arc;

use base::{Error, Result, SqlState, work};
use engine_api::{Privileges, TableKind, TableLockMode};
use rupg_sql::nodes::{CopyStmt, Node};
use sql_bind::own::bind_copied;
use sql_ddl as ddl;
use sql_exec::{Execution, OutputRow, Progress, RowSink};
use types::encoding::{Conversion, utf8};
use types::{DatumRef, OutputSettings, room};

use super::format::Format;
use super::{binary, check_forced, columns_of, locked, require_columns, without_position};
use crate::statement::StatementBody;
use crate::{Output, ResultColumn, Session};

pub(super) async fn copy_to(
    session: &mut Session,
    stmt: &CopyStmt,
    sql: &str,
    format: Format,
    out: &mut dyn Output,
) -> Result<String> {
    if let Some(node) = &stmt.query {
        check_query(node)?;
    }
    let (plan, columns): (_, Arc<[ResultColumn]>) = match &stmt.query {
        Some(node) => {
            let statement = Arc::new(session.bind_inside(node, sql, &[], false)?);
            let statement = session.begin_query(&statement).await?;
            let StatementBody::Query(query) = &statement.kind else { return Err(Error::internal("not a query")) };
            (Arc::clone(&query.plan), Arc::clone(&query.columns))
        }
        None => {
            let name = stmt.relation.as_deref().ok_or_else(|| Error::internal("COPY TO without a table"))?;
            let table = ddl::relation_desc(session, name, sql).map_err(without_position)?;
            if let Some(message) = match table.kind {
                TableKind::Table => None,
                TableKind::View => Some(format!("cannot copy from view \"{}\"", table.name)),
                TableKind::MaterializedView => Some(format!("cannot copy from materialized view \"{}\"", table.name)),
            } {
                require_columns(session, &table, &columns_of(&table, stmt)?, Privileges::SELECT)?;
                let hint = "Try the COPY (SELECT ...) TO variant.";
                return Err(Error::new(SqlState::WRONG_OBJECT_TYPE, message).hint(hint));
            }
            let table = locked(session, &table, TableLockMode::AccessShare).await?;
            let columns = columns_of(&table, stmt)?;
            check_forced("FORCE_QUOTE", &format.force_quote, &table, &columns)?;
            let rows = session.begin_own(&mut |cx| bind_copied(table.oid, &columns, cx)).await?;
            (rows.plan, rows.columns.into())
        }
    };
    out.copy_out(format.binary, columns.len());
    let client = session.conversion();
    let conversion = format.conversion(client);
    if format.header {
        let names: Vec<Vec<u8>> = columns.iter().map(|c| c.name.clone().into_bytes()).collect();
        let mut line = Vec::new();
        write_line(&format, names.iter().map(|n| Some(n.as_slice())), &[], &mut line);
        convert_from(conversion, &mut line, 0)?;
        out.copy_data(&line);
    }
    let mut execution = Execution::new(plan, Vec::new());
    let mut lines = Lines {
        format: &format,
        columns: &columns,
        settings: session.output_settings(),
        out: Vec::new(),
        quoted: columns.iter().map(|c| format.force_quote_all || format.force_quote.contains(&c.name)).collect(),
        ends: Vec::new(),
        rows: 0,
        scratch: Vec::new(),
        conversion: if format.binary { client } else { conversion },
    };
    if format.binary {
        binary::write_header(&mut lines.out);
    }
    loop {
        let progress = match format.binary {
            true => session.advance(&mut execution, &mut lines, 0).await,
            false => session.advance_texts(&mut execution, &columns, &mut lines).await,
        };
        // The rows before an error are sent, too.
        lines.hand_over(out);
        if matches!(progress?, Progress::Done { .. }) {
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

/// What cannot be copied.
fn check_query(node: &Node) -> Result<()> {
    let returns = match node {
        Node::SelectStmt(select) if select.intoClause.is_some() => {
            return Err(Error::unsupported("COPY (SELECT INTO) is not supported"));
        }
        Node::MergeStmt(_) => return Err(Error::unsupported("MERGE not supported in COPY")),
        Node::InsertStmt(insert) => insert.returningClause.is_some(),
        Node::UpdateStmt(update) => update.returningClause.is_some(),
        Node::DeleteStmt(delete) => delete.returningClause.is_some(),
        _ => true,
    };
    if returns { Ok(()) } else { Err(Error::unsupported("COPY query must have a RETURNING clause")) }
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
    conversion: Option<&'static Conversion>,
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

impl RowSink for Lines<'_> {
    fn row(&mut self, row: OutputRow<'_>) -> Result<bool> {
        if self.format.binary {
            binary::write_tuple(row, self.columns, self.conversion, &mut self.out)?;
            return Ok(self.row_ends());
        }
        self.scratch.clear();
        let mut ends = Vec::with_capacity(row.len());
        for (value, column) in row.iter().zip(self.columns) {
            if matches!(value, DatumRef::Null) {
                ends.push(None);
            } else {
                let start = self.scratch.len();
                types::write_text(value, column.ty.oid, &self.settings, &mut self.scratch)?;
                ends.push(Some((start, self.scratch.len())));
            }
        }
        // Escapes double it, the line is handed over, and both may be as long again.
        room::ask(6 * self.scratch.len())?;
        let fields = ends.iter().map(|e| e.map(|(start, end)| &self.scratch[start..end]));
        let start = self.out.len();
        write_line(self.format, fields, &self.quoted, &mut self.out);
        convert_from(self.conversion, &mut self.out, start)?;
        Ok(self.row_ends())
    }
}

/// Puts the text from `start` on into the data's encoding.
fn convert_from(conversion: Option<&Conversion>, line: &mut Vec<u8>, start: usize) -> Result<()> {
    let Some(conversion) = conversion else { return Ok(()) };
    let text = line.split_off(start);
    conversion.encode(utf8(&text)?, line)
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
                let quote = quoted.get(i) == Some(&true) || (alone && text == b"\\.");
                write_csv(format, text, quote, out);
            }
            Some(text) => write_escaped(format, text, out),
        }
    }
    out.push(b'\n');
}

/// Bytes of a field between two counts.
const PART: usize = 1 << 14;

/// Appends `text` with those bytes replaced that `escape` answers something for.
fn append_escaped(text: &[u8], out: &mut Vec<u8>, escape: impl Fn(u8) -> Option<[u8; 2]>) {
    for part in text.chunks(PART) {
        work::beat(part.len() / 4);
        let mut rest = part;
        while let Some((at, escaped)) = rest.iter().enumerate().find_map(|(at, &b)| Some((at, escape(b)?))) {
            out.extend_from_slice(&rest[..at]);
            out.extend_from_slice(&escaped);
            rest = &rest[at + 1..];
        }
        out.extend_from_slice(rest);
    }
}

fn write_csv(format: &Format, text: &[u8], quote: bool, out: &mut Vec<u8>) {
    let special = |b: &u8| [format.delimiter, format.quote, b'\n', b'\r'].contains(b);
    let has_special = |part: &[u8]| {
        work::beat(part.len() / 4);
        part.iter().any(special)
    };
    let needs = quote || text == format.null.as_bytes() || text.chunks(PART).any(has_special);
    if !needs {
        return work::append(out, text);
    }
    out.push(format.quote);
    append_escaped(text, out, |b| (b == format.quote || b == format.escape).then_some([format.escape, b]));
    out.push(format.quote);
}

fn write_escaped(format: &Format, text: &[u8], out: &mut Vec<u8>) {
    append_escaped(text, out, |b| {
        let code = match b {
            8 => b'b',
            12 => b'f',
            b'\n' => b'n',
            b'\r' => b'r',
            b'\t' => b't',
            11 => b'v',
            b'\\' => b'\\',
            b if b == format.delimiter => b,
            _ => return None,
        };
        Some([b'\\', code])
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::copy::fields::unescape;

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
