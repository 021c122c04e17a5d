//! Views: their stored queries, bound under the names they were made with, and changes through simple views.
//!
//! A view keeps its text and what every relation name in it meant ([`ViewRelation`]). The text is bound again wherever the
//! view is used; names go through that list, so that renaming, moving or shadowing a table changes nothing, and a column
//! that was added later is not seen. A view that only picks rows and columns of one table can be written through: its
//! columns are expressions over the table, which takes the view's place as rel 0.

use std::collections::BTreeSet;
use std::sync::Arc;

use base::{Error, Oid, Result, SqlState};
use engine_api::{CatalogObject, CheckOption, ColumnDesc, IndexDesc, TableDesc, TableKind, ViewDesc, ViewRelation};
use rupg_sql::nodes::{Node, RangeVar, SelectStmt, SetOperation};
use rustc_hash::FxHashMap;
use sql_functions::SEQUENCE_STATE;
use sql_ir::{BoundIndex, Expr, Query, QueryOfView, Rel, RelColumn, RelKind, TableInfo, Ty, WrittenView};
use sql_parse as parse;

use super::expr::{QUERY_DEPTH, and};
use super::from::{Relation, table_columns};
use super::node::strings;
use super::scope::{ClauseKind, Item, NamedColumn, columns_of};
use super::{BindContext, Binder};

/// A simple view between a statement and the table it changes.
#[derive(Clone, Debug)]
pub(super) struct Through {
    /// The view's name.
    pub(super) name: String,
    /// The view.
    pub(super) oid: Oid,
    /// Its columns over rel 0, the table.
    pub(super) columns: Vec<NamedColumn>,
    /// How many columns the table has; those behind are system columns.
    width: usize,
    /// The view says something of system columns.
    pub(super) names_system: bool,
    /// Defaults of its own for columns of the table (attribute number - 1).
    pub(super) defaults: Vec<(usize, ColumnDesc)>,
    /// A view and its column that has a default and is computed: no row can be inserted.
    pub(super) stuck: Option<(String, String)>,
    /// What hides rows of the table behind a barrier, from the innermost view on.
    pub(super) guards: Vec<Expr>,
    /// Which of the others it shows.
    pub(super) filter: Option<Expr>,
    /// WITH CHECK OPTION: views and what rows written through them must meet.
    pub(super) checks: Vec<(String, Expr)>,
}

impl Through {
    /// The index of one of the view's columns.
    pub(super) fn position(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|c| c.name == name)
    }

    /// The table's column (attribute number - 1) behind one of the view's; `None` if it is computed.
    pub(super) fn base_column(&self, name: &str) -> Option<Option<usize>> {
        let column = self.columns.iter().find(|c| c.name == name)?;
        Some(base_column(&column.expr, self.width))
    }

    /// Whether one of the view's columns is a system column.
    pub(super) fn is_system(&self, name: &str) -> bool {
        let column = self.columns.iter().find(|c| c.name == name);
        column.is_some_and(|c| matches!(c.expr, Expr::Column(c) if c.level == 0 && c.column >= self.width))
    }
}

fn base_column(expr: &Expr, width: usize) -> Option<usize> {
    match expr {
        Expr::Column(c) if c.level == 0 && c.rel == 0 && c.column < width => Some(c.column),
        _ => None,
    }
}

/// Binds the query of a view that is being defined. Answers it with what is kept of the view but for its text. Views that it
/// reads are relations here: what they are over is their business, and one that cannot be expanded can be named.
pub(super) fn define(select: &SelectStmt, sql: &str, cx: &mut BindContext<'_>) -> Result<(Query, ViewDesc)> {
    // As it is written: a constant says nothing of the columns and domains that it was folded from.
    cx.keeps_calls = true;
    let mut binder = Binder::new(cx, sql);
    (binder.params_forbidden, binder.shows) = (true, true);
    (binder.seen, binder.keys) = (Some(Vec::new()), Some(Vec::new()));
    binder.depth_max = super::expr::depth_max(true);
    let query = binder.subquery(select, true)?.query;
    let mut seen = binder.seen.take().unwrap_or_default();
    let keys = binder.keys.take().unwrap_or_default();
    note_used(&query, &mut seen);
    Ok((query, view_of(cx.identity.search_path.clone(), seen, keys)))
}

