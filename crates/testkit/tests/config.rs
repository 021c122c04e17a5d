//! The configuration file, and the settings with which sessions begin.

use std::process::Command;

use testkit::Nyala;

fn psql(port: u16, user: &str, database: &str, sql: &str) -> String {
    let conninfo = format!("host=127.0.0.1 port={port} user={user} dbname={database}");
    let mut psql = Command::new("psql");
    psql.args(["-X", "-A", "-t", "-q", &conninfo, "-c", sql]).env("LC_ALL", "C").env_remove("PGOPTIONS");
    let output = psql.output().expect("psql is installed");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

#[test]
fn the_stronger_word_counts() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("nyala.toml");
    std::fs::write(&file, "http = 'off'\nmax-connections = 9\n[settings]\nwork_mem = '8MB'\nlock_timeout = 1000\n")
        .unwrap();
    let flags = ["--config", file.to_str().unwrap()];
    let server = Nyala::start_with(&directory.path().join("data"), Nyala::free_port(), &flags);
    assert!(!server.stderr().contains("HTTP"), "{}", server.stderr());
    let shown =
        "SELECT current_setting('work_mem'), current_setting('lock_timeout'), current_setting('statement_timeout')";
    let port = server.port();
    assert_eq!(psql(port, "postgres", "postgres", shown), "8MB|1s|0");
    assert_eq!(psql(port, "postgres", "postgres", "SHOW max_connections"), "9");
    for sql in [
        "CREATE ROLE ann LOGIN",
        "CREATE DATABASE shop",
        "ALTER DATABASE shop SET lock_timeout = 2000",
        "ALTER DATABASE shop SET work_mem = '5MB'",
        "ALTER ROLE ann SET work_mem = '6MB'",
        "ALTER ROLE ann IN DATABASE shop SET statement_timeout = '7s'",
    ] {
        assert_eq!(psql(port, "postgres", "postgres", sql), "", "{sql}");
    }
    assert_eq!(psql(port, "ann", "postgres", shown), "6MB|1s|0");
    assert_eq!(psql(port, "ann", "shop", shown), "6MB|2s|7s");
    assert_eq!(psql(port, "postgres", "shop", shown), "5MB|2s|0");
    assert_eq!(psql(port, "ann", "shop", "SET work_mem = '1MB'; RESET work_mem; SHOW work_mem"), "6MB");

    let wrong = directory.path().join("wrong.toml");
    std::fs::write(&wrong, "nonsense = 5\n").unwrap();
    let refused = Command::new(Nyala::binary()).args(["serve", "--config"]).arg(&wrong).output().unwrap();
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && said.contains("--nonsense"), "{said}");
}

/// On the command line and in the file as in ALTER SYSTEM: what sessions could not begin with is refused, by its name.
#[test]
fn wrong_settings_are_refused_by_name() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let wrong = [
        ("nosuch", "1", "unrecognized configuration parameter \"nosuch\""),
        ("work_mem", "abc", "invalid value for parameter \"work_mem\": \"abc\""),
        (
            "statement_timeout",
            "-5",
            "-5 ms is outside the valid range for parameter \"statement_timeout\" (0 .. 2147483647)",
        ),
        ("client_min_messages", "loud", "invalid value for parameter \"client_min_messages\": \"loud\""),
        ("enable_seqscan", "perhaps", "parameter \"enable_seqscan\" requires a Boolean value"),
        ("TimeZone", "Nowhere/At_all", "invalid value for parameter \"TimeZone\": \"Nowhere/At_all\""),
        ("app.5th", "1", "invalid configuration parameter name \"app.5th\""),
    ];
    // Who the sessions are, and what has an option of its own.
    let configured = [("max_connections", "5"), ("memory_limit", "1GB"), ("role", "postgres"), ("is_superuser", "on")];
    let configured = configured
        .map(|(name, value)| (name, value, format!("parameter \"{name}\" cannot be changed by the configuration")));
    let refused = wrong.map(|(name, value, why)| (name, value, why.to_owned())).into_iter().chain(configured);
    let file = directory.path().join("nyala.toml");
    for (name, value, why) in refused {
        std::fs::write(&file, format!("[settings]\n\"{name}\" = '{value}'\n")).unwrap();
        let set = format!("{name}={value}");
        for said in [["--set", &set], ["--config", file.to_str().unwrap()]] {
            let mut serve = Command::new(Nyala::binary());
            serve.args(["serve", "--http", "off", "--socket-dir", "", "--listen", "127.0.0.1:0", "--data"]).arg(&data);
            let output = serve.args(said).output().unwrap();
            let text = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!((output.status.code(), text.lines().count()), (Some(1), 1), "{said:?}: {text}");
            assert!(text.contains(&why) && !data.exists(), "{said:?}: {text}");
        }
    }
    let server = Nyala::start_with(&data, Nyala::free_port(), &["--set", "app.name=x", "--set", "WORK_MEM=8MB"]);
    let mut connection = server.connect();
    assert_eq!(connection.query("SHOW app.name").value(), Some("x"));
    assert_eq!(connection.query("SHOW work_mem").value(), Some("8MB"));
    for (name, value, why) in wrong {
        let reply = connection.query(&format!("ALTER SYSTEM SET {name} = '{value}'"));
        match name {
            // No name for the grammar.
            "app.5th" => assert_ne!(reply.code(), "00000", "{reply}"),
            _ => assert!(reply.error().is_some_and(|error| error.message == why), "{reply}"),
        }
    }
}

#[test]
fn alter_system_counts_after_a_reload_and_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let port = Nyala::free_port();
    let server = Nyala::start_with(&data, port, &["--http", "off"]);
    let admin = |sql: &str| psql(port, "postgres", "postgres", sql);
    let shown = "SELECT setting, source FROM pg_settings WHERE name = 'work_mem'";
    assert_eq!(admin(shown), "4096|default");
    admin("ALTER SYSTEM SET work_mem = '7MB'");
    assert_eq!(admin(shown), "4096|default", "not before the configuration is read");
    assert_eq!(admin("SELECT pg_reload_conf()"), "t");
    assert_eq!(admin(shown), "7168|configuration file");
    admin("ALTER ROLE ALL SET work_mem = '9MB'");
    assert_eq!(admin(shown), "9216|global");
    admin("ALTER ROLE ALL IN DATABASE postgres SET work_mem = '10MB'");
    assert_eq!(admin(shown), "10240|database");
    admin("ALTER ROLE postgres SET work_mem = '11MB'");
    assert_eq!(admin(shown), "11264|user");
    assert_eq!(admin(&format!("SET work_mem = '12MB'; {shown}")), "12288|session");
    server.kill();
    let server = Nyala::start_with(&data, port, &["--http", "off"]);
    assert_eq!(admin(shown), "11264|user");
    admin("ALTER ROLE postgres RESET ALL");
    admin("ALTER DATABASE postgres RESET ALL");
    admin("ALTER ROLE ALL RESET ALL");
    assert_eq!(admin(shown), "7168|configuration file");
    admin("ALTER SYSTEM RESET ALL");
    assert_eq!(admin(shown), "7168|configuration file");
    admin("SELECT pg_reload_conf()");
    assert_eq!(admin(shown), "4096|default");
    assert!(!server.is_gone());
}
