//! Sequences that write more records than a segment of the log has room for while the next one is prepared.

use testkit::{Nyala, Target};

use super::fixtures::ask;

const FLAGS: [&str; 4] = ["--log-segment", "1MB", "--http", "off"];
/// Records of a sequence that fill some segments.
const VALUES: i32 = 50_000;

#[test]
fn values_wait_for_the_next_segment() {
    if Target::is_postgres() {
        println!("not run: it is about Nyala's log");
        return;
    }
    let directory = tempfile::tempdir().expect("a directory for the server");
    let (data, port) = (directory.path().join("data"), Nyala::free_port());
    let server = Nyala::start_with(&data, port, &FLAGS);
    let mut connection = server.connect();
    ask(&mut connection, "CREATE SEQUENCE s; CREATE SEQUENCE t NO CYCLE MAXVALUE 1000000");
    let set = format!("SELECT count(setval('s', g)) FROM generate_series(1, {VALUES}) AS g");
    assert_eq!(ask(&mut connection, &set), VALUES.to_string());
    let drawn = format!("SELECT count(nextval('t')), max(lastval()) > 0 FROM generate_series(1, {VALUES})");
    assert_eq!(ask(&mut connection, &drawn), format!("{VALUES}|t"));
    ask(&mut connection, &format!("ALTER SEQUENCE s RESTART {}", 2 * VALUES));
    assert_eq!(ask(&mut connection, "SELECT nextval('s')"), (2 * VALUES).to_string());
    server.kill();
    let server = Nyala::start_with(&data, port, &FLAGS);
    let mut connection = server.connect();
    let next = format!("SELECT nextval('s') > {}, nextval('t') > {VALUES}", 2 * VALUES);
    assert_eq!(ask(&mut connection, &next), "t|t");
}
