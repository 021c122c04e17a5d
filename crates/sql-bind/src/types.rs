//! Type names: what `varchar(20)[]` in a statement means.

use base::{Error, Oid, Result, SqlState};
use engine_api::{Catalog, CatalogObject, oids};
use rupg_sql::nodes::{Node, TypeName};
use sql_functions::{EvalContext, Identity};
use sql_ir::Ty;
use sql_parse::names::{is_temporary, quote_name, schema_name};
use types::{TypeInfo, TypeRef, array_of, oid, type_info, type_named};

use super::ColumnType;
use super::node::{integer_constant, strings};

const MAX_LENGTH: i32 = 10_485_760;
const MAX_PRECISION: i32 = 1000;
const INTERVAL_FULL_RANGE: i32 = 0x7fff;
const INTERVAL_FULL_PRECISION: i32 = 0xffff;

/// Resolves a type name, `serial` and the like included.
pub(super) fn column_type(name: &TypeName, sql: &str, types: Known<'_>) -> Result<ColumnType> {
    let names = strings(&name.names);
    if let [single] = names.as_slice() {
        let serial = match *single {
            "smallserial" | "serial2" => Some(oid::INT2),
            "serial" | "serial4" => Some(oid::INT4),
            "bigserial" | "serial8" => Some(oid::INT8),
            _ => None,
        };
        if let Some(ty) = serial {
            if !name.arrayBounds.is_empty() {
                let message = "array of serial is not implemented";
                return Err(Error::unsupported(message).at_byte(sql, name.location));
            }
            return Ok(ColumnType { ty: Ty::of(ty), serial: true });
        }
    }
    Ok(ColumnType { ty: resolve(name, sql, types)?, serial: false })
}

/// Resolves a type name.
pub(super) fn resolve(name: &TypeName, sql: &str, types: Known<'_>) -> Result<Ty> {
    if name.setof {
        let message = "SETOF types are not supported here";
        return Err(Error::unsupported(message).at_byte(sql, name.location));
    }
    if name.pct_type {
        return Err(Error::unsupported("%TYPE is not supported").at_byte(sql, name.location));
    }
    let names = strings(&name.names);
    if names.is_empty() {
        let oid = Oid(name.typeOid);
        return type_info(oid)
            .map(|_| Ty { oid, typmod: name.typemod })
            .ok_or_else(|| Error::internal("a type name without a name"));
    }
    check_schema(&names, types).map_err(|e| match e.code() {
        SqlState::INVALID_SCHEMA_NAME => e.at_byte(sql, name.location),
        _ => e,
    })?;
    let info = look_up(&names, types);
    let info = info.ok_or_else(|| does_not_exist(&names, name, sql))?;
    let typmod = modifier(&info, &name.typmods).map_err(|e| e.at_byte(sql, name.location))?;
    if name.arrayBounds.is_empty() {
        return Ok(Ty { oid: info.oid, typmod });
    }
    super::domain::check_array_of(info.oid).map_err(|e| e.at_byte(sql, name.location))?;
    // Arrays have one type, however many dimensions were written.
    let array = if info.is_array() { Some(info.oid) } else { array_of(info.oid) };
    let oid = array.ok_or_else(|| {
        let message = format!("could not find array type for data type {}", info.sql_name);
        Error::new(SqlState::UNDEFINED_OBJECT, message).at_byte(sql, name.location)
    })?;
    Ok(Ty { oid, typmod })
}

/// Refuses a qualified name that leads nowhere.
fn check_schema(names: &[&str], types: Known<'_>) -> Result<()> {
    let Some((catalog, identity)) = types else { return Ok(()) };
    let schema = match names {
        [_] => return Ok(()),
        [schema, _] => *schema,
        [database, schema, _] if **database == *identity.database => *schema,
        [_, _, _] => {
            let message = format!("cross-database references are not implemented: {}", names.join("."));
            return Err(Error::unsupported(message));
        }
        _ => {
            let message = format!("improper qualified name (too many dotted names): {}", names.join("."));
            return Err(Error::new(SqlState::SYNTAX_ERROR, message));
        }
    };
    let is_there = match schema {
        "pg_temp" => identity.search_path.iter().any(|schema| is_temporary(catalog, *schema)),
        schema => catalog.schema(identity.database_oid, schema).is_some(),
    };
    let missing = || Error::new(SqlState::INVALID_SCHEMA_NAME, format!("schema \"{schema}\" does not exist"));
    if is_there { Ok(()) } else { Err(missing()) }
}

