//! What definitions ask of their session ([`sql_ddl::Session`]): running queries of their own in the same transaction, binding, settings.

use std::sync::Arc;

use base::{Notice, Oid, Result, work};
use engine_api::{Catalog, Engine, Txn, Wait};
use rupg_sql::nodes::ExecuteStmt;
use sql_bind::{self as bind, BindContext, BoundStatement, ResultColumn};
use sql_ddl::{self as ddl, Arguments, Later, Source};
use sql_exec::{Execution, RowSink};
use sql_functions::Identity;
use sql_ir::Ty;
use sql_parse::privileges::Who;
use sql_plan::Plan;
use types::{Datum, InputContext};

use super::Session;
use super::context::{Environment, StatementContext};
use super::drive::NoRows;
use super::statement::StatementBody;

/// A statement that has no text, ready to run.
pub(crate) struct OwnStatement {
    pub plan: Arc<Plan>,
    /// Its result columns.
    pub columns: Vec<ResultColumn>,
}

impl Session {
    /// The open transaction. REQUIRES one.
    pub(super) fn transaction(&mut self) -> &mut dyn Txn {
        &mut **self.txn.as_mut().expect("DDL runs inside a transaction")
    }

    /// The engine.
    pub(super) fn engine(&self) -> &dyn Engine {
        &*self.shared.engine
    }

    /// Who and where.
    pub(super) fn identity(&self) -> Identity {
        self.environment.identity.borrow().clone()
    }

    /// Queues a notice.
    pub(super) fn push_notice(&self, notice: Notice) {
        self.environment.notices.borrow_mut().push(notice);
    }

    /// Whether the session may have made temporary relations.
    pub(super) fn may_have_temporary(&self) -> bool {
        self.temporary.get().0
    }

    /// The name that the session's own schema has, or will have.
    pub(super) fn temporary_schema_name(&self) -> String {
        format!("{}{}", sql_parse::names::TEMPORARY_PREFIX, self.environment.pid)
    }

    /// Parses a value in the text form of a type, with the session's settings.
    pub(super) fn parse_value(&self, ty: Ty, text: &str) -> Result<Datum> {
        self.environment.parse_value(ty, text)
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
        let doomed = sql_ddl::temporary::doomed(&txn.catalog(), database, &self.temporary_schema_name());
        let all = doomed.iter().try_for_each(|&oid| txn.drop_object(oid));
        match all.and_then(|()| txn.commit(engine_api::Durability::Off)) {
            Ok(engine_api::Step::Ready(_)) => {}
            _ => {
                txn.cancel_wait();
                txn.rollback();
            }
        }
    }

    /// Runs an execution for its effects and its counts (EXPLAIN ANALYZE).
    pub(crate) async fn drive_silently(&mut self, execution: &mut Execution) -> Result<()> {
        self.drive_into(execution, &mut NoRows).await.map(drop)
    }

    /// What replies that depend on the open transaction must wait for.
    pub(crate) fn current_gate(&self) -> base::Lsn {
        self.txn.as_ref().map_or(self.gate, |txn| txn.gate().max(self.gate))
    }

    /// Whether the transaction is read-only.
    pub(crate) fn is_read_only(&self) -> bool {
        self.environment.read_only.get()
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
        sql_ir::expr::evaluate(&expr, &eval)
    }

