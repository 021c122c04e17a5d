//! INSERT, UPDATE, DELETE, and the expressions stored with tables.

use std::sync::Arc;

use base::{Error, Result, SqlState};
use engine_api::{CatalogObject, ConstraintKind, Expression, TableDesc, TableLockMode};
use rupg_sql::nodes::{
    DeleteStmt, InsertStmt, Node, OverridingKind, RangeVar, ResTarget, RowExpr, SelectStmt, SetOperation, SubLink,
    UpdateStmt,
};
use sql_functions as functions;
use sql_ir::{
    Column, ColumnSource, Delete, Expr, Guard, Insert, InsertSource, OnConflict, Query, Rel, RelKind, Statement,
    TableInfo, Target, Ty, Update,
};

use super::from::{Relation, table_columns, target_item};
use super::node::location;
use super::parts::each_once;
use super::scope::{ClauseKind, NamedColumn, Scope};
use super::select::{BoundQuery, origin};
use super::view::Through;
use super::{BindContext, Binder, Located, ResultColumn};

/// A bound statement and its result columns.
pub(super) type Bound = (Statement, Vec<ResultColumn>);

/// What a statement changes: a table, and the simple view in between if it names one.
#[derive(Clone, Debug)]
pub(super) struct Written {
    pub(super) table: Arc<TableInfo>,
    pub through: Option<Box<Through>>,
    /// What the statement does, as messages name it.
    verb: &'static str,
}

impl Written {
    /// Whether it names a view.
    pub(super) fn is_through_view(&self) -> bool {
        self.through.is_some()
    }

    /// The name of what the statement names.
    fn name(&self) -> &str {
        self.through.as_ref().map_or(&self.table.desc.name, |t| &t.name)
    }

    /// The descriptor whose default a column (attribute number - 1) has.
    fn default_column(&self, index: usize) -> &engine_api::ColumnDesc {
        let own = self.through.as_ref().and_then(|t| t.defaults.iter().find(|(at, _)| *at == index));
        own.map_or(&self.table.desc.columns[index], |(_, column)| column)
    }

    fn view_checks(&self) -> Vec<(String, Expr)> {
        self.through.as_ref().map(|t| t.checks.clone()).unwrap_or_default()
    }

    /// Adds the view's conditions to that of the statement.
    fn within_view(&self, filter: Option<Expr>, query: &mut Query) {
        let own = self.through.as_ref().and_then(|t| t.filter.clone());
        query.filter = match (own, filter) {
            (Some(own), Some(filter)) => Some(super::expr::and(vec![own, filter])),
            (own, filter) => own.or(filter),
        };
        let guards = self.through.iter().flat_map(|t| t.guards.iter().cloned());
        query.guards = guards.map(|condition| Guard { rel: 0, condition }).collect();
    }
}

/// `nextval`
const NEXTVAL_OID: u32 = 1574;

/// Stands for a column of a view that is no column of its table.
const COMPUTED: usize = usize::MAX - 1;

/// A table column that a statement assigns to.
#[derive(Clone, Debug)]
pub(super) struct Assigned<'a> {
    pub(super) index: usize,
    pub(super) name: String,
    /// The type of the values that are assigned: for a domain what is under it.
    pub(super) ty: Ty,
    /// The type of the column.
    pub(super) own: base::Oid,
    pub(super) at: i32,
    /// The part of the column that is assigned to, if it is not the whole.
    pub(super) part: Option<&'a [Option<Node>]>,
}

impl Assigned<'_> {
    /// Whether a value for the whole column is one of the column's domain.
    fn is_of_domain(&self, value: &Expr) -> bool {
        // Parameters of a domain are not tested when they come.
        let is_param = matches!(value, Expr::Param(..));
        self.own != self.ty.oid && self.part.is_none() && value.ty().oid == self.own && !is_param
    }
}

/// What an UPDATE assigns to a column.
enum Source<'a> {
    Node(&'a Node),
    Column(&'a SubLink, usize, usize),
    /// A field of a row with stars; `None` is DEFAULT.
    Field(Option<Located>),
}

/// The source of a multiple assignment, which the parser may hang on its first column only.
#[derive(Default)]
struct SharedSource<'a> {
    node: Option<&'a Node>,
    /// Its fields, if it is a row with stars.
    fields: Vec<Option<Located>>,
}

