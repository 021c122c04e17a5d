//! Walks over bound expressions: children, subqueries, columns.

use base::work;
use sql_functions::Volatility;
use sql_ir::{
    AggCall, AnyAllSource, Body, Column, ColumnSource, Expr, From, InsertSource, Query, RelKind, Statement,
    SubqueryKind,
};

use super::equal::{same, same_use};

/// Makes the two walkers, over shared and over exclusive references.
macro_rules! walkers {
    ($children:ident, $query:ident, $body:ident, $from:ident, $agg:ident, $statement:ident, $iter:ident, $offset:ident, $values:ident $(, $mutable:tt)?) => {
        /// Calls `f` on each direct child expression and `q` on each direct subquery.
        pub fn $children(
            expr: &$($mutable)? Expr,
            f: &mut dyn FnMut(&$($mutable)? Expr),
            q: &mut dyn FnMut(&$($mutable)? Query),
        ) {
            base::work::beat(8);
            match expr {
                Expr::Const(..) | Expr::Param(..) | Expr::Column(_) | Expr::WholeRow { .. } | Expr::Agg { .. }
                | Expr::Default => {}
                Expr::Call { args, .. } | Expr::And(args) | Expr::Or(args) | Expr::Coalesce(args, _)
                | Expr::Row(args, _) | Expr::MinMax { args, .. } => args.$iter().for_each(f),
                Expr::Array { elements, .. } => elements.$iter().for_each(f),
                Expr::Cast { arg, .. } | Expr::IsNull { arg, .. } | Expr::BooleanTest { arg, .. } => f(arg),
                Expr::Not(arg) => f(arg),
                Expr::Distinct { args, .. } | Expr::NullIf { args, .. } => args.$iter().for_each(f),
                Expr::Case { branches, otherwise, .. } => {
                    for (condition, result) in branches.$iter() {
                        f(condition);
                        f(result);
                    }
                    if let Some(otherwise) = otherwise {
                        f(otherwise);
                    }
                }
                Expr::AnyAll { left, right, .. } => {
                    f(left);
                    match right {
                        AnyAllSource::Array(array) => f(array),
                        AnyAllSource::List(list) => list.$iter().for_each(f),
                    }
                }
                Expr::RowCompare { pairs, .. } => {
                    for (left, right, _, _) in pairs.$iter() {
                        f(left);
                        f(right);
                    }
                }
                Expr::Subscript { array, indexes, .. } => {
                    f(array);
                    indexes.$iter().for_each(f);
                }
                Expr::Subquery { kind, query, .. } => {
                    match kind {
                        SubqueryKind::Any { left, .. } | SubqueryKind::All { left, .. } => {
                            left.$iter().for_each(f);
                        }
                        SubqueryKind::Exists | SubqueryKind::Scalar | SubqueryKind::Array => {}
                    }
                    q(query);
                }
            }
        }

        /// Calls `f` on each expression that belongs to a query itself and `q` on each query directly inside it.
        pub(crate) fn $query(
            query: &$($mutable)? Query,
            f: &mut dyn FnMut(&$($mutable)? Expr),
            q: &mut dyn FnMut(&$($mutable)? Query),
        ) {
            for cte in query.ctes.$iter() {
                q(&$($mutable)? cte.query);
            }
            for rel in query.rels.$iter() {
                match &$($mutable)? rel.kind {
                    RelKind::Subquery { query, .. } => q(query),
                    RelKind::Function { calls, .. } => {
                        calls.$iter().for_each(|call| call.args.$iter().for_each(&mut *f));
                    }
                    RelKind::Window(call) => {
                        call.args.$iter().for_each(&mut *f);
                        for expr in call.filter.$iter() {
                            f(expr);
                        }
                        for bound in [&$($mutable)? call.frame.start, &$($mutable)? call.frame.end] {
                            if let Some(expr) = bound.$offset() {
                                f(expr);
                            }
                        }
                        call.partition.$iter().for_each(&mut *f);
                        for (expr, ..) in call.order.$iter() {
                            f(expr);
                        }
                    }
                    RelKind::Table(_) | RelKind::System(_) | RelKind::Values | RelKind::Join | RelKind::Cte { .. }
                    | RelKind::WorkTable(_) => {}
                }
            }
            for from in query.from.$iter() {
                $from(from, f);
            }
            for guard in query.guards.$iter() {
                f(&$($mutable)? guard.condition);
            }
            for expr in query.filter.$iter() {
                f(expr);
            }
            for target in query.targets.$iter() {
                f(&$($mutable)? target.expr);
            }
            query.group_by.$iter().for_each(&mut *f);
            for agg in query.aggs.$iter() {
                $agg(agg, f);
            }
            for expr in query.having.$iter().chain(query.limit.$iter()).chain(query.offset.$iter()) {
                f(expr);
            }
            for sample in query.sample.$iter() {
                f(&$($mutable)? sample.percent);
                for expr in sample.seed.$iter() {
                    f(expr);
                }
            }
            $body(&$($mutable)? query.body, f, q);
        }

        fn $body(
            body: &$($mutable)? Body,
            f: &mut dyn FnMut(&$($mutable)? Expr),
            q: &mut dyn FnMut(&$($mutable)? Query),
        ) {
            match body {
                Body::Select => {}
                Body::Values(rows) => {
                    for row in rows.$iter() {
                        row.$iter().for_each(&mut *f);
                    }
                }
                Body::SetOp { left, right, .. } => {
                    q(left);
                    q(right);
                }
                Body::Modify(statement) => $statement(statement, f, q),
            }
        }

        /// Calls `f` on each expression of a statement's own level and `q` on each query directly inside it.
        pub(crate) fn $statement(
            statement: &$($mutable)? Statement,
            f: &mut dyn FnMut(&$($mutable)? Expr),
            q: &mut dyn FnMut(&$($mutable)? Query),
        ) {
            match statement {
                Statement::Select(query) => q(query),
                Statement::Insert(insert) => {
                    for cte in insert.ctes.$iter() {
                        q(&$($mutable)? cte.query);
                    }
                    match &$($mutable)? insert.source {
                        InsertSource::Values(rows) => {
                            for row in rows.$iter() {
                                row.$iter().for_each(&mut *f);
                            }
                        }
                        InsertSource::Query(query) => q(query),
                    }
                    for column in insert.columns.$iter() {
                        if let ColumnSource::Default(expr) = column {
                            f(expr);
                        }
                    }
                    if let Some(conflict) = &$($mutable)? insert.on_conflict
                        && let Some(update) = &$($mutable)? conflict.update
                    {
                        for (_, expr) in update.set.$iter() {
                            f(expr);
                        }
                        for expr in update.filter.$iter() {
                            f(expr);
                        }
                    }
                    for target in insert.returning.$iter() {
                        f(&$($mutable)? target.expr);
                    }
                    for (_, expr) in insert.checks.$iter().chain(insert.view_checks.$iter()) {
                        f(expr);
                    }
                    for (_, expr) in insert.tests.$iter().chain(insert.generated.$iter()) {
                        f(expr);
                    }
                }
                Statement::Update(update) => {
                    $query(&$($mutable)? update.query, f, q);
                    for (_, expr) in update.set.$iter() {
                        f(expr);
                    }
                    for (_, expr) in update.checks.$iter().chain(update.view_checks.$iter()) {
                        f(expr);
                    }
                    for (_, expr) in update.generated.$iter() {
                        f(expr);
                    }
                    for target in update.returning.$iter() {
                        f(&$($mutable)? target.expr);
                    }
                }
                Statement::Delete(delete) => {
                    $query(&$($mutable)? delete.query, f, q);
                    for target in delete.returning.$iter() {
                        f(&$($mutable)? target.expr);
                    }
                }
                Statement::Merge(merge) => {
                    $query(&$($mutable)? merge.query, f, q);
                    f(&$($mutable)? merge.on);
                    for action in merge.actions.$iter() {
                        for expr in action.condition.$iter() {
                            f(expr);
                        }
                        for (_, expr) in action.kind.$values().$iter() {
                            f(expr);
                        }
                    }
                    for (_, expr) in merge.checks.$iter() {
                        f(expr);
                    }
                    for (_, expr) in merge.generated.$iter() {
                        f(expr);
                    }
                }
            }
        }

        fn $from(from: &$($mutable)? From, f: &mut dyn FnMut(&$($mutable)? Expr)) {
            if let From::Join { left, right, on, .. } = from {
                $from(left, f);
                $from(right, f);
                if let Some(on) = on {
                    f(on);
                }
            }
        }

        /// Calls `f` on each expression of an aggregate call.
        pub(crate) fn $agg(agg: &$($mutable)? AggCall, f: &mut dyn FnMut(&$($mutable)? Expr)) {
            agg.args.$iter().for_each(&mut *f);
            agg.direct.$iter().for_each(&mut *f);
            for (expr, _, _) in agg.order_by.$iter() {
                f(expr);
            }
            if let Some(filter) = &$($mutable)? agg.filter {
                f(filter);
            }
        }
    };
}

