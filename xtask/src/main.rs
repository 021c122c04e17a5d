//! Checks of the repository itself: `cargo run -p xtask -- check`, and `cargo run -p xtask -- graph`, which prints which crate uses which
//! others, and inside each the groups of files and folders that speak of each other.
//!
//! - **edges**: crates depend on each other only as docs/ARCHITECTURE.md allows.
//! - **arrows**: the files and folders of `engine` and of some layers of SQL speak only of those before them in their order, but for a list that
//!   only becomes shorter.
//! - **licences**: every third-party dependency has a licence that fits Apache-2.0.
//! - **unsafe**: only `mvcc` and `env` (io_uring) may contain unsafe code; every other crate forbids it.
//! - **texts**: few files read the text of a stored expression, none of them to decide what depends on what; few parse SQL, none of them
//!   SQL of its own.
//! - **rules**: a rule that a comment or a document cites is in docs/RULES.md.
//! - **arms**: a match over the nodes of plans names each of them.
//! - **headers**: every crate says what it is responsible for, what not, and its invariants.

#![forbid(unsafe_code)]

mod arms;
mod arrows;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, ExitCode};

use serde_json::Value;

use crate::arrows::{House, OTHERS};

/// The layers of SQL. Each may depend on those before it, and on [`BELOW_SQL`].
const SQL: &[&str] = &[
    "sql-parse",
    "sql-regex",
    "sql-functions",
    "sql-ir",
    "sql-bind",
    "sql-plan",
    "sql-catalog",
    "sql-exec",
    "sql-ddl",
    "sql-session",
];

/// What every layer of SQL may depend on.
const BELOW_SQL: &[&str] = &["engine-api", "types"];

/// Which crates another may depend on, besides `base`.
const EDGES: &[(&str, &[&str])] = &[
    ("base", &[]),
    ("env", &[]),
    ("types", &[]),
    ("mvcc", &["types"]),
    ("redo", &["env"]),
    ("checkpoint", &["mvcc", "env"]),
    ("engine-api", &["types"]),
    ("engine", &["mvcc", "redo", "checkpoint", "engine-api", "types", "env"]),
    ("bookkeeper", &["env"]),
    ("cluster", &["bookkeeper", "engine", "redo", "engine-api", "env"]),
    ("pgwire", &["types"]),
    ("gtx", &["engine-api", "sql-session", "types"]),
    ("console", &["sql-session"]),
    ("bench", &[]),
    ("xtask", &[]),
];

/// Crates whose files and folders stand in an order.
const HOUSES: &[House] = &[
    House { name: "sql-parse", rooms: &["names", "metrics", "thread", "monitor", OTHERS, "privileges"], wrong: &[] },
    House { name: "sql-functions", rooms: &["statistics", OTHERS], wrong: &[] },
    House { name: "sql-ir", rooms: &["expr", "system_relation", "system_column", "row_codec", OTHERS], wrong: &[] },
    House { name: "sql-catalog", rooms: &["index_code", OTHERS, "functions", "schema"], wrong: &[] },
    ENGINE,
];

const ENGINE: House = House {
    name: "engine",
    rooms: &[
        "planted",
        "record",
        "storage",
        "index_build",
        "reads",
        "memory",
        "advisory",
        "catalog",
        "locks",
        "txn",
        "commit",
        "sequence",
        "checkpoint",
        "start",
        "shard",
        "inspect",
        "fuzz",
    ],
    wrong: &[
        ("advisory", "locks"),
        ("advisory", "shard"),
        ("catalog", "shard"),
        ("catalog", "txn"),
        ("checkpoint", "shard"),
        ("commit", "shard"),
        ("commit", "start"),
        ("index_build", "memory"),
        ("index_build", "start"),
        ("index_build", "txn"),
        ("locks", "txn"),
        ("memory", "shard"),
        ("memory", "txn"),
        ("reads", "shard"),
        ("reads", "txn"),
        ("sequence", "shard"),
        ("start", "shard"),
        ("txn", "commit"),
        ("txn", "shard"),
    ],
};

/// The layers whose `Node` is a node of a plan: above them it is one of a statement's tree.
const MATCHING_NODES: &[&str] = &["sql-plan", "sql-exec"];

