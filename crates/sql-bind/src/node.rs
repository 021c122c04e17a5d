//! Small questions to the raw parse tree.

use rupg_sql::nodes::{A_Expr_Kind, FuncCall, Node};

/// The strings of a list of names.
pub(super) fn strings(list: &[Option<Node>]) -> Vec<&str> {
    list.iter().flatten().filter_map(string).collect()
}

/// The text of a string node.
pub(super) fn string(node: &Node) -> Option<&str> {
    match node {
        Node::String(s) => Some(s),
        _ => None,
    }
}

/// The value of an integer constant.
pub(super) fn integer_constant(node: &Node) -> Option<i32> {
    match node {
        Node::Integer(n) => Some(*n),
        Node::A_Const(c) if !c.isnull => integer_constant(c.val.as_ref()?),
        _ => None,
    }
}

/// The value of an A_Const, `None` if the node is something else.
pub(super) fn constant(node: &Node) -> Option<Option<&Node>> {
    match node {
        Node::A_Const(c) if c.isnull => Some(None),
        Node::A_Const(c) => Some(c.val.as_ref()),
        _ => None,
    }
}

fn leftmost(a: i32, b: i32) -> i32 {
    if a < 0 {
        b
    } else if b < 0 {
        a
    } else {
        a.min(b)
    }
}

fn first(list: &[Option<Node>]) -> i32 {
    list.iter().flatten().map(location).find(|&l| l >= 0).unwrap_or(-1)
}

/// Where an expression begins, as PostgreSQL's `exprLocation` has it.
pub(super) fn location(node: &Node) -> i32 {
    // A chain of operators leans to the left: its start is found without recursion.
    let mut node = node;
    let mut best = -1;
    loop {
        let (own, next) = match node {
            Node::A_Expr(e) => (e.location, e.lexpr.as_ref()),
            Node::TypeCast(c) => {
                let name = c.typeName.as_ref().map_or(-1, |t| t.location);
                (leftmost(c.location, name), c.arg.as_ref())
            }
            Node::CollateClause(c) => (c.location, c.arg.as_ref()),
            Node::A_Indirection(i) => (-1, i.arg.as_ref()),
            Node::NullTest(t) => (t.location, t.arg.as_ref()),
            Node::BooleanTest(t) => (t.location, t.arg.as_ref()),
            Node::BoolExpr(b) => (b.location, b.args.first().and_then(Option::as_ref)),
            Node::SubLink(s) => (s.location, s.testexpr.as_ref()),
            other => {
                best = leftmost(best, leaf_location(other));
                return best;
            }
        };
        best = leftmost(best, own);
        match next {
            Some(next) => node = next,
            None => return best,
        }
    }
}

fn leaf_location(node: &Node) -> i32 {
    match node {
        Node::ColumnRef(c) => c.location,
        Node::ParamRef(p) => p.location,
        Node::A_Const(c) => c.location,
        Node::FuncCall(f) => function_location(f),
        Node::A_ArrayExpr(a) => a.location,
        Node::RowExpr(r) => r.location,
        Node::CaseExpr(c) => c.location,
        Node::CoalesceExpr(c) => c.location,
        Node::MinMaxExpr(m) => m.location,
        Node::SQLValueFunction(f) => f.location,
        Node::SetToDefault(d) => d.location,
        Node::NamedArgExpr(n) => n.location,
        Node::GroupingFunc(g) => g.location,
        Node::GroupingSet(g) => g.location,
        Node::ResTarget(t) => t.location,
        Node::SortBy(s) => s.node.as_ref().map_or(-1, location),
        Node::RangeVar(r) => r.location,
        Node::TypeName(t) => t.location,
        Node::WithClause(w) => w.location,
        Node::CommonTableExpr(c) => c.location,
        Node::List(l) => first(l),
        Node::XmlExpr(x) => x.location,
        Node::MultiAssignRef(m) => m.source.as_ref().map_or(-1, location),
        Node::SelectStmt(s) => match s.valuesLists.is_empty() {
            true => first(&s.targetList),
            false => first(&s.valuesLists),
        },
        _ => -1,
    }
}

/// Where a function call begins.
pub(super) fn function_location(call: &FuncCall) -> i32 {
    // Only what is written like an operator (AT TIME ZONE) has an argument before it.
    match call.funcformat {
        rupg_sql::nodes::CoercionForm::COERCE_SQL_SYNTAX => leftmost(call.location, first(&call.args)),
        _ => call.location,
    }
}

/// Below this many casts and subqueries no name is looked for.
const MAX_FIGURE_DEPTH: usize = 100;

