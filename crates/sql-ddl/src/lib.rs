//! Statements that change the catalog.
//!
//! Responsible for: turning definitions into catalog objects, names and their conflicts, dependencies (CASCADE/RESTRICT),
//! checking existing rows against new constraints, rewriting tables whose stored form changes.
//! Not responsible for: how objects are stored, logged and undone – the engine does that in the same transaction (R10).
//! Invariants: a table is locked as PostgreSQL locks it before its descriptor is read for change; every object is written
//! through [`Cx::put`], so an error anywhere leaves nothing behind once the transaction is rolled back.

#![forbid(unsafe_code)]

mod alter_table;
mod attributes;
mod comment;
pub mod concurrently;
mod constraint;
mod create_as;
mod create_table;
mod database;
mod default_privileges;
mod dependents;
mod doomed;
mod drop;
mod extension;
mod grant;
mod grant_open;
mod identity;
mod index;
mod like;
mod lock;
mod lock_level;
mod materialized;
mod membership;
mod names;
mod owner;
mod persistence;
mod query;
mod rename;
mod rewrite;
mod rights;
mod role;
mod role_settings;
mod schema_elements;
mod sequence;
mod session;
mod set_schema;
mod storage;
pub mod temporary;
mod truncate;
mod types;
mod view;

pub use session::{Arguments, Later, Session, Source};

use std::sync::Arc;

use base::{Error, Oid, Result, Severity, SqlState};
use engine_api::{
    Catalog, CatalogObject, Privileges, SchemaDesc, Step, TableDesc, TableKind, TableLockMode, Txn, WaitPolicy, oids,
};
use rupg_sql::nodes::{Node, RangeVar};
use sql_parse::names::is_temporary;

/// What a DDL statement works with.
pub(crate) struct Cx<'a> {
    /// The session; its transaction is open.
    pub session: &'a mut dyn Session,
    /// The statement's text.
    pub sql: &'a str,
}

/// Runs a DDL statement; `None` if it is none. Answers the completion tag.
pub async fn run(session: &mut dyn Session, node: &Node, sql: &str) -> Result<Option<String>> {
    let mut cx = Cx { session, sql };
    if !rights::check(&mut cx, node)? {
        return Ok(None);
    }
    let tag = match node {
        Node::CreateTableAsStmt(stmt) => return create_as::create_table_as(&mut cx, stmt).await.map(Some),
        Node::SelectStmt(stmt) => return create_as::select_into(&mut cx, stmt).await.map(Some),
        Node::CommentStmt(stmt) => comment::comment(&mut cx, stmt).await?,
        Node::AlterObjectSchemaStmt(stmt) => set_schema::set_schema(&mut cx, stmt).await?,
        Node::ViewStmt(stmt) => view::create_view(&mut cx, stmt).await?,
        Node::RefreshMatViewStmt(stmt) => materialized::refresh(&mut cx, stmt).await?,
        Node::CreateStmt(stmt) => create_table::create_table(&mut cx, stmt).await?,
        Node::IndexStmt(stmt) => index::create_index(&mut cx, stmt).await?,
        Node::ReindexStmt(stmt) => index::reindex(&mut cx, stmt).await?,
        Node::CreateExtensionStmt(stmt) => extension::create(&mut cx, stmt).await?,
        Node::AlterExtensionStmt(stmt) => extension::alter(&mut cx, stmt).await?,
        Node::DropStmt(stmt) => drop::drop_objects(&mut cx, stmt).await?,
        Node::AlterTableStmt(stmt) => {
            owner::change_in(&mut cx, stmt).await?;
            alter_table::alter_table(&mut cx, stmt).await?
        }
        Node::AlterOwnerStmt(stmt) => owner::alter_owner(&mut cx, stmt).await?,
        Node::ReassignOwnedStmt(stmt) => owner::reassign_owned(&mut cx, stmt).await?,
        Node::DropOwnedStmt(stmt) => owner::drop_owned(&mut cx, stmt).await?,
        Node::AlterRoleSetStmt(stmt) => role_settings::alter_role_set(&mut cx, stmt).await?,
        Node::AlterSystemStmt(stmt) => role_settings::alter_system(&mut cx, stmt).await?,
        Node::AlterDatabaseSetStmt(stmt) => role_settings::alter_database_set(&mut cx, stmt).await?,
        Node::GrantStmt(stmt) => grant::grant(&mut cx, stmt).await?,
        Node::GrantRoleStmt(stmt) => membership::grant_roles(&mut cx, stmt).await?,
        Node::AlterDefaultPrivilegesStmt(stmt) => default_privileges::alter(&mut cx, stmt).await?,
        Node::RenameStmt(stmt) => rename::rename(&mut cx, stmt).await?,
        Node::CreateEnumStmt(stmt) => types::create_enum(&mut cx, stmt).await?,
        Node::AlterEnumStmt(stmt) => types::alter_enum(&mut cx, stmt).await?,
        Node::CreateDomainStmt(stmt) => types::create_domain(&mut cx, stmt).await?,
        Node::AlterDomainStmt(stmt) => types::alter_domain(&mut cx, stmt).await?,
        Node::TruncateStmt(stmt) => truncate::truncate(&mut cx, stmt).await?,
        Node::CreateSeqStmt(stmt) => sequence::create_sequence(&mut cx, stmt).await?,
        Node::AlterSeqStmt(stmt) => sequence::alter_sequence(&mut cx, stmt).await?,
        Node::CreateSchemaStmt(stmt) => database::create_schema(&mut cx, stmt).await?,
        Node::CreatedbStmt(stmt) => database::create_database(&mut cx, stmt).await?,
        Node::DropdbStmt(stmt) => database::drop_database(&mut cx, stmt).await?,
        Node::CreateRoleStmt(stmt) => role::create_role(&mut cx, stmt).await?,
        Node::AlterRoleStmt(stmt) => role::alter_role(&mut cx, stmt).await?,
        Node::DropRoleStmt(stmt) => role::drop_roles(&mut cx, stmt).await?,
        _ => return Ok(None),
    };
    Ok(Some(tag.to_string()))
}

