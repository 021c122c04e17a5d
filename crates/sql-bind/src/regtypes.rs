//! Names of catalog objects as constants: `'t'::regclass` and the like.

use base::{Oid, Result, SqlState};
use sql_functions as functions;
use sql_parse::names::split_name;
use types::{Datum, oid};

use super::Binder;
use super::from::system_relation;

/// Types whose text form is looked up in the catalog.
pub(super) use sql_functions::is_name_in_catalog as is_catalog_type;

impl Binder<'_, '_> {
    /// The value of a literal of a catalog type; `None` for other types.
    pub(super) fn catalog_literal(&mut self, ty: Oid, text: &str, at: i32) -> Result<Option<Datum>> {
        if !is_catalog_type(ty) {
            return match types::element_of(ty) {
                Some(element) if is_catalog_type(element) => self.catalog_array(element, text, at).map(Some),
                _ => Ok(None),
            };
        }
        if ty == oid::REGCLASS && (text == "-" || (!text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()))) {
            let found = functions::from_name_in_catalog(self.cx.eval, ty, text);
            return found.map(Some).map_err(|error| self.locate(error, at));
        }
        if ty != oid::REGCLASS {
            let found = functions::from_name_in_catalog(self.cx.eval, ty, text);
            return found.map(Some).map_err(|error| self.locate(error, at));
        }
        let found = self.class_oid(text, at)?;
        Ok(Some(Datum::Oid(found.0)))
    }

    /// An array of names.
    fn catalog_array(&mut self, element: Oid, text: &str, at: i32) -> Result<Datum> {
        let now_micros = self.cx.eval.transaction_timestamp();
        let input = types::InputContext { settings: self.cx.eval.settings(), now_micros };
        let read = types::parse_text(oid::TEXT_ARRAY, -1, text, &input).map_err(|error| self.locate(error, at))?;
        let Datum::Array(texts) = read else { return Ok(read) };
        let mut array =
            types::Array { element, dims: texts.dims.clone(), values: Vec::with_capacity(texts.values.len()) };
        for value in &texts.values {
            array.values.push(match value {
                Datum::Text(name) => self.catalog_literal(element, name, at)?.unwrap_or(Datum::Null),
                _ => Datum::Null,
            });
        }
        Ok(Datum::Array(std::sync::Arc::new(array)))
    }

    fn parts(&self, text: &str, at: i32) -> Result<Vec<String>> {
        split_name(text).map_err(|error| self.locate(error, at))
    }

    fn class_oid(&self, text: &str, at: i32) -> Result<Oid> {
        let parts = self.parts(text, at)?;
        let catalog = &self.cx.catalog;
        let missing = || {
            let message = format!("relation \"{}\" does not exist", parts.join("."));
            self.error(SqlState::UNDEFINED_TABLE, message, at)
        };
        let (schemas, name) = match parts.as_slice() {
            [name] => (self.cx.identity.search_path.clone(), name),
            [database, _, _] if *database != self.cx.identity.database => {
                let names = parts.join(".");
                let message = format!("cross-database references are not implemented: \"{names}\"");
                return Err(self.unsupported(message, at));
            }
            [schema, name] | [_, schema, name] => {
                let schema = catalog.schema(self.cx.identity.database_oid, schema).ok_or_else(|| {
                    let message = format!("schema \"{schema}\" does not exist");
                    self.error(SqlState::INVALID_SCHEMA_NAME, message, at)
                })?;
                // Stored expressions, which take no parameters, were looked up when they were made.
                if !self.params_forbidden {
                    self.may_use(schema.oid).map_err(|error| self.locate(error, at))?;
                }
                (vec![schema.oid], name)
            }
            _ => {
                let message = format!("improper relation name (too many dotted names): {text}");
                return Err(self.error(SqlState::SYNTAX_ERROR, message, at));
            }
        };
        for schema in schemas {
            if let Some(relation) = system_relation(schema, name) {
                return Ok(relation.oid);
            }
            if let Some(object) = catalog.relation(schema, name) {
                return Ok(object.oid());
            }
        }
        Err(missing())
    }
}
