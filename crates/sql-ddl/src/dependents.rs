//! What keeps a role from being dropped: what it owns, and what has been granted to it.

use std::collections::BTreeMap;

use base::Oid;
use engine_api::{AclItem, Catalog, CatalogObject, ColumnDesc};
use sql_bind as bind;
use sql_parse::privileges::{self, owner_of};

use super::role::each_role;

/// What an object is called in lists of dependents: with its schema unless it is found without.
fn described(catalog: &Catalog, path: &[Oid], object: &CatalogObject) -> String {
    let (name, schema) = (object.name(), object.namespace().1);
    let found = match object {
        CatalogObject::Table(_) | CatalogObject::Sequence(_) => {
            path.iter().find_map(|&schema| catalog.relation(schema, name)).map(|found| found.oid())
        }
        CatalogObject::Type(desc) => bind::is_type_visible(catalog, path, &desc.name, desc.oid).then_some(desc.oid),
        object => Some(object.oid()),
    };
    let shown = match catalog.get(schema).filter(|_| found != Some(object.oid())) {
        Some(schema) => format!("{}.{name}", schema.name()),
        None => name.to_string(),
    };
    format!("{} {shown}", privileges::noun(object))
}

/// The database that an object is in; `None` for those that all share.
pub(super) fn database_of(catalog: &Catalog, object: &CatalogObject) -> Option<Oid> {
    match object {
        CatalogObject::Database(_) | CatalogObject::Role(_) => None,
        CatalogObject::Schema(schema) => Some(schema.database),
        CatalogObject::Extension(extension) => Some(extension.database),
        object => match catalog.get(object.namespace().1).map(|o| &**o) {
            Some(CatalogObject::Schema(schema)) => Some(schema.database),
            _ => None,
        },
    }
}

/// What depends on a role, in PostgreSQL's words; of other databases it is only counted.
pub(super) fn of_role(catalog: &Catalog, path: &[Oid], role: Oid, database: Oid) -> Vec<String> {
    let mut lines = Vec::new();
    let mut elsewhere: BTreeMap<Oid, usize> = BTreeMap::new();
    for object in catalog.walk() {
        if matches!(&**object, CatalogObject::Index(_)) {
            continue;
        }
        let mut say = |what: &str| match database_of(catalog, object) {
            Some(other) if other.is_valid() && other != database => *elsewhere.entry(other).or_default() += 1,
            _ => lines.push(format!("{what} {}", described(catalog, path, object))),
        };
        if owner_of(catalog, object) == Some(role) {
            say("owner of");
            continue;
        }
        let Some(list) = catalog.privileges(object.oid()) else { continue };
        let named = |items: &[AclItem]| items.iter().any(|item| item.names(role));
        if list.items.as_deref().is_some_and(named) {
            say("privileges for");
        }
        if let CatalogObject::Table(table) = &**object {
            let listed = |column: &&ColumnDesc| list.columns.get(&column.number).is_some_and(|items| named(items));
            for column in table.live_columns().filter(listed) {
                say(&format!("privileges for column {} of", column.name));
            }
        }
    }
    for creator in each_role(catalog) {
        for default in &creator.default_privileges {
            // A role owns what it has said, also if that names nobody.
            let is_named = creator.oid == role || default.names(role);
            if !default.is_in(database) {
                *elsewhere.entry(default.database).or_default() += usize::from(is_named);
                continue;
            }
            let about = match default.kind {
                'r' => "relations",
                'S' => "sequences",
                'f' => "functions",
                'T' => "types",
                _ => "schemas",
            };
            if is_named {
                let place = match catalog.get(default.schema) {
                    Some(schema) => format!(" in schema {}", schema.name()),
                    None => String::new(),
                };
                let owner = if creator.oid == role { "owner of" } else { "privileges for" };
                let name = &creator.name;
                lines.push(format!("{owner} default privileges on new {about} belonging to role {name}{place}"));
            }
        }
    }
    for (other, count) in elsewhere.into_iter().filter(|(_, count)| *count > 0) {
        let name = catalog.get(other).map_or("", |database| database.name());
        lines.push(format!("{count} object{} in database {name}", if count == 1 { "" } else { "s" }));
    }
    lines
}

/// Whether a column of a table is dropped. Its list of rights stays, as in PostgreSQL, and nothing depends on it.
pub(super) fn is_dropped(object: &CatalogObject, number: i16) -> bool {
    let CatalogObject::Table(table) = object else { return false };
    table.live_columns().all(|column| column.number != number)
}

/// Whether an object's access list names a role.
pub(super) fn mentions(catalog: &Catalog, object: &CatalogObject, role: Oid) -> bool {
    let Some(list) = catalog.privileges(object.oid()) else { return false };
    let columns = list.columns.iter().filter(|(number, _)| !is_dropped(object, **number)).flat_map(|(_, items)| items);
    let all = list.items.iter().flatten().chain(columns);
    let mut named = all.flat_map(|item| [item.grantee, item.grantor]);
    named.any(|named| named == role)
}
