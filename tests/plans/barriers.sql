CREATE TABLE st (id int PRIMARY KEY, x int, s text, n numeric, secret bool NOT NULL);
CREATE INDEX ON st (s);
CREATE INDEX ON st (x);
CREATE INDEX ON st (n);
CREATE INDEX ON st (lower(s));
INSERT INTO st SELECT i, i % 50, i::text, i, false FROM generate_series(1, 2000) i;
INSERT INTO st VALUES (9999, 0, 'boom', 1, true);
ANALYZE st;
CREATE VIEW plain AS SELECT * FROM st WHERE NOT secret;
CREATE VIEW v WITH (security_barrier) AS SELECT * FROM st WHERE NOT secret;
CREATE VIEW over AS SELECT * FROM v WHERE x > 1;
CREATE VIEW computed WITH (security_barrier) AS SELECT id, s::int AS n, x FROM st WHERE NOT secret;
CREATE VIEW grouped WITH (security_barrier) AS SELECT x, count(*) AS c FROM st WHERE NOT secret GROUP BY x;
-- What may fail stays above the view; what leaks nothing goes below, to an index.
EXPLAIN (COSTS off) SELECT * FROM plain WHERE s::int = 7 AND id = 7;
EXPLAIN (COSTS off) SELECT * FROM v WHERE s::int = 7;
EXPLAIN (COSTS off) SELECT * FROM v WHERE s::int = 7 AND id = 7;
EXPLAIN (COSTS off) SELECT * FROM v WHERE s = '7';
EXPLAIN (COSTS off) SELECT * FROM v WHERE n = 7;
EXPLAIN (COSTS off) SELECT * FROM v WHERE lower(s) = '7';
EXPLAIN (COSTS off) SELECT * FROM over WHERE id = 7 AND 10 / x = 1;
EXPLAIN (COSTS off) SELECT * FROM computed WHERE n = 7 AND id = 7;
EXPLAIN (COSTS off) SELECT * FROM grouped WHERE x = 7 AND c / x > 0;
EXPLAIN (COSTS off) SELECT * FROM v JOIN st t ON v.id = t.id WHERE t.id = 5 AND v.s::int = 5;
EXPLAIN (COSTS off) SELECT (SELECT v.s FROM v WHERE v.id = t.id AND v.s::int > 0) FROM st t WHERE t.id < 5;
EXPLAIN (COSTS off) SELECT * FROM v WHERE id = 7 AND s::int = 7 FOR UPDATE;
-- Changes: the view's conditions first, and no index by what may leak.
EXPLAIN (COSTS off) UPDATE plain SET x = 1 WHERE n = 7 AND s::int = 7;
EXPLAIN (COSTS off) UPDATE v SET x = 1 WHERE n = 7 AND s::int = 7;
EXPLAIN (COSTS off) UPDATE v SET x = 1 WHERE id = 7 AND s::int = 7;
EXPLAIN (COSTS off) UPDATE over SET x = 1 WHERE 10 / x = 1 AND id = 7;
EXPLAIN (COSTS off) DELETE FROM v WHERE lower(s) = '7';
EXPLAIN (COSTS off) DELETE FROM v USING st t WHERE t.id = v.s::int AND t.x = 5;
-- Nothing is tried out on values that a view hides: the guess is the one without statistics.
EXPLAIN UPDATE plain SET x = 1 WHERE x % 50 = 7;
EXPLAIN UPDATE v SET x = 1 WHERE x % 50 = 7;
