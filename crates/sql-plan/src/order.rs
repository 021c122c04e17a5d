//! The order of joins: which parts of a FROM list are joined with which, and how.
//!
//! All orders of up to [`EXHAUSTIVE_MAX`] parts are compared by dynamic programming over sets of parts; with more parts,
//! always what is cheapest next. Costs are in rows of a full scan. Of each set two ways are kept: the one that costs least, and, if an
//! order is wanted or not all rows are, the one among those that have the order whose first rows cost least. Where several threads may share the
//! work, a third is kept: the one that costs least if they read the rows of the table that the others are joined to.
//! Invariant: what a part needs is there before it: the rels that its ON or its LATERAL names.

use rustc_hash::FxHashMap;

use super::methods::{EARLY, GROUPS_MIN, PlanMethod, PlanMethods, sort_cost};
use super::parallel::OF_ROW;

/// Parts of which all orders are looked at.
const EXHAUSTIVE_MAX: usize = 10;
/// Parts of which also those orders are looked at that join two joins.
const BUSHY_MAX: usize = 8;

/// A set of parts.
pub(super) type Set = u128;

/// How a part takes part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// As one side of inner joins.
    Inner,
    /// As the right side of a left, semi- or anti-join.
    Right,
    /// As the right side of a semi-join, or first of all with its keys made distinct.
    RightOrFirst,
}

/// A part, as far as its place in the order is concerned.
#[derive(Clone, Copy, Debug)]
pub(super) struct JoinPart {
    pub role: Role,
    /// Parts that must be there first.
    pub needs: Set,
    /// Rows read when it is read by itself, and what that costs.
    pub rows: f64,
    pub cost: f64,
    /// Rows with distinct keys, if it may come first.
    pub distinct: f64,
    /// It is read anew for each row of what it needs.
    pub lateral: bool,
    /// It is the right side of a left join: the left side may be the one that is kept.
    pub may_swap: bool,
    /// Several threads may read its rows and join others to them.
    pub is_shared: bool,
}

/// What the order is decided by.
pub(super) trait Guess {
    /// Rows of the join of a set of parts.
    fn rows(&self, set: Set) -> f64;
    /// Whether an equality by which rows can be hashed ties two sets.
    fn has_keys(&self, left: Set, right: Set) -> bool;
    /// Whether any condition ties two sets.
    fn is_tied(&self, left: Set, right: Set) -> bool;
    /// Cost of reading one part by an index for one row of `left`; `None` if no index helps.
    fn lookup(&self, left: Set, part: usize) -> Option<f64>;
    /// Cost of reading one part in the order of the keys that tie it to `other`; `None` if no index has that order.
    fn in_order(&self, _part: usize, _other: Set) -> Option<f64> {
        None
    }
    /// What reading a part in the order that is wanted of the whole costs, as far as the part has it, and how many of the keys, the first
    /// ones, that is; `None` if no index has it. `limit`: so many rows are read, expected.
    fn first_in_order(&self, _part: usize, _limit: Option<f64>) -> Option<(f64, usize)> {
        None
    }
    /// How many keys of the order that is wanted of the whole, the first ones, are columns of a part, so that it can be sorted by them before it
    /// is joined.
    fn sort_keys(&self, _part: usize) -> usize {
        0
    }
    /// How many groups of rows are equal in the first keys of the wanted order.
    fn groups(&self, _ordered: usize, rows: f64) -> f64 {
        rows
    }
    /// Whether merging these two gives the order that is wanted of the whole.
    fn serves(&self, _left: Set, _right: Set) -> bool {
        false
    }
    /// As [`Guess::lookup`], if each of several threads can do it by itself.
    fn lookup_by_any(&self, _left: Set, _part: usize) -> Option<f64> {
        None
    }
    /// What is switched off.
    fn methods(&self) -> PlanMethods {
        PlanMethods::default()
    }
}

/// How two sides are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Method {
    /// For each row of the left side, the right one by an index, or anew because it looks at the left one.
    Lookup,
    /// The right side is kept by its keys.
    Hash,
    /// The left side is kept by its keys.
    HashLeft,
    /// Both sides are read in the order of their keys.
    Merge,
    /// The right side is kept and gone through for each row of the left one.
    Loop,
}

