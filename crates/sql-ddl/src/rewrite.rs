//! Giving every row of a table a new stored form.

use std::sync::Arc;

use base::{Error, Oid, Result, SqlState};
use engine_api::{
    Catalog, CatalogObject, ColumnDesc, ConflictArbiter, Expression, InsertOutcome, LayoutDesc, Step, TableDesc,
};
use sql_exec::{OutputRow, RowSink};
use sql_ir::Ty;
use sql_parse::names::{qualified, quote_name};
use types::{ColumnType, Datum, RowLayout, oid};

use super::Cx;

/// Rows inserted between two turns for other connections.
const ROWS_PER_TURN: usize = 256;

/// The value of a default that is the same for every row, in text form; `None` if it has to be computed per row.
pub(super) fn constant_default(cx: &mut Cx<'_>, text: &Expression, ty: Ty) -> Result<Option<Option<String>>> {
    cx.session.constant_text(text, ty)
}

/// An expression cast to a type of any length: how long a value may be is for the table to say.
pub(super) fn as_type(catalog: &Catalog, expression: &str, ty: Oid) -> String {
    let name = match ty {
        // Their names alone mean a length of one.
        oid::BPCHAR | oid::BIT => oid::any_length_name(ty).to_owned(),
        oid::BPCHAR_ARRAY => format!("{}[]", oid::any_length_name(oid::BPCHAR)),
        oid::BIT_ARRAY => format!("{}[]", oid::any_length_name(oid::BIT)),
        ty => made_name(catalog, ty).unwrap_or_else(|| types::format_type(ty, -1)),
    };
    format!("({expression})::{name}")
}

/// The name of a type that a statement made, or of an array of one, by which it is found whatever the search path is.
fn made_name(catalog: &Catalog, ty: Oid) -> Option<String> {
    let (made, suffix) = match types::element_of(ty).filter(|_| catalog.user_type(ty).is_none()) {
        Some(element) => (catalog.user_type(element)?, "[]"),
        None => (catalog.user_type(ty)?, ""),
    };
    let schema = catalog.get(made.schema)?;
    let suffix = if made.array == ty { "[]" } else { suffix };
    Some(format!("{}.{}{suffix}", quote_name(schema.name()), quote_name(&made.name)))
}

/// Writes every row again in `layout`, with `computed` columns given by expressions over the old row, into fresh storage.
pub(super) async fn rewrite_table(
    cx: &mut Cx<'_>,
    mut table: TableDesc,
    layout: LayoutDesc,
    computed: &[(i16, String)],
) -> Result<()> {
    let old = cx.catalog().table(table.oid).cloned().ok_or_else(|| Error::internal("the table went away"))?;
    let values: Vec<String> = layout
        .fields
        .iter()
        .map(|field| match computed.iter().find(|(number, _)| *number == field.column) {
            Some((_, expression)) => expression.clone(),
            None => quote_name(&old.columns[field.column as usize - 1].name),
        })
        .collect();
    let query = format!("SELECT {} FROM {}", values.join(", "), qualified(&cx.catalog(), old.schema, &old.name));
    let mut rows = NewRows::of(&table, &layout, computed, cx.catalog());
    cx.session.internal_query_into(&query, &mut rows).await?;
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
    /// Which fields are to be fitted to the length of their type.
    fitted: Vec<bool>,
    /// Tuples, each behind its length in four bytes.
    parts: Vec<Vec<u8>>,
    values: Vec<Datum>,
}

impl<'a> NewRows<'a> {
    fn of(
        table: &'a TableDesc,
        layout: &'a LayoutDesc,
        computed: &[(i16, String)],
        catalog: Arc<Catalog>,
    ) -> NewRows<'a> {
        let types = layout.fields.iter().map(|f| ColumnType { oid: f.type_oid, typmod: f.typmod });
        let codec = RowLayout::new(&types.collect::<Vec<_>>());
        let is_computed = |number: i16| computed.iter().any(|(computed, _)| *computed == number);
        let fitted = layout.fields.iter().map(|field| field.typmod >= 0 && is_computed(field.column)).collect();
        NewRows { table, layout, catalog, codec, fitted, parts: Vec::new(), values: Vec::new() }
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
        for ((value, field), fitted) in self.values.iter_mut().zip(&self.layout.fields).zip(&self.fitted) {
            if *fitted {
                *value = types::apply_typmod(std::mem::take(value), field.type_oid, field.typmod, false)?;
            }
        }
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
