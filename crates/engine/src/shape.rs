//! A table as one catalog version has it: how its tuples are read, which indexes it has, how keys are made.
//!
//! Responsible for: layouts by id, columns that older tuples lack, index keys of a tuple.
//! Not responsible for: rows and entries themselves ([`crate::storage`]).
//! An index that has some rows only gives the others an empty key, which no entry has.
//! Invariant: for a layout of the table, [`Shape::key`] of a tuple is the same bytes that `sql` encodes for the same values.

use base::{LayoutId, Oid, Result};
use engine_api::{IndexCode, IndexDesc, TableDesc};
use types::{ColumnType, Datum, DatumRef, InputContext, OutputSettings, RowLayout, RowRef};

use crate::storage::IndexStore;

/// One layout of a table, with the place of each column in it.
#[derive(Debug)]
struct Layout {
    id: LayoutId,
    row: RowLayout,
    /// By attribute number - 1: the field in the tuple.
    field_of: Vec<Option<u16>>,
}

/// The shape of a table.
#[derive(Debug)]
pub struct Shape {
    layouts: Vec<Layout>,
    /// By attribute number - 1: type, and the value of tuples that lack the column.
    columns: Vec<(Oid, Datum)>,
}

impl Shape {
    /// The shape that a descriptor says.
    pub fn of(table: &TableDesc) -> Shape {
        let settings = OutputSettings::default();
        let input = InputContext { settings: &settings, now_micros: 0 };
        let layouts = table
            .layouts
            .iter()
            .map(|layout| {
                let types: Vec<ColumnType> =
                    layout.fields.iter().map(|f| ColumnType { oid: f.type_oid, typmod: f.typmod }).collect();
                let mut field_of = vec![None; table.columns.len()];
                for (at, field) in layout.fields.iter().enumerate() {
                    field_of[field.column as usize - 1] = Some(at as u16);
                }
                Layout { id: layout.id, row: RowLayout::new(&types), field_of }
            })
            .collect();
        let columns = table
            .columns
            .iter()
            .map(|c| {
                let missing = c.missing.as_deref().map(|text| types::parse_text(c.type_oid, c.typmod, text, &input));
                (types::user::plain_type(c.type_oid, c.typmod).0, missing.and_then(Result::ok).unwrap_or(Datum::Null))
            })
            .collect();
        Shape { layouts, columns }
    }

    /// The id of the newest layout.
    pub fn newest_layout(&self) -> LayoutId {
        self.layouts.last().map_or(LayoutId(1), |l| l.id)
    }

    fn layout(&self, id: LayoutId) -> Option<&Layout> {
        self.layouts.iter().rev().find(|l| l.id == id)
    }

