//! The rows of one table.
//!
//! Responsible for: reading rows, the writes of transactions, loading rows at recovery.
//! Not responsible for: indexes, the tuple's format, when a transaction may write (`engine`).
//! Invariants: a write happens only under the row's exclusive lock, which is checked, and through the transaction's only
//! token, borrowed mutably, so no two threads write for one transaction (H1).

use std::sync::Arc;

use base::{CommandId, LayoutId, Oid, RowId, Timestamp, TxnId};

use crate::density::Density;
use crate::directory::{CHUNK_ROWS, Directory};
use crate::epoch::{Guard, pin};
use crate::garbage::{self, Asked, Bounds, Left, RowGarbage};
use crate::header::RowHeader;
use crate::locks::row::{Released, RowLock, lock_fresh};
use crate::locks::{LockKey, Modes, Wakes};
use crate::memory::{Account, TableMemory};
use crate::prefetch;
use crate::store::Shared;
use crate::sync::spin;
use crate::txn::Transaction;
use crate::version::{Begin, PrivateVersion};
use crate::visible::{self, Newest, Read, Versions, View};

/// Rows whose memory is asked for together: about as many misses as a core can have under way.
const PREFETCHED: usize = 16;

/// The rows of one table. Dropping it frees them at once.
pub struct Table {
    pub(crate) shared: Arc<Shared>,
    oid: Oid,
    number: u64,
    pub(crate) directory: Directory,
    pub(crate) account: Account,
    indexes: Arc<dyn RowGarbage>,
}

impl std::fmt::Debug for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Table").field("oid", &self.oid).finish_non_exhaustive()
    }
}

impl Table {
    pub(crate) fn new(shared: Arc<Shared>, oid: Oid, number: u64, indexes: Arc<dyn RowGarbage>) -> Table {
        let account = Account::new(shared.memory.clone());
        Table { shared, oid, number, directory: Directory::new(), account, indexes }
    }

    /// The table's OID.
    pub fn oid(&self) -> Oid {
        self.oid
    }

    /// RowIds below this have been handed out: where a scan that begins now ends.
    pub fn end(&self) -> RowId {
        self.directory.end()
    }

    /// Rows that exist, roughly.
    pub fn row_count(&self) -> u64 {
        self.account.rows()
    }

    /// Versions ever made: inserts, updates and deletes since the table was opened.
    pub fn changes(&self) -> u64 {
        self.account.versions_made()
    }

    /// Bytes held.
    pub fn memory(&self) -> TableMemory {
        self.account.used()
    }

    /// Counts anew what is held, by looking at everything: what [`Table::memory`] says, if nobody writes meanwhile.
    pub fn recount(&self) -> TableMemory {
        let mut found = TableMemory { headers: self.directory.bytes(), ..TableMemory::default() };
        let guard = pin();
        let end = self.end();
        let mut row = self.directory.skip_missing(RowId(0), end);
        while row < end {
            let mut version = self.directory.get(row, &guard).and_then(|header| header.head(&guard).newest);
            found.rows += u64::from(version.is_some());
            while let Some(this) = version {
                found.versions += this.counted();
                found.version_count += 1;
                version = this.older(&guard);
            }
            row = self.directory.skip_missing(RowId(row.0 + 1), end);
        }
        found
    }

    /// What `view` sees of a row.
    #[inline]
    pub fn read<'g>(&'g self, row: RowId, view: &View, guard: &'g Guard) -> Read<'g> {
        match self.directory.get(row, guard) {
            Some(header) => visible::read(header, view, &self.shared.txns, guard),
            None => Read::Absent,
        }
    }

    /// As [`Table::read`] of one row after the other, while `each` answers `true`; it is told the place in `rows`. Their memory is
    /// asked for before, some rows at a time, so that rows that lie apart do not cost a miss of the caches for the header, another
    /// for the version and more for the tuple each. `tuples`: the tuples are going to be read. Answers how many rows were read.
    pub fn read_each<'g>(
        &'g self,
        rows: &[RowId],
        tuples: bool,
        view: &View,
        guard: &'g Guard,
        mut each: impl FnMut(usize, Read<'g>) -> bool,
    ) -> usize {
        let mut headers = [None; PREFETCHED];
        for (group, rows) in rows.chunks(PREFETCHED).enumerate() {
            let headers = &mut headers[..rows.len()];
            for (header, row) in headers.iter_mut().zip(rows) {
                *header = self.directory.get(*row, guard);
                header.inspect(|header| prefetch::line::<RowHeader>(*header));
            }
            visible::prefetch(headers.iter().flatten().copied(), tuples, guard);
            for (at, header) in headers.iter().enumerate() {
                let read = header.map_or(Read::Absent, |header| visible::read(header, view, &self.shared.txns, guard));
                let at = group * PREFETCHED + at;
                if !each(at, read) {
                    return at + 1;
                }
            }
        }
        rows.len()
    }

