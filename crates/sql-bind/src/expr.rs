//! Expressions: from raw nodes to [`Expr`] (`parse_expr.c`).

use base::{Result, SqlState, work};
use rupg_sql::nodes::{
    A_ArrayExpr, A_Expr, A_Expr_Kind as Kind, BoolExpr, BoolExprType, BoolTestType, BooleanTest, CaseExpr, ColumnRef,
    MinMaxOp, Node, NullTest, NullTestType, SQLValueFunction, SQLValueFunctionOp as ValueOp, TypeCast,
};
use sql_functions::{self as functions, CastContext};
use sql_ir::system_column::SystemColumn;
use sql_ir::{CastKind, Expr, Ty};
use types::{Datum, array_of, element_of, oid};

use super::coerce::{base_of, common_typmod, is_array};
use super::node::{location, string, strings, value_function_name};
use super::scope::ClauseKind;
use super::{Binder, Located, types as type_names};

/// How deep expressions may nest that are kept, and all where there is no more stack than the usual 2 MiB of a thread, unoptimized
/// too.
const MAX_DEPTH: usize = 400;

/// The same for a statement that has a long stack; it ends earlier if half of that is used.
const MAX_DEPTH_LONG: usize = 6000;

/// How much of the stack must be left for what comes after binding: in hundredths.
const STACK_LEFT: usize = 50;

/// How many levels of [`MAX_DEPTH`] a query inside a query counts for.
pub(super) const QUERY_DEPTH: usize = 4;

/// How long a chain of operators may be; it is bound in a loop, but walked recursively later.
const MAX_CHAIN: usize = 1500;
const MAX_CHAIN_LONG: usize = 6000;

/// How deep what is bound now may nest.
pub(super) fn depth_max(is_kept: bool) -> usize {
    if !is_kept && work::has_long_stack() { MAX_DEPTH_LONG } else { MAX_DEPTH }
}

const BOOL: Ty = Ty::of(oid::BOOL);

