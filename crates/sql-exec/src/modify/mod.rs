//! INSERT, UPDATE, DELETE and MERGE: what they have in common.
//!
//! The rows are changed one after the other; foreign keys are checked when all are done, as PostgreSQL's triggers do.

pub(super) mod delete;
pub(super) mod insert;
pub(super) mod merge;
pub(super) mod update;

use base::{Error, Result, RowId, SqlState};
use engine_api::{BatchRow, RowBatch, RowLockMode, RowLockOutcome, Step, WaitPolicy};
use rustc_hash::FxHashSet;
use sql_functions as functions;
use sql_ir::expr::all_true;
use sql_ir::system_column::SystemColumn;
use sql_parse::privileges::shown;
use sql_plan::{Node, RowChoice, Target, UpdateSet};
use types::Datum;

use super::lock_rows::row_in;
use super::{Cx, Next, Operator, operator};

/// What locking a row to change it found.
enum Locked {
    /// The row is as it was read.
    Same,
    /// It has moved: its newest version is in the registers.
    Moved,
    /// This statement has written it.
    Own,
    Gone,
    Wait(engine_api::Wait),
}

/// Locks a row to change it; a moved one is read into the registers.
fn lock(
    target: &Target,
    row: RowId,
    mode: RowLockMode,
    cx: &mut Cx<'_, '_>,
    newest: &mut RowBatch,
    registers: &mut [Datum],
) -> Result<Locked> {
    newest.clear();
    let table = target.table.open(cx.run.txn)?;
    Ok(match cx.run.txn.lock_row(table, row, mode, WaitPolicy::Block, newest)? {
        Step::Ready(RowLockOutcome::Locked) => Locked::Same,
        Step::Ready(RowLockOutcome::Moved) => {
            target.reader.read(newest.row(0), registers);
            Locked::Moved
        }
        Step::Ready(RowLockOutcome::Own | RowLockOutcome::OwnUnlocked) => Locked::Own,
        Step::Ready(RowLockOutcome::Gone | RowLockOutcome::Skipped) => Locked::Gone,
        Step::Wait(wait) => Locked::Wait(wait),
    })
}

/// The rows of an UPDATE's or DELETE's input, locked one after the other: each once, as it is now.
struct LockedRows {
    input: Box<dyn Operator>,
    at: At,
    /// Rows given so far, where they may come again.
    seen: FxHashSet<u64>,
    /// The stored row that was given last.
    newest: RowBatch,
}

#[derive(Clone, Copy)]
enum At {
    /// The next row is wanted.
    Input,
    /// The row in the registers is to be locked like this.
    Row(RowId, RowLockMode),
    End,
}

enum NextLocked {
    /// A row is in the registers, and locked.
    Row(RowId),
    Done,
    Wait(engine_api::Wait),
}

impl LockedRows {
    fn new(input: &Node) -> LockedRows {
        LockedRows { input: operator(input), at: At::Input, seen: FxHashSet::default(), newest: RowBatch::new() }
    }

    /// The next row. `mode` says how the row in the registers is to be locked, and is asked again about one that has moved: as on PostgreSQL
    /// what becomes of a row is computed before anybody waits for it.
    fn next(
        &mut self,
        target: &Target,
        choice: &RowChoice,
        cx: &mut Cx<'_, '_>,
        registers: &mut [Datum],
        mut mode: impl FnMut(&mut Cx<'_, '_>, &[Datum]) -> Result<RowLockMode>,
    ) -> Result<NextLocked> {
        loop {
            let (row, wanted) = match self.at {
                At::Input => match self.input.next(cx, registers)? {
                    Next::Row => match row_in(registers, target.row_slot) {
                        Some(row) if self.is_first(row, target, choice, cx) => (row, mode(cx, registers)?),
                        _ => continue,
                    },
                    Next::Done => {
                        self.at = At::End;
                        return Ok(NextLocked::Done);
                    }
                    Next::Wait(wait) => return Ok(NextLocked::Wait(wait)),
                },
                At::Row(row, wanted) => (row, wanted),
                At::End => return Ok(NextLocked::Done),
            };
            self.at = At::Input;
            match lock(target, row, wanted, cx, &mut self.newest, registers)? {
                Locked::Same => return Ok(NextLocked::Row(row)),
                Locked::Moved if all_true(&choice.recheck, cx, registers)? => match mode(cx, registers)? {
                    stronger if stronger > wanted => self.at = At::Row(row, stronger),
                    _ => return Ok(NextLocked::Row(row)),
                },
                Locked::Moved | Locked::Own | Locked::Gone => {}
                Locked::Wait(wait) => {
                    self.at = At::Row(row, wanted);
                    return Ok(NextLocked::Wait(wait));
                }
            }
        }
    }

