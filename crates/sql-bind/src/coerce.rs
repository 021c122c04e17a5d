//! Casts: which exist, and how an expression becomes one of another type (`parse_coerce.c`).

use base::work::{self, Count};
use base::{Error, Oid, Result, SqlState};
use sql_functions::{self as functions, CastContext, CastEntry, Function};
use sql_ir::{CastKind, Expr, Ty};
use types::{Datum, InputContext, element_of, oid, type_info};

use super::{Binder, Located, fold};

/// How a value of one type becomes one of another.
#[derive(Clone, Copy)]
pub(super) enum Pathway {
    /// Nothing happens.
    Relabel,
    /// A cast function.
    Function(&'static CastEntry),
    /// Through the text form.
    InOut,
    /// Element by element.
    Elements,
}

/// Category of a type, for overload resolution.
pub(super) fn category(ty: Oid) -> char {
    type_info(ty).map_or('U', |t| t.category)
}

/// Whether a type is the preferred one of its category.
pub(super) fn is_preferred(ty: Oid) -> bool {
    type_info(ty).is_some_and(|t| t.preferred)
}

/// A true array type; the catalog's vectors are too.
pub(super) fn is_array(ty: Oid) -> bool {
    is_vector(ty) || type_info(ty).is_some_and(|info| info.is_array())
}

fn is_vector(ty: Oid) -> bool {
    matches!(ty, oid::INT2VECTOR | oid::OIDVECTOR)
}

/// The polymorphic pseudo-types.
pub(super) fn is_polymorphic(ty: Oid) -> bool {
    matches!(
        ty,
        oid::ANYELEMENT
            | oid::ANYARRAY
            | oid::ANYNONARRAY
            | oid::ANYENUM
            | oid::ANYRANGE
            | oid::ANYCOMPATIBLE
            | oid::ANYCOMPATIBLEARRAY
            | oid::ANYCOMPATIBLENONARRAY
    )
}

/// What is under a domain (`getBaseType`).
pub(super) fn base_of(ty: Oid) -> Oid {
    types::user::base_type(ty, -1).0
}

/// `IsBinaryCoercible`
pub(super) fn is_binary_coercible(from: Oid, to: Oid) -> bool {
    let from = base_of(from);
    if from == to || matches!(to, oid::ANY | oid::ANYELEMENT | oid::ANYCOMPATIBLE) {
        return true;
    }
    if matches!(to, oid::ANYARRAY | oid::ANYCOMPATIBLEARRAY) {
        return is_array(from);
    }
    if to == oid::ANYENUM {
        return types::user::is_enum(from);
    }
    if matches!(to, oid::ANYNONARRAY | oid::ANYCOMPATIBLENONARRAY) {
        return !is_array(from);
    }
    functions::cast(from, to).is_some_and(|c| c.function.is_none() && c.context == CastContext::Implicit)
}

/// The function of the cast from one type to another, if it has one.
pub(super) fn cast_between(from: Oid, to: Oid) -> Option<Option<&'static Function>> {
    match pathway(from, to, CastContext::Explicit)? {
        Pathway::Relabel => Some(None),
        Pathway::Function(entry) => cast_function(entry).map(Some),
        Pathway::Elements | Pathway::InOut => None,
    }
}

/// `find_coercion_pathway`
pub(super) fn pathway(from: Oid, to: Oid, context: CastContext) -> Option<Pathway> {
    let (from, to) = (base_of(from), base_of(to));
    if from == to {
        return Some(Pathway::Relabel);
    }
    if let Some(entry) = functions::cast(from, to) {
        return (entry.context <= context).then_some(if entry.function.is_some() {
            Pathway::Function(entry)
        } else {
            Pathway::Relabel
        });
    }
    let arrays = is_array(from) && is_array(to) && !is_vector(to);
    if let (true, Some(from), Some(to)) = (arrays, element_of(from), element_of(to)) {
        return pathway(from, to, context).map(|p| match p {
            // Values of these arrays say of what they are: that is how their elements are shown.
            Pathway::Relabel if !functions::is_name_in_catalog(from) && !functions::is_name_in_catalog(to) => {
                Pathway::Relabel
            }
            _ => Pathway::Elements,
        });
    }
    // Every type converts to and from strings through its text form.
    let is_pseudo = |ty| category(ty) == 'P' && ty != oid::RECORD;
    if is_pseudo(from) && from != oid::RECORD_ARRAY || is_pseudo(to) {
        return None;
    }
    if context >= CastContext::Assignment && category(to) == 'S' {
        return Some(Pathway::InOut);
    }
    if context >= CastContext::Explicit && category(from) == 'S' {
        return Some(Pathway::InOut);
    }
    None
}

