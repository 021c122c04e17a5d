//! One query level while it is planned: its registers and where its names are in it.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::Arc;

use base::{Error, Oid, Result};
use sql_bind::equal::same;
use sql_functions::statistics::{ColumnStatistics, TableStatistics};
use sql_ir::expr::{Code, Resolve, Slot, SubqueryUse, comparison_of, compile, compile_all, type_of_field};
use sql_ir::expr::{Comparison, How};
use sql_ir::row_codec::RowReader;
use sql_ir::{Column, CompareOp, Expr, From, JoinKind, Query, Rel, RelKind, SubqueryKind, TableInfo};
use types::oid;

use super::access::Mask;
use super::explain::Told;
use super::node::{CtePlan, Meter, MeteredNode, Node, QueryPlan, Subplan};
use super::{PlanContext, exists, query, walk};

/// What a query takes from the one around it, as that one names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outer {
    Column(Column),
    WholeRow { level: usize, rel: usize },
    Aggregate { level: usize, index: usize },
}

/// Columns that are asked for, by rel.
pub(super) struct Asked {
    /// By other rels, guards and WITH.
    pub among: Vec<BTreeSet<usize>>,
    /// When the rows of FROM have been found.
    pub above: Vec<BTreeSet<usize>>,
    /// Only of the first rows in an order: what `above` has is read when a row is among them, so far.
    pub of_first: bool,
}

/// A query level.
pub(super) struct Level<'a> {
    pub cx: &'a PlanContext<'a>,
    pub rels: &'a [Rel],
    /// Slots so far.
    slots: usize,
    /// Slots of the used columns, by rel: (column, slot).
    columns: Vec<Vec<(usize, Slot)>>,
    /// What is asked for beside FROM and WHERE, until these are planned; `None` if rows are asked for as a whole.
    pub asked_above_from: Option<Asked>,
    /// By rel, the columns that the conditions of its own scan ask for, and nothing else.
    pub filtered: Vec<BTreeSet<usize>>,
    /// By rel, the columns that only what is above the joins asks for, and conditions of its own scan.
    pub above: Vec<BTreeSet<usize>>,
    /// Slots of row identities, where they are wanted.
    row_slots: Vec<Option<Slot>>,
    /// Whether the rows of a rel are used as values, by rel.
    whole: Vec<bool>,
    /// Slots that say, for rels on the null side of an outer join whose rows are used as values, that there is a row: NULL if not.
    present: Vec<Option<Slot>>,
    /// Slots of aggregates.
    pub aggregates: Vec<Slot>,
    /// What is taken from around.
    pub outer: Vec<(Outer, Slot)>,
    /// Subqueries of expressions.
    pub subplans: Vec<Subplan>,
    /// What EXPLAIN shows of the node that is noted next.
    details: RefCell<Vec<(&'static str, Told)>>,
    /// What the query gives, as EXPLAIN (VERBOSE) shows it.
    pub shown_output: Vec<String>,
    /// Rows of the result, and its cost.
    pub result: (f64, f64),
    /// Rows of each rel, expected.
    pub rows: Vec<f64>,
    /// What is known of the tables among the rels.
    pub tables: Vec<Option<Arc<TableStatistics>>>,
    /// Subqueries in FROM that are planned and not read yet, by rel.
    pub planned: Vec<Option<Subplan>>,
    /// WITH queries that are kept.
    pub ctes: Vec<CtePlan>,
    /// Grouping expressions and the slots that hold their values, once they do.
    pub grouped: Vec<(Expr, Slot)>,
    /// The slots of all grouping expressions, by number.
    pub group_slots: Vec<Slot>,
    /// Rels whose row is there while a part of FROM is read for it.
    pub around: Mask,
}