    /// Whether the row has not been changed by this statement yet.
    fn is_first(&mut self, row: RowId, target: &Target, choice: &RowChoice, cx: &mut Cx<'_, '_>) -> bool {
        (!choice.may_repeat || self.seen.insert(row.0)) && cx.run.shared.touch(target, row)
    }

    fn rescan(&mut self, forget: bool) {
        self.at = At::Input;
        self.seen.clear();
        self.input.rescan(forget);
    }
}

/// Computes the values of `set` for the row in the registers, and says how an update with them locks it: the strongest way only if a key that
/// others may point to gets another value.
fn new_values(
    set: &UpdateSet,
    target: &Target,
    cx: &mut Cx<'_, '_>,
    registers: &[Datum],
    values: &mut Vec<Datum>,
) -> Result<RowLockMode> {
    values.clear();
    for (_, code) in &set.values {
        values.push(code.eval(cx, registers)?);
    }
    let differs = |at: &usize| values[*at] != registers[target.slots[set.values[*at].0] as usize];
    let changes_key = set.mode == RowLockMode::Update && (set.keys.is_empty() || set.keys.iter().any(differs));
    Ok(if changes_key { RowLockMode::Update } else { RowLockMode::NoKeyUpdate })
}

/// What a new row violates.
enum Violation<'t> {
    NotNull(&'t str),
    Check(&'t str),
}

/// Computes the generated columns of the row in the target's slots; then NOT NULL and CHECK. `old` is the row before, of which
/// the slots have what [`Target::rest`] does not read.
fn check(target: &Target, old: Option<BatchRow<'_>>, cx: &mut Cx<'_, '_>, registers: &mut [Datum]) -> Result<()> {
    for (column, code) in &target.generated {
        registers[target.slots[*column] as usize] = code.eval(cx, registers)?;
    }
    let Some(violation) = violation(target, cx, registers)? else { return Ok(()) };
    if let Some(old) = old {
        target.rest.read(old, registers);
    }
    let table = &target.table.info.desc.name;
    let error = match violation {
        Violation::NotNull(column) => Error::new(
            SqlState::NOT_NULL_VIOLATION,
            format!("null value in column \"{column}\" of relation \"{table}\" violates not-null constraint"),
        )
        .column(column),
        Violation::Check(name) => Error::new(
            SqlState::CHECK_VIOLATION,
            format!("new row for relation \"{table}\" violates check constraint \"{name}\""),
        )
        .constraint(name),
    };
    Err(with_row(error, target, cx, registers).table(table).schema(schema_name(cx, target)))
}

/// WITH CHECK OPTION, of a row that has been stored: a key that is taken is told first, as PostgreSQL does.
fn check_views(target: &Target, cx: &mut Cx<'_, '_>, registers: &[Datum]) -> Result<()> {
    for (view, condition) in &target.view_checks {
        if condition.truth(cx, registers)? != Some(true) {
            let message = format!("new row violates check option for view \"{view}\"");
            let error = Error::new(SqlState::WITH_CHECK_OPTION_VIOLATION, message);
            return Err(with_row(error, target, cx, registers));
        }
    }
    Ok(())
}

#[cold]
fn with_row(error: Error, target: &Target, cx: &Cx<'_, '_>, registers: &[Datum]) -> Error {
    match show_row(target, cx, registers) {
        Some(row) => error.detail(format!("Failing row contains {row}.")),
        None => error,
    }
}

fn violation<'t>(target: &'t Target, cx: &mut Cx<'_, '_>, registers: &[Datum]) -> Result<Option<Violation<'t>>> {
    for &column in &target.not_null {
        if registers[target.slots[column] as usize].is_null() {
            return Ok(Some(Violation::NotNull(&target.table.info.desc.columns[column].name)));
        }
    }
    for (name, condition) in &target.checks {
        if condition.truth(cx, registers)? == Some(false) {
            return Ok(Some(Violation::Check(name)));
        }
    }
    Ok(None)
}