    /// Asks for the memory of a row's header, which is at depth 0, or of the version at `depth` of its chain, the newest at 1. Reads
    /// what is above.
    pub(crate) fn prefetch(&self, row: RowId, depth: usize, guard: &Guard) {
        let Some(header) = self.directory.get(row, guard) else { return };
        if depth == 0 {
            return prefetch::line::<RowHeader>(header);
        }
        let newest = header.head(guard).newest;
        let version = (1..depth).fold(newest, |above, _| above.and_then(|above| above.older(guard)));
        version.inspect(|version| version.prefetch());
    }

    /// The newest state of a row, with the versions of `own`.
    pub fn newest<'g>(&'g self, row: RowId, own: Option<TxnId>, guard: &'g Guard) -> Newest<'g> {
        match self.directory.get(row, guard) {
            Some(header) => visible::newest(header, own, &self.shared.txns, guard),
            None => Newest::Absent,
        }
    }

    /// The newest commit that wrote a row, its deletion included; `None` if no decided version is left: the row was never
    /// committed, or is gone for all views.
    pub fn last_commit(&self, row: RowId, guard: &Guard) -> Option<Timestamp> {
        self.directory.get(row, guard).and_then(|header| visible::last_commit(header, &self.shared.txns, guard))
    }

    /// Whether a version that the commit at `ts` wrote of a row is left; one that is not may have been superseded and freed.
    pub fn has_version_of(&self, row: RowId, ts: Timestamp, guard: &Guard) -> bool {
        self.directory.get(row, guard).is_some_and(|header| visible::has_version_of(header, ts, guard))
    }

    /// Looks at the rows from `from` up to `end`, `count` at most, for one that was written by a commit after `after`.
    /// Answers where to go on, and the commit found.
    pub fn find_commit_after(
        &self,
        from: RowId,
        end: RowId,
        after: Timestamp,
        count: usize,
        guard: &Guard,
    ) -> (RowId, Option<Timestamp>) {
        let mut row = self.directory.skip_missing(from, end);
        for _ in 0..count {
            if row >= end {
                break;
            }
            if let Some(ts) = self.last_commit(row, guard).filter(|ts| *ts > after) {
                return (row, Some(ts));
            }
            row = self.directory.skip_missing(RowId(row.0 + 1), end);
        }
        (row, None)
    }

    /// The newest commit that deleted a row of which nothing is left. A row that was once seen and is no more found has been
    /// deleted by this commit or an older one.
    pub fn newest_gone(&self) -> Timestamp {
        self.account.gone()
    }

    /// All versions of a row that some view may see, newest first: what an index build enters. A version that the collector
    /// unlinks meanwhile may be among them; looking again under the same guard tells.
    pub fn versions<'g>(&'g self, row: RowId, guard: &'g Guard) -> Versions<'g> {
        self.directory.get(row, guard).map_or_else(Versions::new, |header| visible::versions(header, guard))
    }

    /// Walks the rows from `from` up to `end` in RowId order while `each` answers `true`; rows that the view finds absent
    /// are passed over. Returns where to go on; `end` when done. Take `end` once, from [`Table::end`], when the scan opens.
    /// `tuples`: the tuples are going to be read, see [`Table::read_each`].
    pub fn scan<'g>(
        &'g self,
        from: RowId,
        end: RowId,
        tuples: bool,
        view: &View,
        guard: &'g Guard,
        mut each: impl FnMut(RowId, Read<'g>) -> bool,
    ) -> RowId {
        let mut row = from;
        while row < end {
            let place = (row.0 % CHUNK_ROWS as u64) as usize;
            let Some(chunk) = self.directory.chunk(row, guard) else {
                row = self.directory.skip_missing(row, end);
                continue;
            };
            let rest = CHUNK_ROWS.min(place.saturating_add((end.0 - row.0) as usize));
            for headers in chunk[place..rest].chunks(PREFETCHED) {
                visible::prefetch(headers.iter(), tuples, guard);
                for header in headers {
                    let (at, read) = (row, visible::read(header, view, &self.shared.txns, guard));
                    row.0 += 1;
                    if !matches!(read, Read::Absent) && !each(at, read) {
                        return row;
                    }
                }
            }
        }
        row
    }

