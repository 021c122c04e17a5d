//! Portals: statements with their parameters that are run in parts – by Execute with a row limit, or as cursors by FETCH.
//!
//! Responsible for: where a portal is, the rows it keeps, moving it, what survives savepoints and transactions.
//! Not responsible for: the statements and messages that move it (`cursor`, `extended`).
//! Invariants:
//! - A portal sees what the command that opened it saw, whatever was done since ([`engine_api::Txn::keep_view`]).
//! - The row a portal is on is kept, unless it is before the first row or behind the last.

use std::collections::VecDeque;
use std::sync::Arc;

use base::{Error, Oid, Result, RowId, SqlState, work};
use engine_api::KeptView;
use sql_exec::{Execution, Held, MemoryBudget, OutputRow, Progress, RowSink, datum_bytes};
use sql_functions::OpenCursor;
use types::Datum;

use super::extended::ResultFormats;
use super::statement::{Query, Statement, StatementBody};
use super::{Output, Session};

/// Rows read at once.
const READ_AT_ONCE: u64 = 256;

/// Bytes of passed rows that a cursor keeps if nobody said that it scrolls.
const UNASKED_BYTES: usize = 16 << 20;

/// Whether a portal goes backward.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scroll {
    /// It does not.
    No,
    /// As far as its rows are still kept: it was not declared to, but PostgreSQL's would.
    Unasked,
    /// Always: all rows are kept.
    Yes,
}

/// Cursors of a session.
const CURSORS_MAX: usize = 1 << 16;

/// A statement with its parameters, run in parts.
pub(super) struct Portal {
    pub statement: Arc<Statement>,
    pub params: Vec<Datum>,
    /// What Bind asked for.
    pub formats: ResultFormats,
    /// There from the first run until the last row was read.
    pub execution: Option<Box<Execution>>,
    /// What it sees, from its first run on.
    pub view: Option<KeptView>,
    rows: KeptRows,
    /// Rows passed: the portal is on the last of them, unless it is `at_end`.
    position: u64,
    at_end: bool,
    /// The execution has no more rows.
    pub finished: bool,
    /// An error ended it.
    pub failed: bool,
    pub scroll: Scroll,
    pub hold: bool,
    pub binary: bool,
    /// Its transaction is over; all its rows are kept.
    held: bool,
    /// Savepoints there were when it was made.
    pub level: usize,
}

/// Rows that were read and may be wanted again.
#[derive(Default)]
struct KeptRows {
    rows: VecDeque<Vec<Datum>>,
    /// Rows before the first that is kept.
    before: u64,
    held: Held,
}

fn row_bytes(row: &[Datum]) -> usize {
    row.iter().map(datum_bytes).sum::<usize>() + size_of::<Vec<Datum>>()
}

impl Drop for KeptRows {
    fn drop(&mut self) {
        if !self.rows.is_empty() {
            work::discard(&mut Vec::from(std::mem::take(&mut self.rows)));
        }
    }
}

impl KeptRows {
    /// Rows read so far.
    fn end(&self) -> u64 {
        self.before + self.rows.len() as u64
    }

    fn drop_first(&mut self) {
        if let Some(row) = self.rows.pop_front() {
            self.held.forget(row_bytes(&row));
            self.before += 1;
        }
    }
}

/// Takes rows into what is kept.
struct Keeper<'a> {
    kept: &'a mut KeptRows,
    budget: Arc<MemoryBudget>,
}

impl RowSink for Keeper<'_> {
    fn row(&mut self, row: OutputRow<'_>) -> Result<bool> {
        let row: Vec<Datum> = row.owned().collect();
        self.kept.held.charge(row_bytes(&row), &self.budget)?;
        self.kept.rows.push_back(row);
        Ok(false)
    }
}

/// What is done with the rows that a portal passes.
pub(super) enum Passing<'a> {
    /// They are sent.
    Sent(&'a mut dyn Output),
    /// MOVE
    Dropped,
}

/// The error of a statement about a portal whose execution failed.
fn cannot_run(name: &str) -> Error {
    Error::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, format!("portal \"{name}\" cannot be run"))
}

fn forward_only() -> Error {
    Error::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, "cursor can only scan forward")
        .hint("Declare it with SCROLL option to enable backward scan.")
}

