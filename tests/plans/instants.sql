-- Dates, timestamps and timestamptz are looked up by an index of each other's type.
CREATE TABLE big (id int PRIMARY KEY, d date, t timestamp, z timestamptz);
INSERT INTO big SELECT i, date '2020-01-01' + i / 10, timestamp '2020-01-01' + i * interval '2 hours', timestamptz '2020-01-01 00:00+00' + i * interval '2 hours' FROM generate_series(1, 20000) i;
CREATE INDEX big_d ON big (d);
CREATE INDEX big_t ON big (t);
CREATE INDEX big_z ON big (z);
ANALYZE big;
EXPLAIN (COSTS off) SELECT * FROM big WHERE z >= date '2020-02-03' AND z < date '2020-02-04';
EXPLAIN (COSTS off) SELECT * FROM big WHERE z = timestamp '2020-02-03 04:00';
EXPLAIN (COSTS off) SELECT * FROM big WHERE t > date '2024-05-03';
-- The comparison decides, the index finds the days around it.
EXPLAIN (COSTS off) SELECT * FROM big WHERE d = timestamp '2020-02-03 00:00';
EXPLAIN (COSTS off) SELECT * FROM big WHERE d >= timestamp '2025-02-03 00:00';
EXPLAIN (COSTS off) SELECT * FROM big WHERE d BETWEEN timestamptz '2020-02-03 00:00+00' AND timestamptz '2020-02-09 00:00+00';
EXPLAIN (COSTS off) SELECT * FROM big WHERE t < timestamptz '2020-01-03 00:00+00';
-- Most rows, or an equality that local time does not decide.
EXPLAIN (COSTS off) SELECT * FROM big WHERE z >= date '2020-02-03';
EXPLAIN (COSTS off) SELECT * FROM big WHERE t = timestamptz '2020-01-03 00:00+00';
