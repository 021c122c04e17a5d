//! Domains: a value of one is a value of the type under it that its conditions hold for.
//!
//! What a domain demands is tested where a value becomes one of it: in casts, and for new rows of tables. An array of a
//! domain is a type of its own, whose elements are tested one by one; its values are held as arrays of what is under the
//! domain (`types::user::plain_type`). The binder keeps these types, and takes them off at its end (`erase`).

use std::rc::Rc;

use base::{Error, Oid, Result, SqlState};
use engine_api::{DomainDesc, Expression, IndexDesc, Reference, TableDesc, TypeDesc, TypeKind};
use sql_functions::{self as functions, CastContext};
use sql_ir::{CastKind, Column, Expr, Ty};
use types::{Datum, oid, user};

use super::dml::{detached, parse_expression, without_position};
use super::scope::{ClauseKind, Item, NamedColumn, Scope};
use super::{BindContext, Binder, Located, fold, simplify};

fn domain_of(desc: &TypeDesc) -> Option<&DomainDesc> {
    match &desc.kind {
        TypeKind::Domain(domain) => Some(domain),
        TypeKind::Enum(_) => None,
    }
}

/// A domain and those under it.
fn chain(cx: &BindContext<'_>, ty: Oid) -> Vec<TypeDesc> {
    let (mut out, mut next) = (Vec::new(), ty);
    while let Some(desc) = cx.catalog.user_type(next).filter(|desc| desc.oid == next)
        && let Some(domain) = domain_of(desc)
    {
        next = domain.base;
        out.push(desc.clone());
    }
    out
}

/// Binds a condition about VALUE.
pub(super) fn condition(expression: &Expression, value: &Expr, cx: &mut BindContext<'_>) -> Result<Expr> {
    detached(expression, None, cx, |text, cx| {
        let node = parse_expression(text).map_err(without_position)?;
        let wrapped = format!("SELECT {text}");
        let mut binder = Binder::noting(cx, &wrapped);
        binder.params_forbidden = true;
        let mut scope = Scope::new(None);
        scope.items.push(Item {
            name: String::new(),
            relation: None,
            rel: None,
            columns: Rc::new([NamedColumn { name: "value".to_string(), expr: value.clone() }]),
            rel_visible: false,
            columns_visible: true,
            lateral_only: false,
            lateral_ok: true,
            notes_reads: false,
            system_rel: None,
            unstarred: 0,
        });
        binder.scopes.push(scope);
        let found = binder.at_place(ClauseKind::Check, |b| b.expr(&node))?;
        let mut expr = binder.coerce_to_boolean(found, "CHECK")?;
        binder.hand_over_notes();
        if !cx.keeps_calls {
            simplify::alone(&mut expr, cx);
        }
        Ok(expr)
    })
}

/// Binds the condition of a domain that is being defined, to see whether it can be.
pub(super) fn check_condition(text: &Expression, domain: &DomainDesc, cx: &mut BindContext<'_>) -> Result<()> {
    condition(text, &Expr::Const(Datum::Null, Ty { oid: domain.base, typmod: domain.typmod }), cx).map(drop)
}

/// The condition of a domain as it is to be shown: the value is parameter 0.
pub(super) fn shown_condition(text: &Expression, domain: &DomainDesc, cx: &mut BindContext<'_>) -> Result<Expr> {
    condition(text, &Expr::Param(0, Ty { oid: domain.base, typmod: domain.typmod }), cx)
}

fn internal(name: &str) -> Result<&'static functions::Function> {
    let function = functions::functions_named(name).first().copied();
    function.ok_or_else(|| Error::internal("no function for domains"))
}

/// Where the conditions find a value that was kept for them.
fn held_depth(expr: &Expr) -> Option<i32> {
    match expr {
        Expr::Call { function, args, .. } if function.name == "domain held" => match args.first() {
            Some(Expr::Const(Datum::Int4(depth), _)) => Some(*depth),
            _ => None,
        },
        _ => None,
    }
}