impl<'a> Binder<'a, '_> {
    /// INSERT.
    pub(super) fn insert(&mut self, insert: &'a InsertStmt) -> Result<Bound> {
        let around = std::mem::take(&mut self.through);
        self.push_scope();
        self.add_ctes(insert.withClause.as_deref())?;
        let written = self.target_table(insert.relation.as_deref(), "insert into")?;
        let table = Arc::clone(&written.table);
        let mut rels = self.target_rels(&written, insert.relation.as_deref());
        // The source does not see the table, but errors know that it is there.
        self.enter_target(&rels[..1], &written);
        self.scope().items.clear();
        let columns = self.insert_columns(&insert.cols, &written)?;
        let explicit = !insert.cols.is_empty();
        let around_domains = std::mem::take(&mut self.of_domain);
        let (source, assigned) = self.insert_source(insert, &written, columns, explicit)?;
        let known = std::mem::replace(&mut self.of_domain, around_domains);
        if let Some(through) = &written.through {
            self.through.used.inserted = assigned.iter().filter_map(|a| through.position(&a.name)).collect();
        }
        if let Some((view, column)) = written.through.as_ref().and_then(|through| through.stuck.as_ref()) {
            return Err(not_assignable(written.verb, column, view, false));
        }
        let named = assigned.iter().map(|a| a.index).filter(|&index| index < COMPUTED).collect();
        let (source, assigned) = self.generated_values(insert.r#override, &table.desc, source, assigned)?;
        let defaults = written.through.iter().flat_map(|through| &through.defaults);
        for column in defaults.filter_map(|(at, _)| table.desc.columns.get(*at)) {
            if is_always(column, insert.r#override) {
                return Err(non_default(column));
            }
        }
        for (n, column) in assigned.iter().enumerate() {
            // Two columns of a view may be the same one of its table.
            if column.index < COMPUTED && assigned[..n].iter().any(|a| a.index == column.index) {
                let name = &table.desc.columns[column.index].name;
                let message = format!("multiple assignments to same column \"{name}\"");
                return Err(Error::new(SqlState::SYNTAX_ERROR, message));
            }
        }
        let mut from = Vec::with_capacity(table.desc.columns.len());
        for (i, column) in table.desc.columns.iter().enumerate() {
            from.push(match assigned.iter().position(|a| a.index == i) {
                Some(n) => ColumnSource::Source(n),
                None if column.dropped => ColumnSource::Default(Self::null(value_type(column))),
                // OVERRIDING USER VALUE passes over what views say of an identity column.
                None if column.identity.is_some() && insert.r#override == OverridingKind::OVERRIDING_USER_VALUE => {
                    ColumnSource::Default(self.column_default(column)?)
                }
                None => ColumnSource::Default(self.column_default(written.default_column(i))?),
            });
        }
        // The value of a domain is tested before the values of later columns are computed. Generated columns are tested last.
        let columns = &table.desc.columns;
        let (later, at_once): (Vec<usize>, Vec<_>) =
            (0..columns.len()).partition(|&column| columns[column].generated.is_some());
        let tests = super::domain::column_tests(&table.desc, &[known, later].concat(), self.cx)?;
        let (on_conflict, known) = match insert.onConflictClause.as_deref() {
            // The row that is updated is tested as a whole.
            Some(clause) => (self.on_conflict(clause, &written, &mut rels)?, Vec::new()),
            None => (None, at_once),
        };
        let updates = matches!(&on_conflict, Some(OnConflict { update: Some(_), .. }));
        self.enter_target_alone(&rels, updates, &written);
        let list = insert.returningClause.as_ref().map(|r| &r.exprs);
        let mut query = Query::default();
        let (returning, result) = self.returning(list.map(Vec::as_slice), &mut query)?;
        self.keep_system_columns(&mut rels);
        let checks = self.checks(&table.desc, &known, None)?;
        let generated = generated(&table.desc, self.cx)?;
        let (ctes, view_checks) = (Vec::new(), written.view_checks());
        let (columns, through) = (from, std::mem::replace(&mut self.through, around));
        let insert = Insert {
            ctes,
            table,
            source,
            columns,
            tests,
            named,
            on_conflict,
            returning,
            rels,
            checks,
            view_checks,
            generated,
            through,
        };
        let statement = self.finish_statement(Statement::Insert(Box::new(insert)))?;
        self.scopes.pop();
        Ok((statement, result))
    }

    /// The table that a statement changes.
    pub(super) fn target_table(&mut self, var: Option<&RangeVar>, verb: &'static str) -> Result<Written> {
        let Some(var) = var else { return Err(Error::internal("a statement without a table")) };
        let name = var.relname.as_deref().unwrap_or("");
        match self.relation(var)? {
            Relation::Table(info) => {
                if info.desc.kind == engine_api::TableKind::MaterializedView {
                    let message = format!("cannot change materialized view \"{}\"", info.desc.name);
                    self.refused.get_or_insert_with(|| Error::new(SqlState::WRONG_OBJECT_TYPE, message));
                }
                self.lock(info.desc.oid, TableLockMode::RowExclusive);
                Ok(Written { table: info, through: None, verb })
            }
            Relation::View(desc) => {
                self.lock(desc.oid, TableLockMode::RowExclusive);
                let (table, through) = self.through_view(&desc, verb, false)?;
                Ok(Written { table, through: Some(Box::new(through)), verb })
            }
            Relation::Sequence(..) => {
                let message = format!("cannot change sequence \"{name}\"");
                Err(Error::new(SqlState::WRONG_OBJECT_TYPE, message))
            }
            Relation::System(relation) if relation.name == "pg_settings" && verb == "update" => {
                Err(Error::unsupported("UPDATE of \"pg_settings\" is not supported").hint("SET changes a setting."))
            }
            Relation::System(relation) if relation.is_view() => {
                let why = "Views that do not select from a single table or view are not automatically updatable.";
                Err(super::view::not_updatable(relation.name, verb, why))
            }
            Relation::System(relation) if !self.cx.identity.superuser => {
                Err(sql_parse::privileges::denied_on_system(relation.name, relation.is_view()))
            }
            Relation::System(relation) => {
                let message = format!("permission denied: \"{}\" is a system catalog", relation.name);
                Err(Error::new(SqlState::INSUFFICIENT_PRIVILEGE, message))
            }
        }
    }

    fn target_alias(var: Option<&RangeVar>, written: &Written) -> String {
        let alias = var.and_then(|v| v.alias.as_ref()).and_then(|a| a.aliasname.as_deref());
        alias.unwrap_or(written.name()).to_string()
    }

    pub(super) fn target_rels(&self, written: &Written, var: Option<&RangeVar>) -> Vec<Rel> {
        let table = &written.table;
        let rel = |alias: String| Rel {
            alias,
            aliased: false,
            kind: RelKind::Table(Arc::clone(table)),
            columns: table_columns(&table.desc),
        };
        let mut target = rel(Self::target_alias(var, written));
        if written.through.as_ref().is_some_and(|through| through.names_system) {
            target.system_columns();
        }
        vec![target, rel("excluded".to_string())]
    }

    /// Enters the target alone: names refer to its columns only. With DO UPDATE, `excluded` stays in the range table, for the hints of
    /// errors.
    pub(super) fn enter_target_alone(&mut self, rels: &[Rel], updates: bool, written: &Written) {
        self.enter_target(if updates { rels } else { &rels[..1] }, written);
        self.scope().items.truncate(1);
    }

    /// Makes rels the range table of the current scope, all visible.
    pub(super) fn enter_target(&mut self, rels: &[Rel], written: &Written) {
        let named = written.through.as_ref().map_or(written.table.desc.oid, |t| t.oid);
        let items = rels
            .iter()
            .enumerate()
            .map(|(i, rel)| {
                let own_name = i == 0 && rel.alias == written.name();
                let mut item = target_item(i, rel, own_name.then_some(named));
                item.notes_reads = true;
                item.system_rel = (i == 0 && written.through.is_none()).then_some(0);
                if let Some(through) = &written.through {
                    // The view's columns stand for expressions over the table.
                    item.rel = None;
                    item.columns = through.columns.iter().map(|c| over_rel(c, i)).collect();
                }
                item
            })
            .collect();
        let scope = self.scope();
        scope.items = items;
        scope.rels = rels.to_vec();
        scope.real_names = vec![Some(written.name().to_string()); rels.len()];
        if let Some(name) = scope.real_names.get_mut(1) {
            *name = None;
        }
    }

    fn column_named(&self, name: &str, written: &Written, at: i32) -> Result<Assigned<'a>> {
        let desc = &written.table.desc;
        let missing = || {
            let message = format!("column \"{name}\" of relation \"{}\" does not exist", written.name());
            self.error(SqlState::UNDEFINED_COLUMN, message, at)
        };
        if let Some(through) = &written.through {
            let base = through.base_column(name).ok_or_else(missing)?;
            return Ok(assigned_through(desc, name, base, at));
        }
        let found = desc.columns.iter().position(|c| !c.dropped && c.name == name);
        found.map(|index| assigned(desc, index, at)).ok_or_else(missing)
    }

    /// Refuses values for columns that a view computes.
    fn check_assignable(&self, column: &Assigned<'_>, written: &Written) -> Result<()> {
        if column.index != COMPUTED {
            return Ok(());
        }
        let is_system = written.through.as_ref().is_some_and(|through| through.is_system(&column.name));
        Err(not_assignable(written.verb, &column.name, written.name(), is_system))
    }

    /// The columns an INSERT names, or all.
    pub(super) fn insert_columns(&self, list: &'a [Option<Node>], written: &Written) -> Result<Vec<Assigned<'a>>> {
        let desc = &written.table.desc;
        if let (true, Some(through)) = (list.is_empty(), &written.through) {
            let columns = through.columns.iter();
            return Ok(columns
                .map(|c| assigned_through(desc, &c.name, through.base_column(&c.name).flatten(), -1))
                .collect());
        }
        if list.is_empty() {
            let live = desc.columns.iter().enumerate().filter(|(_, c)| !c.dropped);
            return Ok(live.map(|(i, _)| assigned(desc, i, -1)).collect());
        }
        let mut out: Vec<Assigned<'a>> = Vec::with_capacity(list.len());
        for node in list.iter().flatten() {
            let Node::ResTarget(target) = node else { continue };
            let mut column = self.assignment_target(target, written)?;
            column.part = Some(target.indirection.as_slice()).filter(|part| !part.is_empty());
            let whole = |c: &Assigned<'_>| c.part.is_none() || column.part.is_none();
            if out.iter().any(|c| c.index == column.index && c.name == column.name && whole(c)) {
                let message = format!("column \"{}\" specified more than once", column.name);
                return Err(self.error(SqlState::DUPLICATE_COLUMN, message, target.location));
            }
            out.push(column);
        }
        Ok(out)
    }

    fn assignment_target(&self, target: &ResTarget, written: &Written) -> Result<Assigned<'a>> {
        self.column_named(target.name.as_deref().unwrap_or(""), written, target.location)
    }

    fn insert_source(
        &mut self,
        insert: &'a InsertStmt,
        written: &Written,
        columns: Vec<Assigned<'a>>,
        explicit: bool,
    ) -> Result<(InsertSource, Vec<Assigned<'a>>)> {
        let Some(node) = &insert.selectStmt else {
            return Ok((InsertSource::Values(vec![Vec::new()]), Vec::new()));
        };
        let Node::SelectStmt(select) = node else { return Err(Error::internal("INSERT of what is no query")) };
        if is_plain_values(select) {
            return self.insert_values(select, written, columns, explicit);
        }
        let mut bound = self.subquery(select, false)?;
        let at: Vec<i32> = bound.at.clone();
        let width = bound.query.targets.iter().filter(|t| !t.junk).count();
        let columns = self.match_width(columns, width, explicit, |i| at.get(i).copied().unwrap_or(-1))?;
        columns.iter().try_for_each(|c| self.check_assignable(c, written))?;
        let values = bound.query.targets.iter().filter(|t| !t.junk).zip(&columns);
        let of_domain =
            values.filter(|(value, column)| column.is_of_domain(&value.expr)).map(|(_, column)| column.index);
        self.of_domain = of_domain.collect();
        self.assign_query(&mut bound, &columns)?;
        Ok((InsertSource::Query(Box::new(bound.query)), each_once(columns)))
    }

    /// There may be fewer values than columns only if no columns were named.
    pub(super) fn match_width(
        &self,
        mut columns: Vec<Assigned<'a>>,
        width: usize,
        explicit: bool,
        at: impl Fn(usize) -> i32,
    ) -> Result<Vec<Assigned<'a>>> {
        if width > columns.len() {
            let message = "INSERT has more expressions than target columns";
            return Err(self.error(SqlState::SYNTAX_ERROR, message, at(columns.len())));
        }
        if width < columns.len() && explicit {
            let message = "INSERT has more target columns than expressions";
            return Err(self.error(SqlState::SYNTAX_ERROR, message, columns[width].at));
        }
        columns.truncate(width);
        Ok(columns)
    }

    fn insert_values(
        &mut self,
        select: &'a SelectStmt,
        written: &Written,
        columns: Vec<Assigned<'a>>,
        explicit: bool,
    ) -> Result<(InsertSource, Vec<Assigned<'a>>)> {
        let lists: Vec<&'a [Option<Node>]> = select
            .valuesLists
            .iter()
            .flatten()
            .filter_map(|n| match n {
                Node::List(list) => Some(list.as_slice()),
                _ => None,
            })
            .collect();
        let first = lists.first().copied().unwrap_or(&[]);
        if let Some(other) = lists.iter().find(|l| l.len() != first.len()) {
            let at = other.iter().flatten().map(location).next().unwrap_or(-1);
            return Err(self.error(SqlState::SYNTAX_ERROR, "VALUES lists must all be the same length", at));
        }
        let at = |i: usize| first.get(i).and_then(Option::as_ref).map_or(-1, location);
        let columns = self.match_width(columns, first.len(), explicit, at)?;
        columns.iter().try_for_each(|c| self.check_assignable(c, written))?;
        self.defaulted = columns
            .iter()
            .enumerate()
            .filter(|(n, _)| lists.iter().all(|l| matches!(l.get(*n), Some(Some(Node::SetToDefault(_))))))
            .map(|(_, column)| column.index)
            .collect();
        let only = if let [only] = lists[..] { Some(only) } else { None };
        match lists.into_iter().map(|list| self.row_values(list, &columns, written)).collect::<Result<_>>() {
            Ok(rows) => Ok((InsertSource::Values(rows), each_once(columns))),
            Err(error) => match only.filter(|_| super::set_calls::is_misplaced(&error)) {
                Some(only) => self.insert_set(only, written, columns),
                None => Err(error),
            },
        }
    }

    /// A row of values with set-returning functions among them: several rows.
    fn insert_set(
        &mut self,
        list: &'a [Option<Node>],
        written: &Written,
        columns: Vec<Assigned<'a>>,
    ) -> Result<(InsertSource, Vec<Assigned<'a>>)> {
        self.defaulted.clear();
        self.push_scope();
        let mut bound = BoundQuery { query: Query::default(), at: Vec::new() };
        self.scope().place = ClauseKind::Targets;
        for (node, column) in list.iter().flatten().zip(&columns) {
            let value = match node {
                Node::SetToDefault(_) => {
                    let expr = self.column_default(written.default_column(column.index))?;
                    Located { expr, at: -1 }
                }
                node => self.expr(node)?,
            };
            bound.at.push(value.at);
            bound.query.targets.push(Target { expr: value.expr, name: column.name.clone(), junk: false });
        }
        self.finish_select(&mut bound)?;
        self.scopes.pop();
        self.assign_query(&mut bound, &columns)?;
        Ok((InsertSource::Query(Box::new(bound.query)), each_once(columns)))
    }

    /// The values of the only row of an INSERT, for [`each_once`] of its columns.
    pub(super) fn insert_row(
        &mut self,
        list: &'a [Option<Node>],
        columns: &[Assigned<'a>],
        written: &Written,
    ) -> Result<Vec<Expr>> {
        columns.iter().try_for_each(|c| self.check_assignable(c, written))?;
        let defaults = columns.iter().zip(list).filter(|(_, node)| matches!(node, Some(Node::SetToDefault(_))));
        self.defaulted = defaults.map(|(column, _)| column.index).collect();
        self.row_values(list, columns, written)
    }

    fn row_values(
        &mut self,
        list: &'a [Option<Node>],
        columns: &[Assigned<'a>],
        written: &Written,
    ) -> Result<Vec<Expr>> {
        self.at_place(ClauseKind::Values, |b| {
            if columns.iter().any(|c| c.part.is_some()) {
                return b.row_of_parts(list, columns, written);
            }
            let values = list.iter().flatten().zip(columns);
            values.map(|(node, column)| b.assigned_value(node, column, written, None)).collect()
        })
    }

    /// A value for a column, or DEFAULT. `before`: what other parts of it have got already.
    pub(super) fn assigned_value(
        &mut self,
        node: &'a Node,
        column: &Assigned<'a>,
        written: &Written,
        before: Option<Expr>,
    ) -> Result<Expr> {
        if matches!(node, Node::SetToDefault(_)) {
            if let Some(part) = column.part {
                return Err(self.default_of_part(part, column.at));
            }
            return self.column_default(written.default_column(column.index));
        }
        let value = self.expr(node)?;
        match column.part {
            Some(part) => {
                let container = before.unwrap_or_else(|| Self::null(column.ty));
                self.assign_part(container, (&column.name, column.ty, column.at), part, value)
            }
            None => Ok(self.assign_whole(value, column)?.expr),
        }
    }

    /// The value of a whole column. A parameter without a type gets the column's, domain or not.
    fn assign_whole(&mut self, mut value: Located, column: &Assigned<'_>) -> Result<Located> {
        if let Expr::Param(index, ty) = value.expr
            && ty.oid == ::types::oid::UNKNOWN
            && column.own != column.ty.oid
        {
            value.expr = self.decide_param(index, Ty::of(column.own), value.at)?;
        } else if column.is_of_domain(&value.expr) {
            self.of_domain.push(column.index);
        }
        self.assign(value, column.ty, column.own, &column.name)
    }

    /// The value of a whole column (attribute number - 1) that COPY reads.
    pub(super) fn copied_value(&mut self, value: Expr, desc: &TableDesc, index: usize) -> Result<Expr> {
        Ok(self.assign_whole(Located { expr: value, at: -1 }, &assigned(desc, index, -1))?.expr)
    }

    /// Refuses values for columns that are always generated, and leaves out what OVERRIDING USER VALUE leaves out.
    pub(super) fn generated_values(
        &mut self,
        overriding: OverridingKind,
        desc: &TableDesc,
        mut source: InsertSource,
        mut assigned: Vec<Assigned<'a>>,
    ) -> Result<(InsertSource, Vec<Assigned<'a>>)> {
        for n in (0..assigned.len()).rev() {
            let column = &desc.columns[assigned[n].index];
            let replaced = column.identity.is_some() && overriding == OverridingKind::OVERRIDING_USER_VALUE;
            // DEFAULT is a value that is allowed; it stands in the list as what the default is.
            let all_default = match &source {
                InsertSource::Values(_) => self.defaulted.contains(&assigned[n].index),
                InsertSource::Query(_) => false,
            };
            if is_always(column, overriding) && !all_default {
                return Err(non_default(column));
            }
            if replaced || column.generated.is_some() {
                if let InsertSource::Query(_) = &source {
                    assigned[n].index = usize::MAX;
                    continue;
                }
                if let InsertSource::Values(rows) = &mut source {
                    rows.iter_mut().for_each(|row| {
                        row.remove(n);
                    });
                }
                assigned.remove(n);
            }
        }
        self.defaulted.clear();
        Ok((source, assigned))
    }

    /// What DEFAULT gives a column that is SET: through a view, the default of the view's own column and not of the table's.
    fn default_to_set(&mut self, index: usize, written: &Written) -> Result<Expr> {
        let column = written.default_column(index);
        if written.through.is_some() && std::ptr::eq(column, &written.table.desc.columns[index]) {
            return self.column_default(&engine_api::ColumnDesc { default: None, ..column.clone() });
        }
        self.column_default(column)
    }

    /// The default of a column, or of its domain; NULL if there is none, and for one that is generated.
    pub(super) fn column_default(&mut self, column: &engine_api::ColumnDesc) -> Result<Expr> {
        let ty = value_type(column);
        match &column.default {
            Some(text) if !column.dropped => {
                let mut value = default_expression(text, ty, &column.name, self.cx)?;
                if column.identity.is_some() {
                    super::visit::walk_mut(&mut value, 0, &mut |expr, _| match expr {
                        Expr::Call { function, .. } if function.oid == NEXTVAL_OID => {
                            *function = &sql_functions::IDENTITY_VALUE;
                        }
                        _ => {}
                    });
                }
                Ok(value)
            }
            _ => match super::domain::default_of(column.type_oid, self.cx) {
                Some(text) if !column.dropped && column.generated.is_none() => {
                    default_expression(&text, ty, &column.name, self.cx)
                }
                _ => Ok(Self::null(ty)),
            },
        }
    }

    /// CHECK constraints over rel 0, and what domains demand of all columns but those whose values are `known` to be of them, and of
    /// what indexes compute, if the row is new or one of their columns may change.
    pub(super) fn checks(
        &mut self,
        desc: &TableDesc,
        known: &[usize],
        may_change: Option<&dyn Fn(usize) -> bool>,
    ) -> Result<Vec<(String, Expr)>> {
        let mut out = super::domain::row_checks(desc, known, self.cx)?;
        for constraint in &desc.constraints {
            if let ConstraintKind::Check { expression } = &constraint.kind {
                out.push((constraint.name.clone(), check_expression(expression, desc, self.cx)?));
            }
        }
        // PostgreSQL tests them in the order of their names.
        out.sort_by(|a, b| a.0.cmp(&b.0));
        out.extend(super::domain::index_tests(desc, may_change, self.cx)?);
        Ok(out)
    }

    /// The assignments of UPDATE and DO UPDATE.
    pub(super) fn set_list(&mut self, list: &'a [Option<Node>], written: &Written) -> Result<Vec<(usize, Expr)>> {
        let desc = &written.table.desc;
        let mut set: Vec<(usize, Expr)> = Vec::with_capacity(list.len());
        let (mut parts, mut names): (Vec<usize>, Vec<String>) = (Vec::new(), Vec::new());
        let mut shared = SharedSource::default();
        for node in list.iter().flatten() {
            let Node::ResTarget(target) = node else { continue };
            let Some(value) = &target.val else { continue };
            let source = self.assignment_source(value, &mut shared)?;
            let bound = self.at_place(ClauseKind::UpdateSource, |b| match source {
                Source::Node(Node::SetToDefault(_)) => Ok(None),
                Source::Node(node) => b.expr(node).map(Some),
                Source::Column(link, column, of) => b.sublink_column(link, column, of).map(Some),
                Source::Field(value) => Ok(value),
            })?;
            self.refuse_system_target(target, written)?;
            let column = self.assignment_target(target, written)?;
            self.check_assignable(&column, written)?;
            if let Some(at) = written.through.as_ref().and_then(|through| through.position(&column.name)) {
                self.through.used.updated.insert(at);
            }
            let before = set.iter().position(|(i, _)| *i == column.index);
            // Assignments to parts of a column are made one after the other.
            let is_part = !target.indirection.is_empty();
            let desc_column = &desc.columns[column.index];
            if before.is_some() && !(is_part && parts.contains(&column.index)) {
                // Two columns of a view may be the same one of its table.
                let again = names.iter().find(|name| **name == column.name).unwrap_or(&desc_column.name);
                let message = format!("multiple assignments to same column \"{again}\"");
                return Err(Error::new(SqlState::SYNTAX_ERROR, message));
            }
            if written.is_through_view() {
                names.push(column.name.clone());
            }
            let always = desc_column.generated.is_some() || desc_column.identity == Some(engine_api::Identity::Always);
            // DEFAULT of a view's column is a value to its table.
            if always && (bound.is_some() || written.through.is_some()) {
                let message = format!("column \"{}\" can only be updated to DEFAULT", column.name);
                return Err(not_generated(Error::new(SqlState::GENERATED_ALWAYS, message), desc_column, false));
            }
            if desc_column.generated.is_some() {
                continue;
            }
            let expr = match bound {
                Some(value) if is_part => {
                    let old = match before {
                        Some(i) => set.remove(i).1,
                        None => Expr::Column(Column { level: 0, rel: 0, column: column.index, ty: column.ty }),
                    };
                    parts.push(column.index);
                    self.assign_part(old, (&column.name, column.ty, target.location), &target.indirection, value)?
                }
                None if is_part => return Err(self.default_of_part(&target.indirection, target.location)),
                None => self.default_to_set(column.index, written)?,
                Some(value) => self.assign_whole(value, &column)?.expr,
            };
            set.push((column.index, expr));
        }
        // They are computed in the order of the columns.
        set.sort_by_key(|(column, _)| *column);
        Ok(set)
    }

    /// What one column of an assignment gets.
    fn assignment_source(&mut self, value: &'a Node, shared: &mut SharedSource<'a>) -> Result<Source<'a>> {
        let Node::MultiAssignRef(part) = value else { return Ok(Source::Node(value)) };
        if let Some(source) = &part.source {
            shared.node = Some(source);
            shared.fields = match source {
                Node::RowExpr(row) => self.fields_with_stars(row)?,
                _ => Vec::new(),
            };
        }
        let column = usize::try_from(part.colno - 1).unwrap_or(0);
        let width = usize::try_from(part.ncolumns).unwrap_or(0);
        match shared.node {
            Some(Node::RowExpr(row)) => self.row_part(row, &shared.fields, column, width),
            Some(Node::SubLink(link)) => Ok(Source::Column(link, column, width)),
            other => Err(self.unsupported(
                "source for a multiple-column UPDATE item must be a sub-SELECT or ROW() expression",
                other.map_or(-1, location),
            )),
        }
    }

    /// The fields of a row that has stars; none if it has no star.
    fn fields_with_stars(&mut self, row: &'a RowExpr) -> Result<Vec<Option<Located>>> {
        let is_star = |node: &Node| match node {
            Node::ColumnRef(c) => matches!(c.fields.last(), Some(Some(Node::A_Star(_)))),
            Node::A_Indirection(i) => matches!(i.indirection.last(), Some(Some(Node::A_Star(_)))),
            _ => false,
        };
        if !row.args.iter().flatten().any(is_star) {
            return Ok(Vec::new());
        }
        self.at_place(ClauseKind::UpdateSource, |b| {
            let mut fields = Vec::new();
            for node in row.args.iter().flatten() {
                if let Node::SetToDefault(_) = node {
                    fields.push(None);
                } else if let Some(columns) = b.star(node)? {
                    fields.extend(columns.into_iter().map(|(_, expr)| Some(Located { expr, at: location(node) })));
                } else {
                    fields.push(Some(b.expr(node)?));
                }
            }
            Ok(fields)
        })
    }

    fn row_part(
        &self,
        row: &'a RowExpr,
        fields: &[Option<Located>],
        column: usize,
        width: usize,
    ) -> Result<Source<'a>> {
        if width != if fields.is_empty() { row.args.len() } else { fields.len() } {
            let message = "number of columns does not match number of values";
            return Err(self.error(SqlState::SYNTAX_ERROR, message, row.location));
        }
        match (fields.get(column), row.args.get(column)) {
            (Some(field), _) => Ok(Source::Field(field.clone())),
            (None, Some(Some(node))) => Ok(Source::Node(node)),
            _ => Err(Error::internal("a row without one of its fields")),
        }
    }

    fn sublink_column(&mut self, link: &'a SubLink, column: usize, width: usize) -> Result<Located> {
        let Some(Node::SelectStmt(select)) = &link.subselect else {
            return Err(Error::internal("a subquery without a query"));
        };
        let query = self.subquery(select, true)?.query;
        if query.targets.iter().filter(|t| !t.junk).count() != width {
            let message = "number of columns does not match number of values";
            return Err(self.error(SqlState::SYNTAX_ERROR, message, link.location));
        }
        if super::visit::is_volatile(&query) {
            let message = "assigning a volatile subquery to several columns is not supported";
            return Err(self.unsupported(message, link.location));
        }
        Ok(Located { expr: super::sublink::pick_column(query, column), at: link.location })
    }

    /// RETURNING.
    fn returning(
        &mut self,
        list: Option<&'a [Option<Node>]>,
        query: &mut Query,
    ) -> Result<(Vec<Target>, Vec<ResultColumn>)> {
        let Some(list) = list else { return Ok((Vec::new(), Vec::new())) };
        let mut at = Vec::new();
        self.targets(list, query, &mut at, ClauseKind::Returning)?;
        self.settle_targets(query, &at)?;
        let targets = std::mem::take(&mut query.targets);
        let rels = &self.scopes[self.scopes.len() - 1].rels;
        let columns = targets
            .iter()
            .map(|t| {
                let mut column = ResultColumn::new(t.name.clone(), t.expr.ty());
                if let Some((table, number)) = origin(&t.expr, rels) {
                    (column.table, column.column) = (table, number);
                }
                column
            })
            .collect();
        Ok((targets, columns))
    }

    /// Enters the scope of UPDATE or DELETE: rel 0 is the table, FROM or USING follows.
    fn modified_rows(
        &mut self,
        var: Option<&'a RangeVar>,
        from: &'a [Option<Node>],
        verb: &'static str,
    ) -> Result<(Written, Query)> {
        let written = self.target_table(var, verb)?;
        let rels = self.target_rels(&written, var);
        self.enter_target(&rels[..1], &written);
        // Subqueries in FROM cannot see the table itself.
        let item = &mut self.scope().items[0];
        (item.lateral_only, item.lateral_ok) = (true, false);
        self.scope().target_hidden = true;
        let mut trees = self.bind_from(from)?;
        self.scope().target_hidden = false;
        trees.insert(0, sql_ir::From::Rel(0));
        let item = &mut self.scope().items[0];
        (item.lateral_only, item.lateral_ok) = (false, true);
        Ok((written, Query { from: trees, ..Query::default() }))
    }

    /// WHERE, or WHERE CURRENT OF.
    fn which_rows(&mut self, clause: Option<&'a Node>, written: &Written, query: &mut Query) -> Result<()> {
        if let Some(Node::CurrentOfExpr(current)) = clause {
            if written.through.is_some() {
                return Err(Error::unsupported("WHERE CURRENT OF on a view is not implemented"));
            }
            query.current_of = Some(current.cursor_name.clone().unwrap_or_default().to_string());
            return Ok(());
        }
        let filter = self.condition(clause, ClauseKind::Where, "WHERE")?;
        written.within_view(filter, query);
        Ok(())
    }

    /// UPDATE.
    pub(super) fn update(&mut self, update: &'a UpdateStmt) -> Result<Bound> {
        let around = std::mem::take(&mut self.through);
        self.push_scope();
        self.add_ctes(update.withClause.as_deref())?;
        let (written, mut query) = self.modified_rows(update.relation.as_deref(), &update.fromClause, "update")?;
        let table = Arc::clone(&written.table);
        let around_domains = std::mem::take(&mut self.of_domain);
        let set = self.set_list(&update.targetList, &written)?;
        let mut known = std::mem::replace(&mut self.of_domain, around_domains);
        let stays = |at: usize| table.desc.columns[at].generated.is_none() && !set.iter().any(|(set, _)| *set == at);
        known.extend((0..table.desc.columns.len()).filter(|at| stays(*at)));
        self.which_rows(update.whereClause.as_ref(), &written, &mut query)?;
        let list = update.returningClause.as_ref().map(|r| r.exprs.as_slice());
        let (returning, columns) = self.returning(list, &mut query)?;
        query.rels = std::mem::take(&mut self.scope().rels);
        let checks = self.checks(&table.desc, &known, Some(&|at| !stays(at)))?;
        let generated = regenerated(&table.desc, &set, self.cx)?;
        let view_checks = written.view_checks();
        let through = std::mem::replace(&mut self.through, around);
        let update = Update { table, query, set, checks, view_checks, generated, returning, through };
        let statement = self.finish_statement(Statement::Update(Box::new(update)))?;
        self.scopes.pop();
        Ok((statement, columns))
    }

    /// DELETE.
    pub(super) fn delete(&mut self, delete: &'a DeleteStmt) -> Result<Bound> {
        let around = std::mem::take(&mut self.through);
        self.push_scope();
        self.add_ctes(delete.withClause.as_deref())?;
        let (written, mut query) =
            self.modified_rows(delete.relation.as_deref(), &delete.usingClause, "delete from")?;
        self.which_rows(delete.whereClause.as_ref(), &written, &mut query)?;
        let table = written.table;
        let list = delete.returningClause.as_ref().map(|r| r.exprs.as_slice());
        let (returning, columns) = self.returning(list, &mut query)?;
        query.rels = std::mem::take(&mut self.scope().rels);
        let through = std::mem::replace(&mut self.through, around);
        let delete = Delete { table, query, returning, through };
        let statement = self.finish_statement(Statement::Delete(Box::new(delete)))?;
        self.scopes.pop();
        Ok((statement, columns))
    }
}

