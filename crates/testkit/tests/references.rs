//! What a catalog refers to exists: PostgreSQL's list of the references between catalogs, walked over Nyala's.

use testkit::{Connection, Target};

/// Objects of every kind, so that the catalogs have rows that statements have made.
const OBJECTS: &str = include_str!("../../../tests/clients/pg_dump/schema.sql");

/// More of them, and statistics.
const MORE: &str = "CREATE TABLE looked_at AS SELECT g AS a, 'x' || g % 7 AS b, ARRAY[g % 3] AS c, g % 5 = 0 AS d FROM generate_series(1, 2000) g; \
                    CREATE INDEX ON looked_at (a) INCLUDE (b); CREATE INDEX ON looked_at (lower(b)); ANALYZE looked_at; ANALYZE; \
                    CREATE ROLE references_role; GRANT SELECT ON looked_at TO references_role; \
                    ALTER ROLE references_role SET work_mem = '1MB'; \
                    ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO references_role; \
                    COMMENT ON TABLE looked_at IS 'looked at'; COMMENT ON ROLE references_role IS 'role'";

/// One reference: the columns of a catalog, and those of the other one that have their values.
struct Reference {
    from: String,
    columns: Vec<String>,
    to: String,
    keys: Vec<String>,
    is_array: bool,
    may_be_zero: bool,
}

fn references(postgres: &mut Connection) -> Vec<Reference> {
    let sql = "SELECT fktable::text, array_to_string(fkcols, ','), pktable::text, array_to_string(pkcols, ','), is_array, is_opt \
               FROM pg_get_catalog_foreign_keys()";
    let reply = postgres.query(sql);
    let list = |text: &str| text.split(',').map(str::to_owned).collect();
    let of = |row: &[Option<String>]| {
        let text = |i: usize| row[i].as_deref().expect("no NULL is in the list");
        Reference {
            from: text(0).to_owned(),
            columns: list(text(1)),
            to: text(2).to_owned(),
            keys: list(text(3)),
            is_array: text(4) == "t",
            may_be_zero: text(5) == "t",
        }
    };
    reply.rows().map(of).collect()
}

impl Reference {
    /// The values that no row of the other catalog has.
    fn dangling(&self) -> String {
        let columns = self.columns.join(", ");
        let last = self.columns.last().expect("a reference has columns");
        let source = if self.is_array {
            // Numbers of columns are small ones, all else are OIDs.
            let ty = if self.to == "pg_attribute" { "int2[]" } else { "oid[]" };
            let others: String = self.columns[..self.columns.len() - 1].iter().map(|c| format!("{c}, ")).collect();
            format!("(SELECT {others}unnest({last}::{ty}) AS {last} FROM {} WHERE {last} IS NOT NULL)", self.from)
        } else {
            self.from.clone()
        };
        let pairs: Vec<String> = self.columns.iter().zip(&self.keys).map(|(c, k)| format!("t.{k} = f.{c}")).collect();
        let zero = if self.may_be_zero { format!(" AND f.{last} <> 0") } else { String::new() };
        format!(
            "SELECT DISTINCT {columns} FROM {source} f WHERE f.{last} IS NOT NULL{zero} AND NOT EXISTS (SELECT FROM {} t WHERE {})",
            self.to,
            pairs.join(" AND ")
        )
    }
}

#[test]
fn name_rows_that_exist() {
    let references = references(&mut Target::reference().connect());
    assert!(references.len() > 200, "PostgreSQL's list has {} references", references.len());
    let subject = Target::start();
    let mut connection = subject.connect();
    for statements in [OBJECTS, MORE] {
        let made = connection.query(statements);
        assert!(made.error().is_none(), "{made}");
    }
    let mut wrong = Vec::new();
    for reference in &references {
        let reply = connection.query(&reference.dangling());
        let Reference { from, columns, to, .. } = reference;
        if let Some(error) = reply.error() {
            wrong.push(format!("{from} {columns:?} -> {to}: {error:?}"));
        }
        let rows: Vec<String> = reply.rows().map(|row| format!("{row:?}")).collect();
        if !rows.is_empty() {
            wrong.push(format!("{from} {columns:?} -> {to}: {}", rows.join(" ")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What the catalogs say of an aggregate is what PostgreSQL's say.
#[test]
fn aggregates_are_told_alike() {
    let sql = "SELECT aggfnoid::oid, a.* FROM pg_aggregate a WHERE aggfnoid::oid < 10000 ORDER BY 1";
    let of = |connection: &mut Connection| -> Vec<Vec<Option<String>>> {
        connection.query(sql).rows().map(<[_]>::to_vec).collect()
    };
    let (postgres, nyala) = (of(&mut Target::reference().connect()), of(&mut Target::start().connect()));
    assert!(nyala.len() > 100);
    for row in nyala {
        assert!(postgres.contains(&row), "{row:?}");
    }
}
