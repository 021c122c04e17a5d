//! Folding of constants: immutable calls over constants become their value.
//!
//! Invariant: what would raise an error stays a call, so that it raises it where it is evaluated; that there is one is noted, for
//! `raise` to look whether the statement fails for it as a whole.

use base::{Error, Result};
use sql_functions::{self as functions, Function};
use sql_ir::{AnyAllSource, CastKind, Expr, Ty};
use types::{Datum, InputContext, OutputSettings, oid};

use super::BindContext;

/// Bytes of the largest value that becomes part of a plan: plans are kept, and are taken to be as large as their texts.
const FOLDED_MAX: usize = 4 << 10;

/// A call, or its value if that is known.
pub(super) fn call(cx: &BindContext<'_>, function: &'static Function, args: Vec<Expr>, ty: Ty, location: i32) -> Expr {
    if let (true, Some(Expr::Const(Datum::Oid(sequence), _))) = (function.draws, args.first()) {
        cx.drawn.borrow_mut().push(base::Oid(*sequence));
    }
    let args = if function.spells { spelled(args) } else { args };
    if !cx.keeps_calls
        && let Some(value) = value_of_call(cx, function, &args)
        && let Some(value) = settled(cx, value)
    {
        return Expr::Const(value, ty);
    }
    if function.strict && args.iter().any(|arg| matches!(arg, Expr::Const(Datum::Null, _))) {
        // It is NULL, but its other arguments may be constants that cannot be computed.
        cx.has_decided_condition.set(true);
    }
    Expr::Call { function, args, ty, location }
}

/// Values that are shown as names of the catalog by these names.
fn spelled(args: Vec<Expr>) -> Vec<Expr> {
    let by_name = |arg: Expr| match functions::function("regout", &[arg.ty().oid]) {
        Some(function) => Expr::Call { function, args: vec![arg], ty: Ty::of(oid::TEXT), location: -1 },
        None => arg,
    };
    args.into_iter().map(by_name).collect()
}

/// The value of an immutable call over constants.
fn value_of_call(cx: &BindContext<'_>, function: &'static Function, args: &[Expr]) -> Option<Result<Datum>> {
    if !function.strict || !super::immutable::is_immutable_call(function, args) {
        return None;
    }
    let values: Option<Vec<Datum>> = args
        .iter()
        .map(|arg| match arg {
            Expr::Const(value, _) => Some(value.clone()),
            _ => None,
        })
        .collect();
    let values = values?;
    if values.iter().any(Datum::is_null) {
        return Some(Ok(Datum::Null));
    }
    Some(sql_functions::call(function, cx.eval, &values))
}

/// A comparison with any or all of a list, or its value if that is known.
pub(super) fn any_all(
    cx: &BindContext<'_>,
    all: bool,
    function: &'static Function,
    left: Expr,
    list: Vec<Expr>,
) -> Expr {
    if !cx.keeps_calls
        && matches!(left, Expr::Const(..))
        && let Some(value) = value_of_any_all(cx, all, function, &left, &list)
    {
        return Expr::Const(value, Ty::of(oid::BOOL));
    }
    Expr::AnyAll { all, function, left: Box::new(left), right: AnyAllSource::List(list) }
}

/// The value of a comparison of a constant with a list of constants. Nothing where one fails: it fails when it is run.
fn value_of_any_all(
    cx: &BindContext<'_>,
    all: bool,
    function: &'static Function,
    left: &Expr,
    list: &[Expr],
) -> Option<Datum> {
    let mut any_null = false;
    for item in list {
        match value_of_call(cx, function, &[left.clone(), item.clone()])?.ok()? {
            Datum::Bool(value) if value != all => return Some(Datum::Bool(value)),
            Datum::Bool(_) => {}
            _ => any_null = true,
        }
    }
    Some(if any_null { Datum::Null } else { Datum::Bool(all) })
}

/// A value that can be part of a plan; that there is an error instead is noted.
fn settled(cx: &BindContext<'_>, value: Result<Datum>) -> Option<Datum> {
    cx.failed.set(cx.failed.get() || value.is_err());
    value.ok().filter(|value| functions::weight(value) <= FOLDED_MAX)
}

/// A cast, or its value if that is known.
pub(super) fn cast(cx: &BindContext<'_>, arg: Expr, ty: Ty, kind: CastKind, explicit: bool, location: i32) -> Expr {
    if let Expr::Const(value, from) = &arg
        && (!cx.keeps_calls || from.oid == oid::UNKNOWN)
        && let Some(value) = value_of_cast(value, from.oid, ty, kind, explicit)
        && let Some(value) = settled(cx, value)
    {
        return Expr::Const(value, ty);
    }
    Expr::Cast { arg: Box::new(arg), ty, kind, explicit, location }
}

