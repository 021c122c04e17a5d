//! The parts of a FROM list and what ties them, as numbers for [`super::order`].

use std::cell::RefCell;

use base::Oid;
use base::work::{self, Count};
use rustc_hash::FxHashMap;
use sql_ir::{Expr, RelKind};

use super::access::{self, Conjunct, Mask, Wanted, rels_in};
use super::implied;
use super::join::{Item, Part, estimate, hashable};
use super::level::Level;
use super::merge_join::{self, EXPRESSIONS, WantedColumn, WantedRows};
use super::methods::PlanMethods;
use super::node::JoinType;
use super::order::{Guess, JoinPart, Role, Set};
use super::{parallel, selectivity};

/// By how much reading a subquery or a join for one row of others must cost less than reading all of it. Where little is gained for one row, much is
/// lost if these are more than was expected.
const BY_ROW_GAIN: f64 = 8.0;

/// What the order of a list is decided by.
pub(super) struct Graph<'g, 'a, 'q> {
    level: &'g Level<'a>,
    parts: &'g [Part<'q>],
    conjuncts: &'g [Conjunct],
    places: Vec<JoinPart>,
    /// Parts on the two sides of equalities.
    keys: Vec<(Set, Set)>,
    /// Parts that conditions are about.
    ties: Vec<Set>,
    /// Shares of conditions about several parts that are no equalities of columns.
    shares: Vec<(Set, f64)>,
    /// Columns that are equal to each other: part, and distinct values.
    classes: Vec<Vec<(usize, f64)>>,
    /// By what a right side multiplies the rows of the left one.
    factors: Vec<f64>,
    /// The order that is wanted of the whole.
    wanted: WantedRows<'g>,
    ordered: RefCell<FxHashMap<(usize, Set), Option<f64>>>,
    lookups: RefCell<FxHashMap<(usize, Mask), Option<f64>>>,
}

