//! The code that storage runs for indexes over expressions and for partial ones (rule R11).
//!
//! Responsible for: binding and compiling their texts, outside of any session; evaluating them over a row.
//! Not responsible for: entries and keys (`engine`), whether an index may be made (`sql-ddl`), using it (`sql-plan`).
//! Invariant: only immutable functions are called, so that a row has the same key today and after a restart.

use std::sync::Arc;

use base::{Error, Notice, Oid, Result};
use engine_api::{Catalog, CatalogObject, Expression, IndexCode, IndexCompiler, IndexDesc, Reference, TableDesc};
use sql_bind::{self as bind, BindContext};
use sql_functions::{EvalContext, Identity};
use sql_ir::expr::{Code, Plain, Resolve, Slot, compile};
use sql_ir::{Column, Query, SubqueryKind};
use types::{Datum, OutputSettings};

/// The compiler of index code, for the engine.
pub fn compiler() -> Arc<dyn IndexCompiler> {
    crate::install();
    Arc::new(Compiler)
}

struct Compiler;

impl IndexCompiler for Compiler {
    fn compile(&self, catalog: &Catalog, table: &TableDesc, index: &IndexDesc) -> Result<Arc<dyn IndexCode>> {
        let nobody = Nobody { settings: OutputSettings::default(), catalog: Arc::new(catalog.clone()) };
        let mut cx = BindContext::new(nobody.catalog(), nobody.identity(), &nobody, &[]);
        cx.trusts_domains = true;
        let bound = bind::bind_index(index, table, &mut cx)?;
        let mut names = Attributes { columns: Vec::new() };
        let expressions = bound.expressions.iter().map(|e| compile(e, &mut names)).collect::<Result<_>>()?;
        let predicate = bound.predicate.as_ref().map(|e| compile(e, &mut names)).transpose()?;
        let texts: Vec<Expression> = index.expressions.iter().map(|e| e.text.clone()).collect();
        let nobody =
            Nobody { settings: OutputSettings::default(), catalog: Arc::new(spoken_of(catalog, table, &texts)) };
        Ok(Arc::new(Compiled { columns: names.columns, expressions, predicate, texts, nobody }))
    }
}

/// The columns of a row as slots: attribute number - 1.
struct Attributes {
    columns: Vec<i16>,
}

impl Resolve for Attributes {
    fn column(&mut self, column: &Column) -> Result<Slot> {
        let number = column.column as i16 + 1;
        if !self.columns.contains(&number) {
            self.columns.push(number);
        }
        Ok(column.column as Slot)
    }
    fn whole_row(&mut self, _: usize, _: usize) -> Result<Code> {
        Err(Error::unsupported("an index over whole rows is not supported"))
    }
    fn aggregate(&mut self, _: usize, _: usize) -> Result<Slot> {
        Err(Error::internal("an aggregate in an index"))
    }
    fn param(&mut self, _: usize) -> Slot {
        0
    }
    fn subquery(&mut self, _: &SubqueryKind, _: &Query) -> Result<Code> {
        Err(Error::internal("a subquery in an index"))
    }
}

struct Compiled {
    columns: Vec<i16>,
    expressions: Vec<Code>,
    predicate: Option<Code>,
    texts: Vec<Expression>,
    /// What expressions see that see nothing; in its catalog is what their texts speak of.
    nobody: Nobody,
}

/// The part of a catalog that the texts of expressions speak of.
fn spoken_of(catalog: &Catalog, table: &TableDesc, texts: &[Expression]) -> Catalog {
    let mut part = Catalog::default();
    let objects = texts.iter().flat_map(Expression::references).filter_map(Reference::object);
    for oid in objects.chain([table.schema]) {
        // The number of a type of arrays is its element's other name.
        let oid = types::element_of(oid).unwrap_or(oid);
        if let Some(object) = catalog.get(oid) {
            part.put(Arc::clone(object));
            let schema = match &**object {
                CatalogObject::Extension(extension) => extension.schema,
                object => object.namespace().1,
            };
            catalog.get(schema).into_iter().for_each(|schema| part.put(Arc::clone(schema)));
        }
    }
    part
}

impl std::fmt::Debug for Compiled {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Compiled").field("columns", &self.columns).finish_non_exhaustive()
    }
}

impl IndexCode for Compiled {
    fn columns(&self) -> &[i16] {
        &self.columns
    }

    fn compute(&self, row: &[Datum], out: &mut Vec<Datum>) -> Result<bool> {
        self.compute_for(&self.nobody, row, out)
    }

    fn shown(&self, table: &TableDesc) -> Vec<String> {
        let text = |expression| crate::index_text(expression, false, table, true, &self.nobody);
        // A call is shown as it is, anything else in parentheses.
        let all = self.texts.iter().map(text);
        all.map(|(text, parentheses)| if parentheses { format!("({text})") } else { text }).collect()
    }
}

impl Compiled {
    fn compute_for(&self, nobody: &Nobody, row: &[Datum], out: &mut Vec<Datum>) -> Result<bool> {
        let mut env = Plain(nobody);
        if let Some(predicate) = &self.predicate
            && predicate.truth(&mut env, row)? != Some(true)
        {
            return Ok(false);
        }
        for expression in &self.expressions {
            out.push(expression.eval(&mut env, row)?);
        }
        Ok(true)
    }
}

/// The context of expressions that depend on nothing but a row.
struct Nobody {
    settings: OutputSettings,
    catalog: Arc<Catalog>,
}

/// The context of what is bound outside of any session.
pub fn nobody(catalog: Arc<Catalog>) -> impl EvalContext {
    crate::install();
    Nobody { settings: OutputSettings::default(), catalog }
}

fn unavailable<T>() -> Result<T> {
    Err(Error::internal("an index expression that depends on its session"))
}

impl EvalContext for Nobody {
    fn settings(&self) -> &OutputSettings {
        &self.settings
    }
    fn transaction_timestamp(&self) -> i64 {
        0
    }
    fn statement_timestamp(&self) -> i64 {
        0
    }
    fn clock_timestamp(&self) -> i64 {
        0
    }
    fn random(&self) -> f64 {
        0.0
    }
    fn set_seed(&self, _: f64) {}
    fn next_value(&self, _: Oid) -> Result<i64> {
        unavailable()
    }
    fn current_value(&self, _: Oid) -> Result<i64> {
        unavailable()
    }
    fn set_value(&self, _: Oid, _: i64, _: bool) -> Result<()> {
        unavailable()
    }
    fn last_value(&self) -> Result<i64> {
        unavailable()
    }
    fn setting(&self, _: &str) -> Result<Option<String>> {
        Ok(None)
    }
    fn all_settings(&self) -> Vec<(&'static str, String, &'static str)> {
        Vec::new()
    }
    fn sequence_state(&self, _: Oid) -> Result<(i64, bool)> {
        unavailable()
    }
    fn set_setting(&self, _: &str, _: Option<&str>, _: bool) -> Result<()> {
        unavailable()
    }
    fn identity(&self) -> Identity {
        Identity {
            role: engine_api::oids::ROLE_POSTGRES,
            superuser: true,
            current_user: "postgres".to_string(),
            session_user: "postgres".to_string(),
            database: "postgres".to_string(),
            database_oid: engine_api::oids::DATABASE_POSTGRES,
            search_path: vec![engine_api::oids::SCHEMA_PG_CATALOG],
            client_addr: None,
        }
    }
    fn catalog(&self) -> Arc<Catalog> {
        Arc::clone(&self.catalog)
    }
    fn notice(&self, _: Notice) {}
    fn backend_pid(&self) -> i32 {
        0
    }
}