    /// Whether versions of the row had different index keys. Stays set for the row's life: an index scan may hold an
    /// old entry that is about to be removed, and must still compare.
    pub fn keys_diverged(&self, row: RowId, guard: &Guard) -> bool {
        self.directory.get(row, guard).is_some_and(|header| header.head(guard).diverged)
    }

    /// Notes that versions of the row have different index keys (an index build that entered old versions).
    pub fn mark_keys_diverged(&self, row: RowId, guard: &Guard) {
        if let Some(header) = self.directory.get(row, guard) {
            header.mark_diverged();
        }
    }

    /// Inserts a row, born with the lock `Update` of `txn`.
    pub fn insert(
        self: &Arc<Self>,
        txn: &mut Transaction,
        command: CommandId,
        layout: LayoutId,
        tuple: &[u8],
        guard: &Guard,
    ) -> RowId {
        txn.check(&self.shared);
        let version = PrivateVersion::undecided(txn.id(), command, layout, Some(tuple));
        let (row, header) = self.directory.reserve(&self.account, guard);
        lock_fresh(&header.lock, txn.id());
        // SAFETY: the word was just given to `txn`, before anybody could know the row.
        unsafe { header.push(version, false, &self.account) };
        self.account.count_rows(1);
        txn.note_insert(self, row);
        row
    }

    /// Replaces the newest version. `diverged`: an index key differs from the version before.
    /// REQUIRES that `txn` holds the row with NoKeyUpdate or Update.
    ///
    /// # Panics
    /// If it does not.
    pub fn update(
        self: &Arc<Self>,
        txn: &mut Transaction,
        row: RowId,
        command: CommandId,
        layout: LayoutId,
        tuple: &[u8],
        diverged: bool,
        guard: &Guard,
    ) {
        self.write(txn, row, PrivateVersion::undecided(txn.id(), command, layout, Some(tuple)), diverged, guard);
    }

    /// Deletes the row: links a tombstone. REQUIRES that `txn` holds the row with Update.
    ///
    /// # Panics
    /// If it holds neither Update nor NoKeyUpdate.
    pub fn delete(self: &Arc<Self>, txn: &mut Transaction, row: RowId, command: CommandId, guard: &Guard) {
        self.write(txn, row, PrivateVersion::undecided(txn.id(), command, LayoutId(0), None), false, guard);
    }

    fn write(
        self: &Arc<Self>,
        txn: &mut Transaction,
        row: RowId,
        version: PrivateVersion,
        diverged: bool,
        guard: &Guard,
    ) {
        let header = self.exclusive(txn, row, guard);
        // SAFETY: `exclusive` has checked H1.
        unsafe { header.push(version, diverged, &self.account) };
        txn.note_write(self, row);
    }

    /// The header of a row that `txn` may change.
    fn exclusive<'g>(&'g self, txn: &Transaction, row: RowId, guard: &'g Guard) -> &'g RowHeader {
        txn.check(&self.shared);
        let header = self.directory.get(row, guard);
        let locked = header.filter(|header| self.lock_of(row, header).is_exclusive_of(txn.id()));
        base::invariant!(locked.is_some(), "{:?} writes row {row} of table {} without its lock", txn.id(), self.oid);
        locked.expect("just checked")
    }

    /// Undoes the newest version, if `txn` wrote it.
    pub(crate) fn undo(&self, txn: &mut Transaction, row: RowId, guard: &Guard) {
        let header = self.exclusive(txn, row, guard);
        let Some(newest) = header.head(guard).newest.filter(|v| v.is_undecided_of(txn.id())) else { return };
        newest.mark_aborted();
        // SAFETY: `exclusive` has checked H1.
        unsafe { header.pop(&self.account, guard) };
        garbage::report(header, row, newest, &*self.indexes, guard);
    }

    /// Stamps the versions of `txn` on a row. REQUIRES that `txn` is published at `ts`.
    pub(crate) fn stamp(&self, txn: TxnId, row: RowId, ts: Timestamp, guard: &Guard) {
        let mut next = self.directory.get(row, guard).and_then(|header| header.head(guard).newest);
        while let Some(version) = next.filter(|v| v.is_undecided_of(txn)) {
            version.stamp(ts, txn);
            next = version.older(guard);
        }
    }