/// Lines of code that a layer of SQL may have. A layer with more lines is split into two crates.
const LAYER_LINES_MAX: usize = 17_000;

/// Crates that may depend on anything.
const FREE: &[&str] = &["server", "testkit", "sim", "sandbox", "fuzz"];

/// Crates that only tests, and each other, may depend on.
const TESTS_ONLY: &[&str] = &["testkit", "sim", "sandbox", "fuzz"];

/// Crates that may contain unsafe code.
const UNSAFE: &[&str] = &["mvcc", "env"];

/// Licences that fit. An expression fits if one of its alternatives does.
const LICENCES: &[&str] = &[
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "MIT",
    "MIT-0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "ISC",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
    "0BSD",
    "CC0-1.0",
    "NCSA",
];

/// Files of the layers of SQL that may read the text of a stored expression: to bind it, to show it, to run it over rows. What depends on what, and
/// what a rename or a drop does, is decided by references (decision 0022).
const READERS_OF_TEXTS: &[&str] = &[
    "sql-bind/src/dml.rs",
    "sql-bind/src/stored.rs",
    "sql-bind/src/view.rs",
    "sql-catalog/src/constraints.rs",
    "sql-catalog/src/conversion.rs",
    "sql-catalog/src/deparse.rs",
    "sql-catalog/src/deparse_stored.rs",
    "sql-catalog/src/functions/catalog.rs",
    "sql-catalog/src/relations.rs",
    "sql-ddl/src/session.rs",
];

/// The ways to the text of a stored expression.
const WAYS_TO_TEXTS: &[&str] = &["stored::text", "Expression::Written(", "Part::Text("];

/// Files of the layers of SQL that may parse: what a client sent, stored expressions and views, and names of functions and types. What
/// a statement asks for itself is bound without text (`sql_bind::own`).
const PARSING: &[&str] = &[
    "sql-bind/src/dml.rs",
    "sql-bind/src/view.rs",
    "sql-catalog/src/functions/regnames.rs",
    "sql-session/src/arguments.rs",
    "sql-session/src/prepare.rs",
    "sql-session/src/query.rs",
];

/// The ways to the parser.
const WAYS_TO_PARSER: &[&str] = &["parse::parse(", "parse_with_notices("];

fn main() -> ExitCode {
    let command = std::env::args().nth(1).unwrap_or_default();
    let faults = match (command.as_str(), metadata()) {
        (_, Err(error)) => vec![error],
        ("check", Ok(metadata)) => check(&metadata),
        ("graph", Ok(metadata)) => graph(&metadata),
        _ => {
            eprintln!("usage: cargo run -p xtask -- check | graph");
            return ExitCode::from(2);
        }
    };
    for fault in &faults {
        eprintln!("xtask: {fault}");
    }
    if faults.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Prints each crate with those that it uses, and with the knots of its files and folders; what could not be read.
fn graph(metadata: &Value) -> Vec<String> {
    let (own, names) = members(metadata);
    let crates = Path::new(text(metadata, "workspace_root")).join("crates");
    let mut faults = Vec::new();
    for package in own {
        let name = text(package, "name");
        let of_product = list(package, "dependencies").filter(|dependency| text(dependency, "kind") != "dev");
        let used: BTreeSet<&str> =
            of_product.map(|dependency| text(dependency, "name")).filter(|used| names.contains(used)).collect();
        println!("{name}: {}", used.into_iter().collect::<Vec<_>>().join(" "));
        if name == "xtask" {
            continue;
        }
        match files(&crates.join(name).join("src"), Path::new("")) {
            Ok(files) => {
                let (arrows, _) = arrows::arrows(name, &files);
                arrows::knots(&arrows).iter().for_each(|knot| println!("    each other: {}", knot.join(" ")));
            }
            Err(error) => faults.push(error),
        }
    }
    faults
}

/// The project's crates, and their names.
fn members(metadata: &Value) -> (Vec<&Value>, BTreeSet<&str>) {
    let members: BTreeSet<&str> = list(metadata, "workspace_members").filter_map(Value::as_str).collect();
    let own: Vec<&Value> = list(metadata, "packages").filter(|p| members.contains(text(p, "id"))).collect();
    let names = own.iter().map(|p| text(p, "name")).collect();
    (own, names)
}

fn metadata() -> Result<Value, String> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version=1", "--locked"])
        .output()
        .map_err(|e| format!("cargo metadata: {e}"))?;
    if !output.status.success() {
        return Err(format!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr)));
    }
    serde_json::from_slice(&output.stdout).map_err(|e| format!("cargo metadata: {e}"))
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