impl Portal {
    /// Whether it has values that may take long to drop. One that has run to its end has none.
    pub(crate) fn holds_values(&self) -> bool {
        self.execution.is_some() || !self.params.is_empty() || !self.rows.rows.is_empty()
    }

    /// A portal of the protocol, which goes forward.
    pub fn new(statement: Arc<Statement>, params: Vec<Datum>, level: usize) -> Box<Portal> {
        Box::new(Portal {
            statement,
            params,
            formats: ResultFormats::TEXT,
            execution: None,
            view: None,
            rows: KeptRows::default(),
            position: 0,
            at_end: false,
            finished: false,
            failed: false,
            scroll: Scroll::No,
            hold: false,
            binary: false,
            held: false,
            level,
        })
    }

    /// Whether it may outlive its transaction.
    pub(crate) fn is_held(&self) -> bool {
        self.held
    }

    /// Whether it changes rows and returns them.
    pub(crate) fn is_change(&self) -> bool {
        self.query().is_ok_and(|query| query.plan.changes && !query.columns.is_empty())
    }

    /// Whether it is run by reading rows into what it keeps.
    pub(crate) fn is_cursor(&self) -> bool {
        self.scroll != Scroll::No || self.hold || self.rows.end() > 0
    }

    fn query(&self) -> Result<&Query> {
        match &self.statement.kind {
            StatementBody::Query(query) => Ok(query),
            _ => Err(Error::internal("a cursor without a query")),
        }
    }

    fn on_row(&self) -> bool {
        self.position > 0 && !self.at_end
    }

    /// The rows of tables it is on.
    fn current_rows(&self) -> Vec<(Oid, bool, Option<RowId>)> {
        let Ok(query) = self.query() else { return Vec::new() };
        let row = match self.on_row() && self.position > self.rows.before {
            true => self.rows.rows.get((self.position - self.rows.before - 1) as usize),
            false => None,
        };
        let width = query.columns.len();
        let id = |at: usize| match row.and_then(|row| row.get(width + at)) {
            Some(Datum::Int8(id)) => Some(RowId(*id as u64)),
            _ => None,
        };
        query.plan.row_ids.iter().enumerate().map(|(at, of)| (of.table, of.locked, id(at))).collect()
    }

    /// What `pg_cursors` shows of it.
    fn shown(&self, name: &str, time: i64) -> OpenCursor {
        OpenCursor {
            name: name.to_string(),
            statement: Arc::clone(&self.statement.text),
            holdable: self.hold,
            binary: self.binary,
            scrollable: self.scroll != Scroll::No,
            time,
            held: self.held,
            rows: self.current_rows(),
        }
    }

    /// Lets passed rows go that nobody can ask for.
    fn forget_passed(&mut self) {
        let keep = match self.scroll {
            Scroll::Yes => return,
            Scroll::Unasked if self.held || self.rows.held.bytes() <= UNASKED_BYTES => return,
            Scroll::Unasked => UNASKED_BYTES / 2,
            Scroll::No => 0,
        };
        while self.rows.before + 1 < self.position && self.rows.held.bytes() > keep {
            self.rows.drop_first();
        }
    }
}

impl Session {
    /// Enters a portal; named ones are cursors to SQL.
    ///
    /// # Errors
    /// 53200 if there are too many, or there is no memory.
    pub(super) fn add_portal(&mut self, name: &str, portal: Box<Portal>) -> Result<()> {
        if !name.is_empty() {
            types::room::ask(types::room::LARGE)?;
            if self.environment.cursors.borrow().len() >= CURSORS_MAX {
                return Err(Error::new(SqlState::OUT_OF_MEMORY, "out of memory")
                    .detail(format!("A session can have at most {CURSORS_MAX} cursors at a time.")));
            }
            let time = self.environment.statement_start.get();
            self.environment.cursors.borrow_mut().push(portal.shown(name, time));
        }
        self.portals.insert(name, portal);
        Ok(())
    }

    /// Puts a portal back that was taken out to be run.
    pub(super) fn put_portal_back(&mut self, name: &str, portal: Box<Portal>) {
        if !name.is_empty()
            && let Some(cursor) = self.environment.cursors.borrow_mut().iter_mut().find(|c| c.name == name)
        {
            cursor.rows = portal.current_rows();
        }
        self.portals.insert(name, portal);
    }

