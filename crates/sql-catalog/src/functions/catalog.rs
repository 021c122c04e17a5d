//! Names and definitions of what is in the catalog.

use std::borrow::Cow;

use base::work::Count;
use base::{Oid, Result};
use engine_api::{CatalogObject, Expression, TableKind, TypeDesc, TypeKind};
use sql_bind::{self as bind, collation, shown_type};
use sql_functions::entry::{mismatch, oid_of, text_of};
use sql_functions::{self as functions, EvalContext, all_aggregates, all_set_functions, extensions, function_by_oid};
use sql_ir::system_relation;
use types::{Datum, type_info};

use super::names;
use crate as system;
use crate::operator_classes;

pub(super) fn format_type(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let typmod = match args.get(1) {
        Some(Datum::Int4(n)) => *n,
        _ => -1,
    };
    let Some(Datum::Oid(oid)) = args.first() else { return Ok(Datum::Null) };
    let oid = Oid(*oid);
    // A type modifier that is given, if only as -1, makes `character` and `bit` names of their own.
    if let (..=-1, Some(Datum::Int4(_))) = (typmod, args.get(1)) {
        match oid {
            types::oid::BPCHAR | types::oid::BIT => return Ok(Datum::text(types::oid::any_length_name(oid))),
            types::oid::BPCHAR_ARRAY => return Ok(Datum::text("bpchar[]")),
            types::oid::BIT_ARRAY => return Ok(Datum::text("\"bit\"[]")),
            _ => {}
        }
    }
    Ok(Datum::from(shown_type(cx, oid, typmod)))
}

pub(super) fn user_by_id(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let oid = oid_of(args, 0)?;
    Ok(match cx.catalog().get(oid).map(|o| &**o) {
        Some(CatalogObject::Role(role)) => Datum::text(&role.name),
        _ => Datum::from(format!("unknown (OID={oid})")),
    })
}

pub(super) fn table_is_visible(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    Ok(names::is_visible(cx, oid_of(args, 0)?).into())
}

/// True for what is known; all of it is in `pg_catalog`, which is always searched.
fn visible(known: bool) -> Result<Datum> {
    Ok(if known { Datum::Bool(true) } else { Datum::Null })
}

pub(super) fn type_is_visible(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let oid = oid_of(args, 0)?;
    let made = type_info(oid).filter(|info| info.is_array()).map_or(oid, |info| info.element);
    let (catalog, path) = (cx.catalog(), &cx.identity().search_path);
    Ok(match catalog.get(made).map(|object| &**object) {
        Some(CatalogObject::Type(desc)) => bind::is_type_visible(&catalog, path, &desc.name, desc.oid).into(),
        // The row type of a relation is found as the relation is.
        Some(_) => names::is_visible(cx, oid).into(),
        None => match type_info(oid) {
            Some(info) => bind::is_type_visible(&catalog, path, &info.name, oid).into(),
            None => Datum::Null,
        },
    })
}

pub(super) fn function_is_visible(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let oid = oid_of(args, 0)?;
    if let Some((_, function)) = extensions::function_by_oid(oid.0) {
        let (catalog, identity) = (cx.catalog(), cx.identity());
        if extensions::installed(&catalog, identity.database_oid, oid.0).is_none() {
            return Ok(Datum::Null);
        }
        let path = &identity.search_path;
        let found = extensions::visible(&catalog, identity.database_oid, path, &[function.name]);
        return Ok(found.iter().any(|(_, visible)| visible.oid == oid.0).into());
    }
    visible(system::function_name(oid.0).is_some())
}

pub(super) fn operator_is_visible(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let oid = oid_of(args, 0)?;
    visible(functions::all_operators().iter().any(|o| o.oid == oid.0))
}

pub(super) fn operator_class_is_visible(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    visible(operator_classes::class_name(oid_of(args, 0)?.0).is_some())
}

pub(super) fn operator_family_is_visible(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    visible(operator_classes::is_operator_family(oid_of(args, 0)?.0))
}

pub(super) fn collation_is_visible(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    visible(collation::by_oid(oid_of(args, 0)?.0).is_some())
}

/// Of kinds of objects of which there are none.
pub(super) fn never_visible(_: &dyn EvalContext, _: &[Datum]) -> Result<Datum> {
    Ok(Datum::Null)
}

