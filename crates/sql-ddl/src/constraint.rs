//! Constraints: PRIMARY KEY, UNIQUE, CHECK, FOREIGN KEY, and checking the rows that are there already.

use base::{Error, Oid, Result, SqlState};
use engine_api::{
    Catalog, CatalogObject, ConstraintDesc, ConstraintKind, Expression, ForeignKeyAction, IndexDesc, IndexKey,
    Persistence, TableDesc, TableLockMode,
};
use rupg_sql::nodes::{ConstrType, Constraint};
use sql_bind::{self as bind, BindContext, own};
use sql_ir::{Expr, system_column};
use sql_parse::privileges::shown;

use super::Cx;
use super::names::{constraint_names, free_constraint_name, free_relation_name, parenthesised_after, strings};
use super::query::{first_row, has_row};
use super::storage;

/// A constraint still to be added; `column` for one written with a column.
pub(super) struct Pending {
    pub definition: Constraint,
    pub column: Option<i16>,
}

/// Adds constraints to a table: keys first, then checks, then foreign keys. `fresh`: the table has no rows yet.
pub(super) async fn add_constraints(cx: &mut Cx<'_>, table: Oid, pending: Vec<Pending>, fresh: bool) -> Result<()> {
    use ConstrType as K;
    let rank = |p: &Pending| match p.definition.contype {
        K::CONSTR_PRIMARY => 0,
        K::CONSTR_UNIQUE => 1,
        K::CONSTR_CHECK => 2,
        _ => 3,
    };
    let mut pending = pending;
    pending.sort_by_key(rank);
    if fresh {
        pending = without_repeated_keys(cx, table, pending);
    }
    for p in pending {
        let desc = cx.catalog().table(table).cloned().ok_or_else(|| Error::internal("the table went away"))?;
        let definition = &p.definition;
        match definition.contype {
            K::CONSTR_PRIMARY | K::CONSTR_UNIQUE => add_key(cx, desc, &p, fresh).await?,
            K::CONSTR_CHECK => add_check(cx, desc, &p, fresh).await?,
            K::CONSTR_FOREIGN => add_foreign_key(cx, desc, &p, fresh).await?,
            K::CONSTR_EXCLUSION => return Err(Error::unsupported("exclusion constraints are not supported")),
            _ => return Err(Error::unsupported("this constraint is not supported")),
        }
    }
    Ok(())
}

/// A second primary key is refused before anything is made.
pub(super) fn one_primary_key(cx: &Cx<'_>, table: &str, pending: &[Pending]) -> Result<()> {
    let mut primary = pending.iter().filter(|p| p.definition.contype == ConstrType::CONSTR_PRIMARY);
    // As they are written: those of columns come with the columns.
    let second = primary.nth(1).map(|second| second.definition.location);
    let Some(location) = second else { return Ok(()) };
    Err(second_primary_key(table).at_byte(cx.sql, location))
}

/// 42P16: a table has one primary key.
pub(super) fn second_primary_key(table: &str) -> Error {
    let message = format!("multiple primary keys for table \"{table}\" are not allowed");
    Error::new(SqlState::INVALID_TABLE_DEFINITION, message)
}

pub(super) fn has_primary_key(table: &TableDesc) -> bool {
    table.constraints.iter().any(|c| matches!(c.kind, ConstraintKind::PrimaryKey { .. }))
}

/// Of keys over the same columns one is enough; it takes the name of one that is left out if it has none.
fn without_repeated_keys(cx: &mut Cx<'_>, table: Oid, pending: Vec<Pending>) -> Vec<Pending> {
    let catalog = cx.catalog();
    let Some(table) = catalog.table(table) else { return pending };
    let columns = |p: &Pending| match p.column {
        Some(number) => vec![table.columns[number as usize - 1].name.clone()],
        None => strings(&p.definition.keys),
    };
    let alike = |a: &Pending, b: &Pending| {
        let (own, other) = (&a.definition, &b.definition);
        columns(a) == columns(b)
            && own.nulls_not_distinct == other.nulls_not_distinct
            && (own.deferrable, own.initdeferred) == (other.deferrable, other.initdeferred)
    };
    let mut kept: Vec<Pending> = Vec::with_capacity(pending.len());
    for next in pending {
        let is_key = matches!(next.definition.contype, ConstrType::CONSTR_PRIMARY | ConstrType::CONSTR_UNIQUE);
        let prior = kept.iter_mut().find(|prior| {
            let kinds = [ConstrType::CONSTR_PRIMARY, ConstrType::CONSTR_UNIQUE];
            is_key && kinds.contains(&prior.definition.contype) && alike(prior, &next)
        });
        match prior {
            Some(prior) => {
                if prior.definition.conname.is_none() {
                    prior.definition.conname = next.definition.conname;
                }
            }
            None => kept.push(next),
        }
    }
    kept
}