impl<'a> Level<'a> {
    /// A level over these rels whose used columns are those that `uses` calls its argument with.
    pub fn new(cx: &'a PlanContext<'a>, rels: &'a [Rel], uses: impl FnOnce(&mut dyn FnMut(&Expr, usize))) -> Level<'a> {
        let mut used: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); rels.len()];
        let mut whole = vec![false; rels.len()];
        uses(&mut |expr, depth| match expr {
            Expr::Column(c) if c.level == depth => {
                used[c.rel].insert(c.column);
            }
            Expr::WholeRow { level, rel } if *level == depth => {
                used[*rel].extend(live_columns(&rels[*rel]));
                whole[*rel] = true;
            }
            _ => {}
        });
        let mut level = Level {
            cx,
            rels,
            slots: cx.params,
            columns: Vec::new(),
            asked_above_from: None,
            filtered: vec![BTreeSet::new(); rels.len()],
            above: Vec::new(),
            row_slots: vec![None; rels.len()],
            whole,
            present: vec![None; rels.len()],
            aggregates: Vec::new(),
            outer: Vec::new(),
            subplans: Vec::new(),
            details: RefCell::default(),
            shown_output: Vec::new(),
            result: (1.0, 0.0),
            rows: rels.iter().map(|rel| expected_rows(cx, rel)).collect(),
            tables: rels.iter().map(|rel| known_of(cx, rel)).collect(),
            planned: rels.iter().map(|_| None).collect(),
            ctes: Vec::new(),
            grouped: Vec::new(),
            group_slots: Vec::new(),
            around: 0,
        };
        level.columns =
            used.into_iter().map(|columns| columns.into_iter().map(|c| (c, level.slot())).collect()).collect();
        level
    }

    /// Notes what a query asks of its rows beside FROM and WHERE, if it asks for no rows as a whole. `of_first`: what stands in the select list
    /// as it is, and the order does not need, is asked of the first rows alone.
    pub(crate) fn note_above_from(&mut self, query: &Query, of_first: bool) {
        if !query.locking.is_empty() || self.whole.contains(&true) || self.row_slots.iter().any(Option::is_some) {
            return;
        }
        let asked = |walk: fn(&Query, &mut dyn FnMut(&Expr, usize))| {
            let mut asked = vec![BTreeSet::new(); self.rels.len()];
            walk(query, &mut |expr, depth| match expr {
                Expr::Column(c) if c.level == depth => _ = asked[c.rel].insert(c.column),
                _ => {}
            });
            asked
        };
        let mut among = asked(|query, note| walk::walk_rels(query, 0, note));
        let mut above = asked(|query, note| walk::walk_above(query, 0, note));
        if of_first {
            let of_all = std::mem::replace(&mut above, vec![BTreeSet::new(); self.rels.len()]);
            let is_key = |target: usize| query.order_by.iter().any(|key| key.target == target);
            for (number, target) in query.targets.iter().enumerate() {
                match &target.expr {
                    Expr::Column(c) if c.level == 0 && !is_key(number) => _ = above[c.rel].insert(c.column),
                    expr => walk::columns_of(expr, &mut |c| _ = among[c.rel].insert(c.column)),
                }
            }
            // What else asks for columns, as LIMIT and subqueries do, asks for them of all rows.
            for ((of_all, above), among) in of_all.into_iter().zip(&above).zip(&mut among) {
                among.extend(of_all.difference(above));
            }
        }
        self.asked_above_from = Some(Asked { among, above, of_first });
    }

    /// Whether nothing but the conditions of a rel's own scan asks for a column.
    pub(crate) fn is_filtered(&self, rel: usize, column: usize) -> bool {
        self.filtered[rel].contains(&column)
    }

    /// A new slot.
    pub fn slot(&mut self) -> Slot {
        self.slots += 1;
        (self.slots - 1) as Slot
    }

    /// All slots that values of rows lie in by now, those behind the parameters, but for what only scans ask for.
    pub fn slots_so_far(&self) -> Vec<Slot> {
        let rels = (0..self.rels.len()).filter(|rel| !self.filtered[*rel].is_empty());
        let of_rel = |rel: usize| self.columns[rel].iter().filter(move |(column, _)| self.is_filtered(rel, *column));
        let left_out: BTreeSet<Slot> = rels.flat_map(of_rel).map(|(_, slot)| *slot).collect();
        (self.cx.params as Slot..self.slots as Slot).filter(|slot| !left_out.contains(slot)).collect()
    }

    /// The used columns of a rel: (column, slot).
    pub fn columns(&self, rel: usize) -> &[(usize, Slot)] {
        &self.columns[rel]
    }

    /// Slots of all columns of a rel, by column. Those of columns that are not used are empty, and have their numbers in the
    /// second list.
    pub(crate) fn carry_all(&mut self, rel: usize) -> (Vec<Slot>, Vec<(usize, Slot)>) {
        let mut carried = Vec::new();
        let mut slot_of = |column: usize| match self.columns[rel].iter().find(|(c, _)| *c == column) {
            Some(&(_, slot)) => slot,
            None => {
                self.slots += 1;
                let slot = (self.slots - 1) as Slot;
                carried.push((column, slot));
                slot
            }
        };
        let slots = (0..self.rels[rel].columns.len()).map(&mut slot_of).collect();
        (slots, carried)
    }

    /// Makes all columns of a rel used. Answers their slots by column.
    pub(crate) fn use_all(&mut self, rel: usize) -> Vec<Slot> {
        (0..self.rels[rel].columns.len()).map(|column| self.column_slot(rel, column)).collect()
    }

    /// The slot of a column, which is used from now on.
    pub(crate) fn column_slot(&mut self, rel: usize, column: usize) -> Slot {
        if let Some(&(_, slot)) = self.columns[rel].iter().find(|(c, _)| *c == column) {
            return slot;
        }
        let slot = self.slot();
        self.columns[rel].push((column, slot));
        slot
    }

    /// The slot of the identity of a rel's rows.
    pub fn row_slot(&mut self, rel: usize) -> Slot {
        match self.row_slots[rel] {
            Some(slot) => slot,
            None => {
                let slot = self.slot();
                self.row_slots[rel] = Some(slot);
                slot
            }
        }
    }

    /// The slot of the identity of a rel's rows, if it is wanted.
    pub(crate) fn table_row_slot(&self, rel: usize) -> Option<Slot> {
        self.row_slots[rel]
    }

    /// All slots of a rel that something above its scan asks for.
    pub(crate) fn rel_slots(&self, rel: usize) -> Vec<Slot> {
        let present = self.present[rel].filter(|slot| self.row_slots[rel] != Some(*slot));
        let columns = self.columns[rel].iter().filter(|(column, _)| !self.is_filtered(rel, *column));
        columns.map(|(_, slot)| *slot).chain(self.row_slots[rel]).chain(present).collect()
    }

    /// Gives the rels on the null sides of outer joins a slot that says whether there is a row, if their rows are used as values:
    /// where there is none, its value is NULL and not a row of NULLs.
    pub(crate) fn null_extended(&mut self, from: &[From]) {
        let mut rels = Vec::new();
        from.iter().for_each(|item| null_sides(item, false, &mut rels));
        for rel in rels.into_iter().filter(|rel| self.whole[*rel]).collect::<Vec<_>>() {
            let slot = match self.rels[rel].kind {
                // A row of a table has an identity.
                RelKind::Table(_) => self.row_slot(rel),
                _ => self.slot(),
            };
            self.present[rel] = Some(slot);
        }
    }

    /// The slot in which whoever reads a rel says that there is a row, if somebody asks.
    pub(crate) fn present_slot(&self, rel: usize) -> Option<Slot> {
        self.present[rel].filter(|slot| self.row_slots[rel] != Some(*slot))
    }

    /// A reader of the used columns of a table.
    pub fn reader(&self, rel: usize, info: &TableInfo) -> Result<RowReader> {
        RowReader::new(info, &self.columns[rel], self.row_slots[rel])
    }

    /// Compiles an expression of this level.
    pub fn compile(&mut self, expr: &Expr) -> Result<Code> {
        compile(expr, self)
    }

    /// Compiles several.
    pub fn compile_all<'e>(&mut self, exprs: impl IntoIterator<Item = &'e Expr>) -> Result<Vec<Code>> {
        compile_all(exprs, self)
    }

    /// The plan of this level.
    pub fn finish(self, root: Node, output: Vec<Slot>) -> (QueryPlan, Vec<(Outer, Slot)>) {
        let (registers, params) = (self.slots, self.cx.params);
        let (rows, cost) = self.result;
        let straight = root.straight(&output);
        let (subplans, ctes) = (self.subplans, self.ctes);
        let plan = QueryPlan { registers, params, root, output, straight, subplans, ctes, rows, cost };
        (plan, self.outer)
    }

    /// A node with what is expected of it, if the plan is to be explained.
    pub fn note(&self, node: Node, mask: Mask, rows: f64, cost: f64) -> Node {
        self.note_from(node, mask, rows, 0.0, cost)
    }

    /// Something that EXPLAIN shows of the node that is noted next.
    pub fn tell(&self, name: &'static str, text: impl FnOnce() -> String) {
        if self.cx.explains {
            self.details.borrow_mut().push((name, Told::Text(text())));
        }
    }

    /// The same, for several.
    pub(crate) fn tell_list(&self, name: &'static str, items: impl FnOnce() -> Vec<String>) {
        if self.cx.explains {
            self.details.borrow_mut().push((name, Told::List(items())));
        }
    }

    /// Columns of some rels, or what the query gives.
    fn output_of(&self, mask: Mask) -> Vec<String> {
        if mask == Mask::MAX {
            return self.shown_output.clone();
        }
        let rels = (0..self.rels.len()).filter(|rel| mask & (1 << rel) != 0);
        let column = |rel: usize, column: usize| match self.rels.len() {
            1 => self.rels[rel].column_name(column).to_string(),
            _ => format!("{}.{}", self.rels[rel].alias, self.rels[rel].column_name(column)),
        };
        rels.flat_map(|rel| self.columns[rel].iter().map(move |(number, _)| column(rel, *number))).collect()
    }

    /// The same, for a node that gives no row before it has spent `first`.
    pub(crate) fn note_from(&self, node: Node, mask: Mask, rows: f64, first: f64, cost: f64) -> Node {
        if !self.cx.explains {
            return node;
        }
        let width = (0..self.rels.len()).filter(|rel| mask & (1 << rel) != 0).map(|rel| self.width(rel)).sum();
        let (mut details, meter) = (self.details.take(), Meter::default());
        if self.cx.verbose {
            let output = self.output_of(mask);
            details.extend((!output.is_empty()).then_some(("Output", Told::List(output))));
            if let Node::Scan(scan) = &node
                && let Some(schema) = self.cx.catalog.get(scan.table.info.desc.schema)
            {
                details.push(("Schema", Told::Text(schema.name().to_string())));
            }
        }
        Node::Metered(Arc::new(MeteredNode { input: node, rows, first, cost, width, details, meter }))
    }

    /// What is known of a column of a table.
    pub fn known(&self, rel: usize, column: usize) -> Option<&ColumnStatistics> {
        let RelKind::Table(info) = &self.rels.get(rel)?.kind else { return None };
        self.tables[rel].as_ref()?.column(info.desc.columns.get(column)?)
    }

    /// Bytes of the used columns of a rel.
    fn width(&self, rel: usize) -> u64 {
        let of = |column: usize| {
            let known = self.known(rel, column).map(|of| of.width.round() as u64);
            let ty = self.rels[rel].columns[column].ty.oid;
            known.unwrap_or_else(|| types::type_info(ty).and_then(|t| u64::try_from(t.len).ok()).unwrap_or(32))
        };
        self.columns[rel].iter().map(|(column, _)| of(*column)).sum()
    }

    /// A query inside this one.
    pub fn subplan(&mut self, inner: &Query) -> Result<Subplan> {
        self.subplan_below(inner, 0)
    }

    /// A query inside this one with so many levels between them, to none of which it refers.
    pub(crate) fn subplan_below(&mut self, inner: &Query, between: usize) -> Result<Subplan> {
        let (plan, outer) = query::plan_query(inner, self.cx)?;
        let mut args = Vec::with_capacity(outer.len());
        let here = |level: usize| {
            level.checked_sub(between).ok_or_else(|| Error::internal("a query refers to one that was taken apart"))
        };
        for (what, slot) in outer {
            let code = match what {
                Outer::Column(column) => Code::Slot(self.column(&Column { level: here(column.level)?, ..column })?),
                Outer::WholeRow { level, rel } => self.whole_row(here(level)?, rel)?,
                Outer::Aggregate { level, index } => Code::Slot(self.aggregate(here(level)?, index)?),
            };
            args.push((code, slot));
        }
        Ok(Subplan { plan: Arc::new(plan), args, fixed: false, is_lookup: false })
    }

    /// The lookup that EXISTS can be when it has run so often that a hash table would have cost less; the subquery of the lookup
    /// comes behind its own. `cost`: that of one run of it.
    fn lookup(&mut self, query: &Query, cost: f64) -> Result<Option<SubqueryUse>> {
        /// Rows that are kept, at most, as far as is known before.
        const KEPT_MAX: f64 = 200_000.0;
        let Some(untied) = exists::untied(query) else { return Ok(None) };
        let mut subplan = self.subplan(&untied.query)?;
        if !subplan.args.is_empty() || subplan.plan.rows > KEPT_MAX {
            return Ok(None);
        }
        (subplan.fixed, subplan.is_lookup) = (true, true);
        let often = ((subplan.plan.cost + subplan.plan.rows) / cost.max(1.0)).ceil() as u32;
        let left = self.compile_all(&untied.outer)?.into();
        self.subplans.push(subplan);
        let lookup = self.subplans.len() - 1;
        Ok(Some(SubqueryUse::ExistsOrLookup { left, types: untied.types.into(), lookup, often }))
    }

    fn outer_slot(&mut self, what: Outer) -> Slot {
        if let Some(&(_, slot)) = self.outer.iter().find(|(o, _)| *o == what) {
            return slot;
        }
        let slot = self.slot();
        self.outer.push((what, slot));
        slot
    }
}

