//! Function calls: scalar functions, aggregates, casts in the form of calls (`parse_func.c`, `parse_agg.c`).

use base::{Oid, Result, SqlState};
use rupg_sql::nodes::{CoercionForm, FuncCall, Node};
use sql_functions::{self as functions, Aggregate, CastContext, Function, SetFunction, extensions};
use sql_ir::{AggCall, Body, CastKind, Expr, Query, RelKind, Ty};
use types::{Datum, array_of, element_of, oid};

use super::coerce::{Pathway, category, pathway};
use super::node::{function_location, strings};
use super::resolve::{Ambiguity, Candidate, choose_candidate};
use super::scope::ClauseKind;
use super::visit::{aggregate_parts_mut, same_aggregate, shift_levels, walk};
use super::{Binder, Located, fold, types as type_names};

/// Anything that a call can mean.
#[derive(Clone, Copy)]
pub(super) enum Callee {
    /// A scalar function.
    Scalar(&'static Function),
    /// An aggregate.
    Aggregate(&'static Aggregate),
    /// A set-returning function.
    Set(&'static SetFunction),
    /// A window function.
    Window(&'static functions::WindowFunction),
}

/// A callee with its arguments laid out for a call of some width.
#[derive(Clone, Copy)]
pub(super) struct Overload {
    pub(super) callee: Callee,
    declared: &'static [Oid],
    /// Element type that arguments from the last declared one on have.
    variadic: Option<Oid>,
}

impl Candidate for Overload {
    fn arg(&self, i: usize) -> Oid {
        match self.variadic {
            Some(element) if i + 1 >= self.declared.len() => element,
            _ => self.declared.get(i).copied().unwrap_or(oid::ANY),
        }
    }
}

impl Overload {
    fn of(
        callee: Callee,
        declared: &'static [Oid],
        variadic: bool,
        defaults: usize,
        count: usize,
        spread: bool,
    ) -> Option<Overload> {
        if variadic && spread {
            let last = *declared.last()?;
            let element = match last {
                oid::ANY => oid::ANY,
                oid::ANYARRAY => oid::ANYELEMENT,
                oid::ANYCOMPATIBLEARRAY => oid::ANYCOMPATIBLE,
                array => element_of(array)?,
            };
            return (count >= declared.len()).then_some(Overload { callee, declared, variadic: Some(element) });
        }
        let fits = count <= declared.len() && count + defaults >= declared.len();
        fits.then_some(Overload { callee, declared, variadic: None })
    }
}

/// Arguments in the order of a function's declaration, those left out by their defaults; `None` if they do not fit.
fn placed(
    names: &[&str],
    types: &[base::Oid],
    defaults: &[Datum],
    given: &[(Option<&str>, Located)],
) -> Option<Vec<Located>> {
    let mut places: Vec<Option<Located>> = vec![None; types.len()];
    for (i, (name, value)) in given.iter().enumerate() {
        let place = match name {
            Some(name) => names.iter().position(|n| n == name)?,
            None => i,
        };
        if places.get_mut(place)?.replace(value.clone()).is_some() {
            return None;
        }
    }
    let first_default = types.len() - defaults.len();
    let fill = |(i, place): (usize, Option<Located>)| match place {
        Some(value) => Some(value),
        None => {
            let default = defaults.get(i.checked_sub(first_default)?)?.clone();
            Some(Located { expr: Expr::Const(default, Ty::of(types[i])), at: -1 })
        }
    };
    places.into_iter().enumerate().map(fill).collect()
}

/// The type that values of a type are held as.
fn held_type(ty: Oid) -> Oid {
    types::user::plain_type(ty, -1).0
}

/// The types of arguments, as the constant that some functions are passed before them.
fn type_list(args: &[Expr], shown: fn(Oid) -> Oid) -> Expr {
    let values: Vec<Datum> = args.iter().map(|a| Datum::Oid(shown(a.ty().oid).0)).collect();
    let dims = if values.is_empty() { Vec::new() } else { vec![(values.len() as i32, 1)] };
    Expr::Const(Datum::Array(types::Array { element: oid::OID, dims, values }.into()), Ty::of(oid::OID_ARRAY))
}

/// Whether a function is there for a cast only: those of whole numbers to names in the catalog have other names in PostgreSQL.
fn is_only_cast(f: &functions::Function) -> bool {
    matches!(f.args, [oid::INT2 | oid::INT4 | oid::INT8]) && super::regtypes::is_catalog_type(f.ret)
}

/// All overloads of a name that take `count` arguments. Functions that binding alone calls have names with a space; no statement
/// reaches them by quoting it.
fn overloads(name: &str, count: usize, spread: bool) -> Vec<Overload> {
    let mut out = Vec::new();
    if name.contains(' ') {
        return out;
    }
    for &f in functions::functions_named(name).iter().filter(|f| !is_only_cast(f)) {
        out.extend(Overload::of(Callee::Scalar(f), f.args, f.variadic, f.defaults.len(), count, spread));
    }
    for &a in functions::aggregates_named(name) {
        out.extend(Overload::of(Callee::Aggregate(a), a.args, false, 0, count, spread));
    }
    for w in functions::window_functions_named(name) {
        out.extend(Overload::of(Callee::Window(w), w.args, false, 0, count, spread));
    }
    for &s in functions::set_functions_named(name) {
        out.extend(Overload::of(Callee::Set(s), s.args, s.variadic, 0, count, spread));
    }
    out
}

impl<'a> Binder<'a, '_> {
    /// The function's own name; its schema must be pg_catalog, where all functions are.
    pub(super) fn function_name<'n>(&self, call: &'n FuncCall) -> Result<&'n str> {
        let names = strings(&call.funcname);
        match names.as_slice() {
            [name] | ["pg_catalog", name] | [_, "pg_catalog", name] => Ok(name),
            ["information_schema", name] if name.starts_with("_pg_") => Ok(name),
            [schema, _] if self.cx.catalog.schema(self.cx.identity.database_oid, schema).is_none() => {
                let message = format!("schema \"{schema}\" does not exist");
                Err(self.error(SqlState::INVALID_SCHEMA_NAME, message, call.location))
            }
            // The call cannot resolve; the error names what was written.
            _ => Ok(""),
        }
    }

    /// Functions of extensions that a call's name may mean.
    fn extension_functions(&self, call: &FuncCall) -> Result<Vec<&'static Function>> {
        let names = strings(&call.funcname);
        let (catalog, identity) = (&self.cx.catalog, &self.cx.identity);
        let names = match names.as_slice() {
            [database, rest @ ..] if rest.len() == 2 && *database == identity.database => rest,
            names => names,
        };
        let found = extensions::visible(catalog, identity.database_oid, &identity.search_path, names);
        if let ([_, _], Some((schema, _))) = (names, found.first()) {
            let placed = |error: base::Error| self.error(error.code(), error.fields().message.clone(), call.location);
            self.may_use(*schema).map_err(placed)?;
        }
        Ok(found.into_iter().map(|(_, function)| function).collect())
    }