/// Where types that statements made are looked up: the catalog, and who looks. Without it there are none.
pub(crate) type Known<'a> = Option<(&'a Catalog, &'a Identity)>;

/// A type by its possibly qualified name: without a schema the first of that name on the search path. The names that SQL has beside the
/// catalog's are the parser's business.
pub(super) fn look_up(names: &[&str], types: Known<'_>) -> Option<TypeRef> {
    let (schema, name) = match names {
        [name] => (None, *name),
        [schema, name] | [_, schema, name] => (Some(*schema), *name),
        _ => return None,
    };
    let built_in = [oids::SCHEMA_PG_CATALOG];
    let Some((catalog, identity)) = types else {
        return if matches!(schema, None | Some("pg_catalog")) { type_named(name).map(TypeRef::BuiltIn) } else { None };
    };
    let path = identity.search_path.iter();
    match schema {
        None => first_named(catalog, path, name),
        Some("pg_catalog") => first_named(catalog, built_in.iter(), name),
        Some("pg_temp") => first_named(catalog, path.filter(|schema| is_temporary(catalog, **schema)), name),
        Some(schema) => first_named(catalog, [catalog.schema(identity.database_oid, schema)?.oid].iter(), name),
    }
}

/// The first type of a name along some schemas.
fn first_named<'a>(catalog: &Catalog, mut schemas: impl Iterator<Item = &'a Oid>, name: &str) -> Option<TypeRef> {
    schemas.find_map(|&schema| {
        if schema == oids::SCHEMA_PG_CATALOG
            && let Some(built_in) = type_named(name)
        {
            return Some(TypeRef::BuiltIn(built_in));
        }
        let named = |name: &str| catalog.type_named(schema, name);
        match named(name) {
            Some(found) => type_info(found.oid),
            // Arrays have names too.
            None => name.strip_prefix('_').and_then(named).and_then(|element| type_info(element.array)),
        }
    })
}

/// Whether a search path leads to a type by its name alone.
pub(crate) fn is_visible(catalog: &Catalog, path: &[Oid], name: &str, oid: Oid) -> bool {
    first_named(catalog, path.iter(), name).is_some_and(|found| found.oid == oid)
}

fn does_not_exist(names: &[&str], name: &TypeName, sql: &str) -> Error {
    let mut shown = names.join(".");
    if !name.arrayBounds.is_empty() {
        shown.push_str("[]");
    }
    let error = match names {
        [own] | ["pg_catalog", own] if UNSUPPORTED.contains(own) => {
            Error::unsupported(format!("type {own} is not supported"))
        }
        _ => Error::new(SqlState::UNDEFINED_OBJECT, format!("type \"{shown}\" does not exist")),
    };
    error.at_byte(sql, name.location)
}

/// Types of PostgreSQL that are not here.
const UNSUPPORTED: [&str; 24] = [
    "money",
    "point",
    "line",
    "lseg",
    "box",
    "path",
    "polygon",
    "circle",
    "xml",
    "tsvector",
    "tsquery",
    "int4range",
    "int8range",
    "numrange",
    "daterange",
    "tsrange",
    "tstzrange",
    "int4multirange",
    "int8multirange",
    "nummultirange",
    "datemultirange",
    "tsmultirange",
    "tstzmultirange",
    "pg_lsn",
];

/// What PostgreSQL says of a precision beyond what times are held with; `None` if it is within.
pub(super) fn precision_warning(name: &TypeName, ty: Ty) -> Option<String> {
    const MAX: i32 = 6;
    let last = name.typmods.iter().flatten().last().and_then(integer_constant).filter(|n| *n > MAX)?;
    let (word, suffix) = match types::element_of(ty.oid).unwrap_or(ty.oid) {
        oid::TIME => ("TIME", ""),
        oid::TIMETZ => ("TIME", " WITH TIME ZONE"),
        oid::TIMESTAMP => ("TIMESTAMP", ""),
        oid::TIMESTAMPTZ => ("TIMESTAMP", " WITH TIME ZONE"),
        oid::INTERVAL if name.typmods.len() > 1 => ("INTERVAL", ""),
        _ => return None,
    };
    Some(format!("{word}({last}){suffix} precision reduced to maximum allowed, {MAX}"))
}

