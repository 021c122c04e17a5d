//! What DDL asks of its session: running helper queries in the same transaction, binding stored expressions.

use std::sync::Arc;

use base::{Notice, Oid, Result};
use engine_api::{Catalog, CatalogObject, Engine, Expression, TableDesc, Txn, Wait};
use types::{Datum, InputContext, OutputSettings};

use super::context::{Environment, StatementContext};
use super::drive::{NoRows, Rows};
use super::statement::Kind;
use super::{Arguments, Session};
use crate::bind::{self, BindContext};
use crate::exec::{Execution, RowSink};
use crate::functions::{CastContext, Identity};
use crate::ir::{Expr, Ty};
use crate::parse;
use crate::system::deparse;

impl Session {
    /// The open transaction. REQUIRES one.
    pub(crate) fn transaction(&mut self) -> &mut dyn Txn {
        &mut **self.txn.as_mut().expect("DDL runs inside a transaction")
    }

    /// The catalog as the open transaction sees it.
    pub(crate) fn transaction_catalog(&self) -> Arc<Catalog> {
        self.catalog()
    }

    /// The engine.
    pub(crate) fn engine(&self) -> &dyn Engine {
        &*self.shared.engine
    }

    /// The value of a SET, checked.
    pub(crate) fn checked_setting(&self, name: &str, args: &rupg_sql::nodes::List) -> Result<String> {
        let value = super::utility::setting_text(self, name, args)?;
        match super::role::Setting::of(name) {
            Some(setting) => self.environment.foretell(&self.catalog(), setting, &value),
            None => self.environment.settings.borrow().check_for_others(name, &value)?,
        }
        Ok(value)
    }

    /// Whether the current role may take away what other sessions begin with.
    ///
    /// # Errors
    /// 42501
    pub(crate) fn may_change_setting(&self, name: &str) -> Result<()> {
        self.environment.settings.borrow().may_change(name)
    }

    /// Whether ALTER SYSTEM may say a setting.
    ///
    /// # Errors
    /// 42704 if there is no such setting, 55P02 if it may not.
    pub(crate) fn check_for_system(&self, name: &str) -> Result<()> {
        self.environment.settings.borrow().check_for_system(name)
    }

    /// The value that a setting has now.
    ///
    /// # Errors
    /// 42704 if there is no such setting.
    pub(crate) fn current_setting(&self, name: &str) -> Result<String> {
        self.environment.settings.borrow().show(name).ok_or_else(|| {
            let message = format!("unrecognized configuration parameter \"{name}\"");
            base::Error::new(base::SqlState::UNDEFINED_OBJECT, message)
        })
    }

    /// Sets the search path for the rest of the transaction.
    pub(crate) fn set_search_path(&mut self, value: &str) -> Result<()> {
        let level = self.savepoint_level();
        self.binding = None;
        self.environment.settings.borrow_mut().set("search_path", value, true, level)
    }

    /// The name of a setting as PostgreSQL spells it.
    pub(crate) fn setting_name(&self, name: &str) -> String {
        self.environment.settings.borrow().canonical_of(name)
    }

    /// The host's clock that never steps back.
    pub(crate) fn monotonic_nanos(&self) -> u64 {
        self.environment.host.monotonic_nanos()
    }

    /// What is known of the values in tables.
    pub(crate) fn statistics(&self) -> &crate::statistics::Statistics {
        self.shared.statistics()
    }

    /// Forgets, if the transaction commits, what is known of the values of a column (attribute number).
    pub(crate) fn forget_statistics(&mut self, table: Oid, column: i16) {
        self.retyped.push((table, column));
    }

    /// Takes statistics back if the block, or its part since a savepoint, is rolled back.
    pub(crate) fn note_analyzed(&mut self, replaced: crate::statistics::Replaced) {
        if self.block != super::Block::None || self.implicit_block {
            self.analyzed.push(replaced);
        }
    }

    /// Who and where.
    pub(crate) fn identity(&self) -> Identity {
        self.environment.identity.borrow().clone()
    }

    /// Queues a notice.
    pub(crate) fn push_notice(&self, notice: Notice) {
        self.environment.notices.borrow_mut().push(notice);
    }

