//! Rows of tables as tuples: reading their columns into registers or where they lie, writing them.
//!
//! Responsible for: the layouts that a table has had, columns that a tuple does not have, and those that no tuple has.
//! Not responsible for: how a layout is written (`types`), which columns a plan reads.

use base::{LayoutId, Oid, Result, RowId};
use engine_api::{BatchRow, ColumnDesc};
use types::{ColumnType, Datum, DatumRef, InputContext, OutputSettings, RowLayout, RowRef};

use crate::TableInfo;
use crate::expr::Slot;
use crate::system_column::SystemColumn;

/// Reads tuples of a table into registers, whatever layout they were written with (rule R3).
#[derive(Clone, Debug)]
pub struct RowReader {
    /// Slot of the row's identity.
    pub row_slot: Option<Slot>,
    layouts: Vec<LayoutReader>,
    /// So many columns, the first ones, go to the registers.
    read: usize,
}

#[derive(Clone, Debug)]
struct LayoutReader {
    id: LayoutId,
    layout: RowLayout,
    steps: Vec<(Slot, Source)>,
}

#[derive(Clone, Debug)]
enum Source {
    Field(usize),
    /// The column did not exist when the tuple was written.
    Missing(Datum),
    /// It is not in the tuple: the table it is of.
    System(SystemColumn, Oid),
}

impl RowReader {
    /// A reader of these columns (attribute number - 1, slot) of a table.
    pub fn new(info: &TableInfo, columns: &[(usize, Slot)], row_slot: Option<Slot>) -> Result<RowReader> {
        let layouts = info
            .desc
            .layouts
            .iter()
            .map(|desc| {
                let fields: Vec<ColumnType> =
                    desc.fields.iter().map(|f| ColumnType { oid: f.type_oid, typmod: f.typmod }).collect();
                let steps = columns
                    .iter()
                    .map(|&(column, slot)| {
                        let number = column as i16 + 1;
                        let system = column.checked_sub(info.desc.columns.len());
                        if let Some(system) = system.and_then(|at| SystemColumn::ALL.get(at)) {
                            return Ok((slot, Source::System(*system, info.desc.oid)));
                        }
                        let source = match desc.fields.iter().position(|f| f.column == number) {
                            Some(field) => Source::Field(field),
                            None => Source::Missing(missing_value(&info.desc.columns[column])?),
                        };
                        Ok((slot, source))
                    })
                    .collect::<Result<_>>()?;
                Ok(LayoutReader { id: desc.id, layout: RowLayout::new(&fields), steps })
            })
            .collect::<Result<_>>()?;
        Ok(RowReader { row_slot, layouts, read: columns.len() })
    }

    /// The same that puts only the first `read` columns into the registers. The others are looked at where they are.
    #[must_use]
    pub fn up_to(self, read: usize) -> RowReader {
        RowReader { read, ..self }
    }

    /// Columns that are put into the registers.
    pub fn len(&self) -> usize {
        self.read
    }

    /// Reads the columns of a row from number `at` on; `false` if its layout is unknown.
    pub fn read_from(&self, at: usize, row: BatchRow<'_>, registers: &mut [Datum]) -> bool {
        let Some(layout) = self.layout(row.layout) else { return false };
        Reading { row: StoredRow::new(layout, row), at, end: self.read }.finish(registers);
        true
    }

    /// Reads one row.
    #[inline]
    pub fn read(&self, row: BatchRow<'_>, registers: &mut [Datum]) {
        if let Some(mut reading) = self.begin(row, registers) {
            reading.finish(registers);
        }
    }

    /// Numbers of the columns that go to these slots; `None` if not all of them are columns.
    pub fn columns_at(&self, slots: &[Slot]) -> Option<Box<[u32]>> {
        let steps = &self.layouts.last()?.steps;
        slots.iter().map(|slot| Some(steps.iter().position(|(to, _)| to == slot)? as u32)).collect()
    }

    /// Whether a row is one that [`RowReader::stored`] reads.
    #[inline]
    pub fn knows(&self, row: BatchRow<'_>) -> bool {
        self.layout(row.layout).is_some()
    }

