//! Evaluation of [`Code`].

use std::borrow::Cow;
use std::cell::Cell;
use std::sync::Arc;

use base::work::{self, Count};
use base::{Error, Oid, Result, SqlState, watch};
use engine_api::Txn;
use rustc_hash::FxHashMap;
use smallvec::{SmallVec, smallvec};
use sql_functions::{self as functions, EvalContext, Function, test_texts};
use types::room::{self, Room as _};
use types::{Array, Datum, DatumRef, InputContext, Record, oid};

use super::{ArithmeticOp, Code, Comparison, Constants, How, IntWidth, RowPair, SubqueryUse};
use crate::{CastKind, CompareOp};

/// What evaluation may ask of its surroundings.
pub trait Env {
    /// Settings, times, sequences.
    fn eval(&self) -> &dyn EvalContext;
    /// The value of a subquery for the row in `registers`; `left` are the values of its left side.
    fn subquery(&mut self, index: usize, kind: &SubqueryUse, left: &[Datum], registers: &[Datum]) -> Result<Datum>;
    /// Where lists are kept that are the same for all rows; `None` where there is one row only.
    fn lists(&mut self) -> Option<&mut Lists> {
        None
    }
    /// The transaction.
    fn transaction(&mut self) -> Result<&mut dyn Txn> {
        Err(Error::unsupported("numbers of transactions cannot be used here"))
    }
}

/// The lists of an execution's expressions, sorted, by where the expression is: one that cannot be sorted is `None`.
#[derive(Debug, Default)]
pub struct Lists(FxHashMap<usize, Option<Constants>>);

impl Lists {
    /// Forgets them: the parameters are others now.
    pub fn clear(&mut self) {
        if !self.0.is_empty() {
            self.0.clear();
        }
    }
}

/// Whether a value is in the list of an expression, which is sorted when it is first asked for; `None` if that cannot be told so.
fn in_list<E: Env>(
    expression: usize,
    left: &Datum,
    env: &mut E,
    sort: impl FnOnce(&mut E) -> Result<Option<Constants>>,
) -> Result<Option<Option<bool>>> {
    let Some(lists) = env.lists() else { return Ok(None) };
    if !lists.0.contains_key(&expression) {
        let sorted = sort(env)?;
        if let Some(lists) = env.lists() {
            lists.0.insert(expression, sorted);
        }
    }
    work::step(32)?;
    Ok(env.lists().and_then(|lists| lists.0.get(&expression)?.as_ref()).map(|list| list.has(left)))
}

/// Surroundings without subqueries.
pub struct Plain<'a>(pub &'a dyn EvalContext);

impl Env for Plain<'_> {
    fn eval(&self) -> &dyn EvalContext {
        self.0
    }

    fn subquery(&mut self, _: usize, _: &SubqueryUse, _: &[Datum], _: &[Datum]) -> Result<Datum> {
        Err(Error::unsupported("cannot use subquery here"))
    }
}

/// Conditions that are tested between two counts: fewer are counted by the row.
const FEW: usize = 32;

/// Counts the conditions of a row, if they are many.
///
/// # Errors
/// Why the statement should stop.
#[inline]
pub fn count_conditions(conditions: &[Code]) -> Result<()> {
    if conditions.len() > FEW { work::step(2 * conditions.len()) } else { Ok(()) }
}

/// Whether all conditions are true (not false and not NULL).
pub fn all_true<E: Env>(conditions: &[Code], env: &mut E, registers: &[Datum]) -> Result<bool> {
    count_conditions(conditions)?;
    for condition in conditions {
        if condition.truth(env, registers)? != Some(true) {
            return Ok(false);
        }
    }
    Ok(true)
}

impl Comparison {
    /// Whether [`Comparison::test_stored`] may be asked.
    pub fn takes_stored(&self) -> bool {
        !matches!(self.how, How::Function(_))
    }