    /// Finds what a call means.
    pub(super) fn find_callee(&self, call: &FuncCall, args: &[Located]) -> Result<Option<Overload>> {
        let name = self.function_name(call)?;
        let types: Vec<Oid> = args.iter().map(|a| a.expr.ty().oid).collect();
        let mut all = overloads(name, args.len(), !call.func_variadic);
        for function in self.extension_functions(call)? {
            all.extend(Overload::of(Callee::Scalar(function), function.args, false, 0, args.len(), false));
        }
        let plain: Vec<Overload> = all.iter().filter(|o| o.variadic.is_none()).copied().collect();
        // A variadic overload is looked at only where no plain one has its argument types.
        let is_hidden = |o: &&Overload| plain.iter().any(|p| (0..types.len()).all(|i| p.arg(i) == o.arg(i)));
        let mut candidates = plain.clone();
        candidates.extend(all.iter().filter(|o| o.variadic.is_some()).filter(|o| !is_hidden(o)));
        if let Some(exact) = candidates.iter().find(|c| (0..types.len()).all(|i| c.arg(i) == types[i])) {
            return Ok(Some(*exact));
        }
        // A call of a type's name with one argument is a cast, if it is one that no function must do.
        if let ([argument], false) = (args, call.agg_star)
            && self.is_cast_call(call, name, &argument.expr)
        {
            return Ok(None);
        }
        match choose_candidate(&candidates, &types) {
            Ok(found) => Ok(Some(found)),
            Err(why) => Err(self.function_error(call, &types, why)),
        }
    }

