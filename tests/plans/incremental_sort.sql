-- Under LIMIT rows that an index gives in the order of the first keys are sorted group by group.
CREATE TABLE big (id int PRIMARY KEY, k int, s text, n numeric);
INSERT INTO big SELECT i, i % 500, (i % 70)::text, i % 11 FROM generate_series(1, 20000) i;
CREATE INDEX big_k ON big (k);
CREATE INDEX big_s_k ON big (s, k DESC);
CREATE INDEX big_n ON big (n);
CREATE TABLE few (id int, k int);
INSERT INTO few SELECT i, i % 7 FROM generate_series(1, 20000) i;
CREATE INDEX few_k ON few (k);
ANALYZE few;
ANALYZE big;
EXPLAIN (COSTS off) SELECT * FROM big ORDER BY k, n LIMIT 10;
EXPLAIN (COSTS off) SELECT * FROM big ORDER BY k DESC, n DESC LIMIT 10;
EXPLAIN (COSTS off) SELECT * FROM big WHERE s = '3' ORDER BY k DESC, id LIMIT 10 OFFSET 5;
EXPLAIN (COSTS off) SELECT * FROM big WHERE k > 100 ORDER BY s, k, id LIMIT 10;
EXPLAIN (COSTS off) SELECT * FROM big ORDER BY k, s LIMIT 10 FOR UPDATE;
EXPLAIN (COSTS off, FORMAT json) SELECT id FROM big ORDER BY k, n LIMIT 10;
EXPLAIN (COSTS off) SELECT * FROM big ORDER BY n, id LIMIT 10;
-- All rows are wanted, or the first key has too few values.
EXPLAIN (COSTS off) SELECT * FROM big ORDER BY k, n;
EXPLAIN (COSTS off) SELECT * FROM big WHERE k = 3 ORDER BY k, n LIMIT 10;
EXPLAIN (COSTS off) SELECT * FROM big ORDER BY k NULLS FIRST, n LIMIT 10;
EXPLAIN (COSTS off) SELECT * FROM few ORDER BY k, id LIMIT 10;
SET enable_incremental_sort = off;
EXPLAIN (COSTS off) SELECT * FROM big ORDER BY k, n LIMIT 10;
