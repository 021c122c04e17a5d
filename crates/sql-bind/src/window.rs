//! Calls with OVER, and the WINDOW clause (`parse_func.c`, `parse_clause.c`).

use base::{Error, Oid, Result, SqlState};
use rupg_sql::nodes::{
    FRAMEOPTION_DEFAULTS, FRAMEOPTION_END_CURRENT_ROW, FRAMEOPTION_END_OFFSET_PRECEDING,
    FRAMEOPTION_END_UNBOUNDED_PRECEDING, FRAMEOPTION_EXCLUDE_CURRENT_ROW, FRAMEOPTION_EXCLUDE_GROUP,
    FRAMEOPTION_EXCLUDE_TIES, FRAMEOPTION_GROUPS, FRAMEOPTION_NONDEFAULT, FRAMEOPTION_ROWS,
    FRAMEOPTION_START_CURRENT_ROW, FRAMEOPTION_START_OFFSET_FOLLOWING, FRAMEOPTION_START_OFFSET_PRECEDING,
    FRAMEOPTION_START_UNBOUNDED_FOLLOWING, FRAMEOPTION_START_UNBOUNDED_PRECEDING, FuncCall, Node, WindowDef,
};
use sql_functions::CastContext;
use sql_ir::{
    Column, Exclude, Expr, FrameBound, FrameMode, Rel, RelColumn, RelKind, Ty, WindowCall, WindowCallee, WindowFrame,
};
use types::oid;

use super::coerce::{base_of, can_coerce};
use super::equal::same;
use super::func::Callee;
use super::node::{location, strings};
use super::scope::ClauseKind;
use super::visit::{has_columns, walk};
use super::{Binder, Located};

/// Bits of `frameOptions` that the generated constants leave out.
const FRAMEOPTION_END_UNBOUNDED_FOLLOWING: i32 = 0x100;
const FRAMEOPTION_END_OFFSET_FOLLOWING: i32 = 0x4000;

/// A window: parts of its own definition and of those it is made from.
#[derive(Clone, Copy)]
struct Window<'a> {
    partition: &'a [Option<Node>],
    order: &'a [Option<Node>],
    frame: &'a WindowDef,
}

/// A window whose expressions are bound.
struct BoundWindow {
    partition: Vec<Expr>,
    order: Vec<(Expr, bool, bool)>,
    frame: WindowFrame,
}