    fn is_cast_call(&self, call: &FuncCall, name: &str, argument: &Expr) -> bool {
        let from = argument.ty().oid;
        if !call.agg_order.is_empty() || call.agg_distinct || call.over.is_some() || call.agg_filter.is_some() {
            return false;
        }
        let Some(info) = type_names::look_up(&[name], None).filter(|t| t.name == name) else { return false };
        if from == oid::UNKNOWN {
            // A literal is read as that type; a parameter without a type is one for overload resolution.
            return matches!(argument, Expr::Const(..)) || category(info.oid) == 'S';
        }
        match pathway(from, info.oid, CastContext::Explicit) {
            Some(Pathway::Relabel) => true,
            Some(Pathway::InOut) => {
                // Not for composite sources and string targets; those are field selections.
                from != oid::RECORD
            }
            // Numbers become names in the catalog for free in PostgreSQL.
            Some(Pathway::Function(_)) if super::regtypes::is_catalog_type(info.oid) => from == oid::INT4,
            Some(Pathway::Function(_) | Pathway::Elements) => functions::functions_named(name).is_empty(),
            None => false,
        }
    }

    pub(super) fn function_error(&self, call: &FuncCall, types: &[Oid], why: Ambiguity) -> base::Error {
        let shown: Vec<String> = types.iter().map(|&t| self.type_name(t)).collect();
        let name = strings(&call.funcname).join(".");
        let arguments = if call.agg_star { "*".to_string() } else { shown.join(", ") };
        let _ = &arguments;
        let signature = format!("{name}({})", shown.join(", "));
        let at = call.location;
        match why {
            Ambiguity::Many => self
                .error(SqlState::AMBIGUOUS_FUNCTION, format!("function {signature} is not unique"), at)
                .hint("Could not choose a best candidate function. You might need to add explicit type casts."),
            Ambiguity::None if !call.agg_order.is_empty() && !call.agg_within_group => {
                self.error(SqlState::UNDEFINED_FUNCTION, format!("function {signature} does not exist"), at).hint(
                    "No aggregate function matches the given name and argument types. Perhaps you misplaced ORDER BY; \
                     ORDER BY must appear after all regular arguments of the aggregate.",
                )
            }
            Ambiguity::None => {
                self.error(SqlState::UNDEFINED_FUNCTION, format!("function {signature} does not exist"), at).hint(
                    "No function matches the given name and argument types. You might need to add explicit type casts.",
                )
            }
        }
    }

    #[inline(never)]
    pub(super) fn func_call(&mut self, call: &'a FuncCall) -> Result<Located> {
        let at = function_location(call);
        if let Some(over) = &call.over {
            return self.window_call(call, over, at);
        }
        if call.agg_within_group {
            return self.ordered_set_call(call, at);
        }
        if let Some(fields) = self.row_of_document(call)? {
            let fields = fields.into_iter().map(|(_, value)| value).collect();
            return Ok(Located { expr: Expr::Row(fields, Ty::of(oid::RECORD)), at });
        }
        let mentions = self.scopes.iter().map(|s| s.mentions.len()).collect::<Vec<_>>();
        let named = call.args.iter().flatten().any(|n| matches!(n, Node::NamedArgExpr(_)));
        let mut args = if named { self.named_arguments(call)? } else { self.exprs(&call.args)? };
        if self.rows_as_documents(call, &mut args)? {
            let expr = args.swap_remove(0).expr;
            return Ok(Located { expr, at });
        }
        let Some(found) = self.find_callee(call, &args)? else { return self.cast_call_form(call, args) };
        match found.callee {
            Callee::Scalar(function) => {
                self.only_for_aggregates(call)?;
                self.note_function(call, function);
                let expr = self.scalar_call(function, found, args, call)?;
                Ok(Located { expr, at })
            }
            Callee::Aggregate(aggregate) => {
                let expr = self.aggregate(aggregate, found, args, call, &mentions)?;
                Ok(Located { expr, at })
            }
            Callee::Set(function) if super::set_calls::allowed(self.place()) => {
                self.only_for_aggregates(call)?;
                let expr = self.set_call(call, found, function, args, function.name)?;
                Ok(Located { expr, at })
            }
            Callee::Set(_) => Err(self.misplaced_set(call)),
            Callee::Window(function) => {
                let message = format!("window function {} requires an OVER clause", function.name);
                Err(self.error(SqlState::WRONG_OBJECT_TYPE, message, call.location))
            }
        }
    }

