//! FROM: which tables are joined with which, and how.
//!
//! A FROM list is taken apart into parts – tables, subqueries, the right sides of outer, semi- and anti-joins – and conditions.
//! [`super::order`] finds the cheapest order, this module builds it. FULL JOIN stays where it is written.
//! Invariant: a condition of WHERE or of an inner join's ON is tested exactly where its rels are all there; what was derived
//! from others (`a = b AND b = 1` means `a = 1`) only helps to find rows and is never tested instead of them.

use std::collections::BTreeSet;
use std::sync::Arc;

use base::work::{self, Count as _};
use base::{Error, Oid, Result};
use sql_functions as functions;
use sql_functions::{AS_TIMESTAMP, AS_TIMESTAMPTZ};
use sql_ir::expr::{Code, How, Slot, compare_op_of, comparison_of};
use sql_ir::{CompareOp, Expr, From, Guard, JoinKind, RelKind};
use types::{Datum, oid};

use super::access::{self, Conjunct, Mask, Wanted, rels_in};
use super::graph::{self, Graph};
use super::implied;
use super::level::{Asked, Level};
use super::merge_join::{self, WantedColumn, WantedRows};
use super::methods::{PlanMethod, sort_cost};
use super::node::{
    CteScanNode, DistinctNode, FilterNode, FunctionNode, HashJoinNode, JoinType, MaterializeNode, NestedLoopNode, Node,
    ProjectNode, SortNode, SortSlot, Subplan, SubqueryNode, SystemNode, WorkTableNode,
};
use super::order::{self, Goal, Method, Order};
use super::sarg::known;
use super::{explain, leak, pushdown, selectivity, walk};

/// A joined part of FROM.
#[derive(Debug)]
pub(super) struct Joined {
    pub node: Node,
    pub mask: Mask,
    pub rows: f64,
    /// In rows of a full scan.
    pub cost: f64,
    /// How many of the wanted keys, the first ones, the rows are in the order of.
    pub ordered: usize,
}

/// Largest number of rels in one FROM.
const MAX_RELS: usize = 128;

/// A part of FROM to be put together with others.
pub(super) struct Part<'q> {
    pub item: Item<'q>,
    pub mask: Mask,
    /// How it is joined to the rest: Inner, Left, Semi or Anti.
    pub join: JoinType,
    /// The ON of a join that is not inner.
    pub on: Vec<Conjunct>,
    /// The ON never holds: no row of it is ever a partner.
    pub is_never: bool,
    /// Rels of the list that must be there first.
    pub needs: Mask,
    /// It looks at rows of these: it is read anew for each of them.
    pub lateral: bool,
    /// What was built already, because it is a list of its own.
    pub built: Option<Joined>,
    /// A way to read it for a row of others.
    pub by_row: Option<ByRow>,
}

/// A subquery or a join that looks only for the partners of one row of others: their values stand in its conditions.
pub(super) struct ByRow {
    /// Rels that must be there.
    pub needs: Mask,
    /// What it costs each time.
    pub cost: f64,
    plan: RowPlan,
}

enum RowPlan {
    Subquery(Subplan),
    /// A join, and what of the conditions is not tested in it.
    Group(Joined, Vec<Conjunct>),
}

/// What a part is.
#[derive(Clone, Copy)]
pub(super) enum Item<'q> {
    Rel(usize),
    /// A join that is planned by itself.
    Group(&'q From),
}

/// The rels of a part of FROM.
pub(super) fn mask_of(from: &From) -> Mask {
    match from {
        From::Rel(rel) => 1 << rel,
        From::Join { left, right, .. } => mask_of(left) | mask_of(right),
    }
}

fn conditions_of(on: Option<&Expr>) -> Vec<Conjunct> {
    let mut list = Vec::new();
    if let Some(on) = on {
        walk::conjuncts(implied::without_common_alternatives(on.clone()), &mut list);
    }
    list.into_iter().counted(32).map(Conjunct::new).collect()
}

/// Joins a FROM list under guards and a WHERE. All conditions have been tested in the result.
pub(super) fn from_where(
    level: &mut Level<'_>,
    from: &[From],
    guards: &[Guard],
    filter: Option<&Expr>,
    wanted: WantedRows<'_>,
) -> Result<Joined> {
    if level.rels.len() > MAX_RELS {
        return Err(Error::unsupported(format!("more than {MAX_RELS} relations in one FROM clause")));
    }
    let before = work::total();
    let mut conjuncts = leak::guards(guards);
    conjuncts.append(&mut conditions_of(filter));
    let items: Vec<&From> = from.iter().collect();
    let joined = list(level, &items, &mut conjuncts, wanted);
    work::discard_made(conjuncts, before);
    joined
}

/// Tests the conditions that are left and can be tested by now.
fn add_filter(level: &mut Level<'_>, joined: &mut Joined, conjuncts: &mut [Conjunct]) -> Result<()> {
    let mut conditions = Vec::new();
    let mut shown = Vec::new();
    for number in access::in_order(conjuncts) {
        let conjunct = &mut conjuncts[number];
        if conjunct.used || conjunct.derived || conjunct.mask & !(joined.mask | level.around) != 0 {
            continue;
        }
        conjunct.used = true;
        conditions.push(level.compile(&conjunct.expr)?);
        shown.push(conjunct.expr.clone());
    }
    if !conditions.is_empty() {
        let input = std::mem::replace(&mut joined.node, Node::OneRow);
        let name = if matches!(input, Node::OneRow) { "One-Time Filter" } else { "Filter" };
        level.tell(name, || explain::conditions(&shown.iter().collect::<Vec<_>>(), level.rels));
        let node = Node::Filter(Arc::new(FilterNode { input, conditions }));
        joined.node = level.note(node, joined.mask, joined.rows, joined.cost);
    }
    Ok(())
}