walkers!(children, query_parts, body_parts, from_parts, aggregate_parts, statement_parts, iter, offset, values);
walkers!(
    children_mut,
    query_parts_mut,
    body_parts_mut,
    from_parts_mut,
    aggregate_parts_mut,
    statement_parts_mut,
    iter_mut,
    offset_mut,
    values_mut,
    mut
);

/// Calls `f` on an expression and everything below it, subqueries included; the number is how many queries deep.
pub fn walk(expr: &Expr, depth: usize, f: &mut dyn FnMut(&Expr, usize)) {
    f(expr, depth);
    let shared = std::cell::RefCell::new(f);
    children(expr, &mut |child| walk(child, depth, &mut **shared.borrow_mut()), &mut |query| {
        walk_query(query, depth + 1, &mut **shared.borrow_mut())
    });
}

/// Calls `f` on every expression of a query, which is itself `depth` queries deep.
pub(crate) fn walk_query(query: &Query, depth: usize, f: &mut dyn FnMut(&Expr, usize)) {
    work::beat(8);
    let inner = std::cell::RefCell::new(f);
    query_parts(
        query,
        &mut |expr| walk(expr, depth, &mut **inner.borrow_mut()),
        // A set operation's operands and FROM's subqueries see this query as their outer one.
        &mut |query| walk_query(query, depth + 1, &mut **inner.borrow_mut()),
    );
}