fn taken_names(table: &TableDesc) -> Vec<String> {
    table.constraints.iter().map(|c| c.name.clone()).collect()
}

pub(super) fn check_name_free(table: &TableDesc, name: &str) -> Result<()> {
    if table.constraints.iter().any(|c| c.name == name) {
        return Err(Error::new(
            SqlState::DUPLICATE_OBJECT,
            format!("constraint \"{name}\" for relation \"{}\" already exists", table.name),
        ));
    }
    Ok(())
}

/// Attribute numbers of key columns.
fn column_numbers(table: &TableDesc, names: &[String], what: &str, list: &str) -> Result<Vec<i16>> {
    let mut numbers = Vec::with_capacity(names.len());
    for name in names {
        let column = table.column(name).ok_or_else(|| {
            if system_column::of_table(table, name).is_some() {
                return Error::unsupported(match list {
                    "foreign key constraint" => "system columns cannot be used in foreign keys".to_string(),
                    "primary key constraint" => format!("cannot alter system column \"{name}\""),
                    _ => "index creation on system columns is not supported".to_string(),
                });
            }
            Error::new(SqlState::UNDEFINED_COLUMN, format!("column \"{name}\" {what} does not exist"))
        })?;
        if numbers.contains(&column.number) {
            return Err(Error::new(SqlState::DUPLICATE_COLUMN, format!("column \"{name}\" appears twice in {list}")));
        }
        numbers.push(column.number);
    }
    Ok(numbers)
}

/// The columns of INCLUDE, which may stand in it twice.
fn included(table: &TableDesc, definition: &Constraint) -> Result<Vec<i16>> {
    let mut numbers = Vec::new();
    for name in strings(&definition.including) {
        numbers.extend(column_numbers(table, &[name], "named in key", "")?);
    }
    Ok(numbers)
}

