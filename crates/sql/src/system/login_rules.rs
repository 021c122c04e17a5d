//! The rules of logging in as `pg_hba_file_rules` shows them: those of the file as it is now, whether in force or not.

use types::Datum;

use super::relations::text_array;
use super::{Rows, SystemRelation, row, text};
use crate::functions::EvalContext;

/// One line of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoginRule {
    /// Its number, from 1.
    pub line: i32,
    /// Kind of connection.
    pub kind: String,
    /// Databases, as the line names them.
    pub databases: Vec<String>,
    /// Roles, as the line names them.
    pub users: Vec<String>,
    /// Address, or what stands for addresses.
    pub address: Option<String>,
    /// Mask of the address.
    pub netmask: Option<String>,
    /// How a client proves who it is.
    pub method: String,
    /// What is wrong with the line; then nothing else is told of it.
    pub error: Option<String>,
}

pub(super) fn rows(rel: &SystemRelation, cx: &dyn EvalContext) -> Rows {
    let Some(session) = cx.session() else { return Ok(Vec::new()) };
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
    Ok(session.host.login_rules().iter().map(shown).collect())
}
