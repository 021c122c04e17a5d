//! MERGE (`parse_merge.c`).

use std::sync::Arc;

use base::{Error, Result, SqlState};
use engine_api::TableKind;
use rupg_sql::nodes::{CmdType, MergeMatchKind, MergeStmt, MergeWhenClause, Node, RangeVar};
use sql_ir::{Expr, From, InsertSource, JoinKind, Merge, MergeAction, MergeKind, Query, Statement};

use super::Binder;
use super::dml::{Bound, Written, generated};
use super::from::Relation;
use super::scope::{ClauseKind, Item};

impl<'a> Binder<'a, '_> {
    /// MERGE.
    pub(super) fn merge(&mut self, merge: &'a MergeStmt) -> Result<Bound> {
        if merge.withClause.as_ref().is_some_and(|with| with.recursive) {
            return Err(Error::new(SqlState::SYNTAX_ERROR, "WITH RECURSIVE is not supported for MERGE statement"));
        }
        if merge.returningClause.is_some() {
            return Err(self.unsupported("MERGE with RETURNING is not supported", -1));
        }
        self.push_scope();
        self.add_ctes(merge.withClause.as_deref())?;
        let clauses: Vec<&'a MergeWhenClause> = merge
            .mergeWhenClauses
            .iter()
            .flatten()
            .filter_map(|node| match node {
                Node::MergeWhenClause(clause) => Some(&**clause),
                _ => None,
            })
            .collect();
        self.check_reachable(&clauses)?;
        let written = self.merge_target(merge.relation.as_deref())?;
        let table = Arc::clone(&written.table);
        let rels = self.target_rels(&written, merge.relation.as_deref());
        self.enter_target(&rels[..1], &written);
        let (mut query, source) = self.merge_source(merge)?;
        let target = self.scope().items[0].clone();
        let inserts = clauses
            .iter()
            .any(|c| c.matchKind != MergeMatchKind::MERGE_WHEN_MATCHED && c.commandType == CmdType::CMD_INSERT);
        let on = match &merge.joinCondition {
            Some(node) => self.at_place(ClauseKind::JoinOn, |b| {
                let value = b.expr(node)?;
                b.coerce_to_boolean(value, "JOIN/ON")
            })?,
            None => return Err(Error::internal("MERGE without a condition")),
        };
        let kind = if inserts { JoinKind::Left } else { JoinKind::Inner };
        let left = query.from.pop().ok_or_else(|| Error::internal("MERGE without a source"))?;
        let right = Box::new(From::Rel(0));
        query.from.push(From::Join { kind, left: Box::new(left), right, on: Some(on.clone()) });
        let mut actions = Vec::with_capacity(clauses.len());
        for clause in clauses {
            let matched = clause.matchKind == MergeMatchKind::MERGE_WHEN_MATCHED;
            let mut items = if matched { vec![target.clone()] } else { Vec::new() };
            items.extend(source.iter().cloned());
            self.scope().items = items;
            let condition = self.condition(clause.condition.as_ref(), ClauseKind::MergeWhen, "WHEN")?;
            let kind = self.merge_action(clause, &written)?;
            actions.push(MergeAction { matched, condition, kind });
        }
        query.rels = std::mem::take(&mut self.scope().rels);
        let checks = self.checks(&table.desc, &[], None)?;
        let generated = generated(&table.desc, self.cx)?;
        let merge = Merge { table, query, on, actions, checks, generated };
        let statement = self.finish_statement(Statement::Merge(Box::new(merge)))?;
        self.scopes.pop();
        Ok((statement, Vec::new()))
    }

    /// A clause without a condition is the last of its kind.
    fn check_reachable(&self, clauses: &[&MergeWhenClause]) -> Result<()> {
        let (mut matched, mut unmatched) = (false, false);
        for clause in clauses {
            let done = match clause.matchKind {
                MergeMatchKind::MERGE_WHEN_MATCHED => &mut matched,
                MergeMatchKind::MERGE_WHEN_NOT_MATCHED_BY_TARGET => &mut unmatched,
                _ => return Err(self.unsupported("WHEN NOT MATCHED BY SOURCE is not supported", -1)),
            };
            if *done {
                let message = "unreachable WHEN clause specified after unconditional WHEN clause";
                return Err(Error::new(SqlState::SYNTAX_ERROR, message));
            }
            *done = clause.condition.is_none();
        }
        Ok(())
    }

    fn merge_target(&mut self, var: Option<&RangeVar>) -> Result<Written> {
        let Some(named) = var else { return Err(Error::internal("a statement without a table")) };
        let refused = match self.relation(named)? {
            Relation::View(desc) => Some((desc.name.clone(), "views")),
            Relation::Sequence(..) => Some((named.relname.as_deref().unwrap_or("").to_string(), "sequences")),
            Relation::Table(info) if info.desc.kind == TableKind::MaterializedView => {
                Some((info.desc.name.clone(), "materialized views"))
            }
            _ => None,
        };
        match refused {
            Some((name, kinds)) => Err(Error::unsupported(format!("cannot execute MERGE on relation \"{name}\""))
                .detail(format!("This operation is not supported for {kinds}."))),
            None => self.target_table(var, "merge into"),
        }
    }

    /// The data source: rels behind the target's, and the names they bring.
    fn merge_source(&mut self, merge: &'a MergeStmt) -> Result<(Query, Vec<Item>)> {
        // The source does not see the target.
        let target = &mut self.scope().items[0];
        (target.lateral_only, target.lateral_ok) = (true, false);
        let name = target.name.clone();
        target.rel_visible = false;
        self.scope().target_hidden = true;
        let bound = self.bind_from(std::slice::from_ref(&merge.sourceRelation));
        self.scope().target_hidden = false;
        let target = &mut self.scope().items[0];
        (target.lateral_only, target.lateral_ok, target.rel_visible) = (false, true, true);
        let from = bound?;
        let source: Vec<Item> = self.scope().items[1..].to_vec();
        if source.iter().any(|item| item.rel_visible && item.name == name) {
            let message = format!("name \"{name}\" specified more than once");
            return Err(Error::new(SqlState::DUPLICATE_ALIAS, message)
                .detail("The name is used both as MERGE target table and data source."));
        }
        Ok((Query { from, ..Query::default() }, source))
    }

    fn merge_action(&mut self, clause: &'a MergeWhenClause, written: &Written) -> Result<MergeKind> {
        Ok(match clause.commandType {
            CmdType::CMD_UPDATE => MergeKind::Update(self.set_list(&clause.targetList, written)?),
            CmdType::CMD_DELETE => MergeKind::Delete,
            CmdType::CMD_INSERT => self.merge_insert(clause, written)?,
            _ => MergeKind::Nothing,
        })
    }

    /// The values of all columns of a new row; dropped and generated ones are NULL.
    fn merge_insert(&mut self, clause: &'a MergeWhenClause, written: &Written) -> Result<MergeKind> {
        let desc = Arc::clone(&written.table);
        let desc = &desc.desc;
        let explicit = !clause.targetList.is_empty();
        let columns = self.insert_columns(&clause.targetList, written)?;
        let values = &clause.values;
        let at = |i: usize| values.get(i).and_then(Option::as_ref).map_or(-1, super::node::location);
        let columns = match values.is_empty() {
            true => Vec::new(),
            false => self.match_width(columns, values.len(), explicit, at)?,
        };
        let rows = vec![self.insert_row(values, &columns, written)?];
        let columns = super::parts::each_once(columns);
        let (source, assigned) = self.generated_values(clause.r#override, desc, InsertSource::Values(rows), columns)?;
        let InsertSource::Values(mut rows) = source else { return Err(Error::internal("values became a query")) };
        let row = rows.pop().unwrap_or_default();
        let mut given: Vec<(usize, Expr)> = assigned.iter().map(|a| a.index).zip(row).collect();
        let named = given.len();
        for (i, column) in desc.columns.iter().enumerate() {
            if !given.iter().any(|(index, _)| *index == i) {
                given.push((i, self.column_default(column)?));
            }
        }
        Ok(MergeKind::Insert(given, named))
    }
}
