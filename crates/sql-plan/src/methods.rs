//! Which methods a plan may use: the settings `enable_…`, and how many threads: `max_parallel_workers` and the like.
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

/// The methods that are switched off, and the threads that may work for a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PlanMethods {
    off: u16,
    /// `max_parallel_workers_per_gather` and `max_parallel_workers`.
    workers: [u16; 2],
    /// `min_parallel_table_scan_size`, in blocks of 8 kB.
    table_min: u32,
}

impl Default for PlanMethods {
    fn default() -> PlanMethods {
        PlanMethods { off: 0, workers: [2, 8], table_min: 1024 }
    }
}

impl PlanMethods {
    /// Follows a setting; `false` if it is none of these.
    pub fn follow(&mut self, setting: &str, on: bool) -> bool {
        let Some((_, method)) = NAMES.iter().find(|(name, _)| *name == setting) else { return false };
        let bit = 1 << *method as u16;
        self.off = if on { self.off & !bit } else { self.off | bit };
        true
    }

    /// Follows a setting of threads, in its own unit; `false` if it is none.
    pub fn follow_workers(&mut self, setting: &str, number: u32) -> bool {
        let most = u16::try_from(number).unwrap_or(u16::MAX);
        match setting {
            "max_parallel_workers_per_gather" => self.workers[0] = most,
            "max_parallel_workers" => self.workers[1] = most,
            "min_parallel_table_scan_size" => self.table_min = number,
            _ => return false,
        }
        true
    }

    /// The same for one thread.
    pub(crate) fn alone(self) -> PlanMethods {
        PlanMethods { workers: [0; 2], ..self }
    }

    /// Rows of a table from which on several threads may read it. A block is counted as so many rows that those of the default, 8 MB, are
    /// read in the time that starting a thread takes some twenty times.
    pub(crate) fn shared_rows_min(self) -> u64 {
        const ROWS_OF_BLOCK: u64 = 32;
        u64::from(self.table_min) * ROWS_OF_BLOCK
    }

    /// Threads that may work for one node beside that of the statement.
    pub(crate) fn workers(self) -> usize {
        usize::from(self.workers[0].min(self.workers[1]))
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
    pub fn bits(self) -> u128 {
        let [one, all] = self.workers.map(u128::from);
        u128::from(self.off) | one << 16 | all << 32 | u128::from(self.table_min) << 48
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