/// Whether an expression asks for a value that is kept.
pub(super) fn asks_for_held(expr: &Expr) -> bool {
    let mut asks = false;
    super::visit::walk(expr, 0, &mut |e, _| asks |= held_depth(e).is_some());
    asks
}

/// The least depth at which an expression keeps a value for conditions.
pub(super) fn held_by(expr: &Expr) -> Option<i32> {
    let mut least = None;
    super::visit::walk(expr, 0, &mut |e, _| {
        if let Expr::Call { function, args, .. } = e
            && matches!(function.name, "domain hold" | "domain elements")
            && let Some(Expr::Const(Datum::Int4(depth), _)) = args.first()
        {
            least = Some(least.map_or(*depth, |l: i32| l.min(*depth)));
        }
    });
    least
}

/// A depth at which no part of an expression keeps a value.
fn free_depth(value: &Expr) -> Expr {
    let mut inside = None;
    super::visit::walk(value, 0, &mut |e, _| inside = inside.max(held_depth(e)));
    Expr::Const(Datum::Int4(inside.map_or(0, |d| d + 1)), Ty::of(oid::INT4))
}

/// An array, each of whose elements is tested as one of the domain; `None` if the domain demands nothing.
fn elements(array: &Expr, domain: Oid, cx: &mut BindContext<'_>) -> Result<Option<Expr>> {
    let (base, typmod) = user::base_type(domain, -1);
    let (depth, ty) = (free_depth(array), array.ty());
    let element = Expr::Call {
        function: internal("domain held")?,
        args: vec![depth.clone()],
        ty: Ty { oid: base, typmod },
        location: -1,
    };
    let Some(test) = tested(element, domain, cx)? else { return Ok(None) };
    let args = vec![depth, array.clone(), test];
    Ok(Some(Expr::Call { function: internal("domain elements")?, args, ty, location: -1 }))
}

/// As [`tested`], the elements of an array included.
fn all_tested(value: Expr, ty: Oid, cx: &mut BindContext<'_>) -> Result<Option<Expr>> {
    let under = match user::domain_element(user::base_type(ty, -1).0) {
        Some(element) => elements(&value, element, cx)?,
        None => None,
    };
    match tested(under.clone().unwrap_or(value), ty, cx)? {
        Some(tested) => Ok(Some(tested)),
        None => Ok(under),
    }
}

/// Whether values of arrays of a type can be held: those of a domain over arrays cannot.
pub(super) fn check_array_of(ty: Oid) -> Result<()> {
    match user::is_domain(ty) && super::coerce::is_array(user::base_type(ty, -1).0) {
        true => Err(Error::unsupported("arrays of domains over arrays are not supported")),
        false => Ok(()),
    }
}

/// An expression under the name of a type that its values are of already.
fn labelled(cx: &BindContext<'_>, mut expr: Expr, own: Ty, explicit: bool, at: i32) -> Expr {
    match &mut expr {
        Expr::Call { function, ty, .. } if matches!(function.name, "domain value" | "domain elements") => {
            *ty = own;
            match explicit {
                true => Expr::Cast { arg: Box::new(expr), ty: own, kind: CastKind::Relabel, explicit, location: at },
                false => expr,
            }
        }
        _ => fold::cast(cx, expr, own, CastKind::Relabel, explicit, at),
    }
}

/// A cast that stands for no word of the statement: on its way to a domain a value first becomes one of the type under it.
fn unwritten(mut expr: Expr) -> Expr {
    let cast = match &mut expr {
        Expr::Cast { arg, kind: CastKind::Typmod, .. } => arg,
        expr => expr,
    };
    // What it does is the same: it cuts nothing.
    if let Expr::Cast { kind: CastKind::InOut, ty: Ty { typmod: -1, .. }, explicit, .. } = cast {
        *explicit = false;
    }
    expr
}

