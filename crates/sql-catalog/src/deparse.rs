//! The SQL text of bound expressions, as PostgreSQL's `ruleutils.c` writes it.
//!
//! Responsible for: parentheses, casts and constants of defaults and checks, in the plain form and the pretty one
//! (`pg_get_expr(…, true)`).
//! Not responsible for: queries.
//! Invariant: what cannot be bound or written so is shown as it is kept, never left out.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::rc::Rc;

use engine_api::{DomainCheck, DomainDesc, Expression, TableDesc, TypeKind};
use sql_bind::{self as bind, BindContext};
use sql_functions::{self as functions, EvalContext, Function, extensions};
use sql_ir::{AnyAllSource, CastKind, Expr, Query, Ty};
use sql_parse::names::{quote_name, quote_shown};
use types::{Datum, oid};

/// A column's default as it is shown.
pub fn default_text(expression: &Expression, ty: Ty, pretty: bool, cx: &dyn EvalContext) -> String {
    if let Ok(Some(own)) = with_binder(cx, |binder| bind::bind_own_default(expression, binder)) {
        let whole = with_binder(cx, |binder| bind::bind_default(expression, ty, "", binder));
        let hidden = whole.map_or(0, |whole| hidden_casts(&whole, &own));
        let text = write_below(&own, hidden, None, pretty, cx);
        return text.unwrap_or_else(|| plain_text(expression, None, cx).into_owned());
    }
    let bind_as = |ty| with_binder(cx, |binder| bind::bind_default(expression, ty, "", binder));
    literal_text(&plain_text(expression, None, cx), ty, bind_as, None, pretty, cx)
}

/// A literal that a column's value is made of, as it is shown. Fitting to the column's length is not shown; a length that is written
/// as a cast is.
fn literal_text(
    text: &str,
    ty: Ty,
    bind_as: impl FnOnce(Ty) -> base::Result<Expr>,
    table: Option<&TableDesc>,
    pretty: bool,
    cx: &dyn EvalContext,
) -> String {
    let is_cast = bind::is_cast(text);
    let Ok(expr) = bind_as(if is_cast { Ty::of(ty.oid) } else { ty }) else { return text.to_string() };
    let shown = if is_cast { &expr } else { without_casts(bind::under_domain(&expr)) };
    let shown = match bind::under_domain(shown) {
        Expr::Const(value, ty) if !is_cast => &Expr::Const(value.clone(), Ty::of(ty.oid)),
        _ => shown,
    };
    write(shown, table, pretty, cx).unwrap_or_else(|| text.to_string())
}

/// How many pairs of parentheses the casts need that make a column's value of an expression and are not shown.
fn hidden_casts(whole: &Expr, own: &Expr) -> usize {
    let (mut at, mut count) = (bind::under_domain(whole), 0);
    while !bind::same(at, own) {
        let below = match at {
            Expr::Cast { kind: CastKind::Called, .. } => return 0,
            Expr::Cast { arg, .. } => bind::under_domain(arg),
            Expr::Call { function, args, ty, .. } => match cast_argument(function, args, *ty) {
                Some(arg) => bind::under_domain(arg),
                None => return 0,
            },
            _ => return 0,
        };
        // The call of a function is simple as it stands; another cast is if what it is over is. One to a domain needs none.
        let is_call = match below {
            Expr::Cast { kind, .. } => *kind == CastKind::Typmod,
            Expr::Call { function, args, ty, .. } => cast_argument(function, args, *ty).is_some(),
            _ => false,
        };
        let has_parentheses = bind::same(below, own) || !is_call;
        count += usize::from(has_parentheses && !types::user::is_domain(at.ty().oid));
        at = below;
    }
    count
}

/// An expression below so many casts that are not shown: in the pretty form each of them has parentheses.
fn write_below(
    own: &Expr,
    hidden: usize,
    table: Option<&TableDesc>,
    pretty: bool,
    cx: &dyn EvalContext,
) -> Option<String> {
    let text = write(own, table, pretty, cx)?;
    let is_bare = pretty && !Writer::new(table, pretty, cx).is_simple(own, Around::Cast);
    let layers = if is_bare { hidden } else { 0 };
    Some(format!("{}{text}{}", "(".repeat(layers), ")".repeat(layers)))
}

/// What a generated column is computed from, as it is shown.
pub(crate) fn generated_text(
    expression: &Expression,
    ty: Ty,
    table: &TableDesc,
    pretty: bool,
    cx: &dyn EvalContext,
) -> String {
    if let Ok(Some(own)) = with_binder(cx, |binder| bind::bind_own_generated(expression, table, binder)) {
        let whole =
            with_binder(cx, |binder| bind::bind_computed(bind::Computed::Generated, expression, ty, "", table, binder));
        let hidden = whole.map_or(0, |whole| hidden_casts(&whole, &own));
        let text = write_below(&own, hidden, Some(table), pretty, cx);
        return text.unwrap_or_else(|| plain_text(expression, Some(table), cx).into_owned());
    }
    let bind_as = |ty| {
        with_binder(cx, |binder| bind::bind_computed(bind::Computed::Generated, expression, ty, "", table, binder))
    };
    literal_text(&plain_text(expression, Some(table), cx), ty, bind_as, Some(table), pretty, cx)
}

