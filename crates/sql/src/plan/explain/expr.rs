//! Expressions as EXPLAIN writes them.

use base::work::Count as _;

use crate::functions;
use crate::ir::{AnyAllSource, CompareOp, Expr, Rel};

/// Conditions as text, joined by AND.
pub(in crate::plan) fn conditions(exprs: &[&Expr], rels: &[Rel]) -> String {
    let shown: Vec<String> = exprs.iter().counted(64).map(|e| show(e, rels)).collect();
    match shown.len() {
        0 => String::new(),
        1 => shown[0].clone(),
        _ => format!("({})", shown.join(" AND ")),
    }
}

fn list(exprs: &[Expr], rels: &[Rel], between: &str) -> String {
    exprs.iter().counted(64).map(|e| show(e, rels)).collect::<Vec<_>>().join(between)
}

/// One expression.
pub(in crate::plan) fn show(expr: &Expr, rels: &[Rel]) -> String {
    match expr {
        Expr::Const(value, ty) => {
            let mut text = Vec::new();
            let written = types::write_text(value.as_ref(), ty.oid, &types::OutputSettings::default(), &mut text);
            let text = String::from_utf8_lossy(&text).into_owned();
            match value {
                types::Datum::Null => "NULL".to_string(),
                _ if written.is_err() => "?".to_string(),
                types::Datum::Bool(value) => value.to_string(),
                types::Datum::Int2(_) | types::Datum::Int4(_) => text,
                types::Datum::Int8(_) if ty.oid == types::oid::INT8 => text,
                _ => format!("'{text}'::{}", types::oid::format_type(ty.oid, ty.typmod)),
            }
        }
        Expr::Param(number, _) => format!("${}", number + 1),
        Expr::Column(c) if c.level == 0 => match rels.get(c.rel) {
            Some(rel) if rels.len() > 1 => format!("{}.{}", rel.alias, rel.column_name(c.column)),
            Some(rel) => rel.column_name(c.column).to_string(),
            None => "?".to_string(),
        },
        Expr::Call { function, args, .. } => {
            let symbol = functions::all_operators().iter().find(|o| {
                o.function == function.name && (o.left == base::Oid::INVALID || [o.left, o.right] == *function.args)
            });
            match (symbol, args.as_slice()) {
                (Some(o), [left, right]) => format!("({} {} {})", show(left, rels), o.name, show(right, rels)),
                _ => format!("{}({})", function.name, list(args, rels, ", ")),
            }
        }
        Expr::Cast { arg, ty, .. } => format!("({})::{}", show(arg, rels), types::oid::format_type(ty.oid, ty.typmod)),
        Expr::And(args) => format!("({})", list(args, rels, " AND ")),
        Expr::Or(args) => format!("({})", list(args, rels, " OR ")),
        Expr::Not(arg) => format!("(NOT {})", show(arg, rels)),
        Expr::IsNull { arg, negated, .. } => {
            format!("({} IS {}NULL)", show(arg, rels), if *negated { "NOT " } else { "" })
        }
        Expr::AnyAll { all, left, right, .. } => {
            let items = match right {
                AnyAllSource::List(items) => format!("{{{}}}", list(items, rels, ",")),
                AnyAllSource::Array(array) => show(array, rels),
            };
            format!("({} = {} ({items}))", show(left, rels), if *all { "ALL" } else { "ANY" })
        }
        Expr::RowCompare { op, pairs } => {
            let left: Vec<String> = pairs.iter().map(|p| show(&p.0, rels)).collect();
            let right: Vec<String> = pairs.iter().map(|p| show(&p.1, rels)).collect();
            format!("(ROW({}) {} ROW({}))", left.join(", "), symbol(*op), right.join(", "))
        }
        Expr::Subquery { .. } => "(SubPlan)".to_string(),
        _ => "(...)".to_string(),
    }
}

fn symbol(op: CompareOp) -> &'static str {
    match op {
        CompareOp::Eq => "=",
        CompareOp::Ne => "<>",
        CompareOp::Lt => "<",
        CompareOp::Le => "<=",
        CompareOp::Gt => ">",
        CompareOp::Ge => ">=",
    }
}
