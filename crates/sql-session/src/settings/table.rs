//! The table of settings: what there is, what it is at first, what it takes.
//!
//! Those of PostgreSQL that steer what is not here (its planner's costs, its log) are accepted, checked and shown. Those
//! whose other values would make statements mean something else take only the value that holds.

/// How a setting's text is checked.
#[derive(Clone, Copy)]
pub(super) enum ValueKind {
    Bool,
    /// Integer in the unit given (none, `B`, `kB`, `8kB`, `ms`, `s`), with bounds.
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
    /// Shown, never set; how the refusal ends.
    Fixed(&'static str),
    /// Says who the session is: set through `sql_session::role` alone, which looks at memberships.
    Identity,
}

/// Who may set a setting, and when; as `pg_settings.context` says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Context {
    Internal,
    Postmaster,
    Sighup,
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

pub(super) struct Spec {
    pub name: &'static str,
    pub default: &'static str,
    pub kind: ValueKind,
    /// Reported to the client by ParameterStatus when it changes.
    pub report: bool,
    pub about: &'static str,
}

impl Spec {
    pub fn context(&self) -> Context {
        match self.kind {
            _ if self.name == crate::memory::NAME => Context::Sighup,
            ValueKind::Fixed("") => Context::Internal,
            ValueKind::Fixed(how) if how == NOW => Context::Sighup,
            ValueKind::Fixed(_) => Context::Postmaster,
            _ if SUPERUSER.contains(&self.name) => Context::Superuser,
            _ => Context::User,
        }
    }

    /// Left out where settings are listed, and by RESET ALL.
    pub(crate) fn is_unlisted(&self) -> bool {
        matches!(self.kind, ValueKind::Identity) || self.name == "is_superuser"
    }

    /// Shown only to superusers and members of `pg_read_all_settings`.
    pub fn is_secret(&self) -> bool {
        ["dynamic_library_path", "session_preload_libraries"].contains(&self.name)
    }
}

/// How the refusal to set what the configuration alone says ends.
const NOW: &str = " now";

/// What only superusers may set: what the server logs and measures, and what holds for more than the session.
const SUPERUSER: &[&str] = &[
    "commit_delay",
    "compute_query_id",
    "deadlock_timeout",
    "dynamic_library_path",
    "lc_messages",
    "lo_compat_privileges",
    "log_duration",
    "log_error_verbosity",
    "log_lock_waits",
    "log_min_duration_sample",
    "log_min_duration_statement",
    "log_min_error_statement",
    "log_min_messages",
    "log_parameter_max_length",
    "log_replication_commands",
    "log_statement",
    "log_statement_sample_rate",
    "log_temp_files",
    "log_transaction_sample_rate",
    "max_stack_depth",
    "session_preload_libraries",
    "session_replication_role",
    "temp_file_limit",
    "track_activities",
    "track_counts",
    "track_functions",
    "track_io_timing",
    "track_wal_io_timing",
    "update_process_title",
    "wal_compression",
];

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
    ($($name:literal, $default:expr, $kind:expr, $report:expr, $about:literal;)+) => {
        &[$(Spec { name: $name, default: $default, kind: $kind, report: $report, about: $about }),+]
    };
}

