//! Running a path (`jsonpath_exec.c`): each step hands the items it finds to the steps behind it.
//!
//! In the lax mode arrays are unwrapped where a step is not meant for arrays, and what is not there is nothing; in the
//! strict mode both are errors. Errors inside of predicates make them unknown.

use std::rc::Rc;

use base::{Error, Result, SqlState, work};
use types::json::{Moment, Value};
use types::jsonpath::{Expr, JsonPath, Method, Node, Op, RegexFlags};
use types::{InputContext, Numeric, io};

use super::super::super::EvalContext;
use super::super::super::text::pattern::{self, Options};
use super::places::Places;

/// Levels of steps that may be under way, so that no document can exhaust the stack.
const DEPTH_MAX: usize = 2000;
/// What the numbers of objects in one document are below.
const BASE_STEP: i64 = 10_000_000_000;

#[cold]
fn error(code: SqlState, message: impl Into<String>) -> Error {
    Error::new(code, message.into())
}

const MEMBER_NOT_FOUND: SqlState = SqlState::SQL_JSON_MEMBER_NOT_FOUND;
const ARRAY_NOT_FOUND: SqlState = SqlState::SQL_JSON_ARRAY_NOT_FOUND;
const OBJECT_NOT_FOUND: SqlState = SqlState::SQL_JSON_OBJECT_NOT_FOUND;
const NUMBER_NOT_FOUND: SqlState = SqlState::SQL_JSON_NUMBER_NOT_FOUND;
const NON_NUMERIC: SqlState = SqlState::NON_NUMERIC_SQL_JSON_ITEM;
const SINGLETON_REQUIRED: SqlState = SqlState::SINGLETON_SQL_JSON_ITEM_REQUIRED;
const INVALID_SUBSCRIPT: SqlState = SqlState::INVALID_SQL_JSON_SUBSCRIPT;

/// Whether `silent` passes over an error: those about the document, not those about the call.
pub(super) fn is_suppressed(e: &Error) -> bool {
    let code = e.code();
    let message = &e.fields().message;
    // A template that is none at all is no fault of the document; one that reads what cannot be read is.
    if message.starts_with("invalid datetime format separator") {
        return false;
    }
    if message.starts_with("formatting field") {
        return true;
    }
    code.as_str().starts_with("22") && code != SqlState::INVALID_PARAMETER_VALUE
}

/// Items found by a path, and how it ended. With `first` it ends with the first one.
pub(super) fn items(
    cx: &dyn EvalContext,
    path: &JsonPath,
    document: &Value,
    variables: &Value,
    first: bool,
    zoned: bool,
) -> (Vec<Value>, Result<()>) {
    let mut run = Run {
        cx,
        root: document,
        variables,
        strict: path.strict,
        depth: 0,
        zoned,
        base: Base::Document,
        places: [None, None],
        next_pair: 2,
    };
    let mut found = Found { items: Vec::new(), first };
    let scope = Scope { current: document, length: None, lenient: !path.strict };
    let outcome = run.steps(&path.expr, document, &scope, &mut found, true).map(drop);
    (found.items, outcome)
}

/// Where items go.
struct Found {
    items: Vec<Value>,
    first: bool,
}

/// Whether to go on.
#[derive(PartialEq)]
enum Flow {
    On,
    Enough,
}

/// What a step may refer to.
#[derive(Clone, Copy)]
struct Scope<'a> {
    /// `@`
    current: &'a Value,
    /// Length of the array that `last` is about.
    length: Option<usize>,
    /// Structural errors are nothing.
    lenient: bool,
}

/// What an item is part of, for the numbers of `.keyvalue()`.
#[derive(Clone)]
enum Base {
    /// `$`
    Document,
    /// The variables.
    Variables,
    /// A pair that `.keyvalue()` has made, by its number.
    Pair(i64, Rc<Places>),
}

struct Run<'a> {
    cx: &'a dyn EvalContext,
    root: &'a Value,
    variables: &'a Value,
    strict: bool,
    depth: usize,
    /// The session's zone may be asked.
    zoned: bool,
    base: Base,
    /// Places in the document and in the variables, when they have been asked for.
    places: [Option<Rc<Places>>; 2],
    /// The number of the next pair.
    next_pair: i64,
}

type Truth = Option<bool>;

