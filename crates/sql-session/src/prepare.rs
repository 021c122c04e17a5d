//! From text to a statement that can run: the statement cache, binding and planning, prepared statements by name.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use base::watch::{self, Phase};
use base::{Error, Oid, Result, SqlState, work};
use engine_api::RowLockMode;
use rupg_sql::nodes::Node;
use sql_bind::{self as bind, BindContext};
use sql_functions::PreparedStatement;
use sql_ir as ir;
use sql_parse as parse;
use sql_plan as plan;
use types::{Datum, InputContext, room};

use super::context::StatementContext;
use super::statement::{Query, Statement, StatementBody, Verb, is_query};
use super::{Arguments, Session, arguments, cache, changes, utility};

/// What the prepared statements of one session may take, counted as the statement cache counts.
const STATEMENT_BYTES_MAX: usize = 256 << 20;

/// What a statement is planned for.
#[derive(Clone, Copy, Default)]
struct Purpose<'a> {
    /// A cursor's query.
    cursor: bool,
    /// EXPLAIN.
    explains: bool,
    /// EXPLAIN (VERBOSE).
    verbose: bool,
    /// Values that its parameters have this time.
    values: Option<&'a [Datum]>,
    /// The literals that its parameters are this time.
    literals: Option<&'a parse::fingerprint::Fingerprint>,
    /// It has been bound before, if for another role: the schemas of its names need not be open to this one.
    names_known: bool,
}

impl Session {
    /// A statement that was bound before, for this text or for one that differs only in literals.
    pub(super) fn cached_simple(&mut self, sql: &str) -> Result<Option<(Arc<Statement>, Vec<Datum>)>> {
        if self.has_own_ddl() || !self.shared.cache.may_have(sql) {
            return Ok(None);
        }
        let catalog = self.catalog();
        self.refresh_binding(&catalog);
        let Some(binding) = &self.binding else { return Ok(None) };
        let shared = &self.shared;
        let get = |text: &str, types: &[Oid]| {
            let statement = shared.cache.get(text, types, &binding.key, binding.hash, &catalog, &shared.changes)?;
            (!statement.is_outdated(shared.statistics())).then_some(statement)
        };
        // What another session prepared may have parameters; here nothing gives them values.
        if let Some(statement) = get(sql, &[]).filter(|statement| statement.param_types.is_empty()) {
            return Ok(Some((statement, Vec::new())));
        }
        let Some(print) = parse::fingerprint::fingerprint(sql) else { return Ok(None) };
        let types = print.literal_types();
        let statement = match get(&print.text, &types) {
            Some(statement) => statement,
            None => match self.prepare_fingerprint(&print, &types) {
                Some(statement) => statement,
                None => return Ok(None),
            },
        };
        let settings = self.output_settings();
        let input = InputContext { settings: &settings, now_micros: self.environment.transaction_start.get() };
        // A literal that does not fit its parameter is reported by binding the text itself, with its position.
        match print.values(&statement.param_types, &input) {
            Ok(params) => Ok(Some((statement, params))),
            Err(_) => Ok(None),
        }
    }

    /// Binds a fingerprint as if it were a statement with parameters; `None` if only the original text will do.
    fn prepare_fingerprint(
        &mut self,
        print: &parse::fingerprint::Fingerprint,
        types: &[Oid],
    ) -> Option<Arc<Statement>> {
        let (mut parsed, notices) = parse::parse_with_notices(&print.text).ok()?;
        if parsed.len() != 1 || !notices.is_empty() || !is_query(&parsed[0].node) {
            return None;
        }
        let parsed = parsed.remove(0);
        let statement = self.prepare_for(parsed, &print.text, types, true, false, Some(print)).ok()?;
        if self.has_conditional_index(&statement) {
            return None;
        }
        // What a domain demands of the elements of a literal is tested as it is read, and told with its place.
        if types::user::any_domains() && statement.param_types.iter().any(|&ty| types::user::plain_type(ty, -1).0 != ty)
        {
            return None;
        }
        self.share(&statement, types);
        Some(statement)
    }

