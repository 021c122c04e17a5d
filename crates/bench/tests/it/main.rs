//! The lab against a PostgreSQL of its own.

mod experiments;
mod interrupt;
mod mariadb;
mod postgres;
mod proxy;
mod suite;

use std::collections::BTreeSet;

use bench::Target;
use bench::client::{Connection, Failure};
use bench::command::Workload;
use bench::experiments::Refusal;
use bench::experiments::tpcc::{TpccArgs, check};
use bench::result::RunFile;
use clap::Parser;
use postgres::Postgres;

#[derive(Parser)]
struct Options {
    #[command(flatten)]
    args: TpccArgs,
}

fn args(server: &Postgres, rest: &[&str]) -> TpccArgs {
    let target = server.url("postgres", None);
    let all = ["tpcc", "--target", &target, "--seed", "7", "--clients", "4"].into_iter().chain(rest.iter().copied());
    Options::parse_from(all).args
}

fn run(server: &Postgres, rest: &[&str]) -> RunFile {
    bench::experiments::run(Workload::Tpcc(args(server, rest)).task())
        .expect("the experiment runs")
        .expect("it reports")
}

fn refused(server: &Postgres, rest: &[&str]) -> String {
    match bench::experiments::run(Workload::Tpcc(args(server, rest)).task()) {
        Err(Refusal::Options(why)) => why,
        other => panic!("not refused: {other:?}"),
    }
}

fn open(url: &str) -> Result<Connection, Failure> {
    Connection::open(&url.parse::<Target>().expect("a good URL"))
}

