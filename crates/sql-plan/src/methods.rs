//! Which methods a plan may use: the settings `enable_…`.
//!
//! As in PostgreSQL a method that is switched off is not forbidden but made so expensive that it is taken only where nothing else
//! will do.

/// A way to read, join or sort.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanMethod {
    /// Reading a whole table.
    SeqScan,
    /// Reading through an index.
    IndexScan,
    /// Reading through several indexes, or several ranges of one, at once.
    BitmapScan,
    /// A join by a hash table.
    HashJoin,
    /// A join of two ordered inputs.
    MergeJoin,
    /// A join by going through one side for each row of the other.
    NestedLoop,
    /// Sorting.
    Sort,
    /// Sorting rows that come in the order of the first keys.
    IncrementalSort,
    /// Reading the columns from an index's keys: what is read through the index without it is read with the rows.
    IndexOnlyScan,
    /// Reading rows whose places are known.
    TidScan,
}

/// Settings and their methods.
const NAMES: [(&str, PlanMethod); 10] = [
    ("enable_seqscan", PlanMethod::SeqScan),
    ("enable_indexscan", PlanMethod::IndexScan),
    ("enable_bitmapscan", PlanMethod::BitmapScan),
    ("enable_hashjoin", PlanMethod::HashJoin),
    ("enable_mergejoin", PlanMethod::MergeJoin),
    ("enable_nestloop", PlanMethod::NestedLoop),
    ("enable_sort", PlanMethod::Sort),
    ("enable_incremental_sort", PlanMethod::IncrementalSort),
    ("enable_indexonlyscan", PlanMethod::IndexOnlyScan),
    ("enable_tidscan", PlanMethod::TidScan),
];

/// What a method costs that is switched off, in rows of a full scan: PostgreSQL's `disable_cost`.
const DISABLED: f64 = 1e12;

/// The methods that are switched off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct PlanMethods {
    off: u16,
}

impl PlanMethods {
    /// Follows a setting; `false` if it is none of these.
    pub fn follow(&mut self, setting: &str, on: bool) -> bool {
        let Some((_, method)) = NAMES.iter().find(|(name, _)| *name == setting) else { return false };
        let bit = 1 << *method as u16;
        self.off = if on { self.off & !bit } else { self.off | bit };
        true
    }

    /// Whether a method is switched off.
    pub(crate) fn is_off(self, method: PlanMethod) -> bool {
        self.off & (1 << method as u16) != 0
    }

    /// What using a method costs beyond what it costs.
    pub(crate) fn cost(self, method: PlanMethod) -> f64 {
        if self.is_off(method) { DISABLED } else { 0.0 }
    }

    /// A number that stands for all of them.
    pub fn bits(self) -> u16 {
        self.off
    }
}

/// What is read at least of what ends early.
pub(super) const EARLY: f64 = 20.0;

/// Expected groups from which on rows are sorted group by group: of few groups the first may have most of the rows, and then reading
/// them through an index has no gain.
pub(super) const GROUPS_MIN: f64 = 8.0;

/// What sorting so many rows costs.
pub(super) fn sort_cost(rows: f64, methods: PlanMethods) -> f64 {
    rows * rows.max(2.0).log2() * 0.2 + methods.cost(PlanMethod::Sort)
}
