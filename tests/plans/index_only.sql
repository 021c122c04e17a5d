CREATE TABLE s (id int PRIMARY KEY, k int NOT NULL, c char(120) NOT NULL, pad char(60), n numeric, t text, d date);
CREATE INDEX s_k ON s (k);
CREATE INDEX s_tk ON s (t DESC, k);
CREATE INDEX s_nk ON s (n, k);
CREATE INDEX s_kn ON s (k, n);
CREATE INDEX s_c ON s (c);
CREATE INDEX s_lower ON s (lower(t), d);
INSERT INTO s SELECT i, i % 500, 'c' || i, 'p', i, 't' || i % 100, date '2020-01-01' + i FROM generate_series(1, 4000) i;
ANALYZE s;
-- The key says all that is needed.
EXPLAIN (COSTS off) SELECT count(*) FROM s WHERE id BETWEEN 10 AND 20;
EXPLAIN (COSTS off) SELECT id FROM s WHERE id > 3990 ORDER BY id DESC;
EXPLAIN (COSTS off) SELECT t, k FROM s WHERE t = 't7' AND k % 2 = 1;
EXPLAIN (COSTS off) SELECT id FROM s WHERE id BETWEEN 3 AND 5 OR id BETWEEN 7 AND 9;
EXPLAIN (COSTS off) SELECT id FROM s ORDER BY id LIMIT 3;
EXPLAIN (COSTS off) SELECT 1 FROM s a WHERE a.id < 5 AND EXISTS (SELECT FROM s b WHERE b.t > a.id::text AND b.t < 'u');
-- Columns beside the key, keys that do not say all, rows that are locked or changed.
EXPLAIN (COSTS off) SELECT id, pad FROM s WHERE id BETWEEN 10 AND 20;
EXPLAIN (COSTS off) SELECT n FROM s WHERE n BETWEEN 10 AND 20;
EXPLAIN (COSTS off) SELECT c FROM s WHERE c BETWEEN 'c10' AND 'c101';
EXPLAIN (COSTS off) SELECT d FROM s WHERE lower(t) = 't5' AND d > date '2029-01-01';
EXPLAIN (COSTS off) SELECT id FROM s WHERE id BETWEEN 10 AND 20 FOR UPDATE;
EXPLAIN (COSTS off) DELETE FROM s WHERE id BETWEEN 10 AND 20;
EXPLAIN (COSTS off) SELECT id FROM s WHERE id = 5;
SET enable_indexonlyscan = off;
EXPLAIN (COSTS off) SELECT count(*) FROM s WHERE id BETWEEN 10 AND 20;
RESET ALL;
EXPLAIN (COSTS off, FORMAT JSON) SELECT id FROM s WHERE id BETWEEN 10 AND 20;

-- One row for each value of the first columns.
CREATE TABLE each_of (a int, b int, c int);
CREATE INDEX each_of_abc ON each_of (a, b, c);
INSERT INTO each_of SELECT g / 1000, g / 100 % 10, g FROM generate_series(0, 9999) g;
ANALYZE each_of;
EXPLAIN (COSTS OFF) SELECT DISTINCT a, b FROM each_of ORDER BY a, b LIMIT 5;
EXPLAIN (COSTS OFF) SELECT a FROM each_of GROUP BY a ORDER BY a DESC;
EXPLAIN (COSTS OFF) SELECT DISTINCT b FROM each_of WHERE a = 4 ORDER BY b;
EXPLAIN (COSTS OFF) SELECT DISTINCT a, b, c FROM each_of ORDER BY a, b, c LIMIT 5;
