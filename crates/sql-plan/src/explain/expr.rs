//! Expressions as EXPLAIN writes them.

use base::work::Count as _;
use sql_functions as functions;
use sql_ir::{AnyAllSource, Expr, Rel};
use types::quote::quote_shown;

/// Conditions as text, joined by AND.
pub(crate) fn conditions(exprs: &[&Expr], rels: &[Rel]) -> String {
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

/// A list of constants as an array.
fn constants(items: &[Expr]) -> Option<Expr> {
    let element = items.first()?.ty().oid;
    let mut values = Vec::with_capacity(items.len());
    for item in items.iter().counted(16) {
        match item {
            Expr::Const(value, ty) if ty.oid == element => values.push(value.clone()),
            _ => return None,
        }
    }
    let array = types::Array { element, dims: vec![(values.len() as i32, 1)], values };
    Some(Expr::Const(types::Datum::Array(array.into()), sql_ir::Ty::of(types::array_of(element)?)))
}

/// One expression.
pub(crate) fn show(expr: &Expr, rels: &[Rel]) -> String {
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
                _ => format!("{}::{}", quote_shown(&text), types::oid::format_type(ty.oid, ty.typmod)),
            }
        }
        Expr::Param(number, _) => format!("${}", number + 1),
        Expr::Column(c) if c.level == 0 => match rels.get(c.rel) {
            Some(rel) if rels.len() > 1 => format!("{}.{}", rel.alias, rel.column_name(c.column)),
            Some(rel) => rel.column_name(c.column).to_string(),
            None => "?".to_string(),
        },
        Expr::Call { function, args, .. } => match (functions::operator_of(function, args.len()), args.as_slice()) {
            (Some(name), [left, right]) => format!("({} {name} {})", show(left, rels), show(right, rels)),
            _ => format!("{}({})", function.name, list(args, rels, ", ")),
        },
        Expr::Cast { arg, ty, .. } => format!("({})::{}", show(arg, rels), types::oid::format_type(ty.oid, ty.typmod)),
        Expr::And(args) => format!("({})", list(args, rels, " AND ")),
        Expr::Or(args) => format!("({})", list(args, rels, " OR ")),
        Expr::Not(arg) => format!("(NOT {})", show(arg, rels)),
        Expr::IsNull { arg, negated, .. } => {
            format!("({} IS {}NULL)", show(arg, rels), if *negated { "NOT " } else { "" })
        }
        Expr::BooleanTest { arg, want, negated } => {
            let word = want.map_or("UNKNOWN", |want| if want { "TRUE" } else { "FALSE" });
            format!("({} IS {}{word})", show(arg, rels), if *negated { "NOT " } else { "" })
        }
        Expr::Distinct { args, negated, .. } => {
            let distinct = format!("({} IS DISTINCT FROM {})", show(&args[0], rels), show(&args[1], rels));
            if *negated { format!("(NOT {distinct})") } else { distinct }
        }
        Expr::Case { simple, branches, otherwise, ty } => {
            let mut out = "CASE".to_string();
            let sides = |when: &Expr| match when {
                Expr::Call { args, .. } if *simple && args.len() == 2 => {
                    Some((show(&args[0], rels), show(&args[1], rels)))
                }
                _ => None,
            };
            let sides: Option<Vec<_>> = branches.iter().map(|(when, _)| sides(when)).collect();
            if let Some((operand, _)) = sides.as_ref().and_then(|sides| sides.first()) {
                out += &format!(" {operand}");
            }
            for (at, (when, then)) in branches.iter().enumerate() {
                let when = sides.as_ref().map_or_else(|| show(when, rels), |sides| sides[at].1.clone());
                out += &format!(" WHEN {when} THEN {}", show(then, rels));
            }
            let null = || format!("NULL::{}", types::oid::format_type(ty.oid, ty.typmod));
            let otherwise = otherwise.as_ref().map_or_else(null, |otherwise| show(otherwise, rels));
            out + &format!(" ELSE {otherwise} END")
        }
        Expr::Coalesce(args, _) => format!("COALESCE({})", list(args, rels, ", ")),
        Expr::NullIf { args, .. } => format!("NULLIF({})", list(&args[..], rels, ", ")),
        Expr::MinMax { greatest, args, .. } => {
            format!("{}({})", if *greatest { "GREATEST" } else { "LEAST" }, list(args, rels, ", "))
        }
        Expr::Array { elements, ty, .. } => {
            let plain = |e: &Expr| matches!(e, Expr::Const(types::Datum::Int4(_) | types::Datum::Int8(_), _));
            match elements.iter().all(plain) {
                true => format!("'{{{}}}'::{}", list(elements, rels, ","), types::oid::format_type(ty.oid, -1)),
                false => format!("ARRAY[{}]", list(elements, rels, ", ")),
            }
        }
        Expr::Row(args, _) => format!("ROW({})", list(args, rels, ", ")),
        Expr::AnyAll { all, function, left, right } => {
            let items = match right {
                AnyAllSource::List(items) => match constants(items) {
                    Some(array) => show(&array, rels),
                    None => format!("ARRAY[{}]", list(items, rels, ", ")),
                },
                AnyAllSource::Array(array) => show(array, rels),
            };
            let (name, word) = (functions::operator_of(function, 2).unwrap_or("="), if *all { "ALL" } else { "ANY" });
            format!("({} {name} {word} ({items}))", show(left, rels))
        }
        Expr::RowCompare { op, pairs } => {
            let left: Vec<String> = pairs.iter().map(|p| show(&p.0, rels)).collect();
            let right: Vec<String> = pairs.iter().map(|p| show(&p.1, rels)).collect();
            format!("(ROW({}) {} ROW({}))", left.join(", "), op.symbol(), right.join(", "))
        }
        Expr::Subquery { .. } => "(SubPlan)".to_string(),
        _ => "(...)".to_string(),
    }
}