/// Joins a list of FROM items (inner) and tests the conditions.
fn list(
    level: &mut Level<'_>,
    from: &[&From],
    conjuncts: &mut Vec<Conjunct>,
    wanted: WantedRows<'_>,
) -> Result<Joined> {
    let asked_above = level.asked_above_from.take();
    let mut parts = Vec::new();
    // As in PostgreSQL, what is said of a join is tested before what is said of its result: it may spare that from errors.
    let mut of_joins = Vec::new();
    for from in from {
        flatten(from, &mut parts, &mut of_joins);
    }
    conjuncts.splice(0..0, of_joins);
    if parts.is_empty() {
        let mut joined = Joined { node: Node::OneRow, mask: 0, rows: 1.0, cost: 0.0, ordered: 0 };
        add_filter(level, &mut joined, conjuncts)?;
        return Ok(joined);
    }
    implied::put_values(&level.cx.values, conjuncts);
    let all = parts.iter().fold(0, |mask, part| mask | part.mask);
    if conjuncts.iter().any(never_holds) {
        // Nothing is read where nothing can match.
        return nothing(level, all, conjuncts);
    }
    for part in &mut parts {
        prepare(level, part, all)?;
    }
    run_per_row(level, &mut parts);
    run_volatile_per_row(level, &mut parts);
    if parts.len() > 1 {
        for part in parts.iter_mut().filter(|part| part.join != JoinType::Inner) {
            derive_on(part, conjuncts);
        }
        implied::derive(conjuncts);
    }
    leak::hold_back(conjuncts);
    if let Some(asked) = asked_above {
        note_filtered(level, &parts, conjuncts, asked);
    }
    for part in &mut parts {
        by_row(level, part, conjuncts)?;
    }
    if let [Part { join: JoinType::Inner, .. }] = &parts[..] {
        let order = order_of_one(&parts[0], wanted.order);
        let order = order.as_ref().map(|order| Wanted { order, limit: wanted.limit, is_whole: wanted.is_whole });
        let mut joined = start(level, &mut parts[0], conjuncts, order)?;
        add_filter(level, &mut joined, conjuncts)?;
        return Ok(joined);
    }
    let order = {
        let graph = Graph::new(level, &parts, conjuncts, wanted);
        let goal =
            Goal { keys: wanted.order.len(), limit: wanted.limit, is_whole: wanted.is_whole, shared: wanted.shared };
        order::choose(&graph.places(), &graph, goal)
    };
    let order = order.ok_or_else(|| Error::internal("no order of joins"))?;
    let wanted = if order.is_served { wanted } else { WantedRows::default() };
    Builder { parts: &mut parts, conjuncts, wanted, share: order.share }.build(level, &order.joins)
}

/// Notes which columns of tables only the conditions of their own scans ask for, given what is asked for beside FROM and WHERE. They need not be
/// kept above the scans. Also which only what is above the joins asks for.
fn note_filtered(level: &mut Level<'_>, parts: &[Part<'_>], conjuncts: &[Conjunct], asked: Asked) {
    let Asked { among: mut asked, above, of_first } = asked;
    let reads_late = parts.len() > 1 || of_first;
    let part_of = |mask: Mask| parts.iter().find(|part| part.mask == mask && matches!(part.item, Item::Rel(_)));
    let is_inner = |mask| part_of(mask).is_some_and(|part| part.join == JoinType::Inner);
    // What a condition of one part alone asks for is asked by the scan of that part, unless it waits for others.
    let is_own = |c: &Conjunct| c.after == 0 && !c.guard && !c.used;
    let of_all = conjuncts.iter().filter(|c| !(is_own(c) && is_inner(c.mask)));
    let of_parts = parts.iter().flat_map(|part| {
        let is_table = matches!(part.item, Item::Rel(_));
        part.on.iter().filter(move |c| !(is_own(c) && is_table && c.mask == part.mask))
    });
    for conjunct in of_all.chain(of_parts) {
        walk::columns_of(&conjunct.expr, &mut |c| _ = asked[c.rel].insert(c.column));
    }
    if reads_late {
        level.above = vec![BTreeSet::new(); level.rels.len()];
    }
    for part in parts {
        // What the joins within others ask for is not told here.
        let Item::Rel(rel) = part.item else { continue };
        if matches!(level.rels[rel].kind, RelKind::Table(_)) {
            let columns = level.columns(rel).iter().map(|(column, _)| *column);
            let is_asked = |column: &usize| asked[rel].contains(column) || above[rel].contains(column);
            level.filtered[rel] = columns.filter(|column| !is_asked(column)).collect();
            if reads_late {
                level.above[rel] = &above[rel] - &asked[rel];
            }
        }
    }
}

/// Adds to the conditions of a part what follows from those of the rows that it is joined to: `ON r.a = l.a` where `l.a = 1` means
/// `r.a = 1`.
fn derive_on(part: &mut Part<'_>, conjuncts: &[Conjunct]) {
    let is_value = |c: &&Conjunct| !c.used && c.mask.count_ones() == 1 && c.after == 0 && hashable(&c.expr).is_some();
    let mut all: Vec<Conjunct> = conjuncts.iter().filter(is_value).cloned().collect();
    if all.is_empty() || part.on.iter().any(|c| c.after > 0 || c.guard) {
        return;
    }
    all.extend(part.on.iter().filter(|c| !c.used).cloned());
    let given = all.len();
    implied::derive(&mut all);
    let own = all.drain(given..).filter(|c| c.mask & !part.mask == 0);
    part.on.extend(own.filter(|c| c.mask != 0));
}

/// A wanted order as one of the columns of the only part.
fn order_of_one(part: &Part<'_>, wanted: &[WantedColumn]) -> Option<Vec<(usize, bool, bool)>> {
    let Item::Rel(rel) = part.item else { return None };
    let column = |c: &WantedColumn| (c.rel == rel).then_some((c.column, c.descending, c.nulls_first));
    if wanted.is_empty() { None } else { wanted.iter().map(column).collect() }
}

fn flatten<'q>(from: &'q From, parts: &mut Vec<Part<'q>>, conjuncts: &mut Vec<Conjunct>) {
    let item_of = |from: &'q From| match from {
        From::Rel(rel) => Item::Rel(*rel),
        other => Item::Group(other),
    };
    let part = |from: &'q From, join, on: Vec<Conjunct>, needs| Part {
        item: item_of(from),
        mask: mask_of(from),
        join,
        is_never: on.iter().any(never_holds),
        on,
        needs,
        lateral: false,
        built: None,
        by_row: None,
    };
    let From::Join { kind, left, right, on } = from else {
        parts.push(part(from, JoinType::Inner, Vec::new(), 0));
        return;
    };
    let (kept, other, join) = match kind {
        JoinKind::Inner => {
            flatten(left, parts, conjuncts);
            flatten(right, parts, conjuncts);
            conjuncts.extend(conditions_of(on.as_ref()));
            return;
        }
        JoinKind::Full => {
            parts.push(part(from, JoinType::Inner, Vec::new(), 0));
            return;
        }
        JoinKind::Right => (right, left, JoinType::Left),
        JoinKind::Left => (left, right, JoinType::Left),
        JoinKind::Semi => (left, right, JoinType::Semi),
        JoinKind::Anti => (left, right, JoinType::Anti),
    };
    flatten(kept, parts, conjuncts);
    let on = conditions_of(on.as_ref());
    let before = mask_of(kept);
    let named = on.iter().fold(0, |mask, conjunct| mask | conjunct.mask) & before;
    // An ON that names nothing of the left side is about all of it.
    let needs = if named == 0 { before } else { named };
    parts.push(part(other, join, on, needs));
}

