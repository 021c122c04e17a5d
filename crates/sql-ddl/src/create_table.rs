//! CREATE TABLE.

use base::{Error, LayoutId, Result, SqlState};
use engine_api::{
    CatalogObject, ColumnDesc, Expression, Identity, LayoutDesc, LayoutField, OnCommit, Persistence, TableDesc,
};
use rupg_sql::nodes::{ColumnDef, ConstrType, Constraint, CreateStmt, Node, OnCommitAction};
use sql_bind::{self as bind, ColumnType, Computed};
use sql_ir::system_column;
use sql_parse::names::is_temporary;
use sql_parse::text_of;

use super::constraint::{Pending, add_constraints};
use super::names::{expression_after, free_relation_name, parenthesised_after};
use super::storage;
use super::{Cx, like, sequence};

/// PostgreSQL's limit of columns in a table.
pub(super) const COLUMNS_MAX: usize = 1600;

/// A column definition, and what of it becomes an object of its own.
pub(super) struct NewColumn {
    pub desc: ColumnDesc,
    /// A serial or identity column's sequence type.
    pub serial: Option<base::Oid>,
    /// Options of an identity column's sequence.
    pub sequence_options: Vec<Option<Node>>,
    /// Where the expression of a generated column stands in the statement.
    pub generated_at: Option<usize>,
    /// Where its default stands, if that is yet to be looked at.
    default_at: Option<usize>,
    pub constraints: Vec<Constraint>,
}

impl NewColumn {
    /// Where an error of one of its constraints stands: nowhere if it contradicts what `serial` says.
    fn at(&self, constraint: &Constraint) -> i32 {
        let is_serial = self.serial.is_some() && self.desc.identity.is_none();
        if is_serial { -1 } else { constraint.location }
    }
}