    /// Whether a table of the statement has a partial index whose condition is about constants: then the statement's own
    /// decide whether the index is of use.
    fn has_conditional_index(&self, statement: &Statement) -> bool {
        let StatementBody::Query(query) = &statement.kind else { return false };
        if query.locks.is_empty() {
            return false;
        }
        let catalog = self.catalog();
        query
            .locks
            .iter()
            .flat_map(|(table, _)| catalog.indexes(*table))
            .any(|index| index.predicate.as_ref().is_some_and(engine_api::Expression::may_have_constants))
    }

    /// Gives a statement to the cache.
    fn share(&self, statement: &Arc<Statement>, types: &[Oid]) {
        if let (Some(binding), false) = (&self.binding, self.has_own_ddl()) {
            let text = Arc::clone(&statement.text);
            let catalog = self.catalog();
            let changes = &self.shared.changes;
            self.shared.cache.put(text, types, &binding.key, binding.hash, Arc::clone(statement), (&catalog, changes));
        }
    }

    /// Binds and plans one parsed statement; shared with all sessions when `cacheable`.
    pub(super) fn prepare_parsed(
        &mut self,
        parsed: parse::ParsedStatement,
        sql: &str,
        types: &[Oid],
        infer_params: bool,
        cacheable: bool,
    ) -> Result<Arc<Statement>> {
        self.prepare_for(parsed, sql, types, infer_params, cacheable, None)
    }

    /// The same, for literals that the parameters are this time.
    fn prepare_for(
        &mut self,
        parsed: parse::ParsedStatement,
        sql: &str,
        types: &[Oid],
        infer_params: bool,
        cacheable: bool,
        literals: Option<&parse::fingerprint::Fingerprint>,
    ) -> Result<Arc<Statement>> {
        let catalog = self.catalog();
        self.refresh_binding(&catalog);
        let notices = self.environment.notices.borrow().len();
        let statement = Arc::new(if is_query(&parsed.node) {
            self.check_not_failed()?;
            let purpose = Purpose { literals, ..Purpose::default() };
            let bound = self.bind_for(&parsed.node, sql, types, parsed.start, infer_params, purpose);
            parse::discard(parsed);
            bound?
        } else {
            let mut statement = Statement {
                text: self.text_of(sql),
                start: parsed.start,
                param_types: Vec::new(),
                kind: StatementBody::Utility(Arc::new(parsed.node)),
                catalog_version: catalog.version.into(),
                own: None,
                binding: 0,
                bound_with: None,
            };
            if !utility::ends_block(&statement.kind) {
                self.check_not_failed()?;
            }
            if let StatementBody::Utility(node) = &statement.kind {
                statement.param_types = arguments::check_described(self, node, sql, types, infer_params)?;
            }
            statement
        });
        // Types of parameters depend on definitions, which are looked at again for queries only.
        let short =
            matches!(statement.kind, StatementBody::Query(_)) || (sql.len() <= 64 && statement.param_types.is_empty());
        // What binding has to say is said each time.
        let silent = self.environment.notices.borrow().len() == notices;
        if cacheable && short && silent {
            self.share(&statement, types);
        }
        Ok(statement)
    }

    /// Binds and plans a query that begins at `start` of its text. More parameters than those of `types` may occur if
    /// `infer_params`.
    pub(super) fn bind_query(
        &mut self,
        node: &Node,
        sql: &str,
        types: &[Oid],
        start: usize,
        infer_params: bool,
    ) -> Result<Statement> {
        // What runs in another's name has had its names looked up.
        let names_known = self.environment.acting.get().is_some();
        self.bind_for(node, sql, types, start, infer_params, Purpose { names_known, ..Purpose::default() })
    }

