//! pg_opfamily, pg_opclass: how types are ordered in indexes. Numbers and names are PostgreSQL's.

use base::{Error, Oid, Result, SqlState};
use engine_api::oids;
use sql_functions::EvalContext;
use sql_ir::system_relation::SystemRelation;
use types::Datum;

use super::{SystemRows, oid, row, text};

/// The access method `btree`.
const BTREE: u32 = 403;

/// Families: OID, name.
#[rustfmt::skip]
const FAMILIES: &[(u32, &str)] = &[
    (397, "array_ops"),
    (423, "bit_ops"),
    (424, "bool_ops"),
    (426, "bpchar_ops"),
    (428, "bytea_ops"),
    (429, "char_ops"),
    (434, "datetime_ops"),
    (1970, "float_ops"),
    (1974, "network_ops"),
    (1976, "integer_ops"),
    (1982, "interval_ops"),
    (1984, "macaddr_ops"),
    (1988, "numeric_ops"),
    (1989, "oid_ops"),
    (1991, "oidvector_ops"),
    (1994, "text_ops"),
    (1996, "time_ops"),
    (2000, "timetz_ops"),
    (2002, "varbit_ops"),
    (2095, "text_pattern_ops"),
    (2097, "bpchar_pattern_ops"),
    (2789, "tid_ops"),
    (2968, "uuid_ops"),
    (2994, "record_ops"),
    (3194, "record_image_ops"),
    (3371, "macaddr8_ops"),
    (3522, "enum_ops"),
    (3901, "range_ops"),
    (4033, "jsonb_ops"),
    (5067, "xid8_ops"),
];

/// Classes: OID, name, family, type, whether it is the default of the type, type of the keys if it is another.
#[rustfmt::skip]
const CLASSES: &[(u32, &str, u32, u32, bool, u32)] = &[
    (1978, "int4_ops", 1976, 23, true, 0),
    (1979, "int2_ops", 1976, 21, true, 0),
    (1981, "oid_ops", 1989, 26, true, 0),
    (3122, "date_ops", 434, 1082, true, 0),
    (3123, "float8_ops", 1970, 701, true, 0),
    (3124, "int8_ops", 1976, 20, true, 0),
    (3125, "numeric_ops", 1988, 1700, true, 0),
    (3126, "text_ops", 1994, 25, true, 0),
    (3127, "timestamptz_ops", 434, 1184, true, 0),
    (3128, "timestamp_ops", 434, 1114, true, 0),
    (4217, "text_pattern_ops", 2095, 25, false, 0),
    (4218, "varchar_pattern_ops", 2095, 25, false, 0),
    (4219, "bpchar_pattern_ops", 2097, 1042, false, 0),
    (10000, "array_ops", 397, 2277, true, 0),
    (10002, "bit_ops", 423, 1560, true, 0),
    (10003, "bool_ops", 424, 16, true, 0),
    (10004, "bpchar_ops", 426, 1042, true, 0),
    (10006, "bytea_ops", 428, 17, true, 0),
    (10007, "char_ops", 429, 18, true, 0),
    (10009, "cidr_ops", 1974, 869, false, 0),
    (10012, "float4_ops", 1970, 700, true, 0),
    (10015, "inet_ops", 1974, 869, true, 0),
    (10022, "interval_ops", 1982, 1186, true, 0),
    (10024, "macaddr_ops", 1984, 829, true, 0),
    (10026, "macaddr8_ops", 3371, 774, true, 0),
    (10028, "name_ops", 1994, 19, true, 2275),
    (10032, "oidvector_ops", 1991, 30, true, 0),
    (10034, "record_ops", 2994, 2249, true, 0),
    (10036, "record_image_ops", 3194, 2249, false, 0),
    (10038, "time_ops", 1996, 1083, true, 0),
    (10041, "timetz_ops", 2000, 1266, true, 0),
    (10043, "varbit_ops", 2002, 1562, true, 0),
    (10044, "varchar_ops", 1994, 25, false, 0),
    (10050, "tid_ops", 2789, 27, true, 0),
    (10053, "xid8_ops", 5067, 5069, true, 0),
    (10065, "uuid_ops", 2968, 2950, true, 0),
    (10069, "enum_ops", 3522, 3500, true, 0),
    (10076, "range_ops", 3901, 3831, true, 0),
    (10088, "jsonb_ops", 4033, 3802, true, 0),
];

/// The type that classes of a type are about: that of arrays for all of them, text for varchar, inet for cidr, oid for the `reg…` types, what is under a domain.
fn input_type(ty: Oid) -> Oid {
    let ty = types::user::base_type(ty, -1).0;
    match types::type_info(ty) {
        Some(info) if info.is_array() => types::oid::ANYARRAY,
        _ if types::user::is_enum(ty) => types::oid::ANYENUM,
        _ if ty == types::oid::VARCHAR => types::oid::TEXT,
        _ if ty == types::oid::CIDR => types::oid::INET,
        _ if types::oid::is_oid_like(ty) && ![types::oid::XID, types::oid::CID].contains(&ty) => types::oid::OID,
        _ => ty,
    }
}

