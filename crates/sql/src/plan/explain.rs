//! EXPLAIN: a plan as indented lines, in PostgreSQL's words.

use super::node::{Access, InsertRows, JoinType, Node, QueryPlan, ScanNode};
use crate::functions;
use crate::ir::{AnyAllSource, CompareOp, Expr, Rel, SetOp};

/// The lines of a plan.
pub(super) fn lines(plan: &QueryPlan) -> Vec<String> {
    let mut out = Vec::new();
    node(&plan.root, 0, &mut out);
    for cte in &plan.ctes {
        out.push(format!("  CTE {}", cte.name));
        node(&cte.subplan.plan.root, 1, &mut out);
    }
    for (i, subplan) in plan.subplans.iter().enumerate() {
        let what = if subplan.fixed { "InitPlan" } else { "SubPlan" };
        out.push(format!("  {what} {}", i + 1));
        node(&subplan.plan.root, 2, &mut out);
    }
    out
}

fn line(depth: usize, text: &str, out: &mut Vec<String>) {
    match depth {
        0 => out.push(text.to_string()),
        depth => out.push(format!("{}->  {text}", " ".repeat(depth * 6 - 4))),
    }
}

fn detail(depth: usize, label: &str, text: &str, out: &mut Vec<String>) {
    if !text.is_empty() {
        out.push(format!("{}{label}: {text}", " ".repeat(depth * 6 + 2)));
    }
}

fn named(kind: &str, scan: &ScanNode) -> String {
    let table = &scan.table.info.desc.name;
    match *table == scan.alias {
        true => format!("{kind} on {table}"),
        false => format!("{kind} on {table} {}", scan.alias),
    }
}

fn scan(scan: &ScanNode, depth: usize, out: &mut Vec<String>) {
    let index = match &scan.access {
        Access::Full => None,
        Access::Point { index, .. } | Access::Multi { index, .. } | Access::Ranges { index, .. } => Some((index, "")),
        Access::Range { index, reverse, .. } => Some((index, if *reverse { " Backward" } else { "" })),
    };
    match index {
        None => line(depth, &named("Seq Scan", scan), out),
        Some((oid, direction)) => {
            let name = scan.table.info.indexes.iter().find(|i| i.oid == *oid).map_or("?", |i| i.name.as_str());
            line(depth, &named(&format!("Index Scan{direction} using {name}"), scan), out);
            detail(depth, "Index Cond", &scan.shown.0, out);
        }
    }
    detail(depth, "Filter", &scan.shown.1, out);
}