    /// Arguments of which some have names, in the order the function declares them.
    #[inline(never)]
    pub(super) fn named_arguments(&mut self, call: &'a FuncCall) -> Result<Vec<Located>> {
        let name = self.function_name(call)?;
        let mut given: Vec<(Option<&str>, Located)> = Vec::with_capacity(call.args.len());
        for node in call.args.iter().flatten() {
            let (name, value, at) = match node {
                Node::NamedArgExpr(named) => (named.name.as_deref(), named.arg.as_ref(), named.location),
                node => (None, Some(node), -1),
            };
            if name.is_some() && given.iter().any(|g| g.0 == name) {
                let message = format!("argument name \"{}\" used more than once", name.unwrap_or_default());
                return Err(self.error(SqlState::SYNTAX_ERROR, message, at));
            }
            if name.is_none() && given.iter().any(|g| g.0.is_some()) {
                let message = "positional argument cannot follow named argument";
                return Err(self.error(SqlState::SYNTAX_ERROR, message, super::node::location(node)));
            }
            given.push((name, self.operand(value)?));
        }
        for &function in functions::functions_named(name).iter().filter(|_| !name.contains(' ')) {
            let names = function.names;
            if let Some(args) = placed(names, function.args, function.defaults, &given) {
                return Ok(args);
            }
        }
        for function in self.extension_functions(call)? {
            if let Some(args) = placed(function.names, function.args, &[], &given) {
                return Ok(args);
            }
        }
        for &function in functions::set_functions_named(name) {
            let (names, defaults) = (function.names, function.defaults);
            if let Some(args) = placed(names, function.args, defaults, &given) {
                return Ok(args);
            }
        }
        let shown: Vec<String> = given
            .iter()
            .map(|(name, value)| {
                let ty = self.type_name(value.expr.ty().oid);
                name.map_or_else(|| ty.clone(), |name| format!("{name} => {ty}"))
            })
            .collect();
        let message = format!("function {}({}) does not exist", strings(&call.funcname).join("."), shown.join(", "));
        Err(self
            .error(SqlState::UNDEFINED_FUNCTION, message, call.location)
            .hint("No function matches the given name and argument types. You might need to add explicit type casts."))
    }

    pub(super) fn misplaced_set(&self, call: &FuncCall) -> base::Error {
        let message = format!("set-returning functions are not allowed in {}", self.place().name());
        self.error(SqlState::FEATURE_NOT_SUPPORTED, message, call.location)
    }

    /// `typename(x)`
    fn cast_call_form(&mut self, call: &FuncCall, args: Vec<Located>) -> Result<Located> {
        let name = self.function_name(call)?;
        let at = call.location;
        let (Some(info), Some(value)) = (type_names::look_up(&[name], None), args.into_iter().next()) else {
            return Err(base::Error::internal("a cast without a type"));
        };
        let from = value.expr.ty().oid;
        match self.coerce_to(value, Ty::of(info.oid), CastContext::Explicit, at)? {
            Some(value) => Ok(Located { expr: value.expr, at }),
            None => Err(self.cannot_cast(from, info.oid, at)),
        }
    }

    /// What only aggregates take.
    fn only_for_aggregates(&self, call: &FuncCall) -> Result<()> {
        let name = strings(&call.funcname).join(".");
        let what = if call.agg_star {
            format!("{name}(*) specified, but {name} is not an aggregate function")
        } else if call.agg_distinct {
            format!("DISTINCT specified, but {name} is not an aggregate function")
        } else if !call.agg_order.is_empty() {
            format!("ORDER BY specified, but {name} is not an aggregate function")
        } else if call.agg_filter.is_some() {
            format!("FILTER specified, but {name} is not an aggregate function")
        } else {
            return Ok(());
        };
        Err(self.error(SqlState::WRONG_OBJECT_TYPE, what, call.location))
    }

