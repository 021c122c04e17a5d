//! Range tables and namespaces: which names a place in a query can see, and what they mean.
//!
//! One [`Scope`] per query level, on a stack; [`Column::level`](sql_ir::Column) is the distance on that stack. A scope
//! names its lexical parent, which is not always the one below it: the body of a CTE stands where it is used and sees
//! what was visible where it was defined.

use std::rc::Rc;

use base::work::Count;
use base::{Error, Result, SqlState};
use rupg_sql::nodes::Node;
use sql_ir::system_column::SystemColumn;
use sql_ir::{AggCall, Column, Expr, Rel, RelKind};

use super::Binder;
use super::cte::KnownCte;
use super::visit::shift_levels;

/// The part of a statement an expression stands in; decides what it may contain and how errors name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClauseKind {
    Other,
    From,
    FromFunction,
    JoinOn,
    Where,
    Having,
    Filter,
    Targets,
    UpdateSource,
    GroupBy,
    OrderBy,
    DistinctOn,
    Window,
    Limit,
    Offset,
    Returning,
    Values,
    Default,
    Check,
    Generated,
    Transform,
    IndexExpression,
    IndexPredicate,
    Argument,
    MergeWhen,
    CopyWhere,
}

impl ClauseKind {
    /// As PostgreSQL's messages name it.
    pub(super) fn name(self) -> &'static str {
        match self {
            ClauseKind::Other => "EXPRESSION",
            ClauseKind::From => "FROM",
            ClauseKind::FromFunction => "functions in FROM",
            ClauseKind::JoinOn => "JOIN conditions",
            ClauseKind::Where => "WHERE",
            ClauseKind::Having => "HAVING",
            ClauseKind::Filter => "FILTER",
            ClauseKind::Targets => "SELECT",
            ClauseKind::UpdateSource => "UPDATE",
            ClauseKind::GroupBy => "GROUP BY",
            ClauseKind::OrderBy => "ORDER BY",
            ClauseKind::DistinctOn => "DISTINCT ON",
            ClauseKind::Window => "window definitions",
            ClauseKind::Limit => "LIMIT",
            ClauseKind::Offset => "OFFSET",
            ClauseKind::Returning => "RETURNING",
            ClauseKind::Values => "VALUES",
            ClauseKind::Default => "DEFAULT expressions",
            ClauseKind::Check => "check constraints",
            ClauseKind::Generated => "column generation expressions",
            ClauseKind::Transform => "transform expressions",
            ClauseKind::IndexExpression => "index expressions",
            ClauseKind::IndexPredicate => "index predicates",
            ClauseKind::Argument => "EXECUTE parameters",
            ClauseKind::MergeWhen => "MERGE WHEN conditions",
            ClauseKind::CopyWhere => "COPY FROM WHERE conditions",
        }
    }
}

/// A column as a namespace item shows it.
#[derive(Clone, Debug)]
pub(super) struct NamedColumn {
    /// Name; empty for dropped columns, which are never found.
    pub(super) name: String,
    /// What it stands for, at level 0 of its scope.
    pub(super) expr: Expr,
}

/// A column of an item.
#[derive(Clone, Copy, Debug)]
pub(super) enum ColumnOf {
    /// By its place in the item.
    Own(usize),
    System(SystemColumn),
}

/// Something a name can refer to: a range-table entry, or a join with the columns of both sides.
#[derive(Clone, Debug)]
pub(super) struct Item {
    /// Alias or relation name; empty for an unnamed join.
    pub(super) name: String,
    /// The relation if it goes by its own name: `schema.name` finds it.
    pub(super) relation: Option<base::Oid>,
    /// The range-table entry; `None` for joins.
    pub(super) rel: Option<usize>,
    /// Its columns, which joins that it is in show as well.
    pub(super) columns: Rc<[NamedColumn]>,
    /// `name.column` works.
    pub(super) rel_visible: bool,
    /// `column` works.
    pub(super) columns_visible: bool,
    /// Only LATERAL references may use it.
    pub(super) lateral_only: bool,
    /// A LATERAL reference is possible where we are (not on the nullable side of a RIGHT or FULL join).
    pub(super) lateral_ok: bool,
    /// It is a view that is written through, or what is under one: which of its columns are read is noted.
    pub(super) notes_reads: bool,
    /// The range-table entry whose system columns it has.
    pub(super) system_rel: Option<usize>,
    /// How many of its columns, the last ones, `name.*` leaves out.
    pub(super) unstarred: usize,
}