    /// Binds and plans the query inside of the statement that runs and is none itself: where it begins is known, so that it can be
    /// bound again.
    pub(super) fn bind_inside(
        &mut self,
        node: &Node,
        sql: &str,
        types: &[Oid],
        infer_params: bool,
    ) -> Result<Statement> {
        self.bind_query(node, sql, types, self.statement_at, infer_params)
    }

    /// Binds and plans the query of a cursor ([`sql_plan::plan_cursor`]).
    pub(super) fn bind_cursor(
        &mut self,
        node: &Node,
        sql: &str,
        arguments: &Arguments,
        infer_params: bool,
    ) -> Result<Statement> {
        let purpose = Purpose { cursor: true, values: Some(&arguments.values), ..Purpose::default() };
        self.bind_for(node, sql, &arguments.types, self.statement_at, infer_params, purpose)
    }

    /// Binds and plans a query to be shown.
    pub(super) fn bind_explained(
        &mut self,
        node: &Node,
        sql: &str,
        arguments: &Arguments,
        verbose: bool,
    ) -> Result<Statement> {
        let purpose = Purpose { explains: true, verbose, values: Some(&arguments.values), ..Purpose::default() };
        self.bind_for(node, sql, &arguments.types, self.statement_at, false, purpose)
    }

    /// Binds and plans a prepared statement to be shown.
    pub(super) fn bind_prepared(
        &mut self,
        statement: &Statement,
        params: &[Datum],
        verbose: bool,
    ) -> Result<Statement> {
        self.bind_again(statement, Purpose { explains: true, verbose, values: Some(params), ..Purpose::default() })
    }

    /// The plan of a statement for values of its parameters.
    pub(super) fn plan_for_values(&mut self, statement: &Statement, params: &[Datum]) -> Result<Arc<plan::Plan>> {
        let StatementBody::Query(query) = &statement.kind else { return Err(Error::internal("a plan of no query")) };
        if let Some(plan) = query.plan_for(params) {
            return Ok(plan);
        }
        let purpose = Purpose { values: Some(params), names_known: true, ..Purpose::default() };
        let fresh = self.bind_again(statement, purpose)?;
        let StatementBody::Query(fresh) = fresh.kind else { return Err(Error::internal("a plan of no query")) };
        if fresh.depends != query.depends || !fresh.plan.suits(params) {
            return Ok(Arc::clone(&query.plan));
        }
        query.keep_for_values(Arc::clone(&fresh.plan));
        Ok(fresh.plan)
    }

    /// Plans a statement that is bound already.
    pub(super) fn plan_own(
        &self,
        statement: &ir::Statement,
        catalog: &Arc<engine_api::Catalog>,
    ) -> Result<Arc<plan::Plan>> {
        let eval = StatementContext::new(&self.environment, Arc::clone(catalog));
        let stats = EngineStats { engine: &*self.shared.engine, statistics: self.shared.statistics() };
        let circumstances = plan::Circumstances {
            hints: &[],
            eval: Some(&eval),
            explains: false,
            verbose: false,
            methods: self.environment.settings.borrow().methods,
        };
        plan::plan(statement, catalog, &stats, circumstances)
    }

    fn bind_for(
        &mut self,
        node: &Node,
        sql: &str,
        types: &[Oid],
        start: usize,
        infer_params: bool,
        purpose: Purpose<'_>,
    ) -> Result<Statement> {
        watch::does(Phase::Plan);
        work::caught(|| self.bind_stopped(node, sql, types, start, infer_params, purpose))
    }

