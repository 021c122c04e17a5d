//! TRUNCATE.

use std::collections::BTreeSet;

use base::SqlState;
use base::{Error, Oid, Result};
use engine_api::{Catalog, ConstraintKind, Privileges, SequenceDesc, TableDesc, TableLockMode};
use rupg_sql::nodes::{DropBehavior, Node, TruncateStmt};
use sql_parse::privileges;

use super::Cx;
use super::sequence::put_altered;

pub(super) async fn truncate(cx: &mut Cx<'_>, stmt: &TruncateStmt) -> Result<&'static str> {
    let (mut tables, mut named) = (BTreeSet::new(), Vec::new());
    for node in stmt.relations.iter().flatten() {
        let Node::RangeVar(name) = node else { continue };
        let table = cx.locked_table(name, TableLockMode::AccessExclusive).await?;
        if tables.insert(table.oid) {
            cx.session.check_not_in_use(table.oid, &table.name, "TRUNCATE")?;
            named.push(table.oid);
        }
    }
    let cascade = stmt.behavior == DropBehavior::DROP_CASCADE;
    if cascade {
        add_references(cx, &mut tables, &mut named).await?;
    } else if let catalog = cx.catalog()
        && let Some((referencing, referenced)) = outside_reference(&catalog, &tables)
    {
        // The first of those that the statement names is told of.
        let of_one = |&table: &Oid| named_reference(&catalog, &tables, table);
        let (referencing, referenced) = named.iter().find_map(of_one).unwrap_or((referencing, referenced));
        return Err(Error::unsupported("cannot truncate a table referenced in a foreign key constraint")
            .detail(format!("Table \"{}\" references \"{}\".", referencing.name, referenced))
            .hint(format!("Truncate table \"{}\" at the same time, or use TRUNCATE ... CASCADE.", referencing.name)));
    }
    if stmt.restart_seqs {
        own_sequences(cx, &named)?;
    }
    for &table in &named {
        cx.txn().truncate(table)?;
    }
    if stmt.restart_seqs {
        restart_sequences(cx, &named).await?;
    }
    Ok("TRUNCATE TABLE")
}

/// Adds the tables with foreign keys into the set: those with keys to its tables in the order of their age, then those with keys to
/// these, and so on. `order` is the set in the order in which its tables were found.
async fn add_references(cx: &mut Cx<'_>, tables: &mut BTreeSet<Oid>, order: &mut Vec<Oid>) -> Result<()> {
    loop {
        let catalog = cx.catalog();
        let outside = catalog.walk().filter_map(|o| catalog.table(o.oid())).filter(|t| !tables.contains(&t.oid));
        let refers = |t: &&TableDesc| references(t).any(|table| tables.contains(&table));
        let round: Vec<(Oid, String)> = outside.filter(refers).map(|t| (t.oid, t.name.clone())).collect();
        if round.is_empty() {
            return Ok(());
        }
        for (oid, name) in round {
            cx.notice(SqlState::SUCCESSFUL_COMPLETION, format!("truncate cascades to table \"{name}\""));
            cx.lock(oid, TableLockMode::AccessExclusive).await?;
            if let Some(object) = cx.catalog().get(oid) {
                privileges::require(&cx.catalog(), cx.session.who(), object, Privileges::TRUNCATE)?;
                cx.session.check_not_in_use(oid, &name, "TRUNCATE")?;
                tables.insert(oid);
                order.push(oid);
            }
        }
    }
}

/// The tables that foreign keys of a table are to.
pub(super) fn references(table: &TableDesc) -> impl Iterator<Item = Oid> + '_ {
    table.constraints.iter().filter_map(|c| match &c.kind {
        ConstraintKind::ForeignKey { table, .. } => Some(*table),
        _ => None,
    })
}

/// A table outside the set with a foreign key into it.
pub(super) fn outside_reference(catalog: &Catalog, tables: &BTreeSet<Oid>) -> Option<(TableDesc, String)> {
    reference(catalog, tables, |table| tables.contains(&table))
}

/// A table outside the set with a foreign key to one table of it.
fn named_reference(catalog: &Catalog, tables: &BTreeSet<Oid>, named: Oid) -> Option<(TableDesc, String)> {
    reference(catalog, tables, |table| table == named)
}

fn reference(
    catalog: &Catalog,
    tables: &BTreeSet<Oid>,
    is_wanted: impl Fn(Oid) -> bool,
) -> Option<(TableDesc, String)> {
    catalog.walk().filter_map(|o| catalog.table(o.oid())).filter(|t| !tables.contains(&t.oid)).find_map(|t| {
        let wanted = references(t).find(|&table| is_wanted(table))?;
        Some((t.clone(), catalog.table(wanted).map(|t| t.name.clone()).unwrap_or_default()))
    })
}

/// The sequences of the tables' columns, table by table.
fn sequences_of(catalog: &Catalog, tables: &[Oid]) -> Vec<Oid> {
    let place = |sequence: &SequenceDesc| {
        let (table, column) = sequence.owned_by?;
        Some((tables.iter().position(|&one| one == table)?, column, sequence.oid))
    };
    let mut found: Vec<_> = catalog.walk().filter_map(|o| catalog.sequence(o.oid())).filter_map(place).collect();
    found.sort_unstable();
    found.into_iter().map(|(.., oid)| oid).collect()
}

/// Refuses to start sequences anew that are another role's.
fn own_sequences(cx: &mut Cx<'_>, tables: &[Oid]) -> Result<()> {
    let catalog = cx.catalog();
    let found = sequences_of(&catalog, tables);
    found
        .iter()
        .filter_map(|&oid| catalog.get(oid))
        .try_for_each(|sequence| privileges::require_owner(&catalog, cx.session.who(), sequence))
}

async fn restart_sequences(cx: &mut Cx<'_>, tables: &[Oid]) -> Result<()> {
    let found = sequences_of(&cx.catalog(), tables);
    for oid in found {
        cx.lock(oid, TableLockMode::AccessExclusive).await?;
        // As it is now that nobody else changes it.
        if let Some(sequence) = cx.catalog().sequence(oid).cloned() {
            let start = sequence.start;
            put_altered(cx, sequence, Some(start)).await?;
        }
    }
    Ok(())
}
