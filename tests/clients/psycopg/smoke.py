"""psycopg 3 against the server that the PG* variables name."""

import asyncio
import datetime as dt
import decimal
import uuid

import psycopg
from psycopg.rows import dict_row
from psycopg.types import TypeInfo
from psycopg.types.json import Json, Jsonb

ROW = (
    7, 2**40, "täxt", decimal.Decimal("12.50"), 1.25, True, b"\x00\xff",
    dt.date(2024, 2, 29), dt.time(1, 2, 3, 4), dt.datetime(2024, 2, 29, 12, 0, 0, 5),
    dt.datetime(2024, 2, 29, 12, 0, tzinfo=dt.timezone.utc), dt.timedelta(days=2, hours=3),
    uuid.UUID("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"), [1, 2, 3], None,
)
TYPES = ("int, bigint, text, numeric(8,2), float8, boolean, bytea, date, time, timestamp, timestamptz, interval, uuid, "
         "int[], text").split(", ")


def types(conn, binary):
    columns = ", ".join(f"c{i} {name}" for i, name in enumerate(TYPES))
    conn.execute("DROP TABLE IF EXISTS client_psycopg")
    conn.execute(f"CREATE TABLE client_psycopg ({columns})")
    holes = ", ".join(["%b" if binary else "%s"] * len(ROW))
    with conn.cursor(binary=binary) as cur:
        cur.execute(f"INSERT INTO client_psycopg VALUES ({holes}) RETURNING *", ROW)
        got = cur.fetchone()
        assert got == ROW, got
        cur.execute("SELECT * FROM client_psycopg WHERE c0 = %s AND c2 = %s", (7, "täxt"))
        assert cur.fetchall() == [ROW]
        assert [c.name for c in cur.description][:2] == ["c0", "c1"]
    conn.commit()


def transactions(conn):
    conn.execute("DELETE FROM client_psycopg")
    conn.rollback()
    assert conn.execute("SELECT count(*) FROM client_psycopg").fetchone() == (1,)
    with conn.transaction():
        try:
            with conn.transaction():
                conn.execute("DELETE FROM client_psycopg")
                raise psycopg.Rollback()
        except psycopg.Rollback:
            pass
    assert conn.execute("SELECT count(*) FROM client_psycopg").fetchone() == (1,)
    conn.commit()


def errors(conn):
    conn.execute("CREATE UNIQUE INDEX client_psycopg_key ON client_psycopg (c0)")
    conn.commit()
    try:
        conn.execute("INSERT INTO client_psycopg (c0) VALUES (%s)", (7,))
        raise AssertionError("a duplicate went in")
    except psycopg.errors.UniqueViolation as error:
        diag = error.diag
        assert diag.sqlstate == "23505" and diag.constraint_name == "client_psycopg_key", diag.constraint_name
        assert diag.message_detail == "Key (c0)=(7) already exists.", diag.message_detail
    try:
        conn.execute("SELECT 1")
        raise AssertionError("a failed transaction went on")
    except psycopg.errors.InFailedSqlTransaction:
        conn.rollback()
    try:
        conn.execute("SELECT nosuch")
    except psycopg.errors.UndefinedColumn as error:
        assert error.diag.statement_position == "8"
    conn.rollback()


def copy(conn):
    with conn.cursor() as cur:
        with cur.copy("COPY client_psycopg (c0, c2) FROM STDIN") as copy_in:
            for i in range(1000, 3000):
                copy_in.write_row((i, f"row\t{i}"))
        assert cur.rowcount == 2000
        with cur.copy("COPY (SELECT c0, c2 FROM client_psycopg WHERE c0 >= 1000 ORDER BY c0) TO STDOUT") as copy_out:
            rows = list(copy_out.rows())
        assert rows[0] == ("1000", "row\t1000") and len(rows) == 2000
    conn.commit()


def pipeline(conn):
    with conn.pipeline():
        first = conn.execute("SELECT %s::int", (1,))
        for i in range(50):
            conn.execute("UPDATE client_psycopg SET c1 = c1 + 1 WHERE c0 = %s", (1000 + i,))
        last = conn.execute("SELECT %s::text", ("last",))
        assert first.fetchone() == (1,) and last.fetchone() == ("last",)
    conn.commit()


