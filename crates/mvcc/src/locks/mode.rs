//! Lock modes and which of them conflict: PostgreSQL's two tables.
//!
//! Responsible for: the modes of rows and tables, as bits of a mask that a holder or a request carries.
//! Not responsible for: who gets a lock (`queue`).
//! Invariants: conflict is symmetric; a mode *covers* another if it conflicts with all that the other conflicts with.

/// PostgreSQL's four row-lock strengths, weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum RowLockMode {
    /// FOR KEY SHARE
    KeyShare,
    /// FOR SHARE
    Share,
    /// FOR NO KEY UPDATE
    NoKeyUpdate,
    /// FOR UPDATE
    Update,
}

/// PostgreSQL's eight table-lock modes, weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum TableLockMode {
    /// SELECT
    AccessShare,
    /// SELECT FOR UPDATE
    RowShare,
    /// INSERT, UPDATE, DELETE
    RowExclusive,
    /// VACUUM, ANALYZE, CREATE INDEX CONCURRENTLY
    ShareUpdateExclusive,
    /// CREATE INDEX
    Share,
    /// CREATE TRIGGER, ADD FOREIGN KEY
    ShareRowExclusive,
    /// REFRESH CONCURRENTLY
    Exclusive,
    /// ALTER, DROP, TRUNCATE
    AccessExclusive,
}

/// What to do about a lock that another transaction holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitPolicy {
    /// Wait in the queue.
    Block,
    /// Answer [`LockResult::WouldBlock`](crate::LockResult::WouldBlock) (NOWAIT, SKIP LOCKED).
    Never,
}

/// Modes as bits.
pub(crate) type Modes = u8;

const ROW_CONFLICTS: [Modes; 4] = [0b1000, 0b1100, 0b1110, 0b1111];

const TABLE_CONFLICTS: [Modes; 8] = [
    0b1000_0000, // AccessShare
    0b1100_0000, // RowShare
    0b1111_0000, // RowExclusive
    0b1111_1000, // ShareUpdateExclusive
    0b1110_1100, // Share
    0b1111_1100, // ShareRowExclusive
    0b1111_1110, // Exclusive
    0b1111_1111, // AccessExclusive
];

/// Which of the two tables applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConflictTable {
    Row,
    Table,
}

impl ConflictTable {
    /// All modes that conflict with one of `modes`.
    pub fn conflicts(self, modes: Modes) -> Modes {
        let table: &[Modes] = match self {
            ConflictTable::Row => &ROW_CONFLICTS,
            ConflictTable::Table => &TABLE_CONFLICTS,
        };
        table
            .iter()
            .enumerate()
            .filter(|(bit, _)| modes & (1 << bit) != 0)
            .fold(0, |sum, (_, conflicts)| sum | conflicts)
    }

    /// Whether one of `held` conflicts with one of `wanted`.
    pub fn conflict(self, held: Modes, wanted: Modes) -> bool {
        self.conflicts(held) & wanted != 0
    }

    /// Whether who holds `held` needs nothing more for `wanted`.
    pub fn covers(self, held: Modes, wanted: Modes) -> bool {
        if held == 0 || held & wanted == wanted {
            return held != 0;
        }
        self.conflicts(wanted) & !self.conflicts(held) == 0
    }
}

impl RowLockMode {
    pub(crate) fn bit(self) -> Modes {
        1 << self as u8
    }
}

impl TableLockMode {
    pub(crate) fn bit(self) -> Modes {
        1 << self as u8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conflict_tables_are_symmetric() {
        for (kind, modes) in [(ConflictTable::Row, 4), (ConflictTable::Table, 8)] {
            for a in 0..modes {
                for b in 0..modes {
                    assert_eq!(kind.conflict(1 << a, 1 << b), kind.conflict(1 << b, 1 << a), "{kind:?} {a} {b}");
                }
            }
        }
    }

    #[test]
    fn stronger_row_modes_cover_weaker_ones() {
        for a in 0..4 {
            for b in 0..4 {
                assert_eq!(ConflictTable::Row.covers(1 << a, 1 << b), a >= b);
            }
        }
        assert!(!ConflictTable::Table.covers(TableLockMode::RowExclusive.bit(), TableLockMode::Share.bit()));
        assert!(ConflictTable::Table.covers(TableLockMode::AccessExclusive.bit(), TableLockMode::Share.bit()));
    }
}
