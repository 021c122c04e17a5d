//! A statement after parsing and, for queries, binding and planning: what caches, prepared statements and portals share.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use base::{Error, Oid, Result};
use engine_api::{Catalog, Engine, TableLockMode};
use parking_lot::Mutex;
use rupg_sql::nodes::Node;
use sql_bind::ResultColumn;
use sql_functions::statistics::Statistics;
use sql_parse::monitor::statements::Figures;
use sql_plan::Plan;
use types::Datum;

use super::cache::BindingKey;
use super::changes::{self, Changes};

/// A statement ready to run, shared between sessions.
pub struct Statement {
    /// Its text, for error positions and as the prepared statement's definition.
    pub text: Arc<str>,
    /// Where it begins in the text, in bytes.
    pub start: usize,
    /// Parameter types.
    pub param_types: Vec<Oid>,
    /// What it is.
    pub kind: StatementBody,
    /// The newest catalog version that it is known to be good for. Relaxed: it only rises, and what was found good stays so.
    pub catalog_version: AtomicU64,
    /// The catalog it was bound to, if that was its transaction's own.
    pub own: Option<Arc<Catalog>>,
    /// What else it was bound to ([`super::cache::BindingKey::hash64`]); 0 if nothing.
    pub binding: u64,
    /// What its names were looked up with; `None` of a statement that is no query.
    pub bound_with: Option<Arc<BindingKey>>,
}

/// Kinds of statements by how they run.
pub enum StatementBody {
    /// No statement at all.
    Empty,
    /// A planned query.
    Query(Query),
    /// Anything else: run from its parse tree.
    Utility(Arc<Node>),
}

/// A planned query.
pub struct Query {
    /// The plan.
    pub plan: Arc<Plan>,
    /// Plans for values of the parameters that the plan does not suit, each for what it assumes of them.
    pub by_values: Mutex<Vec<Arc<Plan>>>,
    /// Result columns; empty for a statement that returns no rows.
    pub columns: Arc<[ResultColumn]>,
    /// Tables it uses and how they are locked.
    pub locks: Vec<(Oid, TableLockMode)>,
    /// Sequences that it draws from.
    pub sequences: Vec<Oid>,
    /// Tables whose definitions matter to it, in order.
    pub depends: Box<[Oid]>,
    /// First word of the completion tag.
    pub verb: Verb,
    /// Changes data or locks rows: refused in a read-only transaction.
    pub writes: bool,
    /// The role for which `refused` holds.
    pub role: Oid,
    /// How PostgreSQL calls a SELECT that locks rows.
    pub lock_words: Option<&'static str>,
    /// Where its runs are counted, once there is one.
    pub figures: OnceLock<Arc<Figures>>,
    /// The error of running it, if that is known.
    pub refused: Option<Error>,
    /// Version of the statistics that its plan is good for. Relaxed: what was planned before is slow at worst.
    pub planned_at: AtomicU64,
}

/// Plans for values of parameters that a statement keeps, at most.
const BY_VALUES_MAX: usize = 16;

impl Query {
    /// The plan for these values of the parameters, if one is there that suits them.
    pub(crate) fn plan_for(&self, params: &[Datum]) -> Option<Arc<Plan>> {
        if !self.plan.depends_on_values() || self.plan.suits(params) {
            return Some(Arc::clone(&self.plan));
        }
        self.by_values.lock().iter().find(|plan| plan.suits(params)).map(Arc::clone)
    }

    /// Keeps a plan for values. The one that was made first goes if there are many.
    pub(crate) fn keep_for_values(&self, plan: Arc<Plan>) {
        let mut plans = self.by_values.lock();
        if plans.len() == BY_VALUES_MAX {
            plans.remove(0);
        }
        plans.push(plan);
    }

    /// Whether it is a SELECT that changes rows, in its WITH clause.
    pub(crate) fn changes_in_with(&self) -> bool {
        self.verb == Verb::Select && self.locks.iter().any(|(_, mode)| *mode == TableLockMode::RowExclusive)
    }
}

/// Completion tags of queries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// SELECT n
    Select,
    /// INSERT 0 n
    Insert,
    /// UPDATE n
    Update,
    /// DELETE n
    Delete,
    /// MERGE n
    Merge,
}

impl Verb {
    /// The word.
    pub fn word(self) -> &'static str {
        match self {
            Verb::Select => "SELECT",
            Verb::Insert => "INSERT",
            Verb::Update => "UPDATE",
            Verb::Delete => "DELETE",
            Verb::Merge => "MERGE",
        }
    }

    /// The completion tag for `rows` rows.
    pub fn tag(self, rows: u64) -> String {
        format!("{} {rows}", self.tag_words())
    }

    /// What stands before the count in a completion tag.
    pub fn tag_words(self) -> &'static str {
        if self == Verb::Insert { "INSERT 0" } else { self.word() }
    }
}