async fn add_key(cx: &mut Cx<'_>, mut table: TableDesc, p: &Pending, fresh: bool) -> Result<()> {
    let definition = &p.definition;
    let primary = definition.contype == ConstrType::CONSTR_PRIMARY;
    if let Some(index) = &definition.indexname {
        return adopt_index(cx, table, definition, index, primary).await;
    }
    let is_second = primary && has_primary_key(&table);
    if is_second && fresh {
        // LIKE has copied the first one.
        return Err(second_primary_key(&table.name));
    }
    // ALTER TABLE takes NULL from the columns of a primary key before it looks at anything else.
    let of_table = format!("of relation \"{}\"", table.name);
    let what = if primary && !fresh { &of_table } else { "named in key" };
    let columns = match p.column {
        Some(number) => vec![number],
        None => {
            let list = if primary { "primary key constraint" } else { "unique constraint" };
            column_numbers(&table, &strings(&definition.keys), what, list).map_err(|error| {
                // ALTER TABLE looks for the columns later, and does not say where they stand.
                let told = fresh || error.code() != SqlState::UNDEFINED_COLUMN;
                if told && error.code() != SqlState::FEATURE_NOT_SUPPORTED {
                    error.at_byte(cx.sql, definition.location)
                } else {
                    error
                }
            })?
        }
    };
    if !fresh {
        super::rights::require_schema(cx, table.schema, engine_api::Privileges::CREATE)?;
    }
    let place = |e: Error| if fresh { e.at_byte(cx.sql, definition.location) } else { e };
    let include = included(&table, definition).map_err(place)?;
    if is_second {
        return Err(second_primary_key(&table.name));
    }
    let mut names: Vec<String> = Vec::new();
    for &number in columns.iter().chain(&include) {
        let name = &table.columns[number as usize - 1].name;
        let numbered = (1..).map(|i| format!("{name}{i}"));
        let free = std::iter::once(name.clone()).chain(numbered).find(|name| !names.contains(name));
        names.extend(free);
    }
    let catalog = cx.catalog();
    let name = match &definition.conname {
        Some(name) => {
            if catalog.relation(table.schema, name).is_some() {
                return Err(Error::new(SqlState::DUPLICATE_TABLE, format!("relation \"{name}\" already exists")));
            }
            check_name_free(&table, name)?;
            name.to_string()
        }
        None => {
            let mut taken = constraint_names(&catalog, table.schema);
            taken.extend(taken_names(&table));
            let (columns, label) = if primary { (String::new(), "pkey") } else { (names.join("_"), "key") };
            free_relation_name(&catalog, table.schema, &table.name, &columns, label, &taken)
        }
    };
    for &number in &columns {
        sql_catalog::operator_classes::require_default(table.columns[number as usize - 1].type_oid, "btree")?;
    }
    if primary {
        let nullable: Vec<i16> = columns.iter().copied().filter(|&n| !table.columns[n as usize - 1].not_null).collect();
        for number in nullable {
            require_no_nulls(cx, &table, number).await?;
            table.columns[number as usize - 1].not_null = true;
        }
    }
    super::require_tablespace(definition.indexspace.as_deref())?;
    let keys = columns.iter().copied().map(IndexKey::ascending).collect();
    let index = IndexDesc {
        unique: true,
        primary,
        deferrable: definition.deferrable,
        nulls_not_distinct: definition.nulls_not_distinct,
        include,
        options: storage::given(&definition.options, storage::Of::Btree)?,
        ..IndexDesc::new(cx.allocate(), table.schema, name.clone(), table.oid, keys)
    };
    table.constraints.push(ConstraintDesc {
        deferrable: definition.deferrable,
        deferred: definition.initdeferred,
        ..ConstraintDesc::new(cx.allocate(), name, columns, index.demand())
    });
    cx.put(CatalogObject::Table(table)).await?;
    cx.put(CatalogObject::Index(index)).await
}

/// ADD PRIMARY KEY or UNIQUE USING INDEX: an index that is there becomes the constraint's, and takes its name.
async fn adopt_index(
    cx: &mut Cx<'_>,
    mut table: TableDesc,
    definition: &Constraint,
    name: &str,
    primary: bool,
) -> Result<()> {
    let catalog = cx.catalog();
    let mut index = match catalog.relation(table.schema, name).map(|o| &**o) {
        Some(CatalogObject::Index(index)) if index.table == table.oid => index.clone(),
        Some(CatalogObject::Index(_)) => {
            let message = format!("index \"{name}\" does not belong to table \"{}\"", table.name);
            return Err(
                Error::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, message).at_byte(cx.sql, definition.location)
            );
        }
        _ => {
            return Err(Error::new(SqlState::UNDEFINED_OBJECT, format!("index \"{name}\" does not exist"))
                .at_byte(cx.sql, definition.location));
        }
    };
    let own = |c: &&ConstraintDesc| {
        matches!(c.kind, ConstraintKind::PrimaryKey { index: used } | ConstraintKind::Unique { index: used }
            if used == index.oid)
    };
    let cannot = "Cannot create a primary key or unique constraint using such an index.";
    let refused = if table.constraints.iter().any(|c| own(&c)) {
        let message = format!("index \"{name}\" is already associated with a constraint");
        Some(Error::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, message))
    } else if index.invalid {
        let message = format!("index \"{name}\" is not valid");
        Some(Error::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, message))
    } else if !index.unique {
        Some(Error::new(SqlState::WRONG_OBJECT_TYPE, format!("\"{name}\" is not a unique index")).detail(cannot))
    } else if !index.expressions.is_empty() {
        Some(Error::new(SqlState::WRONG_OBJECT_TYPE, format!("index \"{name}\" contains expressions")).detail(cannot))
    } else if index.predicate.is_some() {
        Some(Error::new(SqlState::WRONG_OBJECT_TYPE, format!("\"{name}\" is a partial index")).detail(cannot))
    } else if let Some(at) = (0..index.keys.len()).find(|&at| !index.is_default_order(at)) {
        let at = at + 1;
        let message = format!("index \"{name}\" column number {at} does not have default sorting behavior");
        Some(Error::new(SqlState::WRONG_OBJECT_TYPE, message).detail(cannot))
    } else {
        None
    };
    if let Some(error) = refused {
        return Err(error.at_byte(cx.sql, definition.location));
    }
    if primary && has_primary_key(&table) {
        return Err(second_primary_key(&table.name));
    }
    let columns: Vec<i16> = index.keys.iter().map(|k| k.column).collect();
    for &number in columns.iter().filter(|_| primary) {
        if !table.columns[number as usize - 1].not_null {
            require_no_nulls(cx, &table, number).await?;
            table.columns[number as usize - 1].not_null = true;
        }
    }
    let new_name = definition.conname.as_deref().unwrap_or(name).to_string();
    check_name_free(&table, &new_name)?;
    if new_name != name {
        cx.check_free(table.schema, &new_name, false)?;
        let message =
            format!("ALTER TABLE / ADD CONSTRAINT USING INDEX will rename index \"{name}\" to \"{new_name}\"");
        cx.notice(SqlState::SUCCESSFUL_COMPLETION, message);
    }
    index.name = new_name.clone();
    index.primary = primary;
    index.deferrable = definition.deferrable;
    table.constraints.push(ConstraintDesc {
        deferrable: definition.deferrable,
        deferred: definition.initdeferred,
        ..ConstraintDesc::new(cx.allocate(), new_name, columns, index.demand())
    });
    cx.put(CatalogObject::Table(table)).await?;
    cx.put(CatalogObject::Index(index)).await
}

