//! CREATE TYPE … AS ENUM, ALTER TYPE, CREATE and ALTER DOMAIN; DROP is in `drop`.
//!
//! Invariant: an enum's labels keep their order and identity for ever, so that a value once stored keeps its meaning.

use base::{Error, Oid, Result, SqlState, work};
use engine_api::{
    Catalog, CatalogObject, ColumnDesc, DomainCheck, DomainDesc, EnumLabel, Expression, MadeOnce, Privileges,
    TableDesc, TableKind, TableLockMode, TypeDesc, TypeKind, oids,
};
use rupg_sql::nodes::{
    AlterDomainStmt, AlterDomainType, AlterEnumStmt, ConstrType, Constraint, CreateDomainStmt, CreateEnumStmt, Node,
    RangeVar, RenameStmt,
};
use rustc_hash::FxHashSet;
use sql_bind::{BindContext, own};
use sql_ir::{Expr, Ty};
use sql_parse::names::quote_name;
use sql_parse::privileges;

use super::alter_table::without_position;
use super::names::{display, expression_after, free_constraint_name, parenthesised_after, strings};
use super::query::has_row;
use super::{Cx, rights};

/// Bytes of a label.
const LABEL_MAX: usize = 63;

pub(super) fn range(names: &[Option<Node>]) -> RangeVar {
    let mut names = strings(names);
    RangeVar {
        relname: names.pop().map(Into::into),
        schemaname: names.pop().map(Into::into),
        location: -1,
        relpersistence: b'p',
        ..Default::default()
    }
}

impl Cx<'_> {
    /// The type of a name, if a statement made it.
    pub(super) fn find_type(&mut self, name: &RangeVar) -> Result<Option<TypeDesc>> {
        let catalog = self.catalog();
        let relname = name.relname.as_deref().unwrap_or_default();
        let schemas = match &name.schemaname {
            Some(schema) => {
                let schema = self.schema_named(&catalog, schema)?.oid;
                rights::require_schema(self, schema, Privileges::USAGE)?;
                vec![schema]
            }
            None => self.session.search_path(&catalog),
        };
        // A built-in type of the name hides those behind it.
        let built_in = types::type_named(relname).is_some();
        let first = |schema: &Oid| {
            (built_in && *schema == oids::SCHEMA_PG_CATALOG) || catalog.type_named(*schema, relname).is_some()
        };
        let found = schemas.into_iter().find(first);
        Ok(found.and_then(|schema| catalog.type_named(schema, relname).cloned()))
    }

    /// A type that is to change, locked.
    pub(super) async fn locked_type(&mut self, name: &RangeVar) -> Result<TypeDesc> {
        let missing = || {
            let message = format!("type \"{}\" does not exist", display(name));
            Error::new(SqlState::UNDEFINED_OBJECT, message)
        };
        let found = self.find_type(name)?.ok_or_else(missing)?;
        self.lock(found.oid, TableLockMode::AccessExclusive).await?;
        self.find_type(name)?.ok_or_else(missing)
    }

    fn check_type_free(&mut self, schema: Oid, name: &str) -> Result<()> {
        let catalog = self.catalog();
        let taken = catalog.type_named(schema, name).is_some()
            || catalog.relation(schema, name).is_some_and(|o| matches!(&**o, CatalogObject::Table(_)));
        if taken {
            return Err(Error::new(SqlState::DUPLICATE_OBJECT, format!("type \"{name}\" already exists")));
        }
        Ok(())
    }
}

fn check_label(label: &str) -> Result<()> {
    if label.is_empty() || label.len() > LABEL_MAX {
        return Err(Error::new(SqlState::INVALID_NAME, format!("invalid enum label \"{label}\""))
            .detail(format!("Labels must be {LABEL_MAX} bytes or less.")));
    }
    Ok(())
}

/// The schema in which a new type of this name is made. PostgreSQL lets superusers make types in `pg_catalog`.
async fn type_schema(cx: &mut Cx<'_>, name: &RangeVar) -> Result<Oid> {
    if name.schemaname.as_deref() == Some("pg_catalog") {
        rights::require_schema(cx, oids::SCHEMA_PG_CATALOG, Privileges::CREATE)?;
    }
    cx.creation_schema(name).await
}

