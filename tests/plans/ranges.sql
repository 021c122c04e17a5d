-- Conditions that are ranges of keys.
CREATE TABLE big (id int PRIMARY KEY, a int, b smallint, c bigint, s text, f boolean NOT NULL, d date);
INSERT INTO big SELECT i, nullif(i % 200, 3), nullif(i % 70, 2), i % 13000, nullif('k' || i % 50, 'k4'), i % 300 = 0, date '2024-01-01' + i % 1700 FROM generate_series(1, 20000) i;
CREATE INDEX big_a_b_c ON big (a, b, c);
CREATE INDEX big_c_desc ON big (c DESC, b DESC, id DESC);
CREATE INDEX big_s_d ON big (s, d);
CREATE INDEX big_f ON big (f, d);
CREATE INDEX big_lower ON big (lower(s), id);
CREATE INDEX big_part ON big (d) WHERE a = 7;
ANALYZE big;
EXPLAIN (COSTS off) SELECT * FROM big WHERE a IS NULL;
EXPLAIN (COSTS off) SELECT * FROM big WHERE a = 5 AND b IS NULL AND c > 7;
EXPLAIN (COSTS off) SELECT * FROM big WHERE f AND d > '2025-01-01';
EXPLAIN (COSTS off) SELECT * FROM big WHERE a IN (1, 2) AND b = ANY ('{4,5}'::smallint[]) AND c < 1000;
EXPLAIN (COSTS off) SELECT * FROM big WHERE (a, b) IN ((1, 1), (2, 5), (9, 0));
EXPLAIN (COSTS off) SELECT * FROM big WHERE a = 1 AND b = 4 OR a = 7 AND b IS NULL OR a = 9 AND c = 7 AND b > 5;
EXPLAIN (COSTS off) SELECT * FROM big WHERE a = 11 AND (b = 4 OR b = 11 AND c > 500);
EXPLAIN (COSTS off) SELECT * FROM big WHERE a = 1 AND b = 4 OR s = 'k2' AND d > '2027-01-12';
EXPLAIN (COSTS off) SELECT * FROM big WHERE (id = 5 OR c = 77 OR lower(s) = 'k1' AND id > 19000) AND b < 50;
EXPLAIN (COSTS off) SELECT * FROM big WHERE (a, b, c) > (198, 5, 40) ORDER BY a, b, c LIMIT 10;
EXPLAIN (COSTS off) SELECT * FROM big WHERE (c, b, id) < (50, 3, 5) ORDER BY c DESC, b DESC, id DESC;
EXPLAIN (COSTS off) SELECT * FROM big WHERE a = 9 AND (b, c) BETWEEN (2::smallint, 30) AND (5::smallint, 1);
EXPLAIN (COSTS off) SELECT * FROM big WHERE a > 198 OR a = 198 AND b > 5 ORDER BY a, b, c LIMIT 10;
EXPLAIN (COSTS off) SELECT * FROM big WHERE s IN ('k1', 'k2') ORDER BY d DESC LIMIT 10;
EXPLAIN (COSTS off) SELECT * FROM big WHERE s IN ('k1', 'k2') ORDER BY d, id LIMIT 10;
EXPLAIN (COSTS off) SELECT * FROM big WHERE s IN ('k1', 'k2') ORDER BY s, d LIMIT 10;
EXPLAIN (COSTS off) SELECT * FROM big ORDER BY lower(s), id LIMIT 10;
EXPLAIN (COSTS off) SELECT * FROM big ORDER BY id DESC, a, b LIMIT 10;
EXPLAIN (COSTS off) SELECT * FROM big WHERE a = 7 ORDER BY d LIMIT 5;
EXPLAIN (COSTS off) SELECT count(*) FROM big WHERE a = 7;
EXPLAIN (COSTS off) DELETE FROM big WHERE (a, b) IN ((1, 1), (2, 5)) OR id = 7;
-- Nothing that an index answers in one alternative.
EXPLAIN (COSTS off) SELECT * FROM big WHERE a = 1 AND b = 4 OR d > '2028-01-01';
-- The order through joins.
CREATE TABLE small (id int PRIMARY KEY, n text);
INSERT INTO small SELECT i, 'n' || i FROM generate_series(0, 200) i;
ANALYZE small;
EXPLAIN (COSTS off) SELECT big.id, small.n FROM big JOIN small ON small.id = big.a ORDER BY big.c DESC, big.b DESC LIMIT 10;
EXPLAIN (COSTS off) SELECT big.id, small.n FROM big LEFT JOIN small ON small.id = big.a WHERE big.b > 3 ORDER BY big.id LIMIT 10;
EXPLAIN (COSTS off) SELECT big.id, small.n FROM big JOIN small ON small.id = big.a WHERE small.n LIKE 'n1%' ORDER BY big.id LIMIT 10;
EXPLAIN (COSTS off) SELECT big.id, small.n FROM big JOIN small ON small.id = big.a ORDER BY small.id, big.id LIMIT 10;
EXPLAIN (COSTS off) SELECT big.id, small.n FROM big JOIN small ON small.id = big.a LIMIT 10;
EXPLAIN (COSTS off) SELECT big.id, small.n FROM big JOIN small ON small.id = big.a ORDER BY big.id;
-- What a plan assumes of the values of parameters.
PREPARE opt (int, text) AS SELECT * FROM big WHERE ($1 IS NULL OR a = $1) AND ($2 IS NULL OR s = $2);
EXPLAIN (COSTS off) EXECUTE opt (5, NULL);
EXPLAIN (COSTS off) EXECUTE opt (NULL, 'k7');
EXPLAIN (COSTS off) EXECUTE opt (NULL, NULL);
PREPARE given (int) AS SELECT * FROM big WHERE id = coalesce($1, id);
EXPLAIN (COSTS off) EXECUTE given (5);
EXPLAIN (COSTS off) EXECUTE given (NULL);
PREPARE texts (text) AS SELECT * FROM big WHERE s LIKE $1;
EXPLAIN (COSTS off) EXECUTE texts ('k1%');
EXPLAIN (COSTS off) EXECUTE texts ('%k1');
-- Each value of a column that nothing is demanded of.
CREATE TABLE tenants_of (tenant int, kind text, id int, d date);
INSERT INTO tenants_of SELECT i % 12, 'k' || i % 3, i, date '2024-01-01' + i % 500 FROM generate_series(1, 30000) i;
CREATE INDEX tenants_of_key ON tenants_of (tenant, id);
CREATE INDEX tenants_of_kind ON tenants_of (kind, d, id);
ANALYZE tenants_of;
EXPLAIN (COSTS off) SELECT * FROM tenants_of WHERE id = 33;
EXPLAIN (COSTS off) SELECT * FROM tenants_of WHERE id BETWEEN 33 AND 40 ORDER BY tenant, id;
EXPLAIN (COSTS off) SELECT * FROM tenants_of WHERE d = '2024-02-03';
EXPLAIN (COSTS off) SELECT * FROM tenants_of WHERE kind = 'k1' AND id = 7;
-- Sorted before others are joined to it; a null side that is told a value.
EXPLAIN (COSTS off) SELECT t.id, b.s FROM tenants_of t LEFT JOIN big b ON b.id = t.id ORDER BY t.d DESC, t.id LIMIT 5;
EXPLAIN (COSTS off) SELECT * FROM small s LEFT JOIN big b ON b.a = s.id WHERE s.id = 5;