/// Where a column was referred to, for the position of grouping errors.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mention {
    pub(super) rel: usize,
    pub(super) column: usize,
    pub(super) location: i32,
    pub(super) in_aggregate: bool,
}

/// One query level.
pub(super) struct Scope<'a> {
    /// Range table.
    pub(super) rels: Vec<Rel>,
    /// Real names of relations, beside their aliases.
    pub(super) real_names: Vec<Option<String>>,
    /// Visible names.
    pub(super) items: Vec<Item>,
    /// Aggregates that belong to this level.
    pub(super) aggs: Vec<AggCall>,
    /// The rel of the set-returning calls in the select list, and where the first of them is.
    pub(super) set_calls: Option<(usize, i32)>,
    /// Calls of GROUPING: which aggregate, and where its arguments are.
    pub(super) groupings: Vec<(usize, Vec<i32>)>,
    /// The WINDOW clause.
    pub(super) windows: &'a [Option<Node>],
    /// Where the first of them is.
    pub(super) first_aggregate: i32,
    /// Where we are.
    pub(super) place: ClauseKind,
    /// LATERAL references are being bound.
    pub(super) lateral_active: bool,
    /// What a changing statement reads besides its target is being bound: the target, the first item, is not seen from there.
    pub(super) target_hidden: bool,
    /// WITH.
    pub(super) ctes: Vec<KnownCte<'a>>,
    /// WITH RECURSIVE
    pub(super) recursive_ctes: bool,
    /// How many of `ctes` are visible; a body sees those before it.
    pub(super) visible_ctes: usize,
    /// Lexical parent on the stack.
    pub(super) parent: Option<usize>,
    /// The parent's names are hidden (body of a CTE), only its CTEs below this number are visible.
    pub(super) parent_ctes_only: Option<usize>,
    /// Columns mentioned in targets, HAVING and ORDER BY.
    pub(super) mentions: Vec<Mention>,
}

impl Scope<'_> {
    /// An empty scope within `parent`.
    pub(super) fn new(parent: Option<usize>) -> Self {
        Scope {
            rels: Vec::new(),
            real_names: Vec::new(),
            items: Vec::new(),
            aggs: Vec::new(),
            place: ClauseKind::Other,
            lateral_active: false,
            target_hidden: false,
            ctes: Vec::new(),
            recursive_ctes: false,
            set_calls: None,
            groupings: Vec::new(),
            windows: &[],
            first_aggregate: -1,
            visible_ctes: 0,
            parent,
            parent_ctes_only: None,
            mentions: Vec::new(),
        }
    }
}

/// The columns of a rel as a namespace shows them.
pub(super) fn columns_of(rel: usize, entry: &Rel) -> Vec<NamedColumn> {
    let columns = entry.columns.iter().counted(32).enumerate();
    columns
        .map(|(column, c)| NamedColumn {
            name: c.name.clone(),
            expr: Expr::Column(Column { level: 0, rel, column, ty: c.ty }),
        })
        .collect()
}

/// What a qualified name found.
pub(super) struct Found {
    /// Distance of its scope.
    pub(super) level: usize,
    /// Index of the item there.
    pub(super) item: usize,
}

