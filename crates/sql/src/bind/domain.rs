//! Domains: a value of one is a value of the type under it that its conditions hold for.
//!
//! An expression has the type under the domain; what a domain demands is tested where a value becomes one of it: in casts,
//! and for new rows of tables.

use base::{Error, Oid, Result, SqlState};
use engine_api::{DomainDesc, TableDesc, TypeDesc, TypeKind};
use types::{Datum, oid, user};

use super::dml::{detached, parse_expression, without_position};
use super::scope::{Item, NamedColumn, Place, Scope};
use super::{BindContext, Binder, Located};
use crate::functions;
use crate::ir::{Column, Expr, Ty};

fn domain_of(desc: &TypeDesc) -> Option<&DomainDesc> {
    match &desc.kind {
        TypeKind::Domain(domain) => Some(domain),
        TypeKind::Enum(_) => None,
    }
}

/// A domain and those under it.
fn chain(cx: &BindContext<'_>, ty: Oid) -> Vec<TypeDesc> {
    let (mut out, mut next) = (Vec::new(), ty);
    while let Some(desc) = cx.catalog.user_type(next)
        && let Some(domain) = domain_of(desc)
    {
        next = domain.base;
        out.push(desc.clone());
    }
    out
}

/// Binds a condition about VALUE.
fn condition(text: &str, value: &Expr, cx: &mut BindContext<'_>) -> Result<Expr> {
    let node = parse_expression(text).map_err(without_position)?;
    detached(cx, |cx| {
        let wrapped = format!("SELECT {text}");
        let mut binder = Binder::new(cx, &wrapped);
        binder.params_forbidden = true;
        let mut scope = Scope::new(None);
        scope.items.push(Item {
            name: String::new(),
            schema: None,
            rel: None,
            columns: vec![NamedColumn { name: "value".to_string(), expr: value.clone() }],
            rel_visible: false,
            columns_visible: true,
            lateral_only: false,
            lateral_ok: true,
        });
        binder.scopes.push(scope);
        let found = binder.at_place(Place::Check, |b| b.expr(&node))?;
        binder.coerce_to_boolean(found, "CHECK")
    })
}

/// Binds the condition of a domain that is being defined, to see whether it can be.
pub(super) fn check_condition(text: &str, domain: &DomainDesc, cx: &mut BindContext<'_>) -> Result<()> {
    let (base, typmod) = user::base_type(domain.base, domain.typmod);
    condition(text, &Expr::Const(Datum::Null, Ty { oid: base, typmod }), cx).map(drop)
}

/// The value, tested when it is evaluated; `None` if the domain demands nothing.
fn tested(value: Expr, ty: Oid, cx: &mut BindContext<'_>) -> Result<Option<Expr>> {
    let domains = chain(cx, ty);
    let Some(outer) = domains.first() else { return Ok(None) };
    let text = |s: &str| Expr::Const(Datum::text(s), Ty::of(oid::TEXT));
    let of = value.ty();
    let schema = cx.catalog.get(outer.schema).map_or(String::new(), |s| s.name().to_string());
    let not_null = domains.iter().filter_map(domain_of).any(|d| d.not_null);
    let mut args =
        vec![value.clone(), text(&schema), text(&outer.name), Expr::Const(Datum::Bool(not_null), Ty::of(oid::BOOL))];
    for domain in domains.iter().rev().filter_map(domain_of) {
        let mut checks = domain.checks.clone();
        checks.sort_by(|a, b| a.name.cmp(&b.name));
        for check in checks {
            args.push(text(&check.name));
            args.push(condition(&check.expression, &value, cx)?);
        }
    }
    if !not_null && args.len() == 4 {
        return Ok(None);
    }
    let function = functions::functions_named("domain value").first().copied();
    let function = function.ok_or_else(|| Error::internal("no function for domains"))?;
    Ok(Some(Expr::Call { function, args, ty: of, location: -1 }))
}

/// What the domains of a table's columns demand of a row, over rel 0.
pub(super) fn row_checks(desc: &TableDesc, cx: &mut BindContext<'_>) -> Result<Vec<(String, Expr)>> {
    let mut out = Vec::new();
    for (i, column) in desc.columns.iter().enumerate().filter(|(_, c)| !c.dropped && user::is_domain(c.type_oid)) {
        let (base, typmod) = user::base_type(column.type_oid, column.typmod);
        let value = Expr::Column(Column { level: 0, rel: 0, column: i, ty: Ty { oid: base, typmod } });
        if let Some(tested) = tested(value, column.type_oid, cx)? {
            // What fails says so itself; the row passes whatever the value is.
            let passes = Expr::Or(vec![
                Expr::IsNull { arg: Box::new(tested), negated: false },
                Expr::Const(Datum::Bool(true), Ty::of(oid::BOOL)),
            ]);
            out.push((column.name.clone(), passes));
        }
    }
    Ok(out)
}

/// The default that a column has from its type.
pub(super) fn default_of(ty: Oid, cx: &BindContext<'_>) -> Option<String> {
    chain(cx, ty).iter().filter_map(domain_of).find_map(|d| d.default.clone())
}

impl Binder<'_, '_> {
    /// A value of the type under a domain as one of the domain.
    pub(super) fn to_domain(&mut self, value: Located, ty: Oid) -> Result<Located> {
        let Located { expr, at } = value;
        let has_checks = chain(self.cx, ty).iter().filter_map(domain_of).any(|d| !d.checks.is_empty());
        if has_checks && super::visit::calls_volatile(&expr) {
            return Err(self.unsupported("a cast of a volatile expression to a domain is not supported", at));
        }
        let tested = tested(expr.clone(), ty, self.cx)?;
        Ok(Located { expr: tested.unwrap_or(expr), at })
    }

    /// The error of a label that no enum has for this statement.
    pub(super) fn unsafe_label(&self, ty: Oid, text: &str) -> Option<Error> {
        let desc = self.cx.catalog.user_type(ty)?;
        let TypeKind::Enum(labels) = &desc.kind else { return None };
        labels.iter().find(|l| l.name == text)?;
        let message = format!("unsafe use of new value \"{text}\" of enum type {}", types::format_type(ty, -1));
        Some(
            Error::new(SqlState::UNSAFE_NEW_ENUM_VALUE_USAGE, message)
                .hint("New enum values must be committed before they can be used."),
        )
    }
}