pub(super) async fn create_enum(cx: &mut Cx<'_>, stmt: &CreateEnumStmt) -> Result<&'static str> {
    let name = range(&stmt.typeName);
    let schema = type_schema(cx, &name).await?;
    let relname = name.relname.as_deref().unwrap_or_default();
    cx.check_type_free(schema, relname)?;
    let (oid, array) = (cx.allocate(), cx.allocate());
    let mut labels: Vec<EnumLabel> = Vec::with_capacity(stmt.vals.len());
    let mut known = FxHashSet::default();
    for label in strings(&stmt.vals) {
        work::step(64)?;
        check_label(&label)?;
        if !known.insert(label.clone()) {
            let message = "duplicate key value violates unique constraint \"pg_enum_typid_label_index\"";
            return Err(Error::new(SqlState::UNIQUE_VIOLATION, message)
                .detail(format!("Key (enumtypid, enumlabel)=({oid}, {label}) already exists."))
                .schema("pg_catalog")
                .table("pg_enum")
                .constraint("pg_enum_typid_label_index"));
        }
        let order = (labels.len() + 1) as f32;
        labels.push(EnumLabel::new(cx.allocate(), label, vec![order], order, 0));
    }
    let owner = cx.owner();
    let kind = TypeKind::Enum(labels);
    let desc = TypeDesc {
        oid,
        array,
        schema,
        name: relname.to_string(),
        owner,
        kind,
        comment: None,
        made: MadeOnce::default(),
    };
    cx.put(CatalogObject::Type(desc)).await?;
    Ok("CREATE TYPE")
}

fn not_an_enum(desc: &TypeDesc) -> Error {
    Error::new(SqlState::WRONG_OBJECT_TYPE, format!("{} is not an enum", quote_name(&desc.name)))
}

pub(super) fn not_a_domain(cx: &mut Cx<'_>, ty: Oid) -> Error {
    let shown = cx.session.shown_type(ty, -1);
    Error::new(SqlState::WRONG_OBJECT_TYPE, format!("{shown} is not a domain"))
}

/// ALTER TYPE and ALTER DOMAIN … OWNER TO.
pub(super) async fn change_owner(
    cx: &mut Cx<'_>,
    names: &[Option<Node>],
    domain: bool,
    owner: Oid,
) -> Result<&'static str> {
    let mut desc = cx.locked_type(&range(names)).await?;
    let tag = if domain { "ALTER DOMAIN" } else { "ALTER TYPE" };
    if domain && !matches!(desc.kind, TypeKind::Domain(_)) {
        return Err(not_a_domain(cx, desc.oid));
    }
    if desc.owner != owner && !cx.session.is_superuser() {
        rights::own_type(cx, &desc)?;
        super::role::require_member(cx, owner)?;
        let who = privileges::Who { role: owner, ..cx.session.who() };
        if let Some(schema) = cx.catalog().get(desc.schema) {
            privileges::require(&cx.catalog(), who, schema, Privileges::CREATE)?;
        }
    }
    let (oid, old) = (desc.oid, std::mem::replace(&mut desc.owner, owner));
    cx.put(CatalogObject::Type(desc)).await?;
    if old != owner {
        super::owner::change_grantor(cx, oid, old, owner).await?;
    }
    Ok(tag)
}

/// Converts the values of columns added with a default of this enum that a table of an earlier version keeps by label.
async fn keep_values(cx: &mut Cx<'_>, ty: Oid) -> Result<()> {
    let by_label = |column: &ColumnDesc| {
        column.missing.is_some()
            && column.missing_row.is_none()
            && sql_ir::row_codec::enum_of(column.type_oid) == Some(ty)
    };
    let tables: Vec<Oid> = cx
        .catalog()
        .walk()
        .filter_map(|object| match &**object {
            CatalogObject::Table(table) if table.columns.iter().any(by_label) => Some(table.oid),
            _ => None,
        })
        .collect();
    for oid in tables {
        cx.lock(oid, TableLockMode::ShareUpdateExclusive).await?;
        let Some(mut table) = cx.catalog().table(oid).cloned() else { continue };
        table.columns.iter_mut().try_for_each(sql_ir::row_codec::keep_missing)?;
        cx.put(CatalogObject::Table(table)).await?;
    }
    Ok(())
}

