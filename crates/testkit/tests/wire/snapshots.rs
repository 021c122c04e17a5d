//! Snapshots that one session exports and another imports.

use crate::*;

/// Exports in a transaction begun by `begin`; the names.
fn export(pair: &mut Pair, begin: &str) -> [String; 2] {
    pair.query(begin);
    pair.wires().each_mut().map(|wire| {
        wire.send(&[query(b"SELECT pg_export_snapshot()")]);
        let row = wire.answers(1).into_iter().find(|m| m.starts_with("D ")).expect("a name");
        row.rsplit("\\x00").next().map(|name| name[4..].to_owned()).expect("a name after its length")
    })
}

/// Imports after `begin` in other sessions; what both answer.
fn import(wires: &mut [Wire; 2], begin: &str, names: &[String; 2]) -> Vec<String> {
    same(wires, &[query(begin.as_bytes())], 1);
    for (wire, name) in wires.iter_mut().zip(names) {
        wire.send(&[query(format!("SET TRANSACTION SNAPSHOT '{name}'").as_bytes())]);
    }
    let [of_postgres, of_nyala] = wires.each_mut().map(|wire| wire.answers(1));
    let plain = |answers: &[String], name: &str| answers.iter().map(|m| m.replace(name, "NAME")).collect::<Vec<_>>();
    let (of_postgres, of_nyala) = (plain(&of_postgres, &names[0]), plain(&of_nyala, &names[1]));
    assert_eq!(of_nyala, of_postgres);
    of_nyala
}

const REPEATABLE: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ";
const SERIALIZABLE: &str = "BEGIN ISOLATION LEVEL SERIALIZABLE";

#[test]
fn an_importer_sees_what_the_exporter_saw() {
    let mut pair = Pair::new(&[]);
    pair.query("CREATE TABLE t (a int PRIMARY KEY); INSERT INTO t VALUES (1), (2)");
    for begin in ["BEGIN", REPEATABLE, SERIALIZABLE, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"] {
        let mut writer = pair.more(&[]);
        let mut reader = pair.more(&[]);
        let names = export(&mut pair, begin);
        same(&mut writer, &[query(b"INSERT INTO t SELECT max(a) + 1 FROM t; DELETE FROM t WHERE a = 1")], 1);
        let answer = import(&mut reader, REPEATABLE, &names);
        assert_eq!(answer, ["C SET\\x00", "Z T"]);
        let rows = same(&mut reader, &[query(b"SELECT * FROM t ORDER BY a")], 1);
        let newest = same(&mut writer, &[query(b"SELECT * FROM t ORDER BY a")], 1);
        assert_ne!(rows, newest, "the importer sees what was there before");
        same(&mut reader, &[query(b"UPDATE t SET a = a + 100 WHERE a = 1")], 1);
        same(&mut reader, &[query(b"ROLLBACK")], 1);
        // What the exporter writes itself is not seen.
        if !begin.ends_with("ONLY") {
            pair.query("INSERT INTO t VALUES (99)");
            import(&mut reader, REPEATABLE, &names);
            same(&mut reader, &[query(b"SELECT * FROM t ORDER BY a")], 1);
            // The importer's own are, to itself.
            same(&mut reader, &[query(b"INSERT INTO t VALUES (77)")], 1);
            same(&mut reader, &[query(b"SELECT * FROM t ORDER BY a")], 1);
            same(&mut reader, &[query(b"ROLLBACK")], 1);
        }
        // It outlives the exporter's transaction for those who have it, and nobody else gets it.
        import(&mut reader, REPEATABLE, &names);
        pair.query("ROLLBACK");
        same(&mut reader, &[query(b"SELECT count(*) FROM t")], 1);
        same(&mut reader, &[query(b"COMMIT")], 1);
        let answer = import(&mut reader, REPEATABLE, &names);
        assert!(answer[0].contains("C22023"), "{answer:?}");
        pair.query("DELETE FROM t; INSERT INTO t VALUES (1), (2)");
    }
}

#[test]
fn who_may_import_what() {
    let mut pair = Pair::new(&[]);
    let mut reader = pair.more(&[]);
    for (exporter, importer, code) in [
        (REPEATABLE, "BEGIN", "C0A000"),
        (REPEATABLE, SERIALIZABLE, "C0A000"),
        (SERIALIZABLE, SERIALIZABLE, "C SET"),
        (SERIALIZABLE, REPEATABLE, "C SET"),
        ("BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY", SERIALIZABLE, "C0A000"),
        ("BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY", "BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY", "C SET"),
        (REPEATABLE, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1", "C25001"),
    ] {
        let names = export(&mut pair, exporter);
        let answer = import(&mut reader, importer, &names);
        assert!(answer[0].contains(code), "{exporter} {importer}: {answer:?}");
        same(&mut reader, &[query(b"ROLLBACK")], 1);
        pair.query("COMMIT");
    }
}