/// The default class of a type. 0 if there is none.
pub(super) fn default_class(ty: Oid) -> u32 {
    let ty = input_type(ty);
    CLASSES.iter().find(|c| c.3 == ty.0 && c.4).map_or(0, |c| c.0)
}

/// Demands that keys of a type can be in an index of an access method that names no class.
///
/// # Errors
/// 42704
pub fn require_default(ty: Oid, method: &str) -> Result<()> {
    let is_known = match (method, ty) {
        ("hash", types::oid::XID | types::oid::CID) => true,
        ("hash", types::oid::BIT | types::oid::VARBIT) => false,
        _ => default_class(ty) != 0,
    };
    if is_known {
        return Ok(());
    }
    Err(no_default(&types::oid::format_type(ty, -1), method))
}

/// 42704: a type has no default class.
pub fn no_default(ty: &str, method: &str) -> Error {
    let message = format!("data type {ty} has no default operator class for access method \"{method}\"");
    Error::new(SqlState::UNDEFINED_OBJECT, message)
        .hint("You must specify an operator class for the index or define a default operator class for the data type.")
}

/// The number of a class that CREATE INDEX names for a key of a type, 0 if it is the default one.
///
/// # Errors
/// 42704 if there is none of that name, 42804 if it is not for the type.
pub fn named(name: &str, method: &str, ty: Oid) -> Result<u32> {
    let Some(class) = CLASSES.iter().find(|c| c.1 == name) else {
        let message = format!("operator class \"{name}\" does not exist for access method \"{method}\"");
        return Err(Error::new(SqlState::UNDEFINED_OBJECT, message));
    };
    check(class.0, ty)?;
    Ok(if class.0 == default_class(ty) { 0 } else { class.0 })
}

/// Whether a class is for keys of a type.
///
/// # Errors
/// 42804 if it is not, 0A000 if it orders them otherwise than their type does.
pub fn check(class: u32, ty: Oid) -> Result<()> {
    let Some(&(_, name, _, input, ..)) = CLASSES.iter().find(|c| c.0 == class) else { return Ok(()) };
    match (input_type(ty), Oid(input)) {
        (ty, input) if ty == input => Ok(()),
        (types::oid::TEXT, types::oid::BPCHAR) | (types::oid::INT4, types::oid::OID) => {
            let shown = types::oid::format_type(ty, -1);
            Err(Error::unsupported(format!("operator class \"{name}\" is not supported for data type {shown}")))
        }
        _ => {
            let shown = types::oid::format_type(ty, -1);
            let message = format!("operator class \"{name}\" does not accept data type {shown}");
            Err(Error::new(SqlState::DATATYPE_MISMATCH, message))
        }
    }
}

/// What `pg_get_indexdef` shows of a class.
pub(crate) fn class_name(class: u32) -> Option<&'static str> {
    CLASSES.iter().find(|c| c.0 == class).map(|c| c.1)
}

/// Whether there is an operator family of this number.
pub(crate) fn is_operator_family(oid: u32) -> bool {
    FAMILIES.iter().any(|family| family.0 == oid)
}

pub(super) fn families(rel: &SystemRelation, _: &dyn EvalContext) -> SystemRows {
    let one = |&(number, name): &(u32, &str)| {
        row(
            rel,
            vec![
                ("oid", Datum::Oid(number)),
                ("opfmethod", Datum::Oid(BTREE)),
                ("opfname", text(name)),
                ("opfnamespace", oid(oids::SCHEMA_PG_CATALOG)),
                ("opfowner", oid(oids::ROLE_POSTGRES)),
            ],
        )
    };
    Ok(FAMILIES.iter().map(one).collect())
}

pub(super) fn classes(rel: &SystemRelation, _: &dyn EvalContext) -> SystemRows {
    let one = |&(number, name, family, ty, default, key): &(u32, &str, u32, u32, bool, u32)| {
        row(
            rel,
            vec![
                ("oid", Datum::Oid(number)),
                ("opcmethod", Datum::Oid(BTREE)),
                ("opcname", text(name)),
                ("opcnamespace", oid(oids::SCHEMA_PG_CATALOG)),
                ("opcowner", oid(oids::ROLE_POSTGRES)),
                ("opcfamily", Datum::Oid(family)),
                ("opcintype", Datum::Oid(ty)),
                ("opcdefault", Datum::Bool(default)),
                ("opckeytype", Datum::Oid(key)),
            ],
        )
    };
    Ok(CLASSES.iter().map(one).collect())
}
