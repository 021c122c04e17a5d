//! The table of settings: all that there is to know of each. A setting is added by a row here.
//!
//! Those of PostgreSQL that steer what is not here (its planner's costs, its log) are accepted, checked and shown. Those
//! whose other values would make statements mean something else take only the value that holds.

/// How a setting's text is checked.
#[derive(Clone, Copy)]
pub(super) enum ValueKind {
    Bool,
    /// Integer in the unit given (none, `B`, `kB`, `8kB`, `ms`, `s`, `min`), with bounds.
    Int {
        min: i64,
        max: i64,
        unit: &'static str,
    },
    /// As `Int`, with a fraction.
    Real {
        min: f64,
        max: f64,
        unit: &'static str,
    },
    Text,
    Enum(&'static [&'static str]),
    /// As `Enum`; the second list is understood too, but not offered.
    EnumWith(&'static [&'static str], &'static [&'static str]),
    /// The one value that is supported, and the words of an enumeration; without words it is a boolean.
    Only(&'static str, &'static [&'static str]),
    /// Says who the session is: set through `sql_session::role` alone, which looks at memberships.
    Identity,
}

/// What `pg_settings` says of the values that a setting takes.
#[derive(Default)]
pub(super) struct Domain {
    /// As `pg_settings.vartype`.
    pub vartype: &'static str,
    pub unit: Option<&'static str>,
    pub bounds: Option<[String; 2]>,
    pub words: Option<&'static [&'static str]>,
}

impl ValueKind {
    pub fn domain(self) -> Domain {
        match self {
            ValueKind::Bool | ValueKind::Only(_, []) => Domain { vartype: "bool", ..Domain::default() },
            ValueKind::Text | ValueKind::Identity => Domain { vartype: "string", ..Domain::default() },
            ValueKind::Enum(words) | ValueKind::EnumWith(words, _) | ValueKind::Only(_, words) => {
                Domain { vartype: "enum", words: Some(words), ..Domain::default() }
            }
            ValueKind::Int { min, max, unit } => {
                Domain::of_numbers("integer", unit, [min.to_string(), max.to_string()])
            }
            ValueKind::Real { min, max, unit } => {
                // As C's `%g` writes it.
                let digits = |number: f64| match number {
                    f64::MAX => "1.79769e+308".to_owned(),
                    1e6 => "1e+06".to_owned(),
                    other => other.to_string(),
                };
                Domain::of_numbers("real", unit, [digits(min), digits(max)])
            }
        }
    }
}

impl Domain {
    fn of_numbers(vartype: &'static str, unit: &'static str, bounds: [String; 2]) -> Domain {
        Domain { vartype, unit: (!unit.is_empty()).then_some(unit), bounds: Some(bounds), words: None }
    }
}

/// Who may set a setting, and when; as `pg_settings.context` says it. Of the first three nobody may, by SQL, but `memory_limit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Context {
    Internal,
    Postmaster,
    Sighup,
    /// What the server logs and measures, and what holds for more than the session.
    Superuser,
    User,
}

impl Context {
    pub fn name(self) -> &'static str {
        match self {
            Context::Internal => "internal",
            Context::Postmaster => "postmaster",
            Context::Sighup => "sighup",
            Context::Superuser => "superuser",
            Context::User => "user",
        }
    }
}

/// What holds of few settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    /// ParameterStatus tells the client when it changes.
    Reported,
    /// Left out where settings are listed, and by RESET ALL.
    Unlisted,
    /// Shown only to superusers and members of `pg_read_all_settings`.
    Secret,
    /// Steers the planner: PostgreSQL's `GUC_EXPLAIN`.
    Steers,
}

pub(super) struct Spec {
    pub name: &'static str,
    /// In the setting's unit.
    pub default: &'static str,
    pub kind: ValueKind,
    pub context: Context,
    pub marks: &'static [Mark],
    /// Category, description and further description, in PostgreSQL's words.
    pub category: &'static str,
    pub about: &'static str,
    pub extra: &'static str,
}

impl Spec {
    pub fn is(&self, mark: Mark) -> bool {
        self.marks.contains(&mark)
    }

    /// If it is shown and never set: how the refusal ends.
    pub fn fixed(&self) -> Option<&'static str> {
        match self.context {
            _ if self.name == crate::memory::NAME => None,
            Context::Internal => Some(""),
            Context::Postmaster => Some(" without restarting the server"),
            Context::Sighup => Some(" now"),
            Context::Superuser | Context::User => None,
        }
    }
}

const INT_MAX: i64 = i32::MAX as i64;
const MS: ValueKind = ValueKind::Int { min: 0, max: INT_MAX, unit: "ms" };
const KB: ValueKind = ValueKind::Int { min: 0, max: INT_MAX, unit: "kB" };
const LEVELS: ValueKind = ValueKind::EnumWith(
    &["debug5", "debug4", "debug3", "debug2", "debug1", "log", "notice", "warning", "error"],
    &["debug", "info"],
);
const LOG_LEVELS: ValueKind = ValueKind::EnumWith(
    &["debug5", "debug4", "debug3", "debug2", "debug1", "info", "notice", "warning", "error", "log", "fatal", "panic"],
    &["debug"],
);
const ISOLATION: ValueKind =
    ValueKind::Enum(&["serializable", "repeatable read", "read committed", "read uncommitted"]);

macro_rules! specs {
    ($($name:literal, $default:expr, $kind:expr, $context:ident, [$($mark:ident),*], $category:literal, $about:literal, $extra:literal;)+) => {
        &[$(Spec {
            name: $name,
            default: $default,
            kind: $kind,
            context: Context::$context,
            marks: &[$(Mark::$mark),*],
            category: $category,
            about: $about,
            extra: $extra,
        }),+]
    };
}

