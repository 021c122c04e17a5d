-- NOT is moved to the comparisons, and LIKE with a constant beginning is a range.
CREATE TABLE big (id int PRIMARY KEY, k int, s text, v varchar(20), b boolean, f text);
INSERT INTO big SELECT i, i % 5000, 'word' || i, 'w' || i, i % 7 = 0, repeat('x', i % 3) FROM generate_series(1, 20000) i;
CREATE INDEX big_k ON big (k);
CREATE INDEX big_s ON big (s text_pattern_ops);
CREATE INDEX big_v ON big (v);
CREATE INDEX big_k_s ON big (k, s);
ANALYZE big;
EXPLAIN (COSTS off) SELECT * FROM big WHERE NOT (k > 3);
EXPLAIN (COSTS off) SELECT * FROM big WHERE NOT (k <= 4990 OR k IS NULL OR NOT b);
EXPLAIN (COSTS off) SELECT * FROM big WHERE NOT (NOT (id = 7) OR id + 1 IN (3, 4));
EXPLAIN (COSTS off) SELECT * FROM big WHERE NOT (k = 3 AND b) AND NOT EXISTS (SELECT FROM big c WHERE c.id = big.k);
EXPLAIN (COSTS off) SELECT * FROM big WHERE s LIKE 'word123%';
EXPLAIN (COSTS off) SELECT * FROM big WHERE v LIKE 'w12_4%';
EXPLAIN (COSTS off) SELECT * FROM big WHERE v LIKE 'w1234';
EXPLAIN (COSTS off) SELECT * FROM big WHERE k = 9 AND s LIKE 'word\%1%';
EXPLAIN (COSTS off) SELECT s FROM big WHERE s LIKE 'word12%' ORDER BY s LIMIT 3;
EXPLAIN (COSTS off) DELETE FROM big WHERE s LIKE 'word123%' AND NOT (k < 10);
-- No range.
EXPLAIN (COSTS off) SELECT * FROM big WHERE s LIKE '%123';
EXPLAIN (COSTS off) SELECT * FROM big WHERE s NOT LIKE 'word123%';
EXPLAIN (COSTS off) SELECT * FROM big WHERE s ILIKE 'word123%';
