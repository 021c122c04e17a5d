"""asyncpg against the server that the PG* variables name. It speaks the binary protocol only."""

import asyncio
import datetime as dt
import decimal
import uuid

import asyncpg

ROW = (
    7, 3, 2**40, "täxt", "vc", "ab ", decimal.Decimal("12.50"), 1.5, 1.25, True, b"\x00\xff",
    dt.date(2024, 2, 29), dt.time(1, 2, 3, 4), dt.datetime(2024, 2, 29, 12, 0, 0, 5),
    dt.datetime(2024, 2, 29, 12, 0, tzinfo=dt.timezone.utc), dt.timedelta(days=2, hours=3),
    uuid.UUID("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"), '{"a": 1}', '{"b": [1, 2]}', [1, 2, None], ["x", 'y"z', None],
    [[1, 2], [3, 4]], None,
)
TYPES = ("int, smallint, bigint, text, varchar(5), char(3), numeric(8,2), real, float8, boolean, bytea, date, time, "
         "timestamp, timestamptz, interval, uuid, json, jsonb, int[], text[], int[], text").replace("8,2", "8;2").split(", ")


async def types(conn):
    columns = ", ".join(f"c{i} {name.replace(';', ',')}" for i, name in enumerate(TYPES))
    await conn.execute("DROP TABLE IF EXISTS client_asyncpg")
    await conn.execute(f"CREATE TABLE client_asyncpg ({columns})")
    holes = ", ".join(f"${i + 1}" for i in range(len(ROW)))
    got = await conn.fetchrow(f"INSERT INTO client_asyncpg VALUES ({holes}) RETURNING *", *ROW)
    assert tuple(got) == ROW, tuple(got)
    nothing = await conn.fetchrow(f"INSERT INTO client_asyncpg VALUES ({holes}) RETURNING *", *[None] * len(ROW))
    assert tuple(nothing) == (None,) * len(ROW)
    for number in ("0", "-1", "99999.99", "-0.01", "123456.78"):
        assert await conn.fetchval("SELECT $1::numeric(8,2)", decimal.Decimal(number)) == decimal.Decimal(number)
    for number in ("NaN", "1e-20", "1e30", "-1234567890123456789012345678901234567890.123456789"):
        got = await conn.fetchval("SELECT $1::numeric", decimal.Decimal(number))
        assert str(got) == "NaN" if number == "NaN" else got == decimal.Decimal(number), got
    assert await conn.fetchval("SELECT $1::int = ANY($2::int[])", 2, [1, 2]) is True
    rows = await conn.fetch("SELECT * FROM unnest($1::int[], $2::text[]) AS t (a, b)", [1, 2], ["x", "y"])
    assert [tuple(row) for row in rows] == [(1, "x"), (2, "y")]
    statement = await conn.prepare("SELECT c0, c3 FROM client_asyncpg WHERE c0 = $1")
    assert [t.name for t in statement.get_parameters()] == ["int4"]
    assert [(a.name, a.type.name) for a in statement.get_attributes()] == [("c0", "int4"), ("c3", "text")]
    for _ in range(3):
        assert tuple(await statement.fetchrow(7)) == (7, "täxt")
    # A type that the driver does not know is looked up in the catalog.
    assert tuple(await conn.fetchval("SELECT ROW(1, 'a'::text, NULL::int)")) == (1, "a", None)


async def domains(conn):
    """Arrays of domains travel as arrays whose elements have the domain's OID."""
    await conn.execute("""
        CREATE DOMAIN client_positive AS int CHECK (VALUE > 0);
        CREATE DOMAIN client_price AS numeric(6, 2);
        CREATE DOMAIN client_few AS int[] CHECK (array_length(VALUE, 1) < 4);
        CREATE TABLE client_domains (id int, a client_positive[], p client_price[], f client_few)""")
    price = decimal.Decimal
    insert = "INSERT INTO client_domains VALUES ($1, $2, $3, $4) RETURNING a, p, f"
    for row, want in [
        ((1, [1, 2], [price("1.234")], [3]), ([1, 2], [price("1.23")], [3])),
        ((2, [1, None], [], None), ([1, None], [], None)),
        ((3, [[1, 2], [3, 4]], [None], []), ([[1, 2], [3, 4]], [None], [])),
    ]:
        assert tuple(await conn.fetchrow(insert, *row)) == want, row
    for row in [(4, [-1], None, None), (4, None, None, [1, 2, 3, 4])]:
        try:
            await conn.fetchrow(insert, *row)
        except asyncpg.CheckViolationError as error:
            assert error.sqlstate == "23514" and error.constraint_name, error
        else:
            raise AssertionError(row)
    await conn.copy_records_to_table("client_domains", records=[(5, [7], [price("2.5")], [8])])
    assert tuple(await conn.fetchrow("SELECT a, p, f FROM client_domains WHERE id = 5")) == ([7], [price("2.50")], [8])
    rows = await conn.fetch("SELECT x, pg_typeof(x)::text FROM unnest($1::client_positive[]) AS x", [1, 2])
    assert [tuple(row) for row in rows] == [(1, "client_positive"), (2, "client_positive")]
    statement = await conn.prepare("SELECT a, f FROM client_domains WHERE a[1] = ANY($1::client_positive[])")
    assert [(t.name, t.kind) for t in statement.get_parameters()] == [("client_positive[]", "array")]
    assert [a.type.name for a in statement.get_attributes()] == ["client_positive[]", "int4[]"]
    assert len(await statement.fetch([1, 9])) == 2
    await conn.execute("DROP TABLE client_domains; DROP DOMAIN client_positive, client_price, client_few")