/// Whether one type can become another (`can_coerce_type` of one argument).
pub(super) fn can_coerce(from: Oid, to: Oid, context: CastContext) -> bool {
    if from == to || to == oid::ANY || is_polymorphic(to) || from == oid::UNKNOWN {
        return true;
    }
    if from == oid::RECORD_ARRAY && to == oid::RECORD_ARRAY {
        return true;
    }
    pathway(from, to, context).is_some()
}

/// The function of a cast entry.
fn cast_function(entry: &CastEntry) -> Option<&'static Function> {
    let named = functions::functions_named(entry.function?);
    let exact = |f: &&&Function| f.args.first() == Some(&entry.source);
    let close = |f: &&&Function| f.args.first().is_some_and(|&a| is_binary_coercible(entry.source, a));
    let returns = |f: &&&Function| f.ret == entry.target;
    named
        .iter()
        .filter(returns)
        .find(exact)
        .or_else(|| named.iter().find(exact))
        .or_else(|| named.iter().filter(returns).find(close))
        .or_else(|| named.iter().find(close))
        .copied()
}

/// The common type of types, or the two that do not go together and where.
pub(super) fn choose_common(values: &[(Oid, i32)]) -> Result<Option<Oid>, (Oid, Oid, i32)> {
    let Some(&(first, _)) = values.first() else { return Ok(None) };
    if first != oid::UNKNOWN && values.iter().all(|v| v.0 == first) {
        return Ok(Some(first));
    }
    let mut chosen = base_of(first);
    for &(ty, at) in &values[1..] {
        let ty = base_of(ty);
        if ty == oid::UNKNOWN || ty == chosen {
            continue;
        }
        if chosen == oid::UNKNOWN {
            chosen = ty;
        } else if category(chosen) != category(ty) {
            return Err((chosen, ty, at));
        } else if !is_preferred(chosen)
            && can_coerce(chosen, ty, CastContext::Implicit)
            && !can_coerce(ty, chosen, CastContext::Implicit)
        {
            chosen = ty;
        }
    }
    Ok(Some(if chosen == oid::UNKNOWN { oid::TEXT } else { chosen }))
}

/// Whether a type has a function that applies its modifier.
fn has_modifier(ty: Oid) -> bool {
    let ty = if is_array(ty) { element_of(ty).unwrap_or(ty) } else { ty };
    matches!(
        ty,
        oid::VARCHAR
            | oid::BPCHAR
            | oid::BIT
            | oid::VARBIT
            | oid::NUMERIC
            | oid::TIME
            | oid::TIMETZ
            | oid::TIMESTAMP
            | oid::TIMESTAMPTZ
            | oid::INTERVAL
    )
}

/// The modifier that all of some expressions of one type have.
pub(super) fn common_typmod<'e>(mut exprs: impl Iterator<Item = &'e Expr>, ty: Oid) -> i32 {
    let Some(first) = exprs.next().map(Expr::ty).filter(|t| t.oid == ty) else { return -1 };
    match exprs.counted(4).map(Expr::ty).all(|t| t == first) {
        true => first.typmod,
        false => -1,
    }
}

/// A date or time word whose value depends on when it is read.
fn depends_on_clock(ty: Oid, text: &str) -> bool {
    let base = if is_array(ty) { element_of(ty).unwrap_or(ty) } else { ty };
    if !matches!(base, oid::DATE | oid::TIME | oid::TIMETZ | oid::TIMESTAMP | oid::TIMESTAMPTZ) {
        return false;
    }
    let words = text.split(|c: char| !(c.is_alphanumeric() || matches!(c, '/' | '_')));
    let clock = ["now", "today", "tomorrow", "yesterday"];
    words.into_iter().any(|word| clock.iter().any(|c| word.eq_ignore_ascii_case(c)))
}

