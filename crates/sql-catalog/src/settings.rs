//! pg_settings.
//!
//! What never changes about a setting is a line of `settings.txt`: name, unit, category, extra description, type, least and
//! greatest value, the values of an enumeration; PostgreSQL's words.

use sql_functions::EvalContext;
use sql_ir::system_relation::SystemRelation;
use types::Datum;

use super::relations::text_array;
use super::{Rows, row, text};

pub(super) fn settings(rel: &SystemRelation, cx: &dyn EvalContext) -> Rows {
    let values = cx.setting_values();
    Ok(values
        .into_iter()
        .map(|s| {
            let line = include_str!("settings.txt").lines().find(|l| l.split('|').next() == Some(s.name));
            let fields: Vec<&str> = line.unwrap_or_default().split('|').collect();
            let field = |at: usize| fields.get(at).filter(|f| !f.is_empty()).map_or(Datum::Null, text);
            let words = fields.get(7).filter(|f| !f.is_empty());
            let words = words.map_or(Datum::Null, |w| text_array(w.split(',').map(text).collect()));
            let or = |value: Datum, other: &str| if value.is_null() { text(other) } else { value };
            row(
                rel,
                vec![
                    ("name", text(s.name)),
                    ("setting", text(&s.value)),
                    ("unit", field(1)),
                    ("category", or(field(2), "Customized Options")),
                    ("short_desc", text(s.about)),
                    ("extra_desc", field(3)),
                    ("context", text(s.context)),
                    ("vartype", or(field(4), "string")),
                    ("source", text(s.source)),
                    ("min_val", field(5)),
                    ("max_val", field(6)),
                    ("enumvals", words),
                    ("boot_val", text(s.boot)),
                    ("reset_val", text(&s.reset)),
                    ("pending_restart", Datum::Bool(false)),
                ],
            )
        })
        .collect())
}