pub(super) fn schema_name(cx: &Cx<'_, '_>, target: &Target) -> String {
    let catalog = cx.run.eval.catalog();
    catalog.get(target.table.info.desc.schema).map_or_else(String::new, |s| s.name().to_string())
}

/// The row as PostgreSQL shows it in details: values clipped to 64 bytes, and only those that the current role may read or has
/// given. `None` if there are none.
fn show_row(target: &Target, cx: &Cx<'_, '_>, registers: &[Datum]) -> Option<String> {
    let desc = &target.table.info.desc;
    let (catalog, who) = (cx.run.eval.catalog(), cx.run.eval.identity().who());
    let whole = shown::reads_table(&catalog, who, desc.oid);
    let (mut names, mut values): (Vec<&str>, Vec<String>) = (Vec::new(), Vec::new());
    for (number, (column, &slot)) in desc.columns.iter().zip(&target.slots).enumerate() {
        let may = || target.given.contains(&number) || shown::reads_column(&catalog, who, desc.oid, column.number);
        if !column.dropped && (whole || may()) {
            names.push(&column.name);
            values.push(show(&registers[slot as usize], column.type_oid, cx));
        }
    }
    match (whole, names.is_empty()) {
        (true, _) => Some(format!("({})", values.join(", "))),
        (false, true) => None,
        (false, false) => Some(format!("({}) = ({})", names.join(", "), values.join(", "))),
    }
}

fn show(value: &Datum, ty: base::Oid, cx: &Cx<'_, '_>) -> String {
    const LONGEST: usize = 64;
    if value.is_null() {
        return "null".to_string();
    }
    let mut text = Vec::new();
    if functions::write_text(cx.run.eval, value, ty, &mut text).is_err() {
        return String::new();
    }
    let text = String::from_utf8_lossy(&text).into_owned();
    if text.len() <= LONGEST {
        return text;
    }
    let mut end = LONGEST;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}...", &text[..end])
}

/// Computes RETURNING into the registers.
fn returning(target: &Target, cx: &mut Cx<'_, '_>, registers: &mut [Datum]) -> Result<()> {
    for (slot, code) in &target.returning {
        registers[*slot as usize] = code.eval(cx, registers)?;
    }
    Ok(())
}

/// Puts what the system columns show of the version that the transaction has just written into the registers, if they are used.
/// `locked`: an INSERT has found the row, and locked it before it changed it.
#[inline]
fn note_system(target: &Target, row: RowId, locked: bool, cx: &Cx<'_, '_>, registers: &mut [Datum]) {
    let desc = &target.table.info.desc;
    let Some(slots) = target.slots.get(desc.columns.len()..).filter(|slots| !slots.is_empty()) else { return };
    let writer = cx.run.txn.id().map_or(0, base::TxnId::tag);
    for (slot, column) in slots.iter().zip(SystemColumn::ALL) {
        registers[*slot as usize] = column.value(desc.oid, row, writer, if locked { writer } else { 0 });
    }
}

/// The same of a row that the transaction has just deleted: it is as it was, but for who has it.
#[inline]
fn note_deleter(target: &Target, cx: &Cx<'_, '_>, registers: &mut [Datum]) {
    let own = target.table.info.desc.columns.len();
    let Some(slot) = target.slots.get(own + SystemColumn::Xmax as usize) else { return };
    registers[*slot as usize] = Datum::Oid(cx.run.txn.id().map_or(0, base::TxnId::tag));
}

/// Counts one changed row; `Row` if it is to be returned.
fn changed(target: &Target, cx: &mut Cx<'_, '_>, registers: &mut [Datum]) -> Result<Option<Next>> {
    cx.run.changed += 1;
    check_views(target, cx, registers)?;
    if target.returns {
        returning(target, cx, registers)?;
        return Ok(Some(Next::Row));
    }
    Ok(cx.run.tick(1)?.map(Next::Wait))
}
