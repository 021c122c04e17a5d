//! Statements that define: CREATE, ALTER, DROP, COMMENT of every kind of object, and what maintains them.

use super::{ObjectKind, Writer};

impl Writer<'_> {
    /// A statement that defines, alters or drops.
    pub(super) fn defining(&mut self) -> String {
        match self.below(20) {
            0..=4 => self.create(),
            5..=8 => self.alter_table(),
            9..=12 => self.alter_other(),
            13 | 14 => self.drop(),
            15..=17 => self.comment(),
            _ => self.maintain(),
        }
    }

    /// Where something new would be: in a schema, in none, in the temporary one, in one that all databases have.
    fn place(&mut self) -> String {
        match self.below(16) {
            0 | 1 => String::new(),
            2 | 3 => "pg_temp.".to_owned(),
            4 => self.pick(&["information_schema.", "information_schema.", "pg_catalog."]).to_owned(),
            _ => format!("{}.", self.schema()),
        }
    }

    /// A type for a column.
    fn column_type(&mut self) -> String {
        if self.once_in(3) { self.type_name() } else { self.pick(&["int", "text", "numeric(5,1)", "int[]"]).to_owned() }
    }

    fn create(&mut self) -> String {
        let place = self.place();
        let relation = self.relation();
        let (name, column) = (self.name_of(&relation), self.column(&relation));
        let table = self.table();
        match self.below(20) {
            0 | 1 => {
                let (first, second) = (self.column_type(), self.column_type());
                let temporary = if place.is_empty() && self.once_in(3) { "TEMPORARY " } else { "" };
                let array = self.pick(&["", "", "[]"]);
                let array = if second.ends_with(']') { "" } else { array };
                format!("CREATE {temporary}TABLE {place}fresh (x {first}, y {second}{array})")
            }
            2 | 3 => {
                let reference = self.pick(&["", " (id)", " (a)"]);
                let full = table.full();
                self.pick(&[
                    format!("CREATE TABLE {place}fresh (x int REFERENCES {full}{reference})").as_str(),
                    format!("CREATE TABLE {place}fresh (x int, FOREIGN KEY (x) REFERENCES {full}{reference})").as_str(),
                ])
                .to_owned()
            }
            4 => format!("CREATE TABLE {place}fresh_{} AS SELECT x.{column} FROM {name} x", self.below(10_000)),
            5 => format!("SELECT x.{column} INTO {place}fresh_{} FROM {name} x", self.below(10_000)),
            6 => {
                let including = self.pick(&["", " INCLUDING ALL", " INCLUDING DEFAULTS"]);
                format!("CREATE TABLE {place}fresh (LIKE {}{including})", table.full())
            }
            7 | 8 => {
                let options = self.pick(&["", "", " WITH (security_invoker)", " WITH (security_barrier)"]);
                format!("CREATE VIEW {place}fresh{options} AS SELECT x.{column} FROM {name} x")
            }
            9 => {
                let view = self.view();
                let columns = view.columns.join(", ");
                // Another type of `c` would be another error, which names types in words of each server's own.
                if view.columns.contains(&"c") {
                    return format!("CREATE VIEW {}.fresh AS SELECT {columns} FROM {}", view.schema, view.full());
                }
                format!("CREATE OR REPLACE VIEW {} AS SELECT {columns} FROM {}", view.full(), table.full())
            }
            10 => {
                let role = self.any_role();
                let what = self
                    .pick(&[
                        format!("x.{column}").as_str(),
                        format!("x.{column}, current_user").as_str(),
                        format!("x.id, set_config('role', '{role}', false)").as_str(),
                        "set_config('search_path', 'public', false), set_config('log_statement', 'all', false)",
                    ])
                    .to_owned();
                let (place, number) = (place.replace("pg_temp.", ""), self.below(10_000));
                format!("CREATE MATERIALIZED VIEW {place}fresh_{number} AS SELECT {what} FROM {name} x")
            }
            11 => {
                let owned = if self.once_in(3) { format!(" OWNED BY {}.id", table.full()) } else { String::new() };
                format!("CREATE SEQUENCE {place}fresh{owned}")
            }
            12 | 13 => {
                let unique = self.pick(&["", "", "UNIQUE "]);
                let concerned = if self.once_in(5) { relation } else { table };
                let column = self.column(&concerned);
                format!("CREATE {unique}INDEX fresh ON {} ({column})", concerned.full())
            }
            14 => {
                let (role, name) = (self.any_role(), self.pick(&["fresh", "IF NOT EXISTS s0"]).to_owned());
                self.pick(&[
                    format!("CREATE SCHEMA {name}").as_str(),
                    format!("CREATE SCHEMA fresh AUTHORIZATION {role}").as_str(),
                    format!("CREATE SCHEMA AUTHORIZATION {role}").as_str(),
                    "CREATE SCHEMA fresh CREATE TABLE inside (x int)",
                    "CREATE SCHEMA pg_fresh",
                ])
                .to_owned()
            }
            15 => format!("CREATE TYPE {} AS ENUM ('x', 'y')", place + "fresh"),
            16 | 17 => {
                let of = self.column_type();
                let check = self.pick(&["", " NOT NULL", " CHECK (VALUE IS NOT NULL)"]);
                format!("CREATE DOMAIN {place}fresh AS {of}{check}")
            }
            18 => format!(
                "CREATE TEMP TABLE fresh_{} ON COMMIT DROP AS SELECT x.{column} FROM {name} x",
                self.below(10_000)
            ),
            _ => format!("CREATE TEMPORARY VIEW fresh AS SELECT x.{column} FROM {name} x"),
        }
    }

    fn alter_table(&mut self) -> String {
        if self.once_in(12) {
            let (relation, role, schema) = (self.relation(), self.any_role(), self.schema());
            let action = self.pick(&["RENAME TO renamed", "OWNER TO ", "SET SCHEMA "]).to_owned();
            let action = match action.as_str() {
                "OWNER TO " => action + &role,
                "SET SCHEMA " => action + &schema,
                _ => action,
            };
            return format!("ALTER TABLE {} {action}", relation.full());
        }
        let table = self.table();
        let (name, column) = (self.name_of(&table), self.column(&table));
        let exists = self.pick(&["", "", "", "IF EXISTS "]);
        let (role, schema, of) = (self.any_role(), self.schema(), self.column_type());
        let other = self.table();
        let action = match self.below(26) {
            0 => format!("ADD COLUMN fresh {of}"),
            1 => "ADD COLUMN fresh int DEFAULT 5".to_owned(),
            2 => "ADD COLUMN fresh serial".to_owned(),
            3 => format!("DROP COLUMN {column}"),
            4 => format!("DROP COLUMN IF EXISTS {column}"),
            5 => format!("ALTER COLUMN b TYPE {of} USING NULL"),
            6 => format!("ALTER COLUMN {column} SET NOT NULL"),
            7 => "ALTER COLUMN a SET DEFAULT 3".to_owned(),
            8 => "ALTER COLUMN b DROP DEFAULT".to_owned(),
            9 => "ADD CONSTRAINT fresh CHECK (id > 0)".to_owned(),
            10 => "ADD CONSTRAINT fresh CHECK (id > 0) NOT VALID".to_owned(),
            11 => format!("ADD CONSTRAINT fresh UNIQUE ({column}, id)"),
            12 | 13 => format!("ADD CONSTRAINT fresh FOREIGN KEY (a) REFERENCES {}", other.full()),
            14 => format!("DROP CONSTRAINT {}", self.pick(&["up", "small", "IF EXISTS small"])),
            15 => format!("RENAME COLUMN {column} TO fresh"),
            16 => "RENAME TO renamed".to_owned(),
            17 => format!("RENAME CONSTRAINT {} TO fresh", self.pick(&["up", "small"])),
            18 | 19 => format!("SET SCHEMA {schema}"),
            20 | 21 => format!("OWNER TO {role}"),
            22 => "SET (fillfactor = 70)".to_owned(),
            23 => "VALIDATE CONSTRAINT up".to_owned(),
            24 => "DISABLE TRIGGER ALL".to_owned(),
            _ => "ALTER COLUMN id RESTART WITH 30".to_owned(),
        };
        format!("ALTER TABLE {exists}{name} {action}")
    }

    fn alter_other(&mut self) -> String {
        let (role, schema) = (self.any_role(), self.schema());
        let role = if self.once_in(10) { "CURRENT_USER".to_owned() } else { role };
        match self.below(12) {
            0..=2 => {
                let view = self.view();
                let (name, column) = (self.name_of(&view), self.column(&view));
                let action = match self.below(8) {
                    0 => "RENAME TO renamed".to_owned(),
                    1 => format!("SET SCHEMA {schema}"),
                    2 => "SET (security_barrier)".to_owned(),
                    3 => "RESET (security_invoker)".to_owned(),
                    4 => format!("ALTER COLUMN {column} SET DEFAULT NULL"),
                    5 => format!("RENAME COLUMN {column} TO fresh"),
                    _ => format!("OWNER TO {role}"),
                };
                format!("ALTER VIEW {name} {action}")
            }
            3 => {
                let index = self.index();
                format!("ALTER INDEX {index} RENAME TO fresh")
            }
            4 | 5 => {
                let sequence = self.sequence();
                let table = self.table();
                let action = match self.below(8) {
                    0 => "RESTART".to_owned(),
                    1 => "INCREMENT BY 2".to_owned(),
                    2 => format!("OWNED BY {}.id", table.full()),
                    3 => "OWNED BY NONE".to_owned(),
                    4 => format!("SET SCHEMA {schema}"),
                    5 => "RENAME TO fresh".to_owned(),
                    _ => format!("OWNER TO {role}"),
                };
                format!("ALTER SEQUENCE {sequence} {action}")
            }
            6 => {
                let owner = format!("OWNER TO {role}");
                let action = self.pick(&["RENAME TO fresh", "RENAME TO pg_fresh", &owner, &owner]);
                format!("ALTER SCHEMA {schema} {action}")
            }
            7 | 8 => {
                let name = self.one_of(&self.world.enums);
                let action = match self.below(6) {
                    0 => "ADD VALUE 'top'".to_owned(),
                    1 => "RENAME VALUE 'low' TO 'bottom'".to_owned(),
                    2 => "RENAME TO fresh".to_owned(),
                    3 => format!("SET SCHEMA {schema}"),
                    _ => format!("OWNER TO {role}"),
                };
                format!("ALTER TYPE {name} {action}")
            }
            9 | 10 => {
                let name = self.one_of(&self.world.domains);
                let action = match self.below(10) {
                    0 => "ADD CONSTRAINT fresh CHECK (VALUE <> 'zzz')".to_owned(),
                    // DROP CONSTRAINT keeps PostgreSQL 15 from beginning a subtransaction now and then (XX000).
                    1 => "VALIDATE CONSTRAINT filled".to_owned(),
                    2 => "SET DEFAULT 'x'".to_owned(),
                    3 => "SET NOT NULL".to_owned(),
                    4 => "DROP NOT NULL".to_owned(),
                    5 => "RENAME CONSTRAINT filled TO fresh".to_owned(),
                    6 => "RENAME TO fresh".to_owned(),
                    7 => format!("SET SCHEMA {schema}"),
                    _ => format!("OWNER TO {role}"),
                };
                format!("ALTER DOMAIN {name} {action}")
            }
            _ => {
                let database = self.world.database.clone();
                let action = match self.below(4) {
                    0 => "CONNECTION LIMIT 90".to_owned(),
                    1 => "ALLOW_CONNECTIONS true".to_owned(),
                    2 => "IS_TEMPLATE false".to_owned(),
                    _ => format!("OWNER TO {role}"),
                };
                format!("ALTER DATABASE {database} {action}")
            }
        }
    }

    fn drop(&mut self) -> String {
        let exists = self.pick(&["", "", "IF EXISTS "]);
        let behavior = self.pick(&["", " CASCADE", " RESTRICT"]);
        let (noun, name) = match self.below(10) {
            0 | 1 => ("TABLE", self.table().full()),
            2 => ("VIEW", self.view().full()),
            3 => {
                let relation = self.relation();
                (Self::noun_of(relation.kind), self.name_of(&relation))
            }
            // One of a column is dropped with it, in words of each server's own.
            4 => ("SEQUENCE", self.free_sequence()),
            5 => ("INDEX", self.index()),
            6 => ("TYPE", self.one_of(&self.world.enums)),
            7 => ("DOMAIN", self.one_of(&self.world.domains)),
            8 => ("SCHEMA", self.schema()),
            _ => ("TABLE", self.table().full()),
        };
        format!("DROP {noun} {exists}{name}{behavior}")
    }

    fn comment(&mut self) -> String {
        let relation = self.relation();
        let (name, column) = (self.name_of(&relation), self.column(&relation));
        let on = match self.below(13) {
            0 | 1 => format!("{} {name}", Self::noun_of(relation.kind)),
            2 | 3 => format!("COLUMN {name}.{column}"),
            4 => format!("INDEX {}", self.index()),
            5 => format!("SEQUENCE {}", self.sequence()),
            6 => format!("SCHEMA {}", self.schema()),
            7 => format!("DATABASE {}", self.world.database),
            8 => format!("ROLE {}", self.any_role()),
            9 => format!("TYPE {}", self.one_of(&self.world.enums)),
            10 => format!("DOMAIN {}", self.one_of(&self.world.domains)),
            11 => {
                let table = self.table();
                format!("CONSTRAINT {}_pkey ON {}", table.name, table.full())
            }
            _ => format!("CONSTRAINT filled ON DOMAIN {}", self.one_of(&self.world.domains)),
        };
        let text = self.pick(&["'word'", "NULL"]);
        format!("COMMENT ON {on} IS {text}")
    }

    /// What may run inside a block.
    fn maintain(&mut self) -> String {
        let relation = self.relation();
        let name = self.name_of(&relation);
        let materialized: Vec<_> =
            self.world.relations.iter().filter(|r| r.kind == ObjectKind::Materialized).map(|r| r.full()).collect();
        match self.below(8) {
            0 | 1 if !materialized.is_empty() => {
                let with = self.pick(&["", "", " WITH NO DATA"]);
                format!("REFRESH MATERIALIZED VIEW {}{with}", self.one_of(&materialized))
            }
            2 => format!("REINDEX INDEX {}", self.index()),
            3 => format!("REINDEX TABLE {}", self.table().full()),
            4 => {
                let column = self.column(&relation);
                let columns = if self.once_in(3) { format!(" ({column})") } else { String::new() };
                format!("ANALYZE {name}{columns}")
            }
            5 => "CHECKPOINT".to_owned(),
            _ => format!("REFRESH MATERIALIZED VIEW {name}"),
        }
    }

    /// What may not run inside a block, with what undoes it.
    pub(super) fn maintain_open(&mut self) -> (String, Vec<String>) {
        let relation = self.relation();
        let name = relation.full();
        let statement = match self.below(12) {
            0 | 1 => format!("VACUUM {name}"),
            2 => format!("VACUUM (ANALYZE) {name}"),
            3 => format!("REINDEX SCHEMA {}", self.schema()),
            4 => format!("REINDEX DATABASE {}", self.world.database),
            5 => {
                // A unique index is tried behind the others from then on in PostgreSQL (COMPATIBILITY.md).
                let index = self.index();
                let concurrently = if index.ends_with("_pkey") { "" } else { "CONCURRENTLY " };
                format!("REINDEX INDEX {concurrently}{index}")
            }
            6 => format!("CREATE INDEX CONCURRENTLY fresh ON {name} (id)"),
            7 => "DROP INDEX CONCURRENTLY no_such_index".to_owned(),
            8 => {
                let owner = if self.once_in(2) { format!(" OWNER {}", self.any_role()) } else { String::new() };
                if self.once_in(3) {
                    format!("CREATE DATABASE fresh_database{owner}")
                } else {
                    "DROP DATABASE postgres_2".to_owned()
                }
            }
            9 => {
                let (setting, value) = self.setting();
                self.pick(&[
                    format!("ALTER SYSTEM SET {setting} = {value}").as_str(),
                    format!("ALTER SYSTEM RESET {setting}").as_str(),
                    "ALTER SYSTEM RESET ALL",
                ])
                .to_owned()
            }
            10 => format!("ALTER DATABASE {} RENAME TO fresh_database", self.world.database),
            _ => format!("DROP DATABASE {}", self.world.database),
        };
        let undo = match () {
            () if statement.starts_with("CREATE INDEX") => {
                self.world.schemas.iter().map(|schema| format!("DROP INDEX IF EXISTS {schema}.fresh")).collect()
            }
            () if statement.starts_with("CREATE DATABASE") => vec!["DROP DATABASE IF EXISTS fresh_database".to_owned()],
            () if statement.starts_with("ALTER SYSTEM") => vec!["ALTER SYSTEM RESET ALL".to_owned()],
            () => Vec::new(),
        };
        (statement, undo)
    }
}