/// An order.
#[derive(Clone, Debug)]
pub(super) enum Order {
    Part(usize),
    /// A part that is read in the order that is wanted of the whole.
    Ordered(usize),
    /// A part that is sorted before others are joined to it.
    Sorted(usize),
    /// A part that comes first with its keys made distinct.
    Distinct(usize),
    Join {
        left: Box<Order>,
        right: Box<Order>,
        method: Method,
        rows: f64,
    },
}

/// What is wanted of the whole.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Goal {
    /// Keys of the order that is wanted; 0 if none is.
    pub keys: usize,
    /// The order of the first keys alone is of no use.
    pub is_whole: bool,
    /// So many rows are read, expected, if they come in the order; `None` is all.
    pub limit: Option<f64>,
    /// Several threads may share the work, and give so many groups at most; `None` if they may not.
    pub shared: Option<f64>,
}

/// By what the work of one thread is divided where others share it: as PostgreSQL counts on one worker, which is what there is where many
/// statements run.
const SPEEDUP: f64 = 1.7;

/// The order that was chosen.
#[derive(Clone, Debug)]
pub(super) struct Chosen {
    pub joins: Order,
    /// The rows come in the order that is wanted, or in that of its first keys.
    pub is_served: bool,
    /// The share of the rows that is read, expected.
    pub share: f64,
}

#[derive(Clone, Copy)]
struct Best {
    /// To all rows, and to the first one.
    cost: f64,
    start: f64,
    rows: f64,
    how: How,
    /// Keys of the wanted order, the first ones, that the rows are in the order of.
    ordered: usize,
}

impl Best {
    /// What a share of the rows costs.
    fn part(&self, share: f64) -> f64 {
        self.start + (self.cost - self.start).max(0.0) * share
    }
}

#[derive(Clone, Copy)]
enum How {
    Part(usize),
    Ordered(usize),
    Sorted(usize),
    /// Left, right, method, and which side is of the same kind: of [`Search::first`] or [`Search::shared`].
    Join(Set, Set, Method, Side),
}

/// The side of a join that gives the order, or whose rows are shared.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Neither,
    Left,
    Right,
}

/// The cheapest order found.
pub(super) fn choose(places: &[JoinPart], guess: &dyn Guess, goal: Goal) -> Option<Chosen> {
    let all: Set = (0..places.len()).fold(0, |set, part| set | 1 << part);
    let rows = guess.rows(all);
    let share = goal.limit.map_or(1.0, |limit| (limit / rows.max(1.0)).min(1.0));
    let mut search = Search {
        places,
        guess,
        goal,
        share,
        methods: guess.methods(),
        best: FxHashMap::default(),
        first: FxHashMap::default(),
        shared: FxHashMap::default(),
    };
    search.begin();
    if places.len() > 1 {
        let few = places.len() <= EXHAUSTIVE_MAX;
        let found = few && (search.exhaustive(all, true) || search.exhaustive(all, false));
        if !found {
            search.greedy(all);
        }
    }
    search.chosen(all)
}

struct Search<'a> {
    places: &'a [JoinPart],
    guess: &'a dyn Guess,
    goal: Goal,
    /// The share of the rows of the whole that is read, and so of those of each set.
    share: f64,
    methods: PlanMethods,
    /// What costs least.
    best: FxHashMap<Set, Best>,
    /// What has the wanted order, or the first keys of it, and costs least up to the share. Without a wanted order, any.
    first: FxHashMap<Set, Best>,
    /// What costs least if several threads share it.
    shared: FxHashMap<Set, Best>,
}

fn members(set: Set) -> impl Iterator<Item = usize> {
    (0..Set::BITS as usize).filter(move |part| set & (1 << part) != 0)
}

