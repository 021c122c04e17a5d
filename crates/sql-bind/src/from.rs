//! FROM: tables, subqueries, functions and joins (`parse_clause.c`, `parse_relation.c`).

use std::rc::Rc;
use std::sync::Arc;

use base::work::Count;
use base::{Oid, Result, SqlState};
use engine_api::oids;
use engine_api::{CatalogObject, Privileges, TableDesc, TableLockMode};
use rupg_sql::nodes::{Alias, JoinExpr, JoinType, Node, RangeSubselect, RangeVar};
use sql_ir::system_relation::{self, SystemRelation};
use sql_ir::{Expr, From, JoinKind, Query, Rel, RelColumn, RelKind, SetCall, TableInfo, Ty};
use sql_parse::privileges::{self};

use super::cte::RecursiveContext;
use super::expr::and;
use super::node::{string, strings};
use super::scope::{ClauseKind, Item, NamedColumn, columns_of};
use super::{Binder, Located};

/// What a name in FROM or after INTO stands for.
pub(super) enum Relation {
    /// A stored table.
    Table(Arc<TableInfo>),
    /// A view.
    View(Arc<TableDesc>),
    /// A relation computed from the catalog.
    System(&'static SystemRelation),
    /// A sequence: one row with its state.
    Sequence(Oid),
}

/// A bound FROM item: its tree, the columns it shows as a whole, the names it brings.
pub(super) struct FromItem {
    tree: From,
    columns: Rc<[NamedColumn]>,
    pub(super) items: Vec<Item>,
}

/// The columns of a table as a rel has them.
pub(super) fn table_columns(desc: &TableDesc) -> Vec<RelColumn> {
    let column = |c: &engine_api::ColumnDesc| RelColumn {
        name: if c.dropped { String::new() } else { c.name.clone() },
        ty: Ty { oid: c.type_oid, typmod: c.typmod },
    };
    desc.columns.iter().counted(32).map(column).collect()
}

impl<'a> Binder<'a, '_> {
    /// Binds a FROM clause into the current scope.
    pub(super) fn bind_from(&mut self, list: &'a [Option<Node>]) -> Result<Vec<From>> {
        let mut trees = Vec::with_capacity(list.len());
        let before = std::mem::replace(&mut self.scope().place, ClauseKind::From);
        for node in list.iter().flatten() {
            let mut item = self.bind_from_item(node)?;
            self.check_name_conflicts(&self.scopes[self.scopes.len() - 1].items, &item.items)?;
            set_lateral(&mut item.items, true, true);
            self.scope().items.append(&mut item.items);
            trees.push(item.tree);
        }
        set_lateral(&mut self.scope().items, false, true);
        self.scope().place = before;
        Ok(trees)
    }

    fn bind_from_item(&mut self, node: &'a Node) -> Result<FromItem> {
        self.check_depth()?;
        self.depth += 1;
        let item = match node {
            Node::RangeVar(r) => self.range_var(r),
            Node::RangeSubselect(s) => self.range_subselect(s),
            Node::RangeFunction(f) => match self.range_function(f) {
                Ok((kind, columns, name)) => self.add_from_rel(kind, columns, &name, f.alias.as_deref(), None),
                Err(e) => Err(e),
            },
            Node::JoinExpr(j) => self.join(j),
            Node::RangeTableSample(s) => self.range_sample(s),
            other => Err(self.unsupported("this kind of FROM item is not supported", super::node::location(other))),
        };
        self.depth -= 1;
        item
    }

    fn check_name_conflicts(&self, left: &[Item], right: &[Item]) -> Result<()> {
        for item in right.iter().filter(|i| i.rel_visible && !i.name.is_empty()) {
            let clash = left.iter().filter(|l| l.rel_visible && l.name == item.name).any(|l| {
                // Two tables of one name can be told apart by their schemas.
                !matches!((l.relation, item.relation), (Some(a), Some(b)) if a != b)
            });
            if clash {
                let message = format!("table name \"{}\" specified more than once", item.name);
                return Err(base::Error::new(SqlState::DUPLICATE_ALIAS, message));
            }
        }
        Ok(())
    }