impl Binder<'_, '_> {
    /// The value of an untyped literal as one of type `ty`.
    pub(super) fn literal(&mut self, text: &str, ty: Ty, at: i32) -> Result<Expr> {
        let value = self.literal_value(text, ty, at)?;
        self.note_literal(at, &value);
        Ok(value)
    }

    fn literal_value(&mut self, text: &str, ty: Ty, at: i32) -> Result<Expr> {
        if depends_on_clock(ty.oid, text) {
            let arg = Box::new(Expr::Const(Datum::text(text), Ty::of(oid::TEXT)));
            return Ok(Expr::Cast { arg, ty, kind: CastKind::InOut, explicit: false, location: at });
        }
        if let Some(value) = self.catalog_literal(ty.oid, text, at)? {
            return Ok(Expr::Const(value, ty));
        }
        if ty.oid == oid::JSONPATH {
            functions::check_jsonpath(text).map_err(|e| self.locate(e, at))?;
        }
        let now_micros = self.cx.eval.transaction_timestamp();
        let input = InputContext { settings: self.cx.eval.settings(), now_micros };
        let value = types::parse_text(ty.oid, ty.typmod, text, &input);
        let value = value.map_err(|e| self.locate(self.label_error(ty.oid, text).unwrap_or(e), at))?;
        Ok(Expr::Const(value, ty))
    }

    /// `coerce_type`: the caller knows that it can be done.
    pub(super) fn coerce(&mut self, value: Located, to: Oid, context: CastContext, location: i32) -> Result<Located> {
        self.coerce_with(value, Ty::of(to), context, location)
    }

    /// As [`Binder::coerce`]; the modifier matters to the input of intervals, and to functions that make values of a given length.
    fn coerce_with(&mut self, value: Located, to: Ty, context: CastContext, location: i32) -> Result<Located> {
        work::beat(32);
        let Located { expr, at } = value;
        let from = expr.ty().oid;
        if from == to.oid || to.oid == oid::ANY || is_polymorphic(to.oid) {
            return Ok(Located { expr, at });
        }
        if types::user::plain_type(to.oid, -1).0 != to.oid {
            return self.coerce_to_made(Located { expr, at }, to, context, location);
        }
        let target = if to.oid == oid::INTERVAL { to } else { Ty::of(to.oid) };
        let expr = match expr {
            Expr::Const(Datum::Null, _) if from == oid::UNKNOWN => Expr::Const(Datum::Null, Ty::of(to.oid)),
            Expr::Const(Datum::Text(text), _) if from == oid::UNKNOWN => self.literal(&text, target, at)?,
            Expr::Param(index, _) if from == oid::UNKNOWN => self.decide_param(index, Ty::of(to.oid), at)?,
            expr => self.convert(expr, from, to, context, at, location)?,
        };
        Ok(Located { expr, at })
    }

