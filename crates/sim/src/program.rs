//! What sessions do: random transactions, of kinds that each seed mixes in its own way.

use std::collections::VecDeque;

use base::Oid;
use engine_api::{Durability, Isolation, RowLockMode};
use env::sim::SimRandom;

use crate::schema::{BANK, ITEMS, LISTS, REGISTERS};

/// One command of a transaction.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum Act {
    /// A row by its key.
    Read {
        of: Oid,
        id: i32,
    },
    /// Rows, a few at a time.
    Scan {
        of: Oid,
        by: By,
    },
    Insert {
        of: Oid,
        id: i32,
        grp: i32,
    },
    Update {
        of: Oid,
        id: i32,
        grp: Option<i32>,
    },
    Delete {
        of: Oid,
        id: i32,
    },
    Lock {
        of: Oid,
        id: i32,
        mode: RowLockMode,
    },
    /// To an account.
    Add {
        id: i32,
        amount: i64,
    },
    Savepoint,
    RollbackTo,
    Release,
    /// A value of the sequence.
    Next,
    CreateTable {
        with_group: bool,
    },
    DropTable {
        of: Oid,
    },
    CreateIndex {
        of: Oid,
    },
    DropIndex {
        of: Oid,
    },
    AddColumn {
        of: Oid,
    },
    Empty {
        of: Oid,
    },
}

/// Which rows a scan finds, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// All, in the order of their numbers.
    Rows,
    /// Keys from the first up to the last, by the index.
    Ids(i32, i32),
    /// A group, by the index if there is one.
    Group(i32),
}

impl By {
    /// Whether a row is found.
    pub fn finds(self, id: i32, grp: i32) -> bool {
        match self {
            By::Rows => true,
            By::Ids(first, last) => (first..=last).contains(&id),
            By::Group(of) => of == grp,
        }
    }
}

/// How a transaction ends, if nothing comes between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// COMMIT
    Commit,
    /// ROLLBACK
    Rollback,
    /// PREPARE TRANSACTION
    Prepare,
}

/// A transaction to be run.
#[derive(Clone, Debug)]
pub struct Program {
    /// Its level.
    pub isolation: Isolation,
    /// When its reply leaves.
    pub durability: Durability,
    /// Its commands.
    pub acts: VecDeque<Act>,
    /// Its end.
    pub end: End,
    /// All its commands are about registers: its history is judged.
    pub is_judged: bool,
}

const LEVELS: [Isolation; 3] = [Isolation::ReadCommitted, Isolation::RepeatableRead, Isolation::Serializable];

/// Lists.
pub const LISTS_MAX: u64 = 4;

/// What a seed mixes.
#[derive(Clone, Debug)]
pub struct Mix {
    /// Sessions.
    pub sessions: usize,
    /// Accounts.
    pub accounts: i32,
    /// Keys that most transactions are about.
    pub ids: i32,
    /// The level of transactions on lists.
    pub level: Isolation,
    /// Weights of kinds: transfers, items, registers, large ones, definitions, lists.
    kinds: [u64; 6],
    /// In a hundred.
    prepares: u64,
    asynchronous: u64,
}

impl Mix {
    /// A mix: some kinds are left out.
    pub fn choose(random: &mut SimRandom) -> Mix {
        let mut kinds =
            [8, 8, 8, 1, 2, 6].map(|weight| if random.below(4) == 0 { 0 } else { weight * (1 + random.below(3)) });
        kinds[random.below(3) as usize] += 4;
        if random.below(5) == 0 {
            // The log fills up, and so does its disk.
            kinds[3] = 12;
        }
        Mix {
            sessions: 2 + random.below(6) as usize,
            accounts: 3 + random.below(12) as i32,
            level: LEVELS[random.below(3) as usize],
            ids: [4, 12, 40][random.below(3) as usize],
            kinds,
            prepares: random.below(2) * random.below(30),
            asynchronous: random.below(2) * random.below(60),
        }
    }

    /// The next transaction of a session. `made` are tables that may be dropped; registers are used from `first_register` on.
    pub fn program(&self, random: &mut SimRandom, made: &[Oid], first_register: i32) -> Program {
        let mut choice = random.below(self.kinds.iter().sum());
        let mut kind = 0;
        while choice >= self.kinds[kind] {
            choice -= self.kinds[kind];
            kind += 1;
        }
        let mut program = Program {
            isolation: LEVELS[random.below(3) as usize],
            durability: if random.below(100) < self.asynchronous { Durability::Off } else { Durability::On },
            acts: VecDeque::new(),
            end: match random.below(100) {
                n if n < self.prepares => End::Prepare,
                n if n >= 94 => End::Rollback,
                _ => End::Commit,
            },
            is_judged: false,
        };
        match kind {
            0 => self.transfer(random, &mut program),
            1 => {
                let of = if made.is_empty() || random.below(3) > 0 { ITEMS } else { pick(random, made) };
                for _ in 0..1 + random.below(7) {
                    let act = self.act(random, of);
                    program.acts.push_back(act);
                }
            }
            2 => {
                program.isolation = Isolation::Serializable;
                program.is_judged = true;
                // A reply may depend on a commit that is lost if that one did not wait.
                program.durability = Durability::On;
                if program.end == End::Prepare {
                    program.end = End::Commit;
                }
                for _ in 0..1 + random.below(5) {
                    let act = self.register(random, first_register);
                    program.acts.push_back(act);
                }
            }
            3 => self.large(random, &mut program),
            5 => {
                program.isolation = self.level;
                program.is_judged = true;
                program.durability = Durability::On;
                if program.end == End::Prepare {
                    program.end = End::Commit;
                }
                for _ in 0..1 + random.below(5) {
                    let (of, id) = (LISTS, random.below(LISTS_MAX) as i32);
                    program.acts.push_back(match random.below(2) {
                        0 => Act::Read { of, id },
                        _ => Act::Update { of, id, grp: None },
                    });
                }
            }
            _ => self.definitions(random, made, &mut program),
        }
        program
    }