    /// Prunes a row that `txn` has written, while it still has the lock.
    pub(crate) fn prune_written(
        self: &Arc<Self>,
        txn: &Transaction,
        row: RowId,
        ts: Timestamp,
        bounds: &Bounds,
        guard: &Guard,
    ) {
        let header = self.exclusive(txn, row, guard);
        // SAFETY: `exclusive` has checked H1, for both calls.
        let prune = |asked| unsafe { garbage::prune(header, row, bounds, &*self.indexes, &self.account, asked, guard) };
        let (left, begin) = prune(Asked::SupersededAt(ts));
        // What the transaction made and replaced itself is mostly gone by now.
        let head = header.head(guard);
        let below = head.newest.and_then(|newest| newest.older(guard));
        let own = match below.is_some_and(|below| below.begin() == Begin::Committed(ts)) {
            true => prune(Asked::Of(ts)).0,
            false => Left::Clean,
        };
        if head.queued {
            return;
        }
        for (left, begin) in [(left, begin), (own, ts)] {
            if matches!(left, Left::HeldBy(_) | Left::Until(_)) {
                // SAFETY: as above.
                unsafe { header.set_queued() };
                self.shared.garbage.add(self, row, begin, left);
            }
        }
    }

    /// Counts where the versions of `count` rows from `from` on lie. Answers where to go on, `end` when done.
    pub fn count_density(&self, from: RowId, end: RowId, count: usize, density: &mut Density) -> RowId {
        let guard = pin();
        let mut row = self.directory.skip_missing(from, end);
        for _ in 0..count {
            if row >= end {
                break;
            }
            let mut version = self.directory.get(row, &guard).and_then(|header| header.head(&guard).newest);
            while let Some(this) = version {
                density.add(this.as_ptr().cast_const().cast(), this.counted() as usize);
                version = this.older(&guard);
            }
            row = self.directory.skip_missing(RowId(row.0 + 1), end);
        }
        row
    }

    /// Looks at `count` rows from `from` on, and puts the newest version of each into another block if its own lies sparse: among blocks
    /// that are mostly free, which hold memory back that nobody uses. Rows that are locked are passed over. Answers where to go on,
    /// `end` when done, and how many were moved. Never waits; may run on any thread.
    pub fn compact(&self, from: RowId, end: RowId, count: usize, density: &mut Density) -> (RowId, usize) {
        let guard = pin();
        let (mut row, mut moved) = (self.directory.skip_missing(from, end), 0);
        for _ in 0..count {
            if row >= end {
                break;
            }
            let header = self.directory.get(row, &guard);
            let lies_sparse = |header: &&RowHeader| {
                let newest = header.head(&guard).newest;
                newest.is_some_and(|version| density.is_sparse(version.as_ptr().cast_const().cast()))
            };
            // A row without versions is passed over: its lock word is not ours to take.
            if let Some(header) = header.filter(lies_sparse) {
                let lock = self.lock_of(row, header);
                if lock.try_collect() {
                    // SAFETY: the collector's mark is exclusive (H1).
                    moved += usize::from(unsafe { header.relocate(density, &guard) });
                    lock.end_collect(false);
                }
            }
            row = self.directory.skip_missing(RowId(row.0 + 1), end);
        }
        (row, moved)
    }

    /// Prunes the row of a version from the queue, that of the commit at `begin`. `true`: the version is gone.
    pub(crate) fn collect_row(self: &Arc<Self>, row: RowId, begin: Timestamp, bounds: &Bounds, guard: &Guard) -> bool {
        let Some(header) = self.directory.get(row, guard) else { return true };
        let lock = self.lock_of(row, header);
        if !lock.try_collect() {
            if lock.is_dead() {
                return true;
            }
            // A transaction has it; at its end it prunes what it wrote, but maybe it only reads.
            self.shared.garbage.add(self, row, begin, Left::Clean);
            return false;
        }
        // SAFETY: the collector's mark is exclusive (H1).
        let (left, begin) =
            unsafe { garbage::prune(header, row, bounds, &*self.indexes, &self.account, Asked::Of(begin), guard) };
        let done = matches!(left, Left::Clean | Left::Nothing);
        if !done {
            self.shared.garbage.add(self, row, begin, left);
        }
        lock.end_collect(left == Left::Nothing);
        if left == Left::Nothing {
            self.row_is_gone(row, guard);
        }
        done
    }

    pub(crate) fn lock_of<'a>(&'a self, row: RowId, header: &'a RowHeader) -> RowLock<'a> {
        RowLock { word: &header.lock, key: self.key_of(row), locks: &self.shared.locks }
    }

    /// The row's name among locks and waits.
    pub(crate) fn key_of(&self, row: RowId) -> LockKey {
        LockKey::Row { table: self.number, oid: self.oid, row }
    }