impl Run<'_> {
    /// Runs an expression's steps over an item.
    fn steps(&mut self, expr: &[Node], item: &Value, scope: &Scope<'_>, out: &mut Found, unwrap: bool) -> Result<Flow> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(Error::new(SqlState::STATEMENT_TOO_COMPLEX, "stack depth limit exceeded"));
        }
        work::step(16)?;
        let flow = match expr {
            [] => {
                out.items.push(copied(item)?);
                Ok(if out.first { Flow::Enough } else { Flow::On })
            }
            [step, rest @ ..] => self.step(step, rest, item, scope, out, unwrap && !self.strict),
        };
        self.depth -= 1;
        flow
    }

    /// Each element of an array.
    fn elements(
        &mut self,
        expr: &[Node],
        values: &[Value],
        scope: &Scope<'_>,
        out: &mut Found,
        unwrap: bool,
    ) -> Result<Flow> {
        for value in values {
            if self.steps(expr, value, scope, out, unwrap)? == Flow::Enough {
                return Ok(Flow::Enough);
            }
        }
        Ok(Flow::On)
    }

    fn structural(&self, scope: &Scope<'_>, code: SqlState, message: &str) -> Result<Flow> {
        if scope.lenient { Ok(Flow::On) } else { Err(error(code, message)) }
    }

    fn step(
        &mut self,
        step: &Node,
        rest: &[Node],
        item: &Value,
        scope: &Scope<'_>,
        out: &mut Found,
        unwrap: bool,
    ) -> Result<Flow> {
        work::step(16)?;
        // In the lax mode a step that is not about arrays is taken for each element.
        let each = |run: &mut Self, values: &[Value], out: &mut Found| {
            for value in values {
                if run.step(step, rest, value, scope, out, false)? == Flow::Enough {
                    return Ok(Flow::Enough);
                }
            }
            Ok(Flow::On)
        };
        match (step, item) {
            (Node::Root, _) => {
                let root = self.root;
                self.within(Base::Document, |run| run.steps(rest, root, scope, out, true))
            }
            (Node::Variable(name), _) => {
                let variables = self.variables;
                let Some(value) = variables.field(name) else {
                    let message = format!("could not find jsonpath variable \"{name}\"");
                    return Err(Error::new(SqlState::UNDEFINED_OBJECT, message));
                };
                self.within(Base::Variables, |run| run.steps(rest, value, scope, out, true))
            }
            (Node::Current, _) => self.steps(rest, scope.current, scope, out, true),
            (Node::Null | Node::Bool(_) | Node::Number(_) | Node::String(_) | Node::Last, _) => {
                let value = self.constant(step, scope)?;
                self.steps(rest, &value, scope, out, true)
            }
            (Node::Key(key), Value::Object(_)) => match item.field(key) {
                Some(value) => self.steps(rest, value, scope, out, true),
                None if scope.lenient => Ok(Flow::On),
                None => Err(error(MEMBER_NOT_FOUND, format!("JSON object does not contain key \"{key}\""))),
            },
            (Node::Key(_) | Node::AnyKey | Node::Filter(_) | Node::DateTime(_), Value::Array(values)) if unwrap => {
                each(self, values, out)
            }
            (Node::Method(method), Value::Array(values))
                if unwrap && !matches!(method, Method::Size | Method::Type) =>
            {
                each(self, values, out)
            }
            (Node::Key(_), _) => {
                self.structural(scope, MEMBER_NOT_FOUND, "jsonpath member accessor can only be applied to an object")
            }
            (Node::AnyKey, Value::Object(fields)) => {
                for (_, value) in fields {
                    if self.steps(rest, value, scope, out, true)? == Flow::Enough {
                        return Ok(Flow::Enough);
                    }
                }
                Ok(Flow::On)
            }
            (Node::AnyKey, _) => self.structural(
                scope,
                OBJECT_NOT_FOUND,
                "jsonpath wildcard member accessor can only be applied to an object",
            ),
            (Node::AnyElement, Value::Array(values)) => self.elements(rest, values, scope, out, true),
            (Node::AnyElement, _) if !self.strict => self.steps(rest, item, scope, out, true),
            (Node::AnyElement, _) => self.structural(
                scope,
                ARRAY_NOT_FOUND,
                "jsonpath wildcard array accessor can only be applied to an array",
            ),
            (Node::Elements(ranges), _) => self.ranges(ranges, rest, item, scope, out),
            (Node::AnyLevel(from, to), _) => self.levels((*from, *to), 0, rest, item, scope, out),
            (Node::Filter(condition), _) => {
                let inner = Scope { current: item, ..*scope };
                match self.truth(condition, item, &inner)? {
                    Some(true) => self.steps(rest, item, scope, out, true),
                    _ => Ok(Flow::On),
                }
            }
            (Node::Method(method), _) => self.method(*method, rest, item, scope, out),
            (Node::DateTime(template), Value::String(text)) => {
                let value = Value::Moment(Moment::read(text, template.as_deref())?);
                self.steps(rest, &value, scope, out, true)
            }
            (Node::DateTime(_), _) => Err(error(
                SqlState::INVALID_ARGUMENT_FOR_SQL_JSON_DATETIME_FUNCTION,
                "jsonpath item method .datetime() can only be applied to a string",
            )),
            (Node::Sign(negative, operand), _) => self.sign(*negative, operand, rest, item, scope, out),
            (Node::Binary(op @ (Op::Add | Op::Sub | Op::Mul | Op::Div | Op::Mod), left, right), _) => {
                let value = self.arithmetic(*op, left, right, item, scope)?;
                self.steps(rest, &value, scope, out, true)
            }
            (Node::Binary(..) | Node::Not(_) | Node::IsUnknown(_) | Node::Exists(_) | Node::LikeRegex { .. }, _) => {
                let value = self.truth(std::slice::from_ref(step), item, scope)?.map_or(Value::Null, Value::Bool);
                self.steps(rest, &value, scope, out, true)
            }
        }
    }

    fn constant(&self, node: &Node, scope: &Scope<'_>) -> Result<Value> {
        Ok(match node {
            Node::Bool(v) => Value::Bool(*v),
            Node::Number(n) => Value::Number(n.clone()),
            Node::String(s) => Value::String(s.clone()),
            Node::Last => match scope.length {
                Some(length) => Value::Number(Numeric::from(length as i64 - 1)),
                None => return Err(Error::internal("evaluating jsonpath LAST outside of array subscript")),
            },
            _ => Value::Null,
        })
    }

    fn ranges(
        &mut self,
        ranges: &[(Expr, Option<Expr>)],
        rest: &[Node],
        item: &Value,
        scope: &Scope<'_>,
        out: &mut Found,
    ) -> Result<Flow> {
        let values = match item {
            Value::Array(values) => values.as_slice(),
            item if !self.strict => std::slice::from_ref(item),
            _ => {
                let message = "jsonpath array accessor can only be applied to an array";
                return self.structural(scope, ARRAY_NOT_FOUND, message);
            }
        };
        let length = values.len() as i64;
        let inner = Scope { length: Some(values.len()), ..*scope };
        for (from, to) in ranges {
            let from = self.index(from, item, &inner)?;
            let to = match to {
                Some(to) => self.index(to, item, &inner)?,
                None => from,
            };
            if !scope.lenient && (from < 0 || from > to || to >= length) {
                return Err(error(INVALID_SUBSCRIPT, "jsonpath array subscript is out of bounds"));
            }
            for at in from.max(0)..=to.min(length - 1) {
                if self.steps(rest, &values[at as usize], scope, out, true)? == Flow::Enough {
                    return Ok(Flow::Enough);
                }
            }
        }
        Ok(Flow::On)
    }

    fn index(&mut self, expr: &[Node], item: &Value, scope: &Scope<'_>) -> Result<i64> {
        match self.list(expr, item, scope, false)?.as_slice() {
            [Value::Number(n)] => match n.trunc(0).to_i32() {
                Ok(n) => Ok(n.into()),
                Err(_) => Err(error(INVALID_SUBSCRIPT, "jsonpath array subscript is out of integer range")),
            },
            _ => Err(error(INVALID_SUBSCRIPT, "jsonpath array subscript is not a single numeric value")),
        }
    }

    fn levels(
        &mut self,
        range: (u32, u32),
        level: u32,
        rest: &[Node],
        item: &Value,
        scope: &Scope<'_>,
        out: &mut Found,
    ) -> Result<Flow> {
        let (from, to) = range;
        let is_container = matches!(item, Value::Array(_) | Value::Object(_));
        // `last` is what holds nothing more.
        let wanted = level >= from || (from == u32::MAX && !is_container);
        if wanted && level <= to {
            let lenient = Scope { lenient: true, ..*scope };
            if self.steps(rest, item, &lenient, out, true)? == Flow::Enough {
                return Ok(Flow::Enough);
            }
        }
        if level >= to {
            return Ok(Flow::On);
        }
        let inner: Box<dyn Iterator<Item = &Value>> = match item {
            Value::Array(values) => Box::new(values.iter()),
            Value::Object(fields) => Box::new(fields.iter().map(|(_, v)| v)),
            _ => return Ok(Flow::On),
        };
        for value in inner {
            if self.levels(range, level + 1, rest, value, scope, out)? == Flow::Enough {
                return Ok(Flow::Enough);
            }
        }
        Ok(Flow::On)
    }

    fn method(
        &mut self,
        method: Method,
        rest: &[Node],
        item: &Value,
        scope: &Scope<'_>,
        out: &mut Found,
    ) -> Result<Flow> {
        let only = |what: &str| format!("jsonpath item method .{}() can only be applied to {what}", method.name());
        let value = match (method, item) {
            (Method::Type, item) => Value::String(
                match item {
                    Value::Null => "null",
                    Value::Bool(_) => "boolean",
                    Value::Number(_) => "number",
                    Value::String(_) => "string",
                    Value::Moment(moment) => moment.type_name(),
                    Value::Array(_) => "array",
                    Value::Object(_) => "object",
                }
                .to_string(),
            ),
            (Method::Size, Value::Array(values)) => Value::Number(Numeric::from(values.len() as i64)),
            (Method::Size, _) if !self.strict => Value::Number(Numeric::from(1i64)),
            (Method::Size, _) => return self.structural(scope, ARRAY_NOT_FOUND, &only("an array")),
            (Method::Abs, Value::Number(n)) => Value::Number(n.abs()),
            (Method::Floor, Value::Number(n)) => Value::Number(n.floor()),
            (Method::Ceiling, Value::Number(n)) => Value::Number(n.ceil()),
            (Method::Abs | Method::Floor | Method::Ceiling, _) => {
                return Err(error(NON_NUMERIC, only("a numeric value")));
            }
            (Method::Double, item) => double(item, &only)?,
            (Method::KeyValue, Value::Object(fields)) => return self.key_values(fields, rest, item, scope, out),
            (Method::KeyValue, _) => return Err(error(OBJECT_NOT_FOUND, only("an object"))),
        };
        self.steps(rest, &value, scope, out, true)
    }

    /// Runs with items of another document.
    fn within<T>(&mut self, base: Base, run: impl FnOnce(&mut Self) -> T) -> T {
        let outer = std::mem::replace(&mut self.base, base);
        let result = run(self);
        self.base = outer;
        result
    }

    /// The number of an object: that of what it is part of, and its place there.
    fn id(&mut self, item: &Value) -> i64 {
        let (number, places) = match &self.base {
            Base::Document => (0, self.places[0].get_or_insert_with(|| Rc::new(Places::of(self.root)))),
            Base::Variables => (1, self.places[1].get_or_insert_with(|| Rc::new(Places::of(self.variables)))),
            Base::Pair(number, places) => (*number, &mut Rc::clone(places)),
        };
        number * BASE_STEP + places.get(item) as i64
    }

    /// `id` tells the objects of a document apart by their place in it.
    fn key_values(
        &mut self,
        fields: &[(String, Value)],
        rest: &[Node],
        item: &Value,
        scope: &Scope<'_>,
        out: &mut Found,
    ) -> Result<Flow> {
        let id = self.id(item);
        for (key, value) in fields {
            let pair = Value::Object(vec![
                ("id".to_string(), Value::Number(Numeric::from(id))),
                ("key".to_string(), Value::String(key.clone())),
                ("value".to_string(), value.clone()),
            ]);
            let number = self.next_pair;
            self.next_pair += 1;
            let flow = match rest {
                [] => self.steps(rest, &pair, scope, out, true),
                _ => {
                    let base = Base::Pair(number, Rc::new(Places::of(&pair)));
                    self.within(base, |run| run.steps(rest, &pair, scope, out, true))
                }
            };
            if flow? == Flow::Enough {
                return Ok(Flow::Enough);
            }
        }
        Ok(Flow::On)
    }

    /// All items of an expression; with `unwrap`, in the lax mode, the elements of those that are arrays.
    fn list(&mut self, expr: &[Node], item: &Value, scope: &Scope<'_>, unwrap: bool) -> Result<Vec<Value>> {
        let mut found = Found { items: Vec::new(), first: false };
        self.steps(expr, item, scope, &mut found, true)?;
        if !unwrap || self.strict || !found.items.iter().any(|v| matches!(v, Value::Array(_))) {
            return Ok(found.items);
        }
        let mut flat = Vec::new();
        for item in found.items {
            match item {
                Value::Array(values) => flat.extend(values),
                other => flat.push(other),
            }
        }
        Ok(flat)
    }

    fn sign(
        &mut self,
        negative: bool,
        operand: &[Node],
        rest: &[Node],
        item: &Value,
        scope: &Scope<'_>,
        out: &mut Found,
    ) -> Result<Flow> {
        for value in self.list(operand, item, scope, true)? {
            let Value::Number(n) = value else {
                let symbol = if negative { '-' } else { '+' };
                let message = format!("operand of unary jsonpath operator {symbol} is not a numeric value");
                return Err(error(NUMBER_NOT_FOUND, message));
            };
            let value = Value::Number(if negative { n.neg() } else { n });
            if self.steps(rest, &value, scope, out, true)? == Flow::Enough {
                return Ok(Flow::Enough);
            }
        }
        Ok(Flow::On)
    }

    fn arithmetic(&mut self, op: Op, left: &[Node], right: &[Node], item: &Value, scope: &Scope<'_>) -> Result<Value> {
        let operand = |run: &mut Self, expr: &[Node], side: &str| {
            let values = run.list(expr, item, scope, true)?;
            match <[Value; 1]>::try_from(values) {
                Ok([Value::Number(n)]) => Ok(n),
                _ => {
                    let message =
                        format!("{side} operand of jsonpath operator {} is not a single numeric value", op.symbol());
                    Err(error(SINGLETON_REQUIRED, message))
                }
            }
        };
        let left = operand(self, left, "left")?;
        let right = operand(self, right, "right")?;
        Ok(Value::Number(match op {
            Op::Add => left.add(&right)?,
            Op::Sub => left.sub(&right)?,
            Op::Mul => left.mul(&right)?,
            Op::Div => left.div(&right)?,
            _ => left.rem(&right)?,
        }))
    }

    /// A predicate; errors of its operands make it unknown.
    fn truth(&mut self, expr: &[Node], item: &Value, scope: &Scope<'_>) -> Result<Truth> {
        let [node] = expr else { return Err(Error::internal("a predicate with accessors")) };
        match node {
            Node::Binary(Op::And, left, right) => {
                let left = self.truth(left, item, scope)?;
                if left == Some(false) {
                    return Ok(Some(false));
                }
                let right = self.truth(right, item, scope)?;
                Ok(if left == Some(true) || right == Some(false) { right } else { None })
            }
            Node::Binary(Op::Or, left, right) => {
                let left = self.truth(left, item, scope)?;
                if left == Some(true) {
                    return Ok(Some(true));
                }
                let right = self.truth(right, item, scope)?;
                Ok(if left == Some(false) || right == Some(true) { right } else { None })
            }
            Node::Not(inner) => Ok(self.truth(inner, item, scope)?.map(|v| !v)),
            Node::IsUnknown(inner) => Ok(Some(self.truth(inner, item, scope)?.is_none())),
            Node::Exists(inner) => {
                let mut found = Found { items: Vec::new(), first: !self.strict };
                match self.steps(inner, item, scope, &mut found, true) {
                    Ok(_) => Ok(Some(!found.items.is_empty())),
                    Err(e) => unknown(e),
                }
            }
            Node::LikeRegex { expr, pattern, flags } => {
                let options = regex_options(*flags);
                self.any(expr, None, item, scope, |value, _| match value {
                    Value::String(s) => pattern::is_match(s, pattern, options).map(Some),
                    _ => Ok(None),
                })
            }
            Node::Binary(Op::StartsWith, left, right) => {
                self.any(left, Some((right, false)), item, scope, |left, right| {
                    Ok(match (left, right) {
                        (Value::String(text), Some(Value::String(start))) => Some(text.starts_with(start.as_str())),
                        _ => None,
                    })
                })
            }
            Node::Binary(op, left, right) => {
                let op = *op;
                let (cx, zoned) = (self.cx, self.zoned);
                self.any(left, Some((right, true)), item, scope, |left, right| match (left, right) {
                    (Value::Moment(left), Some(Value::Moment(right))) => {
                        let input = InputContext { settings: cx.settings(), now_micros: cx.transaction_timestamp() };
                        Ok(left.compare(right, zoned, &input)?.map(|order| holds(op, order)))
                    }
                    (left, right) => Ok(right.and_then(|right| compare(op, left, right))),
                })
            }
            _ => Err(Error::internal("not a predicate")),
        }
    }

    /// Whether a test is true for one of the pairs of items of two expressions.
    fn any(
        &mut self,
        left: &[Node],
        right: Option<(&[Node], bool)>,
        item: &Value,
        scope: &Scope<'_>,
        test: impl Fn(&Value, Option<&Value>) -> Result<Truth>,
    ) -> Result<Truth> {
        let left = match self.list(left, item, scope, true) {
            Ok(items) => items,
            Err(e) => return unknown(e),
        };
        let right = match right {
            None => None,
            Some((right, unwrap)) => match self.list(right, item, scope, unwrap) {
                Ok(items) => Some(items),
                Err(e) => return unknown(e),
            },
        };
        let (mut found, mut failed) = (false, false);
        for left in &left {
            let pairs: Vec<Option<&Value>> = right.as_ref().map_or(vec![None], |r| r.iter().map(Some).collect());
            for right in pairs {
                work::step(8)?;
                match test(left, right)? {
                    None if self.strict => return Ok(None),
                    None => failed = true,
                    Some(true) if !self.strict => return Ok(Some(true)),
                    Some(true) => found = true,
                    Some(false) => {}
                }
            }
        }
        Ok(if found {
            Some(true)
        } else if failed {
            None
        } else {
            Some(false)
        })
    }
}

