//! Which conditions may be tested on rows that their author must not see.
//!
//! A condition from outside of a view with `security_barrier` is tested behind the view's own, unless it tells nothing of the
//! values it is about but whether it holds: then it may go below, to where an index answers it. An error would tell of them
//! (`1 / (a - 42)`, `text::integer`), and so might any function that does not promise otherwise
//! ([`Function::leakproof`](sql_functions::Function)).
//!
//! Responsible for: the promise of a whole expression, and the order of conditions that a query's guards demand
//! ([`Query::guards`](sql_ir::Query)). Not responsible for: that the query of such a view stays a query of its own
//! ([`super::rewrite`]), and which conditions go into it.
//! Invariant: what is not known to keep its secrets does not.

use sql_ir::{AnyAllSource, CastKind, Expr, Guard};

use super::access::Conjunct;
use super::walk;

/// Whether testing an expression may tell more of the columns of its query than its value.
///
/// Functions of constants, parameters and columns of queries around it tell nothing of the rows that it is tested on.
pub(super) fn is_leaky(expr: &Expr) -> bool {
    let any = |exprs: &[Expr]| exprs.iter().any(is_leaky);
    match expr {
        Expr::Const(..) | Expr::Param(..) | Expr::Column(_) | Expr::WholeRow { .. } => false,
        Expr::Call { function, args, .. } => (!function.leakproof && reads_columns(expr)) || any(args),
        Expr::Cast { arg, kind, .. } => match kind {
            CastKind::Relabel | CastKind::Collate(_) | CastKind::Called => is_leaky(arg),
            // Texts that mean no value, arrays of them, values that are too long.
            CastKind::InOut | CastKind::ArrayElements(_) | CastKind::Typmod => reads_columns(arg) || is_leaky(arg),
        },
        Expr::And(args) | Expr::Or(args) | Expr::Coalesce(args, _) | Expr::Row(args, _) => any(args),
        Expr::Array { elements, .. } => any(elements),
        Expr::Not(arg) | Expr::IsNull { arg, .. } | Expr::BooleanTest { arg, .. } => is_leaky(arg),
        Expr::Distinct { equal, args, .. } | Expr::NullIf { equal, args, .. } => {
            (!equal.leakproof && reads_columns(expr)) || any(&args[..])
        }
        Expr::Case { branches, otherwise, .. } => {
            let parts = branches.iter().any(|(condition, result)| is_leaky(condition) || is_leaky(result));
            parts || otherwise.as_ref().is_some_and(|otherwise| is_leaky(otherwise))
        }
        Expr::AnyAll { function, left, right, .. } => {
            let right = match right {
                AnyAllSource::Array(array) => is_leaky(array),
                AnyAllSource::List(items) => any(items),
            };
            (!function.leakproof && reads_columns(expr)) || is_leaky(left) || right
        }
        Expr::RowCompare { pairs, .. } => {
            let keeps = pairs.iter().all(|(.., equal, less)| equal.leakproof && less.leakproof);
            (!keeps && reads_columns(expr)) || pairs.iter().any(|(left, right, ..)| is_leaky(left) || is_leaky(right))
        }
        Expr::Subscript { array, indexes, .. } => is_leaky(array) || any(indexes),
        // How values are ordered is not told by the expression; what a query does is not looked into.
        Expr::MinMax { .. } | Expr::Subquery { .. } | Expr::Agg { .. } | Expr::Default => true,
    }
}

/// Whether an expression is about columns of its own query.
fn reads_columns(expr: &Expr) -> bool {
    let mut found = false;
    walk::walk(expr, 0, &mut |e, depth| {
        found |= match e {
            Expr::Column(column) => column.level == depth,
            Expr::WholeRow { level, .. } => *level == depth,
            _ => false,
        };
    });
    found
}

/// The conditions of guards: each is tested at its table, even if it is about none of its columns.
pub(super) fn guards(guards: &[Guard]) -> Vec<Conjunct> {
    let mut all = Vec::new();
    for (number, guard) in guards.iter().enumerate() {
        let mut parts = Vec::new();
        walk::conjuncts(guard.condition.clone(), &mut parts);
        all.extend(parts.into_iter().map(|expr| {
            let after = if is_leaky(&expr) { number } else { 0 };
            let mut conjunct = Conjunct::new(expr);
            conjunct.mask |= 1 << guard.rel;
            Conjunct { after, guard: true, ..conjunct }
        }));
    }
    all
}