/// The expressions of generated columns, over rel 0.
pub(super) fn generated(desc: &TableDesc, cx: &mut BindContext<'_>) -> Result<Vec<(usize, Expr)>> {
    let mut out = Vec::new();
    for column in desc.live_columns() {
        if let Some(text) = &column.generated {
            let ty = value_type(column);
            let value = computed(ClauseKind::Generated, text, ty, &column.name, desc, cx)?;
            out.push(((column.number - 1) as usize, value));
        }
    }
    Ok(out)
}

/// The same of an update: only columns that are computed from one that it sets. The others keep their values, which another
/// expression may have computed (ALTER TYPE).
pub(super) fn regenerated(
    desc: &TableDesc,
    set: &[(usize, Expr)],
    cx: &mut BindContext<'_>,
) -> Result<Vec<(usize, Expr)>> {
    let mut all = generated(desc, cx)?;
    all.retain(|(_, value)| {
        let mut reads_set = false;
        super::visit_columns(value, &mut |read| reads_set |= set.iter().any(|(column, _)| *column == read.column));
        reads_set
    });
    Ok(all)
}

/// Whether a new row may not give a value for a column.
fn is_always(column: &engine_api::ColumnDesc, overriding: OverridingKind) -> bool {
    match column.identity {
        Some(engine_api::Identity::Always) => overriding == OverridingKind::OVERRIDING_NOT_SET,
        _ => column.generated.is_some(),
    }
}