impl<'g, 'a, 'q> Graph<'g, 'a, 'q> {
    pub fn new(
        level: &'g Level<'a>,
        parts: &'g [Part<'q>],
        conjuncts: &'g [Conjunct],
        wanted: WantedRows<'g>,
    ) -> Graph<'g, 'a, 'q> {
        let set_of = |mask: Mask| {
            parts.iter().enumerate().filter(|(_, p)| p.mask & mask != 0).fold(0, |set: Set, (i, _)| set | 1 << i)
        };
        let mut graph = Graph {
            level,
            parts,
            conjuncts,
            places: Vec::new(),
            keys: Vec::new(),
            ties: Vec::new(),
            shares: Vec::new(),
            classes: Vec::new(),
            factors: vec![1.0; parts.len()],
            wanted,
            ordered: RefCell::default(),
            lookups: RefCell::default(),
        };
        for (number, part) in parts.iter().enumerate() {
            let place = graph.place(part, set_of(part.needs));
            graph.places.push(place);
            graph.factors[number] = graph.factor(part, &place);
        }
        let classes = implied::classes(conjuncts);
        for conjunct in conjuncts {
            let set = set_of(conjunct.mask);
            if set.count_ones() < 2 {
                continue;
            }
            graph.ties.push(set);
            graph.add_keys(&conjunct.expr, &set_of);
            if !conjunct.derived && !is_member(&conjunct.expr, &classes) {
                graph.shares.push((set, share(level, &conjunct.expr)));
            }
        }
        for (number, part) in parts.iter().enumerate().filter(|(_, p)| p.join != JoinType::Inner && !p.is_never) {
            for conjunct in &part.on {
                let set = set_of(conjunct.mask);
                if set & !(1 << number) != 0 {
                    graph.ties.push(set | 1 << number);
                    graph.add_keys(&conjunct.expr, &set_of);
                }
            }
        }
        for class in classes {
            // What is no part of this list is there from the beginning.
            let members = class.iter().filter_map(|c| {
                let part = parts.iter().position(|part| part.mask & (1 << c.rel) != 0)?;
                Some((part, selectivity::distinct(level, c)))
            });
            graph.classes.push(members.collect());
        }
        graph
    }

    /// The parts as places of an order.
    pub fn places(&self) -> Vec<JoinPart> {
        self.places.clone()
    }

    /// The rels of two sets, the conditions that join them, and how.
    fn between(&self, left: Set, right: Set) -> ([Mask; 2], &'g [Conjunct], JoinType) {
        let only = |set: Set| (set.count_ones() == 1).then(|| &self.parts[set.trailing_zeros() as usize]);
        let mask = |set: Set| {
            let parts = self.parts.iter().enumerate().filter(|(i, _)| set & (1 << i) != 0);
            parts.fold(0, |mask, (_, part)| mask | part.mask)
        };
        let attached = [right, left].into_iter().filter_map(only).find(|part| part.join != JoinType::Inner);
        let (conditions, join) = match attached {
            Some(part) => (part.on.as_slice(), part.join),
            None => (self.conjuncts, JoinType::Inner),
        };
        ([mask(left), mask(right)], conditions, join)
    }

    fn add_keys(&mut self, expr: &Expr, set_of: &dyn Fn(Mask) -> Set) {
        if let Some((a, b, _)) = hashable(expr) {
            let (a, b) = (set_of(rels_in(a)), set_of(rels_in(b)));
            if a != 0 && b != 0 && a & b == 0 {
                self.keys.push((a, b));
            }
        }
    }

    fn place(&self, part: &Part<'_>, needs: Set) -> JoinPart {
        let conditions = if part.join == JoinType::Inner { self.conjuncts } else { &part.on };
        let mut is_shared = false;
        let (rows, cost) = match (part.item, &part.built) {
            _ if part.is_never => (1.0, 0.0),
            (Item::Rel(rel), _) => match &self.level.rels[rel].kind {
                RelKind::Table(info) if part.join == JoinType::Inner => {
                    let path = access::choose(self.level, rel, info, conditions, 0, None);
                    is_shared = self.wanted.shared.is_some() && path.is_full() && self.may_share(rel, info.desc.oid);
                    (path.rows, path.cost)
                }
                _ => estimate(self.level, rel, conditions, 0),
            },
            (Item::Group(_), Some(built)) => {
                let own = conditions.iter().filter(|c| !c.used && c.mask != 0 && c.mask & !part.mask == 0).count();
                ((built.rows * 0.3f64.powi(own.min(4) as i32)).max(1.0), built.cost)
            }
            (Item::Group(_), None) => (1000.0, 1000.0),
        };
        let (mut role, mut distinct) = (Role::Right, rows);
        match part.join {
            JoinType::Inner => role = Role::Inner,
            JoinType::Semi if !part.lateral => {
                if let Some(kinds) = self.distinct_keys(part, rows) {
                    (role, distinct) = (Role::RightOrFirst, kinds);
                }
            }
            _ => {}
        }
        let may_swap = part.join == JoinType::Left && !part.lateral;
        JoinPart { role, needs, rows, cost, distinct, lateral: part.lateral, may_swap, is_shared }
    }

    /// Whether a table is large enough for several threads, and they can test the conditions of its scan.
    fn may_share(&self, rel: usize, table: Oid) -> bool {
        let mut own = self.conjuncts.iter().filter(|c| !c.used && c.mask == 1 << rel).counted(1);
        parallel::is_shared(self.level.cx, table) && own.all(|c| !implied::has_subquery(&c.expr))
    }

    /// How many distinct keys the right side of a semi-join has, if equalities of its columns are all that ties it.
    fn distinct_keys(&self, part: &Part<'_>, rows: f64) -> Option<f64> {
        let mut keys = Vec::new();
        for conjunct in part.on.iter().filter(|c| !c.used && (c.mask & !part.mask != 0 || c.mask == 0)) {
            let (a, b, ty) = hashable(&conjunct.expr)?;
            let inner = |expr: &Expr| rels_in(expr) & part.mask != 0;
            let key = match (inner(a), inner(b)) {
                (true, false) => a,
                (false, true) => b,
                _ => return None,
            };
            // Keys that are told apart as they are compared.
            if !matches!(key, Expr::Column(c) if c.level == 0 && c.ty.oid == ty) {
                return None;
            }
            keys.push(key.clone());
        }
        (!keys.is_empty()).then(|| selectivity::groups(self.level, &keys, rows))
    }

    fn factor(&self, part: &Part<'_>, place: &JoinPart) -> f64 {
        match part.join {
            JoinType::Inner | JoinType::Right | JoinType::Full => 1.0,
            JoinType::Semi => selectivity::of_semi_join(self.level, &part.on, part.mask, place.rows),
            JoinType::Anti => {
                (1.0 - selectivity::of_semi_join(self.level, &part.on, part.mask, place.rows)).clamp(0.05, 0.95)
            }
            JoinType::Left => {
                let ties = part.on.iter().filter(|c| !c.used && c.mask & !part.mask != 0);
                ties.fold(place.rows, |rows, c| rows * share(self.level, &c.expr)).max(1.0)
            }
        }
    }
}

