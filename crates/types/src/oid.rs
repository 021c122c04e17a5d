//! The built-in types: their OIDs and what the catalog says of them (PostgreSQL's `pg_type.dat`), and the names that
//! SQL has for them.

use std::borrow::Cow;
use std::ops::Deref;
use std::sync::Arc;

use base::Oid;

/// What the catalog says of a type.
#[derive(Debug, PartialEq, Eq)]
pub struct TypeInfo {
    /// Identity.
    pub oid: Oid,
    /// Catalog name (`int4`).
    pub name: Cow<'static, str>,
    /// Name in SQL (`integer`).
    pub sql_name: Cow<'static, str>,
    /// Bytes of a value; -1 varies, -2 is a C string.
    pub len: i16,
    /// Passed by value in PostgreSQL.
    pub by_val: bool,
    /// Category, for overload resolution.
    pub category: char,
    /// Preferred in its category.
    pub preferred: bool,
    /// Alignment in PostgreSQL: `c`, `s`, `i` or `d`.
    pub align: char,
    /// Element type of an array, and of the vectors.
    pub element: Oid,
    /// Its array type, if it has one.
    pub array: Oid,
    /// Name of its input function (`int4in`).
    pub input: &'static str,
    /// Name of its output function.
    pub output: &'static str,
    /// Name of its binary input function, or `-`.
    pub receive: &'static str,
    /// Name of its binary output function, or `-`.
    pub send: &'static str,
}

/// A built-in type, or one that a statement made.
#[derive(Clone, Debug)]
pub enum TypeRef {
    /// Built in.
    BuiltIn(&'static TypeInfo),
    /// See [`crate::user`].
    Made(Arc<TypeInfo>),
}

impl Deref for TypeRef {
    type Target = TypeInfo;