/// The query of a view; NULL for anything else.
pub(super) fn get_viewdef(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let catalog = cx.catalog();
    let oid = match &args[0] {
        Datum::Text(name) => names::find_relation(cx, name)?.ok_or_else(|| names::missing_relation(cx, name))?,
        _ => oid_of(args, 0)?,
    };
    // A width to wrap lines at asks for the pretty form too.
    let pretty = matches!(args.get(1), Some(Datum::Bool(true) | Datum::Int4(_)));
    Ok(catalog.table(oid).and_then(|view| system::view_text(view, pretty, cx)).into())
}

pub(super) fn get_indexdef(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let catalog = cx.catalog();
    let column = match args.get(1) {
        Some(Datum::Int4(n)) => *n,
        _ => 0,
    };
    let index = catalog.index(oid_of(args, 0)?);
    let pretty = matches!(args.get(2), Some(Datum::Bool(true)));
    Ok(index.and_then(|index| system::index_definition(&catalog, index, column, pretty, cx)).into())
}

pub(super) fn get_constraintdef(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let (catalog, oid) = (cx.catalog(), oid_of(args, 0)?);
    let pretty = matches!(args.get(1), Some(Datum::Bool(true)));
    match catalog.constrained_by(oid).map(|object| &**object) {
        Some(CatalogObject::Table(table)) => {
            let constraint = table.constraints.iter().counted(1).find(|c| c.oid == oid);
            let text = constraint.map(|c| system::constraint_definition(&catalog, table, c, pretty, cx));
            Ok(text.into())
        }
        Some(CatalogObject::Type(TypeDesc { kind: TypeKind::Domain(domain), .. })) => {
            let check = domain.checks.iter().counted(1).find(|check| check.oid == oid);
            Ok(check.map(|check| system::domain_check_definition(check, domain, pretty, cx)).into())
        }
        _ => Ok(Datum::Null),
    }
}

/// The text form of a `reg…` value, or its number if nothing has it; 0 is `-`.
fn reg_text(args: &[Datum], name: impl FnOnce(Oid) -> Option<String>) -> Result<Datum> {
    let oid = oid_of(args, 0)?;
    Ok(Datum::from(match oid.0 {
        0 => "-".to_string(),
        _ => name(oid).unwrap_or_else(|| oid.to_string()),
    }))
}

pub(super) fn regclass_out(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    reg_text(args, |oid| Some(system::relation_text(&cx.catalog(), &cx.identity().search_path, oid)))
}

pub(super) fn regtype_out(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    reg_text(args, |oid| type_info(oid).map(|_| shown_type(cx, oid, -1)))
}

pub(super) fn regnamespace_out(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    reg_text(args, |oid| cx.catalog().get(oid).map(|object| sql_parse::names::quote_name(object.name())))
}

pub(super) fn regproc_out(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    reg_text(args, |oid| {
        if extensions::function_by_oid(oid.0).is_some() {
            return super::regnames::function_text(cx, oid.0);
        }
        let name = system::function_name(oid.0)?;
        let quoted = sql_parse::names::quote_name(name);
        // A name that several functions have does not say which is meant; PostgreSQL shows its schema then.
        Some(if system::functions_named(name).len() > 1 { format!("pg_catalog.{quoted}") } else { quoted })
    })
}

/// The comment on a table or, with a number, one of its columns.
pub(super) fn description(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let (number, class) = match args.get(1) {
        Some(Datum::Int4(number)) => (i16::try_from(*number).unwrap_or(-1), Some("pg_class")),
        Some(Datum::Text(class)) => (0, Some(&**class)),
        _ => (0, None),
    };
    Ok(system::comment(&cx.catalog(), oid_of(args, 0)?, number, class).map_or(Datum::Null, Datum::Text))
}