/// `value IS NULL`, or IS NOT NULL.
fn is_null(value: Expr, negated: bool) -> Expr {
    Expr::IsNull { arg: Box::new(value), negated, fields: false }
}

/// Refuses NULLs that are there already.
pub(super) async fn require_no_nulls(cx: &mut Cx<'_>, table: &TableDesc, number: i16) -> Result<()> {
    let column = &table.columns[number as usize - 1].name;
    let value = own::column(table, number as usize - 1, 0);
    if !has_row(cx, table.oid, &mut |_| Ok(Some(is_null(value.clone(), false)))).await? {
        return Ok(());
    }
    Err(Error::new(
        SqlState::NOT_NULL_VIOLATION,
        format!("column \"{column}\" of relation \"{}\" contains null values", table.name),
    )
    .schema(schema_of(&cx.catalog(), table))
    .table(&table.name)
    .column(column))
}

/// The name of a table's schema.
pub(super) fn schema_of(catalog: &Catalog, table: &TableDesc) -> String {
    catalog.get(table.schema).map(|s| s.name().to_string()).unwrap_or_default()
}

async fn add_check(cx: &mut Cx<'_>, mut table: TableDesc, p: &Pending, fresh: bool) -> Result<()> {
    let definition = &p.definition;
    let expression = parenthesised_after(cx.sql, definition.location, "check")
        .ok_or_else(|| Error::internal("a check without its text"))?;
    let text = expression;
    let expression = Expression::from(text);
    let columns = cx.session.check_condition(&expression, &table).map_err(|e| cx.place(e, text, fresh))?;
    let name = match &definition.conname {
        Some(name) => {
            let is_check = |c: &ConstraintDesc| c.name == **name && matches!(c.kind, ConstraintKind::Check { .. });
            if fresh && table.constraints.iter().any(is_check) {
                return Err(Error::new(
                    SqlState::DUPLICATE_OBJECT,
                    format!("check constraint \"{name}\" already exists"),
                ));
            }
            check_name_free(&table, name)?;
            name.to_string()
        }
        None => {
            // PostgreSQL names a check after its column if it is about exactly one.
            let column = match columns.as_slice() {
                [one] => table.columns[*one as usize - 1].name.clone(),
                _ => String::new(),
            };
            free_constraint_name(&cx.catalog(), table.schema, &taken_names(&table), &table.name, &column, "check")
        }
    };
    if !fresh && !definition.skip_validation {
        validate_check(cx, &table, &expression, &name).await?;
    }
    let kind = ConstraintKind::Check { expression };
    table.constraints.push(ConstraintDesc {
        not_valid: !fresh && definition.skip_validation,
        no_inherit: definition.is_no_inherit,
        ..ConstraintDesc::new(cx.allocate(), name, columns, kind)
    });
    cx.put(CatalogObject::Table(table)).await
}