/// Refuses a relation the name of a type in its schema: in PostgreSQL each relation has a row type of its name.
fn check_row_type_free(catalog: &Catalog, before: Option<&CatalogObject>, object: &CatalogObject) -> Result<()> {
    let (schema, name) = match (object, before) {
        (CatalogObject::Table(table), _) => (table.schema, &table.name),
        // PostgreSQL looks only when one is made.
        (CatalogObject::Sequence(sequence), None) => (sequence.schema, &sequence.name),
        _ => return Ok(()),
    };
    let stays = before.is_some_and(|before| before.namespace().1 == schema && before.name() == name);
    if stays || catalog.type_named(schema, name).is_none() {
        return Ok(());
    }
    let taken = format!("type \"{name}\" already exists");
    let error = |message| Error::new(SqlState::DUPLICATE_OBJECT, message);
    Err(match before {
        None => error(taken).hint(
            "A relation has an associated type of the same name, so you must use a name that doesn't conflict with any \
             existing type.",
        ),
        Some(before) if before.namespace().1 == schema => error(taken),
        Some(_) => {
            let schema = catalog.get(schema).map_or("", |schema| schema.name());
            error(format!("{taken} in schema \"{schema}\""))
        }
    })
}

impl Cx<'_> {
    /// The transaction.
    pub fn txn(&mut self) -> &mut dyn Txn {
        self.session.transaction()
    }

    /// The catalog with this transaction's changes.
    pub fn catalog(&mut self) -> Arc<Catalog> {
        self.session.catalog()
    }

    /// What a type name of a definition means.
    pub fn column_type(&mut self, name: &rupg_sql::nodes::TypeName) -> Result<sql_bind::ColumnType> {
        let (catalog, identity) = (self.catalog(), self.session.identity());
        if let [.., schema, _] = names::strings(&name.names).as_slice()
            && let Some(schema) = catalog.schema(identity.database_oid, schema)
        {
            rights::require_schema(self, schema.oid, Privileges::USAGE)
                .map_err(|error| error.at_byte(self.sql, name.location))?;
        }
        sql_bind::bind_column_type(name, self.sql, Some((&catalog, &identity)))
    }

    /// What a definition keeps of COLLATE, see [`ColumnDesc::collation`](engine_api::ColumnDesc::collation).
    pub fn collation(&mut self, clause: Option<&rupg_sql::nodes::CollateClause>, ty: Oid) -> Result<Option<u32>> {
        let Some(clause) = clause else { return Ok(None) };
        let (catalog, database) = (self.catalog(), self.database());
        let shown = || self.session.shown_type(ty, -1);
        let said = sql_bind::collation::said(&catalog, database, &names::strings(&clause.collname), ty, shown)
            .map_err(|error| error.at_byte(self.sql, clause.location))?;
        Ok((said != sql_bind::collation::of_type(&catalog, ty)).then_some(said))
    }

    /// A fresh OID.
    pub fn allocate(&mut self) -> Oid {
        self.session.engine().allocate_oid()
    }

    /// The role that will own what is created.
    pub fn owner(&mut self) -> Oid {
        self.session.who().role
    }

    /// Keeps the role that is to own a new object from being dropped.
    ///
    /// # Errors
    /// 42704 if it has been dropped: its session goes on, and owns nothing any more.
    async fn keep_owner(&mut self, owner: Oid) -> Result<()> {
        if owner.is_valid() {
            self.lock(owner, TableLockMode::AccessShare).await?;
        }
        if self.catalog().role_by_oid(owner).is_some() {
            return Ok(());
        }
        Err(Error::new(SqlState::UNDEFINED_OBJECT, format!("role {owner} was concurrently dropped")))
    }

    /// The session's database.
    pub fn database(&self) -> Oid {
        self.session.identity().database_oid
    }

    /// Sends a NOTICE.
    pub fn notice(&self, code: SqlState, message: impl Into<String>) {
        self.session.push_notice(Error::with_severity(Severity::Notice, code, message));
    }

    /// Sends a WARNING.
    pub fn warning(&self, code: SqlState, message: impl Into<String>) {
        self.session.push_notice(Error::with_severity(Severity::Warning, code, message));
    }

    /// Writes an object, waiting for index builds. A new one gets the privileges that its owner's objects begin with.
    pub async fn put(&mut self, mut object: CatalogObject) -> Result<()> {
        self.keep_schema(object.namespace().1).await?;
        self.session.keep_references(&mut object)?;
        self.number_defaults(&mut object);
        let catalog = self.catalog();
        let before = catalog.get(object.oid());
        rights::require_types(self, before.map(|o| &**o), &object)?;
        check_row_type_free(&catalog, before.map(|o| &**o), &object)?;
        let is_new = before.is_none();
        let owner = sql_parse::privileges::owner_of(&catalog, &object);
        let owner_before = before.and_then(|before| sql_parse::privileges::owner_of(&catalog, before));
        if let Some(owner) = owner.filter(|_| owner != owner_before) {
            self.keep_owner(owner).await?;
        }
        let initial = if is_new { default_privileges::of_new(&catalog, &object, self.database()) } else { None };
        self.write(object).await?;
        match initial {
            Some(list) => self.write(CatalogObject::Privileges(list)).await,
            None => Ok(()),
        }
    }

    /// Gives new defaults an identity: what depends on something is told in the order in which it was made.
    fn number_defaults(&mut self, object: &mut CatalogObject) {
        let CatalogObject::Table(table) = object else { return };
        for column in &mut table.columns {
            let has_default = column.default.is_some() && column.identity.is_none() || column.generated.is_some();
            match (has_default && !column.dropped, column.default_oid) {
                (true, None) => column.default_oid = Some(self.allocate()),
                (false, Some(_)) => column.default_oid = None,
                _ => {}
            }
        }
    }

    async fn write(&mut self, object: CatalogObject) -> Result<()> {
        // The definitions that a transaction has changed are kept until its end: with them as with values, who fills the memory is refused.
        ::types::room::ask(::types::room::LARGE)?;
        self.session.forget_rights();
        loop {
            match self.txn().put_object(object.clone())? {
                Step::Ready(()) => break,
                Step::Wait(wait) => self.session.wait_in_transaction(wait).await?,
            }
        }
        if matches!(object, CatalogObject::Type(_)) {
            // Its values are read by what it is from now on.
            let _catalog = self.catalog();
        }
        Ok(())
    }

    /// Keeps a schema from being dropped while something is made in it.
    async fn keep_schema(&mut self, oid: Oid) -> Result<()> {
        let catalog = self.catalog();
        let Some(CatalogObject::Schema(schema)) = catalog.get(oid).map(|o| &**o) else { return Ok(()) };
        self.lock(oid, TableLockMode::AccessShare).await?;
        match self.catalog().get(oid) {
            Some(_) => Ok(()),
            None => {
                Err(Error::new(SqlState::INVALID_SCHEMA_NAME, format!("schema \"{}\" does not exist", schema.name)))
            }
        }
    }

    /// Drops one object, and its access list.
    pub(crate) fn drop_one(&mut self, oid: Oid) -> Result<()> {
        let list = self.catalog().privileges(oid).map(|list| list.oid);
        self.session.forget_rights();
        if let Some(list) = list {
            self.txn().drop_object(list)?;
        }
        self.txn().drop_object(oid)
    }

    /// Locks a table until the end of the transaction.
    pub async fn lock(&mut self, table: Oid, mode: TableLockMode) -> Result<()> {
        loop {
            match self.txn().lock_table(table, mode, WaitPolicy::Block)? {
                Step::Ready(()) => return Ok(()),
                Step::Wait(wait) => self.session.wait_in_transaction(wait).await?,
            }
        }
    }

    /// The table a name means, locked until the end of the transaction.
    pub(crate) async fn locked_table(&mut self, name: &RangeVar, mode: TableLockMode) -> Result<TableDesc> {
        loop {
            let found = self.table_named(name)?.oid;
            self.lock(found, mode).await?;
            // While it was waited for it may have been altered, or the name may have gone to another.
            let table = self.table_named(name)?;
            if table.oid == found {
                return Ok(table);
            }
        }
    }

    /// The relation a name means, if there is one.
    pub fn find_relation(&mut self, name: &RangeVar) -> Result<Option<Arc<CatalogObject>>> {
        let catalog = self.catalog();
        let relname = name.relname.as_deref().unwrap_or_default();
        if let Some(schema) = &name.schemaname {
            let schema = self.schema_named(&catalog, schema)?;
            rights::require_schema(self, schema.oid, Privileges::USAGE)?;
            return Ok(catalog.relation(schema.oid, relname).cloned());
        }
        let path = self.session.search_path(&catalog);
        Ok(path.iter().find_map(|&schema| catalog.relation(schema, relname)).cloned())
    }

    /// The relation that ALTER … IF EXISTS names: with it a schema need not be there either.
    ///
    /// # Errors
    /// As [`Cx::find_relation`].
    pub(crate) fn find_altered(&mut self, name: &RangeVar, missing_ok: bool) -> Result<Option<Arc<CatalogObject>>> {
        match &name.schemaname {
            Some(schema) if missing_ok && self.catalog().schema(self.database(), schema).is_none() => Ok(None),
            _ => self.find_relation(name),
        }
    }

    /// The notice of ALTER … IF EXISTS that there is none.
    pub fn skip_missing(&mut self, name: &RangeVar) {
        let relname = name.relname.as_deref().unwrap_or_default();
        let message = format!("relation \"{relname}\" does not exist, skipping");
        self.notice(SqlState::SUCCESSFUL_COMPLETION, message);
    }

    /// The table a name means.
    ///
    /// # Errors
    /// 42P01; 42809 if it is another kind of relation.
    pub(crate) fn table_named(&mut self, name: &RangeVar) -> Result<TableDesc> {
        match self.find_relation(name)?.as_deref() {
            Some(CatalogObject::Table(table)) if table.kind == TableKind::Table => Ok(table.clone()),
            Some(other) => Err(Error::new(SqlState::WRONG_OBJECT_TYPE, format!("\"{}\" is not a table", other.name()))),
            None => Err(Error::new(
                SqlState::UNDEFINED_TABLE,
                format!("relation \"{}\" does not exist", names::display(name)),
            )),
        }
    }

    /// The table, view or materialized view a name means.
    ///
    /// # Errors
    /// 42P01; 42809 if it is another kind of relation.
    pub fn relation_named(&mut self, name: &RangeVar) -> Result<TableDesc> {
        match self.find_relation(name)?.as_deref() {
            Some(CatalogObject::Table(table)) => Ok(table.clone()),
            Some(other) => Err(Error::new(SqlState::WRONG_OBJECT_TYPE, format!("\"{}\" is not a table", other.name()))),
            None => Err(Error::new(
                SqlState::UNDEFINED_TABLE,
                format!("relation \"{}\" does not exist", names::display(name)),
            )),
        }
    }

    /// The table, view or materialized view a name means, locked until the end of the transaction.
    pub(crate) async fn locked_relation(&mut self, name: &RangeVar, mode: TableLockMode) -> Result<TableDesc> {
        loop {
            let found = self.relation_named(name)?.oid;
            self.lock(found, mode).await?;
            let table = self.relation_named(name)?;
            if table.oid == found {
                return Ok(table);
            }
        }
    }

    fn schema_named(&self, catalog: &Catalog, name: &str) -> Result<SchemaDesc> {
        let own = (name == "pg_temp").then(|| self.session.temporary_schema_name());
        catalog
            .schema(self.database(), own.as_deref().unwrap_or(name))
            .cloned()
            .ok_or_else(|| Error::new(SqlState::INVALID_SCHEMA_NAME, format!("schema \"{name}\" does not exist")))
    }

    /// Puts an error that points into `part` of the statement's text where it belongs; `part` is parsed behind `SELECT `.
    ///
    /// Only CREATE TABLE and USING tell where: other statements check expressions when their text is no longer at hand.
    pub fn place(&self, mut error: Error, part: &str, fresh: bool) -> Error {
        const WRAPPER: u32 = "SELECT ".len() as u32;
        let offset = (part.as_ptr() as usize).wrapping_sub(self.sql.as_ptr() as usize);
        let inside = self.sql.get(..offset);
        let fields = error.fields_mut();
        fields.position = match (fields.position, inside) {
            (Some(position), Some(before)) if fresh => {
                Some((position + before.chars().count() as u32).saturating_sub(WRAPPER))
            }
            _ => None,
        };
        error
    }

    /// The schema in which a new relation of this name is made.
    ///
    /// # Errors
    /// 3F000 without a usable schema; 42501 for the system schemas; 42P16 for temporary relations elsewhere.
    pub(crate) async fn creation_schema(&mut self, name: &RangeVar) -> Result<Oid> {
        match self.permanent_schema(name)? {
            Some(schema) => Ok(schema),
            None => temporary::schema(self).await,
        }
    }

    /// [`Cx::creation_schema`] of a permanent relation; `None` for a temporary one, whose schema may have to be made.
    pub(crate) fn permanent_schema(&mut self, name: &RangeVar) -> Result<Option<Oid>> {
        let Some(schema) = self.permanent_place(name)? else { return Ok(None) };
        self.require_creation(schema, name)?;
        Ok(Some(schema))
    }

    /// The same, whoever may make relations there.
    fn permanent_place(&mut self, name: &RangeVar) -> Result<Option<Oid>> {
        let catalog = self.catalog();
        let own = self.session.temporary_schema_name();
        let given = name.schemaname.as_deref();
        let in_own = given.is_some_and(|s| s == "pg_temp" || s == own);
        if name.relpersistence == b't' || in_own {
            let message = match name.relpersistence {
                b'u' => Some("only temporary relations may be created in temporary schemas"),
                _ if given.is_some() && !in_own => Some("cannot create temporary relation in non-temporary schema"),
                _ => None,
            };
            if let Some(message) = message {
                return Err(Error::new(SqlState::INVALID_TABLE_DEFINITION, message).at_byte(self.sql, name.location));
            }
            return Ok(None);
        }
        let schema = match &name.schemaname {
            Some(schema) => self.schema_named(&catalog, schema)?.oid,
            None => {
                let path = self.session.search_path(&catalog);
                let system = [oids::SCHEMA_PG_CATALOG, oids::SCHEMA_INFORMATION_SCHEMA];
                let usable = |s: &Oid| !system.contains(s) && !is_temporary(&catalog, *s);
                path.into_iter().find(usable).ok_or_else(|| {
                    Error::new(SqlState::INVALID_SCHEMA_NAME, "no schema has been selected to create in")
                })?
            }
        };
        if is_temporary(&catalog, schema) {
            let message = "cannot create relations in temporary schemas of other sessions";
            return Err(Error::new(SqlState::INVALID_TABLE_DEFINITION, message));
        }
        Ok(Some(schema))
    }

    fn require_creation(&mut self, schema: Oid, name: &RangeVar) -> Result<()> {
        self.require_right_to_create(schema)?;
        self.refuse_in_system_schema(schema, name.relname.as_deref().unwrap_or_default())
    }

    /// Of a superuser in a schema that is every database's something else is said, and later.
    fn require_right_to_create(&mut self, schema: Oid) -> Result<()> {
        match rights::is_system_schema(schema) && self.session.is_superuser() {
            true => Ok(()),
            false => rights::require_schema(self, schema, Privileges::CREATE),
        }
    }

    /// Nobody makes relations in a schema that is every database's, not even who may.
    ///
    /// # Errors
    /// 42501 in `pg_catalog`, as in PostgreSQL; 0A000 in `information_schema`.
    pub(crate) fn refuse_in_system_schema(&mut self, schema: Oid, relname: &str) -> Result<()> {
        if schema != oids::SCHEMA_PG_CATALOG {
            return match rights::is_system_schema(schema) {
                true => rights::require_schema(self, schema, Privileges::CREATE),
                false => Ok(()),
            };
        }
        let message = format!("permission denied to create \"pg_catalog.{relname}\"");
        Err(Error::new(SqlState::INSUFFICIENT_PRIVILEGE, message)
            .detail("System catalog modifications are currently disallowed."))
    }

    /// As [`Cx::creation_schema`], before it is known whether the relation can be made at all: whether the schema is every
    /// database's is yet to be asked ([`Cx::refuse_in_system_schema`]).
    pub(crate) async fn schema_of_new(&mut self, name: &RangeVar) -> Result<Oid> {
        match self.permanent_place(name)? {
            Some(schema) => self.require_right_to_create(schema).map(|()| schema),
            None => temporary::schema(self).await,
        }
    }

    /// Binds the query of a new relation. `None`, with a notice, if there is a relation of that name and that is no error: what is
    /// there is found before views are expanded, and before anybody's rights are looked at.
    ///
    /// # Errors
    /// Those of the query; 3F000; 42P07.
    pub(crate) fn query_of_new(
        &mut self,
        name: &RangeVar,
        if_not_exists: bool,
        bind: impl FnOnce(&mut Self) -> Result<Vec<sql_bind::ResultColumn>>,
    ) -> Result<Option<Vec<sql_bind::ResultColumn>>> {
        let columns = bind(self);
        if columns.as_ref().is_err_and(|error| !sql_bind::is_recursion(error)) {
            return columns.map(Some);
        }
        let schema = match self.permanent_place(name)? {
            Some(schema) => Some(schema),
            None => {
                let own = self.session.temporary_schema_name();
                self.catalog().schema(self.database(), &own).map(|schema| schema.oid)
            }
        };
        if let Some(schema) = schema
            && !self.check_free(schema, name.relname.as_deref().unwrap_or_default(), if_not_exists)?
        {
            return Ok(None);
        }
        columns.map(Some)
    }

    /// Whether a new relation may take the name. `false` with IF NOT EXISTS and a notice when it is taken.
    ///
    /// # Errors
    /// 42P07.
    pub(crate) fn check_free(&mut self, schema: Oid, name: &str, if_not_exists: bool) -> Result<bool> {
        if self.catalog().relation(schema, name).is_none() {
            return Ok(true);
        }
        let message = format!("relation \"{name}\" already exists");
        if if_not_exists {
            self.notice(SqlState::DUPLICATE_TABLE, format!("{message}, skipping"));
            return Ok(false);
        }
        Err(Error::new(SqlState::DUPLICATE_TABLE, message))
    }
}