impl<'a> Binder<'a, '_> {
    /// A call with OVER: a column of a rel of its own.
    pub(super) fn window_call(&mut self, call: &'a FuncCall, over: &'a WindowDef, at: i32) -> Result<Located> {
        let args = self.exprs(&call.args)?;
        let name = strings(&call.funcname).join(".");
        if call.agg_within_group {
            let message = format!("OVER is not supported for ordered-set aggregate {name}");
            return Err(self.unsupported(message, call.location));
        }
        let Some(found) = self.find_callee(call, &args)? else {
            let message = format!("OVER specified, but {name} is not a window function nor an aggregate function");
            return Err(self.error(SqlState::WRONG_OBJECT_TYPE, message, call.location));
        };
        for arg in &args {
            self.refuse_set_call(&arg.expr, "window function calls cannot contain set-returning function calls")?;
        }
        let nested = args.iter().find(|a| self.has_window_call(&a.expr)).map(|a| a.at);
        let declared: Vec<Oid> = (0..args.len()).map(|i| super::resolve::Candidate::arg(&found, i)).collect();
        let (callee, ret, own_name) = match found.callee {
            Callee::Window(function) => (WindowCallee::Function(function.kind), function.ret, function.name),
            Callee::Aggregate(a) if a.ordered_set => {
                let message = format!("OVER is not supported for ordered-set aggregate {name}");
                return Err(self.unsupported(message, call.location));
            }
            Callee::Aggregate(aggregate) => (WindowCallee::Aggregate(aggregate), aggregate.ret, aggregate.name),
            Callee::Scalar(_) | Callee::Set(_) => {
                let message = format!("OVER specified, but {name} is not a window function nor an aggregate function");
                return Err(self.error(SqlState::WRONG_OBJECT_TYPE, message, call.location));
            }
        };
        let (args, ty) = self.coerce_arguments(args, &declared, ret, None, own_name)?;
        self.check_window_call(call, &callee, &name, args.is_empty())?;
        let filter = match &call.agg_filter {
            Some(node) => Some(self.at_place(ClauseKind::Filter, |b| {
                let value = b.expr(node)?;
                b.coerce_to_boolean(value, "FILTER")
            })?),
            None => None,
        };
        if let Some(at) = nested {
            return Err(self.error(SqlState::WINDOWING_ERROR, "window function calls cannot be nested", at));
        }
        let place = self.place();
        if !matches!(place, ClauseKind::Targets | ClauseKind::OrderBy | ClauseKind::DistinctOn) {
            let message = format!("window functions are not allowed in {}", place.name());
            return Err(self.error(SqlState::WINDOWING_ERROR, message, call.location));
        }
        let window = self.window_of(over)?;
        let BoundWindow { partition, order, frame } = self.bind_window(window, over.location)?;
        let rel = self.window_rel(WindowCall { callee, args, filter, partition, order, frame, ty });
        Ok(Located { expr: Expr::Column(Column { level: 0, rel, column: 0, ty }), at })
    }

    /// What a call with OVER may not have.
    fn check_window_call(&self, call: &FuncCall, callee: &WindowCallee, name: &str, no_args: bool) -> Result<()> {
        let is_aggregate = matches!(callee, WindowCallee::Aggregate(_));
        if call.agg_distinct {
            return Err(self.unsupported("DISTINCT is not implemented for window functions", call.location));
        }
        if is_aggregate && no_args && !call.agg_star {
            let message = format!("{name}(*) must be used to call a parameterless aggregate function");
            return Err(self.error(SqlState::WRONG_OBJECT_TYPE, message, call.location));
        }
        if !call.agg_order.is_empty() {
            let message = "aggregate ORDER BY is not implemented for window functions";
            return Err(self.unsupported(message, call.location));
        }
        if !is_aggregate && call.agg_filter.is_some() {
            let message = "FILTER is not implemented for non-aggregate window functions";
            return Err(self.unsupported(message, call.location));
        }
        Ok(())
    }

    /// Whether an expression has a window function of this level in it.
    pub(super) fn has_window_call(&self, expr: &Expr) -> bool {
        let Some(scope) = self.scopes.last() else { return false };
        let mut found = false;
        walk(expr, 0, &mut |e, depth| {
            if let Expr::Column(c) = e
                && c.level == depth
            {
                found |= scope.rels.get(c.rel).is_some_and(|rel| matches!(rel.kind, RelKind::Window(_)));
            }
        });
        found
    }

    /// The window that OVER names or defines.
    fn window_of(&self, over: &'a WindowDef) -> Result<Window<'a>> {
        let known = self.scopes.last().map_or(&[][..], |s| s.windows);
        match &over.name {
            Some(name) => self.named_window(name, known, over.location),
            None => self.define_window(over, known),
        }
    }

    fn named_window(&self, name: &str, known: &'a [Option<Node>], at: i32) -> Result<Window<'a>> {
        for (i, node) in known.iter().enumerate() {
            if let Some(Node::WindowDef(def)) = node
                && def.name.as_deref() == Some(name)
            {
                return self.define_window(def, &known[..i]);
            }
        }
        Err(self.error(SqlState::UNDEFINED_OBJECT, format!("window \"{name}\" does not exist"), at))
    }

    /// A definition, on top of the one it refers to.
    fn define_window(&self, def: &'a WindowDef, known: &'a [Option<Node>]) -> Result<Window<'a>> {
        let own = Window { partition: &def.partitionClause, order: &def.orderClause, frame: def };
        let Some(name) = &def.refname else { return Ok(own) };
        let base = self.named_window(name, known, def.location)?;
        let wrong = |message: String| self.error(SqlState::WINDOWING_ERROR, message, def.location);
        if !own.partition.is_empty() {
            return Err(wrong(format!("cannot override PARTITION BY clause of window \"{name}\"")));
        }
        if !own.order.is_empty() && !base.order.is_empty() {
            return Err(wrong(format!("cannot override ORDER BY clause of window \"{name}\"")));
        }
        if base.frame.frameOptions & FRAMEOPTION_NONDEFAULT != 0 {
            let error = wrong(format!("cannot copy window \"{name}\" because it has a frame clause"));
            let plain = def.name.is_none() && own.order.is_empty() && def.frameOptions == FRAMEOPTION_DEFAULTS;
            return Err(if plain { error.hint("Omit the parentheses in this OVER clause.") } else { error });
        }
        let order = if own.order.is_empty() { base.order } else { own.order };
        Ok(Window { partition: base.partition, order, frame: def })
    }

    /// The WINDOW clause: what nobody uses is checked, too.
    pub(super) fn check_windows(&mut self) -> Result<()> {
        let known = self.scope().windows;
        for (i, node) in known.iter().enumerate() {
            let Some(Node::WindowDef(def)) = node else { continue };
            let name = def.name.as_deref().unwrap_or("");
            let is_same = |n: &Option<Node>| matches!(n, Some(Node::WindowDef(d)) if d.name.as_deref() == Some(name));
            if known[..i].iter().any(is_same) {
                let message = format!("window \"{name}\" is already defined");
                return Err(self.error(SqlState::WINDOWING_ERROR, message, def.location));
            }
            let window = self.define_window(def, &known[..i])?;
            self.bind_window(window, def.location)?;
        }
        Ok(())
    }

    fn bind_window(&mut self, window: Window<'a>, at: i32) -> Result<BoundWindow> {
        let mut partition = Vec::with_capacity(window.partition.len());
        for node in window.partition.iter().flatten() {
            let value = self.window_key(node)?;
            self.check_groupable(&value.expr, value.at)?;
            partition.push(value.expr);
        }
        let mut order = Vec::with_capacity(window.order.len());
        for node in window.order.iter().flatten() {
            let Node::SortBy(sort) = node else { continue };
            let Some(node) = &sort.node else { continue };
            let value = self.window_key(node)?;
            let (descending, nulls_first) = self.sort_direction(sort)?;
            self.check_sortable(&value.expr, value.at)?;
            order.push((value.expr, descending, nulls_first));
        }
        let frame = self.frame(window.frame, &order, at)?;
        Ok(BoundWindow { partition, order, frame })
    }

    fn window_key(&mut self, node: &'a Node) -> Result<Located> {
        let value = self.at_place(ClauseKind::Window, |b| b.expr(node))?;
        let at = if value.at < 0 { location(node) } else { value.at };
        self.resolve_unknown(Located { expr: value.expr, at })
    }

    fn frame(&mut self, def: &'a WindowDef, order: &[(Expr, bool, bool)], at: i32) -> Result<WindowFrame> {
        let has = |bits: i32| def.frameOptions & bits != 0;
        let mode = if has(FRAMEOPTION_ROWS) {
            FrameMode::Rows
        } else if has(FRAMEOPTION_GROUPS) {
            FrameMode::Groups
        } else {
            FrameMode::Range
        };
        let start_offset = has(FRAMEOPTION_START_OFFSET_PRECEDING | FRAMEOPTION_START_OFFSET_FOLLOWING);
        let end_offset = has(FRAMEOPTION_END_OFFSET_PRECEDING | FRAMEOPTION_END_OFFSET_FOLLOWING);
        if mode == FrameMode::Range && (start_offset || end_offset) && order.len() != 1 {
            let message = "RANGE with offset PRECEDING/FOLLOWING requires exactly one ORDER BY column";
            return Err(self.error(SqlState::WINDOWING_ERROR, message, at));
        }
        if mode == FrameMode::Groups && order.is_empty() {
            return Err(self.error(SqlState::WINDOWING_ERROR, "GROUPS mode requires an ORDER BY clause", at));
        }
        let start = if has(FRAMEOPTION_START_UNBOUNDED_PRECEDING) {
            FrameBound::UnboundedPreceding
        } else if has(FRAMEOPTION_START_UNBOUNDED_FOLLOWING) {
            FrameBound::UnboundedFollowing
        } else if has(FRAMEOPTION_START_CURRENT_ROW) {
            FrameBound::CurrentRow
        } else {
            let offset = self.frame_offset(def.startOffset.as_ref(), mode, order)?;
            if has(FRAMEOPTION_START_OFFSET_PRECEDING) {
                FrameBound::Preceding(offset)
            } else {
                FrameBound::Following(offset)
            }
        };
        let end = if has(FRAMEOPTION_END_UNBOUNDED_FOLLOWING) {
            FrameBound::UnboundedFollowing
        } else if has(FRAMEOPTION_END_UNBOUNDED_PRECEDING) {
            FrameBound::UnboundedPreceding
        } else if has(FRAMEOPTION_END_CURRENT_ROW) {
            FrameBound::CurrentRow
        } else {
            let offset = self.frame_offset(def.endOffset.as_ref(), mode, order)?;
            if has(FRAMEOPTION_END_OFFSET_PRECEDING) {
                FrameBound::Preceding(offset)
            } else {
                FrameBound::Following(offset)
            }
        };
        let exclude = if has(FRAMEOPTION_EXCLUDE_CURRENT_ROW) {
            Exclude::CurrentRow
        } else if has(FRAMEOPTION_EXCLUDE_GROUP) {
            Exclude::Group
        } else if has(FRAMEOPTION_EXCLUDE_TIES) {
            Exclude::Ties
        } else {
            Exclude::NoOthers
        };
        Ok(WindowFrame { mode, start, end, exclude })
    }

    /// The offset of a frame bound: `transformFrameOffset`.
    fn frame_offset(&mut self, node: Option<&'a Node>, mode: FrameMode, order: &[(Expr, bool, bool)]) -> Result<Expr> {
        let Some(node) = node else { return Err(Error::internal("a frame bound without its offset")) };
        let value = self.at_place(ClauseKind::Window, |b| b.expr(node))?;
        let at = value.at;
        let name = match mode {
            FrameMode::Rows => "ROWS",
            FrameMode::Groups => "GROUPS",
            FrameMode::Range => "RANGE",
        };
        let from = value.expr.ty().oid;
        let expr = match (mode, order) {
            (FrameMode::Range, [(key, ..), ..]) => {
                let wanted = self.range_type(base_of(key.ty().oid), base_of(from), at)?;
                self.coerce(value, wanted, CastContext::Implicit, -1)?.expr
            }
            _ => match self.coerce_to(value, Ty::of(oid::INT8), CastContext::Assignment, -1)? {
                Some(value) => value.expr,
                None => {
                    let shown = self.type_name(from);
                    let message = format!("argument of {name} must be type bigint, not type {shown}");
                    return Err(self.error(SqlState::DATATYPE_MISMATCH, message, at));
                }
            },
        };
        if has_columns(&expr) {
            let message = format!("argument of {name} must not contain variables");
            return Err(self.error(SqlState::INVALID_COLUMN_REFERENCE, message, at));
        }
        Ok(expr)
    }

    /// The type that an offset of a RANGE over values of another type has.
    fn range_type(&self, key: Oid, offset: Oid, at: i32) -> Result<Oid> {
        // The operator classes of enums and arrays have a pseudo-type as input type, which PostgreSQL names.
        let shown = match types::type_info(key).map(|info| info.category) {
            Some('E') => "anyenum".to_string(),
            Some('A') => "anyarray".to_string(),
            _ => self.type_name(key),
        };
        let candidates: &[Oid] = match key {
            oid::INT2 | oid::INT4 => &[oid::INT8, oid::INT4, oid::INT2],
            oid::INT8 => &[oid::INT8],
            oid::FLOAT4 | oid::FLOAT8 => &[oid::FLOAT8],
            oid::NUMERIC => &[oid::NUMERIC],
            oid::DATE | oid::TIME | oid::TIMESTAMP | oid::TIMESTAMPTZ | oid::INTERVAL => &[oid::INTERVAL],
            _ => {
                let message = format!("RANGE with offset PRECEDING/FOLLOWING is not supported for column type {shown}");
                return Err(self.unsupported(message, at));
            }
        };
        let preferred = if offset == oid::UNKNOWN { key } else { offset };
        let possible: Vec<Oid> =
            candidates.iter().copied().filter(|to| can_coerce(offset, *to, CastContext::Implicit)).collect();
        match possible.as_slice() {
            [] => {
                let message = format!(
                    "RANGE with offset PRECEDING/FOLLOWING is not supported for column type {shown} and offset type {}",
                    self.type_name(offset)
                );
                Err(self.unsupported(message, at).hint("Cast the offset value to an appropriate type."))
            }
            [one] => Ok(*one),
            several if several.contains(&preferred) => Ok(preferred),
            _ => {
                let message = format!(
                    "RANGE with offset PRECEDING/FOLLOWING has multiple interpretations for column type {shown} and \
                     offset type {}",
                    self.type_name(offset)
                );
                Err(self.unsupported(message, at).hint("Cast the offset value to the exact intended type."))
            }
        }
    }

    /// The rel of a call; calls that are the same share it, so that ORDER BY finds its target.
    fn window_rel(&mut self, call: WindowCall) -> usize {
        let known = self.scope().rels.iter().position(|rel| match &rel.kind {
            RelKind::Window(other) => same_call(other, &call),
            _ => false,
        });
        known.unwrap_or_else(|| {
            // Without a name nothing can refer to it.
            let column = RelColumn { name: String::new(), ty: call.ty };
            let kind = RelKind::Window(Box::new(call));
            self.add_rel(Rel { alias: String::new(), aliased: false, kind, columns: vec![column] }, None)
        })
    }
}