    fn scalar_call(
        &mut self,
        function: &'static Function,
        found: Overload,
        args: Vec<Located>,
        call: &FuncCall,
    ) -> Result<Expr> {
        let function = match call.funcformat {
            CoercionForm::COERCE_SQL_SYNTAX => functions::in_words(function),
            _ => function,
        };
        let given = args.len();
        let declared: Vec<Oid> = (0..given).map(|i| found.arg(i)).collect();
        let (mut args, ty) = self.coerce_arguments(args, &declared, function.ret, None, function.name)?;
        if found.variadic.is_none() {
            let missing = function.args.len() - given;
            let first = function.defaults.len() - missing.min(function.defaults.len());
            for (i, default) in function.defaults[first..].iter().enumerate() {
                args.push(Expr::Const(default.clone(), Ty::of(function.args[given + i])));
            }
        } else if function.args.last() != Some(&oid::ANY) {
            // The variable arguments are handed over as one array.
            let fixed = function.args.len() - 1;
            let elements = args.split_off(fixed);
            let element = elements.first().map_or(oid::TEXT, |e| e.ty().oid);
            let Some(array) = array_of(element) else {
                let message = format!("could not find array type for data type {}", self.type_name(element));
                return Err(self.error(SqlState::UNDEFINED_OBJECT, message, call.location));
            };
            args.push(Expr::Array { elements, element, nested: false, ty: Ty::of(array) });
        }
        if call.func_variadic && function.variadic && function.args.last() == Some(&oid::ANY) {
            return self.variadic_call(function, args, ty, call);
        }
        if function.wants_types {
            let names_domains = function.name == "pg_typeof";
            args.insert(0, type_list(&args, if names_domains { |ty| ty } else { held_type }));
        }
        let shown_by_name = self.cx.keeps_calls && functions::has_two_forms(function, args.len(), ty.oid);
        let expr = fold::call(self.cx, function, args, ty, call.location);
        Ok(match shown_by_name {
            true => {
                let (arg, kind) = (Box::new(expr), CastKind::Called);
                Expr::Cast { arg, ty, kind, explicit: true, location: call.location }
            }
            false => expr,
        })
    }

    /// `f(…, VARIADIC array)` of a function that takes anything.
    fn variadic_call(&self, function: &'static Function, args: Vec<Expr>, ty: Ty, call: &FuncCall) -> Result<Expr> {
        let is_array = args.last().is_some_and(|a| super::coerce::is_array(super::coerce::base_of(a.ty().oid)));
        if !is_array {
            let at = call.args.last().and_then(Option::as_ref).map_or(-1, super::node::location);
            return Err(self.error(SqlState::DATATYPE_MISMATCH, "VARIADIC argument must be an array", at));
        }
        let wrapper = functions::functions_named("variadic call").first().copied();
        let wrapper = wrapper.ok_or_else(|| base::Error::internal("no function for VARIADIC"))?;
        let number = Expr::Const(Datum::Int8(i64::from(function.oid)), Ty::of(oid::INT8));
        let mut all = vec![number, type_list(&args, held_type)];
        all.extend(args);
        Ok(Expr::Call { function: wrapper, args: all, ty, location: call.location })
    }

    /// Arguments of a set-returning function in FROM.
    pub(super) fn set_arguments(
        &mut self,
        found: Overload,
        function: &'static SetFunction,
        args: Vec<Located>,
    ) -> Result<(Vec<Expr>, Vec<Oid>)> {
        let declared: Vec<Oid> = (0..args.len()).map(|i| found.arg(i)).collect();
        let actual: Vec<(Oid, i32)> = args.iter().map(|a| (a.expr.ty().oid, a.at)).collect();
        let mut outputs = Vec::with_capacity(function.columns.len());
        for (_, ty) in function.columns {
            let decided = self.decide_polymorphic(&declared, &actual, *ty, function.name);
            outputs.push(decided?.1);
        }
        let (args, _) = self.coerce_arguments(args, &declared, oid::VOID, None, function.name)?;
        Ok((args, outputs))
    }

    /// An aggregate call: `transformAggregateCall`.
    fn aggregate(
        &mut self,
        aggregate: &'static Aggregate,
        found: Overload,
        args: Vec<Located>,
        call: &'a FuncCall,
        mentions: &[usize],
    ) -> Result<Expr> {
        self.check_within_group(aggregate, call)?;
        let name = strings(&call.funcname).join(".");
        if call.args.is_empty() && !call.agg_star && aggregate.args.is_empty() {
            let message = format!("{name}(*) must be used to call a parameterless aggregate function");
            return Err(self.error(SqlState::WRONG_OBJECT_TYPE, message, call.location));
        }
        for arg in &args {
            self.refuse_set_call(&arg.expr, "aggregate function calls cannot contain set-returning function calls")?;
        }
        if let Some(arg) = args.iter().find(|a| self.has_window_call(&a.expr)) {
            let message = "aggregate function calls cannot contain window function calls";
            return Err(self.error(SqlState::GROUPING_ERROR, message, arg.at));
        }
        let declared: Vec<Oid> = (0..args.len()).map(|i| found.arg(i)).collect();
        let written: Vec<Expr> = match call.agg_distinct && !call.agg_order.is_empty() {
            true => args.iter().map(|arg| arg.expr.clone()).collect(),
            false => Vec::new(),
        };
        let (args, ty) = self.coerce_arguments(args, &declared, aggregate.ret, None, aggregate.name)?;
        let filter = match &call.agg_filter {
            Some(node) => Some(self.at_place(ClauseKind::Filter, |b| {
                let value = b.expr(node)?;
                b.coerce_to_boolean(value, "FILTER")
            })?),
            None => None,
        };
        let order_by = self.aggregate_order(call, &args, &written)?;
        if call.agg_distinct {
            self.check_distinct_aggregate(call, &args, &order_by)?;
        }
        let direct = Vec::new();
        let agg = AggCall { aggregate, args, direct, distinct: call.agg_distinct, order_by, filter, ty };
        self.add_aggregate(agg, call, mentions)
    }

