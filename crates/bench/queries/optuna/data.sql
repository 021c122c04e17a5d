INSERT INTO studies (study_id, study_name)
SELECT i,
    'study-' || i
FROM noise WHERE i <= 300 ORDER BY noise.i;
SELECT setval(pg_get_serial_sequence('studies', 'study_id'), 300);
INSERT INTO study_directions (study_direction_id, direction, study_id, objective)
SELECT i,
    (ARRAY['MINIMIZE','MAXIMIZE'])[1 + i % 2]::studydirection,
    i,
    0
FROM noise WHERE i <= 300 ORDER BY noise.i
ON CONFLICT DO NOTHING;
SELECT setval(pg_get_serial_sequence('study_directions', 'study_direction_id'), 300);
INSERT INTO trials (trial_id, number, study_id, state, datetime_start, datetime_complete)
SELECT i,
    i,
    1 + floor(300 * a * a * a)::int,
    (CASE WHEN i > 59900 THEN 'RUNNING' WHEN b < 0.75 THEN 'COMPLETE' WHEN b < 0.95 THEN 'PRUNED' WHEN b < 0.99 THEN 'FAIL' ELSE 'WAITING' END)::trialstate,
    timestamp '2025-01-01 00:00:00' + (i * 525 + floor(m * 86400)::int) * interval '1 second',
    CASE WHEN i <= 59900 THEN timestamp '2025-01-01 00:00:00' + (i * 525 + floor(c * 3600)::int) * interval '1 second' END
FROM noise WHERE i <= 60000 ORDER BY noise.i;
SELECT setval(pg_get_serial_sequence('trials', 'trial_id'), 60000);
INSERT INTO trial_values (trial_value_id, trial_id, objective, value, value_type)
SELECT i,
    1 + ((i - 1) * 5) / 4,
    0,
    d * d * 10,
    'FINITE'
FROM noise WHERE i <= 47900 ORDER BY noise.i
ON CONFLICT DO NOTHING;
SELECT setval(pg_get_serial_sequence('trial_values', 'trial_value_id'), 47900);
INSERT INTO trial_params (param_id, trial_id, param_name, param_value, distribution_json)
SELECT i,
    1 + (i - 1) % 60000,
    (ARRAY['lr','depth','units','dropout'])[1 + (i - 1) / 60000],
    e,
    '{"name": "FloatDistribution", "attributes": {"step": null, "low": 0.0, "high": 1.0, "log": false}}'
FROM noise WHERE i <= 200000 ORDER BY noise.i
ON CONFLICT DO NOTHING;
SELECT setval(pg_get_serial_sequence('trial_params', 'param_id'), 200000);
INSERT INTO trial_intermediate_values (trial_intermediate_value_id, trial_id, step, intermediate_value, intermediate_value_type)
SELECT i,
    1 + (i - 1) / 5,
    (i - 1) % 5,
    f * 10,
    'FINITE'
FROM noise WHERE i <= 300000 ORDER BY noise.i
ON CONFLICT DO NOTHING;
SELECT setval(pg_get_serial_sequence('trial_intermediate_values', 'trial_intermediate_value_id'), 300000);
INSERT INTO trial_user_attributes (trial_user_attribute_id, trial_id, key, value_json)
SELECT i,
    i,
    'host',
    '"worker-' || (1 + floor(30 * g * g)::int) || '"'
FROM noise WHERE i <= 60000 ORDER BY noise.i
ON CONFLICT DO NOTHING;
SELECT setval(pg_get_serial_sequence('trial_user_attributes', 'trial_user_attribute_id'), 60000);
INSERT INTO trial_system_attributes (trial_system_attribute_id, trial_id, key, value_json)
SELECT i,
    i * 2,
    'nsga2:generation',
    (i % 40)::text
FROM noise WHERE i <= 30000 ORDER BY noise.i
ON CONFLICT DO NOTHING;
SELECT setval(pg_get_serial_sequence('trial_system_attributes', 'trial_system_attribute_id'), 30000);
INSERT INTO trial_heartbeats (trial_heartbeat_id, trial_id, heartbeat)
SELECT i,
    i * 2,
    timestamp '2025-01-01 00:00:00' + (i * 1051 + floor(f * 86400)::int) * interval '1 second'
FROM noise WHERE i <= 30000 ORDER BY noise.i;
SELECT setval(pg_get_serial_sequence('trial_heartbeats', 'trial_heartbeat_id'), 30000);
