//! ALTER TABLE.

use base::{Error, LayoutId, Result, SqlState};
use engine_api::{
    CatalogObject, ColumnDesc, ConstraintDesc, ConstraintKind, Expression, IndexDesc, Persistence, SequenceDesc,
    TableDesc, TableKind, TableLockMode,
};
use rupg_sql::nodes::{AlterTableCmd, AlterTableStmt, AlterTableType, DropBehavior, Node, ObjectType, RangeVar};
use sql_bind::{Computed, bind_default};
use sql_ir::Ty;
use sql_ir::system_column;
use sql_parse::names::quote_name;

use super::constraint::{Pending, add_constraints, require_no_nulls};
use super::create_table::{
    COLUMNS_MAX, check_defaults, check_generated, layout_of, new_column, serial_sequence, storage_options,
};
use super::names::{expression_after, last_position, leftmost};
use super::query::has_row;
use super::rewrite::{ComputedColumn, constant_default, rewrite_table};
use super::storage::{self, Of};
use super::{Cx, drop, identity, persistence};

pub(super) async fn alter_table(cx: &mut Cx<'_>, stmt: &AlterTableStmt) -> Result<&'static str> {
    let tag = match stmt.objtype {
        ObjectType::OBJECT_TABLE => "ALTER TABLE",
        ObjectType::OBJECT_INDEX => "ALTER INDEX",
        ObjectType::OBJECT_SEQUENCE => "ALTER SEQUENCE",
        ObjectType::OBJECT_VIEW => "ALTER VIEW",
        ObjectType::OBJECT_MATVIEW => "ALTER MATERIALIZED VIEW",
        _ => return Err(Error::unsupported("this kind of ALTER is not supported")),
    };
    let name = stmt.relation.as_deref().ok_or_else(|| Error::internal("ALTER TABLE without a name"))?;
    let found = cx.find_altered(name, stmt.missing_ok)?;
    if found.is_none() && stmt.missing_ok {
        cx.skip_missing(name);
        return Ok(tag);
    }
    if let Some(object) = &found {
        super::rename::check_kind(object, stmt.objtype)?;
    }
    if let Some(CatalogObject::Table(view)) = found.as_deref()
        && view.kind != TableKind::Table
    {
        alter_view(cx, name, stmt).await?;
        return Ok(tag);
    }
    if let Some(object) = found.filter(|o| !matches!(**o, CatalogObject::Table(_))) {
        // Ownership and storage parameters are all that is altered on other relations.
        for cmd in commands(stmt) {
            match (&*object, cmd.subtype) {
                (
                    CatalogObject::Index(index),
                    AlterTableType::AT_SetRelOptions | AlterTableType::AT_ResetRelOptions,
                ) => {
                    let index = cx.catalog().index(index.oid).unwrap_or(index).clone();
                    let options = changed_options(&index.options, cmd, Of::index(index.hash))?;
                    cx.put(CatalogObject::Index(IndexDesc { options, ..index })).await?;
                }
                (CatalogObject::Index(index), AlterTableType::AT_SetStatistics) => {
                    check_index_statistics(cx, index, cmd)?;
                }
                (CatalogObject::Index(_), AlterTableType::AT_SetTableSpace) => {
                    super::require_tablespace(cmd.name.as_deref())?;
                }
                (CatalogObject::Index(index), kind) if is_of_columns(kind) || persistence::is_said(kind) => {
                    return Err(cannot_be_performed(kind, &index.name, "indexes"));
                }
                (
                    CatalogObject::Sequence(sequence),
                    kind @ (AlterTableType::AT_SetLogged | AlterTableType::AT_SetUnLogged),
                ) => {
                    cx.lock(sequence.oid, TableLockMode::AccessExclusive).await?;
                    let sequence = cx.catalog().sequence(sequence.oid).unwrap_or(sequence).clone();
                    persistence::of_sequence(cx, sequence, kind == AlterTableType::AT_SetUnLogged).await?;
                }
                (_, kind) if is_ignored(kind) => {}
                _ => return Err(Error::unsupported(format!("this ALTER of \"{}\" is not supported", object.name()))),
            }
        }
        return Ok(tag);
    }
    let table = cx.locked_table(name, super::lock_level::of(stmt)).await?;
    cx.session.check_not_in_use(table.oid, &table.name, "ALTER TABLE")?;
    let mut constraints = Vec::new();
    let changes = type_changes(cx, &table, stmt)?;
    let mut ordered: Vec<&AlterTableCmd> = commands(stmt).collect();
    ordered.sort_by_key(|cmd| pass(cmd, &table, &changes));
    refuse_dropped(&table, stmt, &changes)?;
    persistence::refuse_twice(&table, commands(stmt))?;
    let (oid, mut changed) = (table.oid, false);
    let found = Found::of(&table);
    for cmd in ordered {
        // Every command starts from what the one before it left.
        let table = cx.catalog().table(table.oid).cloned().ok_or_else(|| Error::internal("the table went away"))?;
        if cmd.subtype == AlterTableType::AT_AlterColumnType {
            if !std::mem::replace(&mut changed, true) {
                change_types(cx, table, &changes).await?;
            }
            follow_type(cx, oid, cmd).await?;
            continue;
        }
        if let Some(pending) = alter(cx, table, cmd, found).await? {
            constraints.extend(pending)
        }
    }
    add_constraints(cx, table.oid, constraints, false).await?;
    Ok(tag)
}

/// The storage parameters that SET or RESET leaves.
fn changed_options(kept: &[(String, String)], cmd: &AlterTableCmd, of: Of) -> Result<Vec<(String, String)>> {
    match &cmd.def {
        Some(Node::List(list)) if cmd.subtype == AlterTableType::AT_SetRelOptions => storage::set(kept, list, of),
        Some(Node::List(list)) => storage::reset(kept, list),
        _ => Ok(kept.to_vec()),
    }
}

/// ALTER of a view or materialized view: defaults of its columns, options.
async fn alter_view(cx: &mut Cx<'_>, name: &RangeVar, stmt: &AlterTableStmt) -> Result<()> {
    use AlterTableType as T;
    let locked = cx.locked_relation(name, TableLockMode::AccessExclusive).await?;
    for cmd in commands(stmt) {
        let mut view = cx.catalog().table(locked.oid).cloned().ok_or_else(|| Error::internal("the view went away"))?;
        match cmd.subtype {
            T::AT_ColumnDefault if view.kind == TableKind::View => {
                let number = column_number(&view, cmd.name.as_deref().unwrap_or_default())?;
                set_default(cx, &mut view, number, cmd)?;
                check_defaults(cx, &view)?;
            }
            T::AT_SetRelOptions | T::AT_ResetRelOptions => {
                if view.kind != TableKind::View {
                    view.options = changed_options(&view.options, cmd, Of::Table)?;
                } else if let Some(Node::List(list)) = &cmd.def {
                    let mut options = view.options.clone();
                    for (key, value) in storage_options(list) {
                        options.retain(|(k, _)| *k != key);
                        if cmd.subtype == T::AT_SetRelOptions {
                            options.push((key, value));
                        }
                    }
                    super::view::set_options(cx, &mut view, options)?;
                }
            }
            kind if is_ignored(kind) => {}
            // A view's column has none, which is what they say.
            kind @ (T::AT_AddIdentity | T::AT_SetIdentity | T::AT_DropIdentity) if view.kind == TableKind::View => {
                let number = column_number(&view, cmd.name.as_deref().unwrap_or_default())?;
                match kind {
                    T::AT_AddIdentity => identity::add(cx, view, cmd, number).await?,
                    T::AT_SetIdentity => identity::set(cx, view, cmd, number).await?,
                    _ => identity::drop(cx, view, cmd, number).await?,
                }
                continue;
            }
            _ => {
                let kinds = format!("{}s", super::drop::kind_name(&view));
                return Err(cannot_be_performed(cmd.subtype, &view.name, &kinds));
            }
        }
        cx.put(CatalogObject::Table(view)).await?;
    }
    Ok(())
}

/// 42809
fn cannot_be_performed(action: AlterTableType, name: &str, kinds: &str) -> Error {
    let action = refused_action(action);
    let message = format!("ALTER action {action} cannot be performed on relation \"{name}\"");
    Error::new(SqlState::WRONG_OBJECT_TYPE, message).detail(format!("This operation is not supported for {kinds}."))
}

/// SET STATISTICS of a column of an index, which is named by its number: it says nothing here, but must be of an expression.
fn check_index_statistics(cx: &mut Cx<'_>, index: &IndexDesc, cmd: &AlterTableCmd) -> Result<()> {
    let at = usize::try_from(cmd.num - 1).unwrap_or(usize::MAX);
    let columns = index.keys.iter().map(|key| key.column).chain(index.include.iter().copied());
    let Some(number) = columns.clone().nth(at) else {
        let message = format!("column number {} of relation \"{}\" does not exist", cmd.num, index.name);
        return Err(Error::new(SqlState::UNDEFINED_COLUMN, message));
    };
    let catalog = cx.catalog();
    let column = catalog.table(index.table).and_then(|table| table.columns.get((number as usize).wrapping_sub(1)));
    let name = column.map_or("", |column| &column.name);
    let refuse = |what: &str| {
        let message = format!("cannot alter statistics on {what} column \"{name}\" of index \"{}\"", index.name);
        Error::unsupported(message)
    };
    match number {
        _ if at >= index.keys.len() => Err(refuse("included")),
        0 => Ok(()),
        _ => Err(refuse("non-expression").hint("Alter statistics on table column instead.")),
    }
}

/// 42704 if a table has no such index.
fn require_index(cx: &mut Cx<'_>, table: &TableDesc, name: &str) -> Result<()> {
    if cx.catalog().indexes(table.oid).any(|index| index.name == name) {
        return Ok(());
    }
    let message = format!("index \"{name}\" for table \"{}\" does not exist", table.name);
    Err(Error::new(SqlState::UNDEFINED_OBJECT, message))
}

/// What is set of a column and means nothing for tables kept in memory: the column must be there, and the setting one.
fn check_column_setting(table: &TableDesc, cmd: &AlterTableCmd) -> Result<()> {
    let Some(name) = cmd.name.as_deref() else {
        return Err(Error::unsupported("cannot refer to non-index column by number"));
    };
    let number = column_number(table, name)?;
    let (AlterTableType::AT_SetStorage, Some(Node::String(word))) = (cmd.subtype, &cmd.def) else { return Ok(()) };
    let word = &**word;
    if !["plain", "external", "extended", "main"].iter().any(|known| known.eq_ignore_ascii_case(word)) {
        let message = format!("invalid storage type \"{word}\"");
        return Err(Error::new(SqlState::INVALID_PARAMETER_VALUE, message));
    }
    let ty = table.columns[number as usize - 1].type_oid;
    let is_fixed = types::type_info(types::user::base_type(ty, -1).0).is_some_and(|info| info.len > 0);
    if is_fixed && !word.eq_ignore_ascii_case("plain") {
        let shown = types::format_type(ty, -1);
        return Err(Error::unsupported(format!("column data type {shown} can only have storage PLAIN")));
    }
    Ok(())
}

/// An action of ALTER TABLE as messages name it.
fn refused_action(kind: AlterTableType) -> &'static str {
    use AlterTableType as T;
    match kind {
        T::AT_AddColumn => "ADD COLUMN",
        T::AT_DropColumn => "DROP COLUMN",
        T::AT_ColumnDefault => "ALTER COLUMN ... SET DEFAULT",
        T::AT_SetNotNull => "ALTER COLUMN ... SET NOT NULL",
        T::AT_DropNotNull => "ALTER COLUMN ... DROP NOT NULL",
        T::AT_AlterColumnType => "ALTER COLUMN ... SET DATA TYPE",
        T::AT_AddConstraint => "ADD CONSTRAINT",
        T::AT_DropConstraint => "DROP CONSTRAINT",
        T::AT_AlterConstraint => "ALTER CONSTRAINT",
        T::AT_ValidateConstraint => "VALIDATE CONSTRAINT",
        T::AT_SetStorage => "ALTER COLUMN ... SET STORAGE",
        T::AT_SetCompression => "ALTER COLUMN ... SET COMPRESSION",
        T::AT_SetOptions => "ALTER COLUMN ... SET",
        T::AT_ResetOptions => "ALTER COLUMN ... RESET",
        T::AT_AddIdentity => "ALTER COLUMN ... ADD IDENTITY",
        T::AT_SetIdentity => "ALTER COLUMN ... SET",
        T::AT_DropIdentity => "ALTER COLUMN ... DROP IDENTITY",
        T::AT_DropExpression => "ALTER COLUMN ... DROP EXPRESSION",
        T::AT_SetLogged => "SET LOGGED",
        T::AT_SetUnLogged => "SET UNLOGGED",
        T::AT_EnableTrig => "ENABLE TRIGGER",
        T::AT_EnableTrigAll => "ENABLE TRIGGER ALL",
        T::AT_EnableTrigUser => "ENABLE TRIGGER USER",
        T::AT_EnableAlwaysTrig => "ENABLE ALWAYS TRIGGER",
        T::AT_EnableReplicaTrig => "ENABLE REPLICA TRIGGER",
        T::AT_DisableTrig => "DISABLE TRIGGER",
        T::AT_DisableTrigAll => "DISABLE TRIGGER ALL",
        T::AT_DisableTrigUser => "DISABLE TRIGGER USER",
        T::AT_AddInherit => "INHERIT",
        T::AT_DropInherit => "NO INHERIT",
        T::AT_EnableRowSecurity => "ENABLE ROW SECURITY",
        T::AT_DisableRowSecurity => "DISABLE ROW SECURITY",
        T::AT_ForceRowSecurity => "FORCE ROW SECURITY",
        T::AT_NoForceRowSecurity => "NO FORCE ROW SECURITY",
        _ => "of this kind",
    }
}