/// A value that is held as one of a domain, or of the arrays of one, would be, as one of it.
pub(super) fn made(expr: Expr, own: Ty, explicit: bool, cx: &mut BindContext<'_>) -> Result<Expr> {
    let tested = match user::is_domain(own.oid) && expr.ty().oid != user::plain_type(own.oid, -1).0 {
        // What is under a domain, as a cast to it has made it.
        true => tested(expr.clone(), own.oid, cx)?,
        false => all_tested(expr.clone(), own.oid, cx)?,
    };
    Ok(labelled(cx, tested.unwrap_or(expr), own, explicit, -1))
}

/// The value that a test of a domain is about.
pub fn under_domain(expr: &Expr) -> &Expr {
    match expr {
        Expr::Call { function, args, .. } => match (function.name, args.as_slice()) {
            ("domain value", [value, ..]) | ("domain elements" | "domain hold", [_, value, ..]) => under_domain(value),
            _ => expr,
        },
        _ => expr,
    }
}

/// A value as it is evaluated, and as the conditions speak of it: what is volatile is evaluated once.
pub(super) fn once(value: Expr) -> Result<(Expr, Expr)> {
    if !super::visit::calls_volatile(&value) {
        return Ok((value.clone(), value));
    }
    kept(value)
}

/// A value that is kept as it is evaluated, and what asks for it.
fn kept(value: Expr) -> Result<(Expr, Expr)> {
    let ty = value.ty();
    let depth = free_depth(&value);
    let about = Expr::Call { function: internal("domain held")?, args: vec![depth.clone()], ty, location: -1 };
    let value = Expr::Call { function: internal("domain hold")?, args: vec![depth, value], ty, location: -1 };
    Ok((value, about))
}

/// An expression that speaks of a value which is kept for it, whatever becomes of its parts: the value comes first.
pub(super) fn within(value: Expr, expr: Expr) -> Result<Expr> {
    let ty = expr.ty();
    Ok(Expr::Call { function: internal("domain within")?, args: vec![value, expr], ty, location: -1 })
}

/// A type's name: with its schema unless the search path finds it without.
fn shown_name(cx: &BindContext<'_>, desc: &TypeDesc) -> String {
    let path = cx.path_outside.as_ref().unwrap_or(&cx.identity.search_path);
    let name = types::format_type(desc.oid, -1);
    match cx.catalog.get(desc.schema) {
        Some(schema) if !super::types::is_visible(&cx.catalog, path, &desc.name, desc.oid) => {
            format!("{}.{name}", sql_parse::names::quote_name(schema.name()))
        }
        _ => name,
    }
}

/// The value, tested when it is evaluated; `None` if the domain demands nothing.
fn tested(value: Expr, ty: Oid, cx: &mut BindContext<'_>) -> Result<Option<Expr>> {
    if cx.trusts_domains {
        return Ok(None);
    }
    let domains = chain(cx, ty);
    let Some(outer) = domains.first() else { return Ok(None) };
    let text = |s: &str| Expr::Const(Datum::text(s), Ty::of(oid::TEXT));
    let of = value.ty();
    let has_checks = domains.iter().filter_map(domain_of).any(|domain| !domain.checks.is_empty());
    let (value, about) = match value {
        // A condition must not be decided by a constant that it does not know.
        Expr::Const(Datum::Null, _) if has_checks => kept(value)?,
        value => once(value)?,
    };
    let schema = cx.catalog.get(outer.schema).map_or(String::new(), |s| s.name().to_string());
    let not_null = domains.iter().filter_map(domain_of).any(|d| d.not_null);
    let mut args = vec![
        value,
        text(&schema),
        text(&outer.name),
        text(&shown_name(cx, outer)),
        Expr::Const(Datum::Bool(not_null), Ty::of(oid::BOOL)),
    ];
    let fixed = args.len();
    for domain in domains.iter().rev().filter_map(domain_of) {
        let mut checks = domain.checks.clone();
        checks.sort_by(|a, b| a.name.cmp(&b.name));
        for check in checks {
            args.push(text(&check.name));
            args.push(condition(&check.expression, &about, cx)?);
        }
    }
    if !not_null && args.len() == fixed {
        return Ok(None);
    }
    if let Some(depth) = held_depth(&about)
        && args[fixed..].iter().filter_map(held_by).any(|other| other <= depth)
    {
        return Err(Error::unsupported(
            "a condition of a domain that casts a volatile expression to a domain is not supported",
        ));
    }
    Ok(Some(Expr::Call { function: internal("domain value")?, args, ty: of, location: -1 }))
}