fn node(at: &Node, depth: usize, out: &mut Vec<String>) {
    match at {
        Node::OneRow => line(depth, "Result", out),
        Node::Scan(n) => scan(n, depth, out),
        Node::System(n) => line(depth, &format!("Seq Scan on {}", n.alias), out),
        Node::Function(n) => line(depth, &format!("Function Scan on {}", n.alias), out),
        Node::Values(_) => line(depth, "Values Scan on \"*VALUES*\"", out),
        Node::Subquery(n) => {
            line(depth, &format!("Subquery Scan on {}", n.alias), out);
            node(&n.subplan.plan.root, depth + 1, out);
        }
        Node::Cte(n) => line(depth, &format!("CTE Scan on {}", n.alias), out),
        Node::WorkTable(n) => line(depth, &format!("WorkTable Scan on {}", n.alias), out),
        Node::Recursion(n) => {
            line(depth, "Recursive Union", out);
            node(&n.first.plan.root, depth + 1, out);
            node(&n.next.plan.root, depth + 1, out);
        }
        // A condition or a select list is no step of its own in PostgreSQL's plans.
        Node::Filter(n) => node(&n.input, depth, out),
        Node::Project(n) => node(&n.input, depth, out),
        Node::NestedLoop(n) => {
            let kind = if n.join == JoinType::Left { "Nested Loop Left Join" } else { "Nested Loop" };
            line(depth, kind, out);
            node(&n.outer, depth + 1, out);
            node(&n.inner, depth + 1, out);
        }
        Node::HashJoin(n) => {
            let kind = match n.join {
                JoinType::Inner => "Hash Join",
                JoinType::Left => "Hash Left Join",
                JoinType::Full => "Hash Full Join",
            };
            line(depth, kind, out);
            node(&n.probe, depth + 1, out);
            line(depth + 1, "Hash", out);
            node(&n.build, depth + 2, out);
        }
        Node::Materialize(n) => {
            line(depth, "Materialize", out);
            node(&n.input, depth + 1, out);
        }
        Node::Sort(n) => {
            line(depth, "Sort", out);
            node(&n.input, depth + 1, out);
        }
        Node::Aggregate(n) => {
            line(depth, if n.keys.is_empty() { "Aggregate" } else { "HashAggregate" }, out);
            node(&n.input, depth + 1, out);
        }
        Node::WindowFrames(n) => {
            line(depth, "WindowAgg", out);
            node(&n.input, depth + 1, out);
        }
        Node::Window(n) => {
            line(depth, "WindowAgg", out);
            node(&n.input, depth + 1, out);
        }
        Node::Distinct(n) => {
            line(depth, "Unique", out);
            node(&n.input, depth + 1, out);
        }
        Node::Limit(n) => {
            line(depth, "Limit", out);
            node(&n.input, depth + 1, out);
        }
        Node::SetOp(n) => {
            let kind = match (n.op, n.all) {
                (SetOp::Union, true) => "Append",
                (SetOp::Union, false) => "HashAggregate",
                (SetOp::Intersect, false) => "HashSetOp Intersect",
                (SetOp::Intersect, true) => "HashSetOp Intersect All",
                (SetOp::Except, false) => "HashSetOp Except",
                (SetOp::Except, true) => "HashSetOp Except All",
            };
            line(depth, kind, out);
            node(&n.left.plan.root, depth + 1, out);
            node(&n.right.plan.root, depth + 1, out);
        }
        Node::Current(n) => {
            line(depth, &format!("Tid Scan on {}", n.alias), out);
            line(depth + 1, &format!("TID Cond: CURRENT OF {}", n.cursor), out);
        }
        Node::LockRows(n) => {
            line(depth, "LockRows", out);
            node(&n.input, depth + 1, out);
        }
        Node::Insert(n) => {
            line(depth, &format!("Insert on {}", n.target.table.info.desc.name), out);
            match &n.source {
                InsertRows::Values { .. } => line(depth + 1, "Result", out),
                InsertRows::Query(input) => node(input, depth + 1, out),
            }
        }
        Node::Update(n) => {
            line(depth, &format!("Update on {}", n.target.table.info.desc.name), out);
            node(&n.input, depth + 1, out);
        }
        Node::Delete(n) => {
            line(depth, &format!("Delete on {}", n.target.table.info.desc.name), out);
            node(&n.input, depth + 1, out);
        }
    }
}

/// Conditions as text, joined by AND.
pub(super) fn conditions(exprs: &[&Expr], rels: &[Rel]) -> String {
    let shown: Vec<String> = exprs.iter().map(|e| show(e, rels)).collect();
    match shown.len() {
        0 => String::new(),
        1 => shown[0].clone(),
        _ => format!("({})", shown.join(" AND ")),
    }
}

fn list(exprs: &[Expr], rels: &[Rel], between: &str) -> String {
    exprs.iter().map(|e| show(e, rels)).collect::<Vec<_>>().join(between)
}

fn show(expr: &Expr, rels: &[Rel]) -> String {
    match expr {
        Expr::Const(value, ty) => {
            let mut text = Vec::new();
            let written = types::write_text(value.as_ref(), ty.oid, &types::OutputSettings::default(), &mut text);
            let text = String::from_utf8_lossy(&text).into_owned();
            match value {
                types::Datum::Null => "NULL".to_string(),
                _ if written.is_err() => "?".to_string(),
                types::Datum::Int2(_) | types::Datum::Int4(_) | types::Datum::Int8(_) | types::Datum::Bool(_) => text,
                _ => format!("'{text}'::{}", types::oid::format_type(ty.oid, ty.typmod)),
            }
        }
        Expr::Param(number, _) => format!("${}", number + 1),
        Expr::Column(c) if c.level == 0 => match rels.get(c.rel) {
            Some(rel) if rels.len() > 1 => format!("{}.{}", rel.alias, rel.columns[c.column].name),
            Some(rel) => rel.columns[c.column].name.clone(),
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
        Expr::IsNull { arg, negated } => {
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