/// Rels that must be there before this one can be read (LATERAL, arguments of functions).
fn depends_on(level: &Level<'_>, rel: usize) -> Mask {
    let mut mask = 0;
    match &level.rels[rel].kind {
        RelKind::Function { calls, .. } => {
            for arg in calls.iter().flat_map(|call| &call.args) {
                walk::columns_of(arg, &mut |c| mask |= 1 << c.rel);
                walk::whole_rows_of(arg, &mut |rel| mask |= 1 << rel);
            }
        }
        RelKind::Subquery { query, lateral: true } => walk::walk_query(query, 1, &mut |e, depth| match e {
            Expr::Column(c) if c.level == depth => mask |= 1 << c.rel,
            Expr::WholeRow { level, rel } if *level == depth => mask |= 1 << rel,
            _ => {}
        }),
        _ => {}
    }
    mask & !(1 << rel)
}

/// Lets the functions of a select list run for all that is beside them, so that their rows come in its order, and after those of
/// them whose values they may ask for. What looks at them itself, and what only filters, may come later.
fn run_per_row(level: &Level<'_>, parts: &mut [Part<'_>]) {
    let number = |part: &Part<'_>| match part.item {
        Item::Rel(rel) if matches!(level.rels[rel].kind, RelKind::Function { per_row: true, .. }) => Some(rel),
        _ => None,
    };
    for at in 0..parts.len() {
        let Some(rel) = number(&parts[at]) else { continue };
        // The rows of a semi- or anti-join's right side come nowhere.
        if matches!(parts[at].join, JoinType::Semi | JoinType::Anti) {
            continue;
        }
        let own = parts[at].mask;
        let is_before = |other: &&Part<'_>| {
            let makes_rows = matches!(other.join, JoinType::Inner | JoinType::Left);
            makes_rows && other.mask != own && other.needs & own == 0 && number(other).is_none_or(|other| other < rel)
        };
        let before = parts.iter().filter(is_before).fold(0, |mask, other| mask | other.mask);
        parts[at].needs |= before;
        parts[at].lateral |= before != 0;
    }
}

/// Runs a LATERAL subquery that calls volatile functions for each row of what stands before it, also if it reads none of its columns.
fn run_volatile_per_row(level: &Level<'_>, parts: &mut [Part<'_>]) {
    let mut before = 0;
    for part in parts {
        if let Item::Rel(rel) = part.item
            && let RelKind::Subquery { query, lateral: true } = &level.rels[rel].kind
            && matches!(part.join, JoinType::Inner | JoinType::Left)
            && walk::is_volatile_query(query)
        {
            part.needs |= before;
            part.lateral |= before != 0;
        }
        if matches!(part.join, JoinType::Inner | JoinType::Left) {
            before |= part.mask;
        }
    }
}

fn mask_depends_on(level: &Level<'_>, own: Mask) -> Mask {
    let rels = (0..level.rels.len()).filter(|rel| own & (1 << rel) != 0);
    rels.fold(0, |mask, rel| mask | depends_on(level, rel)) & !own
}

/// Plans what of a part is planned by itself: a subquery, a join on the right side of another.
fn prepare(level: &mut Level<'_>, part: &mut Part<'_>, all: Mask) -> Result<()> {
    if part.is_never {
        return Ok(());
    }
    let depends = mask_depends_on(level, part.mask) & all;
    part.needs |= depends;
    part.lateral = depends != 0;
    match part.item {
        Item::Rel(rel) => {
            if let RelKind::Subquery { query, .. } = &level.rels[rel].kind
                && level.planned[rel].is_none()
            {
                let subplan = level.subplan(query)?;
                level.rows[rel] = subplan.plan.rows.max(1.0);
                level.planned[rel] = Some(subplan);
            }
        }
        Item::Group(from @ From::Join { kind: JoinKind::Full, .. }) => part.built = Some(full(level, from)?),
        Item::Group(from) => {
            part.by_row = group_by_row(level, part, from)?;
            // Conditions about this side alone are tested while it is joined.
            let mut own: Vec<Conjunct> = Vec::new();
            for conjunct in part.on.iter_mut().filter(|c| c.mask != 0 && c.mask & !part.mask == 0) {
                conjunct.used = true;
                own.push(Conjunct { used: false, ..conjunct.clone() });
            }
            part.built = Some(list(level, &[from], &mut own, WantedRows::default())?);
        }
    }
    Ok(())
}

/// A join on the right side of another, for one row of the left side: its conditions may be answered by indexes then.
fn group_by_row(level: &mut Level<'_>, part: &Part<'_>, from: &From) -> Result<Option<ByRow>> {
    let needs = part.on.iter().fold(0, |mask, conjunct| mask | conjunct.mask) & !part.mask;
    let may_repeat = |conjunct: &Conjunct| {
        let mut plain = !walk::is_volatile(&conjunct.expr);
        walk::walk(&conjunct.expr, 0, &mut |e, _| plain &= !matches!(e, Expr::Subquery { .. }));
        plain
    };
    let is_table = |rel: usize| part.mask & (1 << rel) == 0 || matches!(level.rels[rel].kind, RelKind::Table(_));
    // Joins within joins are not planned twice on each level.
    if needs == 0
        || level.around != 0
        || part.lateral
        || !part.on.iter().all(may_repeat)
        || !(0..level.rels.len()).all(is_table)
    {
        return Ok(None);
    }
    let mut on = part.on.clone();
    let around = level.around;
    level.around |= needs;
    let joined = list(level, &[from], &mut on, WantedRows::default());
    level.around = around;
    let joined = joined?;
    let rows = joined.rows.max(1.0);
    // One partner says it all.
    let share = if matches!(part.join, JoinType::Semi | JoinType::Anti) { 1.0 / rows } else { 1.0 };
    on.retain(|conjunct| !conjunct.used && !conjunct.derived);
    Ok(Some(ByRow { needs, cost: (joined.cost * share).max(1.0), plan: RowPlan::Group(joined, on) }))
}

