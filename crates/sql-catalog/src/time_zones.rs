//! `pg_timezone_names` and `pg_timezone_abbrevs`: what the names of zones stand for when the transaction began.

use sql_functions::EvalContext;
use sql_ir::system_relation::SystemRelation;
use types::datetime::{NamedOffset, named_zones, zone_abbreviations};
use types::{Datum, Interval};

use super::{SystemRows, row, text};

fn shown(rel: &SystemRelation, offset: &NamedOffset, name: &'static str) -> Vec<Datum> {
    let east = Interval { months: 0, days: 0, micros: i64::from(offset.east) * 1_000_000 };
    let mut columns = vec![
        (name, text(&offset.name)),
        ("utc_offset", Datum::Interval(east)),
        ("is_dst", Datum::Bool(offset.is_summer)),
    ];
    if name == "name" {
        columns.push(("abbrev", text(&offset.abbreviation)));
    }
    row(rel, columns)
}

pub(super) fn names(rel: &SystemRelation, cx: &dyn EvalContext) -> SystemRows {
    Ok(named_zones(cx.transaction_timestamp()).iter().map(|zone| shown(rel, zone, "name")).collect())
}

pub(super) fn abbreviations(rel: &SystemRelation, cx: &dyn EvalContext) -> SystemRows {
    Ok(zone_abbreviations(cx.transaction_timestamp()).iter().map(|zone| shown(rel, zone, "abbrev")).collect())
}