fn same_call(a: &WindowCall, b: &WindowCall) -> bool {
    let callee = match (&a.callee, &b.callee) {
        (WindowCallee::Function(a), WindowCallee::Function(b)) => a == b,
        (WindowCallee::Aggregate(a), WindowCallee::Aggregate(b)) => std::ptr::eq(*a, *b),
        _ => false,
    };
    let filter = || match (&a.filter, &b.filter) {
        (None, None) => true,
        (Some(a), Some(b)) => same(a, b),
        _ => false,
    };
    let bound = |a: &FrameBound, b: &FrameBound| match (a, b) {
        (FrameBound::Preceding(a), FrameBound::Preceding(b)) => same(a, b),
        (FrameBound::Following(a), FrameBound::Following(b)) => same(a, b),
        (a, b) => std::mem::discriminant(a) == std::mem::discriminant(b),
    };
    let frame = || {
        let (a, b) = (&a.frame, &b.frame);
        a.mode == b.mode && a.exclude == b.exclude && bound(&a.start, &b.start) && bound(&a.end, &b.end)
    };
    let args = || a.args.iter().zip(&b.args).all(|(a, b)| same(a, b));
    let partition = || a.partition.iter().zip(&b.partition).all(|(a, b)| same(a, b));
    let order = || a.order.iter().zip(&b.order).all(|(a, b)| same(&a.0, &b.0) && (a.1, a.2) == (b.1, b.2));
    let lengths = (a.args.len(), a.partition.len(), a.order.len()) == (b.args.len(), b.partition.len(), b.order.len());
    callee && lengths && args() && filter() && partition() && order() && frame()
}