fn list<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    value[key].as_array().into_iter().flatten()
}

fn check(metadata: &Value) -> Vec<String> {
    let (own, names) = members(metadata);
    let others = list(metadata, "packages").filter(|package| !names.contains(text(package, "name")));
    let mut faults = edges(&own, &names);
    faults.extend(licences(others));
    for package in &own {
        faults.extend(source(package));
    }
    let root = Path::new(text(metadata, "workspace_root"));
    faults.extend(HOUSES.iter().flat_map(|house| arrows_of(root, house)));
    faults.extend(texts(root));
    faults.extend(MATCHING_NODES.iter().flat_map(|layer| hidden_nodes(root, layer)));
    faults.extend(SQL.iter().filter_map(|layer| too_long(layer, &sources(root, layer).ok()?)));
    faults.extend(rules(root));
    faults
}

/// The files below a folder, by their names from `root` on, with what they say.
///
/// # Errors
/// A folder or a file that cannot be read, as text.
fn files(root: &Path, folder: &Path) -> Result<Vec<(String, String)>, String> {
    let path = root.join(folder);
    let unreadable = |error| format!("{} cannot be read: {error}", path.display());
    let mut found = Vec::new();
    for entry in std::fs::read_dir(&path).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let name = folder.join(entry.file_name());
        if entry.path().is_dir() {
            found.extend(files(root, &name)?);
        } else if name.extension().is_some_and(|kind| kind == "rs" || kind == "md") {
            found.push((
                name.to_string_lossy().into_owned(),
                std::fs::read_to_string(entry.path()).map_err(unreadable)?,
            ));
        }
    }
    Ok(found)
}

/// Arrows between the rooms of a crate that point the wrong way.
fn arrows_of(root: &Path, house: &House) -> Vec<String> {
    match files(&root.join("crates").join(house.name).join("src"), Path::new("")) {
        Ok(files) => arrows::check(house, &files),
        Err(error) => vec![error],
    }
}

/// Citations, in comments and documents, of rules that are not there.
fn rules(root: &Path) -> Vec<String> {
    let list = match std::fs::read_to_string(root.join("docs/RULES.md")) {
        Ok(list) => list,
        Err(error) => return vec![format!("docs/RULES.md cannot be read: {error}")],
    };
    let known: BTreeSet<&str> =
        list.lines().filter_map(|line| line.strip_prefix("## ")?.split_whitespace().next()).collect();
    let mut found: Vec<_> = ["crates", "docs", "tests", "xtask"].map(|folder| files(root, Path::new(folder))).into();
    let read = |name: &str| std::fs::read_to_string(root.join(name)).map(|text| vec![(name.to_owned(), text)]);
    let unreadable = |error| format!("a document cannot be read: {error}");
    found.extend(["README.md", "CONTRIBUTING.md"].map(|name| read(name).map_err(unreadable)));
    found
        .into_iter()
        .flat_map(|files| match files {
            Ok(files) => files.iter().flat_map(|(name, text)| unknown_rules(name, text, &known)).collect(),
            Err(error) => vec![error],
        })
        .collect()
}