/// 428C9
fn non_default(column: &engine_api::ColumnDesc) -> Error {
    let message = format!("cannot insert a non-DEFAULT value into column \"{}\"", column.name);
    not_generated(Error::new(SqlState::GENERATED_ALWAYS, message), column, true)
}

/// Says why a value for a column is refused.
fn not_generated(error: Error, column: &engine_api::ColumnDesc, inserts: bool) -> Error {
    let name = &column.name;
    if column.generated.is_some() {
        return error.detail(format!("Column \"{name}\" is a generated column."));
    }
    let error = error.detail(format!("Column \"{name}\" is an identity column defined as GENERATED ALWAYS."));
    if inserts { error.hint("Use OVERRIDING SYSTEM VALUE to override.") } else { error }
}

/// The type of a column's values: for a domain what is under it.
pub fn value_type(column: &engine_api::ColumnDesc) -> Ty {
    let (oid, typmod) = types::user::base_type(column.type_oid, column.typmod);
    Ty { oid, typmod }
}

fn assigned(desc: &TableDesc, index: usize, at: i32) -> Assigned<'static> {
    let column = &desc.columns[index];
    Assigned { index, name: column.name.clone(), ty: value_type(column), own: column.type_oid, at, part: None }
}

/// What is said of a value for a column that a view computes.
fn not_assignable(verb: &str, column: &str, view: &str, is_system: bool) -> Error {
    Error::unsupported(format!("cannot {verb} column \"{column}\" of view \"{view}\"")).detail(match is_system {
        true => "View columns that refer to system columns are not updatable.",
        false => "View columns that are not columns of their base relation are not updatable.",
    })
}

