//! Rows as documents (`row_to_json(t)`) and documents as rows (`jsonb_to_recordset(…) AS t(a integer)`).
//!
//! A row value does not carry its fields' names and types; here they are known, and are passed to the functions as
//! constants.

use base::{Oid, Result, SqlState};
use rupg_sql::nodes::{FuncCall, Node};
use sql_functions::{self as functions, CastContext, Function};
use sql_ir::{Column, Expr, Query, RelColumn, RelKind, SetCall, Ty};
use types::{Array, Datum, oid};

use super::node::{string, strings};
use super::range_function::Part;
use super::{BindContext, Binder, Located};

/// Functions of documents that take rows.
const TAKE_ROWS: [&str; 13] = [
    "row_to_json",
    "to_json",
    "to_jsonb",
    "json_agg",
    "jsonb_agg",
    "json_object_agg",
    "jsonb_object_agg",
    "json_build_object",
    "jsonb_build_object",
    "json_build_array",
    "jsonb_build_array",
    "json_agg_strict",
    "jsonb_agg_strict",
];

fn array(element: Oid, values: Vec<Datum>) -> Expr {
    let dims = if values.is_empty() { Vec::new() } else { vec![(values.len() as i32, 1)] };
    let ty = types::array_of(element).unwrap_or(oid::TEXT_ARRAY);
    Expr::Const(Datum::Array(Array { element, dims, values }.into()), Ty::of(ty))
}

fn internal(name: &str) -> Result<&'static Function> {
    let function = functions::functions_named(name).first().copied();
    function.ok_or_else(|| base::Error::internal(format!("no function \"{name}\"")))
}

/// A call that makes a document of a row with these fields.
fn document_of(shape: Vec<(String, Oid)>, row: Expr, line_feeds: Option<Expr>) -> Result<Expr> {
    let (names, types): (Vec<Datum>, Vec<Datum>) =
        shape.into_iter().map(|(name, ty)| (Datum::from(name), Datum::Oid(ty.0))).unzip();
    let line_feeds = line_feeds.unwrap_or(Expr::Const(Datum::Bool(false), Ty::of(oid::BOOL)));
    let args = vec![array(oid::TEXT, names), array(oid::OID, types), row, line_feeds];
    Ok(Expr::Call { function: internal("record json")?, args, ty: Ty::of(oid::JSON), location: -1 })
}

/// The type that values of a type are held as.
fn held(ty: Oid) -> Oid {
    types::user::plain_type(ty, -1).0
}

/// Names and types of the fields of a row that a subquery computes.
fn shape_in(query: &Query, expr: &Expr) -> Option<Vec<(String, Oid)>> {
    let fields: Vec<(String, Oid)> = match expr {
        Expr::Row(fields, _) => {
            fields.iter().enumerate().map(|(i, f)| (format!("f{}", i + 1), held(f.ty().oid))).collect()
        }
        Expr::WholeRow { level: 0, rel } => {
            let columns = query.rels[*rel].columns.iter().filter(|c| !c.name.is_empty());
            columns.map(|c| (c.name.clone(), held(c.ty.oid))).collect()
        }
        _ => return None,
    };
    fields.iter().all(|(_, ty)| *ty != oid::RECORD).then_some(fields)
}

/// What a function that makes rows of documents reads.
struct Source {
    /// An array of objects instead of one.
    many: bool,
    /// The first argument is a row, whose type the result has.
    populates: bool,
}

/// What a call reads, if it is one of a function that makes rows of documents.
fn source_of(call: &FuncCall) -> Option<Source> {
    let names = strings(&call.funcname);
    let source = names.last().and_then(|name| source(name))?;
    (call.args.len() == 1 + usize::from(source.populates)).then_some(source)
}

/// A field of a document as a value of a column's type; where the document does not have it, `otherwise` or NULL.
pub(super) fn field_of(
    document: Expr,
    column: &RelColumn,
    otherwise: Option<Expr>,
    cx: &mut BindContext<'_>,
) -> Result<Expr> {
    let constant = |value: Datum, ty: Oid| Expr::Const(value, Ty::of(ty));
    let (held, typmod) = types::user::plain_type(column.ty.oid, column.ty.typmod);
    let null = || constant(Datum::Null, held);
    let args = vec![
        document,
        constant(Datum::text(&column.name), oid::TEXT),
        constant(Datum::Oid(held.0), oid::OID),
        constant(Datum::Int4(typmod), oid::INT4),
        otherwise.unwrap_or_else(null),
    ];
    let field = Expr::Call { function: internal("json field")?, args, ty: Ty { oid: held, typmod }, location: -1 };
    match held == column.ty.oid {
        true => Ok(field),
        false => super::domain::made(field, column.ty, false, cx),
    }
}