impl<'a> Binder<'a, '_> {
    /// Enters a query level inside the current one.
    pub(super) fn push_scope(&mut self) {
        let parent = self.scopes.len().checked_sub(1);
        self.scopes.push(Scope::new(parent));
    }

    /// The current query level.
    pub(super) fn scope(&mut self) -> &mut Scope<'a> {
        self.scopes.last_mut().expect("binding happens inside a scope")
    }

    /// The place we are at.
    pub(super) fn place(&self) -> ClauseKind {
        self.scopes.last().map_or(ClauseKind::Other, |s| s.place)
    }

    /// Runs `f` at a place.
    pub(super) fn at_place<T>(&mut self, place: ClauseKind, f: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let before = std::mem::replace(&mut self.scope().place, place);
        let result = f(self);
        self.scope().place = before;
        result
    }

    /// Adds a range-table entry; answers its number.
    pub(super) fn add_rel(&mut self, rel: Rel, real_name: Option<String>) -> usize {
        let scope = self.scope();
        scope.rels.push(rel);
        scope.real_names.push(real_name);
        scope.rels.len() - 1
    }

    /// A namespace item for a range-table entry, fully visible.
    pub(super) fn item_of(&mut self, rel: usize, relation: Option<base::Oid>) -> Item {
        let entry = &self.scope().rels[rel];
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
            system_rel: matches!(entry.kind, RelKind::Table(_) | RelKind::System(_)).then_some(rel),
            unstarred: 0,
        }
    }

    /// Lexically visible scopes from the inside out: (index on the stack, names hidden).
    fn chain(&self) -> impl Iterator<Item = usize> + '_ {
        let mut at = self.scopes.len().checked_sub(1);
        std::iter::from_fn(move || {
            let here = at?;
            // Scopes whose names are hidden are stepped over.
            let mut index = here;
            at = loop {
                let scope = &self.scopes[index];
                match scope.parent {
                    Some(parent) if scope.parent_ctes_only.is_some() => index = parent,
                    other => break other,
                }
            };
            Some(here)
        })
    }

    /// Finds a CTE by name: (stack index of its scope, number).
    pub(super) fn find_cte(&self, name: &str) -> Option<(usize, usize)> {
        let mut at = self.scopes.len().checked_sub(1)?;
        let mut limit = self.scopes[at].visible_ctes;
        loop {
            let scope = &self.scopes[at];
            let visible = &scope.ctes[..limit.min(scope.ctes.len())];
            if let Some(i) = visible.iter().position(|c| c.name() == name) {
                return Some((at, i));
            }
            let parent = scope.parent?;
            limit = scope.parent_ctes_only.unwrap_or(self.scopes[parent].visible_ctes);
            at = parent;
        }
    }

    /// Finds an unqualified column.
    pub(super) fn find_column(&mut self, name: &str, location: i32) -> Result<Option<Expr>> {
        let mut found: Option<(usize, usize, ColumnOf)> = None;
        let top = self.scopes.len() - 1;
        let chain: Vec<usize> = self.chain().collect();
        for index in chain {
            let scope = &self.scopes[index];
            for (i, item) in scope.items.iter().enumerate() {
                if !item.columns_visible || (item.lateral_only && !scope.lateral_active) {
                    continue;
                }
                let Some(column) = self.column_of(index, item, name, location)? else { continue };
                if found.is_some() {
                    return Err(self.ambiguous_column(name, location));
                }
                if item.lateral_only && !item.lateral_ok {
                    return Err(self.lateral_error(item, scope.target_hidden && i == 0, location));
                }
                found = Some((index, i, column));
            }
            if found.is_some() {
                break;
            }
        }
        let Some((index, item, column)) = found else { return Ok(None) };
        let mut expr = self.read_column(index, item, column, location);
        shift_levels(&mut expr, (top - index) as isize);
        Ok(Some(expr))
    }

    fn ambiguous_column(&self, name: &str, location: i32) -> Error {
        self.error(SqlState::AMBIGUOUS_COLUMN, format!("column reference \"{name}\" is ambiguous"), location)
    }

    fn lateral_error(&self, item: &Item, is_target: bool, location: i32) -> Error {
        let message = format!("invalid reference to FROM-clause entry for table \"{}\"", item.name);
        let error = self.error(SqlState::INVALID_COLUMN_REFERENCE, message, location);
        if is_target {
            return error.hint(format!(
                "There is an entry for table \"{}\", but it cannot be referenced from this part of the query.",
                item.name
            ));
        }
        error.detail("The combining JOIN type must be INNER or LEFT for a LATERAL reference.")
    }

    /// The column of an item of scope `index` by name.
    fn column_of(&self, index: usize, item: &Item, name: &str, location: i32) -> Result<Option<ColumnOf>> {
        let is = |(_, c): &(usize, &NamedColumn)| c.name == name && !c.name.is_empty();
        let mut matching = item.columns.iter().enumerate().filter(is);
        let Some((first, _)) = matching.next() else {
            return Ok(self.system_column_of(index, item, name, location)?.map(ColumnOf::System));
        };
        if matching.next().is_some() {
            return Err(self.ambiguous_column(name, location));
        }
        if self.place() == ClauseKind::Generated
            && let Expr::Column(column) = &item.columns[first].expr
            && let RelKind::Table(info) = &self.scopes[index].rels[column.rel].kind
            && info.desc.columns.get(column.column).is_some_and(|column| column.generated.is_some())
        {
            let message = format!("cannot use generated column \"{name}\" in column generation expression");
            return Err(self
                .error(SqlState::INVALID_OBJECT_DEFINITION, message, location)
                .detail("A generated column cannot reference another generated column."));
        }
        Ok(Some(ColumnOf::Own(first)))
    }

    /// What a column of an item of scope `index` stands for, noted as read.
    fn read_column(&mut self, index: usize, item: usize, column: ColumnOf, location: i32) -> Expr {
        let item = &self.scopes[index].items[item];
        let column = match (column, item.system_rel) {
            (ColumnOf::Own(column), _) => column,
            (ColumnOf::System(column), rel) => {
                let expr = self.read_system_column(index, rel.unwrap_or_default(), column);
                self.mention(index, &expr, location);
                return expr;
            }
        };
        let expr = item.columns[column].expr.clone();
        if item.notes_reads {
            self.through.used.read.insert(column);
        }
        self.mention(index, &expr, location);
        expr
    }

    /// Notes that a column of scope `index` was named at `location`.
    fn mention(&mut self, index: usize, expr: &Expr, location: i32) {
        if let Expr::Column(c) = expr {
            let scope = &mut self.scopes[index];
            if matches!(
                scope.place,
                ClauseKind::Targets
                    | ClauseKind::Having
                    | ClauseKind::OrderBy
                    | ClauseKind::DistinctOn
                    | ClauseKind::Window
            ) {
                let (rel, column) = (c.rel, c.column);
                scope.mentions.push(Mention { rel, column, location, in_aggregate: false });
            }
        }
    }

    /// Finds a relation by name or alias.
    pub(super) fn find_item(&self, schema: Option<&str>, name: &str, location: i32) -> Result<Option<Found>> {
        let relation = match schema {
            None => None,
            Some(schema) => match self.relation_named(schema, name) {
                None => return Ok(None),
                found => found,
            },
        };
        let top = self.scopes.len() - 1;
        for index in self.chain() {
            let scope = &self.scopes[index];
            let mut found = None;
            for (i, item) in scope.items.iter().enumerate() {
                let matches = match relation {
                    None => item.name == name && !name.is_empty(),
                    relation => item.relation == relation,
                };
                if !matches || !item.rel_visible || (item.lateral_only && !scope.lateral_active) {
                    continue;
                }
                if found.is_some() {
                    let message = format!("table reference \"{name}\" is ambiguous");
                    return Err(self.error(SqlState::AMBIGUOUS_ALIAS, message, location));
                }
                if item.lateral_only && !item.lateral_ok {
                    return Err(self.lateral_error(item, scope.target_hidden && i == 0, location));
                }
                found = Some(i);
            }
            if let Some(item) = found {
                return Ok(Some(Found { level: top - index, item }));
            }
        }
        Ok(None)
    }

    /// The item behind a find.
    pub(super) fn found_item(&self, found: &Found) -> &Item {
        &self.scopes[self.scopes.len() - 1 - found.level].items[found.item]
    }

    /// A column of a found relation.
    pub(super) fn found_column(&mut self, found: &Found, name: &str, location: i32) -> Result<Option<Expr>> {
        let index = self.scopes.len() - 1 - found.level;
        let item = self.found_item(found);
        let Some(column) = self.column_of(index, item, name, location)? else { return Ok(None) };
        let mut expr = self.read_column(index, found.item, column, location);
        shift_levels(&mut expr, found.level as isize);
        Ok(Some(expr))
    }

    /// All columns of a found relation, for `t.*`.
    pub(super) fn found_columns(&mut self, found: &Found, location: i32) -> Vec<(String, Expr)> {
        let index = self.scopes.len() - 1 - found.level;
        let item = self.found_item(found);
        let starred = item.columns.iter().take(item.columns.len() - item.unstarred);
        let columns = starred.counted(64).enumerate().filter(|(_, c)| !c.name.is_empty());
        let columns: Vec<(usize, String)> = columns.map(|(column, c)| (column, c.name.clone())).collect();
        let mut out = Vec::with_capacity(columns.len());
        for (column, name) in columns {
            let mut expr = self.read_column(index, found.item, ColumnOf::Own(column), location);
            shift_levels(&mut expr, found.level as isize);
            out.push((name, expr));
        }
        out
    }

    /// 42703 with PostgreSQL's suggestions.
    pub(super) fn missing_column(&self, relation: Option<&str>, name: &str, location: i32) -> Error {
        let message = match relation {
            Some(relation) => format!("column {relation}.{name} does not exist"),
            None => format!("column \"{name}\" does not exist"),
        };
        let error = self.error(SqlState::UNDEFINED_COLUMN, message, location);
        let hint = match self.suggest(relation, name) {
            Suggestion::None => return error,
            Suggestion::Exact(table) => format!(
                "There is a column named \"{name}\" in table \"{table}\", but it cannot be referenced from this part \
                 of the query."
            ),
            Suggestion::One(table, column) => {
                format!("Perhaps you meant to reference the column \"{table}.{column}\".")
            }
            Suggestion::Two(t1, c1, t2, c2) => {
                format!("Perhaps you meant to reference the column \"{t1}.{c1}\" or the column \"{t2}.{c2}\".")
            }
        };
        error.hint(hint)
    }

    /// `searchRangeTableForCol`: the closest names by edit distance.
    fn suggest(&self, relation: Option<&str>, name: &str) -> Suggestion {
        let mut best = Closest { distance: MAX_FUZZY_DISTANCE + 1, first: None, second: None };
        for index in self.chain() {
            let scope = &self.scopes[index];
            for rel in &scope.rels {
                if matches!(rel.kind, RelKind::Join) {
                    continue;
                }
                // A view that is written through shows its own columns, not those of its table.
                let view = scope.items.iter().find(|i| i.rel.is_none() && i.name == rel.alias && !i.name.is_empty());
                let names: Vec<&str> = match view {
                    Some(item) => item.columns.iter().map(|c| c.name.as_str()).collect(),
                    None => rel.columns.iter().map(|c| c.name.as_str()).collect(),
                };
                let penalty = relation.map_or(0, |r| levenshtein(r, &rel.alias));
                let has_system = scope.items.iter().any(|i| i.system_rel.is_some() && i.name == rel.alias);
                let is_system = || has_system && SystemColumn::named(name).is_some();
                if penalty == 0 && (names.contains(&name) || is_system()) {
                    return Suggestion::Exact(rel.alias.clone());
                }
                for column in names {
                    best.consider(penalty, &rel.alias, column, name);
                }
            }
        }
        match (best.first, best.second) {
            (Some((t, c)), None) => Suggestion::One(t, c),
            (Some((t1, c1)), Some((t2, c2))) => Suggestion::Two(t1, c1, t2, c2),
            _ => Suggestion::None,
        }
    }

    /// 42P01 for a qualifier that names nothing visible.
    pub(super) fn missing_relation(&self, schema: Option<&str>, name: &str, location: i32) -> Error {
        for index in self.chain() {
            let scope = &self.scopes[index];
            for (rel, entry) in scope.rels.iter().enumerate() {
                let real = scope.real_names[rel].as_deref();
                if entry.alias != name && real != Some(name) {
                    continue;
                }
                let message = format!("invalid reference to FROM-clause entry for table \"{name}\"");
                let error = self.error(SqlState::UNDEFINED_TABLE, message, location);
                let visible = scope
                    .items
                    .iter()
                    .any(|i| i.rel == Some(rel) && i.rel_visible && (!i.lateral_only || scope.lateral_active));
                return match entry.alias != name && visible {
                    true => error.hint(format!("Perhaps you meant to reference the table alias \"{}\".", entry.alias)),
                    false => error.hint(format!(
                        "There is an entry for table \"{}\", but it cannot be referenced from this part of the query.",
                        entry.alias
                    )),
                };
            }
        }
        let shown = schema.map_or_else(|| name.to_string(), |s| format!("{s}.{name}"));
        let message = format!("missing FROM-clause entry for table \"{shown}\"");
        self.error(SqlState::UNDEFINED_TABLE, message, location)
    }
}