async def transactions(conn):
    async with conn.transaction(isolation="repeatable_read"):
        assert await conn.fetchval("SHOW transaction_isolation") == "repeatable read"
        await conn.execute("UPDATE client_asyncpg SET c3 = 'inside' WHERE c0 = 7")
        try:
            async with conn.transaction():
                await conn.execute("DELETE FROM client_asyncpg")
                raise ValueError
        except ValueError:
            pass
    assert await conn.fetchval("SELECT count(*) FROM client_asyncpg") == 2
    async with conn.transaction(readonly=True):
        try:
            await conn.execute("DELETE FROM client_asyncpg")
            raise AssertionError("a read-only transaction wrote")
        except asyncpg.ReadOnlySQLTransactionError:
            pass


async def errors(conn):
    await conn.execute("CREATE UNIQUE INDEX client_asyncpg_key ON client_asyncpg (c0)")
    try:
        await conn.execute("INSERT INTO client_asyncpg (c0) VALUES ($1)", 7)
        raise AssertionError("a duplicate went in")
    except asyncpg.UniqueViolationError as error:
        assert error.sqlstate == "23505" and error.constraint_name == "client_asyncpg_key"
        assert error.table_name == "client_asyncpg" and error.detail == "Key (c0)=(7) already exists."
    for text, kind in [("SELECT nosuch", asyncpg.UndefinedColumnError), ("SELEC", asyncpg.PostgresSyntaxError),
                       ("SELECT 1/0", asyncpg.DivisionByZeroError), ("TABLE nosuch", asyncpg.UndefinedTableError),
                       ("SELECT 'x'::int", asyncpg.InvalidTextRepresentationError),
                       ("SELECT 99999 :: int2", asyncpg.NumericValueOutOfRangeError)]:
        try:
            await conn.fetch(text)
            raise AssertionError(text)
        except kind:
            pass


async def many(conn):
    rows = [(i, f"row {i}") for i in range(1000, 2000)]
    await conn.executemany("INSERT INTO client_asyncpg (c0, c3) VALUES ($1, $2)", rows)
    assert await conn.fetchval("SELECT count(*) FROM client_asyncpg WHERE c0 >= 1000") == 1000
    async with conn.transaction():
        read = [row["c0"] async for row in conn.cursor("SELECT c0 FROM client_asyncpg WHERE c0 >= $1 ORDER BY c0", 1000,
                                                       prefetch=7)]
        assert read == [row[0] for row in rows]
        cursor = await conn.cursor("SELECT c0 FROM client_asyncpg WHERE c0 >= 1000 ORDER BY c0")
        await cursor.forward(10)
        assert [row["c0"] for row in await cursor.fetch(2)] == [1010, 1011]


async def copy(conn):
    # Records go in the binary format.
    status = await conn.copy_records_to_table("client_asyncpg", columns=["c0", "c3", "c13"],
                                              records=[(i, f"copy {i}", dt.datetime(2024, 1, 1)) for i in range(3000, 4000)])
    assert status == "COPY 1000", status
    parts = []

    async def take(data):
        parts.append(data)

    await conn.copy_from_query("SELECT c0, c3 FROM client_asyncpg WHERE c0 >= $1 ORDER BY c0", 3998, output=take, format="csv")
    assert b"".join(parts) == b"3998,copy 3998\n3999,copy 3999\n", parts

    async def lines():
        yield b"5000\tfive"
        yield b" thousand\n"

    assert await conn.copy_to_table("client_asyncpg", source=lines(), columns=["c0", "c3"]) == "COPY 1"
    assert await conn.fetchval("SELECT c3 FROM client_asyncpg WHERE c0 = 5000") == "five thousand"


async def pool():
    async with asyncpg.create_pool(min_size=2, max_size=4) as connections:
        async def one(i):
            return await connections.fetchval("SELECT $1::int + 1", i)

        assert await asyncio.gather(*(one(i) for i in range(50))) == list(range(1, 51))


async def cancellation(conn):
    try:
        await conn.execute("SELECT pg_sleep(10)", timeout=0.1)
        raise AssertionError("a timeout does not end a statement")
    except asyncio.TimeoutError:
        pass
    assert await conn.fetchval("SELECT 1") == 1


async def main():
    conn = await asyncpg.connect()
    await types(conn)
    await domains(conn)
    await transactions(conn)
    await errors(conn)
    await many(conn)
    await copy(conn)
    await pool()
    await cancellation(conn)
    await conn.execute("DROP TABLE client_asyncpg")
    await conn.close()
    print("ok")


asyncio.run(main())