    fn transfer(&self, random: &mut SimRandom, program: &mut Program) {
        if random.below(5) == 0 {
            return program.acts.push_back(Act::Scan { of: BANK, by: By::Rows });
        }
        let (from, amount) = (random.below(self.accounts as u64) as i32, random.below(50) as i64);
        let to = (from + 1 + random.below(self.accounts as u64 - 1) as i32) % self.accounts;
        program.acts.extend([Act::Add { id: from, amount: -amount }, Act::Add { id: to, amount }]);
    }

    fn id(&self, random: &mut SimRandom) -> i32 {
        random.below(self.ids as u64) as i32
    }

    fn act(&self, random: &mut SimRandom, of: Oid) -> Act {
        let (id, grp) = (self.id(random), random.below(5) as i32);
        match random.below(24) {
            0..=5 => Act::Insert { of, id, grp },
            6..=9 => Act::Update { of, id, grp: (random.below(2) == 0).then_some(grp) },
            10..=12 => Act::Delete { of, id },
            13..=15 => Act::Read { of, id },
            16..=18 => Act::Scan { of, by: self.by(random) },
            19 => {
                use RowLockMode::{KeyShare, NoKeyUpdate, Share, Update};
                Act::Lock { of, id, mode: [KeyShare, Share, NoKeyUpdate, Update][random.below(4) as usize] }
            }
            20 | 21 => Act::Savepoint,
            22 => [Act::RollbackTo, Act::Release][random.below(2) as usize].clone(),
            _ => Act::Next,
        }
    }

    fn by(&self, random: &mut SimRandom) -> By {
        let first = self.id(random);
        match random.below(3) {
            0 => By::Rows,
            1 => By::Ids(first, first + random.below(6) as i32),
            _ => By::Group(random.below(5) as i32),
        }
    }

    fn register(&self, random: &mut SimRandom, first: i32) -> Act {
        let (of, id, grp) = (REGISTERS, first + self.id(random), random.below(4) as i32);
        match random.below(14) {
            0..=2 => Act::Insert { of, id, grp },
            3..=5 => Act::Update { of, id, grp: Some(grp) },
            6 => Act::Delete { of, id },
            7..=9 => Act::Read { of, id },
            _ => Act::Scan {
                of,
                by: match self.by(random) {
                    By::Ids(from, to) => By::Ids(first + from, first + to),
                    other => other,
                },
            },
        }
    }

    fn large(&self, random: &mut SimRandom, program: &mut Program) {
        program.isolation = Isolation::ReadCommitted;
        let (of, first) = (ITEMS, 1000 + random.below(20) as i32 * 100);
        let is_update = random.below(2) == 0;
        for id in first..first + 40 + random.below(160) as i32 {
            let grp = random.below(5) as i32;
            program.acts.push_back(match is_update {
                true => Act::Update { of, id, grp: Some(grp) },
                false => Act::Insert { of, id, grp },
            });
            if random.below(60) == 0 {
                program.acts.push_back([Act::Savepoint, Act::RollbackTo][random.below(2) as usize].clone());
            }
        }
    }

    fn definitions(&self, random: &mut SimRandom, made: &[Oid], program: &mut Program) {
        program.isolation = Isolation::ReadCommitted;
        let any = if made.is_empty() || random.below(2) == 0 { ITEMS } else { pick(random, made) };
        let act = match random.below(12) {
            0..=2 => Act::CreateTable { with_group: random.below(2) == 0 },
            3 if !made.is_empty() => Act::DropTable { of: pick(random, made) },
            4..=6 => Act::CreateIndex { of: any },
            7 | 8 => Act::DropIndex { of: any },
            9 => Act::AddColumn { of: any },
            10 if any != ITEMS || random.below(3) == 0 => Act::Empty { of: any },
            _ => Act::CreateIndex { of: any },
        };
        program.acts.push_back(act);
        for _ in 0..random.below(4) {
            program.acts.push_back(Act::Insert { of: any, id: self.id(random), grp: random.below(5) as i32 });
        }
    }
}

fn pick(random: &mut SimRandom, of: &[Oid]) -> Oid {
    of[random.below(of.len() as u64) as usize]
}
