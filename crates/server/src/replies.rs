//! A session's replies on their way to the connection's queue: rows are encoded from datums straight into it.

use std::future::Future;
use std::pin::Pin;

use base::{Error, Lsn, Notice, Result, work};
use pgwire::{Column, CopyIn, Format, Formats, Out};
use sql_exec::OutputRow;
use sql_session::{Output, ResultColumn, ResultFormats, Verb};
use types::encoding::{Conversion, recode_binary, utf8};
use types::{DatumRef, OutputSettings};

/// The formats that a Bind message asks for.
#[inline]
pub fn asked(formats: Formats<'_>) -> ResultFormats {
    let is_binary = |i| formats.get(i) == Format::Binary;
    match formats.len() {
        0 | 1 => ResultFormats::Uniform(is_binary(0)),
        n => ResultFormats::Each((0..n).map(is_binary).collect()),
    }
}

/// The format of a column.
#[inline]
fn format_of(formats: &ResultFormats, column: usize) -> Format {
    if formats.is_binary(column) { Format::Binary } else { Format::Text }
}

/// Queues the description of these columns.
///
/// # Errors
/// If they do not fit a message.
pub fn describe(out: &Out, columns: &[ResultColumn], formats: &ResultFormats) -> Result<()> {
    out.row_description(columns.iter().enumerate().map(|(i, column)| Column {
        name: &column.name,
        table: column.table,
        attribute: column.column,
        type_oid: column.ty.oid,
        type_len: types::type_info(column.ty.oid).map_or(-1, |info| info.len),
        type_mod: column.ty.typmod,
        format: format_of(formats, i),
    }))
}

/// The output of one message.
pub struct Replies<'a> {
    out: &'a Out,
    formats: &'a ResultFormats,
    /// Whether a result is preceded by its description: in the simple protocol only.
    describes: bool,
    /// What could not be encoded. [`Output::row`] cannot fail, so the failure ends the statement at its next flush, or in
    /// [`Replies::failure`].
    failure: Option<Error>,
}

impl<'a> Replies<'a> {
    /// Replies of the simple protocol: described, in text.
    pub fn simple(out: &'a Out) -> Replies<'a> {
        Replies { out, formats: &ResultFormats::TEXT, describes: true, failure: None }
    }

    /// Replies of an Execute: not described, in the portal's formats.
    pub fn extended(out: &'a Out, formats: &'a ResultFormats) -> Replies<'a> {
        Replies { out, formats, describes: false, failure: None }
    }

    /// What could not be encoded and has not been reported yet.
    pub fn failure(&mut self) -> Result<()> {
        self.failure.take().map_or(Ok(()), Err)
    }

    /// A row for a client that does not speak UTF-8.
    #[cold]
    fn converted_row(
        &mut self,
        conversion: &Conversion,
        row: OutputRow<'_>,
        columns: &[ResultColumn],
        settings: &OutputSettings,
    ) {
        let formats = self.formats;
        let encode = |text: &[u8]| {
            // Its characters may be longer, and the queue grows by as much.
            types::room::ask(4 * text.len())?;
            conversion.encoded(utf8(text)?)
        };
        let queued = self.out.data_row(columns.len(), |fields| {
            let mut value = Vec::new();
            for (i, (datum, column)) in row.iter().zip(columns).enumerate() {
                value.clear();
                let ty = column.ty.oid;
                match format_of(formats, i) {
                    _ if matches!(datum, DatumRef::Null) => fields.null(),
                    Format::Text => {
                        types::write_text(datum, ty, settings, &mut value)?;
                        fields.bytes(&encode(&value)?);
                    }
                    Format::Binary => {
                        types::write_binary(datum, ty, &mut value)?;
                        match recode_binary(ty, &value, &encode)? {
                            Some(converted) => fields.bytes(&converted),
                            None => fields.bytes(&value),
                        }
                    }
                }
            }
            Ok(())
        });
        self.keep(queued);
    }

    fn keep(&mut self, result: Result<()>) {
        if let Err(error) = result {
            self.failure.get_or_insert(error);
        }
    }
}

