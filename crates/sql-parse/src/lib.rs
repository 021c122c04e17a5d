//! From text to PostgreSQL's raw parse tree, and the words that every layer of SQL shares.
//!
//! Responsible for: the tree and the errors of PostgreSQL's own grammar (crate `rupg-sql`), a bound on nesting, the
//! [`fingerprint`] that statements share which differ only in literals; how names and literals are quoted ([`names`]), what a role
//! may do ([`privileges`]), the counters that all sessions add to ([`metrics`]), and what sessions show of themselves to each other
//! ([`monitor`]).
//! Not responsible for: what the names in a tree mean (`sql-bind`); settings, although it reads their spellings ([`amounts`]).
//! Invariant: a tree that leaves this crate is shallow enough to be walked and dropped recursively.

#![forbid(unsafe_code)]

pub mod amounts;
mod backslashes;
mod depth;
mod escapes;
pub mod fingerprint;
pub mod metrics;
pub mod monitor;
pub mod names;
mod options;
pub mod privileges;
mod room;
pub mod thread;

pub use backslashes::{Backslashes, conforming};
pub use options::{number_of, text_of};

use base::watch::{self, Phase};
use base::{Error, Notice, Result, Severity, SqlState, work};
use rupg_sql::nodes::Node;

/// One statement of a text.
#[derive(Debug)]
pub struct ParsedStatement {
    /// Its raw parse tree. Locations in it are byte offsets in the whole text.
    pub node: Node,
    /// Where it begins in the text, in bytes.
    pub start: usize,
    /// Its bytes.
    pub len: usize,
}

/// Parses a text of any number of statements. Empty statements between semicolons are left out.
///
/// # Errors
/// 42601 and the scanner's errors with their position; 54001 if it nests too deep.
pub fn parse(sql: &str) -> Result<Vec<ParsedStatement>> {
    parse_with_notices(sql).map(|(statements, _)| statements)
}

/// As [`parse`], with what there is to say about the text: identifiers that are cut.
///
/// # Errors
/// As [`parse`].
pub fn parse_with_notices(sql: &str) -> Result<(Vec<ParsedStatement>, Vec<Notice>)> {
    watch::does(Phase::Parse);
    // Where it is sent the stack is as long.
    let has_long_stack = work::has_long_stack();
    if sql.len() <= LONG {
        return parse_here(sql, has_long_stack);
    }
    let mut text = String::new();
    work::append_text(&mut text, sql);
    work::elsewhere(move || parse_here(&text, has_long_stack))?
}

/// Bytes of a text beyond which another thread parses it, since the parser cannot be interrupted.
const LONG: usize = 32 << 10;

/// Drops a tree, which is large if its text is.
pub fn discard(parsed: ParsedStatement) {
    if parsed.len > LONG {
        work::discard_elsewhere(parsed.node);
    }
}

fn parse_here(sql: &str, has_long_stack: bool) -> Result<(Vec<ParsedStatement>, Vec<Notice>)> {
    depth::check(sql, has_long_stack)?;
    room::check(sql)?;
    let read = escapes::as_release_15(sql);
    let (list, notices) = rupg_sql::parse(&read).map_err(|e| error(&e, sql))?;
    let mut statements = Vec::with_capacity(list.len());
    for node in list {
        let Some(Node::RawStmt(raw)) = node else {
            return Err(Error::internal("the parser gave something that is no statement"));
        };
        let start = usize::try_from(raw.stmt_location).unwrap_or(0);
        let len = match usize::try_from(raw.stmt_len) {
            Ok(len) if len > 0 => len,
            _ => sql.len().saturating_sub(start),
        };
        if let Some(node) = raw.stmt {
            refuse_later_forms(&node)?;
            statements.push(ParsedStatement { node, start, len });
        }
    }
    Ok((statements, notices.iter().map(notice).collect()))
}

/// What a later release's grammar takes and release 15's refuses.
fn refuse_later_forms(node: &Node) -> Result<()> {
    let Node::AlterTableStmt(stmt) = node else { return Ok(()) };
    for cmd in stmt.cmds.iter().flatten() {
        if let Node::AlterTableCmd(cmd) = cmd
            && let Some(Node::ATAlterConstraint(constraint)) = &cmd.def
            && constraint.noinherit
        {
            return Err(Error::unsupported("FOREIGN KEY constraints cannot be marked NO INHERIT"));
        }
    }
    Ok(())
}

fn notice(notice: &rupg_sql::Notice) -> Notice {
    let severity = match notice.severity {
        rupg_sql::Severity::Warning => Severity::Warning,
        _ => Severity::Notice,
    };
    let code = SqlState::parse(&notice.code.to_string()).unwrap_or(SqlState::SUCCESSFUL_COMPLETION);
    Error::with_severity(severity, code, notice.message.clone())
}

fn error(e: &rupg_sql::Error, sql: &str) -> Error {
    let code = SqlState::parse(&e.code.to_string()).unwrap_or(SqlState::SYNTAX_ERROR);
    let mut error = Error::new(code, as_release_15(&e.message));
    if let Some(detail) = e.detail {
        error = error.detail(detail);
    }
    if let Some(hint) = e.hint {
        error = error.hint(hint);
    }
    match e.position(sql) {
        Some(_) if e.message.starts_with("WITH TIES cannot be specified") => error,
        // Of the attributes behind a constraint PostgreSQL does not know where they begin.
        Some(_) if e.message.contains(" constraints cannot be marked ") => error,
        Some(position) => error.at_character(position as u32),
        None => error,
    }
}

/// The grammar is that of a later release, whose scanner knows more forms of numbers.
fn as_release_15(message: &str) -> String {
    for kind in ["hexadecimal", "octal", "binary"] {
        if let Some(rest) = message.strip_prefix("invalid ").and_then(|m| m.strip_prefix(kind))
            && let Some(place) = rest.strip_prefix(" integer")
        {
            return format!("trailing junk after numeric literal{place}");
        }
    }
    message.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_and_their_places() {
        let parsed = parse(" select 1 ;; select 2").unwrap();
        assert_eq!(parsed.len(), 2);
        assert!(parse("").unwrap().is_empty());
        assert!(parse(" ; -- nothing\n").unwrap().is_empty());
    }

    #[test]
    fn syntax_errors_have_their_position() {
        let e = parse("select * form t").unwrap_err();
        assert_eq!((e.code(), e.fields().position), (SqlState::SYNTAX_ERROR, Some(10)));
        assert_eq!(e.fields().message, "syntax error at or near \"form\"");
    }

    #[test]
    fn deep_nesting_is_refused() {
        for sql in [
            format!("select {}1{}", "(".repeat(100_000), ")".repeat(100_000)),
            format!("select {}1", "1+".repeat(100_000)),
            format!("select {}true", "not ".repeat(100_000)),
        ] {
            assert_eq!(parse(&sql).unwrap_err().code(), SqlState::STATEMENT_TOO_COMPLEX);
        }
    }
}
