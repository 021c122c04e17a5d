//! `pg_stat_activity`, `pg_stat_ssl`, `pg_stat_database`, `pg_stat_statements` and the like.
//!
//! What is not counted is NULL, so that a zero is not taken for a measurement.

use base::Oid;
use engine_api::{Catalog, CatalogObject, oids};
use sql_functions::{EvalContext, network};
use sql_ir::system_relation::SystemRelation;
use sql_parse::monitor::{Activity, SessionState, Snapshot, Waiting};
use sql_parse::privileges::{Who, roles};
use types::Datum;

use super::views::name_of;
use super::{SystemRows, oid, row, text};

fn time(micros: i64) -> Datum {
    if micros == 0 { Datum::Null } else { Datum::TimestampTz(micros) }
}

fn who(cx: &dyn EvalContext) -> Who {
    let identity = cx.identity();
    identity.who()
}

/// Whether a role may see what another one's session does.
fn may_see(catalog: &Catalog, who: Who, other: Oid) -> bool {
    roles::has_privileges_of(catalog, who, other) || roles::has_privileges_of(catalog, who, oids::ROLE_READ_ALL_STATS)
}

fn client_columns(session: &Activity) -> Vec<(&'static str, Datum)> {
    let port = match (&session.client.address, session.client.port) {
        (Some(_), Some(port)) => Datum::Int4(port.into()),
        // As PostgreSQL shows a Unix socket.
        _ => Datum::Int4(-1),
    };
    vec![("client_addr", network::address(session.client.address.as_deref())), ("client_port", port)]
}

fn waits(seen: &Snapshot) -> Option<(&'static str, &'static str)> {
    match (seen.state, seen.waiting) {
        (SessionState::Active, Waiting::No) => None,
        (SessionState::Active, Waiting::Lock) => Some(("Lock", "transactionid")),
        (SessionState::Active, Waiting::Sleep) => Some(("Timeout", "PgSleep")),
        (SessionState::Active, Waiting::Memory) => Some(("Extension", "MemoryLimit")),
        _ => Some(("Client", "ClientRead")),
    }
}

pub(super) fn activity(rel: &SystemRelation, cx: &dyn EvalContext) -> SystemRows {
    let Some(server) = cx.server() else { return Ok(Vec::new()) };
    let (catalog, who) = (cx.catalog(), who(cx));
    let mut rows = Vec::new();
    for session in server.monitor().sessions() {
        let seen = session.snapshot();
        let mut columns = vec![
            ("datid", oid(session.database)),
            ("datname", text(name_of(&catalog, session.database))),
            ("pid", Datum::Int4(session.pid)),
            ("usesysid", oid(session.role)),
            ("usename", text(name_of(&catalog, session.role))),
            ("application_name", text(&seen.application)),
        ];
        if may_see(&catalog, who, session.role) {
            let wait = waits(&seen);
            columns.extend(client_columns(&session));
            columns.extend([
                ("backend_start", time(session.started)),
                ("xact_start", time(seen.transaction_start)),
                ("query_start", time(seen.query_start)),
                ("state_change", time(seen.state_change)),
                ("wait_event_type", wait.map_or(Datum::Null, |(kind, _)| text(kind))),
                ("wait_event", wait.map_or(Datum::Null, |(_, event)| text(event))),
                ("state", text(seen.state.name())),
                ("query", text(&seen.query)),
                ("backend_type", text("client backend")),
            ]);
        } else {
            columns.push(("query", text("<insufficient privilege>")));
        }
        rows.push(row(rel, columns));
    }
    Ok(rows)
}