const MAX_FUZZY_DISTANCE: usize = 3;

enum Suggestion {
    None,
    Exact(String),
    One(String, String),
    Two(String, String, String, String),
}

struct Closest {
    distance: usize,
    first: Option<(String, String)>,
    second: Option<(String, String)>,
}

impl Closest {
    /// `updateFuzzyAttrMatchState`.
    fn consider(&mut self, penalty: usize, table: &str, actual: &str, wanted: &str) {
        if penalty > self.distance || actual.is_empty() {
            return;
        }
        let distance = levenshtein(actual, wanted);
        if distance > wanted.len() / 2 {
            return;
        }
        let distance = distance + penalty;
        let this = || Some((table.to_string(), actual.to_string()));
        if distance < self.distance {
            *self = Closest { distance, first: this(), second: None };
        } else if distance == self.distance {
            if self.second.is_some() {
                *self = Closest { distance: distance.saturating_sub(1), first: None, second: None };
            } else if self.first.is_some() {
                self.second = this();
            } else if self.distance <= MAX_FUZZY_DISTANCE {
                self.first = this();
            }
        }
    }
}

/// Edit distance in characters.
fn levenshtein(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, &cb) in b.iter().enumerate() {
            let cost = diagonal + usize::from(ca != cb);
            diagonal = row[j + 1];
            row[j + 1] = cost.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}
