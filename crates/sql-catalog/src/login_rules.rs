//! The rules of logging in as `pg_hba_file_rules` shows them: those of the file as it is now, whether in force or not.

use sql_functions::{EvalContext, LoginRule};
use sql_ir::system_relation::SystemRelation;
use types::Datum;

use super::relations::text_array;
use super::{SystemRows, row, text};

pub(super) fn rows(rel: &SystemRelation, cx: &dyn EvalContext) -> SystemRows {
    let Some(server) = cx.server() else { return Ok(Vec::new()) };
    let list = |words: &[String]| text_array(words.iter().map(text).collect());
    let shown = |rule: &LoginRule| {
        let mut columns = vec![("line_number", Datum::Int4(rule.line))];
        match &rule.error {
            Some(error) => columns.push(("error", text(error))),
            None => columns.extend([
                ("type", text(&rule.kind)),
                ("database", list(&rule.databases)),
                ("user_name", list(&rule.users)),
                ("address", rule.address.as_ref().map_or(Datum::Null, text)),
                ("netmask", rule.netmask.as_ref().map_or(Datum::Null, text)),
                ("auth_method", text(&rule.method)),
            ]),
        }
        row(rel, columns)
    };
    Ok(server.login_rules().iter().map(shown).collect())
}
