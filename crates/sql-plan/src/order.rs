//! The order of joins: which parts of a FROM list are joined with which, and how.
//!
//! All orders of up to [`EXHAUSTIVE_MAX`] parts are compared by dynamic programming over sets of parts; with more parts,
//! always what is cheapest next. Costs are in rows of a full scan.
//! Invariant: what a part needs is there before it: the rels that its ON or its LATERAL names.

use rustc_hash::FxHashMap;

use super::methods::{PlanMethod, PlanMethods, sort_cost};

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
    /// Whether merging these two gives the order that is wanted of the whole.
    fn serves(&self, _left: Set, _right: Set) -> bool {
        false
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
    /// A part that comes first with its keys made distinct.
    Distinct(usize),
    Join {
        left: Box<Order>,
        right: Box<Order>,
        method: Method,
        rows: f64,
    },
}

#[derive(Clone, Copy)]
struct Best {
    cost: f64,
    rows: f64,
    how: How,
}

#[derive(Clone, Copy)]
enum How {
    Part(usize),
    Join(Set, Set, Method),
}

/// The cheapest order found, and whether its rows come in the order that is `wanted`: then only the first of them may be
/// (`limited`).
pub(super) fn choose(places: &[JoinPart], guess: &dyn Guess, wanted: Option<bool>) -> Option<(Order, bool)> {
    let mut search = Search { places, guess, methods: guess.methods(), best: FxHashMap::default() };
    let all: Set = (0..places.len()).fold(0, |set, part| set | 1 << part);
    for (part, place) in places.iter().enumerate() {
        let first = match place.role {
            Role::Inner if place.needs == 0 => Some((place.rows, place.cost)),
            Role::RightOrFirst => Some((place.distinct, place.cost + place.rows * 1.5)),
            _ => None,
        };
        if let Some((rows, cost)) = first {
            search.best.insert(1 << part, Best { cost, rows, how: How::Part(part) });
        }
    }
    if places.len() > 1 {
        let few = places.len() <= EXHAUSTIVE_MAX;
        let found = few && (search.exhaustive(all, true) || search.exhaustive(all, false));
        if !found {
            search.greedy(all);
        }
    }
    let served = wanted.and_then(|limited| search.served(all, limited));
    if let Some(best) = served {
        search.best.insert(all, best);
    }
    search.order(all).map(|order| (order, served.is_some()))
}

struct Search<'a> {
    places: &'a [JoinPart],
    guess: &'a dyn Guess,
    methods: PlanMethods,
    best: FxHashMap<Set, Best>,
}

fn members(set: Set) -> impl Iterator<Item = usize> {
    (0..Set::BITS as usize).filter(move |part| set & (1 << part) != 0)
}

impl Search<'_> {
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

    /// The cheapest merge at the top that gives the wanted order, if it costs less than sorting what the cheapest order gives.
    fn served(&self, all: Set, limited: bool) -> Option<Best> {
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
                let cost = if limited { 20.0 + cost * 0.2 } else { cost };
                if best.is_none_or(|best| cost < best.cost) {
                    best = Some(Best { cost, rows, how: How::Join(left, right, Method::Merge) });
                }
            }
            right = (right - 1) & all;
        }
        let other = self.best.get(&all)?;
        best.filter(|best| best.cost < other.cost + sort_cost(other.rows, self.methods))
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
        Some(Best { cost: cost + rows * 0.2, rows, how: How::Join(left, right, method) })
    }

    fn order(&self, set: Set) -> Option<Order> {
        let single = (set.count_ones() == 1).then(|| set.trailing_zeros() as usize);
        let Some(best) = self.best.get(&set) else { return single.map(Order::Part) };
        Some(match best.how {
            How::Part(part) if self.places[part].role == Role::RightOrFirst => Order::Distinct(part),
            How::Part(part) => Order::Part(part),
            How::Join(left, right, method) => {
                let right = match right.count_ones() {
                    1 => Order::Part(right.trailing_zeros() as usize),
                    _ => self.order(right)?,
                };
                Order::Join { left: Box::new(self.order(left)?), right: Box::new(right), method, rows: best.rows }
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
        JoinPart { role: Role::Inner, needs: 0, rows, cost: rows, distinct: rows, lateral: false, may_swap: false }
    }

    fn show(order: &Order) -> String {
        match order {
            Order::Part(part) => part.to_string(),
            Order::Distinct(part) => format!("distinct {part}"),
            Order::Join { left, right, method, .. } => format!("({} {method:?} {})", show(left), show(right)),
        }
    }

    #[test]
    fn the_small_side_is_kept() {
        let guess = Chain(vec![1000.0, 10.0]);
        let (order, _) = choose(&[place(1000.0), place(10.0)], &guess, None).unwrap();
        assert!(["(0 Hash 1)", "(1 HashLeft 0)"].contains(&show(&order).as_str()), "{}", show(&order));
    }

    #[test]
    fn what_is_needed_comes_first() {
        let guess = Chain(vec![10.0, 10.0, 10.0]);
        let mut places = [place(10.0), place(10.0), place(10.0)];
        places[0] = JoinPart { role: Role::Right, needs: 0b10, ..places[0] };
        places[2] = JoinPart { role: Role::Right, needs: 0b10, ..places[2] };
        let shown = show(&choose(&places, &guess, None).unwrap().0);
        assert!(shown.starts_with("((1 "), "{shown}");
    }

    #[test]
    fn many_parts_and_untied_ones_find_an_order() {
        for count in [2usize, 9, 10, 11, 20] {
            let guess = Chain(vec![5.0; count]);
            let places = vec![place(5.0); count];
            assert!(choose(&places, &guess, None).is_some(), "{count} parts");
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
        assert!(choose(&[place(5.0), place(5.0), place(5.0)], &Untied, None).is_some());
    }
}