impl Output for Replies<'_> {
    fn columns(&mut self, columns: &[ResultColumn]) {
        if self.describes {
            let described = describe(self.out, columns, self.formats);
            self.keep(described);
        }
    }

    fn encoding(&mut self, conversion: Option<&'static Conversion>) {
        self.out.set_conversion(conversion);
    }

    fn binary(&mut self, on: bool) {
        if self.describes {
            self.formats = if on { &ResultFormats::BINARY } else { &ResultFormats::TEXT };
        }
    }

    #[inline]
    fn row(&mut self, row: OutputRow<'_>, columns: &[ResultColumn], settings: &OutputSettings) {
        if let Some(conversion) = self.out.conversion() {
            return self.converted_row(conversion, row, columns, settings);
        }
        let formats = self.formats;
        let queued = self.out.data_row(columns.len(), |fields| {
            for (i, column) in columns.iter().enumerate() {
                let (ty, format) = (column.ty.oid, format_of(formats, i));
                // Where it cannot be a text it is not asked for.
                let text = if types::is_held_as_number(ty) { None } else { row.text_bytes(i) };
                match text {
                    Some(text) if format == Format::Text || types::is_sent_as_text(ty) => fields.bytes(text),
                    _ => fields.field(row.get(i), ty, format, settings)?,
                }
            }
            Ok(())
        });
        self.keep(queued);
    }

    fn wants_text(&self, column: usize) -> bool {
        !self.formats.is_binary(column)
    }

    fn complete(&mut self, tag: &str) {
        if self.failure.is_none() {
            self.out.command_complete(tag);
        }
    }

    fn complete_rows(&mut self, verb: Verb, rows: u64) {
        if self.failure.is_none() {
            self.out.command_complete_rows(verb.tag_words(), rows);
        }
    }

    fn empty(&mut self) {
        self.out.empty_query();
    }

    fn suspended(&mut self) {
        if self.failure.is_none() {
            self.out.portal_suspended();
        }
    }

    fn notice(&mut self, notice: &Notice) {
        self.out.notice(notice);
    }

    fn notification(&mut self, pid: i32, channel: &str, payload: &str) {
        self.out.notification(pid, channel, payload);
    }

    fn parameter(&mut self, name: &str, value: &str) {
        self.out.parameter_status(name, value);
    }

    fn gate(&mut self, gate: Lsn) {
        self.out.hold(gate);
    }

    fn is_full(&self) -> bool {
        self.failure.is_some() || self.out.wants_flush()
    }

    fn flush<'a>(&'a mut self) -> Pin<Box<dyn Future<Output = Result<()>> + 'a>> {
        Box::pin(async {
            self.failure()?;
            self.out.flush().await;
            Ok(())
        })
    }

    fn copy_in(&mut self, binary: bool, columns: usize) {
        self.out.copy_in_response(copy_format(binary), columns);
    }

    fn next_copy<'a>(&'a mut self, chunk: &'a mut Vec<u8>) -> Pin<Box<dyn Future<Output = Result<bool>> + 'a>> {
        Box::pin(async { Ok(self.out.next_copy(chunk).await? == CopyIn::Data) })
    }

    fn copy_out(&mut self, binary: bool, columns: usize) {
        self.out.copy_out_response(copy_format(binary), columns);
    }

    fn copy_data(&mut self, bytes: &[u8]) {
        let queued = self.out.copy_data(|message| {
            work::append(message, bytes);
            Ok(())
        });
        self.keep(queued);
    }

    fn copy_done(&mut self) {
        self.out.copy_done();
    }
}

fn copy_format(binary: bool) -> Format {
    if binary { Format::Binary } else { Format::Text }
}

#[cfg(test)]
mod tests {
    use sql_ir::Ty;
    use types::{Datum, oid};

    use super::*;

    #[test]
    fn rows_are_encoded_in_the_formats_asked_for() {
        let out = Out::new();
        let columns = [ResultColumn::new("a", Ty::of(oid::INT4)), ResultColumn::new("b", Ty::of(oid::INT4))];
        let formats = ResultFormats::Each([false, true].into_iter().collect());
        let mut replies = Replies::extended(&out, &formats);
        replies.columns(&columns);
        assert_eq!(out.unsent(), 0);
        let row = [Datum::Int4(7), Datum::Int4(7)];
        replies.row(OutputRow::of(&row), &columns, &OutputSettings::default());
        // Type, length, count; 4 + 1 bytes of text; 4 + 4 bytes of binary.
        assert_eq!(out.unsent(), 7 + 5 + 8);
        assert!(!replies.is_full() && replies.failure().is_ok());
    }

    #[test]
    fn a_row_that_cannot_be_encoded_ends_the_statement() {
        let out = Out::new();
        let columns = [ResultColumn::new("a", Ty::of(oid::TEXT))];
        let mut replies = Replies::simple(&out);
        replies.keep(Err(Error::unsupported("no such form")));
        let row = [Datum::text("x")];
        replies.row(OutputRow::of(&row), &columns, &OutputSettings::default());
        assert!(replies.is_full());
        let queued = out.unsent();
        replies.complete("SELECT 1");
        assert_eq!(out.unsent(), queued);
        assert_eq!(replies.failure().unwrap_err().code(), base::SqlState::FEATURE_NOT_SUPPORTED);
    }
}
