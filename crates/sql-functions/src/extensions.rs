//! Extensions: what a database has only after CREATE EXTENSION.
//!
//! Responsible for: which extensions there are and what is in them, found by name and by number.
//! Not responsible for: which database has which of them, in what schema (`engine_api::ExtensionDesc`).
//! Invariants: their functions are in no other table, and their numbers are below those that databases give and are no one else's.

mod cipher;
mod crypto;
mod password;
mod uuid;

use std::sync::LazyLock;

use base::Oid;
use engine_api::{Catalog, ExtensionDesc};
use rustc_hash::FxHashMap;
use sql_parse::names::quote_name;

use super::{EvalContext, Function, registry};

/// An extension that can be made.
#[derive(Debug)]
pub struct Extension {
    /// Its name.
    pub name: &'static str,
    /// Its version.
    pub version: &'static str,
    /// What it is.
    pub comment: &'static str,
    /// Its functions.
    pub functions: &'static [Function],
}

/// All of them, by name.
pub static EXTENSIONS: &[Extension] = &[
    Extension { name: "pgcrypto", version: "1.3", comment: "cryptographic functions", functions: crypto::FUNCTIONS },
    Extension {
        name: "uuid-ossp",
        version: "1.1",
        comment: "generate universally unique identifiers (UUIDs)",
        functions: uuid::FUNCTIONS,
    },
];

type Found = (&'static Extension, &'static Function);

static BY_NAME: LazyLock<FxHashMap<&'static str, Vec<Found>>> = LazyLock::new(|| {
    let mut found: FxHashMap<_, Vec<_>> = FxHashMap::default();
    for (extension, function) in all() {
        found.entry(function.name).or_default().push((extension, function));
    }
    found
});

static BY_OID: LazyLock<FxHashMap<u32, Found>> =
    LazyLock::new(|| all().map(|(extension, function)| (function.oid, (extension, function))).collect());

/// Every function with its extension.
pub fn all() -> impl Iterator<Item = Found> {
    EXTENSIONS.iter().flat_map(|extension| extension.functions.iter().map(move |function| (extension, function)))
}

/// The extension of a name.
pub fn named(name: &str) -> Option<&'static Extension> {
    EXTENSIONS.iter().find(|extension| extension.name == name)
}

/// Functions of a name.
pub fn functions_named(name: &str) -> &'static [Found] {
    BY_NAME.get(name).map_or(&[], Vec::as_slice)
}

/// A function by its number.
pub fn function_by_oid(oid: u32) -> Option<Found> {
    BY_OID.get(&oid).copied()
}

/// Functions that a name may mean, with the schemas in which they are; a name with a schema is looked for there only. Without one it
/// means the first of those that take the same on a search path, and what is built in comes before all of it.
pub fn visible(
    catalog: &Catalog,
    database: Oid,
    path: &[Oid],
    names: &[impl AsRef<str>],
) -> Vec<(Oid, &'static Function)> {
    if names.last().is_none_or(|name| functions_named(name.as_ref()).is_empty()) {
        return Vec::new();
    }
    let (schema, name) = match names {
        [name] => (None, name),
        [schema, name] => match catalog.schema(database, schema.as_ref()) {
            Some(schema) => (Some(schema.oid), name),
            None => return Vec::new(),
        },
        _ => return Vec::new(),
    };
    let is_built_in = |function: &Function| registry::function(function.name, function.args).is_some();
    let is_said = schema.is_some();
    let path = schema.as_ref().map_or(path, std::slice::from_ref);
    let place = |(extension, function): &Found| {
        let schema = catalog.extension(database, extension.name)?.schema;
        Some((path.iter().position(|on_path| *on_path == schema)?, schema, *function))
    };
    let mut found: Vec<_> = functions_named(name.as_ref()).iter().filter_map(place).collect();
    found.sort_by_key(|found| found.0);
    let mut all: Vec<(Oid, &'static Function)> = Vec::new();
    for (_, schema, function) in found {
        let is_taken = all.iter().any(|(_, earlier)| earlier.args == function.args);
        if !is_taken && (is_said || !is_built_in(function)) {
            all.push((schema, function));
        }
    }
    all
}

/// The extension of a database that a function is of.
pub fn installed(catalog: &Catalog, database: Oid, function: u32) -> Option<&ExtensionDesc> {
    catalog.extension(database, function_by_oid(function)?.0.name)
}

/// A function's name as a session with this search path writes it; those that are built in need no schema.
pub fn shown_name(catalog: &Catalog, database: Oid, path: &[Oid], function: &Function) -> String {
    let name = quote_name(function.name);
    let Some(extension) = installed(catalog, database, function.oid) else { return name };
    let visible = visible(catalog, database, path, &[function.name]);
    match catalog.get(extension.schema) {
        Some(schema) if !visible.iter().any(|(_, f)| f.oid == function.oid) => {
            format!("{}.{name}", quote_name(schema.name()))
        }
        _ => name,
    }
}

/// As [`shown_name`], for the session that evaluates something.
pub fn name_for(cx: &dyn EvalContext, function: &Function) -> String {
    match function_by_oid(function.oid) {
        None => quote_name(function.name),
        Some(_) => {
            let (catalog, identity) = (cx.catalog(), cx.identity());
            shown_name(&catalog, identity.database_oid, &identity.search_path, function)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::all_functions;

    #[test]
    fn numbers_and_signatures_are_unique() {
        let mut numbers: FxHashMap<u32, &Function> = all_functions().map(|f| (f.oid, f)).collect();
        for (extension, function) in all() {
            assert!((15_000..engine_api::oids::FIRST_USER.0).contains(&function.oid), "{function:?}");
            let other = numbers.insert(function.oid, function);
            assert!(other.is_none(), "{function:?} has the number of {other:?}");
            let same = extension.functions.iter().filter(|f| (f.name, f.args) == (function.name, function.args));
            assert_eq!(same.count(), 1, "{function:?}");
        }
    }
}