/// The relations that the query of a stored view reads: those that are known, and what is not among them.
///
/// # Errors
/// Why the query cannot be bound.
pub(super) fn relations_of(desc: &TableDesc, cx: &mut BindContext<'_>) -> Result<Vec<ViewRelation>> {
    cx.keeps_calls = true;
    let mut binder = Binder::new(cx, "");
    binder.shows = true;
    let ((query, found), _) = binder.inside_view(&Arc::new(desc.clone()), |inner, select| {
        inner.seen = Some(Vec::new());
        let query = inner.subquery(select, true)?.query;
        Ok((query, inner.seen.take().unwrap_or_default()))
    })?;
    let mut relations = desc.view.as_ref().map(|view| view.relations.clone()).unwrap_or_default();
    for one in found {
        if !relations.iter().any(|known| known.name == one.name && known.schema == one.schema) {
            relations.push(one);
        }
    }
    note_used(&query, &mut relations);
    Ok(relations)
}

/// Notes which columns of the relations it names a query uses.
fn note_used(query: &Query, seen: &mut [ViewRelation]) {
    let mut used: Vec<(Oid, i16)> = Vec::new();
    super::visit::used_columns(query, &mut |table, column| used.push((table, column)));
    for relation in seen {
        let mut own: Vec<i16> = used.iter().filter(|(oid, _)| *oid == relation.oid).map(|(_, n)| *n).collect();
        own.sort_unstable();
        own.dedup();
        relation.used = own;
    }
}

const RECURSION: &str = "infinite recursion detected in rules";

/// Whether a query was refused for a view that reads itself, which PostgreSQL finds when it expands views, behind all else.
pub fn is_recursion(error: &Error) -> bool {
    error.code() == SqlState::INVALID_OBJECT_DEFINITION && error.fields().message.starts_with(RECURSION)
}

impl<'a, 'c> Binder<'a, 'c> {
    /// What is kept of the view whose text this is.
    fn view(&self) -> Option<&ViewDesc> {
        self.inside.as_ref()?.view.as_ref()
    }

    /// What a name in the text of a view meant when the view was made.
    pub(super) fn known_relation(&self, var: &RangeVar) -> Option<&ViewRelation> {
        let view = self.view()?;
        let (schema, name) = (var.schemaname.as_deref(), var.relname.as_deref().unwrap_or(""));
        view.relations.iter().find(|r| r.name == name && r.schema.as_deref() == schema)
    }

    /// Notes a relation that the text of a new view names.
    fn note_relation(&mut self, var: &RangeVar, object: &CatalogObject) {
        let schema_name = self.cx.catalog.get(object.namespace().1).map(|s| s.name().to_string()).unwrap_or_default();
        let Some(seen) = &mut self.seen else { return };
        let columns = match object {
            CatalogObject::Table(desc) => desc.live_columns().map(|c| (c.number, c.name.clone())).collect(),
            _ => (1..).zip(SEQUENCE_STATE.columns.iter().map(|column| column.0.to_string())).collect(),
        };
        let relation = ViewRelation {
            schema: var.schemaname.as_deref().map(str::to_string),
            name: var.relname.as_deref().unwrap_or("").to_string(),
            oid: object.oid(),
            schema_name,
            columns,
            used: Vec::new(),
        };
        if !seen.iter().any(|s| s.name == relation.name && s.schema == relation.schema) {
            seen.push(relation);
        }
    }

    /// The columns of a relation under the names that they have here.
    pub(super) fn named_columns(&self, var: &RangeVar, desc: &TableDesc) -> Vec<RelColumn> {
        let mut columns = table_columns(desc);
        if let Some(known) = self.known_relation(var) {
            let then: FxHashMap<usize, &String> =
                known.columns.iter().map(|(number, name)| (*number as usize, name)).collect();
            for (i, column) in columns.iter_mut().enumerate() {
                column.name = match then.get(&(i + 1)) {
                    Some(name) if !column.name.is_empty() => (*name).clone(),
                    _ => String::new(),
                };
            }
        }
        columns
    }

    /// What `schema.name` meant in the text of a view when the view was made, whatever it is called today.
    pub(super) fn known_by_schema(&self, schema: &str, name: &str) -> Option<Oid> {
        let view = self.view()?;
        view.relations.iter().find(|r| r.schema_name == schema && r.name == name).map(|r| r.oid)
    }

