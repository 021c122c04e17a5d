INSERT INTO tenants
SELECT i, 'tenant ' || i, (ARRAY['free', 'team', 'bank'])[1 + floor(a * a * 3)::int], timestamptz '2023-01-01 00:00:00+00' + i * interval '1 day'
FROM noise WHERE i <= 40;
INSERT INTO owners
SELECT i, 1 + i % 40, initcap(w) || ' ' || initcap(x) || ' ' || i, 'owner' || i || '@example.com'
FROM noise WHERE i <= 20000;
INSERT INTO accounts
SELECT 1 + (i - 1) % 40, 1 + (i - 1) / 40, 'DE' || lpad((i * 37)::text, 8, '0'), (ARRAY['current', 'savings', 'loan', 'fee'])[1 + floor(a * a * 4)::int],
    (ARRAY['EUR', 'USD', 'GBP'])[1 + floor(b * b * 3)::int], CASE WHEN c < 0.3 AND i > 4000 THEN 1 + floor(d * 100)::int END,
    CASE WHEN e < 0.8 THEN 1 + floor(20000 * f * f)::int END, round((g * g * 10000)::numeric, 2), date '2023-01-01' + i / 80,
    CASE WHEN h < 0.05 THEN timestamptz '2025-06-01 00:00:00+00' + i * interval '1 minute' END
FROM noise WHERE i <= 60000;
INSERT INTO transfers
SELECT 1 + floor(40 * a * a)::int, i, 1 + floor(1500 * b * b)::int, 1 + floor(1500 * c)::int, round((d * d * 1000)::numeric, 2),
    CASE WHEN i > 298000 AND e < 0.7 THEN 'pending' WHEN e < 0.92 THEN 'booked' WHEN e < 0.97 THEN 'rejected' ELSE 'reversed' END,
    upper(substr(md5(i::text), 1, 4)) || lpad(i::text, 7, '0'), timestamptz '2024-01-01 00:00:00+00' + (i * 200 + floor(f * 3600)::int) * interval '1 second',
    CASE WHEN e < 0.92 THEN date '2024-01-01' + i * 200 / 86400 END, CASE WHEN g < 0.04 THEN 1 + floor(h * 200)::int END,
    jsonb_build_object('channel', (ARRAY['web', 'app', 'branch'])[1 + floor(j * j * 3)::int], 'tags', jsonb_build_array(w, x))
FROM noise WHERE i <= 300000;
INSERT INTO entries
SELECT tenant_id, from_account, row_number() OVER (PARTITION BY tenant_id, from_account ORDER BY id), id, -amount, created_at AT TIME ZONE 'UTC'
FROM transfers WHERE state = 'booked';
INSERT INTO limits
SELECT 1 + (i - 1) % 40, 1 + (i - 1) / 40, CASE WHEN a < 0.8 THEN round((b * 5000)::numeric, 2) END
FROM noise WHERE i <= 30000;