    /// Adds a rel under an alias; answers the FROM item.
    pub(super) fn add_from_rel(
        &mut self,
        kind: RelKind,
        mut columns: Vec<RelColumn>,
        name: &str,
        alias: Option<&Alias>,
        relation: Option<Oid>,
    ) -> Result<FromItem> {
        let shown = alias.and_then(|a| a.aliasname.as_deref()).unwrap_or(name).to_string();
        let wanted = alias.map(|a| strings(&a.colnames)).unwrap_or_default();
        rename(&mut columns, &wanted, &shown)?;
        let real = (!name.is_empty()).then(|| name.to_string());
        let rel = self.add_rel(Rel { alias: shown, aliased: alias.is_some(), kind, columns }, real);
        let item = self.item_of(rel, if alias.is_some() { None } else { relation });
        Ok(FromItem { tree: From::Rel(rel), columns: Rc::clone(&item.columns), items: vec![item] })
    }

    /// Finds a relation by its possibly qualified name.
    pub(super) fn relation(&mut self, var: &RangeVar) -> Result<Relation> {
        let name = var.relname.as_deref().unwrap_or("");
        let catalog = Arc::clone(&self.cx.catalog);
        if let Some(database) = var.catalogname.as_deref()
            && database != self.cx.identity.database
        {
            let schema = var.schemaname.as_deref().unwrap_or("");
            let message = format!("cross-database references are not implemented: \"{database}.{schema}.{name}\"");
            return Err(self.error(SqlState::FEATURE_NOT_SUPPORTED, message, var.location));
        }
        if let Some(known) = self.known_relation(var) {
            let oid = known.oid;
            if let Some(places) = &mut self.cx.places {
                places.push((var.clone(), oid));
            }
            let found = catalog.get(oid).cloned();
            let found = found.and_then(|object| self.relation_of(var, &object));
            return found.ok_or_else(|| self.missing_table(var));
        }
        let schemas = match var.schemaname.as_deref() {
            Some(schema) => match catalog.schema(self.cx.identity.database_oid, schema) {
                Some(schema) => {
                    self.may_use(schema.oid).map_err(|e| self.locate(e, var.location))?;
                    vec![schema.oid]
                }
                None => self.schemas_without_entry(schema),
            },
            None => self.cx.identity.search_path.clone(),
        };
        for schema in schemas {
            if let Some(relation) = system_relation(schema, name) {
                return Ok(Relation::System(relation));
            }
            let Some(object) = catalog.relation(schema, name) else { continue };
            return match &**object {
                CatalogObject::Table(desc)
                    if desc.persistence == engine_api::Persistence::Temporary
                        && !self.cx.identity.search_path.contains(&desc.schema) =>
                {
                    Err(base::Error::unsupported("cannot access temporary tables of other sessions"))
                }
                CatalogObject::Table(_) | CatalogObject::Sequence(_) => {
                    self.relation_of(var, object).ok_or_else(|| base::Error::internal("a relation that is none"))
                }
                CatalogObject::Index(_) => Err(self
                    .error(SqlState::WRONG_OBJECT_TYPE, format!("cannot open relation \"{name}\""), var.location)
                    .detail("This operation is not supported for indexes.")),
                _ => Err(self.missing_table(var)),
            };
        }
        Err(self.missing_table(var))
    }

    /// Whether the current role may look into a schema.
    pub(super) fn may_use(&self, schema: Oid) -> Result<()> {
        let identity = &self.cx.identity;
        let who = identity.who();
        // Names in the text of a view, and of a stored expression, were looked up when it was made.
        let is_known = self.inside.is_some() || self.cx.names_known || self.cx.in_stored > 0;
        // The session's own is always on its path.
        let is_temporary = || sql_parse::names::is_temporary(&self.cx.catalog, schema);
        let is_own = || identity.search_path.contains(&schema) && is_temporary();
        match self.cx.catalog.get(schema) {
            Some(object) if !identity.superuser && !is_known && !is_own() => {
                privileges::require(&self.cx.catalog, who, object, Privileges::USAGE)
            }
            _ => Ok(()),
        }
    }

