SET client_min_messages = warning;
DROP TABLE IF EXISTS client_psql;
CREATE TABLE client_psql (id int PRIMARY KEY, name text NOT NULL, amount numeric(8,2));
INSERT INTO client_psql VALUES (1, 'one', 1.5), (2, 'two', NULL);
SELECT * FROM client_psql ORDER BY id;
\copy client_psql from stdin
3	three	3.25
4	four	\N
\.
\copy (select id, name from client_psql where id > 2 order by id) to stdout csv
BEGIN;
DELETE FROM client_psql;
ROLLBACK;
SELECT count(*) FROM client_psql;
\set id 3
SELECT name FROM client_psql WHERE id = :id;
SELECT 1 AS x, 2 AS y \gset
\echo :x :y
\set ON_ERROR_STOP off
\set VERBOSITY sqlstate
\o /dev/null
SELECT 1/0;
\o
\echo :LAST_ERROR_SQLSTATE
