//! The SQL text of functions in FROM that make rows of documents: `jsonb_to_recordset(…) x(a integer, b text)`.
//!
//! The binder makes a query of such a function, with a column for each field; here it becomes the call again.

use sql_bind::{field_name, visit};
use sql_ir::{Expr, Query, RelColumn, RelKind, SetCall};
use sql_parse::names::quote_name;
use types::Datum;

use super::deparse::Writer;

/// The call that gives the documents, what it is called in SQL, and whether its rows are numbered.
fn source(query: &Query) -> Option<(&SetCall, &str, bool)> {
    let [rel] = query.rels.as_slice() else { return None };
    let RelKind::Function { calls, ordinality, .. } = &rel.kind else { return None };
    let [call] = calls.as_slice() else { return None };
    match call.args.as_slice() {
        [_, Expr::Const(Datum::Text(name), _)] if matches!(call.function.name, "json row" | "json rows") => {
            Some((call, name, *ordinality))
        }
        _ => None,
    }
}

/// Whether one of a query's relations gives documents of which rows are made.
pub(super) fn is_documents(query: &Query) -> bool {
    let gives = |call: &SetCall| matches!(call.function.name, "json row" | "json rows");
    query.rels.iter().any(|rel| matches!(&rel.kind, RelKind::Function { calls, .. } if calls.iter().any(gives)))
}

/// Whether expressions that stand `depth` queries within a FROM clause speak of other tables of that clause.
pub(super) fn speaks_of_others(args: &[Expr], depth: usize) -> bool {
    let mut found = false;
    for arg in args {
        visit::walk(arg, depth, &mut |expr, depth| {
            found |= matches!(expr, Expr::Column(column) if column.level == depth)
        });
    }
    found
}

impl Writer<'_> {
    /// Writes the call; there is no form for several side by side, and for rows that are populated.
    pub(super) fn documents(&mut self, query: &Query, alias: &str, columns: &[RelColumn]) -> bool {
        let Some((call, name, ordinality)) = source(query) else { return false };
        if name.contains("populate") {
            return false;
        }
        let fields = query.targets.iter().filter_map(|t| Some((field_name(&t.expr)?, t.expr.ty())));
        let fields: Vec<String> = fields
            .map(|(field, ty)| format!("{} {}", quote_name(field), sql_bind::shown_type(self.cx, ty.oid, ty.typmod)))
            .collect();
        let fields = fields.join(", ");
        let lateral = speaks_of_others(&call.args[..1], 1);
        let written = (!lateral || self.word("LATERAL "))
            && (!ordinality || self.word("ROWS FROM("))
            && self.within(query, |w| w.listed(&format!("{}(", quote_name(name)), &call.args[..1], ")"));
        if !ordinality {
            return written && self.word(&format!(" {}({fields})", quote_name(alias)));
        }
        let names: Vec<String> = columns.iter().map(|c| quote_name(&c.name)).collect();
        written && self.word(&format!(" AS ({fields})) WITH ORDINALITY {}({})", quote_name(alias), names.join(", ")))
    }
}