fn action(code: u8) -> ForeignKeyAction {
    match code {
        b'r' => ForeignKeyAction::Restrict,
        b'c' => ForeignKeyAction::Cascade,
        b'n' => ForeignKeyAction::SetNull,
        b'd' => ForeignKeyAction::SetDefault,
        _ => ForeignKeyAction::NoAction,
    }
}

/// Actions that would write to a generated column.
fn refuse_generated(table: &TableDesc, columns: &[i16], definition: &Constraint) -> Result<()> {
    use ForeignKeyAction as A;
    if !columns.iter().any(|&number| table.columns[number as usize - 1].generated.is_some()) {
        return Ok(());
    }
    let (update, delete) = (action(definition.fk_upd_action), action(definition.fk_del_action));
    let what = match (update, delete) {
        (A::SetNull | A::SetDefault | A::Cascade, _) => "ON UPDATE",
        (_, A::SetNull | A::SetDefault) => "ON DELETE",
        _ => return Ok(()),
    };
    let message = format!("invalid {what} action for foreign key constraint containing generated column");
    Err(Error::new(SqlState::SYNTAX_ERROR, message))
}

async fn add_foreign_key(cx: &mut Cx<'_>, mut table: TableDesc, p: &Pending, fresh: bool) -> Result<()> {
    let definition = &p.definition;
    if definition.fk_matchtype == b'p' {
        return Err(Error::unsupported("MATCH PARTIAL not yet implemented"));
    }
    if let Some(name) = &definition.conname {
        check_name_free(&table, name)?;
    }
    let target = definition.pktable.as_deref().ok_or_else(|| Error::internal("a foreign key without a table"))?;
    if let Some(CatalogObject::Table(other)) = cx.find_relation(target)?.as_deref()
        && other.kind != engine_api::TableKind::Table
    {
        let message = format!("referenced relation \"{}\" is not a table", other.name);
        return Err(Error::new(SqlState::WRONG_OBJECT_TYPE, message));
    }
    let referenced = cx.locked_table(target, TableLockMode::ShareRowExclusive).await?;
    let kinds = (table.persistence == Persistence::Temporary, referenced.persistence == Persistence::Temporary);
    let kept = (table.persistence == Persistence::Permanent, referenced.persistence == Persistence::Permanent);
    if kept == (true, false) && !kinds.1 {
        let message = "constraints on permanent tables may reference only permanent tables";
        return Err(Error::new(SqlState::INVALID_TABLE_DEFINITION, message));
    }
    if kinds.0 != kinds.1 {
        let kind = if kinds.0 { "temporary" } else { "permanent" };
        let message = format!("constraints on {kind} tables may reference only {kind} tables");
        return Err(Error::new(SqlState::INVALID_TABLE_DEFINITION, message));
    }
    let columns = match p.column {
        Some(number) => vec![number],
        None => column_numbers(
            &table,
            &strings(&definition.fk_attrs),
            "referenced in foreign key constraint",
            "foreign key constraint",
        )?,
    };
    let wanted = strings(&definition.pk_attrs);
    let (target_columns, index) = referenced_key(&cx.catalog(), &referenced, &wanted)?;
    super::rights::may_reference(cx, &referenced, &target_columns)?;
    refuse_generated(&table, &columns, definition)?;
    if columns.len() != target_columns.len() {
        return Err(Error::new(
            SqlState::INVALID_FOREIGN_KEY,
            "number of referencing and referenced columns for foreign key disagree",
        ));
    }
    let mut set_columns = Vec::new();
    for column in strings(&definition.fk_del_set_cols) {
        let found = table.column(&column).map(|c| c.number).ok_or_else(|| {
            let message = format!("column \"{column}\" referenced in foreign key constraint does not exist");
            Error::new(SqlState::UNDEFINED_COLUMN, message)
        })?;
        if !columns.contains(&found) {
            let message = format!("column \"{column}\" referenced in ON DELETE SET action must be part of foreign key");
            return Err(Error::new(SqlState::INVALID_COLUMN_REFERENCE, message));
        }
        if !set_columns.contains(&found) {
            set_columns.push(found);
        }
    }
    let names: Vec<&str> = columns.iter().map(|&n| table.columns[n as usize - 1].name.as_str()).collect();
    let name = match &definition.conname {
        Some(name) => name.to_string(),
        None => {
            let taken = taken_names(&table);
            free_constraint_name(&cx.catalog(), table.schema, &taken, &table.name, &names.join("_"), "fkey")
        }
    };
    require_comparable(cx, (&table, &columns), (&referenced, &target_columns), &name)?;
    if !fresh && !definition.skip_validation {
        let full = definition.fk_matchtype == b'f';
        validate_foreign_key(cx, (&table, &columns), (&referenced, &target_columns), full, &name).await?;
    }
    let kind = ConstraintKind::ForeignKey {
        table: referenced.oid,
        columns: target_columns,
        index,
        on_delete: action(definition.fk_del_action),
        on_update: action(definition.fk_upd_action),
        match_full: definition.fk_matchtype == b'f',
        set_columns,
    };
    table.constraints.push(ConstraintDesc {
        deferrable: definition.deferrable,
        deferred: definition.initdeferred,
        not_valid: !fresh && definition.skip_validation,
        ..ConstraintDesc::new(cx.allocate(), name, columns, kind)
    });
    cx.put(CatalogObject::Table(table)).await?;
    // The referenced table's plans must learn that they are referenced now: its version rises with it.
    if let Some(referenced) = cx.catalog().table(referenced.oid).cloned() {
        cx.put(CatalogObject::Table(referenced)).await?;
    }
    Ok(())
}