pub(super) fn collect<'e>(expr: &'e Expr, below: &mut Vec<&'e Expr>, queries: &mut Vec<&'e Query>) {
    // The callbacks of `children` cannot keep references, so the few shapes are taken apart by pointer here.
    match expr {
        Expr::Call { args, .. }
        | Expr::And(args)
        | Expr::Or(args)
        | Expr::Coalesce(args, _)
        | Expr::Row(args, _)
        | Expr::MinMax { args, .. } => below.extend(args),
        Expr::Array { elements, .. } => below.extend(elements),
        Expr::Cast { arg, .. } | Expr::IsNull { arg, .. } | Expr::BooleanTest { arg, .. } | Expr::Not(arg) => {
            below.push(arg);
        }
        Expr::Distinct { args, .. } | Expr::NullIf { args, .. } => below.extend(args.iter()),
        Expr::Case { branches, otherwise, .. } => {
            below.extend(branches.iter().flat_map(|(c, r)| [c, r]));
            below.extend(otherwise.as_deref());
        }
        Expr::AnyAll { left, right, .. } => {
            below.push(left);
            match right {
                AnyAllSource::Array(array) => below.push(array),
                AnyAllSource::List(list) => below.extend(list),
            }
        }
        Expr::RowCompare { pairs, .. } => below.extend(pairs.iter().flat_map(|(l, r, _, _)| [l, r])),
        Expr::Subscript { array, indexes, .. } => {
            below.push(array);
            below.extend(indexes);
        }
        Expr::Subquery { kind, query, .. } => {
            if let SubqueryKind::Any { left, .. } | SubqueryKind::All { left, .. } = kind {
                below.extend(left);
            }
            queries.push(query);
        }
        Expr::Const(..)
        | Expr::Param(..)
        | Expr::Column(_)
        | Expr::WholeRow { .. }
        | Expr::Agg { .. }
        | Expr::Default => {}
    }
}