/// The columns, by index, that the expression of a generated column reads.
pub(crate) fn columns_used(expression: &Expression, ty: Ty, table: &TableDesc, cx: &dyn EvalContext) -> Vec<usize> {
    let mut used = Vec::new();
    if let Ok(expr) =
        with_binder(cx, |binder| bind::bind_computed(bind::Computed::Generated, expression, ty, "", table, binder))
    {
        bind::visit_columns(&expr, &mut |column| used.push(column.column));
    }
    used.sort_unstable();
    used.dedup();
    used
}

/// Which columns of a view UPDATE can change, by index; none if it cannot be changed.
pub(crate) fn view_columns_writable(view: &TableDesc, cx: &dyn EvalContext) -> Vec<bool> {
    let mapped = with_binder(cx, |binder| bind::bind_through_view(view, "update", binder));
    mapped.map(|columns| columns.iter().map(Option::is_some).collect()).unwrap_or_default()
}

/// An index's expression or condition as it is shown, and whether it needs parentheses among the keys.
pub fn index_text(
    expression: &Expression,
    condition: bool,
    table: &TableDesc,
    pretty: bool,
    cx: &dyn EvalContext,
) -> (String, bool) {
    let text = plain_text(expression, Some(table), cx);
    let Some(expr) = index_part(expression, condition, table, cx) else { return (text.into_owned(), true) };
    let is_call = match &expr {
        Expr::Call { function, args, ty, .. } => {
            functions::operator_of(function, args.len()).is_none() && cast_argument(function, args, *ty).is_none()
        }
        Expr::Cast { kind: CastKind::Called, .. } | Expr::Coalesce(..) | Expr::NullIf { .. } | Expr::MinMax { .. } => {
            true
        }
        _ => false,
    };
    (write(&expr, Some(table), pretty, cx).unwrap_or_else(|| text.into_owned()), !is_call)
}

fn index_part(text: &Expression, condition: bool, table: &TableDesc, cx: &dyn EvalContext) -> Option<Expr> {
    let bound = with_binder(cx, |binder| match condition {
        true => bind::bind_index_predicate(text, table, binder),
        false => bind::bind_index_expression(text, table, binder),
    });
    bound.ok()
}

/// A CHECK condition as it is shown.
pub fn check_text(expression: &Expression, table: &TableDesc, pretty: bool, cx: &dyn EvalContext) -> String {
    let bound = with_binder(cx, |binder| bind::bind_check(expression, table, binder));
    let shown = bound.ok().and_then(|expr| write(&expr, Some(table), pretty, cx));
    let text = || plain_text(expression, Some(table), cx).into_owned();
    shown.unwrap_or_else(|| if pretty { text() } else { format!("({})", text()) })
}

/// The definition of a domain's CHECK constraint as ALTER DOMAIN ADD takes it.
pub(crate) fn domain_check_definition(
    check: &DomainCheck,
    domain: &DomainDesc,
    pretty: bool,
    cx: &dyn EvalContext,
) -> String {
    let bound = with_binder(cx, |binder| bind::bind_shown_condition(&check.expression, domain, binder));
    let shown = bound.ok().and_then(|expr| write(&expr, None, pretty, cx));
    let text = || plain_text(&check.expression, None, cx).into_owned();
    let text = shown.unwrap_or_else(|| if pretty { text() } else { format!("({})", text()) });
    format!("CHECK ({text}){}", if check.not_valid { " NOT VALID" } else { "" })
}

/// An expression with the names of today, each with its schema.
fn plain_text<'e>(expression: &'e Expression, table: Option<&TableDesc>, cx: &dyn EvalContext) -> Cow<'e, str> {
    sql_bind::stored::text(expression, &cx.catalog(), table)
}