/// The citations in one file of rules that are not among the known ones.
fn unknown_rules(name: &str, text: &str, known: &BTreeSet<&str>) -> Vec<String> {
    let is_document = name.ends_with(".md");
    let comments =
        text.lines().filter_map(|line| if is_document { Some(line) } else { Some(line.split_once("//")?.1) });
    let words = comments.flat_map(|line| line.split(|c: char| !c.is_alphanumeric()));
    let is_rule = |word: &&str| {
        word.strip_prefix('R').is_some_and(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
    };
    let faults = words.filter(is_rule).filter(|word| !known.contains(word));
    faults.map(|word| format!("{name} cites rule {word}, which docs/RULES.md does not have")).collect()
}

/// The files of a layer of SQL, by their names from `crates` on.
///
/// # Errors
/// A folder or a file that cannot be read, as text.
fn sources(root: &Path, layer: &str) -> Result<Vec<(String, String)>, String> {
    files(&root.join("crates"), &Path::new(layer).join("src"))
}

/// That a layer of SQL has more lines than it may.
fn too_long(layer: &str, files: &[(String, String)]) -> Option<String> {
    let lines: usize = files.iter().map(|(_, code)| code.lines().count()).sum();
    (lines > LAYER_LINES_MAX).then(|| format!("{layer} has {lines} lines, and may have {LAYER_LINES_MAX}"))
}

/// Arms that hide nodes of plans.
fn hidden_nodes(root: &Path, layer: &str) -> Vec<String> {
    match sources(root, layer) {
        Ok(files) => files.iter().flat_map(|(name, code)| arms::check(name, code)).collect(),
        Err(error) => vec![error],
    }
}

/// Files of the layers of SQL that read the texts of stored expressions, or parse SQL, and should not.
fn texts(root: &Path) -> Vec<String> {
    let of_layer = |layer: &&str| match sources(root, layer) {
        Ok(files) => {
            files.iter().flat_map(|(name, code)| [reading(name, code), parsing(name, code)].concat()).collect()
        }
        Err(error) => vec![error],
    };
    SQL.iter().flat_map(of_layer).collect()
}

/// How a file reads the text of a stored expression although it should not.
fn reading(name: &str, code: &str) -> Vec<String> {
    if READERS_OF_TEXTS.contains(&name) {
        return Vec::new();
    }
    let found = WAYS_TO_TEXTS.iter().filter(|way| code.contains(**way));
    found.map(|way| format!("crates/{name} reads the text of a stored expression (`{way}`)")).collect()
}

/// How a file parses SQL although it should not.
fn parsing(name: &str, code: &str) -> Vec<String> {
    if PARSING.contains(&name) || name.starts_with("sql-parse/") {
        return Vec::new();
    }
    let found = WAYS_TO_PARSER.iter().filter(|way| code.contains(**way));
    found
        .map(|way| format!("crates/{name} parses SQL (`{way}`): statements of our own are bound without text"))
        .collect()
}

/// The place of a crate among the layers of SQL.
fn layer(name: &str) -> Option<usize> {
    SQL.iter().position(|layer| *layer == name)
}

fn edges(own: &[&Value], names: &BTreeSet<&str>) -> Vec<String> {
    let allowed: BTreeMap<&str, &[&str]> = EDGES.iter().copied().collect();
    let mut faults = Vec::new();
    for package in own {
        let name = text(package, "name");
        for dependency in list(package, "dependencies") {
            let target = text(dependency, "name");
            let for_tests = text(dependency, "kind") == "dev";
            if !names.contains(target) || target == "base" || for_tests {
                continue;
            }
            let fits = FREE.contains(&name)
                || allowed.get(name).is_some_and(|list| list.contains(&target))
                || layer(name)
                    .is_some_and(|own| BELOW_SQL.contains(&target) || layer(target).is_some_and(|other| other < own));
            if !fits || (TESTS_ONLY.contains(&target) && !TESTS_ONLY.contains(&name)) {
                faults.push(format!("crate `{name}` must not depend on `{target}`"));
            }
        }
        if !FREE.contains(&name) && !allowed.contains_key(name) && layer(name).is_none() {
            faults.push(format!("crate `{name}` has no place in the list of allowed edges"));
        }
    }
    faults
}

fn fits(expression: &str) -> bool {
    let expression = expression.replace('/', " OR ").replace(['(', ')'], " ");
    expression
        .split(" OR ")
        .any(|alternative| alternative.split(" AND ").map(str::trim).all(|licence| LICENCES.contains(&licence)))
}

fn licences<'v>(others: impl Iterator<Item = &'v Value>) -> Vec<String> {
    let faults = others.filter(|p| !fits(text(p, "license")));
    faults
        .map(|p| {
            format!("dependency `{}` has licence `{}`, which is not in the list", text(p, "name"), text(p, "license"))
        })
        .collect()
}