/// The first of the wanted columns, as far as they are columns of one rel or equal to such: an order of that.
pub(super) fn columns_of(rel: usize, wanted: &[WantedColumn], conjuncts: &[Conjunct]) -> Vec<(usize, bool, bool)> {
    let mut classes = None;
    let mut column = |c: &WantedColumn| {
        if c.rel == rel {
            return Some(c.column);
        }
        let classes = classes.get_or_insert_with(|| implied::classes(conjuncts));
        let class = classes.iter().find(|class| class.iter().any(|m| (m.rel, m.column) == (c.rel, c.column)))?;
        class.iter().find(|m| m.rel == rel).map(|m| m.column)
    };
    wanted.iter().map_while(|c| Some((column(c)?, c.descending, c.nulls_first))).collect()
}

/// The first of the wanted keys, as far as a rel can be sorted by them, as expressions.
pub(super) fn sorted_by(
    level: &Level<'_>,
    rel: usize,
    wanted: WantedRows<'_>,
    conjuncts: &[Conjunct],
) -> Vec<(Expr, bool, bool)> {
    let columns = columns_of(rel, wanted.order, conjuncts).into_iter();
    columns
        .map_while(|(column, descending, nulls_first)| {
            let expr = match (level.rels[rel].columns.get(column), column.checked_sub(EXPRESSIONS)) {
                (Some(of), _) => Expr::Column(sql_ir::Column { level: 0, rel, column, ty: of.ty }),
                (None, Some(number)) => wanted.exprs[number].clone(),
                // An index's expression.
                (None, None) => return None,
            };
            Some((expr, descending, nulls_first))
        })
        .collect()
}

/// Whether a condition is an equality of two columns of one class.
fn is_member(expr: &Expr, classes: &[Vec<sql_ir::Column>]) -> bool {
    let Some((a, b, _)) = hashable(expr) else { return false };
    let (Some(a), Some(b)) = (selectivity::column_of(a), selectivity::column_of(b)) else { return false };
    classes.iter().any(|class| {
        let has = |column: &sql_ir::Column| class.iter().any(|c| (c.rel, c.column) == (column.rel, column.column));
        has(a) && has(b)
    })
}

/// The share of pairs of rows that a condition about several rels leaves.
fn share(level: &Level<'_>, expr: &Expr) -> f64 {
    match hashable(expr) {
        Some((a, b, _)) => selectivity::of_join(level, a, b),
        None => 1.0 / 3.0,
    }
}