    fn missing_table(&self, var: &RangeVar) -> base::Error {
        let name = var.relname.as_deref().unwrap_or("");
        let shown = match var.schemaname.as_deref() {
            Some(schema) => format!("{schema}.{name}"),
            None => name.to_string(),
        };
        let message = format!("relation \"{shown}\" does not exist");
        let error = self.error(SqlState::UNDEFINED_TABLE, message, var.location);
        if var.schemaname.is_some() || !self.is_future_cte(name) {
            return error;
        }
        let detail =
            format!("There is a WITH item named \"{name}\", but it cannot be referenced from this part of the query.");
        error.detail(detail).hint("Use WITH RECURSIVE, or re-order the WITH items to remove forward references.")
    }

    /// Schemas that the catalog has no object for, by the names that they go by.
    fn schemas_without_entry(&self, name: &str) -> Vec<Oid> {
        match name {
            "pg_catalog" => vec![oids::SCHEMA_PG_CATALOG],
            "information_schema" => vec![oids::SCHEMA_INFORMATION_SCHEMA],
            "pg_temp" => {
                let own = |s: &Oid| sql_parse::names::is_temporary(&self.cx.catalog, *s);
                self.cx.identity.search_path.iter().copied().filter(own).collect()
            }
            _ => Vec::new(),
        }
    }

    /// The relation that the qualifier `schema.name` of a column means, in a view's text what it meant when the view was made.
    pub(super) fn relation_named(&self, schema: &str, name: &str) -> Option<Oid> {
        if let Some(known) = self.known_by_schema(schema, name) {
            return Some(known);
        }
        let schemas = match self.cx.catalog.schema(self.cx.identity.database_oid, schema) {
            Some(schema) => vec![schema.oid],
            None => self.schemas_without_entry(schema),
        };
        schemas.into_iter().find_map(|schema| match system_relation(schema, name) {
            Some(relation) => Some(relation.oid),
            None => self.cx.catalog.relation(schema, name).map(|object| object.oid()),
        })
    }

    fn range_var(&mut self, var: &'a RangeVar) -> Result<FromItem> {
        let name = var.relname.as_deref().unwrap_or("");
        let alias = var.alias.as_deref();
        if var.schemaname.is_none()
            && let Some((scope, number)) = self.find_cte(name)
        {
            return self.cte_reference(scope, number, alias, var.location);
        }
        match self.relation(var)? {
            Relation::Table(info) => {
                self.lock(info.desc.oid, TableLockMode::AccessShare);
                let columns = self.named_columns(var, &info.desc);
                let oid = info.desc.oid;
                self.add_from_rel(RelKind::Table(info), columns, name, alias, Some(oid))
            }
            Relation::View(desc) => {
                self.lock(desc.oid, TableLockMode::AccessShare);
                let query = self.view_query(&desc)?;
                let columns = self.named_columns(var, &desc);
                let kind = RelKind::Subquery { query: Box::new(query), lateral: false };
                self.add_from_rel(kind, columns, name, alias, Some(desc.oid))
            }
            Relation::Sequence(oid) => {
                let function = &sql_functions::SEQUENCE_STATE;
                let columns = function.columns.iter();
                let columns = columns.map(|&(name, ty)| RelColumn { name: name.to_string(), ty: Ty::of(ty) }).collect();
                let args = vec![Expr::Const(::types::Datum::Oid(oid.0), Ty::of(::types::oid::REGCLASS))];
                let kind =
                    RelKind::Function { calls: vec![SetCall { function, args }], ordinality: false, per_row: false };
                self.add_from_rel(kind, columns, name, alias, Some(oid))
            }
            Relation::System(relation) => {
                let columns = relation.columns.iter().enumerate();
                let columns = columns.map(|(i, &(name, oid))| RelColumn {
                    name: name.to_string(),
                    ty: Ty { oid, typmod: relation.typmod(i) },
                });
                // The last column has no name that a list could show: `tableoid`.
                let hidden = RelColumn { name: String::new(), ty: Ty::of(::types::oid::OID) };
                let columns = columns.chain(std::iter::once(hidden)).collect();
                self.add_from_rel(RelKind::System(relation), columns, name, alias, Some(relation.oid))
            }
        }
    }

