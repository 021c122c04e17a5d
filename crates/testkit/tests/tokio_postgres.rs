//! The driver `tokio-postgres` against PostgreSQL, which proves the test, and against the server under test.

use std::time::{Duration, SystemTime};

use futures_util::{SinkExt, StreamExt, TryStreamExt, future, pin_mut};
use testkit::Target;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{FromSql, IsNull, Kind, ToSql, Type};
use tokio_postgres::{Client, IsolationLevel, NoTls, SimpleQueryMessage};

type Result<T> = std::result::Result<T, tokio_postgres::Error>;

async fn connect(target: &Target) -> Client {
    let config = format!("host=127.0.0.1 port={} user=postgres dbname={}", target.port(), target.database());
    let (client, connection) = tokio_postgres::connect(&config, NoTls).await.expect("the driver connects");
    tokio::spawn(connection);
    client
}

async fn types(client: &Client) -> Result<()> {
    client
        .batch_execute(
            "CREATE TABLE client_tokio (id serial PRIMARY KEY, small smallint, big bigint, t text NOT NULL, f float8, r real,
                 b boolean, y bytea, at timestamptz, list int[], words text[], c char(4), j jsonb);
             CREATE INDEX client_tokio_t ON client_tokio (t)",
        )
        .await?;
    let at = SystemTime::UNIX_EPOCH + Duration::from_micros(1_709_208_000_123_456);
    let list = vec![Some(1), None, Some(3)];
    let words = vec!["a", "b,\"c"];
    let facts = serde_json::json!({"a": [1, null, "x"]});
    let insert = client
        .prepare(
            "INSERT INTO client_tokio (small, big, t, f, r, b, y, at, list, words, c, j)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) RETURNING *",
        )
        .await?;
    assert_eq!(insert.params()[1], Type::INT8);
    let values: [&(dyn ToSql + Sync); 12] = [
        &-5i16,
        &(1i64 << 40),
        &"täxt",
        &1.25f64,
        &1.5f32,
        &true,
        &[0u8, 255].as_slice(),
        &at,
        &list,
        &words,
        &"ab",
        &facts,
    ];
    let row = client.query_one(&insert, &values).await?;
    assert_eq!((row.get::<_, i32>("id"), row.get::<_, i16>("small"), row.get::<_, i64>("big")), (1, -5, 1 << 40));
    assert_eq!((row.get::<_, &str>("t"), row.get::<_, f64>("f"), row.get::<_, f32>("r")), ("täxt", 1.25, 1.5));
    assert_eq!((row.get::<_, bool>("b"), row.get::<_, &[u8]>("y")), (true, [0u8, 255].as_slice()));
    assert_eq!(row.get::<_, SystemTime>("at"), at);
    assert_eq!(row.get::<_, Vec<Option<i32>>>("list"), list);
    assert_eq!(row.get::<_, Vec<String>>("words"), words);
    assert_eq!((row.get::<_, &str>("c"), row.get::<_, serde_json::Value>("j")), ("ab  ", facts));
    let nulls = client.query_one("INSERT INTO client_tokio (t) VALUES ($1) RETURNING big, y, list", &[&""]).await?;
    assert_eq!((nulls.get::<_, Option<i64>>(0), nulls.get::<_, Option<Vec<u8>>>(1)), (None, None));
    let found = client.query("SELECT t FROM client_tokio WHERE id = ANY($1) ORDER BY id", &[&vec![1, 2, 9]]).await?;
    assert_eq!(found.iter().map(|row| row.get(0)).collect::<Vec<&str>>(), ["täxt", ""]);
    assert_eq!(client.query_opt("SELECT 1 FROM client_tokio WHERE id = $1", &[&77]).await?.map(|row| row.len()), None);
    Ok(())
}

/// Types that the driver does not know are looked up in the catalog by queries of its own.
async fn unknown_types(client: &Client) -> Result<()> {
    let row = client.query_one("SELECT 'a'::name, 'x'::\"char\", 1::oid", &[]).await?;
    assert_eq!((row.get::<_, &str>(0), row.get::<_, u32>(2)), ("a", 1));
    let statement = client.prepare("SELECT typname, oid FROM pg_catalog.pg_type WHERE oid = $1").await?;
    assert_eq!(statement.columns()[0].type_(), &Type::NAME);
    assert_eq!(client.query_one(&statement, &[&23u32]).await?.get::<_, &str>(0), "int4");
    Ok(())
}