    /// Binds something of a view's text under the names of the view. Answers also which columns of what it is over are read.
    fn inside_view<T>(
        &mut self,
        desc: &Arc<TableDesc>,
        bind: impl for<'x> FnOnce(&mut Binder<'x, 'c>, &'x SelectStmt) -> Result<T>,
    ) -> Result<(T, BTreeSet<usize>)> {
        let view = desc.view.as_ref().ok_or_else(|| Error::internal("a view without a query"))?;
        if self.views.contains(&desc.oid) {
            let message = format!("{RECURSION} for relation \"{}\"", desc.name);
            return Err(Error::new(SqlState::INVALID_OBJECT_DEFINITION, message));
        }
        let catalog = Arc::clone(&self.cx.catalog);
        let text = crate::stored::text(&view.query, &catalog, None);
        let mut parsed = parse::parse(&text)?;
        let Some(Node::SelectStmt(select)) = parsed.pop().map(|p| p.node) else {
            return Err(Error::internal("a view of what is no query"));
        };
        let mut views = self.views.clone();
        views.push(desc.oid);
        let path = std::mem::replace(&mut self.cx.identity.search_path, view.search_path.clone());
        let params = std::mem::take(&mut self.cx.param_types);
        // What is noted is in the text of the one view that is to be kept, not in those that it reads.
        let notes = self.notes.take().filter(|_| self.inside.is_none());
        let (result, tables, queries, refused, next_cte, read, notes) = {
            let mut inner = Binder::new(&mut *self.cx, &text);
            inner.notes = notes;
            inner.views = views;
            inner.inside = Some(Arc::clone(desc));
            inner.params_forbidden = true;
            inner.shows = self.shows;
            inner.depth = self.depth + QUERY_DEPTH;
            inner.queries = self.queries;
            inner.next_cte = self.next_cte;
            let result = bind(&mut inner, &select);
            self.through.views.append(&mut inner.through.views);
            let notes = inner.notes.take();
            (result, inner.tables, inner.queries, inner.refused, inner.next_cte, inner.through.used.read, notes)
        };
        self.notes = notes;
        self.cx.identity.search_path = path;
        self.cx.param_types = params;
        self.queries = queries;
        self.next_cte = next_cte;
        for (table, mode) in tables {
            self.lock(table, mode);
        }
        if let Some(refused) = refused {
            self.refused.get_or_insert(refused);
        }
        result.map(|result| (result, read)).map_err(|mut error| {
            error.fields_mut().position = None;
            error
        })
    }

    /// The query of a view.
    pub(super) fn view_query(&mut self, desc: &Arc<TableDesc>) -> Result<Query> {
        let mut query =
            self.inside_view(desc, |inner, select| inner.subquery(select, true).map(|bound| bound.query))?.0;
        query.of_view = Some(QueryOfView { view: Arc::clone(desc), is_whole: true, is_locked: false });
        // A view that was made before domains were kept has columns of what is under them.
        let held = |ty| types::user::plain_type(ty, -1).0;
        let visible = || query.targets.iter().filter(|t| !t.junk).map(|t| held(t.expr.ty().oid));
        if !visible().eq(desc.columns.iter().map(|c| held(c.type_oid))) {
            return Err(Error::internal(format!("view \"{}\" no longer has the columns it was made with", desc.name)));
        }
        Ok(query)
    }

    /// The table behind a simple view and what the view makes of it. `doing`: as messages name what is done.
    ///
    /// # Errors
    /// 55000 if the view is not simple enough.
    pub(super) fn through_view(
        &mut self,
        desc: &Arc<TableDesc>,
        verb: &str,
        cascaded: bool,
    ) -> Result<(Arc<TableInfo>, Through)> {
        let own_option = desc.view.as_ref().and_then(|v| v.check_option);
        let place = self.through.views.len();
        self.through.views.push(WrittenView { desc: Arc::clone(desc), columns: Vec::new(), below: BTreeSet::new() });
        let cascaded = cascaded || own_option == Some(CheckOption::Cascaded);
        let name = desc.name.clone();
        let ((table, columns, filter, below, names_system), read) =
            self.inside_view(desc, |inner, select| inner.simple_view(select, &name, verb, cascaded))?;
        self.through.views[place].below = read;
        let width = table.desc.columns.len();
        let mut own = desc.columns.iter().zip(&columns);
        let stuck = own.find(|(column, expr)| column.default.is_some() && base_column(expr, width).is_none());
        let stuck = stuck.map(|(column, _)| (desc.name.clone(), column.name.clone()));
        let mut through = Through {
            name: desc.name.clone(),
            oid: desc.oid,
            width,
            names_system: names_system || below.as_ref().is_some_and(|b| b.names_system),
            columns: Vec::with_capacity(columns.len()),
            // DEFAULT in UPDATE is that of the view which the statement names; a new row gets those of all.
            defaults: below.as_ref().filter(|_| verb != "update").map(|b| b.defaults.clone()).unwrap_or_default(),
            stuck: stuck.or_else(|| below.as_ref().and_then(|b| b.stuck.clone())),
            guards: below.as_ref().map(|b| b.guards.clone()).unwrap_or_default(),
            filter: below.as_ref().and_then(|b| b.filter.clone()),
            checks: below.map(|b| b.checks).unwrap_or_default(),
        };
        for (column, expr) in desc.columns.iter().zip(columns) {
            if let (Some(base), Some(_)) = (base_column(&expr, width), &column.default) {
                through.defaults.retain(|(at, _)| *at != base);
                through.defaults.push((base, column.clone()));
            }
            through.columns.push(NamedColumn { name: column.name.clone(), expr });
        }
        self.through.views[place].columns = through.columns.iter().map(|c| base_column(&c.expr, width)).collect();
        if let Some(filter) = filter {
            if cascaded || own_option.is_some() {
                through.checks.push((desc.name.clone(), filter.clone()));
            }
            through.filter = Some(match through.filter.take() {
                Some(below) => and(vec![below, filter]),
                None => filter,
            });
        }
        if sql_ir::view::is_barrier(desc) {
            through.guards.extend(through.filter.take());
        }
        if verb != "delete from" && !through.columns.iter().any(|c| base_column(&c.expr, width).is_some()) {
            let why = "Views that have no updatable columns are not automatically updatable.";
            return Err(not_updatable(&desc.name, verb, why));
        }
        Ok((table, through))
    }

    /// Binds select list and WHERE of a simple view over its table as rel 0.
    #[allow(clippy::type_complexity)]
    fn simple_view(
        &mut self,
        select: &'a SelectStmt,
        name: &str,
        verb: &str,
        cascaded: bool,
    ) -> Result<(Arc<TableInfo>, Vec<Expr>, Option<Expr>, Option<Through>, bool)> {
        let refuse = |why: &str| not_updatable(name, verb, why);
        if let Some(why) = obstacle(select) {
            return Err(refuse(why));
        }
        const ONE: &str = "Views that do not select from a single table or view are not automatically updatable.";
        let [Some(Node::RangeVar(var))] = select.fromClause.as_slice() else { return Err(refuse(ONE)) };
        let (table, mut columns, below, oid) = match self.relation(var)? {
            Relation::Table(info) if info.desc.kind == TableKind::Table => {
                self.lock(info.desc.oid, engine_api::TableLockMode::RowExclusive);
                let rel = Rel {
                    alias: String::new(),
                    aliased: false,
                    kind: RelKind::Values,
                    columns: self.named_columns(var, &info.desc),
                };
                let oid = info.desc.oid;
                (info, columns_of(0, &rel), None, oid)
            }
            Relation::View(desc) => {
                self.lock(desc.oid, engine_api::TableLockMode::RowExclusive);
                let (info, through) = self.through_view(&desc, verb, cascaded)?;
                let names = self.named_columns(var, &desc);
                let named = through.columns.iter().zip(names);
                let columns = named.map(|(c, n)| NamedColumn { name: n.name, expr: c.expr.clone() }).collect();
                (info, columns, Some(through), desc.oid)
            }
            _ => return Err(refuse(ONE)),
        };
        let alias = var.alias.as_deref();
        let shown = alias.and_then(|a| a.aliasname.as_deref()).or(var.relname.as_deref()).unwrap_or("").to_string();
        let wanted = alias.map(|a| strings(&a.colnames)).unwrap_or_default();
        for (column, name) in columns.iter_mut().filter(|c| !c.name.is_empty()).zip(wanted) {
            column.name = name.to_string();
        }
        self.push_scope();
        let rel = Rel {
            alias: shown.clone(),
            aliased: false,
            kind: RelKind::Table(Arc::clone(&table)),
            columns: table_columns(&table.desc),
        };
        self.add_rel(rel, None);
        self.scope().items.push(Item {
            name: shown,
            relation: alias.is_none().then_some(oid),
            rel: None,
            columns: columns.into(),
            rel_visible: true,
            columns_visible: true,
            lateral_only: false,
            lateral_ok: true,
            notes_reads: true,
            system_rel: below.is_none().then_some(0),
            unstarred: 0,
        });
        let (mut query, mut at) = (Query::default(), Vec::new());
        self.targets(&select.targetList, &mut query, &mut at, ClauseKind::Targets)?;
        if self.scope().set_calls.is_some() {
            return Err(refuse("Views that return set-returning functions are not automatically updatable."));
        }
        self.settle_targets(&mut query, &at)?;
        if !self.scope().aggs.is_empty() {
            return Err(refuse("Views that return aggregate functions are not automatically updatable."));
        }
        if self.scope().rels.len() > 1 {
            return Err(refuse("Views that return window functions are not automatically updatable."));
        }
        let filter = self.condition(select.whereClause.as_ref(), ClauseKind::Where, "WHERE")?;
        let names_system = self.scope().rels[0].columns.len() > table.desc.columns.len();
        self.scopes.pop();
        let targets = query.targets.into_iter().map(|t| t.expr).collect();
        Ok((table, targets, filter, below, names_system))
    }

    /// What indexes compute, for those that do.
    fn index_codes(&mut self, desc: &TableDesc, indexes: &[IndexDesc]) -> Vec<Option<Arc<BoundIndex>>> {
        if !indexes.iter().any(IndexDesc::needs_code) {
            return Vec::new();
        }
        let mut codes = Vec::with_capacity(indexes.len());
        for index in indexes {
            let bound = index.needs_code().then(|| super::bind_index(index, desc, self.cx).ok()).flatten();
            codes.push(bound.map(Arc::new));
        }
        codes
    }

    /// A relation of the catalog as a name finds it.
    pub(super) fn relation_of(&mut self, var: &RangeVar, object: &CatalogObject) -> Option<Relation> {
        let desc = match object {
            CatalogObject::Table(desc) => desc,
            CatalogObject::Sequence(sequence) => {
                self.note_relation(var, object);
                return Some(Relation::Sequence(sequence.oid));
            }
            _ => return None,
        };
        self.note_relation(var, object);
        if desc.kind == TableKind::View && !self.shows && !self.keeps_views {
            return Some(Relation::View(Arc::new(desc.clone())));
        }
        let valid = self.cx.catalog.indexes(desc.oid).filter(|index| !index.invalid);
        let indexes: Vec<IndexDesc> = valid.cloned().collect();
        let codes = self.index_codes(desc, &indexes);
        Some(Relation::Table(Arc::new(TableInfo { desc: desc.clone(), indexes, codes })))
    }
}

