//! What a plan may assume of the values of parameters.
//!
//! A condition that asks whether a parameter is NULL (`$1 IS NULL OR c = $1`), a pattern that is a parameter (`c LIKE $1`) and a page of rows whose first
//! column is known (`a = $1 AND (a, b) > ($2, $3)`) have good plans, but other ones for other values. A plan that is made for values says what it assumes of them, and suits all values of which
//! that is true; without values nothing is assumed, and the plan says that another may be better.
//!
//! Responsible for: finding such parameters, folding what is asked of them, testing assumptions.
//! Not responsible for: keeping plans and choosing one (`sql-session`).
//! Invariant: a plan is right for all values that it suits.

use std::cell::{Cell, RefCell};
use std::cmp::Ordering;

use base::Oid;
use sql_bind::visit::walk_mut;
use sql_functions::LikePrefix;
use sql_ir::{Body, Expr, From, Query, RelKind, Statement};
use types::Datum;

use super::rewrite::conjunction;
use super::walk;

/// Something that a plan assumes of the value of a parameter.
#[derive(Clone, Debug, PartialEq)]
pub struct Assumption {
    param: usize,
    is: Assumed,
}

#[derive(Clone, Debug, PartialEq)]
enum Assumed {
    /// It is NULL, or is not.
    Null(bool),
    /// As a pattern it says how a text begins, or does not.
    Prefix(bool),
    /// It is the constant that the condition of an index asks for, or is not.
    Equal(Datum, bool),
    /// As a value of a type it is ordered so beside another parameter; `None` if one of them is NULL.
    Beside(usize, Oid, Option<Ordering>),
    /// The same beside a constant.
    BesideConstant(Datum, Oid, Option<Ordering>),
}

impl Assumption {
    /// Whether it is true of values.
    pub fn holds(&self, params: &[Datum]) -> bool {
        let Some(value) = params.get(self.param) else { return false };
        match &self.is {
            Assumed::Null(null) => value.is_null() == *null,
            Assumed::Prefix(has) => has_prefix(value) == *has,
            Assumed::Equal(constant, equal) => (value == constant) == *equal,
            Assumed::Beside(other, ty, order) => {
                params.get(*other).is_some_and(|other| order_of(*ty, value, other) == *order)
            }
            Assumed::BesideConstant(constant, ty, order) => order_of(*ty, value, constant) == *order,
        }
    }
}

/// How two values of a type are ordered; `None` if one is NULL.
fn order_of(ty: Oid, one: &Datum, other: &Datum) -> Option<Ordering> {
    let is_known = !one.is_null() && !other.is_null();
    is_known.then(|| types::compare_as(ty, &one.as_ref(), &other.as_ref()))
}

fn has_prefix(pattern: &Datum) -> bool {
    let Datum::Text(pattern) = pattern else { return false };
    // Nothing is known to be behind some texts.
    LikePrefix::of(pattern).is_some_and(|prefix| prefix.behind.is_some())
}

/// What a table costs at least, in rows of a full scan, of which another way may be better once values are known.
const MANY_ROWS: f64 = 40.0;

/// The values that parameters have this time, and what has been made of them so far.
#[derive(Debug, Default)]
pub(crate) struct Values<'a> {
    known: &'a [Datum],
    assumed: RefCell<Vec<Assumption>>,
    may_be_better: Cell<bool>,
}

impl<'a> Values<'a> {
    pub fn new(known: &'a [Datum]) -> Values<'a> {
        Values { known, ..Values::default() }
    }

    /// The values, as far as they are known.
    pub fn known(&self) -> &'a [Datum] {
        self.known
    }

    /// What has been assumed, and whether more would have been if values were known.
    pub fn taken(&self) -> (Box<[Assumption]>, bool) {
        (self.assumed.borrow().as_slice().into(), self.may_be_better.get())
    }

    fn assume(&self, param: usize, is: Assumed) {
        let assumption = Assumption { param, is };
        let mut assumed = self.assumed.borrow_mut();
        if !assumed.contains(&assumption) {
            assumed.push(assumption);
        }
    }

    /// Whether a parameter is NULL, to be assumed.
    fn is_null(&self, param: usize) -> Option<bool> {
        let Some(value) = self.known.get(param) else {
            self.may_be_better.set(true);
            return None;
        };
        self.assume(param, Assumed::Null(value.is_null()));
        Some(value.is_null())
    }