/// The name of the field that [`field_of`] has made.
pub fn field_name(expr: &Expr) -> Option<&str> {
    match super::domain::under_domain(expr) {
        Expr::Call { function, args, .. } => match (function.name, args.as_slice()) {
            ("json field", [_, Expr::Const(Datum::Text(name), _), ..]) => Some(name),
            _ => None,
        },
        Expr::Cast { arg, kind: sql_ir::CastKind::Relabel, .. } => field_name(arg),
        _ => None,
    }
}

fn source(name: &str) -> Option<Source> {
    let (many, populates) = match name {
        "json_to_record" | "jsonb_to_record" => (false, false),
        "json_to_recordset" | "jsonb_to_recordset" => (true, false),
        "json_populate_record" | "jsonb_populate_record" => (false, true),
        "json_populate_recordset" | "jsonb_populate_recordset" => (true, true),
        _ => return None,
    };
    Some(Source { many, populates })
}

impl<'a> Binder<'a, '_> {
    /// Names and types of the fields of a row value; `None` if they are not known.
    fn row_shape(&self, expr: &Expr) -> Option<Vec<(String, Oid)>> {
        match expr {
            Expr::Row(..) => {
                let fields = self.record_fields(expr)?;
                Some(fields.into_iter().map(|(name, f)| (name, held(f.ty().oid))).collect())
            }
            Expr::WholeRow { level, rel } => {
                let scope = &self.scopes[self.scopes.len().checked_sub(1 + level)?];
                let columns = scope.rels[*rel].columns.iter().filter(|c| !c.name.is_empty());
                Some(columns.map(|c| (c.name.clone(), held(c.ty.oid))).collect())
            }
            _ => None,
        }
    }

    fn holds_rows(&self, level: usize, rel: usize) -> bool {
        let scope = &self.scopes[self.scopes.len() - 1 - level];
        scope.rels[rel].columns.iter().any(|c| c.ty.oid == oid::RECORD)
    }

    /// A relation's row of which some columns are rows themselves.
    fn parts_as_document(&self, level: usize, rel: usize) -> Result<Expr> {
        let entry = &self.scopes[self.scopes.len() - 1 - level].rels[rel];
        let (mut names, mut types, mut fields) = (Vec::new(), Vec::new(), Vec::new());
        for (column, c) in entry.columns.iter().enumerate().filter(|(_, c)| !c.name.is_empty()) {
            let mut field = Expr::Column(Column { level, rel, column, ty: c.ty });
            if let (oid::RECORD, RelKind::Subquery { query, .. }) = (c.ty.oid, &entry.kind)
                && let Some(target) = query.output(column)
                && let Some(shape) = shape_in(query, &target.expr)
            {
                field = document_of(shape, field, None)?;
            }
            names.push(Datum::text(&c.name));
            types.push(Datum::Oid(held(field.ty().oid).0));
            fields.push(field);
        }
        let row = Expr::Row(fields, Ty::of(oid::RECORD));
        let args = vec![
            array(oid::TEXT, names),
            array(oid::OID, types),
            row,
            Expr::Const(Datum::Bool(false), Ty::of(oid::BOOL)),
        ];
        let ty = Ty::of(oid::JSON);
        let document = Expr::Call { function: internal("record json")?, args, ty, location: -1 };
        // On the null side of an outer join there may be no row.
        let there = Expr::IsNull { arg: Box::new(Expr::WholeRow { level, rel }), negated: true, fields: false };
        Ok(Expr::Case { simple: false, branches: vec![(there, document)], otherwise: None, ty })
    }

    /// A row as a `json` value; other expressions as they are.
    fn row_as_document(&self, value: Expr, line_feeds: Option<Expr>) -> Result<Expr> {
        let value = match value {
            // Rows inside of rows first.
            Expr::Row(fields, ty) => {
                let fields: Result<Vec<Expr>> = fields.into_iter().map(|f| self.row_as_document(f, None)).collect();
                Expr::Row(fields?, ty)
            }
            Expr::Array { elements, element: oid::RECORD, nested: false, .. } => {
                let elements: Result<Vec<Expr>> = elements.into_iter().map(|f| self.row_as_document(f, None)).collect();
                let ty = Ty::of(oid::JSON_ARRAY);
                return Ok(Expr::Array { elements: elements?, element: oid::JSON, nested: false, ty });
            }
            Expr::WholeRow { level, rel } if self.holds_rows(level, rel) => return self.parts_as_document(level, rel),
            other => other,
        };
        if value.ty().oid != oid::RECORD {
            return Ok(value);
        }
        let Some(shape) = self.row_shape(&value) else { return Ok(value) };
        document_of(shape, value, line_feeds)
    }

    /// Makes documents of the rows among a call's arguments. With `true` the call itself has become its argument.
    pub(super) fn rows_as_documents(&self, call: &FuncCall, args: &mut [Located]) -> Result<bool> {
        let names = strings(&call.funcname);
        let Some(&name) = names.last() else { return Ok(false) };
        let is_row = |a: &Located| matches!(a.expr, Expr::Row(..) | Expr::WholeRow { .. });
        let takes = TAKE_ROWS.contains(&name) && args.iter().any(is_row);
        let of_arrays = matches!(name, "array_to_json" | "to_json" | "to_jsonb")
            && args.iter().any(|a| a.expr.ty().oid == oid::RECORD_ARRAY);
        if !takes && !of_arrays {
            return Ok(false);
        }
        let line_feeds = match (name, &mut *args) {
            ("row_to_json", [_, flag]) => Some(flag.expr.clone()),
            _ => None,
        };
        for arg in args.iter_mut() {
            let expr = std::mem::replace(&mut arg.expr, Expr::Default);
            arg.expr = self.row_as_document(expr, line_feeds.clone())?;
            // Its elements stand on lines of their own, as other documents in a list do not.
            if name == "json_agg"
                && let Expr::Call { ty, function, .. } = &mut arg.expr
                && function.name == "record json"
            {
                *ty = Ty::of(oid::RECORD);
            }
        }
        Ok(name == "row_to_json" && args.first().is_some_and(|a| a.expr.ty().oid == oid::JSON))
    }

    /// A function that makes rows of documents, with the list of columns it has in FROM; `None` for others.
    pub(super) fn document_rows(&mut self, node: &'a Node, definitions: &'a [Option<Node>]) -> Result<Option<Part>> {
        let Node::FuncCall(call) = node else { return Ok(None) };
        let Some(source) = source_of(call) else { return Ok(None) };
        if definitions.is_empty() && !source.populates {
            let message = "a column definition list is required for functions returning \"record\"";
            return Err(self.error(SqlState::SYNTAX_ERROR, message, call.location));
        }
        if !definitions.is_empty() && source.populates && !self.is_bare_record(call)? {
            let message = "a column definition list is redundant for a function returning a named composite type";
            let at = super::range_function::first_location(definitions);
            return Err(self.error(SqlState::SYNTAX_ERROR, message, at));
        }
        let columns = match definitions.is_empty() {
            false => self.defined_columns(definitions)?,
            true => match self.populated_columns(call)? {
                Some(columns) => columns,
                None => return Ok(None),
            },
        };
        let Some(call) = self.documents(call, &source)? else { return Ok(None) };
        Ok(Some(Part::Documents(call, columns)))
    }

    /// The call that gives the documents of which rows are made.
    fn documents(&mut self, call: &'a FuncCall, source: &Source) -> Result<Option<SetCall>> {
        let name = strings(&call.funcname).last().copied().unwrap_or("");
        let document = self.operand(call.args.last().and_then(Option::as_ref))?;
        let wants = if name.starts_with("jsonb") { oid::JSONB } else { oid::JSON };
        let from = document.expr.ty().oid;
        if from != oid::UNKNOWN && from != wants {
            return Ok(None);
        }
        let document = self.coerce(document, wants, CastContext::Implicit, -1)?.expr;
        let set = functions::set_functions_named(if source.many { "json rows" } else { "json row" }).first().copied();
        let function = set.ok_or_else(|| base::Error::internal("no function for rows of documents"))?;
        let args = vec![document, Expr::Const(Datum::text(name), Ty::of(oid::TEXT))];
        Ok(Some(SetCall { function, args }))
    }

    /// The columns of a definition list.
    fn defined_columns(&mut self, definitions: &'a [Option<Node>]) -> Result<Vec<(RelColumn, Option<Expr>)>> {
        let mut columns: Vec<(RelColumn, Option<Expr>)> = Vec::with_capacity(definitions.len());
        for node in definitions.iter().flatten() {
            let Node::ColumnDef(def) = node else { continue };
            let Some(type_name) = def.typeName.as_deref() else { continue };
            self.open_schema(type_name)?;
            let ty = super::types::resolve(type_name, self.sql, Some((&self.cx.catalog, &self.cx.identity)))?;
            self.note_type(type_name);
            let name = def.colname.as_deref().unwrap_or("").to_string();
            if columns.iter().any(|(c, _)| c.name == name) {
                let message = format!("column name \"{name}\" specified more than once");
                return Err(base::Error::new(SqlState::DUPLICATE_COLUMN, message));
            }
            columns.push((RelColumn { name, ty }, None));
        }
        Ok(columns)
    }

    /// Whether the row to populate is a `record` of no known type.
    fn is_bare_record(&mut self, call: &'a FuncCall) -> Result<bool> {
        Ok(match call.args.first() {
            Some(Some(Node::TypeCast(cast))) => {
                let names = cast.typeName.as_deref().map(|t| strings(&t.names)).unwrap_or_default();
                names.last() == Some(&"record")
            }
            _ => false,
        })
    }

    /// The columns of the row that is to be populated.
    fn populated_columns(&mut self, call: &'a FuncCall) -> Result<Option<Vec<(RelColumn, Option<Expr>)>>> {
        let mut columns = Vec::new();
        match call.args.first() {
            Some(Some(Node::TypeCast(cast))) => {
                let Some(name) = cast.typeName.as_deref() else { return Ok(None) };
                let names: Vec<&str> = name.names.iter().flatten().filter_map(string).collect();
                let Some(desc) = self.table_of_type(&names) else { return Ok(None) };
                self.note_row_type(name, desc.oid);
                columns.extend(super::from::table_columns(&desc).into_iter().map(|column| (column, None)));
            }
            Some(Some(node)) => {
                let value = self.expr(node)?;
                let Expr::WholeRow { level, rel } = value.expr else {
                    let message = "populating this kind of row is not supported";
                    return Err(self.unsupported(message, call.location));
                };
                let index = self.scopes.len() - 1 - level;
                let all = self.scopes[index].rels[rel].columns.clone();
                for (column, entry) in all.into_iter().enumerate() {
                    let old = Expr::Column(Column { level, rel, column, ty: entry.ty });
                    columns.push((entry, Some(old)));
                }
            }
            _ => return Ok(None),
        }
        columns.retain(|(c, _)| !c.name.is_empty());
        Ok(Some(columns))
    }

    /// The row that a function makes of a document outside of FROM, as its fields.
    pub(super) fn row_of_document(&mut self, call: &'a FuncCall) -> Result<Option<Vec<(String, Expr)>>> {
        let Some(source) = source_of(call) else { return Ok(None) };
        let columns = if source.populates { self.populated_columns(call)? } else { None };
        let Some(columns) = columns else {
            let name = strings(&call.funcname).last().copied().unwrap_or("").to_string();
            if source.populates && !self.is_bare_record(call)? {
                return Ok(None);
            }
            // PostgreSQL says so when it calls the function.
            let message = format!("could not determine row type for result of {name}");
            self.refused.get_or_insert_with(|| {
                base::Error::new(SqlState::FEATURE_NOT_SUPPORTED, message).hint(
                    "Provide a non-null record argument, or call the function in the FROM clause using a column \
                     definition list.",
                )
            });
            return Ok(Some(Vec::new()));
        };
        let Some(documents) = self.documents(call, &source)? else { return Ok(None) };
        let document = match source.many {
            true if super::set_calls::allowed(self.place()) => {
                let column = RelColumn { name: "document".to_string(), ty: Ty::of(oid::JSON) };
                self.add_set_call(documents, vec![column], call.location)
            }
            true => return Err(self.misplaced_set(call)),
            false => {
                let [document, ..] = <[Expr; 2]>::try_from(documents.args)
                    .map_err(|_| base::Error::internal("documents without their function"))?;
                if super::visit::calls_volatile(&document) {
                    let message = "making a row of a volatile document is supported only in FROM";
                    return Err(self.unsupported(message, call.location));
                }
                let object = internal("json object")?;
                Expr::Call { function: object, args: vec![document], ty: Ty::of(oid::JSON), location: call.location }
            }
        };
        let cx = &mut *self.cx;
        let fields = columns.into_iter().map(|(column, old)| {
            let value = field_of(document.clone(), &column, old, cx)?;
            Ok((column.name, value))
        });
        Ok(Some(fields.collect::<Result<_>>()?))
    }

    /// The table whose row type has a name.
    pub(super) fn table_of_type(&self, names: &[&str]) -> Option<engine_api::TableDesc> {
        let catalog = &self.cx.catalog;
        let (schemas, name) = match names {
            [name] => (self.cx.identity.search_path.clone(), *name),
            [schema, name] => (vec![catalog.schema(self.cx.identity.database_oid, schema)?.oid], *name),
            _ => return None,
        };
        let found = schemas.into_iter().find_map(|schema| catalog.relation(schema, name))?;
        catalog.table(found.oid()).cloned()
    }
}