/// The error without the place it has.
pub(super) fn without_position(mut error: Error) -> Error {
    error.fields_mut().position = None;
    error
}

fn commands(stmt: &AlterTableStmt) -> impl Iterator<Item = &AlterTableCmd> {
    stmt.cmds.iter().flatten().filter_map(|node| match node {
        Node::AlterTableCmd(cmd) => Some(&**cmd),
        _ => None,
    })
}

/// Commands that mean nothing for tables kept in memory.
fn is_ignored(kind: AlterTableType) -> bool {
    use AlterTableType as T;
    [
        T::AT_SetStatistics,
        T::AT_SetStorage,
        T::AT_SetCompression,
        T::AT_ChangeOwner,
        T::AT_ClusterOn,
        T::AT_DropCluster,
        T::AT_SetTableSpace,
        T::AT_ReplicaIdentity,
        T::AT_SetOptions,
        T::AT_ResetOptions,
        T::AT_ResetRelOptions,
    ]
    .contains(&kind)
}

/// Those of them that are about a column of a table, statistics apart.
fn is_of_columns(kind: AlterTableType) -> bool {
    use AlterTableType as T;
    [T::AT_SetStorage, T::AT_SetCompression, T::AT_SetOptions, T::AT_ResetOptions].contains(&kind)
}