    fn range_subselect(&mut self, sub: &'a RangeSubselect) -> Result<FromItem> {
        let Some(Node::SelectStmt(select)) = &sub.subquery else {
            return Err(base::Error::internal("a subquery without a query"));
        };
        let alias = sub.alias.as_deref();
        if alias.is_none() {
            let values = !select.valuesLists.is_empty();
            let message =
                if values { "VALUES in FROM must have an alias" } else { "subquery in FROM must have an alias" };
            let hint = match values {
                true => "For example, FROM (VALUES ...) [AS] foo.",
                false => "For example, FROM (SELECT ...) [AS] foo.",
            };
            let at = sub.subquery.as_ref().map_or(-1, super::node::location);
            let at = opening_parenthesis(self.sql, at, if values { "values" } else { "select" });
            return Err(self.error(SqlState::SYNTAX_ERROR, message, at).hint(hint));
        }
        let before = std::mem::replace(&mut self.scope().lateral_active, sub.lateral);
        let bound = self.subquery(select, true);
        self.scope().lateral_active = before;
        let query = bound?.query;
        let columns = visible_columns(&query);
        let kind = RelKind::Subquery { query: Box::new(query), lateral: sub.lateral };
        self.add_from_rel(kind, columns, "", alias, None)
    }

    fn join(&mut self, join: &'a JoinExpr) -> Result<FromItem> {
        let kind = match join.jointype {
            JoinType::JOIN_LEFT => JoinKind::Left,
            JoinType::JOIN_RIGHT => JoinKind::Right,
            JoinType::JOIN_FULL => JoinKind::Full,
            _ => JoinKind::Inner,
        };
        let (Some(left), Some(right)) = (&join.larg, &join.rarg) else {
            return Err(base::Error::internal("a join without two sides"));
        };
        let context = self.recursive_context;
        if matches!(kind, JoinKind::Right | JoinKind::Full) {
            self.recursive_context = RecursiveContext::OuterJoin;
        }
        let mut left = self.bind_from_item(left)?;
        self.recursive_context = context;
        if matches!(kind, JoinKind::Left | JoinKind::Full) {
            self.recursive_context = RecursiveContext::OuterJoin;
        }
        let known = self.scope().items.len();
        let mut lent = left.items.clone();
        set_lateral(&mut lent, true, matches!(kind, JoinKind::Inner | JoinKind::Left));
        self.scope().items.append(&mut lent);
        let right = self.bind_from_item(right);
        self.recursive_context = context;
        self.scope().items.truncate(known);
        let mut right = right?;
        self.check_name_conflicts(&left.items, &right.items)?;

        let using: Vec<String> = match join.isNatural {
            true => common_names(&left.columns, &right.columns),
            false => join.usingClause.iter().flatten().filter_map(string).map(str::to_string).collect(),
        };
        let (merged, mut conditions) = self.merge_columns(&using, &left.columns, &right.columns, kind)?;
        let mut items = std::mem::take(&mut left.items);
        items.append(&mut right.items);
        if let Some(quals) = &join.quals {
            set_lateral(&mut items, false, true);
            let saved = std::mem::replace(&mut self.scope().items, items.clone());
            let bound = self.at_place(ClauseKind::JoinOn, |b| {
                let value = b.expr(quals)?;
                b.coerce_to_boolean(value, "JOIN/ON")
            });
            self.scope().items = saved;
            conditions.push(bound?);
        }
        let on = (!conditions.is_empty()).then(|| and(conditions));
        let mut columns = merged.clone();
        let rest = |c: &&NamedColumn| !c.name.is_empty() && !using.contains(&c.name);
        let sides = left.columns.iter().chain(right.columns.iter());
        columns.extend(sides.counted(64).filter(rest).cloned());
        let tree = From::Join { kind, left: Box::new(left.tree), right: Box::new(right.tree), on };
        self.join_names(join, tree, columns, merged, items)
    }