/// A column of a view as an assignment has it.
fn assigned_through(desc: &TableDesc, name: &str, base: Option<usize>, at: i32) -> Assigned<'static> {
    match base {
        Some(index) => Assigned { name: name.to_string(), ..assigned(desc, index, at) },
        None => {
            let ty = Ty::of(types::oid::UNKNOWN);
            Assigned { index: COMPUTED, name: name.to_string(), ty, own: ty.oid, at, part: None }
        }
    }
}

/// A column of a view over another rel than the first.
fn over_rel(column: &NamedColumn, rel: usize) -> NamedColumn {
    let mut column = column.clone();
    if rel > 0 {
        super::visit::walk_mut(&mut column.expr, 0, &mut |e, depth| match e {
            Expr::Column(c) if c.level == depth && c.rel == 0 => c.rel = rel,
            _ => {}
        });
    }
    column
}

/// VALUES without anything around it.
fn is_plain_values(select: &SelectStmt) -> bool {
    !select.valuesLists.is_empty()
        && select.op == SetOperation::SETOP_NONE
        && select.sortClause.is_empty()
        && select.limitCount.is_none()
        && select.limitOffset.is_none()
        && select.withClause.is_none()
        && select.lockingClause.is_empty()
}

/// Parses the text of a stored expression.
pub(super) fn parse_expression(text: &str) -> Result<Node> {
    let mut parsed = sql_parse::parse(&format!("SELECT {text}"))?;
    let node = parsed.pop().map(|s| s.node);
    if let Some(Node::SelectStmt(mut select)) = node
        && let Some(Some(Node::ResTarget(target))) = select.targetList.pop()
        && let Some(value) = target.val
    {
        return Ok(value);
    }
    Err(Error::internal(format!("not an expression: {text}")))
}