fn column_number(table: &TableDesc, name: &str) -> Result<i16> {
    system_column::refuse(table, name, "alter")?;
    table.column(name).map(|c| c.number).ok_or_else(|| no_column(table, name))
}

fn no_column(table: &TableDesc, name: &str) -> Error {
    let message = format!("column \"{name}\" of relation \"{}\" does not exist", table.name);
    Error::new(SqlState::UNDEFINED_COLUMN, message)
}

/// What a statement found of a table. No row has a layout that it has added since, so one of them is enough: a table of many
/// columns, all of them dropped by one statement, would else have the square of their number in its layouts.
#[derive(Clone, Copy)]
struct Found {
    storage: u32,
    layouts: usize,
    columns: usize,
    persistence: Persistence,
}

impl Found {
    fn of(table: &TableDesc) -> Found {
        Found {
            storage: table.storage,
            layouts: table.layouts.len(),
            columns: table.columns.len(),
            persistence: table.persistence,
        }
    }

    /// From now on rows are written as the columns are now.
    fn add_layout(self, table: &mut TableDesc) {
        // Rows that were written anew have the one layout that is left of them.
        let had = if table.storage == self.storage { self.layouts } else { 1 };
        table.layouts.truncate(had);
        let next = LayoutId(table.newest_layout().id.0 + 1);
        let layout = layout_of(table, next);
        table.layouts.push(layout);
    }
}

/// SET DEFAULT and DROP DEFAULT.
fn set_default(cx: &mut Cx<'_>, table: &mut TableDesc, number: i16, cmd: &AlterTableCmd) -> Result<()> {
    let text = cmd.def.as_ref().map(|node| default_text(cx.sql, node)).transpose()?;
    let column = &mut table.columns[number as usize - 1];
    let ty = Ty { oid: column.type_oid, typmod: column.typmod };
    let said = text.map(Expression::from);
    column.default = said.filter(|default| !super::create_table::is_no_default(cx, default, ty));
    column.default_oid = None;
    Ok(())
}

