//! Random definitions – schemas, tables, constraints, indexes, views, sequences, enums, domains, extensions – that refer to each other in every way, and statements
//! that rename, move, alter and drop them.
//!
//! Responsible for: the next statement, chosen from what there is ([`step`]); what there is ([`Schema`]); questions whose answers say all that servers
//! keep of it ([`questions()`]); one insert into each table ([`inserts`]).
//! Not responsible for: asking the servers and comparing their answers (`tests/schemas.rs`).

mod alter;
mod create;
mod questions;
mod schema;
mod values;

pub use questions::{ROWS_MAX, at_rest, questions, sequences_at};
pub use schema::{Column, Constraint, Family, Made, Relation, Schema};

use crate::random::Random;

/// What a random statement is made with.
pub(crate) struct Writer<'a> {
    random: &'a mut Random,
    schema: &'a Schema,
}

impl Writer<'_> {
    fn below(&mut self, limit: usize) -> usize {
        self.random.below(limit as u64) as usize
    }

    /// One time in so many.
    fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }

    fn pick<'t>(&mut self, of: &[&'t str]) -> &'t str {
        self.random.pick(of)
    }

    /// One of a list.
    fn any<T: Clone>(&mut self, of: &[T]) -> Option<T> {
        if of.is_empty() {
            return None;
        }
        let at = self.below(of.len());
        of.get(at).cloned()
    }

    /// A schema to make something in.
    fn place(&mut self) -> String {
        let schemas = self.schema.schemas.clone();
        self.any(&schemas).unwrap_or_else(|| "public".to_owned())
    }

    /// A name that may be taken; some need quotes.
    fn name(&mut self, prefix: &str) -> String {
        match self.below(24) {
            0 => format!("\"{prefix} odd\""),
            1 => format!("\"{}Mixed\"", prefix.to_uppercase()),
            _ => format!("{prefix}{}", self.below(9)),
        }
    }

    /// A name with its schema, or now and then without.
    fn qualified(&mut self, schema: &str, name: &str) -> String {
        if self.one_in(6) { name.to_owned() } else { format!("{schema}.{name}") }
    }

    /// A new name for something, in some schema.
    fn new_name(&mut self, prefix: &str) -> String {
        let (schema, name) = (self.place(), self.name(prefix));
        self.qualified(&schema, &name)
    }

    fn named(&mut self, relation: &Relation) -> String {
        self.qualified(&relation.schema, &relation.name)
    }

    fn relation(&mut self, kinds: &str) -> Option<Relation> {
        let of_kind = self.schema.of_kinds(kinds);
        self.any(&of_kind)
    }

    fn behaviour(&mut self) -> &'static str {
        self.pick(&["", "", " RESTRICT", " CASCADE", " CASCADE"])
    }
}

/// One statement.
pub fn step(random: &mut Random, schema: &Schema) -> String {
    let mut writer = Writer { random, schema };
    loop {
        if let Some(sql) = writer.step() {
            return sql;
        }
    }
}

/// One row for each table.
pub fn inserts(random: &mut Random, schema: &Schema) -> Vec<String> {
    let mut writer = Writer { random, schema };
    schema.of_kinds("r").iter().map(|table| writer.insert(table)).collect()
}

impl Writer<'_> {
    fn step(&mut self) -> Option<String> {
        let few = |kinds: &str, enough: usize| self.schema.of_kinds(kinds).len() < enough;
        let (tables, views, sequences) = (few("r", 6), few("vm", 6), few("S", 5));
        let (types, schemas) = (self.schema.types.len() < 6, self.schema.schemas.len() < 3);
        match self.below(100) {
            0..=2 if schemas => Some(format!("CREATE SCHEMA {}", self.name("s"))),
            3..=13 if tables => Some(self.create_table()),
            14..=18 => self.create_index(),
            19..=28 if views => self.create_view(),
            29..=31 if sequences => Some(self.create_sequence()),
            32..=34 if types => Some(self.create_enum()),
            35..=38 if types => Some(self.create_domain()),
            39..=54 => self.rename(),
            55..=61 => self.set_schema(),
            62..=70 => self.drop(),
            71..=88 => self.alter_table(),
            89..=90 => self.alter_sequence(),
            91..=93 => self.alter_type(),
            94..=95 => self.comment(),
            96 => self.alter_view(),
            97 => Some(self.search_path()),
            98..=99 => Some(self.extension()),
            _ => None,
        }
    }

    fn search_path(&mut self) -> String {
        let (first, second) = (self.place(), self.place());
        match self.below(4) {
            0 => format!("SET search_path = {first}"),
            1 => format!("SET search_path = {first}, {second}"),
            2 => "SET search_path = ''".to_owned(),
            _ => format!("SET search_path = {first}, public"),
        }
    }
}