    /// Converts an expression of a known type.
    fn convert(
        &mut self,
        expr: Expr,
        from: Oid,
        target: Ty,
        context: CastContext,
        at: i32,
        location: i32,
    ) -> Result<Expr> {
        let to = target.oid;
        let explicit = context == CastContext::Explicit;
        let from = base_of(from);
        let path = match from {
            oid::UNKNOWN => Some(if category(to) == 'S' { Pathway::Relabel } else { Pathway::InOut }),
            _ => pathway(from, to, context),
        };
        let at = if location >= 0 { location } else { at };
        match path {
            Some(Pathway::Relabel) => Ok(fold::cast(self.cx, expr, Ty::of(to), CastKind::Relabel, explicit, at)),
            Some(Pathway::Elements) => {
                let elements = element_of(base_of(from)).map(base_of).zip(element_of(to));
                let function = match elements {
                    Some((from, to)) if super::regtypes::is_catalog_type(to) && category(from) == 'S' => {
                        sql_functions::input_of_names(to)
                    }
                    elements => match elements.and_then(|(from, to)| functions::cast(from, to)) {
                        Some(entry) if entry.function.is_some() => cast_function(entry),
                        _ => None,
                    },
                };
                Ok(fold::cast(self.cx, expr, Ty::of(to), CastKind::ArrayElements(function), explicit, at))
            }
            Some(Pathway::InOut) => {
                if super::regtypes::is_catalog_type(from)
                    && let Some(function) = functions::function("regout", &[from])
                {
                    let call = fold::call(self.cx, function, vec![expr], Ty::of(oid::TEXT), at);
                    return Ok(match to {
                        oid::TEXT => call,
                        _ => fold::cast(self.cx, call, Ty::of(to), CastKind::Relabel, explicit, at),
                    });
                }
                if super::regtypes::is_catalog_type(to) {
                    // What is not there is not there when the value is asked for.
                    if let Expr::Const(Datum::Text(text), _) = &expr
                        && let Ok(found) = self.literal(&text.clone(), Ty::of(to), at)
                    {
                        return Ok(found);
                    }
                    return self.named_at_run_time(expr, to, explicit, at);
                }
                Ok(fold::cast(self.cx, expr, Ty::of(to), CastKind::InOut, explicit, at))
            }
            Some(Pathway::Function(entry)) => self.cast_call(expr, entry, target.typmod, explicit, at),
            None => Err(Error::internal(format!(
                "failed to find conversion function from {} to {}",
                self.type_name(from),
                self.type_name(to)
            ))),
        }
    }

    /// A value that names an object of the catalog, which is looked for when the statement runs.
    fn named_at_run_time(&mut self, expr: Expr, to: Oid, explicit: bool, at: i32) -> Result<Expr> {
        let text = match expr.ty().oid {
            oid::TEXT => expr,
            _ => fold::cast(self.cx, expr, Ty::of(oid::TEXT), CastKind::InOut, explicit, at),
        };
        let function = sql_functions::input_of_names(to)
            .ok_or_else(|| Error::internal(format!("type {} has no input", self.type_name(to))))?;
        Ok(fold::call(self.cx, function, vec![text], Ty::of(to), at))
    }

    fn cast_call(
        &mut self,
        expr: Expr,
        entry: &'static CastEntry,
        typmod: i32,
        explicit: bool,
        at: i32,
    ) -> Result<Expr> {
        let to = entry.target;
        // text → regclass is a cast function in the catalog; the catalog is looked at here.
        if super::regtypes::is_catalog_type(to) && category(entry.source) == 'S' {
            // A stored expression says by its type whether it means a relation or whatever has a name when it is evaluated.
            if let Expr::Const(Datum::Text(text), _) = &expr
                && !(self.cx.in_stored > 0 && to == oid::REGCLASS)
                && let Ok(found) = self.literal(&text.clone(), Ty::of(to), at)
            {
                return Ok(found);
            }
            if to != oid::REGCLASS {
                return self.named_at_run_time(expr, to, explicit, at);
            }
        }
        let Some(function) = cast_function(entry) else {
            let message =
                format!("the cast from {} to {} is not supported", self.type_name(entry.source), self.type_name(to));
            return Err(self.unsupported(message, at));
        };
        let mut args = Vec::with_capacity(function.args.len());
        let first = function.args[0];
        args.push(match expr.ty().oid == first {
            true => expr,
            false => fold::cast(self.cx, expr, Ty::of(first), CastKind::Relabel, false, at),
        });
        if function.args.len() > 1 {
            args.push(Expr::Const(Datum::Int4(typmod), Ty::of(oid::INT4)));
        }
        if function.args.len() > 2 {
            args.push(Expr::Const(Datum::Bool(explicit), Ty::of(oid::BOOL)));
        }
        // A function that is given the modifier applies it.
        let typmod = if function.args.len() > 1 { typmod } else { -1 };
        // An implicit cast has no position in the statement.
        let place = if explicit { at } else { -1 };
        let result = fold::call(self.cx, function, args, Ty { oid: function.ret, typmod }, place);
        Ok(match function.ret == to {
            true => result,
            false => fold::cast(self.cx, result, Ty::of(to), CastKind::Relabel, explicit, at),
        })
    }

