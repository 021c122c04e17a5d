//! Giving every row of a table a new stored form.

use base::{Error, Oid, Result, SqlState};
use engine_api::{Catalog, CatalogObject, ConflictArbiter, Expression, InsertOutcome, LayoutDesc, Step, TableDesc};
use types::{ColumnType, Datum, RowLayout, oid};

use super::Cx;
use super::constraint::qualified;
use super::names::quote;
use crate::ir::Ty;

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
    Some(format!("{}.{}{suffix}", quote(schema.name()), quote(&made.name)))
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
            None => quote(&old.columns[field.column as usize - 1].name),
        })
        .collect();
    let query = format!("SELECT {} FROM {}", values.join(", "), qualified(&cx.catalog(), &old));
    let mut rows = cx.session.internal_query(&query).await?;
    for (i, field) in layout.fields.iter().enumerate() {
        if field.typmod >= 0 && computed.iter().any(|(number, _)| *number == field.column) {
            for row in &mut rows {
                row[i] = types::apply_typmod(std::mem::take(&mut row[i]), field.type_oid, field.typmod, false)?;
            }
        }
    }
    let codec = RowLayout::new(
        &layout.fields.iter().map(|f| ColumnType { oid: f.type_oid, typmod: f.typmod }).collect::<Vec<_>>(),
    );
    check_not_null(&cx.catalog(), &table, &layout, &rows)?;
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
    let mut tuple = Vec::new();
    for (n, row) in rows.iter().enumerate() {
        tuple.clear();
        codec.encode(row, &mut tuple)?;
        loop {
            match cx.txn().insert(&target, &tuple, ConflictArbiter::None).map_err(not_built)? {
                Step::Ready(InsertOutcome::Inserted(_)) => break,
                Step::Ready(InsertOutcome::Conflict(_)) => return Err(Error::internal("a conflict without arbiter")),
                Step::Wait(wait) => cx.session.wait_in_transaction(wait).await?,
            }
        }
        if n % ROWS_PER_TURN == ROWS_PER_TURN - 1 {
            cx.session.wait_in_transaction(engine_api::Wait::yield_now()).await?;
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

fn check_not_null(catalog: &Catalog, table: &TableDesc, layout: &LayoutDesc, rows: &[Vec<Datum>]) -> Result<()> {
    for (i, field) in layout.fields.iter().enumerate() {
        let column = &table.columns[field.column as usize - 1];
        if column.not_null && rows.iter().any(|row| matches!(row[i], Datum::Null)) {
            return Err(Error::new(
                SqlState::NOT_NULL_VIOLATION,
                format!("column \"{}\" of relation \"{}\" contains null values", column.name, table.name),
            )
            .schema(super::constraint::schema_of(catalog, table))
            .table(&table.name)
            .column(&column.name));
        }
    }
    Ok(())
}