/// One command. Constraints to add are returned and added after all other commands.
async fn alter(
    cx: &mut Cx<'_>,
    mut table: TableDesc,
    cmd: &AlterTableCmd,
    found: Found,
) -> Result<Option<Vec<Pending>>> {
    use AlterTableType as T;
    let name = cmd.name.as_deref().unwrap_or_default();
    match cmd.subtype {
        T::AT_AddColumn => return add_column(cx, table, cmd, found).await.map(Some),
        T::AT_DropColumn => drop_column(cx, table, cmd, name, found).await?,
        T::AT_ColumnDefault => {
            let number = column_number(&table, name)?;
            refuse_computed(&table, number, cmd.def.is_none())?;
            set_default(cx, &mut table, number, cmd)?;
            check_defaults(cx, &table)?;
            cx.put(CatalogObject::Table(table)).await?;
        }
        T::AT_SetNotNull => {
            let number = column_number(&table, name)?;
            if !table.columns[number as usize - 1].not_null {
                if !has_no_nulls(cx, &table, number) {
                    require_no_nulls(cx, &table, number).await?;
                }
                table.columns[number as usize - 1].not_null = true;
                cx.put(CatalogObject::Table(table)).await?;
            }
        }
        T::AT_DropNotNull => {
            let number = column_number(&table, name)?;
            if table.columns[number as usize - 1].identity.is_some() {
                return Err(is_identity(&table, name));
            }
            let in_primary = table
                .constraints
                .iter()
                .any(|c| matches!(c.kind, ConstraintKind::PrimaryKey { .. }) && c.columns.contains(&number));
            if in_primary {
                return Err(Error::new(
                    SqlState::INVALID_TABLE_DEFINITION,
                    format!("column \"{name}\" is in a primary key"),
                ));
            }
            table.columns[number as usize - 1].not_null = false;
            cx.put(CatalogObject::Table(table)).await?;
        }
        T::AT_AddConstraint => {
            let Some(Node::Constraint(constraint)) = &cmd.def else {
                return Err(Error::internal("ADD CONSTRAINT without one"));
            };
            return Ok(Some(vec![Pending { definition: (**constraint).clone(), column: None }]));
        }
        T::AT_DropConstraint => drop_constraint(cx, table, cmd, name).await?,
        T::AT_AlterConstraint => alter_constraint(cx, table, cmd).await?,
        T::AT_ValidateConstraint => super::constraint::validate(cx, &table, name).await?,
        T::AT_SetRelOptions | T::AT_ResetRelOptions => {
            table.options = changed_options(&table.options, cmd, Of::Table)?;
            cx.put(CatalogObject::Table(table)).await?;
        }
        T::AT_SetLogged | T::AT_SetUnLogged => {
            persistence::of_table(cx, table, found.columns, cmd.subtype == T::AT_SetUnLogged).await?;
        }
        T::AT_AddIdentity => {
            let number = column_number(&table, name)?;
            identity::add(cx, table, cmd, number).await?;
        }
        T::AT_SetIdentity => {
            let number = column_number(&table, name)?;
            identity::set(cx, table, cmd, number).await?;
        }
        T::AT_DropIdentity => {
            let number = column_number(&table, name)?;
            identity::drop(cx, table, cmd, number).await?;
        }
        T::AT_DropExpression => drop_expression(cx, table, cmd, name).await?,
        T::AT_EnableTrigAll | T::AT_DisableTrigAll => {
            table.triggers_off = cmd.subtype == T::AT_DisableTrigAll;
            set_triggers(cx, table).await?;
        }
        T::AT_EnableTrigUser | T::AT_DisableTrigUser => {}
        T::AT_EnableTrig | T::AT_DisableTrig | T::AT_EnableAlwaysTrig | T::AT_EnableReplicaTrig => {
            let message = format!("trigger \"{name}\" for table \"{}\" does not exist", table.name);
            return Err(Error::new(SqlState::UNDEFINED_OBJECT, message));
        }
        kind if kind == T::AT_SetStatistics || is_of_columns(kind) => check_column_setting(&table, cmd)?,
        T::AT_ClusterOn => require_index(cx, &table, name)?,
        T::AT_ReplicaIdentity => {
            if let Some(Node::ReplicaIdentityStmt(identity)) = &cmd.def
                && let Some(index) = identity.name.as_deref()
            {
                require_index(cx, &table, index)?;
            }
        }
        T::AT_SetTableSpace => super::require_tablespace(cmd.name.as_deref())?,
        kind if is_ignored(kind) => {}
        _ => return Err(Error::unsupported("this form of ALTER TABLE is not supported")),
    }
    Ok(None)
}

fn is_identity(table: &TableDesc, name: &str) -> Error {
    let message = format!("column \"{name}\" of relation \"{}\" is an identity column", table.name);
    Error::new(SqlState::SYNTAX_ERROR, message)
}

/// A column whose values the server makes has no default.
fn refuse_computed(table: &TableDesc, number: i16, drops: bool) -> Result<()> {
    let column = &table.columns[number as usize - 1];
    let (error, instead) = if column.identity.is_some() {
        (is_identity(table, &column.name), "DROP IDENTITY")
    } else if column.generated.is_some() {
        let message = format!("column \"{}\" of relation \"{}\" is a generated column", column.name, table.name);
        (Error::new(SqlState::SYNTAX_ERROR, message), "DROP EXPRESSION")
    } else {
        return Ok(());
    };
    let hint = format!("Use ALTER TABLE ... ALTER COLUMN ... {instead} instead.");
    Err(if drops { error.hint(hint) } else { error })
}

/// ENABLE or DISABLE TRIGGER ALL: whether foreign keys of the table, and those that point to it, are looked at.
async fn set_triggers(cx: &mut Cx<'_>, table: TableDesc) -> Result<()> {
    if !cx.session.is_superuser()
        && let Some(key) = table.constraints.iter().find(|c| matches!(c.kind, ConstraintKind::ForeignKey { .. }))
    {
        let message = format!("permission denied: \"RI_ConstraintTrigger_c_{}\" is a system trigger", key.oid.0);
        return Err(Error::new(SqlState::INSUFFICIENT_PRIVILEGE, message));
    }
    cx.put(CatalogObject::Table(table)).await
}

/// DROP EXPRESSION: a generated column becomes an ordinary one, with the values it has.
async fn drop_expression(cx: &mut Cx<'_>, mut table: TableDesc, cmd: &AlterTableCmd, name: &str) -> Result<()> {
    let number = column_number(&table, name)?;
    if table.columns[number as usize - 1].generated.take().is_some() {
        return cx.put(CatalogObject::Table(table)).await;
    }
    let message = format!("column \"{name}\" of relation \"{}\" is not a stored generated column", table.name);
    if cmd.missing_ok {
        cx.notice(SqlState::SUCCESSFUL_COMPLETION, format!("{message}, skipping"));
        return Ok(());
    }
    Err(Error::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, message))
}

/// Whether valid checks of the table leave no NULL in a column, so that its rows need not be looked at.
fn has_no_nulls(cx: &mut Cx<'_>, table: &TableDesc, number: i16) -> bool {
    let wanted = format!("{} IS NOT NULL", quote_name(&table.columns[number as usize - 1].name));
    let given = table.constraints.iter().filter(|c| !c.not_valid).filter_map(|c| match &c.kind {
        ConstraintKind::Check { expression } => Some(expression),
        _ => None,
    });
    cx.session
        .bind_stored(|binder| {
            let wanted = sql_bind::bind_check(&wanted.into(), table, binder)?;
            for text in given {
                let given = sql_bind::bind_check(text, table, binder)?;
                // A check holds for NULL as well, so only one that is itself about NULLs says anything.
                if sql_bind::is_part(&given, &wanted) {
                    return Ok(true);
                }
            }
            Ok(false)
        })
        .unwrap_or(false)
}

