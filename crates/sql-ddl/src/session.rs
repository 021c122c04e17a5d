//! The session as a definition sees it.
//!
//! Responsible for: what definitions need of the session that runs them ([`Session`]), and binding what they store.
//! Not responsible for: how a session does it.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use base::{Error, Notice, Oid, Result, work};
use engine_api::{Catalog, CatalogObject, Engine, Expression, TableDesc, Txn, Wait};
use rupg_sql::nodes::{ExecuteStmt, Node};
use sql_bind::{self as bind, BindContext, BoundStatement, stored};
use sql_catalog::deparse;
use sql_exec::RowSink;
use sql_functions::{CastContext, Identity};
use sql_ir::{Expr, Ty};
use sql_parse::privileges::Who;
use types::{Datum, OutputSettings};

/// What comes when the session has done, or has waited for, something.
pub type Later<'s, T> = Pin<Box<dyn Future<Output = Result<T>> + 's>>;

/// What the parameters of the statement that runs are.
#[derive(Clone, Debug, Default)]
pub struct Arguments {
    /// Types, by their numbers less one.
    pub types: Vec<Oid>,
    /// Values, the same.
    pub values: Vec<Datum>,
}

/// The query of a statement that makes a relation of one.
pub struct Source {
    /// Its parse tree.
    pub node: Node,
    /// The text that positions in it count in.
    pub text: Arc<str>,
    /// Its parameters.
    pub arguments: Arguments,
    /// Whether EXECUTE names it.
    pub executed: bool,
}

/// The session that runs a definition, in its open transaction.
pub trait Session {
    /// The open transaction. REQUIRES one.
    fn transaction(&mut self) -> &mut dyn Txn;

    /// The catalog as the open transaction sees it.
    fn catalog(&self) -> Arc<Catalog>;

    /// The engine.
    fn engine(&self) -> &dyn Engine;

    /// The value of a SET, checked.
    fn checked_setting(&self, name: &str, args: &rupg_sql::nodes::List) -> Result<String>;

    /// Whether the current role may take away what other sessions begin with.
    ///
    /// # Errors
    /// 42501
    fn may_change_setting(&self, name: &str) -> Result<()>;

    /// Whether a setting that ALTER SYSTEM may say is one that only the server's own options say here.
    ///
    /// # Errors
    /// 42704 if there is no such setting, 55P02 if it may not.
    fn check_for_system(&self, name: &str) -> Result<bool>;

    /// The value that a setting has now.
    ///
    /// # Errors
    /// 42704 if there is no such setting.
    fn current_setting(&self, name: &str) -> Result<String>;

    /// Sets the search path for the rest of the transaction.
    fn set_search_path(&mut self, value: &str) -> Result<()>;

    /// The name of a setting as PostgreSQL spells it.
    fn setting_name(&self, name: &str) -> String;

    /// Forgets, if the transaction commits, what is known of the values of a column (attribute number).
    fn forget_statistics(&mut self, table: Oid, column: i16);

    /// Who and where.
    fn identity(&self) -> Identity;

    /// Queues a notice.
    fn push_notice(&self, notice: Notice);

    /// The name that the session's own schema has, or will have.
    fn temporary_schema_name(&self) -> String;

    /// Whether the session may have made temporary relations.
    fn may_have_temporary(&self) -> bool;

    /// The session is about to make a temporary relation.
    fn note_temporary(&self);

    /// The session is about to make a table that a commit changes.
    fn note_on_commit(&self);

    /// How many notices are queued.
    fn notices(&self) -> usize;

    /// Drops the notices beyond so many.
    fn forget_notices_after(&self, count: usize);

    /// Drops notices that were queued and not sent.
    fn forget_notices(&self);

    /// The schemas of the search path that exist, as name resolution sees them.
    fn search_path(&mut self, catalog: &Catalog) -> Vec<Oid>;