fn with_binder<T>(cx: &dyn EvalContext, run: impl FnOnce(&mut BindContext<'_>) -> T) -> T {
    let mut binder = BindContext::new(cx.catalog(), cx.identity(), cx, &[]);
    binder.keeps_calls = true;
    run(&mut binder)
}

fn write(expr: &Expr, table: Option<&TableDesc>, pretty: bool, cx: &dyn EvalContext) -> Option<String> {
    let mut writer = Writer::new(table, pretty, cx);
    writer.expr(without_hidden(expr)).then_some(writer.out)
}

/// A value below the step to or from a domain, which was not written.
fn without_hidden(expr: &Expr) -> &Expr {
    let base = |ty: Ty| types::user::base_type(ty.oid, -1).0;
    match expr {
        Expr::Cast { arg, ty, kind: CastKind::Relabel, explicit: false, .. }
            if ty.oid != arg.ty().oid && base(*ty) == base(arg.ty()) =>
        {
            arg
        }
        expr => expr,
    }
}

fn types_are_texts(args: &[Expr]) -> bool {
    args.iter().all(|arg| arg.ty().oid == oid::TEXT)
}

/// A value below a cast that was not written and changes nothing, which words of the grammar do not show.
fn without_implicit(expr: &Expr) -> &Expr {
    match expr {
        Expr::Cast { arg, kind: CastKind::Relabel, explicit: false, .. } => arg,
        expr => expr,
    }
}

/// A value of a comparison below the casts that were not written.
pub(super) fn as_written(expr: &Expr) -> &Expr {
    match expr {
        Expr::Cast { kind: CastKind::Called, .. } => expr,
        Expr::Cast { arg, explicit: false, .. } => as_written(arg),
        Expr::Call { function, args, ty, location: -1 } => cast_argument(function, args, *ty).map_or(expr, as_written),
        expr => expr,
    }
}

/// The query of a view as it is shown; the text it was made from if there is no form for it.
pub(crate) fn view_text(view: &TableDesc, pretty: bool, cx: &dyn EvalContext) -> Option<String> {
    let stored = view.view.as_ref()?;
    let (bound, places, qualifiers) = with_binder(cx, |binder| {
        binder.places = Some(Vec::new());
        let bound = bind::bind_stored_view(view, binder);
        (bound, binder.places.take().unwrap_or_default(), std::mem::take(&mut binder.qualifiers))
    });
    let shown = bound.ok().and_then(|query| {
        let mut writer = Writer::new(None, pretty, cx);
        let names: Vec<&str> = view.columns.iter().map(|c| c.name.as_str()).collect();
        writer.query(&query, Some(&names)).then_some(writer.out)
    });
    Some(format!(
        "{};",
        shown.unwrap_or_else(|| format!(" {}", super::deparse_stored::stored_text(stored, &places, &qualifiers, cx)))
    ))
}

/// Whether rows can be changed through a view (`insert into`, `update`, `delete from`).
pub(crate) fn view_is_writable(view: &TableDesc, verb: &str, cx: &dyn EvalContext) -> bool {
    with_binder(cx, |binder| bind::bind_through_view(view, verb, binder)).is_ok()
}

/// What an expression is inside of, as far as parentheses depend on it.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Around<'a> {
    /// An operator, and whether this is its left operand.
    Operator(&'a str, bool),
    And,
    Or,
    Not,
    /// A cast.
    Cast,
    Other,
}

pub(super) struct Writer<'a> {
    pub(super) table: Option<&'a TableDesc>,
    pub(super) pretty: bool,
    pub(super) cx: &'a dyn EvalContext,
    pub(super) out: String,
    /// The queries around the expression, from the outside in.
    pub(super) queries: Vec<&'a Query>,
    /// What the relations of each of them are called.
    pub(super) names: Vec<Rc<[String]>>,
    /// How far lines are indented.
    pub(super) indent: usize,
    /// Whether something outside of the query sees the names of its columns, so that each has to be written.
    pub(super) names_shown: bool,
}

/// What a call casts from, if it is the function of a cast.
fn cast_argument<'e>(function: &'static Function, args: &'e [Expr], ty: Ty) -> Option<&'e Expr> {
    let first = args.first()?;
    let extra_are_constant = args[1..].iter().all(|a| matches!(a, Expr::Const(..)));
    (extra_are_constant && functions::is_of_cast(function, ty.oid)).then_some(first)
}

/// An expression below the casts around it.
pub(super) fn without_casts(expr: &Expr) -> &Expr {
    match expr {
        Expr::Cast { kind: CastKind::Called, .. } => expr,
        Expr::Cast { arg, .. } => without_casts(arg),
        Expr::Call { function, args, ty, .. } => match cast_argument(function, args, *ty) {
            Some(arg) => without_casts(arg),
            None => expr,
        },
        expr => expr,
    }
}

fn type_name(ty: Ty, cx: &dyn EvalContext) -> String {
    if let (oid::BPCHAR | oid::BIT, ..=-1) = (ty.oid, ty.typmod) {
        return oid::any_length_name(ty.oid).to_string();
    }
    sql_bind::shown_type(cx, ty.oid, ty.typmod)
}

