//! Functions in FROM: one, or several side by side (ROWS FROM), with column definition lists and WITH ORDINALITY.

use base::{Result, SqlState};
use rupg_sql::nodes::{Node, RangeFunction};
use sql_functions as functions;
use sql_ir::{Column, Expr, From, Query, Rel, RelColumn, RelKind, SetCall, Target, Ty};
use types::{Datum, oid};

use super::func::Callee;
use super::node::{figure_name, strings};
use super::scope::ClauseKind;
use super::visit::shift_levels;
use super::{BindContext, Binder};

/// What a function in FROM gives.
pub(super) enum Part {
    /// Rows of a set-returning function.
    Set(SetCall, Vec<RelColumn>),
    /// Rows made of documents: the call that gives the documents, the fields that become columns, and their values where a
    /// document does not have them.
    Documents(SetCall, Vec<(RelColumn, Option<Expr>)>),
    /// One value.
    Value(Expr, RelColumn),
}

/// What a range-table entry is to be, its columns and its name.
type Bound = (RelKind, Vec<RelColumn>, String);

/// Where a column definition list begins.
pub(super) fn first_location(list: &[Option<Node>]) -> i32 {
    match list.first() {
        Some(Some(Node::ColumnDef(def))) => def.location,
        _ => -1,
    }
}

/// `unnest` of several arrays.
fn is_wide_unnest(node: &Node) -> bool {
    match node {
        Node::FuncCall(call) => {
            call.args.len() > 1 && matches!(strings(&call.funcname).as_slice(), ["unnest"] | ["pg_catalog", "unnest"])
        }
        _ => false,
    }
}

impl<'a> Binder<'a, '_> {
    /// Binds functions in FROM.
    pub(super) fn range_function(&mut self, range: &'a RangeFunction) -> Result<Bound> {
        let mut functions: Vec<(&'a Node, &'a [Option<Node>])> = Vec::with_capacity(range.functions.len());
        for function in range.functions.iter().flatten() {
            match function {
                Node::List(pair) => {
                    let own: &[Option<Node>] = match pair.get(1) {
                        Some(Some(Node::List(list))) => list,
                        _ => &[],
                    };
                    functions.extend(pair.first().and_then(Option::as_ref).map(|node| (node, own)));
                }
                node => functions.push((node, &[])),
            }
        }
        let Some(&(first, _)) = functions.first() else {
            return Err(base::Error::internal("a FROM function without a call"));
        };
        if !range.coldeflist.is_empty() {
            self.check_definitions(range, functions.len(), is_wide_unnest(first))?;
            functions[0].1 = &range.coldeflist;
        }
        let lateral = std::mem::replace(&mut self.scope().lateral_active, true);
        let place = std::mem::replace(&mut self.scope().place, ClauseKind::FromFunction);
        let parts = self.function_parts(&functions, range);
        self.scope().lateral_active = lateral;
        self.scope().place = place;
        side_by_side(parts?, range.ordinality, figure_name(first), self.cx)
    }

    /// Whether a column definition list may stand behind all of the functions.
    fn check_definitions(&self, range: &RangeFunction, count: usize, wide_unnest: bool) -> Result<()> {
        let at = first_location(&range.coldeflist);
        let refuse = |message: &str, hint: &str| Err(self.error(SqlState::SYNTAX_ERROR, message, at).hint(hint));
        if range.ordinality {
            return refuse(
                "WITH ORDINALITY cannot be used with a column definition list",
                "Put the column definition list inside ROWS FROM().",
            );
        }
        if count > 1 {
            return refuse(
                "ROWS FROM() with multiple functions cannot have a column definition list",
                "Put a separate column definition list for each function inside ROWS FROM().",
            );
        }
        if wide_unnest {
            return refuse(
                "UNNEST() with multiple arguments cannot have a column definition list",
                "Use separate UNNEST() calls inside ROWS FROM(), and attach a column definition list to each one.",
            );
        }
        Ok(())
    }

    fn function_parts(
        &mut self,
        functions: &[(&'a Node, &'a [Option<Node>])],
        range: &RangeFunction,
    ) -> Result<Vec<Part>> {
        let alone = functions.len() == 1 && !functions.first().is_some_and(|(node, _)| is_wide_unnest(node));
        let alias = range.alias.as_ref().and_then(|a| a.aliasname.as_deref()).filter(|_| alone);
        let mut parts = Vec::with_capacity(functions.len());
        for &(node, definitions) in functions {
            if let Some(documents) = self.document_rows(node, definitions)? {
                parts.push(documents);
                continue;
            }
            let name = alias.map_or_else(|| figure_name(node), str::to_string);
            let before = parts.len();
            self.plain_parts(node, &name, &mut parts)?;
            if !definitions.is_empty() {
                let at = first_location(definitions);
                let message = match parts.get(before) {
                    Some(Part::Set(_, columns)) if columns.len() > 1 => {
                        "a column definition list is redundant for a function with OUT parameters"
                    }
                    _ => "a column definition list is only allowed for functions returning \"record\"",
                };
                return Err(self.error(SqlState::SYNTAX_ERROR, message, at));
            }
        }
        Ok(parts)
    }

    /// A function whose columns are known without a list.
    fn plain_parts(&mut self, node: &'a Node, name: &str, parts: &mut Vec<Part>) -> Result<()> {
        if let Node::FuncCall(call) = node {
            let named = call.args.iter().flatten().any(|n| matches!(n, Node::NamedArgExpr(_)));
            let args = if named { self.named_arguments(call)? } else { self.exprs(&call.args)? };
            // Each array of `unnest(a, b)` has a call of its own.
            let wide = is_wide_unnest(node);
            let lists = if wide { args.into_iter().map(|a| vec![a]).collect() } else { vec![args] };
            for args in lists {
                let found = self.find_callee(call, &args)?;
                let Some((found, Callee::Set(function))) = found.map(|f| (f, f.callee)) else { break };
                let (args, outputs) = self.set_arguments(found, function, args)?;
                let columns = function.columns.iter().zip(outputs).map(|(&(out, _), ty)| RelColumn {
                    name: if out.is_empty() { name } else { out }.to_string(),
                    ty: Ty::of(ty),
                });
                parts.push(Part::Set(SetCall { function, args }, columns.collect()));
                if !wide {
                    return Ok(());
                }
            }
            if wide {
                return Ok(());
            }
        }
        let value = self.expr(node)?;
        if value.expr.ty().oid == oid::RECORD {
            let message = "a column definition list is required for functions returning \"record\"";
            return Err(self.error(SqlState::SYNTAX_ERROR, message, value.at));
        }
        let expr = self.resolve_unknown(value)?.expr;
        let column = RelColumn { name: name.to_string(), ty: expr.ty() };
        parts.push(Part::Value(expr, column));
        Ok(())
    }
}

