//! WITH (`parse_cte.c`).
//!
//! The queries of a WITH clause are bound where it stands, one after the other; in a recursive clause one that is referred to
//! before its turn is bound then. At the end of the statement that has the clause it is decided which of them are read like
//! subqueries in FROM and which are kept ([`sql_ir::Cte`]).

use base::{Error, Oid, Result, SqlState};
use rupg_sql::nodes::{Alias, CTEMaterialize, CommonTableExpr, Node, SelectStmt, SetOperation, WithClause};
use sql_ir::{Body, Cte, Query, RelColumn, RelKind, Statement, WrittenCte};

use super::Binder;
use super::from::{FromItem, visible_columns};
use super::node::{location, strings};
use super::scope::Scope;
use super::select::origin;
use super::visit::{is_volatile, shift_query, walk_queries_mut};

/// A query of a WITH clause in scope.
pub(super) struct KnownCte<'a> {
    /// Its parse tree.
    pub(super) node: &'a CommonTableExpr,
    pub(super) id: usize,
    state: CteState,
    /// References so far.
    uses: usize,
    /// Length of the longest chain of WITH queries, each reading the next, that begins with this one; 0 before it is bound.
    depth: usize,
}

/// Longest chain of WITH queries. What is read where it is used nests as deep, in the plan and when it runs.
const DEEPEST: usize = 400;

/// How far the binding of a WITH query is.
enum CteState {
    Unbound,
    /// Being bound; a reference to it is a recursion.
    Binding(Option<Recursion>),
    Bound(Box<Bound>),
}

/// A WITH query that is bound.
struct Bound {
    query: Query,
    columns: Vec<RelColumn>,
    origins: Vec<Option<(Oid, i16)>>,
    modifies: bool,
    recursive: bool,
    /// How many were bound before it: what it reads is among them.
    number: usize,
}

/// The recursive part of a query, while it is bound.
struct Recursion {
    columns: Vec<RelColumn>,
    /// Names of the last ones, which SEARCH and CYCLE have added.
    added: Vec<String>,
    uses: usize,
}

/// Where a reference of a recursive query to itself would stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RecursiveContext {
    Allowed,
    NonRecursiveTerm,
    Subquery,
    OuterJoin,
    Intersect,
    Except,
}

impl RecursiveContext {
    fn message(self, name: &str) -> String {
        let place = match self {
            RecursiveContext::Allowed => "this place",
            RecursiveContext::NonRecursiveTerm => "its non-recursive term",
            RecursiveContext::Subquery => "a subquery",
            RecursiveContext::OuterJoin => "an outer join",
            RecursiveContext::Intersect => "INTERSECT",
            RecursiveContext::Except => "EXCEPT",
        };
        format!("recursive reference to query \"{name}\" must not appear within {place}")
    }
}

fn written(cte: &CommonTableExpr, recursive: bool) -> WrittenCte {
    WrittenCte {
        columns: strings(&cte.aliascolnames).into_iter().map(str::to_string).collect(),
        materialized: match cte.ctematerialized {
            CTEMaterialize::CTEMaterializeAlways => Some(true),
            CTEMaterialize::CTEMaterializeNever => Some(false),
            _ => None,
        },
        recursive,
        searched: cte.search_clause.is_some() || cte.cycle_clause.is_some(),
    }
}

fn name_of(cte: &CommonTableExpr) -> &str {
    cte.ctename.as_deref().unwrap_or("")
}

impl<'a> KnownCte<'a> {
    /// Its name.
    pub(super) fn name(&self) -> &'a str {
        name_of(self.node)
    }
}