/// In order of name, case-folded.
#[rustfmt::skip]
pub(super) static SPECS: &[Spec] = specs! {
    "application_name", "", ValueKind::Text, User, [Reported], "Reporting and Logging / What to Log", "Sets the application name to be reported in statistics and logs.", "";
    "array_nulls", "on", ValueKind::Bool, User, [], "Version and Platform Compatibility / Previous PostgreSQL Versions", "Enable input of NULL elements in arrays.", "When turned on, unquoted NULL in an array input value means a null value; otherwise it is taken literally.";
    "authentication_timeout", "60", ValueKind::Int { min: 1, max: 600, unit: "s" }, Sighup, [], "Connections and Authentication / Authentication", "Sets the maximum allowed time to complete client authentication.", "";
    "autovacuum", "on", ValueKind::Bool, Sighup, [], "Autovacuum", "Starts the autovacuum subprocess.", "";
    "backend_flush_after", "0", ValueKind::Int { min: 0, max: 256, unit: "8kB" }, User, [], "Resource Usage / Asynchronous Behavior", "Number of pages after which previously performed writes are flushed to disk.", "";
    "backslash_quote", "safe_encoding", ValueKind::Enum(&["safe_encoding", "on", "off"]), User, [], "Version and Platform Compatibility / Previous PostgreSQL Versions", "Sets whether \"\\'\" is allowed in string literals.", "";
    "block_size", "8192", ValueKind::Int { min: 8192, max: 8192, unit: "" }, Internal, [], "Preset Options", "Shows the size of a disk block.", "";
    "bytea_output", "hex", ValueKind::Enum(&["escape", "hex"]), User, [], "Client Connection Defaults / Statement Behavior", "Sets the output format for bytea.", "";
    "check_function_bodies", "on", ValueKind::Bool, User, [], "Client Connection Defaults / Statement Behavior", "Check routine bodies during CREATE FUNCTION and CREATE PROCEDURE.", "";
    "client_connection_check_interval", "0", MS, User, [], "Connections and Authentication / Connection Settings", "Sets the time interval between checks for disconnection while running queries.", "";
    "client_encoding", "UTF8", ValueKind::Text, User, [Reported], "Client Connection Defaults / Locale and Formatting", "Sets the client's character set encoding.", "";
    "client_min_messages", "notice", LEVELS, User, [], "Client Connection Defaults / Statement Behavior", "Sets the message levels that are sent to the client.", "Each level includes all the levels that follow it. The later the level, the fewer messages are sent.";
    "commit_delay", "0", ValueKind::Int { min: 0, max: 100000, unit: "" }, Superuser, [], "Write-Ahead Log / Settings", "Sets the delay in microseconds between transaction commit and flushing WAL to disk.", "";
    "commit_siblings", "5", ValueKind::Int { min: 0, max: 1000, unit: "" }, User, [], "Write-Ahead Log / Settings", "Sets the minimum number of concurrent open transactions required before performing commit_delay.", "";
    "compute_query_id", "auto", ValueKind::Enum(&["auto", "regress", "on", "off"]), Superuser, [], "Statistics / Monitoring", "Enables in-core computation of query identifiers.", "";
    "constraint_exclusion", "partition", ValueKind::Enum(&["partition", "on", "off"]), User, [Steers], "Query Tuning / Other Planner Options", "Enables the planner to use constraints to optimize queries.", "Table scans will be skipped if their constraints guarantee that no rows match the query.";
    "cpu_index_tuple_cost", "0.005", ValueKind::Real { min: 0.0, max: f64::MAX, unit: "" }, User, [Steers], "Query Tuning / Planner Cost Constants", "Sets the planner's estimate of the cost of processing each index entry during an index scan.", "";
    "cpu_operator_cost", "0.0025", ValueKind::Real { min: 0.0, max: f64::MAX, unit: "" }, User, [Steers], "Query Tuning / Planner Cost Constants", "Sets the planner's estimate of the cost of processing each operator or function call.", "";
    "cpu_tuple_cost", "0.01", ValueKind::Real { min: 0.0, max: f64::MAX, unit: "" }, User, [Steers], "Query Tuning / Planner Cost Constants", "Sets the planner's estimate of the cost of processing each tuple (row).", "";
    "cursor_tuple_fraction", "0.1", ValueKind::Real { min: 0.0, max: 1.0, unit: "" }, User, [Steers], "Query Tuning / Other Planner Options", "Sets the planner's estimate of the fraction of a cursor's rows that will be retrieved.", "";
    "data_checksums", "off", ValueKind::Bool, Internal, [], "Preset Options", "Shows whether data checksums are turned on for this cluster.", "";
    "DateStyle", "ISO, MDY", ValueKind::Text, User, [Reported], "Client Connection Defaults / Locale and Formatting", "Sets the display format for date and time values.", "Also controls interpretation of ambiguous date inputs.";
    "deadlock_timeout", "1000", ValueKind::Int { min: 1, max: INT_MAX, unit: "ms" }, Superuser, [], "Lock Management", "Sets the time to wait on a lock before checking for deadlock.", "";
    "debug_assertions", "off", ValueKind::Bool, Internal, [], "Preset Options", "Shows whether the running server has assertion checks enabled.", "";
    "debug_pretty_print", "on", ValueKind::Bool, User, [], "Reporting and Logging / What to Log", "Indents parse and plan tree displays.", "";
    "debug_print_parse", "off", ValueKind::Bool, User, [], "Reporting and Logging / What to Log", "Logs each query's parse tree.", "";
    "debug_print_plan", "off", ValueKind::Bool, User, [], "Reporting and Logging / What to Log", "Logs each query's execution plan.", "";
    "debug_print_rewritten", "off", ValueKind::Bool, User, [], "Reporting and Logging / What to Log", "Logs each query's rewritten parse tree.", "";
    "default_statistics_target", "100", ValueKind::Int { min: 1, max: 10000, unit: "" }, User, [], "Query Tuning / Other Planner Options", "Sets the default statistics target.", "This applies to table columns that have not had a column-specific target set via ALTER TABLE SET STATISTICS.";
    "default_table_access_method", "heap", ValueKind::Text, User, [], "Client Connection Defaults / Statement Behavior", "Sets the default table access method for new tables.", "";
    "default_tablespace", "", ValueKind::Text, User, [], "Client Connection Defaults / Statement Behavior", "Sets the default tablespace to create tables and indexes in.", "An empty string selects the database's default tablespace.";
    "default_text_search_config", "pg_catalog.simple", ValueKind::Text, User, [], "Client Connection Defaults / Locale and Formatting", "Sets default text search configuration.", "";
    "default_toast_compression", "pglz", ValueKind::Enum(&["pglz", "lz4"]), User, [], "Client Connection Defaults / Statement Behavior", "Sets the default compression method for compressible values.", "";
    "default_transaction_deferrable", "off", ValueKind::Bool, User, [], "Client Connection Defaults / Statement Behavior", "Sets the default deferrable status of new transactions.", "";
    "default_transaction_isolation", "read committed", ISOLATION, User, [], "Client Connection Defaults / Statement Behavior", "Sets the transaction isolation level of each new transaction.", "";
    "default_transaction_read_only", "off", ValueKind::Bool, User, [Reported], "Client Connection Defaults / Statement Behavior", "Sets the default read-only status of new transactions.", "";
    "default_with_oids", "off", ValueKind::Only("off", &[]), User, [Unlisted], "Version and Platform Compatibility / Previous PostgreSQL Versions", "Create new tables with OIDs by default.", "";
    "dynamic_library_path", "$libdir", ValueKind::Text, Superuser, [Secret], "Client Connection Defaults / Other Defaults", "Sets the path for dynamically loadable modules.", "If a dynamically loadable module needs to be opened and the specified name does not have a directory component (i.e., the name does not contain a slash), the system will search this path for the specified file.";
    "effective_cache_size", "524288", ValueKind::Int { min: 1, max: INT_MAX, unit: "8kB" }, User, [Steers], "Query Tuning / Planner Cost Constants", "Sets the planner's assumption about the total size of the data caches.", "That is, the total size of the caches (kernel cache and shared buffers) used for PostgreSQL data files. This is measured in disk pages, which are normally 8 kB each.";
    "effective_io_concurrency", "1", ValueKind::Int { min: 0, max: 1000, unit: "" }, User, [Steers], "Resource Usage / Asynchronous Behavior", "Number of simultaneous requests that can be handled efficiently by the disk subsystem.", "";
    "enable_async_append", "on", ValueKind::Bool, User, [Steers], "Query Tuning / Planner Method Configuration", "Enables the planner's use of async append plans.", "";
    "enable_bitmapscan", "on", ValueKind::Bool, User, [Steers], "Query Tuning / Planner Method Configuration", "Enables the planner's use of bitmap-scan plans.", "";
    "enable_gathermerge", "on", ValueKind::Bool, User, [Steers], "Query Tuning / Planner Method Configuration", "Enables the planner's use of gather merge plans.", "";
    "enable_hashagg", "on", ValueKind::Bool, User, [Steers], "Query Tuning / Planner Method Configuration", "Enables the planner's use of hashed aggregation plans.", "";
    "enable_hashjoin", "on", ValueKind::Bool, User, [Steers], "Query Tuning / Planner Method Configuration", "Enables the planner's use of hash join plans.", "";
    "enable_incremental_sort", "on", ValueKind::Bool, User, [Steers], "Query Tuning / Planner Method Configuration", "Enables the planner's use of incremental sort steps.", "";
    "enable_indexonlyscan", "on", ValueKind::Bool, User, [Steers], "Query Tuning / Planner Method Configuration", "Enables the planner's use of index-only-scan plans.", "";
    "enable_indexscan", "on", ValueKind::Bool, User, [Steers], "Query Tuning / Planner Method Configuration", "Enables the planner's use of index-scan plans.", "";
    "enable_material", "on", ValueKind::Bool, User, [Steers], "Query Tuning / Planner Method Configuration", "Enables the planner's use of materialization.", "";
    "enable_memoize", "on", ValueKind::Bool, User, [Steers], "Query Tuning / Planner Method Configuration", "Enables the planner's use of memoization.", "";
    "enable_mergejoin", "on", ValueKind::Bool, User, [Steers], "Query Tuning / Planner Method Configuration", "Enables the planner's use of merge join plans.", "";
    "enable_nestloop", "on", ValueKind::Bool, User, [Steers], "Query Tuning / Planner Method Configuration", "Enables the planner's use of nested-loop join plans.", "";
    "enable_parallel_append", "on", ValueKind::Bool, User, [Steers], "Query Tuning / Planner Method Configuration", "Enables the planner's use of parallel append plans.", "";
    "enable_parallel_hash", "on", ValueKind::Bool, User, [Steers], "Query Tuning / Planner Method Configuration", "Enables the planner's use of parallel hash plans.", "";
    "enable_partition_pruning", "on", ValueKind::Bool, User, [Steers], "Query Tuning / Planner Method Configuration", "Enables plan-time and execution-time partition pruning.", "Allows the query planner and executor to compare partition bounds to conditions in the query to determine which partitions must be scanned.";
    "enable_partitionwise_aggregate", "off", ValueKind::Bool, User, [Steers], "Query Tuning / Planner Method Configuration", "Enables partitionwise aggregation and grouping.", "";
    "enable_partitionwise_join", "off", ValueKind::Bool, User, [Steers], "Query Tuning / Planner Method Configuration", "Enables partitionwise join.", "";
    "enable_seqscan", "on", ValueKind::Bool, User, [Steers], "Query Tuning / Planner Method Configuration", "Enables the planner's use of sequential-scan plans.", "";
    "enable_sort", "on", ValueKind::Bool, User, [Steers], "Query Tuning / Planner Method Configuration", "Enables the planner's use of explicit sort steps.", "";
    "enable_tidscan", "on", ValueKind::Bool, User, [Steers], "Query Tuning / Planner Method Configuration", "Enables the planner's use of TID scan plans.", "";
    "escape_string_warning", "on", ValueKind::Bool, User, [], "Version and Platform Compatibility / Previous PostgreSQL Versions", "Warn about backslash escapes in ordinary string literals.", "";
    "exit_on_error", "off", ValueKind::Only("off", &[]), User, [], "Error Handling", "Terminate session on any error.", "";
    "extra_float_digits", "1", ValueKind::Int { min: -15, max: 3, unit: "" }, User, [], "Client Connection Defaults / Locale and Formatting", "Sets the number of digits displayed for floating-point values.", "This affects real, double precision, and geometric data types. A zero or negative parameter value is added to the standard number of digits (FLT_DIG or DBL_DIG as appropriate). Any value greater than zero selects precise output mode.";
    "force_parallel_mode", "off", ValueKind::Enum(&["off", "on", "regress"]), User, [Steers], "Developer Options", "Forces use of parallel query facilities.", "If possible, run query using a parallel worker and with parallel restrictions.";
    "from_collapse_limit", "8", ValueKind::Int { min: 1, max: INT_MAX, unit: "" }, User, [Steers], "Query Tuning / Other Planner Options", "Sets the FROM-list size beyond which subqueries are not collapsed.", "The planner will merge subqueries into upper queries if the resulting FROM list would have no more than this many items.";
    "fsync", "on", ValueKind::Bool, Sighup, [], "Write-Ahead Log / Settings", "Forces synchronization of updates to disk.", "The server will use the fsync() system call in several places to make sure that updates are physically written to disk. This ensures that a database cluster will recover to a consistent state after an operating system or hardware crash.";
    "full_page_writes", "on", ValueKind::Bool, Sighup, [], "Write-Ahead Log / Settings", "Writes full pages to WAL when first modified after a checkpoint.", "A page write in process during an operating system crash might be only partially written to disk.  During recovery, the row changes stored in WAL are not enough to recover.  This option writes pages when first modified after a checkpoint to WAL so full recovery is possible.";
    "geqo", "on", ValueKind::Bool, User, [Steers], "Query Tuning / Genetic Query Optimizer", "Enables genetic query optimization.", "This algorithm attempts to do planning without exhaustive searching.";
    "geqo_effort", "5", ValueKind::Int { min: 1, max: 10, unit: "" }, User, [Steers], "Query Tuning / Genetic Query Optimizer", "GEQO: effort is used to set the default for other GEQO parameters.", "";
    "geqo_generations", "0", ValueKind::Int { min: 0, max: INT_MAX, unit: "" }, User, [Steers], "Query Tuning / Genetic Query Optimizer", "GEQO: number of iterations of the algorithm.", "Zero selects a suitable default value.";
    "geqo_pool_size", "0", ValueKind::Int { min: 0, max: INT_MAX, unit: "" }, User, [Steers], "Query Tuning / Genetic Query Optimizer", "GEQO: number of individuals in the population.", "Zero selects a suitable default value.";
    "geqo_seed", "0", ValueKind::Real { min: 0.0, max: 1.0, unit: "" }, User, [Steers], "Query Tuning / Genetic Query Optimizer", "GEQO: seed for random path selection.", "";
    "geqo_selection_bias", "2", ValueKind::Real { min: 1.5, max: 2.0, unit: "" }, User, [Steers], "Query Tuning / Genetic Query Optimizer", "GEQO: selective pressure within the population.", "";
    "geqo_threshold", "12", ValueKind::Int { min: 2, max: INT_MAX, unit: "" }, User, [Steers], "Query Tuning / Genetic Query Optimizer", "Sets the threshold of FROM items beyond which GEQO is used.", "";
    "gin_fuzzy_search_limit", "0", ValueKind::Int { min: 0, max: INT_MAX, unit: "" }, User, [], "Client Connection Defaults / Other Defaults", "Sets the maximum allowed result for exact search by GIN.", "";
    "gin_pending_list_limit", "4096", ValueKind::Int { min: 64, max: INT_MAX, unit: "kB" }, User, [], "Client Connection Defaults / Statement Behavior", "Sets the maximum size of the pending list for GIN index.", "";
    "hash_mem_multiplier", "2", ValueKind::Real { min: 1.0, max: 1000.0, unit: "" }, User, [Steers], "Resource Usage / Memory", "Multiple of work_mem to use for hash tables.", "";
    "idle_in_transaction_session_timeout", "0", MS, User, [], "Client Connection Defaults / Statement Behavior", "Sets the maximum allowed idle time between queries, when in a transaction.", "A value of 0 turns off the timeout.";
    "idle_session_timeout", "0", MS, User, [], "Client Connection Defaults / Statement Behavior", "Sets the maximum allowed idle time between queries, when not in a transaction.", "A value of 0 turns off the timeout.";
    "in_hot_standby", "off", ValueKind::Bool, Internal, [Reported], "Preset Options", "Shows whether hot standby is currently active.", "";
    "integer_datetimes", "on", ValueKind::Bool, Internal, [Reported], "Preset Options", "Shows whether datetimes are integer based.", "";
    "IntervalStyle", "postgres", ValueKind::Enum(&["postgres", "postgres_verbose", "sql_standard", "iso_8601"]), User, [Reported], "Client Connection Defaults / Locale and Formatting", "Sets the display format for interval values.", "";
    "is_superuser", "on", ValueKind::Bool, Internal, [Reported, Unlisted], "Client Connection Defaults / Statement Behavior", "Shows whether the current user is a superuser.", "";
    "jit", "off", ValueKind::Bool, User, [Steers], "Query Tuning / Other Planner Options", "Allow JIT compilation.", "";
    "jit_above_cost", "100000", ValueKind::Real { min: -1.0, max: f64::MAX, unit: "" }, User, [Steers], "Query Tuning / Planner Cost Constants", "Perform JIT compilation if query is more expensive.", "-1 disables JIT compilation.";
    "jit_expressions", "on", ValueKind::Bool, User, [Steers], "Developer Options", "Allow JIT compilation of expressions.", "";
    "jit_inline_above_cost", "500000", ValueKind::Real { min: -1.0, max: f64::MAX, unit: "" }, User, [Steers], "Query Tuning / Planner Cost Constants", "Perform JIT inlining if query is more expensive.", "-1 disables inlining.";
    "jit_optimize_above_cost", "500000", ValueKind::Real { min: -1.0, max: f64::MAX, unit: "" }, User, [Steers], "Query Tuning / Planner Cost Constants", "Optimize JIT-compiled functions if query is more expensive.", "-1 disables optimization.";
    "jit_tuple_deforming", "on", ValueKind::Bool, User, [Steers], "Developer Options", "Allow JIT compilation of tuple deforming.", "";
    "join_collapse_limit", "8", ValueKind::Int { min: 1, max: INT_MAX, unit: "" }, User, [Steers], "Query Tuning / Other Planner Options", "Sets the FROM-list size beyond which JOIN constructs are not flattened.", "The planner will flatten explicit JOIN constructs into lists of FROM items whenever a list of no more than this many items would result.";
    "lc_collate", "C.UTF-8", ValueKind::Text, Internal, [], "Preset Options", "Shows the collation order locale.", "";
    "lc_ctype", "C.UTF-8", ValueKind::Text, Internal, [], "Preset Options", "Shows the character classification and case conversion locale.", "";
    "lc_messages", "C.UTF-8", ValueKind::Text, Superuser, [], "Client Connection Defaults / Locale and Formatting", "Sets the language in which messages are displayed.", "";
    "lc_monetary", "C.UTF-8", ValueKind::Text, User, [], "Client Connection Defaults / Locale and Formatting", "Sets the locale for formatting monetary amounts.", "";
    "lc_numeric", "C.UTF-8", ValueKind::Text, User, [], "Client Connection Defaults / Locale and Formatting", "Sets the locale for formatting numbers.", "";
    "lc_time", "C.UTF-8", ValueKind::Text, User, [], "Client Connection Defaults / Locale and Formatting", "Sets the locale for formatting date and time values.", "";
    "lo_compat_privileges", "off", ValueKind::Bool, Superuser, [], "Version and Platform Compatibility / Previous PostgreSQL Versions", "Enables backward compatibility mode for privilege checks on large objects.", "Skips privilege checks when reading or modifying large objects, for compatibility with PostgreSQL releases prior to 9.0.";
    "local_preload_libraries", "", ValueKind::Text, User, [], "Client Connection Defaults / Shared Library Preloading", "Lists unprivileged shared libraries to preload into each backend.", "";
    "lock_timeout", "0", MS, User, [], "Client Connection Defaults / Statement Behavior", "Sets the maximum allowed duration of any wait for a lock.", "A value of 0 turns off the timeout.";
    "log_duration", "off", ValueKind::Bool, Superuser, [], "Reporting and Logging / What to Log", "Logs the duration of each completed SQL statement.", "";
    "log_error_verbosity", "default", ValueKind::Enum(&["terse", "default", "verbose"]), Superuser, [], "Reporting and Logging / What to Log", "Sets the verbosity of logged messages.", "";
    "log_lock_waits", "off", ValueKind::Bool, Superuser, [], "Reporting and Logging / What to Log", "Logs long lock waits.", "";
    "log_min_duration_sample", "-1", ValueKind::Int { min: -1, max: INT_MAX, unit: "ms" }, Superuser, [], "Reporting and Logging / When to Log", "Sets the minimum execution time above which a sample of statements will be logged. Sampling is determined by log_statement_sample_rate.", "Zero logs a sample of all queries. -1 turns this feature off.";
    "log_min_duration_statement", "-1", ValueKind::Int { min: -1, max: INT_MAX, unit: "ms" }, Superuser, [], "Reporting and Logging / When to Log", "Sets the minimum execution time above which all statements will be logged.", "Zero prints all queries. -1 turns this feature off.";
    "log_min_error_statement", "error", LOG_LEVELS, Superuser, [], "Reporting and Logging / When to Log", "Causes all statements generating error at or above this level to be logged.", "Each level includes all the levels that follow it. The later the level, the fewer messages are sent.";
    "log_min_messages", "warning", LOG_LEVELS, Superuser, [], "Reporting and Logging / When to Log", "Sets the message levels that are logged.", "Each level includes all the levels that follow it. The later the level, the fewer messages are sent.";
    "log_parameter_max_length", "-1", ValueKind::Int { min: -1, max: 1073741823, unit: "B" }, Superuser, [], "Reporting and Logging / What to Log", "Sets the maximum length in bytes of data logged for bind parameter values when logging statements.", "-1 to print values in full.";
    "log_parameter_max_length_on_error", "0", ValueKind::Int { min: -1, max: 1073741823, unit: "B" }, User, [], "Reporting and Logging / What to Log", "Sets the maximum length in bytes of data logged for bind parameter values when logging statements, on error.", "-1 to print values in full.";
    "log_replication_commands", "off", ValueKind::Bool, Superuser, [], "Reporting and Logging / What to Log", "Logs each replication command.", "";
    "log_statement", "none", ValueKind::Enum(&["none", "ddl", "mod", "all"]), Superuser, [], "Reporting and Logging / What to Log", "Sets the type of statements logged.", "";
    "log_statement_sample_rate", "1", ValueKind::Real { min: 0.0, max: 1.0, unit: "" }, Superuser, [], "Reporting and Logging / When to Log", "Fraction of statements exceeding log_min_duration_sample to be logged.", "Use a value between 0.0 (never log) and 1.0 (always log).";
    "log_temp_files", "-1", ValueKind::Int { min: -1, max: INT_MAX, unit: "kB" }, Superuser, [], "Reporting and Logging / What to Log", "Log the use of temporary files larger than this number of kilobytes.", "Zero logs all files. The default is -1 (turning this feature off).";
    "log_timezone", "UTC", ValueKind::Text, Sighup, [], "Reporting and Logging / What to Log", "Sets the time zone to use in log messages.", "";
    "log_transaction_sample_rate", "0", ValueKind::Real { min: 0.0, max: 1.0, unit: "" }, Superuser, [], "Reporting and Logging / When to Log", "Sets the fraction of transactions from which to log all statements.", "Use a value between 0.0 (never log) and 1.0 (log all statements for all transactions).";
    "logical_decoding_work_mem", "65536", ValueKind::Int { min: 64, max: INT_MAX, unit: "kB" }, User, [], "Resource Usage / Memory", "Sets the maximum memory to be used for logical decoding.", "This much memory can be used by each internal reorder buffer before spilling to disk.";
    "maintenance_io_concurrency", "10", ValueKind::Int { min: 0, max: 1000, unit: "" }, User, [], "Resource Usage / Asynchronous Behavior", "A variant of effective_io_concurrency that is used for maintenance work.", "";
    "maintenance_work_mem", "65536", ValueKind::Int { min: 1024, max: INT_MAX, unit: "kB" }, User, [], "Resource Usage / Memory", "Sets the maximum memory to be used for maintenance operations.", "This includes operations such as VACUUM and CREATE INDEX.";
    "max_connections", "100", ValueKind::Int { min: 1, max: 262143, unit: "" }, Postmaster, [], "Connections and Authentication / Connection Settings", "Sets the maximum number of concurrent connections.", "";
    "max_function_args", "100", ValueKind::Int { min: 100, max: 100, unit: "" }, Internal, [], "Preset Options", "Shows the maximum number of function arguments.", "";
    "max_identifier_length", "63", ValueKind::Int { min: 63, max: 63, unit: "" }, Internal, [], "Preset Options", "Shows the maximum identifier length.", "";
    "max_index_keys", "32", ValueKind::Int { min: 32, max: 32, unit: "" }, Internal, [], "Preset Options", "Shows the maximum number of index keys.", "";
    "max_locks_per_transaction", "64", ValueKind::Int { min: 10, max: INT_MAX, unit: "" }, Postmaster, [], "Lock Management", "Sets the maximum number of locks per transaction.", "The shared lock table is sized on the assumption that at most max_locks_per_transaction * max_connections distinct objects will need to be locked at any one time.";
    "max_parallel_maintenance_workers", "2", ValueKind::Int { min: 0, max: 1024, unit: "" }, User, [], "Resource Usage / Asynchronous Behavior", "Sets the maximum number of parallel processes per maintenance operation.", "";
    "max_parallel_workers", "8", ValueKind::Int { min: 0, max: 1024, unit: "" }, User, [Steers], "Resource Usage / Asynchronous Behavior", "Sets the maximum number of parallel workers that can be active at one time.", "";
    "max_parallel_workers_per_gather", "2", ValueKind::Int { min: 0, max: 1024, unit: "" }, User, [Steers], "Resource Usage / Asynchronous Behavior", "Sets the maximum number of parallel processes per executor node.", "";
    "max_prepared_transactions", "256", ValueKind::Int { min: 0, max: 262143, unit: "" }, Postmaster, [], "Resource Usage / Memory", "Sets the maximum number of simultaneously prepared transactions.", "";
    "max_replication_slots", "10", ValueKind::Int { min: 0, max: 262143, unit: "" }, Postmaster, [], "Replication / Sending Servers", "Sets the maximum number of simultaneously defined replication slots.", "";
    "max_stack_depth", "2048", ValueKind::Int { min: 100, max: INT_MAX, unit: "kB" }, Superuser, [], "Resource Usage / Memory", "Sets the maximum stack depth, in kilobytes.", "";
    "max_wal_senders", "10", ValueKind::Int { min: 0, max: 262143, unit: "" }, Postmaster, [], "Replication / Sending Servers", "Sets the maximum number of simultaneously running WAL sender processes.", "";
    "max_worker_processes", "8", ValueKind::Int { min: 0, max: 262143, unit: "" }, Postmaster, [], "Resource Usage / Asynchronous Behavior", "Maximum number of concurrent worker processes.", "";
    "memory_limit", "0", ValueKind::Int { min: 1024, max: 1 << 40, unit: "kB" }, Sighup, [], "Resource Usage / Memory", "Sets the memory that the server may use for rows, indexes and what sessions hold.", "";
    "min_parallel_index_scan_size", "64", ValueKind::Int { min: 0, max: 715827882, unit: "8kB" }, User, [Steers], "Query Tuning / Planner Cost Constants", "Sets the minimum amount of index data for a parallel scan.", "If the planner estimates that it will read a number of index pages too small to reach this limit, a parallel scan will not be considered.";
    "min_parallel_table_scan_size", "1024", ValueKind::Int { min: 0, max: 715827882, unit: "8kB" }, User, [Steers], "Query Tuning / Planner Cost Constants", "Sets the minimum amount of table data for a parallel scan.", "If the planner estimates that it will read a number of table pages too small to reach this limit, a parallel scan will not be considered.";
    "parallel_leader_participation", "on", ValueKind::Bool, User, [Steers], "Resource Usage / Asynchronous Behavior", "Controls whether Gather and Gather Merge also run subplans.", "Should gather nodes also run subplans or just gather tuples?";
    "parallel_setup_cost", "1000", ValueKind::Real { min: 0.0, max: f64::MAX, unit: "" }, User, [Steers], "Query Tuning / Planner Cost Constants", "Sets the planner's estimate of the cost of starting up worker processes for parallel query.", "";
    "parallel_tuple_cost", "0.1", ValueKind::Real { min: 0.0, max: f64::MAX, unit: "" }, User, [Steers], "Query Tuning / Planner Cost Constants", "Sets the planner's estimate of the cost of passing each tuple (row) from worker to leader backend.", "";
    "password_encryption", "scram-sha-256", ValueKind::Enum(&["md5", "scram-sha-256"]), User, [], "Connections and Authentication / Authentication", "Chooses the algorithm for encrypting passwords.", "";
    "plan_cache_mode", "auto", ValueKind::Enum(&["auto", "force_generic_plan", "force_custom_plan"]), User, [Steers], "Query Tuning / Other Planner Options", "Controls the planner's selection of custom or generic plan.", "Prepared statements can have custom and generic plans, and the planner will attempt to choose which is better.  This can be set to override the default behavior.";
    "quote_all_identifiers", "off", ValueKind::Bool, User, [], "Version and Platform Compatibility / Previous PostgreSQL Versions", "When generating SQL fragments, quote all identifiers.", "";
    "random_page_cost", "4", ValueKind::Real { min: 0.0, max: f64::MAX, unit: "" }, User, [Steers], "Query Tuning / Planner Cost Constants", "Sets the planner's estimate of the cost of a nonsequentially fetched disk page.", "";
    "recursive_worktable_factor", "10", ValueKind::Real { min: 0.001, max: 1e6, unit: "" }, User, [Steers], "Query Tuning / Other Planner Options", "Sets the planner's estimate of the average size of a recursive query's working table.", "";
    "restrict_nonsystem_relation_kind", "", ValueKind::Text, User, [], "Client Connection Defaults / Statement Behavior", "Prohibits access to non-system relations of specified kinds.", "";
    "role", "none", ValueKind::Identity, User, [Unlisted], "Ungrouped", "Sets the current role.", "";
    "row_security", "on", ValueKind::Bool, User, [], "Client Connection Defaults / Statement Behavior", "Enable row security.", "When enabled, row security will be applied to all users.";
    "search_path", "\"$user\", public", ValueKind::Text, User, [Steers], "Client Connection Defaults / Statement Behavior", "Sets the schema search order for names that are not schema-qualified.", "";
    "segment_size", "131072", ValueKind::Int { min: 131072, max: 131072, unit: "8kB" }, Internal, [], "Preset Options", "Shows the number of pages per disk file.", "";
    "seq_page_cost", "1", ValueKind::Real { min: 0.0, max: f64::MAX, unit: "" }, User, [Steers], "Query Tuning / Planner Cost Constants", "Sets the planner's estimate of the cost of a sequentially fetched disk page.", "";
    "server_encoding", "UTF8", ValueKind::Text, Internal, [Reported], "Preset Options", "Shows the server (database) character set encoding.", "";
    "server_version", sql_functions::SERVER_VERSION, ValueKind::Text, Internal, [Reported], "Preset Options", "Shows the server version.", "";
    "server_version_num", "150018", ValueKind::Int { min: 150018, max: 150018, unit: "" }, Internal, [], "Preset Options", "Shows the server version as an integer.", "";
    "session_authorization", "postgres", ValueKind::Identity, User, [Reported, Unlisted], "Client Connection Defaults / Statement Behavior", "Shows the session user name.", "";
    "session_preload_libraries", "", ValueKind::Text, Superuser, [Secret], "Client Connection Defaults / Shared Library Preloading", "Lists shared libraries to preload into each backend.", "";
    "session_replication_role", "origin", ValueKind::Only("origin", &["origin", "replica", "local"]), Superuser, [], "Client Connection Defaults / Statement Behavior", "Sets the session's behavior for triggers and rewrite rules.", "";
    "standard_conforming_strings", "on", ValueKind::Bool, User, [Reported], "Version and Platform Compatibility / Previous PostgreSQL Versions", "Causes '...' strings to treat backslashes literally.", "";
    "statement_timeout", "0", MS, User, [], "Client Connection Defaults / Statement Behavior", "Sets the maximum allowed duration of any statement.", "A value of 0 turns off the timeout.";
    "stats_fetch_consistency", "cache", ValueKind::Enum(&["none", "cache", "snapshot"]), User, [], "Statistics / Cumulative Query and Index Statistics", "Sets the consistency of accesses to statistics data.", "";
    "superuser_reserved_connections", "3", ValueKind::Int { min: 0, max: 262143, unit: "" }, Postmaster, [], "Connections and Authentication / Connection Settings", "Sets the number of connection slots reserved for superusers.", "";
    "synchronize_seqscans", "on", ValueKind::Bool, User, [], "Version and Platform Compatibility / Previous PostgreSQL Versions", "Enable synchronized sequential scans.", "";
    "synchronous_commit", "on", ValueKind::Enum(&["local", "remote_write", "remote_apply", "on", "off"]), User, [], "Write-Ahead Log / Settings", "Sets the current transaction's synchronization level.", "";
    "tcp_keepalives_count", "0", ValueKind::Int { min: 0, max: INT_MAX, unit: "" }, User, [], "Connections and Authentication / Connection Settings", "Maximum number of TCP keepalive retransmits.", "Number of consecutive keepalive retransmits that can be lost before a connection is considered dead. A value of 0 uses the system default.";
    "tcp_keepalives_idle", "0", ValueKind::Int { min: 0, max: INT_MAX, unit: "s" }, User, [], "Connections and Authentication / Connection Settings", "Time between issuing TCP keepalives.", "A value of 0 uses the system default.";
    "tcp_keepalives_interval", "0", ValueKind::Int { min: 0, max: INT_MAX, unit: "s" }, User, [], "Connections and Authentication / Connection Settings", "Time between TCP keepalive retransmits.", "A value of 0 uses the system default.";
    "tcp_user_timeout", "0", MS, User, [], "Connections and Authentication / Connection Settings", "TCP user timeout.", "A value of 0 uses the system default.";
    "temp_buffers", "1024", ValueKind::Int { min: 100, max: 1073741823, unit: "8kB" }, User, [Steers], "Resource Usage / Memory", "Sets the maximum number of temporary buffers used by each session.", "";
    "temp_file_limit", "-1", ValueKind::Int { min: -1, max: INT_MAX, unit: "kB" }, Superuser, [], "Resource Usage / Disk", "Limits the total size of all temporary files used by each process.", "-1 means no limit.";
    "temp_tablespaces", "", ValueKind::Text, User, [], "Client Connection Defaults / Statement Behavior", "Sets the tablespace(s) to use for temporary tables and sort files.", "";
    "TimeZone", "UTC", ValueKind::Text, User, [Reported], "Client Connection Defaults / Locale and Formatting", "Sets the time zone for displaying and interpreting time stamps.", "";
    "track_activities", "on", ValueKind::Bool, Superuser, [], "Statistics / Cumulative Query and Index Statistics", "Collects information about executing commands.", "Enables the collection of information on the currently executing command of each session, along with the time at which that command began execution.";
    "track_counts", "on", ValueKind::Bool, Superuser, [], "Statistics / Cumulative Query and Index Statistics", "Collects statistics on database activity.", "";
    "track_functions", "none", ValueKind::Enum(&["none", "pl", "all"]), Superuser, [], "Statistics / Cumulative Query and Index Statistics", "Collects function-level statistics on database activity.", "";
    "track_io_timing", "off", ValueKind::Bool, Superuser, [], "Statistics / Cumulative Query and Index Statistics", "Collects timing statistics for database I/O activity.", "";
    "track_wal_io_timing", "off", ValueKind::Bool, Superuser, [], "Statistics / Cumulative Query and Index Statistics", "Collects timing statistics for WAL I/O activity.", "";
    "transaction_deferrable", "off", ValueKind::Bool, User, [], "Client Connection Defaults / Statement Behavior", "Whether to defer a read-only serializable transaction.", "";
    "transaction_isolation", "read committed", ISOLATION, User, [], "Client Connection Defaults / Statement Behavior", "Sets the current transaction's isolation level.", "";
    "transaction_read_only", "off", ValueKind::Bool, User, [], "Client Connection Defaults / Statement Behavior", "Sets the current transaction's read-only status.", "";
    "transform_null_equals", "off", ValueKind::Only("off", &[]), User, [], "Version and Platform Compatibility / Other Platforms and Clients", "Treats \"expr=NULL\" as \"expr IS NULL\".", "When turned on, expressions of the form expr = NULL (or NULL = expr) are treated as expr IS NULL, that is, they return true if expr evaluates to the null value, and false otherwise. The correct behavior of expr = NULL is to always return null (unknown).";
    "update_process_title", "on", ValueKind::Bool, Superuser, [], "Reporting and Logging / Process Title", "Updates the process title to show the active SQL command.", "Enables updating of the process title every time a new SQL command is received by the server.";
    "vacuum_cost_delay", "0", ValueKind::Real { min: 0.0, max: 100.0, unit: "ms" }, User, [], "Resource Usage / Cost-Based Vacuum Delay", "Vacuum cost delay in milliseconds.", "";
    "vacuum_cost_limit", "200", ValueKind::Int { min: 1, max: 10000, unit: "" }, User, [], "Resource Usage / Cost-Based Vacuum Delay", "Vacuum cost amount available before napping.", "";
    "vacuum_cost_page_dirty", "20", ValueKind::Int { min: 0, max: 10000, unit: "" }, User, [], "Resource Usage / Cost-Based Vacuum Delay", "Vacuum cost for a page dirtied by vacuum.", "";
    "vacuum_cost_page_hit", "1", ValueKind::Int { min: 0, max: 10000, unit: "" }, User, [], "Resource Usage / Cost-Based Vacuum Delay", "Vacuum cost for a page found in the buffer cache.", "";
    "vacuum_cost_page_miss", "2", ValueKind::Int { min: 0, max: 10000, unit: "" }, User, [], "Resource Usage / Cost-Based Vacuum Delay", "Vacuum cost for a page not found in the buffer cache.", "";
    "vacuum_failsafe_age", "1600000000", ValueKind::Int { min: 0, max: 2100000000, unit: "" }, User, [], "Client Connection Defaults / Statement Behavior", "Age at which VACUUM should trigger failsafe to avoid a wraparound outage.", "";
    "vacuum_freeze_min_age", "50000000", ValueKind::Int { min: 0, max: 1000000000, unit: "" }, User, [], "Client Connection Defaults / Statement Behavior", "Minimum age at which VACUUM should freeze a table row.", "";
    "vacuum_freeze_table_age", "150000000", ValueKind::Int { min: 0, max: 2000000000, unit: "" }, User, [], "Client Connection Defaults / Statement Behavior", "Age at which VACUUM should scan whole table to freeze tuples.", "";
    "vacuum_multixact_failsafe_age", "1600000000", ValueKind::Int { min: 0, max: 2100000000, unit: "" }, User, [], "Client Connection Defaults / Statement Behavior", "Multixact age at which VACUUM should trigger failsafe to avoid a wraparound outage.", "";
    "vacuum_multixact_freeze_min_age", "5000000", ValueKind::Int { min: 0, max: 1000000000, unit: "" }, User, [], "Client Connection Defaults / Statement Behavior", "Minimum age at which VACUUM should freeze a MultiXactId in a table row.", "";
    "vacuum_multixact_freeze_table_age", "150000000", ValueKind::Int { min: 0, max: 2000000000, unit: "" }, User, [], "Client Connection Defaults / Statement Behavior", "Multixact age at which VACUUM should scan whole table to freeze tuples.", "";
    "wal_block_size", "8192", ValueKind::Int { min: 8192, max: 8192, unit: "" }, Internal, [], "Preset Options", "Shows the block size in the write ahead log.", "";
    "wal_compression", "off", ValueKind::Enum(&["pglz", "lz4", "zstd", "on", "off"]), Superuser, [], "Write-Ahead Log / Settings", "Compresses full-page writes written in WAL file with specified method.", "";
    "wal_level", "replica", ValueKind::Enum(&["minimal", "replica", "logical"]), Postmaster, [], "Write-Ahead Log / Settings", "Sets the level of information written to the WAL.", "";
    "wal_segment_size", "16777216", ValueKind::Int { min: 1048576, max: 1073741824, unit: "B" }, Internal, [], "Preset Options", "Shows the size of write ahead log segments.", "";
    "wal_sender_timeout", "60000", MS, User, [], "Replication / Sending Servers", "Sets the maximum time to wait for WAL replication.", "";
    "wal_skip_threshold", "2048", KB, User, [], "Write-Ahead Log / Settings", "Minimum size of new file to fsync instead of writing WAL.", "";
    "work_mem", "4096", ValueKind::Int { min: 64, max: INT_MAX, unit: "kB" }, User, [Steers], "Resource Usage / Memory", "Sets the maximum memory to be used for query workspaces.", "This much memory can be used by each internal sort operation and hash table before switching to temporary disk files.";
    "xmlbinary", "base64", ValueKind::Enum(&["base64", "hex"]), User, [], "Client Connection Defaults / Statement Behavior", "Sets how binary values are to be encoded in XML.", "";
    "xmloption", "content", ValueKind::Enum(&["content", "document"]), User, [], "Client Connection Defaults / Statement Behavior", "Sets whether XML data is considered as documents or fragments.", "";
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_in_order() {
        let names: Vec<String> = SPECS.iter().map(|spec| spec.name.to_ascii_lowercase()).collect();
        assert!(names.is_sorted_by(|a, b| a < b), "{names:?}");
    }
}