    /// The name that the session's own schema has, or will have.
    pub(crate) fn temporary_schema_name(&self) -> String {
        format!("{}{}", crate::names::TEMPORARY_PREFIX, self.environment.pid)
    }

    /// Whether the session may have made temporary relations.
    pub(crate) fn may_have_temporary(&self) -> bool {
        self.temporary.get().0
    }

    /// The session is about to make a temporary relation.
    pub(crate) fn note_temporary(&self) {
        self.temporary.set((true, self.temporary.get().1));
    }

    /// The session is about to make a table that a commit changes.
    pub(crate) fn note_on_commit(&self) {
        self.temporary.set((true, true));
    }

    /// Drops the temporary relations: the session is over. What cannot be dropped without waiting is left to the next
    /// session of this number, or to the next start.
    pub(super) fn drop_temporary(&mut self) {
        if !self.may_have_temporary() {
            return;
        }
        let database = self.environment.identity.borrow().database_oid;
        let mut txn = self.shared.engine.begin(engine_api::TxnOptions::default());
        txn.begin_command();
        let doomed = crate::ddl::temporary::doomed(&txn.catalog(), database, &self.temporary_schema_name());
        let all = doomed.iter().try_for_each(|&oid| txn.drop_object(oid));
        match all.and_then(|()| txn.commit(engine_api::Durability::Off)) {
            Ok(engine_api::Step::Ready(_)) => {}
            _ => {
                txn.cancel_wait();
                txn.rollback();
            }
        }
    }

    /// How many notices are queued.
    pub(crate) fn notices(&self) -> usize {
        self.environment.notices.borrow().len()
    }

    /// Drops the notices beyond so many.
    pub(crate) fn forget_notices_after(&self, count: usize) {
        self.environment.notices.borrow_mut().truncate(count);
    }

    /// Drops notices that were queued and not sent.
    pub(crate) fn forget_notices(&self) {
        self.environment.notices.borrow_mut().clear();
    }

    /// The schemas of the search path that exist, as name resolution sees them.
    pub(crate) fn search_path(&mut self, catalog: &Catalog) -> Vec<Oid> {
        self.resolve_search_path(catalog)
    }

    /// Waits inside the transaction of a DDL statement.
    pub(crate) async fn wait_in_transaction(&mut self, wait: Wait) -> Result<()> {
        self.wait_for_lock(wait).await
    }

    /// A SCRAM verifier for a password, or the verifier itself if one is given.
    pub(crate) fn password_verifier(&self, password: &str) -> Result<String> {
        self.environment.host.password_verifier(password)
    }

    /// Lets another role be asked for rights, and answers which one it has been and whether that is a superuser.
    fn act_as(&mut self, role: Oid, superuser: bool) -> (Oid, bool) {
        let mut identity = self.environment.identity.borrow_mut();
        (std::mem::replace(&mut identity.role, role), std::mem::replace(&mut identity.superuser, superuser))
    }

    /// Runs a query of our own in the open transaction and collects its rows. What it reads is nobody's business: who may define
    /// something over rows need not be one who may read them.
    pub(crate) async fn internal_query(&mut self, sql: &str) -> Result<Vec<Vec<Datum>>> {
        let mut rows = Rows(Vec::new());
        self.internal_query_into(sql, &mut rows).await?;
        Ok(rows.0)
    }

    /// As [`Session::internal_query`], its rows into `sink`.
    pub(crate) async fn internal_query_into(&mut self, sql: &str, sink: &mut dyn RowSink) -> Result<()> {
        self.run_own(sql, sink).await.map(drop)
    }

    /// Runs a statement of our own in the open transaction: what it reads and changes is nobody's business. Answers the rows it
    /// changed.
    pub(crate) async fn run_own(&mut self, sql: &str, sink: &mut dyn RowSink) -> Result<u64> {
        let parsed = parse::parse(sql)?;
        let catalog = self.catalog();
        self.binding = None;
        self.refresh_binding(&catalog);
        let node = &parsed.first().ok_or_else(|| base::Error::internal("an empty query of our own"))?.node;
        let asking = self.act_as(engine_api::oids::ROLE_POSTGRES, true);
        let bound = match self.bind_query(node, sql, &[], 0, false) {
            Ok(statement) => self.begin_query(&Arc::new(statement)).await,
            Err(error) => Err(error),
        };
        // What the query computes is computed for whoever asks.
        self.act_as(asking.0, asking.1);
        let statement = bound?;
        let Kind::Query(query) = &statement.kind else {
            return Err(base::Error::internal("not a query"));
        };
        let mut execution = Execution::new(Arc::clone(&query.plan), Vec::new());
        self.drive_into(&mut execution, sink).await
    }

