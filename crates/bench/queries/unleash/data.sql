INSERT INTO projects VALUES
	('default', 'Default', 'Default project', '2026-11-29 18:16:10.340704', 100, '2026-11-29 18:16:10.638408+00');
INSERT INTO environments VALUES
	('default', '2026-11-29 18:16:10.595663+00', 1, 'production', false, true),
	('development', '2026-11-29 18:16:10.611634+00', 2, 'development', true, false),
	('production', '2026-11-29 18:16:10.611634+00', 3, 'production', true, false);
INSERT INTO context_fields VALUES
	('environment', 'Allows you to constrain on application environment', 0, NULL, '2026-11-29 18:16:10.303028', '2026-11-29 18:16:10.303028', false),
	('userId', 'Allows you to constrain on userId', 1, NULL, '2026-11-29 18:16:10.303028', '2026-11-29 18:16:10.303028', false),
	('appName', 'Allows you to constrain on application name', 2, NULL, '2026-11-29 18:16:10.303028', '2026-11-29 18:16:10.303028', false),
	('currentTime', 'Allows you to constrain on date values', 3, NULL, '2026-11-29 18:16:10.692286', '2026-11-29 18:16:10.692286', false),
	('sessionId', 'Allows you to constrain on sessionId', 4, NULL, '2026-11-29 18:16:10.886679', '2026-11-29 18:16:10.886679', true);
INSERT INTO roles VALUES
	(1, 'Admin', 'Users with the root admin role have superuser access to Unleash and can perform any operation within the Unleash platform.', 'root', '2026-11-29 18:16:10.397746+00', NULL, NULL),
	(2, 'Editor', 'Users with the root editor role have access to most features in Unleash, but can not manage users and roles in the root scope. Editors will be added as project owners when creating projects and get superuser rights within the context of these projects. Users with the editor role will also get access to most permissions on the default project by default.', 'root', '2026-11-29 18:16:10.397746+00', NULL, NULL),
	(3, 'Viewer', 'Users with the root viewer role can only read root resources in Unleash. Viewers can be added to specific projects as project members. Users with the viewer role may not view API tokens.', 'root', '2026-11-29 18:16:10.397746+00', NULL, NULL),
	(4, 'Owner', 'Users with the project owner role have full control over the project, and can add and manage other users within the project context, manage feature toggles within the project, and control advanced project features like archiving and deleting the project.', 'project', '2026-11-29 18:16:10.479852+00', NULL, NULL),
	(5, 'Member', 'Users with the project member role are allowed to view, create, and update feature toggles within a project, but have limited permissions in regards to managing the project''s user access and can not archive or delete the project.', 'project', '2026-11-29 18:16:10.479852+00', NULL, NULL);
INSERT INTO project_environments VALUES
	('default', 'development', NULL),
	('default', 'production', NULL);
INSERT INTO users (id, name, username, email, login_attempts, created_at, seen_at, settings, deleted_at, is_service, created_by_user_id, is_system)
SELECT i,
    w || ' ' || x,
    'user' || i,
    'user' || i || '@example.com',
    floor(e * e * 100)::int,
    timestamp '2025-01-01 00:00:00' + (i * 15768 + floor(k * 86400)::int) * interval '1 second',
    timestamp '2025-01-01 00:00:00' + (i * 15768 + floor(p * 86400)::int) * interval '1 second',
    '{}',
    CASE WHEN a < 0.03 THEN timestamptz '2025-06-01 00:00:00+00' END,
    false,
    floor(o * o * 100)::int,
    false
FROM noise WHERE i <= 2000 ORDER BY noise.i;
SELECT setval(pg_get_serial_sequence('users', 'id'), 2000);
INSERT INTO projects (id, name, created_at, health, updated_at)
SELECT 'project-' || i,
    x || ' ' || y || ' ' || i,
    timestamp '2025-01-01 00:00:00' + (i * 315360 + floor(c * 86400)::int) * interval '1 second',
    floor(h * h * 100)::int,
    timestamptz '2025-01-01 00:00:00+00' + (i * 315360 + floor(n * 86400)::int) * interval '1 second'
FROM noise WHERE i <= 100 ORDER BY noise.i;
INSERT INTO project_environments (project_id, environment_name, default_strategy)
SELECT 'project-' || (1 + (i - 1) / 2),
    (ARRAY['development','production'])[1 + i % 2],
    '{}'
FROM noise WHERE i <= 200 ORDER BY noise.i
ON CONFLICT DO NOTHING;
INSERT INTO features (created_at, name, description, type, stale, project, last_seen_at, impression_data, archived_at, potentially_stale, created_by_user_id)
SELECT timestamptz '2025-01-01 00:00:00+00' + (i * 6307 + floor(j * 86400)::int) * interval '1 second',
    'feature-' || i,
    w || ' ' || x,
    (ARRAY['release','experiment','operational','kill-switch'])[1 + floor(c * c * 4)::int],
    d < 0.1,
    'project-' || (1 + floor(100 * b * b)::int),
    CASE WHEN h < 0.8 THEN timestamptz '2025-12-01 00:00:00+00' + floor(j * 1000000)::int * interval '1 second' END,
    h < 0.2,
    CASE WHEN e < 0.1 THEN timestamptz '2025-09-01 00:00:00+00' END,
    g < 0.1,
    1 + floor(2000 * f * f)::int