    /// Waits inside the transaction of a DDL statement.
    fn wait_in_transaction<'s>(&'s mut self, wait: Wait) -> Later<'s, ()>;

    /// A SCRAM verifier for a password, or the verifier itself if one is given.
    fn password_verifier(&self, password: &str) -> Result<String>;

    /// Binds a statement of the definition's own and runs it in the same transaction, its rows into `sink`: anew if definitions have
    /// changed while its locks were waited for. Answers how many rows came, or were changed.
    fn run_bound<'s>(
        &'s mut self,
        bind: &'s mut dyn FnMut(&mut BindContext<'_>) -> Result<BoundStatement>,
        sink: &'s mut dyn RowSink,
    ) -> Later<'s, u64>;

    /// The result columns of a query.
    fn query_columns(
        &mut self,
        node: &rupg_sql::nodes::Node,
        sql: &str,
        arguments: &Arguments,
        runs: bool,
    ) -> Result<Vec<bind::ResultColumn>>;

    /// Runs a statement of our own in the open transaction. Answers the rows it changed.
    fn run_internal<'s>(
        &'s mut self,
        node: &'s rupg_sql::nodes::Node,
        sql: &'s str,
        arguments: Arguments,
    ) -> Later<'s, u64>;

    /// Closes a database that is to be dropped to new sessions; those in it have five seconds to end, as on PostgreSQL, or are
    /// ended if it is forced.
    ///
    /// # Errors
    /// 55006
    fn close_database<'s>(&'s mut self, database: &'s engine_api::DatabaseDesc, force: bool) -> Later<'s, ()>;

    /// Waits for so many milliseconds.
    ///
    /// # Errors
    /// 57014 and the like if the statement is stopped.
    fn pause<'s>(&'s mut self, millis: u64) -> Later<'s, ()>;

    /// A database that was closed is open again.
    fn reopen_database(&self, database: Oid);

    /// Refuses a statement inside of a transaction block.
    fn refuse_in_block(&self, what: &str) -> Result<()>;

    /// The text form of a value; nothing of one that has none.
    fn text_of_value(&self, value: &Datum, ty: Oid) -> String;

    /// Parses a value in the text form of a type, with the session's settings.
    fn parse_value(&self, ty: Ty, text: &str) -> Result<Datum>;

    /// Calls something with what binding in this transaction depends on.
    fn bind_with(&mut self, run: &mut dyn FnMut(&mut BindContext<'_>));

    /// Whose rights count.
    fn who(&self) -> Who;

    /// Whether the current role bypasses checks.
    fn is_superuser(&self) -> bool;

    /// Whoever may use which sequence is to be looked up anew: the transaction changes definitions, which the catalog's version does not
    /// tell.
    fn forget_rights(&self);

    /// Begins a security-restricted operation in a role's name: what runs until [`Session::end_restricted`] has its rights and no
    /// others, cannot become anybody else, and leaves settings as they were. They do not nest.
    fn begin_restricted(&mut self, role: Oid);

    /// The operation is over, whatever came of it.
    fn end_restricted(&mut self);

    /// Refuses a definition of a table that an open portal still reads.
    ///
    /// # Errors
    /// 55006
    fn check_not_in_use(&self, table: Oid, name: &str, command: &str) -> Result<()>;

    /// What the parameters of the statement that runs are.
    fn arguments(&self) -> Arguments;

    /// The query that EXECUTE stands for where a relation is made of its rows.
    ///
    /// # Errors
    /// 26000 if there is no such statement, 42809 if it is no SELECT; those of its arguments.
    fn executed_source(&mut self, execute: &ExecuteStmt, sql: &str) -> Result<Source>;
}

impl dyn Session + '_ {
    fn with_binder<T>(&mut self, run: impl FnOnce(&mut BindContext<'_>) -> Result<T>) -> Result<T> {
        let (mut run, mut answer) = (Some(run), None);
        self.bind_with(&mut |cx| answer = run.take().map(|run| run(cx)));
        answer.unwrap_or_else(|| Err(Error::internal("nothing was bound")))
    }

    /// Binds the query of a view that is being defined.
    pub fn bind_view(&mut self, node: &rupg_sql::nodes::Node, sql: &str) -> Result<bind::BoundView> {
        self.with_binder(|cx| bind::bind_view(node, sql, cx))
    }

    /// Binds a query that is not run ([`sql_bind::bind_unrun`]). `infer`: its parameters get types.
    pub fn bind_unrun(
        &mut self,
        node: &rupg_sql::nodes::Node,
        sql: &str,
        types: &[Oid],
        infer: bool,
    ) -> Result<bind::Unrun> {
        work::caught(|| {
            self.with_binder(|cx| {
                (cx.param_types, cx.infer_params) = (types.to_vec(), infer);
                bind::bind_unrun(node, sql, cx)
            })
        })
    }

    /// The columns of its table behind those of a simple view that is not in the catalog yet.
    pub fn through_view(&mut self, view: &TableDesc, verb: &str) -> Result<Vec<Option<usize>>> {
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

    /// Puts references in the place of names in all that an object says.
    ///
    /// # Errors
    /// Those of binding an expression; 0A000 for one that cannot be kept.
    pub(crate) fn keep_references(&mut self, object: &mut CatalogObject) -> Result<()> {
        self.with_binder(|cx| stored::keep(object, cx))
    }

    /// Binds those expressions of an object that speak of whole rows, whose fields have the names of columns.
    ///
    /// # Errors
    /// Those of binding.
    pub fn check_row_fields(&mut self, object: &CatalogObject) -> Result<()> {
        self.with_binder(|cx| stored::check_row_fields(object, cx))
    }

    /// A column's default as it is shown: with the type that it has today.
    pub fn shown_default(&mut self, expression: &Expression, ty: Ty) -> Result<Expression> {
        self.with_binder(|cx| Ok(deparse::default_text(expression, ty, false, cx.eval).into()))
    }

    /// A CHECK condition of a table as it is shown: with the types that its parts have today.
    pub fn shown_condition(&mut self, expression: &Expression, table: &TableDesc) -> Result<Expression> {
        self.with_binder(|cx| Ok(deparse::check_text(expression, table, false, cx.eval).into()))
    }

    /// As `shown_condition`, an expression or the condition of an index.
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
    pub fn domain_default(&mut self, ty: Oid) -> Result<Option<Expression>> {
        self.with_binder(|cx| Ok(bind::domain_default(ty, cx)))
    }

    /// Binds a CHECK condition over a table. Answers the columns it is about.
    pub fn check_condition(&mut self, text: &Expression, table: &TableDesc) -> Result<Vec<i16>> {
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
            bind::computed_constants(&expr, cx).map(drop)
        })
    }

    /// Whether a foreign key of one type can point at a key of another: the key's index compares values of the two, or the one
    /// becomes the other by itself.
    pub fn comparable(&self, foreign: Oid, key: Oid) -> bool {
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
    pub fn default_type(&mut self, default: &Expression) -> Result<Option<Oid>> {
        self.with_binder(|cx| bind::default_type(default, cx))
    }

    /// The name of a type as the session would write it.
    pub fn shown_type(&mut self, ty: Oid, typmod: i32) -> String {
        let shown = self.with_binder(|cx| Ok(sql_bind::shown_type(cx.eval, ty, typmod)));
        shown.unwrap_or_else(|_| types::format_type(ty, typmod))
    }

    /// Whether a default is NULL cast to a type.
    pub(crate) fn is_null_of(&mut self, default: &Expression, ty: Oid) -> bool {
        bind::is_null_cast(&stored::text(default, &self.catalog(), None))
            && self.default_type(default).is_ok_and(|own| own == Some(ty))
    }

    /// Whether a value of one type can be assigned to a column of another.
    pub(crate) fn assignable(&self, from: Oid, to: Oid) -> bool {
        bind::can_cast(from, to, CastContext::Assignment)
    }
}