    pub(crate) fn header<'g>(&'g self, row: RowId, guard: &'g Guard) -> Option<&'g RowHeader> {
        self.directory.get(row, guard)
    }

    /// Leaves `txn` with `modes` on a row.
    pub(crate) fn reduce(&self, txn: TxnId, row: RowId, modes: Modes, wakes: &mut Wakes, guard: &Guard) {
        let Some(header) = self.directory.get(row, guard) else { return };
        let empty = || header.head(guard).newest.is_none();
        if self.lock_of(row, header).reduce(txn, modes, empty, wakes) == Released::Dead {
            self.row_is_gone(row, guard);
        }
    }

    /// Gives up the wait of `txn` for a row.
    pub(crate) fn cancel(&self, txn: TxnId, row: RowId, wakes: &mut Wakes, guard: &Guard) {
        let Some(header) = self.directory.get(row, guard) else { return };
        let empty = || header.head(guard).newest.is_none();
        if self.lock_of(row, header).cancel(txn, empty, wakes) == Released::Dead {
            self.row_is_gone(row, guard);
        }
    }

    fn row_is_gone(&self, row: RowId, guard: &Guard) {
        self.account.count_rows(-1);
        // SAFETY: L2: the caller has just made the word DEAD, which happens once and with an empty chain.
        unsafe { self.directory.mark_gone(row, &self.account, guard) }
    }

    /// Loads a committed row (recovery, standby). Replaces what is there, also what the same commit had made of it before; nothing
    /// of it is kept. A version that is older than the loaded one is ignored, and `false` returned.
    pub fn load(&self, row: RowId, ts: Timestamp, layout: LayoutId, tuple: &[u8], guard: &Guard) -> bool {
        self.load_version(row, ts, Some((layout, tuple)), guard)
    }

    /// Loads the deletion of a row.
    pub fn load_delete(&self, row: RowId, ts: Timestamp, guard: &Guard) -> bool {
        self.load_version(row, ts, None, guard)
    }

    fn load_version(&self, row: RowId, ts: Timestamp, tuple: Option<(LayoutId, &[u8])>, guard: &Guard) -> bool {
        let header = self.directory.claim(row, &self.account, guard);
        let lock = self.lock_of(row, header);
        for round in 0.. {
            if lock.try_collect() {
                break;
            }
            base::invariant!(!lock.is_dead(), "row {row} of table {} is loaded after it was removed", self.oid);
            spin(round);
        }
        let before = header.head(guard).newest;
        let newer = before.is_none_or(|old| matches!(old.begin(), crate::version::Begin::Committed(t) if t <= ts));
        if newer {
            // SAFETY: the collector's mark is exclusive (H1).
            unsafe {
                if before.is_some() {
                    header.pop(&self.account, guard);
                }
                if let Some((layout, tuple)) = tuple {
                    header.push(PrivateVersion::committed(ts, layout, Some(tuple)), false, &self.account);
                }
            }
            self.account.count_rows(i64::from(tuple.is_some()) - i64::from(before.is_some()));
        }
        lock.end_collect(false);
        newer
    }

    /// Recovery: inserts a row of a prepared transaction under the RowId it had. REQUIRES that nobody else has the table open,
    /// that the row has no version, and [`Table::adopt`] after [`Table::settle`].
    pub fn restore_insert(&self, txn: &Transaction, row: RowId, layout: LayoutId, tuple: &[u8], guard: &Guard) {
        txn.check(&self.shared);
        let header = self.directory.claim(row, &self.account, guard);
        base::invariant!(header.head(guard).newest.is_none(), "row {row} of table {} is restored twice", self.oid);
        lock_fresh(&header.lock, txn.id());
        let version = PrivateVersion::undecided(txn.id(), CommandId(0), layout, Some(tuple));
        // SAFETY: the word was just given to `txn`, before anybody could know the row.
        unsafe { header.push(version, false, &self.account) };
        self.account.count_rows(1);
    }

    /// Notes a row of [`Table::restore_insert`] in its transaction.
    pub fn adopt(self: &Arc<Self>, txn: &mut Transaction, row: RowId) {
        txn.note_insert(self, row);
    }

    /// Raises the RowId counter to `next` (recovery: ids of rows that are gone are not used again).
    pub fn set_next_row_id(&self, next: RowId) {
        self.directory.raise(next);
    }

    /// Ends loading: ids that were not loaded are counted as gone, and empty chunks are freed.
    pub fn settle(&mut self) {
        self.directory.settle(&self.account);
    }
}