    /// Calls `with` for the value of a column (attribute number) of a tuple.
    fn column<R>(&self, layout: LayoutId, tuple: &[u8], number: i16, with: impl FnOnce(DatumRef<'_>, Oid) -> R) -> R {
        let at = number as usize - 1;
        let (ty, missing) = match self.columns.get(at) {
            Some((ty, missing)) => (*ty, missing.as_ref()),
            None => (Oid::INVALID, DatumRef::Null),
        };
        let Some(layout) = self.layout(layout) else { return with(missing, ty) };
        match layout.field_of.get(at).copied().flatten() {
            Some(field) => with(RowRef::new(&layout.row, tuple).get(field as usize), ty),
            None => with(missing, ty),
        }
    }

    /// Appends the key of a tuple in an index: nothing if the index does not have it. Answers whether a key column is NULL.
    ///
    /// REQUIRES that the tuple was accepted once ([`Shape::new_key`]).
    #[inline]
    pub fn key(&self, index: &IndexStore, layout: LayoutId, tuple: &[u8], out: &mut Vec<u8>) -> bool {
        if let Some(code) = &index.code {
            // What cannot be computed was never entered.
            return self.computed_key(&index.desc, &**code, layout, tuple, out).unwrap_or(false);
        }
        self.plain_key(&index.desc, layout, tuple, out)
    }

    /// Whether two tuples of one layout have the same bytes in all columns of an index: then they have the same key. `false`
    /// says nothing.
    #[inline]
    pub fn keeps_key(&self, index: &IndexStore, layout: LayoutId, old: &[u8], new: &[u8]) -> bool {
        let Some(layout) = self.layout(layout).filter(|_| index.code.is_none()) else { return false };
        let (old, new) = (RowRef::new(&layout.row, old), RowRef::new(&layout.row, new));
        index.desc.keys.iter().all(|key| {
            let field = layout.field_of.get(key.column as usize - 1).copied().flatten();
            field.is_some_and(|field| old.has_same_bytes(&new, field as usize))
        })
    }

    /// Whether a key column of a tuple in an index is NULL.
    pub fn has_null_key(&self, index: &IndexStore, layout: LayoutId, tuple: &[u8]) -> bool {
        if index.code.is_some() {
            return self.key(index, layout, tuple, &mut Vec::new());
        }
        index.desc.keys.iter().any(|key| self.column(layout, tuple, key.column, |value, _| value.is_null()))
    }

    /// [`Shape::key`] of a tuple that is to be written.
    ///
    /// # Errors
    /// Those of the index's expressions.
    #[inline]
    pub fn new_key(&self, index: &IndexStore, layout: LayoutId, tuple: &[u8], out: &mut Vec<u8>) -> Result<bool> {
        match &index.code {
            Some(code) => self.computed_key(&index.desc, &**code, layout, tuple, out),
            None => Ok(self.plain_key(&index.desc, layout, tuple, out)),
        }
    }

    /// The values that an index computes of a tuple; `None` if it does not have it.
    fn compute(&self, code: &dyn IndexCode, layout: LayoutId, tuple: &[u8]) -> Result<Option<Vec<Datum>>> {
        let mut row = vec![Datum::Null; self.columns.len()];
        for &number in code.columns() {
            let value = self.column(layout, tuple, number, |value, _| value.to_owned());
            if let Some(slot) = row.get_mut(number as usize - 1) {
                *slot = value;
            }
        }
        let mut values = Vec::new();
        Ok(code.compute(&row, &mut values)?.then_some(values))
    }

    #[inline(never)]
    fn computed_key(
        &self,
        index: &IndexDesc,
        code: &dyn IndexCode,
        layout: LayoutId,
        tuple: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<bool> {
        let Some(values) = self.compute(code, layout, tuple)? else { return Ok(false) };
        let mut computed = values.iter().zip(&index.expressions);
        let mut any_null = false;
        for key in &index.keys {
            if key.column == 0 {
                let Some((value, expression)) = computed.next() else { continue };
                any_null |= value.is_null();
                types::encode_key(value.as_ref(), expression.type_oid, key.descending, key.nulls_first, out);
                continue;
            }
            self.column(layout, tuple, key.column, |value, ty| {
                any_null |= value.is_null();
                types::encode_key(value, ty, key.descending, key.nulls_first, out);
            });
        }
        Ok(any_null)
    }

    fn plain_key(&self, index: &IndexDesc, layout: LayoutId, tuple: &[u8], out: &mut Vec<u8>) -> bool {
        let mut any_null = false;
        for key in &index.keys {
            self.column(layout, tuple, key.column, |value, ty| {
                any_null |= value.is_null();
                types::encode_key(value, ty, key.descending, key.nulls_first, out);
            });
        }
        any_null
    }

    /// `Key (a, b)=(1, x) already exists.`: the text of a key for error details.
    pub fn key_text(&self, table: &TableDesc, index: &IndexStore, layout: LayoutId, tuple: &[u8]) -> String {
        let settings = OutputSettings::default();
        let mut names = Vec::new();
        let mut values = Vec::new();
        let code = index.code.as_deref();
        let computed = code.and_then(|code| self.compute(code, layout, tuple).ok().flatten()).unwrap_or_default();
        let mut computed = computed.iter().zip(&index.desc.expressions);
        for key in &index.desc.keys {
            if key.column == 0 {
                let Some((value, expression)) = computed.next() else { continue };
                let mut text = Vec::new();
                if value.is_null() {
                    text.extend_from_slice(b"null");
                } else {
                    let _ = types::write_text(value.as_ref(), expression.type_oid, &settings, &mut text);
                }
                // A call is shown as it is, anything else in parentheses.
                let call = expression.text.ends_with(')') && !expression.text.starts_with('(');
                let shown = if call { expression.text.clone() } else { format!("({})", expression.text) };
                names.push(shown.into());
                values.push(String::from_utf8_lossy(&text).into_owned());
                continue;
            }
            names.push(std::borrow::Cow::Borrowed(
                table.columns.get(key.column as usize - 1).map_or("", |c| c.name.as_str()),
            ));
            values.push(self.column(layout, tuple, key.column, |value, ty| {
                let mut text = Vec::new();
                if value.is_null() {
                    return "null".to_string();
                }
                // A value that was stored has a text form.
                let _ = types::write_text(value, ty, &settings, &mut text);
                String::from_utf8_lossy(&text).into_owned()
            }));
        }
        format!("({})=({})", names.join(", "), values.join(", "))
    }
}