    /// A row whose columns are looked at where they are. `None` if its layout is unknown. Always inline: the row of a result is
    /// larger than what is returned in registers, and is copied from each function to the next.
    #[inline(always)]
    pub fn stored<'r>(&'r self, row: BatchRow<'r>) -> Option<StoredRow<'r>> {
        Some(StoredRow::new(self.layout(row.layout)?, row))
    }

    /// Whether a row that is read puts a value into this slot.
    pub fn reads(&self, slot: Slot) -> bool {
        let read = |layout: &LayoutReader| layout.steps[..self.read].iter().any(|(to, _)| *to == slot);
        self.row_slot == Some(slot) || self.layouts.last().is_some_and(read)
    }

    #[inline]
    fn layout(&self, id: LayoutId) -> Option<&LayoutReader> {
        self.layouts.iter().rev().find(|l| l.id == id)
    }

    /// Begins to read one row, column by column in the order that the reader was made with. `None` if its layout is unknown.
    #[inline]
    pub fn begin<'r>(&'r self, row: BatchRow<'r>, registers: &mut [Datum]) -> Option<Reading<'r>> {
        if let Some(slot) = self.row_slot {
            registers[slot as usize] = Datum::Int8(row.row.0 as i64);
        }
        Some(Reading { row: StoredRow::new(self.layout(row.layout)?, row), at: 0, end: self.read })
    }
}

/// A row that is being read.
pub struct Reading<'r> {
    /// Where it lies.
    pub row: StoredRow<'r>,
    at: usize,
    end: usize,
}

impl Reading<'_> {
    /// Reads the columns up to number `end` of the reader's order.
    #[inline]
    pub fn up_to(&mut self, end: usize, registers: &mut [Datum]) {
        let end = end.max(self.at);
        for at in self.at..end {
            registers[self.row.steps[at].0 as usize].put(self.row.get_owned(at));
        }
        self.at = end;
    }

    /// Reads the others.
    #[inline]
    pub fn finish(&mut self, registers: &mut [Datum]) {
        self.up_to(self.end, registers);
    }
}

/// A row in its tuple. Columns have the numbers of the reader's order.
#[derive(Clone, Copy)]
pub struct StoredRow<'r> {
    tuple: RowRef<'r>,
    steps: &'r [(Slot, Source)],
    row: RowId,
    writer: u32,
}

impl<'r> StoredRow<'r> {
    #[inline(always)]
    fn new(reader: &'r LayoutReader, row: BatchRow<'r>) -> StoredRow<'r> {
        let tuple = RowRef::new(&reader.layout, row.tuple);
        StoredRow { tuple, steps: &reader.steps, row: row.row, writer: row.writer }
    }

    /// The column that is read into this slot.
    #[inline]
    pub fn find(&self, slot: Slot) -> Option<usize> {
        self.steps.iter().position(|(to, _)| *to == slot)
    }

    /// A column of the row, borrowed from where it lies.
    #[inline]
    pub fn get(&self, column: usize) -> DatumRef<'r> {
        match &self.steps[column].1 {
            Source::Field(field) => self.tuple.get(*field),
            Source::Missing(value) => value.as_ref(),
            Source::System(system, table) => self.system(*system, *table),
        }
    }

    #[inline(never)]
    fn system(&self, column: SystemColumn, table: Oid) -> DatumRef<'r> {
        match column.value(table, self.row, self.writer, 0) {
            Datum::Int8(place) => DatumRef::Int8(place),
            Datum::Oid(number) => DatumRef::Oid(number),
            _ => DatumRef::Null,
        }
    }

    /// See [`RowRef::text_bytes`].
    #[inline]
    pub fn text_bytes(&self, column: usize) -> Option<&'r [u8]> {
        match &self.steps[column].1 {
            Source::Field(field) => self.tuple.text_bytes(*field),
            Source::Missing(_) | Source::System(..) => None,
        }
    }

    /// A column of the row.
    #[inline]
    pub fn get_owned(&self, column: usize) -> Datum {
        match &self.steps[column].1 {
            Source::Field(field) => self.tuple.get_owned(*field),
            Source::Missing(value) => value.clone(),
            Source::System(system, table) => self.system(*system, *table).to_owned(),
        }
    }
}