    /// Tests a value where it lies; `None` if one is NULL. REQUIRES [`Comparison::takes_stored`].
    #[inline]
    pub fn test_stored(&self, left: &DatumRef<'_>, right: &Datum) -> Option<bool> {
        let order = match (left, right) {
            (DatumRef::Null, _) | (_, Datum::Null) => return None,
            (DatumRef::Int4(l), Datum::Int4(r)) | (DatumRef::Date(l), Datum::Date(r)) => l.cmp(r),
            (DatumRef::Timestamp(l), Datum::Timestamp(r)) => l.cmp(r),
            (left, right) => match self.how {
                How::Int => left.integer()?.cmp(&right.integer()?),
                How::Order(ty) => types::compare_as(ty, left, &right.as_ref()),
                How::Function(_) => return None,
            },
        };
        Some(self.op.holds(order))
    }

    /// Tests a text whose bytes these are; `None` if the value is none, or is not compared by its bytes.
    #[inline]
    pub fn test_text_bytes(&self, left: &[u8], right: &Datum) -> Option<bool> {
        match (self.how, right) {
            (How::Order(ty), Datum::Text(right)) => {
                Some(self.op.holds(types::compare_text_bytes(ty, left, right.as_bytes())?))
            }
            _ => None,
        }
    }

    /// Tests two values where they lie; `None` if one is NULL. REQUIRES [`Comparison::takes_stored`].
    #[inline]
    pub fn test_both_stored(&self, left: &DatumRef<'_>, right: &DatumRef<'_>) -> Option<bool> {
        let order = match (left, right) {
            (DatumRef::Null, _) | (_, DatumRef::Null) => return None,
            (DatumRef::Date(l), DatumRef::Date(r)) => l.cmp(r),
            (left, right) => match self.how {
                How::Int => left.integer()?.cmp(&right.integer()?),
                How::Order(ty) => types::compare_as(ty, left, right),
                How::Function(_) => return None,
            },
        };
        Some(self.op.holds(order))
    }

    /// Tests two values; `None` if one is NULL.
    #[inline]
    pub fn test<E: Env>(&self, env: &E, left: &Datum, right: &Datum) -> Result<Option<bool>> {
        let order = match self.how {
            How::Int => match (left.integer(), right.integer()) {
                (Some(l), Some(r)) => l.cmp(&r),
                _ => return Ok(None),
            },
            How::Order(ty) => match (left, right) {
                (Datum::Timestamp(l), Datum::Timestamp(r)) | (Datum::TimestampTz(l), Datum::TimestampTz(r)) => l.cmp(r),
                (Datum::Date(l), Datum::Date(r)) => l.cmp(r),
                (Datum::Null, _) | (_, Datum::Null) => return Ok(None),
                _ => types::compare_as(ty, &left.as_ref(), &right.as_ref()),
            },
            How::Function(function) => {
                let args = [left.clone(), right.clone()];
                return Ok(truth_of(&apply(function, env.eval(), &args)?));
            }
        };
        Ok(Some(self.op.holds(order)))
    }
}

fn truth_of(value: &Datum) -> Option<bool> {
    match value {
        Datum::Bool(v) => Some(*v),
        _ => None,
    }
}

fn of_truth(value: Option<bool>) -> Datum {
    value.map_or(Datum::Null, Datum::Bool)
}

/// Calls a function with PostgreSQL's rule for strict ones.
fn apply(function: &Function, cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    if function.strict && args.iter().any(Datum::is_null) {
        return Ok(Datum::Null);
    }
    weigh(args)?;
    watch::calls(function.oid);
    functions::call(function, cx, args)
}

/// Counts a call by what it is about to read. What takes longer than that counts it itself.
#[inline]
fn weigh(args: &[Datum]) -> Result<usize> {
    let weight = |value: &Datum| match value {
        Datum::Text(text) => text.len() / 8,
        Datum::Bytea(bytes) | Datum::Bits(bytes) => bytes.len() / 8,
        Datum::Array(array) => array.values.len(),
        _ => 0,
    };
    let weight = args.iter().fold(4, |sum, value| sum + weight(value));
    work::step(weight.min(work::QUANTUM as usize))?;
    Ok(weight)
}

/// Weight beyond which arguments are dropped step by step.
const LIGHT: usize = 10_000;