/// A copy of a value, counted.
fn copied(value: &Value) -> Result<Value> {
    work::step(16)?;
    Ok(match value {
        Value::Array(values) => Value::Array(values.iter().map(copied).collect::<Result<_>>()?),
        Value::Object(fields) => {
            let copied = |(key, value): &(String, Value)| Ok((key.clone(), copied(value)?));
            Value::Object(fields.iter().map(copied).collect::<Result<_>>()?)
        }
        Value::String(text) => {
            let mut copy = String::new();
            work::append_text(&mut copy, text);
            Value::String(copy)
        }
        scalar => scalar.clone(),
    })
}

/// An error that makes a predicate unknown; others are errors of the call.
fn unknown(e: Error) -> Result<Truth> {
    if is_suppressed(&e) { Ok(None) } else { Err(e) }
}

fn compare(op: Op, left: &Value, right: &Value) -> Truth {
    use std::cmp::Ordering;
    let order = match (left, right) {
        (Value::Null, Value::Null) => Ordering::Equal,
        // NULL differs from everything else, and is not in order with it.
        (Value::Null, _) | (_, Value::Null) => return Some(op == Op::NotEqual),
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Number(a), Value::Number(b)) => a.cmp(b),
        (Value::String(a), Value::String(b)) => a.as_bytes().cmp(b.as_bytes()),
        _ => return None,
    };
    Some(holds(op, order))
}

