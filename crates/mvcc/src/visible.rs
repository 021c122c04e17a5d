//! What a view sees of a row.
//!
//! Responsible for: walking a chain of versions.
//! Not responsible for: keeping the versions a view needs (`views`, `garbage`).
//!
//! Example: the chain of row 1 is `[undecided(t9)] → [ts 7] → [ts 3]`. A view at 5 sees ts 3, a view at 8 sees ts 7, and
//! t9's own view sees its version from the command after the one that wrote it. If t9 is published at 8, the view at 8
//! sees t9's version although it is not stamped: the slot of t9 says so.

use base::{CommandId, LayoutId, Timestamp, TxnId};

use smallvec::SmallVec;

use crate::epoch::Guard;
use crate::garbage::LaidOut;
use crate::header::{Head, RowHeader};
use crate::txns::{Fate, TxnTable};
use crate::version::{Begin, VersionRef};

/// What a command sees: all commits up to `read_ts`, and what earlier commands of its own transaction wrote (rule R6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct View {
    /// Commits up to here are seen. REQUIRES that a [`ViewToken`](crate::ViewToken) at this timestamp is held.
    pub read_ts: Timestamp,
    /// The transaction whose own writes are seen.
    pub own: Option<TxnId>,
    /// Own versions of commands before this one are seen.
    pub command: CommandId,
}

/// A version as it was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadVersion<'g> {
    /// The layout its tuple is written in.
    pub layout: LayoutId,
    /// The tuple.
    pub tuple: &'g [u8],
    /// The commit that the decision depends on; 0 for an own version. Raises the reader's gate (rule R1).
    pub ts: Timestamp,
    /// Versions of the row had different index keys: an index scan must compare the key of `tuple` with the entry's.
    pub keys_diverged: bool,
    /// The tag of the transaction that wrote it: `xmin`.
    pub writer: u32,
}

/// What a view sees of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Read<'g> {
    /// This version.
    Visible(ReadVersion<'g>),
    /// The row was deleted by this commit (0: by the view's own transaction).
    Gone(Timestamp),
    /// Nothing: not yet inserted, undone, or gone for all.
    Absent,
}

/// The newest state of a row, whatever the view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Newest<'g> {
    /// A committed or own version.
    Live(ReadVersion<'g>),
    /// Deleted by this commit (0: own).
    Deleted(Timestamp),
    /// Another transaction has written it and is undecided. What it wrote is above `decided` in [`Table::versions`](crate::Table::versions).
    Undecided {
        /// Who.
        holder: TxnId,
        /// The newest decided version below; `None`: there is none, or it is deleted.
        decided: Option<ReadVersion<'g>>,
    },
    /// There is no such row.
    Absent,
}

/// Whether a version of the commit at `ts` is left, or one that may be of it: its stamp comes after its publication.
pub(crate) fn has_version_of(header: &RowHeader, ts: Timestamp, guard: &Guard) -> bool {
    let mut next = header.head(guard).newest;
    while let Some(version) = next {
        match version.begin() {
            Begin::Committed(begin) if begin == ts => return true,
            Begin::Committed(begin) if begin < ts => return false,
            Begin::Undecided(_) => return true,
            Begin::Committed(_) | Begin::Aborted => next = version.older(guard),
        }
    }
    false
}

/// The tuples of a row's versions.
pub type Versions<'g> = SmallVec<[LaidOut<'g>; 4]>;

/// Resolves `begin` of a version for good.
enum Decided {
    At(Timestamp, Writer),
    By(TxnId),
    Never,
}

/// Who wrote a version that is decided, as `begin` said it: a version that is stamped keeps its writer's tag itself.
#[derive(Clone, Copy)]
enum Writer {
    Stamped,
    Known(TxnId),
}

fn decide(version: VersionRef<'_>, txns: &TxnTable) -> Decided {
    loop {
        match version.begin() {
            Begin::Committed(ts) => return Decided::At(ts, Writer::Stamped),
            Begin::Aborted => return Decided::Never,
            Begin::Undecided(txn) => match txns.fate(txn) {
                Fate::Undecided => return Decided::By(txn),
                Fate::Committed(ts) => return Decided::At(ts, Writer::Known(txn)),
                // It left its slot after it stamped or marked the version: the next look is final.
                Fate::Over => {}
            },
        }
    }
}