fn ordinality_column() -> RelColumn {
    RelColumn { name: "ordinality".to_string(), ty: Ty::of(oid::INT8) }
}

/// The rows of several functions, one beside the other.
fn side_by_side(parts: Vec<Part>, ordinality: bool, name: String, cx: &mut BindContext<'_>) -> Result<Bound> {
    if parts.iter().all(|p| matches!(p, Part::Set(..))) {
        let (mut calls, mut columns) = (Vec::new(), Vec::new());
        for part in parts {
            if let Part::Set(call, own) = part {
                calls.push(call);
                columns.extend(own);
            }
        }
        columns.extend(ordinality.then(ordinality_column));
        return Ok((RelKind::Function { calls, ordinality, per_row: false }, columns, name));
    }
    // A query over the sets, which computes the columns.
    let alone = parts.len() == 1;
    let (mut calls, mut inner, mut targets) = (Vec::new(), Vec::new(), Vec::new());
    for part in parts {
        match part {
            Part::Set(call, own) => {
                for column in own {
                    targets.push(Target { expr: nth(inner.len(), column.ty), name: column.name.clone(), junk: false });
                    inner.push(column);
                }
                calls.push(call);
            }
            Part::Documents(call, fields) => {
                let document = nth(inner.len(), Ty::of(oid::JSON));
                inner.push(RelColumn { name: "document".to_string(), ty: Ty::of(oid::JSON) });
                calls.push(call);
                for (column, old) in fields {
                    let otherwise = old.map(|mut old| {
                        shift_levels(&mut old, 1);
                        old
                    });
                    let expr = super::json_rows::field_of(document.clone(), &column, otherwise, cx)?;
                    targets.push(Target { expr, name: column.name, junk: false });
                }
            }
            Part::Value(mut expr, column) if alone => {
                shift_levels(&mut expr, 1);
                targets.push(Target { expr, name: column.name, junk: false });
            }
            Part::Value(expr, column) => {
                targets.push(Target { expr: nth(inner.len(), column.ty), name: column.name.clone(), junk: false });
                inner.push(column);
                calls.push(SetCall { function: &functions::SINGLE_VALUE, args: vec![expr] });
            }
        }
    }
    calls.iter_mut().flat_map(|c| &mut c.args).for_each(|a| shift_levels(a, 1));
    let mut query = Query::default();
    if ordinality {
        let expr = match calls.is_empty() {
            true => Expr::Const(Datum::Int8(1), Ty::of(oid::INT8)),
            false => nth(inner.len(), Ty::of(oid::INT8)),
        };
        targets.push(Target { expr, name: "ordinality".to_string(), junk: false });
        inner.push(ordinality_column());
    }
    if !calls.is_empty() {
        let kind = RelKind::Function { calls, ordinality, per_row: false };
        query.rels.push(Rel { alias: name.clone(), aliased: false, kind, columns: inner });
        query.from.push(From::Rel(0));
    }
    let columns = targets.iter().map(|t| RelColumn { name: t.name.clone(), ty: t.expr.ty() }).collect();
    query.targets = targets;
    Ok((RelKind::Subquery { query: Box::new(query), lateral: true }, columns, name))
}

fn nth(column: usize, ty: Ty) -> Expr {
    Expr::Column(Column { level: 0, rel: 0, column, ty })
}
