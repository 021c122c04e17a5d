//! RENAME, SET SCHEMA, DROP and ALTER of each kind.

use super::Writer;
use super::schema::{Constraint, Family, Made, Relation};
use super::values::names_of;

/// The word for a kind of relation.
fn word(kind: char) -> &'static str {
    match kind {
        'v' => "VIEW",
        'm' => "MATERIALIZED VIEW",
        'S' => "SEQUENCE",
        'i' => "INDEX",
        _ => "TABLE",
    }
}

fn prefix(kind: char) -> &'static str {
    match kind {
        'v' | 'm' => "v",
        'S' => "q",
        'i' => "i",
        _ => "t",
    }
}

impl Writer<'_> {
    /// A schema but for the one that is there from the beginning.
    fn own_place(&mut self) -> Option<String> {
        let own: Vec<String> = self.schema.schemas.iter().filter(|name| *name != "public").cloned().collect();
        self.any(&own)
    }

    fn made(&mut self) -> Option<Made> {
        let types = self.schema.types.clone();
        self.any(&types)
    }

    fn constraint(&mut self, of_table: bool) -> Option<Constraint> {
        let fitting: Vec<Constraint> =
            self.schema.constraints.iter().filter(|c| c.of_table == of_table).cloned().collect();
        self.any(&fitting)
    }

    fn column(&mut self, relation: &Relation) -> Option<String> {
        let columns: Vec<String> = relation.columns.iter().map(|c| c.name.clone()).collect();
        self.any(&columns)
    }

    pub(super) fn rename(&mut self) -> Option<String> {
        Some(match self.below(14) {
            0..=2 => {
                let relation = self.relation("rvmSi")?;
                let new = self.name(prefix(relation.kind));
                format!("ALTER {} {} RENAME TO {new}", word(relation.kind), self.named(&relation))
            }
            3..=6 => {
                let relation = self.relation("rvm")?;
                let column = self.column(&relation)?;
                let new = match self.below(8) {
                    0 => "\"Odd col\"".to_owned(),
                    1 => "\"user\"".to_owned(),
                    _ => ["a", "b", "c", "d", "e", "f", "g", "h", "k", "m"][self.below(10)].to_owned(),
                };
                format!("ALTER {} {} RENAME COLUMN {column} TO {new}", word(relation.kind), self.named(&relation))
            }
            7 | 8 => {
                let constraint = self.constraint(true)?;
                format!("ALTER TABLE {} RENAME CONSTRAINT {} TO {}", constraint.of, constraint.name, self.name("c"))
            }
            9 => {
                let schema = self.own_place()?;
                format!("ALTER SCHEMA {schema} RENAME TO {}", self.name("s"))
            }
            10 => {
                let constraint = self.constraint(false)?;
                format!("ALTER DOMAIN {} RENAME CONSTRAINT {} TO {}", constraint.of, constraint.name, self.name("k"))
            }
            11 => {
                let made = self.made().filter(|made| !made.labels.is_empty() && !made.domain)?;
                let label = self.any(&made.labels)?;
                let new = self.pick(&["'low'", "'mid'", "'high'", "'new'", "'newer'", "'a b'", "'it''s'"]);
                format!("ALTER TYPE {} RENAME VALUE {label} TO {new}", self.made_name(&made))
            }
            _ => {
                let made = self.made()?;
                let (word, prefix) = if made.domain { ("DOMAIN", "d") } else { ("TYPE", "e") };
                format!("ALTER {word} {} RENAME TO {}", self.made_name(&made), self.name(prefix))
            }
        })
    }

    pub(super) fn set_schema(&mut self) -> Option<String> {
        let to = self.place();
        if self.one_in(4) {
            let made = self.made()?;
            let word = if made.domain { "DOMAIN" } else { "TYPE" };
            return Some(format!("ALTER {word} {} SET SCHEMA {to}", self.made_name(&made)));
        }
        let relation = self.relation("rvmS")?;
        Some(format!("ALTER {} {} SET SCHEMA {to}", word(relation.kind), self.named(&relation)))
    }

    pub(super) fn drop(&mut self) -> Option<String> {
        let missing = if self.one_in(6) { "IF EXISTS " } else { "" };
        let behaviour = self.behaviour();
        Some(match self.below(12) {
            0 if self.one_in(3) => {
                let schema = self.own_place()?;
                format!("DROP SCHEMA {missing}{schema}{behaviour}")
            }
            0..=2 => {
                let made = self.made()?;
                let word = if made.domain { "DOMAIN" } else { "TYPE" };
                format!("DROP {word} {missing}{}{behaviour}", self.made_name(&made))
            }
            3 => {
                let index = self.relation("i")?;
                format!("DROP INDEX {missing}{}{behaviour}", self.named(&index))
            }
            4 | 5 => {
                let sequence = self.relation("S")?;
                format!("DROP SEQUENCE {missing}{}{behaviour}", self.named(&sequence))
            }
            6 => {
                let (first, second) = (self.relation("r")?, self.relation("r")?);
                format!("DROP TABLE {missing}{}, {}{behaviour}", first.full(), second.full())
            }
            7 | 8 => {
                let view = self.relation("vm")?;
                format!("DROP {} {missing}{}{behaviour}", word(view.kind), self.named(&view))
            }
            _ => {
                let table = self.relation("r")?;
                format!("DROP TABLE {missing}{}{behaviour}", self.named(&table))
            }
        })
    }

    /// A statement about one of the extensions whose functions expressions call.
    pub(super) fn extension(&mut self) -> String {
        let name = self.pick(&["pgcrypto", "pgcrypto", "\"uuid-ossp\""]);
        let place = self.place();
        if !self.schema.extensions.iter().any(|(known, _)| known == name) {
            let schema = if self.one_in(2) { format!(" SCHEMA {place}") } else { String::new() };
            return format!("CREATE EXTENSION {name}{schema}");
        }
        match self.below(6) {
            0 => format!("CREATE EXTENSION IF NOT EXISTS {name} SCHEMA {place}"),
            1 => format!("DROP EXTENSION {name}{}", self.behaviour()),
            2 => format!("COMMENT ON EXTENSION {name} IS {}", self.pick(&["'one'", "NULL"])),
            _ => format!("ALTER EXTENSION {name} SET SCHEMA {place}"),
        }
    }

    pub(super) fn alter_table(&mut self) -> Option<String> {
        let table = self.relation("r")?;
        let count = if self.one_in(4) { 2 } else { 1 };
        let mut commands = Vec::new();
        for _ in 0..count {
            commands.push(self.command(&table)?);
        }
        Some(format!("ALTER TABLE {} {}", self.named(&table), commands.join(", ")))
    }

    fn command(&mut self, table: &Relation) -> Option<String> {
        let names = names_of(&table.columns, None);
        let column = self.any(&table.columns)?;
        let name = column.name.clone();
        Some(match self.below(20) {
            // The constants of expressions over texts, dates and labels keep the type that the column had in PostgreSQL (decision 0022).
            0..=2 if [Family::Number, Family::Boolean, Family::Other].contains(&column.family) => {
                let (ty, family) = self.known_ty();
                let using = match self.below(4) {
                    0 => format!(" USING NULL::{ty}"),
                    1 => format!(" USING {name}::text::{ty}"),
                    _ => String::new(),
                };
                let collation = self.collation(family);
                format!("ALTER COLUMN {name} TYPE {ty}{collation}{using}")
            }
            3..=5 => format!("ALTER COLUMN {name} SET DEFAULT {}", self.default(column.family, &column.ty)),
            6 => format!("ALTER COLUMN {name} DROP DEFAULT"),
            7 => format!("ALTER COLUMN {name} {}", self.pick(&["SET NOT NULL", "DROP NOT NULL", "DROP EXPRESSION"])),
            8..=10 => format!("DROP COLUMN {name}{}", self.behaviour()),
            11..=13 => {
                let (ty, family) = self.ty();
                let new = ["a", "b", "c", "d", "e", "f", "g", "h"][self.below(8)];
                let constraints = self.column_constraints(new, &ty, family, &names);
                format!("ADD COLUMN {new} {ty}{constraints}")
            }
            14..=16 => format!("ADD {}", self.table_constraint(&names)),
            17 => match self.below(4) {
                0 => format!("ALTER COLUMN {name} ADD GENERATED ALWAYS AS IDENTITY"),
                1 => format!("ALTER COLUMN {name} DROP IDENTITY IF EXISTS"),
                2 => "SET UNLOGGED".to_owned(),
                _ => "SET LOGGED".to_owned(),
            },
            18 | 19 => {
                let full = table.full();
                let own: Vec<Constraint> = self.schema.constraints.iter().filter(|c| c.of == full).cloned().collect();
                let constraint = self.any(&own)?;
                format!("DROP CONSTRAINT {}{}", constraint.name, self.behaviour())
            }
            _ => return None,
        })
    }

    pub(super) fn alter_sequence(&mut self) -> Option<String> {
        let sequence = self.relation("S")?;
        let name = self.named(&sequence);
        let owned = self.owned_by();
        Some(format!("ALTER SEQUENCE {name}{owned}"))
    }

    pub(super) fn alter_type(&mut self) -> Option<String> {
        let made = self.made()?;
        let name = self.made_name(&made);
        if !made.domain {
            let near = if self.one_in(2) { String::new() } else { format!(" BEFORE {}", self.label(&made.full())) };
            let label = self.pick(&["'extra'", "'more'", "'low'", "'b c'"]);
            return Some(format!("ALTER TYPE {name} ADD VALUE {label}{near}"));
        }
        // A condition that speaks of its own domain has no end, nor does PostgreSQL's search for what a domain is over if its default does.
        let mut others = self.schema.clone();
        others.types.retain(|made| !made.domain);
        let value = vec![("VALUE".to_owned(), made.full(), made.family)];
        let condition = Writer { random: self.random, schema: &others }.condition(&value, 1);
        Some(match self.below(6) {
            0 => format!("ALTER DOMAIN {name} DROP DEFAULT"),
            1 => format!(
                "ALTER DOMAIN {name} SET DEFAULT {}",
                Writer { random: self.random, schema: &others }.default(made.family, &made.full())
            ),
            2 | 3 => {
                let named = if self.one_in(2) { format!("CONSTRAINT {} ", self.name("k")) } else { String::new() };
                let valid = self.pick(&["", "", " NOT VALID"]);
                format!("ALTER DOMAIN {name} ADD {named}CHECK ({condition}){valid}")
            }
            4 => format!("ALTER DOMAIN {name} {}", self.pick(&["SET NOT NULL", "DROP NOT NULL"])),
            _ => {
                let full = made.full();
                let own: Vec<Constraint> = self.schema.constraints.iter().filter(|c| c.of == full).cloned().collect();
                format!("ALTER DOMAIN {name} DROP CONSTRAINT {}{}", self.any(&own)?.name, self.behaviour())
            }
        })
    }

    pub(super) fn alter_view(&mut self) -> Option<String> {
        let view = self.relation("v")?;
        let name = self.named(&view);
        Some(match self.below(3) {
            0 => format!("CREATE OR REPLACE VIEW {name} AS {}", self.query()?),
            1 => {
                let column = self.any(&view.columns)?;
                let default = self.default(column.family, &column.ty);
                format!("ALTER VIEW {name} ALTER COLUMN {} SET DEFAULT {default}", column.name)
            }
            _ => format!("ALTER VIEW {name} ALTER COLUMN {} DROP DEFAULT", self.column(&view)?),
        })
    }

    pub(super) fn comment(&mut self) -> Option<String> {
        let what = match self.below(5) {
            0 => {
                let relation = self.relation("rvmSi")?;
                format!("{} {}", word(relation.kind), self.named(&relation))
            }
            1 => {
                let relation = self.relation("rvm")?;
                let column = self.column(&relation)?;
                format!("COLUMN {}.{column}", relation.full())
            }
            2 => {
                let constraint = self.constraint(true)?;
                format!("CONSTRAINT {} ON {}", constraint.name, constraint.of)
            }
            3 => {
                let made = self.made()?;
                format!("{} {}", if made.domain { "DOMAIN" } else { "TYPE" }, self.made_name(&made))
            }
            _ => format!("SCHEMA {}", self.own_place()?),
        };
        let text = self.pick(&["'one'", "'two'", "NULL"]);
        Some(format!("COMMENT ON {what} IS {text}"))
    }
}