/// Refuses a foreign key whose columns cannot be compared with those that it points at.
pub(super) fn require_comparable(
    cx: &mut Cx<'_>,
    (table, columns): (&TableDesc, &[i16]),
    (referenced, targets): (&TableDesc, &[i16]),
    name: &str,
) -> Result<()> {
    for (&from, &to) in columns.iter().zip(targets) {
        let (from, to) = (&table.columns[from as usize - 1], &referenced.columns[to as usize - 1]);
        if !cx.session.comparable(from.type_oid, to.type_oid) {
            return Err(Error::new(
                SqlState::DATATYPE_MISMATCH,
                format!("foreign key constraint \"{name}\" cannot be implemented"),
            )
            .detail(format!(
                "Key columns \"{}\" and \"{}\" are of incompatible types: {} and {}.",
                from.name,
                to.name,
                cx.session.shown_type(from.type_oid, -1),
                cx.session.shown_type(to.type_oid, -1)
            )));
        }
    }
    Ok(())
}

/// Looks at all rows for the constraints that are about columns which have got other values, those of tables that point at them
/// among them.
pub(super) async fn look_again(cx: &mut Cx<'_>, oid: Oid, changed: &[i16]) -> Result<()> {
    let catalog = cx.catalog();
    let touches = |columns: &[i16]| columns.iter().any(|c| changed.contains(c));
    let mut all: Vec<(Oid, ConstraintDesc)> = Vec::new();
    for table in catalog.walk().filter_map(|o| catalog.table(o.oid())) {
        let concerned = |c: &&ConstraintDesc| match &c.kind {
            ConstraintKind::Check { .. } => table.oid == oid && touches(&c.columns),
            ConstraintKind::ForeignKey { table: referenced, columns, .. } => {
                (table.oid == oid && touches(&c.columns)) || (*referenced == oid && touches(columns))
            }
            _ => false,
        };
        all.extend(table.constraints.iter().filter(concerned).map(|c| (table.oid, c.clone())));
    }
    // Checks before keys, each in the order in which they were made.
    all.sort_by_key(|(_, c)| (matches!(c.kind, ConstraintKind::ForeignKey { .. }), c.oid));
    for (owner, constraint) in all {
        if owner != oid {
            cx.lock(owner, TableLockMode::AccessExclusive).await?;
        }
        let Some(mut table) = cx.catalog().table(owner).cloned() else { continue };
        if let ConstraintKind::ForeignKey { table: referenced, columns, .. } = &constraint.kind
            && let Some(referenced) = cx.catalog().table(*referenced)
        {
            require_comparable(cx, (&table, &constraint.columns), (referenced, columns), &constraint.name)?;
        }
        if !constraint.not_valid {
            look_at_all(cx, &table, &constraint, &constraint.name).await?;
        }
        // PostgreSQL makes it anew. Plans compare with the new type from now on.
        if let Some(own) = table.constraints.iter_mut().find(|own| own.oid == constraint.oid) {
            own.oid = cx.allocate();
        }
        cx.put(CatalogObject::Table(table)).await?;
    }
    Ok(())
}

