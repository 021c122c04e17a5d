//! What every row of a table has besides its columns: where it is, who wrote it, which table it is of.
//!
//! Responsible for: names, numbers, types; how a row's identity is shown.
//! A rel has these columns behind its own, without names, once one of them is asked for ([`Rel::system_columns`]).

use base::{Error, Oid, Result, RowId, SqlState};
use engine_api::{TableDesc, TableKind};
use types::{Datum, oid};

use crate::{Rel, RelColumn, RelKind, Ty};

/// A column that a table has without having been given it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SystemColumn {
    /// The row's identity, as long as it lives.
    Ctid,
    /// The transaction that wrote the version.
    Xmin,
    /// 0: commands are not told of.
    Cmin,
    /// 0, or the transaction in which ON CONFLICT has found the row.
    Xmax,
    /// 0, as [`SystemColumn::Cmin`].
    Cmax,
    /// The table.
    TableOid,
}

/// Bits of a row's number that its `ctid` shows as the offset.
const OFFSET_BITS: u32 = 15;

impl SystemColumn {
    /// All of them, in the order of their numbers: -1, -2 and so on.
    pub const ALL: [SystemColumn; 6] = [
        SystemColumn::Ctid,
        SystemColumn::Xmin,
        SystemColumn::Cmin,
        SystemColumn::Xmax,
        SystemColumn::Cmax,
        SystemColumn::TableOid,
    ];

    /// The one of this name.
    pub fn named(name: &str) -> Option<SystemColumn> {
        // Names of columns are looked up often, and few are these.
        if !matches!(name.as_bytes(), [b'c' | b'x' | b't', ..]) {
            return None;
        }
        SystemColumn::ALL.into_iter().find(|column| column.name() == name)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            SystemColumn::Ctid => "ctid",
            SystemColumn::Xmin => "xmin",
            SystemColumn::Cmin => "cmin",
            SystemColumn::Xmax => "xmax",
            SystemColumn::Cmax => "cmax",
            SystemColumn::TableOid => "tableoid",
        }
    }

    /// Its number among the table's attributes.
    pub fn number(self) -> i16 {
        -1 - self as i16
    }

    /// Its type.
    pub fn type_oid(self) -> Oid {
        match self {
            SystemColumn::Ctid => oid::TID,
            SystemColumn::Xmin | SystemColumn::Xmax => oid::XID,
            SystemColumn::Cmin | SystemColumn::Cmax => oid::CID,
            SystemColumn::TableOid => oid::OID,
        }
    }

    /// Its value of a row that `writer` wrote and, if it was in the way of an INSERT, has locked.
    pub fn value(self, table: Oid, row: RowId, writer: u32, locker: u32) -> Datum {
        match self {
            SystemColumn::Ctid => place_of(row),
            SystemColumn::Xmin => Datum::Oid(writer),
            SystemColumn::Xmax => Datum::Oid(locker),
            SystemColumn::Cmin | SystemColumn::Cmax => Datum::Oid(0),
            SystemColumn::TableOid => Datum::Oid(table.0),
        }
    }
}

/// Where a row is, as `ctid` says it.
pub fn place_of(row: RowId) -> Datum {
    let offset = row.0 & ((1 << OFFSET_BITS) - 1);
    types::tid((row.0 >> OFFSET_BITS) as u32, offset as u16 + 1)
}

/// The row that a `ctid` means; `None` if there can be none.
pub fn row_at(place: &Datum) -> Option<RowId> {
    let Datum::Int8(place) = place else { return None };
    let (block, offset) = types::tid_parts(*place);
    let offset = offset.checked_sub(1).filter(|offset| *offset < 1 << OFFSET_BITS)?;
    Some(RowId(u64::from(block) << OFFSET_BITS | u64::from(offset)))
}

/// The system column of this name of a table; a view has none.
pub fn of_table(table: &TableDesc, name: &str) -> Option<SystemColumn> {
    SystemColumn::named(name).filter(|_| table.kind != TableKind::View)
}

/// The number of a column of a table by name, system columns among them.
pub fn number_of(table: &TableDesc, name: &str) -> Option<i16> {
    table.column(name).map(|c| c.number).or_else(|| of_table(table, name).map(SystemColumn::number))
}

/// Refuses to do something to a system column.
///
/// # Errors
/// 0A000
pub fn refuse(table: &TableDesc, name: &str, verb: &str) -> Result<()> {
    match of_table(table, name) {
        Some(_) => Err(Error::unsupported(format!("cannot {verb} system column \"{name}\""))),
        None => Ok(()),
    }
}

/// Refuses a name that a new column of a table may not have.
///
/// # Errors
/// 42701
pub fn refuse_name(table: &TableDesc, name: &str) -> Result<()> {
    match of_table(table, name) {
        Some(_) => {
            let message = format!("column name \"{name}\" conflicts with a system column name");
            Err(Error::new(SqlState::DUPLICATE_COLUMN, message))
        }
        None => Ok(()),
    }
}

impl Rel {
    /// Where its system columns begin, or would; `None` if it is not a table.
    pub fn system_start(&self) -> Option<usize> {
        match &self.kind {
            RelKind::Table(info) => Some(info.desc.columns.len()),
            _ => None,
        }
    }

    /// Makes sure that it has its system columns, which is a table; answers where they begin.
    pub fn system_columns(&mut self) -> Option<usize> {
        let start = self.system_start()?;
        if self.columns.len() == start {
            let hidden = |c: SystemColumn| RelColumn { name: String::new(), ty: Ty::of(c.type_oid()) };
            self.columns.extend(SystemColumn::ALL.map(hidden));
        }
        Some(start)
    }

    /// Which system column one of its columns is.
    pub fn system_column(&self, column: usize) -> Option<SystemColumn> {
        SystemColumn::ALL.get(column.checked_sub(self.system_start()?)?).copied()
    }

    /// The name of a column, for messages.
    pub fn column_name(&self, column: usize) -> &str {
        let own = || self.columns.get(column).map_or("", |c| c.name.as_str());
        match (self.system_column(column), &self.kind) {
            (Some(system), _) => system.name(),
            (None, RelKind::System(relation)) if column == relation.columns.len() => SystemColumn::TableOid.name(),
            _ => own(),
        }
    }

    /// The number that a table has a column under.
    pub fn column_number(&self, column: usize) -> i16 {
        self.system_column(column).map_or(column as i16 + 1, SystemColumn::number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_those_of_rows() {
        for row in [0, 1, 32767, 32768, 1 << 40].map(RowId) {
            assert_eq!(row_at(&place_of(row)), Some(row));
        }
        assert_eq!(place_of(RowId(0)).integer(), types::tid(0, 1).integer());
        for nowhere in [types::tid(0, 0), types::tid(0, 32769), Datum::Null] {
            assert_eq!(row_at(&nowhere), None);
        }
    }

    #[test]
    fn numbers_are_those_of_their_order() {
        for (at, column) in SystemColumn::ALL.into_iter().enumerate() {
            assert_eq!(column.number(), -1 - at as i16);
            assert_eq!(SystemColumn::named(column.name()), Some(column));
        }
    }
}