pub(super) async fn create_table(cx: &mut Cx<'_>, stmt: &CreateStmt) -> Result<&'static str> {
    refuse_unsupported(stmt)?;
    let name = stmt.relation.as_deref().ok_or_else(|| Error::internal("CREATE TABLE without a name"))?;
    let schema = cx.schema_of_new(name).await.map_err(|e| match e.code() {
        SqlState::INVALID_SCHEMA_NAME => e.at_byte(cx.sql, name.location),
        _ => e,
    })?;
    let relname = name.relname.as_deref().unwrap_or_default().to_string();
    // What is wrong with parameters and columns is said before that the name is taken, unless the table may be there.
    if stmt.if_not_exists && !cx.check_free(schema, &relname, true)? {
        return Ok("CREATE TABLE");
    }
    super::require_tablespace(stmt.tablespacename.as_deref())?;
    let temporary = is_temporary(&cx.catalog(), schema);
    let mut table = TableDesc {
        options: storage::given(&stmt.options, storage::Of::Table)?,
        persistence: persistence(name.relpersistence, temporary),
        on_commit: on_commit(cx, stmt.oncommit, temporary)?,
        ..TableDesc::new(cx.allocate(), schema, relname, cx.owner(), Vec::new())
    };
    let mut pending: Vec<Pending> = Vec::new();
    let mut serials: Vec<(i16, base::Oid, Vec<Option<Node>>)> = Vec::new();
    let mut likes = Vec::new();
    let (mut defaults, mut generated) = (Vec::new(), Vec::new());
    for element in stmt.tableElts.iter().flatten() {
        match element {
            Node::ColumnDef(def) => {
                let column = new_column(cx, &table, def, true)?;
                let number = column.desc.number;
                if let Some(ty) = column.serial {
                    serials.push((number, ty, column.sequence_options));
                }
                defaults.extend(column.default_at.map(|at| (number, at)));
                generated.extend(column.generated_at.map(|at| (number, at)));
                pending.extend(column.constraints.into_iter().map(|c| Pending { definition: c, column: Some(number) }));
                table.columns.push(column.desc);
            }
            Node::Constraint(constraint) => {
                pending.push(Pending { definition: (**constraint).clone(), column: None });
            }
            Node::TableLikeClause(clause) => {
                let source = like::add_columns(cx, &mut table, clause, &mut serials)?;
                likes.push((source, clause.options));
            }
            _ => return Err(Error::unsupported("this element of CREATE TABLE is not supported")),
        }
    }
    super::constraint::one_primary_key(cx, &table.name, &pending)?;
    let catalog = cx.catalog();
    // PostgreSQL makes the sequences of columns before it looks at what the table itself needs.
    if let Some((number, ..)) = serials.first() {
        let column = &table.columns[*number as usize - 1].name;
        let sequence = free_relation_name(&catalog, schema, &table.name, column, "seq", &[]);
        cx.refuse_in_system_schema(schema, &sequence)?;
    }
    super::rights::require_types_of_columns(cx, &[], &table.columns)?;
    cx.check_free(schema, &table.name, false)?;
    cx.refuse_in_system_schema(schema, &table.name)?;
    if table.columns.len() > COLUMNS_MAX {
        return Err(Error::new(SqlState::TOO_MANY_COLUMNS, format!("tables can have at most {COLUMNS_MAX} columns")));
    }
    for (number, at) in defaults {
        let column = &table.columns[number as usize - 1];
        let ty = sql_ir::Ty { oid: column.type_oid, typmod: column.typmod };
        if let Some(default) = &column.default {
            let checked = cx.session.check_default(default, ty, &column.name);
            checked.map_err(|e| cx.place(e, &cx.sql[at..], true))?;
        }
    }
    mark_primary_not_null(&mut table, &pending);
    let layout = layout_of(&table, LayoutId(1));
    table.layouts.push(layout);
    let mut sequences = Vec::new();
    for (number, ty, options) in serials {
        let taken: Vec<String> = sequences.iter().map(|s: &engine_api::SequenceDesc| s.name.clone()).collect();
        sequences.push(serial_sequence(cx, &mut table, number, ty, &options, &taken)?);
    }
    if !sequences.is_empty() {
        // In PostgreSQL they are made before the table, which tells where things go in the order of their age.
        table.oid = cx.allocate();
    }
    for mut sequence in sequences {
        sequence.owned_by = sequence.owned_by.map(|(_, column)| (table.oid, column));
        cx.put(CatalogObject::Sequence(sequence)).await?;
    }
    check_generated(cx, &table, &generated)?;
    cx.put(CatalogObject::Table(table.clone())).await?;
    check_defaults(cx, &table)?;
    if likes.is_empty() {
        add_constraints(cx, table.oid, pending, true).await?;
        return Ok("CREATE TABLE");
    }
    let is_check = |p: &Pending| p.definition.contype == ConstrType::CONSTR_CHECK;
    let (checks, others) = pending.into_iter().partition(is_check);
    add_constraints(cx, table.oid, checks, true).await?;
    like::finish(cx, &table, &likes).await?;
    add_constraints(cx, table.oid, others, true).await?;
    Ok("CREATE TABLE")
}

/// How long the rows of a relation live that is made with this mark.
pub(super) fn persistence(mark: u8, temporary: bool) -> Persistence {
    match mark {
        _ if temporary => Persistence::Temporary,
        b'u' => Persistence::Unlogged,
        _ => Persistence::Permanent,
    }
}

/// What ON COMMIT says.
pub(super) fn on_commit(cx: &mut Cx<'_>, action: OnCommitAction, temporary: bool) -> Result<OnCommit> {
    let action = match action {
        OnCommitAction::ONCOMMIT_NOOP => return Ok(OnCommit::Preserve),
        OnCommitAction::ONCOMMIT_DELETE_ROWS => OnCommit::Delete,
        OnCommitAction::ONCOMMIT_DROP => OnCommit::Drop,
        _ => OnCommit::Preserve,
    };
    if !temporary {
        let message = "ON COMMIT can only be used on temporary tables";
        return Err(Error::new(SqlState::INVALID_TABLE_DEFINITION, message));
    }
    if action != OnCommit::Preserve {
        cx.session.note_on_commit();
    }
    Ok(action)
}

fn refuse_unsupported(stmt: &CreateStmt) -> Result<()> {
    let what = if !stmt.inhRelations.is_empty() || stmt.partbound.is_some() {
        "table inheritance is"
    } else if stmt.partspec.is_some() {
        "partitioned tables are"
    } else if stmt.ofTypename.is_some() {
        "typed tables are"
    } else {
        return Ok(());
    };
    Err(Error::unsupported(format!("{what} not supported")))
}

/// `WITH (…)`: kept and shown.
pub(super) fn storage_options(options: &[Option<Node>]) -> Vec<(String, String)> {
    options
        .iter()
        .flatten()
        .filter_map(|node| match node {
            Node::DefElem(option) => {
                let name = option.defname.as_deref()?.to_string();
                let value = option.arg.as_ref().and_then(text_of).unwrap_or_else(|| "true".to_string());
                Some((name, value))
            }
            _ => None,
        })
        .collect()
}

/// The layout that stores the live columns of `table`.
pub(super) fn layout_of(table: &TableDesc, id: LayoutId) -> LayoutDesc {
    let fields = table
        .live_columns()
        .map(|c| LayoutField { column: c.number, type_oid: types::stored_as(c.type_oid), typmod: c.typmod })
        .collect();
    LayoutDesc { id, fields }
}

/// A column definition of CREATE TABLE (`fresh`) or ADD COLUMN.
pub(super) fn new_column(cx: &mut Cx<'_>, table: &TableDesc, def: &ColumnDef, fresh: bool) -> Result<NewColumn> {
    let name = def.colname.as_deref().unwrap_or_default().to_string();
    if table.column(&name).is_some() {
        return Err(Error::new(SqlState::DUPLICATE_COLUMN, format!("column \"{name}\" specified more than once")));
    }
    system_column::refuse_name(table, &name)?;
    let type_name = def.typeName.as_deref().ok_or_else(|| Error::internal("a column without a type"))?;
    let ColumnType { ty, serial } = cx.column_type(type_name)?;
    let collation = cx.collation(def.collClause.as_deref(), ty.oid)?;
    if !fresh {
        super::rights::require_type(cx, ty.oid)?;
    }
    let mut column = NewColumn {
        desc: ColumnDesc {
            not_null: serial || def.is_not_null,
            collation,
            ..ColumnDesc::new(table.columns.len() as i16 + 1, name, ty.oid, ty.typmod)
        },
        serial: serial.then_some(ty.oid),
        sequence_options: Vec::new(),
        default_at: None,
        generated_at: None,
        constraints: Vec::new(),
    };
    let mut said_null = false;
    for constraint in &super::attributes::with_attributes(cx.sql, &def.constraints)? {
        let conflict = match constraint.contype {
            ConstrType::CONSTR_NULL => {
                said_null = true;
                column.desc.not_null
            }
            ConstrType::CONSTR_NOTNULL | ConstrType::CONSTR_IDENTITY => said_null && !column.desc.not_null,
            _ => false,
        };
        if conflict {
            let at = column.at(constraint);
            return Err(conflicting_null(&column.desc.name, &table.name).at_byte(cx.sql, at));
        }
        column_constraint(cx, table, &mut column, constraint, fresh)?;
    }
    let ty = sql_ir::Ty { oid: column.desc.type_oid, typmod: column.desc.typmod };
    if let Some(default) = column.desc.default.take()
        && !is_no_default(cx, &default, ty)
    {
        column.desc.default = Some(default);
    }
    Ok(column)
}

/// Whether a default says no more than that there is none. For a domain NULL says that its own default does not count, and
/// PostgreSQL keeps one whose length is looked at.
pub(super) fn is_no_default(cx: &mut Cx<'_>, default: &Expression, ty: sql_ir::Ty) -> bool {
    ty.typmod < 0 && !types::user::is_domain(ty.oid) && (default.is_null() || cx.session.is_null_of(default, ty.oid))
}

fn column_constraint(
    cx: &mut Cx<'_>,
    table: &TableDesc,
    column: &mut NewColumn,
    constraint: &Constraint,
    fresh: bool,
) -> Result<()> {
    use ConstrType as K;
    match constraint.contype {
        K::CONSTR_NULL => {}
        K::CONSTR_NOTNULL => column.desc.not_null = true,
        K::CONSTR_DEFAULT => {
            if column.desc.identity.is_some() {
                return Err(both(cx, table, column, constraint, "default and identity"));
            }
            if column.desc.generated.is_some() {
                return Err(both(cx, table, column, constraint, "default and generation expression"));
            }
            if column.serial.is_some() || column.desc.default.is_some() {
                let at = column.at(constraint);
                return Err(Error::new(
                    SqlState::SYNTAX_ERROR,
                    format!(
                        "multiple default values specified for column \"{}\" of table \"{}\"",
                        column.desc.name, table.name
                    ),
                )
                .at_byte(cx.sql, at));
            }
            let text = expression_after(cx.sql, constraint.location, "default", true)
                .ok_or_else(|| Error::internal("a default without its text"))?;
            let ty = sql_ir::Ty { oid: column.desc.type_oid, typmod: column.desc.typmod };
            let expression = Expression::from(text);
            match fresh {
                // The types of all columns are looked at before.
                true => column.default_at = Some(text.as_ptr() as usize - cx.sql.as_ptr() as usize),
                false => {
                    let checked = cx.session.check_default(&expression, ty, &column.desc.name);
                    checked.map_err(|e| cx.place(e, text, fresh))?;
                }
            }
            column.desc.default = Some(expression);
        }
        K::CONSTR_IDENTITY => identity(cx, table, column, constraint)?,
        K::CONSTR_GENERATED => {
            let text = parenthesised_after(cx.sql, constraint.location, "as")
                .ok_or_else(|| Error::internal("a generated column without its text"))?;
            if column.desc.identity.is_some() {
                return Err(both(cx, table, column, constraint, "identity and generation expression"));
            }
            if column.desc.default.is_some() || column.serial.is_some() {
                return Err(both(cx, table, column, constraint, "default and generation expression"));
            }
            if column.desc.generated.is_some() {
                let (column, table) = (&column.desc.name, &table.name);
                let message =
                    format!("multiple generation clauses specified for column \"{column}\" of table \"{table}\"");
                return Err(Error::new(SqlState::SYNTAX_ERROR, message).at_byte(cx.sql, constraint.location));
            }
            column.generated_at = Some(text.as_ptr() as usize - cx.sql.as_ptr() as usize);
            column.desc.generated = Some(text.into());
        }
        K::CONSTR_PRIMARY | K::CONSTR_UNIQUE | K::CONSTR_CHECK | K::CONSTR_FOREIGN => {
            column.constraints.push(constraint.clone());
        }
        _ => {}
    }
    Ok(())
}

fn both(cx: &Cx<'_>, table: &TableDesc, column: &NewColumn, constraint: &Constraint, what: &str) -> Error {
    let name = &column.desc.name;
    let message = format!("both {what} specified for column \"{name}\" of table \"{}\"", table.name);
    Error::new(SqlState::SYNTAX_ERROR, message).at_byte(cx.sql, column.at(constraint))
}

fn identity(cx: &Cx<'_>, table: &TableDesc, column: &mut NewColumn, constraint: &Constraint) -> Result<()> {
    let ty = column.desc.type_oid;
    if ![types::oid::INT2, types::oid::INT4, types::oid::INT8].contains(&ty) {
        return Err(Error::new(
            SqlState::INVALID_PARAMETER_VALUE,
            "identity column type must be smallint, integer, or bigint",
        ));
    }
    if column.desc.identity.is_some() {
        return Err(Error::new(
            SqlState::SYNTAX_ERROR,
            format!("multiple identity specifications for column \"{}\" of table \"{}\"", column.desc.name, table.name),
        )
        .at_byte(cx.sql, constraint.location));
    }
    if column.desc.default.is_some() || column.serial.is_some() {
        return Err(both(cx, table, column, constraint, "default and identity"));
    }
    column.desc.identity = Some(if constraint.generated_when == b'a' { Identity::Always } else { Identity::ByDefault });
    column.desc.not_null = true;
    column.serial = Some(ty);
    column.sequence_options = constraint.options.to_vec();
    Ok(())
}

/// Binds the expressions of generated columns and sees that they may be what they are; `places` says where those of
/// CREATE TABLE stand in the statement.
pub(super) fn check_generated(cx: &mut Cx<'_>, table: &TableDesc, places: &[(i16, usize)]) -> Result<()> {
    for column in table.live_columns() {
        let Some(text) = &column.generated else { continue };
        let ty = sql_ir::Ty { oid: column.type_oid, typmod: column.typmod };
        let looked = cx.session.columns_computed_from(Computed::Generated, text, ty, &column.name, table);
        let place = places.iter().find(|(number, _)| *number == column.number);
        let part = place.and_then(|(_, at)| cx.sql.get(*at..));
        looked.map_err(|e| cx.place(e, part.unwrap_or_default(), part.is_some()))?;
        let bound = cx
            .session
            .bind_stored(|binder| bind::bind_computed(Computed::Generated, text, ty, &column.name, table, binder))?;
        if bind::reads_whole_row(&bound) {
            let message = "cannot use whole-row variable in column generation expression";
            return Err(Error::new(SqlState::INVALID_OBJECT_DEFINITION, message)
                .detail("This would cause the generated column to depend on its own value."));
        }
        if place.is_some() || column.number as usize == table.columns.len() {
            check_new_generated(cx, table, column, text, place.is_none())?;
        }
    }
    Ok(())
}

/// Sees that the values of a new generated column, which are kept, would be the same today, and that its constants can be computed:
/// those of its expression, as PostgreSQL does before it becomes a value of the column's type, and those of what it assigns if the
/// table may have rows.
fn check_new_generated(
    cx: &mut Cx<'_>,
    table: &TableDesc,
    column: &ColumnDesc,
    text: &Expression,
    may_have_rows: bool,
) -> Result<()> {
    let ty = sql_ir::Ty { oid: column.type_oid, typmod: column.typmod };
    cx.session.bind_stored(|binder| {
        if let Some(own) = bind::bind_own_generated(text, table, binder)?
            && !sql_bind::is_immutable(&bind::computed_constants(&own, binder)?)
        {
            let message = "generation expression is not immutable";
            return Err(Error::new(SqlState::INVALID_OBJECT_DEFINITION, message));
        }
        if may_have_rows {
            let assigned = bind::bind_computed(Computed::Generated, text, ty, &column.name, table, binder)?;
            bind::computed_constants(&assigned, binder)?;
        }
        Ok(())
    })
}

fn conflicting_null(column: &str, table: &str) -> Error {
    Error::new(
        SqlState::SYNTAX_ERROR,
        format!("conflicting NULL/NOT NULL declarations for column \"{column}\" of table \"{table}\""),
    )
}

fn mark_primary_not_null(table: &mut TableDesc, pending: &[Pending]) {
    for p in pending.iter().filter(|p| p.definition.contype == ConstrType::CONSTR_PRIMARY) {
        let names = super::names::strings(&p.definition.keys);
        for column in &mut table.columns {
            if p.column == Some(column.number) || names.contains(&column.name) {
                column.not_null = true;
            }
        }
    }
}

/// The sequence of a serial column, owned by it; the column's default becomes its `nextval`.
pub(super) fn serial_sequence(
    cx: &mut Cx<'_>,
    table: &mut TableDesc,
    number: i16,
    ty: base::Oid,
    options: &[Option<Node>],
    taken: &[String],
) -> Result<engine_api::SequenceDesc> {
    let catalog = cx.catalog();
    let at = number as usize - 1;
    let column = table.columns[at].name.clone();
    let name = free_relation_name(&catalog, table.schema, &table.name, &column, "seq", taken);
    let mut desc = sequence::default_sequence(cx.allocate(), table.schema, &name, table.owner, ty);
    desc.unlogged = table.persistence == Persistence::Unlogged;
    sequence::apply_options(cx, &mut desc, options, true)?;
    desc.owned_by = Some((table.oid, number));
    table.columns[at].default = Some(Expression::next_value(desc.oid));
    Ok(desc)
}

/// Binds every default, so that a bad one is refused now and not at the first INSERT.
pub(super) fn check_defaults(cx: &mut Cx<'_>, table: &TableDesc) -> Result<()> {
    for column in table.live_columns() {
        if let Some(text) = &column.default {
            let ty = sql_ir::Ty { oid: column.type_oid, typmod: column.typmod };
            cx.session.check_default(text, ty, &column.name).map_err(|e| cx.place(e, "", false))?;
        }
    }
    Ok(())
}