FROM noise WHERE i <= 5000 ORDER BY noise.i;
INSERT INTO feature_environments (environment, feature_name, enabled, last_seen_at)
SELECT (ARRAY['development','production'])[1 + (i - 1) / 5000],
    'feature-' || (1 + (i - 1) % 5000),
    a < 0.6,
    timestamptz '2025-01-01 00:00:00+00' + (i * 3153 + floor(k * 86400)::int) * interval '1 second'
FROM noise WHERE i <= 10000 ORDER BY noise.i
ON CONFLICT DO NOTHING;
INSERT INTO feature_strategies (id, feature_name, project_name, environment, strategy_name, parameters, constraints, sort_order, created_at, title, disabled, created_by_user_id)
SELECT md5('strategy' || i),
    'feature-' || (1 + (i - 1) % 5000),
    'project-1',
    (ARRAY['development','production'])[1 + (i / 5000) % 2],
    (ARRAY['default','flexibleRollout','userWithId','remoteAddress'])[1 + floor(b * b * 4)::int],
    '{"rollout": "50"}',
    '[]',
    i % 10,
    timestamptz '2025-01-01 00:00:00+00' + (i * 1576 + floor(c * 86400)::int) * interval '1 second',
    y || ' ' || x || ' ' || i,
    n < 0.8,
    floor(g * g * 100)::int
FROM noise WHERE i <= 20000 ORDER BY noise.i;
INSERT INTO segments (id, name, created_at)
SELECT i,
    'segment ' || i,
    timestamptz '2025-01-01 00:00:00+00' + (i * 157680 + floor(h * 86400)::int) * interval '1 second'
FROM noise WHERE i <= 200 ORDER BY noise.i;
SELECT setval(pg_get_serial_sequence('segments', 'id'), 200);
INSERT INTO feature_strategy_segment (feature_strategy_id, segment_id, created_at)
SELECT md5('strategy' || i),
    1 + floor(200 * a * a)::int,
    timestamptz '2025-01-01 00:00:00+00' + (i * 7884 + floor(j * 86400)::int) * interval '1 second'
FROM noise WHERE i <= 4000 ORDER BY noise.i
ON CONFLICT DO NOTHING;
INSERT INTO tags (type, value, created_at)
SELECT 'simple',
    'tag-' || i,
    timestamptz '2025-01-01 00:00:00+00' + (i * 105120 + floor(e * 86400)::int) * interval '1 second'
FROM noise WHERE i <= 300 ORDER BY noise.i
ON CONFLICT DO NOTHING;
INSERT INTO feature_tag (feature_name, tag_type, tag_value, created_at, created_by_user_id)
SELECT 'feature-' || (1 + floor(5000 * a * a)::int),
    'simple',
    'tag-' || (1 + floor(300 * b * b)::int),
    timestamptz '2025-01-01 00:00:00+00' + (i * 3153 + floor(m * 86400)::int) * interval '1 second',
    1
FROM noise WHERE i <= 10000 ORDER BY noise.i
ON CONFLICT DO NOTHING;
INSERT INTO events (id, created_at, type, created_by, data, project, environment, feature_name, pre_data, announced, created_by_user_id)
SELECT i,
    timestamptz '2025-01-01 00:00:00+00' + (i * 210 + floor(m * 86400)::int) * interval '1 second',
    (ARRAY['feature-updated','feature-created','feature-archived','feature-environment-enabled','feature-strategy-update','project-created','user-created'])[1 + floor(7 * b * b)::int],
    'user' || (1 + floor(2000 * f * f)::int),
    json_build_object('name', w, 'enabled', g < 0.5),
    'project-' || (1 + floor(100 * d * d)::int),
    CASE WHEN e < 0.5 THEN 'production' WHEN e < 0.8 THEN 'development' END,
    CASE WHEN c < 0.9 THEN 'feature-' || (1 + floor(5000 * a * a)::int) END,
    '{}',
    i <= 149900,
    1 + floor(2000 * f * f)::int
FROM noise WHERE i <= 150000 ORDER BY noise.i;
SELECT setval(pg_get_serial_sequence('events', 'id'), 150000);
INSERT INTO client_applications (app_name, created_at, updated_at, seen_at, strategies, announced)
SELECT 'app-' || i,
    timestamptz '2025-01-01 00:00:00+00' + (i * 63072 + floor(d * 86400)::int) * interval '1 second',
    timestamptz '2025-01-01 00:00:00+00' + (i * 63072 + floor(j * 86400)::int) * interval '1 second',
    timestamptz '2025-01-01 00:00:00+00' + (i * 63072 + floor(o * 86400)::int) * interval '1 second',
    '{}',
    true
