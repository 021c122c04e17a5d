-- A table that hides another counts, although PostgreSQL does not see it.
CREATE SCHEMA early;
CREATE TABLE t (a int PRIMARY KEY, b text);
INSERT INTO t VALUES (1, 'one');
SET search_path = early, public;
PREPARE s AS SELECT b FROM t WHERE a = $1;
EXECUTE s (1);
CREATE TABLE early.t (a int, b text);
INSERT INTO early.t VALUES (1, 'early');
EXECUTE s (1);
ALTER TABLE early.t RENAME TO u;
EXECUTE s (1);
ALTER TABLE early.u RENAME TO t;
EXECUTE s (1);
DROP TABLE early.t;
EXECUTE s (1);