/// Whether the text of an expression is a cast at its outermost.
pub(super) fn is_cast(text: &str) -> bool {
    matches!(parse_expression(text), Ok(Node::TypeCast(_)))
}

/// Whether the text of an expression is NULL, cast to whatever.
pub(super) fn is_null_cast(text: &str) -> bool {
    let Ok(mut node) = parse_expression(text) else { return false };
    loop {
        base::work::beat(1);
        match node {
            Node::TypeCast(cast) => match cast.arg {
                Some(arg) => node = arg,
                None => return false,
            },
            Node::A_Const(constant) => return constant.isnull,
            _ => return false,
        }
    }
}

/// Errors of stored expressions point into a text that the client did not send.
pub(super) fn without_position(mut error: Error) -> Error {
    error.fields_mut().position = None;
    error
}

/// Binds a default. Errors point into the text behind `SELECT `.
pub(super) fn default_expression(
    expression: &Expression,
    ty: Ty,
    column: &str,
    cx: &mut BindContext<'_>,
) -> Result<Expr> {
    detached(expression, None, cx, |text, cx| {
        let node = parse_expression(text).map_err(without_position)?;
        let wrapped = format!("SELECT {text}");
        let mut binder = Binder::noting(cx, &wrapped);
        binder.params_forbidden = true;
        binder.push_scope();
        let value = binder.at_place(ClauseKind::Default, |b| b.expr(&node))?;
        let from = value.expr.ty().oid;
        match binder.coerce_to(value, ty, sql_functions::CastContext::Assignment, -1)? {
            Some(value) => {
                binder.hand_over_notes();
                Ok(value.expr)
            }
            None => Err(no_default(column, ty, from, binder.cx.eval)),
        }
    })
}