/// What keeps a query from being a simple view's.
fn obstacle(select: &SelectStmt) -> Option<&'static str> {
    let limited = select.limitCount.is_some() || select.limitOffset.is_some();
    let found = [
        (!select.distinctClause.is_empty(), "Views containing DISTINCT are not automatically updatable."),
        (!select.groupClause.is_empty(), "Views containing GROUP BY are not automatically updatable."),
        (select.havingClause.is_some(), "Views containing HAVING are not automatically updatable."),
        (
            select.op != SetOperation::SETOP_NONE,
            "Views containing UNION, INTERSECT, or EXCEPT are not automatically updatable.",
        ),
        (select.withClause.is_some(), "Views containing WITH are not automatically updatable."),
        (limited, "Views containing LIMIT or OFFSET are not automatically updatable."),
    ];
    found.into_iter().find(|(there, _)| *there).map(|(_, why)| why)
}

/// 55000: a view that cannot be written through.
pub(super) fn not_updatable(view: &str, verb: &str, why: &str) -> Error {
    let (doing, event) = match verb {
        "insert into" => ("inserting into", "INSERT"),
        "update" => ("updating", "UPDATE"),
        _ => ("deleting from", "DELETE"),
    };
    Error::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, format!("cannot {verb} view \"{view}\"")).detail(why).hint(
        format!(
            "To enable {doing} the view, provide an INSTEAD OF {event} trigger or an unconditional ON {event} DO INSTEAD \
             rule."
        ),
    )
}

/// The columns that a view's query shows, as a descriptor keeps them.
pub(super) fn shown_columns(query: &Query) -> Vec<(String, Ty)> {
    let visible = query.targets.iter().filter(|t| !t.junk);
    visible.map(|t| (t.name.clone(), t.expr.ty())).collect()
}

/// A view's text bound again, for showing it: its query, or nothing if it cannot be bound.
pub(super) fn stored_query(desc: &TableDesc, cx: &mut BindContext<'_>) -> Result<Query> {
    let mut binder = Binder::noting(cx, "");
    binder.shows = true;
    let query = binder.view_query(&Arc::new(desc.clone()))?;
    binder.hand_over_notes();
    Ok(query)
}

/// The view's own part of a descriptor.
fn view_of(search_path: Vec<Oid>, relations: Vec<ViewRelation>, keys: Vec<Oid>) -> ViewDesc {
    ViewDesc { query: "".into(), search_path, relations, lists_all: true, keys, check_option: None, populated: false }
}
