//! Names of catalog objects as constants: `'t'::regclass` and its kin.

use base::{Oid, Result, SqlState};
use engine_api::oids;
use types::{Datum, oid};

use super::Binder;
use crate::functions::split_name;
use crate::system;

/// Types whose text form is looked up in the catalog.
pub(super) fn is_catalog_type(ty: Oid) -> bool {
    matches!(
        ty,
        oid::REGCLASS
            | oid::REGTYPE
            | oid::REGNAMESPACE
            | oid::REGROLE
            | oid::REGPROC
            | oid::REGPROCEDURE
            | oid::REGOPER
            | oid::REGOPERATOR
            | oid::REGCOLLATION
    )
}

impl Binder<'_, '_> {
    /// The value of a literal of a catalog type; `None` for other types.
    pub(super) fn catalog_literal(&mut self, ty: Oid, text: &str, at: i32) -> Result<Option<Datum>> {
        if !is_catalog_type(ty) {
            return Ok(None);
        }
        let trimmed = text.trim();
        let number = match trimmed {
            "-" => Some(0),
            digits if digits.bytes().all(|b| b.is_ascii_digit()) => digits.parse::<u32>().ok(),
            _ => None,
        };
        if let Some(number) = number {
            return Ok(Some(Datum::Oid(number)));
        }
        let found = match ty {
            oid::REGCLASS => self.class_oid(text, at)?,
            oid::REGTYPE => self.type_oid(text, at)?,
            oid::REGNAMESPACE => self.namespace_oid(text, at)?,
            oid::REGROLE => self.role_oid(text, at)?,
            oid::REGPROC => self.function_oid(trimmed, at)?,
            _ => {
                let message = format!("input of {} by name is not supported", types::format_type(ty, -1));
                return Err(self.unsupported(message, at));
            }
        };
        Ok(Some(Datum::Oid(found.0)))
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
            [schema, name] | [_, schema, name] => {
                let schema = catalog.schema(self.cx.identity.database_oid, schema).ok_or_else(missing)?;
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
            let system_schema = match schema {
                oids::SCHEMA_PG_CATALOG => Some("pg_catalog"),
                oids::SCHEMA_INFORMATION_SCHEMA => Some("information_schema"),
                _ => None,
            };
            if let Some(relation) = system_schema.and_then(|s| system::relation(s, name)) {
                return Ok(relation.oid);
            }
            if let Some(object) = catalog.relation(schema, name) {
                return Ok(object.oid());
            }
        }
        Err(missing())
    }

    fn type_oid(&self, text: &str, at: i32) -> Result<Oid> {
        // The name may have a modifier, which does not matter here.
        let plain = text.split('(').next().unwrap_or(text).trim();
        let array = text.trim_end().ends_with("[]");
        let plain = plain.trim_end_matches("[]").trim_end();
        let lower = plain.to_ascii_lowercase();
        let name = lower.strip_prefix("pg_catalog.").unwrap_or(&lower);
        let bare = name.strip_prefix('"').and_then(|n| n.strip_suffix('"')).filter(|n| *n != "char");
        let found = types::type_by_name(bare.unwrap_or(name));
        let found = found.and_then(|t| if array { types::type_info(t.array) } else { Some(t) });
        let mut may = Ok(());
        let made = || {
            let fold = |part: &str| match part.strip_prefix('"').and_then(|p| p.strip_suffix('"')) {
                Some(quoted) => quoted.to_string(),
                None => part.to_ascii_lowercase(),
            };
            let catalog = &self.cx.catalog;
            let named = |schema: Oid, name: &str| {
                let (name, of) = (fold(name), |ty: &engine_api::TypeDesc| if array { ty.array } else { ty.oid });
                catalog.type_named(schema, &name).map(of).or_else(|| {
                    // Arrays have names too.
                    let element = name.strip_prefix('_').filter(|_| !array)?;
                    catalog.type_named(schema, element).map(|ty| ty.array)
                })
            };
            match plain.split_once('.') {
                Some((schema, name)) => {
                    let schema = catalog.schema(self.cx.identity.database_oid, &fold(schema))?;
                    may = self.may_use(schema.oid).map_err(|error| self.locate(error, at));
                    named(schema.oid, name)
                }
                None => self.cx.identity.search_path.iter().find_map(|&schema| named(schema, plain)),
            }
        };
        let found = found.map(|t| t.oid).or_else(made);
        may?;
        found.ok_or_else(|| {
            let message = format!("type \"{}\" does not exist", text.trim());
            self.error(SqlState::UNDEFINED_OBJECT, message, at)
        })
    }

    fn namespace_oid(&self, text: &str, at: i32) -> Result<Oid> {
        let parts = self.parts(text, at)?;
        let [name] = parts.as_slice() else {
            return Err(self.error(SqlState::INVALID_NAME, "invalid name syntax", at));
        };
        match self.cx.catalog.schema(self.cx.identity.database_oid, name) {
            Some(schema) => Ok(schema.oid),
            None => {
                let message = format!("schema \"{name}\" does not exist");
                Err(self.error(SqlState::INVALID_SCHEMA_NAME, message, at))
            }
        }
    }

    fn role_oid(&self, text: &str, at: i32) -> Result<Oid> {
        let parts = self.parts(text, at)?;
        let [name] = parts.as_slice() else {
            return Err(self.error(SqlState::INVALID_NAME, "invalid name syntax", at));
        };
        let by_name = self.cx.catalog.role(name).map(|r| r.oid);
        by_name.ok_or_else(|| {
            let message = format!("role \"{name}\" does not exist");
            self.error(SqlState::UNDEFINED_OBJECT, message, at)
        })
    }

    /// The one function of a name.
    fn function_oid(&self, text: &str, at: i32) -> Result<Oid> {
        let parts = self.parts(text, at)?;
        let name = match parts.as_slice() {
            [name] => Some(name.as_str()),
            [schema, name] if schema == "pg_catalog" => Some(name.as_str()),
            _ => None,
        };
        match name.map(system::functions_named).unwrap_or_default().as_slice() {
            [] => {
                let message = format!("function \"{text}\" does not exist");
                Err(self.error(SqlState::UNDEFINED_FUNCTION, message, at))
            }
            [one] => Ok(Oid(*one)),
            _ => {
                let message = format!("more than one function named \"{text}\"");
                Err(self.error(SqlState::AMBIGUOUS_FUNCTION, message, at))
            }
        }
    }
}