    /// Gives an aggregate call to the query level it belongs to; `mentions` is how many columns had been named before it.
    pub(super) fn add_aggregate(&mut self, mut agg: AggCall, call: &FuncCall, mentions: &[usize]) -> Result<Expr> {
        let ty = agg.ty;
        let level = self.aggregate_level(&agg, call)?;
        let index = self.scopes.len() - 1 - level;
        self.check_aggregate_place(index, call)?;
        aggregate_parts_mut(&mut agg, &mut |e| shift_levels(e, -(level as isize)));
        let scope = &mut self.scopes[index];
        let first = mentions.get(index).copied().unwrap_or(0);
        scope.mentions[first..].iter_mut().for_each(|m| m.in_aggregate = true);
        if scope.first_aggregate < 0 {
            scope.first_aggregate = call.location;
        }
        let number = match scope.aggs.iter().position(|a| same_aggregate(a, &agg)) {
            Some(number) => number,
            None => {
                scope.aggs.push(agg);
                scope.aggs.len() - 1
            }
        };
        Ok(Expr::Agg { level, index: number, ty })
    }

    /// The keys of ORDER BY in an aggregate call. One that is an argument as it was `written` is the argument, with its implicit cast.
    fn aggregate_order(
        &mut self,
        call: &'a FuncCall,
        args: &[Expr],
        written: &[Expr],
    ) -> Result<Vec<(Expr, bool, bool)>> {
        let mut keys = Vec::with_capacity(call.agg_order.len());
        for node in call.agg_order.iter().flatten() {
            let Node::SortBy(sort) = node else { continue };
            let Some(node) = &sort.node else { continue };
            let value = self.expr(node)?;
            let value = self.resolve_unknown(value)?;
            // An untyped literal among the arguments has got its type there.
            let as_written = || written.iter().position(|arg| super::equal::same(arg, &value.expr));
            let place = args.iter().position(|arg| super::equal::same(arg, &value.expr)).or_else(as_written);
            let expr = place.map(|at| args[at].clone()).unwrap_or(value.expr);
            let (descending, nulls_first) = self.sort_direction(sort)?;
            self.check_sortable(&expr, value.at)?;
            keys.push((expr, descending, nulls_first));
        }
        Ok(keys)
    }

    fn check_distinct_aggregate(&self, call: &FuncCall, args: &[Expr], order_by: &[(Expr, bool, bool)]) -> Result<()> {
        if args.is_empty() {
            let message = "DISTINCT is not implemented for this aggregate";
            return Err(self.error(SqlState::FEATURE_NOT_SUPPORTED, message, call.location));
        }
        for (i, (expr, _, _)) in order_by.iter().enumerate() {
            if !args.iter().any(|a| super::equal::same(a, expr)) {
                let message = "in an aggregate with DISTINCT, ORDER BY expressions must appear in argument list";
                let at = call.agg_order.get(i).and_then(Option::as_ref).map_or(-1, super::node::location);
                return Err(self.error(SqlState::INVALID_COLUMN_REFERENCE, message, at));
            }
        }
        for (arg, node) in args.iter().zip(&call.args) {
            let at = node.as_ref().map_or(-1, super::node::location);
            self.check_groupable(arg, at)?;
            if let Some(unsortable) = self.unsortable(arg, at) {
                return Err(unsortable.detail("Aggregates with DISTINCT must be able to sort their inputs."));
            }
        }
        Ok(())
    }

