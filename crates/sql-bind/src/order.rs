//! ORDER BY and DISTINCT (`parse_clause.c`).

use base::{Error, Result, SqlState};
use rupg_sql::nodes::{Node, SortBy, SortByDir, SortByNulls};
use sql_ir::{Body, Expr, Query, SortKey, Target};
use types::oid;

use super::coerce::base_of;
use super::equal::same;
use super::node::{constant, location, string};
use super::resolve::binary_operator;
use super::scope::ClauseKind;
use super::{Binder, Located};

impl<'a> Binder<'a, '_> {
    /// ORDER BY.
    pub(super) fn order_by(&mut self, list: &'a [Option<Node>], query: &mut Query, at: &mut Vec<i32>) -> Result<()> {
        for node in list.iter().flatten() {
            let Node::SortBy(sort) = node else { continue };
            let Some(node) = &sort.node else { continue };
            let (target, from) = self.find_target(node, query, at, ClauseKind::OrderBy)?;
            let (descending, nulls_first) = self.sort_direction(sort)?;
            self.sortable_target(target, query, from)?;
            if !query.order_by.iter().any(|k| k.target == target) {
                query.order_by.push(SortKey { target, descending, nulls_first });
            }
        }
        Ok(())
    }

    fn sortable_target(&mut self, target: usize, query: &mut Query, at: i32) -> Result<()> {
        if query.targets[target].expr.ty().oid == oid::UNKNOWN {
            let expr = query.targets[target].expr.clone();
            query.targets[target].expr = self.resolve_unknown(Located { expr, at })?.expr;
        }
        self.check_sortable(&query.targets[target].expr, at)
    }

    /// DESC and NULLS FIRST of a sort key.
    pub(super) fn sort_direction(&self, sort: &SortBy) -> Result<(bool, bool)> {
        let descending = match sort.sortby_dir {
            SortByDir::SORTBY_DESC => true,
            SortByDir::SORTBY_USING => match sort.useOp.iter().flatten().filter_map(string).next_back() {
                Some("<") => false,
                Some(">") => true,
                Some(name) => {
                    let message = format!("operator {name} is not a valid ordering operator");
                    return Err(self
                        .error(SqlState::WRONG_OBJECT_TYPE, message, sort.location)
                        .hint("Ordering operators must be \"<\" or \">\" members of btree operator families."));
                }
                None => false,
            },
            _ => false,
        };
        let nulls_first = match sort.sortby_nulls {
            SortByNulls::SORTBY_NULLS_FIRST => true,
            SortByNulls::SORTBY_NULLS_LAST => false,
            _ => descending,
        };
        Ok((descending, nulls_first))
    }

    /// Whether values of an expression have an order.
    pub(super) fn check_sortable(&self, expr: &Expr, at: i32) -> Result<()> {
        match self.unsortable(expr, at) {
            None => Ok(()),
            Some(error) => Err(error.hint("Use an explicit ordering operator or modify the query.")),
        }
    }

    /// 42883 if values of an expression have no order.
    pub(super) fn unsortable(&self, expr: &Expr, at: i32) -> Option<Error> {
        let ty = base_of(expr.ty().oid);
        if ty == oid::RECORD || binary_operator("<", ty, ty).is_ok() {
            return None;
        }
        let message = format!("could not identify an ordering operator for type {}", self.type_name(ty));
        Some(self.error(SqlState::UNDEFINED_FUNCTION, message, at))
    }

    /// Whether values of an expression can be compared for equality.
    pub(super) fn check_groupable(&self, expr: &Expr, at: i32) -> Result<()> {
        let ty = base_of(expr.ty().oid);
        if ty == oid::RECORD || binary_operator("=", ty, ty).is_ok() {
            return Ok(());
        }
        let message = format!("could not identify an equality operator for type {}", self.type_name(ty));
        Err(self.error(SqlState::UNDEFINED_FUNCTION, message, at))
    }

    /// `findTargetlistEntrySQL92`: the target that an ORDER BY, GROUP BY or DISTINCT ON item means; a new one, out of
    /// sight, if it means none. Answers also where the item begins.
    pub(super) fn find_target(
        &mut self,
        node: &'a Node,
        query: &mut Query,
        at: &mut Vec<i32>,
        place: ClauseKind,
    ) -> Result<(usize, i32)> {
        if let Node::ColumnRef(c) = node
            && let [Some(Node::String(name))] = c.fields.as_slice()
            && let Some(found) = self.target_by_name(name, c.location, query, place)?
        {
            return Ok((found, c.location));
        }
        if let Some(value) = constant(node) {
            return self.target_by_number(value, location(node), query, place);
        }
        let set_calls = self.set_call_count();
        let value = self.at_place(place, |b| b.expr(node))?;
        let item_at = value.at;
        if self.set_call_count() > set_calls
            && let Some(found) = self.repeated_target(&value.expr, set_calls, query)
        {
            return Ok((found, item_at));
        }
        // A literal among the targets has its type already.
        if let Some(found) = query.targets.iter().position(|t| same(&t.expr, &value.expr)) {
            return Ok((found, item_at));
        }
        if !matches!(query.body, Body::Select) && place == ClauseKind::OrderBy && self.is_set_operation(query) {
            return Err(self
                .unsupported("invalid UNION/INTERSECT/EXCEPT ORDER BY clause", item_at)
                .detail("Only result column names can be used, not expressions or functions.")
                .hint("Add the expression/function to every SELECT, or move the UNION into a FROM clause."));
        }
        let value = self.resolve_unknown(value)?;
        query.targets.push(Target { expr: value.expr, name: String::new(), junk: true });
        at.push(item_at);
        Ok((query.targets.len() - 1, item_at))
    }

    fn is_set_operation(&self, query: &Query) -> bool {
        matches!(query.body, Body::SetOp { .. })
    }

    /// An output column by name.
    fn target_by_name(&mut self, name: &str, at: i32, query: &Query, place: ClauseKind) -> Result<Option<usize>> {
        // In GROUP BY a column of FROM goes before an output column.
        if place == ClauseKind::GroupBy && self.is_input_column(name, at)? {
            return Ok(None);
        }
        let mut found: Option<usize> = None;
        for (i, target) in query.targets.iter().enumerate() {
            if target.junk || target.name != name {
                continue;
            }
            match found {
                None => found = Some(i),
                Some(first) if same(&query.targets[first].expr, &target.expr) => {}
                Some(_) => {
                    let message = format!("{} \"{name}\" is ambiguous", place.name());
                    return Err(self.error(SqlState::AMBIGUOUS_COLUMN, message, at));
                }
            }
        }
        Ok(found)
    }

    /// Whether FROM of this level has a column of a name.
    fn is_input_column(&mut self, name: &str, at: i32) -> Result<bool> {
        let place = std::mem::replace(&mut self.scope().place, ClauseKind::Other);
        let found = self.find_column(name, at);
        self.scope().place = place;
        Ok(matches!(found?, Some(Expr::Column(c)) if c.level == 0) || self.is_merged_column(name))
    }

    /// Whether a join of this level merges a column of a name.
    fn is_merged_column(&mut self, name: &str) -> bool {
        let items = &self.scope().items;
        items.iter().any(|i| i.columns_visible && i.columns.iter().any(|c| c.name == name))
    }

    fn target_by_number(
        &self,
        value: Option<&Node>,
        at: i32,
        query: &Query,
        place: ClauseKind,
    ) -> Result<(usize, i32)> {
        let Some(Node::Integer(number)) = value else {
            let message = format!("non-integer constant in {}", place.name());
            return Err(self.error(SqlState::SYNTAX_ERROR, message, at));
        };
        let mut visible = query.targets.iter().enumerate().filter(|(_, t)| !t.junk);
        let found = usize::try_from(*number).ok().and_then(|n| n.checked_sub(1)).and_then(|n| visible.nth(n));
        match found {
            Some((i, _)) => Ok((i, at)),
            None => {
                let message = format!("{} position {number} is not in select list", place.name());
                Err(self.error(SqlState::INVALID_COLUMN_REFERENCE, message, at))
            }
        }
    }

    /// DISTINCT and DISTINCT ON.
    pub(super) fn distinct(&mut self, list: &'a [Option<Node>], query: &mut Query, at: &mut Vec<i32>) -> Result<()> {
        if list.is_empty() {
            return Ok(());
        }
        let on: Vec<&'a Node> = list.iter().flatten().collect();
        if on.is_empty() {
            for key in &query.order_by {
                if query.targets[key.target].junk {
                    let message = "for SELECT DISTINCT, ORDER BY expressions must appear in select list";
                    return Err(self.error(SqlState::INVALID_COLUMN_REFERENCE, message, at[key.target]));
                }
            }
            for (target, &at) in query.targets.iter().zip(at.iter()) {
                self.check_groupable(&target.expr, at)?;
            }
            query.distinct = Some(Vec::new());
            return Ok(());
        }
        let mut targets = Vec::with_capacity(on.len());
        let mut places = Vec::with_capacity(on.len());
        for node in on {
            let (target, item_at) = self.find_target(node, query, at, ClauseKind::DistinctOn)?;
            self.check_groupable(&query.targets[target].expr, item_at)?;
            if !targets.contains(&target) {
                targets.push(target);
                places.push(item_at);
            }
        }
        // The initial ORDER BY keys must be those of DISTINCT ON, in any order.
        let mut skipped = false;
        for key in &query.order_by {
            if targets.contains(&key.target) {
                if skipped {
                    return Err(self.distinct_on_mismatch(at[key.target]));
                }
            } else {
                skipped = true;
            }
        }
        if skipped && let Some(i) = targets.iter().position(|t| !query.order_by.iter().any(|k| k.target == *t)) {
            return Err(self.distinct_on_mismatch(places[i]));
        }
        query.distinct = Some(targets);
        Ok(())
    }

    fn distinct_on_mismatch(&self, at: i32) -> base::Error {
        let message = "SELECT DISTINCT ON expressions must match initial ORDER BY expressions";
        self.error(SqlState::INVALID_COLUMN_REFERENCE, message, at)
    }
}