/// 42804: what is computed for a column cannot become a value of it.
fn no_default(column: &str, ty: Ty, from: base::Oid, eval: &dyn functions::EvalContext) -> Error {
    let [ty, from] = [ty.oid, from].map(|ty| crate::shown_type(eval, ty, -1));
    let message = format!("column \"{column}\" is of type {ty} but default expression is of type {from}");
    Error::new(SqlState::DATATYPE_MISMATCH, message).hint("You will need to rewrite or cast the expression.")
}

/// A default as it is by itself; `None` for a literal, which takes any type.
pub(super) fn own_default(expression: &Expression, cx: &mut BindContext<'_>) -> Result<Option<Expr>> {
    detached(expression, None, cx, |text, cx| {
        let node = parse_expression(text).map_err(without_position)?;
        let wrapped = format!("SELECT {text}");
        let mut binder = Binder::new(cx, &wrapped);
        binder.params_forbidden = true;
        binder.push_scope();
        let value = binder.at_place(ClauseKind::Default, |b| b.expr(&node))?;
        Ok(Some(value.expr).filter(|expr| expr.ty().oid != types::oid::UNKNOWN))
    })
}

/// What a column is generated from, as it is by itself; `None` for a literal.
pub(super) fn own_generated(
    expression: &Expression,
    table: &TableDesc,
    cx: &mut BindContext<'_>,
) -> Result<Option<Expr>> {
    let own = over_table(ClauseKind::Generated, expression, table, cx, |_, value| Ok(value.expr))?;
    Ok(Some(own).filter(|expr| expr.ty().oid != types::oid::UNKNOWN))
}

