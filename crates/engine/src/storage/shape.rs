//! A table as one catalog version has it: how its tuples are read, which indexes it has, how keys are made.
//!
//! Responsible for: layouts by id, columns that older tuples lack, index keys of a tuple.
//! Not responsible for: rows and entries themselves ([`crate::storage`]).
//! An index that has some rows only gives the others an empty key, which no entry has.
//! A key may be long work. Who holds latches or a pin asks for it by [`Shape::new_key`], which gives up, lets go of all, and has
//! it computed by [`Shape::prepare`]; from then on it is known.
//! Invariant: for a layout of the table, [`Shape::key`] of a tuple is the same bytes that `sql-exec` encodes for the same values.

use base::{LayoutId, Oid, Result, work};
use engine_api::{IndexCode, IndexDesc, LayoutField, TableDesc};
use mvcc::LaidOut;
use mvcc::index::{KeyTooLong, MAX_KEY_LEN};
use types::{ColumnType, Datum, DatumRef, InputContext, OutputSettings, RowLayout, RowRef};

use crate::storage::IndexStore;
use crate::storage::unique;

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
    /// Such a value is so long that keys may be long work, whatever a tuple's length.
    misses_long: bool,
}

/// Bytes of a column's missing value that are many.
const LONG_MISSING: usize = 1 << 10;