impl<'a> Binder<'a, '_> {
    /// Refuses to go deeper.
    #[inline]
    pub(super) fn check_depth(&self) -> Result<()> {
        if self.depth >= self.depth_max || work::stack_is_below(STACK_LEFT) {
            return Err(super::stack_depth());
        }
        Ok(())
    }

    /// Binds an expression.
    pub(super) fn expr(&mut self, node: &'a Node) -> Result<Located> {
        self.check_depth()?;
        work::step(64)?;
        self.depth += 1;
        let result = self.expr_inner(node);
        self.depth -= 1;
        result
    }

    fn expr_inner(&mut self, node: &'a Node) -> Result<Located> {
        match node {
            Node::ColumnRef(c) => self.column_ref(c),
            Node::A_Const(_) | Node::Integer(_) | Node::String(_) | Node::Float(_) | Node::Boolean(_) => {
                self.constant(node)
            }
            Node::ParamRef(p) => self.param(p),
            Node::A_Expr(e) => self.a_expr(e),
            Node::BoolExpr(b) => self.bool_expr(b),
            Node::FuncCall(f) => self.func_call(f),
            Node::TypeCast(c) => self.type_cast(c),
            Node::CaseExpr(c) => {
                let value = self.case(c)?;
                self.refuse_set_call(&value.expr, "set-returning functions are not allowed in CASE")?;
                Ok(value)
            }
            Node::SubLink(s) => self.sublink(s),
            _ => self.rare_expr(node),
        }
    }

    #[inline(never)]
    fn rare_expr(&mut self, node: &'a Node) -> Result<Located> {
        match node {
            Node::CollateClause(c) => self.collate(c),
            Node::A_Indirection(i) => self.indirection(i),
            Node::A_ArrayExpr(a) => self.array(a, None),
            Node::RowExpr(r) => self.row(&r.args, r.location),
            Node::CoalesceExpr(c) => {
                let value = self.coalesce(&c.args, c.location)?;
                self.refuse_set_call(&value.expr, "set-returning functions are not allowed in COALESCE")?;
                Ok(value)
            }
            Node::MinMaxExpr(m) => self.min_max(m.op == MinMaxOp::IS_GREATEST, &m.args, m.location),
            Node::SQLValueFunction(f) => self.value_function(f),
            Node::NullTest(t) => self.null_test(t),
            Node::BooleanTest(t) => self.boolean_test(t),
            Node::SetToDefault(d) => {
                Err(self.error(SqlState::SYNTAX_ERROR, "DEFAULT is not allowed in this context", d.location))
            }
            Node::GroupingFunc(g) => self.grouping_call(g),
            Node::NamedArgExpr(n) => Err(self.unsupported("named arguments are not supported", n.location)),
            Node::CurrentOfExpr(_) => Err(self.unsupported("WHERE CURRENT OF is not supported", -1)),
            other => Err(self.unsupported("this kind of expression is not supported", location(other))),
        }
    }

    /// The expressions of a list.
    pub(super) fn exprs(&mut self, list: &'a [Option<Node>]) -> Result<Vec<Located>> {
        // A list of results is collected without room, and moved as it grows.
        let mut exprs = Vec::with_capacity(list.len());
        for node in list.iter().flatten() {
            exprs.push(self.expr(node)?);
        }
        Ok(exprs)
    }

    #[inline(never)]
    fn constant(&mut self, node: &Node) -> Result<Located> {
        let (value, at) = match node {
            Node::A_Const(c) => (if c.isnull { None } else { c.val.as_ref() }, c.location),
            other => (Some(other), -1),
        };
        if let Some(Node::Integer(_) | Node::Float(_)) = value {
            self.refuse_newer_number(at)?;
        }
        let expr = match value {
            None => Expr::Const(Datum::Null, Ty::of(oid::UNKNOWN)),
            Some(Node::Integer(n)) => Expr::Const(Datum::Int4(*n), Ty::of(oid::INT4)),
            Some(Node::Boolean(b)) => Expr::Const(Datum::Bool(*b), BOOL),
            Some(Node::String(s)) => Expr::Const(Datum::text(s), Ty::of(oid::UNKNOWN)),
            Some(Node::Float(text)) => match text.parse::<i64>() {
                Ok(n) => match i32::try_from(n) {
                    Ok(n) => Expr::Const(Datum::Int4(n), Ty::of(oid::INT4)),
                    Err(_) => Expr::Const(Datum::Int8(n), Ty::of(oid::INT8)),
                },
                Err(_) => {
                    let number = types::Numeric::parse(text).map_err(|e| self.locate(e, at))?;
                    Expr::Const(Datum::Numeric(number), Ty::of(oid::NUMERIC))
                }
            },
            Some(Node::BitString(text)) => {
                let held = types::bits::parse(text).map_err(|e| self.locate(e, at))?;
                Expr::Const(Datum::Bits(held), Ty::of(oid::BIT))
            }
            Some(_) => return Err(self.unsupported("constants of this kind are not supported", at)),
        };
        Ok(Located { expr, at })
    }

    /// Refuses numbers that only later releases read: `1_000`, `0x1F`.
    fn refuse_newer_number(&self, at: i32) -> Result<()> {
        let Some(rest) = usize::try_from(at).ok().and_then(|at| self.sql.get(at..)) else { return Ok(()) };
        let part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.');
        let token = &rest[..rest.find(|c| !part(c)).unwrap_or(rest.len())];
        let with_base = token.strip_prefix('0').is_some_and(|t| t.starts_with(|c| "xXoObB".contains(c)));
        if !token.starts_with(|c: char| c.is_ascii_digit() || c == '.') || !(with_base || token.contains('_')) {
            return Ok(());
        }
        // The number by itself, and the name that follows it.
        let number = token.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(token.len());
        let end = token[number..].find('.').map_or(token.len(), |dot| number + dot);
        let token = &token[..end];
        let message = format!("trailing junk after numeric literal at or near \"{token}\"");
        Err(self.error(SqlState::SYNTAX_ERROR, message, at))
    }

    #[inline(never)]
    fn column_ref(&mut self, node: &ColumnRef) -> Result<Located> {
        let at = node.location;
        if self.place() == ClauseKind::Default {
            return Err(self.unsupported("cannot use column reference in DEFAULT expression", at));
        }
        if node.fields.iter().flatten().any(|f| matches!(f, Node::A_Star(_))) {
            return self.whole_row_star(node);
        }
        let names = strings(&node.fields);
        let expr = match names.as_slice() {
            [column] => match self.find_column(column, at)? {
                Some(expr) => expr,
                // A relation's name alone is its row.
                None => match self.find_item(None, column, at)? {
                    Some(found) => self.whole_row(&found, at)?,
                    None => return Err(self.missing_column(None, column, at)),
                },
            },
            [relation, column] => self.qualified_column(&[], relation, column, at)?,
            [schema, relation, column] => self.qualified_column(&[*schema], relation, column, at)?,
            [catalog, schema, relation, column] => {
                if *catalog != self.cx.identity.database {
                    let message = format!("cross-database references are not implemented: {}", names.join("."));
                    return Err(self.error(SqlState::FEATURE_NOT_SUPPORTED, message, at));
                }
                self.qualified_column(&[*catalog, *schema], relation, column, at)?
            }
            _ => {
                let message = format!("improper qualified name (too many dotted names): {}", names.join("."));
                return Err(self.error(SqlState::SYNTAX_ERROR, message, at));
            }
        };
        self.note_column(at, names.len(), &expr);
        Ok(Located { expr, at })
    }

    /// `t.*` as one value is the row.
    fn whole_row_star(&mut self, node: &ColumnRef) -> Result<Located> {
        let at = node.location;
        let (schema, relation) = match strings(&node.fields).as_slice() {
            [relation] => (None, *relation),
            [schema, relation] => (Some(*schema), *relation),
            _ => return Err(self.unsupported("row expansion via \"*\" is not supported here", at)),
        };
        self.note_star(at, if schema.is_some() { 2 } else { 1 });
        match self.find_item(schema, relation, at)? {
            Some(found) => {
                self.note_qualifier(&found, at, usize::from(schema.is_some()));
                Ok(Located { expr: self.whole_row(&found, at)?, at })
            }
            None => Err(self.missing_relation(schema, relation, at)),
        }
    }

    /// A column of a relation whose name stands behind others, the last of which is its schema's.
    fn qualified_column(&mut self, before: &[&str], relation: &str, column: &str, at: i32) -> Result<Expr> {
        let schema = before.last().copied();
        let Some(found) = self.find_item(schema, relation, at)? else {
            return Err(self.missing_relation(schema, relation, at));
        };
        self.note_qualifier(&found, at, before.len());
        match self.found_column(&found, column, at)? {
            Some(expr) => Ok(expr),
            None => Err(self.missing_column(Some(relation), column, at)),
        }
    }

    /// Notes that so many names come before that of a relation of the view whose text is bound.
    fn note_qualifier(&mut self, found: &super::scope::Found, at: i32, names: usize) {
        if names > 0
            && self.cx.places.is_some()
            && let Some(relation) = self.found_item(found).relation
        {
            self.cx.qualifiers.push((at, names, relation));
        }
    }

    #[inline(never)]
    fn type_cast(&mut self, cast: &'a TypeCast) -> Result<Located> {
        let Some(name) = cast.typeName.as_deref() else { return Err(base::Error::internal("a cast without a type")) };
        let ty = match self.type_named(name) {
            Ok(ty) => ty,
            Err(error) => return self.row_type_cast(cast)?.ok_or(error),
        };
        let Some(arg) = cast.arg.as_ref() else { return Err(base::Error::internal("a cast of nothing")) };
        // ARRAY[…]::t[] gives its type to the elements.
        let value = match arg {
            Node::A_ArrayExpr(a) if is_array(base_of(ty.oid)) => self.array(a, Some(base_of(ty.oid)))?,
            arg => self.expr(arg)?,
        };
        let from = value.expr.ty().oid;
        let value_at = value.at;
        let at = if cast.location >= 0 { cast.location } else { name.location };
        match self.coerce_to(value, ty, CastContext::Explicit, at)? {
            Some(Located { expr, .. }) => {
                // PostgreSQL's exprLocation of a cast is the leftmost of its parts.
                let at = location_of_cast(at, value_at);
                Ok(Located { expr, at })
            }
            None => Err(self.cannot_cast(from, ty.oid, at)),
        }
    }

    fn type_named(&mut self, name: &rupg_sql::nodes::TypeName) -> Result<Ty> {
        self.open_schema(name)?;
        let ty = type_names::resolve(name, self.sql, Some((&self.cx.catalog, &self.cx.identity)))?;
        if let Some(message) = type_names::precision_warning(name, ty) {
            let code = SqlState::INVALID_PARAMETER_VALUE;
            let warning = base::Error::with_severity(base::Severity::Warning, code, message);
            self.cx.eval.notice(self.locate(warning, name.location));
        }
        self.note_type(name);
        Ok(ty)
    }

    /// Refuses a type's name whose schema is not there, or not open to the current role.
    pub(super) fn open_schema(&self, name: &rupg_sql::nodes::TypeName) -> Result<()> {
        let names = strings(&name.names);
        let [schema, _] = names.as_slice() else { return Ok(()) };
        if *schema == "pg_catalog" {
            return Ok(());
        }
        match self.cx.catalog.schema(self.cx.identity.database_oid, schema) {
            Some(found) => self.may_use(found.oid).map_err(|error| self.locate(error, name.location)),
            None => {
                let message = format!("schema \"{schema}\" does not exist");
                Err(self.error(SqlState::INVALID_SCHEMA_NAME, message, name.location))
            }
        }
    }

    pub(super) fn cannot_cast(&self, from: base::Oid, to: base::Oid, at: i32) -> base::Error {
        let message = format!("cannot cast type {} to {}", self.type_name(from), self.type_name(to));
        self.error(SqlState::CANNOT_COERCE, message, at)
    }

    #[inline(never)]
    fn collate(&mut self, node: &'a rupg_sql::nodes::CollateClause) -> Result<Located> {
        let Some(arg) = node.arg.as_ref() else { return Err(base::Error::internal("COLLATE of nothing")) };
        let value = self.expr(arg)?;
        let names = strings(&node.collname);
        let collation = crate::collation::named(&self.cx.catalog, self.cx.identity.database_oid, &names)
            .map_err(|error| self.locate(error, node.location))?
            .oid;
        let ty = value.expr.ty().oid;
        let element = element_of(base_of(ty)).map_or(base_of(ty), base_of);
        if !matches!(element, oid::TEXT | oid::VARCHAR | oid::BPCHAR | oid::NAME | oid::UNKNOWN) {
            let message = format!("collations are not supported by type {}", self.type_name(ty));
            return Err(self.error(SqlState::DATATYPE_MISMATCH, message, node.location));
        }
        let Located { expr, at } = self.resolve_unknown(value)?;
        let (ty, kind) = (expr.ty(), CastKind::Collate(collation));
        Ok(Located { expr: super::fold::cast(self.cx, expr, ty, kind, true, node.location), at })
    }

    fn a_expr(&mut self, e: &'a A_Expr) -> Result<Located> {
        match e.kind {
            Kind::AEXPR_OP => self.op(e),
            Kind::AEXPR_IN => self.in_list(e),
            Kind::AEXPR_LIKE | Kind::AEXPR_ILIKE | Kind::AEXPR_SIMILAR => self.plain_op(e),
            _ => self.rare_a_expr(e),
        }
    }

    #[inline(never)]
    fn rare_a_expr(&mut self, e: &'a A_Expr) -> Result<Located> {
        match e.kind {
            Kind::AEXPR_OP_ANY => self.any_all(e, false),
            Kind::AEXPR_OP_ALL => self.any_all(e, true),
            Kind::AEXPR_DISTINCT => self.is_distinct(e, false),
            Kind::AEXPR_NOT_DISTINCT => self.is_distinct(e, true),
            Kind::AEXPR_NULLIF => self.null_if(e),
            Kind::AEXPR_BETWEEN | Kind::AEXPR_NOT_BETWEEN | Kind::AEXPR_BETWEEN_SYM | Kind::AEXPR_NOT_BETWEEN_SYM => {
                self.between(e)
            }
            _ => Err(self.unsupported("this kind of expression is not supported", e.location)),
        }
    }

    /// The name of an operator; a schema other than pg_catalog has none.
    pub(super) fn operator_name<'n>(&self, names: &'n [Option<Node>], at: i32) -> Result<&'n str> {
        let parts = strings(names);
        match parts.as_slice() {
            [name] | ["pg_catalog", name] => Ok(name),
            _ => {
                let message = format!("operator does not exist: {}", parts.join("."));
                Err(self.error(SqlState::UNDEFINED_FUNCTION, message, at))
            }
        }
    }

    /// An operator; chains that lean to the left are walked without recursion.
    fn op(&mut self, e: &'a A_Expr) -> Result<Located> {
        let mut chain = vec![e];
        let mut left = e.lexpr.as_ref();
        while let Some(Node::A_Expr(inner)) = left {
            if inner.kind != Kind::AEXPR_OP || inner.lexpr.is_none() || is_row_op(chain[chain.len() - 1]) {
                break;
            }
            chain.push(inner);
            if chain.len() > if self.depth_max > MAX_DEPTH { MAX_CHAIN_LONG } else { MAX_CHAIN } {
                return Err(super::stack_depth());
            }
            left = inner.lexpr.as_ref();
        }
        let mut value: Option<Located> = None;
        for e in chain.into_iter().rev() {
            value = Some(match value {
                None => self.single_op(e)?,
                Some(left) => {
                    let right = self.operand(e.rexpr.as_ref())?;
                    let name = self.operator_name(&e.name, e.location)?;
                    self.operator(name, Some(left), right, e.location)?
                }
            });
        }
        value.ok_or_else(|| base::Error::internal("an operator without operands"))
    }

    pub(super) fn operand(&mut self, node: Option<&'a Node>) -> Result<Located> {
        match node {
            Some(node) => self.expr(node),
            None => Err(base::Error::internal("an operator without operand")),
        }
    }

    fn single_op(&mut self, e: &'a A_Expr) -> Result<Located> {
        match (&e.lexpr, &e.rexpr) {
            (Some(Node::RowExpr(l)), Some(Node::RowExpr(r))) => {
                let left = self.exprs(&l.args)?;
                let right = self.exprs(&r.args)?;
                let name = self.operator_name(&e.name, e.location)?;
                self.row_comparison(name, left, right, e.location)
            }
            (Some(Node::RowExpr(l)), Some(Node::SubLink(s)))
                if s.subLinkType == rupg_sql::nodes::SubLinkType::EXPR_SUBLINK =>
            {
                self.row_sublink(&l.args, &e.name, s, e.location)
            }
            _ => self.plain_op(e),
        }
    }

    #[inline(never)]
    fn plain_op(&mut self, e: &'a A_Expr) -> Result<Located> {
        let left = match &e.lexpr {
            Some(left) => Some(self.expr(left)?),
            None => None,
        };
        let right = self.operand(e.rexpr.as_ref())?;
        let name = self.operator_name(&e.name, e.location)?;
        let mut value = self.operator(name, left, right, e.location)?;
        if e.lexpr.is_none() {
            value.at = e.location;
        }
        Ok(value)
    }

    fn bool_expr(&mut self, b: &'a BoolExpr) -> Result<Located> {
        let name = match b.boolop {
            BoolExprType::AND_EXPR => "AND",
            BoolExprType::OR_EXPR => "OR",
            _ => "NOT",
        };
        let mut parts = Vec::with_capacity(b.args.len());
        let mut at = b.location;
        for arg in b.args.iter().flatten() {
            let value = self.expr(arg)?;
            if parts.is_empty() && name != "NOT" && value.at >= 0 && (at < 0 || value.at < at) {
                at = value.at;
            }
            parts.push(self.coerce_to_boolean(value, name)?);
        }
        let expr = match b.boolop {
            BoolExprType::AND_EXPR => and(parts),
            BoolExprType::OR_EXPR => or(parts),
            _ => Expr::Not(Box::new(parts.pop().ok_or_else(|| base::Error::internal("NOT of nothing"))?)),
        };
        self.note_decided(&expr);
        Ok(Located { expr, at })
    }

    /// Notes a condition that is a constant, or of which a part is: what it decides is simplified in the end.
    pub(super) fn note_decided(&self, condition: &Expr) {
        let is_decided = match condition {
            Expr::And(parts) | Expr::Or(parts) => parts.iter().any(|part| matches!(part, Expr::Const(..))),
            Expr::Not(part) => matches!(**part, Expr::Const(..)),
            condition => matches!(condition, Expr::Const(..)),
        };
        if is_decided {
            self.cx.has_decided_condition.set(true);
        }
    }

    #[inline(never)]
    fn null_test(&mut self, t: &'a NullTest) -> Result<Located> {
        let value = self.operand(t.arg.as_ref())?;
        let negated = t.nulltesttype == NullTestType::IS_NOT_NULL;
        let at = value.at;
        let test = |arg: Expr| Expr::IsNull { arg: Box::new(arg), negated, fields: false };
        let expr = match value.expr {
            Expr::Row(fields, ty) if self.cx.keeps_calls && !fields.is_empty() => {
                Expr::IsNull { arg: Box::new(Expr::Row(fields, ty)), negated, fields: true }
            }
            // A row is null if all its fields are, and not null if none is.
            Expr::Row(fields, _) => match fields.is_empty() {
                true => Expr::Const(Datum::Bool(true), BOOL),
                false => {
                    fields.iter().for_each(|field| self.note_decided(field));
                    and(fields.into_iter().map(test).collect())
                }
            },
            Expr::WholeRow { level, rel } => {
                let index = self.scopes.len() - 1 - level;
                let columns = &self.scopes[index].rels[rel].columns;
                let fields = columns
                    .iter()
                    .enumerate()
                    .filter(|(_, c)| !c.name.is_empty())
                    .map(|(column, c)| test(Expr::Column(sql_ir::Column { level, rel, column, ty: c.ty })));
                and(fields.collect())
            }
            arg => {
                self.note_decided(&arg);
                let fields = arg.ty().oid == oid::RECORD;
                Expr::IsNull { arg: Box::new(arg), negated, fields }
            }
        };
        Ok(Located { expr, at })
    }

    #[inline(never)]
    fn boolean_test(&mut self, t: &'a BooleanTest) -> Result<Located> {
        let (name, want, negated) = match t.booltesttype {
            BoolTestType::IS_TRUE => ("IS TRUE", Some(true), false),
            BoolTestType::IS_NOT_TRUE => ("IS NOT TRUE", Some(true), true),
            BoolTestType::IS_FALSE => ("IS FALSE", Some(false), false),
            BoolTestType::IS_NOT_FALSE => ("IS NOT FALSE", Some(false), true),
            BoolTestType::IS_UNKNOWN => ("IS UNKNOWN", None, false),
            _ => ("IS NOT UNKNOWN", None, true),
        };
        let value = self.operand(t.arg.as_ref())?;
        let at = value.at;
        let arg = self.coerce_to_boolean(value, name)?;
        self.note_decided(&arg);
        Ok(Located { expr: Expr::BooleanTest { arg: Box::new(arg), want, negated }, at })
    }

    /// CASE; the operand of the simple form goes into each condition.
    #[inline(never)]
    fn case(&mut self, c: &'a CaseExpr) -> Result<Located> {
        let mut operand = match &c.arg {
            Some(arg) => {
                let value = self.expr(arg)?;
                Some(self.resolve_unknown(value)?)
            }
            None => None,
        };
        let mut kept = None;
        if let Some(operand) = &mut operand
            && c.args.len() > 1
            && !self.cx.keeps_calls
            && super::visit::calls_volatile(&operand.expr)
        {
            // It is evaluated once, before the conditions.
            let (value, held) = super::domain::once(std::mem::replace(&mut operand.expr, Expr::Default))?;
            operand.expr = held;
            kept = Some(value);
        }
        let mut conditions = Vec::with_capacity(c.args.len());
        let mut results = Vec::with_capacity(c.args.len() + 1);
        for node in c.args.iter().flatten() {
            let Node::CaseWhen(when) = node else { continue };
            let mut condition = self.operand(when.expr.as_ref())?;
            if let Some(operand) = &operand {
                if kept.is_some() && super::domain::held_by(&condition.expr).is_some() {
                    let message = "CASE of a volatile expression whose conditions keep values is not supported";
                    return Err(self.unsupported(message, condition.at));
                }
                condition = self.operator("=", Some(operand.clone()), condition, when.location)?;
            }
            let condition = self.coerce_to_boolean(condition, "CASE/WHEN")?;
            self.note_decided(&condition);
            conditions.push(condition);
            results.push(self.operand(when.result.as_ref())?);
        }
        let has_else = c.defresult.is_some();
        let otherwise = match &c.defresult {
            Some(node) => self.expr(node)?,
            None => Located { expr: Expr::Const(Datum::Null, Ty::of(oid::UNKNOWN)), at: -1 },
        };
        // ELSE comes first when types are compared.
        let mut all = vec![otherwise];
        all.append(&mut results);
        let ty = self.common_type_of(&all, "CASE")?;
        let mut values = Vec::with_capacity(all.len());
        for (i, value) in all.into_iter().enumerate() {
            values.push(self.coerce_to_common(value, ty, if i == 0 { "CASE/ELSE" } else { "CASE/WHEN" })?.expr);
        }
        let otherwise = values.remove(0);
        let explicit = has_else.then_some(&otherwise);
        let typmod = common_typmod(explicit.into_iter().chain(&values), ty);
        let typmod = if has_else { typmod } else { -1 };
        let branches = conditions.into_iter().zip(values).collect();
        let otherwise = has_else.then(|| Box::new(otherwise));
        let ty = Ty { oid: ty, typmod };
        let case = Expr::Case { simple: operand.is_some(), branches, otherwise, ty };
        let expr = match kept {
            Some(value) => super::domain::within(value, case)?,
            None => case,
        };
        Ok(Located { expr, at: c.location })
    }

    fn common(&mut self, list: &'a [Option<Node>], name: &str) -> Result<(Vec<Expr>, Ty)> {
        let values = self.exprs(list)?;
        let ty = self.common_type_of(&values, name)?;
        let mut out = Vec::with_capacity(values.len());
        for value in values {
            out.push(self.coerce_to_common(value, ty, name)?.expr);
        }
        let typmod = common_typmod(out.iter(), ty);
        Ok((out, Ty { oid: ty, typmod }))
    }

    #[inline(never)]
    fn coalesce(&mut self, list: &'a [Option<Node>], at: i32) -> Result<Located> {
        let (values, ty) = self.common(list, "COALESCE")?;
        if let [first @ Expr::Const(value, _), ..] = &values[..]
            && !value.is_null()
        {
            self.note_decided(first);
        }
        Ok(Located { expr: Expr::Coalesce(values, ty), at })
    }

    #[inline(never)]
    fn min_max(&mut self, greatest: bool, list: &'a [Option<Node>], at: i32) -> Result<Located> {
        let (args, ty) = self.common(list, if greatest { "GREATEST" } else { "LEAST" })?;
        if super::resolve::binary_operator("<", ty.oid, ty.oid).is_err() {
            let message = format!("could not identify a comparison function for type {}", self.type_name(ty.oid));
            return Err(self.error(SqlState::UNDEFINED_FUNCTION, message, at));
        }
        Ok(Located { expr: Expr::MinMax { greatest, args, ty }, at })
    }

    #[inline(never)]
    pub(super) fn row(&mut self, list: &'a [Option<Node>], at: i32) -> Result<Located> {
        let mut fields = Vec::with_capacity(list.len());
        for node in list.iter().flatten() {
            if let Some(columns) = self.star(node)? {
                fields.extend(columns.into_iter().map(|(_, expr)| expr));
                continue;
            }
            let mut value = self.expr(node)?;
            // A literal has no type in a row either.
            if !matches!(value.expr, Expr::Const(Datum::Text(_) | Datum::Null, _)) {
                value = self.resolve_unknown(value)?;
            }
            fields.push(value.expr);
        }
        Ok(Located { expr: Expr::Row(fields, Ty::of(oid::RECORD)), at })
    }

    /// ARRAY[…]; `target` is the array type a cast around it wants.
    #[inline(never)]
    fn array(&mut self, a: &'a A_ArrayExpr, target: Option<base::Oid>) -> Result<Located> {
        let mut values = Vec::with_capacity(a.elements.len());
        let mut nested = false;
        for node in a.elements.iter().flatten() {
            let value = match node {
                Node::A_ArrayExpr(inner) => {
                    nested = true;
                    self.check_depth()?;
                    self.depth += 1;
                    let inner = self.array(inner, target);
                    self.depth -= 1;
                    inner?
                }
                node => {
                    let value = self.expr(node)?;
                    nested |= is_array(value.expr.ty().oid);
                    value
                }
            };
            values.push(value);
        }
        let at = a.location;
        let (wanted, element, ty) = match target {
            Some(array) => {
                let element = element_of(array).unwrap_or(array);
                (if nested { array } else { element }, element, array)
            }
            None if values.is_empty() => {
                let message = "cannot determine type of empty array";
                return Err(self
                    .error(SqlState::INDETERMINATE_DATATYPE, message, at)
                    .hint("Explicitly cast to the desired type, for example ARRAY[]::integer[]."));
            }
            None => {
                let common = self.common_type_of(&values, "ARRAY")?;
                super::domain::check_array_of(common)?;
                match (nested, element_of(common), array_of(common)) {
                    (true, Some(element), _) => (common, element, common),
                    (_, _, Some(array)) => (common, common, array),
                    _ => {
                        let message = format!("could not find array type for data type {}", self.type_name(common));
                        return Err(self.error(SqlState::UNDEFINED_OBJECT, message, at));
                    }
                }
            }
        };
        let mut elements = Vec::with_capacity(values.len());
        for value in values {
            let (from, value_at) = (value.expr.ty().oid, value.at);
            let context = if target.is_some() { CastContext::Explicit } else { CastContext::Implicit };
            match self.coerce_to(value, Ty::of(wanted), context, -1)? {
                Some(value) => elements.push(value.expr),
                None if target.is_some() => return Err(self.cannot_cast(from, wanted, value_at)),
                None => {
                    let message =
                        format!("ARRAY could not convert type {} to {}", self.type_name(from), self.type_name(wanted));
                    return Err(self.error(SqlState::CANNOT_COERCE, message, value_at));
                }
            }
        }
        let typmod = common_typmod(elements.iter(), wanted);
        Ok(Located { expr: Expr::Array { elements, element, nested, ty: Ty { oid: ty, typmod } }, at })
    }

    #[inline(never)]
    fn value_function(&mut self, f: &SQLValueFunction) -> Result<Located> {
        let name = value_function_name(f.op);
        let precision = match f.op {
            ValueOp::SVFOP_CURRENT_TIME_N
            | ValueOp::SVFOP_CURRENT_TIMESTAMP_N
            | ValueOp::SVFOP_LOCALTIME_N
            | ValueOp::SVFOP_LOCALTIMESTAMP_N => Some(f.typmod.min(6)),
            _ => None,
        };
        let plain = functions::functions_named(name).iter().copied().find(|f| f.args.is_empty());
        let with_precision = functions::function(name, &[oid::INT4]);
        let (function, args) = match (precision, with_precision, plain) {
            (Some(p), Some(function), _) => (function, vec![Expr::Const(Datum::Int4(p), Ty::of(oid::INT4))]),
            (None, _, Some(function)) => (function, Vec::new()),
            _ => return Err(self.unsupported(format!("{} is not supported", name.to_uppercase()), f.location)),
        };
        let ty = Ty { oid: function.ret, typmod: precision.unwrap_or(-1) };
        Ok(Located { expr: Expr::Call { function, args, ty, location: f.location }, at: f.location })
    }

    /// Subscripts and field selection.
    #[inline(never)]
    fn indirection(&mut self, node: &'a rupg_sql::nodes::A_Indirection) -> Result<Located> {
        let mut value = self.operand(node.arg.as_ref())?;
        let at = value.at;
        let mut indexes = Vec::new();
        let is_slice = |step: &Node| matches!(step, Node::A_Indices(i) if i.is_slice);
        if base_of(value.expr.ty().oid) == oid::JSONB {
            let mut steps = Vec::with_capacity(node.indirection.len());
            for step in node.indirection.iter().flatten() {
                match step {
                    Node::A_Indices(i) => steps.push(&**i),
                    Node::String(field) => return self.field(value, field),
                    _ => return Err(self.unsupported("row expansion via \"*\" is not supported here", at)),
                }
            }
            return self.document_subscript(value, &steps);
        }
        if node.indirection.iter().flatten().any(|step| matches!(step, Node::A_Indices(_)))
            && !is_array(base_of(value.expr.ty().oid))
            && ![oid::RECORD, oid::NAME].contains(&base_of(value.expr.ty().oid))
        {
            return self.not_subscriptable(value.expr.ty().oid, at);
        }
        let subscripts = node.indirection.iter().flatten().filter(|step| matches!(step, Node::A_Indices(_))).count();
        if subscripts > types::DIMENSIONS_MAX && is_array(base_of(value.expr.ty().oid)) {
            return Err(types::too_many_dimensions(subscripts));
        }
        if node.indirection.iter().flatten().any(is_slice) {
            return self.slice(value, &node.indirection);
        }
        for step in node.indirection.iter().flatten() {
            match step {
                Node::A_Indices(i) => {
                    let index = self.operand(i.uidx.as_ref())?;
                    let index_at = index.at;
                    let index = self.coerce_to(index, Ty::of(oid::INT4), CastContext::Assignment, -1)?;
                    let Some(index) = index else {
                        let message = "array subscript must have type integer";
                        return Err(self.error(SqlState::DATATYPE_MISMATCH, message, index_at));
                    };
                    indexes.push(index.expr);
                }
                Node::String(field) => {
                    value = self.subscript(value, std::mem::take(&mut indexes))?;
                    value = self.field(value, field)?;
                }
                _ => return Err(self.unsupported("row expansion via \"*\" is not supported here", at)),
            }
        }
        self.subscript(value, indexes)
    }

    fn not_subscriptable(&self, ty: base::Oid, at: i32) -> Result<Located> {
        let message = format!("cannot subscript type {} because it does not support subscripting", self.type_name(ty));
        Err(self.error(SqlState::DATATYPE_MISMATCH, message, at))
    }

    /// Subscripts of which one is a slice, which makes all of them slices: `[n]` is `[1:n]`.
    fn slice(&mut self, value: Located, steps: &'a [Option<Node>]) -> Result<Located> {
        let Located { expr, at } = value;
        // What is cut out of a domain over arrays is no value of the domain.
        let (oid, typmod) = types::user::base_type(expr.ty().oid, expr.ty().typmod);
        let ty = Ty { oid, typmod };
        if !is_array(ty.oid) {
            let message =
                format!("cannot subscript type {} because it does not support subscripting", self.type_name(ty.oid));
            return Err(self.error(SqlState::DATATYPE_MISMATCH, message, at));
        }
        let mut args = vec![expr];
        for step in steps.iter().flatten() {
            let Node::A_Indices(i) = step else {
                return Err(self.unsupported("fields of array slices are not supported", at));
            };
            let one = Expr::Const(Datum::Int4(1), Ty::of(oid::INT4));
            let lower = if i.is_slice { self.slice_bound(i.lidx.as_ref())? } else { one };
            args.push(lower);
            let upper = self.slice_bound(i.uidx.as_ref())?;
            args.push(upper);
        }
        let function = functions::functions_named("array slice").first().copied();
        let function = function.ok_or_else(|| base::Error::internal("no function for slices"))?;
        Ok(Located { expr: Expr::Call { function, args, ty, location: at }, at })
    }

    /// A bound of a slice; `false` for one that is not written.
    pub(super) fn slice_bound(&mut self, node: Option<&'a Node>) -> Result<Expr> {
        let Some(node) = node else { return Ok(Expr::Const(Datum::Bool(false), BOOL)) };
        let bound = self.expr(node)?;
        let at = bound.at;
        match self.coerce_to(bound, Ty::of(oid::INT4), CastContext::Assignment, -1)? {
            Some(bound) => Ok(bound.expr),
            None => {
                let message = "array subscript must have type integer";
                Err(self.error(SqlState::DATATYPE_MISMATCH, message, at))
            }
        }
    }

    fn subscript(&mut self, value: Located, indexes: Vec<Expr>) -> Result<Located> {
        if indexes.is_empty() {
            return Ok(value);
        }
        let from = value.expr.ty();
        let (oid, typmod) = types::user::base_type(from.oid, from.typmod);
        let from = Ty { oid, typmod };
        let at = value.at;
        if let (oid::NAME, Some(function)) = (from.oid, functions::functions_named("name byte").first().copied()) {
            let args = std::iter::once(value.expr).chain(indexes.into_iter().take(1)).collect();
            return Ok(Located { expr: Expr::Call { function, args, ty: Ty::of(oid::CHAR), location: at }, at });
        }
        let Some(element) = element_of(from.oid) else {
            let message =
                format!("cannot subscript type {} because it does not support subscripting", self.type_name(from.oid));
            return Err(self.error(SqlState::DATATYPE_MISMATCH, message, at));
        };
        let ty = Ty { oid: element, typmod: from.typmod };
        Ok(Located { expr: Expr::Subscript { array: Box::new(value.expr), indexes, ty }, at })
    }

    fn field(&mut self, value: Located, field: &str) -> Result<Located> {
        let at = value.at;
        if let Expr::WholeRow { level, rel } = value.expr {
            let index = self.scopes.len() - 1 - level;
            if let Some(system) = SystemColumn::named(field)
                && self.scopes[index].rels[rel].system_start().is_some()
            {
                let mut expr = self.read_system_column(index, rel, system);
                super::visit::shift_levels(&mut expr, level as isize);
                return Ok(Located { expr, at });
            }
            let entry = &self.scopes[index].rels[rel];
            let column = entry.columns.iter().position(|c| c.name == field);
            return match column {
                Some(column) => {
                    let ty = entry.columns[column].ty;
                    Ok(Located { expr: Expr::Column(sql_ir::Column { level, rel, column, ty }), at })
                }
                None => {
                    let message = format!("column \"{field}\" not found in data type {}", entry.alias);
                    Err(self.error(SqlState::UNDEFINED_COLUMN, message, at))
                }
            };
        }
        let ty = value.expr.ty().oid;
        if ty == oid::RECORD
            && let Some(expr) = self.record_field(&value.expr, field)
        {
            return Ok(Located { expr, at });
        }
        if ty == oid::RECORD {
            let message = format!("could not identify column \"{field}\" in record data type");
            return Err(self.error(SqlState::UNDEFINED_COLUMN, message, at));
        }
        let message =
            format!("column notation .{field} applied to type {}, which is not a composite type", self.type_name(ty));
        Err(self.error(SqlState::WRONG_OBJECT_TYPE, message, at))
    }

    /// A relation's row.
    fn whole_row(&mut self, found: &super::scope::Found, at: i32) -> Result<Expr> {
        let item = self.found_item(found);
        match item.rel {
            Some(rel) => {
                let index = self.scopes.len() - 1 - found.level;
                let entry = &self.scopes[index].rels[rel];
                // The row of a function that returns values is the value.
                if let (sql_ir::RelKind::Function { calls, ordinality: false, .. }, [only]) =
                    (&entry.kind, &entry.columns[..])
                    && calls.len() == 1
                {
                    let ty = only.ty;
                    return Ok(Expr::Column(sql_ir::Column { level: found.level, rel, column: 0, ty }));
                }
                Ok(Expr::WholeRow { level: found.level, rel })
            }
            None => {
                let fields = self.found_columns(found, at);
                Ok(self.named_row(fields))
            }
        }
    }

    /// `*` or `t.*`: the columns with their names.
    pub(super) fn expand_star(&mut self, node: &ColumnRef) -> Result<Vec<(String, Expr)>> {
        let at = node.location;
        let names: Vec<&str> = node.fields.iter().flatten().filter_map(string).collect();
        let found = match names.as_slice() {
            [] => return self.all_columns(at),
            [relation] => (None, *relation),
            [schema, relation] | [_, schema, relation] => (Some(*schema), *relation),
            _ => {
                let message = "improper qualified name (too many dotted names)";
                return Err(self.error(SqlState::SYNTAX_ERROR, message, at));
            }
        };
        self.note_star(at, names.len());
        match self.find_item(found.0, found.1, at)? {
            Some(item) => {
                self.note_qualifier(&item, at, names.len() - 1);
                Ok(self.found_columns(&item, at))
            }
            None => Err(self.missing_relation(found.0, found.1, at)),
        }
    }

    fn all_columns(&mut self, at: i32) -> Result<Vec<(String, Expr)>> {
        let scope_index = self.scopes.len() - 1;
        let visible: Vec<usize> = {
            let items = &self.scopes[scope_index].items;
            (0..items.len()).filter(|&i| items[i].columns_visible).collect()
        };
        if visible.is_empty() {
            let message = "SELECT * with no tables specified is not valid";
            return Err(self.error(SqlState::SYNTAX_ERROR, message, at));
        }
        let mut out = Vec::new();
        for item in visible {
            out.extend(self.found_columns(&super::scope::Found { level: 0, item }, at));
        }
        Ok(out)
    }
}

fn is_row_op(e: &A_Expr) -> bool {
    matches!(e.lexpr, Some(Node::RowExpr(_)))
}

fn location_of_cast(own: i32, arg: i32) -> i32 {
    if arg >= 0 && (own < 0 || arg < own) { arg } else { own }
}

/// A conjunction, flat.
pub(super) fn and(mut parts: Vec<Expr>) -> Expr {
    match parts.len() {
        1 => parts.remove(0),
        _ => Expr::And(parts),
    }
}

/// A disjunction, flat.
pub(super) fn or(mut parts: Vec<Expr>) -> Expr {
    match parts.len() {
        1 => parts.remove(0),
        _ => Expr::Or(parts),
    }
}