/// Binds what USING says of a column whose type changes.
pub(super) fn transform(expression: &Expression, table: &TableDesc, cx: &mut BindContext<'_>) -> Result<()> {
    over_table(ClauseKind::Transform, expression, table, cx, |_, value| Ok(value.expr)).map(drop)
}

/// What an index is over, as it is by itself; `None` for a literal.
pub(super) fn own_index_expression(
    expression: &Expression,
    table: &TableDesc,
    cx: &mut BindContext<'_>,
) -> Result<Option<Expr>> {
    let own = over_table(ClauseKind::IndexExpression, expression, table, cx, |_, value| Ok(value.expr))?;
    Ok(Some(own).filter(|expr| expr.ty().oid != types::oid::UNKNOWN))
}

/// Binds the text of a CHECK condition over a table. Errors point into the text behind `SELECT `.
pub(super) fn check_expression(text: &Expression, table: &TableDesc, cx: &mut BindContext<'_>) -> Result<Expr> {
    over_table(ClauseKind::Check, text, table, cx, |binder, value| binder.coerce_to_boolean(value, "CHECK"))
}

/// Binds the text that a column's values are computed by. Errors point into the text behind `SELECT `.
pub(super) fn computed(
    place: ClauseKind,
    text: &Expression,
    ty: Ty,
    column: &str,
    table: &TableDesc,
    cx: &mut BindContext<'_>,
) -> Result<Expr> {
    over_table(place, text, table, cx, |binder, value| {
        let from = value.expr.ty().oid;
        match binder.coerce_to(value, ty, sql_functions::CastContext::Assignment, -1)? {
            Some(value) => Ok(value.expr),
            None => Err(no_default(column, ty, from, binder.cx.eval)),
        }
    })
}

/// Binds the text of an index expression. Errors point into the text behind `SELECT `.
pub(super) fn index_expression(text: &Expression, table: &TableDesc, cx: &mut BindContext<'_>) -> Result<Expr> {
    over_table(ClauseKind::IndexExpression, text, table, cx, |binder, value| Ok(binder.resolve_unknown(value)?.expr))
}

/// Binds the text of an index's condition. Errors point into the text behind `SELECT `.
pub(super) fn index_predicate(text: &Expression, table: &TableDesc, cx: &mut BindContext<'_>) -> Result<Expr> {
    over_table(ClauseKind::IndexPredicate, text, table, cx, |binder, value| binder.coerce_to_boolean(value, "WHERE"))
}

/// Binds a stored expression over the columns of a table.
fn over_table(
    place: ClauseKind,
    expression: &Expression,
    table: &TableDesc,
    cx: &mut BindContext<'_>,
    finish: impl FnOnce(&mut Binder<'_, '_>, Located) -> Result<Expr>,
) -> Result<Expr> {
    detached(expression, Some(table), cx, |text, cx| {
        let node = parse_expression(text).map_err(without_position)?;
        let wrapped = format!("SELECT {text}");
        let mut binder = Binder::noting(cx, &wrapped);
        binder.params_forbidden = true;
        let mut scope = Scope::new(None);
        let info = TableInfo { desc: table.clone(), indexes: Vec::new(), codes: Vec::new() };
        let columns = table_columns(table);
        let rel = Rel { alias: table.name.clone(), aliased: false, kind: RelKind::Table(Arc::new(info)), columns };
        scope.items.push(target_item(0, &rel, Some(table.oid)));
        scope.rels.push(rel);
        scope.real_names.push(Some(table.name.clone()));
        binder.scopes.push(scope);
        let value = binder.at_place(place, |b| b.expr(&node))?;
        let expr = finish(&mut binder, value)?;
        binder.hand_over_notes();
        Ok(expr)
    })
}

/// Binds a value of EXECUTE.
pub(super) fn argument(node: &Node, ty: Ty, number: usize, sql: &str, cx: &mut BindContext<'_>) -> Result<Expr> {
    let mut binder = Binder::new(cx, sql);
    binder.push_scope();
    let value = binder.at_place(ClauseKind::Argument, |b| b.expr(node))?;
    let (from, at) = (value.expr.ty().oid, value.at);
    match binder.coerce_to(value, ty, sql_functions::CastContext::Assignment, -1)? {
        Some(value) => Ok(value.expr),
        None => {
            let message = format!(
                "parameter ${number} of type {} cannot be coerced to the expected type {}",
                binder.type_name(from),
                binder.type_name(ty.oid)
            );
            Err(binder
                .error(SqlState::DATATYPE_MISMATCH, message, at)
                .hint("You will need to rewrite or cast the expression."))
        }
    }
}

/// Binds a stored expression, which knows nothing of the statement's parameters. One that is kept has every name with its schema:
/// nothing else is looked for in the search path but what is built in.
pub(super) fn detached<T>(
    expression: &Expression,
    table: Option<&TableDesc>,
    cx: &mut BindContext<'_>,
    bind: impl FnOnce(&str, &mut BindContext<'_>) -> Result<T>,
) -> Result<T> {
    if cx.in_stored == super::STORED_DEPTH_MAX {
        return Err(super::stack_depth());
    }
    let catalog = Arc::clone(&cx.catalog);
    let text = crate::stored::text(expression, &catalog, table);
    let params = std::mem::take(&mut cx.param_types);
    cx.in_stored += 1;
    let result = match expression {
        Expression::Written(_) => bind(&text, cx),
        Expression::Kept(_) => {
            let (path, database) = (cx.identity.search_path.clone(), cx.identity.database_oid);
            cx.identity.search_path = vec![engine_api::oids::SCHEMA_PG_CATALOG];
            // An index is computed for nobody, who is in no database.
            if let Some(CatalogObject::Schema(schema)) = table.and_then(|t| catalog.get(t.schema)).map(|o| &**o) {
                cx.identity.database_oid = schema.database;
            }
            let outside = cx.path_outside.take();
            cx.path_outside = Some(outside.clone().unwrap_or_else(|| path.clone()));
            let result = bind(&text, cx);
            cx.path_outside = outside;
            (cx.identity.search_path, cx.identity.database_oid) = (path, database);
            result
        }
    };
    cx.in_stored -= 1;
    cx.param_types = params;
    result
}
