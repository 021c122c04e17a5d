//! What there is, as the catalogs of PostgreSQL say it.

use crate::client::Connection;

/// What expressions may do with a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// Numbers.
    Number,
    /// Texts.
    Text,
    /// Truth values.
    Boolean,
    /// Dates and timestamps.
    Date,
    /// Labels.
    Enum,
    /// Addresses.
    Network,
    /// Strings of bits.
    Bits,
    /// Whatever else.
    Other,
}

/// A column of a relation; all names are quoted where they need it.
#[derive(Debug, Clone)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Its type, with schema.
    pub ty: String,
    /// What can be done with it.
    pub family: Family,
    /// Whether it is computed, or an identity.
    pub computed: bool,
}

/// A table, view, sequence or index.
#[derive(Debug, Clone)]
pub struct Relation {
    /// The name of its schema.
    pub schema: String,
    /// Its name.
    pub name: String,
    /// As `relkind`.
    pub kind: char,
    /// Whether it is a view that may multiply rows, by a join in it or in a view below.
    pub joins: bool,
    /// Those that are not dropped.
    pub columns: Vec<Column>,
}

impl Relation {
    /// Its name with its schema's.
    pub fn full(&self) -> String {
        format!("{}.{}", self.schema, self.name)
    }
}

/// A constraint of a table or a domain.
#[derive(Debug, Clone)]
pub struct Constraint {
    /// The table or domain, with schema.
    pub of: String,
    /// Whether that is a table.
    pub of_table: bool,
    /// Its name.
    pub name: String,
    /// Columns, for a key.
    pub key: Option<Vec<String>>,
}

/// An enum or a domain.
#[derive(Debug, Clone)]
pub struct Made {
    /// The name of its schema.
    pub schema: String,
    /// Its name.
    pub name: String,
    /// Whether it is a domain.
    pub domain: bool,
    /// What can be done with its values.
    pub family: Family,
    /// Labels of it, or of what the domain is over.
    pub labels: Vec<String>,
}

impl Made {
    /// Its name with its schema's.
    pub fn full(&self) -> String {
        format!("{}.{}", self.schema, self.name)
    }
}

/// All that there is.
#[derive(Debug, Clone, Default)]
pub struct Schema {
    /// Names of schemas.
    pub schemas: Vec<String>,
    /// Tables, views, sequences, indexes.
    pub relations: Vec<Relation>,
    /// Constraints.
    pub constraints: Vec<Constraint>,
    /// Types.
    pub types: Vec<Made>,
    /// Extensions that a statement made, with their schemas.
    pub extensions: Vec<(String, String)>,
}

const SCHEMAS: &str = "SELECT quote_ident(nspname) FROM pg_namespace WHERE nspname !~ '^pg_' AND nspname <> 'information_schema' ORDER BY 1";

const RELATIONS: &str = "WITH RECURSIVE joins AS ( \
     SELECT oid FROM pg_class WHERE relkind IN ('v', 'm') AND relnamespace >= 16384 AND pg_get_viewdef(oid) ~ ' JOIN |, +w v' UNION \
     SELECT ev_class FROM joins JOIN pg_depend ON refobjid = joins.oid JOIN pg_rewrite ON classid = 'pg_rewrite'::regclass AND objid = pg_rewrite.oid) \
     SELECT quote_ident(nspname), quote_ident(relname), relkind, quote_ident(attname), format_type(atttypid, atttypmod), typcategory, \
     attgenerated <> '' OR attidentity <> '', c.oid IN (SELECT oid FROM joins) \
     FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace \
     LEFT JOIN pg_attribute a ON attrelid = c.oid AND attnum > 0 AND NOT attisdropped AND relkind IN ('r', 'v', 'm') \
     LEFT JOIN pg_type t ON t.oid = atttypid \
     WHERE nspname !~ '^pg_' AND nspname <> 'information_schema' ORDER BY 1, 2, attnum";

