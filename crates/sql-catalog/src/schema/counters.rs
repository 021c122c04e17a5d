//! The views of `pg_catalog` that PostgreSQL counts in.

use base::Oid;
use types::oid::*;

use crate::{SystemRelation, activity, counters, empty, names};

/// In the order of their names.
#[rustfmt::skip]
pub(super) static RELATIONS: &[SystemRelation] = &[
    SystemRelation {
        oid: Oid(12005),
        schema: "pg_catalog",
        name: "pg_shadow",
        columns: &[
            ("usename", NAME), ("usesysid", OID), ("usecreatedb", BOOL), ("usesuper", BOOL), ("userepl", BOOL),
            ("usebypassrls", BOOL), ("passwd", TEXT), ("valuntil", TIMESTAMPTZ), ("useconfig", TEXT_ARRAY),
        ],
        rows: names::shadow,
    },
    SystemRelation {
        oid: Oid(12183),
        schema: "pg_catalog",
        name: "pg_stat_all_indexes",
        columns: &[
            ("relid", OID), ("indexrelid", OID), ("schemaname", NAME), ("relname", NAME), ("indexrelname", NAME),
            ("idx_scan", INT8), ("idx_tup_read", INT8), ("idx_tup_fetch", INT8),
        ],
        rows: counters::indexes,
    },
    SystemRelation {
        oid: Oid(12142),
        schema: "pg_catalog",
        name: "pg_stat_all_tables",
        columns: &[
            ("relid", OID), ("schemaname", NAME), ("relname", NAME), ("seq_scan", INT8), ("seq_tup_read", INT8),
            ("idx_scan", INT8), ("idx_tup_fetch", INT8), ("n_tup_ins", INT8), ("n_tup_upd", INT8), ("n_tup_del", INT8),
            ("n_tup_hot_upd", INT8), ("n_live_tup", INT8), ("n_dead_tup", INT8), ("n_mod_since_analyze", INT8),
            ("n_ins_since_vacuum", INT8), ("last_vacuum", TIMESTAMPTZ), ("last_autovacuum", TIMESTAMPTZ),
            ("last_analyze", TIMESTAMPTZ), ("last_autoanalyze", TIMESTAMPTZ), ("vacuum_count", INT8),
            ("autovacuum_count", INT8), ("analyze_count", INT8), ("autoanalyze_count", INT8),
        ],
        rows: counters::tables,
    },
    SystemRelation {
        oid: Oid(12285),
        schema: "pg_catalog",
        name: "pg_stat_archiver",
        columns: &[
            ("archived_count", INT8), ("last_archived_wal", TEXT), ("last_archived_time", TIMESTAMPTZ),
            ("failed_count", INT8), ("last_failed_wal", TEXT), ("last_failed_time", TIMESTAMPTZ),
            ("stats_reset", TIMESTAMPTZ),
        ],
        rows: counters::archiver,
    },
    SystemRelation {
        oid: Oid(12289),
        schema: "pg_catalog",
        name: "pg_stat_bgwriter",
        columns: &[
            ("checkpoints_timed", INT8), ("checkpoints_req", INT8), ("checkpoint_write_time", FLOAT8),
            ("checkpoint_sync_time", FLOAT8), ("buffers_checkpoint", INT8), ("buffers_clean", INT8),
            ("maxwritten_clean", INT8), ("buffers_backend", INT8), ("buffers_backend_fsync", INT8),
            ("buffers_alloc", INT8), ("stats_reset", TIMESTAMPTZ),
        ],
        rows: counters::uncounted,
    },
    SystemRelation {
        oid: Oid(12271),
        schema: "pg_catalog",
        name: "pg_stat_database_conflicts",
        columns: &[
            ("datid", OID), ("datname", NAME), ("confl_tablespace", INT8), ("confl_lock", INT8),
            ("confl_snapshot", INT8), ("confl_bufferpin", INT8), ("confl_deadlock", INT8),
        ],
        rows: counters::conflicts,
    },
    SystemRelation {
        oid: Oid(12253),
        schema: "pg_catalog",
        name: "pg_stat_gssapi",
        columns: &[
            ("pid", INT4), ("gss_authenticated", BOOL), ("principal", TEXT), ("encrypted", BOOL),
        ],
        rows: activity::gssapi,
    },
    SystemRelation {
        oid: Oid(12297),
        schema: "pg_catalog",
        name: "pg_stat_progress_analyze",
        columns: &[
            ("pid", INT4), ("datid", OID), ("datname", NAME), ("relid", OID), ("phase", TEXT),
            ("sample_blks_total", INT8), ("sample_blks_scanned", INT8), ("ext_stats_total", INT8),
            ("ext_stats_computed", INT8), ("child_tables_total", INT8), ("child_tables_done", INT8),
            ("current_child_table_relid", OID),
        ],
        rows: empty,
    },
    SystemRelation {
        oid: Oid(12317),
        schema: "pg_catalog",
        name: "pg_stat_progress_basebackup",
        columns: &[
            ("pid", INT4), ("phase", TEXT), ("backup_total", INT8), ("backup_streamed", INT8),
            ("tablespaces_total", INT8), ("tablespaces_streamed", INT8),
        ],
        rows: empty,
    },
    SystemRelation {
        oid: Oid(12307),
        schema: "pg_catalog",
        name: "pg_stat_progress_cluster",
        columns: &[
            ("pid", INT4), ("datid", OID), ("datname", NAME), ("relid", OID), ("command", TEXT), ("phase", TEXT),
            ("cluster_index_relid", OID), ("heap_tuples_scanned", INT8), ("heap_tuples_written", INT8),
            ("heap_blks_total", INT8), ("heap_blks_scanned", INT8), ("index_rebuild_count", INT8),
        ],
        rows: empty,
    },
    SystemRelation {
        oid: Oid(12322),
        schema: "pg_catalog",
        name: "pg_stat_progress_copy",
        columns: &[
            ("pid", INT4), ("datid", OID), ("datname", NAME), ("relid", OID), ("command", TEXT), ("type", TEXT),
            ("bytes_processed", INT8), ("bytes_total", INT8), ("tuples_processed", INT8), ("tuples_excluded", INT8),
        ],
        rows: empty,
    },
    SystemRelation {
        oid: Oid(12312),
        schema: "pg_catalog",
        name: "pg_stat_progress_create_index",
        columns: &[
            ("pid", INT4), ("datid", OID), ("datname", NAME), ("relid", OID), ("index_relid", OID), ("command", TEXT),
            ("phase", TEXT), ("lockers_total", INT8), ("lockers_done", INT8), ("current_locker_pid", INT8),
            ("blocks_total", INT8), ("blocks_done", INT8), ("tuples_total", INT8), ("tuples_done", INT8),
            ("partitions_total", INT8), ("partitions_done", INT8),
        ],
        rows: empty,
    },
    SystemRelation {
        oid: Oid(12302),
        schema: "pg_catalog",
        name: "pg_stat_progress_vacuum",
        columns: &[
            ("pid", INT4), ("datid", OID), ("datname", NAME), ("relid", OID), ("phase", TEXT),
            ("heap_blks_total", INT8), ("heap_blks_scanned", INT8), ("heap_blks_vacuumed", INT8),
            ("index_vacuum_count", INT8), ("max_dead_tuples", INT8), ("num_dead_tuples", INT8),
        ],
        rows: empty,
    },
    SystemRelation {
        oid: Oid(12240),
        schema: "pg_catalog",
        name: "pg_stat_recovery_prefetch",
        columns: &[
            ("stats_reset", TIMESTAMPTZ), ("prefetch", INT8), ("hit", INT8), ("skip_init", INT8), ("skip_new", INT8),
            ("skip_fpw", INT8), ("skip_rep", INT8), ("wal_distance", INT4), ("block_distance", INT4),
            ("io_depth", INT4),
        ],
        rows: empty,
    },
    SystemRelation {
        oid: Oid(12227),
        schema: "pg_catalog",
        name: "pg_stat_replication",
        columns: &[
            ("pid", INT4), ("usesysid", OID), ("usename", NAME), ("application_name", TEXT), ("client_addr", INET),
            ("client_hostname", TEXT), ("client_port", INT4), ("backend_start", TIMESTAMPTZ), ("backend_xmin", XID),
            ("state", TEXT), ("sent_lsn", TEXT), ("write_lsn", TEXT), ("flush_lsn", TEXT), ("replay_lsn", TEXT),
            ("write_lag", INTERVAL), ("flush_lag", INTERVAL), ("replay_lag", INTERVAL), ("sync_priority", INT4),
            ("sync_state", TEXT), ("reply_time", TIMESTAMPTZ),
        ],
        rows: empty,
    },
    SystemRelation {
        oid: Oid(12262),
        schema: "pg_catalog",
        name: "pg_stat_replication_slots",
        columns: &[
            ("slot_name", TEXT), ("spill_txns", INT8), ("spill_count", INT8), ("spill_bytes", INT8),
            ("stream_txns", INT8), ("stream_count", INT8), ("stream_bytes", INT8), ("total_txns", INT8),
            ("total_bytes", INT8), ("stats_reset", TIMESTAMPTZ),
        ],
        rows: empty,
    },
    SystemRelation {
        oid: Oid(12232),
        schema: "pg_catalog",
        name: "pg_stat_slru",
        columns: &[
            ("name", TEXT), ("blks_zeroed", INT8), ("blks_hit", INT8), ("blks_read", INT8), ("blks_written", INT8),
            ("blks_exists", INT8), ("flushes", INT8), ("truncates", INT8), ("stats_reset", TIMESTAMPTZ),
        ],
        rows: empty,
    },
    SystemRelation {
        oid: Oid(12244),
        schema: "pg_catalog",
        name: "pg_stat_subscription",
        columns: &[
            ("subid", OID), ("subname", NAME), ("pid", INT4), ("relid", OID), ("received_lsn", TEXT),
            ("last_msg_send_time", TIMESTAMPTZ), ("last_msg_receipt_time", TIMESTAMPTZ), ("latest_end_lsn", TEXT),
            ("latest_end_time", TIMESTAMPTZ),
        ],
        rows: empty,
    },
    SystemRelation {
        oid: Oid(12336),
        schema: "pg_catalog",
        name: "pg_stat_subscription_stats",
        columns: &[
            ("subid", OID), ("subname", NAME), ("apply_error_count", INT8), ("sync_error_count", INT8),
            ("stats_reset", TIMESTAMPTZ),
        ],
        rows: empty,
    },
    SystemRelation {
        oid: Oid(12188),
        schema: "pg_catalog",
        name: "pg_stat_sys_indexes",
        columns: &[
            ("relid", OID), ("indexrelid", OID), ("schemaname", NAME), ("relname", NAME), ("indexrelname", NAME),
            ("idx_scan", INT8), ("idx_tup_read", INT8), ("idx_tup_fetch", INT8),
        ],
        rows: counters::indexes,
    },
    SystemRelation {
        oid: Oid(12152),
        schema: "pg_catalog",
        name: "pg_stat_sys_tables",
        columns: &[
            ("relid", OID), ("schemaname", NAME), ("relname", NAME), ("seq_scan", INT8), ("seq_tup_read", INT8),
            ("idx_scan", INT8), ("idx_tup_fetch", INT8), ("n_tup_ins", INT8), ("n_tup_upd", INT8), ("n_tup_del", INT8),
            ("n_tup_hot_upd", INT8), ("n_live_tup", INT8), ("n_dead_tup", INT8), ("n_mod_since_analyze", INT8),
            ("n_ins_since_vacuum", INT8), ("last_vacuum", TIMESTAMPTZ), ("last_autovacuum", TIMESTAMPTZ),
            ("last_analyze", TIMESTAMPTZ), ("last_autoanalyze", TIMESTAMPTZ), ("vacuum_count", INT8),
            ("autovacuum_count", INT8), ("analyze_count", INT8), ("autoanalyze_count", INT8),
        ],
        rows: counters::tables,
    },
    SystemRelation {
        oid: Oid(12275),
        schema: "pg_catalog",
        name: "pg_stat_user_functions",
        columns: &[
            ("funcid", OID), ("schemaname", NAME), ("funcname", NAME), ("calls", INT8), ("total_time", FLOAT8),
            ("self_time", FLOAT8),
        ],
        rows: empty,
    },
    SystemRelation {
        oid: Oid(12293),
        schema: "pg_catalog",
        name: "pg_stat_wal",
        columns: &[
            ("wal_records", INT8), ("wal_fpi", INT8), ("wal_bytes", NUMERIC), ("wal_buffers_full", INT8),
            ("wal_write", INT8), ("wal_sync", INT8), ("wal_write_time", FLOAT8), ("wal_sync_time", FLOAT8),
            ("stats_reset", TIMESTAMPTZ),
        ],
        rows: counters::uncounted,
    },
    SystemRelation {
        oid: Oid(12236),
        schema: "pg_catalog",
        name: "pg_stat_wal_receiver",
        columns: &[
            ("pid", INT4), ("status", TEXT), ("receive_start_lsn", TEXT), ("receive_start_tli", INT4),
            ("written_lsn", TEXT), ("flushed_lsn", TEXT), ("received_tli", INT4), ("last_msg_send_time", TIMESTAMPTZ),
            ("last_msg_receipt_time", TIMESTAMPTZ), ("latest_end_lsn", TEXT), ("latest_end_time", TIMESTAMPTZ),
            ("slot_name", TEXT), ("sender_host", TEXT), ("sender_port", INT4), ("conninfo", TEXT),
        ],
        rows: empty,
    },
    SystemRelation {
        oid: Oid(12147),
        schema: "pg_catalog",
        name: "pg_stat_xact_all_tables",
        columns: &[
            ("relid", OID), ("schemaname", NAME), ("relname", NAME), ("seq_scan", INT8), ("seq_tup_read", INT8),
            ("idx_scan", INT8), ("idx_tup_fetch", INT8), ("n_tup_ins", INT8), ("n_tup_upd", INT8), ("n_tup_del", INT8),
            ("n_tup_hot_upd", INT8),
        ],
        rows: counters::tables,
    },
    SystemRelation {
        oid: Oid(12157),
        schema: "pg_catalog",
        name: "pg_stat_xact_sys_tables",
        columns: &[
            ("relid", OID), ("schemaname", NAME), ("relname", NAME), ("seq_scan", INT8), ("seq_tup_read", INT8),
            ("idx_scan", INT8), ("idx_tup_fetch", INT8), ("n_tup_ins", INT8), ("n_tup_upd", INT8), ("n_tup_del", INT8),
            ("n_tup_hot_upd", INT8),
        ],
        rows: counters::tables,
    },
    SystemRelation {
        oid: Oid(12280),
        schema: "pg_catalog",
        name: "pg_stat_xact_user_functions",
        columns: &[
            ("funcid", OID), ("schemaname", NAME), ("funcname", NAME), ("calls", INT8), ("total_time", FLOAT8),
            ("self_time", FLOAT8),
        ],
        rows: empty,
    },
    SystemRelation {
        oid: Oid(12166),
        schema: "pg_catalog",
        name: "pg_stat_xact_user_tables",
        columns: &[
            ("relid", OID), ("schemaname", NAME), ("relname", NAME), ("seq_scan", INT8), ("seq_tup_read", INT8),
            ("idx_scan", INT8), ("idx_tup_fetch", INT8), ("n_tup_ins", INT8), ("n_tup_upd", INT8), ("n_tup_del", INT8),
            ("n_tup_hot_upd", INT8),
        ],
        rows: counters::tables,
    },
    SystemRelation {
        oid: Oid(12196),
        schema: "pg_catalog",
        name: "pg_statio_all_indexes",
        columns: &[
            ("relid", OID), ("indexrelid", OID), ("schemaname", NAME), ("relname", NAME), ("indexrelname", NAME),
            ("idx_blks_read", INT8), ("idx_blks_hit", INT8),
        ],
        rows: counters::indexes,
    },
    SystemRelation {
        oid: Oid(12209),
        schema: "pg_catalog",
        name: "pg_statio_all_sequences",
        columns: &[
            ("relid", OID), ("schemaname", NAME), ("relname", NAME), ("blks_read", INT8), ("blks_hit", INT8),
        ],
        rows: counters::sequences,
    },
    SystemRelation {
        oid: Oid(12170),
        schema: "pg_catalog",
        name: "pg_statio_all_tables",
        columns: &[
            ("relid", OID), ("schemaname", NAME), ("relname", NAME), ("heap_blks_read", INT8), ("heap_blks_hit", INT8),
            ("idx_blks_read", INT8), ("idx_blks_hit", INT8), ("toast_blks_read", INT8), ("toast_blks_hit", INT8),
            ("tidx_blks_read", INT8), ("tidx_blks_hit", INT8),
        ],
        rows: counters::tables,
    },
    SystemRelation {
        oid: Oid(12201),
        schema: "pg_catalog",
        name: "pg_statio_sys_indexes",
        columns: &[
            ("relid", OID), ("indexrelid", OID), ("schemaname", NAME), ("relname", NAME), ("indexrelname", NAME),
            ("idx_blks_read", INT8), ("idx_blks_hit", INT8),
        ],
        rows: counters::indexes,
    },
    SystemRelation {
        oid: Oid(12214),
        schema: "pg_catalog",
        name: "pg_statio_sys_sequences",
        columns: &[
            ("relid", OID), ("schemaname", NAME), ("relname", NAME), ("blks_read", INT8), ("blks_hit", INT8),
        ],
        rows: counters::sequences,
    },
    SystemRelation {
        oid: Oid(12175),
        schema: "pg_catalog",
        name: "pg_statio_sys_tables",
        columns: &[
            ("relid", OID), ("schemaname", NAME), ("relname", NAME), ("heap_blks_read", INT8), ("heap_blks_hit", INT8),
            ("idx_blks_read", INT8), ("idx_blks_hit", INT8), ("toast_blks_read", INT8), ("toast_blks_hit", INT8),
            ("tidx_blks_read", INT8), ("tidx_blks_hit", INT8),
        ],
        rows: counters::tables,
    },
    SystemRelation {
        oid: Oid(12205),
        schema: "pg_catalog",
        name: "pg_statio_user_indexes",
        columns: &[
            ("relid", OID), ("indexrelid", OID), ("schemaname", NAME), ("relname", NAME), ("indexrelname", NAME),
            ("idx_blks_read", INT8), ("idx_blks_hit", INT8),
        ],
        rows: counters::indexes,
    },
    SystemRelation {
        oid: Oid(12218),
        schema: "pg_catalog",
        name: "pg_statio_user_sequences",
        columns: &[
            ("relid", OID), ("schemaname", NAME), ("relname", NAME), ("blks_read", INT8), ("blks_hit", INT8),
        ],
        rows: counters::sequences,
    },
    SystemRelation {
        oid: Oid(12179),
        schema: "pg_catalog",
        name: "pg_statio_user_tables",
        columns: &[
            ("relid", OID), ("schemaname", NAME), ("relname", NAME), ("heap_blks_read", INT8), ("heap_blks_hit", INT8),
            ("idx_blks_read", INT8), ("idx_blks_hit", INT8), ("toast_blks_read", INT8), ("toast_blks_hit", INT8),
            ("tidx_blks_read", INT8), ("tidx_blks_hit", INT8),
        ],
        rows: counters::tables,
    },
];