/// Drops the arguments of a call, and looks, for its value may have taken long to copy.
#[cold]
fn release(args: SmallVec<[Datum; 4]>) -> Result<()> {
    for value in args {
        if let Datum::Array(array) = value
            && let Some(mut array) = Arc::into_inner(array)
        {
            work::discard(&mut array.values);
        }
    }
    work::look_now()
}

impl IntWidth {
    fn datum(self, value: i64) -> Option<Datum> {
        Some(match self {
            IntWidth::Two => Datum::Int2(value.try_into().ok()?),
            IntWidth::Four => Datum::Int4(value.try_into().ok()?),
            IntWidth::Eight => Datum::Int8(value),
        })
    }

    #[cold]
    fn overflow(self) -> Error {
        let name = match self {
            IntWidth::Two => "smallint",
            IntWidth::Four => "integer",
            IntWidth::Eight => "bigint",
        };
        Error::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, format!("{name} out of range"))
    }
}

impl Code {
    /// The value, or a reference to where it already lies.
    #[inline]
    pub fn value<'a, E: Env>(&'a self, env: &mut E, registers: &'a [Datum]) -> Result<Cow<'a, Datum>> {
        Ok(match self {
            Code::Slot(slot) => Cow::Borrowed(&registers[*slot as usize]),
            Code::Const(value) => Cow::Borrowed(value),
            code => Cow::Owned(code.eval(env, registers)?),
        })
    }

    /// The value as a condition: `None` is NULL.
    pub fn truth<E: Env>(&self, env: &mut E, registers: &[Datum]) -> Result<Option<bool>> {
        match self {
            Code::Compare(test, args) => {
                let left = args[0].value(env, registers)?;
                let right = args[1].value(env, registers)?;
                test.test(env, &left, &right)
            }
            Code::And(args) => {
                work::step(args.len())?;
                let mut result = Some(true);
                for arg in args {
                    match arg.truth(env, registers)? {
                        Some(false) => return Ok(Some(false)),
                        None => result = None,
                        Some(true) => {}
                    }
                }
                Ok(result)
            }
            Code::Or(args) => {
                work::step(args.len())?;
                let mut result = Some(false);
                for arg in args {
                    match arg.truth(env, registers)? {
                        Some(true) => return Ok(Some(true)),
                        None => result = None,
                        Some(false) => {}
                    }
                }
                Ok(result)
            }
            Code::Not(arg) => Ok(arg.truth(env, registers)?.map(|v| !v)),
            Code::Call { function, args } if let Some(test) = function.on_texts => {
                let left = args[0].value(env, registers)?;
                let right = args[1].value(env, registers)?;
                match (&*left, &*right) {
                    (Datum::Text(left), Datum::Text(right)) => test_texts(function, test, left, right).map(Some),
                    (Datum::Null, _) | (_, Datum::Null) => Ok(None),
                    _ => Err(Error::internal("a test of texts was called with other values")),
                }
            }
            Code::IsNull(arg, negated) => Ok(Some(is_null(&*arg.value(env, registers)?, *negated))),
            Code::BooleanTest { arg, want, negated } => Ok(Some((arg.truth(env, registers)? == *want) != *negated)),
            Code::Distinct { equal, args, negated } => {
                let left = args[0].value(env, registers)?;
                let right = args[1].value(env, registers)?;
                let distinct = match (left.is_null(), right.is_null()) {
                    (true, true) => false,
                    (false, false) => equal.test(env, &left, &right)? != Some(true),
                    _ => true,
                };
                Ok(Some(distinct != *negated))
            }
            Code::AnyAllList { all, test, left, items, fixed } => {
                let left = left.value(env, registers)?;
                if *fixed && items.len() >= Constants::MANY {
                    let sort = |env: &mut E| {
                        let values: Vec<Datum> =
                            items.iter().map(|item| item.eval(env, registers)).collect::<Result<_>>()?;
                        Ok(Constants::of(*all, test, values.iter().map(Some)))
                    };
                    let place = std::ptr::from_ref(items).addr();
                    if let Some(found) = in_list(place, &left, env, sort)? {
                        return Ok(found.map(|is_one| is_one != *all));
                    }
                }
                let mut quantifier = Quantifier::new(*all);
                for item in items {
                    work::step(4)?;
                    let item = item.value(env, registers)?;
                    if quantifier.add(test.test(env, &left, &item)?) {
                        break;
                    }
                }
                Ok(quantifier.result())
            }
            Code::AnyAllConstants { all, left, constants } => {
                work::step(32)?;
                Ok(constants.has(&*left.value(env, registers)?).map(|is_one| is_one != *all))
            }
            Code::AnyAllArray { all, test, left, array, fixed } => {
                let left = left.value(env, registers)?;
                if *fixed {
                    let sort = |env: &mut E| {
                        let value = array.value(env, registers)?;
                        let Datum::Array(value) = &*value else { return Ok(None) };
                        Ok(Constants::of(*all, test, value.values.iter().map(Some)))
                    };
                    let place = std::ptr::from_ref(array).addr();
                    if let Some(found) = in_list(place, &left, env, sort)? {
                        return Ok(found.map(|is_one| is_one != *all));
                    }
                }
                let array = array.value(env, registers)?;
                let Datum::Array(array) = &*array else { return Ok(None) };
                let mut quantifier = Quantifier::new(*all);
                for item in &array.values {
                    work::step(8)?;
                    if quantifier.add(test.test(env, &left, item)?) {
                        break;
                    }
                }
                Ok(quantifier.result())
            }
            Code::RowCompare { op, pairs } => compare_rows(*op, pairs, env, registers),
            code => Ok(truth_of(&code.eval(env, registers)?)),
        }
    }