/// ALTER CONSTRAINT: whether and when a foreign key is deferred.
async fn alter_constraint(cx: &mut Cx<'_>, mut table: TableDesc, cmd: &AlterTableCmd) -> Result<()> {
    let (name, deferrable, deferred) = match &cmd.def {
        Some(Node::ATAlterConstraint(def)) => (def.conname.as_deref(), def.deferrable, def.initdeferred),
        Some(Node::Constraint(def)) => (def.conname.as_deref(), def.deferrable, def.initdeferred),
        _ => return Err(Error::internal("ALTER CONSTRAINT without one")),
    };
    let name = name.unwrap_or_default();
    let table_name = table.name.clone();
    let Some(constraint) = table.constraints.iter_mut().find(|c| c.name == name) else {
        let message = format!("constraint \"{name}\" of relation \"{table_name}\" does not exist");
        return Err(Error::new(SqlState::UNDEFINED_OBJECT, message));
    };
    let ConstraintKind::ForeignKey { table: referenced, .. } = constraint.kind else {
        let message = format!("constraint \"{name}\" of relation \"{table_name}\" is not a foreign key constraint");
        return Err(Error::new(SqlState::WRONG_OBJECT_TYPE, message));
    };
    constraint.deferrable = deferrable;
    constraint.deferred = deferred;
    cx.put(CatalogObject::Table(table)).await?;
    // Plans of the other table know of it too.
    match cx.catalog().table(referenced).cloned() {
        Some(referenced) => cx.put(CatalogObject::Table(referenced)).await,
        None => Ok(()),
    }
}

/// The text of a SET DEFAULT expression: what stands after the word DEFAULT before its first position.
pub(super) fn default_text(sql: &str, node: &Node) -> Result<String> {
    let at = leftmost(node);
    let before = sql.get(..at.max(0) as usize).unwrap_or_default();
    let from = last_position(before, "default").ok_or_else(|| Error::internal("a default without its text"))?;
    let text = expression_after(sql, from as i32, "default", false);
    text.map(str::to_string).ok_or_else(|| Error::internal("a default without its text"))
}

async fn add_column(cx: &mut Cx<'_>, mut table: TableDesc, cmd: &AlterTableCmd, found: Found) -> Result<Vec<Pending>> {
    let Some(Node::ColumnDef(def)) = &cmd.def else {
        return Err(Error::internal("ADD COLUMN without a column"));
    };
    let name = def.colname.as_deref().unwrap_or_default();
    system_column::refuse_name(&table, name)?;
    if table.column(name).is_some() {
        let message = format!("column \"{name}\" of relation \"{}\" already exists", table.name);
        if cmd.missing_ok {
            cx.notice(SqlState::DUPLICATE_COLUMN, format!("{message}, skipping"));
            return Ok(Vec::new());
        }
        return Err(Error::new(SqlState::DUPLICATE_COLUMN, message));
    }
    // Dropped columns keep their numbers.
    if table.columns.len() >= COLUMNS_MAX {
        return Err(Error::new(SqlState::TOO_MANY_COLUMNS, format!("tables can have at most {COLUMNS_MAX} columns")));
    }
    let column = new_column(cx, &table, def, false)?;
    let number = column.desc.number;
    let ty = Ty { oid: column.desc.type_oid, typmod: column.desc.typmod };
    table.columns.push(column.desc);
    if let Some(serial) = column.serial {
        super::rights::require_schema(cx, table.schema, engine_api::Privileges::CREATE)?;
        let sequence = serial_sequence(cx, &mut table, number, serial, &column.sequence_options, &[])?;
        // As in PostgreSQL, it is made as the table was when the statement began.
        let unlogged = found.persistence == Persistence::Unlogged;
        cx.put(CatalogObject::Sequence(SequenceDesc { unlogged, ..sequence })).await?;
    }
    let at = number as usize - 1;
    let primary = column.constraints.iter().any(|c| c.contype == rupg_sql::nodes::ConstrType::CONSTR_PRIMARY);
    table.columns[at].not_null |= primary;
    check_defaults(cx, &table)?;
    check_generated(cx, &table, &[])?;
    let own = table.columns[at].generated.clone().or_else(|| table.columns[at].default.clone());
    // What the type says of values counts for the rows that are there, too.
    let default = match own {
        None if types::user::is_domain(ty.oid) => {
            Some(cx.session.domain_default(ty.oid)?.unwrap_or_else(|| Expression::from("NULL")))
        }
        own => own,
    };
    // A default that is the same for every row is kept in the catalog; another one is computed row by row now.
    let same_for_all = match &default {
        None => Some(None),
        Some(_) if table.columns[at].generated.is_some() => None,
        Some(text) => constant_default(cx, text, ty)?,
    };
    match same_for_all {
        Some(missing) => {
            if missing.is_none() && table.columns[at].not_null {
                require_empty(cx, &table, name).await?;
            }
            table.columns[at].missing = missing;
            sql_ir::row_codec::keep_missing(&mut table.columns[at])?;
            found.add_layout(&mut table);
            cx.put(CatalogObject::Table(table)).await?;
        }
        None => {
            let is_generated = table.columns[at].generated.is_some();
            if let Some(default) = default.as_ref().filter(|_| !is_generated) {
                cx.session.check_constants_of_default(default, ty, name)?;
            }
            let is_computed_once = match &default {
                Some(default) if !is_generated && !types::user::is_domain(ty.oid) => {
                    !cx.session.is_volatile_default(default, ty)?
                }
                _ => false,
            };
            let text = default.ok_or_else(|| Error::internal("a column of no default that is computed"))?;
            if is_computed_once {
                // It must have a value that fits, were there no rows at all.
                cx.session.bind_stored(|binder| {
                    let value = bind_default(&text, ty, name, binder)?;
                    sql_ir::expr::evaluate(&value, binder.eval).map(drop)
                })?;
            }
            let computed = ComputedColumn { number, ty, by: is_generated.then_some(Computed::Generated), text };
            let next = LayoutId(table.newest_layout().id.0 + 1);
            let layout = layout_of(&table, next);
            rewrite_table(cx, table, layout, &[computed]).await?;
        }
    }
    Ok(column.constraints.into_iter().map(|definition| Pending { definition, column: Some(number) }).collect())
}