/// The name a target gets when none is written (`FigureColname`).
pub(super) fn figure_name(node: &Node) -> String {
    figure(node, 0).map_or_else(|| "?column?".to_string(), |(name, _)| name)
}

/// The name and how strong it is: 2 for real names, 1 for those of casts and the like.
fn figure(node: &Node, depth: usize) -> Option<(String, u8)> {
    if depth > MAX_FIGURE_DEPTH {
        return None;
    }
    let depth = depth + 1;
    let strong = |name: &str| Some((name.to_string(), 2));
    match node {
        Node::ColumnRef(c) => c.fields.iter().flatten().filter_map(string).next_back().and_then(strong),
        Node::A_Indirection(i) => {
            let named = i.indirection.iter().flatten().filter_map(string).next_back();
            named.and_then(strong).or_else(|| figure(i.arg.as_ref()?, depth))
        }
        Node::FuncCall(f) => strings(&f.funcname).last().and_then(|n| strong(n)),
        Node::A_Expr(e) if e.kind == A_Expr_Kind::AEXPR_NULLIF => strong("nullif"),
        Node::TypeCast(c) => {
            let inner = c.arg.as_ref().and_then(|a| figure(a, depth));
            match inner {
                Some((name, 2)) => Some((name, 2)),
                weak => {
                    let named = c.typeName.as_ref().and_then(|t| strings(&t.names).last().map(|n| n.to_string()));
                    named.map(|n| (n, 1)).or(weak)
                }
            }
        }
        Node::CollateClause(c) => figure(c.arg.as_ref()?, depth),
        Node::GroupingFunc(_) => strong("grouping"),
        Node::SubLink(s) => figure_sublink(s, depth),
        Node::CaseExpr(c) => match c.defresult.as_ref().and_then(|d| figure(d, depth)) {
            Some((name, 2)) => Some((name, 2)),
            _ => Some(("case".to_string(), 1)),
        },
        Node::A_ArrayExpr(_) => strong("array"),
        Node::RowExpr(_) => strong("row"),
        Node::CoalesceExpr(_) => strong("coalesce"),
        Node::MinMaxExpr(m) if m.op == rupg_sql::nodes::MinMaxOp::IS_GREATEST => strong("greatest"),
        Node::MinMaxExpr(_) => strong("least"),
        Node::SQLValueFunction(f) => strong(value_function_name(f.op)),
        _ => None,
    }
}

fn figure_sublink(link: &rupg_sql::nodes::SubLink, depth: usize) -> Option<(String, u8)> {
    use rupg_sql::nodes::SubLinkType as T;
    match link.subLinkType {
        T::EXISTS_SUBLINK => Some(("exists".to_string(), 2)),
        T::ARRAY_SUBLINK => Some(("array".to_string(), 2)),
        T::EXPR_SUBLINK => {
            let Some(Node::SelectStmt(select)) = &link.subselect else { return None };
            let mut select = select;
            while let Some(left) = &select.larg {
                select = left;
            }
            let Some(Some(Node::ResTarget(target))) = select.targetList.first() else {
                return (!select.valuesLists.is_empty()).then(|| ("column1".to_string(), 2));
            };
            match &target.name {
                Some(name) => Some((name.to_string(), 2)),
                None => figure(target.val.as_ref()?, depth),
            }
        }
        _ => None,
    }
}

/// The name of a function that SQL calls without parentheses.
pub(super) fn value_function_name(op: rupg_sql::nodes::SQLValueFunctionOp) -> &'static str {
    use rupg_sql::nodes::SQLValueFunctionOp as Op;
    match op {
        Op::SVFOP_CURRENT_DATE => "current_date",
        Op::SVFOP_CURRENT_TIME | Op::SVFOP_CURRENT_TIME_N => "current_time",
        Op::SVFOP_CURRENT_TIMESTAMP | Op::SVFOP_CURRENT_TIMESTAMP_N => "current_timestamp",
        Op::SVFOP_LOCALTIME | Op::SVFOP_LOCALTIME_N => "localtime",
        Op::SVFOP_LOCALTIMESTAMP | Op::SVFOP_LOCALTIMESTAMP_N => "localtimestamp",
        Op::SVFOP_CURRENT_ROLE => "current_role",
        Op::SVFOP_CURRENT_USER => "current_user",
        Op::SVFOP_USER => "user",
        Op::SVFOP_SESSION_USER => "session_user",
        Op::SVFOP_CURRENT_CATALOG => "current_catalog",
        _ => "current_schema",
    }
}