/// The rels that an outer join may have no row of.
fn null_sides(from: &From, null: bool, out: &mut Vec<usize>) {
    match from {
        From::Rel(rel) => out.extend(null.then_some(*rel)),
        From::Join { kind, left, right, .. } => {
            null_sides(left, null || matches!(kind, JoinKind::Right | JoinKind::Full), out);
            null_sides(right, null || matches!(kind, JoinKind::Left | JoinKind::Full), out);
        }
    }
}

/// Rows of a table of which nothing is known, at least: it may be about to be filled.
const ROWS_MIN: f64 = 1000.0;

fn known_of(cx: &PlanContext<'_>, rel: &Rel) -> Option<Arc<TableStatistics>> {
    let RelKind::Table(info) = &rel.kind else { return None };
    cx.stats.table(info.desc.oid)
}

/// Rows of a rel before any condition, roughly.
fn expected_rows(cx: &PlanContext<'_>, rel: &Rel) -> f64 {
    match &rel.kind {
        RelKind::Table(info) => {
            let rows = cx.stats.row_count(info.desc.oid) as f64;
            if cx.stats.table(info.desc.oid).is_some() { rows.max(1.0) } else { rows.max(ROWS_MIN) }
        }
        RelKind::System(_) => 300.0,
        RelKind::Subquery { .. } | RelKind::Cte { .. } | RelKind::WorkTable(_) => 1000.0,
        RelKind::Function { .. } => 100.0,
        RelKind::Values | RelKind::Window(_) | RelKind::Join => 10.0,
    }
}

