//! Binding against what PostgreSQL 15 says of the same statements over the same tables.
//!
//! `bind_cases.txt` holds a statement per line, followed by what it must answer: `= name:type:modifier … | parameters`
//! or `! code position message`, then `D detail` and `H hint`. Lines that begin with `~` replace PostgreSQL's answer
//! where Nyala's is another one on purpose.

use std::sync::Arc;

use base::{LayoutId, Oid};
use engine_api::{
    Catalog, CatalogObject, ColumnDesc, ConstraintDesc, ConstraintKind, DatabaseDesc, IndexDesc, IndexKey, LayoutDesc,
    SchemaDesc, SequenceDesc, TableDesc, oids,
};
use sql_bind::{BindContext, bind};
use sql_functions::Identity;
use sql_parse::parse;
use types::oid;

const CASES: &str = include_str!("bind_cases.txt");

/// Who binds.
fn identity() -> Identity {
    Identity {
        role: oids::ROLE_POSTGRES,
        superuser: true,
        current_user: "postgres".to_string(),
        session_user: "postgres".to_string(),
        database: "postgres".to_string(),
        database_oid: oids::DATABASE_POSTGRES,
        search_path: vec![oids::SCHEMA_PG_CATALOG, oids::SCHEMA_PUBLIC],
        client_addr: None,
    }
}

/// A column: name, type, modifier, default; no name is a dropped one.
type Column<'a> = (&'a str, Oid, i32, Option<&'a str>);

