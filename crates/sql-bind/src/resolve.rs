//! Which overload of an operator or function is meant (`parse_oper.c`, `parse_func.c`).

use base::{Error, Oid, Result, SqlState};
use sql_functions::{self as functions, CastContext, Function, Operator};
use sql_ir::{Expr, Ty};
use types::{array_of, element_of, oid};

use super::coerce::{
    base_of, can_coerce, category, choose_common, is_array, is_binary_coercible, is_polymorphic, is_preferred,
};
use super::{Binder, Located, fold};

/// What candidates are compared by.
pub(super) trait Candidate: Copy {
    /// Declared type of argument `i`.
    fn arg(&self, i: usize) -> Oid;
}

impl Candidate for &'static Operator {
    fn arg(&self, i: usize) -> Oid {
        if i == 0 && self.left.is_valid() { self.left } else { self.right }
    }
}

/// `func_match_argtypes`: the candidates that the arguments can be coerced to.
fn matching<C: Candidate>(candidates: &[C], args: &[Oid]) -> Vec<C> {
    let fits = |c: &&C| {
        let each = args.iter().enumerate().all(|(i, &a)| can_coerce(a, c.arg(i), CastContext::Implicit));
        each && fits_polymorphic(|i| c.arg(i), args)
    };
    candidates.iter().filter(fits).copied().collect()
}

/// `check_generic_type_consistency`: whether the polymorphic arguments can all be what they are.
fn fits_polymorphic(declared: impl Fn(usize) -> Oid, args: &[Oid]) -> bool {
    let mut element: Option<Oid> = None;
    let mut compatible: Vec<(Oid, i32)> = Vec::new();
    for (i, &actual) in args.iter().enumerate() {
        let declared = declared(i);
        if actual == oid::UNKNOWN || !is_polymorphic(declared) {
            continue;
        }
        let same = match declared {
            oid::ANYELEMENT => actual,
            oid::ANYNONARRAY if !is_array(base_of(actual)) => actual,
            oid::ANYENUM if types::user::is_enum(actual) => actual,
            oid::ANYARRAY => match element_of(base_of(actual)) {
                Some(element) => element,
                None => return false,
            },
            oid::ANYCOMPATIBLE => {
                compatible.push((actual, -1));
                continue;
            }
            oid::ANYCOMPATIBLENONARRAY if !is_array(base_of(actual)) => {
                compatible.push((actual, -1));
                continue;
            }
            oid::ANYCOMPATIBLEARRAY if is_array(base_of(actual)) => {
                compatible.push((element_of(base_of(actual)).unwrap_or(actual), -1));
                continue;
            }
            _ => return false,
        };
        if element.is_some_and(|e| e != same) {
            return false;
        }
        element = Some(same);
    }
    // An enum must be known to be one.
    let count = args.len();
    if element.is_none() && (0..count).any(|i| declared(i) == oid::ANYENUM) {
        return false;
    }
    match choose_common(&compatible) {
        Ok(Some(common)) => compatible.iter().all(|c| can_coerce(c.0, common, CastContext::Implicit)),
        Ok(None) => true,
        Err(_) => false,
    }
}

/// Keeps the candidates with the highest score.
fn keep_best<C: Candidate>(candidates: &mut Vec<C>, score: impl Fn(&C) -> usize) {
    let best = candidates.iter().map(&score).max().unwrap_or(0);
    candidates.retain(|c| score(c) == best);
}

