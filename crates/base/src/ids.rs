//! Identifiers and positions. Each is a transparent newtype, so that two of them cannot be swapped in a call.

use serde::{Deserialize, Serialize};
use std::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
        #[serde(transparent)]
        #[repr(transparent)]
        pub struct $name(pub $inner);

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }
    };
}

id! {
    /// PostgreSQL's object identifier: a type, table, index, schema, role… `Oid(0)` is "none" (`InvalidOid`).
    Oid(u32)
}
id! {
    /// A transaction while it runs. Unique in a cluster and never reused; 0 is "none". Its number, which no other transaction has,
    /// stands above [`TxnId::PLACE_BITS`] bits that say where it is kept.
    TxnId(u64)
}

impl TxnId {
    /// Bits below the number.
    pub const PLACE_BITS: u32 = 14;
    /// Bits of the number that a row version has room for.
    pub const TAG_BITS: u32 = 31;

    /// What its versions are marked with, and what `xmin` shows: the low bits of its number.
    #[inline]
    pub const fn tag(self) -> u32 {
        (self.0 >> TxnId::PLACE_BITS) as u32 & ((1 << TxnId::TAG_BITS) - 1)
    }

    /// Its number as `xid8`: the low half is [`TxnId::tag`], the other one says how often the tags have begun anew.
    pub const fn xid8(self) -> u64 {
        (self.0 >> (TxnId::PLACE_BITS + TxnId::TAG_BITS)) << 32 | self.tag() as u64
    }
}

/// What a view does not see, by the numbers of transactions ([`TxnId::xid8`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unseen {
    /// From this number on it sees nobody.
    pub limit: u64,
    /// Those below that it does not see, ascending; all others below have committed before it was taken, were undone, or will
    /// never be.
    pub below: Vec<u64>,
}

/// How a transaction has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It has not.
    Running,
    /// With what it has written, if anything.
    Committed,
    /// Undone, or there was none of this number and will be none.
    Undone,
    /// It was too long ago, or before the start.
    Forgotten,
    /// The number was not given yet.
    Future,
}

id! {
    /// A commit timestamp. Per shard, order of timestamps = order of the log (rule R2). 0 precedes every commit.
    Timestamp(u64)
}
id! {
    /// A position in a shard's log: the number of log bytes before it. A record is durable once the durable
    /// position is at or past the record's *end*.
    Lsn(u64)
}
id! {
    /// A row of one table, never reused (rule R3). Dense per table, ascending in insertion order.
    RowId(u64)
}
id! {
    /// The shape a stored tuple was written with, per table (rule R3): ADD COLUMN makes a new layout.
    LayoutId(u32)
}
id! {
    /// Ordinal of a command within its transaction (rule R6).
    CommandId(u32)
}
id! {
    /// A shard of the cluster.
    ShardId(u32)
}
id! {
    /// A log writer's term of office (rule R14).
    WriterEpoch(u64)
}

impl Oid {
    /// "No object".
    pub const INVALID: Oid = Oid(0);

    /// Whether this names an object at all.
    pub fn is_valid(self) -> bool {
        self.0 != 0
    }
}

impl Timestamp {
    /// Later than every commit.
    pub const MAX: Timestamp = Timestamp(u64::MAX >> 1);
}
