-- A list may be at any place of a key, with equal columns before and behind it, a range behind, and the order of the index.
CREATE TABLE big (a int, b int, c int, s text, PRIMARY KEY (a, b, c));
INSERT INTO big SELECT i % 20, i / 20 % 40, i, 'word' || i % 300 FROM generate_series(1, 20000) i;
CREATE INDEX big_s_c ON big (s, c DESC);
CREATE TABLE few (a int, s text);
INSERT INTO few VALUES (1, 'word1'), (2, 'word2');
ANALYZE big;
ANALYZE few;
EXPLAIN (COSTS off) SELECT * FROM big WHERE a = 3 AND b IN (4, 5, 7);
EXPLAIN (COSTS off) SELECT * FROM big WHERE a IN (3, 9) AND b = 4 AND c BETWEEN 100 AND 5000;
EXPLAIN (COSTS off) SELECT * FROM big WHERE a = ANY ('{3,9}') AND b = 4 ORDER BY a, c;
EXPLAIN (COSTS off) SELECT * FROM big WHERE a IN (3, 9) AND b = 4 ORDER BY a DESC, b, c DESC LIMIT 5;
EXPLAIN (COSTS off) SELECT c FROM big WHERE s IN ('word1', 'word7') ORDER BY s, c DESC LIMIT 5;
EXPLAIN (COSTS off) SELECT * FROM big WHERE a IN (1, 2) AND b IN (3, 4);
EXPLAIN (COSTS off) SELECT f.a, b.c FROM few f JOIN big b ON b.a = f.a AND b.b IN (1, 3);
EXPLAIN (COSTS off) UPDATE big SET s = 'x' WHERE a IN (3, 9) AND b = 4 AND c > 9000;
EXPLAIN (COSTS off) SELECT * FROM big WHERE a IN (3, 9) AND b = 4 FOR UPDATE;
-- The list is before what is wanted in order, or leads to most rows.
EXPLAIN (COSTS off) SELECT * FROM big WHERE a IN (3, 9) ORDER BY b, c;
EXPLAIN (COSTS off) SELECT * FROM big WHERE a IN (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17);