    /// The value.
    ///
    /// # Errors
    /// Those of the functions called.
    pub fn eval<E: Env>(&self, env: &mut E, registers: &[Datum]) -> Result<Datum> {
        Ok(match self {
            Code::Const(value) => value.clone(),
            Code::Slot(slot) => registers[*slot as usize].clone(),
            Code::Int { op, width, args } => {
                let left = args[0].value(env, registers)?;
                let right = args[1].value(env, registers)?;
                let (Some(l), Some(r)) = (left.integer(), right.integer()) else { return Ok(Datum::Null) };
                let result = match op {
                    ArithmeticOp::Add => l.checked_add(r),
                    ArithmeticOp::Sub => l.checked_sub(r),
                    ArithmeticOp::Mul => l.checked_mul(r),
                };
                result.and_then(|v| width.datum(v)).ok_or_else(|| width.overflow())?
            }
            Code::Numeric { op, args } => {
                let left = args[0].value(env, registers)?;
                let right = args[1].value(env, registers)?;
                let (l, r) = match (&*left, &*right) {
                    (Datum::Numeric(l), Datum::Numeric(r)) => (l, r),
                    (Datum::Null, _) | (_, Datum::Null) => return Ok(Datum::Null),
                    _ => return Err(Error::internal("arithmetic of what is not numeric")),
                };
                work::step(4)?;
                Datum::Numeric(match op {
                    ArithmeticOp::Add => l.add(r)?,
                    ArithmeticOp::Sub => l.sub(r)?,
                    ArithmeticOp::Mul => l.mul(r)?,
                })
            }
            Code::IntCast(width, arg) => match arg.value(env, registers)?.integer() {
                Some(v) => width.datum(v).ok_or_else(|| width.overflow())?,
                None => Datum::Null,
            },
            Code::Call { function, args } if let [arg] = &args[..] => {
                // It is lent where it lies.
                let value = arg.value(env, registers)?;
                if function.strict && value.is_null() {
                    return Ok(Datum::Null);
                }
                let args = std::slice::from_ref(&*value);
                let weight = if function.is_light { weigh(&[])? } else { weigh(args)? };
                watch::calls(function.oid);
                let result = functions::call(function, env.eval(), args)?;
                if weight > LIGHT
                    && let Cow::Owned(value) = value
                {
                    release(smallvec![value])?;
                }
                result
            }
            Code::Call { function, args } => {
                let mut values: SmallVec<[Datum; 4]> = SmallVec::with_capacity(args.len());
                let mut any_null = false;
                for arg in args {
                    // All are evaluated, for they may fail or have effects.
                    let value = arg.eval(env, registers)?;
                    any_null |= value.is_null();
                    values.push(value);
                }
                if any_null && function.strict {
                    return Ok(Datum::Null);
                }
                let weight = if function.is_light { weigh(&[])? } else { weigh(&values)? };
                watch::calls(function.oid);
                let value = functions::call(function, env.eval(), &values)?;
                if weight > LIGHT {
                    release(values)?;
                }
                value
            }
            Code::Cast { arg, from, to, typmod, kind: CastKind::InOut, explicit } => {
                match &*arg.value(env, registers)? {
                    Datum::Null => Datum::Null,
                    value => cast_by_text(value, *from, *to, *typmod, *explicit, env.eval())?,
                }
            }
            Code::Cast { arg, from, to, typmod, kind, explicit } => {
                let value = arg.eval(env, registers)?;
                match &value {
                    Datum::Null => return Ok(Datum::Null),
                    Datum::Text(text)
                        if matches!(kind, CastKind::Typmod) && types::fits_as_it_is(*to, *typmod, text) =>
                    {
                        return Ok(value);
                    }
                    _ => {}
                }
                cast(value, *from, *to, *typmod, *kind, *explicit, env.eval())?
            }
            Code::Case { branches, otherwise } => {
                work::step(branches.len())?;
                for (condition, result) in branches {
                    if condition.truth(env, registers)? == Some(true) {
                        return result.eval(env, registers);
                    }
                }
                match otherwise {
                    Some(code) => code.eval(env, registers)?,
                    None => Datum::Null,
                }
            }
            Code::Coalesce(args) => {
                for arg in args {
                    let value = arg.eval(env, registers)?;
                    if !value.is_null() {
                        return Ok(value);
                    }
                }
                Datum::Null
            }
            Code::NullIf(equal, args) => {
                let left = args[0].eval(env, registers)?;
                let right = args[1].value(env, registers)?;
                match equal.test(env, &left, &right)? {
                    Some(true) => Datum::Null,
                    _ => left,
                }
            }
            Code::MinMax { greatest, ty, args } => {
                let mut best = Datum::Null;
                for arg in args {
                    let value = arg.eval(env, registers)?;
                    if value.is_null() {
                        continue;
                    }
                    let order = types::compare_as(*ty, &value.as_ref(), &best.as_ref());
                    if best.is_null() || if *greatest { order.is_gt() } else { order.is_lt() } {
                        best = value;
                    }
                }
                best
            }
            Code::Row { fields, types } => {
                let fields = fields.iter().map(|field| field.eval(env, registers)).collect::<Result<Vec<_>>>()?;
                Datum::Record(Record::new(Arc::clone(types), fields).into())
            }
            Code::Array { elements, element, nested } => {
                // Its length is a user's to choose: it is made where there is room, and counted.
                let mut values = Vec::with_capacity(elements.len());
                for element in elements {
                    work::step(8)?;
                    values.push(element.eval(env, registers)?);
                }
                if *nested { nest(values, *element)? } else { flat(values, *element) }
            }
            Code::Subscript { array, indexes } => {
                let array = array.value(env, registers)?.into_owned();
                let Datum::Array(array) = &array else { return Ok(Datum::Null) };
                let mut places: SmallVec<[i64; 2]> = SmallVec::new();
                for index in indexes {
                    match index.value(env, registers)?.integer() {
                        Some(place) => places.push(place),
                        None => return Ok(Datum::Null),
                    }
                }
                element_at(array, &places)
            }
            Code::Elements { depth, array, test } => {
                let array = array.eval(env, registers)?;
                if let Datum::Array(array) = &array {
                    for value in &array.values {
                        work::step(8)?;
                        functions::keep(*depth, value);
                        test.eval(env, registers)?;
                    }
                }
                array
            }
            Code::Transaction { question, args, is_bigint } => {
                let arg = args.first().map(|arg| arg.eval(env, registers)).transpose()?;
                functions::answer(*question, arg, *is_bigint, env.transaction()?)?
            }
            Code::Subquery { index, kind } => {
                let mut values: SmallVec<[Datum; 2]> = SmallVec::new();
                if let SubqueryUse::AnyAll { left, .. } | SubqueryUse::ExistsOrLookup { left, .. } = &**kind {
                    for code in left {
                        values.push(code.eval(env, registers)?);
                    }
                }
                env.subquery(*index, kind, &values, registers)?
            }
            code => of_truth(code.truth(env, registers)?),
        })
    }
}