    /// What a join and its sides are called from outside.
    fn join_names(
        &mut self,
        join: &JoinExpr,
        tree: From,
        mut columns: Vec<NamedColumn>,
        merged: Vec<NamedColumn>,
        mut items: Vec<Item>,
    ) -> Result<FromItem> {
        let item = |name: &str, columns: Rc<[NamedColumn]>, rel_visible, columns_visible| Item {
            name: name.to_string(),
            relation: None,
            rel: None,
            columns,
            rel_visible,
            columns_visible,
            lateral_only: false,
            lateral_ok: true,
            notes_reads: false,
            system_rel: None,
            unstarred: 0,
        };
        if let Some(alias) = &join.alias {
            let name = alias.aliasname.as_deref().unwrap_or("");
            let wanted = strings(&alias.colnames);
            if wanted.len() > columns.len() {
                return Err(too_many_names(name, columns.len(), wanted.len()));
            }
            for (column, wanted) in columns.iter_mut().zip(wanted) {
                column.name = wanted.to_string();
            }
            // The alias hides the names of both sides.
            let columns: Rc<[NamedColumn]> = columns.into();
            items = vec![item(name, Rc::clone(&columns), true, true)];
            return Ok(FromItem { tree, columns, items });
        }
        items.iter_mut().for_each(|i| i.columns_visible = false);
        // A join within this one that has no name is found no more.
        items.retain(|i| i.rel.is_some() || i.rel_visible);
        if let Some(alias) = &join.join_using_alias {
            let named = item(alias.aliasname.as_deref().unwrap_or(""), merged.into(), true, false);
            self.check_name_conflicts(&items, std::slice::from_ref(&named))?;
            items.push(named);
        }
        let columns: Rc<[NamedColumn]> = columns.into();
        items.push(item("", Rc::clone(&columns), false, true));
        Ok(FromItem { tree, columns, items })
    }

    /// USING: for each name the merged column and the condition.
    fn merge_columns(
        &mut self,
        using: &[String],
        left: &[NamedColumn],
        right: &[NamedColumn],
        kind: JoinKind,
    ) -> Result<(Vec<NamedColumn>, Vec<Expr>)> {
        let mut merged = Vec::with_capacity(using.len());
        let mut conditions = Vec::with_capacity(using.len());
        for (i, name) in using.iter().enumerate() {
            if using[..i].contains(name) {
                let message = format!("column name \"{name}\" appears more than once in USING clause");
                return Err(base::Error::new(SqlState::DUPLICATE_COLUMN, message));
            }
            let l = using_column(left, name, "left")?;
            let r = using_column(right, name, "right")?;
            let located = |expr: &Expr| Located { expr: expr.clone(), at: -1 };
            conditions.push(self.operator("=", Some(located(&l)), located(&r), -1)?.expr);
            let values = [located(&l), located(&r)];
            let ty = self.common_type_of(&values, "JOIN/USING")?;
            let [l, r] = values;
            let same_typmod = l.expr.ty() == r.expr.ty();
            let typmod = if same_typmod { l.expr.ty().typmod } else { -1 };
            let l = self.coerce_to_common(l, ty, "JOIN/USING")?.expr;
            let r = self.coerce_to_common(r, ty, "JOIN/USING")?.expr;
            let expr = match kind {
                JoinKind::Inner if !matches!(l, Expr::Column(_)) && matches!(r, Expr::Column(_)) => r,
                JoinKind::Inner | JoinKind::Left | JoinKind::Semi | JoinKind::Anti => l,
                JoinKind::Right => r,
                JoinKind::Full => Expr::Coalesce(vec![l, r], Ty { oid: ty, typmod }),
            };
            merged.push(NamedColumn { name: name.clone(), expr });
        }
        Ok((merged, conditions))
    }