/// Changes an expression and everything below it, subqueries included, from the outside in.
pub fn walk_mut(expr: &mut Expr, depth: usize, f: &mut dyn FnMut(&mut Expr, usize)) {
    f(expr, depth);
    let shared = std::cell::RefCell::new(f);
    children_mut(expr, &mut |child| walk_mut(child, depth, &mut **shared.borrow_mut()), &mut |query| {
        walk_query_mut(query, depth + 1, &mut **shared.borrow_mut())
    });
}

/// Changes every expression of a query.
pub fn walk_query_mut(query: &mut Query, depth: usize, f: &mut dyn FnMut(&mut Expr, usize)) {
    let shared = std::cell::RefCell::new(f);
    query_parts_mut(query, &mut |expr| walk_mut(expr, depth, &mut **shared.borrow_mut()), &mut |query| {
        walk_query_mut(query, depth + 1, &mut **shared.borrow_mut())
    });
}

fn shift_one(expr: &mut Expr, depth: usize, by: isize) {
    let level = match expr {
        Expr::Column(c) => &mut c.level,
        Expr::WholeRow { level, .. } | Expr::Agg { level, .. } => level,
        _ => return,
    };
    if *level >= depth {
        *level = level.saturating_add_signed(by);
    }
}

/// Calls `f` on a query, which is `depth` queries deep, and on every query inside it, from the outside in.
pub(super) fn walk_queries_mut(query: &mut Query, depth: usize, f: &mut dyn FnMut(&mut Query, usize)) {
    f(query, depth);
    if let Body::Modify(statement) = &mut query.body {
        match &mut **statement {
            Statement::Update(update) => f(&mut update.query, depth),
            Statement::Delete(delete) => f(&mut delete.query, depth),
            Statement::Merge(merge) => f(&mut merge.query, depth),
            Statement::Insert(_) | Statement::Select(_) => {}
        }
    }
    let shared = std::cell::RefCell::new(f);
    query_parts_mut(query, &mut |expr| queries_of_mut(expr, depth, &mut **shared.borrow_mut()), &mut |query| {
        walk_queries_mut(query, depth + 1, &mut **shared.borrow_mut())
    });
}

fn queries_of_mut(expr: &mut Expr, depth: usize, f: &mut dyn FnMut(&mut Query, usize)) {
    let shared = std::cell::RefCell::new(f);
    children_mut(expr, &mut |child| queries_of_mut(child, depth, &mut **shared.borrow_mut()), &mut |query| {
        walk_queries_mut(query, depth + 1, &mut **shared.borrow_mut())
    });
}

/// Moves an expression `by` query levels inwards (negative: outwards).
pub fn shift_levels(expr: &mut Expr, by: isize) {
    if by != 0 {
        walk_mut(expr, 0, &mut |e, depth| shift_one(e, depth, by));
    }
}

/// Moves a query one or more levels inwards: its references to what is around it reach further.
pub(crate) fn shift_query(query: &mut Query, by: isize) {
    walk_query_mut(query, 1, &mut |e, depth| shift_one(e, depth, by));
}

/// Calls `f` on every column of an expression that belongs to its own query level.
pub(super) fn columns(expr: &Expr, f: &mut dyn FnMut(&Column)) {
    walk(expr, 0, &mut |e, depth| {
        if let Expr::Column(c) = e
            && c.level >= depth
        {
            f(&Column { level: c.level - depth, ..*c });
        }
    });
}

/// Whether a query calls a volatile function anywhere.
pub(super) fn is_volatile(query: &Query) -> bool {
    let mut volatile = false;
    walk_query(query, 0, &mut |e, _| {
        if let Expr::Call { function, .. } = e {
            volatile |= function.volatility == Volatility::Volatile;
        }
    });
    volatile
}

/// Whether an expression calls a volatile function anywhere.
pub(super) fn calls_volatile(expr: &Expr) -> bool {
    let mut volatile = false;
    walk(expr, 0, &mut |e, _| {
        if let Expr::Call { function, .. } = e {
            volatile |= function.volatility == Volatility::Volatile;
        }
    });
    volatile
}