impl<'a> Writer<'a> {
    fn new(table: Option<&'a TableDesc>, pretty: bool, cx: &'a dyn EvalContext) -> Writer<'a> {
        let (queries, names) = (Vec::new(), Vec::new());
        Writer { table, pretty, cx, out: String::new(), queries, names, indent: 0, names_shown: true }
    }

    /// Writes an expression; `false` if there is no form for it.
    pub(super) fn expr(&mut self, expr: &Expr) -> bool {
        let expr = bind::under_domain(expr);
        match expr {
            Expr::Const(value, ty) => self.constant(value, *ty, true),
            Expr::Column(column) if !self.queries.is_empty() => self.column(column),
            // Only what a domain's condition is about.
            Expr::Param(..) => self.word("VALUE"),
            Expr::Agg { level, index, .. } => self.aggregate(*level, *index),
            Expr::Subquery { kind, query, .. } => self.subquery(kind, query),
            Expr::Column(column) => {
                let name = self.table.and_then(|t| t.columns.get(column.column)).map(|c| quote_name(&c.name));
                self.out.push_str(name.as_deref().unwrap_or("?"));
                name.is_some()
            }
            Expr::Call { function, args, ty, .. } => {
                // The types of the arguments are handed over before them, and were not written.
                let hidden = usize::from(function.wants_types).min(args.len());
                self.call(function, &args[hidden..], *ty)
            }
            // Conditions take a truth value off its domain without a word.
            Expr::Cast { arg, ty: Ty { oid: oid::BOOL, .. }, kind: CastKind::Relabel, explicit: false, .. } => {
                self.expr(arg)
            }
            Expr::Cast { arg, kind: CastKind::Called, .. } => match &**arg {
                Expr::Call { function, args, .. } if functions::key_word(function.name).is_some() => {
                    self.listed(&format!("\"{}\"(", function.name), args, ")")
                }
                Expr::Call { function, args, .. } => self.call_by_name(function, self.without_defaults(function, args)),
                arg => self.expr(arg),
            },
            Expr::Cast { arg, kind: CastKind::Collate(collation), .. } => {
                let name = sql_bind::collation::name_of(*collation).unwrap_or_default();
                self.wrapped(|w| w.part(arg, Around::Other) && w.word(" COLLATE ") && w.word(&name))
            }
            Expr::Cast { arg, ty, kind, .. } => {
                // Fitting a value to a length takes the cast to its type along.
                let inner = if *kind == CastKind::Typmod { self.below_same_cast(arg, *ty) } else { arg };
                self.cast(inner, *ty)
            }
            Expr::And(args) => self.joined(args, " AND ", Around::And),
            Expr::Or(args) => self.joined(args, " OR ", Around::Or),
            Expr::Not(arg) => self.wrapped(|w| {
                w.out.push_str("NOT ");
                w.part(arg, Around::Not)
            }),
            Expr::IsNull { arg, negated, fields: false } if arg.ty().oid == oid::RECORD => {
                self.test(arg, if *negated { "IS DISTINCT FROM NULL" } else { "IS NOT DISTINCT FROM NULL" })
            }
            Expr::IsNull { arg, negated, .. } => self.test(arg, if *negated { "IS NOT NULL" } else { "IS NULL" }),
            Expr::BooleanTest { arg, want, negated } => {
                let word = match want {
                    Some(true) => "TRUE",
                    Some(false) => "FALSE",
                    None => "UNKNOWN",
                };
                self.test(arg, &format!("IS {}{word}", if *negated { "NOT " } else { "" }))
            }
            Expr::Distinct { args, negated, .. } => {
                let between = |w: &mut Self| {
                    w.wrapped(|w| {
                        w.part(&args[0], Around::Other)
                            && w.word(" IS DISTINCT FROM ")
                            && w.part(&args[1], Around::Other)
                    })
                };
                match negated {
                    false => between(self),
                    true => self.wrapped(|w| {
                        w.out.push_str("NOT (");
                        w.part(&args[0], Around::Other)
                            && w.word(" IS DISTINCT FROM ")
                            && w.part(&args[1], Around::Other)
                            && w.word(")")
                    }),
                }
            }
            Expr::Case { simple, branches, otherwise, ty } => self.case(*simple, branches, otherwise.as_deref(), *ty),
            Expr::RowCompare { op, pairs } => {
                let (left, right) = (pairs.iter().map(|pair| &pair.0), pairs.iter().map(|pair| &pair.1));
                self.listed("(ROW(", left, ")")
                    && self.word(&format!(" {} ", op.symbol()))
                    && self.listed("ROW(", right, "))")
            }
            Expr::Coalesce(args, _) => self.listed("COALESCE(", args, ")"),
            Expr::NullIf { args, .. } => self.listed("NULLIF(", &args[..], ")"),
            Expr::MinMax { greatest, args, .. } => {
                self.listed(if *greatest { "GREATEST(" } else { "LEAST(" }, args, ")")
            }
            Expr::Array { elements, ty, .. } => {
                if elements.is_empty() {
                    let _ = write!(self.out, "ARRAY[]::{}", type_name(*ty, self.cx));
                    return true;
                }
                self.listed("ARRAY[", elements, "]")
            }
            Expr::Row(args, _) => self.listed("ROW(", args, ")"),
            Expr::Subscript { array, indexes, .. } => {
                self.subscripted(array)
                    && indexes.iter().all(|index| self.word("[") && self.expr(index) && self.word("]"))
            }
            Expr::AnyAll { all, function, left, right } => self.any_all(*all, function, left, right),
            _ => false,
        }
    }

    pub(super) fn word(&mut self, word: &str) -> bool {
        self.out.push_str(word);
        true
    }

    /// Puts parentheses around, which the pretty form leaves to whoever is around.
    pub(super) fn wrapped(&mut self, inner: impl FnOnce(&mut Self) -> bool) -> bool {
        if self.pretty {
            return inner(self);
        }
        self.out.push('(');
        inner(self) && self.word(")")
    }

    /// A part of an expression, in parentheses if the pretty form needs them.
    pub(super) fn part(&mut self, expr: &Expr, around: Around<'_>) -> bool {
        let expr = bind::under_domain(expr);
        if !self.pretty || self.is_simple(expr, around) {
            return self.expr(expr);
        }
        self.out.push('(');
        self.expr(expr) && self.word(")")
    }

    /// PostgreSQL's `isSimpleNode`.
    fn is_simple(&self, expr: &Expr, around: Around<'_>) -> bool {
        let in_boolean = matches!(around, Around::And | Around::Or | Around::Not);
        match expr {
            Expr::Const(..)
            | Expr::Param(..)
            | Expr::Column(_)
            | Expr::Agg { .. }
            | Expr::Case { .. }
            | Expr::Coalesce(..)
            | Expr::NullIf { .. }
            | Expr::MinMax { .. }
            | Expr::Array { .. }
            | Expr::Row(..)
            | Expr::Subscript { .. } => true,
            Expr::Cast { kind: CastKind::Collate(_), .. } => false,
            Expr::Cast { kind: CastKind::Called, .. } => true,
            Expr::Cast { arg, .. } => self.is_simple(bind::under_domain(arg), Around::Cast),
            Expr::Call { function, args, .. } => match functions::operator_of(function, args.len()) {
                None => true,
                Some(operator) => match around {
                    Around::Operator(outer, is_left) => {
                        let rank = |name: &str| match name {
                            "+" | "-" => 1,
                            "*" | "/" | "%" => 2,
                            _ => 0,
                        };
                        let (own, outer) = (rank(operator), rank(outer));
                        own > 0 && outer > 0 && args.len() == 2 && (own > outer || own == outer && is_left)
                    }
                    _ => in_boolean,
                },
            },
            Expr::Subquery { .. }
            | Expr::IsNull { .. }
            | Expr::BooleanTest { .. }
            | Expr::Distinct { negated: false, .. } => in_boolean,
            Expr::And(_) | Expr::Not(_) | Expr::Distinct { .. } => {
                matches!(around, Around::And | Around::Or)
            }
            Expr::Or(_) => around == Around::Or,
            _ => false,
        }
    }

    fn joined(&mut self, args: &[Expr], word: &str, around: Around<'_>) -> bool {
        self.wrapped(|w| args.iter().enumerate().all(|(i, arg)| (i == 0 || w.word(word)) && w.part(arg, around)))
    }

    fn test(&mut self, arg: &Expr, what: &str) -> bool {
        self.wrapped(|w| w.part(arg, Around::Other) && w.word(" ") && w.word(what))
    }

    pub(super) fn listed<'e>(&mut self, before: &str, args: impl IntoIterator<Item = &'e Expr>, after: &str) -> bool {
        self.out.push_str(before);
        args.into_iter().enumerate().all(|(i, arg)| (i == 0 || self.word(", ")) && self.expr(arg)) && self.word(after)
    }

    fn call(&mut self, function: &'static Function, args: &[Expr], ty: Ty) -> bool {
        let args = self.without_defaults(function, args);
        if let Some(operator) = functions::operator_of(function, args.len()) {
            return match args {
                [left, right] => self.wrapped(|w| {
                    w.part(left, Around::Operator(operator, true))
                        && w.word(" ")
                        && w.word(operator)
                        && w.word(" ")
                        && w.part(right, Around::Operator(operator, false))
                }),
                [arg] => {
                    self.wrapped(|w| w.word(operator) && w.word(" ") && w.part(arg, Around::Operator(operator, false)))
                }
                _ => false,
            };
        }
        if let Some(arg) = cast_argument(function, args, ty) {
            return self.cast(arg, ty);
        }
        self.call_by_name(function, args)
    }

    fn call_by_name(&mut self, function: &'static Function, args: &[Expr]) -> bool {
        if function.name == "array slice" {
            return self.slice(args);
        }
        if function.name.contains(' ') && function.name != "variadic call" {
            // No statement can write it.
            return false;
        }
        if let Some(word) = functions::key_word(function.name) {
            self.out.push_str(word);
            return match args {
                [] => true,
                [Expr::Const(Datum::Int4(precision), _)] => {
                    let _ = write!(self.out, "({precision})");
                    true
                }
                _ => false,
            };
        }
        if function.in_words {
            return self.words(function.name, args);
        }
        match (function.name, args) {
            // No other form of a call means these functions.
            ("extract", [Expr::Const(Datum::Text(field), _), from]) => {
                let head = format!("EXTRACT({field} FROM ");
                self.word(&head) && self.expr(without_implicit(from)) && self.word(")")
            }
            ("position", [text, part]) => {
                self.word("POSITION((")
                    && self.expr(without_implicit(part))
                    && self.word(") IN (")
                    && self.expr(without_implicit(text))
                    && self.word("))")
            }
            // The text form of what has a name in the catalog is a cast.
            ("regout", [arg]) => self.cast(arg, Ty::of(oid::TEXT)),
            ("variadic call", [Expr::Const(Datum::Int8(oid), _), _, args @ ..]) => self.variadic(*oid, args),
            _ => self.listed(&format!("{}(", extensions::name_for(self.cx, function)), args, ")"),
        }
    }

    /// `f(…, VARIADIC array)`
    fn variadic(&mut self, oid: i64, args: &[Expr]) -> bool {
        let function = u32::try_from(oid).ok().and_then(functions::function_by_oid);
        let (Some(function), Some((array, before))) = (function, args.split_last()) else { return false };
        self.listed(&format!("{}(", extensions::name_for(self.cx, function)), before, "")
            && (before.is_empty() || self.word(", "))
            && self.word("VARIADIC ")
            && self.expr(array)
            && self.word(")")
    }

    /// A call in words.
    fn words(&mut self, name: &str, args: &[Expr]) -> bool {
        let plain = |w: &mut Self, arg: &Expr| w.expr(without_implicit(arg));
        let word = |arg: &Expr| match arg {
            Expr::Const(Datum::Text(text), _) => Some(text.to_string()),
            _ => None,
        };
        match (name, args) {
            ("substring", [text, pattern, escape]) if types_are_texts(args) => {
                self.word("SUBSTRING(")
                    && plain(self, text)
                    && self.word(" SIMILAR ")
                    && plain(self, pattern)
                    && self.word(" ESCAPE ")
                    && plain(self, escape)
                    && self.word(")")
            }
            ("substring", [_, pattern]) if pattern.ty().oid == oid::TEXT => self.listed("\"substring\"(", args, ")"),
            ("substring", [text, from, count @ ..]) => {
                self.word("SUBSTRING(")
                    && plain(self, text)
                    && self.word(" FROM ")
                    && plain(self, from)
                    && count.iter().all(|count| self.word(" FOR ") && plain(self, count))
                    && self.word(")")
            }
            ("overlay", [text, new, from, count @ ..]) => {
                self.word("OVERLAY(")
                    && plain(self, text)
                    && self.word(" PLACING ")
                    && plain(self, new)
                    && self.word(" FROM ")
                    && plain(self, from)
                    && count.iter().all(|count| self.word(" FOR ") && plain(self, count))
                    && self.word(")")
            }
            ("btrim" | "ltrim" | "rtrim", [text, what @ ..]) => {
                let side = match name {
                    "btrim" => "TRIM(BOTH",
                    "ltrim" => "TRIM(LEADING",
                    _ => "TRIM(TRAILING",
                };
                self.word(side)
                    && what.iter().all(|what| self.word(" ") && plain(self, what))
                    && self.word(" FROM ")
                    && plain(self, text)
                    && self.word(")")
            }
            ("normalize", [text, form @ ..]) => {
                let forms: Option<Vec<String>> = form.iter().map(word).collect();
                let Some(forms) = forms else { return false };
                self.word("NORMALIZE(")
                    && plain(self, text)
                    && forms.iter().all(|form| self.word(", ") && self.word(form))
                    && self.word(")")
            }
            ("is_normalized", [text, form @ ..]) => {
                let forms: Option<Vec<String>> = form.iter().map(word).collect();
                let Some(forms) = forms else { return false };
                self.word("(")
                    && self.part(without_implicit(text), Around::Cast)
                    && self.word(" IS")
                    && forms.iter().all(|form| self.word(" ") && self.word(form))
                    && self.word(" NORMALIZED)")
            }
            ("timezone", [zone, time]) => {
                self.word("(")
                    && self.part(without_implicit(time), Around::Cast)
                    && self.word(" AT TIME ZONE ")
                    && self.part(without_implicit(zone), Around::Cast)
                    && self.word(")")
            }
            ("overlaps", [a, b, c, d]) => {
                self.word("((")
                    && plain(self, a)
                    && self.word(", ")
                    && plain(self, b)
                    && self.word(") OVERLAPS (")
                    && plain(self, c)
                    && self.word(", ")
                    && plain(self, d)
                    && self.word("))")
            }
            _ => false,
        }
    }

    /// The arguments of a call without those behind that are what they would be if they were left out.
    fn without_defaults<'e>(&self, function: &'static Function, args: &'e [Expr]) -> &'e [Expr] {
        if function.defaults.is_empty() || args.len() != function.args.len() {
            return args;
        }
        let is_default = |(arg, default): (&Expr, &Datum)| match arg {
            Expr::Const(value, ty) => self.value_text(value, *ty) == self.value_text(default, *ty),
            _ => false,
        };
        let behind = args.iter().rev().zip(function.defaults.iter().rev()).take_while(|pair| is_default(*pair));
        &args[..args.len() - behind.count()]
    }

    /// An array that subscripts follow.
    fn subscripted(&mut self, array: &Expr) -> bool {
        match array {
            Expr::Column(_) => self.expr(array),
            _ => self.word("(") && self.expr(array) && self.word(")"),
        }
    }

    /// The array, then lower and upper bound of each dimension; one that is not written is `false`.
    fn slice(&mut self, args: &[Expr]) -> bool {
        let Some((array, bounds)) = args.split_first() else { return false };
        let bound = |w: &mut Self, bound: &Expr| matches!(bound, Expr::Const(Datum::Bool(_), _)) || w.expr(bound);
        self.subscripted(array)
            && bounds.chunks_exact(2).all(|pair| {
                self.word("[") && bound(self, &pair[0]) && self.word(":") && bound(self, &pair[1]) && self.word("]")
            })
    }

    /// What a length applies to, below the cast to the same type that came with it.
    fn below_same_cast<'e>(&self, expr: &'e Expr, to: Ty) -> &'e Expr {
        match expr {
            Expr::Cast { kind: CastKind::Called, .. } => expr,
            Expr::Cast { arg, ty, .. } if ty.oid == to.oid => arg,
            Expr::Call { function, args, ty, .. } if ty.oid == to.oid => {
                cast_argument(function, args, *ty).unwrap_or(expr)
            }
            expr => expr,
        }
    }

    fn cast(&mut self, arg: &Expr, ty: Ty) -> bool {
        if let Expr::Const(value, from) = arg
            && from.oid == ty.oid
        {
            // The constant is of the type already: its own label would be one too many.
            return self.constant(value, *from, false) && self.label(ty);
        }
        // Casts inside of a cast that were not written are not shown: a domain takes its length along.
        let mut arg = match bind::under_domain(arg) {
            Expr::Cast { arg, ty: inner, kind: CastKind::Typmod, .. } if types::user::is_domain(ty.oid) => {
                self.below_same_cast(arg, *inner)
            }
            arg => arg,
        };
        // To become one of a domain a value first becomes one of the type under it.
        let base = types::user::base_type(ty.oid, -1).0;
        if let Expr::Call { function, args, ty: under, .. } = arg
            && types::user::is_domain(ty.oid)
            && under.oid == base
            && let Some(inner) = cast_argument(function, args, *under)
        {
            arg = bind::under_domain(inner);
        }
        if let Expr::Cast { arg: inner, ty: to, kind: CastKind::InOut, explicit: false, .. } = arg
            && types::user::is_domain(ty.oid)
            && to.oid == base
        {
            arg = bind::under_domain(inner);
        }
        while let Expr::Cast { arg: inner, ty: to, kind: CastKind::Relabel, explicit, .. } = arg
            && to.oid != inner.ty().oid
            && (!explicit && types::user::is_domain(inner.ty().oid) || types::user::is_domain(ty.oid) && to.oid == base)
        {
            arg = bind::under_domain(inner);
        }
        let parentheses = !self.pretty;
        (!parentheses || self.word("("))
            && self.part(arg, Around::Cast)
            && (!parentheses || self.word(")"))
            && self.label(ty)
    }

    pub(super) fn label(&mut self, ty: Ty) -> bool {
        let _ = write!(self.out, "::{}", type_name(ty, self.cx));
        true
    }

    pub(super) fn constant(&mut self, value: &Datum, ty: Ty, labelled: bool) -> bool {
        if value.is_null() {
            self.out.push_str("NULL");
            return !labelled || self.label(ty);
        }
        // What stands for no document at all (the variables of a path).
        let none = matches!((ty.oid, value), (oid::JSONB, Datum::Bool(_))).then(|| "{}".to_string());
        let Some(text) = none.or_else(|| self.value_text(value, ty)) else { return false };
        let plain_number = text.starts_with(|c: char| c.is_ascii_digit());
        let (quoted, mut needs_label) = match ty.oid {
            oid::BOOL => {
                self.out.push_str(if matches!(value, Datum::Bool(true)) { "true" } else { "false" });
                return true;
            }
            oid::INT4 => (!plain_number, !plain_number),
            oid::NUMERIC => {
                let like_float = plain_number && text.contains(['e', 'E', '.']);
                (!like_float, !like_float)
            }
            oid::UNKNOWN => (true, false),
            _ => (true, true),
        };
        needs_label |= ty.oid == oid::NUMERIC && ty.typmod >= 0;
        match quoted {
            true => self.out.push_str(&quote_shown(&text)),
            false => self.out.push_str(&text),
        }
        !(needs_label && labelled) || self.label(ty)
    }

    fn value_text(&self, value: &Datum, ty: Ty) -> Option<String> {
        if let (oid::REGCLASS, Datum::Oid(number)) = (ty.oid, value) {
            let (catalog, identity) = (self.cx.catalog(), self.cx.identity());
            return Some(super::relation_text(&catalog, &identity.search_path, base::Oid(*number)));
        }
        match (ty.oid, value) {
            (oid::REGTYPE, Datum::Oid(number)) if types::type_info(base::Oid(*number)).is_some() => {
                return Some(sql_bind::shown_type(self.cx, base::Oid(*number), -1));
            }
            (oid::REGNAMESPACE, Datum::Oid(number)) => {
                if let Some(schema) = self.cx.catalog().get(base::Oid(*number)) {
                    return Some(quote_name(schema.name()));
                }
            }
            (_, Datum::Enum(of, mark)) => return self.label_text(*of, *mark),
            (_, Datum::Array(array)) if types::user::is_enum(array.element) => return self.labels_text(array),
            _ => {}
        }
        self.plain_value_text(value, ty)
    }

    /// A label by the name that the catalog has for it.
    fn label_text(&self, of: base::Oid, mark: f32) -> Option<String> {
        let catalog = self.cx.catalog();
        let TypeKind::Enum(labels) = &catalog.user_type(of)?.kind else { return None };
        labels.iter().find(|label| label.order == mark).map(|label| label.name.clone())
    }

    fn labels_text(&self, array: &types::Array) -> Option<String> {
        let name = |value: &Datum| match value {
            Datum::Enum(of, mark) => self.label_text(*of, *mark).map(Datum::from),
            other => Some(other.clone()),
        };
        let values = array.values.iter().map(name).collect::<Option<_>>()?;
        let names = types::Array { element: oid::TEXT, dims: array.dims.clone(), values };
        self.plain_value_text(&Datum::Array(std::sync::Arc::new(names)), Ty::of(oid::TEXT_ARRAY))
    }

    fn plain_value_text(&self, value: &Datum, ty: Ty) -> Option<String> {
        let mut text = Vec::new();
        types::write_text(value.as_ref(), ty.oid, self.cx.settings(), &mut text).ok()?;
        String::from_utf8(text).ok()
    }

    /// A result of CASE, where a truth value is taken off its domain in words.
    fn result(&mut self, expr: &Expr) -> bool {
        match expr {
            Expr::Cast {
                arg, ty: ty @ Ty { oid: oid::BOOL, .. }, kind: CastKind::Relabel, explicit: false, ..
            } => self.cast(arg, *ty),
            expr => self.expr(expr),
        }
    }

    /// `simple`: the conditions compare an operand, which is written once.
    fn case(&mut self, simple: bool, branches: &[(Expr, Expr)], otherwise: Option<&Expr>, ty: Ty) -> bool {
        let compared = |(when, _): &'_ (Expr, Expr)| match when {
            Expr::Call { function, args, .. } if args.len() == 2 => functions::operator_of(function, 2).is_some(),
            _ => false,
        };
        let simple = simple && branches.iter().all(compared);
        let side = |when: &'_ Expr, at: usize| match when {
            Expr::Call { args, .. } => args[at].clone(),
            _ => when.clone(),
        };
        // Inside of a query its lines are indented as the query's are.
        let base = self.indent + if self.queries.is_empty() { 0 } else { super::deparse_query::STEP };
        let line = |w: &mut Self, plus: usize, word: &str| {
            while w.out.ends_with(' ') {
                w.out.pop();
            }
            w.out.push('\n');
            w.out.extend(std::iter::repeat_n(' ', super::deparse_query::spaces(base + plus)));
            w.word(word)
        };
        // A line that has just begun is the expression's own.
        if !self.queries.is_empty() && self.out.trim_end_matches(' ').ends_with('\n') {
            self.out.truncate(self.out.trim_end_matches(' ').len() - 1);
        }
        line(self, 0, "CASE");
        self.indent += 4;
        if let (true, Some((when, _))) = (simple, branches.first()) {
            self.word(" ");
            if !self.expr(as_written(&side(when, 0))) {
                return false;
            }
        }
        let all = branches.iter().all(|(when, then)| {
            let right = side(when, usize::from(simple));
            let when = if simple { as_written(&right) } else { when };
            line(self, 4, "WHEN ") && self.expr(when) && self.word(" THEN ") && self.result(then)
        });
        let null = Expr::Const(Datum::Null, ty);
        let rest = all && line(self, 4, "ELSE ") && self.result(otherwise.unwrap_or(&null));
        self.indent -= 4;
        rest && line(self, 0, "END")
    }

    fn any_all(&mut self, all: bool, function: &'static Function, left: &Expr, right: &AnyAllSource) -> bool {
        let Some(operator) = functions::operator_of(function, 2) else { return false };
        self.wrapped(|w| {
            w.part(left, Around::Operator(operator, true))
                && w.word(" ")
                && w.word(operator)
                && w.word(if all { " ALL (" } else { " ANY (" })
                && match right {
                    AnyAllSource::Array(array) => w.part(array, Around::Other),
                    AnyAllSource::List(values) => w.in_list(left, values),
                }
                && w.word(")")
        })
    }

    /// The list of IN, which PostgreSQL keeps as an array of the type that the operands have in common.
    fn in_list(&mut self, left: &Expr, values: &[Expr]) -> bool {
        let common = match left {
            Expr::Cast { arg, kind: CastKind::Relabel, .. } => {
                Some(types::user::base_type(arg.ty().oid, -1).0).filter(|&base| base != left.ty().oid)
            }
            _ => None,
        };
        let Some(common) = common else { return self.listed("ARRAY[", values, "]") };
        let relabelled: Vec<Expr> = values
            .iter()
            .map(|value| match value {
                Expr::Cast { arg, kind: CastKind::Relabel, .. } => (**arg).clone(),
                Expr::Const(value, _) => Expr::Const(value.clone(), Ty::of(common)),
                other => other.clone(),
            })
            .collect();
        let (open, close) = if self.pretty { ("", "") } else { ("(", ")") };
        self.word(open)
            && self.listed("ARRAY[", &relabelled, "]")
            && self.word(close)
            && self.word("::")
            && self.word(&type_name(Ty::of(left.ty().oid), self.cx))
            && self.word("[]")
    }
}