    /// The query level an aggregate belongs to: that of its innermost column, direct arguments apart (`check_agg_arguments`).
    fn aggregate_level(&self, agg: &AggCall, call: &FuncCall) -> Result<usize> {
        let keys = agg.order_by.iter().map(|(key, ..)| key);
        let own = Innermost::of(agg.args.iter().chain(keys).chain(&agg.filter));
        let level = match (own.column, own.aggregate) {
            (Some(c), Some(n)) => c.min(n),
            (c, n) => c.or(n).unwrap_or(0),
        };
        let nested = |at: i32| self.error(SqlState::GROUPING_ERROR, "aggregate function calls cannot be nested", at);
        let first = call.args.iter().flatten().map(super::node::location).next().unwrap_or(call.location);
        if own.aggregate == Some(level) {
            return Err(nested(first));
        }
        if let Some(name) = self.cte_within(&own.ctes, level) {
            let message = "outer-level aggregate cannot use a nested CTE";
            return Err(self
                .unsupported(message, call.location)
                .detail(format!("CTE \"{name}\" is below the aggregate's semantic level.")));
        }
        let direct = Innermost::of(&agg.direct);
        if direct.column.is_some_and(|column| column < level) {
            let message = "outer-level aggregate cannot contain a lower-level variable in its direct arguments";
            return Err(self.error(SqlState::GROUPING_ERROR, message, first));
        }
        if direct.aggregate.is_some_and(|nested| nested <= level) {
            return Err(nested(first));
        }
        Ok(level)
    }

    /// The name of the first of these WITH queries that belongs to a query inside of the one at a level.
    fn cte_within(&self, ctes: &[usize], level: usize) -> Option<&str> {
        let inside = &self.scopes[self.scopes.len() - level..];
        let mut known = inside.iter().flat_map(|scope| &scope.ctes);
        known.find(|cte| ctes.contains(&cte.id)).map(|cte| cte.name())
    }

    fn check_aggregate_place(&self, index: usize, call: &FuncCall) -> Result<()> {
        let scope = &self.scopes[index];
        let message = match scope.place {
            ClauseKind::Targets
            | ClauseKind::Having
            | ClauseKind::OrderBy
            | ClauseKind::DistinctOn
            | ClauseKind::Window => return Ok(()),
            ClauseKind::FromFunction => "aggregate functions are not allowed in functions in FROM".to_string(),
            ClauseKind::From => {
                "aggregate functions are not allowed in FROM clause of their own query level".to_string()
            }
            place => format!("aggregate functions are not allowed in {}", place.name()),
        };
        Err(self.error(SqlState::GROUPING_ERROR, message, call.location))
    }

    /// A NULL of a type.
    pub(super) fn null(ty: Ty) -> Expr {
        Expr::Const(Datum::Null, ty)
    }
}

/// What is innermost in the arguments of an aggregate, by how many queries further out than the call it belongs to.
#[derive(Default)]
struct Innermost {
    column: Option<usize>,
    aggregate: Option<usize>,
    /// WITH queries that subqueries in them read.
    ctes: Vec<usize>,
}

impl Innermost {
    fn of<'e>(exprs: impl IntoIterator<Item = &'e Expr>) -> Innermost {
        let mut found = Innermost::default();
        for expr in exprs {
            walk(expr, 0, &mut |e, depth| {
                let (level, slot) = match e {
                    Expr::Column(c) => (c.level, &mut found.column),
                    Expr::WholeRow { level, .. } => (*level, &mut found.column),
                    Expr::Agg { level, .. } => (*level, &mut found.aggregate),
                    Expr::Subquery { query, .. } => return read_ctes(query, &mut found.ctes),
                    _ => return,
                };
                if let Some(level) = level.checked_sub(depth) {
                    *slot = Some(slot.map_or(level, |s: usize| s.min(level)));
                }
            });
        }
        found
    }
}

/// The WITH queries that a query reads, its subqueries in FROM included.
fn read_ctes(query: &Query, out: &mut Vec<usize>) {
    for rel in &query.rels {
        match &rel.kind {
            RelKind::Cte { id, .. } => out.push(*id),
            RelKind::Subquery { query, .. } => read_ctes(query, out),
            _ => {}
        }
    }
    if let Body::SetOp { left, right, .. } = &query.body {
        read_ctes(left, out);
        read_ctes(right, out);
    }
}