/// A default or a check of a relation, found by its text; anything else is shown as it is.
pub(super) fn get_expr(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let (text, catalog) = (text_of(args, 0)?, cx.catalog());
    let pretty = matches!(args.get(2), Some(Datum::Bool(true)));
    let Some(table) = catalog.table(oid_of(args, 1)?) else { return Ok(args[0].clone()) };
    let column = system::column_of_node(text).and_then(|number| table.live_columns().find(|c| c.number == number));
    if let Some(column) = column {
        let ty = sql_ir::Ty { oid: column.type_oid, typmod: column.typmod };
        return Ok(match (&column.default, &column.generated) {
            (Some(default), _) => Datum::from(system::default_text(default, ty, pretty, cx)),
            (None, Some(generated)) => Datum::from(system::generated_text(generated, ty, table, pretty, cx)),
            (None, None) => Datum::Null,
        });
    }
    let is_it = |expression: &Expression| sql_bind::stored::text(expression, &catalog, Some(table)) == text;
    let check = table.constraints.iter().find_map(|c| match &c.kind {
        engine_api::ConstraintKind::Check { expression } if is_it(expression) => Some(expression),
        _ => None,
    });
    if let Some(check) = check {
        return Ok(Datum::from(system::check_text(check, table, pretty, cx)));
    }
    Ok(args[0].clone())
}

pub(super) fn get_serial_sequence(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let (name, column) = (text_of(args, 0)?, text_of(args, 1)?);
    let oid = names::find_relation(cx, name)?.ok_or_else(|| names::missing_relation(cx, name))?;
    let catalog = cx.catalog();
    let Some(table) = catalog.table(oid) else { return Ok(Datum::Null) };
    let number = table.column(column).ok_or_else(|| names::no_column(column, &table.name))?.number;
    for object in catalog.walk() {
        if let CatalogObject::Sequence(sequence) = &**object
            && sequence.owned_by == Some((oid, number))
        {
            return Ok(Datum::from(sql_parse::names::qualified(&cx.catalog(), sequence.schema, &sequence.name)));
        }
    }
    Ok(Datum::Null)
}

pub(super) fn publishable(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let oid = oid_of(args, 0)?;
    Ok(if names::relation_exists(cx, oid) { Datum::Bool(cx.catalog().table(oid).is_some()) } else { Datum::Null })
}

pub(super) fn replica_identity(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let catalog = cx.catalog();
    let primary = catalog.indexes(oid_of(args, 0)?).find(|i| i.primary);
    Ok(primary.map_or(Datum::Null, |i| Datum::Oid(i.oid.0)))
}

/// Which commands change a relation, as bits; whether a column can be changed.
/// Bits of the commands that change the rows of a relation, as PostgreSQL numbers them.
const UPDATE: i32 = 1 << 2;
const INSERT: i32 = 1 << 3;
const DELETE: i32 = 1 << 4;

/// What can be done to the rows of a relation.
fn events_of(cx: &dyn EvalContext, relation: Oid) -> i32 {
    let catalog = cx.catalog();
    let Some(table) = catalog.table(relation) else {
        let is_table = system_relation::numbered(relation).is_some_and(|relation| !relation.is_view());
        return if is_table { UPDATE | INSERT | DELETE } else { 0 };
    };
    match table.kind {
        TableKind::Table => UPDATE | INSERT | DELETE,
        TableKind::MaterializedView => 0,
        TableKind::View => [("update", UPDATE), ("insert into", INSERT), ("delete from", DELETE)]
            .iter()
            .filter(|(verb, _)| system::view_is_writable(table, verb, cx))
            .fold(0, |events, (_, event)| events | event),
    }
}

pub(super) fn relation_is_updatable(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    Ok(Datum::Int4(events_of(cx, oid_of(args, 0)?)))
}

pub(super) fn column_is_updatable(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let relation = oid_of(args, 0)?;
    let Datum::Int2(number @ 1..) = args[1] else { return Ok(Datum::Bool(false)) };
    let catalog = cx.catalog();
    let is_updatable = match catalog.table(relation).filter(|table| table.kind == TableKind::View) {
        Some(view) => {
            let columns = system::view_columns_writable(view, cx);
            columns.get(number as usize - 1) == Some(&true) && system::view_is_writable(view, "delete from", cx)
        }
        None => events_of(cx, relation) != 0,
    };
    Ok(Datum::Bool(is_updatable))
}