impl Statement {
    /// Whether the statement may run under this catalog version without being bound again.
    pub(crate) fn is_valid_for(&self, catalog_version: u64) -> bool {
        !matches!(self.kind, StatementBody::Query(_)) || self.version() == catalog_version
    }

    /// The newest catalog version that it is known to be good for.
    pub fn version(&self) -> u64 {
        self.catalog_version.load(Ordering::Relaxed)
    }

    /// Whether it may run under a catalog without being bound again: nothing has changed that matters to it.
    pub(crate) fn is_good_for(&self, catalog: &Arc<Catalog>, changes: &Changes) -> bool {
        self.is_valid_for(catalog.version) || self.outlives(catalog, changes)
    }

    #[cold]
    fn outlives(&self, catalog: &Arc<Catalog>, changes: &Changes) -> bool {
        let (StatementBody::Query(query), since) = (&self.kind, self.version()) else { return true };
        let good = since != u64::MAX && changes.spare(query, &self.text, since, catalog);
        if good {
            self.catalog_version.fetch_max(catalog.version, Ordering::Relaxed);
        }
        good
    }

    /// Whether it was checked for this role.
    pub fn is_for(&self, role: Oid) -> bool {
        !matches!(&self.kind, StatementBody::Query(query) if query.role != role)
    }

    /// Whether its tables have been looked at since it was planned: then there may be a better plan.
    pub(crate) fn is_outdated(&self, statistics: &Statistics) -> bool {
        let StatementBody::Query(query) = &self.kind else { return false };
        let (newest, known) = (statistics.version(), query.planned_at.load(Ordering::Relaxed));
        if newest == known {
            return false;
        }
        let outdated = statistics.is_newer(query.locks.iter().map(|(table, _)| *table), known);
        if !outdated {
            query.planned_at.store(newest, Ordering::Relaxed);
        }
        outdated
    }

    /// Whether the definitions it was bound to are those of now.
    pub fn is_current(&self, engine: &dyn Engine, changes: &Changes) -> bool {
        self.version() == engine.catalog_version() || self.outlives(&engine.catalog(), changes)
    }

    /// Whether its names mean what they meant when it was bound, and need not be looked up again: in the session's catalog, which is
    /// the newest committed one or its transaction's own.
    pub(crate) fn names_stand(&self, catalog: &Arc<Catalog>, committed: &Arc<Catalog>, changes: &Changes) -> bool {
        let StatementBody::Query(query) = &self.kind else { return true };
        match &self.own {
            Some(own) => changes::names_stand(query, &self.text, own, catalog),
            None => {
                changes.spare_names(query, &self.text, self.version(), committed)
                    && changes::names_stand(query, &self.text, committed, catalog)
            }
        }
    }

    /// Whether this statement, bound again, may take its own place.
    ///
    /// # Errors
    /// 0A000 if its result is of another shape.
    pub(crate) fn check_result_of(&self, fresh: &Statement) -> Result<()> {
        let types = |s: &Statement| s.columns().map(|c| c.iter().map(|c| c.ty).collect::<Vec<_>>());
        match types(self) == types(fresh) {
            true => Ok(()),
            false => {
                Err(Error::unsupported("cached plan must not change result type").routine("RevalidateCachedQuery"))
            }
        }
    }

    /// Result columns, if it returns rows. Utilities that do are asked by name.
    pub fn columns(&self) -> Option<Arc<[ResultColumn]>> {
        match &self.kind {
            StatementBody::Query(query) if !query.columns.is_empty() || query.verb == Verb::Select => {
                Some(Arc::clone(&query.columns))
            }
            StatementBody::Utility(node) => super::utility::result_columns(node),
            _ => None,
        }
    }
}

/// Whether a parse tree is one that is bound and planned.
pub fn is_query(node: &Node) -> bool {
    if let Node::SelectStmt(select) = node {
        return !makes_table(select);
    }
    matches!(node, Node::InsertStmt(_) | Node::UpdateStmt(_) | Node::DeleteStmt(_) | Node::MergeStmt(_))
}

/// SELECT INTO: a definition.
fn makes_table(select: &rupg_sql::nodes::SelectStmt) -> bool {
    select.intoClause.is_some() || select.larg.as_deref().is_some_and(makes_table)
}