impl Guess for Graph<'_, '_, '_> {
    fn rows(&self, set: Set) -> f64 {
        let mut rows = 1.0;
        for (number, place) in self.places.iter().enumerate().filter(|(i, _)| set & (1 << i) != 0) {
            rows *= if place.role == Role::Inner { place.rows } else { self.factors[number] };
        }
        for (parts, share) in &self.shares {
            if parts & !set == 0 {
                rows *= share;
            }
        }
        for class in &self.classes {
            work::beat(16 * class.len());
            // All but the column with the fewest values narrow the rows down.
            let mut kinds: Vec<(usize, f64)> =
                class.iter().filter(|(part, _)| set & (1 << part) != 0).copied().collect();
            kinds.sort_by(|a, b| a.0.cmp(&b.0).then(b.1.total_cmp(&a.1)));
            kinds.dedup_by_key(|(part, _)| *part);
            kinds.sort_by(|a, b| a.1.total_cmp(&b.1));
            rows = kinds.iter().skip(1).fold(rows, |rows, (_, kinds)| rows / kinds.max(1.0));
        }
        rows.max(1.0)
    }

    fn has_keys(&self, left: Set, right: Set) -> bool {
        let inside = |a: Set, b: Set| a & !left == 0 && b & !right == 0;
        self.keys.iter().counted(1).any(|&(a, b)| inside(a, b) || inside(b, a))
    }

    fn is_tied(&self, left: Set, right: Set) -> bool {
        self.ties.iter().counted(1).any(|tie| tie & left != 0 && tie & right != 0)
    }

    fn methods(&self) -> PlanMethods {
        self.level.cx.methods
    }

    fn in_order(&self, number: usize, other: Set) -> Option<f64> {
        let part = &self.parts[number];
        let Item::Rel(rel) = part.item else { return None };
        let RelKind::Table(info) = &self.level.rels[rel].kind else { return None };
        let own: Set = 1 << number;
        let tied = |&(a, b): &(Set, Set)| {
            if a == own {
                b
            } else if b == own {
                a
            } else {
                0
            }
        };
        let other = other & self.keys.iter().counted(1).map(tied).fold(0, |all, set| all | set);
        if other == 0 || info.indexes.is_empty() {
            return None;
        }
        if let Some(known) = self.ordered.borrow().get(&(number, other)) {
            return *known;
        }
        let (sides, conditions, join) = self.between(own, other);
        let mut keys = merge_join::keys(conditions, sides[0], sides[1]);
        merge_join::arrange(self.level, &mut keys, sides, self.wanted.order, join);
        let own_conditions = if part.join == JoinType::Inner { self.conjuncts } else { &part.on };
        let cost = match keys.is_empty() {
            true => None,
            false => merge_join::cost_in_order(self.level, rel, &keys, true, own_conditions),
        };
        self.ordered.borrow_mut().insert((number, other), cost);
        cost
    }

    fn serves(&self, left: Set, right: Set) -> bool {
        let (sides, conditions, join) = self.between(left, right);
        let mut keys = merge_join::keys(conditions, sides[0], sides[1]);
        !keys.is_empty() && merge_join::serve(&mut keys, self.wanted.order, join)
    }

    fn first_in_order(&self, number: usize, limit: Option<f64>) -> Option<(f64, usize)> {
        let Item::Rel(rel) = self.parts[number].item else { return None };
        let RelKind::Table(info) = &self.level.rels[rel].kind else { return None };
        let columns = columns_of(rel, self.wanted.order, self.conjuncts);
        if columns.is_empty() {
            return None;
        }
        let wanted = Wanted { order: &columns, limit, is_whole: self.wanted.is_whole };
        let path = access::choose(self.level, rel, info, self.conjuncts, 0, Some(wanted));
        (path.ordered > 0).then_some((path.whole, path.ordered))
    }

    fn sort_keys(&self, number: usize) -> usize {
        let Item::Rel(rel) = self.parts[number].item else { return 0 };
        sorted_by(self.level, rel, self.wanted, self.conjuncts).len()
    }

    fn lookup_by_any(&self, left: Set, number: usize) -> Option<f64> {
        let part = &self.parts[number];
        let Item::Rel(rel) = part.item else { return None };
        let is_table = matches!(self.level.rels[rel].kind, RelKind::Table(_));
        if is_table && part.by_row.is_none() { self.lookup(left, number) } else { None }
    }

    fn groups(&self, ordered: usize, rows: f64) -> f64 {
        let columns = self.wanted.order.iter().take(ordered);
        columns
            .fold(1.0, |groups, c| {
                groups * selectivity::groups_by_columns(self.level, c.rel, &[(c.column, false, false)], rows)
            })
            .min(rows)
    }

    fn lookup(&self, left: Set, number: usize) -> Option<f64> {
        let part = &self.parts[number];
        if part.is_never {
            return None;
        }
        if let Some(by_row) = &part.by_row {
            let there = self.parts.iter().enumerate().filter(|(i, _)| left & (1 << i) != 0);
            let there = there.fold(self.level.around, |mask, (_, part)| mask | part.mask);
            let helps = by_row.cost * BY_ROW_GAIN <= self.places[number].cost;
            return (by_row.needs & !there == 0 && helps).then_some(by_row.cost);
        }
        let Item::Rel(rel) = part.item else { return None };
        if !matches!(self.level.rels[rel].kind, RelKind::Table(_) | RelKind::System(_)) {
            return None;
        }
        // What came first with distinct keys is tied by its own conditions.
        let first = (left.count_ones() == 1).then(|| &self.parts[left.trailing_zeros() as usize]);
        let first = first.filter(|first| first.join != JoinType::Inner);
        let inner = part.join == JoinType::Inner;
        let conditions = if inner { self.conjuncts } else { &part.on };
        let available = self.parts.iter().enumerate().filter(|(i, _)| left & (1 << i) != 0);
        let available = available.fold(0, |mask, (_, part)| mask | part.mask);
        let about = conditions.iter().chain(first.iter().flat_map(|f| &f.on)).counted(2);
        let about = about.filter(|c| c.mask & (1 << rel) != 0);
        let available = available & about.fold(0, |mask, c| mask | c.mask);
        let key = (number, available);
        if first.is_none()
            && let Some(known) = self.lookups.borrow().get(&key)
        {
            return *known;
        }
        let mut all;
        let mut conditions = conditions;
        if let Some(first) = first {
            all = self.conjuncts.to_vec();
            all.extend(first.on.iter().filter(|c| c.mask & first.mask != c.mask).cloned());
            conditions = &all;
        }
        let alone = self.places[number].cost;
        let (_, cost) = estimate(self.level, rel, conditions, available);
        let found = (cost < alone && available != 0).then_some(cost);
        if first.is_none() {
            self.lookups.borrow_mut().insert(key, found);
        }
        found
    }
}