/// A subquery in FROM, for one row of what it is joined with: the equalities that tie it are tested in it.
fn by_row(level: &mut Level<'_>, part: &mut Part<'_>, conjuncts: &[Conjunct]) -> Result<()> {
    let Item::Rel(rel) = part.item else { return Ok(()) };
    let RelKind::Subquery { query, lateral: false } = &level.rels[rel].kind else { return Ok(()) };
    // How often it runs must not matter.
    if part.is_never
        || part.lateral
        || level.cx.is_by_row.get()
        || !query.locking.is_empty()
        || walk::is_volatile_query(query)
    {
        return Ok(());
    }
    let own: Mask = 1 << rel;
    let conditions = if part.join == JoinType::Inner { conjuncts } else { &part.on };
    let (mut inner, mut needs) = (None, 0);
    for conjunct in conditions.iter().filter(|c| !c.used && c.after == 0 && c.mask & own != 0 && c.mask != own) {
        let Some((a, b, _)) = hashable(&conjunct.expr) else { continue };
        let is_column = |expr: &Expr| selectivity::column_of(expr).is_some_and(|c| c.rel == rel);
        let (column, value) = if is_column(a) { (a, b) } else { (b, a) };
        let Some(column) = selectivity::column_of(column) else { continue };
        let plain = known(value, rel, Mask::MAX) && !implied::has_subquery(value);
        if column.rel != rel || !plain {
            continue;
        }
        if pushdown::takes(query, rel, &[column.column], &conjunct.expr) {
            pushdown::push(inner.get_or_insert_with(|| query.as_ref().clone()), rel, &conjunct.expr);
            needs |= conjunct.mask & !own;
        }
    }
    let Some(inner) = inner else { return Ok(()) };
    // Subqueries within subqueries are not planned twice on each level.
    level.cx.is_by_row.set(true);
    let subplan = level.subplan(&inner);
    level.cx.is_by_row.set(false);
    let subplan = subplan?;
    let cost = subplan.plan.cost + subplan.plan.rows * 0.5;
    part.by_row = Some(ByRow { needs, cost, plan: RowPlan::Subquery(subplan) });
    Ok(())
}

/// What finding rows of the catalog by a key costs: some objects are looked at.
const KEY_COST: f64 = 4.0;

/// Rows expected of a rel under conditions, and what reading it costs.
pub(super) fn estimate(level: &Level<'_>, rel: usize, conjuncts: &[Conjunct], available: Mask) -> (f64, f64) {
    match &level.rels[rel].kind {
        RelKind::Table(info) => {
            let path = access::choose(level, rel, info, conjuncts, available, None);
            (path.rows, path.cost)
        }
        kind => {
            let own = conjuncts.iter().filter(|c| !c.used && c.mask & !available == 1 << rel);
            let rows = (level.rows[rel] * selectivity::of_rel(level, rel, own)).max(1.0);
            let cost = match (kind, &level.planned[rel]) {
                (RelKind::Subquery { .. }, Some(subplan)) => subplan.plan.cost + level.rows[rel] * 0.5,
                (RelKind::System(relation), _) => match access::key_of_system(relation, rel, conjuncts, available) {
                    Some((key, _)) => return (rows.min(key.rows), key.rows + KEY_COST),
                    None => level.rows[rel],
                },
                _ => level.rows[rel],
            };
            (rows, cost)
        }
    }
}

/// Reads one part by itself.
fn start(
    level: &mut Level<'_>,
    part: &mut Part<'_>,
    conjuncts: &mut [Conjunct],
    wanted: Option<Wanted<'_>>,
) -> Result<Joined> {
    match part.item {
        _ if part.is_never => nothing(level, part.mask, conjuncts),
        Item::Rel(rel) => read(level, rel, conjuncts, 0, wanted),
        Item::Group(_) => part.built.take().ok_or_else(|| Error::internal("a join that was built twice")),
    }
}

/// No row, where a condition never holds; the others are not tested.
fn nothing(level: &mut Level<'_>, mask: Mask, conjuncts: &mut [Conjunct]) -> Result<Joined> {
    let mut joined = Joined { node: Node::OneRow, mask, rows: 1.0, cost: 0.0, ordered: 0 };
    if let Some(at) = conjuncts.iter().position(never_holds) {
        add_filter(level, &mut joined, &mut conjuncts[at..=at])?;
    }
    conjuncts.iter_mut().for_each(|conjunct| conjunct.used = true);
    Ok(joined)
}

fn never_holds(conjunct: &Conjunct) -> bool {
    matches!(conjunct.expr, Expr::Const(Datum::Bool(false) | Datum::Null, _))
}

/// Reads a rel; rows of `available` are there.
fn read(
    level: &mut Level<'_>,
    rel: usize,
    conjuncts: &mut [Conjunct],
    available: Mask,
    wanted: Option<Wanted<'_>>,
) -> Result<Joined> {
    let mask = 1 << rel;
    let estimated = match &level.rels[rel].kind {
        RelKind::Table(_) => (0.0, 0.0),
        _ => estimate(level, rel, conjuncts, available),
    };
    let rels = level.rels;
    let alias = rels[rel].alias.clone();
    let node = match &rels[rel].kind {
        RelKind::Table(info) => {
            let scan = access::scan(level, rel, info, conjuncts, available, wanted)?;
            let node = level.note(scan.node, mask, scan.rows, scan.cost);
            return Ok(Joined { node, mask, rows: scan.rows, cost: scan.cost, ordered: scan.ordered });
        }
        RelKind::System(relation) => {
            let columns = level.columns(rel).to_vec();
            let key = match access::key_of_system(relation, rel, conjuncts, available) {
                Some((key, value)) => Some((key, level.compile(value)?)),
                None => None,
            };
            Node::System(Arc::new(SystemNode { relation, alias, columns, key }))
        }
        RelKind::Function { calls, ordinality, .. } => {
            let mut planned = Vec::with_capacity(calls.len());
            for call in calls {
                planned.push((call.function, level.compile_all(&call.args)?));
            }
            let width = rels[rel].columns.len();
            let last = ordinality.then(|| width - 1);
            let all = level.columns(rel);
            let columns = all.iter().copied().filter(|(c, _)| Some(*c) != last).collect();
            let ordinality = all.iter().find(|(c, _)| Some(*c) == last).map(|(_, slot)| *slot);
            Node::Function(Arc::new(FunctionNode { calls: planned, alias, columns, ordinality }))
        }
        RelKind::Subquery { query, .. } => {
            let subplan = match level.planned[rel].take() {
                Some(subplan) => subplan,
                None => level.subplan(query)?,
            };
            let columns = level.columns(rel).to_vec();
            Node::Subquery(Arc::new(SubqueryNode { subplan, alias, columns }))
        }
        RelKind::Cte { id, .. } => {
            let cell = level.cx.cells.cell(*id)?;
            Node::Cte(Arc::new(CteScanNode { cell, alias, columns: level.columns(rel).to_vec() }))
        }
        RelKind::WorkTable(id) => {
            let table = level.cx.cells.work_table(*id)?;
            Node::WorkTable(Arc::new(WorkTableNode { table, alias, columns: level.columns(rel).to_vec() }))
        }
        RelKind::Values | RelKind::Window(_) | RelKind::Join => {
            return Err(Error::internal("a relation that cannot be read stands in FROM"));
        }
    };
    let node = match level.present_slot(rel) {
        Some(slot) => {
            let targets = vec![(slot, Code::Const(types::Datum::Bool(true)))];
            Node::Project(Arc::new(ProjectNode { input: node, targets }))
        }
        None => node,
    };
    let (rows, cost) = estimated;
    let node = level.note(node, mask, rows, cost);
    Ok(Joined { node, mask, rows, cost, ordered: 0 })
}