pub(super) async fn alter_enum(cx: &mut Cx<'_>, stmt: &AlterEnumStmt) -> Result<&'static str> {
    let mut desc = cx.locked_type(&range(&stmt.typeName)).await?;
    let oid = desc.oid;
    let new = stmt.newVal.as_deref().unwrap_or_default();
    if matches!(desc.kind, TypeKind::Enum(_)) {
        rights::own_type(cx, &desc)?;
    }
    let TypeKind::Enum(labels) = &mut desc.kind else { return Err(not_an_enum(&desc)) };
    let missing = |label: &str| {
        Error::new(SqlState::INVALID_PARAMETER_VALUE, format!("\"{label}\" is not an existing enum label"))
    };
    if let Some(old) = stmt.oldVal.as_deref() {
        check_label(new)?;
        let at = labels.iter().position(|l| l.name == old).ok_or_else(|| missing(old))?;
        if labels.iter().any(|l| l.name == new) {
            let message = format!("enum label \"{new}\" already exists");
            return Err(Error::new(SqlState::DUPLICATE_OBJECT, message));
        }
        labels[at].name = new.to_string();
        keep_values(cx, oid).await?;
    } else {
        check_label(new)?;
        if labels.iter().any(|l| l.name == new) {
            let message = format!("enum label \"{new}\" already exists");
            if stmt.skipIfNewValExists {
                cx.notice(SqlState::DUPLICATE_OBJECT, format!("{message}, skipping"));
                return Ok("ALTER TYPE");
            }
            return Err(Error::new(SqlState::DUPLICATE_OBJECT, message));
        }
        let at = match stmt.newValNeighbor.as_deref() {
            None => labels.len(),
            Some(neighbor) => {
                let found = labels.iter().position(|l| l.name == neighbor);
                found.ok_or_else(|| missing(neighbor))? + stmt.newValIsAfter as usize
            }
        };
        let at_end = stmt.newValNeighbor.is_none();
        let label = new_label(labels, at, at_end, new, || cx.allocate())?;
        labels.insert(at, label);
    }
    cx.put(CatalogObject::Type(desc)).await?;
    Ok("ALTER TYPE")
}

/// A label to stand before the one at `at`, or after all.
fn new_label(
    labels: &mut [EnumLabel],
    at: usize,
    at_end: bool,
    name: &str,
    allocate: impl FnOnce() -> Oid,
) -> Result<EnumLabel> {
    let neighbour = |labels: &[EnumLabel]| {
        let before = at.checked_sub(1).and_then(|i| labels.get(i)).map(EnumLabel::shown);
        (before, labels.get(at).filter(|_| !at_end).map(EnumLabel::shown))
    };
    let shown = match neighbour(labels) {
        (None, None) => 1.0,
        (Some(before), None) => before + 1.0,
        (None, Some(after)) => after - 1.0,
        (Some(before), Some(after)) => match (before + after) / 2.0 {
            middle if middle != before && middle != after => middle,
            _ => {
                // Only what is shown is numbered anew: values keep their marks.
                for (i, label) in labels.iter_mut().enumerate() {
                    label.shown = Some((i + 1) as f32);
                }
                at as f32 + 0.5
            }
        },
    };
    let before = at.checked_sub(1).and_then(|i| labels.get(i)).map(EnumLabel::place);
    let place = types::place::between(before, labels.get(at).map(EnumLabel::place))
        .ok_or_else(|| Error::unsupported("there is no place left between the labels of the enum"))?;
    let names = labels.iter().filter(|l| !l.path.is_empty()).count();
    Ok(EnumLabel { added: true, ..EnumLabel::new(allocate(), name.to_string(), place, shown, names) })
}

/// The text behind a constraint's keyword.
fn check_text<'a>(cx: &Cx<'a>, constraint: &Constraint) -> Result<&'a str> {
    parenthesised_after(cx.sql, constraint.location, "check")
        .ok_or_else(|| Error::internal("a domain constraint without its text"))
}

