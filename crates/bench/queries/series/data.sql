INSERT INTO sites
SELECT i, initcap(w) || ' ' || i, (ARRAY['north', 'south', 'east', 'west'])[1 + floor(a * a * 4)::int], CASE WHEN i > 20 THEN 1 + i % 20 END
FROM noise WHERE i <= 200;
INSERT INTO devices
SELECT i, 1 + floor(200 * a * a)::int, (ARRAY['meter', 'pump', 'valve', 'camera', 'lamp'])[1 + floor(b * b * 5)::int], upper(substr(md5(i::text), 1, 2)) || '-' || lpad(i::text, 6, '0'),
    date '2020-01-01' + i / 5, CASE WHEN c < 0.08 THEN timestamptz '2025-01-01 00:00:00+00' + i * interval '1 hour' END,
    jsonb_build_object('interval', 60 * (1 + floor(d * 5)::int), 'unit', w, 'alarm', jsonb_build_object('high', round((e * 100)::numeric, 1)))
FROM noise WHERE i <= 5000;
INSERT INTO readings
SELECT 1 + floor(5000 * a * a)::int, timestamptz '2025-01-01 00:00:00+00' + i * interval '30 seconds', b * 50 + c * 50, CASE WHEN d < 0.95 THEN 0 ELSE 1 + floor(e * 5)::int END
FROM noise WHERE i <= 300000;
INSERT INTO events
SELECT i, 1 + floor(5000 * a * a)::int, floor(b * b * b * 5)::int, (ARRAY['start', 'stop', 'alarm', 'door', 'battery'])[1 + floor(c * c * 5)::int],
    timestamptz '2025-01-01 00:00:00+00' + i * interval '45 seconds', CASE WHEN d < 0.93 THEN timestamptz '2025-01-01 01:00:00+00' + i * interval '45 seconds' END,
    CASE WHEN d < 0.93 THEN initcap(v) || floor(e * 50)::int END, jsonb_build_object('code', floor(f * f * 500)::int, 'source', w, 'ok', g < 0.9)
FROM noise WHERE i <= 200000;
INSERT INTO rollups
SELECT device_id, (at AT TIME ZONE 'UTC')::date, count(*), min(value), max(value), sum(value::numeric)
FROM readings GROUP BY 1, 2;