    /// Whether a parameter is a pattern that says how a text begins, to be assumed.
    pub fn is_prefix(&self, param: usize) -> bool {
        let Some(value) = self.known.get(param) else {
            self.may_be_better.set(true);
            return false;
        };
        let has = has_prefix(value);
        self.assume(param, Assumed::Prefix(has));
        has
    }

    /// Whether a parameter is a constant, to be assumed.
    pub fn is_equal(&self, param: usize, constant: &Datum) -> bool {
        let Some(value) = self.known.get(param) else {
            self.may_be_better.set(true);
            return false;
        };
        let equal = value == constant;
        self.assume(param, Assumed::Equal(constant.clone(), equal));
        equal
    }

    /// How two constants or parameters of one type are ordered, to be assumed if there is a parameter among them; `None` if that is not known, or one
    /// is NULL.
    pub fn order(&self, one: &Expr, other: &Expr) -> Option<Ordering> {
        let ty = one.ty().oid;
        let value = |param: usize| {
            let value = self.known.get(param);
            self.may_be_better.set(self.may_be_better.get() || value.is_none());
            value
        };
        match (one, other) {
            (Expr::Const(one, _), Expr::Const(other, _)) => order_of(ty, one, other),
            (Expr::Param(one, _), Expr::Param(other, _)) if one == other => Some(Ordering::Equal),
            (Expr::Param(one, _), Expr::Param(other, _)) => {
                let order = order_of(ty, value(*one)?, value(*other)?);
                self.assume(*one, Assumed::Beside(*other, ty, order));
                order
            }
            (Expr::Param(param, _), Expr::Const(constant, _)) => {
                let order = order_of(ty, value(*param)?, constant);
                self.assume(*param, Assumed::BesideConstant(constant.clone(), ty, order));
                order
            }
            (Expr::Const(..), Expr::Param(..)) => self.order(other, one).map(Ordering::reverse),
            _ => None,
        }
    }

    /// Notes that a plan without values may be far from the best: it reads many rows.
    pub fn reads(&self, cost: f64, params: usize) {
        if cost > MANY_ROWS && params > 0 && self.known.is_empty() {
            self.may_be_better.set(true);
        }
    }

    /// A statement with what its conditions ask of parameters answered; `None` if they ask nothing, or nothing is known.
    pub fn folded(&self, statement: &Statement) -> Option<Statement> {
        if !self.answers(query_of(statement)?) {
            return None;
        }
        let mut statement = statement.clone();
        if let Some(query) = query_of_mut(&mut statement) {
            self.fold_query(query);
        }
        Some(statement)
    }

    /// As [`Values::folded`], of a query.
    pub fn folded_query(&self, query: &Query) -> Option<Query> {
        let mut folded = self.answers(query).then(|| query.clone())?;
        self.fold_query(&mut folded);
        Some(folded)
    }

    /// Whether the conditions of a query ask something of parameters whose values are known.
    fn answers(&self, query: &Query) -> bool {
        let mut asks = false;
        each_condition(query, &mut |condition| asks |= asks_of_parameters(condition));
        if asks && self.known.is_empty() {
            self.may_be_better.set(true);
        }
        asks && !self.known.is_empty()
    }

    fn fold_query(&self, query: &mut Query) {
        for condition in [&mut query.filter, &mut query.having] {
            if let Some(expr) = condition {
                self.fold(expr);
                if matches!(expr, Expr::Const(Datum::Bool(true), _)) {
                    *condition = None;
                }
            }
        }
        query.from.iter_mut().for_each(|from| self.fold_from(from));
        query.ctes.iter_mut().for_each(|cte| self.fold_query(&mut cte.query));
        for rel in &mut query.rels {
            if let RelKind::Subquery { query, .. } = &mut rel.kind {
                self.fold_query(query);
            }
        }
        if let Body::SetOp { left, right, .. } = &mut query.body {
            self.fold_query(left);
            self.fold_query(right);
        }
    }

    fn fold_from(&self, from: &mut From) {
        if let From::Join { left, right, on, .. } = from {
            self.fold_from(left);
            self.fold_from(right);
            on.iter_mut().for_each(|on| self.fold(on));
        }
    }

