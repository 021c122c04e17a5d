INSERT INTO user_entity (id, email, email_constraint, email_verified, enabled, first_name, last_name, realm_id, username, created_timestamp, not_before)
SELECT md5('user' || i)::uuid::text,
    'user' || i || '@example.com',
    'user' || i || '@example.com',
    d < 0.8,
    c < 0.97,
    w,
    x,
    'tenant' || (1 + floor(10 * a * a)::int),
    'user' || i,
    1735689600000 + i::bigint * 525000,
    0
FROM noise WHERE i <= 60000 ORDER BY noise.i
ON CONFLICT DO NOTHING;
INSERT INTO keycloak_group (id, name, parent_group, realm_id, type)
SELECT md5('group' || i)::uuid::text,
    'group ' || i,
    CASE WHEN i <= 200 THEN ' ' ELSE md5('group' || (1 + i % 200))::uuid::text END,
    'tenant' || (1 + i % 10),
    0
FROM noise WHERE i <= 2000 ORDER BY noise.i
ON CONFLICT DO NOTHING;
INSERT INTO user_role_mapping (role_id, user_id)
SELECT md5('role' || (1 + floor(1000 * b * b)::int))::uuid::text,
    md5('user' || (1 + (i - 1) % 60000))::uuid::text
FROM noise WHERE i <= 90000 ORDER BY noise.i
ON CONFLICT DO NOTHING;
INSERT INTO group_role_mapping (role_id, group_id)
SELECT md5('role' || (1 + floor(1000 * b * b)::int))::uuid::text,
    md5('group' || (1 + (i - 1) % 2000))::uuid::text
FROM noise WHERE i <= 3000 ORDER BY noise.i
ON CONFLICT DO NOTHING;
INSERT INTO user_group_membership (group_id, user_id, membership_type)
SELECT md5('group' || (1 + floor(2000 * b * b)::int))::uuid::text,
    md5('user' || (1 + (i - 1) % 60000))::uuid::text,
    'UNMANAGED'
FROM noise WHERE i <= 90000 ORDER BY noise.i
ON CONFLICT DO NOTHING;
INSERT INTO user_attribute (name, value, user_id, id)
SELECT CASE WHEN i <= 60000 THEN 'department' ELSE 'phone' END,
    CASE WHEN i <= 60000 THEN w ELSE '+49' || i END,
    md5('user' || (1 + (i - 1) % 60000))::uuid::text,
    md5('attribute' || i)::uuid::text
FROM noise WHERE i <= 120000 ORDER BY noise.i;
INSERT INTO credential (id, salt, type, user_id, created_date, secret_data, credential_data, priority, version)
SELECT md5('credential' || i)::uuid::text,
    decode(md5('credential' || i), 'hex'),
    'password',
    md5('user' || i)::uuid::text,
    floor(q * q * 100)::int,
    '{}',
    '{}',
    10,
    0
FROM noise WHERE i <= 60000 ORDER BY noise.i;
INSERT INTO federated_identity (identity_provider, realm_id, federated_user_id, federated_username, user_id)
SELECT 'google',
    'tenant' || (1 + floor(10 * a * a)::int),
    'g' || i,
    'g' || i,
    md5('user' || i)::uuid::text
FROM noise WHERE i <= 10000 ORDER BY noise.i
ON CONFLICT DO NOTHING;
INSERT INTO user_required_action (user_id, required_action)
SELECT md5('user' || i)::uuid::text,
    'UPDATE_PASSWORD'
FROM noise WHERE i <= 5000 ORDER BY noise.i
ON CONFLICT DO NOTHING;
INSERT INTO event_entity (id, client_id, details_json, error, ip_address, realm_id, event_time, type, user_id, details_json_long_value)
SELECT md5('event' || i)::uuid::text,
    'account',
    '{}',
    CASE WHEN b > 0.63 AND b < 0.77 THEN 'invalid_user_credentials' END,
    '10.0.0.' || floor(d * 255)::int,
    'tenant' || (1 + floor(10 * a * a)::int),
    1735689600000 + i::bigint * 150000,
    (ARRAY['LOGIN','LOGOUT','LOGIN_ERROR','REFRESH_TOKEN','REGISTER'])[1 + floor(5 * b * b)::int],
    md5('user' || (1 + floor(60000 * c * c)::int))::uuid::text,
    '{}'
FROM noise WHERE i <= 200000 ORDER BY noise.i;
INSERT INTO admin_event_entity (id, admin_event_time, realm_id, operation_type, auth_realm_id, resource_path, resource_type)
SELECT md5('admin' || i)::uuid::text,
    1735689600000 + i::bigint * 600000,
    'tenant' || (1 + floor(10 * a * a)::int),
    (ARRAY['UPDATE','CREATE','DELETE'])[1 + floor(3 * b)::int],
    'master',
    'users/' || i,
    (ARRAY['USER','GROUP','REALM_ROLE'])[1 + floor(3 * c * c)::int]
FROM noise WHERE i <= 50000 ORDER BY noise.i;
INSERT INTO offline_user_session (user_session_id, user_id, realm_id, created_on, offline_flag, data, last_session_refresh, version)
SELECT md5('session' || i)::uuid::text,
    md5('user' || (1 + floor(60000 * c * c)::int))::uuid::text,
    'tenant' || (1 + floor(10 * a * a)::int),
    1735689600 + i * 500,
    CASE WHEN d < 0.8 THEN '0' ELSE '1' END,
    '{}',
    1735689600 + i * 500 + floor(b * 100000)::int,
    0
FROM noise WHERE i <= 60000 ORDER BY noise.i
ON CONFLICT DO NOTHING;
INSERT INTO offline_client_session (user_session_id, client_id, offline_flag, timestamp, data, client_storage_provider, external_client_id, version)
SELECT md5('session' || (1 + (i - 1) % 60000))::uuid::text,
    md5('client' || (1 + floor(20 * b * b)::int))::uuid::text,
    CASE WHEN d < 0.8 THEN '0' ELSE '1' END,
    1735689600 + i * 300,
    '{}',
    'internal',
    'local',
    0
FROM noise WHERE i <= 90000 ORDER BY noise.i
ON CONFLICT DO NOTHING;