fn modifier(info: &TypeInfo, modifiers: &[Option<Node>]) -> Result<i32> {
    if modifiers.is_empty() {
        return Ok(-1);
    }
    let mut numbers = Vec::with_capacity(modifiers.len());
    for node in modifiers.iter().flatten() {
        let number = integer_constant(node).ok_or_else(|| {
            Error::new(SqlState::SYNTAX_ERROR, "type modifiers must be simple constants or identifiers")
        })?;
        numbers.push(number);
    }
    match info.oid {
        oid::VARCHAR => length(&numbers, "varchar"),
        oid::BPCHAR => length(&numbers, "char"),
        oid::BIT => bits(&numbers, "bit"),
        oid::VARBIT => bits(&numbers, "varbit"),
        oid::NUMERIC => numeric(&numbers),
        oid::TIME => precision(&numbers, "TIME", ""),
        oid::TIMETZ => precision(&numbers, "TIME", " WITH TIME ZONE"),
        oid::TIMESTAMP => precision(&numbers, "TIMESTAMP", ""),
        oid::TIMESTAMPTZ => precision(&numbers, "TIMESTAMP", " WITH TIME ZONE"),
        oid::INTERVAL => interval(&numbers),
        _ => {
            let message = format!("type modifier is not allowed for type \"{}\"", info.name);
            Err(Error::new(SqlState::SYNTAX_ERROR, message))
        }
    }
}

fn invalid(message: String) -> Error {
    Error::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

fn length(numbers: &[i32], name: &str) -> Result<i32> {
    match numbers {
        [n] if *n < 1 => Err(invalid(format!("length for type {name} must be at least 1"))),
        [n] if *n > MAX_LENGTH => Err(invalid(format!("length for type {name} cannot exceed {MAX_LENGTH}"))),
        [n] => Ok(n + 4),
        _ => Err(invalid("invalid type modifier".to_string())),
    }
}

/// As [`length`]; the modifier is the length.
fn bits(numbers: &[i32], name: &str) -> Result<i32> {
    const MAX_BITS: i32 = MAX_LENGTH * 8;
    match numbers {
        [n] if *n < 1 => Err(invalid(format!("length for type {name} must be at least 1"))),
        [n] if *n > MAX_BITS => Err(invalid(format!("length for type {name} cannot exceed {MAX_BITS}"))),
        [n] => Ok(*n),
        _ => Err(invalid("invalid type modifier".to_string())),
    }
}

fn numeric(numbers: &[i32]) -> Result<i32> {
    let (precision, scale) = match numbers {
        [precision] => (*precision, 0),
        [precision, scale] => (*precision, *scale),
        _ => return Err(invalid("invalid NUMERIC type modifier".to_string())),
    };
    if !(1..=MAX_PRECISION).contains(&precision) {
        return Err(invalid(format!("NUMERIC precision {precision} must be between 1 and {MAX_PRECISION}")));
    }
    if !(-MAX_PRECISION..=MAX_PRECISION).contains(&scale) {
        return Err(invalid(format!("NUMERIC scale {scale} must be between -{MAX_PRECISION} and {MAX_PRECISION}")));
    }
    Ok(oid::make_numeric_typmod(precision, scale))
}

fn precision(numbers: &[i32], name: &str, suffix: &str) -> Result<i32> {
    match numbers {
        [n] if *n < 0 => Err(invalid(format!("{name}({n}){suffix} precision must not be negative"))),
        [n] => Ok((*n).min(6)),
        _ => Err(invalid("invalid type modifier".to_string())),
    }
}

fn interval(numbers: &[i32]) -> Result<i32> {
    match numbers {
        [INTERVAL_FULL_RANGE] => Ok(-1),
        [range] => Ok((range << 16) | INTERVAL_FULL_PRECISION),
        [_, n] if *n < 0 => Err(invalid(format!("INTERVAL({n}) precision must not be negative"))),
        [range, n] => Ok((range << 16) | (*n).min(6)),
        _ => Err(invalid("invalid INTERVAL type modifier".to_string())),
    }
}

/// A type's name with its modifier, and with its schema if it is not found without.
pub fn shown_type(cx: &dyn EvalContext, oid: Oid, typmod: i32) -> String {
    let (made, suffix) = match type_info(oid) {
        Some(info) if info.is_array() => (info.element, "[]"),
        _ => (oid, ""),
    };
    let catalog = cx.catalog();
    let Some(CatalogObject::Type(desc)) = catalog.get(made).map(|o| &**o) else {
        return types::format_type(oid, typmod);
    };
    let shown = format!("{}{suffix}", quote_name(&desc.name));
    let is_visible = is_visible(&catalog, &cx.identity().search_path, &desc.name, desc.oid);
    match schema_name(&catalog, desc.schema).filter(|_| !is_visible) {
        Some(schema) => format!("{}.{shown}", quote_name(schema)),
        None => shown,
    }
}
