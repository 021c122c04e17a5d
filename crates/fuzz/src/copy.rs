//! COPY FROM STDIN in text, CSV and binary form. Property: what was loaded is unloaded as bytes that load as the same rows.

use std::cell::RefCell;

use sandbox::Sandbox;

const SCHEMA: &str = "
    CREATE TABLE one (a text);
    CREATE TABLE two (a int, b text);
    CREATE TABLE mixed (a smallint, b numeric, c timestamptz, d bool, e int[]);
    CREATE TABLE more (a jsonb, b bytea, c interval, d uuid, e float8);
    CREATE TABLE again (LIKE more);";

const TABLES: [&str; 4] = ["one", "two", "mixed", "more"];
const FORMS: [&str; 8] = [
    "",
    "(FORMAT csv)",
    "(FORMAT binary)",
    "(FORMAT csv, HEADER, QUOTE '''', ESCAPE '\\', NULL 'none')",
    "(DELIMITER ',', NULL '')",
    "(FORMAT csv, DELIMITER ';', FORCE_NULL (a), FORCE_QUOTE *)",
    "(HEADER)",
    "(FORMAT csv, ENCODING 'LATIN1')",
];

thread_local! {
    static SANDBOX: RefCell<Option<Sandbox>> = const { RefCell::new(None) };
}

/// Options of COPY FROM, and those of COPY TO that it reads.
fn options(form: &str) -> (String, String) {
    (form.replace(", FORCE_QUOTE *", ""), form.replace(", FORCE_NULL (a)", ""))
}

/// The first byte chooses table and form, the second the size of the pieces; then the data.
pub(crate) fn run(input: &[u8]) {
    let [choice, piece, data @ ..] = input else { return };
    let table = TABLES[usize::from(*choice) % 4];
    let form = FORMS[usize::from(*choice >> 2) % 8];
    SANDBOX.with_borrow_mut(|sandbox| {
        let sandbox = sandbox.get_or_insert_with(|| Sandbox::new(SCHEMA));
        sandbox.simple("BEGIN").expect("no block is open");
        round(sandbox, table, form, data, usize::from(*piece) + 1);
        sandbox.roll_back();
    });
}

fn round(sandbox: &mut Sandbox, table: &str, form: &str, data: &[u8], piece: usize) {
    let (from, to) = options(form);
    if sandbox.copy_in(&format!("COPY {table} FROM STDIN {from}"), data, piece).is_err() {
        return;
    }
    let rows =
        |sandbox: &mut Sandbox| sandbox.simple(&format!("SELECT x::text FROM {table} x")).expect("rows").values();
    let before = rows(sandbox);
    // A character that LATIN1 lacks cannot have come in, but by an escape.
    let Ok(out) = sandbox.simple(&format!("COPY {table} TO STDOUT {to}")) else { return };
    sandbox.simple(&format!("DELETE FROM {table}")).expect("all rows");
    // FORCE_NULL and an empty NULL take some texts for NULL that are none.
    if form.contains("FORCE_NULL") {
        return;
    }
    let loaded = sandbox.copy_in(&format!("COPY {table} FROM STDIN {from}"), &out.copied, 4096);
    assert!(loaded.is_ok(), "{table} {form}: {loaded:?} of {:?}", String::from_utf8_lossy(&out.copied));
    assert_eq!(rows(sandbox), before, "{table} {form}");
}