    #[inline]
    fn deref(&self) -> &TypeInfo {
        match self {
            TypeRef::BuiltIn(info) => info,
            TypeRef::Made(info) => info,
        }
    }
}

impl TypeInfo {
    /// A true array (`integer[]`), not one of the catalog's vectors nor `name`, which also have elements.
    pub fn is_array(&self) -> bool {
        self.element.is_valid() && self.len == -1 && self.input == "array_in"
    }
}

macro_rules! binary_function {
    (true, $name:expr) => {
        $name
    };
    (false, $name:expr) => {
        "-"
    };
}

macro_rules! types {
    ($($name:ident = $oid:literal, $pg:literal, $sql:literal, $len:literal, $by_val:literal, $category:literal,
       $preferred:literal, $align:literal, $element:literal, $array:literal, $io:literal, $binary:tt;)+) => {
        $(#[doc = concat!("`", $sql, "`")] pub const $name: Oid = Oid($oid);)+
        /// In the order of their OIDs.
        static TYPES: &[TypeInfo] = &[$(
            TypeInfo {
                oid: $name, name: Cow::Borrowed($pg), sql_name: Cow::Borrowed($sql), len: $len, by_val: $by_val, category: $category,
                preferred: $preferred, align: $align, element: Oid($element), array: Oid($array),
                input: concat!($io, "in"), output: concat!($io, "out"),
                receive: binary_function!($binary, concat!($io, "recv")),
                send: binary_function!($binary, concat!($io, "send")),
            },
        )+];
    };
}

types! {
    // constant = oid, name, SQL name, length, by value, category, preferred, alignment, element, array, functions, binary
    BOOL = 16, "bool", "boolean", 1, true, 'B', true, 'c', 0, 1000, "bool", true;
    BYTEA = 17, "bytea", "bytea", -1, false, 'U', false, 'i', 0, 1001, "bytea", true;
    CHAR = 18, "char", "\"char\"", 1, true, 'Z', false, 'c', 0, 1002, "char", true;
    NAME = 19, "name", "name", 64, false, 'S', false, 'c', 18, 1003, "name", true;
    INT8 = 20, "int8", "bigint", 8, true, 'N', false, 'd', 0, 1016, "int8", true;
    INT2 = 21, "int2", "smallint", 2, true, 'N', false, 's', 0, 1005, "int2", true;
    INT2VECTOR = 22, "int2vector", "int2vector", -1, false, 'A', false, 'i', 21, 1006, "int2vector", true;
    INT4 = 23, "int4", "integer", 4, true, 'N', false, 'i', 0, 1007, "int4", true;
    REGPROC = 24, "regproc", "regproc", 4, true, 'N', false, 'i', 0, 1008, "regproc", true;
    TEXT = 25, "text", "text", -1, false, 'S', true, 'i', 0, 1009, "text", true;
    OID = 26, "oid", "oid", 4, true, 'N', true, 'i', 0, 1028, "oid", true;
    TID = 27, "tid", "tid", 6, false, 'U', false, 's', 0, 1010, "tid", true;
    XID = 28, "xid", "xid", 4, true, 'U', false, 'i', 0, 1011, "xid", true;
    CID = 29, "cid", "cid", 4, true, 'U', false, 'i', 0, 1012, "cid", true;
    OIDVECTOR = 30, "oidvector", "oidvector", -1, false, 'A', false, 'i', 26, 1013, "oidvector", true;
    JSON = 114, "json", "json", -1, false, 'U', false, 'i', 0, 199, "json_", true;
    PG_NODE_TREE = 194, "pg_node_tree", "pg_node_tree", -1, false, 'Z', false, 'i', 0, 0, "pg_node_tree_", true;
    JSON_ARRAY = 199, "_json", "json[]", -1, false, 'A', false, 'i', 114, 0, "array_", true;
    TABLE_AM_HANDLER = 269, "table_am_handler", "table_am_handler", 4, true, 'P', false, 'i', 0, 0, "table_am_handler_", false;
    XID8_ARRAY = 271, "_xid8", "xid8[]", -1, false, 'A', false, 'd', 5069, 0, "array_", true;
    INDEX_AM_HANDLER = 325, "index_am_handler", "index_am_handler", 4, true, 'P', false, 'i', 0, 0, "index_am_handler_", false;
    CIDR = 650, "cidr", "cidr", -1, false, 'I', false, 'i', 0, 651, "cidr_", true;
    CIDR_ARRAY = 651, "_cidr", "cidr[]", -1, false, 'A', false, 'i', 650, 0, "array_", true;
    FLOAT4 = 700, "float4", "real", 4, true, 'N', false, 'i', 0, 1021, "float4", true;
    FLOAT8 = 701, "float8", "double precision", 8, true, 'N', true, 'd', 0, 1022, "float8", true;
    UNKNOWN = 705, "unknown", "unknown", -2, false, 'X', false, 'c', 0, 0, "unknown", true;
    MACADDR8 = 774, "macaddr8", "macaddr8", 8, false, 'U', false, 'i', 0, 775, "macaddr8_", true;
    MACADDR8_ARRAY = 775, "_macaddr8", "macaddr8[]", -1, false, 'A', false, 'i', 774, 0, "array_", true;
    MACADDR = 829, "macaddr", "macaddr", 6, false, 'U', false, 'i', 0, 1040, "macaddr_", true;
    INET = 869, "inet", "inet", -1, false, 'I', true, 'i', 0, 1041, "inet_", true;
    BOOL_ARRAY = 1000, "_bool", "boolean[]", -1, false, 'A', false, 'i', 16, 0, "array_", true;
    BYTEA_ARRAY = 1001, "_bytea", "bytea[]", -1, false, 'A', false, 'i', 17, 0, "array_", true;
    CHAR_ARRAY = 1002, "_char", "\"char\"[]", -1, false, 'A', false, 'i', 18, 0, "array_", true;
    NAME_ARRAY = 1003, "_name", "name[]", -1, false, 'A', false, 'i', 19, 0, "array_", true;
    INT2_ARRAY = 1005, "_int2", "smallint[]", -1, false, 'A', false, 'i', 21, 0, "array_", true;
    INT2VECTOR_ARRAY = 1006, "_int2vector", "int2vector[]", -1, false, 'A', false, 'i', 22, 0, "array_", true;
    INT4_ARRAY = 1007, "_int4", "integer[]", -1, false, 'A', false, 'i', 23, 0, "array_", true;
    REGPROC_ARRAY = 1008, "_regproc", "regproc[]", -1, false, 'A', false, 'i', 24, 0, "array_", true;
    TEXT_ARRAY = 1009, "_text", "text[]", -1, false, 'A', false, 'i', 25, 0, "array_", true;
    TID_ARRAY = 1010, "_tid", "tid[]", -1, false, 'A', false, 'i', 27, 0, "array_", true;
    XID_ARRAY = 1011, "_xid", "xid[]", -1, false, 'A', false, 'i', 28, 0, "array_", true;
    CID_ARRAY = 1012, "_cid", "cid[]", -1, false, 'A', false, 'i', 29, 0, "array_", true;
    OIDVECTOR_ARRAY = 1013, "_oidvector", "oidvector[]", -1, false, 'A', false, 'i', 30, 0, "array_", true;
    BPCHAR_ARRAY = 1014, "_bpchar", "character[]", -1, false, 'A', false, 'i', 1042, 0, "array_", true;
    VARCHAR_ARRAY = 1015, "_varchar", "character varying[]", -1, false, 'A', false, 'i', 1043, 0, "array_", true;
    INT8_ARRAY = 1016, "_int8", "bigint[]", -1, false, 'A', false, 'd', 20, 0, "array_", true;
    FLOAT4_ARRAY = 1021, "_float4", "real[]", -1, false, 'A', false, 'i', 700, 0, "array_", true;
    FLOAT8_ARRAY = 1022, "_float8", "double precision[]", -1, false, 'A', false, 'd', 701, 0, "array_", true;
    OID_ARRAY = 1028, "_oid", "oid[]", -1, false, 'A', false, 'i', 26, 0, "array_", true;
    MACADDR_ARRAY = 1040, "_macaddr", "macaddr[]", -1, false, 'A', false, 'i', 829, 0, "array_", true;
    INET_ARRAY = 1041, "_inet", "inet[]", -1, false, 'A', false, 'i', 869, 0, "array_", true;
    BPCHAR = 1042, "bpchar", "character", -1, false, 'S', false, 'i', 0, 1014, "bpchar", true;
    VARCHAR = 1043, "varchar", "character varying", -1, false, 'S', false, 'i', 0, 1015, "varchar", true;
    DATE = 1082, "date", "date", 4, true, 'D', false, 'i', 0, 1182, "date_", true;
    TIME = 1083, "time", "time without time zone", 8, true, 'D', false, 'd', 0, 1183, "time_", true;
    TIMESTAMP = 1114, "timestamp", "timestamp without time zone", 8, true, 'D', false, 'd', 0, 1115, "timestamp_", true;
    TIMESTAMP_ARRAY = 1115, "_timestamp", "timestamp without time zone[]", -1, false, 'A', false, 'd', 1114, 0, "array_", true;
    DATE_ARRAY = 1182, "_date", "date[]", -1, false, 'A', false, 'i', 1082, 0, "array_", true;
    TIME_ARRAY = 1183, "_time", "time without time zone[]", -1, false, 'A', false, 'd', 1083, 0, "array_", true;
    TIMESTAMPTZ = 1184, "timestamptz", "timestamp with time zone", 8, true, 'D', true, 'd', 0, 1185, "timestamptz_", true;
    TIMESTAMPTZ_ARRAY = 1185, "_timestamptz", "timestamp with time zone[]", -1, false, 'A', false, 'd', 1184, 0, "array_", true;
    INTERVAL = 1186, "interval", "interval", 16, false, 'T', true, 'd', 0, 1187, "interval_", true;
    INTERVAL_ARRAY = 1187, "_interval", "interval[]", -1, false, 'A', false, 'd', 1186, 0, "array_", true;
    NUMERIC_ARRAY = 1231, "_numeric", "numeric[]", -1, false, 'A', false, 'i', 1700, 0, "array_", true;
    CSTRING_ARRAY = 1263, "_cstring", "cstring[]", -1, false, 'A', false, 'i', 2275, 0, "array_", true;
    TIMETZ = 1266, "timetz", "time with time zone", 12, false, 'D', false, 'd', 0, 1270, "timetz_", true;
    TIMETZ_ARRAY = 1270, "_timetz", "time with time zone[]", -1, false, 'A', false, 'd', 1266, 0, "array_", true;
    BIT = 1560, "bit", "bit", -1, false, 'V', false, 'i', 0, 1561, "bit_", true;
    BIT_ARRAY = 1561, "_bit", "bit[]", -1, false, 'A', false, 'i', 1560, 0, "array_", true;
    VARBIT = 1562, "varbit", "bit varying", -1, false, 'V', true, 'i', 0, 1563, "varbit_", true;
    VARBIT_ARRAY = 1563, "_varbit", "bit varying[]", -1, false, 'A', false, 'i', 1562, 0, "array_", true;
    NUMERIC = 1700, "numeric", "numeric", -1, false, 'N', false, 'i', 0, 1231, "numeric_", true;
    REGPROCEDURE = 2202, "regprocedure", "regprocedure", 4, true, 'N', false, 'i', 0, 2207, "regprocedure", true;
    REGOPER = 2203, "regoper", "regoper", 4, true, 'N', false, 'i', 0, 2208, "regoper", true;
    REGOPERATOR = 2204, "regoperator", "regoperator", 4, true, 'N', false, 'i', 0, 2209, "regoperator", true;
    REGCLASS = 2205, "regclass", "regclass", 4, true, 'N', false, 'i', 0, 2210, "regclass", true;
    REGTYPE = 2206, "regtype", "regtype", 4, true, 'N', false, 'i', 0, 2211, "regtype", true;
    REGPROCEDURE_ARRAY = 2207, "_regprocedure", "regprocedure[]", -1, false, 'A', false, 'i', 2202, 0, "array_", true;
    REGOPER_ARRAY = 2208, "_regoper", "regoper[]", -1, false, 'A', false, 'i', 2203, 0, "array_", true;
    REGOPERATOR_ARRAY = 2209, "_regoperator", "regoperator[]", -1, false, 'A', false, 'i', 2204, 0, "array_", true;
    REGCLASS_ARRAY = 2210, "_regclass", "regclass[]", -1, false, 'A', false, 'i', 2205, 0, "array_", true;
    REGTYPE_ARRAY = 2211, "_regtype", "regtype[]", -1, false, 'A', false, 'i', 2206, 0, "array_", true;
    RECORD = 2249, "record", "record", -1, false, 'P', false, 'd', 0, 2287, "record_", true;
    CSTRING = 2275, "cstring", "cstring", -2, false, 'P', false, 'c', 0, 1263, "cstring_", true;
    ANY = 2276, "any", "\"any\"", 4, true, 'P', false, 'i', 0, 0, "any_", false;
    ANYARRAY = 2277, "anyarray", "anyarray", -1, false, 'P', false, 'd', 0, 0, "anyarray_", true;
    VOID = 2278, "void", "void", 4, true, 'P', false, 'i', 0, 0, "void_", true;
    TRIGGER = 2279, "trigger", "trigger", 4, true, 'P', false, 'i', 0, 0, "trigger_", false;
    LANGUAGE_HANDLER = 2280, "language_handler", "language_handler", 4, true, 'P', false, 'i', 0, 0, "language_handler_", false;
    INTERNAL = 2281, "internal", "internal", 8, true, 'P', false, 'd', 0, 0, "internal_", false;
    ANYELEMENT = 2283, "anyelement", "anyelement", 4, true, 'P', false, 'i', 0, 0, "anyelement_", false;
    RECORD_ARRAY = 2287, "_record", "record[]", -1, false, 'P', false, 'd', 2249, 0, "array_", true;
    ANYNONARRAY = 2776, "anynonarray", "anynonarray", 4, true, 'P', false, 'i', 0, 0, "anynonarray_", false;
    TXID_SNAPSHOT_ARRAY = 2949, "_txid_snapshot", "txid_snapshot[]", -1, false, 'A', false, 'd', 2970, 0, "array_", true;
    UUID = 2950, "uuid", "uuid", 16, false, 'U', false, 'c', 0, 2951, "uuid_", true;
    UUID_ARRAY = 2951, "_uuid", "uuid[]", -1, false, 'A', false, 'i', 2950, 0, "array_", true;
    TXID_SNAPSHOT = 2970, "txid_snapshot", "txid_snapshot", -1, false, 'U', false, 'd', 0, 2949, "txid_snapshot_", true;
    FDW_HANDLER = 3115, "fdw_handler", "fdw_handler", 4, true, 'P', false, 'i', 0, 0, "fdw_handler_", false;
    TSM_HANDLER = 3310, "tsm_handler", "tsm_handler", 4, true, 'P', false, 'i', 0, 0, "tsm_handler_", false;
    ANYENUM = 3500, "anyenum", "anyenum", 4, true, 'P', false, 'i', 0, 0, "anyenum_", false;
    JSONB = 3802, "jsonb", "jsonb", -1, false, 'U', false, 'i', 0, 3807, "jsonb_", true;
    JSONB_ARRAY = 3807, "_jsonb", "jsonb[]", -1, false, 'A', false, 'i', 3802, 0, "array_", true;
    ANYRANGE = 3831, "anyrange", "anyrange", -1, false, 'P', false, 'd', 0, 0, "anyrange_", false;
    EVENT_TRIGGER = 3838, "event_trigger", "event_trigger", 4, true, 'P', false, 'i', 0, 0, "event_trigger_", false;
    JSONPATH = 4072, "jsonpath", "jsonpath", -1, false, 'U', false, 'i', 0, 4073, "jsonpath_", true;
    JSONPATH_ARRAY = 4073, "_jsonpath", "jsonpath[]", -1, false, 'A', false, 'i', 4072, 0, "array_", true;
    REGNAMESPACE = 4089, "regnamespace", "regnamespace", 4, true, 'N', false, 'i', 0, 4090, "regnamespace", true;
    REGNAMESPACE_ARRAY = 4090, "_regnamespace", "regnamespace[]", -1, false, 'A', false, 'i', 4089, 0, "array_", true;
    REGROLE = 4096, "regrole", "regrole", 4, true, 'N', false, 'i', 0, 4097, "regrole", true;
    REGROLE_ARRAY = 4097, "_regrole", "regrole[]", -1, false, 'A', false, 'i', 4096, 0, "array_", true;
    REGCOLLATION = 4191, "regcollation", "regcollation", 4, true, 'N', false, 'i', 0, 4192, "regcollation", true;
    REGCOLLATION_ARRAY = 4192, "_regcollation", "regcollation[]", -1, false, 'A', false, 'i', 4191, 0, "array_", true;
    PG_SNAPSHOT = 5038, "pg_snapshot", "pg_snapshot", -1, false, 'U', false, 'd', 0, 5039, "pg_snapshot_", true;
    PG_SNAPSHOT_ARRAY = 5039, "_pg_snapshot", "pg_snapshot[]", -1, false, 'A', false, 'd', 5038, 0, "array_", true;
    XID8 = 5069, "xid8", "xid8", 8, true, 'U', false, 'd', 0, 271, "xid8", true;
    ANYCOMPATIBLE = 5077, "anycompatible", "anycompatible", 4, true, 'P', false, 'i', 0, 0, "anycompatible_", false;
    ANYCOMPATIBLEARRAY = 5078, "anycompatiblearray", "anycompatiblearray", -1, false, 'P', false, 'd', 0, 0, "anycompatiblearray_", true;
    ANYCOMPATIBLENONARRAY = 5079, "anycompatiblenonarray", "anycompatiblenonarray", 4, true, 'P', false, 'i', 0, 0, "anycompatiblenonarray_", false;
}

/// A type by OID.
pub fn type_info(oid: Oid) -> Option<TypeRef> {
    match TYPES.binary_search_by_key(&oid.0, |t| t.oid.0) {
        Ok(i) => Some(TypeRef::BuiltIn(&TYPES[i])),
        Err(_) => crate::user::info(oid),
    }
}

/// All types.
pub fn all_types() -> &'static [TypeInfo] {
    TYPES
}

/// A type by the name that the catalog has for it.
pub fn type_named(name: &str) -> Option<&'static TypeInfo> {
    TYPES.iter().find(|t| t.name == name)
}