/// Makes the layouts of a definition that was read from the disk say how values are stored. Those of earlier servers name the
/// columns' types, which may be gone: what `before`, the same table's definition until now, says of a layout stands. The thread's
/// types are those that the definition speaks of.
pub(crate) fn settle_layouts(table: &mut TableDesc, before: Option<&TableDesc>) {
    let is_made = |field: &LayoutField| field.type_oid.0 >= types::user::FIRST_OID;
    if !table.layouts.iter().any(|layout| layout.fields.iter().any(is_made)) {
        return;
    }
    let before = before.filter(|before| before.storage == table.storage);
    for layout in table.layouts.iter_mut() {
        let known = before.and_then(|before| before.layouts.iter().find(|known| known.id == layout.id));
        for (at, field) in layout.fields.iter_mut().enumerate().filter(|(_, field)| is_made(field)) {
            let known = known.and_then(|known| known.fields.get(at)).filter(|known| known.column == field.column);
            field.type_oid = known.map_or_else(|| types::stored_as(field.type_oid), |known| known.type_oid);
        }
    }
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
        let misses_long = table.columns.iter().any(|c| c.missing.as_ref().is_some_and(|m| m.len() > LONG_MISSING));
        Shape { layouts, columns, misses_long }
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

    /// Whether the key of a tuple in an index may be long work.
    #[inline]
    pub fn may_be_long(&self, index: &IndexStore, tuple: &[u8]) -> bool {
        tuple.len() >= index.long_from || self.misses_long
    }

    /// Appends the key of a tuple in an index: nothing if the index does not have it. Answers whether a key column is NULL.
    ///
    /// REQUIRES that the tuple was accepted once ([`Shape::new_key`]).
    #[inline]
    pub fn key(&self, index: &IndexStore, layout: LayoutId, tuple: &[u8], out: &mut Vec<u8>) -> bool {
        if self.may_be_long(index, tuple) {
            return self.accepted_key(index, layout, tuple, out);
        }
        self.plain_key(&index.desc, layout, tuple, out)
    }

    #[inline(never)]
    fn accepted_key(&self, index: &IndexStore, layout: LayoutId, tuple: &[u8], out: &mut Vec<u8>) -> bool {
        if let Some(has_null) = index.known.find(layout, tuple, out) {
            return has_null;
        }
        let (start, before) = (out.len(), work::total());
        // Others may want what is held here. What cannot be computed was never entered.
        let has_null = work::closed(|| self.any_key(index, layout, tuple, out)).unwrap_or(false);
        if work::total() - before >= work::LONG {
            index.known.keep(layout, tuple, &out[start..], has_null);
        }
        has_null
    }

    /// The key of a tuple whatever the index, counted.
    fn any_key(&self, index: &IndexStore, layout: LayoutId, tuple: &[u8], out: &mut Vec<u8>) -> Result<bool> {
        match &index.code {
            Some(code) => self.computed_key(&index.desc, &**code, layout, tuple, out),
            None => Ok(self.plain_key(&index.desc, layout, tuple, out)),
        }
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
        if self.may_be_long(index, tuple) {
            return self.key(index, layout, tuple, &mut Vec::new());
        }
        index.desc.keys.iter().any(|key| self.column(layout, tuple, key.column, |value, _| value.is_null()))
    }

    /// [`Shape::key`] of a tuple that is to be written; `None` if that is long work, and [`Shape::prepare`] must go before.
    ///
    /// # Errors
    /// Those of the index's expressions.
    #[inline]
    pub fn new_key(
        &self,
        index: &IndexStore,
        layout: LayoutId,
        tuple: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Option<bool>> {
        if self.may_be_long(index, tuple) {
            return self.brief_key(index, layout, tuple, out);
        }
        Ok(Some(self.plain_key(&index.desc, layout, tuple, out)))
    }

    #[inline(never)]
    fn brief_key(&self, index: &IndexStore, layout: LayoutId, tuple: &[u8], out: &mut Vec<u8>) -> Result<Option<bool>> {
        if let Some(has_null) = index.known.find(layout, tuple, out) {
            return Ok(Some(has_null));
        }
        work::brief(|| self.any_key(index, layout, tuple, out))
    }

    /// As [`Shape::new_key`], of a tuple that was accepted once, or of which nothing is asked.
    pub fn old_key(&self, index: &IndexStore, layout: LayoutId, tuple: &[u8], out: &mut Vec<u8>) -> Option<bool> {
        self.new_key(index, layout, tuple, out).unwrap_or(Some(false))
    }

    /// Computes the key of a tuple that is long work, so that it is known. REQUIRES that nothing is held that others may want.
    ///
    /// # Errors
    /// Why the statement should stop; if the key is `asked` for, those of the index's expressions, and 54000 if it is longer than
    /// an index takes.
    #[cold]
    pub fn prepare(&self, index: &IndexStore, layout: LayoutId, tuple: &[u8], asked: bool) -> Result<()> {
        let mut key = Vec::new();
        let computed = work::caught(|| self.any_key(index, layout, tuple, &mut key));
        work::look_now()?;
        let has_null = match computed {
            Err(error) if asked => return Err(error),
            _ if asked && key.len() > MAX_KEY_LEN => {
                return Err(unique::too_long(index, KeyTooLong { len: key.len() }));
            }
            computed => computed.unwrap_or(false),
        };
        // Of one that no index takes, so much that none takes it.
        key.truncate(MAX_KEY_LEN + 1);
        index.known.keep(layout, tuple, &key, has_null);
        Ok(())
    }

    /// The first of some versions of a row whose key [`Shape::prepare`] must compute. The others are fast.
    pub fn first_long<'v>(&self, index: &IndexStore, versions: &[LaidOut<'v>]) -> Option<LaidOut<'v>> {
        let mut key = Vec::new();
        versions.iter().copied().find(|(layout, tuple)| {
            key.clear();
            self.may_be_long(index, tuple) && self.old_key(index, *layout, tuple, &mut key).is_none()
        })
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

    /// The key of a tuple in an index that has columns only.
    pub fn plain_key(&self, index: &IndexDesc, layout: LayoutId, tuple: &[u8], out: &mut Vec<u8>) -> bool {
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
        let shown = code.map(|code| code.shown(table)).unwrap_or_default();
        let mut computed = computed.iter().zip(&index.desc.expressions).zip(shown);
        for key in &index.desc.keys {
            if key.column == 0 {
                let Some(((value, expression), shown)) = computed.next() else { continue };
                let mut text = Vec::new();
                if value.is_null() {
                    text.extend_from_slice(b"null");
                } else {
                    let _ = types::write_text(value.as_ref(), expression.type_oid, &settings, &mut text);
                }
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use engine_api::{Catalog, CatalogObject, DomainDesc, LayoutDesc, MadeOnce, TypeDesc, TypeKind};
    use types::oid;
    use types::user::{Types, reading_by};

    use super::*;

    fn table(types: &[Oid]) -> TableDesc {
        let fields = (1..).zip(types).map(|(column, &type_oid)| LayoutField { column, type_oid, typmod: -1 }).collect();
        let mut table = TableDesc::new(Oid(20_000), Oid(2200), "t", Oid(10), Vec::new());
        table.layouts.push(LayoutDesc { id: LayoutId(1), fields });
        table
    }

    fn settled(mut new: TableDesc, before: Option<&TableDesc>) -> Vec<Oid> {
        settle_layouts(&mut new, before);
        new.layouts[0].fields.iter().map(|field| field.type_oid).collect()
    }

    #[test]
    fn layouts_of_earlier_servers_outlive_their_types() {
        let mut catalog = Catalog::default();
        let domain = |base| {
            TypeKind::Domain(DomainDesc {
                base,
                typmod: -1,
                not_null: false,
                default: None,
                default_is_own: false,
                default_of: None,
                checks: Vec::new(),
                collation: None,
            })
        };
        for (oid, kind) in
            [(30_000, TypeKind::Enum(Vec::new())), (30_002, domain(oid::INT8)), (30_004, domain(Oid(30_000)))]
        {
            let desc = TypeDesc {
                oid: Oid(oid),
                array: Oid(oid + 1),
                schema: Oid(2200),
                name: format!("made_{oid}"),
                owner: Oid(10),
                kind,
                comment: None,
                made: MadeOnce::default(),
            };
            catalog.put(Arc::new(CatalogObject::Type(desc)));
        }
        let written = || table(&[30_000, 30_001, 30_002, 30_003, 30_004, oid::TEXT.0].map(Oid));
        let expected = [oid::ANYENUM, oid::ANYARRAY, oid::INT8, oid::ANYARRAY, oid::ANYENUM, oid::TEXT];
        let types = Arc::clone(catalog.types());
        let known = reading_by(&types, || {
            let mut known = written();
            settle_layouts(&mut known, None);
            known
        });
        assert_eq!(settled(known.clone(), None), expected);
        let none = Arc::new(Types::default());
        reading_by(&none, || {
            assert_eq!(settled(written(), Some(&known)), expected);
            // Another storage has other rows.
            let before = TableDesc { storage: 7, ..known.clone() };
            assert_eq!(settled(written(), Some(&before))[2], oid::ANYENUM);
        });
    }
}