/// The value of a cast of a constant, if it depends on nothing else.
fn value_of_cast(value: &Datum, from: base::Oid, ty: Ty, kind: CastKind, explicit: bool) -> Option<Result<Datum>> {
    if value.is_null() {
        return Some(Ok(Datum::Null));
    }
    match (kind, value) {
        (CastKind::Relabel | CastKind::Collate(_) | CastKind::Called, _) => {
            Some(Ok(types::relabelled(value.clone(), ty.oid)))
        }
        (CastKind::Typmod, _) => Some(types::apply_typmod(value.clone(), ty.oid, ty.typmod, explicit)),
        (CastKind::InOut, value) => {
            let settings = OutputSettings::default();
            let input = InputContext { settings: &settings, now_micros: 0 };
            let read = |text: &str| types::parse_text(ty.oid, ty.typmod, text, &input);
            match value {
                Datum::Text(text) if from == oid::TEXT && is_read_alike(ty.oid) => Some(read(text)),
                value if is_read_alike(from) && !is_float(from) && is_text(ty.oid) => {
                    let mut bytes = Vec::new();
                    let result = types::write_text(value.as_ref(), from, &settings, &mut bytes);
                    Some(result.and_then(|()| read(&types::written(bytes))))
                }
                _ => None,
            }
        }
        (CastKind::ArrayElements(_), _) => None,
    }
}

fn is_float(ty: base::Oid) -> bool {
    [oid::FLOAT4, oid::FLOAT8].contains(&ty)
}

fn is_text(ty: base::Oid) -> bool {
    [oid::TEXT, oid::VARCHAR, oid::BPCHAR].contains(&ty)
}

/// Whether the input function of a type depends on no setting. The output of float4 and float8 depends on extra_float_digits.
fn is_read_alike(ty: base::Oid) -> bool {
    [
        oid::INT2,
        oid::INT4,
        oid::INT8,
        oid::FLOAT4,
        oid::FLOAT8,
        oid::NUMERIC,
        oid::BOOL,
        oid::UUID,
        oid::INET,
        oid::CIDR,
        oid::MACADDR,
        oid::MACADDR8,
        oid::BIT,
        oid::VARBIT,
    ]
    .contains(&ty)
}

/// The value of a call or cast whose arguments have become constants since it was bound. What fails stays as it is, and is noted.
pub(super) fn known(cx: &BindContext<'_>, expr: &Expr) -> Option<Expr> {
    let (value, ty) = match expr {
        Expr::Call { function, args, ty, .. } => (value_of_call(cx, function, args)?, *ty),
        Expr::Cast { arg, ty, kind, explicit, .. } => match &**arg {
            Expr::Const(value, from) => (value_of_cast(value, from.oid, *ty, *kind, *explicit)?, *ty),
            _ => return None,
        },
        _ => return None,
    };
    settled(cx, value).map(|value| Expr::Const(value, ty))
}

/// The value of what is no call and composes or compares constants alone.
pub(super) fn composed(cx: &BindContext<'_>, expr: &Expr) -> Option<Expr> {
    let composes = matches!(
        expr,
        Expr::NullIf { .. }
            | Expr::MinMax { .. }
            | Expr::Distinct { .. }
            | Expr::Array { .. }
            | Expr::Subscript { .. }
            | Expr::RowCompare { .. }
    );
    let mut is_constant = composes;
    if composes {
        let is_value = |part: &Expr| matches!(part, Expr::Const(..));
        super::visit::children(expr, &mut |part| is_constant = is_constant && is_value(part), &mut |_| {});
    }
    is_constant
        .then(|| sql_ir::expr::evaluate(expr, cx.eval))
        .and_then(|value| settled(cx, value))
        .map(|value| Expr::Const(value, expr.ty()))
}

/// The error of what was to be folded and could not be.
pub(super) fn error(cx: &BindContext<'_>, expr: &Expr) -> Option<Error> {
    let value = match expr {
        Expr::Call { function, args, .. } => value_of_call(cx, function, args),
        Expr::Cast { arg, ty, kind, explicit, .. } => match &**arg {
            Expr::Const(value, from) => value_of_cast(value, from.oid, *ty, *kind, *explicit),
            _ => None,
        },
        _ => None,
    };
    value.and_then(Result::err)
}