/// The bytes of a value, whatever its type.
#[derive(Debug, PartialEq)]
struct Raw(Vec<u8>);

impl FromSql<'_> for Raw {
    fn from_sql(_: &Type, raw: &[u8]) -> std::result::Result<Raw, Box<dyn std::error::Error + Sync + Send>> {
        Ok(Raw(raw.to_vec()))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

impl ToSql for Raw {
    fn to_sql(
        &self,
        _: &Type,
        out: &mut bytes::BytesMut,
    ) -> std::result::Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        out.extend_from_slice(&self.0);
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    tokio_postgres::types::to_sql_checked!();
}

/// An array of integers whose elements have a type of this OID.
fn array_of(element: u32, values: &[i32]) -> Raw {
    let mut bytes = Vec::new();
    for word in [1, 0, element as i32, values.len() as i32, 1] {
        bytes.extend(word.to_be_bytes());
    }
    for value in values {
        bytes.extend(4i32.to_be_bytes());
        bytes.extend(value.to_be_bytes());
    }
    Raw(bytes)
}

/// Arrays of a domain: the driver looks both types up, and values have the domain's OID inside.
async fn domains(client: &Client) -> Result<()> {
    client.batch_execute("CREATE DOMAIN client_small AS int CHECK (VALUE < 10)").await?;
    client.batch_execute("CREATE TABLE client_smalls (id int, list client_small[])").await?;
    let insert = client.prepare("INSERT INTO client_smalls VALUES ($1, $2) RETURNING list").await?;
    let Kind::Array(element) = insert.params()[1].kind() else { panic!("{:?} is no array", insert.params()[1]) };
    assert_eq!((element.name(), element.kind()), ("client_small", &Kind::Domain(Type::INT4)));
    let list = array_of(element.oid(), &[1, 2]);
    assert_eq!(client.query_one(&insert, &[&1, &list]).await?.get::<_, Raw>(0), list);
    // The type of the elements may be what is under the domain, as drivers that do not look it up send it.
    let plain = array_of(Type::INT4.oid(), &[1, 2]);
    assert_eq!(client.query_one(&insert, &[&2, &plain]).await?.get::<_, Raw>(0), list);
    let refused = client.query_one(&insert, &[&3, &array_of(element.oid(), &[1, 20])]).await;
    assert_eq!(refused.err().and_then(|e| e.code().cloned()), Some(SqlState::CHECK_VIOLATION));
    let found = client.query("SELECT id FROM client_smalls WHERE list = $1", &[&list]).await?;
    assert_eq!(found.len(), 2);
    client.batch_execute("DROP TABLE client_smalls; DROP DOMAIN client_small").await
}

async fn transactions(client: &mut Client) -> Result<()> {
    let mut outer = client.transaction().await?;
    outer.execute("UPDATE client_tokio SET t = $1 WHERE id = $2", &[&"outer", &1]).await?;
    let inner = outer.savepoint("point").await?;
    assert_eq!(inner.execute("DELETE FROM client_tokio", &[]).await?, 2);
    inner.rollback().await?;
    outer.commit().await?;
    let view =
        client.build_transaction().isolation_level(IsolationLevel::RepeatableRead).read_only(true).start().await?;
    assert_eq!(view.query_one("SELECT count(*) FROM client_tokio", &[]).await?.get::<_, i64>(0), 2);
    let refused = view.execute("DELETE FROM client_tokio", &[]).await.expect_err("a read-only transaction wrote");
    assert_eq!(refused.code(), Some(&SqlState::READ_ONLY_SQL_TRANSACTION));
    drop(view);
    // A portal is read in parts.
    let parts = client.transaction().await?;
    let portal = parts.bind("SELECT * FROM generate_series(1, 10) AS n", &[]).await?;
    let (first, rest) = (parts.query_portal(&portal, 3).await?, parts.query_portal(&portal, 0).await?);
    assert_eq!((first.len(), rest.len(), rest[6].get::<_, i32>(0)), (3, 7, 10));
    parts.commit().await
}

async fn errors(client: &Client) -> Result<()> {
    for (statement, state) in [
        ("INSERT INTO client_tokio (id, t) VALUES (1, '')", SqlState::UNIQUE_VIOLATION),
        ("INSERT INTO client_tokio (t) VALUES (NULL)", SqlState::NOT_NULL_VIOLATION),
        ("SELECT 1/0", SqlState::DIVISION_BY_ZERO),
        ("SELECT nosuch", SqlState::UNDEFINED_COLUMN),
        ("TABLE nosuch", SqlState::UNDEFINED_TABLE),
        ("SELEC", SqlState::SYNTAX_ERROR),
        ("SELECT 'x'::int", SqlState::INVALID_TEXT_REPRESENTATION),
    ] {
        let error = client.execute(statement, &[]).await.expect_err(statement);
        assert_eq!(error.code(), Some(&state), "{statement}");
    }
    let duplicate = client.execute("INSERT INTO client_tokio (id, t) VALUES ($1, $2)", &[&1, &"x"]).await;
    let duplicate = duplicate.expect_err("a duplicate went in");
    let fields = duplicate.as_db_error().expect("the server said so");
    assert_eq!(fields.constraint(), Some("client_tokio_pkey"));
    assert_eq!(fields.detail(), Some("Key (id)=(1) already exists."));
    Ok(())
}

async fn pipelining_and_copy(client: &Client) -> Result<()> {
    let queries = (0..100).map(|i| async move { client.query_one("SELECT $1::int + 1", &[&i]).await });
    let answers = future::try_join_all(queries).await?;
    assert_eq!(answers.iter().map(|row| row.get::<_, i32>(0)).collect::<Vec<_>>(), (1..=100).collect::<Vec<_>>());
    let sink = client.copy_in("COPY client_tokio (id, t) FROM STDIN").await?;
    pin_mut!(sink);
    for i in 1000..2000 {
        sink.send(bytes::Bytes::from(format!("{i}\trow {i}\n"))).await?;
    }
    assert_eq!(sink.finish().await?, 1000);
    let out = client.copy_out("COPY (SELECT id, t FROM client_tokio WHERE id >= 1000 ORDER BY id) TO STDOUT").await?;
    let chunks: Vec<bytes::Bytes> = out.try_collect().await?;
    assert!(chunks.concat().starts_with(b"1000\trow 1000\n1001\t") && chunks.concat().ends_with(b"1999\trow 1999\n"));
    let rows = client.query_raw("SELECT id FROM client_tokio WHERE id >= $1 ORDER BY id", [1000]).await?;
    pin_mut!(rows);
    let mut count = 0;
    while let Some(row) = rows.next().await {
        assert_eq!(row?.get::<_, i32>(0), 1000 + count);
        count += 1;
    }
    assert_eq!(count, 1000);
    let simple =
        client.simple_query("SELECT 1 AS a; UPDATE client_tokio SET t = 'y' WHERE id < 1010 AND id >= 1000").await?;
    assert!(simple.iter().any(|m| matches!(m, SimpleQueryMessage::Row(row) if row.get("a") == Some("1"))));
    assert!(simple.iter().any(|m| matches!(m, SimpleQueryMessage::CommandComplete(10))));
    Ok(())
}

async fn cancellation(client: &Client) -> Result<()> {
    let token = client.cancel_token();
    let sleep = client.execute("SELECT pg_sleep(10)", &[]);
    let cancel = async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        token.cancel_query(NoTls).await
    };
    let (slept, cancelled) = future::join(sleep, cancel).await;
    cancelled?;
    assert_eq!(slept.expect_err("a cancelled statement went on").code(), Some(&SqlState::QUERY_CANCELED));
    Ok(())
}

async fn run(target: &Target) -> Result<()> {
    let mut client = connect(target).await;
    types(&client).await?;
    unknown_types(&client).await?;
    domains(&client).await?;
    transactions(&mut client).await?;
    errors(&client).await?;
    pipelining_and_copy(&client).await?;
    cancellation(&client).await
}

#[test]
fn tokio_postgres_works() {
    for target in [Target::reference(), Target::start()] {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(run(&target)).unwrap_or_else(|error| panic!("{}: {error:?}", target.name()));
        assert_eq!(target.panics(), Vec::<String>::new());
    }
}
