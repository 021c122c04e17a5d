//! Domains: a value of one is a value of the type under it that its conditions hold for.
//!
//! An expression has the type under the domain; what a domain demands is tested where a value becomes one of it: in casts,
//! and for new rows of tables.

use base::{Error, Oid, Result, SqlState};
use engine_api::{DomainDesc, TableDesc, TypeDesc, TypeKind};
use types::{Datum, oid, user};

use rupg_sql::nodes::Node;

use super::dml::{detached, parse_expression, without_position};
use super::scope::{Item, NamedColumn, Place, Scope};
use super::{BindContext, Binder, Located};
use crate::functions;
use crate::ir::{Column, Expr, RelKind, Ty};

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

/// The least depth at which an expression keeps a value for conditions.
fn held_by(expr: &Expr) -> Option<i32> {
    let mut least = None;
    super::visit::walk(expr, 0, &mut |e, _| {
        if let Expr::Call { function, args, .. } = e
            && function.name == "domain hold"
            && let Some(Expr::Const(Datum::Int4(depth), _)) = args.first()
        {
            least = Some(least.map_or(*depth, |l: i32| l.min(*depth)));
        }
    });
    least
}

/// A value as it is evaluated, and as the conditions speak of it: what is volatile is evaluated once.
fn once(value: Expr) -> Result<(Expr, Expr)> {
    if !super::visit::calls_volatile(&value) {
        return Ok((value.clone(), value));
    }
    let ty = value.ty();
    let mut inside = None;
    super::visit::walk(&value, 0, &mut |e, _| inside = inside.max(held_depth(e)));
    let depth = || Expr::Const(Datum::Int4(inside.map_or(0, |d| d + 1)), Ty::of(oid::INT4));
    let about = Expr::Call { function: internal("domain held")?, args: vec![depth()], ty, location: -1 };
    let value = Expr::Call { function: internal("domain hold")?, args: vec![depth(), value], ty, location: -1 };
    Ok((value, about))
}

/// A type's name: with its schema unless the search path finds it without.
fn shown_name(cx: &BindContext<'_>, desc: &TypeDesc) -> String {
    let found = cx.identity.search_path.iter().find_map(|&schema| cx.catalog.type_named(schema, &desc.name));
    let name = types::format_type(desc.oid, -1);
    match cx.catalog.get(desc.schema) {
        Some(schema) if found.is_none_or(|f| f.oid != desc.oid) => {
            format!("{}.{name}", crate::ddl::quote_name(schema.name()))
        }
        _ => name,
    }
}

/// The value, tested when it is evaluated; `None` if the domain demands nothing.
fn tested(value: Expr, ty: Oid, cx: &mut BindContext<'_>) -> Result<Option<Expr>> {
    let domains = chain(cx, ty);
    let Some(outer) = domains.first() else { return Ok(None) };
    let text = |s: &str| Expr::Const(Datum::text(s), Ty::of(oid::TEXT));
    let of = value.ty();
    let (value, about) = once(value)?;
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
    pub(super) fn coerce_to_domain(&mut self, value: Located, ty: Oid) -> Result<Located> {
        let Located { expr, at } = value;
        let tested = tested(expr.clone(), ty, self.cx)?;
        Ok(Located { expr: tested.unwrap_or(expr), at })
    }

    /// The error of a label that no enum has for this statement.
    pub(super) fn unsafe_label(&self, ty: Oid, text: &str) -> Option<Error> {
        let desc = self.cx.catalog.user_type(ty).filter(|d| d.oid == ty)?;
        let TypeKind::Enum(labels) = &desc.kind else { return None };
        let shown = shown_name(self.cx, desc);
        if !labels.iter().any(|l| l.name == text) {
            let message = format!("invalid input value for enum {shown}: \"{text}\"");
            return Some(Error::new(SqlState::INVALID_TEXT_REPRESENTATION, message));
        }
        let message = format!("unsafe use of new value \"{text}\" of enum type {shown}");
        Some(
            Error::new(SqlState::UNSAFE_NEW_ENUM_VALUE_USAGE, message)
                .hint("New enum values must be committed before they can be used."),
        )
    }

    /// The domain that a written expression is of, where that can be told: a cast, a column of a table.
    pub(super) fn domain_shown(&self, node: &Node, expr: &Expr) -> Option<Oid> {
        let found = match (node, expr) {
            (Node::TypeCast(cast), _) => {
                let known = Some((&*self.cx.catalog, &self.cx.identity));
                super::types::resolve(cast.typeName.as_deref()?, self.sql, known).ok()?.oid
            }
            (_, Expr::Column(column)) => {
                let scope = self.scopes.get((self.scopes.len() - 1).checked_sub(column.level)?)?;
                match &scope.rels.get(column.rel)?.kind {
                    RelKind::Table(info) => info.desc.columns.get(column.column)?.type_oid,
                    _ => return None,
                }
            }
            _ => return None,
        };
        user::is_domain(found).then_some(found)
    }
}
