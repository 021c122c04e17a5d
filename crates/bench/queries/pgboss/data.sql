INSERT INTO pgboss.job VALUES
	('557b17e1-602b-4200-97c0-81d0b2a760f3', '__pgboss__maintenance', 0, NULL, 'completed', 0, 0, 0, false, '2026-11-29 18:13:30.312915+00', '2026-11-29 18:13:30.315963+00', '__pgboss__maintenance', NULL, '00:15:00', '2026-11-29 18:13:30.312915+00', '2026-11-29 18:13:30.329727+00', '2026-11-29 18:21:30.312915+00', false, NULL),
	('419f0f7a-e17b-4c5f-a480-b14adce6dcd8', '__pgboss__maintenance', 0, NULL, 'created', 0, 0, 0, false, '2026-11-29 18:15:30.3394+00', NULL, '__pgboss__maintenance', NULL, '00:15:00', '2026-11-29 18:13:30.3394+00', NULL, '2026-11-29 18:23:30.3394+00', false, NULL),
	('4faa9e21-e04e-4c03-bc44-45aa234d7f00', '__pgboss__cron', 0, NULL, 'created', 2, 0, 0, false, '2026-11-29 18:13:30.34717+00', NULL, NULL, '2026-11-29 18:13:00', '00:15:00', '2026-11-29 18:13:30.34717+00', NULL, '2026-11-29 18:14:30.34717+00', false, NULL);
INSERT INTO pgboss.version VALUES
	(20, '2026-11-29 18:13:30.328717+00', NULL);
INSERT INTO pgboss.job (id, name, priority, data, state, retrylimit, retrycount, retrydelay, retrybackoff, startafter, startedon, singletonkey, createdon, completedon, keepuntil, on_complete, output)
SELECT md5('job' || i)::uuid,
    'queue-' || (1 + floor(20 * a * a)::int),
    CASE WHEN b < 0.9 THEN 0 ELSE floor(c * 10)::int END,
    jsonb_build_object('order', i, 'kind', w),
    (CASE WHEN i > 148000 THEN 'created' WHEN i > 147900 THEN 'active' WHEN d < 0.93 THEN 'completed' WHEN d < 0.97 THEN 'failed' WHEN d < 0.98 THEN 'retry' WHEN d < 0.99 THEN 'cancelled' ELSE 'expired' END)::pgboss.job_state,
    floor(d * d * 100)::int,
    0,
    floor(j * j * 100)::int,
    o < 0.8,
    timestamptz '2025-12-01 00:00:00+00' + (i * interval '1 second'),
    CASE WHEN i <= 148000 THEN timestamptz '2025-12-01 00:00:05+00' + i * interval '1 second' END,
    CASE WHEN e < 0.05 AND i <= 147900 THEN 'key-' || i END,
    timestamptz '2025-12-01 00:00:00+00' + (i * interval '1 second'),
    CASE WHEN i <= 147900 THEN timestamptz '2025-12-01 00:00:07+00' + i * interval '1 second' END,
    timestamptz '2027-12-01 00:00:00+00',
    false,
    '{}'
FROM noise WHERE i <= 150000 ORDER BY noise.i
ON CONFLICT DO NOTHING;
INSERT INTO pgboss.schedule (name, cron, data, options, created_on, updated_on)
SELECT 'queue-' || i,
    '* * * * *',
    '{}',
    '{}',
    timestamptz '2025-01-01 00:00:00+00' + (i * 1576800 + floor(h * 86400)::int) * interval '1 second',
    timestamptz '2025-01-01 00:00:00+00' + (i * 1576800 + floor(n * 86400)::int) * interval '1 second'
FROM noise WHERE i <= 20 ORDER BY noise.i;