/// `func_select_candidate`: the one candidate to prefer, if there is one.
pub(super) fn select<C: Candidate>(candidates: &[C], args: &[Oid]) -> Option<C> {
    let args: Vec<Oid> = args.iter().copied().map(base_of).collect();
    let args = args.as_slice();
    let mut left: Vec<C> = candidates.to_vec();
    let known: Vec<usize> = (0..args.len()).filter(|&i| args[i] != oid::UNKNOWN).collect();
    // Exact matches at known types; nothing is dropped if nobody has any.
    keep_best(&mut left, |c| known.iter().filter(|&&i| c.arg(i) == args[i]).count());
    if left.len() == 1 {
        return left.first().copied();
    }
    // Exact or preferred.
    keep_best(&mut left, |c| {
        let good =
            |&&i: &&usize| c.arg(i) == args[i] || (is_preferred(c.arg(i)) && category(c.arg(i)) == category(args[i]));
        known.iter().filter(good).count()
    });
    if left.len() == 1 {
        return left.first().copied();
    }
    let unknown: Vec<usize> = (0..args.len()).filter(|&i| args[i] == oid::UNKNOWN).collect();
    if unknown.is_empty() {
        return None;
    }
    if let Some(slots) = unknown_categories(&left, &unknown) {
        let fits = |c: &C| {
            unknown.iter().zip(&slots).all(|(&i, &(wanted, preferred))| {
                category(c.arg(i)) == wanted && (!preferred || is_preferred(c.arg(i)))
            })
        };
        let kept: Vec<C> = left.iter().filter(|c| fits(c)).copied().collect();
        if !kept.is_empty() {
            left = kept;
        }
        if left.len() == 1 {
            return left.first().copied();
        }
    }
    // If all known arguments have one type, suppose that the unknown ones have it too.
    let first = args[*known.first()?];
    if known.iter().any(|&i| args[i] != first) {
        return None;
    }
    match matching(&left, &vec![first; args.len()]).as_slice() {
        [one] => Some(*one),
        _ => None,
    }
}

/// For each unknown argument the category to prefer, and whether only its preferred type will do.
fn unknown_categories<C: Candidate>(candidates: &[C], unknown: &[usize]) -> Option<Vec<(char, bool)>> {
    let mut slots = Vec::with_capacity(unknown.len());
    for &i in unknown {
        let mut slot: Option<(char, bool)> = None;
        let mut conflict = false;
        for c in candidates {
            let ty = c.arg(i);
            let this = (category(ty), is_preferred(ty));
            match &mut slot {
                None => slot = Some(this),
                Some(slot) if slot.0 == this.0 => slot.1 |= this.1,
                // Strings win over everything.
                Some(slot) if this.0 == 'S' => *slot = this,
                Some(slot) if slot.0 == 'S' => {}
                Some(_) => conflict = true,
            }
        }
        let slot = slot?;
        if conflict && slot.0 != 'S' {
            return None;
        }
        slots.push(slot);
    }
    Some(slots)
}

/// An operator with arguments of its types.
pub(super) struct ResolvedOperator {
    pub(super) operator: &'static Operator,
    pub(super) function: &'static Function,
    pub(super) args: Vec<Expr>,
    pub(super) ty: Ty,
    pub(super) at: i32,
}

/// `oper`: the binary operator for two types.
pub(super) fn binary_operator(name: &str, left: Oid, right: Oid) -> Result<&'static Operator, Ambiguity> {
    let candidates: Vec<&'static Operator> =
        functions::operators_named(name).iter().copied().filter(|o| o.left.is_valid()).collect();
    // `binary_oper_exact`
    let (mut l, mut r) = (left, right);
    if l == oid::UNKNOWN {
        l = r;
    } else if r == oid::UNKNOWN {
        r = l;
    }
    if let Some(exact) = candidates.iter().find(|o| o.left == l && o.right == r) {
        return Ok(exact);
    }
    // A literal beside a domain is tried as what is under it.
    if left == oid::UNKNOWN || right == oid::UNKNOWN {
        let base = base_of(l);
        if let Some(exact) = candidates.iter().find(|o| o.left == base && o.right == base).filter(|_| base != l) {
            return Ok(exact);
        }
    }
    choose(&candidates, &[left, right])
}

fn prefix_operator(name: &str, right: Oid) -> Result<&'static Operator, Ambiguity> {
    let candidates: Vec<&'static Operator> =
        functions::operators_named(name).iter().copied().filter(|o| !o.left.is_valid()).collect();
    if let Some(exact) = candidates.iter().find(|o| o.right == right) {
        return Ok(exact);
    }
    choose(&candidates, &[right])
}

/// Why there is no one operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ambiguity {
    /// None fits.
    None,
    /// Several fit equally.
    Many,
}

fn choose<C: Candidate>(candidates: &[C], args: &[Oid]) -> Result<C, Ambiguity> {
    let fitting = matching(candidates, args);
    match fitting.as_slice() {
        [] => Err(Ambiguity::None),
        [one] => Ok(*one),
        _ => select(&fitting, args).ok_or(Ambiguity::Many),
    }
}

/// `func_match_argtypes` and `func_select_candidate` together.
pub(super) fn choose_candidate<C: Candidate>(candidates: &[C], args: &[Oid]) -> Result<C, Ambiguity> {
    choose(candidates, args)
}