    pub(super) fn with_binder<T>(&mut self, run: impl FnOnce(&mut BindContext<'_>) -> T) -> T {
        let catalog = self.catalog();
        self.binding = None;
        self.refresh_binding(&catalog);
        let identity = self.identity();
        let eval = StatementContext::new(&self.environment, Arc::clone(&catalog));
        let mut cx = BindContext::new(Arc::clone(&catalog), identity, &eval, &[]);
        cx.infer_params = false;
        run(&mut cx)
    }

    /// Binds and plans a statement that has no text, locks what it uses and starts the command: anew if definitions have changed
    /// while its locks were waited for.
    ///
    /// # Errors
    /// Those of binding and planning; what the statement is refused for.
    pub(crate) async fn begin_own(
        &mut self,
        bind: &mut dyn FnMut(&mut BindContext<'_>) -> Result<BoundStatement>,
    ) -> Result<OwnStatement> {
        self.has_queried = true;
        let own = loop {
            let catalog = self.catalog();
            let mut bind = |cx: &mut BindContext<'_>| bind(cx).map(|bound| (bound, cx.sequences()));
            let (bound, sequences) = work::caught(|| self.with_binder(&mut bind))?;
            if let Some(refused) = bound.refused {
                return Err(refused);
            }
            self.lock_tables(&bound.tables).await?;
            if sequences.iter().any(|sequence| self.shared.engine.may_be_locked(*sequence)) {
                self.await_sequences(&sequences).await?;
            }
            if self.catalog().version == catalog.version {
                let plan = work::caught(|| self.plan_own(&bound.statement, &catalog))?;
                break OwnStatement { plan, columns: bound.columns };
            }
        };
        if self.awaits_snapshot() {
            Box::pin(self.await_safe_snapshot()).await?;
        }
        self.transaction().begin_command();
        Ok(own)
    }

    /// The host's clock that never steps back.
    pub(crate) fn monotonic_nanos(&self) -> u64 {
        self.environment.host.monotonic_nanos()
    }

    /// What is known of the values in tables.
    pub(crate) fn statistics(&self) -> &sql_functions::statistics::Statistics {
        self.shared.statistics()
    }

    /// Takes statistics back if the block, or its part since a savepoint, is rolled back.
    pub(crate) fn note_analyzed(&mut self, replaced: sql_functions::statistics::Replaced) {
        if self.block != super::Block::None || self.implicit_block {
            self.analyzed.push(replaced);
        }
    }
}

impl ddl::Session for Session {
    fn transaction(&mut self) -> &mut dyn Txn {
        Session::transaction(self)
    }

    fn catalog(&self) -> Arc<Catalog> {
        Session::catalog(self)
    }

    fn engine(&self) -> &dyn Engine {
        Session::engine(self)
    }

    fn checked_setting(&self, name: &str, args: &rupg_sql::nodes::List) -> Result<String> {
        let value = super::utility::setting_text(self, name, args)?;
        match super::role::Setting::of(name) {
            Some(setting) => self.environment.foretell(&self.catalog(), setting, &value),
            None => self.environment.settings.borrow().check_for_others(name, &value)?,
        }
        Ok(value)
    }

    fn may_change_setting(&self, name: &str) -> Result<()> {
        self.environment.settings.borrow().may_change(name)
    }

    fn check_for_system(&self, name: &str) -> Result<bool> {
        self.environment.settings.borrow().check_for_system(name)
    }

    fn current_setting(&self, name: &str) -> Result<String> {
        self.environment.settings.borrow().show(name).ok_or_else(|| {
            let message = format!("unrecognized configuration parameter \"{name}\"");
            base::Error::new(base::SqlState::UNDEFINED_OBJECT, message)
        })
    }

    fn set_search_path(&mut self, value: &str) -> Result<()> {
        let level = self.savepoint_level();
        self.binding = None;
        self.environment.settings.borrow_mut().set("search_path", value, true, level)
    }

    fn setting_name(&self, name: &str) -> String {
        self.environment.settings.borrow().canonical_of(name)
    }

    fn forget_statistics(&mut self, table: Oid, column: i16) {
        self.retyped.push((table, column));
    }

    fn identity(&self) -> Identity {
        Session::identity(self)
    }

    fn push_notice(&self, notice: Notice) {
        Session::push_notice(self, notice);
    }

    fn temporary_schema_name(&self) -> String {
        Session::temporary_schema_name(self)
    }

    fn may_have_temporary(&self) -> bool {
        Session::may_have_temporary(self)
    }

    fn note_temporary(&self) {
        self.temporary.set((true, self.temporary.get().1));
    }

    fn note_on_commit(&self) {
        self.temporary.set((true, true));
    }

    fn notices(&self) -> usize {
        self.environment.notices.borrow().len()
    }

    fn forget_notices_after(&self, count: usize) {
        self.environment.notices.borrow_mut().truncate(count);
    }

    fn forget_notices(&self) {
        self.environment.notices.borrow_mut().clear();
    }

    fn search_path(&mut self, catalog: &Catalog) -> Vec<Oid> {
        self.resolve_search_path(catalog)
    }

    fn wait_in_transaction<'s>(&'s mut self, wait: Wait) -> Later<'s, ()> {
        Box::pin(async move { self.wait_for_lock(wait).await })
    }