    /// Answers what a condition asks of parameters.
    fn fold(&self, condition: &mut Expr) {
        if !asks_of_parameters(condition) {
            return;
        }
        walk_mut(condition, 0, &mut |expr, _| {
            let folded = match expr {
                Expr::IsNull { arg, negated, fields: false } => match **arg {
                    Expr::Param(param, _) => self.is_null(param).map(|null| truth(null != *negated)),
                    _ => None,
                },
                Expr::Coalesce(args, ty) => match args.first() {
                    Some(first @ Expr::Param(param, _)) => self.is_null(*param).map(|null| match (null, args.len()) {
                        (false, _) => first.clone(),
                        (true, 2) => args[1].clone(),
                        (true, _) => Expr::Coalesce(args[1..].to_vec(), *ty),
                    }),
                    _ => None,
                },
                _ => None,
            };
            if let Some(folded) = folded {
                *expr = folded;
            }
        });
        simplify(condition);
    }
}

fn truth(value: bool) -> Expr {
    Expr::Const(Datum::Bool(value), sql_ir::Ty::of(types::oid::BOOL))
}

/// Takes truth values out of AND, OR and NOT.
fn simplify(expr: &mut Expr) {
    let is = |expr: &Expr, value: bool| matches!(expr, Expr::Const(Datum::Bool(v), _) if *v == value);
    match expr {
        Expr::And(all) => {
            all.iter_mut().for_each(simplify);
            if all.iter().any(|one| is(one, false)) {
                *expr = truth(false);
                return;
            }
            let left = std::mem::take(all).into_iter().filter(|one| !is(one, true));
            *expr = left.fold(None, |all, one| conjunction(all, Some(one))).unwrap_or_else(|| truth(true));
        }
        Expr::Or(any) => {
            any.iter_mut().for_each(simplify);
            if any.iter().any(|one| is(one, true)) {
                *expr = truth(true);
                return;
            }
            any.retain(|one| !is(one, false));
            match any.len() {
                0 => *expr = truth(false),
                1 => *expr = any.remove(0),
                _ => {}
            }
        }
        Expr::Not(arg) => {
            simplify(arg);
            if let Expr::Const(Datum::Bool(value), _) = **arg {
                *expr = truth(!value);
            }
        }
        _ => {}
    }
}

fn query_of(statement: &Statement) -> Option<&Query> {
    match statement {
        Statement::Select(query) => Some(query),
        Statement::Update(update) => Some(&update.query),
        Statement::Delete(delete) => Some(&delete.query),
        Statement::Insert(_) | Statement::Merge(_) => None,
    }
}

fn query_of_mut(statement: &mut Statement) -> Option<&mut Query> {
    match statement {
        Statement::Select(query) => Some(query),
        Statement::Update(update) => Some(&mut update.query),
        Statement::Delete(delete) => Some(&mut delete.query),
        Statement::Insert(_) | Statement::Merge(_) => None,
    }
}

/// Calls `f` on the conditions of a query and of those in its FROM and WITH.
fn each_condition<'q>(query: &'q Query, f: &mut dyn FnMut(&'q Expr)) {
    fn of_from<'q>(from: &'q From, f: &mut dyn FnMut(&'q Expr)) {
        if let From::Join { left, right, on, .. } = from {
            of_from(left, f);
            of_from(right, f);
            on.iter().for_each(&mut *f);
        }
    }
    query.filter.iter().chain(&query.having).for_each(&mut *f);
    query.from.iter().for_each(|from| of_from(from, f));
    query.ctes.iter().for_each(|cte| each_condition(&cte.query, f));
    for rel in &query.rels {
        if let RelKind::Subquery { query, .. } = &rel.kind {
            each_condition(query, f);
        }
    }
    if let Body::SetOp { left, right, .. } = &query.body {
        each_condition(left, f);
        each_condition(right, f);
    }
}

/// Whether a condition asks whether a parameter is NULL.
fn asks_of_parameters(condition: &Expr) -> bool {
    let mut asks = false;
    walk::walk(condition, 0, &mut |e, _| {
        asks |= match e {
            Expr::IsNull { arg, fields: false, .. } => matches!(**arg, Expr::Param(..)),
            Expr::Coalesce(args, _) => args.len() > 1 && matches!(args.first(), Some(Expr::Param(..))),
            _ => false,
        };
    });
    asks
}
