//! SQL text: parsed, brought to its fingerprint, bound. Properties: every text is taken or refused; one that is taken again is
//! taken with the same outcome; a text that is a view's query is written by `pg_get_viewdef` as one that is written the same.

use std::cell::RefCell;

use sandbox::Sandbox;
use sql_parse::fingerprint::fingerprint;
use sql_parse::parse;

const SCHEMA: &str = "
    CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
    CREATE DOMAIN positive AS int CHECK (VALUE > 0);
    CREATE TABLE t (a int PRIMARY KEY, b text, c numeric(10, 2), d timestamptz, e int[], f jsonb, g mood, h positive);
    CREATE TABLE u (id bigint GENERATED ALWAYS AS IDENTITY, a int REFERENCES t, name varchar(10) DEFAULT 'x', UNIQUE (a, name));
    CREATE VIEW v AS SELECT a, count(*) AS n FROM t GROUP BY a;
    CREATE SEQUENCE s;";

/// Longer texts find nothing that shorter ones do not, and take long.
const BYTES_MAX: usize = 4096;

thread_local! {
    static SANDBOX: RefCell<Option<Sandbox>> = const { RefCell::new(None) };
}

/// See the module.
pub(crate) fn run(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    if text.len() > BYTES_MAX || text.contains('\0') {
        return;
    }
    let _ = fingerprint(text);
    let Ok(statements) = parse(text) else { return };
    for statement in statements.iter().take(4) {
        let text =
            text.get(statement.start..statement.start + statement.len).expect("a statement is a part of its text");
        SANDBOX.with_borrow_mut(|sandbox| one(sandbox.get_or_insert_with(|| Sandbox::new(SCHEMA)), text));
    }
}

fn one(sandbox: &mut Sandbox, text: &str) {
    let outcome = |sandbox: &mut Sandbox| sandbox.describe(text).map_err(|e| e.code());
    let first = outcome(sandbox);
    assert_eq!(outcome(sandbox), first, "bound twice");
    if first.is_ok() {
        sandbox.simple("BEGIN").expect("no block is open");
        view(sandbox, text);
        sandbox.roll_back();
    }
}

/// If the text can be a view: what the catalog says of it makes the same view.
fn view(sandbox: &mut Sandbox, text: &str) {
    if sandbox.simple(&format!("CREATE TEMP VIEW first AS {text}\n")).is_err() {
        return;
    }
    let mut written =
        |name: &str| sandbox.simple(&format!("SELECT pg_get_viewdef('{name}'::regclass)")).map(|r| r.values());
    let Ok(first) = written("first") else { return };
    let [Some(query)] = first.as_slice() else { panic!("one definition") };
    let made = sandbox.simple(&format!("CREATE TEMP VIEW second AS {query}"));
    assert!(made.is_ok(), "{query} is refused: {made:?}", made = made.err());
    let second = sandbox.simple("SELECT pg_get_viewdef('second'::regclass)").expect("it was just made").values();
    assert_eq!(second, first);
}