    fn password_verifier(&self, password: &str) -> Result<String> {
        self.environment.host.password_verifier(password)
    }

    fn run_bound<'s>(
        &'s mut self,
        bind: &'s mut dyn FnMut(&mut BindContext<'_>) -> Result<BoundStatement>,
        sink: &'s mut dyn RowSink,
    ) -> Later<'s, u64> {
        Box::pin(async move {
            let plan = self.begin_own(bind).await?.plan;
            self.drive_into(&mut Execution::new(plan, Vec::new()), sink).await
        })
    }

    fn query_columns(
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
        if let StatementBody::Query(query) = &statement.kind
            && let Some(refused) = query.refused.as_ref().filter(|_| runs)
        {
            return Err(refused.clone());
        }
        Ok(statement.columns().map(|columns| columns.to_vec()).unwrap_or_default())
    }

    fn run_internal<'s>(
        &'s mut self,
        node: &'s rupg_sql::nodes::Node,
        sql: &'s str,
        arguments: Arguments,
    ) -> Later<'s, u64> {
        Box::pin(async move {
            self.binding = None;
            let catalog = self.catalog();
            self.refresh_binding(&catalog);
            let statement = Arc::new(self.bind_query(node, sql, &arguments.types, 0, false)?);
            let StatementBody::Query(query) = &statement.kind else { return Err(base::Error::internal("not a query")) };
            self.begin_query(&statement).await?;
            let mut execution = Execution::new(Arc::clone(&query.plan), arguments.values);
            self.drive_into(&mut execution, &mut NoRows).await
        })
    }

    fn close_database<'s>(&'s mut self, database: &'s engine_api::DatabaseDesc, force: bool) -> Later<'s, ()> {
        Box::pin(async move {
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
        })
    }

    fn pause<'s>(&'s mut self, millis: u64) -> Later<'s, ()> {
        Box::pin(async move {
            self.environment.host.sleep(millis).await;
            self.wait(Wait::yield_now()).await
        })
    }

    fn reopen_database(&self, database: Oid) {
        self.shared.monitor.give_up_drop(database);
    }

    fn refuse_in_block(&self, what: &str) -> Result<()> {
        self.check_no_block(what)
    }

    fn text_of_value(&self, value: &Datum, ty: Oid) -> String {
        let eval = StatementContext::new(&self.environment, self.catalog());
        let mut text = Vec::new();
        match sql_functions::write_text(&eval, value, ty, &mut text) {
            Ok(()) => types::written(text),
            Err(_) => String::new(),
        }
    }

    fn parse_value(&self, ty: Ty, text: &str) -> Result<Datum> {
        Session::parse_value(self, ty, text)
    }

    fn bind_with(&mut self, run: &mut dyn FnMut(&mut BindContext<'_>)) {
        self.with_binder(run);
    }

    fn who(&self) -> Who {
        Session::who(self)
    }

    fn is_superuser(&self) -> bool {
        Session::is_superuser(self)
    }

    fn forget_rights(&self) {
        Session::forget_rights(self);
    }

    fn begin_restricted(&mut self, role: Oid) {
        Session::begin_restricted(self, role);
    }

    fn end_restricted(&mut self) {
        Session::end_restricted(self);
    }

    fn check_not_in_use(&self, table: Oid, name: &str, command: &str) -> Result<()> {
        Session::check_not_in_use(self, table, name, command)
    }

    fn arguments(&self) -> Arguments {
        Session::arguments(self)
    }

    fn executed_source(&mut self, execute: &ExecuteStmt, sql: &str) -> Result<Source> {
        Session::executed_source(self, execute, sql)
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