fn table(number: u32, schema: Oid, name: &str, columns: &[Column<'_>], constraints: Vec<ConstraintDesc>) -> TableDesc {
    let columns = columns.iter().enumerate().map(|(i, &(name, type_oid, typmod, default))| ColumnDesc {
        default: default.map(engine_api::Expression::from),
        dropped: name.is_empty(),
        ..ColumnDesc::new(i as i16 + 1, name, type_oid, typmod)
    });
    TableDesc {
        layouts: vec![LayoutDesc { id: LayoutId(1), fields: Vec::new() }].into(),
        constraints: constraints.into(),
        ..TableDesc::new(Oid(number), schema, name, oids::ROLE_POSTGRES, columns.collect())
    }
}

fn key(number: u32, name: &str, columns: &[i16], primary: bool) -> ConstraintDesc {
    let index = Oid(number);
    let kind = match primary {
        true => ConstraintKind::PrimaryKey { index },
        false => ConstraintKind::Unique { index },
    };
    ConstraintDesc::new(Oid(number + 100), name, columns.to_vec(), kind)
}

fn index(number: u32, table: u32, name: &str, columns: &[i16], primary: bool) -> IndexDesc {
    let keys = columns.iter().copied().map(IndexKey::ascending).collect();
    IndexDesc { unique: true, primary, ..IndexDesc::new(Oid(number), oids::SCHEMA_PUBLIC, name, Oid(table), keys) }
}

/// The tables the cases are about.
fn catalog() -> Catalog {
    let public = oids::SCHEMA_PUBLIC;
    let mut catalog = Catalog::default();
    let mut put = |object: CatalogObject| catalog.put(Arc::new(object));
    let owner = oids::ROLE_POSTGRES;
    let name = "postgres".to_string();
    put(CatalogObject::Database(DatabaseDesc {
        oid: oids::DATABASE_POSTGRES,
        name,
        owner,
        comment: None,
        settings: Vec::new(),
    }));
    let schemas = [
        (oids::SCHEMA_PG_CATALOG, Oid::INVALID, "pg_catalog"),
        (oids::SCHEMA_INFORMATION_SCHEMA, Oid::INVALID, "information_schema"),
        (public, oids::DATABASE_POSTGRES, "public"),
        (Oid(20000), oids::DATABASE_POSTGRES, "s"),
    ];
    for (oid, database, name) in schemas {
        put(CatalogObject::Schema(SchemaDesc { oid, database, name: name.to_string(), owner, comment: None }));
    }
    let t = [
        ("a", oid::INT4, -1, None),
        ("b", oid::TEXT, -1, None),
        ("c", oid::VARCHAR, 14, None),
        ("d", oid::NUMERIC, oid::make_numeric_typmod(10, 2), None),
        ("e", oid::TIMESTAMPTZ, -1, None),
        ("f", oid::INT4_ARRAY, -1, None),
        ("g", oid::BOOL, -1, None),
        ("h", oid::INT8, -1, None),
    ];
    put(CatalogObject::Table(table(20001, public, "t", &t, vec![key(20101, "t_pkey", &[1], true)])));
    put(CatalogObject::Index(index(20101, 20001, "t_pkey", &[1], true)));
    let u = [("id", oid::INT8, -1, None), ("a", oid::INT4, -1, None), ("name", oid::TEXT, -1, Some("'x'::text"))];
    let keys = vec![key(20102, "u_pkey", &[1], true), key(20103, "u_a_name_key", &[2, 3], false)];
    put(CatalogObject::Table(table(20002, public, "u", &u, keys)));
    put(CatalogObject::Index(index(20102, 20002, "u_pkey", &[1], true)));
    put(CatalogObject::Index(index(20103, 20002, "u_a_name_key", &[2, 3], false)));
    let j = [("k", oid::JSON, -1, None), ("kb", oid::JSONB, -1, None)];
    put(CatalogObject::Table(table(20003, public, "j", &j, Vec::new())));
    let st = [("x", oid::INT4, -1, None), ("y", oid::DATE, -1, None)];
    put(CatalogObject::Table(table(20004, Oid(20000), "t", &st, Vec::new())));
    let w = [
        ("n", oid::INT4, -1, Some("nextval('seq'::regclass)")),
        ("m", oid::INT4, -1, None),
        ("", oid::INT4, -1, None),
        ("z", oid::VARCHAR, 9, Some("'abc'::character varying")),
    ];
    let check = ConstraintKind::Check { expression: "m > 0".into() };
    let check = ConstraintDesc::new(Oid(20105), "w_m_check", vec![2], check);
    put(CatalogObject::Table(table(20005, public, "w", &w, vec![check])));
    put(CatalogObject::Sequence(SequenceDesc::new(Oid(20006), public, "seq", owner, oid::INT8, i64::MAX)));
    catalog
}

/// What binding a statement answers, in the form of the cases.
fn answer(sql: &str, catalog: &Arc<Catalog>) -> Vec<String> {
    let nobody = sql_catalog::index_code::nobody(Arc::clone(catalog));
    let bound = parse(sql).and_then(|parsed| {
        let mut cx = BindContext::new(Arc::clone(catalog), identity(), &nobody, &[]);
        let mut bound = bind(&parsed[0].node, sql, &mut cx)?;
        // What a constant cannot be is said when the statement is planned.
        let refused = bound.refused.take().filter(|error| !error.fields().code.as_str().starts_with("22"));
        refused.map_or(Ok(bound), Err)
    });
    match bound {
        Ok(bound) => {
            let show =
                |c: &sql_bind::ResultColumn| format!("{}:{}:{}", c.name.replace(' ', "_"), c.ty.oid, c.ty.typmod);
            let columns: Vec<String> = bound.columns.iter().map(show).collect();
            let params: Vec<String> = bound.param_types.iter().map(Oid::to_string).collect();
            let params = if params.is_empty() { String::new() } else { format!(" | {}", params.join(" ")) };
            vec![format!("= {}{params}", columns.join(" "))]
        }
        Err(e) => {
            let f = e.fields();
            let position = f.position.map_or_else(|| "-".to_string(), |p| p.to_string());
            let mut lines = vec![format!("! {} {position} {}", f.code, f.message)];
            lines.extend(f.detail.as_ref().map(|d| format!("D {d}")));
            lines.extend(f.hint.as_ref().map(|h| format!("H {h}")));
            lines
        }
    }
}

#[test]
fn statements_bind_as_in_postgres() {
    let catalog = Arc::new(catalog());
    let mut wrong = String::new();
    let mut cases = 0;
    let mut lines = CASES.lines().filter(|l| !l.is_empty() && !l.starts_with('#')).peekable();
    while let Some(sql) = lines.next() {
        let mut theirs = Vec::new();
        let mut ours = Vec::new();
        while let Some(line) = lines.peek() {
            match line.split_once(' ') {
                Some(("~", line)) => ours.push(line.to_string()),
                Some(("=" | "!" | "D" | "H", _)) => theirs.push(line.to_string()),
                None if *line == "=" => theirs.push("= ".to_string()),
                _ => break,
            }
            lines.next();
        }
        cases += 1;
        let expected = if ours.is_empty() { theirs } else { ours };
        let found = answer(sql, &catalog);
        if found.iter().map(|l| l.trim_end()).ne(expected.iter().map(|l| l.trim_end())) {
            wrong.push_str(&format!(
                "{sql}\n  wanted {}\n  found  {}\n",
                expected.join("\n         "),
                found.join("\n         ")
            ));
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
    assert!(cases > 250, "only {cases} cases");
}

#[test]
fn deep_expressions_are_refused_and_long_chains_are_not() {
    let catalog = Arc::new(catalog());
    let chain = format!("SELECT {}1", "1 + ".repeat(1500));
    assert_eq!(answer(&chain, &catalog), ["= ?column?:23:-1"]);
    let conjunction = format!("SELECT a FROM t WHERE {}true", "a = 1 AND ".repeat(1500));
    assert_eq!(answer(&conjunction, &catalog), ["= a:23:-1"]);
}

#[test]
fn nesting_ends_in_an_error_not_in_a_crash() {
    // A quarter of what a core of the server has: frames are larger without optimisation.
    let deep = std::thread::Builder::new().stack_size(16 << 20).spawn(bind_nested).unwrap();
    deep.join().unwrap();
}

fn bind_nested() {
    let catalog = Arc::new(catalog());
    for depth in [100, 300, 1000, 3000, 100_000] {
        let shallow = depth.min(3000);
        let statements = [
            format!("SELECT {}a{} FROM t", "abs(".repeat(depth), ")".repeat(depth)),
            format!("SELECT a{} FROM t", " + a".repeat(depth)),
            format!("SELECT 1{}", " UNION ALL SELECT 1".repeat(shallow)),
            format!("SELECT {}1{}", "(SELECT ".repeat(shallow), ")".repeat(shallow)),
        ];
        for sql in statements {
            let found = answer(&sql, &catalog);
            assert!(found[0].starts_with("= ") || found[0].starts_with("! 54001"), "{depth}: {found:?}");
        }
    }
}