    /// Ends a portal; whether there was one.
    pub(super) fn remove_portal(&mut self, name: &str) -> bool {
        let removed = self.portals.remove(name).is_some();
        if removed && !name.is_empty() {
            self.environment.cursors.borrow_mut().retain(|c| c.name != name);
        }
        removed
    }

    /// Ends all portals but some.
    pub(super) fn retain_portals(&mut self, keep: impl Fn(&Portal) -> bool) {
        if self.portals.is_empty() {
            return;
        }
        self.portals.retain(keep);
        let mut cursors = self.environment.cursors.borrow_mut();
        if !cursors.is_empty() {
            cursors.retain(|c| self.portals.contains(&c.name));
        }
    }

    /// Opens a portal of the protocol for its first run; nothing happens to one that runs.
    pub(super) async fn start_portal(&mut self, portal: &mut Portal) -> Result<()> {
        if portal.execution.is_some() || portal.finished || portal.failed {
            return Ok(());
        }
        portal.statement = self.begin_query(&Arc::clone(&portal.statement)).await?;
        let plan = self.plan_for_values(&portal.statement, &portal.params)?;
        let execution = Execution::new(plan, std::mem::take(&mut portal.params));
        portal.execution = Some(execution);
        portal.view = self.txn.as_mut().map(|txn| txn.keep_view());
        Ok(())
    }

    /// Runs a change with RETURNING to its end; the portal passes on its rows then.
    pub(super) async fn run_change(&mut self, portal: &mut Portal) -> Result<()> {
        self.start_portal(portal).await?;
        portal.view = None;
        self.read_rows(portal, 0).await
    }

    /// Reads up to `wanted` more rows of a portal (0 = all) into what it keeps.
    async fn read_rows(&mut self, portal: &mut Portal, wanted: u64) -> Result<()> {
        let Some(execution) = &mut portal.execution else {
            portal.finished = true;
            return Ok(());
        };
        if let (Some(txn), Some(view)) = (&mut self.txn, &portal.view) {
            txn.resume_command(view);
        }
        let mut keeper = Keeper { kept: &mut portal.rows, budget: Arc::clone(&self.shared.memory) };
        if let Progress::Done { .. } = self.advance(execution, &mut keeper, wanted).await? {
            portal.finished = true;
            portal.execution = None;
            portal.view = None;
        }
        Ok(())
    }

    /// Moves forward over up to `count` rows (`None` = all). Answers how many there were.
    pub(super) async fn forward(
        &mut self,
        portal: &mut Portal,
        count: Option<u64>,
        passing: &mut Passing<'_>,
    ) -> Result<u64> {
        let mut passed = 0;
        while !portal.at_end && count != Some(passed) {
            let wanted = count.map_or(READ_AT_ONCE, |count| (count - passed).min(READ_AT_ONCE));
            let there = portal.rows.end() - portal.position;
            if there == 0 {
                if portal.finished {
                    portal.at_end = true;
                    break;
                }
                self.read_rows(portal, wanted).await?;
                continue;
            }
            let from = (portal.position - portal.rows.before) as usize;
            let number = there.min(wanted);
            work::step(8 * number as usize)?;
            if let Passing::Sent(out) = passing {
                let statement = Arc::clone(&portal.statement);
                let StatementBody::Query(query) = &statement.kind else { return Err(Error::internal("not a query")) };
                let rows = &portal.rows.rows.make_contiguous()[from..from + number as usize];
                self.send_kept(rows, &query.columns, *out)?;
                if out.is_full() {
                    self.flush_rows(*out).await?;
                }
            }
            portal.position += number;
            passed += number;
            portal.forget_passed();
        }
        Ok(passed)
    }