/// Columns of a rel that were not dropped.
fn live_columns(rel: &Rel) -> Vec<usize> {
    (0..rel.columns.len()).filter(|&c| !rel.columns[c].name.is_empty()).collect()
}

impl Resolve for Level<'_> {
    fn column(&mut self, column: &Column) -> Result<Slot> {
        if column.level > 0 {
            return Ok(self.outer_slot(Outer::Column(Column { level: column.level - 1, ..*column })));
        }
        self.columns[column.rel]
            .iter()
            .find(|(c, _)| *c == column.column)
            .map(|(_, slot)| *slot)
            .ok_or_else(|| Error::internal(format!("no slot for {column:?}")))
    }

    fn whole_row(&mut self, level: usize, rel: usize) -> Result<Code> {
        if level > 0 {
            return Ok(Code::Slot(self.outer_slot(Outer::WholeRow { level: level - 1, rel })));
        }
        let columns = live_columns(&self.rels[rel]);
        let types = columns.iter().map(|&c| type_of_field(self.rels[rel].columns[c].ty.oid)).collect();
        let fields = columns.into_iter().map(|c| Code::Slot(self.column_slot(rel, c))).collect();
        let row = Code::Row { fields, types };
        let Some(present) = self.present[rel] else { return Ok(row) };
        let there = Code::IsNull(Box::new(Code::Slot(present)), true);
        Ok(Code::Case { branches: Box::new([(there, row)]), otherwise: None })
    }

    fn aggregate(&mut self, level: usize, index: usize) -> Result<Slot> {
        if level > 0 {
            return Ok(self.outer_slot(Outer::Aggregate { level: level - 1, index }));
        }
        self.aggregates.get(index).copied().ok_or_else(|| Error::internal("an aggregate below its aggregation"))
    }

    fn param(&mut self, index: usize) -> Slot {
        index as Slot
    }

    fn subquery(&mut self, kind: &SubqueryKind, query: &Query) -> Result<Code> {
        let mut subplan = self.subplan(query)?;
        // What it takes from further out stays while this query runs once, and so does its result, even if it calls volatile functions.
        let is_outer = |code: &Code| matches!(code, Code::Slot(slot) if self.outer.iter().any(|(_, own)| own == slot));
        let fixed = subplan.args.iter().all(|(code, _)| is_outer(code));
        subplan.fixed = fixed;
        let kind = match kind {
            SubqueryKind::Exists => {
                let cost = (!subplan.args.is_empty()).then_some(subplan.plan.cost);
                self.subplans.push(subplan);
                let index = self.subplans.len() - 1;
                let kind = cost.map(|cost| self.lookup(query, cost)).transpose()?.flatten();
                return Ok(Code::Subquery { index, kind: Box::new(kind.unwrap_or(SubqueryUse::Exists)) });
            }
            SubqueryKind::Scalar => SubqueryUse::Scalar,
            SubqueryKind::Array => {
                let element = query.targets.iter().find(|t| !t.junk).map_or(oid::TEXT, |t| t.expr.ty().oid);
                SubqueryUse::Array(element)
            }
            SubqueryKind::Any { left, functions } | SubqueryKind::All { left, functions } => {
                let all = matches!(kind, SubqueryKind::All { .. });
                let tests: Vec<Comparison> = functions.iter().map(|f| comparison_of(f)).collect();
                let columns: Vec<Oid> = query.targets.iter().filter(|t| !t.junk).map(|t| t.expr.ty().oid).collect();
                let hashed = fixed.then(|| hash_types(all, &tests, left, &columns)).flatten();
                SubqueryUse::AnyAll {
                    all,
                    left: self.compile_all(left)?.into(),
                    tests: tests.into(),
                    hashed: hashed.map(Vec::into_boxed_slice),
                }
            }
        };
        self.subplans.push(subplan);
        Ok(Code::Subquery { index: self.subplans.len() - 1, kind: Box::new(kind) })
    }

    fn computed(&mut self, expr: &Expr) -> Option<Slot> {
        let own = matches!(expr, Expr::Column(c) if c.level == 0);
        if self.grouped.is_empty() || own || matches!(expr, Expr::Const(..) | Expr::Param(..)) {
            return None;
        }
        self.grouped.iter().find(|(grouped, _)| same(grouped, expr)).map(|(_, slot)| *slot)
    }
}

/// Types by which `= ANY` (or `<> ALL`) can be looked up in a hash table. Integers of two widths meet in the widest.
fn hash_types(all: bool, tests: &[Comparison], left: &[Expr], columns: &[Oid]) -> Option<Vec<Oid>> {
    let wanted = if all { CompareOp::Ne } else { CompareOp::Eq };
    let ty = |((test, left), column): ((&Comparison, &Expr), &Oid)| match test.how {
        _ if test.op != wanted => None,
        How::Int if left.ty().oid == *column => Some(*column),
        How::Int => Some(oid::INT8),
        How::Order(ty) => Some(ty),
        How::Function(_) => None,
    };
    tests.iter().zip(left).zip(columns).map(ty).collect()
}