impl Search<'_> {
    /// Whether an order is wanted.
    fn is_ordered(&self) -> bool {
        self.goal.keys > 0
    }

    /// The parts that may come first.
    fn begin(&mut self) {
        for (part, place) in self.places.iter().enumerate() {
            let first = match place.role {
                Role::Inner if place.needs == 0 => Some((place.rows, place.cost)),
                Role::RightOrFirst => Some((place.distinct, place.cost + place.rows * 1.5)),
                _ => None,
            };
            if let Some((rows, cost)) = first {
                let best = Best { cost, start: 0.0, rows, how: How::Part(part), ordered: 0 };
                self.best.insert(1 << part, best);
                if !self.is_ordered() && self.goal.limit.is_some() && place.role == Role::Inner {
                    self.first.insert(1 << part, best);
                }
            }
        }
        if self.goal.shared.is_some() {
            let is_shared = |(_, place): &(usize, &JoinPart)| place.is_shared && place.needs == 0;
            for (part, place) in self.places.iter().enumerate().filter(is_shared) {
                let (cost, how) = (place.cost / SPEEDUP, How::Part(part));
                self.shared.insert(1 << part, Best { cost, start: 0.0, rows: place.rows, how, ordered: 0 });
            }
        }
        if !self.is_ordered() {
            return;
        }
        let may_sort = self.goal.limit.is_some() && self.places.len() > 1;
        for (part, place) in self.places.iter().enumerate().filter(|(_, p)| p.role == Role::Inner && p.needs == 0) {
            let (rows, limit) = (place.rows, self.goal.limit.map(|_| place.rows * self.share));
            let read = self.guess.first_in_order(part, limit);
            let read = read.map(|(cost, ordered)| Best { cost, start: 0.0, rows, how: How::Ordered(part), ordered });
            let ordered = if may_sort { self.guess.sort_keys(part) } else { 0 };
            let sorted = (ordered > 0).then(|| {
                let cost = place.cost + sort_cost(rows, self.methods);
                Best { cost, start: cost, rows, how: How::Sorted(part), ordered }
            });
            let least = read.into_iter().chain(sorted).min_by(|a, b| self.to_share(a).total_cmp(&self.to_share(b)));
            if let Some(best) = least {
                self.first.insert(1 << part, best);
            }
        }
    }

    /// What is cheapest in the end.
    fn chosen(&self, all: Set) -> Option<Chosen> {
        let plain = self.best.get(&all).copied();
        let cost_of_plain = plain.map_or(f64::INFINITY, |best| match self.is_ordered() {
            true => best.cost + sort_cost(best.rows, self.methods),
            false => best.cost,
        });
        let mut candidates: Vec<(f64, Best)> = Vec::new();
        if let Some(best) = self.is_ordered().then(|| self.served(all)).flatten() {
            candidates.push((best.cost, best));
        }
        if let Some(best) = self.first.get(&all) {
            candidates.push((self.to_share(best) + EARLY, *best));
        }
        let early = candidates.into_iter().min_by(|a, b| a.0.total_cmp(&b.0)).filter(|(cost, _)| *cost < cost_of_plain);
        let alone = early.map_or(cost_of_plain, |(cost, _)| cost);
        let (best, is_served, kind) = match (early, self.shared_by_all(all).filter(|best| best.cost < alone)) {
            (_, Some(best)) => (Some(best), false, &self.shared),
            (Some((_, best)), None) => (Some(best), self.is_ordered(), &self.first),
            (None, None) => (plain, false, &self.best),
        };
        let joins = match best {
            Some(best) => self.order_by(&best, kind)?,
            None => self.order(all)?,
        };
        Some(Chosen { joins, is_served, share: self.share })
    }

    /// What it costs up to the share that is read, the sorting of rows that are equal in the first keys of the wanted order included.
    fn to_share(&self, best: &Best) -> f64 {
        if !self.is_ordered() || best.ordered == self.goal.keys {
            return best.part(self.share);
        }
        let groups = self.guess.groups(best.ordered, best.rows);
        // Without LIMIT sorting all at once is no more work.
        if self.goal.limit.is_none() || self.goal.is_whole || groups < GROUPS_MIN {
            return f64::INFINITY;
        }
        let group = best.rows / groups.max(1.0);
        let cost = best.part((self.share + 1.0 / groups.max(1.0)).min(1.0));
        let read = (best.rows * self.share + group).min(best.rows);
        let off = self.methods.cost(PlanMethod::IncrementalSort);
        cost + sort_cost(group, PlanMethods::default()) * (read / group.max(1.0)) + off
    }

    /// What costs least if several threads share it, with what starting them costs, if that pays.
    fn shared_by_all(&self, all: Set) -> Option<Best> {
        let best = self.shared.get(&all)?;
        let results = self.goal.shared?.min(best.rows);
        let begun = self.methods.shared_rows_min() as f64 / 20.0;
        (results <= OF_ROW * best.cost).then_some(Best { cost: best.cost + begun, ..*best })
    }

    /// Looks at all orders; with `tied` only those that never join what no condition ties together.
    fn exhaustive(&mut self, all: Set, tied: bool) -> bool {
        let bushy = self.places.len() <= BUSHY_MAX;
        for set in 1..=all {
            if set & all != set || set.count_ones() < 2 {
                continue;
            }
            // Each split of the set, from both sides.
            let mut right = (set - 1) & set;
            while right != 0 {
                base::work::beat(32);
                let left = set ^ right;
                if bushy || right.count_ones() == 1 {
                    self.try_join(left, right, tied);
                }
                right = (right - 1) & set;
            }
        }
        self.best.contains_key(&all)
    }

    /// The cheapest merge at the top that gives the wanted order.
    fn served(&self, all: Set) -> Option<Best> {
        let mut best: Option<Best> = None;
        let mut right = (all - 1) & all;
        while right != 0 {
            let left = all ^ right;
            if (self.places.len() <= BUSHY_MAX || right.count_ones() == 1)
                && self.guess.serves(left, right)
                && let Some(rows) = self.may_join(left, right, true)
                && let Some(cost) = self.merge_cost(left, right, rows)
            {
                // The first rows come before the others are read.
                let cost = if self.goal.limit.is_some() { EARLY + cost * 0.2 } else { cost };
                if best.is_none_or(|best| cost < best.cost) {
                    let how = How::Join(left, right, Method::Merge, Side::Neither);
                    best = Some(Best { cost, start: 0.0, rows, how, ordered: self.goal.keys });
                }
            }
            right = (right - 1) & all;
        }
        best
    }

    /// Adds one part after the other, always the one that costs least.
    fn greedy(&mut self, all: Set) {
        let first = members(all)
            .filter(|part| self.places[*part].role == Role::Inner && self.best.contains_key(&(1 << part)))
            .min_by(|a, b| {
                let key = |part: usize| self.places[part].rows * 2.0 + self.places[part].cost;
                key(*a).total_cmp(&key(*b))
            });
        let Some(first) = first else { return };
        let mut set: Set = 1 << first;
        while set != all {
            let next = members(all & !set)
                .filter_map(|part| {
                    let joined = self.join(set, 1 << part, true).or_else(|| {
                        let best = self.join(set, 1 << part, false)?;
                        // What nothing ties comes last.
                        Some(Best { cost: best.cost * 1e3, ..best })
                    })?;
                    Some((part, joined))
                })
                .min_by(|a, b| (a.1.cost + a.1.rows * 2.0).total_cmp(&(b.1.cost + b.1.rows * 2.0)));
            let Some((part, best)) = next else { return };
            set |= 1 << part;
            self.best.insert(set, best);
        }
    }

    fn try_join(&mut self, left: Set, right: Set, tied: bool) {
        let Some(found) = self.join(left, right, tied) else { return };
        let set = left | right;
        if self.best.get(&set).is_none_or(|best| found.cost < best.cost) {
            self.best.insert(set, found);
        }
        if !self.first.is_empty()
            && let Some(found) = self.first_join(left, right, found.rows)
            && self.first.get(&set).is_none_or(|best| self.to_share(&found) < self.to_share(best))
        {
            self.first.insert(set, found);
        }
        if !self.shared.is_empty()
            && let Some(found) = self.shared_join(left, right, found.rows)
            && self.shared.get(&set).is_none_or(|best| found.cost < best.cost)
        {
            self.shared.insert(set, found);
        }
    }

    /// The cheapest way to join two sets if several threads share the rows of one of them.
    fn shared_join(&self, left: Set, right: Set, rows: f64) -> Option<Best> {
        let single = (right.count_ones() == 1).then(|| right.trailing_zeros() as usize);
        let place = single.map(|part| &self.places[part]);
        if place.is_some_and(|place| place.lateral) {
            return None;
        }
        let mut best: Option<Best> = None;
        // What one thread does, and what all share.
        let mut offer = |one: f64, all: f64, method: Method, side: Side| {
            let cost = one + (all + rows * 0.2) / SPEEDUP;
            if best.is_none_or(|best| cost < best.cost) {
                best = Some(Best { cost, start: 0.0, rows, how: How::Join(left, right, method, side), ordered: 0 });
            }
        };
        let hashing = self.methods.cost(PlanMethod::HashJoin);
        let has_keys = self.guess.has_keys(left, right);
        if let Some(before) = self.shared.get(&left) {
            if let Some(each) = single.and_then(|part| self.guess.lookup_by_any(left, part)) {
                let looping = self.methods.cost(PlanMethod::NestedLoop);
                offer(before.cost + looping, before.rows * (each + 1.0), Method::Lookup, Side::Left);
            }
            if has_keys && let Some((kept, cost)) = self.alone(left, right) {
                let one = before.cost + cost + kept * 1.5 + hashing;
                offer(one, before.rows + rows * 0.3, Method::Hash, Side::Left);
            }
        }
        // The left side is kept, and the right one gone through.
        if has_keys
            && place.is_none_or(|place| place.role == Role::Inner)
            && let Some(after) = self.shared.get(&right)
            && let Some(before) = self.best.get(&left)
            && self.starting(left).is_none()
        {
            let one = after.cost + before.cost + before.rows * 1.5 + hashing;
            offer(one, after.rows + rows * 0.3, Method::HashLeft, Side::Right);
        }
        best
    }

    /// The cheapest way to the first rows of the join of two sets, in the order of one side of it.
    fn first_join(&self, left: Set, right: Set, rows: f64) -> Option<Best> {
        let single = (right.count_ones() == 1).then(|| right.trailing_zeros() as usize);
        let place = single.map(|part| &self.places[part]);
        let mut best: Option<Best> = None;
        let mut offer = |start: f64, cost: f64, method: Method, side: Side, ordered: usize| {
            let how = How::Join(left, right, method, side);
            let found = Best { cost: cost + rows * 0.2, start, rows, how, ordered };
            if best.is_none_or(|best| self.to_share(&found) < self.to_share(&best)) {
                best = Some(found);
            }
        };
        let looping = self.methods.cost(PlanMethod::NestedLoop);
        let hashing = self.methods.cost(PlanMethod::HashJoin);
        let has_keys = self.guess.has_keys(left, right);
        if let Some(before) = self.first.get(&left) {
            if let (Some(part), Some(place)) = (single, place) {
                let each = if place.lateral { Some(place.cost) } else { self.guess.lookup(left, part) };
                if let Some(each) = each {
                    let cost = before.cost + before.rows * (each + 1.0) + looping;
                    offer(before.start + looping, cost, Method::Lookup, Side::Left, before.ordered);
                }
            }
            let alone = self.alone(left, right).filter(|_| !place.is_some_and(|place| place.lateral));
            if let Some((right_rows, right_cost)) = alone {
                if has_keys {
                    let start = before.start + right_cost + right_rows * 1.5 + hashing;
                    offer(
                        start,
                        start + before.cost - before.start + before.rows + rows * 0.3,
                        Method::Hash,
                        Side::Left,
                        before.ordered,
                    );
                } else {
                    let start = before.start + right_cost + right_rows + looping;
                    let cost = start + before.cost - before.start + before.rows * right_rows * 0.5 + rows * 0.3;
                    offer(start, cost, Method::Loop, Side::Left, before.ordered);
                }
            }
        }
        // The left side is kept, and the right one gone through.
        let is_inner = place.is_none_or(|place| place.role == Role::Inner && !place.lateral);
        if has_keys
            && is_inner
            && let Some(after) = self.first.get(&right)
            && let Some(before) = self.best.get(&left)
            && self.starting(left).is_none()
        {
            let start = after.start + before.cost + before.rows * 1.5 + hashing;
            let cost = start + after.cost - after.start + after.rows + rows * 0.3;
            offer(start, cost, Method::HashLeft, Side::Right, after.ordered);
        }
        best
    }

    /// A part that comes first with its keys made distinct, if the set is one.
    fn starting(&self, set: Set) -> Option<&JoinPart> {
        let only = (set.count_ones() == 1).then(|| &self.places[set.trailing_zeros() as usize]);
        only.filter(|place| place.role == Role::RightOrFirst)
    }

    /// Rows of the join of two sets, if they may be joined.
    fn may_join(&self, left: Set, right: Set, tied: bool) -> Option<f64> {
        self.best.get(&left)?;
        let place = (right.count_ones() == 1).then(|| &self.places[right.trailing_zeros() as usize]);
        let needs = place.map_or(0, |place| place.needs);
        if needs & !left != 0 {
            return None;
        }
        // A part that came first with distinct keys must meet what it needs in its first join.
        let starts = self.starting(left);
        if starts.is_some_and(|place| place.needs & !right != 0) {
            return None;
        }
        if starts.is_some() && place.is_some_and(|place| place.role != Role::Inner) {
            return None;
        }
        if tied && !self.guess.is_tied(left, right) && needs == 0 {
            return None;
        }
        Some(self.guess.rows(left | right))
    }

    /// Rows of a side by itself, and what they cost.
    fn alone(&self, left: Set, right: Set) -> Option<(f64, f64)> {
        let place = (right.count_ones() == 1).then(|| &self.places[right.trailing_zeros() as usize]);
        match place {
            Some(place) if place.lateral && place.needs & left != 0 => None,
            Some(place) if place.role != Role::Inner => Some((place.rows, place.cost)),
            _ => self.best.get(&right).map(|best| (best.rows, best.cost)),
        }
    }

    /// What merging two sets costs that may be joined; `None` if no equality ties them.
    fn merge_cost(&self, left: Set, right: Set, rows: f64) -> Option<f64> {
        let (before, after) = (self.best.get(&left)?, self.alone(left, right)?);
        if !self.guess.has_keys(left, right) || self.starting(left).is_some() {
            return None;
        }
        let side = |set: Set, other: Set, rows: f64, cost: f64| {
            let sorted = cost + sort_cost(rows, self.methods);
            let only = (set.count_ones() == 1).then(|| set.trailing_zeros() as usize);
            only.and_then(|part| self.guess.in_order(part, other)).map_or(sorted, |cost| cost.min(sorted))
        };
        let both = side(left, right, before.rows, before.cost) + side(right, left, after.0, after.1);
        let merging = before.rows + after.0 * 1.2 + rows * 0.3;
        Some(both + merging + self.methods.cost(PlanMethod::MergeJoin))
    }

    /// The cheapest way to join two sets, if they may be joined.
    fn join(&self, left: Set, right: Set, tied: bool) -> Option<Best> {
        base::work::beat(32);
        let rows = self.may_join(left, right, tied)?;
        let before = self.best.get(&left)?;
        let single = (right.count_ones() == 1).then(|| right.trailing_zeros() as usize);
        let place = single.map(|part| &self.places[part]);
        let is_right = place.is_some_and(|place| place.role != Role::Inner);
        let mut best: Option<(f64, Method)> = None;
        let mut offer = |cost: f64, method: Method| {
            if best.is_none_or(|(least, _)| cost < least) {
                best = Some((cost, method));
            }
        };
        let looping = self.methods.cost(PlanMethod::NestedLoop);
        if let (Some(part), Some(place)) = (single, place) {
            if place.lateral {
                offer(before.cost + before.rows * (place.cost + 1.0) + looping, Method::Lookup);
            } else if let Some(each) = self.guess.lookup(left, part) {
                offer(before.cost + before.rows * (each + 1.0) + looping, Method::Lookup);
            }
        }
        let alone = self.alone(left, right).filter(|_| !place.is_some_and(|place| place.lateral));
        if let Some((right_rows, right_cost)) = alone {
            let both = before.cost + right_cost;
            let has_keys = self.guess.has_keys(left, right);
            if has_keys {
                let hashing = self.methods.cost(PlanMethod::HashJoin);
                offer(both + right_rows * 1.5 + before.rows + rows * 0.3 + hashing, Method::Hash);
                if !is_right || place.is_some_and(|place| place.may_swap) {
                    offer(both + before.rows * 1.5 + right_rows + rows * 0.3 + hashing, Method::HashLeft);
                }
                if let Some(cost) = self.merge_cost(left, right, rows) {
                    offer(cost, Method::Merge);
                }
            }
            if !has_keys || self.methods.is_off(PlanMethod::HashJoin) {
                offer(both + right_rows + before.rows * right_rows * 0.5 + rows * 0.3 + looping, Method::Loop);
            }
        }
        let (cost, method) = best?;
        let how = How::Join(left, right, method, Side::Neither);
        Some(Best { cost: cost + rows * 0.2, start: cost, rows, how, ordered: 0 })
    }

    fn order(&self, set: Set) -> Option<Order> {
        match self.best.get(&set) {
            Some(best) => self.order_by(best, &self.best),
            None => (set.count_ones() == 1).then(|| Order::Part(set.trailing_zeros() as usize)),
        }
    }

    /// The order of one of those of a kind.
    fn order_by(&self, best: &Best, kind: &FxHashMap<Set, Best>) -> Option<Order> {
        Some(match best.how {
            How::Part(part) if self.places[part].role == Role::RightOrFirst => Order::Distinct(part),
            How::Part(part) => Order::Part(part),
            How::Ordered(part) => Order::Ordered(part),
            How::Sorted(part) => Order::Sorted(part),
            How::Join(left, right, method, side) => {
                let same = |set: Set| kind.get(&set).and_then(|best| self.order_by(best, kind));
                let right = match right.count_ones() {
                    _ if side == Side::Right => same(right)?,
                    1 => Order::Part(right.trailing_zeros() as usize),
                    _ => self.order(right)?,
                };
                let left = if side == Side::Left { same(left)? } else { self.order(left)? };
                Order::Join { left: Box::new(left), right: Box::new(right), method, rows: best.rows }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parts of these sizes, tied in a row: each to the next.
    struct Chain(Vec<f64>);

    impl Guess for Chain {
        fn rows(&self, set: Set) -> f64 {
            members(set).map(|part| self.0[part]).fold(1.0, f64::max)
        }
        fn has_keys(&self, left: Set, right: Set) -> bool {
            self.is_tied(left, right)
        }
        fn is_tied(&self, left: Set, right: Set) -> bool {
            (left << 1 | left >> 1) & right != 0
        }
        fn lookup(&self, _: Set, _: usize) -> Option<f64> {
            None
        }
    }

    fn place(rows: f64) -> JoinPart {
        JoinPart {
            role: Role::Inner,
            needs: 0,
            rows,
            cost: rows,
            distinct: rows,
            lateral: false,
            may_swap: false,
            is_shared: false,
        }
    }

    fn show(order: &Order) -> String {
        match order {
            Order::Part(part) => part.to_string(),
            Order::Ordered(part) => format!("ordered {part}"),
            Order::Sorted(part) => format!("sorted {part}"),
            Order::Distinct(part) => format!("distinct {part}"),
            Order::Join { left, right, method, .. } => format!("({} {method:?} {})", show(left), show(right)),
        }
    }

    #[test]
    fn the_small_side_is_kept() {
        let guess = Chain(vec![1000.0, 10.0]);
        let order = choose(&[place(1000.0), place(10.0)], &guess, Goal::default()).unwrap().joins;
        assert!(["(0 Hash 1)", "(1 HashLeft 0)"].contains(&show(&order).as_str()), "{}", show(&order));
    }

    #[test]
    fn what_is_needed_comes_first() {
        let guess = Chain(vec![10.0, 10.0, 10.0]);
        let mut places = [place(10.0), place(10.0), place(10.0)];
        places[0] = JoinPart { role: Role::Right, needs: 0b10, ..places[0] };
        places[2] = JoinPart { role: Role::Right, needs: 0b10, ..places[2] };
        let shown = show(&choose(&places, &guess, Goal::default()).unwrap().joins);
        assert!(shown.starts_with("((1 "), "{shown}");
    }

    #[test]
    fn many_parts_and_untied_ones_find_an_order() {
        for count in [2usize, 9, 10, 11, 20] {
            let guess = Chain(vec![5.0; count]);
            let places = vec![place(5.0); count];
            assert!(choose(&places, &guess, Goal::default()).is_some(), "{count} parts");
        }
        struct Untied;
        impl Guess for Untied {
            fn rows(&self, _: Set) -> f64 {
                1.0
            }
            fn has_keys(&self, _: Set, _: Set) -> bool {
                false
            }
            fn is_tied(&self, _: Set, _: Set) -> bool {
                false
            }
            fn lookup(&self, _: Set, _: usize) -> Option<f64> {
                None
            }
        }
        assert!(choose(&[place(5.0), place(5.0), place(5.0)], &Untied, Goal::default()).is_some());
    }
}