def more_types(conn):
    for binary in (False, True):
        with conn.cursor(binary=binary) as cur:
            for value, name in [
                (Jsonb({"a": [1, None, "x"]}), "jsonb"), (Json([1, 2]), "json"), (["a", None, 'b"{}\\'], "text[]"),
                ([[1, 2], [3, 4]], "int[]"), ([decimal.Decimal("1.10"), None], "numeric[]"), ([uuid.UUID(int=5)], "uuid[]"),
                ([dt.date(2024, 1, 31)], "date[]"), ([True, None], "bool[]"), (-32768, "smallint"), (2**63 - 1, "bigint"),
                (float("inf"), "float8"), (decimal.Decimal("NaN"), "numeric"), (decimal.Decimal("1e-30"), "numeric"),
                ("", "text"), ("x" * 100_000, "text"), (b"", "bytea"), (bytes(range(256)), "bytea"), ([], "int[]"),
                (dt.datetime(1, 1, 1), "timestamp"), (dt.datetime(9999, 12, 31, 23, 59, 59, 999999), "timestamp"),
                (dt.timedelta(days=-400, microseconds=1), "interval"), (None, "int"),
            ]:
                got = cur.execute(f"SELECT {'%b' if binary else '%s'}::{name}", (value,)).fetchone()[0]
                want = value.obj if isinstance(value, (Json, Jsonb)) else value
                assert got == want or str(got) == str(want) == "NaN", (name, got, want)
    cur = conn.cursor(row_factory=dict_row)
    assert cur.execute("SELECT 1 AS a, 'x' AS b").fetchone() == {"a": 1, "b": "x"}
    conn.commit()


def domains(conn):
    for word in ("DOMAIN client_positive AS int CHECK (VALUE > 0)", "DOMAIN client_few AS int[]",
                 "TABLE client_domains (id int, a client_positive[], f client_few)"):
        conn.execute(f"CREATE {word}")
    TypeInfo.fetch(conn, "client_positive").register(conn)
    element = conn.execute("SELECT 'client_positive'::regtype::oid").fetchone()[0]
    conn.adapters.register_loader(element, psycopg.types.numeric.IntLoader)
    conn.adapters.register_loader(element, psycopg.types.numeric.Int4BinaryLoader)
    for binary in (False, True):
        hole = "%b" if binary else "%t"
        with conn.cursor(binary=binary) as cur:
            got = cur.execute(f"INSERT INTO client_domains VALUES (1, {hole}, {hole}) RETURNING a, f", ([1, 2], [3]))
            assert got.fetchone() == ([1, 2], [3])
            assert cur.execute(f"SELECT {hole}::client_positive[]", ([[5], [6]],)).fetchone() == ([[5], [6]],)
            try:
                with conn.transaction():
                    cur.execute(f"SELECT {hole}::client_positive[]", ([1, -1],))
            except psycopg.errors.CheckViolation as error:
                assert error.diag.datatype_name == "client_positive", error.diag.datatype_name
            else:
                raise AssertionError("a value that its domain forbids")
    with conn.cursor().copy("COPY client_domains FROM STDIN (FORMAT BINARY)") as copy:
        copy.set_types(["int4", "int4[]", "int4[]"])
        copy.write_row((2, [8, 9], [1]))
    assert conn.execute("SELECT a FROM client_domains WHERE id = 2").fetchone() == ([8, 9],)
    conn.rollback()


def cursors(conn):
    with conn.cursor("scrolling", scrollable=True) as cur:
        cur.execute("SELECT * FROM generate_series(1, 100)")
        assert cur.fetchone() == (1,)
        cur.scroll(50, mode="absolute")
        assert cur.fetchmany(2) == [(51,), (52,)]
        cur.scroll(-2)
        assert cur.fetchone() == (51,)
    conn.commit()
    with conn.cursor("held", withhold=True) as cur:
        cur.execute("SELECT * FROM generate_series(1, 500)")
        conn.commit()
        cur.itersize = 70
        assert sum(row[0] for row in cur) == 125250
    conn.commit()
    client = psycopg.ClientCursor(conn)
    assert client.execute("SELECT %s::int, %s", (1, "it's")).fetchone() == (1, "it's")
    conn.commit()


def binary_copy(conn):
    with conn.cursor() as cur:
        with cur.copy("COPY client_psycopg (c0, c2, c3, c9, c13) FROM STDIN (FORMAT binary)") as copy_in:
            copy_in.set_types(["int4", "text", "numeric", "timestamp", "int4[]"])
            for i in range(3000, 3100):
                copy_in.write_row((i, f"bin {i}", decimal.Decimal(i) / 100, dt.datetime(2024, 1, 1), [i, None]))
        query = "COPY (SELECT c0, c2, c3, c9, c13 FROM client_psycopg WHERE c2 LIKE 'bin%' ORDER BY 1) TO STDOUT (FORMAT binary)"
        with cur.copy(query) as copy_out:
            copy_out.set_types(["int4", "text", "numeric", "timestamp", "int4[]"])
            rows = list(copy_out.rows())
        assert rows[7] == (3007, "bin 3007", decimal.Decimal("30.07"), dt.datetime(2024, 1, 1), [3007, None]), rows[7]
        try:
            with cur.copy("COPY client_psycopg (c0) FROM STDIN") as copy_in:
                copy_in.write_row(("not a number",))
            raise AssertionError("a bad line went in")
        except psycopg.errors.InvalidTextRepresentation as error:
            assert error.diag.context == 'COPY client_psycopg, line 1, column c0: "not a number"', error.diag.context
    conn.rollback()


