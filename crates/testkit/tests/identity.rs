//! The role with which a session begins: start-up parameters, `options` among them, and settings of roles and databases, as PostgreSQL answers;
//! default privileges of roles in several databases.

use testkit::{Connection, Oracle, Target, both};

/// Who a session is, in every way that it can be asked.
const WHO: &str = "SELECT current_user, session_user, current_setting('role'), current_setting('is_superuser'), \
                   (SELECT rolname FROM pg_roles WHERE rolname = current_user AND rolsuper) IS NOT NULL";

/// What is done to the roles before logins are tried.
const SETTINGS: &[&str] = &[
    "",
    "ALTER ROLE i_me SET role = 'postgres'",
    "ALTER ROLE i_me SET role = 'i_grp'",
    "ALTER ROLE i_me SET role = 'i_nobody'",
    "ALTER ROLE i_me SET session_authorization = 'postgres'",
    "ALTER ROLE i_me SET session_authorization = 'i_me'",
    "ALTER ROLE i_super SET role = 'i_grp'",
    "ALTER ROLE i_super SET session_authorization = 'i_me'",
    "ALTER ROLE i_me SET role = 'i_grp'; ALTER ROLE i_me SET log_statement = 'ddl'",
    "ALTER ROLE i_me SET deadlock_timeout = '5s'; GRANT i_top TO i_me; ALTER ROLE i_me SET role = 'i_top'",
];

/// What a client asks for when it comes.
const REQUESTS: &[(&str, &str)] = &[
    ("application_name", "x"),
    ("role", "postgres"),
    ("role", "i_grp"),
    ("role", "i_nobody"),
    ("role", "none"),
    ("session_authorization", "postgres"),
    ("session_authorization", "i_grp"),
    ("session_authorization", "i_me"),
    ("is_superuser", "on"),
    ("log_statement", "all"),
    ("options", "-c role=postgres"),
    ("options", "-c role=i_grp --work-mem=1MB"),
    ("options", "-crole=i_super"),
    ("options", "-c session_authorization=postgres"),
    ("options", "-c log_statement=all"),
    ("options", r"-c application_name=a\ b"),
    ("options", "-c role"),
    ("options", "role=i_grp"),
    ("options", "-S 2000 -efs -d0"),
    ("options", "-d2"),
    ("options", "-N 5"),
    ("options", "-fy"),
    ("options", "-nT -q"),
];

/// What is said once in, statement by statement.
const SAID: &[&str] = &[
    WHO,
    "SHOW log_statement",
    "SHOW work_mem",
    "SHOW enable_seqscan; SHOW DateStyle",
    "RESET role",
    WHO,
    "SELECT set_config('role', 'postgres', false)",
    "SET SESSION AUTHORIZATION postgres",
    WHO,
    "DISCARD ALL",
    WHO,
];

/// The answers of one server to a login and what is said then.
fn answers(port: u16, database: &str, user: &str, request: (&str, &str)) -> Vec<String> {
    let parameters = [("user", user), ("database", database), request];
    let (mut connection, reply) = Connection::open_with(port, &parameters).expect("the server answers");
    // The versions' texts differ.
    let login = reply.to_string();
    let same: Vec<&str> = login.lines().filter(|line| !line.contains("server_version")).collect();
    let mut told = vec![same.join("\n")];
    if reply.status.is_some() {
        told.extend(SAID.iter().map(|sql| connection.query(sql).to_string()));
    }
    told
}

#[test]
fn logins_become_whom_they_may() {
    let (oracle, subject) = (Target::reference(), Target::start());
    let servers = [(Oracle::shared().port(), oracle.database()), (subject.port(), subject.database())];
    let mut admins = [oracle.connect(), subject.connect()];
    let mut both = |sql: &str| {
        let replies: Vec<String> = admins.iter_mut().map(|admin| admin.query(sql).to_string()).collect();
        assert_eq!(replies[0], replies[1], "{sql}");
    };
    both(
        "CREATE ROLE i_me LOGIN; CREATE ROLE i_grp; CREATE ROLE i_top; CREATE ROLE i_super SUPERUSER LOGIN; GRANT i_grp TO i_me; \
         GRANT i_grp TO i_top",
    );
    let mut tried = 0;
    for settings in SETTINGS {
        both(settings);
        for user in ["i_me", "i_super"] {
            for request in REQUESTS {
                let [expected, got] = servers.map(|(port, database)| answers(port, database, user, *request));
                assert_eq!(
                    expected.len(),
                    got.len(),
                    "{user} with {request:?} after {settings:?}: {expected:?} {got:?}"
                );
                for (expected, got) in expected.iter().zip(&got) {
                    assert_eq!(expected, got, "{user} with {request:?} after {settings:?}");
                }
                tried += 1;
            }
        }
        both("ALTER ROLE i_me RESET ALL; ALTER ROLE i_super RESET ALL");
    }
    both("DROP ROLE i_me, i_grp, i_top, i_super");
    assert_eq!(tried, SETTINGS.len() * REQUESTS.len() * 2);
}

/// What is said in one database of what new tables begin with says nothing in another one.
#[test]
fn default_privileges_stay_in_their_database() {
    let (oracle, subject) = (Target::reference(), Target::start());
    let ports = [Oracle::shared().port(), subject.port()];
    let mut first = [oracle.connect(), subject.connect()];
    both(&mut first, "CREATE ROLE dp_maker; CREATE ROLE dp_reader");
    both(&mut first, "CREATE DATABASE dp_other");
    both(&mut first, "ALTER DEFAULT PRIVILEGES FOR ROLE dp_maker GRANT SELECT ON TABLES TO dp_reader");
    let mut second = ports.map(|port| Connection::open(port, "dp_other").expect("the new database"));
    let made =
        "CREATE SCHEMA dp; GRANT ALL ON SCHEMA dp TO PUBLIC; SET ROLE dp_maker; CREATE TABLE dp.t (a int); RESET ROLE";
    for connections in [&mut first, &mut second] {
        both(connections, made);
        both(connections, "SELECT defaclobjtype FROM pg_default_acl WHERE defaclrole = 'dp_maker'::regrole");
    }
    let read = "SET ROLE dp_reader; SELECT * FROM dp.t; RESET ROLE";
    assert!(both(&mut second, read).contains("42501"), "what was granted in one database is granted in the other");
    both(&mut second, "RESET ROLE");
    both(&mut first, read);
    both(&mut second, "ALTER DEFAULT PRIVILEGES FOR ROLE dp_maker GRANT INSERT ON TABLES TO dp_reader");
    both(&mut second, "SELECT count(*) FROM pg_default_acl");
    both(&mut first, "DROP SCHEMA dp CASCADE; DROP OWNED BY dp_reader; DROP OWNED BY dp_maker");
    assert!(both(&mut first, "DROP ROLE dp_reader").contains("2BP01"), "it is named in the other database");
    // With the database goes what was said in it.
    both(&mut first, "DROP DATABASE dp_other WITH (FORCE)");
    both(&mut first, "DROP ROLE dp_reader, dp_maker");
}