impl Binder<'_, '_> {
    fn operator_error(&self, why: Ambiguity, name: &str, left: Option<Oid>, right: Oid, location: i32) -> Error {
        let shown = match left {
            Some(left) => format!("{} {name} {}", self.type_name(left), self.type_name(right)),
            None => format!("{name} {}", self.type_name(right)),
        };
        match why {
            Ambiguity::Many => self
                .error(SqlState::AMBIGUOUS_FUNCTION, format!("operator is not unique: {shown}"), location)
                .hint("Could not choose a best candidate operator. You might need to add explicit type casts."),
            Ambiguity::None => {
                let hint = match left {
                    None => {
                        "No operator matches the given name and argument type. You might need to add an explicit type \
                         cast."
                    }
                    Some(_) => {
                        "No operator matches the given name and argument types. You might need to add explicit type \
                         casts."
                    }
                };
                self.error(SqlState::UNDEFINED_FUNCTION, format!("operator does not exist: {shown}"), location)
                    .hint(hint)
            }
        }
    }

    /// The operator for these operands, which it coerces to its types.
    pub(super) fn resolve_operator(
        &mut self,
        name: &str,
        left: Option<Located>,
        right: Located,
        location: i32,
    ) -> Result<ResolvedOperator> {
        let right_type = right.expr.ty().oid;
        let left_type = left.as_ref().map(|l| l.expr.ty().oid);
        let found = match left_type {
            Some(left) => binary_operator(name, left, right_type),
            None => prefix_operator(name, right_type),
        };
        let operator = found.map_err(|why| self.operator_error(why, name, left_type, right_type, location))?;
        let at = left.as_ref().map_or(location, |l| if l.at >= 0 { l.at } else { location });
        let mut declared = Vec::with_capacity(2);
        let mut values = Vec::with_capacity(2);
        if let Some(left) = left {
            declared.push(operator.left);
            values.push(left);
        }
        declared.push(operator.right);
        values.push(right);
        let function = operator_function(operator).ok_or_else(|| {
            let message = format!("operator {} is not supported", shown_operator(operator));
            self.unsupported(message, location)
        })?;
        let (args, ty) = self.coerce_arguments(values, &declared, function.ret, None, name)?;
        Ok(ResolvedOperator { operator, function, args, ty, at })
    }

    /// `make_op`
    pub(super) fn operator(
        &mut self,
        name: &str,
        left: Option<Located>,
        right: Located,
        location: i32,
    ) -> Result<Located> {
        let found = self.resolve_operator(name, left, right, location)?;
        let expr = fold::call(self.cx, found.function, found.args, found.ty, location);
        Ok(Located { expr, at: found.at })
    }

    /// Coerces arguments to declared types, polymorphic ones decided; answers them with the result type.
    pub(super) fn coerce_arguments(
        &mut self,
        values: Vec<Located>,
        declared: &[Oid],
        ret: Oid,
        variadic_element: Option<Oid>,
        name: &str,
    ) -> Result<(Vec<Expr>, Ty)> {
        let declared: Vec<Oid> =
            (0..values.len()).map(|i| declared.get(i).copied().or(variadic_element).unwrap_or(oid::ANY)).collect();
        let actual: Vec<(Oid, i32)> = values.iter().map(|v| (v.expr.ty().oid, v.at)).collect();
        let (decided, ret) = self.decide_polymorphic(&declared, &actual, ret, name)?;
        let mut args = Vec::with_capacity(values.len());
        for (value, to) in values.into_iter().zip(decided) {
            args.push(self.coerce(value, to, CastContext::Implicit, -1)?.expr);
        }
        Ok((args, Ty::of(ret)))
    }