    /// Runs a statement in the name of the current role, which need not have rights on these relations. Answers the rows it changed.
    pub(crate) async fn change_sparing(&mut self, sql: &str, spared: &[Oid]) -> Result<u64> {
        let mut parsed = parse::parse(sql)?;
        let node = parsed.pop().ok_or_else(|| base::Error::internal("no statement of our own"))?.node;
        self.environment.spared.replace(spared.to_vec());
        let changed = self.run_internal(&node, sql, Arguments::default()).await;
        self.environment.spared.take();
        changed
    }

    /// As [`Session::run_own`], for what it changes alone.
    pub(crate) async fn change_own(&mut self, sql: &str) -> Result<u64> {
        self.run_own(sql, &mut NoRows).await
    }

    /// The result columns of a query.
    pub(crate) fn query_columns(
        &mut self,
        node: &rupg_sql::nodes::Node,
        sql: &str,
        arguments: &Arguments,
        runs: bool,
    ) -> Result<Vec<bind::ResultColumn>> {
        self.binding = None;
        let catalog = self.catalog();
        self.refresh_binding(&catalog);
        let statement = self.bind_query(node, sql, &arguments.types, 0, false)?;
        if let Kind::Query(query) = &statement.kind
            && let Some(refused) = query.refused.as_ref().filter(|_| runs)
        {
            return Err(refused.clone());
        }
        Ok(statement.columns().map(|columns| columns.to_vec()).unwrap_or_default())
    }

    /// Runs a statement of our own in the open transaction. Answers the rows it changed.
    pub(crate) async fn run_internal(
        &mut self,
        node: &rupg_sql::nodes::Node,
        sql: &str,
        arguments: Arguments,
    ) -> Result<u64> {
        self.binding = None;
        let catalog = self.catalog();
        self.refresh_binding(&catalog);
        let statement = Arc::new(self.bind_query(node, sql, &arguments.types, 0, false)?);
        let Kind::Query(query) = &statement.kind else { return Err(base::Error::internal("not a query")) };
        self.begin_query(&statement).await?;
        let mut execution = Execution::new(Arc::clone(&query.plan), arguments.values);
        self.drive_into(&mut execution, &mut NoRows).await
    }

    /// Runs an execution for its effects and its counts (EXPLAIN ANALYZE).
    pub(crate) async fn drive_silently(&mut self, execution: &mut Execution) -> Result<()> {
        self.drive_into(execution, &mut NoRows).await.map(drop)
    }

    /// What replies that rest on the open transaction must wait for.
    pub(crate) fn current_gate(&self) -> base::Lsn {
        self.txn.as_ref().map_or(self.gate, |txn| txn.gate().max(self.gate))
    }

    /// Whether the transaction is read-only.
    pub(crate) fn is_read_only(&self) -> bool {
        self.read_only
    }

    /// Evaluates the argument of EXECUTE for parameter `number` of type `ty`.
    pub(crate) fn evaluate(
        &mut self,
        node: &rupg_sql::nodes::Node,
        ty: Oid,
        number: usize,
        sql: &str,
    ) -> Result<Datum> {
        let expr = self.with_binder(|cx| bind::bind_argument(node, Ty::of(ty), number, sql, cx))?;
        let catalog = self.catalog();
        let eval = StatementContext::new(&self.environment, catalog);
        crate::expr::evaluate(&expr, &eval)
    }