const CONSTRAINTS: &str = "SELECT coalesce(nullif(conrelid, 0)::regclass::text, contypid::regtype::text), conrelid <> 0, quote_ident(conname), contype, \
     (SELECT string_agg(quote_ident(attname), ' ' ORDER BY array_position(conkey, attnum)) FROM pg_attribute WHERE attrelid = conrelid AND attnum = ANY (conkey)) \
     FROM pg_constraint c JOIN pg_namespace n ON n.oid = connamespace \
     WHERE nspname !~ '^pg_' AND nspname <> 'information_schema' ORDER BY 1, 3";

const TYPES: &str = "SELECT quote_ident(nspname), quote_ident(typname), typtype = 'd', typcategory, \
     (SELECT string_agg(quote_literal(enumlabel), '|' ORDER BY enumsortorder) FROM pg_enum WHERE enumtypid IN (t.oid, t.typbasetype)) \
     FROM pg_type t JOIN pg_namespace n ON n.oid = typnamespace \
     WHERE typtype IN ('d', 'e') AND nspname !~ '^pg_' AND nspname <> 'information_schema' ORDER BY 1, 2";

const EXTENSIONS: &str = "SELECT quote_ident(extname), quote_ident(nspname) FROM pg_extension JOIN pg_namespace n ON n.oid = extnamespace WHERE extname <> 'plpgsql' ORDER BY 1";

impl Schema {
    /// Asks PostgreSQL what there is; `connection` has an empty search path.
    ///
    /// PANICS if the catalogs cannot be read.
    pub fn read(connection: &mut Connection) -> Schema {
        let mut schema = Schema::default();
        for row in rows(connection, SCHEMAS) {
            schema.schemas.push(row[0].clone());
        }
        for row in rows(connection, RELATIONS) {
            let [in_schema, name, kind, column, ty, category, computed, joins] = row.as_slice() else { continue };
            let is_last = schema.relations.last().is_some_and(|r| (&r.schema, &r.name) == (in_schema, name));
            if !is_last {
                let kind = kind.chars().next().unwrap_or('?');
                schema.relations.push(Relation {
                    schema: in_schema.clone(),
                    name: name.clone(),
                    kind,
                    joins: joins == "t",
                    columns: vec![],
                });
            }
            if let (Some(last), false) = (schema.relations.last_mut(), column.is_empty()) {
                let (family, computed) = (family(category), computed == "t");
                last.columns.push(Column { name: column.clone(), ty: ty.clone(), family, computed });
            }
        }
        for row in rows(connection, CONSTRAINTS) {
            let [of, of_table, name, kind, columns] = row.as_slice() else { continue };
            let key = (kind == "p" || kind == "u").then(|| columns.split(' ').map(str::to_owned).collect());
            schema.constraints.push(Constraint { of: of.clone(), of_table: of_table == "t", name: name.clone(), key });
        }
        for row in rows(connection, TYPES) {
            let [in_schema, name, domain, category, labels] = row.as_slice() else { continue };
            schema.types.push(Made {
                schema: in_schema.clone(),
                name: name.clone(),
                domain: domain == "t",
                family: family(category),
                labels: labels.split('|').filter(|l| !l.is_empty()).map(str::to_owned).collect(),
            });
        }
        for row in rows(connection, EXTENSIONS) {
            let [name, in_schema] = row.as_slice() else { continue };
            schema.extensions.push((name.clone(), in_schema.clone()));
        }
        schema
    }

    /// Relations of these kinds (`relkind`).
    pub fn of_kinds(&self, kinds: &str) -> Vec<Relation> {
        self.relations.iter().filter(|relation| kinds.contains(relation.kind)).cloned().collect()
    }

    /// Labels of a type, by its full name.
    pub(crate) fn labels(&self, ty: &str) -> &[String] {
        self.types.iter().find(|made| made.full() == ty).map_or(&[], |made| &made.labels)
    }
}

fn family(category: &str) -> Family {
    match category {
        "N" => Family::Number,
        "S" => Family::Text,
        "B" => Family::Boolean,
        "D" => Family::Date,
        "E" => Family::Enum,
        "I" => Family::Network,
        "V" => Family::Bits,
        _ => Family::Other,
    }
}

fn rows(connection: &mut Connection, sql: &str) -> Vec<Vec<String>> {
    let reply = connection.query(sql);
    assert_eq!(reply.error(), None, "{sql}");
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    reply.rows().map(|row| row.iter().map(text).collect()).collect()
}