    /// As [`Session::bind_for`], which may be unwound when the statement is stopped.
    fn bind_stopped(
        &mut self,
        node: &Node,
        sql: &str,
        types: &[Oid],
        start: usize,
        infer_params: bool,
        purpose: Purpose<'_>,
    ) -> Result<Statement> {
        let catalog = self.catalog();
        if !self.has_own_ddl() {
            self.shared.changes.look(&catalog);
        }
        let identity = self.environment.identity.borrow().clone();
        let identity_role = identity.role;
        let eval = StatementContext::new(&self.environment, Arc::clone(&catalog));
        let mut cx = BindContext::new(Arc::clone(&catalog), identity, &eval, types);
        cx.infer_params = infer_params;
        cx.names_known = purpose.names_known;
        let before = work::total();
        let bound = bind::bind(node, sql, &mut cx)?;
        if purpose.literals.is_some() && plan::computes_parameters(&bound.statement) {
            return Err(Error::internal("literals that are computed of"));
        }
        let verb = match &bound.statement {
            ir::Statement::Select(_) => Verb::Select,
            ir::Statement::Insert(_) => Verb::Insert,
            ir::Statement::Update(_) => Verb::Update,
            ir::Statement::Delete(_) => Verb::Delete,
            ir::Statement::Merge(_) => Verb::Merge,
        };
        let writes = verb != Verb::Select
            || matches!(&bound.statement, ir::Statement::Select(query)
                if !query.locking.is_empty() || query.ctes.iter().any(|cte| cte.modifies));
        let lock_words = match &bound.statement {
            ir::Statement::Select(query) => query.locking.first().map(|lock| lock_words(lock.mode)),
            _ => None,
        };
        let planned_at = self.shared.statistics().version();
        let stats = EngineStats { engine: &*self.shared.engine, statistics: self.shared.statistics() };
        // What the parameters are this time is what they are likely to be.
        let settings = self.output_settings();
        let input = InputContext { settings: &settings, now_micros: self.environment.transaction_start.get() };
        let hints = purpose.literals.and_then(|print| print.values(&bound.param_types, &input).ok());
        let circumstances = plan::Circumstances {
            hints: purpose.values.or(hints.as_deref()).unwrap_or_default(),
            eval: Some(&eval),
            explains: purpose.explains,
            verbose: purpose.verbose,
            methods: self.environment.settings.borrow().methods,
        };
        let plan = match &bound.statement {
            ir::Statement::Select(query) if purpose.cursor => {
                plan::plan_cursor(query, &catalog, &stats, circumstances)?
            }
            statement => plan::plan(statement, &catalog, &stats, circumstances)?,
        };
        work::discard_made(bound.statement, before);
        let refused = bound.refused;
        let sequences = cx.sequences();
        Ok(Statement {
            text: self.text_of(sql),
            start,
            param_types: bound.param_types,
            kind: StatementBody::Query(Query {
                plan,
                columns: bound.columns.into(),
                depends: changes::dependencies(bound.tables.iter().map(|(table, _)| *table), writes, &catalog),
                locks: bound.tables,
                sequences,
                verb,
                writes,
                role: identity_role,
                by_values: parking_lot::Mutex::default(),
                figures: std::sync::OnceLock::new(),
                lock_words,
                refused,
                planned_at: AtomicU64::new(planned_at),
            }),
            // What was bound to definitions that may be rolled back is good for one run.
            catalog_version: if self.has_own_ddl() { u64::MAX } else { catalog.version }.into(),
            own: self.has_own_ddl().then_some(catalog),
            binding: self.binding.as_ref().map_or(0, |binding| binding.hash),
            bound_with: self.binding.as_ref().map(|binding| Arc::clone(&binding.key)),
        })
    }

    /// The statement bound to the definitions of now. Its names are looked up again, and what that asks of the role with them, if
    /// definitions have changed that they may mean, or the schemas on the search path that the role may use.
    pub(super) fn rebound(&mut self, statement: &Statement) -> Result<Arc<Statement>> {
        let (catalog, committed) = (self.catalog(), self.shared.engine.catalog());
        self.refresh_binding(&catalog);
        let same_path = matches!(
            (&self.binding, &statement.bound_with),
            (Some(now), Some(before)) if now.key.search_path == before.search_path
        );
        let names_known = same_path && statement.names_stand(&catalog, &committed, &self.shared.changes);
        let fresh = self.bind_again(statement, Purpose { names_known, ..Purpose::default() })?;
        statement.check_result_of(&fresh)?;
        Ok(Arc::new(fresh))
    }