FROM noise WHERE i <= 500 ORDER BY noise.i;
INSERT INTO client_applications_usage (app_name, project, environment)
SELECT 'app-' || (1 + (i - 1) % 500),
    'project-' || (1 + floor(100 * a * a)::int),
    (ARRAY['development','production'])[1 + i % 2]
FROM noise WHERE i <= 2000 ORDER BY noise.i
ON CONFLICT DO NOTHING;
INSERT INTO client_instances (app_name, instance_id, last_seen, created_at, sdk_version, environment)
SELECT 'app-' || (1 + floor(500 * a * a)::int),
    'instance-' || i,
    timestamptz '2025-12-01 00:00:00+00' + floor(b * 2000000)::int * interval '1 second',
    timestamptz '2025-01-01 00:00:00+00' + (i * 1576 + floor(f * 86400)::int) * interval '1 second',
    'unleash-client-node:' || (1 + floor(c * 6)::int),
    (ARRAY['development','production'])[1 + i % 2]
FROM noise WHERE i <= 20000 ORDER BY noise.i
ON CONFLICT DO NOTHING;
INSERT INTO client_metrics_env (feature_name, app_name, environment, timestamp, yes, no)
SELECT 'feature-' || (1 + floor(5000 * a * a)::int),
    'app-' || (1 + floor(500 * b * b)::int),
    (ARRAY['development','production'])[1 + floor(c * 2)::int],
    timestamptz '2025-12-01 00:00:00+00' + (i / 70) * interval '1 hour' / 60,
    floor(d * 1000)::int,
    floor(e * 100)::int
FROM noise WHERE i <= 200000 ORDER BY noise.i
ON CONFLICT DO NOTHING;
INSERT INTO favorite_features (feature, user_id, created_at)
SELECT 'feature-' || (1 + floor(5000 * a * a)::int),
    1 + floor(2000 * b * b)::int,
    timestamptz '2025-01-01 00:00:00+00' + (i * 6307 + floor(b * 86400)::int) * interval '1 second'
FROM noise WHERE i <= 5000 ORDER BY noise.i
ON CONFLICT DO NOTHING;
INSERT INTO favorite_projects (project, user_id, created_at)
SELECT 'project-' || (1 + floor(100 * a)::int),
    1 + floor(2000 * b)::int,
    timestamptz '2025-01-01 00:00:00+00' + (i * 15768 + floor(b * 86400)::int) * interval '1 second'
FROM noise WHERE i <= 2000 ORDER BY noise.i
ON CONFLICT DO NOTHING;
INSERT INTO role_user (role_id, user_id, created_at, project, created_by_user_id)
SELECT 1 + i % 3,
    1 + floor(2000 * a)::int,
    timestamptz '2025-01-01 00:00:00+00' + (i * 10512 + floor(k * 86400)::int) * interval '1 second',
    CASE WHEN b < 0.5 THEN 'default' ELSE 'project-' || (1 + floor(100 * c)::int) END,
    floor(p * p * 100)::int
FROM noise WHERE i <= 3000 ORDER BY noise.i
ON CONFLICT DO NOTHING;
INSERT INTO groups (id, name, created_at)
SELECT i,
    'group ' || i,
    timestamptz '2025-01-01 00:00:00+00' + (i * 315360 + floor(f * 86400)::int) * interval '1 second'
FROM noise WHERE i <= 100 ORDER BY noise.i;
SELECT setval(pg_get_serial_sequence('groups', 'id'), 100);
INSERT INTO group_user (group_id, user_id, created_at)
SELECT 1 + floor(100 * a * a)::int,
    1 + floor(2000 * b)::int,
    timestamptz '2025-01-01 00:00:00+00' + (i * 6307 + floor(q * 86400)::int) * interval '1 second'
FROM noise WHERE i <= 5000 ORDER BY noise.i
ON CONFLICT DO NOTHING;
INSERT INTO group_role (group_id, role_id, created_at, project)
SELECT 1 + floor(100 * a * a)::int,
    1 + i % 3,
    timestamptz '2025-01-01 00:00:00+00' + (i * 105120 + floor(q * 86400)::int) * interval '1 second',
    'project-' || (1 + floor(100 * b)::int)
FROM noise WHERE i <= 300 ORDER BY noise.i
ON CONFLICT DO NOTHING;
INSERT INTO last_seen_at_metrics (feature_name, environment, last_seen_at)
SELECT 'feature-' || (1 + (i - 1) % 5000),
    (ARRAY['development','production'])[1 + (i - 1) / 5000],
    timestamptz '2025-01-01 00:00:00+00' + (i * 3942 + floor(e * 86400)::int) * interval '1 second'
FROM noise WHERE i <= 8000 ORDER BY noise.i
ON CONFLICT DO NOTHING;