    pub(super) fn with_binder<T>(&mut self, run: impl FnOnce(&mut BindContext<'_>) -> Result<T>) -> Result<T> {
        let catalog = self.catalog();
        self.binding = None;
        self.refresh_binding(&catalog);
        let identity = self.identity();
        let eval = StatementContext::new(&self.environment, Arc::clone(&catalog));
        let mut cx = BindContext::new(Arc::clone(&catalog), identity, &eval, &[]);
        cx.infer_params = false;
        run(&mut cx)
    }

    /// Binds the query of a view that is being defined.
    pub(crate) fn bind_view(&mut self, node: &rupg_sql::nodes::Node, sql: &str) -> Result<bind::BoundView> {
        self.with_binder(|cx| bind::bind_view(node, sql, cx))
    }

    /// Binds a query that is not run ([`bind::bind_unrun`]). `infer`: its parameters get types.
    pub(crate) fn bind_unrun(
        &mut self,
        node: &rupg_sql::nodes::Node,
        sql: &str,
        types: &[Oid],
        infer: bool,
    ) -> Result<bind::Unrun> {
        base::work::caught(|| {
            self.with_binder(|cx| {
                (cx.param_types, cx.infer_params) = (types.to_vec(), infer);
                bind::bind_unrun(node, sql, cx)
            })
        })
    }

    /// The columns of its table behind those of a simple view that is not in the catalog yet.
    pub(crate) fn through_view(&mut self, view: &TableDesc, verb: &str) -> Result<Vec<Option<usize>>> {
        self.with_binder(|cx| bind::bind_through_view(view, verb, cx))
    }

    /// Binds something that a definition keeps as text.
    pub(crate) fn bind_stored<T>(&mut self, bind: impl FnOnce(&mut BindContext<'_>) -> Result<T>) -> Result<T> {
        self.with_binder(bind)
    }

    /// Whether an index has to do with a column: as a key, in an expression or its condition, or included.
    pub(crate) fn index_uses(&mut self, index: &engine_api::IndexDesc, table: &TableDesc, column: i16) -> bool {
        if index.keys.iter().any(|k| k.column == column) || index.include.contains(&column) {
            return true;
        }
        let bound = index.needs_code().then(|| self.with_binder(|cx| bind::bind_index(index, table, cx)));
        let Some(Ok(bound)) = bound else { return false };
        let mut used = false;
        for expr in bound.expressions.iter().chain(&bound.predicate) {
            bind::visit_columns(expr, &mut |c| used |= c.column as i16 + 1 == column);
        }
        used
    }

    /// Closes a database that is to be dropped to new sessions; those in it have five seconds to end, as on PostgreSQL, or are
    /// ended if it is forced.
    ///
    /// # Errors
    /// 55006
    pub(crate) async fn close_database(&mut self, database: &engine_api::DatabaseDesc, force: bool) -> Result<()> {
        const TRIES: u32 = 50;
        const PAUSE_MS: u64 = 100;
        let mut inside = Vec::new();
        for _ in 0..TRIES {
            inside = self.shared.monitor.begin_drop(database.oid);
            if inside.is_empty() {
                return Ok(());
            }
            if force {
                for &pid in &inside {
                    self.environment.host.terminate_backend(pid);
                }
            }
            self.pause(PAUSE_MS).await?;
        }
        let detail = match inside.len() {
            1 => "There is 1 other session using the database.".to_string(),
            count => format!("There are {count} other sessions using the database."),
        };
        let message = format!("database \"{}\" is being accessed by other users", database.name);
        Err(base::Error::new(base::SqlState::OBJECT_IN_USE, message).detail(detail))
    }

    /// Waits for so many milliseconds.
    ///
    /// # Errors
    /// 57014 and kin if the statement is stopped.
    pub(crate) async fn pause(&mut self, millis: u64) -> Result<()> {
        self.environment.host.sleep(millis).await;
        self.wait(Wait::yield_now()).await
    }

    /// A database that was closed is open again.
    pub(crate) fn reopen_database(&self, database: Oid) {
        self.shared.monitor.give_up_drop(database);
    }

    /// Refuses a statement inside of a transaction block.
    pub(crate) fn refuse_in_block(&self, what: &str) -> Result<()> {
        self.check_no_block(what)
    }

    /// Puts references in the place of names in all that an object says.
    ///
    /// # Errors
    /// Those of binding an expression; 0A000 for one that cannot be kept.
    pub(crate) fn keep_references(&mut self, object: &mut CatalogObject) -> Result<()> {
        self.with_binder(|cx| crate::bind::stored::keep(object, cx))
    }

    /// Binds those expressions of an object that speak of whole rows, whose fields have the names of columns.
    ///
    /// # Errors
    /// Those of binding.
    pub(crate) fn check_row_fields(&mut self, object: &CatalogObject) -> Result<()> {
        self.with_binder(|cx| crate::bind::stored::check_row_fields(object, cx))
    }

    /// The text of a stored expression with the names of today.
    pub(crate) fn text_of_expression(&mut self, expression: &Expression, table: Option<&TableDesc>) -> String {
        crate::bind::stored::text(expression, &self.catalog(), table).into_owned()
    }

    /// A column's default as it is shown: with the type that it has today.
    pub(crate) fn shown_default(&mut self, expression: &Expression, ty: Ty) -> Result<Expression> {
        self.with_binder(|cx| Ok(deparse::default_text(expression, ty, false, cx.eval).into()))
    }

    /// A CHECK condition of a table as it is shown: with the types that its parts have today.
    pub(crate) fn shown_condition(&mut self, expression: &Expression, table: &TableDesc) -> Result<Expression> {
        self.with_binder(|cx| Ok(deparse::check_text(expression, table, false, cx.eval).into()))
    }

    /// As [`Session::shown_condition`], an expression or the condition of an index.
    pub(crate) fn shown_in_index(
        &mut self,
        expression: &Expression,
        is_condition: bool,
        table: &TableDesc,
    ) -> Result<Expression> {
        self.with_binder(|cx| Ok(deparse::index_text(expression, is_condition, table, false, cx.eval).0.into()))
    }

    /// Binds a column default, to see that it is one.
    pub(crate) fn check_default(&mut self, text: &Expression, ty: Ty, column: &str) -> Result<()> {
        self.with_binder(|cx| bind::bind_default(text, ty, column, cx)).map(|_| ())
    }

    /// Binds the condition of a domain.
    pub(crate) fn check_domain_condition(&mut self, text: &Expression, domain: &engine_api::DomainDesc) -> Result<()> {
        self.with_binder(|cx| bind::bind_domain_condition(text, domain, cx))
    }

    /// The default that a column has from its type.
    pub(crate) fn domain_default(&mut self, ty: Oid) -> Result<Option<Expression>> {
        self.with_binder(|cx| Ok(bind::domain_default(ty, cx)))
    }

    /// Binds a CHECK condition over a table. Answers the columns it is about.
    pub(crate) fn check_condition(&mut self, text: &Expression, table: &TableDesc) -> Result<Vec<i16>> {
        let expr = self.with_binder(|cx| bind::bind_check(text, table, cx))?;
        let mut columns = Vec::new();
        bind::visit_columns(&expr, &mut |column| {
            let number = column.column as i16 + 1;
            if column.level == 0 && !columns.contains(&number) {
                columns.push(number);
            }
        });
        Ok(columns)
    }

    /// Binds what a column is computed by. Answers the columns it is computed from.
    pub(crate) fn columns_computed_from(
        &mut self,
        by: bind::Computed,
        text: &Expression,
        ty: Ty,
        column: &str,
        table: &TableDesc,
    ) -> Result<Vec<i16>> {
        let expr = self.with_binder(|cx| bind::bind_computed(by, text, ty, column, table, cx))?;
        let mut columns = Vec::new();
        bind::visit_columns(&expr, &mut |column| columns.push(column.column as i16 + 1));
        Ok(columns)
    }

    /// The text form of a value; nothing of one that has none.
    pub(crate) fn text_of_value(&self, value: &Datum, ty: Oid) -> String {
        let eval = StatementContext::new(&self.environment, self.catalog());
        let mut text = Vec::new();
        match crate::functions::write_text(&eval, value, ty, &mut text) {
            Ok(()) => types::written(text),
            Err(_) => String::new(),
        }
    }

    /// The text form of a default that folds to a constant (`Some(None)` for NULL); `None` if it does not fold.
    pub(crate) fn constant_text(&mut self, text: &Expression, ty: Ty) -> Result<Option<Option<String>>> {
        let expr = self.with_binder(|cx| bind::bind_default(text, ty, "", cx))?;
        let Expr::Const(value, ty) = expr else { return Ok(None) };
        if matches!(value, Datum::Null) {
            return Ok(Some(None));
        }
        let mut out = Vec::new();
        types::write_text(value.as_ref(), ty.oid, &OutputSettings::default(), &mut out)?;
        let text = String::from_utf8(out).map_err(|_| base::Error::internal("text output is not UTF-8"))?;
        Ok(Some(Some(text)))
    }

    /// Whether a default may have another value each time.
    pub(crate) fn is_volatile_default(&mut self, text: &Expression, ty: Ty) -> Result<bool> {
        let expr = self.with_binder(|cx| bind::bind_default(text, ty, "", cx))?;
        Ok(bind::calls_volatile(&expr))
    }

    /// Computes the constants of a default, as PostgreSQL does before it looks at the rows.
    pub(crate) fn check_constants_of_default(&mut self, text: &Expression, ty: Ty, column: &str) -> Result<()> {
        self.with_binder(|cx| {
            let expr = bind::bind_default(text, ty, column, cx)?;
            bind::check_constants(&expr, cx)
        })
    }

    /// Whether a foreign key of one type can point at a key of another: the key's index compares values of the two, or the one
    /// becomes the other by itself.
    pub(crate) fn comparable(&self, foreign: Oid, key: Oid) -> bool {
        let is_same = foreign == key;
        let is_domain = types::user::is_domain(key);
        let [foreign, key] = [foreign, key].map(|ty| types::user::base_type(ty, -1).0);
        // The operators of enums take two values of one enum, not of a domain over it.
        if (types::user::is_enum(foreign) || types::user::is_enum(key)) && (!is_same || is_domain) {
            return false;
        }
        bind::key_comparison(foreign, key).is_some()
    }

    /// The type that a default has by itself; `None` for a literal, which takes any.
    pub(crate) fn default_type(&mut self, default: &Expression) -> Result<Option<Oid>> {
        self.with_binder(|cx| bind::default_type(default, cx))
    }

    /// The name of a type as the session would write it.
    pub(crate) fn shown_type(&mut self, ty: Oid, typmod: i32) -> String {
        let shown = self.with_binder(|cx| Ok(crate::bind::shown_type(cx.eval, ty, typmod)));
        shown.unwrap_or_else(|_| types::format_type(ty, typmod))
    }

    /// Whether a default is NULL cast to a type.
    pub(crate) fn is_null_of(&mut self, default: &Expression, ty: Oid) -> bool {
        let text = self.text_of_expression(default, None);
        bind::is_null_cast(&text) && self.default_type(default).is_ok_and(|own| own == Some(ty))
    }

    /// Whether a value of one type can be assigned to a column of another.
    pub(crate) fn assignable(&self, from: Oid, to: Oid) -> bool {
        bind::can_cast(from, to, CastContext::Assignment)
    }

    /// Parses a value in the text form of a type, with the session's settings.
    pub(crate) fn parse_value(&self, ty: Ty, text: &str) -> Result<Datum> {
        self.environment.parse_value(ty, text)
    }
}

impl Environment {
    /// As [`Session::parse_value`].
    #[inline]
    pub(super) fn parse_value(&self, ty: Ty, text: &str) -> Result<Datum> {
        // What most values are, without a look at settings.
        if let Some(value) = types::plain_int(ty.oid, text.as_bytes()) {
            return Ok(value);
        }
        if types::fits_as_it_is(ty.oid, ty.typmod, text) {
            return Ok(text.into());
        }
        self.parse_any(ty, text)
    }

    fn parse_any(&self, ty: Ty, text: &str) -> Result<Datum> {
        let settings = self.settings.borrow();
        let input = InputContext { settings: settings.output(), now_micros: self.transaction_start.get() };
        let value = types::parse_text(ty.oid, ty.typmod, text, &input)?;
        if ty.typmod < 0 { Ok(value) } else { types::apply_typmod(value, ty.oid, ty.typmod, false) }
    }
}
