//! pg_settings.

use sql_functions::EvalContext;
use sql_ir::system_relation::SystemRelation;
use types::Datum;

use super::relations::text_array;
use super::{SystemRows, row, text};

pub(super) fn settings(rel: &SystemRelation, cx: &dyn EvalContext) -> SystemRows {
    let values = cx.setting_values();
    Ok(values
        .into_iter()
        .map(|s| {
            let or_null = |value: Option<&str>| value.map_or(Datum::Null, text);
            let words = s.words.map_or(Datum::Null, |words| text_array(words.iter().map(text).collect()));
            let [least, greatest] =
                s.bounds.as_ref().map_or([None, None], |[least, greatest]| [Some(&**least), Some(&**greatest)]);
            row(
                rel,
                vec![
                    ("name", text(s.name)),
                    ("setting", text(&s.value)),
                    ("unit", or_null(s.unit)),
                    ("category", text(s.category)),
                    ("short_desc", text(s.about)),
                    ("extra_desc", or_null(Some(s.extra).filter(|extra| !extra.is_empty()))),
                    ("context", text(s.context)),
                    ("vartype", text(s.vartype)),
                    ("source", text(s.source)),
                    ("min_val", or_null(least)),
                    ("max_val", or_null(greatest)),
                    ("enumvals", words),
                    ("boot_val", text(s.boot)),
                    ("reset_val", text(&s.reset)),
                    ("pending_restart", Datum::Bool(false)),
                ],
            )
        })
        .collect())
}