/// What the domains of a table's columns demand of a row, over rel 0. Columns whose values are `known` to be of their domains are left
/// out.
pub(super) fn row_checks(desc: &TableDesc, known: &[usize], cx: &mut BindContext<'_>) -> Result<Vec<(String, Expr)>> {
    let tested = column_tests(desc, known, cx)?;
    Ok(tested.into_iter().map(|(column, tested)| (desc.columns[column].name.clone(), passes(tested))).collect())
}

/// What fails says so itself; the row passes whatever the value is.
fn passes(tested: Expr) -> Expr {
    let arg = Box::new(Expr::Row(vec![tested], Ty::of(oid::RECORD)));
    Expr::IsNull { arg, negated: true, fields: false }
}

/// The values of a table's columns of domains over rel 0, each tested when it is evaluated: (attribute number - 1, value). Columns
/// whose values are `known` to be of their domains are left out.
pub(super) fn column_tests(desc: &TableDesc, known: &[usize], cx: &mut BindContext<'_>) -> Result<Vec<(usize, Expr)>> {
    let mut out = Vec::new();
    let made = |ty| user::is_domain(ty) || user::domain_element(ty).is_some();
    for (i, column) in desc.columns.iter().enumerate().filter(|(_, c)| !c.dropped && made(c.type_oid)) {
        if known.contains(&i) {
            continue;
        }
        let (base, typmod) = user::base_type(column.type_oid, column.typmod);
        let value = Expr::Column(Column { level: 0, rel: 0, column: i, ty: Ty { oid: base, typmod } });
        out.extend(all_tested(value, column.type_oid, cx)?.map(|tested| (i, tested)));
    }
    Ok(out)
}

/// What indexes compute of a row over rel 0, where they cast to domains: storage takes these casts for granted, since a key that is
/// there must be found again whatever has become of a domain. A new row (no `may_change`) is always tested, an old one if a
/// column of one of the table's indexes may change.
pub(super) fn index_tests(
    desc: &TableDesc,
    may_change: Option<&dyn Fn(usize) -> bool>,
    cx: &mut BindContext<'_>,
) -> Result<Vec<(String, Expr)>> {
    let casting = |index: &&IndexDesc| casts_to_domains(index);
    let indexes: Vec<IndexDesc> = cx.catalog.indexes(desc.oid).filter(casting).cloned().collect();
    let concerns_none =
        |columns: &dyn Fn(usize) -> bool| !cx.catalog.indexes(desc.oid).any(|index| is_about(index, desc, columns));
    if indexes.is_empty() || may_change.is_some_and(concerns_none) {
        return Ok(Vec::new());
    }
    indexes.into_iter().map(|index| Ok((index.name.clone(), index_test(&index, desc, cx)?))).collect()
}

/// What one index computes of a row over rel 0, tested: true, or the error of what fails.
pub(super) fn index_test(index: &IndexDesc, desc: &TableDesc, cx: &mut BindContext<'_>) -> Result<Expr> {
    let mut parts = Vec::new();
    for part in &index.expressions {
        parts.push(passes(super::dml::index_expression(&part.text, desc, cx)?));
    }
    let predicate = index.predicate.as_ref().map(|text| super::dml::index_predicate(text, desc, cx)).transpose()?;
    Ok(match predicate {
        None => Expr::And(parts),
        Some(predicate) if parts.is_empty() => passes(predicate),
        Some(predicate) => {
            let leaves_out = Expr::BooleanTest { arg: Box::new(predicate), want: Some(true), negated: true };
            Expr::Or(vec![leaves_out, Expr::And(parts)])
        }
    })
}