fn holds(op: Op, order: std::cmp::Ordering) -> bool {
    match op {
        Op::Equal => order.is_eq(),
        Op::NotEqual => order.is_ne(),
        Op::Less => order.is_lt(),
        Op::LessOrEqual => order.is_le(),
        Op::Greater => order.is_gt(),
        _ => order.is_ge(),
    }
}

fn double(item: &Value, only: &dyn Fn(&str) -> String) -> Result<Value> {
    match item {
        Value::Number(n) => match n.to_float8() {
            Ok(v) if v.is_finite() => Ok(item.clone()),
            _ => Err(error(
                NON_NUMERIC,
                "numeric argument of jsonpath item method .double() is out of range for type double precision",
            )),
        },
        Value::String(text) => match io::parse_float8(text) {
            Ok(v) if v.is_finite() => Ok(Value::Number(Numeric::from_f64(v))),
            _ => Err(error(
                NON_NUMERIC,
                "string argument of jsonpath item method .double() is not a valid representation of a double \
                 precision number",
            )),
        },
        _ => Err(error(NON_NUMERIC, only("a string or numeric value"))),
    }
}

fn regex_options(flags: RegexFlags) -> Options {
    Options {
        ignore_case: flags.ignore_case,
        dot_excludes_newline: !flags.dot_all && !flags.quoted,
        line_anchors: flags.multi_line,
        literal: flags.quoted,
        ..Options::default()
    }
}

/// Compiles the regular expressions in a path.
pub(super) fn check_patterns(expr: &[Node]) -> Result<()> {
    for node in expr {
        match node {
            Node::LikeRegex { expr, pattern, flags } => {
                pattern::compiled(pattern, regex_options(*flags))?;
                check_patterns(expr)?;
            }
            Node::Binary(_, left, right) => {
                check_patterns(left)?;
                check_patterns(right)?;
            }
            Node::Sign(_, e) | Node::Not(e) | Node::IsUnknown(e) | Node::Exists(e) | Node::Filter(e) => {
                check_patterns(e)?
            }
            _ => {}
        }
    }
    Ok(())
}
