//! What a world is made of.

use super::{ObjectKind, Relation};
use crate::random::Random;

/// The columns that every table has.
pub(super) const COLUMNS: [&str; 4] = ["id", "a", "b", "c"];

/// Roles that are there from the start, and give what the others have not.
const PREDEFINED: [&str; 8] = [
    "pg_read_all_data",
    "pg_write_all_data",
    "pg_monitor",
    "pg_read_all_settings",
    "pg_read_all_stats",
    "pg_signal_backend",
    "pg_database_owner",
    "pg_checkpoint",
];

/// Roles and objects, by name.
#[derive(Debug, Clone, Default)]
pub struct World {
    /// Its database.
    pub database: String,
    /// Roles: `r0`, `r1`, …
    pub roles: Vec<String>,
    /// Schemas, `public` last.
    pub schemas: Vec<String>,
    /// Tables, views, materialized views.
    pub relations: Vec<Relation>,
    /// Sequences with their schema.
    pub sequences: Vec<String>,
    /// Indexes with their schema.
    pub indexes: Vec<String>,
    /// Enums with their schema.
    pub enums: Vec<String>,
    /// Domains with their schema.
    pub domains: Vec<String>,
    /// Settings that both servers have, with what their value may be.
    pub settings: Vec<(String, String)>,
    /// Statements that make it, all but the database and the roles.
    pub statements: Vec<String>,
    /// Whether somebody is a member of pg_write_all_data. PostgreSQL 15 forgets that of one who may INSERT, UPDATE or DELETE by a
    /// grant, so that there are no such grants then.
    pub(super) writes_all: bool,
    /// What changes owners.
    gifts: Vec<String>,
    /// Statements that make the roles: they are the server's, not the database's.
    pub of_roles: Vec<String>,
}

impl World {
    /// A random world in a database of this name, about these settings.
    pub fn new(random: &mut Random, database: &str, settings: &[(String, String)]) -> World {
        let mut world = World { database: database.to_owned(), settings: settings.to_vec(), ..World::default() };
        world.make_roles(random);
        world.make_schemas(random);
        world.make_types(random);
        world.make_tables(random);
        world.make_views(random);
        world.make_others(random);
        let gifts = std::mem::take(&mut world.gifts);
        world.statements.extend(gifts);
        let grants = 30 + random.below(30);
        for _ in 0..grants {
            let grant = super::Writer { random, world: &world }.initial_grant();
            world.statements.push(grant);
        }
        if random.below(3) == 0 {
            world.statements.push(format!("REVOKE TEMPORARY ON DATABASE {database} FROM PUBLIC"));
        }
        for role in &world.roles {
            if random.below(6) == 0 {
                let schemas = world.schemas.join(", ");
                world.statements.push(format!("GRANT USAGE ON SCHEMA {schemas} TO {role}"));
            }
        }
        world.statements.push("ANALYZE".to_owned());
        world
    }

    fn some_role(&self, random: &mut Random) -> String {
        self.roles[random.below(self.roles.len() as u64) as usize].clone()
    }

    fn make_roles(&mut self, random: &mut Random) {
        let count = 4 + random.below(5);
        for number in 0..count {
            let mut options = String::new();
            for (option, odds) in [
                ("SUPERUSER", 14),
                ("NOINHERIT", 4),
                ("CREATEROLE", 4),
                ("CREATEDB", 4),
                ("REPLICATION", 12),
                ("LOGIN", 2),
            ] {
                if random.below(odds) == 0 {
                    options.push(' ');
                    options.push_str(option);
                }
            }
            self.of_roles.push(format!("CREATE ROLE r{number}{options}"));
            self.roles.push(format!("r{number}"));
        }
        for _ in 0..count + random.below(count) {
            let member = random.below(count);
            let of = random.below(count);
            // Towards lower numbers only: no circles.
            if of < member {
                let admin = random.pick(&["", "", " WITH ADMIN OPTION"]);
                self.of_roles.push(format!("GRANT r{of} TO r{member}{admin}"));
            }
        }
        for _ in 0..random.below(5) {
            let (of, member) = (random.pick(&PREDEFINED), random.below(count));
            if of != "pg_database_owner" {
                let admin = random.pick(&["", "", " WITH ADMIN OPTION"]);
                self.of_roles.push(format!("GRANT {of} TO r{member}{admin}"));
                self.writes_all |= of == "pg_write_all_data";
            }
        }
    }

