// node-postgres against the server that the PG* variables name.
const assert = require('node:assert/strict');
const { pipeline } = require('node:stream/promises');
const { Readable } = require('node:stream');
const { Client, Pool } = require('pg');
const Cursor = require('pg-cursor');
const { from: copyFrom, to: copyTo } = require('pg-copy-streams');

async function types(client) {
  await client.query('DROP TABLE IF EXISTS client_node');
  await client.query(`CREATE TABLE client_node (id int PRIMARY KEY, big bigint, t text, n numeric(8,2), f float8,
    b boolean, y bytea, d timestamptz, j jsonb, a int[], nothing text)`);
  const when = new Date('2024-02-29T12:00:00.123Z');
  const row = [1, '1099511627776', 'täxt', '12.50', 1.25, true, Buffer.from([0, 255]), when, { k: [1, 2] }, [1, 2, 3], null];
  const inserted = await client.query('INSERT INTO client_node VALUES ($1,$2,$3,$4,$5,$6,$7,$8,$9,$10,$11) RETURNING *', row);
  assert.equal(inserted.rowCount, 1);
  assert.deepEqual(Object.values(inserted.rows[0]), row);
  const found = await client.query({ name: 'find', text: 'SELECT * FROM client_node WHERE id = $1 AND t = $2', values: [1, 'täxt'] });
  assert.deepEqual(Object.values(found.rows[0]), row);
  const again = await client.query({ name: 'find', text: 'SELECT * FROM client_node WHERE id = $1 AND t = $2', values: [2, 'x'] });
  assert.equal(again.rows.length, 0);
  const two = await client.query('SELECT 1 AS a; SELECT 2 AS b');
  assert.deepEqual(two.map((r) => r.rows[0]), [{ a: 1 }, { b: 2 }]);
}

async function transactions(client) {
  await client.query('BEGIN');
  await client.query('DELETE FROM client_node');
  await client.query('ROLLBACK');
  assert.equal((await client.query('SELECT count(*) FROM client_node')).rows[0].count, '1');
}

async function moreTypes(client) {
  const { rows: [row], fields } = await client.query(
    `SELECT $1::json AS j, $2::text[] AS words, $3::numeric[] AS numbers, $4::uuid AS u, $5::smallint AS small, $6::real AS r,
     $7::date::text AS day, $8::interval::text AS span, $9::bool[] AS flags, $10::int[] AS none, $11::char(3) AS c`,
    [JSON.stringify({ a: 1 }), ['a', null, 'c,"d'], ['1.10', null], 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', -32768, 1.5,
      '2024-02-29', '1 day 02:00:00', [true, null], [], 'ab']);
  assert.deepEqual(row, { j: { a: 1 }, words: ['a', null, 'c,"d'], numbers: [1.1, null], u: 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11',
    small: -32768, r: 1.5, day: '2024-02-29', span: '1 day 02:00:00', flags: [true, null], none: [], c: 'ab ' });
  assert.deepEqual(fields.map((f) => f.dataTypeID).slice(0, 5), [114, 1009, 1231, 2950, 21]);
  const array = await client.query({ text: 'SELECT 1, NULL, $1::text', values: ['x'], rowMode: 'array' });
  assert.deepEqual(array.rows, [[1, null, 'x']]);
}

async function schema(client) {
  await client.query(`CREATE TEMP TABLE client_node_temp (id serial PRIMARY KEY, t text NOT NULL CHECK (t <> ''))`);
  const ids = await client.query(`INSERT INTO client_node_temp (t) SELECT 'row ' || g FROM generate_series(1, $1::int) g RETURNING id`, [100]);
  assert.deepEqual(ids.rows.map((r) => r.id), Array.from({ length: 100 }, (_, i) => i + 1));
  await assert.rejects(client.query(`INSERT INTO client_node_temp (t) VALUES ('')`), { code: '23514', constraint: 'client_node_temp_t_check' });
  await assert.rejects(client.query('INSERT INTO client_node_temp (t) VALUES ($1)', [null]), { code: '23502', column: 't' });
  const upsert = await client.query(`INSERT INTO client_node_temp VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET t = excluded.t RETURNING *`, [5, 'five']);
  assert.deepEqual(upsert.rows, [{ id: 5, t: 'five' }]);
  const columns = await client.query(`SELECT column_name, data_type FROM information_schema.columns WHERE table_name = 'client_node_temp'
    ORDER BY ordinal_position`);
  assert.deepEqual(columns.rows, [{ column_name: 'id', data_type: 'integer' }, { column_name: 't', data_type: 'text' }]);
}

async function cursors(client) {
  await client.query('BEGIN');
  const cursor = client.query(new Cursor('SELECT * FROM generate_series(1, $1::int) AS n', [10]));
  assert.deepEqual((await cursor.read(3)).map((r) => r.n), [1, 2, 3]);
  assert.equal((await cursor.read(100)).length, 7);
  await cursor.close();
  await client.query('COMMIT');
}

async function notifications(client) {
  const other = new Client();
  await other.connect();
  await client.query('LISTEN client_node');
  const heard = new Promise((resolve) => client.once('notification', resolve));
  await other.query(`SELECT pg_notify('client_node', 'hello')`);
  assert.equal((await heard).payload, 'hello');
  await other.end();
}

async function errors(client) {
  await assert.rejects(client.query('INSERT INTO client_node (id) VALUES ($1)', [1]), (error) => {
    assert.equal(error.code, '23505');
    assert.equal(error.constraint, 'client_node_pkey');
    assert.equal(error.table, 'client_node');
    assert.equal(error.detail, 'Key (id)=(1) already exists.');
    return true;
  });
  await assert.rejects(client.query('SELEC 1'), { code: '42601', position: '1' });
  await assert.rejects(client.query('SELECT $1::int', ['x']), { code: '22P02' });
}

async function copy(client) {
  const lines = Array.from({ length: 2000 }, (_, i) => `${i + 1000}\trow ${i}\n`);
  await pipeline(Readable.from(lines), client.query(copyFrom('COPY client_node (id, t) FROM STDIN')));
  let text = '';
  const out = client.query(copyTo('COPY (SELECT id, t FROM client_node WHERE id >= 1000 ORDER BY id) TO STDOUT'));
  for await (const chunk of out) text += chunk;
  assert.equal(text, lines.join(''));
}

async function pool() {
  const connections = new Pool({ max: 5 });
  const tasks = Array.from({ length: 50 }, (_, i) => connections.query('SELECT $1::int + 1 AS n', [i]));
  const answers = await Promise.all(tasks);
  assert.deepEqual(answers.map((r) => r.rows[0].n), Array.from({ length: 50 }, (_, i) => i + 1));
  await connections.end();
}

async function main() {
  const client = new Client();
  await client.connect();
  await types(client);
  await transactions(client);
  await errors(client);
  await moreTypes(client);
  await schema(client);
  await cursors(client);
  await notifications(client);
  await copy(client);
  await pool();
  await client.query('DROP TABLE client_node');
  await client.end();
  console.log('ok');
}

main().catch((error) => { console.error(error); process.exit(1); });
