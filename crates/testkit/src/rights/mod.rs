//! Random worlds of roles and objects, and statements that roles try in them: rights, visible rows and messages.
//!
//! Responsible for: what is in a world ([`World`]) and the statements that make it, the cases ([`Case`]): who one becomes, by
//! which way, and what is tried then, statements and objects of every kind.
//! Not responsible for: sending and comparing (`tests/rights.rs`), and for what is there on one server only: objects that Nyala
//! refuses to make (COMPATIBILITY.md) are not in the worlds.
//! Invariants: a world is a function of the seed. A case leaves the world as it was: it is rolled back, or says what undoes it.

mod definitions;
mod grants;
mod looks;
mod queries;
mod sessions;
mod world;

use crate::random::Random;

pub use sessions::PROBE_RIGHTS;
pub use world::World;

/// What a relation is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObjectKind {
    /// A table.
    Table,
    /// A view that can be written through.
    Simple,
    /// Any other view.
    View,
    /// A materialized view.
    Materialized,
}

/// A relation with columns.
#[derive(Debug, Clone)]
pub struct Relation {
    /// Its schema.
    pub schema: String,
    /// Its name in that schema.
    pub name: String,
    /// What it is.
    pub kind: ObjectKind,
    /// Its columns, of those that all tables have.
    pub columns: Vec<&'static str>,
    /// How many views there are on the longest way to a table.
    pub depth: u32,
}

impl Relation {
    /// The name with its schema.
    pub fn full(&self) -> String {
        format!("{}.{}", self.schema, self.name)
    }
}

/// One message to both servers.
#[derive(Debug, Clone)]
pub struct Step {
    /// The statement, or several.
    pub sql: String,
    /// Whether it goes by the extended protocol.
    pub extended: bool,
    /// Whether types of columns are compared: the domains of `information_schema` are not there.
    pub typed: bool,
}

impl Step {
    /// A statement by the simple protocol.
    pub fn plain(sql: String) -> Step {
        Step { sql, extended: false, typed: true }
    }
}

/// How a case begins.
#[derive(Debug, Clone)]
pub enum Start {
    /// A block of the superuser's session; these statements come first.
    Block(Vec<String>),
    /// No block: each statement stands for itself.
    Open(Vec<String>),
    /// A login of its own, as this role, with these start-up parameters, after statements of the superuser.
    Login {
        /// The role.
        role: String,
        /// Names and values.
        parameters: Vec<(String, String)>,
        /// What the superuser does before.
        before: Vec<String>,
    },
}

/// A role, the way to become it, and what is tried.
#[derive(Debug, Clone)]
pub struct Case {
    /// How it begins.
    pub start: Start,
    /// What is tried.
    pub steps: Vec<Step>,
    /// What a superuser does afterwards, whether or not there is anything to undo.
    pub undo: Vec<String>,
    /// What a superuser looks at before it is undone.
    pub probe: Option<String>,
}

/// Writes statements about a world.
pub(crate) struct Writer<'a> {
    random: &'a mut Random,
    world: &'a World,
}

impl Writer<'_> {
    fn below(&mut self, limit: u64) -> u64 {
        self.random.below(limit)
    }

    /// True once in `of` times.
    fn once_in(&mut self, of: u64) -> bool {
        self.below(of) == 0
    }

    fn pick<'t, T: ?Sized>(&mut self, of: &[&'t T]) -> &'t T {
        self.random.pick(of)
    }

    fn one_of<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize].clone()
    }

    fn role(&mut self) -> String {
        self.one_of(&self.world.roles)
    }

    fn schema(&mut self) -> String {
        self.one_of(&self.world.schemas)
    }

    fn relation(&mut self) -> Relation {
        self.one_of(&self.world.relations)
    }

    fn of_kind(&mut self, kinds: &[ObjectKind]) -> Relation {
        let found: Vec<_> = self.world.relations.iter().filter(|relation| kinds.contains(&relation.kind)).collect();
        self.pick(&found).clone()
    }

    fn table(&mut self) -> Relation {
        self.of_kind(&[ObjectKind::Table])
    }

    fn view(&mut self) -> Relation {
        self.of_kind(&[ObjectKind::Simple, ObjectKind::View])
    }

    fn sequence(&mut self) -> String {
        self.one_of(&self.world.sequences)
    }

    /// A sequence that is no column's.
    fn free_sequence(&mut self) -> String {
        let free: Vec<_> = self.world.sequences.iter().filter(|name| !name.ends_with("_id_seq")).collect();
        self.pick(&free).clone()
    }

    fn index(&mut self) -> String {
        self.one_of(&self.world.indexes)
    }

    fn column(&mut self, relation: &Relation) -> &'static str {
        self.pick(&relation.columns)
    }

    /// The name of a relation: now and then without its schema, so that the search path has its say.
    fn name_of(&mut self, relation: &Relation) -> String {
        if self.once_in(12) { relation.name.clone() } else { relation.full() }
    }
}

/// A random case.
pub fn case(random: &mut Random, world: &World) -> Case {
    let mut writer = Writer { random, world };
    match writer.below(100) {
        0..=4 => writer.login(),
        5..=14 => writer.open(),
        _ => writer.block(),
    }
}