    fn make_schemas(&mut self, random: &mut Random) {
        for number in 0..2 + random.below(2) {
            let owner = self.some_role(random);
            self.statements.push(match random.below(4) {
                0 => format!("CREATE SCHEMA s{number}"),
                _ => format!("CREATE SCHEMA s{number} AUTHORIZATION {owner}"),
            });
            self.schemas.push(format!("s{number}"));
        }
        if random.below(3) == 0 {
            let owner = self.some_role(random);
            self.statements.push(format!("ALTER DATABASE {} OWNER TO {owner}", self.database));
        }
        self.schemas.push("public".to_owned());
    }

    fn some_schema(&self, random: &mut Random) -> String {
        self.schemas[random.below(self.schemas.len() as u64) as usize].clone()
    }

    /// Gives an object to a role, once all are made, or leaves it to the superuser.
    fn give(&mut self, random: &mut Random, kind: &str, name: &str) {
        if random.below(5) > 0 {
            let owner = self.some_role(random);
            self.gifts.push(format!("ALTER {kind} {name} OWNER TO {owner}"));
        }
    }

    fn make_types(&mut self, random: &mut Random) {
        for number in 0..2 {
            let name = format!("{}.e{number}", self.some_schema(random));
            self.statements.push(format!("CREATE TYPE {name} AS ENUM ('low', 'mid', 'high')"));
            self.give(random, "TYPE", &name);
            self.enums.push(name);
            let name = format!("{}.d{number}", self.some_schema(random));
            self.statements.push(format!("CREATE DOMAIN {name} AS text CONSTRAINT filled CHECK (VALUE <> '')"));
            self.give(random, "DOMAIN", &name);
            self.domains.push(name);
        }
    }

    fn make_tables(&mut self, random: &mut Random) {
        // PostgreSQL follows a foreign key as the owner of the table at its other end, and refuses if that one may not look
        // into the schema; here it is followed by whoever. So tables with keys stay the superuser's.
        let mut bound: Vec<String> = Vec::new();
        for number in 0..3 + random.below(3) {
            let (schema, name) = (self.some_schema(random), format!("t{number}"));
            let full = format!("{schema}.{name}");
            let id = random.pick(&[
                "int PRIMARY KEY",
                "serial PRIMARY KEY",
                "int GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY",
            ]);
            let of_c = match random.below(3) {
                0 => self.enums[random.below(2) as usize].clone(),
                1 => self.domains[random.below(2) as usize].clone(),
                _ => "text".to_owned(),
            };
            let a = random.pick(&["int", "int DEFAULT 7", "int UNIQUE", "int NOT NULL"]);
            let check = random.pick(&["", "", ", CONSTRAINT small CHECK (a < 1000)"]);
            let parent = self.relations.last().filter(|_| random.below(3) == 0).map(Relation::full);
            bound.extend(parent.iter().chain(parent.is_some().then_some(&full)).cloned());
            let parent = parent.map(|parent| format!(", CONSTRAINT up FOREIGN KEY (a) REFERENCES {parent}"));
            let parent = parent.unwrap_or_default();
            self.statements.push(format!("CREATE TABLE {full} (id {id}, a {a}, b text, c {of_c}{check}{parent})"));
            self.statements.push(format!(
                "INSERT INTO {full} VALUES (1, 1, 'one', 'low'), (2, 2, 'two', 'mid'), (3, 3, NULL, 'high')"
            ));
            if id.starts_with("serial") || id.contains("IDENTITY") {
                self.statements.push(format!("SELECT setval('{full}_id_seq', 10)"));
                self.sequences.push(format!("{full}_id_seq"));
            }
            self.indexes.push(format!("{full}_pkey"));
            if random.below(2) == 0 {
                self.statements.push(format!("CREATE INDEX i{number} ON {full} (b)"));
                self.indexes.push(format!("{schema}.i{number}"));
            }
            self.relations.push(Relation {
                schema,
                name,
                kind: ObjectKind::Table,
                columns: COLUMNS.to_vec(),
                depth: 0,
            });
        }
        for table in self.relations.clone() {
            if !bound.contains(&table.full()) {
                self.give(random, "TABLE", &table.full());
            }
        }
    }