/// ADD COLUMN … NOT NULL without a default needs a table without rows.
async fn require_empty(cx: &mut Cx<'_>, table: &TableDesc, column: &str) -> Result<()> {
    if !has_row(cx, table.oid, &mut |_| Ok(None)).await? {
        return Ok(());
    }
    Err(Error::new(
        SqlState::NOT_NULL_VIOLATION,
        format!("column \"{column}\" of relation \"{}\" contains null values", table.name),
    )
    .schema(super::constraint::schema_of(&cx.catalog(), table))
    .table(&table.name)
    .column(column))
}

/// Drops a column of which all that depends on it is known, and dropped elsewhere.
pub(super) async fn drop_found_column(cx: &mut Cx<'_>, table: base::Oid, number: i16) -> Result<()> {
    let Some(desc) = cx.catalog().table(table).cloned() else { return Ok(()) };
    if desc.columns[number as usize - 1].dropped {
        return Ok(());
    }
    refuse_unknown_generated(cx, &desc, number)?;
    let found = Found::of(&desc);
    take_column(cx, desc, number, found).await
}

async fn drop_column(cx: &mut Cx<'_>, table: TableDesc, cmd: &AlterTableCmd, name: &str, found: Found) -> Result<()> {
    system_column::refuse(&table, name, "drop")?;
    if table.column(name).is_none() && cmd.missing_ok {
        cx.notice(
            SqlState::SUCCESSFUL_COMPLETION,
            format!("column \"{name}\" of relation \"{}\" does not exist, skipping", table.name),
        );
        return Ok(());
    }
    let number = column_number(&table, name)?;
    refuse_unknown_generated(cx, &table, number)?;
    let cascade = cmd.behavior == DropBehavior::DROP_CASCADE;
    drop::drop_column_users(cx, &table, number, cascade).await?;
    let table = cx.catalog().table(table.oid).cloned().unwrap_or(table);
    take_column(cx, table, number, found).await
}

/// Marks a column as dropped, and takes away what is over it alone.
async fn take_column(cx: &mut Cx<'_>, mut table: TableDesc, number: i16, found: Found) -> Result<()> {
    let catalog = cx.catalog();
    let is_included = |c: &engine_api::ConstraintDesc| match c.kind {
        ConstraintKind::PrimaryKey { index } | ConstraintKind::Unique { index } => {
            catalog.index(index).is_some_and(|index| index.include.contains(&number))
        }
        _ => false,
    };
    let doomed: Vec<_> =
        table.constraints.iter().filter(|c| c.columns.contains(&number) || is_included(c)).cloned().collect();
    table.constraints.retain(|c| !doomed.iter().any(|doomed| doomed.oid == c.oid));
    let indexes: Vec<_> =
        catalog.indexes(table.oid).filter(|i| cx.session.index_uses(i, &table, number)).map(|i| i.oid).collect();
    for index in indexes {
        cx.drop_one(index)?;
    }
    let column = &mut table.columns[number as usize - 1];
    column.dropped = true;
    column.default = None;
    (column.missing, column.missing_row) = (None, None);
    column.not_null = false;
    column.name = format!("........pg.dropped.{number}........");
    table.comments.remove(&number);
    found.add_layout(&mut table);
    cx.put(CatalogObject::Table(table)).await
}

/// The column that is generated from another one, if there is one.
fn generated_from<'t>(cx: &mut Cx<'_>, table: &'t TableDesc, number: i16) -> Result<Option<&'t ColumnDesc>> {
    for column in table.live_columns().filter(|column| column.number != number) {
        let Some(expression) = &column.generated else { continue };
        let ty = Ty { oid: column.type_oid, typmod: column.typmod };
        if cx.session.columns_computed_from(Computed::Generated, expression, ty, &column.name, table)?.contains(&number)
        {
            return Ok(Some(column));
        }
    }
    Ok(None)
}

/// Columns that others are generated from, or that views use, keep their type. Of several the oldest is told of.
fn refuse_users(cx: &mut Cx<'_>, table: &TableDesc, number: i16) -> Result<()> {
    let name = &table.columns[number as usize - 1].name;
    let generated = generated_from(cx, table, number)?;
    let catalog = cx.catalog();
    let view = super::doomed::view_using(&catalog, cx.database(), table.oid, number)?;
    // One of before, that has no number, came with its table.
    let since = generated.and_then(|column| column.default_oid).unwrap_or(table.oid);
    if let Some(view) = view.filter(|view| generated.is_none() || *view < since) {
        let view = drop::describe(&catalog, &cx.session.search_path(&catalog), view);
        return Err(Error::unsupported("cannot alter type of a column used by a view or rule")
            .detail(format!("rule _RETURN on {view} depends on column \"{name}\"")));
    }
    let Some(column) = generated else { return Ok(()) };
    Err(Error::unsupported("cannot alter type of a column used by a generated column")
        .detail(format!("Column \"{name}\" is used by generated column \"{}\".", column.name)))
}

/// A generated column of before whose expression has no references yet does not go with what it is computed from.
fn refuse_unknown_generated(cx: &mut Cx<'_>, table: &TableDesc, number: i16) -> Result<()> {
    match generated_from(cx, table, number)? {
        Some(column) if column.generated.as_ref().is_some_and(|e| !e.speaks_of_column(number)) => {
            Err(Error::unsupported(
                "dropping a column that a generated column is computed from whose expression was not converted is not supported",
            ))
        }
        _ => Ok(()),
    }
}

async fn drop_constraint(cx: &mut Cx<'_>, table: TableDesc, cmd: &AlterTableCmd, name: &str) -> Result<()> {
    let Some(constraint) = table.constraints.iter().find(|c| c.name == name).cloned() else {
        let message = format!("constraint \"{name}\" of relation \"{}\" does not exist", table.name);
        if cmd.missing_ok {
            cx.notice(SqlState::SUCCESSFUL_COMPLETION, format!("{message}, skipping"));
            return Ok(());
        }
        return Err(Error::new(SqlState::UNDEFINED_OBJECT, message));
    };
    if let ConstraintKind::ForeignKey { table: other, .. } = constraint.kind
        && let Some(other) = cx.catalog().table(other)
    {
        cx.session.check_not_in_use(other.oid, &other.name, "ALTER TABLE")?;
    }
    drop::drop_constraint(cx, &table, constraint.oid, cmd.behavior == DropBehavior::DROP_CASCADE).await
}