    /// Moves backward over up to `count` rows (`None` = all). Answers how many there were.
    async fn backward(&mut self, portal: &mut Portal, count: Option<u64>, passing: &mut Passing<'_>) -> Result<u64> {
        if portal.scroll == Scroll::No {
            return Err(forward_only());
        }
        let statement = Arc::clone(&portal.statement);
        let StatementBody::Query(query) = &statement.kind else { return Err(Error::internal("not a query")) };
        // The row after the next to pass.
        let mut at = if portal.at_end { portal.position + 1 } else { portal.position };
        let mut passed = 0;
        while at > 0 && count != Some(passed) {
            at -= 1;
            if at == 0 {
                break;
            }
            if at <= portal.rows.before {
                return Err(Error::unsupported("the earlier rows of this cursor are no longer kept")
                    .hint("Declare it with SCROLL option to keep all of them."));
            }
            passed += 1;
            work::step(8)?;
            if let Passing::Sent(out) = passing {
                let row = (at - portal.rows.before - 1) as usize;
                let row = std::slice::from_ref(&portal.rows.rows[row]);
                self.send_kept(row, &query.columns, *out)?;
                if out.is_full() {
                    self.flush_rows(*out).await?;
                }
            }
        }
        if count != Some(0) {
            (portal.position, portal.at_end) = (at, false);
        }
        Ok(passed)
    }

    /// Goes before the first row.
    fn rewind(&self, portal: &mut Portal) -> Result<()> {
        if portal.position == 0 && !portal.at_end {
            return Ok(());
        }
        if portal.scroll == Scroll::No {
            return Err(forward_only());
        }
        if portal.rows.before > 0 {
            return Err(Error::unsupported("the earlier rows of this cursor are no longer kept")
                .hint("Declare it with SCROLL option to keep all of them."));
        }
        (portal.position, portal.at_end) = (0, false);
        Ok(())
    }

    /// FETCH and MOVE. Answers the rows passed. An error, whatever it is, ends the portal.
    pub(super) async fn move_portal(
        &mut self,
        name: &str,
        portal: &mut Portal,
        direction: Direction,
        passing: &mut Passing<'_>,
    ) -> Result<u64> {
        if portal.failed {
            return Err(cannot_run(name));
        }
        let result = self.move_by(portal, direction, passing).await;
        portal.failed = result.is_err();
        result
    }

    /// PostgreSQL's rules of what a direction means.
    async fn move_by(&mut self, portal: &mut Portal, direction: Direction, passing: &mut Passing<'_>) -> Result<u64> {
        let (forward, count) = match direction {
            Direction::Forward(count) => (true, count),
            Direction::Backward(count) => (false, count),
            Direction::Absolute(place) => return self.move_to(portal, place, passing).await,
            Direction::Relative(0) => (true, Some(0)),
            Direction::Relative(rows) => {
                let before = Some(rows.unsigned_abs() - 1);
                return if rows > 0 {
                    self.forward(portal, before, &mut Passing::Dropped).await?;
                    self.forward(portal, Some(1), passing).await
                } else {
                    if before != Some(0) {
                        self.backward(portal, before, &mut Passing::Dropped).await?;
                    }
                    self.backward(portal, Some(1), passing).await
                };
            }
        };
        match count {
            Some(0) => self.stay(portal, passing).await,
            None if !forward && matches!(passing, Passing::Dropped) => {
                let rows = portal.position - u64::from(portal.on_row());
                self.rewind(portal)?;
                Ok(rows)
            }
            count if forward => self.forward(portal, count, passing).await,
            count => self.backward(portal, count, passing).await,
        }
    }

    /// FETCH 0: the row it is on, again.
    async fn stay(&mut self, portal: &mut Portal, passing: &mut Passing<'_>) -> Result<u64> {
        if !portal.on_row() {
            return Ok(0);
        }
        if matches!(passing, Passing::Dropped) {
            return Ok(1);
        }
        self.backward(portal, Some(1), &mut Passing::Dropped).await?;
        self.forward(portal, Some(1), passing).await
    }

    /// FETCH ABSOLUTE.
    async fn move_to(&mut self, portal: &mut Portal, place: i64, passing: &mut Passing<'_>) -> Result<u64> {
        let rows = place.unsigned_abs();
        if place < 0 {
            self.forward(portal, None, &mut Passing::Dropped).await?;
            if rows > 1 {
                self.backward(portal, Some(rows - 1), &mut Passing::Dropped).await?;
            }
            return self.backward(portal, Some(1), passing).await;
        }
        if place == 0 {
            self.rewind(portal)?;
            return Ok(0);
        }
        if rows - 1 <= portal.position / 2 {
            self.rewind(portal)?;
            self.forward(portal, Some(rows - 1), &mut Passing::Dropped).await?;
        } else {
            let at = portal.position + u64::from(portal.at_end);
            if rows <= at {
                self.backward(portal, Some(at - rows + 1), &mut Passing::Dropped).await?;
            } else {
                self.forward(portal, Some(rows - at - 1), &mut Passing::Dropped).await?;
            }
        }
        self.forward(portal, Some(1), passing).await
    }