/// IS \[NOT\] NULL; of a record: all fields are (not) NULL.
fn is_null(value: &Datum, negated: bool) -> bool {
    match value {
        Datum::Record(fields) => fields.iter().all(|f| f.is_null() != negated),
        value => value.is_null() != negated,
    }
}

/// ANY and ALL over three-valued tests.
pub struct Quantifier {
    all: bool,
    unknown: bool,
    decided: bool,
}

impl Quantifier {
    /// ALL or ANY before its first comparison.
    pub fn new(all: bool) -> Quantifier {
        Quantifier { all, unknown: false, decided: false }
    }

    /// Takes one test; `true` if the result is decided.
    pub fn add(&mut self, test: Option<bool>) -> bool {
        match test {
            None => self.unknown = true,
            Some(truth) => self.decided |= truth != self.all,
        }
        self.decided
    }

    /// The answer so far; `None` is NULL.
    pub fn result(&self) -> Option<bool> {
        match (self.decided, self.unknown) {
            (true, _) => Some(!self.all),
            (false, true) => None,
            (false, false) => Some(self.all),
        }
    }
}

/// Row comparison by SQL's rules: = and <> look at every column, the others at the first that differs.
fn compare_rows<E: Env>(op: CompareOp, pairs: &[RowPair], env: &mut E, registers: &[Datum]) -> Result<Option<bool>> {
    let mut unknown = false;
    for pair in pairs {
        let left = pair.left.value(env, registers)?;
        let right = pair.right.value(env, registers)?;
        match (pair.equal.test(env, &left, &right)?, op) {
            (Some(true), _) => {}
            (Some(false), CompareOp::Eq) => return Ok(Some(false)),
            (Some(false), CompareOp::Ne) => return Ok(Some(true)),
            (None, CompareOp::Eq | CompareOp::Ne) => unknown = true,
            (None, _) => return Ok(None),
            (Some(false), _) => {
                let less = pair.less.test(env, &left, &right)?;
                return Ok(less.map(|less| matches!(op, CompareOp::Lt | CompareOp::Le) == less));
            }
        }
    }
    if unknown {
        return Ok(None);
    }
    Ok(Some(matches!(op, CompareOp::Eq | CompareOp::Le | CompareOp::Ge)))
}