pub(super) fn slots_of(level: &Level<'_>, mask: Mask) -> Vec<Slot> {
    (0..level.rels.len()).filter(|rel| mask & (1 << rel) != 0).flat_map(|rel| level.rel_slots(rel)).collect()
}

/// The two sides of an equality whose values can be hashed alike, as (left, right, type).
pub(super) fn hashable(expr: &Expr) -> Option<(&Expr, &Expr, Oid)> {
    let Expr::Call { function, args, .. } = expr else { return None };
    let [a, b] = args.as_slice() else { return None };
    let test = comparison_of(function);
    let (ta, tb) = (a.ty().oid, b.ty().oid);
    let (op, ty) = match test.how {
        How::Order(ty) => (test.op, ty),
        How::Int if ta == tb => (test.op, ta),
        How::Int => (test.op, oid::INT8),
        How::Function(_) => (compare_op_of(function)?, instant_of(ta, tb)?),
    };
    (op == CompareOp::Eq && !walk::is_volatile(expr)).then_some((a, b, ty))
}

/// The type as which instants of two types are compared.
fn instant_of(left: Oid, right: Oid) -> Option<Oid> {
    match (left, right) {
        (oid::DATE, oid::TIMESTAMP) | (oid::TIMESTAMP, oid::DATE) => Some(oid::TIMESTAMP),
        (oid::DATE | oid::TIMESTAMP, oid::TIMESTAMPTZ) | (oid::TIMESTAMPTZ, oid::DATE | oid::TIMESTAMP) => {
            Some(oid::TIMESTAMPTZ)
        }
        _ => None,
    }
}

/// One side of an equality as what it is compared as, if that is not what it is.
fn as_instant(expr: &Expr, ty: Oid) -> Expr {
    let function = match (expr.ty().oid, ty) {
        (oid::DATE, oid::TIMESTAMP) => &AS_TIMESTAMP,
        (oid::DATE | oid::TIMESTAMP, oid::TIMESTAMPTZ) => &AS_TIMESTAMPTZ,
        _ => return expr.clone(),
    };
    Expr::Call { function, args: vec![expr.clone()], ty: sql_ir::Ty::of(ty), location: -1 }
}

/// Keys by which two sides can be joined: (left, right, type), and the conjuncts they come from. What was derived is of use only for
/// columns that are not made equal by what it follows from.
pub(super) fn hash_keys(conjuncts: &[Conjunct], left: Mask, right: Mask) -> Vec<(usize, Expr, Expr, Oid)> {
    let side = |expr: &Expr| rels_in(expr);
    let mut keys: Vec<(usize, Expr, Expr, Oid)> = Vec::new();
    let mut classes = None;
    for derived in [false, true] {
        for (i, conjunct) in conjuncts.iter().enumerate().filter(|(_, c)| !c.used && c.derived == derived) {
            let Some((a, b, ty)) = hashable(&conjunct.expr) else { continue };
            let (ma, mb) = (side(a), side(b));
            if ma == 0 || mb == 0 {
                continue;
            }
            let (l, r) = if ma & !left == 0 && mb & !right == 0 {
                (a, b)
            } else if ma & !right == 0 && mb & !left == 0 {
                (b, a)
            } else {
                continue;
            };
            let equal = |key: &(usize, Expr, Expr, Oid)| {
                let classes = classes.get_or_insert_with(|| implied::classes(conjuncts));
                implied::class_of(classes, l)
                    .is_some_and(|class| implied::class_of(classes, &conjuncts[key.0].expr) == Some(class))
            };
            if !derived || !keys.iter().any(equal) {
                keys.push((i, as_instant(l, ty), as_instant(r, ty), ty));
            }
        }
    }
    keys
}

/// One side of an equality as a key of type `ty`: integers of two widths meet in the widest.
pub(super) fn key_of(expr: &Expr, ty: Oid) -> Expr {
    let widen = || functions::function("int8", &[expr.ty().oid]).filter(|_| ty == oid::INT8 && expr.ty().oid != ty);
    match widen() {
        Some(function) => Expr::Call { function, args: vec![expr.clone()], ty: sql_ir::Ty::of(ty), location: -1 },
        None => expr.clone(),
    }
}

/// Builds the nodes of an order.
struct Builder<'b, 'q> {
    parts: &'b mut [Part<'q>],
    conjuncts: &'b mut Vec<Conjunct>,
    /// What the rows of all joins are to give.
    wanted: WantedRows<'b>,
    /// The share of them that is read, expected.
    share: f64,
}

impl Builder<'_, '_> {
    fn build(&mut self, level: &mut Level<'_>, order: &Order) -> Result<Joined> {
        let mut joined = match order {
            Order::Part(part) => start(level, &mut self.parts[*part], self.conjuncts, None)?,
            Order::Ordered(part) => self.first_in_order(level, *part)?,
            Order::Sorted(part) => self.first_sorted(level, *part)?,
            Order::Distinct(part) => self.distinct(level, *part)?,
            Order::Join { left, right, method: Method::Merge, rows } => self.merge(level, left, right, *rows)?,
            Order::Join { left, right, method, rows } => {
                let left = self.build(level, left)?;
                match **right {
                    Order::Part(part) if self.parts[part].join != JoinType::Inner => {
                        self.attach(level, left, part, *method, *rows)?
                    }
                    Order::Part(part) if *method == Method::Lookup => self.look_up(level, left, part, *rows)?,
                    _ => {
                        let right = self.build(level, right)?;
                        self.pair(level, left, right, *method, *rows)?
                    }
                }
            }
        };
        add_filter(level, &mut joined, self.conjuncts)?;
        Ok(joined)
    }

    /// The part whose order the rows of all joins have.
    fn first_in_order(&mut self, level: &mut Level<'_>, part: usize) -> Result<Joined> {
        let part = &mut self.parts[part];
        let Item::Rel(rel) = part.item else { return Err(Error::internal("an order of what is no table")) };
        let order = graph::columns_of(rel, self.wanted.order, self.conjuncts);
        let rows = estimate(level, rel, self.conjuncts, 0).0;
        let limit = self.wanted.limit.map(|_| rows * self.share);
        start(level, part, self.conjuncts, Some(Wanted { order: &order, limit, is_whole: self.wanted.is_whole }))
    }

