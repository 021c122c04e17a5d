INSERT INTO store (id, name, created_at, updated_at, deleted_at)
SELECT '01HSTARE' || lpad(i::text, 18, '0'),
    'tenant ' || i,
    timestamptz '2025-01-01 00:00:00+00' + (i * 788400 + floor(f * 86400)::int) * interval '1 second',
    timestamptz '2025-01-01 00:00:00+00' + (i * 788400 + floor(l * 86400)::int) * interval '1 second',
    timestamptz '2025-01-01 00:00:00+00' + (i * 788400 + floor(q * 86400)::int) * interval '1 second'
FROM noise WHERE i <= 40 ORDER BY noise.i;
INSERT INTO tuple (store, object_type, object_id, relation, _user, user_type, ulid, inserted_at)
SELECT '01HSTARE' || lpad((1 + floor(40 * a * a * a)::int)::text, 18, '0'),
    (ARRAY['document','folder','group','organization'])[1 + floor(4 * b * b)::int],
    (1 + floor(30000 * c * c)::int)::text,
    (ARRAY['viewer','editor','owner','parent','member'])[1 + floor(5 * d)::int],
    CASE WHEN e < 0.7 THEN 'user:' || (1 + floor(20000 * f * f)::int) WHEN e < 0.9 THEN 'group:' || (1 + floor(3000 * f * f)::int) || '#member' ELSE 'folder:' || (1 + floor(30000 * f)::int) END,
    CASE WHEN e < 0.7 THEN 'user' WHEN e < 0.9 THEN 'userset' ELSE 'user' END,
    '01J' || lpad(i::text, 23, '0'),
    timestamptz '2025-01-01 00:00:00+00' + (i * 105 + floor(f * 86400)::int) * interval '1 second'
FROM noise WHERE i <= 300000 ORDER BY noise.i
ON CONFLICT DO NOTHING;
INSERT INTO changelog (store, object_type, object_id, relation, _user, operation, ulid, inserted_at)
SELECT '01HSTARE' || lpad((1 + floor(40 * a * a * a)::int)::text, 18, '0'),
    (ARRAY['document','folder','group','organization'])[1 + floor(4 * b * b)::int],
    (1 + floor(30000 * c * c)::int)::text,
    (ARRAY['viewer','editor','owner','parent','member'])[1 + floor(5 * d)::int],
    'user:' || (1 + floor(20000 * f * f)::int),
    CASE WHEN g < 0.9 THEN 0 ELSE 1 END,
    '01J' || lpad(i::text, 23, '0'),
    timestamptz '2025-01-01 00:00:00+00' + (i * 105 + floor(k * 86400)::int) * interval '1 second'
FROM noise WHERE i <= 300000 ORDER BY noise.i
ON CONFLICT DO NOTHING;
INSERT INTO authorization_model (store, authorization_model_id, type, schema_version, serialized_protobuf)
SELECT '01HSTARE' || lpad((1 + i % 40)::text, 18, '0'),
    '01HMADE0' || lpad(i::text, 18, '0'),
    '',
    '1.1',
    decode(md5('authorization_model' || i), 'hex')
FROM noise WHERE i <= 400 ORDER BY noise.i
ON CONFLICT DO NOTHING;