impl<'a> Binder<'a, '_> {
    /// Binds the queries of a WITH clause, which the current scope sees from then on.
    pub(super) fn add_ctes(&mut self, with: Option<&'a WithClause>) -> Result<()> {
        let Some(with) = with else { return Ok(()) };
        for node in with.ctes.iter().flatten() {
            let Node::CommonTableExpr(cte) = node else { continue };
            if self.scope().ctes.iter().any(|c| c.name() == name_of(cte)) {
                let message = format!("WITH query name \"{}\" specified more than once", name_of(cte));
                return Err(self.error(SqlState::DUPLICATE_ALIAS, message, cte.location));
            }
            if matches!(cte.ctequery, Some(Node::MergeStmt(_))) {
                return Err(self.unsupported("MERGE not supported in WITH query", cte.location));
            }
            if !matches!(cte.ctequery, Some(Node::SelectStmt(_))) && self.scopes.len() > 1 {
                let message = "WITH clause containing a data-modifying statement must be at the top level";
                return Err(self.unsupported(message, cte.location));
            }
            self.next_cte += 1;
            let id = self.next_cte;
            self.scope().ctes.push(KnownCte { node: cte, id, state: CteState::Unbound, uses: 0, depth: 0 });
        }
        let scope = self.scopes.len() - 1;
        let count = self.scopes[scope].ctes.len();
        if with.recursive {
            self.scope().recursive_ctes = true;
            self.scope().visible_ctes = count;
        }
        for number in 0..count {
            self.bind_cte(scope, number)?;
            if !with.recursive {
                self.scope().visible_ctes = number + 1;
            }
        }
        Ok(())
    }

    /// Binds a WITH query if it is not yet.
    fn bind_cte(&mut self, scope: usize, number: usize) -> Result<()> {
        let cte = &mut self.scopes[scope].ctes[number];
        let node = cte.node;
        match cte.state {
            CteState::Bound(_) => return Ok(()),
            CteState::Binding(_) => return Err(self.mutual_recursion(node)),
            CteState::Unbound => cte.state = CteState::Binding(None),
        }
        // It stands directly inside the query with the clause, wherever it is referred to.
        let deeper = self.scopes.split_off(scope + 1);
        let context = self.recursive_context;
        self.binding_ctes.push((scope, number));
        let outer = std::mem::take(&mut self.cte_depth);
        let bound = self.cte_query(scope, number, node);
        let depth = std::mem::replace(&mut self.cte_depth, outer) + 1;
        self.binding_ctes.pop();
        self.recursive_context = context;
        self.scopes.truncate(scope + 1);
        self.scopes.extend(deeper);
        let (mut query, modifies, recursive) = bound?;
        if !recursive && (node.search_clause.is_some() || node.cycle_clause.is_some()) {
            return Err(self.error(SqlState::SYNTAX_ERROR, "WITH query is not recursive", node.location));
        }
        if depth > DEEPEST {
            return Err(Error::new(SqlState::STATEMENT_TOO_COMPLEX, "stack depth limit exceeded")
                .hint("WITH queries read each other in too long a chain."));
        }
        self.scopes[scope].ctes[number].depth = depth;
        // What is shown has the names of its columns in front of the query.
        let own = self.shows.then(|| query.targets.clone());
        rename_targets(&mut query, &strings(&node.aliascolnames), name_of(node))
            .map_err(|e| self.locate(e, node.location))?;
        let columns = visible_columns(&query);
        query.targets = own.unwrap_or(query.targets);
        let visible = query.targets.iter().filter(|t| !t.junk);
        let origins = visible.map(|t| origin(&t.expr, &query.rels)).collect();
        let ctes = &mut self.scopes[scope].ctes;
        let before = ctes.iter().filter(|c| matches!(c.state, CteState::Bound(_))).count();
        let bound = Bound { query, columns, origins, modifies, recursive, number: before };
        ctes[number].state = CteState::Bound(Box::new(bound));
        Ok(())
    }

    fn mutual_recursion(&self, node: &CommonTableExpr) -> Error {
        self.unsupported("mutual recursion between WITH items is not implemented", node.location)
    }

    /// The body of a WITH query; whether it changes rows, whether it is recursive.
    fn cte_query(&mut self, scope: usize, number: usize, node: &'a CommonTableExpr) -> Result<(Query, bool, bool)> {
        let recursive = self.scopes[scope].recursive_ctes;
        let mut inner = Scope::new(Some(scope));
        inner.parent_ctes_only = Some(if recursive { self.scopes[scope].ctes.len() } else { number });
        match &node.ctequery {
            Some(Node::SelectStmt(select)) if recursive && is_union(select) => {
                self.recursive_union(inner, (scope, number), select)
            }
            Some(Node::SelectStmt(select)) => {
                if recursive {
                    self.recursive_context = RecursiveContext::NonRecursiveTerm;
                }
                Ok((self.query_in(inner, select, true)?.query, false, false))
            }
            Some(statement) => {
                self.scopes.push(inner);
                let bound = match statement {
                    Node::InsertStmt(insert) => self.insert(insert),
                    Node::UpdateStmt(update) => self.update(update),
                    Node::DeleteStmt(delete) => self.delete(delete),
                    _ => Err(self.unsupported("this statement is not supported in WITH", node.location)),
                };
                let (statement, columns) = bound?;
                let columns = columns.into_iter().map(|c| RelColumn { name: c.name, ty: c.ty }).collect();
                // The statement has a scope of its own; the rel that stands for RETURNING is outside of it.
                let mut query = self.over_virtual_rel(name_of(node), columns);
                query.rels = std::mem::take(&mut self.scope().rels);
                self.scopes.pop();
                query.body = Body::Modify(Box::new(statement));
                Ok((query, true, false))
            }
            None => Err(Error::internal("a WITH query without a query")),
        }
    }

    /// `non-recursive UNION [ALL] recursive`, or a UNION that does not refer to itself.
    fn recursive_union(
        &mut self,
        inner: Scope<'a>,
        (scope, number): (usize, usize),
        select: &'a SelectStmt,
    ) -> Result<(Query, bool, bool)> {
        let node = self.scopes[scope].ctes[number].node;
        let id = self.scopes[scope].ctes[number].id;
        let (Some(first), Some(next)) = (&select.larg, &select.rarg) else {
            return Err(Error::internal("a set operation without two sides"));
        };
        self.enter_query()?;
        self.scopes.push(inner);
        self.add_ctes(select.withClause.as_deref())?;
        self.recursive_context = RecursiveContext::NonRecursiveTerm;
        super::setop::refuse_locks(first)?;
        let first = self.subquery(first, true)?;
        self.recursive_context = RecursiveContext::Allowed;
        let mut columns = visible_columns(&first.query);
        for (column, name) in columns.iter_mut().zip(strings(&node.aliascolnames)) {
            column.name = name.to_string();
        }
        let types: Vec<_> = columns.iter().map(|c| c.ty).collect();
        let added = self.search_and_cycle(node, select, &columns)?;
        // What is added is found by its name in the recursive part, and is not among its columns.
        let hidden: Vec<RelColumn> = added.iter().flat_map(|added| added.columns()).collect();
        let names = hidden.iter().map(|c| c.name.clone()).collect();
        columns.extend(hidden.into_iter().map(|c| RelColumn { name: String::new(), ..c }));
        self.scopes[scope].ctes[number].state = CteState::Binding(Some(Recursion { columns, added: names, uses: 0 }));
        let next = self.side(next)?;
        let state = std::mem::replace(&mut self.scopes[scope].ctes[number].state, CteState::Binding(None));
        let recursive = matches!(state, CteState::Binding(Some(Recursion { uses: 1.., .. })));
        if recursive {
            self.check_recursive(select)?;
        }
        let places = first.at.clone();
        let mut bound = self.combine(select, first, next)?;
        if recursive {
            for (i, (target, ty)) in bound.query.targets.iter().zip(&types).enumerate() {
                if target.expr.ty() != *ty {
                    let shown = |ty: sql_ir::Ty| types::format_type(ty.oid, ty.typmod);
                    let message = format!(
                        "recursive query \"{}\" column {} has type {} in non-recursive term but type {} overall",
                        name_of(node),
                        i + 1,
                        shown(*ty),
                        shown(target.expr.ty())
                    );
                    let at = places.get(i).copied().unwrap_or(-1);
                    return Err(self
                        .error(SqlState::DATATYPE_MISMATCH, message, at)
                        .hint("Cast the output of the non-recursive term to the correct type."));
                }
            }
            if let Body::SetOp { recursion, .. } = &mut bound.query.body {
                *recursion = Some(id);
            }
            if let Some(added) = &added {
                self.add_searched(added, &mut bound, id, name_of(node))?;
            }
        }
        self.finish_select(&mut bound)?;
        self.scopes.pop();
        self.leave_query();
        Ok((bound.query, false, recursive))
    }

    /// What a recursive query may not have around it, and its recursive term not in it.
    fn check_recursive(&self, select: &SelectStmt) -> Result<()> {
        let first = |list: &[Option<Node>]| list.iter().flatten().map(location).find(|l| *l >= 0).unwrap_or(-1);
        let at = |node: &Option<Node>| node.as_ref().map_or(-1, location);
        let refused = if !select.sortClause.is_empty() {
            Some(("ORDER BY", first(&select.sortClause)))
        } else if select.limitOffset.is_some() {
            Some(("OFFSET", at(&select.limitOffset)))
        } else if select.limitCount.is_some() {
            Some(("LIMIT", at(&select.limitCount)))
        } else if !select.lockingClause.is_empty() {
            Some(("FOR UPDATE/SHARE", -1))
        } else {
            None
        };
        if let Some((what, at)) = refused {
            return Err(self.unsupported(format!("{what} in a recursive query is not implemented"), at));
        }
        Ok(())
    }

    /// A reference to a WITH query.
    pub(super) fn cte_reference(
        &mut self,
        scope: usize,
        number: usize,
        alias: Option<&'a Alias>,
        at: i32,
    ) -> Result<FromItem> {
        let cte = &mut self.scopes[scope].ctes[number];
        let (node, id) = (cte.node, cte.id);
        let name = name_of(node);
        let innermost = self.binding_ctes.iter().rev().find(|(of, _)| *of == scope);
        if matches!(cte.state, CteState::Binding(_)) && innermost != Some(&(scope, number)) {
            return Err(self.mutual_recursion(node));
        }
        if let CteState::Binding(recursion) = &mut cte.state {
            let recursive_form = matches!(&node.ctequery, Some(Node::SelectStmt(s)) if is_union(s));
            match (recursion, self.recursive_context) {
                (Some(recursion), RecursiveContext::Allowed) => {
                    recursion.uses += 1;
                    if recursion.uses > 1 {
                        let message = format!("recursive reference to query \"{name}\" must not appear more than once");
                        return Err(self.error(SqlState::INVALID_RECURSION, message, at));
                    }
                    let (columns, added) = (recursion.columns.clone(), recursion.added.clone());
                    let mut from = self.add_from_rel(RelKind::WorkTable(id), columns, name, alias, None)?;
                    if let Some(item) = from.items.first_mut().filter(|_| !added.is_empty()) {
                        let mut columns = item.columns.to_vec();
                        item.unstarred = added.len();
                        columns.iter_mut().rev().zip(added.into_iter().rev()).for_each(|(c, name)| c.name = name);
                        item.columns = columns.into();
                    }
                    return Ok(from);
                }
                (None, _) if !recursive_form => {
                    let (message, at) = match &node.ctequery {
                        Some(Node::SelectStmt(_)) => (
                            format!(
                                "recursive query \"{name}\" does not have the form non-recursive-term UNION [ALL] \
                                 recursive-term"
                            ),
                            node.location,
                        ),
                        _ => (
                            format!("recursive query \"{name}\" must not contain data-modifying statements"),
                            node.location,
                        ),
                    };
                    return Err(self.error(SqlState::INVALID_RECURSION, message, at));
                }
                (_, RecursiveContext::Allowed) => {}
                (_, context) => {
                    return Err(self.error(SqlState::INVALID_RECURSION, context.message(name), at));
                }
            }
        }
        self.bind_cte(scope, number)?;
        let cte = &mut self.scopes[scope].ctes[number];
        cte.uses += 1;
        self.cte_depth = self.cte_depth.max(cte.depth);
        let CteState::Bound(bound) = &cte.state else {
            return Err(Error::internal("a WITH query that is not bound"));
        };
        if bound.modifies && bound.columns.is_empty() {
            let message = format!("WITH query \"{name}\" does not have a RETURNING clause");
            return Err(self.unsupported(message, at));
        }
        let (columns, origins) = (bound.columns.clone(), bound.origins.clone());
        self.add_from_rel(RelKind::Cte { id, origins }, columns, name, alias, None)
    }

    /// The query that a reference to a WITH query stands for.
    pub(super) fn cte_body(&self, id: usize) -> Option<&Query> {
        let cte = self.scopes.iter().flat_map(|scope| &scope.ctes).find(|cte| cte.id == id)?;
        match &cte.state {
            CteState::Bound(bound) => Some(&bound.query),
            _ => None,
        }
    }

    /// Gives a query the WITH queries of its scope: those that are kept as such, the others where they are read.
    pub(super) fn finish_ctes(&mut self, query: &mut Query) -> Result<()> {
        if self.scope().ctes.is_empty() {
            return Ok(());
        }
        let in_recursive = self.scope().recursive_ctes;
        let mut kept = Vec::new();
        let mut inlined = Vec::new();
        let mut ctes = std::mem::take(&mut self.scope().ctes);
        ctes.sort_by_key(|cte| match &cte.state {
            CteState::Bound(bound) => bound.number,
            _ => usize::MAX,
        });
        for cte in ctes {
            let CteState::Bound(bound) = cte.state else { continue };
            let Bound { query, modifies, recursive, .. } = *bound;
            let query = Box::new(query);
            let wanted = match cte.node.ctematerialized {
                CTEMaterialize::CTEMaterializeNever => true,
                CTEMaterialize::CTEMaterializeAlways => false,
                _ => cte.uses == 1,
            };
            let name = name_of(cte.node).to_string();
            let inline = wanted && !modifies && !recursive && !is_volatile(&query);
            if self.shows {
                kept.push(Cte { id: cte.id, name, query, modifies, written: written(cte.node, in_recursive) });
            } else if cte.uses == 0 && !modifies {
                // Bound for its errors.
            } else if inline {
                inlined.push((cte.id, cte.uses, query));
            } else {
                kept.push(Cte { id: cte.id, name, query, modifies, written: WrittenCte::default() });
            }
        }
        query.ctes = kept;
        while !inlined.is_empty() {
            let (id, uses, body) = inlined.remove(0);
            let mut body = Some(body);
            let mut left = uses;
            let mut put = |query: &mut Query, depth: usize| {
                for rel in &mut query.rels {
                    if !matches!(rel.kind, RelKind::Cte { id: other, .. } if other == id) {
                        continue;
                    }
                    left = left.saturating_sub(1);
                    let Some(mut query) = (if left == 0 { body.take() } else { body.clone() }) else { continue };
                    shift_query(&mut query, depth as isize);
                    rel.kind = RelKind::Subquery { query, lateral: false };
                }
            };
            // Those that come after it may read it, too.
            for (_, _, later) in &mut inlined {
                walk_queries_mut(later, 1, &mut put);
            }
            walk_queries_mut(query, 0, &mut put);
        }
        Ok(())
    }

    /// As [`Binder::finish_ctes`], for a statement that changes rows.
    pub(super) fn finish_statement(&mut self, statement: Statement) -> Result<Statement> {
        if self.scope().ctes.is_empty() {
            return Ok(statement);
        }
        let mut query = Query { body: Body::Modify(Box::new(statement)), ..Query::default() };
        self.finish_ctes(&mut query)?;
        let Body::Modify(mut statement) = query.body else { return Err(Error::internal("a statement became a query")) };
        match &mut *statement {
            Statement::Select(select) => select.ctes = query.ctes,
            Statement::Insert(insert) => insert.ctes = query.ctes,
            Statement::Update(update) => update.query.ctes = query.ctes,
            Statement::Delete(delete) => delete.query.ctes = query.ctes,
            Statement::Merge(merge) => merge.query.ctes = query.ctes,
        }
        Ok(*statement)
    }

    /// Whether a WITH list around us has an item of this name that is not visible yet.
    pub(super) fn is_future_cte(&self, name: &str) -> bool {
        let mut at = self.scopes.len().checked_sub(1);
        while let Some(index) = at {
            let scope = &self.scopes[index];
            if let (Some(parent), Some(first)) = (scope.parent, scope.parent_ctes_only) {
                let hidden = self.scopes[parent].ctes.get(first..).unwrap_or_default();
                if hidden.iter().any(|c| c.name() == name) {
                    return true;
                }
            }
            at = scope.parent;
        }
        false
    }
}

fn is_union(select: &SelectStmt) -> bool {
    select.op == SetOperation::SETOP_UNION
}

fn rename_targets(query: &mut Query, wanted: &[&str], name: &str) -> Result<()> {
    let have = query.targets.iter().filter(|t| !t.junk).count();
    if wanted.len() > have {
        let message =
            format!("WITH query \"{name}\" has {have} columns available but {} columns specified", wanted.len());
        return Err(Error::new(SqlState::INVALID_COLUMN_REFERENCE, message));
    }
    for (target, wanted) in query.targets.iter_mut().filter(|t| !t.junk).zip(wanted) {
        target.name = wanted.to_string();
    }
    Ok(())
}