/// The crate's own words: its header, and whether it forbids unsafe code.
fn source(package: &Value) -> Vec<String> {
    let name = text(package, "name");
    let mut faults = Vec::new();
    for target in list(package, "targets") {
        let is_lib = list(target, "kind").any(|k| k.as_str() == Some("lib"));
        let is_bin = list(target, "kind").any(|k| k.as_str() == Some("bin"));
        if !is_lib && !is_bin {
            continue;
        }
        let path = text(target, "src_path");
        let Ok(code) = std::fs::read_to_string(path) else {
            faults.push(format!("{path} cannot be read"));
            continue;
        };
        if !UNSAFE.contains(&name) && !code.contains("#![forbid(unsafe_code)]") {
            faults.push(format!("`{name}` does not forbid unsafe code in {path}"));
        }
        if is_lib {
            let header: String = code.lines().take_while(|l| l.starts_with("//!") || l.is_empty()).collect();
            for word in ["Responsible for:", "Not responsible for:", "Invariant"] {
                if !header.contains(word) {
                    faults.push(format!("the header of crate `{name}` does not say `{word}`"));
                }
            }
        }
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn licences_fit_by_one_alternative() {
        assert!(fits("MIT OR GPL-3.0"));
        assert!(fits("MIT/Apache-2.0"));
        assert!(fits("(MIT OR Apache-2.0) AND Unicode-3.0"));
        assert!(!fits("GPL-3.0"));
        assert!(!fits("MIT AND GPL-3.0"));
        assert!(!fits(""));
    }

    #[test]
    fn who_decides_what_depends_on_what_reads_no_text() {
        assert_eq!(reading("sql-ddl/src/uses.rs", "for reference in expression.references() {").len(), 0);
        assert_eq!(
            reading("sql-ddl/src/uses.rs", "sql_bind::stored::text(expression, catalog, None).contains(name)").len(),
            1
        );
        assert_eq!(reading("sql-ddl/src/drop.rs", "if let Expression::Written(text) = default {").len(), 1);
        assert_eq!(reading("sql-bind/src/stored.rs", "Part::Text(text)").len(), 0);
        assert_eq!(parsing("sql-ddl/src/constraint.rs", "let query = sql_parse::parse(&format!(").len(), 1);
        assert_eq!(parsing("sql-session/src/query.rs", "parse::parse_with_notices(sql)?").len(), 0);
    }

    #[test]
    fn a_layer_has_only_so_many_lines() {
        let file = |lines: usize| ("sql-plan/src/a.rs".to_owned(), "\n".repeat(lines));
        assert_eq!(too_long("sql-plan", &[file(10_000), file(7_000)]), None);
        assert!(too_long("sql-plan", &[file(10_000), file(7_001)]).is_some());
    }

    #[test]
    fn a_cited_rule_is_in_the_list() {
        let known = BTreeSet::from(["R1", "R12"]);
        let faults = |name: &str, text: &str| unknown_rules(name, text, &known).len();
        assert_eq!(faults("a.rs", "//! Waits (rules R1, R12) for `R1Gate`, and R is no rule."), 0);
        assert_eq!(faults("a.rs", "let x = 1; // rule R2"), 1);
        assert_eq!(faults("a.rs", "let role = \"R2\";"), 0);
        assert_eq!(faults("a.md", "Rules R1 and R13."), 1);
    }

    #[test]
    fn an_edge_that_is_not_allowed_is_a_fault() {
        let package = |name: &str, target: &str, kind: Value| serde_json::json!({"name": name, "dependencies": [{"name": target, "kind": kind}]});
        let names = BTreeSet::from(["sql-plan", "sql-bind", "sql-exec", "engine", "types", "testkit"]);
        let faults = |p: Value| edges(&[&p], &names).len();
        assert_eq!(faults(package("sql-plan", "types", Value::Null)), 0);
        assert_eq!(faults(package("sql-plan", "sql-bind", Value::Null)), 0);
        assert_eq!(faults(package("sql-plan", "sql-exec", Value::Null)), 1);
        assert_eq!(faults(package("sql-plan", "engine", Value::Null)), 1);
        assert_eq!(faults(package("sql-plan", "engine", "dev".into())), 0);
        assert_eq!(faults(package("server", "testkit", Value::Null)), 1);
        assert_eq!(faults(package("unknown", "types", Value::Null)), 2);
    }
}