/// A statement that breaks conditions, and exactly which ones.
type Corruption = (&'static str, &'static [&'static str]);

/// Corruptions planted together, because a check takes its time. Those of one group break different conditions.
const GROUPS: [&[Corruption]; 3] = [
    &[
        ("UPDATE warehouse SET w_ytd = w_ytd + 0.01", &["3.3.2.1", "3.3.2.8"]),
        ("UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_id = 1", &["3.3.2.2"]),
        (
            "DELETE FROM new_order WHERE no_d_id = 1 \
             AND no_o_id = (SELECT min(no_o_id) + 1 FROM new_order WHERE no_d_id = 1)",
            &["3.3.2.3", "3.3.2.5", "3.3.2.11"],
        ),
        ("DELETE FROM order_line WHERE ol_d_id = 1 AND ol_o_id = 1 AND ol_number = 1", &["3.3.2.4", "3.3.2.6"]),
        ("UPDATE order_line SET ol_delivery_d = NULL WHERE ol_d_id = 1 AND ol_o_id = 2", &["3.3.2.7"]),
        (
            "UPDATE customer SET c_balance = c_balance + 1, c_ytd_payment = c_ytd_payment - 1 WHERE c_id = 1",
            &["3.3.2.10"],
        ),
        ("UPDATE customer SET c_ytd_payment = c_ytd_payment + 1 WHERE c_id = 2", &["3.3.2.12"]),
    ],
    &[
        ("UPDATE district SET d_ytd = d_ytd - 0.01 WHERE d_id = 1", &["3.3.2.1", "3.3.2.9"]),
        ("UPDATE orders SET o_carrier_id = NULL WHERE o_d_id = 1 AND o_id = 1", &["3.3.2.5", "3.3.2.7"]),
        ("UPDATE orders SET o_ol_cnt = o_ol_cnt + 1 WHERE o_d_id = 1 AND o_id = 1", &["3.3.2.4", "3.3.2.6"]),
        ("UPDATE customer SET c_delivery_cnt = c_delivery_cnt + 1 WHERE c_d_id = 1 AND c_id = 1", &["3.3.2.11"]),
    ],
    &[(
        "INSERT INTO history SELECT * FROM history WHERE h_d_id = 1 AND h_c_d_id = 1 LIMIT 1",
        &["3.3.2.8", "3.3.2.9", "3.3.2.10"],
    )],
];

#[test]
fn planted_corruption_is_found() {
    let server = Postgres::start();
    let report = run(&server, &["--warehouses", "1", "--duration", "1s", "--warmup", "200ms"]);
    assert!(report.is_good(), "{report:?}");
    let mut connection = open(&server.url("postgres", None)).unwrap();
    let mut caught = BTreeSet::new();
    for group in GROUPS {
        connection.query("BEGIN").unwrap();
        for (corruption, _) in group {
            connection.query(corruption).unwrap();
            assert!(connection.affected() > 0, "{corruption}");
        }
        let expected: BTreeSet<&str> = group.iter().flat_map(|(_, clauses)| *clauses).copied().collect();
        assert_eq!(
            expected.len(),
            group.iter().map(|(_, clauses)| clauses.len()).sum::<usize>(),
            "a group is disjoint"
        );
        let verdicts = check::check(&mut connection, |_| {}).unwrap();
        let broken: BTreeSet<&str> = verdicts.iter().filter(|v| !v.holds).map(|v| clause(&v.says)).collect();
        assert_eq!(broken, expected, "{verdicts:#?}");
        let mut found = verdicts.iter().filter(|v| !v.holds);
        assert!(found.all(|v| v.found.starts_with("rows that break it: ")), "{verdicts:#?}");
        caught.extend(expected);
        connection.query("ROLLBACK").unwrap();
    }
    assert_eq!(caught.len(), 12, "every condition has caught something");
    connection.query("UPDATE warehouse SET w_ytd = 0").unwrap();
    assert!(!run(&server, &["--no-load", "--duration", "0s"]).is_good());
    connection.query("DROP TABLE history").unwrap();
    let verdicts = check::check(&mut connection, |_| {}).unwrap();
    assert!(!verdicts[7].holds && verdicts[7].found.starts_with("could not be checked"), "{:?}", verdicts[7]);
}

/// The clause that a verdict is about.
fn clause(says: &str) -> &str {
    says.split(' ').next().unwrap_or_default()
}

#[test]
fn a_run_loads_once_and_measures() {
    let server = Postgres::start();
    assert_eq!(refused(&server, &["--no-load"]), "there are no loaded tables");
    let loaded = run(&server, &["--warehouses", "1", "--duration", "0s", "--foreign-keys"]);
    let load = loaded.load.as_ref().expect("tables were loaded");
    assert!(load.rows > 590_000, "{load:?}");
    assert!(loaded.points.is_empty() && loaded.is_good(), "{loaded:?}");
    assert_eq!(loaded.notes.len(), 2, "nothing was refused: {:?}", loaded.notes);
    assert!(refused(&server, &["--warehouses", "3"]).starts_with("the tables have 1 warehouses, not 3"));

    for mode in [&["--isolation", "repeatable-read"][..], &["--pipelined"]] {
        let report = run(&server, &[&["--duration", "2s", "--warmup", "100ms"], mode].concat());
        assert!(report.is_good() && report.load.is_none(), "{report:?}");
        let [point] = report.points.as_slice() else { panic!("{report:?}") };
        assert!(point.kinds.iter().all(|kind| kind.count > 0), "{point:?}");
        assert!(point.errors.is_empty(), "{point:?}");
        assert!(point.usage.server_seconds().unwrap() > 0.1 && point.usage.server_processes.unwrap() > 5, "{point:?}");
        let used = |name: &str| point.usage.processes.iter().find(|process| process.name == name).cloned();
        let clients = used("postgres: clients").expect("the server's processes are told apart");
        assert!(clients.is_server && clients.count == 4 && clients.user_seconds > 0.0, "{:?}", point.usage);
        assert!(used("generator").is_some_and(|own| !own.is_server && own.user_seconds > 0.0), "{:?}", point.usage);
        assert!(point.series.iter().all(|second| second.client_cores.is_some() && second.written_per_second.is_some()));
        assert!(point.figures["NOPM (derived from TPC-C, unaudited)"] > 0.0, "{point:?}");
        assert_eq!(report.verdicts.len(), 15);
        assert_eq!((report.server.product.as_str(), report.server.durable), ("PostgreSQL", Some(false)));
    }

    assert!(bench::experiments::run(Workload::Tpcc(args(&server, &["--drop"])).task()).unwrap().is_none());
    assert_eq!(refused(&server, &["--no-load"]), "there are no loaded tables");
}

#[test]
fn clients_log_in_with_passwords_and_over_sockets() {
    let server = Postgres::start();
    let mut admin = open(&server.url("postgres", None)).unwrap();
    admin.query("CREATE ROLE scram LOGIN PASSWORD 'p@ss w\u{f6}rd'").unwrap();
    admin.query("SET password_encryption = 'scram-sha-256'; CREATE ROLE plain LOGIN PASSWORD 'open'").unwrap();
    assert!(admin.server_version().starts_with(char::is_numeric));
    for (role, password) in [("scram", "p%40ss%20w%C3%B6rd"), ("plain", "open")] {
        let mut client = open(&server.url(role, Some(password))).unwrap();
        assert_eq!(client.query_one("SELECT current_user").unwrap().as_deref(), Some(role));
    }
    let wrong = open(&server.url("scram", Some("wrong"))).err().unwrap();
    assert_eq!(wrong.state(), "28P01");
    let none = open(&server.url("scram", None)).err().unwrap();
    assert_eq!(none.to_string(), "connection lost: cannot log in: the server asks for a password");
    let mut local = open(&server.socket_url()).unwrap();
    assert_eq!(local.query_one("SELECT inet_client_addr()").unwrap(), None);
    let cpu = bench::cpu::Server::find(&server.socket_url().parse().unwrap()).unwrap();
    assert!(cpu.used().pids().count() > 1);
}

#[test]
fn a_failure_leaves_the_connection_usable() {
    let server = Postgres::start();
    let mut client = open(&server.url("postgres", None)).unwrap();
    client.prepare(&["SELECT 1 / $1::int".into(), "SELECT $1::text, NULL".into()]).unwrap();
    assert_eq!(client.call(0, &[bench::client::Param::Int(0)]).unwrap_err().state(), "22012");
    client.call(1, &[bench::client::Param::Text(b"x")]).unwrap();
    assert_eq!(client.row(0).cells().collect::<Vec<_>>(), [Some(&b"x"[..]), None]);
    client.query("CREATE TABLE t (a int PRIMARY KEY)").unwrap();
    let rows = |text: &'static [u8]| {
        move |out: &mut Vec<u8>| {
            out.extend_from_slice(text);
            false
        }
    };
    assert_eq!(client.copy_in("t", rows(b"1\n2\n")).unwrap(), 2);
    assert_eq!(client.copy_in("t", rows(b"1\n")).unwrap_err().state(), "23505");
    assert_eq!(client.copy_in("nothing", rows(b"")).unwrap_err().state(), "42P01");
    client.query("BEGIN").unwrap();
    assert!(client.in_transaction());
    assert!(client.query("nonsense").is_err() && client.in_transaction());
    client.query("ROLLBACK").unwrap();
    assert_eq!(client.query_one("SELECT count(*) FROM t").unwrap().as_deref(), Some("2"));
    // What a server says before it closes is not lost.
    let mut other = open(&server.url("postgres", None)).unwrap();
    let pid = client.query_one("SELECT pg_backend_pid()").unwrap().unwrap();
    other.query(&format!("SELECT pg_terminate_backend({pid})")).unwrap();
    let lost = std::iter::repeat_with(|| client.query("SELECT pg_sleep(0.1)")).find_map(Result::err).unwrap();
    assert_eq!(lost.state(), "08006");
}
