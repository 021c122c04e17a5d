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