    fn bind_again(&mut self, statement: &Statement, purpose: Purpose<'_>) -> Result<Statement> {
        let catalog = self.catalog();
        self.refresh_binding(&catalog);
        let parsed = parse::parse(&statement.text)?;
        let node = parsed.into_iter().find(|p| p.start == statement.start).map(|p| p.node);
        let for_cursor = matches!(node, Some(Node::DeclareCursorStmt(_)));
        let node = match node {
            Some(Node::PrepareStmt(prepare)) => prepare.query,
            Some(Node::CopyStmt(copy)) => copy.query,
            Some(Node::ExplainStmt(explain)) => explain.query,
            Some(Node::DeclareCursorStmt(declare)) => declare.query,
            node => node,
        };
        let node = node.ok_or_else(|| Error::internal("a statement that is not in its text"))?;
        let (text, types) = (&statement.text, &statement.param_types);
        let purpose = Purpose { cursor: for_cursor, ..purpose };
        self.bind_for(&node, text, types, statement.start, !for_cursor, purpose)
    }

    /// A statement of the extended protocol or PREPARE, from the cache if it is there.
    pub(super) fn prepare(&mut self, sql: &str, types: &[Oid]) -> Result<Arc<Statement>> {
        self.environment.statement_start.set(self.environment.host.now());
        let catalog = self.catalog();
        self.refresh_binding(&catalog);
        if let (Some(binding), false) = (&self.binding, self.has_own_ddl()) {
            let cache = &self.shared.cache;
            if let Some(statement) = cache.get(sql, types, &binding.key, binding.hash, &catalog, &self.shared.changes)
                && !statement.is_outdated(self.shared.statistics())
            {
                if !utility::ends_block(&statement.kind) {
                    self.check_not_failed()?;
                }
                return Ok(statement);
            }
        }
        let (mut parsed, notices) = parse::parse_with_notices(sql)?;
        let silent = notices.is_empty();
        self.environment.notices.borrow_mut().extend(notices);
        match parsed.len() {
            0 => Ok(Arc::new(Statement {
                text: sql.into(),
                start: 0,
                param_types: types.to_vec(),
                kind: StatementBody::Empty,
                catalog_version: catalog.version.into(),
                own: None,
                binding: 0,
                bound_with: None,
            })),
            1 => self.prepare_parsed(parsed.remove(0), sql, types, true, silent),
            _ => Err(Error::new(SqlState::SYNTAX_ERROR, "cannot insert multiple commands into a prepared statement")),
        }
    }

    /// A prepared statement by name.
    pub(super) fn statement(&self, name: &str) -> Result<Arc<Statement>> {
        self.statements.get(name).cloned().ok_or_else(|| {
            let message = match name {
                "" => "unnamed prepared statement does not exist".to_string(),
                name => format!("prepared statement \"{name}\" does not exist"),
            };
            Error::new(SqlState::INVALID_SQL_STATEMENT_NAME, message)
        })
    }

    /// Whether a prepared statement may run without being bound or planned again.
    pub(super) fn is_good(&mut self, statement: &Statement) -> bool {
        if !matches!(statement.kind, StatementBody::Query(_)) {
            return true;
        }
        let settings_version = self.environment.settings.borrow().binding_version;
        let is_bound_so = |binding: &super::Binding| {
            binding.settings_version == settings_version && binding.hash == statement.binding && !binding.of_own
        };
        if !self.binding.as_ref().is_some_and(is_bound_so)
            || !statement.is_for(self.who().role)
            || statement.is_outdated(self.shared.statistics())
            || self.has_own_ddl()
        {
            return false;
        }
        let version = self.shared.engine.catalog_version();
        if statement.is_valid_for(version) {
            if self.types_version.get() != version {
                let _catalog = self.catalog();
            }
            return true;
        }
        // A new schema may be on the search path now.
        let catalog = self.catalog();
        self.refresh_binding(&catalog);
        self.binding.as_ref().is_some_and(|binding| binding.hash == statement.binding)
            && statement.is_good_for(&catalog, &self.shared.changes)
    }