    /// `coerce_to_target_type`: `None` if there is no such cast.
    pub(super) fn coerce_to(
        &mut self,
        value: Located,
        to: Ty,
        context: CastContext,
        location: i32,
    ) -> Result<Option<Located>> {
        let from = value.expr.ty().oid;
        if !can_coerce(from, to.oid, context) || (is_polymorphic(to.oid) && from != to.oid) {
            return Ok(None);
        }
        let value = self.coerce_with(value, to, context, location)?;
        let Located { expr, at } = value;
        let expr =
            self.apply_modifier(expr, to, context == CastContext::Explicit, if location >= 0 { location } else { at });
        Ok(Some(Located { expr, at }))
    }

    /// `coerce_type_typmod`
    fn apply_modifier(&mut self, expr: Expr, to: Ty, explicit: bool, at: i32) -> Expr {
        if types::user::plain_type(to.oid, -1).0 != to.oid {
            return expr;
        }
        if explicit && to.typmod < 0 && expr.ty().typmod >= 0 && expr.ty().oid == to.oid && has_modifier(to.oid) {
            return fold::cast(self.cx, expr, to, CastKind::Relabel, explicit, at);
        }
        if to.typmod < 0 || expr.ty().typmod == to.typmod && expr.ty().oid == to.oid && !is_literal(&expr) {
            return expr;
        }
        if !has_modifier(to.oid) {
            return expr;
        }
        fold::cast(self.cx, expr, to, CastKind::Typmod, explicit, at)
    }

    /// Coerces to boolean, or says what WHERE and the like say.
    pub(super) fn coerce_to_boolean(&mut self, value: Located, construct: &str) -> Result<Expr> {
        let from = value.expr.ty().oid;
        let at = value.at;
        match self.coerce_to(value, Ty::of(oid::BOOL), CastContext::Assignment, -1)? {
            Some(value) => Ok(value.expr),
            None => {
                let message =
                    format!("argument of {construct} must be type boolean, not type {}", self.type_name(from));
                Err(self.error(SqlState::DATATYPE_MISMATCH, message, at))
            }
        }
    }

    /// `select_common_type`: the type that CASE, UNION and the like bring their parts to.
    ///
    /// Without a `context` an impossible choice is `None`, with it 42804.
    pub(super) fn common_type(&self, values: &[(Oid, i32)], context: Option<&str>) -> Result<Option<Oid>> {
        match (choose_common(values), context) {
            (Ok(chosen), _) => Ok(chosen),
            (Err(_), None) => Ok(None),
            (Err((left, right, at)), Some(context)) => {
                let (left, right) = (self.type_name(left), self.type_name(right));
                let message = format!("{context} types {left} and {right} cannot be matched");
                Err(self.error(SqlState::DATATYPE_MISMATCH, message, at))
            }
        }
    }

    /// The common type of expressions.
    pub(super) fn common_type_of(&self, values: &[Located], context: &str) -> Result<Oid> {
        let types: Vec<(Oid, i32)> = values.iter().counted(4).map(|v| (v.expr.ty().oid, v.at)).collect();
        Ok(self.common_type(&types, Some(context))?.unwrap_or(oid::TEXT))
    }

    /// `coerce_to_common_type`
    pub(super) fn coerce_to_common(&mut self, value: Located, to: Oid, context: &str) -> Result<Located> {
        work::beat(8);
        let from = value.expr.ty().oid;
        if from == to {
            return Ok(value);
        }
        if can_coerce(from, to, CastContext::Implicit) {
            return self.coerce(value, to, CastContext::Implicit, -1);
        }
        let message = format!("{context} could not convert type {} to {}", self.type_name(from), self.type_name(to));
        Err(self.error(SqlState::CANNOT_COERCE, message, value.at))
    }

    /// Unknown literals become text where nothing else decides.
    pub(super) fn resolve_unknown(&mut self, value: Located) -> Result<Located> {
        match value.expr.ty().oid {
            oid::UNKNOWN => self.coerce(value, oid::TEXT, CastContext::Implicit, -1),
            _ => Ok(value),
        }
    }
}

/// A constant carries the modifier of its input form, which was not applied yet.
fn is_literal(expr: &Expr) -> bool {
    matches!(expr, Expr::Const(..))
}
