//! Who gets in: host rules, TLS, channel binding, reloading; seen by psql.

use std::path::Path;
use std::process::Command;

use testkit::Nyala;

/// What psql says to a statement: its output, or the server's refusal.
fn psql(options: &str, environment: &[(&str, &str)], sql: &str) -> String {
    let mut psql = Command::new("psql");
    psql.args(["-X", "-A", "-t", "-q", "-c", sql, options]).env("LC_ALL", "C").env("PGCONNECT_TIMEOUT", "10");
    for variable in ["PGPASSWORD", "PGUSER", "PGHOST", "PGPORT", "PGSSLMODE"] {
        psql.env_remove(variable);
    }
    psql.envs(environment.iter().copied());
    let output = psql.output().expect("psql is installed");
    let text = if output.status.success() { output.stdout } else { output.stderr };
    String::from_utf8_lossy(&text).trim().to_owned()
}

/// The words behind `FATAL:`, or the whole.
fn refusal(text: &str) -> &str {
    text.lines().find_map(|line| line.split_once("FATAL:  ")).map_or(text, |(_, words)| words)
}

/// A certificate for 127.0.0.1 and localhost, signed by itself.
fn certificate(directory: &Path, name: &str) -> (String, String) {
    let (cert, key) = (directory.join(format!("{name}.crt")), directory.join(format!("{name}.key")));
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "30", "-subj", "/CN=localhost"])
        .args(["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"])
        .arg("-keyout")
        .arg(&key)
        .arg("-out")
        .arg(&cert)
        .output()
        .expect("openssl is installed");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    (cert.display().to_string(), key.display().to_string())
}

#[test]
fn rules_decide_and_are_read_again() {
    let directory = tempfile::tempdir().unwrap();
    let rules = directory.path().join("hba.conf");
    let trust = "host all postgres 127.0.0.1/32 trust\n";
    std::fs::write(&rules, trust).unwrap();
    let data = directory.path().join("data");
    let port = Nyala::free_port();
    let server = Nyala::start_with(&data, port, &["--hba", rules.to_str().unwrap(), "--http", "off"]);
    let mut admin = server.connect();
    let shown = "SELECT line_number, type, database, user_name, address, netmask, auth_method, options, error FROM pg_hba_file_rules";
    let place = format!("host=127.0.0.1 port={port} user=postgres dbname=postgres");
    assert_eq!(psql(&place, &[], shown), "1|host|{all}|{postgres}|127.0.0.1|255.255.255.255|trust||");
    for sql in [
        "CREATE ROLE ann LOGIN PASSWORD 'secret'",
        "CREATE ROLE bob LOGIN",
        "CREATE ROLE old LOGIN PASSWORD 'secret' VALID UNTIL '2020-01-01'",
        "CREATE ROLE quiet",
        "CREATE ROLE staff",
        "GRANT staff TO ann",
        "CREATE DATABASE shop",
        "REVOKE CONNECT ON DATABASE shop FROM PUBLIC",
        "GRANT CONNECT ON DATABASE shop TO ann",
    ] {
        assert_eq!(admin.query(sql).error(), None, "{sql}");
    }
    let to = |user: &str, database: &str| format!("host=127.0.0.1 port={port} user={user} dbname={database}");
    let says = |user: &str, database: &str, password: &str| {
        psql(&to(user, database), &[("PGPASSWORD", password)], "SELECT current_user")
    };
    let missing = |user: &str| {
        format!("no pg_hba.conf entry for host \"127.0.0.1\", user \"{user}\", database \"postgres\", no encryption")
    };
    assert_eq!(refusal(&says("ann", "postgres", "secret")), missing("ann"));

    let more = format!(
        "{trust}host all bob 127.0.0.1/32 reject\nhost shop,postgres +staff,old,quiet 127.0.0.0 255.0.0.0 scram-sha-256\n\
         host shop all samehost trust\n"
    );
    std::fs::write(&rules, more).unwrap();
    assert_eq!(admin.query("SELECT pg_reload_conf()").error(), None);
    assert_eq!(says("ann", "postgres", "secret"), "ann");
    assert_eq!(refusal(&says("ann", "postgres", "wrong")), "password authentication failed for user \"ann\"");
    assert_eq!(refusal(&says("old", "postgres", "secret")), "password authentication failed for user \"old\"");
    let rejected = missing("bob").replace("no pg_hba.conf entry for", "pg_hba.conf rejects connection for");
    assert_eq!(refusal(&says("bob", "postgres", "")), rejected);
    assert_eq!(says("ann", "shop", "secret"), "ann");
    assert_eq!(refusal(&says("nobody", "postgres", "")), missing("nobody"));
    assert_eq!(refusal(&says("nobody", "shop", "")), "role \"nobody\" does not exist");
    assert_eq!(admin.query("ALTER ROLE quiet LOGIN PASSWORD 'x'").error(), None);
    assert_eq!(refusal(&says("quiet", "shop", "x")), "permission denied for database \"shop\"");
    assert_eq!(admin.query("ALTER ROLE quiet NOLOGIN").error(), None);
    assert_eq!(refusal(&says("quiet", "postgres", "x")), "role \"quiet\" is not permitted to log in");

    // What cannot be understood changes nothing.
    std::fs::write(&rules, "host all all nonsense\n").unwrap();
    assert_eq!(admin.query("SELECT pg_reload_conf()").error(), None);
    assert_eq!(says("ann", "postgres", "secret"), "ann");
    assert!(server.stderr().contains("host rules are not loaded"), "{}", server.stderr());
}