/// The columns a foreign key points at and the unique index over them.
fn referenced_key(catalog: &Catalog, table: &TableDesc, wanted: &[String]) -> Result<(Vec<i16>, Oid)> {
    if wanted.is_empty() {
        let primary = catalog.indexes(table.oid).find(|i| i.primary).ok_or_else(|| {
            Error::new(
                SqlState::UNDEFINED_OBJECT,
                format!("there is no primary key for referenced table \"{}\"", table.name),
            )
        })?;
        refuse_deferrable(primary, table, "primary key")?;
        return Ok((primary.keys.iter().map(|k| k.column).collect(), primary.oid));
    }
    let columns = column_numbers(table, wanted, "referenced in foreign key constraint", "foreign key constraint")?;
    let same_set = |index: &&IndexDesc| {
        index.unique
            && !index.invalid
            && !index.needs_code()
            && index.keys.len() == columns.len()
            && index.keys.iter().all(|k| columns.contains(&k.column))
    };
    let found = catalog.indexes(table.oid).filter(same_set).min_by_key(|index| index.deferrable);
    match found {
        Some(index) => {
            refuse_deferrable(index, table, "unique constraint")?;
            Ok((columns, index.oid))
        }
        None => Err(Error::new(
            SqlState::INVALID_FOREIGN_KEY,
            format!("there is no unique constraint matching given keys for referenced table \"{}\"", table.name),
        )),
    }
}

/// 55000
fn refuse_deferrable(index: &IndexDesc, table: &TableDesc, kind: &str) -> Result<()> {
    if !index.deferrable {
        return Ok(());
    }
    let message = format!("cannot use a deferrable {kind} for referenced table \"{}\"", table.name);
    Err(Error::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, message))
}

/// `VALIDATE CONSTRAINT`: looks at all rows of a constraint that was added NOT VALID.
pub(super) async fn validate(cx: &mut Cx<'_>, table: &TableDesc, name: &str) -> Result<()> {
    let Some(constraint) = table.constraints.iter().find(|c| c.name == name) else {
        let message = format!("constraint \"{name}\" of relation \"{}\" does not exist", table.name);
        return Err(Error::new(SqlState::UNDEFINED_OBJECT, message));
    };
    let checkable = matches!(constraint.kind, ConstraintKind::Check { .. } | ConstraintKind::ForeignKey { .. });
    if checkable && !constraint.not_valid {
        return Ok(());
    }
    look_at_all(cx, table, constraint, name).await?;
    let mut desc = cx.catalog().table(table.oid).cloned().ok_or_else(|| Error::internal("the table went away"))?;
    desc.constraints.iter_mut().filter(|c| c.name == name).for_each(|c| c.not_valid = false);
    cx.put(CatalogObject::Table(desc)).await
}

async fn look_at_all(cx: &mut Cx<'_>, table: &TableDesc, constraint: &ConstraintDesc, name: &str) -> Result<()> {
    match &constraint.kind {
        ConstraintKind::Check { expression } => validate_check(cx, table, expression, name).await,
        ConstraintKind::ForeignKey { table: referenced, columns, match_full, .. } => {
            let Some(referenced) = cx.catalog().table(*referenced).cloned() else {
                return Err(Error::internal("a foreign key without the table it refers to"));
            };
            cx.lock(referenced.oid, TableLockMode::RowShare).await?;
            validate_foreign_key(cx, (table, &constraint.columns), (&referenced, columns), *match_full, name).await
        }
        _ => Err(Error::new(
            SqlState::WRONG_OBJECT_TYPE,
            format!("constraint \"{name}\" of relation \"{}\" is not a foreign key or check constraint", table.name),
        )),
    }
}