/// A type by catalog name, or by one of the names that SQL has for it (in lower case).
pub fn type_by_name(name: &str) -> Option<&'static TypeInfo> {
    if let Some(element) = name.strip_suffix("[]") {
        let array = type_by_name(element.trim_end())?.array;
        return TYPES.iter().find(|t| t.oid == array);
    }
    let name = match name {
        "int" | "integer" => "int4",
        "bigint" => "int8",
        "smallint" => "int2",
        "boolean" => "bool",
        "decimal" | "dec" => "numeric",
        "real" => "float4",
        "float" | "double precision" => "float8",
        "character" | "nchar" => "bpchar",
        "\"char\"" => "char",
        "character varying" => "varchar",
        "time without time zone" => "time",
        "time with time zone" => "timetz",
        "timestamp without time zone" => "timestamp",
        "timestamp with time zone" => "timestamptz",
        name => name,
    };
    type_named(name)
}

/// The element type of an array type or of a vector.
pub fn element_of(oid: Oid) -> Option<Oid> {
    type_info(oid).filter(|t| (t.category == 'A' || t.is_array()) && t.element.is_valid()).map(|t| t.element)
}

/// The array type over an element type.
pub fn array_of(oid: Oid) -> Option<Oid> {
    type_info(oid).filter(|t| t.array.is_valid()).map(|t| t.array)
}

