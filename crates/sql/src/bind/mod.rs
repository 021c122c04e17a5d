//! From the raw parse tree to the bound statement ([`crate::ir`]).

use std::sync::Arc;

use base::{Oid, Result};
use engine_api::{Catalog, TableDesc, TableLockMode};
use rupg_sql::nodes::{Node, TypeName};

use crate::functions::{CastContext, EvalContext, Identity, Operator};
use crate::ir::{self, Column, Expr, Ty};

/// A column of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResultColumn {
    /// Name.
    pub name: String,
    /// Type.
    pub ty: Ty,
    /// The table and attribute number it comes from unchanged; invalid and 0 otherwise.
    pub table: Oid,
    /// Attribute number.
    pub column: i16,
}

impl ResultColumn {
    /// A column that belongs to no table.
    pub fn new(name: impl Into<String>, ty: Ty) -> ResultColumn {
        ResultColumn { name: name.into(), ty, table: Oid::INVALID, column: 0 }
    }
}

/// What binding depends on.
pub struct BindContext<'a> {
    /// The catalog to bind to.
    pub catalog: Arc<Catalog>,
    /// Who and where.
    pub identity: Identity,
    /// For folding immutable calls.
    pub eval: &'a dyn EvalContext,
    /// Parameter types: given ones first, `Oid::INVALID`/`unknown` are inferred.
    pub param_types: Vec<Oid>,
}

impl<'a> BindContext<'a> {
    /// A context with the parameter types the client asked for.
    pub fn new(catalog: Arc<Catalog>, identity: Identity, eval: &'a dyn EvalContext, types: &[Oid]) -> BindContext<'a> {
        BindContext { catalog, identity, eval, param_types: types.to_vec() }
    }
}

/// A bound statement and what its session must know of it.
#[derive(Debug)]
pub struct BoundStatement {
    /// The statement.
    pub statement: ir::Statement,
    /// Result columns; empty if it returns none.
    pub columns: Vec<ResultColumn>,
    /// Types of all parameters.
    pub param_types: Vec<Oid>,
    /// Tables used and how they are locked.
    pub tables: Vec<(Oid, TableLockMode)>,
}

/// Binds SELECT, VALUES, INSERT, UPDATE or DELETE.
pub fn bind(_node: &Node, _sql: &str, _cx: &mut BindContext<'_>) -> Result<BoundStatement> {
    todo!()
}

/// The type of a column definition.
#[derive(Clone, Copy, Debug)]
pub struct ColumnType {
    /// Type.
    pub ty: Ty,
    /// `serial` and kin: a sequence is made for it.
    pub serial: bool,
}

/// Resolves the type of a column definition.
pub fn bind_column_type(_name: &TypeName, _sql: &str) -> Result<ColumnType> {
    todo!()
}

/// Binds a column default, coerced to the column's type.
pub fn bind_default(_text: &str, _ty: Ty, _column: &str, _cx: &mut BindContext<'_>) -> Result<Expr> {
    todo!()
}

/// Binds a CHECK condition over the columns of a table (rel 0).
pub fn bind_check(_text: &str, _table: &TableDesc, _cx: &mut BindContext<'_>) -> Result<Expr> {
    todo!()
}

/// Binds an expression without columns, coerced (assignment) to a type.
pub fn bind_argument(_node: &Node, _ty: Ty, _cx: &mut BindContext<'_>) -> Result<Expr> {
    todo!()
}

/// Calls `f` on every column reference of an expression.
pub fn visit_columns(_expr: &Expr, _f: &mut dyn FnMut(&Column)) {
    todo!()
}

/// The `=` operator for two types, after implicit casts.
pub fn equality_operator(_left: Oid, _right: Oid) -> Option<&'static Operator> {
    todo!()
}

/// Whether a cast exists in a context.
pub fn can_cast(_from: Oid, _to: Oid, _context: CastContext) -> bool {
    todo!()
}
