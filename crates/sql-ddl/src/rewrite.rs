//! Giving every row of a table a new stored form.

use std::sync::Arc;

use base::{Error, Result, SqlState};
use engine_api::{
    Catalog, CatalogObject, ColumnDesc, ConflictArbiter, Expression, InsertOutcome, LayoutDesc, Step, TableDesc,
};
use sql_bind::{self as bind, BindContext, Computed, own};
use sql_exec::{OutputRow, RowSink};
use sql_ir::{Expr, Ty};
use types::{ColumnType, Datum, RowLayout};

use super::Cx;

/// Rows inserted between two turns for other connections.
const ROWS_PER_TURN: usize = 256;

/// The value of a default that is the same for every row, in text form; `None` if it has to be computed per row.
pub(super) fn constant_default(cx: &mut Cx<'_>, text: &Expression, ty: Ty) -> Result<Option<Option<String>>> {
    cx.session.constant_text(text, ty)
}

/// What gives a column its values when all rows are written again.
pub(super) struct ComputedColumn {
    pub number: i16,
    /// The type of the values; as an assignment does, making them of its length refuses what would have to be cut.
    pub ty: Ty,
    /// `None`: a default, which speaks of no column.
    pub by: Option<Computed>,
    pub text: Expression,
}

impl ComputedColumn {
    /// The value over the rows of the old table (rel 0).
    fn bind(&self, old: &TableDesc, table: &TableDesc, cx: &mut BindContext<'_>) -> Result<Expr> {
        let name = &table.columns[self.number as usize - 1].name;
        match self.by {
            None => bind::bind_default(&self.text, self.ty, name, cx),
            Some(by) => bind::bind_computed(by, &self.text, self.ty, name, old, cx),
        }
    }
}

/// Writes every row again in `layout`, with the `computed` columns given by expressions over the old row, into fresh storage.
pub(super) async fn rewrite_table(
    cx: &mut Cx<'_>,
    mut table: TableDesc,
    layout: LayoutDesc,
    computed: &[ComputedColumn],
) -> Result<()> {
    let mut old_rows = |binder: &mut BindContext<'_>| {
        let old = own::table_info(&binder.catalog, table.oid)?;
        let mut values = Vec::with_capacity(layout.fields.len());
        for field in layout.fields.iter() {
            values.push(match computed.iter().find(|computed| computed.number == field.column) {
                Some(computed) => computed.bind(&old.desc, &table, binder)?,
                None => own::column(&old.desc, field.column as usize - 1, 0),
            });
        }
        Ok(own::giving(own::rows_of(&old, None), values))
    };
    let mut rows = NewRows::of(&table, &layout, cx.catalog());
    super::query::all_rows(cx, &[table.oid], &mut old_rows, &mut rows).await?;
    let parts = rows.parts;
    for column in &mut table.columns {
        (column.missing, column.missing_row) = (None, None);
    }
    table.layouts = vec![layout].into();
    table.storage += 1;
    let oid = table.oid;
    let indexes: Vec<_> = cx.catalog().indexes(oid).cloned().collect();
    cx.put(CatalogObject::Table(table.clone())).await?;
    for index in &indexes {
        // Indexes of fresh storage start empty and fill with the inserts below.
        cx.put(CatalogObject::Index(index.clone())).await?;
    }
    cx.txn().begin_command();
    let target = cx.txn().open_table(oid)?;
    let mut written = 0;
    for part in parts {
        let mut rest = part.as_slice();
        while let Some((length, behind)) = rest.split_first_chunk() {
            let (tuple, behind) = behind.split_at(u32::from_le_bytes(*length) as usize);
            rest = behind;
            loop {
                match cx.txn().insert(&target, tuple, ConflictArbiter::None).map_err(not_built)? {
                    Step::Ready(InsertOutcome::Inserted(_)) => break,
                    Step::Ready(InsertOutcome::Conflict(_)) => {
                        return Err(Error::internal("a conflict without arbiter"));
                    }
                    Step::Wait(wait) => cx.session.wait_in_transaction(wait).await?,
                }
            }
            written += 1;
            if written % ROWS_PER_TURN == 0 {
                cx.session.wait_in_transaction(engine_api::Wait::yield_now()).await?;
            }
        }
    }
    let mut unproven = Vec::new();
    cx.txn().take_unproven(&mut unproven);
    for (index, row) in unproven {
        while let Step::Wait(wait) = cx.txn().prove_unique(&target, index, row).map_err(not_built)? {
            cx.session.wait_in_transaction(wait).await?;
        }
    }
    for index in &indexes {
        super::constraint::test_domains(cx, &table, index).await?;
    }
    Ok(())
}

/// A key that rows have twice, as the statement that builds an index anew says it.
pub(super) fn not_built(mut error: Error) -> Error {
    if error.code() == SqlState::UNIQUE_VIOLATION {
        let fields = error.fields_mut();
        let name = fields.message.split_once('"').map_or(String::new(), |(_, name)| format!("\"{name}"));
        fields.message = format!("could not create unique index {name}");
        fields.detail = fields.detail.take().map(|d| d.replace(") already exists.", ") is duplicated."));
    }
    error
}

/// Bytes of rows that are kept together.
const PART: usize = 1 << 20;

/// Rows in their new form, kept until there is storage for them.
struct NewRows<'a> {
    table: &'a TableDesc,
    layout: &'a LayoutDesc,
    catalog: Arc<Catalog>,
    codec: RowLayout,
    /// Tuples, each behind its length in four bytes.
    parts: Vec<Vec<u8>>,
    values: Vec<Datum>,
}

impl<'a> NewRows<'a> {
    fn of(table: &'a TableDesc, layout: &'a LayoutDesc, catalog: Arc<Catalog>) -> NewRows<'a> {
        let types = layout.fields.iter().map(|f| ColumnType { oid: f.type_oid, typmod: f.typmod });
        let codec = RowLayout::new(&types.collect::<Vec<_>>());
        NewRows { table, layout, catalog, codec, parts: Vec::new(), values: Vec::new() }
    }

    #[cold]
    fn has_null(&self, column: &ColumnDesc) -> Error {
        Error::new(
            SqlState::NOT_NULL_VIOLATION,
            format!("column \"{}\" of relation \"{}\" contains null values", column.name, self.table.name),
        )
        .schema(super::constraint::schema_of(&self.catalog, self.table))
        .table(&self.table.name)
        .column(&column.name)
    }
}

impl RowSink for NewRows<'_> {
    fn row(&mut self, row: OutputRow<'_>) -> Result<bool> {
        self.values.clear();
        self.values.extend(row.owned());
        for (value, field) in self.values.iter().zip(&self.layout.fields) {
            let column = &self.table.columns[field.column as usize - 1];
            if column.not_null && value.is_null() {
                return Err(self.has_null(column));
            }
        }
        if self.parts.last().is_none_or(|part| part.len() >= PART) {
            self.parts.push(Vec::new());
        }
        let Some(part) = self.parts.last_mut() else { return Ok(false) };
        let start = part.len();
        part.extend_from_slice(&[0; 4]);
        self.codec.encode(&self.values, part)?;
        let length = (part.len() - start - 4) as u32;
        part[start..start + 4].copy_from_slice(&length.to_le_bytes());
        Ok(false)
    }
}