pub use create_as::take_into;

/// A tablespace that is named for a relation must be there, though all are kept in the same place.
///
/// # Errors
/// 42704; 22023 for that of shared relations.
pub(crate) fn require_tablespace(name: Option<&str>) -> Result<()> {
    match name {
        None | Some("" | "pg_default") => Ok(()),
        Some("pg_global") => {
            let message = "only shared relations can be placed in pg_global tablespace";
            Err(Error::new(SqlState::INVALID_PARAMETER_VALUE, message))
        }
        Some(name) => Err(Error::new(SqlState::UNDEFINED_OBJECT, format!("tablespace \"{name}\" does not exist"))),
    }
}

/// Locks the table or view that a name means, and what the view is over, if the current role may.
///
/// # Errors
/// 42501; 42809 for what cannot be locked.
pub async fn lock_named(
    session: &mut dyn Session,
    name: &RangeVar,
    mode: TableLockMode,
    policy: WaitPolicy,
) -> Result<()> {
    lock::lock_named(&mut Cx { session, sql: "" }, name, mode, policy).await
}

/// Whether a relation is the current role's to maintain, and whether it can be; says so if not.
pub fn may_maintain(session: &mut dyn Session, table: &TableDesc, verb: &str) -> bool {
    rights::may_maintain(&mut Cx { session, sql: "" }, table, verb)
}

/// The descriptor of the table, view or materialized view a name means.
pub fn relation_desc(session: &mut dyn Session, name: &RangeVar, sql: &str) -> Result<TableDesc> {
    Cx { session, sql }.relation_named(name)
}

/// 42P16 for a column whose values no table can keep.
fn refuse_pseudo_type(column: &str, ty: Oid) -> Result<()> {
    if ![::types::oid::RECORD, ::types::oid::RECORD_ARRAY].contains(&ty) {
        return Ok(());
    }
    let message = format!("column \"{column}\" has pseudo-type {}", ::types::format_type(ty, -1));
    Err(Error::new(SqlState::INVALID_TABLE_DEFINITION, message))
}