/// Whether values of a type are held as [`crate::Datum::Oid`].
pub fn is_oid_like(oid: Oid) -> bool {
    matches!(
        oid,
        OID | XID
            | CID
            | REGCLASS
            | REGTYPE
            | REGNAMESPACE
            | REGROLE
            | REGPROC
            | REGPROCEDURE
            | REGOPER
            | REGOPERATOR
            | REGCOLLATION
    )
}

/// A type's name as SQL writes it, with its modifier (`format_type`).
pub fn format_type(oid: Oid, typmod: i32) -> String {
    let Some(info) = type_info(oid) else {
        return if oid.is_valid() { "???".to_string() } else { "-".to_string() };
    };
    if info.is_array() {
        return format!("{}[]", format_type(info.element, typmod));
    }
    if typmod < 0 {
        return match oid {
            // Without a length PostgreSQL shows the internal name: `character` alone would mean length 1.
            BPCHAR => "character".to_string(),
            _ => info.sql_name.to_string(),
        };
    }
    match oid {
        BIT | VARBIT => format!("{}({typmod})", info.sql_name),
        VARCHAR | BPCHAR if typmod > 4 => format!("{}({})", info.sql_name, typmod - 4),
        VARCHAR | BPCHAR => info.sql_name.to_string(),
        NUMERIC if typmod < 4 => "numeric".to_string(),
        NUMERIC => {
            let (precision, scale) = numeric_typmod(typmod);
            format!("numeric({precision},{scale})")
        }
        TIME | TIMESTAMP => format!("{}({typmod}) without time zone", info.name),
        TIMETZ => format!("time({typmod}) with time zone"),
        TIMESTAMPTZ => format!("timestamp({typmod}) with time zone"),
        INTERVAL => format_interval(typmod),
        BOOL | INT2 | INT4 | INT8 | FLOAT4 | FLOAT8 => info.sql_name.to_string(),
        // Other types that have no modifiers show the number.
        _ => format!("{}({typmod})", info.sql_name),
    }
}