#[allow(clippy::too_many_arguments)]
fn cast(
    value: Datum,
    from: Oid,
    to: Oid,
    typmod: i32,
    kind: CastKind,
    explicit: bool,
    cx: &dyn EvalContext,
) -> Result<Datum> {
    match kind {
        CastKind::Relabel | CastKind::Collate(_) | CastKind::Called => Ok(types::relabelled(value, to)),
        CastKind::Typmod => match (types::oid::element_of(to), value) {
            (Some(element), Datum::Array(array)) => {
                let convert = |v: &Datum| match v {
                    Datum::Null => Ok(Datum::Null),
                    v => types::apply_typmod(v.clone(), element, typmod, explicit),
                };
                let values = array.values.iter().counted(16).map(convert).collect::<Result<Vec<_>>>()?;
                Ok(Datum::Array(Arc::new(Array { element: array.element, dims: array.dims.clone(), values })))
            }
            (_, value) => types::apply_typmod(value, to, typmod, explicit),
        },
        CastKind::InOut => cast_by_text(&value, from, to, typmod, explicit, cx),
        CastKind::ArrayElements(function) => {
            let Datum::Array(array) = value else { return Err(Error::internal("an array cast of no array")) };
            let target = types::oid::element_of(to).unwrap_or(to);
            let convert = |v: &Datum| match (v, function) {
                (Datum::Null, _) => Ok(Datum::Null),
                (v, Some(function)) => {
                    let mut args = vec![v.clone()];
                    if function.args.len() > 1 {
                        args.push(Datum::Int4(typmod));
                    }
                    if function.args.len() > 2 {
                        args.push(Datum::Bool(explicit));
                    }
                    functions::call(function, cx, &args)
                }
                (v, None) => cast(v.clone(), array.element, target, typmod, CastKind::InOut, explicit, cx),
            };
            let values = array.values.iter().counted(16).map(convert).collect::<Result<Vec<_>>>()?;
            Ok(Datum::Array(Arc::new(Array { element: target, dims: array.dims.clone(), values })))
        }
    }
}