    /// Before a commit: cursors WITH HOLD read what they have not read yet, and live on.
    pub(super) async fn hold_cursors(&mut self) -> Result<()> {
        let names: Vec<String> =
            self.portals.iter().filter(|(_, p)| p.hold && !p.held).map(|(name, _)| name.to_owned()).collect();
        for name in names {
            let Some(mut portal) = self.portals.remove(&name) else { continue };
            let result = match portal.failed {
                true => Err(cannot_run(&name)),
                false if portal.finished => Ok(()),
                false => self.read_rows(&mut portal, 0).await,
            };
            if result.is_ok() {
                (portal.held, portal.level) = (true, 0);
                if let Some(cursor) = self.environment.cursors.borrow_mut().iter_mut().find(|c| c.name == name) {
                    cursor.held = true;
                }
            }
            self.put_portal_back(&name, portal);
            result?;
        }
        Ok(())
    }

    /// Refuses a definition of a table that an open portal still reads.
    ///
    /// # Errors
    /// 55006
    pub(crate) fn check_not_in_use(&self, table: Oid, name: &str, command: &str) -> Result<()> {
        let reads = |portal: &Portal| {
            portal.execution.is_some() && portal.query().is_ok_and(|q| q.locks.iter().any(|(of, _)| *of == table))
        };
        if !self.portals.iter().any(|(_, portal)| reads(portal)) {
            if self.environment.deferred.borrow().concerns(table) {
                let message = format!("cannot {command} \"{name}\" because it has pending trigger events");
                return Err(Error::new(SqlState::OBJECT_IN_USE, message));
            }
            return Ok(());
        }
        let message = format!("cannot {command} \"{name}\" because it is being used by active queries in this session");
        Err(Error::new(SqlState::OBJECT_IN_USE, message))
    }

    /// Whether a commit has cursors to hold.
    pub(super) fn holds_cursors(&self) -> bool {
        self.portals.iter().any(|(_, p)| p.hold && !p.held)
    }
}

/// Where FETCH and MOVE go. `None` is ALL.
#[derive(Clone, Copy, Debug)]
pub(super) enum Direction {
    Forward(Option<u64>),
    Backward(Option<u64>),
    Absolute(i64),
    Relative(i64),
}

/// The row of a table that a cursor is on.
pub(super) fn current_row(cursors: &[OpenCursor], cursor: &str, table: Oid, name: &str) -> Result<RowId> {
    let state = |message: String| Error::new(SqlState::INVALID_CURSOR_STATE, message);
    let Some(found) = cursors.iter().find(|c| c.name == cursor) else {
        let message = format!("cursor \"{cursor}\" does not exist");
        return Err(Error::new(SqlState::INVALID_CURSOR_NAME, message));
    };
    if found.held {
        return Err(state(format!("cursor \"{cursor}\" is held from a previous transaction")));
    }
    let locks = found.rows.iter().any(|(_, locked, _)| *locked);
    let mut of_table = found.rows.iter().filter(|(of, ..)| *of == table);
    match (of_table.next(), of_table.next()) {
        (Some(_), Some(_)) => {
            Err(state(format!("cursor \"{cursor}\" has multiple FOR UPDATE/SHARE references to table \"{name}\"")))
        }
        (None, _) if locks => {
            Err(state(format!("cursor \"{cursor}\" does not have a FOR UPDATE/SHARE reference to table \"{name}\"")))
        }
        (None, _) => Err(state(format!("cursor \"{cursor}\" is not a simply updatable scan of table \"{name}\""))),
        (Some((_, _, None)), None) => Err(state(format!("cursor \"{cursor}\" is not positioned on a row"))),
        (Some((_, _, Some(row))), None) => Ok(*row),
    }
}