    fn make_views(&mut self, random: &mut Random) {
        for number in 0..5 + random.below(5) {
            let candidates: Vec<_> = self.relations.iter().filter(|relation| relation.depth < 3).cloned().collect();
            // Views of views more often than chance would have it.
            let deepest = candidates.iter().max_by_key(|relation| relation.depth).cloned();
            let base = match deepest.filter(|_| random.below(3) == 0) {
                Some(relation) => relation,
                None => candidates[random.below(candidates.len() as u64) as usize].clone(),
            };
            let other = candidates[random.below(candidates.len() as u64) as usize].clone();
            let (schema, name) = (self.some_schema(random), format!("v{number}"));
            let full = format!("{schema}.{name}");
            let materialized = random.below(6) == 0;
            let mut columns = base.columns.clone();
            if random.below(2) == 0 && columns.len() > 2 {
                columns.remove(1 + random.below(columns.len() as u64 - 1) as usize);
            }
            let listed = columns.iter().map(|column| format!("x.{column}")).collect::<Vec<_>>().join(", ");
            let filter = match random.below(5) {
                0 => " WHERE x.id < 100".to_owned(),
                1 if columns.contains(&"a") => " WHERE x.a IS DISTINCT FROM 2".to_owned(),
                2 => format!(" WHERE x.id IN (SELECT y.id FROM {} y)", other.full()),
                _ => String::new(),
            };
            let simple = base.kind == ObjectKind::Table || base.kind == ObjectKind::Simple;
            let (kind, query) = match random.below(10) {
                0 => (ObjectKind::View, format!("SELECT DISTINCT {listed} FROM {} x{filter}", base.full())),
                1 => (
                    ObjectKind::View,
                    format!("SELECT {listed} FROM {} x JOIN {} z ON x.id = z.id{filter}", base.full(), other.full()),
                ),
                2 => (ObjectKind::View, format!("SELECT {listed} FROM (SELECT * FROM {}) x{filter}", base.full())),
                3 => {
                    let shared: Vec<_> = columns.iter().copied().filter(|c| *c == "id" || *c == "b").collect();
                    columns.retain(|column| shared.contains(column));
                    let listed =
                        |alias: &str| columns.iter().map(|c| format!("{alias}.{c}")).collect::<Vec<_>>().join(", ");
                    let both = columns.iter().all(|column| other.columns.contains(column));
                    let more = if both {
                        format!(" UNION ALL SELECT {} FROM {} z", listed("z"), other.full())
                    } else {
                        " LIMIT 2".to_owned()
                    };
                    (ObjectKind::View, format!("SELECT {} FROM {} x{more}", listed("x"), base.full()))
                }
                _ => (
                    if simple { ObjectKind::Simple } else { ObjectKind::View },
                    format!("SELECT {listed} FROM {} x{filter}", base.full()),
                ),
            };
            if materialized {
                self.statements.push(format!("CREATE MATERIALIZED VIEW {full} AS {query}"));
                self.give(random, "MATERIALIZED VIEW", &full);
                let depth = base.depth + 1;
                self.relations.push(Relation { schema, name, kind: ObjectKind::Materialized, columns, depth });
                continue;
            }
            let mut options = Vec::new();
            if random.below(3) == 0 {
                options.push("security_invoker");
            }
            if random.below(4) == 0 {
                options.push("security_barrier");
            }
            let options = if options.is_empty() { String::new() } else { format!(" WITH ({})", options.join(", ")) };
            let check = match kind {
                ObjectKind::Simple => random.pick(&["", "", " WITH LOCAL CHECK OPTION", " WITH CASCADED CHECK OPTION"]),
                _ => "",
            };
            self.statements.push(format!("CREATE VIEW {full}{options} AS {query}{check}"));
            self.give(random, "VIEW", &full);
            self.relations.push(Relation { schema, name, kind, columns, depth: base.depth + 1 });
        }
    }

    fn make_others(&mut self, random: &mut Random) {
        for number in 0..1 + random.below(2) {
            let name = format!("{}.q{number}", self.some_schema(random));
            self.statements.push(format!("CREATE SEQUENCE {name}"));
            self.statements.push(format!("SELECT nextval('{name}')"));
            self.give(random, "SEQUENCE", &name);
            self.sequences.push(name);
        }
        for relation in &self.relations {
            if random.below(4) == 0 {
                let kind = match relation.kind {
                    ObjectKind::Table => "TABLE",
                    ObjectKind::Materialized => "MATERIALIZED VIEW",
                    _ => "VIEW",
                };
                self.statements.push(format!("COMMENT ON {kind} {} IS 'of {}'", relation.full(), relation.name));
            }
        }
    }
}