/// A cast through the text form.
fn cast_by_text(value: &Datum, from: Oid, to: Oid, typmod: i32, explicit: bool, cx: &dyn EvalContext) -> Result<Datum> {
    thread_local! {
        /// Where short texts are written.
        static SHORT: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
    }
    const SHORT_MAX: usize = 256;
    room::ask(4 * functions::weight(value))?;
    let mut text = SHORT.take();
    text.clear();
    functions::write_text(cx, value, from, &mut text)?;
    work::step(text.len() / 8)?;
    let is_text = matches!(to, oid::TEXT | oid::VARCHAR | oid::UNKNOWN);
    if is_text && text.len() <= SHORT_MAX {
        let made = match std::str::from_utf8(&text) {
            Ok(text) => Datum::text(text),
            Err(_) => Datum::text(&String::from_utf8_lossy(&text)),
        };
        SHORT.set(text);
        return Ok(made);
    }
    let text = types::written(text);
    if is_text {
        return Ok(Datum::from(text));
    }
    let input = InputContext { settings: cx.settings(), now_micros: cx.transaction_timestamp() };
    let value = types::parse_text(to, typmod, &text, &input)?;
    if typmod >= 0 { types::apply_typmod(value, to, typmod, explicit) } else { Ok(value) }
}

/// An array of one dimension.
fn flat(values: Vec<Datum>, element: Oid) -> Datum {
    let dims = if values.is_empty() { Vec::new() } else { vec![(values.len() as i32, 1)] };
    Datum::Array(Arc::new(Array { element, dims, values }))
}

/// Arrays as the elements of one with a dimension more.
fn nest(values: Vec<Datum>, element: Oid) -> Result<Datum> {
    let mismatch = || {
        Error::new(
            SqlState::ARRAY_SUBSCRIPT_ERROR,
            "multidimensional arrays must have array expressions with matching dimensions",
        )
    };
    let mut dims: Option<Vec<(i32, i32)>> = None;
    let mut all = Vec::new();
    let count = values.len() as i32;
    let is_empty = |value: &Datum| match value {
        Datum::Null => true,
        Datum::Array(inner) => inner.values.is_empty(),
        _ => false,
    };
    if values.iter().all(is_empty) {
        return Ok(Datum::Array(Arc::new(Array { element, dims: Vec::new(), values: Vec::new() })));
    }
    for value in values {
        let Datum::Array(inner) = value else { return Err(mismatch()) };
        let inner_dims: Vec<(i32, i32)> = inner.dims.to_vec();
        match &dims {
            Some(dims) if *dims != inner_dims => return Err(mismatch()),
            Some(_) => {}
            None => dims = Some(inner_dims),
        }
        all.make_room(inner.values.len())?;
        all.extend(inner.values.iter().counted(4).cloned());
    }
    let mut outer = vec![(count, 1)];
    outer.extend(dims.unwrap_or_default());
    if outer.len() > 6 {
        let message = format!("number of array dimensions ({}) exceeds the maximum allowed (6)", outer.len());
        return Err(Error::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
    }
    if all.is_empty() {
        outer.clear();
    }
    Ok(Datum::Array(Arc::new(Array { element, dims: outer, values: all })))
}

/// One element; NULL outside of the bounds or with another number of subscripts.
fn element_at(array: &Array, places: &[i64]) -> Datum {
    if places.len() != array.dims.len() {
        return Datum::Null;
    }
    let mut at = 0usize;
    for (&place, &(len, lower)) in places.iter().zip(array.dims.iter()) {
        let offset = place - lower as i64;
        if offset < 0 || offset >= len as i64 {
            return Datum::Null;
        }
        at = at * len as usize + offset as usize;
    }
    array.values.get(at).cloned().unwrap_or(Datum::Null)
}