/// In order of name, case-folded.
#[rustfmt::skip]
pub(super) static SPECS: &[Spec] = specs! {
    "application_name", "", ValueKind::Text, true, "Sets the application name to be reported in statistics and logs.";
    "array_nulls", "on", ValueKind::Bool, false, "Enable input of NULL elements in arrays.";
    "authentication_timeout", "1min", ValueKind::Fixed(NOW), false, "Sets the maximum allowed time to complete client authentication.";
    "autovacuum", "on", ValueKind::Fixed(NOW), false, "Starts the autovacuum subprocess.";
    "backend_flush_after", "0", ValueKind::Int { min: 0, max: 256, unit: "8kB" }, false, "Number of pages after which previously performed writes are flushed to disk.";
    "backslash_quote", "safe_encoding", ValueKind::Enum(&["safe_encoding", "on", "off"]), false, "Sets whether \"\\'\" is allowed in string literals.";
    "block_size", "8192", ValueKind::Fixed(""), false, "Shows the size of a disk block.";
    "bytea_output", "hex", ValueKind::Enum(&["escape", "hex"]), false, "Sets the output format for bytea.";
    "check_function_bodies", "on", ValueKind::Bool, false, "Check routine bodies during CREATE FUNCTION and CREATE PROCEDURE.";
    "client_connection_check_interval", "0", MS, false, "Sets the time interval between checks for disconnection while running queries.";
    "client_encoding", "UTF8", ValueKind::Text, true, "Sets the client's character set encoding.";
    "client_min_messages", "notice", LEVELS, false, "Sets the message levels that are sent to the client.";
    "commit_delay", "0", ValueKind::Int { min: 0, max: 100000, unit: "" }, false, "Sets the delay in microseconds between transaction commit and flushing WAL to disk.";
    "commit_siblings", "5", ValueKind::Int { min: 0, max: 1000, unit: "" }, false, "Sets the minimum number of concurrent open transactions required before performing commit_delay.";
    "compute_query_id", "auto", ValueKind::Enum(&["auto", "regress", "on", "off"]), false, "Enables in-core computation of query identifiers.";
    "constraint_exclusion", "partition", ValueKind::Enum(&["partition", "on", "off"]), false, "Enables the planner to use constraints to optimize queries.";
    "cpu_index_tuple_cost", "0.005", ValueKind::Real { min: 0.0, max: f64::MAX, unit: "" }, false, "Sets the planner's estimate of the cost of processing each index entry during an index scan.";
    "cpu_operator_cost", "0.0025", ValueKind::Real { min: 0.0, max: f64::MAX, unit: "" }, false, "Sets the planner's estimate of the cost of processing each operator or function call.";
    "cpu_tuple_cost", "0.01", ValueKind::Real { min: 0.0, max: f64::MAX, unit: "" }, false, "Sets the planner's estimate of the cost of processing each tuple (row).";
    "cursor_tuple_fraction", "0.1", ValueKind::Real { min: 0.0, max: 1.0, unit: "" }, false, "Sets the planner's estimate of the fraction of a cursor's rows that will be retrieved.";
    "data_checksums", "off", ValueKind::Fixed(""), false, "Shows whether data checksums are turned on for this cluster.";
    "DateStyle", "ISO, MDY", ValueKind::Text, true, "Sets the display format for date and time values.";
    "deadlock_timeout", "1000", ValueKind::Int { min: 1, max: INT_MAX, unit: "ms" }, false, "Sets the time to wait on a lock before checking for deadlock.";
    "debug_pretty_print", "on", ValueKind::Bool, false, "Indents parse and plan tree displays.";
    "debug_print_parse", "off", ValueKind::Bool, false, "Logs each query's parse tree.";
    "debug_print_plan", "off", ValueKind::Bool, false, "Logs each query's execution plan.";
    "debug_print_rewritten", "off", ValueKind::Bool, false, "Logs each query's rewritten parse tree.";
    "default_statistics_target", "100", ValueKind::Int { min: 1, max: 10000, unit: "" }, false, "Sets the default statistics target.";
    "default_table_access_method", "heap", ValueKind::Text, false, "Sets the default table access method for new tables.";
    "default_tablespace", "", ValueKind::Text, false, "Sets the default tablespace to create tables and indexes in.";
    "default_text_search_config", "pg_catalog.simple", ValueKind::Text, false, "Sets default text search configuration.";
    "default_toast_compression", "pglz", ValueKind::Enum(&["pglz", "lz4"]), false, "Sets the default compression method for compressible values.";
    "default_transaction_deferrable", "off", ValueKind::Bool, false, "Sets the default deferrable status of new transactions.";
    "default_transaction_isolation", "read committed", ISOLATION, false, "Sets the transaction isolation level of each new transaction.";
    "default_transaction_read_only", "off", ValueKind::Bool, true, "Sets the default read-only status of new transactions.";
    "default_with_oids", "off", ValueKind::Only("off", &[]), false, "Create new tables with OIDs by default.";
    "dynamic_library_path", "$libdir", ValueKind::Text, false, "Sets the path for dynamically loadable modules.";
    "effective_cache_size", "524288", ValueKind::Int { min: 1, max: INT_MAX, unit: "8kB" }, false, "Sets the planner's assumption about the total size of the data caches.";
    "effective_io_concurrency", "1", ValueKind::Int { min: 0, max: 1000, unit: "" }, false, "Number of simultaneous requests that can be handled efficiently by the disk subsystem.";
    "enable_async_append", "on", ValueKind::Bool, false, "Enables the planner's use of async append plans.";
    "enable_bitmapscan", "on", ValueKind::Bool, false, "Enables the planner's use of bitmap-scan plans.";
    "enable_gathermerge", "on", ValueKind::Bool, false, "Enables the planner's use of gather merge plans.";
    "enable_hashagg", "on", ValueKind::Bool, false, "Enables the planner's use of hashed aggregation plans.";
    "enable_hashjoin", "on", ValueKind::Bool, false, "Enables the planner's use of hash join plans.";
    "enable_incremental_sort", "on", ValueKind::Bool, false, "Enables the planner's use of incremental sort steps.";
    "enable_indexonlyscan", "on", ValueKind::Bool, false, "Enables the planner's use of index-only-scan plans.";
    "enable_indexscan", "on", ValueKind::Bool, false, "Enables the planner's use of index-scan plans.";
    "enable_material", "on", ValueKind::Bool, false, "Enables the planner's use of materialization.";
    "enable_memoize", "on", ValueKind::Bool, false, "Enables the planner's use of memoization.";
    "enable_mergejoin", "on", ValueKind::Bool, false, "Enables the planner's use of merge join plans.";
    "enable_nestloop", "on", ValueKind::Bool, false, "Enables the planner's use of nested-loop join plans.";
    "enable_parallel_append", "on", ValueKind::Bool, false, "Enables the planner's use of parallel append plans.";
    "enable_parallel_hash", "on", ValueKind::Bool, false, "Enables the planner's use of parallel hash plans.";
    "enable_partition_pruning", "on", ValueKind::Bool, false, "Enables plan-time and execution-time partition pruning.";
    "enable_partitionwise_aggregate", "off", ValueKind::Bool, false, "Enables partitionwise aggregation and grouping.";
    "enable_partitionwise_join", "off", ValueKind::Bool, false, "Enables partitionwise join.";
    "enable_seqscan", "on", ValueKind::Bool, false, "Enables the planner's use of sequential-scan plans.";
    "enable_sort", "on", ValueKind::Bool, false, "Enables the planner's use of explicit sort steps.";
    "enable_tidscan", "on", ValueKind::Bool, false, "Enables the planner's use of TID scan plans.";
    "escape_string_warning", "on", ValueKind::Bool, false, "Warn about backslash escapes in ordinary string literals.";
    "exit_on_error", "off", ValueKind::Only("off", &[]), false, "Terminate session on any error.";
    "extra_float_digits", "1", ValueKind::Int { min: -15, max: 3, unit: "" }, false, "Sets the number of digits displayed for floating-point values.";
    "force_parallel_mode", "off", ValueKind::Enum(&["off", "on", "regress"]), false, "Forces use of parallel query facilities.";
    "from_collapse_limit", "8", ValueKind::Int { min: 1, max: INT_MAX, unit: "" }, false, "Sets the FROM-list size beyond which subqueries are not collapsed.";
    "fsync", "on", ValueKind::Fixed(NOW), false, "Forces synchronization of updates to disk.";
    "full_page_writes", "on", ValueKind::Fixed(NOW), false, "Writes full pages to WAL when first modified after a checkpoint.";
    "geqo", "on", ValueKind::Bool, false, "Enables genetic query optimization.";
    "geqo_effort", "5", ValueKind::Int { min: 1, max: 10, unit: "" }, false, "GEQO: effort is used to set the default for other GEQO parameters.";
    "geqo_generations", "0", ValueKind::Int { min: 0, max: INT_MAX, unit: "" }, false, "GEQO: number of iterations of the algorithm.";
    "geqo_pool_size", "0", ValueKind::Int { min: 0, max: INT_MAX, unit: "" }, false, "GEQO: number of individuals in the population.";
    "geqo_seed", "0", ValueKind::Real { min: 0.0, max: 1.0, unit: "" }, false, "GEQO: seed for random path selection.";
    "geqo_selection_bias", "2", ValueKind::Real { min: 1.5, max: 2.0, unit: "" }, false, "GEQO: selective pressure within the population.";
    "geqo_threshold", "12", ValueKind::Int { min: 2, max: INT_MAX, unit: "" }, false, "Sets the threshold of FROM items beyond which GEQO is used.";
    "gin_fuzzy_search_limit", "0", ValueKind::Int { min: 0, max: INT_MAX, unit: "" }, false, "Sets the maximum allowed result for exact search by GIN.";
    "gin_pending_list_limit", "4096", ValueKind::Int { min: 64, max: INT_MAX, unit: "kB" }, false, "Sets the maximum size of the pending list for GIN index.";
    "hash_mem_multiplier", "2", ValueKind::Real { min: 1.0, max: 1000.0, unit: "" }, false, "Multiple of work_mem to use for hash tables.";
    "idle_in_transaction_session_timeout", "0", MS, false, "Sets the maximum allowed idle time between queries, when in a transaction.";
    "idle_session_timeout", "0", MS, false, "Sets the maximum allowed idle time between queries, when not in a transaction.";
    "in_hot_standby", "off", ValueKind::Fixed(""), true, "Shows whether hot standby is currently active.";
    "integer_datetimes", "on", ValueKind::Fixed(""), true, "Shows whether datetimes are integer based.";
    "IntervalStyle", "postgres", ValueKind::Enum(&["postgres", "postgres_verbose", "sql_standard", "iso_8601"]), true, "Sets the display format for interval values.";
    "is_superuser", "on", ValueKind::Fixed(""), true, "Shows whether the current user is a superuser.";
    "jit", "off", ValueKind::Bool, false, "Allow JIT compilation.";
    "jit_above_cost", "100000", ValueKind::Real { min: -1.0, max: f64::MAX, unit: "" }, false, "Perform JIT compilation if query is more expensive.";
    "jit_expressions", "on", ValueKind::Bool, false, "Allow JIT compilation of expressions.";
    "jit_inline_above_cost", "500000", ValueKind::Real { min: -1.0, max: f64::MAX, unit: "" }, false, "Perform JIT inlining if query is more expensive.";
    "jit_optimize_above_cost", "500000", ValueKind::Real { min: -1.0, max: f64::MAX, unit: "" }, false, "Optimize JIT-compiled functions if query is more expensive.";
    "jit_tuple_deforming", "on", ValueKind::Bool, false, "Allow JIT compilation of tuple deforming.";
    "join_collapse_limit", "8", ValueKind::Int { min: 1, max: INT_MAX, unit: "" }, false, "Sets the FROM-list size beyond which JOIN constructs are not flattened.";
    "lc_collate", "C.UTF-8", ValueKind::Fixed(""), false, "Shows the collation order locale.";
    "lc_ctype", "C.UTF-8", ValueKind::Fixed(""), false, "Shows the character classification and case conversion locale.";
    "lc_messages", "C.UTF-8", ValueKind::Text, false, "Sets the language in which messages are displayed.";
    "lc_monetary", "C.UTF-8", ValueKind::Text, false, "Sets the locale for formatting monetary amounts.";
    "lc_numeric", "C.UTF-8", ValueKind::Text, false, "Sets the locale for formatting numbers.";
    "lc_time", "C.UTF-8", ValueKind::Text, false, "Sets the locale for formatting date and time values.";
    "lo_compat_privileges", "off", ValueKind::Bool, false, "Enables backward compatibility mode for privilege checks on large objects.";
    "local_preload_libraries", "", ValueKind::Text, false, "Lists unprivileged shared libraries to preload into each backend.";
    "lock_timeout", "0", MS, false, "Sets the maximum allowed duration of any wait for a lock.";
    "log_duration", "off", ValueKind::Bool, false, "Logs the duration of each completed SQL statement.";
    "log_error_verbosity", "default", ValueKind::Enum(&["terse", "default", "verbose"]), false, "Sets the verbosity of logged messages.";
    "log_lock_waits", "off", ValueKind::Bool, false, "Logs long lock waits.";
    "log_min_duration_sample", "-1", ValueKind::Int { min: -1, max: INT_MAX, unit: "ms" }, false, "Sets the minimum execution time above which a sample of statements will be logged. Sampling is determined by log_statement_sample_rate.";
    "log_min_duration_statement", "-1", ValueKind::Int { min: -1, max: INT_MAX, unit: "ms" }, false, "Sets the minimum execution time above which all statements will be logged.";
    "log_min_error_statement", "error", LOG_LEVELS, false, "Causes all statements generating error at or above this level to be logged.";
    "log_min_messages", "warning", LOG_LEVELS, false, "Sets the message levels that are logged.";
    "log_parameter_max_length", "-1", ValueKind::Int { min: -1, max: 1073741823, unit: "B" }, false, "Sets the maximum length in bytes of data logged for bind parameter values when logging statements.";
    "log_parameter_max_length_on_error", "0", ValueKind::Int { min: -1, max: 1073741823, unit: "B" }, false, "Sets the maximum length in bytes of data logged for bind parameter values when logging statements, on error.";
    "log_replication_commands", "off", ValueKind::Bool, false, "Logs each replication command.";
    "log_statement", "none", ValueKind::Enum(&["none", "ddl", "mod", "all"]), false, "Sets the type of statements logged.";
    "log_statement_sample_rate", "1", ValueKind::Real { min: 0.0, max: 1.0, unit: "" }, false, "Fraction of statements exceeding log_min_duration_sample to be logged.";
    "log_temp_files", "-1", ValueKind::Int { min: -1, max: INT_MAX, unit: "kB" }, false, "Log the use of temporary files larger than this number of kilobytes.";
    "log_timezone", "UTC", ValueKind::Fixed(NOW), false, "Sets the time zone to use in log messages.";
    "log_transaction_sample_rate", "0", ValueKind::Real { min: 0.0, max: 1.0, unit: "" }, false, "Sets the fraction of transactions from which to log all statements.";
    "logical_decoding_work_mem", "65536", ValueKind::Int { min: 64, max: INT_MAX, unit: "kB" }, false, "Sets the maximum memory to be used for logical decoding.";
    "maintenance_io_concurrency", "10", ValueKind::Int { min: 0, max: 1000, unit: "" }, false, "A variant of effective_io_concurrency that is used for maintenance work.";
    "maintenance_work_mem", "65536", ValueKind::Int { min: 1024, max: INT_MAX, unit: "kB" }, false, "Sets the maximum memory to be used for maintenance operations.";
    "max_connections", "100", ValueKind::Fixed(" without restarting the server"), false, "Sets the maximum number of concurrent connections.";
    "max_function_args", "100", ValueKind::Fixed(""), false, "Shows the maximum number of function arguments.";
    "max_identifier_length", "63", ValueKind::Fixed(""), false, "Shows the maximum identifier length.";
    "max_index_keys", "32", ValueKind::Fixed(""), false, "Shows the maximum number of index keys.";
    "max_locks_per_transaction", "64", ValueKind::Fixed(" without restarting the server"), false, "Sets the maximum number of locks per transaction.";
    "max_parallel_maintenance_workers", "2", ValueKind::Int { min: 0, max: 1024, unit: "" }, false, "Sets the maximum number of parallel processes per maintenance operation.";
    "max_parallel_workers", "8", ValueKind::Int { min: 0, max: 1024, unit: "" }, false, "Sets the maximum number of parallel workers that can be active at one time.";
    "max_parallel_workers_per_gather", "2", ValueKind::Int { min: 0, max: 1024, unit: "" }, false, "Sets the maximum number of parallel processes per executor node.";
    "max_prepared_transactions", "256", ValueKind::Fixed(" without restarting the server"), false, "Sets the maximum number of simultaneously prepared transactions.";
    "max_replication_slots", "10", ValueKind::Fixed(" without restarting the server"), false, "Sets the maximum number of simultaneously defined replication slots.";
    "max_stack_depth", "2048", ValueKind::Int { min: 100, max: INT_MAX, unit: "kB" }, false, "Sets the maximum stack depth, in kilobytes.";
    "max_wal_senders", "10", ValueKind::Fixed(" without restarting the server"), false, "Sets the maximum number of simultaneously running WAL sender processes.";
    "max_worker_processes", "8", ValueKind::Fixed(" without restarting the server"), false, "Maximum number of concurrent worker processes.";
    "memory_limit", "0", ValueKind::Int { min: 1024, max: 1 << 40, unit: "kB" }, false, "Sets the memory that the server may use for rows, indexes and what sessions hold.";
    "min_parallel_index_scan_size", "64", ValueKind::Int { min: 0, max: 715827882, unit: "8kB" }, false, "Sets the minimum amount of index data for a parallel scan.";
    "min_parallel_table_scan_size", "1024", ValueKind::Int { min: 0, max: 715827882, unit: "8kB" }, false, "Sets the minimum amount of table data for a parallel scan.";
    "parallel_leader_participation", "on", ValueKind::Bool, false, "Controls whether Gather and Gather Merge also run subplans.";
    "parallel_setup_cost", "1000", ValueKind::Real { min: 0.0, max: f64::MAX, unit: "" }, false, "Sets the planner's estimate of the cost of starting up worker processes for parallel query.";
    "parallel_tuple_cost", "0.1", ValueKind::Real { min: 0.0, max: f64::MAX, unit: "" }, false, "Sets the planner's estimate of the cost of passing each tuple (row) from worker to leader backend.";
    "password_encryption", "scram-sha-256", ValueKind::Enum(&["md5", "scram-sha-256"]), false, "Chooses the algorithm for encrypting passwords.";
    "plan_cache_mode", "auto", ValueKind::Enum(&["auto", "force_generic_plan", "force_custom_plan"]), false, "Controls the planner's selection of custom or generic plan.";
    "quote_all_identifiers", "off", ValueKind::Bool, false, "When generating SQL fragments, quote all identifiers.";
    "random_page_cost", "4", ValueKind::Real { min: 0.0, max: f64::MAX, unit: "" }, false, "Sets the planner's estimate of the cost of a nonsequentially fetched disk page.";
    "recursive_worktable_factor", "10", ValueKind::Real { min: 0.001, max: 1e6, unit: "" }, false, "Sets the planner's estimate of the average size of a recursive query's working table.";
    "restrict_nonsystem_relation_kind", "", ValueKind::Text, false, "Prohibits access to non-system relations of specified kinds.";
    "role", "none", ValueKind::Identity, false, "Sets the current role.";
    "row_security", "on", ValueKind::Bool, false, "Enable row security.";
    "search_path", "\"$user\", public", ValueKind::Text, false, "Sets the schema search order for names that are not schema-qualified.";
    "segment_size", "1GB", ValueKind::Fixed(""), false, "Shows the number of pages per disk file.";
    "seq_page_cost", "1", ValueKind::Real { min: 0.0, max: f64::MAX, unit: "" }, false, "Sets the planner's estimate of the cost of a sequentially fetched disk page.";
    "server_encoding", "UTF8", ValueKind::Fixed(""), true, "Shows the server (database) character set encoding.";
    "server_version", sql_functions::SERVER_VERSION, ValueKind::Fixed(""), true, "Shows the server version.";
    "server_version_num", "150018", ValueKind::Fixed(""), false, "Shows the server version as an integer.";
    "session_authorization", "postgres", ValueKind::Identity, true, "Shows the session user name.";
    "session_preload_libraries", "", ValueKind::Text, false, "Lists shared libraries to preload into each backend.";
    "session_replication_role", "origin", ValueKind::Only("origin", &["origin", "replica", "local"]), false, "Sets the session's behavior for triggers and rewrite rules.";
    "standard_conforming_strings", "on", ValueKind::Bool, true, "Causes '...' strings to treat backslashes literally.";
    "statement_timeout", "0", MS, false, "Sets the maximum allowed duration of any statement.";
    "stats_fetch_consistency", "cache", ValueKind::Enum(&["none", "cache", "snapshot"]), false, "Sets the consistency of accesses to statistics data.";
    "superuser_reserved_connections", "3", ValueKind::Fixed(" without restarting the server"), false, "Sets the number of connection slots reserved for superusers.";
    "synchronize_seqscans", "on", ValueKind::Bool, false, "Enable synchronized sequential scans.";
    "synchronous_commit", "on", ValueKind::Enum(&["local", "remote_write", "remote_apply", "on", "off"]), false, "Sets the current transaction's synchronization level.";
    "tcp_keepalives_count", "0", ValueKind::Int { min: 0, max: INT_MAX, unit: "" }, false, "Maximum number of TCP keepalive retransmits.";
    "tcp_keepalives_idle", "0", ValueKind::Int { min: 0, max: INT_MAX, unit: "s" }, false, "Time between issuing TCP keepalives.";
    "tcp_keepalives_interval", "0", ValueKind::Int { min: 0, max: INT_MAX, unit: "s" }, false, "Time between TCP keepalive retransmits.";
    "tcp_user_timeout", "0", MS, false, "TCP user timeout.";
    "temp_buffers", "1024", ValueKind::Int { min: 100, max: 1073741823, unit: "8kB" }, false, "Sets the maximum number of temporary buffers used by each session.";
    "temp_file_limit", "-1", ValueKind::Int { min: -1, max: INT_MAX, unit: "kB" }, false, "Limits the total size of all temporary files used by each process.";
    "temp_tablespaces", "", ValueKind::Text, false, "Sets the tablespace(s) to use for temporary tables and sort files.";
    "TimeZone", "UTC", ValueKind::Text, true, "Sets the time zone for displaying and interpreting time stamps.";
    "track_activities", "on", ValueKind::Bool, false, "Collects information about executing commands.";
    "track_counts", "on", ValueKind::Bool, false, "Collects statistics on database activity.";
    "track_functions", "none", ValueKind::Enum(&["none", "pl", "all"]), false, "Collects function-level statistics on database activity.";
    "track_io_timing", "off", ValueKind::Bool, false, "Collects timing statistics for database I/O activity.";
    "track_wal_io_timing", "off", ValueKind::Bool, false, "Collects timing statistics for WAL I/O activity.";
    "transaction_deferrable", "off", ValueKind::Bool, false, "Whether to defer a read-only serializable transaction.";
    "transaction_isolation", "read committed", ISOLATION, false, "Sets the current transaction's isolation level.";
    "transaction_read_only", "off", ValueKind::Bool, false, "Sets the current transaction's read-only status.";
    "transform_null_equals", "off", ValueKind::Only("off", &[]), false, "Treats \"expr=NULL\" as \"expr IS NULL\".";
    "update_process_title", "on", ValueKind::Bool, false, "Updates the process title to show the active SQL command.";
    "vacuum_cost_delay", "0", ValueKind::Real { min: 0.0, max: 100.0, unit: "ms" }, false, "Vacuum cost delay in milliseconds.";
    "vacuum_cost_limit", "200", ValueKind::Int { min: 1, max: 10000, unit: "" }, false, "Vacuum cost amount available before napping.";
    "vacuum_cost_page_dirty", "20", ValueKind::Int { min: 0, max: 10000, unit: "" }, false, "Vacuum cost for a page dirtied by vacuum.";
    "vacuum_cost_page_hit", "1", ValueKind::Int { min: 0, max: 10000, unit: "" }, false, "Vacuum cost for a page found in the buffer cache.";
    "vacuum_cost_page_miss", "2", ValueKind::Int { min: 0, max: 10000, unit: "" }, false, "Vacuum cost for a page not found in the buffer cache.";
    "vacuum_failsafe_age", "1600000000", ValueKind::Int { min: 0, max: 2100000000, unit: "" }, false, "Age at which VACUUM should trigger failsafe to avoid a wraparound outage.";
    "vacuum_freeze_min_age", "50000000", ValueKind::Int { min: 0, max: 1000000000, unit: "" }, false, "Minimum age at which VACUUM should freeze a table row.";
    "vacuum_freeze_table_age", "150000000", ValueKind::Int { min: 0, max: 2000000000, unit: "" }, false, "Age at which VACUUM should scan whole table to freeze tuples.";
    "vacuum_multixact_failsafe_age", "1600000000", ValueKind::Int { min: 0, max: 2100000000, unit: "" }, false, "Multixact age at which VACUUM should trigger failsafe to avoid a wraparound outage.";
    "vacuum_multixact_freeze_min_age", "5000000", ValueKind::Int { min: 0, max: 1000000000, unit: "" }, false, "Minimum age at which VACUUM should freeze a MultiXactId in a table row.";
    "vacuum_multixact_freeze_table_age", "150000000", ValueKind::Int { min: 0, max: 2000000000, unit: "" }, false, "Multixact age at which VACUUM should scan whole table to freeze tuples.";
    "wal_block_size", "8192", ValueKind::Fixed(""), false, "Shows the block size in the write ahead log.";
    "wal_compression", "off", ValueKind::Enum(&["pglz", "lz4", "zstd", "on", "off"]), false, "Compresses full-page writes written in WAL file with specified method.";
    "wal_level", "replica", ValueKind::Fixed(" without restarting the server"), false, "Sets the level of information written to the WAL.";
    "wal_segment_size", "16MB", ValueKind::Fixed(""), false, "Shows the size of write ahead log segments.";
    "wal_sender_timeout", "60000", MS, false, "Sets the maximum time to wait for WAL replication.";
    "wal_skip_threshold", "2048", KB, false, "Minimum size of new file to fsync instead of writing WAL.";
    "work_mem", "4096", ValueKind::Int { min: 64, max: INT_MAX, unit: "kB" }, false, "Sets the maximum memory to be used for query workspaces.";
    "xmlbinary", "base64", ValueKind::Enum(&["base64", "hex"]), false, "Sets how binary values are to be encoded in XML.";
    "xmloption", "content", ValueKind::Enum(&["content", "document"]), false, "Sets whether XML data is considered as documents or fragments.";
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_in_order() {
        let names: Vec<String> = SPECS.iter().map(|spec| spec.name.to_ascii_lowercase()).collect();
        assert!(names.is_sorted_by(|a, b| a < b), "{names:?}");
    }

    #[test]
    fn restricted_settings_exist() {
        let unknown: Vec<_> = SUPERUSER.iter().filter(|name| !SPECS.iter().any(|spec| spec.name == **name)).collect();
        assert!(unknown.is_empty(), "{unknown:?}");
    }
}