    /// The part that is sorted before others are joined to it.
    fn first_sorted(&mut self, level: &mut Level<'_>, part: usize) -> Result<Joined> {
        let part = &mut self.parts[part];
        let Item::Rel(rel) = part.item else { return Err(Error::internal("an order of what is no table")) };
        let mut joined = start(level, part, self.conjuncts, None)?;
        add_filter(level, &mut joined, self.conjuncts)?;
        let by = graph::sorted_by(level, rel, self.wanted, self.conjuncts);
        let ordered = by.len();
        let mut keys = Vec::with_capacity(by.len());
        let (mut shown, mut computed) = (Vec::with_capacity(by.len()), Vec::new());
        for (expr, descending, nulls_first) in by {
            let slot = match &expr {
                Expr::Column(c) => level.column_slot(rel, c.column),
                expr => {
                    let (slot, code) = (level.slot(), level.compile(expr)?);
                    computed.push((slot, code));
                    slot
                }
            };
            keys.push(SortSlot { slot, ty: expr.ty().oid, descending, nulls_first });
            shown.push(explain::show(&expr, level.rels) + super::query::direction(descending, nulls_first));
        }
        let computed_slots: Vec<Slot> = computed.iter().map(|(slot, _)| *slot).collect();
        if !computed.is_empty() {
            joined.node = Node::Project(Arc::new(ProjectNode { input: joined.node, targets: computed }));
        }
        level.tell_list("Sort Key", || shown);
        let mut slots = slots_of(level, joined.mask);
        slots.extend(computed_slots);
        let sort = SortNode { input: joined.node, keys, slots, limit: None, is_late: false };
        let cost = joined.cost + sort_cost(joined.rows, level.cx.methods);
        let node = level.note_from(Node::Sort(Arc::new(sort)), joined.mask, joined.rows, cost, cost);
        Ok(Joined { node, cost, ordered, ..joined })
    }

    /// The right side of a semi-join with its keys made distinct: from then on it is joined as any other.
    fn distinct(&mut self, level: &mut Level<'_>, part: usize) -> Result<Joined> {
        let mut on = std::mem::take(&mut self.parts[part].on);
        let mask = self.parts[part].mask;
        let mut joined = start(level, &mut self.parts[part], &mut on, None)?;
        add_filter(level, &mut joined, &mut on)?;
        on.retain(|conjunct| !conjunct.used);
        let mut keys: Vec<(Slot, Oid)> = Vec::new();
        for conjunct in &on {
            let Some((a, b, _)) = hashable(&conjunct.expr) else { continue };
            let inner = if rels_in(a) & mask != 0 { a } else { b };
            let Code::Slot(slot) = level.compile(inner)? else {
                return Err(Error::internal("a key that is no column"));
            };
            keys.push((slot, inner.ty().oid));
        }
        self.parts[part].join = JoinType::Inner;
        self.conjuncts.append(&mut on);
        let rows = joined.rows;
        let node = Node::Distinct(Arc::new(DistinctNode { input: joined.node, keys }));
        let cost = joined.cost + rows * 1.5;
        Ok(Joined { node: level.note(node, mask, rows, cost), mask, rows, cost, ordered: 0 })
    }

    fn mask(&self, order: &Order) -> Mask {
        match order {
            Order::Part(part) | Order::Distinct(part) | Order::Ordered(part) | Order::Sorted(part) => {
                self.parts[*part].mask
            }
            Order::Join { left, right, .. } => self.mask(left) | self.mask(right),
        }
    }

    /// Merges two sides.
    fn merge(&mut self, level: &mut Level<'_>, left: &Order, right: &Order, rows: f64) -> Result<Joined> {
        let sides = [self.mask(left), self.mask(right)];
        let attached = match right {
            Order::Part(part) if self.parts[*part].join != JoinType::Inner => Some(*part),
            _ => None,
        };
        let join = attached.map_or(JoinType::Inner, |part| self.parts[part].join);
        let mut on = attached.map_or(Vec::new(), |part| std::mem::take(&mut self.parts[part].on));
        let mut keys = merge_join::keys(if attached.is_some() { &on } else { self.conjuncts }, sides[0], sides[1]);
        // Only the last merge gives the order of the whole.
        let last = sides[0] | sides[1] == self.parts.iter().fold(0, |mask, part| mask | part.mask);
        let wanted = if last { self.wanted.order } else { &[] };
        let served = merge_join::arrange(level, &mut keys, sides, wanted, join);
        let left = self.in_order(level, left, &keys, true)?;
        let right = match attached {
            Some(part) => {
                let order = merge_join::columns(&keys, sides[1].trailing_zeros() as usize, false);
                let order = order.as_ref().map(|order| Wanted { order, limit: None, is_whole: true });
                let right = start(level, &mut self.parts[part], &mut on, order)?;
                merge_join::sorted(level, right, &keys, false)?
            }
            None => self.in_order(level, right, &keys, false)?,
        };
        let conditions = if attached.is_some() { &mut on } else { &mut *self.conjuncts };
        let joined = merge_join::merged(level, [left, right], &keys, join, conditions, rows)?;
        for key in &keys {
            conditions[key.conjunct].used = true;
        }
        Ok(Joined { ordered: if served { wanted.len() } else { 0 }, ..joined })
    }

    /// Builds one side of a merge.
    fn in_order(
        &mut self,
        level: &mut Level<'_>,
        order: &Order,
        keys: &[merge_join::Key],
        is_left: bool,
    ) -> Result<Joined> {
        let side = match order {
            Order::Part(part) => {
                let part = &mut self.parts[*part];
                let wanted = match part.item {
                    Item::Rel(rel) => merge_join::columns(keys, rel, is_left),
                    Item::Group(_) => None,
                };
                let wanted = wanted.as_ref().map(|order| Wanted { order, limit: None, is_whole: true });
                let mut side = start(level, part, self.conjuncts, wanted)?;
                add_filter(level, &mut side, self.conjuncts)?;
                side
            }
            order => Joined { ordered: 0, ..self.build(level, order)? },
        };
        merge_join::sorted(level, side, keys, is_left)
    }