    /// Notes that a statement uses a table; the strongest lock counts.
    pub(super) fn lock(&mut self, table: Oid, mode: TableLockMode) {
        match self.tables.iter_mut().find(|(t, _)| *t == table) {
            Some((_, known)) => *known = (*known).max(mode),
            None => self.tables.push((table, mode)),
        }
    }
}

/// Where the parenthesis stands that opens the subquery around a place.
fn opening_parenthesis(sql: &str, at: i32, keyword: &str) -> i32 {
    let before = usize::try_from(at).ok().and_then(|at| sql.get(..at)).map(str::to_ascii_lowercase);
    let found = before.and_then(|b| b.rfind(keyword).and_then(|k| b[..k].rfind('(')));
    found.map_or(at, |p| p as i32)
}

fn set_lateral(items: &mut [Item], only: bool, ok: bool) {
    for item in items {
        item.lateral_only = only;
        item.lateral_ok = ok;
    }
}

fn too_many_names(table: &str, have: usize, wanted: usize) -> base::Error {
    let message = format!("table \"{table}\" has {have} columns available but {wanted} columns specified");
    base::Error::new(SqlState::INVALID_COLUMN_REFERENCE, message)
}

/// Gives columns the names of an alias list.
fn rename(columns: &mut [RelColumn], wanted: &[&str], table: &str) -> Result<()> {
    let live = columns.iter().filter(|c| !c.name.is_empty()).count();
    if wanted.len() > live {
        return Err(too_many_names(table, live, wanted.len()));
    }
    for (column, name) in columns.iter_mut().filter(|c| !c.name.is_empty()).zip(wanted) {
        column.name = name.to_string();
    }
    Ok(())
}

/// The columns a query shows.
pub(super) fn visible_columns(query: &Query) -> Vec<RelColumn> {
    let visible = query.targets.iter().filter(|t| !t.junk);
    visible.map(|t| RelColumn { name: t.name.clone(), ty: t.expr.ty() }).collect()
}

fn common_names(left: &[NamedColumn], right: &[NamedColumn]) -> Vec<String> {
    let in_right = |c: &&NamedColumn| !c.name.is_empty() && right.iter().any(|r| r.name == c.name);
    left.iter().filter(in_right).map(|c| c.name.clone()).collect()
}

fn using_column(columns: &[NamedColumn], name: &str, side: &str) -> Result<Expr> {
    let mut found = columns.iter().filter(|c| c.name == name);
    match (found.next(), found.next()) {
        (Some(column), None) => Ok(column.expr.clone()),
        (None, _) => {
            let message = format!("column \"{name}\" specified in USING clause does not exist in {side} table");
            Err(base::Error::new(SqlState::UNDEFINED_COLUMN, message))
        }
        (Some(_), Some(_)) => {
            let message = format!("common column name \"{name}\" appears more than once in {side} table");
            Err(base::Error::new(SqlState::AMBIGUOUS_COLUMN, message))
        }
    }
}

/// A relation of the system's in one of its schemas.
pub(super) fn system_relation(schema: Oid, name: &str) -> Option<&'static SystemRelation> {
    match schema {
        oids::SCHEMA_PG_CATALOG => system_relation::named("pg_catalog", name),
        oids::SCHEMA_INFORMATION_SCHEMA => system_relation::named("information_schema", name),
        _ => None,
    }
}

/// The namespace item of a rel that is not from FROM (the target of DML).
pub(super) fn target_item(rel: usize, entry: &Rel, relation: Option<Oid>) -> Item {
    Item {
        name: entry.alias.clone(),
        relation,
        rel: Some(rel),
        columns: columns_of(rel, entry).into(),
        rel_visible: true,
        columns_visible: true,
        lateral_only: false,
        lateral_ok: true,
        notes_reads: false,
        system_rel: matches!(entry.kind, RelKind::Table(_)).then_some(rel),
        unstarred: 0,
    }
}