async fn validate_check(cx: &mut Cx<'_>, table: &TableDesc, expression: &Expression, name: &str) -> Result<()> {
    let mut violated = |binder: &mut BindContext<'_>| {
        let condition = bind::bind_check(expression, table, binder)?;
        Ok(Some(Expr::Not(Box::new(condition))))
    };
    if !has_row(cx, table.oid, &mut violated).await? {
        return Ok(());
    }
    Err(Error::new(
        SqlState::CHECK_VIOLATION,
        format!("check constraint \"{name}\" of relation \"{}\" is violated by some row", table.name),
    )
    .schema(schema_of(&cx.catalog(), table))
    .table(&table.name)
    .constraint(name))
}

/// Evaluates what an index computes over all rows of its table, where it casts to domains, which storage does not test.
///
/// # Errors
/// 23514 and 23502 of the domains, and what the expressions fail with.
pub(super) async fn test_domains(cx: &mut Cx<'_>, table: &TableDesc, index: &IndexDesc) -> Result<()> {
    let has_rows =
        table.kind != engine_api::TableKind::MaterializedView || table.view.as_ref().is_some_and(|view| view.populated);
    if !has_rows || !sql_bind::casts_to_domains(index) {
        return Ok(());
    }
    let mut failing = |binder: &mut BindContext<'_>| {
        let test = bind::bind_index_test(index, table, binder)?;
        Ok(Some(Expr::BooleanTest { arg: Box::new(test), want: Some(true), negated: true }))
    };
    has_row(cx, table.oid, &mut failing).await.map(drop)
}

async fn validate_foreign_key(
    cx: &mut Cx<'_>,
    (table, columns): (&TableDesc, &[i16]),
    (referenced, targets): (&TableDesc, &[i16]),
    match_full: bool,
    name: &str,
) -> Result<()> {
    let catalog = cx.catalog();
    let of_child = |level| columns.iter().map(move |&number| own::column(table, number as usize - 1, level));
    let mut unmatched = |binder: &mut BindContext<'_>| {
        let [child, parent] = [table, referenced].map(|desc| own::table_info(&binder.catalog, desc.oid));
        let keys = targets.iter().map(|&number| own::column(referenced, number as usize - 1, 0));
        let same = of_child(1).zip(keys).map(|(value, key)| bind::key_equal(value, key)).collect::<Result<_>>()?;
        let partner = own::rows_of(&parent?, Some(Expr::And(same)));
        let present = of_child(0).map(|value| is_null(value, true)).collect();
        // MATCH FULL wants all of a key or nothing of it.
        let present = if match_full { Expr::Or(present) } else { Expr::And(present) };
        let rows = own::rows_of(&child?, Some(Expr::And(vec![present, own::exists_no(partner)])));
        Ok(own::giving(rows, of_child(0)))
    };
    let Some(row) = first_row(cx, &[table.oid, referenced.oid], &mut unmatched).await? else { return Ok(()) };
    if row.iter().any(|value| value.is_null()) {
        let message =
            format!("insert or update on table \"{}\" violates foreign key constraint \"{name}\"", table.name);
        return Err(Error::new(SqlState::FOREIGN_KEY_VIOLATION, message)
            .detail("MATCH FULL does not allow mixing of null and nonnull key values.")
            .schema(schema_of(&catalog, table))
            .table(&table.name)
            .constraint(name));
    }
    let names: Vec<&str> = columns.iter().map(|&n| table.columns[n as usize - 1].name.as_str()).collect();
    let types = columns.iter().map(|&n| table.columns[n as usize - 1].type_oid);
    let values: Vec<String> = row.iter().zip(types).map(|(value, ty)| cx.session.text_of_value(value, ty)).collect();
    let who = cx.session.identity().who();
    let key = match shown::reads_columns(&catalog, who, table.oid, columns.iter().copied()) {
        true => format!("({})=({}) ", names.join(", "), values.join(", ")),
        false => String::new(),
    };
    Err(Error::new(
        SqlState::FOREIGN_KEY_VIOLATION,
        format!("insert or update on table \"{}\" violates foreign key constraint \"{name}\"", table.name),
    )
    .detail(format!("Key {key}is not present in table \"{}\".", referenced.name))
    .schema(schema_of(&catalog, table))
    .table(&table.name)
    .constraint(name))
}
