//! System columns by name: which item of a namespace has them, and where they may not be named.

use base::{Error, Result, SqlState};
use rupg_sql::nodes::ResTarget;
use sql_ir::system_column::SystemColumn;
use sql_ir::{Column, Expr, Rel, RelKind, Ty};

use super::Binder;
use super::dml::Written;
use super::scope::{ClauseKind, Item};

impl Binder<'_, '_> {
    /// The system column of this name of an item of scope `index`.
    ///
    /// # Errors
    /// 42P10 where none may be named, 0A000 for one that is not there to be shown.
    pub(super) fn system_column_of(
        &self,
        index: usize,
        item: &Item,
        name: &str,
        location: i32,
    ) -> Result<Option<SystemColumn>> {
        let (Some(column), Some(rel)) = (SystemColumn::named(name), item.system_rel) else {
            return Ok(None);
        };
        match (&self.scopes[index].rels[rel].kind, column) {
            (RelKind::Table(_), _) => self.refuse_in_definitions(column, location)?,
            (RelKind::System(_), SystemColumn::TableOid) => {}
            (RelKind::System(_), _) => {
                return Err(self.unsupported(format!("system column \"{name}\" is not supported here"), location));
            }
            _ => return Ok(None),
        }
        Ok(Some(column))
    }

    fn refuse_in_definitions(&self, column: SystemColumn, location: i32) -> Result<()> {
        let name = column.name();
        let message = match self.place() {
            ClauseKind::Check if column != SystemColumn::TableOid => {
                format!("system column \"{name}\" reference in check constraint is invalid")
            }
            ClauseKind::Generated if column != SystemColumn::TableOid => {
                format!("cannot use system column \"{name}\" in column generation expression")
            }
            ClauseKind::MergeWhen if column != SystemColumn::TableOid => {
                format!("cannot use system column \"{name}\" in MERGE WHEN condition")
            }
            ClauseKind::IndexExpression | ClauseKind::IndexPredicate => {
                return Err(Error::unsupported("index creation on system columns is not supported"));
            }
            ClauseKind::Check | ClauseKind::Generated => {
                return Err(self.unsupported(format!("system column \"{name}\" is not supported here"), location));
            }
            _ => return Ok(()),
        };
        Err(self.error(SqlState::INVALID_COLUMN_REFERENCE, message, location))
    }

    /// Gives the table that is changed the system columns that it has got in the current scope.
    pub(super) fn keep_system_columns(&mut self, rels: &mut [Rel]) {
        if let (Some(kept), Some(named)) = (rels.first_mut(), self.scopes.last().and_then(|scope| scope.rels.first()))
            && named.columns.len() > kept.columns.len()
        {
            kept.columns.clone_from(&named.columns);
        }
    }

    /// Refuses a value for a system column.
    pub(super) fn refuse_system_target(&self, target: &ResTarget, written: &Written) -> Result<()> {
        let name = target.name.as_deref().unwrap_or("");
        if written.is_through_view() || SystemColumn::named(name).is_none() {
            return Ok(());
        }
        Err(self.unsupported(format!("cannot assign to system column \"{name}\""), target.location))
    }

    /// A system column of a rel of scope `index`, which is read; at level 0 of that scope.
    pub(super) fn read_system_column(&mut self, index: usize, rel: usize, column: SystemColumn) -> Expr {
        let entry = &mut self.scopes[index].rels[rel];
        let at = match entry.system_columns() {
            Some(start) => start + column as usize,
            // A relation of the catalog has the one behind its own.
            None => entry.columns.len() - 1,
        };
        Expr::Column(Column { level: 0, rel, column: at, ty: Ty::of(column.type_oid()) })
    }
}
