//! Catalogs and views of `pg_catalog` about things that Nyala does not have: clients read them all the same.

use base::Oid;
use types::oid::*;

use crate::{SystemRelation, empty, extensions, grants, login_rules, operator_classes, time_zones};

/// In the order of their names.
#[rustfmt::skip]
pub(super) static RELATIONS: &[SystemRelation] = &[
    SystemRelation {
        oid: Oid(2602),
        schema: "pg_catalog",
        name: "pg_amop",
        columns: &[
            ("oid", OID), ("amopfamily", OID), ("amoplefttype", OID), ("amoprighttype", OID), ("amopstrategy", INT2),
            ("amoppurpose", CHAR), ("amopopr", OID), ("amopmethod", OID), ("amopsortfamily", OID),
        ],
        rows: empty,
    },
    SystemRelation {
        oid: Oid(2603),
        schema: "pg_catalog",
        name: "pg_amproc",
        columns: &[
            ("oid", OID), ("amprocfamily", OID), ("amproclefttype", OID), ("amprocrighttype", OID),
            ("amprocnum", INT2), ("amproc", REGPROC),
        ],
        rows: empty,
    },
    SystemRelation {
        oid: Oid(12085),
        schema: "pg_catalog",
        name: "pg_available_extension_versions",
        columns: &[
            ("name", NAME), ("version", TEXT), ("installed", BOOL), ("superuser", BOOL), ("trusted", BOOL),
            ("relocatable", BOOL), ("schema", NAME), ("requires", NAME_ARRAY), ("comment", TEXT),
        ],
        rows: extensions::versions,
    },
    SystemRelation {
        oid: Oid(12081),
        schema: "pg_catalog",
        name: "pg_available_extensions",
        columns: &[
            ("name", NAME), ("default_version", TEXT), ("installed_version", TEXT), ("comment", TEXT),
        ],
        rows: extensions::available,
    },
    SystemRelation {
        oid: Oid(12130),
        schema: "pg_catalog",
        name: "pg_config",
        columns: &[
            ("name", TEXT), ("setting", TEXT),
        ],
        rows: empty,
    },
    SystemRelation {
        oid: Oid(12110),
        schema: "pg_catalog",
        name: "pg_file_settings",
        columns: &[
            ("sourcefile", TEXT), ("sourceline", INT4), ("seqno", INT4), ("name", TEXT), ("setting", TEXT),
            ("applied", BOOL), ("error", TEXT),
        ],
        rows: empty,
    },
    SystemRelation {
        oid: Oid(12114),
        schema: "pg_catalog",
        name: "pg_hba_file_rules",
        columns: &[
            ("line_number", INT4), ("type", TEXT), ("database", TEXT_ARRAY), ("user_name", TEXT_ARRAY),
            ("address", TEXT), ("netmask", TEXT), ("auth_method", TEXT), ("options", TEXT_ARRAY), ("error", TEXT),
        ],
        rows: login_rules::rows,
    },
    SystemRelation {
        oid: Oid(12118),
        schema: "pg_catalog",
        name: "pg_ident_file_mappings",
        columns: &[
            ("line_number", INT4), ("map_name", TEXT), ("sys_name", TEXT), ("pg_username", TEXT), ("error", TEXT),
        ],
        rows: empty,
    },
    SystemRelation {
        oid: Oid(3394),
        schema: "pg_catalog",
        name: "pg_init_privs",
        columns: &[
            ("objoid", OID), ("classoid", OID), ("objsubid", INT4), ("privtype", CHAR), ("initprivs", TEXT_ARRAY),
        ],
        rows: grants::initial,
    },
    SystemRelation {
        oid: Oid(2613),
        schema: "pg_catalog",
        name: "pg_largeobject",
        columns: &[
            ("loid", OID), ("pageno", INT4), ("data", BYTEA),
        ],
        rows: empty,
    },
    SystemRelation {
        oid: Oid(2753),
        schema: "pg_catalog",
        name: "pg_opfamily",
        columns: &[
            ("oid", OID), ("opfmethod", OID), ("opfname", NAME), ("opfnamespace", OID), ("opfowner", OID),
        ],
        rows: operator_classes::families,
    },
    SystemRelation {
        oid: Oid(6243),
        schema: "pg_catalog",
        name: "pg_parameter_acl",
        columns: &[
            ("oid", OID), ("parname", TEXT), ("paracl", TEXT_ARRAY),
        ],
        rows: empty,
    },
    SystemRelation {
        oid: Oid(12018),
        schema: "pg_catalog",
        name: "pg_policies",
        columns: &[
            ("schemaname", NAME), ("tablename", NAME), ("policyname", NAME), ("permissive", TEXT),
            ("roles", NAME_ARRAY), ("cmd", TEXT), ("qual", TEXT), ("with_check", TEXT),
        ],
        rows: empty,
    },
    SystemRelation {
        oid: Oid(12068),
        schema: "pg_catalog",
        name: "pg_publication_tables",
        columns: &[
            ("pubname", NAME), ("schemaname", NAME), ("tablename", NAME), ("attnames", NAME_ARRAY),
            ("rowfilter", TEXT),
        ],
        rows: empty,
    },
    SystemRelation {
        oid: Oid(6000),
        schema: "pg_catalog",
        name: "pg_replication_origin",
        columns: &[
            ("roident", OID), ("roname", TEXT),
        ],
        rows: empty,
    },
    SystemRelation {
        oid: Oid(12332),
        schema: "pg_catalog",
        name: "pg_replication_origin_status",
        columns: &[
            ("local_id", OID), ("external_id", TEXT), ("remote_lsn", TEXT), ("local_lsn", TEXT),
        ],
        rows: empty,
    },
    SystemRelation {
        oid: Oid(12257),
        schema: "pg_catalog",
        name: "pg_replication_slots",
        columns: &[
            ("slot_name", NAME), ("plugin", NAME), ("slot_type", TEXT), ("datoid", OID), ("database", NAME),
            ("temporary", BOOL), ("active", BOOL), ("active_pid", INT4), ("xmin", XID), ("catalog_xmin", XID),
            ("restart_lsn", TEXT), ("confirmed_flush_lsn", TEXT), ("wal_status", TEXT), ("safe_wal_size", INT8),
            ("two_phase", BOOL),
        ],
        rows: empty,
    },
    SystemRelation {
        oid: Oid(12023),
        schema: "pg_catalog",
        name: "pg_rules",
        columns: &[
            ("schemaname", NAME), ("tablename", NAME), ("rulename", NAME), ("definition", TEXT),
        ],
        rows: empty,
    },
    SystemRelation {
        oid: Oid(12099),
        schema: "pg_catalog",
        name: "pg_seclabels",
        columns: &[
            ("objoid", OID), ("classoid", OID), ("objsubid", INT4), ("objtype", TEXT), ("objnamespace", OID),
            ("objname", TEXT), ("provider", TEXT), ("label", TEXT),
        ],
        rows: empty,
    },
    SystemRelation {
        oid: Oid(3592),
        schema: "pg_catalog",
        name: "pg_shseclabel",
        columns: &[
            ("objoid", OID), ("classoid", OID), ("provider", TEXT), ("label", TEXT),
        ],
        rows: empty,
    },
    SystemRelation {
        oid: Oid(3429),
        schema: "pg_catalog",
        name: "pg_statistic_ext_data",
        columns: &[
            ("stxoid", OID), ("stxdinherit", BOOL), ("stxdndistinct", TEXT), ("stxddependencies", TEXT),
            ("stxdmcv", TEXT), ("stxdexpr", TEXT_ARRAY),
        ],
        rows: empty,
    },
    SystemRelation {
        oid: Oid(12058),
        schema: "pg_catalog",
        name: "pg_stats_ext",
        columns: &[
            ("schemaname", NAME), ("tablename", NAME), ("statistics_schemaname", NAME), ("statistics_name", NAME),
            ("statistics_owner", NAME), ("attnames", NAME_ARRAY), ("exprs", TEXT_ARRAY), ("kinds", TEXT_ARRAY),
            ("inherited", BOOL), ("n_distinct", TEXT), ("dependencies", TEXT), ("most_common_vals", TEXT_ARRAY),
            ("most_common_val_nulls", BOOL_ARRAY), ("most_common_freqs", FLOAT8_ARRAY),
            ("most_common_base_freqs", FLOAT8_ARRAY),
        ],
        rows: empty,
    },
    SystemRelation {
        oid: Oid(12063),
        schema: "pg_catalog",
        name: "pg_stats_ext_exprs",
        columns: &[
            ("schemaname", NAME), ("tablename", NAME), ("statistics_schemaname", NAME), ("statistics_name", NAME),
            ("statistics_owner", NAME), ("expr", TEXT), ("inherited", BOOL), ("null_frac", FLOAT4),
            ("avg_width", INT4), ("n_distinct", FLOAT4), ("most_common_vals", TEXT),
            ("most_common_freqs", FLOAT4_ARRAY), ("histogram_bounds", TEXT), ("correlation", FLOAT4),
            ("most_common_elems", TEXT), ("most_common_elem_freqs", FLOAT4_ARRAY),
            ("elem_count_histogram", FLOAT4_ARRAY),
        ],
        rows: empty,
    },
    SystemRelation {
        oid: Oid(6102),
        schema: "pg_catalog",
        name: "pg_subscription_rel",
        columns: &[
            ("srsubid", OID), ("srrelid", OID), ("srsubstate", CHAR), ("srsublsn", TEXT),
        ],
        rows: empty,
    },
    SystemRelation {
        oid: Oid(12122),
        schema: "pg_catalog",
        name: "pg_timezone_abbrevs",
        columns: &[
            ("abbrev", TEXT), ("utc_offset", INTERVAL), ("is_dst", BOOL),
        ],
        rows: time_zones::abbreviations,
    },
    SystemRelation {
        oid: Oid(12126),
        schema: "pg_catalog",
        name: "pg_timezone_names",
        columns: &[
            ("name", TEXT), ("abbrev", TEXT), ("utc_offset", INTERVAL), ("is_dst", BOOL),
        ],
        rows: time_zones::names,
    },
    SystemRelation {
        oid: Oid(3603),
        schema: "pg_catalog",
        name: "pg_ts_config_map",
        columns: &[
            ("mapcfg", OID), ("maptokentype", INT4), ("mapseqno", INT4), ("mapdict", OID),
        ],
        rows: empty,
    },
    SystemRelation {
        oid: Oid(3600),
        schema: "pg_catalog",
        name: "pg_ts_dict",
        columns: &[
            ("oid", OID), ("dictname", NAME), ("dictnamespace", OID), ("dictowner", OID), ("dicttemplate", OID),
            ("dictinitoption", TEXT),
        ],
        rows: empty,
    },
    SystemRelation {
        oid: Oid(3601),
        schema: "pg_catalog",
        name: "pg_ts_parser",
        columns: &[
            ("oid", OID), ("prsname", NAME), ("prsnamespace", OID), ("prsstart", REGPROC), ("prstoken", REGPROC),
            ("prsend", REGPROC), ("prsheadline", REGPROC), ("prslextype", REGPROC),
        ],
        rows: empty,
    },
    SystemRelation {
        oid: Oid(3764),
        schema: "pg_catalog",
        name: "pg_ts_template",
        columns: &[
            ("oid", OID), ("tmplname", NAME), ("tmplnamespace", OID), ("tmplinit", REGPROC), ("tmpllexize", REGPROC),
        ],
        rows: empty,
    },
    SystemRelation {
        oid: Oid(1418),
        schema: "pg_catalog",
        name: "pg_user_mapping",
        columns: &[
            ("oid", OID), ("umuser", OID), ("umserver", OID), ("umoptions", TEXT_ARRAY),
        ],
        rows: empty,
    },
    SystemRelation {
        oid: Oid(12327),
        schema: "pg_catalog",
        name: "pg_user_mappings",
        columns: &[
            ("umid", OID), ("srvid", OID), ("srvname", NAME), ("umuser", OID), ("usename", NAME),
            ("umoptions", TEXT_ARRAY),
        ],
        rows: empty,
    },
];