/// Whether an index computes something with a domain.
pub fn casts_to_domains(index: &IndexDesc) -> bool {
    let texts = index.expressions.iter().map(|part| &part.text).chain(&index.predicate);
    texts.flat_map(Expression::references).any(|reference| match reference {
        Reference::Type(ty) | Reference::ElementOf(ty) => user::is_domain(*ty) || user::domain_element(*ty).is_some(),
        _ => false,
    })
}

/// Whether an index has something to do with one of some columns (attribute number - 1).
fn is_about(index: &IndexDesc, desc: &TableDesc, columns: &dyn Fn(usize) -> bool) -> bool {
    let texts = || index.expressions.iter().map(|part| &part.text).chain(&index.predicate);
    let listed = |number: i16| index.keys.iter().any(|key| key.column == number) || index.include.contains(&number);
    desc.live_columns().any(|column| {
        let number = column.number;
        columns(number as usize - 1) && (listed(number) || texts().any(|text| text.speaks_of_column(number)))
    })
}

/// The default that a column has from its type.
pub(super) fn default_of(ty: Oid, cx: &BindContext<'_>) -> Option<Expression> {
    let chain = chain(cx, ty);
    let mut domains = chain.iter().filter_map(domain_of);
    domains.find(|domain| domain.default.is_some() || domain.default_is_own)?.default.clone()
}

impl Binder<'_, '_> {
    /// A value as one of a domain, or of the arrays of one. The caller knows that it can be done.
    pub(super) fn coerce_to_made(
        &mut self,
        value: Located,
        to: Ty,
        context: CastContext,
        location: i32,
    ) -> Result<Located> {
        let (from, at, own) = (value.expr.ty().oid, value.at, Ty::of(to.oid));
        let explicit = context == CastContext::Explicit;
        if user::base_type(from, -1).0 == to.oid {
            return Ok(Located { expr: labelled(self.cx, value.expr, own, explicit, location), at });
        }
        // The elements of a literal are tested as they are read.
        if let (Expr::Const(Datum::Text(text), _), oid::UNKNOWN, Some(element)) =
            (&value.expr, from, user::domain_element(to.oid))
        {
            let expr = self.literal(text, own, at)?;
            if let Some(test) = elements(&expr, element, self.cx)? {
                let test = super::erase::erased(test);
                sql_ir::expr::evaluate(&test, self.cx.eval).map_err(|e| self.locate(e, at))?;
            }
            return Ok(Located { expr, at });
        }
        let expr = match value.expr {
            Expr::Param(index, _) if from == oid::UNKNOWN => self.decide_param(index, own, at)?,
            expr => {
                let (oid, typmod) = match user::is_domain(to.oid) {
                    true => user::base_type(to.oid, to.typmod),
                    false => user::plain_type(to.oid, to.typmod),
                };
                let value = self.coerce_to(Located { expr, at }, Ty { oid, typmod }, context, location)?;
                let value = value.ok_or_else(|| Error::internal("a value that cannot become one of a domain"))?;
                if from == oid { value.expr } else { unwritten(value.expr) }
            }
        };
        Ok(Located { expr: made(expr, own, explicit, self.cx)?, at })
    }

    /// The error of a label that the enum has not, or not yet, by the name of the type that this statement knows.
    pub(super) fn label_error(&self, ty: Oid, text: &str) -> Option<Error> {
        let desc = self.cx.catalog.user_type(ty).filter(|d| d.oid == ty)?;
        let TypeKind::Enum(labels) = &desc.kind else { return None };
        let shown = shown_name(self.cx, desc);
        if !labels.iter().any(|l| l.name == text) {
            let message = format!("invalid input value for enum {shown}: \"{text}\"");
            return Some(Error::new(SqlState::INVALID_TEXT_REPRESENTATION, message));
        }
        Some(user::unsafe_label(text, &shown))
    }
}
