//! Functions about other sessions and about the server: cancelling, ending, reading the configuration again.

use base::{Error, Oid, Result, Severity, SqlState};
use engine_api::oids;
use sql_parse::privileges::roles;
use types::Datum;

use super::super::entry::mismatch;
use super::super::{EvalContext, Server};

fn server(cx: &dyn EvalContext) -> Result<&dyn Server> {
    cx.server().ok_or_else(|| Error::unsupported("this function needs a session"))
}

fn denied(message: &str) -> Error {
    Error::new(SqlState::INSUFFICIENT_PRIVILEGE, message)
}

/// The number of a session that the current role may signal; `None`, with a warning, if there is no such session.
fn target(cx: &dyn EvalContext, args: &[Datum], of_superuser: &str, of_another: &str) -> Result<Option<i32>> {
    let Some(Datum::Int4(pid)) = args.first() else { return Err(mismatch("pg_cancel_backend")) };
    let Some(session) = server(cx)?.monitor().session(*pid) else {
        let message = format!("PID {pid} is not a PostgreSQL backend process");
        cx.notice(Error::with_severity(Severity::Warning, SqlState::WARNING, message));
        return Ok(None);
    };
    let (catalog, identity) = (cx.catalog(), cx.identity());
    let who = identity.who();
    if roles::is_superuser(&catalog, session.role) && !roles::is_superuser(&catalog, who.role) {
        return Err(denied(of_superuser));
    }
    let may = |role: Oid| roles::has_privileges_of(&catalog, who, role);
    if !may(session.role) && !may(oids::ROLE_SIGNAL_BACKEND) {
        return Err(denied(of_another));
    }
    Ok(Some(*pid))
}

pub(super) fn cancel(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let of_superuser = "must be a superuser to cancel superuser query";
    let of_another = "must be a member of the role whose query is being canceled or member of pg_signal_backend";
    let found = target(cx, args, of_superuser, of_another)?;
    let server = server(cx)?;
    if found == Some(server.activity().pid) {
        // Who cancels the own statement does not live to see it done.
        return Err(Error::new(SqlState::QUERY_CANCELED, "canceling statement due to user request"));
    }
    Ok(Datum::Bool(found.is_some_and(|pid| server.cancel(pid))))
}

pub(super) fn terminate(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let of_superuser = "must be a superuser to terminate superuser process";
    let of_another = "must be a member of the role whose process is being terminated or member of pg_signal_backend";
    match args.get(1) {
        Some(Datum::Int8(..0)) => {
            let message = "\"timeout\" must not be negative";
            return Err(Error::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, message));
        }
        None | Some(Datum::Int8(0)) => {}
        Some(_) => return Err(Error::unsupported("pg_terminate_backend does not wait for the end of the session")),
    }
    let found = target(cx, args, of_superuser, of_another)?;
    let server = server(cx)?;
    if found == Some(server.activity().pid) {
        return Err(Error::fatal(SqlState::ADMIN_SHUTDOWN, "terminating connection due to administrator command"));
    }
    Ok(Datum::Bool(found.is_some_and(|pid| server.terminate(pid))))
}

fn require_superuser(cx: &dyn EvalContext, function: &str) -> Result<()> {
    match cx.identity().superuser {
        true => Ok(()),
        false => Err(denied(&format!("permission denied for function {function}"))),
    }
}

pub(super) fn reload(cx: &dyn EvalContext, _: &[Datum]) -> Result<Datum> {
    require_superuser(cx, "pg_reload_conf")?;
    server(cx)?.reload();
    Ok(Datum::Bool(true))
}

pub(super) fn started(cx: &dyn EvalContext, _: &[Datum]) -> Result<Datum> {
    Ok(Datum::TimestampTz(server(cx)?.monitor().started))
}

pub(super) fn reset_statements(cx: &dyn EvalContext, _: &[Datum]) -> Result<Datum> {
    require_superuser(cx, "pg_stat_statements_reset")?;
    server(cx)?.monitor().statements.reset();
    Ok(Datum::text(""))
}

pub(super) fn client_port(cx: &dyn EvalContext, _: &[Datum]) -> Result<Datum> {
    let client = cx.server().map(|server| &server.activity().client);
    Ok(client.and_then(|client| client.port).map_or(Datum::Null, |port| Datum::Int4(port.into())))
}