    /// `enforce_generic_type_consistency`
    pub(super) fn decide_polymorphic(
        &self,
        declared: &[Oid],
        actual: &[(Oid, i32)],
        ret: Oid,
        name: &str,
    ) -> Result<(Vec<Oid>, Oid)> {
        let mut decided = declared.to_vec();
        if !declared.iter().copied().any(is_polymorphic) {
            return Ok((decided, ret));
        }
        let element = self.decide_element(declared, actual, name)?;
        let compatible = self.decide_compatible(declared, actual)?;
        let mismatch = |ty: Oid| {
            let message = format!("could not find array type for data type {}", self.type_name(ty));
            Error::new(SqlState::UNDEFINED_OBJECT, message)
        };
        let array = |ty: Oid| array_of(ty).ok_or_else(|| mismatch(ty));
        let decide = |ty: Oid| -> Result<Oid> {
            Ok(match ty {
                oid::ANYELEMENT | oid::ANYNONARRAY | oid::ANYENUM => element.unwrap_or(oid::TEXT),
                oid::ANYARRAY => array(element.unwrap_or(oid::TEXT))?,
                oid::ANYCOMPATIBLE | oid::ANYCOMPATIBLENONARRAY => compatible.unwrap_or(oid::TEXT),
                oid::ANYCOMPATIBLEARRAY => array(compatible.unwrap_or(oid::TEXT))?,
                other => other,
            })
        };
        for (i, ty) in decided.iter_mut().enumerate() {
            if !is_polymorphic(*ty) {
                continue;
            }
            let wanted = decide(*ty)?;
            // Vectors of the catalog pass as arrays of their elements without being made one.
            let passes = *ty == oid::ANYARRAY && actual[i].0 != oid::UNKNOWN;
            *ty = if passes { base_of(actual[i].0) } else { wanted };
        }
        Ok((decided, decide(ret)?))
    }

    /// What `anyelement` stands for.
    fn decide_element(&self, declared: &[Oid], actual: &[(Oid, i32)], name: &str) -> Result<Option<Oid>> {
        let mut element: Option<Oid> = None;
        let mut seen = false;
        for (&ty, &(have, _)) in declared.iter().zip(actual) {
            let this = match ty {
                oid::ANYELEMENT | oid::ANYNONARRAY | oid::ANYENUM => Some(have),
                oid::ANYARRAY => element_of(base_of(have)).or(Some(have)),
                _ => continue,
            };
            seen = true;
            let Some(this) = this.filter(|&t| t != oid::UNKNOWN) else { continue };
            match element {
                None => element = Some(this),
                Some(element) if element == this => {}
                Some(_) => {
                    let kind = if ty == oid::ANYARRAY { "anyarray" } else { "anyelement" };
                    let message = format!("arguments declared \"{kind}\" are not all alike");
                    return Err(Error::new(SqlState::DATATYPE_MISMATCH, message));
                }
            }
        }
        if seen && element.is_none() {
            let _ = name;
            let message = "could not determine polymorphic type because input has type unknown";
            return Err(Error::new(SqlState::DATATYPE_MISMATCH, message));
        }
        Ok(element)
    }

    /// What `anycompatible` stands for: the common type of its arguments.
    fn decide_compatible(&self, declared: &[Oid], actual: &[(Oid, i32)]) -> Result<Option<Oid>> {
        let mut types = Vec::new();
        let mut seen = false;
        for (&ty, &(have, at)) in declared.iter().zip(actual) {
            match ty {
                oid::ANYCOMPATIBLE | oid::ANYCOMPATIBLENONARRAY if have == oid::UNKNOWN => seen = true,
                oid::ANYCOMPATIBLE | oid::ANYCOMPATIBLENONARRAY => types.push((have, at)),
                oid::ANYCOMPATIBLEARRAY if have != oid::UNKNOWN => {
                    types.push((element_of(base_of(have)).unwrap_or(have), at));
                }
                _ => {}
            }
        }
        if types.is_empty() {
            return Ok(seen.then_some(oid::TEXT));
        }
        self.common_type(&types, Some("arguments of anycompatible family"))
    }
}

/// The function behind an operator.
pub(super) fn operator_function(operator: &Operator) -> Option<&'static Function> {
    let both = [operator.left, operator.right];
    let args: &[Oid] = if operator.left.is_valid() { &both } else { &both[1..] };
    functions::function(operator.function, args).or_else(|| {
        functions::functions_named(operator.function)
            .iter()
            .copied()
            .find(|f| f.args.len() == args.len() && f.args.iter().zip(args).all(|(&f, &a)| is_binary_coercible(a, f)))
    })
}

fn shown_operator(operator: &Operator) -> String {
    match operator.left.is_valid() {
        true => {
            format!(
                "{} {} {}",
                types::format_type(operator.left, -1),
                operator.name,
                types::format_type(operator.right, -1)
            )
        }
        false => format!("{} {}", operator.name, types::format_type(operator.right, -1)),
    }
}