/// The name of `character` or `bit` of any length: what SQL calls so has a length of one.
pub fn any_length_name(ty: Oid) -> &'static str {
    if ty == BIT { "\"bit\"" } else { "bpchar" }
}

/// Precision and scale of a numeric modifier.
pub fn numeric_typmod(typmod: i32) -> (i32, i32) {
    let m = typmod - 4;
    // The scale is an 11-bit signed number.
    ((m >> 16) & 0xffff, ((m & 0x7ff) ^ 1024) - 1024)
}

/// The modifier of `numeric(precision, scale)`.
pub fn make_numeric_typmod(precision: i32, scale: i32) -> i32 {
    ((precision << 16) | (scale & 0x7ff)) + 4
}

fn format_interval(typmod: i32) -> String {
    let (fields, precision) = ((typmod >> 16) & 0x7fff, typmod & 0xffff);
    const BITS: [(i32, &str); 6] = [
        (1 << 2, "year"),
        (1 << 1, "month"),
        (1 << 3, "day"),
        (1 << 10, "hour"),
        (1 << 11, "minute"),
        (1 << 12, "second"),
    ];
    let mut text = "interval".to_string();
    if fields != 0x7fff {
        let named: Vec<&str> = BITS.iter().filter(|(bit, _)| fields & bit != 0).map(|(_, name)| *name).collect();
        if let (Some(first), Some(last)) = (named.first(), named.last()) {
            text.push(' ');
            text.push_str(first);
            if first != last {
                text.push_str(" to ");
                text.push_str(last);
            }
        }
    }
    if precision != 0xffff {
        text.push_str(&format!("({precision})"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_sql() {
        assert_eq!(format_type(INT4, -1), "integer");
        assert_eq!(format_type(VARCHAR, 24), "character varying(20)");
        assert_eq!(format_type(NUMERIC, make_numeric_typmod(10, 2)), "numeric(10,2)");
        assert_eq!(format_type(NUMERIC, make_numeric_typmod(3, -2)), "numeric(3,-2)");
        assert_eq!(format_type(INT4_ARRAY, -1), "integer[]");
        assert_eq!(format_type(TIMESTAMP, 3), "timestamp(3) without time zone");
        assert_eq!(type_by_name("decimal").map(|t| t.oid), Some(NUMERIC));
    }
}