    /// The statement of that name, bound again, for the catalog has moved on.
    pub(super) fn bound_anew(&mut self, name: &str, statement: Arc<Statement>) -> Result<Arc<Statement>> {
        let fresh = self.prepare(&Arc::clone(&statement.text), &statement.param_types)?;
        statement.check_result_of(&fresh)?;
        self.keep_statement(name, Arc::clone(&fresh))?;
        Ok(fresh)
    }

    /// Keeps a prepared statement under a name.
    ///
    /// # Errors
    /// 53200 if the session keeps too much already.
    pub(super) fn keep_statement(&mut self, name: &str, statement: Arc<Statement>) -> Result<()> {
        let bytes = cache::cost(&statement.text);
        let before = self.statements.get(name).map_or(0, |old| cache::cost(&old.text));
        if self.statement_bytes + bytes > STATEMENT_BYTES_MAX + before {
            return Err(Error::new(SqlState::OUT_OF_MEMORY, "out of memory")
                .detail(format!(
                    "The prepared statements of a session can have at most {} MB.",
                    STATEMENT_BYTES_MAX >> 20
                ))
                .hint("Deallocate prepared statements that are not needed."));
        }
        room::ask(bytes.max(room::LARGE))?;
        self.statement_bytes = self.statement_bytes + bytes - before;
        self.statements.insert(name.to_string(), statement);
        Ok(())
    }

    /// Shows a new statement in `pg_prepared_statements`.
    pub(super) fn note_prepared(&self, name: &str, statement: &Statement, from_sql: bool) {
        self.environment.prepared.borrow_mut().push(PreparedStatement {
            name: name.to_string(),
            text: Arc::clone(&statement.text),
            time: self.environment.statement_start.get(),
            param_types: statement.param_types.clone(),
            from_sql,
        });
    }

    /// Forgets a prepared statement, or all.
    pub(super) fn forget_prepared(&mut self, name: Option<&str>) {
        match name {
            Some(name) => {
                let Some(old) = self.statements.remove(name) else { return };
                self.statement_bytes -= cache::cost(&old.text);
                if !name.is_empty() {
                    self.environment.prepared.borrow_mut().retain(|p| p.name != name);
                }
            }
            None => {
                self.statements.clear();
                self.statement_bytes = 0;
                self.environment.prepared.borrow_mut().clear();
            }
        }
    }
}

/// What the planner asks about tables.
struct EngineStats<'a> {
    engine: &'a dyn engine_api::Engine,
    statistics: &'a sql_functions::statistics::Statistics,
}

impl plan::PlannerStats for EngineStats<'_> {
    fn row_count(&self, table: Oid) -> u64 {
        self.engine.row_count(table)
    }

    fn bytes(&self, table: Oid) -> u64 {
        self.engine.relation_bytes(table).unwrap_or(0)
    }

    fn table(&self, table: Oid) -> Option<Arc<sql_functions::statistics::TableStatistics>> {
        self.statistics.table(table)
    }
}

/// The command's name in errors.
fn lock_words(mode: RowLockMode) -> &'static str {
    match mode {
        RowLockMode::KeyShare => "SELECT FOR KEY SHARE",
        RowLockMode::Share => "SELECT FOR SHARE",
        RowLockMode::NoKeyUpdate => "SELECT FOR NO KEY UPDATE",
        RowLockMode::Update => "SELECT FOR UPDATE",
    }
}