/// Encodes values of all columns as a tuple of a table's newest layout.
#[derive(Debug)]
pub struct RowWriter {
    id: LayoutId,
    layout: RowLayout,
    /// For each field: the column (attribute number - 1).
    columns: Vec<usize>,
}

impl RowWriter {
    /// The writer for the newest layout of a table.
    pub fn new(info: &TableInfo) -> RowWriter {
        let desc = info.desc.newest_layout();
        let fields: Vec<ColumnType> =
            desc.fields.iter().map(|f| ColumnType { oid: f.type_oid, typmod: f.typmod }).collect();
        RowWriter {
            id: desc.id,
            layout: RowLayout::new(&fields),
            columns: desc.fields.iter().map(|f| (f.column - 1) as usize).collect(),
        }
    }

    /// Appends the tuple of the values that `slots` has for the columns.
    pub fn write(&self, registers: &[Datum], slots: &[Slot], out: &mut Vec<u8>) -> Result<()> {
        self.layout.encode_of(|field| &registers[slots[self.columns[field]] as usize], out)
    }

    /// Where in the layout these columns are, and the slots of their new values, as [`RowWriter::rewrite`] wants them.
    pub fn places(&self, columns: &[usize], slots: &[Slot]) -> Vec<(usize, Slot)> {
        let places = self.columns.iter().enumerate().filter(|(_, column)| columns.contains(column));
        places.map(|(field, &column)| (field, slots[column])).collect()
    }

    /// Appends the tuple `old` with other values in some places. `false`, and nothing is appended, if it must be written anew.
    pub fn rewrite(
        &self,
        old: BatchRow<'_>,
        places: &[(usize, Slot)],
        registers: &[Datum],
        out: &mut Vec<u8>,
    ) -> Result<bool> {
        if old.layout != self.id {
            return Ok(false);
        }
        let changes: smallvec::SmallVec<[(usize, &Datum); 8]> =
            places.iter().map(|&(field, slot)| (field, &registers[slot as usize])).collect();
        self.layout.patch(old.tuple, &changes, out)
    }
}

/// The value of a column in rows written before it existed.
pub(crate) fn missing_value(column: &ColumnDesc) -> Result<Datum> {
    if let Some(row) = &column.missing_row {
        let layout = layout_alone(column);
        layout.validate(row)?;
        return Ok(RowRef::new(&layout, row).get_owned(0));
    }
    let Some(text) = &column.missing else { return Ok(Datum::Null) };
    let settings = OutputSettings::default();
    let input = InputContext { settings: &settings, now_micros: 0 };
    let value = types::parse_text(column.type_oid, column.typmod, text, &input)?;
    types::apply_typmod(value, column.type_oid, column.typmod, false)
}

fn layout_alone(column: &ColumnDesc) -> RowLayout {
    RowLayout::new(&[ColumnType { oid: column.type_oid, typmod: column.typmod }])
}

/// Keeps the value of a column in rows written before it existed so that it stays what it is when labels of its type are renamed.
pub fn keep_missing(column: &mut ColumnDesc) -> Result<()> {
    if column.missing.is_some() && column.missing_row.is_none() && enum_of(column.type_oid).is_some() {
        let (value, mut row) = (missing_value(column)?, Vec::new());
        layout_alone(column).encode(&[value], &mut row)?;
        column.missing_row = Some(row);
    }
    Ok(())
}

/// The enum that values of a type are of, or hold.
pub fn enum_of(ty: Oid) -> Option<Oid> {
    let (plain, _) = types::user::plain_type(ty, -1);
    let element = types::element_of(plain).map(|element| types::user::plain_type(element, -1).0);
    [Some(plain), element].into_iter().flatten().find(|&ty| types::user::is_enum(ty))
}
