-- The first rows of an order: found by several threads, or sorted before the joins by the first keys and by expressions. Joins that are shared, or that
-- find nothing. Enums, and pages of rows whose first column is known.
CREATE TYPE kind AS ENUM ('low', 'mid', 'high');
CREATE TABLE large (id int PRIMARY KEY, g int, k kind, name text, small_id int);
INSERT INTO large SELECT i, i % 1000, (ARRAY['low', 'mid', 'high']::kind[])[1 + i % 3], 'n' || i, i % 500 FROM generate_series(1, 50000) i;
CREATE TABLE small (id int PRIMARY KEY, region int, name text);
INSERT INTO small SELECT i, i % 5, 's' || i FROM generate_series(0, 499) i;
CREATE INDEX large_k ON large (k, g);
CREATE INDEX large_g ON large (g, id);
CREATE INDEX large_small ON large (small_id);
CREATE INDEX small_region ON small (region);
ANALYZE large;
ANALYZE small;
EXPLAIN (COSTS off) SELECT id, name FROM large ORDER BY name, id LIMIT 10;
EXPLAIN (COSTS off) SELECT id, name FROM large ORDER BY name, id LIMIT 40000;
EXPLAIN (COSTS off) SELECT s.region, count(*) FROM large l JOIN small s ON s.id = l.small_id GROUP BY s.region;
EXPLAIN (COSTS off) SELECT l.id, s.name FROM large l JOIN small s ON s.id = l.small_id ORDER BY lower(l.name), l.id LIMIT 10;
EXPLAIN (COSTS off) SELECT s.id, l.id FROM small s JOIN large l ON l.small_id = s.id ORDER BY s.name, l.name LIMIT 10;
EXPLAIN (COSTS off) SELECT DISTINCT ON (g) g, name FROM large ORDER BY g, name LIMIT 10;
EXPLAIN (COSTS off) SELECT * FROM large WHERE k = 'high' AND g = 7;
EXPLAIN (COSTS off) SELECT * FROM large WHERE k IN ('low', 'high') AND g < 3;
EXPLAIN (COSTS off) SELECT * FROM large WHERE g = 7 AND (g, id) > (7, 40000) ORDER BY g, id LIMIT 10;
EXPLAIN (COSTS off) SELECT * FROM large WHERE g = 7 AND (g, id) > (8, 40000);
EXPLAIN (COSTS off) SELECT * FROM large l LEFT JOIN small s ON s.id = l.small_id AND 1 = 2;
EXPLAIN (COSTS off) SELECT * FROM small s LEFT JOIN large l ON l.small_id = s.id WHERE NOT (l.g > 3 AND l.k = 'low') AND s.region = 2;