/// Argument types, whether the last repeats, result type and whether that is a set, of any function.
fn signature(oid: Oid) -> Option<(Cow<'static, [Oid]>, bool, Oid, bool)> {
    if let Some(f) = function_by_oid(oid.0) {
        return Some((f.args.into(), f.variadic, f.ret, false));
    }
    if let Some(a) = all_aggregates().iter().find(|a| a.oid == oid.0) {
        return Some((a.args.into(), false, a.ret, false));
    }
    if let Some(f) = system::internal_function(oid.0) {
        return Some((f.args.iter().map(|&ty| Oid(ty)).collect(), false, Oid(f.ret), false));
    }
    let set = all_set_functions().iter().find(|s| s.oid == oid.0)?;
    let ret = match set.columns {
        [(_, ty)] => *ty,
        _ => types::oid::RECORD,
    };
    Some((set.args.into(), set.variadic, ret, true))
}

pub(super) fn function_result(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    Ok(signature(oid_of(args, 0)?).map_or(Datum::Null, |(_, _, ret, set)| {
        let name = types::format_type(ret, -1);
        Datum::from(if set { format!("SETOF {name}") } else { name })
    }))
}

pub(super) fn function_arguments(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let oid = oid_of(args, 0)?;
    let Some((types, variadic, ..)) = signature(oid) else { return Ok(Datum::Null) };
    let mut names: Vec<String> = types.iter().map(|&t| types::format_type(t, -1)).collect();
    // Of functions that are built in, defaults would have to be shown beside them.
    if let Some((_, function)) = extensions::function_by_oid(oid.0) {
        names.iter_mut().zip(function.names).for_each(|(shown, name)| *shown = format!("{name} {shown}"));
    }
    if variadic && let Some(last) = names.last_mut() {
        last.insert_str(0, "VARIADIC ");
    }
    Ok(Datum::from(names.join(", ")))
}

/// `CREATE OR REPLACE FUNCTION …` of a function that is built in.
pub(super) fn function_definition(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    use functions::Volatility;
    let oid = oid_of(args, 0)?;
    let Some((types, variadic, ret, set)) = signature(oid) else { return Ok(Datum::Null) };
    let Some(name) = system::function_name(oid.0) else { return Ok(Datum::Null) };
    if all_aggregates().iter().any(|a| a.oid == oid.0) {
        let message = format!("\"{name}\" is an aggregate function");
        return Err(base::Error::new(base::SqlState::WRONG_OBJECT_TYPE, message));
    }
    let mut shown: Vec<String> = types.iter().map(|&t| types::format_type(t, -1)).collect();
    if variadic && let Some(last) = shown.last_mut() {
        last.insert_str(0, "VARIADIC ");
    }
    let function = function_by_oid(oid.0);
    let internal = system::internal_function(oid.0).filter(|_| function.is_none());
    let volatility = match (function.map(|f| f.volatility), internal.map(|f| f.volatility)) {
        (Some(Volatility::Volatile), _) | (None, Some('v')) => "",
        (Some(Volatility::Stable), _) | (None, Some('s')) => " STABLE",
        _ => " IMMUTABLE",
    };
    let is_strict = internal.map_or(function.is_none_or(|f| f.strict), system::is_strict);
    let strict = if is_strict { " STRICT" } else { "" };
    let (catalog, database) = (cx.catalog(), cx.identity().database_oid);
    let schema = extensions::installed(&catalog, database, oid.0).and_then(|extension| catalog.get(extension.schema));
    Ok(Datum::from(format!(
        "CREATE OR REPLACE FUNCTION {}.{}({})\n RETURNS {}{}\n LANGUAGE internal\n{volatility} PARALLEL SAFE{strict}\nAS \
         $function${name}$function$\n",
        schema.map_or_else(|| "pg_catalog".to_string(), |schema| sql_parse::names::quote_name(schema.name())),
        sql_parse::names::quote_name(name),
        shown.join(", "),
        if set { "SETOF " } else { "" },
        types::format_type(ret, -1),
    )))
}

/// Storage is not in files, so a relation's own number stands for the file's.
pub(super) fn filenode(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    match args.first() {
        Some(Datum::Oid(oid)) => Ok(if names::relation_exists(cx, Oid(*oid)) { Datum::Oid(*oid) } else { Datum::Null }),
        _ => Err(mismatch("pg_relation_filenode")),
    }
}