/// A column that gets another type, and the expression over the row as it was that gives its value.
struct TypeChange {
    number: i16,
    name: String,
    ty: Ty,
    /// See [`ColumnDesc::collation`].
    collation: Option<u32>,
    expression: Expression,
    /// Columns that the expression looks at.
    uses: Vec<i16>,
}

/// The types that a statement changes. Every USING is about the table as it was before the statement.
fn type_changes(cx: &mut Cx<'_>, table: &TableDesc, stmt: &AlterTableStmt) -> Result<Vec<TypeChange>> {
    let mut changes: Vec<TypeChange> = Vec::new();
    for cmd in commands(stmt).filter(|cmd| cmd.subtype == AlterTableType::AT_AlterColumnType) {
        let change = type_change(cx, table, cmd)?;
        if changes.iter().any(|other| other.number == change.number) {
            let name = &table.columns[change.number as usize - 1].name;
            return Err(Error::unsupported(format!("cannot alter type of column \"{name}\" twice")));
        }
        changes.push(change);
    }
    Ok(changes)
}

fn type_change(cx: &mut Cx<'_>, table: &TableDesc, cmd: &AlterTableCmd) -> Result<TypeChange> {
    let name = cmd.name.as_deref().unwrap_or_default();
    let Some(Node::ColumnDef(def)) = &cmd.def else {
        return Err(Error::internal("ALTER TYPE without a type"));
    };
    let using = match &def.raw_default {
        Some(node) => {
            let at = leftmost(node);
            let before = cx.sql.get(..at.max(0) as usize).unwrap_or_default();
            let from = last_position(before, "using").ok_or_else(|| Error::internal("USING without its text"))?;
            Some(expression_after(cx.sql, from as i32, "using", false).unwrap_or_default())
        }
        None => None,
    };
    if let Some(text) = using {
        // What it says is looked at before the column is, and before its new type.
        let looked_at = cx.session.bind_stored(|binder| sql_bind::check_transform(&text.into(), table, binder));
        looked_at.map_err(|e| cx.place(e, text, true))?;
    }
    let number = column_number(table, name)?;
    if using.is_some() && table.columns[number as usize - 1].generated.is_some() {
        let message = "cannot specify USING when altering type of generated column";
        return Err(Error::new(SqlState::INVALID_COLUMN_DEFINITION, message)
            .detail(format!("Column \"{name}\" is a generated column.")));
    }
    let type_name = def.typeName.as_deref().ok_or_else(|| Error::internal("ALTER TYPE without a type"))?;
    // PostgreSQL does not say where the type stands here.
    let ty = cx.column_type(type_name).map_err(without_position)?.ty;
    let is_whole = [types::oid::INT2, types::oid::INT4, types::oid::INT8].contains(&ty.oid);
    if table.columns[number as usize - 1].identity.is_some() && !is_whole {
        let message = "identity column type must be smallint, integer, or bigint";
        return Err(Error::new(SqlState::INVALID_PARAMETER_VALUE, message));
    }
    super::rights::require_type(cx, ty.oid)?;
    let collation = cx.collation(def.collClause.as_deref(), ty.oid).map_err(without_position)?;
    let old = &table.columns[number as usize - 1];
    if using.is_none() && !cx.session.assignable(old.type_oid, ty.oid) {
        let [shown, whole] = [-1, ty.typmod].map(|typmod| cx.session.shown_type(ty.oid, typmod));
        let message = format!("column \"{name}\" cannot be cast automatically to type {shown}");
        let error = Error::new(SqlState::DATATYPE_MISMATCH, message);
        return Err(match old.generated {
            Some(_) => error,
            None => error.hint(format!("You might need to specify \"USING {}::{whole}\".", quote_name(name))),
        });
    }
    let place = using.unwrap_or_default();
    let using = using.map_or_else(|| quote_name(name), str::to_string);
    let (plain, shown) = (Ty::of(ty.oid), cx.session.shown_type(ty.oid, -1));
    let uses = cx
        .session
        .columns_computed_from(Computed::Transform, &using.as_str().into(), plain, name, table)
        .map_err(|e| match e.code() {
            SqlState::DATATYPE_MISMATCH => Error::new(
                SqlState::DATATYPE_MISMATCH,
                format!("result of USING clause for column \"{name}\" cannot be cast automatically to type {shown}"),
            )
            .hint("You might need to add an explicit cast."),
            _ => cx.place(e, place, true),
        })?;
    let expression = using.as_str().into();
    Ok(TypeChange { number, name: name.to_string(), ty, collation, expression, uses })
}