/// Whether an expression has parameters, in its subqueries too.
pub(super) fn has_params(expr: &Expr) -> bool {
    let mut found = false;
    walk(expr, 0, &mut |e, _| found |= matches!(e, Expr::Param(..)));
    found
}

/// Whether an expression refers to columns of its own query level.
pub(super) fn has_columns(expr: &Expr) -> bool {
    let mut found = false;
    walk(expr, 0, &mut |e, depth| match e {
        Expr::Column(c) => found |= c.level == depth,
        Expr::WholeRow { level, .. } => found |= *level == depth,
        _ => {}
    });
    found
}

/// Whether an expression has one value in all rows, which PostgreSQL finds before it looks at any: by folding, or by running a
/// subquery that stands by itself.
pub fn is_constant(expr: &Expr) -> bool {
    let mut constant = true;
    walk(expr, 0, &mut |e, depth| match e {
        Expr::Column(Column { level, .. }) | Expr::WholeRow { level, .. } | Expr::Agg { level, .. } => {
            constant &= *level < depth;
        }
        Expr::Call { function, .. } if depth == 0 => constant &= function.volatility == Volatility::Immutable,
        _ => {}
    });
    constant
}

/// Whether two nodes are the same, their children apart.
pub(super) fn same_head(a: &Expr, b: &Expr) -> bool {
    match (a, b) {
        (Expr::Const(v, t), Expr::Const(w, u)) => t == u && v.is_null() == w.is_null() && v == w,
        (Expr::Param(i, t), Expr::Param(j, u)) => i == j && t == u,
        (Expr::Column(a), Expr::Column(b)) => a.level == b.level && a.rel == b.rel && a.column == b.column,
        (Expr::WholeRow { level: a, rel: r }, Expr::WholeRow { level: b, rel: s }) => a == b && r == s,
        (Expr::Agg { level: a, index: i, .. }, Expr::Agg { level: b, index: j, .. }) => a == b && i == j,
        (Expr::Call { function: f, ty: t, .. }, Expr::Call { function: g, ty: u, .. }) => f == g && t == u,
        (Expr::Cast { ty: t, kind: k, explicit: e, .. }, Expr::Cast { ty: u, kind: l, explicit: x, .. }) => {
            t == u && k == l && e == x
        }
        (Expr::And(_), Expr::And(_)) | (Expr::Or(_), Expr::Or(_)) | (Expr::Not(_), Expr::Not(_)) => true,
        (Expr::IsNull { negated: m, fields: f, .. }, Expr::IsNull { negated: n, fields: g, .. }) => m == n && f == g,
        (Expr::BooleanTest { want: v, negated: m, .. }, Expr::BooleanTest { want: w, negated: n, .. }) => {
            v == w && m == n
        }
        (Expr::Distinct { equal: f, negated: m, .. }, Expr::Distinct { equal: g, negated: n, .. }) => f == g && m == n,
        (
            Expr::Case { simple: s, branches: x, otherwise: o, ty: t },
            Expr::Case { simple: z, branches: y, otherwise: p, ty: u },
        ) => s == z && x.len() == y.len() && o.is_some() == p.is_some() && t == u,
        (Expr::Coalesce(_, t), Expr::Coalesce(_, u)) | (Expr::Row(_, t), Expr::Row(_, u)) => t == u,
        (Expr::NullIf { equal: f, .. }, Expr::NullIf { equal: g, .. }) => f == g,
        (Expr::MinMax { greatest: g, ty: t, .. }, Expr::MinMax { greatest: h, ty: u, .. }) => g == h && t == u,
        (Expr::AnyAll { all: a, function: f, right: x, .. }, Expr::AnyAll { all: b, function: g, right: y, .. }) => {
            a == b && f == g && std::mem::discriminant(x) == std::mem::discriminant(y)
        }
        (Expr::RowCompare { op: o, .. }, Expr::RowCompare { op: p, .. }) => o == p,
        (Expr::Array { ty: t, nested: m, .. }, Expr::Array { ty: u, nested: n, .. }) => t == u && m == n,
        (Expr::Subscript { ty: t, .. }, Expr::Subscript { ty: u, .. }) => t == u,
        (Expr::Subquery { kind: k, ty: t, .. }, Expr::Subquery { kind: l, ty: u, .. }) => t == u && same_use(k, l),
        _ => false,
    }
}

