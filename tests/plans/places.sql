-- Rows whose places are known are not looked for.
CREATE TABLE big (id int PRIMARY KEY, k int, s text);
INSERT INTO big SELECT i, i % 10, i::text FROM generate_series(1, 5000) i;
ANALYZE big;
EXPLAIN (COSTS off) SELECT * FROM big WHERE ctid = '(0,1)';
EXPLAIN (COSTS off) SELECT * FROM big WHERE '(0,1)' = ctid AND k = 3;
EXPLAIN (COSTS off) SELECT * FROM big WHERE ctid IN ('(0,1)', '(0,2)');
EXPLAIN (COSTS off) SELECT * FROM big WHERE ctid = ANY (ARRAY(SELECT ctid FROM big WHERE k = 3));
EXPLAIN (COSTS off) SELECT * FROM big WHERE ctid IN (SELECT ctid FROM big ORDER BY k LIMIT 5);
EXPLAIN (COSTS off) SELECT a.id FROM big a JOIN big b ON a.ctid = b.ctid WHERE b.id = 7;
EXPLAIN (COSTS off) SELECT ctid FROM big WHERE id = 7;
EXPLAIN (COSTS off) SELECT ctid, k FROM big WHERE id < 7 ORDER BY ctid LIMIT 3;
EXPLAIN (COSTS off) SELECT * FROM big WHERE ctid > '(0,1)' AND ctid <> '(0,3)';
EXPLAIN (COSTS off) SELECT * FROM big WHERE ctid = '(0,1)' OR id = 5;
EXPLAIN (COSTS off) DELETE FROM big WHERE ctid IN (SELECT ctid FROM big ORDER BY k LIMIT 5);
EXPLAIN (COSTS off) DELETE FROM big WHERE ctid IN (SELECT ctid FROM big ORDER BY k LIMIT 5 FOR UPDATE SKIP LOCKED);
EXPLAIN (COSTS off) DELETE FROM big USING (SELECT ctid FROM big ORDER BY k LIMIT 5) o WHERE big.ctid = o.ctid;
EXPLAIN (COSTS off) UPDATE big SET k = 1 WHERE ctid = '(0,1)' AND xmin = '77';
EXPLAIN (COSTS off) UPDATE big SET k = 1 WHERE id = 5 AND xmin = '77';
-- What looks at the row itself is no place to go to.
EXPLAIN (COSTS off) SELECT * FROM big WHERE ctid = s::tid;
EXPLAIN (COSTS off) DELETE FROM big WHERE ctid IN (SELECT i.ctid FROM big i WHERE i.k = big.k LIMIT 1);
SET enable_tidscan = off;
EXPLAIN (COSTS off) SELECT * FROM big WHERE ctid = '(0,1)';