    /// Looks one part up for each row that is there.
    fn look_up(&mut self, level: &mut Level<'_>, left: Joined, part: usize, rows: f64) -> Result<Joined> {
        let part = &mut self.parts[part];
        let mask = left.mask | part.mask;
        use_by_row(level, part);
        let (inner, anew) = match part.item {
            Item::Rel(rel) => (read(level, rel, self.conjuncts, left.mask, None)?, false),
            Item::Group(_) => (start(level, part, self.conjuncts, None)?, true),
        };
        let cost = left.cost + left.rows * (inner.cost + 1.0);
        let ordered = left.ordered;
        let node = NestedLoopNode {
            outer: left.node,
            inner: inner.node,
            join: JoinType::Inner,
            conditions: Vec::new(),
            inner_slots: Vec::new(),
            anew,
        };
        let node = level.note(Node::NestedLoop(Arc::new(node)), mask, rows, cost);
        Ok(Joined { node, mask, rows, cost, ordered })
    }

    /// Joins two sides.
    fn pair(
        &mut self,
        level: &mut Level<'_>,
        left: Joined,
        right: Joined,
        method: Method,
        rows: f64,
    ) -> Result<Joined> {
        let mask = left.mask | right.mask;
        let keys = match method {
            Method::Loop => Vec::new(),
            _ => hash_keys(self.conjuncts, left.mask, right.mask),
        };
        // The side that is gone through gives its order.
        let swapped = method == Method::HashLeft && !keys.is_empty();
        let ordered = if swapped { right.ordered } else { left.ordered };
        let both = left.cost + right.cost;
        if keys.is_empty() {
            let cost = both + left.rows * right.rows * 0.5;
            let slots = slots_of(level, right.mask);
            let inner = Node::Materialize(Arc::new(MaterializeNode { input: right.node, slots }));
            let node = NestedLoopNode {
                outer: left.node,
                inner: level.note(inner, right.mask, right.rows, right.cost),
                join: JoinType::Inner,
                conditions: Vec::new(),
                inner_slots: Vec::new(),
                anew: false,
            };
            let node = level.note(Node::NestedLoop(Arc::new(node)), mask, rows, cost);
            return Ok(Joined { node, mask, rows, cost, ordered });
        }
        for (i, ..) in &keys {
            self.conjuncts[*i].used = true;
        }
        let cost = both + left.rows + right.rows + rows * 0.3;
        let keep_right = method != Method::HashLeft;
        tell_keys(level, &keys, self.conjuncts);
        let node = hash_join(level, left, right, &keys, JoinType::Inner, Vec::new(), keep_right)?;
        let node = level.note(node, mask, rows, cost);
        Ok(Joined { node, mask, rows, cost, ordered })
    }

    /// Joins the right side of a left, semi- or anti-join.
    fn attach(
        &mut self,
        level: &mut Level<'_>,
        left: Joined,
        part: usize,
        method: Method,
        rows: f64,
    ) -> Result<Joined> {
        let part = &mut self.parts[part];
        let (join, right_mask) = (part.join, part.mask);
        let mask = if join == JoinType::Left { left.mask | right_mask } else { left.mask };
        let ordered = left.ordered;
        let mut on = std::mem::take(&mut part.on);
        if method == Method::Lookup {
            use_by_row(level, part);
        }
        // What is read for each row, what that costs, and what is tested then.
        let each = match (method, part.by_row.take(), part.item) {
            (Method::Lookup, Some(ByRow { plan: RowPlan::Group(inner, left_over), cost, .. }), _) => {
                Some((inner, cost, left_over, true))
            }
            (Method::Lookup, _, Item::Rel(rel)) => {
                let inner = read(level, rel, &mut on, left.mask, None)?;
                on.retain(|conjunct| !conjunct.used);
                let cost = inner.cost;
                Some((inner, cost, std::mem::take(&mut on), false))
            }
            _ => None,
        };
        if let Some((inner, each, left_over, anew)) = each {
            let left_over: Vec<&Expr> = left_over.iter().map(|c| &c.expr).collect();
            let cost = left.cost + left.rows * (each + 1.0);
            if !left_over.is_empty() {
                level.tell("Join Filter", || explain::conditions(&left_over, level.rels));
            }
            let mut inner = inner.node;
            if matches!(join, JoinType::Semi | JoinType::Anti) && left_over.is_empty() {
                inner.one_is_enough();
            }
            let node = NestedLoopNode {
                conditions: level.compile_all(left_over)?,
                inner_slots: slots_of(level, right_mask),
                outer: left.node,
                inner,
                join,
                anew,
            };
            let node = level.note(Node::NestedLoop(Arc::new(node)), mask, rows, cost);
            return Ok(Joined { node, mask, rows, cost, ordered });
        }
        let (lateral, right) = (part.lateral, start(level, part, &mut on, None)?);
        let keys = match lateral || method == Method::Loop {
            true => Vec::new(),
            false => hash_keys(&on, left.mask, right_mask),
        };
        for (i, ..) in &keys {
            on[*i].used = true;
        }
        let left_over: Vec<&Expr> = on.iter().filter(|c| !c.used).map(|c| &c.expr).collect();
        let conditions = level.compile_all(left_over.iter().copied())?;
        let both = left.cost + right.cost;
        if keys.is_empty() {
            let cost = both + left.rows * right.rows * 0.5;
            let slots = slots_of(level, right_mask);
            // A side that looks at the rows of the other one is read anew for each of them.
            let inner = match lateral {
                true => right.node,
                false => {
                    let node = Node::Materialize(Arc::new(MaterializeNode { input: right.node, slots: slots.clone() }));
                    level.note(node, right_mask, right.rows, right.cost)
                }
            };
            if !conditions.is_empty() {
                level.tell("Join Filter", || explain::conditions(&left_over, level.rels));
            }
            let node = NestedLoopNode { outer: left.node, inner, join, conditions, inner_slots: slots, anew: lateral };
            let node = level.note(Node::NestedLoop(Arc::new(node)), mask, rows, cost);
            return Ok(Joined { node, mask, rows, cost, ordered });
        }
        let swapped = join == JoinType::Left && method == Method::HashLeft;
        let build = if swapped { left.rows } else { right.rows };
        let cost = both + left.rows + right.rows + build * 0.5 + rows * 0.3;
        tell_keys(level, &keys, &on);
        if !conditions.is_empty() {
            level.tell("Join Filter", || explain::conditions(&left_over, level.rels));
        }
        let join = if swapped { JoinType::Right } else { join };
        let node = hash_join(level, left, right, &keys, join, conditions, !swapped)?;
        let node = level.note(node, mask, rows, cost);
        Ok(Joined { node, mask, rows, cost, ordered: if swapped { 0 } else { ordered } })
    }
}

/// Has a subquery in FROM be read for each row of others.
fn use_by_row(level: &mut Level<'_>, part: &mut Part<'_>) {
    if let Item::Rel(rel) = part.item
        && let Some(ByRow { plan: RowPlan::Subquery(subplan), .. }) =
            part.by_row.take_if(|by_row| matches!(by_row.plan, RowPlan::Subquery(_)))
    {
        level.planned[rel] = Some(subplan);
    }
}