#[inline(always)]
fn found<'g>(
    version: VersionRef<'g>,
    (ts, writer): (Timestamp, Writer),
    head: &Head<'_>,
    txns: &TxnTable,
) -> Option<ReadVersion<'g>> {
    let written = version.written();
    if written.is_tombstone() {
        return None;
    }
    let writer = match writer {
        Writer::Known(txn) => txn.tag(),
        Writer::Stamped => written.tag().unwrap_or_else(|| txns.tag_of_loaded()),
    };
    let (layout, tuple) = (version.tuple_layout(), version.bytes());
    Some(ReadVersion { layout, tuple, ts, keys_diverged: head.diverged, writer })
}

const OWN: Timestamp = Timestamp(0);

/// Asks for the memory of the newest versions, which is what most views see: for all of them at once instead of one miss of the
/// caches after the other. `tuples`: not only for what decides whether they are seen.
#[inline]
pub(crate) fn prefetch<'h>(headers: impl Iterator<Item = &'h RowHeader> + Clone, tuples: bool, guard: &Guard) {
    let newest = headers.filter_map(|header| header.head(guard).newest);
    newest.clone().for_each(VersionRef::prefetch);
    if tuples {
        newest.for_each(VersionRef::prefetch_tuple);
    }
}

/// What `view` sees of a row. Always inline: a scan does it for each row.
#[inline(always)]
pub(crate) fn read<'g>(header: &RowHeader, view: &View, txns: &TxnTable, guard: &'g Guard) -> Read<'g> {
    let head = header.head(guard);
    let mut next = head.newest;
    while let Some(version) = next {
        let seen = match decide(version, txns) {
            Decided::At(ts, writer) => (ts <= view.read_ts).then_some((ts, writer)),
            Decided::By(txn) => {
                (view.own == Some(txn) && version.command() < view.command).then_some((OWN, Writer::Known(txn)))
            }
            Decided::Never => None,
        };
        if let Some(seen) = seen {
            return found(version, seen, &head, txns).map_or(Read::Gone(seen.0), Read::Visible);
        }
        next = version.older(guard);
    }
    Read::Absent
}

/// The newest state of a row for `own`.
pub(crate) fn newest<'g>(header: &RowHeader, own: Option<TxnId>, txns: &TxnTable, guard: &'g Guard) -> Newest<'g> {
    let head = header.head(guard);
    let mut undecided = None;
    let mut next = head.newest;
    while let Some(version) = next {
        let decided = match decide(version, txns) {
            Decided::At(ts, writer) => Some((ts, writer)),
            Decided::By(txn) if own == Some(txn) => Some((OWN, Writer::Known(txn))),
            Decided::By(txn) => {
                undecided = Some(txn);
                None
            }
            Decided::Never => None,
        };
        if let Some(seen) = decided {
            let decided = found(version, seen, &head, txns);
            return match (undecided, decided) {
                (Some(holder), decided) => Newest::Undecided { holder, decided },
                (None, Some(live)) => Newest::Live(live),
                (None, None) => Newest::Deleted(seen.0),
            };
        }
        next = version.older(guard);
    }
    match undecided {
        Some(holder) => Newest::Undecided { holder, decided: None },
        None => Newest::Absent,
    }
}

/// The newest commit that wrote a row, its deletion included; `None` if no decided version is left.
pub(crate) fn last_commit(header: &RowHeader, txns: &TxnTable, guard: &Guard) -> Option<Timestamp> {
    let mut next = header.head(guard).newest;
    while let Some(version) = next {
        if let Decided::At(ts, _) = decide(version, txns) {
            return Some(ts);
        }
        next = version.older(guard);
    }
    None
}

/// The versions of a row that somebody may see, whatever the view, newest first; tombstones are left out.
pub(crate) fn versions<'g>(header: &RowHeader, guard: &'g Guard) -> Versions<'g> {
    let mut found = Versions::new();
    let mut next = header.head(guard).newest;
    while let Some(version) = next {
        if !version.is_tombstone() && version.begin() != Begin::Aborted {
            found.push((version.layout(), version.bytes()));
        }
        next = version.older(guard);
    }
    found
}