fn new_check(
    cx: &mut Cx<'_>,
    domain: &DomainDesc,
    (schema, owner): (Oid, &str),
    constraint: &Constraint,
) -> Result<DomainCheck> {
    let text = check_text(cx, constraint)?;
    cx.session.check_domain_condition(&text.into(), domain).map_err(without_position)?;
    let taken: Vec<String> = domain.checks.iter().map(|c| c.name.clone()).collect();
    let name = match constraint.conname.as_deref() {
        Some(name) if taken.iter().any(|t| t == name) => {
            let message = format!("constraint \"{name}\" for domain \"{owner}\" already exists");
            return Err(Error::new(SqlState::DUPLICATE_OBJECT, message));
        }
        Some(name) => name.to_string(),
        None => free_constraint_name(&cx.catalog(), schema, &taken, owner, "", "check"),
    };
    let not_valid = constraint.skip_validation;
    Ok(DomainCheck { oid: cx.allocate(), name, expression: text.into(), comment: None, not_valid })
}

pub(super) async fn create_domain(cx: &mut Cx<'_>, stmt: &CreateDomainStmt) -> Result<&'static str> {
    let name = range(&stmt.domainname);
    let schema = type_schema(cx, &name).await?;
    let relname = name.relname.as_deref().unwrap_or_default().to_string();
    cx.check_type_free(schema, &relname)?;
    let type_name = stmt.typeName.as_deref().ok_or_else(|| Error::internal("a domain without a type"))?;
    // PostgreSQL does not say where the type stands here.
    let ty = cx.column_type(type_name).map_err(without_position)?.ty;
    if types::type_info(ty.oid).is_some_and(|t| t.category == 'P') {
        let message = format!("\"{}\" is not a valid base type for a domain", types::format_type(ty.oid, -1));
        return Err(Error::new(SqlState::DATATYPE_MISMATCH, message).at_byte(cx.sql, type_name.location));
    }
    super::rights::require_type(cx, ty.oid)?;
    // Nor does it say where the collation stands.
    let collation = cx.collation(stmt.collClause.as_deref(), ty.oid).map_err(without_position)?;
    let (base, typmod) = (ty.oid, ty.typmod);
    let (not_null, default, default_is_own, default_of) = (false, None, true, None);
    let mut domain =
        DomainDesc { base, typmod, not_null, default, default_is_own, default_of, checks: Vec::new(), collation };
    let mut checks = Vec::new();
    let mut said = false;
    let mut nullable: Option<bool> = None;
    for (at, node) in stmt.constraints.iter().flatten().enumerate() {
        let Node::Constraint(constraint) = node else { continue };
        let conflict = || Error::new(SqlState::SYNTAX_ERROR, "conflicting NULL/NOT NULL constraints");
        match constraint.contype {
            ConstrType::CONSTR_NOTNULL if nullable == Some(true) => return Err(conflict()),
            ConstrType::CONSTR_NULL if nullable == Some(false) => return Err(conflict()),
            ConstrType::CONSTR_NOTNULL => (domain.not_null, nullable) = (true, Some(false)),
            ConstrType::CONSTR_NULL => nullable = Some(true),
            ConstrType::CONSTR_DEFAULT => {
                if std::mem::replace(&mut said, true) {
                    return Err(Error::new(SqlState::SYNTAX_ERROR, "multiple default expressions"));
                }
                domain.default = Some(default_text(cx, constraint.location, ty, &relname)?);
            }
            ConstrType::CONSTR_CHECK => checks.push((at, constraint)),
            ConstrType::CONSTR_UNIQUE => {
                return Err(Error::new(SqlState::SYNTAX_ERROR, "unique constraints not possible for domains"));
            }
            ConstrType::CONSTR_PRIMARY => {
                return Err(Error::new(SqlState::SYNTAX_ERROR, "primary key constraints not possible for domains"));
            }
            ConstrType::CONSTR_FOREIGN => {
                return Err(Error::new(SqlState::SYNTAX_ERROR, "foreign key constraints not possible for domains"));
            }
            _ => return Err(Error::unsupported("this constraint of a domain is not supported")),
        }
    }
    // The default of a domain below is taken over as it is now.
    if let (false, Some(TypeKind::Domain(below))) = (said, cx.catalog().user_type(ty.oid).map(|below| &below.kind)) {
        // NULL is none, unless it had to become one of a domain or of a length.
        let is_plain = below.typmod < 0 && !types::user::is_domain(below.base);
        let is_none = |default: &Expression| default.is_null() && is_plain;
        domain.default = below.default.clone().filter(|default| !is_none(default));
        domain.default_is_own = domain.default.is_none();
        domain.default_of = domain.default.as_ref().map(|_| below.default_of.unwrap_or(below.base));
    }
    // As in PostgreSQL the type of arrays comes first.
    let (array, oid, owner) = (cx.allocate(), cx.allocate(), cx.owner());
    let kind = TypeKind::Domain(domain.clone());
    let mut desc =
        TypeDesc { oid, array, schema, name: relname, owner, kind, comment: None, made: MadeOnce::default() };
    for (at, constraint) in checks {
        // As in PostgreSQL a condition may speak of the domain unless it is the first that is said of it.
        if at > 0 {
            desc.kind = TypeKind::Domain(domain.clone());
            cx.put(CatalogObject::Type(desc.clone())).await?;
        }
        let check = new_check(cx, &domain, (schema, &desc.name), constraint)?;
        domain.checks.push(check);
    }
    desc.kind = TypeKind::Domain(domain);
    cx.put(CatalogObject::Type(desc)).await?;
    Ok("CREATE DOMAIN")
}

fn default_text(cx: &mut Cx<'_>, location: i32, ty: Ty, name: &str) -> Result<Expression> {
    let text = expression_after(cx.sql, location, "default", true)
        .ok_or_else(|| Error::internal("a default without its text"))?;
    checked_default(cx, text.into(), ty, name)
}

/// A default that a domain can have. PostgreSQL does not say where something stands in the definition of a domain.
fn checked_default(cx: &mut Cx<'_>, default: Expression, ty: Ty, name: &str) -> Result<Expression> {
    cx.session.check_default(&default, ty, name).map_err(without_position)?;
    Ok(default)
}

/// The stored columns of a type.
pub(super) fn columns_of(catalog: &Catalog, ty: Oid) -> Vec<(&TableDesc, i16)> {
    let tables = catalog.walk().filter_map(|o| catalog.table(o.oid())).filter(|t| t.kind != TableKind::View);
    tables.flat_map(|t| t.live_columns().filter(|c| c.type_oid == ty).map(move |c| (t, c.number))).collect()
}

/// The domains directly over a type.
pub(super) fn domains_over(catalog: &Catalog, ty: Oid) -> impl Iterator<Item = &TypeDesc> {
    catalog
        .walk()
        .filter_map(|o| catalog.user_type(o.oid()))
        .filter(move |t| matches!(&t.kind, TypeKind::Domain(d) if d.base == ty))
}

/// The oldest stored column with values of a type inside of it, which is not looked into.
fn column_within(catalog: &Catalog, ty: Oid) -> Option<(&TableDesc, i16)> {
    enum Use<'a> {
        Domain(&'a TypeDesc),
        Column(&'a TableDesc, i16),
    }
    let mut uses: Vec<(Oid, Use<'_>)> = domains_over(catalog, ty).map(|d| (d.oid, Use::Domain(d))).collect();
    uses.extend(columns_of(catalog, ty).into_iter().map(|(t, number)| (t.oid, Use::Column(t, number))));
    uses.sort_by_key(|(oid, _)| *oid);
    uses.into_iter().find_map(|(_, found)| match found {
        Use::Column(table, number) => Some((table, number)),
        Use::Domain(domain) => column_within(catalog, domain.array).or_else(|| column_within(catalog, domain.oid)),
    })
}

/// The stored columns of a domain and of those over it, unless there are some with arrays of it.
fn checked_columns<'a>(catalog: &'a Catalog, desc: &TypeDesc, shown: &str) -> Result<Vec<(&'a TableDesc, i16)>> {
    if let Some((table, number)) = column_within(catalog, desc.array) {
        let column = &table.columns[number as usize - 1].name;
        let message = format!("cannot alter type \"{shown}\" because column \"{}.{column}\" uses it", table.name);
        return Err(Error::new(SqlState::FEATURE_NOT_SUPPORTED, message));
    }
    let mut columns = columns_of(catalog, desc.oid);
    for domain in domains_over(catalog, desc.oid) {
        columns.extend(checked_columns(catalog, domain, shown)?);
    }
    Ok(columns)
}

/// Checks the rows there are against what a domain begins to demand of its values.
async fn check_rows(
    cx: &mut Cx<'_>,
    desc: &TypeDesc,
    refutes: &dyn Fn(Expr, &mut BindContext<'_>) -> Result<Expr>,
    error: fn(&str, &str) -> Error,
) -> Result<()> {
    let catalog = cx.catalog();
    let shown = cx.session.shown_type(desc.oid, -1);
    for (table, number) in checked_columns(&catalog, desc, &shown)? {
        let Some(schema) = catalog.get(table.schema) else { continue };
        let column = &table.columns[number as usize - 1].name;
        cx.lock(table.oid, TableLockMode::Share).await?;
        let value = own::column(table, number as usize - 1, 0);
        if has_row(cx, table.oid, &mut |binder| refutes(value.clone(), binder).map(Some)).await? {
            return Err(error(column, &table.name).schema(schema.name()).table(&*table.name).column(&**column));
        }
    }
    Ok(())
}

/// Looks for values that a condition does not hold for.
async fn check_condition(cx: &mut Cx<'_>, desc: &TypeDesc, condition: &Expression) -> Result<()> {
    let refutes = |value: Expr, binder: &mut BindContext<'_>| {
        Ok(Expr::Not(Box::new(sql_bind::bind_condition_over(condition, &value, binder)?)))
    };
    check_rows(cx, desc, &refutes, violates).await
}

fn violates(column: &str, table: &str) -> Error {
    let message = format!("column \"{column}\" of table \"{table}\" contains values that violate the new constraint");
    Error::new(SqlState::CHECK_VIOLATION, message)
}

fn has_nulls(column: &str, table: &str) -> Error {
    let message = format!("column \"{column}\" of table \"{table}\" contains null values");
    Error::new(SqlState::NOT_NULL_VIOLATION, message)
}

pub(super) async fn alter_domain(cx: &mut Cx<'_>, stmt: &AlterDomainStmt) -> Result<&'static str> {
    let mut desc = cx.locked_type(&range(&stmt.typeName)).await?;
    let (schema, name, written) = (desc.schema, desc.name.clone(), display(&range(&stmt.typeName)));
    let whole = desc.clone();
    if matches!(desc.kind, TypeKind::Domain(_)) {
        rights::own_type(cx, &desc)?;
    }
    let TypeKind::Domain(domain) = &mut desc.kind else {
        return Err(not_a_domain(cx, desc.oid));
    };
    match stmt.subtype {
        AlterDomainType::AD_AlterDefault => {
            let base = Ty { oid: domain.base, typmod: domain.typmod };
            (domain.default_is_own, domain.default_of) = (true, None);
            domain.default = match &stmt.def {
                None => None,
                Some(node) => {
                    let text = super::alter_table::default_text(cx.sql, node)?;
                    Some(checked_default(cx, text.as_str().into(), base, &name)?)
                }
            };
        }
        AlterDomainType::AD_DropNotNull => domain.not_null = false,
        AlterDomainType::AD_SetNotNull => {
            let is_null = |value: Expr, _: &mut BindContext<'_>| {
                Ok(Expr::IsNull { arg: Box::new(value), negated: false, fields: false })
            };
            check_rows(cx, &whole, &is_null, has_nulls).await?;
            domain.not_null = true;
        }
        AlterDomainType::AD_AddConstraint => {
            let Some(Node::Constraint(constraint)) = &stmt.def else {
                return Err(Error::internal("ADD CONSTRAINT without one"));
            };
            match constraint.contype {
                ConstrType::CONSTR_CHECK => {
                    let check = new_check(cx, domain, (schema, &name), constraint)?;
                    if !constraint.skip_validation {
                        check_condition(cx, &whole, &check.expression).await?;
                    }
                    domain.checks.push(check);
                }
                _ => return Err(Error::unsupported("this constraint of a domain is not supported")),
            }
        }
        AlterDomainType::AD_DropConstraint => {
            let wanted = stmt.name.as_deref().unwrap_or_default();
            let before = domain.checks.len();
            domain.checks.retain(|c| c.name != wanted);
            if domain.checks.len() == before {
                let message = format!("constraint \"{wanted}\" of domain \"{written}\" does not exist");
                if !stmt.missing_ok {
                    return Err(Error::new(SqlState::UNDEFINED_OBJECT, message));
                }
                cx.notice(SqlState::SUCCESSFUL_COMPLETION, format!("{message}, skipping"));
            }
        }
        AlterDomainType::AD_ValidateConstraint => {
            let wanted = stmt.name.as_deref().unwrap_or_default();
            let Some(check) = domain.checks.iter_mut().find(|c| c.name == wanted) else {
                let message = format!("constraint \"{wanted}\" of domain \"{written}\" does not exist");
                return Err(Error::new(SqlState::UNDEFINED_OBJECT, message));
            };
            check_condition(cx, &whole, &check.expression).await?;
            check.not_valid = false;
        }
        _ => return Err(Error::unsupported("this kind of ALTER DOMAIN is not supported")),
    }
    cx.put(CatalogObject::Type(desc)).await?;
    Ok("ALTER DOMAIN")
}

pub(super) async fn rename_type(cx: &mut Cx<'_>, stmt: &RenameStmt, new_name: &str) -> Result<&'static str> {
    let Some(Node::List(names)) = &stmt.object else { return Err(Error::internal("RENAME without a type")) };
    let mut desc = cx.locked_type(&range(names)).await?;
    rights::own_type(cx, &desc)?;
    let domain = stmt.renameType == rupg_sql::nodes::ObjectType::OBJECT_DOMAIN;
    if domain && !matches!(desc.kind, TypeKind::Domain(_)) {
        return Err(not_a_domain(cx, desc.oid));
    }
    cx.check_type_free(desc.schema, new_name)?;
    desc.name = new_name.to_string();
    let tag = if domain { "ALTER DOMAIN" } else { "ALTER TYPE" };
    cx.put(CatalogObject::Type(desc)).await?;
    Ok(tag)
}

/// ALTER DOMAIN … RENAME CONSTRAINT.
pub(super) async fn rename_domain_constraint(
    cx: &mut Cx<'_>,
    stmt: &RenameStmt,
    new_name: &str,
) -> Result<&'static str> {
    let Some(Node::List(names)) = &stmt.object else { return Err(Error::internal("RENAME without a domain")) };
    let mut desc = cx.locked_type(&range(names)).await?;
    let whole = desc.clone();
    let TypeKind::Domain(domain) = &mut desc.kind else {
        return Err(not_a_domain(cx, whole.oid));
    };
    rights::own_type(cx, &whole)?;
    let old = stmt.subname.as_deref().unwrap_or_default();
    let taken = domain.checks.iter().any(|check| check.name == new_name);
    let Some(check) = domain.checks.iter_mut().find(|check| check.name == old) else {
        let shown = cx.session.shown_type(whole.oid, -1);
        let message = format!("constraint \"{old}\" for domain {shown} does not exist");
        return Err(Error::new(SqlState::UNDEFINED_OBJECT, message));
    };
    if taken {
        let shown = cx.session.shown_type(whole.oid, -1);
        let message = format!("constraint \"{new_name}\" for domain {shown} already exists");
        return Err(Error::new(SqlState::DUPLICATE_OBJECT, message));
    }
    check.name = new_name.to_string();
    cx.put(CatalogObject::Type(desc)).await?;
    Ok("ALTER DOMAIN")
}