/// Shows the equalities that a hash join is by.
fn tell_keys(level: &Level<'_>, keys: &[(usize, Expr, Expr, Oid)], conjuncts: &[Conjunct]) {
    level.tell("Hash Cond", || {
        let exprs: Vec<&Expr> = keys.iter().map(|(i, ..)| &conjuncts[*i].expr).collect();
        explain::conditions(&exprs, level.rels)
    });
}

fn hash_join(
    level: &mut Level<'_>,
    left: Joined,
    right: Joined,
    keys: &[(usize, Expr, Expr, Oid)],
    join: JoinType,
    conditions: Vec<sql_ir::expr::Code>,
    keep_right: bool,
) -> Result<Node> {
    let left_keys = level.compile_all(keys.iter().map(|k| &k.1))?;
    let right_keys = level.compile_all(keys.iter().map(|k| &k.2))?;
    let key_types = keys.iter().map(|k| k.3).collect();
    let (probe, build, probe_keys, build_keys) =
        if keep_right { (left, right, left_keys, right_keys) } else { (right, left, right_keys, left_keys) };
    Ok(Node::HashJoin(Arc::new(HashJoinNode {
        build_slots: slots_of(level, build.mask),
        probe_slots: slots_of(level, probe.mask),
        probe: probe.node,
        build: build.node,
        join,
        probe_keys,
        build_keys,
        key_types,
        conditions,
    })))
}

/// A full join, as it is written.
fn full(level: &mut Level<'_>, from: &From) -> Result<Joined> {
    let From::Join { left, right, on, .. } = from else {
        return Err(Error::internal("a table is no full join"));
    };
    let mask = mask_of(from);
    let mut on = conditions_of(on.as_ref());
    let sides = [mask_of(left), mask_of(right)];
    let mut keys = merge_join::keys(&on, sides[0], sides[1]);
    let is_never = on.iter().any(never_holds);
    if !keys.is_empty() && !is_never {
        merge_join::arrange(level, &mut keys, sides, &[], JoinType::Full);
        if merges_fully(level, [left, right], &keys) {
            return full_merge(level, [left, right], &keys, &on);
        }
    }
    let left = list(level, &[&**left], &mut Vec::new(), WantedRows::default())?;
    let right = list(level, &[&**right], &mut Vec::new(), WantedRows::default())?;
    let (rows, cost) = (left.rows + right.rows, left.cost + right.cost + left.rows + right.rows * 1.5);
    if is_never {
        // Nothing equals NULL.
        return full_without_keys(level, left, right, (Datum::Null, Vec::new()), mask, rows, cost);
    }
    let keys = hash_keys(&on, left.mask, right.mask);
    for (i, ..) in &keys {
        on[*i].used = true;
    }
    let left_over: Vec<&Expr> = on.iter().filter(|c| !c.used).map(|c| &c.expr).collect();
    let conditions = level.compile_all(left_over)?;
    if keys.is_empty() {
        return full_without_keys(level, left, right, (Datum::Int4(1), conditions), mask, rows, cost);
    }
    tell_keys(level, &keys, &on);
    let node = hash_join(level, left, right, &keys, JoinType::Full, conditions, true)?;
    let node = level.note(node, mask, rows, cost);
    Ok(Joined { node, mask, rows, cost, ordered: 0 })
}

/// FULL JOIN ON without any equality. PostgreSQL refuses it unless the condition is constant; then one key serves all rows.
fn full_without_keys(
    level: &mut Level<'_>,
    left: Joined,
    right: Joined,
    (key, conditions): (Datum, Vec<sql_ir::expr::Code>),
    mask: Mask,
    rows: f64,
    cost: f64,
) -> Result<Joined> {
    if conditions.iter().any(|c| !c.is_fixed(level.cx.params as Slot)) {
        return Err(Error::unsupported(
            "FULL JOIN is only supported with merge-joinable or hash-joinable join conditions",
        ));
    }
    let one = || Expr::Const(key.clone(), sql_ir::Ty::of(oid::INT4));
    let keys = [(0, one(), one(), oid::INT4)];
    let node = hash_join(level, left, right, &keys, JoinType::Full, conditions, true)?;
    let node = level.note(node, mask, rows, cost);
    Ok(Joined { node, mask, rows, cost, ordered: 0 })
}

/// Whether a full join is merged: both sides come in order by indexes, or nothing else is switched on.
fn merges_fully(level: &Level<'_>, sides: [&From; 2], keys: &[merge_join::Key]) -> bool {
    let methods = level.cx.methods;
    if methods.is_off(PlanMethod::MergeJoin) {
        return false;
    }
    let mut alone = 0.0;
    let mut ordered = 0.0;
    for (side, is_left) in sides.into_iter().zip([true, false]) {
        let From::Rel(rel) = side else { return methods.is_off(PlanMethod::HashJoin) };
        let (rows, cost) = estimate(level, *rel, &[], 0);
        let sorted = cost + sort_cost(rows, methods);
        alone += cost + rows * if is_left { 1.0 } else { 1.5 };
        let cost = merge_join::cost_in_order(level, *rel, keys, is_left, &[]).map_or(sorted, |cost| cost.min(sorted));
        ordered += cost + rows * if is_left { 1.0 } else { 1.2 };
    }
    ordered < alone + methods.cost(PlanMethod::HashJoin)
}

/// A full join of two sides in the order of their keys.
fn full_merge(level: &mut Level<'_>, sides: [&From; 2], keys: &[merge_join::Key], on: &[Conjunct]) -> Result<Joined> {
    let mut built = Vec::with_capacity(2);
    for (side, is_left) in sides.into_iter().zip([true, false]) {
        let columns = match side {
            From::Rel(rel) => merge_join::columns(keys, *rel, is_left).map(|columns| (*rel, columns)),
            From::Join { .. } => None,
        };
        let wanted: Option<Vec<WantedColumn>> = columns.map(|(rel, columns)| {
            let column = |&(column, descending, nulls_first)| WantedColumn { rel, column, descending, nulls_first };
            columns.iter().map(column).collect()
        });
        let wanted =
            WantedRows { order: wanted.as_deref().unwrap_or_default(), is_whole: true, ..WantedRows::default() };
        let joined = list(level, &[side], &mut Vec::new(), wanted)?;
        built.push(merge_join::sorted(level, joined, keys, is_left)?);
    }
    let (Some(right), Some(left)) = (built.pop(), built.pop()) else {
        return Err(Error::internal("a join of less than two sides"));
    };
    let rows = left.rows + right.rows;
    merge_join::merged(level, [left, right], keys, JoinType::Full, on, rows)
}
