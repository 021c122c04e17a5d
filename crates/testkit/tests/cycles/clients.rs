//! What a client of the cycles is.

use testkit::{Connection, Random};

use super::{bank, definitions, prepared, rows};

/// One client: what it does until the server dies, and what it finds afterwards.
pub trait Client: Send {
    /// What it is called where figures are told.
    fn name(&self) -> &'static str;
    /// Statements that make its tables.
    fn setup(&self) -> Vec<String>;
    /// Looks at what there is before anything goes wrong.
    fn learn(&mut self, _connection: &mut Connection) {}
    /// Works until the connection is lost; how many of its transactions were acknowledged.
    fn run(&mut self, connection: Connection, random: Random) -> u64;
    /// Compares what is there with what it did, and takes what is there as what it did. PANICS if they do not fit.
    fn check(&mut self, connection: &mut Connection);
    /// Removes what would make the next checks long. Acknowledged as a whole.
    fn tidy(&mut self, _connection: &mut Connection) {}
}

/// All of them.
pub fn all() -> Vec<Box<dyn Client>> {
    let mut all: Vec<Box<dyn Client>> = Vec::new();
    all.extend((0..3).map(|me| Box::new(bank::Bank::new(me)) as Box<dyn Client>));
    all.extend((0..2).map(|me| Box::new(rows::Singles::new(me)) as Box<dyn Client>));
    all.extend((0..2).map(|me| Box::new(rows::Lists::new(me)) as Box<dyn Client>));
    all.extend((0..2).map(|me| Box::new(rows::Moving::new(me)) as Box<dyn Client>));
    all.push(Box::new(rows::Large::default()));
    all.push(Box::new(rows::Saved::default()));
    all.push(Box::new(rows::Copied::default()));
    all.push(Box::new(rows::Sequence::default()));
    all.push(Box::new(rows::Relaxed::default()));
    all.push(Box::new(rows::Emptied::default()));
    all.push(Box::new(prepared::Prepared::default()));
    all.extend((0..2).map(|me| Box::new(definitions::Steps::new(me)) as Box<dyn Client>));
    all.push(Box::new(definitions::Beside::default()));
    all
}