def broken_pipeline(conn):
    """What follows an error in a pipeline is skipped until the next sync."""
    conn.autocommit = True
    with conn.pipeline() as pipeline:
        good = conn.execute("SELECT 1")
        # The error is raised by whichever call first finds that it has arrived.
        try:
            conn.execute("SELECT 1/0")
            conn.execute("SELECT 2")
            pipeline.sync()
            raise AssertionError("the division went well")
        except psycopg.errors.DivisionByZero:
            pass
        pipeline.sync()
        after = conn.execute("SELECT 3")
        assert good.fetchone() == (1,) and after.fetchone() == (3,)
    conn.autocommit = False


async def asynchronous():
    async with await psycopg.AsyncConnection.connect() as conn:
        cur = await conn.execute("SELECT c0 FROM client_psycopg WHERE c0 >= %s ORDER BY c0 LIMIT 3", (1000,))
        assert [row[0] async for row in cur] == [1000, 1001, 1002]
        async with conn.pipeline():
            first = await conn.execute("SELECT 1")
            second = await conn.execute("SELECT 2")
            assert await first.fetchone() == (1,) and await second.fetchone() == (2,)
        async with conn.cursor("asynchronous") as cur:
            await cur.execute("SELECT * FROM generate_series(1, 10)")
            assert len(await cur.fetchall()) == 10
        await conn.commit()
        other = await psycopg.AsyncConnection.connect(autocommit=True)
        sleeping = asyncio.create_task(other.execute("SELECT pg_sleep(10)"))
        await asyncio.sleep(0.2)
        await other.cancel_safe()
        try:
            await sleeping
            raise AssertionError("a cancelled statement went on")
        except psycopg.errors.QueryCanceled:
            pass
        await other.execute("LISTEN client_psycopg")
        await conn.execute("SELECT pg_notify('client_psycopg', 'hello')")
        await conn.commit()
        async for note in other.notifies(timeout=5, stop_after=1):
            assert (note.channel, note.payload) == ("client_psycopg", "hello")
        await other.close()


def main():
    with psycopg.connect() as conn:
        types(conn, binary=False)
        types(conn, binary=True)
        transactions(conn)
        errors(conn)
        copy(conn)
        pipeline(conn)
        more_types(conn)
        domains(conn)
        cursors(conn)
        binary_copy(conn)
        broken_pipeline(conn)
        asyncio.run(asynchronous())
        with conn.cursor() as cur:
            cur.executemany("INSERT INTO client_psycopg (c0, c2) VALUES (%s, %s)", [(i, "many") for i in range(5000, 5100)])
            assert cur.rowcount == 100
        with conn.cursor("named") as cur:
            cur.execute("SELECT c0 FROM client_psycopg WHERE c2 = 'many' ORDER BY c0")
            assert [row[0] for row in cur.fetchmany(3)] == [5000, 5001, 5002]
        for binary in (False, True):
            with conn.cursor("given", binary=binary, scrollable=True) as cur:
                cur.execute("SELECT c0, c2, %s::numeric FROM client_psycopg WHERE c2 = %s AND c0 > %s ORDER BY c0", (1.5, "many", 5090))
                assert cur.fetchone() == (5091, "many", decimal.Decimal("1.5"))
                cur.scroll(-1)
                assert [row[0] for row in cur] == list(range(5091, 5100))
        assert conn.execute("EXPLAIN (FORMAT JSON) SELECT c0 FROM client_psycopg WHERE c0 = %s", (5,)).fetchone()[0][0]["Plan"]
        conn.execute("CREATE TEMP TABLE client_psycopg_made AS SELECT c0 FROM client_psycopg WHERE c0 > %s::int", (5097,))
        assert conn.execute("SELECT array_agg(c0 ORDER BY c0) FROM client_psycopg_made").fetchone() == ([5098, 5099],)
        for _ in range(10):
            assert conn.execute("SELECT c2 FROM client_psycopg WHERE c0 = %s", (5001,), prepare=True).fetchone() == ("many",)
        conn.execute("DROP TABLE client_psycopg")
    print("ok")


main()
