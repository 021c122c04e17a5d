"""psycopg 3 against the server that the PG* variables name."""

import datetime as dt
import decimal
import uuid

import psycopg

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


def main():
    with psycopg.connect() as conn:
        types(conn, binary=False)
        types(conn, binary=True)
        transactions(conn)
        errors(conn)
        copy(conn)
        pipeline(conn)
        with conn.cursor() as cur:
            cur.executemany("INSERT INTO client_psycopg (c0, c2) VALUES (%s, %s)", [(i, "many") for i in range(5000, 5100)])
            assert cur.rowcount == 100
        with conn.cursor("named") as cur:
            cur.execute("SELECT c0 FROM client_psycopg WHERE c2 = 'many' ORDER BY c0")
            assert [row[0] for row in cur.fetchmany(3)] == [5000, 5001, 5002]
        for _ in range(10):
            assert conn.execute("SELECT c2 FROM client_psycopg WHERE c0 = %s", (5001,), prepare=True).fetchone() == ("many",)
        conn.execute("DROP TABLE client_psycopg")
    print("ok")


main()