pub(super) fn ssl(rel: &SystemRelation, cx: &dyn EvalContext) -> SystemRows {
    let Some(server) = cx.server() else { return Ok(Vec::new()) };
    let (catalog, who) = (cx.catalog(), who(cx));
    let sessions = server.monitor().sessions();
    Ok(sessions
        .iter()
        .map(|session| {
            let mut columns = vec![("pid", Datum::Int4(session.pid))];
            if may_see(&catalog, who, session.role) {
                let encryption = session.client.encryption;
                columns.push(("ssl", Datum::Bool(encryption.is_some())));
                if let Some(encryption) = encryption {
                    columns.push(("version", text(encryption.version)));
                    columns.push(("cipher", text(encryption.cipher)));
                    columns.push(("bits", Datum::Int4(encryption.bits)));
                }
            }
            row(rel, columns)
        })
        .collect())
}

pub(super) fn gssapi(rel: &SystemRelation, cx: &dyn EvalContext) -> SystemRows {
    let Some(server) = cx.server() else { return Ok(Vec::new()) };
    let (catalog, who) = (cx.catalog(), who(cx));
    let of = |session: &std::sync::Arc<sql_parse::monitor::Activity>| {
        let mut columns = vec![("pid", Datum::Int4(session.pid))];
        if may_see(&catalog, who, session.role) {
            columns.extend(["gss_authenticated", "encrypted"].map(|name| (name, Datum::Bool(false))));
        }
        row(rel, columns)
    };
    Ok(server.monitor().sessions().iter().map(of).collect())
}

pub(super) fn databases(rel: &SystemRelation, cx: &dyn EvalContext) -> SystemRows {
    let Some(server) = cx.server() else { return Ok(Vec::new()) };
    let catalog = cx.catalog();
    let mut rows = Vec::new();
    for object in catalog.walk() {
        let CatalogObject::Database(database) = &**object else { continue };
        let counts = server.monitor().counts_of(database.oid);
        rows.push(row(
            rel,
            vec![
                ("datid", oid(database.oid)),
                ("datname", text(&database.name)),
                ("numbackends", Datum::Int4(counts.backends as i32)),
                ("xact_commit", Datum::Int8(counts.commits as i64)),
                ("xact_rollback", Datum::Int8(counts.rollbacks as i64)),
                ("tup_returned", Datum::Int8(counts.returned as i64)),
                ("tup_inserted", Datum::Int8(counts.inserted as i64)),
                ("tup_updated", Datum::Int8(counts.updated as i64)),
                ("tup_deleted", Datum::Int8(counts.deleted as i64)),
                ("sessions", Datum::Int8(counts.sessions as i64)),
            ],
        ));
    }
    Ok(rows)
}

pub(super) fn statements(rel: &SystemRelation, cx: &dyn EvalContext) -> SystemRows {
    let Some(server) = cx.server() else { return Ok(Vec::new()) };
    let (catalog, who) = (cx.catalog(), who(cx));
    let millis = |micros: u64| Datum::Float8(micros as f64 / 1000.0);
    let mut rows = Vec::new();
    for (figures, sums) in server.monitor().statements.all() {
        let seen = may_see(&catalog, who, figures.key.role);
        rows.push(row(
            rel,
            vec![
                ("userid", oid(figures.key.role)),
                ("dbid", oid(figures.key.database)),
                ("toplevel", Datum::Bool(true)),
                ("queryid", if seen { Datum::Int8(figures.id()) } else { Datum::Null }),
                ("query", if seen { text(&figures.key.text) } else { text("<insufficient privilege>") }),
                // Planning is not tracked, as with PostgreSQL's default.
                ("plans", Datum::Int8(0)),
                ("total_plan_time", millis(0)),
                ("min_plan_time", millis(0)),
                ("max_plan_time", millis(0)),
                ("mean_plan_time", millis(0)),
                ("stddev_plan_time", millis(0)),
                ("calls", Datum::Int8(sums.calls as i64)),
                ("total_exec_time", millis(sums.micros)),
                ("min_exec_time", millis(sums.micros_min)),
                ("max_exec_time", millis(sums.micros_max)),
                ("mean_exec_time", Datum::Float8(sums.micros as f64 / 1000.0 / sums.calls as f64)),
                ("rows", Datum::Int8(sums.rows as i64)),
            ],
        ));
    }
    Ok(rows)
}