#[test]
fn connections_are_encrypted_for_those_who_ask() {
    let directory = tempfile::tempdir().unwrap();
    let (cert, key) = certificate(directory.path(), "server");
    let rules = directory.path().join("hba.conf");
    std::fs::write(
        &rules,
        "hostnossl all postgres 127.0.0.1/32 trust\nhostssl all all 127.0.0.1/32 scram-sha-256\nhostnossl all all all reject\n",
    )
    .unwrap();
    let port = Nyala::free_port();
    let flags = ["--tls-cert", &cert, "--tls-key", &key, "--hba", rules.to_str().unwrap(), "--http", "off"];
    let server = Nyala::start_with(&directory.path().join("data"), port, &flags);
    let mut admin = server.connect();
    assert_eq!(admin.query("CREATE ROLE ann LOGIN PASSWORD 'secret'").error(), None);
    let to =
        |mode: &str| format!("host=localhost hostaddr=127.0.0.1 port={port} user=ann dbname=postgres sslmode={mode}");
    let password = [("PGPASSWORD", "secret"), ("PGSSLROOTCERT", cert.as_str())];
    let ssl = "SELECT ssl, version, cipher, bits FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
    assert_eq!(psql(&to("require"), &password, ssl), "t|TLSv1.3|TLS_AES_256_GCM_SHA384|256");
    assert_eq!(psql(&to("verify-full"), &password, "SELECT 1"), "1");
    assert_eq!(psql(&to("prefer"), &password, "SELECT 1"), "1");
    let old = format!("{} ssl_max_protocol_version=TLSv1.2", to("require"));
    assert_eq!(psql(&old, &password, "SELECT version FROM pg_stat_ssl WHERE pid = pg_backend_pid()"), "TLSv1.2");
    let bound = format!("{} channel_binding=require", to("require"));
    assert_eq!(psql(&bound, &password, "SELECT 1"), "1");
    let unbound = format!("{} channel_binding=disable", to("require"));
    assert_eq!(psql(&unbound, &password, "SELECT 1"), "1");
    let wrong = psql(&to("require"), &[("PGPASSWORD", "wrong")], "SELECT 1");
    assert_eq!(refusal(&wrong), "password authentication failed for user \"ann\"");
    let plain = psql(&to("disable"), &password, "SELECT 1");
    let expected =
        "pg_hba.conf rejects connection for host \"127.0.0.1\", user \"ann\", database \"postgres\", no encryption";
    assert_eq!(refusal(&plain), expected);
    // A large result and a large statement go through whole.
    let large = format!("SELECT length('{}'), count(*) FROM generate_series(1, 100000)", "x".repeat(60_000));
    assert_eq!(psql(&to("require"), &password, &large), "60000|100000");
    let rows = psql(&to("require"), &password, "SELECT repeat('y', 1000) FROM generate_series(1, 2000)");
    assert_eq!(rows.lines().count(), 2000);
    // Another certificate from now on: one that the client does not know.
    let (other, other_key) = certificate(directory.path(), "other");
    std::fs::copy(other, &cert).unwrap();
    std::fs::copy(other_key, &key).unwrap();
    let known = directory.path().join("known.crt");
    std::fs::copy(&cert, &known).unwrap();
    assert_eq!(admin.query("SELECT pg_reload_conf()").error(), None);
    let password = [("PGPASSWORD", "secret"), ("PGSSLROOTCERT", known.to_str().unwrap())];
    assert_eq!(psql(&to("verify-full"), &password, "SELECT 1"), "1");
}

#[test]
fn encryption_can_be_demanded() {
    let directory = tempfile::tempdir().unwrap();
    let (cert, key) = certificate(directory.path(), "server");
    let port = Nyala::free_port();
    let mut serve = Command::new(Nyala::binary());
    serve.args(["serve", "--http", "off", "--tls-required", "--tls-cert", &cert, "--tls-key", &key]);
    serve.arg("--data").arg(directory.path().join("data")).arg("--socket-dir").arg(directory.path());
    let mut server = serve.args(["--listen", &format!("127.0.0.1:{port}")]).spawn().expect("the server starts");
    let to = |mode: &str| format!("host=127.0.0.1 port={port} user=postgres dbname=postgres sslmode={mode}");
    let mut answer = String::new();
    for _ in 0..200 {
        answer = psql(&to("require"), &[], "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()");
        if answer == "t" {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    let plain = psql(&to("disable"), &[], "SELECT 1");
    let local = psql(
        &format!("host={} port={port} user=postgres dbname=postgres", directory.path().display()),
        &[],
        "SELECT 1",
    );
    server.kill().expect("it runs");
    server.wait().expect("it ends");
    assert_eq!((answer.as_str(), local.as_str()), ("t", "1"));
    let expected =
        "no pg_hba.conf entry for host \"127.0.0.1\", user \"postgres\", database \"postgres\", no encryption";
    assert_eq!(refusal(&plain), expected);
}