/// Whether two aggregate calls are the same.
pub(super) fn same_aggregate(a: &AggCall, b: &AggCall) -> bool {
    std::ptr::eq(a.aggregate, b.aggregate) && a.ty == b.ty && same_rows(a, b)
}

/// Whether two aggregates are called with the same rows: arguments, filter, DISTINCT and order.
pub fn same_rows(a: &AggCall, b: &AggCall) -> bool {
    let same_filter = match (&a.filter, &b.filter) {
        (None, None) => true,
        (Some(x), Some(y)) => same(x, y),
        _ => false,
    };
    a.distinct == b.distinct
        && same_filter
        && a.direct.len() == b.direct.len()
        && a.direct.iter().zip(&b.direct).all(|(x, y)| same(x, y))
        && a.args.len() == b.args.len()
        && a.args.iter().zip(&b.args).all(|(x, y)| same(x, y))
        && a.order_by.len() == b.order_by.len()
        && a.order_by.iter().zip(&b.order_by).all(|(x, y)| same(&x.0, &y.0) && x.1 == y.1 && x.2 == y.2)
}

/// Calls `f` with each column (relation, attribute number) of a stored table or sequence that a query uses anywhere; a whole row uses all.
pub(super) fn used_columns(query: &Query, f: &mut dyn FnMut(base::Oid, i16)) {
    used_in(query, &[], &std::cell::RefCell::new(f));
}

/// `around`: the queries around the one, from the outside in.
fn used_in(query: &Query, around: &[&Query], f: &std::cell::RefCell<&mut dyn FnMut(base::Oid, i16)>) {
    let mut around = around.to_vec();
    around.push(query);
    query_parts(query, &mut |expr| used_by(expr, &around, f), &mut |inner| used_in(inner, &around, f));
}

fn used_by(expr: &Expr, around: &[&Query], f: &std::cell::RefCell<&mut dyn FnMut(base::Oid, i16)>) {
    let used = match expr {
        Expr::Column(c) => Some((c.level, c.rel, Some(c.column))),
        Expr::WholeRow { level, rel } => Some((*level, *rel, None)),
        _ => None,
    };
    if let Some((level, rel, column)) = used {
        let query = around.len().checked_sub(level + 1).and_then(|at| around.get(at));
        let mut f = f.borrow_mut();
        match (query.and_then(|query| query.rels.get(rel)).map(|rel| &rel.kind), column) {
            // The table itself has the others.
            (Some(RelKind::Table(info)), Some(column)) if column >= info.desc.columns.len() => {}
            (Some(RelKind::Table(info)), Some(column)) => f(info.desc.oid, column as i16 + 1),
            (Some(RelKind::Table(info)), None) => info.desc.live_columns().for_each(|c| f(info.desc.oid, c.number)),
            (Some(RelKind::Function { calls, .. }), Some(column)) => {
                let sequence = calls.first().and_then(super::permissions::sequence_of);
                sequence.into_iter().for_each(|sequence| f(sequence, column as i16 + 1));
            }
            _ => {}
        }
    }
    children(expr, &mut |child| used_by(child, around, f), &mut |query| used_in(query, around, f));
}

/// Calls `f` with the queries directly inside of a query: in its FROM and WITH clauses and in its expressions.
pub(super) fn queries_inside(query: &Query, f: &mut dyn FnMut(&Query)) {
    let f = std::cell::RefCell::new(f);
    query_parts(query, &mut |expr| queries_in(expr, &f), &mut |inner| (*f.borrow_mut())(inner));
}

fn queries_in(expr: &Expr, f: &std::cell::RefCell<&mut dyn FnMut(&Query)>) {
    children(expr, &mut |child| queries_in(child, f), &mut |query| (*f.borrow_mut())(query));
}
