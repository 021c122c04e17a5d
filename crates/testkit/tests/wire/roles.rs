//! Roles that change under sessions.

use crate::*;

#[test]
fn a_renamed_role_keeps_its_sessions() {
    let mut pair = Pair::new(&[]);
    pair.query("CREATE ROLE wire_ann; CREATE TABLE t (a int); GRANT SELECT ON t TO wire_ann");
    let mut other = pair.more(&[]);
    let mut ask = |sql: &str| same(&mut other, &[query(sql.as_bytes())], 1);
    let who = "SELECT current_user, session_user, count(*) FROM t";
    ask("SET SESSION AUTHORIZATION wire_ann");
    ask(who);
    pair.query("ALTER ROLE wire_ann RENAME TO wire_bob");
    let seen = ask(who);
    assert!(seen.iter().any(|m| m.contains("wire_bob")), "{seen:?}");
    ask("SHOW session_authorization");
    ask("INSERT INTO t VALUES (1)");
    ask("RESET SESSION AUTHORIZATION");
    ask("SET ROLE wire_bob");
    pair.query("ALTER ROLE wire_bob RENAME TO wire_ann");
    ask(who);
    ask("SHOW role");
    // The old name is free for another role, which is not the session's.
    pair.query("CREATE ROLE wire_bob");
    ask(who);
    ask("RESET ROLE");
    ask(who);
    ask("SET ROLE wire_bob");
    ask(who);
    ask("RESET ROLE");
    pair.query("DROP TABLE t; DROP ROLE wire_ann, wire_bob");
}