/// Has the other conditions wait for the guards, if they may leak.
pub(super) fn hold_back(conjuncts: &mut [Conjunct]) {
    let Some(last) = conjuncts.iter().filter(|c| c.guard).map(|c| c.after).max() else { return };
    for conjunct in conjuncts.iter_mut().filter(|c| !c.guard && is_leaky(&c.expr)) {
        conjunct.after = last + 1;
    }
}

/// Whether a condition may lead to the rows of a table, through an index: it comes before no guard of the table that it must wait
/// for.
pub(super) fn may_lead(conjunct: &Conjunct, rel: usize, conjuncts: &[Conjunct]) -> bool {
    conjunct.after == 0 || !conjuncts.iter().any(|c| c.guard && c.mask & (1 << rel) != 0)
}

#[cfg(test)]
mod tests {
    use sql_functions as functions;
    use sql_ir::{Column, Ty};
    use types::{Datum, oid};

    use super::*;

    fn column(level: usize, ty: base::Oid) -> Expr {
        Expr::Column(Column { level, rel: 0, column: 0, ty: Ty::of(ty) })
    }

    fn call(name: &str, args: Vec<Expr>) -> Expr {
        let types: Vec<base::Oid> = args.iter().map(|arg| arg.ty().oid).collect();
        let function = functions::function(name, &types).expect("a function");
        Expr::Call { function, args, ty: Ty::of(function.ret), location: -1 }
    }

    fn one() -> Expr {
        Expr::Const(Datum::Int4(1), Ty::of(oid::INT4))
    }

    #[test]
    fn what_is_not_promised_leaks() {
        sql_catalog::install();
        let own = || column(0, oid::INT4);
        let text = |arg| Expr::Cast {
            arg: Box::new(arg),
            ty: Ty::of(oid::INT4),
            kind: CastKind::InOut,
            explicit: true,
            location: -1,
        };
        assert!(!is_leaky(&call("int4eq", vec![own(), one()])));
        assert!(is_leaky(&call("int4div", vec![one(), own()])));
        assert!(is_leaky(&call("int4eq", vec![call("int4div", vec![one(), own()]), one()])));
        assert!(is_leaky(&Expr::Or(vec![call("int4eq", vec![own(), one()]), text(column(0, oid::TEXT))])));
        assert!(is_leaky(&call("int4eq", vec![text(column(0, oid::TEXT)), own()])));
        // Nothing of the rows at hand.
        assert!(!is_leaky(&call("int4eq", vec![own(), call("int4div", vec![one(), one()])])));
        assert!(!is_leaky(&call("int4eq", vec![own(), text(column(1, oid::TEXT))])));
        assert!(!is_leaky(&Expr::IsNull { arg: Box::new(own()), negated: true, fields: false }));
    }

    #[test]
    fn conditions_wait_for_guards_only_if_they_leak() {
        sql_catalog::install();
        let guard = |condition| Guard { rel: 0, condition };
        let leaky = || call("int4eq", vec![call("int4div", vec![one(), column(0, oid::INT4)]), one()]);
        let harmless = || call("int4eq", vec![column(0, oid::INT4), one()]);
        let mut conjuncts = guards(&[guard(leaky()), guard(harmless()), guard(leaky())]);
        conjuncts.extend([leaky(), harmless()].map(Conjunct::new));
        hold_back(&mut conjuncts);
        assert_eq!(conjuncts.iter().map(|c| c.after).collect::<Vec<_>>(), [0, 0, 2, 3, 0]);
        let lead: Vec<bool> = conjuncts.iter().map(|c| may_lead(c, 0, &conjuncts)).collect();
        assert_eq!(lead, [true, true, false, false, true]);
        // Without guards everything is as it was.
        let mut free = vec![Conjunct::new(leaky())];
        hold_back(&mut free);
        assert!(free[0].after == 0 && may_lead(&free[0], 0, &free));
    }
}