/// Gives columns other types, all in one pass over the rows, and looks at what the table promises of these columns.
async fn change_types(cx: &mut Cx<'_>, mut table: TableDesc, changes: &[TypeChange]) -> Result<()> {
    let before = table.clone();
    let changed: Vec<i16> = changes.iter().map(|c| c.number).collect();
    for change in changes {
        let column = &table.columns[change.number as usize - 1];
        if column.dropped {
            return Err(no_column(&table, &change.name));
        }
        if let Some(text) = &column.default {
            // A literal does not tell which type it was written for.
            let from = cx.session.default_type(text)?;
            if from.is_some_and(|from| !cx.session.assignable(from, change.ty.oid)) {
                let shown = cx.session.shown_type(change.ty.oid, -1);
                let message =
                    format!("default for column \"{}\" cannot be cast automatically to type {shown}", change.name);
                return Err(Error::new(SqlState::DATATYPE_MISMATCH, message));
            }
        }
        // What the statement drops is gone by now.
        refuse_users(cx, &before, change.number)?;
        let generated = table.columns[change.number as usize - 1].generated.clone();
        let is_literal = match &generated {
            Some(text) => {
                let own = cx.session.bind_stored(|binder| sql_bind::bind_own_generated(text, &before, binder))?;
                own.is_none()
            }
            None => false,
        };
        let column = &mut table.columns[change.number as usize - 1];
        let ty = Ty { oid: column.type_oid, typmod: column.typmod };
        if let Some(default) = &mut column.default {
            *default = cx.session.shown_default(default, ty)?;
        }
        if let Some(literal) = column.generated.as_mut().filter(|_| is_literal) {
            *literal = cx.session.shown_default(literal, ty)?;
        }
        column.type_oid = change.ty.oid;
        column.typmod = change.ty.typmod;
        column.collation = change.collation;
        (column.missing, column.missing_row) = (None, None);
        column.default_oid = None;
    }
    check_defaults(cx, &table)?;
    let indexes = super::index::rebound(cx, &before, &table, &changed)?;
    for constraint in &mut table.constraints {
        let ConstraintKind::Check { expression } = &mut constraint.kind else { continue };
        // As in PostgreSQL, what the condition has come to mean is said anew.
        if changed.iter().any(|number| expression.speaks_of_column(*number)) {
            *expression = cx.session.shown_condition(expression, &before)?;
        }
    }
    check_constraints(cx, &table, &changed)?;
    for index in indexes {
        cx.put(CatalogObject::Index(index)).await?;
    }
    let next = LayoutId(table.newest_layout().id.0 + 1);
    let (oid, layout) = (table.oid, layout_of(&table, next));
    let computed = |c: &TypeChange| ComputedColumn {
        number: c.number,
        ty: c.ty,
        by: Some(Computed::Transform),
        text: c.expression.clone(),
    };
    let computed: Vec<_> = changes.iter().map(computed).collect();
    rewrite_table(cx, table, layout, &computed).await?;
    for number in &changed {
        cx.session.forget_statistics(oid, *number);
    }
    super::constraint::look_again(cx, oid, &changed).await
}

/// Sees whether the constraints of a table can be, now that these columns have other types, in the order in which they were made.
fn check_constraints(cx: &mut Cx<'_>, table: &TableDesc, changed: &[i16]) -> Result<()> {
    let mut constraints: Vec<_> = table.constraints.iter().collect();
    constraints.sort_by_key(|constraint| constraint.oid);
    for constraint in constraints {
        match &constraint.kind {
            ConstraintKind::Check { expression } => {
                cx.session.check_condition(expression, table).map_err(without_position)?;
            }
            ConstraintKind::ForeignKey { table: referenced, columns, .. }
                if constraint.columns.iter().any(|column| changed.contains(column)) =>
            {
                let catalog = cx.catalog();
                let referenced = if *referenced == table.oid { Some(table) } else { catalog.table(*referenced) };
                if let Some(referenced) = referenced {
                    let keys = ((table, &constraint.columns[..]), (referenced, &columns[..]));
                    super::constraint::require_comparable(cx, keys.0, keys.1, &constraint.name)?;
                }
            }
            _ => {}
        }
    }
    // Then the keys of other tables that point at these columns.
    let catalog = cx.catalog();
    let mut pointing: Vec<(&TableDesc, &ConstraintDesc, &[i16])> = Vec::new();
    for other in catalog.walk().filter_map(|o| catalog.table(o.oid())).filter(|other| other.oid != table.oid) {
        for constraint in &other.constraints {
            if let ConstraintKind::ForeignKey { table: referenced, columns, .. } = &constraint.kind
                && *referenced == table.oid
                && columns.iter().any(|column| changed.contains(column))
            {
                pointing.push((other, constraint, columns));
            }
        }
    }
    pointing.sort_by_key(|(_, constraint, _)| constraint.oid);
    for (other, constraint, columns) in pointing {
        super::constraint::require_comparable(cx, (other, &constraint.columns), (table, columns), &constraint.name)?;
    }
    Ok(())
}

/// The sequence of an identity column follows its type.
async fn follow_type(cx: &mut Cx<'_>, oid: base::Oid, cmd: &AlterTableCmd) -> Result<()> {
    let Some(table) = cx.catalog().table(oid).cloned() else { return Ok(()) };
    let Some(column) = table.column(cmd.name.as_deref().unwrap_or_default()) else { return Ok(()) };
    let (Some(Node::ColumnDef(def)), Some(_)) = (&cmd.def, column.identity) else { return Ok(()) };
    match def.typeName.as_deref() {
        Some(name) => identity::set_type(cx, &table, column.number, name).await,
        None => Ok(()),
    }
}

/// Refuses what is written about a column behind its end, where that end waits for a USING that looks at the column.
fn refuse_dropped(table: &TableDesc, stmt: &AlterTableStmt, changes: &[TypeChange]) -> Result<()> {
    let mut gone: Vec<&str> = Vec::new();
    for cmd in commands(stmt) {
        let name = cmd.name.as_deref().unwrap_or_default();
        match pass(cmd, table, changes) {
            0 | 2 if gone.contains(&name) && !cmd.missing_ok => return Err(no_column(table, name)),
            2 => gone.push(name),
            _ => {}
        }
    }
    let dropped = changes.iter().find(|change| gone.contains(&change.name.as_str()));
    dropped.map_or(Ok(()), |change| Err(no_column(table, &change.name)))
}

/// When PostgreSQL runs a command of ALTER TABLE, whichever place it is written at: what is dropped first, then types, then what is
/// added. A column that a USING looks at goes once the types are changed.
fn pass(cmd: &AlterTableCmd, table: &TableDesc, changes: &[TypeChange]) -> u8 {
    use AlterTableType as T;
    match cmd.subtype {
        T::AT_DropColumn => {
            let dropped = table.column(cmd.name.as_deref().unwrap_or_default()).map(|c| c.number);
            let used = dropped.is_some_and(|number| changes.iter().any(|c| c.uses.contains(&number)));
            if used { 2 } else { 0 }
        }
        T::AT_DropConstraint | T::AT_DropNotNull | T::AT_DropIdentity | T::AT_DropExpression => 0,
        T::AT_ColumnDefault if cmd.def.is_none() => 0,
        T::AT_AlterColumnType => 1,
        T::AT_AddColumn => 3,
        T::AT_SetNotNull => 4,
        T::AT_ColumnDefault | T::AT_AddIdentity | T::AT_AddConstraint => 5,
        _ => 6,
    }
}
